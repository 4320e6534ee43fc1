#!/usr/bin/env python3
"""Layers that are declared quantised are held to it: a scale that is not there, has the shape of
another strategy or another layer, codes of another dtype, companions that changed places, and
numbers that are NaN or infinite are refused with the tensor's name by each command that computes
values, and by check where no value has to be read. What is right is read, zero and subnormal
scales included.

    declared.py [-v]          needs build/safetensors (SFT_BUILD, SFT_COMMAND); -v prints refusals
"""
import copy
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import strange
from strange import F4, np, raw, text, wide

ROWS, COLUMNS = 64, 128  # of the weight; of the other layer 32 x 256
NAN, INF = float("nan"), float("inf")


def codes(dtype, *shape):
    """Bytes that no float of 8 bits has for NaN or infinity."""
    size = int(np.prod(shape)) * {"I32": 4, "U32": 4}.get(dtype, 1)
    return dtype, list(shape), (np.arange(size) * 7 % 120).astype("u1").tobytes()


def ones(dtype, *shape):
    if dtype in ("U8", "F8_E8M0"):
        return dtype, list(shape), bytes([127]) * int(np.prod(shape))
    if dtype == "F8_E4M3":
        return dtype, list(shape), bytes([0x38]) * int(np.prod(shape))
    return wide(np.full(shape, 0.5), dtype)[0]


def ct(kind, **weights):
    return {"quant_method": "compressed-tensors", "format": kind, "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": dict({"num_bits": 8}, **weights)}}}


def layer(config=None, comfy=None, **leaves):
    """Two layers, a of 64 x 128 and b of 32 x 256: leaves are (dtype, rows, columns of a part)."""
    tensors = {}
    for name, rows, columns in (("m.a", ROWS, COLUMNS), ("m.b", 32, 256)):
        for leaf, (dtype, *shape) in leaves.items():
            shape = [n(rows, columns) for n in shape]
            if leaf == "weight_shape":
                tensors[name + "." + leaf] = raw("I64", np.array([rows, columns], "<i8"))
                continue
            made = codes if leaf in ("weight", "weight_packed", "qweight", "qzeros") else ones
            tensors[name + "." + leaf] = made(dtype, *shape)
        if comfy:
            tensors[name + ".comfy_quant"] = text(comfy)
    return tensors, config


def rows(r, c):
    return r


def columns(r, c):
    return c


def one(r, c):
    return 1


def part(of, axis=1):
    return lambda r, c: -(-(r, c)[axis] // of)


GOOD = {
    "float8": layer(comfy={"format": "float8_e4m3fn"}, weight=("F8_E4M3", rows, columns),
                    weight_scale=("F32",), input_scale=("F32",)),
    "e5m2": layer(comfy={"format": "float8_e5m2"}, weight=("F8_E5M2", rows, columns),
                  weight_scale=("F32",)),
    "int8": layer(comfy={"format": "int8_tensorwise"}, weight=("I8", rows, columns),
                  weight_scale=("F32", one)),
    "int8-row": layer(comfy={"format": "int8_tensorwise", "per_row": True},
                      weight=("I8", rows, columns), weight_scale=("F32", rows, one)),
    "mxfp8": layer(comfy={"format": "mxfp8"}, weight=("F8_E4M3", rows, columns),
                   weight_scale=("F8_E8M0", lambda r, c: 128, part(32))),
    "nvfp4": layer(comfy={"format": "nvfp4"}, weight=("U8", rows, part(2)),
                   weight_scale=("F8_E4M3", lambda r, c: 128, part(16)), weight_scale_2=("F32",)),
    "w4a4": layer(comfy={"format": "convrot_w4a4", "convrot_groupsize": 64},
                  weight=("I8", rows, part(2)), weight_scale=("F32", rows)),
    "w4a8": layer(comfy={"format": "asym_w4a8_int8", "convrot_groupsize": 64},
                  weight=("I8", rows, part(2)), weight_s_rel=("F8_E4M3", rows, part(16)),
                  weight_s_channel=("F32", rows), weight_codebook=("F32", lambda r, c: 16)),
    "awq_w4a16": layer(comfy={"format": "awq_w4a16"}, weight=("I8", rows, part(2)),
                       weight_scale=("BF16", part(64), rows),
                       weight_zeros=("BF16", part(64), rows)),
    "ct-tensor": layer(ct("float-quantized", type="float", strategy="tensor"),
                       weight=("F8_E4M3", rows, columns), weight_scale=("BF16", one),
                       input_scale=("BF16", one)),
    "ct-channel": layer(ct("float-quantized", type="float", strategy="channel"),
                        weight=("F8_E4M3", rows, columns), weight_scale=("BF16", rows, one),
                        input_scale=("BF16", one)),
    "ct-group": layer(ct("float-quantized", type="float", strategy="group", group_size=64),
                      weight=("F8_E4M3", rows, columns), weight_scale=("F32", rows, part(64))),
    "ct-block": layer(ct("float-quantized", type="float", strategy="block",
                         block_structure=[16, 64]), weight=("F8_E4M3", rows, columns),
                      weight_scale=("F32", part(16, 0), part(64))),
    "ct-int8": layer(ct("int-quantized", type="int", strategy="channel"),
                     weight=("I8", rows, columns), weight_scale=("F32", rows, one)),
    "ct-pack": layer(ct("pack-quantized", type="int", strategy="group", group_size=32, num_bits=4),
                     weight_packed=("I32", rows, part(8)), weight_scale=("BF16", rows, part(32)),
                     weight_shape=("I64", lambda r, c: 2)),
    "ct-pack-channel": layer(ct("pack-quantized", type="int", strategy="channel", num_bits=4),
                             weight_packed=("I32", rows, part(8)),
                             weight_scale=("BF16", rows, one),
                             weight_shape=("I64", lambda r, c: 2)),
    "ct-nvfp4": layer(ct("nvfp4-pack-quantized", type="float", strategy="tensor_group",
                         group_size=16, num_bits=4), weight_packed=("U8", rows, part(2)),
                      weight_scale=("F8_E4M3", rows, part(16)), weight_global_scale=("F32", one)),
    "ct-mxfp8": layer(ct("mxfp8-quantized", type="float", strategy="group", group_size=32),
                      weight=("F8_E4M3", rows, columns), weight_scale=("U8", rows, part(32))),
    "modelopt": layer({"quant_method": "modelopt", "quant_algo": "FP8"},
                      weight=("F8_E4M3", rows, columns), weight_scale=("F32",),
                      input_scale=("F32",)),
    "modelopt-row": layer({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"},
                          weight=("F8_E4M3", rows, columns), weight_scale=("F32", rows)),
    "modelopt-experts": layer({"quant_method": "modelopt", "quant_algo": "FP8"},
                              weight=("F8_E4M3", lambda r, c: 4, rows, columns),
                              weight_scale=("F32", lambda r, c: 4)),
    "modelopt-nvfp4": layer({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
                            weight=("U8", rows, part(2)), weight_scale=("F8_E4M3", rows, part(16)),
                            weight_scale_2=("F32",), input_scale=("F32",)),
    "deepseek": layer({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 32]},
                      weight=("F8_E4M3", rows, columns),
                      weight_scale_inv=("F32", part(16, 0), part(32))),
    "gptq": layer({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq",
                   "desc_act": False}, qweight=("I32", part(8), rows),
                  scales=("F16", part(32), rows), qzeros=("I32", part(32), part(8, 0))),
    "gptq-rows": layer({"quant_method": "gptq", "bits": 4, "group_size": -1,
                        "checkpoint_format": "gptq", "desc_act": False},
                       qweight=("I32", part(8), rows), scales=("F16", one, rows),
                       qzeros=("I32", one, part(8, 0))),
    "awq": layer({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"},
                 qweight=("I32", columns, part(8, 0)), scales=("F16", part(32), rows),
                 qzeros=("I32", part(32), part(8, 0))),
}


# ── What is not so: each changes the layer m.a, and returns what the refusal has in it ──

def lost(leaf):
    def change(tensors):
        del tensors["m.a." + leaf]
        return "m.a."
    return "no " + leaf, change


def shaped(leaf, *shape, dtype=None):
    def change(tensors):
        name = "m.a." + leaf
        tensors[name] = ones(dtype or tensors[name][0], *shape)
        return "m.a."
    return "%s %s%s" % (leaf, list(shape), " " + dtype if dtype else ""), change


def coded(dtype, leaf="weight"):
    def change(tensors):
        name = "m.a." + leaf
        size = 4 if dtype in ("I32", "F32") else 1
        shape = [tensors[name][1][0], len(tensors[name][2]) // size // tensors[name][1][0]]
        tensors[name] = codes(dtype, *shape)
        return "m.a."
    return "codes in " + dtype, change


def swapped(a, b):
    def change(tensors):
        a_, b_ = "m.a." + a, "m.a." + b
        tensors[a_], tensors[b_] = tensors[b_], tensors[a_]
        return "m.a."
    return "%s and %s swapped" % (a, b), change


def others(leaf):
    def change(tensors):
        tensors["m.a." + leaf] = tensors["m.b." + leaf]
        return "m.a."
    return leaf + " of the other layer", change


def valued(leaf, value):
    """One number of many; check does not read it."""
    def change(tensors):
        dtype, shape, data = tensors["m.a." + leaf]
        data = bytearray(data)
        if dtype in ("F8_E4M3", "F8_E8M0", "U8"):
            data[-1] = 0x7f if dtype == "F8_E4M3" else 0xff
        else:
            data[-len(data) // int(np.prod(shape)):] = wide(np.array(value), dtype)[0][2]
        tensors["m.a." + leaf] = (dtype, shape, bytes(data))
        return "m.a." + leaf
    return "%s is %r" % (leaf, value), change


FLOATS = tuple(coded(d) for d in ("F8_E5M2", "I8", "U8", "F8_E4M3FNUZ"))
BAD = {
    "float8": (lost("weight_scale"), *FLOATS[:2], FLOATS[3], shaped("weight_scale", ROWS),
               shaped("weight_scale", ROWS, 1), shaped("weight_scale", 2, 4),
               shaped("weight_scale", 2), shaped("weight_scale", 1, COLUMNS),
               shaped("weight_scale", 0), shaped("input_scale", ROWS),
               shaped("weight", ROWS, COLUMNS, dtype="BF16"), valued("weight_scale", NAN), valued("weight_scale", INF),
               valued("weight_scale", -INF)),
    "e5m2": (lost("weight_scale"), coded("F8_E4M3"), coded("I8"), shaped("weight_scale", ROWS)),
    "int8": (lost("weight_scale"), coded("F8_E4M3"), coded("U8"), shaped("weight_scale", 2),
             shaped("weight_scale", ROWS, 4), shaped("weight_scale", 1, COLUMNS),
             valued("weight_scale", NAN)),
    "int8-row": (lost("weight_scale"), shaped("weight_scale"), shaped("weight_scale", 1),
                 shaped("weight_scale", 32, 1), others("weight_scale"),
                 valued("weight_scale", INF)),
    "mxfp8": (lost("weight_scale"), coded("F8_E5M2"), coded("I8"), shaped("weight_scale", ROWS, 4),
              shaped("weight_scale", 1), others("weight_scale"),
              shaped("weight_scale", 128, 4, dtype="F8_E4M3"),
              shaped("weight_scale", 128, 4, dtype="F32")),
    "nvfp4": (lost("weight_scale"), lost("weight_scale_2"), coded("I8"), coded("F8_E4M3"),
              shaped("weight_scale", ROWS, 8), others("weight_scale"),
              swapped("weight_scale", "weight_scale_2"), shaped("weight_scale_2", ROWS),
              valued("weight_scale_2", NAN), valued("weight_scale_2", INF)),
    "w4a4": (lost("weight_scale"), shaped("weight_scale"), shaped("weight_scale", 32),
             others("weight_scale"), valued("weight_scale", NAN)),
    "w4a8": (lost("weight_s_rel"), lost("weight_s_channel"), others("weight_s_rel"),
             others("weight_s_channel"), swapped("weight_s_rel", "weight_s_channel"),
             shaped("weight_codebook", 15), valued("weight_codebook", NAN),
             valued("weight_s_channel", INF), valued("weight_s_rel", NAN)),
    "awq_w4a16": (lost("weight_scale"), lost("weight_zeros"), others("weight_scale"),
                  others("weight_zeros"), valued("weight_zeros", NAN), valued("weight_scale", NAN)),
    "ct-tensor": (lost("weight_scale"), *FLOATS, shaped("weight_scale", ROWS, 1),
                  shaped("weight_scale", ROWS), shaped("weight_scale", ROWS, 2),
                  shaped("weight_scale", 4, 2), shaped("input_scale", ROWS, 1),
                  valued("weight_scale", NAN)),
    "ct-channel": (lost("weight_scale"), *FLOATS, shaped("weight_scale", 1), shaped("weight_scale"),
                   shaped("weight_scale", 1, 1), shaped("weight_scale", 1, COLUMNS),
                   shaped("weight_scale", ROWS, 4), shaped("weight_scale", 4, 1),
                   others("weight_scale"), swapped("weight_scale", "input_scale"),
                   valued("weight_scale", INF)),
    "ct-group": (lost("weight_scale"), shaped("weight_scale", ROWS, 1), shaped("weight_scale", 1),
                 shaped("weight_scale", ROWS, 4), shaped("weight_scale", 4, 2),
                 others("weight_scale"), shaped("weight_scale", 2, ROWS)),
    "ct-block": (lost("weight_scale"), shaped("weight_scale", 1), shaped("weight_scale", ROWS, 1),
                 shaped("weight_scale", 4, 1), shaped("weight_scale", 2, 2),
                 shaped("weight_scale", 2, 4), shaped("weight_scale", ROWS, 2),
                 others("weight_scale"), valued("weight_scale", NAN)),
    "ct-int8": (lost("weight_scale"), coded("F8_E4M3"), coded("U8"), shaped("weight_scale", 1),
                others("weight_scale")),
    "ct-pack": (lost("weight_scale"), lost("weight_shape"), others("weight_scale"),
                shaped("weight_scale", ROWS, 1), shaped("weight_scale", ROWS, 8),
                shaped("weight_scale", ROWS, 2), others("weight_shape"),
                coded("U8", "weight_packed"),
                valued("weight_scale", NAN)),
    "ct-pack-channel": (shaped("weight_scale", ROWS, 4), shaped("weight_scale", 1),
                        others("weight_scale")),
    "ct-nvfp4": (lost("weight_scale"), lost("weight_global_scale"), others("weight_scale"),
                 swapped("weight_scale", "weight_global_scale"), shaped("weight_scale", ROWS, 4),
                 shaped("weight_global_scale", ROWS, 1), valued("weight_global_scale", NAN),
                 valued("weight_global_scale", INF), valued("weight_global_scale", 0.0),
                 valued("weight_scale", NAN)),
    "ct-mxfp8": (lost("weight_scale"), coded("I8"), others("weight_scale"),
                 shaped("weight_scale", ROWS, 8), shaped("weight_scale", ROWS, 4, dtype="F32"),
                 valued("weight_scale", NAN)),
    "modelopt": (lost("weight_scale"), *FLOATS, shaped("weight_scale", ROWS),
                 shaped("weight_scale", ROWS, 1), shaped("weight_scale", 4, 1),
                 shaped("input_scale", COLUMNS)),
    "modelopt-row": (lost("weight_scale"), *FLOATS, shaped("weight_scale"),
                     shaped("weight_scale", 4, 2), others("weight_scale")),
    "modelopt-experts": (lost("weight_scale"), shaped("weight_scale", 3),
                         shaped("weight_scale", 4, ROWS), shaped("weight_scale", ROWS)),
    "modelopt-nvfp4": (lost("weight_scale"), lost("weight_scale_2"), others("weight_scale"),
                       coded("I8"), coded("F8_E4M3"), swapped("weight_scale", "weight_scale_2"),
                       swapped("weight_scale", "input_scale"), shaped("weight_scale", ROWS, 4),
                       valued("weight_scale_2", NAN), valued("weight_scale", NAN)),
    "deepseek": (lost("weight_scale_inv"), *FLOATS, shaped("weight_scale_inv", 1),
                 shaped("weight_scale_inv"), shaped("weight_scale_inv", ROWS, 1),
                 shaped("weight_scale_inv", 2, 4), shaped("weight_scale_inv", ROWS),
                 others("weight_scale_inv"), valued("weight_scale_inv", NAN)),
    "gptq": (lost("scales"), lost("qzeros"), others("scales"), shaped("scales", 2, ROWS),
             shaped("scales", 1, ROWS), others("qzeros"), valued("scales", NAN)),
    "gptq-rows": (lost("scales"), others("scales")),
    "awq": (lost("scales"), lost("qzeros"), others("scales"), others("qzeros"),
            valued("scales", INF)),
}
# What is declared of tensors that are as they were.
DECLARED = (
    ("int8-row", {"convrot": True, "convrot_groupsize": 1 << 63}), ("int8-row", {"per_row": False}),
    ("int8", {"per_row": True}), ("float8", {"format": "float8_e5m2"}),
    ("float8", {"quantization_config": {"quant_method": "fp8", "weight_block_size": [16, 16]}}),
    ("float8", {"quantization_config": ct("float-quantized", type="float", strategy="channel")}),
    ("float8", {"quantization_config": ct("float-quantized", type="int", strategy="tensor")}),
    ("deepseek", {"weight_block_size": [0, 32]}), ("deepseek", {"weight_block_size": [16]}),
    ("deepseek", {"weight_block_size": "16,32"}), ("deepseek", {"weight_block_size": [16, 32, 1]}),
    ("deepseek", {"weight_block_size": [32, 16]}), ("deepseek", {"fmt": "e5m2"}),
    ("gptq", {"bits": 8}), ("gptq", {"group_size": 64}), ("gptq", {"group_size": -1}),
    ("awq", {"group_size": 128}), ("modelopt-nvfp4", {"group_size": 32}),
    ("modelopt", {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}),
    ("modelopt-row", {"quant_algo": "FP8"}), ("modelopt-nvfp4", {"quant_algo": "FP8"}),
    ("ct-int8", ct("int-quantized", type="float", strategy="channel")),
    ("ct-int8", ct("float-quantized", type="int", strategy="channel")),
    ("ct-int8", ct("naive-quantized", type="float", strategy="channel")),
    ("ct-channel", ct("float-quantized", type="float", strategy="channel", num_bits=4)),
    ("ct-block", ct("float-quantized", type="float", strategy="block", block_structure=[0, 64])),
    ("ct-pack", ct("pack-quantized", type="int", strategy="group", group_size=64, num_bits=4)),
    ("ct-pack", ct("pack-quantized", type="int", strategy="group", group_size=32, num_bits=8)),
    ("ct-nvfp4", ct("mxfp4-pack-quantized", type="float", strategy="group", group_size=32,
                    num_bits=4)),
)
# Modules that the declaration leaves as they were: F8 without a scale is what it is, anything else
# and any other module is held to it.
PLAIN = (
    ("ct-tensor", {"ignore": ["lm_head", "m.a"]}, "weight_scale", "F8_E4M3", True),
    ("ct-channel", {"ignore": ["m.a"]}, "weight_scale", "F8_E5M2", True),
    ("modelopt", {"exclude_modules": ["m.a"]}, "weight_scale", "F8_E4M3", True),
    ("deepseek", {"modules_to_not_convert": ["m.a"]}, "weight_scale_inv", "F8_E4M3", True),
    ("ct-tensor", {"ignore": ["m.b", "m.a.weight", "m", "a", "re:.*a"]}, "weight_scale", "F8_E4M3",
     False),
    ("ct-tensor", {"ignore": "m.a"}, "weight_scale", "F8_E4M3", False),
    ("ct-tensor", {"ignore": ["m.a", 1, None]}, "input_scale", "F8_E4M3", True),
    ("ct-int8", {"ignore": ["m.a"]}, "weight_scale", "I8", False),
)
# What MLX's config.json tells besides {"bits": 4, "group_size": 64} of m.a, which has 8 bits and
# groups of 32, as JSON, and whether that is read.
MLX = (
    ('"m.a": {"bits": 8, "group_size": 32}', True), ('"m.a": {"group_size": 32, "bits": 8}', True),
    ('"m.a": {"bits": 8, "group_size": 32, "mode": "affine"}, "m.c": false', True),
    ('"m.b": {"bits": 4, "group_size": 64}, "m.a": {"bits": 8, "group_size": 32}', True),
    ('"m.a": {"bits": 8, "group_size": 32, "mode": "mxfp8"}', False), ('"m.a": false', False),
    ('"m.a": null', False), ('"m.a": {"bits": 8}', False), ('"m.a": {"group_size": 32}', False),
    ('"m.a": {"bits": "8", "group_size": 32}', False),
    ('"m.a": {"bits": 9, "group_size": 32}', False),
    ('"m.a": {"bits": 8, "group_size": 64}', False),
    ('"m.a": {"bits": 8, "bits": 4, "group_size": 32}', False),
    ('"m.a": {"bits": 8, "group_size": 32}, "m.a": false', False),
    ('"m.a": false, "m.a": {"bits": 8, "group_size": 32}', False),
    ('"m.a": {"bits": 8, "group_size": 32}, "mode": "mxfp4"', False),
)
# Numbers that are odd and right.
ODD = (("float8", "weight_scale", 0.0), ("float8", "weight_scale", 1e-42),
       ("ct-channel", "weight_scale", 0.0), ("deepseek", "weight_scale_inv", 1e-45),
       ("nvfp4", "weight_scale_2", 0.0), ("gptq", "scales", 6e-8))


def run(folder, *words):
    done = subprocess.run([*strange.COMMAND, *words], capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace").replace(
        folder + "/", "")


def commands(folder, tensors, config):
    """(name, status, text) of each."""
    path, out = (os.path.join(folder, n + ".safetensors") for n in ("model", "out"))
    strange.save(path, tensors, {"quantization_config": json.dumps(config)} if config else {})
    name = next(n for n in tensors if n.startswith("m.a.") and n.split(".")[2] in (
        "weight", "weight_packed", "qweight"))
    name = {"m.a.weight_packed": "m.a.weight", "m.a.qweight": "m.a.weight"}.get(name, name)
    for words in (("convert", path, "-o", out, "--dequantize"), ("cat", path, name, "--values"),
                  ("ls", path, "--values", "--stats"), ("check", path)):
        yield (words[0], *run(folder, *words))
        if os.path.exists(out):
            os.remove(out)


def mlx_cases(folder):
    """(whether it is as it should be, what, status, text): bits and groups of single layers."""
    draw = np.random.default_rng(5)
    tensors, wanted = {}, {}
    for name, bits, group in (("m.a", 8, 32), ("m.b", 4, 64)):
        made = draw.integers(0, 1 << bits, (ROWS, COLUMNS))
        scale, bias = (draw.integers(-64, 64, (ROWS, COLUMNS // group)) / 64 for _ in "12")
        wanted[name + ".weight"] = np.asarray(
            made * np.repeat(scale, group, 1) + np.repeat(bias, group, 1), "<f4")
        tensors[name + ".weight"] = raw("U32", strange.words(made.astype("u1"), bits))
        tensors[name + ".scales"] = wide(scale, "F32")[0]
        tensors[name + ".biases"] = wide(bias, "F32")[0]
    tensors["m.c.weight"] = wide(np.ones((ROWS, COLUMNS)), "BF16")[0]
    path, out = (os.path.join(folder, n) for n in ("model.safetensors", "out.safetensors"))
    strange.save(path, tensors, {})
    for told, right in MLX:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write('{"quantization": {"bits": 4, "group_size": 64, %s}}' % told)
        status, said = run(folder, "convert", path, "-o", out, "--dequantize", "--dtype", "F32",
                           "--match", "m.a.*", "--match", "m.b.*")
        good = status == 1 and "expected" in said and not os.path.exists(out)
        if right:
            found = strange.load(out) if status == 0 else {}
            good = found.get("m.c.weight") == tensors["m.c.weight"] and all(
                found[n] == raw("F32", v) for n, v in wanted.items())
        if os.path.exists(out):
            os.remove(out)
        yield good, told, status, said
    os.remove(os.path.join(folder, "config.json"))


def main():
    passed, problems = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for good, told, status, said in mlx_cases(folder):
            passed += good
            if not good:
                problems.append("MLX, %s: exit %d %s" % (told, status, said.strip()[-300:]))
        for kind, (tensors, config) in GOOD.items():
            cases = [("as declared", None)] + list(BAD[kind])
            for _, members in (d for d in DECLARED if d[0] == kind):
                cases.append(("declared %s" % json.dumps(members), members))
            cases += [("%s %r" % o[1:], valued(*o[1:])[1]) for o in ODD if o[0] == kind]
            for what, change in cases:
                members = change if isinstance(change, dict) else {}
                bad = bool(members) or any(what == w for w, _ in BAD[kind])
                mine, name = copy.copy(tensors), ""
                its = members.get("quantization_config") or (
                    {**config, **members} if config else None)
                if members and not its:
                    told = json.loads(mine["m.a.comfy_quant"][2])
                    mine["m.a.comfy_quant"] = text({**told, **members})
                elif change and not members:
                    name = change(mine)
                for command, status, said in commands(folder, mine, its):
                    if command == "check" and members:
                        continue
                    wrong = bad and not (command == "check" and " is " in what)
                    good = status == 0
                    if wrong:
                        good = status in (1, 2) and "expected" in said and name in said
                    passed += good
                    if not good or "-v" in sys.argv and wrong:
                        problems.append("%s%s, %s: %s: exit %d %s" % (
                            "" if not good else "(good) ", kind, what, command, status,
                            said.strip()[-300:]))
        for kind, members, gone, dtype, right in PLAIN:
            tensors, config = GOOD[kind]
            mine = copy.copy(tensors)
            del mine["m.a." + gone]
            mine.pop("m.a.input_scale", None)
            _, shape, data = mine["m.a.weight"]
            mine["m.a.weight"] = (dtype, shape, data)
            for command, status, said in commands(folder, mine, {**config, **members}):
                good = status == 0 if right else status in (1, 2) and "m.a.weight" in said
                passed += good
                if not good:
                    problems.append("%s %s, %s: exit %d %s" % (kind, members, command, status,
                                                               said.strip()[-300:]))
    print("\n".join(problems))
    failed = sum(not p.startswith("(good)") for p in problems)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
