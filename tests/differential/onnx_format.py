"""ONNX models against the onnx package: messages of the right fields, some of them twice, of another
wire type, packed or not, in longer numbers than needed, of values out of range."""
import os
import warnings

import ml_dtypes  # noqa: F401  (onnx makes arrays of its dtypes)
import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from run import Skip

warnings.filterwarnings("ignore")

SUFFIX = ".onnx"
OPTIONS = "-"
BOTH = 0.2

DTYPES = {1: "F32", 2: "U8", 3: "I8", 4: "U16", 5: "I16", 6: "I32", 7: "I64", 9: "BOOL", 10: "F16",
          11: "F64", 12: "U32", 13: "U64", 14: "C64", 16: "BF16", 17: "F8_E4M3",
          18: "F8_E4M3FNUZ", 19: "F8_E5M2", 20: "F8_E5M2FNUZ", 23: "F4", 24: "F8_E8M0"}
BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64,
        16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 23: 4, 24: 8}
FIELDS = {1: 4, 14: 4, 11: 10, 7: 7, 12: 11, 13: 11}  # the others: int32_data
WIRE = {4: 5, 10: 1}
NAMES = (b"a", b"b", b"w", b"a.b", b"weight", b"\xc3\xa9", b"", b"\xff", b"__metadata__")


# ── Writing ──

def varint(rng, value, most=10):
    """value, seldom in more bytes than it needs."""
    value &= 2**64 - 1
    out = []
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    while rng.random() < 0.004 and len(out) < most + 1:
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def field(rng, number, value):
    """Bytes, or a number of wire type 0; seldom of another wire type."""
    if rng.random() < 0.003:
        wire = rng.choice((0, 1, 2, 5))
        bits = value if isinstance(value, int) else 1
        return varint(rng, number << 3 | wire, 5) + (
            varint(rng, bits) if wire == 0 else varint(rng, 2, 5) + b"\x01\x02" if wire == 2
            else (bits & 2**64 - 1).to_bytes(8, "little")[:8 if wire == 1 else 4])
    if isinstance(value, int):
        return varint(rng, number << 3) + varint(rng, value)
    return varint(rng, number << 3 | 2, 5) + varint(rng, len(value), 5) + value


def numbers(rng, number, values):
    """Of a repeated field: packed or not, in one or more fields."""
    wire = WIRE.get(number, 0)
    width = {0: None, 1: 8, 5: 4}[wire]

    def one(value):
        return varint(rng, value) if wire == 0 else (value % 2**(8 * width)).to_bytes(width, "little")
    out, at = [], 0
    while at < len(values) or (not out and rng.random() < 0.5):
        many = len(values) - at if rng.random() < 0.7 else rng.randrange(len(values) - at + 1)
        body = [one(v) for v in values[at:at + many]]
        if rng.random() < 0.7:
            out.append(varint(rng, number << 3 | 2) + varint(rng, sum(map(len, body)))
                       + b"".join(body))
        else:
            out += [varint(rng, number << 3 | wire) + part for part in body]
        at += many
    return out


def element(rng, kind):
    if rng.random() < 0.05:
        return rng.choice((-1, 2**31, -2**31, 2**32 + 1, 2**63, 255, 256, 65536, 2, -129))
    return rng.randrange(2) if kind == 9 else rng.randrange(128)


def external(rng, need):
    pairs = [(b"location", b"in.onnx")]
    if rng.random() < 0.8:
        pairs.append((b"offset", rng.choice((b"0", b"1", b"16", b"016", b"", b" 1", b"+1", b"-1"))
                      if rng.random() < 0.3 else b"%d" % rng.randrange(20)))
    if rng.random() < 0.9:
        pairs.append((b"length", b"%d" % (need + rng.choice((0, 0, 0, 0, 0, 0, 1, -1)))))
    if rng.random() < 0.1:
        pairs.append(rng.choice(((b"checksum", b"00"), (b"location", b"none"), (b"offset", b"0"),
                                 (b"other", b"x"))))
    if rng.random() < 0.1:
        rng.shuffle(pairs)
    out = []
    for key, value in pairs:
        parts = [field(rng, 1, key), field(rng, 2, value)]
        if rng.random() < 0.02:
            parts.insert(rng.randrange(3), field(rng, rng.choice((1, 2, 3)), b"offset"))
        if rng.random() < 0.02:
            del parts[rng.randrange(len(parts))]
        out.append(field(rng, 13, b"".join(parts)))
    return [*out, field(rng, 14, rng.choice((1,) * 12 + (0, 2, 2**32 + 1)))]


def tensor(rng, name):
    kind = rng.choice(tuple(DTYPES))
    dims = [rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(rng.randrange(4))]
    count = int(np.prod(dims, dtype=int))
    if rng.random() < 0.02:
        dims = [rng.choice((-1, 2**31, 2**63, 2**62)) if rng.random() < 0.5 else d for d in dims]
    need = (count * BITS[kind] + 7) // 8
    parts = numbers(rng, 1, dims) + [field(rng, 2, kind), field(rng, 8, name)]
    form = rng.random()
    if form < 0.4:
        length = need + (rng.choice((-1, 1, 4)) if rng.random() < 0.05 else 0)
        parts.append(field(rng, 9, rng.randbytes(max(length, 0))))
    elif form < 0.55:
        parts += external(rng, need)
    else:
        many = count * 2 if kind == 14 else (count + 1) // 2 if kind == 23 else count
        many += rng.choice((-1, 1)) if rng.random() < 0.05 and many else 0
        parts += numbers(rng, FIELDS.get(kind, 5), [element(rng, kind) for _ in range(many)])
    if rng.random() < 0.2:
        parts.append(field(rng, rng.choice((12, 100, 6)), b"words"))
    if rng.random() < 0.06:  # again, or of another tensor
        parts.append(rng.choice((field(rng, 8, rng.choice(NAMES)), field(rng, 2, rng.choice(tuple(DTYPES))),
                                 field(rng, 9, rng.randbytes(need)), field(rng, 14, 0),
                                 field(rng, 3, b""), field(rng, 3, b"\x08\x01"), field(rng, 1, 1),
                                 field(rng, 4, b"\0\0\0\0"), field(rng, 5, 1), field(rng, 7, 1))))
    if rng.random() < 0.15:
        rng.shuffle(parts)
    return b"".join(parts)


def graph(rng):
    names = rng.sample(NAMES[:6], rng.randrange(1, 5))
    if rng.random() < 0.05:
        names.append(rng.choice(NAMES))
    parts = [field(rng, 5, tensor(rng, name)) for name in names]
    if rng.random() < 0.1:
        parts.append(field(rng, rng.choice((2, 10, 11, 100)), b""))
    if rng.random() < 0.2:  # a node, a constant in it
        inner = field(rng, 1, b"value") + field(rng, 20, 4) + field(rng, 5, tensor(rng, b"n"))
        parts.insert(0, field(rng, 1, field(rng, 2, b"out") + field(rng, 4, b"Constant")
                              + field(rng, 5, inner)))
    if rng.random() < 0.02:
        parts.append(field(rng, 15, field(rng, 1, tensor(rng, b"s"))))
    if rng.random() < 0.05:
        rng.shuffle(parts)
    return b"".join(parts)


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data))
        what = rng.random()
        if what < 0.5:
            data[at] = rng.choice((rng.randrange(256), data[at] ^ 1 << rng.randrange(8)))
        elif what < 0.75:
            del data[at:at + rng.choice((1, 1, 2, 8))]
        else:
            data[at:at] = rng.choice((rng.randbytes(1), bytes(data[at:at + rng.randrange(1, 12)])))
        if not data:
            break
    return bytes(data)


def make(rng):
    parts = [field(rng, 1, 8), field(rng, 7, graph(rng))]
    if rng.random() < 0.3:
        parts.insert(1, field(rng, 2, b"made by hand"))
    if rng.random() < 0.02:
        parts.append(field(rng, 7, graph(rng)))
    data = b"".join(parts)
    return mutated(rng, data) if rng.random() < 0.15 else data


# ── Reading ──

def read(path):
    with open(path, "rb") as file:
        data = file.read()
    model = onnx.ModelProto.FromString(data)
    out = {}
    for t in model.graph.initializer:
        if t.data_type in (8, 15, 21, 22, 25, 26, 27, 28):
            raise Skip("a dtype that safetensors does not have")
        array = numpy_helper.to_array(t, os.path.dirname(path))
        raw = np.ascontiguousarray(array).tobytes()
        if t.data_type == 23:
            codes = np.frombuffer(raw, np.uint8)
            if codes.size % 2:
                raise Skip("half a byte of F4")
            raw = (codes[0::2] & 15 | codes[1::2] << 4).astype(np.uint8).tobytes()
        out[t.name] = (DTYPES[t.data_type], list(t.dims), raw)
    return out


def fields_of(data):
    """(number, wire type, all of it, contents) of the fields of a message."""
    at = 0

    def varint_at(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at
    while at < len(data):
        start = at
        tag, at = varint_at(at)
        begin = at
        if tag & 7 == 0:
            at = varint_at(at)[1]
        elif tag & 7 == 2:
            size, begin = varint_at(at)
            at = begin + size
        else:
            at += {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, tag & 7, data[start:at], data[begin:at]


def tensors_alone(data):
    """The initializers, and nothing else of the model: what the import reads."""
    graphs = [body for number, wire, _, body in fields_of(data) if (number, wire) == (7, 2)]
    return b"\x08\x08" + b"".join(
        wrap(7, inner)
        for inner in (b"".join(wrap(5, b"".join(part for n, _, part, _ in fields_of(body) if n != 16))
                               for number, wire, _, body in fields_of(graph)
                               if (number, wire) == (5, 2)) for graph in graphs))


def wrap(number, body):
    size, out = len(body), [number << 3 | 2]
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out + [size]) + body


def allowed(why, data, report):  # pylint: disable=unused-argument
    """Why it is right to read what onnx refuses."""
    words = str(why)
    if isinstance(why, ValueError) and b"location" in data and (
            "reshape" in words or "buffer size must be a multiple" in words):
        return "external data without a length may go on behind the tensor"
    if isinstance(why, ValueError) and "array is too big" in words:
        return "no elements, in sizes that NumPy does not have"
    if isinstance(why, DecodeError):
        onnx.ModelProto.FromString(tensors_alone(data))
        return "malformed where no weights are"
    return None
