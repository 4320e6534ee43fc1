"""compact(batch_size=): batches of another size, the same rows in the same order."""
import json
import os
import random
import subprocess

import numpy as np
import pytest

import libsafetensors.__main__ as front
from libsafetensors import SafetensorError, dataset

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


# ── Damage ──

def flip(path):
    data = bytearray(path.read_bytes())
    data[-8] ^= 0x40
    path.write_bytes(data)


def first(path, pattern="part-*"):
    return sorted(path.glob(pattern))[0]


def refused(path, damaged, call):
    """Nothing gives a damaged file's rows a new digest."""
    files = sorted(os.listdir(path))
    with pytest.raises(SafetensorError, match=damaged.name + ": expected the digest") as caught:
        call()
    assert caught.value.code == "dataset_shard" and sorted(os.listdir(path)) == files
    assert not dataset.verify(path, deep=True)["ok"]


def test_damaged_batches_are_not_compacted(tmp_path):
    dataset.write(pa.table({"x": range(100, 110)}), tmp_path, batch_size=3)
    flip(first(tmp_path))
    refused(tmp_path, first(tmp_path), lambda: dataset.compact(tmp_path, batch_size=4, drop_old=True))
    dataset.delete(tmp_path, rows=[1])
    refused(tmp_path, first(tmp_path), lambda: dataset.compact(tmp_path))
    dataset.delete(tmp_path, rows=[0, 1])  # all rows of the shard: a way out
    dataset.compact(tmp_path, drop_old=True)
    assert dataset.verify(tmp_path, deep=True)["ok"] and held(tmp_path) == [*range(103, 110)]


def test_damaged_rows_of_names_are_not_compacted(tmp_path):
    for i in range(2):
        dataset.write(pa.table({"n": ["a%d" % i, "b%d" % i], "x": [i, i + 1]}), tmp_path,
                      name_col="n", mode="append")
    flip(first(tmp_path))
    refused(tmp_path, first(tmp_path), lambda: dataset.compact(tmp_path, target_bytes=1 << 20))


@pytest.mark.parametrize("pattern", ["part-*", ".part-*"])
def test_damaged_columns_are_not_merged(tmp_path, pattern):
    dataset.write(pa.table({"x": range(10)}), tmp_path / "d", batch_size=5)
    dataset.add_column(tmp_path / "d", "y", [*range(10)])
    damaged = first(tmp_path / "d", pattern)
    flip(damaged)
    refused(tmp_path / "d", damaged, lambda: dataset.compact(tmp_path / "d"))
    dataset.write(pa.table({"z": range(10)}), tmp_path / "other", batch_size=5)
    done = subprocess.run([front.find_own_command(), "dataset", "add-column", "--from", tmp_path / "d",
                           "--column", "y", tmp_path / "other"], capture_output=True, text=True)
    assert done.returncode == (2 if pattern == ".part-*" else 0), done.stderr  # the other is not read


def test_a_copy_of_a_damaged_dataset(tmp_path):
    source, copy = tmp_path / "d", tmp_path / "copy"
    dataset.write(pa.table({"x": range(10)}), source, batch_size=5)
    dataset.add_column(source, "y", [*range(10)])
    flip(first(source, ".part-*"))
    for rows in (dataset.open(source), [dataset.open(source)]):
        refused(source, first(source, ".part-*"), lambda rows=rows: dataset.write(
            rows, copy, batch_size=3))
        assert not copy.exists()
    for options in ({"columns": "x"}, {"rows": (5, 10)}):  # which leave out the damaged file
        dataset.write(dataset.open(source, **options), copy, batch_size=3, mode="overwrite")
    assert held(copy) == [*range(5, 10)]


def test_a_manifest_that_hides_rows(tmp_path):
    dataset.write(pa.table({"x": range(10)}), tmp_path, batch_size=4)
    path = tmp_path / "dataset_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["shards"][0]["valid_samples"] = 3
    manifest["total_valid_samples"] = 9
    path.write_text(json.dumps(manifest))
    for call in (lambda: held(tmp_path), lambda: dataset.ls(tmp_path),
                 lambda: dataset.compact(tmp_path, batch_size=5)):
        with pytest.raises(SafetensorError, match="expected .*valid_samples") as caught:
            call()
        assert caught.value.code == "dataset_shard"
