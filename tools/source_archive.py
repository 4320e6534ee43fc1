#!/usr/bin/env python3
"""Write the source archive: every file of the last commit, or, where there is no git (the archive
itself, unpacked), every file outside build/. Two runs write the same bytes.

usage: tools/source_archive.py FILE.tar.gz
"""
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEFT_OUT = {"build", ".git", "__pycache__", ".pytest_cache", ".hypothesis"}


def version():
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        return re.search(r'SFT_VERSION_STRING "([^"]+)"', file.read()).group(1)


def git(*args):
    return subprocess.run(("git", "-C", ROOT) + args, check=True, stdout=subprocess.PIPE).stdout


def in_git():
    """Whether the root is a checkout, not merely a folder in one."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return False
    return subprocess.run(["git", "-C", ROOT, "rev-parse"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def walk():
    """Paths of the files of the tree, from the root, outside build/."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def files():
    """(path, is executable, contents) of every file, sorted."""
    if not in_git():
        for path in sorted(walk()):
            full = os.path.join(ROOT, path)
            with open(full, "rb") as file:
                yield path, bool(os.stat(full).st_mode & 0o100), file.read()
        return
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as tree:
        for member in sorted(tree.getmembers(), key=lambda one: one.name):
            if member.isfile():
                yield member.name, bool(member.mode & 0o100), tree.extractfile(member).read()


def uncommitted():
    """Files that differ from the last commit."""
    return git("status", "--porcelain").decode().splitlines() if in_git() else []


def timestamp():
    """Of the last commit; in an unpacked archive all files have it."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if in_git():
        return int(git("log", "-1", "--format=%ct"))
    return int(max(os.stat(os.path.join(ROOT, path)).st_mtime for path in walk()))


def write_archive(path, entries):
    """A .tar.gz of (name, is executable, contents): the same bytes for the same entries."""
    when = timestamp()
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=when) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, executable, contents in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(contents), when, 0o755 if executable else 0o644
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(contents))


def write(path):
    top = f"libsafetensors-{version()}/"
    write_archive(path, ((top + name, *rest) for name, *rest in files()))


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    left_out = uncommitted()
    if left_out:
        print(f"source_archive: {len(left_out)} uncommitted changes are not in the archive, "
              f"first: {left_out[0][3:]}", file=sys.stderr)
    write(sys.argv[1])


if __name__ == "__main__":
    main()
