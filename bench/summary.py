#!/usr/bin/env python3
"""The goals of speed, beside what the tables of docs/measured.md show; the few of README.md.

    summary.py [--write | --check | --against REVISION]

A value is a cell of a table, or that divided by another cell; the median with the best in
brackets where the table has both. "held": by the median; "at best": by the best only.
--write puts both tables between their markers; --check fails (exit status 1) if others stand
there. --against prints the goals by which the tables of that revision of Git were better, by the
median and by the best, and by more than a tenth; exit status 1 if there are any.
"""
import argparse
import os
import re
import subprocess
import sys
from collections import namedtuple

from contest import put, table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CELL = re.compile(r"\*{0,2}([\d.]+)×?(?:[^(|]*\(([\d.]+))?")

# Where a value stands: the first cell of its row, the head of its column, rows further down.
At = namedtuple("At", "row column below", defaults=(0,))
# least: the goal is at least `floor`, else at most; per: what the value is divided by.
Goal = namedtuple("Goal", "task rival section at floor least per", defaults=(True, None))

MANY = "`hash` of many, one thread"
FEW, SMALL = "16 tensors of 128 MiB", "16,384 tensors of 128 KiB"
COLD = 9  # rows of a file before those that are not cached
GOALS = [
    Goal("open a header of 92,000 tensors", "official package", "header",
         At("92,000", "official, ms", 1), 15.0),
    Goal("memory for it", "the header's size", "memory", At("92,000", "ours, counted"), 2.0,
         False),
    Goal("a hostile shape of 50 million dimensions", "official package", "hostile",
         At("a shape of 50 M dimensions", "official ÷ ours"), 10.0),
    Goal("list 1,200 tensors, as a whole process", "official package", "process",
         At("1,200", "official ÷ ours"), 10.0),
    Goal("rows `[1000:1200]`, by read", "our map", "slices",
         At("matrix `[1000:1200]`", "`sft_slice_read`, by read, ms"), 1.5, False,
         At("matrix `[1000:1200]`", "by map, ms")),
    Goal("columns `[:, 100:164]`, by read", "our map", "slices",
         At("matrix `[:, 100:164]`", "`sft_slice_read`, by read, ms"), 1.5, False,
         At("matrix `[:, 100:164]`", "by map, ms")),
    Goal("a block `[1000:3000, 1000:3000]`, by read", "our map", "slices",
         At("matrix `[1000:3000, 1000:3000]`", "`sft_slice_read`, by read, ms"), 1.5, False,
         At("matrix `[1000:3000, 1000:3000]`", "by map, ms")),
    Goal("columns `[:, 100:164]`, by map", "official package", "slices",
         At("matrix `[:, 100:164]`", "official ÷ map"), 1.0),
    Goal("SHA-256 of many files, per processor", "OpenSSL", "hash",
         At(MANY, "per processor"), 2.0, True, At("`openssl sha256` of many", "per processor")),
    Goal("F32 to BF16 in memory", "memcpy", "convert", At("F32 → BF16", "ours ÷ memcpy"), 1.3,
         False),
    Goal("F8_E4M3 to BF16 in memory", "torch", "convert", At("F8_E4M3 → BF16", "torch ÷ ours"),
         2.0),
    Goal("20,000 tensors of a PyTorch file, listed", "torch", "torch",
         At("list 20,000 tensors", "torch ÷ ours"), 10.0),
    Goal("1 GiB from a server", "curl, 8 ranges", "remote", At("", "curl ÷ ours"), 0.9),
    Goal("load 2 GB into memory of its own, cached", "official package, a map and copies",
         "eager-load", At(FEW, "÷ ours", 2), 2.0),
    Goal("load 2 GB into memory of its own, cached", "official package, `backend=\"pread\"`",
         "eager-load", At(FEW, "÷ ours", 3), 2.0),
    Goal("16,384 tensors of 128 KiB so", "official package, a map and copies", "eager-load",
         At(SMALL, "÷ ours", 2), 2.0),
    Goal("load 2 GB that is not cached", "plain reads with `O_DIRECT`", "eager-load",
         At(FEW, "of the ceiling", COLD), 0.95),
    Goal("save 2 GB, durable", "official package and fsync", "save",
         At("official `save_file`", "durable ÷ ours"), 1.5),
    Goal("change one key of a file of 2 GB, durable", "load, save, fsync", "edit",
         At("into the spare bytes", "÷ ours"), 1000.0),
    Goal("split 2 GB into four shards, durable", "`cp` and `sync`", "reshape",
         At("`split`", "÷ `cp`"), 1.0, False),
    Goal("Python: 20,000 small tensors, torch", "official package", "python-small",
         At("torch", "official ÷ ours", 1), 5.0),
    Goal("Python: the same LoRA again, `pread`", "official package", "python-again",
         At('`load_file(…, backend="pread")`', "official ÷ ours"), 1.0),
    Goal("Python: the same LoRA again, `load(bytes)`", "official package", "python-again",
         At("`load(bytes)`", "official ÷ ours"), 1.0),
    Goal("Python: a LoRA loaded and cast to F16", "official package", "python-again",
         At("`load_file` and `.to(torch.float16)`", "official ÷ ours"), 1.0),
    Goal("Python: save one large numpy array, durable", "official package and fsync",
         "python-save", At("numpy", "official ÷ ours", 4), 1.0),
    Goal("Python: `import libsafetensors`", "official package", "python-import",
         At("`import …`", "official ÷ ours"), 1.0),
    Goal("Python: `import libsafetensors.torch`", "official package", "python-import",
         At("`import ….torch`", "official ÷ ours"), 1.0),
    Goal("a dataset written in batches", "`save_file` and a digest", "dataset-write",
         At("no sync", "save_file ÷ ours"), 1.0),
    Goal("a dataset read in batches", "`load_file`", "dataset-read",
         At("batches", "load_file ÷ ours"), 1.0),
    *[Goal("batches for training, " + how, "the fastest of four loaders", "loaders-wide",
           At(how, "fastest other ÷ ours"), 1.0)
      for how in ("in order", "all rows shuffled", "random rows, 256 at a time",
                  "resumed: ms until a batch")],
    Goal("Spark writes batches", "Parquet", "spark-write",
         At("no sync", "Parquet ÷ data source"), 1.0),
    Goal("Spark reads samples as arrays", "Parquet", "spark-read",
         At("samples as arrays", "Parquet ÷ ours"), 1.0),
    Goal("Spark reads samples as tensors", "Parquet", "spark-read",
         At("samples as tensors", "Parquet ÷ ours"), 1.0),
    Goal("`catalog` of 10,000 models", "`info -r --jsonl`", "catalog-generation",
         At("10,000", "`catalog`, s"), 1.3, False, At("10,000", "`info -r --jsonl`, s")),
]

# (task, section, ours, official) of README.md, in milliseconds
README = [
    ("open and validate 92,000 tensors (12 MB header)", "header", At("92,000", "ours, ms"),
     At("92,000", "official, ms")),
    ("list 1,200 tensors, whole process", "process", At("1,200", "`safetensors ls`, ms"),
     At("1,200", "Python and `safe_open`, ms")),
    ("`load_file` of 20,000 small tensors, torch", "python-small", At("torch", "ours, ms", 1),
     At("torch", "official, ms", 1)),
    ("change one metadata key of a 2.1 GB file, durable", "edit",
     At("into the spare bytes", "ours, ms"), At("into the spare bytes", "official and fsync, ms")),
    ("save 2.1 GB durably (official: and fsync)", "save", At("this library", "durable, ms"),
     At("official `save_file`", "durable, ms")),
]


def tables(text):
    """[[row, …], …]: the tables of a section, a row being its cells."""
    found, last = [], -2
    for number, line in enumerate(text.splitlines()):
        if not line.startswith("|"):
            continue
        if number != last + 1:
            found.append([])
        found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        last = number
    return found


def numbers(text, section, at):
    """(median, best or None) of a cell."""
    inside = re.search("<!-- bench %s -->(.*?)<!-- end %s -->" % (section, section), text, re.S)
    for rows in tables(inside[1] if inside else ""):
        if at.column not in rows[0]:
            continue
        labels = [row[0] for row in rows[2:]]
        if at.row in labels:
            cell = rows[2 + labels.index(at.row) + at.below][rows[0].index(at.column)]
            found = CELL.match(cell)
            if found:
                return float(found[1]), float(found[2]) if found[2] else None
    raise SystemExit("%s: no number at %s" % (section, at))


def value(text, goal):
    mine = numbers(text, goal.section, goal.at)
    if not goal.per:
        return mine
    theirs = numbers(text, goal.section, goal.per)
    return tuple(a / b if a is not None and b else None for a, b in zip(mine, theirs))


def figure(number):
    return "%.*f" % (0 if number >= 100 else 1 if number >= 10 else 2, number)


def row(text, goal):
    median, best = value(text, goal)

    def holds(number):
        return number is not None and (number >= goal.floor if goal.least else
                                       number <= goal.floor)
    verdict = "held" if holds(median) else "at best" if holds(best) else "**missed**"
    today = figure(median) + "×" + (" (%s×)" % figure(best) if best is not None else "")
    return [goal.task, goal.rival, "%s %s×" % ("≥" if goal.least else "≤", figure(goal.floor)),
            today, verdict]


def duration(milliseconds):
    if milliseconds >= 1000:
        return figure(milliseconds / 1000) + " s"
    return figure(milliseconds) + " ms"


def made(text):
    """[(file, section, table)]"""
    goals = table(["task", "compared with", "goal", "measured", ""],
                  [row(text, goal) for goal in GOALS])
    lines = [[task, *[duration(numbers(text, section, at)[0]) for at in cells]]
             for task, section, *cells in README]
    return [("docs/measured.md", "summary", goals),
            ("README.md", "readme", table(["", "libsafetensors", "official package 0.8.0"], lines))]


def worse(before, text):
    """[[task, compared with, before, now]] of the goals that are worse than in `before`."""
    found = []
    for goal in GOALS:
        new = value(text, goal)
        try:
            old = value(before, goal)
        except SystemExit:  # a table that was not there
            continue
        pairs = [(a, b) if goal.least else (b, a) for a, b in zip(old, new)
                 if a is not None and b is not None]
        if all(better > 1.1 * less for better, less in pairs):
            found.append([goal.task, goal.rival, *[figure(median) + "×" for median in
                                                   (old[0], new[0])]])
    return found


def compare(revision, text):
    before = subprocess.run(["git", "show", revision + ":docs/measured.md"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.decode()
    rows = worse(before, text)
    if rows:
        print(table(["worse", "compared with", revision, "now"], rows))
    return 1 if rows else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--against", metavar="REVISION")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "docs", "measured.md"), encoding="utf-8") as f:
        text = f.read()
    if args.against:
        return compare(args.against, text)
    status = 0
    for name, section, body in made(text):
        path = os.path.join(ROOT, name)
        with open(path, encoding="utf-8") as f:
            there = "<!-- bench %s -->\n%s<!-- end %s -->" % (section, body, section) in f.read()
        if args.write:
            put(path, section, body)
        elif args.check and not there:
            print("%s: the table is not that of docs/measured.md; run bench/summary.py --write"
                  % name)
            status = 1
        elif not args.check:
            print(body)
    return status


if __name__ == "__main__":
    sys.exit(main())
