"""What config.json and its like declare, and beside each what must not be taken for it."""
import json

from compose import Model, lora, peft as pairs
from parts import SD_VAE, flux_bfl, flux_kohya, flux_model, llama, sd1_unet, sdxl_lora

ODD = "odd.{0-3}.weight F16 8,8"
ESRGAN = "model.0.weight F16 64,3,3,3\nmodel.1.sub.0.RDB1.conv1.0.weight F16 32,64,3,3"
VIT = """
cls_token F32 1,1,768
patch_embed.proj.weight F32 768,3,16,16
blocks.{0-11}.attn.qkv.weight F32 2304,768
blocks.{0-11}.mlp.fc1.weight F32 3072,768
"""


def beside(config, rows=ODD, name="config.json", file="model.safetensors"):
    return {"m/" + file: Model(rows), "m/" + name: config}


def classed(name, rows=ODD, **more):
    return beside(dict({"_class_name": name}, **more), rows)


def typed(kind, *classes, rows=ODD, **more):
    return beside(dict({"model_type": kind, "architectures": list(classes)}, **more), rows)


def peft(kind, rows="base_model.model.odd.{0-1}.weight F16 8,8", **more):
    return beside(dict({"peft_type": kind, "base_model_name_or_path": "acme/base"}, **more), rows,
                  "adapter_config.json", "adapter_model.safetensors")


def quantized(rows=ODD.replace("F16", "I8"), **config):
    return beside({"model_type": "llama", "quantization_config": config}, rows)


def header(rows, **meta):
    return Model(rows, {key.replace("__", "."): value for key, value in meta.items()})


def civitai(base):
    return {"id": 22, "modelId": 11, "name": "v1", "baseModel": base, "files": [],
            "model": {"name": "Foxes", "type": "LORA"}}


def trained_on(base):
    return beside({"peft_type": "LORA", "r": 8, "base_model_name_or_path": base}, DECODER,
                  "adapter_config.json", "adapter_model.safetensors")


def configured(model_type, rows=ODD):
    return header(rows, config=json.dumps({"transformer": {"model_type": model_type}}))


def card(front, rows=ODD):
    return {"m/model.safetensors": Model(rows), "m/README.md": "---\n%s\n---\n" % front}


LORA = """
base_model.model.odd.{0-1}.lora_A.weight F16 8,64
base_model.model.odd.{0-1}.lora_B.weight F16 64,8
"""
DECODER = pairs("base_model.model.model.layers.{0-27}.self_attn.{q_proj|v_proj} 3584 3584", 8)
XL = Model(sdxl_lora(8, 8)).rows
COSMOS = pairs("diffusion_model.blocks.{0-27}.self_attn.{q_proj|k_proj|v_proj} 2048 2048", 8)
WAN = pairs("diffusion_model.blocks.{0-39}.self_attn.{q|k|v} 5120 5120", 8)
LTX13 = pairs("diffusion_model.transformer_blocks.{0-47}.attn{1|2}.{to_q|to_k|to_v} 4096 4096", 8)
LTX = pairs("diffusion_model.transformer_blocks.{0-27}.attn{1|2}.{to_q|to_k|to_v} 2048 2048", 8)
LTX_4096 = pairs("diffusion_model.transformer_blocks.{0-47}.attn{1|2}.{to_q|to_k|to_v} 4096 4096", 8)
ATTENTION = "model.layers.{0-3}.self_attn.{q|k|v|o}_proj."
GPTQ = ATTENTION + "qweight I32 64,512\n" + ATTENTION + "qzeros I32 4,64\n" \
    + ATTENTION + "scales F16 4,512\n" + ATTENTION + "g_idx I32 512\n"
REST = """
model.embed_tokens.weight F16 1000,512
model.layers.{0-3}.mlp.{gate|up}_proj.weight F16 2048,512
model.layers.{0-3}.mlp.down_proj.weight F16 512,2048
model.layers.{0-3}.{input|post_attention}_layernorm.weight F16 512
model.norm.weight F16 512
lm_head.weight F16 1000,512
"""
PACKED = """
model.layers.{0-1}.self_attn.q_proj.weight_packed I32 64,8
model.layers.{0-1}.self_attn.q_proj.weight_scale F16 64,1
model.layers.{0-1}.self_attn.q_proj.weight_shape I64 2
"""
EXPERTS = ("base_model.model.model.layers.{0-1}.mlp.experts.lora_A.weight BF16 128,64\n"
           "base_model.model.model.layers.{0-1}.mlp.experts.lora_B.weight BF16 96,128\n"
           "base_model.model.model.layers.{0-1}.mlp.experts.base_layer.lora_A.weight BF16 128,64\n"
           "base_model.model.model.layers.{0-1}.mlp.experts.base_layer.lora_B.weight BF16 96,128")
QUERY = ("base_model.model.model.layers.{0-1}.self_attn.q_proj.lora_A.weight BF16 16,64\n"
         "base_model.model.model.layers.{0-1}.self_attn.q_proj.lora_B.weight BF16 64,16")

CASES = {
    "transformers": typed("nemotron_h", "NemotronHForCausalLM"),
    "transformers.head": typed("afmoe", "AfmoeForSequenceClassification"),
    "transformers.class": beside({"architectures": ["NemotronHForCausalLM"]}),
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
    "child": beside({"_class_name": "ChromaTransformer2DModel"}, Model(flux_bfl()).rows),
    "child.header": header(Model(flux_bfl()).rows, modelspec__architecture="chroma/lora"),
    "child.anima": header(COSMOS, ss_base_model_version="anima"),
    "child.wan": header(WAN, ss_base_model_version="wan_2.2_14b"),
    "child.ltx": header(LTX_4096, modelspec__architecture="lightricks-ltx-video-2/lora"),
    "child.pony": {"x.safetensors": Model(XL), "x.civitai.info": civitai("Pony")},
    "child.illustrious": {"x.safetensors": Model(XL), "x.civitai.info": civitai("Illustrious")},
    "child.noobai": {"x.safetensors": Model(XL, {"ss_sd_model_name": "noobaiXL_v10.safetensors"})},
    "child.timm": beside({"architecture": "beit_base_patch16_224"}, VIT),
    "child.timm-guess": beside({"architecture": "convnext_tiny"}, VIT),
    "child.timm-not": beside({"architecture": "convnext_tiny"}, ESRGAN),
    "child.sibling": header(COSMOS, ss_base_model_version="wan_2.2_14b"),
    "child.grandparent": header(XL, modelspec__architecture="flux-1-dev/lora"),
    "guess": beside({"model_type": "olmo9", "architectures": ["Olmo9ForCausalLM"]},
                    Model(llama(4, 512, 512, 1000)).rows),
    "guess.not": header(XL, ss_base_model_version="sd_v1"),
    "tie.class": {"m/model.safetensors": Model(ODD, {
        "model_class": "NunchakuFluxTransformer2dModel"}),
        "m/config.json": {"_class_name": "OddThing"}},
    "tie.order": {"m/model.safetensors": Model(ODD, {"model_class": "OddThing"}),
                  "m/config.json": {"_class_name": "FluxTransformer2DModel"}},
    "tie.child": {"m/model.safetensors": Model(ODD, {"model_class": "FluxTransformer2DModel"}),
                  "m/config.json": {"_class_name": "FluxTransformer2DModel",
                                    "guidance_embeds": True}},
    "child.hint": {"chroma.safetensors": Model(flux_kohya())},
    "child.not": beside({"_class_name": "QwenImageTransformer2DModel"}, Model(flux_model()).rows),
    "repo.owner": {"m/adapter_model.safetensors": Model(LORA),
                   "m/README.md": "---\nbase_model: Qwen/Qwen3-8B\n---\n"},
    "repo.name": {"m/adapter_model.safetensors": Model(LORA),
                  "m/README.md": "---\nbase_model: Qwen-7B\n---\n"},
    "repo.label": {"m/adapter_model.safetensors": Model(ODD),
                   "m/README.md": "---\nbase_model: Qwen-Image\n---\n"},
    "repo.qwen": trained_on("Qwen/Qwen2.5-7B-Instruct"),
    "repo.mistral": trained_on("mistralai/Mistral-7B-v0.1"),
    "repo.longer": trained_on("Qwen/Qwen2.5-VL-7B-Instruct"),
    "repo.path": trained_on("/home/fox/models/Qwen3-8B"),
    "repo.not": trained_on("Qwen/Qwen2-Audio-7B"),
    "repo.near": trained_on("acme/a-Qwen2.5-7B"),
    "repo.card": card("base_model: black-forest-labs/FLUX.1-dev"),
    "repo.told": card("base_model: black-forest-labs/FLUX.1-dev", XL),
    "repo.part": card("base_model: black-forest-labs/FLUX.1-dev", Model(SD_VAE).rows),
    "config.type": configured("animate2"),
    "config.child": configured("flow_rvs", WAN),
    "config.variant": configured("vace"),
    "config.near": configured("animate3"),
    "type.spelt": typed("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"),
    "type.record": typed("minimax_m2", "MiniMaxM2ForCausalLM"),
    "variant.own": header(LTX13, ss_base_model_version="ltx"),
    "variant.lost": header(LTX13, ss_base_model_version="ltx2"),
    "words.newbie": header(ODD, ss_base_model_version="newbie"),
    "words.framepack": header(ODD, ss_network_module="networks.lora_framepack"),
    "spec.longer": {"x.safetensors": Model(ODD, {"modelspec.architecture": "sana-video"})},
    "spec.later": {"x.safetensors": Model(ODD, {"modelspec.architecture": "hunyuan-image-3.0"})},
    "spec.next": {"x.safetensors": Model(ODD, {"modelspec.architecture": "lumina-next/lora"})},
    "peft.lora": peft("LORA", LORA, r=8, lora_alpha=16),
    "peft.adalora": peft("ADALORA", LORA, r=8),
    "peft.vblora": peft("VBLORA", r=4, target_modules=["v", "q"]),
    "peft.fourierft": peft("FOURIERFT", scaling=150.0),
    "peft.prompt": peft("PROMPT_TUNING", "prompt_embeddings F32 8,64", num_virtual_tokens=8),
    "peft.near": peft("", LORA, r=8),
    "peft.osf": peft("OSF", effective_rank=16, target_modules=["q_proj"]),
    "peft.multitask": peft("MULTITASK_PROMPT_TUNING", "prompt_embeddings F32 8,64", num_ranks=2,
                           num_virtual_tokens=8),
    "peft.ia3": peft("IA3", target_modules=["k_proj", "down_proj"]),
    # of stacked experts the tensors have the rank of all together
    "peft.parameters": peft("LORA", EXPERTS, r=16, lora_alpha=32,
                            target_parameters=["mlp.experts.gate_up_proj"]),
    "peft.parameters.alone": peft("LORA", EXPERTS),
    "peft.parameters.others": peft("LORA", EXPERTS + "\n" + QUERY, lora_alpha=32),
    "peft.parameters.named": peft("LORA", EXPERTS.replace("experts", "input_linear"), r=16,
                                  lora_alpha=32, target_parameters=["mlp.input_linear.weight"]),
    "peft.parameters.pattern": peft("LORA", EXPERTS.replace("experts", "input_linear"), r=16,
                                    rank_pattern={"input_linear": 8},
                                    target_parameters=["mlp.input_linear.weight"]),
    "mlx.beside": {"m/adapters.safetensors": Model("model.layers.{0-1}.odd F16 8,8"),
                   "m/0000100_adapters.safetensors": Model("model.layers.{0-1}.odd F16 8,8"),
                   "m/adapter_config.json": {"fine_tune_type": "lora", "model": "acme/base",
                                             "lora_parameters": {"rank": 8, "scale": 20.0}}},
    "mlx.near": {"m/fox.safetensors": Model("model.layers.{0-1}.odd F16 8,8"),
                 "m/other.safetensors": Model("model.layers.{0-1}.odd F16 8,8"),
                 "m/adapter_config.json": {"fine_tune_type": "lora", "model": "acme/base",
                                           "lora_parameters": {"rank": 8, "scale": 20.0}}},
    # mlx-lm's DoRA without its configuration: m is the magnitude
    "mlx.dora": Model("model.layers.{0-1}.self_attn.q_proj.lora_a F32 64,8\n"
                      "model.layers.{0-1}.self_attn.q_proj.lora_b F32 8,64\n"
                      "model.layers.{0-1}.self_attn.q_proj.m F32 64"),
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
    "quantized.undone": quantized(ODD, quant_method="gptq", bits=4),
    "quantized.modelopt": quantized(quant_method="modelopt", quant_algo="W4A8_AWQ"),
    "quantized.modelopt-nvfp4": quantized(quant_method="modelopt", quant_algo="NVFP4"),
    "quantized.modelopt-odd": quantized(quant_method="modelopt", quant_algo="MIXED_PRECISION"),
    "quantized.odd": quantized(quant_method="aqlm", in_group_size=8),
    "unmapped.spec": header(ODD, modelspec__architecture="odd-one/lora"),
    "unmapped.base": header(Model(sdxl_lora(8, 8)).rows, ss_base_model_version="odd_v9"),
    "unmapped.base-known": header(Model(sdxl_lora(8, 8)).rows,
                                  ss_base_model_version="sdxl_base_v1-0"),
    "unmapped.unknown": header(Model(sdxl_lora(8, 8)).rows, ss_base_model_version="unknown",
                               modelspec__architecture="unknown/lora"),
    "unmapped.vae": header(Model(SD_VAE).rows, modelspec__architecture="odd-one/vae"),
    "unmapped.civitai": {"x.safetensors": Model(XL), "x.civitai.info": civitai("Odd XL 9")},
    "unmapped.readme": card("base_model: acme/odd-9"),
    "unmapped.label": card("base_model: Pony"),
    "unmapped.tags": card("tags:\n- odd-9\n- lora"),
    "tag.base": card("tags:\n- base_model:adapter:acme/odd-9"),
    "tag.base-near": card("tags:\n- base_models:acme/odd-9"),
    "tag.model": card("tags:\n- flux"),
    "tag.label": card("tags:\n- pony"),
    "tag.near": card("tags:\n- influx"),
    "tag.other": card("tags:\n- flux", XL),
    "words.chroma": header(ODD, modelspec__architecture="Chroma1/lora"),
    "words.ernie": header(ODD, ss_base_model_version="ernie_image"),
    "words.ideogram": header(ODD, ot_config='{"model_type": "IDEOGRAM_4"}'),
    "words.cascade": header(ODD, modelspec__architecture="stable-cascade-v1-prior/lora"),
    "words.wuerstchen": header(ODD, modelspec__architecture="wuerstchen-v2-prior"),
    "words.nucleus": header(ODD, ss_base_model_version="nucleus_image"),
    "unmapped.onetrainer": header(ODD, ot_config='{"model_type": "ODD_NEW_9"}'),
    "gguf.llama": header(ODD, gguf__general__architecture="llama", gguf__general__name="Small",
                         gguf__general__license="mit"),
    "gguf.flux": header(ODD, gguf__general__architecture="flux"),
    "gguf.adapter": header(ODD, gguf__general__architecture="qwen2",
                           gguf__general__type="adapter"),
    "gguf.projector": header(ODD, gguf__general__architecture="qwen2",
                             gguf__general__type="mmproj"),
    "gguf.odd": header(ODD, gguf__general__architecture="odd-9"),
    "gguf.near": header(ODD, general__architecture="qwen2"),
    "attention": Model(ATTENTION + "weight BF16 512,512"),
    "attention.near": Model("encoder.layers.{0-3}.self_attn.{q|k|v|out}_proj.weight F16 512,512"),
    "attention.packed": Model(PACKED.replace("{0-1}.self_attn.q_proj",
                                             "{0-3}.self_attn.{q|k|v|o}_proj")),
    "attention.quantised": Model(GPTQ + REST),
    "attention.alone": Model(GPTQ),
    "encoder.civitai": {"x.safetensors": Model(llama(22, 2048, 256, 32000)), "x.cm-info.json": {
        "ModelId": 11, "VersionId": 22, "ModelName": "Foxes", "ModelType": "TextEncoder",
        "BaseModel": "Flux.1 D", "Source": "Civitai"}},
    "encoder": {"text_encoder/model.safetensors": Model(llama(22, 2048, 256, 32000)),
                "text_encoder/config.json": {"model_type": "llama",
                                             "architectures": ["LlamaForCausalLM"]}},
}
