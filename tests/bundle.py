#!/usr/bin/env python3
"""The two-file form: the small one, by gcc and clang without a warning, runs, and keeps to its
lines and its size; with each part, and with all of them, it compiles. The unit tests run against
the largest (unit-bundle)."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "tests", "parts", "program.c")
PARTS = ["edit", "set", "convert", "read", "stats"]
LINES, TEXT = 14000, 160  # of the small one; KB of 1000 bytes, at -Os
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
MODEL = struct.pack("<Q", len(HEADER)) + HEADER + bytes(8)
passed = failed = 0


def check(ok, what, text=""):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print(f"{what}\n{text[-3000:]}")
    return ok


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def bundle(folder, *options):
    """Lines of both files, or None."""
    code, text = run(sys.executable, os.path.join(ROOT, "tools", "bundle.py"), folder, *options)
    if not check(not code, f"bundle.py {' '.join(options)}", text):
        return None
    return sum(len(read(folder, name).splitlines()) for name in ("safetensors.h", "safetensors.c"))


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def test_small(work):
    folder = os.path.join(work, "small")
    lines = bundle(folder)
    if not lines:
        return
    print(f"small: {lines} lines, at most {LINES}")
    check(lines <= LINES, f"small: {lines} lines, {LINES} at most")
    check("sft_edit_apply" not in read(folder, "safetensors.h"), "small: announces edits")
    check("CreateFileW" not in read(folder, "safetensors.c"), "small: has another host's files")
    source, unit = os.path.join(folder, "safetensors.c"), os.path.join(work, "safetensors.o")
    model, program = os.path.join(work, "model.safetensors"), os.path.join(work, "program")
    with open(model, "wb") as file:
        file.write(MODEL)
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        code, text = run(compiler, *WARNINGS, "-Os", "-c", source, "-o", unit)
        if not check(not code, f"small: {compiler}", text):
            continue
        size = int(run("size", unit)[1].splitlines()[1].split()[0])
        print(f"small: {compiler} -Os: {size / 1000:.0f} KB of text, at most {TEXT}")
        check(size <= TEXT * 1000, f"small: {compiler}: {size} bytes of text, {TEXT} KB at most")
        code, text = run(compiler, *WARNINGS, "-I", folder, PROGRAM, unit, "-o", program,
                         "-pthread")
        check(not code, f"small: {compiler} links", text)
        code, text = run(program, model)
        check(not code and text == "valid\nw\n", f"small: {compiler}: says", text)


def test_parts(work):
    for options in (*(["--with", part] for part in PARTS),
                    ["--with", ",".join(PARTS), "--all-hosts"]):
        folder = os.path.join(work, "parts")
        if bundle(folder, *options):
            code, text = run("cc", *WARNINGS, "-fsyntax-only",
                             os.path.join(folder, "safetensors.c"))
            check(not code, " ".join(options), text)
    code, text = run(sys.executable, os.path.join(ROOT, "tools", "bundle.py"), work, "--with",
                     "sets")
    check(code and "--with takes edit, set, convert, read, stats, not sets" in text,
          "--with sets", text)


def main():
    with tempfile.TemporaryDirectory() as work:
        test_small(work)
        test_parts(work)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
