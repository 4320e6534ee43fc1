#!/usr/bin/env python3
"""Compose every case under a folder.

  tests/info/make.py DIR [CASE…]     DIR/GROUP/CASE/… ; CASE is GROUP:NAME
"""
import importlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compose import Model, write  # noqa: E402

GROUPS = ("worked", "producers", "sidecars", "prompts", "declared", "confused", "hints", "adapters",
          "models", "marks", "conflicts", "folders", "levels")


def cases():
    """(group, name, files, path asked, options) of each case, in order."""
    for group in GROUPS:
        module = importlib.import_module("cases_" + group)
        asks, options = getattr(module, "ASK", {}), getattr(module, "OPTIONS", {})
        for name, files in module.CASES.items():
            if isinstance(files, Model):
                files = {"x.safetensors": files}
            first = next(p for p, content in files.items() if isinstance(content, Model))
            yield group, name, files, asks.get(name, first), options.get(name, [])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for group, name, files, _, _ in cases():
        if not sys.argv[2:] or "%s:%s" % (group, name) in sys.argv[2:]:
            write(os.path.join(sys.argv[1], group, name), files)


if __name__ == "__main__":
    main()
