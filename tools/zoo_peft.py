"""Every method of PEFT on a language model, a UNet and a DiT, as save_pretrained writes it."""
import torch
import transformers
from peft import PeftType, get_peft_model, get_peft_model_state_dict
from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING
import peft

import zoo_diffusers
from zoo_common import Failure, as_json, entry
from zoo_configs import PUBLISHED as LANGUAGE
from zoo_pipelines import PUBLISHED as PIPELINES

LLAMA = LANGUAGE["LlamaForCausalLM", "llama-3.2-1b"]
UNET = PIPELINES["UNet2DConditionModel", "sd-1"]
FLUX = PIPELINES["FluxTransformer2DModel", "flux.1-dev"]


def llama(**fewer):
    config = transformers.LlamaConfig(**{**LLAMA, **fewer})
    return transformers.LlamaForCausalLM(config)


def unet(**fewer):
    return zoo_diffusers.diffusers.UNet2DConditionModel(**UNET)


def flux(**fewer):
    return zoo_diffusers.diffusers.FluxTransformer2DModel(**{**FLUX, **fewer})


# name: (function, model in few layers, repository, target modules, feed-forward modules)
BASES = {
    "llama": (llama, {"num_hidden_layers": 2}, "meta-llama/Llama-3.2-1B",
              ["q_proj", "k_proj", "v_proj", "o_proj"], ["down_proj"]),
    "unet": (unet, {}, "stable-diffusion-v1-5/stable-diffusion-v1-5",
             ["to_q", "to_k", "to_v", "to_out.0"], ["ff.net.2"]),
    "flux": (flux, {"num_layers": 2, "num_single_layers": 2}, "black-forest-labs/FLUX.1-dev",
             ["to_q", "to_k", "to_v", "to_out.0"], ["ff.net.2"]),
}
# Language models whose LoRAs look like those of Llama.
OTHERS = {
    "qwen2": ("Qwen2ForCausalLM", "qwen2.5-7b", "Qwen/Qwen2.5-7B"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3-8b", "Qwen/Qwen3-8B"),
    "mistral": ("MistralForCausalLM", "mistral-7b-v0.3", "mistralai/Mistral-7B-v0.3"),
    "gemma-2": ("Gemma2ForCausalLM", "gemma-2-9b", "google/gemma-2-9b"),
    "olmo-2": ("Olmo2ForCausalLM", "olmo-2-7b", "allenai/OLMo-2-1124-7B"),
    "granite": ("GraniteForCausalLM", "granite-3.1-8b", "ibm-granite/granite-3.1-8b-base"),
}
PROMPTS = {"PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "CPT",
           "CARTRIDGE", "ADAPTION_PROMPT"}
# What a method cannot do without.
ARGUMENTS = {
    "ADALORA": {"total_step": 1000},
    "ADAPTION_PROMPT": {"adapter_len": 10, "adapter_layers": 2},
    "BOFT": {"boft_block_size": 4},
    "C3A": {"block_size": 64},
    "CARTRIDGE": {"num_virtual_tokens": 16},
    "CPT": {"num_virtual_tokens": 8, "cpt_token_ids": list(range(8)), "cpt_mask": [1] * 8,
            "cpt_tokens_type_mask": [1] * 8},
    "MULTITASK_PROMPT_TUNING": {"num_virtual_tokens": 16, "num_tasks": 2},
    "OFT": {"oft_block_size": 32, "r": 0},
    "PREFIX_TUNING": {"num_virtual_tokens": 16},
    "PROMPT_TUNING": {"num_virtual_tokens": 16},
    "P_TUNING": {"num_virtual_tokens": 16, "encoder_hidden_size": 128},
    "RANDLORA": {"r": 32},
    "TRAINABLE_TOKENS": {"token_indices": [0, 1, 2]},
    "VBLORA": {"vector_length": 64, "num_vectors": 256},
    "WAVEFT": {"n_frequency": 1024},
    "XLORA": {"hidden_size": 2048, "adapters": {"one": "one"}},
}
# Minutes of decompositions for a few tensors, or more files than one.
LEFT_OUT = {("FROD", "flux"): "decomposes the model's weights for minutes",
            ("XLORA", "llama"): "loads other adapters when it is made"}
FORMS = [("LORA", "lora", {}), ("LORA", "dora", {"use_dora": True}),
         ("LORA", "rslora", {"use_rslora": True})]


def of_language(name):
    cls = getattr(transformers, OTHERS[name][0])
    config = cls.config_class(**LANGUAGE[OTHERS[name][:2]])
    return lambda: cls(config)


def jobs():
    for name, (_, _, repository) in OTHERS.items():
        BASES[name] = (of_language(name), {}, repository) + BASES["llama"][3:]
        yield make, "lora." + name, "lora", {name}, ("LORA", name, {})
    methods = FORMS + [(kind.value, kind.value.lower(), {}) for kind in PEFT_TYPE_TO_CONFIG_MAPPING
                       if kind != PeftType.LORA]
    for base in ("llama", "unet", "flux"):
        for kind, title, more in methods:
            if base == "llama" or kind not in PROMPTS | {"XLORA", "TRAINABLE_TOKENS"}:
                yield make, "%s.%s" % (title, base), kind.lower(), {base}, (kind, base, more)


def config_of(kind, base, more):
    _, _, repository, targets, feed_forward = BASES[base]
    cls = PEFT_TYPE_TO_CONFIG_MAPPING[PeftType(kind)]
    arguments = {**ARGUMENTS.get(kind, {}), **more}
    if kind == "LN_TUNING":
        targets = ["input_layernorm"] if base == "llama" else [".*norm1$", ".*norm_q$"][
            base == "flux"]
    elif kind == "TRAINABLE_TOKENS":
        targets = ["embed_tokens"]
    if hasattr(cls, "target_modules") and kind not in ("XLORA", "ADAPTION_PROMPT"):
        arguments["target_modules"] = targets
    if kind == "IA3":
        arguments.update(target_modules=targets[1:3] + feed_forward,
                         feedforward_modules=feed_forward)
    config = cls(**arguments, **({"task_type": "CAUSAL_LM"} if base not in ("unet", "flux")
                 else {}))
    config.base_model_name_or_path = repository
    return config


def state_of(kind, base, more, device, fewer):
    config = config_of(kind, base, more)
    with torch.device(device):
        model = get_peft_model(BASES[base][0](**fewer), config)
    config.base_model_name_or_path = BASES[base][2]
    return config, get_peft_model_state_dict(model, save_embedding_layers=False)


def make(title, identity, tasks, kind, base, more):
    """On the meta device; for methods that compute, two layers of the model are made."""
    if (kind, base) in LEFT_OUT:
        raise Failure(LEFT_OUT[kind, base])
    try:
        config, state = state_of(kind, base, more, "meta", {})
    except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError):
        config, state = state_of(kind, base, more, "cpu", BASES[base][1])
    declared = {key: sorted(value) if isinstance(value, set) else value
                for key, value in config.to_dict().items()}
    declared["peft_type"] = kind
    return entry(title, identity, tasks, {name: value for name, value in state.items()},
                 file="adapter_model.safetensors",
                 texts={"adapter_config.json": as_json(declared)}, metadata={"format": "pt"})


def versions():
    return "peft %s, %s" % (peft.__version__, zoo_diffusers.versions())
