"""Rows of a KV dataset as Arrow: the name, and a struct of each tensor's bytes, shape and dtype."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import _core
from ._layout import KeyLayout

__all__ = ["KeyRows"]

_BATCH_BYTES = 64 << 20


class KeyRows:
    def __init__(self, layout: KeyLayout) -> None:
        self._layout = layout
        self._columns = {column or "data": column for column in layout.columns}
        self.names = [layout.name_col, *self._columns]
        if len(set(self.names)) != len(self.names):
            raise ValueError("expected other columns than that of the names, found %s twice"
                             % layout.name_col)

    def schema(self, names: Sequence[str]) -> Any:
        import pyarrow as pa
        missing = [name for name in names if name not in self.names]
        if missing:
            raise KeyError("expected columns of the dataset (%s), found %s"
                           % (", ".join(self.names), ", ".join(missing)))
        tensor = pa.struct([("data", pa.large_binary()), ("shape", pa.list_(pa.int64())),
                            ("dtype", pa.string())])
        return pa.schema([(name, tensor if name != self.names[0] else pa.string())
                          for name in names])

    def batches(self, names: Sequence[str], spans: Sequence[tuple[int, int, int]]) -> Iterator[Any]:
        """Batches of (shard, first row, end), of about 64 MiB at most."""
        import pyarrow as pa
        schema = self.schema(names)
        values = [self._columns[name] for name in names if name != self.names[0]]
        for shard, start, stop in spans:
            rows = self._layout.names(shard)[start:stop]
            found = [self._layout.tensors(shard, name, values) for name in rows]
            for begin, end in _pieces(found):
                self._expect(shard, found[begin:end])
                columns = [pa.array(rows[begin:end], pa.string()) if name == self.names[0] else
                           pa.array([_struct(one.get(self._columns[name]))
                                     for one in found[begin:end]], schema.field(name).type)
                           for name in names]
                yield pa.RecordBatch.from_arrays(columns, schema=schema) if names else \
                    pa.RecordBatch.from_struct_array(pa.array([{}] * (end - begin), pa.struct([])))

    def _expect(self, shard: int, rows: Sequence[dict[str, _core.Tensor]]) -> None:
        self._layout.shards.expect(shard, [part for one in rows for tensor in one.values()
                                           for part in tensor.byte_ranges()])


def _pieces(rows: Sequence[dict[str, _core.Tensor]]) -> Iterator[tuple[int, int]]:
    begin = held = 0
    for i, one in enumerate(rows):
        held += sum(tensor.nbytes for tensor in one.values())
        if held >= _BATCH_BYTES or i + 1 == len(rows):
            yield begin, i + 1
            begin, held = i + 1, 0


def _struct(tensor: _core.Tensor | None) -> Any:
    return None if tensor is None else \
        {"data": tensor.tobytes(), "shape": list(tensor.shape), "dtype": tensor.dtype}
