"""Each row of data/ that says what is written for another program, as a header or sidecar that
info reads again."""
import glob
import json
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SOURCE = os.path.join(ROOT, "cli", "commands", "info", "facts_names.c")
PARENTS = {"wan-2.1": "wan"}  # what a name says less of
SFT = sys.argv[1]


def table(text, name):
    body = re.search(r"%s\[\](?:\[2\])? = \{(.*?)\n\};" % name, text, re.S).group(1)
    cells = r'\{ ("[^"]*"), (?:("[^"]*"|NULL), )?("[^"]*") \}'
    return [[c and c.strip('"') for c in row] for row in re.findall(cells, body)]


def written(of, producer):
    """(id, variant, word) of the rows of records of a type that say what is written."""
    rows = []
    for path in sorted(glob.glob(os.path.join(ROOT, "data", "**", "*.txt"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"\n {8,}", " ", f.read())
        for record in re.findall(r"^%s (\S+)[^\n]*\n((?: .*\n)*)" % of, text, re.M):
            for line in re.findall(r"^ +says +%s +(.*)$" % producer, record[1], re.M):
                words = re.findall(r'(?:([a-z]+)=)?(?:"([^"]*)"|(\S+))', line)
                marks = {name: quoted or plain for name, quoted, plain in words if name}
                if "write" in line.split() or "write" in marks:
                    word = marks.get("write") or words[0][1] or words[0][2]
                    rows.append((record[0], marks.get("variant", ""), word))
    return rows


def model(path, metadata):
    header = json.dumps({"__metadata__": metadata,
                         "x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + b"\0")


def facts(folder):
    out = subprocess.run([SFT, "info", "-r", "--jsonl", folder], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    read = {}
    for line in out.splitlines():
        result = json.loads(line)
        read[os.path.basename(result["path"])] = result["model"]
    return read


def value(fact):
    return fact and fact["value"]


def main():
    with open(SOURCE, encoding="utf-8") as f:
        text = f.read()
    specs, labels = written("model", "modelspec"), written("model", "civitai")
    suffixes, types = table(text, "spec_suffixes"), written("kind", "civitai")
    os.mkdir("names")
    for i, (_, _, name) in enumerate(specs):
        model("names/s%d.safetensors" % i, {"modelspec.architecture": name})
    for i, (_, _, suffix) in enumerate(suffixes):
        model("names/k%d.safetensors" % i, {"modelspec.architecture": "flux-1-dev" + suffix})
    for i, (_, _, label) in enumerate(labels):
        model("names/b%d.safetensors" % i, {})
        with open("names/b%d.civitai.info" % i, "w", encoding="utf-8") as f:
            json.dump({"id": 1, "modelId": 2, "baseModel": label}, f)
    for i, (_, _, kind) in enumerate(types):
        model("names/t%d.safetensors" % i, {})
        with open("names/t%d.civitai.info" % i, "w", encoding="utf-8") as f:
            json.dump({"id": 1, "modelId": 2, "model": {"name": "n", "type": kind}}, f)
    read = facts("names")
    for i, (architecture, variant, name) in enumerate(specs):
        found = read["s%d.safetensors" % i]
        wanted = PARENTS.get(architecture, architecture)
        if value(found["architecture"]) != wanted:
            print(name, architecture, value(found["architecture"]))
        if variant not in ("", "NULL", "5b+ti2v") and value(found["variant"]) != variant:
            print(name, variant, value(found["variant"]))
    for i, (kind, _, suffix) in enumerate(suffixes):
        found = read["k%d.safetensors" % i]
        if suffix and value(found["kind"]) != kind:
            print(suffix, kind, value(found["kind"]))
    for i, (architecture, variant, label) in enumerate(labels):
        found = read["b%d.safetensors" % i]
        if value(found["architecture"]) != architecture or value(found["base_model"]) != label:
            print(label, architecture, value(found["architecture"]), value(found["base_model"]))
        if variant not in ("", "NULL") and value(found["variant"]) != variant:
            print(label, variant, value(found["variant"]))
    for i, (kind, _, word) in enumerate(types):
        found = value(read["t%d.safetensors" % i]["kind"])
        if found != kind and not (word == "Checkpoint" and kind == "diffusion_model"):
            print(word, kind, found)
    print(len(specs) > 40, len(labels) > 20, len(suffixes), len(types) > 8)


main()
