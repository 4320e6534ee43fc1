"""Every model class of diffusers, by its default configuration and by those of published models."""
import importlib
import inspect
import pkgutil

import diffusers
import torch
from accelerate import init_empty_weights
from diffusers import ModelMixin

from zoo_common import as_json, entry
from zoo_pipelines import ARGUMENTS, PUBLISHED

# What a class is, by the first word found in its name. A part is of use in its pipeline only.
KINDS = (("ControlNet", "controlnet"), ("ConditionEncoder", "part"), ("Conditioner", "part"),
         ("Connectors", "part"), ("Upsampler", "part"), ("Projection", "part"),
         ("Embedder", "part"), ("TextDecoder", "part"), ("Head", "part"), ("Tokeniz", "vae"),
         ("Detokenizer", "vae"), ("Redux", "part"), ("Vocoder", "part"), ("Autoencoder", "vae"),
         ("VAE", "vae"), ("VQModel", "vae"), ("Vae", "vae"), ("MotionAdapter", "motion"),
         ("Adapter", "adapter"), ("UNet", "denoiser"), ("Transformer", "denoiser"),
         ("DiT", "denoiser"), ("UVit", "denoiser"), ("Prior", "denoiser"))


def kind_of(name):
    return next((kind for word, kind in KINDS if word in name), "part")


def classes():
    """Exported classes, and those that pipelines have for themselves."""
    for module in pkgutil.walk_packages(diffusers.__path__, "diffusers."):
        if not any(word in module.name for word in ("onnx", "flax", ".commands")):
            try:
                importlib.import_module(module.name)
            except (ImportError, RuntimeError, AttributeError):
                continue
    found, left = {}, [ModelMixin]
    while left:
        for cls in left.pop().__subclasses__():
            left.append(cls)
            # What holds several models is saved as these.
            if cls.__module__.startswith("diffusers.") and "Multi" not in cls.__name__ \
                    and cls.__name__ != "LegacyModelMixin":
                found[cls.__name__] = cls
    return found


def build(cls, arguments):
    """On the meta device, or where a constructor computes, with parameters alone on it."""
    try:
        with torch.device("meta"):
            return cls(**arguments)
    except (RuntimeError, NotImplementedError) as error:
        try:
            with init_empty_weights():
                return cls(**arguments)
        except Exception:
            raise error from None


def jobs():
    found = classes()
    for name, cls in sorted(found.items()):
        its = {kind_of(name)}
        yield make, name, name, its, (cls, ARGUMENTS.get(name, {}))
    for (name, title), arguments in sorted(PUBLISHED.items()):
        yield make, "%s@%s" % (name, title), name, {kind_of(name)}, (found[name], arguments)


def make(title, identity, tasks, cls, arguments):
    model = build(cls, arguments)
    declared = {"_class_name": cls.__name__, "_diffusers_version": diffusers.__version__}
    return entry(title, identity, tasks, model.state_dict(),
                 file="diffusion_pytorch_model.safetensors",
                 texts={"config.json": as_json(declared)}, metadata={"format": "pt"})


def versions():
    return "diffusers %s" % diffusers.__version__
