#!/usr/bin/env python3
"""Make the two-file form: safetensors.h and safetensors.c, from base, os, bytes,
format, journal, file, edit and set. usage: tools/bundle.py FOLDER

The header holds the public headers one after another; the source holds every internal
header where it is first included, then every source. Nothing is rewritten, so names
that are local to a file must be unique among all of them (tests/layers.py)."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYERS = ["core/base", "core/os", "core/bytes", "core/format", "model/journal", "core/file", "model/edit",
          "model/set"]
PUBLIC = ["safetensors.h", "safetensors_tree.h", "safetensors_set.h"]
# Files of one host only: the condition of each.
HOSTS = {"src/core/os/os_posix": "!defined(_WIN32)",
         "src/core/os/os_linux": "!defined(_WIN32) && !defined(__APPLE__)",
         "src/core/os/os_macos": "defined(__APPLE__)",
         "src/core/os/os_win32": "defined(_WIN32)"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>).*$')
FEATURE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(_[A-Z_]*(?:SOURCE|BITS))\b(.*)$", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def banner(path):
    return f"/* {'─' * 8} {path} {'─' * max(4, 66 - len(path))} */\n"


def licence():
    version = re.search(r'SFT_VERSION_STRING "([^"]+)"', read("include/safetensors.h")).group(1)
    return (f"/* libsafetensors {version}, two-file form. Made by tools/bundle.py; do not edit.\n"
            " * SPDX-License-Identifier: Apache-2.0 */\n")


def public_header():
    out = [licence()]
    for name in PUBLIC:
        lines = (line for line in read("include/" + name).splitlines(keepends=True)
                 if not (INCLUDE.match(line) and INCLUDE.match(line).group(1) in PUBLIC))
        out += [banner("include/" + name), *lines]
    return "".join(out)


def resolve(name, base):
    for folder in ("src", "src/core", "src/model", "include", base):
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(os.path.join(ROOT, path)):
            return path
    raise SystemExit(f"bundle: {name}, included from {base}, is not there")


def ours(path):
    """Internal headers that a file includes."""
    found = (INCLUDE.match(line) for line in read(path).splitlines())
    names = [m.group(1) for m in found if m and m.group(1)]
    return [t for t in (resolve(name, os.path.dirname(path)) for name in names)
            if not (os.path.basename(t) in PUBLIC and t.startswith("include"))]


def paste(path, seen, out):
    """Text of a file, its includes replaced by what they name, once each."""
    seen.add(path)
    out.append(banner(path))
    for line in read(path).splitlines(keepends=True):
        found = INCLUDE.match(line)
        if FEATURE.match(line):
            continue
        if not found or found.group(2) and found.group(2) not in PUBLIC:
            out.append(line)
            continue
        target = resolve(found.group(1) or found.group(2), os.path.dirname(path))
        if os.path.basename(target) in PUBLIC and target.startswith("include"):
            continue
        if target not in seen:
            paste(target, seen, out)


def host_condition(path):
    return next((c for name, c in HOSTS.items() if path.startswith(name)), None)


def paste_for_host(path, seen, out):
    condition = host_condition(path)
    if condition:
        out.append(f"#if {condition}\n")
    paste(path, seen, out)
    if condition:
        out.append("#endif\n")


def source():
    files = [path for layer in LAYERS
             for path in sorted(glob.glob(f"src/{layer}/**/*.c", root_dir=ROOT, recursive=True))
             if not path.endswith("_windows.c")]
    # What chooses the system's interface must come before the first system header.
    features = dict(found for path in files + sorted(
            glob.glob("src/**/*.h", root_dir=ROOT, recursive=True))
                    for found in FEATURE.findall(read(path)))
    out = [licence()]
    for name, value in sorted(features.items()):
        out.append(f"#ifndef {name}\n#define {name}{value}\n#endif\n")
    # In one unit gcc follows errno through the host and cannot know that it is not 0.
    out.append("#if defined(__GNUC__) && !defined(__clang__)\n"
               '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"\n#endif\n')
    # Nor are all functions of headers used.
    out.append("#ifdef __clang__\n"
               '#pragma clang diagnostic ignored "-Wunused-function"\n#endif\n')
    out.append('#ifndef SFT_BUILDING\n#define SFT_BUILDING\n#endif\n#include "safetensors.h"\n')
    seen = set()
    for path in files:
        condition = host_condition(path)
        if not condition:
            paste(path, seen, out)
            continue
        # Its headers come first, each where it belongs, whichever file includes them first.
        for target in ours(path):
            if target not in seen:
                paste_for_host(target, seen, out)
        paste_for_host(path, seen, out)
    return "".join(out)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, text in (("safetensors.h", public_header()), ("safetensors.c", source())):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
