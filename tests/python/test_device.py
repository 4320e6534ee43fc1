"""Loading to a device, over one that is hostile (fake_device.py)."""
import gc
import os
import random
import signal
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, strategies as st  # noqa: E402

import libsafetensors  # noqa: E402
from fake_device import Failure, FakeDevice  # noqa: E402
from libsafetensors import _core, _device  # noqa: E402
from libsafetensors.torch import load_file, save_file  # noqa: E402
from reading import pack  # noqa: E402

# Everything is made smaller by 32, so that small files do.
SLOT, SHARE = _device.SLOT_BYTES // 32, _device._SHARE // 32


@pytest.fixture(autouse=True)
def smaller(monkeypatch):
    for name in ("SLOT_BYTES", "_SHARE", "_BLOCK_BYTES"):
        monkeypatch.setattr(_device, name, getattr(_device, name) // 32)


def content(size, seed):
    return random.Random(seed).randbytes(size)


def write(path, sizes, dtype="U8"):
    """A file of tensors of so many bytes, t0, t1 and so on."""
    path.write_bytes(pack({"t%d" % i: (dtype, [size], content(size, i))
                           for i, size in enumerate(sizes)}))
    return path


def tensors_of(path):
    return list(libsafetensors.open(path, mode="read").values())


def check(tensors, found):
    assert len(tensors) == len(found)
    for tensor, one in zip(tensors, found):
        expected = tensor.torch()
        assert one.dtype is expected.dtype and one.shape == expected.shape
        assert one.is_contiguous() and not one._is_view()
        same = one.view(-1).view(torch.uint8) == expected.reshape(-1).view(torch.uint8) \
            if one.numel() else torch.ones(1)
        assert bool(same.all()), tensor


SIZES = [3, 5 * SHARE, 0, 21000, 512, 9 * SHARE, 1, SHARE, SHARE - 1, 4096, 17 * SHARE]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "m", SIZES)


# ── Loading ──

@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("late", [0, 3, 40])
def test_bytes_arrive(path, seed, late):
    tensors, device = tensors_of(path), FakeDevice(seed, late=late)
    check(tensors, _device.load(device, tensors, pack=seed % 2 == 0))
    assert not device.pending and device.slots.count <= 4


def test_the_order_of_calls(path):
    """What is enqueued comes after what the caller's stream does, each event behind the copies of
    one slot, and the slots are free once all is done."""
    device = FakeDevice()
    _device.load(device, tensors_of(path))
    calls = [call for call in device.log if call in ("order", "copy", "record", "wait", "finish",
                                                     "drain")]
    assert calls[0] == "order" and calls[-2:] == ["finish", "drain"]
    for before, call in zip(calls, calls[1:]):
        if call == "copy":
            assert before in ("order", "copy", "record", "wait")
        if call == "record":
            assert before == "copy"
    # A block that was allocated late is ordered, too.
    made = [i for i, call in enumerate(device.log) if call == "empty"]
    copies = [i for i, call in enumerate(device.log) if call == "copy"]
    orders = [i for i, call in enumerate(device.log) if call == "order"]
    for at in (one for one in made if one < copies[-1]):
        copy = min(one for one in copies if one > at)
        assert any(at < one < copy for one in orders)


def test_slots_are_few_and_kept(path):
    device = FakeDevice()
    for _ in range(3):
        check(tensors_of(path), _device.load(device, tensors_of(path)))
    assert device.calls["slot"] <= 4
    assert device.slots.release() == 4 * SLOT and device.slots.count == 0
    # A small file needs but one.
    small = FakeDevice()
    tensors = tensors_of(path)[:1]
    check(tensors, _device.load(small, tensors))
    assert small.calls["slot"] == 1


def test_more_slots_are_added_only_where_enough_is_left(tmp_path, monkeypatch):
    path = write(tmp_path / "m", [60 * SHARE])
    worth = _device._WORTH
    monkeypatch.setattr(_device, "_WORTH", 0)
    device = FakeDevice(late=50, kept=6)
    check(tensors_of(path), _device.load(device, tensors_of(path)))
    assert 4 <= device.calls["slot"] <= 6
    monkeypatch.setattr(_device, "_WORTH", worth)
    device = FakeDevice(late=50, kept=6)
    check(tensors_of(path), _device.load(device, tensors_of(path)))
    assert device.calls["slot"] == 4


def test_shared_blocks(path):
    tensors = tensors_of(path)
    found = dict(zip((t.name for t in tensors), _device.load(FakeDevice(), tensors)))
    small = [found["t%d" % i] for i, size in enumerate(SIZES) if 0 < size < SHARE]
    large = [found["t%d" % i] for i, size in enumerate(SIZES) if size >= SHARE]
    assert len({one.untyped_storage().data_ptr() for one in small}) == 1
    start = small[0].untyped_storage().data_ptr()
    assert all((one.data_ptr() - start) % 512 == 0 for one in small)
    for one in large:
        assert one.untyped_storage().nbytes() == one.nbytes
    apart = _device.load(FakeDevice(), tensors, pack=False)
    assert all(one.untyped_storage().nbytes() == one.nbytes for one in apart)
    for one in small:
        before = [other.clone() for other in small if other is not one]
        one.zero_()
        assert all(torch.equal(a, b) for a, b in
                   zip(before, (other for other in small if other is not one)))


def test_neighbours_are_one_copy(tmp_path):
    device = FakeDevice()
    tensors = tensors_of(write(tmp_path / "m", [1024] * 2000))
    check(tensors, _device.load(device, tensors))
    assert device.calls["copy"] == device.calls["record"] == 8  # one for each slot


DTYPES = [name for name in _core.DTYPES if not name.startswith("F6")]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path, dtype):
    bits = _core.DTYPES[dtype][0]
    data = {"scalar" if not shape else "x".join(map(str, shape)):
            (dtype, list(shape), content(bits * count // 8, count))
            for shape, count in (((4, 6), 24), ((0, 4), 0), ((3, 1 << 13), 3 << 13), ((2,), 2))}
    if bits >= 8:
        data["scalar"] = (dtype, [], content(bits // 8, 1))
    if dtype == "BOOL":
        data = {name: (dtype, shape, bytes(b & 1 for b in raw))
                for name, (dtype, shape, raw) in data.items()}
    (tmp_path / "m").write_bytes(pack(data))
    tensors = tensors_of(tmp_path / "m")
    for packed in (True, False):
        check(tensors, _device.load(FakeDevice(), tensors, pack=packed))


def test_a_dtype_that_torch_lacks(tmp_path):
    (tmp_path / "m").write_bytes(pack({"a": ("F6_E2M3", [4], bytes(3))}))
    with pytest.raises(TypeError, match="F6_E2M3"):
        _device.load(FakeDevice(), tensors_of(tmp_path / "m"))


def test_nothing_to_load(tmp_path):
    assert _device.load(FakeDevice(), []) == []
    path = write(tmp_path / "m", [0, 0])
    device = FakeDevice()
    check(tensors_of(path), _device.load(device, tensors_of(path)))
    assert "slot" not in device.calls


@given(st.data())
def test_any_slices(tmp_path, data):
    shape = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    count = 1
    for dim in shape:
        count *= dim
    path = tmp_path / "m"
    path.write_bytes(pack({"a": ("I32", shape, content(4 * count, 7)),
                           "b": ("I16", shape, content(2 * count, 8))}))
    whole = libsafetensors.open(path, mode="read")
    chosen = []
    for name in data.draw(st.lists(st.sampled_from("ab"), max_size=6)):
        index = tuple(data.draw(st.one_of(
            st.integers(-dim, dim - 1),
            st.builds(slice, st.none() | st.integers(-dim, dim), st.none() | st.integers(-dim, dim),
                      st.sampled_from([None, 1, 2, 3, -1, -2])))) for dim in
            shape[:data.draw(st.integers(0, len(shape)))])
        chosen.append(whole[name][index])
    check(chosen, _device.load(FakeDevice(data.draw(st.integers(0, 9))), chosen,
                               pack=data.draw(st.booleans())))


@given(st.lists(st.one_of(st.integers(0, 3000), st.integers(SHARE, 3 * SHARE)), max_size=30),
       st.booleans())
def test_places_never_overlap(tmp_path, sizes, pack_them):
    tensors = tensors_of(write(tmp_path / "m", sizes))
    targets = _device.Targets(FakeDevice(), tensors, pack_them)
    used = {}
    for tensor, (block, at) in zip(tensors, targets.places):
        if tensor.nbytes:
            assert at % 512 == 0 and at + tensor.nbytes <= targets.sizes[block]
            used.setdefault(block, []).append((at, at + tensor.nbytes))
    for block, rows in used.items():
        rows.sort()
        assert all(one[1] <= two[0] for one, two in zip(rows, rows[1:]))
        assert len(rows) == 1 or targets.sizes[block] <= 32 * SHARE
    assert len(targets.parts) == sum(size > 0 for size in sizes)


def test_many_tensors(tmp_path):
    count = 92000
    path = tmp_path / "m"
    path.write_bytes(pack({"t%d" % i: ("U8", [1 + i % 3], bytes([i % 251] * (1 + i % 3)))
                           for i in range(count)}))
    tensors = tensors_of(path)
    found = _device.load(FakeDevice(), tensors)
    numbers = torch.tensor([int(tensor.name[1:]) % 251 for tensor in tensors], dtype=torch.uint8)
    assert torch.equal(torch.stack([one[0] for one in found]), numbers)


def test_a_set_of_shards(tmp_path):
    import json
    shards = {"a.safetensors": [5, 3 * SHARE], "b.safetensors": [SHARE, 9], "c.safetensors": [77]}
    where = {}
    for i, (name, sizes) in enumerate(shards.items()):
        data = {"%d.%d" % (i, j): ("U8", [size], content(size, 10 * i + j))
                for j, size in enumerate(sizes)}
        (tmp_path / name).write_bytes(pack(data))
        where.update(dict.fromkeys(data, name))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    tensors = list(libsafetensors.open(tmp_path, mode="read").values())
    random.Random(1).shuffle(tensors)
    device = FakeDevice(3)
    check(tensors, _device.load(device, tensors))


# ── Failures ──

FUNCTIONS = ["slot", "room", "empty", "order", "copy", "record", "query", "wait", "finish", "drain"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [
    1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3, 5))])
@pytest.mark.few(3)
def test_the_nth_call_of_a_function_fails(path, name, n):
    tensors, device = tensors_of(path), FakeDevice(n, (name, n), late=9)
    try:
        check(tensors, _device.load(device, tensors))
    except Failure:
        assert (name, device.calls[name]) >= (name, n)
        if name != "drain":
            # No copy is left that could write to memory which is free by now.
            assert not device.pending
    else:
        assert device.calls.get(name, 0) < n
    gc.collect()
    kept = device.slots
    assert kept.count == len(kept._free)
    assert len({id(one) for one in kept._free}) == len(kept._free)
    device.fail = None
    check(tensors, _device.load(device, tensors))


def test_slots_that_may_still_be_used_are_never_lent_again(path):
    device = FakeDevice(0, ("drain", 1))
    with pytest.raises(Failure):
        _device.load(device, tensors_of(path))
    assert device.slots.count == 0 and len(device.slots._lost) == device.calls["slot"]


def test_targets_live_until_their_copies_are_done(path):
    """What a failed load filled is freed after the stream is idle, not before."""
    alive = []

    class Watching(FakeDevice):
        def empty(self, shape, dtype):
            made = super().empty(shape, dtype)
            alive.append(weakref.ref(made.untyped_storage()))
            self.made = True
            return made

        def drain(self):
            self.at_drain = len(self.pending)
            for _, _, (target, _, _, _) in self.pending:
                assert target.untyped_storage().data_ptr()
            super().drain()

    device = Watching(0, ("copy", 4), late=99)
    with pytest.raises(Failure):
        _device.load(device, tensors_of(path))
    assert device.at_drain == 3 and not device.pending


def test_a_file_that_is_cut_short(tmp_path):
    path = write(tmp_path / "m", [12 * SHARE, 3 * SHARE])
    tensors = tensors_of(path)
    with open(path, "r+b") as file:
        file.truncate(5 * SHARE)
    device = FakeDevice()
    with pytest.raises((OSError, libsafetensors.SafetensorError)) as caught:
        _device.load(device, tensors)
    assert caught.value.tensor in ("t0", "t1") and caught.value.offset is not None
    assert not device.pending and device.slots.count == len(device.slots._free)


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("function", ["copy", "record", "query", "drain"])
def test_ctrl_c(path, function):
    """A signal that comes within a call of the device ends the load in order."""
    class Interrupted(FakeDevice):
        def _call(self, name):
            super()._call(name)
            if name == function and self.calls[name] == 1:
                signal.raise_signal(signal.SIGINT)

    device = Interrupted(late=9)
    tensors = tensors_of(path)
    with pytest.raises(KeyboardInterrupt):
        _device.load(device, tensors)
    gc.collect()
    assert not device.pending and device.slots.count == len(device.slots._free)
    check(tensors, _device.load(device, tensors))


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_ctrl_c_again_while_a_load_ends(path):
    """The second one leaves no step out either."""
    class Impatient(FakeDevice):
        def drain(self):
            if self.calls.get("drain", 0) < 3:
                self._call("drain")
                signal.raise_signal(signal.SIGINT)
            super().drain()

        def copy(self, slot, copies):
            super().copy(slot, copies)
            signal.raise_signal(signal.SIGINT)

    tensors = tensors_of(path)
    for load in (_device.load, lambda device, _: _device.load_small(device, tensors[0])):
        device = Impatient(late=9)
        with pytest.raises(KeyboardInterrupt):
            load(device, tensors)
        assert device.calls["drain"] == 4 and not device.pending
        assert device.slots.count == len(device.slots._free) > 0


def test_progress_that_raises(path):
    device = FakeDevice()

    def stop(done, total):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        _device.load(device, tensors_of(path), tick=stop)
    assert not device.pending and device.slots.count == len(device.slots._free)
    seen = []
    _device.load(device, tensors_of(path), tick=lambda *numbers: seen.append(numbers))
    assert seen[-1] == (sum(SIZES), sum(SIZES)) and seen == sorted(seen)


def test_loads_at_once(path):
    """They share slots of one device, and have streams and events of their own."""
    slots = FakeDevice(kept=3).slots
    tensors, wrong = tensors_of(path), []

    def load(seed):
        device = FakeDevice(seed, late=9)
        device.slots = slots
        try:
            for _ in range(3):
                check(tensors, _device.load(device, tensors))
        except BaseException as error:
            wrong.append(error)
    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert slots.count == len(slots._free) <= 3


# ── load_file and its like ──

@pytest.fixture
def fake(monkeypatch):
    made = []

    def device_of(device):
        assert device.type == "cuda"
        made.append(FakeDevice(len(made)))
        return made[-1]
    monkeypatch.setattr(_device, "device_of", device_of)
    return made


def test_load_file(path, fake):
    plain = load_file(path)
    found = load_file(path, device="cuda")
    assert list(found) == list(plain)
    assert all(torch.equal(found[name], plain[name]) for name in plain)
    assert len(fake) == 1 and fake[0].calls["finish"] == 1
    some = load_file(path, device="cuda:0", names=["t1[0]", "t3", "t10"])
    assert set(some) == {"t3", "t10"}
    small = [name for name, one in plain.items() if 0 < one.nbytes < SHARE]
    assert len({found[name].untyped_storage().data_ptr() for name in small}) == 1
    apart = load_file(path, device="cuda", pack=False)
    assert all(one.untyped_storage().nbytes() == one.nbytes for one in apart.values())


def test_load_file_converts_in_parts(tmp_path, fake, monkeypatch):
    from libsafetensors import _arrays
    monkeypatch.setattr(_arrays, "_CONVERTED", 3 << 15)
    tensors = {"f%d" % i: torch.randn(1 << 13) for i in range(8)}
    tensors["i"] = torch.arange(5)
    save_file(tensors, tmp_path / "m")
    seen = []
    found = load_file(tmp_path / "m", device="cuda", dtype="F16",
                      progress=lambda *numbers: seen.append(numbers))
    assert len(fake) == 3 and found["i"].dtype is torch.int64
    total = (8 << 15) + 40
    assert seen == sorted(seen) and seen[-1] == (total, total)
    for name in tensors:
        assert torch.equal(found[name], tensors[name].half() if name != "i" else tensors[name])


def test_one_tensor(path, fake):
    plain = load_file(path)
    with libsafetensors.safe_open(path, "pt", device="cuda") as f:
        for name in plain:
            assert torch.equal(f.get_tensor(name), plain[name])
        assert torch.equal(f.get_slice("t10")[5:9 * SHARE:3], plain["t10"][5:9 * SHARE:3])
        assert torch.equal(f.get_slice("t5")[100:], plain["t5"][100:])
        everything = f.get_tensors()
    assert all(torch.equal(everything[name], plain[name]) for name in plain)
    for device in fake:
        assert not device.pending and device.slots.count == len(device.slots._free)


def test_a_small_tensor_whose_device_fails(path):
    tensor = tensors_of(path)[0]
    for name in ("slot", "order", "copy", "finish", "drain"):
        device = FakeDevice(0, (name, 1))
        with pytest.raises(Failure):
            _device.load_small(device, tensor)
        assert name == "drain" or not device.pending
        assert device.slots.count == len(device.slots._free) == (name not in ("slot", "drain"))
        device.fail = None
        check([tensor], [_device.load_small(device, tensor)])


def test_sources_that_threads_cannot_read(path, fake):
    import io
    found = libsafetensors.open(io.BytesIO(path.read_bytes()))
    assert not _core.is_local(found["t0"])
    with pytest.raises((RuntimeError, AssertionError)):
        # What is larger than a slot goes by Tensor.to, which no fake plays.
        found["t10"].torch(device="cuda")
    assert torch.equal(found["t0"].torch(device="cuda"), load_file(path)["t0"])


def test_meta(path):
    found = load_file(path, device="meta")
    plain = load_file(path)
    assert {name: (one.shape, one.dtype) for name, one in found.items()} \
        == {name: (one.shape, one.dtype) for name, one in plain.items()}
    assert all(one.is_meta for one in found.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_child_of_fork_frees_nothing_of_its_parent(path):
    """A driver must not be asked in a child. It has no slots, and its own lock."""
    device = FakeDevice()
    tensors = tensors_of(path)
    _device.load(device, tensors)
    kept = device.slots.count
    with device.slots._lock:
        child = os.fork()
        if not child:
            slots = device.slots
            right = slots.count == 0 and not slots._free and len(slots._lost) == kept > 0
            right = right and slots.release() == 0
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0 and device.slots.count == kept


def test_release_pinned():
    from libsafetensors.torch import release_pinned
    release_pinned()
    assert release_pinned() == 0
    _device._PINNED.give([_device._PINNED.take(True)])
    assert release_pinned() == SLOT
