#!/usr/bin/env python3
"""Which tests name a public function: tests/functions.md.

    tools/tested.py            the functions that no test of the library names, and how many each has
    tools/tested.py --update   write tests/functions.md anew
    tools/tested.py --check    is it true? (tests/docs.py asks that, too)

A function is what a header of include/ declares with SFT_API. A test names it in its code, not in
a comment; the shared headers of tests count with the tests that include them. --check wants a
row for each function, in which every file names the function, and a test of the library for each:
of tests/unit or tests/faults. It does not want the files that name it most, so that the table is
written anew only when it has become wrong.
"""
import argparse
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "tests/functions.md"
MOST = 3  # files in a cell
# The columns after the function: title, and where its files are.
KINDS = (("unit tests", ("tests/unit/**/*.[ch]",)),
         ("faults", ("tests/faults/**/*.[ch]",)),
         ("other", ("tests/hostile/*.c", "tests/install/*.c", "tests/macos/*.c",
                    "tests/tools/*.c", "tests/windows/*.c", "fuzz/*.c",
                    "examples/**/*.c", "examples/*.cpp")))
HEAD = """# Public functions and the tests that name them

`tools/tested.py --update` writes this page; `docs` of `make check` holds it to the sources. Of \
many files a cell has the {most} that name the function most often. Paths are below `tests/unit` \
and `tests/faults`, in the last column from the root.
"""


def code(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def functions():
    """{header: its functions in order}."""
    found = {}
    for path in sorted(glob.glob("include/safetensors*.h", root_dir=ROOT)):
        text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", code(path), flags=re.M)
        found[path] = [re.search(r"\b(\w+)\s*\(", statement).group(1)
                       for statement in re.findall(r"\bSFT_API\b([^;{]*)", text)]
    return found


def mentions(patterns):
    """{function: {file: how often it is named there}}."""
    named = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern, root_dir=ROOT, recursive=True)):
            for name in re.findall(r"\bsft_\w+", code(path)):
                files = named.setdefault(name, {})
                files[path] = files.get(path, 0) + 1
    return named


def shown(path):
    return re.sub(r"^tests/(unit|faults)/", "", path)


def cell(files):
    first = sorted(files, key=lambda path: (-files[path], path))[:MOST]
    more = ", …" if len(files) > MOST else ""
    return ", ".join("`%s`" % shown(path) for path in first) + more


def untested(named, name):
    return not any(name in kind for kind in named[:2])


def page():
    named = [mentions(patterns) for _, patterns in KINDS]
    lines = [HEAD.format(most=("three" if MOST == 3 else MOST))]
    headers = functions()
    without = [name for names in headers.values() for name in names if untested(named, name)]
    if without:
        lines += ["No test of the library names %s.\n" % ", ".join("`%s`" % n for n in without)]
    for header, names in headers.items():
        if not names:
            continue
        lines += ["## %s\n" % os.path.basename(header),
                  "| function | %s |" % " | ".join(title for title, _ in KINDS),
                  "|---|%s" % ("---|" * len(KINDS))]
        lines += ["| `%s` | %s |" % (name, " | ".join(cell(kind.get(name, {})) for kind in named))
                  for name in names]
        lines.append("")
    return "\n".join(lines)


def problems():
    """What is wrong with the table, a line each."""
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as file:
        rows = re.findall(r"^\| `(sft_\w+)` \| (.*) \|$", file.read(), re.M)
    named = [mentions(patterns) for _, patterns in KINDS]
    told = {name: cells.split(" | ") for name, cells in rows}
    names = [name for some in functions().values() for name in some]
    bad = ["%s: no test of the library names it" % n for n in names if untested(named, n)]
    bad += ["%s has no row" % name for name in names if name not in told]
    bad += ["%s is no public function" % name for name in told if name not in names]
    for name, cells in told.items():
        for kind, text in zip(named, cells):
            there = {shown(path) for path in kind.get(name, {})}
            bad += ["%s is not named in %s" % (name, path)
                    for path in re.findall(r"`([^`]+)`", text) if path not in there]
    again = "" if not bad else "; tools/tested.py --update writes it anew"
    return ["%s: %s%s" % (PAGE, what, again) for what in bad]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.update:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(page())
    if args.check or args.update:
        found = problems()
        print("\n".join(found) or "every public function is named by a test, and %s is true" % PAGE)
        return 1 if found else 0
    named = [mentions(patterns) for _, patterns in KINDS]
    names = [name for some in functions().values() for name in some]
    for name in sorted(names, key=lambda n: sum(len(kind.get(n, {})) for kind in named[:2])):
        print("%4d %4d  %s" % (sum(len(kind.get(name, {})) for kind in named[:2]),
                               len(named[2].get(name, {})), name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
