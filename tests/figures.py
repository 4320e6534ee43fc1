#!/usr/bin/env python3
"""Figures in documents are not older than what they measure.

    tests/figures.py                     every measured table has a row in figures.tsv, each row a table
    tests/figures.py --strict            ... and none is older than its sources: before a release
    tests/figures.py --stamp NAME ...    these were measured on HEAD

A row of figures.tsv: page, name, commit, digest, sources. A table's name is that of its marker
(`<!-- bench NAME -->`), or the heading above it. The digest is of the sources as git has them in
the commit: paths and contents of the folders and files that the figure depends on.
"""
import hashlib
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests", "figures.tsv")
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout


def read_rows():
    with open(TABLE, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and line[0] != "#"]
    return [line.split("\t") for line in lines]


def write_rows(rows):
    with open(TABLE, encoding="utf-8") as file:
        head = [line for line in file if line[0] == "#"]
    with open(TABLE + ".part", "w", encoding="utf-8") as file:
        file.write("".join(head) + "".join("\t".join(row) + "\n" for row in rows))
    os.replace(TABLE + ".part", TABLE)


def digest_of(commit, sources):
    """None: a source is not in that commit."""
    found = git("ls-tree", "-r", commit, "--", *sources.split())
    paths = [line.split("\t", 1)[1] for line in found.splitlines()]
    for source in sources.split():
        if not any(path == source or path.startswith(source + "/") for path in paths):
            return None
    return hashlib.sha256(found.encode()).hexdigest()[:16]


def page_text(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def table_text(text, name):
    """What stands between its markers, or under its heading; None: there is no such place."""
    found = (re.search(r"<!-- bench %s -->\n(.*?)<!-- end" % re.escape(name), text, re.S)
             or re.search(r"^##+ %s\n(.*?)(?=^##|\Z)" % re.escape(name), text, re.S | re.M))
    return found and found.group(1)


def dated_tables(page):
    """The names of tables that say when they were measured."""
    heading, marker = None, None
    for line in page_text(page).splitlines():
        if line.startswith("##"):
            heading, marker = line.lstrip("# "), None
        elif line.startswith("<!-- bench "):
            marker = line.split()[2]
        elif line.startswith("<!-- end"):
            marker = None
        elif re.search(r"\b[Mm]easured on 20\d\d-", line):
            yield marker or heading


def stamp(*names):
    """Says that these were measured on HEAD; names without a row are left."""
    commit, rows = git("rev-parse", "--short=8", "HEAD").strip(), read_rows()
    for row in rows:
        if row[1] in names:
            row[2], row[3] = commit, digest_of("HEAD", row[4])
    write_rows(rows)


def main(strict):
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                      check=False).returncode:
        print("0 passed, 0 failed, 1 skipped  (no git)")
        return 0
    passed, wrong, old, rows = 0, [], [], read_rows()
    for page in sorted({row[0] for row in rows}):
        known = {row[1] for row in rows if row[0] == page}
        for name in dated_tables(page):
            if name in known:
                passed += 1
            else:
                wrong.append("%s: %s has no row in tests/figures.tsv" % (page, name))
    for page, name, commit, digest, sources in rows:
        text, now = table_text(page_text(page), name), digest_of("HEAD", sources)
        if text is None or not DAY.search(text):
            wrong.append("%s: %s: expected a table with its day" % (page, name))
        elif now is None:
            wrong.append("%s: %s: a source of %s is not there" % (page, name, sources))
        elif now != digest:
            old.append("%s: %s: measured on %s (%s), its sources have changed since"
                       % (page, name, commit, DAY.search(text).group()))
        else:
            passed += 1
    for line in wrong + (old if strict else []):
        print(line)
    print("%d of %d measured tables are older than their sources" % (len(old), len(rows)))
    failed = len(wrong) + len(old) * strict
    print("%d passed, %d failed" % (passed + len(old) * (not strict), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stamp"]:
        stamp(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:] == ["--strict"]))
