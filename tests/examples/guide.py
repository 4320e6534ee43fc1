#!/usr/bin/env python3
"""Writes the C blocks of docs/c.md, one after another, as the file that guide.c includes.

  tests/examples/guide.py OUT
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "c.md")


def blocks():
    """The blocks, each with the number of its first line in the page."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for found in re.finditer(r"^```c\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, found.start(1)) + 1, found[1]


def main():
    parts = ['#line %d "docs/c.md"\n%s' % (line, text) for line, text in blocks()]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("".join(parts))


if __name__ == "__main__":
    main()
