#!/usr/bin/env python3
"""convert --dequantize on files that packages made (tools/quant_oracles.py), against the values
that they read from them: bit for bit, or within what a case says. What info calls the file, with
its configuration and without, must be what the reader finds, and check must find nothing. And
convert --quantize against what comfy-kitchen writes, byte for byte, and against its own way back.

    run.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import glob
import hashlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "import"))
try:
    import numpy as np
    from plain import read_plain
except ImportError as error:
    print("quant: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
LEFT = (".bias",)

# By the reader's layout: what info may call it ("" is nothing), and its precision.
LABELS = {
    "float8_e4m3fn": r"fp8-scaled fp8", "float8_e5m2": r"fp8-scaled fp8",
    "int8_tensorwise": r"int8 int8", "mxfp8": r"mxfp8 fp8", "nvfp4": r"nvfp4 fp4",
    "convrot_w4a4": r"int4 int4", "asym_w4a8_int8": r"int4 int4", "awq_w4a16": r"int4 int4",
    "scaled": r"fp8-scaled fp8|int8 int8",
    "scaled-e4m3": r"(fp8-scaled|compressed-tensors-w8a\d+) fp8", "modelopt-fp8": r"fp8-scaled fp8",
    "scaled-int8": r"(int8|compressed-tensors-w8a\d+) int8", "modelopt-fp8-row": r"fp8-scaled fp8",
    "mxfp8-quantized": r"mxfp8 fp8", "nvfp4-pack-quantized": r"(nvfp4|compressed-tensors) fp4",
    "mxfp4-pack-quantized": r"(mxfp4|compressed-tensors) fp4",
    "mxfp6-pack-quantized": r"(mxfp6|compressed-tensors|compressed-tensors-w6a16) fp6",
    "bitsandbytes-4bit": r"bnb-nf4 nf4|bnb-fp4 fp4", "bitsandbytes-int8": r"bnb-int8 int8",
    "hqq": r" None", "quanto": r" None", "awq": r"awq-4bit int4", "gptq": r"gptq mixed",
    "mlx": r"mlx None", "modelopt-nvfp4": r"nvfp4 fp4", "mxfp4": r"mxfp4 fp4",
}
HIDDEN = {"mlx"}  # layers of several widths and groups, which nothing but the configuration tells


def ask(*words):
    done = subprocess.run([*COMMAND, *words, "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["results"][0]


def mislabelled(folder, bits):
    """What info says that the reader contradicts."""
    model = os.path.join(folder, "model.safetensors")
    values = ask("ls", model, "--values")["tensors"]
    layouts = {one["layout"] for one in values if "layout" in one}
    elements = sum(math.prod(one["shape"]) for one in values)
    bad = [] if layouts else ["no layout is read"]
    if bits:
        labels = {"pack-quantized": r"compressed-tensors(-w%sa16)? int%s" % (bits, bits)}
    else:
        labels = LABELS
    for step in ("with its configuration", "without"):
        found = ask("info", model)["model"]
        label = "%s %s" % ((found["quantization"] or {}).get("value", ""), found["precision"])
        wanted = [labels.get(one, " None") for one in layouts]
        if not any(re.fullmatch(one, label) for one in wanted):
            bad.append("%s: info says %r of %s" % (step, label, sorted(layouts)))
        if found["quantization"] and found["parameters"] != (None if layouts & HIDDEN else elements):
            bad.append("%s: info counts %s of %d" % (step, found["parameters"], elements))
        config = os.path.join(folder, "config.json")
        if os.path.exists(config):
            os.remove(config)
    return bad


def unlike(found, values, within):
    """What is wrong with the tensors of a result."""
    bad = ["%s is there" % name for name in found if name not in values and not name.endswith(LEFT)]
    for name, (_, shape, data) in values.items():
        want = np.frombuffer(data, "<f4")
        if name not in found or found[name][:2] != ("F32", shape):
            bad.append("%s: %s" % (name, found.get(name, ("none", None))[:2]))
            continue
        have = np.frombuffer(found[name][2], "<f4")
        nan = np.isnan(want)
        same = np.array_equal(np.isnan(have), nan)
        if within is not None:  # 0: but for signs of zeros
            same = same and (np.abs(have - want)[~nan] <= within * np.abs(want).max()).all()
        else:
            same = same and np.array_equal(have.view("u4")[~nan], want.view("u4")[~nan])
        if not same:
            worst = np.nanmax(np.abs(have - want)) if len(want) else 0
            bad.append("%s: up to %g from the values" % (name, worst))
    return bad


def check(stem, folder):
    model, out = os.path.join(folder, "model.safetensors"), os.path.join(folder, "out.safetensors")
    shutil.copy(stem + ".safetensors", model)
    if os.path.exists(stem + ".json"):
        shutil.copy(stem + ".json", os.path.join(folder, "config.json"))
    done = subprocess.run([*COMMAND, "convert", model, "-o", out, "--dequantize", "--dtype", "F32"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return ["exit %d: %s" % (done.returncode, done.stderr.strip())]
    values, notes = read_plain(stem + ".values.safetensors")
    bad = unlike(read_plain(out)[0], values, float(notes["within"]) if "within" in notes else None)
    found = ask("check", model)
    if not found["ok"] or "quantised" in found:
        bad.append("check: %s" % found)
    bits = re.search(r"ct_pack_(\d)$", stem)
    return bad + mislabelled(folder, bits and bits[1])


# ── Writing ──

SOURCE = os.path.join(HERE, "write.source.safetensors")
TORCH = {"F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu", "I8": "int8", "U8": "uint8",
         "F32": "float32"}
FORMATS = [("comfy", "fp8"), ("comfy", "int8"), ("comfy", "int8", "row"), ("comfy", "int8-convrot"),
           ("comfy", "mxfp8"), ("comfy", "nvfp4"), ("modelopt", "fp8"), ("modelopt", "fp8", "tensor"),
           ("modelopt", "nvfp4"), ("compressed-tensors", "fp8"),
           ("compressed-tensors", "fp8", "tensor"), ("compressed-tensors", "fp8", "block"),
           ("compressed-tensors", "int8"), ("compressed-tensors", "int8", "tensor"),
           ("compressed-tensors", "mxfp8"), ("compressed-tensors", "nvfp4")]
WRITTEN = {"fp8": "fp8-scaled fp8", "int8": "int8 int8", "int8-convrot": "int8 int8",
           "mxfp8": "mxfp8 fp8", "nvfp4": "nvfp4 fp4"}  # what info calls them
# The greatest step of a code, of what the greatest value of its block is.
STEPS = {"fp8": 1 / 28, "mxfp8": 1 / 14, "int8": 1 / 253, "int8-convrot": 1, "nvfp4": 1 / 5}


def floats(tensor):
    dtype, shape, data = tensor
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    return np.frombuffer(data, "<f2" if dtype == "F16" else "<f4").astype("<f4").reshape(shape)


def unlike_digests(made, digests):
    """Against the bytes of comfy-kitchen."""
    bad = []
    for name, (dtype, shape, digest) in digests.items():
        have = made.get(name, ("none", [], b""))
        if (TORCH.get(have[0]), have[1]) != (dtype, shape):
            bad.append("%s: %s %s for %s %s" % (name, have[0], have[1], dtype, shape))
        elif hashlib.sha256(have[2]).hexdigest() != digest:
            bad.append("%s: other bytes" % name)
    return bad


def unlike_rotated(made):
    """Codes may be one apart where sums of another order round otherwise."""
    bad = []
    for name, want in read_plain(os.path.join(HERE, "write.rotated.safetensors"))[0].items():
        have, kind = made[name], "<f4" if want[0] == "F32" else "i1"
        a, b = np.frombuffer(have[2], kind).astype("f8"), np.frombuffer(want[2], kind).astype("f8")
        if have[:2] != want[:2] or (np.abs(a - b) > (1 if kind == "i1" else 1e-6 * b)).any():
            bad.append("%s: more than a step apart" % name)
    return bad


def convert(*arguments):
    done = subprocess.run([*COMMAND, "convert", *arguments], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def without_tiny(format_):
    """Codes of int8 cannot tell the source's 2^-130 from 0."""
    return ["--spare", "m.tiny.weight"] if format_.startswith("int8") else []


def check_writing(layout, format_, scale, folder):
    out, back = (os.path.join(folder, name) for name in ("out.safetensors", "back.safetensors"))
    how = ["--quantize", format_, "--layout", layout, "--only", "*.weight", "--json"]
    how += ["--scale", scale] if scale else []
    if without_tiny(format_):
        code, _, error = convert(SOURCE, "-o", out, *how)
        if code != 1 or "m.tiny.weight" not in error or os.path.exists(out):
            return ["tiny values: exit %d: %s" % (code, error)]
    code, text, error = convert(SOURCE, "-o", out, *how, *without_tiny(format_))
    if code:
        return ["exit %d: %s" % (code, error)]
    report = json.loads(text)["results"][0]["quantised"]
    checked = subprocess.run([*COMMAND, "check", out], capture_output=True, check=False)
    code, _, error = convert(out, "-o", back, "--dequantize", "--dtype", "F32")
    if code or checked.returncode:
        return ["check %d, back %d: %s" % (checked.returncode, code, error)]
    made, bad = read_plain(out)[0], []
    source, values = read_plain(SOURCE)[0], read_plain(back)[0]
    if layout == "comfy":
        with open(os.path.join(HERE, "write.digests.json"), encoding="utf-8") as file:
            digests = json.load(file)
        bad += unlike_digests(made, digests.get(format_ + ("-row" if scale else ""), {}))
    if format_ == "int8-convrot":
        bad += unlike_rotated(made)
    if any(not name.endswith(("weight", "_scale", "_scale_2", "_global_scale", "_packed",
                              "comfy_quant")) for name in made):
        bad.append("other names: %s" % sorted(made))
    label, plain = ask("info", out)["model"], ask("info", SOURCE)["model"]
    label = ["%s %s" % (label["quantization"]["value"], label["precision"]), label["parameters"]]
    called = WRITTEN[format_]
    if (layout, format_) == ("compressed-tensors", "mxfp8"):
        called = "mxfp8 mixed"  # two matrices stay F32, which are most of the bytes
    if label != [called, plain["parameters"]]:
        bad.append("info says %s" % label)
    told = {tensor["name"]: tensor["error"] for tensor in report["tensors"]}
    spared = {tensor["name"] for tensor in report["spared"]}
    if set(told) | spared != set(source) or not told:
        bad.append("neither told nor spared: %s" % (set(source) - set(told) - spared))
    for name, tensor in source.items():
        have, want = floats(values[name]), floats(tensor)
        if name in spared:
            bad += [name + ": changed"] if values[name] != tensor else []
            continue
        if have.shape != want.shape or values[name][0] != "F32":
            bad.append("%s: %s %s" % (name, values[name][0], have.shape))
            continue
        off = have.astype("f8") - want
        power = float((want.astype("f8") ** 2).sum())
        error = float(np.sqrt((off ** 2).sum() / power)) if power else float(np.abs(off).max())
        if abs(error - told[name]) > 1e-4 * max(error, 1e-3):
            bad.append("%s: an error of %g is told, found %g" % (name, told[name], error))
        if np.abs(off).max() > STEPS[format_] * max(np.abs(want).max(), 1e-36):
            bad.append("%s: a value is off by %g" % (name, np.abs(off).max()))
    return bad


# What the label knows by declarations alone: tensors of plain models have such names, too.
UNMARKED = ("hqq", "quanto", "quanto-packed", "aqlm", "exl2", "exl3", "quip", "vptq", "flute",
            "torchao-nvfp4", "torchao-nvfp4-tiled")
UNCOUNTED = (".output_scale", ".pre_quant_scale", "*_scales")


def check_names():
    """Companions of the reader's rows that the label would count as parameters: they are no rows
    "end" of data/quantisation.txt."""
    ends, parts, layout, begun = [], [], None, False
    with open(os.path.join(ROOT, "data", "quantisation.txt"), encoding="utf-8") as file:
        for line in file:
            words = line.split()
            begun = words[:1] == ["end"] or (begun and line.startswith(" " * 8))
            ends += words[2 * (words[:1] == ["end"]):] if begun else []
    with open(os.path.join(ROOT, "data", "quantised.layouts"), encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["layout"]:
                layout = words[1]
            elif words[:1] and words[0] in ("scale", "zero", "add", "nested", "group", "book",
                                            "nested-book", "shape", "state", "drop", "others"):
                parts += [(layout, name) for name in words[1].split("|")]
    bad = ["%s: %s" % part for part in parts if part[0] not in UNMARKED
           and part[1] not in UNCOUNTED
           and not part[1].replace("*", ".weight").endswith(tuple(ends))]
    return bad if len(ends) > 30 and len(parts) > 60 else ["%d, %d" % (len(ends), len(parts))]


def main():
    only, passed, problems = sys.argv[1:], 0, []
    for path in sorted(glob.glob(os.path.join(HERE, "*.values.safetensors"))):
        name = os.path.basename(path).split(".")[0]
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bad = check(path[:-len(".values.safetensors")], folder)
        passed += not bad
        problems += ["%s: %s" % (name, one) for one in bad]
    for layout, format_, *scale in FORMATS:
        name = "-".join(["write", layout, format_, *scale])
        if only and name not in only and "write" not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bad = check_writing(layout, format_, scale[0] if scale else None, folder)
        passed += not bad
        problems += ["%s: %s" % (name, one) for one in bad]
    bad = check_names()
    passed += not bad
    problems += ["names: " + one for one in bad]
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
