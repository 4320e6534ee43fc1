"""Many processes that append to one dataset at once: every success is in the dataset, every loss
was reported, and nothing that is named is garbage. On each kind of storage; for a moment, or
SFT_WRITERS_S in all (`make writers`: 60)."""
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
SECONDS = float(os.environ.get("SFT_WRITERS_S", "1.5")) / 6  # there are three kinds, two forms


def forms(usual):
    """Both forms of manifests; make test has the usual one."""
    return pytest.mark.parametrize("form", [
        pytest.param(form, marks=[] if form == usual else pytest.mark.long)
        for form in ("whole", "segments")])


WRITER = """
import json, os, subprocess, sys, time
import pyarrow as pa
from libsafetensors import dataset
seconds, writers, url, storage, errors = (json.loads(text) for text in sys.argv[1:6])

def write(who):
    if errors:
        os.environ["LOCKLESS_ERRNO"] = str(errors[who % len(errors)])
    lost, done = 0, 0
    while time.time() < until or not done:
        value = who * 1_000_000 + done + lost
        try:
            dataset.write(pa.table({"c": [value]}), url, batch_size=1, mode="append", **storage)
        except Exception as error:
            code = getattr(error, "code", None)
            if code not in ("dataset_changed", "dataset_busy"):
                print(type(error).__name__, code, error, file=sys.stderr, flush=True)
                os._exit(1)
            lost += 1
            continue
        done += 1
        os.write(1, b"done %d\\n" % value)

if sys.argv[6:]:  # a writer where there is no fork
    begin = float(sys.argv[7])
    until = begin + seconds
    time.sleep(max(0, begin - time.time()))
    write(int(sys.argv[6]))
    os._exit(0)
if not hasattr(os, "fork"):
    begin = str(time.time() + 20)  # when all have started
    children = [subprocess.Popen([*sys.orig_argv, str(who), begin]) for who in range(writers)]
    sys.exit(any([child.wait() for child in children]))
until = time.time() + seconds
children = []
for who in range(writers):
    children.append(os.fork())
    if not children[-1]:
        write(who)
        os._exit(0)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def run(url, storage, env=None, errors=()):
    """The values that were reported to be written. errors: of writers in turn, what asking for a
    lock tells."""
    words = [json.dumps(word) for word in (SECONDS, WRITERS, url, storage, errors)]
    done = subprocess.run([sys.executable, "-c", WRITER, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120 + 20 * SECONDS,
                          env=dict(os.environ, **(env or {})), check=False)
    assert done.returncode == 0, done.stderr
    return sorted(int(line.split()[1]) for line in done.stdout.splitlines())


def whole(url, storage, told):
    assert len(told) >= WRITERS
    dataset.gc(url, delete=True, grace=0, **storage)
    report = dataset.verify(url, deep=True, **storage)
    assert report["ok"], report["findings"]
    assert report["orphan_count"] == 0, report["orphans"]
    with dataset.open(url, **storage) as found:
        assert sorted(row["c"].item() for row in found) == told
    assert dataset.info(url, **storage)["version"] == len(told)


@forms("whole")
@pytest.mark.long
def test_with_locks(tmp_path, form):
    whole(str(tmp_path), {}, run(str(tmp_path), {"sync": False, "manifest": form}))
    assert not list(tmp_path.glob(".dataset_manifest.commit-*"))


@pytest.fixture(scope="module")
def lockless(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    library = tmp_path_factory.mktemp("lockless") / "lockless.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "lockless.c"], check=True)
    return str(library)


@pytest.mark.long
@forms("segments")
def test_without_locks(tmp_path, lockless, form):
    """Which file systems tell in different words."""
    told = run(str(tmp_path), {"sync": False, "manifest": form}, {"LD_PRELOAD": lockless},
               (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS))
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


@pytest.fixture
def s3():
    """Options of a storage that has s3://bucket."""
    pytest.importorskip("moto.server")
    fs = pytest.importorskip("pyarrow.fs")
    if not hasattr(fs, "S3FileSystem"):
        pytest.skip("pyarrow without S3")
    with server() as address:
        options = {"endpoint_override": address, "scheme": "http", "access_key": "key",
                   "secret_key": "very-secret", "region": "us-east-1"}
        fs.S3FileSystem(**options, allow_bucket_creation=True).create_dir("bucket")
        yield {"storage." + key: value for key, value in options.items()}


@pytest.mark.long
@forms("segments")
def test_in_s3(form, s3):
    told = run("s3://bucket/d", {**s3, "manifest": form})
    whole("s3://bucket/d", s3, told)
