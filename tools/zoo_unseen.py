"""Material that no record was made from: classes of diffusers in sizes that nobody published, with
other inputs, latents and text encoders, or as smaller models have them; and LoRAs by VideoX-Fun's
trainer, which names every linear layer of a model.

An entry's identity is our id, or "none": then it is no model that is known, and none may surely be
told. Needs no clones; the layers are those of the lists comfy, later and diffusers.
"""
import os
import sys

import diffusers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "tests", "zoo"))
import read  # noqa: E402
import subsets  # noqa: E402
from zoo_common import entry  # noqa: E402
from zoo_diffusers import build, kind_of  # noqa: E402
from zoo_pipelines import PUBLISHED  # noqa: E402

SD = {"block_out_channels": (320, 640, 1280, 1280), "attention_head_dim": 8}
SD_1 = dict(SD, cross_attention_dim=768)
SDXL = PUBLISHED["UNet2DConditionModel", "sdxl"]
FOUR = {"down_block_types": ("DownEncoderBlock2D",) * 4,
        "up_block_types": ("UpDecoderBlock2D",) * 4, "block_out_channels": (128, 256, 512, 512),
        "layers_per_block": 2}
FIVE = dict(FOUR, down_block_types=("DownEncoderBlock2D",) * 5,
            up_block_types=("UpDecoderBlock2D",) * 5, block_out_channels=(128, 128, 256, 256, 512))
BARE = {"use_quant_conv": False, "use_post_quant_conv": False}
CONTROL_XL = {
    "cross_attention_dim": 2048, "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "transformer_layers_per_block": [1, 2, 10], "attention_head_dim": [5, 10, 20],
    "use_linear_projection": True, "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256}
UNET, KL, CONTROL = "UNet2DConditionModel", "AutoencoderKL", "ControlNetModel"
MODELS = (
    # title, our id, class, arguments
    ("tango", "none", UNET, dict(SD, in_channels=8, out_channels=8, cross_attention_dim=1024,
                                 attention_head_dim=[5, 10, 20, 20], use_linear_projection=True)),
    ("musetalk", "none", UNET, dict(SD, in_channels=8, cross_attention_dim=384)),
    ("sd-1-paint-by-example", "sd-1", UNET, dict(SD_1, in_channels=9)),
    ("sd-1-lcm", "sd-1", UNET, dict(SD_1, time_cond_proj_dim=256)),
    ("sd-1-ic-light-fbc", "sd-1", UNET, dict(SD_1, in_channels=12)),
    ("sd-1-16-latents", "none", UNET, dict(SD_1, in_channels=16, out_channels=16)),
    ("sd-1-13-inputs", "none", UNET, dict(SD_1, in_channels=13)),
    ("bk-sdm-tiny", "sd-1", UNET, dict(
        SD_1, block_out_channels=(320, 640, 1280), mid_block_type=None, layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",) * 3,
        up_block_types=("CrossAttnUpBlock2D",) * 3)),
    ("sdxl-lcm", "sdxl", UNET, dict(SDXL, time_cond_proj_dim=256)),
    ("sdxl-16-latents", "none", UNET, dict(SDXL, in_channels=16, out_channels=16)),
    ("sdxl-text-4096", "none", UNET, dict(SDXL, cross_attention_dim=4096)),
    ("flux-8", "flux.1", "FluxTransformer2DModel", {"num_layers": 8, "guidance_embeds": True}),
    ("flux-16-heads", "none", "FluxTransformer2DModel", {"num_attention_heads": 16}),
    ("flux-text-2048", "none", "FluxTransformer2DModel", {"joint_attention_dim": 2048}),
    ("flux-32-latents", "none", "FluxTransformer2DModel", {"in_channels": 128,
                                                           "guidance_embeds": True}),
    ("flux-pool-1280", "none", "FluxTransformer2DModel", {"pooled_projection_dim": 1280}),
    ("sd3-32", "none", "SD3Transformer2DModel", {
        "num_layers": 32, "num_attention_heads": 24, "caption_projection_dim": 1536}),
    ("qwen-image-20", "qwen-image", "QwenImageTransformer2DModel", {"num_layers": 20}),
    ("qwen-image-16-heads", "none", "QwenImageTransformer2DModel", {"num_attention_heads": 16}),
    ("z-image-12", "z-image", "ZImageTransformer2DModel", {"n_layers": 12}),
    ("z-image-2560", "none", "ZImageTransformer2DModel", {"dim": 2560, "n_heads": 20,
                                                          "n_kv_heads": 20}),
    ("z-image-text-3584", "none", "ZImageTransformer2DModel", {"cap_feat_dim": 3584}),
    ("lumina-2-text-3584", "none", "Lumina2Transformer2DModel", {"cap_feat_dim": 3584}),
    ("ltx-video-36", "none", "LTXVideoTransformer3DModel", {"num_layers": 36}),
    ("ltx-video-text-3584", "none", "LTXVideoTransformer3DModel", {"caption_channels": 3584}),
    ("wan-20", "wan", "WanTransformer3DModel", {"num_layers": 20}),
    ("wan-20-heads", "none", "WanTransformer3DModel", {"num_attention_heads": 20}),
    ("wan-text-3584", "none", "WanTransformer3DModel", {"text_dim": 3584}),
    ("cogvideox-24-heads", "none", "CogVideoXTransformer3DModel", {"num_attention_heads": 24}),
    ("pixart-16-latents", "none", "PixArtTransformer2DModel", {"in_channels": 16,
                                                               "out_channels": 32}),
    ("sana-1.5-4.8b", "sana", "SanaTransformer2DModel", {"num_layers": 60}),
    ("hunyuan-video-20-heads", "none", "HunyuanVideoTransformer3DModel",
     {"num_attention_heads": 20}),
    ("chroma-text-2048", "none", "ChromaTransformer2DModel", {"joint_attention_dim": 2048}),
    ("flux.2-16-heads", "none", "Flux2Transformer2DModel", {"num_attention_heads": 16}),
    ("kl-f8-d16", "none", KL, dict(FOUR, latent_channels=16)),
    ("kl-f8-d8", "none", KL, dict(FOUR, latent_channels=8)),
    ("kl-f16-d16", "none", KL, dict(FIVE, latent_channels=16, **BARE)),
    ("kl-rgba", "none", KL, dict(FOUR, in_channels=4, out_channels=4, latent_channels=4)),
    ("kl-rgba-16", "none", KL, dict(FOUR, in_channels=4, out_channels=4, latent_channels=16,
                                    **BARE)),
    ("movq", "none", "VQModel", dict(FOUR, norm_type="spatial", num_vq_embeddings=16384,
                                     vq_embed_dim=4, latent_channels=4)),
    ("cogvideox-vae-32", "none", "AutoencoderKLCogVideoX", {"latent_channels": 32}),
    ("mochi-vae-16", "none", "AutoencoderKLMochi", {"latent_channels": 16}),
    ("oobleck-32", "none", "AutoencoderOobleck", {"decoder_input_channels": 32}),
    ("flux.2-vae-16", "none", "AutoencoderKLFlux2", {"latent_channels": 16}),
    ("taef2", "taesd", "AutoencoderTiny", {"latent_channels": 32}),
    ("control-sd-1-depth-4", "sd-1", CONTROL, {"cross_attention_dim": 768,
                                               "conditioning_channels": 4}),
    ("control-sdxl", "sdxl", CONTROL, dict(CONTROL_XL,
                                           projection_class_embeddings_input_dim=2816)),
    ("control-kolors", "kolors", CONTROL, dict(
        CONTROL_XL, projection_class_embeddings_input_dim=5632, encoder_hid_dim=4096,
        encoder_hid_dim_type="text_proj")),
    ("control-384", "none", CONTROL, {"cross_attention_dim": 384}),
    ("control-flux-16-heads", "none", "FluxControlNetModel", {
        "num_layers": 5, "num_single_layers": 0, "num_attention_heads": 16}),
)
# The models, by list, that VideoX-Fun trains by these names.
TRAINED = {
    "comfy": ("wan-t2v-14b.raw", "wan-t2v-1.3b.raw", "wan-i2v-14b.raw", "wan2.2-ti2v-5b.raw"),
    "diffusers": ("FluxTransformer2DModel@flux.1-dev", "QwenImageTransformer2DModel",
                  "ZImageTransformer2DModel", "LTX2VideoTransformer3DModel",
                  "HunyuanVideoTransformer3DModel",
                  "Flux2Transformer2DModel", "CogVideoXTransformer3DModel@cogvideox-5b"),
}
OURS = {"FluxTransformer2DModel": "flux.1", "QwenImageTransformer2DModel": "qwen-image",
        "ZImageTransformer2DModel": "z-image", "LTX2VideoTransformer3DModel": "ltx-2",
        "HunyuanVideoTransformer3DModel": "hunyuan-video",
        "Flux2Transformer2DModel": "flux.2-dev", "CogVideoXTransformer3DModel": "cogvideox"}
# Its option for the names of layers that it takes, as its examples have it.
CHOSEN = {"all": None, "attention": ("attn", "attention", ".q", ".k", ".v", "ffn.0", "ffn.2")}


def jobs():
    for title, identity, cls, arguments in MODELS:
        yield make, title, identity, {kind_of(cls)}, (cls, arguments)
    for library, names in TRAINED.items():
        for model in read.read(library)[1]:
            if model.name in names:
                for choice, words in CHOSEN.items():
                    yield (make_adapter, "videox-fun.%s.%s" % (model.name, choice),
                           OURS.get(model.identity, model.identity), {"adapter"}, (model, words))


def make(title, identity, tasks, cls, arguments):
    return entry(title, identity, tasks, build(getattr(diffusers, cls), arguments).state_dict())


def make_adapter(title, identity, tasks, model, words):
    """It joins the name of the module that it is asked for, which is empty, and of the layer."""
    tensors = {}
    for name, out, width in subsets.layers(model):
        if not words or any(word in name for word in words):
            stem = "lora_unet__" + name.replace(".", "_")
            tensors[stem + ".lora_down.weight"] = "BF16", [64, width]
            tensors[stem + ".lora_up.weight"] = "BF16", [out, 64]
            tensors[stem + ".alpha"] = "BF16", []
    return entry(title, identity, tasks, tensors)


def versions():
    return "diffusers %s" % diffusers.__version__
