#!/usr/bin/env python3
"""Write bindings/python/windows/python3.def, from which the import library of python3.dll is
made: what the stable ABI of CPython 3.11 exports, so that linking fails for a newer name.

usage: tools/python3_def.py FOLDER [--check]     FOLDER: of a CPython 3.11 for Windows
    --check: compare instead; exit status 1 if they differ
"""
import os
import struct
import sys

DEF = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                   "bindings/python/windows/python3.def")
CODE = 0x20  # IMAGE_SCN_CNT_CODE


def exports(path):
    """The exported names of a DLL, each with whether it is code."""
    with open(path, "rb") as file:
        data = file.read()

    def at(form, offset):
        return struct.unpack_from("<" + form, data, offset)

    header, = at("I", 0x3c)
    _, _, sections, _, _, _, optional, _ = at("4sHHIIIHH", header)
    table, = at("I", header + 24 + 112)  # PE32+: the first data directory
    rows = []
    for i in range(sections):
        row = header + 24 + optional + 40 * i
        size, start, _, raw = at("IIII", row + 8)
        rows.append((start, max(size, 1), raw, at("I", row + 36)[0]))

    def section(rva):
        return next(row for row in rows if row[0] <= rva < row[0] + row[1])

    def offset(rva):
        start, _, raw, _ = section(rva)
        return raw + rva - start

    count, functions, names, ordinals = at("IIII", offset(table) + 24)
    found = {}
    for i in range(count):
        text = offset(at("I", offset(names) + 4 * i)[0])
        name = data[text:data.index(b"\0", text)].decode("ascii")
        ordinal, = at("H", offset(ordinals) + 2 * i)
        found[name] = bool(section(at("I", offset(functions) + 4 * ordinal)[0])[3] & CODE)
    return found


def main(folder, *options):
    # python3.dll forwards all of its names; python311.dll knows which of them are data.
    code = exports(os.path.join(folder, "python311.dll"))
    lines = ["; Made by tools/python3_def.py: the names of the stable ABI of CPython 3.11.",
             "LIBRARY python3.dll", "EXPORTS"]
    lines += ["    " + name + ("" if code[name] else " DATA")
              for name in sorted(exports(os.path.join(folder, "python3.dll"))) if name in code]
    text = "\n".join(lines) + "\n"
    if "--check" not in options:
        with open(DEF, "w", encoding="ascii") as file:
            file.write(text)
        return 0
    with open(DEF, encoding="ascii") as file:
        same = file.read() == text
    print("%s: %s" % (os.path.relpath(DEF), "as exported" if same else "differs; make it anew"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
