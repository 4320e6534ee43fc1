"""The CPythons of this machine.

    pythons.py      one line each: path, version, "free-threaded" where it is

Looked for: pythonX.Y and pythonX.Yt on PATH, all of pyenv, and the paths in SFT_PYTHONS
(colons between them).
"""
import functools
import glob
import os
import pathlib
import subprocess
import sys

_ASK = """import os, sys, sysconfig
print(sys.implementation.name, *sys.version_info[:3],
      int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))), os.path.realpath(sys.executable),
      int(os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))), sep="\\n")"""


class Python:
    """path, version (major, minor, micro), free (threaded), headers (whether they are there)"""

    def __init__(self, path, version, free, headers):
        self.path, self.version, self.free, self.headers = path, version, free, headers

    def __str__(self):
        return "%d.%d.%d" % self.version + "t" * self.free


def _ask(path):
    try:
        done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    name, *version, free, real, headers = done.stdout.splitlines()
    if name != "cpython":
        return None
    return Python(real, tuple(map(int, version)), free == "1", headers == "1")


@functools.cache
def pythons(at_least=(3, 10)):
    """One of each version that is supported, oldest first; shims are followed."""
    paths = [sys.executable, *os.environ.get("SFT_PYTHONS", "").split(":")]
    for folder in os.environ.get("PATH", "").split(":"):
        paths += glob.glob(os.path.join(folder, "python3.[0-9]*"))
    pyenv = os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv"
    paths += glob.glob(os.path.join(pyenv, "versions", "*", "bin", "python3"))
    found = {}
    for path in paths:
        if not os.access(path, os.X_OK) or path.endswith("-config"):
            continue
        python = _ask(path)
        if python and python.version >= at_least:
            kept = found.setdefault((python.version[:2], python.free), python)
            # One with headers can build as well.
            if python.headers and not kept.headers:
                found[python.version[:2], python.free] = python
    return [found[key] for key in sorted(found)]


if __name__ == "__main__":
    for each in pythons():
        print(each.path, each, "free-threaded" if each.free else "",
              "" if each.headers else "(no headers)")
