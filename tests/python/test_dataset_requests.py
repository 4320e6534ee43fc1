"""How many requests a look-up in remote storage takes, how many are under way at a time, and in
which pieces shards are written."""
import contextlib
import threading
import time

import numpy as np
import pytest

from libsafetensors import _sources, dataset
from libsafetensors.dataset import _shards, _storage

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
COLUMNS = "abcde"


class Asked:
    """Requests to the store. most: so many at the same time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ranges, self.now, self.most = [], 0, 0

    @contextlib.contextmanager
    def one(self, name, begin, end):
        with self.lock:
            self.ranges.append((name, begin, end))
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)
        try:
            yield
        finally:
            with self.lock:
                self.now -= 1

    def since(self):
        """Number of requests, and most at a time, since the last call."""
        with self.lock:
            found, self.ranges, most, self.most = len(self.ranges), [], self.most, 0
        return found, most


@pytest.fixture
def asked(monkeypatch):
    """Whole tensors are not read to get a few rows."""
    found, get = Asked(), _storage._Reader._get

    def counted(self, begin, end):
        with found.one(self.name, begin, end):
            return get(self, begin, end)
    monkeypatch.setattr(_storage._Reader, "_get", counted)
    monkeypatch.setattr(_storage, "filesystem", lambda scheme, url, options:
                        (fs.LocalFileSystem(), url.partition("//")[2]))
    monkeypatch.setattr(_shards, "_REQUEST_COST", 0)
    return found


def remote(path):
    return dataset.open("store://" + path.as_posix())


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert np.array_equal(found[name], value), name


@pytest.fixture(scope="module")
def stacked(tmp_path_factory):
    """20 shards of 50 rows of 5 columns."""
    path = tmp_path_factory.mktemp("stacked")
    rows = {name: pa.array([[i, i + j] for i in range(1000)], pa.list_(pa.int32(), 2))
            for j, name in enumerate(COLUMNS)}
    dataset.write(pa.table(rows), path, batch_size=50)
    return path


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """8 shards, one for each commit, of 50 rows of 5 columns."""
    path = tmp_path_factory.mktemp("named")
    for part in range(8):
        numbers = range(part * 50, part * 50 + 50)
        rows = {name: pa.array([[i, i + j] for i in numbers],
                               pa.list_(pa.int64() if name == "d" else pa.int32(), 2))
                for j, name in enumerate(COLUMNS)}
        dataset.write(pa.table({**rows, "k": ["row%03d" % i for i in numbers]}), path,
                      name_col="k", mode="append")
    return path


def test_rows_of_one_shard(stacked, asked):
    near, far = dataset.open(stacked), remote(stacked)
    far[0]
    asked.since()
    for which in ([0, 7, 30, 7, 49], [3], range(5, 9), range(0, 50)):
        same(far.take(which), near.take(which))
        assert asked.since() == (1, 1), which
    same(far[11], near[11])
    assert asked.since() == (1, 1)
    source = far._shards._open[0][1]
    assert not source._fetched and not source._expected  # nothing is held that nobody reads


def test_batches_in_order_read_each_byte_once(stacked, asked, monkeypatch):
    monkeypatch.setattr(_shards, "_REQUEST_COST", 4 << 20)
    near, far = dataset.open(stacked), remote(stacked)
    for found, wanted in zip(far.batches(8), near.batches(8)):
        same(found, wanted)
    sizes = {one["name"]: one["bytes"] for one in near.shards}
    fetched = dict.fromkeys(sizes, 0)
    for name, begin, end in asked.ranges:
        if name.endswith(".safetensors"):
            fetched[name.rpartition("/")[2]] += end - begin
    assert all(fetched[name] <= 1.1 * size for name, size in sizes.items())


def test_ranges_far_apart_are_asked_for_at_once(stacked, asked, monkeypatch):
    monkeypatch.setattr(_sources, "_GAP", 8)
    near, far = dataset.open(stacked), remote(stacked)
    far[0]
    asked.since()
    same(far.take([0, 1, 30, 20, 21]), near.take([0, 1, 30, 20, 21]))
    found, most = asked.since()
    assert found == 3 * len(COLUMNS) and most > 1


@pytest.mark.parametrize("kind", ["stacked", "named"])
def test_rows_of_many_shards(kind, asked, request):
    """One request for each, several at a time; files are opened several at a time, too."""
    path = request.getfixturevalue(kind)
    near, far = dataset.open(path), remote(path)
    numbers = list(range(0, len(near), 10))[::-1]
    same(far.take(numbers), near.take(numbers))
    assert asked.since()[1] > 1
    same(far.take(numbers), near.take(numbers))
    found, most = asked.since()
    assert found == len(near.shards) and most > 1


def test_rows_by_name(named, asked):
    near, far = dataset.open(named), remote(named)
    same(far["row003"], near["row003"])
    assert asked.since()[1] > 1  # each shard was opened to look for it
    same(far["row371"], near["row371"])
    assert asked.since() == (1, 1)
    with pytest.raises(KeyError):
        far["row999"]
    assert asked.since() == (0, 0)


def test_a_large_range_is_asked_for_in_pieces(tmp_path, asked, monkeypatch):
    monkeypatch.setattr(_sources, "_PIECE", 1 << 16)
    dataset.write(pa.table({"a": range(50_000), "b": range(50_000)}), tmp_path, batch_size=50_000)
    near, far = dataset.open(tmp_path), remote(tmp_path)
    far._shards.file(0)
    asked.since()
    same(next(far.batches()), next(near.batches()))
    found, most = asked.since()
    assert found == 14 and most > 1


def test_shards_are_written_in_large_aligned_pieces(tmp_path, asked, monkeypatch):
    """Of 512 KiB, whatever the lengths of the batches and the header: the page cache of a folder
    then has large pages. The bytes are those of a shard written at once."""
    pieces, write = {}, _storage._Sink.write

    def counted(self, data):
        pieces.setdefault(self.path, []).append(len(data))
        write(self, data)
    monkeypatch.setattr(_storage._Sink, "write", counted)
    rows = pa.table({"a": range(700_001), "b": pa.array(range(700_001), pa.int32())})
    batches = [rows.slice(0, 1), rows.slice(1, 300_000), rows.slice(300_001)]
    (tmp_path / "far").mkdir()
    made = dataset.write(batches, "store://" + (tmp_path / "far").as_posix(), batch_size=700_001,
                         single_writer=True)
    shard = made["shards"][0]
    found = pieces[(tmp_path / "far" / shard["shard_path"]).as_posix()]
    assert sum(found) == shard["bytes"] and set(found[:-1]) == {512 << 10}
    near = dataset.write(rows, tmp_path / "near", batch_size=700_001)
    assert near["shards"][0]["sha256"] == shard["sha256"]
    assert dataset.verify(tmp_path / "far", deep=True)["ok"]


def test_a_failure_is_raised_and_the_next_read_asks_again(stacked, asked, monkeypatch):
    near, far = dataset.open(stacked), remote(stacked)
    far[0]
    get = _storage._Reader._get

    def failing(self, begin, end):
        raise OSError("the store is gone")
    monkeypatch.setattr(_storage._Reader, "_get", failing)
    with pytest.raises(OSError, match="the store is gone"):
        far.take([1, 20, 40])
    monkeypatch.setattr(_storage._Reader, "_get", get)
    same(far.take([1, 20, 40]), near.take([1, 20, 40]))


def test_rows_of_nested_columns(tmp_path, asked):
    """Of lists of structs and of lists, only what the rows hold is read, and where they end."""
    path = tmp_path / "d"
    kinds = {"deep": pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
             "grid": pa.list_(pa.list_(pa.float64())), "x": pa.int64()}
    rows = [{"deep": None if i % 7 == 3 else [{"a": i, "b": "é" * 200}] * (i % 4),
             "grid": [[float(i)] * 50] * (i % 3), "x": i} for i in range(600)]
    dataset.write(pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))), path, batch_size=300)
    near, far = dataset.open(path), remote(path)
    whole = sum(one["bytes"] for one in near.shards)
    far[0]
    for which in ([5], [599, 5, 5, 17], [298, 299, 300, 301], [3, 10], list(range(0, 600, 100))):
        asked.since()
        before = len(asked.ranges)
        got = far.take(which)
        fetched = sum(end - begin for _, begin, end in asked.ranges[before:])
        for name in ("deep", "grid", "x"):
            assert _plain(list(got[name])) == [_plain(rows[i][name]) for i in which]
            assert _plain(list(near.take(which)[name])) == [_plain(rows[i][name]) for i in which]
        assert fetched < whole / 8, which


def _plain(value):
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, np.ndarray)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
