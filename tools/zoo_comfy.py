"""Diffusion models, VAEs and ControlNets under their makers' own names, as ComfyUI's classes have
them.

Needs a clone of ComfyUI in the folder that $ORACLES names. The sizes are those of the published
models, as ComfyUI's detection finds them; each entry's identity is our id.
"""
import importlib
import inspect
import sys

import torch

from zoo_clones import at, commits, on_meta, use
from zoo_common import entry

UNET = "ldm.modules.diffusionmodules.openaimodel:UNetModel"
WAN = "ldm.wan.model:"
VIDEO = {"extra_ff_mix_layer": True, "use_spatial_context": True, "merge_factor": 0.0,
         "merge_strategy": "learned_with_images", "video_kernel_size": [3, 1, 1],
         "use_temporal_resblock": True, "use_temporal_attention": True,
         "disable_temporal_crossattention": False}


def unet(in_channels, context, depth, output, middle=1, channels=320, mult=(1, 2, 4, 4),
         linear=False, adm=None, blocks=2, heads=None, out_channels=4, **more):
    config = {"image_size": 32, "use_spatial_transformer": True, "legacy": False,
              "in_channels": in_channels, "out_channels": out_channels,
              "model_channels": channels, "num_res_blocks": [blocks] * len(mult),
              "transformer_depth": depth, "transformer_depth_output": output,
              "channel_mult": list(mult), "transformer_depth_middle": middle,
              "use_linear_in_transformer": linear, "context_dim": context,
              "use_temporal_resblock": False, "use_temporal_attention": False}
    config.update({"num_heads": 8} if heads is None else {"num_heads": -1,
                                                          "num_head_channels": heads})
    if adm is not None:
        config.update({"num_classes": "sequential", "adm_in_channels": adm})
    config.update(more)
    return config


SD_IN, SD_OUT = [1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]
XL_IN, XL_OUT = [0, 0, 2, 2, 10, 10], [0, 0, 0, 2, 2, 2, 10, 10, 10]


def sd1(channels, **more):
    return unet(channels, 768, SD_IN, SD_OUT, **more)


def sd2(channels, **more):
    return unet(channels, 1024, SD_IN, SD_OUT, linear=True, heads=64, **more)


def sdxl(channels=4, depth=XL_IN, output=XL_OUT, middle=10, **more):
    return unet(channels, 2048, depth, output, middle, mult=(1, 2, 4), linear=True, adm=2816,
                heads=64, **more)


def flux(**more):
    return dict({"in_channels": 16, "out_channels": 16, "patch_size": 2, "vec_in_dim": 768,
                 "context_in_dim": 4096, "hidden_size": 3072, "mlp_ratio": 4.0, "num_heads": 24,
                 "depth": 19, "depth_single_blocks": 38, "axes_dim": [16, 56, 56],
                 "theta": 10000, "qkv_bias": True, "guidance_embed": True}, **more)


def chroma(**more):
    config = flux(in_channels=64, out_channels=64, in_dim=64, out_dim=3072, hidden_dim=5120,
                  n_layers=5, **more)
    del config["vec_in_dim"], config["guidance_embed"]
    return config


def hunyuan(**more):
    return dict({"in_channels": 16, "patch_size": [1, 2, 2], "out_channels": 16,
                 "vec_in_dim": 768, "axes_dim": [16, 56, 56], "meanflow": False,
                 "context_in_dim": 4096, "hidden_size": 3072, "mlp_ratio": 4.0, "num_heads": 24,
                 "depth": 20, "depth_single_blocks": 40, "theta": 256, "qkv_bias": True,
                 "byt5": False, "guidance_embed": True}, **more)


def wan(dim=5120, ffn=13824, layers=40, **more):
    return dict({"dim": dim, "out_dim": 16, "num_heads": dim // 128, "ffn_dim": ffn,
                 "num_layers": layers, "patch_size": (1, 2, 2), "freq_dim": 256,
                 "window_size": (-1, -1), "qk_norm": True, "cross_attn_norm": True, "eps": 1e-6,
                 "in_dim": 16, "model_type": "t2v"}, **more)


def predict2(channels, width, **more):
    return dict({"max_img_h": 240, "max_img_w": 240, "max_frames": 128, "in_channels": channels,
                 "out_channels": 16, "patch_spatial": 2, "patch_temporal": 1,
                 "model_channels": width, "concat_padding_mask": True,
                 "crossattn_emb_channels": 1024, "pos_emb_cls": "rope3d",
                 "pos_emb_learnable": True, "pos_emb_interpolation": "crop", "min_fps": 1,
                 "max_fps": 30, "use_adaln_lora": True, "adaln_lora_dim": 256,
                 "num_blocks": 28 if width == 2048 else 36,
                 "num_heads": width // 128}, **more)


def cosmos(channels, width):
    return {"max_img_h": 240, "max_img_w": 240, "max_frames": 128, "in_channels": channels,
            "out_channels": 16, "patch_spatial": 2, "patch_temporal": 1, "model_channels": width,
            "block_config": "FA-CA-MLP", "concat_padding_mask": True, "pos_emb_cls": "rope3d",
            "pos_emb_learnable": False, "pos_emb_interpolation": "crop",
            "block_x_format": "THWBD", "affline_emb_norm": True, "use_adaln_lora": True,
            "adaln_lora_dim": 256, "num_blocks": 28 if width == 4096 else 36,
            "num_heads": width // 128, "extra_per_block_abs_pos_emb": True,
            "extra_per_block_abs_pos_emb_type": "learnable"}


def mmdit(depth, **more):
    return dict({"in_channels": 16, "patch_size": 2, "out_channels": 16, "depth": depth,
                 "input_size": None, "adm_in_channels": 2048, "num_patches": 36864,
                 "pos_embed_max_size": 192, "pos_embed_scaling_factor": None,
                 "x_block_self_attn_layers": [],
                 "context_embedder_config": {"target": "torch.nn.Linear", "params": {
                     "in_features": 4096, "out_features": 64 * depth}}}, **more)


PIXART = {"num_heads": 16, "patch_size": 2, "hidden_size": 1152, "in_channels": 4, "depth": 28,
          "input_size": 128, "pe_interpolation": 2}
ACE = {"attention_head_dim": 128, "in_channels": 8, "inner_dim": 2560, "max_height": 16,
       "max_position": 32768, "max_width": 32768, "mlp_ratio": 2.5, "num_attention_heads": 20,
       "num_layers": 24, "out_channels": 8, "patch_size": [16, 1], "rope_theta": 1000000.0,
       "speaker_embedding_dim": 512, "text_embedding_dim": 768, "ssl_encoder_depths": [8, 8],
       "ssl_latent_dims": [1024, 768], "ssl_names": ["mert", "m-hubert"],
       "lyric_encoder_vocab_size": 6693, "lyric_hidden_size": 1024}
HIDREAM = {"attention_head_dim": 128, "axes_dims_rope": [64, 32, 32],
           "caption_channels": [4096, 4096], "max_resolution": [128, 128], "in_channels": 16,
           "llama_layers": list(range(32)) + [31] * 16, "num_attention_heads": 20,
           "num_routed_experts": 4, "num_activated_experts": 2, "num_layers": 16,
           "num_single_layers": 32, "out_channels": 16, "patch_size": 2, "text_emb_dim": 2048}
OMNIGEN = {"axes_dim_rope": [40, 40, 40], "axes_lens": [1024, 1664, 1664],
           "ffn_dim_multiplier": None, "hidden_size": 2520, "in_channels": 16,
           "multiple_of": 256, "norm_eps": 1e-05, "num_attention_heads": 21, "num_kv_heads": 7,
           "num_layers": 32, "num_refiner_layers": 2, "out_channels": None, "patch_size": 2,
           "text_feat_dim": 2048, "timestep_scale": 1000.0}
LUMINA = {"patch_size": 2, "in_channels": 16, "dim": 2304, "cap_feat_dim": 2304, "n_layers": 26,
          "n_heads": 24, "n_kv_heads": 8, "qk_norm": True, "axes_dims": [32, 32, 32],
          "axes_lens": [300, 512, 512]}
MOCHI = {"depth": 48, "patch_size": 2, "num_heads": 24, "hidden_size_x": 3072,
         "hidden_size_y": 1536, "mlp_ratio_x": 4.0, "mlp_ratio_y": 4.0, "learn_sigma": False,
         "in_channels": 12, "qk_norm": True, "qkv_bias": False, "out_bias": True,
         "attn_drop": 0.0, "patch_embed_bias": True, "posenc_preserve_area": True,
         "timestep_mlp_bias": True, "attend_to_padding": False, "timestep_scale": 1000.0,
         "use_t5": True, "t5_feat_dim": 4096, "t5_token_length": 256, "rope_theta": 10000.0}
HUNYUAN_3D = {"in_channels": 64, "context_in_dim": 1536, "hidden_size": 1024, "mlp_ratio": 4.0,
              "num_heads": 16, "depth": 16, "depth_single_blocks": 32, "qkv_bias": True,
              "guidance_embed": False}
MODELS = (
    # title, our id, class, arguments
    ("sd1", "sd-1", UNET, sd1(4)),
    ("sd1-inpaint", "sd-1", UNET, sd1(9)),
    ("sd1-instruct-pix2pix", "sd-1", UNET, sd1(8)),
    ("sd2", "sd-2", UNET, sd2(4)),
    ("sd2-inpaint", "sd-2", UNET, sd2(9)),
    ("sd2-depth", "sd-2", UNET, sd2(5)),
    ("sd2-unclip-l", "sd-2", UNET, sd2(4, adm=1536)),
    ("sd2-unclip-h", "sd-2", UNET, sd2(4, adm=2048)),
    ("sdxl", "sdxl", UNET, sdxl()),
    ("sdxl-inpaint", "sdxl", UNET, sdxl(9)),
    ("sdxl-instruct-pix2pix", "sdxl", UNET, sdxl(8)),
    ("sdxl-refiner", "sdxl-refiner", UNET, unet(
        4, 1280, [0, 0, 4, 4, 4, 4, 0, 0], [0, 0, 0, 4, 4, 4, 4, 4, 4, 0, 0, 0], 4, 384,
        (1, 2, 4, 4), True, 2560, heads=64)),
    ("ssd-1b", "ssd-1b", UNET, sdxl(depth=[0, 0, 2, 2, 4, 4], middle=-1,
                                    output=[0, 0, 0, 1, 1, 2, 10, 4, 4])),
    ("segmind-vega", "segmind-vega", UNET, sdxl(depth=[0, 0, 1, 1, 2, 2], middle=-1,
                                                output=[0, 0, 0, 1, 1, 1, 2, 2, 2])),
    ("koala-700m", "koala", UNET, sdxl(depth=[0, 2, 5], middle=-2, output=[0, 0, 2, 2, 5, 5],
                                       blocks=1)),
    ("koala-1b", "koala", UNET, sdxl(depth=[0, 2, 6], middle=6, output=[0, 0, 2, 2, 6, 6],
                                     blocks=1)),
    ("svd", "svd", UNET, unet(8, 1024, SD_IN, SD_OUT, linear=True, heads=64, adm=768, **VIDEO)),
    ("sv3d-u", "sv3d", UNET, unet(8, 1024, SD_IN, SD_OUT, linear=True, heads=64, adm=256,
                                  **VIDEO)),
    ("sv3d-p", "sv3d", UNET, unet(8, 1024, SD_IN, SD_OUT, linear=True, heads=64, adm=1280,
                                  **VIDEO)),
    ("sd3-medium", "sd-3-medium", "ldm.modules.diffusionmodules.mmdit:MMDiT", mmdit(24)),
    ("sd3.5-medium", "sd-3.5-medium", "ldm.modules.diffusionmodules.mmdit:MMDiT",
     mmdit(24, qk_norm="rms", x_block_self_attn_layers=list(range(13)))),
    ("sd3.5-large", "sd-3.5-large", "ldm.modules.diffusionmodules.mmdit:MMDiT",
     mmdit(38, qk_norm="rms")),
    ("stable-cascade-c", "stable-cascade-c", "ldm.cascade.stage_c:StageC", {"c_cond": 2048}),
    ("stable-cascade-c-lite", "stable-cascade-c", "ldm.cascade.stage_c:StageC",
     {"c_cond": 1536, "c_hidden": [1536, 1536], "nhead": [24, 24], "blocks": [[4, 12], [12, 4]]}),
    ("stable-cascade-b", "stable-cascade-b", "ldm.cascade.stage_b:StageB",
     {"c_hidden": [320, 640, 1280, 1280], "nhead": [-1, -1, 20, 20],
      "blocks": [[2, 6, 28, 6], [6, 28, 6, 2]], "block_repeat": [[1, 1, 1, 1], [3, 3, 2, 2]]}),
    ("stable-audio", "stable-audio", "ldm.audio.dit:AudioDiffusionTransformer", {}),
    ("auraflow", "auraflow", "ldm.aura.mmdit:MMDiT",
     {"max_seq": 9216, "cond_seq_dim": 2048, "n_double_layers": 4, "n_layers": 36}),
    ("pixart-alpha", "pixart-alpha", "ldm.pixart.pixartms:PixArtMS",
     dict(PIXART, micro_condition=True, model_max_length=120)),
    ("pixart-sigma", "pixart-sigma", "ldm.pixart.pixartms:PixArtMS",
     dict(PIXART, micro_condition=False, model_max_length=300)),
    ("hunyuan-dit", "hunyuan-dit", "ldm.hydit.models:HunYuanDiT",
     {"depth": 40, "hidden_size": 1408, "mlp_ratio": 4.3637}),
    ("flux-dev", "flux.1-dev", "ldm.flux.model:Flux", flux()),
    ("flux-fill", "flux.1-dev", "ldm.flux.model:Flux", flux(in_channels=96)),
    ("flux-canny", "flux.1-dev", "ldm.flux.model:Flux", flux(in_channels=32)),
    ("flux-without-guidance", "flux.1", "ldm.flux.model:Flux", flux(guidance_embed=False)),
    ("flux-8-layers", "flux.1", "ldm.flux.model:Flux", flux(depth=8)),
    ("chroma", "chroma", "ldm.chroma.model:Chroma", chroma()),
    ("chroma-radiance", "chroma-radiance", "ldm.chroma_radiance.model:ChromaRadiance", dict(
        chroma(), in_channels=3, out_channels=3, patch_size=16, nerf_hidden_size=64,
        nerf_mlp_ratio=4, nerf_depth=4, nerf_max_freqs=8, nerf_tile_size=32,
        nerf_final_head_type="conv", nerf_embedder_dtype=torch.float32)),
    ("mochi", "mochi", "ldm.genmo.joint_model.asymm_models_joint:AsymmDiTJoint", MOCHI),
    ("ltx-video-2b", "ltx-video", "ldm.lightricks.model:LTXVModel",
     {"num_layers": 28, "attention_head_dim": 64, "cross_attention_dim": 2048}),
    ("ltx-video-13b", "ltx-video", "ldm.lightricks.model:LTXVModel",
     {"num_layers": 48, "attention_head_dim": 128, "cross_attention_dim": 4096}),
    ("hunyuan-video", "hunyuan-video", "ldm.hunyuan_video.model:HunyuanVideo", hunyuan()),
    ("hunyuan-video-i2v", "hunyuan-video", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(in_channels=33, guidance_embed=False)),
    ("hunyuan-video-i2v-16", "hunyuan-video", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(guidance_embed=False)),
    ("skyreels-i2v", "hunyuan-video", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(in_channels=32)),
    ("hunyuan-image-2.1", "hunyuan-image-2.1", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(in_channels=64, out_channels=64, patch_size=[1, 1], axes_dim=[64, 64],
             hidden_size=3584, num_heads=28, context_in_dim=3584, vec_in_dim=None, byt5=True)),
    ("hunyuan-image-2.1-distilled", "hunyuan-image-2.1", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(in_channels=64, out_channels=64, patch_size=[1, 1], axes_dim=[64, 64],
             hidden_size=3584, num_heads=28, context_in_dim=3584, vec_in_dim=None, byt5=True,
             meanflow=True)),
    ("hunyuan-image-refiner", "hunyuan-image-2.1-refiner", "ldm.hunyuan_video.model:HunyuanVideo",
     hunyuan(in_channels=128, out_channels=64, patch_size=[1, 1, 1], hidden_size=3328,
             num_heads=26, context_in_dim=3584, vec_in_dim=None)),
    ("cosmos-1-7b-t2v", "cosmos-1", "ldm.cosmos.model:GeneralDIT", cosmos(16, 4096)),
    ("cosmos-1-7b-i2v", "cosmos-1", "ldm.cosmos.model:GeneralDIT", cosmos(17, 4096)),
    ("cosmos-1-14b-t2v", "cosmos-1", "ldm.cosmos.model:GeneralDIT", cosmos(16, 5120)),
    ("cosmos-predict2-2b", "cosmos-predict2", "ldm.cosmos.predict2:MiniTrainDIT",
     predict2(16, 2048)),
    ("cosmos-predict2-14b", "cosmos-predict2", "ldm.cosmos.predict2:MiniTrainDIT",
     predict2(16, 5120)),
    ("cosmos-predict2-2b-i2v", "cosmos-predict2", "ldm.cosmos.predict2:MiniTrainDIT",
     predict2(17, 2048)),
    ("lumina-2", "lumina-2", "ldm.lumina.model:NextDiT", LUMINA),
    ("newbie-like", "newbie", "ldm.lumina.model:NextDiT", dict(LUMINA, n_layers=36,
                                                               cap_feat_dim=2560)),
    ("wan-t2v-1.3b", "wan-2.1", WAN + "WanModel", wan(1536, 8960, 30)),
    ("wan-t2v-14b", "wan", WAN + "WanModel", wan()),
    ("wan-i2v-14b", "wan-2.1", WAN + "WanModel", wan(model_type="i2v", in_dim=36)),
    ("wan-fun-control-14b", "wan-2.1", WAN + "WanModel", wan(model_type="i2v", in_dim=48)),
    ("wan-flf2v-14b", "wan-2.1", WAN + "WanModel",
     wan(model_type="i2v", in_dim=36, flf_pos_embed_token_number=514)),
    ("wan2.2-i2v-a14b", "wan-2.2", WAN + "WanModel", wan(in_dim=36)),
    ("wan2.2-ti2v-5b", "wan-2.2", WAN + "WanModel",
     wan(3072, 14336, 30, in_dim=48, out_dim=48)),
    ("wan-vace-1.3b", "wan-2.1", WAN + "VaceWanModel",
     wan(1536, 8960, 30, model_type="vace", vace_in_dim=96, vace_layers=15)),
    ("wan-vace-14b", "wan", WAN + "VaceWanModel",
     wan(model_type="vace", vace_in_dim=96, vace_layers=8)),
    ("wan-camera-14b", "wan-2.1", WAN + "CameraWanModel", wan(model_type="camera", in_dim=32)),
    ("wan2.2-camera-a14b", "wan-2.2", WAN + "CameraWanModel",
     wan(model_type="camera_2.2", in_dim=36)),
    ("wan2.2-s2v-14b", "wan-2.2", WAN + "WanModel_S2V", wan(model_type="s2v")),
    ("wan-humo-17b", "humo", WAN + "HumoWanModel", wan(model_type="humo", in_dim=36)),
    ("wan-humo-1.7b", "humo", WAN + "HumoWanModel", wan(1536, 8960, 30, model_type="humo",
                                                        in_dim=36)),
    ("wan2.2-animate-14b", "wan-2.2", "ldm.wan.model_animate:AnimateWanModel",
     wan(model_type="animate", in_dim=36)),
    ("hunyuan3d-2", "hunyuan3d-2", "ldm.hunyuan3d.model:Hunyuan3Dv2", HUNYUAN_3D),
    ("hunyuan3d-2-mini", "hunyuan3d-2", "ldm.hunyuan3d.model:Hunyuan3Dv2",
     dict(HUNYUAN_3D, depth=8, depth_single_blocks=16)),
    ("hunyuan3d-2.1", "hunyuan3d-2.1", "ldm.hunyuan3dv2_1.hunyuandit:HunYuanDiTPlain",
     {"in_channels": 64, "context_dim": 1024, "hidden_size": 2048, "mlp_ratio": 4.0,
      "num_heads": 16, "depth": 21, "qkv_bias": False, "guidance_cond_proj_dim": None}),
    ("hidream", "hidream-i1", "ldm.hidream.model:HiDreamImageTransformer2DModel", HIDREAM),
    ("ace-step", "ace-step", "ldm.ace.model:ACEStepTransformer2DModel", ACE),
    ("omnigen-2", "omnigen-2", "ldm.omnigen.omnigen2:OmniGen2Transformer2DModel", OMNIGEN),
    ("qwen-image", "qwen-image", "ldm.qwen_image.model:QwenImageTransformer2DModel",
     {"in_channels": 64, "num_layers": 60}),
    ("stable-zero123", "stable-zero123", UNET, sd1(8)),
    ("sd2-lotus", "lotus", UNET, sd2(4, adm=4)),
    ("sd-x4-upscaler", "sd-2", UNET, unet(
        7, 1024, [0, 0, 1, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0], channels=256,
        mult=(1, 2, 2, 4), linear=True, num_classes=1000,
        disable_self_attentions=[True, True, True, False])),
    ("sdxs", "sdxs", UNET, unet(4, 768, [0, 1, 1], [0, 0, 1, 1, 1, 1], -2, mult=(1, 2, 4),
                                blocks=1, heads=64)),
    ("sdxs-0.9", "sdxs", UNET, unet(4, 1024, [1, 1, 1], [1, 1, 1, 1, 1, 1], -2, mult=(1, 2, 4),
                                    linear=True, blocks=1, heads=64,
                                    disable_self_attentions=[True, False, False])),
    ("playground-2.5", "playground-2.5", UNET, sdxl()),
    ("stable-cascade-b-lite", "stable-cascade-b", "ldm.cascade.stage_b:StageB",
     {"c_hidden": [320, 576, 1152, 1152], "nhead": [-1, 9, 18, 18],
      "blocks": [[2, 4, 14, 4], [4, 14, 4, 2]], "block_repeat": [[1, 1, 1, 1], [2, 2, 2, 2]]}),
    ("hunyuan-dit-1.0", "hunyuan-dit", "ldm.hydit.models:HunYuanDiT",
     {"depth": 40, "hidden_size": 1408, "mlp_ratio": 4.3637, "size_cond": True,
      "use_style_cond": True}),
    ("cosmos-1-14b-i2v", "cosmos-1", "ldm.cosmos.model:GeneralDIT", cosmos(17, 5120)),
    ("cosmos-predict2-14b-i2v", "cosmos-predict2", "ldm.cosmos.predict2:MiniTrainDIT",
     predict2(17, 5120)),
    ("wan-i2v-1.3b", "wan-2.1", WAN + "WanModel",
     wan(1536, 8960, 30, model_type="i2v", in_dim=36)),
    ("wan-fun-control-1.3b", "wan-2.1", WAN + "WanModel",
     wan(1536, 8960, 30, model_type="i2v", in_dim=48)),
    ("wan-fun-control-1.1-14b", "wan-2.1", WAN + "WanModel",
     wan(model_type="i2v", in_dim=48, in_dim_ref_conv=16)),
    ("wan-camera-1.3b", "wan-2.1", WAN + "CameraWanModel",
     wan(1536, 8960, 30, model_type="camera", in_dim=32)),
    ("wan2.2-fun-control-14b", "wan", WAN + "WanModel", wan(in_dim=52, in_dim_ref_conv=16)),
    ("chroma-radiance-linear", "chroma-radiance", "ldm.chroma_radiance.model:ChromaRadiance", dict(
        chroma(), in_channels=3, out_channels=3, patch_size=16, nerf_hidden_size=64,
        nerf_mlp_ratio=4, nerf_depth=4, nerf_max_freqs=8, nerf_tile_size=32,
        nerf_final_head_type="linear", nerf_embedder_dtype=torch.float32)),
)
# What lies beside the denoiser in its file.
MORE = {"stable-zero123": {"cc_projection.weight": [768, 772], "cc_projection.bias": [768]},
        "playground-2.5": {"edm_mean": [4], "edm_std": [4]}}




def kl(z, mult=(1, 2, 4, 4), **more):
    return dict({"double_z": True, "z_channels": z, "resolution": 256, "in_channels": 3,
                 "out_ch": 3, "ch": 128, "ch_mult": list(mult), "num_res_blocks": 2,
                 "attn_resolutions": [], "dropout": 0.0}, **more)


ENGINE = "ldm.models.autoencoder:AutoencodingEngine"
BLOCKS = "comfy.ldm.modules.diffusionmodules.model:"


def engine(encoder, decoder, config, regularizer="Diagonal", **more):
    """Without quant_conv: an encoder, a decoder, and nothing between that has weights."""
    name = "DiagonalGaussianRegularizer" if regularizer else "EmptyRegularizer"
    return {"regularizer_config": {"target": "comfy.ldm.models.autoencoder." + name},
            "encoder_config": {"target": encoder.replace(":", "."), "params": config},
            "decoder_config": {"target": decoder.replace(":", "."),
                               "params": dict(config, **more)}}


def hunyuan_vae(module, channels, spatial, **more):
    return engine("comfy.ldm.hunyuan_video.%s:Encoder" % module,
                  "comfy.ldm.hunyuan_video.%s:Decoder" % module,
                  dict({"block_out_channels": channels, "in_channels": 3, "out_channels": 3,
                        "num_res_blocks": 2, "ffactor_spatial": spatial,
                        "downsample_match_channel": True, "upsample_match_channel": True}, **more))


def wan_vae(dim, z, **more):
    return dict({"dim": dim, "z_dim": z, "dim_mult": [1, 2, 4, 4], "num_res_blocks": 2,
                 "attn_scales": [], "temperal_downsample": [False, True, True], "dropout": 0.0},
                **more)


VAES = (
    ("sd", "vae-sd", "ldm.models.autoencoder:AutoencoderKL", {"ddconfig": kl(4), "embed_dim": 4}),
    ("sd-x4", "vae-sd-x4", "ldm.models.autoencoder:AutoencoderKL",
     {"ddconfig": kl(4, (1, 2, 4)), "embed_dim": 4}),
    ("flux", "vae-flux", ENGINE, engine(BLOCKS + "Encoder", BLOCKS + "Decoder", kl(16))),
    ("svd", "vae-svd", ENGINE, engine(
        BLOCKS + "Encoder", "comfy.ldm.modules.temporal_ae:VideoDecoder", kl(4),
        video_kernel_size=[3, 1, 1], alpha=0.0)),
    ("taesd", "taesd", "taesd.taesd:TAESD", {"latent_channels": 4}),
    ("taesd-16", "taesd", "taesd.taesd:TAESD", {"latent_channels": 16}),
    ("stable-cascade-a", "stable-cascade-a", "ldm.cascade.stage_a:StageA", {}),
    ("stable-cascade-c-coder", "stable-cascade", "ldm.cascade.stage_c_coder:StageC_coder", {}),
    ("hunyuan-image-2.1", "vae-hunyuan-image", ENGINE,
     hunyuan_vae("vae", [128, 256, 512, 512, 1024, 1024], 32, z_channels=64)),
    ("hunyuan-image-refiner", "vae-hunyuan-image-refiner", ENGINE,
     hunyuan_vae("vae_refiner", [128, 256, 512, 1024, 1024], 16, z_channels=32,
                 ffactor_temporal=4, refiner_vae=False)),
    ("hunyuan-video-1.5", "vae-hunyuan-video-1.5", ENGINE,
     hunyuan_vae("vae_refiner", [128, 256, 512, 1024, 1024], 16, z_channels=32,
                 ffactor_temporal=4)),
    ("hunyuan-video", "vae-hunyuan-video", "ldm.models.autoencoder:AutoencoderKL",
     {"ddconfig": kl(16, conv3d=True, time_compress=4), "embed_dim": 16}),
    ("stable-audio", "vae-stable-audio", "ldm.audio.autoencoder:AudioOobleckVAE", {}),
    ("mochi", "vae-mochi", "ldm.genmo.vae.model:VideoVAE", {}),
    ("ltx-0.9", "vae-ltx", "ldm.lightricks.vae.causal_video_autoencoder:VideoVAE", {"version": 0}),
    ("ltx-0.9.1", "vae-ltx", "ldm.lightricks.vae.causal_video_autoencoder:VideoVAE",
     {"version": 1}),
    ("ltx-0.9.5", "vae-ltx", "ldm.lightricks.vae.causal_video_autoencoder:VideoVAE",
     {"version": 2}),
    ("cosmos", "vae-cosmos", "ldm.cosmos.vae:CausalContinuousVideoTokenizer",
     {"z_channels": 16, "latent_channels": 16, "z_factor": 1, "resolution": 1024,
      "in_channels": 3, "out_channels": 3, "channels": 128, "channels_mult": [2, 4, 4],
      "num_res_blocks": 2, "attn_resolutions": [32], "dropout": 0.0, "patch_size": 4,
      "num_groups": 1, "temporal_compression": 8, "spacial_compression": 8}),
    ("wan-2.1", "vae-wan", "ldm.wan.vae:WanVAE", wan_vae(96, 16)),
    ("qwen-image", "vae-qwen-image", "ldm.wan.vae:WanVAE", wan_vae(96, 16)),
    ("wan-2.2", "vae-wan-2.2", "ldm.wan.vae2_2:WanVAE", wan_vae(160, 48)),
    ("hunyuan-3d", "vae-hunyuan-3d", "ldm.hunyuan3d.vae:ShapeVAE", {}),
    ("ace-step", "vae-ace-step", "ldm.ace.vae.music_dcae_pipeline:MusicDCAE",
     {"source_sample_rate": 44100}),
    ("mmaudio", "mmaudio-vae", "ldm.mmaudio.vae.autoencoder:AudioAutoencoder", {"mode": "16k"}),
)

CONTROL = "cldm.cldm:ControlNet"


def control(config, **more):
    return dict({name: value for name, value in config.items() if name != "out_channels"},
                hint_channels=3, **more)


FLUX_CONTROL = "ldm.flux.controlnet:ControlNetFlux"
CONTROLNETS = (
    ("sd1", "sd-1", CONTROL, control(sd1(4))),
    ("sd2", "sd-2", CONTROL, control(sd2(4))),
    ("sdxl", "sdxl", CONTROL, control(sdxl())),
    ("sdxl-union", "sdxl", CONTROL, control(sdxl(), union_controlnet_num_control_type=6)),
    ("flux-xlabs", "flux.1", FLUX_CONTROL, flux(depth=2, depth_single_blocks=0)),
    ("flux-mistoline", "flux.1", FLUX_CONTROL,
     flux(depth=5, depth_single_blocks=0, mistoline=True)),
    ("flux-instantx", "flux.1", FLUX_CONTROL,
     flux(depth=5, depth_single_blocks=10, latent_input=True, control_latent_channels=16)),
    ("flux-union", "flux.1", FLUX_CONTROL,
     flux(depth=5, depth_single_blocks=10, latent_input=True, control_latent_channels=16,
          num_union_modes=10)),
    ("sd3", "sd-3", "cldm.mmdit:ControlNet",
     mmdit(24, num_blocks=12, control_latent_channels=16)),
    ("sd3.5-large", "sd-3.5-large", "cldm.dit_embedder:ControlNetEmbedder",
     {"img_size": None, "patch_size": 2, "in_chans": 16, "num_layers": 19,
      "main_model_double": 38, "double_y_emb": True, "attention_head_dim": 64,
      "num_attention_heads": 38, "adm_in_channels": 2048}),
    ("hunyuan-dit", "hunyuan-dit", "ldm.hydit.controlnet:HunYuanControlNet", {}),
    ("qwen-image", "qwen-image", "ldm.qwen_image.controlnet:QwenImageControlNetModel",
     {"in_channels": 64, "num_layers": 5, "extra_condition_channels": 0}),
    ("qwen-image-inpaint", "qwen-image", "ldm.qwen_image.controlnet:QwenImageControlNetModel",
     {"in_channels": 64, "num_layers": 6, "extra_condition_channels": 4}),
)
# A whole checkpoint: of which model, its VAE and its text encoder's first tensors.
PARTS = {
    "sd1": ("first_stage_model.", "sd", {
        "cond_stage_model.transformer.text_model.encoder.layers.11.mlp.fc1.weight": [3072, 768],
        "cond_stage_model.transformer.text_model.encoder.layers.0.mlp.fc1.weight": [3072, 768]}),
    "sdxl": ("first_stage_model.", "sd", {
        "conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1.weight":
            [3072, 768]}),
    "svd": ("first_stage_model.", "svd", {}),
    "sv3d-u": ("first_stage_model.", "svd", {}),
    "flux-dev": ("vae.", "flux", {
        "text_encoders.t5xxl.transformer.encoder.block.23.layer.1.DenseReluDense.wi_1.weight":
            [10240, 4096]}),
    "flux-without-guidance": ("vae.", "flux", {}),
    "ltx-video-2b": ("vae.", "ltx-0.9", {}),
    "stable-audio": ("pretransform.model.", "stable-audio", {}),
    "ace-step": ("vae.", "ace-step", {
        "text_encoders.umt5base.transformer.shared.weight": [256384, 768]}),
    "cosmos-1-7b-t2v": ("vae.", "cosmos", {}),
    "lumina-2": ("vae.", "flux", {}),
    "omnigen-2": ("vae.", "flux", {}),
    "hunyuan-video": ("vae.", "hunyuan-video", {}),
    "wan-t2v-1.3b": ("vae.", "wan-2.1", {}),
    "wan2.2-ti2v-5b": ("vae.", "wan-2.2", {}),
    "hunyuan3d-2": ("vae.", "hunyuan-3d", {}),
    "hunyuan3d-2.1": ("vae.", "hunyuan-3d", {}),
    "qwen-image": ("vae.", "qwen-image", {}),
    "stable-cascade-b": ("vae.", "stable-cascade-a", {}),
    "stable-cascade-c": ("vae.", "stable-cascade-c-coder", {}),
}
# Those that compute with their weights when they are made.
COMPUTED = ("ldm.cosmos.vae:CausalContinuousVideoTokenizer",
            "ldm.ace.vae.music_dcae_pipeline:MusicDCAE")
FORMS = (("raw", ""), ("checkpoint", "model.diffusion_model."), ("prefixed", "diffusion_model."))


def jobs():
    for title, identity, cls, arguments in MODELS:
        for form, prefix in FORMS:
            yield (make, "%s.%s" % (title, form), identity, {"denoiser"},
                   (cls, arguments, prefix, MORE.get(title)))
        if title in PARTS:
            yield make_whole, title + ".whole", identity, {"checkpoint"}, (cls, arguments, title)
    for title, identity, cls, arguments in VAES:
        for form, prefix in (("raw", ""), ("prefixed", "first_stage_model."), ("vae", "vae.")):
            yield (make, "vae-%s.%s" % (title, form), identity, {"vae"},
                   (cls, arguments, prefix, None))
    for title, identity, cls, arguments in CONTROLNETS:
        yield (make, "control-%s.raw" % title, identity, {"controlnet"},
               (cls, arguments, "", None))
    for title in ("sd1", "sd2", "sdxl"):
        _, identity, cls, arguments = next(row for row in CONTROLNETS if row[0] == title)
        yield (make, "control-%s.prefixed" % title, identity, {"controlnet"},
               (cls, arguments, "control_model.", None))


def make(title, identity, tasks, cls, arguments, prefix, more):
    return entry(title, identity, tasks, shapes(cls, arguments, prefix, more))


def make_whole(title, identity, tasks, cls, arguments, model):
    prefix, vae, encoder = PARTS[model]
    _, _, vae_cls, vae_arguments = next(row for row in VAES if row[0] == vae)
    own = "model.model." if model == "stable-audio" else "model.diffusion_model."
    tensors = shapes(cls, arguments, own, MORE.get(model))
    tensors.update(shapes(vae_cls, vae_arguments, prefix, None))
    tensors.update({name: ("F16", shape) for name, shape in encoder.items()})
    return entry(title, identity, tasks, tensors)


def shapes(cls, arguments, prefix, more):
    found = {prefix + name: ("BF16", list(tensor.shape))
             for name, tensor in build(cls, arguments).state_dict().items()}
    for name, shape in (more or {}).items():
        found[name] = "F32", shape
    return found


def build(cls, arguments):
    use("ComfyUI")
    sys.argv = [sys.argv[0], "--cpu"]
    at("comfy.options:enable_args_parsing")()
    operations = importlib.import_module("comfy.ops").disable_weight_init
    found = at("comfy." + cls)
    takes = inspect.signature(found.__init__).parameters
    settings = {"device": "meta", "dtype": torch.bfloat16, "operations": operations}
    if cls in COMPUTED:
        return found(**arguments)
    if "operations" not in takes:
        return on_meta(found, arguments)
    return found(**arguments, **settings)


def versions():
    return commits("ComfyUI")
