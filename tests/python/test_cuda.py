"""Tensors on a CUDA device, compared with the official package. Skipped without one."""
import threading

import pytest

torch = pytest.importorskip("torch")
official = pytest.importorskip("safetensors.torch")

from libsafetensors import SafetensorError, Writer, safe_open  # noqa: E402
from libsafetensors.torch import (load_file, load_model, release_pinned, save,  # noqa: E402
                                  save_file, save_model)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
          torch.float8_e4m3fn, torch.float8_e5m2]


def of(dtype, shape=(3, 5)):
    """Tensor on the device; any bits that are a value of the dtype."""
    count = 1
    for dim in shape:
        count *= dim
    if dtype is torch.bool:
        return (torch.arange(count) % 2 == 0).reshape(shape).cuda()
    bits = torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8)
    return bits.view(dtype).reshape(shape).cuda()


def bits(tensor):
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8)


def test_every_dtype_both_ways(tmp_path):
    tensors = {str(dtype): of(dtype) for dtype in DTYPES}
    save_file(tensors, tmp_path / "ours")
    official.save_file(tensors, tmp_path / "official")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "official").read_bytes()
    got = load_file(tmp_path / "official", device="cuda")
    theirs = official.load_file(tmp_path / "ours", device="cuda:0")
    for name, tensor in tensors.items():
        for one in (got[name], theirs[name]):
            assert one.device == torch.device("cuda:0") and one.dtype is tensor.dtype
            assert one.shape == tensor.shape and torch.equal(bits(one), bits(tensor))


def test_bytes_are_those_of_the_cpu(tmp_path):
    tensors = {"a": of(torch.float32), "b": of(torch.int64, (0, 4)), "c": of(torch.float16, ())}
    alike = {name: tensor.cpu() for name, tensor in tensors.items()}
    assert save(tensors) == save(alike)
    mixed = {"a": tensors["a"], "b": alike["b"], "c": alike["c"]}
    save_file(mixed, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == save(alike)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, torch.device("cuda"),
                                    torch.device("cuda", 0)])
@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_names_of_the_device(tmp_path, device, backend):
    tensor = of(torch.float32, (64, 8))
    save_file({"x": tensor}, tmp_path / "f")
    got = load_file(tmp_path / "f", device=device, backend=backend)["x"]
    assert got.is_cuda and torch.equal(bits(got), bits(tensor))
    with safe_open(tmp_path / "f", "pt", device=device, backend=backend) as f:
        assert torch.equal(bits(f.get_tensor("x")), bits(tensor))
        part = f.get_slice("x")[10:20, ::3]
        assert part.is_cuda and torch.equal(bits(part), bits(tensor[10:20, ::3]))


def test_a_device_that_is_not_there(tmp_path):
    save_file({"x": torch.ones(2)}, tmp_path / "f")
    number = torch.cuda.device_count()
    with pytest.raises((RuntimeError, SafetensorError)):
        load_file(tmp_path / "f", device="cuda:%d" % number)
    assert torch.equal(load_file(tmp_path / "f", device="cuda")["x"].cpu(), torch.ones(2))


def test_what_is_refused(tmp_path):
    whole = of(torch.float32, (4, 4))
    for save_one in (save_file, official.save_file):
        with pytest.raises(ValueError, match="non contiguous"):
            save_one({"x": whole.t()[1:]}, tmp_path / "f")
        with pytest.raises(RuntimeError, match="share memory"):
            save_one({"x": whole, "y": whole[:2]}, tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_tied_weights(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = torch.nn.Linear(8, 8, bias=False)
            self.out = torch.nn.Linear(8, 8, bias=False)
            self.out.weight = self.inside.weight

    model = Tied().cuda()
    save_model(model, tmp_path / "f")
    official.save_model(model, tmp_path / "official")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "official").read_bytes()
    other = Tied()
    missing, unexpected = load_model(other, tmp_path / "f", device="cuda")
    assert not missing and not unexpected
    assert torch.equal(other.out.weight, model.out.weight.cpu())


def test_writing_over_the_file_in_use(tmp_path):
    first = of(torch.float32, (1024, 64))
    save_file({"x": first}, tmp_path / "f")
    view = load_file(tmp_path / "f")["x"]
    again = load_file(tmp_path / "f", device="cuda")["x"] + 1
    save_file({"x": again}, tmp_path / "f")
    assert torch.equal(bits(view), bits(first))
    assert torch.equal(bits(load_file(tmp_path / "f")["x"]), bits(again))


def test_the_device_owns_its_copy(tmp_path):
    save_file({"x": torch.arange(1000.0)}, tmp_path / "f")
    with safe_open(tmp_path / "f", "pt", device="cuda") as f:
        got = f.get_tensor("x")
    got += 1
    assert torch.equal(got.cpu(), torch.arange(1000.0) + 1)
    assert torch.equal(load_file(tmp_path / "f")["x"], torch.arange(1000.0))


def test_memory_is_released(tmp_path):
    save_file({str(i): torch.ones(1 << 16) for i in range(16)}, tmp_path / "f")
    load_file(tmp_path / "f", device="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(50):
        load_file(tmp_path / "f", device="cuda")
    assert torch.cuda.memory_allocated() == before


def test_threads_share_a_handle(tmp_path):
    tensors = {str(i): of(torch.float32, (32, 32)) for i in range(64)}
    save_file(tensors, tmp_path / "f")
    wrong = []
    with safe_open(tmp_path / "f", "pt", device="cuda") as f:
        def read(first):
            for i in range(first, 64, 8):
                if not torch.equal(bits(f.get_tensor(str(i))), bits(tensors[str(i)])):
                    wrong.append(i)
        threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_failing_save_leaves_the_old_file(tmp_path):
    save_file({"x": torch.ones(4)}, tmp_path / "f")
    old = (tmp_path / "f").read_bytes()

    def stop(done, total):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        save_file({"x": of(torch.float32, (1 << 20,))}, tmp_path / "f", progress=stop)
    assert (tmp_path / "f").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_the_streaming_writer(tmp_path):
    tensor = of(torch.bfloat16, (128, 16))
    with Writer(tmp_path / "f", [("x", "BF16", (128, 16))]) as writer:
        writer.write("x", tensor.cpu().view(torch.uint8).numpy())
    assert torch.equal(bits(load_file(tmp_path / "f", device="cuda")["x"]), bits(tensor))


def test_large_and_small_tensors_at_once(tmp_path):
    tensors = {"%d" % i: torch.randn(1 + 997 * i) for i in range(200)}
    tensors["large"] = torch.randn(64 << 20)
    save_file(tensors, tmp_path / "f")
    for _ in range(3):
        got = load_file(tmp_path / "f", device="cuda")
        assert all(torch.equal(got[name].cpu(), tensors[name]) for name in tensors)
        assert all(one.data_ptr() % 512 == 0 for one in got.values())
    assert release_pinned() > 0 and release_pinned() == 0


def test_prefetch(tmp_path):
    tensors = {"%d" % i: torch.randn(20, 999 * i) for i in range(100)}
    save_file(tensors, tmp_path / "f")
    with safe_open(tmp_path / "f", "pt", device="cuda") as f:
        with f.prefetch() as loader:
            assert torch.equal(loader.take("77").cpu(), tensors["77"])
            got = dict(loader)
        assert all(torch.equal(one.cpu(), tensors[name]) for name, one in got.items())
        other = torch.cuda.Stream()
        with f.prefetch({"50": (slice(None), slice(10, 500))}) as loader, torch.cuda.stream(other):
            part = loader.take("50") + 0
        other.synchronize()
        assert torch.equal(part.cpu(), tensors["50"][:, 10:500])


def test_parameters_on_the_device(tmp_path):
    model, other = torch.nn.Linear(3000, 1000).cuda(), torch.nn.Linear(3000, 1000).cuda()
    save_model(model, tmp_path / "f")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    load_model(other, tmp_path / "f", device="cuda")
    assert torch.cuda.max_memory_allocated() == before
    assert torch.equal(other.weight, model.weight) and torch.equal(other.bias, model.bias)
