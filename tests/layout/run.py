#!/usr/bin/env python3
"""convert --layout and lora convert on what diffusers' own converters made of the same bytes
(tools/layout_oracles.py): names, shapes and digests; and the way back, bit for bit.

    run.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import gzip
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
failures, passed = [], 0


def made(name, shape, salt=0):
    """The bytes of a BF16 tensor, by its name."""
    count = 2
    for size in shape:
        count *= size
    return hashlib.shake_128(b"%d %s" % (salt, name.encode())).digest(count)


def write(path, tensors, metadata=None):
    """(shape, bytes) or (shape, bytes, dtype) by name."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name in sorted(tensors):
        shape, data, *dtype = tensors[name]
        header[name] = {"dtype": dtype[0] if dtype else "BF16", "shape": shape,
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.write(b"".join(tensors[name][1] for name in sorted(tensors)))


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (one["shape"], data[end + one["data_offsets"][0]:end + one["data_offsets"][1]])
            for name, one in header.items()}


def digest(shape, data):
    return [shape, hashlib.sha256(data).hexdigest()[:16]]


def run(*arguments):
    return subprocess.run(COMMAND + list(arguments), capture_output=True, text=True, timeout=300)


def check(what, good, why=""):
    global passed
    if good:
        passed += 1
    else:
        failures.append("%s: %s" % (what, why))


def same(what, have, want):
    missing, more = sorted(set(want) - set(have)), sorted(set(have) - set(want))
    other = [name for name in want if name in have and have[name] != want[name]]
    check(what, not (missing or more or other), "missing %s, more %s, other %s"
          % (missing[:3], more[:3], other[:3]))


def component(folder):
    """All tensors of the only component of a folder."""
    tensors = {}
    for place, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".safetensors"):
                tensors.update(read(os.path.join(place, file)))
    return tensors


def model_case(name, case, folder):
    single = {key: (shape, made(key, shape)) for key, shape in case["single"].items()}
    path, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out")
    architecture = ["--architecture", case["architecture"]] if case["architecture"] else []
    write(path, single)
    for shards in ([], ["--max-shard-size", "64KB"]):
        result = run("convert", path, "-o", out, "--layout", "diffusers", *architecture, *shards)
        check(name, result.returncode == 0, result.stderr)
        if result.returncode:
            return
        want = case["diffusers"]
        have = {key: digest(*value) if want.get(key, [0, 0])[1] else [value[0], None]
                for key, value in component(out).items()}
        same(name + " as diffusers has it", {k: v for k, v in have.items()
                                             if k not in case["kept"]}, want)
        same(name + " kept", {k: v for k, v in have.items() if k in case["kept"]}, case["kept"])
        back = os.path.join(folder, "back.safetensors")
        where = next((os.path.join(out, one) for one in sorted(os.listdir(out))
                      if os.path.isdir(os.path.join(out, one))), out)
        result = run("convert", where, "-o", back, "--layout", "single", "--force", *architecture)
        check(name + " back", result.returncode == 0, result.stderr)
        if result.returncode == 0:
            same(name + " back, bit for bit", read(back), single)
        out += "2"


def adapter_case(name, case, folder):
    tensors = {}
    for key, shape in case["adapter"].items():
        alpha = key.endswith(".alpha")
        tensors[key] = (shape, b"\x00\x40" if alpha else made(key, shape))
    path = os.path.join(folder, "in.safetensors")
    write(path, tensors)
    for to, back in case["ways"]:
        names = {"peft": "adapter_model"}  # beside which adapter_config.json is read
        out, again = (os.path.join(folder, names.get(to, to) + ".safetensors"),
                      os.path.join(folder, names.get(back, "again") + ".safetensors"))
        for source, target, format in ((path, out, to), (out, again, back)):
            result = run("lora", "convert", source, "-o", target, "--to", format, "--force",
                         "--architecture", case["architecture"])
            check("%s to %s" % (name, format), result.returncode == 0, result.stderr)
            if result.returncode:
                break
        else:
            same("%s to %s and back" % (name, to), read(again), tensors)
        if to == "diffusers" and case.get("diffusers") and os.path.exists(out):
            have = {key: digest(*value) for key, value in read(out).items()}
            want = case["diffusers"]
            if case["exact"]:
                same(name + " as diffusers has it", have, want)
            else:
                same(name + " names as diffusers has them", {key: have[key][0] for key in have},
                     {key: want[key][0] for key in want})


def refusals(folder):
    """What cannot be right is named, and nothing is written."""
    cases = json.load(gzip.open(os.path.join(HERE, "cases.json.gz")))["models"]
    flux = cases["flux"]["single"]
    names = {
        "odd rows": {**flux, "double_blocks.0.img_attn.qkv.weight": [97, 32]},
        "odd bias": {**flux, "single_blocks.0.linear1.bias": [90]},
        "not known": {**flux, "double_blocks.0.img_attn.other.weight": [2, 2]},
        "a scale": {**flux, "double_blocks.0.img_attn.qkv.weight_scale": [1]},
        "no dimension": {**flux, "final_layer.adaLN_modulation.1.weight": []},
    }
    for name, shapes in names.items():
        path, out = os.path.join(folder, "bad.safetensors"), os.path.join(folder, "none")
        write(path, {key: (shape, made(key, shape)) for key, shape in shapes.items()})
        result = run("convert", path, "-o", out, "--layout", "diffusers",
                     "--architecture", "flux.1")
        check("refused: " + name, result.returncode == 1 and "safetensors:" in result.stderr,
              "%d %s" % (result.returncode, result.stderr))
        check("nothing written: " + name, not os.path.exists(out), "a folder")
    path, out = os.path.join(folder, "scaled.safetensors"), os.path.join(folder, "scaled")
    scaled = {key: (shape, made(key, shape)) for key, shape in flux.items()}
    companions = {end: ([2], made(end, [2])) for end in ("weight_scale", "comfy_quant")}
    write(path, {**scaled, **{"double_blocks.0.img_attn.proj." + end: value
                              for end, value in companions.items()}})
    result = run("convert", path, "-o", out, "--layout", "diffusers", "--architecture", "flux.1")
    check("companions", result.returncode == 0, result.stderr)
    have = component(out)
    same("companions follow their tensor", {end: have.get(
        "transformer_blocks.0.attn.to_out.0." + end) for end in companions}, companions)
    for name, case, more, model in (
            ("two for one", "sd1", {"output_blocks.2.2.conv.weight": "output_blocks.2.1.conv.weight"},
             "sd-1"),
            ("two norms", "flux2", {"double_blocks.0.img_attn.norm.query_norm.weight":
                                    "double_blocks.0.img_attn.norm.query_norm.scale"}, "flux.2")):
        shapes = dict(cases[case]["single"])
        shapes.update({key: shapes[of] for key, of in more.items()})
        path, out = os.path.join(folder, "bad.safetensors"), os.path.join(folder, "none")
        write(path, {key: (shape, made(key, shape)) for key, shape in shapes.items()})
        for dry in ([], ["--dry-run"]):
            result = run("convert", path, "-o", out, "--layout", "diffusers", "--architecture",
                         model, *dry)
            check("refused: " + name, result.returncode == 1 and "found two" in result.stderr,
                  "%d %s" % (result.returncode, result.stderr))
    write(path, {key: (shape, made(key, shape)) for key, shape in cases["sd1"]["single"].items()})
    for name, code, said, inputs, words in (
            ("another model's", 1, "the unet of ", [path], ["--architecture", "flux.1"]),
            ("two denoisers", 1, "found two", [path, path], ["--architecture", "sd-1"]),
            ("a dtype", 2, "without --dtype", [path], ["--dtype", "F16"]),
            ("some tensors", 2, "without --match", [path], ["--match", "*"]),
            ("its place", 2, "without --in-place", [path], ["--in-place"])):
        result = run("convert", *inputs, "-o", out, "--layout", "diffusers", *words)
        check("refused: " + name, result.returncode == code and said in result.stderr
              and not os.path.exists(out), "%d %s" % (result.returncode, result.stderr))
    result = run("convert", path, "-o", out, "--layout", "diffuser")
    check("refused: no layout", "expected diffusers, single or comfy" in result.stderr, result.stderr)
    back = cases["flux"]["diffusers"]
    whole = {key: (shape, made(key, shape)) for key, (shape, _) in back.items()}
    one = "transformer_blocks.0.attn.to_k.weight"
    for name, tensors in {"a piece is missing": {k: v for k, v in whole.items() if k != one},
                          "a piece of other columns": {**whole, one: ([32, 16], bytes(1024))},
                          "a piece of other rows": {**whole, one: ([16, 32], bytes(1024))},
                          "a piece of another dtype": {**whole, one: ([32, 32], bytes(4096),
                                                                      "F32")}}.items():
        path, out = os.path.join(folder, "bad.safetensors"), os.path.join(folder, "none.safetensors")
        write(path, tensors)
        result = run("convert", path, "-o", out, "--layout", "single", "--architecture", "flux.1")
        check("refused: " + name, result.returncode == 1, "%d %s" % (result.returncode,
                                                                     result.stderr))
        check("nothing written: " + name, not os.path.exists(out), "a file")


# ── Whole checkpoints ──

def clip(words, width, projection=False):
    """A text encoder of transformers: two layers; only its table has the model's own width."""
    names = {"text_model.embeddings.token_embedding.weight": [words, width],
             "text_model.embeddings.position_embedding.weight": [4, 8],
             "text_model.final_layer_norm.weight": [8], "text_model.final_layer_norm.bias": [8]}
    for i in range(2):
        for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                     "self_attn.out_proj"):
            names["text_model.encoder.layers.%d.%s.weight" % (i, part)] = [8, 8]
            names["text_model.encoder.layers.%d.%s.bias" % (i, part)] = [8]
        for part, shape in (("mlp.fc1", [16, 8]), ("mlp.fc2", [8, 16]), ("layer_norm1", [8]),
                            ("layer_norm2", [8])):
            names["text_model.encoder.layers.%d.%s.weight" % (i, part)] = shape
    if projection:
        names["text_projection.weight"] = [6, 8]
    return {key: (shape, made(key, shape, width)) for key, shape in names.items()}


def t5():
    names = {"shared.weight": [4, 8], "encoder.embed_tokens.weight": [4, 8],
             "encoder.final_layer_norm.weight": [8]}
    for part in "qkvo":
        names["encoder.block.0.layer.0.SelfAttention.%s.weight" % part] = [8, 8]
    names["encoder.block.0.layer.1.DenseReluDense.wi_0.weight"] = [16, 8]
    return {key: (shape, made(key, shape, 5)) for key, shape in names.items()}


def openclip(tensors):
    """Those of a text encoder of transformers as OpenCLIP has them, by this file's own rules."""
    out, layer = {}, "text_model.encoder.layers.%d.%s"
    plain = {"text_model.embeddings.token_embedding.weight": "token_embedding.weight",
             "text_model.embeddings.position_embedding.weight": "positional_embedding",
             "text_model.final_layer_norm.weight": "ln_final.weight",
             "text_model.final_layer_norm.bias": "ln_final.bias"}
    for i in range(2):
        for mine, theirs in (("self_attn.out_proj.weight", "attn.out_proj.weight"),
                             ("self_attn.out_proj.bias", "attn.out_proj.bias"),
                             ("mlp.fc1.weight", "mlp.c_fc.weight"),
                             ("mlp.fc2.weight", "mlp.c_proj.weight"),
                             ("layer_norm1.weight", "ln_1.weight"),
                             ("layer_norm2.weight", "ln_2.weight")):
            plain[layer % (i, mine)] = "transformer.resblocks.%d.%s" % (i, theirs)
        for end, shape in (("weight", [24, 8]), ("bias", [24])):
            pieces = [tensors[layer % (i, "self_attn.%s_proj.%s" % (q, end))][1] for q in "qkv"]
            out["transformer.resblocks.%d.attn.in_proj_%s" % (i, end)] = (shape, b"".join(pieces))
    for mine, theirs in plain.items():
        out[theirs] = tensors[mine]
    rows, data = tensors["text_projection.weight"][0], tensors["text_projection.weight"][1]
    turned = b"".join(data[2 * (r * rows[1] + c):][:2] for c in range(rows[1])
                      for r in range(rows[0]))
    out["text_projection"] = (rows[::-1], turned)
    return out


def checkpoints(cases, folder):
    """merge --as checkpoint of a pipeline's components, select --part, and back."""
    xl = clip(5, 1280, True)
    pipelines = {
        "sd-1": ("sd1", "unet", "first_stage_model.",
                 {"text_encoder": (clip(4, 768), None, "cond_stage_model.transformer.")}),
        "sdxl": ("sdxl", "unet", "first_stage_model.",
                 {"text_encoder": (clip(4, 768), None, "conditioner.embedders.0.transformer."),
                  "text_encoder_2": (xl, openclip(xl), "conditioner.embedders.1.model.")}),
        "sd-3": ("sd3", "transformer", "first_stage_model.",
                 {"text_encoder": (clip(4, 768), None, "text_encoders.clip_l.transformer."),
                  "text_encoder_2": (clip(5, 1280), None, "text_encoders.clip_g.transformer."),
                  "text_encoder_3": (t5(), None, "text_encoders.t5xxl.transformer.")}),
        "flux.1": ("flux", "transformer", "vae.",
                   {"text_encoder": (clip(4, 768), None, "text_encoders.clip_l.transformer."),
                    "text_encoder_2": (t5(), None, "text_encoders.t5xxl.transformer.")}),
    }
    for model, (case, denoiser, vae, encoders) in pipelines.items():
        root = os.path.join(folder, model)
        want, parts = {}, {}
        for name, source, prefix in ((denoiser, case, "model.diffusion_model."),
                                     ("vae", "vae", vae)):
            single = {key: (shape, made(key, shape))
                      for key, shape in cases[source]["single"].items()}
            path = os.path.join(folder, "one.safetensors")
            write(path, single)
            result = run("convert", path, "-o", os.path.join(folder, "one"), "--layout",
                         "diffusers", "--architecture", model)
            check(model + " " + name, result.returncode == 0, result.stderr)
            parts[name] = component(os.path.join(folder, "one"))
            shutil.rmtree(os.path.join(folder, "one"), ignore_errors=True)
            want.update({prefix + key: value for key, value in single.items()})
        for name, (tensors, single, prefix) in encoders.items():
            parts[name] = tensors
            want.update({prefix + key: value for key, value in (single or tensors).items()})
        inputs = []
        for name, tensors in parts.items():
            os.makedirs(os.path.join(root, name))
            inputs.append(os.path.join(root, name, "model.safetensors"))
            write(inputs[-1], tensors)
        out = os.path.join(folder, model + ".safetensors")
        result = run("merge", *inputs, "-o", out, "--as", "checkpoint", "--architecture", model)
        check(model + " as checkpoint", result.returncode == 0, result.stderr)
        if result.returncode:
            continue
        same(model + " as checkpoint", read(out), want)
        for name, (tensors, single, prefix) in encoders.items():
            part = os.path.join(folder, "part.safetensors")
            result = run("select", out, "-o", part, "--part", name, "--architecture", model,
                         "--force")
            check("%s, part %s" % (model, name), result.returncode == 0, result.stderr)
            same("%s, part %s" % (model, name), read(part),
                 {prefix + key: value for key, value in (single or tensors).items()})
        back = os.path.join(folder, model + "-back")
        result = run("convert", out, "-o", back, "--layout", "diffusers", "--architecture", model)
        check(model + " back", result.returncode == 0, result.stderr)
        for name, tensors in parts.items():
            same("%s back, %s" % (model, name), component(os.path.join(back, name)), tensors)


def main():
    only = sys.argv[1:]
    with gzip.open(os.path.join(HERE, "cases.json.gz"), "rt", encoding="utf-8") as file:
        cases = json.load(file)
    for kind, each in (("models", model_case), ("adapters", adapter_case)):
        for name, case in cases[kind].items():
            if not only or name in only:
                with tempfile.TemporaryDirectory() as folder:
                    each(name, case, folder)
    if not only:
        with tempfile.TemporaryDirectory() as folder:
            refusals(folder)
        with tempfile.TemporaryDirectory() as folder:
            checkpoints(cases["models"], folder)
    for failure in failures:
        print(failure[:600])
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
