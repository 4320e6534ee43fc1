"""Slices against numpy's own indexing."""
import struct

import pytest
from alarms import alarm
from hypothesis import given
from hypothesis import strategies as st
from reading import BITS, WAYS, WHOLE, aligned, filling, opened, pack

from libsafetensors import SafetensorError, _core

np = pytest.importorskip("numpy")

# dtypes for which a buffer has a format
LETTERS = {"BOOL", "U8", "I8", "U16", "I16", "F16", "U32", "I32", "F32", "U64", "I64", "F64", "C64"}

SIZES = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}


@st.composite
def index_of(draw, shape):
    """An index expression that numpy takes for this shape."""
    count = draw(st.integers(0, len(shape)))
    parts = []
    for size in shape[:count]:
        if size and draw(st.booleans()):
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            bound = st.none() | st.integers(-size - 3, size + 3)
            step = st.none() | st.integers(-4, 4).filter(bool)
            parts.append(slice(draw(bound), draw(bound), draw(step)))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, count)), Ellipsis)
        # what follows the ellipsis applies to the last dimensions
        behind = parts[parts.index(Ellipsis) + 1:]
        for part, size in zip(behind, shape[len(shape) - len(behind):]):
            if isinstance(part, int) and not -size <= part < size:
                return tuple(p for p in parts if p is not part)[:0]
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(WHOLE))
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    first = draw(index_of(shape))
    after = np.empty(shape, "u1")[first].shape
    return dtype, shape, first, draw(index_of(after)), draw(st.integers(0, 7))


def as_numpy(raw, shape, index):
    size = len(raw) // max(int(np.prod(shape)), 1) or 1
    return np.frombuffer(raw, SIZES[size]).reshape(shape)[index]


def check(file, data, name, raw, shape, index, again):
    want = as_numpy(raw, shape, index)
    tensor = file[name][index]
    if again is not None:
        want, tensor = want[again], tensor[again]
    assert tensor.shape == want.shape and tensor.size == want.size
    assert tensor.nbytes == want.nbytes
    assert tensor.tobytes() == want.tobytes()
    assert bytes(tensor) == want.tobytes()
    if tensor.dtype in LETTERS:
        assert memoryview(tensor).tobytes() == want.tobytes()
    else:
        with pytest.raises(BufferError, match=tensor.dtype):
            memoryview(tensor)
    assert b"".join(data[a:b] for a, b in tensor.byte_ranges()) == want.tobytes()
    ranges = tensor.byte_ranges()
    assert all(a < b for a, b in ranges)
    assert all(before[1] != after[0] for before, after in zip(ranges, ranges[1:]))
    if tensor.dtype in ("U8", "U16", "U32", "U64", "I64", "F32", "C64"):
        assert tensor.numpy().tobytes() == want.tobytes()
        assert tensor.numpy().shape == want.shape
        if tensor.dtype not in ("U16", "U32", "U64"):
            assert np.from_dlpack(tensor).tobytes() == want.tobytes()


@pytest.mark.parametrize("way", WAYS)
@given(case=cases())
@pytest.mark.few(6)
def test_as_numpy(tmp_path_factory, way, case):
    dtype, shape, index, again, spaces = case
    raw = filling(dtype, int(np.prod(shape)), 5)
    data = pack({"before": ("U8", (8,), bytes(8)), "x": (dtype, shape, raw)}, spaces=spaces)
    path = tmp_path_factory.getbasetemp() / "slices.safetensors"
    path.write_bytes(data)
    with opened(way, str(path), data) as file:
        check(file, data, "x", raw, shape, index, None)
        check(file, data, "x", raw, shape, index, again)


@given(case=cases())
def test_torch_as_numpy(case):
    torch = pytest.importorskip("torch")
    _, shape, index, again, spaces = case
    raw = filling("I32", int(np.prod(shape)), 5)
    data = aligned({"x": ("I32", shape, raw)})
    for mode in ("auto", "map"):
        tensor = _core.open(data, mode=mode)["x"][index][again].torch()
        want = np.frombuffer(raw, "<i4").reshape(shape)[index][again]
        assert tensor.dtype is torch.int32 and tuple(tensor.shape) == want.shape
        assert np.array_equal(tensor.numpy(), want)


def test_mapped_slices_share_memory(tmp_path):
    data = aligned({"x": ("I32", (6, 8), filling("I32", 48))})
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    file = _core.open(path, mode="cow")
    whole = file["x"].numpy()
    for index in (np.s_[1:3], np.s_[::-2, 3], np.s_[..., ::-1], np.s_[2]):
        part = file["x"][index].numpy()
        assert np.shares_memory(part, whole) and np.array_equal(part, whole[index])
        assert part.strides == whole[index].strides
    part[:] = 9
    assert (whole[2] == 9).all()
    torch = pytest.importorskip("torch")
    forward = file["x"][::2, 1].torch()
    assert forward.stride() == (16,) and forward.data_ptr() == whole[0, 1:].ctypes.data
    assert torch.equal(forward, torch.from_numpy(whole[::2, 1].copy()))


@pytest.mark.parametrize("index, error", [
    (4, IndexError), (-5, IndexError), ((0, 0, 0), IndexError), ((..., ...), IndexError),
    ([4], IndexError), ("x", TypeError), (None, TypeError), (True, TypeError), (1.0, TypeError),
    (slice(None, None, 0), ValueError), (slice("a"), TypeError), ((0,) * 80, IndexError),
    (1 << 70, IndexError),
])
def test_refused(index, error):
    file = _core.open(pack({"x": ("U8", (4, 2), bytes(8))}))
    with pytest.raises(error):
        file["x"][index]


def test_huge_bounds_are_clamped():
    file = _core.open(pack({"x": ("U8", (4,), b"abcd")}))
    big = 1 << 100
    assert file["x"][-big:big].tobytes() == b"abcd"
    assert file["x"][big:-big:-1].tobytes() == b"dcba"
    assert file["x"][::big].tobytes() == b"a"
    assert file["x"][::-big].tobytes() == b"d"
    assert file["x"][np.int64(1)].tobytes() == b"b"


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2"])
@pytest.mark.parametrize("way", ["auto", "read", "bytes", "lent"])
def test_small_floats(tmp_path, dtype, way):
    raw = filling(dtype, 4 * 8)
    data = pack({"x": (dtype, (4, 8), raw)})
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    file = opened(way, str(path), data)
    row = 8 * BITS[dtype] // 8
    rows = [raw[i * row:(i + 1) * row] for i in range(4)]
    tensor = file["x"][::-2]
    assert tensor.tobytes() == bytes(tensor) == rows[3] + rows[1]
    assert tensor.shape == (2, 8) and np.frombuffer(tensor, "u1").shape == (2 * row,)
    with pytest.raises(BufferError, match=dtype):
        memoryview(tensor)
    assert file["x"][2, :4].tobytes() == rows[2][:row // 2]
    with pytest.raises(SafetensorError) as caught:
        file["x"][0, :1]
    assert caught.value.code == "slice_partial_byte"
    pytest.importorskip("ml_dtypes")
    want = file["x"].numpy()[::-2]
    assert np.array_equal(tensor.numpy().view("u1"), want.view("u1"))


def test_an_ellipsis_of_no_dimension_beside_a_list():
    values = np.arange(12, dtype="u1").reshape(2, 3, 2)
    tensor = _core.open(pack({"x": ("U8", values.shape, values.tobytes())}))["x"]
    for index in ((0, ..., 1, [1, 0]), ([1, 0], ..., 1, 0), (slice(None), ..., 1, [1]),
                  (slice(None), 0, [1, 1], ...), (..., slice(None), 0, [1])):
        assert tensor[index].numpy().tolist() == values[index].tolist(), index
    for index in ((slice(None), 0, ..., [1, 0]), (slice(None), [1, 0], ..., 0)):
        with pytest.raises(IndexError, match="no slice between an integer and a list"):
            tensor[index]


def test_ranks():
    shape = (1,) * 63 + (2,)
    file = _core.open(pack({"x": ("U8", shape, b"ab")}))
    assert file["x"][(0,) * 63].tobytes() == b"ab"
    assert memoryview(file["x"]).ndim == 64
    shape = (1,) * 100
    file = _core.open(pack({"x": ("U8", shape, b"a")}), level="compat")
    assert file["x"].shape == shape and file["x"].tobytes() == b"a"
    with pytest.raises(IndexError):
        file["x"][0]
    with pytest.raises(BufferError):
        memoryview(file["x"])


def test_empty_dimensions():
    file = _core.open(pack({"x": ("F32", (0, 3), b""), "y": ("F32", (1 << 62, 0, 4), b"")}))
    assert file["x"][::-1].shape == (0, 3) and file["x"][:, 1].shape == (0,)
    assert file["y"][1:, :, 2].shape == ((1 << 62) - 1, 0)
    assert file["y"][::2][5].shape == (0, 4)
    assert file["y"][::2][5].tobytes() == b"" and file["y"][::-2].byte_ranges() == []


# ── Long slices ──

@pytest.mark.parametrize("shape, index", [
    ((9 << 20,), (slice(None, None, -1),)), ((9 << 20,), (slice(5, None, 2),)),
    ((3, 3001, 3001), (slice(None), slice(None), slice(1, None))),
    ((2, 2, 5 << 20), (slice(None, None, -1), 1, slice(None))),
    ((200_000, 100), (slice(None), 3)), ((70, 1 << 18), (slice(None, None, 3), slice(7, 9)))])
@pytest.mark.few(3)
def test_slices_that_are_read_in_pieces(tmp_path, shape, index):
    array = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)
    path = tmp_path / "x"
    _core.save_file(path, [("x", "U32", shape, array, None)], sync=False)
    for mode in ("read", "map", "copy"):
        tensor = _core.open(path, mode=mode)["x"][index]
        assert tensor.tobytes() == np.ascontiguousarray(array[index]).tobytes()


@pytest.mark.parametrize("step, count", [(100, 32 << 20), (5000, 2 << 20)])
def test_a_signal_ends_a_long_slice(tmp_path, step, count):
    size = step * count
    header = b'{"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
    path = tmp_path / "x"
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.truncate(8 + len(header) + size)
    tensor = _core.open(path, mode="read")["x"][::step]
    got = np.full(count, 255, np.uint8)

    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop
    with alarm(handler, 0.05):
        with pytest.raises(Stop):
            tensor.read_into(got)
    assert got[0] == 0 and got[-1] == 255, "it was read to the end"
