"""Cases by name: models and adapters that were once told wrongly, or not at all.

named.tsv has a case a line:

  item      where it is from: an issue's section and number, or a word for the group
  model     LIST/NAME of a model of the lists, or several, joined by " + "; `-`: a LoRA on a layer
            that no model has
  edit      as in near.tsv, or `-`
  layers    LAYOUT:PATTERN: a LoRA on the layers whose names the pattern fits (LAYOUT of subsets.py);
            packed:LAYOUT: quantised (LAYOUT of packed.py); `-`: the model itself
  declared  KEY=TEXT of the header's metadata, or FILE:JSON beside the model; several by " ; "; `-`
  told      ARCHITECTURE@TRUST or `-`, and what else is asked: KEY=VALUE, or KEY=VALUE@TRUST, of kind,
            variant, family, type (of the adapter), conflicts (their number); fits LIST/NAME=WORD,
            what `find --fits` says of it beside that model

Standard library only.
"""
import copy
import json
import os
import re
import subprocess
import tempfile

import judge
import near
import packed
import read
import score
import subsets

HERE = os.path.dirname(os.path.abspath(__file__))


def lists(cases):
    """The models that the cases name, by LIST/NAME."""
    wanted = {name for case in cases for name in case[1].split(" + ")}
    wanted |= {name for case in cases for name, _ in fits(case[5])}
    nothing = read.Entry("-", "-", "", "lora")
    nothing.folded = [("lora_unet_x.lora_down.weight", "F16", [8, 64]),
                      ("lora_unet_x.lora_up.weight", "F16", [64, 8])]
    found = {"-": nothing}
    for library in sorted({name.partition("/")[0] for name in wanted - set(found)}):
        for entry in read.read(library)[1]:
            if "%s/%s" % (library, entry.name) in wanted:
                found["%s/%s" % (library, entry.name)] = entry
    lost = wanted - set(found)
    if lost:
        raise ValueError("named.tsv: no such models: " + " ".join(sorted(lost)))
    return found


def fits(told):
    return [word.removeprefix("fits:").rsplit("=", 1) for word in told.split()
            if word.startswith("fits:")]


def adapter(entry, layout, pattern):
    chosen = [layer for layer in subsets.layers(entry) if re.search(pattern, layer[0])]
    if not chosen:
        raise ValueError("%s has no layers %s" % (entry.name, pattern))
    return subsets.on_layers(entry, chosen, layout)


def built(case, models):
    """The model of a case."""
    _, names, edit, layers, declared, _ = case
    way, _, pattern = layers.partition(":")
    parts = []
    for name in names.split(" + "):
        one = models[name]
        one = near.edited(one, edit) if edit != "-" else copy.copy(one)
        if way == "packed":
            one = packed.packed(one, getattr(packed, pattern))
        elif way != "-":
            one = adapter(one, way, pattern)
        parts.append(one)
    whole = copy.copy(parts[0])
    whole.folded = [row for part in parts for row in part.folded]
    whole.metadata, whole.texts, whole.file = {}, {}, "model.safetensors"
    for one in declared.split(" ; ") if declared != "-" else ():
        key, sign, text = re.match(r"([\w.]+)([=:])(.*)", one).groups()
        (whole.metadata if sign == "=" else whole.texts)[key] = text
    if "adapter_config.json" in whole.texts:
        whole.file = "adapter_model.safetensors"
    return whole


def value(answer, key, trust=False):
    """A fact as text."""
    if key == "conflicts":
        return str(len(answer["conflicts"]))
    if key == "type":
        return (answer["adapter"] or {}).get("type") or "-"
    fact = answer["model"][key]
    if not fact:
        return "-"
    return "%s@%d" % (fact["value"], fact["trust"]) if trust else fact["value"]


def verdicts(folder, path):
    """What `find --fits` says of the models of a folder, by the names of their folders."""
    process = subprocess.run(
        score.command() + ["find", "--all", "--jsonl", "--fits", path, "-r", folder],
        capture_output=True, text=True, check=False)
    rows = map(json.loads, process.stdout.splitlines())
    return {os.path.basename(os.path.dirname(row["path"])): row["fit"] for row in rows}


def run():
    """(name of a check, what is right, what was found) of every case."""
    cases = list(judge.table("named.tsv"))
    models = lists(cases)
    with tempfile.TemporaryDirectory(prefix="named-") as work:
        for number, case in enumerate(cases):
            read.write_folder(os.path.join(work, "cases", "%03d" % number), built(case, models))
        beside = sorted({name for case in cases for name, _ in fits(case[5])})
        for number, name in enumerate(beside):
            read.write_folder(os.path.join(work, "beside", "%03d" % number), models[name],
                              declared=False)
        found = score.answers(os.path.join(work, "cases"))
        for number, case in enumerate(cases):
            name = "%s %s" % (case[0], " ".join(word for word in case[1:5] if word != "-"))
            answer, words = found["%03d" % number], case[5].split()
            told = answer["model"]["architecture"]
            yield name, words[0], "%s@%d" % (told["value"], told["trust"]) if told else "-"
            for word in words[1:]:
                key, _, right = word.partition("=")
                if not key.startswith("fits:"):
                    yield "%s: %s" % (name, key), right, value(answer, key, "@" in right)
            if fits(case[5]):
                said = verdicts(os.path.join(work, "beside"),
                                os.path.join(work, "cases", "%03d" % number))
                for other, right in fits(case[5]):
                    yield ("%s fits %s" % (name, other), right,
                           said.get("%03d" % beside.index(other)))


if __name__ == "__main__":
    for what, right, got in run():
        print("%s %s\t%s\t%s" % ("ok  " if right == got else "FAIL", what, right, got))
