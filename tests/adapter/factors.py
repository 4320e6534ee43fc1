#!/usr/bin/env python3
"""lora resize, stack, extract and simplify: errors are those of the best factors of the rank (by
numpy's SVD in F64), what was merged comes back, and simplified adapters merge to what
tools/adapter_oracles.py wants of the originals.

    factors.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from run import COMMAND, read_plain, values_of, write_plain
import numpy as np

CASES = []
UNET = "lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q"
CONV = "lora_unet_input_blocks_1_0_in_layers_2"


def case(function):
    CASES.append(function)
    return function


class Bad(Exception):
    pass


def demand(fine, *words):
    if not fine:
        raise Bad(" ".join(str(word) for word in words))


def bytes_of(values, dtype="F32"):
    values = np.asarray(values, "f4")
    if dtype == "F16":
        return values.astype("<f2").tobytes()
    if dtype == "BF16":
        bits = values.view("u4").astype("u8")
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
    return values.astype("<f4").tobytes()


def tensor(values, dtype="F32"):
    values = np.asarray(values, "f4")
    return dtype, values.shape, bytes_of(values, dtype)


def noise(seed, *shape, by=0.1):
    return np.random.default_rng(seed).standard_normal(shape) * by


def run(folder, *words, code=0, json_out=False):
    done = subprocess.run([*COMMAND, "lora", *words, *(["--json"] if json_out else [])],
                          capture_output=True, text=True, check=False, cwd=folder, timeout=600)
    demand(done.returncode == code, " ".join(words), "exit", done.returncode, done.stdout[-300:],
           done.stderr[-600:])
    return json.loads(done.stdout)["results"][0] if json_out else done.stdout + done.stderr


def load(folder, name):
    tensors, header = read_plain(os.path.join(folder, name))
    return {name: (np.reshape(values_of(dtype, data), shape), dtype)
            for name, (dtype, shape, data) in tensors.items()}, header


def save(folder, name, tensors):
    write_plain(os.path.join(folder, name), tensors)


def lora(name, up, down, alpha=None, dtype="F32", alpha_dtype="F32"):
    made = {name + ".lora_up.weight": tensor(up, dtype), name + ".lora_down.weight": tensor(down, dtype)}
    if alpha is not None:
        made[name + ".alpha"] = tensor(alpha, alpha_dtype)
    return made


def product(tensors, name, up="lora_up", down="lora_down"):
    up = tensors[name + "." + up + ".weight"][0]
    down = tensors[name + "." + down + ".weight"][0]
    rank = down.shape[0]
    scale = tensors[name + ".alpha"][0] / rank if name + ".alpha" in tensors else 1
    return float(scale) * (up.reshape(up.shape[0], -1) @ down.reshape(rank, -1)), rank


def best(matrix, rank):
    s = np.linalg.svd(matrix, compute_uv=False)
    return float(np.sqrt((s[rank:] ** 2).sum())), s


def close(found, want, rank, slack=1e-6):
    """Whether `found` is as near as the best matrix of that rank."""
    off, s = best(want, rank)
    have = np.linalg.norm(found - want)
    demand(have <= off * 1.0005 + slack * np.linalg.norm(want), "error", have, "best", off)
    return off, s


# ── resize ──

@case
def resize(folder):
    falling = np.diag(10.0 ** -np.linspace(0, 3, 16))
    up, down = noise(1, 96, 16) @ falling, noise(2, 16, 80, by=1)
    conv_up, conv_down = noise(3, 24, 8), noise(4, 8, 12, 3, 3)
    for dtype, alpha_dtype in (("F32", "F32"), ("F16", "F16"), ("BF16", "BF16")):
        save(folder, "in.safetensors", {
            **lora(UNET, up, down, 17.0, dtype, alpha_dtype),
            **lora(CONV, conv_up[:, :, None, None], conv_down, 4.0, dtype),
            "lora_te_text_model.diff": tensor(noise(5, 7)), "extra": ("U8", (3,), b"abc")})
        before, _ = load(folder, "in.safetensors")
        told = run(folder, "resize", "in.safetensors", "-o", "out.safetensors", "--rank", "4",
                   "--conv-rank", "3", "--force", "--no-sync", json_out=True)
        after, header = load(folder, "out.safetensors")
        demand(set(before) == set(after), set(before) ^ set(after))
        demand(after["extra"][1] == "U8" and after[UNET + ".alpha"][1] == alpha_dtype)
        slack = {"F32": 1e-6, "F16": 1e-3, "BF16": 8e-3}[dtype]
        for name, rank in ((UNET, 4), (CONV, 3)):
            want, _ = product(before, name)
            found, have = product(after, name)
            demand(have == rank, name, have)
            off, s = close(found, want, rank, slack)
            one = next(m for m in told["modules"] if m["name"] == name)
            demand(abs(one["error"] - off / np.linalg.norm(s)) < 1e-5, one, off)
            demand(abs(one["norm"] - np.linalg.norm(s)) < 1e-5 * np.linalg.norm(s), one)
        demand(after[CONV + ".lora_down.weight"][0].shape == (3, 12, 3, 3))
        demand(after[CONV + ".lora_up.weight"][0].shape == (24, 3, 1, 1))
        recipe = json.loads(header["sft_lora_resize"])
        demand(len(recipe["adapters"][0]["sha256"]) == 64 and recipe["rank"] == 4, recipe)


def spectrum(values, rows=40, cols=30, seed=7):
    q, _ = np.linalg.qr(noise(seed, rows, len(values)))
    w, _ = np.linalg.qr(noise(seed + 1, cols, len(values)))
    return q * np.asarray(values), w.T


@case
def rules(folder):
    """The example of docs/adapters.md: kohya's scripts count one more."""
    up, down = spectrum([10, 5, 2, 1, .5, .1])
    save(folder, "in.safetensors", lora(UNET, up, down))
    for words, plain, kohya in ((("--sv-ratio", "4"), 2, 3), (("--sv-fro", "0.9"), 2, 3),
                                (("--sv-cumulative", "0.9"), 3, 4), (("--error", "0.25"), 2, 3),
                                (("--error", "0.05"), 4, 5), (("--sv-fro", "1"), 6, 7),
                                (("--sv-ratio", "4", "--rank", "1"), 1, 1)):
        for compat, rank in (((), plain), (("--compat", "kohya"), kohya)):
            told = run(folder, "resize", "in.safetensors", "-o", "out.safetensors", *words, *compat,
                       "--dry-run", json_out=True)
            demand(told["modules"][0]["rank"] == rank, words, compat, told["modules"], rank)


@case
def compat_kohya(folder):
    """All singular values are in the up matrix; the dimension is told in the metadata."""
    up, down = spectrum([10, 5, 2, 1, .5, .1])
    save(folder, "in.safetensors", lora(UNET, up, down, 6.0))
    run(folder, "resize", "in.safetensors", "-o", "out.safetensors", "--sv-ratio", "4", "--compat",
        "kohya", "--no-sync")
    after, header = load(folder, "out.safetensors")
    norms = np.linalg.norm(after[UNET + ".lora_up.weight"][0], axis=0)
    demand(np.allclose(norms, [10, 5, 2], rtol=1e-5), norms)
    demand(float(after[UNET + ".alpha"][0]) == 3.0)
    demand("resized to 3" in header["ss_training_comment"], header)


@case
def zeros(folder):
    save(folder, "in.safetensors", {**lora(UNET, np.zeros((8, 4)), noise(1, 4, 6), 4.0),
                                    **lora(CONV, noise(2, 8, 4), noise(3, 4, 6), 0.0)})
    run(folder, "resize", "in.safetensors", "-o", "out.safetensors", "--sv-ratio", "2", "--no-sync")
    after, _ = load(folder, "out.safetensors")
    found, rank = product(after, UNET)
    demand(rank == 1 and not found.any())
    demand(float(after[CONV + ".alpha"][0]) == 0.0)


@case
def peft(folder):
    """No alpha in the file: the configuration's goes into the factors."""
    up, down = noise(1, 12, 4), noise(2, 4, 10)
    emb_a, emb_b = noise(3, 4, 9), noise(4, 6, 4)
    save(folder, "adapter_model.safetensors", {
        "base_model.model.a.lora_B.weight": tensor(up), "base_model.model.a.lora_A.weight": tensor(down),
        "base_model.model.e.lora_embedding_A": tensor(emb_a),
        "base_model.model.e.lora_embedding_B": tensor(emb_b)})
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as out:
        out.write('{"r": 4, "lora_alpha": 8, "peft_type": "LORA"}')
    said = run(folder, "resize", "adapter_model.safetensors", "-o", "out.safetensors", "--rank", "2",
               "--no-sync")
    demand("lora_alpha is its r" in said, said)
    after, _ = load(folder, "out.safetensors")
    close(after["base_model.model.a.lora_B.weight"][0] @ after["base_model.model.a.lora_A.weight"][0],
          2 * up @ down, 2)
    said = run(folder, "resize", "adapter_model.safetensors", "-o", "adapter_model.sft",
               "--rank", "2", "--no-sync", code=2)
    demand("which would be read with its alpha" in said, said)
    a, b = (after["base_model.model.e.lora_embedding_" + x][0] for x in "AB")
    demand(a.shape == (2, 9) and b.shape == (6, 2), a.shape, b.shape)
    close(b @ a, 2 * emb_b @ emb_a, 2)


# ── stack ──

@case
def stack(folder):
    a, b, c = ((noise(i, 20, r), noise(i + 9, r, 16)) for i, r in ((1, 3), (2, 4), (3, 2)))
    save(folder, "a.safetensors", {**lora(UNET, *a, 1.5), **lora(CONV, *c)})
    save(folder, "b.safetensors", lora(UNET, *b, 8.0))
    want = 0.7 * 0.5 * a[0] @ a[1] - 0.3 * 2 * b[0] @ b[1]
    run(folder, "stack", "a.safetensors:0.7", "b.safetensors:-0.3", "-o", "out.safetensors", "--no-sync")
    after, header = load(folder, "out.safetensors")
    found, rank = product(after, UNET)
    demand(rank == 7 and np.allclose(found, want, atol=1e-6), rank)
    demand(np.allclose(product(after, CONV)[0], 0.7 * c[0] @ c[1], atol=1e-6))
    demand([x["strength"] for x in json.loads(header["sft_lora_stack"])["adapters"]] == [0.7, -0.3])
    run(folder, "stack", "a.safetensors:0.7", "b.safetensors:-0.3", "-o", "two.safetensors", "--rank",
        "2", "--no-sync")
    close(product(load(folder, "two.safetensors")[0], UNET)[0], want, 2)
    # one adapter at strength 1: its very bytes
    run(folder, "stack", "a.safetensors", "-o", "same.safetensors", "--no-sync")
    before, same = read_plain(os.path.join(folder, "a.safetensors"))[0], \
        read_plain(os.path.join(folder, "same.safetensors"))[0]
    demand(same[UNET + ".lora_up.weight"] == before[UNET + ".lora_up.weight"])
    save(folder, "other.safetensors", lora("lora_unet_down_blocks_0_x", *b, 8.0))
    said = run(folder, "stack", "a.safetensors", "other.safetensors", "-o", "no.safetensors", code=1)
    demand("names of layers as the other" in said, said)
    save(folder, "wide.safetensors", lora(UNET, noise(1, 20, 2), noise(2, 2, 17)))
    said = run(folder, "stack", "a.safetensors", "wide.safetensors", "-o", "no.safetensors", code=1)
    demand("as in the other adapter" in said, said)


@case
def stack_names(folder):
    """Adapters that kohya, diffusers and PEFT name, as one under each of the names: fused rows of the
    model get the sum of what each of them adds, by numpy in F64."""
    h, q = 24, "model.diffusion_model.double_blocks.0."
    shapes = {q + "img_attn.qkv.weight": (3 * h, h), q + "img_mlp.0.weight": (4 * h, h),
              "model.diffusion_model.final_layer.adaLN_modulation.1.weight": (2 * h, h)}
    model = {name: noise(i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    qkv, mlp, last = shapes
    save(folder, "model.safetensors", {
        **{name: tensor(w) for name, w in model.items()},
        "model.diffusion_model.img_in.bias": tensor(np.zeros(3072)),
        "model.diffusion_model.vector_in.in_layer.bias": tensor(np.zeros(2)),
        q + "img_attn.norm.key_norm.scale": tensor(np.zeros(2))})
    change = {name: np.zeros(shape) for name, shape in shapes.items()}

    def factors(seed, rows, rank, name, scale, at=slice(None), swap=False):
        up, down = (x.astype("f4").astype("f8") for x in (noise(seed, rows, rank),
                                                         noise(seed + 50, rank, h)))
        delta = up @ down
        change[name][at] += scale * (np.roll(delta, h, 0) if swap else delta)
        return up, down

    save(folder, "kohya.safetensors", {
        **lora("lora_unet_double_blocks_0_img_attn_qkv", *factors(1, 3 * h, 4, qkv, 0.5 * 0.5), 2.0),
        **lora("lora_unet_double_blocks_0_img_mlp_0", *factors(2, 4 * h, 2, mlp, 0.5))})
    block = "transformer_blocks.0."
    for file, begin, scale, seed in (("diffusers", "transformer.", -1.5, 10),
                                     ("adapter_model", "base_model.model.", 2.0, 20)):
        pairs = {block + "attn.to_q": factors(seed, h, 3, qkv, scale, slice(0, h)),
                 block + "attn.to_v": factors(seed + 1, h, 3, qkv, scale, slice(2 * h, 3 * h)),
                 block + "ff.net.0.proj": factors(seed + 2, 4 * h, 3, mlp, scale),
                 "norm_out.linear": factors(seed + 3, 2 * h, 3, last, scale, swap=True)}
        save(folder, file + ".safetensors", {begin + name + ".lora_%s.weight" % end: tensor(value)
                                             for name, pair in pairs.items()
                                             for end, value in zip("BA", pair)})
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as out:
        out.write('{"r": 3, "lora_alpha": 6, "peft_type": "LORA"}')
    inputs = ("kohya.safetensors:0.5", "diffusers.safetensors:-1.5", "adapter_model.safetensors")
    said = run(folder, "stack", *inputs, "-o", "no.safetensors", code=1)
    demand("found none of theirs; --to gives" in said, said)
    said = run(folder, "stack", *inputs, "-o", "no.safetensors", "--to", "kohya", code=1)
    demand("--architecture or --model tells" in said, said)
    said = run(folder, "stack", *inputs, "-o", "no.safetensors", "--to", "kohya", "--architecture",
               "sdxl", code=1)
    demand("no.safetensors" not in os.listdir(folder), said)
    for to, begin in (("kohya", "lora_unet_double"), ("comfy", "diffusion_model.double"),
                      ("diffusers", "transformer.transformer"), ("peft", "base_model.model.")):
        for words in (("--model", "model.safetensors"), ("--architecture", "flux.1", "--rank", "30")):
            told = run(folder, "stack", *inputs, "-o", "out.safetensors", "--force", "--no-sync", "--to",
                       to, *words, json_out=True)
            demand(any(m["name"].startswith(begin) for m in told["modules"]), to, told["modules"])
            run(folder, "merge", "model.safetensors", "out.safetensors", "-o", "sum.safetensors",
                "--force", "--no-sync")
            after, _ = load(folder, "sum.safetensors")
            for name, w in model.items():
                off = np.abs(after[name][0] - w.astype("f4") - change[name]).max()
                demand(off <= 2e-6 * np.abs(change[name]).max(), to, words, name, off)


@case
def alpha_range(folder):
    """What alpha's dtype cannot hold is in the factors."""
    up, down = noise(1, 12, 4), noise(2, 4, 10)
    want = up.astype("f4").astype("f8") @ down.astype("f4").astype("f8")
    for dtype, strength in (("F16", "1e6"), ("F16", "1e-9"), ("BF16", "2e38"), ("F32", "2e38")):
        save(folder, "in.safetensors", lora(UNET, up, down, 4.0, alpha_dtype=dtype))
        run(folder, "stack", "in.safetensors:" + strength, "-o", "out.safetensors", "--force", "--no-sync")
        after, _ = load(folder, "out.safetensors")
        off = np.abs(product(after, UNET)[0] / float(strength) - want).max()
        demand(np.isfinite(off) and off < 1e-6, dtype, strength, off)


@case
def norms(folder):
    """Of factors whose squares F32 does not hold."""
    for scale in (1e30, 1e-30, 1):
        up, down = noise(1, 12, 4) * scale, noise(2, 4, 10) / scale
        save(folder, "in.safetensors", lora(UNET, up, down))
        (module,) = run(folder, "info", "in.safetensors", json_out=True)["modules"]
        want = np.linalg.norm(up.astype("f4").astype("f8") @ down.astype("f4").astype("f8"))
        demand(abs(module["norm"] - want) < 1e-12 * want, scale, module["norm"], want)


# ── extract ──

MODEL = {"model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q.weight": (48, 40),
         "model.diffusion_model.input_blocks.1.0.in_layers.2.weight": (16, 8, 3, 3),
         "model.diffusion_model.input_blocks.4.1.proj_in.weight": (32, 24, 1, 1),
         "conditioner.embedders.1.model.transformer.resblocks.0.attn.in_proj_weight": (48, 16),
         "conditioner.embedders.1.model.transformer.resblocks.0.mlp.c_fc.weight": (64, 16),
         "conditioner.embedders.0.transformer.text_model.encoder.layers.0.mlp.fc1.weight": (40, 20),
         "model.diffusion_model.out.0.weight": (16,), "model.diffusion_model.out.0.bias": (16,),
         "first_stage_model.decoder.conv_in.bias": (4,)}


@case
def extract(folder):
    """What was merged comes back, under names that merge knows."""
    for dtype, slack in (("F32", 2e-5), ("BF16", None)):
        base = {name: tensor(noise(i, *shape, by=0.02), dtype)
                for i, (name, shape) in enumerate(MODEL.items())}
        tuned = dict(base)
        for i, name in enumerate(MODEL):
            shape = MODEL[name]
            if len(shape) > 1 and "proj_in" not in name:
                w = np.reshape(values_of(dtype, base[name][2]), (shape[0], -1))
                d = noise(50 + i, shape[0], 3) @ noise(70 + i, 3, w.shape[1])
                tuned[name] = tensor(np.reshape(w + d, shape), dtype)
        bias = "model.diffusion_model.out.0.bias"
        tuned[bias] = tensor(values_of(dtype, base[bias][2]) + 0.5, dtype)
        save(folder, "base.safetensors", base)
        save(folder, "tuned.safetensors", tuned)
        told = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "out.safetensors",
                   "--rank", "3", "--conv-rank", "3", "--norms", "--force", "--no-sync", json_out=True)
        names = {m["name"] for m in told["modules"]}
        demand(len(names) == 7 and UNET in names and CONV in names, names)
        demand("lora_te2_text_model_encoder_layers_0_self_attn_k_proj" in names, names)
        demand("lora_te1_text_model_encoder_layers_0_mlp_fc1" in names, names)
        demand(told["modules_left_out"] == 1, told)
        run(folder, "merge", "base.safetensors", "out.safetensors", "-o", "again.safetensors",
            "--force", "--no-sync")
        want, again = load(folder, "tuned.safetensors")[0], load(folder, "again.safetensors")[0]
        for name in MODEL:
            off = np.abs(want[name][0] - again[name][0]).max()
            step = 2.0 ** -8 * np.abs(want[name][0]).max()
            demand(off <= (slack if slack else 2 * step), name, dtype, off, step)
    said = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "few.safetensors",
               "--rank", "2")
    demand("1 convolutions differ" in said, said)
    run(folder, "extract", "base.safetensors", "base.safetensors", "-o", "no.safetensors", "--rank", "2",
        code=1)
    for to, name in (("peft", "base_model.model." + list(MODEL)[0][:-7] + ".lora_A.weight"),
                     ("comfy", "diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q."
                               "lora_down.weight")):
        run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", to + ".safetensors",
            "--rank", "2", "--to", to, "--no-sync")
        demand(name in load(folder, to + ".safetensors")[0], to, list(load(folder, to + ".safetensors")[0]))


@case
def extract_embeddings(folder):
    """PEFT has names of its own for factors of embeddings, which are stored the other way round."""
    name = "model.embed_tokens.weight"
    base, delta = noise(1, 30, 12).astype("f4"), noise(2, 30, 2) @ noise(3, 2, 12)
    linear = "model.layers.0.mlp.up_shared.weight" # is no "shared"
    save(folder, "base.safetensors", {name: tensor(base), linear: tensor(base)})
    save(folder, "tuned.safetensors", {name: tensor(base + delta.astype("f4")),
                                       linear: tensor(base + delta.astype("f4"))})
    run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "out.safetensors", "--rank",
        "2", "--no-sync")
    after, _ = load(folder, "out.safetensors")
    a, b = (after["base_model.model.model.embed_tokens.lora_embedding_" + end][0] for end in "AB")
    demand("base_model.model." + linear[:-7] + ".lora_B.weight" in after, after.keys())
    demand(len(after) == 4 and a.shape == (2, 30) and b.shape == (12, 2), after)
    close((b @ a).T, delta, 2, 1e-5)
    run(folder, "merge", "base.safetensors", "out.safetensors", "-o", "again.safetensors", "--no-sync")
    off = np.abs(load(folder, "again.safetensors")[0][name][0] - base - delta).max()
    demand(off < 1e-5, off)
    run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "kohya.safetensors", "--rank",
        "2", "--to", "kohya", "--no-sync")
    demand("lora_unet_embed_tokens.lora_up.weight" in load(folder, "kohya.safetensors")[0],
           load(folder, "kohya.safetensors")[0].keys())


@case
def extract_turned(folder):
    """Layers of GPT-2 have a row for each input: PEFT's A is of the rows, and merge turns them, too."""
    shapes = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 32), "mlp.c_proj": (32, 8)}
    for turned in (True, False): # StarCoder's have the same names, and a row for each output
        base, tuned, deltas = {}, {}, {}
        for i, (leaf, shape) in enumerate(shapes.items()):
            name, own = "transformer.h.0.%s." % leaf, shape if turned else shape[::-1]
            deltas[name] = noise(i, own[0], 2) @ noise(10 + i, 2, own[1])
            base[name + "bias"] = tuned[name + "bias"] = tensor(noise(20 + i, shape[1]))
            w = noise(30 + i, *own)
            base[name + "weight"], tuned[name + "weight"] = tensor(w), tensor(w + deltas[name])
        save(folder, "base.safetensors", base)
        save(folder, "tuned.safetensors", tuned)
        run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "out.safetensors",
            "--rank", "2", "--to", "peft", "--force", "--no-sync")
        after = load(folder, "out.safetensors")[0]
        demand(len(after) == 8, after.keys())
        for name, delta in deltas.items():
            a, b = (after["base_model.model.%slora_%s.weight" % (name, end)][0] for end in "AB")
            close(b @ a, delta.T if turned else delta, 2, 1e-5)
        run(folder, "merge", "base.safetensors", "out.safetensors", "-o", "again.safetensors",
            "--force", "--no-sync")
        again = load(folder, "again.safetensors")[0]
        for name in tuned:
            off = np.abs(again[name][0] - load(folder, "tuned.safetensors")[0][name][0]).max()
            demand(off < 1e-5, turned, name, off)
    square = "transformer.h.0.attn.c_proj.weight" # alone: nothing tells
    save(folder, "base.safetensors", {square: base[square]})
    save(folder, "tuned.safetensors", {square: tuned[square]})
    said = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "no.safetensors",
               "--rank", "2", "--to", "peft", code=1)
    demand("c_attn, c_fc" in said, said)


@case
def simplify_idle(folder):
    """Of DoRA with an alpha of 0 the magnitudes count."""
    w, magnitude = noise(1, 8, 6), np.abs(noise(2, 8, 1)) + 0.5
    save(folder, "model.safetensors",
         {"model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q.weight": tensor(w)})
    save(folder, "dora.safetensors", {**lora(UNET, noise(3, 8, 2), noise(4, 2, 6), 0.0),
                                      UNET + ".dora_scale": tensor(magnitude)})
    run(folder, "simplify", "dora.safetensors", "--model", "model.safetensors", "-o", "out.safetensors",
        "--rank", "exact", "--no-sync")
    found, _ = product(load(folder, "out.safetensors")[0], UNET)
    want = magnitude * w / np.linalg.norm(w, axis=1, keepdims=True) - w
    demand(np.abs(found - want).max() < 1e-5, found - want)


@case
def extract_best(folder):
    """A difference of full rank: the error is that of the SVD, for tall, wide and large layers."""
    for shape in ((300, 120), (120, 300), (700, 900), (5, 400)):
        falling = np.linspace(1, 0.05, min(shape))
        q, w = spectrum(falling, *shape)
        base = noise(1, *shape, by=0.01).astype("f4")
        save(folder, "base.safetensors", {"model.layers.0.mlp.up_proj.weight": tensor(base)})
        save(folder, "tuned.safetensors",
             {"model.layers.0.mlp.up_proj.weight": tensor(base + (q @ w).astype("f4"))})
        want = load(folder, "tuned.safetensors")[0]["model.layers.0.mlp.up_proj.weight"][0] - base
        for rank in (1, 4, 32):
            told = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o",
                       "out.safetensors", "--rank", str(rank), "--force", "--no-sync", json_out=True)
            after, _ = load(folder, "out.safetensors")
            name = "base_model.model.model.layers.0.mlp.up_proj"
            found, have = product(after, name, "lora_B", "lora_A")
            off, s = best(want, rank)
            error = np.linalg.norm(found - want)
            demand(have == min(rank, *shape) and error <= 1.02 * off + 1e-5, shape, rank, error, off)
            demand(abs(told["modules"][0]["error"] - error / np.linalg.norm(s)) < 1e-4, told)
        told = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o", "out.safetensors",
                   "--error", "0.5", "--rank", "1000", "--dry-run", "--force", json_out=True)
        least = int((np.sqrt(np.maximum(0, 1 - np.cumsum(s ** 2) / (s ** 2).sum())) > 0.5).sum()) + 1
        demand(least <= told["modules"][0]["rank"] <= 1.1 * least + 1, told, least)
        demand(told["modules"][0]["error"] <= 0.5, told)


@case
def clamped(folder):
    """Both factors are cut at a quantile of all their values, and the error that is told is theirs."""
    delta = noise(5, 60, 6) @ noise(6, 6, 44)
    base = noise(4, 60, 44, by=0.01).astype("f4")
    save(folder, "base.safetensors", {"model.layers.0.mlp.up_proj.weight": tensor(base)})
    save(folder, "tuned.safetensors",
         {"model.layers.0.mlp.up_proj.weight": tensor(base + delta.astype("f4"))})
    want = load(folder, "tuned.safetensors")[0]["model.layers.0.mlp.up_proj.weight"][0] - base
    words = ("extract", "tuned.safetensors", "base.safetensors", "-o", "out.safetensors", "--rank", "6",
             "--compat", "kohya", "--to", "kohya", "--force", "--no-sync")
    factors = []
    for more in ((), ("--clamp-quantile", "0.9")):
        told = run(folder, *words, *more, json_out=True)
        after, _ = load(folder, "out.safetensors")
        name = told["modules"][0]["name"]
        found, _ = product(after, name)
        error = np.linalg.norm(found - want) / np.linalg.norm(want)
        demand(abs(told["modules"][0]["error"] - error) < 1e-4, more, told, error)
        demand((error > 0.01) == bool(more), more, error)
        factors.append([after[name + end][0] for end in (".lora_up.weight", ".lora_down.weight")])
    (up, down), cut = factors
    most = np.quantile(np.concatenate([up.ravel(), down.ravel()]), 0.9)
    for whole, part in zip((up, down), cut):
        demand(np.abs(np.clip(whole, -most, most) - part).max() < 1e-5, most, np.abs(part).max())
    for value in ("2", "0", "x"):
        run(folder, *words, "--clamp-quantile", value, code=2)


# ── simplify ──

@case
def simplify(folder):
    """Every case of tests/adapter that is no plain LoRA: simplified and merged it is what the
    original is wanted to be."""
    count = 0
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.safetensors"))):
        tensors, notes = read_plain(path)
        parts = {part: {name[len(part) + 1:]: value for name, value in tensors.items()
                        if name.startswith(part + "/")} for part in ("model", "adapter", "want")}
        what = os.path.basename(path).split(".")[0]
        if any(x[0] == "BF16" or x[0] == "F16" or x[0] == "F8_E4M3" for x in parts["model"].values()):
            continue
        if "arguments" in notes or notes["strength"] not in ("1.0", "1"):
            continue
        with tempfile.TemporaryDirectory() as inner:
            save(inner, "model.safetensors", parts["model"])
            save(inner, "adapter_model.safetensors", parts["adapter"])
            if "config" in notes:
                with open(os.path.join(inner, "adapter_config.json"), "w", encoding="utf-8") as out:
                    out.write(notes["config"])
            done = subprocess.run([*COMMAND, "lora", "simplify", "adapter_model.safetensors", "--model",
                                   "model.safetensors", "-o", "plain.safetensors", "--no-sync",
                                   "--rank", "exact", "--dtype", "F32"], capture_output=True,
                                  text=True, check=False, cwd=inner)
            if done.returncode:
                demand(done.returncode == 1 and ("found none" in done.stderr or "no bias" in done.stderr),
                       what, done.stderr)
                continue
            kinds = {name.rsplit(".", 1)[0] for name in load(inner, "plain.safetensors")[0]}
            demand(not any("hada" in kind or "lokr" in kind for kind in kinds), kinds)
            run(inner, "merge", "model.safetensors", "plain.safetensors", "-o", "out.safetensors",
                "--no-sync")
            after, _ = load(inner, "out.safetensors")
            for name, want in parts["want"].items():
                want = values_of(*want[::2])
                was = values_of(*parts["model"][name][::2])
                off = np.linalg.norm(after[name][0].ravel() - want)
                change = np.linalg.norm(want - was)
                demand(off <= 3e-6 * np.linalg.norm(want) + 1e-5 * change, what, name, off, change)
            count += 1
    demand(count >= 13, "only", count)


@case
def simplify_alone(folder):
    """LoHa and LoKr need no model; GLoRA does."""
    w1, w2 = noise(1, 4, 3), noise(2, 12, 10)
    save(folder, "lokr.safetensors", {UNET + ".lokr_w1": tensor(w1), UNET + ".lokr_w2": tensor(w2)})
    told = run(folder, "simplify", "lokr.safetensors", "-o", "out.safetensors", "--rank", "6",
               "--no-sync", json_out=True)
    found, rank = product(load(folder, "out.safetensors")[0], UNET)
    off, s = close(found, np.kron(w1, w2), 6)
    demand(rank == 6 and abs(told["error"] - off / np.linalg.norm(s)) < 1e-5, told)
    save(folder, "glora.safetensors", {UNET + "." + end + ".weight": tensor(noise(3, *shape))
                                       for end, shape in (("a1", (8, 2)), ("a2", (2, 8)),
                                                          ("b1", (9, 2)), ("b2", (2, 8)))})
    said = run(folder, "simplify", "glora.safetensors", "-o", "no.safetensors", "--rank", "2", code=1)
    demand("expected a model" in said, said)


@case
def simplify_scaled(folder):
    """Alpha of plain modules stays where only a configuration told it, at their own rank."""
    up, down, whole = noise(1, 6, 3), noise(2, 3, 6), noise(3, 6, 6)
    q, k = ("base_model.model.blocks.0.attn.to_" + which for which in "qk")
    save(folder, "adapter_model.safetensors",
         {q + ".lora_A.weight": tensor(down), q + ".lora_B.weight": tensor(up),
          k + ".diff": tensor(whole)})
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as out:
        out.write('{"r": 3, "lora_alpha": 12, "peft_type": "LORA"}')
    told = run(folder, "simplify", "adapter_model.safetensors", "-o", "out.safetensors", "--rank", "2",
               "--dtype", "F32", "--no-sync", json_out=True)
    save(folder, "model.safetensors", {"blocks.0.attn.to_%s.weight" % which: tensor(np.zeros((6, 6)))
                                       for which in "qk"})
    run(folder, "merge", "model.safetensors", "out.safetensors", "-o", "merged.safetensors", "--no-sync")
    found = load(folder, "merged.safetensors")[0]["blocks.0.attn.to_q.weight"][0]
    demand(np.allclose(found, 4 * up @ down, rtol=1e-5, atol=1e-5), told, found / (up @ down))


@case
def simplify_dtype(folder):
    """The dtype of the factors is that of the values, not that of a flag beside them."""
    save(folder, "model.safetensors", {"a.weight": tensor(noise(1, 6, 5))})
    save(folder, "ia3.safetensors", {"lora_unet_a.weight": tensor(noise(2, 5)),
                                     "lora_unet_a.on_input": ("U8", (), b"\x01")})
    run(folder, "simplify", "ia3.safetensors", "-o", "out.safetensors", "--rank", "exact",
        "--model", "model.safetensors", "--no-sync")
    with open(os.path.join(folder, "out.safetensors"), "rb") as file:
        demand(b"BF16" not in file.read(), "factors in BF16")


# ── What is refused ──

@case
def refused(folder):
    nan = np.full((8, 2), np.nan)
    save(folder, "nan.safetensors", lora(UNET, nan, noise(1, 2, 8)))
    save(folder, "loha.safetensors", {UNET + ".hada_" + end: tensor(noise(2, *shape)) for end, shape in (
        ("w1_a", (8, 2)), ("w1_b", (2, 8)), ("w2_a", (8, 2)), ("w2_b", (2, 8)))})
    save(folder, "large.safetensors", lora(UNET, noise(1, 8, 2, by=1e6), noise(2, 2, 8, by=1e6), dtype="F32"))
    save(folder, "tiny.safetensors", lora(UNET, noise(1, 8, 2, by=1e-9), noise(2, 2, 8, by=1e-9)))
    save(folder, "model.safetensors", {"a.weight": tensor(noise(1, 8, 8))})
    save(folder, "other.safetensors", {"a.weight": tensor(noise(1, 8, 9))})
    save(folder, "nanmodel.safetensors", {"a.weight": tensor(np.full((8, 8), np.nan))})
    save(folder, "rank.safetensors", {"a.lora_A.weight": ("F32", (2 ** 31, 0), b""),
                                      "a.lora_B.weight": ("F32", (0, 2 ** 31), b"")})
    save(folder, "scaled.safetensors", {"a.weight": ("F8_E4M3", (8, 8), bytes(64)),
                                        "a.weight_scale": tensor(1.0)})
    save(folder, "codes.safetensors", {"c.weight": ("I8", (8, 4), bytes(32))})
    save(folder, "dora.safetensors", {**lora("lora_unet_c", noise(1, 8, 2), noise(2, 2, 4)),
                                      "lora_unet_c.dora_scale": tensor(noise(3, 8, 1))})
    save(folder, "huge.safetensors", {UNET + ".diff": tensor(np.full((8, 8), 3e38))})
    save(folder, "hugemodel.safetensors", {"a.weight": tensor(np.full((8, 8), 3e38))})
    before = sorted(os.listdir(folder))
    out = ("-o", "out.safetensors")
    for words, code, said in (
            (("resize", "nan.safetensors", "--rank", "1"), 1, "found NaN"),
            (("stack", "nan.safetensors", "--rank", "1"), 1, "found NaN"),
            (("resize", "loha.safetensors", "--rank", "1"), 1, "(simplify makes them)"),
            (("stack", "loha.safetensors"), 1, "(simplify makes them)"),
            (("resize", "rank.safetensors", "--rank", "1"), 1, "without elements"),
            (("resize", "large.safetensors", "--rank", "1", "--dtype", "F16"), 1, "F16 can hold"),
            (("resize", "tiny.safetensors", "--rank", "1", "--dtype", "F16"), 1, "all become 0"),
            (("resize", "model.safetensors", "--rank", "1"), 1, "expected an adapter"),
            (("extract", "model.safetensors", "other.safetensors", "--rank", "1"), 1, "another shape"),
            (("extract", "nanmodel.safetensors", "model.safetensors", "--rank", "1"), 1, "found NaN"),
            (("extract", "scaled.safetensors", "model.safetensors", "--rank", "1"), 1, "a quantised one"),
            (("extract", "model.safetensors", "scaled.safetensors", "--rank", "1"), 1, "a quantised one"),
            (("simplify", "dora.safetensors", "--model", "codes.safetensors", "--rank", "1"), 1,
             "a quantised one"),
            (("simplify", "dora.safetensors", "--rank", "1"), 1, "expected a model"),
            (("simplify", "huge.safetensors", "--rank", "exact"), 1, "sums F32 can hold"),
            (("extract", "hugemodel.safetensors", "model.safetensors", "--rank", "1"), 1,
             "sums F32 can hold"),
            (("stack", "dora.safetensors"), 1, "with DoRA's magnitudes"),
            (("extract", "model.safetensors", "--rank", "1"), 2, "expected TUNED and BASE"),
            (("resize", "nan.safetensors"), 2, "expected --rank"),
            (("resize", "nan.safetensors", "--rank", "0"), 2, "a rank from 1"),
            (("resize", "nan.safetensors", "--rank", "4294967297"), 2, "a rank from 1"),
            (("resize", "nan.safetensors", "--sv-fro", "1.5"), 2, "up to 1"),
            (("resize", "nan.safetensors", "--sv-fro", "0.5", "--error", "0.1"), 2, "one rule"),
            (("resize", "nan.safetensors", "--error", "-1"), 2, "positive number"),
            (("resize", "nan.safetensors", "--rank", "1", "--dtype", "I8"), 2, "F32, F16 or BF16"),
            (("resize", "nan.safetensors", "--sv-ratio", "1e31"), 2, "up to 1e+30"),
            (("stack", "nan.safetensors", "--blocks", "*=0"), 2, "--blocks with merge only"),
            (("resize", "nan.safetensors", "--rank", "1", "--to", "peft"), 2,
             "--to with convert extract stack only"),
    ):
        told = run(folder, *words, *out, code=code)
        demand(said in told, words, told)
        demand(sorted(os.listdir(folder)) == before, words, os.listdir(folder))


@case
def threads(folder):
    """The same bytes, whatever the number of threads."""
    tensors = {}
    for i in range(20):
        tensors.update(lora("lora_unet_x_%d" % i, noise(i, 64, 8), noise(i + 99, 8, 48), 4.0))
    save(folder, "in.safetensors", tensors)
    for n in ("1", "3"):
        run(folder, "resize", "in.safetensors", "-o", n + ".safetensors", "--error", "0.4", "--threads",
            n, "--no-sync")
    with open(os.path.join(folder, "1.safetensors"), "rb") as a, \
            open(os.path.join(folder, "3.safetensors"), "rb") as b:
        demand(a.read() == b.read())


def main():
    only, passed, problems = sys.argv[1:], 0, []
    for function in CASES:
        if only and function.__name__ not in only:
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                function(folder)
            passed += 1
        except (Bad, KeyError, ValueError) as bad:
            problems.append("%s: %s" % (function.__name__, str(bad) or repr(bad)))
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
