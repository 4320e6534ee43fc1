#!/usr/bin/env python3
"""How the built command names the models of the zoo.

usage: tools/zoo_score.py [LIBRARY ...] [--write] [--keep FOLDER] [-v]

Writes every model of tests/zoo as a header-only file, asks `safetensors info -r` about all of
them, once with the config.json that the library writes and once with the tensors alone, and
prints how many were named as themselves. build/zoo_confusions.txt lists what was claimed
wrongly, the commonest claim first. --write puts the table into docs/accuracy.md.
"""
import argparse
import datetime
import json
import os
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "zoo"))

import read  # noqa: E402
import score  # noqa: E402

HEAD = ("| library | | models | itself | family | none | another | kind right | unknown | wrong | "
        "open |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")


def row(library, declared, tally):
    numbers = [sum(tally.outcomes.values())] + [tally.outcomes[o] for o in score.OUTCOMES] + \
        [tally.kinds[k] for k in score.KINDS]
    return "| %s | %s | %s |" % (library, "config" if declared else "tensors",
                                 " | ".join(map(str, numbers)))


GROUPS = {"denoiser": "diffusion models", "checkpoint": "checkpoints", "vae": "VAEs",
          "controlnet": "ControlNets"}
GROUP_HEAD = ("| group | files | right | parent or family | unknown | right, but low trust | "
              "**surely wrong** |\n|---|---:|---:|---:|---:|---:|---:|\n")


def group_of(library, entry):
    """What a file is, for people; None where the list has a row of its own."""
    if library == "unseen" and "adapter" in entry.tasks:
        return "adapters: VideoX-Fun"
    if entry.identity == "none":
        return "models that nobody knows"
    if library in ("loras", "trainers", "presets", "peft") or \
            library == "later" and "adapter" in entry.tasks:
        layout = entry.name.split(".")[0] if library in ("trainers", "presets") else \
            entry.name.rpartition(".")[2] if library == "loras" else \
            "later" if library == "later" else "PEFT"
        return "adapters: " + layout
    return next((GROUPS[task] for task in GROUPS if task in entry.tasks), None)


def groups(tallies):
    """A row of each group: what the tensors alone show."""
    sums = {}
    for (library, declared), tally in tallies.items():
        for entry in read.read(library)[1] if not declared else ():
            group = group_of(library, entry)
            outcome, low = tally.said[entry.name][0], entry.name in tally.low
            counts = sums.setdefault(group, [0] * 6)
            counts[0] += 1
            counts[1 + score.OUTCOMES.index(outcome)] += 1
            counts[5] += low
    sums.pop(None, None)
    order = list(GROUPS.values())
    lines = []
    for group in sorted(sums, key=lambda g: (order.index(g) if g in order else len(order), g)):
        files, itself, family, none, another, low = sums[group]
        lines.append("| %s | %d | %d | %d | %d | %d | %d |"
                     % (group, files, itself, family, none, low, another))
    return "\n".join(lines)


def confusions(tallies):
    """Our claim, and the classes that it is made of."""
    lines = []
    for (library, declared), tally in tallies.items():
        lines.append("# %s, %s" % (library, "with config.json" if declared else "tensors alone"))
        for claim, names in sorted(tally.confusions.items(), key=lambda i: (-len(i[1]), i[0])):
            lines.append("%5d  %-40s %s" % (len(names), claim, " ".join(sorted(names))))
        lines.append("")
    return "\n".join(lines)


def write_table(table, versions):
    path = os.path.join(ROOT, "docs", "accuracy.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin, end = "<!-- table -->\n", "<!-- end -->\n"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    with open(path, "w", encoding="utf-8") as file:
        file.write("%s%s%s; %s.\n\n%s%s%s" % (before, begin, today, versions, table, end, after))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY")
    parser.add_argument("--write", action="store_true", help="put the table into docs/accuracy.md")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the models here")
    parser.add_argument("-v", action="store_true", help="print every model's outcome")
    given = parser.parse_args()
    tallies, versions, lines = {}, [], []
    print(HEAD, end="")
    for library in given.libraries or read.libraries():
        begin = time.monotonic()
        versions.append(read.read(library)[0])
        for declared, tally in score.score(library, keep=given.keep).items():
            tallies[library, declared] = tally
            lines.append(row(library, declared, tally))
            print(lines[-1], flush=True)
            for name, said in sorted(tally.said.items()) if given.v else ():
                print("   ", json.dumps([name] + said))
        print("    %.0f s" % (time.monotonic() - begin), file=sys.stderr)
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with open(os.path.join(ROOT, "build", "zoo_confusions.txt"), "w", encoding="utf-8") as file:
        file.write(confusions(tallies))
    if given.write:
        known = sorted({v for line in versions for v in line.split(", ")})
        write_table("%s%s\n\n%s%s\n" % (GROUP_HEAD, groups(tallies), HEAD, "\n".join(lines)),
                    ", ".join(known))


if __name__ == "__main__":
    main()
