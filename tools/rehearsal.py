#!/usr/bin/env python3
"""Rehearse a release: run every target once, on one state of the sources, and show a table.

    tools/rehearsal.py                 what has not passed on these sources yet, in order
    tools/rehearsal.py --only a,b      these targets, again
    tools/rehearsal.py --table         the table alone; exit 1 unless each row is green
    tools/rehearsal.py --write         ... and its rows into docs/platforms.md

A run that was stopped goes on where it was, in another clone too: tests/rehearsal.tsv keeps what
each target said, with a hash of the files of HEAD that it depends on (its second column: @ stands
for the product, . for all). Pages (*.md of the root, docs and tests), that table itself and
tests/figures.tsv are in no hash but of a target that names them, so a page that tells of the runs
does not make them old. Changed files that are not committed are refused, because nobody could
repeat such a run. A target that fails does not stop those after it. Output lies in build/rehearsal.
"""
import argparse
import datetime
import hashlib
import os
import re
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "rehearsal")
KEPT = os.path.join(ROOT, "tests", "rehearsal.tsv")
PAGE = os.path.join(ROOT, "docs", "platforms.md")
MARKS = "<!-- rehearsal -->", "<!-- end -->"
PRODUCT = ["CMakeLists.txt", "CMakePresets.json", "bindings", "cli", "cmake", "data", "include",
           "page", "src"]
WORDS = {  # of the second column: what counts, and what of that does not
    "@": (PRODUCT, []),
    "@c": (PRODUCT, ["bindings"]),
    "tests/c": (["tests"], ["tests/" + name for name in (
        "desktop", "engines", "import/hostile.py", "import/verdicts.tsv", "macos", "packaging",
        "page", "python", "spark", "wheels", "windows")])}
COLUMNS = ("target", "sources", "hash", "commit", "day", "seconds", "processor", "status", "said")
# What a night would see more of: the page tells how many inputs each harness had.
MORE = {"fuzz": ["SECONDS=6000"]}
LINE = re.compile(r"^.*\d+ passed.*$", re.M)


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout


def is_page(path):
    return (path.endswith(".md") and os.path.dirname(path) in ("", "docs", "tests")
            or path in ("tests/rehearsal.tsv", "tests/figures.tsv"))


def lies_in(path, folders):
    return any(folder in (".", path) or path.startswith(folder + "/") for folder in folders)


def is_source(path, sources):
    """Whether a target depends on this file."""
    words = [WORDS.get(word, ([word], [])) for word in sources.split()]
    return path in sources.split() or not is_page(path) and any(
        lies_in(path, inside) and not lies_in(path, outside) for inside, outside in words)


def hash_of(sources):
    """Of the files of HEAD that a target depends on."""
    rows = git("ls-tree", "-r", "HEAD").splitlines()
    found = [row for row in rows if is_source(row.split("\t", 1)[1], sources)]
    for word in sources.split():
        if word not in WORDS and not any(lies_in(row.split("\t", 1)[1], [word]) for row in found):
            sys.exit("tests/rehearsal.tsv: there is no %s" % word)
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def read_kept():
    with open(KEPT, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line[0] != "#"]
    return [dict(zip(COLUMNS, row + [""] * (len(COLUMNS) - len(row)))) for row in rows]


def write_kept(result):
    """Replaces the row of one target: other targets may have been run meanwhile."""
    rows = [result if row["target"] == result["target"] else row for row in read_kept()]
    with open(KEPT + ".new", "w", encoding="utf-8") as file:
        file.write("# " + "\t".join(COLUMNS) + "\n")
        file.writelines("\t".join(row[name] for name in COLUMNS).rstrip("\t") + "\n"
                        for row in rows)
    os.replace(KEPT + ".new", KEPT)


def run(row):
    """One target to its end."""
    os.makedirs(LOGS, exist_ok=True)
    log = os.path.join(LOGS, row["target"] + ".log")
    began, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, "wb") as out:
        status = subprocess.run(["make", row["target"], *MORE.get(row["target"], [])], cwd=ROOT,
                                check=False, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = LINE.findall(file.read())
    result = dict(row, hash=hash_of(row["sources"]), status=str(status),
                  commit=git("rev-parse", "--short=8", "HEAD").strip(),
                  day=datetime.date.today().isoformat(), seconds="%d" % (time.time() - began),
                  processor="%d" % (after.ru_utime + after.ru_stime - before.ru_utime
                                    - before.ru_stime),
                  said=(lines[-1].strip() if lines else "ended with status %d" % status))
    write_kept(result)
    return result


def changed_since(row):
    """How many lines of a target's sources were added or changed since it ran."""
    found = subprocess.run(["git", "-C", ROOT, "diff", "--numstat", row["commit"], "HEAD"],
                           check=False, capture_output=True, text=True)
    if found.returncode:
        return "its commit is not here"
    rows = [line.split("\t") for line in found.stdout.splitlines()]
    added = [int(one[0]) for one in rows if one[0].isdigit() and is_source(one[2], row["sources"])]
    return "%d lines in %d files since" % (sum(added), len(added))


def verdict_of(row):
    if not row["hash"]:
        return "not run"
    verdict = "failed" if row["status"] != "0" else "passed"
    if row["hash"] == hash_of(row["sources"]):
        return verdict
    return "%s, of older sources: %s" % (verdict, changed_since(row))


def table():
    """Its lines, and how many are not green."""
    rows = [(row, verdict_of(row)) for row in read_kept()]
    head = ["| target | verdict | its last line | minutes | commit | date |",
            "|---|---|---|---|---|---|"]
    cells = ["| `make %s` | %s | %s | %s | %s | %s |" % (
        row["target"], verdict, row["said"], row["hash"] and "%.1f" % (float(row["seconds"]) / 60),
        row["commit"], row["day"]) for row, verdict in rows]
    return "\n".join(head + cells), sum(verdict != "passed" for _, verdict in rows)


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
    targets = [row["target"] for row in read_kept()]
    unknown = [name for name in args.only if name not in targets]
    if unknown:
        parser.error("no target of a rehearsal: " + ", ".join(unknown))
    shows = args.table or args.write
    changed = [line[3:] for line in git("status", "--porcelain").splitlines()
               if not is_page(line[3:])]
    if changed and not shows:
        sys.exit("tools/rehearsal.py: not committed: " + ", ".join(changed[:5]))
    for n, row in enumerate([] if shows else read_kept(), 1):
        if row["target"] not in args.only if args.only else verdict_of(row) == "passed":
            continue
        print("%2d of %d  make %s" % (n, len(targets), row["target"]), flush=True)
        row = run(row)
        print("          %s, %s s: %s" % ("FAILED" if row["status"] != "0" else "passed",
                                          row["seconds"], row["said"]), flush=True)
    text, red = table()
    print(text)
    if args.write:
        write(text)
    print("%d passed, %d failed" % (len(targets) - red, red))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
