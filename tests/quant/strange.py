#!/usr/bin/env python3
"""convert --dequantize on quantised files of a stranger: each is made from values that are known,
declared in one of several ways, and perhaps broken. What is read must be those values; what is
declared well must be read; what contradicts itself or lacks a part must be refused.

    strange.py [COUNT [FIRST]] [-v]     needs build/safetensors (SFT_BUILD, SFT_COMMAND)

Nothing of formulas.py or of the library is used: each layout is written down here once more, from
the documents of the packages. File number N is the same in every run; -v prints what is refused.
"""
import json
import os
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
try:
    import numpy as np
except ImportError as error:
    print("quant-strange: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
F4 = np.float32


# ── Numbers ──

def small_float(exponent, mantissa, bias, inf=False):
    """What the codes of a float without sign stand for; with `inf`, as IEEE has the last ones."""
    out = []
    for code in range(1 << (exponent + mantissa)):
        e, m = code >> mantissa, code & (1 << mantissa) - 1
        value = (m / (1 << mantissa) * 2.0 ** (1 - bias) if e == 0
                 else (1 + m / (1 << mantissa)) * 2.0 ** (e - bias))
        if inf and e == (1 << exponent) - 1:
            value = float("nan") if m else float("inf")
        out.append(value)
    return np.array(out + [-v for v in out], F4)


E4M3 = small_float(4, 3, 7)
E4M3[[127, 255]] = np.nan
E5M2 = small_float(5, 2, 15, True)
E2M1 = small_float(2, 1, 1)
E2M3 = small_float(2, 3, 1)
E8M0 = np.array([2.0 ** (e - 127) for e in range(255)] + [np.nan]).astype(F4)
NF4 = np.array([-1, -0.6961928, -0.5250731, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0,
                0.07958030, 0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684,
                1], F4)
FP4 = np.array([0, .0052083333, .66666667, 1, .33333333, .5, .16666667, .25] * 2, F4)
FP4[8:] *= -1


class Draw:
    """Random codes and numbers; the generator of one file."""

    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.np = np.random.default_rng(seed)

    def codes(self, shape, bits=8):
        return self.np.integers(0, 1 << bits, shape, dtype=np.uint8)

    def finite(self, shape, table):
        good = np.nonzero(np.isfinite(table))[0].astype(np.uint8)
        return self.np.choice(good, shape)

    def scale(self, shape, dtypes=("F32",)):
        """Positive numbers as stored, and as F32."""
        numbers = (self.np.uniform(0.25, 1, shape) * 2.0 ** self.pick.choice((-9, -4, 0)))
        return wide(numbers, self.pick.choice(dtypes))


def wide(numbers, dtype):
    """((dtype, shape, bytes), as F32)"""
    numbers = np.asarray(numbers, np.float64)
    if dtype == "BF16":
        bits = numbers.astype(F4).view(np.uint32) >> 16
        return (("BF16", list(numbers.shape), bits.astype("<u2").tobytes()),
                (bits << 16).astype(np.uint32).view(F4).reshape(numbers.shape))
    held = numbers.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype])
    return (dtype, list(numbers.shape), held.tobytes()), held.astype(F4)


def raw(dtype, array):
    return (dtype, list(array.shape), np.ascontiguousarray(array).tobytes())


def text(value):
    data = (value if isinstance(value, str) else json.dumps(value)).encode()
    return ("U8", [len(data)], data)


def spread(numbers, rows, columns, shape):
    """A number for each block of rows x columns, for each value of the shape."""
    return np.repeat(np.repeat(numbers, rows, -2), columns, -1)[..., :shape[-2], :shape[-1]]


def nibbles(codes, high=False):
    """Two codes of 4 bits a byte, along the rows."""
    a, b = codes[..., 0::2], codes[..., 1::2]
    return (a << 4 | b if high else b << 4 | a).astype(np.uint8)


def words(codes, bits):
    """Rows of codes as a stream of bits, lowest first, in words of 32."""
    out = np.zeros((codes.shape[0], -(-codes.shape[1] * bits // 32)), np.uint64)
    for i in range(codes.shape[1]):
        at, shift = divmod(i * bits, 32)
        value = codes[:, i].astype(np.uint64)
        out[:, at] |= value << np.uint64(shift) & np.uint64(0xffffffff)
        if shift + bits > 32:
            out[:, at + 1] |= value >> np.uint64(32 - shift)
    return out.astype(np.uint32)


def tiled(numbers):
    """cuBLAS: tiles of 128 x 4, of which row 32 a + b has its four at 16 b + 4 a."""
    rows, columns = -(-numbers.shape[0] // 128) * 128, -(-numbers.shape[1] // 4) * 4
    full = np.zeros((rows, columns), np.uint8)
    full[:numbers.shape[0], :numbers.shape[1]] = numbers
    tiles = full.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(tiles).reshape(rows, columns)


def rotated(values, n):
    h, four = np.ones((1, 1)), np.ones((4, 4))
    for i in range(4):
        four[i, 3 - i] = -1
    while len(h) < n:
        h = np.kron(h, four)
    groups = values.astype(np.float64).reshape(-1, n)
    return (groups @ (h / np.sqrt(n))).reshape(values.shape).astype(F4)


# ── Layouts: each returns (tensors by leaf, what declares it, values, how near) ──
# Leaves begin after the module's name. What declares: ("comfy", object), ("config", object) or None.

def shape_of(d, rows=(1, 8, 20, 33, 128, 129), columns=(1, 16, 33, 96, 256)):
    return d.pick.choice(rows), d.pick.choice(columns)


def single(d):
    stored, number = d.scale((), ("F32", "F32", "BF16", "F16"))
    if d.pick.randrange(2):
        stored = (stored[0], [1], stored[2])
    return stored, number


def comfy_fp8(d):
    kind, table = d.pick.choice((("e4m3fn", E4M3), ("e5m2", E5M2)))
    codes = d.finite(shape_of(d), table)
    stored, number = single(d)
    dtype = d.pick.choice(("F8_E4M3" if kind == "e4m3fn" else "F8_E5M2", "U8"))
    out = {".weight": raw(dtype, codes), ".weight_scale": stored}
    if d.pick.randrange(2):
        out[".input_scale"] = wide(1.5, "F32")[0]
    return out, ("comfy", {"format": "float8_" + kind}), table[codes] * number, 0


def comfy_int8(d):
    n = d.pick.choice((0, 0, 16, 64, 256))
    codes = d.codes(shape_of(d, columns=(256, 512) if n else (1, 33, 96, 256)))
    form = {"format": "int8_tensorwise"}
    if d.pick.randrange(2):
        stored, number = d.scale((codes.shape[0], 1))
        form["per_row"] = True
    else:
        stored, number = single(d)
    values = codes.view(np.int8).astype(F4)
    if n:
        form.update(convrot=True, convrot_groupsize=n)
        if n == 256 and d.pick.randrange(2):
            del form["convrot_groupsize"]
        whole = rotated(values, n).astype(np.float64) * np.float64(number)
        return ({".weight": raw("I8", codes), ".weight_scale": stored}, ("comfy", form),
                whole.astype(F4), 1e-6)
    return ({".weight": raw("I8", codes), ".weight_scale": stored}, ("comfy", form),
            values * number, 0)


def padded(d, codes, pad, values, form):
    """Rows and columns to a multiple; the bias or the declaration tells the shape before that."""
    rows, columns = codes.shape
    full = np.zeros((-(-rows // pad) * pad, -(-columns // pad) * pad), np.uint8)
    full[:rows, :columns] = codes
    if full.shape != codes.shape:
        form["orig_shape"] = [rows, columns]
    return full


def comfy_mxfp8(d):
    codes = d.finite(shape_of(d), E4M3)
    form = {"format": "mxfp8"}
    full = padded(d, codes, 32, None, form)
    powers = d.np.integers(100, 140, (full.shape[0], full.shape[1] // 32), dtype=np.uint8)
    values = E4M3[codes] * spread(E8M0[powers], 1, 32, codes.shape)
    return ({".weight": raw("F8_E4M3", full),
             ".weight_scale": raw(d.pick.choice(("F8_E8M0", "U8")), tiled(powers))},
            ("comfy", form), values, 0)


def comfy_nvfp4(d):
    codes = d.codes(shape_of(d), 4)
    form = {"format": "nvfp4"}
    full = padded(d, codes, 16, None, form)
    scales = d.np.integers(1, 120, (full.shape[0], full.shape[1] // 16), dtype=np.uint8)
    stored, number = d.scale(())
    factor = spread(E4M3[scales], 1, 16, codes.shape) * number
    return ({".weight": raw("U8", nibbles(full, True)), ".weight_scale": raw("F8_E4M3",
                                                                             tiled(scales)),
             ".weight_scale_2": stored}, ("comfy", form), E2M1[codes] * factor, 0)


def comfy_w4a4(d):
    codes = d.codes(shape_of(d, columns=(256, 512)), 4)
    stored, number = d.scale((codes.shape[0],))
    if d.pick.randrange(2):
        stored = (stored[0], [codes.shape[0], 1], stored[2])
    values = ((codes.astype(np.int8) ^ 8) - 8).astype(F4)
    whole = rotated(values, 256).astype(np.float64) * number.astype(np.float64)[:, None]
    form = {"format": "convrot_w4a4"}
    if d.pick.randrange(2):
        form.update(convrot_groupsize=256)
    return ({".weight": raw("I8", nibbles(codes)), ".weight_scale": stored}, ("comfy", form),
            whole.astype(F4), 1e-6)


def comfy_w4a8(d):
    six = d.pick.randrange(3) == 0
    codes = d.codes(shape_of(d, columns=(256, 512)), 6 if six else 4)
    packed = nibbles(codes & 15)
    if six:  # rows of the low 4 bits of all, then of the high 2 of all
        packed = np.concatenate([packed, sum((codes >> 4)[:, i::4] << np.uint8(2 * i)
                                             for i in range(4))], 1)
    out = {".weight": raw("I8", packed)}
    base = codes.astype(F4) - (32 if six else 8)
    if not six and d.pick.randrange(3):
        book = d.np.integers(-127, 128, 16).astype("<f4")
        out[".weight_codebook"] = raw("F32", book)
        base = book[codes]
    rel = d.np.integers(40, 70, (codes.shape[0], codes.shape[1] // 16), dtype=np.uint8)
    out[".weight_s_rel"] = raw("F8_E4M3", rel)
    out[".weight_s_channel"], channel = d.scale((codes.shape[0],))
    whole = np.clip(np.rint(base * spread(E4M3[rel], 1, 16, codes.shape)), -127, 127)
    whole = rotated(whole.astype(F4), 256).astype(np.float64) * channel.astype(np.float64)[:, None]
    return out, ("comfy", {"format": "asym_w4a8_int8"}), whole.astype(F4), 1e-6


def comfy_awq(d):
    codes = d.codes(shape_of(d, columns=(64, 128)), 4)
    groups = (codes.shape[1] // 64, codes.shape[0])
    stored, scale = d.scale(groups, ("F32", "F16", "BF16"))
    zeros, zero = d.scale(groups, (stored[0],))
    values = ((codes.astype(F4) - 8) * spread(scale.T, 1, 64, codes.shape)
              + spread(zero.T, 1, 64, codes.shape))
    return ({".weight": raw("I8", nibbles(codes)), ".weight_scale": stored,
             ".weight_zeros": zeros}, ("comfy", {"format": "awq_w4a16"}), values, 0)


def old_fp8(d):
    codes = d.finite(shape_of(d), E4M3)
    stored, number = single(d)
    out = {".weight": raw("F8_E4M3", codes), ".scale_weight": stored}
    if d.pick.randrange(2):
        out[".scale_input"] = wide(1, "F32")[0]
    return out, None, E4M3[codes] * number, 0


def blocks(d):
    """DeepSeek: 128 x 128, the last ones cut."""
    shape = d.pick.choice(((128, 128), (300, 200), (129, 384), (7, 640), (256, 65)))
    codes = d.finite(shape, E4M3)
    stored, scale = d.scale((-(-shape[0] // 128), -(-shape[1] // 128)))
    return ({".weight": raw("F8_E4M3", codes), ".weight_scale_inv": stored},
            ("config", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
            E4M3[codes] * spread(scale, 128, 128, shape), 0)


def ct_config(kind, **weights):
    return ("config", {"quant_method": "compressed-tensors", "format": kind, "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": weights}}})


def ct_plain(d):
    is_int = d.pick.randrange(2)
    codes = d.codes(shape_of(d)) if is_int else d.finite(shape_of(d), E4M3)
    base = codes.view(np.int8).astype(F4) if is_int else E4M3[codes]
    kind = d.pick.choice(("tensor", "channel", "group"))
    if kind == "group" and codes.shape[1] % 16:
        kind = "channel"
    shape = {"tensor": (1,), "channel": (codes.shape[0], 1),
             "group": (codes.shape[0], codes.shape[1] // 16)}[kind]
    stored, scale = d.scale(shape, ("F32", "BF16", "F16"))
    out = {".weight": raw("I8" if is_int else "F8_E4M3", codes), ".weight_scale": stored}
    each = spread(scale, 1, codes.shape[1] // shape[-1], codes.shape) if kind != "tensor" else scale
    if is_int and d.pick.randrange(2):
        zero = d.np.integers(-100, 100, shape, dtype=np.int8)
        out[".weight_zero_point"] = raw("I8", zero)
        base = base - (spread(zero.astype(F4), 1, codes.shape[1] // shape[-1], codes.shape)
                       if kind != "tensor" else zero.astype(F4))
    more = {"group_size": 16} if kind == "group" else {}
    more["symmetric"] = ".weight_zero_point" not in out
    return out, ct_config("int-quantized" if is_int else "float-quantized", num_bits=8,
                          strategy=kind, **more), base * each, 0


def ct_pack(d):
    bits = d.pick.randrange(1, 9)
    rows, columns = d.pick.choice((8, 16, 40)), d.pick.choice((32, 96, 100, 128))
    group = d.pick.choice([g for g in (32, 50, columns) if columns % g == 0])
    codes = d.codes((rows, columns), bits)
    groups = columns // group
    stored, scale = d.scale((rows, groups), ("F32", "BF16", "F16"))
    half = F4(1 << (bits - 1))
    out = {".weight_packed": raw("I32", words(codes, bits)), ".weight_scale": stored,
           ".weight_shape": raw("I64", np.array([rows, columns], "<i8"))}
    base = codes.astype(F4) - half
    index = np.arange(columns) // group
    if d.pick.randrange(3) == 0 and groups > 1:
        index = d.np.permutation(index)
        out[".weight_g_idx"] = raw("I32", index.astype("<i4"))
    if d.pick.randrange(2):
        zero = d.codes((rows, groups), bits)
        out[".weight_zero_point"] = raw("I32", words(zero.T, bits).T)
        base = base - (zero.astype(F4) - half)[:, index]
    config = ct_config("pack-quantized", num_bits=bits, type="int", strategy="group",
                       symmetric=".weight_zero_point" not in out, group_size=group,
                       actorder="group" if ".weight_g_idx" in out else None)
    return out, config, base * scale[:, index], 0


def ct_fours(d):
    rows, columns = d.pick.choice((1, 8, 33)), d.pick.choice((32, 64, 160))
    kind = d.pick.choice(("nvfp4", "mxfp4", "mxfp6", "mxfp8"))
    bits = 6 if kind == "mxfp6" else 8 if kind == "mxfp8" else 4
    codes = d.finite((rows, columns), E4M3) if bits == 8 else d.codes((rows, columns), bits)
    base = (E4M3 if bits == 8 else E2M3 if bits == 6 else E2M1)[codes]
    if kind == "nvfp4":
        scales = d.np.integers(1, 120, (rows, columns // 16), dtype=np.uint8)
        whole, number = d.scale((1,))
        factor = spread(E4M3[scales] / number, 1, 16, codes.shape)
        return ({".weight_packed": raw("U8", nibbles(codes)), ".weight_global_scale": whole,
                 ".weight_scale": raw("F8_E4M3", scales)},
                ct_config("nvfp4-pack-quantized", num_bits=4, type="float", group_size=16,
                          strategy="tensor_group"), base * factor, 0)
    powers = d.np.integers(100, 140, (rows, columns // 32), dtype=np.uint8)
    packed = (codes if bits == 8 else nibbles(codes) if bits == 4
              else words(codes, 6).view(np.uint8).reshape(rows, -1)[:, :columns * 6 // 8])
    return ({".weight" if bits == 8 else ".weight_packed": raw(
        "F8_E4M3" if bits == 8 else "U8", packed), ".weight_scale": raw("U8", powers)},
            ct_config(kind + ("-quantized" if bits == 8 else "-pack-quantized"), num_bits=bits,
                      type="float", group_size=32, strategy="group"),
            base * spread(E8M0[powers], 1, 32, codes.shape), 0)


def modelopt(d):
    if d.pick.randrange(2):
        codes = d.finite(shape_of(d), E4M3)
        stored, number = single(d)
        return ({".weight": raw("F8_E4M3", codes), ".weight_scale": stored,
                 ".input_scale": wide(0.5, "F32")[0]},
                ("config", {"quant_method": "modelopt", "quant_algo": "FP8"}),
                E4M3[codes] * number, 0)
    codes = d.codes((d.pick.choice((1, 8, 33)), d.pick.choice((16, 32, 160))), 4)
    scales = d.np.integers(1, 120, (codes.shape[0], codes.shape[1] // 16), dtype=np.uint8)
    stored, number = d.scale(())
    return ({".weight": raw("U8", nibbles(codes)), ".weight_scale": raw("F8_E4M3", scales),
             ".weight_scale_2": stored},
            ("config", {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
            E2M1[codes] * (spread(E4M3[scales], 1, 16, codes.shape) * number), 0)


def gptq(d):
    bits = d.pick.choice((2, 3, 4, 8))
    columns, rows, group = d.pick.choice((64, 128)), d.pick.choice((32, 64)), 32
    version = d.pick.choice((1, 2))
    codes = d.codes((columns, rows), bits)
    groups = columns // group
    zero = d.np.integers(1 if version == 1 else 0, 1 << bits, (groups, rows)).astype(np.uint8)
    stored, scale = d.scale((groups, rows), ("F16", "BF16", "F32"))
    index = np.arange(columns) // group
    ordered = d.pick.randrange(2)
    if not ordered:
        index = d.np.permutation(index)
    values = (codes.astype(F4) - zero.astype(F4)[index]) * scale[index]
    out = {".qweight": raw("I32", words(codes.T, bits).T), ".scales": stored,
           ".qzeros": raw("I32", words(zero - (2 - version), bits)),
           ".g_idx": raw("I32", index.astype("<i4"))}
    form = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": not ordered,
            "checkpoint_format": "gptq_v2" if version == 2 else "gptq"}
    return out, ("config", form), values.T, 0


def awq(d):
    columns, rows, group = d.pick.choice((64, 128)), d.pick.choice((32, 64)), 32
    codes = d.codes((columns, rows), 4)
    zero = d.codes((columns // group, rows), 4)
    stored, scale = d.scale(zero.shape, ("F16", "BF16"))
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def packed(numbers):
        out = np.zeros((len(numbers), rows // 8), np.uint32)
        for i, column in enumerate(order):
            out |= numbers[:, column::8].astype(np.uint32) << np.uint32(4 * i)
        return raw("I32", out)
    index = np.arange(columns) // group
    values = (codes.astype(F4) - zero.astype(F4)[index]) * scale[index]
    return ({".qweight": packed(codes), ".qzeros": packed(zero), ".scales": stored},
            ("config", {"quant_method": "awq", "bits": 4, "group_size": group,
                        "version": d.pick.choice(("gemm", "GEMM"))}), values.T, 0)


def gpt_oss(d):
    experts, rows, groups = d.pick.choice((1, 2)), d.pick.choice((4, 33)), d.pick.choice((1, 3))
    codes = d.codes((experts, rows, groups * 32), 4)
    powers = d.np.integers(100, 140, (experts, rows, groups), dtype=np.uint8)
    values = E2M1[codes] * np.repeat(E8M0[powers], 32, -1)
    return ({"_blocks": raw("U8", nibbles(codes).reshape(experts, rows, groups, 16)),
             "_scales": raw("U8", powers)}, ("config", {"quant_method": "mxfp4"}),
            values.transpose(0, 2, 1), 0)


def bnb4(d):
    kind, book = d.pick.choice((("nf4", NF4), ("fp4", FP4)))
    shape = d.pick.choice(((8, 16), (3, 43), (64, 64), (1, 200)))
    count, block = shape[0] * shape[1], 64
    codes = d.codes(count + count % 2, 4)
    number = -(-count // block)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(shape)}
    out = {".weight": raw("U8", nibbles(codes, True).reshape(-1, 1)),
           ".weight.quant_map": raw("F32", book.astype("<f4"))}
    if d.pick.randrange(2):
        statistics = d.np.integers(0, 256, number, dtype=np.uint8)
        table = np.sort(d.np.uniform(-1, 1, 256)).astype("<f4")
        nested = d.np.uniform(0.1, 1, -(-number // 256)).astype("<f4")
        offset = float(F4(d.np.uniform(0.01, 0.1)))
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=offset)
        out.update({".weight.absmax": raw("U8", statistics), ".weight.nested_absmax": raw(
            "F32", nested), ".weight.nested_quant_map": raw("F32", table)})
        scale = table[statistics] * np.repeat(nested, 256)[:number] + F4(offset)
    else:
        out[".weight.absmax"], scale = d.scale((number,))
    out[".weight.quant_state.bitsandbytes__" + kind] = text(state)
    values = book[codes[:count]] * np.repeat(scale, block)[:count]
    return out, ("config", {"quant_method": "bitsandbytes", "load_in_4bit": True}), values.reshape(
        shape), 0


def bnb8(d):
    codes = d.codes(shape_of(d))
    stored, scale = d.scale((codes.shape[0],))
    out = {".weight": raw("I8", codes), ".SCB": stored}
    if d.pick.randrange(2):
        out[".weight_format"] = raw("U8", np.zeros((), np.uint8))
    values = codes.view(np.int8).astype(F4) * scale[:, None] * F4(1 / 127)
    return out, ("config", {"quant_method": "bitsandbytes", "load_in_8bit": True}), values, 0


def mlx(d):
    bits, group = d.pick.choice((2, 3, 4, 5, 6, 8)), d.pick.choice((32, 64))
    rows, columns = d.pick.choice((1, 8)), d.pick.choice((64, 128))
    codes = d.codes((rows, columns), bits)
    stored, scale = d.scale((rows, columns // group), ("F16", "BF16", "F32"))
    biases, bias = d.scale((rows, columns // group), (stored[0],))
    return ({".weight": raw("U32", words(codes, bits)), ".scales": stored, ".biases": biases},
            ("mlx", {"bits": bits, "group_size": group}),
            codes.astype(F4) * np.repeat(scale, group, 1) + np.repeat(bias, group, 1), 0)


def hqq(d):
    """Rows of a matrix of groups are packed plane by plane, the first in the highest bits."""
    bits = d.pick.choice((1, 2, 3, 4, 8))
    rows, columns, group = d.pick.choice((16, 40)), d.pick.choice((32, 64)), 32
    axis = d.pick.randrange(2)
    total = rows * columns
    shape = (total // group, group) if axis else (group, total // group)
    codes = d.codes(shape, bits)
    planes = 10 if bits == 3 else 8 // bits
    lines = -(-shape[0] // planes)
    full = np.zeros((lines * planes, shape[1]), np.uint32)
    full[:shape[0]] = codes
    packed = np.zeros((lines, shape[1]), np.uint32)
    for p in range(planes):
        packed |= full[p * lines:(p + 1) * lines] << np.uint32(bits * (planes - 1 - p))
    stored, scale = d.scale((shape[0], 1) if axis else (1, shape[1]), ("F32", "F16", "BF16"))
    zeros, zero = wide(np.full(scale.shape, (1 << bits) / 2 - 0.25), stored[0])
    values = ((codes.astype(F4) - zero) * scale).reshape(rows, columns)
    out = {".W_q": raw("I32", packed) if bits == 3 else raw("U8", packed.astype(np.uint8)),
           ".scale": stored, ".zero": zeros, ".shape": raw("I64", np.array([rows, columns], "<i8"))}
    for leaf, number in ((".nbits", bits), (".group_size", group), (".axis", axis)):
        out[leaf] = raw("I32", np.array(number, "<i4"))
    return out, ("config", {"quant_method": "hqq"}), values, 0


def quanto(d):
    is_int = d.pick.randrange(2)
    codes = d.codes(shape_of(d)) if is_int else d.finite(shape_of(d), E4M3)
    stored, scale = d.scale((codes.shape[0], 1), ("F32", "BF16"))
    base = codes.view(np.int8).astype(F4) if is_int else E4M3[codes]
    return ({".weight._data": raw("I8" if is_int else "F8_E4M3", codes), ".weight._scale": stored},
            ("config", {"quant_method": "quanto"}), base * scale, 0)


def torchao(d):
    kind = d.pick.choice(("Float8Tensor", "Int8Tensor", "IntxUnpackedToInt8Tensor", "MXTensor",
                          "MX4", "NVFP4Tensor"))
    rows, columns = d.pick.choice((8, 24, 129)), d.pick.choice((64, 128))
    members, out = {}, {}
    swizzled = bool(d.pick.randrange(2))
    if kind in ("MXTensor", "MX4", "NVFP4Tensor"):
        four = kind != "MXTensor"
        codes = d.codes((rows, columns), 4) if four else d.finite((rows, columns), E4M3)
        base, group = (E2M1 if four else E4M3)[codes], 16 if kind == "NVFP4Tensor" else 32
        numbers = d.np.integers(100, 120, (rows, columns // group), dtype=np.uint8)
        factor = spread((E4M3 if group == 16 else E8M0)[numbers], 1, group, codes.shape)
        if group == 16 and d.pick.randrange(2):
            out["_weight_per_tensor_scale"], number = d.scale(())
            factor = factor * number
        values = base * factor
        members["is_swizzled_scales"], members["block_size"] = swizzled, group
        if group == 32:
            members["elem_dtype"] = {"_type": "torch.dtype", "_data":
                                     "float4_e2m1fn_x2" if four else "float8_e4m3fn"}
        out["_weight_qdata"] = (raw("U8", nibbles(codes)) if four else raw("F8_E4M3", codes))
        out["_weight_scale"] = raw("F8_E4M3" if group == 16 else "F8_E8M0",
                                   tiled(numbers) if swizzled else numbers)
    else:
        codes = (d.finite((rows, columns), E4M3) if kind == "Float8Tensor"
                 else d.codes((rows, columns)))
        base = E4M3[codes] if kind == "Float8Tensor" else codes.view(np.int8).astype(F4)
        groups = d.pick.choice((1, columns // 32)) if kind.startswith("Intx") else 1
        out["_weight_scale"], scale = d.scale((rows, groups), ("F32", "BF16"))
        if kind != "Float8Tensor":
            zero = d.np.integers(-9, 9, (rows, groups), dtype=np.int8)
            out["_weight_zero_point"] = raw("I8", zero)
            base = base - spread(zero.astype(F4), 1, columns // groups, codes.shape)
        out["_weight_qdata"] = raw("F8_E4M3" if kind == "Float8Tensor" else "I8", codes)
        values = base * spread(scale, 1, columns // groups, codes.shape)
    return ({"." + n: t for n, t in out.items()},
            ("torchao", {"_type": "MXTensor" if kind == "MX4" else kind, "_data": members,
                         "_tensor_data_names": [n[8:] for n in sorted(out)]}),
            values, 0)


def unreadable(d):
    """What is known, and cannot be computed from the file, or is an experiment of one program."""
    kind = d.pick.randrange(7)
    codes = d.codes((16, 64))
    i32 = raw("I32", d.codes((16, 64)).view("<i4"))
    half = wide(np.ones((1, 16)), "F16")[0]
    out = [{".codes": raw("I16", codes.view("<i2")), ".codebooks": half, ".scales": half},
           {".q_weight": i32, ".q_scale": i32}, {".trellis": i32, ".suh": half},
           {".Qidxs": i32, ".SU": half}, {".indices": i32, ".centroids.weight": half},
           {".qweight": raw("I8", codes), ".wscales": half},
           {".weight": raw("F8_E4M3", codes & 63), ".weight_scale": wide(np.ones((16, 1)), "F32")[0],
            ".comfy_quant": text({"format": d.pick.choice((
                "float8_e4m3fn_rowwise", "float8_e4m3fn_blockwise", "hybrid_mxfp8",
                "int8_blockwise", "svdquant_w4a4")), "group_size": 64})}][kind]
    return out, ("none", None), np.zeros((16, 64), F4), 0


LAYOUTS = (comfy_fp8, comfy_int8, comfy_mxfp8, comfy_nvfp4, comfy_w4a4, comfy_w4a8, comfy_awq,
           old_fp8, blocks, ct_plain, ct_pack, ct_fours, modelopt, gptq, awq, gpt_oss, bnb4, bnb8,
           mlx, hqq, quanto, torchao, unreadable)
OTHERS = ({"quant_method": "gptq", "bits": 4}, {"quant_method": "awq", "bits": 4},
          {"quant_method": "mxfp4"}, {"quant_method": "hqq"}, {"quant_method": "aqlm"},
          {"quant_method": "modelopt", "quant_algo": "NVFP4"}, {"quant_method": "vptq"},
          {"quant_method": "compressed-tensors", "format": "marlin-24"})
COMFY = ("float8_e4m3fn", "float8_e5m2", "int8_tensorwise", "mxfp8", "nvfp4", "convrot_w4a4",
         "asym_w4a8_int8", "awq_w4a16", "float8_e4m3fn_rowwise", "float8_e4m3fn_blockwise",
         "int8_blockwise", "hybrid_mxfp8")


# ── Files ──

def declare(d, kind, what, module, tensors, metadata, config, how):
    """Says what the module is, `how`: in the usual place, in another, in both, in none, or in two
    places that contradict each other. True: some reader must find it."""
    if kind == "comfy":
        inner = module
        for prefix in ("model.diffusion_model.", "diffusion_model."):
            if module.startswith(prefix) and d.pick.randrange(2):
                inner = module[len(prefix):]
        other = {"format": d.pick.choice([f for f in COMFY if f != what["format"]])}
        header = other if how == "contradiction" else what
        if how in ("usual", "both", "contradiction"):
            tensors[module + ".comfy_quant"] = text(
                {"format": what["format"], "params": {k: v for k, v in what.items()
                                                      if k != "format"}}
                if d.pick.randrange(6) == 0 else what)
        if how in ("other", "both", "contradiction"):
            layers = json.loads(metadata.get("_quantization_metadata", '{"layers":{}}'))["layers"]
            layers[inner] = header["format"] if list(header) == ["format"] and d.pick.randrange(
                4) == 0 else header
            metadata["_quantization_metadata"] = json.dumps({"format_version": "1.0",
                                                             "layers": layers})
        return
    if kind == "torchao":
        metadata[module + ".weight"] = json.dumps(what)
    if kind in ("torchao", "none"):
        return
    key = "quantization" if kind == "mlx" else "quantization_config"
    if how in ("usual", "both"):
        config[key] = what
    if how in ("other", "both", "contradiction"):
        metadata["quantization_config"] = json.dumps(what)
    if how == "contradiction":
        config["quantization_config"] = d.pick.choice(
            [o for o in OTHERS if o["quant_method"] != what.get("quant_method")])


def break_one(d, module, tensors):
    """Something is not as it should be. What it was, for the report."""
    names = [n for n in tensors if n.startswith(module) and not n.endswith(
        (".bias", "comfy_quant", "input_scale", "scale_input", ".weight_format", "quant_map", "_codebook"))]
    name = d.pick.choice(names)
    dtype, shape, data = tensors[name]
    kind = d.pick.choice(("lost", "stray", "transposed", "cut", "grown", "retyped"))
    if kind == "lost":
        del tensors[name]
    elif kind == "stray":
        leaf = d.pick.choice((".weight_scale_2", ".weight_scale", ".scale_weight", ".biases",
                              ".weight_g_idx", ".weight_zero_point", ".weight_codebook", ".qzeros",
                              ".pre_quant_scale", ".weight_global_scale", ".weight_scale_inv"))
        if module + leaf in tensors:
            return None
        tensors[module + leaf] = wide(d.np.uniform(2, 3, d.pick.choice(((), (1,), (8, 1)))),
                                      "F32")[0]
    elif kind == "transposed":
        if len(shape) < 2 or shape == shape[::-1] or 1 in shape:
            return None
        tensors[name] = (dtype, shape[::-1], data)
    elif kind in ("cut", "grown"):
        if not shape or not shape[0] or not data:
            return None
        each = len(data) // shape[0]
        data = data[:-each] if kind == "cut" else data + data[:each]
        tensors[name] = (dtype, [shape[0] + (1 if kind == "grown" else -1)] + shape[1:], data)
    else:
        new = {"F32": "I32", "F16": "I16", "BF16": "U16", "I8": "BOOL", "U8": "BOOL", "I64": "F64",
               "I32": "F32", "U32": "F32", "F8_E4M3": "BOOL", "F8_E5M2": "BOOL",
               "F8_E8M0": "BOOL"}.get(dtype)
        tensors[name] = (new, shape, data)
    return "%s %s" % (name, kind)


def make(number):
    """(description, tensors, metadata, config, wanted, verdict)

    verdict: "read", must be; "refuse", must be; "either": right, refused or left as it is."""
    d = Draw(number)
    layout = LAYOUTS[number % len(LAYOUTS)]
    prefix = d.pick.choice(("", "model.diffusion_model.", "diffusion_model.", "odd.name."))
    tensors, metadata, config, wanted = {}, {}, {}, {}
    how = d.pick.choice(("usual", "usual", "usual", "other", "both", "none", "contradiction"))
    first, rotates = None, False
    for k in range(d.pick.choice((1, 1, 2))):
        module = "%slayers.%d.proj" % (prefix, k)
        leaves, declared, values, near = layout(d)
        if first and declared and declared[0] in ("config", "mlx") and declared[1] != first[1]:
            break  # one config for all
        first = first or declared
        rotates = rotates or declared and (declared[1] or {}).get("convrot")
        tensors.update({module + leaf: t for leaf, t in leaves.items()})
        name = module + ("" if "_blocks" in leaves else ".weight")
        wanted[name] = (np.asarray(values, "<f4"), near)
        if d.pick.randrange(2):
            tensors[module + ".bias"] = wide(np.zeros(values.shape[0]), "F32")[0]
        if declared:
            declare(d, *declared, module, tensors, metadata, config, how)
    tensors[prefix + "norm.weight"] = wide(np.ones(5), "F32")[0]
    if layout is old_fp8 and d.pick.randrange(2):
        tensors[prefix + "scaled_fp8"] = ("F8_E4M3", [0], b"")
    broken = break_one(d, "%slayers.0.proj" % prefix, tensors) if d.pick.randrange(3) == 0 else None
    verdict = "read" if how != "none" or layout is old_fp8 else "either"
    if how == "contradiction" and first and first[0] in ("comfy", "config", "mlx"):
        verdict = "refuse"
    if broken:
        verdict = "broken"
    if layout is unreadable and not broken:
        verdict = "refuse"
    if layout is unreadable and broken:
        verdict = "skip"
    single = (broken or "").endswith("_scale_inv cut") and all(
        t[1] == [1, 1] for n, t in tensors.items() if n == broken[:-4])
    if how == "none" and (rotates or layout in (comfy_mxfp8, comfy_w4a4) or single
                          or (broken or "").endswith("weight_zeros lost")):
        verdict = "skip"  # nothing in the file tells it from plain codes
    return ("%s, %s%s" % (layout.__name__, how, ", " + broken if broken else ""), tensors, metadata,
            config, wanted, verdict)


def save(path, tensors, metadata):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + b"".join(t[2] for t in tensors.values()))


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {n: (t["dtype"], t["shape"], data[8 + length + t["data_offsets"][0]:
                                             8 + length + t["data_offsets"][1]])
            for n, t in header.items()}


# ── Results ──

def unlike(name, values, near, found):
    """What is wrong with a result, or None."""
    if name not in found:
        return "%s is not there" % name
    dtype, shape, data = found[name]
    if dtype != "F32" or shape != list(values.shape):
        return "%s: %s %s instead of %s" % (name, dtype, shape, list(values.shape))
    have = np.frombuffer(data, "<f4").reshape(values.shape)
    with np.errstate(all="ignore"):
        off = np.abs(have.astype(np.float64) - values) > near * np.abs(values).max(initial=0)
    off |= ~np.isfinite(have) & np.isfinite(values)
    if off.any():
        at = tuple(np.argwhere(off)[0])
        return "%s%s: %r instead of %r" % (name, list(at), have[at], values[at])
    return None


def check(folder, number):
    """("right" | "refused" | "same" | "strict" | "wrong", description, text)"""
    what, tensors, metadata, config, wanted, verdict = make(number)
    path, out = (os.path.join(folder, n + ".safetensors") for n in ("model", "out"))
    if verdict == "skip":
        return "same", what, ""
    save(path, tensors, metadata)
    if config:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
    done = subprocess.run([*COMMAND, "convert", path, "-o", out, "--copy", "--dequantize",
                           "--dtype", "F32"], capture_output=True, close_fds=False, check=False)
    said = done.stderr.decode("utf-8", "replace").replace(folder + "/", "").strip()
    found = load(out) if os.path.exists(out) else None
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    if done.returncode not in (0, 1) or (done.returncode == 0) != (found is not None):
        return "wrong", what, "exit %d: %s" % (done.returncode, said)
    if done.returncode:
        if "expected" not in said:
            return "wrong", what, "without a reason: " + said
        return ("strict" if verdict == "read" else "refused"), what, said
    if verdict == "refuse":
        return "wrong", what, "read"
    same = True
    if re.search(r"(weight|_blocks|_packed|_data|_qdata|W_q) (transposed|cut|grown)$", what):
        return "right", what, ""  # codes of another shape may be as good
    for name, (values, near) in wanted.items():
        mine = {n: t for n, t in tensors.items() if n.startswith(name.rpartition(".weight")[0]
                                                                 or name)}
        if all(found.get(n) == t for n, t in mine.items()):
            if verdict == "read":
                return "wrong", what, "left as it is"
            continue
        same = False
        bad = unlike(name, values, near, found)
        if bad:
            return "wrong", what, bad
    left = [n for n in found if n not in tensors and n not in wanted]
    if left or found[[n for n in found if n.endswith("norm.weight")][0]] != tensors[
            [n for n in tensors if n.endswith("norm.weight")][0]]:
        return "wrong", what, "another tensor is changed"
    return ("same" if same else "right"), what, ""


def main():
    numbers = [int(a) for a in sys.argv[1:] if a != "-v"]
    count, first = (numbers + [600, 0][len(numbers):])[:2]
    kinds = dict.fromkeys(("right", "refused", "same", "strict", "wrong"), 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            kind, what, said = check(folder, number)
            kinds[kind] += 1
            if kind in ("wrong", "strict") or "-v" in sys.argv and said:
                print("%d %s (%s): %s" % (number, kind, what, said))
    print("%(right)d right, %(refused)d refused, %(same)d left as they are" % kinds)
    bad = kinds["wrong"] + kinds["strict"]
    good = not bad and kinds["right"] > count // 3 and kinds["refused"] > count // 10
    print("%d passed, %d failed" % (count - bad, bad or not good))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
