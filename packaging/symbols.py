#!/usr/bin/env python3
"""Write debian's symbols file from what the headers declare.

usage: packaging/symbols.py [--check]     --check: only say whether the file is up to date

A stable function carries the version that introduced it: docs/abi.md promises that it stays as
long as the soname. A program that calls an experimental function (dependency template 1) depends
on the very release it was built with. Versions of functions that the file already names are kept.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import exports
import source_archive

NODE = "SAFETENSORS_0"


def soname():
    return exports.soversion()


def path():
    return os.path.join(ROOT, "packaging", "debian", f"libsafetensors{soname()}.symbols")


def read():
    try:
        with open(path(), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def rows(text):
    """{symbol: (version, is experimental)} of a symbols file."""
    found = re.findall(rf"^ (\w+)@{NODE} (\S+)( 1)?$", text, re.M)
    return {name: (version, bool(template)) for name, version, template in found}


def next_patch(version):
    major, minor, patch = version.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def wanted():
    """The symbols file as it should be."""
    version, package = source_archive.version(), f"libsafetensors{soname()}"
    stable, known = set(exports.declared(stable=True)), rows(read())
    out = [f"libsafetensors.so.{soname()} {package} #MINVER#\n",
           f"| {package} (>= {version}), {package} (<< {next_patch(version)}~)\n",
           "* Build-Depends-Package: libsafetensors-dev\n"]
    for name in sorted([NODE] + exports.declared()):
        since = known.get(name, (version,))[0]
        template = "" if name in stable or name == NODE else " 1"
        out.append(f" {name}@{NODE} {version if template else since}{template}\n")
    return "".join(out)


def main():
    if sys.argv[1:] == ["--check"]:
        if read() != wanted():
            sys.exit("symbols: packaging/debian is out of date: run packaging/symbols.py")
    elif sys.argv[1:]:
        raise SystemExit(__doc__)
    else:
        with open(path(), "w", encoding="utf-8") as file:
            file.write(wanted())


if __name__ == "__main__":
    main()
