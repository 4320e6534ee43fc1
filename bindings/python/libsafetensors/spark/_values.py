"""Converts elements of tensors to Arrow arrays and back, exactly or with an error."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._dtypes import HEADER_NAMES
from ._session import with_hints

__all__ = ["LARGEST", "arr_to_st", "binary_to_numpy", "column_of", "elements", "packed",
           "st_to_array", "uniform"]

_NUMPY = {"I8": "<i1", "U8": "<u1", "I16": "<i2", "U16": "<u2", "I32": "<i4", "U32": "<u4",
          "I64": "<i8", "U64": "<u8", "F32": "<f4", "F64": "<f8"}
_WIDER = {"U8": "<i2", "U16": "<i4", "U32": "<i8"}
_SMALL = {"F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
LARGEST = (1 << 31) - 1  # bytes of one value in Spark
_SHAPE = "shape"


# ── Elements ──

def elements(dtype: str, data: Any) -> Any:
    """All elements as an Arrow array of the Spark type of the dtype."""
    import numpy as np
    import pyarrow as pa
    empty = pa.py_buffer(data).size == 0
    if dtype in _SMALL:
        data, dtype = _core.cast(data, dtype, "F32"), "F32"
    if dtype == "BOOL":
        return pa.array(np.zeros(0, bool) if empty else np.frombuffer(data, np.uint8) != 0)
    if dtype not in _NUMPY:
        raise ValueError("expected a dtype that Spark has a type for, found %s" % dtype)
    found = np.zeros(0, _NUMPY[dtype]) if empty else np.frombuffer(data, _NUMPY[dtype])
    if dtype in _WIDER:
        found = found.astype(_WIDER[dtype])
    array = pa.array(np.require(found, requirements="A"))
    return array.cast(pa.decimal128(20, 0)) if dtype == "U64" else array


def _as_type(array: Any, kind: Any) -> Any:
    """Casts exactly to another type of Spark, or ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    if array.type == kind:
        return array
    try:
        if pa.types.is_boolean(kind):
            found = array.cast(pa.int64()).cast(kind)
            if not pc.all(pc.equal(found.cast(pa.int64()), array.cast(pa.int64()))).as_py() \
                    and len(array):
                raise ValueError("expected 0 or 1 for boolean, found another value")
            return found
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int32())
        if pa.types.is_decimal(array.type) and pa.types.is_integer(kind):
            return array.cast(kind)
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.uint64())
        if pa.types.is_decimal(kind) and pa.types.is_floating(array.type):
            array = array.cast(pa.int64())
        found = array.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError("expected values that fit %s: %s" % (kind, error)) from None
    if pa.types.is_float32(kind) and pa.types.is_float64(array.type):
        back = pc.equal(found.cast(pa.float64()), array)
        if len(array) and not pc.all(pc.or_(back, pc.is_nan(array))).as_py():
            raise ValueError("expected values that fit float, found others")
    return found


def packed(values: Any, dtype: str) -> Any:
    """Bytes of an Arrow array without nulls, converted to a dtype."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    if pa.types.is_decimal(values.type):
        whole = pa.uint64() if dtype == "U64" else pa.int64()
        values = _as_type(values, whole) if dtype == "BOOL" or dtype[0] in "IU" else \
            values.cast(pa.float64())
    floats = {"halffloat": "F16", "float": "F32", "double": "F64"}
    source = {**HEADER_NAMES, **floats}.get(str(values.type))
    if source is None:
        raise ValueError("expected an array of numbers, found elements of %s" % values.type)
    if dtype == "BOOL" and source != "BOOL" and len(values):
        if not pc.all(pc.is_in(values, pa.array([0, 1]).cast(values.type))).as_py():
            raise ValueError("expected 0 or 1 for BOOL, found another value")
    given = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
    raw = given.view(np.uint8)
    if source == dtype:
        return raw
    made = _core.cast(raw, source, dtype)
    if len(given):
        _check_fits(given, made, dtype)
    return made


# F4 and F6 have no infinity: the least absolute values that are out of their range.
_TOO_LARGE = {"F4": 7.0, "F6_E2M3": 7.75, "F6_E3M2": 30.0}


def _check_fits(given: Any, made: Any, dtype: str) -> None:
    """ValueError if a cast lost a fraction (to integers), or made an infinity or NaN of a number.
    The cast itself checks the ranges of integers; floats may be rounded."""
    import numpy as np
    if dtype.startswith(("F", "BF")) and dtype != "F64":
        back = np.frombuffer(_core.cast(made, dtype, "F64"), "<f8")
        was = given.astype("<f8")
        bad = (np.isnan(was) != np.isnan(back)) | (np.isinf(was) != np.isinf(back))
        if dtype in _TOO_LARGE:
            bad |= np.abs(was) >= _TOO_LARGE[dtype]
    elif dtype[0] in "IU" and given.dtype.kind == "f":
        bad = given != np.trunc(given)
    else:
        return
    if bad.any():
        raise ValueError("arr_to_st: expected values that %s holds, found %r"
                         % (dtype, given[bad][0].item()))


# ── Columns for reading ──

def uniform(kind: Any, rows: int, width: int, values: Any) -> Any:
    """An Arrow array of rows of equal width in bytes (values: a buffer) or elements (values: an
    array), at most LARGEST in total."""
    import numpy as np
    import pyarrow as pa
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    if pa.types.is_binary(kind):
        return pa.Array.from_buffers(kind, rows, [None, offsets, pa.py_buffer(values)])
    return pa.Array.from_buffers(kind, rows, [None, offsets], children=[values])


def column_of(name: str, tensor: _core.Tensor, rows: int, shape: Sequence[int],
              kind: Any) -> Any:
    """A tensor as rows of this shape: tensor structs, bytes, arrays or plain numbers."""
    import pyarrow as pa
    fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    bare = bool(fields) and all(field.name != "data" for field in fields)
    if rows and tensor.nbytes // rows > LARGEST and not bare:
        raise ValueError("%s: expected at most %d bytes for one value of Spark, found %d"
                         % (name, LARGEST, tensor.nbytes // rows))
    if fields:
        return pa.StructArray.from_arrays(
            [_part(field, tensor, rows, shape) for field in fields], fields=fields)
    if pa.types.is_binary(kind):
        return _bytes_of_rows(tensor, rows, kind)
    try:
        return _arrays(tensor, rows, shape, kind)
    except ValueError as error:
        raise ValueError("%s: %s" % (name, error)) from None


def _bytes_of_rows(tensor: _core.Tensor, rows: int, kind: Any) -> Any:
    width, rest = divmod(tensor.nbytes, rows) if rows else (0, 0)
    if rest:
        raise ValueError("%s: expected rows of whole bytes, found %s of shape %s"
                         % (tensor.name, tensor.dtype, list(tensor.shape)))
    return uniform(kind, rows, width, tensor)


def _part(field: Any, tensor: _core.Tensor, rows: int, shape: Sequence[int]) -> Any:
    import pyarrow as pa
    if field.name == "data":
        return _bytes_of_rows(tensor, rows, field.type)
    if field.name == "dtype":
        return pa.repeat(tensor.dtype, rows).cast(field.type)
    try:
        dims = pa.array(list(shape) * rows, field.type.value_type)
    except pa.ArrowInvalid:
        raise ValueError("%s: shape: expected sizes that fit %s, found %s; give a schema with "
                         "shape: array<bigint>" % (tensor.name, field.type.value_type,
                                                   list(shape))) from None
    return uniform(field.type, rows, len(shape), dims)


def _arrays(tensor: _core.Tensor, rows: int, shape: Sequence[int], kind: Any) -> Any:
    import pyarrow as pa
    levels, leaf = [], kind
    while pa.types.is_list(leaf):
        levels.append(leaf)
        leaf = leaf.value_type
    found = _as_type(elements(tensor.dtype, tensor), leaf)
    widths = list(shape)
    if len(levels) == 1:
        widths = [len(found) // rows if rows else 0]
    if len(levels) != len(widths):
        raise ValueError("expected an array of 1 or %d levels for shape %s, found %s"
                         % (len(shape), list(shape), kind))
    for level in range(len(levels), 0, -1):
        count = rows
        for width in widths[:level - 1]:
            count *= width
        found = uniform(levels[level - 1], count, widths[level - 1], found)
    return found


# ── The functions ──

def _spread(found: Any, rows: Any, total: int) -> Any:
    """Results for some rows, with null in the others."""
    import numpy as np
    import pyarrow as pa
    if len(rows) == total:
        return found
    positions = np.zeros(total, np.int64)
    positions[rows] = np.arange(len(rows))
    missing = np.ones(total, bool)
    missing[rows] = False
    return found.take(pa.array(positions, mask=missing))


def _by_dtype(names: list[str], make: Any) -> Any:
    """make(dtype, rows) for the rows of each dtype, concatenated in the original order."""
    import numpy as np
    import pyarrow as pa
    which: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        which.setdefault(name, []).append(row)
    if len(which) == 1:
        return make(names[0], None)
    found = pa.concat_arrays([make(name, rows) for name, rows in which.items()])
    order = np.empty(len(names), np.int64)
    order[np.concatenate([np.asarray(rows) for rows in which.values()])] = np.arange(len(names))
    return found.take(pa.array(order))


def _valid(*columns: Any) -> tuple[Any, list[Any]]:
    """Numbers of the rows without null, and the columns of these rows."""
    import numpy as np
    import pyarrow as pa
    keep = np.ones(len(columns[0]), bool)
    for column in columns:
        keep &= np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
    rows = np.flatnonzero(keep)
    if len(rows) == len(keep):
        return rows, list(columns)
    return rows, [column.take(pa.array(rows)) for column in columns]


def _products(shapes: Any) -> list[int]:
    import math
    last: Any = None
    product, found = 0, []
    for shape in shapes.to_pylist():
        if shape != last:
            if any(dim is None or dim < 0 or dim % 1 for dim in shape):
                raise ValueError("arr_to_st: shape: expected whole numbers from 0 on, found %s"
                                 % shape)
            last, product = shape, math.prod(shape)
        found.append(product)
    return found


def _bits(name: str) -> int:
    if name not in _core.DTYPES:
        raise ValueError("dtype: expected one of %s, found %s" % (", ".join(_core.DTYPES), name))
    return _core.DTYPES[name][0]


@with_hints()
def arr_to_st(arrays: Any, shapes: Any, dtypes: Any) -> Any:
    """The SQL function arr_to_st over Arrow arrays."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    kind = pa.struct([pa.field("data", pa.binary()), pa.field(_SHAPE, pa.list_(pa.int32())),
                      pa.field("dtype", pa.string())])
    total = len(arrays)
    rows, (arrays, shapes, dtypes) = _valid(arrays, shapes, dtypes)
    if not len(rows):
        return pa.nulls(total, kind)
    if not pa.types.is_list(arrays.type) and not pa.types.is_large_list(arrays.type):
        raise ValueError("arr_to_st: expected an array of numbers, found %s" % arrays.type)
    lengths = np.asarray(pc.list_value_length(arrays), np.int64)
    for row, (expected, found) in enumerate(zip(_products(shapes), lengths.tolist())):
        if expected != found:
            raise ValueError("arr_to_st: expected %d elements for shape %s, found %d in row %d "
                             "of the batch" % (expected, shapes[row].as_py(), found, rows[row]))
    if arrays.flatten().null_count:
        raise ValueError("arr_to_st: expected no null elements, found one")
    names = [name.upper() for name in dtypes.to_pylist()]

    def make(name: str, which: list[int] | None) -> Any:
        some = arrays if which is None else arrays.take(pa.array(which))
        sizes = lengths if which is None else lengths[which]
        bits = _bits(name) * sizes
        if (bits % 8).any():
            raise ValueError("arr_to_st: expected elements that fill whole bytes for %s" % name)
        ends = np.concatenate([[0], np.cumsum(bits // 8)])
        if ends[-1] > LARGEST:
            raise ValueError("arr_to_st: expected at most 2 GiB in a batch, found %d bytes; "
                             "lower spark.sql.execution.arrow.maxRecordsPerBatch" % ends[-1])
        data = pa.py_buffer(packed(some.flatten(), name))
        return pa.Array.from_buffers(pa.binary(), len(sizes), [
            None, pa.py_buffer(ends.astype(np.int32)), data])

    found = pa.StructArray.from_arrays(
        [_by_dtype(names, make), shapes.cast(pa.list_(pa.int32())), pa.array(names)],
        fields=list(kind))
    return _spread(found, rows, total)


@with_hints()
def st_to_array(tensors: Any, kind: Any, exact: bool = True) -> Any:
    """The SQL functions st_to_array over Arrow arrays. exact=False rounds floats."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    total = len(tensors)
    if tensors.null_count == total:
        return pa.nulls(total, pa.list_(kind))
    parts = [pc.struct_field(tensors, "data"), pc.struct_field(tensors, "dtype")]
    rows, (data, dtypes) = _valid(*parts)
    if not len(rows):
        return pa.nulls(total, pa.list_(kind))
    names = [name.upper() for name in dtypes.to_pylist()]

    def make(name: str, which: list[int] | None) -> Any:
        some = data if which is None else data.take(pa.array(which))
        sizes = np.asarray(pc.binary_length(some), np.int64) * 8
        if (sizes % _bits(name)).any():
            raise ValueError("st_to_array: expected whole elements of %s, found a tensor of %d "
                             "bytes" % (name, sizes[(sizes % _bits(name)) != 0][0] // 8))
        found = elements(name, _bytes_of(some))
        found = found.cast(kind, safe=False) if not exact else _as_type(found, kind)
        ends = np.concatenate([[0], np.cumsum(sizes // _bits(name))]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), found)

    return _spread(_by_dtype(names, make), rows, total)


def binary_to_numpy(column: Any, dtype: str, shape: Sequence[int] = ()) -> Any:
    """numpy array of [rows, *shape] over the bytes of a column that was read with as=binary: an
    Arrow array, as of a batch in mapInArrow or an argument of an arrow_udf. It is not a copy, and
    cannot be written. dtype and shape: those of a row, which the metadata of the column's field
    tells. ValueError for null, or a row of another size."""
    import math

    import numpy as np
    import pyarrow.compute as pc

    from .._dtypes import numpy_dtype
    if _bits(dtype) % 8:
        raise ValueError("dtype: expected one whose elements are whole bytes, found " + dtype)
    kind = numpy_dtype(dtype)
    if column.null_count:
        raise ValueError("binary_to_numpy: expected a column without null, found %d"
                         % column.null_count)
    width = math.prod(shape) * kind.itemsize
    sizes = np.asarray(pc.binary_length(column), np.int64)
    wrong = np.flatnonzero(sizes != width)
    if len(wrong):
        raise ValueError("binary_to_numpy: expected %d bytes for %s of shape %s, found %d in row "
                         "%d of the batch" % (width, dtype, list(shape), sizes[wrong[0]], wrong[0]))
    if not width * len(column):
        return np.zeros((len(column), *shape), kind)
    return np.frombuffer(_bytes_of(column), kind).reshape(len(column), *shape)


def _bytes_of(data: Any) -> Any:
    """All bytes of a binary array without nulls."""
    import numpy as np
    import pyarrow as pa
    wide = pa.types.is_large_binary(data.type)
    _, offsets, values = data.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
    begin, end = int(ends[data.offset]), int(ends[data.offset + len(data)])
    return b"" if values is None else memoryview(values)[begin:end]
