"""LoRAs on parts of models: whatever layers one adapts, it is never surely another model's.

Of models of the lists, layers as trainers might take them (attention alone, all of the blocks, the
first of them, one layer, any), under the names of four trainers; and, for each model, halves and
thirds of the blocks, every second, one, one stack, and layers outside of them, in nine layouts.
Standard library only.
"""
import collections
import os
import random
import re
import tempfile

import read
import score
from judge import SURE, Judge, plain

RANK = 8
ATTENTION = re.compile(r"attn|attention|\bto_[qkv]\b|qkv|\.[qkvo]$|_[qkvo]$")
FIRST = re.compile(r"\.(\d+)\.")


def layers(entry):
    """(name, out, in) of every layer of two dimensions."""
    return [(name.removesuffix(".weight").removeprefix("model.diffusion_model."), *shape)
            for name, _, shape in entry.tensors() if name.endswith(".weight") and len(shape) == 2]


def number(name):
    match = FIRST.search(name)
    return int(match.group(1)) if match else 1000


def chosen(kind, names, dice):
    if kind == "attention":
        return [n for n in names if ATTENTION.search(n[0])]
    if kind == "blocks":
        return [n for n in names if FIRST.search(n[0])]
    if kind == "first":
        most = dice.randrange(1, 12)
        return [n for n in names if number(n[0]) < most]
    if kind == "leaf":
        leaf = dice.choice(names)[0].rpartition(".")[2]
        return [n for n in names if n[0].endswith("." + leaf)]
    return dice.sample(names, 1 if kind == "one" else dice.randrange(1, min(60, len(names)) + 1))


LAYOUTS = {
    "kohya": lambda name: ("lora_unet_" + name.replace(".", "_"), "lora_down", "lora_up"),
    "dotted": lambda name: ("diffusion_model." + name, "lora_A", "lora_B"),
    "peft": lambda name: ("base_model.model." + name, "lora_A", "lora_B"),
    "diffusers": lambda name: ("transformer." + name, "lora.down", "lora.up"),
}
# What others write, which run() does not draw from.
OTHERS = {
    "onetrainer": lambda name: ("lora_transformer_" + name.replace(".", "_"),
                                "lora_down", "lora_up"),
    "musubi": lambda name: ("diffusion_model." + name, "lora_down", "lora_up"),
    "diffsynth": lambda name: (name, "lora_A.default", "lora_B.default"),
    "bare": lambda name: (name, "lora_A", "lora_B"),
    "unet": lambda name: ("unet." + name, "lora_A", "lora_B"),
}
KINDS = ("attention", "blocks", "first", "leaf", "one", "any")


def adapter(entry, kind, layout, dice):
    """An entry of the layers, or None."""
    found = layers(entry)
    found = chosen(kind, found, dice) if found else []
    return on_layers(entry, found, layout, kind) if found else None


def on_layers(entry, found, layout, kind=""):
    name = "%s.%s.%s" % (entry.name, kind, layout)
    made = read.Entry(entry.library, name, entry.identity, "lora")
    stem_of = LAYOUTS.get(layout) or OTHERS[layout]
    for name, out, width in found:
        stem, down, up = stem_of(name)
        made.folded += [("%s.%s.weight" % (stem, down), "F16", [RANK, width]),
                        ("%s.%s.weight" % (stem, up), "F16", [out, RANK])]
    return made


def denoisers(libraries=("comfy", "diffusers"), forms=(".checkpoint",)):
    entries = []
    for library in libraries:
        entries += [e for e in read.read(library)[1]
                    if "denoiser" in e.tasks and not e.name.endswith(forms)]
    for entry in entries:  # what an adapter may surely be called is told of trainers' lists
        entry.library = "diffusers" if entry.library == "diffusers" else "trainers"
    return entries


def stack(name):
    """Of a layer of a block: what all blocks of its stack begin with, and which it is."""
    match = re.match(r"(.*?)\.(\d+)\.", name)
    return (match.group(1), int(match.group(2))) if match else (None, 0)


# (name, whether a layer is meant: its stack, the block, the number of blocks, the stack's place)
PARTS = (
    ("half", lambda s, i, n, place: s and i < n // 2),
    ("second-half", lambda s, i, n, place: s and i >= n // 2),
    ("third", lambda s, i, n, place: s and i < (n + 2) // 3),
    ("odd", lambda s, i, n, place: s and i % 2),
    ("one-block", lambda s, i, n, place: s and i == n // 2),
    ("twelve", lambda s, i, n, place: s and i < 12),
    ("first-stack", lambda s, i, n, place: s and place == 0),
    ("last-stack", lambda s, i, n, place: s and place == -1),
    ("outside", lambda s, i, n, place: not s),
)


def part(found, means):
    stacks = collections.defaultdict(int)
    for name, _, _ in found:
        stacks[stack(name)[0]] = max(stacks[stack(name)[0]], stack(name)[1] + 1)
    order = sorted(filter(None, stacks))
    places = {one: -1 if one == order[-1] and len(order) > 1 else place
              for place, one in enumerate(order)}
    return [layer for layer in found
            for one, block in [stack(layer[0])] if means(one, block, stacks[one], places.get(one))]


def ask(made):
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        for place, one in enumerate(made):
            read.write_folder(os.path.join(folder, "%04d" % place), one)
        answers = score.answers(folder)
    return [answers["%04d" % place] for place in range(len(made))]


def sure(answer):
    told = answer["model"]["architecture"]
    return told["value"] if told and told["trust"] >= SURE else None


def run(count, seed=1):
    """(number of adapters, those that are surely another model's, those with a conflict)."""
    dice, entries, made = random.Random(seed), denoisers(), []
    judge = Judge(entries)
    while len(made) < count:
        entry = dice.choice(entries)
        one = adapter(entry, dice.choice(KINDS), dice.choice(sorted(LAYOUTS)), dice)
        if one:
            made.append((one, entry))
    wrong, conflicts = [], []
    for (one, entry), answer in zip(made, ask([one for one, _ in made])):
        value = sure(answer)
        if value and not judge.may_be_sure(entry, value):
            wrong.append("%s: %s" % (one.name, value))
        if answer["conflicts"]:
            conflicts.append(one.name)
    return len(made), wrong, conflicts


def parts(seed=1):
    """One part of each denoiser: (number, right or a parent, surely another model's or torn)."""
    dice, made = random.Random(seed), []
    entries = denoisers(("comfy", "later", "diffsynth", "diffusers", "makers"),
                        (".checkpoint", ".prefixed"))
    judge = Judge(entries)
    for entry in entries:
        (kind, means), layout = dice.choice(PARTS), dice.choice(sorted(LAYOUTS) + sorted(OTHERS))
        found = part(layers(entry), means)
        if found:
            made.append((on_layers(entry, found, layout, kind), entry))
    right, wrong = 0, []
    for (one, entry), answer in zip(made, ask([one for one, _ in made])):
        told, value = answer["model"]["architecture"], sure(answer)
        right += bool(told) and (plain(told["value"]) in judge.own_ids(entry)
                                 or judge.is_parent(entry, told["value"], False))
        if (value and not judge.may_be_sure(entry, value)) or answer["conflicts"]:
            wrong.append("%s: %s" % (one.name, value or "conflict"))
    return len(made), right, wrong


def pairs(count, seed=1):
    """Adapters on all blocks, or the attention, of two models: (number, those that are surely of
    one of them, those with a conflict)."""
    dice, entries, made = random.Random(seed), denoisers(), []
    judge = Judge(entries)
    while len(made) < count:
        one, other = (adapter(dice.choice(entries), dice.choice(KINDS[:2]), "dotted", dice)
                      for _ in range(2))
        if not one or not other or {n for n, _, _ in one.folded} & {n for n, _, _ in other.folded}:
            continue
        both = read.Entry("subsets", "%s + %s" % (one.name, other.name), "", "lora")
        both.folded = one.folded + other.folded
        made.append((both, one, other))
    wrong, torn = [], 0
    for (both, one, other), answer in zip(made, ask([both for both, _, _ in made])):
        value = sure(answer)
        if value and sum(judge.may_be_sure(part, value) for part in (one, other)) < 2:
            wrong.append("%s: %s" % (both.name, value))
        torn += bool(answer["conflicts"])
    return len(made), wrong, torn


if __name__ == "__main__":
    import sys
    total, bad, torn = run(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(bad + ["conflict: " + name for name in torn]))
    print(total, len(bad), len(torn))
    total, bad, torn = pairs(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(bad))
    print(total, len(bad), torn)
