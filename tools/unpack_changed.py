#!/usr/bin/env python3
"""Make this clone's source package, and unpack what changed in it since the last time.

    tools/unpack_changed.py FOLDER     FOLDER/NAME.tar.gz and FOLDER/source

Files that are the same stay as they are, so that a build of FOLDER/source makes only what is not
made already. What the source package does not hold is removed, but for FOLDER/source/build, where
it is built. Run by tools/environment.sh.
"""
import os
import sys
import tarfile

from scikit_build_core.build import build_sdist


def main():
    folder = sys.argv[1]
    source, held = os.path.join(folder, "source"), set()
    with tarfile.open(os.path.join(folder, build_sdist(folder))) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            path = os.path.join(source, member.name.partition("/")[2])
            held.add(path)
            data = archive.extractfile(member).read()
            if os.path.exists(path):
                with open(path, "rb") as file:
                    if file.read() == data:
                        continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, member.mode)
    for path, folders, names in os.walk(source):
        if path == source and "build" in folders:
            folders.remove("build")
        for name in names:
            if os.path.join(path, name) not in held:
                os.remove(os.path.join(path, name))


if __name__ == "__main__":
    main()
