"""The names of the official package's top level, on top of our extension.

Names, arguments, results, exception classes and the messages that the official tests check
are the same; docs/python.md lists the intended differences.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import SafetensorError, TensorNotFoundError
from ._errors import coded
from ._files import (DEFAULT_BACKEND, bytes_view, check_path, check_type, header_name, open_file,
                     write_bytes, write_file)
from ._frameworks import FRAMEWORKS, check_device, maker
from ._install import OFFICIAL_VERSION
from ._prefetch import PrefetchLoader, chosen_tensors
from ._slices import PySafeSlice, integer
from ._types import Backend, Closing, Framework, Level, Order, Path

if TYPE_CHECKING:
    from typing import Generic, Literal, TypeVar, overload

    import jax
    import numpy as np
    import torch

    _T = TypeVar("_T")

    class _Handle(Closing, Generic[_T]):
        """Type checkers see safe_open by what its tensors are; when the program runs it is none."""
    _Slice = PySafeSlice
else:
    _T = Any
    _Handle, _Slice = {_T: Closing}, {_T: PySafeSlice}

__all__ = ["PrefetchLoader", "PySafeSlice", "SafetensorError", "TensorMeta", "TensorSpec",
           "deserialize", "safe_open", "serialize", "serialize_file"]

__version__ = OFFICIAL_VERSION
"""The release of the official package whose interface this implements."""


# What programs import from the official modules of frameworks, too.
_OFFICIAL_NAMES = ("TensorSpec", "deserialize", "safe_open", "serialize", "serialize_file")


def official_name(module: str, name: str) -> Any:
    """For __getattr__ of a framework's module: a name of the official top level."""
    if name not in _OFFICIAL_NAMES:
        raise AttributeError("module %r has no attribute %r" % (module, name))
    return globals()[name]


class safe_open(_Handle[_T]):
    """Opens a file and loads tensors on demand.

    filename: str or os.PathLike; an index.json, or a folder with one, opens the whole model.
    framework: "pt", "np", "tf", "flax", "mlx", "paddle" or their long names. device: for torch
    (any that it knows) and paddle; "cpu" for the others. backend: "mmap" maps the file
    privately and torch tensors share its memory, so that writes to them never reach the file;
    "pread", the default on Windows, reads. Arrays of other frameworks always have memory of
    their own. level: "compat"
    accepts what the official package accepts, even duplicate names.

    SafetensorError for an invalid file or argument; OSError from the system. Threads may share
    it. After `with` or close() every call raises; tensors and slices remain valid.
    """

    __slots__ = ("_file", "_framework", "_device", "_make")

    if TYPE_CHECKING:
        @overload
        def __init__(self: safe_open[torch.Tensor], filename: Path,
                     framework: Literal["pt", "torch", "pytorch"], device: Any = ..., *,
                     backend: Backend = ..., level: Level = ...) -> None: ...
        @overload
        def __init__(self: safe_open[np.ndarray[Any, Any]], filename: Path,
                     framework: Literal["np", "numpy"], device: Any = ..., *,
                     backend: Backend = ..., level: Level = ...) -> None: ...
        @overload
        def __init__(self: safe_open[jax.Array], filename: Path,
                     framework: Literal["jax", "flax"], device: Any = ..., *,
                     backend: Backend = ..., level: Level = ...) -> None: ...
        @overload
        def __init__(self: safe_open[Any], filename: Path,
                     framework: Literal["tf", "tensorflow", "mlx", "paddle"], device: Any = ..., *,
                     backend: Backend = ..., level: Level = ...) -> None: ...

    def __init__(self, filename: Path, framework: Framework, device: Any = "cpu", *,
                 backend: Backend = DEFAULT_BACKEND, level: Level = "default") -> None:
        check_path(filename)
        self._begin(filename, framework, device, backend, level)

    def _begin(self, source: Any, framework: Framework, device: Any, backend: Backend,
               level: Level = "default") -> None:
        self._file: _core.File | None = None
        check_type(framework, str, "framework")
        known = FRAMEWORKS.get(framework)
        if known is None:
            raise SafetensorError("framework %s is invalid" % (framework,))
        self._framework = known
        self._device = check_device(device, known)
        self._make = maker(known, self._device)
        self._file = open_file(source, backend, level=level, framework=known,
                               shared=self._device is None)

    def _open(self) -> _core.File:
        if self._file is None:
            raise SafetensorError("File is closed")
        return self._file

    def _tensor(self, name: str) -> _core.Tensor:
        file = self._file
        try:
            return self._open()[name] if file is None else file[name]
        except (SafetensorError, KeyError) as error:
            if getattr(error, "code", "") != "tensor_not_found":
                raise
            raise coded(TensorNotFoundError, "File does not contain tensor %s" % name,
                        "tensor_not_found", getattr(error, "hint", None), tensor=name) from None

    def __len__(self) -> int:
        return len(self._open())

    def __contains__(self, name: object) -> bool:
        return name in self._open()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self, order: Order = "name") -> list[str]:
        """Names of the tensors: sorted, or in another order."""
        return self._open().keys(order)

    def offset_keys(self) -> list[str]:
        """Names in the order of the data."""
        return self._open().keys("offset")

    def metadata(self) -> dict[str, str] | None:
        """The metadata of the header, str to str; None if there is none."""
        return self._open().metadata()

    def get_tensor(self, name: str) -> _T:
        """One tensor, read or mapped now. SafetensorError if the name is unknown."""
        tensor: _T = self._make(self._tensor(name))
        return tensor

    def get_tensors(self) -> dict[str, _T]:
        """All tensors, in the order of the data."""
        file = self._open()
        found: Any
        if self._framework == "numpy":
            found = file.numpy()
        elif self._framework == "torch":
            found = file.torch(device=self._device)
        else:
            found = {name: self._make(file[name]) for name in file}
        tensors: dict[str, _T] = found
        return tensors

    def get_slice(self, name: str) -> _Slice[_T]:
        """A tensor to be indexed; only what the index selects is read."""
        return PySafeSlice(self._tensor(name), self._framework, self._make)

    def get_tensor_meta(self, name: str) -> TensorMeta:
        """What the header says of a tensor. SafetensorError if the name is unknown."""
        return TensorMeta(self._tensor(name))

    def prefetch(self, plan: Mapping[str, Any] | None = None, *, device: Any = None,
                 threads: int = 8) -> PrefetchLoader:
        """Starts reading tensors, which the result hands out, each once.

        plan: names, with None for all of a tensor or what slices it (in any dimension); None:
        all tensors. device: that of this handle, or any that torch knows. threads: that read
        from the file. Only for framework="pt". SafetensorError, TypeError."""
        file = self._open()
        if self._framework != "torch":
            raise SafetensorError('prefetch is only compatible with framework="pt"')
        place = self._device if device is None else check_device(device, "torch")
        tensors = chosen_tensors(file, plan, self._tensor)
        from ._device import CpuDevice, device_of
        local = bool(tensors) and _core.is_local(next(iter(tensors.values())))
        engine = None
        if local:
            engine = CpuDevice() if place is None else device_of(place)
        return PrefetchLoader(tensors, place, engine, threads)

    def close(self) -> None:
        """Closes this handle; a second call does nothing."""
        if self._file is not None:
            self._file.close()
        self._file = None


class TensorMeta:
    """A tensor's entry in the header: dtype, shape and data_offsets."""

    __slots__ = ("dtype", "shape", "data_offsets")

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]

    def __init__(self, tensor: _core.Tensor) -> None:
        self.dtype = tensor.dtype
        self.shape = list(tensor.shape)
        self.data_offsets = tensor.data_offsets

    def __repr__(self) -> str:
        return "TensorMeta(dtype='%s', shape=%s, data_offsets=%s)" % (
            self.dtype, self.shape, self.data_offsets)


if TYPE_CHECKING:
    _Open = safe_open[Any]
else:
    _Open = safe_open


class _safe_open_handle(_Open):
    """safe_open for an open file. If its name is that of a file, that is opened again, as the
    official package does; otherwise it is read through read and seek."""

    __slots__ = ()

    def __init__(self, f: Any, framework: Framework, device: Any = "cpu", *,
                 backend: Backend = DEFAULT_BACKEND) -> None:
        name = getattr(f, "name", None)
        named = isinstance(name, (str, bytes, os.PathLike)) and os.path.exists(name)
        self._begin(os.fsdecode(name) if named else f, framework, device, backend)


# ── Writing ──

class TensorSpec:
    """The memory of a tensor, which the caller keeps alive.

    dtype: numpy's or torch's name; shape: as in the framework (the last dimension of a
    float4_e2m1fn_x2 is doubled in the file); data_ptr, data_len: address and number of bytes,
    packed, little-endian.
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
        # The address means nothing in another process.
        raise TypeError("cannot pickle 'TensorSpec' object")

    def __repr__(self) -> str:
        return "TensorSpec(dtype='%s', shape=%s, data_ptr=%d, data_len=%d)" % (
            self._dtype, self._shape, self._ptr, self._len)


def _size(value: Any) -> int:
    number = integer(value)
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


def _rows(tensor_dict: Any) -> list[Any]:
    check_type(tensor_dict, dict, "tensor_dict")
    rows = []
    for name, spec in tensor_dict.items():
        check_type(name, str, "tensor_dict")
        check_type(spec, TensorSpec, "tensor_dict")
        rows.append((name, spec._dtype, spec._shape, (spec._ptr, spec._len), None))
    return rows


def serialize(tensor_dict: Mapping[str, TensorSpec],
              metadata: Mapping[str, str] | None = None) -> bytes:
    """Returns the bytes of a file. tensor_dict: a TensorSpec of each tensor, with its memory;
    metadata: str to str. TypeError for values that are not TensorSpecs; SafetensorError."""
    return write_bytes(_rows(tensor_dict), metadata)


def serialize_file(tensor_dict: Mapping[str, TensorSpec], filename: Path,
                   metadata: Mapping[str, str] | None = None, *, sync: bool = True) -> None:
    """Writes a file atomically; sync=False does not wait for the disk. tensor_dict, metadata: as for
    serialize, with its errors; OSError."""
    write_file(_rows(tensor_dict), filename, metadata, sync=sync)


def deserialize(bytes: Any) -> list[tuple[str, dict[str, Any]]]:
    """Tensors of a file in memory, in the order of the data: (name, {"shape", "dtype", "data"}),
    with the data copied to a bytearray. bytes: any object with a buffer. SafetensorError for an
    invalid file, TypeError."""
    with open_file(bytes_view(bytes), doing="Error while deserializing") as file:
        found = []
        for name in file:
            tensor = file[name]
            content = bytearray(tensor.nbytes)
            tensor.read_into(content)
            found.append((name, {"shape": list(tensor.shape), "dtype": tensor.dtype,
                                 "data": content}))
        return found
