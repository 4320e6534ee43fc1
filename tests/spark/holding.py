"""What must hold of a dataset on disk, looked at without Spark: by the official package, by
our own readers, and by the names in the folder."""
import json
import os

import ml_dtypes  # noqa: F401  bfloat16 and the like, for the official package
import numpy as np
from safetensors import safe_open

from libsafetensors import dataset

MANIFEST = "dataset_manifest.json"


def manifest(path):
    with open(os.path.join(path, MANIFEST), encoding="utf-8") as file:
        return json.load(file)


def shards(path):
    """Names of the manifest's shards in the order of their samples."""
    told = sorted(manifest(path)["shards"], key=lambda one: one["first_sample"])
    return [one["shard_path"] for one in told]


def files(path):
    """Every file below the folder, but for the lock."""
    return sorted(os.path.relpath(os.path.join(folder, name), path)
                  for folder, _, names in os.walk(path) for name in names
                  if name != ".dataset.lock")


def tensors(path, name):
    """{key: array} of a shard as the official package opens it."""
    with safe_open(os.path.join(path, name), framework="np") as file:
        return {key: file.get_tensor(key) for key in file.keys()}


def stacked(path):
    """{column: all rows} of a batch dataset in the order of the manifest."""
    parts = [tensors(path, name) for name in shards(path)]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def keyed(path):
    """{key: array} of a KV dataset; of two of one key the later, as in any reader."""
    found = {}
    for name in shards(path):
        found.update(tensors(path, name))
    return found


def whole(path, *, clean=True):
    """The dataset is whole, and (clean) there is nothing else. Returns its manifest."""
    found = dataset.verify(path, deep=True)
    assert found["ok"], found
    told = manifest(path)
    for name in shards(path):
        assert tensors(path, name)
    if clean:
        assert files(path) == expected_files(path), "left over"
    return told


def numbered(path, rows=100, start=0):
    """Every row is there once, of those whose n is i and whose x (float32, [2, 3]) holds i.
    Returns the manifest."""
    told = whole(path)
    got = stacked(path)
    assert sorted(got["n"].tolist()) == list(range(start, start + rows))
    assert got["x"].dtype == np.float32 and got["x"].shape == (rows, 2, 3)
    assert np.array_equal(got["x"], got["n"][:, None, None] * np.ones((1, 2, 3)))
    return told


def expected_files(path):
    told = manifest(path)
    return sorted([MANIFEST, *(one["shard_path"] for one in told["shards"]),
                   *([told["index"]] if told["index"] else [])])


def left(path):
    """What is in the folder that the manifest does not name."""
    return sorted(set(files(path)) - set(expected_files(path)))


def swept(path):
    """gc clears all that no manifest names, and nothing else. Returns what it took."""
    before = left(path)
    dataset.gc(path, delete=True, grace=0)
    assert files(path) == expected_files(path)
    return before


def snapshot(path):
    """Names and bytes of all that the manifest names, and the manifest's own."""
    return {name: contents(path, name) for name in expected_files(path)}


def contents(path, name):
    with open(os.path.join(path, name), "rb") as file:
        return file.read()
