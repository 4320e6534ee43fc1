"""Tensors of columns in one shard."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ._shards import Shards
from ._types import ColumnFacts

__all__ = ["Part"]


class Part:
    """The tensors of a column in one shard, checked before they are used: a slice by wrong offsets
    would be other rows without an error."""

    def __init__(self, shards: Shards, shard: int, facts: ColumnFacts) -> None:
        self.shards, self.shard = shards, shard
        self.file = shards.file(shard)
        encoding = facts.get("encoding")
        self.stacked = not encoding
        self._nullable = encoding == "nested" or facts.get("nullable", False)

    def wrong(self, name: str, expected: str) -> Exception:
        return self.shards.error("dataset_shard", "%s: %s: expected %s"
                                 % (self.shards.name(self.shard), name, expected))

    def data(self, tensor: _core.Tensor) -> Any:
        return tensor if self.file.mapped else tensor.tobytes()

    def tensor(self, name: str, dtype: str, shape: Sequence[int | None]) -> _core.Tensor:
        """None: any length."""
        if name not in self.file:
            raise self.wrong(name, "a tensor of this name, found none")
        found = self.file[name]
        if found.dtype != dtype or found.ndim != len(shape) or any(
                want not in (None, have) for want, have in zip(shape, found.shape)):
            raise self.wrong(name, "%s of shape %s, found %s of %s" % (
                dtype, [("…" if n is None else n) for n in shape], found.dtype,
                list(found.shape)))
        return found

    def _array(self, tensor: _core.Tensor, kind: str) -> Any:
        import numpy as np
        data = self.data(tensor)
        return np.frombuffer(data, kind) if tensor.nbytes else np.zeros(0, kind)

    def valid(self, name: str, rows: int, start: int, stop: int) -> Any:
        """True for each row that is not null; None if the column has no nulls here."""
        key = name + ".valid"
        if not self._nullable or key not in self.file:
            return None

        def checked() -> Any:
            raw = self._array(self.tensor(key, "BOOL", [rows]), "u1")
            if (raw > 1).any():
                raise self.wrong(key, "only 0 and 1")
            return raw.view("?")
        return self.shards.cached((self.shard, name, "marks"), checked)[start:stop]

    def ends(self, name: str, rows: int, last: int | None) -> Any:
        """Where rows end, of all rows."""
        key = name + ".offsets"

        def checked() -> Any:
            found = self._array(self.tensor(key, "I64", [rows + 1]), "<i8")
            if found[0] != 0 or (last is not None and found[-1] != last) or \
                    (found[1:] < found[:-1]).any():
                raise self.wrong(key, "offsets that ascend from 0%s"
                                 % ("" if last is None else " to %d" % last))
            return found
        return self.shards.cached((self.shard, name, "ends"), checked)
