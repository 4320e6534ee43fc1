#!/usr/bin/env python3
"""The structure of the sources: who may include whom, no circle between the files of a folder or
the modules of Python, names local to a file unique in the whole library, sizes of files, banned
functions and words."""
import ast
import collections
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

FREESTANDING = {"float.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h",
                "stdalign.h", "iso646.h", "stdnoreturn.h"}
# Public headers: those of the core, those of models in several files, and all.
CORE = {"safetensors.h", "safetensors_codes.h", "safetensors_io.h", "safetensors_scan.h",
        "safetensors_tree.h"}
SET = {"safetensors_set.h", "safetensors_index.h", "safetensors_report.h", "safetensors_diff.h"}
CONVERT = {"safetensors_cast.h", "safetensors_convert.h"}
PUBLIC = CORE | SET | CONVERT | {
    "safetensors_adapter.h", "safetensors_layout.h", "safetensors_merge.h",
    "safetensors_info.h", "safetensors_hash.h", "safetensors_dataset.h", "safetensors_stats.h",
    "safetensors_import.h", "safetensors_read.h", "safetensors_remote.h", "safetensors_edit.h",
    "safetensors.hpp"}
PREFIX = "safetensors_prefix.h"  # which safetensors.h alone includes

# Headers are included from these, so that a layer is called as its folder in them.
ROOTS = ("src/core/", "src/model/", "src/", "include/")


def included_as(path):
    """How sources include a file."""
    return next((path.removeprefix(root) for root in ROOTS if path.startswith(root)), path)


# folder: (layers and headers of ours it may include, system headers or None for any).
# A folder may always include itself. This is the table of docs/design.md.
CORE_PARTS = {"base/", "os/", "bytes/", "format/", "file/", *CORE}
FROM_CORE = {"base/", "os/", "bytes/source.h", *CORE}
USERS = ({"base/", "os/"} | PUBLIC, None)
RULES = {
    "src/core/base": ({*CORE, "os/cpu.h"}, None),
    "src/core/os": ({"base/", *CORE}, None),
    "src/core/bytes": ({"os/", "base/", *CORE}, None),
    "src/core/format": ({"base/", *CORE}, FREESTANDING | {"string.h"}),
    "src/core/file": ({"format/", "bytes/", "base/", "os/", *CORE}, None),
    "src/model/keys": ({"base/", *CORE}, None),
    "src/model/journal": ({"file/edited.h", "format/", "bytes/", "base/", "os/", *CORE}, None),
    "src/model/edit": ({"safetensors_edit.h", "journal/", "keys/", *CORE_PARTS}, None),
    "src/model/set": (FROM_CORE | {*SET, "bytes/hold.h", "bytes/replaced.h"}, None),
    "src/model/hash": (FROM_CORE | {*SET, "safetensors_hash.h", "keys/"}, None),
    "src/model/quant": (FROM_CORE | SET | {"keys/"}, None),
    "src/model/convert": (FROM_CORE | SET | CONVERT | {"keys/", "quant/", "set/aliases.h", "set/image.h"}, None),
    "src/model/stats": (FROM_CORE | {"safetensors_stats.h"}, None),
    "src/model/read": (FROM_CORE | {"safetensors_read.h", "format/"}, None),
    "src/text": ({"base/", *CORE}, None),
    "src/model/packed": (FROM_CORE | {*SET, "text/"}, None),
    "src/label": (FROM_CORE | {*SET, "safetensors_hash.h", "safetensors_info.h",
                               "convert/adapter.h", "text/", "packed/"}, None),
    "src/lint": (FROM_CORE | {*SET, "safetensors_info.h", "label/", "text/", "packed/"}, None),
    "src/formats": (FROM_CORE | {*SET, *CONVERT, "safetensors_import.h", "keys/", "set/image.h"}, None),
    "src/remote": (FROM_CORE | {"safetensors_hash.h", "safetensors_remote.h"}, None),
    "src/dataset": (FROM_CORE | {*CONVERT, "file/edited.h", "safetensors_hash.h",
                                 "safetensors_dataset.h"}, None),
    "src/layout": (FROM_CORE | {*SET, "safetensors_info.h", "safetensors_layout.h", "keys/", "label/",
                                "set/aliases.h", "set/image.h", "text/"}, None),
    "src/adapter": (FROM_CORE | SET | CONVERT | {"safetensors_adapter.h", "safetensors_hash.h",
                                                 "safetensors_info.h",
                                                 "convert/", "keys/", "label/", "layout/", "packed/",
                                                 "set/aliases.h", "set/image.h", "text/"}, None),
    "src/merge": (FROM_CORE | SET | CONVERT | {"safetensors_hash.h", "safetensors_merge.h", "keys/",
                                               "label/", "layout/", "set/aliases.h", "set/image.h", "text/"}, None),
    "src/without": ({"file/edited.h", "os/os.h", "convert/adapter.h", "base/watch.h"}, None),
    "cli/support": ({"support/", "bytes/hold.h", "bytes/replaced.h", "label/records.h", "edit/dropped.h", "formats/parts/blocks.h",
                     "convert/named.h", "formats/shards.h", "keys/", "quant/beside.h",
                     "set/aliases.h", "set/index_edit.h", "remote/http/url.h", "base/", "os/"}
                    | PUBLIC, None),
    "cli/catalog": ({"catalog/", "support/", "remote/http/url.h", "adapter/lowrank.h", "base/", "os/"} | PUBLIC, None),
    "cli/commands": ({"commands/", "catalog/", "support/", "adapter/adapter.h",
                      "adapter/lowrank.h", "adapter/merge.h",
                      "layout/conversion.h", "layout/layout.h", "merge/merge.h", "edit/dropped.h",
                      "convert/computed.h", "convert/dropped.h", "convert/quantise.h", "quant/beside.h",
                      "set/aliases.h", "set/deep.h", "set/index_edit.h",
                      "keys/", "text/derived.h", "label/reads.h", "label/records.h",
                      "lint/lint.h",
                      "formats/arrays/npy_head.h", "formats/parts/blocks.h",
                      "remote/http/url.h", "base/", "os/"} | PUBLIC, None),
    "cli": ({"commands/", "catalog/", "support/", "adapter/adapter.h", "adapter/lowrank.h",
             "adapter/merge.h", "layout/conversion.h", "layout/layout.h",
             "merge/merge.h",
             "edit/dropped.h",
             "convert/computed.h", "convert/dropped.h", "convert/named.h", "convert/quantise.h",
             "bytes/hold.h", "bytes/replaced.h", "set/deep.h", "set/index_edit.h",
             "keys/", "quant/beside.h", "set/aliases.h", "text/derived.h", "label/reads.h", "label/records.h",
                      "lint/lint.h",
                      "formats/arrays/npy_head.h", "formats/parts/blocks.h", "formats/shards.h",
             "remote/http/url.h", "base/", "os/"}
            | PUBLIC, None),
    "bindings/python": (PUBLIC, None),
    "bench": (PUBLIC | {"hash/hash.h"}, None),  # bench_hash.c runs the kernels one by one
    "examples": (PUBLIC, None),
    "fuzz": ({"base/", "format/", "label/", "lint/", "text/", "packed/", "dataset/", "journal/", "remote/", "faults.h", "fake_state.h"}
             | PUBLIC, None),
}
# The parts of the library: which others each needs, besides the core. cmake/parts.cmake has the same
# as options, one for each.
PARTS = {
    "src/core": set(),
    "src/model/keys": set(),
    "src/model/journal": set(),
    "src/model/edit": {"src/model/journal", "src/model/keys"},
    "src/model/set": set(),
    "src/model/hash": {"src/model/set", "src/model/keys"},
    "src/model/quant": {"src/model/set", "src/model/keys"},
    "src/model/convert": {"src/model/set", "src/model/keys", "src/model/quant"},
    "src/model/stats": set(),
    "src/model/read": set(),
    "src/text": set(),
    "src/model/packed": {"src/model/set", "src/text"},
    "src/label": {"src/model/set", "src/model/hash", "src/model/packed", "src/text"},
    "src/lint": {"src/model/set", "src/model/packed", "src/label", "src/text"},
    "src/formats": {"src/model/set", "src/model/keys", "src/model/convert"},
    "src/remote": {"src/model/hash"},
    "src/dataset": {"src/model/hash", "src/model/convert"},
    "src/layout": {"src/model/set", "src/model/keys", "src/label", "src/text"},
    "src/adapter": {"src/model/set", "src/model/hash", "src/model/keys", "src/model/convert",
                    "src/label", "src/layout", "src/model/packed", "src/text"},
    "src/merge": {"src/model/set", "src/model/hash", "src/model/keys", "src/model/convert",
                  "src/text", "src/label", "src/layout"},
    "src/without": set(),
}
# What a part asks of one that it does not know: a constant pointer, declared in the part that asks,
# defined in the part that answers, and in the stand-in for a library built without that one. The
# command answers the last: every library has that stand-in.
HOOKS = {
    "sfti_hook_journal": ("src/core/file/edited.h", "src/model/journal/check.c",
                          "src/without/edit.c"),
    "sfti_hook_link": ("src/core/os/os.h", "src/remote/hub/cache_links.c",
                       "src/without/remote.c"),
    "sfti_hook_adapter": ("src/model/convert/adapter.h", "src/label/adapter.c",
                          "src/without/label.c"),
    "sfti_hook_watch": ("src/core/base/watch.h", "src/without/command.c"), # and cli/support/guard.c
}
# Folders whose files, those of sub-folders included, call one another in one direction only.
RANKED = ["src/core/base", "src/core/os", "src/core/bytes", "src/core/format", "src/core/file",
          "src/model/keys", "src/model/journal", "src/model/edit", "src/model/set", "src/model/quant",
          "src/model/convert", "src/model/stats", "src/model/read", "src/model/hash", "src/formats", "src/text",
          "src/label", "src/lint",
          "src/remote", "src/dataset", "src/layout", "src/adapter", "src/merge", "cli",
          "bindings/python/src"]
FOLDED = ["src/formats"]  # and their sub-folders, too
# The files of a host that CMakeLists.txt builds: src/core/os/os_<one of these>*.c
HOSTS = [("posix", "linux"), ("posix", "macos"), ("win32",), ("wasi",)]
HOST_FILE = re.compile(r"/os_([a-z0-9]+)[a-z0-9_]*\.[ch]$")
CIRCLES = set()  # folders that still have circles: none
STANDARD = {"stddef.h", "stdint.h", "stdbool.h"}
HEADERS = {"safetensors.h": STANDARD | {PREFIX}}

BANNED = {
    "": r"strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atoll|strtok|alloca|setjmp|longjmp",
    "src": r"printf|vprintf|fprintf|vfprintf|puts|fputs|putchar|perror|exit|_exit|abort|assert"
           r"|getenv|secure_getenv|signal|sigaction|raise|system|popen|strtol|strtoul|strtoull"
           r"|strtod|scanf|sscanf|rand|srand|setlocale|localtime|gmtime|strerror",
    "src/core/format": r"malloc|calloc|realloc|free|time|clock",
}
ALLOWED = {
    "src/core/os": {"getenv", "signal", "sigaction", "raise", "strerror"},
}
PLATFORM = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*\b(_WIN32|_MSC_VER|__linux__|__unix__"
                      r"|__APPLE__|__FreeBSD__|_POSIX_\w+|__ANDROID__)\b", re.M)
UNWANTED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
LINES, TEST_LINES, COLUMNS = 600, 800, 100

problems = []
checks = 0


def check(ok, path, what):
    global checks
    checks += 1
    if not ok:
        problems.append(f"{path}: {what}")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def find(*patterns):
    return sorted(p for pattern in patterns
                  for p in glob.glob(pattern, root_dir=ROOT, recursive=True))


def bare(text):
    """The code alone: comments and the inside of literals blanked, lines kept."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] * 2
        return " " + "\n" * found.count("\n")
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def includes(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', text, re.M)


def check_includes():
    for folder, (ours, system) in RULES.items():
        layer = included_as(folder) + "/"
        for path in find(f"{folder}/**/*.c", f"{folder}/**/*.h"):
            for mark, name in includes(read(path)):
                known = name in PUBLIC
                beside = os.path.join(ROOT, os.path.dirname(path), name)
                mine = mark == '"' and (name.startswith(layer) or os.path.exists(beside))
                if mark == '"' or known:
                    check(mine or any(name == o or o.endswith("/") and name.startswith(o)
                                      for o in ours), path, f'may not include "{name}"')
                else:
                    check(system is None or name in system, path, f"may not include <{name}>")
    for path in find("include/*.h"):
        name = os.path.basename(path)
        allowed = HEADERS.get(name, STANDARD | CORE | SET | CONVERT)
        for _, other in includes(read(path)):
            check(other in allowed and other != name, path, f"may not include {other}")


def check_acyclic():
    headers = find("include/*.h", "src/**/*.h")
    named = {included_as(p): p for p in headers}
    edges = {p: [named[n] for _, n in includes(read(p)) if n in named] for p in headers}
    done, path = set(), []

    def visit(node):
        if node in done:
            return
        check(node not in path, node, "headers include one another in a circle")
        if node in path:
            return
        path.append(node)
        for other in edges[node]:
            visit(other)
        done.add(path.pop())

    for header in headers:
        visit(header)


def global_names(text, prefixes="sfti?|os|cli|pysft"):
    """Functions and data that a source defines for others."""
    flat = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", bare(text), flags=re.M)
    names = re.findall(r"^SFTI_OPTIONS_TAKE\((\w+),", flat, re.M)
    while True:
        folded = re.sub(r"\{[^{}]*\}", "\x01", flat)
        if folded == flat:
            break
        flat = folded
    for found in re.finditer(r"^(?!static\b|typedef\b|extern\b)[A-Za-z_][^;\x01]*?"
                             r"(?:\b(\w+)\s*\([^;\x01]*\)\s*\x01|\b(\w+)(?:\[[^\]]*\])*\s*=)",
                             flat, re.M):
        names.append(found.group(1) or found.group(2))
    return {n for n in names if re.match(f"(?:{prefixes})_", n)}


def circles(uses):
    """Groups of nodes that reach one another (Tarjan)."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in uses[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            out.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(uses):
        if node not in index:
            visit(node)
    return [group for group in out if len(group) > 1]


def units():
    """Each folder of RANKED with its files; src/core/os once for each host."""
    for folder in RANKED:
        paths = find(f"{folder}/**/*.c")
        for host in HOSTS if folder == "src/core/os" else [None]:
            yield folder, [p for p in paths if not host or not HOST_FILE.search(p)
                           or HOST_FILE.search(p)[1] in host]


def check_ranks():
    for folder, paths in units():
        words, owner = {}, {}
        for path in paths:
            text = read(path)
            words[path] = set(re.findall(r"\b\w+\b", bare(text)))
            owner.update((name, path) for name in (
                global_names(text, "[a-z]+") if folder == "cli" else global_names(text)))
        uses = {p: {owner[w] for w in words[p] if w in owner} - {p} for p in words}
        groups = circles(uses)
        if folder in CIRCLES:
            check(groups, folder, "has no circles any more: take it off the list in tests/layers.py")
            continue
        for group in groups:
            names = [os.path.basename(p) for p in group]
            arrows = [f"{os.path.basename(a)} to {os.path.basename(b)} ("
                      + ", ".join(sorted(w for w in words[a] if owner.get(w) == b)) + ")"
                      for a in group for b in group if b in uses[a]]
            check(False, folder, f"{', '.join(names)} use one another: {'; '.join(arrows)}")
        check(True, folder, "")


def check_folders():
    """The folders of FOLDED call one another in one direction, and so do the files beside them."""
    for top in FOLDED:
        paths = find(f"{top}/**/*.c")
        home = {p: os.path.dirname(p) for p in paths}
        owner = {name: home[p] for p in paths for name in global_names(read(p))}
        uses = {folder: set() for folder in home.values()}
        for path in paths:
            words = set(re.findall(r"\b\w+\b", bare(read(path))))
            uses[home[path]] |= {owner[w] for w in words if w in owner} - {home[path]}
        for group in circles(uses):
            check(False, top, f"folders use one another: {', '.join(group)}")
        check(True, top, "")


def check_calls():
    """An internal function is used by its own folder and by those that may include its folder,
    whatever header declares it."""
    owner = {name: path for path in find("src/**/*.c") for name in global_names(read(path))
             if name.startswith("sfti_") and name not in HOOKS}
    for path in find("src/**/*.c"):
        layer = next(folder for folder in RULES if path.startswith(folder + "/"))
        ours = RULES[layer][0]
        for name in sorted(set(re.findall(r"\bsfti_\w+", bare(read(path)))) & set(owner)):
            home = re.sub(r"/os_[a-z0-9]+_", "/", included_as(owner[name]))  # a host's os/cpu.h
            allowed = home.startswith(included_as(layer) + "/") or any(
                home.startswith(o) or home.removesuffix(".c") == o.removesuffix(".h") for o in ours)
            check(allowed, path, f"may not use {name} of {owner[name]}")


PROBES = {"sfti_merged_source", "sfti_os_win_retries"}  # what tests alone look through


def check_used():
    """Each function that a source defines for others is named by another source, a macro or inline
    function of a header, or, where its own file uses it too, by a test."""
    def count(*patterns):
        return {path: collections.Counter(re.findall(r"\b\w+\b", bare(read(path))))
                for path in find(*patterns)}

    sources = count("src/**/*.c", "cli/**/*.c", "bindings/**/*.c")
    headers = sum(count("src/**/*.h", "cli/**/*.h", "bindings/**/*.h").values(),
                  collections.Counter())
    tests = sum(count("tests/**/*.[ch]", "fuzz/**/*.[ch]").values(), collections.Counter())
    users = collections.Counter(word for uses in sources.values() for word in uses)
    for path, uses in sources.items():
        for name in sorted(global_names(read(path), "sfti|cli|pysft|catalog|places") - PROBES):
            # main.c puts the names of commands together.
            check(users[name] > 1 or headers[name] > 1 or (uses[name] > 1 and tests[name])
                  or re.fullmatch(r"cli_\w+_command", name), path,
                  f"nothing but {'its own file' if uses[name] > 1 else 'tests'} uses {name}")


def check_parts():
    """A function, public ones too, is used by its own part and by those that need that part."""
    def part(path):
        return next(folder for folder in PARTS if path.startswith(folder + "/"))

    sources = find("src/**/*.c", "src/**/*.h")
    code = {path: bare(read(path)) for path in sources}
    owner = {name: path for path in sources if path.endswith(".c")
             for name in global_names(read(path)) if name not in HOOKS}
    for path in sources:
        may = PARTS[part(path)] | {"src/core", part(path)}
        for name in sorted(set(re.findall(r"\bsfti?_\w+", code[path])) & set(owner)):
            check(part(owner[name]) in may, path, f"may not use {name} of {owner[name]}")
    for name, places in HOOKS.items():
        found = sorted(p for p in sources if re.search(rf"\bconst {name}\b", code[p]))
        check(found == sorted(places), name, f"stands in {', '.join(found)}")
    told = re.findall(r"src/[\w/]+\.c", read("cmake/optional.cmake"))
    users = [path for path in sources if re.search(r"\bSFTI_(FOUND_|TEXT_(CRYPTO|ZLIB))", code[path])]
    check(sorted(told) == sorted(users), "cmake/optional.cmake", f"what was found is asked for in {', '.join(users)}")


def local_names(text):
    """Names at file scope that only this file should know."""
    code = bare(text)
    names = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code, re.M)
    names = [n for n in names if not re.match(r"_[A-Z]", n) and
             not re.search(rf"#[ \t]*undef[ \t]+{n}\b", code)]
    flat = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", code, flags=re.M)
    # A macro that makes a function is called with its name.
    flat = re.sub(r"\bSFTI_OPTIONS_TAKE\((\w+),[^()]*\)", r"sft_code \1(void);", flat)
    # Fold every braced body to {} and keep the enumerators of the enums.
    names += [e for body in re.findall(r"\benum\b[^{;()]*\{([^{}]*)\}", flat)
              for e in re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)", body)]
    while True:
        folded = re.sub(r"\{[^{}]*\}", "\x01", flat)
        if folded == flat:
            break
        flat = folded
    for part in re.split(r";|\x01(?=\s*\n\s*\n|\s*\n[a-zA-Z])", flat):
        part = part.strip()
        tag = re.search(r"\b(?:struct|union|enum)\s+(\w+)\s*\x01", part)
        if tag:
            names.append(tag.group(1))
        typedef = re.match(r"typedef\b.*?(?:\(\s*\*\s*(\w+)\s*\)|(\w+)\s*(?:\[[^\]]*\])?)\s*"
                           r"(?:\([^()]*\))?$", part, re.S)
        if typedef:
            names.append(typedef.group(1) or typedef.group(2))
        elif re.match(r"(?:__attribute__\S*\s+|SFTI_\w+\s+)*static\b", part):
            name = re.search(r"\b(\w+)\s*(?:\(|\[|=|$)", re.sub(r"__attribute__\s*\(\(.*?\)\)|"
                             r"SFTI_FORMAT\([^)]*\)", "", part))
            if name:
                names.append(name.group(1))
    return set(names)


def are_of_other_hosts(a, b):
    """Files that no host has both of."""
    names = [found[1] for found in (HOST_FILE.search(a), HOST_FILE.search(b)) if found]
    return len(names) == 2 and not any(set(names) <= set(host) for host in HOSTS)


def check_unique():
    """Over all sources and the internal headers, for one unit holds them all."""
    owner = {}
    for path in find("src/**/*.h", "src/**/*.c"):
        names = local_names(read(path))
        for name in names:
            first = owner.setdefault(name, path)
            # A type announced in a header and defined in one source is no clash.
            ours = re.match("sfti?_|os_", name) and (first + path).count(".h")
            others = are_of_other_hosts(first, path)
            check(first == path or ours or others, path, f"{name} is also a name of {first}")


def check_words():
    for path in find("src/**/*.[ch]", "cli/**/*.[ch]", "include/*.h", "examples/**/*.c", "bench/*.c",
                     "fuzz/*.[ch]", "tests/**/*.[ch]", "bindings/**/*.[ch]"):
        text = read(path)
        code = bare(text)
        for scope, words in BANNED.items():
            if path.startswith(scope) and (scope or not path.startswith("tests/")):
                allowed = next((a for f, a in ALLOWED.items() if path.startswith(f)), set())
                for word in re.findall(rf"(?<![\w.>])({words})\s*\(", code):
                    check(word in allowed, path, f"{word}() is banned here")
        if path.startswith(("src", "cli", "bindings")):
            # clang 22 takes a field of such an object for what it began with.
            found = re.search(r"= &\((?!const )[\w ]+\)\s*{", code)
            check(not found, path, "the address of a compound literal in an initializer")
        if path.startswith(("src", "cli")) and not path.startswith("src/core/os"):
            found = PLATFORM.search(code)
            check(not found, path, f"platform conditional {found and found.group(1)} outside src/core/os")
        check("\t" not in text, path, "has a tab")
        check(text.endswith("\n") and not text.endswith("\n\n"), path, "ends without one newline")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS:
                check(False, f"{path}:{number}", f"{len(line)} columns, {COLUMNS} at most")
            if line != line.rstrip():
                check(False, f"{path}:{number}", "space at the end of the line")
        if path.startswith(("src", "cli", "bindings", "include")):
            found = re.search(r"/\* Of (?!course)", text)
            check(not found, path, "a comment that begins with \"Of\" cannot be read alone")
        most = (LINES if path.startswith(("src", "cli", "bindings"))
                else TEST_LINES if path.startswith("tests/unit") else None)
        if most:
            count = text.count("\n")
            check(count <= most, path, f"{count} lines, {most} at most")


def check_public():
    for path in find("include/*.h"):
        code = bare(read(path))
        for name in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code, re.M):
            check(name.startswith(("SFT_", "ARROW_")) or path.endswith(PREFIX), path,
                  f"macro {name} has no prefix")
        for name in re.findall(r"^\}\s*(\w+)\s*;|^(?:struct|enum|union)\s+(\w+)", code, re.M):
            name = name[0] or name[1]
            # Arrow's structs have the names of its C data interface.
            check(name.startswith(("sft_", "Arrow")), path, f"type {name} has no prefix")


def check_texts():
    me = os.path.relpath(os.path.abspath(__file__), ROOT)
    texts = find("*.md", "docs/**/*.md", "src/**/*.[ch]", "cli/**/*.[ch]", "include/*.h",
                 "examples/**/*.c", "tests/**/*.py", "tests/**/*.[ch]", "tools/*", "bench/*.*",
                 "fuzz/*.*", "cmake/*", "man/*", "Makefile", "CMakeLists.txt")
    for path in texts:
        if path != me and os.path.isfile(os.path.join(ROOT, path)) and \
                not path.endswith((".safetensors", ".bin")):
            found = UNWANTED.search(read(path))
            check(not found, path, f"says {found and found.group(0)}")


def python_uses():
    """Each module of the Python package with those it imports, also inside functions. A name that
    a package makes on first use, as _core is, counts as a module of its own."""
    modules = {}
    for path in find("bindings/python/*libsafetensors/**/*.py"):
        module = path.removeprefix("bindings/python/").removesuffix(".py").replace("/", ".")
        modules[module.removesuffix(".__init__")] = path
    uses = {module: set() for module in modules}
    for module, path in modules.items():
        home = module.split(".") if path.endswith("__init__.py") else module.split(".")[:-1]
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                within = home[:len(home) + 1 - node.level] if node.level else []
                base = ".".join(within + (node.module or "").split(".")).strip(".")
                names = [name if (name := f"{base}.{one.name}") in modules or one.name == "_core"
                         else base for one in node.names]
            else:
                continue
            uses[module].update(name for name in names if name in modules and name != module)
    return uses


def check_modules():
    for group in circles(python_uses()):
        check(False, "bindings/python", f"modules import one another: {', '.join(group)}")
    check(True, "bindings/python", "")


def main():
    for part in (check_includes, check_acyclic, check_ranks, check_folders, check_calls, check_parts,
                 check_used, check_unique,
                 check_words, check_public,
                 check_texts, check_modules):
        part()
    print("\n".join(problems))
    print(f"{checks - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
