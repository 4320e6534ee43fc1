#!/usr/bin/env python3
"""Run tests/python under wine, in the genuine CPython of tools/windows_python.sh.

usage: tests/windows/python.py [--wheel FILE | --build FOLDER] [-k WORDS] [FILE...]
    --wheel     installed by pip, there; what is shipped
    --build     of CMake, with SFT_EXTENSION: what it has built is copied (build/mingw)

What does not pass is listed in python_skips.tsv, with reasons. Last line: "N passed, N failed, N
skipped".
"""
import argparse
import collections
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TESTS = os.path.join(ROOT, "tests", "python")
PYTHON = os.path.join(ROOT, "build", "windows-python", "python")
WINE = "/usr/lib/wine/wine64"
LIMIT = 3600  # seconds of all


def windows(path):
    return "Z:" + os.path.abspath(path).replace("/", "\\")


def clear():
    """Removes what an earlier run has installed."""
    packages = os.path.join(PYTHON, "Lib", "site-packages")
    for path in glob.glob(os.path.join(packages, "libsafetensors*")) + glob.glob(
            os.path.join(packages, "pyspark_libsafetensors")):
        shutil.rmtree(path)


def install_build(folder):
    """The package and the command as a wheel puts them."""
    clear()
    packages, scripts = (os.path.join(PYTHON, name) for name in ("Lib/site-packages", "Scripts"))
    target = os.path.join(packages, "libsafetensors")
    shutil.copytree(os.path.join(ROOT, "bindings/python/libsafetensors"), target,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(folder, "python/libsafetensors/_core.pyd"), target)
    shutil.copy(os.path.join(folder, "safetensors.exe"), scripts)


def install_wheel(path, env):
    clear()
    output, status = run([WINE, os.path.join(PYTHON, "python.exe"), "-m", "pip", "install",
                          "--no-index", "--no-deps", "--disable-pip-version-check",
                          "--no-warn-script-location", windows(path)], env, 600)
    if status != 0:
        raise SystemExit("python.py: pip cannot install %s: %s"
                         % (path, output.decode("utf-8", "replace")))
    print(output.decode("utf-8", "replace").strip().splitlines()[-1])


def environment():
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("PYTHON", "PYENV"))}
    shared = env.get("SFT_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
    prefix = subprocess.check_output([os.path.join(ROOT, "tools", "wine_env.sh"), "--prefix"],
                                     text=True).strip()
    env.update(WINEPREFIX=prefix, WINEDEBUG="-all", SFT_SHARED=windows(shared),
               PYTHONPATH=windows(HERE),
               PYTHONPYCACHEPREFIX=windows(os.path.join(ROOT, "build/windows-python/cache")),
               PYTHONUTF8="1", SFT_TARGET="windows",
               SFT_COMMAND=shlex.quote("Z:" + os.path.join(PYTHON, "Scripts", "safetensors.exe")))
    return env


def run(command, env, limit):
    """Output, and exit status or None at the limit. The output is a pipe: to a file, as wine hands
    it on, this CPython does not start."""
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    try:
        return child.communicate(timeout=limit)[0], child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()[0], None


def results_of(path):
    """{node: (outcome, reason)}, in the order of the begins; "begun" for the one it ended in."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                node, outcome, reason = json.loads(line)
                found[node] = outcome, reason
    return found


def file_of(node):
    return node.partition("::")[0]


def test(files, options, env):
    """{node: (outcome, reason)} of files of tests. What ends the process has failed; the rest is
    run by another."""
    folder = os.path.join(ROOT, "build", "windows-python")
    results, log = (os.path.join(folder, name) for name in ("results.jsonl", "log"))
    rows, names = listed(), [os.path.basename(path) for path in files]
    found = {name: ("skipped", rows[name]) for name in names if name in rows}
    names = [name for name in names if name not in rows]
    with open(log, "wb") as out:
        while names:
            if os.path.exists(results):
                os.remove(results)
            done = [word for node in found if file_of(node) == names[0] and "::" in node
                    for word in ("--deselect", "tests/python/" + node)]
            output, status = run(
                [WINE, os.path.join(PYTHON, "python.exe"), "-m", "pytest", "-q", "-p",
                 "windows_plugin", "--continue-on-collection-errors",
                 *(windows(os.path.join(TESTS, name)) for name in names), *done, *options],
                dict(env, SFT_RESULTS=windows(results)), LIMIT)
            out.write(output)
            out.flush()
            more = results_of(results)
            last = [node for node, (outcome, _) in more.items() if outcome == "begun"]
            for node in last:
                more[node] = "failed", "the process ended with status %s" % status
                print("%s: the process ended with status %s" % (node, status), flush=True)
            found.update(more)
            if not last and status not in (0, 1, 5):
                found[names[0]] = "failed", "ended with status %s: see %s" % (status, log)
            names = names[names.index(file_of(last[0])):] if last else []
    return found


def show(found):
    """The count of each file, and what failed."""
    files = {}
    for node, (outcome, reason) in found.items():
        files.setdefault(file_of(node), []).append((node, outcome, reason))
    for name, rows in sorted(files.items()):
        count = collections.Counter(outcome for _, outcome, _ in rows)
        print("%-32s %4d passed, %d failed, %d skipped" % (
            name, count["passed"], count["failed"], count["skipped"]))
        for node, outcome, reason in rows:
            if outcome == "failed":
                said = [line for line in reason.splitlines() if line.startswith("E  ")]
                print("    %s\n        %s" % (node, (said or reason.splitlines() or [""])[0]))
    print("all of it: build/windows-python/log")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--wheel")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "mingw"))
    parser.add_argument("-k", default="")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(PYTHON, "python.exe")):
        raise SystemExit("python.py: no %s: run tools/windows_python.sh" % PYTHON)
    env = environment()
    if args.wheel:
        install_wheel(args.wheel, env)
    else:
        install_build(args.build)
    options = ["-k", args.k] if args.k else []
    files = [os.path.join(TESTS, os.path.basename(name)) for name in args.files] or sorted(
        glob.glob(os.path.join(TESTS, "test_*.py")))
    found = test(files, options, env)
    show(found)
    if not args.files and not args.k:
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


def listed():
    """{case: reason} of the list."""
    with open(os.path.join(HERE, "python_skips.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {case.lstrip("!"): reason for case, reason in rows}


def unused(found):
    """Rows of the list that no test has."""
    nodes = set(found) | {node.partition("[")[0] for node in found}
    return [case for case in listed() if case not in nodes]


if __name__ == "__main__":
    sys.exit(main())
