"""Versions of a dataset: opened by number or time, while others commit, and forgotten."""
import datetime
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import time

import pytest

from libsafetensors import SafetensorError, dataset

pa = pytest.importorskip("pyarrow")


def write(path, values, mode="append", **options):
    how = {"name_col": "k"} if options.pop("kv", False) else {"batch_size": 3}
    rows = pa.table({"k": ["r%d" % one for one in values], "x": list(values)})
    return dataset.write(rows, path, mode=mode, **how, **options)


def held(path, **options):
    with dataset.open(path, **options) as rows:
        return sorted(row["x"].item() for row in rows)


@pytest.mark.parametrize("seed", range(12))
def test_any_history(tmp_path, seed):
    """Random commits, compactions and collections: every version that is said to be kept has the rows
    that it had; every other one is refused."""
    rng = random.Random(seed)
    kv, form = rng.random() < 0.5, rng.choice(["whole", "segments"])
    write(tmp_path, [0], "error", kv=kv, manifest=form)
    model, kept, then = {1: [0]}, {1}, 1
    now = 1
    for step in range(14):
        kind = rng.choice(["append", "append", "append", "overwrite", "compact", "gc", "drop"])
        values = list(range(100 * step + 1, 100 * step + 1 + rng.randrange(1, 6)))
        if kind in ("append", "overwrite", "drop"):
            how = "overwrite" if kind == "overwrite" else "append"
            told = write(tmp_path, values, how, kv=kv, keep_old=0 if kind == "drop" else "all")
            old = model[now]
            if kind == "drop":
                kept.discard(now)
            now += 1
            assert told["version"] == now
            model[now] = (old if how == "append" else []) + values
            kept.add(now)
        elif kind == "compact":
            done = dataset.compact(tmp_path, target_bytes=1 << 20)
            segments = done["segments_before"] != done["segments_after"]
            if done["rewritten"] or segments:
                model[now + 1] = model[now]
                now += 1
                kept.add(now)
        else:
            most = rng.randrange(1, 6)
            dataset.gc(tmp_path, delete=True, grace=0, keep=most)
            kept = set(sorted(kept)[-most:])
        assert held(tmp_path) == sorted(model[now]), kind
        listed = dataset.versions(tmp_path)["versions"]
        assert [one["version"] for one in listed] == sorted(kept), kind
        for version in range(1, now + 1):
            if version in kept:
                assert held(tmp_path, version=version) == sorted(model[version]), (kind, version)
            else:
                with pytest.raises(FileNotFoundError, match="version %d, which is not kept" % version):
                    dataset.open(tmp_path, version=version)
        told = dataset.verify(tmp_path, deep=True)
        assert told["ok"] and told["versions"] == len(kept), told
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    told = dataset.verify(tmp_path, deep=True)
    assert told["ok"] and told["orphan_count"] == 0 and held(tmp_path) == sorted(model[now])
    assert len([one for one in os.listdir(tmp_path) if one.startswith("part-")]) == told["shards"]


def retimed(path, version, seconds):
    manifest = json.loads((path / "dataset_manifest.json").read_text())
    file = path / "dataset_manifest.json" if manifest["version"] == version else \
        path / (".dataset_version-%d-%s" % (version, manifest["history"]))
    told = json.loads(file.read_text())
    told["committed"] = seconds
    file.write_text(json.dumps(told))


def test_by_time(tmp_path, monkeypatch):
    for i in range(3):
        write(tmp_path, [i])
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.timezone.utc)
    for version in (1, 2, 3):
        retimed(tmp_path, version, int(noon.timestamp()) + 3600 * version)
    hour = datetime.timedelta(hours=1)
    for asof, rows in ((noon + hour, 1), (noon + 2 * hour - hour / 60, 1), (noon + 2 * hour, 2),
                       ("2026-01-02T14:30:00+00:00", 2), (noon.timestamp() + 2.5 * 3600, 2),
                       ((noon + 9 * hour).isoformat(), 3), (datetime.date(2026, 1, 4), 3),
                       (time.time(), 3)):
        assert len(held(tmp_path, asof=asof)) == rows, asof

    class Stamp(datetime.datetime):  # as pandas.Timestamp: a naive one is UTC for itself
        def timestamp(self):
            return self.replace(tzinfo=datetime.timezone.utc).timestamp() if self.tzinfo is None \
                else super().timestamp()

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for local in (datetime.datetime(2026, 1, 2, 9, 30), Stamp(2026, 1, 2, 9, 30)):
            assert len(held(tmp_path, asof=local)) == 2, local
        assert len(held(tmp_path, asof=Stamp(2026, 1, 2, 14, 30, tzinfo=datetime.timezone.utc))) == 2
    finally:
        monkeypatch.undo()
        time.tzset()
    write(tmp_path, [3], keep_old=0)
    retimed(tmp_path, 4, int(noon.timestamp()) + 3600 * 4)
    with pytest.raises(FileNotFoundError, match="found versions 2 and 4, between which none is kept"):
        dataset.open(tmp_path, asof=noon + 3 * hour)
    assert len(held(tmp_path, asof=noon + 4 * hour)) == 4
    for early in (noon, datetime.date(2025, 12, 31), 1):
        with pytest.raises(FileNotFoundError, match="committed by then"):
            dataset.open(tmp_path, asof=early)
    for wrong in ({"version": 0}, {"version": -1}, {"version": 1, "asof": 5}, {"asof": 0},
                  {"asof": "soon"}, {"version": 1, "use_manifest": False}):
        with pytest.raises(ValueError):
            dataset.open(tmp_path, **wrong)
    with pytest.raises(TypeError):
        dataset.open(tmp_path, version="1")


def test_what_takes_a_version(tmp_path):
    write(tmp_path, [1, 2], kv=True, generate_index=True)
    write(tmp_path, [3], kv=True)
    assert dataset.info(tmp_path, version=1)["samples"] == 2
    assert {one["name"] for one in dataset.ls(tmp_path, version=1)["tensors"]} == {"r1__x", "r2__x"}
    with dataset.open(tmp_path, version=1) as rows:
        assert rows.version == 1 and len(rows) == 2 and pickle.loads(pickle.dumps(rows)).version == 1
        with pytest.raises(KeyError):
            rows["r3"]
        assert rows["r2"]["x"] == 2 and len(pa.table(rows)) == 2
    assert dataset.open(tmp_path).version == 2
    for words in ({"keep": 0}, {"older": -1}):
        with pytest.raises(ValueError):
            dataset.gc(tmp_path, **words)


def test_an_older_writer_between(tmp_path):
    """One that knows nothing of versions passes no history on: what was kept is forgotten, nothing
    is taken for what it is not."""
    for i in range(3):
        write(tmp_path, [i])
    manifest = tmp_path / "dataset_manifest.json"
    told = json.loads(manifest.read_text())
    del told["history"], told["committed"]
    told["version"] += 1
    manifest.write_text(json.dumps(told))
    with pytest.raises(FileNotFoundError):
        dataset.open(tmp_path, version=2)
    with pytest.raises(FileNotFoundError):
        dataset.open(tmp_path, asof=time.time())
    write(tmp_path, [9])
    assert held(tmp_path, version=4) == [0, 1, 2] and held(tmp_path) == [0, 1, 2, 9]
    assert [one["version"] for one in dataset.versions(tmp_path)["versions"]] == [4, 5]
    dataset.gc(tmp_path, delete=True, grace=0)
    assert sum(name.startswith(".dataset_version-") for name in os.listdir(tmp_path)) == 1
    assert held(tmp_path, version=4) == [0, 1, 2]


def test_readers_while_others_commit(tmp_path):
    """Threads that overwrite and forget, and readers of the last versions: a version that was opened
    and is not forgotten has all its rows."""
    write(tmp_path, [0])
    done, failed = threading.Event(), []

    def commits():
        for i in range(1, 40):
            write(tmp_path, [i] * i, "overwrite" if i % 3 else "append", sync=False)
        done.set()

    def reads():
        rng = random.Random(1)
        while not done.is_set():
            last = dataset.open(tmp_path).version
            version = rng.randrange(1, last + 1)
            rows = held(tmp_path, version=version)
            wanted = [version - 1] * (version - 1) if version > 1 else [0]
            if version > 1 and (version - 1) % 3 == 0:
                wanted += [version - 2] * (version - 2)
            if rows != sorted(wanted):
                failed.append((version, rows))
    threads = [threading.Thread(target=one) for one in (commits, reads, reads)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    assert len(dataset.versions(tmp_path)["versions"]) == 40


OVERWRITES = """
import sys, pyarrow as pa
from libsafetensors import dataset
i = int(sys.argv[2])
while True:
    dataset.write(pa.table({"x": [i] * 3}), sys.argv[1], mode="overwrite", batch_size=2, sync=False)
    print(i, flush=True)
    if i % 4 == 0:
        dataset.compact(sys.argv[1], target_bytes=1 << 20)
    i += 1
"""


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.long
def test_killed_while_overwriting(tmp_path, times):
    """Every version from the first to the last is there."""
    rng = random.Random(5)
    dataset.write(pa.table({"x": [0] * 3}), tmp_path, batch_size=2)
    at = 1
    for _ in range(times):
        running = subprocess.Popen([sys.executable, "-c", OVERWRITES, tmp_path, str(at)],
                                   stdout=subprocess.PIPE)
        first = running.stdout.readline()
        time.sleep(rng.uniform(0, 0.3))
        running.kill()
        told = [int(line) for line in first.splitlines() + running.stdout.read().splitlines()]
        running.wait()
        running.stdout.close()
        at = told[-1] + 10
        last = dataset.open(tmp_path).version
        listed = dataset.versions(tmp_path)["versions"]
        assert [one["version"] for one in listed] == list(range(1, last + 1))
        for version in range(1, last + 1):
            rows = held(tmp_path, version=version)
            assert len(rows) == 3 and len(set(rows)) == 1
        dataset.gc(tmp_path, delete=True, grace=0)
        assert dataset.verify(tmp_path, deep=True)["ok"]
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    assert len(held(tmp_path)) == 3 and dataset.verify(tmp_path)["orphan_count"] == 0


def test_a_damaged_version(tmp_path):
    for i in range(3):
        write(tmp_path, [i])
    file, = tmp_path.glob(".dataset_version-2-*")
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(SafetensorError, match=".dataset_version-2-"):
        dataset.open(tmp_path, version=2)
    assert held(tmp_path) == [0, 1, 2] and held(tmp_path, version=1) == [0]
    told = dataset.verify(tmp_path)
    assert not told["ok"] and told["findings"][0]["shard"] == file.name
    with pytest.raises(SafetensorError):
        dataset.gc(tmp_path, delete=True, grace=0)
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    assert dataset.verify(tmp_path)["ok"]


def test_a_version_whose_segment_is_gone(tmp_path):
    """As after gc of a release that knows no versions."""
    for i in range(3):
        write(tmp_path, [i], "overwrite", manifest="segments")
    file, = tmp_path.glob(".dataset_version-2-*")
    segment, = json.loads(file.read_text())["segments"]
    (tmp_path / (".dataset_segment-" + segment["sha256"])).unlink()
    with pytest.raises(SafetensorError, match="version 2: .dataset_segment-"):
        dataset.gc(tmp_path, delete=True, grace=0)
    assert held(tmp_path, version=1) == [0] and held(tmp_path) == [2]
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    told = dataset.verify(tmp_path, deep=True)
    assert told["ok"] and not told["orphans"]


@pytest.mark.parametrize("wrong", [-1, 1 << 64, (1 << 64) + 1])
def test_numbers_that_64_bits_do_not_hold(tmp_path, wrong):
    """None stands for another one, as 0 did for the version in force."""
    for value in range(3):
        write(tmp_path, [value])
    version = "version: expected a number from 1 on"
    for number in (0, wrong):
        for call in (dataset.open, dataset.info, dataset.ls):
            with pytest.raises(ValueError, match=version):
                call(tmp_path, version=number)
        with pytest.raises(ValueError, match=version):
            dataset.add_column(tmp_path, "y", [1, 2, 3], version=number)
    for call, name in ((dataset.gc, "grace"), (dataset.gc, "keep"), (dataset.gc, "older"),
                       (dataset.compact, "target_bytes"), (dataset.compact, "batch_size")):
        with pytest.raises(ValueError, match=name + ": expected"):
            call(tmp_path, **{name: wrong})
    assert dataset.info(tmp_path, version=2)["version"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_folder_whose_name_is_no_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/n\xff"
    write(folder, [0, 1, 2, 3])
    told = [call(folder) for call in (
        dataset.info, dataset.ls, dataset.verify, dataset.versions, dataset.gc, dataset.compact)]
    told.append(dataset.add_column(folder, "y", [1, 2, 3, 4]))
    told.append(dataset.delete(folder, rows=0))
    for one in told:
        assert one["ok"] and one["path"].endswith("/n\ufffd") and one["path_bytes"].endswith("/n%FF")
    assert dataset.info(tmp_path / "n\udcff")["version"] > 1
