"""SQL functions over tensor structs, and their registration with the data source."""
from __future__ import annotations

import operator
from typing import Any

__all__ = ["arr_to_st", "register", "st_to_array"]

_TENSOR = "struct<data: binary, shape: array<int>, dtype: string>"
_KINDS = {"float": "float", "double": "double", "bigint": "bigint", "int": "int",
          "boolean": "boolean", "decimal": "decimal(20,0)"}


def _arrow_udf() -> Any:
    """Spark 4.1's arrow_udf, or None."""
    from pyspark.sql import functions
    return getattr(functions, "arrow_udf", None)


def register(spark: Any) -> None:
    """Registers the data source and the SQL functions with a session: arr_to_st, st_to_array
    (array<float>), st_to_array_double, _bigint, _int, _boolean and _decimal. Makes the session
    the active one of this thread, without which Spark does not find Python data sources; call
    it in every thread that the program starts."""
    from ._session import activate, check_workers
    check_workers(spark)
    activate(spark)
    if hasattr(spark, "dataSource"):
        from pyspark.errors import AnalysisException

        from ._source import SafetensorsDataSource
        try:
            spark.dataSource.register(SafetensorsDataSource)
        except AnalysisException as error:
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
            # Spark 4.0 has already found it through pyspark_libsafetensors.
    spark.udf.register("arr_to_st", _packing())
    for kind in _KINDS:
        name = "st_to_array" if kind == "float" else "st_to_array_" + kind
        spark.udf.register(name, _unpacking(kind))


def arr_to_st(array: Any, shape: Any, dtype: Any) -> Any:
    """Column of tensor structs from a column of arrays of numbers. shape: a column or a list;
    dtype: a name or a column. Null arguments give null."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F
    if not isinstance(shape, (str, Column)):
        shape = F.array(*[F.lit(operator.index(one)) for one in shape]) if len(shape) else \
            F.array().cast("array<int>")
    return _packing()(array, shape, F.lit(dtype) if isinstance(dtype, str) else dtype)


def st_to_array(tensor: Any, kind: str = "float") -> Any:
    """Column of flat arrays with the elements of tensor structs. kind: "float" rounds values;
    double, bigint, int, boolean and decimal convert exactly, or raise."""
    if kind not in _KINDS:
        raise ValueError("kind: expected one of %s, found %r" % (", ".join(_KINDS), kind))
    return _unpacking(kind)(tensor)


def _packing() -> Any:
    make = _arrow_udf()
    if make is None:
        from pyspark.sql.functions import udf
        return udf(_packed_row, returnType=_TENSOR, useArrow=True)

    def packing(array, shape, dtype):  # type: ignore[no-untyped-def]
        from libsafetensors.spark._values import arr_to_st as convert
        return convert(array, shape, dtype)

    import pyarrow as pa
    packing.__annotations__ = {"array": pa.Array, "shape": pa.Array, "dtype": pa.Array,
                               "return": pa.Array}
    return make(packing, returnType=_TENSOR)


def _packed_row(array: Any, shape: Any, dtype: Any) -> Any:
    """One row, for Spark without arrow_udf."""
    if array is None or shape is None or dtype is None:
        return None
    import pyarrow as pa

    from ._values import arr_to_st as convert
    values = pa.array([array], None if len(array) else pa.list_(pa.float32()))
    # Without a type: that of Arrow would cut a fraction.
    sizes = pa.array([shape], None if len(shape) else pa.list_(pa.int32()))
    made = convert(values, sizes, pa.array([dtype]))[0]
    return made["data"].as_py(), made["shape"].as_py(), dtype.upper()


def _arrow_kind(kind: str) -> Any:
    import pyarrow as pa
    return {"float": pa.float32, "double": pa.float64, "bigint": pa.int64, "int": pa.int32,
            "boolean": pa.bool_, "decimal": lambda: pa.decimal128(20, 0)}[kind]()


def _unpacked(tensors: Any, kind: str) -> Any:
    from ._values import st_to_array as convert
    return convert(tensors, _arrow_kind(kind), kind != "float")


def _unpacking(kind: str) -> Any:
    returned = "array<%s>" % _KINDS[kind]
    make = _arrow_udf()
    if make is None:
        from pyspark.sql.functions import udf
        return udf(lambda tensor: _unpacked_row(tensor, kind), returnType=returned,
                   useArrow=True)

    def unpacking(tensor):  # type: ignore[no-untyped-def]
        from libsafetensors.spark._functions import _unpacked as convert
        return convert(tensor, kind)

    import pyarrow as pa
    unpacking.__annotations__ = {"tensor": pa.Array, "return": pa.Array}
    return make(unpacking, returnType=returned)


def _unpacked_row(tensor: Any, kind: str) -> Any:
    """One row, for Spark without arrow_udf."""
    if tensor is None:
        return None
    import pyarrow as pa
    named = hasattr(tensor, "__fields__") or isinstance(tensor, dict)
    row = {"data": tensor["data" if named else 0], "dtype": tensor["dtype" if named else 2]}
    types = pa.struct([("data", pa.binary()), ("dtype", pa.string())])
    return _unpacked(pa.array([row], types), kind)[0].as_py()
