#!/usr/bin/env python3
"""What the command makes of hostile models, and what that costs.

usage: tests/import/hostile.py [--update] [-v] [NAME...]

Every file of hostile_pickle.py and hostile_other.py is given to convert, info, ls and check; a NAME
is part of a case's. Each must be answered within MOST_MS of the processor and MEGABYTES of
addresses besides six times those of the files, without a crash, a program, a process or a socket (tests/tools/confine.c), with the code
of tests/import/verdicts.tsv ("-": it is read) and, of those commands that do not, nothing written.
SFT_TARGET=check runs convert alone, on every third case; SFT_TARGET=test convert on all, the others
on every third. --update writes the verdicts anew: read
the difference.
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import hostile_other
import hostile_pickle

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD") or os.path.join(ROOT, "build")
VERDICTS = os.path.join(HERE, "verdicts.tsv")
COMMANDS = ["convert", "info", "ls", "check"]
# A command that counts what it runs is slow, and writes that beside its objects as it ends.
COUNTED = os.environ.get("SFT_TARGET") == "coverage"
SECONDS = 16 if COUNTED else 4
MEGABYTES = 384  # 256 for what any file says, 32 of buffers; the command itself
TIMES = 6
MOST_MS = 750 * SECONDS  # a second, and a machine three times slower


def write(folder, files):
    for name, data in files.items():
        path = os.path.join(folder, name)
        if isinstance(data, bytes):
            with open(path, "wb") as file:
                file.write(data)
        elif data[0] == "link":
            os.symlink(data[1], path)
        else:
            os.mkfifo(path)
    return os.path.join(folder, next(iter(files)))


def codes():
    with open(os.path.join(ROOT, "docs", "errors.md"), encoding="utf-8") as file:
        rows = [line.split("|") for line in file if line.startswith("| ")]
    return {row[2].strip(" `") for row in rows if len(row) > 3} | {"-"}


def megabytes(path):
    folder = os.path.dirname(path)
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    stored = sum(os.path.getsize(p) for p in paths if os.path.isfile(p) and not os.path.islink(p))
    return MEGABYTES + TIMES * stored // 2**20


def run(command, path, out):
    """(code or "-", trouble or None) of one command on one file."""
    words = [command, path, "--json"]
    if command == "convert":
        words += ["-o", os.path.join(out, "out.safetensors"), "--no-sync"]
    beneath = "/" if COUNTED else out if command == "convert" else "-"
    done = subprocess.run(
        [os.path.join(BUILD, "tests", "confine"), beneath, str(SECONDS), str(megabytes(path)),
         os.path.join(BUILD, "safetensors"), *words],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    said = done.stderr.decode(errors="replace").rstrip().rsplit("\n", 1)
    made = os.listdir(out)
    if done.returncode not in (0, 1, 2, 3):
        return "?", f"exit {done.returncode}: {said}"
    ms = int(said[-1].split()[1])
    try:
        result = json.loads(done.stdout)["results"][0]
    except (ValueError, KeyError, IndexError):
        return "?", f"no JSON: {done.stdout[:200]!r} {said}"
    error = result.get("error")
    code = error["code"] if error else "-"
    if code == "out_of_memory":
        return code, "memory is over its limit"
    if ms > MOST_MS:
        return code, f"{ms} ms of the processor"
    if error and not error["message"]:
        return code, "no message"
    if (made != []) != (command == "convert" and code == "-" and done.returncode == 0):
        return code, f"exit {done.returncode}, and the folder has {made}"
    return code, None


def judge(name, files, commands):
    """The codes of one case, and what is wrong."""
    folder = tempfile.mkdtemp(prefix="sft-hostile-")
    found, troubles = [], []
    try:
        os.mkdir(os.path.join(folder, "in"))
        path = write(os.path.join(folder, "in"), files)
        before = sorted(os.listdir(os.path.join(folder, "in")))
        for command in commands:
            out = os.path.join(folder, command)
            os.mkdir(out)
            try:
                code, trouble = run(command, path, out)
            except subprocess.TimeoutExpired:
                code, trouble = "?", "hangs"
            found.append(code)
            if trouble:
                troubles.append(f"{command}: {trouble}")
            shutil.rmtree(out)
        if sorted(os.listdir(os.path.join(folder, "in"))) != before:
            troubles.append("something was written beside the model")
    finally:
        shutil.rmtree(folder)
    return name, found, troubles


def verdicts():
    with open(VERDICTS, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return {row[0]: row[1:] for row in rows}


def all_cases(wanted):
    for make in (hostile_pickle.cases, hostile_other.cases):
        for name, files in make():
            if not wanted or any(part in name for part in wanted):
                yield name, files


def main():
    arguments = sys.argv[1:]
    update, verbose = "--update" in arguments, "-v" in arguments
    wanted = [word for word in arguments if not word.startswith("-")]
    quick = not update and not wanted and os.environ.get("SFT_TARGET")
    cases = [(*case, COMMANDS[:1] if quick == "check" or quick == "test" and number % 3 else COMMANDS)
             for number, case in enumerate(all_cases(wanted))]
    if quick == "check":
        cases = cases[::3]
    expected = verdicts() if os.path.exists(VERDICTS) else {}
    known, failed = codes(), 0
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for name, found, troubles in pool.map(lambda c: judge(*c), cases):
            if update:
                expected[name] = found
            elif found != expected.get(name, [])[:len(found)]:
                troubles.append(f"{found}, expected {expected.get(name)}")
            troubles += [f"{code} is no code of docs/errors.md" for code in found
                         if code not in known]
            failed += bool(troubles)
            if troubles or verbose:
                print(name, *found, *troubles, sep="\t", flush=True)
    if update:
        with open(VERDICTS, "w", encoding="utf-8") as file:
            file.writelines("\t".join([name, *found]) + "\n"
                            for name, found in sorted(expected.items()))
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
