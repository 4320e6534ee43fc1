#!/usr/bin/env python3
"""Runs all commands that only read or write new files over the samples with two builds of the
command and compares what they print and write.

    tools/same.py OLD NEW [WORDS...]     WORDS: only tasks that begin so, e.g. "info --json" check

A command that succeeds on no file at all compares only its errors; it is named, and counts as a
difference. "@" is a copy of the file, for what changes it in place.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("SFT_SHARED_FOLDER", os.path.join(os.path.dirname(ROOT), "shared"))
EACH = [["ls"], ["ls", "--json"], ["ls", "-v"], ["ls", "--stats"], ["info"], ["info", "-v"],
        ["info", "--json"], ["check"], ["check", "--json"], ["check", "--level", "strict"],
        ["check", "--level", "compat"], ["meta"], ["meta", "--json"], ["hash"],
        ["hash", "--json"], ["diff", "{}", "{}"], ["find", "a"], ["lora", "info", "--json"]]
WRITES = [["convert", "{}", "-o", "out.safetensors", "--dtype", "bf16"],
          ["convert", "{}", "-o", "out.safetensors"],
          ["convert", "{}", "-o", "out.pt"], ["convert", "{}", "-o", "out.npz"],
          ["convert", "--dequantize", "{}", "-o", "out.safetensors"],
          ["split", "{}", "-o", "parts", "--count", "2"],
          ["select", "{}", "-o", "out.safetensors", "--keep", "*e*"],
          ["merge", "{}", "-o", "out.safetensors"],
          ["meta", "set", "{}", "a", "b", "-o", "x.safetensors"], ["meta", "set", "@", "a", "b"],
          ["meta", "rm", "@", "*"], ["meta", "scrub", "@"],
          ["meta", "scrub", "{}", "-o", "x.safetensors"], ["repair", "{}", "-o", "x.safetensors"],
          ["rename", "@", "--regex", "s/e/EE/"], ["rename", "@", "--strip-prefix", "lora_"],
          ["catalog", "{}", "-o", "page.html"]]
FOLDERS = [["ls", "-r"], ["check", "-r"], ["info", "-r"], ["info", "-r", "--json"], ["dup", "-r"],
           ["hash", "-r"], ["find", "lora", "-r"]]


def inputs():
    shared = [p for folder in ("samples", "conformance") for p in
              glob.glob(os.path.join(SHARED, folder, "**", "*"), recursive=True)]
    own = [p for folder in ("tests", "examples") for p in
           glob.glob(os.path.join(ROOT, folder, "**", "*"), recursive=True)
           if re.search(r"\.(safetensors|index\.json|gguf|pt|bin|npz|npy|onnx)$", p)]
    every = sorted(p for p in shared + own if os.path.isfile(p) and os.path.getsize(p) < 64 << 20)
    # Forty files stand for all those with one ending in one folder, except of the corpus.
    kept = collections.Counter()
    for path in every:
        kind = os.path.dirname(path), os.path.splitext(path)[1]
        kept[kind] += 1
        if kept[kind] <= 40 or path.startswith(os.path.join(ROOT, "tests", "corpus")):
            yield path


def crafted(folder):
    """The files of headers.tsv."""
    table = os.path.join(SHARED, "conformance", "headers.tsv")
    for line in open(table, encoding="utf-8") if os.path.exists(table) else []:
        cells = line.rstrip("\n").split("\t")
        if not line.startswith("#") and len(cells) > 2:
            path = os.path.join(folder, cells[0] + ".safetensors")
            with open(path, "wb") as file:
                file.write(bytes.fromhex(cells[2]))
            yield path


def run(program, words, folder):
    env = dict(os.environ, HOME=folder, XDG_CACHE_HOME=folder, NO_COLOR="1", COLUMNS="100", TZ="UTC")
    done = subprocess.run([program, *words], cwd=folder, env=env, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, done.stdout, done.stderr


def main():
    old, new = map(os.path.abspath, sys.argv[1:3])
    only = sys.argv[3:]
    made = tempfile.mkdtemp()
    files = [*inputs(), *crafted(made)]
    each = [t if {"{}", "@"} & set(t) else [*t, "{}"] for t in EACH + WRITES]
    tasks = [(t, f) for f in files for t in each]
    tasks += [([*t, "{}"], os.path.join(SHARED, "samples")) for t in FOLDERS]
    tasks += [(t, "") for t in ([], ["help", "-a"], ["--help"])]
    succeeded = collections.Counter()
    differ = count = 0
    folder = os.path.join(made, "work")
    for task, path in tasks:
        copy = "in-" + os.path.basename(path)
        words = [{"{}": path, "@": copy}.get(w, w) for w in task]
        if only and not any((" ".join(words) + " ").startswith(w + " ") for w in only):
            continue
        count += 1
        results = []
        for program in (old, new):
            os.mkdir(folder)
            if "@" in task:
                shutil.copyfile(path, os.path.join(folder, copy))
            rc = run(program, words, folder)
            tree = {}
            for name in glob.glob(folder + "/**/*", recursive=True):
                if os.path.isfile(name):
                    with open(name, "rb") as file:
                        tree[os.path.relpath(name, folder)] = file.read()
            results.append((rc, tree))
            shutil.rmtree(folder)
        if task not in [[*t, "{}"] for t in FOLDERS]:  # of which one bad file is enough
            succeeded[" ".join(task)] += results[0][0][0] == 0
        if results[0] != results[1]:
            differ += 1
            print("DIFFER", " ".join(words), flush=True)
    shutil.rmtree(made)
    for task in [t for t, times in succeeded.items() if not times and t and os.path.exists(SHARED)]:
        differ += 1
        print("NEVER SUCCEEDED", task)
    print(f"{count - differ} passed, {differ} failed")
    return 1 if differ or not count else 0


if __name__ == "__main__":
    sys.exit(main())
