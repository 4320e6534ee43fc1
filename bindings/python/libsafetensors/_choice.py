"""Lists and masks as indexes of a Tensor: numpy's advanced indexing, of what it selects is read."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core

__all__ = ["chosen"]


def _is_choice(part: Any) -> bool:
    return isinstance(part, list) or getattr(part, "ndim", 0) > 0


def _split(index: Any, rank: int) -> tuple[list[Any], Any, list[Any]]:
    """The parts before the list or mask, itself, and those behind it. IndexError."""
    parts = list(index) if isinstance(index, tuple) else [index]
    places = [at for at, part in enumerate(parts) if _is_choice(part)]
    if len(places) > 1:
        raise IndexError("expected at most one list or mask in an index, found %d" % len(places))
    at = places[0]
    choice = np.asarray(parts[at])
    if choice.size == 0 and isinstance(parts[at], list):
        choice = choice.astype(np.intp)
    if choice.dtype != bool and choice.dtype.kind not in "iu":
        raise IndexError("expected a list or array of integers or booleans as an index, found %s"
                         % choice.dtype)
    if choice.dtype != bool and choice.ndim != 1:
        raise IndexError("expected positions in one dimension, found %d" % choice.ndim)
    takes = choice.ndim if choice.dtype == bool else 1
    ellipses = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index has at most one ellipsis, found several")
    missing = rank - (len(parts) - len(ellipses) - 1 + takes)
    if missing < 0:
        raise IndexError("expected at most %d dimensions in an index, found %d"
                         % (rank, rank - missing))
    moved = False
    if ellipses:
        place = ellipses[0]
        beyond = parts[:place] if place < at else parts[place + 1:]
        moved = not all(isinstance(part, slice) for part in beyond)
        parts[place:place + 1] = [slice(None)] * missing
        at += missing - 1 if place < at else 0
    else:
        parts += [slice(None)] * missing
    before, behind = parts[:at], parts[at + 1:]
    # numpy moves the dimension to the front where slices separate it from an integer, or an
    # ellipsis, also one that stands for no dimension.
    moved = moved and any(isinstance(part, slice) for part in before)
    for side in (before[::-1], behind):
        kinds = [isinstance(part, slice) for part in side]
        if moved or True in kinds and False in kinds[kinds.index(True):]:
            raise IndexError("expected no slice between an integer and a list or mask: index twice, "
                             "tensor[0][:, [1, 2]]")
    return before, choice, behind


def _positions(choice: Any, shape: tuple[int, ...]) -> Any:
    """Positions in the one dimension that the dimensions of a mask, or that of a list, are."""
    if choice.dtype == bool:
        if choice.shape != shape:
            raise IndexError("expected a mask of the shape %s, found %s"
                             % (list(shape), list(choice.shape)))
        return np.flatnonzero(choice)
    size = shape[0]
    found = choice.astype(np.int64) if choice.dtype.kind == "i" else choice
    wrong = found[(found >= size) | (found < -size)] if found.dtype.kind == "i" \
        else found[found >= size]
    if wrong.size:
        raise IndexError("index %d is out of bounds for a dimension of size %d" % (wrong[0], size))
    found = found.astype(np.int64)
    return np.where(found < 0, found + size, found)


def _runs(positions: Any) -> Iterator[tuple[int, int]]:
    """Ends of ascending runs of neighbours: (first, last + 1)."""
    if positions.size:
        cuts = np.flatnonzero(np.diff(positions) != 1) + 1
        for first, last in zip(np.r_[0, cuts], np.r_[cuts, positions.size]):
            yield int(positions[first]), int(positions[last - 1]) + 1


def _bytes_of(tensor: _core.Tensor, shape: tuple[int, ...]) -> Any:
    """A tensor's bytes as an array: of its first dimensions, and the bytes of an element of them."""
    count = int(np.prod(shape, dtype=np.int64))
    data = np.frombuffer(tensor.tobytes(), np.uint8)
    return data.reshape(*shape, tensor.nbytes // count if count else 0)


def chosen(tensor: _core.Tensor, index: Any) -> _core.Tensor:
    """The elements of one list of positions or mask, beside integers and slices, in a new Tensor in
    memory. Neighbouring rows are read together. IndexError as numpy; SafetensorError for elements
    that do not begin at a byte."""
    before, choice, behind = _split(index, tensor.ndim)
    takes = choice.ndim if choice.dtype == bool else 1
    part = tensor[(*before, *[slice(None)] * takes, *behind)]
    at = sum(isinstance(one, slice) for one in before)
    shape = part.shape
    size = shape[at:at + takes]
    positions = _positions(choice, size)
    outer, inner = shape[:at], shape[at + takes:]
    each = int(np.prod(inner, dtype=np.int64))
    if each * _core.DTYPES[tensor.dtype][0] % 8:
        raise _core.SafetensorError("expected elements that begin at a byte, found %s of %d values"
                                    % (tensor.dtype, each))
    runs = list(_runs(positions))
    row = positions.size and 4 * positions.size >= positions.max() + 1 - positions.min()
    if takes > 1 or len(runs) > 64 and row:
        # Most of them are wanted, or a mask says of each element.
        low, high = (0, size[0]) if takes > 1 or not positions.size else (
            int(positions.min()), int(positions.max()) + 1)
        some = part[(*[slice(None)] * at, slice(low, high))]
        flat = _bytes_of(some, (*outer, (high - low) * int(np.prod(size[1:], dtype=np.int64))))
        data = np.take(flat, positions - low, axis=at)
    else:
        pieces = [_bytes_of(part[(*[slice(None)] * at, slice(first, end))], (*outer, end - first))
                  for first, end in runs if each]
        data = np.concatenate(pieces, axis=at) if pieces and part.nbytes else np.empty(0, np.uint8)
    found = (*outer, positions.size, *inner)
    row_of = (tensor.name, tensor.dtype, found, np.ascontiguousarray(data).reshape(-1), None)
    return _core.open(_core.save_bytes([row_of]))[tensor.name]
