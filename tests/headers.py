#!/usr/bin/env python3
"""Each header compiles alone: public ones as C11 and C++17, ours as C11."""
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-Iinclude"]
LANGUAGES = {"c11": ("c", ["gcc", "clang"]), "c++17": ("c++", ["g++", "clang++"])}


def compiles(compiler, language, standard, header, more):
    text = f'#include "{header}"\n#include "{header}"\nint sft_header_alone;\n'
    done = subprocess.run([compiler, f"-std={standard}", "-x", language, *FLAGS, *more, "-"],
                          input=text.encode(), cwd=ROOT, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"{header} as {standard} with {compiler}:\n{done.stderr.decode()}")
    return done.returncode == 0


def main():
    os.chdir(ROOT)
    jobs = []
    for path in sorted(glob.glob("include/*.h") + glob.glob("include/*.hpp")):
        for standard, (language, compilers) in LANGUAGES.items():
            if language == "c++" or path.endswith(".h"):
                jobs += [(c, language, standard, path[len("include/"):], []) for c in compilers]
    for path in sorted(glob.glob("src/*/*.h")):
        jobs.append(("gcc", "c", "c11", path[len("src/"):], ["-Isrc"]))
    totals = {True: 0, False: 0, None: 0}
    for job in jobs:
        totals[compiles(*job) if shutil.which(job[0]) else None] += 1
    print(f"{totals[True]} passed, {totals[False]} failed, {totals[None]} skipped")
    return 1 if totals[False] else 0


if __name__ == "__main__":
    sys.exit(main())
