"""What is written is what was given, and the official package opens it."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors
from safetensors import safe_open

import libsafetensors
from libsafetensors import DTYPES, SafetensorError, dataset

pa = pytest.importorskip("pyarrow")

TENSOR = pa.struct([("data", pa.binary()), ("shape", pa.list_(pa.int32())),
                    ("dtype", pa.string())])


def shards(folder):
    return sorted(pathlib.Path(folder).glob("part-*.safetensors"))


def official(path):
    """name -> (dtype, shape, bytes), as the official package reads it."""
    return {key: (facts["dtype"], list(facts["shape"]), bytes(facts["data"]))
            for key, facts in safetensors.deserialize(path.read_bytes())}


def only(folder, column="c"):
    """Bytes of a column over all shards, and its dtype."""
    found = [official(path)[column] for path in shards(folder)]
    assert len({one[0] for one in found}) == 1
    return b"".join(one[2] for one in found), found[0][0]


@pytest.fixture(scope="module")
def manifest_schema(root):
    import jsonschema
    text = (root / "docs/dataset_manifest.schema.json").read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


@pytest.fixture
def write(tmp_path, manifest_schema):
    """Writes to tmp_path / "d" and looks at what every dataset must be."""
    def call(table, **options):
        made = dataset.write(table, tmp_path / "d", **{"keep_old": 0, **options})
        text = (tmp_path / "d/dataset_manifest.json").read_text()
        assert json.loads(text) == made
        assert made["total_bytes"] == sum(path.stat().st_size for path in shards(tmp_path / "d"))
        assert [one["shard_path"] for one in made["shards"]] == \
            [path.name for path in shards(tmp_path / "d")]
        for path in shards(tmp_path / "d"):
            official(path)
        assert [str(one) for one in manifest_schema.iter_errors(made)] == []
        assert dataset.verify(tmp_path / "d", deep=True)["findings"] == []
        return made
    return call


# ── Values ──

@pytest.mark.parametrize("kind, dtype", [
    ("bool", "BOOL"), ("int8", "I8"), ("uint8", "U8"), ("int16", "I16"), ("uint16", "U16"),
    ("int32", "I32"), ("uint32", "U32"), ("int64", "I64"), ("uint64", "U64"),
    ("float16", "F16"), ("float32", "F32"), ("float64", "F64")])
def test_each_arrow_type_keeps_its_own(write, tmp_path, kind, dtype):
    values = np.arange(5).astype(kind)
    write(pa.table({"c": values}), batch_size=5)
    assert only(tmp_path / "d") == (values.tobytes(), dtype)
    with safe_open(shards(tmp_path / "d")[0], "np") as file:
        np.testing.assert_array_equal(file.get_tensor("c"), values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_as_a_tensor_struct(write, tmp_path, dtype):
    bits = DTYPES[dtype][0]
    shape = [2, 8]
    rows = [bytes((i * 7 + j) & (1 if dtype == "BOOL" else 255)
                  for j in range(16 * bits // 8)) for i in range(3)]
    table = pa.table({"c": pa.array([{"data": row, "shape": shape, "dtype": dtype}
                                     for row in rows], TENSOR)})
    made = write(table, batch_size=3)
    assert made["columns"]["c"] == {"dtype": dtype, "shape": shape}
    assert official(shards(tmp_path / "d")[0]) == {"c": (dtype, [3, 2, 8], b"".join(rows))}


def test_integers_that_floats_cannot_hold(write, tmp_path):
    values = np.array([2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63, 1234567890123456789], np.int64)
    write(pa.table({"c": values, "a": [[value] for value in values.tolist()]}), batch_size=2)
    assert only(tmp_path / "d") == (values.tobytes(), "I64")
    assert only(tmp_path / "d", "a") == (values.tobytes(), "I64")
    assert [int(row["c"]) for row in dataset.open(tmp_path / "d")] == values.tolist()


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_all_patterns_of_16_bits(write, tmp_path, dtype):
    """Through F32, which holds each of them."""
    kind = np.float16 if dtype == "F16" else ml_dtypes.bfloat16
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = bits.view(kind).astype(np.float32)
    write(pa.table({"c": wide}), batch_size=1 << 16, dtype=dtype.lower())
    raw, found = only(tmp_path / "d")
    assert found == dtype
    got = np.frombuffer(raw, np.uint16)
    numbers = ~np.isnan(wide)
    np.testing.assert_array_equal(got[numbers], bits[numbers])
    assert np.isnan(got[~numbers].view(kind).astype(np.float32)).all()


def test_rounding(write, tmp_path):
    values = np.linspace(-3, 3, 1001, dtype=np.float32)
    write(pa.table({"c": values}), batch_size=2000, dtype="BF16")
    assert only(tmp_path / "d")[0] == values.astype(ml_dtypes.bfloat16).tobytes()
    write(pa.table({"c": values}), mode="overwrite", batch_size=2000, dtype="BF16",
          rounding="truncate")
    assert only(tmp_path / "d")[0] == (values.view(np.uint32) >> 16).astype("<u2").tobytes()


def test_a_value_without_a_place(tmp_path):
    with pytest.raises(ValueError, match='"c".*row 2') as caught:
        dataset.write(pa.table({"c": [1, 2, 300]}), tmp_path / "d", batch_size=4, dtype="U8")
    assert caught.value.code == "row_value"
    assert list(tmp_path.glob("d/[!.]*")) == []


@pytest.mark.parametrize("values, dtype, found", [
    ([1.0, 2.0, 2.5], "I32", "2.5"), ([1.0, 2.0, float("nan")], "I64", "NaN"),
    ([1.0, 2.0, float("inf")], "U8", "inf"), ([1.0, 2.0, -1.0], "U16", "-1"),
    ([1.0, 2.0, 3e9], "I32", "3e+09"), ([1.0, 0.0, 2.0], "BOOL", "2"),
    ([1.0, float("inf"), 1e6], "F16", "1000000"), ([1.0, 448.0, 500.0], "F8_E4M3", "500"),
    ([1.0, 2.0, 0.0], "F8_E8M0", "0"), ([True, True, False], "F8_E8M0", "0")])
@pytest.mark.parametrize("rows", [list, lambda values: [[value] for value in values]])
@pytest.mark.parametrize("mode", [{"batch_size": 2}, {"name_col": "k"}])
def test_values_that_do_not_fit(tmp_path, values, dtype, found, rows, mode):
    table = pa.table({"k": ["a", "b", "c"], "x": rows(values)})
    with pytest.raises(ValueError, match=r'"x", row 2: .*found %s ' % re.escape(found)) as caught:
        dataset.write(table, tmp_path / "d", columns="x", dtype=dtype, **mode)
    assert caught.value.code == "row_value"
    assert list(tmp_path.glob("d/[!.]*")) == []


@pytest.mark.parametrize("one", [1.0, True, [1.0]])
def test_nulls_and_padding_of_a_dtype_without_zero(write, tmp_path, one):
    write(pa.table({"c": [None, one, one, None, one]}), batch_size=4, dtype="F8_E8M0",
          tail_strategy="pad")
    if not isinstance(one, list):
        assert only(tmp_path / "d") == (bytes([0, 127, 127, 0, 127, 0, 0, 0]), "F8_E8M0")
    with dataset.open(tmp_path / "d") as rows:
        assert [row["c"] is None for row in rows] == [True, False, False, True, False]


def test_whole_numbers_become_integers(write, tmp_path):
    write(pa.table({"c": [1.0, -0.0, -3e9]}), batch_size=3, dtype="I64", rounding="truncate")
    assert only(tmp_path / "d") == (np.array([1, 0, -3 * 10**9], np.int64).tobytes(), "I64")


def test_too_large_is_infinite_for_the_connector(write, tmp_path):
    """In F16, and only with rounding=truncate."""
    write(pa.table({"c": np.float32([65535.9, 65536, -1e9])}), batch_size=3, dtype="F16",
          rounding="truncate")
    assert only(tmp_path / "d")[0] == np.float16([65504, np.inf, -np.inf]).tobytes()


# ── docs/dataset.md ──

def test_ten_lines(tmp_path, root):
    pytest.importorskip("torch")
    section = (root / "docs" / "dataset.md").read_text().split("\n## A dataset in ten lines\n")[1]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section.split("\n## ")[0], re.M | re.S)
    assert [kind for kind, _ in blocks] == ["python", "sh"]
    assert sum(bool(line) for _, text in blocks for line in text.splitlines()) == 10
    done = subprocess.run([sys.executable, "-c", blocks[0][1]], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for words in ("array([6.       , 4.6666665], dtype=float32)", "'label': array(42)", "[0 1 2]"):
        assert words in done.stdout
    command, words = shlex.split(os.environ.get("SFT_COMMAND", "")), shlex.split(blocks[1][1])
    assert words[0] == "safetensors"
    if not command:
        pytest.skip("SFT_COMMAND is not set")
    done = subprocess.run(command + words[1:], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and ": intact: " in done.stdout


# ── Shapes ──

def test_empty(write, tmp_path):
    made = write(pa.table({"c": pa.array([], pa.float32())}), batch_size=4)
    assert (made["total_samples"], made["shards"]) == (0, [])
    assert len(dataset.open(tmp_path / "d")) == 0


def test_one_row(write, tmp_path):
    write(pa.table({"c": [1.5]}), batch_size=100)
    assert official(shards(tmp_path / "d")[0])["c"][1] == [1]


def test_no_elements(write, tmp_path):
    write(pa.table({"c": pa.array([[], []], pa.list_(pa.int32()))}), batch_size=2)
    assert official(shards(tmp_path / "d")[0])["c"] == ("I32", [2, 0], b"")
    assert dataset.open(tmp_path / "d")[0:2]["c"].shape == (2, 0)
    assert dataset.open(tmp_path / "d").take([1, 0])["c"].shape == (2, 0)


@pytest.mark.parametrize("table, row, code", [
    ({"c": [[[1], [2]], [[1, 2]], [[1]]]}, 2, "row_shape"),
    ({"c": [[[1], [2, 3]], [[1, 2]]]}, 0, "row_shape"),
    ({"c": [[1, 2], [None, 1]]}, 1, "row_null")])
def test_rows_that_are_not_alike(tmp_path, table, row, code):
    """With shapes they have to be."""
    with pytest.raises(ValueError, match='"c".*row %d' % row) as caught:
        dataset.write(pa.table(table), tmp_path / "d", batch_size=4, shapes={"c": [2]})
    assert caught.value.code == code
    assert list(tmp_path.glob("d/[!.]*")) == []


def test_tensors_that_are_not_alike(tmp_path):
    def column(*rows):
        return pa.table({"c": pa.array([dict(zip(("data", "shape", "dtype"), row))
                                        for row in rows], TENSOR)})
    good = (b"\0" * 4, [1], "F32")
    for bad in ((b"\0" * 4, [1], "I32"), (b"\0" * 8, [2], "F32"), (b"\0" * 5, [1], "F32"),
                (b"\0" * 4, [-1], "F32"), (None, [1], "F32"), (b"\0" * 4, [1], "F33")):
        with pytest.raises(ValueError, match='"c".*row 1'):
            dataset.write(column(good, bad), tmp_path / "d", batch_size=4)


def test_a_hundred_columns(write, tmp_path):
    table = {"column%03d" % i: np.arange(7) * i for i in range(100)}
    made = write(pa.table(table), batch_size=3)
    assert len(made["columns"]) == 100
    with dataset.open(tmp_path / "d") as found:
        whole = found[0:7]
        assert all((whole[key] == values).all() for key, values in table.items())
    some = write(pa.table(table), mode="overwrite", batch_size=3,
                 columns=["column007", "column050"])
    assert list(some["columns"]) == ["column007", "column050"]


def nested(depth, seed=0):
    """Rows of shape [2, 3, 2][:depth] as Arrow arrays in all list types, and their values."""
    values = (np.arange(20 * int(np.prod([2, 3, 2][:depth]))) + seed).astype(np.int32)
    flat = pa.array(values)
    def wrap(array, size, kind):
        if kind == "fixed":
            return pa.FixedSizeListArray.from_arrays(array, size)
        offsets = np.arange(0, len(array) + 1, size)
        if kind == "large":
            return pa.LargeListArray.from_arrays(pa.array(offsets), array)
        if kind == "view":
            return pa.ListViewArray.from_arrays(pa.array(offsets[:-1].astype(np.int32)),
                                                pa.array(np.full(len(offsets) - 1, size,
                                                                 np.int32)), array)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), array)
    return values.reshape(20, *[2, 3, 2][:depth]), flat, wrap


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "view"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_slices_at_every_level(write, tmp_path, kind, depth):
    """Parents and children each begin somewhere in the middle of their buffers."""
    values, flat, wrap = nested(depth)
    array = pa.concat_arrays([pa.array([-1, -1, -1], pa.int32()), flat]).slice(3)
    for size in reversed([2, 3, 2][:depth]):
        array = wrap(array, size, kind)
        junk = pa.concat_arrays([array.slice(0, 2), array])
        array = junk.slice(2)
    batch = pa.RecordBatch.from_arrays([array.slice(4, 13)], ["c"])
    write(batch.slice(1, 11), batch_size=4)
    assert only(tmp_path / "d")[0] == values[5:16].tobytes()


def test_masks_above_what_is_there(tmp_path, write):
    """A null struct hides its children; a slice without it does not."""
    rows = pa.array([{"data": b"ab", "shape": [2], "dtype": "U8"}, None,
                     {"data": b"cd", "shape": [2], "dtype": "U8"}], TENSOR)
    with pytest.raises(ValueError, match="row 1"):
        dataset.write(pa.table({"c": rows}), tmp_path / "d", batch_size=3)
    write(pa.table({"c": rows.slice(2)}), batch_size=3)
    assert only(tmp_path / "d") == (b"cd", "U8")


def test_shapes_and_tensors_of_arrow(write, tmp_path):
    values = np.arange(24, dtype=np.float32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(values), 6)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2, 3]), flat)
    write(pa.table({"a": flat, "b": tensor}), batch_size=4, shapes={"a": [3, 2]})
    found = official(shards(tmp_path / "d")[0])
    assert (found["a"][1], found["b"][1]) == ([4, 3, 2], [4, 2, 3])
    with pytest.raises(TypeError, match="shape"):
        dataset.write(pa.table({"a": flat}), tmp_path / "e", batch_size=4, shapes={"a": [5]})


@pytest.mark.parametrize("tail, rows", [("write", [4, 4, 2]), ("drop", [4, 4]), ("pad", [4] * 3)])
def test_tails(write, tmp_path, tail, rows):
    made = write(pa.table({"c": range(10)}), batch_size=4, tail_strategy=tail)
    assert [one["samples_count"] for one in made["shards"]] == rows
    seen = 8 if tail == "drop" else 10
    assert made["total_valid_samples"] == seen == len(dataset.open(tmp_path / "d"))
    assert [int(row["c"]) for row in dataset.open(tmp_path / "d")] == list(range(seen))


def test_dropped_tails_are_reported(write, tmp_path):
    options = {"batch_size": 4, "tail_strategy": "drop"}
    assert write(pa.table({"c": range(10)}), **options)["dropped_samples"] == 2
    assert write(pa.table({"c": range(3)}), mode="append", **options)["dropped_samples"] == 5
    assert dataset.info(tmp_path / "d")["dropped_samples"] == 5
    made = write(pa.table({"c": range(3)}), mode="overwrite", **options)
    assert (made["dropped_samples"], made["shards"], made["total_samples"]) == (3, [], 0)
    assert "dropped_samples" not in write(pa.table({"c": range(8)}), mode="overwrite", **options)


def test_an_index_without_rows(write, tmp_path):
    table = pa.table({"k": ["a", "b"], "v": [1, 2]})
    write(table[:0], name_col="k", generate_index=True)
    write(table, name_col="k", mode="append")
    made = write(table[:0], name_col="k", mode="append")
    assert made["index"] and dataset.open(tmp_path / "d")["b"]["v"] == 2
    told = dataset.verify(tmp_path / "d", deep=True)
    assert told["ok"] and not told["orphans"]


def test_verify_looks_at_the_index(write, tmp_path):
    import pyarrow.parquet as pq
    table = pa.table({"k": ["a", "b", "c"], "v": [1, 2, 3]})
    path = tmp_path / "d/_tensor_index.parquet"
    write(table, name_col="k", generate_index=True)
    old = path.read_bytes()
    write(table, name_col="k", mode="overwrite", generate_index=True)
    rows = pq.read_table(path)
    for change, message in [
            (lambda: path.write_bytes(old[:-9]), "expected a Parquet file"),
            (lambda: pq.write_table(rows[1:], path), "a row for each of 3 tensors, found 2"),
            (lambda: pq.write_table(rows.drop_columns("shape"), path), "the columns tensor_key"),
            (path.unlink, "the index that the manifest names, found none")]:
        change()
        told = dataset.verify(tmp_path / "d")
        assert [one["shard"] for one in told["findings"]] == [path.name] and not told["ok"]
        assert message in told["findings"][0]["message"]
    path.write_bytes(old)
    told = dataset.verify(tmp_path / "d")
    assert told["ok"] and "of another commit" in told["orphans"][0]["message"]
    pq.write_table(rows, path, compression="zstd", row_group_size=1, data_page_version="2.0")
    assert dataset.verify(tmp_path / "d")["ok"]


# ── KV ──

def test_rows_by_name(write, tmp_path):
    table = pa.table({"key": ["b", "a", "ü/x", ""], "v": [[1.0], [2.0, 3.0], [], [4.0]],
                      "n": [1, 2, 3, 4]})
    made = write(table, name_col="key")
    assert (made["mode"], made["name_col"], made["kv_separator"]) == ("kv", "key", "__")
    assert made["columns"]["v"]["shape"] is None
    found = official(shards(tmp_path / "d")[0])
    assert found["ü/x__v"] == ("F64", [0], b"") and found["__n"][1] == []
    rows = dataset.open(tmp_path / "d")
    assert {row["key"]: row["n"].item() for row in rows} == {"b": 1, "a": 2, "ü/x": 3, "": 4}
    assert rows["a"]["v"].tolist() == [2, 3]


@pytest.mark.parametrize("keys", [pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()])
def test_null_keys(tmp_path, keys):
    with pytest.raises(ValueError, match="row 1") as caught:
        dataset.write(pa.table({"k": keys, "v": [1, 2]}), tmp_path / "d", name_col="k")
    assert caught.value.code in ("row_key", "row_null")


def test_keys_of_all_string_types(write, tmp_path):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        keys = pa.array(["long enough to be out of line %d" % i for i in range(5)], kind)
        write(pa.table({"k": keys, "v": range(5)}), name_col="k", mode="overwrite")
        assert len(official(shards(tmp_path / "d")[0])) == 5


def test_duplicates(write, tmp_path):
    table = pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    with pytest.raises(SafetensorError, match="a__v") as caught:
        dataset.write(table, tmp_path / "d", name_col="k")
    assert caught.value.code == "dataset_duplicate"
    made = write(table, name_col="k", duplicatesStrategy="lastWin")
    assert made["total_samples"] == 2
    more = pa.table({"k": ["c", "b"], "v": [4, 5]})
    with pytest.raises(SafetensorError) as caught:
        dataset.write(more, tmp_path / "d", name_col="k", mode="append")
    assert caught.value.code == "dataset_duplicate"
    made = write(more, name_col="k", mode="append", duplicatesStrategy="lastWin")
    assert made["total_samples"] == 3 and made["index"] == "_tensor_index.parquet"
    with_index = dataset.open(tmp_path / "d")
    (tmp_path / "d/_tensor_index.parquet").unlink()
    for found in (with_index, dataset.open(tmp_path / "d")):
        assert {row["k"]: row["v"].item() for row in found} == {"a": 3, "b": 5, "c": 4}
        assert len(found) == 3 and found["b"]["v"] == 5
    before = sorted((p.name, p.read_bytes()) for p in (tmp_path / "d").iterdir())
    plan = dataset.compact(tmp_path / "d", dry_run=True)
    assert sorted((p.name, p.read_bytes()) for p in (tmp_path / "d").iterdir()) == before
    assert plan["dry_run"] and plan["bytes_after"] is None
    told = dataset.compact(tmp_path / "d")
    same = ("shards_after", "rewritten", "tensors_dropped", "groups", "index_removed")
    assert [plan[key] for key in same] == [told[key] for key in same]
    assert told["ok"]
    found = dataset.open(tmp_path / "d")
    assert {row["k"]: row["v"].item() for row in found} == {"a": 3, "b": 5, "c": 4}
    assert sum(one["shadowed"] for one in found.shards) == 0


def test_reserved_keys(tmp_path):
    with pytest.raises(ValueError) as caught:
        dataset.write(pa.table({"k": [""], "metadata__": [1]}), tmp_path / "d", name_col="k")
    assert caught.value.code in ("row_key", "name_reserved")
    with pytest.raises((ValueError, TypeError)):
        dataset.write(pa.table({"__metadata__": [1]}), tmp_path / "d", batch_size=1)


def tiny(count):
    import pyarrow.compute as pc
    numbers = pa.array(np.arange(count))
    names = pc.binary_join_element_wise("user_", pc.cast(numbers, pa.string()), "")
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(count, dtype=np.float32)), 1)
    return pa.table({"k": names, "embedding_of_the_user": values})


@pytest.mark.parametrize("count", [20_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_many_tiny_rows(tmp_path, count):
    """Headers stay under what the official package takes."""
    table = tiny(count)
    made = dataset.write(table, tmp_path / "d", name_col="k", sync=False,
                         target_shard_size_mb=1000)
    assert made["total_samples"] == count
    assert ("schema" in made) == (count <= 10_000)
    for path in shards(tmp_path / "d"):
        with open(path, "rb") as file:
            assert int.from_bytes(file.read(8), "little") <= 100_000_000
    # Opened by the official package; the last as well, and a value in it.
    last = shards(tmp_path / "d")[-1]
    with safe_open(last, "np") as file:
        key = next(iter(file.keys()))
        number = int(key.split("_")[1])
        assert file.get_tensor(key)[0] == np.float32(number)
    if count > 1_000_000:
        assert len(made["shards"]) > 1


# ── Inputs ──

def rows(found):
    return [row["c"].item() for row in found]


def test_a_stream_a_batch_and_batches(write, tmp_path):
    table = pa.table({"c": range(6)})
    for given in (table, table.to_reader(2), table.to_batches()[0], table.to_batches(2),
                  (batch for batch in table.to_batches(max_chunksize=1)),
                  [table.slice(0, 2), table.slice(2)]):
        write(given, batch_size=4, mode="overwrite")
        assert rows(dataset.open(tmp_path / "d")) == list(range(6))


def test_batches_of_another_schema(tmp_path):
    for other in ({"c": [1.0]}, {"d": [1]}, {"c": [1], "d": [1]}):
        with pytest.raises(ValueError, match="one schema"):
            dataset.write([pa.table({"c": [1]}), pa.table(other)], tmp_path / "d", batch_size=1)
        with pytest.raises(ValueError, match="one schema"):
            dataset.write([pa.table({"c": [1]}).to_batches()[0], pa.table(other).to_batches()[0]],
                          tmp_path / "d", batch_size=1)
    assert list(tmp_path.glob("d/[!.]*")) == []


def test_what_is_no_table(tmp_path):
    class Lazy:
        def __getitem__(self, key):
            raise TypeError("not subscriptable")
    for given in (5, object(), [1, 2], [{"a": 1}], {"a": "text"}, Lazy(),
                  {"a": {"x": 1}}, {"a": {1, 2}}):
        with pytest.raises(TypeError, match="batches: expected"):
            dataset.write(given, tmp_path / "d", batch_size=1)
    with pytest.raises(ValueError, match="at least one"):
        dataset.write([], tmp_path / "d", batch_size=1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (0, 2), (3, 0)])
def test_torch_dtypes_that_numpy_lacks(write, tmp_path, dtype, shape):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    whole = torch.arange(12.).reshape(3, 4)[:shape[0], :(*shape, 1)[1]].reshape(shape).to(kind)
    made = write({"c": whole}, batch_size=2)
    if shape[0]:
        name = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}[dtype]
        assert made["columns"]["c"] == {"dtype": name, "shape": list(shape[1:])}
        with dataset.open(tmp_path / "d") as rows:
            back = rows.take(range(3), "torch")["c"]
        assert back.dtype == kind and back.float().equal(whole.float())


def test_exceptions_of_a_generator_are_raised(tmp_path):
    def batches():
        yield pa.table({"c": [1]}).to_batches()[0]
        raise LookupError("the source is gone")
    with pytest.raises(LookupError, match="the source is gone"):
        dataset.write(batches(), tmp_path / "d", batch_size=1)
    assert list(tmp_path.glob("d/[!.]*")) == []


def test_polars(write, tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"k": ["a", "bb", "a name that is rather long"], "c": [1, 2, 3],
                          "l": [[1.0], [2.0], [3.0]]},
                         schema_overrides={"l": pl.List(pl.Float32)})
    write(frame.select("c", "l"), batch_size=2)
    assert rows(dataset.open(tmp_path / "d")) == [1, 2, 3]
    write(frame, name_col="k", mode="overwrite")
    assert dataset.open(tmp_path / "d")["a name that is rather long"]["l"] == [3]
    arrays = frame.select(pl.col("l").list.to_array(1).alias("c"))
    write(arrays[1:], batch_size=2, mode="overwrite")
    assert rows(dataset.open(tmp_path / "d")) == [2, 3]


def test_duckdb(write, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i::bigint as c, [i, i + 1]::int[2] as f, "
                          "[i::float] as l from range(5000) t(i) order by i")
    write(relation, batch_size=3000)
    found = dataset.open(tmp_path / "d")
    assert rows(found) == list(range(5000)) and found[7]["f"].tolist() == [7, 8]
    index = str(tmp_path / "d/_tensor_index.parquet")
    write(duckdb.sql("select 'r' || i as k, i as v from range(10) t(i)"), name_col="k",
          mode="overwrite", generate_index=True)
    told = duckdb.sql("select tensor_key, file_name, shape, dtype, \"begin\", \"end\" "
                      "from read_parquet('%s')" % index).fetchall()
    assert [one[0] for one in told] == ["r%d__v" % i for i in range(10)]
    assert told[0][2:] == ([], "I64", told[0][4], told[0][4] + 8)


def test_pandas(write, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"c": [1, 2, 3], "f": np.array([1, 2, 3], np.float32)})
    write(frame[["c", "f"]], batch_size=2)
    assert rows(dataset.open(tmp_path / "d")) == [1, 2, 3]


def test_pandas_without_the_numbers_of_its_rows(write, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"c": [1, 2, 3]})
    for given in (frame[frame.c > 1], frame.set_index(pd.Index(["x", "y", "z"]))[1:],
                  iter([frame[1:2], frame[2:]])):
        assert list(write(given, batch_size=2, mode="overwrite")["columns"]) == ["c"]
        assert rows(dataset.open(tmp_path / "d")) == [2, 3]
    named = frame.set_index(pd.Index(["x", "y", "z"], name="k"))
    write(named, name_col="k", mode="overwrite")
    assert dataset.open(tmp_path / "d")["y"]["c"] == 2


# ── Names that are numbers ──

def numbered(kind):
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame({0: [1, 2, 3], 1: [4.0, 5.0, 6.0]})
    if kind == "dicts":
        return iter([{0: [1, 2], np.int64(1): [4.0, 5.0]}, {0: [3], 1: np.array([6.0])}])
    return {0: [1, 2, 3], 1: np.array([4.0, 5.0, 6.0])}


@pytest.mark.parametrize("kind", ["pandas", "dict", "dicts"])
def test_columns_named_by_numbers(write, tmp_path, kind):
    made = write(numbered(kind), batch_size=2, dtype={0: "I32"})
    assert {name: one["dtype"] for name, one in made["columns"].items()} == \
        {"0": "I32", "1": "F64"}
    with dataset.open(tmp_path / "d") as found:
        assert found.columns == ["0", "1"] and found[2] == {"0": 3, "1": 6.0}
        assert pa.table(found).to_pydict() == {"0": [1, 2, 3], "1": [4.0, 5.0, 6.0]}
        assert found.to_arrow([1]).column_names == ["1"]
        assert found.scanner([1]).to_table().column_names == ["1"]
    assert dataset.open(tmp_path / "d", columns=[0])[1] == {"0": 2}
    assert write(numbered(kind), batch_size=2, mode="overwrite",
                 columns=[1])["columns"].keys() == {"1"}
    write(numbered(kind), batch_size=2, mode="append", columns=["1"])
    assert len(dataset.open(tmp_path / "d")) == 6


def test_rows_named_by_a_column_of_a_number(write, tmp_path):
    write({0: ["a", "b"], 1: [[1], [2]]}, name_col=0)
    assert dataset.open(tmp_path / "d")["b"]["1"] == [2]


def test_names_that_become_equal(tmp_path):
    pd = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="mixed type"), \
            pytest.raises(TypeError, match='"0": expected each name once'):
        dataset.write(pd.DataFrame({0: [1], "0": [2]}), tmp_path / "d", batch_size=1)
    with pytest.raises(ValueError, match="""batches: .* found 0 and '0' for "0\""""):
        dataset.write({0: [1], "0": [2]}, tmp_path / "d", batch_size=1)
    with pytest.raises(ValueError, match="""dtype: .* found '1' and 1 for "1\""""):
        dataset.write({0: [1]}, tmp_path / "d", batch_size=1, dtype={"1": "F32", 1: "F64"})
    with pytest.raises(TypeError, match="expected a name, text or a whole number, found 0.5"):
        dataset.write({0.5: [1]}, tmp_path / "d", batch_size=1)
    assert list(tmp_path.glob("d/[!.]*")) == []


def test_an_index_named_by_a_number(write, tmp_path):
    """It was taken for one without a name, and left out."""
    pd = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="index name"):
        write(pd.DataFrame({"c": [1, 2]}, index=pd.Index([7, 8], name=0)), batch_size=2)
    assert dataset.open(tmp_path / "d")[1] == {"c": 2, "0": 8}


@pytest.mark.parametrize("shape", [(3, 2, 2), (0, 2), (3, 0), (3, 1)])
def test_arrays_of_more_dimensions(write, tmp_path, shape):
    values = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    write({"x": np.asfortranarray(values), "b": values % 2 == 1}, batch_size=2)
    found = dataset.open(tmp_path / "d")
    assert len(found) == shape[0]
    for i, row in enumerate(found):
        assert row["x"].dtype == np.int16 and np.array_equal(row["x"], values[i])
        assert row["b"].dtype == bool and np.array_equal(row["b"], values[i] % 2 == 1)


# ── Options ──

BAD = [({}, "neither"), ({"batch_size": 1, "name_col": "c"}, "both"), ({"batch_size": 0}, "1 on"),
       ({"batch_size": "many"}, "1 on"), ({"batch_size": 1, "dtype": "F31"}, "dtype"),
       ({"batch_size": 1, "shapes": "[]"}, "shapes"),
       ({"batch_size": 1, "shapes": {"c": [-1]}}, "shapes"),
       ({"batch_size": 1, "tail_strategy": "cut"}, "write, drop or pad"),
       ({"batch_size": 1, "rounding": "up"}, "nearest or truncate"),
       ({"batch_size": 1, "keep_old": -1}, "seconds"),
       ({"batch_size": 1, "columns": ","}, "columns"),
       ({"batch_size": 1, "columns": "d"}, r"columns \(c, k\)"),
       ({"batch_size": 1, "generate_index": "maybe"}, "true or false"),
       ({"batch_size": 1, "generate_indx": True}, 'did you mean "generate_index"'),
       ({"name_col": "k", "target_shard_size_mb": 49}, "50 to 1000"),
       ({"name_col": "k", "target_shard_size_mb": 1001}, "50 to 1000"),
       ({"name_col": "k", "duplicatesStrategy": "first"}, "fail or lastWin"),
       ({"name_col": "c"}, "name_col"), ({"name_col": "nothing"}, "name_col"),
       ({"batch_size": 1, "storage.region": "x"}, "storage")]


@pytest.mark.parametrize("options, words", BAD, ids=str)
def test_bad_options_touch_nothing(tmp_path, options, words):
    dataset.write(pa.table({"a": [7]}), tmp_path / "d", batch_size=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()}
    with pytest.raises((ValueError, TypeError), match=words):
        dataset.write(pa.table({"c": [1], "k": ["a"]}).select(["c", "k"]), tmp_path / "d",
                      mode="overwrite", **options)
    assert {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()} == before


def test_the_table_of_options():
    assert list(dataset.OPTIONS)[:2] == ["batch_size", "name_col"]
    for values, default, mode, sentence in dataset.OPTIONS.values():
        assert values and sentence and mode in ("batch", "kv", "both")
    assert dataset.OPTIONS["kv_separator"][1] == "__"
    assert libsafetensors._core.DATASET_OPTIONS is dataset.OPTIONS


def test_options_of_any_case(write, tmp_path):
    write(pa.table({"c": [1]}), BATCH_SIZE=1, Tail_Strategy="PAD")
    assert rows(dataset.open(tmp_path / "d")) == [1]


# ── What is imported ──

WITHOUT = """
import sys
from libsafetensors import dataset
assert not {"numpy", "torch", "pyarrow", "polars"} & set(sys.modules)
for name in ("pyarrow", "pandas"):
    sys.modules[name] = None
import polars as pl
frame = pl.DataFrame({"k": ["a", "b"], "c": [1, 2]})
dataset.write(frame, sys.argv[1], name_col="k")
assert dataset.open(sys.argv[1])["b"]["c"] == 2
for options in ({"generate_index": True, "mode": "overwrite"},
                {"duplicatesStrategy": "lastWin", "mode": "append"}):
    try:
        dataset.write(frame, sys.argv[1], name_col="k", **options)
    except ImportError as error:
        assert "pyarrow" in str(error)
    else:
        raise AssertionError(options)
assert len(dataset.open(sys.argv[1])) == 2
try:
    dataset.open("s3://bucket/x")
except ImportError as error:
    assert "pyarrow" in str(error)
print("ok")
"""


def test_without_pyarrow(tmp_path):
    """It is needed for an index and for URLs only."""
    pytest.importorskip("polars")
    done = subprocess.run([sys.executable, "-c", WITHOUT, tmp_path / "d"], capture_output=True,
                          text=True, timeout=120)
    assert done.stdout == "ok\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_large_shards_have_their_digest(tmp_path, threads):
    """Large writes are hashed by a second thread, short ones and the ends are not."""
    import hashlib
    from libsafetensors import _core
    table = pa.table({"x": np.arange(1_500_000, dtype=np.int64)})
    options = _core.DatasetOptions({"batch_size": "1200000"})
    storage = _core.Storage(str(tmp_path / "d"), sync=False)
    commit = _core.Commit(options, storage, table.schema)
    writer = _core.ShardWriter(options, storage, commit.job, 0, table.schema, threads=threads)
    writer.append(table.to_batches()[0])
    receipts = json.loads(writer.close())
    digests = {one["sha256"] for one in receipts}
    found = {hashlib.sha256(path.read_bytes()).hexdigest()
             for path in (tmp_path / "d").rglob("part-*.safetensors")}
    commit.abort()
    commit.close()
    assert len(found) == 2 and found == digests
