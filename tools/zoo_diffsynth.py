"""Models, VAEs and ControlNets that DiffSynth-Studio loads, by its own classes and its table of the
files that it knows.

Needs a clone in the folder that $ORACLES names. Classes whose names are not those of the files
(flux_dit and others with a converter) are left out, but for those that only lack a prefix.
"""
import importlib

from zoo_clones import at, commits, on_meta, use
from zoo_common import Failure, entry
from zoo_trainers import DIFFSYNTH, diffsynth_identity

VAE, CONTROL = {"vae"}, {"controlnet"}
# model_name of its table: our id, what it is, and what its files' names have before the class's
MODELS = {
    "stable_diffusion_unet": None, "stable_diffusion_xl_unet": None, "qwen_image_dit": None,
    "wan_video_dit": None, "flux2_dit": None, "ernie_image_dit": None, "z_image_dit": None,
    "joyai_image_dit": None, "boogu_image_dit": None, "ideogram4_dit": None,
    "lingbot_video_dit": None, "minimax_h3_dit": None,
    "anima_dit": ("anima", {"denoiser"}, "net."), "krea2_dit": ("krea-2", {"denoiser"}, ""),
    "ltx2_dit": ("ltx-2", {"denoiser"}, "model.diffusion_model."),
    "ace_step_dit": ("ace-step", {"denoiser"}, "decoder."),
    "hidream_o1_image_dit": ("hidream-o1", {"denoiser"}, ""),
    "minimax_music3_dit": ("minimax-music-3", {"denoiser"}, ""),
    "wan_video_vace": ("wan", CONTROL, ""),
    "qwen_image_vae": ("vae-qwen-image", VAE, ""), "flux2_vae": ("vae-flux.2", VAE, ""),
    "wan_video_vae": ("vae-wan", VAE, ""),
    "ltx2_video_vae_decoder": ("vae-ltx-2", VAE, "vae.decoder."),
    "ltx2_video_vae_encoder": ("vae-ltx-2", VAE, "vae.encoder."),
    "ace_step_vae": ("vae-ace-step-1.5", VAE, ""),
    "minimax_music3_vocoder": ("vae-minimax-music-3", VAE, ""),
    "qwen_image_blockwise_controlnet": ("qwen-image", CONTROL, ""),
    "z_image_controlnet": ("z-image", CONTROL, ""),
}
CLASSES = {"WanAnimate2Transformer": "wan-animate-2",
           "LongCatVideoTransformer3DModel": "longcat-video",
           "WanS2VModel": "wan-2.2", "WanVideoVAE38": "vae-wan-2.2"}


def jobs():
    try:
        use("DiffSynth-Studio", "diffsynth/configs")
    except Failure:
        return
    seen = set()
    for config in importlib.import_module("model_configs").MODEL_CONFIGS:
        name, cls, arguments = (config["model_name"], config["model_class"],
                                config.get("extra_kwargs", {}))
        key = name, cls, repr(arguments)
        own = MODELS.get(name)
        if name not in MODELS or key in seen or (own is None and "state_dict_converter" in config):
            continue
        seen.add(key)
        identity, tasks, prefix = own or (
            diffsynth_identity(name, DIFFSYNTH[name][0], arguments), {"denoiser"}, "")
        if arguments.get("in_dim") == 36 and not arguments["has_image_input"]:
            identity = "wan-2.2"
        identity = CLASSES.get(cls.rpartition(".")[2], identity)
        title = "%s.%d" % (name, sum(k[0] == name for k in seen))
        yield make, title, identity, tasks, (cls, arguments, prefix)


def make(title, identity, tasks, cls, arguments, prefix):
    use("DiffSynth-Studio")
    module, _, name = cls.rpartition(".")
    state = on_meta(at(module + ":" + name), arguments).state_dict()
    inner = "model." if title.startswith("wan_video_vae") else ""
    return entry(title, identity, tasks, {
        prefix + name.removeprefix(inner): ("BF16", list(tensor.shape))
        for name, tensor in state.items()})


def versions():
    return commits("DiffSynth-Studio")
