"""Some of the columns or rows of a dataset, and rows by name through an index."""
import pickle

import numpy as np
import pytest

from libsafetensors import dataset
from libsafetensors.dataset import _shards

pa = pytest.importorskip("pyarrow")
ROWS = 103


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dataset")
    dataset.write(pa.table({"c": range(ROWS), "x": [i / 2 for i in range(ROWS)]}), path,
                  batch_size=10)
    return path


def numbers(found):
    return [int(row["c"]) for row in found]


@pytest.mark.parametrize("options, expected", [
    ({"split": "0:90%"}, range(92)), ({"split": "90%:"}, range(92, 103)), ({"split": ":"}, range(103)),
    ({"split": "7:12"}, range(7, 12)), ({"split": " 5 : 5 "}, range(0)), ({"split": "50%:60"}, range(51, 60)),
    ({"rows": range(8, 31)}, range(8, 31)), ({"rows": (0, 103)}, range(103)), ({"rows": range(9, 3)}, range(0))])
def test_rows(path, options, expected):
    found, expected = dataset.open(path, **options), list(expected)
    assert len(found) == len(expected) and numbers(found) == expected
    assert numbers(pickle.loads(pickle.dumps(found))) == expected
    assert [row for batch in found.batches(4) for row in batch["c"].tolist()] == expected
    assert [row for batch in found.batches() for row in batch["c"].tolist()] == expected
    if expected:
        assert int(found[-1]["c"]) == expected[-1] and numbers([found[0]]) == expected[:1]
        assert found.take([-1, 0])["c"].tolist() == [expected[-1], expected[0]]
        assert found[1:3]["c"].tolist() == expected[1:3]
        assert found.take(np.array([len(expected) - 1]))["c"].tolist() == expected[-1:]
    for wrong in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            found[wrong]
        with pytest.raises(IndexError):
            found.take([wrong])
        with pytest.raises(IndexError):
            found.take(range(wrong, wrong + 1))


@pytest.mark.parametrize("options, error, words", [
    ({"split": "0:104"}, ValueError, "split: expected from 0 to 103 rows"),
    ({"split": "9:3"}, ValueError, "split: expected from 0 to 103"),
    ({"split": "90%"}, ValueError, "split: expected FROM:TO"),
    ({"split": "0:101%"}, ValueError, "split: expected rows such as"),
    ({"split": "-5:"}, ValueError, "split: expected rows such as"),
    ({"split": "1:2:3"}, ValueError, "split: expected rows such as"),
    ({"split": "0:" + "9" * 30}, ValueError, "split: expected rows such as"),
    ({"rows": (0, 104)}, ValueError, "rows: expected from 0 to 103"),
    ({"rows": (-1, 4)}, ValueError, "rows: expected from 0 to 103"),
    ({"rows": range(0, 50, 2)}, ValueError, "rows: expected them one after the other"),
    ({"rows": (0, 1.5)}, TypeError, "rows: expected whole numbers"),
    ({"rows": (0, 1), "split": ":"}, ValueError, "expected rows or split, found both"),
    ({"columns": "c", "keys": "c"}, ValueError, "expected columns or keys, found both"),
    ({"columns": "y"}, KeyError, "expected columns of the dataset"),
    ({"columns": ["c", "c "]}, KeyError, "expected columns of the dataset")])
def test_what_cannot_be(path, options, error, words):
    with pytest.raises(error, match=words):
        dataset.open(path, **options)


def test_columns(path):
    assert dataset.open(path, columns="x").columns == ["x"]
    assert dataset.open(path, columns=["x"], split="10%:")[0].keys() == {"x"}
    with pytest.raises(KeyError):
        dataset.open(path, columns="x").tensor("c")


def test_torch(path):
    torch = pytest.importorskip("torch")
    made = dataset.TorchBatches(path, 4, split="20:60", ends="uneven", seed=2)
    seen = torch.cat([batch["c"] for batch in made]).tolist()
    assert sorted(seen) == list(range(20, 60)) and seen != sorted(seen)
    for shuffle in ("shards", "blocks"):
        for partition in ("batches", "shards"):
            one = dataset.TorchBatches(path, 4, rows=range(5, 98), ends="uneven", shuffle=shuffle,
                                       partition=partition)
            assert sorted(torch.cat([batch["c"] for batch in one]).tolist()) == list(range(5, 98))
    state = made.state_dict()
    dataset.TorchBatches(path, 4, split="20:60", ends="uneven").load_state_dict(state)
    with pytest.raises(ValueError, match="rows: the state is of rows 20 to 60, expected rows 21 to 61"):
        dataset.TorchBatches(path, 4, split="21:61", ends="uneven").load_state_dict(state)
    with pytest.raises(ValueError, match="rows: the state is of rows 20 to 60, expected all rows"):
        dataset.TorchBatches(path, 4, ends="uneven").load_state_dict(state)
    assert len(dataset.TorchDataset(path, rows=(3, 5))) == 2


# ── Names ──

def test_names_of_a_part(tmp_path):
    dataset.write(pa.table({"k": ["a", "b", "c"], "v": [[1.0], [2.0], [3.0]]}), tmp_path, name_col="k")
    part = dataset.open(tmp_path, rows=(1, 3))
    assert [row["k"] for row in part] == ["b", "c"]
    with pytest.raises(TypeError, match="have no names"):
        part["a"]
    with pytest.raises(ValueError, match="columns: expected a dataset in batch mode"):
        dataset.open(tmp_path, columns="v")


def test_a_name_through_the_index(tmp_path, monkeypatch):
    """One header, not one a shard; what the index lacks is searched for."""
    for i in range(12):
        dataset.write(pa.table({"k": ["r%d" % i], "v": [[float(i)]]}), tmp_path, name_col="k",
                      generate_index=True, mode="append" if i else "error")
    opened = []
    whole = _shards.Shards._opened
    monkeypatch.setattr(_shards.Shards, "_opened", lambda self, i: opened.append(i) or whole(self, i))
    assert dataset.open(tmp_path)["r3"]["v"].tolist() == [3] and opened == [3]
    opened.clear()
    with pytest.raises(KeyError):
        dataset.open(tmp_path)["none"]
    assert sorted(opened) == list(range(12))
    (tmp_path / "_tensor_index.parquet").unlink()
    assert dataset.open(tmp_path)["r3"]["v"].tolist() == [3]
