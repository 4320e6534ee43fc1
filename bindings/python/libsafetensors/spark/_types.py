"""Types of columns in Spark's types."""
from __future__ import annotations

from typing import Any

from pyspark.sql import types as T

from ..dataset._kinds import Kind

__all__ = ["ELEMENTS", "cast_to", "is_sample_type", "spark_type"]

# Element type of an array that holds a dtype exactly.
ELEMENTS: dict[str, T.DataType] = {
    "BOOL": T.BooleanType(), "I8": T.ByteType(), "U8": T.ShortType(), "I16": T.ShortType(),
    "U16": T.IntegerType(), "I32": T.IntegerType(), "U32": T.LongType(), "I64": T.LongType(),
    "U64": T.DecimalType(20, 0), "F64": T.DoubleType(),
    **{name: T.FloatType() for name in ("F32", "F16", "BF16", "F8_E4M3", "F8_E5M2",
                                        "F8_E4M3FNUZ", "F8_E5M2FNUZ")}}
_TIME: Any = getattr(T, "TimeType", None)  # from Spark 4.1 on
_NTZ: Any = getattr(T, "TimestampNTZType", None)
_SAMPLES = (T.StringType, T.DateType, T.TimestampType, T.DayTimeIntervalType, T.StructType,
            *(one for one in (_TIME, _NTZ) if one is not None))


def is_sample_type(kind: T.DataType) -> bool:
    """Whether rows of samples, besides numbers and tensors, may be of this type."""
    return isinstance(kind, _SAMPLES)


def spark_type(column: str, kind: Kind) -> T.DataType:
    """ValueError if Spark has none."""
    if kind.form == "struct":
        return T.StructType([T.StructField(name, spark_type(column, inner))
                             for name, inner in kind.inner.items()])
    if kind.form == "list":
        return T.ArrayType(spark_type(column, kind.item))
    if kind.form != "value":
        return T.StringType() if kind.form == "utf8" else T.BinaryType()
    found = ELEMENTS.get(kind.dtype or "") if not kind.logical else _logical(kind.text)
    if found is None:
        raise ValueError("%s: Spark has no type for %s; columns leaves it out, and layout=tensors "
                         "reads its tensors" % (column, kind.text))
    return found


def _logical(text: str) -> T.DataType | None:
    base, _, rest = text.partition("(" if "(" in text else "[")
    if base.startswith("decimal"):
        precision, scale = (int(part) for part in rest[:-1].split(","))
        fits = precision <= 38 and 0 <= scale <= precision
        return T.DecimalType(precision, scale) if fits else None
    if base == "timestamp":
        made = T.TimestampType if "tz=" in rest else _NTZ
        return made() if made is not None else None
    if base in ("time32", "time64"):
        return _TIME() if _TIME is not None else None
    found = {"fixed_size_binary": T.BinaryType, "date32": T.DateType, "date64": T.DateType,
             "duration": T.DayTimeIntervalType}.get(base)
    return found() if found is not None else None


def cast_to(column: str, array: Any, wanted: Any) -> Any:
    """An Arrow array as a type of Spark, exactly or with an error."""
    import pyarrow as pa
    if array.type == wanted:
        return array
    try:
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError("%s: expected values that fit %s, found %s: %s"
                         % (column, wanted, array.type, error)) from None
