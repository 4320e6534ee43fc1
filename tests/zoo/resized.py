"""Models a quarter larger than those of the lists, and LoRAs for them: nobody has them, so none is
surely any model. Standard library only.
"""
import random

import read
import subsets

# Sizes from here on are larger by a quarter, where that is a whole number.
LEAST = 96
# What is sure by names alone: no rows tell their modules.
UNSIZED = {"unidiffuser", "wuerstchen-diffnext"}


def resized(entry):
    made = read.Entry(entry.library, entry.name, entry.identity, "")
    made.folded = [(name, dtype, [n * 5 // 4 if n >= LEAST and n % 4 == 0 else n for n in shape])
                   for name, dtype, shape in entry.folded]
    return made


def models():
    """Of the lists: denoisers by their own names, once each."""
    for library in ("comfy", "later", "diffsynth", "diffusers"):
        for entry in read.read(library)[1]:
            if "denoiser" in entry.tasks and not entry.name.endswith((".prefixed", ".checkpoint")):
                yield resized(entry)


def run(seed=1):
    """(number of models and LoRAs, those that are surely a model)."""
    dice, made = random.Random(seed), list(models())
    for entry in list(made):
        kind, layout = dice.choice(subsets.KINDS[:3]), dice.choice(sorted(subsets.LAYOUTS))
        one = subsets.adapter(entry, kind, layout, dice)
        made += [one] if one else []
    answers = zip(made, map(subsets.sure, subsets.ask(made)))
    return len(made), ["%s: %s" % (one.name, value) for one, value in answers
                       if value and value not in UNSIZED]
