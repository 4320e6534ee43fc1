"""Pieces of shards as Arrow columns with their number of rows, for each layout."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..dataset._arrow import ArrowRows, kept
from ..dataset._kinds import is_typed
from ..dataset._layout import KeyLayout
from ..dataset._varying import Varying
from ._types import cast_to
from ._values import LARGEST, column_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .. import _core
    from ..dataset._shards import Shards
    from ..dataset._types import ColumnFacts, Manifest, ShardFacts
    Columns = tuple[list[Any], int]

__all__ = ["Piece", "file_row", "sample_rows", "tensor_rows"]

_BATCH_BYTES = 32 << 20
_BATCH_ROWS = 1 << 14
_NAMED_ROWS = 1 << 12


class Piece:
    """What one task reads of one shard. facts: of the shard; version: of its manifest; start,
    stop: rows, only for layout=samples; hidden: tensors that later ones have replaced, or of deleted
    rows; varying: columns whose rows are more than numbers, vary in length or may be null; mask: of
    deleted rows, for layout=samples; places: of columns that the shard lacks, as Shards has them; named: what the manifest says of the names of rows, in KV mode
    for layout=samples."""

    __slots__ = ("facts", "hidden", "mask", "named", "places", "start", "stop", "varying", "version")

    def __init__(self, facts: ShardFacts, version: int | None, start: int, stop: int,
                 hidden: frozenset[str], varying: Mapping[str, ColumnFacts],
                 mask: bytes | None = None, named: Manifest | None = None,
                 places: Any = None) -> None:
        self.named, self.places = named, places
        self.facts, self.version, self.varying, self.mask = facts, version, varying, mask
        self.start, self.stop, self.hidden = start, stop, hidden


def file_row(shards: Shards, i: int, piece: Piece, kinds: Any) -> Iterator[Columns]:
    """One row; none for a file without a tensor of any column."""
    import pyarrow as pa
    files = [shards.file(at) for at in shards.files(i)[::-1]]  # what is beside the shard comes first
    there = [next((file[field.name] for file in files if field.name in file), None)
             if field.name not in piece.hidden else None for field in kinds]
    if there and all(tensor is None for tensor in there):
        return
    for field, tensor in zip(kinds, there):
        if tensor is None and not field.nullable:
            raise ValueError("%s: expected a tensor %s, whose column is NOT NULL, found none"
                             % (shards.name(i), field.name))
    yield [pa.nulls(1, field.type) if tensor is None else
           column_of(field.name, tensor, 1, tensor.shape, field.type)
           for field, tensor in zip(kinds, there)], 1


def sample_rows(shards: Shards, i: int, piece: Piece, kinds: Any) -> Iterator[Columns]:
    if piece.named is not None:
        yield from _named_rows(shards, i, piece, piece.named, kinds)
        return
    columns = _Samples(shards, i, piece, kinds)
    step = min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(1, columns.width)))
    for start in range(piece.start, piece.stop, step):
        stop = min(start + step, piece.stop)
        first, end, keep = shards.window(i, start, stop)
        yield [kept(columns.rows(field, first, end), keep) for field in kinds], stop - start


def _named_rows(shards: Shards, i: int, piece: Piece, manifest: Manifest,
                kinds: Any) -> Iterator[Columns]:
    """Rows of a KV dataset: the name, and the tensors of each column."""
    import pyarrow as pa
    layout = KeyLayout(shards, manifest, None, lambda: None)
    layout.hide(i, piece.hidden)
    columns = {column or "data": column for column in layout.columns}
    wanted = [columns[field.name] for field in kinds if field.name != layout.name_col]
    names = layout.names(i)[piece.start:piece.stop]
    rows = [layout.tensors(i, name, wanted) for name in names]
    begin = held = 0
    for at, one in enumerate(rows):
        held += sum(tensor.nbytes for tensor in one.values())
        if held < _BATCH_BYTES and at + 1 < len(rows) and at + 1 - begin < _NAMED_ROWS:
            continue
        some = rows[begin:at + 1]
        shards.expect(i, [part for row in some for tensor in row.values()
                          for part in tensor.byte_ranges()])
        yield [pa.array(names[begin:at + 1], field.type) if field.name == layout.name_col else
               _of_names(field, columns[field.name], names[begin:at + 1], some)
               for field in kinds], len(some)
        begin, held = at + 1, 0


def _of_names(field: Any, column: str, names: list[str], rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa
    for name, row in zip(names, rows):
        if column not in row:
            raise KeyError("%s: expected a tensor of the column %s, found none"
                           % (name, field.name))
    return pa.concat_arrays([column_of(field.name, row[column], 1, row[column].shape, field.type)
                             for row in rows])


class _Samples:
    """Rows of a shard's columns; width: about as many bytes has one of all."""

    def __init__(self, shards: Shards, i: int, piece: Piece, kinds: Any) -> None:
        self.shard, self.shards = i, shards
        typed = {name for name, facts in piece.varying.items() if is_typed(facts)}
        for name in kinds.names:
            if name not in typed and name not in shards.file(shards.of(i, name)):
                raise KeyError("%s: expected a tensor %s, found none" % (shards.name(i), name))
        shards.stacked(i, [name for name in kinds.names if name not in piece.varying])
        self.varying = Varying(shards, {name: facts for name, facts in piece.varying.items()
                                        if name not in typed})
        self.typed = ArrowRows(shards, {name: facts for name, facts in piece.varying.items()
                                        if name in typed and name in kinds.names})
        for field in kinds:
            if field.name in self.varying.facts:
                self.varying.check(i, field.name)
            if field.name not in typed:
                _check_kind(field, piece.varying.get(field.name, {}).get("encoding"))
        self.width = sum(
            tensor.nbytes for name in kinds.names
            for tensor in shards.file(shards.of(i, name)).values()
            if tensor.name == name or (name in typed and tensor.name.startswith(name + "."))
        ) // max(1, piece.facts["samples"])

    def rows(self, field: Any, start: int, stop: int) -> Any:
        if field.name in self.typed.columns:
            found = self.typed.column(self.shard, field.name, start, stop)
            if not field.nullable and found.null_count:
                raise _has_null(self.varying, self.shard, field.name)
            return cast_to(field.name, found, field.type)
        if field.name in self.varying.facts:
            return _varying_of(self.varying, self.shard, field, start, stop)
        tensor = self.shards.tensor(self.shard, field.name)
        return column_of(field.name, tensor[start:stop], stop - start, tensor.shape[1:],
                         field.type)


def _has_null(varying: Varying, i: int, name: str) -> ValueError:
    return ValueError("%s: %s: expected no null, whose column is NOT NULL, found some"
                      % (varying.shards.name(i), name))


def _check_kind(field: Any, encoding: str | None) -> None:
    """ValueError unless rows of this encoding can be of the field's type."""
    import pyarrow.types as types
    kind = field.type
    text = types.is_string(kind) or types.is_large_string(kind)
    data = types.is_binary(kind) or types.is_large_binary(kind)
    many = types.is_list(kind) or types.is_large_list(kind)
    if encoding is None and text or not {"utf8": text, "binary": data, "list": many}.get(
            encoding or "", True):
        raise ValueError("%s: expected a type for %s, found %s" % (
            field.name, {"utf8": "text", "binary": "bytes", "list": "lists of numbers (as=array)"}
            .get(encoding or "", "numbers"), kind))


def _varying_of(varying: Varying, i: int, field: Any, start: int, stop: int) -> Any:
    import numpy as np
    import pyarrow as pa
    name, tensor = field.name, varying.shards.tensor(i, field.name)
    encoding, valid = varying.facts[name].get("encoding"), varying.valid(i, name)
    valid = None if valid is None else valid[start:stop]
    if not field.nullable and valid is not None and not valid.all():
        raise _has_null(varying, i, name)
    if not encoding or tensor.ndim != 1:  # stacked
        found = column_of(name, tensor[start:stop], stop - start, tensor.shape[1:], field.type)
        if valid is None:
            return found
        return found.take(pa.array(np.arange(stop - start), mask=~valid))
    ends = varying.offsets(i, name)[start:stop + 1]
    begin, end = int(ends[0]), int(ends[-1])
    large = pa.types.is_large_string(field.type) or pa.types.is_large_binary(field.type) or \
        pa.types.is_large_list(field.type)
    if not large and end - begin > LARGEST:
        raise ValueError("%s: %s: expected at most %d elements in %d rows, found %d"
                         % (varying.shards.name(i), name, LARGEST, stop - start, end - begin))
    offsets = pa.py_buffer((ends - begin).astype(np.int64 if large else np.int32))
    bitmap = None if valid is None else pa.array(valid).buffers()[1]
    if encoding == "list":
        values = column_of(name, tensor[begin:end], end - begin, [], field.type.value_type)
        return pa.Array.from_buffers(field.type, stop - start, [bitmap, offsets],
                                     children=[values])
    found = pa.Array.from_buffers(field.type, stop - start, [
        bitmap, offsets, pa.py_buffer(tensor[begin:end].tobytes())])
    found.validate(full=True)
    return found


# ── One row per tensor ──

def tensor_rows(shards: Shards, i: int, piece: Piece, kinds: Any,
                keys: Iterable[str] | None) -> Iterator[Columns]:
    """Rows in the order of the file, and of those beside it. keys: only these."""
    for at in shards.files(i):
        yield from _tensor_rows(shards, at, piece, kinds, keys)


def _tensor_rows(shards: Shards, i: int, piece: Piece, kinds: Any,
                 keys: Iterable[str] | None) -> Iterator[Columns]:
    import numpy as np
    file = shards.file(i)
    tensors = [one for one in _chosen(file, keys) if one.name not in piece.hidden]
    data = "data" in kinds.names
    ends = np.cumsum([one.nbytes if data else 0 for one in tensors], dtype=np.int64)
    start = 0
    while start < len(tensors):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BATCH_BYTES, "right"))
        stop = max(start + 1, min(stop, start + _BATCH_ROWS))
        yield _tensor_columns(file, shards.name(i), tensors[start:stop], kinds), stop - start
        start = stop


def _chosen(file: _core.File, keys: Iterable[str] | None) -> list[_core.Tensor]:
    if keys is None:
        return file.values()
    found = [file[key] for key in dict.fromkeys(keys) if key in file]
    return sorted(found, key=lambda one: (one.offset, one.nbytes))


def _tensor_columns(file: _core.File, name: str, tensors: list[_core.Tensor],
                    kinds: Any) -> list[Any]:
    import pyarrow as pa
    make = {"file_name": lambda: pa.repeat(name, len(tensors)),
            "tensor_key": lambda: pa.array([one.name for one in tensors]),
            "dtype": lambda: pa.array([one.dtype for one in tensors]),
            "shape": lambda: pa.array([one.shape for one in tensors], pa.list_(pa.int64())),
            "data": lambda: _bytes_of(file, name, tensors)}
    return [make[field.name]().cast(field.type) for field in kinds]


def _bytes_of(file: _core.File, name: str, tensors: list[_core.Tensor]) -> Any:
    """Adjacent tensors are read together; mapped ones are not copied."""
    import numpy as np
    import pyarrow as pa
    for one in tensors:
        if one.nbytes > LARGEST:
            raise ValueError("%s: %s: expected at most %d bytes for one value of Spark, found %d"
                             % (name, one.name, LARGEST, one.nbytes))
    begins = np.array([one.offset for one in tensors], np.int64)
    ends = begins + np.array([one.nbytes for one in tensors], np.int64)
    cuts = [0, *(np.flatnonzero(begins[1:] != ends[:-1]) + 1).tolist(), len(tensors)]
    runs = []
    for start, stop in zip(cuts, cuts[1:]):
        first, last = int(begins[start]), int(ends[stop - 1])
        offsets = np.append(begins[start:stop], last) - first
        runs.append(pa.Array.from_buffers(pa.binary(), stop - start, [
            None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(file.memory(first, last))]))
    return runs[0] if len(runs) == 1 else pa.concat_arrays(runs)
