"""Adapters on the layers that trainers' presets choose, in the layouts that trainers and hubs use.

Needs clones of the trainers in the folder that $ORACLES names (`make oracles` fetches them): their
lists of layers are read from their sources and applied to the classes of diffusers and to those
that they have themselves; LyCORIS and its presets run on the classes of sd-scripts. Each entry's
identity is our id of the base model.
"""
import ast
import functools
import importlib
import os
import re

import torch

import zoo_comfy
import zoo_diffusers
from zoo_clones import ORACLES, at, commits, on_meta, stand_in, use
from zoo_common import Failure, entry
from zoo_trainers import halves, sd_scripts_model

RANK = 8
# Our id: a class of diffusers, perhaps @published. Anima is trained as the class of Cosmos.
CLASSES = {
    "anima": "CosmosTransformer3DModel@cosmos-predict2-2b",
    "auraflow": "AuraFlowTransformer2DModel", "chroma": "ChromaTransformer2DModel", "ernie-image": "ErnieImageTransformer2DModel",
    "flux.1-dev": "FluxTransformer2DModel@flux.1-dev", "flux.2-dev": "Flux2Transformer2DModel",
    "flux.2-klein-4b": "Flux2Transformer2DModel@flux.2-klein-4b",
    "flux.2-klein-9b": "Flux2Transformer2DModel@flux.2-klein-9b",
    "hidream-i1": "HiDreamImageTransformer2DModel",
    "hunyuan-video": "HunyuanVideoTransformer3DModel",
    "hunyuan-video-1.5": "HunyuanVideo15Transformer3DModel",
    "ideogram-4": "Ideogram4Transformer2DModel", "kandinsky-5": "Kandinsky5Transformer3DModel",
    "kolors": "UNet2DConditionModel@kolors", "krea-2": "Krea2Transformer2DModel",
    "longcat-image": "LongCatImageTransformer2DModel", "ltx-2": "LTX2VideoTransformer3DModel",
    "ltx-video": "LTXVideoTransformer3DModel", "lumina-2": "Lumina2Transformer2DModel",
    "minimax-h3": "MiniMaxH3Transformer3DModel",
    "pixart-alpha": "PixArtTransformer2DModel@pixart-alpha-1024",
    "pixart-sigma": "PixArtTransformer2DModel@pixart-sigma",
    "qwen-image": "QwenImageTransformer2DModel", "sana": "SanaTransformer2DModel",
    "sd-1": "UNet2DConditionModel@sd-1", "sd-2": "UNet2DConditionModel@sd-2",
    "sd-3-medium": "SD3Transformer2DModel@sd-3-medium",
    "sd-3.5-large": "SD3Transformer2DModel@sd-3.5-large",
    "sd-3.5-medium": "SD3Transformer2DModel@sd-3.5-medium", "sdxl": "UNet2DConditionModel@sdxl",
    "stable-cascade-c": "StableCascadeUNet@stable-cascade-c", "wan": "WanTransformer3DModel",
    "wan-2.1": "WanTransformer3DModel@wan-2.1-t2v-1.3b",
    "wan-2.2": "WanTransformer3DModel@wan-2.2-ti2v-5b", "z-image": "ZImageTransformer2DModel",
}
UNETS = ("sd-1", "sd-2", "sdxl", "kolors")
# What LAYER_PRESETS of Base*Setup.py are for.
ONETRAINER = {
    "Anima": ["anima"], "Chroma": ["chroma"], "Ernie": ["ernie-image"], "Flux": ["flux.1-dev"],
    "Flux2": ["flux.2-dev", "flux.2-klein-4b", "flux.2-klein-9b"], "HiDream": ["hidream-i1"],
    "HunyuanVideo": ["hunyuan-video"], "Ideogram": ["ideogram-4"], "Krea2": ["krea-2"],
    "PixArtAlpha": ["pixart-alpha", "pixart-sigma"], "Qwen": ["qwen-image"], "Sana": ["sana"],
    "StableDiffusion": ["sd-1", "sd-2"], "StableDiffusionXL": ["sdxl"], "ZImage": ["z-image"],
    "StableDiffusion3": ["sd-3-medium", "sd-3.5-medium", "sd-3.5-large"],
    "Wuerstchen": ["stable-cascade-c"],
}
# What the folders of SimpleTuner's models are for.
SIMPLETUNER = {
    "auraflow": ["auraflow"], "chroma": ["chroma"], "ernie": ["ernie-image"],
    "flux": ["flux.1-dev"],
    "flux2": ["flux.2-dev", "flux.2-klein-4b", "flux.2-klein-9b"], "hidream": ["hidream-i1"],
    "hunyuanvideo": ["hunyuan-video-1.5"], "kandinsky5_video": ["kandinsky-5"],
    "kolors": ["kolors"], "krea2": ["krea-2"], "longcat_image": ["longcat-image"],
    "ltxvideo": ["ltx-video"], "ltxvideo2": ["ltx-2"], "lumina2": ["lumina-2"],
    "minimaxh3": ["minimax-h3"], "pixart": ["pixart-sigma"], "qwen_image": ["qwen-image"],
    "sana": ["sana"], "sd1x": ["sd-1", "sd-2"], "sdxl": ["sdxl"], "z_image": ["z-image"],
    "sd3": ["sd-3-medium", "sd-3.5-medium", "sd-3.5-large"], "wan": ["wan", "wan-2.1", "wan-2.2"],
}
ATTENTION = ["to_k", "to_q", "to_v", "to_out.0"]
# Some layers, as people choose them.
FILTERS = (("blocks-7-20", r"(blocks|layers)\.(7|20)\."), ("feed-forward", r"ff|mlp|feed_forward"),
           ("q-v", r"(to_q|to_v|\.[qv]|w[qv]|q_proj|v_proj|to_query|to_value|qkv)$"))
# Models of ComfyUI of whose blocks that tells few.
OTHER_NAMES = ("cosmos-1", "koala", "sdxs", "stable-cascade")
SIMPLE = "simpletuner.helpers.models."
AI_TOOLKIT = "extensions_built_in.diffusion_models."
MAGE = {"in_channels": 128, "out_channels": 128, "context_in_dim": 2560, "hidden_size": 3072,
        "num_heads": 24, "depth": 12, "axes_dim": [16, 56, 56], "checkpoint": False}
# Classes of the trainers' own: id, class, arguments, the layers that they take.
OWN = (
    ("anima", SIMPLE + "anima.transformer:AnimaTransformerModel", {}, ATTENTION),
    ("longcat-video", SIMPLE + "longcat_video.transformer:LongCatVideoTransformer3DModel",
     {}, ["qkv", "proj", "q_linear", "kv_linear"]),
    ("boogu", AI_TOOLKIT + "boogu_image.src.transformer:BooguImageTransformer2DModel", {},
     ATTENTION),
    ("mage-flow", AI_TOOLKIT + "mageflow.src.transformer:MageFlow",
     {"params": (AI_TOOLKIT + "mageflow.src.transformer:MageFlowParams", MAGE)},
     ATTENTION + ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"]),
    ("prx", AI_TOOLKIT + "prx_pixel_t2i.src.transformer_prx:PRXTransformer2DModel", {}, ATTENTION),
)


def lora(stem, out, width, kernel, down, up, alpha):
    made = {"%s.%s.weight" % (stem, down): ("BF16", [RANK, width] + kernel),
            "%s.%s.weight" % (stem, up): ("BF16", [out, RANK] + [1] * len(kernel))}
    if alpha:
        made[stem + ".alpha"] = "BF16", []
    return made


def plain(name):
    return name.replace(".", "_")


# Name of the part and of the layer: stem, halves, whether alphas are written.
LAYOUTS = {
    "onetrainer": lambda part, name: ("lora_%s_%s" % (part, plain(name)), "lora_down", "lora_up",
                                      True),
    "kohya": lambda part, name: ("lora_unet_" + plain(name), "lora_down", "lora_up", True),
    "lycoris": lambda part, name: ("lycoris_" + plain(name), "lora_down", "lora_up", True),
    "diffusers": lambda part, name: ("%s.%s" % (part, name), "lora_A", "lora_B", False),
    "comfy": lambda part, name: ("diffusion_model." + name, "lora_A", "lora_B", False),
    "peft": lambda part, name: ("base_model.model." + name, "lora_A", "lora_B", False),
    "bare": lambda part, name: (name, "lora_A.default", "lora_B.default", False),
}


def jobs():
    for source in (onetrainer, simpletuner, lycoris, filters, encoders, own):
        for title, identity, arguments in source():
            yield make, title, identity, {"lora", title.split(".")[0]}, arguments


def make(title, identity, tasks, write, *arguments):
    return entry(title, identity, tasks, write(*arguments))


def layers(model):
    """(name, out, in, kernel) of what trainers adapt."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            yield name, module.out_features, module.in_features, []
        elif isinstance(module, torch.nn.Conv2d) and module.groups == 1:
            yield name, module.out_channels, module.in_channels, list(module.kernel_size)


@functools.cache
def classes_of_diffusers():
    return {job[1]: job[4] for job in zoo_diffusers.jobs()}


@functools.lru_cache(maxsize=4)
def layers_of_diffusers(identity):
    return list(layers(zoo_diffusers.build(*classes_of_diffusers()[CLASSES[identity]])))


def part_of(identity):
    return "unet" if identity in UNETS else "prior" if "cascade" in identity else "transformer"


def adapter(found, part, layout, how):
    """how: a key of TAKES and its words."""
    takes, state = TAKES[how[0]](how[1]), {}
    for name, out, width, kernel in found:
        if takes(name):
            stem, down, up, alpha = LAYOUTS[layout](part, name)
            state.update(lora(stem, out, width, kernel, down, up, alpha))
    if not state:
        raise Failure("none of its layers")
    return state


def diffusers_adapter(identity, layout, how):
    return adapter(layers_of_diffusers(identity), part_of(identity), layout, how)


# How a list of a trainer chooses layers.
TAKES = {
    "containing": lambda words: lambda name: not words or any(word in name for word in words),
    "ending": lambda words: lambda name: any(name == word or name.endswith("." + word)
                                             for word in words),
    "matching": lambda pattern: re.compile(pattern).search,
}


def source_of(path):
    try:
        with open(os.path.join(ORACLES, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Failure("no clone that has " + path) from None


def onetrainer():
    for base, identities in sorted(ONETRAINER.items()):
        text = source_of("OneTrainer/modules/modelSetup/Base%sSetup.py" % base)
        presets = re.search(r"LAYER_PRESETS = (\{.*?\n    \})", text, re.S).group(1)
        for preset, words in ast.literal_eval(presets).items():
            how = "containing", words
            if isinstance(words, dict):
                how = "matching" if words["regex"] else "containing", words["patterns"]
            if how[0] == "matching":
                how = "matching", "|".join(how[1])
            for identity in identities:
                for layout in ("onetrainer", "diffusers"):
                    if identity != "stable-cascade-c" or layout == "diffusers":
                        yield ("onetrainer.%s.%s.%s" % (identity, preset, layout), identity,
                               (diffusers_adapter, identity, layout, how))


def simpletuner():
    for folder, identities in sorted(SIMPLETUNER.items()):
        text = source_of("SimpleTuner/simpletuner/helpers/models/%s/model.py" % folder)
        lists = {"default": ATTENTION}
        for name, words in re.findall(r"^    (\w+)_LORA_TARGET = (\[.*?\])", text, re.S | re.M):
            lists[name.lower()] = ast.literal_eval(words)
        for identity in identities:
            for name, words in sorted(lists.items()):
                for layout in ("diffusers", "peft", "comfy", "lycoris"):
                    yield ("simpletuner.%s.%s.%s" % (identity, name, layout), identity,
                           (diffusers_adapter, identity, layout, ("ending", words)))


def filters():
    for identity in sorted(CLASSES):
        for name, pattern in FILTERS:
            yield ("filters.%s.%s" % (identity, name), identity,
                   (diffusers_adapter, identity, "comfy", ("matching", pattern)))
    for title, identity, _, _ in zoo_comfy.MODELS:
        for name, pattern in FILTERS if not title.startswith(OTHER_NAMES) else ():
            yield ("filters.comfy-%s.%s" % (title, name), identity,
                   (comfy_adapter, title, ("matching", pattern)))


def comfy_adapter(title, how):
    return adapter(layers_of_comfy(title), "unet", "kohya", how)


@functools.lru_cache(maxsize=4)
def layers_of_comfy(title):
    _, _, cls, arguments = next(row for row in zoo_comfy.MODELS if row[0] == title)
    return [(name.removesuffix(".weight"), tensor.shape[0], tensor.shape[1], [])
             for name, tensor in zoo_comfy.build(cls, arguments).state_dict().items()
             if name.endswith(".weight") and len(tensor.shape) == 2 and re.search(r"\.\d+\.", name)]


def own():
    for identity, cls, arguments, words in OWN:
        for name, how in (("default", ("ending", words)), ("blocks", ("matching", r"\.\d+\."))):
            for layout in ("comfy", "kohya", "diffusers"):
                yield ("own.%s.%s.%s" % (identity, name, layout), identity,
                       (own_adapter, cls, arguments, layout, how))


def own_model(cls, arguments):
    use("SimpleTuner")
    use("ai-toolkit")
    with stand_in(os.path.join(ORACLES, "ai-toolkit"), AI_TOOLKIT.rstrip(".")):
        arguments = {name: at(value[0])(**value[1]) if isinstance(value, tuple) else value
                     for name, value in arguments.items()}
        return on_meta(at(cls), arguments)


def own_adapter(cls, arguments, layout, how):
    return adapter(layers(own_model(cls, arguments)), "transformer", layout, how)


# ── LyCORIS ──

ALGORITHMS = ("lora", "loha", "lokr", "diag-oft", "glora", "dylora")
LYCORIS = (("sd1", "sd-1"), ("sd2", "sd-2"), ("sdxl", "sdxl"), ("flux", "flux.1"),
           ("chroma", "chroma"), ("sd3", "sd-3"), ("sd3.5-large", "sd-3.5-large"),
           ("lumina", "lumina-2"), ("hunyuan-image", "hunyuan-image-2.1"))


def lycoris():
    for base, identity in LYCORIS:
        for preset in ("attn-mlp", "attn-only", "unet-convblock-only"):
            for algorithm in ALGORITHMS if preset == "attn-mlp" else ("lora", "lokr"):
                if preset == "attn-mlp" or base in ("sd1", "sd2", "sdxl"):
                    yield ("lycoris.%s.%s.%s" % (base, preset, algorithm), identity,
                           (lycoris_adapter, base, preset, algorithm))


def lycoris_adapter(base, preset, algorithm):
    model = sd_scripts_model(base)
    network = importlib.import_module("lycoris.kohya").create_network(
        1.0, RANK, 1, None, None, model, preset=preset, algo=algorithm, factor=8)
    state = {}
    for module in network.unet_loras:
        for name, shape in halves(module.state_dict()).items():
            if "org_" not in name:
                state["%s.%s" % (module.lora_name, name)] = shape
    return state


# ── Text encoders ──

CLIP_L = ("CLIPTextModel", {"hidden_size": 768, "intermediate_size": 3072,
                            "num_hidden_layers": 12, "num_attention_heads": 12})
CLIP_H = ("CLIPTextModel", {"hidden_size": 1024, "intermediate_size": 4096,
                            "num_hidden_layers": 23, "num_attention_heads": 16})
CLIP_G = ("CLIPTextModel", {"hidden_size": 1280, "intermediate_size": 5120,
                            "num_hidden_layers": 32, "num_attention_heads": 20})
T5 = ("T5EncoderModel", {"d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24,
                         "num_heads": 64, "feed_forward_proj": "gated-gelu"})
ENCODERS = (("sd-1", "sd-1", (("te", CLIP_L),)), ("sd-2", "sd-2", (("te", CLIP_H),)),
            ("sdxl", "sdxl", (("te1", CLIP_L), ("te2", CLIP_G))),
            ("flux.1", "flux.1-dev", (("te1", CLIP_L), ("te2", T5))),
            ("sd-3", "sd-3.5-medium", (("te1", CLIP_L), ("te2", CLIP_G))),
            ("sd-3-t5", "sd-3.5-medium", (("te1", CLIP_L), ("te2", CLIP_G), ("te3", T5))),
            ("chroma", "chroma", (("te", T5),)))


def encoders():
    for name, identity, parts in ENCODERS:
        yield "encoders.%s.alone" % name, identity, (encoders_adapter, parts, None)
        yield "encoders.%s.beside" % name, identity, (encoders_adapter, parts, identity)
        yield "encoders.%s.tokens" % name, identity, (encoders_adapter, parts, identity, True)


def encoders_adapter(parts, identity, tokens=False):
    state = {}
    for part, (cls, sizes) in parts:
        model = on_meta(at("transformers:" + cls),
                        {"config": at("transformers:" + cls).config_class(**sizes)})
        for name, out, width, _ in layers(model):
            if "CLIP" in cls:   # what transformers had before version 5
                name = "text_model." + name.removeprefix("text_model.")
            state.update(lora("lora_%s_%s" % (part, plain(name)), out, width, [], "lora_down",
                              "lora_up", True))
    if identity:
        layout = "kohya" if identity in UNETS else "onetrainer"
        state.update(diffusers_adapter(identity, layout, ("containing", ["attn"])))
    if tokens:  # OneTrainer, BaseModelEmbedding: learned tokens in the file of the LoRA
        state["bundle_emb.token.clip_l"] = "F32", [4, 768]
    return state


def versions():
    return commits("OneTrainer", "SimpleTuner", "ai-toolkit", "sd-scripts", "ComfyUI")
