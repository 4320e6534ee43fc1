#!/usr/bin/env python3
"""Build the command and both libraries for macOS on Linux, by the compiler of tools/zig_env.sh, for
x86_64 and arm64, join them, and pack them: build/macos/libsafetensors-VERSION-macos-universal.zip.
Manual pages and completions are those of build/ (make build).

usage: tools/macos.py [--again]     --again: build once more in another folder, without caches,
                                    and compare the archives"""
import argparse
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import macho
import zip_folder

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPUS = ["arm64", "x86_64"]
SOURCES = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "src", "include", "cli",
           "page", "data", "man", "docs", "examples", "tools"]


def version():
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        return re.search(r'SFT_VERSION_STRING "([^"]+)"', file.read()).group(1)


def run(root, *command, **extra):
    done = subprocess.run(command, cwd=root, check=False, env=dict(os.environ, **extra),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        raise SystemExit(f"macos.py: {' '.join(command)}: exit {done.returncode}")


def compile_all(root):
    """build/macos-<cpu>/tree: what is installed, for each processor."""
    for cpu in CPUS:
        preset = f"macos-{cpu}"
        tree = os.path.join(root, "build", preset, "tree")
        shutil.rmtree(tree, ignore_errors=True)
        run(root, "cmake", "--preset", preset, "-DSFT_TESTS=OFF", "--log-level=WARNING")
        run(root, "cmake", "--build", "--preset", preset)
        run(root, "cmake", "--install", f"build/{preset}", "--prefix", tree, DESTDIR="")


def join(root, tree):
    """One tree of both, whose other files are the same in both."""
    one, *others = (os.path.join(root, "build", f"macos-{cpu}", "tree") for cpu in CPUS)
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(one, tree, symlinks=True)
    for where, _, names in os.walk(one):
        for name in names:
            paths = [os.path.join(base, os.path.relpath(os.path.join(where, name), one))
                     for base in [one, *others]]
            if os.path.islink(paths[0]):
                continue
            if re.fullmatch(r"safetensors|.*\.(?:dylib|a)", name):
                macho.join(os.path.join(tree, os.path.relpath(paths[0], one)), paths)
            elif not all(filecmp.cmp(paths[0], path, shallow=False) for path in paths):
                raise SystemExit(f"macos.py: {paths[0]} differs from that of another processor")


def add_manual(tree):
    """Made by the command, which runs here only as built for Linux."""
    share = os.path.join(tree, "share")
    made = os.path.join(ROOT, "build")
    places = {"man/*.1": "man/man1", "completions/safetensors": "bash-completion/completions",
              "completions/_safetensors": "zsh/site-functions",
              "completions/safetensors.fish": "fish/vendor_completions.d"}
    for pattern, place in places.items():
        found = glob.glob(os.path.join(made, pattern))
        if not found:
            raise SystemExit(f"macos.py: no build/{pattern}: make build")
        os.makedirs(os.path.join(share, place), exist_ok=True)
        for path in found:
            shutil.copy(path, os.path.join(share, place))


def pack(root, out):
    tree = os.path.join(out, f"libsafetensors-{version()}-macos-universal")
    compile_all(root)
    join(root, tree)
    add_manual(tree)
    archive = tree + ".zip"
    zip_folder.write(tree, archive)
    return archive


def copy_sources(copy, *more):
    """What is built for another system, for a second build in the folder."""
    for name in SOURCES + list(more):
        path = os.path.join(ROOT, name)
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(copy, name))


def again(archive):
    """The same from a copy of the sources elsewhere."""
    with tempfile.TemporaryDirectory(prefix="sft-macos-") as copy:
        copy_sources(copy)
        for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):
            os.environ.pop(name, None)
        run(copy, "tools/zig_env.sh", SFT_CACHE=os.environ.get("SFT_CACHE") or
            os.path.join(ROOT, "build", "cache"))
        second = pack(copy, os.path.join(copy, "build", "macos"))
        if not filecmp.cmp(archive, second, shallow=False):
            kept = shutil.copy(second, archive + ".again")
            raise SystemExit(f"macos.py: {archive} and {kept} differ")
    print(f"{os.path.relpath(archive, ROOT)} is the same again")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    archive = pack(ROOT, os.path.join(ROOT, "build", "macos"))
    print(os.path.relpath(archive, ROOT))
    if args.again:
        again(archive)


if __name__ == "__main__":
    main()
