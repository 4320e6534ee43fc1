"""Rows of nested columns: lists of anything but numbers, or of numbers of which some are null."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import _core
from ._columns import Column, gathered, joined
from ._kinds import Kind, kind_of
from ._parts import Part
from ._shards import Shards
from ._types import ColumnFacts

__all__ = ["Nested"]

_Array = Callable[[_core.Tensor], Any]


class Nested:
    """facts: of such columns only."""

    def __init__(self, shards: Shards, facts: Mapping[str, ColumnFacts]) -> None:
        self.shards = shards
        self.facts = facts
        self._kinds = {name: kind_of(one) for name, one in facts.items()}

    def slice(self, shard: int, name: str, start: int, stop: int, array: _Array) -> Column:
        """Consecutive rows. array: makes an array of a tensor."""
        part = _Rows(self.shards, self.shards.of(shard, name), self.facts[name])
        part.array = array
        made: Column = part.rows(name, self._kinds[name], self.shards.facts[shard]["samples"],
                                 start, stop)
        return made

    def take(self, name: str, parts: Mapping[int, tuple[Any, Any]], count: int,
             array: _Array) -> Column:
        """Rows of any shards: shard -> (places in the result, rows of the shard)."""
        import numpy as np
        some = [self._some(shard, name, rows, array) for shard, (_, rows) in parts.items()]
        order = np.argsort(np.concatenate([places for places, _ in parts.values()]))
        made: Column = gathered(joined(some), order)
        return made


    def _some(self, shard: int, name: str, rows: Any, array: _Array) -> Column:
        """Rows of one shard. Of what is not in memory, runs of rows are read, or all between the first
        and the last where more requests would cost more than these bytes."""
        import numpy as np
        found = np.unique(rows)
        first, end = int(found[0]), int(found[-1]) + 1
        file = self.shards.file(self.shards.of(shard, name))
        cuts = np.flatnonzero(np.diff(found) > 1)
        made: Column
        if not file.mapped and len(cuts):
            tensors = [one for one in file.values()
                       if one.name == name or one.name.startswith(name + ".")]
            size = sum(one.nbytes for one in tensors)
            share = size * (end - first) // self.shards.facts[shard]["samples"]
            if self.shards.pays(len(cuts) * len(tensors), share):
                firsts = found[np.append(0, cuts + 1)]
                ends = found[np.append(cuts, len(found) - 1)] + 1
                runs = [self.slice(shard, name, begin, stop, array)
                        for begin, stop in zip(firsts.tolist(), ends.tolist())]
                run = np.searchsorted(firsts, rows, "right") - 1
                before = np.cumsum(np.append(0, ends - firsts))[:-1]
                made = gathered(joined(runs), before[run] + rows - firsts[run])
                return made
        made = gathered(self.slice(shard, name, first, end, array), rows - first)
        return made


class _Rows(Part):
    array: _Array

    def rows(self, name: str, kind: Kind, rows: int, start: int, stop: int) -> Any:
        """Rows start to stop of the column of this name, which has so many: a Column, or an array
        of numbers of which none is null."""
        if kind.form == "struct":
            return Column({field: self.rows(name + "." + field, inner, rows, start, stop)
                           for field, inner in kind.inner.items()}, None,
                          self.valid(name, rows, start, stop), "struct")
        if kind.form == "list":
            return self._lists(name, kind, rows, start, stop)
        valid = self.valid(name, rows, start, stop)
        if kind.form == "value":
            width = [kind.width] if kind.width else []
            values = self.array(self.tensor(name, kind.dtype or "", [rows, *width])[start:stop])
            return values if valid is None or valid.all() else Column(values, None, valid, None)
        return self._bytes(name, kind.form, rows, start, stop, valid)

    def _bytes(self, name: str, form: str, rows: int, start: int, stop: int, valid: Any) -> Column:
        import numpy as np
        tensor = self.tensor(name, "U8", [None])
        ends = self.ends(name, rows, tensor.shape[0])[start:stop + 1]
        data = self.data(tensor[int(ends[0]):int(ends[-1])])
        values = np.frombuffer(data, np.uint8) if ends[-1] > ends[0] else np.zeros(0, np.uint8)
        return Column(values, ends - ends[0], valid, form)

    def _lists(self, name: str, kind: Kind, rows: int, start: int, stop: int) -> Column:
        valid = self.valid(name, rows, start, stop)
        if name not in self.file:
            ends = self.ends(name, rows, None)
            count, ends = int(ends[-1]), ends[start:stop + 1]
            values = self.rows(name + ".item", kind.item, count, int(ends[0]), int(ends[-1]))
            return Column(values, ends - ends[0], valid, "list")
        if name + ".offsets" in self.file:
            tensor = self.tensor(name, kind.item.dtype or "", [None])
            ends = self.ends(name, rows, tensor.shape[0])[start:stop + 1]
            values = self.array(tensor[int(ends[0]):int(ends[-1])])
            return Column(values, ends - ends[0], valid, "list")
        return self._stacked(name, kind, rows, start, stop, valid)

    def _stacked(self, name: str, kind: Kind, rows: int, start: int, stop: int,
                 valid: Any) -> Column:
        """Lists of one shape, as lists of lists."""
        import numpy as np
        levels = 0
        while kind.form == "list":
            kind, levels = kind.item, levels + 1
        tensor = self.tensor(name, kind.dtype or "", [rows, *[None] * levels])
        sizes = [stop - start, *tensor.shape[1:]]
        values = self.array(tensor[start:stop]).reshape(-1)
        for level in range(levels, 0, -1):
            count = int(np.prod(sizes[:level]))
            values = Column(values, np.arange(count + 1, dtype=np.int64) * sizes[level],
                            valid if level == 1 else None, "list")
        made: Column = values
        return made
