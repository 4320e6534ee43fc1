"""Shared by the sinks of Ray Data and Daft: the job, and their columns of tensors, which are
Arrow extension types of their own."""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ._job import Job
from ._storage import Place, scheme_of
from ._types import Adopt, WriteMode
from ._write import check_mode, settled

__all__ = ["job_of", "plain_batches"]

_RAY_FIXED = ("ray.data.arrow_tensor", "ray.data.arrow_tensor_v2")
_VARYING = ("ray.data.arrow_variable_shaped_tensor", "daft.super_extension")


def job_of(path: Any, mode: WriteMode, adopt: Adopt, sync: bool,
           options: Mapping[str, Any]) -> Job:
    """A job whose schema is not known yet."""
    check_mode(mode, adopt)
    storage = settled(options)[1]
    own = {name: value for name, value in options.items()
           if not name.lower().startswith("storage.")}
    text = os.fsdecode(path)
    # Absolute, so that it is the same for all processes.
    place = Place(os.path.abspath(text) if scheme_of(text) is None else text, storage, sync)
    return Job(own, place, None, mode, adopt is not None)


# ── Columns ──

def plain_batches(table: Any, keyed: bool) -> Iterator[Any]:
    """Batches of a pyarrow table with columns that can be written. keyed: for a KV dataset, where
    tensors of a column may differ in shape."""
    for batch in table.to_batches():
        if batch.num_rows:
            yield _plain(batch, keyed)


def _plain(batch: Any, keyed: bool) -> Any:
    import pyarrow as pa
    columns = [_plain_column(name, column, keyed)
               for name, column in zip(batch.schema.names, batch.columns)]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _plain_column(name: str, column: Any, keyed: bool) -> Any:
    import pyarrow as pa
    kind = getattr(column.type, "extension_name", None)
    if kind in _RAY_FIXED:
        return _fixed(name, column, keyed)
    if kind in _VARYING:
        storage = column.storage
        if not pa.types.is_struct(storage.type):
            return storage
        if {field.name for field in storage.type} == {"data", "shape"}:
            parts = dict(zip((field.name for field in storage.type), storage.flatten()))
            return _structs(name, parts["data"], parts["shape"].cast(pa.list_(pa.int64())))
    return column


def _fixed(name: str, column: Any, keyed: bool) -> Any:
    """Tensors of one shape, as Arrow's fixed-shape tensors if possible, else as structs."""
    import numpy as np
    import pyarrow as pa
    values, shape, count = column.storage, list(column.type.shape), len(column)
    size = math.prod(shape)
    if not (keyed or size == 0 or values.null_count or pa.types.is_boolean(values.type.value_type)):
        rows = pa.FixedSizeListArray.from_arrays(values.flatten(), size)
        return pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(values.type.value_type, shape), rows)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * len(shape))
    shapes = pa.ListArray.from_arrays(offsets, pa.array(shape * count, pa.int64()))
    return _structs(name, values, shapes)


def _structs(name: str, data: Any, shapes: Any) -> Any:
    """Tensor structs over lists of numbers; the data is not copied."""
    import numpy as np
    import pyarrow as pa
    values = data.values
    if data.flatten().null_count:
        raise ValueError("%s: expected no null elements, found %d"
                         % (name, data.flatten().null_count))
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    width = values.type.bit_width // 8
    offsets = (data.offsets.to_numpy().astype(np.int64) + values.offset) * width
    buffers = [None, pa.py_buffer(offsets), values.buffers()[1]]
    return pa.StructArray.from_arrays(
        [pa.Array.from_buffers(pa.large_binary(), len(data), buffers), shapes,
         pa.repeat(_dtype(name, data.type.value_type), len(data))],
        ["data", "shape", "dtype"], mask=data.is_null())


def _dtype(name: str, kind: Any) -> str:
    import pyarrow as pa
    if pa.types.is_boolean(kind):
        return "BOOL"
    for letter, fits in (("U", pa.types.is_unsigned_integer), ("I", pa.types.is_integer),
                         ("F", pa.types.is_floating)):
        if fits(kind):
            return letter + str(kind.bit_width)
    raise ValueError("%s: expected tensors of numbers or booleans, found %s" % (name, kind))
