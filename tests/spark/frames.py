"""Frames with known contents, and their writing and reading: by the data source, or before Spark
4.0, which has no Python data sources, by the functions."""
import numpy as np
import pyspark

SOURCES = int(pyspark.__version__.split(".")[0]) >= 4

WIDTH = 4


def frame(spark, rows=100, parts=4, start=0, width=WIDTH):
    """id, name, x (array<float>), n (bigint); row i holds the values of xs() and ns()."""
    return spark.range(start, start + rows, 1, parts).selectExpr(
        "id", "concat('row', id) name",
        "transform(sequence(0, %d), i -> cast(id * %d + i as float)) x" % (width - 1, width),
        "id * 3 n")


ROWS, PARTS, WIDE = 400, 4, 1024  # 4 KiB a row, so that batches do not wait in buffers
SCHEMA = "id bigint, x array<float>"


def wide(spark, rows=ROWS, parts=PARTS, start=0):
    """id and x of frame, with WIDE elements, for tests with faults."""
    return frame(spark, rows, parts, start, WIDE).select("id", "x")


def xs(rows=100, start=0, width=WIDTH):
    """Column x of frame, stacked."""
    return np.arange(start * width, (start + rows) * width, dtype=np.float32).reshape(rows, width)


def ns(rows=100, start=0):
    return np.arange(start, start + rows, dtype=np.int64) * 3


def write(df, path, mode="overwrite", **options):
    if not SOURCES:
        from libsafetensors.spark import write_safetensors
        write_safetensors(df, path, mode=mode, **texts(options))
        return
    df.write.format("safetensors").mode(mode).options(**texts(options)).save(path)


def read(spark, path, **options):
    if not SOURCES:
        from libsafetensors.spark import read as by_function
        return by_function(spark, path, **texts(options))
    return spark.read.format("safetensors").options(**texts(options)).load(path)


def texts(options):
    return {name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()}


DTYPES = {"BOOL": "bool", "I8": "int8", "U8": "uint8", "I16": "int16", "U16": "uint16",
          "I32": "int32", "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16",
          "F32": "float32", "F64": "float64"}


def array(tensor):
    """The numpy array of a tensor struct of a row."""
    return np.frombuffer(tensor["data"], DTYPES[tensor["dtype"]]).reshape(tensor["shape"])


def struct(values):
    """A tensor struct's value from an array."""
    values = np.ascontiguousarray(values)
    name = {kind: name for name, kind in DTYPES.items()}[str(values.dtype)]
    return {"data": values.tobytes(), "shape": list(values.shape), "dtype": name}


TENSOR = "struct<data: binary, shape: array<int>, dtype: string>"
