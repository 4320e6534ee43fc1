"""Values of quantised tensors by the formulas of docs/convert.md, written in NumPy from the
packages, not from the library: a second opinion for mutations.py.

    read(tensors, metadata, config) -> Model: out[name] is (values, whether they are exact);
                                       used are the names of companions

A tensor is (dtype, shape, bytes). Refused is raised where a file has no meaning, or several.
"""
import math

import ml_dtypes
import numpy as np
from comfy import (block, comfy, comfy_layers, DTYPES, F8, factors, FLOATS, FP4, Model, need,
                   nibbles, parse, product, Refused, unpack, untile, whole, WIDE)


# ── What quantization_config and names alone tell ──

def weights_of(config):
    groups = config.get("config_groups")
    return [g["weights"] for g in groups.values() if isinstance(g, dict)
            and isinstance(g.get("weights"), dict)] if isinstance(groups, dict) else []


def only(values):
    values = [v for v in values if v]
    return values[0] if values and all(v == values[0] for v in values) else None


def told_group(config):
    return only(n for n in (w.get("group_size") for w in weights_of(config)) if whole(n))


def allows(config, mlx):
    """The layouts that a quantization_config stores; None: there is none."""
    if config is None:
        return None
    need(isinstance(config, dict), "config")
    method = config.get("quant_method", config.get("method"))
    if method is None and "bits" in config and "group_size" in config:
        method = "mlx"
    need(isinstance(method, str), "method")
    method = method.replace("_", "-")
    for key in ("transform_config", "sparsity_config"):
        need(not config.get(key) or config[key].get("format") == "dense", key)
    form, algorithm = config.get("format"), config.get("quant_algo")
    if method == "compressed-tensors":
        names = {"pack-quantized": "pack", "nvfp4-pack-quantized": "nvfp4", "mxfp4-pack-quantized":
                 "mxfp4-pack", "mxfp6-pack-quantized": "mxfp6-pack", "mxfp8-quantized": "mxfp8"}
        plain = ("float-quantized", "int-quantized", "naive-quantized", "dense")
        need(form in (None, "mixed-precision") or form in names or form in plain, "format")
        return set(names.values()) | {"scaled"} if form in (None, "mixed-precision") else {
            names.get(form, "scaled")}
    if method == "modelopt":
        need(algorithm in (None, "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4",
                           "W4A16_NVFP4"), "quant_algo")
        return ({"scaled"} if algorithm not in ("NVFP4", "W4A16_NVFP4") else set()) | (
            {"modelopt"} if algorithm in (None, "NVFP4", "W4A16_NVFP4") else set())
    if method == "gptq":
        kinds = {config[k] for k in ("checkpoint_format", "format") if config.get(k) is not None}
        need(len(kinds) <= 1 or "checkpoint_format" not in config
             or kinds == {config["checkpoint_format"]}, "v1 or v2")
        need(kinds <= {"gptq"} or kinds == {"gptq_v2"}, "format")
        return {"gptq-v2" if kinds == {"gptq_v2"} else "gptq"}
    if method == "awq":
        need(config.get("version") in (None, "gemm", "GEMM") and form in (None, "gemm"), "version")
        return {"awq"}
    if method == "mlx":
        need(config.get("mode") in (None, "affine"), "mode")
    known = {"fp8": {"scaled", "old"}, "fbgemm-fp8": {"scaled"}, "bitsandbytes": {"bnb4", "bnb8"},
             "hqq": {"hqq"}, "quanto": {"quanto"}, "mxfp4": {"mxfp4"}, "mlx": {"mlx"}}
    need(method in known, "method")
    return known[method]


ALONE = {"scaled", "old", "mxfp4", "gptq", "gptq-v2", "awq", "bnb4", "bnb8", "hqq", "quanto"}


def scaled(m, name, stem, config, told):
    scale = next((name + end for end in ("_scale_inv", "_scale") if m.has(name + end)), None)
    need(scale, "scale")
    size = told_group(config) or config.get("group_size")
    pair = only(n for n in (
        w.get("block_structure") for w in weights_of(config)) if isinstance(n, list)) or config.get(
        "weight_block_size")
    pair = pair if isinstance(pair, list) and len(pair) == 2 else [None, None]
    told_sizes = (pair[0], size if whole(size) else pair[1])
    if scale.endswith("_scale_inv") and not any(told_sizes):
        told_sizes = (128, 128)
    own = m.shape(name)
    sizes = ((1, 1) + own)[-2:]

    def whole_of(numbers):
        counts = ((1, 1) + numbers.shape)[-2:]
        return factors(numbers, own, told=tuple(
            t if t and -(-s // t) == c else None for t, s, c in zip(told_sizes, sizes, counts)))
    values = m.raw(name).astype("f4")
    if told and m.has(name + "_zero_point"):
        zero = m.take(name + "_zero_point", ("I8",)).astype("f4")
        values = (values - whole_of(zero)).astype("f4")
    m.out[name] = (product(values, whole_of(m.wide(scale, FLOATS))).reshape(own), True)


def old(m, name, stem, config, told):
    numbers = m.wide(stem + ".scale_weight", FLOATS)
    m.out[name] = (product(m.raw(name).astype("f4"), factors(numbers, m.shape(name))), True)


def powers(m, name):
    m.take(name, ("U8", "F8_E8M0"))
    return m.raw(name, "F8_E8M0").astype("f4")


def grouped(size, numbers, columns):
    """A row of packed codes and one number for each `size` columns."""
    return factors(numbers, (numbers.shape[-2] if numbers.ndim > 1 else 1, columns), 1, size)


def mxfp8(m, name, stem, config, told):
    need(m.dtype(name) in F8, "dtype")
    values = m.raw(name).astype("f4")
    whole = product(values, factors(powers(m, name + "_scale"), values.shape, 1, 32))
    m.out[name] = (whole.reshape(values.shape), True)


def packs(kind):
    def run(m, name, stem, config, told):
        base = stem if name.endswith("_packed") else name
        data = m.raw(name)
        if kind == "mxfp6-pack":
            bits = np.unpackbits(data, axis=-1, bitorder="little")
            codes = (bits.reshape(*data.shape[:-1], -1, 6) << np.arange(6, dtype="u1")).sum(-1)
            values = codes.astype("u1").view(ml_dtypes.float6_e2m3fn).astype("f4")
        else:
            values = FP4[nibbles(data, False)]
        if kind in ("mxfp4-pack", "mxfp6-pack"):
            numbers = factors(powers(m, base + "_scale"), values.shape, 1, 32)
            numbers = numbers.reshape(values.shape) if numbers.size == values.size else numbers
        else:
            numbers = m.take(base + "_scale", ("F8_E4M3",)).astype("f4")
            more = m.wide(base + ("_global_scale" if kind == "nvfp4" else "_scale_2"))
            numbers = factors(numbers, values.shape, 1, 16)
            need(more.size == 1 or (values.ndim > 2 and more.shape[:1] == values.shape[:1]
                                    and more.size == len(values)), "a factor")
            more = more.reshape((-1,) + (1,) * (values.ndim - 1)) if more.size > 1 \
                else more.reshape(())
            with np.errstate(all="ignore"):
                numbers = (numbers / more if kind == "nvfp4" else numbers * more).astype("f4")
        m.out[base] = (product(values, numbers).reshape(values.shape), True)
    return run


def pack(m, name, stem, config, told):
    need(m.dtype(name) == "I32", "dtype")
    shape = m.take(stem + "_shape", ("I64", "I32"))
    need(shape.shape == (2,) and (shape >= 0).all() and (shape < 1 << 40).all(), "shape")
    rows, columns = (int(n) for n in shape)
    own = m.shape(name)
    need(own == (rows, own[-1]), "rows")
    widths = [n for n in (w.get("num_bits") for w in weights_of(config)) if whole(n) and n <= 8]
    widths = [b for b in set(widths) or range(1, 9) if -(-columns * b // 32) == own[1]]
    need(len(widths) == 1, "bits")
    bits = widths[0]
    half = 1 << bits - 1
    codes = unpack(m.raw(name), bits, columns) - half
    numbers = m.matrix(stem + "_scale")
    size = told_group(config)
    place = None
    if m.has(stem + "_g_idx"):
        place = m.take(stem + "_g_idx", ("I32",))
        need(place.shape == (columns,) and numbers.ndim == 2, "g_idx")
        if (place == -1).all():
            place = None
        else:
            need((place >= 0).all() and (place < numbers.shape[-1]).all(), "g_idx")

    def spread_out(values):
        if place is not None:
            need(values.shape == (rows, numbers.shape[-1]), "groups")
            return values[:, place]
        count = values.shape[-1] if values.ndim else 1
        return factors(values, codes.shape, 1 if values.size != 1 else None, None,
                       (None, size if size and -(-columns // size) == count else None))
    if m.has(stem + "_zero_point"):
        zeros = m.matrix(stem + "_zero_point", ("I32",))
        need(zeros.ndim == 2 and zeros.shape[0] == -(-rows * bits // 32), "zero points")
        zeros = unpack(np.ascontiguousarray(zeros.T), bits, rows).T - half
        codes = codes - spread_out(zeros)
    m.out[stem] = (product(codes.astype("f4"), spread_out(numbers)), True)


def mxfp4(m, name, stem, config, told):
    need(m.dtype(name) == "U8" and len(m.shape(name)) >= 3, "dtype")
    data = m.raw(name)
    scale = powers_u8(m, stem + "_scales")
    values = FP4[nibbles(data.reshape(*data.shape[:-2], -1), False)]
    columns = values.shape[-1]
    need(scale.shape[:-1] == values.shape[:-1] and scale.shape[-1] == -(-columns // 32), "scales")
    values = product(values, np.repeat(scale, 32, -1)[..., :columns])
    m.out[stem] = (np.swapaxes(values, -1, -2), True)


def powers_u8(m, name):
    m.take(name, ("U8",))
    return m.raw(name, "F8_E8M0").astype("f4")


def gptq(version):
    def run(m, name, stem, config, told):
        need(m.dtype(name) == "I32" and len(m.shape(name)) == 2, "dtype")
        words, outputs = m.shape(name)
        scales, zeros = m.matrix(stem + ".scales"), m.matrix(stem + ".qzeros", ("I32",))
        need(zeros.ndim == 2 and zeros.shape[1] * 32 % outputs == 0, "bits")
        bits = zeros.shape[1] * 32 // outputs
        need(1 <= bits <= 8, "bits")
        inputs = words * 32 // bits
        codes = unpack(np.ascontiguousarray(m.raw(name).T), bits, inputs)
        zeros = unpack(zeros, bits, outputs)
        need(scales.size == len(zeros) * outputs, "groups")
        if version == 1:
            zeros = (zeros + 1) % (1 << bits)
        if not told:
            need((zeros == 1 << bits - 1).all(), "which version")
        count = len(zeros)
        if m.has(stem + ".g_idx"):
            place = m.take(stem + ".g_idx", ("I32",))
            need(place.shape == (inputs,), "g_idx")
            if (place == -1).all():
                place = np.arange(inputs) // block(inputs, count, told_size(config, inputs, count))
            need((place >= 0).all() and (place < count).all(), "g_idx")
        else:
            need(config.get("desc_act") is not True or count == 1, "desc_act")
            place = np.arange(inputs) // block(inputs, count, told_size(config, inputs, count))
        scales = scales.reshape(count, outputs)
        m.out[stem + ".weight"] = (product((codes - zeros[place].T).astype("f4"),
                                           scales[place].T), True)
    return run


def told_size(config, size, count):
    told = config.get("group_size")
    return told if whole(told) and -(-size // told) == count else None


def awq(m, name, stem, config, told):
    need(m.dtype(name) == "I32" and len(m.shape(name)) >= 2, "dtype")
    need(math.prod(m.shape(name)[:-2]) == 1, "a matrix")
    order = np.argsort([0, 2, 4, 6, 1, 3, 5, 7])
    inputs, words = m.shape(name)[-2:]

    def spread_out(data):
        codes = unpack(data, 4, data.shape[1] * 8)
        return codes.reshape(len(data), -1, 8)[..., order].reshape(len(data), -1)
    scales, zeros = m.matrix(stem + ".scales"), m.matrix(stem + ".qzeros", ("I32",))
    need(zeros.ndim == 2 and zeros.shape[1] == words and scales.size == len(zeros) * words * 8,
         "groups")
    size = block(inputs, len(zeros), told_size(config, inputs, len(zeros)))
    place = np.arange(inputs) // size
    codes = spread_out(m.raw(name).reshape(inputs, words)) - spread_out(zeros)[place]
    scales = scales.reshape(len(zeros), -1)
    values = product(codes.astype("f4"), scales[place]).T
    m.out[stem + ".weight"] = (values.reshape(m.shape(name)[:-2] + values.shape), True)


def state_of(m, name):
    states = [name + ".quant_state.bitsandbytes__" + kind for kind in ("nf4", "fp4")]
    state = next((s for s in states if m.has(s)), None)
    need(state, "state")
    m.used.add(state)
    try:
        value = parse(m.tensors[state][2].decode())
    except UnicodeDecodeError as error:
        raise Refused("state") from error
    need(isinstance(value, dict) and whole(value.get("blocksize")), "blocksize")
    shape = value.get("shape")
    need(isinstance(shape, list) and 0 < len(shape) < 9
         and all(isinstance(n, int) and n >= 0 for n in shape), "shape")
    return value, shape


def bnb4(m, name, stem, config, told):
    state, shape = state_of(m, name)
    count, size = math.prod(shape), state["blocksize"]
    codes = nibbles(np.frombuffer(m.tensors[name][2], "u1"), True)
    need(len(codes) == count + count % 2, "count")
    book = m.wide(name + ".quant_map")
    need(book.shape == (16,), "quant_map")
    blocks = -(-count // size)
    absmax = m.take(name + ".absmax", ("F32", "U8"))
    need(absmax.shape == (blocks,), "absmax")
    need((absmax.dtype == np.uint8) == m.has(name + ".nested_absmax")
         == m.has(name + ".nested_quant_map"), "nested")
    if absmax.dtype == np.uint8:
        inner = m.take(name + ".nested_absmax", ("F32",))
        inner_book = m.take(name + ".nested_quant_map", ("F32",))
        need(whole(state.get("nested_blocksize")) and inner_book.shape == (256,)
             and inner.shape == (-(-blocks // state["nested_blocksize"]),), "nested")
        offset = np.float32(state.get("nested_offset", 0))
        place = np.arange(blocks) // state["nested_blocksize"]
        absmax = (product(inner_book[absmax], inner[place]) + offset).astype("f4")
    place = np.arange(count) // size
    m.out[name] = (product(book[codes[:count]], absmax[place]).reshape(shape), True)


def bnb8(m, name, stem, config, told):
    need(m.dtype(name) == "I8", "dtype")
    if m.has(stem + ".weight_format"):
        m.used.add(stem + ".weight_format")
        need(not any(m.tensors[stem + ".weight_format"][2][:8]), "weight_format")
    numbers = m.take(stem + ".SCB", ("F32",))
    values = m.raw(name).astype("f4")
    need(numbers.size == math.prod(values.shape[:-1]) or values.ndim > 2, "rows")
    more = factors(numbers, values.shape, 1, max(((1,) + values.shape)[-1], 1))
    m.out[name] = (product(values, more, np.float32(1 / 127)).reshape(values.shape), True)


def mlx(m, name, stem, config, told):
    need(m.dtype(name) == "U32" and len(m.shape(name)) >= 1, "dtype")
    layer = config.get(stem, {})
    need(layer is not False and layer is not None, "not quantised")
    layer = layer if isinstance(layer, dict) else {}
    need(layer.get("mode", "affine") == "affine", "mode")
    need(all(whole(layer[k]) for k in ("bits", "group_size") if k in layer), "sizes")
    bits, size = (layer.get(k, config.get(k)) for k in ("bits", "group_size"))
    need(whole(bits) and bits <= 8, "bits")
    size = size if whole(size) else None
    columns = m.shape(name)[-1] * 32 // bits
    codes = unpack(m.raw(name), bits, columns).astype("f4")
    numbers = [m.wide(stem + end) for end in (".scales", ".biases")]
    for one in numbers:
        need(one.ndim >= 1 and (not size or one.shape[-1] * size >= columns), "groups")
    numbers = [factors(one, codes.shape, 1, size) for one in numbers]
    m.out[name] = ((product(codes, numbers[0]) + numbers[1]).astype("f4"), True)


HQQ = ("view_as_float", "quant_scale", "quant_zero", "nbits", "group_size", "axis", "packing",
       "unpack_view_dtype", "compute_dtype", "offload_meta", "encoded_state_dict",
       "stores_quant_config", "channel_wise", "optimize", "round_zero")


def hqq(m, name, stem, config, told):
    need(m.dtype(name) in ("U8", "I32") and len(m.shape(name)) == 2, "dtype")
    for leaf in (".view_as_float", ".quant_scale", ".quant_zero"):
        if m.has(stem + leaf):
            need(not any(m.tensors[stem + leaf][2][:8]), leaf)
    shape = m.take(stem + ".shape", ("I64", "I32"))
    need(shape.shape == (2,) and (shape >= 0).all() and (shape < 1 << 40).all(), "shape")
    data = m.raw(name)
    count, (lines, width) = int(shape[0]) * int(shape[1]), data.shape
    need(width and lines and count % width == 0, "shape")
    rows = count // width
    if data.dtype == np.uint8:
        planes = rows // lines
        need(rows % lines == 0 and planes in (1, 2, 4, 8), "planes")
        bits = 8 // planes
    else:
        planes, bits = 10, 3
        need(-(-rows // 10) == lines, "planes")
    codes = np.concatenate([data.astype("i8") >> bits * (planes - 1 - p) & (1 << bits) - 1
                            for p in range(planes)])[:rows].astype("f4")
    numbers = []
    for leaf in (".zero", ".scale"):
        one = m.wide(stem + leaf)
        need(one.shape in ((rows, 1), (1, width)), "numbers")
        numbers.append(one)
    with np.errstate(all="ignore"):
        values = product((codes - numbers[0]).astype("f4"), numbers[1])
    m.out[stem + ".weight"] = (values.reshape([int(n) for n in shape]), True)
    m.used |= {stem + "." + leaf for leaf in HQQ}


def quanto(m, name, stem, config, told):
    need(m.dtype(name) in ("I8",) + F8, "dtype")
    values = m.raw(name).astype("f4")
    numbers = m.wide(stem + "._scale")
    numbers = factors(numbers, values.shape, 1 if numbers.size != 1 else None,
                      max(((1,) + values.shape)[-1], 1))
    m.out[stem] = (product(values, numbers), True)


# ── torchao: a key of the metadata names the class of each tensor ──

FLOATS8 = {"float8_e4m3fn", "float8_e5m2"}


def class_of(m, name):
    """The object of the tensor that has these codes, M._weight_qdata, and its name; or None."""
    module, _, leaf = name.rpartition(".")
    if not module or not leaf.endswith("_qdata") or leaf[:1] != "_" or leaf == "_qdata":
        return None
    key = module + "." + leaf[1:-len("_qdata")]
    return (key, m.metadata[key]) if key in m.metadata else None


def torchao(m, name, key, text):
    value = parse(text)
    need(isinstance(value, dict), "object")
    kind, members, names = (value.get(k) for k in ("_type", "_data", "_tensor_data_names"))
    members = members if isinstance(members, dict) else {}
    stem = name[:-len("qdata")]
    need(key not in m.tensors, "the result's name")
    parts = {n: stem + n for n in ("scale", "zero_point", "per_tensor_scale")
             if m.has(stem + n)}
    need(names is None or (isinstance(names, list) and set(names) == {*parts, "qdata"}),
         "parts")
    for leaf in TELLING:
        need(not m.has(stem[:-1] + leaf) or leaf[1:] in parts, "more: " + leaf)
    sizes = members.get("block_size")
    four = m.dtype(name) == "U8"
    if kind in ("MXTensor", "NVFP4Tensor"):
        group = 32 if kind == "MXTensor" else 16
        need(sizes == group and not isinstance(sizes, bool), "block_size")
        tiled = members.get("is_swizzled_scales")
        need(isinstance(tiled, bool) and "zero_point" not in parts, "is_swizzled_scales")
        if kind == "MXTensor":
            elements = members.get("elem_dtype")
            elements = elements.get("_data") if isinstance(elements, dict) else elements
            need(elements in ({"float4_e2m1fn_x2"} if four else FLOATS8), "elem_dtype")
        need(m.dtype(name) in (("U8",) if kind == "NVFP4Tensor" else ("U8",) + F8), "dtype")
        data = m.raw(name)
        values = FP4[nibbles(data, False)] if four else data.astype("f4")
        need(not tiled or math.prod(values.shape[:-2]) <= 1, "a matrix")
        numbers = (powers(m, stem + "scale") if group == 32 else
                   m.take(stem + "scale", ("F8_E4M3",)).astype("f4"))
        count = -(-values.shape[-1] // group) if values.ndim else 1
        if tiled:
            numbers = untile(numbers, ((1, 1) + values.shape)[-2], count)
        need(tiled or numbers.shape[-1:] == (count,) or numbers.ndim < 2, "numbers")
        numbers = factors(numbers, values.shape, 1, group)
        if "per_tensor_scale" in parts:
            need(group == 16, "parts")
            more = m.take(stem + "per_tensor_scale", ("F32",))
            need(more.size == 1, "a factor")
            numbers = product(numbers, more.reshape(()))
        m.out[key] = (product(values, numbers).reshape(values.shape), True)
        return
    need(kind in ("Float8Tensor", "Int8Tensor", "IntxUnpackedToInt8Tensor"), "_type")
    need("per_tensor_scale" not in parts, "parts")
    floats = kind == "Float8Tensor"
    need(m.dtype(name) in (F8 if floats else ("I8",)), "dtype")
    values = m.raw(name).astype("f4")
    scale = m.wide(stem + "scale", FLOATS)
    whole_scale = factors(scale, values.shape)
    if isinstance(sizes, list):
        rows, columns = ((1, 1) + values.shape)[-2:]
        need(len(sizes) == values.ndim == 2 and all(whole(n) for n in sizes), "block_size")
        counts = (rows / sizes[0], columns / sizes[1])
        have = ((1, 1) + scale.shape)[-2:] if scale.size > 1 else (1, 1)
        if scale.ndim > 2 and scale.size == len(scale):
            have = (len(scale), 1)
        need(counts == have or (scale.ndim == 1 and counts[0] * counts[1] == scale.size),
             "block_size")
    if "zero_point" in parts:
        need(not floats, "parts")
        zero = m.take(stem + "zero_point", ("I8",)).astype("f4")
        need(zero.size == scale.size, "zero points")
        values = (values - factors(zero, values.shape)).astype("f4")
    m.out[key] = (product(values, whole_scale).reshape(values.shape), True)


# layout: (end of the codes' name, dtypes of codes, a companion, its function)
LAYOUTS = (
    ("scaled", "", F8 + ("I8",), ("_scale_inv", "_scale"), scaled),
    ("old", ".weight", F8 + ("I8",), (".scale_weight",), old),
    ("mxfp8", "", F8, ("_scale",), mxfp8),
    ("pack", "_packed", ("I32",), ("_scale", "_shape", "_zero_point", "_g_idx"), pack),
    ("nvfp4", "_packed", ("U8",), ("_scale", "_global_scale"), packs("nvfp4")),
    ("mxfp4-pack", "_packed", ("U8",), ("_scale",), packs("mxfp4-pack")),
    ("mxfp6-pack", "_packed", ("U8",), ("_scale",), packs("mxfp6-pack")),
    ("modelopt", "", ("U8",), ("_scale", "_scale_2"), packs("modelopt")),
    ("mxfp4", "_blocks", ("U8",), ("_scales",), mxfp4),
    ("gptq", ".qweight", ("I32",), (".scales", ".qzeros", ".g_idx"), gptq(1)),
    ("gptq-v2", ".qweight", ("I32",), (".scales", ".qzeros", ".g_idx"), gptq(2)),
    ("awq", ".qweight", ("I32",), (".scales", ".qzeros"), awq),
    ("bnb4", "", ("U8", "F16", "BF16", "F32"), (".absmax", ".quant_map"), bnb4),
    ("bnb8", ".weight", ("I8",), (".SCB",), bnb8),
    ("mlx", ".weight", ("U32",), (".scales", ".biases"), mlx),
    ("hqq", ".W_q", ("U8", "I32"), (".scale", ".zero", ".shape"), hqq),
    ("quanto", "._data", F8 + ("I8",), ("._scale",), quanto),
)
# What is beside codes and changes values.
TELLING = ("_scale", "_scale_inv", "_scales", "_scale_2", "_global_scale", "_zero_point", "_g_idx",
           "_zeros", "_s_rel", "_s_channel", "_codebook", "_correction")


# What is beside codes and changes none.
ACTIVATIONS = (".input_scale", ".scale_input", ".output_scale", ".input_global_scale")


def meanings(m, name, config, told):
    """The layouts that names and dtypes of a tensor and of one companion fit."""
    for key, end, dtypes, companions, function in LAYOUTS:
        stem = name[:len(name) - len(end)]
        if not name.endswith(end) or m.dtype(name) not in dtypes or not stem:
            continue
        if any(m.has(stem + c) for c in companions) and key in told:
            yield key, end, stem, function


def read(tensors, metadata, config):
    m = Model(tensors, metadata, config)
    layers = comfy_layers(m)
    for module, form in layers.items():
        comfy(m, module, form)
    narrow = [n for n in tensors if m.dtype(n) in F8 + ("F8_E8M0", "I8", "U8", "I32", "U32", "I16")]
    allowed = allows(m.config, m.mlx) if narrow else None
    told = ALONE if allowed is None else allowed
    for name in tensors:
        if name in m.used or name in m.out:
            continue
        found = class_of(m, name)
        if found:
            torchao(m, name, *found)
            m.used |= {name} | {name.rpartition(".")[0] + leaf for leaf in ACTIVATIONS}
            continue
        errors, done = [], False
        for key, end, stem, function in list(meanings(m, name, m.config, told)):
            before = set(m.used), dict(m.out)
            try:
                function(m, name, stem, m.config or {}, allowed is not None)
                need(all(n == name or n not in tensors for n in set(m.out) - set(before[1])),
                     "the result's name")
                m.used.add(name)
                check_others(m, name, stem)
                module = stem.rpartition(".")[0] if end in ("", "._data", "_packed", "_blocks") \
                    else stem
                m.used |= {module + leaf for leaf in ACTIVATIONS}
                done = True
                break
            except (Refused, ValueError, IndexError, TypeError, ArithmeticError) as error:
                m.used, m.out = before
                errors.append("%s: %s" % (key, error))
        need(done or not errors, "%s: %s" % (name, "; ".join(errors)))
    if m.out:
        m.used |= {n for n in tensors if n.rpartition(".")[2] == "scaled_fp8"}
    return m


def check_others(m, name, stem):
    base = next((name[:-len(e)] for e in ("_packed", "_blocks") if name.endswith(e)), name)
    for end in TELLING:
        need(not m.has(base + end) or base + end in m.used, "more: " + base + end)
