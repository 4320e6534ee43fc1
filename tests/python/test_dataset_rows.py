"""Text, bytes, lists of different lengths and nulls in batch mode: what is written comes back, and
damaged shards are errors."""
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy
from hypothesis import given, settings, strategies as st

from libsafetensors import SafetensorError, dataset
from libsafetensors.dataset import Column

try:
    import torch
    from libsafetensors.dataset import TorchBatches, TorchDataset
except ImportError:
    torch = None
FRAMEWORKS = ("numpy", "torch") if torch else ("numpy",)
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


N = 300
TEXT = [None if i % 7 == 0 else "é" * (i % 5) + str(i) for i in range(N)]
BYTES = [None if i % 11 == 0 else bytes(range(i % 200)) for i in range(N)]
LISTS = [None if i % 13 == 0 else list(range(i % 9)) for i in range(N)]
NUMBERS = [None if i % 3 == 0 else i for i in range(N)]


def table():
    return pa.table({
        "t": pa.array(TEXT), "large": pa.array(TEXT, pa.large_string()),
        "view": pa.array(TEXT, pa.string_view()), "dict": pa.array(TEXT).dictionary_encode(),
        "b": pa.array(BYTES), "l": pa.array(LISTS, pa.list_(pa.int32())),
        "n": pa.array(NUMBERS, pa.int64()),
        "dn": pa.array(NUMBERS, pa.int64()).dictionary_encode(),
        "bool": pa.array([None if i % 4 == 0 else i % 2 == 0 for i in range(N)]),
        "fixed": pa.array([None if i % 5 == 0 else [i, i + 1] for i in range(N)],
                          pa.list_(pa.int16(), 2)),
        "plain": pa.array([[1.0, float(i)] for i in range(N)], pa.list_(pa.float32()))})


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def check(path, want):
    with dataset.open(path) as rows:
        assert [{k: plain(v) for k, v in row.items()} for row in rows] == want
        order = np.random.default_rng(1).permutation(len(want)).tolist() * 2
        for numbers in (order, range(len(want)), order[:3], [], order[-1:]):
            for framework in FRAMEWORKS:
                got = rows.take(numbers, framework)
                for name, values in got.items():
                    assert [plain(v) for v in values] == [want[i][name] for i in numbers], name
    told = dataset.verify(path, deep=True)
    assert told["ok"], told["findings"]


@pytest.mark.parametrize("size", [64, N, 7])
@pytest.mark.few(1)
def test_every_kind_comes_back(tmp_path, size):
    whole = table()
    for rows in (whole, whole.slice(3, 200),
                 pa.concat_tables([whole.slice(0, 90), whole.slice(90, 1), whole.slice(91)])):
        made = dataset.write(rows, tmp_path / "d", batch_size=size, mode="overwrite")
        check(tmp_path / "d", rows.to_pylist())
    assert made["columns"]["t"] == {"dtype": "U8", "shape": None, "encoding": "utf8",
                                    "nullable": True}
    assert made["columns"]["plain"] == {"dtype": "F32", "shape": [2]}
    assert made["columns"]["n"] == {"dtype": "I64", "shape": [], "nullable": True}


def test_other_readers_see_tensors(tmp_path):
    made = dataset.write(pa.table({"t": ["ab", None, "ü"], "n": [1, 2, 3]}), tmp_path / "d",
                         batch_size=3)
    seen = safetensors.numpy.load_file(tmp_path / "d" / made["shards"][0]["shard_path"])
    assert seen["t"].tobytes() == "abü".encode() and seen["t.offsets"].tolist() == [0, 2, 2, 4]
    assert seen["t.valid"].tolist() == [True, False, True] and seen["n"].tolist() == [1, 2, 3]
    assert len(seen) == 4


COLUMN = st.one_of(
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(max_size=6), max_size=12)),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary(max_size=6), max_size=12)),
    st.tuples(st.just(pa.list_(pa.int16())), st.lists(
        st.none() | st.lists(st.integers(-2**15, 2**15 - 1), max_size=4), max_size=12)),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans(), max_size=12)),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=12)))


@settings(max_examples=60, deadline=None)
@given(one=COLUMN, size=st.integers(1, 8), tail=st.sampled_from(["write", "pad", "drop"]))
def test_any_column(tmp_path_factory, one, size, tail):
    kind, values = one
    path = tmp_path_factory.mktemp("any") / "d"
    dataset.write(pa.table({"c": pa.array(values, kind)}), path, batch_size=size,
                  tail_strategy=tail)
    want = values[:len(values) - len(values) % size] if tail == "drop" else values
    check(path, [{"c": value} for value in want])


def test_appends(tmp_path):
    """A list column is FIXED until lists differ; then it takes both."""
    path = tmp_path / "d"

    def add(values, kind, mode="append"):
        return dataset.write(pa.table({"c": pa.array(values, kind)}), path, batch_size=2, mode=mode)
    add([[1, 2], [3]], pa.list_(pa.int32()), "error")
    add([[5, 6], [7, 8]], pa.list_(pa.int32()))
    add([None, [9]], pa.list_(pa.int32()))
    check(path, [{"c": c} for c in ([1, 2], [3], [5, 6], [7, 8], None, [9])])
    for values, kind in (([1, 2], pa.int32()), (["a", "b"], pa.string()),
                         ([[1], [1, 2]], pa.list_(pa.int64())), ([b"a", b"bc"], pa.binary())):
        with pytest.raises(ValueError) as caught:
            add(values, kind)
        assert caught.value.code == "dataset_disagrees"
    add([[1, 2], [3, 4]], pa.list_(pa.int32()), "overwrite")
    with pytest.raises(ValueError) as caught:
        add([[1, 2], [3]], pa.list_(pa.int32()))
    assert caught.value.code == "dataset_disagrees"
    add(["a", "b"], pa.string(), "overwrite")
    with pytest.raises(ValueError, match="text"):
        add([b"a", b"b"], pa.binary())


@pytest.mark.parametrize("name", ["x.offsets", "x.valid"])
def test_names_of_parts_are_refused(tmp_path, name):
    with pytest.raises(TypeError, match='"%s".*tensor of the column "x"' % name):
        dataset.write(pa.table({"x": [1], name: [2]}), tmp_path / "d", batch_size=1)
    dataset.write(pa.table({"x": [1], name: [2]}), tmp_path / "d", batch_size=1, columns=[name])
    assert dataset.open(tmp_path / "d")[0][name] == 2


@pytest.mark.parametrize("values", [
    ["a", None, "é"], [1, None, 3], [[1, 2], [3], []], [[[1], [2, 3]], [], [None]],
    [{"a": [1, None]}, None, {"a": None}], [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]],
    [[[1, 2], [3, 4]], [[5, 6], [7, 8]], None]])
def test_compact(tmp_path, values):
    """Files of all forms of a column become one, and are divided again."""
    whole = pa.table({"c": values * 2})  # of one type
    parts = [whole, whole.slice(0, 2), whole.slice(2, 1), whole.slice(1, 3), whole.slice(0, 1)]
    for i, rows in enumerate(parts):
        dataset.write(rows, tmp_path / "d", batch_size=8, mode="append" if i else "error")
    want = pa.concat_tables(parts)
    for how in ({"target_bytes": 50 << 20}, {"batch_size": 3}, {"batch_size": 100}):
        assert dataset.compact(tmp_path / "d", **how)["left"] is None
        assert dataset.verify(tmp_path / "d", deep=True)["ok"]
        with dataset.open(tmp_path / "d") as rows:
            assert pa.table(rows).equals(want)
            rows.take(range(len(rows)))


# ── Loaders ──

@pytest.mark.parametrize("collate", ["list", "padded", "nested"])
@needs_torch
def test_collate(tmp_path, collate):
    dataset.write(table(), tmp_path / "d", batch_size=50)
    seen = []
    for batch in TorchBatches(tmp_path / "d", 60, shuffle=False, collate=collate, ends="uneven"):
        if collate == "list":
            seen += [None if row is None else row.tolist() for row in batch["l"]]
            assert batch["n"][1] == 1 + len(seen) - 60 and batch["t"][0] == TEXT[len(seen) - 60]
            continue
        valid = batch["l.valid"].tolist()
        rows = [row.tolist() for row in batch["l"].unbind()] if collate == "nested" else \
            [row[:n].tolist() for row, n in zip(batch["l"], batch["l.lengths"].tolist())]
        seen += [row if there else None for row, there in zip(rows, valid)]
        assert batch["n"].dtype == torch.int64 and batch["n.valid"].tolist()[:2] == [False, True]
        assert isinstance(batch["t"], list) and batch["plain"].shape[1] == 2
    assert seen == LISTS
    with pytest.raises(ValueError, match="collate"):
        TorchBatches(tmp_path / "d", 60, collate="other")
    assert TorchDataset(tmp_path / "d")[1]["t"] == TEXT[1]


@pytest.mark.parametrize("shuffle", [False, True])
@needs_torch
def test_batches_have_the_same_keys(tmp_path, shuffle):
    dataset.write(pa.table({"n": pa.array([0, None, *range(2, 40)]), "plain": range(40)}),
                  tmp_path / "d", batch_size=10)
    for batch in TorchBatches(tmp_path / "d", 5, collate="padded", shuffle=shuffle):
        assert sorted(batch) == ["n", "n.valid", "plain"]
        assert batch["n.valid"].tolist() == [row != 1 for row in batch["plain"].tolist()]


@pytest.mark.parametrize("names", [["l", "l.lengths"], ["l.lengths", "l"]])
@needs_torch
def test_lengths_replace_no_column(tmp_path, names):
    columns = {"l": pa.array([[1, 2], [3]]), "l.lengths": pa.array([7, 8])}
    dataset.write(pa.table({name: columns[name] for name in names}), tmp_path / "d", batch_size=2)
    (batch,) = TorchBatches(tmp_path / "d", 2, shuffle=False)
    assert batch["l.lengths"].tolist() == [7, 8]
    with pytest.raises(ValueError, match="replace the column 'l.lengths'"):
        list(TorchBatches(tmp_path / "d", 2, collate="padded"))


@needs_torch
def test_workers_and_pickles(tmp_path):
    dataset.write(table(), tmp_path / "d", batch_size=50)
    batches = TorchBatches(tmp_path / "d", 30, shuffle=True, seed=3)
    alone = [batch["t"] for batch in batches]
    both = [batch["t"] for batch in TorchBatches(tmp_path / "d", 30, shuffle=True, seed=3)
            .loader(num_workers=2)]
    assert alone == both and sorted(filter(None, sum(alone, []))) == sorted(filter(None, TEXT))
    column = dataset.open(tmp_path / "d").take([3, 4])["t"]
    assert isinstance(column, Column) and list(pickle.loads(pickle.dumps(column))) == TEXT[3:5]
    assert column[-1] == TEXT[4] and column.lengths.tolist() == [7, 9]
    with pytest.raises(IndexError):
        column[2]
    with pytest.raises(TypeError, match="slice"):
        column[:1]


@pytest.mark.parametrize("how", [{"batch_size": 2}, {"name_col": "k"}])
def test_a_mask_is_no_list_of_rows(tmp_path, how):
    """Each True would be row 1."""
    dataset.write(pa.table({"k": ["a", "b", "c"], "x": [[1.0], [2.0], [3.0]]}), tmp_path / "d",
                  **how)
    rows = dataset.open(tmp_path / "d")
    for some in (rows, dataset.open(tmp_path / "d", rows=(0, 3)), dataset.Mix([(rows, 1)])):
        for wrong in ([True, False, True], np.array([True]), [1.5], ["1"]):
            for framework in FRAMEWORKS:
                with pytest.raises(TypeError):
                    some.take(wrong, framework)
        assert len(some.take(np.array([2, 0], np.uint8))["x"]) == 2
        assert len(some.take([torch.tensor(1) if torch else np.int64(1)])["x"]) == 1
        assert not len(some.take([]).get("x", ()))
        with pytest.raises(IndexError, match="found 18446744073709551615"):
            some.take(np.array([2**64 - 1], np.uint64))
    with pytest.raises(TypeError, match="float"):
        rows[1.5]


def test_ranges_count_from_the_end(tmp_path):
    dataset.write(pa.table({"x": range(9)}), tmp_path / "d", batch_size=4)
    for numbers in (range(-3, 0), range(-3, -1), range(-9, 0), range(-2, 1)):
        for some in ({}, {"rows": (0, 9)}):
            found = dataset.open(tmp_path / "d", **some).take(numbers)["x"]
            assert found.tolist() == [i % 9 for i in numbers]
    with pytest.raises(IndexError):
        dataset.open(tmp_path / "d").take(range(-10, -8))


def test_elements_of_less_than_a_byte(tmp_path):
    """Rows that are gathered are those that are read one by one."""
    kind = pa.struct([("data", pa.binary()), ("shape", pa.list_(pa.int32())),
                      ("dtype", pa.string())])
    for dtype, size in (("F4", 2), ("F6_E3M2", 3)):
        dataset.write(pa.table({"x": pa.array([
            {"data": bytes(range(i, i + size)), "shape": [2, 2], "dtype": dtype}
            for i in range(6)], kind)}), tmp_path / dtype, batch_size=4)
        rows = dataset.open(tmp_path / dtype)
        found = rows.take([5, 0, 3])["x"]
        assert found.shape == (3, 2, 2)
        assert found.tobytes() == b"".join(rows[i]["x"].tobytes() for i in (5, 0, 3))
    if hasattr(torch, "float4_e2m1fn_x2"):
        found = dataset.open(tmp_path / "F4").take([5, 0, 3], "torch")["x"]
        assert found.view(torch.uint8).tolist() == [[[5], [6]], [[0], [1]], [[3], [4]]]


# ── Damaged shards ──

def damaged(path, name, values):
    """The only shard with other values of one tensor; the size stays."""
    shard = next(path.glob("part-*"))
    raw = shard.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    begin, end = json.loads(raw[8:8 + length])[name]["data_offsets"]
    data = values.tobytes()
    assert len(data) == end - begin
    shard.write_bytes(raw[:8 + length + begin] + data + raw[8 + length + end:])


@pytest.mark.parametrize("ends", [
    [0, 3, 2, 4], [1, 2, 3, 4], [0, 1, 2, 3], [0, -1, 2, 4], [0, 2**62, 3, 4], [0, 5, 5, 5],
    [-2**63, 1, 2, 4]])
@pytest.mark.parametrize("values", [["a", "bc", "d"], [[1], [2, 3], [4]]])
def test_offsets_that_are_wrong(tmp_path, ends, values):
    path = tmp_path / "d"
    dataset.write(pa.table({"c": values}), path, batch_size=3)
    damaged(path, "c.offsets", np.array(ends, "<i8"))
    told = dataset.verify(path)
    assert not told["ok"] and "c.offsets" in told["findings"][0]["message"]
    for read in (lambda rows: rows[0], lambda rows: rows.take([2, 0]), lambda rows: rows[0:2],
                 lambda rows: next(iter(rows.batches()))):
        with dataset.open(path) as rows, pytest.raises(SafetensorError) as caught:
            read(rows)
        assert caught.value.code == "dataset_shard" and "c.offsets" in str(caught.value)


def test_nulls_and_text_that_are_wrong(tmp_path):
    path = tmp_path / "d"
    dataset.write(pa.table({"c": ["a", None, "é"]}), path, batch_size=3)
    damaged(path, "c", np.array([97, 0xc3, 97], np.uint8))
    assert dataset.verify(path)["ok"] and not dataset.verify(path, deep=True)["ok"]
    with dataset.open(path) as rows, pytest.raises(UnicodeDecodeError):
        rows[2]
    damaged(path, "c.valid", np.array([1, 2, 1], np.uint8))
    assert not dataset.verify(path)["ok"]
    with dataset.open(path) as rows, pytest.raises(SafetensorError, match="c.valid"):
        rows[0]


def renamed(path, old, new):
    shard = next(path.glob("part-*"))
    raw = shard.read_bytes()
    assert len(old) == len(new) and raw.count(old) == 1
    shard.write_bytes(raw.replace(old, new))


@pytest.mark.parametrize("old, new", [
    (b'"c.offsets"', b'"c.offsetz"'), (b'"I64","shape":[4]', b'"F64","shape":[4]'),
    (b'"U8","shape":[4]', b'"I8","shape":[4]')])
def test_tensors_that_are_missing_or_others(tmp_path, old, new):
    path = tmp_path / "d"
    dataset.write(pa.table({"c": ["a", "bc", "d"]}), path, batch_size=3)
    renamed(path, old, new)
    assert not dataset.verify(path)["ok"]
    with dataset.open(path) as rows, pytest.raises(SafetensorError) as caught:
        rows[0]
    assert caught.value.code == "dataset_shard"


@pytest.mark.parametrize("facts", [
    {"encoding": "utf-8"}, {"encoding": "list", "shape": [2]}, {"dtype": "I8"}, {"dtype": None},
    {"nullable": 1}])
def test_manifests_that_are_wrong(tmp_path, facts):
    path = tmp_path / "d"
    dataset.write(pa.table({"c": ["a", "bc", "d"]}), path, batch_size=3)
    manifest = json.loads((path / "dataset_manifest.json").read_text())
    manifest["columns"]["c"].update(facts)
    (path / "dataset_manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SafetensorError) as caught:
        dataset.open(path)
    assert caught.value.code == "manifest_type"


def test_rows_of_unlike_shards(tmp_path):
    """Each shard is read as it is; one array of both would be numbers that are in neither."""
    one = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    for other in (one.astype(np.float32), one.reshape(3, 4), one.astype(np.int64)):
        for name, rows in (("a", one), ("b", other)):
            safetensors.numpy.save_file({"c": rows}, tmp_path / (name + ".safetensors"))
        with dataset.open(tmp_path, use_manifest=False, mode="batch") as rows:
            assert (rows[4]["c"] == other[1]).all() and rows[4]["c"].dtype == other.dtype
            assert (rows.take(range(3, 6))["c"] == other).all()
            with pytest.raises(ValueError, match="b.safetensors: c: expected rows of I32 .2, 2. as "):
                rows.take([0, 4])
