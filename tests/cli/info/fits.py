#!/usr/bin/env python3
"""Hold a list of `info` (standard input) against the folder that it lists.

  fits.py COLUMNS DIR [NAMES]     0 columns: a pipe; NAMES none: are not compared

No line is wider than the terminal, sizes end in one column, nothing moves the cursor, and every row
can be acted upon: what it calls a model (an ellipsis stands for what was cut) is in the name or
path of one model only.
"""
import json
import os
import re
import subprocess
import sys
import unicodedata


def columns_of(text):
    """Terminal columns: by East Asian Width; marks and what joins a Hangul syllable none."""
    return sum(0 if unicodedata.category(c) in ("Mn", "Me") or "\u1160" <= c <= "\u11ff"
               else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def models(folder):
    out = subprocess.run([os.environ["SFT"], "info", "-r", "--jsonl", folder],
                         stdout=subprocess.PIPE, check=False).stdout
    for line in out.splitlines():
        result = json.loads(line)
        if result["ok"]:
            path = os.path.relpath(result["path"], folder)
            parts = path.split("/")
            ends = {"/".join(parts[i:]) for i in range(len(parts))}
            yield (ends | {os.path.splitext(end)[0] for end in ends}
                   | {os.path.join(folder, path), result["model"]["name"]["value"]})


def matches(shown, names):
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return any(re.fullmatch(pattern, name, re.S) for name in names)


def main():
    columns, folder, by_name = int(sys.argv[1]), sys.argv[2], len(sys.argv) < 4
    lines = sys.stdin.buffer.read().decode("utf-8").splitlines()
    known, problems, used = list(models(folder)), [], []
    head = re.match(r"  NAME +", lines[0])
    for line in lines:
        if columns and columns_of(line) > columns:
            problems.append("wider than %d: %r" % (columns, line))
        if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in line):
            problems.append("moves the cursor: %r" % line)
    size_end = columns_of(lines[0][:lines[0].index("SIZE") + 4])
    for line in lines[1:-1]:
        if not re.match(r"[! ] ", line):
            continue  # a group
        at, width = 0, 0
        while at < len(line) and width < size_end:
            width += columns_of(line[at])
            at += 1
        if not re.search(r" (\d[\d.]* [KMGT]?B|\?)$", line[:at]):
            problems.append("no size ends at %d: %r" % (size_end, line))
        shown, width = "", 2
        for c in line[2:]:
            if width >= head.end() - 2 and columns:
                break
            shown, width = shown + c, width + columns_of(c)
        shown = re.split("  ", shown)[0].rstrip()
        path = re.split("  +", line)[-1] if "PATH" in lines[0] else shown
        found = [i for i, names in enumerate(known) if matches(path, names)] if by_name \
            else [len(used)]
        if len(found) != 1:
            problems.append("%d models fit %r" % (len(found), path))
        used += found
    if sorted(used) != list(range(len(known))):
        problems.append("%d rows for %d models" % (len(used), len(known)))
    print("\n".join(problems) or "fits %s, %d rows" % (columns or "a pipe", len(used)))


if __name__ == "__main__":
    main()
