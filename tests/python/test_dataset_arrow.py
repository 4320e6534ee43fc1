"""Datasets as Arrow: random tables of all types come back to the bit; names that collide, lengths
that overflow and damaged shards are errors."""
import json
import pickle
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
import safetensors.numpy

from arrow_tables import a_table, same_table
from libsafetensors import SafetensorError, dataset
from libsafetensors.dataset import Column
from libsafetensors.dataset._arrow import ArrowRows

try:
    import torch
    from libsafetensors.dataset import TorchBatches
except ImportError:
    torch = None
FRAMEWORKS = ("numpy", "torch") if torch else ("numpy",)
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")



def written(tmp_path, table, **options):
    dataset.write(table, tmp_path / "d", mode="overwrite", sync=False,
                  **{"batch_size": 4, "keep_old": 0, **options})
    return dataset.open(tmp_path / "d")


@pytest.mark.parametrize("seed", range(40))
def test_any_table_comes_back(tmp_path, seed):
    table, rng = a_table(seed), random.Random(seed)
    with written(tmp_path, table, batch_size=rng.choice([1, 5, 16, 1000])) as rows:
        same_table(table, rows.to_arrow())
        same_table(table, pa.table(rows))
        told = dataset.verify(tmp_path / "d", deep=True)
        assert told["ok"], told["findings"]
        order = rng.choices(range(len(table)), k=2 * len(table))
        taken, single = rows.take(order), [rows[i] for i in order]
        for name in rows.columns if order else ():
            for i, row in enumerate(single):
                assert str(taken[name][i]) == str(row[name]), name
        again = tmp_path / "again"
        if len(table):
            dataset.write(rows, again, batch_size=7)
            with dataset.open(again) as copied:
                same_table(table, copied.to_arrow())


def test_rows_and_columns_of_arrow(tmp_path):
    table = pa.table({"n": range(20), "s": [{"a": i, "b": str(i)} for i in range(20)]})
    with written(tmp_path, table, batch_size=8) as rows:
        assert rows.columns == ["n", "s.a", "s.b"] and rows[3]["s.b"] == "3"
        assert rows.to_arrow(["s.b", "n"]).to_pylist()[5] == {"s.b": "5", "n": 5}
        found = list(rows.arrow_batches(["n"], rows=range(5, 18), size=4))
        assert [len(one) for one in found] == [3, 4, 4, 2]
        assert pa.Table.from_batches(found)["n"].to_pylist() == list(range(5, 18))
        assert rows.to_arrow(()).num_columns == 0
        with pytest.raises(KeyError, match="s.c"):
            rows.to_arrow(["s.c"])
        for wrong in (range(0, 21), range(0, 4, 2)):
            with pytest.raises(ValueError, match="rows"):
                rows.arrow_batches(rows=wrong)
        with pytest.raises(ValueError, match="size"):
            rows.arrow_batches(size=0)
    with dataset.open(tmp_path / "d", columns="s.a,n", rows=(5, 18)) as fewer:
        assert fewer.to_arrow().to_pylist()[0] == {"n": 5, "s.a": 5} and len(fewer) == 13
        assert pa.table(fewer)["n"].to_pylist() == list(range(5, 18))
        some = list(fewer.arrow_batches("n", rows=range(1, 6)))
        assert pa.Table.from_batches(some)["n"].to_pylist() == list(range(6, 11))
        with pytest.raises(ValueError, match="rows"):
            fewer.arrow_batches(rows=range(0, 14))


def test_engines(tmp_path):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    table = pa.table({"n": [1, None, 3], "t": ["a", None, ""], "l": [[1], [], None],
                      "s": [{"a": [1.5], "b": None}, None, {"a": [], "b": "x"}],
                      "at": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
                      "d": pa.array([1, None, 3]).cast(pa.decimal128(21, 2))})
    with written(tmp_path, table, batch_size=2) as ds:
        assert polars.DataFrame(ds).equals(polars.DataFrame(table))
        assert duckdb.sql("select s.b, n from ds where n > 1 order by n").fetchall() == [("x", 3)]
        assert pa.RecordBatchReader.from_stream(ds).read_all().equals(table)


def test_dtypes_that_arrow_lacks(tmp_path):
    table = pa.table({"x": pa.array([1.5, 2.0], pa.float32())})
    with written(tmp_path, table, dtype="BF16") as rows:
        assert rows.to_arrow()["x"].to_pylist() == [1.5, 2.0]
    with written(tmp_path, table, dtype="F8_E8M0") as rows:
        with pytest.raises(ValueError, match="x: Arrow has no type for F8_E8M0"):
            rows.to_arrow()
    with written(tmp_path, pa.table({"at": pa.array([1, 2], pa.timestamp("s"))}),
                 dtype="F64") as rows:
        assert rows.to_arrow()["at"].to_pylist() == [1.0, 2.0]


def test_names_as_arrow(tmp_path):
    table = pa.table({"k": ["b", "a__x", "c", "d"], "x": [[1, 2], [3], [], [5, 6, 7]],
                      "y": pa.array([0.5, 1.5, 2.5, 3.5], pa.float32())})
    dataset.write(table, tmp_path / "kv", name_col="k", dtype={"x": "BF16"})
    with dataset.open(tmp_path / "kv") as rows:
        found = pa.table(rows)
        assert found.column_names == ["k", "x", "y"] and len(found) == 4
        row = found.filter(pc.field("k") == "d").to_pylist()[0]
        assert row["x"] == {"data": bytes.fromhex("a040c040e040"), "shape": [3], "dtype": "BF16"}
        assert row["y"] == {"data": np.float32(3.5).tobytes(), "shape": [], "dtype": "F32"}
        assert found.equals(pa.Table.from_batches(list(rows.arrow_batches(size=1))))
        assert rows.to_arrow("y,k").column_names == ["y", "k"]
        assert rows.scanner(["y"], rows=range(1, 3)).to_table() == found.slice(1, 2).select(["y"])
        assert rows.scanner([]).count_rows() == 4
        with pytest.raises(KeyError, match="z"):
            rows.to_arrow("z")
        # What is read is what write takes: the same tensors again.
        dataset.write(rows, tmp_path / "again", name_col="k")
        with dataset.open(tmp_path / "again") as again:
            assert pa.table(again).equals(found)
            assert again["d"]["x"].tolist() == [5, 6, 7]
    with dataset.open(tmp_path / "kv", keys=["c__x", "d__y"]) as rows:
        assert [(one["k"], one["x"] is None, one["y"] is None)
                for one in pa.table(rows).to_pylist()] == [("c", False, True), ("d", True, False)]
    dataset.write(pa.table({"k": ["b"], "x": [[9]], "y": pa.array([9], pa.float32())}),
                  tmp_path / "kv", mode="append", name_col="k", dtype={"x": "BF16"},
                  duplicatesStrategy="lastWin")
    with dataset.open(tmp_path / "kv") as rows:
        assert sorted(pa.table(rows)["k"].to_pylist()) == ["a__x", "b", "c", "d"]
    with dataset.open(tmp_path / "kv", rows=(1, 3)) as rows:
        assert len(pa.table(rows)) == 2


def opened_tensors(rows, monkeypatch):
    """Names of the columns that are read from now on."""
    read = set()
    column = ArrowRows.column

    def spied(self, shard, name, *args):
        read.add(name)
        return column(self, shard, name, *args)
    monkeypatch.setattr(ArrowRows, "column", spied)
    return read


@pytest.mark.parametrize("values", [["a", None], ["a" * 13, None], ["a" * 13, "b" * 40_000]])
def test_views_of_text(tmp_path, values):
    """Values of up to 12 bytes lie in the view itself, others in one more buffer."""
    table = pa.table({"text": pa.array(values, pa.string_view()), "bytes": pa.array(
        [value and value.encode() for value in values], pa.binary_view())})
    dataset.write(table, tmp_path / "d", batch_size=2)
    assert pa.table(dataset.open(tmp_path / "d")).equals(table)


def test_scanner(tmp_path, monkeypatch):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    table = pa.table({"n": range(20), "caption": [None if i % 3 == 0 else "c%d" % i
                                                  for i in range(20)],
                      "a.b\"": [[float(i)] * 3 for i in range(20)], "nn": range(20, 40),
                      "s": [{"n": i, "t": "q"} for i in range(20)]})
    field = pc.field
    with written(tmp_path, table, batch_size=6) as rows:
        read = opened_tensors(rows, monkeypatch)
        for columns, used in ((["n"], {"n"}), ("nn, n", {"n", "nn"}), ([], {"n"}),
                              (None, set(table.column_names))):
            read.clear()
            names = [one.strip() for one in columns.split(",")] if columns == "nn, n" else columns
            found = rows.scanner(columns, rows=range(3, 17), batch_size=4)
            wanted = table.slice(3, 14)
            assert found.to_table() == (wanted if names is None else wanted.select(names))
            assert read == used
        read.clear()
        found = rows.scanner({"m": field("n") * 2}, filter=field("caption") == "c4").to_table()
        assert found.to_pylist() == [{"m": 8}] and read == {"n", "caption"}
        read.clear()
        found = rows.scanner(["caption"], filter=field("s", "n") > 17).to_table()
        assert found.to_pylist() == [{"caption": None}, {"caption": "c19"}]
        assert "a.b\"" not in read and "nn" not in read
        for columns in (["nn"], {"nn": field(3) + 0}):  # a number of a column is one among all
            found = rows.scanner(columns, filter=field(0) > 17).to_table()
            assert found.to_pylist() == [{"nn": 38}, {"nn": 39}]
        with pytest.raises(pa.ArrowInvalid):
            rows.scanner(["none"]).to_table()
        with pytest.raises(ValueError, match="rows"):
            rows.scanner(rows=range(0, 21))

        data = pickle.loads(pickle.dumps(rows.to_pyarrow()))
        assert data.schema == table.schema and data.count_rows() == 20
        assert data.count_rows(field("n") > 4) == 15 and data.to_table() == table
        assert data.head(2, columns=["n"]).to_pylist() == [{"n": 0}, {"n": 1}]
        assert data.take([3, 19], columns=["n"])["n"].to_pylist() == [3, 19]
        read.clear()
        assert duckdb.sql("select max(nn) from data where n < 5").fetchall() == [(24,)]
        assert read == {"n", "nn"}
        assert duckdb.sql('select "a.b""" from data where n = 7').fetchall() == [([7.0] * 3,)]
        assert duckdb.sql("select count(*) from data").fetchall() == [(20,)]
        read.clear()
        lazy = polars.scan_pyarrow_dataset(data).filter(polars.col("n") > 18).select("caption")
        assert lazy.collect().to_dicts() == [{"caption": "c19"}] and read == {"n", "caption"}
        assert polars.scan_pyarrow_dataset(data).collect().equals(polars.DataFrame(table))
        # What reads it in another way fails; it does not find it empty.
        for call in (lambda: pads.Scanner.from_dataset(data).to_table(), data.get_fragments,
                     lambda: pads.dataset([data]).to_table(), lambda: data.sort_by("n"),
                     lambda: data.filter(field("n") > 3)):
            with pytest.raises((FileNotFoundError, TypeError), match="scan"):
                call()
    with dataset.open(tmp_path / "d", split="50%:", columns="n") as rows:
        half = rows.to_pyarrow()
        assert duckdb.sql("select min(n), count(*) from half").fetchall() == [(10, 10)]


def test_tensors_are_fixed_shape_tensors(tmp_path):
    made = pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.arange(12, dtype=np.float32).reshape(2, 2, 3))
    table = pa.table({"x": made})
    with written(tmp_path, table) as rows:
        assert rows.to_arrow().equals(table) and rows[1]["x"].shape == (2, 3)


def permuted():
    return pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(0, 2, 1))


def shaped(text):
    """A fixed_shape_tensor of this metadata, which pyarrow would not make."""
    field = pa.field("a", pa.list_(pa.int16(), 4), metadata={
        "ARROW:extension:name": "arrow.fixed_shape_tensor", "ARROW:extension:metadata": text})
    return pa.table([pa.array([[1, 2, 3, 4]] * 2, field.type)], pa.schema([field]))


def wrappers():
    return [lambda one: one, lambda one: pa.ListArray.from_arrays([0, 1, 2], one),
            lambda one: pa.StructArray.from_arrays([one], ["f"]),
            lambda one: pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays([one], ["f"]))]


@pytest.mark.parametrize("wrap", wrappers())
def test_tensors_whose_order_would_be_lost(tmp_path, wrap):
    with pytest.raises(TypeError, match="permuted") as caught:
        dataset.write(pa.table({"a": wrap(permuted())}), tmp_path / "d", batch_size=2)
    assert caught.value.code == "column_type" and not (tmp_path / "d").exists()


@pytest.mark.parametrize("text", ['{"shape":[3,2]}', '{"shape":[]}', "", "{", '{"shape":[-2,-2]}',
                                  '{"shape":[2,2],"permutation":[0]}'])
def test_tensors_of_a_wrong_shape(tmp_path, text):
    class Given:
        def __arrow_c_stream__(self, requested_schema=None):
            return shaped(text).__arrow_c_stream__()
    with pytest.raises(TypeError, match="fixed_shape_tensor"):
        dataset.write(Given(), tmp_path / "d", batch_size=2)


@pytest.mark.parametrize("wrap", wrappers()[1:])
def test_extensions_below_the_top(tmp_path, wrap):
    """They are what the manifest says: bool, and the storage of tensors."""
    of = pa.ExtensionArray.from_storage
    tensors = of(pa.fixed_shape_tensor(pa.int8(), [2, 2]),
                 pa.array([[1, 2, 3, 4], [5, 6, 7, 8]], pa.list_(pa.int8(), 4)))
    truths = of(pa.bool8(), pa.array([0, 2], pa.int8()))
    for given, want in ((tensors, tensors.storage), (truths, pa.array([False, True]))):
        with written(tmp_path, pa.table({"a": wrap(given)})) as rows:
            assert rows.to_arrow()["a"].combine_chunks() == wrap(want)
            assert len([rows[i] for i in range(2)]) == 2
        told = dataset.verify(tmp_path / "d", deep=True)
        assert told["ok"], told["findings"]


# ── Rows ──

NESTED = pa.table({
    "l": pa.array([["a", None], None, []], pa.list_(pa.string())),
    "n": pa.array([[1, None], [2], None], pa.list_(pa.int32())),
    "ll": pa.array([[[1], [2, 3]], [], [[4]]], pa.list_(pa.list_(pa.int16()))),
    "s": [{"a": 1, "b": [{"c": 1.5}]}, None, {"a": None, "b": None}]})


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


@needs_torch
def test_rows_of_nested_columns(tmp_path):
    want = {"l": [["a", None], None, []], "n": [[1, None], [2], None],
            "ll": [[[1], [2, 3]], [], [[4]]], "s.a": [1, None, None],
            "s.b": [[{"c": 1.5}], None, None]}
    with written(tmp_path, NESTED, batch_size=2) as rows:
        assert list(want) == rows.columns
        for numbers in ([0, 1, 2], [2, 0, 2, 1], range(3), [1]):
            for framework in FRAMEWORKS:
                batch = rows.take(numbers, framework)
                for name, values in want.items():
                    assert plain(list(batch[name])) == [values[i] for i in numbers], name
        assert [plain(rows[i]) for i in range(3)] == [
            {name: values[i] for name, values in want.items()} for i in range(3)]
        column = rows[0:2]["ll"]
        assert isinstance(column, Column) and column.nested
        with pytest.raises(TypeError, match="padded"):
            column.padded()
    for collate in ("list", "padded", "nested"):
        batch = next(iter(TorchBatches(tmp_path / "d", 3, shuffle=False, collate=collate)))
        assert plain(batch["n"]) == want["n"] and plain(batch["l"]) == want["l"]
    assert batch["s.a.valid"].tolist() == [True, False, False]


def test_other_readers_see_tensors(tmp_path):
    with written(tmp_path, NESTED, batch_size=3) as rows:
        name = rows.shards[0]["name"]
    seen = safetensors.numpy.load_file(tmp_path / "d" / name)
    assert seen["s.valid"].tolist() == [True, False, True]
    assert seen["s.a"].tolist() == [1, 0, 0] and seen["s.a.valid"].tolist() == [True, False, False]
    assert seen["s.b.item.c"].tolist() == [1.5] and seen["s.b.offsets"].tolist() == [0, 1, 1, 1]
    assert seen["n.offsets"].tolist() == [0, 2, 3, 3] and seen["n.item"].tolist() == [1, 0, 2]
    assert seen["ll.item.offsets"].tolist() == [0, 1, 3, 4] and \
        seen["ll.item.item"].tolist() == [1, 2, 3, 4]
    columns = json.loads((tmp_path / "d" / "dataset_manifest.json").read_text())["columns"]
    assert columns["s"] == {"dtype": None, "shape": None, "encoding": "nested", "nullable": True,
                            "type": "struct<a: int64, b: list<struct<c: double>>>"}


def test_fixed_columns_stay_as_they_are(tmp_path):
    """A shard of them has the tensors that it had before there were types."""
    table = pa.table({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)),
                      "n": pa.array([5, 6], pa.timestamp("ms")),
                      "d": pa.array([1, -1]).cast(pa.decimal128(20, 0))})
    with written(tmp_path, table) as rows:
        name = rows.shards[0]["name"]
    raw = (tmp_path / "d" / name).read_bytes()
    header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
    assert {key: (one["dtype"], one["shape"]) for key, one in header.items()
            if key != "__metadata__"} == {
                "x": ("I16", [2, 2]), "n": ("I64", [2]), "d": ("U8", [2, 16])}
    assert raw.endswith(b"\1" + b"\0" * 15 + b"\xff" * 16)


def test_appends_of_types(tmp_path):
    def add(values, kind, mode="append"):
        return dataset.write(pa.table({"c": pa.array(values, kind)}), tmp_path / "d",
                             batch_size=2, mode=mode)
    add([1, 2], pa.timestamp("us", "UTC"), "error")
    add([3, None], pa.timestamp("us", "UTC"))
    for kind in (pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.int64(), pa.duration("us")):
        with pytest.raises(ValueError, match="timestamp") as caught:
            add([1, 2], kind)
        assert caught.value.code == "dataset_disagrees"
    add(["a"], pa.large_string(), "overwrite")
    made = add(["b"], pa.string())
    assert made["columns"]["c"] == {"dtype": "U8", "shape": None, "encoding": "utf8"}
    nested = pa.list_(pa.list_(pa.int8()))
    add([[[1]], [[1], [2, 3]]], nested, "overwrite")
    add([[[1], [2]], [[3], [4]]], nested)
    for values in ([[[1]], [[1], [2, 3]]], [[[1], [2]]]):
        with pytest.raises(ValueError, match="expected list<list<int8>>.*found large_list<"):
            add(values, pa.large_list(pa.list_(pa.int8())))
    with dataset.open(tmp_path / "d") as rows:
        assert rows.to_arrow()["c"].to_pylist()[2:] == [[[1], [2]], [[3], [4]]]
        assert plain(rows.take([3, 0])["c"][0]) == [[3], [4]]
    add([[[1], [2]], [[3], [4]]], nested, "overwrite")
    with pytest.raises(ValueError, match=r"\[2, 1\] as in the dataset, found \[1, 1\]"):
        add([[[1]], [[1], [2, 3]]], nested)


@pytest.mark.parametrize("kind, values, encoding", [
    (pa.list_(pa.int64()), [[1], [2, 3]], "list"), (pa.list_(pa.int64()), [[1, 2], [2, 3]], None),
    (pa.list_(pa.list_(pa.int64())), [[[1]], [[2, 3], [4]]], "nested"),
    (pa.list_(pa.list_(pa.int64()), 2), [[[1], [2]], [[2, 3], [4]]], "nested")])
@pytest.mark.parametrize("size", [1, 2])
def test_lists_behind_no_rows(tmp_path, kind, values, encoding, size):
    def add(some, mode="append"):
        return dataset.write(pa.table({"x": pa.array(some, kind)}), tmp_path, batch_size=size,
                             mode=mode)
    add([], "error")
    with dataset.open(tmp_path) as rows:
        for framework in FRAMEWORKS:
            assert len(rows.take([], framework)["x"]) == len(rows[0:0]["x"]) == 0
    assert add(values)["columns"]["x"].get("encoding") == encoding
    with dataset.open(tmp_path) as rows:
        assert plain(list(rows.take(range(2))["x"])) == values
    dataset.compact(tmp_path, batch_size=2)
    with dataset.open(tmp_path) as rows:
        assert rows.to_arrow()["x"].to_pylist() == values
    told = dataset.verify(tmp_path, deep=True)
    assert told["ok"], told["findings"]


def test_lists_behind_no_rows_are_of_their_type(tmp_path):
    dataset.write(pa.table({"x": pa.array([], pa.list_(pa.list_(pa.int64())))}), tmp_path, batch_size=2)
    with pytest.raises(ValueError, match="expected list<list<int64>> as in the dataset, found list<int64>"):
        dataset.write(pa.table({"x": [[1], [2, 3]]}), tmp_path, batch_size=2, mode="append")


TYPED = pa.table({
    "i": [1, 2, 3], "s": ["a", "b", "c"], "l": [[1], [2, 3], []],
    "f": pa.array([[1., 2.]] * 3, pa.list_(pa.float32(), 2)),
    "t": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
    "w": pa.array([b"aa"] * 3, pa.binary(2)), "w0": pa.array([b""] * 3, pa.binary(0)),
    "st": [{"a": 1}] * 3, "ll": pa.array([[1], [2], []], pa.list_(pa.timestamp("s")))})


@pytest.mark.parametrize("name, kind", [
    (None, None), ("i", "string"), ("i", "list<float>"), ("i", "double"), ("i", "nothing"),
    ("s", "int64"), ("s", "binary"), ("s", "fixed_shape_tensor"), ("l", "list<float>"),
    ("l", "list<list<int64>>"), ("f", "float"), ("f", "fixed_size_list<float>[3]"),
    ("f", "list<float>[2]"), ("t", "date32[day]"), ("w", "fixed_size_binary[3]"),
    ("st", "string"), ("ll", "list<int32>")])
def test_types_that_do_not_fit(tmp_path, name, kind):
    """verify finds what Arrow refuses."""
    dataset.write(TYPED, tmp_path, batch_size=2)
    path = tmp_path / "dataset_manifest.json"
    manifest = json.loads(path.read_text())
    if name:
        manifest["columns"][name]["type"] = kind
    path.write_text(json.dumps(manifest))
    told = dataset.verify(tmp_path)
    assert told["ok"] == (name is None), told["findings"]


# ── What has no place ──

class Empty:
    """A stream of a schema, without batches."""

    def __init__(self, schema):
        self.reader = pa.RecordBatchReader.from_batches(schema, [])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind, word", [
    (pa.map_(pa.string(), pa.int8()), "map"), (pa.null(), "null"),
    (pa.sparse_union([pa.field("a", pa.int8())]), "union"), (pa.month_day_nano_interval(), "interval"),
    (pa.run_end_encoded(pa.int32(), pa.int8()), "run_end_encoded"), (pa.struct([]), "struct<>"),
    (pa.list_(pa.map_(pa.string(), pa.int8())), r"in c\.item: "),
    (pa.struct([("a", pa.struct([("b", pa.null())]))]), r"in c\.a\.b: ")])
def test_types_that_are_refused(tmp_path, kind, word):
    with pytest.raises(TypeError, match='column "c" .*' + word) as caught:
        dataset.write(Empty(pa.schema([("c", kind)])), tmp_path / "d", batch_size=1)
    assert caught.value.code == "column_type" and not (tmp_path / "d").exists()


@pytest.mark.parametrize("names, kinds", [
    (["a.b", "a"], [pa.int8(), pa.struct([("b", pa.int8())])]),
    (["a", "a.b"], [pa.struct([("b.c", pa.int8())]), pa.struct([("c", pa.int8())])]),
    (["x", "x.offsets"], [pa.list_(pa.int8()), pa.int8()]),
    (["x", "x.valid"], [pa.int8(), pa.int8()]), (["x", "x.item"], [pa.list_(pa.string()), pa.int8()]),
    (["s"], [pa.struct([("valid", pa.bool_())])]),
    (["s"], [pa.struct([("a", pa.int8()), ("a", pa.int8())])]), (["a", "a"], [pa.int8()] * 2)])
def test_names_that_collide(tmp_path, names, kinds):
    table = pa.Table.from_arrays([pa.nulls(1, kind) for kind in kinds], names)
    with pytest.raises(TypeError, match="column") as caught:
        dataset.write(table, tmp_path / "d", batch_size=1)
    assert caught.value.code == "column_type"


def test_names_that_do_not(tmp_path):
    table = pa.table({"a.c": [1], "a": [{"b": 2, "offsets": 3}], "x.item": [4], "x": [5],
                      "a.b.c": ["t"], ".": [[None, 1]], "": [{"b": 1}]})
    with written(tmp_path, table) as rows:
        assert rows.to_arrow().equals(table)
        assert dataset.verify(tmp_path / "d", deep=True)["ok"]


def test_names_that_are_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: [1, 2], 1: ["a", "b"]})
    with written(tmp_path, frame) as rows:
        assert rows.columns == ["0", "1"] and rows[1]["1"] == "b"


def test_text_that_is_not_utf8(tmp_path):
    text = pa.Array.from_buffers(pa.string(), 1, [
        None, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"\xed\xa0\x80")])
    for column in (text, pa.StructArray.from_arrays([text], ["a"]),
                   pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), text)):
        with pytest.raises(ValueError, match=r'"c.*row 0: expected text in UTF-8'):
            written(tmp_path, pa.table({"c": column}))


@pytest.mark.parametrize("old, new", [
    ("é".encode(), b"\xff\xff"), ("é".encode(), b"\xa9z"),
    (np.array([0, 3, 4], "<i8").tobytes(), np.array([0, 2, 4], "<i8").tobytes())])
def test_text_of_a_shard_that_is_not_utf8(tmp_path, old, new):
    written(tmp_path, pa.table({"c": ["aé", "b", "", "ß"]})).close()
    shard, = (tmp_path / "d").glob("*.safetensors")
    raw = shard.read_bytes()
    assert raw.count(old) == 1
    with dataset.open(tmp_path / "d") as rows:
        assert rows.to_arrow()["c"].to_pylist() == ["aé", "b", "", "ß"]
    shard.write_bytes(raw.replace(old, new))
    with dataset.open(tmp_path / "d") as rows, \
            pytest.raises(SafetensorError, match="c: expected text in UTF-8") as caught:
        rows.to_arrow()
    assert caught.value.code == "dataset_shard"


def sparse(path, header, size):
    """A shard with nothing but zeros, which take no room."""
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + size)
    return 8 + len(raw) + size


@pytest.mark.long
def test_text_of_over_2_gib(tmp_path):
    """One row of it is refused as string, and is right as large_string."""
    size = 2 ** 31
    for kind in (pa.string(), pa.large_string()):
        written(tmp_path, pa.table({"c": pa.array(["a", "b"], kind)})).close()
        shard = next((tmp_path / "d").glob("part-*"))
        header = {"__metadata__": {"libsafetensors.dataset": "1", "mode": "batch", "samples": "2"},
                  "c.offsets": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]},
                  "c": {"dtype": "U8", "shape": [size], "data_offsets": [24, 24 + size]}}
        told = sparse(shard, header, 24 + size)
        ends = np.array([0, 1, size], "<i8").tobytes()
        with shard.open("r+b") as file:
            start = int.from_bytes(file.read(8), "little")
            file.seek(8 + start)
            file.write(ends)
        manifest = tmp_path / "d" / "dataset_manifest.json"
        facts = json.loads(manifest.read_text())
        facts["shards"][0].update(bytes=told, sha256=None)
        facts["total_bytes"] = told
        manifest.write_text(json.dumps(facts))
        with dataset.open(tmp_path / "d") as rows:
            batches = rows.arrow_batches()
            if kind == pa.large_string():
                assert next(batches)["c"][1].as_buffer().size == size - 1
                continue
            assert len(next(batches)) == 1  # the rows before
            with dataset.open(tmp_path / "d") as rows, pytest.raises(ValueError, match="c: .*2147483647"):
                header["c"]["shape"] = [size]
                list(_larger(tmp_path / "d", shard, rows))


def _larger(folder, shard, rows):
    """The second row is of 2 GiB."""
    with shard.open("r+b") as file:
        start = int.from_bytes(file.read(8), "little")
        file.seek(8 + start)
        file.write(np.array([0, 0, 2 ** 31], "<i8").tobytes())
    return rows.arrow_batches()


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


@pytest.mark.parametrize("name, values", [
    ("l.offsets", np.array([0, 2, 1, 2], "<i8")), ("l.offsets", np.array([0, 2, 2, 3], "<i8")),
    ("l.item.offsets", np.array([0, 1, 2], "<i8")), ("l.item.valid", np.array([1, 2], "u1")),
    ("ll.offsets", np.array([0, 2, 2, 2**62], "<i8")), ("s.valid", np.array([1, 7, 1], "u1")),
    ("ll.item.offsets", np.array([1, 1, 3, 4], "<i8"))])
def test_nested_tensors_that_are_wrong(tmp_path, name, values):
    written(tmp_path, NESTED, batch_size=3).close()
    damaged(tmp_path / "d", name, values)
    told = dataset.verify(tmp_path / "d")
    assert not told["ok"] and name.split(".")[0] in told["findings"][0]["message"]
    reads = [lambda rows: rows.to_arrow()]
    if name != "s.valid":  # which rows do not read
        reads += [lambda rows: rows[0], lambda rows: rows.take([2, 0], FRAMEWORKS[-1])]
    for read in reads:
        with dataset.open(tmp_path / "d") as rows, pytest.raises(SafetensorError) as caught:
            read(rows)
        assert caught.value.code == "dataset_shard"


@pytest.mark.parametrize("facts", [
    {"type": "struct<a: int9>"}, {"type": None}, {"type": "list<"}, {"dtype": "I8"},
    {"encoding": "list"}, {"type": 7}, {"type": "list<" * 9999}, {"type": "struct<a: int8> "},
    {"type": "list<" * 70 + "int8" + ">" * 70}])
def test_manifests_that_are_wrong(tmp_path, facts):
    written(tmp_path, NESTED).close()
    path = tmp_path / "d" / "dataset_manifest.json"
    manifest = json.loads(path.read_text())
    manifest["columns"]["l"].update(facts)
    path.write_text(json.dumps(manifest))
    with pytest.raises(SafetensorError) as caught:
        dataset.open(tmp_path / "d")
    assert caught.value.code == "manifest_type"


@needs_torch
def test_torch_of_types(tmp_path):
    table = pa.table({"at": pa.array([1, None], pa.timestamp("ns")),
                      "id": pa.array([b"ab", b"cd"], pa.binary(2))})
    with written(tmp_path, table) as rows:
        batch = rows.take([1, 0], "torch")
        assert batch["id"].tolist() == [[99, 100], [97, 98]] and batch["id"].dtype == torch.uint8
        assert list(batch["at"])[0] is None and list(batch["at"])[1] == 1
