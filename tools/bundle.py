#!/usr/bin/env python3
"""Make the two-file form: safetensors.h and safetensors.c.

usage: tools/bundle.py FOLDER [--with PART,PART…] [--name NAME] [--all-hosts] [--whole]

By itself it opens, checks, reads and writes files. --with adds parts: edit (repair, too), set,
convert, read, stats. --all-hosts adds the platform's files of Linux, macOS, Windows and WASI; without it
there are those of the system that it is made on. --name names the files other than safetensors.
--whole (for tests) puts in every file of these folders, not only what the functions of the header
need, and leaves internal functions global.

The header holds the public headers one after another, without those of parts that are not there;
the source holds every internal header where it is first included, then every source.
Names that are local to a file must be unique among all of them (tests/layers.py). What files
share becomes static: the compiled form defines the functions of its header and nothing else."""
import argparse
import functools
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import layers  # noqa: E402: which names a source defines
# What each part adds: folders of src, or single files; headers; the parts it needs.
CORE = ["core/base", "core/os", "core/bytes", "core/format", "core/file"]
PARTS = {
    "edit": (["model/keys", "model/journal", "model/edit"], ["edit"], []),
    "set": (["model/set", "remote/hub/cache_links.c"], ["tree", "set", "index", "report", "diff"], []),
    "convert": (["model/keys", "model/quant", "model/convert"], ["cast", "convert"], ["set"]),
    "read": (["model/read"], ["read"], []),
    "stats": (["model/stats"], ["stats"], []),
}
# Stand-ins for what asks a part that is not there.
WITHOUT = {"edit": "without/edit.c", "set": "without/remote.c"}
ALWAYS_WITHOUT = {"convert": "without/label.c"}
NO_COMMAND = "without/command.c"
# Public headers, each after those that it includes.
ALWAYS = ["prefix", "", "codes", "io", "scan"]
PUBLIC = [f"safetensors_{name}.h".replace("_.", ".") for name in (
    *ALWAYS, "tree", "set", "index", "report", "diff", "cast", "convert", "edit", "read", "stats")]
# Files of one host only: the condition of each, and the systems that build them.
HOSTS = {"src/core/os/os_posix": ("!defined(_WIN32) && !defined(__wasi__)", ("linux", "darwin")),
         "src/core/os/os_linux": ("!defined(_WIN32) && !defined(__APPLE__) && !defined(__wasi__)",
                                  ("linux",)),
         "src/core/os/os_macos": ("defined(__APPLE__)", ("darwin",)),
         "src/core/os/os_wasi": ("defined(__wasi__)", ()),
         "src/core/os/os_win32": ("defined(_WIN32)", ("win32",))}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>).*$')
FEATURE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(_[A-Z_]*(?:SOURCE|BITS))\b(.*)$", re.M)
WORD = re.compile(r"\bsfti?_\w+")
SHARED_FUNCTION = re.compile(r"^(?!static\b|typedef\b|extern\b|return\b|else\b)"
                             r"(?=[A-Za-z_][^;{}()=]*\bsfti_\w+\()", re.M)
SHARED_DATA = re.compile(r"^(?:extern )?(?=const [^;{}()=]*\bsfti_\w+(?:\[[^\]]*\])*(?:;| =)"
                         r"|\w+ \*const sfti_hook_\w+(?:;| =))", re.M)


LAYOUTS = "src/model/quant/layouts.c"
EXTERN = re.compile(r"^extern const .*;\n", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def banner(path):
    return f"/* {'─' * 8} {path} {'─' * max(4, 66 - len(path))} */\n"


class Bundle:
    def __init__(self, parts, all_hosts, whole, name):
        for part in list(parts):
            parts |= set(PARTS[part][2])
        self.parts = [part for part in PARTS if part in parts]
        self.all_hosts = all_hosts
        self.whole = whole
        self.name = name
        left_out = {f"safetensors_{name}.h" for part in set(PARTS) - parts for name in PARTS[part][1]}
        self.headers = [name for name in PUBLIC if name not in left_out]

    def licence(self):
        version = re.search(r'SFT_VERSION_STRING "([^"]+)"', read("include/safetensors.h")).group(1)
        holds = ", ".join(["open, check, read, write", *self.parts])
        return (f"/* libsafetensors {version}, two-file form ({holds}).\n"
                " * Made by tools/bundle.py; do not edit.\n"
                " * SPDX-License-Identifier: Apache-2.0 */\n")

    def public_header(self):
        out = [self.licence()]
        for name in self.headers:
            text = re.sub(r'#include "safetensors\w*\.h"\n(#ifndef.*?#endif\n)?', "",
                          read("include/" + name), flags=re.S)
            if name == "safetensors_prefix.h":
                text = f"#ifdef SFT_PREFIX\n{self.prefixed(text)}#endif\n"
            out += [banner("include/" + name), text]
        return "".join(out)

    def prefixed(self, text):
        """safetensors_prefix.h, of which only the names that are announced stay."""
        announced = {found for name in self.headers
                     for found in WORD.findall(layers.bare(read("include/" + name)))
                     if name != "safetensors_prefix.h"}
        return "".join(line for line in text.splitlines(keepends=True)
                       if not line.startswith("#define sft_") or line.split()[1] in announced)

    def candidates(self):
        """The sources of the parts, in the order in which they stand; of one host only those
        that are wanted."""
        places = list(CORE)
        for part in self.parts:
            places += PARTS[part][0]
        places += [path for part, path in WITHOUT.items() if part not in self.parts]
        places += [path for part, path in ALWAYS_WITHOUT.items() if part in self.parts]
        places.append(NO_COMMAND)
        files = []
        for place in dict.fromkeys(places):
            found = [f"src/{place}"] if place.endswith(".c") else sorted(
                glob.glob(f"src/{place}/**/*.c", root_dir=ROOT, recursive=True))
            files += [path for path in found if self.is_of_host(path)]
        return files

    def is_of_host(self, path):
        if path.endswith("_windows.c"):
            return False
        system = "linux" if sys.platform not in ("darwin", "win32") else sys.platform
        return self.all_hosts or all(system in systems for name, (_, systems) in HOSTS.items()
                                     if path.startswith(name))

    def needed(self, files):
        """Those of the files that the functions of the public header need."""
        owners = {}
        for path in files:
            for name in layers.global_names(read(path)):
                owners.setdefault(name, set()).add(path)
        todo = owners_of(layers.bare(self.public_header()), owners)
        done = set()
        while todo:
            path = todo.pop()
            done.add(path)
            todo |= owners_of(layers.bare(read(path)) + inline_code(path), owners) - done
        return [path for path in files if path in done]

    def source(self):
        files = self.candidates()
        if not self.whole:
            files = self.needed(files)
        # What chooses the system's interface must come before the first system header.
        headers = {header for path in files for header in all_headers(path)}
        features = dict(found for path in [*files, *sorted(headers)]
                        for found in FEATURE.findall(read(path)))
        out = [self.licence()]
        for name, value in sorted(features.items()):
            out.append(f"#ifndef {name}\n#define {name}{value}\n#endif\n")
        # In one unit gcc follows errno through the host and cannot know that it is not 0.
        out.append("#if defined(__GNUC__) && !defined(__clang__)\n"
                   '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"\n#endif\n')
        # Nor are all functions of headers used.
        out.append("#ifdef __clang__\n"
                   '#pragma clang diagnostic ignored "-Wunused-function"\n'
                   '#pragma clang diagnostic ignored "-Wunused-const-variable"\n'
                   "#elif defined(__GNUC__)\n"
                   '#pragma GCC diagnostic ignored "-Wunused-function"\n#endif\n')
        # A shared library that this file is a part of exports none of these functions.
        out.append("#ifndef SFT_BUILDING\n#define SFT_BUILDING\n#endif\n"
                   "#if !defined(SFT_API) && !defined(SFT_SHARED) && !defined(SFT_STATIC_API) && "
                   "\\\n    defined(__GNUC__) && !defined(_WIN32)\n"
                   '#define SFT_API __attribute__((visibility("hidden")))\n#endif\n'
                   f'#include "{self.name}.h"\n')
        seen = set()
        for path in files:
            if not host_condition(path):
                self.paste(path, seen, out)
                continue
            # Its headers come first, each where it belongs, whichever file includes them first.
            for target in ours(path):
                if target not in seen:
                    self.paste_for_host(target, seen, out)
            self.paste_for_host(path, seen, out)
        return "".join(out)

    def text_of(self, path):
        """A file whose shared functions and data are static."""
        text = read(path)
        if path == LAYOUTS:
            text = EXTERN.sub("", text.replace("\n\n", "\n\n" + layouts_text() + "\n", 1))
        if self.whole:
            return text
        if path.endswith(".h"):  # a definition is as static as its first declaration
            text = SHARED_FUNCTION.sub("static ", text)
        return SHARED_DATA.sub("static ", text)

    def paste(self, path, seen, out):
        """Text of a file, its includes replaced by what they name, once each."""
        seen.add(path)
        out.append(banner(path))
        for line in self.text_of(path).splitlines(keepends=True):
            found = INCLUDE.match(line)
            if FEATURE.match(line):
                continue
            if not found or found.group(2) and found.group(2) not in PUBLIC:
                out.append(line)
                continue
            target = resolve(found.group(1) or found.group(2), os.path.dirname(path))
            if not is_public(target) and target not in seen:
                self.paste(target, seen, out)

    def paste_for_host(self, path, seen, out):
        condition = host_condition(path)
        if condition:
            out.append(f"#if {condition}\n")
        self.paste(path, seen, out)
        if condition:
            out.append("#endif\n")


def layouts_text():
    """What the build makes of data/quantised.layouts, for the one file that reads it."""
    data = read("data/quantised.layouts").encode()
    rows = [", ".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    return ("static const unsigned char sfti_layouts_text[] = {\n    %s\n};\n"
            "static const size_t sfti_layouts_size = sizeof sfti_layouts_text;\n"
            % ",\n    ".join(rows))


def owners_of(code, owners):
    return {path for word in set(WORD.findall(code)) for path in owners.get(word, ())}


def resolve(name, base):
    for folder in ("src", "src/core", "src/model", "include", base):
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(os.path.join(ROOT, path)):
            return path
    raise SystemExit(f"bundle: {name}, included from {base}, is not there")


def is_public(path):
    return path.startswith("include") and os.path.basename(path) in PUBLIC


@functools.cache
def ours(path):
    """Internal headers that a file includes."""
    found = (INCLUDE.match(line) for line in read(path).splitlines())
    names = [m.group(1) for m in found if m and m.group(1)]
    return [t for t in (resolve(name, os.path.dirname(path)) for name in names)
            if not is_public(t)]


@functools.cache
def all_headers(path):
    """And those that these include."""
    found = set()
    for header in ours(path):
        found |= {header} | all_headers(header)
    return found


@functools.cache
def inline_code(path):
    """What the headers of a file do rather than announce: functions and macros."""
    out = []
    for header in sorted(all_headers(path)):
        text = layers.bare(read(header))
        out += re.findall(r"^[ \t]*#[ \t]*define\b(?:.*\\\n)*.*$", text, re.M)
        out += re.findall(r"^static inline\b.*?^\}", text, re.M | re.S)
    return "\n".join(out)


def host_condition(path):
    return next((row[0] for name, row in HOSTS.items() if path.startswith(name)), None)


def main():
    parser = argparse.ArgumentParser(prog="bundle.py", usage=__doc__.split("usage: ")[1]
                                     .split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--with", dest="parts", default="")
    parser.add_argument("--name", default="safetensors")
    parser.add_argument("--all-hosts", action="store_true")
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    parts = {part for part in given.parts.split(",") if part}
    if parts - set(PARTS):
        raise SystemExit(f"bundle: --with takes {', '.join(PARTS)}, "
                         f"not {', '.join(sorted(parts - set(PARTS)))}")
    bundle = Bundle(parts, given.all_hosts, given.whole, given.name)
    os.makedirs(given.folder, exist_ok=True)
    for name, text in ((".h", bundle.public_header()), (".c", bundle.source())):
        with open(os.path.join(given.folder, given.name + name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
