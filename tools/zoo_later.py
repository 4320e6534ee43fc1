"""What a later ComfyUI has than the one of the list comfy: models that came out since, and adapters
on their blocks, attention and single blocks.

Needs a clone in the folder that $ORACLES names, as ComfyUI-2026. The sizes are those of the
published models, as ComfyUI's detection finds them; each entry's identity is our id.
"""
import functools
import importlib
import inspect
import re
import sys

import torch

from zoo_clones import at, commits, on_meta, use, without_absent
from zoo_comfy import LUMINA, chroma, flux, hunyuan, predict2, wan
from zoo_common import entry
from zoo_presets import adapter

CLONE = "ComfyUI-2026"
FLUX, DIT = "ldm.flux.model:Flux", "ldm.lumina.model:NextDiT"
HUNYUAN, QWEN = "ldm.hunyuan_video.model:HunyuanVideo", "ldm.qwen_image.model:"
ACE = "ldm.ace.ace_step15:AceStepConditionGenerationModel"
KANDINSKY, LTX = "ldm.kandinsky5.model:Kandinsky5", "ldm.lightricks.av_model:LTXAVModel"


def flux_2(width, heads, context, depth, single, guidance):
    return {"axes_dim": [32] * 4, "num_heads": heads, "mlp_ratio": 3.0, "theta": 2000,
            "in_channels": 128, "out_channels": 128, "patch_size": 1, "hidden_size": width,
            "context_in_dim": context, "vec_in_dim": None, "depth": depth,
            "depth_single_blocks": single, "guidance_embed": guidance, "qkv_bias": False,
            "ops_bias": False, "global_modulation": True, "mlp_silu_act": True,
            "txt_ids_dims": [3]}


def without_clip(context, depth, single, **more):
    return flux(context_in_dim=context, vec_in_dim=None, guidance_embed=False, depth=depth,
                depth_single_blocks=single, txt_ids_dims=[1, 2], **more)


def hunyuan_1_5(channels, **more):
    return hunyuan(in_channels=channels, out_channels=32, patch_size=[1, 1, 1], hidden_size=2048,
                   num_heads=16, depth=54, depth_single_blocks=0, context_in_dim=3584,
                   vec_in_dim=None, byt5=True, guidance_embed=False, vision_in_dim=1152,
                   use_cond_type_embedding=True, meanflow_sum=True, **more)


def z_image(**more):
    return dict(LUMINA, dim=3840, cap_feat_dim=2560, n_layers=30, n_heads=30, n_kv_heads=30,
                ffn_dim_multiplier=8 / 3, z_image_modulation=True, time_scale=1000.0,
                axes_dims=[32, 48, 48], pad_tokens_multiple=32, **more)


def kandinsky(width, blocks, texts, seconds, channels, axes):
    return {"model_dim": width, "ff_dim": 4 * width, "time_dim": seconds,
            "visual_embed_dim": channels, "num_text_blocks": texts, "num_visual_blocks": blocks,
            "axes_dims": axes}


MODELS = (
    # title, our id, class, arguments
    ("z-image", "z-image", DIT, z_image()),
    ("z-image-omni", "z-image", DIT, z_image(siglip_feat_dim=1152)),
    ("zeta-chroma", "zeta-chroma", DIT + "PixelSpace", dict(
        z_image(), patch_size=32, in_channels=3, decoder_in_channels=3072, use_x0=True)),
    ("newbie", "newbie", DIT, dict(LUMINA, n_layers=36, cap_feat_dim=2560, clip_text_dim=1024,
                                   ffn_dim_multiplier=4.0)),
    ("flux.2-dev", "flux.2-dev", FLUX, flux_2(6144, 48, 15360, 8, 48, True)),
    ("flux.2-klein-4b", "flux.2-klein-4b", FLUX, flux_2(3072, 24, 7680, 5, 20, False)),
    ("flux.2-klein-9b", "flux.2-klein-9b", FLUX, flux_2(4096, 32, 12288, 8, 24, False)),
    ("longcat-image", "longcat-image", FLUX, without_clip(3584, 10, 20)),
    ("ovis-image", "ovis-image", FLUX, without_clip(2048, 6, 27, yak_mlp=True, txt_norm=True)),
    ("chroma-radiance-x0", "chroma-radiance", "ldm.chroma_radiance.model:ChromaRadiance", dict(
        chroma(), in_channels=3, out_channels=3, patch_size=32, nerf_hidden_size=64,
        nerf_mlp_ratio=4, nerf_depth=4, nerf_max_freqs=8, nerf_tile_size=32, vec_in_dim=None,
        nerf_final_head_type="conv", nerf_embedder_dtype=torch.float32, use_x0=True,
        txt_ids_dims=[])),
    ("hunyuan-video-1.5", "hunyuan-video-1.5", HUNYUAN, hunyuan_1_5(65)),
    ("hunyuan-video-1.5-sr", "hunyuan-video-1.5", HUNYUAN, dict(hunyuan_1_5(98), meanflow=True)),
    ("ltx-2", "ltx-2", LTX, {"num_layers": 48}),
    ("ltx-2.3", "ltx-2", LTX, {"num_layers": 48, "cross_attention_adaln": True,
                               "apply_gated_attention": True}),
    ("ernie-image", "ernie-image", "ldm.ernie.model:ErnieImageModel", {}),
    ("ace-step-1.5", "ace-step", ACE, {}),
    ("ace-step-1.5-xl", "ace-step", ACE, {
        "hidden_size": 2560, "intermediate_size": 9728, "num_heads": 32, "num_dit_layers": 32,
        "encoder_hidden_size": 2048, "encoder_num_heads": 16, "encoder_intermediate_size": 6144}),
    ("anima", "anima", "ldm.anima.model:Anima", predict2(16, 2048)),
    ("scail", "scail", "ldm.wan.model:SCAILWanModel", wan(model_type="scail", in_dim=20)),
    ("flow-rvs", "wan-2.1", "ldm.wan.model:WanModel", wan(1536, 8960, 30, in_dim=32)),
    ("kandinsky-5-lite", "kandinsky-5", KANDINSKY, kandinsky(1792, 32, 2, 512, 132, (16, 24, 24))),
    ("kandinsky-5-pro", "kandinsky-5", KANDINSKY, kandinsky(4096, 60, 4, 1024, 132, (32, 48, 48))),
    ("kandinsky-5-image", "kandinsky-5", KANDINSKY, kandinsky(2560, 50, 2, 512, 64, (32, 48, 48))),
    ("qwen-image-layered", "qwen-image", QWEN + "QwenImageTransformer2DModel",
     {"in_channels": 64, "num_layers": 60, "use_additional_t_cond": True}),
)
LAYERS = (("blocks", r"\.\d+\."), ("attention", r"attn|attention"), ("block-0", r"(blocks|layers)\.0\."),
          ("feed-forward", r"ff|mlp|feed_forward"))


def jobs():
    for title, identity, cls, arguments in MODELS:
        for form, prefix in (("raw", ""), ("checkpoint", "model.diffusion_model.")):
            yield (make, "%s.%s" % (title, form), identity, {"denoiser"},
                   (cls, arguments, prefix))
        for name, pattern in LAYERS:
            for layout in ("kohya", "comfy"):
                yield (make_adapter, "%s.%s.%s" % (title, name, layout), identity,
                       {"adapter"}, (title, layout, pattern))


def make(title, identity, tasks, cls, arguments, prefix):
    return entry(title, identity, tasks,
                 {prefix + name: ("BF16", list(tensor.shape))
                  for name, tensor in build(cls, arguments).items()})


def make_adapter(title, identity, tasks, model, layout, pattern):
    return entry(title, identity, tasks,
                 adapter(layers(model), "unet", layout, ("matching", pattern)))


@functools.lru_cache(maxsize=4)
def layers(title):
    _, _, cls, arguments = next(row for row in MODELS if row[0] == title)
    return [(name.removesuffix(".weight"), tensor.shape[0], tensor.shape[1], [])
            for name, tensor in build(cls, arguments).items()
            if name.endswith(".weight") and len(tensor.shape) == 2
            and not re.search(r"embed\w*\.weight$", name)]


def build(cls, arguments):
    use(CLONE)
    sys.argv = [sys.argv[0], "--cpu"]
    with without_absent():
        return built(cls, arguments).state_dict()


def built(cls, arguments):
    at("comfy.options:enable_args_parsing")()
    found = at("comfy." + cls)
    parameters = inspect.signature(found.__init__).parameters.values()
    settings = {"device": "meta", "dtype": torch.bfloat16,
                "operations": importlib.import_module("comfy.ops").disable_weight_init}
    if not any(p.name == "operations" or p.kind == p.VAR_KEYWORD for p in parameters):
        return on_meta(found, arguments)
    if cls == ACE:      # asks for a number when it is made
        settings["device"] = "cpu"
    arguments = dict({"txt_ids_dims": []}, **arguments) if cls == FLUX else arguments
    if cls == HUNYUAN:
        arguments = dict({"use_cond_type_embedding": False, "vision_in_dim": None}, **arguments)
    return found(**arguments, **settings)


def versions():
    return commits(CLONE)
