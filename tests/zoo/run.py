#!/usr/bin/env python3
"""The zoo: is every model named as itself or as its family, and none surely as another?

  tests/zoo/run.py [-v] [LIBRARY ...]

Asks the command about every model of the lists and holds it to floors.tsv. docs/accuracy.md tells
what the numbers mean; tools/zoo_score.py prints them, and what was named wrongly.
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import judge  # noqa: E402
import named  # noqa: E402
import near  # noqa: E402
import packed  # noqa: E402
import read  # noqa: E402
import resized  # noqa: E402
import rows  # noqa: E402
import score  # noqa: E402
import subsets  # noqa: E402

# Of a library's classes, those that have an entry.
MADE = 0.95
# Rows of signatures that fit at least one model: the others are of names that no list holds.
FITTING = 422
# LoRAs on parts of models.
SUBSETS = 200
# Models packed, and those of them that stay sure.
PACKED, PACKED_SURE = 500, 410
# LoRAs on a part of each denoiser, and those of which the model, or what it descends from, is told.
PARTS, PARTS_RIGHT = 270, 205
# LoRAs on parts of two models, and how many of these contradict themselves: the others show both.
PAIRS, TORN = 200, 75
# Near misses.
NEAR = 244
# Cases by name, and what is asked of them.
NAMED = 400
# Models and LoRAs a quarter larger.
RESIZED = 550
PASSED, FAILED = [], []


def check(right, name, found=None):
    (PASSED if right else FAILED).append(name)
    if not right or "-v" in sys.argv:
        said = "" if found is None else ", found %s" % (found,)
        print("%s %s%s" % ("ok  " if right else "FAIL", name, said))


def check_lists():
    """A list that lost its models would pass every floor in percent."""
    for library, least in judge.table("sizes.tsv"):
        _, entries, failures = read.read(library)
        check(len(entries) >= int(least), "%s has %s models" % (library, least), len(entries))
        share = len(entries) / (len(entries) + len(failures))
        check(share >= MADE, "%s: %d %% of its classes" % (library, MADE * 100),
              "%.1f %%" % (share * 100))
        check(len({e.name for e in entries}) == len(entries), "%s: each once" % library)


def check_reader():
    check(list(read.unfold("a{0-1}.{9-10}.b")) == ["a0.9.b", "a0.10.b", "a1.9.b", "a1.10.b"],
          "names unfold")
    entry = read.Entry("none", "One", "one", "")
    entry.folded = [("w.{0-1}", "F16", [2, 3]), ("v", "F32", [])]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        read.write_model(path, entry)
        with open(path, "rb") as file:
            head = file.read(8)
        size = os.path.getsize(path)
    check(size == 8 + int.from_bytes(head, "little") + 4 + 2 * 12, "a file has its true size", size)


def fact(value, trust):
    return value and {"value": value, "trust": trust, "source": "tensors", "others": []}


def answer(kind=None, architecture=None, trust=100, family=None, adapter=None):
    return {"model": {"kind": fact(kind, 100), "architecture": fact(architecture, trust),
                      "family": fact(family, 100)}, "adapter": adapter and {"type": adapter}}


def claim(said):
    model = said["model"]
    named = [model[key]["value"] for key in ("kind", "architecture", "family") if model[key]]
    return " ".join(named + list((said["adapter"] or {}).values()))


def check_judge():
    """The judge tells right from wrong: what each answer is worth."""
    entries = {}
    for library in ("transformers", "diffusers", "peft"):
        found = read.read(library)[1]
        entries.update({e.name: e for e in found})
    judged = judge.Judge(entries.values())
    for name, said, outcome, kind in (
            ("LlamaForCausalLM", answer("language_model", "llama"), "itself", "right"),
            ("LlamaForCausalLM", answer("vae", "qwen3"), "another", "wrong"),
            ("Olmo2ForCausalLM", answer("language_model", "qwen3"), "another", "right"),
            ("Olmo2ForCausalLM", answer("unknown", "qwen3", 60), "none", "unknown"),
            ("Olmo2ForCausalLM", answer("unknown", family="llama-like"), "family", "unknown"),
            ("LlamaForCausalLM", answer(None, family="llama-like"), "family", "unknown"),
            ("LlamaForCausalLM", answer(None, family="bert-like"), "another", "unknown"),
            ("GPT2LMHeadModel", answer("language_model", "gpt-2"), "itself", "right"),
            ("XLMRobertaModel", answer("text_encoder", "roberta"), "family", "right"),
            ("DetrForObjectDetection", answer("language_model", "bart"), "another", "wrong"),
            ("UNet2DConditionModel@sdxl", answer("diffusion_model", "sdxl"), "itself", "right"),
            ("UNet2DConditionModel", answer("diffusion_model", "sdxl"), "another", "right"),
            ("WanTransformer3DModel", answer("diffusion_model", "wan-2.1"), "itself", "right"),
            ("ChronoEditTransformer3DModel", answer("checkpoint", "wan"), "family", "wrong"),
            ("adalora.llama", answer("adapter", adapter="adalora"), "itself", "right"),
            ("adalora.llama", answer("adapter", adapter="lora"), "another", "right"),
            ("adalora.llama", answer("adapter", "gemma", adapter="adalora"), "another", "right")):
        entry = entries[name]
        found = judged.outcome(entry, said)[0], judged.kind(entry, said)[0]
        check(found == (outcome, kind), "%s answered with %s is %s, kind %s" % (
            name, claim(said), outcome, kind), found)


def check_floors(libraries, each_row):
    floors = {}
    for library, said, measure, bound in judge.table("floors.tsv"):
        floors.setdefault(library, []).append((said, measure, int(bound)))
    check(sorted(floors) == read.libraries(), "every list has floors")
    for library in libraries or sorted(floors):
        # Where wrong claims are known and counted (a bound above 0), a row may make them.
        known = any(measure == "another" and bound for _, measure, bound in floors[library])
        tallies = score.score(library, visit=None if known else each_row.visit)
        for claim, classes in sorted(tallies[False].confusions.items()) if not known else ():
            check(False, "%s, tensors: %s is claimed of no other class" % (library, claim),
                  " ".join(classes))
        for declared, tally in tallies.items():
            check(not tally.conflicts, "%s, %s: no model contradicts itself" % (
                library, "config" if declared else "tensors"), " ".join(tally.conflicts[:20]))
        for said, measure, bound in floors[library]:
            tally = tallies[said == "config"]
            counts = {**tally.outcomes, "kind wrong": tally.kinds["wrong"],
                      "named": tally.outcomes["itself"] + tally.outcomes["family"]}
            count = counts.get(measure, 0)
            least = measure in ("itself", "named")
            check(count >= bound if least else count <= bound, "%s, %s: %s %s %d" % (
                library, said, measure, "at least" if least else "at most", bound), count)


def check_rows(each_row, whole):
    """Every row by itself, whichever of them decides."""
    for row in each_row.all:
        name = "%s: %s (%d) by %s" % (row.table, row.claim, row.trust, row.clauses)
        check(row.trust >= rows.SURE or row.trust <= rows.GUESS, "%s is sure or a guess" % name)
        wrong = each_row.wrong.get(row, [])
        if row.trust >= rows.SURE:
            check(not wrong, "%s fits no other class" % name, " ".join(wrong[:8]))
    for (one, other), models in sorted(each_row.pairs.items()):
        check(False, "%s and %s hold together with a relation" % (one, other), " ".join(models[:8]))
    fitting = sum(row in each_row.fitting for row in each_row.all)
    check(fitting >= FITTING or not whole, "%d rows fit models" % FITTING, fitting)


def check_near():
    """A model with a little changed is no longer what it was."""
    cases = near.run()
    check(len(cases) >= NEAR, "%d near misses" % NEAR, len(cases))
    for (library, model, named, edit, then, family), found, beside in cases:
        name = "%s, %s" % (library, model)
        check(found[0] == named, "%s is named %s" % (name, named), found[0])
        check(beside == (then, family), "%s with %s is named %s, of family %s" % (
            name, edit, then, family), "%s, %s" % beside)


def check_named():
    """What was once told wrongly, or not at all."""
    cases = list(named.run())
    check(len(cases) >= NAMED, "%d named cases" % NAMED, len(cases))
    for name, right, found in cases:
        check(found == right, "%s: %s" % (name, right), found)


def check_packed():
    """Quantised, each model by another layout, and some by all."""
    every = [e for library in ("comfy", "diffusers") for e in read.read(library)[1]]
    judged, ways = judge.Judge(every), len(packed.LAYOUTS)
    found = packed.run(every, lambda n: packed.LAYOUTS[n % ways:n % ways + 1])
    sure = sum(packed.sure(told) is not None for _, _, _, told in found)
    check(len(found) >= PACKED, "%d packed models" % PACKED, len(found))
    check(sure >= PACKED_SURE, "%d packed models are surely known" % PACKED_SURE, sure)
    for entry, layout, whole, told in found:
        name = "%s in %s" % (entry.name, layout)
        if packed.wrong(judged, entry, whole, told):
            check(False, "%s is surely no other" % name, packed.sure(told))
    named = {"ZImageTransformer2DModel", "Flux2Transformer2DModel@flux.2-klein-4b",
             "Flux2Transformer2DModel@flux.2-klein-9b"}
    few = [e for e in every if e.name in named]
    check(len(few) == len(named), "%d models in every layout" % len(named), len(few))
    for entry, layout, whole, told in packed.run(few, lambda n: packed.LAYOUTS):
        value = packed.sure(told)
        seen = not (layout == "hqq" or layout.startswith("nf4") and "flux" in entry.name.lower())
        check(value == (packed.sure(whole) if seen else None),
              "%s in %s is told %s" % (entry.name, layout, "surely" if seen else "at 60"), value)


def check_subsets():
    """LoRAs on parts of models."""
    count, wrong, conflicts = subsets.run(SUBSETS)
    check(count == SUBSETS, "%d LoRAs on parts of models" % SUBSETS, count)
    for name in wrong:
        check(False, "a LoRA on a part of a model is surely of no other", name)
    check(not conflicts, "no such LoRA contradicts itself", " ".join(conflicts[:8]))
    count, right, wrong = subsets.parts()
    check(count >= PARTS, "%d LoRAs on a part of each denoiser" % PARTS, count)
    check(right >= PARTS_RIGHT, "%d of these are told" % PARTS_RIGHT, right)
    for name in wrong:
        check(False, "a LoRA on a part of a denoiser is surely of no other", name)
    count, wrong, torn = subsets.pairs(PAIRS)
    check(count == PAIRS, "%d LoRAs on parts of two models" % PAIRS, count)
    for name in wrong:
        check(False, "a LoRA on parts of two models is surely of neither", name)
    check(torn >= TORN, "%d of these are conflicts" % TORN, torn)


def check_resized():
    """Sizes that nobody has."""
    count, wrong = resized.run()
    check(count >= RESIZED, "%d models and LoRAs of other sizes" % RESIZED, count)
    for name in wrong:
        check(False, "a model of other sizes is surely none", name)


def main():
    libraries = [a for a in sys.argv[1:] if a != "-v"]
    each_row = rows.Rows(score.ROOT)
    check_reader()
    check_lists()
    check_judge()
    check_floors(libraries, each_row)
    check_rows(each_row, not libraries)
    check_near()
    check_named()
    check_packed()
    check_subsets()
    check_resized()
    print("%d passed, %d failed" % (len(PASSED), len(FAILED)))
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
