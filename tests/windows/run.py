#!/usr/bin/env python3
"""The command for Windows under wine: what only Windows does, and that the rest is as on Linux.

  tests/windows/run.py [-v] [NAME...]

A case is a function of a *_cases.py beside this file; NAME picks groups or cases. Its folder is
its own. "same" compares with the command for Linux (SFT_NATIVE, build/safetensors).
tools/wine_env.sh makes the environment; skips.tsv has what does not pass, with reasons.
"""
import argparse
import concurrent.futures
import sys
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from skips import Skips  # noqa: E402
import held_cases  # noqa: E402,F401
import killed_cases  # noqa: E402,F401
import names_cases  # noqa: E402,F401
import remote_cases  # noqa: E402,F401
import same_cases  # noqa: E402,F401
import start_cases  # noqa: E402,F401


def run_case(row):
    """The case's name, its verdict or what was wrong, its seconds."""
    group, function = row
    begin = time.monotonic()
    try:
        with world.folder() as folder:
            function(folder)
        said = None
    except world.Skip as skip:
        said = skip
    except Exception as wrong:  # pylint: disable=broad-except
        said = wrong
    return "%s:%s" % (group, function.__name__), said, time.monotonic() - begin


def run_rows(rows, skips, *, verbose, whole):
    """Run cases, say how they went, give the exit status. whole: rows of the list that no case has
    used are errors."""
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    print("tested under wine")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, said, took in pool.map(run_case, rows):
            if isinstance(said, world.Skip):
                verdict = "skipped"
            else:
                verdict = skips.verdict(name, said is None)
            totals[verdict] += 1
            if verbose or verdict == "failed":
                print("%-8s%-34s%6.1f s  %s" % (verdict, name, took, said if said else ""))
    totals["failed"] += skips.unused() if whole else 0
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % totals)
    return 1 if totals["failed"] else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    rows = [row for row in world.CASES if not args.names or row[0] in args.names
            or row[1].__name__ in args.names]
    if not rows:
        sys.exit("tests/windows: no case is called " + ", ".join(args.names))
    return run_rows(rows, Skips("windows"), verbose=args.verbose, whole=not args.names)


if __name__ == "__main__":
    sys.exit(main())
