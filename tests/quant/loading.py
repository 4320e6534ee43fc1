#!/usr/bin/env python3
"""What programs make of what convert --quantize writes, by their own rules of loading, restated
here from their documentation: ComfyUI's layers with a `comfy_quant`, vLLM's compressed-tensors and
ModelOpt. Every module that is a matrix has what its method asks for, spared ones are excluded by
name, and the values are those of --dequantize.

    loading.py                needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import fnmatch
import json
import os
import sys
import tempfile

import run
from run import FORMATS, SOURCE, convert, np, read_plain
from comfy import F8, FP4, nibbles, rotate, untile

import ml_dtypes

DTYPES = {"F32": "<f4", "I8": "i1", "U8": "u1", "F8_E4M3": ml_dtypes.float8_e4m3fn,
          "F8_E8M0": ml_dtypes.float8_e8m0fnu}
E4M3, E8M0 = DTYPES["F8_E4M3"], DTYPES["F8_E8M0"]


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


def array(tensors, name, dtypes, shape=None):
    need(name in tensors, "%s is missing" % name)
    dtype, found, data = tensors[name]
    need(dtype in dtypes, "%s is %s" % (name, dtype))
    need(shape is None or list(found) == list(shape), "%s is %s, not %s" % (name, found, shape))
    return np.frombuffer(data, DTYPES[dtype]).reshape(found)


# ── ComfyUI ──

# format: dtypes that its weights are viewed as, and the companions that its layers load
COMFY = {"float8_e4m3fn": (F8, ("weight_scale",)), "int8_tensorwise": (("I8",), ("weight_scale",)),
         "mxfp8": (F8, ("weight_scale",)), "nvfp4": (("U8",), ("weight_scale", "weight_scale_2"))}


def comfy_layer(tensors, module, logical):
    """The weight of a Linear of that shape; what else is there would be unexpected keys."""
    text = array(tensors, module + ".comfy_quant", ("U8",))
    need(text.ndim == 1, "comfy_quant")
    conf = json.loads(text.tobytes())
    need(conf.get("format") in COMFY, "format")
    form, (dtypes, companions) = conf["format"], COMFY[conf["format"]]
    data = array(tensors, module + ".weight", dtypes)
    keys = {n[len(module) + 1:] for n in tensors if n.startswith(module + ".")}
    need(keys <= {"weight", "bias", "comfy_quant", *companions}, "keys %s" % keys)
    rows, columns = logical
    if form == "nvfp4":
        values = FP4[nibbles(data, True)]
        need(data.shape == (-(-rows // 16) * 16, -(-columns // 16) * 8), "padding")
        scale = untile(array(tensors, module + ".weight_scale", ("F8_E4M3",)).view(E4M3),
                       values.shape[0], values.shape[1] // 16).astype("f4")
        more = array(tensors, module + ".weight_scale_2", ("F32",), [])
        factor = np.repeat(scale * more, 16, 1)
    elif form == "mxfp8":
        values = data.astype("f4")
        need(data.shape == (-(-rows // 32) * 32, -(-columns // 32) * 32), "padding")
        scale = array(tensors, module + ".weight_scale", ("F8_E8M0", "U8")).view(E8M0)
        factor = np.repeat(untile(scale, values.shape[0], values.shape[1] // 32).astype("f4"), 32, 1)
    else:
        values, scale = data.astype("f4"), array(tensors, module + ".weight_scale", ("F32",))
        need(data.shape == (rows, columns), "shape")
        need(scale.shape == () or (form == "int8_tensorwise" and scale.shape == (rows, 1)), "scale")
        factor = scale
    values = values * factor
    if conf.get("convrot"):
        values = rotate(values, conf.get("convrot_groupsize", 256))
    return values[:rows, :columns]


# ── vLLM ──

def compressed_layer(tensors, module, logical, config):
    group, = config["config_groups"].values()
    need(group["targets"] == ["Linear"], "targets")
    args, form = group["weights"], config["format"]
    need(args["symmetric"] is True, "symmetric")
    rows, columns = logical
    strategy, bits, kind = args["strategy"], args["num_bits"], args["type"]
    if form == "nvfp4-pack-quantized":
        need((strategy, bits, kind, args["group_size"]) == ("tensor_group", 4, "float", 16), "args")
        values = FP4[nibbles(array(tensors, module + ".weight_packed", ("U8",),
                                   [rows, columns // 2]), False)]
        scale = array(tensors, module + ".weight_scale", ("F8_E4M3",), [rows, columns // 16])
        more = array(tensors, module + ".weight_global_scale", ("F32",), [1])
        return values * np.repeat(scale.astype("f4") / more, 16, 1)
    dtypes = ("I8",) if kind == "int" else ("F8_E4M3",)
    need(bits == 8 and form in ("int-quantized", "float-quantized", "mxfp8-quantized"), "format")
    need((form == "int-quantized") == (kind == "int"), "format of type")
    values = array(tensors, module + ".weight", dtypes, logical).astype("f4")
    if form == "mxfp8-quantized":
        need((strategy, args["group_size"], args["scale_dtype"]) == ("group", 32, "torch.uint8"),
             "args")
        scale = array(tensors, module + ".weight_scale", ("U8",), [rows, columns // 32])
        return values * np.repeat(scale.view(E8M0).astype("f4"), 32, 1)
    inputs = group["input_activations"]
    need(inputs["dynamic"] is True, "inputs that the file has no scale for")
    need((strategy, inputs["strategy"]) in (("channel", "token"), ("tensor", "tensor"),
                                            ("tensor", "token"), ("block", "group")), "strategies")
    if strategy == "block":
        tall, broad = args["block_structure"]
        need(inputs["group_size"] == broad == tall == 128, "blocks")
        scale = array(tensors, module + ".weight_scale", ("F32",),
                      [-(-rows // tall), -(-columns // broad)])
        return values * np.repeat(np.repeat(scale, tall, 0), broad, 1)[:rows, :columns]
    return values * array(tensors, module + ".weight_scale", ("F32",),
                          [rows, 1] if strategy == "channel" else [1])


def modelopt_layer(tensors, module, logical, config):
    algorithm, (rows, columns) = config["quant_algo"], logical
    if algorithm == "W4A16_NVFP4":
        values = FP4[nibbles(array(tensors, module + ".weight", ("U8",), [rows, columns // 2]),
                             False)]
        scale = array(tensors, module + ".weight_scale", ("F8_E4M3",), [rows, columns // 16])
        return values * np.repeat(scale.astype("f4") * array(
            tensors, module + ".weight_scale_2", ("F32",), []), 16, 1)
    need(algorithm in ("FP8", "FP8_PER_CHANNEL_PER_TOKEN"), "quant_algo")
    values = array(tensors, module + ".weight", ("F8_E4M3",), logical).astype("f4")
    if algorithm == "FP8":
        need(module + ".input_scale" in tensors, "static inputs, which the file has no scale for")
        return values * array(tensors, module + ".weight_scale", ("F32",), [])
    return values * array(tensors, module + ".weight_scale", ("F32",), [rows])[:, None]


# ── Files ──

def load(folder, layout, format_, scale, wanted):
    """Loads what is written as the program would; wanted: what it is to say of it."""
    out, back = (os.path.join(folder, name) for name in ("out.safetensors", "back.safetensors"))
    code, text, error = convert(SOURCE, "-o", out, "--quantize", format_, "--layout", layout,
                                "--only", "*.weight", "--json", *run.without_tiny(format_),
                                *(["--scale", scale] if scale else []))
    need(code == 0, error)
    report = json.loads(text)["results"][0]["quantised"]
    code, _, error = convert(out, "-o", back, "--dequantize", "--dtype", "F32")
    need(code == 0, error)
    (tensors, metadata), values = read_plain(out), read_plain(back)[0]
    config, source = report["quantization_config"], read_plain(SOURCE)[0]
    if layout != "comfy":
        need(json.loads(metadata["quantization_config"]) == config, "metadata")
        need(config["quant_method"] == layout, "method")
    for name, (_, shape, _) in source.items():
        module = name[:-len(".weight")]
        if not name.endswith(".weight") or len(shape) != 2:
            continue
        spared = name in tensors and tensors[name] == source[name]
        if layout == "comfy":
            need(spared == (module + ".comfy_quant" not in tensors), module)
        else:
            excluded = any(fnmatch.fnmatchcase(module, one) for one in config["ignore"])
            need(spared == excluded, "%s: spared %s, ignored %s" % (module, spared, excluded))
        if spared:
            continue
        layer = {"comfy": comfy_layer, "modelopt": modelopt_layer,
                 "compressed-tensors": compressed_layer}[layout]
        with np.errstate(all="ignore"):
            have = layer(tensors, module, shape, *([] if layout == "comfy" else [config]))
        want = run.floats(values[name])
        need(have.shape == want.shape, "shape of " + name)
        near = np.abs(have - want) <= 1e-6 * np.abs(want).max(initial=0) + 1e-38
        need(near.all(), "%s: %d values differ" % (name, (~near).sum()))
    need(not wanted, "loaded, instead of: %s" % wanted)


def main():
    passed, problems = 0, []
    for layout, format_, *scale in FORMATS:
        what = "-".join([layout, format_, *scale])
        wanted = "static inputs" if (layout, format_, *scale) == (
            "modelopt", "fp8", "tensor") else None
        with tempfile.TemporaryDirectory() as folder:
            try:
                load(folder, layout, format_, scale[0] if scale else None, wanted)
                passed += 1
            except Wrong as error:
                if wanted and wanted in str(error):
                    passed += 1
                else:
                    problems.append("%s: %s" % (what, error))
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
