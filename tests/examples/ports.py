"""The loaders of examples/ports/, on models that are made here."""
import json
import os
import re
import struct


def pack(tensors):
    """A file of tensors: name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def write(folder, name, tensors):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(pack(tensors))
    return path


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def bf16(*values):
    """Numbers that BF16 holds: the upper half of each float."""
    return b"".join(floats(value)[2:] for value in values)


def djb2(data):
    value = 5381
    for byte in data:
        value = (value * 33 + byte) % 2**64
    return f"{value:016x}"


def stable_diffusion(program, check, folder):
    unet = "model.diffusion_model.double_blocks.0"
    model = write(folder, "unet.safetensors", {
        "double_blocks.0.w": ("F8_E4M3", [2, 3], bytes([0x38, 0xB8, 0x40, 0, 1, 0x7E])),
        "double_blocks.0.b": ("BF16", [2], bf16(1, -2)),
        "double_blocks.0.ids": ("I64", [3], struct.pack("<3q", 1, -2, 2**31 - 1)),
        "double_blocks.0.scale": ("F64", [], struct.pack("<d", 0.5)),
        "model_ema.decay": ("F32", [], floats(1)),
        "first_stage_model.w": ("F16", [1], struct.pack("<e", 7)),
    })
    vae = write(folder, "vae.safetensors", {"w": ("F32", [1, 2, 1, 2], floats(1, 2, 3, 4))})
    # The VAE of its own comes after the model's.
    with_vae = write(folder, "old.safetensors", {"first_stage_model.w": ("F32", [1], floats(9))})
    said = program("port_stable_diffusion", "model.diffusion_model.=" + model, with_vae,
                   "first_stage_model.=" + vae)
    f8 = struct.pack("<6e", 1, -1, 2, 0, 2**-9, 448)
    wanted = ["FLUX, 6 weights",
              f"first_stage_model.w F32 2 1 2 1 {djb2(floats(1, 2, 3, 4))}",
              f"{unet}.b BF16 2 1 1 1 {djb2(bf16(1, -2))}",
              f"{unet}.ids I32 3 1 1 1 {djb2(struct.pack('<3i', 1, -2, 2**31 - 1))}",
              f"{unet}.scale F32 1 1 1 1 {djb2(floats(0.5))}",
              f"{unet}.w F16 3 2 1 1 {djb2(f8)}",
              "model.diffusion_model.first_stage_model.w F16 1 1 1 1 "
              + djb2(struct.pack("<e", 7))]
    check(said.splitlines() == wanted, "port_stable_diffusion", said)
    for name, tensors, why in (
            ("deep", {"a": ("F32", [1] * 5, floats(1))}, "at most 4 dimensions, found F32 of 5"),
            ("odd", {"a": ("U16", [1], b"12")}, "a dtype that ggml holds, found U16"),
            ("large", {"a": ("I64", [1], struct.pack("<q", 2**31))}, "2147483648")):
        path = write(folder, name + ".safetensors", tensors)
        said = program("port_stable_diffusion", path, status=1, errors=True)
        check(why in said and said.startswith(path + ": "), f"port_stable_diffusion: {name}", said)
    said = program("port_stable_diffusion", model, path + ".not", status=1, errors=True)
    check(said.startswith(path + ".not: "), "port_stable_diffusion: no such file", said)


def flux2(program, check, folder):
    block = "transformer_blocks.%d.attn.to_q."
    shards = [{block % 0 + "weight": ("BF16", [2, 2], bf16(1, 2, 3, 4)),
               block % 0 + "bias": ("F32", [2], floats(0.5, -0.5))},
              {block % 1 + "weight": ("F16", [2, 2], struct.pack("<4e", 0, 1, 1, 0)),
               block % 1 + "bias": ("BF16", [2], bf16(0, 8))}]
    index = {"weight_map": {name: f"t-{i}.safetensors" for i, shard in enumerate(shards)
                            for name in shard}}
    for i, shard in enumerate(shards):
        write(folder, f"t-{i}.safetensors", shard)
    path = os.path.join(folder, "t.safetensors.index.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(index, file)
    said = program("port_flux2", path, "1", "10")
    lines = said.splitlines()
    check(lines[0::2][-1] == "42.5 29.5" and len(lines) == 3, "port_flux2", said)
    check(re.fullmatch(r"block 0: (in place|as floats), bias as floats", lines[0])
          and re.fullmatch(r"block 1: as floats, bias (in place|as floats)", lines[1]),
          "port_flux2: what is in place", said)
    said = program("port_flux2", path, "1", "2", "3", status=1, errors=True)
    check(block % 0 + "weight: expected a tensor of that shape" in said, "port_flux2: shape", said)
    del shards[1][block % 1 + "bias"]
    index["weight_map"].pop(block % 1 + "bias")
    write(folder, "t-1.safetensors", shards[1])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(index, file)
    said = program("port_flux2", path, "1", "10", status=1, errors=True)
    check(block % 1 + "bias: expected a tensor of that name" in said, "port_flux2: no bias", said)
    shard = os.path.join(folder, "t-1.safetensors")
    with open(shard, "r+b") as file:
        file.truncate(os.path.getsize(shard) - 1)
    said = program("port_flux2", path, "1", "10", status=1, errors=True)
    check(said.startswith(f"{path}: {shard}: "), "port_flux2: the shard that is cut", said)


def run(program, check, folder):
    stable_diffusion(program, check, folder)
    flux2(program, check, folder)
