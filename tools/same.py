#!/usr/bin/env python3
"""Runs all commands that only read or write new files over the samples with two builds of the
command and compares what they print and write.

    tools/same.py OLD NEW [WORD]     WORD: only tasks whose words contain it
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
EACH = [["ls"], ["ls", "--json"], ["ls", "-l"], ["ls", "--stats"], ["info"], ["info", "-v"],
        ["info", "--json"], ["check"], ["check", "--json"], ["check", "--level", "strict"],
        ["check", "--level", "compat"], ["meta", "show"], ["meta", "show", "--json"], ["hash"],
        ["hash", "--json"], ["diff", "{}", "{}"], ["repair", "--dry-run"], ["find", "lora"]]
WRITES = [["convert", "{}", "-o", "out.safetensors", "--dtype", "bf16"],
          ["convert", "{}", "-o", "out.safetensors"],
          ["convert", "{}", "-o", "out.pt"], ["convert", "{}", "-o", "out.npz"],
          ["convert", "--dequantize", "{}", "-o", "out.safetensors"],
          ["split", "{}", "-o", "parts", "--max-shard-size", "1KB"],
          ["select", "{}", "*0*", "-o", "out.safetensors"],
          ["merge", "{}", "-o", "out.safetensors"], ["meta", "set", "{}", "a", "b", "-o", "x.safetensors"],
          ["meta", "scrub", "{}", "-o", "x.safetensors"], ["repair", "{}", "-o", "x.safetensors"],
          ["rename", "{}", "0", "zero", "-o", "x.safetensors"], ["put", "{}", "x", "y"],
          ["cat", "{}", "x"], ["add", "{}", "x", "y"], ["rm-tensor", "{}", "x"],
          ["catalog", "{}", "-o", "page.html"]]
FOLDERS = [["ls", "-r"], ["check", "-r"], ["info", "-r"], ["info", "-r", "--json"], ["dup", "-r"],
           ["hash", "-r"], ["find", "-r"]]


def inputs():
    shared = [p for folder in ("samples", "conformance") for p in
              glob.glob(os.path.join(SHARED, folder, "**", "*"), recursive=True)]
    own = [p for folder in ("tests", "examples") for p in
           glob.glob(os.path.join(ROOT, folder, "**", "*"), recursive=True)
           if re.search(r"\.(safetensors|index\.json|gguf|pt|bin|npz|npy|onnx)$", p)]
    every = sorted(p for p in shared + own if os.path.isfile(p) and os.path.getsize(p) < 64 << 20)
    # Of many files with one ending in one folder, forty stand for all.
    kept = collections.Counter()
    for path in every:
        kind = os.path.dirname(path), os.path.splitext(path)[1]
        kept[kind] += 1
        if kept[kind] <= 40:
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
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    made = tempfile.mkdtemp()
    files = [*inputs(), *crafted(made)]
    tasks = [[*t, f] if "{}" not in t else [w.replace("{}", f) for w in t]
             for f in files for t in EACH + WRITES]
    tasks += [[*t, os.path.join(SHARED, "samples")] for t in FOLDERS]
    tasks += [[], ["help", "-a"], ["--help"]]
    differ = count = 0
    folder = os.path.join(made, "work")
    for words in tasks:
        if only not in " ".join(words):
            continue
        count += 1
        results = []
        for program in (old, new):
            os.mkdir(folder)
            rc = run(program, words, folder)
            tree = {}
            for path in glob.glob(folder + "/**/*", recursive=True):
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        tree[os.path.relpath(path, folder)] = file.read()
            results.append((rc, tree))
            shutil.rmtree(folder)
        if results[0] != results[1]:
            differ += 1
            print("DIFFER", " ".join(words))
    shutil.rmtree(made)
    print(f"{count - differ} the same, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
