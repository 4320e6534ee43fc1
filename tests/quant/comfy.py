"""For formulas.py: numbers for blocks, packed codes, rotations, and ComfyUI's formats."""
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
        if len(numbers) == sizes[0] and rows in (None, 1) and (not columns or columns >= sizes[1]):
            numbers = numbers[:, None]
        else:
            need(rows is not None or len(numbers) == sizes[1], "a line")
            numbers = numbers[None]
    if numbers.size == 1 and sizes[0] == 1 and math.prod(shape[:-2]) == 1 and (
            sizes[1] <= (columns or 1)):
        return numbers.reshape(())
    if not math.prod(shape):
        return np.zeros(shape, "f4")
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
    return np.stack(pair, -1).reshape(*data.shape[:-1], 2 * data.shape[-1])


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
            packed = m.raw(weight)
            columns = m.shape(weight + "_s_rel")[-1:] if m.has(weight + "_s_rel") else ()
            columns = columns[0] * (group or 16) if columns else 0
            six = (columns % 32 == 0 and own[-1] * 4 == columns * 3 and columns and not (
                m.has(weight + "_codebook") or m.has(weight + "_correction")))
            codes = nibbles(packed[..., :columns // 2] if six else packed, False)
            if six:
                high = packed[..., columns // 2:].view("u1")[..., None] >> np.arange(
                    0, 8, 2, dtype="u1") & 3
                codes = (codes | high.reshape(codes.shape) << 4).astype("f4") - 32
            elif m.has(weight + "_codebook"):
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
