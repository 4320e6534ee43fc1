#!/usr/bin/env python3
"""Does the corpus notice when a check of the validator is removed?

Every place that refuses a file with the code of a rule is disabled in turn: its condition
becomes false, or its call is answered as if all were well. A mutant that no file of the
corpus tells from the real library is a failure. All mutants are in one program, which
takes the number of the one to be from the environment, so that nothing is built twice.

    mutate.py [--list] [--keep DIR] [-v]        needs build/libsafetensors.a (SFT_BUILD)
"""
import argparse
import concurrent.futures
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "corpus"))
import driver
import make

# Where checks are made, and calls that report a failure: what they return when there is none; None:
# the same call with SFT_OK for the code.
FILES = ["src/core/format/header.c", "src/core/format/parser.c", "src/core/format/entry.c",
         "src/core/format/model.c", "src/core/format/dtype.c", "src/core/base/json_lex.h", "src/core/base/json.c"]
# What the driver runs of them: the sources in which macros and inline functions are mutated, too.
REACHED = ["src/core", "src/model/set"]
CALLS = {"sfti_fail": "SFT_OK", "sfti_fail_byte": "SFT_OK", "sfti_fail_at": "SFT_OK",
         "sfti_fail_tensor": "SFT_OK", "sfti_report_at": "true", "lex_failed": "true", "sfti_lex_fail": "true",
         "entry_fail": "true", "entry_from_level": "true", "pass_value": None,
         "report_tensor": "true", "json_wrong": "SFTI_JSON_NULL"}
RULES = {"SFT_" + code.upper() for code in make.RULES.values() if not code.startswith("index_")}

# Checks that no file can show, each with the reason.
UNSEEN = []

PRELUDE = "extern int sft_mutant;\n#define SFT_MUTANT(n) (sft_mutant == (n))\n"
SWITCH = """#include <stdlib.h>
int sft_mutant;
__attribute__((constructor)) static void choose_mutant(void) {
    const char *text = getenv("SFT_MUTANT");
    for (; text && *text >= '0' && *text <= '9'; text++)
        sft_mutant = sft_mutant * 10 + (*text - '0');
}
"""


class Mutant:
    def __init__(self, number, path, line, code, text):
        self.number, self.path, self.line, self.code, self.text = number, path, line, code, text

    def __str__(self):
        return "%s:%d %s: %s" % (self.path, self.line, self.code, self.text)


def closing(text, at):
    """Position after the bracket that closes the one at `at`."""
    depth, quote = 0, None
    while True:
        ch = text[at]
        if quote:
            if ch == "\\":
                at += 1
            elif ch == quote:
                quote = None
        elif ch in "\"'":
            quote = ch
        elif ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1


def blank(text):
    """Comments and literals blanked, every position kept."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', spaces, text, flags=re.S)


def statement_start(bare, at):
    """Where the statement that holds `at` begins: past the last ; { } or label."""
    depth = 0
    for i in range(at - 1, -1, -1):
        ch = bare[i]
        depth += (ch == ")") - (ch == "(")
        if depth <= 0 and ch in ";{}":
            return i + 1
        if depth == 0 and ch == ":" and re.search(r"(?:default|case [\w']+)\s*$", bare[:i]):
            return i + 1
    return 0


def if_condition(bare, begin, end):
    """(begin, end) of the condition of the if that stands at the statement's begin."""
    found = re.compile(r"\s*(?:else\s+)?if\s*\(").match(bare, begin)
    if not found:
        return None
    close = closing(bare, found.end() - 1)
    return (found.end(), close - 1) if close <= end else None


def block_condition(bare, at):
    """The same for the if whose block holds `at`, if that is the innermost block."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (bare[i] == "}") - (bare[i] == "{")
        if depth < 0:
            start = statement_start(bare, i)
            found = if_condition(bare, start, i)
            return found if found and not bare[found[1] + 1:i].strip() else None
    return None


def result_of_function(bare, at):
    heads = re.findall(r"^(?:static )?(?:inline )?(bool|sft_code|sfti_json_type)\s+\w+\(",
                       bare[:at], re.M)
    return {"bool": "true", "sft_code": "SFT_OK"}.get(heads[-1] if heads else "", "0")


def sites(bare):
    """(begin, end, name) of each call with the code of a rule."""
    for found in re.finditer(r"(?<![\w.>])(%s)\s*\(" % "|".join(CALLS), bare):
        end = closing(bare, found.end() - 1)
        codes = [c for c in re.findall(r"\bSFT_[A-Z0-9_]+\b", bare[found.end():end]) if c in RULES]
        declared = re.search(r"(?:bool|sft_code|sfti_json_type)\s+$", bare[:found.start()])
        if codes and not declared:
            yield found.start(), end, found.group(1), codes


def switches(numbers, choice):
    """The condition under which one of a site's mutants is on."""
    if len(numbers) == 1:
        return "SFT_MUTANT(%d)" % numbers[0]
    return "((SFT_MUTANT(%d) && (%s)) || (SFT_MUTANT(%d) && !(%s)))" % (
        numbers[0], choice, numbers[1], choice)


def mutate(path, text, first):
    """The text with all its mutants, and what they are."""
    bare, edits, found = blank(text), [], []
    for begin, end, name, codes in sites(bare):
        choice = re.search(r"(\w+)\s*\?\s*SFT_\w+\s*:\s*SFT_", bare[begin:end])
        numbers = []
        for code in codes[:2 if choice else 1]:
            numbers.append(first + len(found))
            line = text.count("\n", 0, begin) + 1
            found.append(Mutant(numbers[-1], path, line, code,
                                " ".join(text[begin:end].split())[:90]))
        on = switches(numbers, choice and choice.group(1))
        start = statement_start(bare, begin)
        condition = if_condition(bare, start, begin)
        lonely = not bare[start:begin].strip()
        if not condition and lonely:
            condition = block_condition(bare, begin)
        if CALLS[name] is None:
            instead = re.sub(r"\b(?:%s)\b" % "|".join(codes), "SFT_OK", text[begin:end])
            edits.append((begin, "(%s ? %s : " % (on, instead)))
            edits.append((end, ")"))
        elif condition and not choice:
            edits.append((condition[0], "!%s && (" % on))
            edits.append((condition[1], ")"))
        elif lonely:
            edits.append((begin, "if (%s) return %s; " % (on, result_of_function(bare, begin))))
        else:
            edits.append((begin, "(%s ? %s : " % (on, CALLS[name])))
            edits.append((end, ")"))
        whole = text[statement_start(bare, begin):end]
        for mutant in found[-len(numbers):]:
            mutant.statement = " ".join(whole.split())
    for at, more in sorted(edits, key=lambda e: -e[0]):
        text = text[:at] + more + text[at:]
    return text, found


def prepare(folder):
    """A copy of the sources with all mutants in; the mutants."""
    found = []
    for part in ("src", "include"):
        shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
    for path in FILES:
        with open(os.path.join(folder, path), encoding="utf-8") as f:
            text, more = mutate(path, f.read(), 1 + len(found))
        found += more
        with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
            f.write(text)
    with open(os.path.join(folder, "mutant.h"), "w") as f:
        f.write(PRELUDE)
    with open(os.path.join(folder, "mutant.c"), "w") as f:
        f.write(SWITCH)
    return found


def build(folder):
    """The driver with all mutants, of which the sources of REACHED are compiled; the rest is as in
    the library. Two compilers at a time."""
    sources = ["mutant.c", os.path.join(ROOT, "tests", "tools", "verdict.c")]
    for reached in REACHED:
        for top, _, names in os.walk(os.path.join(folder, reached)):
            sources += [os.path.relpath(os.path.join(top, name), folder)
                        for name in names
                        if name.endswith(".c")
                        and not name.startswith(("os_win32", "os_macos", "os_wasi"))]
    compiler = os.environ.get("CC", "cc")
    base = [compiler, "-std=c11", "-O1", "-w", "-Iinclude", "-Isrc", "-Isrc/core", "-Isrc/model",
            "-include", "mutant.h", "-c"]

    def one(job):
        number, source = job
        out = "%d.o" % number
        done = subprocess.run(base + [source, "-o", out], cwd=folder, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit("%s does not compile:\n%s" % (source, done.stderr.decode()))
        return out

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(one, enumerate(sources)))
    library = os.path.join(BUILD, "libsafetensors.a")
    subprocess.run([compiler, *objects, library, "-o", "verdict", "-lpthread", "-lm", "-ldl"],
                   cwd=folder, check=True)
    return os.path.join(folder, "verdict")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outputs(program, mutant, records, sets):
    """All that the driver says of the corpus; a crash or a hang is an answer too."""
    env = dict(os.environ, SFT_MUTANT=str(mutant))
    said = []
    for options, data in ((["--scan"], records), (["--legacy"], records), (["--set"] + sets, b"")):
        try:
            done = subprocess.run([program] + options, input=data, env=env, timeout=5,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  preexec_fn=limits)
            said.append((done.returncode, done.stdout))
        except subprocess.TimeoutExpired:
            said.append(("hangs", b""))
    return said


def reason_unseen(mutant):
    return next((why for what, why in UNSEEN if re.search(what, mutant.statement)), None)


def changed(real, other):
    """How many lines differ, or how the run ended."""
    words = []
    for a, b in zip(real, other):
        if a[0] != b[0]:
            words.append("ends with %s" % b[0])
        else:
            lines = sum(x != y for x, y in zip(a[1].split(b"\n"), b[1].split(b"\n")))
            words.append("%d lines" % lines)
    return ", ".join(words)


def load():
    with open(os.path.join(driver.HERE, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    records = []
    for row in manifest["files"]:
        with open(os.path.join(driver.HERE, row["file"]), "rb") as f:
            records.append(f.read())
    return driver.pack(records), [os.path.join(driver.HERE, r["file"]) for r in manifest["sets"]]


def judge(program, mutants, verbose):
    records, sets = load()
    real = outputs(program, 0, records, sets)
    if any(status != 0 for status, _ in real):
        print("the driver without a mutant fails: %s" % [status for status, _ in real])
        return 0, 1, 0
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda m: outputs(program, m.number, records, sets), mutants)
        for mutant, answer in zip(mutants, answers):
            noticed, why = answer != real, reason_unseen(mutant)
            passed += noticed
            if not noticed and why:
                skipped += 1
                print("unseen: %s\n    (%s)" % (mutant, why))
            elif not noticed:
                failed += 1
                print("FAIL no file notices that this check is removed: %s" % mutant)
            elif verbose:
                print("%3d %s: %s" % (mutant.number, mutant, changed(real, answer)))
    reached = {m.code for m in mutants}
    for code in sorted(RULES - reached):
        failed += 1
        print("FAIL no check with the code %s was found" % code)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", help="leave the mutated sources in this folder")
    parser.add_argument("-v", dest="verbose", action="store_true")
    args = parser.parse_args()
    begin = time.monotonic()
    folder = args.keep or tempfile.mkdtemp(prefix="sft-mutate-")
    try:
        mutants = prepare(folder)
        if args.list:
            print("\n".join("%3d %s" % (m.number, m) for m in mutants))
            return 0
        passed, failed, skipped = judge(build(folder), mutants, args.verbose)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    print("%d mutants in %.0f s" % (len(mutants), time.monotonic() - begin))
    print("%d passed, %d failed%s" % (passed, failed,
                                      ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
