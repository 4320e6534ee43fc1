"""Random dictionaries of tensors through the official package and ours, in both directions.

What one writes the other reads as the same; bytes are the same where the official ones are
fixed (one metadata pair at most).
"""
import struct

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import libsafetensors
from libsafetensors import _dtypes

np = pytest.importorskip("numpy")
official = pytest.importorskip("safetensors")
if official.__version__ != "0.8.0" or official.safe_open.__module__ != "builtins":
    pytest.skip("not the official package 0.8.0", allow_module_level=True)

import safetensors.numpy as official_numpy  # noqa: E402

from libsafetensors import numpy as our_numpy  # noqa: E402

NUMPY = ["bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32",
         "uint64", "int64", "float64", "complex64"]
NAMES = st.text(st.characters(codec="utf-8"), max_size=12).filter(lambda n: n != "__metadata__")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
METADATA = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3)
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def arrays(draw, dtypes=NUMPY):
    """An array of any dtype, shape and strides."""
    dtype, shape = np.dtype(draw(st.sampled_from(dtypes))), draw(SHAPES)
    count = int(np.prod(shape, dtype=int))
    raw = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    if dtype == bool:
        raw = bytes(byte & 1 for byte in raw)
    array = np.frombuffer(raw, dtype).reshape(shape)
    view = draw(st.sampled_from(["plain", "plain", "transposed", "fortran", "step", "back", "big"]))
    if view == "transposed":
        array = array.T
    elif view == "fortran":
        array = np.asfortranarray(array)
    elif view == "step" and array.ndim:
        array = array[::2]
    elif view == "back" and array.ndim:
        array = array[..., ::-1]
    elif view == "big":
        array = array.astype(dtype.newbyteorder(">"))
    return array


DICTS = st.dictionaries(NAMES, arrays(), max_size=6)


def plain(array):
    """Packed, as the official package requires; it converts the byte order itself."""
    return np.array(array, order="C")


def assert_same(got, wanted):
    assert got.keys() == wanted.keys()
    for name in got:
        native = wanted[name].astype(wanted[name].dtype.newbyteorder("="))
        assert got[name].dtype == native.dtype and got[name].shape == native.shape, name
        assert got[name].tobytes() == native.tobytes(), name


@given(DICTS, METADATA)
def test_ours_is_read_by_theirs(tmp_path_factory, tensors, metadata):
    data = our_numpy.save(tensors, metadata)
    assert_same(official_numpy.load(data), tensors)
    path = tmp_path_factory.getbasetemp() / "ours.safetensors"
    our_numpy.save_file(tensors, path, metadata, sync=False)
    assert path.read_bytes() == data
    with official.safe_open(path, "np") as f:
        assert f.metadata() == metadata and f.keys() == sorted(tensors)
        assert_same({name: f.get_tensor(name) for name in f.keys()}, tensors)


@given(DICTS, METADATA)
def test_theirs_is_read_by_ours(tmp_path_factory, tensors, metadata):
    if not tensors and metadata is not None and not metadata:
        metadata = None  # The official package writes a file that nobody can read.
    data = official_numpy.save({name: plain(array) for name, array in tensors.items()}, metadata)
    assert_same(our_numpy.load(data), tensors)
    path = tmp_path_factory.getbasetemp() / "theirs.safetensors"
    path.write_bytes(data)
    for backend in ("mmap", "pread"):
        with libsafetensors.safe_open(path, "np", backend=backend) as f, \
                official.safe_open(path, "np") as g:
            assert f.metadata() == g.metadata() == metadata
            assert f.keys() == g.keys()
            # The official order of tensors without bytes is any.
            full = [[name for name in h.offset_keys() if tensors[name].size] for h in (f, g)]
            assert full[0] == full[1]
            assert_same(f.get_tensors(), tensors)
            for name in f.keys():
                mine, theirs = f.get_slice(name), g.get_slice(name)
                assert mine.get_shape() == theirs.get_shape()
                assert mine.get_dtype() == theirs.get_dtype()
    mine, theirs = libsafetensors.deserialize(data), official.deserialize(data)
    assert sorted(mine, key=lambda row: row[0]) == sorted(theirs, key=lambda row: row[0])
    if metadata is None or len(metadata) < 2:
        assert our_numpy.save(tensors, metadata) == data


# Every dtype that TensorSpec knows, as bytes.
@given(st.dictionaries(NAMES, st.tuples(st.sampled_from(sorted(_dtypes.HEADER_NAMES)), SHAPES),
                       max_size=5), st.randoms(use_true_random=False))
def test_every_dtype(rows, random):
    specs, kept = ({}, {}), []
    for name, (dtype, shape) in rows.items():
        bits = libsafetensors.DTYPES[_dtypes.HEADER_NAMES[dtype]][0]
        if bits < 8:
            shape = shape or (1,)
            bits = 8  # float4_e2m1fn_x2: its shape counts bytes.
        count = int(np.prod(shape, dtype=int)) * bits // 8
        memory = np.frombuffer(random.randbytes(count), np.uint8)
        kept.append(memory)
        for package, into in zip((libsafetensors, official), specs):
            into[name] = package.TensorSpec(dtype=dtype, shape=shape, data_ptr=memory.ctypes.data,
                                            data_len=memory.nbytes)
        assert repr(specs[0][name]) == repr(specs[1][name])
    data = libsafetensors.serialize(specs[0])
    assert data == official.serialize(specs[1])
    assert sorted(libsafetensors.deserialize(data), key=lambda row: row[0]) \
        == sorted(official.deserialize(data), key=lambda row: row[0])


# ── Slices ──

@st.composite
def sliced(draw):
    """A shape and an index of integers, slices of a positive step and an ellipsis within it."""
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
    parts = []
    for size in shape[:draw(st.integers(1, len(shape)))]:
        if draw(st.booleans()):
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            start = draw(st.none() | st.integers(0, size - 1))
            stop = draw(st.none() | st.integers((start or 0) + 1, size))
            parts.append(slice(start, stop, draw(st.none() | st.integers(1, 4))))
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return shape, tuple(parts)


@given(sliced())
def test_slices(tmp_path_factory, case):
    shape, index = case
    whole = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    path = tmp_path_factory.getbasetemp() / "slices.safetensors"
    our_numpy.save_file({"a": whole}, path, sync=False)
    for backend in ("mmap", "pread"):
        with libsafetensors.safe_open(path, "np", backend=backend) as f, \
                official.safe_open(path, "np", backend=backend) as g:
            mine, theirs = f.get_slice("a")[index], g.get_slice("a")[index]
        assert mine.shape == theirs.shape == whole[index].shape
        assert mine.tobytes() == theirs.tobytes() == whole[index].tobytes()


# ── torch ──

torch = pytest.importorskip("torch")
import safetensors.torch as official_torch  # noqa: E402

from libsafetensors import torch as our_torch  # noqa: E402


@st.composite
def models(draw):
    """Tensors of torch; some are disjoint parts of one memory."""
    tensors = {}
    for name in draw(st.lists(NAMES, max_size=5, unique=True)):
        dtype, shape = draw(st.sampled_from(list(our_torch._NAMES))), draw(SHAPES)
        if our_torch._NAMES[dtype] == "F4":
            shape = shape or (2,)
        count = int(np.prod(shape, dtype=int)) * dtype.itemsize
        raw = bytearray(draw(st.binary(min_size=count + 8, max_size=count + 8)))
        if dtype is torch.bool:
            raw = bytearray(byte & 1 for byte in raw)
        memory = torch.frombuffer(raw, dtype=torch.uint8)
        tensors[name] = memory[:count].view(dtype).reshape(shape)
        if draw(st.booleans()) and name + "'" not in tensors:
            tensors[name + "'"] = memory[count:]
    return tensors


def torch_bits(tensor):
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.nelement() else b""


def assert_same_torch(got, wanted):
    assert got.keys() == wanted.keys()
    for name in got:
        assert got[name].dtype == wanted[name].dtype and got[name].shape == wanted[name].shape
        assert torch_bits(got[name]) == torch_bits(wanted[name]), name


@given(models(), METADATA)
@settings(max_examples=80)
def test_torch_both_ways(tmp_path_factory, tensors, metadata):
    path = tmp_path_factory.getbasetemp() / "torch.safetensors"
    ours = our_torch.save(tensors, metadata)
    our_torch.save_file(tensors, path, metadata, sync=False)
    assert path.read_bytes() == ours
    assert_same_torch(official_torch.load_file(path), tensors)
    if not tensors and metadata is not None and not metadata:
        return
    theirs = official_torch.save(tensors, metadata)
    if metadata is None or len(metadata) < 2:
        assert ours == theirs
    assert_same_torch(our_torch.load(theirs), tensors)
    path.write_bytes(theirs)
    for backend in ("mmap", "pread"):
        assert_same_torch(our_torch.load_file(path, backend=backend), tensors)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 3)), max_size=6))
def test_shared_tensors_are_found(cuts):
    memory = torch.zeros(30)
    tensors = {"t%d" % i: memory[start:start + length:step] for i, (start, length, step)
               in enumerate(cuts)}
    groups = our_torch._find_shared_tensors(tensors)
    reach = {name: (t.data_ptr(), our_torch._end_ptr(t)) for name, t in tensors.items()}
    for a in tensors:
        for b in tensors:
            touch = max(reach[a][0], reach[b][0]) < min(reach[a][1], reach[b][1])
            together = any({a, b} <= group for group in groups)
            assert not touch or together, (a, b, groups)
    assert sorted(name for group in groups for name in group) == sorted(
        name for name, tensor in tensors.items() if tensor.untyped_storage().data_ptr())


def test_a_file_of_the_official_package_that_nobody_can_read():
    """{} as metadata without tensors: the official package writes it and cannot read it."""
    data = official.serialize({}, {})
    with pytest.raises(official.SafetensorError):
        official.deserialize(data)
    with pytest.raises(libsafetensors.SafetensorError):
        libsafetensors.deserialize(data)
    ours = libsafetensors.serialize({}, {})
    assert struct.unpack("<Q", ours[:8])[0] == len(ours) - 8 and official.deserialize(ours) == []
