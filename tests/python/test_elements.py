"""Buffers of elements: written, read into and cast only as what they are."""
import array
import ctypes
import io

import numpy as np
import pytest

from libsafetensors import _core
from reading import pack

ml_dtypes = pytest.importorskip("ml_dtypes")

# dtype -> buffers of eight elements that are right. Plain bytes are right for all.
RIGHT = {
    "BOOL": [np.zeros(8, "?")],
    "U8": [np.zeros(8, "u1"), array.array("B", bytes(8))],
    "I8": [np.zeros(8, "i1"), array.array("b", bytes(8))],
    "I16": [np.zeros(8, "<i2"), (ctypes.c_int16 * 8)()],
    "U16": [np.zeros(8, "<u2"), memoryview(bytes(16)).cast("H")],
    "F16": [np.zeros(8, "<f2")],
    "BF16": [np.zeros(8, ml_dtypes.bfloat16), np.zeros(8, "<u2"), np.zeros(8, "<i2")],
    "I32": [np.zeros(8, "<i4"), (ctypes.c_int32.__ctype_le__ * 8)()],
    "U32": [np.zeros(8, "<u4")],
    "F32": [np.zeros(8, "<f4"), array.array("f", [0] * 8), np.zeros((2, 4), "<f4")],
    "C64": [np.zeros(8, "<c8")],
    "F64": [np.zeros(8, "<f8")],
    "I64": [np.zeros(8, "<i8"), (ctypes.c_longlong * 8)(), memoryview(bytes(64)).cast("n")],
    "U64": [np.zeros(8, "<u8"), memoryview(bytes(64)).cast("N")],
    "F8_E4M3": [np.zeros(8, ml_dtypes.float8_e4m3fn)],
    "F8_E5M2": [np.zeros(8, ml_dtypes.float8_e5m2)],
    "F8_E8M0": [np.zeros(8, ml_dtypes.float8_e8m0fnu)],
    "F8_E4M3FNUZ": [np.zeros(8, ml_dtypes.float8_e4m3fnuz)],
    "F8_E5M2FNUZ": [np.zeros(8, ml_dtypes.float8_e5m2fnuz)],
    "F4": [],
    "F6_E2M3": [],
    "F6_E3M2": [],
}
OTHER = [np.zeros(8, ">f4"), np.zeros(8, ">i2"), np.zeros(8, ">c8"), np.zeros(8, "M8[s]"),
         np.zeros(8, "V2"), np.zeros(8, [("x", "<f4")]), np.zeros(8, np.longdouble),
         np.zeros(8, "<c16"), np.zeros(8, "U1"), np.zeros(8, ml_dtypes.float4_e2m1fn),
         np.zeros(8, ml_dtypes.int4), (ctypes.c_float.__ctype_be__ * 8)()]
BITS = {name: bits for name, (bits, _) in _core.DTYPES.items()}


def said(buffer):
    return getattr(buffer, "dtype", None) or memoryview(buffer).format


def size_of(dtype):
    return BITS[dtype]  # bytes of eight elements


def plain(size):
    return [bytes(size), bytearray(size), memoryview(bytes(size)), np.zeros(size, "u1"),
            np.zeros(size, "i1"), memoryview(bytes(size)).cast("c"), (ctypes.c_char * size)()]


def write(dtype, buffer):
    out = io.BytesIO()
    with _core.Writer(out, [("w", dtype, [8])]) as writer:
        writer.write("w", buffer)


def add_and_write(dtype, buffer):
    with _core.Writer(io.BytesIO()) as writer:
        writer.add("w", dtype, [8])
        writer.write("w", buffer)


def save(dtype, buffer):
    _core.save_bytes([("w", dtype, [8], buffer, None)])


def save_strided(dtype, buffer):
    _core.save_bytes([("w", dtype, [8], buffer, [BITS[dtype] // 8])])


def read_into(dtype, buffer):
    _core.open(pack({"w": (dtype, [8], bytes(size_of(dtype)))}))["w"].read_into(buffer)


def cast(dtype, buffer):
    if _core.DTYPES[dtype][1] == "float":
        _core.cast(buffer, dtype, dtype)


USES = [write, add_and_write, save, read_into, cast]


def test_every_dtype_is_here():
    assert set(RIGHT) == set(_core.DTYPES)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dtype", RIGHT)
def test_plain_bytes_and_the_dtype_itself(use, dtype):
    for buffer in plain(size_of(dtype)) + RIGHT[dtype]:
        if use is read_into and memoryview(bytearray(1)).readonly != _readonly(buffer):
            continue
        use(dtype, buffer)


def _readonly(buffer):
    if isinstance(buffer, np.ndarray):
        return not buffer.flags.writeable
    return memoryview(buffer).readonly


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dtype", RIGHT)
def test_other_elements_are_refused(use, dtype):
    if use is cast and _core.DTYPES[dtype][1] != "float":
        return
    others = [buffer for other in RIGHT for buffer in RIGHT[other]
              if other != dtype and other not in ("U8", "I8")
              and not any(said(buffer) == said(right) for right in RIGHT[dtype])]
    for buffer in others + OTHER:
        if use is read_into and _readonly(buffer):
            continue
        with pytest.raises(ValueError, match="elements of %s or plain bytes" % dtype) as caught:
            use(dtype, buffer)
        assert caught.value.code == "bad_argument"
        if use not in (read_into, cast):
            assert caught.value.tensor == "w"


def test_strided_buffers_too():
    save_strided("F32", np.zeros((8, 2), "<f4")[:, 0])
    with pytest.raises(ValueError, match="elements of F32"):
        save_strided("F32", np.zeros(8, "<i4"))


def test_the_cases_that_were_written_as_bytes():
    half = np.ones(4, np.float16)
    for dtype, data in (("BF16", half), ("F32", np.ones(4, ">f4")), ("F16", half.astype("u2"))):
        with pytest.raises(ValueError) as caught:
            write_four(dtype, data)
        assert str(data.dtype.char) in str(caught.value) or ">f" in str(caught.value)


def write_four(dtype, data):
    with _core.Writer(io.BytesIO(), [("w", dtype, [4])]) as writer:
        writer.write("w", data)


def test_a_tensor_of_ours_is_its_dtype():
    file = _core.open(pack({"b": ("BF16", [4], bytes(8)), "h": ("U16", [4], bytes(8)),
                            "f": ("F8_E4M3", [4], bytes(4))}))
    write_four("BF16", file["b"])
    write_four("F8_E4M3", file["f"])
    for dtype, name in (("U16", "b"), ("BF16", "h"), ("F8_E5M2", "f"), ("U8", "f")):
        with pytest.raises(ValueError, match="found elements of"):
            write_four(dtype, file[name])


def test_a_refused_piece_leaves_the_writer_as_it_was(tmp_path):
    with _core.Writer(tmp_path / "x", [("w", "F32", [2])]) as writer:
        writer.write("w", np.ones(1, "<f4"))
        with pytest.raises(ValueError):
            writer.write("w", np.ones(1, ">f4"))
        writer.write("w", np.ones(1, "<f4"))
    assert _core.open(tmp_path / "x")["w"].numpy().tolist() == [1, 1]
