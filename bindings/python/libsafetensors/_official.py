"""The names of the official package's top level, over our own extension.

Same names, arguments, results, exception classes and the texts that the official tests ask
for; docs/python.md lists where behaviour differs on purpose.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, Literal

from . import _OFFICIAL_VERSION, _core
from ._core import SafetensorError, TensorNotFoundError

Path = str | os.PathLike[str]

__all__ = ["SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize",
           "serialize_file"]

__version__ = _OFFICIAL_VERSION
"""The release of the official package whose interface this is."""

_FRAMEWORKS = {"pt": "torch", "torch": "torch", "pytorch": "torch",
               "np": "numpy", "numpy": "numpy", "tf": "tensorflow", "tensorflow": "tensorflow",
               "jax": "jax", "flax": "jax", "mlx": "mlx", "paddle": "paddle"}
_MODES: dict[str, Literal["auto", "read"]] = {"mmap": "auto", "pread": "read"}
# Their arrays have memory of their own, with either backend: torch alone is lent the map's.
_OWN_MEMORY = ("numpy", "tensorflow", "jax", "mlx", "paddle")

# Name of a dtype in numpy and torch -> name in a header. In the order of the error's text.
_HEADER_NAMES = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16",
    "int32": "I32", "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16",
    "float32": "F32", "float64": "F64", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4",
    "complex64": "C64"}

# What the official package says where our error has this code; programs look for these words.
_JSON = "invalid JSON in header"
_OFFSET = "invalid offset for tensor `%s`"
_COVER = "incomplete metadata, file not fully covered"
_SENTENCES = {
    "header_too_small": "header too small", "header_too_large": "header too large",
    "header_truncated": "invalid header length", "header_utf8": "invalid UTF-8 in header",
    "json_syntax": _JSON, "json_string": _JSON, "json_number": _JSON, "json_depth": _JSON,
    "json_trailing": _JSON, "header_not_object": _JSON, "entry_type": _JSON,
    "field_missing": _JSON, "field_duplicate": _JSON, "dtype_type": _JSON,
    "dtype_unknown": _JSON, "shape_type": _JSON, "offsets_type": _JSON, "metadata_type": _JSON,
    "metadata_value": _JSON, "metadata_duplicate": _JSON,
    "offsets_reversed": _OFFSET, "offsets_gap": _OFFSET, "offsets_overlap": _OFFSET,
    "size_overflow": "overflow computing buffer size from shape and/or element type",
    "size_mismatch": "invalid shape, data type, or offset for tensor",
    "size_partial_byte": "The slice is slicing for subbytes dtypes, and the slice does not end "
                         "up at a byte boundary, this is invalid",
    "data_truncated": _COVER, "data_trailing": _COVER}


def _reword(error: SafetensorError, doing: str) -> SafetensorError:
    """The same error with the official words in front of ours."""
    code = error.code or ""
    # Read as a length, the first bytes of another format are more than is allowed.
    sentence = "header too large" if code.startswith("found_") else _SENTENCES.get(code, "")
    if sentence is _OFFSET:
        sentence %= error.tensor
    error.args = (": ".join(part for part in (doing, sentence, str(error)) if part),)
    return error


def _check_type(value: Any, kind: type, argument: str) -> None:
    """TypeError unless value is of the kind, in the official words."""
    if not isinstance(value, kind):
        found = "'None'" if value is None else "%r object" % type(value).__name__
        raise TypeError("argument %r: %s is not an instance of %r"
                        % (argument, found, kind.__name__))


def _check_path(filename: Any) -> None:
    """TypeError for what is no path."""
    if not isinstance(filename, (str, bytes, os.PathLike)):
        hint = ""
        if hasattr(filename, "fs") and hasattr(filename, "open"):
            hint = "; call its open(), whose file libsafetensors.open and Writer take"
        raise TypeError("argument 'filename': expected str, bytes or os.PathLike object, not %s%s"
                        % (type(filename).__name__, hint))


def open_file(source: Any, backend: str = "mmap", doing: str = "Error while deserializing header",
              level: Literal["compat", "default", "strict"] = "default",
              framework: str = "numpy") -> _core.File:
    """_core.open with the official backends and words. Only torch may be given a map.
    OSError is the subclass of its errno."""
    _check_type(backend, str, "backend")
    mode = _MODES.get(backend)
    if mode is None:
        raise SafetensorError(
            'backend "%s" is invalid (expected one of: "mmap", "pread")' % (backend,))
    if framework in _OWN_MEMORY:
        mode = "read"
    try:
        return _core.open(source, mode=mode, level=level)
    except SafetensorError as error:
        raise _reword(error, doing) from None
    except FileNotFoundError as error:
        if not isinstance(source, (str, bytes, os.PathLike)):
            raise
        hint = getattr(error, "hint", None) if "://" in os.fsdecode(source) else None
        again = FileNotFoundError("No such file or directory: %s%s"
                                  % (os.fsdecode(source), "; " + hint if hint else ""))
        again.errno = error.errno
        for name in ("code", "offset", "tensor", "hint", "path"):
            setattr(again, name, getattr(error, name, None))
        raise again from None


def _bytes_view(data: Any) -> memoryview:
    """TypeError for what has no buffer; a path is for load_file."""
    if isinstance(data, (str, os.PathLike)):
        raise TypeError("expected the bytes of a file, found %s: load_file and "
                        "libsafetensors.open take a path" % type(data).__name__)
    return memoryview(data)


def open_bytes(data: Any) -> _core.File:
    """A file in memory. What is made of it is copied, each tensor by itself: it can be written
    to, and keeps no other alive."""
    view = _bytes_view(data)
    try:
        return _core.open(view)
    except SafetensorError as error:
        raise _reword(error, "Error while deserializing") from None


# ── Devices ──

def check_device(device: Any, framework: str) -> Any:
    """None for the CPU, else the device as torch takes it: any that torch knows."""
    if device is None or device == "cpu":
        return None
    if isinstance(device, str):
        kind, colon, index = device.partition(":")
        if colon and not (index.isascii() and index.isdigit()):
            raise ValueError("device %s is invalid: expected a number after the colon" % device)
        if kind == "mps" and index not in ("", "0"):
            raise SafetensorError(
                "device %s is invalid: only mps or mps:0 is supported" % device)
    if framework not in ("torch", "paddle"):
        raise SafetensorError(
            "Device %s is not supported for framework %s" % (device, framework))
    if framework == "torch":
        import torch
        try:
            known = torch.device(device)
        except (RuntimeError, TypeError):
            raise SafetensorError("device %s is invalid" % (device,)) from None
        return None if known.type == "cpu" else known
    return device


# ── Tensors of each framework ──

def _through_numpy(framework: str, device: Any) -> Callable[[Any], Any]:
    """What turns one of our tensors into one of the framework."""
    if framework == "tensorflow":
        from .tensorflow import _from_tensor
    elif framework == "jax":
        from .flax import _from_tensor
    elif framework == "mlx":
        from .mlx import _from_tensor
    else:
        from .paddle import _from_tensor as on_device
        return lambda tensor: on_device(tensor, device)
    return _from_tensor


def _maker(framework: str, device: Any) -> Callable[[_core.Tensor], Any]:
    if framework == "numpy":
        __import__("numpy")
        return _core.Tensor.numpy
    if framework == "torch":
        __import__("torch")
        if device is None:
            return _core.Tensor.torch
        return lambda tensor: tensor.torch().to(device)
    return _through_numpy(framework, device)


class safe_open:
    """Opens a file lazily and gives tensors as they are asked for.

    filename: str or os.PathLike; a folder with an index.json, or that file, opens as the whole
    model. framework: "pt", "np", "tf", "flax", "mlx", "paddle" or their long names. device: of
    torch (any that it knows) and paddle only, else "cpu". backend: "mmap" maps the file
    privately, and tensors of torch are its memory: writes to them never reach the file; "pread"
    reads, and for all but torch so does "mmap": their arrays have memory of their own. level: "compat" takes what the
    official package takes, also duplicate names.

    Raises SafetensorError for a bad file or argument, and the OSError of the system. Threads
    may share it. After `with` or close() every call raises; tensors and slices live on.
    """

    __slots__ = ("_file", "_framework", "_device", "_make")

    def __init__(self, filename: Path, framework: str, device: Any = "cpu", *,
                 backend: str = "mmap",
                 level: Literal["compat", "default", "strict"] = "default") -> None:
        _check_path(filename)
        if isinstance(filename, bytes):
            _check_type(filename, str, "filename")
        self._begin(filename, framework, device, backend, level)

    def _begin(self, source: Any, framework: str, device: Any, backend: str,
               level: Literal["compat", "default", "strict"] = "default") -> None:
        self._file: _core.File | None = None
        _check_type(framework, str, "framework")
        known = _FRAMEWORKS.get(framework)
        if known is None:
            raise SafetensorError("framework %s is invalid" % (framework,))
        self._framework = known
        self._device = check_device(device, known)
        self._make = _maker(known, self._device)
        self._file = open_file(source, backend, level=level, framework=known)

    def _open(self) -> _core.File:
        if self._file is None:
            raise SafetensorError("File is closed")
        return self._file

    def _tensor(self, name: str) -> _core.Tensor:
        try:
            return self._open()[name]
        except (SafetensorError, KeyError) as error:
            if getattr(error, "code", "") != "tensor_not_found":
                raise
            again = TensorNotFoundError("File does not contain tensor %s" % name)
            again.code, again.tensor = "tensor_not_found", name
            again.hint = getattr(error, "hint", None)
            raise again from None

    def __len__(self) -> int:
        return len(self._open())

    def __contains__(self, name: object) -> bool:
        return name in self._open()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self, order: Literal["name", "offset", "natural", "header"] = "name") -> list[str]:
        """Names of the tensors: sorted, or in another order."""
        return self._open().keys(order)

    def offset_keys(self) -> list[str]:
        """Names in the order of the data."""
        return self._open().keys("offset")

    def metadata(self) -> dict[str, str] | None:
        """The free text of the header; None when there is none."""
        return self._open().metadata()

    def get_tensor(self, name: str) -> Any:
        """One tensor. SafetensorError when there is none of that name."""
        return self._make(self._tensor(name))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, in the order of the data."""
        file = self._open()
        if self._framework == "numpy":
            return file.numpy()
        if self._framework == "torch" and self._device is None:
            return file.torch()
        return {name: self._make(file[name]) for name in file}

    def get_slice(self, name: str) -> PySafeSlice:
        """A tensor to be indexed; what is read is what the index asks for."""
        return PySafeSlice(self._tensor(name), self._framework, self._make)

    def close(self) -> None:
        """Ends this handle. Twice is once."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class _safe_open_handle(safe_open):
    """safe_open for an open file. One with the name of a file is opened again by that name, as
    the official package does; any other is read through its read and seek."""

    __slots__ = ()

    def __init__(self, f: Any, framework: str, device: Any = "cpu", *,
                 backend: str = "mmap") -> None:
        name = getattr(f, "name", None)
        named = isinstance(name, (str, bytes, os.PathLike)) and os.path.exists(name)
        self._begin(name if named else f, framework, device, backend)


# ── Slices ──

class PySafeSlice:
    """One tensor of a file, to be indexed.

    torch follows torch, also with lists and masks; negative steps besides. All others follow
    numpy, except that an index or a stop beyond the end and a list that is not empty raise
    SafetensorError, as the official package does.
    """

    __slots__ = ("_tensor", "_torch", "_make")

    def __init__(self, tensor: _core.Tensor, framework: str,
                 make: Callable[[_core.Tensor], Any]) -> None:
        self._tensor = tensor
        self._torch = framework == "torch"
        self._make = make

    def get_shape(self) -> list[int]:
        """The whole tensor's shape, as in the header."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """The dtype's name in the header, "F32"."""
        return self._tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        if not self._torch:
            shape = self._tensor.shape
            if not _fits(index, shape):
                index = _numpy_index(index, shape)
            return self._make(self._tensor[index])
        # A float4 of torch is two elements: its shape is another than the header's.
        if _is_basic(index) and self._tensor.dtype != "F4":
            return self._make(self._tensor[index])
        return self._make(self._tensor)[index]


def _is_basic(index: Any) -> bool:
    """Only integers, slices and an ellipsis: what can be read without the rest."""
    parts = index if type(index) is tuple else (index,)
    return (all(type(part) in (int, slice) or part is Ellipsis for part in parts)
            and parts.count(Ellipsis) < 2)


def _fits(index: Any, shape: tuple[int, ...]) -> bool:
    """It is of the plainest kind and reaches beyond nothing: no need to look closer."""
    parts = index if type(index) is tuple else (index,)
    if len(parts) > len(shape):
        return False
    for part, size in zip(parts, shape):
        if type(part) is slice:
            stop = part.stop
            if part.step == 0 or stop is not None and (type(stop) is not int or stop > size):
                return False
        elif type(part) is not int or not -size <= part < size:
            return False
    return True


def _numpy_index(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The same index as a tuple without Ellipsis. SafetensorError as the class tells."""
    if isinstance(index, list):
        if index:
            raise SafetensorError("Non empty lists are not implemented")
        index = slice(0, 0)
    parts = list(index) if isinstance(index, tuple) else [index]
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise SafetensorError("Only one ellipsis (...) is allowed in slice index")
    for i, part in enumerate(parts):
        parts[i] = _part(i, part)
    plain = [part for part in parts if part is not Ellipsis]
    if len(plain) > len(shape):
        raise _slice_error(plain, shape, "more slicing indexes than dimensions in tensor")
    if ellipses:
        parts[ellipses[0]:ellipses[0] + 1] = [slice(None)] * (len(shape) - len(plain))
    for axis, part in enumerate(parts):
        beyond = _beyond(part, axis, shape[axis])
        if beyond is not None:
            raise _slice_error(plain, shape, "index %d out of bounds for tensor dimension #%d of "
                               "size %d" % (beyond, axis, shape[axis]))
    return tuple(parts)


def _slice_error(parts: Sequence[Any], shape: Sequence[int], text: str) -> SafetensorError:
    return SafetensorError("Error during slicing [%s] with shape %s: %s" % (
        ", ".join(map(_spell, parts)), list(shape), text))


def _part(position: int, part: Any) -> Any:
    """A slice of integers, an integer or Ellipsis."""
    if part is Ellipsis:
        return part
    if isinstance(part, slice):
        start, stop, step = (None if x is None else _integer(x)
                             for x in (part.start, part.stop, part.step))
        if step == 0:
            raise SafetensorError("Slice step must not be zero")
        return slice(start, stop, step)
    try:
        return _integer(part)
    except TypeError:
        raise SafetensorError("Unsupported slice index at position %d: expected slice, int, or "
                              "ellipsis" % position) from None


def _spell(part: Any) -> str:
    if not isinstance(part, slice):
        return str(part)
    start, stop, step = ("" if x is None else str(x) for x in (part.start, part.stop, part.step))
    return "%s:%s" % (start, stop) + (":" + step if step not in ("", "1") else "")


def _beyond(part: Any, axis: int, size: int) -> int | None:
    """The index that lies beyond the end of its dimension, or None."""
    if isinstance(part, slice):
        if part.stop is None or part.stop <= size or (part.step or 1) < 0:
            return None
        start: int = part.start or 0
        return start if start >= size else int(part.stop) - 1
    if part < -size:
        raise SafetensorError("Invalid index %d for dimension %d of size %d" % (part, axis, size))
    return int(part) if part >= size else None


# ── Writing ──

def header_name(dtype: str) -> str:
    """The header's name of a dtype of numpy or torch. SafetensorError names those there are."""
    _check_type(dtype, str, "dtype")
    try:
        return _HEADER_NAMES[dtype]
    except KeyError:
        raise SafetensorError('Unknown dtype "%s". Supported dtypes: %s'
                              % (dtype, ", ".join(_HEADER_NAMES))) from None


class TensorSpec:
    """Where a tensor lies in memory: nothing is kept alive, the caller does that.

    dtype: numpy's or torch's name; shape: of the framework, so a float4_e2m1fn_x2 doubles its
    last dimension; data_ptr, data_len: address and bytes, packed, little-endian.
    """

    __slots__ = ("_dtype", "_shape", "_ptr", "_len")

    def __init__(self, *, dtype: str, shape: Sequence[int], data_ptr: int,
                 data_len: int) -> None:
        name = header_name(dtype)
        dims = [_size(dim) for dim in shape]
        if name == "F4" and dims:
            dims[-1] = _doubled(dims[-1])
        self._dtype, self._shape = name, dims
        self._ptr, self._len = _size(data_ptr), _size(data_len)

    @property
    def dtype(self) -> str:
        """The header's name, "F32"."""
        return self._dtype

    @property
    def shape(self) -> list[int]:
        """The header's shape."""
        return list(self._shape)

    @property
    def data_ptr(self) -> int:
        return self._ptr

    @property
    def data_len(self) -> int:
        return self._len

    def __reduce__(self) -> Any:
        # In another process the address would be nothing.
        raise TypeError("cannot pickle 'TensorSpec' object")

    def __repr__(self) -> str:
        return "TensorSpec(dtype='%s', shape=%s, data_ptr=%d, data_len=%d)" % (
            self._dtype, self._shape, self._ptr, self._len)


def _integer(value: Any) -> int:
    """TypeError for what is no integer of any kind."""
    if type(value) is int:
        return value
    from operator import index
    return index(value)


def _size(value: Any) -> int:
    number = _integer(value)
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number > 2 * sys.maxsize + 1:
        raise OverflowError("int too big to convert")
    return number


def _doubled(size: int) -> int:
    if size > sys.maxsize:
        raise SafetensorError(
            "F4 last-dim %d doubled to logical shape overflows usize" % size)
    return 2 * size


def check_metadata(metadata: Any) -> dict[str, str] | None:
    """A dict of str to str, or None; else TypeError."""
    if metadata is None:
        return None
    _check_type(metadata, dict, "metadata")
    for pair in metadata.items():
        for text in pair:
            _check_type(text, str, "metadata")
    known: dict[str, str] = metadata
    return known


def _rows(tensor_dict: Any) -> list[Any]:
    _check_type(tensor_dict, dict, "tensor_dict")
    rows = []
    for name, spec in tensor_dict.items():
        _check_type(name, str, "tensor_dict")
        _check_type(spec, TensorSpec, "tensor_dict")
        rows.append((name, spec._dtype, spec._shape, (spec._ptr, spec._len), None))
    return rows


def write_bytes(rows: Sequence[Any], metadata: Any, **options: Any) -> bytes:
    """_core.save_bytes with the official words."""
    try:
        return _core.save_bytes(rows, check_metadata(metadata), **options)
    except SafetensorError as error:
        raise _reword(error, "Error while serializing") from None


def write_file(rows: Sequence[Any], filename: Any, metadata: Any, *, progress: Any = None,
               **options: Any) -> None:
    """_core.save_file with the official words and progress."""
    from ._progress import watch
    metadata = check_metadata(metadata)
    _check_path(filename)
    try:
        with watch(progress, "saving") as tick:
            _core.save_file(filename, rows, metadata, progress=tick, **options)
    except SafetensorError as error:
        raise _reword(error, "Error while serializing") from None


def serialize(tensor_dict: Mapping[str, TensorSpec],
              metadata: Mapping[str, str] | None = None) -> bytes:
    """A whole file in memory. TypeError for anything but TensorSpecs."""
    return write_bytes(_rows(tensor_dict), metadata)


def serialize_file(tensor_dict: Mapping[str, TensorSpec], filename: Path,
                   metadata: Mapping[str, str] | None = None, *, sync: bool = True) -> None:
    """Writes a file, which appears whole or not at all; sync=False does not wait for the disk."""
    write_file(_rows(tensor_dict), filename, metadata, sync=sync)


def deserialize(bytes: Any) -> list[tuple[str, dict[str, Any]]]:
    """Tensors of a file in memory, in the order of the data: (name, {"shape", "dtype",
    "data"}), the data a bytearray of its own. bytes: any object with a buffer."""
    with open_file(_bytes_view(bytes), doing="Error while deserializing") as file:
        found = []
        for name in file:
            tensor = file[name]
            content = bytearray(tensor.nbytes)
            tensor.read_into(content)
            found.append((name, {"shape": list(tensor.shape), "dtype": tensor.dtype,
                                 "data": content}))
        return found
