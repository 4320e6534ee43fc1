"""Datasets as tables of DuckDB, Polars and HF datasets, for real: the rows that pyarrow has."""
import datetime
import decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from libsafetensors import dataset

duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
datasets = pytest.importorskip("datasets")


def photos(rows=40):
    """Of rows: bytes, text, lists, structs, times, decimals, booleans; nulls in each."""
    def some(i, value):
        return None if i % 7 == 3 else value
    each = range(rows)
    return pa.table({
        "id": each,
        "jpeg": [some(i, bytes([i]) * i) for i in each],
        "caption": [some(i, "a fox %d ✓" % i) for i in each],
        "tokens": [some(i, list(range(i % 5))) for i in each],
        "pixels": pa.array([[i / 2, 1.0] for i in each], pa.list_(pa.float32())),
        "who": [some(i, {"name": "n%d" % i, "tags": ["t", None][:i % 3]}) for i in each],
        "at": pa.array([some(i, datetime.datetime(2024, 3, 31, 1, i)) for i in each],
                       pa.timestamp("us")),
        "price": pa.array([some(i, decimal.Decimal(i) / 4) for i in each], pa.decimal128(10, 2)),
        "good": [some(i, i % 2 == 0) for i in each]})


@pytest.fixture(params=["whole", "segments"])
def ds(tmp_path, request):
    dataset.write(photos(25), tmp_path / "d", batch_size=8, manifest=request.param)
    dataset.write(photos().slice(25), tmp_path / "d", batch_size=4, mode="append")
    with dataset.open(tmp_path / "d") as made:
        yield made


def test_duckdb(ds):
    table, data = photos(), ds.to_pyarrow()
    for rows in ("ds", "data"):
        assert duckdb.sql("from %s" % rows).to_arrow_table().cast(table.schema) == table
        found = duckdb.sql("select who.name, len(tokens), price, \"at\" from %s where good and id > 30 "
                           "order by id" % rows).fetchall()
        assert found == [("n%d" % i, i % 5, decimal.Decimal(i) / 4,
                          datetime.datetime(2024, 3, 31, 1, i)) for i in (32, 34, 36)]
        assert duckdb.sql("select count(*), count(jpeg), sum(octet_length(jpeg)) from %s" % rows).fetchall() \
            == [(40, 34, sum(i for i in range(40) if i % 7 != 3))]
        assert duckdb.sql("select a.id from {0} a join {0} b on a.id = b.id + 39".format(rows)) \
            .fetchall() == [(39,)]
    con = duckdb.connect()
    con.register("named", data)
    assert con.sql("select max(id) from named").fetchall() == [(39,)]


def test_polars(ds):
    table = polars.DataFrame(photos())
    assert polars.DataFrame(ds).equals(table)
    lazy = polars.scan_pyarrow_dataset(ds.to_pyarrow())
    assert lazy.collect().equals(table)
    few = lazy.filter(polars.col("id").is_in([5, 31])).select("caption", "who").collect()
    assert few.equals(table.filter(polars.col("id").is_in([5, 31])).select("caption", "who"))
    assert lazy.select(polars.len()).collect().item() == 40
    assert lazy.slice(33, 3).collect().equals(table.slice(33, 3))


def test_arrow(ds):
    table = photos()
    assert pa.table(ds) == table and ds.to_pyarrow().to_table() == table
    assert ds.scanner(["caption"], rows=range(20, 30), filter=pc.field("good")).to_table() == \
        table.slice(20, 10).filter(pc.field("good")).select(["caption"])


def test_hf(ds, tmp_path):
    table = photos()
    made = datasets.Dataset(pa.table(ds))
    assert made.num_rows == 40 and made.data.table.cast(table.schema) == table
    assert made[32] == table.slice(32, 1).to_pylist()[0]
    assert made.with_format("numpy")[5]["pixels"].tolist() == [2.5, 1.0]
    assert datasets.Dataset.from_polars(polars.DataFrame(ds))["caption"][:] == \
        table["caption"].to_pylist()
    parts = datasets.IterableDataset.from_generator(
        lambda: (row for batch in ds.arrow_batches() for row in batch.to_pylist()))
    assert list(parts) == table.to_pylist()
    # And back.
    dataset.write(made.with_format("arrow")[:], tmp_path / "back", batch_size=16)
    with dataset.open(tmp_path / "back") as back:
        assert pa.table(back).cast(table.schema) == table


def test_names(tmp_path):
    dataset.write(pa.table({"k": ["a", "b"], "x": [[1, 2], [3]]}), tmp_path / "kv", name_col="k")
    with dataset.open(tmp_path / "kv") as ds:
        assert duckdb.sql("select k, x.shape, x.dtype from ds order by k").fetchall() == \
            [("a", [2], "I64"), ("b", [1], "I64")]
        assert polars.DataFrame(ds)["k"].to_list() == ["a", "b"]
        assert datasets.Dataset(pa.table(ds))[1]["x"]["data"] == (3).to_bytes(8, "little")
