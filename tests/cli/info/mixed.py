#!/usr/bin/env python3
"""A folder of thirty models as people have them.

  mixed.py DIR
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "info"))

import cases_adapters  # noqa: E402
import cases_marks  # noqa: E402
import cases_models  # noqa: E402
from compose import Model, write  # noqa: E402

CASES = {}
for module in (cases_models, cases_adapters, cases_marks):
    for name, files in module.CASES.items():
        model = files if isinstance(files, Model) else next(
            f for f in files.values() if isinstance(f, Model))
        CASES[module.__name__[6:] + "/" + name] = model


def rows(case, meta=None):
    return Model(CASES[case].rows, meta if meta else CASES[case].meta)


def civitai(model, version, base, words=(), kind="LORA"):
    return {"id": 7, "modelId": 70, "name": version, "baseModel": base,
            "trainedWords": list(words), "model": {"name": model, "type": kind},
            "files": []}


QWEN3_GPTQ = """
model.embed_tokens.weight BF16 151936,4096
model.layers.{0-35}.self_attn.{q|o}_proj.qweight I32 512,4096
model.layers.{0-35}.self_attn.{k|v}_proj.qweight I32 512,1024
model.layers.{0-35}.self_attn.{q|k|v|o}_proj.g_idx I32 4096
model.layers.{0-35}.mlp.{gate|up}_proj.qweight I32 512,12288
model.layers.{0-35}.mlp.down_proj.qweight I32 1536,4096
model.layers.{0-35}.self_attn.{q|o}_proj.qzeros I32 32,512
model.layers.{0-35}.self_attn.{q|o}_proj.scales F16 32,4096
model.layers.{0-35}.self_attn.{q|k}_norm.weight BF16 128
model.layers.{0-35}.{input|post_attention}_layernorm.weight BF16 4096
model.norm.weight BF16 4096
lm_head.weight BF16 151936,4096
"""
KOHYA = {"ss_network_module": "networks.lora", "ss_base_model_version": "sdxl_base_v1-0"}
FILES = {
    # checkpoints
    "checkpoints/sd_xl_base_1.0.safetensors": rows("models/sdxl"),
    "checkpoints/noobaiXLVpred_v10.safetensors": rows("models/sdxl.v-pred"),
    "checkpoints/noobaiXLVpred_v10.civitai.info":
        civitai("NoobAI-XL (NAI-XL)", "V-Pred-1.0", "NoobAI", kind="Checkpoint"),
    "checkpoints/ponyDiffusionV6XL_v6StartWithThisOne.safetensors": rows("models/sdxl"),
    "checkpoints/ponyDiffusionV6XL_v6StartWithThisOne.civitai.info":
        civitai("Pony Diffusion V6 XL", "V6 (start with this one)", "Pony", kind="Checkpoint"),
    "checkpoints/v1-5-pruned-emaonly.safetensors": rows("models/sd1.checkpoint"),
    "checkpoints/flux1-dev-fp8.safetensors": rows("models/flux.checkpoint"),
    # diffusion models
    "diffusion_models/flux1-dev.safetensors": rows("models/flux.dev"),
    "diffusion_models/flux1-fill-dev.safetensors": rows("models/flux.fill"),
    "diffusion_models/wan2.2_i2v_high_noise_14B_fp16.safetensors":
        rows("models/wan.14b-i2v-2.2"),
    "diffusion_models/wan2.2_i2v_low_noise_14B_fp16.safetensors":
        rows("models/wan.14b-i2v-2.2"),
    "diffusion_models/qwen_image_fp8_e4m3fn.safetensors": rows("models/qwen-image"),
    # parts
    "vae/ae.safetensors": rows("models/vae.flux"),
    "vae/wan_2.1_vae.safetensors": rows("models/vae.wan"),
    "vae/vae-ft-mse-840000-ema-pruned.safetensors": rows("models/vae.sd"),
    "text_encoders/clip_l.safetensors": rows("models/clip-l"),
    "text_encoders/t5xxl_fp16.safetensors": rows("models/t5-xxl"),
    "controlnet/controlnet-canny-sdxl-1.0/diffusion_pytorch_model.fp16.safetensors":
        rows("models/controlnet.diffusers"),
    "upscale_models/4x-UltraSharp.safetensors": rows("models/upscaler"),
    "embeddings/easynegative.safetensors": rows("models/embedding"),
    "ipadapter/ip-adapter_sdxl_vit-h.safetensors": rows("models/ip-adapter.sdxl"),
    # adapters
    "loras/sdxl/neonscape_v3-000008.safetensors": rows(
        "adapters/dynamic-rank", dict(KOHYA, **{
            "modelspec.title": "Neonscape XL", "ss_sd_model_name": "ponyDiffusionV6XL.safetensors",
            "modelspec.date": "2024-05-01"})),
    "loras/sdxl/watercolor.safetensors": rows("adapters/sdxl.te-only", {
        "ss_output_name": "watercolor", "modelspec.date": "2025-01-31T10:00:00"}),
    "loras/sdxl/watercolor.civitai.info":
        civitai("Watercolour", "v1", "Illustrious", ["wtrclr", "soft edges", "paper texture"]),
    "loras/old/watercolor.safetensors": rows("adapters/sd2", {"ss_output_name": "watercolor"}),
    "loras/flux/flux_dreamscape_r16.safetensors": rows("adapters/flux.kohya"),
    "loras/z_image_portrait.safetensors": rows("adapters/z-image"),
    "loras/wan/lightx2v_I2V_14B_480p_rank64.safetensors": rows("adapters/wan.14b-i2v"),
    "loras/conflicting.safetensors": rows("adapters/sdxl.te-only", {
        "ss_base_model_version": "sd_v1", "ss_network_module": "networks.lora",
        "ss_output_name": "conflicting"}),
    "loras/pytorch_lora_weights.safetensors": rows("adapters/sdxl.diffusers-names"),
    # language models
    "llm/Qwen3-8B-GPTQ-Int4/model.safetensors": Model(QWEN3_GPTQ),
    "llm/Qwen3-8B-GPTQ-Int4/config.json": {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
        "quantization_config": {"quant_method": "gptq", "bits": 4}},
    "llm/llama-3.1-8b-instruct/model.safetensors": rows("models/llama"),
    "llm/mystery.safetensors": Model("a.b.weight F16 4,4"),
}


def main():
    write(sys.argv[1], FILES)


if __name__ == "__main__":
    main()
