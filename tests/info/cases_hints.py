"""What a file's name hints at, what a model is called, which words call it; beside each what not."""
import json

from compose import Model, peft
from parts import flux_kohya, sdxl_lora

ODD = "odd.{0-3}.weight F16 8,8"
XL = Model(sdxl_lora(8, 8)).rows
FLUX = Model(flux_kohya()).rows
WAN = peft("diffusion_model.blocks.{0-39}.self_attn.{q|k|v} 5120 5120", 8)
QWEN = peft("transformer_blocks.{0-59}.attn.{to_q|to_k|add_k_proj|add_q_proj} 3072 3072\n"
            "transformer_blocks.{0-59}.img_mlp.net.0.proj 3072 12288", 8)
ESRGAN = """
model.0.weight F16 64,3,3,3
model.1.sub.{0-22}.RDB{1-3}.conv{1-5}.0.weight F16 32,64,3,3
model.1.sub.23.weight F16 64,64,3,3
model.{3|6|8}.weight F16 64,64,3,3
model.10.weight F16 3,64,3,3
"""


def named(stem, rows):
    return {stem + ".safetensors": Model(rows)}


def tags(*words, **more):
    return {"fox.safetensors": Model(XL, dict({
        "ss_tag_frequency": json.dumps({"1_img": {word: 20 for word in words}}),
        "ss_dataset_dirs": json.dumps({"1_img": {"n_repeats": 1, "img_count": 20}})}, **more))}


def captions(*texts):
    """A training on these captions, which the scripts cut at commas."""
    counts = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        counts[part] = counts.get(part, 0) + 1
    return {"fox.safetensors": Model(XL, {
        "ss_tag_frequency": json.dumps({"1_img": counts}),
        "ss_dataset_dirs": json.dumps({"1_img": {"n_repeats": 1, "img_count": len(texts)}})})}


def each(text, *parts):
    return captions(*(text % part for part in parts))


THINGS = ["a car in a garage", "two birds in a tree", "the sea at noon", "boats on a lake"]


def titled(title, stem="silver_fox"):
    return {"Foxes/%s.safetensors" % stem: Model(ODD, {"modelspec.title": title})}


CASES = {
    "base.pony": named("fox_Pony_v6", XL),
    "base.camel": named("ponyDiffusionV6XL", XL),
    "base.ponytail": named("fox_ponytail", XL),
    "base.capitals": named("PONYTAIL", XL),
    "base.other": named("fox_pony", FLUX),
    "base.noobai": named("fox-NoobAI-vpred", XL),
    "base.illustrious": named("Illustrious-fox-lightning", XL),
    "base.illustrated": named("illustriousness", XL),
    "pred.camel": named("noobaiXLNAIXL_vPred10Version", XL),
    "pred.near": named("vpredator", XL),
    "speed.turbo": named("fox-turbo", FLUX),
    "speed.turbo-camel": named("foxXL_v21TurboDPM", XL),
    "speed.turbofan": named("Turbofan", FLUX),
    "speed.hyper": named("Hyper-FLUX.1-dev-8steps", FLUX),
    "speed.hyperion": named("Hyperion", FLUX),
    "speed.lightning": named("sdxl_lightning_4step", XL),
    "speed.lightningbolt": named("lightningbolt", XL),
    "speed.lcm": named("fox-lcm", XL),
    "speed.lcmax": named("fox-lcmax", XL),
    "noise.high": named("Wan2.2-T2V-A14B-4steps-lora-V1_HIGH_fp8", WAN),
    "noise.low": named("wan_fox_low_lora_v2", WAN),
    "noise.camel": named("wan_foxHighNoise", WAN),
    "noise.last": named("wan-fox-high", WAN),
    "noise.highlight": named("wan_HIGHLIGHT", WAN),
    "noise.allow": named("wanAllow", WAN),
    "noise.heels": named("wan_high_heels", WAN),
    "noise.light": named("wan_low_light", WAN),
    "noise.other": named("fox_HIGH", XL),
    "use.i2v": named("wan_i2v_fox", WAN),
    "use.i2v-near": named("wan_i2vfox", WAN),
    "use.t2v": named("foxT2V", WAN),
    "use.edit": named("qwen-edit-fox", QWEN),
    "use.edited": named("qwen-edited-by-fox", QWEN),
    "use.edit-other": named("edit-fox", XL),
    "use.inpaint": named("foxInpaint", XL),
    "use.inpainter": named("foxinpainter", XL),
    "use.fill": named("flux1-fill-fox", FLUX),
    "use.filled": named("flux1-filled-fox", FLUX),
    "scale.4x": named("4x-Fox", ESRGAN),
    "scale.camel": named("4xNomosFox", ESRGAN),
    "scale.x4": named("RealFox_x4plus", ESRGAN),
    "scale.2x": named("2xFox_v3", ESRGAN),
    "scale.14x": named("14x-fox", ESRGAN),
    "scale.4xl": named("fox-4xl", ESRGAN),
    "scale.other": named("4x-fox", XL),
    "name.stem": {"Foxes/silver_fox.safetensors": Model(ODD)},
    "name.lora": {"Foxes/pytorch_lora_weights_rank4.safetensors": Model(ODD)},
    "name.adapter": {"Foxes/adapter_model.safetensors": Model(ODD)},
    "name.half": {"Foxes/model.fp16.safetensors": Model(ODD)},
    "name.diffusion": {"Foxes/diffusion_pytorch_model.fp16.safetensors": Model(ODD)},
    "name.shard": {"Foxes/model-00001-of-00001.safetensors": Model(ODD)},
    "name.step": {"Foxes/checkpoint-500.safetensors": Model(ODD)},
    "name.embeds": {"Foxes/learned_embeds.safetensors": Model(ODD)},
    "name.plain-lora": {"Foxes/lora.safetensors": Model(ODD)},
    "name.telling": {"Foxes/model_of_a_fox.safetensors": Model(ODD)},
    "name.lora-of": {"Foxes/lora_of_foxes.safetensors": Model(ODD)},
    "title.template": titled("SDXL 1.0 LoRA"),
    "title.template-flux": titled("FLUX.1 dev LoRA"),
    "title.template-joined": titled("FluxDev 1.0 LoRA"),
    "title.joined-near": titled("FluxDevil 1.0 LoRA"),
    "title.generic-stem": titled("SDXL 1.0 LoRA", "x"),
    "title.telling": titled("SDXL Fox LoRA"),
    "words.generic": tags("rating_safe", "rating:general", "rating_explicit", "year 2024",
                          "year 1999", "year_2023", "age", "hetero", "very awa",
                          "uncensored", "anime screenshot", "masterpiece", "absurdres",
                          "best quality", "newest", "vx7 fox"),
    "words.near": tags("yearling 2024", "rated fox", "awa fox"),
    "words.split": tags("vx7 fox ||| solo", "qz9 tail BREAK smile"),
    "words.breaker": tags("BREAKER fox"),
    "words.separator": tags("vx7 fox $$ solo", ss_datasets=json.dumps([{"subsets": [
        {"image_dir": "img", "img_count": 20, "keep_tokens_separator": "$$"}]}])),
    "words.no-separator": tags("vx7 fox $$ solo"),
    "words.capital": each("The image shows %s. It is small.", *THINGS),
    "words.pronoun": captions("He is standing next to her, he looks sad", "He is running",
                              "He is eating, and he looks well"),
    "words.shout": each("THE IMAGE SHOWS %s.", *(thing.upper() for thing in THINGS)),
    "words.capital-near": each("A photo of IT man and %s.", *THINGS),
    "words.name": each("Zkj woman and %s, and the mood is cheerful.", *THINGS),
    "words.continued": each("This image depicts %s, and the mood is cheerful today.", *THINGS[:3]),
    "words.continued-capital": each("Here we see %s, the paper is torn.", *THINGS),
    "words.continued-near": each("%s, the zorgbot looks on.", *THINGS),
    "words.files": captions("IMG_2031.jpg", "IMG_2032.jpg", "IMG_2033.jpg", "IMG_2034.jpg"),
    "words.german": each("Ein Foto von %s", "einer Frau mit Hut", "einem Mann im Anzug",
                         "einem Hund im Park"),
    "words.french": each("une photo d'%s", "une femme avec une robe", "un homme dans la rue",
                         "un chien sur la plage"),
    "words.spanish": each("una foto de %s", "una mujer en la calle", "un hombre en el coche",
                          "un perro en la playa"),
    "words.stem": {"learned_embeds.safetensors": Model("emb_params F32 4,768")},
    "words.stem-step": {"learned_embeds-steps-500.safetensors": Model("emb_params F32 4,768")},
    "words.stem-telling": {"silver_fox.safetensors": Model("emb_params F32 4,768")},
}
