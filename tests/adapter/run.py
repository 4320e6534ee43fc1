#!/usr/bin/env python3
"""lora merge on cases that packages made (tools/adapter_oracles.py): F32 within 1e-6 of the
greatest value, other dtypes rounded once.

    run.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "import"))
try:
    import numpy as np
    from plain import read_plain
except ImportError as error:
    print("adapter: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
MANTISSA = {"F32": 23, "BF16": 7, "F16": 10, "F8_E4M3": 3}
NORMS = []  # 1 for each that was compared
LEAST = {"F32": -149, "BF16": -133, "F16": -24, "F8_E4M3": -9}  # exponent of the least step


def write_plain(path, tensors, cut=None):
    """(dtype, shape, bytes) by name; with `cut` as two shards and their index."""
    names = list(tensors)
    if cut:
        folder = os.path.dirname(path)
        files = {}
        for i, part in enumerate((names[::2], names[1::2])):
            file = "model-%05d-of-00002.safetensors" % (i + 1)
            write_plain(os.path.join(folder, file), {name: tensors[name] for name in part})
            files.update({name: file for name in part})
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"metadata": {}, "weight_map": files}, out)
        return
    header, at = {}, 0
    for name in names:
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.write(b"".join(tensors[name][2] for name in names))


def values_of(dtype, data):
    """As F64."""
    if dtype in ("F32", "F16", "F64"):
        return np.frombuffer(data, {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]).astype("f8")
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("u4") << 16).view("<f4").astype("f8")
    code = np.frombuffer(data, "u1").astype("i4")
    exponent, mantissa = code >> 3 & 15, code & 7
    size = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0 ** -9)
    return np.where(code & 128, -size, size)


def off(found, want, dtype):
    """Whether a value is further away than one rounding and sums in F32 allow."""
    greatest = np.abs(want).max() or 1
    slack = 1e-6 * greatest
    exponent = np.floor(np.log2(np.maximum(np.abs(want), 1e-300)))
    step = 2.0 ** np.maximum(exponent - MANTISSA[dtype], LEAST[dtype])
    half = 0 if dtype == "F32" else step / 2
    return np.abs(found - want) > half + slack


def compare(case, found, problems):
    for name, (dtype, shape, data) in case["model"].items():
        if name not in found or found[name][:2] != (dtype, shape):
            problems.append("%s: %s" % (name, found.get(name, ("none", None))[:2]))
        elif name not in case["want"]:
            if found[name][2] != data:
                problems.append("%s changed" % name)
        else:
            want = values_of(*case["want"][name][::2])
            have = values_of(dtype, found[name][2])
            bad = off(have, want, dtype)
            if bad.any():
                problems.append("%s: %d of %d values differ, by up to %g of %g" % (
                    name, bad.sum(), bad.size, np.abs(have - want).max(), np.abs(want).max()))


def compare_norm(case, adapter, strength, problems):
    """The norm that info tells of a module that is the only one, and adds."""
    told = subprocess.run([*COMMAND, "lora", "info", "--json", adapter], capture_output=True,
                          text=True, check=False)
    modules = json.loads(told.stdout)["results"][0]["modules"]
    if len(modules) > 1 or len(case["want"]) > 1 or modules[0]["norm"] is None:
        return 0
    (name, want), = case["want"].items()
    model = case["model"][name]
    change = np.linalg.norm(values_of(*want[::2]) - values_of(*model[::2]))
    if abs(modules[0]["norm"] * abs(strength) - change) > 1e-5 * change:
        problems.append("norm %r, and the change has %r" % (modules[0]["norm"], change))
    return 1


def check(path, cut):
    tensors, notes = read_plain(path)
    case = {part: {name[len(part) + 1:]: value for name, value in tensors.items()
                   if name.startswith(part + "/")} for part in ("model", "adapter", "want")}
    problems = []
    if cut and len(case["model"]) < 2:
        return None
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.safetensors" + (".index.json" if cut else ""))
        adapter = os.path.join(folder, "adapter_model.safetensors")
        out = os.path.join(folder, "out.safetensors")
        write_plain(model, case["model"], cut)
        write_plain(adapter, case["adapter"])
        if "config" in notes:
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write(notes["config"])
        strength = adapter if notes["strength"] == "1.0" else adapter + ":" + notes["strength"]
        done = subprocess.run([*COMMAND, "lora", "merge", model, strength, "-o", out, "--no-sync",
                               *notes.get("arguments", "").split()],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            return ["exit %d: %s" % (done.returncode, done.stderr.strip())]
        found, header = read_plain(out)
        recipe = json.loads(header["sft_lora_merge"])["adapters"][0]
        if recipe["strength"] != float(notes["strength"]) or len(recipe["sha256"]) != 64:
            problems.append("recipe: %s" % recipe)
        compare(case, found, problems)
        NORMS.append(compare_norm(case, adapter, float(notes["strength"]), problems))
    return problems


def main():
    only, passed, problems = sys.argv[1:], 0, []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.safetensors"))):
        name = os.path.basename(path).split(".")[0]
        if only and name not in only:
            continue
        for cut in (False, True):
            bad = check(path, cut)
            if bad is None: # one tensor, which cannot be cut
                continue
            passed += not bad
            problems += ["%s%s: %s" % (name, " in shards" if cut else "", one) for one in bad]
    if not only and sum(NORMS) < 15:
        problems.append("only %d norms were compared" % sum(NORMS))
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
