#!/usr/bin/env python3
"""Checks of the wheels and the source package in build/wheels (tools/wheels.py).

    tests/wheels/run.py [-v] [--dist FOLDER] [--only CHECK,...] [--skip CHECK,...] [WHEEL...]

Run by build/release/bin/python. WHEEL: a name that tools/wheels.py --list prints; without one, all
of them. CHECK: names binaries complete tools installed musl arm64 wine source again. The last line
reads "N passed, N failed", and skipped ones if there are any.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import binaries
import installed

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import source_archive  # noqa: E402
import wheels  # noqa: E402

GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}
LIBRARIES = {
    "manylinux_x86_64": GLIBC | {"ld-linux-x86-64.so.2"},
    "manylinux_aarch64": GLIBC | {"ld-linux-aarch64.so.1"},
    "musllinux_x86_64": {"libc.musl-x86_64.so.1"},
    "musllinux_aarch64": {"libc.musl-aarch64.so.1"},
}
# With the system since Windows 8.
WINDOWS = {"kernel32.dll", "ntdll.dll", "bcrypt.dll", "shell32.dll", "advapi32.dll", "ws2_32.dll"}
ELF = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
PE = {"win_amd64": 0x8664, "win_arm64": 0xaa64}
EXTENSION = r"/_core\.(?!pyi$)"
# There are two packages on purpose: Spark looks for names that begin with pyspark_.
CONTENTS_IGNORED = "W009"


class Wheel:
    """One of the wheels: name, python (tag), platform, path, files {name: bytes}."""

    def __init__(self, name, dist):
        self.name = name
        self.python, _, self.platform = name.rpartition("-")
        tag = "%s-%s" % (self.python, wheels.PLATFORMS[self.platform][1])
        found = sorted(dist.glob("libsafetensors-*-%s.whl" % tag))
        assert len(found) == 1, "expected one wheel *-%s.whl, found %d" % (tag, len(found))
        self.path = found[0]
        with zipfile.ZipFile(self.path) as file:
            self.entries = file.infolist()
            self.files = {entry.filename: file.read(entry) for entry in self.entries}

    def one(self, pattern):
        """(name, bytes) of the one file of that name."""
        (name, data), = [row for row in self.files.items() if re.search(pattern, row[0])]
        return name, data


def tool(*words):
    """Output of a program of the environment; fails with all of it."""
    done = subprocess.run([sys.executable, "-m", *map(str, words)], text=True, cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"})
    assert done.returncode == 0, done.stdout
    return done.stdout


# ── Checks of each wheel ──

def names(wheel):
    """The entries: all of the package, in order, with one time and fixed modes."""
    stem = "-".join(wheel.path.name.split("-")[:2])
    package = ROOT / "bindings/python"
    modules = {str(path.relative_to(package)) for path in package.rglob("*")
               if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    modules = {name for name in modules if not name.startswith(("standin/", "src/"))}
    info = stem + ".dist-info"
    others = set(wheel.files) - modules
    binaries.expect("modules", modules - set(wheel.files), set())
    windows = wheel.platform.startswith("win")
    binaries.expect("other entries", others, {
        wheel.one(EXTENSION)[0], "%s.data/scripts/safetensors%s" % (stem, ".exe" * windows),
        *("%s/%s" % (info, name) for name in
          ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "licenses/zlib/LICENSE"))})
    assert wheel.entries[-1].filename == info + "/RECORD"
    binaries.expect("times", len({entry.date_time for entry in wheel.entries}), 1)
    modes = {oct(entry.external_attr >> 16) for entry in wheel.entries}
    binaries.expect("modes", modes, {"0o100644", "0o100755"})
    with tempfile.TemporaryDirectory() as folder:
        tool("wheel", "unpack", "-d", folder, wheel.path)  # compares RECORD


def check_binaries(wheel):
    """Libraries, exports, hardening, the oldest system, no version of CPython beyond the tag."""
    extension, command = wheel.one(EXTENSION)[1], wheel.one(r"/scripts/")[1]
    if wheel.platform in PE:
        used = binaries.check_pe(extension, PE[wheel.platform], WINDOWS | {"python3.dll"},
                                 {binaries.INIT})
        assert "python3.dll" in used
        binaries.check_pe(command, PE[wheel.platform], WINDOWS, None)
    elif wheel.platform == "macos":
        binaries.check_universal(extension, {binaries.INIT})
        binaries.check_universal(command, None)
    else:
        kind, _, processor = wheel.platform.partition("_")
        for data, exports in ((extension, {binaries.INIT}), (command, None)):
            elf = binaries.Elf(data)
            elf.check(ELF[processor], LIBRARIES[wheel.platform], exports)
            if kind == "manylinux":
                assert elf.newest_glibc() <= (2, 17), "glibc %d.%d" % elf.newest_glibc()
            else:
                loader = elf.file.get_section_by_name(".interp")
                assert exports or loader.data() == b"/lib/ld-musl-%s.so.1\0" % processor.encode()


def tools(wheel):
    """What the tools of others say of it."""
    tool("twine", "check", "--strict", wheel.path)
    told = subprocess.run([pathlib.Path(sys.executable).parent / "check-wheel-contents",
                           "--ignore", CONTENTS_IGNORED, wheel.path], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert told.returncode == 0, told.stdout
    if wheel.python == wheels.ABI3:
        told = " ".join(tool("abi3audit", "--strict", "--verbose", "--summary", wheel.path).split())
        assert re.search(r"[12] extensions scanned; 0 ABI version mismatches and 0 ABI violations",
                         told), told
    if "linux" in wheel.platform:
        told = " ".join(tool("auditwheel", "show", wheel.path).split())
        wanted = wheels.PLATFORMS[wheel.platform][1].rpartition(".")[2]
        assert 'following platform tag: "%s"' % wanted in told, told


EACH = {"names": names, "binaries": check_binaries, "tools": tools}


# ── Checks of all ──

def complete(dist, chosen):
    """No file more than those that were asked for."""
    found = {path.name for path in dist.glob("*.whl")}
    binaries.expect("other wheels", found - {wheel.path.name for wheel in chosen}, set())


def again(dist, chosen):
    """Built once more in another folder: the same bytes."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        copy = pathlib.Path(folder, "elsewhere/of another length")
        for path in wheels.tracked():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy / path)
        (copy / "build").mkdir()
        for name in ("zig", "release-files"):
            (copy / "build" / name).symlink_to(ROOT / "build" / name)
        out = pathlib.Path(folder, "out")
        asked = ",".join(["sdist"] + [wheel.name for wheel in chosen])
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(source_archive.timestamp())}
        done = subprocess.run([sys.executable, copy / "tools/wheels.py", "--out", out,
                               "--only", asked], text=True, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        differing = [difference(dist / path.name, path) for path in sorted(out.iterdir())
                     if path.read_bytes() != (dist / path.name).read_bytes()]
        assert not differing, "; ".join(differing)


def difference(one, other):
    """Where two archives differ."""
    if one.suffix != ".whl":
        return one.name
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        names = sorted({*first.namelist(), *second.namelist()})
        found = [name for name in names if name not in first.namelist()
                 or name not in second.namelist() or first.read(name) != second.read(name)]
    return "%s: %s" % (one.name, ", ".join(found) or "dates or compression")


ALL = {"complete": [complete], "installed": installed.installed, "musl": installed.musl,
       "arm64": installed.arm64, "wine": installed.wine, "source": installed.source,
       "again": [again]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "build/wheels")
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("wheels", nargs="*")
    args = parser.parse_args()
    only = set(filter(None, args.only.split(","))) or {*EACH, *ALL}
    only -= set(args.skip.split(",")) | ({"complete"} if args.wheels else set())
    counts = [0, 0, 0]

    def run(name, function, *given):
        try:
            said = function(*given)
        except installed.Skip as why:
            counts[2] += 1
            print("skipped %s: %s" % (name, why), flush=True)
            return
        except Exception as error:
            counts[1] += 1
            print("FAILED  %s: %s: %s" % (name, type(error).__name__, error), flush=True)
            return
        counts[0] += 1
        if args.verbose or said:
            print("passed  %s%s" % (name, ": " + said if said else ""), flush=True)

    chosen = []
    for name in args.wheels or wheels.names():
        if name == "sdist":
            continue
        try:
            chosen.append(Wheel(name, args.dist))
        except AssertionError as error:
            counts[1] += 1
            print("FAILED  %s: %s" % (name, error))
    for key, function in EACH.items():
        for wheel in chosen:
            if key in only:
                run("%s %s" % (key, wheel.name), function, wheel)
    for key, cases in ALL.items():
        for case in cases if key in only else []:
            run("%s %s" % (key, case.__name__), case, args.dist, chosen)
    print("%d passed, %d failed%s" % (*counts[:2], ", %d skipped" % counts[2] if counts[2] else ""))
    return 1 if counts[1] or not counts[0] else 0


if __name__ == "__main__":
    sys.exit(main())
