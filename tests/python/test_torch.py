"""libsafetensors.torch: saving, loading, shared memory, models."""
import struct

import pytest

import libsafetensors
from libsafetensors import SafetensorError, safe_open

torch = pytest.importorskip("torch")
from libsafetensors import torch as ours  # noqa: E402
from libsafetensors.torch import (_find_shared_tensors, _remove_duplicate_names, load, load_file,
                                  load_model, save, save_file, save_model)  # noqa: E402


def bits(tensor):
    """Bytes of a tensor of any dtype."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).untyped_storage()[
        :tensor.nelement() * tensor.element_size()]) if tensor.nelement() else b""


def made(dtype, shape):
    count = 1
    for n in shape:
        count *= n
    most = 2 if dtype is torch.bool else 251
    data = (torch.arange(count * dtype.itemsize) % most).to(torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("shape", [(4, 6), (), (0,), (3, 0, 2)])
@pytest.mark.parametrize("dtype", list(ours._NAMES), ids=str)
def test_round_trip(tmp_path, dtype, shape):
    if ours._NAMES[dtype] == "F4" and not shape:
        pytest.skip("half an element does not fill a byte")
    tensor = made(dtype, shape)
    save_file({"a": tensor}, tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    assert save({"a": tensor}) == data
    for got in (load_file(tmp_path / "f"), load_file(tmp_path / "f", backend="pread"), load(data),
                load(bytearray(data))):
        assert got["a"].dtype == dtype and got["a"].shape == tensor.shape
        assert got["a"].device.type == "cpu" and bits(got["a"]) == bits(tensor)
    with safe_open(tmp_path / "f", "pt") as f:
        assert bits(f.get_tensor("a")) == bits(tensor)


def test_default_device_does_not_matter(tmp_path):
    save_file({"a": torch.arange(6.0), "b": torch.zeros(0, 2)}, tmp_path / "f")
    with torch.device("meta"):
        got = load_file(tmp_path / "f")
        with safe_open(tmp_path / "f", "pt") as f:
            one = f.get_tensor("a"), f.get_tensor("b"), f.get_slice("a")[1:3]
        memory = load((tmp_path / "f").read_bytes())
    for tensor in (*got.values(), *one, *memory.values()):
        assert tensor.device.type == "cpu"
    assert got["a"][5] == 5


def test_other_devices(tmp_path):
    save_file({"a": torch.arange(6.0)}, tmp_path / "f")
    got = load_file(tmp_path / "f", device="meta")
    assert got["a"].device.type == "meta" and got["a"].shape == (6,)
    assert load_file(tmp_path / "f", device=torch.device("cpu"))["a"][5] == 5
    with safe_open(tmp_path / "f", "pt", device="meta") as f:
        assert f.get_tensor("a").is_meta and f.get_tensors()["a"].is_meta
        assert f.get_slice("a")[:2].shape == (2,)
    for bad in ("nonsense", "nonsense:0"):
        with pytest.raises(SafetensorError, match="device %s is invalid" % bad):
            load_file(tmp_path / "f", device=bad)


def test_streamed_saving_is_the_same_file(tmp_path):
    tensors = {"b": torch.arange(6.0), "a": torch.arange(4, dtype=torch.uint8),
               "z": torch.zeros(0, 3), "s": torch.tensor(5)}
    seen = []
    ours._stream(tensors, tmp_path / "f", {"k": "v"}, progress=lambda *now: seen.append(now))
    assert (tmp_path / "f").read_bytes() == save(tensors, {"k": "v"})
    assert seen[-1] == (36, 36)


INDEXES = ["[:]", "[..., ...]", "[()]", "[:2]", "[:20]", "[3]", "[-1]", "[:, 1]", "[2:, -5]", "[::3]", "[..., 1]",
           "[[]]", "[[1, 2]]", "[5:2]", "[10:]", "[-3:]", "[:-1]", "[None]", "[1:9:3, ::2]",
           "[torch.tensor([1, 0])]", "[:, [0, 2]]", "[True]"]


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("index", INDEXES)
def test_slices_follow_torch(tmp_path, index, backend):
    whole = torch.randn(10, 5)
    save_file({"a": whole}, tmp_path / "f")
    with safe_open(tmp_path / "f", "pt", backend=backend) as f:
        piece = f.get_slice("a")
    wanted, got = eval("whole" + index), eval("piece" + index)
    assert got.shape == wanted.shape and torch.equal(got, wanted)


def test_slices_beyond_torch(tmp_path):
    whole = torch.arange(50.0).reshape(10, 5)
    save_file({"a": whole}, tmp_path / "f")
    with safe_open(tmp_path / "f", "pt") as f:
        assert torch.equal(f.get_slice("a")[::-1], whole.flip(0))
        for bad in (20, -11):
            with pytest.raises(IndexError):
                f.get_slice("a")[bad]
        with pytest.raises(IndexError):
            f.get_slice("a")[1, 2, 3]


def test_unaligned_file(tmp_path):
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' \
             b'"b":{"dtype":"F32","shape":[2,2],"data_offsets":[1,17]}}'
    (tmp_path / "f").write_bytes(struct.pack("<Q", len(header)) + header + b"\1"
                                 + struct.pack("<4f", 1, 2, 3, 4))
    got = load_file(tmp_path / "f")["b"]
    assert torch.equal(got, torch.tensor([[1.0, 2], [3, 4]])) and got.data_ptr() % 4 == 0


def test_writes_never_reach_the_file(tmp_path):
    save_file({"a": torch.zeros(1000)}, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    got = load_file(tmp_path / "f")["a"]
    got += 1
    assert got.sum() == 1000 and (tmp_path / "f").read_bytes() == before
    save_file({"a": got}, tmp_path / "f")
    assert load_file(tmp_path / "f")["a"].sum() == 1000 == got.sum()


# ── Refusals ──

def test_refusals(tmp_path):
    shared = torch.zeros(6)
    for bad, kind, text in (
            ({"a": torch.zeros(4, 4).T}, ValueError,
             "^You are trying to save a non contiguous tensor: `a` which is not allowed"),
            ({"a": torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)}, ValueError,
             "contiguous"),
            ({"a": shared, "b": shared[1:]}, RuntimeError,
             "Some tensors share memory, this will lead to duplicate memory on disk and potential "
             "differences when loading them again"),
            ({"a": torch.zeros(2, device="meta")}, RuntimeError, "meta tensor"),
            ({"a": torch.zeros(2, 3).to_sparse()}, ValueError, "sparse"),
            ({"a": [1]}, ValueError, "expected torch.Tensor"),
            ([1], ValueError, "Expected a dict"),
            ({"a": torch.zeros(2, dtype=torch.complex128)}, SafetensorError, "complex128"),
            ({1: torch.zeros(2)}, TypeError, "str")):
        with pytest.raises(kind, match=text):
            save(bad)
        with pytest.raises(kind, match=text):
            save_file(bad, tmp_path / "f")
    assert not list(tmp_path.iterdir())


def test_lazy_conjugates_and_negatives():
    z = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    lazy = z.conj()
    assert lazy.is_conj()
    assert torch.equal(load(save({"a": lazy}))["a"], torch.tensor([1 - 2j, 3 + 4j]))
    negative = lazy[:1].imag
    assert negative.is_neg()
    assert torch.equal(load(save({"a": negative}))["a"], negative.resolve_neg())


def test_parameters_and_gradients():
    p = torch.nn.Parameter(torch.arange(3.0))
    got = load(save({"a": p}))["a"]
    assert torch.equal(got, p.detach()) and not got.requires_grad


def test_nothing_of_the_caller_changes(tmp_path):
    model = torch.nn.Linear(2, 2)
    tensors, metadata = {"b": torch.zeros(2), "a": torch.ones(2)}, {"k": "v"}
    kept = dict(tensors)
    save_file(tensors, tmp_path / "f", metadata)
    model.tied = model.weight
    save_model(model, tmp_path / "m", metadata)
    assert metadata == {"k": "v"} and list(tensors) == ["b", "a"]
    assert all(tensors[k] is kept[k] for k in kept)


def test_save_model_writes_the_metadata_that_it_is_given(tmp_path):
    for metadata in (None, {}, {"k": "v"}):
        save_model(torch.nn.Linear(2, 2), tmp_path / "m", metadata)
        with safe_open(tmp_path / "m", "pt") as file:
            assert file.metadata() == metadata


# ── Shared memory ──

def test_overlap_is_of_all_and_not_of_neighbours():
    a = torch.zeros(10)
    # The third begins behind the second's end, inside the first.
    tensors = {"long": a[:8], "short": a[1:2], "third": a[4:6], "last": a[8:]}
    assert _find_shared_tensors(tensors) == [{"long", "short", "third"}, {"last"}]
    with pytest.raises(RuntimeError):
        save(tensors)
    assert len(load(save({"a": a[:3], "b": a[3:]}))) == 2


def test_names_to_keep():
    a = torch.zeros(3, 3)
    assert _remove_duplicate_names({"A": a, "B": a[:1], "C": a}) == {"A": ["B", "C"]}
    assert _remove_duplicate_names({"A": a, "C": a}, discard_names=["A"]) == {"C": ["A"]}
    assert _remove_duplicate_names({"A": a, "C": a}, preferred_names=["C"]) == {"C": ["A"]}
    assert _remove_duplicate_names({"A": a, "C": a}, discard_names=["A", "C"]) == {"A": ["C"]}
    with pytest.raises(RuntimeError):
        _remove_duplicate_names({"B": a[:1]})
    with pytest.raises(RuntimeError, match="found no suitable name to keep for saving amongst"):
        _remove_duplicate_names({"B": a[:1], "C": a[:1]})
    assert _remove_duplicate_names({"A": a})["A"] == []


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3)
        self.b = self.a


class View(torch.nn.Module):
    """Its only tensor covers a part of its memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("part", torch.arange(10.0)[2:5])


def test_models(tmp_path):
    model, again = Tied(), Tied()
    save_model(model, tmp_path / "f", {"k": "v"}, sync=False)
    with safe_open(tmp_path / "f", "pt") as f:
        assert f.keys() == ["a.bias", "a.weight"]
        assert f.metadata() == {"k": "v", "b.bias": "a.bias", "b.weight": "a.weight"}
    assert load_model(again, tmp_path / "f") == (set(), [])
    assert torch.equal(again.b.weight, model.a.weight)
    with pytest.raises(RuntimeError, match="Error.s. in loading state_dict for Linear") as caught:
        load_model(torch.nn.Linear(3, 3), tmp_path / "f")
    assert 'Missing key(s) in state_dict: "bias", "weight"' in str(caught.value)
    assert 'Unexpected key(s) in state_dict: "a.bias", "a.weight"' in str(caught.value)
    missing, unexpected = load_model(torch.nn.Linear(3, 3), tmp_path / "f", strict=False)
    assert missing == {"bias", "weight"} and sorted(unexpected) == ["a.bias", "a.weight"]


def test_a_model_with_a_view(tmp_path):
    save_model(View(), tmp_path / "f")
    again = View()
    again.part.zero_()
    load_model(again, tmp_path / "f")
    assert torch.equal(again.part, torch.tensor([2.0, 3, 4]))


def test_a_model_that_is_not_contiguous(tmp_path):
    model = torch.nn.Linear(3, 2)
    model.weight = torch.nn.Parameter(torch.arange(6.0).reshape(3, 2).T)
    with pytest.raises(ValueError, match=r"use save_model\(..., force_contiguous=True\)"):
        save_model(model, tmp_path / "f", force_contiguous=False)
    save_model(model, tmp_path / "f")
    assert torch.equal(load_file(tmp_path / "f")["weight"], model.weight)


def test_names_progress_and_our_own_file(tmp_path):
    save_file({"a": torch.arange(3.0), "b": torch.arange(4.0)}, tmp_path / "f")
    seen = []
    got = load_file(tmp_path / "f", names=["b"], progress=lambda *now: seen.append(now))
    assert list(got) == ["b"] and seen == [(16, 16)]
    load_file(tmp_path / "f", backend="pread", progress=lambda *now: seen.append(now))
    assert seen[-1] == (28, 28)
    assert list(load_file(tmp_path / "f", "meta", names=["b"])) == ["b"]
    with libsafetensors.open(tmp_path / "f") as f:
        assert set(f.torch()) == {"a", "b"} and torch.equal(f["a"].torch(), torch.arange(3.0))
    with pytest.raises(SafetensorError):
        load_file(tmp_path / "f", names=["c"])


def test_names_that_programs_take_from_here(tmp_path):
    assert ours.safe_open is safe_open and ours.TensorSpec is libsafetensors.TensorSpec
    data, kept = ours._to_ndarray(torch.arange(6, dtype=torch.bfloat16).reshape(2, 3))
    assert data.tobytes() == bits(kept) and data.shape == (12,)
    assert ours._getdtype("F8_E4M3") is torch.float8_e4m3fn and ours._SIZE[torch.complex64] == 8
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(True),
               "c": torch.zeros(0, 2, dtype=torch.bfloat16),
               "d": torch.zeros(2, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)}
    kept = []
    written = libsafetensors.serialize(ours._flatten_as_ptr(tensors, kept))
    assert written == save(tensors)
    for name, tensor in ours._view2torch(libsafetensors.deserialize(written)).items():
        assert tensor.dtype is tensors[name].dtype and tensor.shape == tensors[name].shape
        assert bits(tensor) == bits(tensors[name])
    with pytest.raises(ValueError):
        ours._evaluate_tensors_for_save([1])
    a = torch.zeros(4)
    assert ours._filter_shared_not_shared([{"a", "b"}, {"c"}], {
        "a": a[:2], "b": a[2:], "c": a}) == [{"a"}, {"b"}, {"c"}]


# ── Tensors that are no memory ──

class Wrapped(torch.Tensor):
    """As quantised tensors and others are made: it holds another, and has no memory."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype,
                                                   device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        from torch.utils._pytree import tree_map
        args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x,
                                (args, kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x,
                        function(*args, **kwargs))


class Torchao(Wrapped):
    __module__ = "torchao.quantization.some"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("torch without gloo")
    store = tmp_path_factory.mktemp("gloo") / "store"
    distributed.init_process_group("gloo", init_method="file://%s" % store, rank=0, world_size=1)
    yield distributed.device_mesh.init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def saves_of(tensor, folder):
    module = torch.nn.Module()
    module.register_parameter("w", torch.nn.Parameter(tensor, requires_grad=False))
    yield lambda: save({"v": torch.ones(1), "w": tensor})
    yield lambda: save_file({"v": torch.ones(1), "w": tensor}, folder / "x")
    yield lambda: save_model(module, folder / "x")
    yield lambda: save({"w": torch.nn.Parameter(tensor, requires_grad=False)})


def refused(tensor, folder, *words):
    for use in saves_of(tensor, folder):
        with pytest.raises(ValueError) as caught:
            use()
        text = str(caught.value)
        assert "Key `w`" in text and "NULL" not in text and "force_contiguous" not in text
        assert all(word in text for word in words), text
    assert not (folder / "x").exists()


@pytest.mark.parametrize("kind, words", [
    (Wrapped, (".Wrapped", "__tensor_flatten__")),
    (Torchao, ("torchao.quantization.some.Torchao", "flatten_tensor_state_dict"))])
def test_a_wrapper_subclass_is_named(kind, words, tmp_path):
    refused(kind(torch.ones(3)), tmp_path, *words)


def test_a_dtensor_is_to_be_gathered(mesh, tmp_path):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    for place in (Shard(0), Replicate()):
        tensor = distribute_tensor(torch.arange(16.0).reshape(4, 4), mesh, [place])
        refused(tensor, tmp_path, "DTensor", ".full_tensor()")
    save_file({"w": tensor.full_tensor()}, tmp_path / "x")
    assert torch.equal(load_file(tmp_path / "x")["w"], torch.arange(16.0).reshape(4, 4))


@pytest.mark.filterwarnings("ignore")
def test_other_tensors_without_memory(tmp_path):
    from torch._subclasses import FakeTensorMode
    with FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises(ValueError, match="FakeTensor"):
        save({"w": fake})
    parts = [torch.ones(2), torch.ones(3)]
    for layout in (torch.strided, torch.jagged):
        with pytest.raises(ValueError, match="to_padded_tensor"):
            save({"w": torch.nested.nested_tensor(parts, layout=layout)})
    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="Key `w`.*was freed"):
        save({"w": freed})


def test_a_plain_subclass_is_a_tensor(tmp_path):
    class Own(torch.Tensor):
        pass
    for tensor in (torch.ones(3).as_subclass(Own), torch.ones(0).as_subclass(Own)):
        assert save({"w": tensor}) == save({"w": torch.ones(tensor.shape)})


def test_one_tensor_keeps_no_other_alive():
    from test_numpy import resident_after
    data = save({"a%d" % i: torch.ones(1 << 20, dtype=torch.uint8) for i in range(64)})
    assert resident_after(lambda: load(data)["a3"]) < 8 << 20


def test_a_dimension_that_torch_cannot_hold_is_a_type_error(tmp_path):
    path = tmp_path / "huge.safetensors"
    head = b'{"a":{"dtype":"F32","shape":[0,9223372036854775808],"data_offsets":[0,0]}}'
    path.write_bytes(len(head).to_bytes(8, "little") + head)
    with pytest.raises(TypeError, match="torch has no tensor with a dimension of 9223372036854775808"):
        load_file(path)
