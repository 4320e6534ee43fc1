"""Datasets that libsafetensors 0.2.0 wrote (tests/compat/datasets_0.2): 50 rows of `id` and `v`, in two
commits, with a whole manifest and with segments; 20 keys with an index. docs/upgrade.md promises that
0.3 reads, appends to and maintains them, and that 0.2 reads what 0.3 appended."""
import json
import os
import shutil

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")
KEPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compat",
                    "datasets_0.2")


def vectors(begin, end, width, scale):
    values = pa.array((np.arange(width * begin, width * end) / scale).astype("f4"))
    return pa.FixedSizeListArray.from_arrays(values, width)


def rows(begin, end):
    return pa.table({"id": np.arange(begin, end), "v": vectors(begin, end, 2, 4)})


def held(path):
    with dataset.open(path) as found:
        return [(row["id"].item(), row["v"].tolist()) for row in found]


def wanted(numbers):
    return [(i, [i / 2, i / 2 + 0.25]) for i in numbers]


@pytest.mark.parametrize("form", ["batch", "segments"])
def test_batches(tmp_path, form):
    path = tmp_path / form
    shutil.copytree(os.path.join(KEPT, form), path)
    before = json.loads((path / "dataset_manifest.json").read_text())
    assert held(path) == wanted(range(50)) and dataset.verify(path, deep=True)["ok"]
    assert dataset.write(rows(50, 60), path, batch_size=8, mode="append")["version"] == 3
    after = json.loads((path / "dataset_manifest.json").read_text())
    # a number that 0.2 takes, and no member or column of which it would not know
    assert after["format_version"] == before["format_version"] and "features" not in after
    assert after["columns"] == before["columns"]
    assert held(path) == wanted(range(60))
    dataset.delete(path, rows=[0, 55])
    assert held(path) == wanted([*range(1, 55), *range(56, 60)])
    assert dataset.compact(path)["deleted_dropped"] == 2
    assert held(path) == wanted([*range(1, 55), *range(56, 60)])
    assert dataset.verify(path, deep=True)["ok"]


def test_keys(tmp_path):
    path = tmp_path / "kv"
    shutil.copytree(os.path.join(KEPT, "kv"), path)
    more = pa.table({"name": ["k20"], "w": vectors(20, 21, 3, 1)})
    dataset.write(more, path, name_col="name", generate_index=True, mode="append")
    with dataset.open(path) as found:
        assert [(row["name"], row["w"].tolist()) for row in found] == [
            ("k%02d" % i, [3.0 * i, 3.0 * i + 1, 3.0 * i + 2]) for i in range(21)]
    assert dataset.verify(path, deep=True)["ok"]
