"""Catalogues of models that do not exist, by the contract of page/types.d.ts."""

import hashlib
import json
import random
import re
import urllib.parse
from collections import Counter

import pages
import pictures
from material import AUTHORS, BASES, ENDINGS, LICENCES, OTHER, SENTENCES, TAGS, THINGS, WORDS

BLOCK = 256
DISTINCT = 4000  # a larger catalogue repeats these under other names
CONFLICTS, HASHED, CIVITAI, DIFFERS, BROKEN, FOREIGN, CODE = 1, 2, 4, 8, 16, 32, 64
FAVOURITE, NOTED = 128, 256

DTYPES = {"fp16": "F16", "bf16": "BF16", "fp32": "F32", "fp8": "F8_E4M3"}


class Fact:
    """A fact as in info --json; others: (value, source, trust) each."""

    def __init__(self, value, source, trust, others=()):
        self.value, self.source, self.trust, self.others = value, source, trust, list(others)


def compact(value, sources):
    """Facts and sources of a model as page/types.d.ts has them; sources grows."""
    if isinstance(value, Fact):
        item = [value.value, number(value.source, sources), value.trust]
        if value.others:
            item.append(
                [[other, number(source, sources), trust] for other, source, trust in value.others]
            )
        return item
    if isinstance(value, dict):
        return {
            key: (
                number(part, sources)
                if key == "source" and isinstance(part, str)
                else compact(part, sources)
            )
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [compact(part, sources) for part in value]
    return value


def number(source, sources):
    if source not in sources:
        sources.append(source)
    return sources.index(source)


def natural(path):
    return [
        (int(part), "") if part.isdigit() else (-1, part)
        for part in re.split(r"(\d+)", path.lower())
    ]


def cut(text, limit):
    """At most limit bytes of UTF-8; what was cut ends in an ellipsis."""
    raw = text.encode()
    return text if len(raw) <= limit else raw[: limit - 3].decode("utf-8", "ignore") + "…"


def href(path):
    return urllib.parse.quote(path, safe="/~-._")


def columns(models, title="Models", roots=("models",)):
    """Rows and the blocks of More of models, which are dicts as `model` makes them."""
    models = sorted(models, key=lambda one: natural(one["folder"] + "/" + one["file"]))

    def entries(key):
        count = Counter(one[key] for one in models if one[key])
        return [list(pair) for pair, _ in sorted(count.items(), key=lambda two: (-two[1], two[0]))]

    def texts(key):
        count = Counter(
            part
            for one in models
            for part in (one[key] if isinstance(one[key], list) else [one[key]])
            if part
        )
        return [text for text, _ in sorted(count.items(), key=lambda two: (-two[1], two[0]))]

    dicts = {key: entries(key) for key in ("kind", "base", "architecture", "precision")}
    dicts["folder"] = sorted({one["folder"] for one in models}, key=natural)
    dicts.update({key: texts(key) for key in ("tags", "licence", "author")})
    places = {
        key: {tuple(item) if isinstance(item, list) else item: i for i, item in enumerate(items)}
        for key, items in dicts.items()
    }
    dicts["tag"] = dicts.pop("tags")
    rows = {
        "format": 1,
        "title": title,
        "id": hashlib.sha256(title.encode()).hexdigest()[:16],
        "generator": "libsafetensors 0.3.0",
        "newest": "2026-11-20",
        "roots": list(roots),
        "takes": [],
        "count": len(models),
        "block": BLOCK,
        "dict": dicts,
        "name": [cut(one["name"], 256) for one in models],
        "file": [one["file"] for one in models],
        "folder": [places["folder"][one["folder"]] for one in models],
    }
    for key in ("kind", "base", "architecture", "precision", "licence", "author"):
        rows[key] = [places[key].get(one[key], -1) for one in models]
    for key in ("what", "bytes", "parameters", "rank", "date", "modified"):
        rows[key] = [one[key] for one in models]
    rows["words"] = [[cut(word["text"], 80) for word in one["words"][:3]] for one in models]
    rows["word_count"] = [len(one["words"]) for one in models]
    rows["tags"] = [[places["tags"][tag] for tag in one["tags"]] for one in models]
    for key in ("hash", "copies", "flags", "rating"):
        rows[key] = [one[key] for one in models]
    rows["preview"] = [(one["pictures"] or [0])[0] for one in models]
    rows["picture_count"] = [len(one["pictures"]) for one in models]
    rows["error"] = {
        str(i): one["info"]["error"]["message"]
        for i, one in enumerate(models)
        if "error" in one["info"]
    }
    rows["fault"] = {i: ["cut", "cut short"] for i in rows["error"]}
    blocks = []
    for first in range(0, len(models), BLOCK):
        sources = []
        blocks.append(
            {
                "models": [compact(one["info"], sources) for one in models[first : first + BLOCK]],
                "sources": sources,
            }
        )
    return rows, blocks


def some_words(dice, lora):
    count = (
        dice.choices([0, 1, 2, 3, 6, 14], [10, 40, 25, 15, 8, 2])[0]
        if lora
        else dice.choice([0, 0, 1])
    )
    made = []
    for i, text in enumerate(dice.sample(WORDS, count)):
        word = {
            "text": text,
            "prompt": text.replace("(", "\\(").replace(")", "\\)"),
            "source": "sidecar:*.civitai.info:/trainedWords",
            "trust": 85,
            "group": i,
        }
        if i > 2:
            word.update(
                source="header:ss_tag_frequency",
                trust=70,
                folder="10_set",
                coverage=round(dice.uniform(0.4, 1), 3),
            )
        made.append(word)
    return made


def training(dice, base):
    images = dice.randint(18, 900)
    return {
        "tool": "sd-scripts",
        "tool_version": "8eb60baf3a920fb83a862d95fbfc73d1d19b7b31",
        "started_at": "2025-04-05T17:41:40Z",
        "finished_at": "2025-04-05T19:01:47Z",
        "duration_s": 4806,
        "epoch": dice.randint(4, 20),
        "epochs": 20,
        "steps": images * 20,
        "images": images,
        "images_with_repeats": images * 10,
        "batch_size": 4,
        "learning_rate": 0.0003,
        "unet_lr": 0.0003,
        "text_encoder_lr": [0.00015, 0.0001],
        "optimizer": "AdamW8bit",
        "scheduler": "cosine_with_restarts",
        "resolution": "1024x1024",
        "network_module": "networks.lora",
        "network_args": {"conv_dim": "4", "algo": "lora"},
        "seed": 42,
        "mixed_precision": "bf16",
        "noise_offset": 0.03,
        "comment": "second attempt, fewer epochs",
        "base": {
            "file": f"{base}-base.safetensors",
            "sha256": "7548b773903c5a5effd63afa2a066e472d5c94aed77a107f16dae20f609e240b",
        },
        "datasets": [{"folder": "10_set", "images": images, "repeats": 10}],
        "buckets": [
            {"resolution": f"{w}x{1920 - w}", "count": dice.randint(1, 99)}
            for w in range(768, 1153, 128)
        ],
    }


def model(i, dice, pictured):
    """The i-th model; pictured(path, number) writes a picture and gives what rows say of it."""
    base, architecture, label, _, parameters, folder = dice.choices(
        BASES, [one[3] for one in BASES]
    )[0]
    lora = dice.random() < 0.74
    kind, kind_label, _, size, what = (
        ("adapter", "adapter", 0, 0, "")
        if lora
        else dice.choices(OTHER, [one[2] for one in OTHER])[0]
    )
    name = THINGS[i % len(THINGS)] + dice.choice(ENDINGS)
    stem = re.sub(r"\s+", dice.choice("_- "), name) + (f"-{i:06}" if i >= len(THINGS) else "")
    rank = dice.choice([4, 8, 16, 16, 32, 32, 64, 128]) if lora else -1
    precision = dice.choice(["fp16", "fp16", "bf16", "fp32"] if lora else ["fp16", "bf16", "fp8"])
    if lora:
        parameters = rank * 7.1e5
        what, size = f"LoRA r{rank} for {label}", parameters * 2
    if kind == "language_model":
        base, architecture, label, parameters = "", "llama", "Llama", 8.03e9
    if kind in ("upscaler", "unknown"):
        base = architecture = label = ""
    place = {
        "adapter": "loras",
        "checkpoint": "checkpoints",
        "embedding": "embeddings",
        "vae": "vae",
        "language_model": "llm",
        "upscaler": "upscale_models",
    }.get(kind, "diffusion_models")
    where = f"{place}/{folder}" if base else place
    if lora and dice.random() < 0.3:
        where += "/" + dice.choice(["styles", "characters", "concepts #1", "100% tested", "older?"])
    file = stem + dice.choices([".safetensors", ".ckpt", ".gguf", ".pt"], [94, 3, 2, 1])[0]
    flags = HASHED * (dice.random() < 0.6) + FOREIGN * (not file.endswith(".safetensors"))
    if file.endswith((".ckpt", ".pt")) and dice.random() < 0.2:
        flags |= CODE
    sha = hashlib.sha256(f"{i // 40 if i % 40 == 1 else i}".encode()).hexdigest()
    flags |= DIFFERS * (dice.random() < 0.01)
    path = f"models/{where}/{file}"
    tags = dice.sample(TAGS, dice.choice([0, 2, 3, 4, 5, 8]))
    author = dice.choice(AUTHORS)
    licence = dice.choice(LICENCES) if dice.random() < 0.6 else ""
    day = dice.randint(19300, 20777)
    sidecar = "sidecar:*.civitai.info"
    described = " ".join(dice.sample(SENTENCES, dice.randint(1, 6)))
    info = {
        "path": path,
        "file": {
            "bytes": int(size),
            "tensors": 722 if lora else 2515,
            "parameters": int(parameters),
            "dtypes": {
                DTYPES[precision]: {
                    "tensors": 722,
                    "parameters": int(parameters),
                    "bytes": int(size),
                }
            },
        },
        "model": {
            "kind": Fact(kind, "tensors", 100),
            "name": Fact(name, f"{sidecar}:/model/name", 85, [(stem, "filename", 45)]),
            "version_name": Fact("v1.0", f"{sidecar}:/name", 85),
            "description": Fact(described, f"{sidecar}:/description", 85),
            "author": Fact(author, f"{sidecar}:/creator/username", 85),
            "precision": precision,
            "parameters": int(parameters),
        },
    }
    facts = info["model"]
    if architecture:
        facts["architecture"] = Fact(
            architecture, "tensors", 100, [(architecture, "header:ss_base_model_version", 75)]
        )
    if base:
        facts["base_model"] = Fact(base, f"{sidecar}:/baseModel", 85)
    if dice.random() < 0.06 and base:
        flags |= CONFLICTS
        facts["base_model"].others.append(("SD 1.5", "header:modelspec.architecture", 75))
        info["conflicts"] = [
            {
                "field": "base_model",
                "candidates": [
                    {"value": base, "source": f"{sidecar}:/baseModel", "trust": 85},
                    {"value": "SD 1.5", "source": "header:modelspec.architecture", "trust": 75},
                ],
            }
        ]
    if tags:
        facts["tags"] = Fact(tags, f"{sidecar}:/model/tags", 85)
    if licence:
        facts["license"] = Fact(licence, "header:modelspec.license", 75)
    words = some_words(dice, lora)
    if words:
        info["trigger_words"] = words
    date = ""
    if dice.random() < 0.8:
        flags |= CIVITAI
        date = f"2025-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        facts["date"] = Fact(date, f"{sidecar}:/publishedAt", 85)
        info["civitai"] = {
            "model_id": 100000 + i,
            "version_id": 200000 + i,
            "air": f"urn:air:{architecture}:{kind}:civitai:{100000 + i}@{200000 + i}",
            "source": sidecar,
            "trust": 85,
            "match": "sha256",
            "matches_file": True,
            "published_at": date,
            "permissions": {
                "credit": dice.random() < 0.5,
                "commercial": ["Image", "RentCivit"],
                "derivatives": True,
                "relicense": dice.random() < 0.5,
            },
        }
        info["sidecars"] = [
            {"path": f"models/{where}/{stem}.civitai.info", "kind": "civitai", "match": "sha256"},
            {
                "path": f"models/{where}/{stem}.json",
                "kind": "a1111",
                "error": "expected an object, found a list",
            },
        ][: 1 + (i % 9 == 0)]
    if lora:
        weight = dice.choice([0.6, 0.7, 0.8, 1])
        info["adapter"] = {
            "type": "lora",
            "format": "kohya",
            "rank": {"min": rank, "max": rank, "mode": rank},
            "alpha": {"min": rank / 2, "max": rank / 2, "mode": rank / 2, "sampled": True},
            "scale": 0.5,
            "modules": 722,
            "targets": ["to_q", "to_k", "to_v", "to_out.0"],
            "blocks": ["down_blocks.0-3", "mid_block", "up_blocks.0-3"],
        }
        facts["preferred_weight"] = Fact(weight, "sidecar:*.json:/preferred weight", 90)
        prompt = f"<lora:{stem}:{weight:g}> " + ", ".join(word["prompt"] for word in words[:3])
        info["prompts"] = {"a1111": prompt, "comfy": prompt}
        if dice.random() < 0.7:
            info["training"] = training(dice, folder)
            info["frequent_tags"] = [
                {"tag": tag, "count": 400 // (k + 1), "coverage": round(1 / (k + 1), 3)}
                for k, tag in enumerate(dice.sample(TAGS, 24))
            ]
    if dice.random() < 0.4:
        facts["negative_prompt"] = Fact(
            "(worst quality, low quality:1.4), blurry, watermark",
            "sidecar:*.json:/negative text",
            90,
        )
        info["example_prompts"] = [
            {
                "positive": ", ".join(dice.sample(TAGS, 7)),
                "negative": "blurry",
                "seed": 1234567890 + i,
                "steps": 28,
                "sampler": "Euler a",
                "cfg": 6.5,
                "source": f"{sidecar}:/images/0/meta",
            }
        ]
    info["hashes"] = {
        "recorded": [
            {"algo": "sha256", "value": sha, "source": f"{sidecar}:/files/0/hashes/SHA256"},
            {"algo": "autov3", "value": sha[20:32], "source": "header:sshs_model_hash"},
        ]
    }
    if flags & HASHED:
        info["hashes"]["computed"] = {"sha256": sha, "content": sha[::-1]}
    if flags & DIFFERS:
        info["hashes"]["mismatches"] = [
            {
                "algo": "sha256",
                "recorded": sha[::-1],
                "computed": sha,
                "source": f"{sidecar}:/files/0/hashes/SHA256",
            }
        ]
    rating = (i % 11) / 2 if i % 5 == 2 else -1
    if rating >= 0:  # facts of one's own
        flags |= NOTED | (FAVOURITE if i % 2 else 0)
        facts.update(
            rating=rating,
            favourite=bool(i % 2),
            notes=[{"text": f"kept {i}, works at 768", "source": "own:/note"}],
        )
        own = {"path": f"models/{where}/{stem}.own.json", "kind": "own.json"}
        info["sidecars"] = [own, *info.get("sidecars", [])]
    info["metadata_keys"] = [
        "format",
        "ss_network_dim",
        "ss_tag_frequency",
        "sshs_model_hash",
        "modelspec.title",
    ][: dice.randint(1, 5)]
    if dice.random() < 0.02:
        flags |= BROKEN
        info["error"] = {
            "code": "truncated",
            "message": "file is truncated: expected 228,456,104 bytes, found 117,440,512",
            "hint": "download it again",
        }
    shots = []
    if dice.random() < 0.88:
        levels = dice.choices(
            [0, 1, 2, 4, 8, 16], [18, 45, 15, 10, 8, 4], k=dice.choice([1, 1, 1, 2, 4])
        )
        shots = [
            pictured(f"models/{where}/{stem}{f'.{k}' if k else ''}.preview.png", i * 5 + k, level)
            for k, level in enumerate(levels)
        ]
        if i % 211 == 7:
            shots = [
                {
                    "href": href(f"models/{where}/{stem}.mp4"),
                    "video": True,
                    "width": 480,
                    "height": 720,
                    "level": 1,
                    "bytes": 2400000,
                }
            ]
        elif i % 97 == 5:
            shots = [
                {
                    "href": "",
                    "why": dice.choice(["too large", "outside the folder"]),
                    "width": 65535,
                    "height": 65535,
                }
            ]
        info["pictures"] = shots
    return {
        "folder": where,
        "file": file,
        "name": name,
        "kind": (kind, kind_label),
        "base": (base, base) if base else None,
        "architecture": (architecture, label) if architecture else None,
        "precision": (precision, precision),
        "licence": licence,
        "author": author,
        "what": what,
        "bytes": int(size),
        "parameters": int(parameters),
        "rank": rank,
        "date": date,
        "modified": day,
        "tags": tags,
        "hash": f"{sha[:12]} {sha[20:32]}" if flags & HASHED else "",
        "copies": i // 40 if i % 40 in (0, 1) and lora else -1,
        "flags": flags,
        "rating": rating,
        "words": words,
        "pictures": shots,
        "info": info,
    }


def catalogue(count, folder=None, embed=False, seed=19, thin=False):
    """(rows, more, embedded pictures) of count models; their pictures lie below folder. thin: with few details."""
    embedded = []
    here = sorted({0, *range(min(count, 1500))})

    def pictured(path, seed_number, level):
        content, width, height = pictures.picture(seed_number % (5 * len(here)))
        shot = {"href": href(path), "width": width, "height": height, "bytes": len(content)}
        if level:
            shot["level"] = level
        if embed:
            shot["href"] = len(embedded)
            embedded.append("data:image/png;base64," + pages.base64.b64encode(content).decode())
        elif folder:
            pages.keep(folder, path, content)
        return shot

    models = [
        model(i, random.Random(seed * 1000003 + i), pictured) for i in range(min(count, DISTINCT))
    ]
    models += [again(models[i % DISTINCT], i) for i in range(DISTINCT, count)]
    if count > DISTINCT:
        for one in models:
            one["info"] = {"path": one["info"]["path"], "model": {}} if thin else lean(one["info"])
    return (*columns(models, "Models of the studio"), embedded)


def again(one, i):
    """A model like one, of another name."""
    file = f"{i:06} {one['file']}"
    info = dict(one["info"], path=f"models/{one['folder']}/{file}")
    return dict(one, file=file, name=f"{one['name']} {i // DISTINCT + 1}", info=info, copies=-1)


def lean(info):
    """What the command keeps of a model's details where they are long: 2 KB."""
    kept = {
        key: value
        for key, value in info.items()
        if key not in ("training", "example_prompts", "sidecars", "metadata_keys", "frequent_tags")
    }
    return kept


def write_catalogue(count, folder, embed=False, hostile=False):
    if hostile:
        import corpus

        rows, more, embedded = corpus.catalogue(folder)
    else:
        rows, more, embedded = catalogue(count, folder, embed)
    text = pages.catalogue_page(rows, more, embedded)
    return pages.keep(folder, "catalogue.html", text)


def size_of(rows, more):
    """Bytes of the data, rows and more."""
    return len(json.dumps(rows)), sum(len(json.dumps(part)) for part in more)
