"""LoRAs for every denoiser of diffusers, under the names of three trainers."""
import torch

import zoo_diffusers
from zoo_common import Failure, entry

RANK = 16
# A denoiser's linear layers of attention: trainers take these by default.
TARGETS = ("to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj",
           "to_add_out", "to_qkv", "q_proj", "k_proj", "v_proj", "o_proj", "out_proj",
           "attention.qkv", "attention.out", "qkv", "proj", "wq", "wk", "wv", "wo",
           "to_query", "to_key", "to_value", "out_layer")


def jobs():
    for make_base, title, name, tasks, (cls, arguments) in zoo_diffusers.jobs():
        if tasks == {"denoiser"}:
            for form in FORMS:
                yield make, "%s.%s" % (title, form), name, {"lora", form}, (cls, arguments, form)


def kohya(part, name, down, up):
    stem = "lora_unet_" + name.replace(".", "_")
    return {stem + ".lora_down.weight": down, stem + ".lora_up.weight": up,
            stem + ".alpha": ("F16", [])}


def diffusers(part, name, down, up):
    return {"%s.%s.lora_A.weight" % (part, name): down, "%s.%s.lora_B.weight" % (part, name): up}


def ai_toolkit(part, name, down, up):
    return diffusers("diffusion_model", name, down, up)


# form: (function, dtype, file)
FORMS = {"kohya": (kohya, "F16", "model.safetensors"),
         "diffusers": (diffusers, "F32", "pytorch_lora_weights.safetensors"),
         "ai-toolkit": (ai_toolkit, "BF16", "model.safetensors")}


def make(title, identity, tasks, cls, arguments, form):
    rename, dtype, file = FORMS[form]
    part = "unet" if "UNet" in identity else "transformer"
    tensors = {}
    for name, module in zoo_diffusers.build(cls, arguments).named_modules():
        if isinstance(module, torch.nn.Linear) and name.endswith(TARGETS):
            tensors.update(rename(part, name, (dtype, [RANK, module.in_features]),
                                  (dtype, [module.out_features, RANK])))
    if not tensors:
        raise Failure("no layers that a trainer would take")
    return entry(title, identity, tasks, tensors, file=file)


def versions():
    return zoo_diffusers.versions()
