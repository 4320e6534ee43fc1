"""Tensors in memory as a File: what functions that compute models read where they are given no path."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from . import _core
from ._output import row_bytes
from ._types import Model

__all__ = ["header_of", "is_one", "model", "rows_of"]

_PACKED = 4  # tensors that are held as copies, because their elements are not packed


def rows_of(tensors: Iterable[tuple[str, Any]], kept: list[Any]) -> list[tuple[Any, ...]]:
    """Rows for _core of Tensors, tensors of torch, arrays of numpy and what becomes one; kept gets
    the owners of their memory."""
    torch = sys.modules.get("torch")
    rows: list[tuple[Any, ...]] = []
    for name, value in tensors:
        if isinstance(value, _core.Tensor):
            rows.append((name, value.dtype, value.shape, value, None))
        elif torch is not None and isinstance(value, torch.Tensor):
            from .torch import _lazy_row
            rows.append(_lazy_row(name, value, kept))
        else:
            import numpy as np
            from .numpy import _row, check_mask
            check_mask(name, value)
            if hasattr(value, "__array__"):
                value = np.asarray(value)  # without subclasses, which may slice otherwise
            row = _row(name, value)
            kept.append(row[5])
            rows.append(row[:5])
    return rows


def _place(owner: Any) -> tuple[int, int]:
    """Where a tensor of torch or an array of numpy has its elements: address and bytes."""
    if hasattr(owner, "data_ptr"):
        return owner.data_ptr(), owner.nbytes
    return owner.__array_interface__["data"][0], owner.nbytes


class _Enough(Exception):
    """Ends what is written for its header."""


class _Header:
    """An object to save to that keeps the header and takes no data."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, data: bytes, /) -> None:
        self.text += data
        if len(self.text) >= 8 and len(self.text) - 8 >= int.from_bytes(self.text[:8], "little"):
            self.text = self.text[8:8 + int.from_bytes(self.text[:8], "little")]
            raise _Enough


def header_of(rows: list[tuple[Any, ...]], metadata: Mapping[str, str] | None) -> bytes:
    """The header of a file of these rows, in their order."""
    head = _Header()
    try:
        _core.save_file(head, rows, metadata, keep_order=True)
    except _Enough:
        pass
    return head.text


class _Bytes:
    """The bytes of a file of tensors, which are taken from them as they are asked for."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._kept: list[list[Any]] = []  # of each row; the last owns what the row names
        self._rows: list[tuple[Any, ...]] = []
        for item in tensors.items():
            self._kept.append([])
            self._rows += rows_of([item], self._kept[-1])
        metadata = getattr(tensors, "metadata", None)
        text = header_of(self._rows, metadata() if callable(metadata) else None)
        self._head = len(text).to_bytes(8, "little") + text
        self._begins = list(accumulate(map(row_bytes, self._rows), initial=len(self._head)))
        self.size = self._begins[-1]
        self._packed: dict[int, memoryview] = {}
        self._lock = threading.Lock()

    def _copy(self, number: int) -> memoryview:
        """Of a tensor that is not packed, or of a file: its elements may have been changed in memory."""
        with self._lock:
            found = self._packed.pop(number, None)
            if found is None:
                text = _core.save_bytes([self._rows[number]])
                found = memoryview(text)[8 + int.from_bytes(text[:8], "little"):]
            self._packed[number] = found
            while len(self._packed) > _PACKED:
                del self._packed[next(iter(self._packed))]
        return found

    def read_at(self, offset: int, length: int) -> Any:
        """Bytes of the header, or of one tensor."""
        if offset < len(self._head):
            return self._head[offset:offset + length]
        number = bisect_right(self._begins, offset) - 1
        if number == len(self._rows):
            return b""
        begin, end = offset - self._begins[number], self._begins[number + 1] - self._begins[number]
        end = min(end, begin + length)
        data, strides = self._rows[number][3:]
        if isinstance(data, tuple) and _place(self._kept[number][-1]) != data:
            raise ValueError("tensor \"%s\": its memory was resized while it was read"
                             % self._rows[number][0])
        if strides is None and isinstance(data, tuple):
            return (ctypes.c_char * (end - begin)).from_address(data[0] + begin)
        if strides is None and hasattr(data, "read_at"):
            return data.read_at(begin, end - begin)
        if strides is None and not isinstance(data, _core.Tensor):
            return data.reshape(-1).view("u1")[begin:end]  # an array of numpy
        return self._copy(number)[begin:end]


def is_one(source: Any) -> bool:
    """Whether it is one model, and not several to iterate over."""
    return (isinstance(source, (str, bytes, bytearray, memoryview, os.PathLike, Mapping))
            or hasattr(source, "read") or hasattr(source, "read_at"))


def model(source: Model) -> Any:
    """What _core opens as a model: a path, a URL and a File as they are, a File of tensors in memory
    and of an object that is read."""
    if isinstance(source, (str, bytes, os.PathLike, _core.File)):
        return source
    given: Any = _Bytes(source) if isinstance(source, Mapping) else source
    return _core.open(given, mode="read")
