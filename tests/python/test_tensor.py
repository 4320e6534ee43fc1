"""Tensors: facts, the buffer protocol, numpy, torch, DLPack; every dtype, every source."""
import hashlib
import io
import pathlib
import struct
import zlib

import pytest
from reading import BITS, NUMPY, WAYS, WHOLE, aligned, filling, one_of_each, opened, pack

from libsafetensors import _core

np = pytest.importorskip("numpy")

TENSORS = {**one_of_each(),
           **{name + ".empty": (name, (0, 4), b"") for name in BITS},
           **{name + ".scalar": (name, (), filling(name, 1, 3)) for name in WHOLE}}
SPACES = [None, 1]
ML = {"BF16": "bfloat16", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
      "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
      "F8_E5M2FNUZ": "float8_e5m2fnuz", "F4": "float4_e2m1fn", "F6_E2M3": "float6_e2m3fn",
      "F6_E3M2": "float6_e3m2fn"}
FORMATS = {"BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "U16": "H", "F16": "e", "I32": "i",
           "U32": "I", "F32": "f", "C64": "Zf", "F64": "d", "I64": "q", "U64": "Q"}


def build(tmp_path, spaces):
    data = aligned(TENSORS) if spaces is None else pack(TENSORS, spaces=spaces)
    path = tmp_path / "all.safetensors"
    path.write_bytes(data)
    return str(path), data


@pytest.mark.parametrize("spaces", SPACES)
@pytest.mark.parametrize("way", WAYS)
def test_buffer(tmp_path, way, spaces):
    file = opened(way, *build(tmp_path, spaces))
    for name, (dtype, shape, raw) in TENSORS.items():
        tensor = file[name]
        lent = way in ("map", "lent", "mmap") and tensor.aligned
        assert bytes(tensor) == raw
        if dtype in FORMATS:
            view = memoryview(tensor)
            assert view.tobytes() == raw and view.nbytes == len(raw)
            assert view.shape == shape and view.itemsize == BITS[dtype] // 8
            assert view.format == FORMATS[dtype] and view.c_contiguous
            assert view.readonly == lent
        else:
            with pytest.raises(BufferError, match="no format for %s: " % dtype):
                memoryview(tensor)
        plain = np.frombuffer(tensor, np.uint8)
        assert plain.tobytes() == raw and plain.flags.writeable == (not lent)
        into = bytearray(len(raw))
        tensor.read_into(into)
        assert into == raw


def test_facts():
    file = _core.open(pack(TENSORS))
    tensor = file["F32"]
    assert (tensor.ndim, tensor.size, tensor.nbytes, len(tensor)) == (2, 24, 96, 4)
    assert tensor.shard == 0 and repr(tensor) == "<Tensor 'F32' F32 (4, 6)>"
    assert tensor.byte_ranges() == [(tensor.offset, tensor.offset + 96)]
    assert file["F32.empty"].byte_ranges() == [] and file["F32.empty"].size == 0
    assert file["F6_E2M3"].nbytes == 18 and file["F4"].nbytes == 12
    with pytest.raises(TypeError):
        len(file["F32.scalar"])


@pytest.mark.parametrize("spaces", range(9))
def test_aligned(spaces):
    tensors = {"a": ("F64", (1,), bytes(8)), "b": ("C64", (1,), bytes(8)), "c": ("U8", (1,), b"a")}
    file = _core.open(pack(tensors, spaces=spaces), mode="map")
    start = file["a"].offset
    assert file["a"].aligned == (start % 8 == 0)
    assert file["b"].aligned == (start % 4 == 0)
    assert file["c"].aligned
    for name in tensors:
        assert file[name].numpy().flags.aligned


def test_a_copy_is_made_once():
    file = _core.open(pack(TENSORS))
    tensor = file["F32"]
    first, second = tensor.numpy(), np.asarray(memoryview(tensor))
    first[0, 0] = 5
    assert second[0, 0] == 5
    assert file["F32"].numpy().tobytes() == TENSORS["F32"][2]


@pytest.mark.parametrize("spaces", SPACES)
@pytest.mark.parametrize("way", WAYS)
def test_numpy(tmp_path, way, spaces):
    file = opened(way, *build(tmp_path, spaces))
    names = [name for name, (dtype, _, _) in TENSORS.items() if dtype in NUMPY]
    many = file.numpy(names)
    assert list(many) == names
    for name in names:
        dtype, shape, raw = TENSORS[name]
        for array in (many[name], file[name].numpy(), file[name].__array__()):
            assert type(array) is np.ndarray and array.dtype == np.dtype(NUMPY[dtype])
            assert array.shape == shape and array.tobytes() == raw
            assert array.flags.aligned and array.flags.c_contiguous


@pytest.mark.parametrize("way", ["auto", "read", "bytes"])
def test_numpy_with_ml_dtypes(tmp_path, way):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    file = opened(way, *build(tmp_path, 3))
    many = file.numpy()
    assert list(many) == list(TENSORS)
    for name, (dtype, shape, raw) in TENSORS.items():
        array, alone = many[name], file[name].numpy()
        assert array.shape == alone.shape == shape and array.dtype == alone.dtype
        if dtype in ML:
            assert array.dtype == np.dtype(getattr(ml_dtypes, ML[dtype]))
        assert array.tobytes() == alone.tobytes()
        if BITS[dtype] >= 8:
            assert array.tobytes() == raw
            continue
        bits = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
        bits = bits.reshape(-1, BITS[dtype])
        want = (bits * (1 << np.arange(BITS[dtype]))).sum(1).astype(np.uint8)
        assert np.array_equal(array.view(np.uint8).reshape(-1), want)


def test_values_of_small_floats():
    pytest.importorskip("ml_dtypes")
    # F4: 0.5 in the low nibble, -6 in the high one
    file = _core.open(pack({"a": ("F4", (2,), b"\xf1")}))
    assert file["a"].numpy().astype(np.float32).tolist() == [0.5, -6]


def test_numpy_without_ml_dtypes(monkeypatch):
    import sys
    import subprocess
    script = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "from libsafetensors import _core\n"
        "import numpy\n"
        "file = _core.open(bytes.fromhex(sys.argv[1]))\n"
        "for make in (file['BF16'].numpy, file.numpy):\n"
        "    try: make()\n"
        "    except TypeError as error: assert 'ml_dtypes' in str(error) and 'BF16' in str(error)\n"
        "    else: raise SystemExit('made')\n"
        "for take in (numpy.asarray, numpy.mean, lambda one: numpy.allclose(one, one)):\n"
        "    try: take(file['BF16'])\n"
        "    except TypeError as error: assert 'ml_dtypes' in str(error) and 'BF16' in str(error)\n"
        "    else: raise SystemExit('taken for integers')\n"
        "print('fine')\n")
    import os
    data = pack({"BF16": TENSORS["BF16"]})
    done = subprocess.run([sys.executable, "-c", script, data.hex()], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout == "fine\n", done.stderr


def test_array_protocol():
    file = _core.open(pack(TENSORS))
    tensor = file["I32"]
    assert np.asarray(tensor).dtype == np.int32
    assert np.array(tensor, dtype=np.float64).dtype == np.float64
    assert tensor.__array__(np.dtype("f8")).dtype == np.float64
    assert tensor.__array__(copy=True) is not None
    shared, copied = tensor.__array__(), tensor.__array__(copy=True)
    shared[0, 0] += 1
    assert copied[0, 0] != shared[0, 0]
    assert tensor.__array__(np.dtype("i4"), copy=False).dtype == np.int32
    with pytest.raises(ValueError):
        tensor.__array__(np.dtype("f8"), copy=False)


# ── What takes a tensor for its values, or for its bytes ──

def as_numpy(tensor):
    return tensor.numpy().astype(np.complex64 if tensor.dtype == "C64" else np.float64)


def by_jax(tensor):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return np.asarray(jax.numpy.asarray(tensor))


def by_torch(tensor):
    torch = pytest.importorskip("torch")
    found = torch.as_tensor(tensor)
    if "float4" in str(found.dtype):
        raise TypeError("two elements in one of torch")
    kind = torch.complex64 if found.is_complex() else torch.float64
    return found.to(kind).numpy()


VALUES = {"asarray": np.asarray, "array": np.array, "stack": lambda one: np.stack([one])[0],
          "copy": np.copy, "join": lambda one: np.concatenate([one]),
          "astype": lambda one: np.asarray(one, np.complex64 if one.dtype == "C64" else np.float64),
          "memoryview": memoryview, "jax": by_jax, "torch": by_torch,
          "dlpack": np.from_dlpack,
          "pandas": lambda one: pytest.importorskip("pandas").DataFrame(np.asarray(one)).to_numpy()}
BYTES = {"bytes": bytes, "hashlib": lambda one: hashlib.sha256(one).digest(),
         "join": lambda one: b"".join([one]), "frombuffer": lambda one: np.frombuffer(one, "u1"),
         "write": lambda one: io.BytesIO().write(one), "crc": zlib.crc32,
         "struct": lambda one: struct.unpack_from("<2B", one)}
REFUSALS = (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError)


def ones(dtype, bits):
    """Bytes of (2, 4) ones and twos, each value as the dtype writes it."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(NUMPY[dtype] if dtype in NUMPY else getattr(ml_dtypes, ML[dtype]))
    array = np.array([1, 2, 2, 1, 1, 1, 2, 2]).astype(kind)
    if bits >= 8:
        return array.tobytes()
    each = np.unpackbits(array.view(np.uint8)[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(each.reshape(-1), bitorder="little").tobytes()


@pytest.mark.parametrize("cut", [None, np.s_[1:], np.s_[:, ::2]], ids=str)
def test_values_are_right_or_refused(cut):
    file = _core.open(pack({name: (name, (2, 4), ones(name, bits))
                            for name, bits in BITS.items()}), mode="map")
    taken = set()
    for name, bits in BITS.items():
        if bits < 8 and isinstance(cut, tuple):
            continue  # no run of whole bytes
        tensor = file[name] if cut is None else file[name][cut]
        want, raw = as_numpy(tensor), tensor.tobytes()
        for way, take in VALUES.items():
            try:
                found = np.asarray(take(tensor))
            except REFUSALS:
                continue
            taken.add((way, name))
            assert found.shape == want.shape, (way, name)
            np.testing.assert_array_equal(found.astype(want.dtype), want, "%s %s" % (way, name))
        for way, take in BYTES.items():
            found, wanted = take(tensor), take(raw)
            same = np.array_equal(found, wanted) if way == "frombuffer" else found == wanted
            assert same, (way, name)
    assert {("asarray", "BF16"), ("asarray", "F8_E4M3"), ("memoryview", "F32")} <= taken
    assert not {("memoryview", "BF16"), ("memoryview", "F8_E8M0")} & taken


def test_means_of_bfloat16():
    pytest.importorskip("ml_dtypes")
    tensor = _core.open(pack({"w": ("BF16", (2,), b"\xc0\x3f\x00\x40")}))["w"]
    assert np.mean(tensor) == 1.75 and np.allclose(tensor, [1.5, 2]) and np.max(tensor) == 2
    with pytest.raises(BufferError):
        bytearray(tensor)


def test_empty_files_and_names():
    file = _core.open(pack({}))
    assert file.numpy() == {} and file.numpy([]) == {} and len(file) == 0
    file = _core.open(pack(TENSORS))
    with pytest.raises(TypeError):
        file.numpy([3])
    with pytest.raises(TypeError):
        file.numpy(3)
    assert list(file.numpy(iter(["F32", "I8", "F32"]))) == ["F32", "I8"]


# ── torch ──

def torch_names(torch):
    return {"BOOL": torch.bool, "F4": torch.float4_e2m1fn_x2, "U8": torch.uint8,
            "I8": torch.int8, "F8_E5M2": torch.float8_e5m2, "F8_E4M3": torch.float8_e4m3fn,
            "F8_E8M0": torch.float8_e8m0fnu, "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
            "F8_E5M2FNUZ": torch.float8_e5m2fnuz, "I16": torch.int16, "U16": torch.uint16,
            "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32,
            "U32": torch.uint32, "F32": torch.float32, "C64": torch.complex64,
            "F64": torch.float64, "I64": torch.int64, "U64": torch.uint64}


def raw_of(torch, tensor):
    """Bytes of a torch tensor of any dtype."""
    return bytes(tensor.contiguous().untyped_storage().tolist()) if tensor.numel() else b""


@pytest.mark.parametrize("spaces", SPACES)
@pytest.mark.parametrize("way", WAYS)
def test_torch(tmp_path, way, spaces):
    torch = pytest.importorskip("torch")
    known = torch_names(torch)
    file = opened(way, *build(tmp_path, spaces))
    names = [name for name, (dtype, _, _) in TENSORS.items() if dtype in known]
    many = file.torch(names)
    assert list(many) == names
    for name in names:
        dtype, shape, raw = TENSORS[name]
        if dtype == "F4":
            shape = (shape[0], shape[1] // 2)
        for tensor in (many[name], file[name].torch()):
            assert type(tensor) is torch.Tensor and tensor.dtype == known[dtype]
            assert tuple(tensor.shape) == shape and tensor.is_contiguous()
            assert tensor.storage_offset() == 0
            assert tensor.untyped_storage().nbytes() == len(raw)
            assert raw_of(torch, tensor) == raw


def test_torch_storages_are_apart(tmp_path):
    torch = pytest.importorskip("torch")
    path, _ = build(tmp_path, None)
    tensors = _core.open(path).torch(["F32", "I32"])
    first, second = (t.untyped_storage() for t in tensors.values())
    assert first.data_ptr() != second.data_ptr()
    target = tmp_path / "one.pt"
    torch.save(tensors["F32"], target)
    assert target.stat().st_size < 4000
    tensors["F32"].fill_(3)
    assert pathlib.Path(path).read_bytes() == aligned(TENSORS)


@pytest.mark.parametrize("way", ["lent", "map", "mmap"])
def test_torch_never_writes_to_what_is_read_only(tmp_path, way):
    torch = pytest.importorskip("torch")
    path, data = build(tmp_path, None)
    file = opened(way, path, data)
    for tensor in (file.torch(["F32"])["F32"], file["F32"].torch(), torch.from_dlpack(file["F32"])):
        tensor.fill_(1)
    assert file["F32"].tobytes() == TENSORS["F32"][2]


def test_torch_has_no_f6():
    pytest.importorskip("torch")
    file = _core.open(pack({"a": ("F6_E2M3", (4,), bytes(3))}))
    with pytest.raises(TypeError, match="F6_E2M3"):
        file.torch()
    odd = _core.open(pack({"a": ("F4", (2, 3), bytes(3))}))
    with pytest.raises(BufferError, match="pairs"):
        odd["a"].torch()


def test_progress():
    pytest.importorskip("torch")
    file = _core.open(pack({"a": ("U8", (1 << 20,), bytes(1 << 20))}))
    seen = []
    file.torch(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1 << 20, 1 << 20)

    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop
    with pytest.raises(Stop):
        file.torch(progress=stop)
    with pytest.raises(TypeError):
        file.torch(progress=3)


# ── DLPack ──

def test_dlpack_numpy(tmp_path):
    path, data = build(tmp_path, None)
    for way in ("auto", "read", "map"):
        file = opened(way, path, data)
        for name in ("F32", "C64", "I64", "U8", "BOOL", "F16", "F32.empty", "F32.scalar"):
            array = np.from_dlpack(file[name])
            assert array.dtype == np.dtype(NUMPY[TENSORS[name][0]])
            assert array.tobytes() == TENSORS[name][2]


def test_dlpack_arguments(tmp_path):
    path, data = build(tmp_path, None)
    tensor = _core.open(path, mode="cow")["F32"]
    assert tensor.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(tensor.__dlpack__())
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    assert tensor.__dlpack__(stream=-1, dl_device=(1, 0), copy=False)
    for bad in ({"stream": 1}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**bad)
    with pytest.raises(BufferError):
        _core.open(path, mode="read")["F32"].__dlpack__(copy=False)
    with pytest.raises(BufferError):
        tensor[::-1].__dlpack__(copy=False)
    copied = np.from_dlpack(tensor, copy=True)
    copied[:] = 0
    assert tensor.tobytes() == TENSORS["F32"][2]


def test_dlpack_of_read_only_memory(tmp_path):
    tensor = _core.open(build(tmp_path, None)[0], mode="map")["F32"]
    array = np.from_dlpack(tensor)
    if array.flags.writeable:
        array[:] = 0
    assert tensor.tobytes() == TENSORS["F32"][2]
    lent = tensor.__dlpack__(max_version=(1, 0), copy=False)
    assert '"dltensor_versioned"' in repr(lent)
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)


def test_buffers_of_nothing_in_dimensions_of_any_length():
    """Their strides would be more than 2^63; UBSan."""
    header = b'{"x":{"dtype":"F32","shape":[0,1099511627776,1099511627776],"data_offsets":[0,0]}}'
    tensor = _core.open(struct.pack("<Q", len(header)) + header)["x"]
    for one in (tensor, tensor[:], tensor[:, ::2, 1]):
        view = memoryview(one)
        assert view.shape == tuple(one.shape) and view.nbytes == 0 and view.tobytes() == b""


def test_buffer_requests(tmp_path):
    import ctypes
    path, data = build(tmp_path, None)
    tensor = _core.open(path, mode="cow")["F32"]
    assert ctypes.c_float.from_buffer(tensor).value == struct.unpack("<f", tensor.tobytes()[:4])[0]
    backwards = tensor[::-1]
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_float.from_buffer(backwards)  # would write to a copy
    import hashlib
    assert hashlib.sha256(backwards).digest() == hashlib.sha256(backwards.tobytes()).digest()
    assert memoryview(backwards).strides == (-24, 4)
    frozen = _core.open(path, mode="map")["F32"]
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_float.from_buffer(frozen)
    for size in (95, 97):
        with pytest.raises(ValueError):
            tensor.read_into(bytearray(size))
    with pytest.raises(BufferError):
        tensor.read_into(b"\0" * 96)
