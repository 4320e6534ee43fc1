"""Names of tensors and of dtypes, and tensors of any library: what the extension asks for when
names are patterns, when tensors are to be converted, and when a Writer gets more than bytes."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _core
from ._files import HEADER_NAMES
from ._types import Progress

__all__ = ["dtype_name", "matching", "moved", "numpy_arrays", "numpy_as", "numpy_dtype", "packed",
           "plan", "torch_as", "torch_dtype", "torch_tensors"]

# Name in a header -> name in ml_dtypes, of what numpy itself lacks.
_ML_NAMES = {header: name for name, header in HEADER_NAMES.items()
             if name.startswith(("bfloat", "float8"))}
_ML_NAMES.update(F4="float4_e2m1fn", F6_E2M3="float6_e2m3fn", F6_E3M2="float6_e3m2fn")
_ML_HEADERS = {name: header for header, name in _ML_NAMES.items()}


# ── Names ──

def matching(file: _core.File, names: Iterable[str]) -> list[str]:
    """The names, each pattern among them replaced by the names that match it, in the order of the
    data; none twice. A name that is in the file is no pattern. TensorNotFoundError if nothing
    matches."""
    found: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str) or name in file or not any(sign in name for sign in "*?["):
            found[name] = None
            continue
        from fnmatch import filter as matches
        some = matches(file.keys(), name.replace("[^", "[!"))
        if not some:
            path = file.paths[0] if file.paths else None
            error = _core.TensorNotFoundError("%sexpected tensors that match \"%s\", found none"
                                              % (path + ": " if path else "", name))
            error.code, error.tensor, error.hint = "tensor_not_found", name, None
            error.path = path
            raise error
        found.update(dict.fromkeys(some))
    return list(found)


# ── Dtypes ──

def dtype_name(dtype: Any) -> str:
    """Name in a header of a dtype of numpy or torch, or of its name there; another str is returned
    as it is. TypeError for anything else."""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}.get(
            dtype, dtype.__name__)
    elif hasattr(dtype, "name") and hasattr(dtype, "itemsize"):
        name = dtype.name  # numpy's
    elif type(dtype).__module__ == "torch":
        name = str(dtype).rpartition(".")[2]
    else:
        raise TypeError("dtype: expected a name such as \"F32\" or a dtype of numpy or torch, "
                        "found %s" % type(dtype).__name__)
    if name in _core.DTYPES:
        return name
    header = HEADER_NAMES.get(name) or _ML_HEADERS.get(name)
    upper = name.upper()
    return header or (upper if upper in _core.DTYPES else name)


def _known(dtype: Any) -> str:
    """dtype_name. SafetensorError for what the format lacks."""
    name = dtype_name(dtype)
    if name not in _core.DTYPES:
        error = _core.SafetensorError("expected a dtype of the format, found \"%s\"; it has %s"
                                      % (name, ", ".join(_core.DTYPES)))
        error.code, error.tensor, error.hint = "dtype_unknown", None, None
        raise error
    return name


def numpy_dtype(dtype: Any) -> Any:
    """numpy's dtype of any that dtype_name takes. TypeError if ml_dtypes is missing."""
    import numpy as np

    from .numpy import _TYPES
    name = _known(dtype)
    if name in _TYPES:
        return np.dtype(_TYPES[name])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("numpy has no dtype for %s: install ml_dtypes" % name) from None
    return np.dtype(getattr(ml_dtypes, _ML_NAMES[name]))


def torch_dtype(dtype: Any) -> Any:
    """torch's dtype of any that dtype_name takes. TypeError if this torch lacks it."""
    from .torch import _TYPES
    name = _known(dtype)
    if name not in _TYPES:
        raise TypeError("this torch has no dtype for %s" % name)
    return _TYPES[name]


def _is_kind(dtype: str, wanted: str) -> bool:
    """Whether a tensor of the dtype is converted when all are: floats to a float, integers to an
    integer, others to nothing but themselves."""
    kinds = [_core.DTYPES[name][1].replace("uint", "int") for name in (dtype, wanted)]
    return dtype != wanted and kinds[0] == kinds[1]


# ── Reading ──

def numpy_as(array: Any, dtype: Any) -> Any:
    """The array, converted unless it has the dtype already."""
    return array.astype(numpy_dtype(dtype), copy=False)


def torch_as(tensor: _core.Tensor, device: Any, dtype: Any, copy: bool) -> Any:
    """Tensor.torch with a device or a dtype."""
    from ._frameworks import check_device
    wanted = None if dtype is None else torch_dtype(dtype)
    return moved(tensor, check_device(device, "torch"), wanted, copy)


def moved(tensor: _core.Tensor, target: Any, dtype: Any = None, copy: bool = False) -> Any:
    """A torch tensor on the target (None: the CPU) and of a dtype of torch.

    What is copied to a device never comes from a private writable map: pinning its pages would
    break copy-on-write for each of them."""
    if target is None:
        found = tensor.torch(copy=copy)
    else:
        from ._device import load_one
        found = load_one(target, tensor)
    return found if dtype is None else found.to(dtype)


def numpy_arrays(file: _core.File, names: Iterable[str] | None, progress: Progress,
                 dtype: Any) -> dict[str, Any]:
    """File.numpy with a dtype: all are read as they are, then converted one at a time."""
    wanted = _known(dtype)
    numpy_dtype(wanted)
    found = file.numpy(names, progress if callable(progress) else None)
    for name in found:
        if _is_kind(file[name].dtype, wanted):
            found[name] = numpy_as(found[name], wanted)
    return found


def torch_tensors(file: _core.File, names: Iterable[str] | None, progress: Progress, device: Any,
                  dtype: Any, copy: bool, pack: bool = True) -> dict[str, Any]:
    """File.torch with a device or a dtype. pack: whether small tensors on a device may share
    blocks of memory."""
    from ._frameworks import check_device
    tick = progress if callable(progress) else None
    target = check_device(device, "torch")
    wanted = None if dtype is None else _known(dtype)
    kind = None if wanted is None else torch_dtype(wanted)
    if target is None and wanted is None:
        return file.torch(names, tick, copy=copy)
    if isinstance(names, str):
        raise TypeError("names: expected an iterable of str, found one str")
    chosen = [file[name] for name in (file if names is None else matching(file, names))]
    kinds = [kind if wanted is not None and _is_kind(tensor.dtype, wanted) else None
             for tensor in chosen]
    if target is not None and chosen and _core.is_local(chosen[0]):
        found = _loaded(chosen, kinds, target, tick, pack)
        if found is not None:
            return found
    total, done, found = sum(tensor.nbytes for tensor in chosen), 0, {}
    for tensor, one in zip(chosen, kinds):
        found[tensor.name] = moved(tensor, target, one, copy)
        done += tensor.nbytes
        if tick is not None:
            tick(done, total)
    return found


_CONVERTED = 1 << 30
"""Bytes that are loaded to a device before they are converted there."""


def _loaded(tensors: list[_core.Tensor], kinds: list[Any], target: Any,
            tick: Callable[[int, int], object] | None, pack: bool) -> dict[str, Any] | None:
    """The tensors, by name, on a device that _device.py knows; None for others."""
    from . import _device
    total, done = sum(tensor.nbytes for tensor in tensors), 0
    found, first = {}, 0

    def add(here: int, _: int) -> None:
        if tick is not None:
            tick(done + here, total)
    while first < len(tensors):
        device = _device.device_of(target)
        if device is None:
            return None
        end, size = first, 0
        while end < len(tensors) and (size < _CONVERTED or not any(kinds)):
            size += tensors[end].nbytes
            end += 1
        group = tensors[first:end]
        made = _device.load(device, group, pack=pack, tick=add)
        for tensor, one, kind in zip(group, made, kinds[first:end]):
            found[tensor.name] = one if kind is None else one.to(kind)
        first, done = end, done + size
    return found


# ── Writing ──

def _torch() -> Any:
    """torch, if it was imported: else nobody has a tensor of it."""
    return sys.modules.get("torch")


def _row(name: str, value: Any) -> tuple[str, Any, Any]:
    """Name, dtype and shape, in the header's terms."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return name, value[0], value[1]
    torch = _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        from .torch import _dtype_name, _shape
        return name, _dtype_name(name, value), _shape(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return name, value.dtype, value.shape
    raise TypeError("tensors[%r]: expected a tensor, or a tuple of dtype and shape, found %s"
                    % (name, type(value).__name__))


def plan(tensors: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The rows of a Writer's plan: names, dtypes and shapes of tensors, or as they are given."""
    return [_row(name, value) for name, value in tensors.items()]


def packed(data: Any, dtype: str) -> Any:
    """A buffer of the data's elements, packed in C order. The data themselves if they are nothing
    that could be packed. ValueError for a tensor of another dtype, except of bytes."""
    torch = _torch()
    if torch is not None and isinstance(data, torch.Tensor):
        from .torch import _bytes_of
        return _bytes_of(data, dtype)
    if isinstance(data, memoryview):
        return memoryview(data.tobytes()).cast(data.format)  # type: ignore[call-overload]
    if hasattr(data, "__array__") and not isinstance(data, _core.Tensor):
        import numpy as np
        array = np.asarray(data)
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return data
