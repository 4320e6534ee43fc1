"""A batch of a stream that comes again, from whichever program, adds no rows."""
import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from libsafetensors import SafetensorError, dataset
from libsafetensors.dataset._job import Job
from libsafetensors.dataset._storage import Place

pa = pytest.importorskip("pyarrow")


def write(path, values, number, stream="s", mode="append", **options):
    how = {"name_col": "k"} if options.pop("kv", False) else {"batch_size": 2}
    rows = pa.table({"k": ["r%d" % one for one in values], "x": list(values)})
    return dataset.write(rows, path, mode=mode, batch_id="%s:%d" % (stream, number), **how, **options)


def held(path):
    with dataset.open(path) as rows:
        return sorted(row["x"].item() for row in rows)


@pytest.mark.parametrize("kv", [False, True])
@pytest.mark.parametrize("form", ["whole", "segments"])
def test_random_repetitions(tmp_path, kv, form):
    rng = random.Random(3)
    last, rows = {"a": -1, "b:c": -1}, []
    for step in range(30):
        stream = rng.choice(sorted(last))
        number = max(0, last[stream] + rng.choice([1, 1, 2, 0, -1]))
        values = [1000 * step, 1000 * step + 1]
        before = json.loads((tmp_path / "dataset_manifest.json").read_text()) if rows else None
        made = write(tmp_path, values, number, stream, kv=kv, manifest=form)
        if number > last[stream]:
            rows += values
            last[stream] = number
        else:
            assert made == before
        assert held(tmp_path) == sorted(rows)
        assert made["batches"] == {name: one for name, one in last.items() if one >= 0}
        if step % 7 == 3:
            dataset.compact(tmp_path, target_bytes=1 << 20)
        assert not any(name.startswith("_job-") for name in os.listdir(tmp_path))
    told = dataset.verify(tmp_path, deep=True)
    assert told["ok"] and told["orphan_count"] == 0


def test_by_many_tasks(tmp_path):
    """As Spark, Ray and Daft do it: the second attempt's shards are removed."""
    rows = [pa.record_batch({"x": [i]}) for i in range(3)]
    for _ in range(2):
        job = Job({"batch_size": "1", "batch_id": "s:5"}, Place(tmp_path, {}, True), rows[0].schema,
                  "append", False)
        receipts = [job.write([rows[i]], i) for i in range(3)]
        made = json.loads(job.commit(receipts))
        assert made["version"] == 1 and held(tmp_path) == [0, 1, 2]
        assert not any(name.startswith("_job-") for name in os.listdir(tmp_path))
    assert dataset.verify(tmp_path)["orphan_count"] == 0


def test_an_overwrite(tmp_path):
    write(tmp_path, [1, 2], 0)
    assert write(tmp_path, [3], 1, mode="overwrite")["version"] == 2
    assert write(tmp_path, [4], 1, mode="overwrite")["version"] == 2 and held(tmp_path) == [3]
    assert dataset.verify(tmp_path, deep=True)["ok"]


def test_attempts_at_once(tmp_path):
    """Threads that write the same batches in any order of attempts: each is there once."""
    write(tmp_path, [0], 0)
    failed = []

    def run(seed):
        rng = random.Random(seed)
        for number in range(1, 12):
            for _ in range(rng.choice([1, 2])):
                try:
                    write(tmp_path, [number], number, sync=False)
                except Exception as error:
                    failed.append(error)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed and held(tmp_path) == list(range(12))
    assert dataset.verify(tmp_path, deep=True)["orphan_count"] == 0


STREAM = """
import sys, pyarrow as pa
from libsafetensors import dataset
for number in range(int(sys.argv[2]), 400):
    dataset.write(pa.table({"x": [number]}), sys.argv[1], mode="append", batch_size=1, sync=False,
                  batch_id="s:%d" % number)
    print(number, flush=True)
"""


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.long)])
def test_killed_and_repeated(tmp_path, times):
    """Each run begins again with the last batch that the one before reported, and some before it."""
    rng = random.Random(4)
    at, rows = 0, []
    for _ in range(times):
        before = len(rows)
        running = subprocess.Popen([sys.executable, "-c", STREAM, tmp_path, str(at)],
                                   stdout=subprocess.PIPE)
        first = running.stdout.readline()
        time.sleep(rng.uniform(0, 0.2))
        running.kill()
        told = [int(line) for line in first.splitlines() + running.stdout.read().splitlines()]
        running.wait()
        running.stdout.close()
        rows = held(tmp_path)
        # one may be committed and not told of; a run may end among those that it repeats
        assert rows == list(range(len(rows)))
        assert max(before, told[-1] + 1) <= len(rows) <= max(before, told[-1] + 2)
        at = max(0, told[-1] - rng.randrange(3))
    dataset.gc(tmp_path, delete=True, grace=0)
    assert dataset.verify(tmp_path, deep=True)["orphan_count"] == 0


@pytest.mark.parametrize("wrong", ["5", ":5", "s:", "s:x", "s:-1"])
def test_ids_that_are_none(tmp_path, wrong):
    with pytest.raises(ValueError, match="batch_id: expected the name of a stream"):
        dataset.write(pa.table({"x": [1]}), tmp_path / "d", batch_size=1, batch_id=wrong)
    assert not (tmp_path / "d").exists()


def test_a_stream_with_two_numbers(tmp_path):
    write(tmp_path, [1], 1)
    manifest = tmp_path / "dataset_manifest.json"
    manifest.write_text(manifest.read_text().replace('{"s":1}', '{"s":1,"t":4,"s":7}'))
    with pytest.raises(SafetensorError, match="each stream once"):
        write(tmp_path, [2], 3)
