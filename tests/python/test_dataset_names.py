"""Names that select tensors: a list, or text separated by commas; one that is nowhere is an error.
Numbers of rows that strangers wrote: compared with the tensors that are read."""
import json

import numpy as np
import pytest

from libsafetensors import SafetensorError, dataset, save_sharded
from libsafetensors.numpy import save_file

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
    for option in ("keys", "columns"):
        with pytest.raises(KeyError, match=r"%s: expected .*\(v\), found typo" % option):
            dataset.open(tmp_path, **{option: ["typo"]})


def test_lists_and_texts(path):
    for keys in (["a__v", "c__v"], "a__v,c__v", "a__v, c__v", ("a__v", "c__v")):
        assert [row["k"] for row in dataset.open(path, keys=keys)] == ["a", "c"]
        assert [one["name"] for one in dataset.ls(path, keys=keys)["tensors"]] == ["a__v", "c__v"]
    assert dataset.ls(path, keys="b__w")["tensors"][0]["shape"] == []


def test_an_index_that_repeats_a_row(tmp_path):
    """Of few bytes and any number of equal rows."""
    import pyarrow.parquet as pq
    from libsafetensors.dataset._index import find_index
    from libsafetensors.dataset._storage import Place
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
    index = find_index(Place(tmp_path), made)
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


# ── Numbers of rows ──

def miscounted(folder, rows, *shards, **how):
    """A dataset whose manifest says so many rows of its last shard."""
    for one in shards:
        made = dataset.write(one, folder, mode="append", **how)
    more = rows - made["shards"][-1]["samples_count"]
    made["shards"][-1].update(samples_count=rows, valid_samples=rows)
    made.update(total_samples=made["total_samples"] + more,
                total_valid_samples=made["total_valid_samples"] + more)
    (folder / "dataset_manifest.json").write_text(json.dumps(made))
    return folder


READS = {"row": lambda d: d[-1], "rows": list, "take": lambda d: d.take([len(d) - 1, 0]),
         "slice": lambda d: d.take(range(len(d) - 1, len(d))),
         "batches": lambda d: list(d.batches(2))}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("rows", [1, 3, 1 << 20])
def test_rows_that_a_batch_has_not(tmp_path, rows, read):
    """A slice of fewer rows was a short batch, without an error."""
    one = pa.table({"x": [1.5, 2.5], "y": [1, 2]})
    path = miscounted(tmp_path, rows, one, one, batch_size=2)
    with pytest.raises(SafetensorError, match="expected %d samples by the manifest" % rows) as caught:
        read(dataset.open(path))
    assert caught.value.code == "dataset_shard"


@pytest.mark.parametrize("rows", [2**63 - 1, 2**63, 2**64 - 3])
@pytest.mark.parametrize("how", [{"batch_size": 2}, {"name_col": "k"}])
def test_more_rows_than_python_counts(tmp_path, rows, how):
    """They were an OverflowError."""
    one, two = ({"k": [name, name * 2], "x": [1.5, 2.5]} for name in "ab")
    if "batch_size" in how:
        del one["k"], two["k"]
    path = miscounted(tmp_path, rows, pa.table(one), pa.table(two), **how)
    for read in [len, *READS.values()]:
        with pytest.raises(SafetensorError, match="(total_samples|samples_count)") as caught:
            read(dataset.open(path))
        assert caught.value.code == "manifest_type"


@pytest.mark.parametrize("form", ["whole", "segments"])
@pytest.mark.parametrize("where", [{"samples_count": 2**63 - 2, "valid_samples": 2**63 - 2},
                                   {"first_sample": 2**63 - 3}])
def test_an_append_beyond_the_rows_that_are_read(tmp_path, form, where):
    """It was written, and no reader took the manifest."""
    one = pa.table({"x": [1.5, 2.5]})
    dataset.write(one, tmp_path, batch_size=2)
    file = tmp_path / "dataset_manifest.json"
    made = json.loads(file.read_text())
    made["shards"][0].update(where)
    made.update(dict.fromkeys(("total_samples", "total_valid_samples"),
                              made["shards"][0]["samples_count"]))
    file.write_text(json.dumps(made))
    rows = len(dataset.open(tmp_path))
    with pytest.raises(SafetensorError, match="samples below 2.63"):
        dataset.write(one, tmp_path, batch_size=2, mode="append", manifest=form)
    assert len(dataset.open(tmp_path)) == rows


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_that_a_file_of_keys_has_not(tmp_path, rows):
    one, two = ({"k": [name, name * 2], "x": [1.5, 2.5]} for name in "ab")
    path = miscounted(tmp_path, rows, pa.table(one), pa.table(two), name_col="k")
    for read in READS.values():
        with pytest.raises(SafetensorError, match="expected %d samples by the manifest" % rows) as caught:
            read(dataset.open(path))
        assert caught.value.code == "dataset_shard"


@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_tensors_of_other_rows_without_a_manifest(tmp_path, shape):
    save_file({"x": np.zeros(2), "y": np.zeros(2)}, tmp_path / "a.safetensors")
    save_file({"x": np.zeros(2), "y": np.zeros(shape)}, tmp_path / "b.safetensors")
    opened = dataset.open(tmp_path, use_manifest=False, mode="batch")
    assert opened[1]["x"] == 0
    for read in READS.values():
        with pytest.raises(SafetensorError, match="b.safetensors: y: expected 2 rows"):
            read(opened)


def test_sparks_rows_of_samples(tmp_path):
    """Without Spark: what one of its tasks reads of a shard."""
    from libsafetensors.dataset._shards import shards_of_files
    from libsafetensors.dataset._storage import Place
    rows = pytest.importorskip("libsafetensors.spark._rows", exc_type=ImportError)
    save_file({"x": np.zeros(2), "y": np.float64(0)}, tmp_path / "a.safetensors")
    shards = shards_of_files(Place(tmp_path), ["a.safetensors"])
    piece = rows.Piece(shards.facts[0], None, 0, 3, frozenset(), {})
    with pytest.raises(SafetensorError, match="y: expected 2 rows, found shape "):
        list(rows.sample_rows(shards, 0, piece, pa.schema([("x", "double"), ("y", "double")])))


# ── The mark of a job ──

def test_links_in_the_place_of_a_jobs_mark(tmp_path):
    """A job's folder, or its mark, that is a link: what it leads to stays."""
    from libsafetensors import _core
    from libsafetensors.dataset._alive import Alive
    from libsafetensors.dataset._storage import Place
    folder, other = tmp_path / "d", tmp_path / "other"
    dataset.write(pa.table({"x": [1.5]}), folder, batch_size=1)
    other.mkdir()
    (other / ".alive").write_bytes(b"mine")
    job = "01234567-89ab-4cde-8f01-23456789abcd"
    place = Place(folder)
    (folder / ("_job-" + job)).symlink_to(other, target_is_directory=True)
    alive = Alive(place, job + ":0", last=True)
    with alive:
        alive._renewed = True
    with pytest.raises(OSError, match="symbolic link"):
        _core.dataset_renew(place.core, job + ":0")
    dataset.gc(folder, delete=True, grace=0)
    assert (other / ".alive").read_bytes() == b"mine"

    (folder / ("_job-" + job)).unlink()
    (folder / ("_job-" + job)).mkdir()
    (folder / ("_job-" + job) / ".alive").symlink_to(other / ".alive")
    _core.dataset_renew(place.core, job + ":0")
    assert (other / ".alive").read_bytes() == b"mine"
    dataset.gc(folder, delete=True, grace=0)
    assert [one.name for one in other.iterdir()] == [".alive"]
    assert not (folder / ("_job-" + job)).exists() and len(dataset.open(folder)) == 1


def test_a_folder_with_the_index_of_pytorch_shards_too(tmp_path):
    save_sharded({"a": np.ones((4, 2), "f4"), "b": np.ones((4, 3), "f4")}, tmp_path,
                 max_shard_size=32)
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "x.bin"}}')
    assert sorted(row["name"] for row in dataset.open(tmp_path)) == ["a", "b"]


# ── Columns of which one's name ends as another's tensors do ──

def meeting(path, *shards):
    """A dataset of 0.2, which wrote such columns. Shards: names of rows, and a number of their
    samples where it is not theirs."""
    for i, names in enumerate(shards):
        keys = sorted({name + left for name in names for left in ("", "_left")})
        rows = pa.table({"n": keys, "image": [[ord(key[0]), len(key)] for key in keys]})
        dataset.write(rows, path, name_col="n", kv_separator="_", keep_old=0,
                      mode="append" if i else "error", duplicatesStrategy="lastWin")
    file = path / "dataset_manifest.json"
    manifest = json.loads(file.read_text())
    manifest["columns"]["left_image"] = {"dtype": "I64", "shape": [2]}
    counts = [len(names) for names in shards]
    for shard, samples in zip(manifest["shards"], counts):
        was = b'"samples":"%d"' % shard["samples_count"]
        data = (path / shard["shard_path"]).read_bytes()
        assert was in data and shard["samples_count"] < 10
        (path / shard["shard_path"]).write_bytes(data.replace(was, b'"samples":"%d"' % samples))
        shard.update(samples_count=samples, valid_samples=samples, first_sample=0)
    for shard, before in zip(manifest["shards"], (0, *counts)):
        shard["first_sample"] = before
    hidden = sum(shard["shadowed"] for shard in manifest["shards"]) // 2
    manifest.update(total_samples=sum(counts) - hidden, total_valid_samples=sum(counts) - hidden)
    file.write_text(json.dumps(manifest))
    return path


def names_in(path, **options):
    return [row["n"] for row in dataset.open(path, **options)]


@pytest.mark.parametrize("separator, columns", [
    ("_", ("image", "left_image")), ("__", ("x", "a__x")), ("__", ("x", "_x")), ("", ("x", "ax"))])
def test_columns_whose_tensors_meet_are_refused(tmp_path, separator, columns):
    rows = pa.table({"n": ["7"], **{column: [1] for column in columns}})
    for options in ({}, {"mode": "overwrite"}, {"duplicatesStrategy": "lastWin"}):
        with pytest.raises(ValueError, match='columns %s and %s: .*kv_separator "%s", .*use another'
                                             % (*columns, separator)) as caught:
            dataset.write(rows, tmp_path, name_col="n", kv_separator=separator, **options)
        assert caught.value.code == "option_value"
    dataset.write(rows, tmp_path, name_col="n", kv_separator="/")
    assert names_in(tmp_path) == ["7"]
    with pytest.raises(TypeError, match="expected a name in KV mode, found none"):
        dataset.write(pa.table({"n": ["7"], "": [1]}), tmp_path / "none", name_col="n")


def test_rows_of_columns_whose_tensors_meet(tmp_path):
    path = meeting(tmp_path / "d", ["7", "7_left_left", "8"], ["9"])
    rows = {row["n"]: row for row in dataset.open(path)}
    assert list(rows) == ["7", "7_left_left", "8", "9"]
    assert rows["7"]["image"].tolist() == [55, 1] and rows["7"]["left_image"].tolist() == [55, 6]
    assert names_in(path, keys=["7_left_image", "9_image"]) == ["7", "9"]
    assert dataset.open(path)["7_left_left"]["left_image"].tolist() == [55, 16]
    for name in ("7_left", "8_left"):
        with pytest.raises(KeyError):
            dataset.open(path)[name]
    with pytest.raises(KeyError, match="8_left"):
        dataset.delete(path, keys="8_left")
    for name in ("7", "7_left"):  # by name alone, "7_left" may be a row
        with pytest.raises(ValueError, match="columns image and left_image"):
            dataset.delete(path, keys=name)
    assert dataset.delete(path, keys=["8", "9"])["deleted"] == 2
    assert names_in(path) == ["7", "7_left_left"]
    with pytest.raises(ValueError, match="columns image and left_image"):
        dataset.compact(path)
    more = pa.table({"n": ["5"], "image": [[0, 0]], "left_image": [[1, 1]]})
    with pytest.raises(ValueError, match="columns image and left_image"):
        dataset.write(more, path, mode="append", name_col="n", kv_separator="_",
                      duplicatesStrategy="lastWin")
    dataset.write(more, path, mode="append", name_col="n", kv_separator="_")
    assert names_in(path) == ["7", "7_left_left", "5"]


def test_rows_that_have_lost_tensors_to_others(tmp_path):
    """Also where what is left might be other rows."""
    for i, shards in enumerate(((["7", "7_left"],), (["7"], ["7_left"]), (
            ["b", "b_left", "b_left_left_left", "b_left_left_left_left"],))):
        path = meeting(tmp_path / str(i), *shards)
        with pytest.raises(SafetensorError, match="columns image and left_image") as caught:
            names_in(path)
        assert caught.value.code == "option_value"


# ── Totals ──

@pytest.mark.parametrize("form", ["whole", "segments"])
def test_a_shard_that_the_list_has_lost(tmp_path, form):
    rows = pa.table({"x": [0, 1, 2, 3]})
    dataset.write(rows, tmp_path, batch_size=2, manifest=form)
    file = tmp_path / "dataset_manifest.json"
    manifest = json.loads(file.read_text())
    if form == "whole":
        manifest["shards"].pop()
    else:
        manifest["total_samples"] = 2
    file.write_text(json.dumps(manifest))
    told = "total_samples: expected %s, the sum over the shards, found" % (
        2 if form == "whole" else 4)
    for call in (lambda: dataset.open(tmp_path), lambda: dataset.info(tmp_path),
                 lambda: dataset.compact(tmp_path), lambda: dataset.delete(tmp_path, rows=0),
                 lambda: dataset.write(rows, tmp_path, batch_size=2, mode="append")):
        with pytest.raises(SafetensorError, match=told) as caught:
            call()
        assert caught.value.code == "manifest_type"
    assert not dataset.verify(tmp_path)["ok"]
    dataset.write(rows, tmp_path, batch_size=2, mode="overwrite")
    assert len(dataset.open(tmp_path)) == 4


def test_the_schema_of_names_is_verified(tmp_path):
    dataset.write(pa.table({"n": ["a", "b"], "x": [1, 2]}), tmp_path, name_col="n")
    file = tmp_path / "dataset_manifest.json"
    before = file.read_text()
    assert dataset.verify(tmp_path)["ok"]
    for was, now, told in (('"a__x"', '"a__y"', "the tensor a__x, found none"),
                           ('"a__x"', '"a__w"', "a__w: expected dtype and shape"),
                           ('"dtype":"I64","shape":[]}}', '"dtype":"F64","shape":[]}}', "b__x: "),
                           ('"shape":[]}}', '"shape":[1]}}', "b__x: expected dtype and shape")):
        changed = before.replace(was, now)
        assert changed != before
        file.write_text(changed)
        found = [one["message"] for one in dataset.verify(tmp_path)["findings"]]
        assert any(told in one for one in found), (now, found)
