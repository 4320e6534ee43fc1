"""Flax's MessagePack against flax.serialization.msgpack_restore: maps with keys of many kinds, some
of them twice, arrays of other lengths than their shapes, and arrays in chunks."""
import re
import struct

import jax
import ml_dtypes
import msgpack
import numpy as np
from flax import serialization

from run import Skip
from onnx_format import mutated

jax.config.update("jax_platforms", "cpu")

SUFFIX = ".msgpack"
OPTIONS = "all"
BOTH = 0.2
COMPLEX = re.compile(rb"\xc7.\x02|\xd8\x02", re.S)  # extensions that may be one

NAMES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "int8": "I8",
         "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
         "uint32": "U32", "uint64": "U64", "bool": "BOOL", "complex64": "C64",
         "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
         "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}
WORDS = (b"a", b"b", b"kernel", b"params", b"0", b"1", b"a.b", b"\xc3\xa9", b"", b"\xff",
         b"__msgpack_chunked_array__", b"shape", b"chunks")


# ── Writing ──

def head(rng, count, short, code, most=15):
    """Of a list, map, text or bytes: seldom longer than it needs to be."""
    if short is not None and count <= most and rng.random() < 0.97:
        return bytes([short | count])
    codes = [(c, f) for c, f in code if count < 1 << 8 * struct.calcsize(f)]
    which, form = codes[0] if rng.random() < 0.95 else rng.choice(codes)
    return bytes([which]) + struct.pack(form, count)


def text(rng, words):
    return head(rng, len(words), 0xa0, ((0xd9, ">B"), (0xda, ">H"), (0xdb, ">I")), 31) + words


def binary(rng, data):
    return head(rng, len(data), None, ((0xc4, ">B"), (0xc5, ">H"), (0xc6, ">I"))) + data


def listed(rng, values):
    return head(rng, len(values), 0x90, ((0xdc, ">H"), (0xdd, ">I"))) + b"".join(values)


def mapped(rng, pairs):
    return head(rng, len(pairs), 0x80, ((0xde, ">H"), (0xdf, ">I"))) \
        + b"".join(k + v for k, v in pairs)


def number(rng, value):
    forms = [bytes([value])] if 0 <= value < 128 else []
    forms += [bytes([code]) + struct.pack(form, value)
              for code, form in ((0xcc, ">B"), (0xcd, ">H"), (0xd0, ">b"), (0xd3, ">q"), (0xcf, ">Q"))
              if (0 if form.isupper() else -1 << 8 * struct.calcsize(form) - 1) <= value
              < 1 << 8 * struct.calcsize(form) - (not form[1].isupper())
              and (value >= 0 or not form[1].isupper())]
    return forms[0] if rng.random() < 0.9 else rng.choice(forms)


def array(rng, kind=None, shape=None):
    kind = kind or rng.choice(tuple(NAMES))
    if shape is None:
        shape = [rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randrange(4))]
    size = int(np.prod(shape, dtype=int)) * np.dtype(getattr(ml_dtypes, kind, kind)).itemsize
    size += rng.choice((-1, 1, 4)) if rng.random() < 0.04 else 0
    if rng.random() < 0.03:
        shape = [rng.choice((-1, 2**31, 4, 0)) for _ in shape]
    word = kind.encode() if rng.random() > 0.03 else rng.choice((b"<f4", b">f4", b"f2", b"object",
                                                                 b"V2", b"complex128", b"\xff"))
    as_text = rng.random() < 0.9
    parts = [listed(rng, [number(rng, d) for d in shape]),
             text(rng, word) if as_text else binary(rng, word),
             binary(rng, rng.randbytes(max(size, 0)))]
    if kind == "bool" and size >= 0:
        parts[2] = binary(rng, bytes(rng.randrange(2) for _ in range(size)))
    if rng.random() < 0.02:
        rng.choice((parts.pop, lambda: parts.append(b"\xc0"), lambda: rng.shuffle(parts)))()
    return extension(rng, 1 if rng.random() < 0.9 else 3, listed(rng, parts))


def extension(rng, kind, body):
    if len(body) in (1, 2, 4, 8, 16) and rng.random() < 0.5:
        return bytes([0xd4 + (1, 2, 4, 8, 16).index(len(body)), kind & 255]) + body
    return head(rng, len(body), None, ((0xc7, ">B"), (0xc8, ">H"), (0xc9, ">I"))) \
        + bytes([kind & 255]) + body


def chunks(rng):
    kind = rng.choice(tuple(NAMES))
    sizes = [rng.choice((1, 2, 3)) for _ in range(rng.randrange(1, 4))]
    total = sum(sizes)
    shape = [total] if rng.random() < 0.6 else [1, total] if rng.random() < 0.8 else [total, 2]
    parts = [(text(rng, b"%d" % i), array(rng, kind, [n] if rng.random() < 0.95 else [n, 1]))
             for i, n in enumerate(sizes)]
    if rng.random() < 0.05:
        parts[rng.randrange(len(parts))] = (text(rng, rng.choice(WORDS)), rng.choice((
            array(rng), b"\xc0")) if rng.random() < 0.7 else chunks(rng))
    pairs = [(text(rng, b"__msgpack_chunked_array__"), rng.choice((b"\xc3", b"\xc3", b"\xc2"))),
             (text(rng, b"shape"), mapped(rng, [(text(rng, b"%d" % i), number(rng, n))
                                                for i, n in enumerate(shape)])),
             (text(rng, b"chunks"), mapped(rng, parts))]
    if rng.random() < 0.1:
        pairs.append((text(rng, rng.choice(WORDS)), array(rng)))
    if rng.random() < 0.1:
        rng.shuffle(pairs)
    return mapped(rng, pairs)


def key(rng):
    if rng.random() < 0.93:
        return text(rng, rng.choice(WORDS[:7]) if rng.random() < 0.95 else rng.choice(WORDS))
    return rng.choice((number(rng, rng.choice((0, 1, 2))), b"\xc3", b"\xc0", b"\xca\x3f\x80\0\0",
                       binary(rng, b"a"), b"\x90", extension(rng, 5, b"x"), b"\xcb\x3f\xf0" + bytes(6)))


def value(rng, depth):
    what = rng.random()
    if what < 0.5:
        return array(rng)
    if what < 0.55:
        return chunks(rng)
    if what < 0.72 and depth < 4:
        return mapping(rng, depth + 1)
    if what < 0.8 and depth < 4:
        return listed(rng, [value(rng, depth + 1) for _ in range(rng.randrange(3))])
    return rng.choice((b"\xc0", b"\xc2", number(rng, 7), b"\xca\x3f\x80\0\0", text(rng, b"words"),
                       binary(rng, b"data"), extension(rng, 2, b"\x92\xcb" + bytes(8) + b"\xcb" + bytes(8)),
                       extension(rng, 7, b"data")))


def mapping(rng, depth):
    pairs = {key(rng): value(rng, depth) for _ in range(rng.randrange(5) if depth else 4)}
    pairs = list(pairs.items())
    if pairs and rng.random() < 0.04:
        pairs.append((rng.choice(pairs)[0], value(rng, depth)))
    return mapped(rng, pairs)


def make(rng):
    first = (text(rng, b"params"), mapping(rng, 1))
    body = mapping(rng, 0)
    data = bytes([0x82]) + first[0] + first[1] + text(rng, b"state") + body
    return mutated(rng, data) if rng.random() < 0.2 else data


# ── Reading ──

def leaves(tree, path, out):
    if isinstance(tree, (np.ndarray, np.generic)):
        name = ".".join(path)
        if name in out:
            raise Skip("two tensors of one name")
        kind = NAMES.get(tree.dtype.name)
        if kind is None or tree.dtype.byteorder == ">":
            raise Skip("a dtype that safetensors does not have")
        out[name] = (kind, list(tree.shape), np.ascontiguousarray(tree).tobytes())
    elif isinstance(tree, dict):
        for word, inner in tree.items():
            leaves(inner, [*path, word if isinstance(word, str) else str(word)], out)
    elif isinstance(tree, list):
        for i, inner in enumerate(tree):
            leaves(inner, [*path, str(i)], out)


def read(path):
    with open(path, "rb") as file:
        tree = serialization.msgpack_restore(file.read())
    out = {}
    leaves(tree, [], out)
    return out


def allowed(why, data, report):  # pylint: disable=unused-argument
    """Why it is right to read what flax refuses."""
    words = str(why)
    if isinstance(why, UnicodeDecodeError):
        return "text that is no name need not be UTF-8"
    if isinstance(why, ValueError) and "array is too big" in words:
        return "no elements, in sizes that NumPy does not have"
    if "code must be 0~127" in words:
        return "extensions of other types are not looked at"
    if isinstance(why, (msgpack.ExtraData, TypeError, ValueError)) and COMPLEX.search(data):
        return "what a complex number is made of is not looked at"
    return None
