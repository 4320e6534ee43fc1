"""dataset.add_column and merge_schema: columns that shards lack are in files beside them, or null, for
every reader, whatever happens before and after; histories are compared with a list of rows."""
import hashlib
import json
import os
import pathlib
import pickle
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from test_dataset_delete import (HISTORIES, SCHEMA, row, table, told_until_killed, told_well, whole,
                                 workers, xs)
from test_dataset_writers import lockless, s3  # noqa: F401

from libsafetensors import SafetensorError, dataset

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")


def shown(value):
    """What a row of a reader is in the model."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def same(path: str, rows: list, names: list, **which) -> None:
    want = table([{name: one.get(name) for name in names} for one in rows], names)
    with dataset.open(path, **which) as found:
        assert len(found) == len(rows)
        assert pa.table(found).equals(want), which
        told = [name for name in ("id", "text", "tokens", "x", "flag", "blob") if name in names]
        for i in ([0, len(rows) // 2, len(rows) - 1] if rows else []):
            one = found[i]
            assert {name: shown(one[name]) for name in told} == {
                name: want[name][i].as_py() for name in told}
        if rows:
            some = np.random.default_rng(len(rows)).integers(0, len(rows), 5).tolist()
            taken = found.take(some)
            assert {name: [shown(one) for one in taken[name]] for name in told} == {
                name: [want[name][i].as_py() for i in some] for name in told}
        name = names[-1]
        assert found.to_arrow([name]).equals(want.select([name]))
    with dataset.open(path, columns=[name], **which) as found:
        assert pa.table(found).equals(want.select([name]))
        again = pickle.loads(pickle.dumps(found))
        assert pa.table(again).equals(want.select([name]))


def values(some: random.Random, name: str, count: int, number: int, plain: bool) -> list:
    """As row makes them: the first two make the column vary."""
    return [row(some, i if i < 2 else number + i, plain)[name] for i in range(count)]


def history(path: str, seed: int) -> None:
    some = random.Random(seed)
    plain = some.random() < 0.2
    names = ["id", *some.sample([name for name in SCHEMA.names if name != "id"], 3)]
    optional: set = set()
    options = {"batch_size": some.randrange(1, 9), "tail_strategy": some.choice(["write", "pad"]),
               "manifest": some.choice(["whole", "segments"]), "sync": False,
               "keep_old": some.choice(["all", "0"])}
    number = some.randrange(2, 20)
    rows = [{name: row(some, i, plain)[name] for name in names} for i in range(number)]
    dataset.write(table(rows, names), path, **options)
    versions = {1: (list(rows), list(names))}
    now = 1
    for _ in range(some.randrange(2, 10)):
        kind = some.choice(["add", "add", "add", "delete", "append", "append", "merge", "merge",
                            "compact", "overwrite", "gc"])
        others = [name for name in SCHEMA.names if name not in names]
        if kind == "add" and others and len(rows) > 1:
            name = some.choice(others)
            number += len(rows)
            made = values(some, name, len(rows), number, plain)
            told = dataset.add_column(path, name, pa.array(made, SCHEMA.field(name).type))
            assert told["rows"] == len(rows) and told["columns"] == [name]
            rows = [{**one, name: value} for one, value in zip(rows, made)]
            names = [*names, name]
            optional.add(name)
            now += 1
        elif kind == "delete" and rows:
            gone = {i for i in range(len(rows)) if some.random() < some.choice([0.1, 0.5, 1.0])}
            dataset.delete(path, rows=list(gone))
            rows = [one for i, one in enumerate(rows) if i not in gone]
            now += bool(gone)
        elif kind in ("append", "merge"):
            count = some.randrange(2, 12)
            lacks = {name for name in names if name in optional or kind == "merge"}
            lacks = {name for name in lacks if name != "id" and some.random() < 0.4}
            more = [name for name in names if name not in lacks]
            fresh = some.sample(others, some.randrange(2)) if kind == "merge" and others else []
            some.shuffle(more)
            made = [{name: row(some, i if i < 2 else number + i, plain)[name]
                     for name in [*more, *fresh]} for i in range(count)]
            number += count
            dataset.write(table(made, [*more, *fresh]), path, mode="append", **{
                **options, "batch_size": some.randrange(1, 9),
                "merge_schema": True if kind == "merge" else None})
            rows = rows + made
            names = names + fresh
            optional.update(fresh)
            now += 1
        elif kind == "compact":
            how = some.choice([{}, {"target_bytes": 1 << 20}, {"batch_size": some.randrange(1, 9)}])
            told = dataset.compact(path, **how, drop_old=some.random() < 0.3)
            with dataset.open(path) as found:
                now = found.version
                assert "features" not in found.manifest, told
        elif kind == "overwrite":
            rows = [{name: row(some, i, plain)[name] for name in names}
                    for i in (0, 1, *range(number, number + some.randrange(9)))]
            number += len(rows)
            optional = set()
            dataset.write(table(rows, names), path, mode="overwrite", **options)
            now += 1
        else:
            dataset.gc(path, delete=True, grace=0, **some.choice([{}, {"keep": 2}]))
        versions[now] = list(rows), list(names)
        same(path, rows, names)
        whole(path)
    kept = [one["version"] for one in dataset.versions(path)["versions"]]
    assert kept[-1] == now
    for version in kept:
        if version in versions:
            same(path, *versions[version], version=version)
    whole(path, tidy=True)
    same(path, rows, names)


@pytest.mark.parametrize("part", [
    0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 12))])
def test_histories(tmp_path, part):
    for seed in range(part, HISTORIES, 12):
        path = str(tmp_path / ("%d" % seed))
        try:
            history(path, seed)
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


def manifest_of(path):
    return json.loads((pathlib.Path(path) / "dataset_manifest.json").read_text("utf-8"))


def column(path, name, **which):
    with dataset.open(path, columns=[name], **which) as found:
        return found.to_arrow()[name].to_pylist()


def test_values_of_all_kinds(numbers):
    torch = pytest.importorskip("torch")
    dataset.add_column(numbers, "list", [1, None, *range(8)])
    dataset.add_column(numbers, "array", np.arange(20, dtype=np.float16).reshape(10, 2))
    dataset.add_column(numbers, "tensor", torch.arange(10))
    dataset.add_column(numbers, "series", pa.chunked_array([["a"] * 4, ["b"] * 6]))
    dataset.add_column(numbers, "half", [0.1] * 10, dtype="BF16")
    assert column(numbers, "list") == [1, None, *range(8)]
    assert column(numbers, "array")[-1] == [18, 19] and column(numbers, "tensor") == list(range(10))
    assert column(numbers, "series") == ["a"] * 4 + ["b"] * 6
    with dataset.open(numbers) as found:
        assert found.schema["half"]["dtype"] == "BF16" and found.schema["list"]["nullable"]


def test_refusals(numbers, tmp_path):
    dataset.add_column(numbers, "a", range(10))
    before = manifest_of(numbers)
    for name, made, text in (("a", range(10), "one that the dataset lacks"),
                             ("x", range(10), "one that the dataset lacks"),
                             ("b", range(9), "values of 10 rows, as the dataset has in version 2"),
                             ("x.valid", range(10), "one of tensors of the column x"),
                             ("a.offsets", range(10), "one of tensors of the column a")):
        with pytest.raises(ValueError, match=text):
            dataset.add_column(numbers, name, list(made))
    fixed = pa.array([[["a"], ["b"]]] * 10, pa.list_(pa.list_(pa.string()), 2))
    with pytest.raises(ValueError, match="column that shards may lack"):
        dataset.add_column(numbers, "fixed", fixed)
    assert dataset.add_column(numbers, "b", list(range(10)), dry_run=True)["bytes"] is None
    assert manifest_of(numbers) == before and not dataset.verify(numbers)["orphan_count"]
    names = str(tmp_path / "names")
    dataset.write(pa.table({"name": ["a"], "v": [1]}), names, name_col="name")
    with pytest.raises(ValueError, match="in batch mode"):
        dataset.add_column(names, "w", [1])


def test_appends(numbers):
    """Columns that were added may be missing; others, and new ones, only by an option."""
    dataset.add_column(numbers, "y", [i * 2 for i in range(10)])
    dataset.write(pa.table({"x": [10]}), numbers, batch_size=4, mode="append")
    dataset.write(pa.table({"y": [22], "x": [11]}), numbers, batch_size=4, mode="append")
    assert column(numbers, "y") == [*range(0, 20, 2), None, 22]
    for rows in ({"y": [1]}, {"x": [1], "z": [1]}):
        with pytest.raises(ValueError, match="column"):
            dataset.write(pa.table(rows), numbers, batch_size=4, mode="append")
    dataset.write(pa.table({"y": [24], "z": ["new"]}), numbers, batch_size=4, mode="append",
                  merge_schema=True)
    assert column(numbers, "x") == [*range(12), None]
    assert column(numbers, "z") == [None] * 12 + ["new"]
    with pytest.raises(ValueError, match="one of tensors of the column z"):
        dataset.write(pa.table({"x": [1], "z.valid": [True]}), numbers, batch_size=4, mode="append",
                      merge_schema=True)
    with pytest.raises(ValueError, match="column x: expected"):
        dataset.write(pa.table({"x": [1.5]}), numbers, batch_size=4, mode="append",
                      merge_schema=True)
    with pytest.raises(ValueError, match="merge_schema"):
        dataset.write(pa.table({"x": [1]}), numbers, batch_size=4, mode="append", compat="upstream",
                      merge_schema=True)
    whole(numbers)
    before = [column(numbers, name) for name in "xyz"]
    dataset.compact(numbers)
    assert [column(numbers, name) for name in "xyz"] == before
    dataset.write(pa.table({"x": [13]}), numbers, batch_size=4, mode="append")  # y, z stay optional
    assert column(numbers, "z")[-1] is None


def test_rows_of_a_version(numbers):
    """Appends, deletions and other columns since then do no harm, a compaction does."""
    version = dataset.versions(numbers)["versions"][-1]["version"]
    dataset.delete(numbers, rows=[3])
    dataset.write(pa.table({"x": [10]}), numbers, batch_size=4, mode="append")
    dataset.add_column(numbers, "other", list(range(10)))
    dataset.add_column(numbers, "y", list(range(10)), version=version)
    assert column(numbers, "y") == [0, 1, 2, 4, 5, 6, 7, 8, 9, None]
    dataset.compact(numbers)
    with pytest.raises(SafetensorError, match="which replaced some"):
        dataset.add_column(numbers, "z", list(range(10)), version=version)
    whole(numbers, tidy=True)


def test_older_versions_refuse(numbers):
    dataset.add_column(numbers, "y", list(range(10)))
    manifest = manifest_of(numbers)
    assert manifest["format_version"] == "3.0" and manifest["features"] == ["columns"]
    dataset.delete(numbers, rows=[0])
    assert manifest_of(numbers)["features"] == ["deleted", "columns"]
    dataset.compact(numbers)
    manifest = manifest_of(numbers)
    assert manifest["format_version"] == "1.0" and "features" not in manifest


def test_index(tmp_path):
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(10)}), path, batch_size=4, generate_index=True)
    assert dataset.add_column(path, "y", list(range(10)))["index_removed"]
    assert manifest_of(path)["index"] is None
    assert "_tensor_index.parquet" not in os.listdir(path)
    with pytest.raises(ValueError, match="generate_index: expected false"):
        dataset.write(pa.table({"x": [1]}), path, batch_size=4, mode="append", generate_index=True)
    dataset.compact(path)
    dataset.write(pa.table({"x": [1]}), path, batch_size=4, mode="append", generate_index=True)
    whole(path)


def test_listed(numbers):
    dataset.add_column(numbers, "y", ["é%d" % i for i in range(10)])
    told = {one["name"] for one in dataset.ls(numbers)["tensors"]}
    assert told == {"x", "y", "y.offsets"}
    assert dataset.info(numbers)["places"] == 3
    with dataset.open(numbers, use_manifest=False) as found:  # who lists the folder sees its rows
        assert len(found) == 10 and found.columns == ["x"]


def test_loaders(numbers):
    torch = pytest.importorskip("torch")
    dataset.add_column(numbers, "y", [[i] * (i % 3) for i in range(10)])
    dataset.add_column(numbers, "t", np.arange(10, dtype=np.float32))
    dataset.write(pa.table({"x": [10, 11]}), numbers, batch_size=4, mode="append")
    want = {x: (None if x > 9 else [x] * (x % 3), None if x > 9 else float(x)) for x in range(12)}
    for options in ({}, {"partition": "shards"}, {"shuffle": True}, {"shuffle": "blocks"}):
        loader = dataset.TorchBatches(numbers, 5, ends="uneven", **options).loader(num_workers=2)
        found = {}
        for batch in loader:
            for x, y, t in zip(batch["x"].tolist(), batch["y"], batch["t"]):
                found[x] = (None if y is None else y.tolist(), None if t is None else t.item())
        assert found == want
    for batch in dataset.TorchBatches(numbers, 6, collate="padded", ends="uneven"):
        batch["t"] += torch.ones(len(batch["t"]))  # its own memory
    assert column(numbers, "t")[:3] == [0, 1, 2]


def test_a_loader_continues(numbers):
    """Rows and their order are the same, so a state from before is good."""
    pytest.importorskip("torch")
    batches = dataset.TorchBatches(numbers, 2, shuffle=True, seed=3, ends="uneven")
    half = iter(batches)
    first = next(half)["x"].tolist()
    state = batches.state_dict()
    dataset.add_column(numbers, "y", list(range(10)))
    later = dataset.TorchBatches(numbers, 2, shuffle=True, seed=3, ends="uneven")
    later.load_state_dict(state)
    rest = [(x, y) for batch in later for x, y in zip(batch["x"].tolist(), batch["y"].tolist())]
    assert sorted(first + [x for x, _ in rest]) == list(range(10))
    assert all(x == y for x, y in rest)


def test_engines(numbers):
    dataset.add_column(numbers, "y", [i % 2 for i in range(10)])
    dataset.delete(numbers, rows=[0])
    dataset.write(pa.table({"x": [10]}), numbers, batch_size=4, mode="append")
    with dataset.open(numbers) as ds:
        import pyarrow.compute as pc
        assert ds.scanner(["x"], filter=pc.field("y") == 1).to_table()["x"].to_pylist() == [
            1, 3, 5, 7, 9]
        from libsafetensors.dataset._tasks import tasks_of
        for count in (1, 3, 20):  # as Ray Data and Daft read it
            tasks = pickle.loads(pickle.dumps(tasks_of(ds, count)))
            found = pa.Table.from_batches([one for task in tasks for one in task.batches()])
            assert found["x"].to_pylist() == list(range(1, 11))
            assert found["y"].to_pylist() == [*(i % 2 for i in range(1, 10)), None]
        duckdb = pytest.importorskip("duckdb")
        data = ds.to_pyarrow()
        assert duckdb.sql("select count(*) from data where y is null").fetchall() == [(1,)]
        polars = pytest.importorskip("polars")
        assert polars.DataFrame(ds)["y"].to_list()[-1] is None
        assert data is not None


def test_nulls_take_no_memory(tmp_path):
    """A column of 400 MB that shards lack is not made before it is read."""
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(200000)}), path, batch_size=200000)
    wide = pa.array([[0.0] * 500], pa.list_(pa.float32(), 500))
    dataset.write(pa.table({"wide": wide}), path, batch_size=4, mode="append", merge_schema=True)
    code = """if True:
        import resource, sys
        from libsafetensors import dataset
        with dataset.open(sys.argv[1]) as found:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert found[150000]["wide"] is None
            assert found.take([5, 199999])["wide"][1] is None
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100000
    """
    subprocess.run([sys.executable, "-c", code, path], check=True)


# ── Files that are wrong ──

def places_file(path):
    [name] = [name for name in os.listdir(path) if name.startswith(".dataset_columns-")]
    return pathlib.Path(path) / name


@pytest.mark.parametrize("harm", ["gone", "short", "changed"])
@pytest.mark.parametrize("which", ["places", "column"])
def test_files_that_are_wrong(numbers, harm, which):
    """Nobody reads nulls, or other rows, instead."""
    dataset.add_column(numbers, "y", list(range(10)))
    path = places_file(numbers)
    if which == "column":
        path = min(pathlib.Path(numbers).glob(".part-*"))
    data = bytearray(path.read_bytes())
    path.unlink()
    if harm != "gone":
        data[-1] ^= 1
        path.write_bytes(data[:-1] if harm == "short" else data)
    assert not dataset.verify(numbers, deep=True)["ok"]
    assert xs(numbers, version=1) == list(range(10))
    if which == "places":
        for call in (dataset.open, dataset.compact, lambda path: dataset.delete(path, rows=[1])):
            with pytest.raises(SafetensorError, match="places that the manifest names"):
                call(numbers)
    elif harm != "changed":  # which only digests tell
        with pytest.raises(SafetensorError, match=r"\.part-"):
            column(numbers, "y")
        with pytest.raises(SafetensorError):
            dataset.compact(numbers)
        assert column(numbers, "x") == list(range(10))


def tensors_of(data):
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def forged(path, places):
    """A file of these places, named by the manifest."""
    old = places_file(path)
    names = b"".join(part.encode("utf-8", "surrogateescape") + b"\0" for shard, name, file, *_ in places
                     for part in (shard, name, file))
    parts = {"bytes": ("U64", [len(places)], b"".join(struct.pack("<Q", one[3]) for one in places)),
             "sha256": ("U8", [len(places), 32], b"".join(one[4] for one in places)),
             "names": ("U8", [len(names)], names)}
    header, data = {}, b""
    for name, (dtype, shape, raw) in parts.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    made = struct.pack("<Q", len(text)) + text + data
    digest = hashlib.sha256(made).hexdigest()
    (pathlib.Path(path) / (".dataset_columns-" + digest)).write_bytes(made)
    file = pathlib.Path(path) / "dataset_manifest.json"
    manifest = json.loads(file.read_text("utf-8"))
    manifest["places"] = {"sha256": digest, "bytes": len(made), "count": len(places)}
    file.write_text(json.dumps(manifest), "utf-8")
    if old.name != ".dataset_columns-" + digest:
        old.unlink()


def test_an_attackers_places(numbers, tmp_path):
    """Each is an error for whoever opens it, but for those that only a file tells."""
    dataset.add_column(numbers, "y", list(range(10)))
    header, data = tensors_of(places_file(numbers).read_bytes())
    begin, end = header["names"]["data_offsets"]
    texts = data[begin:end].decode().split("\0")[:-1]
    sizes = header["bytes"]["data_offsets"][0]
    sums = header["sha256"]["data_offsets"][0]
    good = [(*texts[3 * i:3 * i + 3], struct.unpack_from("<Q", data, sizes + 8 * i)[0],
             data[sums + 32 * i:sums + 32 * i + 32]) for i in range(3)]
    forged(numbers, good)
    assert column(numbers, "y") == list(range(10))
    secret = tmp_path / "secret.safetensors"
    shutil.copy(pathlib.Path(numbers) / good[0][2], secret)
    none = ("", 0, bytes(32))

    def changed(i, **what):
        keys = ("shard", "column", "file", "bytes", "sha256")
        one = dict(zip(keys, good[i]))
        return [*good[:i], tuple({**one, **what}.values()), *good[i + 1:]]

    cases = [changed(0, file="../secret.safetensors"), changed(0, file=str(secret)),
             changed(0, file=good[0][0]), changed(0, file="secret.safetensors"),
             changed(0, file="./" + good[0][2]), changed(0, file=good[1][2]), changed(0, column="z"), changed(0, column=""),
             changed(0, shard="part-99999-0000-%s.safetensors" % good[0][0][-48:-12]),
             changed(0, shard="../" + good[0][0]), changed(1, file=""), changed(1, sha256=bytes(32)),
             [good[1], good[0], good[2]], [good[0], *good], good[:1] + [(*good[1][:2], *none)] + good[2:],
             [*good, ("part", "x", *none)]]
    for case in cases:
        forged(numbers, case)
        for call in (dataset.open, dataset.compact, lambda path: dataset.delete(path, rows=[1]),
                     lambda path: dataset.add_column(path, "n", list(range(10))), dataset.ls):
            with pytest.raises((SafetensorError, ValueError)):
                call(numbers)
        assert not dataset.verify(numbers)["ok"], case
        try:
            dataset.gc(numbers, delete=True, grace=0)
        except SafetensorError:
            pass
        assert secret.exists() and len(list(pathlib.Path(numbers).glob("*part-*"))) >= 3
    for case in (changed(0, bytes=good[0][3] + 1), changed(0, column="x"), good[:2]):
        forged(numbers, case)  # of another size; a column that is there twice; and one that is not
        assert not dataset.verify(numbers)["ok"], case
        with pytest.raises((SafetensorError, KeyError)):
            dataset.compact(numbers)
        with pytest.raises((SafetensorError, KeyError)):
            column(numbers, "y")


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
        number += 1
        if who == 0:
            dataset.compact(path, target_bytes=1 << 20)
            time.sleep(0.05)
        elif who == 1:
            dataset.write(pa.table({"x": [1000000 + number]}), path, batch_size=4, mode="append",
                          sync=False)
            os.write(1, b"+ %d\\n" % (1000000 + number))
        else:
            with dataset.open(path) as found:
                rows = found.to_arrow(["x"])["x"].to_pylist()
            name = "c%d_%d" % (who, number)
            if who == 2 and number % 3 == 0:
                gone = some.randrange(len(rows))
                os.write(1, b"? %d\\n" % rows[gone])
                dataset.delete(path, rows=[gone], version=found.version)
                os.write(1, b"- %d\\n" % rows[gone])
                continue
            dataset.add_column(path, name, [x * who for x in rows], version=found.version)
            os.write(1, b"c %s\\n" % name.encode())
            if number > 12:
                break
    except Exception as error:
        if getattr(error, "code", None) not in ("dataset_changed", "dataset_busy",
                                                "manifest_missing"):
            raise
"""


def settled(path, told):
    """Columns that were said to be there are, with the values of their rows or null; so are rows."""
    gone, asked, more, names = set(), set(), set(), set()
    for line in told:
        word, value = line.split()
        if word == "c":
            names.add(value)
        else:
            {"-": gone, "?": asked, "+": more}[word].add(int(value))
    with dataset.open(path) as found:
        rows = pa.table(found).to_pylist()
    left = [one["x"] for one in rows]
    assert len(set(left)) == len(left) and not gone & set(left)
    assert set(range(100)) - asked <= set(left) and more - asked <= set(left)
    for one in rows:
        assert names <= set(one)
        for name, value in one.items():
            assert name == "x" or value in (one["x"] * int(name[1]), None)
            assert name == "x" or one["x"] >= 1000000 or value is not None
    whole(path, tidy=True)


def test_at_once(tmp_path):
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(100)}), path, batch_size=16)
    told = told_well(workers(WORKER, path, 1.0))
    assert any(line[0] == "c" for line in told)
    settled(path, told)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed(tmp_path):
    """Whenever a writer dies, the dataset is that of the commit before or after."""
    some = random.Random(1)
    for turn in range(2):
        path = str(tmp_path / str(turn))
        dataset.write(pa.table({"x": range(100)}), path, batch_size=16)
        told = told_until_killed(workers(WORKER, path, 4.0), 0.9 + some.random() * 0.8)
        settled(path, [line for line in told if len(line.split()) == 2])


# ── Other storages ──

def both(path, **storage):
    """Columns, deletions and an append between, on whatever storage."""
    dataset.write(pa.table({"x": range(20)}), path, batch_size=8, **storage)
    dataset.add_column(path, "y", [str(x) for x in range(20)], **storage)
    dataset.delete(path, rows=[0, 19], **storage)
    dataset.write(pa.table({"x": [20]}), path, batch_size=8, mode="append", **storage)
    dataset.add_column(path, "z", np.arange(20, dtype=np.float32), version=2, **storage)
    want = [{"x": x, "y": str(x), "z": float(x)} for x in range(1, 19)] + [
        {"x": 20, "y": None, "z": None}]
    for turn in range(2):
        with dataset.open(path, **storage) as found:
            assert pa.table(found).to_pylist() == want
            assert list(found.take([18, 3, 0])["y"]) == [None, "4", "1"]
            assert found[18]["z"] is None and found[2]["z"] == 3
        assert dataset.verify(path, deep=True, **storage)["ok"]
        dataset.compact(path, **storage)
    dataset.gc(path, delete=True, grace=0, keep=1, **storage)
    report = dataset.verify(path, deep=True, **storage)
    assert report["ok"] and not report["orphan_count"]


@pytest.mark.long
def test_in_s3(tmp_path, s3):  # noqa: F811
    both("s3://bucket/d", **s3)
    path = "s3://bucket/cached"
    dataset.write(pa.table({"x": range(20)}), path, batch_size=8, **s3)
    dataset.add_column(path, "y", [str(x) for x in range(20)], **s3)
    for _ in range(2):
        with dataset.open(path, cache_dir=str(tmp_path / "cache"), **s3) as found:
            assert list(found.take([18, 3, 0])["y"]) == ["18", "3", "0"]


@pytest.mark.long
def test_without_locks(tmp_path, lockless):  # noqa: F811
    """With numbered commit files, and several writers at once."""
    path = str(tmp_path / "d")
    dataset.write(pa.table({"x": range(100)}), path, batch_size=16)
    told = told_well(workers(WORKER, path, 3.0, {"LD_PRELOAD": lockless}))
    assert any(line[0] == "c" for line in told)
    settled(path, told)
    assert list((tmp_path / "d").glob(".dataset_manifest.commit-*"))
