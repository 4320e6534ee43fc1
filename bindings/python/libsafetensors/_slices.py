"""PySafeSlice: a tensor of safe_open to be indexed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from . import _core
from ._core import SafetensorError

__all__ = ["PySafeSlice", "integer"]


if TYPE_CHECKING:
    from typing import Generic, TypeVar

    _T = TypeVar("_T")

    class _Base(Generic[_T]):
        """Type checkers see PySafeSlice by what its parts are."""

        __slots__ = ()
else:
    _T = Any
    _Base = {_T: object}


class PySafeSlice(_Base[_T]):
    """One tensor of a file, to be indexed; only the selected elements are read.

    With torch, indices are those of torch, also lists and masks, and slices may have negative
    steps. With the others they are those of numpy, except that an index or stop beyond the end
    and a list that is not empty raise SafetensorError, as in the official package.
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

    def __getitem__(self, index: Any) -> _T:
        if not self._torch:
            shape = self._tensor.shape
            if not _fits(index, shape):
                index = _numpy_index(index, shape)
            made: _T = self._make(self._tensor[index])
            return made
        # One float4 of torch is two elements: its shape differs from the header's.
        if _is_basic(index) and self._tensor.dtype != "F4":
            made = self._make(self._tensor[index])
        else:
            made = self._make(self._tensor)[index]
        return made


def _is_basic(index: Any) -> bool:
    """Only integers, slices and one ellipsis, which the library reads by itself."""
    parts = index if type(index) is tuple else (index,)
    return (all(type(part) in (int, slice) or part is Ellipsis for part in parts)
            and parts.count(Ellipsis) < 2)


def _fits(index: Any, shape: tuple[int, ...]) -> bool:
    """Fast path: only integers and slices that stay within the shape."""
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
    """The index as a tuple without Ellipsis. SafetensorError as the class says."""
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
        ", ".join(map(_text_of, parts)), list(shape), text))


def _part(position: int, part: Any) -> Any:
    """A slice of integers, an integer or Ellipsis."""
    if part is Ellipsis:
        return part
    if isinstance(part, slice):
        start, stop, step = (None if x is None else integer(x)
                             for x in (part.start, part.stop, part.step))
        if step == 0:
            raise SafetensorError("Slice step must not be zero")
        return slice(start, stop, step)
    try:
        return integer(part)
    except TypeError:
        raise SafetensorError("Unsupported slice index at position %d: expected slice, int, or "
                              "ellipsis" % position) from None


def _text_of(part: Any) -> str:
    if not isinstance(part, slice):
        return str(part)
    start, stop, step = ("" if x is None else str(x) for x in (part.start, part.stop, part.step))
    return "%s:%s" % (start, stop) + (":" + step if step not in ("", "1") else "")


def _beyond(part: Any, axis: int, size: int) -> int | None:
    """The index beyond the end of its dimension, or None."""
    if isinstance(part, slice):
        if part.stop is None or part.stop <= size or (part.step or 1) < 0:
            return None
        start: int = part.start or 0
        return start if start >= size else int(part.stop) - 1
    if part < -size:
        raise SafetensorError("Invalid index %d for dimension %d of size %d" % (part, axis, size))
    return int(part) if part >= size else None


def integer(value: Any) -> int:
    """Any kind of integer as an int, else TypeError."""
    if type(value) is int:
        return value
    from operator import index
    return index(value)
