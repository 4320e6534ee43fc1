#!/usr/bin/env python3
"""The binary interface of the stable headers: what a program built earlier relies on.

usage: tests/abi/run.py [--baseline | --freeze]

1. The stable headers against tests/abi/stable.abi.xml, by abidiff. abidw reads a library made
   of the declarations alone: those are what the compiler held src/ against, and nothing that is
   opaque gets into the baseline.
2. build/libsafetensors.so has the symbols of the baseline, and the soname of docs/abi.md.
3. The program tests/abi/program.c, built with the header of an earlier release (tests/abi/*.h),
   runs against build/libsafetensors.so, and so it does if built with the headers of today.
4. What the stable headers of an earlier release had is in the stable ones, or in the header that
   docs/abi.md tells a program to include instead.
5. What tests/abi/frozen.txt lists is there (tests/abi/frozen.py).
Each of the first three is shown to fail on an incompatible change, and to pass a compatible one.

--baseline writes the baseline anew and adds to frozen.txt what is new, --freeze stores the header of
this version. docs/abi.md says when."""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import frozen

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
BASELINE = os.path.join(HERE, "stable.abi.xml")
STABLE = ["safetensors.h", "safetensors_set.h", "safetensors_read.h", "safetensors_cast.h"]
FUNCTIONS = 130  # at most

# What a careless change does to a header, and whether a program built earlier survives it.
CHANGES = [
    ("a member in the middle of sft_tensor", False,
     r"(typedef struct sft_tensor \{[^}]*?;)", r"\1 uint32_t added;"),
    ("a member in the middle of sft_open_options", False,
     r"(typedef struct sft_open_options \{[^}]*?sft_level level;)", r"\1 uint64_t added;"),
    ("a member at the end of sft_error", False,
     r"(uint64_t reserved\[\d\];)", r"\1 uint64_t added;"),
    ("a function removed", False, r"SFT_API uint32_t sft_slice_shape\([^;]*;", ""),
    ("an argument more", False, r"(sft_tensor_aligned\()", r"\1int added, "),
    ("an enumerator's number moved", False, r"(SFT_F16),\s*SFT_BF16", r"SFT_BF16, \1"),
    ("a function of a vtable removed", False, r"void \(\*abandon\)\(void \*ctx\);", ""),
    ("an integer narrowed", False, r"uint64_t (sft_file_size\()", r"uint32_t \1"),
    ("a member at the end of sft_open_options", True,
     r"(typedef struct sft_open_options \{[^}]*)\}", r"\1 uint64_t added; }"),
    ("a member at the end of sft_tensor", True,
     r"(typedef struct sft_tensor \{[^}]*)\}", r"\1 uint64_t added; }"),
    ("a function more", True, r"(SFT_API bool sft_tensor_aligned)",
     r"SFT_API int sft_added(void); \1"),
    ("a code more", True, r"SFT_CANCELLED = 700", "SFT_CANCELLED = 700, SFT_ADDED = 701"),
]
# The same for a program: its header is what changed, the library is the one that was built.
LAYOUTS = [CHANGES[0], CHANGES[1], CHANGES[5],
           ("options without their latest member", True,
            r"const char \*beneath;([^}]*\} sft_open_options;.*?NULL, 0), \\\s*NULL \}", r"\1 }")]

results = []


def check(right, what, detail=""):
    results.append(bool(right))
    if not right:
        print(f"{what}\n{detail}".rstrip())
    return right


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def stable():
    """The stable headers as one, without comments."""
    text = ""
    for name in STABLE:
        with open(os.path.join(ROOT, "include", name), encoding="utf-8") as file:
            text += file.read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'#include "[^"]*"\n', "", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).lstrip()


def declared(text):
    """Functions of a header: each whole declaration and its name."""
    text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", text, flags=re.M)
    return [(d.strip(), re.search(r"\b(sft_\w+)\s*\(", d).group(1))
            for d in re.findall(r"\bSFT_API\b([^;{]*);", text)]


def abi_of(text, work):
    """The interface that a header promises, as abidw tells it."""
    code = text + "".join(f"\n{d.replace('SFT_NODISCARD', '')} {{ __builtin_trap(); }}"
                          for d, _ in declared(text))
    library = os.path.join(work, "promise.so")
    built = run("gcc", "-std=c11", "-w", "-g", "-gdwarf-4", "-O0", "-shared", "-fPIC", "-x", "c",
                "-", "-o", library, input=code, cwd=work)
    if built.returncode:
        sys.exit(f"the headers do not compile:\n{built.stdout}")
    told = run("abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path",
               "--no-elf-needed", "--no-architecture", "--no-parameter-names",
               "--type-id-style", "hash",
               "--out-file", library + ".xml", library)
    return (library + ".xml" if told.returncode == 0 else None), told.stdout


def compare(text, work):
    """None if programs that were built with the baseline go on working, else what differs."""
    path, why = abi_of(text, work)
    if not path:
        return why
    done = run("abidiff", "--no-added-syms", "--no-show-locs", "--suppressions",
               os.path.join(HERE, "stable.abignore"), BASELINE, path)
    return done.stdout or f"abidiff: {done.returncode}" if done.returncode else None


def changed(text, change):
    what, fine, pattern, new = change
    text, count = re.subn(pattern, new, text, count=1, flags=re.S)
    check(count == 1, f"{what}: nothing to change in the headers")
    return text


def headers(work):
    text = stable()
    why = compare(text, work)
    check(not why, "the stable headers break programs that were built earlier; if that is meant, "
                   "see docs/abi.md", why)
    for change in CHANGES:
        why = compare(changed(text, change), work)
        check(not why if change[1] else why,
              f"{change[0]}: expected {'no complaint' if change[1] else 'a complaint'}", why or "")


def library():
    path = os.path.join(BUILD, "libsafetensors.so")
    rows = run("nm", "-D", "--defined-only", path).stdout.split("\n")
    there = {row.split()[-1].split("@")[0] for row in rows if row.strip()}
    with open(BASELINE, encoding="utf-8") as file:
        wanted = set(re.findall(r"<elf-symbol name='(sft_\w+)'", file.read()))
    check(wanted, "no symbol in the baseline")
    for name in sorted(wanted):
        check(name in there, f"libsafetensors.so lacks {name}, which is stable")
    check("sft_set_open" in wanted and "sft_hash_path" not in wanted,
          "the baseline holds stable functions, and no other")


def run_program(text, work):
    with open(os.path.join(work, "safetensors_stable.h"), "w", encoding="utf-8") as file:
        file.write(text)
    program = os.path.join(work, "program")
    built = run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror",
                "-Wno-missing-field-initializers", "-I", work,
                "-I", os.path.join(ROOT, "include"),
                os.path.join(HERE, "program.c"), "-o", program,
                os.path.join(BUILD, "libsafetensors.so"), f"-Wl,-rpath,{BUILD}")
    if built.returncode:
        return False, built.stdout
    folder = tempfile.mkdtemp(dir=work)
    try:
        done = subprocess.run([program, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return False, "killed after 30 s"
    return done.returncode == 0, done.stdout.decode("utf-8", "replace") + f"exit {done.returncode}"


def programs(work):
    frozen = sorted(glob.glob(os.path.join(HERE, "*.*.*.h")))
    check(frozen, "no header of an earlier release in tests/abi")
    for path in frozen:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        right, why = run_program(text, work)
        check(right, f"a program built with {os.path.basename(path)}", why)
        for change in LAYOUTS:
            right, why = run_program(changed(text, change), work)
            check(right == change[1], f"a program with {change[0]}: expected it to "
                  f"{'run' if change[1] else 'fail'}", why)


def announced(text):
    """Functions, types, numbers and macros that a header announces."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return ({name for _, name in declared(text)}
            | set(re.findall(r"\}\s*(sft_\w+);", text))
            | set(re.findall(r"^#define (SFT_\w+)", text, re.M))
            | set(re.findall(r"^\s+(SFT_\w+)(?: = \w+)?,?[ \t]*$", text, re.M)))


def moved():
    """{header: patterns of what it has of the stable headers of earlier releases}, of docs/abi.md."""
    with open(os.path.join(ROOT, "docs", "abi.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| `#include <(safetensors_\w+\.h)>` \| ([^|]*) \|", file.read(), re.M)
    return {header: re.findall(r"`([\w*]+)`", what) for header, what in rows}


def counted():
    """docs/abi.md says how many functions are stable: few enough for a person to learn."""
    with open(os.path.join(ROOT, "docs", "abi.md"), encoding="utf-8") as file:
        told = dict(re.findall(r"^\| `(safetensors\w*\.h)` \| [^|]* \| (\d+) \|", file.read(), re.M))
    have = {}
    for name in STABLE:
        with open(os.path.join(ROOT, "include", name), encoding="utf-8") as file:
            have[name] = str(len(declared(re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S))))
    check(told == have, f"docs/abi.md tells {told} stable functions, the headers have {have}")
    total = sum(map(int, have.values()))
    check(total <= FUNCTIONS, f"{total} stable functions, {FUNCTIONS} at most")


def history(work):
    """What earlier releases promised is where docs/abi.md says, and their program is built with
    the headers it names."""
    table, now = moved(), announced(stable())
    check(len(table) > 4, "docs/abi.md does not say what moved")
    counted()
    has = {}
    for header in table:
        with open(os.path.join(ROOT, "include", header), encoding="utf-8") as file:
            has[header] = announced(file.read())
    for path in sorted(glob.glob(os.path.join(HERE, "*.*.*.h"))):
        with open(path, encoding="utf-8") as file:
            then = announced(file.read())
        for name in sorted(then - now):
            check(any(name in has[header] and any(fnmatch.fnmatchcase(name, one) for one in table[header])
                      for header in table),
                  f"{name} of {os.path.basename(path)} is no longer stable: expected a row of "
                  "docs/abi.md with the header that has it")
        for header, patterns in table.items():
            for one in patterns:
                check(fnmatch.filter(has[header] - now, one),
                      f"docs/abi.md: nothing that moved is {one} of {header}")
    text = "".join(f'#include "{name}"\n' for name in [*STABLE, *table])
    right, why = run_program(text, work)
    check(right, "the program, built with the headers of today", why)


def write_baseline(work):
    path, why = abi_of(stable(), work)
    if not path:
        sys.exit(why)
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^ +", "", file.read(), flags=re.M)
    with open(BASELINE, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{os.path.relpath(BASELINE, ROOT)}: {os.path.getsize(BASELINE)} bytes")


def freeze():
    text = stable()
    version = re.search(r'SFT_VERSION_STRING "(.+)"', text).group(1)
    path = os.path.join(HERE, version + ".h")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{os.path.relpath(path, ROOT)}: {len(text)} bytes")


def main():
    if sys.argv[1:] not in ([], ["--baseline"], ["--freeze"]):
        sys.exit("usage: tests/abi/run.py [--baseline | --freeze]")
    if sys.argv[1:] == ["--freeze"]:
        return freeze()
    tools = [t for t in ("abidw", "abidiff") if not shutil.which(t)]
    with tempfile.TemporaryDirectory(prefix="sft-abi-") as work:
        if sys.argv[1:] == ["--baseline"]:
            frozen.update()
            return write_baseline(work)
        if tools:
            print(f"{' and '.join(tools)} not found (Debian: abigail-tools; `make abi` installs "
                  "it): the headers are not compared with the baseline")
        else:
            headers(work)
        library()
        programs(work)
        history(work)
    gone = frozen.check()
    check(frozen.listed() and not gone, "\n".join(gone))
    skipped = f", {1 + len(CHANGES)} skipped" if tools else ""
    print(f"{results.count(True)} passed, {results.count(False)} failed{skipped}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
