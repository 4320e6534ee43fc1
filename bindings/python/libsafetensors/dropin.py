"""Run a program with this package in the place of the official one.

    python -m libsafetensors.dropin SCRIPT [ARG...]
    python -m libsafetensors.dropin -m MODULE [ARG...]

The Pythons that the program starts use this package as well: see libsafetensors.install.
"""
from __future__ import annotations

import os
import sys

from ._install import install


def main(arguments: list[str]) -> int:
    """0, or 2 when no program is named. What the program raises comes out."""
    module = arguments[:1] == ["-m"]
    rest = arguments[1:] if module else arguments
    if not rest or rest[0].startswith("-"):
        print(__doc__, file=sys.stderr, end="")
        return 2
    import runpy
    install()
    sys.argv = rest
    if module:
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
