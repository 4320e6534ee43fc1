#!/usr/bin/env python3
"""Run the cmocka programs listed in $SFT_BUILD/tests/<group>.txt, one path a line,
relative to the build folder. usage: tests/unit.py GROUP [[!]NAME-PART[,NAME-PART...]...]

A program runs if each argument has a part that is in its name, or, after "!", none."""
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "windows"))
from skips import Skips  # noqa: E402

PLAN = re.compile(rb"^\s*1\.\.(\d+)$", re.M)
TOLD = re.compile(rb"^# \d+ scenes: .*$", re.M)  # what the fault tests have tried
LIMIT = int(os.environ.get("SFT_LIMIT", "900")) * 2 / 3  # seconds of one program
LINE = re.compile(rb"^\s*(not ok|ok) \d+ (-|# SKIP) (\S*)[^\r\n]*$", re.M)


def judge(program, done, skips):
    """Counts of a program's tests by verdict."""
    found = {"passed": 0, "failed": 0, "skipped": 0}
    planned = sum(int(n) for n in PLAN.findall(done.stdout))
    lines = LINE.findall(done.stdout)
    if program + ":*" in skips:
        found[skips.verdict(program + ":*", done.returncode == 0)] += 1
        return found
    for status, mark, test in lines:
        name = "%s:%s" % (program, test.decode())
        if mark == b"# SKIP" and not skips.listed:
            found["skipped"] += 1
        else:
            found[skips.verdict(name, status == b"ok" and mark == b"-")] += 1
    # A test that never reported is one that took the program down.
    found["failed"] += max(planned - len(lines), 0)
    if found["failed"] == 0 and (planned == 0 or done.returncode != 0 and not found["skipped"]):
        found["failed"] = 1
    return found


def is_meant(program, argument):
    parts = argument.removeprefix("!").split(",")
    return any(part in program for part in parts) != argument.startswith("!")


def main():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    with open(os.path.join(build, "tests", sys.argv[1] + ".txt"), encoding="utf-8") as file:
        programs = [p for p in file.read().split() if all(is_meant(p, a) for a in sys.argv[2:])]
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    emulate = shlex.split(env.get("SFT_EMULATE", ""))
    skips = Skips(sys.argv[1])
    totals = {"passed": 0, "failed": 0, "skipped": 0}

    def run(program):
        words = emulate + [os.path.join(build, program)]
        try:
            return subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  timeout=LIMIT)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(words, "killed after %d s" % LIMIT, late.stdout or b"")

    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        finished = list(pool.map(run, programs))
    for program, done in zip(programs, finished):
        name = os.path.splitext(os.path.basename(program))[0]
        found = judge(name, done, skips)
        print(f"{name}: " + ", ".join(f"{n} {word}" for word, n in found.items()))
        for line in TOLD.findall(done.stdout):
            print("    " + line[2:].decode())
        if found["failed"]:
            print(done.stdout.decode("utf-8", "replace"), f"exit {done.returncode}")
        for word, n in found.items():
            totals[word] += n
    if not sys.argv[2:]:
        for name in skips.whole():
            print(f"{name}: not built")
            totals["skipped"] += 1
        totals["failed"] += skips.unused()
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**totals))
    return 1 if totals["failed"] or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
