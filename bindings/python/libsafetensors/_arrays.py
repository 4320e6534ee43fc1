"""Many tensors at once: what the extension asks for when names are patterns, and when tensors are
to be converted or loaded to a device."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _core
from ._dtypes import is_kind, known_dtype, numpy_dtype, torch_dtype
from ._errors import coded
from ._frameworks import check_device, moved
from ._types import Progress

__all__ = ["known", "matching", "numpy_arrays", "numpy_as", "torch_as", "torch_tensors"]

# ── Names ──

def matching(file: _core.File, names: str | Iterable[str]) -> list[str]:
    """The names (a str is one), each pattern among them replaced by the names that match it, in the order of the
    data; none twice. A name that is in the file is no pattern. TensorNotFoundError if nothing
    matches."""
    found: dict[str, None] = {}
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str) or name in file or not any(sign in name for sign in "*?["):
            found[name] = None
            continue
        from fnmatch import fnmatchcase
        some = [one for one in file if fnmatchcase(one, name.replace("[^", "[!"))]
        if not some:
            index = file._index()
            path = index[0] if index else file.paths[0] if file.paths else None
            raise coded(_core.TensorNotFoundError,
                        "%sexpected tensors that match \"%s\", found none"
                        % (path + ": " if path else "", name), "tensor_not_found", tensor=name,
                        path=path)
        found.update(dict.fromkeys(some))
    return list(found)


def known(file: _core.File, names: str | Iterable[str]) -> list[str]:
    """matching(), of names that all are in the file. TensorNotFoundError."""
    found = matching(file, names)
    for name in found:
        file[name]
    return found


# ── Reading ──

def numpy_as(array: Any, dtype: Any) -> Any:
    """The array, converted unless it has the dtype already."""
    return array.astype(numpy_dtype(dtype), copy=False)


def torch_as(tensor: _core.Tensor, device: Any, dtype: Any, copy: bool) -> Any:
    """Tensor.torch with a device or a dtype."""
    wanted = None if dtype is None else torch_dtype(dtype)
    return moved(tensor, check_device(device, "torch"), wanted, copy)


def numpy_arrays(file: _core.File, names: str | Iterable[str] | None, progress: Progress,
                 dtype: Any) -> dict[str, Any]:
    """File.numpy with a dtype: all are read as they are, then converted one at a time."""
    wanted = known_dtype(dtype)
    numpy_dtype(wanted)
    found = file.numpy(names, progress if callable(progress) else None)
    for name in found:
        if is_kind(file[name].dtype, wanted):
            found[name] = numpy_as(found[name], wanted)
    return found


def torch_tensors(file: _core.File, names: str | Iterable[str] | None, progress: Progress, device: Any,
                  dtype: Any, copy: bool, pack: bool = True) -> dict[str, Any]:
    """File.torch with a device or a dtype. pack: whether small tensors on a device may share
    blocks of memory."""
    tick = progress if callable(progress) else None
    target = check_device(device, "torch")
    wanted = None if dtype is None else known_dtype(dtype)
    kind = None if wanted is None else torch_dtype(wanted)
    if target is None and wanted is None:
        return file.torch(names, tick, copy=copy)
    chosen = [file[name] for name in (file if names is None else matching(file, names))]
    kinds = [kind if wanted is not None and is_kind(tensor.dtype, wanted) else None
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
