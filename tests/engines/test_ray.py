"""Ray Data: datasets written by processes of their own, and what becomes of those that fail."""
import os

import numpy as np
import pytest

import faults
import holding
from holding import numbered

pytest.importorskip("ray")

from libsafetensors import SafetensorError, dataset  # noqa: E402
from libsafetensors.ray import SafetensorsDatasink, write_safetensors  # noqa: E402


def frame(ray, rows=100, blocks=4, start=0):
    """n (int64), x (float32, [2, 3]): row i holds i."""
    def made(batch):
        n = batch["id"] + start
        return {"n": n, "x": np.stack([np.full((2, 3), i, np.float32) for i in n])}

    return ray.data.range(rows, override_num_blocks=blocks).map_batches(made)


def test_batches(ray, out):
    told = write_safetensors(frame(ray), out, batch_size=10)
    assert told == numbered(out) and told["total_samples"] == 100
    assert {tuple(one["shape"]) for one in told["columns"].values()} == {(), (2, 3)}
    names = {name.split("-")[1] for name in holding.shards(out)}
    assert len(names) > 1, "one task wrote all"


def test_small_blocks_fill_batches(ray, out):
    """A task gets at least a batch."""
    told = write_safetensors(frame(ray, 100, 50), out, batch_size=20)
    assert all(one["samples_count"] == 20 for one in numbered(out)["shards"]), told


def test_order(ray, out):
    """The order of the dataset, if Ray is told to preserve it."""
    options = ray.data.DataContext.get_current().execution_options
    options.preserve_order = True
    try:
        write_safetensors(frame(ray, 120, 12), out, batch_size=10)
    finally:
        options.preserve_order = False
    numbered(out, 120)
    assert holding.stacked(out)["n"].tolist() == list(range(120))


def test_a_column_that_cannot_be_written(ray, out):
    data = ray.data.from_items([{"word": "text", "x": 1.0}])
    with pytest.raises(Exception, match="word"):
        write_safetensors(data, out, batch_size=1, dtype={"word": "F32"})
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))
    write_safetensors(data, out, batch_size=1, columns=["x"])
    assert holding.stacked(out)["x"].tolist() == [1]


def test_by_the_datasink(ray, out):
    sink = SafetensorsDatasink(out, batch_size=10)
    frame(ray).write_datasink(sink)
    assert sink.manifest == numbered(out)
    with pytest.raises(Exception, match="without a dataset"):
        frame(ray).write_datasink(sink)
    numbered(out)


def test_modes(ray, out):
    write_safetensors(frame(ray, 50), out, batch_size=10)
    with pytest.raises(FileExistsError):
        write_safetensors(frame(ray, 50), out, batch_size=10)
    told = write_safetensors(frame(ray, 50, start=50), out, mode="append", batch_size=10)
    assert told["version"] == 2
    numbered(out, 100)
    told = write_safetensors(frame(ray, 30), out, mode="overwrite", batch_size=10)
    assert told["version"] == 3
    numbered(out, 30)


def test_names_and_varying_shapes(ray, out):
    """Blocks where all tensors have one shape, and others."""
    def made(batch):
        return {"name": ["row%d" % i for i in batch["id"]],
                "x": [np.full((int(i) // 5 + 1, 2), i, np.int16) for i in batch["id"]]}

    data = ray.data.range(20, override_num_blocks=4).map_batches(made, batch_size=3)
    told = write_safetensors(data, out, name_col="name", generate_index=True)
    assert told["total_samples"] == 20 and told["index"]
    holding.whole(out)
    got = holding.keyed(out)
    assert sorted(got) == sorted("row%d__x" % i for i in range(20))
    for i in range(20):
        assert np.array_equal(got["row%d__x" % i], np.full((i // 5 + 1, 2), i, np.int16))


@pytest.mark.parametrize("values", [
    np.arange(12).reshape(4, 3) % 2 == 0, np.arange(8, dtype=np.float16).reshape(4, 2),
    np.arange(4, dtype=np.uint64) + 2 ** 63, np.arange(24, dtype=np.int8).reshape(4, 3, 1, 2),
    np.zeros((4, 2, 0), np.float64)], ids=lambda values: str(values.dtype))
def test_values(ray, out, values):
    write_safetensors(ray.data.from_numpy(values), out, batch_size=4)
    holding.whole(out)
    got = holding.stacked(out)["data"]
    assert got.dtype == values.dtype and np.array_equal(got, values)


def test_arrow_and_pandas(ray, out):
    import pandas as pd
    import pyarrow as pa
    rows = [[1.0, 2.0], [3.0, 4.0]]
    write_safetensors(ray.data.from_arrow(pa.table({"x": rows})), out, batch_size=2)
    frame = pd.DataFrame({"x": [np.array(row) for row in rows]})
    write_safetensors(ray.data.from_pandas(frame), out, mode="append", batch_size=2)
    holding.whole(out)
    assert holding.stacked(out)["x"].tolist() == rows + rows


def test_conversion(ray, out):
    write_safetensors(frame(ray), out, batch_size=10, columns="x", dtype="BF16")
    holding.whole(out)
    got = holding.stacked(out)["x"].astype(np.float32)
    assert str(holding.stacked(out)["x"].dtype) == "bfloat16"
    assert sorted(got[:, 0, 0].tolist()) == list(range(100))


def test_no_rows(ray, out):
    told = write_safetensors(frame(ray, 10).filter(lambda row: row["n"] < 0), out, batch_size=10)
    assert told["shards"] == [] and len(dataset.open(out)) == 0


def test_no_blocks(ray, out):
    told = write_safetensors(ray.data.from_items([]), out, batch_size=10)
    assert told["shards"] == []


@pytest.mark.parametrize("options, text", [
    ({}, "batch_size"), ({"batch_size": 0}, "batch_size"),
    ({"batch_size": 1, "batch_sise": 2}, "batch_sise"), ({"batch_size": 1, "mode": "x"}, "mode"),
    ({"batch_size": 1, "adopt": "x"}, "adopt")])
def test_options_are_checked_first(ray, out, options, text):
    with pytest.raises(ValueError, match=text):
        write_safetensors(frame(ray), out, **options)
    assert not os.path.exists(out)


# ── What fails ──

def old(ray, out):
    write_safetensors(frame(ray, 30), out, batch_size=10)
    return holding.files(out)


def is_left(out, before):
    """The old dataset, and of tasks that Ray has not ended in time what gc removes."""
    assert set(before) <= set(holding.files(out))
    dataset.gc(out, delete=True, grace=0)
    numbered(out, 30)
    assert holding.files(out) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_failing_row_leaves_the_old_dataset(ray, out, mode):
    before = old(ray, out)

    def bad(batch):
        x = [np.zeros((2, 3), np.float32) for _ in batch["n"]]
        if 99 in batch["n"]:
            x[-1] = np.zeros((2, 4), np.float32)
        return {"n": batch["n"], "x": x}

    data = frame(ray).map_batches(bad)
    with pytest.raises(Exception, match="(?s)x"):
        write_safetensors(data, out, mode=mode, batch_size=10)
    is_left(out, before)


def test_a_task_that_raises_leaves_the_old_dataset(ray, out):
    before = old(ray, out)

    def bad(batch):
        if 99 in batch["n"]:
            raise RuntimeError("no luck")
        return batch

    with pytest.raises(Exception, match="no luck"):
        write_safetensors(frame(ray).map_batches(bad), out, mode="overwrite", batch_size=10)
    is_left(out, before)


class Dying(SafetensorsDatasink):
    """Its first task is killed: while it writes, or when all is written but not yet reported."""

    def __init__(self, path, flags, after, **options):
        super().__init__(path, **options)
        self.flags, self.after = flags, after

    def write(self, blocks, ctx):
        if self.after:
            told = super().write(blocks, ctx)
            if faults.first(self.flags, "done"):
                faults.kill_self()
            return told
        return super().write(self.cut(blocks), ctx)

    def cut(self, blocks):
        for number, block in enumerate(blocks):
            yield block
            if faults.first(self.flags, "done"):
                faults.kill_self()


@pytest.mark.parametrize("after", [False, True], ids=["writing", "written"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_killed_worker_is_tried_again(ray, out, flags, after, mode):
    old(ray, out)
    ray.cloudpickle.register_pickle_by_value(__import__(__name__))
    start = 30 if mode == "append" else 0
    sink = Dying(out, flags, after, mode=mode, batch_size=5)
    frame(ray, 70, start=start).write_datasink(sink)
    assert os.listdir(flags) == ["done"]
    assert numbered(out, 70 + start)["version"] == 2


def test_a_commit_that_fails_leaves_the_old_dataset(ray, out):
    """Two tasks write one name."""
    write_safetensors(ray.data.from_items([{"k": "a", "x": 1.0}]), out, name_col="k")
    before = holding.files(out)
    data = ray.data.from_items([{"k": "b", "x": float(i)} for i in range(2)],
                               override_num_blocks=2)
    with pytest.raises(SafetensorError, match="b__x"):
        write_safetensors(data, out, mode="append", name_col="k")
    assert holding.files(out) == before
    assert holding.keyed(out)["a__x"] == 1
    told = write_safetensors(data, out, mode="append", name_col="k", duplicatesStrategy="lastWin")
    assert told["total_samples"] == 2
