"""Some of a dataset's rows, one after the other."""
from __future__ import annotations

import re
from collections.abc import Iterator
from operator import index
from typing import Any

from ._layout import Layout, row_numbers

__all__ = ["Subset", "limits_of"]

_BOUND = re.compile(r"(\d{1,19})(%?)")


class Subset:
    """Rows from start to stop of a layout, under numbers from 0 on."""

    def __init__(self, whole: Layout, start: int, stop: int) -> None:
        self.whole, self.start, self.stop = whole, start, stop
        self.mode = whole.mode
        self.columns = whole.columns

    def schema(self) -> Any:
        return self.whole.schema()

    def count(self) -> int:
        return self.stop - self.start

    def bounds(self) -> Iterator[tuple[int, int]]:
        for begin, end in self.whole.bounds():
            begin, end = max(begin, self.start), min(end, self.stop)
            if begin < end:
                yield begin - self.start, end - self.start

    def row(self, number: int) -> dict[str, Any]:
        return self.whole.row(self.start + number)

    def named(self, name: str) -> dict[str, Any]:
        raise TypeError("expected the number of a row (those of a part have no names), found %r"
                        % (name,))

    def tensor(self, key: str) -> Any:
        return self.whole.tensor(key)

    def take(self, numbers: Any, framework: str) -> dict[str, Any]:
        import numpy as np
        count = self.count()
        if isinstance(numbers, range) and numbers.step == 1 and numbers and \
                0 <= numbers.start and numbers.stop <= count:
            return self.whole.take(range(self.start + numbers.start, self.start + numbers.stop),
                                   framework)
        wanted = row_numbers(numbers)
        if wanted.size and (int(wanted.min()) < -count or int(wanted.max()) >= count):
            raise IndexError("expected rows from 0 to %d" % (count - 1))
        wanted = np.where(wanted < 0, wanted + count, wanted) + self.start
        return self.whole.take(wanted.tolist() if len(wanted) == 1 else wanted, framework)


def _bound(text: str, count: int, none: int) -> int:
    """A number of rows, or a share of all in percent, rounded down."""
    if not text:
        return none
    found = _BOUND.fullmatch(text)
    if not found or (found[2] and int(found[1]) > 100):
        raise ValueError("split: expected rows such as \"0:90%%\", \"90%%:\" or \"1000:2000\", "
                         "found %.40r" % text)
    return count * int(found[1]) // 100 if found[2] else int(found[1])


def limits_of(count: int, rows: Any, split: str | None) -> tuple[int, int]:
    """The first row chosen, and the one behind the last. ValueError, TypeError."""
    if rows is not None and split is not None:
        raise ValueError("expected rows or split, found both")
    if split is not None:
        begin, found, end = split.partition(":")
        if not found:
            raise ValueError("split: expected FROM:TO, found %.40r" % split)
        start, stop = _bound(begin.strip(), count, 0), _bound(end.strip(), count, count)
    elif isinstance(rows, range):
        if rows.step != 1:
            raise ValueError("rows: expected them one after the other, found %r" % (rows,))
        start, stop = rows.start, max(rows.start, rows.stop)
    else:
        try:
            start, stop = map(index, rows)
        except (TypeError, ValueError):
            raise TypeError("rows: expected whole numbers, the first and the one behind the last, "
                            "or a range, found %r" % (rows,)) from None
    if not 0 <= start <= stop <= count:
        raise ValueError("%s: expected from 0 to %d rows of the dataset, found %d to %d"
                         % ("rows" if split is None else "split", count, start, stop))
    return start, stop
