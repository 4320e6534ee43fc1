"""How a File is shown in a notebook and pickled, and the value of a Tensor of one element."""
from __future__ import annotations

import os
import re
from typing import Any

from . import _core

__all__ = ["file_html", "item", "reduce_file", "reopen"]

_ROWS = 1000  # the most that a table shows
_SHOWN = 256  # characters of a name
_DEPTH = 8    # components of a name
_DOT = re.compile(r"\.(?![^{}]*\})")  # not in "{0..31}"
_NUMBER = re.compile(r"(?<![^./_-])[0-9]{1,18}(?![^./_-])")
# Controls, bidirectional controls, invisible and other characters that could mislead, as
# page/text.js has them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")


# ── Notebooks ──

def _size(number: int) -> str:
    """Bytes in the unit that suits them: "1.5 MiB"."""
    value, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return "%d B" % number if unit == "B" else "%.1f %s" % (value, unit)


def _span(numbers: set[str]) -> str:
    """The numbers at one place of the names: "7", or "{0..31}" if all between are there."""
    if len(numbers) == 1:
        return next(iter(numbers))
    low, high = min(map(int, numbers)), max(map(int, numbers))
    if high - low + 1 == len(numbers):
        return "{%d..%d}" % (low, high)
    return "{%s}" % ",".join(sorted(numbers, key=lambda text: (int(text), text)))


def _folded(file: _core.File) -> list[tuple[str, _core.Tensor, int]]:
    """Tensors whose names differ in numbers alone, of one dtype and shape, as one: the name, one
    of them, and how many. What is no full range of each number is not folded."""
    groups: dict[Any, list[_core.Tensor]] = {}
    for tensor in file.values():
        key = _NUMBER.sub("#", tensor.name), tensor.dtype, tensor.shape
        groups.setdefault(key, []).append(tensor)
    rows: list[tuple[str, _core.Tensor, int]] = []
    for group in groups.values():
        places = [set(column) for column in zip(*(_NUMBER.findall(t.name) for t in group))]
        full = 1
        for numbers in places:
            full *= len(numbers)
        if len(group) == 1 or full != len(group):
            rows.extend((tensor.name, tensor, 1) for tensor in group)
            continue
        spans = iter([_span(numbers) for numbers in places])
        rows.append((_NUMBER.sub(lambda _: next(spans), group[0].name), group[0], len(group)))
    return rows


def _text_html(text: str) -> str:
    """Text of strangers for a page: cut, controls as visible escapes, markup escaped."""
    from html import escape
    if len(text) > _SHOWN:
        text = text[:_SHOWN - 1] + "…"
    return escape(_HIDDEN.sub(lambda found: "\\u{%x}" % ord(found[0]), text))


def _row_html(name: str, tensor: _core.Tensor, count: int) -> str:
    cells = (name, "&times;%d" % count if count > 1 else "", tensor.dtype,
             " &times; ".join(map(str, tensor.shape)) or "scalar", _size(tensor.nbytes * count))
    return ("<tr><td><code><bdi>%s</bdi></code></td><td>%s</td><td>%s</td><td>%s</td>"
            "<td>%s</td></tr>" % (_text_html(cells[0]), *cells[1:]))


def _bar(share: float) -> str:
    """A bar in the colour of the text."""
    return ("<span style=\"display:inline-block;height:.7em;width:%.1fem;background:currentColor;"
            "opacity:.5\"></span>" % (12 * min(max(share, 0), 1)))


def _dtypes_html(file: _core.File) -> str:
    """How many bytes are of which dtype, as bars."""
    sums: dict[str, tuple[int, int]] = {}
    for tensor in file.values():
        count, size = sums.get(tensor.dtype, (0, 0))
        sums[tensor.dtype] = count + 1, size + tensor.nbytes
    total = sum(size for _, size in sums.values()) or 1
    if not sums:
        return ""
    return "<table><tbody>%s</tbody></table>" % "".join(
        "<tr><td>%s</td><td style=\"text-align:left\">%s %s</td><td>%d tensor%s</td></tr>"
        % (dtype, _bar(size / total), _size(size), count, "s" if count != 1 else "")
        for dtype, (count, size) in sorted(sums.items(), key=lambda one: -one[1][1]))


class _Branch:
    """What begins with the same components: branches by the next one, and sums of all below."""

    def __init__(self) -> None:
        self.branches: dict[str, _Branch] = {}
        self.tensors = self.bytes = 0


def _branch_html(name: str, branch: _Branch, total: int, left: list[int]) -> str:
    """A line that unfolds, or a plain one; left: how many lines there may be yet."""
    while len(branch.branches) == 1 and (next(iter(branch.branches.values())).tensors
                                         == branch.tensors):
        more, branch = next(iter(branch.branches.items()))
        name += "." + more
    left[0] -= 1
    line = "<code><bdi>%s</bdi></code> %s %s, %d tensor%s" % (
        _text_html(name), _bar(branch.bytes / total), _size(branch.bytes), branch.tensors,
        "s" if branch.tensors != 1 else "")
    below = [_branch_html(one, inner, total, left) for one, inner in branch.branches.items()
             if left[0] > 0]
    if not below:
        return "<div>%s</div>" % line
    return ("<details><summary>%s</summary><div style=\"margin-left:1.5em\">%s</div></details>"
            % (line, "".join(below)))


def _tree_html(rows: list[tuple[str, _core.Tensor, int]]) -> str:
    """Where the bytes are: a tree of what the names begin with. "" without components."""
    root = _Branch()
    for name, tensor, count in rows:
        branch = root
        root.bytes += tensor.nbytes * count
        for part in _DOT.split(name[:2 * _SHOWN], _DEPTH)[:-1]:
            branch = branch.branches.setdefault(part, _Branch())
            branch.tensors += count
            branch.bytes += tensor.nbytes * count
    left = [_ROWS]
    lines = [_branch_html(name, branch, root.bytes or 1, left)
             for name, branch in root.branches.items() if left[0] > 0]
    return "<details><summary>tree</summary>%s</details>" % "".join(lines) if lines else ""


def file_html(file: _core.File) -> str:
    """A table of the tensors behind a line that unfolds it, in which equal layers are one row, bars of
    the bytes by dtype, and a tree of the bytes by name."""
    shown = "<code><bdi>%s</bdi></code>" % _text_html(repr(file))
    if file.closed:
        return shown
    rows = _folded(file)
    more = len(rows) - _ROWS
    body = "".join(_row_html(*row) for row in rows[:_ROWS])
    if more > 0:
        body += "<tr><td colspan=\"5\">and %d more rows</td></tr>" % more
    return ("<details><summary>%s %s</summary><table><thead><tr><th>name</th>"
            "<th></th><th>dtype</th><th>shape</th><th>bytes</th></tr></thead><tbody>%s</tbody>"
            "</table></details>%s%s" % (shown, _size(file.nbytes), body, _dtypes_html(file),
                                        _tree_html(rows)))


# ── Values ──

def item(tensor: _core.Tensor) -> bool | int | float | complex:
    """The one element. ValueError for more or fewer."""
    if tensor.size != 1:
        raise ValueError("item: expected a tensor of one element, found %d" % tensor.size)
    data, kind = tensor.tobytes(), _core.DTYPES[tensor.dtype][1]
    if kind == "bool":
        return data != b"\0"
    if kind in ("int", "uint"):
        return int.from_bytes(data, "little", signed=kind == "int")
    from struct import unpack
    if kind == "complex":
        return complex(*unpack("<ff", data))
    value: float = unpack("<d", _core.cast(data, tensor.dtype, "F64"))[0]
    return value


# ── Pickling ──

def _fingerprint(file: _core.File) -> tuple[int, str]:
    """Bytes of all tensors, and a digest of the headers."""
    from hashlib import sha256
    digest = sha256()
    for shard in range(len(file.paths)):
        header = file.header(shard)
        digest.update(b"%d:" % len(header))
        digest.update(header)
    return file.nbytes, digest.hexdigest()


def reduce_file(file: _core.File, how: tuple[Any, dict[str, Any]] | None) -> tuple[Any, ...]:
    """For File.__reduce__: how to open it again. how: what open() was called with."""
    if how is None:
        raise TypeError("cannot pickle a File that is not of a path, or of a URL with a user or a "
                        "query: pickle what it was opened from")
    path, options = how
    if not _core.is_url(path):
        path = os.path.abspath(path)
    return reopen, (path, options, _fingerprint(file))


def reopen(path: Any, options: dict[str, Any], fingerprint: tuple[int, str]) -> _core.File:
    """The File that was pickled. ValueError if the headers are others now."""
    file = _core.open(path, **options)
    if _fingerprint(file) != tuple(fingerprint):
        file.close()
        raise ValueError("%s: expected the header that the file had when it was pickled, found "
                         "another" % os.fsdecode(path))
    return file
