#!/usr/bin/env python3
"""The zip for Windows that `make windows` has made, as somebody who unpacks it uses it: the command
under wine, a program with the DLL and with the static library, and the same zip a second time.

  tests/windows/zip.py [-v] [NAME...]

Compares with the command for Linux (SFT_NATIVE, build/safetensors). Needs tools/wine_env.sh and
build/mingw (make windows-test has both).
"""
import argparse
import filecmp
import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INSTALL = os.path.join(ROOT, "tests", "install")
BUILD_LIMIT = 1500  # seconds of a build of everything
FILES = ["LICENSE", "README.txt", "bin/safetensors.exe", "bin/safetensors.dll",
         "lib/libsafetensors.dll.a", "lib/libsafetensors.a", "include/safetensors.h",
         "lib/pkgconfig/safetensors.pc", "lib/cmake/safetensors/safetensorsConfig.cmake"]

sys.path.insert(0, os.path.join(ROOT, "tools"))
import macos  # noqa: E402

NAME = f"libsafetensors-{macos.version()}-windows-x86_64"
ZIP = os.path.join(ROOT, "build", "windows", NAME + ".zip")
HOLDS = os.path.join(ROOT, "build", "unpacked here")
TREE = os.path.join(HOLDS, NAME)
os.environ.setdefault("SFT_BUILD", os.path.join(ROOT, "build", "mingw"))
os.environ.setdefault("SFT_EMULATE", "/usr/lib/wine/wine64")
os.environ.setdefault("WINEDEBUG", "-all")
os.environ["WINEPREFIX"] = subprocess.check_output(
    [os.path.join(ROOT, "tools", "wine_env.sh"), "--prefix"], text=True).strip()
os.environ["SFT_COMMAND"] = shlex.join(
    [*shlex.split(os.environ["SFT_EMULATE"]),
     os.path.join(os.environ["SFT_BUILD"], "tests", "start.exe"),
     os.path.join(TREE, "bin", "safetensors.exe")])
# They read the environment.
import run  # noqa: E402
import same_cases  # noqa: E402
import world  # noqa: E402
from world import demand  # noqa: E402


def emulated(*words):
    return [*world.EMULATE, *words]


def tool(*words, cwd=None, **more):
    """Output of a program, which must succeed."""
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILD_LIMIT,
                          env=dict(os.environ, **more))
    if done.returncode:
        raise world.Wrong(" ".join(words)[-300:] + ": exit %d\n" % done.returncode
                          + done.stdout[-3000:])
    return done.stdout


def says(program, *, dll):
    """A program built against the zip says what it should; with the DLL beside it alone, if it
    needs that."""
    if dll:
        done = subprocess.run(emulated(program), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False, timeout=world.LIMIT)
        demand(done.returncode != 0, "without the DLL it runs, too:", done.stdout)
        shutil.copy(os.path.join(TREE, "bin", "safetensors.dll"), os.path.dirname(program))
    said = tool(*emulated(program)).replace("\r", "").strip()
    demand(said == macos.version() + " 1 2", "said", repr(said))


# ── Cases ──

def contents(_):
    """Its checksum, its files, none of Linux, and no path of the machine that made it."""
    with open(ZIP, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(ZIP + ".sha256", encoding="utf-8") as file:
        demand(file.read() == f"{digest}  {os.path.basename(ZIP)}\n", "another checksum")
    found = [os.path.relpath(name, TREE) for name in glob.glob(TREE + "/**", recursive=True)
             if not os.path.isdir(name)]
    demand(not set(FILES) - set(found), "lacks", sorted(set(FILES) - set(found)))
    headers = {"include/" + os.path.basename(name)
               for name in glob.glob(os.path.join(ROOT, "include", "*.h"))}
    demand(not headers - set(found), "lacks", sorted(headers - set(found)))
    for name in found:
        content = world.read(os.path.join(TREE, name))
        demand(ROOT.encode() not in content, name, "names the folder of the build")
        demand(content[:4] != b"\x7fELF", name, "is for Linux")
    for name in ("bin/safetensors.exe", "bin/safetensors.dll"):
        content = world.read(os.path.join(TREE, name))
        demand(b"api-ms-win-crt-" in content and b"msvcrt.dll" not in content.lower(),
               name, "has another C runtime than the UCRT")


def images(_):
    """DLLs that the command and the library need, hardening, and what the library exports."""
    said = tool(sys.executable, os.path.join(ROOT, "tests", "mingw.py"), TREE)
    demand(said.strip().endswith(" passed, 0 failed"), said)


def own_files(folder):
    """The commands on models made here, and on a damaged one."""
    same_cases.native()
    names = ["a.safetensors", "ü b.safetensors"]
    for seed, name in enumerate(names):
        world.write(os.path.join(folder, name), world.small(seed))
    for words in (["info", *names], ["info", "--json", names[0]], ["ls", names[1]],
                  ["check", *names], ["check", "--level", "strict", "--json", *names],
                  ["diff", *names]):
        same_cases.same(words, folder)
    for words in (["meta", "set", names[0], "k", "v"],
                  ["meta", "set", names[1], "k", world.scenes.LONG],
                  ["convert", names[0], "--dtype", "F16", "-o", "out.safetensors"]):
        demand(same_cases.written(words, folder).returncode == 0, words[0], "failed")
    world.sft(["meta", "set", names[0], "title", "A test"], folder)
    said = world.sft(["meta", "get", names[0], "title"], folder).stdout
    demand(said == b"A test\n", "meta get says", said)
    same_cases.same_page(folder, 0)
    world.write(os.path.join(folder, "cut.safetensors"), world.small()[:-1])
    done = same_cases.same(["check", "cut.safetensors"], folder)
    demand(done.returncode == 1, "check of a damaged file: exit", done.returncode)


def pkg_config(folder):
    """A program by pkg-config and mingw-w64, with the DLL."""
    folders = {"PKG_CONFIG_LIBDIR": os.path.join(TREE, "lib", "pkgconfig")}
    program = os.path.join(folder, "program.exe")
    told = tool("pkg-config", "--modversion", "safetensors", **folders).strip()
    demand(told == macos.version(), "pkg-config has version", told)
    tool("bash", "-euo", "pipefail", "-c", "flags=$(pkg-config --cflags --libs safetensors); "
         'eval "flags=($flags)"; '
         'x86_64-w64-mingw32-gcc-win32 -std=c11 -Wall -Wextra -Werror -o "$1" "$2" "${flags[@]}"',
         "bash", program, os.path.join(INSTALL, "consumer.c"), **folders)
    says(program, dll=True)


def find_package(folder, toolchain, *more):
    """Finds the package by CMake; the folder in which the program is built with both libraries."""
    build = os.path.join(folder, "cmake")
    tool("cmake", "-S", INSTALL, "-B", build, "-G", "Ninja", *more,
         "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", toolchain))
    return build


def cmake_mingw(folder):
    """By find_package and mingw-w64, with the DLL. The static library is of the UCRT, which this
    compiler does not link."""
    build = find_package(folder, "mingw.cmake", f"-DCMAKE_PREFIX_PATH={TREE}")
    tool("cmake", "--build", build, "--target", "consumer_shared")
    says(os.path.join(build, "consumer_shared.exe"), dll=True)


def cmake_zig(folder):
    """By find_package and the compiler of the zip, with both libraries. Its toolchain looks for
    packages nowhere: the folder is named."""
    build = find_package(folder, "zig.cmake", "-DSFT_ZIG_TARGET=x86_64-windows-gnu",
                         f"-Dsafetensors_DIR={TREE}/lib/cmake/safetensors")
    tool("cmake", "--build", build)
    says(os.path.join(build, "consumer_static.exe"), dll=False)
    says(os.path.join(build, "consumer_shared.exe"), dll=True)


def again(folder):
    """Made once more in another folder, without caches: the same bytes."""
    macos.copy_sources(folder, "packaging", "tests")
    plain = {name: "" for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER")}
    tool(os.path.join(folder, "tools", "windows.sh"), cwd=folder, **plain,
         SFT_CACHE=os.environ.get("SFT_CACHE") or os.path.join(ROOT, "build", "cache"))
    second = os.path.join(folder, "build", "windows", os.path.basename(ZIP))
    if not filecmp.cmp(ZIP, second, shallow=False):
        raise world.Wrong("the two differ: %s %s" % (ZIP, shutil.copy(second, ZIP + ".again")))


# Also what the tests of the other build do with the samples.
CASES = [contents, images, own_files, same_cases.info_of_samples, same_cases.check_of_samples,
         same_cases.written_from_samples, same_cases.catalog_of_samples, pkg_config, cmake_mingw,
         cmake_zig, again]


def unpack():
    """A folder whose name has a blank."""
    if not os.path.exists(ZIP):
        raise SystemExit("zip.py: no " + os.path.relpath(ZIP, ROOT) + ": make windows")
    shutil.rmtree(HOLDS, ignore_errors=True)
    with zipfile.ZipFile(ZIP) as file:
        file.extractall(HOLDS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    rows = [("zip", one) for one in CASES if not args.names or one.__name__ in args.names]
    if not rows:
        raise SystemExit("zip.py: no case is called " + ", ".join(args.names))
    unpack()
    return run.run_rows(rows, run.Skips("zip"), verbose=args.verbose, whole=not args.names)


if __name__ == "__main__":
    sys.exit(main())
