#!/usr/bin/env python3
"""convert --dequantize on files that packages made (tools/quant_oracles.py), against the values
that they read from them: bit for bit, or within what a case says.

    run.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import glob
import os
import shlex
import shutil
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
    print("quant: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
LEFT = (".bias",)


def unlike(found, values, within):
    """What is wrong with the tensors of a result."""
    bad = ["%s is there" % name for name in found if name not in values and not name.endswith(LEFT)]
    for name, (_, shape, data) in values.items():
        want = np.frombuffer(data, "<f4")
        if name not in found or found[name][:2] != ("F32", shape):
            bad.append("%s: %s" % (name, found.get(name, ("none", None))[:2]))
            continue
        have = np.frombuffer(found[name][2], "<f4")
        nan = np.isnan(want)
        same = np.array_equal(np.isnan(have), nan)
        if within:
            same = same and (np.abs(have - want)[~nan] <= within * np.abs(want).max()).all()
        else:
            same = same and np.array_equal(have.view("u4")[~nan], want.view("u4")[~nan])
        if not same:
            worst = np.nanmax(np.abs(have - want)) if len(want) else 0
            bad.append("%s: up to %g from the values" % (name, worst))
    return bad


def check(stem, folder):
    model, out = os.path.join(folder, "model.safetensors"), os.path.join(folder, "out.safetensors")
    shutil.copy(stem + ".safetensors", model)
    if os.path.exists(stem + ".json"):
        shutil.copy(stem + ".json", os.path.join(folder, "config.json"))
    done = subprocess.run([*COMMAND, "convert", model, "-o", out, "--dequantize", "--dtype", "F32"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return ["exit %d: %s" % (done.returncode, done.stderr.strip())]
    values, notes = read_plain(stem + ".values.safetensors")
    return unlike(read_plain(out)[0], values, float(notes.get("within", 0)))


def main():
    only, passed, problems = sys.argv[1:], 0, []
    for path in sorted(glob.glob(os.path.join(HERE, "*.values.safetensors"))):
        name = os.path.basename(path).split(".")[0]
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            bad = check(path[:-len(".values.safetensors")], folder)
        passed += not bad
        problems += ["%s: %s" % (name, one) for one in bad]
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
