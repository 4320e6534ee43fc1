"""Columns whose rows vary in length (text, bytes, lists of numbers) or may be null."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import _core
from ._columns import Column
from ._nested import Nested
from ._shards import Shards
from ._types import ColumnFacts

__all__ = ["Varying"]

_SHORT = 64  # bytes of a row below which rows are gathered by an index of their bytes


class Varying:
    """Reads such columns of a batch dataset; facts: of these columns only."""

    def __init__(self, shards: Shards, facts: Mapping[str, ColumnFacts]) -> None:
        self.shards = shards
        self.facts = facts
        self._nested = Nested(shards, {name: one for name, one in facts.items()
                                       if one.get("encoding") == "nested"})

    # ── Checked before use ──

    def _wrong(self, shard: int, name: str, expected: str) -> Exception:
        return self.shards.error("dataset_shard", "%s: %s: expected %s"
                                 % (self.shards.name(shard), name, expected))

    def check(self, shard: int, name: str) -> None:
        """Dtypes and shapes of the column's tensors in this shard; those of nested columns are
        checked as they are read."""
        if name in self._nested.facts:
            return
        rows, shard = self.shards.facts[shard]["samples"], self.shards.of(shard, name)
        file = self.shards.file(shard)
        tensor, facts = file[name], self.facts[name]
        valid = name + ".valid"
        if facts.get("nullable") and valid in file and (
                file[valid].dtype != "BOOL" or list(file[valid].shape) != [rows]):
            raise self._wrong(shard, valid, "BOOL of shape [%d]" % rows)
        if not facts.get("encoding"):
            if not tensor.shape or tensor.shape[0] != rows:
                raise self._wrong(shard, name, "%d rows, found shape %s"
                                  % (rows, list(tensor.shape)))
            return
        if tensor.dtype != facts["dtype"]:
            raise self._wrong(shard, name, "%s as in the manifest, found %s"
                              % (facts["dtype"], tensor.dtype))
        ends = name + ".offsets"
        if ends not in file:
            if facts["encoding"] != "list" or tensor.ndim != 2 or tensor.shape[0] != rows:
                raise self._wrong(shard, name, "rows end to end, with the tensor %s" % ends)
        elif file[ends].dtype != "I64" or list(file[ends].shape) != [rows + 1]:
            raise self._wrong(shard, ends, "I64 of shape [%d]" % (rows + 1))
        elif tensor.ndim != 1 or tensor.nbytes % max(tensor.shape[0], 1):
            raise self._wrong(shard, name, "one dimension of whole bytes, found %s of shape %s"
                              % (tensor.dtype, list(tensor.shape)))

    def offsets(self, shard: int, name: str) -> Any:
        """Where rows end: from 0, ascending, to the number of elements. Checked once, because a
        slice by wrong ones would be other rows without an error."""
        import numpy as np
        shard = self.shards.of(shard, name)
        file, ends = self.shards.file(shard), name + ".offsets"
        shape = file[name].shape
        if ends not in file:
            return np.arange(shape[0] + 1, dtype=np.int64) * shape[1]

        def checked() -> Any:
            found = _array_of(file, file[ends], "<i8")
            if found[0] != 0 or found[-1] != shape[0] or (found[1:] < found[:-1]).any():
                raise self._wrong(shard, ends, "offsets that ascend from 0 to %d" % shape[0])
            return found
        return self.shards.cached((shard, name, "offsets"), checked)

    def valid(self, shard: int, name: str) -> Any:
        """True for each row that is not null; None if all are."""
        shard, key = self.shards.of(shard, name), name + ".valid"
        file = self.shards.file(shard)
        if not self.facts[name].get("nullable") or key not in file:
            return None

        def checked() -> Any:
            raw = _array_of(file, file[key], "u1")
            if (raw > 1).any():
                raise self._wrong(shard, key, "only 0 and 1")
            return raw.view("?")
        return self.shards.cached((shard, name, "valid"), checked)

    # ── Rows ──

    def _flat(self, shard: int, name: str, begin: int, end: int) -> _core.Tensor:
        """Elements begin to end of all rows; of stacked rows, whole rows."""
        tensor = self.shards.tensor(shard, name)
        if tensor.ndim == 1:
            return tensor[begin:end]
        width = tensor.shape[1] or 1
        return tensor[begin // width:end // width]

    def slice(self, shard: int, name: str, start: int, stop: int,
              array: Callable[[_core.Tensor], Any]) -> Column:
        """Consecutive rows. array: makes an array of a tensor."""
        if name in self._nested.facts:
            return self._nested.slice(shard, name, start, stop, array)
        import numpy as np
        encoding, valid = self.facts[name].get("encoding"), self.valid(shard, name)
        valid = None if valid is None else valid[start:stop]
        if not encoding:
            return Column(array(self.shards.tensor(shard, name)[start:stop]), None, valid, None)
        ends = self.offsets(shard, name)
        tensor = self._flat(shard, name, int(ends[start]), int(ends[stop]))
        if encoding == "list":
            values = array(tensor).reshape(-1)
        else:
            values = _array_of(self.shards.file(self.shards.of(shard, name)), tensor, "u1")
        return Column(values, ends[start:stop + 1] - ends[start], valid, encoding)

    def take(self, name: str, parts: Mapping[int, tuple[Any, Any]], count: int,
             array: Callable[[_core.Tensor], Any],
             typed: Callable[[_core.Tensor, Any], Any]) -> Column:
        """Rows of any shards: shard -> (places in the result, rows of the shard). array: as of
        slice; typed: makes an array of bytes, with the dtype of a tensor."""
        if name in self._nested.facts:
            return self._nested.take(name, parts, count, array)
        import numpy as np
        encoding = self.facts[name].get("encoding")
        lengths, tensor = np.zeros(count, np.int64), None
        for shard, (places, rows) in parts.items():
            ends = self.offsets(shard, name)
            lengths[places] = ends[rows + 1] - ends[rows]
            tensor = self.shards.tensor(shard, name)
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        width = self._width(parts, name)
        out = np.empty(int(offsets[-1]) * width, np.uint8)
        for shard, (places, rows) in parts.items():
            self._copy(shard, name, offsets[places] * width, rows, width, out)
        values = typed(tensor, out) if encoding == "list" else out
        return Column(values, offsets, self.valid_of(name, parts, count), encoding)

    def valid_of(self, name: str, parts: Mapping[int, tuple[Any, Any]], count: int) -> Any:
        """As valid, of rows of any shards."""
        import numpy as np
        valid = np.ones(count, np.bool_)
        for shard, (places, rows) in parts.items():
            some = self.valid(shard, name)
            if some is not None:
                valid[places] = some[rows]
        return None if valid.all() else valid

    def _width(self, parts: Iterable[int], name: str) -> int:
        """Bytes of an element."""
        for shard in parts:
            tensor = self.shards.tensor(shard, name)
            count = int(self.offsets(shard, name)[-1])
            if count:
                return tensor.nbytes // count
        return 1

    def _copy(self, shard: int, name: str, to: Any, rows: Any, width: int, out: Any) -> None:
        import numpy as np
        shard, ends = self.shards.of(shard, name), self.offsets(shard, name)
        file = self.shards.file(shard)
        if file.mapped:
            raw = np.frombuffer(file[name], np.uint8)
            _gather(raw, ends[rows] * width, (ends[rows + 1] - ends[rows]) * width, to, out)
            return
        order = np.argsort(rows, kind="stable")
        found = np.unique(rows)
        cuts = np.flatnonzero(np.diff(found) > 1)
        firsts, lasts = found[np.append(0, cuts + 1)], found[np.append(cuts, len(found) - 1)]
        spans = [(int(ends[first]), int(ends[last + 1])) for first, last in zip(firsts, lasts)]
        tensors = [self._flat(shard, name, begin, end) for begin, end in spans]
        self.shards.expect(shard, [one for tensor in tensors for one in tensor.byte_ranges()])
        for first, last, (base, _), tensor in zip(firsts, lasts, spans, tensors):
            start, stop = np.searchsorted(rows[order], [first, last + 1]).tolist()
            some = order[start:stop]
            raw = np.frombuffer(tensor.tobytes(), np.uint8)
            here = rows[some]
            _gather(raw, (ends[here] - base) * width, (ends[here + 1] - ends[here]) * width,
                    to[some], out)


def _array_of(file: _core.File, tensor: _core.Tensor, dtype: str) -> Any:
    """The elements in one dimension: the memory of a mapped file, or a copy."""
    import numpy as np
    return np.frombuffer(tensor if file.mapped else tensor.tobytes(), dtype)


def _gather(raw: Any, begin: Any, lengths: Any, to: Any, out: Any) -> None:
    """Copies ranges of bytes."""
    import numpy as np
    total = int(lengths.sum())
    if total > _SHORT * len(lengths):
        for place, start, length in zip(to.tolist(), begin.tolist(), lengths.tolist()):
            out[place:place + length] = raw[start:start + length]
        return
    step = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[np.repeat(to, lengths) + step] = raw[np.repeat(begin, lengths) + step]
