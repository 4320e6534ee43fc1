"""Tables of Spark's catalog, which a Python data source cannot read: writing says so."""
import os

import pytest

from frames import frame, read

pytestmark = [pytest.mark.source, pytest.mark.local]


@pytest.fixture
def told(spark, flags):
    """Registers the source under the name telling; returns a function that lists what commits
    have warned of since the last call. They run in processes of their own."""
    from libsafetensors.spark._source import SafetensorsDataSource, Writer

    class TellingWriter(Writer):
        def commit(self, messages):
            import uuid
            import warnings
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                super().commit(messages)
            for one in caught:
                with open(os.path.join(flags, uuid.uuid4().hex), "w") as file:
                    file.write(str(one.message))

    class Telling(SafetensorsDataSource):
        @classmethod
        def name(cls):
            return "telling"

        def writer(self, schema, overwrite):
            return TellingWriter(super().writer(schema, overwrite).job)

    def taken():
        texts = []
        for name in os.listdir(flags):
            with open(os.path.join(flags, name)) as file:
                texts.append(file.read())
            os.remove(os.path.join(flags, name))
        return texts

    spark.dataSource.register(Telling)
    return taken


def writing(df):
    return df.write.format("telling").mode("append").options(batch_size="10", columns="x")


def test_a_new_table_with_a_path_is_written_with_a_warning(spark, out, told):
    try:
        for mode in ("append", "overwrite"):
            writing(frame(spark)).mode(mode).option("path", out).saveAsTable("table_of_tensors")
            text, = told()
            assert "cannot be read" in text and ".load(path)" in text
        with pytest.raises(Exception, match=r"read its folder with load\(path\)"):
            spark.table("table_of_tensors").count()
        assert read(spark, out, layout="samples").count() == 100
    finally:
        spark.sql("drop table if exists table_of_tensors")


@pytest.mark.parametrize("make", [
    lambda df, out: writing(df).saveAsTable("no_table"),
    lambda df, out: df.sparkSession.sql(
        "create table no_table using telling options (batch_size '10', columns 'x') "
        "location '%s' as select x from rows" % out)], ids=["saveAsTable", "sql"])
def test_a_table_without_a_path_is_an_error_on_writing(spark, out, told, make):
    frame(spark).createOrReplaceTempView("rows")
    with pytest.raises(Exception, match=r"write with save\(path\)"):
        make(frame(spark), out)
    assert not spark.catalog.tableExists("no_table") and not os.path.exists(out)


def test_save_is_no_table(spark, out, told, tmp_path):
    """Neither with the path as an option, of cached rows, nor for the batches of a stream."""
    df = frame(spark).cache()
    writing(df).save(out)
    writing(df).option("path", out).save()
    df.unpersist()
    rows = str(tmp_path / "rows")
    frame(spark).write.parquet(rows)
    stream = spark.readStream.schema(frame(spark).schema).parquet(rows).writeStream
    stream.foreachBatch(lambda batch, _: writing(batch).save(out)).trigger(
        availableNow=True).start().awaitTermination()
    assert read(spark, out, layout="samples").count() == 300
    assert told() == []


def test_batches_of_a_stream(spark, out, tmp_path):
    """As in docs/spark.md; Spark repeats a batch of which its checkpoint does not know that it is done."""
    rows, state, seen = tmp_path / "rows", tmp_path / "state", []
    for i in range(3):
        frame(spark).repartition(1).write.mode("append").parquet(str(rows))

    def save(batch, number):
        seen.append(number)
        writing(batch).mode("append").options(batch_id="clicks:%d" % number).save(out)

    def run():
        stream = spark.readStream.schema(frame(spark).schema).option("maxFilesPerTrigger", 1)
        stream.parquet(str(rows)).writeStream.foreachBatch(save).option(
            "checkpointLocation", str(state)).trigger(availableNow=True).start().awaitTermination()
    run()
    assert seen == [0, 1, 2] and read(spark, out, layout="samples").count() == 300
    for done in (state / "commits").glob("*2*"):  # of batch 2, with its checksum
        done.unlink()
    run()
    assert seen == [0, 1, 2, 2] and read(spark, out, layout="samples").count() == 300
    frame(spark).repartition(1).write.mode("append").parquet(str(rows))
    run()
    assert seen[-1] == 3 and read(spark, out, layout="samples").count() == 400


@pytest.mark.parametrize("how", ["partitionBy", "clusterBy", "bucketBy"])
def test_partitions_are_refused(spark, out, how):
    writer = writing(frame(spark))
    with pytest.raises(Exception, match="partitioning or clustering columns|bucketBy"):
        (getattr(writer, how)(2, "n") if how == "bucketBy" else getattr(writer, how)("n")).mode(
            "append").save(out)
    assert not os.path.exists(os.path.join(out, "dataset_manifest.json"))
