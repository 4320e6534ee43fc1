#!/usr/bin/env python3
"""The library in parts: static programs link no more than they use, by the sizes below; the core
alone, and the core with some of its parts, build, install and run; options that contradict one
another are refused. Sizes are of text in KB (1000 bytes): -Os, a section for each function, not
position-independent, stripped."""
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
PROGRAM = os.path.join(ROOT, "tests", "parts", "program.c")
ALL = ["EDIT", "SET", "STATS", "READ", "HASH", "CONVERT", "LABEL", "FORMATS", "REMOTE", "DATASET",
       "LAYOUT", "ADAPTER", "MERGE"]
CORE_HEADERS = ["", ".hpp", "codes", "io", "prefix", "scan", "tree"]
# what a program does, besides opening, checking and listing; its limit
# in KB of text; what is known of models, which is text, too, is counted for itself.
LIMITS = [([], 150), (["HASH"], 200), (["HASH", "LABEL"], 500)]
RECORDS_LIMITS = 355, 170 # the text; what was read of it when the library was built
HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
MODEL = struct.pack("<Q", len(HEADER)) + HEADER + bytes(8)
passed = failed = 0


def check(ok, what, text=""):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print(f"{what}\n{text}")
    return ok


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def configure(folder, parts, *more):
    return run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=MinSizeRel",
               "-DSFT_WERROR=ON", "-DSFT_COMMAND=OFF", *more,
               *(f"-DSFT_WITH_{part}={'ON' if part in parts else 'OFF'}" for part in ALL))


def build(name, parts):
    """The library with some parts, and where it is installed."""
    folder = os.path.join(BUILD, "parts", name)
    prefix = os.path.join(folder, "installed")
    code, text = configure(folder, parts)
    if not code:
        code, text = run("cmake", "--build", folder)
    shutil.rmtree(prefix, ignore_errors=True)
    if not code:
        code, text = run("cmake", "--install", folder, "--prefix", prefix)
    return prefix if check(not code, f"{name}: does not build", text[-3000:]) else None


def library_of(prefix):
    return next(os.path.join(folder, name) for folder, _, names in os.walk(prefix)
                for name in names if name == "libsafetensors.a")


def records_size(prefix):
    """Bytes of the model records in the library: their text, and what was read of it."""
    lines = run("size", library_of(prefix))[1].splitlines()
    return [next(int(line.split()[0]) for line in lines if f"\t{name}.c.o " in line)
            for name in ("records", "records_tables")]


def link(prefix, defined, program):
    library = library_of(prefix)
    return run(os.environ.get("CC", "cc"), "-std=c11", "-Os", "-ffunction-sections", "-no-pie",
               "-Wall", "-Wextra", "-Werror", *(f"-DPART_{part}" for part in defined),
               "-I" + os.path.join(prefix, "include"), PROGRAM, library, "-o", program,
               "-Wl,--gc-sections", "-s", "-pthread", "-ldl", *zlib(prefix))


def zlib(prefix):
    """-lz if the library says that it uses it."""
    for folder, _, names in os.walk(prefix):
        if "safetensors.pc" in names:
            with open(os.path.join(folder, "safetensors.pc"), encoding="utf-8") as file:
                return ["-lz"] if "-lz" in file.read() else []
    return []


def headers(prefix):
    return sorted(name.removeprefix("safetensors").removesuffix(".h").lstrip("_")
                  for name in os.listdir(os.path.join(prefix, "include")))


def test_sizes(work, model):
    prefix = build("small", ["EDIT", "SET", "HASH", "LABEL"])
    if not prefix:
        return
    found = headers(prefix)
    check(found == sorted([*CORE_HEADERS, "edit", "hash", "info", "set", "index", "report", "diff"]),
          f"small: installs {found}")
    for parts, limit in LIMITS:
        name = " + ".join(["open", *parts]).lower()
        program = os.path.join(work, "program")
        code, text = link(prefix, parts, program)
        if not check(not code, f"{name}: does not link", text[-3000:]):
            continue
        size = int(run("size", program)[1].splitlines()[1].split()[0])
        if "LABEL" in parts:
            known = records_size(prefix)
            for bytes_, limit_ in zip(known, RECORDS_LIMITS):
                check(bytes_ <= limit_ * 1000, f"{bytes_} bytes of records, {limit_} KB at most")
            size -= sum(known)
        print(f"{name:20} {size / 1000:6.0f} KB of text, at most {limit}")
        check(size <= limit * 1000, f"{name}: {size} bytes of text, {limit} KB at most")
        code, text = run(program, model)
        said = text.splitlines()
        check(not code and said[:2] == ["valid", "w"], f"{name}: says", text)
        if "HASH" in parts:
            check(hashlib.sha256(MODEL).hexdigest() in said, f"{name}: says", text)


def test_core(work, model):
    prefix = build("core", [])
    if not prefix:
        return
    found = headers(prefix)
    check(found == CORE_HEADERS, f"core: installs {found}")
    program = os.path.join(work, "program")
    code, text = link(prefix, [], program)
    if not check(not code, "core: does not link", text):
        return
    code, text = run(program, model)
    check(not code and text == "valid\nw\n", "core: says", text)
    # Nobody can say whether a journal is one, so it is taken for one.
    journal = os.path.join(work, ".model.safetensors.sft-journal")
    with open(journal, "wb") as file:
        file.write(b"x")
    code, text = run(program, model)
    check(code and text == "edit_interrupted\n" * 2, "core: beside a journal it says", text)
    os.remove(journal)


def test_refused(work):
    for parts, wanted in ((["HASH"], "SFT_WITH_HASH=ON needs SFT_WITH_SET=ON"),
                          (["SET", "LABEL"], "SFT_WITH_LABEL=ON needs SFT_WITH_HASH=ON"),
                          (["SET", "FORMATS"], "SFT_WITH_FORMATS=ON needs SFT_WITH_CONVERT=ON")):
        code, text = configure(os.path.join(work, "refused"), parts)
        check(code and wanted in " ".join(text.split()), f"refused: {wanted}", text)
    folder, wanted = os.path.join(work, "core"), "SFT_CORE_ONLY=ON leaves out every part"
    code, text = configure(folder, ["SET"], "-DSFT_CORE_ONLY=ON")
    check(code and wanted in " ".join(text.split()), f"refused: {wanted}", text)
    code, text = run("cmake", "-S", ROOT, "-B", folder + "-later", "-G", "Ninja",
                     "-DSFT_COMMAND=OFF")
    if not code:  # all parts are on by themselves: that is no wish
        code, text = run("cmake", "-DSFT_CORE_ONLY=ON", folder + "-later")
    check(not code, "SFT_CORE_ONLY=ON is taken for a build that had parts", text)


def main():
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "model.safetensors")
        with open(model, "wb") as file:
            file.write(MODEL)
        test_refused(work)
        test_core(work, model)
        test_sizes(work, model)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
