"""Many processes that append to one dataset at once: every success is in the dataset, every loss
was reported, and nothing that is named is garbage. On each kind of storage; for a few seconds, or
SFT_WRITERS_S in all (`SFT_WRITERS_S=60`)."""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")

HERE = pathlib.Path(__file__).parent
WRITERS = 4
SECONDS = float(os.environ.get("SFT_WRITERS_S", "10")) / 4  # there are four kinds

WRITER = """
import json, sys, time
import pyarrow as pa
from libsafetensors import dataset
who, url, storage = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
print("ready", flush=True)
until = time.time() + float(sys.stdin.readline())
lost, done = 0, 0
while time.time() < until or not done:
    value = who * 1_000_000 + done + lost
    try:
        dataset.write(pa.table({"c": [value]}), url, batch_size=1, mode="append", **storage)
    except Exception as error:
        code = getattr(error, "code", None)
        if code not in ("dataset_changed", "dataset_busy"):
            print("wrong", type(error).__name__, code, error, flush=True)
            raise
        lost += 1
        continue
    done += 1
    print("done", value, flush=True)
"""


def run(url, storage, env=None):
    """The values that were reported to be written."""
    made = [subprocess.Popen([sys.executable, "-c", WRITER, str(who), url, json.dumps(storage)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, **(env or {})))
            for who in range(WRITERS)]
    for one in made:
        assert one.stdout.readline() == "ready\n"
    for one in made:
        one.stdin.write("%f\n" % SECONDS)
        one.stdin.flush()
    ends = [one.communicate(timeout=120 + 20 * SECONDS) for one in made]
    for one, (_, errors) in zip(made, ends):
        assert one.returncode == 0, errors
    return sorted(int(line.split()[1]) for out, _ in ends for line in out.splitlines())


def whole(url, storage, told):
    assert len(told) >= WRITERS
    dataset.gc(url, delete=True, grace=0, **storage)
    report = dataset.verify(url, deep=True, **storage)
    assert report["ok"], report["findings"]
    assert report["orphan_count"] == 0, report["orphans"]
    with dataset.open(url, **storage) as found:
        assert sorted(row["c"].item() for row in found) == told
    assert dataset.info(url, **storage)["version"] == len(told)


def test_with_locks(tmp_path):
    whole(str(tmp_path), {}, run(str(tmp_path), {"sync": False}))
    assert not list(tmp_path.glob(".dataset_manifest.commit-*"))


@pytest.fixture(scope="module")
def lockless(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    library = tmp_path_factory.mktemp("lockless") / "lockless.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "lockless.c"], check=True)
    return str(library)


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks(tmp_path, lockless, error):
    env = {"LD_PRELOAD": lockless, "LOCKLESS_ERRNO": str(error)}
    told = run(str(tmp_path), {"sync": False}, env)
    whole(str(tmp_path), {}, told)
    assert list(tmp_path.glob(".dataset_manifest.commit-*"))


@contextlib.contextmanager
def server():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    running = subprocess.Popen([sys.executable, HERE / "s3_server.py", str(port)],
                               env=dict(os.environ, MOTO_EC2_LOAD_DEFAULT_AMIS="false"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen("http://127.0.0.1:%d/moto-api/" % port, timeout=5).close()
                break
            except OSError:
                assert running.poll() is None, "moto's server did not start"
                time.sleep(0.2)
        yield "127.0.0.1:%d" % port
    finally:
        running.terminate()
        running.wait()


def test_in_s3():
    pytest.importorskip("moto.server")
    fs = pytest.importorskip("pyarrow.fs")
    if not hasattr(fs, "S3FileSystem"):
        pytest.skip("pyarrow without S3")
    with server() as address:
        options = {"endpoint_override": address, "scheme": "http", "access_key": "key",
                   "secret_key": "very-secret", "region": "us-east-1"}
        fs.S3FileSystem(**options, allow_bucket_creation=True).create_dir("bucket")
        storage = {"storage." + key: value for key, value in options.items()}
        told = run("s3://bucket/d", storage)
        whole("s3://bucket/d", storage, told)
