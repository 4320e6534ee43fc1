#!/usr/bin/env python3
"""Writes the architectures of docs/json-vocabularies.md, a row a file of data/models.

    tools/vocabularies.py            tests/docs.py demands that nothing changes
"""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "json-vocabularies.md")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def records():
    """(type, id) of every record, by file."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "data", "**", "*.txt"), recursive=True)):
        if path.startswith(os.path.join(ROOT, "data", "layouts", "")):
            continue  # of another language
        found[path] = re.findall(r"^([a-z]+) (\S+)", read(path), re.M)
    return found


def ids(kind):
    return [name for rows in records().values() for of, name in rows if of == kind]


def table():
    """The rows of architectures: what the first line of a file says, and its models."""
    rows = []
    for path, found in records().items():
        names = [name for of, name in found if of == "model"]
        title = read(path).split("\n", 1)[0].removeprefix("# ")
        if names:
            rows.append("| %s | %s |\n" % (title, " ".join("`%s`" % name for name in names)))
    return "| `architecture` of | |\n" + "".join(rows)


def page(text):
    """The page with these rows."""
    begin = text.index("| `architecture` of |") if "| `architecture` of |" in text else \
        text.index("| `architecture`: images and video")
    return text[:begin] + table() + text[text.index("| `family` |"):]


def main():
    text = page(read(PAGE))
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
