"""Models for the tests: small ones, sharded ones, and one of 10 GB that is nowhere stored."""
import hashlib
import json
import os
import random
import struct

import server

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1}


def header(tensors, metadata=None, pad=8):
    """tensors: {name: (dtype, shape)}, laid out in this order. The bytes of length and header."""
    table, at = {}, 0
    if metadata:
        table["__metadata__"] = metadata
    for name, (dtype, shape) in tensors.items():
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text, at


def model(tensors, metadata=None, seed=1):
    head, size = header(tensors, metadata)
    return head + random.Random(seed).randbytes(size)


def small(count=6, size=64, seed=1):
    return model({"layer.%d.weight" % i: ("U8", [size]) for i in range(count)}, seed=seed)


def wide(header_bytes, seed=1):
    """A model whose header is at least so long."""
    count = header_bytes // 80 + 1
    return model({"model.layers.%05d.some_module.weight" % i: ("U8", [16])
                  for i in range(count)}, seed=seed)


def large(gigabytes=10, dtype="F32"):
    """One tensor `t`, rows of 4096, in a file of so many GB."""
    rows = gigabytes * (10 ** 9) // (4096 * SIZES[dtype])
    head, size = header({"t": (dtype, [rows, 4096]), "tail": ("U8", [8])})
    block = random.Random(gigabytes).randbytes(1 << 16)
    return server.Repeated(head, block, len(head) + size)


def layer(number, hidden, inner):
    name = "model.layers.%d." % number
    square, up = ("BF16", [hidden, hidden]), ("BF16", [inner, hidden])
    tensors = {name + "self_attn.%s_proj.weight" % p: square for p in "qkvo"}
    tensors.update({name + "mlp.gate_proj.weight": up, name + "mlp.up_proj.weight": up,
                    name + "mlp.down_proj.weight": ("BF16", [hidden, inner])})
    for norm in ("input_layernorm", "post_attention_layernorm"):
        tensors[name + norm + ".weight"] = ("BF16", [hidden])
    return tensors


def sharded(folder, shards, hidden=128, inner=344, vocabulary=1000, seed=7):
    """A repository as transformers leaves one: shards, index, config.json and README.md."""
    os.makedirs(folder, exist_ok=True)
    layers = shards - 1
    parts = [{"model.embed_tokens.weight": ("BF16", [vocabulary, hidden])}]
    parts += [layer(i, hidden, inner) for i in range(layers)]
    parts[-1].update({"model.norm.weight": ("BF16", [hidden]),
                      "lm_head.weight": ("BF16", [vocabulary, hidden])})
    weights, total = {}, 0
    for i, tensors in enumerate(parts):
        name = "model-%05d-of-%05d.safetensors" % (i + 1, shards)
        data = model(tensors, {"format": "pt"}, seed + i)
        total += header(tensors)[1]
        weights.update({tensor: name for tensor in tensors})
        write(folder, name, data)
    write(folder, "model.safetensors.index.json", json.dumps(
        {"metadata": {"total_size": total}, "weight_map": weights}, indent=2).encode())
    write(folder, "config.json", json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
         "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": 4,
         "num_key_value_heads": 4, "vocab_size": vocabulary, "max_position_embeddings": 4096,
         "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": False,
         "torch_dtype": "bfloat16"}, indent=2).encode())
    write(folder, "README.md", b"---\nlicense: apache-2.0\npipeline_tag: text-generation\n"
          b"library_name: transformers\n---\n# Tiny\n\nA model of a test.\n")
    return folder


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def snapshot(folder):
    """{path: SHA-256 or what a link says} of all that is in a folder."""
    found = {}
    for here, folders, names in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(here, name), folder) + "/"] = ""
        for name in names:
            path = os.path.join(here, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = sha256(file.read())
    return found


def torch_file(path, tensors):
    """What torch.save writes for {name: list of floats}, made without torch."""
    import io
    import pickle
    import sys
    import types
    import zipfile
    from collections import OrderedDict

    class Tensor:
        def __init__(self, key, values):
            self.key, self.values = key, values

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, Tensor):
                return ("storage", torch.FloatStorage, obj.key, "cpu", len(obj.values))
            return None

    class Rebuilt:
        def __init__(self, tensor):
            self.tensor = tensor

        def __reduce__(self):
            count = len(self.tensor.values)
            return (torch._utils._rebuild_tensor_v2,
                    (self.tensor, 0, (count,), (1,), False, OrderedDict()))

    torch = types.ModuleType("torch")
    torch._utils = types.ModuleType("torch._utils")

    def _rebuild_tensor_v2():
        pass
    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    torch._utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": torch._utils})
    try:
        out = io.BytesIO()
        held = [Tensor(str(i), values) for i, values in enumerate(tensors.values())]
        Pickler(out, 2).dump(OrderedDict((name, Rebuilt(one))
                                         for name, one in zip(tensors, held)))
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", out.getvalue())
        for one in held:
            archive.writestr("archive/data/" + one.key,
                             struct.pack("<%df" % len(one.values), *one.values))
        archive.writestr("archive/version", b"3\n")
    return path
