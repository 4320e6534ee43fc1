"""Results of info, infos and diff in notebooks: the dicts that they are, which also show themselves.
Text of strangers is cut and escaped; colours are those of the page, light or dark."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._results import InfoResult
from ._views import _bar, _size, _text_html

__all__ = ["Diff", "Info", "Infos"]

_ROWS = 1000  # the most that a table shows
_WORDS = 12   # of trigger words
_FACTS = (("architecture", "architecture"), ("variant", "variant"), ("base model", "base_model"),
          ("base checkpoint", "base_checkpoint"), ("version", "version_name"), ("author", "author"),
          ("licence", "license"), ("date", "date"), ("weight", "preferred_weight"),
          ("clip skip", "clip_skip"), ("rating", "rating"), ("prediction", "prediction_type"),
          ("resolution", "resolution"), ("precision", "precision"),
          ("quantisation", "quantization"), ("description", "description"))


def _value(fact: Any) -> str:
    """The value of a fact as text; "" if it is not known."""
    if isinstance(fact, Mapping):
        fact = fact.get("value")
    if fact is None or isinstance(fact, (Mapping, bool)):
        return ""
    if isinstance(fact, (list, tuple)):
        return ", ".join(filter(None, map(_value, fact)))
    return str(fact)


def _one_line(text: str, most: int) -> str:
    """For repr: ASCII escapes of what is no plain text, and cut."""
    text = " ".join(text.split())
    text = text if len(text) <= most else text[:most - 1] + "…"
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _of(root: Any, *names: str) -> Any:
    for name in names:
        root = root.get(name) if isinstance(root, Mapping) else None
    return root


def _table(rows: Iterable[str], head: str = "") -> str:
    head = "<thead><tr>%s</tr></thead>" % head if head else ""
    return "<table>%s<tbody>%s</tbody></table>" % (head, "".join(rows))


def _row(*cells: str) -> str:
    """Cells are HTML."""
    return "<tr>%s</tr>" % "".join("<td style=\"text-align:left\">%s</td>" % one for one in cells)


def _more(count: int, columns: int) -> list[str]:
    return ["<tr><td colspan=\"%d\">and %d more</td></tr>" % (columns, count)] if count > 0 else []


# ── A model ──

def _name(info: Mapping[str, Any]) -> str:
    name = _value(_of(info, "model", "name"))
    return name or os.path.basename(str(info.get("path") or "")) or "model"


def _what(info: Mapping[str, Any]) -> str:
    """Kind, and the type and rank of an adapter."""
    kind = _value(_of(info, "model", "kind"))
    adapter = _value(_of(info, "adapter", "type"))
    rank = _of(info, "adapter", "rank", "max")
    return " ".join(filter(None, [kind, adapter, "rank %s" % rank if rank else ""]))


def _bytes(info: Mapping[str, Any]) -> str:
    size = _of(info, "file", "bytes") or _of(info, "set", "bytes")
    return _size(size) if isinstance(size, int) else ""


def _words(info: Mapping[str, Any]) -> list[str]:
    words = info.get("trigger_words")
    return [_value(_of(one, "text")) for one in words] if isinstance(words, list) else []


def _error(info: Mapping[str, Any]) -> str:
    return _value(_of(info, "error", "message"))


class Info(dict[str, Any]):
    """Result of info(): what docs/json-info.md says; in a notebook the label of the model."""

    def __repr__(self) -> str:
        if "models" in self:
            return "<Info of %d models in '%s'>" % (len(self["models"]),
                                                    _one_line(str(self.get("path") or ""), 60))
        told = [_what(self), _value(_of(self, "model", "base_model"))
                or _value(_of(self, "model", "architecture")), _bytes(self), _error(self)]
        return "<Info '%s' %s>" % (_one_line(_name(self), 60),
                                   _one_line(", ".join(filter(None, told)), 120))

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "kind", _text_html(_what(self))
        for title, name in _FACTS:
            yield title, _text_html(_value(_of(self, "model", name)))
        words = _words(self)
        shown = "  ·  ".join(words[:_WORDS])
        yield "trigger words", _text_html(shown) + (
            " … %d more" % (len(words) - _WORDS) if len(words) > _WORDS else "")
        yield "tags", _text_html(_value(_of(self, "model", "tags")))
        parameters = _of(self, "model", "parameters")
        size = [_bytes(self), "%d parameters" % parameters if isinstance(parameters, int) else ""]
        yield "size", ", ".join(filter(None, size))
        for one in self.get("conflicts") or ():
            told = " / ".join("%s (%s)" % (_value(_of(c, "value")), _value(_of(c, "source")))
                              for c in one.get("candidates") or ())
            yield "! " + _text_html(_value(one.get("field"))), _text_html(told)
        yield "error", _text_html(_error(self))
        yield "path", "<code><bdi>%s</bdi></code>" % _text_html(str(self.get("path") or ""))

    def _repr_html_(self) -> str:
        if "models" in self:
            return Infos(self["models"])._repr_html_()
        rows = [_row(title, "<bdi>%s</bdi>" % text) for title, text in self._facts() if text]
        dtypes = _of(self, "file", "dtypes")
        data = _of(self, "file", "data_bytes")
        if isinstance(dtypes, Mapping) and isinstance(data, int) and data > 0:
            rows += [_row(_text_html(dtype), "%s %s" % (_bar(one["bytes"] / data),
                                                        _size(one["bytes"])))
                     for dtype, one in dtypes.items()]
        return "<strong><bdi>%s</bdi></strong>%s" % (_text_html(_name(self)), _table(rows))


class Infos(list[InfoResult]):
    """Result of infos(): an Info for each model; in a notebook a table."""

    def __repr__(self) -> str:
        return "<Infos of %d models>" % len(self)

    def _repr_html_(self) -> str:
        rows = [_row(*("<bdi>%s</bdi>" % _text_html(text) for text in (
            _name(one), _error(one) or _what(one), _value(_of(one, "model", "base_model"))
            or _value(_of(one, "model", "architecture")), ", ".join(_words(one)[:3]), _bytes(one),
            str(one.get("path") or "")))) for one in self[:_ROWS]]
        rows += _more(len(self) - _ROWS, 6)
        return _table(rows, "".join("<th style=\"text-align:left\">%s</th>" % head for head in (
            "name", "what", "base", "trigger words", "bytes", "path")))


# ── Two models ──

def _shape(shape: Any) -> str:
    return " &times; ".join(map(str, shape)) or "scalar" if isinstance(shape, list) else ""


def _change(one: Mapping[str, Any]) -> str:
    """What differs of a tensor in both."""
    parts = []
    for what in ("dtype", "shape"):
        a, b = one.get(what) or (None, None)
        if a != b:
            parts.append("%s &rarr; %s" % tuple(
                _shape(side) if what == "shape" else _text_html(str(side)) for side in (a, b)))
    values = one.get("values") or {}
    if values:
        parts.append("%s of %s values, at most %s, cosine %s" % tuple(
            _text_html("%.6g" % values[key] if isinstance(values.get(key), float)
                       else str(values.get(key)))
            for key in ("differing", "compared", "max_abs", "cosine")))
    return "; ".join(parts)


class Diff(dict[str, Any]):
    """Result of diff(): what docs/json.md says; in a notebook a table of what differs."""

    def _count(self, name: str) -> int:
        return len(self.get(name) or ())

    def __repr__(self) -> str:
        if self.get("same"):
            return "<Diff: the same>"
        if self.get("same", False) is None:
            return "<Diff: the same, but not all tensors were read>"
        return "<Diff: %s>" % ", ".join(
            "%d %s" % (self._count(name), word) for name, word in (
                ("changed", "changed"), ("added", "added"), ("removed", "removed"),
                ("metadata", "keys of metadata")) if self._count(name))

    def _rows(self) -> Iterator[str]:
        for sign, name in (("&minus;", "removed"), ("+", "added")):
            for one in self.get(name) or ():
                yield _row(sign, "<code><bdi>%s</bdi></code>" % _text_html(one["name"]),
                           "%s %s" % (_text_html(one["dtype"]), _shape(one["shape"])), "")
        for one in self.get("changed") or ():
            values = one.get("values") or {}
            share = values["differing"] / values["compared"] if values.get("compared") else 0
            yield _row("&ne;", "<code><bdi>%s</bdi></code>" % _text_html(one["name"]),
                       _change(one), _bar(share))
        for one in self.get("metadata") or ():
            yield _row("metadata", "<code><bdi>%s</bdi></code>" % _text_html(one["key"]),
                       "<bdi>%s</bdi> &rarr; <bdi>%s</bdi>" % tuple(
                           "none" if one.get(side) is None else _text_html(str(one[side]))
                           for side in "ab"), "")

    def _repr_html_(self) -> str:
        rows = list(self._rows())
        shown = rows[:_ROWS] + _more(len(rows) - _ROWS, 4)
        return "<strong>%s</strong>%s" % (_text_html(repr(self)[1:-1]),
                                          _table(shown) if shown else "")
