"""Checks of a dataset on disk without Spark: through the official package, our own readers, and
the names in the folder."""
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
    found = sorted(manifest(path)["shards"], key=lambda one: one["first_sample"])
    return [one["shard_path"] for one in found]


def files(path):
    """Every file in the folder, except the lock."""
    return sorted(os.path.relpath(os.path.join(folder, name), path)
                  for folder, _, names in os.walk(path) for name in names
                  if name != ".dataset.lock")


def tensors(path, name):
    """{key: array} of a shard, as read by the official package."""
    with safe_open(os.path.join(path, name), framework="np") as file:
        return {key: file.get_tensor(key) for key in file.keys()}


def stacked(path):
    """{column: all rows} of a batch dataset, in the order of the manifest."""
    parts = [tensors(path, name) for name in shards(path)]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def keyed(path):
    """{key: array} of a KV dataset; the last one wins, as in every reader."""
    found = {}
    for name in shards(path):
        found.update(tensors(path, name))
    return found


def whole(path, *, clean=True):
    """The dataset is complete and (clean) there are no other files. Returns its manifest."""
    found = dataset.verify(path, deep=True)
    assert found["ok"], found
    found = manifest(path)
    for name in shards(path):
        assert tensors(path, name)
    if clean:
        assert files(path) == expected_files(path), "left over"
    return found


def numbered(path, rows=100, start=0):
    """Each row i is there exactly once, with n = i and x (float32, [2, 3]) filled with i.
    Returns the manifest."""
    found = whole(path)
    got = stacked(path)
    assert sorted(got["n"].tolist()) == list(range(start, start + rows))
    assert got["x"].dtype == np.float32 and got["x"].shape == (rows, 2, 3)
    assert np.array_equal(got["x"], got["n"][:, None, None] * np.ones((1, 2, 3)))
    return found


def expected_files(path):
    """With those of the versions that are kept."""
    found = manifest(path)
    names = {MANIFEST, *([found["index"]] if found["index"] else [])}
    for one in dataset.versions(path)["versions"]:
        with dataset.open(path, version=one["version"]) as version:
            names |= {shard["name"] for shard in version.shards}
            names |= {".dataset_segment-" + segment["sha256"]
                      for segment in version.manifest.get("segments", ())}
        if one["version"] < found["version"]:
            names.add(".dataset_version-%d-%s" % (one["version"], found["history"]))
    return sorted(names)


def forget(path):
    """Only the version in force stays."""
    dataset.gc(path, delete=True, grace=0, keep=1)


def left(path):
    """Files in the folder that the manifest does not name."""
    return sorted(set(files(path)) - set(expected_files(path)))


def swept(path):
    """gc removes exactly the files that the manifest does not name. Returns their names."""
    before = left(path)
    dataset.gc(path, delete=True, grace=0)
    assert files(path) == expected_files(path)
    return before


def snapshot(path):
    """Names and contents of the manifest and all its files."""
    return {name: contents(path, name) for name in expected_files(path)}


def contents(path, name):
    with open(os.path.join(path, name), "rb") as file:
        return file.read()
