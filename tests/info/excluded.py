"""Every kind of adapter under every declared base: a base that may have such modules is believed,
one that cannot have them is a conflict and never the answer, whoever declares it."""
import json
import os

from compose import Model, lora

UNETS = {"sd-1", "sd-2", "svd"}
XL = {"sdxl", "ssd-1b", "segmind-vega", "kolors"}
FLUX = {"flux.1", "flux.1-dev", "flux.1-schnell", "chroma"}
KLEIN = {"flux.2", "flux.2-klein-4b"}
SD3 = {"sd-3", "sd-3-medium", "sd-3.5-medium", "sd-3.5-large"}
HUNYUAN = {"hunyuan-video", "framepack"}
WAN = {"wan", "wan-2.1", "wan-2.2"}

# name: modules (name, in, out), the bases that have such. Few and small: a part of a model is
# trained, and names alone must do.
ADAPTERS = {
    "unet": ("lora_unet_down_blocks_0_attentions_{0|1}_transformer_blocks_0_attn1_to_q 320 320",
             UNETS),
    "unet-ldm": ("lora_unet_input_blocks_4_1_proj_in 640 640", UNETS | {"sdxl", "ssd-1b", "segmind-vega"}),
    "unet-768": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k 768 640",
                 {"sd-1"}),
    "unet-1024": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k 1024 640",
                  {"sd-2", "svd"}),
    "unet-1280": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k 1280 768",
                  {"sdxl-refiner"}),
    "unet-2048": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k 2048 640",
                  XL),
    "unet-deep": ("lora_unet_down_blocks_1_attentions_0_transformer_blocks_{0|1}_attn1_to_q 640 640",
                  XL - {"segmind-vega"}),
    "double": ("lora_unet_double_blocks_{0|1}_img_attn_qkv 3072 9216", FLUX | KLEIN | HUNYUAN),
    "double-bfl": ("diffusion_model.double_blocks.{0|1}.img_attn.proj 3072 3072",
                   FLUX | KLEIN | HUNYUAN),
    "single": ("lora_unet_single_blocks_{0-3}_linear2 15360 3072", FLUX | HUNYUAN),
    "flux-whole": ("lora_unet_double_blocks_{0-18}_img_mlp_0 3072 12288\n"
                   "lora_unet_single_blocks_{0-37}_linear2 15360 3072", FLUX | HUNYUAN),
    "single-diffusers": ("transformer.single_transformer_blocks.{0-3}.attn.to_q 3072 3072",
                         FLUX | HUNYUAN | {"auraflow"}),
    "joint": ("lora_unet_joint_blocks_{0|1}_x_block_attn_qkv 1536 4608",
              SD3 - {"sd-3.5-large"}),
    "joint-diffusers": ("transformer.transformer_blocks.{0|1}.attn.add_k_proj 1536 1536",
                        SD3 - {"sd-3.5-large"}),
    "auraflow": ("transformer.joint_transformer_blocks.{0|1}.attn.to_q 3072 3072", {"auraflow"}),
    "qwen-image": ("transformer.transformer_blocks.{0|1}.img_mlp.net.0.proj 3072 12288",
                   {"qwen-image"}),
    "wan": ("diffusion_model.blocks.{0|1}.cross_attn.k 5120 5120", WAN),
    "cosmos": ("lora_unet_blocks_{0|1}_cross_attn_k_proj 1024 2048", {"cosmos-predict2", "anima"}),
    "z-image": ("diffusion_model.layers.{0|1}.attention.to_q 3840 3840", {"z-image"}),
    "lumina": ("lora_unet_layers_{0|1}_attention_qkv 2304 3840", {"lumina-2"}),
    "ltx": ("diffusion_model.transformer_blocks.{0|1}.attn1.to_k 2048 2048\n"
            "diffusion_model.transformer_blocks.{0|1}.attn2.to_k 2048 2048",
            {"ltx-video"}),
    "sana": ("transformer.transformer_blocks.{0|1}.attn1.to_q 2240 2240", {"sana"}),
    "kandinsky": ("lora_unet_visual_transformer_blocks_{0|1}_self_attention_to_key 1792 1792",
                  {"kandinsky-5"}),
    "hidream": ("diffusion_model.double_stream_blocks.{0|1}.block.attn1.to_k 2560 2560",
                {"hidream-i1"}),
    "llama": ("base_model.model.model.layers.{0|1}.self_attn.q_proj 4096 4096", set()),
    "gpt-2": ("base_model.model.transformer.h.{0|1}.attn.c_attn 768 2304", set()),
    "t5": ("base_model.model.encoder.block.{0|1}.layer.0.SelfAttention.q 768 768", set()),
}

# What producers call a base.
KOHYA = {"sd-1": "sd_v1", "sd-2": "sd_v2", "sdxl": "sdxl_base_v1-0", "flux.1": "flux1",
         "chroma": "chroma", "flux.2": "flux2", "flux.2-dev": "flux_2_dev", "sd-3": "sd3",
         "flux.2-klein-4b": "flux_2_klein_4b", "flux.2-klein-9b": "flux2_klein_9b",
         "sd-3-medium": "medium", "sd-3.5-medium": "5-medium", "sd-3.5-large": "5-large",
         "hunyuan-video": "hunyuan_video", "hunyuan-image-2.1": "hunyuan-image-2.1",
         "auraflow": "auraflow", "qwen-image": "qwen_image", "wan": "wan", "wan-2.1": "wan_2.1",
         "wan-2.2": "wan_2.2_14b", "anima": "anima", "z-image": "z_image", "lumina-2": "lumina2",
         "ltx-video": "ltx", "ltx-2": "ltx2", "kandinsky-5": "kandinsky5",
         "hidream-i1": "hidream_i1", "ssd-1b": "ssd", "segmind-vega": "vega"}
MODULES = {"flux.1": "networks.lora_flux", "sd-3": "networks.lora_sd3", "anima":
           "networks.lora_anima", "lumina-2": "networks.lora_lumina", "wan": "networks.lora_wan",
           "framepack": "networks.lora_framepack", "flux.2": "networks.lora_flux_2",
           "qwen-image": "networks.lora_qwen_image", "z-image": "networks.lora_zimage",
           "kandinsky-5": "networks.lora_kandinsky",
           "hunyuan-image-2.1": "networks.lora_hunyuan_image"}
SPEC = {"sd-1": "stable-diffusion-v1/lora", "sd-2": "stable-diffusion-v2-768-v/lora",
        "sdxl": "stable-diffusion-xl-v1-base/lora", "sdxl-refiner":
        "stable-diffusion-xl-v1-refiner", "svd": "stable-video-diffusion-img2vid-v1",
        "flux.1-dev": "flux-1-dev/lora", "flux.1-schnell": "flux-1-schnell/lora",
        "flux.2-dev": "Flux.2-dev/lora", "sd-3.5-large": "stable-diffusion-3-5-large/lora",
        "wan-2.2": "wan-22-5b", "cosmos-predict2": "nvidia-cosmos-predict2-t2i-2b",
        "sana": "nvidia-sana-1600", "qwen-image": "Qwen-Image/lora", "z-image": "Z-Image/lora",
        "ltx-video": "lightricks-ltx-video", "hidream-i1": "hidream-i1"}
CIVITAI = {"sd-1": "SD 1.5", "sd-2": "SD 2.1", "sdxl": "Illustrious", "kolors": "Kolors",
           "flux.1-dev": "Flux.1 D", "flux.1-schnell": "Flux.1 S", "chroma": "Chroma",
           "flux.2-dev": "Flux.2 D", "sd-3.5-medium": "SD 3.5 Medium", "svd": "SVD XT",
           "hunyuan-video": "Hunyuan Video", "wan-2.1": "Wan Video 14B t2v", "auraflow": "Pony V7",
           "qwen-image": "Qwen", "z-image": "ZImageTurbo", "lumina-2": "Lumina",
           "ltx-2": "LTXV2", "hidream-i1": "HiDream", "anima": "Anima"}
CLASS = {"flux.1": "FluxTransformer2DModel", "sd-3": "SD3Transformer2DModel", "wan":
         "WanTransformer3DModel", "sana": "SanaTransformer2DModel", "svd":
         "UNetSpatioTemporalConditionModel", "z-image": "ZImageTransformer2DModel",
         "lumina-2": "Lumina2Transformer2DModel", "qwen-image": "QwenImageTransformer2DModel"}
TAGS = {"sdxl": "stable-diffusion-xl", "flux.1": "flux", "wan": "wan", "sana": "sana"}
ONETRAINER = {"sd-1": "STABLE_DIFFUSION_15", "sdxl": "STABLE_DIFFUSION_XL_10_BASE",
              "flux.1-dev": "FLUX_DEV_1", "hunyuan-video": "HUNYUAN_VIDEO", "sana": "SANA"}
A1111 = {"sd-1": "SD1", "sd-2": "SD2", "sdxl": "SDXL", "sd-3": "SD3"}

# producer: its words, and the metadata and the files in which it says them
PRODUCERS = {
    "base-version": (KOHYA, lambda w: ({"ss_base_model_version": w}, {})),
    "module": (MODULES, lambda w: ({"ss_network_module": w}, {})),
    "modelspec": (SPEC, lambda w: ({"modelspec.architecture": w}, {})),
    "onetrainer": (ONETRAINER, lambda w: ({"ot_config": json.dumps({"model_type": w})}, {})),
    "civitai": (CIVITAI, lambda w: (None, {"x.civitai.info": json.dumps(
        {"id": 2, "modelId": 1, "name": "v", "baseModel": w, "model": {"type": "LORA"}})})),
    "lora-manager": (CIVITAI, lambda w: (None, {"x.metadata.json": json.dumps(
        {"model_name": "n", "base_model": w})})),
    "matrix": (CIVITAI, lambda w: (None, {"x.cm-info.json": json.dumps(
        {"ModelName": "n", "BaseModel": w})})),
    "rgthree": (CIVITAI, lambda w: (None, {"x.safetensors.rgthree-info.json": json.dumps(
        {"baseModel": w})})),
    "swarm": (SPEC, lambda w: (None, {"x.swarm.json": json.dumps({"architecture": w})})),
    "a1111": (A1111, lambda w: (None, {"x.json": json.dumps(
        {"activation text": "", "sd version": w})})),
    "adapter-config": (CLASS, lambda w: (None, {"adapter_config.json": json.dumps(
        {"peft_type": "LORA", "auto_mapping": {"base_model_class": w}})})),
    "config": (CLASS, lambda w: (None, {"config.json": json.dumps({"_class_name": w})})),
    "readme": (CIVITAI, lambda w: (None, {"README.md": "---\nbase_model: %s\n---\n" % w})),
    "readme-tag": (TAGS, lambda w: (None, {"README.md": "---\ntags:\n- %s\n---\n" % w})),
}
# Tags count only where nothing else tells; against what READMEs say a guess of the tensors stands.
MEEK = {"readme", "readme-tag"}


def cases():
    """Every adapter without a word; every pair of adapter and base, and each word of it by one of
    those that use it."""
    for place, (adapter, (modules, bases)) in enumerate(ADAPTERS.items()):
        yield adapter, None, None, modules, bases, (None, {})
        for words in (KOHYA, MODULES, SPEC, CIVITAI, CLASS, TAGS, ONETRAINER, A1111):
            users = [name for name, (used, _) in PRODUCERS.items() if used is words]
            for number, (base, word) in enumerate(words.items()):
                producer = users[(place + number) % len(users)]
                yield adapter, producer, base, modules, bases, PRODUCERS[producer][1](word)


def answer(result):
    return (result["model"]["architecture"] or {}).get("value")


def faults(result, alone, producer, base, bases):
    told = answer(result)
    seen = [c for c in result["conflicts"] if c["field"] == "architecture"]
    values = [c["value"] for one in seen for c in one["candidates"]]
    if base in bases:
        if seen:
            yield "a conflict with what may be: %s" % values
        if producer not in MEEK and told not in bases:
            yield "%s is not believed: %s" % (base, told)
        return
    label = (result["model"]["base_model"] or {}).get("trust", 0)
    if told != alone:
        yield "it is called %s, without a word %s" % (told, alone)
    if base not in values and producer != "readme-tag":
        yield "no conflict: %s" % values
    if label > 10:
        yield "its base_model stays: %s" % result["model"]["base_model"]
    if result["model"]["variant"] and told not in (bases or {told}):
        yield "a variant of what it cannot be"


def check(folder, tally, run):
    root, known, alone = os.path.join(folder, "excluded"), {}, {}
    for number, (adapter, producer, base, modules, bases, (meta, files)) in enumerate(cases()):
        place = os.path.join(root, str(number))
        os.makedirs(place)
        Model(lora(modules, 4, 4), meta).write(os.path.join(place, "x.safetensors"))
        for name, text in files.items():
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write(text)
        known[str(number)] = (adapter, producer, base, bases)
    made = run(["info", "-r", "--jsonl", "-f", "model,conflicts", root])
    for line in made.stdout.splitlines(): # natural order: each adapter's first stands first
        result = json.loads(line)
        adapter, producer, *case = known.pop(os.path.basename(os.path.dirname(result["path"])))
        if not producer:
            alone[adapter] = answer(result)
        else:
            tally.add("excluded:%s says %s of %s" % (producer, case[0], adapter),
                      faults(result, alone[adapter], producer, *case))
    tally.add("excluded: all are answered", sorted(known)[:5])
