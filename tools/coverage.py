#!/usr/bin/env python3
"""Lines and branches that the tests reached, per folder, from the .gcda files of a
coverage build, or of several. usage: tools/coverage.py BUILD... [--missing PATH-PART]

Fails below the project's floors: 95 % of lines and 90 % of branches of the library, and
of library and command together; every branch in src/core/format. A branch marked by gcov as
thrown does not count, nor does a condition in sfti_never (src/core/base/checked.h), which stops
the program if it holds. A line ending in the comment "unreachable" is left out."""
import glob
import json
import os
import subprocess
import sys
from collections import defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLOORS = {"": (95.0, 90.0), "src": (95.0, 90.0), "src/core/format": (95.0, 100.0)}


def records(builds):
    data = [path for build in builds
            for path in glob.glob(os.path.join(ROOT, build, "**", "*.gcda"), recursive=True)]
    for at in range(0, len(data), 40):
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                               *data[at:at + 40]], capture_output=True, cwd=ROOT, check=False)
        if done.returncode:  # of a program that was killed while it wrote one
            sys.exit(done.stderr.decode("utf-8", "replace")[-2000:])
        for line in done.stdout.splitlines():
            if line.strip():
                yield from json.loads(line)["files"]


def collect(builds):
    """path -> (line -> count, (line, n) -> count): the best over all objects."""
    lines, branches = defaultdict(lambda: defaultdict(int)), defaultdict(lambda: defaultdict(int))
    for file in records(builds):
        path = os.path.relpath(os.path.join(ROOT, file["file"]), ROOT)
        if not path.startswith(("src/", "cli/")):
            continue
        for line in file["lines"]:
            number = line["line_number"]
            lines[path][number] += line["count"]
            for n, branch in enumerate(line["branches"]):
                if not branch["throw"]:
                    # Functions inlined from headers appear once for each function.
                    branches[path][number, n] += branch["count"]
    for path in lines:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if text.rstrip().endswith("/* unreachable */"):
                    lines[path].pop(number, None)
                    for key in [k for k in branches[path] if k[0] == number]:
                        del branches[path][key]
    return lines, branches


def share(counts):
    total = len(counts)
    hit = sum(1 for count in counts.values() if count)
    return hit, total, 100.0 * hit / total if total else 100.0


def main():
    end = sys.argv.index("--missing") if "--missing" in sys.argv else len(sys.argv)
    lines, branches = collect(sys.argv[1:end])
    if not lines:
        print("coverage: no .gcda files; run the tests of a coverage build first")
        return 1
    groups = defaultdict(lambda: ({}, {}))
    for path in sorted(lines):
        for group in {"", path.split("/")[0], os.path.dirname(path), path}:
            groups[group][0].update({(path, n): c for n, c in lines[path].items()})
            groups[group][1].update({(path, n): c for n, c in branches[path].items()})
    below = []
    print(f"{'':<28}{'lines':>16}{'%':>7}{'branches':>16}{'%':>7}")
    for group in sorted(groups, key=lambda g: (g == "", g)):
        (hit, total, percent), (bhit, btotal, bpercent) = map(share, groups[group])
        print(f"{group or 'all':<28}{hit:>8}/{total:<7}{percent:>7.1f}"
              f"{bhit:>8}/{btotal:<7}{bpercent:>7.1f}")
        floor = FLOORS.get(group, (0, 0))
        if percent < floor[0] or bpercent < floor[1]:
            below.append(group or "all")
    if "--missing" in sys.argv:
        part = sys.argv[sys.argv.index("--missing") + 1]
        for path in sorted(p for p in lines if part in p):
            print(path, "lines", sorted(n for n, c in lines[path].items() if not c))
            print(path, "branches", sorted({k[0] for k, c in branches[path].items() if not c}))
    if below:
        print("below the floor: " + ", ".join(below))
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
