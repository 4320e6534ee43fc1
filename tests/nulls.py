#!/usr/bin/env python3
"""What public functions do with NULL: each is called in a process of its own, with NULL for its
first argument and all that it only reads, 0 for numbers, and room for results. Functions that
close, free or abandon something return, and those whose first argument is a path refuse it. The
rest may crash: safetensors.h promises no more. docs/abi.md names the stable ones of each kind.

    tests/nulls.py [-v]     -v: say what each function did
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import exports

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
ENDS = re.compile(r"_(close|free|abandon|return)$")
ANY = {"sft_info_folder_open"}  # takes no path for no folder
DID = {0: "returned", 1: "refused", 2: "succeeded", 3: "failed"}
HEAD = """#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(const char *name) {
    int status = -1;
    wait(&status);
    printf("%s %d\\n", name, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int verdict(sft_code code) {
    return code == SFT_BAD_ARGUMENT ? 1 : code == SFT_OK ? 2 : 3;
}

int main(void) {
    struct rlimit none = { 0, 0 };
    static max_align_t room[4096];
    setrlimit(RLIMIT_CORE, &none);
"""


def declarations():
    """(name, what it returns, types of its arguments) of each public function."""
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "safetensors*.h"))):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", text, flags=re.M)
        for one in re.findall(r"\bSFT_API\b([^;{]*);", text):
            one = " ".join(one.replace("SFT_NODISCARD", "").split())
            kind, name, arguments = re.fullmatch(r"(.*?[ *])(\w+)\((.*)\)", one).groups()
            arguments = re.sub(r"\((\*\w*)\)\([^()]*\)", "*", arguments)  # callbacks
            yield name, kind.strip(), [] if arguments == "void" else arguments.split(",")


def call(name, kind, arguments):
    values = []
    for i, argument in enumerate(arguments):
        if i > 0 and "*" in argument and "const" not in argument:
            values.append("(void *)room")
        elif "*" in argument or "[" in argument:
            values.append("NULL")
        else:
            values.append("(%s){ 0 }" % re.sub(r"\w+$", "", argument).strip())
    words = f"{name}({', '.join(values)})"
    done = f"_exit(verdict({words}));" if kind == "sft_code" else f"(void){words}; _exit(0);"
    return (f"    memset(room, 0, sizeof room);\n    if (fork() == 0) {{ {done} }}\n"
            f'    report("{name}");\n')


def libraries():
    """What a static program needs besides the library, of safetensors.pc."""
    with open(os.path.join(BUILD, "safetensors.pc"), encoding="utf-8") as file:
        text = file.read()
    private = re.search(r"^Libs.private:(.*)$", text, re.M).group(1).split()
    return [*private, *(["-lz"] if re.search(r"^Requires.private:.*zlib", text, re.M) else [])]


def promised(did):
    """What is wrong with the table of docs/abi.md, which has the stable functions."""
    with open(os.path.join(ROOT, "docs", "abi.md"), encoding="utf-8") as file:
        section = file.read().split("\n## NULL\n")[1].split("\n## ")[0]
    rows = [set(re.findall(r"`(sft_\w+)`", row))
            for row in re.findall(r"^\| (`sft_.*?) \|", section, re.M)]
    stable = set(exports.declared(stable=True))
    kinds = ({name for name, _, _ in declarations() if name in stable and ENDS.search(name)},
             {name for name, _, arguments in declarations() if name in stable and is_path(arguments)})
    if len(rows) != 3:
        return ["docs/abi.md: no table of three kinds of functions"]
    return [f"docs/abi.md: {name}: the wrong row, or none"
            for row, kind in zip(rows, kinds) for name in sorted(row ^ kind)] + [
                f"docs/abi.md: {name} {did.get(name)}" for name in sorted(rows[2])
                if name not in stable or did.get(name) not in ("returned", "succeeded")]


def is_path(arguments):
    return bool(arguments) and bool(re.match(r"\s*const char \*(path|folder)$", arguments[0]))


def main():
    functions = list(declarations())
    headers = sorted(os.path.basename(path)
                     for path in glob.glob(os.path.join(ROOT, "include", "safetensors_*.h"))
                     if not path.endswith("_prefix.h"))
    text = ("#define _GNU_SOURCE\n" + "".join(f'#include "{name}"\n' for name in headers) + HEAD
            + "".join(call(*function) for function in functions) + "    return 0;\n}\n")
    with tempfile.TemporaryDirectory() as work:
        source, program = os.path.join(work, "nulls.c"), os.path.join(work, "nulls")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["cc", "-std=c11", "-O1", "-w", "-I", os.path.join(ROOT, "include"),
                               source, os.path.join(BUILD, "libsafetensors.a"), *libraries(), "-lm",
                               "-o", program], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{done.stderr[-3000:]}\n0 passed, 1 failed")
        done = subprocess.run([program], capture_output=True, text=True, check=False, cwd=work)
    did = {name: DID.get(int(status), "died")
           for name, status in re.findall(r"^(sft_\w+) (-?\d+)$", done.stdout, re.M)}
    bad = []
    for name, kind, arguments in functions:
        what = did.get(name, "was not called")
        path = is_path(arguments)
        if "-v" in sys.argv:
            print(f"{name} {what}")
        refuses = path and kind == "sft_code" and name not in ANY
        if what == "was not called" or what == "died" and (ENDS.search(name) or path) \
                or refuses and what != "refused":
            bad.append(f"{name} {what}")
    bad += promised(did)
    print("\n".join(bad))
    print(f"{len(functions) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
