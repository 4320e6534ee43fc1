"""Values of quantised tensors by the formulas of docs/convert.md, written in NumPy from the
packages, not from the library: a second opinion for mutations.py.

    read(tensors, metadata, config) -> {name: (values or tensor, exact)}

A tensor is (dtype, shape, bytes). Refused is raised where a file has no meaning, or several.
"""
import json
import math

import ml_dtypes
import numpy as np

DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": ml_dtypes.bfloat16, "I64": "i8",
          "I32": "i4", "U32": "u4", "I16": "i2", "I8": "i1", "U8": "u1", "BOOL": "u1",
          "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
          "F8_E8M0": ml_dtypes.float8_e8m0fnu}
WIDE = ("F64", "F32", "F16", "BF16")
F8 = ("F8_E4M3", "F8_E5M2")
FLOATS = WIDE + F8 + ("F8_E8M0",)
FP4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], "f4")
PREFIXES = ("", "model.diffusion_model.", "diffusion_model.", "net.", "transformer.", "unet.")
IDLE = {"full_precision_matrix_mult", "full_precision_mm", "orig_dtype", "format_version",
        "per_row", "linear_dtype", "quant_group_size"}


class Refused(Exception):
    pass


def need(condition, why=""):
    if not condition:
        raise Refused(why)


def strict(pairs):
    """Members of an object; one that is told in two ways is refused."""
    out = {}
    for key, value in pairs:
        need(key not in out or out[key] == value, "twice: " + key)
        out[key] = value
    return out


def parse(text, hook=None):
    try:
        return json.loads(text, object_pairs_hook=hook)
    except (ValueError, RecursionError) as error:
        raise Refused("JSON: %s" % error) from error


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Model:
    def __init__(self, tensors, metadata, config):
        self.tensors, self.metadata = tensors, metadata
        self.config = (config or {}).get("quantization_config") or (config or {}).get(
            "quantization")
        self.mlx = bool((config or {}).get("quantization"))
        self.out, self.used = {}, set()

    def has(self, name):
        return name in self.tensors

    def dtype(self, name):
        return self.tensors[name][0]

    def shape(self, name):
        return tuple(self.tensors[name][1])

    def take(self, name, dtypes):
        """The array of a companion."""
        need(name in self.tensors, "none: " + name)
        need(self.dtype(name) in dtypes, "dtype of " + name)
        self.used.add(name)
        return self.raw(name)

    def raw(self, name, dtype=None):
        own, shape, data = self.tensors[name]
        return np.frombuffer(data, DTYPES[dtype or own]).reshape(shape)

    def matrix(self, name, dtypes=WIDE):
        """A companion that is one matrix, or a line of it."""
        out = self.take(name, dtypes)
        while out.ndim > 2 and out.shape[0] == 1:
            out = out[0]
        with np.errstate(all="ignore"):
            return out if out.dtype.itemsize == 4 and out.dtype != "f4" else out.astype("f4")

    def wide(self, name, dtypes=WIDE):
        with np.errstate(all="ignore"):
            return self.take(name, dtypes).astype("f4")


# ── Numbers for blocks ──

def block(size, count, told=None):
    """How many elements share one of `count` numbers."""
    if told and -(-size // told) == count:
        return told
    if count == 1:
        return max(size, 1)
    if count == size:
        return 1
    need(count > 0 and size > 0, "no numbers")
    equal = size // count if size % count == 0 else None
    powers = {1 << n for n in range(40) if -(-size // (1 << n)) == count}
    if equal:
        need(not powers - {equal} or equal in powers, "equal or cut")
        return equal
    need(128 in powers, "no block")
    return 128


def spread(numbers, sizes, blocks):
    for axis, most, size in zip((-2, -1), sizes, blocks):
        numbers = np.repeat(numbers, min(size, max(most, 1)), axis=axis)
    return numbers[..., :sizes[0], :sizes[1]]


def factors(numbers, shape, rows=None, columns=None, told=None):
    """Numbers for values of a shape. rows, columns: the size of blocks; None: from the shapes."""
    shape = tuple(shape)
    sizes = (1, 1) + shape
    sizes = sizes[-2:]
    free = rows is None or columns is None
    if numbers.size == 1 and free:
        return numbers.reshape(())
    if len(shape) > 2 and numbers.ndim and numbers.shape == (shape[0],) + (1,) * (numbers.ndim - 1):
        return numbers.reshape((-1,) + (1,) * (len(shape) - 1))
    if numbers.ndim == 1:
        if len(numbers) == sizes[0] and (rows or 1) == 1 and (columns is None or columns >= sizes[1]):
            numbers = numbers[:, None]
        else:
            need(rows is not None or len(numbers) == sizes[1], "a line")
            numbers = numbers[None]
    numbers = numbers.reshape(1, 1) if numbers.ndim == 0 and sizes == (1, 1) else numbers
    need(numbers.ndim >= 2, "a scalar")
    lead = numbers.shape[:-2]
    if numbers.shape[1:] and numbers.shape[0] == sizes[0] and set(numbers.shape[1:]) == {1}:
        numbers, lead = numbers.reshape(-1, 1), ()
    need(set(lead) <= {1} or lead == shape[:-2], "leading dimensions")
    need(math.prod(shape[:-2]) == 1 or numbers.ndim == len(shape), "shared by all or not")
    if set(lead) <= {1}:
        numbers = numbers.reshape(numbers.shape[-2:])
    counts = numbers.shape[-2:]
    told = told or (None, None)
    blocks = (rows or block(sizes[0], counts[0], told[0]),
              columns or block(sizes[1], counts[1], told[1]))
    need(all(-(-s // b) == c for s, b, c in zip(sizes, blocks, counts)), "count")
    return spread(numbers, sizes, blocks)


def untile(numbers, rows, columns):
    tall, broad = -(-rows // 128), -(-columns // 4)
    need(numbers.size == tall * broad * 512, "tiles")
    tiles = numbers.reshape(tall, broad, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    return tiles.reshape(tall * 128, broad * 4)[:rows, :columns]


def nibbles(data, high):
    data = data.view("u1")
    pair = (data >> 4, data & 15) if high else (data & 15, data >> 4)
    return np.stack(pair, -1).reshape(*data.shape[:-1], -1)


def unpack(words, bits, count):
    """`count` codes of each row of words."""
    data = np.ascontiguousarray(words).view("u1")
    flags = np.unpackbits(data, axis=-1, bitorder="little")
    need(flags.shape[-1] // bits >= count, "too few words")
    flags = flags[..., :count * bits].reshape(*data.shape[:-1], count, bits)
    return (flags << np.arange(bits, dtype="u1")).sum(-1, dtype="i4")


def rotate(values, size):
    need(whole(size) and size in (4, 16, 64, 256, 1024) and values.ndim == 2
         and values.shape[1] % size == 0, "rotation")
    h4 = np.array([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], "f8")
    h = np.ones((1, 1))
    while len(h) < size:
        h = np.kron(h, h4)
    with np.errstate(all="ignore"):
        turned = values.astype("f8").reshape(len(values), -1, size) @ (h / math.sqrt(size))
    return turned.reshape(values.shape).astype("f4")


def product(*numbers):
    with np.errstate(all="ignore"):
        out = numbers[0]
        for one in numbers[1:]:
            out = (out * one).astype("f4")
        return out


# ── ComfyUI ──

def comfy_format(text, marker=False):
    """What one declaration says: name, group, rotation, shape."""
    value = parse(text, strict) if marker else text
    if isinstance(value, str):
        value = {"format": value}
    need(isinstance(value, dict), "no object")
    flat, rest = {}, list(value.items())
    while rest:
        key, inner = rest.pop()
        if key == "params" and isinstance(inner, dict):
            rest += inner.items()
            continue
        need(flat.setdefault(key, inner) == inner, "twice: " + key)
    name, group, turned = flat.pop("format", ""), flat.pop("group_size", None), None
    kept = dict(flat)
    need(isinstance(name, str), "format")
    size, shape = flat.pop("convrot_groupsize", None), flat.pop("orig_shape", None)
    need(group is None or whole(group), "group_size")
    need(size is None or whole(size), "convrot_groupsize")
    need(shape is None or (isinstance(shape, list) and len(shape) == 2 and all(map(whole, shape))),
         "orig_shape")
    if "convrot" in flat:
        turned = flat.pop("convrot")
        need(isinstance(turned, bool), "convrot")
        turned = None if name not in ("convrot_w4a4", "asym_w4a8_int8") and not turned else turned
    need(not set(flat) - IDLE, "unknown: %s" % flat)
    if turned is None and size and "convrot" not in kept:
        turned = True
    return name, group, turned, size, shape and tuple(shape)


def comfy_layers(m):
    """{module: format}"""
    found = {}
    text = m.metadata.get("_quantization_metadata")
    if text is not None:
        layers = parse(text, lambda pairs: pairs)
        need(isinstance(layers, list), "no object")
        inside = [v for k, v in layers if k == "layers"]
        need(len(inside) == 1 and isinstance(inside[0], list), "layers")
        for name, value in inside[0]:
            plain = json.loads(text, object_pairs_hook=None)["layers"][name] \
                if not isinstance(value, list) else revive(value)
            form = comfy_format(plain)
            full = next((p + name for p in PREFIXES if m.has(p + name + ".weight")), name)
            need(found.get(full, form) == form, "two formats")
            found[full] = form
    for name in m.tensors:
        if name.endswith(".comfy_quant") and len(name) > 12:
            module = name[:-12]
            try:
                text = m.tensors[name][2].decode()
            except UnicodeDecodeError as error:
                raise Refused("UTF-8") from error
            form = comfy_format(text, True)
            need(found.get(module, form) == form, "marker and metadata")
            found[module] = form
    return found


def revive(pairs):
    """Pairs of parse() as an object."""
    if isinstance(pairs, list) and all(isinstance(p, tuple) for p in pairs):
        return strict([(k, revive(v)) for k, v in pairs])
    return pairs


def padded(m, module, values, form, pad):
    rows, columns = values.shape[-2:]
    name, bias = module + ".weight", module + ".bias"
    want = form[4] or (rows, columns)
    if m.has(bias):
        need(not form[4] or m.shape(bias) == (want[0],), "bias")
        if len(m.shape(bias)) == 1:
            want = (m.shape(bias)[0], want[1])
    up = tuple(-(-w // pad) * pad for w in want)
    need(all(w == v or u == v for w, v, u in zip(want, values.shape[-2:], up)), "padding")
    m.out[name] = (values[..., :want[0], :want[1]], True)


def comfy(m, module, form):
    name, group, turned, size, shape = form
    weight = module + ".weight"
    if not m.has(weight):
        need(name in F8_NAMES or (name == "int8_tensorwise" and not turned), "no weight")
        return
    dtype, own = m.dtype(weight), m.shape(weight)
    m.used.add(weight)
    exact, pad = True, None
    rotates = name in ("int8_tensorwise", "convrot_w4a4", "asym_w4a8_int8")
    need(turned is not True or rotates, "convrot")
    need(turned is not False or name == "int8_tensorwise" or not rotates, "convrot")
    with np.errstate(all="ignore"):
        if name in F8_NAMES:
            kind = F8_NAMES[name]
            need(dtype in (kind, "U8") and group is None, "dtype")
            scale = module + (".scale_weight" if not m.has(weight + "_scale") else ".weight_scale")
            numbers = m.wide(scale)
            need(numbers.size == 1, "a factor")
            values = product(m.raw(weight, kind).astype("f4"), numbers.reshape(()))
        elif name == "int8_tensorwise":
            need(dtype == "I8" and group is None, "dtype")
            numbers = m.wide(weight + "_scale")
            need(numbers.size == 1 or not own or numbers.shape == (own[-2:] + (1,))[:1]
                 or factors(numbers, own, None, max(own[-1], 1)) is not None, "rows")
            numbers = factors(numbers, own, 1 if numbers.size != 1 else None,
                              max(own[-1], 1) if own else None)
            values = product(m.raw(weight).astype("f4"), numbers)
            if turned:
                values, exact = rotate(values, size or 256), False
        elif name in ("mxfp8", "nvfp4"):
            unit, pad = (32, 32) if name == "mxfp8" else (16, 16)
            need(group in (None, unit) and len(own) == 2, "group")
            if name == "mxfp8":
                need(dtype in ("F8_E4M3", "U8"), "dtype")
                codes = m.raw(weight, "F8_E4M3").astype("f4")
            else:
                need(dtype == "U8", "dtype")
                codes = FP4[nibbles(m.raw(weight), True)]
            kind = "F8_E8M0" if name == "mxfp8" else "F8_E4M3"
            m.take(weight + "_scale", (kind, "U8"))
            rows, columns = codes.shape
            if form[4] or m.has(module + ".bias"):  # blocks of what is left
                padded(m, module, codes, form, pad)
                rows, columns = m.out[weight][0].shape
            need(m.shape(weight + "_scale")[-2:] == (-(-rows // 128) * 128,
                                                     -(-(-(-columns // unit)) // 4) * 4)
                 or math.prod(m.shape(weight + "_scale"))
                 == -(-rows // 128) * 512 * -(-(-(-columns // unit)) // 4), "tiles")
            numbers = untile(m.raw(weight + "_scale", kind).astype("f4").reshape(-1), rows,
                             -(-columns // unit))
            if name == "nvfp4":
                more = m.take(weight + "_scale_2", ("F32",)).astype("f4")
                need(more.size == 1, "a factor")
                numbers = product(numbers, more.reshape(()))
            codes = codes[:rows, :columns]
            numbers = np.repeat(numbers, unit, 1)[:, :columns]
            values = product(codes, numbers)
            m.out[weight] = (values, True)
        elif name == "convrot_w4a4":
            need(dtype in ("I8", "U8") and len(own) >= 2 and group is None, "dtype")
            codes = nibbles(m.raw(weight), False).astype("i4")
            codes -= (codes >= 8) * 16
            numbers = m.wide(weight + "_scale")
            need(numbers.size == len(codes), "rows")
            values = product(codes.astype("f4"), factors(numbers, codes.shape, 1, codes.shape[1]))
            values, exact = rotate(values, size or 256), False
        elif name == "asym_w4a8_int8":
            need(dtype in ("I8", "U8") and len(own) >= 2, "dtype")
            codes = nibbles(m.raw(weight), False)
            if m.has(weight + "_codebook"):
                book = m.wide(weight + "_codebook")
                need(book.shape == (16,), "codebook")
                codes = book[codes]
            else:
                codes = codes.astype("f4") - 8
            relative = m.wide(weight + "_s_rel", FLOATS)
            relative = factors(relative, codes.shape, 1, group or 16)
            steps = np.rint(product(codes, relative))
            steps = np.where(steps > 127, 127, np.where(steps < -127, -127, steps)) + np.float32(0)
            channel = m.wide(weight + "_s_channel")
            need(channel.size == len(codes), "rows")
            values = product(steps, factors(channel, codes.shape, 1, codes.shape[1]))
            if m.has(weight + "_correction"):
                more = m.matrix(weight + "_correction")
                need(more.ndim == 2 or 1 in codes.shape, "correction")
                values = values + factors(more.T, codes.shape, 1, group or 16)
            values, exact = rotate(values.astype("f4"), size or 256), False
        elif name == "awq_w4a16":
            need(dtype in ("I8", "U8") and len(own) >= 2, "dtype")
            codes = nibbles(m.raw(weight), False).astype("f4") - 8
            numbers = [factors(m.matrix(weight + end).T, codes.shape, 1, group or 64)
                       for end in ("_scale", "_zeros")]
            values = (product(codes, numbers[0]) + numbers[1]).astype("f4")
        else:
            raise Refused("format " + name)
    need(pad or not shape or shape == values.shape, "orig_shape")
    m.out[weight] = (values, exact)
    known = {weight + end for end in ("_scale", "_scale_2", "_s_rel", "_s_channel", "_codebook",
                                      "_correction", "_zeros")}
    known |= {module + end for end in (".scale_weight", ".comfy_quant", ".input_scale",
                                       ".scale_input", ".output_scale", ".input_global_scale",
                                       ".bias")}
    for other in m.tensors:
        if other.rpartition(".")[0] == module and other != weight:
            need(other in known and (other in m.used or other.rpartition(".")[2] in (
                "bias", "input_scale", "scale_input", "output_scale", "input_global_scale",
                "comfy_quant")), "more: " + other)
            if not other.endswith(".bias"):
                m.used.add(other)


F8_NAMES = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


# ── What quantization_config and names alone tell ──

def weights_of(config):
    groups = config.get("config_groups")
    return [g["weights"] for g in groups.values() if isinstance(g, dict)
            and isinstance(g.get("weights"), dict)] if isinstance(groups, dict) else []


def only(values):
    values = [v for v in values if whole(v) or isinstance(v, list) and v]
    return values[0] if values and all(v == values[0] for v in values) else None


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
    size = only([w.get("group_size") for w in weights_of(config)]) or config.get("group_size")
    pair = only([w.get("block_structure") for w in weights_of(config)]) or config.get(
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
    m.out[name] = (product(values, whole_of(m.wide(scale, FLOATS))), True)


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
    m.out[name] = (product(values, factors(powers(m, name + "_scale"), values.shape, 1, 32)), True)


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
        m.out[base] = (product(values, numbers), True)
    return run


def pack(m, name, stem, config, told):
    need(m.dtype(name) == "I32", "dtype")
    shape = m.take(stem + "_shape", ("I64", "I32"))
    need(shape.shape == (2,) and (shape >= 0).all() and (shape < 1 << 40).all(), "shape")
    rows, columns = (int(n) for n in shape)
    own = m.shape(name)
    need(own == (rows, own[-1]), "rows")
    widths = {w.get("num_bits") for w in weights_of(config)} & set(range(1, 9)) or set(range(1, 9))
    widths = [b for b in widths if -(-columns * b // 32) == own[1]]
    need(len(widths) == 1, "bits")
    bits = widths[0]
    half = 1 << bits - 1
    codes = unpack(m.raw(name), bits, columns) - half
    numbers = m.matrix(stem + "_scale")
    size = only([w.get("group_size") for w in weights_of(config)])
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
    need(m.dtype(name) == "I32" and len(m.shape(name)) == 2, "dtype")
    order = np.argsort([0, 2, 4, 6, 1, 3, 5, 7])
    inputs, words = m.shape(name)

    def spread_out(data):
        codes = unpack(data, 4, data.shape[1] * 8)
        return codes.reshape(len(data), -1, 8)[..., order].reshape(len(data), -1)
    scales, zeros = m.matrix(stem + ".scales"), m.matrix(stem + ".qzeros", ("I32",))
    need(zeros.ndim == 2 and zeros.shape[1] == words and scales.size == len(zeros) * words * 8,
         "groups")
    size = block(inputs, len(zeros), told_size(config, inputs, len(zeros)))
    place = np.arange(inputs) // size
    codes = spread_out(m.raw(name)) - spread_out(zeros)[place]
    scales = scales.reshape(len(zeros), -1)
    m.out[stem + ".weight"] = (product(codes.astype("f4"), scales[place]).T, True)


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
    values = product(values, factors(numbers, values.shape, 1, max(((1,) + values.shape)[-1], 1)))
    m.out[name] = (product(values, np.float32(1 / 127)), True)


def mlx(m, name, stem, config, told):
    need(m.dtype(name) == "U32" and len(m.shape(name)) >= 1, "dtype")
    layer = config.get(stem)
    need(layer is not False, "not quantised")
    layer = layer if isinstance(layer, dict) else {}
    bits, size = (layer.get(k, config.get(k)) for k in ("bits", "group_size"))
    need(whole(bits) and bits <= 8 and (size is None or whole(size)), "bits")
    columns = m.shape(name)[-1] * 32 // bits
    codes = unpack(m.raw(name), bits, columns).astype("f4")
    numbers = [m.wide(stem + end) for end in (".scales", ".biases")]
    for one in numbers:
        need(one.ndim >= 1 and one.shape[-1] * (size or 1) >= columns, "groups")
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
