#!/usr/bin/env python3
"""The shared library exports the functions that public headers declare, and nothing
else; the static one defines no global name outside our prefixes."""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
PREFIXES = ("sft_", "sfti_")


def declared(stable=False):
    """Functions of the public headers, or of the stable ones only."""
    names = []
    for path in glob.glob(os.path.join(ROOT, "include", "safetensors*.h")):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        if stable and re.search(r"^#define SFT_EXPERIMENTAL_", text, re.M):
            continue
        text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", text, flags=re.M)
        for statement in re.findall(r"\bSFT_API\b([^;{]*)", text):
            names.append(re.search(r"\b(\w+)\s*\(", statement).group(1))
    return names


def prefixed():
    """Names of safetensors_prefix.h."""
    with open(os.path.join(ROOT, "include", "safetensors_prefix.h"), encoding="utf-8") as file:
        return re.findall(r"^#define (sft_\w+) SFT_PREFIXED\(\1\)$", file.read(), re.M)


def symbols(*command):
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = (line.split() for line in lines.splitlines())
    return {row[-1].split("@")[0]: row[-2] for row in rows if len(row) >= 2 and len(row[-2]) == 1}


def constant(archive):
    """Names in sections that are read-only once they are relocated."""
    text = subprocess.run(["nm", "--format=sysv", "--defined-only", "-g", archive],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = (line.split("|") for line in text.splitlines())
    return {row[0].strip() for row in rows if len(row) == 7
            and row[6].strip().startswith((".data.rel.ro", ".rodata"))}


def soversion():
    """As docs/abi.md says: of each minor version before 1.0, of each major one from then on."""
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        major, minor = re.search(r'SFT_VERSION_STRING "(\d+)\.(\d+)', file.read()).groups()
    return major if major != "0" else f"0.{minor}"


def main():
    shared = os.path.join(BUILD, "libsafetensors.so")
    exported = {n for n, kind in symbols("nm", "-D", "--defined-only", shared).items()
                if kind != "A"}
    names = declared()
    bad = [f"declared twice: {n}" for n in sorted(set(n for n in names if names.count(n) > 1))]
    bad += [f"declared, not exported: {n}" for n in sorted(set(names) - exported)]
    bad += [f"exported, not declared: {n}" for n in sorted(exported - set(names))]
    bad += [f"safetensors_prefix.h: run packaging/symbols.py for {n}"
            for n in sorted(set(names) ^ set(prefixed()))]
    bad += [f"not sft_: {n}" for n in sorted(n for n in names if not n.startswith("sft_"))]

    library = os.path.join(BUILD, "libsafetensors.a")
    archive = symbols("nm", "--defined-only", "-g", library)
    fixed = constant(library)
    bad += [f"static library defines {n}" for n in sorted(archive) if not n.startswith(PREFIXES)]
    bad += [f"static library has a writable global {n}" for n, kind in sorted(archive.items())
            if kind in "BDC" and n not in fixed]

    dynamic = subprocess.run(["readelf", "-d", shared], stdout=subprocess.PIPE, check=True,
                             text=True).stdout
    wanted = {"soname": f"[libsafetensors.so.{soversion()}]", "relro": "BIND_NOW"}
    bad += [f"{what}: expected {text} in readelf -d" for what, text in wanted.items()
            if text not in dynamic]
    print("\n".join(bad))
    total = len(set(names) | exported) + len(archive) + len(wanted)
    print(f"{total - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
