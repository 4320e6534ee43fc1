"""Values that are lost elsewhere: large integers, decimals, vectors, nulls, ragged rows."""
import json
import math
import os
import struct

import numpy as np
import pytest

import frames
import holding
from frames import TENSOR, read, write

import libsafetensors.spark as lss

pytestmark = pytest.mark.local

LARGE = [2 ** 53 + 1, 1234567890123456789, -(2 ** 53) - 1, 2 ** 63 - 1, -(2 ** 63)]


def published(path):
    return os.path.exists(os.path.join(path, holding.MANIFEST))


def test_large_integers(spark, out):
    df = spark.createDataFrame([(v, [v, v - (v > 0)]) for v in LARGE], "n bigint, a array<bigint>")
    write(df.coalesce(1), out, batch_size=5)
    holding.whole(out)
    got = holding.stacked(out)
    assert sorted(got["n"].tolist()) == sorted(LARGE) and got["n"].dtype == np.int64
    rows = read(spark, out, layout="samples", **{"as": "array"}).collect()
    assert sorted(row["a"][0] for row in rows) == sorted(LARGE)


def test_large_integers_with_dtype(spark, out):
    df = spark.createDataFrame([([v],) for v in LARGE], "a array<bigint>")
    write(df.coalesce(1), out, batch_size=5, dtype="I64")
    assert sorted(holding.stacked(out)["a"][:, 0].tolist()) == sorted(LARGE)
    with pytest.raises(Exception, match="(?s)a.*U64|U64.*a"):
        write(df, out, batch_size=5, dtype="U64")


@pytest.mark.parametrize("options", [{"dtype": "I64"}, {"dtype": "F64"}])
@pytest.mark.few(1)
def test_decimals_with_a_dtype_are_refused(spark, out, options):
    """What they mean is for the caller to say: a cast to bigint is exact."""
    df = spark.sql("select cast(12345678901234567 as decimal(20, 0)) d, array(1.5BD) a")
    for column in ("d", "a"):
        with pytest.raises(Exception, match="(?s)column %s.*decimal|%s: .*decimal|decimal.*%s"
                           % (column, column, column)):
            write(df, out, batch_size=1, columns=column, **options)
    assert not published(out)
    write(df.selectExpr("cast(d as bigint) d"), out, batch_size=1)
    assert holding.stacked(out)["d"].tolist() == [12345678901234567]


def test_vectors_of_ml(spark, out):
    from pyspark.ml.linalg import Vectors
    rows = [(Vectors.dense([1.5, 0.0, -2.25]),), (Vectors.sparse(3, {1: 7.125}),),
            (Vectors.dense([math.pi, 1e-300, 1e300]),)]
    write(spark.createDataFrame(rows, ["v"]).coalesce(1), out, batch_size=3)
    holding.whole(out)
    got = holding.stacked(out)["v"]
    assert got.dtype == np.float64
    assert sorted(got.tolist()) == sorted([[1.5, 0, -2.25], [0, 7.125, 0],
                                           [math.pi, 1e-300, 1e300]])


def test_structs_that_went_through_parquet(spark, out, tmp_path):
    """Spark makes all that is nested nullable there."""
    values = np.arange(24, dtype=np.int16).reshape(4, 2, 3)
    df = spark.createDataFrame([(frames.struct(v),) for v in values], "t %s" % TENSOR)
    df.write.parquet(str(tmp_path / "parquet"))
    back = spark.read.parquet(str(tmp_path / "parquet"))
    assert back.schema["t"].dataType["shape"].dataType.containsNull
    write(back.coalesce(1), out, batch_size=4)
    holding.whole(out)
    got = holding.stacked(out)["t"]
    assert got.dtype == np.int16 and got.shape == (4, 2, 3)
    assert np.array_equal(got[np.argsort(got[:, 0, 0])], values)


def test_structs_with_long_shapes(spark, out):
    schema = "t struct<data: binary, shape: array<bigint>, dtype: string>"
    df = spark.createDataFrame([(frames.struct(np.ones((2, 2), np.float64)),)], schema)
    write(df, out, batch_size=1)
    assert holding.stacked(out)["t"].shape == (1, 2, 2)


def test_a_struct_that_lies(spark, out):
    lie = dict(frames.struct(np.ones(4, np.float32)), shape=[5])
    df = spark.createDataFrame([(lie,)], "t %s" % TENSOR)
    with pytest.raises(Exception, match="t"):
        write(df, out, batch_size=1)
    assert not published(out)


def test_a_struct_is_converted_not_relabelled(spark, out):
    df = spark.createDataFrame([(frames.struct(np.array([1.5, -2], np.float32)),)],
                               "t %s" % TENSOR)
    write(df, out, batch_size=1, dtype="F64")
    assert holding.stacked(out)["t"].tolist() == [[1.5, -2.0]]


@pytest.mark.parametrize("sql, value", [
    ("array(1f, cast(null as float))", [1.0, None]), ("cast(null as array<array<float>>)", None),
    ("cast(null as array<float>)", None), ("cast(null as float)", None)])
@pytest.mark.few(1)
def test_null_rows(spark, out, sql, value):
    df = spark.sql("select 1 id, %s x" % sql)
    write(df, out, batch_size=1, columns="x")
    assert [row["x"] for row in read(spark, out, layout="samples",
                                     **{"as": "array"}).collect()] == [value]


def test_null_structs(spark, out):
    df = spark.createDataFrame([(frames.struct(np.ones(2, np.float32)),), (None,)],
                               "t %s" % TENSOR)
    with pytest.raises(Exception, match="(?s)t.*null|null.*t"):
        write(df.coalesce(1), out, batch_size=1)


def test_null_keys(spark, out):
    df = spark.createDataFrame([("a", 1), (None, 2)], "k string, v int")
    with pytest.raises(Exception, match="(?s)k.*null|null.*k"):
        write(df.coalesce(1), out, name_col="k")
    assert not published(out)


@pytest.mark.parametrize("sql", ["array(1f, null)", "array(array(1f), array(2f, 3f))"])
def test_the_row_is_named(spark, out, sql):
    """Among the task's rows, as Spark hands them over."""
    shape = 2 if "array(array" in sql else 1
    df = spark.range(0, 50, 1, 1).selectExpr(
        "if(id = 33, %s, %s) x" % (sql, "array(array(1f), array(2f))" if "array(array" in sql
                                   else "array(1f)"))
    with pytest.raises(Exception, match="(?s)x.*row 33"):
        write(df, out, batch_size=50, shapes='{"x": [%d]}' % shape)
    assert not published(out)


def test_ragged_rows(spark, out):
    """In a batch with the shape asked for an error; in KV mode each tensor has its own shape."""
    df = spark.createDataFrame([("a", [1.0] * 10), ("b", [2.0] * 1000)],
                               "k string, x array<double>").coalesce(1)
    with pytest.raises(Exception, match="(?s)x.*10.*1000"):
        write(df, out, batch_size=2, columns="x", shapes='{"x": [10]}')
    write(df, out, name_col="k")
    holding.whole(out)
    assert {key: v.shape for key, v in holding.keyed(out).items()} == \
        {"a__x": (10,), "b__x": (1000,)}


def test_rows_as_people_have_them(spark, out):
    """Text, bytes, lists and nulls come back as they were, in both directions."""
    df = spark.range(0, 500, 1, 3).selectExpr(
        "id", "if(id % 7 = 0, null, concat('é', repeat('x', int(id % 5)))) t",
        "if(id % 11 = 0, null, cast(repeat('ab', int(id % 9)) as binary)) b",
        "if(id % 13 = 0, null, transform(sequence(0, int(id % 6)), v -> cast(v as float))) l",
        "if(id % 3 = 0, null, cast(id as double)) d", "if(id % 4 = 0, null, id % 2 = 0) bo",
        "array(id, id + 1) f")
    write(df, out, batch_size=64)
    holding.whole(out)
    back = read(spark, out, layout="samples", **{"as": "array"})
    assert {field.name: field.dataType for field in back.schema} == \
        {field.name: field.dataType for field in df.schema} or \
        back.schema.simpleString() == df.schema.simpleString()
    assert df.exceptAll(back).count() == 0 and back.exceptAll(df).count() == 0
    assert back.select("t").where("t is null").count() == df.where("t is null").count() > 0
    with pytest.raises(Exception, match="(?s)l.*vary in length.*as=array"):
        read(spark, out, layout="samples").collect()
    assert "t.offsets" in read(spark, out, layout="files").columns


def test_every_plain_type(spark, out):
    df = spark.sql("""select true b, cast(-7 as tinyint) i8, cast(-300 as smallint) i16,
        70000 i32, 5000000000 i64, cast(0.1 as float) f, cast(0.1 as double) d,
        array(true, false) bs, array(cast(1 as tinyint)) i8s, array(array(1, 2), array(3, 4)) m""")
    write(df, out, batch_size=1)
    got = holding.stacked(out)
    kinds = {name: str(values.dtype) for name, values in got.items()}
    assert kinds == {"b": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
                     "f": "float32", "d": "float64", "bs": "bool", "i8s": "int8", "m": "int32"}
    assert got["m"].reshape(-1).tolist() == [1, 2, 3, 4] and got["i64"].tolist() == [5000000000]
    assert got["f"][0] == np.float32(0.1) and got["d"][0] == 0.1


def test_half_subnormals(spark, out):
    """The connector flushes them, and reads them back at half their value."""
    values = [2.0 ** -24 * i for i in (1, 2, 3, 512, 1023)] + [2.0 ** -14, 65504.0]
    df = spark.createDataFrame([(values,)], "x array<double>")
    write(df, out, batch_size=1, dtype="F16")
    assert holding.stacked(out)["x"][0].tolist() == values
    rows = read(spark, out, layout="samples", **{"as": "array"}).collect()
    assert list(rows[0]["x"]) == values


@pytest.mark.parametrize("rounding, expected", [("nearest", 0x3F81), ("truncate", 0x3F80)])
@pytest.mark.few(1)
def test_bfloat16_rounding(spark, out, rounding, expected):
    value = struct.unpack("<f", struct.pack("<I", 0x3F80C000))[0]
    df = spark.createDataFrame([([value],)], "x array<float>")
    write(df, out, batch_size=1, dtype="BF16", rounding=rounding)
    row = read(spark, out, layout="files").collect()[0]["x"]
    assert row["dtype"] == "BF16" and bytes(row["data"]) == expected.to_bytes(2, "little")


def test_dtype_by_column(spark, out):
    df = frames.frame(spark, 10, 1)
    write(df, out, batch_size=10, columns="x,n", dtype=json.dumps({"x": "f16", "n": "I32"}))
    got = holding.stacked(out)
    assert got["x"].dtype == np.float16 and got["n"].dtype == np.int32
    assert np.array_equal(got["n"], frames.ns(10))


def test_values_that_do_not_fit(spark, out):
    for sql, dtype in (("300", "U8"), ("-1", "U32"), ("3000000000", "I32"), ("40000f", "I16"),
                       ("1.5d", "I32"), ("1e300d", "F32"), ("70000f", "F16")):
        with pytest.raises(Exception, match="x"):
            write(spark.sql("select array(%s) x" % sql), out, batch_size=1, dtype=dtype)


def test_names_that_break_a_file(spark, out):
    df = spark.createDataFrame([("", 1)], "k string, metadata__ int")
    with pytest.raises(Exception, match="__metadata__"):
        write(df, out, name_col="k")


@pytest.mark.long
def test_large_batches_are_avoided(spark, out):
    """64 MiB of rows by default, however many records a batch may have."""
    df = spark.range(0, 400, 1, 1).selectExpr("transform(sequence(0, 65535), i -> 1f) x")
    lss.write_safetensors(df, out, batch_size=400)
    assert holding.stacked(out)["x"].shape == (400, 65536)


# ── SQL functions ──

def functions(spark):
    lss.register(spark)
    return spark


def one(spark, sql):
    return spark.sql("select %s v" % sql).collect()[0]["v"]


def test_arrays_to_tensors(spark):
    functions(spark)
    kinds = {name: kind for name, kind in frames.DTYPES.items() if name != "BOOL"}
    made = one(spark, "array(%s)" % ", ".join(
        "arr_to_st(array(0f, 1f, 2f, 3f, 4f, 5f), array(2, 3), '%s')" % name for name in kinds))
    assert [(each["dtype"], list(each["shape"])) for each in made] == [(name, [2, 3]) for name in kinds]
    for tensor, kind in zip(made, kinds.values()):
        assert np.array_equal(frames.array(tensor), np.arange(6).astype(kind).reshape(2, 3)), kind


def test_tensors_to_arrays(spark):
    functions(spark)
    assert one(spark, "st_to_array(arr_to_st(array(1.5f, -2f), array(2), 'F32'))") == [1.5, -2]
    assert one(spark, "st_to_array_bigint(arr_to_st(array(9007199254740993), array(1), 'I64'))") \
        == [2 ** 53 + 1]
    assert one(spark, "st_to_array_double(arr_to_st(array(0.1d), array(1), 'F64'))") == [0.1]
    assert one(spark, "st_to_array_int(arr_to_st(array(7, -7), array(2), 'I32'))") == [7, -7]


def test_half_functions_know_subnormals(spark):
    functions(spark)
    tiny = 2.0 ** -24
    assert one(spark, "st_to_array(arr_to_st(array(cast(%r as float)), array(1), 'F16'))"
               % tiny) == [tiny]


def test_functions_and_nulls(spark):
    functions(spark)
    assert one(spark, "arr_to_st(cast(null as array<float>), array(1), 'F32')") is None
    assert one(spark, "st_to_array(cast(null as %s))" % TENSOR.replace(": ", ":")) is None


@pytest.mark.parametrize("sql, word", [
    ("arr_to_st(array(1f, 2f), array(3), 'F32')", "3"),
    ("arr_to_st(array(1f, 2f), array(2), 'F33')", "F33"),
    ("arr_to_st(array(300f), array(1), 'U8')", "300|U8"),
    ("arr_to_st(array(1.5f), array(1), 'I32')", "I32.*1.5"),
    ("arr_to_st(array(2f, 70000f), array(2), 'F16')", "F16.*70000"),
    ("arr_to_st(array(1e300d), array(1), 'BF16')", "BF16.*1e.?300"),
    ("arr_to_st(array(8f, 8f), array(2), 'F4')", "F4.*8"),
    ("arr_to_st(array(2), array(1), 'BOOL')", "BOOL"),
    ("st_to_array_int(arr_to_st(array(5000000000), array(1), 'I64'))", "5000000000|int")])
@pytest.mark.few(1)
def test_functions_refuse(spark, sql, word):
    functions(spark)
    with pytest.raises(Exception, match=word):
        one(spark, sql)
