"""A job from its beginning to its end, without Spark between; and what the functions refuse."""
import json
import logging
import os
import pickle
import subprocess
import sys

import pytest

import holding

pa = pytest.importorskip("pyarrow")

from libsafetensors import dataset  # noqa: E402
from libsafetensors import spark as lss  # noqa: E402
from libsafetensors.dataset import _job  # noqa: E402
from libsafetensors.spark import _write  # noqa: E402


def rows(start, stop):
    return pa.record_batch({"x": pa.array(range(start, stop), pa.int64())})


def job(path, overwrite=False, **options):
    given = {"batch_size": "4", **options}
    return _write.job_of(given, str(path), rows(0, 1).schema, overwrite)


def written(path, made, parts=2):
    made = pickle.loads(pickle.dumps(made))
    return [made.write([rows(10 * i, 10 * i + 10)], i) for i in range(parts)]


def xs(path):
    return [int(row["x"]) for row in dataset.open(path)]


def test_a_job(tmp_path):
    made = job(tmp_path / "d")
    assert not (tmp_path / "d").exists()
    receipts = written(tmp_path, made)
    assert os.listdir(tmp_path / "d") == ["_job-" + made.job.split(":")[0]]
    told = json.loads(made.commit(["", *receipts]))
    assert told == holding.manifest(tmp_path / "d")
    assert xs(tmp_path / "d") == [*range(20)] and holding.files(tmp_path / "d") == sorted(
        ["dataset_manifest.json", *holding.shards(tmp_path / "d")])


def test_only_what_spark_says_has_won_is_there(tmp_path):
    made = job(tmp_path / "d")
    first, again = written(tmp_path, made, 1), written(tmp_path, made, 1)
    made.commit(again)
    assert first != again and xs(tmp_path / "d") == [*range(10)]
    assert len(holding.files(tmp_path / "d")) == 1 + 3


def test_abort_removes_the_job_and_nothing_else(tmp_path):
    job(tmp_path / "d").commit(written(tmp_path, job(tmp_path / "d"), 0))
    made = job(tmp_path / "d")
    made.commit(written(tmp_path, made))
    before = holding.files(tmp_path / "d")
    dead = job(tmp_path / "d", overwrite=True)
    receipts = written(tmp_path, dead)
    dead.abort([receipts[0], None])
    assert holding.files(tmp_path / "d") == before and xs(tmp_path / "d") == [*range(20)]


def test_abort_after_the_commit_removes_nothing(tmp_path):
    made = job(tmp_path / "d")
    receipts = written(tmp_path, made)
    made.commit(receipts)
    made.abort(receipts)
    assert xs(tmp_path / "d") == [*range(20)]


def test_abort_never_raises(tmp_path, caplog):
    made = job(tmp_path / "d")
    with caplog.at_level(logging.WARNING):
        made.abort(["not a receipt", None])
    assert "remain for gc" in caplog.text


def test_commit_does_not_raise_after_the_commit_point(tmp_path, monkeypatch):
    made = job(tmp_path / "d")
    receipts = written(tmp_path, made)
    real = made._publish

    def warned(commit, texts):
        manifest, _ = real(commit, texts)
        return manifest, ["could not remove an old file"]

    def broken(*args):
        raise RuntimeError("no log")

    monkeypatch.setattr(made, "_publish", warned)
    monkeypatch.setattr(_job._log, "warning", broken)
    made.commit(receipts)
    assert xs(tmp_path / "d") == [*range(20)]


def test_a_commit_that_fails_leaves_the_old(tmp_path):
    first = job(tmp_path / "d")
    first.commit(written(tmp_path, first))
    made = job(tmp_path / "d", overwrite=True)
    receipts = written(tmp_path, made)
    os.unlink(next((tmp_path / "d").glob("_job-*/*")))
    with pytest.raises(Exception, match="1 of 6 shards"):
        made.commit(receipts)
    assert xs(tmp_path / "d") == [*range(20)]
    assert not list((tmp_path / "d").glob("_job-*"))


def test_an_overwrite_of_another_version_is_refused(tmp_path):
    first = job(tmp_path / "d")
    first.commit(written(tmp_path, first))
    one, two = (job(tmp_path / "d", overwrite=True) for _ in range(2))
    receipts = [written(tmp_path, made, 1) for made in (one, two)]
    one.commit(receipts[0])
    with pytest.raises(Exception, match="another job") as caught:
        two.commit(receipts[1])
    assert caught.value.code == "dataset_changed"
    assert xs(tmp_path / "d") == [*range(10)] and not list((tmp_path / "d").glob("_job-*"))


def test_two_appends_both_land(tmp_path):
    one, two = job(tmp_path / "d"), job(tmp_path / "d")
    receipts = [written(tmp_path, made, 1) for made in (one, two)]
    two.commit(receipts[1])
    one.commit(receipts[0])
    assert xs(tmp_path / "d") == [*range(10), *range(10)]
    assert holding.manifest(tmp_path / "d")["version"] == 2


@pytest.mark.parametrize("options, word", [
    ({"batchsize": "4"}, "batch_size"), ({"batch_size": "0"}, "batch_size"),
    ({"name_col": "x"}, "name_col"), ({"columns": "y"}, "y"), ({"adopt": "all"}, "listing"),
    ({"sync": "maybe"}, "true or false")])
def test_refused_before_anything(tmp_path, options, word):
    with pytest.raises(Exception, match=word):
        job(tmp_path / "d", overwrite=True, **options)
    assert not (tmp_path / "d").exists()


def test_options_of_reads_are_passed_over(tmp_path):
    made = job(tmp_path / "d", layout="samples", **{"as": "array"})
    made.commit(written(tmp_path, made, 1))


def test_not_synced(tmp_path):
    """sync=false reaches the storage of every process."""
    made = pickle.loads(pickle.dumps(job(tmp_path / "d", sync="false")))
    assert made.place.sync is False and job(tmp_path / "d").place.sync is True
    made.commit(written(tmp_path, made, 1))
    assert xs(tmp_path / "d") == [*range(10)]


# ── With Spark ──

@pytest.mark.local
def test_by_function(spark, out):
    df = spark.range(0, 100, 1, 3).selectExpr("id", "cast(id as float) x", "interval 1 hour d")
    made = lss.write_safetensors(df, out, batch_size=10, columns=["x"], dtype={"x": "BF16"})
    assert made["columns"] == {"x": {"dtype": "BF16", "shape": []}}
    with pytest.raises(FileExistsError):
        lss.write_safetensors(df, out, batch_size=10, columns="x")
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    with pytest.raises(Exception, match="(?s)bad row"):
        lss.write_safetensors(df.selectExpr("if(id = 99, raise_error('bad row'), x) x"), out,
                              mode="append", batch_size=10, dtype="BF16")
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before
    # The job has failed with its task, while another one may still be at work.
    assert all(name.startswith("_job-") for name in holding.left(out))
    holding.whole(out, clean=False)
    made = lss.write_safetensors(df, out, mode="append", batch_size=50, columns="x", dtype="BF16")
    assert made["version"] == 2 and lss.count(out) == 200


@pytest.mark.local
def test_names_that_are_no_identifiers(spark, out):
    """Which Spark reads as expressions."""
    names = ["a.b", "a.b.c", "c`d", "a,b", " e", "[f]", "\u00fc", "select"]
    quoted = ["`%s`" % name.replace("`", "``") for name in names]
    df = spark.range(0, 20, 1, 2).selectExpr("concat('k', id) key", "id more", *(
        "id + %d %s" % (100 * i, name) for i, name in enumerate(quoted)))
    made = lss.write_safetensors(df, out, name_col="key", columns=names)
    assert sorted(made["columns"]) == sorted(names)
    assert {key: int(value) for key, value in holding.keyed(out).items()} == \
        {"k%d__%s" % (row, name): row + 100 * i for i, name in enumerate(names) for row in range(20)}
    rows = lss.read(spark, out, columns=["k3__" + name for name in names], layout="files").collect()
    assert [[each["dtype"] for each in row if each] for row in rows if any(row)] == [8 * ["I64"]]
    lss.write_safetensors(df.select(*quoted), out, mode="overwrite", batch_size=10)
    assert {name: values.tolist() for name, values in holding.stacked(out).items()} == {
        name: [*range(100 * i, 100 * i + 20)] for i, name in enumerate(names)}
    back = lss.read(spark, out, columns=names, layout="samples", **{"as": "array"}).collect()
    assert sorted(map(tuple, back)) == [tuple(row + 100 * i for i in range(8)) for row in range(20)]


@pytest.mark.local
@pytest.mark.long
def test_large_rows_come_few_at_a_time(spark, out, conf):
    """By a number of rows where Spark has no limit in bytes, before 4.0."""
    df = spark.range(40).selectExpr("array_repeat(cast(id as double), 1000000) x")
    name, value = _write._limit_of_records(df, spark.conf)
    assert (name, value) == ("spark.sql.execution.arrow.maxRecordsPerBatch", "8")
    assert _write._limit_of_records(spark.range(9), spark.conf) == (name, None)
    conf(spark__sql__execution__arrow__maxRecordsPerBatch="0")
    assert _write._limit_of_records(df, spark.conf) == (name, "8")


@pytest.mark.local
@pytest.mark.source
def test_batches_have_a_limit_in_bytes(spark, conf):
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    df = spark.range(1)
    before = spark.conf.get(name)
    for given, expected in (("2147483646", "67108864"), ("1g", "67108864"), ("1m", "1m"),
                            ("65536", "65536")):
        conf(**{name.replace(".", "__"): given})
        with _write._batch_limit(df):
            assert _write._byte_count(spark.conf.get(name)) == _write._byte_count(expected)
        assert _write._byte_count(spark.conf.get(name)) == _write._byte_count(given)
    spark.conf.unset(name)
    with _write._batch_limit(df):
        assert 0 < _write._byte_count(spark.conf.get(name)) <= 64 << 20
    assert spark.conf.get(name) == before


@pytest.mark.source
@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "libsafetensors._core"])
@pytest.mark.few(1)
def test_spark_finds_the_source_and_never_trips(missing):
    text = ("import sys\n"
            "try: import pyspark.sql.datasource\n"
            "except ImportError: pass\n"
            "before = set(sys.modules)\n"
            "[sys.modules.pop(name) for name in before if name.split('.')[0] == %r]\n"
            "sys.modules[%r] = None\n"
            "import pyspark_libsafetensors as one\n"
            "assert hasattr(one, 'DefaultSource') == (%r == 'pyarrow')\n"
            "heavy = {'pyarrow', 'numpy', 'torch', 'pandas'} - {%r}\n"
            "print(*sorted(heavy & (set(sys.modules) - before)))"
            % (missing, missing, missing, missing))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "", done.stderr + done.stdout


@pytest.mark.source
def test_another_name(monkeypatch):
    assert lss.SafetensorsDataSource.name() == "safetensors"
    monkeypatch.setenv("LIBSAFETENSORS_SPARK_NAME", "safetensors_c")
    assert lss.SafetensorsDataSource.name() == "safetensors_c"
