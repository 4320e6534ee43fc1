#!/usr/bin/env python3
"""Write the seeds of the fuzz harnesses to fuzz/corpus. Files that a fuzzer found and that are
kept have names of their own and stay."""
import glob
import hashlib
import json
import os
import re
import struct
import zlib

import answer_seeds
import import_seeds
import remote_seeds

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "examples", "models")


def source(*path):
    with open(os.path.join(HERE, *path)) as f:
        return f.read()


def framed(text, data=b"", n=None):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text) if n is None else n) + text + data


def entry(dtype, shape, begin, end):
    return '{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (
        dtype, json.dumps(shape, separators=(",", ":")), begin, end)


def u8(n=1, begin=0):
    return entry("U8", [n], begin, begin + n)


def headers():
    one = '{"t":%s}' % entry("I32", [2], 0, 8)
    swapped = '{"b":%s,"a":%s}' % (entry("F16", [2], 4, 8), entry("F32", [], 0, 4))
    none = '{"a":%s,"b":%s}' % (entry("U8", [0, 3], 0, 0), u8())
    bits = '{"a":%s,"b":%s}' % (entry("F4", [3, 2], 0, 3), entry("F6_E2M3", [4], 3, 6))
    pairs = r'{"__metadata__":{"a":"b","\u00e9":"\n\ud83d\ude00"},"t":%s}' % u8()
    variant = '{"t":{"dtype":{"I32":null},"shape":[2],"data_offsets":[0,8]}}'
    double = r'{"t":%s,"\u0074":%s}' % (u8(), entry("I8", [1], 0, 1))
    extra = '{"t":{"dtype":"U8","extra":%s,"shape":[1],"data_offsets":[0,1]}}'
    blank = '\t{ "t" :\r\n{"dtype" : "U8", "shape":[ 1 ] ,"data_offsets":[0 , 1]} } '
    out = {
        "empty": b"", "zero": framed(""), "object": framed("{}"), "one": framed(one, b"x" * 8),
        "padded": framed(one + "   ", b"x" * 8), "leading": framed("  " + one, b"x" * 8),
        "two": framed(swapped, b"8bytes!!"), "no-elements": framed(none, b"x"),
        "sub-byte": framed(bits, b"sixbyt"), "metadata": framed(pairs, b"x"),
        "metadata-null": framed('{"__metadata__":null}'),
        "metadata-twice": framed('{"__metadata__":{"a":"1","a":"2"}}'),
        "array-entry": framed('{"t":["I32",[2],[0,8]]}', b"x" * 8),
        "dtype-object": framed(variant, b"x" * 8), "duplicate": framed(double, b"x"),
        "other-order": framed('{"t":{"data_offsets":[0,1],"shape":[1],"dtype":"BOOL"}}', b"x"),
        "extra-field": framed(extra % '[{"x":[1.5e3,null]}]', b"x"),
        "white-space": framed(blank, b"x"),
        "legacy": framed('{"t":{"dtype":"float16","shape":[2],"offsets":[0,4]}}', b"four"),
        "rank": framed('{"t":%s}' % entry("U8", [1] * 65, 0, 1), b"x"),
        "overflow": framed('{"t":%s}' % entry("U8", [2**63, 4, 0], 0, 0)),
        "zero-first": framed('{"t":%s}' % entry("U8", [0, 2**63, 4], 0, 0)),
        "gap": framed('{"t":%s}' % u8(begin=1), b"xx"),
        "short": framed(one, b"x" * 7), "long": framed(one, b"x" * 9),
        "huge-length": framed(one, b"x" * 8, 2**63), "bad-utf8": framed(b'{"\xff":null}'),
        "nested": framed(extra % ("[" * 125 + "]" * 125), b"x"),
        "cut-in-shape": framed('{"t":{"dtype":"U8","shape":[', b'],"data_offsets":[0,0]}}'),
        "cut-after-dim": framed('{"t":{"dtype":"U8","shape":[0,', b'1],"data_offsets":[0,0]}}'),
        "cut-before-begin": framed('{"t":{"dtype":"U8","shape":[0],"data_offsets":[', b"0,0]}}"),
        "cut-in-offsets": framed('{"t":{"dtype":"U8","shape":[1],"data_offsets":[5,', b"1]}}x"),
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "zip": b"PK\x03\x04" + b"\0" * 40, "gguf": b"GGUF\x03\0\0\0" + b"\0" * 16,
    }
    with open(os.path.join(MODELS, "every-dtype.safetensors"), "rb") as f:
        out["every-dtype"] = f.read()
    with open(os.path.join(MODELS, "lora", "neon-city.safetensors"), "rb") as f:
        raw = f.read(8)
        text = json.loads(f.read(struct.unpack("<Q", raw)[0]))
    out["lora-metadata"] = framed(json.dumps({"__metadata__": text["__metadata__"]}))
    return out


def texts():
    plain = ["null", "[]", "{}", "0", "-0", "1.5e-3", '"\\u0041\\n"',
             '{"a":{"a":[1,2,{"b":null}]}}',
             "[true,false,null,18446744073709551615,18446744073709551616]", '"\\ud83d\\ude00"',
             '"\\ud83d"', "[1,]", "{,}", "01", "[" * 127 + "]" * 127, "[" * 128 + "]" * 128,
             ' { "a" : "b" , "c" : [ ] } ', '{"a":1,"a":2}', '"\u00e9\u2028"', '"\x7f"',
             "[1 2]", "nul"]
    out = {"%02d" % i: text.encode() for i, text in enumerate(plain)}
    for name in ("lora/neon-city.json", "lora/neon-city.civitai.info"):
        with open(os.path.join(MODELS, name), "rb") as f:
            out[os.path.basename(name)] = f.read()
    return out


def indexes():
    def weights(**where):
        return json.dumps({"metadata": {"total_size": 1}, "weight_map": where}).encode()
    with open(os.path.join(MODELS, "sharded", "model.safetensors.index.json"), "rb") as f:
        real = f.read()
    return {"real": real, "one": weights(a="x.safetensors"), "empty": weights(),
            "up": weights(a="../x.safetensors"), "absolute": weights(a="/x.safetensors"),
            "below": weights(a="b/x.safetensors", b="b/x.safetensors", c="b/x10", d="b/x9"),
            "hidden-up": weights(a="b/../../x"), "backslash": weights(a="..\\x"),
            "nul": weights(a="x\0y"), "dot": weights(a="./x"), "no-name": weights(a=""),
            "not-text": b'{"weight_map":{"a":1}}', "no-map": b'{"metadata":{}}', "list": b"[]",
            "twice": b'{"weight_map":{"a":"x","a":"y"}}'}


def slices():
    """dtype, rank, dims, count of parts, parts (kind, value, start, stop, step), text."""
    def parts(*values):
        coded = [v if i % 5 == 0 else (v + 11) % 23 for i, v in enumerate(values)]
        return bytes([len(values) // 5] + coded)
    out = {"whole": bytes([17, 2, 3, 4]) + parts() + b"...",
           "row": bytes([17, 2, 3, 4]) + parts(1, 1, 0, 0, 0) + b"1",
           "column": bytes([13, 2, 5, 4]) + parts(0, 0, 0, 0, 0, 1, 2, 0, 0, 0) + b"[...,2]",
           "backwards": bytes([20, 1, 8]) + parts(32 + 3, 0, 0, 0, -2) + b"::-2",
           "middle": bytes([4, 3, 2, 5, 3]) + parts(3, 0, 0, 0, 0, 27, 0, 1, 4, 1) + b"[:, 1:4]",
           "half-bytes": bytes([1, 2, 4, 4]) + parts(24 + 3, 0, 1, 3, 1) + b"[1:3, 0:2]",
           "scalar": bytes([17, 0]) + parts(),
           "far": bytes([4, 1, 5, 1, 3 + 56, 0, 251, 253, 252]),
           "text": bytes([4, 4, 2, 3, 4, 5, 0]) + b"[-1, ..., 9223372036854775808:, ::3]"}
    return out


def rows(*tables):
    """The names of the files that the tables of src/label read, in their order."""
    row = re.compile(r'^    \{ (?:NULL|"([\w/]+)"), "([^"]+)", "[^"]+", \w+ \},', re.M)
    out = [stem + suffix for table in tables
           for stem, suffix in row.findall(source("..", "src", "label", "sidecars", table))]
    assert len(out) > 20, "the tables of sidecars are spelled otherwise"
    return out


def neon_city():
    with open(os.path.join(MODELS, "lora", "neon-city.safetensors"), "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(size))


def tensor(name, *sizes, dtype=13):
    """sizes: places in the table of fuzz_info.c."""
    return b"\1" + name.encode(), bytes([dtype, *sizes])


def pairs(*given, **more):
    given += tuple((k.encode(), v.encode()) for k, v in more.items())
    return b"".join(k + b"\0" + v + b"\0" for k, v in given)


def lora(layer, rank=6, width=11):
    return [tensor(layer + ".lora_down.weight", rank, width),
            tensor(layer + ".lora_up.weight", width, rank), tensor(layer + ".alpha")]


def mark(*values):
    """A mark of an export, of strings at pointers."""
    digests = []
    for pointer, text in values:
        digest = 0xCBF29CE484222325
        for byte in (pointer + "s" + text).encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2 ** 64
        digests.append("%016x" % digest)
    return {"model": digests[:1], "x.json/x.txt": digests[1:]}


def infos():
    """Metadata of several producers, and tensors of a few models."""
    city = neon_city()["__metadata__"]
    kohya = lora("lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q")
    flux = lora("transformer.single_transformer_blocks.0.attn.to_q", 6, 24)
    bases = '{"sd_merge_models":{"a":{"name":"x"}},"type":"webui"}'
    out = {
        "kohya": pairs(*kohya, **city),
        "tags": pairs(*kohya, ss_output_name="neon", ss_tag_frequency=json.dumps(
            {"10_neon city": {"neon city": 20, "night": 20, "1girl": 3}, "reg": {"x": 2}}),
            ss_dataset_dirs='{"10_neon city":{"n_repeats":10,"img_count":20}}',
            ss_reg_dataset_dirs='{"reg":{"img_count":1}}'),
        "captions": pairs(*kohya, ss_tag_frequency=json.dumps(
            {"1_a": {"a photo of zxc man in a suit": 1, "a photo of zxc man at sea": 1}})),
        "modelspec": pairs(*flux, **{"modelspec.architecture": "flux-1-dev/lora",
            "modelspec.title": "T", "modelspec.date": "2024-05-01T10:00:00",
            "modelspec.trigger_phrase": "zxc, qwe", "modelspec.thumbnail": "data:image/png;base64,"
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe", "modelspec.resolution": "1024x1024"}),
        "peft": pairs(*flux, lora_adapter_metadata=json.dumps(
            {"transformer.r": 16, "transformer.lora_alpha": 8, "transformer.use_dora": False})),
        "toolkit": pairs(*flux, name="x", software='{"name":"ai-toolkit","version":"1"}',
                         training_info='{"step":1000,"epoch":3}', ss_output_name="x"),
        "onetrainer": pairs(*kohya, ot_branch="main", ot_config='{"base_model_name":"a/b",'
                            '"concepts":[{"path":"/x"}]}'),
        "ssmd": pairs(*kohya, ssmd_display_name="x", ssmd_tags="a,b", ssmd_rating="4",
                      ssmd_cover_images='["data:image/png;base64,iVBORw0KGgo="]',
                      ssmd_source="https://civitai.com/models/12?modelVersionId=34"),
        "merge": pairs(tensor("model.diffusion_model.input_blocks.0.0.weight", 11, 4, 3, 3),
                       sd_merge_recipe=bases, sd_merge_models='{"h":{"name":"x"}}'),
        "comfy": pairs(tensor("img_in.weight", 24, 9), workflow='{"nodes":[]}', prompt=json.dumps(
            {"1": {"class_type": "LoraLoader",
                   "inputs": {"lora_name": "x", "strength_model": 1}}})),
        "quantised": pairs(tensor("model.layers.0.self_attn.q_proj.qweight", 17, 17),
                           tensor("model.layers.0.self_attn.q_proj.scales", 9, 17),
                           tensor("model.embed_tokens.weight", 30, 17), format="pt"),
        "llama": pairs(*[tensor("model.layers.0." + name + ".weight", 20, 20) for name in
                         ("self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj", "mlp.up_proj")],
                       tensor("model.embed_tokens.weight", 30, 20)),
        "first-scripts": pairs(tensor("unet:0:up", 4, 11), tensor("unet:0:down", 11, 4),
                               ("<krk>".encode(), b"x"), ("unet:0:rank".encode(), b"4")),
        "derived": pairs(*kohya, **{"modelspec.title": "T", "modelspec.author": "A",
            "libsafetensors.derived": json.dumps(mark(("/modelspec.title", "T"),
                                                      ("/modelspec.author", "A")))}),
        "embedding": pairs(tensor("emb_params", 5, 14), tensor("clip_l", 5, 14)),
    }
    return out


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png():
    text = (b"a city at night\nNegative prompt: day\n"
            b"Steps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1")
    graph = json.dumps({"1": {"class_type": "KSampler", "inputs": {
        "seed": 5, "steps": 9, "cfg": 4.5, "sampler_name": "euler", "positive": ["2", 0],
        "negative": ["3", 0]}}, "2": {"inputs": {"text": "a city"}},
        "3": {"inputs": {"text": ["2", 0]}}})
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
    return {"text": head + chunk(b"tEXt", b"parameters\0" + text) + chunk(b"IEND", b""),
            "packed": head + chunk(b"zTXt", b"parameters\0\0" + zlib.compress(text)),
            "graph": head + chunk(b"iTXt", b"prompt\0\0\0\0\0" + graph.encode())}


README = """---
license: mit
base_model: stabilityai/stable-diffusion-xl-base-1.0
instance_prompt: photo of zxc
tags:
- lora
- "text-to-image"
widget:
  - text: >
      a city
    output: {url: x.png}
---
# Neon
## Trigger words
You should use `zxc`, `qwe city` to trigger the image generation.
"""


def besides():
    places = ["picture", "base64", "tags"] + rows("by_name.c", "by_stem.c")
    texts = {
        "base64": b"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe",
        "tags": json.dumps({"10_neon city": {"neon city": 20, "night": 20, "1girl": 3}}).encode(),
        "README.md": README.encode(),
        "config.json": b'{"_class_name":"FluxTransformer2DModel","torch_dtype":"bfloat16",'
                       b'"architectures":["LlamaForCausalLM"],"quantization_config":{"bits":4}}',
        "adapter_config.json": b'{"peft_type":"LORA","r":16,"lora_alpha":32,"use_dora":true,'
                               b'"base_model_name_or_path":"a/b","target_modules":["q_proj"]}',
        "model_index.json": b'{"_class_name":"FluxPipeline",'
                            b'"unet":["diffusers","UNet2DConditionModel"]}',
        "scheduler_config.json": b'{"prediction_type":"v_prediction"}',
        ".txt": b"zxc, neon city",
        ".description.txt": b"<p>A <b>city</b>&amp; <a href='x'>y</a></p>",
        ".sha256": b"a" * 32 + b"0123456789abcdef" * 2 + b"  x.safetensors\n",
        ".yaml": b"model:\n  params:\n    parameterization: \"v\"\n",
    }
    for name, beside in ((".json", "neon-city.json"), (".civitai.info", "neon-city.civitai.info")):
        with open(os.path.join(MODELS, "lora", beside), "rb") as f:
            texts[name] = f.read()
    out = {"picture-" + name: b"\0" + data for name, data in png().items()}
    for place, name in enumerate(places[1:], 1):
        beside = texts.get(name, texts[".civitai.info"])
        out["%02d%s" % (place, name.replace("/", "-"))] = bytes([place]) + beside
        if name == ".metadata.json":
            marks = mark(("/model_name", "T"), ("/base_model", "Pony"))
            out["derived" + name] = bytes([place]) + json.dumps({
                "model_name": "T", "base_model": "Pony",
                "libsafetensors": {"derived": marks}}).encode()
    return out


UUID = "11111111-2222-4333-8444-555555555555"
JOB = UUID + ":0"


def part(n):
    return "part-%05d-0000-%s.safetensors" % (n, UUID)


def shard(n, letters):
    """Name and bytes of a dataset's shard, with a tensor for each letter."""
    tensors = "".join(',"%s__v":%s' % (c, entry("F32", [1], 4 * i, 4 * i + 4))
                      for i, c in enumerate(letters))
    head = '{"__metadata__":{"libsafetensors.dataset":"1","mode":"kv","samples":"%d"}%s}' % (
        len(letters), tensors)
    return part(n), framed(head + " " * (-len(head) % 8), b"\0\0\x80?" * len(letters))


def manifest(*shards):
    """As src/dataset/commit/manifest_write.c spells it; of (name, bytes, samples)."""
    rows, first = [], 0
    for name, data, samples in shards:
        rows.append({"shard_path": name, "samples_count": samples, "bytes": len(data),
                     "sha256": hashlib.sha256(data).hexdigest(), "tensors": samples,
                     "first_sample": first, "valid_samples": samples, "shadowed": 0})
        first += samples
    return json.dumps({
        "format_version": "1.0", "safetensors_version": "1.0", "generator": "libsafetensors 0",
        "commit": UUID, "version": 1, "mode": "kv", "batch_size": None, "name_col": "id",
        "kv_separator": "__", "tail_strategy": "write", "index": None, "total_samples": first,
        "total_valid_samples": first, "total_bytes": sum(len(row[1]) for row in shards),
        "columns": {"v": {"dtype": "F32", "shape": [1]}},
        "schema": {"a__v": {"dtype": "F32", "shape": [1]}}, "shards": rows}).encode()


def receipt(**other):
    row = {"job": JOB, "name": part(0), "stored": "_job-%s/%s" % (UUID, part(0)), "partition": 0,
           "shard": 0, "bytes": 100, "header_bytes": 64, "samples": 2, "valid_samples": 2,
           "tensors": 2, "dropped": 0, "sha256": "0" * 64,
           "columns": [{"name": "v", "dtype": "F32", "shape": [2]}]}
    return dict(row, **other)


def segment(*names):
    """As src/dataset/read/segment.h says, of shards of two samples."""
    count, at, tensors = len(names), 0, ""
    text = "".join(name + "\0" for name in names).encode()
    columns = [(name, "U64", [count], 8 * count) for name in (
        "bytes", "first_sample", "samples", "shadowed", "tensors", "valid_samples")]
    columns += [("names", "U8", [len(text)], len(text)), ("sha256", "U8", [count, 32], 32 * count)]
    for name, dtype, shape, size in columns:
        tensors += ',"%s":%s' % (name, entry(dtype, shape, at, at + size))
        at += size
    head = '{"__metadata__":{"commit":"%s","libsafetensors.dataset":"1","mode":"segment"}%s}' % (
        UUID, tensors)
    numbers = [[100] * count, range(0, 2 * count, 2), [2] * count, [0] * count, [2] * count,
               [2] * count]
    data = b"".join(struct.pack("<%dQ" % count, *row) for row in numbers)
    return framed(head + " " * (-len(head) % 8), data + text + bytes(range(32)) * count)


def datasets():
    """Manifests behind a zero, receipts behind a one, segments behind a two and their number."""
    one, two = shard(0, "ab"), shard(1, "c")
    ours = manifest(one + (2,), two + (1,))
    foreign = json.dumps({
        "format_version": "1.0", "safetensors_version": "1.0", "total_samples": 3,
        "total_bytes": 9, "shards": [{"shard_path": part(n), "samples_count": 1, "bytes": 3}
                                     for n in (1, 0)],
        "schema": {"x": {"dtype": "QX9", "shape": [2, 3]}}}, indent=2).encode()
    dropped = {"job": JOB, "partition": 3, "dropped": 5, "columns": []}
    batch = ours.replace(b'"kv"', b'"batch"').replace(b'"batch_size": null', b'"batch_size": 2')
    out = {"ours": ours, "foreign": foreign, "batch": batch,
           "index": ours.replace(b'"index": null', b'"index": "_tensor_index.parquet"'),
           "up": ours.replace(part(0).encode(), b"../" + part(0).encode()),
           "sum": ours.replace(b'"first_sample": 2', b'"first_sample": 18446744073709551615')}
    told = {"one": [receipt()], "two": [receipt(), receipt(name=part(1), stored=part(1))],
            "dropped": [dropped], "none": [], "other-job": [receipt(job="x")],
            "outside": [receipt(stored="../" + part(0))]}
    out = {"manifest-" + name: b"\0" + data for name, data in out.items()}
    file = segment(part(0), part(1))
    pointer = {"format_version": "2.0", "safetensors_version": "1.0", "commit": UUID, "version": 3,
               "mode": "batch", "batch_size": 2, "total_samples": 4, "total_bytes": 200,
               "columns": {}, "numbered_commits": True, "total_shards": 2, "total_rows": 4,
               "total_padding": 0, "total_tensors": 4, "total_shadowed": 0, "largest_shard": 2,
               "next_file": 2, "segments": [{"sha256": hashlib.sha256(file).hexdigest(),
                                             "bytes": len(file), "shards": 2}]}
    out["manifest-segments"] = b"\0" + json.dumps(pointer).encode()
    out.update({"segment-two": b"\2\2" + file, "segment-none": b"\2\0" + segment(),
                "segment-fewer": b"\2\1" + file,
                "segment-up": b"\2\2" + segment("../" + part(0), part(1))})
    out.update({"receipts-" + name: b"\1" + json.dumps(rows).encode()
                for name, rows in told.items()})
    return out


# ── The command over a folder: the tables of fuzz_command.c and folder.h ──

def expanded(text):
    """C strings side by side, as one; macros of the two files are known."""
    text = re.sub(r"FUZZ_PART\((\d)\)", lambda m: '"%s"' % part(int(m[1])), text)
    model = '"/w/m.safetensors"'
    for macro, value in (("FUZZ_JOB", '"_job-%s"' % UUID), ("INDEX", model + '".index.json"'),
                         ("OUT", '"/w/o.safetensors"'), ("M", model)):
        text = re.sub(r"\b%s\b(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)" % macro, value, text)
    return "".join(re.findall(r'"([^"]*)"', text))


def lines():
    rows = re.findall(r"^    \{ (.*), (?:READS|COPIES|WHOLE|PIECES|TIDIES), (?:true|false) \},$",
                      source("fuzz_command.c"), re.M)
    return [expanded(row) for row in rows]


def slots():
    rows = re.findall(r"^    \{ (.*), SLOT_\w+, (?:true|false) \},$", source("folder.h"), re.M)
    return {expanded(row).removeprefix("/w/"): number for number, row in enumerate(rows)}


SLOTS = slots()


def record(name, data, flag=0):
    return struct.pack("<BH", SLOTS[name] | flag, len(data)) + data


def link(name, target):
    return record(name, target.encode(), 128)


def folder(line, *records, options=0):
    return line.encode() + b"\n" + bytes([options]) + b"".join(records)


def small(title="Neon", names=("w", "a.x"), room=40):
    """Header and data of a small model."""
    tensors = "".join(',"%s":%s' % (name, entry("F32", [2, 2], 16 * i, 16 * i + 16))
                      for i, name in enumerate(names))
    head = '{"__metadata__":{"title":"%s","ss_output_name":"neon"}%s}' % (title, tensors)
    return framed(head.ljust(len(head) + room), b"\0\0\x80?" * 4 * len(names))


def head_of(model):
    return model[:8 + struct.unpack("<Q", model[:8])[0]]


ALL_RIGHT = 1 | 2 | 4 | 8  # JOURNAL_... of folder.h


def journal(before, after, ranges=(), grown=0, how=ALL_RIGHT, method=1):
    """ranges: (at, old bytes, new bytes); what the harness makes right is zero here."""
    words = [0, 0, method, 0, 0, 0, grown, len(before), len(after), len(ranges),
             sum(len(old) for _, old, _ in ranges)]
    out = struct.pack("<11Q", *words)
    out += b"".join(struct.pack("<QQ", at, len(old)) for at, old, _ in ranges)
    out += before + after + b"".join(old + new for _, old, new in ranges)
    return bytes([how]) + out + bytes(8)


def index(**where):
    return json.dumps({"metadata": {"total_size": 48}, "weight_map": where}).encode()


def beside():
    """What lies beside a model in most seeds."""
    return [record("m.json", b'{"description":"Neon","activation text":"neon city"}'),
            record("m.civitai.info", b'{"id":1,"modelId":2,"trainedWords":["neon city"],'
                                     b'"model":{"name":"Neon"}}'),
            record("m.txt", b"neon, night"), record("m.description.txt", b"<b>A city</b>"),
            record("README.md", README.encode())]


def shards():
    where = {"w": "s1.safetensors", "a.x": "s1.safetensors", "b": "s2.safetensors"}
    return [record("m.safetensors.index.json", index(**where)),
            record("s1.safetensors", small()), record("s2.safetensors", small(names=("b",)))]


def dataset_folder():
    one, two = shard(0, "ab"), shard(1, "c")
    old = "ds/_job-%s/%s" % (UUID, part(2))
    return [record("ds/dataset_manifest.json", manifest(one + (2,), two + (1,))),
            record("ds/" + one[0], one[1]), record("ds/" + two[0], two[1]),
            record(old, shard(2, "d")[1])]


def npy():
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
    head = head.ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(16)


def cache(model):
    digest = hashlib.sha256(model).hexdigest()
    return (b'{"safetensors_hash_cache":2}\n{"device":1,"inode":\1,"size":\2,"mtime_ns":\3,'
            b'"ctime_ns":\4,"hashes":{"sha256":"%s"}}\n' % digest.encode())


def plain_folder(line):
    model = small()
    digest = hashlib.sha256(model).hexdigest()
    out = [record("m.safetensors", model), record("-", bytes(range(16)))]
    for word, records in (
            ("info", beside), (" -r ", beside), ("index.json", shards), (" -r ", shards),
            ("/w/ds", dataset_folder), ("n.safetensors", lambda: [
                record("n.safetensors", small("Night", ("w", "v")))]),
            ("x.npy", lambda: [record("x.npy", npy())]),
            ("/w/cache", lambda: [record("cache", cache(model))]),
            ("/w/sums", lambda: [record("sums", ("%s  /w/m.safetensors\nSHA256 (/w/m.txt) = %s\n"
                                                 % (digest, digest)).encode())]),
            ("pairs.json", lambda: [record("pairs.json", b'{"title":"Night","n":1,"a":null}')]),
            ("preview.png", lambda: [record("m.preview.png", png()["text"])])):
        out += records() if word in line else []
    return out


def journals():
    """Models in the middle of an edit, before it and after it."""
    old, new = small(), small("Dusk")
    before, after = head_of(old), head_of(new)
    torn = old[:40] + new[40:]
    put = (len(before), old[len(before):len(before) + 16], bytes(16))
    played = before + bytes(16) + old[len(before) + 16:]
    grown = bytes(64) + old
    taller = head_of(small("Night over the city", room=40 + 49))
    head = journal(before, after)
    data = journal(before, before, [put], method=2)
    growth = journal(before, taller[:len(before) + 64], grown=64, method=3)
    return {
        "old": (old, head), "new": (new, head), "torn": (torn, head), "put": (old, data),
        "put-torn": (played[:len(before) + 5] + old[len(before) + 5:], data),
        "put-done": (played, data), "grown": (grown, growth), "grow": (old, growth),
        "others": (torn, journal(before, after, how=ALL_RIGHT | 16)),
        "open": (torn, journal(before, after, how=ALL_RIGHT | 32)),
        "no-header": (torn, journal(before, b"\xff" * len(before))),
        "planted": (old, journal(before, before[:8] + b" " * (len(before) - 8))),
        "cut": (torn, head[:-30]), "wrong-sum": (torn, journal(before, after, how=7)),
        "range-far": (old, journal(before, before, [(len(old) - 4, bytes(8), bytes(8))])),
    }


def commands():
    out = {}
    for number, line in enumerate(lines()):
        out["%02d-%s" % (number, re.sub(r"[^\w]+", "-", line.replace("/w/", ""))[:40].strip("-"))
            ] = folder(line, *plain_folder(line), options=number % 3 * 2)
    m = "/w/m.safetensors"
    for name, (model, told) in journals().items():
        records = [record("m.safetensors", model), record(".m.safetensors.sft-journal", told),
                   record("-", bytes(16))]
        for verb, line in (("recover", "meta recover --json " + m), ("check", "check -r --explain /w"),
                           ("set", "meta set %s title new" % m), ("put", "put %s w" % m),
                           ("repair", "repair %s -o /w/o.safetensors" % m)):
            out["journal-%s-%s" % (name, verb)] = folder(line, *records, options=2)
    out.update(links())
    return out


def links():
    """Ways out of the folder."""
    listed, one = "info -v --deep /w/m.safetensors", record("m.safetensors", small())
    inner = record("m.safetensors.index.json", index(w="d/s.safetensors"))
    shard_out = [record("m.safetensors.index.json", index(w="s1.safetensors")),
                 link("s1.safetensors", "../out/s.safetensors")]
    each = "--each-shard /w/m.safetensors.index.json"
    part_out = [dataset_folder()[0], link("ds/" + part(0), "/out/" + part(2)),
                link("ds/.dataset.lock", "../../out/lock")]
    made = {
        "sidecar": (listed, one, link("m.txt", "../out/m.txt")),
        "description": (listed, one, link("m.description.txt", "/out/m.txt")),
        "save-as": ("info --save-as a1111 --force --json /w/m.safetensors", one,
                    link("m.json", "../out/m.txt")),
        "save-as-model": ("info --save-as modelspec --force --min-trust 0 --jsonl "
                          "/w/m.safetensors", link("m.safetensors", "../out/s.safetensors")),
        "shard": ("info -v /w/m.safetensors.index.json", *shard_out),
        "folder": ("ls --tree /w/m.safetensors.index.json", inner, link("d", "../out")),
        "set": ("meta set %s title new" % each, *shard_out),
        "set-folder": ("meta set %s title new" % each, inner, link("d", "../out")),
        "rename": ("rename /w/m.safetensors.index.json --add-prefix p.", inner,
                   link("d", "../out")),
        "put": ("put /w/m.safetensors.index.json w", *shard_out, record("-", bytes(8))),
        "journal": ("meta recover /w/m.safetensors", one,
                    link(".m.safetensors.sft-journal", "../out/m.txt")),
        "set-journal": ("meta set /w/m.safetensors title new", one,
                        link(".m.safetensors.sft-journal", "../out/new")),
        "output": ("meta set -o /w/o.safetensors /w/m.safetensors title new", one,
                   link("o.safetensors", "../out/s.safetensors")),
        "model": ("meta set /w/m.safetensors title new", link("m.safetensors", "n.safetensors"),
                  record("n.safetensors", small())),
        "dataset": ("dataset verify --deep --json /w/ds", *part_out),
        "gc": ("dataset gc --delete --grace 0s /w/ds", *dataset_folder()[:3],
               link("ds/_job-" + UUID, "../../out")),
        "compact": ("dataset compact --target 1MB --json /w/ds", *part_out),
        "loop": ("check -r --explain /w", link("d", "."), link("m.safetensors", "m.safetensors")),
        "cache-model": ("hash --algo all --cache /w/cache -r --json /w", one,
                        record("cache", small())),
    }
    return {"link-" + name: folder(*what) for name, what in made.items()}


def dictionary():
    """Keys and words that the tables of src/label know."""
    words = set()
    for path in glob.glob(os.path.join(HERE, "..", "src", "label", "**", "*.c"), recursive=True):
        if os.path.basename(os.path.dirname(path)) != "render":
            words |= set(re.findall(r'^ +\{ "([A-Za-z0-9_./*:<>-]{3,60})",', source(path), re.M))
    words = {part for word in words for part in word.split("/") if len(part) > 2}
    assert len(words) > 600, "the tables of src/label are spelled otherwise"
    return "".join('"%s"\n' % word for word in sorted(words))


def command_dictionary():
    """The lines, and what a dataset's files are spelled with."""
    words = ["%s\\x0a" % line for line in lines()]
    for path in (("read", "manifest_read.c"), ("receipt.c",)):
        text = source("..", "src", "dataset", *path)
        words += sorted(set(re.findall(r'"([a-z_]{4,})"', text)))
    words += ["__metadata__", "dtype", "shape", "data_offsets", "weight_map", "F32", "s1.safetensors",
              "d/s.safetensors", "../out/s.safetensors", "../out/m.txt", "../out", part(0)]
    return "".join('"%s"\n' % word for word in words)


def records():
    """Records of the library, each with what it stands on left out."""
    seeds, types = {}, {}
    for name in ("models/lumina.txt", "models/qwen-image.txt", "models/upscalers.txt"):
        for text in re.split(r"\n(?=[a-z])", source("..", "data", name)):
            word = text.split(" ", 1)[0]
            if word == "model" and types.setdefault(name, 0) < 6:
                types[name] += 1
                seeds["%s-%d" % (os.path.basename(name)[:-4], types[name])] = text.encode()
    seeds["own"] = (b"\xef\xbb\xbf# mine\r\nmodel mine \"Mine\"\r\n    parent base derived\r\n"
                    b"    says civitai \"My model\" My* variant=edit write=Mine\n"
                    b"    file mine high~ in=base,vae\n    tensors vae 90\n        # c\n"
                    b"        blocks.#.attn.weight[8,9|8] | ^x.y[*,...,3]\n        | z.*\n"
                    b"        !img_in.*\n    variant edit:\n        head.weight\n"
                    b"    adapter 70\n        te2:self_attn_[in=8,out=0|8]\n"
                    b"        ^blocks_#_attn$[each]\n    embedding l t5\n    head 8:64\n"
                    b"model base\n    members mine_* other#*\n    file b\nblocks blocks\n    models mine\n")
    return seeds


def records_dictionary():
    words = re.findall(r'NAME\("([^"]+)"\)', source("..", "src", "label", "records", "words.c"))
    words += ["[in=", "[in>=", "[n>=", "[t>=", "each]", "#", " | ", "!", "^", "$", ".*", "[*,", "...,",
              "write=", "variant=", "kind=", "label=", "covers=", "order=", "table=", "of=both", "te1:",
              "derived", "other-layers", "none", "base", "mine", "vae", "diffusion_model", "write",
              "plain", "fused", "\\x0a    ", "\\x0a        ", "\\x0d", "\\x09"]
    return "".join('"%s"\n' % word for word in sorted(set(words)))


def main():
    for name, make in (("open", headers), ("json", texts), ("index", indexes), ("slice", slices),
                       ("info", infos), ("beside", besides), ("dataset", datasets),
                       ("import", import_seeds.imports), ("command", commands),
                       ("answer", answer_seeds.answers), ("remote", remote_seeds.remotes),
                       ("records", records)):
        folder = os.path.join(HERE, "corpus", name)
        os.makedirs(folder, exist_ok=True)
        for seed, data in make().items():
            with open(os.path.join(folder, seed), "wb") as f:
                f.write(data)
    with open(os.path.join(HERE, "import.dict"), "w") as f:
        f.write(import_seeds.import_dictionary())
    with open(os.path.join(HERE, "answer.dict"), "w") as f:
        f.write(answer_seeds.answer_dictionary())
    with open(os.path.join(HERE, "remote.dict"), "w") as f:
        f.write(remote_seeds.remote_dictionary())
    with open(os.path.join(HERE, "records.dict"), "w") as f:
        f.write(records_dictionary())
    with open(os.path.join(HERE, "info.dict"), "w") as f:
        f.write(dictionary())
    with open(os.path.join(HERE, "command.dict"), "w") as f:
        f.write(command_dictionary())


if __name__ == "__main__":
    main()
