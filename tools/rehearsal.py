#!/usr/bin/env python3
"""Rehearse a release: run every target once, on one state of the sources, and show a table.

    tools/rehearsal.py                 what has not passed on these sources yet, in order
    tools/rehearsal.py --only a,b      these targets, again
    tools/rehearsal.py --table         the table alone; exit 1 unless each row is green
    tools/rehearsal.py --write         ... and its rows into docs/platforms.md

A run that was stopped goes on where it was: each target's result lies in build/rehearsal with a
hash of the files that it was run on, which are all of HEAD but pages (docs/*.md, *.md of the root).
So a page that tells of the runs does not make them old. Changed files that are not committed are
refused, because nobody could repeat such a run. A target that fails does not stop those after it.
"""
import argparse
import datetime
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = os.path.join(ROOT, "build", "rehearsal")
PAGE = os.path.join(ROOT, "docs", "platforms.md")
MARKS = "<!-- rehearsal -->", "<!-- end -->"
TARGETS = """
test test-long asan msan tsan tsan-python m32 s390x aarch64 coverage kill writers compilers abi
windows-test windows-python-test macos-test wheels wheels-test deb-test dist dist-test test-packages
test-browsers test-desktop test-spark-all test-engines conformance
oracles quant-oracles adapter-oracles layout-oracles merge-oracles zoo-score
fuzz bench figures
""".split()
MORE = {"fuzz": ["SECONDS=14400"]}  # 10^7 inputs a harness for those that read strangers' bytes
LINE = re.compile(r"^.*\d+ passed.*$", re.M)


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout


def is_page(path):
    return path.endswith(".md") and os.path.dirname(path) in ("", "docs")


def sources_hash():
    rows = [row for row in git("ls-tree", "-r", "HEAD").splitlines()
            if not is_page(row.split("\t", 1)[1])]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def kept(target):
    try:
        with open(os.path.join(KEPT, target + ".json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def run(target, sources):
    """One target to its end; its output lies beside its result."""
    log = os.path.join(KEPT, target + ".log")
    began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, "wb") as out:
        status = subprocess.run(["make", target, *MORE.get(target, [])], cwd=ROOT, check=False,
                                stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = LINE.findall(file.read())
    result = {"sources": sources, "commit": git("rev-parse", "--short=8", "HEAD").strip(),
              "day": datetime.date.today().isoformat(), "status": status,
              "seconds": round(time.time() - began),
              "processor": round(after.ru_utime + after.ru_stime - before.ru_utime
                                 - before.ru_stime),
              "said": lines[-1].strip() if lines else "ended with status %d" % status}
    with open(os.path.join(KEPT, target + ".new"), "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(os.path.join(KEPT, target + ".new"), os.path.join(KEPT, target + ".json"))
    return result


def rows(sources):
    """A row for each target, and how many are not green."""
    found, red = [], 0
    for target in TARGETS:
        one = kept(target)
        if not one:
            verdict, cells = "not run", ["", "", ""]
        else:
            verdict = "failed" if one["status"] else "passed"
            if one["sources"] != sources:
                verdict += ", of older sources"
            cells = [one["said"], one["commit"], one["day"]]
        red += verdict != "passed"
        found.append("| `make %s` | %s | %s |" % (target, verdict, " | ".join(cells)))
    return found, red


def table(sources):
    found, red = rows(sources)
    head = ["| target | verdict | its last line | commit | date |", "|---|---|---|---|---|"]
    return "\n".join(head + found), red


def write(text):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, rest = page.split(MARKS[0], 1)
    after = rest.split(MARKS[1], 1)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("%s%s\n%s\n%s%s" % (before, MARKS[0], text, MARKS[1], after))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=lambda names: names.split(","), default=[])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    unknown = [name for name in args.only if name not in TARGETS]
    if unknown:
        parser.error("no target of a rehearsal: " + ", ".join(unknown))
    os.makedirs(KEPT, exist_ok=True)
    sources = sources_hash()
    shows = args.table or args.write
    changed = [line[3:] for line in git("status", "--porcelain").splitlines()
               if not is_page(line[3:])]
    if changed and not shows:
        sys.exit("tools/rehearsal.py: not committed: " + ", ".join(changed[:5]))
    for n, target in enumerate(TARGETS, 1):
        one = kept(target)
        passed = one and one["sources"] == sources and one["status"] == 0
        if shows or (args.only and target not in args.only) or (passed and not args.only):
            continue
        print("%2d of %d  make %s" % (n, len(TARGETS), target), flush=True)
        one = run(target, sources)
        print("          %s, %d s: %s" % ("FAILED" if one["status"] else "passed", one["seconds"],
                                          one["said"]), flush=True)
    text, red = table(sources)
    print(text)
    if args.write:
        write(text)
    print("%d passed, %d failed" % (len(TARGETS) - red, red))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
