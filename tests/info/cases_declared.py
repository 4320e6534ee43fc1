"""What config.json and its like declare, and beside each what must not be taken for it."""
import json

from compose import Model
from parts import flux_kohya, flux_model, llama, sd1_unet, sdxl_lora

ODD = "odd.{0-3}.weight F16 8,8"


def beside(config, rows=ODD, name="config.json", file="model.safetensors"):
    return {"m/" + file: Model(rows), "m/" + name: config}


def classed(name, rows=ODD, **more):
    return beside(dict({"_class_name": name}, **more), rows)


def typed(kind, *classes, rows=ODD, **more):
    return beside(dict({"model_type": kind, "architectures": list(classes)}, **more), rows)


def peft(kind, rows="base_model.model.odd.{0-1}.weight F16 8,8", **more):
    return beside(dict({"peft_type": kind, "base_model_name_or_path": "acme/base"}, **more), rows,
                  "adapter_config.json", "adapter_model.safetensors")


def quantized(rows=ODD, **config):
    return beside({"model_type": "llama", "quantization_config": config}, rows)


def header(rows, **meta):
    return Model(rows, {key.replace("__", "."): value for key, value in meta.items()})


def named(stem, rows):
    return {stem + ".safetensors": Model(rows)}


def tags(counts):
    return {"ss_tag_frequency": json.dumps({"1_img": counts}),
            "ss_dataset_dirs": json.dumps({"1_img": {"n_repeats": 1, "img_count": 20}})}


LORA = """
base_model.model.odd.{0-1}.lora_A.weight F16 8,64
base_model.model.odd.{0-1}.lora_B.weight F16 64,8
"""
PACKED = """
model.layers.{0-1}.self_attn.q_proj.weight_packed I32 64,8
model.layers.{0-1}.self_attn.q_proj.weight_scale F16 64,1
model.layers.{0-1}.self_attn.q_proj.weight_shape I64 2
"""
CASES = {
    "transformers": typed("llama4_text", "Llama4ForCausalLM"),
    "transformers.head": typed("afmoe", "AfmoeForSequenceClassification"),
    "transformers.class": beside({"architectures": ["Llama4ForCausalLM"]}),
    "transformers.known-class": beside({"architectures": ["Qwen2MoeForCausalLM"]}),
    "transformers.generation": typed("odd_vl", "OddVLForConditionalGeneration"),
    "transformers.siglip2": typed("siglip2", "Siglip2Model"),
    "diffusers": classed("OddTransformer2DModel"),
    "diffusers.vae": classed("AutoencoderKLQwenImage21"),
    "diffusers.near-vae": classed("AutoencoderKLQwenImage"),
    "diffusers.many": classed("UNet2DConditionModel"),
    "diffusers.many-known": classed("UNet2DConditionModel", Model(sd1_unet()).rows),
    "diffusers.control": classed("OddControlNetModel"),
    "model-index": beside({"_class_name": "OddPipeline"}, name="model_index.json"),
    "model-index.known": beside({"_class_name": "QwenImageEditPlusPipeline"},
                                name="model_index.json"),
    "timm": beside({"architecture": "convnext_tiny", "num_classes": 1000}),
    "timm.near": beside({"num_classes": 1000, "Architecture": "convnext_tiny"}),
    "child": beside({"_class_name": "ChromaTransformer2DModel"}, Model(flux_kohya()).rows),
    "child.header": header(Model(flux_kohya()).rows, modelspec__architecture="chroma/lora"),
    "child.hint": {"chroma.safetensors": Model(flux_kohya())},
    "child.not": beside({"_class_name": "QwenImageTransformer2DModel"}, Model(flux_model()).rows),
    "peft.lora": peft("LORA", LORA, r=8, lora_alpha=16),
    "peft.adalora": peft("ADALORA", LORA, r=8),
    "peft.vblora": peft("VBLORA", r=4, target_modules=["v", "q"]),
    "peft.fourierft": peft("FOURIERFT", scaling=150.0),
    "peft.prompt": peft("PROMPT_TUNING", "prompt_embeddings F32 8,64", num_virtual_tokens=8),
    "peft.near": peft("", LORA, r=8),
    "mlx-adapter": beside({"fine_tune_type": "dora", "model": "acme/base", "lora_parameters": {
        "rank": 8, "scale": 20.0, "keys": ["self_attn.q_proj"]}},
        "model.layers.{0-1}.self_attn.q_proj.odd F16 8,8", "adapter_config.json",
        "adapters.safetensors"),
    "quantized.w4a16": quantized(PACKED, quant_method="compressed-tensors",
                                 format="pack-quantized", config_groups={"group_0": {
                                     "weights": {"num_bits": 4}, "input_activations": None}}),
    "quantized.nvfp4": quantized(PACKED, quant_method="compressed-tensors",
                                 format="nvfp4-pack-quantized", config_groups={"group_0": {
                                     "weights": {"num_bits": 4},
                                     "input_activations": {"num_bits": 4}}}),
    "quantized.mxfp4": quantized(quant_method="compressed-tensors", format="mxfp4-pack-quantized"),
    "quantized.exl2": quantized(quant_method="exl2", bits=4.25),
    "quantized.exl3": quantized(quant_method="exl3", bits=3.0),
    "quantized.hqq": quantized(quant_method="hqq", quant_config={
        "weight_quant_params": {"nbits": 4, "group_size": 64}}),
    "quantized.quanto": quantized(quant_method="quanto", weights="int8"),
    "quantized.torchao": quantized(quant_method="torchao", quant_type="int4_weight_only"),
    "quantized.torchao-config": quantized(quant_method="torchao", quant_type={
        "default": {"_type": "Float8WeightOnlyConfig"}}),
    "quantized.bnb": quantized(quant_method="bitsandbytes", load_in_4bit=True,
                               bnb_4bit_quant_type="nf4"),
    "quantized.bnb-off": quantized(quant_method="bitsandbytes", load_in_4bit=False,
                                   load_in_8bit=False),
    "quantized.odd": quantized(quant_method="aqlm", in_group_size=8),
    "unmapped.spec": header(ODD, modelspec__architecture="odd-one/lora"),
    "unmapped.base": header(Model(sdxl_lora(8, 8)).rows, ss_base_model_version="odd_v9"),
    "unmapped.base-known": header(Model(sdxl_lora(8, 8)).rows,
                                  ss_base_model_version="sdxl_base_v1-0"),
    "unmapped.onetrainer": header(ODD, ot_config='{"model_type": "ODD_NEW_9"}'),
    "hint.pony": named("fox_Pony_v6", sdxl_lora(8, 8)),
    "hint.pony-other": named("fox_ponytail", sdxl_lora(8, 8)),
    "hint.noobai": named("fox-NoobAI-vpred", sdxl_lora(8, 8)),
    "hint.illustrious": named("Illustrious-fox-lightning", sdxl_lora(8, 8)),
    "hint.turbo": named("fox-turbo", flux_kohya()),
    "hint.hyper": named("Hyper-FLUX.1-dev-8steps", flux_kohya()),
    "hint.lcm": named("fox-lcm", sdxl_lora(8, 8)),
    "hint.fill": named("flux1-fill-fox", flux_kohya()),
    "hint.scale": named("4x-Fox", ODD),
    "name.stem": {"Foxes/silver_fox.safetensors": Model(ODD)},
    "name.generic": {"Foxes/pytorch_lora_weights_rank4.safetensors": Model(ODD)},
    "name.generic-half": {"Foxes/model.fp16.safetensors": Model(ODD)},
    "name.generic-step": {"Foxes/checkpoint-500.safetensors": Model(ODD)},
    "name.generic-not": {"Foxes/model_of_a_fox.safetensors": Model(ODD)},
    "name.template": {"Foxes/silver_fox.safetensors": Model(ODD, {
        "modelspec.title": "SDXL 1.0 LoRA"})},
    "name.template-not": {"Foxes/silver_fox.safetensors": Model(ODD, {
        "modelspec.title": "SDXL Fox LoRA"})},
    "words.generic": {"fox.safetensors": Model(sdxl_lora(8, 8), tags(
        {"rating_safe": 20, "year 2024": 20, "very awa": 20, "uncensored": 20,
         "anime screenshot": 20, "vx7 fox": 20}))},
    "words.split": {"fox.safetensors": Model(sdxl_lora(8, 8), tags(
        {"vx7 fox ||| solo": 20, "qz9 tail BREAK smile": 20}))},
    "words.split-not": {"fox.safetensors": Model(sdxl_lora(8, 8), tags({"BREAKER fox": 20}))},
    "words.separator": {"fox.safetensors": Model(sdxl_lora(8, 8), dict(
        tags({"vx7 fox $$ solo": 20}), ss_datasets=json.dumps([{"subsets": [
            {"image_dir": "img", "img_count": 20, "keep_tokens_separator": "$$"}]}])))},
    "words.stem": {"learned_embeds.safetensors": Model("emb_params F32 4,768")},
    "words.stem-not": {"silver_fox.safetensors": Model("emb_params F32 4,768")},
    "encoder": {"text_encoder/model.safetensors": Model(llama(22, 2048, 256, 32000)),
                "text_encoder/config.json": {"model_type": "llama",
                                             "architectures": ["LlamaForCausalLM"]}},
}
