#!/usr/bin/env python3
"""convert --dequantize on quantised files of which declarations and companions are changed: the
values are those of formulas.py, or the file is refused by name, and nothing is left behind.

    mutations.py [COUNT [FIRST]] [-v]     needs build/safetensors (SFT_BUILD, SFT_COMMAND)

Files are those of tests/quant and of tests/compat/dequantize.py. Change number N is the same in
every run; -v also prints what is refused although formulas.py has a value.
"""
import glob
import importlib.util
import json
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "import"))
try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    from plain import read_plain
except ImportError as error:
    print("quant-mutations: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
import formulas

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U32": 4, "I16": 2, "I8": 1,
         "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
LEAVES = ("weight", "weight_scale", "weight_scale_2", "weight_scale_inv", "weight_zero_point",
          "weight_g_idx", "weight_packed", "weight_shape", "weight_global_scale", "scale_weight",
          "weight_codebook", "weight_correction", "weight_zeros", "weight_s_rel", "scales",
          "qzeros", "qweight", "g_idx", "SCB", "biases", "bias", "comfy_quant", "weight_format",
          "pre_quant_scale", "input_scale")
FORMATS = ("float8_e4m3fn", "float8_e5m2", "int8_tensorwise", "mxfp8", "nvfp4", "convrot_w4a4",
           "asym_w4a8_int8", "awq_w4a16", "float8_e4m3fn_rowwise", "")
MEMBERS = (("convrot", True), ("convrot", False), ("convrot_groupsize", 4),
           ("convrot_groupsize", 64), ("convrot_groupsize", 3), ("group_size", 16),
           ("group_size", 64), ("group_size", 0), ("group_size", "16"), ("orig_shape", [16, 33]),
           ("orig_shape", [20, 96]), ("orig_shape", [24, 40]), ("orig_shape", [2]),
           ("orig_shape", [1 << 63, 1 << 63]), ("per_row", True), ("params", {"convrot": True}),
           ("full_precision_matrix_mult", True), ("axis", 0), ("convrot_groupsize", 1 << 70),
           ("group_size", -1), ("format", "nvfp4"), ("x", [[[[]]]]))
CONFIGS = (
    {"quant_method": "gptq", "bits": 4}, {"quant_method": "gptq", "checkpoint_format": "gptq_v2"},
    {"quant_method": "gptq", "format": "gptq_v2"}, {"quant_method": "gptq", "desc_act": True},
    {"quant_method": "awq", "version": "gemm"}, {"quant_method": "awq", "version": "gemv"},
    {"quant_method": "bitsandbytes"}, {"quant_method": "hqq"}, {"quant_method": "quanto"},
    {"quant_method": "fp8"}, {"quant_method": "fp8", "weight_block_size": [96, 96]},
    {"quant_method": "fp8", "weight_block_size": [128, 128]}, {"quant_method": "mxfp4"},
    {"quant_method": "modelopt", "quant_algo": "NVFP4"}, {"quant_method": "modelopt"},
    {"quant_method": "modelopt", "quant_algo": "FP8"}, {"quant_method": "aqlm"}, {},
    {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, {"bits": 4, "group_size": 64},
    {"bits": 3, "group_size": 64}, {"bits": 8, "group_size": 32}, {"bits": 4, "group_size": "64"},
    {"quant_method": "compressed-tensors", "format": "mixed-precision"},
    {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
    {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"},
    {"quant_method": "compressed-tensors", "format": "pack-quantized"},
    {"quant_method": "compressed-tensors", "format": "int-quantized",
     "transform_config": {"config_groups": {"u": {"type": "hadamard"}}}},
    {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {
        "num_bits": 4, "group_size": 32}}}})


# ── Files ──

def seeds():
    """[(name, tensors, metadata, config)]"""
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.safetensors"))):
        if ".values." in path:
            continue
        tensors, metadata = read_plain(path)
        beside = path[:-len(".safetensors")] + ".json"
        config = None
        if os.path.exists(beside):
            with open(beside, encoding="utf-8") as file:
                config = json.load(file)
        out.append((os.path.basename(path), tensors, metadata, config))
    spec = importlib.util.spec_from_file_location(
        "dequantize", os.path.join(ROOT, "tests", "compat", "dequantize.py"))
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    for case in other.CASES:
        if case is other.large:
            continue
        made = case(np.random.default_rng(3))[0]
        tensors = {n: (other.NAMES[np.asarray(t).dtype], list(np.shape(t)),
                       np.ascontiguousarray(t).tobytes()) for n, t in made.items()}
        config = {"quantization_config": other.CONFIGS[case]} if case in other.CONFIGS else None
        out.append((case.__name__, tensors, {}, config))
    return out


def save(path, tensors, metadata):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


# ── Changes ──

def marker_of(tensors, r):
    names = [n for n in tensors if n.endswith(".comfy_quant")]
    return r.choice(names) if names else None


def change_marker(r, tensors, metadata, config):
    """A member of the declaration is added, doubled, changed or taken away, or its text is."""
    name = marker_of(tensors, r)
    if not name:
        module = r.choice(sorted(tensors)).rpartition(".")[0]
        name, value = module + ".comfy_quant", {"format": r.choice(FORMATS)}
    else:
        try:
            value = json.loads(tensors[name][2])
        except ValueError:
            return config
        value = value if isinstance(value, dict) else {"format": value}
    kind = r.randrange(8)
    if kind == 0:
        value["format"] = r.choice(FORMATS)
    elif kind <= 3:
        key, new = r.choice(MEMBERS)
        value[key] = new
    elif kind == 4 and value:
        value.pop(r.choice(sorted(value)))
    elif kind == 5:
        value = {"format": value.get("format"), "params": value}
    text = json.dumps(value).encode()
    if kind == 6:
        key, new = r.choice(MEMBERS)
        text = text[:-1] + b"," * (len(text) > 2) + json.dumps({key: new}).encode()[1:]
    if kind == 7:
        text = r.choice((lambda: text[:r.randrange(len(text))], lambda: text + b" ",
                         lambda: text + b"\0", lambda: b"[" * 200 + text,
                         lambda: json.dumps(value.get("format")).encode(),
                         lambda: text.replace(b'"', b"'"), lambda: b"\xef\xbb\xbf" + text,
                         lambda: b"{" + b'"params":{' * 150 + b"}" * 151))()
    if text:
        tensors[name] = ("U8", [len(text)], text)
    return config


def move_marker(r, tensors, metadata, config):
    """The declaration is in the metadata, too or only, perhaps without the usual prefix."""
    name = marker_of(tensors, r)
    if not name:
        return config
    try:
        value = json.loads(tensors[name][2])
    except ValueError:
        return config
    if r.randrange(3):
        del tensors[name]
    elif r.randrange(2) and isinstance(value, dict):
        key, new = r.choice(MEMBERS)
        value[key] = new
    module = name[:-len(".comfy_quant")]
    prefix = r.choice(("", "", "model.diffusion_model.", "diffusion_model.", "odd."))
    for other in [n for n in tensors if n.startswith(module + ".")] if prefix else ():
        tensors[prefix + other] = tensors.pop(other)
    if r.randrange(4) == 0:
        module = prefix + module
    layers = {module: r.choice((value, value, value.get("format", "")
                                if isinstance(value, dict) else value))}
    metadata["_quantization_metadata"] = json.dumps(
        {"format_version": "1.0", "layers": layers} if r.randrange(8) else layers)
    return config


def drop(r, tensors, metadata, config):
    del tensors[r.choice(sorted(tensors))]
    return config


def rename(r, tensors, metadata, config):
    name = r.choice(sorted(tensors))
    tensors[name.rpartition(".")[0] + "." + r.choice(LEAVES)] = tensors.pop(name)
    return config


def double(r, tensors, metadata, config):
    name = r.choice(sorted(tensors))
    tensors[name.rpartition(".")[0] + "." + r.choice(LEAVES)] = tensors[name]
    return config


def reshape(r, tensors, metadata, config):
    name = r.choice(sorted(tensors))
    dtype, shape, data = tensors[name]
    count = int(np.prod(shape, dtype=int))
    rows = r.choice([n for n in (1, 2, 3, 4, 8, 16, 20, 32, 64, 128) if count % n == 0])
    new = [rows, count // rows][::r.choice((1, -1))]
    new = r.choice((new, [count], new + [1], [1] + new, [1, 1] + new, shape[::-1], shape + [1],
                    [1] + shape))
    tensors[name] = (dtype, new, data)
    return config


def resize(r, tensors, metadata, config):
    name = r.choice(sorted(tensors))
    dtype = tensors[name][0]
    sizes = (0, 1, 2, 3, 4, 6, 8, 16, 24, 32, 33, 64, 128)
    shape = [r.choice(sizes) for _ in range(r.randrange(4))]
    size = int(np.prod(shape, dtype=int)) * SIZES[dtype]
    tensors[name] = (dtype, shape, (tensors[name][2] * (size // max(len(tensors[name][2]), 1) + 1)
                                    or bytes(size))[:size])
    if len(tensors[name][2]) != size:
        tensors[name] = (dtype, shape, bytes(size))
    return config


def retype(r, tensors, metadata, config):
    """The same bytes as another dtype, or the same values."""
    name = r.choice(sorted(tensors))
    dtype, shape, data = tensors[name]
    new = r.choice(sorted(SIZES))
    if SIZES[new] == SIZES[dtype]:
        tensors[name] = (new, shape, data)
    elif dtype in formulas.WIDE and new in formulas.WIDE:
        with np.errstate(all="ignore"):
            values = np.frombuffer(data, formulas.DTYPES[dtype]).astype(formulas.DTYPES[new])
        tensors[name] = (new, shape, values.tobytes())
    elif len(data) % SIZES[new] == 0:
        tensors[name] = (new, [len(data) // SIZES[new]], data)
    return config


def revalue(r, tensors, metadata, config):
    """Odd numbers in a tensor: bytes, or NaN, infinities, zeros and subnormals."""
    name = r.choice(sorted(tensors))
    dtype, shape, data = tensors[name]
    data = bytearray(data)
    if not data:
        return config
    odd = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 3e38, -1e-45)
    for _ in range(r.randrange(1, 6)):
        if dtype in formulas.WIDE:
            with np.errstate(all="ignore"):
                one = np.array(r.choice(odd)).astype(formulas.DTYPES[dtype]).tobytes()
            at = r.randrange(len(data) // len(one)) * len(one)
            data[at:at + len(one)] = one
        else:
            data[r.randrange(len(data))] = r.choice((0, 127, 128, 255, r.randrange(256)))
    tensors[name] = (dtype, shape, bytes(data))
    return config


def reconfigure(r, tensors, metadata, config):
    if r.randrange(4) == 0:
        return None
    if config is None or r.randrange(3) == 0:
        return {"quantization_config": r.choice(CONFIGS)}
    config = json.loads(json.dumps(config))
    inner = config.get("quantization_config", config.get("quantization"))
    inner[r.choice(("format", "quant_method", "version", "bits", "group_size", "checkpoint_format",
                    "mode", "desc_act", "quant_algo", "x"))] = r.choice(
        (None, 4, 8, 3, 0, 32, 64, "gptq", "gptq_v2", "pack-quantized", "gemm", "affine", True,
         "mxfp4-pack-quantized", "NVFP4", [], {}))
    for weights in formulas.weights_of(inner):
        if r.randrange(2):
            weights[r.choice(("num_bits", "group_size", "block_structure"))] = r.choice(
                (None, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, [64, 64], [128, 128], 1 << 40))
    for name, own in inner.items():
        if isinstance(own, dict) and "bits" in own and r.randrange(2):  # MLX's single layers
            own[r.choice(("bits", "group_size", "mode", "x"))] = r.choice(
                (None, 2, 3, 4, 8, 0, 32, 64, 128, "4", "affine", "mxfp4", 1 << 40, -1, 4.0))
            inner[name] = r.choice((own, own, own, own, False, None, True, {}, [own]))
    return config


def reclass(r, tensors, metadata, config):
    """A member of a torchao object is changed, doubled or taken away, or its text is."""
    keys = sorted(k for k in metadata if metadata[k].startswith('{"_type"'))
    if not keys:
        return config
    key = r.choice(keys)
    try:
        value = json.loads(metadata[key])
        inner, names = value["_data"], value["_tensor_data_names"]
    except (ValueError, KeyError):
        return config
    kind = r.randrange(6)
    member = r.choice(("block_size", "is_swizzled_scales", "elem_dtype", "dtype", "x", "_type"))
    new = r.choice((True, False, 16, 32, 64, [1, 64], [24, 64], [1, 32], [1, 16], [], None, {},
                    "float4_e2m1fn_x2", {"_type": "torch.dtype", "_data": "float8_e5m2"},
                    {"_type": "torch.dtype", "_data": "float4_e2m1fn_x2"},
                    {"_type": "torch.dtype", "_data": "float6_e3m2"}))
    if kind == 0:
        value["_type"] = r.choice(("Float8Tensor", "Int8Tensor", "IntxUnpackedToInt8Tensor",
                                   "MXTensor", "NVFP4Tensor", "Int4Tensor", "Tensor", "Odd", ""))
    elif kind == 1:
        inner[member] = new
    elif kind == 2 and member in inner:
        del inner[member]
    elif kind == 3:
        names.append(r.choice(("scale", "zero_point", "x", "per_tensor_scale", "qdata")))
        if r.randrange(2):
            names.pop(r.randrange(len(names)))
    text = json.dumps(value)
    if kind == 4:
        text = text.replace('"_data": {', '"_data": {"%s": %s, ' % (member, json.dumps(new)), 1)
    if kind == 5:
        text = r.choice((text[:r.randrange(len(text))], "[%s]" % text, text + " ", "{}", "null",
                         json.dumps(inner), text.replace('"_data"', '"data"', 1)))
    metadata[key] = text
    return config


def shift_class(r, tensors, metadata, config):
    """Tensors or classes of two modules change places."""
    keys = sorted(k for k in metadata if metadata[k].startswith('{"_type"'))
    if len(keys) > 1:
        a, b = r.sample(keys, 2)
        metadata[a], metadata[b] = metadata[b], metadata[a]
    return config


CHANGES = (change_marker, change_marker, move_marker, drop, rename, double, reshape, reshape,
           resize, retype, revalue, reconfigure)
CLASS_CHANGES = CHANGES[2:] + 6 * (reclass,) + (shift_class,)


def changed(number, all_seeds):
    """(description, tensors, metadata, config)"""
    r = random.Random(number)
    name, tensors, metadata, config = all_seeds[number % len(all_seeds)]
    modules = sorted({n.split(".")[0] for n in tensors})
    keep = {r.choice(modules)} if r.randrange(4) else set(r.sample(modules, min(2, len(modules))))
    tensors = {n: (t[0], list(t[1]), t[2]) for n, t in tensors.items() if n.split(".")[0] in keep}
    changes = CLASS_CHANGES if "torchao" in name else CHANGES
    metadata, steps = dict(metadata), []
    for _ in range(r.choice((1, 1, 1, 2, 2, 3)) if number >= len(all_seeds) else 0):
        if not tensors:
            break
        step = r.choice(changes)
        steps.append(step.__name__)
        config = step(r, tensors, metadata, config)
    return "%s: %s" % (name, ", ".join(steps)), tensors, metadata, config


# ── Results ──

def unlike(model, tensors, found):
    """What is wrong with a result."""
    for name, (values, exact) in model.out.items():
        values = np.asarray(values, "<f4", order="C")
        if name not in found or found[name][0] != "F32" or found[name][1] != list(values.shape):
            return "%s: %s instead of %s" % (name, found.get(name, ["none"])[:2], values.shape)
        have = np.frombuffer(found[name][2], "<f4").reshape(values.shape)
        nan = np.isnan(values)
        if exact and not (np.array_equal(np.isnan(have), nan)
                          and np.array_equal(have.view("u4")[~nan], values.view("u4")[~nan])):
            at = np.argwhere((have.view("u4") != values.view("u4")) & ~(nan & np.isnan(have)))[0]
            return "%s%s: %r instead of %r" % (name, list(at), have[tuple(at)], values[tuple(at)])
        if not exact and np.isfinite(values).all():
            with np.errstate(all="ignore"):
                if not (np.abs(have - values) <= 2e-6 * max(np.abs(values).max(initial=0),
                                                            1e-37)).all():
                    return "%s: other values" % name
    for name, tensor in tensors.items():
        if name in model.used and name not in model.out:
            if name in found:
                return "%s is there" % name
        elif name not in model.out and found.get(name) != tensor:
            return "%s is changed" % name
    return None


def check(folder, tensors, metadata, config):
    """("refused" | "right" | "strict", text) or ("wrong", text)"""
    path = os.path.join(folder, "model.safetensors")
    out, beside = os.path.join(folder, "out.safetensors"), os.path.join(folder, "config.json")
    save(path, tensors, metadata)
    if config is not None:
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(config, file)
    done = subprocess.run([*COMMAND, "convert", path, "-o", out, "--dequantize", "--dtype", "F32"],
                          capture_output=True, close_fds=False, check=False)
    said = done.stderr.decode("utf-8", "replace").replace(folder + "/", "").strip()
    found = read_plain(out)[0] if os.path.exists(out) else None
    left = set(os.listdir(folder)) - {"model.safetensors", "out.safetensors", "config.json"}
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    if left:
        return "wrong", "left behind: %s" % left
    try:
        model, why = formulas.read(tensors, metadata, config), ""
    except (formulas.Refused, ValueError, IndexError, TypeError,
            ArithmeticError) as error:
        model, why = None, repr(error)
    if done.returncode == 1:
        if found is not None or "expected" not in said:
            return "wrong", "refused with a file, or without a reason: " + said
        return ("strict" if model else "refused"), said
    if done.returncode:
        return "wrong", "exit %d: %s" % (done.returncode, said)
    if model is None:
        return "wrong", "read, but %s" % why
    bad = unlike(model, tensors, tensors if found is None else found)
    return ("wrong", bad) if bad else ("right", "")


# Once read, though they have no meaning: 24 zero points beside [24, 40, 1, 1] as [1, 24, 1]; two
# "params" in a declaration; one scale where MLX declares groups; another format that is "".
KEPT = (115055, 45232, 73880, 95203)


def main():
    numbers = [int(a) for a in sys.argv[1:] if a != "-v"]
    count, first = (numbers + [2000, 0][len(numbers):])[:2]
    all_seeds, problems = seeds(), []
    kinds = dict.fromkeys(("right", "refused", "strict", "wrong"), 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in (*KEPT, *range(first, first + count)):
            what, tensors, metadata, config = changed(number, all_seeds)
            kind, text = check(folder, tensors, metadata, config)
            kinds[kind] += 1
            if kind == "wrong" or (kind == "strict" and "-v" in sys.argv):
                problems.append("%d %s (%s): %s" % (number, kind, what, text))
    print("\n".join(problems[:200]))
    print("%(right)d right, %(refused)d refused, %(strict)d refused that have a value" % kinds)
    good = not kinds["wrong"] and kinds["right"] > count // 10 and kinds["refused"] > count // 10
    print("%d passed, %d failed" % (count + len(KEPT) - kinds["wrong"], kinds["wrong"] or not good))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
