"""docs/conformance.md, from the results of run.py."""
import collections
import re

import cases

MARKS = {"accepts": "+", "refuses": "−", "content": "≠", "crash": "!"}
SAYS = {"accepts": "accepts what it must not", "refuses": "refuses what it must accept",
        "content": "finds other content", "crash": "does not end normally"}
GROUPS = {"valid": "valid files about no rule", "legacy": "the layout of 2022",
          "foreign": "other formats"}

HEAD = """# Conformance of other readers

This page compares readers of safetensors that can be installed by name from PyPI and npm, on the
files of [tests/corpus](../tests/corpus/README.md) and those probes of the shared test data that are
not among them. `make conformance` installs the readers one by one, runs them and renews this page;
[the corpus's page](../tests/corpus/README.md#joining-the-table) says how to add a reader. Each file
is limited to 60 seconds and 2 GiB; a file that ends the reader's process is opened again in a new
one.

A reader should do what all levels of the [rules](format.md) agree on. Where the levels differ (a
repeated name, or an entry that the official package accepts although the written format does not
allow it), either verdict is right, and only content that differs from the official package's is
counted. A reader of headers alone is not asked for bytes, but is expected to refuse whatever the
header and the size of the file show to be wrong. A reader that lacks a dtype refuses files that it
should accept, under R15, R36 and R37. Sets of shards are not covered.

"""


def number(rule):
    return int(rule[1:]) if rule[1:].isdigit() else 100 + list(GROUPS).index(rule)


def label(rule):
    code = cases.make.RULES.get(number(rule))
    return "%s `%s`" % (rule, code) if code else GROUPS[rule]


def table(head, rows):
    lines = ["| %s |" % " | ".join(map(str, row)) for row in [head, ["---"] * len(head)] + rows]
    return "\n".join(lines) + "\n\n"


def versions(reader):
    """The package that is run, with its version; its dependencies are in readers.tsv."""
    return "" if reader["packages"] == "-" else reader["packages"].split()[0].replace("==", " ")


def summary(readers, results):
    rows = []
    for i, reader in enumerate(readers, 1):
        found = collections.Counter(row[2] for row in results.get(reader["id"], []))
        package = re.sub(r"(?<=.)@", " ", versions(reader))
        total = sum(found.values())
        rows.append([i, reader["id"], package, reader["what"]] + (
            [found[kind] or "" for kind in ("agrees", *MARKS)] if total else ["not run"] + [""] * 4))
    return table(["", "reader", "package", "what is run", "agrees"] + list(SAYS.values()), rows)


def tally(results):
    """(rule, reader, outcome) -> names of cases with words."""
    found = collections.defaultdict(list)
    for reader, rows in results.items():
        for name, rule, outcome, word in rows:
            if outcome != "agrees":
                found[rule, reader, outcome].append((name, word))
    return found


def by_rule(readers, results, found):
    sizes = collections.Counter(row[1] for row in next(iter(results.values()), []))
    rows = []
    for rule in sorted(sizes, key=number):
        cells = [" ".join("%s%d" % (mark, len(found[rule, reader["id"], kind]))
                          for kind, mark in MARKS.items() if found.get((rule, reader["id"], kind)))
                 for reader in readers]
        rows.append([label(rule), sizes[rule]] + [cell or "·" for cell in cells])
    return table(["rule", "files"] + list(range(1, len(readers) + 1)), rows)


def examples(readers, found):
    """Per rule and outcome one file, and who is concerned."""
    order = {reader["id"]: i for i, reader in enumerate(readers, 1)}
    rows = []
    for rule in sorted({key[0] for key in found}, key=number):
        for kind in MARKS:
            concerned = sorted((order[key[1]], key) for key in found
                               if key[0] == rule and key[2] == kind)
            if not concerned:
                continue
            files = collections.Counter(name for _, key in concerned for name, _ in found[key])
            example = min(files, key=lambda name: (-files[name], name))
            words = sorted({word for _, key in concerned for name, word in found[key] if word
                            and name == example and kind in ("content", "crash")})
            rows.append([label(rule), SAYS[kind] + (": " + ", ".join(words) if words else ""),
                         ", ".join(str(i) for i, _ in concerned), "`%s`" % plain(example)])
    return table(["rule", "outcome", "readers", "for example"], rows)


def plain(name):
    return name.replace("|", "\\|").replace("`", "'")


def write(path, readers, results):
    found = tally(results)
    text = HEAD
    text += "## Readers\n\n" + summary(readers, results)
    text += "What stands out:\n\n" + "".join("* %s: %s\n" % (reader["id"], reader["note"])
                                             for reader in readers if reader["note"]) + "\n"
    text += ("## Rule by rule\n\nColumns are the readers above. `+3`: accepts three files that it "
             "must not; `−3`: refuses\nthree that it must accept; `≠3`: accepts three but finds "
             "other names, dtypes, shapes, offsets,\nbytes or metadata; `!3`: crashes, hangs or runs "
             "out of memory on three; `·`: agrees on all.\n\n")
    text += by_rule(readers, results, found)
    text += "## One file for each\n\n" + examples(readers, found)
    text += tail()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.rstrip("\n") + "\n")


def tail():
    return """## Not here

* transformers, diffusers, accelerate, timm and PyTorch's `HuggingFaceStorageReader` read through
  the official package, so its rows apply to them too.
* Readers distributed only as source: stable-diffusion.cpp, safetensors-cpp, crates (candle and
  burn use the official one). The row of gguf covers the converter of llama.cpp, and that of
  openvino-genai covers the C code of safetensors.h.
* modelaudit has a parser of its own, but judges more than the format, and pulls in many packages.
* Debian 12 has no reader of safetensors. npm may have more than these three: its search was not
  available when this was written.
"""
