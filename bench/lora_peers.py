#!/usr/bin/env python3
"""`lora merge`, `extract` and `resize` beside what others do with the same files: sd-scripts' formulas
restated with torch, LyCORIS and PEFT as they are called, sft-cli. One run each, one after the other:
wall and processor time of the whole process, its peak memory, and the error in F64.

    lora_peers.py FOLDER [--sft "COMMAND OF SFT-CLI"]

Python needs numpy, torch, safetensors, lycoris_lora and peft; what is missing is left out. Nobody
syncs. A block of SDXL: 4 layers of 1280 x 1280 and one of 1280 x 5120, F16; a LoRA of rank 32 with
falling singular values, which is resized to 16; a tuned model that differs by rank 64 and noise.
"""
import json
import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = "model.diffusion_model.input_blocks.7.1.transformer_blocks.%d.%s.weight"
LAYERS = {NAME % (i, n): s for i in range(1) for n, s in (
    ("attn1.to_q", (1280, 1280)), ("attn1.to_k", (1280, 1280)), ("attn1.to_v", (1280, 1280)),
    ("attn1.to_out.0", (1280, 1280)), ("ff.net.2", (1280, 5120)))}
STEM = "base_model.model."

START = """
import sys, torch
from safetensors.torch import load_file, save_file
base, tuned, lora, out = sys.argv[1:]
torch.set_num_threads(2)
torch.set_grad_enabled(False)
P, A, B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
"""
PAIRS = """
model, lora = load_file(base), load_file(lora)
for n in model:
    stem = P + n[:-len(".weight")]
    down, up = lora[stem + A], lora[stem + B]
"""
DIFFERENCES = """
base, tuned, made = load_file(base), load_file(tuned), {}
for n, w in base.items():
    d, stem = tuned[n].float() - w.float(), P + n[:-len(".weight")]
"""
CLAMPED = """
    u, s, v = torch.linalg.svd(%s, full_matrices=False)
    u, v = u[:, :R] @ torch.diag(s[:R]), v[:R]
    high = torch.quantile(torch.cat([u.flatten(), v.flatten()]), 0.99)
    made[stem + A], made[stem + B] = (x.clamp(-high, high).half().contiguous() for x in (v, u))
save_file(made, out)
"""
PEFT = """
from peft import LoraConfig, get_peft_model
model, lora = load_file(base), load_file(lora)
keys = {n[:-len(".weight")].replace(".", "_"): n for n in model}
with torch.device("meta"):
    holder = torch.nn.ModuleDict({k: torch.nn.Linear(*reversed(model[n].shape), bias=False,
                                                     dtype=torch.float16) for k, n in keys.items()})
for k, n in keys.items():
    holder[k].weight = torch.nn.Parameter(model[n], requires_grad=False)
peft = get_peft_model(holder, LoraConfig(r=32, lora_alpha=32, target_modules=list(keys)),
                      autocast_adapter_dtype=False)
for k, n in keys.items():
    layer, stem = peft.base_model.model[k], P + n[:-len(".weight")]
    layer.lora_A["default"].weight.data = lora[stem + A]
    layer.lora_B["default"].weight.data = lora[stem + B]
"""
CODE = {
    ("merge", "sd-scripts' formulas"): PAIRS + """
    model[n] = (model[n].float() + up.float() @ down.float()).half()
save_file(model, out)
""",
    ("merge", "LyCORIS 4.1.3"): "from lycoris.functional import locon\n" + PAIRS + """
    model[n] = model[n] + locon.diff_weight(down, up, None, gamma=1.0)
save_file(model, out)
""",
    ("merge", "PEFT 0.21.2"): PEFT + """
merged = peft.merge_and_unload()
save_file({n: merged[k].weight.data for k, n in keys.items()}, out)
""",
    ("extract", "sd-scripts' formulas"): DIFFERENCES + CLAMPED.replace("R]", "32]") % "d",
    ("extract", "LyCORIS 4.1.3"): "from lycoris.utils import extract_linear\n" + DIFFERENCES + """
    (made[stem + A], made[stem + B], _), _ = extract_linear(d, "fixed", 32)
save_file({k: v.half().contiguous() for k, v in made.items()}, out)
""",
    ("resize", "sd-scripts' formulas"): PAIRS.replace("for n", "made = {}\nfor n")
    + CLAMPED.replace("R]", "16]") % "up.float() @ down.float()",
    ("resize", "PEFT 0.21.2"): PEFT + """
peft.add_weighted_adapter(["default"], [1.0], "small", combination_type="svd", svd_rank=16)
made = {}
for k, n in keys.items():
    layer, stem = peft.base_model.model[k], P + n[:-len(".weight")]
    made[stem + A] = layer.lora_A["small"].weight.data.contiguous()
    made[stem + B] = layer.lora_B["small"].weight.data.contiguous()
save_file(made, out)
""",
}


def make(folder):
    rng = np.random.default_rng(1)
    base, tuned, lora = {}, {}, {}
    for name, (rows, cols) in LAYERS.items():
        fall = 10.0 ** -np.linspace(0, 2, 64, dtype="f4")
        up, down = (rng.standard_normal(s, "f4") for s in ((rows, 64), (64, cols)))
        up *= 2e-4 * fall
        base[name] = (rng.standard_normal((rows, cols), "f4") * 0.02).astype("f2")
        noise = rng.standard_normal((rows, cols), "f4") * 1e-5
        tuned[name] = (base[name] + up @ down + noise).astype("f2")
        stem = STEM + name[:-len(".weight")]
        lora[stem + ".lora_B.weight"] = (up[:, ::2] * 50).astype("f2")
        lora[stem + ".lora_A.weight"] = (down[::2] * 0.02).astype("f2")
    for name, values in (("base", base), ("tuned", tuned), ("lora", lora)):
        save_file(values, os.path.join(folder, name + ".safetensors"))


def error_of(verb, folder, out):
    base, tuned, lora, got = (load_file(os.path.join(folder, n + ".safetensors"))
                              for n in ("base", "tuned", "lora", out))
    off = whole = 0

    def product(pairs, name):
        stem = name[:-len(".weight")]
        kohya = "lora_unet_" + stem[len("model.diffusion_model."):].replace(".", "_")
        for up, down, alpha in ((STEM + stem + ".lora_B.weight", STEM + stem + ".lora_A.weight", ""),
                                (stem + ".lora_B.weight", stem + ".lora_A.weight", ""),
                                (kohya + ".lora_up.weight", kohya + ".lora_down.weight",
                                 kohya + ".alpha")):
            if up in pairs:
                scale = pairs[alpha] / pairs[down].shape[0] if alpha in pairs else 1.0
                return float(scale) * (pairs[up].astype("f8") @ pairs[down].astype("f8"))
        raise KeyError(name)

    for name in LAYERS:
        delta = product(lora, name)
        if verb == "merge":
            want, found = delta, got[name].astype("f8") - base[name]
        elif verb == "extract":
            want, found = tuned[name].astype("f8") - base[name], product(got, name)
        else:
            want, found = delta, product(got, name)
        off += ((found - want) ** 2).sum()
        whole += (want ** 2).sum()
    return "%.4g %%" % (100 * (off / whole) ** 0.5)


# Its child's memory would otherwise be at least ours, which holds arrays.
WATCH = """
import json, resource, subprocess, sys, time
begin = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
wall, used = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([wall, used.ru_utime + used.ru_stime, used.ru_maxrss, done.stderr[-200:]]))
"""


def main():
    folder = sys.argv[1]
    path = {n: os.path.join(folder, n + ".safetensors") for n in ("base", "tuned", "lora", "out")}
    if not os.path.exists(path["lora"]):
        make(folder)
    ours = [os.path.join(ROOT, "build", "safetensors"), "lora"]
    ends = ["-o", path["out"], "--no-sync", "--threads", "2"]
    runs = {("merge", "ours"): [*ours, "merge", path["base"], path["lora"], *ends],
            ("extract", "ours"): [*ours, "extract", path["tuned"], path["base"], "--rank", "32",
                                  *ends],
            ("resize", "ours"): [*ours, "resize", path["lora"], "--rank", "16", *ends]}
    for key, code in CODE.items():
        runs[key] = [sys.executable, "-c", START + code, path["base"], path["tuned"], path["lora"],
                     path["out"]]
    if sys.argv[2:3] == ["--sft"]:
        sft = [*sys.argv[3].split(), "lora"]
        ends = ["-o", path["out"]]
        runs["merge", "sft-cli 0.2.2"] = [*sft, "merge", path["base"], path["lora"], "--scale",
                                          "1", *ends]
        runs["extract", "sft-cli 0.2.2"] = [*sft, "extract", path["base"], path["tuned"], "-r",
                                            "32", *ends]
        runs["resize", "sft-cli 0.2.2"] = [*sft, "resize", path["lora"], "-r", "16", *ends]
    for (verb, who), words in sorted(runs.items()):
        if os.path.exists(path["out"]):
            os.unlink(path["out"])
        done = subprocess.run([sys.executable, "-c", WATCH, *words], check=True, text=True,
                              capture_output=True)
        wall, used, peak, told = json.loads(done.stdout)
        if not os.path.exists(path["out"]):
            print("| %s | %s | failed: %s |" % (verb, who, told.strip()), flush=True)
            continue
        print("| %s | %s | %.2f | %.2f | %d MB | %s |" % (
            verb, who, wall, used, peak * 1024 / 1e6, error_of(verb, folder, "out")), flush=True)
    print("load %.1f" % os.getloadavg()[0])


main()
