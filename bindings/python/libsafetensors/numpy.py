"""Tensors as numpy arrays: save, save_file, load, load_file of the official package.

bfloat16 and the 4 to 8-bit floats are those of ml_dtypes, which must be installed. Arrays of any
byte order and strides are written packed and little-endian; the caller's dict is not changed.
"""
from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._dtypes import HEADER_NAMES, ML_NAMES
from ._files import header_name, open_bytes, open_file, replaced, write_bytes, write_file
from ._types import Backend, BytesOptions, Progress, SaveOptions, Source, Target, Unpack

if TYPE_CHECKING:
    from ._official import TensorSpec as TensorSpec
    from ._official import deserialize as deserialize
    from ._official import safe_open as safe_open
    from ._official import serialize as serialize
    from ._official import serialize_file as serialize_file

__all__ = ["save", "save_file", "load", "load_file"]


def __getattr__(name: str) -> Any:
    from ._official import official_name
    return official_name(__name__, name)

_TYPES = {header: bool if header == "BOOL" else getattr(np, name)
          for name, header in HEADER_NAMES.items() if header not in ML_NAMES}

# numpy has one element of these per byte, a file packs them: bits of an element.
_PACKED = {"float4_e2m1fn": (4, "F4"), "float6_e2m3fn": (6, "F6_E2M3"),
           "float6_e3m2fn": (6, "F6_E3M2")}
# Cached facts of a dtype: name in a header, bits if it is one of _PACKED (else 0), the
# little-endian dtype if that differs, and whether numpy exports its memory as a buffer.
_KNOWN: dict[Any, tuple[str, int, Any, bool]] = {}


def _facts(dtype: np.dtype[Any]) -> tuple[str, int, Any, bool]:
    """Computes the facts. SafetensorError if the format has no such dtype."""
    bits, header = _PACKED.get(dtype.name, (0, ""))
    big = dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big")
    facts = (header or header_name(dtype.name), bits, dtype.newbyteorder("<") if big else None,
             dtype.kind in "biufc" and dtype.isbuiltin == 1)
    _KNOWN[dtype] = facts
    return facts


def _pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Packs elements of one byte each into consecutive bits, lowest first."""
    each = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.packbits(np.unpackbits(each[:, None], axis=1, count=bits, bitorder="little")
                       .reshape(-1), bitorder="little")


def check_mask(name: str, array: Any, what: str = "tensor %r") -> None:
    """ValueError for an array with masked elements, whose values are not meant."""
    if isinstance(array, np.ndarray) and type(array) is not np.ndarray and np.ma.is_masked(array):
        raise ValueError("%s: expected an array without masked elements, found %d of them: "
                         "filled() gives them values"
                         % (what % name, np.ma.getmaskarray(array).sum()))


def _row(name: str, array: Any) -> tuple[Any, ...]:
    """A row for _core, with the owner of its memory as the last item."""
    if not isinstance(array, np.ndarray):
        if not isinstance(array, np.generic):
            raise TypeError("Key `%s` is invalid, expected numpy.ndarray but received %s"
                            % (name, type(array)))
        array = np.asarray(array)
    check_mask(name, array)
    dtype, bits, little, exports = _KNOWN.get(array.dtype) or _facts(array.dtype)
    shape = array.shape
    if bits:
        array = _pack(array, bits)
    elif little:
        array = array.astype(little)
    contiguous = array.flags.c_contiguous
    if exports and contiguous:
        return name, dtype, shape, array, None, array
    # Strides of arrays that are not packed; they may be negative or zero.
    strides = None if contiguous else array.strides
    data = array.__array_interface__["data"][0], array.nbytes
    return name, dtype, shape, data, strides, array


def _rows(tensors: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Rows for _core, and the objects that own their memory."""
    full = [_row(name, array) for name, array in tensors.items()]
    return [row[:5] for row in full], [row[5] for row in full]


def _is_little_endian(tensor: np.ndarray[Any, Any]) -> bool:
    return bool(tensor.dtype.newbyteorder("<") == tensor.dtype)


def _flatten(tensor_dict: Mapping[str, np.ndarray[Any, Any]],
             keep_alive_buffer: list[Any]) -> dict[str, TensorSpec]:
    """Arguments of serialize; keep_alive_buffer gets the owners of the memory."""
    from ._official import TensorSpec
    specs = {}
    for name, array in tensor_dict.items():
        header_name(array.dtype.name)
        check_mask(name, array)
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        keep_alive_buffer.append(plain)
        specs[name] = TensorSpec(dtype=array.dtype.name, shape=array.shape,
                                 data_ptr=plain.ctypes.data, data_len=plain.nbytes)
    return specs


def _getdtype(dtype_str: str) -> Any:
    """numpy's own dtype of a name in a header; KeyError."""
    return _TYPES[dtype_str]


def _view2np(safeview: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays over the result of deserialize."""
    found = {}
    for name, facts in safeview:
        dtype = np.dtype(_getdtype(facts["dtype"])).newbyteorder("<")
        found[name] = np.frombuffer(facts["data"], dtype).reshape(facts["shape"])
    return found


def save(tensor_dict: Mapping[str, np.ndarray[Any, Any]],
         metadata: Mapping[str, str] | None = None, **options: Unpack[BytesOptions]) -> bytes:
    """Returns the bytes of a file. metadata: str to str. SafetensorError for a dtype the format
    lacks, TypeError for values that are not arrays, ValueError for masked elements.

    options: align (8, 64, 256 or 4096: alignment of the data's start), keep_order (of the dict,
    instead of by dtype and name)."""
    other = replaced(__name__, "serialize")
    if other is not None:
        buffers: list[Any] = []
        return bytes(other(_flatten(tensor_dict, buffers), metadata=metadata))
    rows, kept = _rows(tensor_dict)
    return write_bytes(rows, metadata, **options)


def save_file(tensor_dict: Mapping[str, np.ndarray[Any, Any]], filename: Target,
              metadata: Mapping[str, str] | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a file atomically; a replaced file keeps its mode. An object with write(bytes)
    instead of a path is written to in order. Raises as save, and OSError.

    options: sync (True; False does not wait for the disk), align, keep_order as for save,
    spare (bytes of header reserved for later edits), overwrite (True), link ("replace", "follow"
    or "refuse", if the target is a symbolic link), in_place_unsafe (for file systems that cannot
    rename, such as mounted object stores: the old file is removed, then the new one copied to its
    place; a crash in between leaves a hidden .NAME.sft-XXXXXX, which is whole), progress (True or a
    function)."""
    other = replaced(__name__, "serialize_file")
    if other is not None:
        buffers: list[Any] = []
        other(_flatten(tensor_dict, buffers), filename, metadata=metadata)
        return
    rows, kept = _rows(tensor_dict)
    write_file(rows, filename, metadata, **options)


def load(data: Any, *, dtype: Any = None,
         names: str | Iterable[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of a file in memory, given as any object with a buffer. Each owns its memory.
    dtype, names: as for load_file."""
    other = replaced(__name__, "deserialize")
    if other is not None:
        return _view2np(other(data))
    with open_bytes(data) as file:
        return file.numpy(names, dtype=dtype)


def load_file(filename: Source, *, backend: Backend = "mmap", dtype: Any = None,
              names: str | Iterable[str] | None = None,
              progress: Progress = None) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of a file: all, or those in names, which may be patterns ("*", "?", "[a-z]",
    "[!a-z]"). Each owns its memory, with either backend, so the file may change afterwards;
    libsafetensors.open(filename).numpy() maps instead. dtype: of numpy or torch, or a name such
    as "BF16", to which tensors of its kind are converted, floats to a float, integers to an
    integer; scales of quantised ones are not applied.
    filename: also a folder or an index.json, or an object with read and seek. progress: True
    or a function of bytes done and total. SafetensorError for an invalid file, TypeError
    for a dtype that needs ml_dtypes, TensorNotFoundError for a name or pattern that nothing matches,
    OSError."""
    other = replaced(__name__, "safe_open")
    if other is not None:
        with other(filename, framework="np", backend=backend) as opened:
            found: dict[str, np.ndarray[Any, Any]] = opened.get_tensors()
            return found
    from ._progress import watch
    with open_file(filename, backend) as file, watch(progress, "loading") as tick:
        return file.numpy(names, tick, dtype=dtype)
