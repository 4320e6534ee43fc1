"""What tests/cli/info/save-as.txt compares: facts, and the keys that programs expect."""
import json
import os
import re
import sys

FACTS = ["name", "version_name", "description", "author", "tags", "base_model", "architecture",
         "preferred_weight", "negative_prompt", "nsfw"]
# Facts that each sidecar can hold.
HELD = {
    "civitai": ["name", "description", "author", "tags", "base_model", "nsfw", "words"],
    "lora-manager": ["name", "version_name", "description", "author", "tags", "base_model",
                     "preferred_weight", "nsfw", "words", "notes", "ids", "levels"],
    "a1111": ["description", "architecture", "flat_words"],
}
# Types of keys; those of facts/metadata about sidecars.
TYPES = {
    "civitai": (".civitai.info", {
        "name": str, "description": (str, type(None)), "baseModel": str, "trainedWords": list,
        "model": dict, "files": list, "images": list}),
    "lora-manager": (".metadata.json", {
        "file_name": str, "model_name": str, "file_path": str, "size": int, "modified": float,
        "sha256": str, "base_model": str, "preview_url": str, "preview_nsfw_level": int,
        "notes": str, "from_civitai": bool, "civitai": dict, "tags": list,
        "modelDescription": str, "usage_tips": str, "hash_status": str, "trainedWords": list}),
    "a1111": (".json", {
        "description": str, "sd version": str, "activation text": str,
        "preferred weight": (int, float), "negative text": str, "notes": str}),
}


def demand(ok, *what):
    if not ok:
        print("wrong:", *what)


def facts():
    result = json.load(sys.stdin)["results"][0]
    model = result["model"]
    out = {name: model[name] and model[name]["value"] for name in FACTS}
    out["words"] = [w["text"] for w in result["trigger_words"]]
    out["flat_words"] = sorted({part for w in result["trigger_words"] for part in w["words"]})
    out["notes"] = [n["text"] for n in model["notes"]]
    out["levels"] = [one["nsfw_level"] for one in result["previews"]]
    civitai = result["civitai"] or {}
    out["ids"] = [civitai.get("model_id"), civitai.get("version_id")]
    print(json.dumps(out))


def same(kind, before, after):
    with open(before, encoding="utf-8") as a, open(after, encoding="utf-8") as b:
        before, after = json.load(a), json.load(b)
    for name in HELD[kind]:
        demand(before[name] == after[name], name, before[name], after[name])
    print("same", " ".join(HELD[kind]))


def check(kind, stem):
    suffix, types = TYPES[kind]
    with open(stem + suffix, encoding="utf-8") as f:
        found = json.load(f)
    for key, type_ in types.items():
        demand(key in found and isinstance(found[key], type_), key, found.get(key))
        demand(type_ is not int or not isinstance(found[key], bool), key, found[key])
    if kind == "civitai":
        file = found["files"][0]
        demand(re.fullmatch("[0-9A-F]{64}", file["hashes"]["SHA256"]), file)
        demand(file["hashes"]["AutoV2"] == file["hashes"]["SHA256"][:10], file)
        demand(file["primary"] is True and isinstance(file["sizeKB"], float), file)
        demand(found["model"]["type"] == "LORA", found["model"])
        demand(found["model"]["description"].startswith("<p>"), found["model"])
    elif kind == "lora-manager":
        demand(re.fullmatch("[0-9a-f]{64}", found["sha256"]), found["sha256"])
        demand(found["hash_status"] == "completed", found)
        root = "Z:/" if os.environ.get("SFT_TARGET") == "windows" else "/"
        demand(found["file_path"].startswith(root), found["file_path"])
        demand(found["file_path"].endswith("/neon-city.safetensors"), found["file_path"])
        demand(found["preview_url"].endswith("/neon-city.preview.png"), found["preview_url"])
        demand(json.loads(found["usage_tips"]) == {"strength": 0.8}, found["usage_tips"])
        demand(found["civitai"]["modelId"] == 1000001, found["civitai"])
        demand(found["from_civitai"] is True, found)
    else:
        demand(found["sd version"] == "SDXL", found)
        demand(found["activation text"] == "neoncty || neoncty, street level", found)
    print("keys of", kind)


def unmarked(path):
    """As a program leaves it that writes what it knows alone."""
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    demand(found.pop("libsafetensors")["derived"], "no mark in", path)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(found, f)


{"unmarked": unmarked, "facts": facts, "same": same, "check": check}[sys.argv[1]](*sys.argv[2:])
