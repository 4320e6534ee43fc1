"""The four worked examples, and beside each a file that must answer otherwise."""
import json

from compose import Model, jpeg, peft
from parts import SDXL_TE, SDXL_UNET, flux_bfl, hada, lokr, sd1_lora

A = {
    "ss_session_id": "1234567890",
    "ss_training_started_at": "1690000000.123456",
    "ss_training_finished_at": "1690003600.5",
    "ss_output_name": "mikumo_v2",
    "ss_learning_rate": "0.0001",
    "ss_text_encoder_lr": "5e-05",
    "ss_unet_lr": "0.0001",
    "ss_num_train_images": "350",
    "ss_num_reg_images": "20",
    "ss_num_epochs": "10",
    "ss_epoch": "10",
    "ss_steps": "1750",
    "ss_max_train_steps": "1750",
    "ss_network_module": "networks.lora",
    "ss_network_dim": "32",
    "ss_network_alpha": "16.0",
    "ss_keep_tokens": "1",
    "ss_v2": "False",
    "ss_base_model_version": "sd_v1",
    "ss_clip_skip": "2",
    "ss_resolution": "(512, 512)",
    "ss_seed": "42",
    "ss_noise_offset": "None",
    "ss_optimizer": "bitsandbytes.optim.adamw.AdamW8bit(weight_decay=0.1)",
    "ss_training_comment": "None",
    "ss_sd_model_name": "animefull-final-pruned.safetensors",
    "ss_sd_model_hash": "89d59c3d",
    "ss_new_sd_model_hash": "1234567890abcdef" * 4,
    "ss_vae_name": "None",
    "ss_dataset_dirs": json.dumps({"10_mikumo style": {"n_repeats": 10, "img_count": 30},
                                   "5_mikumo chibi": {"n_repeats": 5, "img_count": 10}}),
    "ss_reg_dataset_dirs": json.dumps({"1_girl": {"n_repeats": 1, "img_count": 20}}),
    "ss_tag_frequency": json.dumps({
        "10_mikumo style": {"mikumo": 30, "1girl": 28, "solo": 27, "watercolor": 30,
                            "long hair": 18, "blue eyes": 12, "looking at viewer": 15,
                            "flower": 6},
        "5_mikumo chibi": {"mikumo": 10, "chibi": 10, "1girl": 9, "simple background": 8},
        "1_girl": {"girl": 20}}),
    "ss_bucket_info": json.dumps({"buckets": {"0": {"resolution": [512, 512], "count": 300},
                                              "1": {"resolution": [448, 576], "count": 50}},
                                  "mean_img_ar_error": 0.021}),
    "sshs_model_hash": "a" * 64,
    "sshs_legacy_hash": "deadbeef",
}
A_NEAR = dict(
    A, ss_output_name="None", ss_reg_dataset_dirs="{}", sshs_model_hash="", ss_keep_tokens="0",
    sshs_legacy_hash="e3b0c442", ss_sd_model_hash="NOFILE", ss_new_sd_model_hash="NOFILE",
    ss_training_started_at="None",
    ss_tag_frequency=json.dumps({"10_mikumo style": {"1girl": 30, "solo": 28, "mikumo": 12},
                                 "5_mikumo chibi": {"1girl": 10, "solo": 9, "smile": 3}}))

B = {
    "ss_base_model_version": "sdxl_base_v1-0",
    "ss_network_module": "lycoris.kohya",
    "ss_network_dim": "16",
    "ss_network_alpha": "8",
    "ss_network_args": json.dumps({"algo": "lokr", "factor": "8", "conv_dim": "8",
                                   "conv_alpha": "4", "dora_wd": "True"}),
    "ss_output_name": "neonscape_xl",
    "ss_sd_model_name": "ponyDiffusionV6XL.safetensors",
    "ss_v2": "False",
    "ss_epoch": "8",
    "ss_datasets": json.dumps([{
        "is_dreambooth": True, "batch_size_per_device": 4, "num_train_images": 240,
        "num_reg_images": 0, "resolution": [1024, 1024], "enable_bucket": True,
        "min_bucket_reso": 512, "max_bucket_reso": 2048,
        "tag_frequency": {"neon": {"neonscape, night city": 60}}, "bucket_info": None,
        "subsets": [{"img_count": 60, "num_repeats": 4, "keep_tokens": 2,
                     "class_tokens": "neonscape city", "is_reg": False, "image_dir": "neon",
                     "caption_prefix": None}]}]),
    "ss_tag_frequency": json.dumps({"neon": {"neonscape": 60, "night city": 58,
                                             "cyberpunk": 41, "rain": 22}}),
    "ss_dataset_dirs": json.dumps({"neon": {"n_repeats": 4, "img_count": 60}}),
    "modelspec.sai_model_spec": "1.0.1",
    "modelspec.architecture": "stable-diffusion-xl-v1-base/lora",
    "modelspec.implementation": "https://github.com/Stability-AI/generative-models",
    "modelspec.title": "Neonscape XL",
    "modelspec.author": "examplecreator",
    "modelspec.description":
        "City style. https://civitai.com/models/123456?modelVersionId=234567",
    "modelspec.date": "2024-05-01T12:30:00",
    "modelspec.resolution": "1024x1024",
    "modelspec.prediction_type": "epsilon",
    "modelspec.trigger_phrase": "neonscape",
    "modelspec.usage_hint": "Weight 0.7-0.9",
    "modelspec.tags": "style,city,cyberpunk",
    "modelspec.license": "CC-BY-SA-4.0",
    "modelspec.thumbnail": "data:image/jpeg;base64,/9j/4AAQSkZJRg==",
    "modelspec.implementation_version": "sd-scripts/48d368fa" + "0" * 32,
}
B_NEAR = {
    "ss_base_model_version": "sdxl_base_v1-0",
    "ss_network_module": "lycoris.kohya",
    "ss_network_args": json.dumps({"algo": "loha"}),
    "ss_output_name": "None",
    "ss_sd_model_name": "sd_xl_base_1.0.safetensors",
    "ss_tag_frequency": json.dumps({"img": {"neonscape": 50, "night city": 40}}),
    "ss_dataset_dirs": json.dumps({"img": {"n_repeats": 4, "img_count": 60}}),
    "modelspec.title": "LoRA@1714566600",
    "modelspec.description": "Trained on https://civitai.com/models/123456",
    "modelspec.trigger_phrase": "",
    "modelspec.thumbnail": "data:image/jpeg;base64,PGh0bWw+",
}
B_CONV = ["lora_unet_input_blocks_1_0_in_layers_2", "lora_unet_input_blocks_2_0_in_layers_2"]

C = {
    "format": "pt",
    "software": json.dumps({"name": "ai-toolkit",
                            "repo": "https://github.com/ostris/ai-toolkit",
                            "version": "0.7.2"}),
    "training_info": json.dumps({"step": 2000, "epoch": 44}),
    "name": "p3rs0n_flux",
    "version": "1.0",
    "ss_base_model_version": "flux.1_kontext",
    "ss_output_name": "p3rs0n_flux",
    "ss_tag_frequency": json.dumps({"1_p3rs0n": {"p3rs0n": 1}}),
}
C_NEAR = {"format": "pt", "ss_base_model_version": "flux.1", "ss_output_name": "p3rs0n_flux",
          "ss_tag_frequency": json.dumps({"1_p3rs0n": {"a photo": 1, "a hat": 1}})}

D_TENSORS = peft("base_model.model.model.layers.{0-31}.self_attn.q_proj 4096 4096\n"
                 "base_model.model.model.layers.{0-31}.self_attn.v_proj 4096 1024", 16)
D_CONFIG = {
    "peft_type": "LORA", "task_type": "CAUSAL_LM",
    "base_model_name_or_path": "meta-llama/Llama-3.1-8B-Instruct", "r": 16, "lora_alpha": 32,
    "lora_dropout": 0.05, "target_modules": ["q_proj", "v_proj"], "use_dora": False,
    "use_rslora": False, "bias": "none"}

CASES = {
    "a": {"mikumo_v2.safetensors": Model(sd1_lora(), A)},
    "a.near": {"mikumo_v2.safetensors": Model(sd1_lora(8, 8), A_NEAR)},
    "b": {"neon.safetensors": Model(lokr(SDXL_UNET + SDXL_TE, 16, 8, True, B_CONV), B)},
    "b.near": {"neon.safetensors": Model(hada(SDXL_UNET + SDXL_TE, 16, 8), B_NEAR),
               "neon.png": b"<html>no image</html>", "neon.jpg": jpeg()},
    "c": {"p3rs0n_flux.safetensors": Model(flux_bfl(), C)},
    "c.near": {"p3rs0n_flux.safetensors": Model(flux_bfl(), C_NEAR)},
    "d": {"llama-lora/adapter_model.safetensors": Model(D_TENSORS, {"format": "pt"}),
          "llama-lora/adapter_config.json": D_CONFIG},
    "d.near": {"llama-lora/adapter_model.safetensors": Model(D_TENSORS, {"format": "pt"}),
               "llama-lora/adapter_config.json": dict(
                   D_CONFIG, use_rslora=True, target_modules=".*v_proj",
                   base_model_name_or_path=None)},
}
