"""Modes of writing, files after a failure, storages that are objects, and concurrent commits."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from libsafetensors import SafetensorError, _core, dataset
from libsafetensors.dataset._job import Job
from libsafetensors.dataset._storage import Place

pa = pytest.importorskip("pyarrow")


def table(*values):
    return pa.table({"c": pa.array(values, pa.int64())})


def values(path):
    return [row["c"].item() for row in dataset.open(path)]


def inside(path):
    """Names, without the lock."""
    return sorted(one.name for one in path.iterdir() if one.name != ".dataset.lock")


# ── Modes ──

def test_error_where_one_is(tmp_path):
    dataset.write(table(1), tmp_path, batch_size=1)
    before = inside(tmp_path)
    with pytest.raises(FileExistsError, match="found dataset_manifest.json"):
        dataset.write(table(2), tmp_path, batch_size=1)
    assert inside(tmp_path) == before and values(tmp_path) == [1]
    with pytest.raises(ValueError, match="'error'.*'append'.*'overwrite'"):
        dataset.write(table(2), tmp_path, batch_size=1, mode="ignore")


def test_append(tmp_path):
    for i in range(3):
        made = dataset.write(table(i, i + 10), tmp_path, mode="append", batch_size=2)
        assert made["version"] == i + 1
    assert values(tmp_path) == [0, 10, 1, 11, 2, 12]
    names = [one["shard_path"] for one in made["shards"]]
    assert [name[5:15] for name in names] == ["00000-0000", "00001-0000", "00002-0000"]


@pytest.mark.parametrize("other, options", [
    ({"d": [1]}, {"batch_size": 1}), ({"c": [1.5]}, {"batch_size": 1}),
    ({"c": [[1]]}, {"batch_size": 1}), ({"k": ["a"], "c": [1]}, {"name_col": "k"})])
def test_append_that_disagrees(tmp_path, other, options):
    dataset.write(table(1), tmp_path, batch_size=1)
    before = inside(tmp_path)
    with pytest.raises(ValueError) as caught:
        dataset.write(pa.table(other), tmp_path, mode="append", **options)
    assert caught.value.code == "dataset_disagrees"
    assert inside(tmp_path) == before


@pytest.mark.parametrize("mode", [{"batch_size": 4}, {"name_col": "id", "columns": ["x"]}])
@pytest.mark.parametrize("old, new", [([0.5] * 2, [0.5] * 3),
                                      (pa.array([[0.5] * 2] * 4, pa.list_(pa.float32())),
                                       [0.5] * 2)])
def test_rows_that_disagree_are_told_at_the_first_batch(tmp_path, mode, old, new):
    """What the schema does not tell (lengths of lists) is compared before more rows are asked for,
    by one process and by each task."""
    def rows(value, first=0):
        value = [value] * 4 if isinstance(value, list) else value
        return pa.table({"id": [str(first + i) for i in range(4)], "x": value})

    first = rows(old)
    more = {"columns": ["x"], **mode}
    dataset.write(first, tmp_path / "d", **more)
    before = inside(tmp_path / "d")
    taken = []

    def batches():
        for i in range(50):
            taken.append(i)
            yield rows(new, 4 * i + 4)

    with pytest.raises(ValueError, match="as in the dataset") as caught:
        dataset.write(batches(), tmp_path / "d", mode="append", **more)
    assert caught.value.code == "dataset_disagrees" and len(taken) <= 2
    task = Job(more, Place(tmp_path / "d"), None, "append", False)
    taken.clear()
    with pytest.raises(ValueError, match="as in the dataset"):
        task.write((table.to_batches()[0] for table in batches()), 3)
    assert len(taken) == 1
    task.abort([None])
    assert inside(tmp_path / "d") == before
    assert len(dataset.open(tmp_path / "d")) == 4


@pytest.mark.parametrize("told", ["9" * 30, "x", "-1", "4"])
def test_samples_that_a_file_lacks(tmp_path, told):
    """Without a manifest a shard's own number of rows is bounded by its tensors."""
    for mode, keys in ({"batch_size": 3}, ["x"]), ({"name_col": "id"}, ["x"]):
        folder = tmp_path / next(iter(mode))
        made = dataset.write(pa.table({"id": ["a", "b", "c"], "x": [[1.5]] * 3}), folder,
                             columns=keys, **mode)
        shard = folder / made["shards"][0]["shard_path"]
        assert len(dataset.open(folder, use_manifest=False)) == 3
        data = shard.read_bytes()
        head = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        head["__metadata__"]["samples"] = told
        text = json.dumps(head).encode()
        shard.write_bytes(len(text).to_bytes(8, "little") + text
                          + data[8 + int.from_bytes(data[:8], "little"):])
        with pytest.raises(ValueError, match="expected samples of at most 3"):
            dataset.open(folder, use_manifest=False)


def test_overwrite_leaves_what_a_hostile_manifest_names(tmp_path):
    """tests/unit/dataset/test_dataset_hostile.c has all kinds of names, and compactions."""
    made = dataset.write(table(1), tmp_path, batch_size=1)
    for name in ("thesis.docx", ".bashrc", "dataset_manifest.json"):
        made["shards"].append({"shard_path": name, "samples_count": 0, "bytes": 1})
        if not (tmp_path / name).exists():
            (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "dataset_manifest.json").write_text(json.dumps(made))
    with pytest.warns(UserWarning, match="3 files that the replaced manifest named .*first"):
        dataset.write(table(4), tmp_path, batch_size=1, mode="overwrite", keep_old=0)
    assert (tmp_path / "thesis.docx").read_bytes() == (tmp_path / ".bashrc").read_bytes() == b"mine"
    assert values(tmp_path) == [4]
    assert not (tmp_path / made["shards"][0]["shard_path"]).exists()


def test_a_job_older_than_the_grace_of_gc(tmp_path, monkeypatch):
    from libsafetensors.dataset import _alive
    monkeypatch.setattr(_alive, "_SECONDS", 0.02)

    def wait_for(mark):
        until = time.monotonic() + 60
        while not mark() and time.monotonic() < until:
            time.sleep(0.01)

    def batches():
        yield table(1)
        yield table(2)
        wait_for(lambda: [*tmp_path.glob("_job-*/.alive")])
        old = time.time() - 100_000
        for one in [*tmp_path.glob("_job-*/*"), *tmp_path.glob("_job-*")]:
            with contextlib.suppress(FileNotFoundError):
                os.utime(one, (old, old))
        wait_for(lambda: any(one.stat().st_mtime > old + 1000
                             for one in tmp_path.glob("_job-*/.alive")))
        assert not any(one["removed"] for one in dataset.gc(tmp_path, delete=True)["garbage"])
        yield table(3)
    dataset.write(batches(), tmp_path, batch_size=1)
    assert values(tmp_path) == [1, 2, 3] and not [*tmp_path.glob("_job-*")]


def test_overwrite_leaves_what_is_not_ours(tmp_path):
    dataset.write(table(1, 2, 3), tmp_path, batch_size=1, generate_index=True)
    (tmp_path / "mine.safetensors").write_bytes(b"not ours")
    (tmp_path / "notes").mkdir()
    dataset.write(table(4), tmp_path, batch_size=1, mode="overwrite", keep_old=0)
    dataset.gc(tmp_path, delete=True, grace=0)
    assert values(tmp_path) == [4]
    assert (tmp_path / "mine.safetensors").read_bytes() == b"not ours"
    names = inside(tmp_path)
    assert len(names) == 4 and {"dataset_manifest.json", "mine.safetensors", "notes"} <= set(names)


def test_readers_of_what_was_overwritten(tmp_path):
    dataset.write(table(1, 2), tmp_path, batch_size=1)
    found = dataset.open(tmp_path)
    assert found[0]["c"] == 1
    dataset.write(table(3), tmp_path, batch_size=1, mode="overwrite", keep_old=0)
    assert found[0]["c"] == 1  # open already
    with pytest.raises(SafetensorError) as caught:
        found[1]
    assert caught.value.code in ("dataset_changed", "dataset_shard")
    dataset.write(table(5, 6), tmp_path, batch_size=1, mode="overwrite", keep_old=60)
    found = dataset.open(tmp_path)
    dataset.write(table(7), tmp_path, batch_size=1, mode="overwrite", keep_old=60)
    assert [row["c"].item() for row in found] == [5, 6]
    found = dataset.open(tmp_path)
    for _ in range(2):
        dataset.write(table(8), tmp_path, batch_size=1, mode="overwrite")
    assert [row["c"].item() for row in found] == [7]


def test_an_indexed_dataset_stays_indexed(tmp_path):
    import pyarrow.parquet as pq
    dataset.write(table(1), tmp_path, batch_size=1, generate_index=True)
    made = dataset.write(table(2), tmp_path, batch_size=1, mode="append")
    index = pq.read_table(tmp_path / made["index"])
    assert index.column_names[:4] == ["tensor_key", "file_name", "shape", "dtype"]
    element = pa.field("element", pa.int32(), nullable=False)
    assert index.schema.field("shape").type == pa.list_(element)
    assert index.schema.metadata[b"commit"].decode() == made["commit"]
    for row in index.to_pylist():
        data = (tmp_path / row["file_name"]).read_bytes()[row["begin"]:row["end"]]
        assert data in ((1).to_bytes(8, "little"), (2).to_bytes(8, "little"))


def test_an_index_of_another_commit_is_not_used(tmp_path):
    rows = pa.table({"k": ["a", "b"], "v": [1, 2]})
    dataset.write(rows, tmp_path, name_col="k", generate_index=True)
    old = (tmp_path / "_tensor_index.parquet").read_bytes()
    more = pa.table({"k": ["c"], "v": [3]})
    dataset.write(more, tmp_path, name_col="k", mode="append")
    (tmp_path / "_tensor_index.parquet").write_bytes(old)
    found = dataset.open(tmp_path, keys="c__v")
    assert [row["v"] for row in found] == [3]
    assert dataset.open(tmp_path)["c"]["v"] == 3


def test_no_manifest(tmp_path):
    dataset.write(table(1, 2, 3), tmp_path, batch_size=2)
    shard = sorted(tmp_path.glob("part-*"))[0]
    assert values(shard) == [1, 2]
    (tmp_path / "dataset_manifest.json").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        dataset.open(tmp_path)
    assert caught.value.code == "manifest_missing" and "use_manifest=False" in caught.value.hint
    found = dataset.open(tmp_path, use_manifest=False)
    assert [row["c"].item() for row in found] == [1, 2, 3]


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, folder in (("a b", "a b"), ("100%25", "100%25"), ("ü/ö", "ü/ö"),
                         ("file:" + str(tmp_path / "u").replace("u", "%75"), None),
                         ((tmp_path / "x y").as_uri(), "x y"), (os.fsencode("bytes"), "bytes")):
        dataset.write(table(1), path, batch_size=1)
        assert values(path) == [1]
        if folder:
            assert (tmp_path / folder / "dataset_manifest.json").exists()


# ── Failures ──

class Folder:
    """A storage in memory: with a lock where things can be moved, else with conditional puts.
    fail: called with each operation and name, may raise."""

    def __init__(self, move=True):
        self.files = {}
        self.log = []
        self.fail = lambda what, name: None
        if move:
            self.put_if = self.fetch = None
        else:
            self.move = self.lock = None

    def _note(self, what, name):
        self.log.append((what, name))
        self.fail(what, name)

    def create(self, name, replace):
        self._note("create", name)
        if name in self.files and not replace:
            raise FileExistsError(name)
        folder = self

        class Sink:
            held = b""

            def write(self, data):
                folder._note("write", name)
                self.held += data

            def close(self):
                folder._note("close", name)
                folder.files[name] = self.held

            def abort(self):
                folder._note("abort", name)
        return Sink()

    def open(self, name):
        self._note("open", name)
        if name not in self.files:
            raise FileNotFoundError(name)
        data, folder = self.files[name], self

        class Source:
            size = len(data)

            def read_at(self, offset, length):
                folder._note("read_at", name)
                return data[offset:offset + length]
        return Source()

    def list(self, folder):
        self._note("list", folder)
        start = folder + "/" if folder else ""
        below = [name[len(start):] for name in self.files if name.startswith(start)]
        files = [(name, len(self.files[start + name]), 0, False) for name in below
                 if "/" not in name]
        return files + [(name, 0, 0, True) for name in
                        {name.split("/")[0] for name in below if "/" in name}]

    def move(self, old, new):
        self._note("move", new)
        self.files[new] = self.files.pop(old)

    def lock(self, seconds):
        self._note("lock", "")

    def unlock(self):
        pass

    def fetch(self, name):
        self._note("fetch", name)
        if name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name], str(hash(self.files[name]))

    def put_if(self, name, data, tag):
        self._note("put_if", name)
        now = self.files.get(name)
        if tag != (None if now is None else str(hash(now))):
            return False
        self.files[name] = data
        return True

    def remove(self, name, folder):
        self._note("remove", name)
        for held in list(self.files):
            if held == name or (folder and held.startswith(name + "/")):
                del self.files[held]


def write_to(folder, rows, how="error", **options):
    settled = _core.DatasetOptions({"batch_size": "2", **options})
    storage = _core.Storage(folder)
    commit = _core.Commit(settled, storage, rows.schema, how=how)
    try:
        writer = _core.ShardWriter(settled, storage, commit.job, 0, rows.schema)
        for batch in rows.to_batches():
            writer.append(batch)
        commit.add(writer.close())
        commit.prepare()
        return commit.publish()
    except BaseException:
        commit.abort()
        raise
    finally:
        commit.close()


def held(folder):
    manifest = json.loads(folder.files["dataset_manifest.json"])
    return manifest["total_samples"], sorted(name for name in folder.files if "part-" in name)


@pytest.mark.parametrize("move", [True, False])
def test_an_object_as_storage(move):
    folder = Folder(move)
    assert write_to(folder, table(1, 2, 3)) == []
    assert held(folder)[0] == 3 and len(folder.files) == 3
    assert any(name.startswith("_job-") for _, name in folder.log) == move
    write_to(folder, table(4), "append")
    write_to(folder, table(5), "overwrite")
    assert held(folder)[0] == 1
    assert json.loads(_core.dataset_verify(_core.Storage(folder), "x", True))["versions"] == 3
    for version, rows in ((1, 3), (2, 4), (3, 1)):
        shards = _core.Dataset(_core.Storage(folder), version).shards()
        assert sum(one["samples"] for one in shards) == rows
        assert {one["name"] for one in shards} <= set(folder.files)
    _core.dataset_gc(_core.Storage(folder), "x", 0, True, 1)
    assert held(folder)[0] == 1 and len(folder.files) == 2
    assert json.loads(_core.dataset_verify(_core.Storage(folder), "x", True))["ok"]
    found = _core.Dataset(_core.Storage(folder))
    assert found.shards()[0]["samples"] == 1 and found.check_shard(0) is None
    with pytest.raises(FileExistsError):
        write_to(folder, table(6))


class Bare(Folder):
    """Neither locks nor conditional puts."""
    lock = move = None

    def __init__(self):
        super().__init__(False)
        self.put_if = self.fetch = None


def test_a_storage_that_cannot_keep_commits_apart():
    folder = Bare()
    with pytest.raises(OSError, match="locks or conditional writes") as caught:
        write_to(folder, table(1))
    assert caught.value.code == "dataset_unguarded" and folder.files == {}
    write_to(folder, table(1), single_writer="true")
    write_to(folder, table(2), "append", single_writer="true")
    assert held(folder)[0] == 2
    with pytest.raises(OSError, match="locks or conditional writes"):
        _core.dataset_compact(_core.Storage(folder), "x", [], 1 << 20)
    done = _core.dataset_compact(_core.Storage(folder, single_writer=True), "x", [], 1 << 20)
    assert json.loads(done)["shards_after"] == 1 and held(folder)[0] == 2


def test_a_store_that_does_not_look_at_conditions():
    class Deaf(Folder):
        def fetch(self, name):
            raise NotImplementedError("no conditions here")
    folder = Deaf(False)
    with pytest.raises(NotImplementedError, match="no conditions here"):
        write_to(folder, table(1))
    assert folder.files == {}
    write_to(folder, table(1), single_writer="true")
    assert held(folder)[0] == 1


@pytest.mark.parametrize("kind", ["commit file", "put"])
def test_an_append_that_loses_is_prepared_again(kind):
    folder = Folder(kind == "commit file")
    if kind == "commit file":
        folder.lock = None

        def move_new(old, new):
            if new in folder.files:
                raise FileExistsError(new)
            folder.move(old, new)
        folder.move_new = move_new
    settled = _core.DatasetOptions({"batch_size": "2"})
    commits = []
    for value in (1, 2, 3):
        storage = _core.Storage(folder)
        commit = _core.Commit(settled, storage, table(value).schema, how="append")
        writer = _core.ShardWriter(settled, storage, commit.job, 0, table(value).schema)
        writer.append(table(value).to_batches()[0])
        commit.add(writer.close())
        commits.append(commit)
    for commit in commits:
        commit.prepare()
    assert commits[0].publish() == []
    for commit in commits[1:]:
        with pytest.raises(SafetensorError) as caught:
            commit.publish()
        assert caught.value.code == "dataset_changed"
    for commit in commits[1:]:
        commit.prepare()
        assert commit.publish() == []
        commit.close()
    samples, shards = held(folder)
    assert samples == 3 and len(shards) == 3
    assert json.loads(_core.dataset_verify(_core.Storage(folder), "x", True))["ok"]


class Broken(Exception):
    pass


@pytest.mark.parametrize("kind", [Broken, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("move", [True, False])
@pytest.mark.parametrize("how", ["append", "overwrite"])
def test_each_call_of_the_storage_fails_once(how, move, kind):
    """Either the old dataset exists or the new one; and the exception is raised."""
    at, done = 0, False
    while not done:
        folder = Folder(move)
        write_to(folder, table(1, 2, 3))
        folder.log.clear()
        countdown = iter(range(at + 1))

        def fail(what, name):
            if next(countdown, None) == at:
                raise kind("call %d" % at)
        folder.fail = fail
        try:
            told = write_to(folder, table(4, 5), how)
            failed = None
        except kind as error:
            told, failed = [], error
            assert str(error) == "call %d" % at
        except SafetensorError as error:
            # The library may say more than the storage did, of what it had to find out.
            told, failed = [], error
        folder.fail = lambda what, name: None
        samples, shards = held(folder)
        new = {"append": 5, "overwrite": 2}[how]
        assert samples == (3 if failed else new), (at, folder.log, failed)
        assert json.loads(_core.dataset_verify(_core.Storage(folder), "x", True))["ok"]
        done = failed is None and not told and len(folder.log) <= at
        at += 1
    assert at > 15


def test_progress_that_raises(tmp_path):
    dataset.write(table(1), tmp_path, batch_size=1)

    def stop(done, total):
        raise Broken
    rows = pa.table({"c": range(200_000)})
    with pytest.raises(Broken):
        dataset.write(rows, tmp_path, mode="overwrite", batch_size=10, progress=stop,
                      sync=False)
    assert values(tmp_path) == [1]
    assert len(inside(tmp_path)) == 2


def test_misuse():
    options, storage = _core.DatasetOptions({"batch_size": "1"}), _core.Storage(Folder())
    with pytest.raises(TypeError, match="expected DatasetOptions"):
        _core.Commit({}, storage)
    with pytest.raises(TypeError, match="expected a Storage"):
        _core.Commit(options, Folder())
    commit = _core.Commit(options, storage)
    with pytest.raises(ValueError, match="expected threads to be 0"):
        _core.ShardWriter(options, storage, commit.job, 0, table().schema, threads=-1)
    with pytest.raises(SafetensorError, match="prepared"):
        commit.publish()
    writer = _core.ShardWriter(options, storage, commit.job, 0, table().schema)
    writer.abandon()
    writer.abandon()
    for call in (lambda: writer.append(table(1).to_batches()[0]), writer.close):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(SafetensorError) as caught:
        commit.add('[{"job":"another"}]')
    assert caught.value.code == "dataset_receipt"
    commit.close()
    with pytest.raises(ValueError, match="closed"):
        commit.job


def test_the_index_keeps_the_commit():
    folder = Folder()
    settled = _core.DatasetOptions({"batch_size": "2", "generate_index": "true"})
    storage = _core.Storage(folder)
    commit = _core.Commit(settled, storage, table().schema)
    writer = _core.ShardWriter(settled, storage, commit.job, 0, table().schema)
    writer.append(table(1, 2, 3).to_batches()[0])
    commit.add(writer.close())
    del writer
    commit.prepare()
    assert commit.indexed

    class Rows:
        def __init__(self, capsule):
            self.capsule = capsule

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule
    reader = pa.RecordBatchReader.from_stream(Rows(commit.index()))
    with pytest.raises(RuntimeError, match="stream to be released"):
        commit.close()
    del commit, storage
    assert reader.read_all().column("tensor_key").to_pylist() == ["c", "c"]


# ── Concurrent commits ──

APPEND = """
import sys, pyarrow as pa
from libsafetensors import dataset
path, first = sys.argv[1], int(sys.argv[2])
for i in range(first, first + 8):
    dataset.write(pa.table({"c": [i]}), path, mode="append", batch_size=1)
"""


def test_processes_that_append_at_once(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", APPEND, tmp_path, str(100 * i)])
               for i in range(3)]
    assert [one.wait(120) for one in running] == [0, 0, 0]
    assert sorted(values(tmp_path)) == sorted(100 * i + j for i in range(3) for j in range(8))
    assert dataset.open(tmp_path).manifest["version"] == 24
    assert dataset.verify(tmp_path, deep=True)["ok"]


def test_threads_that_overwrite_at_once(tmp_path):
    dataset.write(table(-1), tmp_path, batch_size=1)
    barrier, failed = threading.Barrier(4), []

    def run(i):
        rows = table(i).to_batches()

        def batches():
            yield rows[0]
            barrier.wait()
        try:
            dataset.write(batches(), tmp_path, mode="overwrite", batch_size=1, keep_old=0)
        except SafetensorError as error:
            failed.append(error.code)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == ["dataset_changed"] * 3
    assert values(tmp_path)[0] in range(4) and len(inside(tmp_path)) == 2


FOREVER = """
import sys, pyarrow as pa
from libsafetensors import dataset
def batches():
    i = 0
    while True:
        yield pa.table({"c": range(i, i + 1000)}).to_batches()[0]
        i += 1000
        if i == 50_000: print("going", flush=True)
dataset.write(batches(), sys.argv[1], mode="overwrite", batch_size=100, sync=False)
"""


def test_what_to_do_about_one_that_is_there(tmp_path):
    table = pa.table({"v": [1]})
    dataset.write(table, tmp_path / "d", batch_size=1)
    with pytest.raises(FileExistsError) as caught:
        dataset.write(table, tmp_path / "d", batch_size=1)
    assert caught.value.hint == (
        'mode="append" adds to a dataset, mode="overwrite" replaces it')
    with pytest.raises(ValueError, match="^mode: expected 'error', 'append' or 'overwrite'"):
        dataset.write(table, tmp_path / "d", batch_size=1, mode="replace")


def test_killed_in_the_middle_of_an_overwrite(tmp_path):
    dataset.write(table(1, 2, 3), tmp_path, batch_size=2, generate_index=True)
    before = inside(tmp_path)
    running = subprocess.Popen([sys.executable, "-c", FOREVER, tmp_path],
                               stdout=subprocess.PIPE)
    assert running.stdout.readline().strip() == b"going"
    running.kill()
    running.wait()
    running.stdout.close()
    assert values(tmp_path) == [1, 2, 3]
    left = [name for name in inside(tmp_path) if name not in before]
    assert len(left) == 1 and left[0].startswith("_job-")
    assert dataset.verify(tmp_path, deep=True)["ok"]
    told, = dataset.gc(tmp_path, delete=True)["garbage"]
    assert (told["name"], told["young"], told["removed"]) == (left[0], True, False)
    told, = dataset.gc(tmp_path, delete=True, grace=0)["garbage"]
    assert told["removed"]
    assert inside(tmp_path) == before


def test_interrupted(tmp_path):
    dataset.write(table(1), tmp_path, batch_size=1)
    running = subprocess.Popen([sys.executable, "-c", FOREVER, tmp_path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert running.stdout.readline().strip() == b"going"
        running.send_signal(signal.SIGINT)
        told = running.communicate(timeout=60)[1]
    finally:
        running.kill()
        running.wait()
    assert b"KeyboardInterrupt" in told
    assert values(tmp_path) == [1] and len(inside(tmp_path)) == 2


def test_a_full_disk(tmp_path):
    """Past a limit of file sizes, as past the end of a disk, writing fails."""
    import resource
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    dataset.write(table(1), tmp_path, batch_size=1)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        with pytest.raises(OSError) as caught:
            dataset.write(pa.table({"c": range(1 << 16)}), tmp_path, mode="overwrite",
                          batch_size=1 << 16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert caught.value.errno == 27
    assert values(tmp_path) == [1] and len(inside(tmp_path)) == 2


def test_nothing_is_kept_alive(tmp_path):
    import gc
    gc.collect()
    start = time.monotonic()
    rows = table(*range(1000))
    before = pa.total_allocated_bytes()
    for _ in range(20):
        dataset.write(rows, tmp_path, mode="overwrite", batch_size=100, sync=False)
        with dataset.open(tmp_path) as found:
            list(found.batches())
    del found
    gc.collect()
    assert pa.total_allocated_bytes() <= before + 1024
    if sys.platform.startswith("linux"):
        open_files = [os.readlink(one) for one in pathlib.Path("/proc/self/fd").iterdir()
                      if one.exists()]
        assert not [name for name in open_files if str(tmp_path) in name]
    assert time.monotonic() - start < 60
