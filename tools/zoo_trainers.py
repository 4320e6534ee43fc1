"""Adapters as trainers really write them: their own code run on their own model classes.

Needs clones of the trainers in the folder that $ORACLES names (`make oracles` fetches them). Each
entry's identity is our id of the base model; what may stand for it (a parent) is in names.tsv.
"""
import importlib
import os
import re
import runpy

import torch

import zoo_comfy
from zoo_clones import ORACLES, at, commits, on_meta, use
from zoo_common import Failure, entry

RANK = 16


def jobs():
    for source in (musubi, sd_scripts, diffsynth, invoke, layouts):
        for title, identity, arguments in source():
            yield make, title, identity, {"lora", title.split(".")[0]}, arguments


def make(title, identity, tasks, write, *arguments):
    return entry(title, identity, tasks, write(*arguments))


# ── musubi-tuner: networks of its own, on classes of its own ──

def wan(**more):
    return dict({"patch_size": (1, 2, 2), "text_len": 512, "freq_dim": 256, "text_dim": 4096,
                 "attn_mode": "torch"}, **more)


WAN_14B = {"dim": 5120, "ffn_dim": 13824, "num_heads": 40, "num_layers": 40}
MUSUBI = (
    # title, our id, network, class or function, its arguments
    ("wan2.1-t2v-1.3b", "wan-2.1", "lora_wan", "wan.modules.model:WanModel",
     wan(dim=1536, ffn_dim=8960, num_heads=12, num_layers=30)),
    ("wan2.1-t2v-14b", "wan", "lora_wan", "wan.modules.model:WanModel", wan(**WAN_14B)),
    ("wan2.1-i2v-14b", "wan-2.1", "lora_wan", "wan.modules.model:WanModel",
     wan(model_type="i2v", in_dim=36, **WAN_14B)),
    ("wan2.2-i2v-a14b", "wan", "lora_wan", "wan.modules.model:WanModel",
     wan(model_type="i2v", model_version="2.2", in_dim=36, **WAN_14B)),
    ("hunyuan-video", "hunyuan-video", "lora", "hunyuan_model.models:HYVideoDiffusionTransformer",
     {"text_states_dim": 4096, "text_states_dim_2": 768, "mm_double_blocks_depth": 20,
      "mm_single_blocks_depth": 40, "rope_dim_list": [16, 56, 56], "hidden_size": 3072,
      "heads_num": 24, "mlp_width_ratio": 4, "guidance_embed": True, "attn_mode": "torch",
      "split_attn": False}),
    ("framepack", "framepack", "lora_framepack",
     "frame_pack.hunyuan_video_packed:HunyuanVideoTransformer3DModelPacked",
     {"attention_head_dim": 128, "guidance_embeds": True, "has_clean_x_embedder": True,
      "has_image_proj": True, "image_proj_dim": 1152, "in_channels": 16, "mlp_ratio": 4.0,
      "num_attention_heads": 24, "num_layers": 20, "num_refiner_layers": 2,
      "num_single_layers": 40, "out_channels": 16, "patch_size": 2, "patch_size_t": 1,
      "pooled_projection_dim": 768, "qk_norm": "rms_norm", "rope_axes_dim": (16, 56, 56),
      "text_embed_dim": 4096, "attn_mode": "torch"}),
    ("flux-kontext", "flux.1", "lora_flux", "flux.flux_models:Flux", "flux_kontext"),
    ("flux2-dev", "flux.2-dev", "lora_flux_2", "flux_2.flux2_models:Flux2", "Flux2Params"),
    ("flux2-klein-4b", "flux.2-klein-4b", "lora_flux_2", "flux_2.flux2_models:Flux2",
     "Klein4BParams"),
    ("flux2-klein-9b", "flux.2-klein-9b", "lora_flux_2", "flux_2.flux2_models:Flux2",
     "Klein9BParams"),
    ("qwen-image", "qwen-image", "lora_qwen_image", "qwen_image.qwen_image_model:create_model",
     {"attn_mode": "torch", "split_attn": False, "zero_cond_t": False,
      "use_additional_t_cond": False, "use_layer3d_rope": False, "dtype": None}),
    ("z-image", "z-image", "lora_zimage", "zimage.zimage_model:create_model",
     {"attn_mode": "torch", "split_attn": False, "dtype": None}),
    ("hunyuan-video-1.5", "hunyuan-video-1.5", "lora_hv_1_5",
     "hunyuan_video_1_5.hunyuan_video_1_5_models:create_model",
     {"task_type": "t2v", "attn_mode": "torch", "split_attn": False, "dtype": None}),
    ("kandinsky5-lite", "kandinsky-5", "lora_kandinsky", "kandinsky5.models.dit:get_dit",
     "k5-lite-t2v-5s-sd"),
    ("krea2", "krea-2", "lora_krea2", "krea2.krea2_mmdit:SingleStreamDiT", "krea2"),
    ("ideogram4", "ideogram-4", "lora_ideogram4", "ideogram4.ideogram4_model:Ideogram4Transformer",
     "ideogram4"),
)


def musubi():
    for title, identity, network, cls, arguments in MUSUBI:
        for kind in (network, "loha", "lokr"):
            yield "musubi.%s.%s" % (title, kind), identity, (musubi_adapter, kind, cls, arguments)


def musubi_model(cls, arguments):
    use("musubi-tuner", "src")
    found = at("musubi_tuner." + cls)
    if arguments == "flux_kontext":
        params = at("musubi_tuner.flux.flux_models:configs_flux_dev_context").params
        arguments = {"params": params}
    elif arguments in ("Flux2Params", "Klein4BParams", "Klein9BParams"):
        arguments = {"params": at("musubi_tuner.flux_2.flux2_models:" + arguments)(),
                     "attn_mode": "torch"}
    elif arguments == "ideogram4":
        arguments = {"config": at("musubi_tuner.ideogram4.ideogram4_model:Ideogram4Config")()}
    elif arguments == "krea2":
        module = importlib.import_module("musubi_tuner.krea2.krea2_utils")
        arguments = {"config": next(v for v in vars(module).values()
                                    if type(v).__name__ == "SingleMMDiTConfig")}
    elif isinstance(arguments, str):
        configs = importlib.import_module("musubi_tuner.kandinsky5.configs")
        tasks = next(v for v in vars(configs).values() if isinstance(v, dict) and arguments in v)
        arguments = {"conf": vars(tasks[arguments].dit_params)}
    return on_meta(found, arguments)


def musubi_adapter(network, cls, arguments):
    model = musubi_model(cls, arguments)
    made = at("musubi_tuner.networks.%s:create_arch_network" % network)(
        1.0, RANK, 1, None, [], model)
    made.apply_to([], model, False, True)
    return halves(made.state_dict())


def halves(state):
    """Trainers save weights as F16 or BF16, whatever they train in."""
    return {name: ("BF16", list(tensor.shape)) for name, tensor in state.items()}


# ── sd-scripts ──

SD_SCRIPTS = (
    ("sd1", "sd-1", ("lora", "dylora", "lora_fa", "oft"), "sd1"),
    ("sd2", "sd-2", ("lora", "oft"), "sd2"),
    ("sdxl", "sdxl", ("lora", "oft"), "sdxl"),
    ("flux-dev", "flux.1", ("lora_flux", "oft_flux"), "flux"),
    ("chroma", "chroma", ("lora_flux",), "chroma"),
    ("sd3-medium", "sd-3", ("lora_sd3",), "sd3"),
    ("sd3.5-large", "sd-3.5-large", ("lora_sd3",), "sd3.5-large"),
    ("lumina2", "lumina-2", ("lora_lumina",), "lumina"),
    ("hunyuan-image-2.1", "hunyuan-image-2.1", ("lora_hunyuan_image",), "hunyuan-image"),
    ("anima", "anima", ("lora_anima",), "anima"),
)
# More layers of the same trainer, by its documented network arguments.
SD_SCRIPTS_MORE = (
    ("sd1.conv", "sd-1", "lora", "sd1", {"conv_dim": "8", "conv_alpha": "1"}),
    ("sdxl.conv", "sdxl", "lora", "sdxl", {"conv_dim": "8", "conv_alpha": "1"}),
    ("flux-dev.double", "flux.1", "lora_flux", "flux", {"train_blocks": "double"}),
    ("flux-dev.single", "flux.1", "lora_flux", "flux", {"train_blocks": "single"}),
    ("chroma.double", "chroma", "lora_flux", "chroma", {"train_blocks": "double"}),
    ("sd3.5-large.split-qkv", "sd-3.5-large", "lora_sd3", "sd3.5-large", {"split_qkv": "True"}),
    ("anima.adapter", "anima", "lora_anima", "anima", {"train_llm_adapter": "True"}),
)


def sd_scripts():
    for title, identity, networks, base in SD_SCRIPTS:
        for network in networks:
            yield ("sd-scripts.%s.%s" % (title, network), identity,
                   (sd_scripts_adapter, network, base, {}))
    for title, identity, network, base, arguments in SD_SCRIPTS_MORE:
        yield "sd-scripts." + title, identity, (sd_scripts_adapter, network, base, arguments)


def sd_scripts_model(base):
    use("sd-scripts")
    with torch.device("meta"):
        if base in ("sd1", "sd2"):
            v2 = base == "sd2"
            config = at("library.model_util:create_unet_diffusers_config")(v2, v2)
            return at("library.original_unet:UNet2DConditionModel")(**config)
        if base == "sdxl":
            return at("library.sdxl_original_unet:SdxlUNet2DConditionModel")()
        if base == "flux":
            return at("library.flux_models:Flux")(at("library.flux_models:configs")["dev"].params)
        if base == "chroma":
            chroma = importlib.import_module("library.chroma_models")
            return chroma.Chroma(chroma.chroma_params)
        if base.startswith("sd3"):
            sd3 = importlib.import_module("library.sd3_models")
            large = base == "sd3.5-large"
            return sd3.create_sd3_mmdit(sd3.SD3Params(
                patch_size=2, depth=38 if large else 24, num_patches=192 * 192,
                pos_embed_max_size=192, adm_in_channels=2048,
                qk_norm="rms" if large else None, x_block_self_attn_layers=[],
                context_embedder_in_features=4096,
                context_embedder_out_features=2432 if large else 1536,
                model_type="3-5-large" if large else "3-medium"))
        if base == "lumina":
            return at("library.lumina_models:NextDiT_2B_GQA_patch2_Adaln_Refiner")()
        if base == "hunyuan-image":
            return at("library.hunyuan_image_models:create_model")("torch", False, None)
        return at("library.anima_models:Anima")(
            max_img_h=512, max_img_w=512, max_frames=128, in_channels=16, out_channels=16,
            patch_spatial=2, patch_temporal=1, model_channels=2048, concat_padding_mask=True,
            crossattn_emb_channels=1024, pos_emb_cls="rope3d", pos_emb_learnable=True,
            pos_emb_interpolation="crop", use_adaln_lora=True, adaln_lora_dim=256, num_blocks=28,
            num_heads=16, extra_per_block_abs_pos_emb=False, rope_h_extrapolation_ratio=4.0,
            rope_w_extrapolation_ratio=4.0, rope_t_extrapolation_ratio=1.0,
            use_llm_adapter=True)


def sd_scripts_adapter(network, base, arguments):
    model = sd_scripts_model(base)
    made = at("networks.%s:create_network" % network)(
        1.0, RANK, 1, None, [torch.nn.Module()] if network == "lora_lumina" else [], model, **arguments)
    made.apply_to([], model, False, True)
    return halves(made.state_dict())


# ── DiffSynth-Studio: PEFT on classes of its own, by the lists of its examples ──

TO_QKV = "to_q,to_k,to_v,to_out.0"
# model_name of its table: (our id, its example's --lora_target_modules)
DIFFSYNTH = {
    "qwen_image_dit": ("qwen-image", "to_q,to_k,to_v,add_q_proj,add_k_proj,add_v_proj,to_out.0,"
                       "to_add_out,img_mlp.net.2,img_mod.1,txt_mlp.net.2,txt_mod.1"),
    "flux_dit": ("flux.1", "a_to_qkv,b_to_qkv,ff_a.0,ff_a.2,ff_b.0,ff_b.2,a_to_out,b_to_out,"
                 "proj_out,norm.linear,norm1_a.linear,norm1_b.linear,to_qkv_mlp"),
    "flux2_dit": ("flux.2", "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,"
                  "linear_in,linear_out,to_qkv_mlp_proj,attn.to_out"),
    "wan_video_dit": ("wan", "q,k,v,o,ffn.0,ffn.2"),
    "wan_video_vace": ("wan-2.1", "q,k,v,o,ffn.0,ffn.2"),
    "wan_video_animate_2": ("wan-animate-2", "self_attn.q,self_attn.k,self_attn.v"),
    "z_image_dit": ("z-image", TO_QKV + ",w1,w2,w3"),
    "ltx2_dit": ("ltx-2", "to_k,to_q,to_v,to_out.0"),
    "ace_step_dit": ("ace-step-1.5", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"),
    "ernie_image_dit": ("ernie-image", "to_q,to_k,to_v,to_out.0"),
    "ideogram4_dit": ("ideogram-4", "attention.qkv,attention.o,feed_forward.w1,feed_forward.w2,"
                      "feed_forward.w3,adaln_modulation"),
    "krea2_dit": ("krea-2", "wq,wk,wv,gate,wo,gate,up,down,first,tmlp.0,tmlp.2,projector,"
                  "txtmlp.1,txtmlp.3,last.linear,tproj.1"),
    "minimax_h3_dit": ("minimax-h3", "attn.qkv_proj,attn.out_proj,mlp.fc1,mlp.fc2"),
    "boogu_image_dit": ("boogu", TO_QKV + ",img_to_q,img_to_k,img_to_v,img_out,"
                        "instruct_to_q,instruct_to_k,instruct_to_v,instruct_out"),
    "joyai_image_dit": ("joyai-image", "img_attn_qkv,txt_attn_qkv,img_attn_proj,txt_attn_proj"),
    "longcat_video_dit": ("longcat-video", "adaLN_modulation.1,attn.qkv,attn.proj,"
                          "cross_attn.q_linear,cross_attn.kv_linear,cross_attn.proj,"
                          "ffn.w1,ffn.w2,ffn.w3"),
    "anima_dit": ("anima", "q_proj,k_proj,v_proj,output_proj"),
    "lingbot_video_dit": ("lingbot-video", "to_q,to_k,to_v,to_out"),
    "stable_diffusion_unet": ("sd-1", TO_QKV),
    "stable_diffusion_xl_unet": ("sdxl", TO_QKV),
}


def diffsynth_identity(name, identity, arguments):
    if name == "wan_video_dit":
        if arguments.get("in_dim") == 48 and arguments.get("dim") == 3072:
            return "wan-2.2"
        return "wan-2.1" if arguments.get("dim") == 1536 or arguments.get("has_image_input") \
            else "wan"
    if name == "flux2_dit" and arguments:
        return "flux.2-klein-9b" if arguments["joint_attention_dim"] == 12288 else "flux.2-klein-4b"
    return "flux.2-dev" if name == "flux2_dit" else identity


def diffsynth():
    try:
        use("DiffSynth-Studio", "diffsynth/configs")
    except Failure:
        return
    configs = importlib.import_module("model_configs")
    seen = set()
    for config in configs.MODEL_CONFIGS:
        name, arguments = config["model_name"], config.get("extra_kwargs", {})
        key = name, config["model_class"], repr(arguments)
        if name not in DIFFSYNTH or key in seen:
            continue
        seen.add(key)
        identity, targets = DIFFSYNTH[name]
        yield ("diffsynth.%s.%d" % (name, sum(k[0] == name for k in seen)),
               diffsynth_identity(name, identity, arguments),
               (diffsynth_adapter, config["model_class"], arguments, targets))


def diffsynth_adapter(cls, arguments, targets):
    use("DiffSynth-Studio")
    module, _, name = cls.rpartition(".")
    model = on_meta(at(module + ":" + name), arguments)
    state = {}
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.Linear) and any(
                name == target or name.endswith("." + target) for target in targets.split(",")):
            state[name + ".lora_A.default.weight"] = "BF16", [RANK, layer.in_features]
            state[name + ".lora_B.default.weight"] = "BF16", [layer.out_features, RANK]
    return state


# ── InvokeAI: names and sizes of files that its users reported ──

INVOKE = (("anima", "anima"), ("flux_control", "flux.1"), ("flux", "flux.1"), ("krea2", "krea-2"),
          ("qwen_image", "qwen-image"))


# Their LoKr factors multiply to sizes that the layers have not.
IMPOSSIBLE = {"anima_lora_lokr_format", "flux_lokr_bfl_format", "qwen_image_lora_kohya_format"}


def invoke():
    folder = os.path.join(ORACLES, "InvokeAI/tests/backend/patches/lora_conversions"
                                   "/lora_state_dicts")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        for begin, identity in INVOKE:
            if name.startswith(begin) and name[:-3] not in IMPOSSIBLE:
                yield "invoke." + name[:-3], identity, (invoke_adapter, os.path.join(folder, name))
                break


def invoke_adapter(path):
    keys = runpy.run_path(path)["state_dict_keys"]
    return {name: ("BF16", list(shape)) for name, shape in keys.items()}


# ── Makers' own names: the layers of blocks, and of their attention alone ──

ATTENTION = re.compile(r"attn|attention|\bto_[qkv]\b|[._]qkv|\.[qkvo]$|linear[12]$")
LAYOUTS = {
    "kohya": lambda name: ("lora_unet_" + name.replace(".", "_"), "lora_down", "lora_up", True),
    "dotted": lambda name: ("diffusion_model." + name, "lora_A", "lora_B", False),
    "peft": lambda name: ("base_model.model." + name, "lora_A", "lora_B", False),
}


def layouts():
    for title, identity, cls, arguments in zoo_comfy.MODELS:
        for layers in ("blocks", "attention"):
            for layout in LAYOUTS:
                yield ("layers.%s.%s.%s" % (title, layers, layout), identity,
                       (layout_adapter, cls, arguments, layers, layout))


def layout_adapter(cls, arguments, layers, layout):
    state = {}
    for name, tensor in zoo_comfy.build(cls, arguments).state_dict().items():
        stem = name.removesuffix(".weight")
        if stem == name or len(tensor.shape) != 2 or not re.search(r"\.\d+\.", name) \
                or layers == "attention" and not ATTENTION.search(stem):
            continue
        prefix, down, up, alpha = LAYOUTS[layout](stem)
        state["%s.%s.weight" % (prefix, down)] = "BF16", [RANK, tensor.shape[1]]
        state["%s.%s.weight" % (prefix, up)] = "BF16", [tensor.shape[0], RANK]
        if alpha:
            state[prefix + ".alpha"] = "BF16", []
    return state


def versions():
    return commits("musubi-tuner", "sd-scripts", "DiffSynth-Studio", "InvokeAI", "ComfyUI")
