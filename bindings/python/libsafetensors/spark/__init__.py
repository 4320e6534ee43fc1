"""Reads and writes safetensors datasets with stock Spark.

    from libsafetensors import spark as st
    st.register(spark)
    df.write.format("safetensors").mode("append").option("batch_size", 1000).save(path)
    spark.read.format("safetensors").load(path)

Needs Spark 4.0 or later; write_safetensors, read, count and the SQL functions work with 3.5. This
package must be installed on every executor. Importing this imports neither pyspark nor
pyarrow.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._functions import arr_to_st, register, st_to_array
    from ._read import count, read
    from ._source import SafetensorsDataSource
    from ._values import binary_to_numpy
    from ._write import write_safetensors

__all__ = ["SafetensorsDataSource", "arr_to_st", "binary_to_numpy", "count", "read", "register",
           "st_to_array", "write_safetensors"]

_HOMES = {"SafetensorsDataSource": "_source", "arr_to_st": "_functions",
          "binary_to_numpy": "_values", "count": "_read", "read": "_read",
          "register": "_functions", "st_to_array": "_functions", "write_safetensors": "_write"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module
        return getattr(import_module("." + _HOMES[name], __name__), name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
