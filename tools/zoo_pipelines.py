"""Sizes of published diffusion models, for the classes of diffusers."""

XATTN = ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
XUP = ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3
SD = {"sample_size": 64, "block_out_channels": (320, 640, 1280, 1280), "layers_per_block": 2,
      "down_block_types": XATTN, "up_block_types": XUP}
SDXL = {"sample_size": 128, "block_out_channels": (320, 640, 1280), "layers_per_block": 2,
        "down_block_types": ("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2,
        "up_block_types": ("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",),
        "transformer_layers_per_block": (1, 2, 10), "attention_head_dim": (5, 10, 20),
        "cross_attention_dim": 2048, "use_linear_projection": True,
        "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
        "projection_class_embeddings_input_dim": 2816}
XLC = {key: value for key, value in SDXL.items() if key not in ("sample_size", "up_block_types")}
KL = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4,
      "block_out_channels": (128, 256, 512, 512), "layers_per_block": 2}
KL16 = {**KL, "latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False}
WAN_1B = {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30}
CASCADE = {"in_channels": 16, "out_channels": 16, "patch_size": 1, "conditioning_dim": 2048,
           "clip_text_pooled_in_channels": 1280}
DECODER = {
    "in_channels": 4, "out_channels": 4, "patch_size": 2, "conditioning_dim": 1280,
    "block_out_channels": (320, 640, 1280, 1280), "num_attention_heads": (0, 0, 20, 20),
    "down_num_layers_per_block": (2, 6, 28, 6), "up_num_layers_per_block": (6, 28, 6, 2),
    "down_blocks_repeat_mappers": (1, 1, 1, 1), "up_blocks_repeat_mappers": (3, 3, 2, 2),
    "block_types_per_layer": (("SDCascadeResBlock", "SDCascadeTimestepBlock"),) * 2
    + (("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"),) * 2,
    "clip_text_pooled_in_channels": 1280, "clip_seq": 4, "effnet_in_channels": 16,
    "pixel_mapper_in_channels": 3, "dropout": (0, 0, 0.1, 0.1),
    "timestep_conditioning_type": ("sca",)}

# class: arguments where its defaults leave a size open
ARGUMENTS = {
    "AudioLDM2ProjectionModel": {"text_encoder_dim": 512, "text_encoder_1_dim": 1024,
                                 "langauge_model_dim": 768},
    "AutoencoderKLHunyuanImage": {
        "in_channels": 3, "out_channels": 3, "latent_channels": 64,
        "block_out_channels": (128, 256, 512, 512, 1024, 1024), "layers_per_block": 2,
        "spatial_compression_ratio": 32, "sample_size": 384},
    "ControlNetUnionModel": {**XLC, "num_control_type": 6},
    "DreamLiteTransformer2DModel": {"in_channels": 320, "cross_attention_dim": 2048},
    "EasyAnimateTransformer3DModel": {"in_channels": 16, "out_channels": 16, "patch_size": 2},
    "HiDreamImageTransformer2DModel": {
        "patch_size": 2, "in_channels": 16, "out_channels": 16,
        "caption_channels": [4096, 4096], "llama_layers": list(range(48))},
    "HunyuanDiT2DControlNetModel": {"in_channels": 4, "patch_size": 2, "hidden_size": 1408,
                                    "transformer_num_layers": 40, "mlp_ratio": 4.3637},
    "HunyuanDiT2DModel": {"in_channels": 4, "patch_size": 2, "hidden_size": 1408,
                          "num_layers": 40, "mlp_ratio": 4.3637, "sample_size": 128},
    "LatteTransformer3DModel": {
        "num_attention_heads": 16, "attention_head_dim": 72, "in_channels": 4, "out_channels": 8,
        "num_layers": 28, "cross_attention_dim": 1152, "attention_bias": True, "patch_size": 2,
        "activation_fn": "gelu-approximate", "num_embeds_ada_norm": 1000,
        "norm_type": "ada_norm_single", "norm_elementwise_affine": False, "norm_eps": 1e-6,
        "caption_channels": 4096},
    "LuminaNextDiT2DModel": {"num_kv_heads": 8, "num_layers": 24},
    "OmniGenTransformer2DModel": {"rope_scaling": {
        "type": "su", "long_factor": [1.0] * 48, "short_factor": [1.0] * 48}},
    "StableAudioProjectionModel": {"text_encoder_dim": 768, "conditioning_dim": 768,
                                   "min_value": 0, "max_value": 512},
    "Transformer2DModel": {"in_channels": 320, "cross_attention_dim": 768},
    "TransformerTemporalModel": {"in_channels": 320},
    "UniDiffuserModel": {
        "sample_size": 64, "num_attention_heads": 24, "attention_head_dim": 64, "in_channels": 4,
        "out_channels": 4, "num_layers": 30, "patch_size": 2, "use_patch_pos_embed": True,
        "activation_fn": "gelu", "block_type": "unidiffuser", "text_dim": 64,
        "clip_img_dim": 512, "num_text_tokens": 77, "use_timestep_embedding": False},
    "UniDiffuserTextDecoder": {"prefix_length": 77, "prefix_inner_dim": 768,
                               "prefix_hidden_dim": 64},
    "ZImageControlNetModel": {"control_layers_places": [0, 5, 10, 15, 20, 25], "control_in_dim": 16,
                              "control_refiner_layers_places": [0, 1]},
}

# (class, name): arguments
PUBLISHED = {
    ("UNet2DConditionModel", "sd-1"): {**SD, "cross_attention_dim": 768},
    ("UNet2DConditionModel", "sd-1-inpaint"): {**SD, "cross_attention_dim": 768,
                                               "in_channels": 9},
    ("UNet2DConditionModel", "sd-2"): {
        **SD, "cross_attention_dim": 1024, "attention_head_dim": (5, 10, 20, 20),
        "use_linear_projection": True},
    ("UNet2DConditionModel", "sdxl"): SDXL,
    ("UNet2DConditionModel", "sdxl-inpaint"): {**SDXL, "in_channels": 9},
    ("UNet2DConditionModel", "sdxl-refiner"): {
        **SDXL, "block_out_channels": (384, 768, 1536, 1536), "cross_attention_dim": 1280,
        "down_block_types": ("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2 + ("DownBlock2D",),
        "up_block_types": ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",),
        "transformer_layers_per_block": 4, "attention_head_dim": (6, 12, 24, 24),
        "projection_class_embeddings_input_dim": 2560},
    ("UNet2DConditionModel", "kolors"): {
        **SDXL, "encoder_hid_dim": 4096, "encoder_hid_dim_type": "text_proj",
        "projection_class_embeddings_input_dim": 5632},
    ("ControlNetModel", "sd-1"): {"cross_attention_dim": 768, "attention_head_dim": 8},
    ("ControlNetModel", "sdxl"): XLC,
    ("AutoencoderKL", "sd"): KL,
    ("AutoencoderKL", "flux.1"): KL16,
    ("AutoencoderKLFlux2", "flux.2"): {},
    ("AutoencoderKLWan", "wan-2.2-ti2v-5b"): {
        "base_dim": 160, "decoder_base_dim": 256, "z_dim": 48, "is_residual": True,
        "in_channels": 12, "out_channels": 12, "patch_size": 2, "scale_factor_spatial": 16,
        "latents_mean": [0.0] * 48, "latents_std": [1.0] * 48},
    ("FluxTransformer2DModel", "flux.1-dev"): {"guidance_embeds": True},
    ("FluxTransformer2DModel", "flux.1-fill"): {"guidance_embeds": True, "in_channels": 384,
                                                "out_channels": 64},
    ("FluxTransformer2DModel", "flux.1-canny"): {"guidance_embeds": True, "in_channels": 128,
                                                 "out_channels": 64},
    ("Flux2Transformer2DModel", "flux.2-klein-4b"): {
        "num_layers": 5, "num_single_layers": 20, "num_attention_heads": 24,
        "joint_attention_dim": 7680, "guidance_embeds": False},
    ("Flux2Transformer2DModel", "flux.2-klein-9b"): {
        "num_layers": 8, "num_single_layers": 24, "num_attention_heads": 32,
        "joint_attention_dim": 12288, "guidance_embeds": False},
    ("SD3Transformer2DModel", "sd-3-medium"): {
        "num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536,
        "pos_embed_max_size": 192},
    ("SD3Transformer2DModel", "sd-3.5-medium"): {
        "num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536,
        "pos_embed_max_size": 384, "qk_norm": "rms_norm",
        "dual_attention_layers": tuple(range(13))},
    ("SD3Transformer2DModel", "sd-3.5-large"): {
        "num_layers": 38, "num_attention_heads": 38, "caption_projection_dim": 2432,
        "pos_embed_max_size": 192, "qk_norm": "rms_norm"},
    ("WanTransformer3DModel", "wan-2.1-t2v-1.3b"): WAN_1B,
    ("WanTransformer3DModel", "wan-2.1-i2v-14b"): {
        "in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 5120},
    ("WanTransformer3DModel", "wan-2.2-i2v-14b"): {"in_channels": 36},
    ("WanTransformer3DModel", "wan-2.2-ti2v-5b"): {
        "in_channels": 48, "out_channels": 48, "num_attention_heads": 24, "ffn_dim": 14336,
        "num_layers": 30},
    ("WanVACETransformer3DModel", "wan-2.1-vace-1.3b"): {
        **WAN_1B, "vace_layers": [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28]},
    ("CogVideoXTransformer3DModel", "cogvideox-5b"): {
        "num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": True},
    ("CogVideoXTransformer3DModel", "cogvideox-5b-i2v"): {
        "num_attention_heads": 48, "num_layers": 42, "in_channels": 32,
        "use_rotary_positional_embeddings": True, "use_learned_positional_embeddings": True},
    ("PixArtTransformer2DModel", "pixart-sigma"): {"caption_channels": 4096},
    ("PixArtTransformer2DModel", "pixart-alpha-1024"): {
        "caption_channels": 4096, "use_additional_conditions": True},
    ("SanaTransformer2DModel", "sana-600m"): {
        "num_attention_heads": 36, "num_layers": 28, "num_cross_attention_heads": 16,
        "cross_attention_head_dim": 72, "cross_attention_dim": 1152},
    ("HunyuanVideoTransformer3DModel", "hunyuan-video-i2v"): {
        "in_channels": 33, "image_condition_type": "latent_concat"},
    ("LTXVideoTransformer3DModel", "ltx-video-13b"): {
        "num_attention_heads": 32, "attention_head_dim": 128, "cross_attention_dim": 4096,
        "num_layers": 48},
    ("CosmosTransformer3DModel", "cosmos-predict2-2b"): {
        "in_channels": 17, "num_attention_heads": 16, "extra_pos_embed_type": None},
    ("CosmosTransformer3DModel", "cosmos-1-14b"): {"num_attention_heads": 40, "num_layers": 36},
    ("StableCascadeUNet", "stable-cascade-c"): {
        **CASCADE, "block_out_channels": (2048, 2048), "clip_text_in_channels": 1280,
        "clip_image_in_channels": 768, "switch_level": (False,)},
    ("StableCascadeUNet", "stable-cascade-b"): DECODER,
}
