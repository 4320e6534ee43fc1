"""Write, append, overwrite, read back in each layout, on one machine's processes and on a
cluster's."""
import json
import os

import numpy as np
import pytest

import frames
import holding
from frames import frame, read, write

import libsafetensors.spark as lss
from libsafetensors import dataset


def test_batches(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    told = holding.whole(out)
    assert told["mode"] == "batch" and told["total_samples"] == 100
    assert [one["samples_count"] for one in told["shards"]] == [10, 10, 5] * 4
    got = holding.stacked(out)
    assert np.array_equal(got["x"], frames.xs()) and got["x"].dtype == np.float32
    assert np.array_equal(got["n"], frames.ns()) and got["n"].dtype == np.int64


def test_keys(spark, out):
    write(frame(spark), out, name_col="name", columns="x,n", generate_index=True)
    told = holding.whole(out)
    assert told["mode"] == "kv" and told["total_samples"] == 100
    assert told["index"] == "_tensor_index.parquet" and len(told["shards"]) == 4
    got = holding.keyed(out)
    assert sorted(got) == sorted("row%d__%s" % (i, c) for i in range(100) for c in "xn")
    for i in range(100):
        assert np.array_equal(got["row%d__x" % i], frames.xs(1, i)[0])
        assert got["row%d__n" % i] == 3 * i


def test_append(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    write(frame(spark, 50, 2, 100), out, "append", batch_size=7, columns="x,n")
    told = holding.whole(out)
    assert told["version"] == 2 and told["total_samples"] == 150
    assert np.array_equal(holding.stacked(out)["x"], frames.xs(150))


def test_segments(spark, out):
    """The choice is kept by an append; each layout reads both forms."""
    options = {"batch_size": 10, "columns": "x,n"}
    write(frame(spark), out, manifest="segments", **options)
    write(frame(spark, 50, 2, 100), out, "append", **options)
    told = holding.manifest(out)
    assert "shards" not in told and told["total_shards"] == 18 and told["version"] == 2
    assert [one["shards"] for one in told["segments"]] == [12, 6]
    assert dataset.verify(out, deep=True)["ok"] and dataset.gc(out, grace=0)["garbage"] == []
    rows = read(spark, out, layout="samples").collect()
    assert sorted(int(frames.array(row["n"])) for row in rows) == frames.ns(150).tolist()
    assert len(read(spark, out, layout="files").collect()) == 18 and lss.count(out) == 150
    assert read(spark, out, layout="tensors", data=False).count() == 36
    write(frame(spark, 4, 1, 150), out, "append", manifest="whole", **options)
    assert holding.whole(out)["total_samples"] == 154


def test_segments_of_keys(spark, out):
    write(frame(spark, 8), out, name_col="name", columns="x", manifest="segments")
    assert "schema" not in holding.manifest(out)
    rows = read(spark, out, layout="files").collect()
    assert len(rows) == 4 and sorted(rows[0].asDict()) == ["row%d__x" % i for i in range(8)]
    assert read(spark, out, layout="tensors", keys="row3__x").count() == 1


def test_append_makes_a_dataset(spark, out):
    write(frame(spark), out, "append", batch_size=10, columns="x")
    assert holding.whole(out)["version"] == 1


@pytest.mark.local
def test_append_that_disagrees_leaves_the_old(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    before = holding.snapshot(out)
    with pytest.raises(Exception, match="x|column"):
        write(frame(spark, width=5), out, "append", batch_size=10, columns="x")
    with pytest.raises(Exception, match="mode|batch"):
        write(frame(spark), out, "append", name_col="name", columns="x")
    assert holding.snapshot(out) == before
    holding.swept(out)


@pytest.mark.local
def test_append_that_disagrees_is_told_at_the_first_rows(spark, out):
    """The schema does not tell the length of lists: a task compares its first rows, and does not
    come to the last ones, which fit no shard at all."""
    write(frame(spark, width=2), out, batch_size=10, columns="x")
    before = holding.snapshot(out)

    def batches(parts):
        import pyarrow as pa
        for _ in parts:
            for width in (3, 3, 3, 4):
                rows = pa.array([[0.5] * width] * 5, pa.list_(pa.float32()))
                yield pa.RecordBatch.from_arrays([rows], ["x"])

    rows = spark.range(1, numPartitions=1).mapInArrow(batches, "x array<float>")
    with pytest.raises(Exception, match=r"samples of shape \[2\] as in the dataset"):
        write(rows, out, "append", batch_size=20, columns="x")
    assert holding.snapshot(out) == before
    holding.swept(out)


def test_overwrite(spark, out):
    write(frame(spark), out, batch_size=10, columns="x", generate_index=True)
    before = set(holding.shards(out))
    write(frame(spark, 30, 2, 500), out, name_col="name", columns="n")
    told = holding.whole(out)
    assert told["version"] == 2 and told["index"] is None
    holding.forget(out)
    assert not before & set(os.listdir(out))
    assert len(holding.keyed(out)) == 30
    assert read(spark, out, layout="tensors").count() == 30


def test_overwrite_that_reads_itself(spark, out):
    """What is read is there until the commit."""
    write(frame(spark), out, batch_size=10, columns="x,n")
    rows = read(spark, out, layout="samples", **{"as": "array"}).selectExpr("x", "n + 1 as n")
    write(rows, out, batch_size=25)
    holding.whole(out)
    got = holding.stacked(out)
    assert np.array_equal(np.sort(got["n"]), frames.ns() + 1)
    assert np.array_equal(got["x"][np.argsort(got["n"])], frames.xs())


@pytest.mark.source
@pytest.mark.local
def test_other_modes_are_refused(spark, out):
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="(?i)mode"):
            write(frame(spark), out, mode, batch_size=10, columns="x")
    assert not os.path.exists(out)


def test_files_layout(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    rows = read(spark, out, layout="files").collect()
    assert len(rows) == 12 and sorted(rows[0].asDict()) == ["n", "x"]
    parts = sorted((frames.array(row["x"]) for row in rows), key=lambda part: part[0, 0])
    assert np.array_equal(np.concatenate(parts), frames.xs())
    assert {row["n"]["dtype"] for row in rows} == {"I64"}


def test_rows_unless_shards_are_asked_for(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    assert read(spark, out).count() == 100
    assert read(spark, out, inferSchema=True).count() == 12
    spark.sql("create or replace temp view rows using safetensors options (path '%s')" % out) \
        if frames.SOURCES else read(spark, out).createOrReplaceTempView("rows")
    assert spark.sql("select count(*) from rows").collect()[0][0] == 100
    assert lss.read(spark, out, schema="n %s" % frames.TENSOR).count() == 12


def test_files_layout_of_keys_has_all_shards(spark, out):
    """A key is null where a shard has it not; none is forgotten."""
    write(frame(spark, 8), out, name_col="name", columns="x")
    rows = read(spark, out, layout="files").collect()
    assert len(rows) == 4 and sorted(rows[0].asDict()) == ["row%d__x" % i for i in range(8)]
    for i in range(8):
        there = [row["row%d__x" % i] for row in rows if row["row%d__x" % i] is not None]
        assert len(there) == 1 and np.array_equal(frames.array(there[0]), frames.xs(1, i)[0])


def test_samples_layout(spark, out):
    write(frame(spark), out, batch_size=30, columns="x,n")
    rows = read(spark, out, layout="samples").collect()
    assert len(rows) == 100
    for row in rows:
        assert row["x"]["dtype"] == "F32" and list(row["x"]["shape"]) == [4]
        assert row["n"]["dtype"] == "I64" and list(row["n"]["shape"]) == []
    by_n = sorted(rows, key=lambda row: int(frames.array(row["n"])))
    assert np.array_equal(np.stack([frames.array(row["x"]) for row in by_n]), frames.xs())


def test_samples_layout_as_arrays(spark, out):
    write(frame(spark), out, batch_size=30, columns="x,n")
    df = read(spark, out, layout="samples", **{"as": "array"})
    types = dict(df.dtypes)
    assert types["x"] == "array<float>" and types["n"] in ("bigint", "array<bigint>")
    assert sorted(map(tuple, (row["x"] for row in df.collect()))) == \
        sorted(map(tuple, frames.xs().tolist()))


def test_samples_layout_as_binary(spark, out):
    """Bytes, and numbers in tasks; the schema tells of what."""
    write(frame(spark), out, batch_size=10, columns="x")
    rows = read(spark, out, layout="samples", **{"as": "binary"})
    assert rows.dtypes == [("x", "binary")]
    assert rows.schema["x"].metadata == {"dtype": "F32", "shape": [frames.WIDTH]}
    assert sorted(bytes(row["x"]) for row in rows.collect()) == sorted(
        one.tobytes() for one in frames.xs())

    def sums(batches, known=rows.schema["x"].metadata):
        import pyarrow as pa

        from libsafetensors.spark import binary_to_numpy
        for batch in batches:
            x = binary_to_numpy(batch["x"], **known)
            yield pa.RecordBatch.from_arrays([pa.array(x.sum(axis=1, dtype="f8"))], ["total"])

    got = [row["total"] for row in rows.mapInArrow(sums, "total double").collect()]
    assert sorted(got) == frames.xs().sum(axis=1, dtype="f8").tolist()


@pytest.mark.local
def test_an_unknown_layout_is_one_sentence(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    with pytest.raises(Exception, match="layout: expected one of files, samples, tensors, found "
                       "'binary'; did you mean as=binary[?]") as told:
        read(spark, out, layout="binary").collect()
    assert "Traceback" not in str(told.value)


def test_samples_layout_leaves_out_padding(spark, out):
    write(frame(spark), out, batch_size=10, columns="n", tail_strategy="pad")
    assert holding.whole(out)["total_samples"] == 120
    rows = read(spark, out, layout="samples").collect()
    assert sorted(int(frames.array(row["n"])) for row in rows) == frames.ns().tolist()


@pytest.mark.local
def test_samples_layout_of_names(spark, out):
    written = frame(spark, 8)
    write(written, out, name_col="name", columns="x,n")
    found = read(spark, out, layout="samples", **{"as": "array"})
    wanted = written.select("name", "x", "n")
    assert found.count() == 8 and found.select("name", "n").exceptAll(
        wanted.select("name", "n")).count() == 0
    assert {row["name"]: list(row["x"]) for row in found.collect()} == \
        {row["name"]: list(row["x"]) for row in wanted.collect()}
    assert read(spark, out, layout="samples", columns="name").collect()


def test_tensors_layout(spark, out):
    write(frame(spark), out, name_col="name", columns="x,n", generate_index=True)
    rows = read(spark, out, layout="tensors").collect()
    assert [name for name in ("file_name", "tensor_key", "dtype", "shape", "data")
            if name not in rows[0].asDict()] == []
    assert len(rows) == 200 and {row["file_name"] for row in rows} == set(holding.shards(out))
    for row in rows:
        if row["tensor_key"].endswith("__x"):
            i = int(row["tensor_key"][3:-3])
            assert np.array_equal(frames.array(row), frames.xs(1, i)[0])


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.few(1)
def test_keys_option(spark, out, index):
    write(frame(spark), out, name_col="name", columns="x,n", generate_index=index)
    rows = read(spark, out, layout="tensors", keys="row7__x,row93__n").collect()
    got = {row["tensor_key"]: frames.array(row) for row in rows}
    assert sorted(got) == ["row7__x", "row93__n"]
    assert np.array_equal(got["row7__x"], frames.xs(1, 7)[0]) and got["row93__n"] == 279


def test_data_option(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    rows = read(spark, out, layout="tensors", data=False).collect()
    assert len(rows) == 12
    assert all(row.asDict().get("data") is None and row["dtype"] == "F32" for row in rows)


def test_columns_option(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    assert read(spark, out, columns="n").columns == ["n"]
    assert read(spark, out, layout="samples", columns="n").columns == ["n"]
    assert lss.read(spark, out, columns=["n"]).columns == ["n"]


@pytest.mark.source
def test_a_schema_prunes(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    df = spark.read.format("safetensors").schema("n %s" % frames.TENSOR).load(out)
    assert df.columns == ["n"]
    assert sorted(int(v) for row in df.collect() for v in frames.array(row["n"])) == \
        frames.ns().tolist()


def test_a_schema_prunes_by_function(spark, out):
    write(frame(spark), out, batch_size=10, columns="x,n")
    df = lss.read(spark, out, schema="n %s" % frames.TENSOR)
    assert df.columns == ["n"]
    assert sorted(int(v) for row in df.collect() for v in frames.array(row["n"])) == \
        frames.ns().tolist()


@pytest.mark.source
@pytest.mark.local
def test_the_schema_is_inferred_unless_it_is_given(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    reader = spark.read.format("safetensors").option("layout", "samples")
    asked = spark.read.format("safetensors").option("layout", "samples")
    assert reader.load(out).schema == asked.option("inferSchema", "true").load(out).schema
    assert reader.load(out).count() == 100
    with pytest.raises(Exception, match=r"ValueError: inferSchema=false: expected a schema"):
        reader.option("inferSchema", "false").load(out)


@pytest.mark.local
def test_few_tasks_for_small_shards_and_several_for_large(spark, out):
    write(frame(spark, 40, 1, width=65536), out, batch_size=20, columns="x")  # 5 MB each
    assert read(spark, out, layout="files").rdd.getNumPartitions() == 1
    assert read(spark, out, layout="files", partition_mb=4).rdd.getNumPartitions() == 2
    samples = read(spark, out, layout="samples", partition_mb=1, **{"as": "array"})
    assert 10 <= samples.rdd.getNumPartitions() <= 12
    assert sorted(row.x[0] for row in samples.collect()) == [65536.0 * i for i in range(40)]


def test_counts(spark, out):
    """Spark's count asks for no column at all."""
    write(frame(spark), out, batch_size=30, columns="x,n", generate_index=True)
    assert read(spark, out, layout="files").count() == 4
    assert read(spark, out, layout="samples").count() == 100
    assert read(spark, out, layout="tensors").count() == 8
    assert lss.count(out) == 100


@pytest.mark.local
def test_projections_and_filters(spark, out):
    write(frame(spark), out, batch_size=30, columns="x,n")
    df = read(spark, out, layout="files")
    assert {tuple(row[0]) for row in df.select("x.shape").collect()} == {(25, 4)}
    assert {row[0] for row in df.select("n.dtype").collect()} == {"I64"}
    tensors = read(spark, out, layout="tensors")
    assert tensors.where("tensor_key = 'n'").count() == 4


@pytest.mark.source
@pytest.mark.local
def test_filters_are_taken_on(spark, out, conf):
    """Only the shard that has the key is read. Spark refuses such a reader while its switch is
    off, so without pushdown there is none."""
    if not hasattr(pytest.importorskip("pyspark.sql.datasource"), "EqualTo"):
        pytest.skip("this Spark hands nothing down")
    write(frame(spark, 40, 4, width=65536), out, name_col="name", columns="x",
          generate_index=True)
    wanted = "tensor_key in ('row7__x', 'row8__x') and dtype = 'F32'"

    def found(**options):
        df = read(spark, out, layout="tensors", partition_mb=1, **options).where(wanted)
        assert sorted(row.tensor_key for row in df.collect()) == ["row7__x", "row8__x"]
        return df.rdd.getNumPartitions()

    assert found() == 4
    with pytest.raises(Exception, match="filterPushdown"):
        found(pushdown=True)
    conf(spark__sql__python__filterPushdown__enabled="true")
    assert found() == 4 and found(pushdown=True) == 1


@pytest.mark.local
def test_only_what_the_manifest_names(spark, out):
    write(frame(spark, 20, 1), out, batch_size=10, columns="x")
    name = holding.shards(out)[0]
    strange = name.replace("part-00000-0000", "part-00009-0009")
    with open(os.path.join(out, name), "rb") as source:
        data = source.read()
    for other in (strange, "model.safetensors"):
        with open(os.path.join(out, other), "wb") as file:
            file.write(data)
    assert read(spark, out, layout="files").count() == 2
    assert read(spark, out, layout="samples").count() == 20
    dataset.gc(out, delete=True, grace=0)
    assert "model.safetensors" in os.listdir(out) and strange not in os.listdir(out)


@pytest.mark.local
def test_a_missing_shard_is_named(spark, out):
    write(frame(spark, 20, 1), out, batch_size=10, columns="x")
    name = holding.shards(out)[1]
    os.remove(os.path.join(out, name))
    with pytest.raises(Exception, match=name):
        read(spark, out, layout="files").collect()


@pytest.mark.local
def test_no_dataset(spark, tmp_path):
    with pytest.raises(Exception, match="manifest|No such file|not found"):
        read(spark, str(tmp_path / "nothing")).collect()


def test_a_file_alone(spark, out):
    write(frame(spark, 20, 1), out, batch_size=20, columns="x")
    rows = read(spark, os.path.join(out, holding.shards(out)[0])).collect()
    assert len(rows) == 1 and np.array_equal(frames.array(rows[0]["x"]), frames.xs(20))


def test_empty(spark, out):
    write(frame(spark, 0), out, batch_size=10, columns="x")
    told = holding.whole(out)
    assert told["shards"] == [] and told["total_samples"] == 0
    assert read(spark, out, layout="tensors").count() == 0


def test_empty_partitions(spark, out):
    write(frame(spark, 100, 4).where("id >= 90"), out, batch_size=10, columns="x")
    holding.whole(out)
    assert np.array_equal(holding.stacked(out)["x"], frames.xs(10, 90))


@pytest.mark.local
def test_options_are_checked_first(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    before = holding.snapshot(out)
    wrong = [({"batch_size": 0}, "batch_size"), ({}, "batch_size"),
             ({"batch_size": 1, "name_col": "name"}, "batch_size"),
             ({"batch_size": 1, "bach_size": 2}, "batch_size"),
             ({"batch_size": 1, "dtype": "F31"}, "F31"),
             ({"batch_size": 1, "columns": "x,z"}, "z"),
             ({"batch_size": 1, "shapes": '{"x": [3]}'}, "x"),
             ({"name_col": "nam"}, "nam"), ({"name_col": "n"}, "n"),
             ({"name_col": "name", "target_shard_size_mb": 49}, "target_shard_size_mb")]
    for options, word in wrong:
        with pytest.raises(Exception, match=word):
            write(frame(spark), out, **{"columns": "x", **options})
        assert holding.snapshot(out) == before, options
    holding.swept(out)


def test_by_function(spark, out):
    """The same through mapInArrow."""
    lss.write_safetensors(frame(spark), out, batch_size=10, columns="x")
    lss.write_safetensors(frame(spark, 20, 2, 100), out, mode="append", batch_size=10,
                          columns="x")
    told = holding.whole(out)
    assert told["version"] == 2
    assert np.array_equal(holding.stacked(out)["x"], frames.xs(120))
    with pytest.raises(FileExistsError):
        lss.write_safetensors(frame(spark), out, batch_size=10, columns="x")
    lss.write_safetensors(frame(spark), out, mode="overwrite", name_col="name", columns="n")
    assert len(holding.keyed(out)) == 100
    assert holding.whole(out)["version"] == 3


@pytest.mark.local
def test_the_same_as_one_process(spark, out, tmp_path):
    """Spark or not: the same shards, byte for byte but for their names."""
    table = frame(spark, 100, 1).select("x", "n").toPandas()
    other = str(tmp_path / "one")
    import pyarrow as pa
    rows = pa.table({"x": pa.array(table["x"].tolist(), pa.list_(pa.float32())),
                     "n": pa.array(table["n"].tolist(), pa.int64())})
    dataset.write(rows, other, batch_size=30)
    write(frame(spark, 100, 1), out, batch_size=30, columns="x,n")
    mine, theirs = ([holding.contents(folder, name) for name in holding.shards(folder)]
                    for folder in (out, other))
    assert mine == theirs
    same = ("mode", "schema", "columns", "total_samples", "total_bytes")
    assert json.dumps([holding.manifest(out)[key] for key in same]) == \
        json.dumps([holding.manifest(other)[key] for key in same])
