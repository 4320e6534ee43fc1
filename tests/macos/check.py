#!/usr/bin/env python3
"""What tools/macos.py has built: is it what the loader of macOS takes, and what the documents say?
Nothing of it runs here."""
import glob
import hashlib
import os
import re
import stat
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests")]
sys.dont_write_bytecode = True
import exports
import macho

MINIMUM = {"arm64": "11.0", "x86_64": "10.15"}
SYSTEM = ["/usr/lib/libSystem.B.dylib"]
# Of the linker: the file's own header and the handle of its destructors.
LINKER = {"___dso_handle", "__mh_dylib_header", "__mh_execute_header"}
# Functions that macOS has not, or not yet in the oldest version that we name.
ABSENT = re.compile(r"_(?:syscall|getrandom|fallocate|posix_fallocate|copy_file_range|fdatasync|"
                    r"pthread_condattr_setclock|sync_file_range|aligned_alloc|memfd_create)\Z")
PIE, TWO_LEVEL = 0x200000, 0x80

problems = []
checks = 0


def check(ok, where, what):
    global checks
    checks += 1
    if not ok:
        problems.append(f"{where}: {what}")


def check_image(where, one):
    """A command or dylib for one processor."""
    cpu = one["cpu"]
    check(one["minimum"] == MINIMUM[cpu], where, f"for macOS {one['minimum']}")
    check(one["platform"] == 1, where, f"platform {one['platform']}, expected macOS")
    check(one["libraries"] == SYSTEM, where, f"links {one['libraries']}")
    check(not one["rpaths"], where, f"has search paths {one['rpaths']}")
    check(one["flags"] & TWO_LEVEL, where, "looks names up in all libraries")
    # Processors of Intel run what is not signed.
    check(one["signed"] or cpu != "arm64", where, "is not signed")
    check(one["uuid"] and one["uuid"] != "0" * 32, where, "has no UUID")
    wrong = sorted(name for name in one["undefined"] if ABSENT.match(name))
    check(not wrong, where, f"uses {', '.join(wrong)}")


def both(folder, name):
    found = macho.read(os.path.join(folder, name))
    check(set(found) == set(MINIMUM), name, f"for {sorted(found)}")
    return found.items()


def check_command(folder):
    for cpu, one in both(folder, "bin/safetensors"):
        where = f"safetensors, {cpu}"
        check(one["kind"] == "executable", where, f"is a {one['kind']}")
        check(one["flags"] & PIE, where, "has a fixed address")
        check_image(where, one)


def check_shared(folder, version):
    short = ".".join(version.split(".")[:2]) if version.startswith("0.") else version.split(".")[0]
    names = {"_" + name for name in exports.declared()}
    for cpu, one in both(folder, f"lib/libsafetensors.{version}.dylib"):
        where = f"libsafetensors.dylib, {cpu}"
        check(one["kind"] == "dylib", where, f"is a {one['kind']}")
        check(one["name"] == f"@rpath/libsafetensors.{short}.dylib", where, one["name"])
        check(one["current"] == version.removesuffix(".0") or one["current"] == version, where,
              f"version {one['current']}")
        check(one["compatibility"] == one["current"], where,
              f"compatible with {one['compatibility']}")
        found = one["defined"] - LINKER
        for what, bad in (("not exported", names - found), ("exported, not declared", found - names)):
            check(not bad, where, f"{what}: {', '.join(sorted(bad))}")
        check_image(where, one)
    for link in (f"libsafetensors.{short}.dylib", "libsafetensors.dylib"):
        check(os.path.realpath(os.path.join(folder, "lib", link)) ==
              os.path.realpath(os.path.join(folder, f"lib/libsafetensors.{version}.dylib")),
              link, "leads elsewhere")


def check_static(folder):
    names = {"_" + name for name in exports.declared()}
    for cpu, one in both(folder, "lib/libsafetensors.a"):
        where = f"libsafetensors.a, {cpu}"
        check(one["kind"] == "archive", where, f"is a {one['kind']}")
        check(one["minimum"] == [MINIMUM[cpu]], where, f"for macOS {one['minimum']}")
        check(not names - one["defined"], where, f"lacks {', '.join(sorted(names - one['defined']))}")
        strange = sorted(n for n in one["defined"] if not re.match(r"_(?:sfti?|os)_", n))
        check(not strange, where, f"defines {', '.join(strange)}")


def check_archive(path, folder):
    name = os.path.basename(folder)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(path + ".sha256", encoding="utf-8") as file:
        check(file.read() == f"{digest}  {os.path.basename(path)}\n", path, "has another checksum")
    with zipfile.ZipFile(path) as archive:
        check(archive.testzip() is None, path, "is damaged")
        rows = {row.filename: row for row in archive.infolist()}
    for wanted in ("bin/safetensors", "lib/libsafetensors.a", "include/safetensors.h",
                   "lib/pkgconfig/safetensors.pc", "lib/cmake/safetensors/safetensorsConfig.cmake",
                   "share/man/man1/safetensors.1", "share/zsh/site-functions/_safetensors",
                   "share/doc/safetensors/LICENSE"):
        check(f"{name}/{wanted}" in rows, path, f"lacks {wanted}")
    mode = rows[f"{name}/bin/safetensors"].external_attr >> 16
    check(mode == stat.S_IFREG | 0o755, path, f"command has mode {mode:o}")
    link = rows[f"{name}/lib/libsafetensors.dylib"].external_attr >> 16
    check(stat.S_ISLNK(link), path, "libsafetensors.dylib is no link")
    check(not [n for n in rows if n.endswith(".so")], path, "has libraries of Linux")


def main():
    found = glob.glob(os.path.join(ROOT, "build/macos/libsafetensors-*-macos-universal.zip"))
    if len(found) != 1:
        raise SystemExit("check.py: no archive in build/macos: make macos")
    path = found[0]
    folder = path.removesuffix(".zip")
    version = re.search(r"libsafetensors-(.+)-macos", path).group(1)
    check_command(folder)
    check_shared(folder, version)
    check_static(folder)
    check_archive(path, folder)
    print("\n".join(problems))
    print(f"{checks - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
