"""Memory: what keeps it, what lets it go, and that nothing is lost."""
import gc
import io
import sys
import threading
import weakref

import pytest
from reading import ReadAt, aligned, filling, one_of_each, opened, pack

from libsafetensors import SafetensorError, _core
from written import resident

np = pytest.importorskip("numpy")

PLAIN = {"a": ("F32", (4, 6), filling("F32", 24)), "b": ("I64", (3,), filling("I64", 3)),
         "c": ("U8", (7,), filling("U8", 7))}


@pytest.fixture
def path(tmp_path):
    name = tmp_path / "model.safetensors"
    name.write_bytes(aligned(PLAIN))
    return str(name)


def maps_of(path):
    with open("/proc/self/maps") as maps:
        return sum(path in line for line in maps)


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

VIEWS = {
    "tensor": lambda file: file["a"],
    "slice": lambda file: file["a"][::-1, 2],
    "buffer": lambda file: memoryview(file["a"]),
    "numpy": lambda file: file["a"].numpy(),
    "batch": lambda file: file.numpy()["a"],
    "array of array": lambda file: file.numpy()["a"][1:][::-1],
    "capsule": lambda file: file["a"].__dlpack__(),
    "versioned": lambda file: file["a"].__dlpack__(max_version=(1, 0)),
    "dlpack": lambda file: np.from_dlpack(file["a"]),
}


@needs_proc
@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.few(3)
def test_views_keep_the_map(path, kind):
    file = _core.open(path)
    assert maps_of(path) >= 1
    view = VIEWS[kind](file)
    file.close()
    del file
    gc.collect()
    assert maps_of(path) >= 1
    if isinstance(view, np.ndarray) and view.shape == (4, 6):
        assert view.tobytes() == PLAIN["a"][2]
    del view
    gc.collect()
    assert maps_of(path) == 0


@needs_proc
def test_torch_keeps_the_map(path):
    torch = pytest.importorskip("torch")
    with _core.open(path) as file:
        tensors = file.torch()
    part = tensors.pop("a")[1:, ::2]
    del tensors
    gc.collect()
    assert maps_of(path) >= 1
    want = np.frombuffer(PLAIN["a"][2], "<f4").reshape(4, 6)[1:, ::2]
    assert part.contiguous().view(torch.int32).numpy().tobytes() == want.tobytes()
    del part
    gc.collect()
    assert maps_of(path) == 0


def test_torch_gives_back_on_other_threads():
    torch = pytest.importorskip("torch")
    source = bytearray(aligned(PLAIN))
    tensors = list(_core.open(source, mode="map").torch().values())
    with pytest.raises(BufferError):
        source.append(0)
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    gc.collect()
    source.append(0)
    # and within torch, where Python's lock may not be held
    weight = torch.nn.Parameter(_core.open(path_of_buffer()).torch()["a"])
    (weight * 2).sum().backward()
    del weight


def path_of_buffer():
    return bytearray(aligned(PLAIN))


def test_close_under_a_view(path):
    file = _core.open(path)
    with memoryview(file["a"]) as view:
        file.close()
        assert view.tobytes() == PLAIN["a"][2]
        with pytest.raises(ValueError):
            file["a"]


def test_sources_are_let_go():
    source = ReadAt(aligned(PLAIN))
    gone = weakref.ref(source)
    file = _core.open(source)
    del source
    tensor = file["a"]
    file.close()
    del file
    assert gone() is not None and tensor.tobytes() == PLAIN["a"][2]
    del tensor
    assert gone() is None


@pytest.mark.parametrize("keep", ["file", "tensor", "both"])
def test_cycles_are_found(keep):
    source = ReadAt(aligned(PLAIN))
    gone = weakref.ref(source)
    file = _core.open(source)
    if keep != "tensor":
        source.file = file
    if keep != "file":
        source.tensor = file["a"]
    del source, file
    gc.collect()
    if keep != "both":
        assert gone() is None
    else:
        gone().__dict__.pop("tensor")
        gc.collect()
        assert gone() is None


def test_a_failed_open_lets_go():
    source = ReadAt(b"abc")
    gone = weakref.ref(source)
    with pytest.raises(SafetensorError):
        _core.open(source)
    del source
    gc.collect()
    assert gone() is None
    data = bytearray(b"abc")
    with pytest.raises(SafetensorError):
        _core.open(data)
    data.append(0)


def test_collecting_at_every_step(path):
    old = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what was there before is not walked at every step
    gc.set_threshold(1)
    try:
        for way in ("auto", "read", "bytes", "lent", "bytearray", "fileobj", "read_at"):
            file = opened(way, path, aligned(PLAIN))
            kept = [file["a"][i % 4:, ::-1] for i in range(20)]
            arrays = [tensor.numpy() for tensor in kept] + list(file.numpy().values())
            file.close()
            gc.collect()
            assert all(tensor.tobytes() == array.tobytes()
                       for tensor, array in zip(kept, arrays))
            del kept[::2]
            gc.collect()
    finally:
        gc.set_threshold(*old)
        gc.unfreeze()


def use_all(path, data):
    """Everything that reads, and every way it fails."""
    for way in ("auto", "map", "read", "bytes", "lent", "bytearray", "fileobj", "trickle",
                "read_at"):
        file = opened(way, path, data)
        for tensor in (file["a"], file["a"][1:, ::-2], file["b"][1], file["c"]):
            tensor.tobytes(), bytes(tensor), tensor.numpy(), np.asarray(tensor)
            tensor.read_into(bytearray(tensor.nbytes))
            tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0), copy=True)
            np.from_dlpack(tensor), tensor.__array__(np.dtype("f8"), copy=True)
            tensor.byte_ranges(), repr(tensor), tensor.shape, tensor.name, tensor.dtype
        file.numpy(), file.numpy(["a", "c"]), file.keys("natural"), file.metadata()
        file.ls_json(), file.header(), list(file), "a" in file, repr(file), file.paths
        memoryview(file.memory(file["a"].offset, file["a"].offset + 1)), file.items()
        file.values(), file.get("a"), file.get("x", 5), file.get(3)
        file.numpy(progress=lambda *now: None)
        for fail in (lambda: file.numpy("a"), lambda: file["a"][..., ...], lambda: file.get(),
                     lambda: file.numpy(progress=3), lambda: file.numpy(progress=lambda: 0),
                     lambda: file["x"], lambda: file.numpy(["a", "x"]), lambda: file["a"][9],
                     lambda: file["a"][[1]], lambda: file["a"].read_into(bytearray(1)),
                     lambda: file.keys("x"), lambda: file.header(7), lambda: file.numpy(["a", 3]),
                     lambda: file.memory(0, 1), lambda: file.memory("x", 1),
                     lambda: file["a"].__dlpack__(stream=3), lambda: file["a"]["x", None]):
            try:
                fail()
            except Exception:
                pass
        if way in ("auto", "bytes"):
            file.close()
    for fail in (lambda: _core.open(b"abc"), lambda: _core.open(io.BytesIO(b"abc")),
                 lambda: _core.open(path + "x"), lambda: _core.open(path, mode="x"),
                 lambda: _core.open(3), lambda: _core.open("/dev/null"),
                 lambda: _core.open(ReadAt(data[:50]))):
        try:
            fail()
        except Exception:
            pass


def test_nothing_leaks(path):
    data = aligned(PLAIN)
    for _ in range(150):  # caches of the interpreter fill
        use_all(path, data)
    grown = []
    while len(grown) < 4 and not (grown and grown[-1] < 200):  # threads of other tests may end
        gc.collect()
        blocks = sys.getallocatedblocks()
        for _ in range(250):
            use_all(path, data)
        gc.collect()
        grown.append(sys.getallocatedblocks() - blocks)
    assert grown[-1] < 200, grown


@needs_proc
@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("mode", ["auto", "read"])
@pytest.mark.few(1)
def test_resident_memory_stays(tmp_path, framework, mode):
    pytest.importorskip(framework)
    big = tmp_path / "big.safetensors"
    tensors = {"t%d" % i: ("F32", (64, 64), bytes(1 << 14)) for i in range(64)}
    big.write_bytes(pack(tensors, spaces=1))  # not aligned: all are copied
    def turn():
        file = _core.open(big, mode=mode)
        kept = getattr(file, framework)()
        return kept, [getattr(file["t1"][::2], framework)() for _ in range(10)]
    for _ in range(20):
        turn()
    gc.collect()
    before = resident()
    for _ in range(150):
        turn()  # 150 MB, were it kept
    gc.collect()
    assert resident() - before < 20 << 20


def test_small_leaks_of_torch(path):
    pytest.importorskip("torch")
    def turn():
        for way in ("auto", "read", "lent"):
            file = opened(way, path, aligned(PLAIN))
            file.torch(), file["a"][::-1].torch(), file["a"][::2].torch()
            for names in (["x"], [3]):
                with pytest.raises((SafetensorError, TypeError)):
                    file.torch(names)
        odd = _core.open(pack({"o": ("F4", (2, 3), bytes(3)), "s": ("F6_E2M3", (4,), bytes(3))}))
        for name in odd:
            with pytest.raises((BufferError, TypeError)):
                odd.torch([name])
    for _ in range(50):
        turn()
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(200):
        turn()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 150


def test_one_of_each_survives_its_file(tmp_path):
    name = tmp_path / "all.safetensors"
    name.write_bytes(aligned(one_of_each()))
    kept = {dtype: file for dtype, file in
            ((tensor, _core.open(name)[tensor]) for tensor in one_of_each())}
    name.unlink()
    gc.collect()
    assert {k: v.tobytes() for k, v in kept.items()} == {
        k: raw for k, (_, _, raw) in one_of_each().items()}
