"""Options as Spark passes them, and tensors in Spark's types."""
from __future__ import annotations

import difflib
import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import types as T

from .. import _core
from ..dataset._storage import scheme_of
from ._types import ELEMENTS, is_sample_type

__all__ = ["READ_OPTIONS", "ROW_FIELDS", "absolute", "arrow_schema", "binary_field",
           "checked_field", "element_type", "parse_names", "path_of", "plain_batch",
           "plain_schema", "split_options", "tensor_type", "parse_bool"]

READ_OPTIONS = ("layout", "columns", "use_manifest", "keys", "data", "as", "inferSchema",
                "pushdown", "partition_mb", "versionAsOf")
_WRITE_MORE = ("adopt", "sync")


# ── Options ──

def absolute(path: str) -> str:
    """An absolute path, the same for all processes; URLs are unchanged."""
    return os.path.abspath(path) if scheme_of(path) is None else path


def path_of(options: Mapping[str, str], writing: bool = False) -> str:
    """The one path in options with lower-case names."""
    path = options.get("path")
    if path is None and "paths" in options:
        paths = json.loads(options["paths"])
        if len(paths) != 1:
            raise ValueError("path: expected one, found %d; read each and union them"
                             % len(paths))
        path = paths[0]
    if not path:
        raise ValueError("path: expected the folder or URL of a dataset, found none; a table of "
                         "Spark's catalog (saveAsTable, USING) gives a Python data source neither "
                         "its path nor its options: %s"
                         % ("write with save(path)" if writing
                            else "read its folder with load(path)"))
    return absolute(path)


def split_options(options: Mapping[str, Any], reading: bool) -> tuple[dict[str, Any],
                                                                      dict[str, Any]]:
    """Options for reading (or writing) by lower-case names, and those of the storage. Options of
    the other direction are ignored, because a table has one set for both. ValueError for
    unknown ones."""
    write = {name.lower() for name in (*_core.DATASET_OPTIONS, *_WRITE_MORE)}
    read = {name.lower() for name in READ_OPTIONS}
    own, storage = {}, {}
    for given, value in options.items():
        name = given.lower()
        if name.startswith("storage."):
            storage[name] = value
        elif name in (read if reading else write):
            own[name] = value
        elif name not in (write if reading else read) and name not in ("path", "paths"):
            raise ValueError(_unknown(given))
    return own, storage


def _unknown(name: str) -> str:
    known = [*READ_OPTIONS, *_core.DATASET_OPTIONS, *_WRITE_MORE, "path"]
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in known], 1, 0.5)
    hint = next((one for one in known if near and one.lower() == near[0]), None)
    return "unknown option %s%s" % (name, "; did you mean %s?" % hint if hint else
                                    "; expected one of " + ", ".join(known))


def parse_bool(name: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("%s: expected true or false, found %r" % (name, value))
    return value.strip().lower() == "true"


def parse_names(name: str, value: str | None) -> list[str] | None:
    """A list separated by commas, or in JSON if names contain commas."""
    if value is None or not value.strip():
        return None
    if value.lstrip().startswith("["):
        found = json.loads(value)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise ValueError("%s: expected a list of names, found %r" % (name, value))
        return found
    return [one.strip() for one in value.split(",") if one.strip()]


# ── Types of what is read ──

def element_type(column: str, dtype: str | None) -> T.DataType:
    """Element type of an array that holds this dtype exactly."""
    found = ELEMENTS.get(dtype or "")
    if found is None:
        raise ValueError("%s: as=array: expected one dtype that Spark has a type for, found %s; "
                         "use as=tensor" % (column, dtype or "several"))
    return found


def binary_field(column: str, dtype: str | None, shape: list[int] | None,
                 nullable: bool) -> T.StructField:
    """Column of the bytes of tensors; its metadata tells their dtype, and the shape unless it
    varies."""
    if dtype is None:
        raise ValueError("%s: as=binary: expected one dtype, found several; use as=tensor"
                         % column)
    known = {"dtype": dtype, **({} if shape is None else {"shape": shape})}
    return T.StructField(column, T.BinaryType(), nullable, known)


def tensor_type(data: bool = True) -> T.StructType:
    fields = [T.StructField("data", T.BinaryType(), False)] if data else []
    return T.StructType([*fields,
                         T.StructField("shape", T.ArrayType(T.IntegerType(), False), False),
                         T.StructField("dtype", T.StringType(), False)])


ROW_FIELDS = {
    "file_name": T.StructField("file_name", T.StringType(), False),
    "tensor_key": T.StructField("tensor_key", T.StringType(), False),
    "dtype": T.StructField("dtype", T.StringType(), False),
    "shape": T.StructField("shape", T.ArrayType(T.LongType(), False), False),
    "data": T.StructField("data", T.BinaryType(), False)}

_INTS = (T.IntegerType, T.LongType)
_PARTS = {"data": lambda kind: isinstance(kind, T.BinaryType),
          "dtype": lambda kind: isinstance(kind, T.StringType),
          "shape": lambda kind: isinstance(kind, T.ArrayType)
          and isinstance(kind.elementType, _INTS)}
_NUMBERS = (T.NumericType, T.BooleanType)


def checked_field(field: T.StructField, layout: str) -> None:
    """ValueError unless a column of a given schema can be read with this layout."""
    kind = field.dataType
    if layout == "tensors":
        if field.name == "file_name" or field.name == "tensor_key":
            fits = isinstance(kind, T.StringType)
        else:
            fits = field.name in _PARTS and _PARTS[field.name](kind)
    elif isinstance(kind, T.StructType):
        fits = layout == "samples" or (len(kind) > 0 and all(
            part.name in _PARTS and _PARTS[part.name](part.dataType) for part in kind))
    else:
        while isinstance(kind, T.ArrayType):
            kind = kind.elementType
        fits = isinstance(kind, _NUMBERS) or isinstance(field.dataType, T.BinaryType) or \
            (layout == "samples" and (is_sample_type(kind) or isinstance(kind, T.BinaryType)))
    if not fits:
        expected = "file_name, tensor_key, dtype: string, shape: array<bigint>, data: binary" \
            if layout == "tensors" else "a struct of data: binary, shape: array<int>, dtype: " \
            "string, arrays of numbers, or binary"
        raise ValueError("%s: expected %s, found %s"
                         % (field.name, expected, field.dataType.simpleString()))


# ── Vectors of Spark ML, which are passed as structs ──

_VECTOR = ["type", "size", "indices", "values"]


def _is_vector(kind: Any) -> bool:
    import pyarrow as pa
    return pa.types.is_struct(kind) and [kind.field(i).name for i in range(kind.num_fields)] \
        == _VECTOR


def _plain_type(kind: Any) -> Any:
    """Vectors as arrays of doubles. Instants in UTC and offsets of 32 bits, whatever the session's
    time zone and its settings of Arrow: tasks and later sessions write one type."""
    import pyarrow as pa
    types = pa.types
    if _is_vector(kind):
        return pa.list_(pa.float64())
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return pa.string() if types.is_large_string(kind) else \
        pa.binary() if types.is_large_binary(kind) else kind


def arrow_schema(schema: T.StructType) -> Any:
    """The Arrow schema of the batches that Spark hands over and takes: timestamps are of UTC, which
    Spark 4.2 has to be told."""
    from pyspark.sql.pandas.types import to_arrow_schema
    asks = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, **({"timezone": "UTC"} if asks else {}))


def plain_schema(schema: Any) -> Any:
    """An Arrow schema as all tasks write it."""
    import pyarrow as pa
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def plain_batch(batch: Any) -> Any:
    """The same for a batch."""
    schema = plain_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    import pyarrow as pa
    columns = [_dense(column) if _is_vector(column.type) else
               column if column.type == field.type else column.cast(field.type)
               for column, field in zip(batch.columns, schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _dense(column: Any) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    kinds, sizes, indices, values = column.flatten()
    if not pc.any(pc.equal(kinds, 0)).as_py():
        return values.cast(pa.list_(pa.float64()))
    rows: list[Any] = []
    for kind, size, where, what in zip(kinds.to_pylist(), sizes.to_pylist(), indices, values):
        if kind is None:
            rows.append(None)
        elif kind == 1:
            rows.append(what.values.to_numpy())
        else:
            row = np.zeros(size)
            row[where.values.to_numpy()] = what.values.to_numpy()
            rows.append(row)
    return pa.array(rows, pa.list_(pa.float64()))


def quoted(names: Iterable[str]) -> list[str]:
    """Names of columns quoted for Spark's expressions."""
    return ["`" + re.sub("`", "``", name) + "`" for name in names]
