#!/usr/bin/env python3
"""Run tests/python under wine, in the genuine CPython of tools/windows_python.sh.

usage: tests/windows/python.py [--package FOLDER] [-k WORDS] [FILE...]
    --package   with libsafetensors/_core.pyd and safetensors.exe (build/mingw)

What does not pass is listed in python_skips.tsv, with reasons. Each file of tests is a process of
its own. Last line: "N passed, N failed, N skipped".
"""
import argparse
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TESTS = os.path.join(ROOT, "tests", "python")
PYTHON = os.path.join(ROOT, "build", "windows-python", "python")
WINE = "/usr/lib/wine/wine64"
LIMIT = 900  # seconds of one file


def windows(path):
    return "Z:" + os.path.abspath(path).replace("/", "\\")


def install(package):
    """The package and the command as a wheel puts them."""
    packages, scripts = (os.path.join(PYTHON, name) for name in ("Lib/site-packages", "Scripts"))
    target = os.path.join(packages, "libsafetensors")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "bindings/python/libsafetensors"), target,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(package, "python/libsafetensors/_core.pyd"), target)
    shutil.copy(os.path.join(package, "safetensors.exe"), scripts)


def environment():
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    shared = env.get("SFT_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
    env.update(WINEPREFIX=env.get("WINEPREFIX", os.path.join(ROOT, "build", "wine", "prefix")),
               WINEDEBUG="-all", SFT_SHARED=windows(shared), PYTHONPATH=windows(HERE),
               PYTHONDONTWRITEBYTECODE="1", PYTHONUTF8="0", SFT_TARGET="windows")
    return env


def run(command, env, limit):
    """Exit status, None at the limit, and output. Its output is a pipe: to a file, as wine hands
    it on, this CPython does not start."""
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    try:
        return child.communicate(timeout=limit)[0], child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()[0], None


def test(path, options, env):
    """{node: (outcome, reason)} of a file of tests."""
    name = os.path.basename(path)
    results = os.path.join(ROOT, "build", "windows-python", name + ".json")
    if os.path.exists(results):
        os.remove(results)
    command = [WINE, os.path.join(PYTHON, "python.exe"), "-m", "pytest", "-q", "-p",
               "windows_plugin", windows(path), *options]
    begin = time.monotonic()
    output, status = run(command, dict(env, SFT_RESULTS=windows(results)), LIMIT)
    found = {}
    if os.path.exists(results):
        with open(results, encoding="utf-8") as file:
            found = json.load(file)
    if status not in (0, 1, 5) or not found and status != 5:
        found[name] = "failed", "ended with status %s" % status
    count = collections.Counter(outcome for outcome, _ in found.values())
    print("%-32s %6.1f s  %d passed, %d failed, %d skipped" % (
        name, time.monotonic() - begin, count["passed"], count["failed"], count["skipped"]),
        flush=True)
    if count["failed"]:
        with open(results + ".log", "wb") as log:
            log.write(output)
        for node, (outcome, reason) in found.items():
            if outcome == "failed":
                print("    %s\n        %s" % (node, reason.strip().splitlines()[-1:] or ""))
        print("    all of it: %s" % os.path.relpath(results + ".log", ROOT), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--package", default=os.path.join(ROOT, "build", "mingw"))
    parser.add_argument("-k", default="")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(PYTHON, "python.exe")):
        raise SystemExit("python.py: no %s: run tools/windows_python.sh" % PYTHON)
    install(args.package)
    env = environment()
    options = ["-k", args.k] if args.k else []
    files = [os.path.join(TESTS, os.path.basename(name)) for name in args.files] or sorted(
        glob.glob(os.path.join(TESTS, "test_*.py")))
    found = {}
    for path in files:
        found.update(test(path, options, env))
    if not args.files and not args.k:
        sys.path.insert(0, HERE)
        for case in unused(found):
            print("python_skips.tsv: no case %s" % case)
            found["python_skips.tsv " + case] = "failed", "unused"
    reasons = collections.Counter(reason for outcome, reason in found.values()
                                  if outcome == "skipped")
    print("\nskipped, tested under wine:")
    for reason, times in reasons.most_common():
        print("%6d  %s" % (times, reason))
    count = collections.Counter(outcome for outcome, _ in found.values())
    print("%d passed, %d failed, %d skipped" % (count["passed"], count["failed"],
                                                count["skipped"]))
    return 1 if count["failed"] or not count["passed"] else 0


def unused(found):
    """Rows of the list that no test has."""
    with open(os.path.join(HERE, "python_skips.tsv"), encoding="utf-8") as file:
        cases = [line.split("\t")[0].lstrip("!") for line in file if not line.startswith("#")]
    nodes = set(found) | {node.partition("[")[0] for node in found}
    return [case for case in cases if case not in nodes]


if __name__ == "__main__":
    sys.exit(main())
