"""Daft: datasets written by its threads, by Ray's processes, and what becomes of failures."""
import os
import subprocess
import sys

import numpy as np
import pytest

import holding
from holding import numbered

daft = pytest.importorskip("daft")

from daft import DataType, col  # noqa: E402

from libsafetensors.daft import SafetensorsSink, write_safetensors  # noqa: E402


def frame(rows=100, start=0):
    """n (Int64), x (Tensor[Float32; [2, 3]]): row i holds i."""
    n = np.arange(start, start + rows)
    x = [np.full((2, 3), i, np.float32) for i in n]
    return daft.from_pydict({"n": n, "x": x}).with_column(
        "x", col("x").cast(DataType.tensor(DataType.float32(), (2, 3))))


def test_batches(out):
    told = write_safetensors(frame(), out, batch_size=10)
    assert told == numbered(out) and told["total_samples"] == 100
    assert [one["samples_count"] for one in told["shards"]] == [10] * 10


def test_batches_of_several_parts(out):
    told = write_safetensors(frame().into_batches(40), out, batch_size=20)
    assert numbered(out) == told
    assert {name.split("-")[1] for name in holding.shards(out)} == {"00000", "00001", "00002"}
    assert all(one["samples_count"] == 20 for one in told["shards"])


def test_by_the_sink(out):
    sink = SafetensorsSink(out, batch_size=10)
    row = frame().write_sink(sink).to_pydict()
    told = numbered(out)
    assert sink.manifest == told
    assert row == {"path": [out], "version": [1], "total_samples": [100],
                   "total_bytes": [told["total_bytes"]], "shards": [10]}


def test_modes(out):
    write_safetensors(frame(50), out, batch_size=10)
    with pytest.raises(FileExistsError):
        write_safetensors(frame(50), out, batch_size=10)
    told = write_safetensors(frame(50, 50), out, mode="append", batch_size=10)
    assert told["version"] == 2
    numbered(out, 100)
    assert write_safetensors(frame(30), out, mode="overwrite", batch_size=10)["version"] == 3
    numbered(out, 30)


def test_names_and_varying_shapes(out):
    df = daft.from_pydict({
        "name": ["row%d" % i for i in range(20)],
        "x": [np.full((i // 5 + 1, 2), i, np.int16) for i in range(20)]})
    told = write_safetensors(df.into_batches(6), out, name_col="name", generate_index=True)
    assert told["total_samples"] == 20 and told["index"]
    holding.whole(out)
    got = holding.keyed(out)
    assert sorted(got) == sorted("row%d__x" % i for i in range(20))
    for i in range(20):
        assert np.array_equal(got["row%d__x" % i], np.full((i // 5 + 1, 2), i, np.int16))


def test_kinds_of_columns(out):
    df = daft.from_pydict({"list": [[1.0, 2.0], [3.0, 4.0]], "flag": [True, False],
                           "tensor": [np.eye(2, dtype=np.uint8)] * 2,
                           "flags": [np.array([True, False])] * 2})
    df = df.with_column("embedding", col("list").cast(DataType.embedding(DataType.float32(), 2)))
    write_safetensors(df, out, batch_size=2)
    holding.whole(out)
    got = holding.stacked(out)
    assert got["list"].tolist() == [[1, 2], [3, 4]] and got["list"].dtype == np.float64
    assert got["embedding"].tolist() == [[1, 2], [3, 4]]
    assert got["embedding"].dtype == np.float32
    assert got["flag"].tolist() == [True, False] and got["flag"].dtype == bool
    assert np.array_equal(got["tensor"], np.stack([np.eye(2)] * 2))
    assert got["flags"].tolist() == [[True, False]] * 2 and got["flags"].dtype == bool


def test_no_rows(out):
    told = write_safetensors(frame(10).where(col("n") < 0), out, batch_size=10)
    assert told["shards"] == [] and told["total_samples"] == 0


@pytest.mark.parametrize("options, text", [
    ({}, "batch_size"), ({"batch_size": 1, "batch_sise": 2}, "batch_sise"),
    ({"batch_size": 1, "mode": "x"}, "mode"), ({"batch_size": 1, "adopt": "x"}, "adopt")])
def test_options_are_checked_first(out, options, text):
    with pytest.raises(ValueError, match=text):
        write_safetensors(frame(), out, **options)
    assert not os.path.exists(out)


# ── What fails ──

@daft.func(return_dtype=DataType.int64())
def unlucky(n):
    if n == 99:
        raise RuntimeError("no luck")
    return n


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_task_that_raises_leaves_the_old_dataset(out, mode):
    write_safetensors(frame(30), out, batch_size=10)
    before = holding.files(out)
    df = frame().into_batches(20).with_column("n", unlucky(col("n")))
    with pytest.raises(Exception, match="no luck"):
        write_safetensors(df, out, mode=mode, batch_size=10)
    numbered(out, 30)
    assert holding.files(out) == before


def test_a_failing_row_leaves_the_old_dataset(out):
    write_safetensors(frame(30), out, batch_size=10)
    before = holding.files(out)
    x = [np.zeros((2, 3), np.float32)] * 99 + [np.zeros((2, 4), np.float32)]
    df = daft.from_pydict({"n": np.arange(100), "x": x})
    with pytest.raises(Exception, match="(?s)x.*2, 3.*2, 4"):
        write_safetensors(df.into_batches(20), out, mode="overwrite", batch_size=10)
    numbered(out, 30)
    assert holding.files(out) == before


def test_what_the_sink_alone_leaves_gc_removes(out):
    """Daft does not report failures to it."""
    write_safetensors(frame(30), out, batch_size=10)
    df = frame().into_batches(20).with_column("n", unlucky(col("n")))
    sink = SafetensorsSink(out, mode="overwrite", batch_size=10)
    with pytest.raises(Exception, match="no luck"):
        df.write_sink(sink)
    holding.whole(out, clean=False)
    sink.abort()
    sink.abort()
    numbered(out, 30)


ON_RAY = """
import sys
import daft, ray
import faults, test_daft
from daft import DataType, col
from libsafetensors.daft import write_safetensors

out, flags = sys.argv[1:]
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False,
         object_store_memory=200 << 20)
daft.set_runner_ray()
told = write_safetensors(test_daft.frame(60).into_partitions(4), out, batch_size=5)
assert told["total_samples"] == 60

@daft.func(return_dtype=DataType.int64())
def killing(n):
    if n == 85 and faults.first(flags, "done"):
        faults.kill_self()
    return n

df = test_daft.frame(40, 60).into_partitions(4).with_column("n", killing(col("n")))
told = write_safetensors(df, out, mode="append", batch_size=5)
assert told["version"] == 2
"""


def test_on_ray(out, flags):
    """Two writes, in the second of which a worker is killed. In a process of its own: Daft has
    one runner."""
    pytest.importorskip("ray")
    done = subprocess.run([sys.executable, "-c", ON_RAY, out, flags], capture_output=True,
                          text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert os.listdir(flags) == ["done"]
    numbered(out)
