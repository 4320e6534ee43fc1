"""compact(batch_size=): batches of another size, the same rows in the same order."""
import os
import random

import numpy as np
import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")


def held(path, **options):
    with dataset.open(path, **options) as rows:
        return [] if not len(rows) else [row["x"].tolist() for row in rows]


@pytest.mark.parametrize("seed", range(25))
def test_any_dataset(tmp_path, seed):
    rng = random.Random(seed)
    tail = rng.choice(["write", "pad"])
    rows = []
    for i in range(rng.randrange(1, 6)):
        count = rng.randrange(1, 40)
        x = np.arange(2 * len(rows), 2 * (len(rows) + count), dtype=np.int32).reshape(-1, 2)
        rows += x.tolist()
        dataset.write(pa.table({"x": pa.FixedSizeListArray.from_arrays(x.ravel(), 2)}), tmp_path,
                      mode="append", batch_size=rng.choice([1, 3, 8, 50]), tail_strategy=tail,
                      manifest=rng.choice(["whole", "segments"]))
    version = dataset.open(tmp_path).version
    for _ in range(3):
        size = rng.choice([1, 2, 5, 8, 16, 100, 1000])
        planned = dataset.compact(tmp_path, batch_size=size, dry_run=True)
        done = dataset.compact(tmp_path, batch_size=size)
        assert done["shards_after"] == planned["shards_after"] == -(-len(rows) // size)
        shards = dataset.open(tmp_path).shards
        assert [one["valid_samples"] for one in shards[:-1]] == [size] * (len(shards) - 1)
        assert 0 < shards[-1]["valid_samples"] <= size and held(tmp_path) == rows
        assert len({one["name"] for one in shards}) == len(shards)
        if done["rewritten"]:
            version += 1
            assert dataset.open(tmp_path).manifest["batch_size"] == size
        told = dataset.verify(tmp_path, deep=True)
        assert told["ok"] and dataset.open(tmp_path).version == version, told
        again = dataset.compact(tmp_path, batch_size=size)
        assert not again["rewritten"] and again["left"] == "all batches have that size"
    assert held(tmp_path, version=1) == rows[:len(held(tmp_path, version=1))]
    dataset.write(pa.table({"x": pa.array([[7, 7]], pa.list_(pa.int32(), 2))}), tmp_path, mode="append",
                  batch_size=4)
    assert held(tmp_path) == rows + [[7, 7]]
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    told = dataset.verify(tmp_path, deep=True)
    assert told["ok"] and told["orphan_count"] == 0
    assert sum(name.startswith("part-") for name in os.listdir(tmp_path)) == told["shards"]


def test_a_loader_goes_on(tmp_path):
    torch = pytest.importorskip("torch")
    dataset.write(pa.table({"x": range(100)}), tmp_path, batch_size=10)

    def loader():
        return dataset.TorchBatches(tmp_path, 7, seed=2, ends="uneven").loader()
    whole = [one for batch in loader() for one in batch["x"].tolist()]
    begun = loader()
    first = next(iter(begun))["x"].tolist()
    state = begun.state_dict()
    dataset.compact(tmp_path, batch_size=33)
    after = loader()
    after.load_state_dict(state)
    assert first + [one for batch in after for one in batch["x"].tolist()] == whole
    assert torch is not None


def test_what_cannot_be_divided(tmp_path):
    dataset.write(pa.table({"k": ["a"], "x": [1]}), tmp_path / "kv", name_col="k")
    with pytest.raises(ValueError, match="expected no batch_size for a dataset in KV mode"):
        dataset.compact(tmp_path / "kv", batch_size=4)
    dataset.write(pa.table({"t": ["a", "b", "c"]}), tmp_path / "text", batch_size=2)
    with dataset.open(tmp_path / "text") as rows:  # a new dataset takes all columns
        dataset.write(rows, tmp_path / "again", batch_size=3)
        with dataset.open(tmp_path / "again") as again:
            assert len(again.shards) == 1 and pa.table(again) == pa.table(rows)
    with pytest.raises(ValueError, match="batch_size"):
        dataset.compact(tmp_path / "text", batch_size=0)
