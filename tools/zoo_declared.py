#!/usr/bin/env python3
"""What trainers declare of the models that they train: tests/info/declared.tsv.

usage: tools/zoo_declared.py CLONES [--update]

Reads the sources of the trainers in the folder CLONES (tools/oracles.sh names them) and prints
what they declare that the list lacks; --update adds it, with "?" as the id: which id it is, a
person decides. What a newer version no longer declares stays: files that declare it remain.
"""
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, "tests", "info", "declared.tsv")
HEAD = "# trainer, key, what it declares; architecture, variant (-: none, or unknown and why)\n"
BASE = "ss_base_model_version"
SPEC = "modelspec.architecture"
MODULE = "ss_network_module"


def texts(clones, pattern):
    for path in sorted(glob.glob(os.path.join(clones, pattern), recursive=True)):
        with open(path, encoding="utf-8") as file:
            yield path, file.read()


def onetrainer(clones):
    for _, text in texts(clones, "OneTrainer/resources/sd_model_spec/*.json"):
        yield SPEC, json.loads(text)[SPEC]
    for _, text in texts(clones, "OneTrainer/modules/util/enum/ModelType.py"):
        names = text[text.index("class ModelType"):text.index("def __str__")]
        for name in re.findall(r"^    [A-Z0-9_]+ = '(\w+)'", names, re.M):
            yield "ot_config:/model_type", name


def ai_toolkit(clones):
    for _, text in texts(clones, "ai-toolkit/[te]*/**/*.py"):
        for word in re.findall(r"'ss_base_model_version'\] = '([^']+)'", text):
            yield BASE, word
        for word in re.findall(r"^    arch = ['\"]([^'\"]+)['\"]", text, re.M):
            if word != "example":
                yield BASE, word
        for body in re.findall(r"def get_base_model_version.*?(?=\n    def |\Z)", text, re.S):
            for word in re.findall(r"return ['\"]([^'\"]+)['\"]", body):
                if word != "example.1":
                    yield BASE, word


def sd_scripts(clones):
    for _, text in texts(clones, "sd-scripts/library/*.py"):
        for word in re.findall(r"^MODEL_VERSION_\w+ = \"([^\"]+)\"", text, re.M):
            yield BASE, word
        for word in re.findall(r"^ARCH_\w+ = \"([^\"]+)\"", text, re.M):
            yield SPEC, word + "/lora"
    for word in ("sd_v1", "sd_v1_v", "sd_v2", "sd_v2_v", "medium", "5-medium", "5-large", "anima"):
        yield BASE, word        # composed where they are written
    for word in ("-medium", "-5-medium", "-5-large"):
        yield SPEC, "stable-diffusion-3%s/lora" % word
    yield from modules(clones, "sd-scripts/networks/*.py")


def musubi_tuner(clones):
    for _, text in texts(clones, "musubi-tuner/src/musubi_tuner/**/*.py"):
        for word in re.findall(r"^ARCHITECTURE_\w+_FULL = \"([^\"]+)\"", text, re.M):
            yield BASE, word
        for word in re.findall(r"^ARCH_\w+ = \"([^\"]+)\"", text, re.M):
            yield SPEC, word + "/lora"
    yield from modules(clones, "musubi-tuner/src/musubi_tuner/networks/*.py")


def modules(clones, pattern):
    """Modules of networks of one base model; the others serve several."""
    for path, text in texts(clones, pattern):
        name = os.path.basename(path)[:-3]
        if re.match(r"(lora|oft)_", name) and "def create_" in text:
            if name not in ("lora_diffusers", "lora_fa"):
                yield MODULE, "networks." + name


def simpletuner(clones):
    """Family, and one of its flavours, which the repository of the base model stands for."""
    for _, text in texts(clones, "SimpleTuner/simpletuner/helpers/models/*/model.py"):
        for family, name in re.findall(r"\.register\(\s*\"([\w.-]+)\",\s*(\w+)\)", text):
            text_of = text[text.index("class %s(" % name):]
            paths = re.search(r"HUGGINGFACE_PATHS.*?= \{(.*?)\n    \}", text_of, re.S)
            flavours = re.findall(r"^        \"([\w.-]+)\":", paths.group(1), re.M) if paths else []
            for flavour in [""] + flavours:
                yield SPEC, (family + "-" * bool(flavour) + flavour).lower() + "/lora"


TRAINERS = {"OneTrainer": onetrainer, "ai-toolkit": ai_toolkit, "sd-scripts": sd_scripts,
            "musubi-tuner": musubi_tuner, "SimpleTuner": simpletuner}


def read_list():
    try:
        with open(LIST, encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    except FileNotFoundError:
        return []


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    if len(words) != 1:
        sys.exit(__doc__.strip())
    rows = read_list()
    known = {tuple(row[:3]) for row in rows}
    declared = {(trainer, key, word) for trainer, read in TRAINERS.items()
                for key, word in read(words[0])}
    fresh = sorted(declared - known)
    for row in fresh:
        print(*row, sep="\t")
    if "--update" in sys.argv and fresh:
        rows += [[*row, "?", ""] for row in fresh]
        with open(LIST, "w", encoding="utf-8") as file:
            file.write(HEAD)
            file.writelines("\t".join(row) + "\n" for row in sorted(rows))


if __name__ == "__main__":
    main()
