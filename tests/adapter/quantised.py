#!/usr/bin/env python3
"""lora merge into quantised models: for every line "write" of data/quantised.layouts the result has
the bytes that quantising the merged values gives, and everything else stays as it was; so with what
others stored. Layouts that cannot be written are refused by name.

    quantised.py          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import COMMAND, ROOT, np, read_plain, write_plain  # noqa: E402 (it skips without NumPy)

HERE = os.path.dirname(os.path.abspath(__file__))
LAYER = "model.diffusion_model.double_blocks.0.img_mlp.0"
OTHER = "model.diffusion_model.double_blocks.0.img_mlp.2"
KOHYA = "lora_unet_double_blocks_0_img_mlp_0"


def run(folder, *words, code=0):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False,
                          cwd=folder)
    if done.returncode != code:
        raise AssertionError("exit %d of %s: %s" % (done.returncode, " ".join(words),
                                                    done.stderr.strip()))
    return done


def f32(array):
    return "F32", list(array.shape), array.astype("<f4").tobytes()


def random_of(rng, rows, cols, by=0.02):
    return (rng.standard_normal((rows, cols)) * by).astype("f4")


def write_lora(folder, rng, rows, cols, rank=4):
    up, down = random_of(rng, rows, rank, 0.3), random_of(rng, rank, cols, 0.3)
    write_plain(os.path.join(folder, "lora.safetensors"), {
        KOHYA + ".lora_up.weight": f32(up), KOHYA + ".lora_down.weight": f32(down),
        KOHYA + ".alpha": f32(np.array(2.0))})
    return 0.75 * 2.0 / rank * (up.astype("f8") @ down.astype("f8"))


def read_values(folder, name, out):
    run(folder, "convert", "--dequantize", name, "-o", out, "--dtype", "F32", "--force",
        "--no-sync")
    return read_plain(os.path.join(folder, out))[0]


def as_array(tensor):
    return np.frombuffer(tensor[2], "<f4").reshape(tensor[1]).astype("f8")


def targets():
    """(layout, format, scale) of the lines "write"."""
    with open(os.path.join(ROOT, "data", "quantised.layouts"), encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [tuple(words[1:4]) for words in lines if words[:1] == ["write"]]


def merged(folder, source, out="merged.safetensors", *more):
    return run(folder, "lora", "merge", source, "lora.safetensors:0.75", "-o", out, "--no-sync",
               "--force", *more)


def same_but(before, after, changed):
    wrong = [name for name in before if name not in after or before[name][:2] != after[name][:2]
             or (before[name] != after[name] and not name.startswith(changed))]
    return wrong + [name for name in after if name not in before]


def check_target(target, rows, cols, seed):
    layout, form, scale = target
    rng = np.random.default_rng(seed)
    how = ["--quantize", form, "--layout", layout, "--scale", scale, "--no-sync", "--force"]
    with tempfile.TemporaryDirectory() as folder:
        delta = write_lora(folder, rng, rows, cols)
        write_plain(os.path.join(folder, "plain.safetensors"), {
            LAYER + ".weight": f32(random_of(rng, rows, cols)),
            LAYER + ".bias": f32(random_of(rng, 1, rows)[0]),
            OTHER + ".weight": f32(random_of(rng, 64, 64))})
        run(folder, "convert", "plain.safetensors", "-o", "q.safetensors", *how)
        before = read_plain(os.path.join(folder, "q.safetensors"))
        if not [name for name in before[0] if "scale" in name]:
            return ["nothing was quantised"]
        merged(folder, "q.safetensors")
        after = read_plain(os.path.join(folder, "merged.safetensors"))
        wrong = same_but(before[0], after[0], LAYER + ".")
        for name in before[0]:
            kept = name.endswith((".bias", ".comfy_quant", ".input_scale"))
            if name.startswith(LAYER) and kept and before[0][name] != after[0][name]:
                wrong.append("%s changed" % name)
        for key in ("quantization_config", "_quantization_metadata"):
            if before[1].get(key) != after[1].get(key):
                wrong.append("%s changed" % key)
        # the same by way of the values
        values = read_values(folder, "q.safetensors", "v.safetensors")
        merged(folder, "v.safetensors", "vm.safetensors")
        run(folder, "convert", "vm.safetensors", "-o", "want.safetensors", *how)
        want = read_plain(os.path.join(folder, "want.safetensors"))[0]
        wrong += ["%s has other bytes than quantising the sum" % name for name in before[0]
                  if name.startswith(LAYER) and after[0].get(name) != want.get(name)]
        # and by what it is: values + delta, as far as the format can tell
        now = read_values(folder, "merged.safetensors", "n.safetensors")
        sums = as_array(values[LAYER + ".weight"]) + delta
        error = np.linalg.norm(as_array(now[LAYER + ".weight"]) - sums) / np.linalg.norm(sums)
        if error > (0.15 if form == "nvfp4" else 0.05):
            wrong.append("the sum is off by %.3g" % error)
        # at random: as large, other codes, the same twice
        for out in ("r1.safetensors", "r2.safetensors"):
            merged(folder, "q.safetensors", out, "--stochastic", "7", "--threads", out[1])
        first, second = (read_plain(os.path.join(folder, n + ".safetensors"))[0]
                         for n in ("r1", "r2"))
        if first != second or first == after[0]:
            wrong.append("rounding at random is not as it should be")
        now = read_values(folder, "r1.safetensors", "n.safetensors")
        error = np.linalg.norm(as_array(now[LAYER + ".weight"]) - sums) / np.linalg.norm(sums)
        if error > (0.25 if form == "nvfp4" else 0.08):
            wrong.append("at random the sum is off by %.3g" % error)
    return wrong


def fp8_codes(values):
    """E4M3, to nearest, even."""
    size = np.abs(values.astype("f8"))
    exponent = np.clip(np.floor(np.log2(np.maximum(size, 1e-300))), -6, 8)
    steps = np.rint(size / 2.0 ** (exponent - 3))
    up = steps == 16
    exponent, steps = exponent + up, np.where(up, 8, steps)
    code = np.where(steps < 8, steps, (exponent + 7) * 8 + (steps - 8)).astype("u1")
    return np.where(values < 0, code | 128, code).astype("u1")


def fp8_values(codes):
    exponent, mantissa = codes.astype(int) >> 3 & 15, codes & 7
    size = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10.0), mantissa * 2.0 ** -9)
    return np.where(codes & 128, -size, size)


def check_stored(kind):
    """FP8 as older files have it, against NumPy."""
    rng = np.random.default_rng(5)
    rows, cols = (256, 384) if kind == "blocks" else (48, 80)
    w = random_of(rng, rows, cols)
    grid = (128, 128) if kind == "blocks" else (rows, cols)

    def spread(s):
        return np.repeat(np.repeat(s, grid[0], 0), grid[1], 1)

    def scales_of(values):
        tiles = np.abs(values.astype("f4")).reshape(rows // grid[0], grid[0], cols // grid[1],
                                                    grid[1])
        return (tiles.max((1, 3)) / np.float32(448)).astype("f4")

    scales = scales_of(w)
    codes = fp8_codes(w / spread(scales))
    tensors = {LAYER + ".weight": ("F8_E4M3", [rows, cols], codes.tobytes())}
    name = {"old": ".scale_weight", "blocks": ".weight_scale_inv"}[kind]
    tensors[LAYER + name] = ("F32", list(scales.shape) if kind == "blocks" else [1],
                             scales.tobytes())
    if kind == "old":
        tensors[LAYER + ".scale_input"] = f32(np.array([1.5]))
        tensors["scaled_fp8"] = ("F8_E4M3", [0], b"")
    with tempfile.TemporaryDirectory() as folder:
        delta = write_lora(folder, rng, rows, cols)
        write_plain(os.path.join(folder, "q.safetensors"), tensors)
        merged(folder, "q.safetensors")
        after = read_plain(os.path.join(folder, "merged.safetensors"))[0]
        sums = fp8_values(codes) * spread(scales) + delta
        want = scales_of(sums)
        have = np.frombuffer(after[LAYER + name][2], "<f4").reshape(want.shape)
        wrong = same_but(tensors, after, (LAYER + ".weight", LAYER + name))
        if not np.allclose(have, want, rtol=1e-6):
            wrong.append("scales differ")
        now = fp8_values(np.frombuffer(after[LAYER + ".weight"][2], "u1").reshape(rows, cols))
        now = now * spread(have)
        step = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(sums) / spread(have))), -6) - 3)
        if (np.abs(now - sums) > 0.5001 * step * spread(have)).any():
            wrong.append("values are further off than half a step")
    return wrong


def check_plain():
    """FP8 without a scale: told how much is lost, and kept on average at random."""
    rng = np.random.default_rng(6)
    rows = cols = 512
    codes = fp8_codes(random_of(rng, rows, cols, 1))
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        up, down = random_of(rng, rows, 2, 0.1), random_of(rng, 2, cols, 0.1)
        delta = up.astype("f8") @ down
        write_plain(os.path.join(folder, "lora.safetensors"), {
            KOHYA + ".lora_up.weight": f32(up), KOHYA + ".lora_down.weight": f32(down)})
        write_plain(os.path.join(folder, "m.safetensors"),
                    {LAYER + ".weight": ("F8_E4M3", [rows, cols], codes.tobytes())})
        done = run(folder, "lora", "merge", "m.safetensors", "lora.safetensors", "-o",
                   "n.safetensors", "--json")
        told = json.loads(done.stdout)["results"][0]
        now = read_plain(os.path.join(folder, "n.safetensors"))[0][LAYER + ".weight"][2]
        same = (np.frombuffer(now, "u1").reshape(rows, cols) == codes)
        moved = (fp8_values(codes).astype("f4") + delta.astype("f4")) != fp8_values(codes)
        if "rounded to what they had been" not in done.stderr:
            wrong.append("no warning: %s" % done.stderr)
        if abs(told["narrow_lost"] - (same & moved).sum()) > 20:
            wrong.append("%d lost, told %d" % ((same & moved).sum(), told["narrow_lost"]))
        found = []
        for out, seed, threads in (("a", "1", "1"), ("b", "1", "3"), ("c", "2", "2")):
            run(folder, "lora", "merge", "m.safetensors", "lora.safetensors", "-o",
                out + ".safetensors", "--stochastic", seed, "--threads", threads)
            found.append(read_plain(os.path.join(folder, out + ".safetensors"))[0])
        if found[0] != found[1] or found[0] == found[2]:
            wrong.append("not the same for a seed, or not another for another")
        after = fp8_values(np.frombuffer(found[0][LAYER + ".weight"][2], "u1").reshape(rows, cols))
        got = after - fp8_values(codes)
        kept = (got * delta).sum() / (delta * delta).sum()
        lost = ((fp8_values(np.frombuffer(now, "u1").reshape(rows, cols)) - fp8_values(codes))
                * delta).sum() / (delta * delta).sum()
        noise = np.sqrt(((got - delta) ** 2 * delta ** 2).sum()) / (delta * delta).sum()
        if abs(kept - 1) > 5 * noise or abs(lost - 1) < 5 * noise:
            wrong.append("at random %.3f of the change, to nearest %.3f, noise %.3f" % (
                kept, lost, noise))
    return wrong


# tests/quant: what can be quantised again as it is stored, and how far off it then is.
AGAIN = {"comfy_convrot": 0.012, "comfy_fp8": 0.03, "comfy_int8": 0.06, "comfy_mxfp8": 0.04,
         "comfy_nvfp4": 0.13, "ct_float": 0.03, "ct_int": 0.06,
         "ct_mxfp8_quantized": 0.04, "modelopt_fp8": 0.03, "modelopt_nvfp4": 0.13,
         "ct_nvfp4_pack_quantized": 0.13, "quanto": 0.012, "torchao": 0.03}


def check_file(path):
    """Each matrix of a file of tests/quant: merged into, or refused by its layout's name."""
    name = os.path.basename(path).split(".")[0]
    values, _ = read_plain(path.replace(".safetensors", ".values.safetensors"))
    wrong, count = [], 0
    for layer, (_, shape, _) in values.items():
        if not layer.endswith("weight") or len(shape) != 2:
            continue
        with tempfile.TemporaryDirectory() as folder:
            stem, rng = layer.removesuffix(".weight"), np.random.default_rng(3)
            source = os.path.join(folder, "m.safetensors")
            shutil.copy(path, source)
            if os.path.exists(path.replace(".safetensors", ".json")):
                shutil.copy(path.replace(".safetensors", ".json"),
                            os.path.join(folder, "config.json"))
            before = read_values(folder, source, "v.safetensors")
            was = as_array(before[layer])
            finite = np.isfinite(was)
            up = random_of(rng, shape[0], 1, 1)
            down = random_of(rng, 1, shape[1], np.abs(was[finite]).mean() / 2)
            write_plain(os.path.join(folder, "lora.safetensors"),
                        {stem + ".lora_B.weight": f32(up), stem + ".lora_A.weight": f32(down)})
            words = ["lora", "merge", source, "lora.safetensors", "-o", "out.safetensors"]
            done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False,
                                  cwd=folder)
            if name not in AGAIN or not finite.all() or done.returncode:
                asked = ("can only be read", "--dequantize") if finite.all() else ("NaN",)
                if done.returncode != 1 or not all(word in done.stderr for word in asked) \
                        or os.path.exists(os.path.join(folder, "out.safetensors")):
                    wrong.append("%s: exit %d: %s" % (layer, done.returncode, done.stderr.strip()))
                continue
            now = read_values(folder, "out.safetensors", "n.safetensors")
            sums = was + up.astype("f8") @ down
            error = np.linalg.norm(as_array(now[layer]) - sums) / np.linalg.norm(sums)
            count += 1
            if error > AGAIN[name]:
                wrong.append("%s is off by %.3g" % (layer, error))
            wrong += ["%s changed" % n for n in before if n != layer and now[n] != before[n]]
    if name in AGAIN and not count:
        wrong.append("nothing was merged")
    return wrong


def main():
    checks = [("%s %s %s" % target, check_target, (target, 128, 256, 1)) for target in targets()]
    checks += [("%s %s %s, ragged" % target, check_target, (target, 70, 144, 2))
               for target in targets() if target[1:] not in (("mxfp8", "block"),)
               or target[0] == "comfy"]
    checks += [("stored, " + kind, check_stored, (kind,)) for kind in ("old", "blocks")]
    checks += [("plain FP8", check_plain, ()), *(
        (os.path.basename(path), check_file, (path,))
        for path in sorted(glob.glob(os.path.join(ROOT, "tests", "quant", "*.safetensors")))
        if os.path.exists(path.replace(".safetensors", ".values.safetensors")))]
    passed, problems = 0, []
    for name, check, arguments in checks:
        try:
            bad = check(*arguments)
        except AssertionError as error:
            bad = [str(error)]
        passed += not bad
        problems += ["%s: %s" % (name, one) for one in bad]
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
