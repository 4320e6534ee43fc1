#!/usr/bin/env python3
"""Builds use.cpp and the programs of docs/cpp.md against the static library and runs them: C++17,
20 and 23, with exceptions and without, every warning an error, by each of g++ and clang++ that is
there.

    tests/cpp/run.py [--all]     without --all, three of the twelve
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow",
            "-Werror"]
FEW = {("g++", "17", True), ("clang++", "17", False), ("g++", "2b", False)}
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def libraries():
    """What a static program needs besides the library, of safetensors.pc."""
    with open(os.path.join(BUILD, "safetensors.pc"), encoding="utf-8") as file:
        text = file.read()
    private = re.search(r"^Libs.private:(.*)$", text, re.M).group(1).split()
    return [*private, *(["-lz"] if re.search(r"^Requires.private:.*zlib", text, re.M) else [])]


def build(compiler, standard, throws, source, program):
    words = [compiler, f"-std=c++{standard}", *WARNINGS, *([] if throws else ["-fno-exceptions"]),
             "-I", os.path.join(ROOT, "include"), source,
             os.path.join(BUILD, "libsafetensors.a"), *libraries(), "-lm", "-o", program]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def try_document(compiler, folder):
    """The blocks of docs/cpp.md, the first of which is a program."""
    with open(os.path.join(ROOT, "docs", "cpp.md"), encoding="utf-8") as file:
        program, *others = re.findall(r"^```cpp\n(.*?)^```$", file.read(), re.M | re.S)
    source, made = os.path.join(folder, "document.cpp"), os.path.join(folder, "document")
    with open(source, "w", encoding="utf-8") as file:
        file.write(program + "".join(others))
    built = build(compiler, "17", True, source, made)
    if built.returncode:
        return 0, 1, built.stderr
    done = subprocess.run([made, os.path.join(folder, "a.safetensors")], capture_output=True,
                          text=True, check=False)
    good = done.stdout == "fc.weight F32 6\n6 pt\n"
    return int(good), int(not good), done.stdout + done.stderr


def try_one(compiler, standard, throws, folder):
    program = os.path.join(folder, "use")
    built = build(compiler, standard, throws, os.path.join(HERE, "use.cpp"), program)
    if built.returncode:
        return 0, 1, built.stderr
    scratch = os.path.join(folder, "files")
    shutil.rmtree(scratch, ignore_errors=True)
    os.mkdir(scratch)
    done = subprocess.run([program, scratch], capture_output=True, text=True, check=False)
    told = CLOSING.search(done.stdout)
    if not told or done.returncode not in (0, 1):
        return 0, 1, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return int(told[1]), int(told[2]), done.stdout


def main():
    passed = failed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in "g++", "clang++":
            for standard in "17", "20", "2b":
                for throws in True, False:
                    if not shutil.which(compiler):
                        continue
                    if "--all" not in sys.argv and (compiler, standard, throws) not in FEW:
                        continue
                    good, bad, text = try_one(compiler, standard, throws, folder)
                    passed, failed, tried = passed + good, failed + bad, tried + 1
                    if bad:
                        print(f"{compiler} -std=c++{standard}, exceptions: {throws}\n{text}")
        if shutil.which("g++"):
            good, bad, text = try_document("g++", folder)
            passed, failed = passed + good, failed + bad
            if bad:
                print("docs/cpp.md\n" + text)
    if not tried:
        print("no C++ compiler")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
