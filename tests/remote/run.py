#!/usr/bin/env python3
"""The command against servers of the tests' own on 127.0.0.1.

  tests/remote/run.py [-v] [--log] [CASE]…     --log: print the requests of cases that fail

Every case has a folder and servers of its own. With SFT_TARGET=check only the quick ones run.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import chaos  # noqa: E402,F401
import commands  # noqa: E402,F401
import hostile  # noqa: E402,F401
import hostile_cases  # noqa: E402,F401
import hub_cases  # noqa: E402,F401
import lost  # noqa: E402,F401
import matrix  # noqa: E402,F401
import network_cases  # noqa: E402,F401
import nginx  # noqa: E402,F401
import public_cases  # noqa: E402,F401
import redirects  # noqa: E402,F401
import server_cases  # noqa: E402,F401
from server import Site  # noqa: E402
from world import ALONE, CASES, World, Wrong  # noqa: E402

UNSHARE = ["unshare", "-Urnm"]


def can_be_alone():
    return "SFT_ALONE" in os.environ or shutil.which("unshare") is not None and \
        subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def run_alone(function, verbose):
    """In a network of its own, by this program again."""
    made = subprocess.run([*UNSHARE, sys.executable, os.path.abspath(__file__), "--log",
                           function.__name__], env=dict(os.environ, SFT_ALONE="1"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode or verbose:
        print("%s, alone: %s" % (function.__name__, made.stdout.strip()), flush=True)
    return made.stdout if made.returncode else None


def run(function, verbose, log):
    """None, or what is wrong."""
    if function in ALONE and "SFT_ALONE" not in os.environ:
        return run_alone(function, verbose)
    begin, problem = time.monotonic(), None
    with tempfile.TemporaryDirectory() as folder, Site("ABC") as site:
        world = World(folder, site)
        try:
            function(world)
            world.judge()
        except Wrong as error:
            problem = str(error)
        except Exception:  # of any kind: the case has failed
            problem = traceback.format_exc()
        text = "%s: %s" % (function.__name__, problem or "ok")
        if log and problem:
            for request in site.log:
                text += "\n    %d %s %s" % (request.status, request.line(),
                                            request.header("Range") or "")
        if problem or verbose:
            print("%s (%.1f s)" % (text, time.monotonic() - begin), flush=True)
    return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("--log", action="store_true")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    names = {function.__name__ for function, _ in CASES}
    unknown = set(args.cases) - names
    if unknown:
        parser.error("no case " + ", ".join(sorted(unknown)))
    check = os.environ.get("SFT_TARGET") == "check"
    chosen = [function for function, fast in CASES
              if (function.__name__ in args.cases if args.cases else fast or not check)]
    missing = []
    if not nginx.program():
        print("nginx is missing")
        missing += nginx.MINE
    if not can_be_alone():
        print("no network of one's own can be made here")
        missing += ALONE
    left_out = sum(function in missing for function in chosen)
    chosen = [function for function in chosen if function not in missing]
    # They wait more than they compute.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        problems = list(pool.map(lambda one: run(one, args.verbose, args.log), chosen))
    failed = sum(problem is not None for problem in problems)
    print("%d passed, %d failed%s" % (len(chosen) - failed, failed,
                                      ", %d skipped" % left_out if left_out else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
