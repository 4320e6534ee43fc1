#!/usr/bin/env python3
"""Write debian's symbols file and include/safetensors_prefix.h from what the headers declare.

usage: packaging/symbols.py [--check]     --check: only say whether both are up to date

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
PREFIX = os.path.join(ROOT, "include", "safetensors_prefix.h")
PREFIX_HEAD = """/* Another name for every function: safetensors.h includes this if SFT_PREFIX is defined. With
 * -DSFT_PREFIX=mine_ a program goes on writing sft_open, and what is compiled and linked is
 * mine_sft_open. For two versions of the library in one program; see docs/install.md.
 *
 * STABLE (docs/abi.md). packaging/symbols.py writes this file. */
#ifndef SFT_SAFETENSORS_PREFIX_H
#define SFT_SAFETENSORS_PREFIX_H

#define SFT_PREFIX_JOINED(prefix, name) prefix##name
#define SFT_PREFIX_JOIN(prefix, name) SFT_PREFIX_JOINED(prefix, name)
#define SFT_PREFIXED(name) SFT_PREFIX_JOIN(SFT_PREFIX, name)

"""


def soname():
    return exports.soversion()


def path():
    return os.path.join(ROOT, "packaging", "debian", f"libsafetensors{soname()}.symbols")


def read(name):
    try:
        with open(name, encoding="utf-8") as file:
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
    stable, known = set(exports.declared(stable=True)), rows(read(path()))
    out = [f"libsafetensors.so.{soname()} {package} #MINVER#\n",
           f"| {package} (>= {version}), {package} (<< {next_patch(version)}~)\n",
           "* Build-Depends-Package: libsafetensors-dev\n"]
    for name in sorted([NODE] + exports.declared()):
        since = known.get(name, (version,))[0]
        template = "" if name in stable or name == NODE else " 1"
        out.append(f" {name}@{NODE} {version if template else since}{template}\n")
    return "".join(out)


def prefixed():
    """The header that gives every function another name."""
    return PREFIX_HEAD + "".join(f"#define {name} SFT_PREFIXED({name})\n"
                                 for name in sorted(exports.declared())) + "\n#endif\n"


def main():
    files = {path(): wanted, PREFIX: prefixed}
    if sys.argv[1:] not in ([], ["--check"]):
        raise SystemExit(__doc__)
    for name, text in files.items():
        if read(name) == text():
            continue
        if sys.argv[1:]:
            sys.exit(f"symbols: {os.path.relpath(name, ROOT)} is out of date: run "
                     "packaging/symbols.py")
        with open(name, "w", encoding="utf-8") as file:
            file.write(text())


if __name__ == "__main__":
    main()
