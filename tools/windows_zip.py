#!/usr/bin/env python3
"""A zip of a folder that depends on its files' bytes and names alone.
usage: tools/windows_zip.py FOLDER OUT.zip"""
import os
import sys
import zipfile


def main():
    folder, out = sys.argv[1:]
    top = os.path.splitext(os.path.basename(out))[0]
    files = sorted(os.path.relpath(os.path.join(where, name), folder)
                   for where, _, names in os.walk(folder) for name in names)
    with zipfile.ZipFile(out, "w") as archive:
        for name in files:
            row = zipfile.ZipInfo(f"{top}/{name.replace(os.sep, '/')}")
            row.compress_type = zipfile.ZIP_DEFLATED
            row.create_system = 3
            row.external_attr = 0o100644 << 16
            with open(os.path.join(folder, name), "rb") as file:
                archive.writestr(row, file.read(), compresslevel=9)


if __name__ == "__main__":
    main()
