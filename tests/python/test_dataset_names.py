"""Names that select tensors: a list, or text separated by commas; one that is nowhere is an error."""
import json

import numpy as np
import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")


@pytest.fixture(params=[{}, {"generate_index": True}, {"manifest": "segments"}],
                ids=["schema", "index", "headers"])
def path(request, tmp_path):
    rows = pa.table({"k": ["a", "b", "c"], "v": [[1.0], [2.0], [3.0]], "w": [1, 2, 3]})
    dataset.write(rows, tmp_path, name_col="k", **request.param)
    return tmp_path


def test_a_key_that_is_nowhere(path):
    for keys in (["typo"], ["a__v", "typo"], "a__v,typo", ["a"], ""):
        with pytest.raises(KeyError, match="keys: expected names of tensors of the dataset, found"):
            len(dataset.open(path, keys=keys))
    assert list(dataset.open(path, keys=[])) == []
    with pytest.raises(KeyError, match="typo0, typo1, typo2, typo3, typo4, …"):
        next(iter(dataset.open(path, keys=["typo%d" % i for i in range(9)])))


def test_a_key_of_a_column_that_is_nowhere(tmp_path):
    dataset.write(pa.table({"v": [1.0]}), tmp_path, batch_size=1)
    with pytest.raises(KeyError, match="typo"):
        dataset.open(tmp_path, keys=["typo"])


def test_lists_and_texts(path):
    for keys in (["a__v", "c__v"], "a__v,c__v", "a__v, c__v", ("a__v", "c__v")):
        assert [row["k"] for row in dataset.open(path, keys=keys)] == ["a", "c"]
        assert [one["name"] for one in dataset.ls(path, keys=keys)["tensors"]] == ["a__v", "c__v"]
    assert dataset.ls(path, keys="b__w")["tensors"][0]["shape"] == []


def test_an_index_that_repeats_a_row(tmp_path):
    """Of few bytes and any number of equal rows."""
    import pyarrow.parquet as pq
    from libsafetensors.dataset._index import find_index
    from libsafetensors.dataset._storage import place_of
    rows = pa.table({"k": ["a", "b"], "v": [[1.0], [2.0]]})
    made = dataset.write(rows, tmp_path, name_col="k", generate_index=True)
    file = tmp_path / "_tensor_index.parquet"
    table = pq.read_table(file)
    many = 3_000_000
    column = {name: pa.DictionaryArray.from_arrays(
        np.zeros(many, np.int32), table[name][:1].combine_chunks()).dictionary_decode()
        for name in ("tensor_key", "file_name", "dtype")}
    column["shape"] = pa.array([[1]], pa.list_(pa.int32())).take(np.zeros(many, np.int32))
    pq.write_table(pa.table(column).replace_schema_metadata(table.schema.metadata), file)
    del column
    assert file.stat().st_size < 100_000
    index = find_index(place_of(tmp_path), made)
    assert index is not None
    before = pa.total_allocated_bytes()
    index._data = Watched(index._data)
    assert len(index.files()) == len(index.places_of(["a__v"])) == 1
    assert pa.total_allocated_bytes() - before < 10 << 20
    assert json.loads((tmp_path / "dataset_manifest.json").read_text())["index"]


class Watched:
    """Lets nobody read a whole table."""

    def __init__(self, data):
        self.data, self.schema = data, data.schema

    def to_batches(self, **options):
        return self.data.to_batches(**options)
