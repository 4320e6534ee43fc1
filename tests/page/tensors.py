"""Pages about one model: columns of tensors that do not exist, by the contract of page/types.d.ts."""

import hashlib
import math
import random

from synthetic import Fact

BYTES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "I64": 8, "U8": 1}


def llama(layers=32):
    """Names, dtypes and shapes of a Llama of 8 billion parameters."""
    yield "model.embed_tokens.weight", "BF16", [128256, 4096]
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", "BF16", [4096]
        for name, shape in (
            ("gate_proj", [14336, 4096]),
            ("up_proj", [14336, 4096]),
            ("down_proj", [4096, 14336]),
        ):
            yield f"{at}mlp.{name}.weight", "BF16", shape
        yield at + "post_attention_layernorm.weight", "BF16", [4096]
        for name, rows in (("q", 4096), ("k", 1024), ("v", 1024), ("o", 4096)):
            yield f"{at}self_attn.{name}_proj.weight", "BF16", [rows, 4096]
    yield "model.norm.weight", "F32", [4096]
    yield "lm_head.weight", "BF16", [128256, 4096]


def sdxl():
    """About what an SDXL checkpoint has: UNet, two text encoders and a VAE."""
    unet = "model.diffusion_model."
    for i, (width, depth) in enumerate(
        [
            (320, 0),
            (320, 0),
            (320, 0),
            (320, 0),
            (640, 2),
            (640, 2),
            (640, 0),
            (1280, 10),
            (1280, 10),
        ]
    ):
        for side in ("input", "output"):
            at = f"{unet}{side}_blocks.{i}."
            yield at + "0.in_layers.2.weight", "F16", [width, width, 3, 3]
            yield at + "0.in_layers.2.bias", "F16", [width]
            yield at + "0.emb_layers.1.weight", "F16", [width, 1280]
            for k in range(depth):
                for attn in ("attn1", "attn2"):
                    for part in ("to_q", "to_k", "to_v", "to_out.0"):
                        inner = 2048 if attn == "attn2" and part in ("to_k", "to_v") else width
                        yield f"{at}1.transformer_blocks.{k}.{attn}.{part}.weight", "F16", [
                            width,
                            inner,
                        ]
                yield f"{at}1.transformer_blocks.{k}.ff.net.0.proj.weight", "F16", [
                    width * 8,
                    width,
                ]
                yield f"{at}1.transformer_blocks.{k}.ff.net.2.weight", "F16", [width, width * 4]
                for k2 in (1, 2, 3):
                    yield f"{at}1.transformer_blocks.{k}.norm{k2}.weight", "F16", [width]
    for which, layers, width in ((0, 12, 768), (1, 32, 1280)):
        for i in range(layers):
            at = f"conditioner.embedders.{which}.transformer.text_model.encoder.layers.{i}."
            for part, shape in (
                ("self_attn.q_proj", [width, width]),
                ("self_attn.k_proj", [width, width]),
                ("self_attn.v_proj", [width, width]),
                ("self_attn.out_proj", [width, width]),
                ("mlp.fc1", [width * 4, width]),
                ("mlp.fc2", [width, width * 4]),
            ):
                yield f"{at}{part}.weight", "F16", shape
                yield f"{at}{part}.bias", "F16", shape[:1]
        yield f"conditioner.embedders.{which}.position_ids", "I64", [1, 77]
    for side in ("encoder", "decoder"):
        for i in range(4):
            for k in range(2):
                yield f"first_stage_model.{side}.mid.{i}.block.{k}.conv1.weight", "F32", [
                    512,
                    512,
                    3,
                    3,
                ]
                yield f"first_stage_model.{side}.mid.{i}.block.{k}.conv1.bias", "F32", [512]


def lora(rank=16):
    for side, blocks in (("down", 4), ("up", 4)):
        for i in range(blocks):
            for k in range(2):
                for attn in ("attn1", "attn2"):
                    for part in ("to_q", "to_k", "to_v", "to_out_0"):
                        at = f"lora_unet_{side}_blocks_{i}_attentions_{k}_transformer_blocks_0_{attn}_{part}."
                        yield at + "alpha", "F16", []
                        yield at + "lora_down.weight", "F16", [rank, 640]
                        yield at + "lora_up.weight", "F16", [640, rank]


def moe(layers=60, experts=511):
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "mlp.gate.weight", "F32", [experts, 7168]
        for k in range(experts):
            for part in ("down", "gate", "up"):
                yield f"{at}mlp.experts.{k}.{part}_proj.weight", "F8_E4M3", [2048, 7168]


def columns(tensors):
    """The columns of a ModelPage for (name, dtype, shape) each."""
    tensors = list(tensors)
    names, dtypes, shapes = [], {}, {}
    page = {
        "count": len(tensors),
        "shared": [],
        "rest": [],
        "dtypes": dtypes,
        "dtype": [],
        "shapes": shapes,
        "shape": [],
        "bytes": [],
        "offset": [],
    }
    before, offset = "", 0
    for name, dtype, shape in tensors:
        same = 0
        while same < min(len(before), len(name)) and before[same] == name[same]:
            same += 1
        # UTF-16 code units, whole characters.
        page["shared"].append(len(before[:same].encode("utf-16-le")) // 2)
        page["rest"].append(name[same:])
        text = ",".join(map(str, shape))
        page["dtype"].append(dtypes.setdefault(dtype, len(dtypes)))
        page["shape"].append(shapes.setdefault(text, len(shapes)))
        size = math.prod(shape) * BYTES.get(dtype, 1)
        page["bytes"].append(size)
        page["offset"].append(offset)
        offset += size
        before = name
        names.append(name)
    page["dtypes"], page["shapes"] = list(dtypes), list(shapes)
    return page


def statistics(page):
    """Statistics as --deep has them; the last tensors have NaN and infinities."""
    dice = random.Random(7)
    made = {key: [] for key in ("min", "max", "mean", "std", "zeros", "nan", "inf", "histogram")}
    for i in range(page["count"]):
        count = math.prod(map(int, filter(None, page["shapes"][page["shape"][i]].split(","))))
        std = dice.choice([0.02, 0.05, 0.4])
        bad = i >= page["count"] - 2
        made["min"].append("-Infinity" if bad else -round(std * dice.uniform(3, 9), 6))
        made["max"].append("NaN" if i == page["count"] - 1 else round(std * dice.uniform(3, 9), 6))
        made["mean"].append("NaN" if bad else round(dice.gauss(0, std / 50), 8))
        made["std"].append("NaN" if bad else round(std, 6))
        made["zeros"].append(count // 50 if i % 9 == 0 else 0)
        made["nan"].append(3 if bad else 0)
        made["inf"].append(1 if bad else 0)
        peak = 24
        bins = [int(count * math.exp(-(((k - peak) / 3) ** 2)) / 5.3) for k in range(30)]
        made["histogram"].append([int(math.log2(std)) - peak, *bins])
    return made


def page_of(name, tensors, kind, architecture, base="", deep=False, **more):
    page = {
        "format": 1,
        "title": name,
        "id": hashlib.sha256(name.encode()).hexdigest()[:16],
        "generator": "libsafetensors 0.3.0",
        **columns(tensors),
    }
    size = sum(page["bytes"])
    dtypes = {}
    for i in range(page["count"]):
        one = dtypes.setdefault(
            page["dtypes"][page["dtype"][i]], {"tensors": 0, "parameters": 0, "bytes": 0}
        )
        one["tensors"] += 1
        one["bytes"] += page["bytes"][i]
        one["parameters"] += math.prod(
            map(int, filter(None, page["shapes"][page["shape"][i]].split(",")))
        )
    parameters = sum(one["parameters"] for one in dtypes.values())
    sidecar = f"sidecar:{name}.civitai.info"
    facts = {
        "kind": Fact(kind, "tensors", 100),
        "architecture": Fact(architecture, "tensors", 100),
        "name": Fact(name, "header:modelspec.title", 75, [(name.lower(), "filename", 45)]),
        "license": Fact("apache-2.0", "header:modelspec.license", 75),
        "precision": "bf16",
        "parameters": parameters,
    }
    if base:
        facts["base_model"] = Fact(base, f"{sidecar}:/baseModel", 85)
    info = {
        "path": f"{name}.safetensors",
        "file": {
            "bytes": size,
            "tensors": page["count"],
            "parameters": parameters,
            "dtypes": dtypes,
        },
        "model": facts,
        "metadata": {"format": "pt", "modelspec.title": name, "modelspec.license": "apache-2.0"},
        **more,
    }
    page["info"] = expand(info)
    if deep:
        page["stats"] = statistics(page)
    return page


def expand(value):
    """Facts as info --json has them: a page about one model is not compact."""
    if isinstance(value, Fact):
        return {
            "value": value.value,
            "source": value.source,
            "trust": value.trust,
            "others": [
                {"value": other, "source": source, "trust": trust}
                for other, source, trust in value.others
            ],
        }
    if isinstance(value, dict):
        return {key: expand(part) for key, part in value.items()}
    return [expand(part) for part in value] if isinstance(value, list) else value


def llm_page():
    return page_of("Llama-3.1-8B-Instruct", llama(), "language_model", "llama", deep=True, files=4)


def sdxl_page():
    return page_of("dreamscape_v7", sdxl(), "checkpoint", "sdxl", "SDXL 1.0")


def lora_page():
    page = page_of(
        "watercolor_xl",
        lora(),
        "adapter",
        "sdxl",
        "Pony",
        deep=True,
        adapter={
            "type": "lora",
            "format": "kohya",
            "rank": {"min": 16, "max": 16, "mode": 16},
            "modules": 128,
        },
        trigger_words=[
            {
                "text": "wtrclr style",
                "prompt": "wtrclr style",
                "source": "header:ss_tag_frequency",
                "trust": 79,
                "coverage": 1,
            },
            {
                "text": "<style>guangying</style>",
                "prompt": "<style>guangying</style>",
                "source": "header:ss_training_comment",
                "trust": 70,
            },
        ],
        prompts={
            "a1111": "<lora:watercolor_xl:0.8> wtrclr style",
            "comfy": "<lora:watercolor_xl:0.8> wtrclr style",
        },
    )
    dice = random.Random(3)
    modules = [name for name, _, _ in lora() if name.endswith(".alpha")]
    page["norms"] = [
        {"module": name[: -len(".alpha")], "norm": round(dice.uniform(0.1, 4), 4), "rank": 16}
        for name in modules
    ]
    return page


def moe_page():
    return page_of("DeepMix-600B", moe(), "language_model", "deepseek-v3", deep=False, files=163)


def hostile_page():
    import corpus

    return corpus.model_page()


MODELS = {
    "llm": llm_page,
    "sdxl": sdxl_page,
    "lora": lora_page,
    "moe": moe_page,
    "hostile": hostile_page,
}
