#!/usr/bin/env python3
"""The core by every compiler, without a warning: the two-file form with all hosts by gcc and clang
as C11 and C99, and by zig (tools/zig_env.sh) for seven systems; what this machine can run opens a
file. For 64-bit ones also the library, by CMake.

    tests/vendoring/compilers.py [TARGET...]     make compilers
"""
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ZIG = os.path.join(ROOT, "build", "zig", "cc")
PROGRAM = os.path.join(ROOT, "tests", "parts", "program.c")
STRICT = ["-Wall", "-Wextra", "-Werror"]
# C99 lacks _Atomic, _Generic and _Static_assert, which these compilers have all the same.
C99 = {"gcc": ["-std=c99"], "clang": ["-std=c99", "-pedantic", "-Wno-c11-extensions"]}
TARGETS = ["x86_64-linux-musl", "x86-linux-musl", "aarch64-linux-musl", "x86_64-windows-gnu",
           "aarch64-windows-gnu", "aarch64-macos", "wasm32-wasi"]
BY_CMAKE = ["x86_64-linux-musl", "aarch64-linux-musl", "x86_64-windows-gnu", "aarch64-macos"]
HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
MODEL = struct.pack("<Q", len(HEADER)) + HEADER + bytes(8)
NODE = """import { WASI } from 'node:wasi';
import fs from 'node:fs';
const wasi = new WASI({ version: 'preview1', args: ['p', '/m/model.safetensors'],
                        preopens: { '/m': process.argv[3] } });
const made = await WebAssembly.instantiate(fs.readFileSync(process.argv[2]),
                                           wasi.getImportObject());
process.exit(wasi.start(made.instance));
"""
passed = failed = 0


def check(ok, what, text=""):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    print(f"{'ok    ' if ok else 'FAILED'} {what}", flush=True)
    if not ok:
        print(text[-3000:])
    return ok


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def runner(target, work):
    """The words before a program of that target, or None if it cannot be run here."""
    if target == "wasm32-wasi":
        script = os.path.join(work, "run.mjs")
        with open(script, "w", encoding="utf-8") as file:
            file.write(NODE)
        return ["node", "--no-warnings", script] if shutil.which("node") else None
    processor, system = target.split("-")[:2]
    here = platform.machine()
    if system == "linux" and (processor == here or (processor, here) == ("x86", "x86_64")):
        return []
    if system == "linux" and shutil.which("qemu-" + processor):
        return ["qemu-" + processor]
    return None


def try_one(what, work, compiler, words, target=None):
    source = os.path.join(work, "safetensors.c")
    program = os.path.join(work, "program")
    threads = [] if target == "wasm32-wasi" else ["-pthread"]
    code, text = run(*compiler, *words, *STRICT, "-O1", "-I", work, PROGRAM, source, "-o", program,
                     *(["-lntdll"] if target and "windows" in target else threads))
    if not check(not code, what, text):
        return
    start = runner(target, work) if target else []
    if start is None:
        return
    model = os.path.join(work, "model.safetensors")
    code, text = run(*start, program, work if target == "wasm32-wasi" else model)
    check(not code and text == "valid\nw\n", f"{what}: runs", text)


def try_cmake(target, work):
    built = os.path.join(work, "cmake-" + target)
    code, text = run("cmake", "-S", ROOT, "-B", built, "-G", "Ninja", "-DSFT_CORE_ONLY=ON",
                     "-DSFT_COMMAND=OFF", "-DSFT_TESTS=OFF", "-DSFT_SHARED=OFF", "-DSFT_WERROR=ON",
                     "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "zig.cmake"),
                     "-DSFT_ZIG_TARGET=" + target)
    if not code:
        code, text = run("cmake", "--build", built)
    check(not code, f"{target}: the library, by CMake", text)


def main():
    chosen = sys.argv[1:] or ["gcc", "clang", *TARGETS]
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "model.safetensors"), "wb") as file:
            file.write(MODEL)
        code, text = run(sys.executable, os.path.join(ROOT, "tools", "bundle.py"), work,
                         "--all-hosts")
        check(not code, "bundle.py", text)
        for name in chosen:
            if name not in TARGETS:
                if check(shutil.which(name), f"{name} is here"):
                    try_one(f"{name}, C11", work, [name], ["-std=c11", "-pedantic"])
                    try_one(f"{name}, C99", work, [name], C99[name])
                continue
            if check(os.path.exists(ZIG), "zig is here: tools/zig_env.sh"):
                try_one(name, work, [ZIG, "-target", name], ["-std=c11"], name)
                if name in BY_CMAKE:
                    try_cmake(name, work)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
