#!/usr/bin/env python3
"""Write the example models: small, real safetensors files with plausible contents.

    python3 make.py OUT       write them all below the folder OUT
    python3 make.py --check   compare what stands beside this script with what it would write

Only the standard library is used, and nothing random: every run gives the same bytes.
"""
import hashlib
import json
import os
import struct
import sys
import zlib

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
        "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
        "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64,
        "I64": 64, "U64": 64}
RANK = {name: i for i, name in enumerate(BITS)}


class Noise:
    """Values about a bell curve, from a fixed generator (splitmix64)."""

    def __init__(self, text):
        self.state = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return z ^ (z >> 31)

    def value(self, scale):
        """Sum of four 16-bit uniforms: exact in double on every host."""
        z = self.word()
        total = sum((z >> (16 * i)) & 0xFFFF for i in range(4)) - 2 * 65535
        return total / 65536.0 * scale


def count(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def minifloat(value, exponent_bits, mantissa_bits, bias, top):
    """Nearest small float at or below |top| by search: slow, plain, right."""
    best, best_gap = 0, abs(value)
    for code in range(1 << (exponent_bits + mantissa_bits)):
        e, m = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        if e == 0:
            x = m * 2.0 ** (1 - bias - mantissa_bits)
        else:
            x = (1 + m / 2.0**mantissa_bits) * 2.0 ** (e - bias)
        if x <= top and abs(abs(value) - x) < best_gap:
            best, best_gap = code, abs(abs(value) - x)
    return best | (1 << (exponent_bits + mantissa_bits) if value < 0 and best else 0)


SMALL = {"F8_E4M3": (4, 3, 7, 448.0), "F8_E5M2": (5, 2, 15, 57344.0), "F4": (2, 1, 1, 6.0),
         "F8_E4M3FNUZ": (4, 3, 8, 240.0), "F8_E5M2FNUZ": (5, 2, 16, 57344.0),
         "F6_E2M3": (2, 3, 1, 7.5), "F6_E3M2": (3, 2, 3, 28.0)}


def codes_to_bytes(codes, bits):
    """Codes of less than a byte, the first in the lowest bits."""
    total = 0
    for i, code in enumerate(codes):
        total |= code << (bits * i)
    return total.to_bytes(len(codes) * bits // 8, "little")


def fill(dtype, name, shape, scale=0.02):
    """Plausible bytes for a tensor."""
    noise, n = Noise(name), count(shape)
    if dtype in SMALL:
        layout = SMALL[dtype]
        codes = [minifloat(noise.value(layout[3] / 8), *layout) for _ in range(n)]
        return codes_to_bytes(codes, BITS[dtype])
    if dtype == "F16":
        return struct.pack("<%de" % n, *[noise.value(scale) for _ in range(n)])
    if dtype == "BF16":
        return struct.pack("<%dH" % n, *[bf16(noise.value(scale)) for _ in range(n)])
    if dtype in ("F32", "F64"):
        return struct.pack("<%d%s" % (n, "fd"[dtype == "F64"]),
                           *[noise.value(scale) for _ in range(n)])
    if dtype == "C64":
        return struct.pack("<%df" % (2 * n), *[noise.value(scale) for _ in range(2 * n)])
    if dtype == "F8_E8M0":
        return bytes(120 + noise.word() % 12 for _ in range(n))
    if dtype == "BOOL":
        return bytes(noise.word() & 1 for _ in range(n))
    size = BITS[dtype] // 8
    return b"".join((noise.word() % 100).to_bytes(size, "little") for _ in range(n))


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def build(tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}. Order, padding and spelling are the official
    writer's, with the metadata keys sorted. Returns (whole file, data region)."""
    header, at, data = {}, 0, []
    if metadata is not None:
        header["__metadata__"] = dict(sorted(metadata.items()))
    for name in sorted(tensors, key=lambda n: (-RANK[tensors[n][0]], n.encode())):
        dtype, shape, raw = tensors[name]
        if len(raw) * 8 != count(shape) * BITS[dtype]:
            raise ValueError("%s: %d bytes" % (name, len(raw)))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = compact(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data), b"".join(data)


def filled(layout, scale=0.02):
    return {name: (dtype, shape, fill(dtype, name, shape, scale))
            for name, (dtype, shape) in layout.items()}


def pretty(value):
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


# ── A LoRA as kohya's scripts write one ─────────────────────────────────────────────────

LORA_RANK, LORA_ALPHA = 4, 2.0
LORA_MODULES = {  # SDXL: inner size, outer size
    "lora_te1_text_model_encoder_layers_0_self_attn_q_proj": (768, 768),
    "lora_te1_text_model_encoder_layers_0_self_attn_v_proj": (768, 768),
    "lora_te2_text_model_encoder_layers_0_self_attn_q_proj": (1280, 1280),
    "lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q": (640, 640),
    "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k": (2048, 640),
    "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_v": (2048, 640),
    "lora_unet_input_blocks_8_1_transformer_blocks_9_attn2_to_out_0": (1280, 1280),
    "lora_unet_middle_block_1_transformer_blocks_0_attn2_to_k": (2048, 1280),
    "lora_unet_output_blocks_5_1_transformer_blocks_1_attn2_to_v": (2048, 640),
}

TAGS = {
    "10_neoncty skyline": {
        "neoncty": 24, "night": 23, "city": 24, "skyscraper": 20, "neon lights": 22,
        "rain": 11, "no humans": 19, "reflection": 9, "from above": 7, "fog": 6,
        "purple sky": 8, "bridge": 4},
    "5_neoncty street": {
        "neoncty": 16, "street level": 16, "city": 15, "neon lights": 15, "1girl": 6,
        "umbrella": 5, "wet ground": 9, "sign": 12, "vending machine": 3, "alley": 7},
}


def lora_metadata():
    return {
        "ss_session_id": "2405771936",
        "ss_training_started_at": "1714554000.125",
        "ss_training_finished_at": "1714559400.5",
        "ss_output_name": "neon-city",
        "ss_training_comment": "city at night; prompt with neoncty",
        "ss_learning_rate": "0.0001", "ss_unet_lr": "0.0001", "ss_text_encoder_lr": "5e-05",
        "ss_lr_scheduler": "cosine", "ss_lr_warmup_steps": "0",
        "ss_num_train_images": "320", "ss_num_reg_images": "0",
        "ss_num_batches_per_epoch": "80", "ss_num_epochs": "8", "ss_epoch": "8",
        "ss_max_train_steps": "640", "ss_steps": "640",
        "ss_batch_size_per_device": "4", "ss_total_batch_size": "4",
        "ss_gradient_checkpointing": "True", "ss_gradient_accumulation_steps": "1",
        "ss_mixed_precision": "fp16", "ss_full_fp16": "False", "ss_seed": "42",
        "ss_clip_skip": "None", "ss_max_token_length": "225", "ss_keep_tokens": "1",
        "ss_shuffle_caption": "True", "ss_cache_latents": "True", "ss_lowram": "False",
        "ss_noise_offset": "0.0357", "ss_min_snr_gamma": "5.0", "ss_max_grad_norm": "1.0",
        "ss_optimizer": "bitsandbytes.optim.adamw.AdamW8bit(weight_decay=0.1)",
        "ss_network_module": "networks.lora", "ss_network_dim": str(LORA_RANK),
        "ss_network_alpha": str(LORA_ALPHA), "ss_network_dropout": "None",
        "ss_v2": "False", "ss_base_model_version": "sdxl_base_v1-0",
        "ss_sd_model_name": "sd_xl_base_1.0.safetensors", "ss_sd_model_hash": "be9edd61",
        "ss_new_sd_model_hash":
            "31e35c80fc4829d14f90153f4c74cd59c90b779f6afe05a74cd6120b893f7e5b",
        "ss_vae_name": "sdxl_vae.safetensors",
        "ss_resolution": "(1024, 1024)", "ss_enable_bucket": "True",
        "ss_min_bucket_reso": "512", "ss_max_bucket_reso": "2048",
        "ss_bucket_no_upscale": "False",
        "ss_bucket_info": json.dumps({
            "buckets": {"0": {"resolution": [1024, 1024], "count": 240},
                        "1": {"resolution": [832, 1216], "count": 80}},
            "mean_img_ar_error": 0.0125}),
        "ss_dataset_dirs": json.dumps({
            "10_neoncty skyline": {"n_repeats": 10, "img_count": 24},
            "5_neoncty street": {"n_repeats": 5, "img_count": 16}}),
        "ss_reg_dataset_dirs": "{}",
        "ss_tag_frequency": json.dumps(TAGS),
        "ss_sd_scripts_commit_hash": "0123456789abcdef0123456789abcdef01234567",
        "modelspec.sai_model_spec": "1.0.0",
        "modelspec.architecture": "stable-diffusion-xl-v1-base/lora",
        "modelspec.implementation": "https://github.com/Stability-AI/generative-models",
        "modelspec.title": "Neon City",
        "modelspec.author": "An Example",
        "modelspec.description": "Wet streets and bright signs. \u30cd\u30aa\u30f3",
        "modelspec.date": "2024-05-01T10:30:00",
        "modelspec.resolution": "1024x1024",
        "modelspec.prediction_type": "epsilon",
        "modelspec.trigger_phrase": "neoncty",
        "modelspec.tags": "city,night,neon",
        "modelspec.license": "CC0-1.0",
        "modelspec.usage_hint": "Weight 0.7 to 0.9",
    }


def lora_tensors():
    out = {}
    for module, (inner, outer) in LORA_MODULES.items():
        layout = {module + ".lora_down.weight": ("F16", [LORA_RANK, inner]),
                  module + ".lora_up.weight": ("F16", [outer, LORA_RANK])}
        out.update(filled(layout))
        out[module + ".alpha"] = ("F16", [], struct.pack("<e", LORA_ALPHA))
    return out


def lora_file():
    """The two sshs hashes: SHA-256 of the data region; SHA-256 of 64 KiB at 1 MiB of the file
    written with ss_ keys only (of nothing here, for the file is smaller than that)."""
    tensors, metadata = lora_tensors(), lora_metadata()
    only_ss = {k: v for k, v in metadata.items() if k.startswith("ss_")}
    virtual, data = build(tensors, only_ss)
    metadata["sshs_model_hash"] = hashlib.sha256(data).hexdigest()
    metadata["sshs_legacy_hash"] = hashlib.sha256(virtual[0x100000:0x110000]).hexdigest()[:8]
    metadata["modelspec.hash_sha256"] = "0x" + metadata["sshs_model_hash"]
    return build(tensors, metadata)


def lora_civitai(whole, data):
    digest = hashlib.sha256(whole).hexdigest().upper()
    crc = struct.pack("<I", zlib.crc32(whole)).hex().upper()
    return pretty({
        "id": 2000001, "modelId": 1000001, "name": "v1.0", "baseModel": "SDXL 1.0",
        "air": "urn:air:sdxl:lora:civitai:1000001@2000001",
        "description": "<p>First version.</p>",
        "createdAt": "2024-05-01T12:00:00.000Z", "updatedAt": "2024-05-02T08:00:00.000Z",
        "publishedAt": "2024-05-01T12:30:00.000Z", "nsfwLevel": 1,
        "trainedWords": ["neoncty", "neoncty, street level"],
        "model": {"name": "Neon City", "type": "LORA", "nsfw": False, "poi": False},
        "files": [{
            "id": 3000001, "name": "neon-city.safetensors", "type": "Model",
            "sizeKB": len(whole) / 1024, "primary": True,
            "metadata": {"fp": "fp16", "size": None, "format": "SafeTensor"},
            "hashes": {"SHA256": digest, "AutoV2": digest[:10], "CRC32": crc,
                       "AutoV3": hashlib.sha256(data).hexdigest().upper()[:12]}}],
        "images": [{
            "url": "https://image.civitai.com/example/width=450/4000001.jpeg", "type": "image",
            "width": 512, "height": 512, "nsfwLevel": 1, "meta": None}],
        "downloadUrl": "https://civitai.com/api/download/models/2000001"})


def lora_webui():
    return pretty({
        "description": "Wet streets and bright signs", "sd version": "SDXL",
        "activation text": "neoncty", "preferred weight": 0.8,
        "negative text": "daylight", "notes": "An example that belongs to nobody."})


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def preview_png(side=64):
    """A skyline in 16 colours. Stored, not compressed: the same bytes from every zlib."""
    noise, rows = Noise("preview"), []
    heights = [14 + noise.word() % 34 for _ in range(side // 4)]
    palette = b"".join(bytes((12 + 14 * i, 8 + 4 * i, 48 + 12 * i)) for i in range(15))
    palette += bytes((255, 80, 200))
    for y in range(side):
        row = []
        for x in range(side):
            house = side - y <= heights[x // 4]
            lit = house and x % 4 in (1, 2) and y % 3 == 0 and noise.word() % 3 == 0
            row.append(15 if lit else 1 if house else 4 + y * 10 // side)
        rows.append(b"\0" + bytes(a << 4 | b for a, b in zip(row[::2], row[1::2])))
    raw = b"".join(rows)
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(raw), len(raw) ^ 0xFFFF) + raw
    stored += struct.pack(">I", zlib.adler32(raw))
    head = struct.pack(">IIBBBBB", side, side, 4, 3, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"PLTE", palette) + chunk(b"IDAT", stored) + chunk(b"IEND", b""))


def lora():
    whole, data = lora_file()
    return {"lora/neon-city.safetensors": whole,
            "lora/neon-city.civitai.info": lora_civitai(whole, data),
            "lora/neon-city.json": lora_webui(),
            "lora/neon-city.preview.png": preview_png()}


# ── A language model in three shards ────────────────────────────────────────────────────

HIDDEN, INNER, VOCAB, LAYERS, HEADS, KV_HEADS = 32, 64, 96, 2, 4, 2
SHARD = "model-%05d-of-00003.safetensors"


def decoder_layer(i):
    at, kv = "model.layers.%d." % i, HIDDEN // HEADS * KV_HEADS
    return {at + "input_layernorm.weight": ("BF16", [HIDDEN]),
            at + "post_attention_layernorm.weight": ("BF16", [HIDDEN]),
            at + "self_attn.q_proj.weight": ("BF16", [HIDDEN, HIDDEN]),
            at + "self_attn.k_proj.weight": ("BF16", [kv, HIDDEN]),
            at + "self_attn.v_proj.weight": ("BF16", [kv, HIDDEN]),
            at + "self_attn.o_proj.weight": ("BF16", [HIDDEN, HIDDEN]),
            at + "mlp.gate_proj.weight": ("BF16", [INNER, HIDDEN]),
            at + "mlp.up_proj.weight": ("BF16", [INNER, HIDDEN]),
            at + "mlp.down_proj.weight": ("BF16", [HIDDEN, INNER])}


def sharded():
    shards = [{"model.embed_tokens.weight": ("BF16", [VOCAB, HIDDEN]), **decoder_layer(0)},
              decoder_layer(1),
              {"model.norm.weight": ("BF16", [HIDDEN]),
               "lm_head.weight": ("BF16", [VOCAB, HIDDEN])}]
    out, where, total = {}, {}, 0
    for i, layout in enumerate(shards):
        whole, data = build(filled(layout), {"format": "pt"})
        out["sharded/" + SHARD % (i + 1)] = whole
        where.update({name: SHARD % (i + 1) for name in layout})
        total += len(data)
    out["sharded/model.safetensors.index.json"] = pretty(
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))})
    out["sharded/config.json"] = pretty({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16"})
    return out


# ── Single files ────────────────────────────────────────────────────────────────────────

def quantised():
    layout = {}
    for i in range(2):
        at = "model.layers.%d." % i
        layout[at + "input_layernorm.weight"] = ("BF16", [64])
        layout[at + "self_attn.q_proj.weight"] = ("F8_E4M3", [64, 64])
        layout[at + "self_attn.q_proj.weight_scale_inv"] = ("F32", [1, 1])
        layout[at + "self_attn.k_cache.weight"] = ("F8_E5M2", [16, 64])
        layout[at + "mlp.experts.gate_up_proj"] = ("F4", [4, 32, 32])
        layout[at + "mlp.experts.gate_up_proj_scales"] = ("F8_E8M0", [4, 32, 1])
        layout[at + "mlp.down_proj.qweight"] = ("U8", [64, 16])
    return {"quantised.safetensors": build(filled(layout), {"format": "pt"})[0]}


def every_dtype():
    layout = {"tensor.%02d.%s" % (i, dtype.lower()): (dtype, [4, 8])
              for dtype, i in RANK.items()}
    return {"every-dtype.safetensors": build(filled(layout, 1.0), {"format": "np"})[0]}


def everything():
    out = {}
    for make in (lora, sharded, quantised, every_dtype):
        out.update(make())
    return out


def check(files, folder):
    bad = 0
    for path, want in files.items():
        try:
            with open(os.path.join(folder, path), "rb") as f:
                have = f.read()
        except FileNotFoundError:
            have = None
        if have != want:
            print("%s: %s" % (path, "missing" if have is None else "differs"))
            bad += 1
    print("%d of %d files as written by make.py" % (len(files) - bad, len(files)))
    return 1 if bad else 0


def write(files, folder):
    for path, data in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(data)
    return 0


def main(arguments):
    if len(arguments) != 1:
        sys.stderr.write(__doc__)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    files = everything()
    return check(files, here) if arguments[0] == "--check" else write(files, arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
