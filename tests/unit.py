#!/usr/bin/env python3
"""Run the cmocka programs listed in $SFT_BUILD/tests/<group>.txt, one path a line,
relative to the build folder. usage: tests/unit.py GROUP [NAME-PART...]"""
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLAN = re.compile(rb"^\s*1\.\.(\d+)$", re.M)
TOLD = re.compile(rb"^# \d+ scenes: .*$", re.M)  # what the fault tests have tried
LINE = re.compile(rb"^\s*(not ok|ok) \d+ (-|# SKIP) .*$", re.M)


def main():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    with open(os.path.join(build, "tests", sys.argv[1] + ".txt"), encoding="utf-8") as file:
        programs = [p for p in file.read().split() if all(a in p for a in sys.argv[2:])]
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    emulate = shlex.split(env.get("SFT_EMULATE", ""))
    totals = {"passed": 0, "failed": 0, "skipped": 0}

    def run(program):
        return subprocess.run(emulate + [os.path.join(build, program)], cwd=ROOT, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        finished = list(pool.map(run, programs))
    for program, done in zip(programs, finished):
        planned = sum(int(n) for n in PLAN.findall(done.stdout))
        lines = LINE.findall(done.stdout)
        skipped = sum(mark == b"# SKIP" for _, mark in lines)
        passed = sum(line == (b"ok", b"-") for line in lines)
        # A test that never reported is one that took the program down.
        failed = max(planned, len(lines)) - passed - skipped
        if failed == 0 and (done.returncode != 0 or planned == 0):
            failed = 1
        print(f"{os.path.basename(program)}: {passed} passed, {failed} failed, {skipped} skipped")
        for line in TOLD.findall(done.stdout):
            print("    " + line[2:].decode())
        if failed:
            print(done.stdout.decode("utf-8", "replace"), f"exit {done.returncode}")
        totals["passed"] += passed
        totals["failed"] += failed
        totals["skipped"] += skipped
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**totals))
    return 1 if totals["failed"] or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
