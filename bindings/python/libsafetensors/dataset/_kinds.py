"""Types of columns: Arrow's, as the manifest has them as text, and as trees."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ._types import ColumnFacts

__all__ = ["Kind", "is_typed", "kind_of", "leaves", "settled"]

_LISTS = ("list", "large_list", "list_view", "large_list_view", "fixed_size_list")
_BYTES = {"string": "utf8", "large_string": "utf8", "string_view": "utf8",
          "binary": "binary", "large_binary": "binary", "binary_view": "binary"}
_NAMES = {"bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16",
          "int32": "I32", "uint32": "U32", "int64": "I64", "uint64": "U64", "halffloat": "F16",
          "float": "F32", "double": "F64"}
_OTHERS = {dtype: name for name, dtype in _NAMES.items()}
_WIDE = {"timestamp": "I64", "date32": "I32", "date64": "I64", "time32": "I32", "time64": "I64",
         "duration": "I64", "decimal32": "I32", "decimal64": "I64"}
_WIDTHS = {"decimal128": 16, "decimal256": 32}
_DEEPEST = 64
_TOKEN = re.compile(r'\s*([A-Za-z_0-9]+(?:\[[^\]]*\]|\([^)]*\))?|"(?:\\.|[^"\\])*"|[<>,:])')


class Kind:
    """A type. form: "value", "utf8", "binary", "list", "struct"; text: Arrow's name of a value, of
    the kind of list, of text or bytes; dtype: of a value's tensor, whose values are rows of width
    U8 unless that is 0; size: elements of a list, where the type says it; inner: of a list one, of
    a struct by name."""

    __slots__ = ("dtype", "form", "inner", "size", "text", "width")

    def __init__(self, form: str, text: str, *, dtype: str | None = None, width: int = 0,
                 size: int | None = None, inner: dict[str, Kind] | None = None) -> None:
        self.form, self.text, self.dtype, self.width = form, text, dtype, width
        self.size, self.inner = size, inner or {}

    def __str__(self) -> str:
        if self.form == "struct":
            return "struct<%s>" % ", ".join("%s: %s" % (
                name if re.fullmatch(r"\w+", name, re.A) else json.dumps(name, ensure_ascii=False),
                inner) for name, inner in self.inner.items())
        if self.form != "list":
            return self.text
        return "%s<%s>%s" % (self.text, self.item, "" if self.size is None else "[%d]" % self.size)

    @property
    def item(self) -> Kind:
        return self.inner["item"]

    @property
    def logical(self) -> bool:
        """Whether a value is more than a number."""
        return self.form == "value" and self.text not in _NAMES and self.text != self.dtype


def _value(text: str) -> Kind:
    name = re.match(r"\w+", text)
    base = name[0] if name else ""
    if text in _BYTES:
        return Kind(_BYTES[text], text)
    if base == "fixed_size_binary":
        return Kind("value", text, dtype="U8", width=int(text[len(base) + 1:-1]))
    if base in _WIDTHS:
        return Kind("value", text, dtype="U8", width=_WIDTHS[base])
    dtype = _NAMES.get(text) or _WIDE.get(base)
    if dtype is None and not text.isupper() and not re.fullmatch(r"[A-Z][A-Z0-9_]*", text):
        raise ValueError("expected a type, found %r" % text)
    return Kind("value", text, dtype=dtype or text)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def next(self, *expected: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None or (expected and found[1] not in expected):
            raise ValueError("expected a type, found %r" % self._text)
        self._at = found.end()
        return found[1]

    def size(self) -> int:
        found = re.compile(r"\[(\d+)\]").match(self._text, self._at)
        if found is None:
            raise ValueError("expected a type, found %r" % self._text)
        self._at = found.end()
        return int(found[1])

    def more(self) -> bool:
        return self._at < len(self._text)


def _parsed(tokens: _Tokens, depth: int = 0) -> Kind:
    if depth > _DEEPEST:
        raise ValueError("expected a type of at most %d levels, found more" % _DEEPEST)
    text = tokens.next()
    if text == "struct":
        tokens.next("<")
        fields: dict[str, Kind] = {}
        mark = ","
        while mark == ",":
            name = tokens.next()
            tokens.next(":")
            fields[json.loads(name, strict=False) if name[0] == '"' else name] = _parsed(
                tokens, depth + 1)
            mark = tokens.next(",", ">")
        return Kind("struct", text, inner=fields)
    if text in _LISTS:
        tokens.next("<")
        item = _parsed(tokens, depth + 1)
        tokens.next(">")
        size = tokens.size() if text == "fixed_size_list" else None
        return Kind("list", text, size=size, inner={"item": item})
    return _value(text)


def kind_of(facts: ColumnFacts) -> Kind:
    """The type of a column. ValueError for one that this version does not know."""
    text, dtype, encoding = facts.get("type"), facts["dtype"], facts.get("encoding")
    if text is not None and text != "fixed_shape_tensor":
        tokens = _Tokens(text)
        kind = _parsed(tokens)
        if tokens.more():
            raise ValueError("expected a type, found %r" % text)
        return kind
    if encoding in ("utf8", "binary"):
        return Kind(encoding, {"utf8": "string", "binary": "binary"}[encoding])
    if dtype is None:
        raise ValueError("expected one dtype, found several")
    kind = Kind("value", _OTHERS.get(dtype, dtype), dtype=dtype)
    shape = facts["shape"]
    sizes = [None] if encoding == "list" else [None] * len(shape or ())
    for _ in sizes:
        kind = Kind("list", "list", inner={"item": kind})
    return kind


def settled(facts: ColumnFacts) -> ColumnFacts:
    """Of lists of which there were no rows: as if they differed in length."""
    if facts.get("encoding") or facts["shape"] is not None or facts.get("type") is None:
        return facts
    kind = kind_of(facts)
    if kind.form != "list":
        return facts
    plain = kind.item.form == "value" and not kind.item.width
    return {**facts, "encoding": "list" if plain else "nested"}


def is_typed(facts: ColumnFacts) -> bool:
    """Whether rows are more than numbers, text or bytes, and lists of numbers."""
    if facts.get("encoding") == "nested":
        return True
    if facts.get("type") in (None, "fixed_shape_tensor"):
        return False
    kind = kind_of(facts)
    while kind.form == "list":
        kind = kind.item
    return kind.logical


def leaves(name: str, facts: ColumnFacts) -> Iterator[tuple[str, ColumnFacts]]:
    """A column; of structs, each field as a column of its own, by the name of its tensors."""
    if facts.get("encoding") != "nested":
        yield name, facts
        return
    left = [(name, kind_of(facts))]
    while left:
        path, kind = left.pop()
        if kind.form == "struct":
            left += [(path + "." + field, inner) for field, inner in kind.inner.items()][::-1]
            continue
        made: ColumnFacts = {"dtype": kind.dtype, "shape": None, "nullable": True,
                             "type": str(kind)}
        if kind.form == "value":
            made["shape"] = [kind.width] if kind.width else []
        elif kind.form == "list":
            made["encoding"] = "nested"
        else:
            made["dtype"] = "U8"
            made["encoding"] = "utf8" if kind.form == "utf8" else "binary"
        yield path, made
