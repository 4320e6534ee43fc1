"""Lines to be pasted into a prompt, and the weight in them."""
import json

from compose import Model
from cases_adapters import peft
from parts import CLIP_L, llama, sdxl_lora, sdxl_unet


def lora(name="x", **files):
    made = {name + ".safetensors": Model(sdxl_lora(8, 8), {"format": "pt"})}
    made.update({name + end.replace("__", "."): content for end, content in files.items()})
    return made


def words(*trained):
    return {"id": 2, "modelId": 1, "name": "v1", "trainedWords": list(trained)}


def tips(**values):
    return {"file_name": "x", "sha256": "", "usage_tips": json.dumps(values)}


def tags(**folders):
    images = {name: max(counts.values()) for name, counts in folders.items()}
    return {"x.safetensors": Model(sdxl_lora(8, 8), {
        "ss_tag_frequency": json.dumps(folders),
        "ss_dataset_dirs": json.dumps({name: {"n_repeats": 1, "img_count": n}
                                       for name, n in images.items()})})}


VECTORS = Model("emb_params F32 4,768")
CASES = {
    "plain": lora(),
    "weight": lora(__json={"activation text": "fox (grey), tail", "preferred weight": 0.7}),
    "weight.zero": lora(__json={"activation text": "fox", "preferred weight": 0}),
    "weight.huge": lora(__json={"activation text": "fox", "preferred weight": 1e300}),
    "weight.negative": lora(__json={"activation text": "fox", "preferred weight": -1.5}),
    "range": lora(__metadata__json=tips(strength_min=0.6, strength_max=0.9)),
    "range.text": lora(__metadata__json=tips(strength_min="0.5", strength_max="0.6")),
    "range.both": lora(__metadata__json=tips(strength=0.65, strength_min=0.6, strength_max=0.9)),
    "range.most": lora(__metadata__json=tips(strength_max=0.8)),
    "range.least": lora(__metadata__json=tips(strength_min=1.2)),
    "range.loose": lora(__metadata__json=tips(strength_min=0.2, strength_max="much")),
    "range.rgthree": {"x.safetensors": Model(sdxl_lora(8, 8)),
                      "x.safetensors.rgthree-info.json": {
                          "file": "x.safetensors", "strengthMin": 0.4, "strengthMax": 0.8}},
    "words.each": lora(__civitai__info=words("blue fox", "red fox")),
    "words.whole": lora(__civitai__info=words("blue fox, night", "red fox, day")),
    "words.best": lora(__json={"activation text": "mine"}, __civitai__info=words("blue fox")),
    "words.tag": lora(__civitai__info=words("<lora:other:1> fox", "fym <artist>")),
    "words.open-tag": lora(__civitai__info=words("<lora:other", "fox")),
    "words.lines": lora(__json={"activation text": "fox\n\tnight\x00"}),
    "words.long": lora(__json={"activation text": "a" * 65536}),
    "words.folders": tags(**{"10_zorblax": {"zorblax": 10, "hat": 10},
                             "10_qwibble": {"qwibble": 12, "scarf": 12}}),
    "words.none": tags(**{"10_a": {"1girl": 10, "solo": 10}}),
    "name.colon": lora("a:b"),
    "name.bracket": lora("a>b"),
    "name.open": lora("a<b"),
    "name.control": lora("a\x1bb"),
    "name.blank": lora("big fox"),
    "name.round": lora("fox (v2)"),
    "locon": {"x.safetensors": Model(sdxl_lora(8, 8) + [
        ("lora_unet_down_blocks_0_resnets_0_conv1.lora_%s.weight" % way, "F16", shape, None)
        for way, shape in (("down", [8, 320, 3, 3]), ("up", [320, 8, 1, 1]))])},
    "embedding": {"easy.safetensors": VECTORS},
    "embedding.blank": {"easy negative.safetensors": VECTORS},
    "embedding.round": {"easy(v2).safetensors": VECTORS},
    "embedding.colon": {"easy:v2.safetensors": VECTORS},
    "language": {"x.safetensors": Model(peft(
        "base_model.model.model.layers.{0-27}.self_attn.{q_proj|v_proj} 1024 2048\n"
        "base_model.model.model.layers.{0-27}.mlp.gate_proj 1024 3072", 8))},
    "checkpoint": {"x.safetensors": Model(sdxl_unet(), None, "model.diffusion_model.")},
    "text-encoder": {"x.safetensors": Model(CLIP_L)},
    "language-model": {"x.safetensors": Model(llama(4))},
}
