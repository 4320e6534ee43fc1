#!/usr/bin/env python3
"""Small models in other formats, without the libraries that write them.

  foreign.py KIND FILE

of the kinds below. PyTorch's archives are made by hand: a pickle that names torch's functions, and
records.
"""
import collections
import io
import json
import os
import pickle
import struct
import sys
import zipfile


# ── PyTorch ──

class Storage:
    """The bytes of one record; an element may have several parts."""

    def __init__(self, values, kind="f", name="FloatStorage", parts=1):
        self.raw = struct.pack("<%d%s" % (len(values), kind), *values)
        self.count, self.name, self.key = len(values) // parts, name, None


class Tensor:
    """A view of a storage."""

    def __init__(self, storage, shape, offset=0, strides=None):
        self.storage, self.shape, self.offset = storage, tuple(shape), offset
        if strides is None:
            strides, step = [], 1
            for size in reversed(self.shape):
                strides.insert(0, step)
                step *= size
        self.strides = tuple(strides)

    def __reduce__(self):
        return (Name("torch._utils", "_rebuild_tensor_v2"),
                (self.storage, self.offset, self.shape, self.strides, False,
                 collections.OrderedDict()))


class Quantised(Tensor):
    """Bytes with a scale for all: qint8."""

    def __reduce__(self):
        return (Name("torch._utils", "_rebuild_qtensor"),
                (self.storage, self.offset, self.shape, self.strides,
                 (Name("torch", "per_tensor_affine"), 0.05, 3), False, collections.OrderedDict()))


class Name:
    """A function or class by its name only."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):  # pickle wants a callable
        raise TypeError("not to be called")


class Call:
    """What a pickle loader would call: a function by its name, with a text."""

    def __init__(self, module, name, text):
        self.function, self.text = Name(module, name), text

    def __reduce__(self):
        return self.function, (self.text,)


class Module:
    """A pickled torch.nn.Module."""

    def __init__(self, parameters, buffers, modules, temporary=(), **others):
        self.state = {"_parameters": parameters, "_buffers": buffers,
                      "_non_persistent_buffers_set": set(temporary), "_modules": modules, **others}

    def __reduce__(self):
        return Name("model", "Module"), (), self.state


class Pickler(pickle._Pickler):  # pylint: disable=protected-access
    """Storages are persistent, records of their own; names are written as they are."""

    dispatch = dict(pickle._Pickler.dispatch)  # pylint: disable=protected-access

    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.storages = []

    def save_name(self, name):
        self.write(b"c" + name.module.encode() + b"\n" + name.name.encode() + b"\n")

    dispatch[Name] = save_name

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        if obj.key is None:
            obj.key = str(len(self.storages))
            self.storages.append(obj)
        return ("storage", Name("torch", obj.name), obj.key, "cpu", obj.count)


def entry(archive, name, data):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    archive.writestr(info, data)


def torch(path, tree):
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(tree)
    with zipfile.ZipFile(path, "w") as archive:
        entry(archive, "archive/data.pkl", file.getvalue())
        for storage in pickler.storages:
            entry(archive, "archive/data/" + storage.key, storage.raw)
        entry(archive, "archive/version", b"3\n")


def tensor(*shape, first=0):
    count = 1
    for size in shape:
        count *= size
    return Tensor(Storage([float(first + i) for i in range(count)]), shape)


def state(first=0):
    return {"encoder.weight": tensor(2, 3, first=first), "encoder.bias": tensor(2, first=first)}


def state_dict(path):
    torch(path, collections.OrderedDict(state()))


def calls(path):
    """A state dict, behind a call of os.system that would leave a file."""
    torch(path, {**state(), "hook": Call("os", "system", "touch called")})


def training(path):
    moments = {i: {"step": tensor(1), "exp_avg": tensor(2, 3)} for i in range(2)}
    torch(path, {"state_dict": {"module." + k: v for k, v in state().items()},
                 "ema": state(100), "epoch": 3, "lr": 0.001, "name": "run",
                 "optimizer": {"state": moments, "param_groups": [{"lr": 0.001}]}})


def tied(path):
    """One tensor under two names, and one that overlaps it."""
    storage = Storage([0.0, 1.0, 2.0, 3.0])
    torch(path, {"embed.weight": Tensor(storage, (2, 2)), "head.weight": Tensor(storage, (2, 2)),
                 "row": Tensor(storage, (2,), 2), "own": tensor(2)})


def tied_plain(path):
    """As tied, but without a dot in the names."""
    storage = Storage([0.0, 1.0])
    torch(path, {"emb": Tensor(storage, (2,)), "head": Tensor(storage, (2,))})


def wide(path):
    """complex128, which safetensors lacks, beside a tensor."""
    torch(path, {"plain": tensor(2),
                 "wide": Tensor(Storage([1.0, 2.0], "d", "ComplexDoubleStorage", 2), (1,))})


def module(path):
    """A module in another: a parameter, buffers, one of them not persistent, and an attribute."""
    inner = Module({"weight": tensor(2)}, {"mean": tensor(1), "mask": tensor(3)}, {}, ["mask"],
                   stride=tensor(4))
    torch(path, Module({}, {"mask": tensor(5)}, {"inner": inner}, training=True))


def keyed(path):
    """A tensor, and one that is a key."""
    torch(path, {"a.weight": tensor(2), "seen": {tensor(3): True}})


def z_image(path):
    """A tiny Z-Image as trained, and its average, which begins at 100."""
    shapes = {"layers.0.adaLN_modulation.0.weight": (2, 2), "layers.0.attention.qkv.weight": (6, 2),
              "noise_refiner.0.attention.qkv.weight": (6, 2), "norm_final.weight": (2,),
              "x_embedder.weight": (2, 1)}
    torch(path, {"state_dict": {k: tensor(*v) for k, v in shapes.items()},
                 "ema": {k: tensor(*v, first=100) for k, v in shapes.items()}})


def expanded(path):
    """Four bytes that ask for four terabytes."""
    torch(path, {"huge": Tensor(Storage([1.0]), (1 << 20, 1 << 20), 0, (0, 0))})


def quantised(path):
    """A matrix and a vector in qint8, a vector in F32."""
    def coded(*shape):
        count = shape[0] * shape[-1] if len(shape) > 1 else shape[0]
        values = [i * 37 % 255 - 127 for i in range(count)]
        return Quantised(Storage(values, "b", "QInt8Storage"), shape)
    torch(path, {"up.weight": coded(64, 64), "up.bias": coded(64), "norm.weight": tensor(4)})


def folder(path):
    """Two shards and their index."""
    os.mkdir(path)
    names = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    torch(os.path.join(path, names[0]), {"a.weight": tensor(2, 2)})
    torch(os.path.join(path, names[1]), {"b.weight": tensor(3, first=4)})
    with open(os.path.join(path, "pytorch_model.bin.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": 28},
                   "weight_map": {"a.weight": names[0], "b.weight": names[1]}}, file)


# ── The others ──

def npz(path):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
    arrays = {"weight": ("<f4", "(2, 2)", struct.pack("<4f", 1, 2, 3, 4)),
              "half": ("|V2", "(3,)", struct.pack("<3H", 0x3f80, 0x4000, 0x4040))}
    with zipfile.ZipFile(path, "w") as archive:
        for name, (descr, shape, raw) in arrays.items():
            text = (header % (descr, shape)).encode()
            text += b" " * (-(len(text) + 11) % 64) + b"\n"
            entry(archive, name + ".npy",
                  b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + raw)


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(path, architecture="llama"):
    """A matrix in Q8_0 blocks, a vector in F32."""
    pairs = {"general.architecture": architecture, "general.name": "Small"}
    rows = [("blk.0.attn_q.weight", (32, 2), 8, 68), ("output_norm.weight", (4,), 0, 16)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs))
    for key, value in pairs.items():
        head += gguf_text(key) + struct.pack("<I", 8) + gguf_text(value)
    at, data = 0, b""
    for name, shape, kind, size in rows:
        head += gguf_text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, kind, at)
        if kind == 8:
            raw = b"".join(struct.pack("<e32b", 0.5, *range(i, i + 32)) for i in range(2))
        else:
            raw = struct.pack("<4f", 1, 2, 3, 4)
        assert len(raw) == size
        data += raw + b"\0" * (-size % 32)
        at = len(data)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + data)


def gguf_blocks(path, scale=0.05):
    """Two matrices in Q8_0 blocks, whose values F16 does not hold; with a scale such as 1000, some
    are beyond it. A norm in F32, numbers in I32."""
    pairs = {"general.architecture": "llama"}
    rows = [("blk.0.ffn_up.weight", (64, 64), 8, 64 * 68), ("token_embd.weight", (64, 4), 8, 4 * 68),
            ("output_norm.weight", (4,), 0, 16), ("numbers", (4,), 26, 16)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs))
    for key, value in pairs.items():
        head += gguf_text(key) + struct.pack("<I", 8) + gguf_text(value)
    at, data = 0, b""
    for name, shape, kind, size in rows:
        head += gguf_text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, kind, at)
        raw = struct.pack("<4f", 1, 2, 3, 4) if kind == 0 else struct.pack("<4i", 1, 2, 3, 4)
        if kind == 8:
            raw = b"".join(struct.pack("<e32b", float(scale) * (1 + i % 7 / 8),
                                       *((i * i + j * 37) % 255 - 127 for j in range(32)))
                           for i in range(size // 34))
        assert len(raw) == size
        data += raw + b"\0" * (-size % 32)
        at = len(data)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + data)


def gguf_part(path):
    """One of the files of a model: "m-00001-of-00002.gguf" is the first of two; a vector in each."""
    number, count = int(path[-19:-14]), int(path[-10:-5])
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 3 if number == 1 else 2)
    if number == 1:
        head += gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama")
    for key, value in (("split.no", number - 1), ("split.count", count)):
        head += gguf_text(key) + struct.pack("<IH", 2, value)
    head += gguf_text("blk.%d.w" % number) + struct.pack("<IQIQ", 1, 4, 0, 0)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + struct.pack("<4f", 1, 2, 3, number) + b"\0" * 16)


def proto(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def onnx(path):
    """An initializer in the file, and one in a file beside it."""
    inside = proto(1, 2) + proto(2, 1) + proto(8, "bias") + proto(9, struct.pack("<2f", 1, 2))
    where = b"".join(proto(13, proto(1, k) + proto(2, v)) for k, v in
                     (("location", "weights.bin"), ("offset", "4"), ("length", "16")))
    outside = proto(1, 2) + proto(1, 2) + proto(2, 1) + proto(8, "weight") + where + proto(14, 1)
    graph = proto(2, "graph") + proto(5, inside) + proto(5, outside)
    with open(path, "wb") as file:
        file.write(proto(1, 8) + proto(2, "by hand") + proto(7, graph) + proto(8, proto(2, 17)))
    beside = os.path.join(os.path.dirname(path), "weights.bin")
    with open(beside, "wb") as file:
        file.write(struct.pack("<5f", 0, 1, 2, 3, 4))


def msgpack_text(text):
    return bytes([0xa0 | len(text)]) + text.encode()


def msgpack(path):
    raw = struct.pack("<2f", 1, 2)
    array = b"\x93" + b"\x91\x02" + msgpack_text("float32") + b"\xc4" + bytes([len(raw)]) + raw
    array = b"\xc7" + bytes([len(array)]) + b"\x01" + array
    layer = b"\x82" + msgpack_text("kernel") + array + msgpack_text("bias") + array
    with open(path, "wb") as file:
        file.write(b"\x82" + msgpack_text("step") + b"\x03"
                   + msgpack_text("params") + b"\x81" + msgpack_text("dense") + layer)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def table_block(pairs):
    raw = b"".join(b"\0" + varint(len(k)) + varint(len(v)) + k + v for k, v in pairs)
    raw += struct.pack("<II", 0, 1) + b"\0"
    return raw + struct.pack("<I", crc32c(raw))


def saved_model(path):
    """A SavedModel of TensorFlow: a kernel, and a slot of its optimizer."""
    folder = os.path.join(path, "variables")
    os.makedirs(folder)
    entry = proto(1, 1) + proto(2, proto(2, proto(1, 2)) + proto(2, proto(1, 1)))
    first = table_block([(b"", proto(1, 1)), (b"dense/kernel", entry + proto(5, 8)),
                         (b"optimizer/m", entry + proto(4, 8) + proto(5, 8))])
    index = table_block([(b"p", varint(0) + varint(len(first) - 5))])
    end = varint(0) + varint(0) + varint(len(first)) + varint(len(index) - 5)
    with open(os.path.join(folder, "variables.index"), "wb") as file:
        file.write(first + index + end.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db"))
    with open(os.path.join(folder, "variables.data-00000-of-00001"), "wb") as file:
        file.write(struct.pack("<4f", 1, 2, 3, 4))


KINDS = {f.__name__: f for f in (state_dict, calls, training, tied, tied_plain, wide, keyed, module,
                                 z_image, expanded, quantised, folder, npz, gguf, gguf_blocks,
                                 gguf_part, onnx, msgpack, saved_model)}

if __name__ == "__main__":
    KINDS[sys.argv[1]](*sys.argv[2:])
