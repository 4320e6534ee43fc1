#!/usr/bin/env python3
"""The numbers of a file by which a journal knows it: its device and its inode.

  identity.py FILE

Under wine they are those that Windows gives (tests/windows/hold.c).
"""
import os
import shlex
import subprocess
import sys


def identity(path):
    if os.environ.get("SFT_TARGET") != "windows":
        place = os.stat(path)
        return place.st_dev, place.st_ino
    hold = os.path.join(os.environ["SFT_BUILD"], "tests", "hold.exe")
    said = subprocess.run([*shlex.split(os.environ["SFT_EMULATE"]), hold, "identity", path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return tuple(map(int, said.stdout.split()))


if __name__ == "__main__":
    print(*identity(sys.argv[1]))
