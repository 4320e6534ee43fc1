#!/usr/bin/env python3
"""A day of a collector: 274 models with what lies beside them, and tasks, each one command.

  tests/move/day.py [-v]

After each task the folder is looked at here, with nothing of the library: what should have changed
has, and every other file has its bytes.
"""
import argparse
import json
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from managers import dress  # noqa: E402
from run import COMMAND, PNG, Tests, put, tree_of  # noqa: E402

BASES = ["SDXL 1.0", "Pony", "Illustrious", "NoobAI"]
LORA = "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k"
LORAS, PLAIN, SETS = 230, 41, 3  # 274 in all


def file(path, tensors, metadata, seed):
    """Bytes of a model file: F16 zeros but for sixteen bytes by the seed."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, shape in tensors.items():
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    data = bytearray(at)
    data[:16] = random.Random(seed).randbytes(16)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    put(path, struct.pack("<Q", len(text)) + text + data)


def make(top):
    """Path from the top -> base model, of the LoRAs."""
    loras = {}
    for i in range(LORAS):
        base = BASES[i % len(BASES)]
        path = f"incoming/batch {i % 7}/lora_{i:03}.safetensors"
        file(f"{top}/{path}", {LORA + ".lora_down.weight": [4, 2048], LORA + ".lora_up.weight": [640, 4]},
             {"ss_output_name": f"lora_{i:03}", "ss_network_dim": "4", "modelspec.title": f"Style {i}"}, i)
        stem = f"{top}/{path}"[:-len(".safetensors")]
        put(stem + ".civitai.info", json.dumps({"id": 1000 + i, "modelId": 100 + i, "name": "v1", "baseModel": base,
                                                "model": {"name": f"Style {i}", "type": "LORA"},
                                                "trainedWords": [f"word{i}"]}).encode())
        if i % 2 == 0:
            put(stem + ".preview.png", PNG + b"%d" % i)
        if i % 10 == 3:
            dress(f"{top}/{path}", f"word{i}")
            put(stem + ".civitai.info", json.dumps({"id": 1000 + i, "modelId": 100 + i, "name": "v1", "baseModel": base,
                                                    "model": {"name": f"Style {i}", "type": "LORA"}}).encode())
        loras[path] = base
    for i in range(PLAIN):
        file(f"{top}/other/thing {i:02}.safetensors", {"w": [8, 8 + i]}, None, 5000 + i)
    for i in range(SETS):
        weight_map = {}
        for k in (1, 2):
            name = f"model-{k:05}-of-00002.safetensors"
            file(f"{top}/sets/s{i}/{name}", {f"t{k}": [4, 4]}, None, 9000 + 10 * i + k)
            weight_map[f"t{k}"] = name
        put(f"{top}/sets/s{i}/model.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())
    return loras


class Day:
    def __init__(self, tests, top, scratch, verbose):
        self.tests, self.top, self.scratch, self.verbose, self.tasks = tests, top, scratch, verbose, 0
        self.env = dict(os.environ, HOME=scratch, XDG_STATE_HOME=scratch + "/state", XDG_DATA_HOME=scratch + "/data")

    def task(self, what, line, status=0, **more):
        """Standard output of the one command."""
        self.tasks += 1
        words = shlex.split(line)
        done = subprocess.run([*COMMAND, *words], env=self.env, cwd=self.top, capture_output=True, check=False,
                              timeout=300, **more)
        self.what = f"{self.tasks}. {what}: {line}"
        if self.verbose:
            print(self.what)
        self.tests.check(done.returncode == status, self.what, (done.returncode, done.stdout[-400:], done.stderr[-600:]))
        return done.stdout.decode()

    def is_true(self, good, detail=""):
        self.tests.check(good, self.what, detail)

    def at(self, path):
        return os.path.exists(os.path.join(self.top, path))

    def text(self, path):
        with open(os.path.join(self.top, path), encoding="utf-8") as opened:
            return opened.read()

    def trash(self):
        return tree_of(self.scratch + "/data/Trash/files")


def changed(before, after):
    return {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}


def looking(day, loras):
    said = day.task("what is there", "info -r . --tsv -f path,kind,base_model").splitlines()
    rows = [line.split("\t") for line in said[1:]]
    day.is_true(len(rows) == LORAS + PLAIN + SETS, len(rows))
    day.is_true({r[0].removeprefix("./"): r[2] for r in rows if r[1] == "adapter"} == loras, rows[:3])
    pony = [p for p, b in loras.items() if b == "Pony"]
    said = day.task("those for Pony", "find -l -r . --where base_model=Pony").split("\n")
    day.is_true(sorted(s.removeprefix("./") for s in said if s) == sorted(pony), said[:3])
    said = day.task("by a trigger word", "find -l word117 -r .")
    day.is_true([s.removeprefix("./") for s in said.split("\n") if s] == ["incoming/batch 5/lora_117.safetensors"], said)
    said = json.loads(day.task("do all read?", "check -r . --json"))["results"]
    day.is_true(len(said) == LORAS + PLAIN + SETS and all(r["ok"] for r in said), [r for r in said if not r["ok"]][:2])
    day.task("a list of digests", "hash -r incoming/'batch 0' --algo sha256")
    before = tree_of(day.top)
    day.task("a page of all", "catalog . -o page.html")
    day.is_true(changed(before, tree_of(day.top)) == {"page.html"})
    os.remove(day.top + "/page.html")


def moving(day, loras):
    one = "incoming/batch 1/lora_113"
    before = tree_of(day.top)
    day.task("one to another folder", f"mv '{one}.safetensors' best/")
    ends = [".safetensors", ".civitai.info", ".metadata.json", ".json", ".preview.png", ".txt"]
    day.is_true(all(day.at("best/lora_113" + e) and not day.at(one + e) for e in ends), os.listdir(day.top + "/best"))
    day.is_true(json.loads(day.text("best/lora_113.metadata.json"))["file_path"].endswith("/best/lora_113.safetensors"))
    day.task("another name", "mv best/lora_113.safetensors 'best/Rain, at night.safetensors'")
    day.is_true(all(day.at("best/Rain, at night" + e) for e in ends), os.listdir(day.top + "/best"))
    day.task("no, back", "mv --undo")
    day.task("and that, too", "mv --undo")
    day.is_true(tree_of(day.top) == before, changed(before, tree_of(day.top)))
    day.task("how would it be sorted?", "mv -r . --where kind=adapter --to '{base_model}/{name|stem}' --dry-run")
    day.is_true(tree_of(day.top) == before)
    day.task("sort it", "mv -r . --where kind=adapter --to 'sorted/{base_model}/{name|stem}{ (version_name)}'")
    now = {p for p in tree_of(day.top) if p.endswith(".safetensors") and p.startswith("sorted/")}
    # those that LoRA Manager has a name for have that one
    want = {f"sorted/{b}/Style {int(p[-15:-12])} (v1).safetensors" for p, b in loras.items() if int(p[-15:-12]) % 10 != 3}
    day.is_true(len(now & want) > len(want) * .99 or now >= want, sorted(want - now)[:4])
    day.is_true(not any(p.endswith(".safetensors") for p in tree_of(day.top + "/incoming")), "all of them")
    day.task("take that back", "mv --undo")
    day.is_true(tree_of(day.top) == before, sorted(changed(before, tree_of(day.top)))[:4])
    day.task("a model of two shards", "mv sets/s1 'sets/kept apart'")
    day.is_true(day.at("sets/kept apart/model-00002-of-00002.safetensors") and not day.at("sets/s1"))


def noting(day, loras):
    one = "incoming/batch 2/lora_044"
    before = tree_of(day.top)
    day.task("a rating and a word", f"note '{one}.safetensors' rating=5 favourite tags+=rain note='for wet streets'")
    day.is_true(changed(before, tree_of(day.top)) == {one + ".own.json"})
    day.is_true(json.loads(day.text(one + ".own.json"))["rating"] == 5)
    before = tree_of(day.top)
    day.task("a tag for all of a kind", "note -r . --where base_model=Pony tags+=pony")
    pony = {p[:-len(".safetensors")] + ".own.json" for p, b in loras.items() if b == "Pony"}
    day.is_true(changed(before, tree_of(day.top)) == pony, sorted(changed(before, tree_of(day.top)) ^ pony)[:4])
    said = day.task("what I like", "find -l -r . --where 'rating>=4'")
    day.is_true(said.strip().removeprefix("./") == one + ".safetensors", said)
    said = day.task("what I wrote", "find -l 'wet streets' -r .")
    day.is_true(said.strip().removeprefix("./") == one + ".safetensors", said)
    day.task("for the manager, too", f"note '{one}.safetensors' weight=0.6 --for lora-manager")
    kept = json.loads(day.text(one + ".metadata.json"))
    day.is_true(kept["favorite"] is True and json.loads(kept["usage_tips"])["strength"] == 0.6, kept)
    os.rename(f"{day.top}/{one}.safetensors", f"{day.top}/incoming/batch 2/elsewhere.safetensors")
    day.task("renamed by something else", "note --adopt incoming")
    day.is_true(json.loads(day.text("incoming/batch 2/elsewhere.own.json"))["note"] == "for wet streets")
    day.task("weak ones", "note 'other/thing 00.safetensors' 'other/thing 01.safetensors' rating=1")


def tidying(day, loras):
    source = "incoming/batch 3/lora_003"
    for i in range(4):
        with open(f"{day.top}/{source}.safetensors", "rb") as opened:
            put(f"{day.top}/other/again {i}.safetensors", opened.read())
    put(day.top + "/other/again 1.txt", b"mine alone")
    said = json.loads(day.task("what is there twice", "dup -r . --json", 1))
    day.is_true([len(g["paths"]) for g in said["groups"]] == [5], said["groups"])
    before = tree_of(day.top)
    day.task("what would go", "dup -r . --remove")
    day.is_true(tree_of(day.top) == before)
    day.task("those go", "dup -r . --remove --yes")
    gone = changed(before, tree_of(day.top))
    day.is_true({p for p in gone if p.endswith("s")} == {f"other/again {i}.safetensors" for i in range(4)} and day.at(source + ".safetensors"), gone)
    day.is_true(len([p for p in day.trash() if "again" in p]) >= 4, day.trash())
    day.is_true(b"mine alone" in b"".join(open(os.path.join(at, f), "rb").read() for top in (day.top, day.scratch + "/data")
                                          for at, _, fs in os.walk(top) for f in fs if f.endswith(".txt")), "what was written stays")
    day.task("one to the trash", "trash 'incoming/batch 0/lora_000.safetensors'")
    day.is_true(not [p for p in tree_of(day.top) if "lora_000" in p] and {"lora_000.safetensors", "lora_000.civitai.info",
                "lora_000.preview.png"} <= set(day.trash()), day.trash())
    day.task("the weak ones, too", "trash -r . --where 'rating<2' --yes")
    day.is_true(not day.at("other/thing 00.safetensors") and not day.at("other/thing 01.own.json") and day.at("other/thing 02.safetensors"))
    put(day.top + "/other/broken.safetensors", b"<html>not a model")
    day.task("a broken download", "trash other/broken.safetensors")
    day.is_true(not day.at("other/broken.safetensors") and "broken.safetensors" in day.trash(), day.trash())
    day.task("a picture of one", "thumbnail -s 128 'other/thing 02.safetensors' shot.png")
    with open(day.top + "/shot.png", "rb") as opened:
        day.is_true(struct.unpack(">II", opened.read(24)[16:]) == (128, 128))
    put(day.top + "/list.txt", b"")
    day.task("a title", "meta set 'other/thing 03.safetensors' modelspec.title 'Thing three'")
    said = day.task("is it there?", "info -f name 'other/thing 03.safetensors'")
    day.is_true(said.strip() == "Thing three", said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    tests = Tests(options.v)
    with tempfile.TemporaryDirectory(prefix="sft-day-") as scratch:
        top = os.path.join(os.path.realpath(scratch), "models")
        loras = make(top)
        day = Day(tests, top, scratch, options.v)
        for part in (looking, moving, noting, tidying):
            part(day, loras)
        tests.check(day.tasks >= 20, f"{day.tasks} tasks")
        print(f"{day.tasks} tasks with {LORAS + PLAIN + SETS} models")
    print(f"{tests.passed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    sys.exit(main())
