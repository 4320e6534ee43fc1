"""The section adapters of compare.py: lora merge into SDXL against a durable copy of it, and against
PyTorch where Python has it, as sd-scripts and as PEFT merge. Time, memory and error."""
import json
import os
import random
import struct
import subprocess
import sys

from contest import cell, few, ratio, table, take_turns

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "tests", "zoo"))
import read as zoo  # noqa: E402

RANK, ALPHA = 32, 16.0
UNET = "model.diffusion_model."


def size_of(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def sdxl():
    """Names and shapes of SDXL's U-Net as ComfyUI has it, and of its encoders."""
    _, entries, _ = zoo.read("comfy")
    found = next(e for e in entries if e.name == "sdxl.checkpoint")
    tensors = {name: list(shape) for name, _, shape in found.tensors()}
    for wide, layers, stem, names in (
            (768, 12, "conditioner.embedders.0.transformer.text_model.",
             {"encoder.layers.%d.self_attn.q_proj": (1, 1), "encoder.layers.%d.self_attn.k_proj":
              (1, 1), "encoder.layers.%d.self_attn.v_proj": (1, 1),
              "encoder.layers.%d.self_attn.out_proj": (1, 1), "encoder.layers.%d.mlp.fc1": (4, 1),
              "encoder.layers.%d.mlp.fc2": (1, 4)}),
            (1280, 32, "conditioner.embedders.1.model.transformer.",
             {"resblocks.%d.attn.in_proj": (3, 1), "resblocks.%d.attn.out_proj": (1, 1),
              "resblocks.%d.mlp.c_fc": (4, 1), "resblocks.%d.mlp.c_proj": (1, 4)})):
        tensors[stem + "token_embedding.weight"] = [49408, wide]
        for i in range(layers):
            for name, (rows, cols) in names.items():
                tensors[stem + name % i + ".weight"] = [rows * wide, cols * wide]
    return tensors


def lora_of(tensors):
    """A kohya LoRA of all matrices in transformer blocks, and of what stands around them."""
    found = {}
    for name, shape in tensors.items():
        if not name.startswith(UNET) or not name.endswith(".weight") or len(shape) != 2:
            continue
        if ".transformer_blocks." in name or ".proj_" in name:
            stem = "lora_unet_" + name[len(UNET):-len(".weight")].replace(".", "_")
            found[stem + ".lora_down.weight"] = [RANK, shape[1]]
            found[stem + ".lora_up.weight"] = [shape[0], RANK]
            found[stem + ".alpha"] = []
    return found


def write_f16(path, tensors, by, seed):
    draw = random.Random(seed)
    noise = struct.pack("<65536e", *(draw.gauss(0, by) for _ in range(65536))) * 16
    header, at = {"__metadata__": {"modelspec.title": "made"}}, 0
    for name, shape in tensors.items():
        header[name] = {"dtype": "F16", "shape": shape,
                        "data_offsets": [at, at + 2 * size_of(shape)]}
        at += 2 * size_of(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".new", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors.items():
            left = 2 * size_of(shape)
            if name.endswith(".alpha"):
                left -= file.write(struct.pack("<e", ALPHA))
            skip = draw.randrange(1000) * 2
            while left > 0:
                left -= file.write(noise[skip:skip + left])
    os.rename(path + ".new", path)


# As sd-scripts' merge scripts do: the product in F32, the sum in F32, back to the dtype.
SCRIPTS = """
import sys, torch
from safetensors.torch import load_file, save_file
path, lora, out = sys.argv[1:]
torch.set_num_threads(2)
model, lora = load_file(path), load_file(lora)
names = {"lora_unet_" + n[len("model.diffusion_model."):-len(".weight")].replace(".", "_"): n
         for n in model if n.startswith("model.diffusion_model.") and n.endswith(".weight")}
for key in [k for k in lora if k.endswith(".lora_down.weight")]:
    stem = key[:-len(".lora_down.weight")]
    down, up = lora[key].float(), lora[stem + ".lora_up.weight"].float()
    scale = lora[stem + ".alpha"].item() / down.shape[0]
    w = model[names[stem]]
    model[names[stem]] = (w.float() + scale * (up @ down)).to(w.dtype)
save_file(model, out)
"""
# PEFT on modules with the same matrices: the product and the sum in the model's dtype.
PEFT = """
import sys, torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
path, lora, out = sys.argv[1:]
torch.set_num_threads(2)
model, lora = load_file(path), load_file(lora)
names = {"lora_unet_" + n[len("model.diffusion_model."):-len(".weight")].replace(".", "_"): n
         for n in model if n.startswith("model.diffusion_model.") and n.endswith(".weight")}
stems = [k[:-len(".lora_down.weight")] for k in lora if k.endswith(".lora_down.weight")]
with torch.device("meta"):
    holder = torch.nn.ModuleDict({s: torch.nn.Linear(*reversed(model[names[s]].shape), bias=False,
                                                     dtype=torch.float16) for s in stems})
for s in stems:
    holder[s].weight = torch.nn.Parameter(model[names[s]], requires_grad=False)
alpha = lora[stems[0] + ".alpha"].item()
peft = get_peft_model(holder, LoraConfig(r=lora[stems[0] + ".lora_down.weight"].shape[0],
                                         lora_alpha=alpha, target_modules=stems),
                      autocast_adapter_dtype=False)
for s in stems:
    layer = peft.base_model.model[s]
    layer.lora_A["default"].weight.data = lora[s + ".lora_down.weight"]
    layer.lora_B["default"].weight.data = lora[s + ".lora_up.weight"]
merged = peft.merge_and_unload()
for s in stems:
    model[names[s]] = merged[s].weight.data
save_file(model, out)
"""
# ||W' - (W + D)|| / ||D|| in F64 over layers of every size.
ERROR = """
import sys, numpy as np
from safetensors import safe_open
path, lora, out = (safe_open(p, "np") for p in sys.argv[1:])
off = all_of = 0
for name in list(path.keys())[::37]:
    stem = "lora_unet_" + name[len("model.diffusion_model."):-len(".weight")].replace(".", "_")
    if stem + ".alpha" not in lora.keys(): continue
    up, down = (lora.get_tensor(stem + e).astype("f8") for e in (".lora_up.weight",
                                                                ".lora_down.weight"))
    d = float(lora.get_tensor(stem + ".alpha")) / down.shape[0] * (up @ down)
    now, was = out.get_tensor(name).astype("f8"), path.get_tensor(name).astype("f8")
    off, all_of = off + ((now - was - d) ** 2).sum(), all_of + (d ** 2).sum()
print(float(np.sqrt(off / all_of)))
"""


def peak_of(words):
    """MiB of a process that runs once."""
    watch = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
             "stdout=subprocess.DEVNULL); "
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)")
    done = subprocess.run([sys.executable, "-c", watch, *words], check=True, capture_output=True,
                          text=True)
    return int(done.stdout)


class Adapters:
    """What Bench is given besides its own sections."""

    def adapters(self):
        ours = os.path.join(self.args.build, "safetensors")
        path, lora = self.data("adapters-sdxl"), self.data("adapters-lora")
        out, copy = (os.path.join(self.args.data, n + ".safetensors") for n in ("out", "copy"))
        tensors = sdxl()
        if not os.path.exists(path):
            write_f16(path, tensors, 0.02, 1)
        if not os.path.exists(lora):
            write_f16(lora, lora_of(tensors), 0.01, 2)
        merge = [ours, "lora", "merge", path, lora, "--force"]
        commands = {
            "lora merge": [*merge, "--threads", "2", "-o", out],
            "lora merge, one thread": [*merge, "--threads", "1", "-o", out],
            "`cp` and `sync`": ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "-", path, copy]}
        for name, module, code in (("PyTorch, sd-scripts' way", "torch", SCRIPTS),
                                   ("PEFT 0.21.2", "peft", PEFT)):
            if not subprocess.run([sys.executable, "-c", "import " + module], check=False,
                                  stderr=subprocess.DEVNULL).returncode:
                commands[name] = [sys.executable, "-c", code, path, lora, out]
        got = take_turns(commands, self.args.repeats, lambda name: self.drop(out, copy))
        self.floor("lora merge into SDXL, time against a copy",
                   min(got["lora merge"][0].samples) / min(got["`cp` and `sync`"][0].samples),
                   1.25, False)
        rows = []
        for name, words in commands.items():
            self.drop(out, copy)
            peak, error = peak_of(words), "–"
            if os.path.exists(out):
                told = subprocess.run([sys.executable, "-c", ERROR, path, lora, out], check=False,
                                      capture_output=True, text=True)
                error = "%.3g %%" % (100 * float(told.stdout)) if told.stdout else "–"
            rows.append([name, *map(cell, got[name]), ratio(got[name][0], got["`cp` and `sync`"][0]),
                         "%d MiB" % peak, error])
        self.drop(out, copy)
        gigabytes = os.path.getsize(path) / 1e9
        return table(["", "time, ms", "CPU", "÷ copy", "memory, peak", "error"], rows) + (
            "\nA LoRA of rank %d in kohya's form, %d modules, into an SDXL checkpoint of %s GB in "
            "F16, made of noise. Ours is synced, the Python programs are not. Error: "
            "‖W′ − (W + Δ)‖ ÷ ‖Δ‖ in F64, of which F16 itself is nearly all in the first rows.\n"
            % (RANK, len(lora_of(tensors)) // 3, few(gigabytes)))

    def drop(self, *paths):
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
