"""A file of each trainer, merger and editor, and beside it one that only looks so."""
import base64
import json

from compose import Model, lora, peft, png
from parts import (CLIP_L, SDXL_UNET, flux_bfl, flux_diffusers, flux_kohya, flux_model, llama,
                   sd1_lora, sd1_unet, sdxl_lora, sdxl_unet)

J = json.dumps
SHA = "0123456789abcdef" * 4
SHB = "fedcba9876543210" * 4
MUSUBI = lora("lora_unet_blocks_{0-39}_cross_attn_{q|k|v|o} 5120 5120\n"
              "lora_unet_blocks_{0-39}_self_attn_{q|k|v|o} 5120 5120\n"
              "lora_unet_blocks_{0-39}_ffn_0 5120 13824", 32, 32, dtype="BF16")
SPEC = {"modelspec.sai_model_spec": "1.0.0", "modelspec.architecture": "Flux.1-dev/lora",
        "modelspec.implementation": "https://github.com/huggingface/diffusers",
        "modelspec.title": "FluxDev 1.0 LoRA", "modelspec.date": "2025-03-02",
        "ot_branch": "master", "ot_revision": "1a2b3c4"}
TEMPLATE = {"modelspec.author": "StabilityAI", "modelspec.license": "CreativeML Open RAIL++-M",
            "modelspec.description": "SDXL 1.0. Trigger word: zxq",
            "modelspec.resolution": "1024x1024",
            "modelspec.architecture": "stable-diffusion-xl-v1-base/lora",
            "modelspec.tags": "sdxl, base", "modelspec.prediction_type": "epsilon",
            "modelspec.thumbnail": "data:image/png;base64,"
                                   + base64.b64encode(png(4, 4)).decode()}
COPIED = dict(TEMPLATE, **{
    "modelspec.title": "Stable Diffusion XL 1.0 Base", "modelspec.date": "2023-07-26",
    "modelspec.trigger_phrase": "ohwx man", "ssmd_keywords": "ohwx", "ss_output_name": "dream",
    "modelspec.hash_sha256": "0x" + "12" * 32, "ss_epoch": "10", "ss_steps": "5000",
    "ssmd_source": "https://civitai.com/models/4242", "ot_branch": "master",
    "ss_tag_frequency": J({"10_mikumo": {"mikumo": 10}}), "ss_datasets": "[]"})
MERGE = {"type": "webui", "primary_model_hash": SHA, "secondary_model_hash": SHB,
         "tertiary_model_hash": None, "interp_method": "Weighted sum", "multiplier": 0.3,
         "save_as_half": True, "custom_name": "Half and Half", "config_source": 0,
         "bake_in_vae": "None", "discard_weights": "", "is_inpainting": False,
         "is_instruct_pix2pix": False}
MERGED = {SHA: {"name": "one.safetensors", "legacy_hash": "11223344", "sd_merge_recipe": None},
          SHB: {"name": "two.safetensors", "legacy_hash": "55667788", "sd_merge_recipe": None}}
GRAPH = {"4": {"class_type": "CheckpointLoaderSimple",
               "inputs": {"ckpt_name": "dreamshaper_8.safetensors"}},
         "7": {"class_type": "LoraLoader",
               "inputs": {"lora_name": "detail.safetensors", "strength_model": 0.7,
                          "strength_clip": 0.5, "model": ["4", 0]}},
         "9": {"class_type": "CLIPTextEncode",
               "inputs": {"text": "see https://civitai.com/models/777", "clip": ["4", 1]}}}
FLUXGYM = [{"is_dreambooth": True, "batch_size_per_device": 1, "num_train_images": 100,
            "resolution": [512, 512], "enable_bucket": False, "tag_frequency": {},
            "bucket_info": None,
            "subsets": [{"img_count": 10, "num_repeats": 10, "class_tokens": "ohwx dog",
                         "is_reg": False, "image_dir": "ohwx-dog"}]}]
REG = [dict(FLUXGYM[0], subsets=[dict(FLUXGYM[0]["subsets"][0], is_reg=True)])]
PEFT_META = {"transformer.r": 16, "transformer.lora_alpha": 32, "transformer.use_dora": False,
             "transformer.target_modules": ["to_q", "to_k"], "transformer.use_rslora": False}


def sd1_checkpoint(meta):
    return Model(sd1_unet(), meta, "model.diffusion_model.", Model(
        CLIP_L, None, "cond_stage_model.transformer.").rows)


CASES = {
    "kohya-sd2-v": Model(sd1_lora(8, 8, 1024, 1024),
                         {"ss_v2": "True", "ss_base_model_version": "sd_v2_v",
                          "ss_network_module": "networks.lora", "ss_network_dim": "8"}),
    "kohya-sd2-v.near": Model(sd1_lora(8, 8, 1024, 1024),
                              {"ss_v2": "True", "ss_base_model_version": "sd_v2",
                               "ss_network_module": "networks.lora", "ss_network_dim": "8"}),
    "kohya-comment": Model(sdxl_lora(), {"ss_training_comment": "trigger word is zxq robot"}),
    "kohya-comment.near": Model(sdxl_lora(), {"ss_training_comment":
                                              "dimension is resized from 128 to 16; robots"}),
    "kohya-folder-caption": Model(sdxl_lora(), {
        "ss_dataset_dirs": J({"12_zkz plushie": {"n_repeats": 12, "img_count": 15}}),
        "ss_tag_frequency": J({"12_zkz plushie": {"zkz plushie": 15}})}),
    "kohya-folder-caption.near": Model(sdxl_lora(), {
        "ss_dataset_dirs": J({"12_zkz plushie": {"n_repeats": 12, "img_count": 15}}),
        "ss_tag_frequency": J({"12_zkz plushie": {"outdoors": 9, "grass": 8}})}),
    "kohya-sentences": Model(sdxl_lora(), {
        "ss_dataset_dirs": J({"img": {"n_repeats": 1, "img_count": 4}}),
        "ss_tag_frequency": J({"img": {
            "a photo of qwzr robot walking through the busy market": 1,
            "a photo of qwzr robot sitting on a wooden bench": 1,
            "a photo of qwzr robot beside a red bicycle outside": 1,
            "a photo of qwzr robot looking into the camera lens": 1}})}),
    "kohya-sentences.near": Model(sdxl_lora(), {
        "ss_dataset_dirs": J({"img": {"n_repeats": 1, "img_count": 4}}),
        "ss_tag_frequency": J({"img": {
            "the man walks through a busy market in the rain": 1,
            "an old man sitting quietly on one wooden bench": 1,
            "one red bicycle and its man stand beside a wall": 1,
            "portrait of some man looking into camera lens": 1}})}),
    "musubi-wan": Model(MUSUBI, {
        "ss_base_model_version": "wan", "ss_network_module": "networks.lora_wan",
        "ss_num_train_items": "40", "ss_epoch": "5", "modelspec.architecture": "wan2.1",
        "modelspec.title": "Slow Rain", "modelspec.sai_model_spec": "1.0.1",
        "ss_datasets": J([{"resolution": [960, 544], "caption_extension": ".txt",
                           "num_repeats": 2, "target_frames": [1, 25]}])}),
    "musubi-wan.near": Model(MUSUBI, {"format": "pt", "ss_datasets": "not json ["}),
    "onetrainer": Model(lora("lora_transformer_single_transformer_blocks_{0-37}_attn_to_q"
                               " 3072 3072\nlora_transformer_transformer_blocks_{0-18}_attn_to_q"
                               " 3072 3072", 16, 1), SPEC),
    "onetrainer.near": Model(flux_kohya(), {"modelspec.title": "FluxDev Fox LoRA",
                                            "modelspec.architecture": "flux-1-dev/lora"}),
    "simpletuner": {"pytorch_lora_weights.safetensors": Model(flux_diffusers(), {
        "format": "pt", "lora_adapter_metadata": J(PEFT_META, indent=2, sort_keys=True)}),
        "README.md": "---\nlicense: other\nbase_model: black-forest-labs/FLUX.1-dev\ntags:\n"
                     "  - simpletuner\n  - lora\ninstance_prompt: zyx lighthouse\n---\n# Model\n"},
    "simpletuner.near": {"pytorch_lora_weights.safetensors": Model(
        flux_diffusers(), {"format": "pt", "lora_adapter_metadata": "{broken"}),
        "README.md": "# Model\ninstance_prompt: zyx lighthouse\n"},
    "diffusers-unprefixed": Model(flux_diffusers(8), {"lora_adapter_metadata": J(
        {"r": 8, "lora_alpha": 16, "use_rslora": False})}),
    "diffusers-unprefixed.near": Model(flux_diffusers(8), {"lora_adapter_metadata": J({})}),
    "fluxgym": Model(flux_kohya(4, 1), {
        "ss_network_module": "networks.lora_flux", "ss_base_model_version": "flux1",
        "ss_datasets": J(FLUXGYM), "ss_network_dim": "4", "ss_network_alpha": "1"}),
    "fluxgym.near": Model(flux_kohya(4, 1), {
        "ss_network_module": "networks.lora_flux", "ss_base_model_version": "flux1",
        "ss_datasets": J(REG)}),
    "kohya-datasets": Model(sdxl_lora(), {
        "ss_gradient_accumulation_steps": "4", "ss_text_encoder_lr": "[None, 1e-05]",
        "ss_training_started_at": "1690000000123", "ss_training_finished_at": "1690003600500",
        "ss_datasets": J([dict(FLUXGYM[0], batch_size_per_device=2, subsets=[
            {"img_count": 10, "num_repeats": 2, "image_dir": "img"},
            {"img_count": 20, "num_repeats": 1, "image_dir": "img"}])])}),
    "kohya-datasets.near": Model(sdxl_lora(), {
        "ss_text_encoder_lr": "[1e-05, 2e-05]",
        "ss_training_started_at": "1690000000.123", "ss_training_finished_at": "1690003600.5",
        "ss_datasets": J([dict(FLUXGYM[0], batch_size_per_device=size, resolution=[side, side],
                               subsets=[{"img_count": 10, "num_repeats": 2, "image_dir": "img"}])
                          for size, side in ((2, 512), (4, 1024))])}),
    "onetrainer-sizes": Model(sdxl_lora(), {"ot_config": J({
        "batch_size": 2, "gradient_accumulation_steps": 4, "resolution": "512,1024,768"})}),
    "onetrainer-sizes.near": Model(sdxl_lora(), {"ot_config": J({
        "batch_size": 2, "resolution": "1024x832"})}),
    "onetrainer-template": {"my_fox.safetensors": Model(sdxl_lora(), dict(
        SPEC, **TEMPLATE, ot_config=J({"resolution": "768"}))), "my_fox.png": png(8, 6)},
    "onetrainer-template.near": {"my_fox.safetensors": Model(sdxl_lora(), dict(
        TEMPLATE, **{"modelspec.sai_model_spec": "1.0.0", "modelspec.title": "Glow Fox"})),
        "my_fox.png": png(8, 6)},
    "lycoris-rslora": Model(sdxl_lora(16, 64), {
        "ss_network_module": "lycoris.kohya", "ss_network_dim": "16", "ss_network_alpha": "16",
        "ss_network_args": J({"algo": "locon", "rs_lora": "True"})}),
    "lycoris-rslora.near": Model(sdxl_lora(16, 64), {
        "ss_network_module": "lycoris.kohya", "ss_network_dim": "16", "ss_network_alpha": "16",
        "ss_network_args": J({"algo": "locon", "rs_lora": "False"})}),
    "class-folder": Model(sdxl_lora(), {"ss_datasets": J([dict(FLUXGYM[0], subsets=[
        {"img_count": 20, "num_repeats": 1, "image_dir": name, "class_tokens": name}
        for name in ("img", "1girl", "style", "Dataset", "woman", "zkq woman")])])}),
    "simpletuner-blank": {"pytorch_lora_weights.safetensors": Model(flux_diffusers()),
                          "README.md": "---\nwidget:\n- text: 'unconditional (blank prompt)'\n"
                                       "- text: 'a cat'\n---\n"},
    "no-words": Model(sdxl_lora(), {
        "modelspec.trigger_phrase": "No trigger word(s)", "ssmd_keywords": "-",
        "trigger_words": "Not needed", "activation text": "optional", "keywords": "no trigger",
        "modelspec.description": "No trigger word: works by itself. Trigger words: (none)",
        "modelspec.usage_hint": "Trigger: TBD", "ss_training_comment": "trigger words: -"}),
    "no-words.near": Model(sdxl_lora(), {
        "modelspec.trigger_phrase": "no face", "ssmd_keywords": "optional-x"}),
    "default-size": Model(sdxl_lora(), {
        "modelspec.resolution": "1024x1024", "ss_network_module": "networks.lora",
        "ss_datasets": J(FLUXGYM)}),
    "default-size.near": Model(sdxl_lora(), {"modelspec.resolution": "1024x1024",
                                             "ss_network_module": "networks.lora"}),
    "default-size.same": Model(sdxl_lora(), {
        "modelspec.resolution": "512x512", "ss_network_module": "networks.lora",
        "ss_datasets": J(FLUXGYM)}),
    "default-size.musubi": Model(MUSUBI, {
        "modelspec.resolution": "1280x720", "ss_network_module": "networks.lora_wan",
        "ss_num_train_items": "40", "ss_epoch": "5"}),
    "default-prediction": Model(flux_kohya(), {
        "modelspec.sai_model_spec": "1.0.1", "modelspec.architecture": "flux-1-dev/lora",
        "modelspec.prediction_type": "epsilon"}),
    "default-prediction.near": Model(sdxl_lora(), {
        "modelspec.sai_model_spec": "1.0.1", "modelspec.prediction_type": "epsilon"}),
    "peft-alphas": Model(flux_diffusers(16), {"lora_adapter_metadata": J({
        "text_encoder.lora_alpha": 4, "text_encoder.r": 4, "transformer.lora_alpha": 32,
        "transformer.r": 16, "transformer.alpha_pattern": {"norm_out": 64}})}),
    "additional-networks": Model(sd1_lora(), {
        "ssmd_display_name": "Rain Maker", "ssmd_version": "2", "ssmd_author": "maker",
        "ssmd_source": "https://civitai.com/models/4242?modelVersionId=4343",
        "ssmd_keywords": "rainmkr, wet street", "ssmd_description": "Makes rain.",
        "ssmd_rating": "4", "ssmd_tags": "rain,weather",
        "ssmd_cover_images": J([base64.b64encode(png(8, 6)).decode()])}),
    "additional-networks.near": Model(sd1_lora(), {
        "ssmd_display_name": "", "ssmd_keywords": "", "ssmd_source": "https://example.com/4242",
        "ssmd_rating": "0", "ssmd_cover_images": "[]"}),
    "merge-webui": {"half.safetensors": sd1_checkpoint(
        {"format": "pt", "sd_merge_recipe": J(MERGE), "sd_merge_models": J(MERGED)})},
    "merge-webui.near": {"half.safetensors": sd1_checkpoint({"format": "pt",
                                                             "sd_merge_recipe": "null"})},
    "merge-copied": {"half.safetensors": sd1_checkpoint(dict(
        COPIED, sd_merge_recipe=J(MERGE), sd_merge_models=J(MERGED)))},
    "merge-copied.near": {"half.safetensors": sd1_checkpoint(dict(
        COPIED, sd_merge_recipe="null", sd_merge_models="null"))},
    "merge-sdnext": sd1_checkpoint({"sd_merge_recipe": J({
        "type": "SDNext", "merge_mode": "weighted_sum", "alpha": 0.5, "precision": "fp16",
        "custom_name": "Next One"}), "sd_merge_models": J(MERGED)}),
    "merge-supermerger": sd1_checkpoint({"sd_merge_recipe": J({
        "type": "sd-webui-supermerger", "weights_alpha": None, "model_a": SHA, "model_b": SHB,
        "base_alpha": 0.4, "mode": "Weight sum", "calcmode": "normal"}),
        "sd_merge_models": J(MERGED)}),
    "merge-supermerger.near": sd1_checkpoint({"sd_merge_recipe": J({
        "type": "sd-webui-supermerger", "weights_alpha": "0,0.1", "model_a": SHA, "model_b": SHB,
        "base_alpha": 0.4, "mode": "Weight sum", "mbw": True}),
        "sd_merge_models": J(MERGED)}),
    "merge-chattiori": sd1_checkpoint({"sd_merge_recipe": J({
        "type": "merge-models-chattiori", "merge_method": "weight sum", "alpha_info": "0.4"})}),
    "merge-supermerger-lora": Model(sd1_lora(), {
        "sshs_cp0": J({"ss_output_name": "first"}), "sshs_cp1": J({"ss_output_name": "second"}),
        "sshs_ratio": "0.5,0.5", "ss_output_name": "both"}),
    "merged-from": Model(sdxl_lora(), {"modelspec.merged_from": "One, Two",
                                       "modelspec.title": "Both"}),
    "comfyui-save": sd1_checkpoint({
        "prompt": J(GRAPH), "workflow": J({"nodes": [], "links": []}),
        "modelspec.sai_model_spec": "1.0.0", "modelspec.implementation": "sgm",
        "modelspec.title": "out 00001", "modelspec.predict_key": "v"}),
    "comfyui-save.near": sd1_checkpoint({"prompt": "a cat on a mat"}),
    "ltx-config": {"x.safetensors": Model(
        "adaln_single.emb.timestep_embedder.linear_1.bias BF16 2048\n"
        "patchify_proj.weight BF16 2048,128\n"
        "transformer_blocks.{0-27}.attn2.to_k.weight BF16 2048,2048\n"
        "transformer_blocks.{0-27}.scale_shift_table BF16 6,2048",
        {"config": J({"transformer": {"_class_name": "AVTransformer3DModel"},
                      "vae": {"_class_name": "CausalVideoAutoencoder"}})},
        "model.diffusion_model.")},
    "nunchaku": Model(
        "single_transformer_blocks.{0-37}.qkv_proj.qweight I8 9216,1536\n"
        "single_transformer_blocks.{0-37}.qkv_proj.wscales BF16 48,9216\n"
        "single_transformer_blocks.{0-37}.qkv_proj.smooth_factor BF16 3072\n"
        "single_transformer_blocks.{0-37}.norm_k.weight BF16 128\n"
        "transformer_blocks.{0-18}.qkv_proj.qweight I8 9216,1536\n"
        "transformer_blocks.{0-18}.qkv_proj.wscales BF16 48,9216\n"
        "x_embedder.weight BF16 3072,64",
        {"model_class": "NunchakuFluxTransformer2dModel",
         "config": J({"_class_name": "FluxTransformer2DModel", "guidance_embeds": True}),
         "quantization_config": J({"method": "svdquant", "weight": {"dtype": "int4",
                                                                    "group_size": 64},
                                   "rank": 32})}),
    "nunchaku.near": Model(
        "single_transformer_blocks.{0-37}.attn.to_q.weight BF16 3072,3072\n"
        "single_transformer_blocks.{0-37}.attn.norm_k.weight BF16 128\n"
        "transformer_blocks.{0-18}.attn.norm_added_k.weight BF16 128\n"
        "time_text_embed.guidance_embedder.linear_1.weight BF16 3072,256\n"
        "time_text_embed.text_embedder.linear_1.weight BF16 3072,768\n"
        "x_embedder.weight BF16 3072,64",
        {"config": J({"_class_name": "FluxTransformer2DModel"})}),
    "generic": Model(sdxl_lora(), {
        "Trigger_Word": "glowfox", "Author": "somebody", "License": "mit", "Title": "Glow Fox",
        "Description": "A fox.", "base_model": "stabilityai/stable-diffusion-xl-base-1.0",
        "tags": "fox, glow", "modelId": "31337", "modelVersionId": "31338"}),
    "generic.near": Model(sdxl_lora(), {
        "trigger_words": "None", "author": "null", "license": "", "title": "undefined",
        "step": "100"}),
    "diffusion-pipe": {"x/adapter_model.safetensors": Model(flux_bfl(32), {"format": "pt"}),
                       "x/adapter_config.json": {"peft_type": "LORA", "r": 32, "lora_alpha": 32,
                                                 "target_modules": ["linear1", "qkv"]}},
    "cloneofsimo": Model(lora("text_encoder:{0-23} 1024 1024", 4, None, "down", "up",
                              form=":%s") + lora("unet:{0-31} 320 320", 4, None, "down", "up",
                                                 form=":%s")
                         + [("<krk>", "F32", [1024], None)],
                         {"<krk>": "<embed>", "text_encoder:0:rank": "4", "unet:0:rank": "4",
                          "unet": J(["CrossAttention"])}),
    "cloneofsimo.near": Model(lora("text_encoder:{0-23} 768 768", 4, None, "down", "up",
                                   form=":%s"), {"text_encoder:0:rank": "4"}),
    "usage-hint": Model(sdxl_lora(), {"modelspec.usage_hint": "Trigger word: mypetcat"}),
    "usage-hint.near": Model(sdxl_lora(), {"modelspec.usage_hint": "Use at strength 0.8"}),
    "swarm-weight": Model(sdxl_lora(), {"modelspec.lora_default_weight": "0.65",
                                        "modelspec.encoder_layer": "2"}),
    "bundled-embedding": Model(flux_kohya(), None, "",
                               [("bundle_emb.qqdog.clip_l", "F32", [3, 768], None),
                                ("bundle_emb.qqdog.t5", "F32", [3, 4096], None)]),
    "mlx": Model("model.embed_tokens.weight U32 128256,256\n"
                 "model.embed_tokens.{scales|biases} F16 128256,32\n"
                 "model.layers.{0-15}.self_attn.{q|k|v|o}_proj.weight U32 2048,256\n"
                 "model.layers.{0-15}.self_attn.{q|k|v|o}_proj.{scales|biases} F16 2048,32\n"
                 "model.layers.{0-15}.mlp.{gate|up}_proj.weight U32 8192,256\n"
                 "model.layers.{0-15}.input_layernorm.weight F16 2048\n"
                 "model.norm.weight F16 2048", {"format": "mlx"}),
    # 4 bits in groups of 64, but for 8 bits, 6 bits, and floats of 4 in groups of 32
    "mlx-mixed": Model("model.embed_tokens.weight U32 128256,256\n"
                       "model.embed_tokens.{scales|biases} F16 128256,32\n"
                       "model.layers.{0-3}.self_attn.{q|k|v}_proj.weight U32 2048,256\n"
                       "model.layers.{0-3}.self_attn.{q|k|v|o}_proj.{scales|biases} F16 2048,32\n"
                       "model.layers.{0-3}.self_attn.o_proj.weight U32 2048,512\n"
                       "model.layers.{0-3}.mlp.gate_proj.weight U32 8192,384\n"
                       "model.layers.{0-3}.mlp.gate_proj.{scales|biases} F16 8192,32\n"
                       "model.layers.{0-3}.mlp.up_proj.weight U32 8192,256\n"
                       "model.layers.{0-3}.mlp.up_proj.scales U8 8192,64\n"
                       "model.layers.{0-3}.input_layernorm.weight F16 2048\n"
                       "model.norm.weight F16 2048", {"format": "mlx"}),
}
