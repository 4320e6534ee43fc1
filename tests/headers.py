#!/usr/bin/env python3
"""Each header compiles alone: public ones as C11 and C++17, ours as C11. Options structs are
what src/core/base/options.h says, and tests/unit/core/base/test_options.c has a row for each function that
takes one."""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-Iinclude"]
MINGW = "x86_64-w64-mingw32-gcc-win32"
LANGUAGES = {"c11": ("c", ["gcc", "clang"]), "c++17": ("c++", ["g++", "clang++"])}


def compiles(compiler, language, standard, header, more):
    text = f'#include "{header}"\n#include "{header}"\nint sft_header_alone;\n'
    done = subprocess.run([compiler, f"-std={standard}", "-x", language, *FLAGS, *more, "-"],
                          input=text.encode(), cwd=ROOT, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"{header} as {standard} with {compiler}:\n{done.stderr.decode()}")
    return done.returncode == 0


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def used(types, text):
    return {t for t in types if re.search(rf"\b{t}\b", text)}


def sized(public):
    """Tables of functions, whose members have parentheses."""
    return [(t, body) for body, t in re.findall(
        r"typedef struct sft_\w+ \{([^{}]*)\} (sft_\w+_vtable);", public)]


def options():
    """What is wrong with options structs, and how many checks were made."""
    public = "\n".join(text_of(p) for p in sorted(glob.glob("include/*.h")))
    bodies = dict(reversed(m) for m in re.findall(
        r"typedef struct sft_\w+ \{([^{}]*)\} (sft_\w+);", public))
    tables = {t for t in bodies if t.endswith("_vtable")}
    types = {t for t, body in bodies.items() if re.match(r"\s*size_t size;", body)} - tables
    bad = [f"{t}: expected `size_t size` as its first member" for t, body in sized(public)
           if not re.match(r"\s*size_t size;", body)]
    bad += [f"{t}: expected `size_t size` as its first member" for t in bodies
           if t.endswith("_options") and t not in types]
    nested = {t: used(types, bodies[t]) for t in types}
    for t, body in bodies.items():
        bad += [f"{t}: expected a pointer to const, found {member.strip()}"
                for member in body.split(";") if used(types, member)
                and not re.match(r"\s*const sft_\w+ \*\w+$", member)]
    wanted = set()
    for name, arguments in re.findall(r"\bSFT_API\b[^;{(]*?\b(sft_\w+)\s*\(([^;{]*)\);", public):
        for argument in arguments.split(","):
            for t in used(types, argument):
                if not re.match(r"\s*const sft_\w+ \*\w+$", argument):
                    bad.append(f"{name}: expected `const {t} *`, found {argument.strip()}")
                wanted |= {(name, t)} | {(name, n) for n in nested[t]}
    # Of these options only what is not the plan's is looked at, as the header says.
    wanted -= {("sft_conversion_save_set", "sft_plan_options"),
               ("sft_adapter_merge_save_set", "sft_plan_options"),
               ("sft_layout_conversion_save_folder", "sft_plan_options")}
    rows = re.findall(r"^    ROW\((\w+), (\w+), \w+\),$", text_of("tests/unit/core/base/test_options.c"), re.M)
    bad += [f"no row of {n} with {t} in tests/unit/core/base/test_options.c" for n, t in wanted - set(rows)]
    bad += [f"tests/unit/core/base/test_options.c: {n} takes no {t}" for n, t in set(rows) - wanted]
    ours = "\n".join(text_of(p) for p in sorted(glob.glob("src/**/*.c", recursive=True)))
    bad += [f"{t}: no SFTI_OPTIONS_TAKE in src" for t in types
            if not re.search(rf"SFTI_OPTIONS_TAKE\(\w+, {t},", ours)]
    print("".join(f"{line}\n" for line in sorted(bad)), end="")
    return len(wanted) + 2 * len(types), len(bad)


STABLE = ["safetensors.h", "safetensors_cast.h", "safetensors_read.h", "safetensors_set.h"]
PREFIX = "safetensors_prefix.h"  # announces nothing of its own


def promises():
    """What is wrong with what headers say of themselves, and how many things were looked at."""
    bad, looked = [], 0
    info = text_of("src/core/base/version.c")
    told = {word: set(re.findall(r"safetensors\w*\.h", "".join(re.findall(
        rf'"{word}: ((?:[^;"\\]|"\s+")*)', info)))) for word in ("stable", "experimental")}
    for path in sorted(glob.glob("include/*.h")):
        name = os.path.basename(path)
        if name == PREFIX:
            continue
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        opening, text = whole[:whole.index("*/")], text_of(path)
        macro = f"SFT_EXPERIMENTAL_{name[len('safetensors_'):-2].upper()}"
        stable = name in STABLE
        rules = [
            ("expected \"STABLE\" or \"EXPERIMENTAL\" in its first comment",
             ("STABLE" in opening, "EXPERIMENTAL" in opening) == (stable, not stable)),
            (f"expected {macro} in an experimental header only",
             (f"#define {macro} 1" in text, macro in opening) == (not stable, not stable)),
            ("expected it in sft_build_info()",
             (name in told["stable"], name in told["experimental"]) == (stable, not stable))]
        for other in re.findall(r'#include "([^"]+)"', text):
            rules.append((f"a stable header needs {other}", not stable or other in [*STABLE, PREFIX]))
        looked += len(rules)
        bad += [f"{name}: {what}" for what, right in rules if not right]
        # Comment and declaration: without a comment of its own, @since is that of the group, which
        # a blank line ends.
        for group in re.split(r"\n(?=\n)", whole):
            for own, function in re.findall(
                    r"(?:^(/\*(?:(?!\*/).)*\*/)\s*)?\bSFT_API\b[^;{(]*?\b(sft_\w+)\s*\(", group,
                    flags=re.M | re.S):
                looked += 1
                if "@since 0." not in (own or group):
                    bad.append(f"{name}: {function} has no @since")
        # A struct that callers allocate keeps its size, or begins with it.
        for comment, body, t in re.findall(
                r"(/\*(?:(?!\*/).)*\*/)?\s*typedef struct sft_\w+ \{([^{}]*)\} (sft_\w+);", whole,
                flags=re.S):
            looked += 1
            if stable and not re.match(r"\s*size_t size;", body) \
                    and not re.search(r"[Nn]ever\s+(\*\s+)?grows|library\s+(\*\s+)?only", comment):
                bad.append(f"{name}: {t} does not say whether it may grow")
    print("".join(f"{line}\n" for line in bad), end="")
    return looked, len(bad)


def main():
    os.chdir(ROOT)
    jobs = []
    for path in sorted(glob.glob("include/*.h") + glob.glob("include/*.hpp")):
        for standard, (language, compilers) in LANGUAGES.items():
            if language == "c++" or path.endswith(".h"):
                jobs += [(c, language, standard, path[len("include/"):], []) for c in compilers]
    for path in sorted(glob.glob("src/**/*.h", recursive=True)):
        compiler = MINGW if "/os_win32" in path else "gcc"
        jobs.append((compiler, "c", "c11", path[len("src/"):],
                     ["-Isrc", "-Isrc/core", "-Isrc/model"]))
    totals = {True: 0, False: 0, None: 0}
    for job in jobs:
        totals[compiles(*job) if shutil.which(job[0]) else None] += 1
    for looked, wrong in (options(), promises()):
        totals[True] += looked - wrong
        totals[False] += wrong
    print(f"{totals[True]} passed, {totals[False]} failed, {totals[None]} skipped")
    return 1 if totals[False] else 0


if __name__ == "__main__":
    sys.exit(main())
