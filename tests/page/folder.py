"""Folders of small model files with sidecars and pictures, for the real command."""

import hashlib
import json
import random
import struct

import corpus
import material
import pages
import pictures


def safetensors(tensors, metadata):
    """The bytes of a file: tensors are (name, dtype, shape, bytes each)."""
    header, data = {"__metadata__": metadata}, b""
    for name, dtype, shape, size in tensors:
        length = size
        for part in shape:
            length *= part
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + length],
        }
        data += b"\x00\x3c" * (length // 2)  # 1 as F16
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


# Names of files that a reference must escape.
NAMES = ["a#b", "what?", "100%", "a b", "ñandú ü", "日本語", "%41", "a&b=c", "semi;colon", "quote'\"", "plus+"]

MODULES = {  # architecture -> a module of it, in and out
    "sdxl": ("lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k", 2048, 640),
    "flux.1-dev": ("lora_unet_double_blocks_0_img_attn_proj", 3072, 3072),
    "sd-1": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k", 768, 320),
}


def lora(architecture="sd-1"):
    """Tensors of a LoRA of rank 1 that changes one module."""
    at, inner, outer = MODULES.get(architecture, MODULES["sd-1"])
    return [
        (at + ".alpha", "F16", [], 2),
        (at + ".lora_down.weight", "F16", [1, inner], 2),
        (at + ".lora_up.weight", "F16", [outer, 1], 2),
    ]


def model(folder, i, dice):
    """The i-th model: a file of 4 KB, a .civitai.info and a picture."""
    base, architecture, _, _, _, place = dice.choice(
        [one for one in material.BASES if one[1] in MODULES]
    )
    name = material.THINGS[i % len(material.THINGS)] + dice.choice(material.ENDINGS)
    where = f"loras/{place}" + dice.choice(
        ["", "/styles", "/characters", "/concepts #1", "/100% tested", "/older?"]
    )
    stem = f"{name.replace(' ', '_').replace('/', '_')}-{i:06}"
    words = dice.sample(material.WORDS, dice.choice([0, 1, 1, 2, 5]))
    tags = {tag: dice.randint(1, 90) for tag in dice.sample(material.TAGS, 12)}
    metadata = {
        "ss_network_module": "networks.lora",
        "ss_network_dim": "1",
        "ss_network_alpha": "1",
        "ss_output_name": stem,
        "ss_epoch": "10",
        "ss_num_train_images": "84",
        "ss_learning_rate": "0.0003",
        "ss_optimizer": "AdamW8bit",
        "ss_tag_frequency": json.dumps({"10_set": tags}),
        "modelspec.license": dice.choice(material.LICENCES),
        "number": str(i),
    }
    content = safetensors(lora(architecture), metadata)
    pages.keep(folder, f"{where}/{stem}.safetensors", content)
    sha = hashlib.sha256(content).hexdigest()
    level = dice.choice([1, 1, 1, 2, 4, 8, 16])
    sidecar = {
        "id": 200000 + i,
        "modelId": 100000 + i,
        "name": "v1.0",
        "baseModel": base,
        "trainedWords": words,
        "publishedAt": f"2025-{dice.randint(1, 12):02}-01T00:00:00Z",
        "description": " ".join(dice.sample(material.SENTENCES, 5)),
        "model": {
            "name": name,
            "type": "LORA",
            "nsfw": False,
            "tags": dice.sample(material.TAGS, 4),
        },
        "creator": {"username": dice.choice(material.AUTHORS)},
        "files": [{"name": stem + ".safetensors", "hashes": {"SHA256": sha.upper()}}],
        "images": [
            {
                "url": f"https://image.civitai.com/{i}.jpeg",
                "nsfwLevel": level,
                "width": 256,
                "height": 374,
                "type": "image",
            }
        ],
    }
    pages.keep(folder, f"{where}/{stem}.civitai.info", json.dumps(sidecar, ensure_ascii=False))
    if dice.random() < 0.9:
        pages.keep(folder, f"{where}/{stem}.preview.png", pictures.picture(i % 400)[0])


def make(folder, count, seed=5):
    for i in range(count):
        model(folder, i, random.Random(seed * 7919 + i))
    return folder


def file_name(text):
    """Text as it can name a file."""
    return (
        "".join("_" if one in "/\0" else one for one in text)
        .encode()[:120]
        .decode("utf-8", "ignore")
        .strip()
        or "_"
    )


def hostile(folder):
    """A model for each string of the corpus, which is in its name, folder, metadata and sidecars."""
    for i, text in enumerate(corpus.STRINGS):
        where = f"{'loras' if i % 2 else file_name(text)}"
        where = "dots" if where.strip(".") == "" else where
        stem = f"{i:03} {file_name(text)}"[:90]
        metadata = {
            text: text,
            "ss_output_name": text,
            "modelspec.title": text,
            "modelspec.description": text,
            "modelspec.author": text,
            "modelspec.license": text,
            "modelspec.tags": text,
            "modelspec.trigger_phrase": text,
            "modelspec.usage_hint": text,
            "ss_base_model_version": text,
            "ss_sd_model_name": text,
            "ss_training_comment": text,
            "ss_optimizer": text,
            "ss_network_module": "networks.lora",
            "ss_tag_frequency": json.dumps({text or "x": {text: 9, "usual": 4}}),
            "modelspec.architecture": text,
            "ss_dataset_dirs": json.dumps({text: {"n_repeats": 2, "img_count": 3}}),
            "sshs_model_hash": text,
            "number": str(i),
        }
        pages.keep(
            folder,
            f"{where}/{stem}.safetensors",
            safetensors(lora() + [(text or "_", "F16", [2], 2)], metadata),
        )
        sidecar = {
            "id": 2000 + i,
            "modelId": 1000 + i,
            "name": text,
            "baseModel": text,
            "trainedWords": [text, "second " + text],
            "description": text,
            "publishedAt": text,
            "model": {"name": text, "type": "LORA", "tags": [text, "shared"], "description": text},
            "creator": {"username": text},
            "files": [{"name": text, "hashes": {"SHA256": text, "AutoV3": text}}],
            "air": text,
            "images": [
                {
                    "url": text,
                    "nsfwLevel": 1,
                    "meta": {"prompt": text, "negativePrompt": text, "sampler": text},
                }
            ],
        }
        pages.keep(folder, f"{where}/{stem}.civitai.info", json.dumps(sidecar))
        pages.keep(
            folder,
            f"{where}/{stem}.metadata.json",
            json.dumps(
                {
                    "file_name": stem,
                    "model_name": text,
                    "preview_url": text,
                    "notes": text,
                    "usage_tips": json.dumps({"strength": text}),
                    "civitai": sidecar,
                }
            ),
        )
        pages.keep(
            folder,
            f"{where}/{stem}.json",
            json.dumps(
                {"activation text": text, "negative text": text, "description": text, "notes": text}
            ),
        )
        if i % 2:
            pages.keep(folder, f"{where}/{stem}.preview.png", pictures.picture(i)[0])
    for k, name in enumerate(NAMES):
        pages.keep(
            folder,
            f"names/{name}.safetensors",
            safetensors(lora(), {"ss_output_name": name, "n": str(k)}),
        )
        pages.keep(folder, f"names/{name}.png", pictures.picture(300 + k)[0])
    pages.keep(folder, "broken/cut <b>off<b>.safetensors", safetensors(lora(), {})[:200])
    return folder
