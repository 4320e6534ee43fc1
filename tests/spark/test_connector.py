"""The scenarios of the Scala connector's own tests, with what they leave out: contents. Its
calls are made as they stand there; the group a scenario is from stands above it. What its tests
of headers ask, tests/corpus and tests/unit ask of every reader and writer here; nulls, ragged
rows and values that do not fit are in test_values.py; how shards are shared out to workers is in
tests/python/test_dataset_torch.py. It logs datasets to MLflow; here nothing does."""
import os
import re

import jsonschema
import numpy as np
import pandas as pd
import pytest

import frames
import holding
from frames import TENSOR, read, write

import libsafetensors.spark as lss
from libsafetensors import dataset

PART = re.compile(r"^part-\d{5}-\d{4}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.safetensors$")
ACCEPTED = ["F16", "F32", "F64", "BF16", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"]

pytestmark = pytest.mark.local


def width(dtype):
    """Bytes of an element."""
    return {"BOOL": 1, "BF16": 2, "C64": 8}.get(dtype) or int(dtype[1:]) // 8


def floats(spark, values, name="x", kind="array<float>"):
    return spark.createDataFrame([(list(map(float, row)),) for row in values],
                                 "%s %s" % (name, kind)).coalesce(1)


# ── Spark to Python: manifest and files ──

def test_manifest_is_as_on_disk(spark, out, root_of_docs):
    import json
    write(frames.frame(spark), out, batch_size=10, dtype="F32", columns="x")
    told = holding.whole(out)
    with open(root_of_docs / "dataset_manifest.schema.json", encoding="utf-8") as file:
        jsonschema.validate(told, json.load(file))
    assert told["format_version"] == told["safetensors_version"] == "1.0"
    on_disk = sorted(name for name in os.listdir(out) if name.endswith(".safetensors"))
    assert [one["shard_path"] for one in told["shards"]] == on_disk
    assert all(PART.match(name) for name in on_disk)
    assert told["total_bytes"] == sum(os.path.getsize(os.path.join(out, n)) for n in on_disk)
    assert told["schema"] == {"x": {"dtype": "F32", "shape": [10, 4]}}


def test_index_contents(spark, out):
    write(frames.frame(spark, 10), out, name_col="name", columns="x", generate_index=True)
    index = pd.read_parquet(os.path.join(out, "_tensor_index.parquet"))
    assert list(index.columns[:4]) == ["tensor_key", "file_name", "shape", "dtype"]
    assert list(index.tensor_key) == sorted("row%d__x" % i for i in range(10))
    assert {tuple(shape) for shape in index["shape"]} == {(4,)} and set(index.dtype) == {"F32"}
    for row in index.itertuples():
        assert row.tensor_key in holding.tensors(out, row.file_name)
        with open(os.path.join(out, row.file_name), "rb") as file:
            file.seek(row.begin)
            data = file.read(row.end - row.begin)
        i = int(row.tensor_key[3:-3])
        assert data == frames.xs(1, i).tobytes()


def test_index_routes_keys(spark, out):
    write(frames.frame(spark), out, name_col="name", columns="x", generate_index=True)
    rows = read(spark, out, layout="tensors", keys="row42__x").collect()
    assert [row["tensor_key"] for row in rows] == ["row42__x"]
    assert np.array_equal(frames.array(rows[0]), frames.xs(1, 42)[0])


def test_one_file_a_batch(spark, out):
    write(frames.frame(spark, 50, 1), out, batch_size=10, dtype="F32", columns="x")
    assert len(holding.shards(out)) == 5
    assert all(holding.tensors(out, name)["x"].shape == (10, 4) for name in holding.shards(out))


# ── Tails ──

@pytest.mark.parametrize("strategy, sizes", [("write", [10, 10, 5]), ("drop", [10, 10]),
                                             ("pad", [10, 10, 10]), (None, [10, 10, 5])])
@pytest.mark.few(1)
def test_tails(spark, out, strategy, sizes):
    chosen = {} if strategy is None else {"tail_strategy": strategy}
    write(frames.frame(spark, 25, 1), out, batch_size=10, columns="x", **chosen)
    told = holding.whole(out)
    assert [holding.tensors(out, n)["x"].shape[0] for n in holding.shards(out)] == sizes
    assert told["total_samples"] == sum(sizes)
    assert told["total_valid_samples"] == min(25, sum(sizes))
    got = holding.stacked(out)["x"]
    assert np.array_equal(got[:25], frames.xs(25)[:len(got)])
    assert not got[25:].any()


# ── KV mode ──

@pytest.mark.long
def test_shard_sizes(spark, out):
    """50 MiB, and no key is lost."""
    df = spark.range(0, 130, 1, 1).selectExpr(
        "concat('k', id) k", "transform(sequence(0, 262143), i -> cast(id as float)) x")
    write(df, out, name_col="k", dtype="F32", target_shard_size_mb=50)
    told = holding.whole(out)
    assert len(told["shards"]) == 3
    assert all(one["bytes"] <= 1.2 * 50 * 2 ** 20 for one in told["shards"])
    got = holding.keyed(out)
    assert sorted(got) == sorted("k%d__x" % i for i in range(130))
    assert all((got["k%d__x" % i] == i).all() for i in range(130))


def test_names(spark, out):
    df = spark.createDataFrame([("a", [1.0, 2.0], [3.0]), ("b", [4.0, 5.0], [6.0])],
                               "k string, x array<float>, y array<float>")
    write(df, out, name_col="k", dtype="F32")
    got = {key: value.tolist() for key, value in holding.keyed(out).items()}
    assert got == {"a__x": [1, 2], "a__y": [3], "b__x": [4, 5], "b__y": [6]}


@pytest.mark.parametrize("separator", [".", "", "/", "::"])
@pytest.mark.few(1)
def test_separators(spark, out, separator):
    df = spark.createDataFrame([("a", [1.0])], "k string, x array<float>")
    write(df, out, name_col="k", dtype="F32", kv_separator=separator)
    assert list(holding.keyed(out)) == ["a%sx" % separator]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.few(1)
def test_duplicates_fail(spark, out, parts):
    """In one shard, and (which the connector does not see) in two tasks."""
    df = spark.createDataFrame([("a", [1.0]), ("b", [2.0]), ("a", [3.0])],
                               "k string, x array<float>").repartition(parts, "x")
    with pytest.raises(Exception, match="a__x"):
        write(df, out, name_col="k", dtype="F32", duplicatesStrategy="fail")
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


def test_duplicates_last_wins(spark, out):
    df = spark.createDataFrame([("a", [1.0]), ("b", [2.0]), ("a", [3.0])],
                               "k string, x array<float>").coalesce(1)
    write(df, out, name_col="k", dtype="F32", duplicatesStrategy="lastWin")
    told = holding.whole(out)
    got = {key: value.tolist() for key, value in holding.keyed(out).items()}
    assert got == {"a__x": [3.0], "b__x": [2.0]} and told["total_samples"] == 2


def test_duplicates_last_wins_across_tasks_and_commits(spark, out):
    df = frames.frame(spark, 20, 4)
    twice = df.selectExpr("concat('row', id % 15) name", "n")
    write(twice, out, name_col="name", duplicatesStrategy="lastWin")
    write(spark.sql("select 'row3' name, -1L n"), out, "append", name_col="name",
          duplicatesStrategy="lastWin")
    told = holding.whole(out)
    expected = {"row%d__n" % i: 3 * (i + 15 if i < 5 else i) for i in range(15)}
    expected["row3__n"] = -1
    assert told["total_samples"] == 15 and told["index"]
    assert {key: int(v) for key, v in holding.keyed(out).items()} == expected
    rows = read(spark, out, layout="tensors").collect()
    assert {row["tensor_key"]: int(frames.array(row)) for row in rows} == expected
    assert len(rows) == 15


# ── Overwrite ──

def test_overwrite_removes_stale_shards(spark, out):
    write(frames.frame(spark), out, batch_size=5, dtype="F32", columns="x")
    before = set(holding.shards(out))
    write(frames.frame(spark, 10), out, batch_size=50, dtype="F32", columns="x")
    holding.forget(out)
    assert not before & set(os.listdir(out))
    holding.whole(out)


def test_overwrite_of_an_indexed_dataset_without_index(spark, out):
    """The connector's then reads as empty."""
    write(frames.frame(spark), out, batch_size=50, columns="x", generate_index=True)
    write(frames.frame(spark, 10), out, batch_size=50, columns="x")
    back = read(spark, out, inferSchema=True)
    assert back.count() == 4
    assert sum(len(frames.array(row["x"])) for row in back.collect()) == 10


def test_a_comma_is_part_of_a_path(spark, tmp_path):
    """The connector parts paths there."""
    out = str(tmp_path / "a,b")
    write(frames.frame(spark, 10, 1), out, batch_size=10, columns="x")
    assert holding.whole(out)["total_samples"] == 10 and os.listdir(tmp_path) == ["a,b"]
    assert read(spark, out, layout="samples").count() == 10


# ── Values ──

@pytest.mark.parametrize("dtype, tolerance", [("F16", 2 ** -11), ("BF16", 2 ** -8)])
@pytest.mark.few(1)
def test_low_precision(spark, out, dtype, tolerance):
    values = np.random.default_rng(7).uniform(-10, 10, (20, 64)).astype(np.float32)
    write(floats(spark, values), out, batch_size=20, dtype=dtype)
    holding.whole(out)
    rows = read(spark, out, layout="samples", **{"as": "array"}).collect()
    got = np.array([row["x"] for row in rows], np.float32)
    assert np.all(np.abs(got - values) <= np.abs(values) * tolerance)
    if dtype == "F16":
        assert np.array_equal(holding.stacked(out)["x"], values.astype(np.float16))


def truncated(values, dtype):
    """Bits of the connector's F16 and BF16 of floats that are no subnormals there."""
    bits = values.view(np.uint32)
    if dtype == "BF16":
        return (bits >> 16).astype(np.uint16)
    exponent = (bits >> 23 & 0xFF).astype(np.int32) - 127 + 15
    assert ((exponent > 0) & (exponent < 31)).all()
    return (bits >> 16 & 0x8000 | exponent.astype(np.uint32) << 10
            | bits >> 13 & 0x3FF).astype(np.uint16)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_truncation_as_the_connector_does(spark, out, dtype):
    values = np.random.default_rng(8).uniform(-10, 10, (20, 64)).astype(np.float32)
    values[np.abs(values) < 2 ** -14] = 1
    write(floats(spark, values), out, batch_size=20, dtype=dtype, rounding="truncate")
    row = read(spark, out, inferSchema=True).collect()[0]["x"]
    got = np.frombuffer(row["data"], np.uint16).reshape(20, 64)
    assert np.array_equal(got, truncated(values, dtype))


def test_bit_for_bit(spark, out):
    """NaNs of all payloads, infinities, both zeros, subnormals."""
    bits = np.random.default_rng(10).integers(0, 2 ** 32, (4, 256), np.uint32)
    bits[0, :8] = [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC12345, 1, 0x807FFFFF]
    values = [frames.struct(row.view(np.float32)) for row in bits]
    df = spark.createDataFrame([(value,) for value in values], "t %s" % TENSOR).coalesce(1)
    write(df, out, batch_size=4)
    holding.whole(out)
    assert np.array_equal(holding.stacked(out)["t"].view(np.uint32), bits)
    row = read(spark, out, inferSchema=True).collect()[0]["t"]
    assert bytes(row["data"]) == bits.tobytes() and list(row["shape"]) == [4, 256]


def test_random_f32_is_exact(spark, out):
    values = np.random.default_rng(9).standard_normal((50, 33)).astype(np.float32)
    write(floats(spark, values), out, batch_size=50, dtype="F32")
    assert np.array_equal(holding.stacked(out)["x"], values)


@pytest.mark.parametrize("dtype", [name for name in ACCEPTED if name != "BF16"])
@pytest.mark.few(3)
def test_dtypes_hold_their_values(spark, out, dtype):
    df = spark.sql("select array(0, 1, 2, 100) x")
    write(df, out, batch_size=1, dtype=dtype)
    got = holding.stacked(out)["x"]
    assert str(got.dtype) == frames.DTYPES[dtype] and got.tolist() == [[0, 1, 2, 100]]


def test_dtype_is_any_case_and_may_be_left_out(spark, out):
    """The connector demands it for arrays."""
    write(frames.frame(spark), out, batch_size=10, dtype="f32", columns="x")
    write(frames.frame(spark), out, batch_size=10, columns="x")
    assert holding.stacked(out)["x"].dtype == np.float32


def test_st_to_array_round_trip(spark, out):
    lss.register(spark)
    names = ["F32", "I32", "U8", "U64", "BF16", "F16"]
    df = spark.sql("select " + ", ".join("arr_to_st(array(0f, 1f, 2f, 3f, 4f, 5f), array(2, 3), "
                                         "'%s') %s" % (name, name) for name in names))
    write(df, out, batch_size=1)
    back = read(spark, out, inferSchema=True).selectExpr(
        *("struct(st_to_array(%s) v, %s.shape s) %s" % (name, name, name) for name in names)).collect()[0]
    for name in names:
        assert list(back[name]["v"]) == [0, 1, 2, 3, 4, 5] and list(back[name]["s"]) == [1, 2, 3], name


def test_six_columns(spark, out):
    columns = ["c%d" % i for i in range(6)]
    df = spark.range(0, 20, 1, 1).selectExpr(
        *("array(cast(id + %d as float), %df) c%d" % (i, i, i) for i in range(6)))
    write(df, out, batch_size=20, dtype="F32")
    got = holding.stacked(out)
    assert sorted(got) == columns
    for i, name in enumerate(columns):
        assert got[name].tolist() == [[row + i, i] for row in range(20)]


def test_shapes(spark, out):
    df = floats(spark, np.arange(24).reshape(2, 12))
    write(df, out, batch_size=2, dtype="F32", shapes='{"x": [3, 4]}')
    assert np.array_equal(holding.stacked(out)["x"],
                          np.arange(24, dtype=np.float32).reshape(2, 3, 4))


def test_skewed_rows(spark, out):
    """The connector writes files of these that the official package does not open."""
    rows = [[1.0] * 10] * 100 + [[2.0] * 1000] * 10
    df = spark.createDataFrame([(row,) for row in rows], "x array<float>")
    write(df.coalesce(1), out, batch_size=15, dtype="F32")
    told = holding.whole(out)
    assert told["columns"]["x"] == {"dtype": "F32", "shape": None, "encoding": "list"}
    assert len(told["shards"]) == 8
    back = read(spark, out, layout="samples", **{"as": "array"})
    assert sorted(row["x"] for row in back.collect()) == rows


def test_skewed_tensors_are_refused(spark, out):
    df = spark.createDataFrame([(frames.struct(np.ones(n, np.float32)),) for n in (10, 1000)],
                               "x %s" % TENSOR)
    with pytest.raises(Exception, match="(?s)x.*10.*1000"):
        write(df.coalesce(1), out, batch_size=15)
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


def test_skewed_partitions(spark, out):
    df = frames.frame(spark, 110, 1).selectExpr("x", "if(id < 100, 0, id) p").repartition(4, "p")
    write(df, out, batch_size=10, columns="x")
    assert holding.whole(out)["total_samples"] == 110
    got = holding.stacked(out)["x"]
    assert np.array_equal(got[np.argsort(got[:, 0])], frames.xs(110))


def test_reading_back_a_batch(spark, out):
    write(frames.frame(spark, 10, 1), out, batch_size=10, dtype="F32", columns="x")
    rows = read(spark, out, inferSchema=True).collect()
    assert len(rows) == 1 and np.array_equal(frames.array(rows[0]["x"]), frames.xs(10))


def test_reading_back_keys(spark, out):
    write(frames.frame(spark, 10, 2), out, name_col="name", dtype="F32", columns="x")
    rows = read(spark, out, inferSchema=True).collect()
    assert len(rows) == 2 and sorted(rows[0].asDict()) == sorted("row%d__x" % i for i in range(10))
    for i in range(10):
        found = [row["row%d__x" % i] for row in rows if row["row%d__x" % i] is not None]
        assert len(found) == 1 and np.array_equal(frames.array(found[0]), frames.xs(1, i)[0])


# ── Options and schemas of a write ──

def test_defaults():
    told = {name: default for name, (_, default, _, _) in dataset.OPTIONS.items()}
    connector = {"batch_size": None, "name_col": None, "dtype": None, "columns": None,
                 "duplicatesStrategy": "fail", "generate_index": "false",
                 "target_shard_size_mb": "300", "kv_separator": "__", "tail_strategy": "write",
                 "shapes": None}
    assert {name: told[name] for name in connector} == connector


BAD = [
    ({}, "batch_size.*name_col|name_col.*batch_size"),
    ({"batch_size": 1, "name_col": "name"}, "batch_size.*name_col|name_col.*batch_size"),
    ({"batch_size": 0}, "batch_size"), ({"batch_size": -1}, "batch_size"),
    ({"batch_size": "ten"}, "batch_size"), ({"batch_size": 1, "dtype": "F33"}, "dtype.*F33"),
    ({"batch_size": 1, "tail_strategy": "cut"}, "tail_strategy"),
    ({"name_col": "name", "duplicatesStrategy": "first"}, "duplicatesstrategy"),
    ({"name_col": "name", "target_shard_size_mb": "many"}, "target_shard_size_mb"),
    ({"batch_size": 1, "generate_index": "maybe"}, "generate_index"),
    ({"batch_size": 1, "shapes": "[4]"}, "shapes"),
    ({"batch_size": 1, "shapes": '{"x": [5]}', "columns": "x"}, "x.*5"),
    ({"batch_size": 1, "columns": "x,z"}, "z"), ({"name_col": "z"}, "z"),
    ({"name_col": "n", "columns": "x"}, "n"), ({"batch_size": 1, "batchsize": 2}, "batch_size")]


def test_bad_options_touch_nothing(spark, out):
    df = frames.frame(spark, 4, 1)
    write(df, out, batch_size=2, columns="x")
    before = holding.files(out)
    for options, words in BAD:
        with pytest.raises(Exception, match="(?si)" + words):
            write(df, out, **options)
        assert holding.files(out) == before


@pytest.mark.parametrize("empty", ["name_col", "batch_size"])
def test_an_empty_option_is_not_given(spark, out, empty):
    options = {"batch_size": 4, "name_col": "name", empty: ""}
    write(frames.frame(spark, 4, 1), out, columns="x", **options)
    assert holding.whole(out)["mode"] == ("kv" if empty == "batch_size" else "batch")


def test_options_in_any_case(spark, out):
    df = frames.frame(spark, 5, 1)
    write(df, out, BATCH_SIZE=2, Columns="x", Tail_Strategy="DROP", dtype="F64")
    assert holding.stacked(out)["x"].tolist() == frames.xs(4).tolist()


@pytest.mark.parametrize("columns", ["x", "x,n", " x , , n "])
def test_columns_are_chosen(spark, out, columns):
    write(frames.frame(spark, 4, 1), out, batch_size=4, columns=columns)
    names = sorted(filter(None, columns.replace(" ", "").split(",")))
    assert sorted(holding.stacked(out)) == names


def test_an_unknown_dtype_in_a_struct(spark, out):
    df = spark.sql("select struct(cast('abcd' as binary) data, array(1) shape, 'F33' dtype) t")
    with pytest.raises(Exception, match="(?s)t.*F33"):
        write(df, out, batch_size=1)
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


def test_structs_of_each_dtype(spark, out):
    """The connector knows the first twelve."""
    data = {name: bytes(i % 2 for i in range(6 * width(name)))
            for name in (*ACCEPTED, "BOOL", "C64")}
    df = spark.createDataFrame(
        [tuple({"data": each, "shape": [2, 3], "dtype": name} for name, each in data.items())],
        ", ".join("%s %s" % (name, TENSOR) for name in data))
    write(df, out, batch_size=1)
    told = holding.whole(out)
    assert told["columns"] == {name: {"dtype": name, "shape": [2, 3]} for name in data}
    assert len(told["shards"]) == 1
    row = read(spark, out, inferSchema=True).collect()[0]
    assert {name: (bytes(row[name]["data"]), row[name]["dtype"]) for name in data} == {
        name: (each, name) for name, each in data.items()}


# ── What is refused and accepted ──

@pytest.mark.parametrize("sql", ["map('a', 1) x", "array(map('a', 1)) x",
                                 "named_struct('a', map('a', 1)) x", "null x"])
def test_columns_that_are_refused(spark, out, sql):
    with pytest.raises(Exception, match="x"):
        write(spark.sql("select " + sql), out, batch_size=1)
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


def test_text_and_bytes_are_accepted(spark, out):
    df = spark.sql("select * from values ('a fox', X'ff00'), (null, X''), ('', null) t(x, y)")
    write(df.coalesce(1), out, batch_size=2)
    back = read(spark, out, layout="samples")
    assert [field.dataType.simpleString() for field in back.schema] == ["string", "binary"]
    assert back.exceptAll(df).count() == df.exceptAll(back).count() == 0 and back.count() == 3


def test_arrays_that_are_accepted(spark, out):
    kinds = ["float", "double", "int", "bigint", "smallint", "tinyint"]
    write(spark.sql("select " + ", ".join("array(cast(1 as %s), cast(2 as %s)) x_%s" % (3 * (kind,))
                                          for kind in kinds)), out, batch_size=1, dtype="F32")
    assert {name: values.tolist() for name, values in holding.stacked(out).items()} == {
        "x_" + kind: [[1, 2]] for kind in kinds}


def test_nullable_structs_are_accepted(spark, out):
    df = spark.createDataFrame([(frames.struct(np.arange(3, dtype=np.float32)),)],
                               "t %s" % TENSOR)
    assert df.schema["t"].nullable
    write(df, out, batch_size=1)
    assert holding.stacked(out)["t"].tolist() == [[0, 1, 2]]


def test_filtered_to_nothing(spark, out):
    write(frames.frame(spark).where("id < 0"), out, batch_size=10, columns="x")
    assert holding.whole(out)["shards"] == []


def test_partitions_of_one_row(spark, out):
    write(frames.frame(spark, 8, 8), out, batch_size=10, columns="x")
    assert len(holding.shards(out)) == 8
    assert np.array_equal(holding.stacked(out)["x"], frames.xs(8))


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.few(1)
def test_large_tensors(spark, out, size):
    values = np.arange(size * 2 ** 18, dtype=np.int32).view(np.float32)
    df = spark.createDataFrame([(frames.struct(values),)] * 2, "t %s" % TENSOR).coalesce(1)
    write(df, out, batch_size=2)
    got = holding.stacked(out)["t"]
    assert got.tobytes() == 2 * values.tobytes()


@pytest.mark.parametrize("size, good", [(49, False), (50, True), (1000, True), (1001, False)])
def test_limits_of_shard_size(spark, out, size, good):
    df = spark.sql("select 'a' k, 1f x")
    if good:
        write(df, out, name_col="k", target_shard_size_mb=size)
        holding.whole(out)
    else:
        with pytest.raises(Exception, match="target_shard_size_mb"):
            write(df, out, name_col="k", target_shard_size_mb=size)


# ── SQL functions ──

@pytest.fixture
def sql(spark):
    """Value of an expression."""
    lss.register(spark)
    return lambda text: spark.sql("select %s v" % text).collect()[0]["v"]


@pytest.mark.parametrize("text", [
    "arr_to_st('text', array(1), 'F32')", "arr_to_st(array('a'), array(1), 'F32')",
    "arr_to_st(array(1f), 1, 'F32')", "arr_to_st(array(1f), array(1), 32)",
    "arr_to_st(array(1f), array(1))", "st_to_array(array(1f))", "st_to_array('text')",
    "st_to_array(struct(1 a, 2 b))", "st_to_array()"])
@pytest.mark.few(1)
def test_functions_of_wrong_types(sql, text):
    with pytest.raises(Exception):
        sql(text)


def test_lengths_of_tensors(sql):
    found = sql("array(%s)" % ", ".join(
        "arr_to_st(array(0f, 1f, 2f, 3f, 4f, 5f), array(2, 3), '%s')" % name for name in ACCEPTED))
    assert [(len(row["data"]), list(row["shape"]), row["dtype"]) for row in found] == [
        (6 * width(name), [2, 3], name) for name in ACCEPTED]


def test_bytes_of_tensors(sql):
    cases = [("1.5f", "BF16", "c03f"), ("1.5f", "F16", "003e"), ("1.5f", "F32", "0000c03f"),
             ("-1.5f", "F64", "000000000000f8bf"), ("7f", "I32", "07000000"), ("255f", "U8", "ff"),
             ("-1", "I64", "ffffffffffffffff")]
    found = sql("array(%s)" % ", ".join("arr_to_st(array(%s), array(1), '%s')" % case[:2]
                                        for case in cases))
    assert [bytes(row["data"]).hex() for row in found] == [case[2] for case in cases]


def test_arrays_of_bytes(sql):
    cases = [("0000C03F000000C0", "F32", [1.5, -2]), ("07000000F9FFFFFF", "I32", [7, -7]),
             ("00FF", "U8", [0, 255]), ("C03F00C0", "BF16", [1.5, -2]),
             ("003E00C0", "F16", [1.5, -2]), ("0000000000000080", "U64", [2.0 ** 63])]
    assert sql("array(%s)" % ", ".join(
        "st_to_array(struct(X'%s' data, array(%d) shape, '%s' dtype))" % (data, len(expected), name)
        for data, name, expected in cases)) == [expected for _, _, expected in cases]


def test_types_of_functions(spark):
    lss.register(spark)
    df = spark.sql("select arr_to_st(array(1f), array(1), 'F32') t").selectExpr(
        "t", "st_to_array(t) v", "ST_TO_ARRAY(t) w")
    kinds = dict(df.dtypes)
    assert kinds["t"] == TENSOR.replace(": ", ":").replace(", ", ",")
    assert kinds["v"] == kinds["w"] == "array<float>"


def test_functions_by_every_way(spark):
    from pyspark.sql import functions as F
    lss.register(spark)
    df = spark.sql("select array(1f, 2f) a")
    df.createOrReplaceTempView("arrays")
    ways = [df.select(F.expr("st_to_array(arr_to_st(a, array(2), 'F16'))")),
            df.select(F.call_udf("st_to_array", F.call_udf(
                "arr_to_st", "a", F.array(F.lit(2)), F.lit("F16")))),
            df.select(lss.st_to_array(lss.arr_to_st("a", [2], "F16"))),
            spark.sql("select st_to_array(arr_to_st(a, array(2), 'F16')) from arrays")]
    assert [way.collect()[0][0] for way in ways] == [[1, 2]] * 4
    names = {one.name for one in spark.catalog.listFunctions()}
    assert {"arr_to_st", "st_to_array"} <= names


# ── Datasets in Python, where the connector has a package of its own ──

def test_opened_in_python(spark, out):
    write(frames.frame(spark, 25, 2), out, batch_size=10, columns="x,n", tail_strategy="pad",
          generate_index=True)
    data = dataset.open(out)
    assert len(data) == 25
    assert {name: (one["dtype"], one["shape"]) for name, one in data.schema.items()} == \
        {"x": ("F32", [4]), "n": ("I64", [])}
    assert [int(data[i]["n"]) for i in range(25)] == frames.ns(25).tolist()
    assert np.array_equal(np.stack([data[i]["x"] for i in range(25)]), frames.xs(25))
    assert data.manifest["total_valid_samples"] == 25 and dataset.verify(out, deep=True)["ok"]


def test_names_in_python(spark, out):
    write(frames.frame(spark, 20, 2), out, name_col="name", columns="x", generate_index=True)
    data = dataset.open(out)
    assert len(data) == 20
    assert np.array_equal(data["row7"]["x"], frames.xs(1, 7)[0])
    keys = {one["name"] for one in dataset.ls(out)["tensors"]}
    assert keys == {"row%d__x" % i for i in range(20)}


# ── Python to Spark ──

def saved(path, tensors):
    from safetensors.numpy import save_file
    os.makedirs(path)
    save_file(tensors, os.path.join(path, "model.safetensors"))
    return os.path.join(path, "model.safetensors")


def test_inference_from_a_file(spark, out):
    name = saved(out, {"b": np.zeros((2, 2), np.float32), "a": np.ones(3, np.int64)})
    df = read(spark, name, inferSchema=True)
    assert df.columns == ["a", "b"]
    parts = [(part.name, part.dataType.simpleString(), part.nullable)
             for part in df.schema["a"].dataType]
    assert parts == [("data", "binary", False), ("shape", "array<int>", False),
                     ("dtype", "string", False)]
    assert not df.schema["a"].dataType["shape"].dataType.containsNull
    row = df.collect()[0]
    assert frames.array(row["a"]).tolist() == [1, 1, 1]
    assert frames.array(row["b"]).tolist() == [[0, 0], [0, 0]]


def test_a_folder_without_manifest(spark, out):
    saved(out, {"a": np.arange(3, dtype=np.float32)})
    with pytest.raises(Exception, match="(?s)expected dataset_manifest.json in the folder.*"
                                        "use_manifest=False"):
        read(spark, out, inferSchema=True).collect()
    rows = read(spark, out, use_manifest=False).collect()
    assert frames.array(rows[0]["a"]).tolist() == [0, 1, 2]


def test_values_by_st_to_array(spark, out):
    lss.register(spark)
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    name = saved(out, {"a": values})
    rows = read(spark, name, inferSchema=True).selectExpr("st_to_array(a) v")
    got = rows.collect()[0]["v"]
    assert np.array_equal(np.array(got, np.float32), values)


def test_bf16_bytes_stay(spark, out):
    data = bytes(range(64))
    lss.register(spark)
    write(spark.createDataFrame([({"data": data, "shape": [32], "dtype": "BF16"},)],
                                "t %s" % TENSOR), out, batch_size=1)
    row = read(spark, out, inferSchema=True).collect()[0]["t"]
    assert bytes(row["data"]) == data and row["dtype"] == "BF16"
