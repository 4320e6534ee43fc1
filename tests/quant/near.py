#!/usr/bin/env python3
"""Codes beside a companion that no row of data/quantised.layouts explains: every command that
computes values refuses them by name. And no false alarm: models of the lists of tests/zoo, with
two layers of each kind and all floats cast to 8 bits, are converted as if they had no codes.

    near.py [every]           needs build/safetensors (SFT_BUILD, SFT_COMMAND); every: all models
"""
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "zoo"))
import read as zoo  # noqa: E402

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
SIDE = 64
CODES = {"F8_E4M3": 1, "F8_E5M2": 1, "I8": 1, "U8": 1, "I32": 4}
ODD = (".weight_block_scale", ".weight_zero", ".weight_absmax", ".scale", ".scales", ".zero",
       ".weight_codebook2", ".lut", ".weight.scale", ".weight.q_scale", ".weight_qparams_scale",
       ".centroids", ".weight_zp", ".weight_scale_3", "_scaling", ".weightScale", ".SCALE",
       ".quantizer.scale", ".weight_quantizer._amax", ".weight_min", ".weight_outliers",
       ".scales_and_zeros", ".weight_g_idx", ".g_idx", ".weight_s_rel", ".weight_zeros",
       ".smooth_factor", ".weight_scale_inverse", ".weight_exponents")
# What stands beside plain weights of 8 bits and changes nothing.
EVEN = (".bias", ".alpha", ".input_scale", ".output_scale", ".norm.weight", "_norm.weight",
        ".lora_A.weight", ".running_mean", ".weight2")
COMMANDS = (("convert", "{f}", "-o", "{o}", "--dequantize", "--dtype", "F32"),
            ("cat", "{f}", "{n}", "--values"), ("ls", "{f}", "--values", "--stats"),
            ("diff", "{f}", "{g}", "--values"),
            ("convert", "{f}", "-o", "{o}", "--quantize", "fp8", "--from-quantised"),
            ("merge", "--method", "linear", "{f}", "{g}", "-o", "{o}"),
            ("lora", "merge", "{f}", "{l}", "-o", "{o}"))
# Of a model and an adapter whose factor is such a tensor.
ADAPTER_COMMANDS = (("lora", "resize", "{f}", "-o", "{o}", "--rank", "2"), ("lora", "info", "{f}"),
                    ("lora", "stack", "{f}", "{l}", "-o", "{o}"),
                    ("lora", "merge", "{g}", "{f}", "-o", "{o}", "--ignore-unmatched"))
# They have such companions themselves.
MEANT = ("IBert", "Inkling")


def save(path, tensors, metadata=None, sparse=False):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        size = data if sparse else len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        if sparse:
            file.truncate(8 + len(text) + at)
        else:
            file.write(b"".join(t[2] for t in tensors.values()))


def floats(rows, columns):
    return ("F32", [rows, columns], struct.pack("<f", 0.125) * (rows * columns))


def run(words):
    done = subprocess.run([*COMMAND, *words], capture_output=True, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def refusals(folder):
    """(passed, problems)"""
    paths = {c: os.path.join(folder, c + ".safetensors") for c in "fglo"}
    passed, problems = 0, []
    save(paths["l"], {"l.a.lora_A.weight": floats(4, SIDE), "l.a.lora_B.weight": floats(SIDE, 4)})
    for dtype, size in CODES.items():
        name = "l.a.weight" if size == 1 else "l.a.qweight"
        save(paths["g"], {name: floats(SIDE, SIDE)})
        codes = (dtype, [SIDE, SIDE], bytes(i * 7 % 120 for i in range(SIDE * SIDE * size)))
        for odd in ODD:
            for scaled in (False, True):
                tensors = {name: codes, "l.a" + odd: floats(SIDE, 1)}
                if scaled:
                    tensors["l.a.weight_scale"] = floats(SIDE, 1)
                save(paths["f"], tensors)
                bad = []
                for words in COMMANDS:
                    status, said = run([w.format(n=name, **paths) for w in words])
                    if status == 0 or "expected" not in said or "l.a" not in said:
                        bad.append("%s %s beside %s%s: %s: exit %d %s" % (
                            dtype, odd, name, " and its scale" * scaled, " ".join(words[:1]),
                            status, said.strip()))
                    if os.path.exists(paths["o"]):
                        os.remove(paths["o"])
                passed += not bad
                problems += bad
    save(paths["g"], {"l.a.weight": floats(SIDE, SIDE)})
    for dtype in ("F8_E4M3", "F8_E5M2"):
        codes = (dtype, [4, SIDE], bytes(i * 7 % 120 for i in range(4 * SIDE)))
        for odd in ODD:
            save(paths["f"], {"l.a.lora_A.weight": codes, "l.a.lora_A" + odd: floats(4, 1),
                              "l.a.lora_B.weight": floats(SIDE, 4)})
            done = [(words[1], run([w.format(**paths) for w in words])) for words in ADAPTER_COMMANDS]
            bad = ["%s factors beside %s: lora %s: exit %d %s" % (dtype, odd, verb, status, said)
                   for verb, (status, said) in done if status != 1 or "l.a" not in said]
            passed += not bad
            problems += bad
    # Codes of bitsandbytes in BF16, whose scales have a dtype that none has.
    save(paths["f"], {"l.a.weight": ("BF16", [512], bytes(1024)),
                      "l.a.weight.absmax": ("F16", [32], bytes(64)),
                      "l.a.weight.quant_map": floats(1, 16)[:1] + ([16], floats(1, 16)[2]),
                      "l.a.weight.quant_state.bitsandbytes__nf4": ("U8", [2], b"{}")})
    status, said = run(["convert", paths["f"], "-o", paths["o"], "--dequantize"])
    passed += status == 1 and "l.a.weight" in said
    problems += [] if status == 1 else ["flat codes: exit %d %s" % (status, said)]
    for dtype in ("F8_E4M3", "F8_E5M2"):
        codes = (dtype, [SIDE, SIDE], bytes(i * 7 % 120 for i in range(SIDE * SIDE)))
        tensors = {"l.a.weight": codes, **{"l.a" + e: floats(SIDE, 1) for e in EVEN}}
        save(paths["f"], tensors)
        status, said = run(["convert", paths["f"], "-o", paths["o"], "--dtype", "F16"])
        good = status == 0 and "scaled" not in said
        passed += good
        problems += [] if good else ["plain %s: exit %d %s" % (dtype, status, said)]
        if os.path.exists(paths["o"]):
            os.remove(paths["o"])
    return passed, problems


# Of layouts that cannot be read: codes, and what belongs to them and stays in its dtype.
UNREAD = ((".q_weight", "I32", (".q_scale", ".q_scale_max")), (".trellis", "I16", (".suh", ".svh")),
          (".Qidxs", "I16", (".SU", ".SV")), (".codes", "I8", (".codebooks", ".scales")),
          (".qweight", "I8", (".wscales", ".wtscale", ".wcscales", ".smooth_factor")))


def casts(folder):
    passed, problems = 0, []
    path, out = (os.path.join(folder, n + ".safetensors") for n in ("unread", "cast"))
    for codes, dtype, companions in UNREAD:
        size = SIDE * SIDE * {"I32": 4, "I16": 2, "I8": 1}[dtype]
        save(path, {"l" + codes: (dtype, [SIDE, SIDE], bytes(size)), "m.weight": floats(2, 2),
                    **{"l" + one: ("F16", [SIDE], bytes(2 * SIDE)) for one in companions}})
        status, said = run(["convert", path, "-o", out, "--dtype", "BF16", "--force"])
        with open(out, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        found = {one for one in companions if header["l" + one]["dtype"] != "F16"}
        good = status == 0 and not found and "not cast" in said and \
            header["m.weight"]["dtype"] == "BF16"
        passed += good
        problems += [] if good else ["%s: cast are %s: %s" % (codes, found, said)]
    return passed, problems


def few_layers(entry):
    """Its tensors, of each range of layers the first two: what stands beside what is the same in
    the others."""
    for name, dtype, shape in entry.folded:
        for one in zoo.unfold(zoo.RANGE.sub(
                lambda m: "{%s-%d}" % (m[1], min(int(m[2]), int(m[1]) + 1)), name)):
            yield one, dtype, shape


def alarms(folder, every):
    seen, passed, problems = set(), 0, []
    path, out = (os.path.join(folder, n + ".safetensors") for n in ("model", "out"))
    for library in zoo.libraries():
        if not os.path.exists(os.path.join(zoo.HERE, library + ".txt.xz")):
            continue
        for number, entry in enumerate(zoo.read(library)[1]):
            if any(m in entry.name for m in MEANT) or (number % 40 and not every):
                continue
            tensors = {}
            for name, dtype, shape in few_layers(entry):
                if dtype in ("F32", "F16", "BF16"):
                    dtype = "F8_E4M3"
                size = zoo.BYTES.get(dtype, 1)
                for n in shape:
                    size *= n
                tensors[name] = (dtype, shape, size)
            if any(d not in zoo.BYTES for d, _, _ in tensors.values()) or any(
                    d in ("I8", "U8", "I32", "U32") and len(s) > 1 for d, s, _ in tensors.values()):
                continue
            look = (frozenset((n, d, len(s)) for n, (d, s, _) in tensors.items()),
                    json.dumps(entry.metadata))
            if look in seen:
                continue
            seen.add(look)
            save(path, tensors, entry.metadata, sparse=True)
            status, said = run(["convert", path, "-o", out, "--dequantize", "--dry-run"])
            more, said_more = run(["convert", path, "-o", out, "--dtype", "BF16", "--dry-run"])
            good = status == more == 0 and "scale" not in said_more
            passed += good
            problems += [] if good else ["%s: %s: %s %s" % (library, entry.name, said, said_more)]
    return passed, problems


def main():
    with tempfile.TemporaryDirectory() as folder:
        passed, problems = refusals(folder)
        cast, bad = casts(folder)
        passed, problems = passed + cast, problems + bad
        more, others = alarms(folder, "every" in sys.argv)
    print("\n".join((problems + others)[:60]))
    print("%d passed, %d failed" % (passed + more, len(problems + others)))
    return 1 if problems or others or not more else 0


if __name__ == "__main__":
    sys.exit(main())
