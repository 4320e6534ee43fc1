#!/usr/bin/env python3
"""Write the files that the benchmarks read: gen.py OUT. What is there already is kept.

headers-N.safetensors   N tensors named and shaped as in DeepSeek-V3; data are holes
hostile-*.safetensors   legal headers of 100 MB made to cost as much as can be
large, small            512 MB in 291 tensors, 77 MB in 18,867, all bytes there
matrix, cube            one F32 tensor of 4096 x 4096, and of 64 x 512 x 512, for slices
cast-f32, cast-f8       one tensor of 64 Mi elements, F32 (as weights are) and F8_E4M3
loras/                  1,000 LoRAs as kohya's scripts write them, headers of 300 KB; data are holes
huge, many/             2 GB, and 64 files of 64 MB, to be hashed; data are holes
"""
import json
import os
import random
import struct
import sys

COUNTS = (300, 1200, 18867, 92000, 700000)
HOSTILE_BYTES = 100_000_000


def deepseek(count):
    """(name, dtype, shape, bytes), dtype descending and then by name, as the official writer
    orders them."""
    out, layer = [], 3
    while len(out) < count:
        for expert in range(256):
            for part in ("gate_proj", "up_proj", "down_proj"):
                name = "model.layers.%d.mlp.experts.%d.%s.weight" % (layer, expert, part)
                a, b = (7168, 2048) if part == "down_proj" else (2048, 7168)
                out.append((name + "_scale_inv", "F32", (a // 128, b // 128), a * b // 4096))
                out.append((name, "F8_E4M3", (a, b), a * b))
        layer += 1
    return sorted(out[:count], key=lambda t: (t[1] != "F32", t[0]))


def entries(tensors):
    at, parts = 0, []
    for name, dtype, shape, size in tensors:
        dims = ",".join(map(str, shape))
        parts.append('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'
                     % (name, dtype, dims, at, at + size))
        at += size
    return "{" + ",".join(parts) + "}", at


def write(path, text, size, data=None):
    """data: bytes repeated over the data region; without it the region is a hole."""
    text = text.encode() if isinstance(text, str) else text
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while data and size >= len(data):
            size -= f.write(data)
        if data:
            f.write(data[:size])
        else:
            f.truncate(8 + len(text) + size)
    os.rename(path + ".part", path)


def rows(count, size):
    return [("layer.%05d.weight" % i, "F32", (size // 4,), size) for i in range(count)]


def pattern():
    """4 MiB in which no two pages are the same."""
    return b"".join(struct.pack("<Q", i * 0x9E3779B97F4A7C15 % 2**64) for i in range(1 << 19))


def weights():
    """4 MiB of F32 as they are found in models."""
    r = random.Random(4)
    return struct.pack("<%df" % (1 << 20), *(r.gauss(0, 0.03) for _ in range(1 << 20)))


def hostile():
    space = HOSTILE_BYTES - 128
    open_field = b'{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":[0'
    zeros = b",0" * (space // 2)
    field = open_field + zeros + b"]}}"
    shape = b'{"t":{"dtype":"U8","shape":[0' + zeros + b'],"data_offsets":[0,0]}}'
    row = '"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    empty = "{" + ",".join(row % i for i in range(space // 60)) + "}"
    short = "{" + ",".join('"%x":["U8",[0],[0,0]]' % i for i in range(space // 28)) + "}"
    pairs = '{"__metadata__":{' + ",".join('"%x":""' % i for i in range(space // 13)) + "}}"
    deep = open_field + (b"," + b"[" * 124 + b"]" * 124) * (space // 249) + b"]}}"
    return {"field": field, "dims": shape, "empty": empty, "arrays": short, "pairs": pairs,
            "nested": deep}


def files():
    for count in COUNTS:
        yield "headers-%d" % count, lambda count=count: (*entries(deepseek(count)), None)
    for name in ("field", "dims", "empty", "arrays", "pairs", "nested"):
        yield "hostile-" + name, lambda name=name: (hostile()[name], 0, None)

    yield "large", lambda: (*entries(rows(291, 1843200)), pattern())
    yield "small", lambda: (*entries(rows(18867, 4096)), pattern())
    yield "matrix", lambda: (*entries([("w", "F32", (4096, 4096), 1 << 26)]), pattern())
    yield "cube", lambda: (*entries([("w", "F32", (64, 512, 512), 1 << 26)]), pattern())
    side = 1 << 13
    yield "cast-f32", lambda: (*entries([("w", "F32", (side, side), side * side * 4)]), weights())
    yield "cast-f8", lambda: (*entries([("w", "F8_E4M3", (side, side), side * side)]),
                              bytes(range(1 << 8)) * (1 << 14))


def lora_tensors():
    """The text encoder and the unet of SD 1.5, rank 16."""
    out = []
    for block in range(24):
        for layer in ("self_attn_q_proj", "self_attn_k_proj", "self_attn_v_proj", "mlp_fc1"):
            out.append(("lora_te_text_model_encoder_layers_%d_%s" % (block, layer), 768))
    for block in range(12):
        for layer in ("attn1_to_q", "attn1_to_k", "attn1_to_v", "attn1_to_out_0", "attn2_to_q",
                      "attn2_to_out_0", "ff_net_2", "proj_in", "proj_out"):
            for depth in range(2):
                out.append(("lora_unet_up_blocks_%d_attentions_%d_transformer_blocks_0_%s"
                            % (block % 4, block // 4 * 2 + depth, layer), 640))
    tensors = {}
    for name, width in out:
        tensors[name + ".alpha"] = ("F16", (), 2)
        tensors[name + ".lora_down.weight"] = ("F16", (16, width), 32 * width)
        tensors[name + ".lora_up.weight"] = ("F16", (width, 16), 32 * width)
    return [(name, *rest) for name, rest in sorted(tensors.items())]


def lora_metadata(number):
    words = ("night", "blue sky", "long coat", "looking at viewer", "neon lights", "rain", "window")
    tags = {"%s %d" % (words[i % 7], i): 1 + i * 7919 % 30 for i in range(6800)}
    tags["neon %d" % number] = 40
    return {"ss_output_name": "neon-%d" % number, "ss_network_dim": "16",
            "ss_network_alpha": "0", "ss_network_module": "networks.lora",
            "ss_base_model_version": "sd_v1", "ss_sd_model_name": "v1-5-pruned.safetensors",
            "ss_epoch": "10", "ss_num_train_images": "400", "ss_learning_rate": "0.0001",
            "ss_dataset_dirs": json.dumps({"10_neon": {"n_repeats": 10, "img_count": 40}}),
            "ss_tag_frequency": json.dumps({"10_neon": tags})}


def loras(folder):
    text, size = entries(lora_tensors())

    def make(number):
        head = json.dumps({"__metadata__": lora_metadata(number)}, separators=(",", ":"))
        return head[:-1] + "," + text[1:], size
    for i in range(1000):
        yield os.path.join(folder, "neon-%03d" % i), lambda i=i: make(i)


def hashed(folder):
    yield "huge", lambda: entries([("w", "F32", (1 << 29,), 1 << 31)])
    for i in range(64):
        yield os.path.join(folder, "part-%02d" % i), lambda i=i: entries(
            [("w%d" % i, "F32", (1 << 24,), 1 << 26)])


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for below in ("loras", "many"):
        os.makedirs(os.path.join(folder, below), exist_ok=True)
    for name, make in (*files(), *loras("loras"), *hashed("many")):
        path = os.path.join(folder, name + ".safetensors")
        if not os.path.exists(path):
            write(path, *make())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
