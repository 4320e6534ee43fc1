"""Datasets of the Spark connector, read and appended to."""
import json
import os
import warnings

import numpy as np
import pytest

import connector
from libsafetensors import SafetensorError, dataset

pa = pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("spaces", [0, 1, 7])
@pytest.mark.parametrize("index", [False, True])
def test_batches(tmp_path, spaces, index):
    connector.write(tmp_path, connector.batches(), index=index, spaces=spaces)
    found = dataset.open(tmp_path)
    assert (found.mode, len(found), sorted(found.columns)) == ("batch", 11, ["x", "y", "z"])
    assert found.schema["x"] == {"dtype": "F32", "shape": [3]}
    assert [int(row["y"]) for row in found] == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22]
    np.testing.assert_array_equal(found[5]["x"], np.array([103, 104, 105], np.float32))
    assert [list(batch["z"]) for batch in found.batches()] == [[0] * 4, [1] * 4, [2] * 3]
    np.testing.assert_array_equal(found.take([10, 0])["y"], [22, 0])
    assert dataset.verify(tmp_path)["findings"] == []


@pytest.mark.parametrize("index", [False, True])
def test_rows(tmp_path, index):
    connector.write(tmp_path, connector.rows(), index=index)
    found = dataset.open(tmp_path)
    assert (found.mode, len(found)) == ("kv", 6)
    assert sorted(found.columns) == ["emb", "id"]
    assert [int(row["id"]) for row in found] == list(range(6))
    assert found["row3"]["emb"].tolist() == [3, 3, 3]
    assert found.tensor("row4__emb").shape == (2,)
    with pytest.raises(KeyError):
        found["row6"]
    some = dataset.open(tmp_path, keys="row1__emb, row5__id")
    assert [sorted(row) for row in some] == [["emb", "name"], ["id", "name"]]


def test_index_says_which_files_to_open(tmp_path):
    connector.write(tmp_path, connector.rows(), index=True)
    for shard in (0, 2):
        path = tmp_path / connector.name(shard)
        path.write_bytes(b"?" * path.stat().st_size)
    found = dataset.open(tmp_path, keys=["row2__id", "row3__id"], mode="kv")
    assert [int(row["id"]) for row in found] == [2, 3]


def test_forgotten_by_an_append(tmp_path):
    connector.write(tmp_path, connector.batches(), told=1)
    with pytest.warns(UserWarning, match="does not name 2 .*part-0000[01]-"):
        found = dataset.open(tmp_path)
    assert [int(row["y"]) for row in found] == [20, 21, 22]
    assert len(dataset.open(tmp_path, use_manifest=False)) == 11


def test_a_pipe_in_an_index(tmp_path):
    """What would be waited for is no index."""
    connector.write(tmp_path, connector.rows(), index=True)
    os.mkfifo(tmp_path / "_tensor_index.parquet" / "part-9.parquet")
    found = dataset.open(tmp_path, keys=["row2__id", "row3__id"], mode="kv")
    assert [int(row["id"]) for row in found] == [2, 3]


def test_stale_index(tmp_path):
    """Of an overwrite without an index: the connector then reads nothing at all."""
    connector.write(tmp_path, connector.rows(1), index=True)
    os.remove(tmp_path / connector.name(0))
    others = [(connector.name(7), 2, connector.rows(2)[1][2])]
    connector.write(tmp_path, others)
    with pytest.warns(UserWarning, match="_tensor_index.parquet is of other shards"):
        found = dataset.open(tmp_path, keys="row2__id")
    assert [row["name"] for row in found] == ["row2"]
    assert len(dataset.open(tmp_path)) == 2
    with pytest.warns(UserWarning), pytest.raises(KeyError, match="row0__id"):
        dataset.open(tmp_path, keys="row2__id,row0__id")[0]
    told = dataset.verify(tmp_path)
    assert told["ok"]
    assert [(one["shard"], one["message"]) for one in told["orphans"]] == \
        [("_tensor_index.parquet", "an index of other shards; readers ignore it")]


def test_an_index_that_lacks_rows(tmp_path):
    connector.write(tmp_path, connector.rows(), index=True)
    assert dataset.verify(tmp_path)["ok"]
    os.remove(next((tmp_path / "_tensor_index.parquet").glob("part-00001-*")))
    told = dataset.verify(tmp_path)
    assert told["ok"] and [one["message"] for one in told["orphans"]] == \
        ["an index of other shards; readers ignore it"]


def test_empty(tmp_path):
    connector.write(tmp_path, [])
    found = dataset.open(tmp_path)
    assert (len(found), list(found), list(found.batches())) == (0, [], [])
    with pytest.raises(IndexError):
        found[0]


def test_a_shard_that_is_gone_or_cut(tmp_path):
    connector.write(tmp_path, connector.batches())
    found = dataset.open(tmp_path)
    path = tmp_path / connector.name(1)
    path.write_bytes(path.read_bytes()[:-1])
    assert found[0] and found[8]
    with pytest.raises(SafetensorError, match=r"part-00001-.*expected \d+ bytes") as caught:
        found[4]
    assert caught.value.code == "dataset_shard"
    path.unlink()
    with pytest.raises(SafetensorError, match="part-00001-.*found none") as caught:
        found[4]
    assert caught.value.code == "dataset_shard"
    told = dataset.verify(tmp_path)
    assert not told["ok"] and [one["shard"] for one in told["findings"]] == [path.name]


def test_append_adopts_it(tmp_path):
    connector.write(tmp_path, connector.batches(1))
    table = pa.table({"z": pa.array([9], pa.uint8()),
                      "x": pa.array([[1, 2, 3]], pa.list_(pa.float32(), 3)),
                      "y": pa.array([99])})
    made = dataset.write(table, tmp_path, mode="append", batch_size=4)
    assert made["total_samples"] == len(dataset.open(tmp_path)) == 4
    assert dataset.open(tmp_path)[-1]["y"] == 99
    assert json.loads((tmp_path / "dataset_manifest.json").read_text()) == made


def test_append_to_one_that_forgot(tmp_path):
    connector.write(tmp_path, connector.batches(2), told=1)
    table = pa.table({"z": pa.array([9], pa.uint8()),
                      "x": pa.array([[1, 2, 3]], pa.list_(pa.float32(), 3)),
                      "y": pa.array([99])})
    before = (tmp_path / "dataset_manifest.json").read_bytes()
    with pytest.raises(SafetensorError, match="part-00000"):
        dataset.write(table, tmp_path, mode="append", batch_size=4)
    assert (tmp_path / "dataset_manifest.json").read_bytes() == before
    dataset.write(table, tmp_path, mode="append", batch_size=4, adopt="listing")
    found = [int(row["y"]) for row in dataset.open(tmp_path)]
    assert sorted(found) == [0, 1, 2, 3, 10, 11, 12, 99] and found[-1] == 99


def test_ours_that_it_forgot(tmp_path):
    """Of a dataset of ours that the connector appended to: rows of padding are none."""
    ours = pa.table({"z": pa.array([7] * 3, pa.uint8()), "y": pa.array([71, 72, 73]),
                     "x": pa.array([[1, 2, 3]] * 3, pa.list_(pa.float32(), 3))})
    dataset.write(ours, tmp_path, batch_size=2, tail_strategy="pad")
    connector.write(tmp_path, connector.batches(1))
    dataset.write(ours.slice(0, 1), tmp_path, mode="append", batch_size=4, adopt="listing")
    found = dataset.open(tmp_path)
    assert sorted(int(row["y"]) for row in found) == [0, 1, 2, 71, 71, 72, 73]
    told = dataset.verify(tmp_path)
    assert told["ok"] and told["orphans"] == []


def test_an_index_that_is_a_folder_is_replaced(tmp_path):
    import pyarrow.parquet as pq
    connector.write(tmp_path, connector.batches(), index=True)
    theirs = sorted(tmp_path.glob("part-*"))
    with pytest.warns(UserWarning, match="3 files that the replaced manifest named"):
        made = dataset.write(pa.table({"a": [1]}), tmp_path, mode="overwrite", batch_size=1,
                             generate_index=True)
    assert all(one.exists() for one in theirs)
    table = pq.read_table(tmp_path / "_tensor_index.parquet")
    assert table.column("tensor_key").to_pylist() == ["a"]
    assert table.schema.metadata[b"commit"].decode() == made["commit"]
    dataset.write(pa.table({"a": [1]}), tmp_path, mode="overwrite", batch_size=1)
    assert not (tmp_path / "_tensor_index.parquet").exists()


@pytest.mark.parametrize("shards", [[], connector.batches(), connector.rows()],
                         ids=["empty", "batch", "kv"])
def test_its_manifests_are_of_our_schema(tmp_path, root, shards):
    import jsonschema
    text = (root / "docs/dataset_manifest.schema.json").read_text()
    check = jsonschema.Draft202012Validator(json.loads(text))
    connector.write(tmp_path, shards)
    told = json.loads((tmp_path / "dataset_manifest.json").read_text())
    assert [str(one) for one in check.iter_errors(told)] == []
    for broken in ({**told, "shards": [{"shard_path": "a/b.safetensors", "samples_count": 1,
                                        "bytes": 9}]}, {**told, "total_samples": -1}):
        assert not check.is_valid(broken)
