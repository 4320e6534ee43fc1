"""dataset.delete: rows that are deleted are gone for every reader, whatever happens before and after;
histories are compared with a plain list of rows."""
import json
import os
import pathlib
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from test_dataset_writers import lockless, s3  # noqa: F401

from libsafetensors import SafetensorError, dataset

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

HISTORIES = int(os.environ.get("SFT_HISTORIES", "60"))

SCHEMA = pa.schema([
    ("x", pa.list_(pa.float32(), 2)), ("id", pa.int64()), ("text", pa.string()),
    ("blob", pa.large_binary()), ("tokens", pa.list_(pa.int32())),
    ("deep", pa.list_(pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))]))),
    ("who", pa.struct([("name", pa.string()), ("at", pa.timestamp("us"))])),
    ("grid", pa.list_(pa.list_(pa.float64()))), ("view", pa.string_view()),
    ("money", pa.decimal128(10, 2)), ("flag", pa.bool_())])


def row(some: random.Random, number: int, plain: bool) -> dict:
    """plain: nothing varies in length or is null."""
    import datetime
    import decimal
    def maybe(value):
        return value if plain or first or some.random() < 0.8 else None
    first = number < 2  # which make the columns vary from the first commit on
    width = 2 if plain else 3 * number if first else some.randrange(4)
    return {"x": [number, -number], "id": number, "text": maybe("é%d" % number),
            "blob": maybe(bytes([number % 256]) * width),
            "tokens": maybe([number + i for i in range(width)]),
            "deep": maybe([{"a": maybe(number % 999), "b": [maybe("t"), str(number)][:width]}
                           for _ in range(width)]),
            "who": maybe({"name": maybe(str(number)),
                          "at": datetime.datetime(2020, 1, 1) + datetime.timedelta(number)}),
            "grid": maybe([[float(number)] * 2 for _ in range(width)]),
            "view": maybe("v%d" % number), "money": maybe(decimal.Decimal(number)),
            "flag": maybe(number % 2 == 0)}


def table(rows: list, names: list) -> "pa.Table":
    return pa.Table.from_pylist(rows, pa.schema([SCHEMA.field(name) for name in names]))


def same(path: str, rows: list, names: list, **which) -> None:
    want = table(rows, names)
    with dataset.open(path, **which) as found:
        assert len(found) == len(rows)
        assert pa.table(found).equals(want), which
        if rows and "id" in names:
            some = np.random.default_rng(len(rows)).integers(0, len(rows), 5)
            assert found.take(some)["id"].tolist() == [rows[i]["id"] for i in some]
            assert found[-1]["id"].item() == rows[-1]["id"]


def whole(path: str, *, tidy: bool = False) -> None:
    """tidy: after gc there is nothing that no version names."""
    if tidy:
        dataset.gc(path, delete=True, grace=0)
    report = dataset.verify(path, deep=True)
    assert report["ok"] and not (tidy and report["orphan_count"]), report


def history(path: str, seed: int) -> None:
    """Commits of all kinds, each compared with the rows that it should leave."""
    some = random.Random(seed)
    plain = some.random() < 0.2
    names = sorted(some.sample(SCHEMA.names, some.randrange(1, len(SCHEMA.names) + 1)))
    names = ["id", *[name for name in names if name != "id"]]
    options = {"batch_size": some.randrange(1, 9), "tail_strategy": some.choice(["write", "pad"]),
               "manifest": some.choice(["whole", "segments"]), "sync": False,
               "keep_old": some.choice(["all", "0"])}
    number = some.randrange(2, 30)
    rows = [row(some, i, plain) for i in range(number)]
    dataset.write(table(rows, names), path, **options)
    versions = {1: list(rows)}
    now = 1
    for _ in range(some.randrange(1, 9)):
        kind = some.choice(["delete", "delete", "delete", "append", "compact", "overwrite", "gc"])
        if kind == "delete":
            gone = {i for i in range(len(rows)) if some.random() < some.choice([0.1, 0.5, 1.0])}
            if some.random() < 0.5:
                told = dataset.delete(path, mask=[i in gone for i in range(len(rows))])
            else:
                told = dataset.delete(path, rows=[i - some.choice([0, len(rows)]) for i in gone])
            assert told["deleted"] == len(gone) and told["rows_before"] == len(rows)
            rows = [one for i, one in enumerate(rows) if i not in gone]
            assert told["rows_after"] == len(rows)
            now += bool(gone)
        elif kind == "append":
            more = [row(some, number + i, plain) for i in range(some.randrange(1, 12))]
            number += len(more)
            made = dataset.write(table(more, names), path, mode="append",
                                 **{**options, "batch_size": some.randrange(1, 9)})
            rows = rows + more
            now += 1
            assert made["version"] == now
        elif kind == "compact":
            how = some.choice([{}, {"target_bytes": 1 << 20}, {"batch_size": some.randrange(1, 9)}])
            told = dataset.compact(path, **how, drop_old=some.random() < 0.3)
            with dataset.open(path) as found:
                now = found.version
            assert not dataset.info(path)["deleted_samples"], told
        elif kind == "overwrite":
            rows = [row(some, i, plain) for i in (0, 1, *range(number, number + some.randrange(9)))]
            number += len(rows)
            dataset.write(table(rows, names), path, mode="overwrite", **options)
            now += 1
        else:
            dataset.gc(path, delete=True, grace=0, **some.choice([{}, {"keep": 2}]))
        versions[now] = list(rows)
        same(path, rows, names)
        whole(path)
    kept = [one["version"] for one in dataset.versions(path)["versions"]]
    assert kept[-1] == now
    for version in kept:
        if version in versions:
            same(path, versions[version], names, version=version)
    whole(path, tidy=True)
    same(path, rows, names)


@pytest.mark.parametrize("part", [
    0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 4))])
def test_histories(tmp_path, part):
    for seed in range(part, HISTORIES, 4):
        path = str(tmp_path / ("%d" % seed))
        try:
            history(path, seed)
        except BaseException:
            print("seed", seed)
            raise
        shutil.rmtree(path)


# ── Names ──

def names_history(path: str, seed: int) -> None:
    some = random.Random(seed)
    columns = some.choice([["v"], ["v", "w"], ["v", "w", "w_v"]])
    options = {"name_col": "name", "duplicatesStrategy": "lastWin", "sync": False,
               "manifest": some.choice(["whole", "segments"]),
               "generate_index": some.choice(["true", "false"])}
    model: dict = {}
    number = 0

    def some_rows(allowed):
        nonlocal number
        names = some.sample(allowed, some.randrange(1, len(allowed) + 1))
        made = {}
        for name in names:
            number += 1
            made[name] = number
        return made

    def write(made, mode, **more):
        rows = pa.table({"name": list(made), **{column: list(made.values()) for column in columns}})
        dataset.write(rows, path, mode=mode, **{**options, **more})

    every = ["a", "b", "w__a", "é", "c__w", "d"]
    model.update(some_rows(every))
    write(model, "error")
    for _ in range(some.randrange(1, 9)):
        kind = some.choice(["delete", "delete", "append", "fail", "compact", "numbers"])
        if kind == "delete" and model:
            gone = some.sample(sorted(model), some.randrange(1, len(model) + 1))
            assert dataset.delete(path, keys=gone)["deleted"] == len(gone)
            for name in gone:
                del model[name]
                with pytest.raises(KeyError):
                    dataset.delete(path, keys=[name])
        elif kind == "append":
            more = some_rows(every)
            write(more, "append")
            model.update(more)
        elif kind == "fail":  # names of deleted rows are free
            more = some_rows(every)
            if set(more) & set(model):
                with pytest.raises(SafetensorError, match="expected every key once"):
                    write(more, "append", duplicatesStrategy="fail")
            else:
                write(more, "append", duplicatesStrategy="fail")
                model.update(more)
        elif kind == "compact":
            dataset.compact(path, target_bytes=some.choice([0, 1 << 20]))
            assert not dataset.info(path)["deleted_samples"]
        elif kind == "numbers" and model:
            with dataset.open(path) as found:
                chosen = some.randrange(len(found))
                del model[found[chosen]["name"]]
            assert dataset.delete(path, rows=chosen)["deleted"] == 1
        with dataset.open(path) as found:
            assert len(found) == len(model)
            assert {one["name"]: one["v"].item() for one in found} == model
            assert found.manifest["total_samples"] == len(model)
            for name in every:
                if name in model:
                    assert found[name][columns[-1]].item() == model[name]
                else:
                    with pytest.raises(KeyError):
                        found[name]
            shown = {one["name"] for one in dataset.ls(path)["tensors"]
                     if not one["replaced"] and not one["deleted_samples"]}
            assert shown == {name + "__" + column for name in model for column in columns}
            assert set(pa.table(found)["name"].to_pylist()) == set(model)
        whole(path)


def test_histories_of_names(tmp_path):
    for seed in range(HISTORIES):
        path = str(tmp_path / str(seed))
        try:
            names_history(path, seed)
        except BaseException:
            print("seed", seed)
            raise
        shutil.rmtree(path)


# ── What it says and refuses ──

@pytest.fixture
def numbers(tmp_path):
    path = str(tmp_path / "numbers")
    dataset.write(pa.table({"x": range(10)}), path, batch_size=4)
    return path


def xs(path, **which):
    with dataset.open(path, **which) as found:
        return [one["x"].item() for one in found]


def test_refusals(numbers):
    for wrong, kind in ((dict(rows=[10]), IndexError), (dict(rows=[-11]), IndexError),
                        (dict(rows=[1.5]), TypeError), (dict(mask=[True] * 9), ValueError),
                        (dict(mask=[1] * 10), ValueError), (dict(), ValueError),
                        (dict(rows=1, mask=[True] * 10), ValueError),
                        (dict(keys=["a"]), ValueError),
                        (dict(keys=["a"], version=1), ValueError)):
        with pytest.raises(kind):
            dataset.delete(numbers, **wrong)
    assert dataset.delete(numbers, rows=[])["version"] == 1
    assert dataset.delete(numbers, rows=range(3), dry_run=True)["rows_after"] == 7
    assert xs(numbers) == list(range(10))


def manifest_of(path):
    return json.loads((pathlib.Path(path) / "dataset_manifest.json").read_text("utf-8"))


def test_older_versions_refuse(numbers):
    """By format_version, as they do other formats that they do not know."""
    dataset.delete(numbers, rows=[0])
    manifest = manifest_of(numbers)
    assert manifest["format_version"] == "3.0" and manifest["features"] == ["deleted"]
    dataset.compact(numbers)
    manifest = manifest_of(numbers)
    assert manifest["format_version"] == "1.0" and "features" not in manifest


def test_an_unknown_feature_is_refused(numbers):
    dataset.delete(numbers, rows=[0])
    path = pathlib.Path(numbers) / "dataset_manifest.json"
    path.write_text(path.read_text("utf-8").replace('"features":["deleted"',
                                                    '"features":["deleted","more"'), "utf-8")
    with pytest.raises(SafetensorError, match="newer version"):
        dataset.open(numbers)


@pytest.mark.parametrize("harm", ["gone", "short", "changed"])
def test_masks_that_are_wrong(numbers, harm):
    """Nobody reads rows as if none were deleted."""
    dataset.delete(numbers, rows=[0])
    [name] = [name for name in os.listdir(numbers) if name.startswith(".dataset_masks-")]
    path = pathlib.Path(numbers) / name
    data = bytearray(path.read_bytes())
    path.unlink()
    if harm != "gone":
        data[-1] ^= 1
        path.write_bytes(data[:-1] if harm == "short" else data)
    with pytest.raises(SafetensorError, match="masks that the manifest names"):
        dataset.open(numbers)
    assert not dataset.verify(numbers)["ok"]
    with pytest.raises(SafetensorError):
        dataset.delete(numbers, rows=[1])
    with pytest.raises(SafetensorError):
        dataset.compact(numbers)
    assert xs(numbers, version=1) == list(range(10))


def test_numbers_of_a_version(numbers):
    """Appends and deletions since then do no harm, a compaction does."""
    with dataset.open(numbers) as found:
        version = found.version
    dataset.delete(numbers, rows=[0, 5])
    dataset.write(pa.table({"x": [10, 11]}), numbers, batch_size=4, mode="append")
    told = dataset.delete(numbers, rows=[5, 6], version=version)
    assert told["deleted"] == 1
    assert xs(numbers) == [1, 2, 3, 4, 7, 8, 9, 10, 11]
    dataset.compact(numbers)
    with pytest.raises(SafetensorError, match="which replaced some"):
        dataset.delete(numbers, rows=[7], version=version)
    assert xs(numbers) == [1, 2, 3, 4, 7, 8, 9, 10, 11]


def test_readers_stay_on_their_version(numbers):
    pytest.importorskip("torch")
    batches = dataset.TorchBatches(numbers, 2, shuffle=True, seed=3, ends="uneven")
    half = iter(batches)
    first = next(half)["x"].tolist()
    dataset.delete(numbers, mask=[i % 2 == 0 for i in range(10)])
    rest = [x for batch in half for x in batch["x"].tolist()]
    assert sorted(first + rest) == list(range(10))
    batches.refresh()
    assert sorted(x for batch in batches for x in batch["x"].tolist()) == [1, 3, 5, 7, 9]


def test_loaders_with_workers(numbers):
    pytest.importorskip("torch")
    dataset.delete(numbers, rows=[0, 3, 9])
    for options in ({}, {"partition": "shards"}, {"shuffle": "blocks"}):
        loader = dataset.TorchBatches(numbers, 2, ends="uneven", **options).loader(num_workers=2)
        assert sorted(x for batch in loader for x in batch["x"].tolist()) == [1, 2, 4, 5, 6, 7, 8]
    with dataset.open(numbers, split="0:50%") as found:
        assert [one["x"].item() for one in found] == [1, 2, 4]
        again = pickle.loads(pickle.dumps(found))
        assert [one["x"].item() for one in again] == [1, 2, 4]


def test_engines(numbers):
    dataset.delete(numbers, rows=[0, 2, 9])
    want = [1, 3, 4, 5, 6, 7, 8]
    with dataset.open(numbers) as ds:
        import pyarrow.compute as pc
        assert ds.scanner(["x"], filter=pc.field("x") > 4).to_table()["x"].to_pylist() == want[3:]
        assert ds.scanner(["x"], rows=range(1, 3)).to_table()["x"].to_pylist() == want[1:3]
        assert ds.to_pyarrow().count_rows() == len(want)
        assert [len(batch) for batch in ds.arrow_batches(size=2)] == [2, 2, 2, 1]
        duckdb = pytest.importorskip("duckdb")
        data = ds.to_pyarrow()
        assert [x for x, in duckdb.sql("select x from data order by x").fetchall()] == want
        polars = pytest.importorskip("polars")
        assert polars.DataFrame(ds)["x"].to_list() == want
        assert data is not None


def test_all_rows(numbers):
    dataset.delete(numbers, rows=range(10))
    with dataset.open(numbers) as found:
        assert len(found) == 0 and list(found.batches(3)) == [] and pa.table(found).num_rows == 0
    dataset.write(pa.table({"x": [5]}), numbers, batch_size=4, mode="append")
    assert xs(numbers) == [5]
    told = dataset.compact(numbers)
    assert told["shards_after"] == 1 and told["deleted_dropped"] == 10
    assert xs(numbers) == [5]
    whole(numbers)


# ── At once, and killed ──

WORKER = """
import os, random, sys, time
import pyarrow as pa
from libsafetensors import dataset
path, who, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
some = random.Random(who)
until, number = time.time() + seconds, 0
while time.time() < until:
    try:
        if who == 0:
            dataset.compact(path, target_bytes=1 << 20)
        elif who == 1:
            number += 1
            dataset.write(pa.table({"x": [1000000 + number]}), path, batch_size=4, mode="append",
                          sync=False)
            os.write(1, b"+ %d\\n" % (1000000 + number))
        else:
            with dataset.open(path) as found:
                rows = [one["x"].item() for one in found]
            mine = [i for i, x in enumerate(rows) if x % 2 == who % 2 and x < 1000000]
            if not mine:
                break
            chosen = some.sample(mine, min(3, len(mine)))
            os.write(1, b"? %s\\n" % b" ".join(b"%d" % rows[i] for i in chosen))
            dataset.delete(path, rows=chosen, version=found.version)
            os.write(1, b"- %s\\n" % b" ".join(b"%d" % rows[i] for i in chosen))
    except Exception as error:
        if getattr(error, "code", None) not in ("dataset_changed", "dataset_busy",
                                                "manifest_missing"):
            raise
"""


def workers(script, path, seconds, env=None):
    """Four that run at once."""
    return [subprocess.Popen([sys.executable, "-c", script, path, str(who), str(seconds)],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
            for who in range(4)]


def told_by(running):
    """The lines of all, once they end."""
    return [line for one in running for line in one.communicate(timeout=100)[0].splitlines()]


def told_well(running):
    told = told_by(running)
    assert all(one.returncode == 0 for one in running)
    return told


def told_until_killed(running, after):
    time.sleep(after)
    for one in running:
        one.kill()
    return told_by(running)


def settled(path, told):
    """What was said to be deleted is gone, the rest there, and what was appended."""
    gone, asked, more = set(), set(), set()
    for line in told:
        word, *values = line.split()
        {"-": gone, "?": asked, "+": more}[word].update(map(int, values))
    left = set(xs(path))
    assert not gone & left
    assert set(range(200)) - asked <= left
    assert more <= left
    assert len(xs(path)) == len(left)
    whole(path, tidy=True)


@pytest.mark.long
def test_at_once(tmp_path):
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(200)}), path, batch_size=16)
    told = told_well(workers(WORKER, path, 2.0))
    assert any(line[0] == "-" for line in told)
    settled(path, told)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed(tmp_path):
    """Whenever a writer dies, the dataset is that of the commit before or after."""
    some = random.Random(1)
    for turn in range(3):
        path = str(tmp_path / str(turn))
        dataset.write(pa.table({"x": range(200)}), path, batch_size=16)
        told = told_until_killed(workers(WORKER, path, 3.0), 0.7 + some.random() * 0.6)
        settled(path, [line for line in told if line.strip()])


# ── Storages without locks ──

def both(path, **storage):
    """Two deletions of the same version and an append between, on whatever storage."""
    dataset.write(pa.table({"x": range(20)}), path, batch_size=8, **storage)
    with dataset.open(path, **storage) as found:
        version = found.version
    dataset.delete(path, rows=[0, 19], **storage)
    dataset.write(pa.table({"x": [20]}), path, batch_size=8, mode="append", **storage)
    assert dataset.delete(path, rows=[1, 19], version=version, **storage)["deleted"] == 1
    want = [x for x in range(21) if x not in (0, 1, 19)]
    with dataset.open(path, **storage) as found:
        assert found.take(range(len(found)))["x"].tolist() == want
        assert [one["x"].item() for one in found] == want
        assert pa.table(found)["x"].to_pylist() == want
    assert dataset.verify(path, deep=True, **storage)["ok"]
    dataset.compact(path, **storage)
    with dataset.open(path, **storage) as found:
        assert found.take(range(len(found)))["x"].tolist() == want
    dataset.gc(path, delete=True, grace=0, keep=1, **storage)
    report = dataset.verify(path, deep=True, **storage)
    assert report["ok"] and not report["orphan_count"]


@pytest.mark.long
def test_in_s3(s3):  # noqa: F811
    both("s3://bucket/d", **s3)


@pytest.mark.long
def test_without_locks(tmp_path, lockless):  # noqa: F811
    """With numbered commit files, and several writers at once."""
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(200)}), path, batch_size=16)
    told = told_well(workers(WORKER, path, 2.0, {"LD_PRELOAD": lockless}))
    assert any(line[0] == "-" for line in told)
    settled(path, told)
    assert list((tmp_path / "d").glob(".dataset_manifest.commit-*"))


def test_masked_elements_choose_no_rows(tmp_path):
    dataset.write(pa.table({"x": [0, 1, 2, 3]}), tmp_path / "b", batch_size=2)
    dataset.write(pa.table({"n": ["a", "b"], "x": [0, 1]}), tmp_path / "k", name_col="n")
    masked = np.ma.array([0, 3], mask=[False, True])
    marks = np.ma.array([True, True, False, False], mask=[False, True, False, False])
    for wrong in ({"rows": masked}, {"mask": marks}):
        with pytest.raises(ValueError, match="%s: expected an array without masked elements, "
                                             "found 1 of them" % next(iter(wrong))):
            dataset.delete(tmp_path / "b", **wrong)
    for path in (tmp_path / "b", tmp_path / "k"):
        with pytest.raises(ValueError, match="rows: expected an array without masked elements"):
            dataset.open(path).take(np.ma.array([0, 1], mask=[False, True]))
        taken = dataset.open(path).take(np.ma.array([1, 0], mask=[False, False]))
        assert taken["x"].tolist() == [1, 0]
    assert len(dataset.open(tmp_path / "b")) == 4
    assert dataset.delete(tmp_path / "b", rows=np.ma.array([0, 3]))["deleted"] == 2
