"""What tests/cli/info/save-as-loop.txt does with a model, its header and its exports."""
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys

SFT = shlex.split(os.environ["SFT"])
SUFFIX = {"civitai": ".civitai.info", "lora-manager": ".metadata.json", "a1111": ".json"}
KEYS = ["ss_output_name", "ssmd_keywords", "ssmd_tags", "author", "ssmd_description"]
FACTS = ["kind", "architecture", "base_model", "name", "version_name", "description", "author",
         "tags", "license", "usage_hint", "negative_prompt", "preferred_weight", "notes"]


def run(*words, status=0):
    done = subprocess.run(SFT + list(words), stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.DEVNULL if status else None)
    if done.returncode != status:
        print("exit", done.returncode, *words)
    return done.stdout


def model(folder, turn=0):
    """A LoRA of one module, whose header tells of the turn."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    module = "lora_unet_double_blocks_0_img_mlp_0."
    header = {"__metadata__": header_of(turn),
              module + "lora_down.weight": {"dtype": "F16", "shape": [1, 3072],
                                            "data_offsets": [0, 6144]},
              module + "lora_up.weight": {"dtype": "F16", "shape": [12288, 1],
                                          "data_offsets": [6144, 30720]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path = os.path.join(folder, "x.safetensors")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(30720))
    return path


def header_of(turn):
    return {key: "%s-turn%d, more%d" % (key, turn, turn) for key in KEYS} | {
        "ss_base_model_version": "flux1"}


def label(path):
    result = json.loads(run("info", "--json", path))["results"][0]
    facts = {key: result["model"][key] for key in FACTS}
    for one in result["sidecars"]:
        if one["error"]:
            print("sidecar", one)
    return facts | {"words": [(w["text"], w["trust"]) for w in result["trigger_words"]],
                    "conflicts": result["conflicts"], "civitai": result["civitai"]}


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def loop():
    """Every format alone, then all of them after one another."""
    for formats in [[name] for name in [*SUFFIX, "modelspec", "json", "jsonl"]] + [
            [*SUFFIX, "modelspec"]]:
        path = model("t")
        for turn in range(5):
            if turn:
                run("meta", "set", path, *[w for pair in header_of(turn).items() for w in pair])
            for name in formats:
                if name in ("json", "jsonl"):
                    text = run("info", "--" + name, path)
                    with open("t/x.json", "wb") as file:
                        file.write(text)
                else:
                    run("info", "--save-as", name, "--force", path)
            shutil.copy(path, "bare.safetensors")
            run("meta", "rm", "bare.safetensors", "modelspec.*", "libsafetensors.*",
                status=0 if "modelspec" in formats else 1)
            os.makedirs("bare/t", exist_ok=True)
            os.replace("bare.safetensors", "bare/t/x.safetensors")
            have, want = label(path), label("bare/t/x.safetensors")
            for key in want:
                if have[key] != want[key]:
                    print(formats, turn, key, have[key], "not", want[key])
            for name in formats:
                if name in SUFFIX:
                    text = json.dumps(read("t/x" + SUFFIX[name]))
                    if turn and "turn%d" % (turn - 1) in text:
                        print(formats, turn, name, "keeps old words", text)
            before = open(path, "rb").read()
            for name in formats:
                if name in SUFFIX and b"nothing to change" not in run("info", "--save-as", name,
                                                                      path):
                    print(formats, turn, name, "is no fixed point")
            if open(path, "rb").read() != before:
                print(formats, turn, "the model changed")
        print("fixed:", *formats)


def others():
    path, side = model("t"), "t/x.metadata.json"
    run("info", "--save-as", "lora-manager", path)
    made = read(side)
    made["model_name"] = "Edited"
    made["trainedWords"].append("added")
    write(side, made)
    found = label(path)
    print("edited:", found["name"]["value"], [w for w, trust in found["words"] if trust == 100])
    print("the rest:", found["description"]["source"], found["tags"]["source"])
    run("meta", "set", path, "ssmd_description", "new")
    run("info", "--save-as", "lora-manager", "--force", path)
    print("written again:", [read(side)[key] for key in ("model_name", "modelDescription")],
          "added" in read(side)["trainedWords"])

    path = model("t")
    run("info", "--save-as", "lora-manager", path)
    made = read(side)
    del made["libsafetensors"]
    write(side, made)
    print("rewritten by another program:", label(path)["name"]["source"])

    path = model("t")
    write("t/x.civitai.info", {"id": 2, "modelId": 1, "name": "v", "trainedWords": ["w"],
                               "model": {"name": "Page", "type": "LORA"}, "creator":
                               {"username": "me"}})
    run("info", "--save-as", "lora-manager", path)
    print("its source is there:", label(path)["name"]["source"])
    run("info", "--save-as", "modelspec", path)
    os.remove("t/x.civitai.info")
    print("its source is gone:", label(path)["name"]["value"], label(path)["name"]["source"],
          label(path)["description"]["source"])
    os.remove(side)
    print("alone with its header:", label(path)["name"]["value"], label(path)["author"]["value"])
    run("meta", "rm", path, "ssmd_description")
    print("what the header told no more:", label(path)["description"])


def fnv(text, value=0xCBF29CE484222325):
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2 ** 64
    return value


def forged():
    """A stranger's mark: what he wrote may vanish, but neither ratings nor digests do."""
    path, side, digest = model("t"), "t/x.civitai.info", "ab" * 32
    size = os.path.getsize(path) / 1024
    page = {"id": 2, "modelId": 1, "name": "v", "images": [], "model": {"name": "Page",
            "type": "LORA", "nsfw": True},
            "files": [{"primary": True, "sizeKB": size, "hashes": {"SHA256": digest}}]}
    marks = [("/model/name", "s", "Page"), ("/model/nsfw", "l", "true"),
             ("/files/*/sizeKB", "n", json.dumps(size)), ("/files/*/hashes/SHA256", "s", digest)]
    digests = ["%016x" % fnv("".join(mark)) for mark in marks]
    write(side, page | {"libsafetensors": {"derived": {"model": digests}}})
    told = json.loads(run("info", "--json", path))["results"][0]
    print("forged:", told["model"]["name"]["value"] == "Page", told["model"]["nsfw"]["value"],
          told["sidecars"][0]["match"], digest in json.dumps(told["hashes"]["recorded"]))


{"loop": loop, "others": others, "forged": forged}[sys.argv[1]]()
