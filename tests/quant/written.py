#!/usr/bin/env python3
"""All variants that convert --quantize writes, over odd shapes, dtypes, names and values: what info
calls them, check, the way back by --dequantize, streams, shards, URLs; and matrices beside which a
companion of another layout stands, which is found before the first byte is written.

    written.py                needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading

from run import COMMAND, FORMATS, STEPS, WRITTEN, ask, convert, floats, np, read_plain

SHAPES = ((16, 16), (32, 32), (33, 70), (128, 128), (130, 256), (1, 64), (257, 48), (40, 1024))
# Under `make test` each variant meets a third of the companions, so that each has met some.
SHORT = os.environ.get("SFT_TARGET") == "test"
DTYPES = ("F32", "BF16", "F16")
STRAYS = (".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_zero_point", ".scales",
          ".weight_g_idx", ".weight_packed", ".weight_shape", ".weight_global_scale", ".SCB",
          ".scale_weight", ".weight_codebook", ".weight_s_rel", ".weight_zeros", ".qzeros", ".zero",
          ".qweight", ".g_idx", ".biases", ".comfy_quant", ".weight_format", ".pre_quant_scale",
          ".input_scale", ".weight.absmax", ".weight.quant_map", "._weight_qdata", "._weight_scale",
          ".weight._data", ".weight._scale", ".W_q", ".scale", ".shape", ".weight_correction",
          ".weight_blocks", ".weight_scales", ".lut", ".weight_offset", "_scale", ".wscales",
          ".codebooks", ".bias", ".lora_A.weight", ".norm.weight")


def stored(values, dtype):
    values = np.asarray(values, "f4")
    if dtype == "BF16":
        return (dtype, list(values.shape), (values.view("<u4") >> 16).astype("<u2").tobytes())
    with np.errstate(all="ignore"):
        return (dtype, list(values.shape), values.astype("<f2" if dtype == "F16" else "<f4").tobytes())


def save(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def source(prefix, dtype, tiniest):
    draw, out = np.random.default_rng(len(prefix) + len(dtype)), {}
    for number, shape in enumerate(SHAPES):
        values = draw.normal(0, 0.02, shape).astype("f4")
        out["%sb.%d.weight" % (prefix, number)] = stored(values, dtype)
        out["%sb.%d.bias" % (prefix, number)] = stored(values[:, 0], dtype)
    odd = draw.normal(0, 0.02, (64, 128)).astype("f4")
    zero, tiny, great, blocks = odd * 0, odd * np.float32(tiniest), odd * 1e30, odd.copy()
    blocks[3:40] = 0
    blocks[:, 32:64] = 0
    small = odd.copy()
    small[::2] *= np.float32(2.0 ** -120)
    for name, values in (("zero", zero), ("blocks", blocks), ("small", small),
                         *((("tiny", tiny), ("great", great)) if dtype != "F16" else ())):
        out[prefix + name + ".weight"] = stored(values, dtype)
    out[prefix + "one.weight"] = stored(odd[0], dtype)
    out[prefix + "scalar.weight"] = stored(odd[0, 0], dtype)
    out[prefix + "empty.weight"] = stored(odd[:0], dtype)
    out[prefix + "conv.weight"] = stored(odd.reshape(16, 4, 128), dtype)
    out[prefix + "odd.numbers"] = ("I64", [3], bytes(24))
    return out


def words(variant):
    layout, format_, *scale = variant
    return ["--quantize", format_, "--layout", layout, *(["--scale", *scale] if scale else [])]


def unlike(variant, before, after):
    """What is wrong with values that were written and read back."""
    bad, changed = [], 0
    if set(before) != set(after):
        bad.append("names: %s" % sorted(set(before) ^ set(after)))
    for name, tensor in before.items():
        if name not in after or after[name] == tensor:
            continue
        changed += 1
        want, have = floats(tensor), floats(after[name])
        if len(tensor[1]) != 2 or 0 in tensor[1] or have.shape != want.shape:
            bad.append("%s: %s for %s" % (name, have.shape, want.shape))
            continue
        most = max(float(np.abs(want).max()), 2.0 ** -126 * 448)
        off = np.abs(have.astype("f8") - want).max()
        if not off <= 1.001 * STEPS[variant[1]] * most:
            bad.append("%s: off by %g of %g" % (name, off, most))
        if not want.any() and have.any():
            bad.append(name + ": zeros became others")
    return bad + ([] if changed >= 5 else ["only %d were quantised" % changed])


def there_and_back(folder, variant, prefix, dtype, also):
    path, out, back = (os.path.join(folder, n + ".safetensors") for n in ("in", "out", "back"))
    tensors = source(prefix, dtype, 1e-25 if variant[1].startswith("int8") else 1e-38)
    save(path, tensors)
    how = [*words(variant), "--only", "*.weight"]
    code, _, error = convert(path, "-o", out, *how)
    if code:
        return ["exit %d: %s" % (code, error)]
    bad = []
    model = ask("info", out)["model"]
    label = "%s %s" % ((model["quantization"] or {}).get("value"), model["precision"])
    if label != WRITTEN[variant[1]]:
        bad.append("info says " + label)
    if model["parameters"] != sum(int(np.prod(t[1])) for n, t in tensors.items()
                                  if not n.endswith("numbers")) + 3:
        bad.append("info counts %d" % model["parameters"])
    found = ask("check", out)
    if not found["ok"] or "quantised" in found:
        bad.append("check: %s" % found)
    code, _, error = convert(out, "-o", back, "--dequantize", "--dtype", "F32")
    if code:
        return bad + ["back: exit %d: %s" % (code, error)]
    bad += unlike(variant, tensors, read_plain(back)[0])
    if also:
        bad += other_ways(folder, path, out, how, tensors)
    return bad


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Files with ranges."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.translate_path(self.path)
        if not os.path.isfile(path):
            self.send_error(404)
            return
        with open(path, "rb") as file:
            data = file.read()
        first, last = 0, len(data) - 1
        told = self.headers.get("Range", "")
        if told.startswith("bytes="):
            a, b = told[6:].split("-")
            first = int(a) if a else len(data) - int(b)
            last = min(int(b), last) if a and b else last
        self.send_response(206 if told else 200)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        if told:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (first, last, len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[first:last + 1])

    do_HEAD = do_GET


def other_ways(folder, path, out, how, tensors):
    """Through a pipe, from a URL, and of a model in two files."""
    bad = []
    with open(out, "rb") as file:
        whole = file.read()
    done = subprocess.run([*COMMAND, "convert", path, "-o", "-", *how], capture_output=True,
                          check=False)
    if done.stdout != whole:
        bad.append("-o -: %d bytes, exit %d" % (len(done.stdout), done.returncode))
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *a: Ranges(*a, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    other = os.path.join(folder, "other.safetensors")
    url = "http://127.0.0.1:%d/" % server.server_port
    for words_ in (["convert", url + "in.safetensors", "-o", other, *how],
                   ["check", url + "out.safetensors"]):
        done = subprocess.run([*COMMAND, *words_], capture_output=True, text=True, check=False)
        if done.returncode:
            bad.append("%s by URL: exit %d %s" % (words_[0], done.returncode, done.stderr))
    name = next(n for n in tensors if n.endswith("b.2.weight"))
    results = [subprocess.run([*COMMAND, "cat", "--values", at, name], capture_output=True,
                              check=False).stdout for at in (out, url + "out.safetensors")]
    if results[0] != results[1] or not results[0]:
        bad.append("cat --values by URL")
    server.shutdown()
    server.server_close()
    if os.path.exists(other):
        with open(other, "rb") as file:
            bad += [] if file.read() == whole else ["by URL: other bytes"]
    shards = os.path.join(folder, "shards")
    os.mkdir(shards)
    names, index = list(tensors), {}
    for number in (1, 2):
        part = "model-%05d-of-00002.safetensors" % number
        some = names[::2] if number == 1 else names[1::2]
        save(os.path.join(shards, part), {n: tensors[n] for n in some})
        index.update(dict.fromkeys(some, part))
    with open(os.path.join(shards, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)
    made = os.path.join(folder, "made")
    code, _, error = convert(shards, "-o", made, *how)
    found = ask("check", made) if not code else None
    if code or not found["ok"] or "quantised" in found:
        bad.append("shards: exit %d %s %s" % (code, error, found))
    else:
        have = {}
        for part in os.listdir(made):
            if part.endswith(".safetensors"):
                have.update(read_plain(os.path.join(made, part))[0])
        bad += [] if have == read_plain(out)[0] else ["shards: other tensors"]
    return bad


def stray(folder, variant, name):
    """Refused before anything is written, or written and read back, the companion unchanged."""
    path, out, back = (os.path.join(folder, n + ".safetensors") for n in ("in", "out", "back"))
    draw = np.random.default_rng(1)
    tensors = {"l.%s.weight" % m: stored(draw.normal(0, 0.02, (64, 128)), "BF16") for m in "abcdef"}
    tensors["l.a" + name] = stored(draw.normal(0, 1, (64, 1)), "F32")
    for at in (out, back):
        if os.path.exists(at):
            os.remove(at)
    save(path, tensors)
    code, _, error = convert(path, "-o", out, *words(variant), "--only", "l.?.weight")
    if code:
        good = code == 1 and not os.path.exists(out) and "expected" in error and "l.a" in error
        return [] if good else ["%s: exit %d %s" % (name, code, error)]
    code, _, error = convert(out, "-o", back, "--dequantize", "--dtype", "F32")
    if code:
        return ["%s: written, and then: %s" % (name, error)]
    after = read_plain(back)[0]
    if name == ".input_scale":  # which goes with the codes
        del tensors["l.a" + name]
    return ["%s: %s" % (name, one) for one in unlike(variant, tensors, after)]


def refused(folder, variant):
    """What cannot be quantised is named."""
    path, out = (os.path.join(folder, n + ".safetensors") for n in ("in", "out"))
    bad = []
    for value in (float("nan"), float("inf"), -float("inf"), 3e38):
        values = np.zeros((64, 128), "f4")
        values[5, 7] = value
        save(path, {"l.a.weight": stored(values, "F32")})
        code, _, error = convert(path, "-o", out, *words(variant), "--only", "*.weight")
        if code != 1 or "l.a.weight" not in error or "element 647" not in error:
            bad.append("%s: exit %d %s" % (value, code, error))
        if os.path.exists(out):
            bad.append("%s: written" % value)
            os.remove(out)
    # magnitudes of which zeros alone would be left
    draw = np.random.default_rng(2).normal(0, 1, (64, 128))
    for dtype, most in (("F32", 1e-43), ("F32", 1e-32), ("BF16", 1e-32), ("F64", 1e-60)):
        values = draw * most
        save(path, {"l.a.weight": ("F64", [64, 128], values.astype("<f8").tobytes())
                    if dtype == "F64" else stored(values, dtype)})
        code, _, error = convert(path, "-o", out, *words(variant), "--only", "*.weight")
        lost = most < 1e-40 or variant[1].startswith("int8")
        if code != lost or (lost and ("l.a.weight" not in error or "tell from 0" not in error)):
            bad.append("%s of %g: exit %d %s" % (dtype, most, code, error))
        if os.path.exists(out):
            bad += ["%s of %g: written" % (dtype, most)] if lost else []
            os.remove(out)
    return bad


def main():
    passed, problems = 0, []
    for number, variant in enumerate(FORMATS):
        cases = [(there_and_back, (prefix, dtype, (number + i) % 4 == 0)) for i, (prefix, dtype)
                 in enumerate((p, d) for p in ("", "model.diffusion_model.") for d in DTYPES)]
        strays = STRAYS[number % 3::3] if SHORT else STRAYS
        cases += [(stray, (name,)) for name in strays] + [(refused, ())]
        for function, arguments in cases:
            with tempfile.TemporaryDirectory() as folder:
                bad = function(folder, variant, *arguments)
            passed += not bad
            problems += ["%s %s: %s" % ("-".join(variant), arguments, one) for one in bad]
    print("\n".join(problems[:60]))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
