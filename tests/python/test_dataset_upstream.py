"""What other readers can read of datasets, as docs/dataset.md says, with the official package; and that
compat="upstream" refuses the rest with a reason."""
import json
import sys

import numpy as np
import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
safetensors = pytest.importorskip("safetensors")

KNOWN = {"F16", "F32", "F64", "BF16", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64"}
NO_NUMPY = {"BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0", "F4"}
NOBODY = {"F6_E2M3", "F6_E3M2"}
BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "C64": 64}
DTYPES = [*sorted(KNOWN), *sorted(NO_NUMPY - KNOWN), *sorted(NOBODY), "BOOL", "C64"]


def tensors(dtype, rows=4):
    """Tensor structs of 8 elements that are 0."""
    bits = BITS.get(dtype) or int("".join(c for c in dtype.split("_")[0] if c.isdigit()))
    return pa.array([{"data": bytes(bits), "shape": [8], "dtype": dtype}] * rows, pa.struct(
        [("data", pa.binary()), ("shape", pa.list_(pa.int32())), ("dtype", pa.string())]))


def official(folder, framework):
    """Name -> tensor of all shards, as the official package reads them."""
    found = {}
    for one in json.loads((folder / "dataset_manifest.json").read_text("utf-8"))["shards"]:
        with safetensors.safe_open(folder / one["shard_path"], framework) as file:
            found.update({name: file.get_tensor(name) for name in file.keys()})
    return found


@pytest.mark.parametrize("mode", ["batch", "kv"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype(tmp_path, dtype, mode):
    rows = pa.table({"k": ["a", "b", "c", "d"], "x": tensors(dtype)})
    how = {"batch_size": 4, "columns": ["x"]} if mode == "batch" else {"name_col": "k"}
    dataset.write(rows, tmp_path / "d", **how)
    for framework, fails in (("np", NO_NUMPY | NOBODY), ("pt", NOBODY)):
        if framework == "pt":
            torch = pytest.importorskip("torch")
            if dtype == "F4" and not hasattr(torch, "float4_e2m1fn_x2"):
                continue
        if dtype == "BF16" and framework == "np" and "ml_dtypes" in sys.modules:
            continue # NumPy knows it then, however it came there
        if dtype in fails:
            with pytest.raises(Exception):  # of several types
                official(tmp_path / "d", framework)
        else:
            shapes = {tuple(value.shape) for value in official(tmp_path / "d", framework).values()}
            wide = 4 if dtype == "F4" else 8  # torch has two in an element
            assert shapes == {(4, wide) if mode == "batch" else (wide,)}
    if dtype in KNOWN:
        dataset.write(rows, tmp_path / "u", compat="upstream", **how)
        assert len(dataset.open(tmp_path / "u")) == 4
    else:
        with pytest.raises(ValueError, match="option compat: expected F16, .*found " + dtype):
            dataset.write(rows, tmp_path / "u", compat="upstream", **how)
        assert list(tmp_path.glob("u/[!.]*")) == []


def test_a_dtype_of_the_schema(tmp_path):
    for rows, more in ((pa.table({"x": [True]}), {}),
                       (pa.table({"x": [1.0]}), {"dtype": "F8_E4M3"})):
        with pytest.raises(TypeError, match='column "x": option compat: expected F16'):
            dataset.write(rows, tmp_path / "d", batch_size=1, compat="upstream", **more)


READ = {
    "text": (["a", "bcd", "", "e"], {"x": (5,), "x.offsets": (5,)}, TypeError, "found text"),
    "bytes": ([b"a", b"", b"", b"e"], {"x": (2,), "x.offsets": (5,)}, TypeError, "found text"),
    "struct": ([{"a": 1}] * 4, {"x.a": (4,)}, TypeError, "a struct"),
    "lists of text": ([["a"]] * 4, {"x.offsets": (5,), "x.item": (4,), "x.item.offsets": (5,)},
                      TypeError, "lists of them"),
    "lists": ([[1], [2, 3], [], [4]], {"x": (4,), "x.offsets": (5,)}, ValueError,
              "lists of different lengths"),
    "nulls": ([1, None, 3, 4], {"x": (4,), "x.valid": (4,)}, ValueError, "found null"),
    "dates": (pa.array([1, 2, 3, 4], pa.timestamp("us")), {"x": (4,)}, None, ""),
    "decimals": (pa.array([1, 2, 3, 4]).cast(pa.decimal128(30, 2)), {"x": (4, 16)}, None, ""),
    "lists of one length": ([[1, 2]] * 4, {"x": (4, 2)}, None, ""),
}


@pytest.mark.parametrize("kind", READ)
def test_columns_of_all_kinds(tmp_path, kind):
    values, shapes, error, words = READ[kind]
    rows = pa.table({"x": values})
    dataset.write(rows, tmp_path / "d", batch_size=4)
    found = official(tmp_path / "d", "np")
    assert {name: value.shape for name, value in found.items()} == shapes
    if error is None:
        dataset.write(rows, tmp_path / "u", batch_size=4, compat="upstream")
        return
    with pytest.raises(error, match='column "x": option compat: .*' + words):
        dataset.write(rows, tmp_path / "u", batch_size=4, compat="upstream")
    assert list(tmp_path.glob("u/[!.]*")) == []


def test_the_first_file_that_has_it(tmp_path):
    """Not the end of the job."""
    asked = []

    def rows():
        for values in ([1, 2], [3, None], [5, 6]):
            asked.append(values)
            yield pa.table({"x": pa.array(values, pa.int64())})
    with pytest.raises(ValueError, match="found null"):
        dataset.write(rows(), tmp_path / "d", batch_size=2, compat="upstream")
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["0", "a.b", "größe", "名前", "a b"])
def test_names(tmp_path, name):
    dataset.write({name: [1, 2]}, tmp_path / "d", batch_size=2, compat="upstream")
    assert np.array_equal(official(tmp_path / "d", "np")[name], [1, 2])


def test_nothing_of_other_versions_is_left(tmp_path):
    """The connector reads all files of the folder."""
    for mode, values in (("error", [1, 2]), ("append", [3, 4]), ("overwrite", [5])):
        made = dataset.write({"x": values}, tmp_path, batch_size=2, mode=mode, compat="upstream")
        assert made["format_version"] == "1.0"
        assert {one.name for one in tmp_path.glob("*.safetensors")} == \
            {one["shard_path"] for one in made["shards"]}
    with pytest.raises(ValueError, match="keep_old: expected 0 with the option compat"):
        dataset.write({"x": [1]}, tmp_path, batch_size=1, mode="overwrite", compat="upstream",
                      keep_old="all")


def test_an_append_writes_a_whole_manifest(tmp_path):
    dataset.write({"x": [1]}, tmp_path, batch_size=1, manifest="segments")
    made = dataset.write({"x": [2]}, tmp_path, batch_size=1, mode="append", compat="upstream")
    assert made["format_version"] == "1.0" and len(made["shards"]) == 2


def test_a_file_that_is_too_large(tmp_path):
    """Before any of it is written, or read."""
    with pytest.raises(ValueError, match="option compat: expected files of at most 2147483647"):
        dataset.write({"x": np.zeros(1 << 31, np.uint8)}, tmp_path / "d", batch_size=1 << 31,
                      compat="upstream")
