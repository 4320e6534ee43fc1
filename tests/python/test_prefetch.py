"""safe_open.prefetch and its PrefetchLoader, get_tensor_meta and TensorMeta, as in the official
0.9.0rc1, with more kinds of plans and on every device."""
import gc
import random
import threading

import pytest

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, strategies as st  # noqa: E402

import libsafetensors  # noqa: E402
from fake_device import Failure, FakeDevice  # noqa: E402
from libsafetensors import SafetensorError, TensorMeta, _core, _device, safe_open  # noqa: E402
from libsafetensors import PrefetchLoader, PySafeSlice  # noqa: E402
from libsafetensors.torch import load_file, save_file  # noqa: E402
from reading import pack  # noqa: E402


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    for name in ("SLOT_BYTES", "_SHARE", "_BLOCK_BYTES"):
        monkeypatch.setattr(_device, name, getattr(_device, name) // 32)


@pytest.fixture
def path(tmp_path):
    torch.manual_seed(1)
    tensors = {"n%02d" % i: torch.randn(3 + 7 * i, 11) for i in range(20)}
    tensors["large"] = torch.randn(300, 2000)
    tensors["wide"] = torch.randn(7, 90000)
    tensors["none"] = torch.empty(0, 4)
    tensors["scalar"] = torch.tensor(5)
    save_file(tensors, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


@pytest.fixture
def devices(monkeypatch):
    made = []

    def device_of(device):
        if device.type != "cuda":
            return None
        made.append(FakeDevice(len(made), late=9))
        return made[-1]
    monkeypatch.setattr(_device, "device_of", device_of)
    return made


def same(one, other):
    return one.dtype is other.dtype and one.shape == other.shape and torch.equal(one, other)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_iteration(path, devices, device, backend):
    plain = load_file(path)
    with safe_open(path, "pt", device=device, backend=backend) as f:
        loader = f.prefetch()
        assert isinstance(loader, PrefetchLoader)
        assert loader.names() == f.offset_keys() and len(loader) == len(plain)
        found = dict(loader)
        assert len(loader) == len(plain) and list(loader) == []
        # The handle goes on as before.
        assert same(f.get_tensor("n03"), plain["n03"])
    assert set(found) == set(plain) and all(same(found[name], plain[name]) for name in plain)
    for one in devices:
        assert not one.pending and one.slots.count == len(one.slots._free)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("seed", range(5))
def test_take_in_any_order(path, devices, device, seed):
    plain = load_file(path)
    names = list(plain)
    random.Random(seed).shuffle(names)
    with safe_open(path, "pt") as f, f.prefetch(device=device, threads=3) as loader:
        for name in names[:15]:
            assert same(loader.take(name), plain[name])
            with pytest.raises(SafetensorError, match="already delivered"):
                loader.take(name)
        left = dict(loader)
        assert set(left) == set(names[15:])
        assert all(same(left[name], plain[name]) for name in left)
        with pytest.raises(SafetensorError, match="nothing is not in the prefetch plan"):
            loader.take("nothing")
    with pytest.raises(SafetensorError, match="prefetch loader closed"):
        loader.take(names[0])
    with pytest.raises(SafetensorError, match="prefetch loader closed"):
        next(iter(loader))
    loader.close()


def test_the_order_of_readiness(path, devices):
    """What is yielded was copied: nothing of it is left to be done."""
    plain = load_file(path)
    with safe_open(path, "pt", device="cuda") as f, f.prefetch() as loader:
        for name, tensor in loader:
            assert same(tensor.clone(), plain[name])


INDICES = [slice(None), slice(2, 5), slice(1, 200, 3), slice(None, None, -2), 3, -1, ...,
           (slice(None), slice(4, 9)), (..., 0), (slice(2, 4), slice(None, None, 2)), (1, 2)]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("device", ["cpu", "cuda", "meta"])
def test_slices_of_any_dimension(path, devices, index, device):
    plain = load_file(path)
    expected = plain["large"][torch.arange(299, -1, -2)] if index == slice(None, None, -2) \
        else plain["large"][index]
    with safe_open(path, "pt") as f:
        with f.prefetch({"large": index, "n07": None, "wide": (slice(None), slice(7, 9))},
                        device=device) as loader:
            assert loader.names() == [n for n in f.offset_keys() if n in ("large", "n07", "wide")]
            found = dict(loader)
        if device != "meta":
            assert same(found["large"], expected) and same(found["n07"], plain["n07"])
            assert same(found["wide"], plain["wide"][:, 7:9])
        else:
            assert found["large"].shape == expected.shape and found["large"].is_meta


def test_plans_that_are_refused(path):
    with safe_open(path, "pt") as f:
        for plan, error, text in (({}, SafetensorError, "prefetch plan selects no tensors"),
                                  (["n01"], TypeError, "plan must be a mapping"),
                                  ({3: None}, TypeError, "plan keys must be tensor names"),
                                  ({"n01": "x"}, TypeError, "must be None or .*got str for n01"),
                                  ({"n01": [1, 2]}, TypeError, "must be None or"),
                                  ({"scalar": slice(0, 1)}, IndexError, "dimension"),
                                  ({"zz": None}, SafetensorError, "does not contain tensor zz")):
            with pytest.raises(error, match=text):
                f.prefetch(plan)
        with pytest.raises(ValueError, match="device cuda:x is invalid"):
            f.prefetch(device="cuda:x")
    with pytest.raises(SafetensorError, match="File is closed"):
        f.prefetch()
    with safe_open(path, "np") as f:
        with pytest.raises(SafetensorError, match='only compatible with framework="pt"'):
            f.prefetch()


def test_dtypes_that_cannot_be(tmp_path):
    (tmp_path / "m").write_bytes(pack({"six": ("F6_E2M3", [4], bytes(3)),
                                       "four": ("F4", [4, 2], bytes(4))}))
    with safe_open(tmp_path / "m", "pt") as f:
        with pytest.raises(TypeError, match="F6_E2M3"):
            f.prefetch({"six": None})
        with pytest.raises(SafetensorError, match="only as a whole"):
            f.prefetch({"four": slice(0, 2)})
        if hasattr(torch, "float4_e2m1fn_x2"):
            found = f.prefetch({"four": None}).take("four")
            assert found.dtype is torch.float4_e2m1fn_x2 and found.shape == (4, 1)


def test_several_loaders_of_one_handle(path, devices):
    plain = load_file(path)
    with safe_open(path, "pt") as f:
        loaders = [f.prefetch(device="cuda") for _ in range(3)] + [f.prefetch()]
        for name in reversed(f.keys()):
            for loader in loaders:
                assert same(loader.take(name), plain[name])
    # They outlive the handle.
    assert all(len(loader) == len(plain) for loader in loaders)


def test_a_loader_outlives_its_handle(path):
    plain = load_file(path)
    with safe_open(path, "pt") as f:
        loader = f.prefetch()
    assert same(loader.take("large"), plain["large"])


def test_threads_share_a_loader(path, devices):
    plain, found = load_file(path), {}
    with safe_open(path, "pt", device="cuda") as f, f.prefetch() as loader:
        def run():
            for name, tensor in loader:
                assert name not in found
                found[name] = tensor
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(found) == set(plain) and all(same(found[name], plain[name]) for name in plain)


@pytest.mark.parametrize("name", ["slot", "empty", "order", "copy", "record", "query", "wait",
                                  "drain", "hand_out"])
@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.few(3)
def test_failures(path, monkeypatch, name, n):
    plain = load_file(path)
    device = FakeDevice(1, (name, n), late=9)
    monkeypatch.setattr(_device, "device_of", lambda target: device)
    found = {}
    with safe_open(path, "pt", device="cuda") as f:
        try:
            with f.prefetch() as loader:
                for one, tensor in loader:
                    found[one] = tensor
        except Failure:
            assert len(found) < len(plain)
        else:
            assert device.calls.get(name, 0) < n and len(found) == len(plain)
    gc.collect()
    assert name == "drain" or not device.pending
    assert device.slots.count == len(device.slots._free)
    assert all(same(found[one], plain[one]) for one in found)


def test_after_a_failure_the_loader_says_so(path, monkeypatch):
    device = FakeDevice(1, ("copy", 1))
    monkeypatch.setattr(_device, "device_of", lambda target: device)
    with safe_open(path, "pt", device="cuda") as f:
        loader = f.prefetch()
        with pytest.raises(Failure):
            loader.take("large")
        with pytest.raises(SafetensorError, match="reading has failed"):
            loader.take("large")


def test_dropping_a_loader_frees_its_slots(path, devices):
    with safe_open(path, "pt", device="cuda") as f:
        loader = f.prefetch()
        loader.take("n01")
        del loader
    gc.collect()
    assert not devices[0].pending
    assert devices[0].slots.count == len(devices[0].slots._free)


def test_sources_that_threads_cannot_read(path):
    plain = load_file(path)
    with open(path, "rb") as file:
        import io
        memory = io.BytesIO(file.read())
    with libsafetensors._safe_open_handle(memory, "pt") as f, f.prefetch() as loader:
        assert same(loader.take("n04"), plain["n04"])
        found = dict(loader)
        assert set(found) == set(plain) - {"n04"}
        assert all(same(found[name], plain[name]) for name in found)


@given(st.data())
def test_any_plan(path, data):
    plain = load_file(path)
    names = data.draw(st.lists(st.sampled_from(list(plain)), min_size=1, unique=True))
    plan = {}
    for name in names:
        rows = plain[name].shape[0] if plain[name].ndim else 0
        plan[name] = data.draw(st.none() | st.builds(
            slice, st.none() | st.integers(0, rows + 2), st.none() | st.integers(0, rows + 2))) \
            if rows else None
    with safe_open(path, "pt") as f, f.prefetch(plan) as loader:
        order = data.draw(st.permutations(names))
        split = data.draw(st.integers(0, len(order)))
        found = {name: loader.take(name) for name in order[:split]}
        found.update(loader)
    for name, index in plan.items():
        assert same(found[name], plain[name] if index is None else plain[name][index])


# ── What the header says ──

def test_meta(path):
    with safe_open(path, "pt") as f:
        for name in f.keys():
            meta = f.get_tensor_meta(name)
            assert isinstance(meta, TensorMeta)
            part = f.get_slice(name)
            assert isinstance(part, PySafeSlice)
            assert meta.dtype == part.get_dtype() and meta.shape == part.get_shape()
            begin, end = meta.data_offsets
            assert (begin, end) == _core.open(path)[name].data_offsets
        rows = sorted(f.get_tensor_meta(name).data_offsets for name in f.keys())
        assert rows[0][0] == 0 and all(a[1] == b[0] for a, b in zip(rows, rows[1:]))
        assert rows[-1][1] == _core.open(path).nbytes
        with pytest.raises(SafetensorError, match="does not contain tensor zz"):
            f.get_tensor_meta("zz")
    meta = _core.open(pack({"a": ("F32", [2], bytes(8)), "b": ("U8", [3], bytes(3))}))
    assert meta["b"].data_offsets == (8, 11) and meta["b"][1:].data_offsets == (8, 11)
