"""Runs build/tests/verdict (tests/tools/verdict.c): many small files in, one line each out."""
import os
import shlex
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEVELS = ("compat", "default", "strict")


def program():
    """The driver as a command, an emulator before it where SFT_EMULATE names one."""
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    path = os.environ.get("SFT_VERDICT", os.path.join(build, "tests", "verdict"))
    if not os.path.exists(path):
        sys.exit("%s is not there: build the target \"tests\" first" % path)
    return shlex.split(os.environ.get("SFT_EMULATE", "")) + [path]


def shared(*names):
    """A path in the folder of shared test data; it may not exist."""
    folder = os.environ.get("SFT_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
    return os.path.join(folder, *names)


def pack(records):
    return b"".join(struct.pack("<I", len(record)) + record for record in records)


class Stopped(Exception):
    """The driver ended badly; text says how."""


def lines(records, *options, command=None):
    """Its lines of output, as bytes, and what it said on stderr."""
    done = subprocess.run((command or program()) + list(options), input=pack(records),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = done.stderr.decode("utf-8", "replace")
    out = done.stdout.split(b"\n")[:-1]
    if done.returncode not in (0, 3):  # 3: ways to open differ
        raise Stopped("exit %d after %d lines\n%s" % (done.returncode, len(out), said[-4000:]))
    return out, said


def tables(*options, command=None):
    done = subprocess.run((command or program()) + list(options), stdout=subprocess.PIPE,
                          check=True)
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def codes():
    """Rows of the error table as dictionaries, in its order."""
    names = ("number", "name", "class", "rule", "level", "sentence", "hint")
    return [dict(zip(names, row)) for row in tables("--codes")]
