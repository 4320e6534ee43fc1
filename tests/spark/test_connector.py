"""The scenarios of the Scala connector's own tests, with what they leave out: contents. Its
calls are made as they stand there; the group a scenario is from stands above it."""
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

PART = re.compile(r"^part-\d{5}-\d{4}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.safetensors$")
ACCEPTED = ["F16", "F32", "F64", "BF16", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"]

pytestmark = pytest.mark.local


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
def test_separators(spark, out, separator):
    df = spark.createDataFrame([("a", [1.0])], "k string, x array<float>")
    write(df, out, name_col="k", dtype="F32", kv_separator=separator)
    assert list(holding.keyed(out)) == ["a%sx" % separator]


@pytest.mark.parametrize("parts", [1, 2])
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
    assert not before & set(os.listdir(out))
    holding.whole(out)


def test_overwrite_of_an_indexed_dataset_without_index(spark, out):
    """The connector's then reads as empty."""
    write(frames.frame(spark), out, batch_size=50, columns="x", generate_index=True)
    write(frames.frame(spark, 10), out, batch_size=50, columns="x")
    assert read(spark, out).count() == 4
    assert sum(len(frames.array(row["x"])) for row in read(spark, out).collect()) == 10


# ── Values ──

@pytest.mark.parametrize("dtype, tolerance", [("F16", 2 ** -11), ("BF16", 2 ** -8)])
def test_low_precision(spark, out, dtype, tolerance):
    values = np.random.default_rng(7).uniform(-10, 10, (20, 64)).astype(np.float32)
    write(floats(spark, values), out, batch_size=20, dtype=dtype)
    holding.whole(out)
    rows = read(spark, out, layout="samples", **{"as": "array"}).collect()
    got = np.array([row["x"] for row in rows], np.float32)
    assert np.all(np.abs(got - values) <= np.abs(values) * tolerance)
    if dtype == "F16":
        assert np.array_equal(holding.stacked(out)["x"], values.astype(np.float16))


def test_truncation_as_the_connector_does(spark, out):
    values = np.random.default_rng(8).uniform(-10, 10, (20, 64)).astype(np.float32)
    write(floats(spark, values), out, batch_size=20, dtype="BF16", rounding="truncate")
    row = read(spark, out).collect()[0]["x"]
    got = np.frombuffer(row["data"], np.uint16).reshape(20, 64)
    assert np.array_equal(got, (values.view(np.uint32) >> 16).astype(np.uint16))


def test_random_f32_is_exact(spark, out):
    values = np.random.default_rng(9).standard_normal((50, 33)).astype(np.float32)
    write(floats(spark, values), out, batch_size=50, dtype="F32")
    assert np.array_equal(holding.stacked(out)["x"], values)


@pytest.mark.parametrize("dtype", [name for name in ACCEPTED if name != "BF16"])
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


@pytest.mark.parametrize("dtype", ["F32", "I32", "U8", "U64", "BF16", "F16"])
def test_st_to_array_round_trip(spark, out, dtype):
    lss.register(spark)
    df = spark.sql("select arr_to_st(array(0f, 1f, 2f, 3f, 4f, 5f), array(2, 3), '%s') t" % dtype)
    write(df, out, batch_size=1)
    back = read(spark, out).selectExpr("st_to_array(t) v", "t.shape s").collect()[0]
    assert list(back["v"]) == [0, 1, 2, 3, 4, 5] and list(back["s"]) == [1, 2, 3]


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


def test_skewed_rows_are_refused(spark, out):
    """The connector writes files of these that the official package does not open."""
    df = spark.createDataFrame([([1.0] * 10,)] * 100 + [([2.0] * 1000,)] * 10, "x array<float>")
    with pytest.raises(Exception, match="(?s)x.*10.*1000"):
        write(df.coalesce(1), out, batch_size=15, dtype="F32")
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


def test_skewed_partitions(spark, out):
    df = frames.frame(spark, 110, 1).selectExpr("x", "if(id < 100, 0, id) p").repartition(4, "p")
    write(df, out, batch_size=10, columns="x")
    assert holding.whole(out)["total_samples"] == 110
    got = holding.stacked(out)["x"]
    assert np.array_equal(got[np.argsort(got[:, 0])], frames.xs(110))


# ── What is refused and accepted ──

@pytest.mark.parametrize("sql", ["'text' x", "array('text') x", "map('a', 1) x",
                                 "struct(1 a, 2 b) x", "current_date() x"])
def test_columns_that_are_refused(spark, out, sql):
    with pytest.raises(Exception, match="x"):
        write(spark.sql("select " + sql), out, batch_size=1)
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))


@pytest.mark.parametrize("kind", ["float", "double", "int", "bigint", "smallint", "tinyint"])
def test_arrays_that_are_accepted(spark, out, kind):
    write(spark.sql("select array(cast(1 as %s), cast(2 as %s)) x" % (kind, kind)), out,
          batch_size=1, dtype="F32")
    assert holding.stacked(out)["x"].tolist() == [[1, 2]]


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


# ── Python to Spark ──

def saved(path, tensors):
    from safetensors.numpy import save_file
    os.makedirs(path)
    save_file(tensors, os.path.join(path, "model.safetensors"))
    return os.path.join(path, "model.safetensors")


def test_inference_from_a_file(spark, out):
    name = saved(out, {"b": np.zeros((2, 2), np.float32), "a": np.ones(3, np.int64)})
    df = read(spark, name)
    assert df.columns == ["a", "b"]
    assert [field.name for field in df.schema["a"].dataType] == ["data", "shape", "dtype"]


def test_a_folder_without_manifest(spark, out):
    saved(out, {"a": np.arange(3, dtype=np.float32)})
    with pytest.raises(Exception, match="use_manifest"):
        read(spark, out).collect()
    rows = read(spark, out, use_manifest=False).collect()
    assert frames.array(rows[0]["a"]).tolist() == [0, 1, 2]


def test_values_by_st_to_array(spark, out):
    lss.register(spark)
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    name = saved(out, {"a": values})
    got = read(spark, name).selectExpr("st_to_array(a) v").collect()[0]["v"]
    assert np.array_equal(np.array(got, np.float32), values)


def test_bf16_bytes_stay(spark, out):
    data = bytes(range(64))
    lss.register(spark)
    write(spark.createDataFrame([({"data": data, "shape": [32], "dtype": "BF16"},)],
                                "t %s" % TENSOR), out, batch_size=1)
    row = read(spark, out).collect()[0]["t"]
    assert bytes(row["data"]) == data and row["dtype"] == "BF16"
