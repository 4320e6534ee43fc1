"""Every string that trainers declare of a base model (declared.tsv, which tools/zoo_declared.py
collects from their sources), and CivitAI's labels, in files whose tensors tell nothing."""
import json
import os

from compose import Model, write

HERE = os.path.dirname(os.path.abspath(__file__))


def rows():
    with open(os.path.join(HERE, "declared.tsv"), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


def files(name, key, word):
    """The model, and what declares it: metadata, or what CivitAI answers."""
    civitai = key == "civitai"
    made = {name + ".safetensors": Model("odd.0.weight F16 8,8",
                                         None if civitai else metadata(key, word))}
    if civitai:
        made[name + ".civitai.info"] = {"id": 2, "modelId": 1, "name": "v", "baseModel": word}
    return made


def metadata(key, word):
    key, _, place = key.partition(":/")
    return {key: json.dumps({place: word}) if place else word}


def fault(model, word, architecture, variant):
    found = {field: (model[field] or {}).get("value")
             for field in ("architecture", "variant", "base_model")}
    if architecture == "-":      # nobody knows it: it is told as it is written
        told = found["architecture"] or found["base_model"]
        return None if told and word.startswith(told) else "%s became %s" % (word, told)
    expected = architecture, None if variant == "-" else variant
    if (found["architecture"], found["variant"]) == expected:
        return None
    return "%s: %s %s, expected %s %s" % (word, found["architecture"], found["variant"], *expected)


def check(folder, tally, run):
    place = os.path.join(folder, "declared-strings")
    table = rows()
    for number, (_, key, word, *_) in enumerate(table):
        write(place, files("%04d" % number, key, word))
    results = json.loads(run(["info", "--json", "--", place]).stdout)["results"]
    by_path = {os.path.basename(one["path"]): one["model"] for one in results}
    for number, (trainer, key, word, architecture, variant) in enumerate(table):
        line = fault(by_path["%04d.safetensors" % number], word, architecture, variant)
        tally.add("declared by %s: %s" % (trainer, key), [line] if line else [])
