#!/usr/bin/env python3
"""Import files of other formats and compare with what their own libraries read.

usage: tests/import/run.py [--full] [--only PART,...] [NAME-PART...]

Runs every *_cases.py of this folder, whose cases(ctx) yields (name, function). ctx has:
  command  the command, as words       dump    build/tests/import_dump, as words
  folder   an empty folder, one for each case        full   whether all is to be tried
A module whose packages are missing here is run with build/venv, if it is there, else skipped.
"""
import argparse
import glob
import importlib
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import traceback
import types

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
EMULATE = shlex.split(os.environ.get("SFT_EMULATE", ""))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
MEMORY = 12 << 30  # of address space; torch takes some for nothing
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")


def run_elsewhere(name, args):
    """(passed, failed, skipped) of a module, run with the environment that has its packages."""
    words = [VENV, os.path.abspath(__file__), "--only", name, *args.parts]
    done = subprocess.run(words + (["--full"] if args.full else []), stdout=subprocess.PIPE,
                          check=False, env=dict(os.environ, SFT_IMPORT_HERE="1"))
    *lines, last = done.stdout.decode().splitlines() or ["0 passed, 1 failed"]
    for line in lines:
        print(line)
    numbers = [int(word) for word in last.split() if word.isdigit()]
    return tuple((numbers + [0, 0])[:3])


def run_module(name, args):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if os.path.exists(VENV) and "SFT_IMPORT_HERE" not in os.environ:
            return run_elsewhere(name, args)
        print(f"{name}: skipped: {error}")
        return 0, 0, 1
    passed = failed = 0
    ctx = types.SimpleNamespace(command=COMMAND, full=args.full, folder=None,
                                dump=EMULATE + [os.path.join(BUILD, "tests", "import_dump")])
    for case, function in module.cases(ctx):
        if args.parts and not any(part in case for part in args.parts):
            continue
        try:
            with tempfile.TemporaryDirectory() as ctx.folder:
                function()
            passed += 1
        except Exception:  # pylint: disable=broad-exception-caught
            failed += 1
            print(f"{name}: {case}\n{traceback.format_exc()}")
    return passed, failed, 0


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("parts", nargs="*")
    args = parser.parse_args()
    sys.path.insert(0, HERE)
    # What another reader makes of a damaged file may be an array of terabytes.
    if "ASAN_OPTIONS" not in os.environ:  # whose shadow is terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    only = list(filter(None, args.only.split(",")))
    totals = [0, 0, 0]
    for path in sorted(glob.glob(os.path.join(HERE, "*_cases.py"))):
        name = os.path.basename(path).removesuffix(".py")
        if not only or any(name.startswith(o) for o in only):
            totals = [a + b for a, b in zip(totals, run_module(name, args))]
    print(f"{totals[0]} passed, {totals[1]} failed" +
          (f", {totals[2]} skipped" if totals[2] else ""))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
