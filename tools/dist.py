#!/usr/bin/env python3
"""Collect what a release consists of in build/dist, with SHA256SUMS.

usage: tools/dist.py [--complete] [--keep-sizes]

--complete: fail if anything is missing or out of date
--keep-sizes: what is there now becomes what later sizes stand beside (packaging/sizes.tsv)

Made here: the source archive, the two-file form, manual pages and documents, the bill of
materials. Taken from where other targets leave them: wheels, archives for Windows and macOS,
Debian packages. Needs build/safetensors and its manual pages (make build).
"""
import argparse
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import sbom
import source_archive

ROOT = source_archive.ROOT
DIST = os.path.join(ROOT, "build", "dist")
SIZES = os.path.join(ROOT, "packaging", "sizes.tsv")
# what, files of build/ (a row of its own for each that must be there), target that makes them
PARTS = [
    ("wheel for Linux x86_64 (glibc)", "wheels/*-cp311-abi3-manylinux*x86_64.whl", "wheels"),
    ("wheel for Linux aarch64 (glibc)", "wheels/*-cp311-abi3-manylinux*aarch64.whl", "wheels"),
    ("wheel for Linux x86_64 (musl)", "wheels/*-cp311-abi3-musllinux*x86_64.whl", "wheels"),
    ("wheel for Linux aarch64 (musl)", "wheels/*-cp311-abi3-musllinux*aarch64.whl", "wheels"),
    ("wheel for Windows x86_64", "wheels/*-cp311-abi3-win_amd64.whl", "wheels"),
    ("wheel for Windows arm64", "wheels/*-cp311-abi3-win_arm64.whl", "wheels"),
    ("wheel for macOS", "wheels/*-cp311-abi3-macosx*universal2.whl", "wheels"),
    ("wheels for free-threaded CPython", "wheels/*-cp*-cp*t-*.whl", "wheels"),
    ("source package for pip", "wheels/*.tar.gz", "wheels"),
    ("archive for Windows", "windows/*.zip", "windows"),
    ("archive for macOS", "macos/*.zip", "macos"),
    ("Debian packages", "deb/*.deb", "deb"),
]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def bundle(name):
    folder = os.path.join(ROOT, "build", "bundle")
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "bundle.py"), folder,
                    "--with", "edit,set,convert,read,stats", "--all-hosts"], check=True)
    files = [os.path.join(folder, one) for one in ("safetensors.h", "safetensors.c")]
    return [(f"{name}/{os.path.basename(path)}", False, read(path))
            for path in files + [os.path.join(ROOT, "LICENSE")]]


def documents(name):
    """Manual pages, documents and examples, as they are installed."""
    pages = glob.glob(os.path.join(ROOT, "build", "man", "*.1"))
    if not pages:
        sys.exit("dist: no manual pages in build/man: make build")
    pages += glob.glob(os.path.join(ROOT, "build", "man3", "*.3"))
    pages += glob.glob(os.path.join(ROOT, "man", "*.5"))
    out = [(f"{name}/man{path[-1]}/{os.path.basename(path)}", False, read(path))
           for path in pages]
    for path, _, contents in source_archive.files():
        if re.fullmatch(r"docs/.*\.(md|svg|json)|examples/(README\.md|example_\w+\.c)|LICENSE|"
                        r"README\.md|CHANGELOG\.md", path):
            out.append((f"{name}/{path}", False, contents))
    return sorted(out)


def make(version):
    """What is made from the sources alone."""
    name = os.path.join(DIST, f"libsafetensors-{version}")
    source_archive.write(name + "-source.tar.gz")
    for kind, entries in (("bundle", bundle), ("doc", documents)):
        source_archive.write_archive(f"{name}-{kind}.tar.gz",
                                     entries(f"libsafetensors-{version}-{kind}"))
    sbom.write(name + ".spdx.json")


def collect(version):
    """Copies the parts of other targets; says what is wrong with them."""
    wrong = []
    for what, pattern, target in PARTS:
        found = sorted(glob.glob(os.path.join(ROOT, "build", pattern)))
        if not found:
            wrong.append(f"missing: {what} (make {target})")
        for path in found:
            if not re.search(rf"(?<![0-9.]){re.escape(version)}(?![0-9])", os.path.basename(path)):
                wrong.append(f"not {version}: {os.path.relpath(path, ROOT)} (make {target})")
            elif os.stat(path).st_mtime < source_archive.timestamp():
                wrong.append(f"older than the last commit: {os.path.relpath(path, ROOT)} "
                             f"(make {target})")
            else:
                shutil.copy(path, DIST)
    return wrong


def write_sums():
    names = sorted(os.listdir(DIST))
    with open(os.path.join(DIST, "SHA256SUMS"), "w", encoding="utf-8") as file:
        for name in names:
            file.write(f"{hashlib.sha256(read(os.path.join(DIST, name))).hexdigest()}  {name}\n")
    return names


def read_sizes():
    with open(SIZES, encoding="utf-8") as file:
        return {name: int(size) for name, size in
                (line.split("\t")[:2] for line in file if line[0] != "#")}


def show_sizes(version, names, keep):
    """Each file's bytes beside those of the last release."""
    before = read_sizes()
    now = {name.replace(version, "VERSION"): os.stat(os.path.join(DIST, name)).st_size
           for name in names}
    for name in names:
        any_version = name.replace(version, "VERSION")
        size, old = now[any_version], before.get(any_version)
        print("%11s  %-8s build/dist/%s" % (
            f"{size:,}", "%+.1f %%" % (100 * size / old - 100) if old else "new", name))
    if keep:
        with open(SIZES, "w", encoding="utf-8") as file:
            file.write(f"# Bytes of what {version} consists of (make dist): file, bytes\n")
            file.writelines(f"{name}\t{size}\n" for name, size in sorted({**before, **now}.items()))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--keep-sizes", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(DIST, ignore_errors=True)
    os.makedirs(DIST)
    version = source_archive.version()
    make(version)
    wrong = [f"uncommitted: {line[3:]}" for line in source_archive.uncommitted()]
    wrong += collect(version)
    show_sizes(version, write_sums(), args.keep_sizes)
    print("\n".join(wrong))
    return 1 if args.complete and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
