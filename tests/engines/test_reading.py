"""Datasets read by tasks of Ray Data and Daft: the rows that pyarrow has, of one version."""
import pyarrow as pa
import pytest

from libsafetensors import dataset
from libsafetensors.dataset._tasks import tasks_of
from test_tables import photos

daft = pytest.importorskip("daft")

from libsafetensors import daft as of_daft  # noqa: E402
from libsafetensors import ray as of_ray  # noqa: E402


@pytest.fixture(params=["whole", "segments"])
def path(tmp_path, request):
    dataset.write(photos(25), tmp_path / "d", batch_size=8, manifest=request.param)
    dataset.write(photos().slice(25), tmp_path / "d", batch_size=4, mode="append")
    return tmp_path / "d"


def sorted_rows(table, key="id"):
    return sorted(table.to_pylist(), key=lambda row: row[key])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 40, 100])
@pytest.mark.parametrize("limits", [None, (3, 31), (8, 16), (9, 10), (5, 5)])
def test_tasks(path, count, limits):
    """Every row once, in order, of few shards each."""
    with dataset.open(path, rows=limits) as ds:
        tasks = tasks_of(ds, count)
        assert len(tasks) <= count
        rows = [row for task in tasks for batch in task.batches(["id"]) for row in
                batch.column(0).to_pylist()]
        assert rows == list(range(*limits or (0, 40)))
        if count >= 7 and limits is None:
            assert all(len(task.dataset.shards) <= 3 for task in tasks)
        assert all("shards" not in task.dataset.manifest for task in tasks)


def test_ray(ray, path):
    table = photos()
    found = of_ray.read_safetensors(path, parallelism=4)
    assert found.count() == 40
    assert sorted_rows(pa.concat_tables(ray.get(found.to_arrow_refs())).cast(table.schema)) == \
        table.to_pylist()
    few = of_ray.read_safetensors(path, columns=["id", "caption"], rows=(10, 20))
    assert few.schema().names == ["id", "caption"]
    assert sorted(row["id"] for row in few.take_all()) == list(range(10, 20))
    half = found.filter(lambda row: row["id"] % 2 == 0).select_columns(["id"])
    assert sorted(row["id"] for row in half.take_all()) == list(range(0, 40, 2))
    assert len(of_ray.read_safetensors(path).limit(7).take_all()) == 7
    with pytest.raises(KeyError):
        of_ray.read_safetensors(path, columns=["none"])


def test_daft(path):
    table = photos()
    df = of_daft.read_safetensors(path)
    assert df.count_rows() == 40
    assert df.sort("id").to_arrow().cast(table.schema) == table
    few = df.where(daft.col("id") > 30).select("caption").sort("caption").to_pydict()
    assert few["caption"] == sorted(table["caption"].to_pylist()[31:], key=lambda one: (
        one is None, one or ""))
    assert df.select("who").limit(3).count_rows() == 3
    assert df.agg(daft.col("id").sum()).to_pydict() == {"id": [780]}
    part = of_daft.read_safetensors(path, columns="id", split="50%:")
    assert sorted(part.to_pydict()["id"]) == list(range(20, 40))


def test_one_version(ray, path):
    """What was opened is read, also if the dataset is overwritten before."""
    rows, df = of_ray.read_safetensors(path, columns="id"), of_daft.read_safetensors(path)
    dataset.write(photos(3), path, batch_size=2, mode="overwrite")
    assert sorted(row["id"] for row in rows.take_all()) == list(range(40))
    assert sorted(df.select("id").to_pydict()["id"]) == list(range(40))
    assert of_daft.read_safetensors(path).count_rows() == 3
    assert of_ray.read_safetensors(path, version=1).count() == 25


def test_names(ray, tmp_path):
    path = tmp_path / "kv"
    for i in range(4):
        dataset.write(pa.table({"k": ["r%d" % i, "s%d" % i], "x": [[i], [i, i]]}), path, name_col="k",
                      mode="append")
    told = {row["k"]: row["x"]["shape"] for row in of_ray.read_safetensors(
        path, parallelism=4).take_all()}
    wanted = {"%s%d" % (name, i): [size] for i in range(4) for name, size in (("r", 1), ("s", 2))}
    assert {name: list(shape) for name, shape in told.items()} == wanted
    dataset.write(pa.table({"k": ["r0"], "x": [[7, 7, 7]]}), path, name_col="k", mode="append",
                  duplicatesStrategy="lastWin")
    wanted["r0"] = [3]
    got = of_daft.read_safetensors(path).to_pydict()
    assert {name: list(x["shape"]) for name, x in zip(got["k"], got["x"])} == wanted
    with dataset.open(path) as ds:
        assert sorted(name for task in tasks_of(ds, 3) for batch in task.batches(["k"])
                      for name in batch.column(0).to_pylist()) == sorted(wanted)


def test_tensors(ray, tmp_path):
    """What the writers wrote is read."""
    import numpy as np
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    of_ray.write_safetensors(ray.data.from_numpy(x), tmp_path / "d", batch_size=2)
    found = of_ray.read_safetensors(tmp_path / "d").take_batch(4)
    assert np.array_equal(np.stack(list(found["data"])), x)
    of_ray.write_safetensors(of_ray.read_safetensors(tmp_path / "d"), tmp_path / "again",
                             batch_size=4)
    with dataset.open(tmp_path / "again") as ds:
        assert sorted(ds[0:4]["data"][:, 0, 0].tolist()) == [0, 6, 12, 18]
    got = of_daft.read_safetensors(tmp_path / "d").to_pydict()["data"]
    assert sorted(np.asarray(one).reshape(-1)[0] for one in got) == [0, 6, 12, 18]
