#!/usr/bin/env python3
"""The test suite of the official package, run on ours.

    official_suite.py [--official | --update]

The suite comes from the source package of the official release, which is pinned by its digest
and cached outside the clone; nothing of it is kept in the project but the names of the tests that
pass with the official binary, in official_required.txt. It runs twice, each time in a fresh
temporary copy, because it writes to its working directory:

  extension   the official Python files over our extension
  package     our whole package under the name safetensors (bindings/python/standin)

Every required test must pass in both runs. --official runs it with the official binary alone,
where the same tests must pass; --update writes their names anew. Run it by a Python that
has libsafetensors, the official package, numpy, torch and pytest.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REQUIRED = os.path.join(ROOT, "tests", "compat", "official_required.txt")
STANDIN = os.path.join(ROOT, "bindings", "python", "standin")

VERSION = "0.8.0"
SHA256 = "fabaf3e0f18a6618d9b36560682562157f77c2b71fcffc7b432be2baed9d753d"
ARCHIVE = "safetensors-%s.tar.gz" % VERSION
FEWEST = 60
SPACE = 1200 << 20
LIMIT_S = 900

# pip asks a source package for its metadata before it hands it over; the real hook would want
# a Rust toolchain and its registry. This one answers.
BACKEND = '''\
import os
def get_requires_for_build_wheel(*args, **more): return []
def prepare_metadata_for_build_wheel(folder, *args, **more):
    name = "safetensors-%(version)s.dist-info"
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as out:
        out.write("Metadata-Version: 2.1\\nName: safetensors\\nVersion: %(version)s\\n")
    return name
''' % {"version": VERSION}

EXTENSION = '''\
from libsafetensors._official import *
from libsafetensors._official import __version__, _safe_open_handle
'''

# Writes one line for each test, and first what was tested.
CONFTEST = '''\
import json, os
def put(row):
    with open(os.environ["OFFICIAL_LOG"], "a") as out:
        out.write(json.dumps(row) + "\\n")
def pytest_sessionstart(session):
    import safetensors, safetensors.torch
    put({"package": safetensors.__file__, "error": safetensors.SafetensorError.__module__,
         "torch": safetensors.torch.save_file.__module__, "version": safetensors.__version__})
def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        put({"id": report.nodeid, "when": report.when, "outcome": report.outcome,
             "text": "" if report.outcome == "passed" else str(report.longrepr)[-1500:]})
def pytest_collectreport(report):
    if report.failed:
        put({"module": report.nodeid, "text": str(report.longrepr).strip().splitlines()[-1]})
'''


class Broken(Exception):
    """The suite cannot be run as it should."""


def digest(path):
    with open(path, "rb") as data:
        return hashlib.sha256(data.read()).hexdigest()


def archive():
    """The path of the source package, downloaded on first use."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                         "libsafetensors", "official-" + SHA256[:16])
    path = os.path.join(cache, ARCHIVE)
    if os.path.exists(path) and digest(path) == SHA256:
        return path
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        stub = os.path.join(work, "stub")
        os.mkdir(stub)
        with open(os.path.join(stub, "maturin.py"), "w") as out:
            out.write(BACKEND)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-binary", "safetensors", "--no-build-isolation",
             "--dest", work, "safetensors==" + VERSION],
            env=dict(os.environ, PYTHONPATH=stub), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
        got = os.path.join(work, ARCHIVE)
        if not os.path.exists(got):
            raise Broken("pip brought no %s:\n%s" % (ARCHIVE, done.stdout[-2000:]))
        if digest(got) != SHA256:
            raise Broken("%s has the digest %s, not the pinned one" % (ARCHIVE, digest(got)))
        shutil.copy(got, path + ".new")
        os.replace(path + ".new", path)
    return path


def unpack(path, work):
    """(folder with tests/, folder of the Python files), found by their names."""
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            if not (member.isfile() or member.isdir()) or ".." in member.name.split("/") \
                    or member.name.startswith("/"):
                raise Broken("%s is not a plain file" % member.name)
        tar.extractall(work)
    tests = python = None
    for folder, _, names in os.walk(work):
        if "test_simple.py" in names:
            tests = os.path.dirname(folder)
        if "torch.py" in names and "numpy.py" in names:
            python = folder
    if not tests or not python:
        raise Broken("the source package holds no tests, or no Python files")
    return tests, python


def seam(kind, work, python):
    """The folder to put first in sys.path."""
    if kind == "official":
        return []
    if kind == "package":
        return [STANDIN]
    folder = os.path.join(work, "seam")
    shutil.copytree(python, os.path.join(folder, "safetensors"))
    with open(os.path.join(folder, "safetensors", "_safetensors_rust.py"), "w") as out:
        out.write(EXTENSION)
    return [folder]


def check_seam(kind, facts, front):
    """Raise unless the run tested what it was to test."""
    ours = facts["error"].startswith("libsafetensors")
    ours_torch = facts["torch"].startswith("libsafetensors")
    want = {"official": (False, False), "extension": (True, False), "package": (True, True)}[kind]
    if (ours, ours_torch) != want or facts["version"] != VERSION or \
            (front and not facts["package"].startswith(front[0])):
        raise Broken("the %s run tested the wrong package: %s" % (kind, facts))


def run(kind, tests, python):
    """Rows of the log of one run."""
    with tempfile.TemporaryDirectory(prefix="official-") as work:
        if shutil.disk_usage(work).free < SPACE:
            raise Broken("the temporary folder has less than %d MB free" % (SPACE >> 20))
        copy = os.path.join(work, "run")
        shutil.copytree(os.path.join(tests, "tests"), os.path.join(copy, "tests"))
        with open(os.path.join(copy, "conftest.py"), "w") as out:
            out.write(CONFTEST)
        front = seam(kind, work, python)
        log = os.path.join(work, "log")
        path = front + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        env = dict(os.environ, OFFICIAL_LOG=log, PYTHONPATH=os.pathsep.join(path),
                   PYTHONDONTWRITEBYTECODE="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
                   CUDA_VISIBLE_DEVICES=os.environ.get("OFFICIAL_CUDA", ""))
        env.pop("PYTEST_ADDOPTS", None)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", copy,
             "--continue-on-collection-errors", "tests"],
            cwd=copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LIMIT_S)
        if not os.path.exists(log):
            raise Broken("the %s run did not start:\n%s" % (kind, done.stdout[-3000:]))
        with open(log) as rows:
            rows = [json.loads(row) for row in rows]
        check_seam(kind, rows[0], front)
        print("official_suite: %-9s %.1f s: %s" % (
            kind, time.monotonic() - began, done.stdout.strip().splitlines()[-1]))
        return rows[1:]


def passed(rows):
    """Tests that passed and had no failure before or after."""
    good = {row["id"] for row in rows if row.get("outcome") == "passed"}
    return good - {row["id"] for row in rows if row.get("outcome") == "failed"}


def passing(rows):
    """The tests that pass with the official binary."""
    seen = {row["id"] for row in rows if "id" in row}
    if len(seen) < FEWEST:
        raise Broken("only %d tests were collected, expected %d or more" % (len(seen), FEWEST))
    for row in rows:
        if "module" in row:
            print("official_suite: not here: %s (%s)" % (row["module"], row["text"][:100]))
        elif row["outcome"] == "failed":
            print("official_suite: fails with the official package too: %s" % row["id"])
    need = passed(rows)
    print("official_suite: %d of %d tests pass" % (len(need), len(seen)))
    if len(need) < FEWEST:
        raise Broken("only %d tests pass with the official package" % len(need))
    return need


def compare(found, need):
    """(passed, failed) of the list; prints what differs."""
    for name in sorted(found ^ need):
        print("official_suite: %s %s" % (name, "passes, and is not listed" if name in found
                                         else "is listed, and does not pass"))
    return len(found & need), len(found ^ need)


def judge(kind, rows, need):
    """(passed, failed) of the required set; prints the failures."""
    missing = sorted(need - passed(rows))
    texts = {row["id"]: row["text"] for row in rows if row.get("outcome", "passed") != "passed"}
    for name in missing:
        print("official_suite: FAILED (%s) %s\n%s" % (kind, name, texts.get(name, "did not run")))
    return len(need) - len(missing), len(missing)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--official", action="store_true")
    options.add_argument("--update", action="store_true")
    options = options.parse_args()
    good = bad = 0
    with open(REQUIRED, encoding="utf-8") as names:
        need = set(names.read().split())
    try:
        with tempfile.TemporaryDirectory(prefix="official-") as work:
            tests, python = unpack(archive(), work)
            if options.official or options.update:
                found = passing(run("official", tests, python))
                if options.update:
                    need = found
                    with open(REQUIRED, "w", encoding="utf-8") as out:
                        out.write("".join("%s\n" % name for name in sorted(found)))
                good, bad = compare(found, need)
            else:
                for kind in ("extension", "package"):
                    ok, failed = judge(kind, run(kind, tests, python), need)
                    good, bad = good + ok, bad + failed
    except (Broken, OSError, subprocess.TimeoutExpired) as error:
        print("official_suite: %s" % error)
        bad += 1
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
