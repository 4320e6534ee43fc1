"""Rows of a batch dataset as Arrow, of the types that were written. Buffers of mapped files are
shared."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import _core
from ._kinds import Kind, kind_of
from ._parts import Part
from ._shards import Shards
from ._types import ColumnFacts

__all__ = ["ArrowRows", "TooLarge", "arrow_type", "kept", "spans"]

_PLAIN = {"bool": "bool_", "halffloat": "float16", "float": "float32", "double": "float64"}
_CAST = {"BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
_LARGEST = (1 << 31) - 1


class TooLarge(ValueError):
    """More than 2 GiB of a type with offsets of 32 bits: fewer rows may fit."""


def spans(bounds: Iterable[tuple[int, int]], rows: range,
          size: int | None) -> list[tuple[int, int, int]]:
    """(shard, first row, end) of these rows of the dataset, at most `size` each. bounds: of the
    shards."""
    found = []
    for shard, (begin, end) in enumerate(bounds):
        first, last = max(begin, rows.start), min(end, rows.stop)
        step = size or max(last - first, 1)
        found += [(shard, start - begin, min(start + step, last) - begin)
                  for start in range(first, last, step)]
    return found


# ── Types ──

def arrow_type(name: str, kind: Kind) -> Any:
    """The pyarrow type. ValueError if Arrow has none."""
    import pyarrow as pa
    if kind.form == "struct":
        return pa.struct([pa.field(field, arrow_type(name, inner))
                          for field, inner in kind.inner.items()])
    if kind.form == "list":
        item = arrow_type(name, kind.item)
        make = {"list": pa.list_, "fixed_size_list": pa.list_}.get(kind.text) or \
            getattr(pa, kind.text)
        return make(item) if kind.size is None else make(item, kind.size)
    if kind.form != "value":
        return getattr(pa, kind.text)()
    return _value_type(name, kind.text)


def _value_type(name: str, text: str) -> Any:
    import pyarrow as pa
    base, _, rest = text.partition("(" if "(" in text else "[")
    parts = [part.strip() for part in rest[:-1].split(",")]
    if base.startswith("decimal"):
        return getattr(pa, base)(int(parts[0]), int(parts[1]))
    if base == "fixed_size_binary":
        return pa.binary(int(parts[0]))
    if base == "timestamp":
        return pa.timestamp(parts[0], parts[1][3:] if len(parts) > 1 else None)
    if base in ("time32", "time64", "duration"):
        return getattr(pa, base)(parts[0])
    if text in _CAST:
        return pa.float32()
    made = getattr(pa, _PLAIN.get(text, base), None)
    if made is None:
        raise ValueError("%s: Arrow has no type for %s" % (name, text))
    return made()


def kept(column: Any, keep: Any) -> Any:
    """The rows for which `keep` is true; None: all."""
    import numpy as np
    import pyarrow as pa
    if keep is None:
        return column
    try:
        return column.filter(pa.array(keep))
    except (NotImplementedError, pa.ArrowInvalid):  # views
        edges = np.flatnonzero(np.diff(np.concatenate(([0], keep.view("i1"), [0])))).tolist()
        return pa.concat_arrays([column.slice(begin, end - begin)
                                 for begin, end in zip(edges[::2], edges[1::2])])


# ── Buffers ──

def _bitmap(valid: Any) -> Any:
    import numpy as np
    import pyarrow as pa
    return None if valid is None or valid.all() else \
        pa.py_buffer(np.packbits(valid, bitorder="little"))


def _offsets(name: str, ends: Any, wide: bool) -> Any:
    import numpy as np
    import pyarrow as pa
    found = ends - ends[0]
    if not wide and len(found) and found[-1] > _LARGEST:
        raise TooLarge("%s: expected at most %d elements or bytes in %d rows, found %d"
                       % (name, _LARGEST, len(found) - 1, found[-1]))
    return pa.py_buffer(found if wide else found.astype(np.int32))


def _buffer(data: Any, width: int) -> Any:
    """The memory of a tensor, aligned for elements of this width."""
    import numpy as np
    import pyarrow as pa
    raw = np.frombuffer(data, np.uint8) if memoryview(data).nbytes else np.zeros(0, np.uint8)
    if width > 1 and raw.ctypes.data % min(width, 8):
        raw = raw.copy()
    return pa.py_buffer(raw)


# ── Columns ──

class ArrowRows:
    """columns: name -> facts, as in the manifest."""

    def __init__(self, shards: Shards, columns: Mapping[str, ColumnFacts]) -> None:
        self.shards = shards
        self.columns = dict(columns)
        self._kinds: dict[str, Kind] = {}
        for name, facts in self.columns.items():
            try:
                self._kinds[name] = kind_of(facts)
                if facts["shape"] is None and not facts.get("encoding") and "type" not in facts:
                    raise ValueError("expected one shape, found several")
            except ValueError as error:
                raise ValueError("%s: %s" % (name, error)) from None

    def schema(self, names: Sequence[str]) -> Any:
        import pyarrow as pa
        return pa.schema([pa.field(name, self._type(name)) for name in names])

    def _type(self, name: str) -> Any:
        import pyarrow as pa
        facts = self.columns[name]
        kind = self._kinds[name]
        if facts.get("type") != "fixed_shape_tensor" or facts["shape"] is None:
            return arrow_type(name, kind)
        while kind.form == "list":
            kind = kind.item
        return pa.fixed_shape_tensor(arrow_type(name, kind), facts["shape"])

    def batches(self, names: Sequence[str], spans: Sequence[tuple[int, int, int]]) -> Iterator[Any]:
        """Batches of (shard, first row, end)."""
        import pyarrow as pa
        schema = self.schema(names)
        left = list(spans)[::-1]
        while left:
            shard, start, stop = left.pop()
            first, end, keep = self.shards.window(shard, start, stop)
            try:
                columns = [kept(self.column(shard, name, first, end), keep) for name in names]
            except TooLarge:
                if stop - start < 2:
                    raise
                middle = (start + stop) // 2
                left += [(shard, middle, stop), (shard, start, middle)]
                continue
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if names else \
                pa.RecordBatch.from_struct_array(pa.array([{}] * (stop - start), pa.struct([])))

    def column(self, shard: int, name: str, start: int, stop: int) -> Any:
        """Rows of a column as they are stored, deleted ones too. TooLarge."""
        import pyarrow as pa
        part = _Columns(self.shards, self.shards.of(shard, name), self.columns[name])
        kind, rows = self._kinds[name], self.shards.facts[shard]["samples"]
        wanted = self._type(name)
        storage = wanted.storage_type if isinstance(wanted, pa.BaseExtensionType) else wanted
        if storage is not wanted:
            found = part.tensor_rows(name, kind, storage, rows, start, stop)
            return pa.ExtensionArray.from_storage(wanted, found)
        return part.rows(name, kind, storage, rows, start, stop)


class _Columns(Part):
    """Columns of one shard."""

    def rows(self, name: str, kind: Kind, wanted: Any, rows: int, start: int, stop: int) -> Any:
        """Rows start to stop of the column of this name, which has so many."""
        import pyarrow as pa
        count = stop - start
        if kind.form == "struct":
            fields = [self.rows(name + "." + field, inner, wanted.field(i).type, rows, start, stop)
                      for i, (field, inner) in enumerate(kind.inner.items())]
            bitmap = _bitmap(self.valid(name, rows, start, stop))
            return pa.Array.from_buffers(wanted, count, [bitmap], children=fields)
        if kind.form == "list":
            return self._lists(name, kind, wanted, rows, start, stop)
        if kind.form == "value":
            width = [kind.width] if kind.width or kind.text == "fixed_size_binary[0]" else []
            tensor = self.tensor(name, kind.dtype or "", [rows, *width])
            return self._values(name, kind, wanted, tensor[start:stop], count,
                                self.valid(name, rows, start, stop))
        return self._bytes(name, kind, wanted, rows, start, stop)

    def _values(self, name: str, kind: Kind, wanted: Any, tensor: _core.Tensor, count: int,
                valid: Any) -> Any:
        import numpy as np
        import pyarrow as pa
        bitmap = _bitmap(valid)
        if kind.dtype == "BOOL":
            raw = np.frombuffer(tensor.tobytes(), np.uint8)
            if (raw > 1).any():
                raise self.wrong(name, "only 0 and 1")
            bits = pa.py_buffer(np.packbits(raw, bitorder="little"))
            return pa.Array.from_buffers(wanted, count, [bitmap, bits])
        if kind.text in _CAST:
            made = _core.cast(tensor.tobytes(), kind.text, "F32")
            return pa.Array.from_buffers(wanted, count, [bitmap, pa.py_buffer(made)])
        width = wanted.bit_width // 8
        return pa.Array.from_buffers(wanted, count, [bitmap, _buffer(self.data(tensor), width)])

    def _bytes(self, name: str, kind: Kind, wanted: Any, rows: int, start: int, stop: int) -> Any:
        import pyarrow as pa
        tensor = self.tensor(name, "U8", [None])
        ends = self.ends(name, rows, tensor.shape[0])[start:stop + 1]
        view, wide = kind.text.endswith("_view"), kind.text.startswith("large_")
        made = wanted
        if view:
            wide = True
            made = pa.large_string() if kind.form == "utf8" else pa.large_binary()
        offsets = _offsets(name, ends, wide)
        data = _buffer(self.data(tensor[int(ends[0]):int(ends[-1])]), 1)
        if kind.form == "utf8":
            self._check_text(name, data, ends[:-1] - ends[0])
        bitmap = _bitmap(self.valid(name, rows, start, stop))
        found = pa.Array.from_buffers(made, stop - start, [bitmap, offsets, data])
        if not view:
            return found
        found = found.cast(wanted)
        held = found.buffers()
        if len(held) == 3 and held[2] is None:  # all short: Arrow 18 crashes when it exports that
            found = pa.Array.from_buffers(wanted, stop - start, held[:2])
        return found

    def _check_text(self, name: str, data: Any, starts: Any) -> None:
        """All rows together are UTF-8, and none begins within a character."""
        import numpy as np
        import pyarrow as pa
        raw = np.frombuffer(data, np.int8)
        if not len(raw) or raw.min() >= 0:  # ASCII
            return
        whole = pa.py_buffer(np.array([0, len(raw)]))
        try:
            pa.Array.from_buffers(pa.large_string(), 1, [None, whole, data]).validate(full=True)
        except pa.ArrowInvalid:
            raise self.wrong(name, "text in UTF-8") from None
        if (raw[starts[starts < len(raw)]] < -64).any():
            raise self.wrong(name, "text in UTF-8")

    # ── Lists ──

    def _lists(self, name: str, kind: Kind, wanted: Any, rows: int, start: int,
               stop: int) -> Any:
        valid = self.valid(name, rows, start, stop)
        inner = wanted.value_type
        if self.stacked or (name in self.file and name + ".offsets" not in self.file):
            return self._list(name, kind, wanted, valid, *self._stacked(
                name, kind, inner, rows, start, stop))
        if name in self.file:  # numbers end to end
            tensor = self.tensor(name, kind.item.dtype or "", [None])
            ends = self.ends(name, rows, tensor.shape[0])[start:stop + 1]
            begin, end = int(ends[0]), int(ends[-1])
            values = self._values(name, kind.item, inner, tensor[begin:end], end - begin, None)
        else:
            ends, count = self._ends_of_items(name, rows)
            ends = ends[start:stop + 1]
            values = self.rows(name + ".item", kind.item, inner, count, int(ends[0]),
                               int(ends[-1]))
        return self._list(name, kind, wanted, valid, ends, values)

    def _ends_of_items(self, name: str, rows: int) -> tuple[Any, int]:
        ends = self.ends(name, rows, None)
        return ends, int(ends[-1])

    def _stacked(self, name: str, kind: Kind, inner: Any, rows: int, start: int,
                 stop: int) -> tuple[Any, Any]:
        """Lists of one shape: where they end, and what is in them."""
        import numpy as np
        leaf, levels = kind, 0
        while leaf.form == "list":
            leaf, levels = leaf.item, levels + 1
        tensor = self.tensor(name, leaf.dtype or "", [rows, *[None] * levels])
        types = [inner]
        while len(types) < levels:
            types.append(types[-1].value_type)
        sizes = [stop - start, *tensor.shape[1:]]
        values = self._values(name, leaf, types[-1], tensor[start:stop], int(np.prod(sizes)), None)
        kinds = [kind]
        while len(kinds) < levels:
            kinds.append(kinds[-1].item)
        for level in range(levels - 1, 0, -1):
            count = int(np.prod(sizes[:level + 1]))
            ends = np.arange(count + 1, dtype=np.int64) * sizes[level + 1]
            values = self._list(name, kinds[level], types[level - 1], None, ends, values)
        return np.arange(stop - start + 1, dtype=np.int64) * sizes[1], values

    def tensor_rows(self, name: str, kind: Kind, storage: Any, rows: int, start: int,
                    stop: int) -> Any:
        """Tensors of one shape as lists of their elements."""
        import pyarrow as pa
        while kind.form == "list":
            kind = kind.item
        tensor = self.file[name]
        tensor = self.tensor(name, kind.dtype or "", [rows, *tensor.shape[1:]])[start:stop]
        count = (stop - start) * storage.list_size
        values = self._values(name, kind, storage.value_type, tensor, count, None)
        bitmap = _bitmap(self.valid(name, rows, start, stop))
        return pa.Array.from_buffers(storage, stop - start, [bitmap], children=[values])

    def _list(self, name: str, kind: Kind, wanted: Any, valid: Any, ends: Any,
              values: Any) -> Any:
        """Lists that end there, of values that begin with the first."""
        import numpy as np
        import pyarrow as pa
        count, bitmap = len(ends) - 1, _bitmap(valid)
        if kind.size is not None:
            if (np.diff(ends) != kind.size).any():
                raise self.wrong(name, "lists of %d elements" % kind.size)
            return pa.Array.from_buffers(wanted, count, [bitmap], children=[values])
        wide = kind.text.startswith("large_")
        offsets = _offsets(name, ends, wide)
        if not kind.text.endswith("_view"):
            return pa.Array.from_buffers(wanted, count, [bitmap, offsets], children=[values])
        sizes = np.diff(ends).astype(np.int64 if wide else np.int32)
        return pa.Array.from_buffers(wanted, count, [bitmap, offsets, pa.py_buffer(sizes)],
                                     children=[values])
