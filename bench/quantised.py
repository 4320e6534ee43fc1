"""The sections quantised and quantising of compare.py: convert --dequantize against a durable copy
of its result, convert --quantize against one of its input, and both against comfy-kitchen,
compressed-tensors and convert_to_quant where Python has them."""
import importlib.metadata
import importlib.util
import json
import os
import random
import struct
import subprocess
import sys

from adapters import peak_of
from contest import cell, few, ratio, table, take_turns

LAYERS, SIDE = 4, 8192  # 268 M values


def marked(**form):
    text = json.dumps(form).encode()
    return ("U8", [len(text)], text)


def plain(codes, scale, marker):
    return {"weight": codes, "weight_scale": scale, "comfy_quant": marker}


WHOLE = [SIDE, SIDE]
# For each layer: dtype, shape, and bytes that are repeated. Then how many times the copy's time is
# allowed.
FORMATS = {
    "FP8": (plain(("F8_E4M3", WHOLE, "codes"), ("F32", [], "f32"), marked(format="float8_e4m3fn")),
            1.2),
    "INT8": (plain(("I8", WHOLE, "codes"), ("F32", [SIDE, 1], "f32"),
                   marked(format="int8_tensorwise", per_row=True)), 1.2),
    "ConvRot": (plain(("I8", WHOLE, "codes"), ("F32", [SIDE, 1], "f32"),
                      marked(format="int8_tensorwise", convrot=True, convrot_groupsize=256)), 2.0),
    "MXFP8": (plain(("F8_E4M3", WHOLE, "codes"), ("F8_E8M0", [SIDE, SIDE // 32], "powers"),
                    marked(format="mxfp8")), None),
    "NVFP4": ({**plain(("U8", [SIDE, SIDE // 2], "codes"), ("F8_E4M3", [SIDE, SIDE // 16], "f8"),
                       marked(format="nvfp4")), "weight_scale_2": ("F32", [], "f32")}, 2.0),
    "GPTQ": ({"qweight": ("I32", [SIDE // 8, SIDE], "codes"), "scales": ("F16", [64, SIDE], "f16"),
              "qzeros": ("I32", [64, SIDE // 8], "middle")}, None),
    "AWQ": ({"qweight": ("I32", [SIDE, SIDE // 8], "codes"), "scales": ("F16", [64, SIDE], "f16"),
             "qzeros": ("I32", [64, SIDE // 8], "codes")}, None),
}
SIZES = {"F32": 4, "I32": 4, "F16": 2, "BF16": 2}


def write_quantised(path, parts):
    draw = random.Random(1)
    codes = bytes(b if b & 127 != 127 else b - 1 for b in draw.randbytes(1 << 22))
    content = {"codes": codes, "middle": b"\x77" * 4096, "powers": bytes(range(112, 128)),
               "f8": bytes(range(40, 104)), "f32": struct.pack("<512f", *(
                   draw.uniform(0.001, 0.01) for _ in range(512))),
               "f16": struct.pack("<512e", *(draw.uniform(0.001, 0.01) for _ in range(512)))}
    header, at, data = {}, 0, []
    for layer in range(LAYERS):
        for leaf, (dtype, shape, what) in parts.items():
            size = SIZES.get(dtype, 1)
            for n in shape:
                size *= n
            header["l%d.%s" % (layer, leaf)] = {"dtype": dtype, "shape": shape,
                                                "data_offsets": [at, at + size]}
            data.append((size, content.get(what, what)))
            at += size
    text = json.dumps(header).encode()
    with open(path + ".new", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for size, some in data:
            while size > 0:
                size -= file.write(some[:size])
    os.rename(path + ".new", path)


KITCHEN = """
import sys, torch
from comfy_kitchen.backends.eager import quantization as k
from safetensors.torch import load_file, save_file
kind, path, out = sys.argv[1:]
torch.set_num_threads(1)
t = load_file(path)
def plain(n):
    q, s = t[n], t[n + "_scale"]
    if kind == "FP8": return k.dequantize_per_tensor_fp8(q, s, torch.bfloat16)
    if kind == "INT8": return k.dequantize_int8_simple(q, s).bfloat16()
    if kind == "ConvRot": return k.dequantize_int8_convrot_weight(q, s, 256).bfloat16()
    if kind == "MXFP8": return k.dequantize_mxfp8(q, s, torch.bfloat16)
    return k.dequantize_nvfp4(q, t[n + "_scale_2"], s, torch.bfloat16)
save_file({n: plain(n) for n in t if n.endswith(".weight")}, out)
"""


# What each format is allowed against the copy, how compressed-tensors is asked for it (None: not),
# and ctq.
TARGETS = {"fp8": (("fp8",), 1.2, ("float", "tensor"), ()),
           "int8": (("int8",), 1.2, ("int", "tensor"), ("--int8", "--scaling_mode", "tensor")),
           "int8, rows": (("int8", "--scale", "row"), 1.2, ("int", "channel"),
                          ("--int8", "--scaling_mode", "row")),
           "int8-convrot": (("int8-convrot",), 2.0, None,
                            ("--int8", "--scaling_mode", "row", "--convrot")),
           "mxfp8": (("mxfp8",), None, None, ("--mxfp8",)),
           "nvfp4": (("nvfp4",), 2.0, None, ("--nvfp4",))}
COMPRESS = """
import sys, torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import quantize
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import load_file, save_file
kind, strategy, path, out = sys.argv[1:]
torch.set_num_threads(1)
args = QuantizationArgs(num_bits=8, type=kind, strategy=strategy)
dtype = torch.float8_e4m3fn if kind == "float" else torch.int8
t, o = load_file(path), {}
for n, w in t.items():
    ends = (w.amin(), w.amax()) if strategy == "tensor" else (
        w.amin(1, keepdim=True), w.amax(1, keepdim=True))
    s, z = calculate_qparams(*ends, args)
    o[n], o[n + "_scale"] = quantize(w, s, z, args, dtype=dtype), s
save_file(o, out)
"""
KITCHEN_QUANTISES = """
import sys, torch
from comfy_kitchen.backends.eager import quantization as k
from safetensors.torch import load_file, save_file
kind, path, out = sys.argv[1:]
torch.set_num_threads(1)
t, o = load_file(path), {}
for n, w in t.items():
    if kind == "fp8":
        s = (w.abs().amax() / 448).float()
        o[n], o[n + "_scale"] = k.quantize_per_tensor_fp8(w, s), s
    elif kind == "int8": o[n], o[n + "_scale"] = k.quantize_int8_tensorwise(w)
    elif kind == "int8, rows": o[n], o[n + "_scale"] = k.quantize_int8_rowwise(w)
    elif kind == "int8-convrot": o[n], o[n + "_scale"] = k.quantize_int8_convrot_weight(w, 256)
    elif kind == "mxfp8": o[n], o[n + "_scale"] = k.quantize_mxfp8(w)
    else:
        s = (w.abs().amax() / 2688).float()
        o[n], o[n + "_scale"] = k.quantize_nvfp4(w, s)
        o[n + "_scale_2"] = s
save_file({n: v.contiguous() for n, v in o.items()}, out)
"""


def has_module(name):
    return importlib.util.find_spec(name) is not None


class Quantised:
    """What Bench is given besides its own sections."""

    def quantised(self):
        ours = os.path.join(self.args.build, "safetensors")
        out, result, copy = (os.path.join(self.args.data, n + ".safetensors")
                             for n in ("out", "result", "copy"))
        has_kitchen = has_module("comfy_kitchen")
        rows = []
        for name, (parts, floor) in FORMATS.items():
            path = self.data("quantised-" + name)
            if not os.path.exists(path):
                write_quantised(path, parts)
            convert = [ours, "convert", path, "--force", "--dequantize", "--threads", "1", "-o"]
            subprocess.run([*convert, result], stdout=subprocess.DEVNULL, check=True)
            commands = {"ours": [*convert, out], "copy": [
                "sh", "-c", 'cp "$1" "$2" && sync "$2"', "-", result, copy]}
            if has_kitchen and "weight" in parts:
                commands["kitchen"] = [sys.executable, "-c", KITCHEN, name, path, out]
            got = take_turns(commands, self.args.repeats)
            if floor:
                self.floor("quantised, %s, time against a copy" % name,
                           min(got["ours"][0].samples) / min(got["copy"][0].samples), floor, False)
            cells = [cell(got[n][i]) if n in got else "–" for n in ("ours", "copy", "kitchen")
                     for i in (0, 1)]
            best = LAYERS * SIDE * SIDE / min(got["ours"][1].samples) / 1e6
            rows.append([name, *cells, ratio(got["ours"][0], got["copy"][0]), few(best),
                         ratio(got["kitchen"][0], got["ours"][0]) if "kitchen" in got else "–"])
            for made in (out, result, copy):
                if os.path.exists(made):
                    os.unlink(made)
        return table(["layout", "ours, ms", "CPU", "`cp` and `sync`, ms", "CPU",
                      "comfy-kitchen, ms", "CPU", "ours ÷ copy", "G values/s of CPU",
                      "comfy-kitchen ÷ ours"], rows) + (
            "\n268 million values to BF16, whole processes, one thread, warm cache. Ours is "
            "synced; `cp` copies its result, of 537 MB. comfy-kitchen: "
            "`load_file`, its CPU functions, `save_file`, one thread, not synced.\n")

    def quantising(self):
        ours = os.path.join(self.args.build, "safetensors")
        out, copy = (os.path.join(self.args.data, n + ".safetensors") for n in ("out", "copy"))
        path, rows = self.data("to-quantise"), []
        if not os.path.exists(path):
            bits = random.Random(1).randbytes(1 << 22)
            signs = bytes(b if i % 2 == 0 else 0x3c + (b & 129) for i, b in enumerate(bits))
            write_quantised(path, {"weight": ("BF16", [SIDE, SIDE // 4], signs)})
        ctq = os.path.join(os.path.dirname(sys.executable), "ctq")
        has = {"comfy-kitchen": has_module("comfy_kitchen"), "ctq": os.path.exists(ctq),
               "compressed-tensors": has_module("compressed_tensors")}
        self.notes += ["%s, which this Python does not have" % n for n in has if not has[n]]
        for name, (words, floor, scheme, asked) in TARGETS.items():
            ours_and_copy = {
                "ours": [ours, "convert", path, "--force", "-o", out, "--quantize", *words],
                "`cp` and `sync`": ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "-", path, copy]}
            others = {"comfy-kitchen": [sys.executable, "-c", KITCHEN_QUANTISES, name, path, out],
                      "compressed-tensors": [sys.executable, "-c", COMPRESS, *(scheme or ()), path,
                                             out],
                      "ctq": [ctq, "-i", path, "-o", out, "--comfy_quant", "--simple",
                              "--device", "cpu", "--verbose", "MINIMAL", *asked]}
            others = {n: c for n, c in others.items()
                      if has[n] and (scheme or n != "compressed-tensors")}
            got = take_turns(ours_and_copy, self.args.repeats)
            got.update(take_turns(others, max(2, self.args.repeats // 4)))
            held = {n: peak_of(c) for n, c in {**ours_and_copy, **others}.items()}
            first, copied = got["ours"], got["`cp` and `sync`"]
            if floor:
                self.floor("quantising, %s, time against a copy" % name,
                           min(first[0].samples) / min(copied[0].samples), floor, False)
            self.floor("quantising, %s, MiB" % name, held["ours"], 16, False)
            rows += [[name if n == "ours" else "", n, cell(got[n][0]), cell(got[n][1]),
                      few(held[n]), ratio(got[n][0], copied[0]), ratio(got[n][1], first[1])]
                     for n in got]
            print("%s: %s" % (name, ", ".join("%s %.0f ms" % (n, min(got[n][0].samples))
                                              for n in got)), file=sys.stderr, flush=True)
            for made in (out, copy):
                if os.path.exists(made):
                    os.unlink(made)
        return table(["format", "program", "wall, ms", "CPU, ms", "MiB", "÷ copy, wall",
                      "÷ ours, CPU"], rows) + (
            "\n67 million values of BF16 in four matrices, whole processes, one thread, warm cache, "
            "ComfyUI's layout. Ours is synced; `cp` copies the input, of 134 MB. The others read and "
            "write by `safetensors`, not synced, in fewer rounds; ctq is convert_to_quant %s, with "
            "`--simple`.\n" % (importlib.metadata.version("convert_to_quant") if has["ctq"]
                               else "(left out)"))
