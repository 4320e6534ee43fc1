#!/usr/bin/env python3
"""catalog --model against numpy: columns of tensors, statistics, histograms, norms of LoRA modules.

    model_page.py [NAME...]        needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import json
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import ml_dtypes
    import numpy as np
except ImportError as error:
    print("model_page: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
DTYPES = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64,
          "F8_E4M3": ml_dtypes.float8_e4m3fn, "I64": np.int64, "U8": np.uint8, "BOOL": np.bool_}
BLOCK = re.compile(r'<script type="application/json" id="model">(.*?)</script>', re.S)


def write(path, tensors, metadata=None):
    """A file of (name, dtype, array) each, in this order."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, array in tensors:
        raw = np.ascontiguousarray(array.astype(DTYPES[dtype])).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    return path


def page(path, *options, code=0):
    """What the page about it has, and the page itself."""
    out = path.rstrip("/") + ".html"
    done = subprocess.run(COMMAND + ["catalog", "--model", path, "-o", out, "--force", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code, (done.returncode, done.stderr)
    if code:
        return done.stderr
    with open(out, encoding="utf-8", newline="") as text:
        whole = text.read()
    assert len(BLOCK.findall(whole)) == 1, "one block"
    return json.loads(BLOCK.search(whole)[1]), whole


def names(data):
    """Names, whose shared part is counted in UTF-16 units."""
    found, before = [], b""
    for shared, rest in zip(data["shared"], data["rest"], strict=True):
        before = before[:2 * shared] + rest.encode("utf-16-le", "surrogatepass")
        found.append(before.decode("utf-16-le"))
    return found


def close(found, expected, what, tolerance=1e-8):
    if isinstance(expected, float) and math.isnan(expected):
        assert found == "NaN", "%s: expected NaN, found %r" % (what, found)
        return
    good = found == expected or (not isinstance(found, str)
                                 and abs(found - expected) <= tolerance * max(abs(expected), 1e-30))
    assert good, "%s: expected %r, found %r" % (what, expected, found)


def check_columns(data, tensors, offset):
    assert names(data) == [name for name, _, _ in tensors], names(data)
    assert data["count"] == len(tensors)
    for i, (name, dtype, array) in enumerate(tensors):
        assert data["dtypes"][data["dtype"][i]] == dtype, name
        assert data["shapes"][data["shape"][i]] == ",".join(map(str, array.shape)), name
        assert data["bytes"][i] == array.size * np.dtype(DTYPES[dtype]).itemsize, name
        assert data["offset"][i] == offset, name
        offset += data["bytes"][i]


def check_stats(data, tensors):
    for i, (name, dtype, array) in enumerate(tensors):
        found = {key: column[i] for key, column in data["stats"].items()}
        values = array.astype(DTYPES[dtype]).astype(np.float64).ravel()
        finite = values[np.isfinite(values)]
        assert found["nan"] == np.isnan(values).sum(), name
        assert found["inf"] == np.isinf(values).sum(), name
        assert found["zeros"] == (values == 0).sum(), name
        for key, of in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std)):
            if not values.size:
                assert found[key] is None, (name, key, found[key])
            else:
                expected = float(of(finite)) if finite.size else math.nan
                # What is small beside the values themselves is rounding of numpy's.
                if key in ("mean", "std") and finite.size:
                    assert abs(found[key] - expected) <= 1e-8 * np.max(np.abs(finite)), (name, key)
                else:
                    close(found[key], expected, "%s %s" % (name, key))
        exponents = np.frexp(np.abs(finite[finite != 0]))[1] - 1
        exponents = np.clip(exponents, -64, 63)
        expected = []
        if exponents.size:
            first = int(exponents.min())
            expected = [first, *np.bincount(exponents - first).tolist()]
        assert found["histogram"] == expected, (name, expected, found["histogram"])


def case_values(folder):
    """Every kind of values; nothing finite; nothing at all; scalars."""
    dice = np.random.default_rng(1)
    odd = dice.normal(size=(7, 9))
    odd[0, :3] = [np.nan, np.inf, -np.inf]
    tensors = [(dtype.lower(), dtype, dice.normal(size=(5, 3)) * 3) for dtype in DTYPES]
    tensors += [("odd", "F32", odd), ("none", "F32", np.full(4, np.nan)), ("empty", "F16", np.zeros((0, 3))),
                ("scalar", "F64", np.array(-2.5)), ("small", "F64", np.array([1e-300, 1e100, 0.0])),
                ("wide", "F32", dice.normal(size=(300, 700)).astype(np.float32) * 1e-4)]
    path = write(os.path.join(folder, "values.safetensors"), tensors)
    data, whole = page(path, "--deep")
    with open(path, "rb") as file:
        start = 8 + struct.unpack("<Q", file.read(8))[0]
    check_columns(data, tensors, start)
    check_stats(data, tensors)
    assert "norms" not in data and "files" not in data
    for threads in "124":
        assert page(path, "--deep", "--threads", threads)[1] == whole, threads
    assert "stats" not in page(path)[0]


def lora(dice, module, dtype, rank, shapes=((48,), (80,)), alpha=None, form="kohya"):
    """Tensors of a module, and up @ down."""
    ends = {"kohya": (".lora_down.weight", ".lora_up.weight"), "peft": (".lora_A.weight", ".lora_B.weight")}
    down = dice.normal(size=(rank, *shapes[0])) * 0.1
    up = dice.normal(size=(shapes[1][0], rank, *shapes[1][1:])) * 0.05
    tensors = [(module + ends[form][0], dtype, down), (module + ends[form][1], dtype, up)]
    if alpha is not None:
        tensors.append((module + ".alpha", dtype, np.array(alpha)))
    as_stored = [array.astype(DTYPES[dtype]).astype(np.float64) for array in (up, down)]
    product = as_stored[0].reshape(shapes[1][0], rank) @ as_stored[1].reshape(rank, -1)
    return tensors, float(np.linalg.norm(product))


def check_norms(data, expected):
    found = {one["module"]: (one.get("norm"), one["rank"]) for one in data.get("norms", [])}
    assert sorted(found) == sorted(expected), (sorted(found), sorted(expected))
    for module, (norm, rank) in expected.items():
        assert found[module][1] == rank, module
        close(found[module][0], norm, module, 2e-8)


def case_norms(folder):
    """Plain pairs of every float, convolutions, alpha; what depends on the model has none, and a
    file that no adapter is computed from says why."""
    dice = np.random.default_rng(2)
    tensors, expected = [], {}

    def add(module, dtype, rank, scale, **more):
        made, norm = lora(dice, module, dtype, rank, **more)
        tensors.extend(made)
        if scale is not None:
            expected[module] = (norm * scale, rank)

    at = "lora_unet_down_blocks_%d_attentions_0_transformer_blocks_0_attn1_to_%s"
    for i, dtype in enumerate(("F16", "BF16", "F32", "F64", "F8_E4M3")):
        add(at % (i, "q"), dtype, 8, 4 / 8, alpha=4)
    add(at % (5, "k"), "F32", 3, 1)
    add(at % (5, "conv"), "F16", 4, 2, shapes=((6, 3, 3), (10, 1, 1)), alpha=8)
    add(at % (6, "v"), "F32", 1024, 1, shapes=((70,), (90,)), alpha=1024)
    add(at % (6, "q"), "F32", 200, 1, shapes=((4000,), (3000,)), alpha=200)
    add(at % (6, "negative"), "F32", 2, 1, alpha=-2)
    add(at % (6, "zero"), "F32", 2, 0, alpha=0)
    add(at % (7, "rank"), "F32", 1025, 1, shapes=((2,), (2,)), alpha=1025)
    add(at % (7, "dora"), "F16", 4, None, alpha=4)
    tensors.append((at % (7, "dora") + ".dora_scale", "F16", np.ones((80, 1))))
    expected[at % (7, "dora")] = (None, 4)
    bad, _ = lora(dice, at % (9, "q"), "F32", 4, alpha=4)
    bad[0][2][0, 0] = np.nan
    tensors += bad
    expected[at % (9, "q")] = (None, 4)
    kohya = {"ss_network_module": "networks.lora"}
    path = write(os.path.join(folder, "norms.safetensors"), tensors, kohya)
    data, whole = page(path, "--deep")
    check_norms(data, expected)
    check_stats(data, tensors)
    assert page(path, "--deep", "--threads", "1")[1] == whole
    assert not any("norm" in one for one in page(path)[0]["norms"])
    down, up = lora(dice, at % (8, "k"), "F16", 4)[0]
    mid = (at % (8, "k") + ".lora_mid.weight", "F16", np.arange(144).reshape(4, 4, 3, 3) / 64)
    data, _ = page(write(os.path.join(folder, "mid.safetensors"), [down, up, mid], kohya), "--deep")
    factors = [one[2].astype(np.float16).astype(np.float64) for one in (up, mid, down)]
    norm = float(np.linalg.norm(np.einsum("oa,abxy,bi->oixy", *factors)))
    check_norms(data, {at % (8, "k"): (norm, 4)})
    for what, of in (("half", [down]), ("ranks", [down, (up[0], "F16", np.ones((80, 5)))])):
        data, _ = page(write(os.path.join(folder, what + ".safetensors"), of, kohya), "--deep")
        assert at % (8, "k") in data["adapter_error"] and "norms" not in data, data


def case_peft(folder):
    """alpha of adapter_config.json, for rsLoRA over the square root of the rank."""
    dice = np.random.default_rng(3)
    for rslora in (False, True):
        below = os.path.join(folder, "rslora" if rslora else "plain")
        os.mkdir(below)
        tensors, expected = [], {}
        for i in range(3):
            module = "base_model.model.model.layers.%d.self_attn.q_proj" % i
            made, norm = lora(dice, module, "F32", 16, form="peft")
            tensors += made
            expected[module] = (norm * 32 / (4 if rslora else 16), 16)
        with open(os.path.join(below, "adapter_config.json"), "w", encoding="utf-8") as out:
            json.dump({"peft_type": "LORA", "r": 16, "lora_alpha": 32, "use_rslora": rslora, "target_modules": ["q_proj"]}, out)
        data, _ = page(write(os.path.join(below, "adapter_model.safetensors"), tensors), "--deep")
        check_norms(data, expected)


def case_no_adapter(folder):
    """Names alone do not make an adapter: there are no norms of a checkpoint."""
    dice = np.random.default_rng(4)
    tensors = lora(dice, "model.layers.0.q", "F32", 4)[0][:1]
    data, _ = page(write(os.path.join(folder, "some.safetensors"), tensors), "--deep")
    assert "norms" not in data, data["norms"]


def case_names(folder):
    """Names of strangers come back as they are, and nothing of them ends the block."""
    odd = ["", "\0", "a", "aé", "aè", "a😀", "a😁", "a😀b", "</script>", "</script><!--<script>", "]]>&amp;", "\u2028\u2029", "\u202e.x",
           "é" * 200, "é" * 200 + ".b", "\"'\\", "...", "x" * 5000, "\ufeff", "\U000e0041"]
    tensors = [(name, "U8", np.ones(1)) for name in odd]
    data, whole = page(write(os.path.join(folder, "names.safetensors"), tensors, {"</script>": "<!--", "\u202e": "&"}))
    assert names(data) == odd, names(data)
    assert data["info"]["metadata"] == {"</script>": "<!--", "\u202e": "&"}
    block = BLOCK.search(whole)[1]
    long = "é" * 600000  # more than a page has of a value
    info = page(write(os.path.join(folder, "long.safetensors"), [], {"a": long, "b": "c"}))[0]["info"]
    assert info["metadata"]["a"] == long[:2 ** 19 - 2] + "…" and info["metadata"]["b"] == "c" and info["cut"] == ["metadata"]
    assert not re.search("[<>&\u2028\u2029\u202e]", block), re.search("[<>&\u2028\u2029\u202e]", block)


def case_nothing(folder):
    """A file without tensors, and one with empty ones only."""
    data, _ = page(write(os.path.join(folder, "none.safetensors"), []), "--deep")
    assert (data["count"], data["rest"], data["stats"]["min"]) == (0, [], [])
    tensors = [("a", "F32", np.zeros((0,))), ("b", "F32", np.zeros((3, 0)))]
    data, _ = page(write(os.path.join(folder, "empty.safetensors"), tensors), "--deep")
    assert data["bytes"] == [0, 0] and data["stats"]["mean"] == [None, None]
    assert data["stats"]["histogram"] == [[], []]


def case_many(folder):
    """60 bytes a tensor at most, of 92,000 tensors."""
    tensors = [("model.layers.%d.mlp.experts.%d.%s_proj.weight" % (layer, expert, part), "F8_E4M3", np.ones((1, 2)))
               for layer in range(60) for expert in range(511) for part in ("down", "gate", "up")]
    header, at = {}, 0
    for name, dtype, array in tensors:
        header[name] = {"dtype": dtype, "shape": [1, 2], "data_offsets": [at, at + 2]}
        at += 2
    text = json.dumps(header, separators=(",", ":")).encode()
    path = os.path.join(folder, "many.safetensors")
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes([56]) * at)
    data, whole = page(path)
    assert names(data) == [name for name, _, _ in tensors]
    size = len(BLOCK.search(whole)[1]) / len(tensors)
    assert size <= 60, "%.1f bytes a tensor" % size
    data, _ = page(path, "--deep")  # several batches
    assert data["stats"]["mean"] == [1] * len(tensors)
    assert data["stats"]["histogram"] == [[0, 2]] * len(tensors)


def case_shards(folder):
    """Shards by an index: their names, and which tensor is in which."""
    dice = np.random.default_rng(5)
    shards = [[("a.%d" % i, "F32", dice.normal(size=(3,))) for i in range(3)], [("b.%d" % i, "F16", dice.normal(size=(2, 2))) for i in range(2)]]
    files = ["model-%05d-of-00002.safetensors" % (k + 1) for k in range(2)]
    for name, tensors in zip(files, shards, strict=True):
        write(os.path.join(folder, name), tensors, {"same": name, name: "only here"})
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w", encoding="utf-8") as out:
        json.dump({"metadata": {"total_size": 52}, "weight_map": {name: file for file, tensors in zip(files, shards, strict=True) for name, _, _ in tensors}}, out)
    for path in (index, folder):
        data, _ = page(path, "--deep")
        assert data["files"] == files and data["shard"] == [0, 0, 0, 1, 1], (data["files"], data["shard"])
        assert names(data) == ["a.0", "a.1", "a.2", "b.0", "b.1"]
        check_stats(data, shards[0] + shards[1])
        assert data["info"]["metadata"] == {"same": files[0], files[0]: "only here", files[1]: "only here"}, data["info"]


def case_pipeline(folder):
    """A folder of components: names begin with theirs."""
    with open(os.path.join(folder, "model_index.json"), "w", encoding="utf-8") as out:
        json.dump({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"]}, out)
    tensors = []
    for part in ("unet", "vae"):
        os.mkdir(os.path.join(folder, part))
        made = [("conv_%d.weight" % i, "F32", np.full((2, 2), i + 1.0)) for i in range(2)]
        write(os.path.join(folder, part, "diffusion_pytorch_model.safetensors"), made)
        tensors += [(part + "/" + name, dtype, array) for name, dtype, array in made]
    data, _ = page(folder, "--deep")
    assert names(data) == [name for name, _, _ in tensors], names(data)
    assert data["files"] == ["unet/diffusion_pytorch_model.safetensors", "vae/diffusion_pytorch_model.safetensors"], data["files"]
    check_stats(data, tensors)


def case_numpy(folder):
    """Models in other formats."""
    path = os.path.join(folder, "arrays.npz")
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1.0, np.inf], dtype=np.float16)}
    np.savez(path, **arrays)
    data, _ = page(path, "--deep")
    kinds = {"w": "F32", "b": "F16"}
    assert sorted(names(data)) == ["b", "w"]
    check_stats(data, [(name, kinds[name], arrays[name]) for name in names(data)])
    assert data["info"]["import"], data["info"]


def case_refused(folder):
    """Not one model: nothing, several, one that is damaged."""
    for options, path, said in (((), os.path.join(folder, "nowhere.safetensors"), "nowhere.safetensors"), ((), folder, "")):
        assert said in page(path, *options, code=2)
        assert not os.path.exists(path + ".html")
    for name in "ab":
        write(os.path.join(folder, name + ".safetensors"), [("x", "U8", np.ones(1))])
    assert "several" in page(folder, code=2)
    with open(os.path.join(folder, "a.safetensors"), "r+b") as file:
        file.truncate(20)
    page(os.path.join(folder, "a.safetensors"), code=2)


def main(words):
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    passed, failed = 0, 0
    for name, case in cases.items():
        if words and name not in words:
            continue
        with tempfile.TemporaryDirectory() as folder:
            below = os.path.join(folder, "of")
            os.mkdir(below)
            try:
                case(below)
                passed += 1
            except Exception:  # noqa: BLE001, whatever went wrong is said
                print("%s:\n%s" % (name, traceback.format_exc()))
                failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
