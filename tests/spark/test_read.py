"""How a dataset is split among tasks and becomes Arrow, without Spark between; functions."""
import json
import os
import shutil
from decimal import Decimal

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
T = pytest.importorskip("pyspark.sql.types")

from libsafetensors import SafetensorError, dataset  # noqa: E402
from libsafetensors.spark import _functions, _values  # noqa: E402
from libsafetensors.spark import _read as reads  # noqa: E402


def table(rows=1000, width=2048):
    values = np.arange(rows * width, dtype=np.float32)
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(values, width),
                     "n": np.arange(rows, dtype=np.int64)})


@pytest.fixture
def batches(tmp_path):
    dataset.write(table(), tmp_path / "d", batch_size=600)
    return str(tmp_path / "d")


@pytest.fixture
def keyed(tmp_path):
    rows = pa.table({"name": ["k%d" % i for i in range(40)], "x": np.arange(40.0)})
    for i in range(4):
        dataset.write(rows.slice(i * 10, 10), tmp_path / "k", name_col="name",
                      mode="append", generate_index=True)
    return str(tmp_path / "k")


def reading(path, **options):
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value)
             for name, value in options.items()}
    return reads.Reading({"path": path, **texts})


def edited(path, change):
    """Its manifest, changed."""
    name = os.path.join(path, "dataset_manifest.json")
    with open(name) as file:
        told = json.load(file)
    change(told)
    with open(name, "w") as file:
        json.dump(told, file)


def given(**columns):
    return T.StructType([T.StructField(name, kind) for name, kind in columns.items()])


def all_rows(one, schema=None):
    schema = schema or one.schema()
    parts = [batch for pieces in one.pieces(schema) for batch in one.batches(schema, pieces)]
    return pa.Table.from_batches(parts).to_pylist() if parts else []


# ── Parts ──

def test_large_shards_are_cut_by_rows(batches):
    one = reading(batches, layout="samples", partition_mb=1)
    schema = one.schema()
    parts = one.pieces(schema)
    assert len(parts) > 6 and all(len(pieces) == 1 for pieces in parts)
    assert sum(piece.stop - piece.start for pieces in parts for piece in pieces) == 1000
    got = all_rows(reading(batches, layout="samples", partition_mb=1, **{"as": "array"}))
    assert [row["n"] for row in got] == [*range(1000)]
    assert got[999]["x"][-1] == np.float32(1000 * 2048 - 1)


def test_small_shards_are_packed(keyed):
    one = reading(keyed, layout="tensors")
    assert [len(pieces) for pieces in one.pieces(one.schema())] == [4]
    assert len(all_rows(one)) == 40


def test_batches_have_the_schema_that_spark_asked_for(batches, keyed):
    """Spark 4.2 compares whether columns may be null, too."""
    from pyspark.sql.pandas.types import to_arrow_schema
    for one in (reading(batches, layout="files"), reading(batches, layout="samples"),
                reading(batches, layout="samples", **{"as": "array"}),
                reading(keyed, layout="tensors"), reading(keyed, layout="tensors", data=False)):
        schema = one.schema()
        for pieces in one.pieces(schema):
            for batch in one.batches(schema, pieces):
                assert batch.schema == to_arrow_schema(schema)
                batch.validate(full=True)


def test_a_column_that_may_not_be_null(keyed):
    kind = T.DoubleType()
    for nullable in (True, False):
        schema = T.StructType([T.StructField("k3__x", kind, nullable),
                               T.StructField("k25__x", kind, nullable)])
        if nullable:
            assert all_rows(reading(keyed), schema) == [{"k3__x": 3.0, "k25__x": None},
                                                        {"k3__x": None, "k25__x": 25.0}]
        else:
            with pytest.raises(ValueError, match="k25__x, whose column is NOT NULL"):
                all_rows(reading(keyed), schema)


def test_what_a_row_is_unless_it_is_said(batches, keyed):
    """A sample or a name; a shard where the Scala connector's programs ask, and of its datasets."""
    for path, options, layout, count in (
            (batches, {}, "samples", 1000), (batches, {"keys": "x"}, "samples", 1000),
            (batches, {"inferSchema": True}, "files", 2),
            (batches, {"layout": "files"}, "files", 2),
            (batches, {"use_manifest": False}, "files", 2), (keyed, {}, "samples", 40),
            (keyed, {"inferSchema": True}, "files", 4), (keyed, {"keys": "k3__x"}, "files", 1)):
        one = reading(path, **options)
        schema = one.schema()
        assert len(all_rows(one, schema)) == count and one.layout == layout, options
    assert len(all_rows(reading(batches), given(n=T.ArrayType(T.LongType())))) == 2
    edited(batches, lambda told: told.pop("generator"))
    assert len(all_rows(reading(batches))) == 2


def test_the_reader_is_that_of_the_schema(batches):
    """Spark asks a copy of the source for it; a schema that is given warns."""
    pytest.importorskip("pyspark.sql.datasource")
    from pyspark import cloudpickle
    from libsafetensors.spark._source import SafetensorsDataSource
    for options, layout in (({}, "samples"), ({"layout": "tensors"}, "tensors"),
                            ({"inferSchema": "true"}, "files")):
        source = SafetensorsDataSource({"path": batches, **options})
        schema = source.schema()
        copy = cloudpickle.loads(cloudpickle.dumps(source))
        assert copy.reader(schema).reading.layout == layout
    with pytest.warns(RuntimeWarning, match="layout=samples reads rows"):
        assert SafetensorsDataSource({"path": batches}).reader(schema).reading.layout == "files"


def test_keys_open_only_their_shards(keyed):
    one = reading(keyed, layout="tensors", keys="k3__x, k25__x")
    assert sum(map(len, one.pieces(one.schema()))) == 2
    assert [row["tensor_key"] for row in all_rows(one)] == ["k3__x", "k25__x"]
    one = reading(keyed, keys='["k25__x"]', **{"as": "array"})
    assert all_rows(one) == [{"k25__x": 25.0}]


def test_filters_that_spark_hands_down(keyed):
    filters = pytest.importorskip("pyspark.sql.datasource")
    if not hasattr(filters, "EqualTo"):
        pytest.skip("this Spark hands nothing down")
    from libsafetensors.spark._source import FilteringReader, Reader
    one = reading(keyed, layout="tensors", pushdown=True)
    reader = FilteringReader(one, one.schema())
    asked = [filters.In(("tensor_key",), ("k1__x", "k2__x")),
             filters.EqualTo(("tensor_key",), "k2__x"), filters.IsNotNull(("dtype",))]
    assert list(reader.pushFilters(asked)) == asked
    parts = reader.partitions()
    assert [batch["tensor_key"].to_pylist() for part in parts for batch in reader.read(part)] \
        == [["k2__x"]]
    assert list(Reader(one, one.schema()).read(None)) == []


def test_losers_are_hidden(tmp_path):
    for value in (1.0, 2.0):
        dataset.write(pa.table({"name": ["a", "b%d" % value], "x": [value, value]}),
                      tmp_path / "d", mode="append", name_col="name",
                      duplicatesStrategy="lastWin")
    got = all_rows(reading(str(tmp_path / "d"), layout="tensors"))
    assert {row["tensor_key"]: np.frombuffer(row["data"])[0] for row in got} == \
        {"a__x": 2.0, "b1__x": 1.0, "b2__x": 2.0} and len(got) == 3
    files = all_rows(reading(str(tmp_path / "d"), keys="a__x", **{"as": "array"}))
    assert files == [{"a__x": 2.0}]


def test_an_overwrite_while_reading(batches):
    """Between the look at the manifest and a task."""
    one = reading(batches, layout="samples")
    schema = one.schema()
    parts = one.pieces(schema)
    dataset.write(table(10, 8), batches, batch_size=10, mode="overwrite")
    assert sum(len(batch) for batch in one.batches(schema, parts[0])) > 0
    dataset.gc(batches, delete=True, grace=0, keep=1)
    with pytest.raises(SafetensorError, match=r"replaced \(version 1 to 2\) while reading") as told:
        list(one.batches(schema, parts[0]))
    assert "has changed since this DataFrame or view was planned" in str(told.value)
    assert told.value.code == "dataset_changed" and told.value.path == batches


def test_an_earlier_version(batches):
    before = all_rows(reading(batches, layout="samples"))
    dataset.write(table(10, 8), batches, batch_size=10, mode="overwrite")
    assert all_rows(reading(batches, layout="samples", versionAsOf="1")) == before
    assert all_rows(reading(batches, layout="samples", versionasof="2")) == \
        all_rows(reading(batches, layout="samples")) != before
    with pytest.raises(FileNotFoundError, match="version 3, which is not kept"):
        reading(batches, layout="samples", versionAsOf="3").schema()
    for wrong in ("0", "-1", "last"):
        with pytest.raises(ValueError, match="versionAsOf"):
            reading(batches, versionAsOf=wrong)


def test_a_folder_that_went_while_reading(batches):
    for options in ({}, {"use_manifest": False}):
        one = reading(batches, layout="samples", **options)
        schema = one.schema()
        parts = one.pieces(schema)
        shutil.move(batches, batches + "-gone")
        with pytest.raises(SafetensorError, match="changed since .* planned, or .* not see"):
            list(one.batches(schema, parts[0]))
        shutil.move(batches + "-gone", batches)


# ── Bytes ──

class Counted:
    """A file system that notes which bytes of shards are read."""

    def __init__(self, fs, reads):
        self.fs, self.reads = fs, reads

    def __getattr__(self, name):
        return getattr(self.fs, name)

    def open_input_file(self, path):
        return CountedFile(self.fs.open_input_file(path), path, self.reads)


class CountedFile:
    def __init__(self, file, path, reads):
        self.file, self.path, self.reads = file, path, reads

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read_at(self, length, offset):
        if self.path.endswith(".safetensors"):
            self.reads.append((self.path, offset, length))
        return self.file.read_at(length, offset)


@pytest.fixture
def data_read(monkeypatch):
    """Gives the number of bytes of tensors that were read through URLs counted:…"""
    from pyarrow import fs

    from libsafetensors.dataset import _storage
    reads = []
    monkeypatch.setattr(_storage, "filesystem", lambda scheme, url, options: (
        Counted(fs.LocalFileSystem(), reads), url.split(":", 1)[1].replace("///", "/")))

    def told():
        total = 0
        for path, offset, length in reads:
            with open(path, "rb") as file:
                header = 8 + int.from_bytes(file.read(8), "little")
            total += max(0, offset + length - max(offset, header))
        reads.clear()
        return total

    return told


def test_only_what_is_asked_for_is_read(batches, data_read):
    url = "counted://" + batches
    spare = 2 * (1 << 13)  # a header is read with what follows it, of two shards
    x, n = 1000 * 2048 * 4, 1000 * 8
    cases = [({"layout": "samples"}, x + n), ({"layout": "samples", "columns": "n"}, n),
             ({"columns": "n"}, n), ({"layout": "tensors", "keys": "n"}, n),
             ({"layout": "tensors", "data": False}, 0), ({"data": False}, 0),
             ({"layout": "samples", "columns": "n", "as": "array"}, n)]
    for options, expected in cases:
        assert all_rows(reading(url, **options))
        assert expected <= data_read() <= expected + spare, options
    one = reading(url, layout="samples")
    assert len(all_rows(one, given(n=T.LongType()))) == 1000
    assert n <= data_read() <= n + spare


# ── Schemas ──

def test_a_schema_converts_exactly_or_raises(batches):
    one = reading(batches, layout="samples")
    got = all_rows(one, given(n=T.DecimalType(20, 0), x=T.ArrayType(T.DoubleType())))
    assert int(got[7]["n"]) == 7 and got[0]["x"][:2] == [0.0, 1.0]
    with pytest.raises(ValueError, match="n: .*int8"):
        all_rows(one, given(n=T.ByteType()))
    with pytest.raises(ValueError, match="n: expected"):
        all_rows(one, given(n=T.StringType()))
    for layout in ("samples", "files"):
        with pytest.raises(ValueError, match=r"schema: expected .*\(x, n\), found y"):
            all_rows(reading(batches, layout=layout), given(y=T.LongType()))
    with pytest.raises(ValueError, match=r"keys: expected .*\(x, n\), found y"):
        all_rows(reading(batches, layout="tensors", keys="y"))


def test_nested_arrays(tmp_path):
    values = np.arange(24, dtype=np.int16)
    dataset.write(pa.table({"x": values.reshape(4, 6).tolist()},
                           pa.schema([("x", pa.list_(pa.int16()))])),
                  tmp_path / "d", batch_size=4, shapes={"x": [2, 3]})
    one = reading(str(tmp_path / "d"), layout="samples")
    got = all_rows(one, given(x=T.ArrayType(T.ArrayType(T.IntegerType()))))
    assert [row["x"] for row in got] == values.reshape(4, 2, 3).tolist()


# ── Bytes instead of arrays ──

def test_samples_as_binary(batches):
    one = reading(batches, layout="samples", **{"as": "binary"})
    schema = one.schema()
    assert schema.simpleString() == "struct<x:binary,n:binary>"
    assert [field.metadata for field in schema] == [{"dtype": "F32", "shape": [2048]},
                                                    {"dtype": "I64", "shape": []}]
    expected = np.arange(1000 * 2048, dtype="<f4").reshape(1000, 2048)
    rows = all_rows(one)
    assert len(rows) == 1000 and rows[999]["x"] == expected[999].tobytes()
    assert [np.frombuffer(row["n"], "<i8")[0] for row in rows] == [*range(1000)]
    assert all_rows(reading(batches, layout="samples"), given(x=T.BinaryType())) == [
        {"x": row["x"]} for row in rows]
    with pytest.raises(ValueError, match="data=false: expected as=tensor, found as=binary"):
        reading(batches, data=False, **{"as": "binary"})


def test_tensors_of_files_as_binary(keyed):
    one = reading(keyed, keys="k3__x,k25__x", **{"as": "binary"})
    schema = one.schema()
    assert [field.metadata for field in schema] == [{"dtype": "F64"}] * 2
    rows = all_rows(one)
    assert [row["k3__x"] for row in rows] == [np.float64(3).tobytes(), None]
    assert [row["k25__x"] for row in rows] == [None, np.float64(25).tobytes()]


def test_binary_of_several_dtypes_is_refused(tmp_path):
    from safetensors.numpy import save_file
    (tmp_path / "d").mkdir()
    for name, kind in (("a", "f4"), ("b", "f8")):
        save_file({"x": np.ones(2, kind)}, tmp_path / "d" / (name + ".safetensors"))
    one = reading(str(tmp_path / "d"), use_manifest=False, **{"as": "binary"})
    with pytest.raises(ValueError, match="x: as=binary: expected one dtype, found several"):
        one.schema()


def test_batches_of_binary_are_the_bytes_of_the_file(batches):
    """Neither reading nor binary_to_numpy copies."""
    one = reading(batches, layout="samples", columns="x", **{"as": "binary"})
    schema = one.schema()
    batch = next(one.batches(schema, one.pieces(schema)[0]))
    there = _values.binary_to_numpy(batch["x"], "F32", [2048])
    assert there.shape == (len(batch), 2048) and not there.flags.writeable
    assert there.ctypes.data == batch["x"].buffers()[2].address
    part = _values.binary_to_numpy(batch["x"].slice(3, 2), "F32", (32, 64))
    assert part.ctypes.data == there.ctypes.data + 3 * 2048 * 4
    np.testing.assert_array_equal(part.reshape(2, 2048), there[3:5])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_binary_to_numpy(kind):
    import ml_dtypes
    column = pa.array([b"\x80\x3f\x00\x40", b"\0\0\0\0"], kind)
    got = _values.binary_to_numpy(column, "BF16", [2])
    assert got.dtype == ml_dtypes.bfloat16 and got.astype(float).tolist() == [[1, 2], [0, 0]]
    assert _values.binary_to_numpy(column, "I32").tolist() == [0x40003f80, 0]
    assert _values.binary_to_numpy(pa.array([], kind), "F32", [3]).shape == (0, 3)
    assert _values.binary_to_numpy(pa.array([b"", b""], kind), "F32", [2, 0]).shape == (2, 2, 0)
    for wrong, dtype, shape, word in (
            ([b"abcd", None], "F32", [], "without null, found 1"),
            ([b"abcd", b"abc"], "F32", [1], r"expected 4 bytes for F32 of shape \[1\], found 3 in "
             "row 1"), ([b"ab"], "F4", [4], "whole bytes, found F4"), ([b"a"], "X", [], "dtype")):
        with pytest.raises(ValueError, match=word):
            _values.binary_to_numpy(pa.array(wrong, kind), dtype, shape)


@pytest.mark.parametrize("options, word", [
    ({"layout": "binary"}, "^layout: expected one of files, samples, tensors, found 'binary'; did "
     "you mean as=binary[?]$"), ({"as": "samples"}, "did you mean layout=samples[?]$"),
    ({"as": "bytes"}, "^as: expected one of tensor, array, binary, found 'bytes'$"),
    ({"layout": "rows"}, "files, samples, tensors, found 'rows'$"), ({"laiout": "files"}, "layout"),
    ({"columns": "y"}, "x, n"), ({"keys": "y"}, "x, n"), ({"data": "no"}, "true or false"),
    ({"partition_mb": "0"}, "1 to"), ({"inferSchema": "false"}, "^inferSchema=false: expected a schema")])
def test_refused(batches, options, word):
    with pytest.raises(ValueError, match=word):
        reading(batches, **options).schema()


def test_too_many_columns(tmp_path):
    rows = pa.table({"name": ["k%d" % i for i in range(2001)], "x": np.arange(2001.0)})
    dataset.write(rows, tmp_path / "d", name_col="name")
    with pytest.raises(ValueError, match="layout=tensors"):
        reading(str(tmp_path / "d"), layout="files").schema()


def test_a_schema_of_some_keys_opens_only_their_shards(tmp_path, monkeypatch):
    """Over 10,000 keys the manifest does not list them; the index does."""
    rows = pa.table({"name": ["k%d" % i for i in range(10004)], "x": np.arange(10004.0)})
    for i in range(4):
        dataset.write(rows.slice(i * 2501, 2501), tmp_path / "d", name_col="name",
                      mode="append", generate_index=True)
    looked_at = set()
    file = dataset._shards.Shards.file
    monkeypatch.setattr(dataset._shards.Shards, "file", lambda shards, i: (
        looked_at.add(shards.name(i)), file(shards, i))[1])
    path = str(tmp_path / "d")
    one = reading(path, keys="k3__x,k10003__x", **{"as": "array"})
    schema = one.schema()
    assert schema.simpleString() == "struct<k3__x:double,k10003__x:double>"
    assert len(looked_at) == 2
    assert all_rows(one, schema) == [{"k3__x": 3.0, "k10003__x": None},
                                     {"k3__x": None, "k10003__x": 10003.0}]
    assert len(looked_at) == 2
    with pytest.raises(ValueError, match="layout=tensors"):
        reading(path, layout="files").schema()
    with pytest.raises(ValueError, match="k4__y"):
        reading(path, keys="k4__y").schema()


@pytest.mark.parametrize("layout", ["files", "tensors"])
def test_a_tensor_that_is_no_value_of_spark(tmp_path, layout):
    """The file is a hole but for its header."""
    header = b'{"big":{"dtype":"U8","shape":[%d],"data_offsets":[0,2147483648]}}' % (1 << 31)
    header += b" " * (-len(header) % 8)
    path = tmp_path / "one.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + (1 << 31))
    with pytest.raises(ValueError, match="big.*2147483647.*2147483648"):
        all_rows(reading(str(path), layout=layout))
    one = reading(str(path), layout=layout, data=False)
    if layout == "tensors":
        assert all_rows(one)[0]["shape"] == [1 << 31]
        return
    with pytest.raises(ValueError, match="big: shape: .*int32.*array<bigint>"):
        all_rows(one)
    parts = T.StructType([T.StructField("shape", T.ArrayType(T.LongType()))])
    assert all_rows(one, given(big=parts)) == [{"big": {"shape": [1 << 31]}}]


# ── Functions ──

DTYPES = {"list": pa.list_(pa.float64()), "shape": pa.list_(pa.int32())}


@pytest.mark.parametrize("fallback", [False, True])
def test_arrays_and_back(fallback):
    lists = [[1.0, 2.5], None, [3.0], [], [0.5, -1.0]]
    shapes = [[2], [1], [1, 1], [0], [1, 2]]
    names = ["f32", "F32", "BF16", "F16", None]
    arrays = pa.array(lists, DTYPES["list"])
    if fallback:
        made = [_functions._packed_row(*row) for row in zip(lists, shapes, names)]
        assert made == [(np.float32([1, 2.5]).tobytes(), [2], "F32"), None,
                        (b"\x40\x40", [1, 1], "BF16"), (b"", [0], "F16"), None]
        return
    made = _values.arr_to_st(arrays, pa.array(shapes, DTYPES["shape"]), pa.array(names))
    assert made.is_null().to_pylist() == [False, True, False, False, True]
    for part in (made, made.slice(1)):
        got = _values.st_to_array(part, pa.float64()).to_pylist()
        assert got == [[1.0, 2.5], None, [3.0], [], None][len(made) - len(part):]


@pytest.mark.parametrize("values, dtype, kind, good", [
    ([2 ** 53 + 1], "I64", pa.int64(), True), ([2 ** 53 + 1], "I64", pa.float64(), False),
    ([2 ** 31], "I64", pa.int32(), False), ([1, 0], "U8", pa.bool_(), True),
    ([2], "U8", pa.bool_(), False), ([2 ** 63 - 1], "U64", pa.decimal128(20, 0), True),
    ([300], "U8", pa.int32(), False), ([2], "BOOL", pa.bool_(), False)])
def test_exact_or_refused(values, dtype, kind, good):
    def there_and_back():
        made = _values.arr_to_st(pa.array([values], pa.list_(pa.int64())),
                                 pa.array([[len(values)]], DTYPES["shape"]), pa.array([dtype]))
        return _values.st_to_array(made, kind).to_pylist()[0]

    if good:
        assert [int(one) for one in there_and_back()] == values
    else:
        with pytest.raises(ValueError):
            there_and_back()


def test_fractions_are_no_integers():
    made = _values.arr_to_st(pa.array([[1.5]]), pa.array([[1]], DTYPES["shape"]),
                             pa.array(["F32"]))
    with pytest.raises(ValueError):
        _values.st_to_array(made, pa.int64())


@pytest.mark.parametrize("shape", [[2.5], [2.5, 0.8], [Decimal("2.5")], [-1], [None]])
def test_shapes_are_whole(shape):
    for make in (lambda: _functions._packed_row([1.0, 2.0], shape, "F32"),
                 lambda: _values.arr_to_st(pa.array([[1.0, 2.0]]), pa.array([shape]),
                                           pa.array(["F32"]))):
        with pytest.raises(ValueError, match="shape: expected whole numbers from 0 on"):
            make()
    assert _functions._packed_row([1.0, 2.0], [2.0], "F32")[1] == [2]
    with pytest.raises(TypeError):
        _functions.arr_to_st("a", [2.5], "F32")


def test_every_half_is_decoded():
    bits = np.arange(1 << 16, dtype=np.uint16)
    made = pa.array([{"data": bits.tobytes(), "shape": [1 << 16], "dtype": "F16"}])
    got = _values.st_to_array(made, pa.float32(), exact=False).flatten().to_numpy()
    np.testing.assert_array_equal(got, bits.view(np.float16).astype(np.float32))


def test_decimals():
    """What SQL makes of array(1.5, 2)."""
    def made(values, dtype):
        arrays = pa.array([[Decimal(one) for one in values]], pa.list_(pa.decimal128(21, 1)))
        return _values.arr_to_st(arrays, pa.array([[len(values)]], DTYPES["shape"]),
                                 pa.array([dtype]))[0]["data"].as_py()

    values = ["1.5", "-2", "12345678901234567.3"]
    for dtype, kind in (("F64", np.float64), ("F32", np.float32)):
        assert made(values, dtype) == np.array(values, np.float64).astype(kind).tobytes()
    assert made(["18446744073709551615"], "U64") == b"\xff" * 8
    assert made(["-7", "2.0"], "I8") == b"\xf9\x02" and made(["1"], "BOOL") == b"\x01"
    for wrong, dtype in (("1.5", "I32"), ("18446744073709551616", "U64"), ("-1", "U64"),
                         ("2", "BOOL"), ("9223372036854775808", "I64"), ("300", "U8")):
        with pytest.raises((ValueError, OverflowError), match="(?i)fit|expected|range"):
            made([wrong], dtype)


@pytest.mark.local
def test_functions_without_arrow_udf(spark, monkeypatch):
    monkeypatch.setattr(_functions, "_arrow_udf", lambda: None)
    df = spark.sql("select array(1.5f, 2.0f) a union all select null")
    got = df.select(_functions.st_to_array(_functions.arr_to_st("a", [2], "F16"), "double")
                    .alias("r")).collect()
    assert sorted(str(row.r) for row in got) == ["None", "[1.5, 2.0]"]


@pytest.mark.local
def test_functions_of_null(spark):
    from libsafetensors import spark as lss
    lss.register(spark)
    row = spark.sql("select st_to_array(null), arr_to_st(null, array(1), 'F32'), "
                    "st_to_array_bigint(arr_to_st(array(9007199254740993L), array(1), 'i64'))"
                    ).first()
    assert list(row) == [None, None, [2 ** 53 + 1]]


def test_deleted_rows(batches, tmp_path):
    """Rows of batches, whole or in parts; of whole tensors a refusal; of names as ever."""
    before = all_rows(reading(batches, layout="samples"))
    dataset.delete(batches, mask=[i % 3 == 0 for i in range(len(before))])
    left = [one for i, one in enumerate(before) if i % 3]
    assert all_rows(reading(batches, layout="samples")) == left
    small = reading(batches, layout="samples")
    small.partition_bytes = 1  # each row a part
    assert all_rows(small) == left
    assert all_rows(reading(batches, layout="samples", versionAsOf="1")) == before
    for layout in ("files", "tensors"):
        with pytest.raises(ValueError, match="without deleted rows.*layout=samples"):
            one = reading(batches, layout=layout)
            one.pieces(one.schema())
    dataset.compact(batches)
    assert all_rows(reading(batches, layout="samples")) == left
    assert all_rows(reading(batches, layout="tensors"))

    varied = str(tmp_path / "varied")
    rows = pa.table({"t": ["a", None, "é", "d"], "l": [[1], [], [2, 3], None],
                     "s": [{"x": 1}, {"x": None}, None, {"x": 4}]})
    dataset.write(rows, varied, batch_size=4)
    dataset.delete(varied, rows=[1])
    found = all_rows(reading(varied, layout="samples", **{"as": "array"}))
    assert len(found) == 3 and "é" in str(found)

    names = str(tmp_path / "names")
    dataset.write(pa.table({"name": ["a", "b", "c"], "v": [1, 2, 3]}), names, name_col="name")
    dataset.delete(names, keys=["b"])
    shown = [one for one in all_rows(reading(names, layout="tensors", columns="tensor_key"))]
    assert sorted(str(one) for one in shown) == sorted(
        str(one) for one in shown if "b__v" not in str(one)) and len(shown) == 2


def test_named_rows(keyed, tmp_path):
    """One row a name, with tensors of any shape; replaced and deleted rows are not there."""
    want = [{"name": "k%d" % i, "x": float(i)} for i in range(40)]
    key = lambda row: row["name"]  # noqa: E731
    for more in ({}, {"partition_mb": 1}):
        got = all_rows(reading(keyed, layout="samples", **{"as": "array"}, **more))
        assert sorted(got, key=key) == sorted(want, key=key)
    tensors = all_rows(reading(keyed, layout="samples"))
    assert {row["name"]: np.frombuffer(row["x"]["data"]).item() for row in tensors} == \
        {row["name"]: row["x"] for row in want}
    assert [*reading(keyed, layout="samples", columns="x").schema().names] == ["x"]
    assert len(all_rows(reading(keyed, layout="samples", columns="name"))) == 40
    for wrong in ({"columns": "k1__x"}, {"keys": "k1__x"}):
        with pytest.raises(ValueError, match="found k1__x; with layout=files names|keys:"):
            reading(keyed, layout="samples", **wrong).schema()
    with pytest.raises(ValueError, match="schema: expected some of name, x, found y"):
        reading(keyed, layout="samples").pieces(given(y=T.DoubleType()))

    path = str(tmp_path / "varied")
    rows = pa.table({"name": ["a", "b", "c"], "v": [[1], [2, 3], []], "w": [1, 2, 3]})
    options = {"name_col": "name", "duplicatesStrategy": "lastWin"}
    dataset.write(rows, path, **options)
    dataset.write(pa.table({"name": ["b", "d"], "v": [[9], [8]], "w": [9, 8]}), path,
                  mode="append", **options)
    dataset.delete(path, keys=["a"])
    got = all_rows(reading(path, layout="samples", **{"as": "array"}))
    assert sorted(got, key=key) == [{"name": "b", "v": [9], "w": 9}, {"name": "c", "v": [], "w": 3},
                                    {"name": "d", "v": [8], "w": 8}]
    before = all_rows(reading(path, layout="samples", versionAsOf="1", **{"as": "array"}))
    assert {row["name"]: row["v"] for row in before} == {"a": [1], "b": [2, 3], "c": []}
    dataset.compact(path, target_bytes=1 << 20)
    assert sorted(all_rows(reading(path, layout="samples", **{"as": "array"})), key=key) == \
        sorted(got, key=key)


def test_added_columns(tmp_path):
    """In files beside the shards, or nowhere; by each layout, whole or in parts."""
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(10), "t": ["é%d" % i for i in range(10)]}), path, batch_size=4)
    dataset.add_column(path, "y", np.arange(10, dtype=np.float32))
    dataset.add_column(path, "u", ["u%d" % i for i in range(10)])
    dataset.add_column(path, "s", [{"a": i, "b": [str(i)]} for i in range(10)])
    dataset.add_column(path, "l", [[i] * (i % 3) for i in range(10)])
    arrays = {"layout": "samples", "as": "array"}
    want = [{"x": i, "t": "é%d" % i, "y": float(i), "u": "u%d" % i, "s": {"a": i, "b": [str(i)]},
             "l": [i] * (i % 3)} for i in range(10)]
    assert all_rows(reading(path, **arrays)) == want
    tensors = all_rows(reading(path, layout="tensors"))
    assert {one["tensor_key"] for one in tensors} >= {"x", "y", "u", "u.offsets", "l", "s.a"}
    assert len(tensors) == len(dataset.ls(path)["tensors"])
    shown = all_rows(reading(path, layout="files", columns="x,y"))
    assert [np.frombuffer(one["y"]["data"], "<f4").tolist() for one in shown] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    dataset.write(pa.table({"x": [10], "t": ["a"]}), path, batch_size=4, mode="append")
    dataset.delete(path, rows=[0, 5])
    want = [*want[1:5], *want[6:], {"x": 10, "t": "a", "y": None, "u": None, "s": None, "l": None}]
    assert all_rows(reading(path, **arrays)) == want
    small = reading(path, **arrays)
    small.partition_bytes = 1  # each row a part
    assert all_rows(small) == want
    assert all_rows(reading(path, columns="u", **arrays)) == [{"u": one["u"]} for one in want]
    assert [one["y"] is None for one in all_rows(reading(path, layout="samples", columns="y"))] == [
        False] * 8 + [True]
    assert "y" not in all_rows(reading(path, versionAsOf="1", **arrays))[0]
    dataset.compact(path)
    assert all_rows(reading(path, **arrays)) == want
