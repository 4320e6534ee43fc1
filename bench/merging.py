#!/usr/bin/env python3
"""Merging beside mergekit, and beside reading the models and writing one durably (`cat` of all, `cp`
and `sync` of one), in turns: processor time, wall time, memory.

    merging.py FOLDER [MERGEKIT_PYTORCH [PYTHON_OF_SD_MECHA]]

FOLDER gets three models of 453 MB in BF16, if they are not there (needs numpy). MERGEKIT_PYTORCH is
mergekit's command of that name, in an environment of its own ("" for none), PYTHON_OF_SD_MECHA a
Python that has sd-mecha; without them only ours is measured.
"""
import json
import os
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPEATS = 5
METHODS = {
    "linear": ([], ""), "slerp": (["t=0.4"], "parameters: {t: 0.4}\n"),
    "ties": (["density=0.5"], ""), "dare_ties": (["density=0.5"], ""),
    "della": (["density=0.5"], ""), "model_stock": ([], ""),
    "sce": (["select_topk=0.5"], "parameters: {select_topk: 0.5}\n"),
}


def make(folder):
    rng = np.random.default_rng(0)
    shapes = {"model.layers.%d.mlp.%s.weight" % (i, name): (size, size) for i in range(6)
              for name, size in (("up", 4096), ("down", 4096), ("q", 2048))}
    base = {name: rng.standard_normal(shape, "f4") * 0.02 for name, shape in shapes.items()}
    for k in range(3):
        path, header, at = os.path.join(folder, "B%d.safetensors" % k), {}, 0
        for name, shape in shapes.items():
            size = 2 * shape[0] * shape[1]
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name, shape in shapes.items():
                value = base[name] + (rng.standard_normal(shape, "f4") * 0.002 if k else 0)
                file.write((value.view("u4") >> 16).astype("u2").tobytes())


MECHA = """
import sd_mecha, sys, torch
function, out, *models = sys.argv[1:]
recipe = getattr(sd_mecha, function)(*map(sd_mecha.model, models), alpha=0.4)
sd_mecha.merge(recipe, output=out, merge_device="cpu", merge_dtype=torch.float32,
               output_dtype=torch.bfloat16)
"""
MECHA_NAMES = {"linear": "weighted_sum", "slerp": "slerp"}


def measured(words):
    """Words about a run, and its seconds."""
    begin = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return "failed: %s" % error.decode()[-200:], 0.0
    wall = time.monotonic() - begin
    return "%.2f s processor, %.2f s wall, %d MB" % (
        usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024), wall


def main():
    folder = sys.argv[1]
    paths = [os.path.join(folder, "B%d.safetensors" % k) for k in range(3)]
    if folder == "--make":
        make(sys.argv[2])
        return
    if not all(map(os.path.exists, paths)):  # by another process, whose memory would count as ours
        subprocess.run([sys.executable, __file__, "--make", folder], check=True)
    command = os.path.join(ROOT, "build", "safetensors")
    for method, (params, extra) in METHODS.items():
        alone = method in ("linear", "slerp")
        words = [command, "merge", "--method", method, *([] if alone else ["--base", paths[0]]),
                 *paths[1:], "-o", os.path.join(folder, "ours.safetensors"), "--force"]
        words += [w for p in params for w in ("--param", p)]
        read = paths[1:] if alone else paths
        floor = ["sh", "-c", 'out=$1; shift; cat "$@" >/dev/null && cp "$1" "$out" && sync "$out"',
                 "sh", os.path.join(folder, "copy.safetensors"), *read]
        pairs = [(measured(floor)[1], measured(words)) for _ in range(REPEATS)]
        ratios = sorted(ours[1] / copy for copy, ours in pairs)
        print("%s ours: %s; read all and write: %.2f s; ratio %.2f (%.2f to %.2f), at most 1.30 is "
              "asked of element-wise methods; load %.1f" % (
                  method, pairs[-1][1][0], min(copy for copy, _ in pairs), ratios[REPEATS // 2],
                  ratios[0], ratios[-1], os.getloadavg()[0]), flush=True)
        if len(sys.argv) > 3 and method in MECHA_NAMES:
            print(method, "sd-mecha:", measured([
                sys.argv[3], "-c", MECHA, MECHA_NAMES[method],
                os.path.join(folder, "mecha.safetensors"), *read])[0], flush=True)
        if len(sys.argv) < 3 or not sys.argv[2]:
            continue
        weight = "    parameters: {weight: 1.0, density: 0.5}\n"
        recipe = "merge_method: %s\n%s%smodels:\n%s" % (
            method, "" if method == "linear" else "base_model: %s\n" % paths[method == "slerp"],
            extra, "".join("  - model: %s\n%s" % (p, weight) for p in paths[1:]))
        with open(os.path.join(folder, "recipe.yml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        print(method, "mergekit:", measured([sys.argv[2], os.path.join(folder, "recipe.yml"),
                                             os.path.join(folder, "theirs"),
                                             "--safe-serialization"])[0], flush=True)


main()
