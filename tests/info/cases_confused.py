"""Public classes that were surely named as another model, each with its config.json and without."""
import json
import os
import sys

from compose import Model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "zoo"))

import read  # noqa: E402

CLASSES = """OlmoForCausalLM Olmo2ForCausalLM Olmo3ForCausalLM Exaone4ForCausalLM AfmoeForCausalLM
CohereForCausalLM Cohere2ForCausalLM MiniMaxM2ForCausalLM PhimoeForCausalLM GraniteSWAForCausalLM
DetrForObjectDetection Blip2ForConditionalGeneration""".split()


def cases():
    zoo = {entry.name: entry for entry in read.read("transformers")[1]}
    for name in CLASSES:
        entry = zoo[name]
        model = Model([(tensor, dtype, shape, None) for tensor, dtype, shape in entry.tensors()])
        yield name, {"m/model.safetensors": model,
                     "m/config.json": json.loads(entry.texts["config.json"])}
        yield name + ".tensors", {"m/model.safetensors": model}


CASES = dict(cases())
