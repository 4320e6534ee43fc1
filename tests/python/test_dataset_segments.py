"""Datasets whose manifest has segments: written, read and maintained as others are."""
import json
import os
import random
import shutil
import subprocess
import sys
import time

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")


def rows(*values):
    return pa.table({"name": ["r%d" % v for v in values], "x": list(values)})


def numbers(path, **options):
    with dataset.open(path, **options) as found:
        return [int(row["x"]) for row in found]


def segments(path):
    return sorted(one.name for one in path.glob(".dataset_segment-*"))


def test_batches(tmp_path):
    made = dataset.write(rows(0, 1, 2), tmp_path, batch_size=2, columns="x", manifest="segments")
    assert made["format_version"] == "2.0" and "shards" not in made
    assert made["total_shards"] == 2 and made["total_rows"] == 3
    for i in range(1, 20):
        made = dataset.write(rows(3 * i, 3 * i + 1, 3 * i + 2), tmp_path, mode="append",
                             batch_size=2, columns="x")
    for i in range(1, 21):
        assert numbers(tmp_path, version=i) == list(range(3 * i))
    assert dataset.verify(tmp_path, deep=True)["versions"] == 20
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    assert [one["shards"] for one in made["segments"]] == [30, 6, 2, 2]
    assert segments(tmp_path) == sorted(".dataset_segment-" + one["sha256"]
                                        for one in made["segments"])
    assert numbers(tmp_path) == list(range(60))
    with dataset.open(tmp_path) as found:
        assert found.manifest == made and len(found.shards) == 40 and int(found[41]["x"]) == 41
    assert dataset.info(tmp_path)["segments"] == 4
    assert dataset.verify(tmp_path, deep=True)["ok"]
    assert dataset.gc(tmp_path, grace=0)["garbage"] == []


def test_forms(tmp_path):
    dataset.write(rows(0), tmp_path, batch_size=1, columns="x")
    made = dataset.write(rows(1), tmp_path, mode="append", batch_size=1, columns="x",
                         manifest="segments")
    assert len(made["segments"]) == 1
    made = dataset.write(rows(2), tmp_path, mode="append", batch_size=1, columns="x",
                         manifest="whole")
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    assert len(made["shards"]) == 3 and not segments(tmp_path)
    assert dataset.compact(tmp_path, manifest="segments", dry_run=True)["segments_after"] == 1
    assert not segments(tmp_path)
    assert dataset.compact(tmp_path, manifest="segments")["segments_before"] is None
    assert len(segments(tmp_path)) == 1
    assert dataset.compact(tmp_path, manifest="whole")["segments_after"] is None
    assert dataset.verify(tmp_path)["versions"] == 3
    assert numbers(tmp_path) == [0, 1, 2]
    with pytest.raises(ValueError, match="manifest: expected"):
        dataset.compact(tmp_path, manifest="lists")
    with pytest.raises(ValueError, match="option manifest: expected whole or segments"):
        dataset.write(rows(3), tmp_path, mode="append", batch_size=1, manifest="lists")


def test_keys_and_index(tmp_path):
    options = dict(name_col="name", duplicatesStrategy="lastWin", generate_index=True)
    dataset.write(rows(0, 1, 2), tmp_path, manifest="segments", **options)
    made = dataset.write(rows(2, 3), tmp_path, mode="append", **options)
    assert made["total_shadowed"] == 1 and "schema" not in made
    assert sorted(numbers(tmp_path)) == [0, 1, 2, 3]
    assert numbers(tmp_path, keys=["r1__x", "r3__x"]) == [1, 3]
    assert dataset.verify(tmp_path, deep=True)["ok"]
    done = dataset.compact(tmp_path, target_bytes=1 << 20)
    assert done["tensors_dropped"] == 1 and done["segments_after"] == 1
    assert sorted(numbers(tmp_path)) == [0, 1, 2, 3]


def test_resumed(tmp_path):
    torch = pytest.importorskip("torch")
    dataset.write(rows(*range(20)), tmp_path, batch_size=3, columns="x", manifest="segments")
    whole = [int(v) for batch in dataset.TorchBatches(tmp_path, 4, seed=1).loader()
             for v in batch["x"]]
    assert sorted(whole) == list(range(20))
    loader = dataset.TorchBatches(tmp_path, 4, seed=1).loader()
    first = [int(v) for v in next(iter(loader))["x"]]
    state = loader.state_dict()
    dataset.compact(tmp_path, manifest="whole")  # the same rows in the same order
    loader = dataset.TorchBatches(tmp_path, 4, seed=1).loader()
    loader.load_state_dict(state)
    assert first + [int(v) for batch in loader for v in batch["x"]] == whole
    assert torch is not None


def test_damage(tmp_path):
    dataset.write(rows(0, 1), tmp_path, batch_size=1, columns="x", manifest="segments")
    file = tmp_path / segments(tmp_path)[0]
    shutil.copy(file, tmp_path / "kept")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(dataset._maintain._core.SafetensorError, match="another digest") as caught:
        dataset.open(tmp_path)
    assert caught.value.code == "dataset_shard"
    report = dataset.verify(tmp_path)
    assert not report["ok"] and report["findings"][0]["code"] == "dataset_shard"
    file.unlink()
    with pytest.raises(dataset._maintain._core.SafetensorError, match="found none"):
        dataset.open(tmp_path)
    (tmp_path / "kept").rename(file)
    assert numbers(tmp_path) == [0, 1]


def test_read_by_any_program(tmp_path):
    """A segment is a safetensors file."""
    np = pytest.importorskip("numpy")
    from libsafetensors.numpy import load
    made = dataset.write(rows(0, 1, 2), tmp_path, batch_size=2, columns="x", manifest="segments")
    data = (tmp_path / (".dataset_segment-" + made["segments"][0]["sha256"])).read_bytes()
    columns = load(data)
    assert columns["samples"].tolist() == [2, 1] and columns["first_sample"].tolist() == [0, 2]
    names = bytes(columns["names"]).decode().split("\0")
    assert names[-1] == "" and all((tmp_path / name).is_file() for name in names[:-1])
    with dataset.open(tmp_path) as found:
        assert [one["name"] for one in found.shards] == names[:-1]
        assert [one["sha256"] for one in found.shards] == \
            [bytes(row).hex() for row in columns["sha256"]]
    assert columns["bytes"].dtype == np.uint64
    metadata = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    assert len(metadata.pop("attempt")) == 36
    assert metadata == {"commit": made["commit"], "libsafetensors.dataset": "1",
                        "mode": "segment"}


APPENDS = """
import sys, pyarrow as pa
from libsafetensors import dataset
i = int(sys.argv[2])
while True:
    dataset.write(pa.table({"x": [i]}), sys.argv[1], mode="append", batch_size=1, sync=False)
    print(i, flush=True)
    i += 1
"""


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.long)])
def test_killed_while_appending(tmp_path, times):
    """What was reported is there, at most one append more, and gc finds the rest."""
    choose = random.Random(7)
    dataset.write(pa.table({"x": [0]}), tmp_path, batch_size=1, manifest="segments")
    for _ in range(times):
        there = numbers(tmp_path)  # of one version
        assert there == list(range(len(there)))
        running = subprocess.Popen([sys.executable, "-c", APPENDS, tmp_path, str(len(there))],
                                   stdout=subprocess.PIPE)
        first = running.stdout.readline()
        time.sleep(choose.uniform(0, 0.2))
        running.kill()
        told = [int(line) for line in first.splitlines() + running.stdout.read().splitlines()]
        running.wait()
        running.stdout.close()
        now = numbers(tmp_path)
        assert now == list(range(len(now))) and told[-1] + 1 <= len(now) <= told[-1] + 2
        dataset.gc(tmp_path, delete=True, grace=0, keep=5)
        last, kept = len(now), min(5, len(now) - len(there) + 1)
        for version in dataset.versions(tmp_path)["versions"]:
            assert numbers(tmp_path, version=version["version"]) == now[:version["samples"]]
            assert version["version"] == version["samples"] > last - 5
        report = dataset.verify(tmp_path, deep=True)
        assert report["ok"] and report["orphan_count"] == 0 and report["versions"] == kept
        dataset.gc(tmp_path, delete=True, grace=0, keep=1)
        with dataset.open(tmp_path) as found:
            named = {one["name"] for one in found.shards}
            named |= {".dataset_segment-" + one["sha256"] for one in found.manifest["segments"]}
            # kept by an append that was killed before it replaced the manifest; the next one writes it
            begun = ".dataset_version-%d-%s" % (last, found.manifest["history"])
        assert set(os.listdir(tmp_path)) - {begun} == named | {"dataset_manifest.json",
                                                               ".dataset.lock"}
