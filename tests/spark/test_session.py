"""What a session has to do with a write or read: threads, relative paths, sizes of batches, the
Python of the workers, names."""
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

import frames
import holding
from frames import frame, read, write

import libsafetensors.spark as lss
from libsafetensors.spark import _session

pytestmark = [pytest.mark.local, pytest.mark.source]


def in_a_thread(do):
    """What do() returns or raises in a thread of its own."""
    found = {}

    def run():
        try:
            found["value"] = do()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in found:
        raise found["error"]
    return found["value"]


# ── Threads ──

def test_a_thread_that_registers(spark, out):
    def do():
        lss.register(spark)
        write(frame(spark), out, batch_size=10, columns="x")
        return read(spark, out, layout="samples").count()

    assert in_a_thread(do) == 100
    assert holding.whole(out)["total_samples"] == 100


def test_a_thread_that_reads_by_function(spark, out):
    write(frame(spark), out, batch_size=10, columns="x")
    assert in_a_thread(lambda: lss.read(spark, out, layout="samples").count()) == 100


def test_a_thread_that_writes_by_function(spark, out):
    in_a_thread(lambda: lss.write_safetensors(frame(spark), out, batch_size=10, columns="x"))
    assert np.array_equal(holding.stacked(out)["x"], frames.xs())


# ── Relative paths ──

def test_relative_paths_are_where_sparks_own_are(spark, tmp_path, monkeypatch):
    """Below the folder that the JVM was started in, wherever Python has gone since."""
    folder = spark._jvm.java.lang.System.getProperty("user.dir")
    name = "relative-%d" % os.getpid()
    monkeypatch.chdir(tmp_path)
    try:
        frame(spark, 10).write.parquet(os.path.join(name, "parquet"))
        write(frame(spark, 10), os.path.join(name, "source"), batch_size=10, columns="x")
        lss.write_safetensors(frame(spark, 10), os.path.join(name, "function"), batch_size=10,
                              columns="x")
        assert sorted(os.listdir(os.path.join(folder, name))) == \
            ["function", "parquet", "source"]
        assert os.listdir(tmp_path) == []
        for one in ("source", "function"):
            holding.whole(os.path.join(folder, name, one))
            path = os.path.join(name, one)
            assert lss.count(path) == 10
            assert lss.read(spark, path, layout="samples").count() == 10
            assert read(spark, path, layout="samples").count() == 10
    finally:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def test_paths_of_other_kinds(tmp_path):
    class Elsewhere:
        @property
        def _jvm(self):
            raise AttributeError("of Connect")

    elsewhere = Elsewhere()
    assert _session.path_on_driver("s3://bucket/a", elsewhere) == "s3://bucket/a"
    assert _session.path_on_driver(str(tmp_path), elsewhere) == str(tmp_path)
    assert _session.path_on_driver("a/b", elsewhere) == os.path.join(os.getcwd(), "a", "b")
    _session.activate(elsewhere)
    _session.check_workers(elsewhere)


# ── Sizes of batches ──

@pytest.mark.long
def test_batches_of_the_data_source_are_bounded(spark, out, flags):
    """By Spark's own default: 10,000 rows of these would be 5 GB."""
    from libsafetensors.spark._source import SafetensorsDataSource, Writer

    class SizedWriter(Writer):
        def write(self, iterator):
            def noted():
                for number, batch in enumerate(iterator):
                    name = "%d-%d" % (batch.num_rows, batch.nbytes)
                    open(os.path.join(flags, "%d-%s" % (number, name)), "w").close()
                    yield batch
            return super().write(noted())

    class Sized(SafetensorsDataSource):
        @classmethod
        def name(cls):
            return "sized"

        def writer(self, schema, overwrite):
            return SizedWriter(super().writer(schema, overwrite).job)

    spark.dataSource.register(Sized)
    df = spark.range(0, 1100, 1, 1).selectExpr("array_repeat(cast(id as double), 65536) x")
    df.write.format("sized").mode("append").option("batch_size", "100").save(out)
    found = [tuple(map(int, name.split("-"))) for name in os.listdir(flags)]
    assert sum(rows for _, rows, _ in found) == 1100
    assert len(found) > 1 and max(size for _, _, size in found) < 300 << 20
    assert holding.manifest(out)["total_samples"] == 1100


# ── What tasks leave behind for the next one ──

EASED = """
import gc, sys, zipimport
from importlib import machinery
sys.path.insert(0, sys.argv[1])
import inner.one
other = sys.argv[1].replace("pyspark.zip", "users.zip")
sys.path.insert(0, other)
import outer
made = {path for path, one in sys.path_importer_cache.items()
        if isinstance(one, zipimport.zipimporter) and path.startswith(sys.argv[2])}
from libsafetensors.spark._session import speed_up_tasks
speed_up_tasks()  # in a program of a user it does nothing
assert made <= set(sys.path_importer_cache) and not gc.get_freeze_count()
sys.modules["__main__"].__spec__ = machinery.ModuleSpec("pyspark.daemon", None)
speed_up_tasks()
left = {path for path in made if path in sys.path_importer_cache}
frozen = gc.get_freeze_count()
speed_up_tasks()
import inner.two
print(len(made) > 2, left == {other}, frozen > 0, gc.get_freeze_count() <= frozen,
      inner.two.value)
"""


def test_spark_does_not_look_through_its_archives_for_each_task(tmp_path):
    """Those of users stay, and modules are found as before."""
    for name, files in (("pyspark.zip", ("inner/__init__", "inner/one", "inner/two")),
                        ("users.zip", ("outer",))):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            for one in files:
                file.writestr(one + ".py", "value = %r" % one)
    done = subprocess.run([sys.executable, "-c", EASED, str(tmp_path / "pyspark.zip"),
                           str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 4 + ["inner/two"], done.stderr + done.stdout


# ── Python of the workers ──

@pytest.fixture
def poor(tmp_path):
    """A Python without any package."""
    path = tmp_path / "poor-python"
    path.write_text("#!/bin/sh\nexec %s -I -S \"$@\"\n" % sys.executable)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def workers(spark, monkeypatch):
    """Gives tasks another Python; registers again afterwards, because functions keep it."""
    with monkeypatch.context() as patch:
        yield lambda python: patch.setattr(spark.sparkContext, "pythonExec", python)
    lss.register(spark)


def test_workers_with_another_python(spark, poor, out, workers, monkeypatch):
    df = frame(spark)
    workers(poor)
    for do in (lambda: lss.register(spark), lambda: lss.read(spark, out),
               lambda: lss.write_safetensors(df, out, batch_size=10, columns="x")):
        with pytest.raises(RuntimeError, match="(?s)poor-python.*PYSPARK_PYTHON.*%s"
                           % sys.executable):
            do()
    monkeypatch.setattr(spark.sparkContext, "master", "spark://one:7077")
    with pytest.warns(RuntimeWarning, match="PYSPARK_PYTHON"):
        lss.register(spark)


def test_workers_with_another_python_that_will_do(spark, tmp_path, workers):
    other = tmp_path / "other-python"
    other.write_text("#!/bin/sh\nexec %s \"$@\"\n" % sys.executable)
    other.chmod(0o755)
    workers(str(other))
    lss.register(spark)
    workers("./environment/bin/python")
    lss.register(spark)  # of an archive that executors unpack: not looked at


# ── Names ──

ANOTHER = """
import os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false") \\
    .config("spark.driver.memory", "512m").config(
        "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.range(10).selectExpr("cast(id as float) x").write.format("safetensors_c") \\
    .mode("append").option("batch_size", "5").save(sys.argv[1])
import libsafetensors.spark as lss
print(lss.read(spark, sys.argv[1], layout="samples").count())
try:
    spark.read.format("safetensors").load(sys.argv[1]).count()
except Exception as error:
    print("DATA_SOURCE" in str(error) or "safetensors" in str(error))
"""


@pytest.mark.long
def test_another_short_name(spark_home, out):
    """A session of its own, since the name is the environment's."""
    done = subprocess.run([sys.executable, "-c", ANOTHER, out], capture_output=True, text=True,
                          env={**os.environ, "LIBSAFETENSORS_SPARK_NAME": "safetensors_c"})
    assert done.stdout.split() == ["10", "True"], done.stderr
    holding.whole(out)


# ── The index, as stock Spark sees it ──

def test_stock_spark_reads_the_index(spark, out, tmp_path):
    """Spark passes over files whose names begin with _; under another name it reads this one."""
    write(frame(spark), out, name_col="name", columns="x,n", generate_index=True)
    copy = str(tmp_path / "index.parquet")
    shutil.copy(os.path.join(out, "_tensor_index.parquet"), copy)
    df = spark.read.parquet(copy)
    assert df.columns[:4] == ["tensor_key", "file_name", "shape", "dtype"]
    assert dict(df.dtypes)["shape"] == "array<int>" and dict(df.dtypes)["tensor_key"] == "string"
    rows = df.collect()
    assert len(rows) == 200 and {row.file_name for row in rows} == set(holding.shards(out))
    ours = read(spark, out, layout="tensors", data=False).collect()
    assert sorted((r.tensor_key, r.file_name, tuple(r["shape"]), r.dtype) for r in rows) == \
        sorted((r.tensor_key, r.file_name, tuple(r["shape"]), r.dtype) for r in ours)
    for row in rows[:10]:
        assert holding.contents(out, row.file_name)[row.begin:row.end] == \
            holding.tensors(out, row.file_name)[row.tensor_key].tobytes()


def test_an_index_that_spark_wrote(spark, out):
    """As the connector's are: a folder of Parquet files."""
    write(frame(spark, 20, 2), out, name_col="name", columns="x", generate_index=True)
    path = os.path.join(out, "_tensor_index.parquet")
    copy = path + ".copy.parquet"
    os.rename(path, copy)
    os.rename(copy, os.path.join(os.path.dirname(out), "index.parquet"))
    spark.read.parquet(os.path.join(os.path.dirname(out), "index.parquet")) \
        .select("tensor_key", "file_name", "shape", "dtype").write.parquet(path)
    told = holding.manifest(out)
    for key in [key for key in told if key not in (
            "format_version", "safetensors_version", "total_samples", "total_bytes", "shards",
            "schema")]:
        del told[key]
    for shard in told["shards"]:
        for key in [key for key in shard if key not in ("shard_path", "samples_count", "bytes")]:
            del shard[key]
    with open(os.path.join(out, holding.MANIFEST), "w") as file:
        json.dump(told, file)
    rows = read(spark, out, layout="tensors", keys="row3__x,row17__x").collect()
    got = {row.tensor_key: frames.array(row).tolist() for row in rows}
    assert got == {"row3__x": frames.xs(1, 3)[0].tolist(),
                   "row17__x": frames.xs(1, 17)[0].tolist()}
