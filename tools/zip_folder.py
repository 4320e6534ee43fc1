#!/usr/bin/env python3
"""Write what is in FOLDER as OUT.zip, within a folder OUT, the same bytes for the same files: sorted,
dated by SOURCE_DATE_EPOCH or 1980, with modes and symbolic links; and OUT.zip.sha256.

usage: tools/zip_folder.py FOLDER OUT.zip"""
import hashlib
import os
import stat
import sys
import time
import zipfile


def entries(folder, top):
    """(path, name in the archive), sorted."""
    for where, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        for name in sorted(names + links):
            path = os.path.join(where, name)
            yield path, f"{top}/{os.path.relpath(path, folder).replace(os.sep, '/')}"


def write(folder, out):
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, name in entries(folder, os.path.splitext(os.path.basename(out))[0]):
            info = zipfile.ZipInfo(name, when)
            info.create_system = 3  # Unix: the upper half of external_attr is the mode
            info.compress_type = zipfile.ZIP_DEFLATED
            if os.path.islink(path):
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(info, os.readlink(path))
                continue
            runs = os.stat(path).st_mode & stat.S_IXUSR
            info.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            with open(path, "rb") as file:
                archive.writestr(info, file.read())
    with open(out, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(out + ".sha256", "w", encoding="utf-8") as file:
        file.write(f"{digest}  {os.path.basename(out)}\n")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
