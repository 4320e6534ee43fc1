"""Shards of remote datasets in a folder that processes share: each is fetched once, compared with
its digest, and removed when there is no room. Processes count their requests in a common file."""
import os
import signal
import subprocess
import sys
import time

import pytest

from libsafetensors import SafetensorError, dataset
from libsafetensors.dataset import _storage
from libsafetensors.dataset._cache import Cache

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
fcntl = pytest.importorskip("fcntl")
SHARDS, ROWS = 12, 500

PROGRAM = """
import os, sys, time
from pyarrow import fs
from libsafetensors import dataset
from libsafetensors.dataset import _storage
log, pause = sys.argv[3], float(sys.argv[4])
get = _storage._Reader._get
def counted(self, begin, end):
    with open(log, "a") as out:
        out.write("%s %d %d\\n" % (os.path.basename(self.name), begin, end))
    if self.name.endswith(".safetensors"):
        time.sleep(pause)
    data = get(self, begin, end)
    return data
_storage._Reader._get = counted
_storage.filesystem = lambda scheme, url, options: (fs.LocalFileSystem(), url.partition("//")[2])
def opened(**more):
    return dataset.open("store://" + sys.argv[1], cache_dir=sys.argv[2], **more)
"""
READ = PROGRAM + """
print(sum(row["x"].item() for row in opened()))
"""


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "far"
    dataset.write({"x": range(SHARDS * ROWS)}, path, batch_size=ROWS)
    return path


@pytest.fixture
def far(stored, tmp_path, monkeypatch):
    """Opens it in this process."""
    monkeypatch.setattr(_storage, "filesystem", lambda scheme, url, options:
                        (fs.LocalFileSystem(), url.partition("//")[2]))
    return lambda **more: dataset.open("store://" + stored.as_posix(),
                                       cache_dir=tmp_path / "cache", **more)


def start(stored, tmp_path, program=READ, pause=0.01):
    script = tmp_path / "program.py"  # spawned workers read it, too
    if not script.exists():
        script.write_text(program)
    return subprocess.Popen([sys.executable, str(script), stored.as_posix(),
                             str(tmp_path / "cache"), str(tmp_path / "log"), str(pause)],
                            stdout=subprocess.PIPE, text=True)


def requests(tmp_path):
    """Of shards, but for the manifest."""
    found = (tmp_path / "log").read_text().splitlines()
    return [line for line in found if line.startswith("part-")]


def kept(tmp_path, kind="*.safetensors"):
    return sorted((tmp_path / "cache").glob(kind))


def total(found):
    return sum(row["x"].item() for row in found)


WHOLE = SHARDS * ROWS * (SHARDS * ROWS - 1) // 2


def test_processes_fetch_each_shard_once(stored, tmp_path):
    running = [start(stored, tmp_path) for _ in range(3)]
    assert [int(one.communicate()[0]) for one in running] == [WHOLE] * 3
    assert all(one.returncode == 0 for one in running)
    assert len(requests(tmp_path)) == len(set(requests(tmp_path))) == SHARDS
    assert len(kept(tmp_path)) == SHARDS and kept(tmp_path, "*.part") == []
    assert os.stat(tmp_path / "cache").st_mode & 0o777 == 0o700


def test_a_killed_process(stored, tmp_path, far):
    """What it has not finished is taken for nothing, and does not stay."""
    running = start(stored, tmp_path, pause=1000)
    while not any(one.stat().st_size for one in kept(tmp_path, "*.part")):
        assert running.poll() is None
        time.sleep(0.01)
    part = kept(tmp_path, "*.part")[0]
    assert part.stat().st_size == next(stored.glob("*.safetensors")).stat().st_size
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert kept(tmp_path) == []
    assert total(far()) == WHOLE
    assert len(kept(tmp_path)) == SHARDS and kept(tmp_path, "*.part") == []


def test_who_waits_for_a_killed_process(stored, tmp_path):
    slow = start(stored, tmp_path, pause=1000)
    while not any(one.stat().st_size for one in kept(tmp_path, "*.part")):
        assert slow.poll() is None
        time.sleep(0.01)
    waiting = start(stored, tmp_path)
    time.sleep(0.5)
    slow.send_signal(signal.SIGKILL)
    slow.communicate()
    assert int(waiting.communicate()[0]) == WHOLE


def test_a_process_forked_meanwhile_keeps_no_lock(tmp_path):
    """Neither that on the folder nor that on a shard which could not be fetched."""
    cache, children, opened = Cache(tmp_path / "cache"), [], []

    def forked(begin, end):
        opened.append(os.open(kept(tmp_path, "*.part")[0], os.O_RDWR))
        children.append(os.fork())
        if not children[-1]:
            time.sleep(1000)
        raise ConnectionError
    try:
        with pytest.raises(ConnectionError):
            cache.get("0" * 64, 5, forked)
        with cache._alone():
            opened.append(os.open(tmp_path / "cache" / ".lock", os.O_RDWR))
            children.append(os.fork())
            if not children[-1]:
                time.sleep(1000)
        for one in opened:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        for one in children:
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)
        for one in opened:
            os.close(one)


def test_descriptors_of_many_shards(tmp_path, far):
    """As many as stay open, not as the dataset has shards."""
    dataset.write({"x": range(600)}, tmp_path / "far", batch_size=1, mode="overwrite")
    before = len(os.listdir("/dev/fd"))
    with far() as found:
        assert sum(row["x"].item() for row in found) == sum(range(600))
        assert len(os.listdir("/dev/fd")) - before < 300


def test_a_digest_in_capitals(stored, tmp_path, far):
    manifest = stored / "dataset_manifest.json"
    with far() as found:
        digest = found.shards[0]["sha256"]
    manifest.write_text(manifest.read_text().replace(digest, digest.upper()))
    assert far()[0]["x"] == 0
    assert [one.stem for one in kept(tmp_path)] == [digest]


@pytest.mark.parametrize("change", ["bit", "short", "empty"])
def test_a_damaged_shard_is_fetched_again(tmp_path, far, change):
    assert total(far()) == WHOLE
    data = bytearray(kept(tmp_path)[3].read_bytes())
    data[-1] ^= 1
    kept(tmp_path)[3].write_bytes({"bit": data, "short": data[:-1], "empty": b""}[change])
    assert total(far()) == WHOLE
    assert kept(tmp_path)[3].read_bytes()[-1] == data[-1] ^ 1


def test_a_shard_that_is_another_one(stored, tmp_path, far):
    path = sorted(stored.glob("*.safetensors"))[0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(SafetensorError, match="expected the SHA-256 .* by the manifest, found"):
        total(far())
    assert kept(tmp_path, "*.part") == []


@pytest.mark.parametrize("room", [1, 3.5, SHARDS])
def test_the_bound(stored, tmp_path, far, room):
    size = next(stored.glob("*.safetensors")).stat().st_size
    for _ in range(2):
        with far(cache_bytes=int(room * size)) as found:
            for row in found:
                if row["x"] % ROWS == 0:
                    assert sum(one.stat().st_size for one in kept(tmp_path, "*.[sp]a*")) <= \
                        room * size
    assert len(kept(tmp_path)) == int(room)


def test_without_room_it_is_read_from_afar(stored, tmp_path, far):
    size = next(stored.glob("*.safetensors")).stat().st_size
    assert total(far(cache_bytes=size - 1)) == WHOLE and kept(tmp_path) == []
    with far(cache_bytes=size) as one, far(cache_bytes=size) as other:
        assert one[0]["x"] == 0  # which stays open
        assert other[ROWS]["x"] == ROWS and len(kept(tmp_path)) == 1


@pytest.mark.parametrize("room", [1, 3])
def test_too_small_a_cache_fetches_no_shard_twice(stored, tmp_path, far, monkeypatch, room):
    fetched, fetch = [], Cache._fetch

    def counted(self, descriptor, digest, *more):
        fetched.append(digest)
        fetch(self, descriptor, digest, *more)
    monkeypatch.setattr(Cache, "_fetch", counted)
    size = next(stored.glob("*.safetensors")).stat().st_size
    with far(cache_bytes=room * size) as found:
        for offset in range(3):
            for row in range(offset, SHARDS * ROWS, ROWS):
                assert found[row]["x"] == row
    assert len(fetched) == len(set(fetched)) == SHARDS


def test_the_longest_unused_goes_first(stored, tmp_path, far):
    size = next(stored.glob("*.safetensors")).stat().st_size

    def read(shard):
        before = set(kept(tmp_path))
        with far(cache_bytes=3 * size) as found:
            assert found[shard * ROWS]["x"] == shard * ROWS
        return before - set(kept(tmp_path)), set(kept(tmp_path)) - before
    first = [read(shard)[1] for shard in (0, 1, 2)]
    assert read(0) == (set(), set())
    assert read(3)[0] == first[1]
    assert read(4)[0] == first[2]


def test_hostile_folders(tmp_path, far):
    cache, other = tmp_path / "cache", tmp_path / "other"
    other.mkdir(mode=0o700)
    cache.symlink_to(other)
    with pytest.raises(PermissionError, match="cache_dir: expected a folder that is yours"):
        far()
    cache.unlink()
    cache.write_bytes(b"")
    with pytest.raises(PermissionError, match="cache_dir"):
        far()
    cache.unlink()
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(PermissionError, match="cache_dir"):
        far()
    cache.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(cache, 12345, 12345)
        with pytest.raises(PermissionError, match="cache_dir"):
            far()


@pytest.mark.parametrize("ending", [".safetensors", ".part"])
def test_hostile_files(stored, tmp_path, far, ending):
    """Also such as hold what they should."""
    with far() as found:
        digest, name = found.shards[0]["sha256"], found.shards[0]["name"]
    path = tmp_path / "cache" / (digest + ending)
    outside = tmp_path / "outside"
    outside.write_bytes((stored / name).read_bytes())
    path.symlink_to(outside)
    with pytest.raises(OSError):
        far()[0]
    path.unlink()
    path.write_bytes(outside.read_bytes())
    path.chmod(0o666)
    with pytest.raises(PermissionError):
        far()[0]
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
        with pytest.raises(PermissionError):
            far()[0]
        os.chown(path, 0, 0)
    path.unlink()
    (tmp_path / "cache" / ".lock").unlink()
    (tmp_path / "cache" / ".lock").symlink_to(outside)
    with pytest.raises(OSError):
        far()[0]
    assert outside.read_bytes() == (stored / name).read_bytes()


@pytest.mark.parametrize("shuffle, partition", [
    ("shards", "batches"), (False, "batches"), ("blocks", "shards")])
@pytest.mark.few(1)
def test_loaders_fetch_ahead(stored, tmp_path, shuffle, partition):
    pytest.importorskip("torch")
    program = PROGRAM + """
import threading
from libsafetensors.dataset import TorchBatches
batches = TorchBatches("store://" + sys.argv[1], 50, cache_dir=sys.argv[2], shuffle=%r,
                       partition=%r, open_shards=2, rows=range(250, 5750))
main, seen = threading.main_thread(), set()
file = batches.dataset._shards._held
def told(i):
    seen.add(threading.current_thread() is main)
    return file(i)
batches.dataset._shards._held = told
print(sum(int(batch["x"].sum()) for batch in batches), False in seen)
""" % (shuffle, partition)
    done = start(stored, tmp_path, program)
    assert done.communicate()[0].split() == [str(sum(range(250, 5750))), "True"]
    assert len(requests(tmp_path)) == SHARDS


def test_a_mix_is_cached_and_fetched_ahead(stored, tmp_path):
    """Each dataset under its own digests, in one folder; no shard is fetched twice."""
    pytest.importorskip("torch")
    dataset.write({"x": range(10**6, 10**6 + 3000)}, tmp_path / "more", batch_size=ROWS)
    program = PROGRAM + """
import threading
from libsafetensors.dataset import Mix, TorchBatches
mix = Mix([("store://" + sys.argv[1], 2), ("store://" + sys.argv[1] + "/../more", 1)],
          until="all_exhausted", cache_dir=sys.argv[2], rows=(250, 2750))
main, seen = threading.main_thread(), set()
for one in mix.datasets:
    def told(i, one=one, held=one._shards._held):
        seen.add((one.path, threading.current_thread() is main))
        return held(i)
    one._shards._held = told
for _ in range(2):
    rows = [x for batch in TorchBatches(mix, 50, shuffle="shards", ends="uneven")
            for x in batch["x"].tolist()]
    print(len(rows), sum({x for x in rows if x >= 10**6}), sum({x for x in rows if x < 10**6}))
print(sum(not main for _, main in seen))
"""
    done = start(stored, tmp_path, program)
    whole = sum(range(250, 2750))
    line = ["7500", str(whole + 2500 * 10**6), str(whole)]
    assert done.communicate()[0].split() == line * 2 + ["2"]
    assert len(requests(tmp_path)) == 12


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_loaders_with_workers(tmp_path, stored, method):
    pytest.importorskip("torch")
    program = PROGRAM + """
from libsafetensors.dataset import TorchBatches
if __name__ == "__main__":
    batches = TorchBatches("store://" + sys.argv[1], 50, cache_dir=sys.argv[2], shuffle=False)
    loader = batches.loader(num_workers=2, multiprocessing_context=%r)
    for _ in range(2):
        print(sum(int(batch["x"].sum()) for batch in loader))
""" % method
    done = start(stored, tmp_path, program)
    assert done.communicate()[0].split() == [str(WHOLE)] * 2
    assert len(requests(tmp_path)) == SHARDS


def test_options(tmp_path, far):
    with pytest.raises(ValueError, match="cache_bytes: expected a number of bytes from 1 on"):
        far(cache_bytes=0)
