"""Columns of which all rows are null, as files in memory: what shards without them stand for."""
from __future__ import annotations

import json
import mmap
from math import prod
from typing import Any

from .. import _core
from ._kinds import Kind, kind_of
from ._types import ColumnFacts

__all__ = ["null_file"]

_PAGE = 4096  # below it a map costs more than bytes


def null_file(name: str, facts: ColumnFacts, rows: int) -> _core.File:
    """The tensors of so many null rows of a column. Their bytes are zeros that take no memory
    before they are read. ValueError for a column of no one shape."""
    header: dict[str, Any] = {}
    size = 0
    for key, dtype, shape in _tensors(name, facts, rows):
        end = size + prod(shape) * _core.DTYPES[dtype][0] // 8
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [size, end]}
        size = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    text = len(text).to_bytes(8, "little") + text
    data: Any = text + bytes(size) if size < _PAGE else _zeros(len(text) + size)
    if size >= _PAGE:
        data[:len(text)] = text
    return _core.open(memoryview(data), mode="map", level="compat")


def _zeros(size: int) -> mmap.mmap:
    private = getattr(mmap, "MAP_PRIVATE", None)
    if private is None:  # Windows
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=private | mmap.MAP_ANONYMOUS)


def _tensors(name: str, facts: ColumnFacts, rows: int) -> list[tuple[str, str, list[int]]]:
    valid, ends = (name + ".valid", "BOOL", [rows]), (name + ".offsets", "I64", [rows + 1])
    encoding, dtype, shape = facts.get("encoding"), facts["dtype"], facts["shape"]
    if encoding == "nested":
        return _nested(name, kind_of(facts), rows)
    if encoding:
        return [(name, dtype or "U8", [0]), ends, valid]
    if dtype is None or shape is None:
        raise ValueError("%s: expected one dtype and shape of a column that shards lack" % name)
    return [(name, dtype, [rows, *shape]), valid]


def _nested(name: str, kind: Kind, rows: int) -> list[tuple[str, str, list[int]]]:
    found: list[tuple[str, str, list[int]]] = []
    left = [(name, kind, rows)]
    while left:
        path, one, count = left.pop()
        found.append((path + ".valid", "BOOL", [count]))
        if one.form == "struct":
            left += [(path + "." + field, inner, count) for field, inner in one.inner.items()]
            continue
        if one.form == "value":
            found.append((path, one.dtype or "", [count, *([one.width] if one.width else [])]))
            continue
        found.append((path + ".offsets", "I64", [count + 1]))
        if one.form == "list":
            left.append((path + ".item", one.item, 0))
        else:
            found.append((path, "U8", [0]))
    return found
