#!/usr/bin/env python3
"""Three managers find the same after mv, note, dup and --undo as before.

  tests/move/managers.py

What each makes of a model's folder is restated here from how they behave: ComfyUI LoRA Manager
(NAME.metadata.json; a sidecar without one of its eight keys makes it skip the model, and one whose
paths are stale makes it write), Civitai Helper (NAME.civitai.info, NAME.preview.png) and the
extra networks of AUTOMATIC1111 and Forge (NAME.json, pictures, NAME.txt).
"""
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from run import COMMAND, PNG, Tests, model, put, tree_of  # noqa: E402

import random  # noqa: E402

# ── LoRA Manager ──

NEEDED = {"file_name": str, "model_name": str, "file_path": str, "size": int, "modified": (int, float), "sha256": str,
          "base_model": str, "preview_url": str}
TYPES = {"preview_nsfw_level": int, "notes": str, "tags": list, "modelDescription": str, "favorite": bool, "trainedWords": list,
         "usage_tips": str, "civitai": (dict, type(None)), "from_civitai": bool}
MANAGER_PICTURES = [".webp", ".preview.webp", ".preview.png", ".preview.jpeg", ".preview.jpg", ".preview.mp4", ".png", ".jpeg",
                    ".jpg", ".mp4", ".gif", ".webm", ".avif", ".jxl", ".example.0.jpeg"]


def lora_manager(path):
    """What it shows; "skipped" of a sidecar that it cannot take, "stale" of what it would write anew."""
    stem = os.path.splitext(path)[0]
    if not os.path.exists(stem + ".metadata.json"):
        return None
    with open(stem + ".metadata.json", encoding="utf-8") as file:
        data = json.load(file)
    wrong = [k for k, t in NEEDED.items() if not isinstance(data.get(k), t) or isinstance(data.get(k), bool)]
    wrong += [k for k, t in TYPES.items() if k in data and not isinstance(data[k], t)]
    if wrong:
        return {"skipped": wrong}
    stale = []
    if data["file_name"] != os.path.basename(stem):
        stale.append("file_name")
    if data["file_path"] != path.replace(os.sep, "/"):
        stale.append("file_path")
    picture = data["preview_url"]
    if picture and (not os.path.exists(picture) or os.path.dirname(picture) != os.path.dirname(path)) and \
            any(os.path.exists(stem + end) for end in MANAGER_PICTURES):
        stale.append("preview_url")
    tips = json.loads(data.get("usage_tips") or "{}")
    return {"stale": stale, "name": data["model_name"], "base": data["base_model"], "notes": data.get("notes", ""),
            "tags": data.get("tags", []), "words": data.get("trainedWords", []), "strength": tips.get("strength"),
            "favorite": data.get("favorite", False), "picture": picture and os.path.exists(picture),
            "id": (data.get("civitai") or {}).get("id")}


# ── The web UI ──

def web_ui(path):
    stem = os.path.splitext(path)[0]
    found = {}
    if os.path.exists(stem + ".json"):
        with open(stem + ".json", encoding="utf-8") as file:
            data = json.load(file)
        found = {"description": data.get("description"), "words": data.get("activation text", ""),
                 "strength": float(data.get("preferred weight", 0.0)), "negative": data.get("negative text", ""),
                 "version": data.get("sd version", "Unknown"), "notes": data.get("notes", "")}
    ends = sum(([f".{e}", f".preview.{e}"] for e in ("png", "jpg", "jpeg", "webp", "gif")), [])
    found["picture"] = next((end for end in ends if os.path.isfile(stem + end)), None)
    for end in (".txt", ".description.txt"):
        if os.path.exists(stem + end):
            with open(stem + end, encoding="utf-8", errors="replace") as file:
                found["text"] = file.read()
            break
    return found


# ── Civitai Helper ──

def civitai_helper(path):
    stem, end = os.path.splitext(path)
    if end not in (".bin", ".pt", ".safetensors", ".ckpt") or not os.path.exists(stem + ".civitai.info"):
        return None
    with open(stem + ".civitai.info", encoding="utf-8") as file:
        data = json.load(file)
    return {"id": data.get("id"), "model": data.get("modelId"), "words": data.get("trainedWords", []), "name": data.get("name"),
            "base": data.get("baseModel"), "picture": os.path.isfile(stem + ".preview.png")}


def seen(path):
    path = os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path)
    return lora_manager(path), web_ui(path), civitai_helper(path)


# ── A model with all three ──

def dress(path, words="one, two"):
    """Sidecars as the three write them."""
    here = os.path.realpath(os.path.dirname(path))
    stem = os.path.splitext(path)[0]
    name = os.path.basename(stem)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    put(stem + ".metadata.json", json.dumps({
        "file_name": name, "model_name": "Neön", "file_path": f"{here}/{name}.safetensors", "size": os.path.getsize(path),
        "modified": 1700000000.25, "sha256": digest, "base_model": "SDXL 1.0", "preview_url": f"{here}/{name}.preview.png",
        "preview_nsfw_level": 1, "notes": f"see {here}/{name}.safetensors", "from_civitai": True, "tags": ["city"], "favorite": True,
        "civitai": {"id": 77, "modelId": 7}, "usage_tips": "{\"strength\": 0.7}", "trainedWords": words.split(", "),
        "unknown to us": [1, {"file_path": "x"}]}, indent=2, ensure_ascii=False).encode())
    put(stem + ".json", json.dumps({"description": "d", "sd version": "SDXL", "activation text": words, "preferred weight": 0.7,
                                    "negative text": "blur", "notes": "n"}, indent=4).encode())
    put(stem + ".civitai.info", json.dumps({"id": 77, "modelId": 7, "name": "v1", "baseModel": "SDXL 1.0",
                                            "trainedWords": words.split(", ")}, indent=4).encode())
    put(stem + ".preview.png", PNG)
    put(stem + ".txt", b"a description\n")


class World:
    def __init__(self, tests, scratch):
        self.tests, self.top = tests, os.path.join(scratch, "tree")
        self.env = dict(os.environ, XDG_STATE_HOME=scratch + "/state", XDG_DATA_HOME=scratch + "/data", HOME=scratch)
        os.mkdir(self.top)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def make(self, name, seed=1, dressed=True):
        path = self.path(name + ".safetensors")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, model(random.Random(seed), ["a.weight"]))
        if dressed:
            dress(path)
        return path

    def run(self, words, status=0):
        done = subprocess.run([*COMMAND, *words], env=self.env, capture_output=True, check=False, timeout=120)
        self.tests.check(done.returncode == status, " ".join(map(shlex.quote, words)), (done.returncode, done.stdout, done.stderr))
        return done


def moves(tests, world):
    """By each way to move, whatever the name: what the three see does not change."""
    for name in ("plain", "two words", "v1.5.final", "ünï 名前", "a'b\"c", "#1 [x]"):
        path = world.make("in/" + name)
        before, tree = seen(path), tree_of(world.top)
        tests.check(before[0]["stale"] == [] and all(before), f"{name}: seen before", before)
        for words, now in (
                (["mv", path, world.path("out/")], world.path("out", os.path.basename(path))),
                (["mv", path, world.path("in", "Other v2.1.safetensors")], world.path("in/Other v2.1.safetensors")),
                (["mv", world.path("in"), "-r", "--to", "x/{kind}/{base_model} - {stem}"], None)):
            world.run(words)
            if now is None:
                now = next(os.path.join(at, f) for at, _, fs in os.walk(world.top) for f in fs if f.endswith(".safetensors"))
            tests.check(seen(now) == before, f"{name}: {words[1:]}", (seen(now), before))
            tests.check(seen(path)[0] is None and seen(path)[2] is None, f"{name}: nothing stays behind", os.listdir(os.path.dirname(path)) if os.path.isdir(os.path.dirname(path)) else "")
            world.run(["mv", "--undo"])
            tests.check(tree_of(world.top) == tree, f"{name}: undone")
        world.run(["mv", "--copy", path, world.path("copies/")])
        tests.check(seen(world.path("copies", os.path.basename(path))) == before and seen(path) == before, f"{name}: --copy")
        shutil.rmtree(world.top)
        os.mkdir(world.top)


def notes(tests, world):
    """note --for: each finds what was noted, and keeps what it had; info reads none of it as a source."""
    path = world.make("n/noted")
    os.remove(world.path("n/noted.txt"))
    before = seen(path)
    world.run(["note", path, "rating=5", "favourite=no", "tags=a,b", "words=alpha,beta gamma", "weight=0.55", "note=mine",
               "name=My Name"])
    tests.check(seen(path) == before, "a note alone changes nothing of theirs", seen(path))
    for way in ("lora-manager", "a1111", "civitai"):
        world.run(["note", path, "note=mine, too", "--for", way, "--force"])
    manager, ui, helper = seen(path)
    tests.check(manager and not manager.get("skipped") and manager["stale"] == [], "LoRA Manager takes it", manager)
    tests.check(manager["name"] == "My Name" and manager["tags"] == ["a", "b"] and manager["words"][:2] == ["alpha", "beta gamma"]
                and manager["strength"] == 0.7 and not manager["favorite"] and "see " in manager["notes"] and manager["picture"] and manager["id"] == 77, "LoRA Manager's facts", manager)
    tests.check(ui["strength"] == 0.55 and "alpha" in ui["words"] and "beta gamma" in ui["words"] and ui["picture"] == ".preview.png"
                and ui["negative"] == "blur", "the web UI's facts", ui)
    tests.check(helper["id"] == 77 and helper["words"][:2] == ["alpha", "beta gamma"] and helper["picture"], "Civitai Helper's facts", helper)
    # Fresh ones are taken, too.
    bare = world.make("n/bare", 2, dressed=False)
    world.run(["note", bare, "words=w", "weight=0.4", "note=x", "favourite", "--for", "lora-manager"])
    manager = seen(bare)[0]
    tests.check(manager and not manager.get("skipped") and manager["stale"] == [] and manager["words"] == ["w"]
                and (manager["strength"], manager["notes"], manager["favorite"]) == (0.4, "x", True),
                "a new sidecar is one that LoRA Manager takes", manager)
    # What was written for them is no source: without the note nothing of it is left but what they had.
    world.run(["note", bare, "--rm"])
    said = json.loads(world.run(["info", "--json", bare]).stdout)["results"][0]
    tests.check(not said["trigger_words"] or said["sidecars"], "--for is not fed back while its source is there", said["trigger_words"])


def duplicates(tests, world):
    """dup --remove: what only the one that goes has is found beside the one that stays."""
    for name in ("gone", "gone two", "v1.5"):
        gone = world.make("b/" + name)
        stays = world.make("a/the one that stays", dressed=False)
        want = seen(gone)
        world.run(["dup", "-r", world.top, "--remove", "--keep", world.path("a"), "--yes"])
        tests.check(seen(stays) == want and not os.path.exists(gone), f"{name}: all of it follows", (seen(stays), want))
        shutil.rmtree(world.top)
        os.mkdir(world.top)
    gone, stays = world.make("b/gone"), world.make("a/stays")
    put(os.path.splitext(stays)[0] + ".txt", b"its own text")
    before = seen(stays)
    world.run(["dup", "-r", world.top, "--remove", "--keep", world.path("a"), "--yes"])
    tests.check(seen(stays) == before, "what both have stays as it is", (seen(stays), before))


def main():
    tests = Tests(False)
    for part in (moves, notes, duplicates):
        with tempfile.TemporaryDirectory(prefix="sft-managers-") as scratch:
            part(tests, World(tests, scratch))
    print(f"{tests.passed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    sys.exit(main())
