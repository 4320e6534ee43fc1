"""ComfyUI's models in the forms in which files hold them: pruned, with other inputs, behind other
prefixes, with averaged weights, and as checkpoints with VAE and all text encoders.

Needs a clone of ComfyUI in the folder that $ORACLES names.
"""
import functools

from zoo_clones import at, commits, on_meta
from zoo_comfy import (HIDREAM, HUNYUAN_3D, LUMINA, MODELS, OMNIGEN, PIXART, UNET, VAES, WAN, build,
                       chroma, flux, hunyuan, sd1, sd2, sdxl, wan)
from zoo_common import entry

FLUX, HUNYUAN = "ldm.flux.model:Flux", "ldm.hunyuan_video.model:HunyuanVideo"
QWEN, LTX = "ldm.qwen_image.model:QwenImageTransformer2DModel", "ldm.lightricks.model:LTXVModel"
# Layers left out, inputs added: title, our id, class, arguments
VARIED = (
    ("flux-depth-8", "flux.1-dev", FLUX, flux(depth=8)),
    ("flux-single-24", "flux.1-dev", FLUX, flux(depth_single_blocks=24)),
    ("flux-12-30", "flux.1-dev", FLUX, flux(depth=12, depth_single_blocks=30)),
    ("chroma-12-24", "chroma", "ldm.chroma.model:Chroma", chroma(depth=12, depth_single_blocks=24)),
    ("hunyuan-10-20", "hunyuan-video", HUNYUAN, hunyuan(depth=10, depth_single_blocks=20)),
    ("qwen-image-40", "qwen-image", QWEN, {"in_channels": 64, "num_layers": 40}),
    ("qwen-image-20", "qwen-image", QWEN, {"in_channels": 64, "num_layers": 20}),
    ("wan-14b-32", "wan", WAN + "WanModel", wan(layers=32)),
    ("wan-1.3b-20", "wan-2.1", WAN + "WanModel", wan(1536, 8960, 20)),
    ("ltx-video-14", "ltx-video", LTX,
     {"num_layers": 14, "attention_head_dim": 64, "cross_attention_dim": 2048}),
    ("sdxl-5", "sdxl", UNET, sdxl(5)), ("sd1-5", "sd-1", UNET, sd1(5)),
    ("sd1-6", "sd-1", UNET, sd1(6)), ("sd1-12", "sd-1", UNET, sd1(12)),
    ("sd2-8", "sd-2", UNET, sd2(8)),
    ("pixart-512", "pixart-alpha", "ldm.pixart.pixartms:PixArtMS",
     dict(PIXART, micro_condition=False, model_max_length=120, input_size=64)),
    ("auraflow-0.1", "auraflow", "ldm.aura.mmdit:MMDiT",
     {"max_seq": 1024, "cond_seq_dim": 2048, "n_double_layers": 4, "n_layers": 32}),
    ("lumina-20", "lumina-2", "ldm.lumina.model:NextDiT", dict(LUMINA, n_layers=20)),
    ("hunyuan3d-2-turbo", "hunyuan3d-2", "ldm.hunyuan3d.model:Hunyuan3Dv2",
     dict(HUNYUAN_3D, guidance_embed=True)),
    ("hidream-12", "hidream-i1", "ldm.hidream.model:HiDreamImageTransformer2DModel",
     dict(HIDREAM, num_layers=12, llama_layers=list(range(32)) + [31] * 12)),
    ("omnigen-2-16", "omnigen-2", "ldm.omnigen.omnigen2:OmniGen2Transformer2DModel",
     dict(OMNIGEN, num_layers=16)),
)
PREFIXES = (("net", "net."), ("compiled", "_orig_mod."), ("parallel", "module."))
PREFIXED = ("sd1", "sdxl", "sd3.5-large", "flux-dev", "chroma", "wan-t2v-14b", "qwen-image",
            "hunyuan-video", "lumina-2", "auraflow", "cosmos-predict2-2b")
AVERAGED = ("sd1", "sd2", "sdxl", "flux-dev")

CLIP_L = ("CLIPTextModel", {"hidden_size": 768, "intermediate_size": 3072,
                            "num_hidden_layers": 12, "num_attention_heads": 12})
CLIP_G = ("CLIPTextModelWithProjection",
          {"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
           "num_attention_heads": 20, "projection_dim": 1280})
T5 = ("T5EncoderModel", {"d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24,
                         "num_heads": 64, "feed_forward_proj": "gated-gelu"})
UMT5 = ("UMT5EncoderModel", dict(T5[1], vocab_size=256384))
GEMMA = ("Gemma2Model", {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
                         "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256})
LLAMA = ("LlamaModel", {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128320})
QWEN_2_5 = ("Qwen2Model", {"hidden_size": 3584, "intermediate_size": 18944,
                           "num_hidden_layers": 28, "num_attention_heads": 28,
                           "num_key_value_heads": 4, "vocab_size": 152064})
SD3 = (("text_encoders.clip_l.transformer.", CLIP_L), ("text_encoders.clip_g.transformer.", CLIP_G),
       ("text_encoders.t5xxl.transformer.", T5))
FLUX_TEXT = (SD3[0], SD3[2])
UMT5_XXL = (("text_encoders.umt5xxl.transformer.", UMT5),)
SD1 = (("cond_stage_model.transformer.", CLIP_L),)
# title of MODELS: its VAE, what stands before that, its text encoders
WHOLE = {
    "sd1-inpaint": ("sd", "first_stage_model.", SD1),
    "sd1-instruct-pix2pix": ("sd", "first_stage_model.", SD1),
    "sd3-medium": ("flux", "first_stage_model.", SD3),
    "sd3.5-medium": ("flux", "first_stage_model.", SD3),
    "sd3.5-large": ("flux", "first_stage_model.", SD3),
    "flux-fill": ("flux", "vae.", FLUX_TEXT), "chroma": ("flux", "vae.", SD3[2:]),
    "pixart-alpha": ("sd", "vae.", SD3[2:]), "pixart-sigma": ("sd", "vae.", SD3[2:]),
    "auraflow": ("sd", "vae.", ()),
    "lumina-2": ("flux", "vae.", (("text_encoders.gemma2_2b.transformer.model.", GEMMA),)),
    "qwen-image": ("qwen-image", "vae.",
                   (("text_encoders.qwen25_7b.transformer.model.", QWEN_2_5),)),
    "hunyuan-video-i2v": ("hunyuan-video", "vae.",
                          (("text_encoders.llama.transformer.model.", LLAMA), SD3[0])),
    "wan-t2v-14b": ("wan-2.1", "vae.", UMT5_XXL), "wan-i2v-14b": ("wan-2.1", "vae.", UMT5_XXL),
    "wan2.2-i2v-a14b": ("wan-2.1", "vae.", UMT5_XXL),
    "ltx-video-13b": ("ltx-0.9.5", "vae.", SD3[2:]), "mochi": ("mochi", "vae.", SD3[2:]),
    "cosmos-predict2-2b": ("wan-2.1", "vae.", ()),
    "hunyuan-image-2.1": ("hunyuan-image-2.1", "vae.", ()), "hunyuan-dit": ("sd", "vae.", ()),
}


def jobs():
    models = {title: (identity, cls, arguments) for title, identity, cls, arguments in MODELS}
    for title, identity, cls, arguments in VARIED:
        for form, prefix in (("raw", ""), ("checkpoint", "model.diffusion_model.")):
            yield (make, "%s.%s" % (title, form), identity, {"denoiser"},
                   (shapes, cls, arguments, prefix))
    for title in PREFIXED:
        identity, cls, arguments = models[title]
        for form, prefix in PREFIXES:
            yield (make, "%s.%s" % (title, form), identity, {"denoiser"},
                   (shapes, cls, arguments, prefix))
    for title in AVERAGED:
        identity, cls, arguments = models[title]
        yield make, title + ".averaged", identity, {"denoiser"}, (averaged, cls, arguments)
    for title in WHOLE:
        identity, cls, arguments = models[title]
        yield make, title + ".whole", identity, {"checkpoint"}, (whole, cls, arguments, title)


def make(title, identity, tasks, write, *arguments):
    return entry(title, identity, tasks, write(*arguments))


def shapes(cls, arguments, prefix):
    return {prefix + name: ("F16", list(tensor.shape))
            for name, tensor in build(cls, arguments).state_dict().items()}


def averaged(cls, arguments):
    """As LDM's LitEma names them: without dots."""
    state = shapes(cls, arguments, "model.diffusion_model.")
    for name, (_, shape) in list(state.items()):
        state["model_ema." + name.removeprefix("model.").replace(".", "")] = "F32", shape
    return dict(state, **{"model_ema.decay": ("F32", []), "model_ema.num_updates": ("I32", [])})


@functools.lru_cache(maxsize=8)
def encoder(cls, sizes):
    model = on_meta(at("transformers:" + cls),
                    {"config": at("transformers:" + cls).config_class(**dict(sizes))})
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def whole(cls, arguments, title):
    vae, prefix, encoders = WHOLE[title]
    _, _, vae_cls, vae_arguments = next(row for row in VAES if row[0] == vae)
    state = shapes(cls, arguments, "model.diffusion_model.")
    state.update(shapes(vae_cls, vae_arguments, prefix))
    for before, (name, sizes) in encoders:
        for tensor, shape in encoder(name, tuple(sizes.items())).items():
            if "CLIP" in name and not tensor.startswith("text_"):
                tensor = "text_model." + tensor     # what transformers had before version 5
            state[before + tensor] = "F16", shape
    return state


def versions():
    return commits("ComfyUI")
