"""File.stats(): statistics of many tensors, which notebooks show as a table with histograms. The
numbers are the library's: what is computed here is the sum of counts and the height of bars."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from . import _core
from ._arrays import matching
from ._progress import watch
from ._results import TensorStats
from ._types import Progress
from ._views import _ROWS, _text_html

__all__ = ["Stats", "file_stats"]

_Bins = Mapping[int, tuple[int, int]]
_HEADS = ("values", "zeros", "NaN", "inf", "min", "max", "mean", "std")


def _number(value: Optional[float]) -> str:
    return "" if value is None else "%d" % value if isinstance(value, int) else "%.6g" % value


def _svg(bins: _Bins, height: int) -> str:
    """Bars of counts by magnitude, powers of two: negative values left of the line, positive ones
    right of it, the smallest beside it. "" without values."""
    if not bins:
        return ""
    low, high = min(bins), max(bins)
    most = max(max(pair) for pair in bins.values()) or 1
    width, bar = high - low + 1, 5
    path = []
    for exponent, pair in bins.items():
        for place, count in zip((high - exponent, width + exponent - low), pair):
            if count:
                size = max(height * count / most, 1)
                path.append("M%d %dv-%.1fh%dv%.1fz" % (place * bar + (place >= width), height, size,
                                                       bar - 1, size))
    return ("<svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"values by magnitude\">"
            "<title>values by magnitude: 2^%d to 2^%d, negative left, positive right</title>"
            "<path d=\"%s\" fill=\"currentColor\" opacity=\".5\"/>"
            "<path d=\"M%d 0v%d\" stroke=\"currentColor\" opacity=\".5\"/></svg>"
            % (2 * width * bar + 1, height, low, high + 1, "".join(path), width * bar, height))


def _bins(stats: TensorStats) -> dict[int, tuple[int, int]]:
    return {exponent: (negative, positive)
            for exponent, negative, positive in stats.get("histogram", ())}


class Stats(dict[str, TensorStats]):
    """Result of File.stats(): the statistics of each tensor by its name; in a notebook a table."""

    def __repr__(self) -> str:
        return "<Stats of %d tensor%s>" % (len(self), "" if len(self) == 1 else "s")

    def histogram(self) -> list[tuple[int, int, int]]:
        """The histograms of all tensors as one, in the same form; empty if none was asked for."""
        sums: dict[int, tuple[int, int]] = {}
        for stats in self.values():
            for exponent, negative, positive in stats.get("histogram", ()):
                a, b = sums.get(exponent, (0, 0))
                sums[exponent] = a + negative, b + positive
        return [(exponent, *sums[exponent]) for exponent in sorted(sums)]

    def _row(self, name: str, stats: TensorStats) -> str:
        cells = [_number(value) for value in (
            stats["values"], stats["zeros"], stats["nan"], stats["inf"], stats["min"], stats["max"],
            stats["mean"], stats["std"])]
        return "<tr><td><code><bdi>%s</bdi></code></td>%s<td>%s</td></tr>" % (
            _text_html(name), "".join("<td>%s</td>" % cell for cell in cells),
            _svg(_bins(stats), 24))

    def _repr_html_(self) -> str:
        rows = [self._row(name, self[name]) for name in list(self)[:_ROWS]]
        if len(self) > _ROWS:
            rows.append("<tr><td colspan=\"10\">and %d more</td></tr>" % (len(self) - _ROWS))
        counts = [(one["values"], one["zeros"], one["nan"], one["inf"]) for one in self.values()]
        told = ", ".join("%d %s" % (sum(column), head)
                         for column, head in zip(zip(*counts), _HEADS))
        whole = _svg({one[0]: one[1:] for one in self.histogram()}, 60)
        return ("<strong>%s</strong> %s<br>%s<table><thead><tr><th>name</th>%s<th></th></tr></thead>"
                "<tbody>%s</tbody></table>" % (
                    _text_html(repr(self)[1:-1]), told, whole,
                    "".join("<th>%s</th>" % head for head in _HEADS), "".join(rows)))


def file_stats(file: _core.File, names: str | Iterable[str] | None, histogram: bool, threads: int,
               progress: Progress) -> Stats:
    """A tensor at a time, in the order of the data: what is not mapped is in memory one by one."""
    chosen = [file[name] for name in (file if names is None else matching(file, names))]
    total, done = sum(tensor.nbytes for tensor in chosen), 0
    found = Stats()
    with watch(progress, "reading") as tick:
        for tensor in chosen:
            found[tensor.name] = tensor.stats(
                threads=threads, histogram=histogram,
                progress=None if tick is None else lambda here, _: tick(done + here, total))
            done += tensor.nbytes
    return found
