#!/usr/bin/env python3
"""convert --dequantize against the reference formulas, written down again in numpy.

    dequantize.py [--only NAME]        needs build/safetensors (SFT_BUILD, SFT_COMMAND)

Every layout of docs/convert.md with random codes: as F32, BF16 and F16, bit for bit, NaN as NaN;
in one file and in shards, where a scale may lie in another shard than its tensor. What a value is
computed from must be gone, everything else must be there unchanged.
"""
import argparse
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "import"))
try:
    import ml_dtypes
    import numpy as np
    from plain import read_plain
except ImportError as error:
    print("dequantize: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
BF16, E8M0 = ml_dtypes.bfloat16, ml_dtypes.float8_e8m0fnu
NAMES = {np.dtype(k): v for k, v in (
    ("f4", "F32"), ("f2", "F16"), (BF16, "BF16"), (E4M3, "F8_E4M3"), (E5M2, "F8_E5M2"),
    (E8M0, "F8_E8M0"), ("i1", "I8"), ("u1", "U8"), ("i4", "I32"), ("u4", "U32"), ("i8", "I64"))}
TARGETS = {"F32": np.dtype("f4"), "BF16": np.dtype(BF16), "F16": np.dtype("f2")}
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # which column stands in the n-th four bits of a word


def codes(random, shape, dtype):
    return np.frombuffer(random.bytes(int(np.prod(shape))), np.uint8).reshape(shape).view(dtype)


def factors(random, shape, dtype="f4"):
    return (random.standard_normal(shape) * 0.01 + 0.02).astype(dtype)


def spread(scale, shape, block):
    """A factor for each element."""
    for axis, size in enumerate(block):
        scale = np.repeat(scale, size, axis=axis)
    return scale[tuple(slice(0, n) for n in shape)]


def scaled(weight, scale):
    with np.errstate(all="ignore"):
        return weight.astype(np.float32) * scale.astype(np.float32)


# Each gives {name: tensor of the file}, {name: values, F32}.

def per_tensor(random):
    w, s = codes(random, (33, 70), E4M3), factors(random, ())
    v, t = codes(random, (5, 8), E5M2), factors(random, (1,), BF16)
    c, u = codes(random, (3, 4, 3, 3), E4M3), factors(random, ())
    return ({"a.weight": w, "a.weight_scale": s, "a.input_scale": factors(random, ()),
             "b.weight": v, "b.weight_scale": t, "c.weight": c, "c.scale_weight": u},
            {"a.weight": scaled(w, s), "b.weight": scaled(v, t), "c.weight": scaled(c, u)})


def per_row(random):
    w, s = codes(random, (300, 700), E4M3), factors(random, (300, 1), BF16)
    v, t = codes(random, (7, 9), np.int8), factors(random, (7,))
    return ({"a.weight": w, "a.weight_scale": s, "b.weight": v, "b.weight_scale": t},
            {"a.weight": scaled(w, s), "b.weight": scaled(v, t[:, None])})


def per_block(random):
    """DeepSeek's 128 x 128, the last block cut; powers of two; groups of a row; experts."""
    w, s = codes(random, (300, 1000), E4M3), factors(random, (3, 8))
    x, p = codes(random, (256, 384), E4M3), codes(random, (2, 3), np.uint8) // 8 + 112
    g, t = codes(random, (6, 256), E4M3), factors(random, (6, 8), BF16)
    e, u = codes(random, (4, 130, 257), E4M3), factors(random, (4, 2, 3))
    p = p.astype(np.uint8).view(E8M0)
    return ({"a.weight": w, "a.weight_scale_inv": s, "x.weight": x, "x.weight_scale_inv": p,
             "g.weight": g, "g.weight_scale": t, "e": e, "e_scale_inv": u},
            {"a.weight": scaled(w, spread(s, w.shape, (128, 128))),
             "x.weight": scaled(x, spread(p, x.shape, (128, 128))),
             "g.weight": scaled(g, spread(t, g.shape, (1, 32))),
             "e": scaled(e, spread(u, e.shape, (1, 128, 128)))})


def marked(text):
    return np.frombuffer(json.dumps(text).encode(), np.uint8)


def comfy(random):
    """ComfyUI's own formats whose values are products, new and old, with what declares them."""
    files, values = {"scaled_fp8": np.zeros(2, E4M3)}, {}
    for name, dtype, shape, form in (
            ("a", E4M3, (), {"format": "float8_e4m3fn", "full_precision_matrix_mult": True}),
            ("b", E5M2, (1,), {"format": "float8_e5m2"}),
            ("c", np.int8, (), {"format": "int8_tensorwise", "convrot": False}),
            ("d", np.int8, (96, 1), {"format": "int8_tensorwise", "per_row": True}),
            ("e", np.int8, (96, 1), {"format": "int8_tensorwise", "params": {"per_row": True}})):
        w, s = codes(random, (96, 130), dtype), factors(random, shape)
        files.update({name + ".weight": w, name + ".weight_scale": s,
                      name + ".comfy_quant": marked(form), name + ".bias": factors(random, (96,))})
        values[name + ".weight"] = scaled(w, s)
    w, s = codes(random, (7, 9), E4M3), factors(random, (1,))
    files.update({"old.weight": w, "old.scale_weight": s, "old.scale_input": s})
    values["old.weight"] = scaled(w, s)
    return files, values


def mxfp4(random):
    """As transformers' convert_moe_packed_tensors: the low nibble first, then transposed."""
    files, values = {}, {}
    for name, shape in (("m.gate_up_proj", (3, 50, 4)), ("m.down_proj", (2, 7, 1))):
        blocks = codes(random, (*shape, 16), np.uint8)
        scales = (codes(random, shape, np.uint8) // 16 + 119).astype(np.uint8)
        pairs = np.stack([FP4[blocks & 15], FP4[blocks >> 4]], -1).reshape(*shape, 32)
        plain = np.ldexp(pairs, scales.astype(int)[..., None] - 127).reshape(*shape[:2], -1)
        files[name + "_blocks"], files[name + "_scales"] = blocks, scales
        values[name] = plain.transpose(0, 2, 1)
    return files, values


def pack(levels, axis, bits, order=None):
    """Words of 32 bits along an axis."""
    n = 32 // bits
    levels = np.moveaxis(levels, axis, -1).astype(np.uint32)
    groups = levels.reshape(*levels.shape[:-1], -1, n)
    words = np.zeros(groups.shape[:-1], np.uint32)
    for i in range(n):
        words |= groups[..., order[i] if order else i] << np.uint32(bits * i)
    return np.moveaxis(words, -1, axis).astype(np.uint32).view(np.int32).copy()


def gptq(random):
    files, values = {}, {}
    for name, inputs, outputs, groups, bits, act in (
            ("a", 256, 48, 2, 4, False), ("b", 128, 24, 4, 4, True), ("c", 64, 16, 1, 8, False)):
        top = 1 << bits
        levels = random.integers(0, top, (inputs, outputs))
        zeros = random.integers(0, top, (groups, outputs))  # stored less one
        scales = factors(random, (groups, outputs), "f2")
        of = np.arange(inputs) // (inputs // groups)
        if act:
            of = random.permutation(of)
        files[name + ".qweight"] = pack(levels, 0, bits)
        files[name + ".qzeros"] = pack(zeros, 1, bits)
        files[name + ".scales"] = scales
        if act or bits == 8:
            files[name + ".g_idx"] = of.astype("i4")
        files[name + ".bias"] = factors(random, (outputs,), "f2")
        plain = (levels - (zeros[of] + 1) % top).astype(np.float32) * scales[of].astype(np.float32)
        values[name + ".weight"] = plain.T
    return files, values


def awq(random):
    """Rows of which no multiple of eight fits into a tile are those of Llama 2 and Qwen 2."""
    files, values = {}, {}
    for name, inputs, outputs, groups in (("a", 384, 40, 3), ("b", 11008, 48, 86),
                                          ("c", 18944, 32, 148)):
        levels = random.integers(0, 16, (inputs, outputs))
        zeros = random.integers(0, 16, (groups, outputs))
        scales = factors(random, (groups, outputs), "f2")
        of = np.arange(inputs) // (inputs // groups)
        files[name + ".qweight"] = pack(levels, 1, 4, AWQ_ORDER)
        files[name + ".qzeros"] = pack(zeros, 1, 4, AWQ_ORDER)
        files[name + ".scales"] = scales
        plain = (levels - zeros[of]).astype(np.float32) * scales[of].astype(np.float32)
        values[name + ".weight"] = plain.T
    return files, values


def large(random):
    """More than a panel, and more than a piece of the stream."""
    inputs, outputs = 4096, 4096
    levels = random.integers(0, 16, (inputs, outputs), dtype=np.uint8)
    zeros = random.integers(0, 16, (32, outputs), dtype=np.uint8)
    scales = factors(random, (32, outputs), "f2")
    of = np.arange(inputs) // 128
    plain = (levels.astype(np.int32) - (zeros[of].astype(np.int32) + 1) % 16).astype(np.float32)
    return ({"a.qweight": pack(levels, 0, 4), "a.qzeros": pack(zeros, 1, 4), "a.scales": scales},
            {"a.weight": (plain * scales[of].astype(np.float32)).T})


def gptq_v2(random):
    """Zero points as they are."""
    files, values = {}, {}
    for name, inputs, outputs, bits in (("a", 96, 48, 4), ("b", 96, 32, 3), ("c", 96, 16, 2)):
        levels = random.integers(0, 1 << bits, (inputs, outputs))
        zeros = random.integers(0, 1 << bits, (2, outputs))
        scales = factors(random, (2, outputs), "f2")
        of = np.arange(inputs) // (inputs // 2)
        files[name + ".qweight"] = stream(levels.T, bits).T.copy()
        files[name + ".qzeros"] = stream(zeros, bits)
        files[name + ".scales"] = scales
        plain = (levels - zeros[of]).astype(np.float32) * scales[of].astype(np.float32)
        values[name + ".weight"] = plain.T
    return files, values


def stream(levels, bits):
    """Rows as words of 32 bits, of which an element may be in two."""
    flags = (levels[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(len(levels), -1)
    flags = np.pad(flags, ((0, 0), (0, -flags.shape[1] % 32)))
    return np.packbits(flags, axis=1, bitorder="little").view("<i4").copy()


def mlx(random):
    """Groups of columns with a scale and an offset; a layer of another width."""
    files, values = {}, {}
    for name, bits, group in (("a", 4, 64), ("b", 8, 32), ("c", 3, 64), ("d", 6, 64)):
        levels = random.integers(0, 1 << bits, (20, 192))
        scales, biases = (factors(random, (20, 192 // group), "f2") for _ in range(2))
        files[name + ".weight"] = stream(levels, bits).view(np.uint32)
        files[name + ".scales"], files[name + ".biases"] = scales, biases
        wide = np.repeat(scales.astype("f4"), group, 1), np.repeat(biases.astype("f4"), group, 1)
        values[name + ".weight"] = levels.astype("f4") * wide[0] + wide[1]
    return files, values


def modelopt(random):
    packed, scale = codes(random, (20, 48), np.uint8), codes(random, (20, 6), np.uint8) % 120
    whole = factors(random, ())
    pairs = np.stack([FP4[packed & 15], FP4[packed >> 4]], -1).reshape(20, 96)
    s = scale.view(E4M3).astype("f4") * whole
    return ({"a.weight": packed, "a.weight_scale": scale.view(E4M3), "a.weight_scale_2": whole,
             "a.input_scale": whole}, {"a.weight": pairs * np.repeat(s, 16, 1)})


CONFIGS = {mlx: {"bits": 4, "group_size": 64, "mode": "affine", **{
               n: {"bits": b, "group_size": g} for n, b, g in (("b", 8, 32), ("c", 3, 64),
                                                               ("d", 6, 64))}},
           modelopt: {"quant_method": "modelopt", "quant_algo": "NVFP4"},
           gptq: {"quant_method": "gptq"},
           gptq_v2: {"quant_method": "gptq", "checkpoint_format": "gptq_v2", "group_size": 48}}
CONFIGS[large] = CONFIGS[gptq]
CASES = (per_tensor, per_row, per_block, comfy, mxfp4, gptq, gptq_v2, awq, mlx, modelopt, large)
KEPT = {"norm.weight": np.arange(5, dtype="f4"), "positions": np.arange(3, dtype="i8"),
        "plain_scale": np.ones(2, "f4"), "plain": np.ones(2, "f4")}


def save(path, tensors):
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        data = np.ascontiguousarray(tensor).tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def convert(*arguments):
    subprocess.run([*COMMAND, "convert", "--dequantize", *arguments], check=True,
                   stdout=subprocess.DEVNULL)


def same(found, dtype, values):
    if found is None or found[0] != dtype or found[1] != list(values.shape):
        return False
    with np.errstate(all="ignore"):
        want = np.ascontiguousarray(values).astype(TARGETS[dtype]).reshape(-1)
    have = np.frombuffer(found[2], TARGETS[dtype])
    nan = np.isnan(want.astype("f4"))
    word = "u%d" % want.itemsize
    return bool(np.array_equal(np.isnan(have.astype("f4")), nan)
                and np.array_equal(have.view(word)[~nan], want.view(word)[~nan]))


def unlike(found, dtype, values):
    wanted = {**values, **{n: None for n in KEPT}}
    bad = [n for n in values if not same(found.get(n), dtype, values[n])]
    bad += [n for n, t in KEPT.items()
            if found.get(n) != (NAMES[t.dtype], list(t.shape), t.tobytes())]
    return bad + ["%s is there" % n for n in found
                  if n not in wanted and not n.endswith(".bias")]


def check(case, folder):
    """(passed, problems)."""
    files, values = case(np.random.default_rng(3))
    tensors = {**files, **KEPT}
    model, out = os.path.join(folder, "model.safetensors"), os.path.join(folder, "out.safetensors")
    save(model, tensors)
    if case in CONFIGS:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"quantization_config": CONFIGS[case]}, file)
    problems, passed = [], 0
    for dtype in TARGETS:
        convert(model, "-o", out, "--dtype", dtype, "--force")
        bad = unlike(read_plain(out)[0], dtype, values)
        problems += ["%s to %s: %s" % (case.__name__, dtype, b) for b in bad]
        passed += not bad
    if case is large:
        return passed, problems
    halves, names = {}, list(tensors)
    for i, part in enumerate((names[::2], names[1::2])):
        file = "model-%05d-of-00002.safetensors" % (i + 1)
        save(os.path.join(folder, file), {n: tensors[n] for n in part})
        halves.update({n: file for n in part})
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": halves}, file)
    for threads in ("1", "3"):
        convert(index, "-o", out, "--force", "--threads", threads)
        bad = unlike(read_plain(out)[0], "BF16", values)
        problems += ["%s in shards: %s" % (case.__name__, b) for b in bad]
        passed += not bad
    apart = os.path.join(folder, "apart-" + case.__name__)
    convert(index, "-o", apart)
    found = {}
    for name in os.listdir(apart):
        if name.endswith(".safetensors"):
            found.update(read_plain(os.path.join(apart, name))[0])
    bad = unlike(found, "BF16", values)
    problems += ["%s into shards: %s" % (case.__name__, b) for b in bad]
    return passed + (not bad), problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    only = parser.parse_args().only
    passed, problems = 0, []
    for case in CASES:
        if only and case.__name__ != only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            fine, bad = check(case, folder)
        passed += fine
        problems += bad
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
