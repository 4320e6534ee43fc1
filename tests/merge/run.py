#!/usr/bin/env python3
"""merge --method: cases that mergekit's own functions made (tools/merge_oracles.py), masks by their
statistics and by an independent computation, the same bytes for any number of threads, layouts of
files, and replays.

    run.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import gzip
import hashlib
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", name) for name in ("import", "zoo")]
import read as zoo
try:
    import numpy as np
    from plain import read_plain
except ImportError as error:
    print("merge: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
MANTISSA, LEAST = {"F32": 23, "BF16": 7}, {"F32": -149, "BF16": -133}
MASK = (1 << 64) - 1
counts = {"passed": 0, "failed": 0}


def check(ok, name, why=""):
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print("merge: %s: %s" % (name, why))


def write_plain(path, tensors, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.write(b"".join(data for _, _, data in tensors.values()))


def values_of(dtype, data):
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("u4") << 16).view("<f4").astype("f8")
    return np.frombuffer(data, {"F32": "<f4", "F64": "<f8"}[dtype]).astype("f8")


def single(values):
    values = np.asarray(values)
    return "F32", values.shape, values.astype("<f4").tobytes()


def run(*words):
    return subprocess.run([*COMMAND, "merge", *words, "--no-sync"], capture_output=True, text=True,
                          check=False)


def off(found, want, dtype, size=0):
    """Whether a value is further away than one rounding, 1e-6 of the greatest, and what values of
    this size leave where they cancel out."""
    slack = 1e-6 * (np.abs(want).max() or 1) if dtype == "F32" else 1e-12 * np.abs(want).max()
    exponent = np.floor(np.log2(np.maximum(np.abs(want), 1e-300)))
    step = 2.0 ** np.maximum(exponent - MANTISSA[dtype], LEAST[dtype])
    rough = (dtype != "F32") | (exponent < -126)
    return np.abs(found - want) > rough * step / 2 + slack + 1e-14 * size


# ── mergekit's ──

def mergekit_cases(folder, only):
    tensors, notes = read_plain(os.path.join(HERE, "cases.safetensors"))
    models = {}
    for name, value in tensors.items():
        if name.startswith("in/"):
            _, model, rest = name.split("/", 2)
            models.setdefault(model, {})[rest] = value
    for model, values in models.items():
        write_plain(os.path.join(folder, model + ".safetensors"), values)
    for case in json.loads(notes["cases"]):
        if only and case["name"] not in only:
            continue
        out = os.path.join(folder, "out.safetensors")
        paths = [os.path.join(folder, m + ".safetensors") for m in case["models"]]
        first = case["base"] and case["method"] not in ("slerp", "nearswap")
        words = ["--base", paths[0]] if first else []
        weighted = case["method"] in ("linear", "nuslerp", "multislerp") or (
            case["method"] not in ("slerp", "nearswap", "karcher", "model_stock", "sce",
                                   "passthrough"))
        others = paths[first:]
        words += [p + ":%r" % w if weighted else p for p, w in
                  zip(others, case["weights"] if weighted else others)]
        for param in case["params"]:
            words += ["--param", param]
        done = run("--method", case["method"], *words, "-o", out, "--force")
        if done.returncode:
            check(False, case["name"], done.stderr.strip())
            continue
        found, _ = read_plain(out)
        problems = []
        for name in models[case["models"][0]]:
            key = "want/%s/%s" % (case["name"], name)
            if key not in tensors:
                continue
            dtype = found[name][0]
            want, have = values_of("F64", tensors[key][2]), values_of(dtype, found[name][2])
            bad = off(have, want, dtype)
            if bad.any():
                problems.append("%s: %d of %d differ, by up to %g of %g" % (
                    name, bad.sum(), bad.size, np.abs(have - want).max(), np.abs(want).max()))
        check(not problems, case["name"], "; ".join(problems))


# ── The formulas, computed anew ──

def angle_of(a, b):
    sizes = [max(np.linalg.norm(x), 1e-30) for x in (a, b)]
    return np.arccos(np.clip(np.dot(a / sizes[0], b / sizes[1]), -1, 1))


def turned(a, b, t):
    angle = angle_of(a, b)
    if abs(np.cos(angle)) > 0.9995:
        return (1 - t) * a + t * b
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def joined(changes, weights, normalize, signs):
    parts = [w * d for w, d in zip(weights, changes)]
    keep = [np.ones(len(parts[0]), bool) for _ in parts]
    if signs:
        sign = np.where(sum(parts) >= 0, 1, -1)
        keep = [np.sign(part) == sign for part in parts]
    total = sum(np.where(k, part, 0) for k, part in zip(keep, parts))
    if not normalize:
        return total
    below = sum(np.where(k, w, 0.0) for k, w in zip(keep, weights))
    return total / np.where(np.abs(below) < (1e-300 if signs else 1e-8), 1, below)


def cut(change, method, p):
    """Differences of which the mask keeps some, rescaled if that is asked for."""
    count, density = len(change), p["density"]
    top = int(density * count)
    if density >= 1:
        return change
    if method == "ties":
        kept = kept_of(change, max(1, top) if density > 0 else 0)
    else:
        spared = min(int(p.get("gamma", 0.01) * count), count - top) if top else 0
        kept = kept_of(change, top + spared) & ~kept_of(change, spared)
    before, after = np.abs(change).sum(), np.abs(change[kept]).sum()
    scale = before / after if p.get("rescale") and before >= 1e-7 and after >= 1e-7 else 1
    return np.where(kept, change, 0) * scale


def formula(method, models, base, weights, p):
    if method == "linear":
        return sum(w * m for w, m in zip(weights, models)) / (
            sum(weights) if p.get("normalize", True) else 1)
    if method == "slerp":
        return turned(*models, p["t"])
    if method == "nuslerp":
        return base + turned(models[0] - base, models[1] - base, weights[1] / sum(weights))
    if method == "nearswap":
        share = np.clip(p["t"] / np.maximum(np.abs(models[1] - models[0]), 1e-6), 0, 1)
        return share * models[1] + (1 - share) * models[0]
    if method == "add_difference":
        return models[0] + p["alpha"] * (models[1] - base)
    changes = [m - base for m in models]
    if method == "model_stock":
        pairs = [np.dot(a, b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-6)
                 for i, a in enumerate(changes) for b in changes[:i]]
        mean, count = np.mean(pairs), len(models)
        t = count * mean / (1 + (count - 1) * mean)
        return t * sum(models) / count + (1 - t) * base
    if method == "sce":
        spread = np.var(changes, axis=0)
        top = int(p["select_topk"] * np.count_nonzero(np.minimum(spread, 3e38).astype("f4")))
        if p["select_topk"] < 1:
            changes = np.where(kept_of(spread, top), changes, 0)
        shares = np.mean(np.square(changes), axis=1)
        shares = shares / shares.sum() if shares.sum() >= 1e-6 else np.full(len(models),
                                                                            1 / len(models))
        agree = np.sign(changes) == np.where(np.sum(changes, axis=0) >= 0, 1, -1)
        below = np.sum(agree * shares[:, None], axis=0)
        return base + np.sum(agree * changes * shares[:, None], axis=0) / np.maximum(below, 1e-6)
    if method != "task_arithmetic":
        changes = [cut(change, method, p) for change in changes]
    signs = method in ("ties", "breadcrumbs_ties")
    normalize = p.get("normalize", method == "ties")
    return base + p.get("lambda", 1) * joined(changes, weights, normalize, signs)


def words_of(dtype, values):
    """Values rounded to a dtype, as bytes."""
    if dtype != "BF16":
        return np.asarray(values, "<f4").tobytes()
    bits = np.asarray(values, "<f4").view("<u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def formulas(folder):
    rng = np.random.default_rng(42)
    shapes = [(), (1,), (0,), (3, 0), (129,), (33, 65), (4, 3, 2, 2), (2, 16384), (130, 127)]
    kinds = {"near": lambda b: b + rng.normal(size=b.size) * 0.05, "zero": lambda b: b * 0,
             "minus zero": lambda b: np.where(rng.random(b.size) < 0.5, -0.0, b),
             "tiny": lambda b: rng.integers(-200, 200, b.size) * 2.0 ** -149,
             "huge": lambda b: rng.normal(size=b.size) * 1e37,
             "steps": lambda b: rng.integers(-3, 4, b.size) * 0.25, "same": np.copy}
    counted = {"slerp": 2, "nearswap": 2, "nuslerp": 2, "add_difference": 2, "model_stock": 3}
    asked = {"slerp": {"t": 0.3}, "nearswap": {"t": 0.01}, "add_difference": {"alpha": 0.8},
             "sce": {"select_topk": 0.25}, "linear": {}, "nuslerp": {}, "model_stock": {},
             "task_arithmetic": {"lambda": -0.5}, "ties": {}, "breadcrumbs": {"gamma": 0.1},
             "breadcrumbs_ties": {"gamma": 0.9, "rescale": True}}
    cases = [(m, p) for m, p in asked.items() for _ in range(2)]
    cases += [(m, {"density": d, "normalize": n}) for m in ("ties", "breadcrumbs_ties")
              for d in (0, 0.01, 1) for n in (False, True)]
    for number, (method, params) in enumerate(cases):
        if method in ("ties", "breadcrumbs", "breadcrumbs_ties"):
            params = {"density": 0.333, **params}
        has_base = method not in ("linear", "slerp", "nearswap")
        count = counted.get(method, 2 + number % 3)
        dtypes = [("F32", "BF16")[number >> i & 1] for i in range(count + 1)]
        models = [{} for _ in range(count + 1)]
        for i, shape in enumerate(shapes):
            kind = list(kinds.values())[(i + number) % len(kinds)]
            values = rng.normal(size=int(np.prod(shape)))
            if kind is kinds["huge"]:
                values = values * 1e37
            for k, model in enumerate(models):
                data = words_of(dtypes[k], values if k == 0 else kind(values))
                model["t%d" % i] = dtypes[k], shape, data
        paths = [os.path.join(folder, "f%d.safetensors" % k) for k in range(count + 1)]
        for path, model in zip(paths, models):
            write_plain(path, model)
        weights = [0.7, -0.25, 1.5, 0.4][:count]
        weighted = method in ("linear", "nuslerp", "task_arithmetic", "ties", "breadcrumbs",
                              "breadcrumbs_ties")
        words = ["--base", paths[0]] if has_base else []
        words += ["%s:%g" % pair if weighted else pair[0] for pair in zip(paths[1:], weights)]
        for name, value in params.items():
            words += ["--param", "%s=%s" % (name, str(value).lower())]
        out = os.path.join(folder, "formula.safetensors")
        done = run("--method", method, *words, "-o", out, "--force")
        label = "%s %s %s" % (method, params, dtypes)
        if done.returncode:
            check(False, label, done.stderr)
            continue
        found, _ = read_plain(out)
        dtype, problems = dtypes[0 if has_base else 1], []
        for name, (got, shape, data) in found.items():
            plain = [values_of(*model[name][::2]) for model in models]
            if got != dtype or tuple(shape) != tuple(models[0][name][1]):
                problems.append("%s is %s %s" % (name, got, shape))
            if data:
                want = formula(method, plain[1:], plain[0], weights, params)
                size = max(np.abs(values).max() for values in plain)
                bad = off(values_of(got, data), want, got, size)
                if bad.any():
                    problems.append("%s: %d of %d" % (name, bad.sum(), bad.size))
        check(len(found) == len(shapes) and not problems, label, "; ".join(problems))


def vocabularies(folder):
    """Rows that all inputs have, the base among them, also where one lacks the tensor."""
    rng, name = np.random.default_rng(8), "model.embed_tokens.weight"
    paths = [os.path.join(folder, "v%d.safetensors" % i) for i in range(3)]
    out = os.path.join(folder, "v.safetensors")
    asked = {"linear": {}, "task_arithmetic": {"lambda": 0.5}, "ties": {"density": 0.4},
             "model_stock": {}, "add_difference": {"alpha": 0.8}}
    for rows in ((3, 5, 7), (7, 5, 3), (5, 7, 3), (7, 7, 3), (3, 7, 7)):
        data = [rng.standard_normal((n, 6)).astype("<f4") for n in rows]
        for lacking, method in ((i, m) for i in (None, 0, 1, 2) for m in asked):
            reference = int(method == "add_difference")
            if lacking == reference:
                continue
            for i, path in enumerate(paths):
                own = {"other": single([1.0])} | ({name: single(data[i])} if i != lacking else {})
                write_plain(path, own)
            words = paths if method == "linear" else ["--base", *paths]
            for dtype in ("F32", "F64"):
                done = run("--method", method, *words, *("--param=%s=%g" % p for p in
                           asked[method].items()), "--ignore-missing", "--dtype", dtype, "-o", out,
                           "--force")
                have = [i for i in range(3) if i != lacking]
                least = min(rows[i] for i in have)
                flat = {i: data[i][:least].astype("f8").reshape(-1) for i in have}
                others = [flat[i] for i in have if i or method == "linear"]
                if lacking == 0 and method != "linear" or len(others) < {
                        "model_stock": 2, "add_difference": 2}.get(method, 1):
                    want = flat[reference]
                else:
                    want = formula(method, others, flat.get(0), [1] * len(others), asked[method])
                found = read_plain(out)[0].get(name, ("F32", (), b""))
                check(done.returncode == 0 and tuple(found[1]) == (least, 6) and not
                      off(values_of(dtype, found[2]), want, "F32").any(), "vocabularies",
                      "%s %s %s %s %s" % (method, rows, lacking, dtype, done.stderr))


# ── Masks ──

def siphash(key, text):
    """SipHash-2-4."""
    v = [key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
         key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573]

    def left(x, n):
        return (x << n | x >> (64 - n)) & MASK

    def turn():
        v[0] = (v[0] + v[1]) & MASK; v[1] = left(v[1], 13) ^ v[0]; v[0] = left(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK; v[3] = left(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK; v[3] = left(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK; v[1] = left(v[1], 17) ^ v[2]; v[2] = left(v[2], 32)

    text += bytes(7 - len(text) % 8) + bytes([len(text) & 255])
    for i in range(0, len(text), 8):
        word = int.from_bytes(text[i:i + 8], "little")
        v[3] ^= word
        turn()
        turn()
        v[0] ^= word
    v[2] ^= 255
    for _ in range(4):
        turn()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def drawn(seed, model, name, count):
    """The numbers of 53 bits that docs/merging.md says, for each place."""
    z = np.uint64(siphash((seed, model), name.encode())) + (
        np.arange(1, count + 1, dtype="u8") * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z ^ z >> np.uint64(31)) >> np.uint64(11)


def kept_of(values, top):
    """The `top` largest, of equal ones the first."""
    order = np.argsort(-np.minimum(np.abs(values), 3e38).astype("f4"), kind="stable")
    kept = np.zeros(len(values), bool)
    kept[order[:top]] = True
    return kept


def masks(folder):
    rng, n = np.random.default_rng(7), (200, 500)
    zero, size = np.zeros(n), n[0] * n[1]
    change = rng.standard_normal(n) * 0.1
    coarse = np.round(change, 1)  # most are equal to others
    files = {"zero": zero, "one": change, "two": rng.standard_normal(n), "coarse": coarse}
    for name, value in files.items():
        write_plain(os.path.join(folder, name + ".safetensors"), {"a.w": single(value)})
    path = {name: os.path.join(folder, name + ".safetensors") for name in files}
    out = os.path.join(folder, "out.safetensors")

    def merge(method, *words):
        done = run("--method", method, "--base", path["zero"], *words, "-o", out, "--force")
        if done.returncode:
            check(False, method, done.stderr.strip())
            return zero.reshape(-1)
        return values_of("F32", read_plain(out)[0]["a.w"][2])

    exact = files["one"].astype("f4").astype("f8").reshape(-1)
    for density in (0.1, 0.5, 0.9):
        found = merge("dare_linear", path["one"], "--param", "density=%r" % density,
                      "--param", "rescale=false", "--seed", "5")
        want = drawn(5, 0, "a.w", size) < int(density * 2**53)
        check(((found != 0) == want).all(), "dare mask", "another mask than the page says")
        share = (found != 0).mean()
        check(abs(share - density) < 4 * (density * (1 - density) / size) ** .5, "dare density",
              "%r for %r" % (share, density))
        check((found[found != 0] == exact[found != 0]).all(), "dare values", "are others")
        found = merge("dare_linear", path["one"], "--param", "density=%r" % density, "--seed", "5")
        check(abs(np.abs(found).sum() / np.abs(exact).sum() - 1) < 1e-6, "dare rescale",
              "L1 norm %r times" % (np.abs(found).sum() / np.abs(exact).sum()))
    one, other = (merge("dare_linear", path["one"], "--param", "density=0.5", "--seed", s) != 0
                  for s in ("1", "2"))
    check(abs((one == other).mean() - 0.5) < 0.01, "seeds", "masks hang on one another")
    both = merge("dare_linear", path["one"], path["one"], "--param", "density=0.5", "--param",
                 "rescale=false", "--seed", "1")
    check(abs(np.isclose(both, 2 * exact).mean() - 0.25) < 0.01, "models",
          "the masks of two models hang on one another")
    found = merge("della_linear", path["one"], "--param", "density=0.5", "--param", "epsilon=0.3",
                  "--param", "rescale=false").reshape(n)
    ranks = np.argsort(np.argsort(np.abs(exact.reshape(n)), axis=1, kind="stable"), axis=1)
    chance = 0.2 + ranks / (n[1] - 1) * 0.6
    limit = np.floor(chance * 2.0**53).astype("u8").reshape(-1)
    want = (drawn(0, 0, "a.w", size) < limit).reshape(n)
    check((found != 0).reshape(-1).sum() and ((found != 0) == want).mean() > 0.99999, "della mask",
          "%d places are others" % ((found != 0) != want).sum())
    for least in range(0, 10):
        some = (ranks >= least * 50) & (ranks < least * 50 + 50)
        check(abs((found != 0)[some].mean() - chance[some].mean()) < 0.02, "della chances",
              "%r for %r" % ((found != 0)[some].mean(), chance[some].mean()))
    values = coarse.astype("f4").astype("f8").reshape(-1)
    for density in (0.05, 0.3, 0.77):
        found = merge("ties", path["coarse"], "--param", "density=%r" % density)
        want = np.where(kept_of(values, int(density * size)), values, 0)
        check((found == want.astype("f4")).all(), "ties of equal numbers", "keeps others")
        gamma, top = 0.1, int(density * size)
        most = min(int(gamma * size), size - top)
        want = np.where(kept_of(values, most + top) & ~kept_of(values, most), values, 0)
        found = merge("breadcrumbs", path["coarse"], "--param", "density=%r" % density, "--param",
                      "gamma=0.1")
        check((found == want.astype("f4")).all(), "breadcrumbs of equal numbers", "keep others")
        found = merge("sce", path["coarse"], path["zero"], "--param", "select_topk=%r" % density)
        live = (values != 0).sum()
        want = kept_of(((values / 2) ** 2).astype("f4"), int(live * density))
        check(((found != 0) == (want & (values != 0))).all(), "sce of equal numbers", "keeps others")


# ── The same bytes ──

def large(folder):
    """Tensors of which a sample tells where the limit is, or does not tell, or misleads."""
    size, place = 1 << 22, np.arange(1 << 22, dtype="u8")
    bell = np.random.default_rng(5).standard_normal(size, "f4")
    sampled = place // 2048 % 8 == place // 16384 % 8
    model, base, out = (os.path.join(folder, name + ".safetensors")
                        for name in ("large", "zeros", "out"))
    write_plain(base, {"w": single(np.zeros((2048, 2048)))})
    for label, values in {
            "ordinary": bell, "of few values": np.round(bell, 1), "all equal": np.full(size, 0.25),
            "mostly zeros": bell * (place % 3 == 0), "of many sizes": np.exp2(20 * bell),
            "misleading": bell * np.where(sampled, 3, 1), "of three": place % 3}.items():
        values = values.astype("f4")
        write_plain(model, {"w": ("F32", (2048, 2048), values.tobytes())})
        kept = kept_of(values, int(0.37 * size))
        for threads in "12":
            done = run("--method", "ties", "--base", base, model, "--param", "density=0.37", "-o",
                       out, "--force", "--threads", threads)
            found = done.returncode == 0 and values_of("F32", data_of(out)["w"][1])
            check(np.array_equal(found, np.where(kept, values, 0)), "large",
                  "%s, %s threads: %s" % (label, threads, done.stderr))


def same_bytes(folder):
    rng = np.random.default_rng(3)
    shapes = {"model.layers.%d.w" % i: s for i, s in
              enumerate([(700, 300), (40, 9, 3, 3), (100001,)])}
    shapes["lm_head.weight"] = (300, 64)
    base = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    paths = []
    for i in range(3):
        values = {k: single(v + (0.1 * rng.standard_normal(v.shape) if i else 0))
                  for k, v in base.items()}
        paths.append(os.path.join(folder, "s%d.safetensors" % i))
        write_plain(paths[-1], values)
    out, again = (os.path.join(folder, name) for name in ("o.safetensors", "p.safetensors"))
    for method in ("linear", "nuslerp", "multislerp", "karcher", "task_arithmetic", "ties",
                   "dare_linear", "dare_ties", "breadcrumbs", "breadcrumbs_ties", "della",
                   "della_linear", "model_stock", "sce", "add_difference"):
        words = [] if method in ("linear", "karcher", "nuslerp") else ["--base", paths[0]]
        if method.startswith(("ties", "dare", "bread", "della")):
            words += ["--param", "density=0.4"]
        if method == "sce":
            words += ["--param", "select_topk=0.4"]
        written = []
        for threads in ("1", "2", "3"):
            done = run("--method", method, *words, *paths[1:], "--threads", threads, "-o", out,
                       "--force")
            with open(out, "rb") as file:
                written.append(file.read())
            check(done.returncode == 0 and written[0] == written[-1], method,
                  "other bytes with %s threads %s" % (threads, done.stderr))
        done = run("--replay", out, *reversed(paths), "-o", again, "--force")
        with open(again, "rb") as file:
            check(done.returncode == 0 and file.read() == written[0], method,
                  "replay: other bytes %s" % done.stderr)
    done = run("--replay", out, paths[0], paths[1], "-o", again, "--force")
    check(done.returncode == 1 and "s2.safetensors" in done.stderr, "replay", done.stderr)


def replays_of_others(folder):
    """A recipe that does not make the file whose header has it is refused, and nothing is left."""
    paths = [os.path.join(folder, "o%d.safetensors" % i) for i in range(2)]
    for i, path in enumerate(paths):
        write_plain(path, {"w": single(np.arange(5000) * (i + 1.0)), "x": single(np.ones(3))})
    made, other, out = (os.path.join(folder, name) for name in
                        ("made.safetensors", "other.safetensors", "never.safetensors"))
    run("--method", "linear", paths[0] + ":0.75", paths[1] + ":0.25", "-o", made, "--force")
    kept, notes = read_plain(made)
    recipe = json.loads(notes["sft_merge"])
    recipe["models"][0]["parameters"]["weight"] = 0.7
    w = np.frombuffer(kept["w"][2], "<f4").copy()
    w[4999] = np.nextafter(w[4999], np.float32(0))
    for metadata, tensors, words in (
            (json.dumps(recipe), kept, "other values"),
            (notes["sft_merge"], dict(kept, w=single(w)), "other values"),
            (notes["sft_merge"], dict(kept, w=single(w[:4999])), "shape"),
            (notes["sft_merge"], dict(kept, y=single(w)), "others"),
            (notes["sft_merge"], {"w": kept["w"], "y": kept["x"]}, "none")):
        write_plain(other, tensors, {"sft_merge": metadata})
        done = run("--replay", other, *paths, "-o", out)
        check(done.returncode == 1 and words in done.stderr and other in done.stderr
              and not os.path.exists(out), "a replay of another", words + ": " + done.stderr)
    write_plain(other, kept, {"sft_merge": notes["sft_merge"], "title": "edited"})
    done = run("--replay", other, *paths, "-o", made, "--force")
    check(done.returncode == 0 and read_plain(made) == (kept, notes), "a replay of one edited",
          done.stderr)


# ── Layouts ──

def recorded(folder):
    """The header is the same whether digests are known before or computed meanwhile, also of models
    that are equal, that were made of one another, or come in a pipe."""
    rng, paths = np.random.default_rng(5), []
    for k in range(3):
        values = rng.standard_normal((70, 300)).astype("<f4")
        paths.append(os.path.join(folder, "recorded%d.safetensors" % k))
        write_plain(paths[-1], {"x": ("F32", [70, 300], values.tobytes())})
    paths.append(os.path.join(folder, "recorded-copy.safetensors"))
    shutil.copy(paths[0], paths[-1])
    merged = os.path.join(folder, "recorded-merged.safetensors")
    out = os.path.join(folder, "recorded-out.safetensors")
    for models in (paths[:3], [paths[0], paths[3]], [merged, paths[0]], [paths[1], merged, merged]):
        found = []
        for more in (("--threads", "1"), ("--threads", "2"), ()):
            done = run("--method", "linear", *models, *more, "-o", out, "--force")
            check(done.returncode == 0, "recorded", done.stderr)
            with open(out, "rb") as file:
                found.append(file.read())
        piped = subprocess.run([*COMMAND, "merge", "--method", "linear", *models, "-o", "-"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        found.append(piped.stdout)
        check(len(set(found)) == 1, "recorded", "unlike results of %s" % models)
        header = json.loads(found[0][8:8 + int.from_bytes(found[0][:8], "little")])
        told = json.loads(header["__metadata__"]["sd_merge_models"])
        for path in models:
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            check(digest in told, "recorded", "%s is not in %s" % (path, list(told)))
        if not os.path.exists(merged):
            shutil.copy(out, merged)


def component_of(folder):
    """The one component of a folder of diffusers, its shards in one file."""
    place = next(at for at, _, files in os.walk(folder)
                 if any(f.endswith(".safetensors") for f in files))
    names = [f for f in os.listdir(place) if f.endswith((".index.json", ".safetensors"))]
    return os.path.join(place, min(names, key=lambda name: name.endswith(".safetensors")))


def data_of(path):
    return {k: (list(shape), data) for k, (_, shape, data) in read_plain(path)[0].items()}


def layouts(folder, only=()):
    """A model of diffusers, one in a single file and one as ComfyUI has it give the same tensors."""
    with gzip.open(os.path.join(ROOT, "tests", "layout", "cases.json.gz")) as file:
        cases = json.load(file)["models"]
    rng, out = np.random.default_rng(11), os.path.join(folder, "out.safetensors")
    prefix = "model.diffusion_model."
    for name, case in sorted(cases.items()):
        if only and name not in only:
            continue
        paths = [os.path.join(folder, "%s%d.safetensors" % (name, i)) for i in range(3)]
        for path in paths[:2]:
            write_plain(path, {k: ("BF16", v, (rng.standard_normal(v).astype("<f4").view("<u4")
                                               >> 16).astype("<u2").tobytes())
                               for k, v in case["single"].items()})
        architecture = ["--architecture", case["architecture"]] if case["architecture"] else []
        other = os.path.join(folder, name + "-folder")
        done = subprocess.run([*COMMAND, "convert", paths[1], "-o", other, "--layout", "diffusers",
                               *architecture], capture_output=True, text=True, check=False)
        check(done.returncode == 0, name, done.stderr)
        one = component_of(other)
        done = run("--method", "linear", *paths[:2], "-o", out, "--force")
        check(done.returncode == 0, name, done.stderr)
        want = data_of(out)
        done = run("--method", "linear", paths[0], one, "-o", out, "--force")
        check(done.returncode == 0 and data_of(out) == want, name + " of diffusers", done.stderr)
        done = run("--method", "linear", one, paths[0], "-o", out, "--force")
        check(done.returncode == 0 and set(data_of(out)) == set(data_of(one)), name + " to it",
              done.stderr)
        back = os.path.join(folder, "back.safetensors")
        done = subprocess.run([*COMMAND, "convert", out, "-o", back, "--layout", "single",
                               "--force", *architecture], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 0 and data_of(back) == want, name + " and back", done.stderr)
        if "vae" in name:
            continue
        write_plain(paths[2], {prefix + k: v for k, v in read_plain(paths[1])[0].items()})
        done = run("--method", "linear", paths[0], paths[2], "-o", out, "--force")
        check(done.returncode == 0 and data_of(out) == want, name + " of ComfyUI", done.stderr)
        write_plain(paths[2], {prefix + k: v for k, v in read_plain(paths[0])[0].items()})
        done = run("--method", "linear", paths[2], one, "-o", out, "--force")
        check(done.returncode == 0 and data_of(out) == {prefix + k: v for k, v in want.items()},
              name + " of both", done.stderr)


def whole_model(folder):
    """A whole SDXL in four layouts, of which the data are a hole."""
    paths = []
    for library, name in (("comfy", "sdxl.checkpoint"), ("comfy", "sdxl.raw"),
                          ("forms", "sdxl.net"), ("diffusers", "UNet2DConditionModel@sdxl")):
        found = [e for e in zoo.read(library)[1] if e.name == name]
        paths.append(os.path.join(folder, "%s-%s.safetensors" % (library, name)))
        zoo.write_model(paths[-1], found[0])
    for first in paths:
        for other in paths:
            done = run("--method", "linear", first, other, "-o", os.path.join(folder, "never"),
                       "--dry-run", "--json")
            told = json.loads(done.stdout)["results"][0]
            check(told.get("merged") == 1680 and told["missing"] == told["left_out"] == 0,
                  "a whole model", done.stderr)


def prefixes(folder):
    """Names that differ by what stands before those of a part, whichever of two comes first; and the
    mean of one short vector, which is itself."""
    groups = (("model.diffusion_model.", "diffusion_model.", "transformer.", "unet.", "net.", ""),
              ("first_stage_model.", "vae.", ""),
              ("model.", "model.language_model.", "language_model.model.", ""),
              ("lm_head.", "language_model.lm_head."))
    paths = [os.path.join(folder, "prefix%d.safetensors" % i) for i in range(2)]
    out = os.path.join(folder, "prefixed.safetensors")
    for group in groups:
        for names in ((a, b) for a in group for b in group if a != b):
            for k, path in enumerate(paths):
                write_plain(path, {names[k] + "layers.0.w": single([1.0 + 2 * k])})
            done = run("--method", "linear", *paths, "-o", out, "--force")
            found = data_of(out) if done.returncode == 0 else {}
            check(found == {names[0] + "layers.0.w": ([1], np.float32(2).tobytes())},
                  "prefixes", "%s %s" % (names, done.stderr))
    write_plain(paths[0], {"w": single([1e-6, -2e-6]), "x": single([1.0])})
    write_plain(paths[1], {"x": single([3.0])})
    for asked in (paths[:1], [*paths, "--ignore-missing"]):
        done = run("--method", "karcher", *asked, "-o", out, "--force")
        found = data_of(out) if done.returncode == 0 else {}
        check(found.get("w") == data_of(paths[0])["w"], "karcher of one", "%s %s" % (
            found, done.stderr))


# ── Slices ──

SLICED = """merge_method: %s
slices:
- sources:
  - model: l0.safetensors
    layer_range: [0, 3]
- sources:
  - model: l1.safetensors
    layer_range: [1, 4]
    parameters:
      scale:
      - filter: o_proj
        value: 0.5
      - value: [1, 2]
dtype: float32
"""
MIXED = """merge_method: linear
slices:
- sources:
  - {model}l0.safetensors
    layer_range: [0, 2]
    parameters:
      weight: [1, 3]
  - {model}l1.safetensors
    layer_range: [2, 4]
  parameters:
    weight: 1
- sources:
  - {model}l1.safetensors
    layer_range: [0, 1]
    parameters:
      weight: 5
parameters:
  weight: 100
"""


def slices(folder):
    """Layers as mergekit's planner numbers them; tensors outside are those of the first slice, or,
    behind the layers, of the last one; a gradient is over the layers of its slice."""
    rng, models = np.random.default_rng(5), []
    for i in range(2):
        names = ["model.embed_tokens.weight"]
        for layer in range(4):
            names += ["model.layers.%d.self_attn.o_proj.weight" % layer,
                      "model.layers.%d.mlp.up_proj.weight" % layer]
        names += ["model.norm.weight", "lm_head.weight"]
        models.append({n: rng.standard_normal((6, 5)).astype("<f4") for n in names})
        write_plain(os.path.join(folder, "l%d.safetensors" % i),
                    {k: single(v) for k, v in models[-1].items()})
    path, out = (os.path.join(folder, name) for name in ("slices.yml", "sliced.safetensors"))

    def made(text, *words):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = run("--recipe", path, "-o", out, "--force", *words)
        if done.returncode:
            return done.stderr
        return {k: np.frombuffer(v[2], "<f4").reshape(v[1])
                for k, v in read_plain(out)[0].items()}

    want = {"model.embed_tokens.weight": models[0]["model.embed_tokens.weight"]}
    for part, scales in (("self_attn.o_proj.weight", (.5, .5, .5)),
                         ("mlp.up_proj.weight", (1, 1.5, 2))):
        for k in range(3):
            name = "model.layers.%d." + part
            want[name % k] = models[0][name % k]
            want[name % (3 + k)] = models[1][name % (1 + k)] * np.float32(scales[k])
    want |= {k: models[1][k] for k in ("model.norm.weight", "lm_head.weight")}
    found = made(SLICED % "passthrough")
    check(isinstance(found, dict) and found.keys() == want.keys()
          and all((found[k] == want[k]).all() for k in want), "slices", str(found)[:300])
    # a filter is for the number that the layer has in its model
    other = made(SLICED.replace("o_proj", "layers.1.") % "passthrough")
    for k in range(3):
        for part, scales in (("self_attn.o_proj.weight", (.5, 1.5, 2)),
                             ("mlp.up_proj.weight", (.5, 1.5, 2))):
            name = "model.layers.%d." + part
            check(isinstance(other, dict) and (other[name % (3 + k)] == models[1][name % (1 + k)]
                                               * np.float32(scales[k])).all(),
                  "a filter of a layer", str(other)[:300])
    made(SLICED % "passthrough")
    again = os.path.join(folder, "again.safetensors")
    done = run("--replay", out, *(os.path.join(folder, "l%d.safetensors" % i) for i in (1, 0)),
               "-o", again, "--force")
    with open(out, "rb") as one, open(again, "rb") as other:
        check(done.returncode == 0 and one.read() == other.read(), "replay of slices", done.stderr)

    def between(name, a, b, w):
        return (w * models[0][name % a].astype("f8") + models[1][name % b]) / (w + 1)

    # the weight of a source outside of layers is the first of its list
    want = {"model.embed_tokens.weight": between("model.embed_tokens.weight%.0s", 0, 0, 1)}
    for part in ("self_attn.o_proj.weight", "mlp.up_proj.weight"):
        name = "model.layers.%d." + part
        want |= {name % 0: between(name, 0, 2, 1), name % 1: between(name, 1, 3, 3),
                 name % 2: models[1][name % 0]}
    want |= {k: models[1][k] for k in ("model.norm.weight", "lm_head.weight")}
    found = made(MIXED.format(model="model: "))
    check(isinstance(found, dict) and found.keys() == want.keys()
          and all(np.abs(found[k] - want[k]).max() < 1e-6 for k in want), "slices of several",
          str(found)[:300])
    for text, words in (
            (SLICED.replace("4]", "5]"), "layers"), (SLICED.replace("[1, 4]", "[4, 1]"), "line 8"),
            (SLICED.replace("[1, 4]", "[1, 4, 5]"), "line 8"),
            (MIXED.replace("[2, 4]", "[2, 3]"), "line "), (SLICED.replace("[0, 3]", "3"), "line "),
            (SLICED.replace("- sources:\n  - model: l0", "- source:\n  - model: l0"), "line "),
            (MIXED.replace("linear", "passthrough").replace("weight", "scale"), "1 model")):
        told = made(text.format(model="model: ") if "{model}" in text else text % "passthrough"
                    if "%s" in text else text)
        check(isinstance(told, str) and words in told, "slices that are refused", str(told)[:200])

    # what only another source has outside of layers would be lost
    fewer = dict(models[0])
    del fewer["lm_head.weight"]
    write_plain(os.path.join(folder, "fewer.safetensors"),
                {k: single(v) for k, v in fewer.items()})
    both = ("merge_method: linear\nslices:\n- sources:\n  - model: fewer.safetensors\n"
            "    layer_range: [0, 4]\n  - model: l1.safetensors\n    layer_range: [0, 4]\n"
            "parameters:\n  weight: 1\n")
    told = made(both)
    check(isinstance(told, str) and "behind the layers" in told, "an lm_head of one source",
          str(told)[:200])
    found = made(both, "--ignore-missing")
    check(isinstance(found, dict) and found.keys() == fewer.keys(), "an lm_head that is left out",
          str(found)[:200])
    # the norm of embeddings is no tensor behind the layers
    for i in range(2):
        write_plain(os.path.join(folder, "bloom%d.safetensors" % i),
                    {k: single(models[i]["model.norm.weight"]) for k in
                     ("word_embeddings_layernorm.weight", "h.0.w", "h.1.w", "ln_f.weight")})
    found = made("merge_method: passthrough\nslices:\n- sources:\n  - model: bloom0.safetensors\n"
                 "    layer_range: [0, 1]\n- sources:\n  - model: bloom1.safetensors\n"
                 "    layer_range: [1, 2]\n")
    check(isinstance(found, dict) and all(
        (found[k] == models[i]["model.norm.weight"]).all() for k, i in
        (("word_embeddings_layernorm.weight", 0), ("h.0.w", 0), ("h.1.w", 1), ("ln_f.weight", 1))),
        "a norm of embeddings", str(found)[:200])


# ── Inputs that are refused ──

def refused(folder):
    paths = [os.path.join(folder, "r%d.safetensors" % i) for i in range(3)]
    out = os.path.join(folder, "never.safetensors")
    big = np.arange(3 << 20) * 1e-6
    for i, path in enumerate(paths[:2]):
        write_plain(path, {"a": single(big + i), "b": single(big - i)})
    write_plain(paths[2], {"c": single(big[:9])})
    for words in ([], ["--ignore-missing"]):
        done = run("--method", "linear", paths[0], paths[2], "-o", out, *words)
        check(done.returncode == 1 and "r2.safetensors" in done.stderr and not os.path.exists(out),
              "no common tensor", done.stderr)
    os.makedirs(os.path.join(folder, "several"), exist_ok=True)
    for path in paths[:2]:
        os.link(path, os.path.join(folder, "several", os.path.basename(path)))
    run("--method", "linear", *paths[:2], "-o", os.path.join(folder, "made.safetensors"))
    done = run("--replay", os.path.join(folder, "made.safetensors"),
               os.path.join(folder, "several"), "-o", out)
    check(done.returncode == 2 and "several: expected one model" in done.stderr, "replay: a folder",
          done.stderr)
    odd = os.path.join(os.fsencode(folder), b"\xff.safetensors")
    os.link(paths[0], odd)
    done = run("--method", "linear", odd, paths[1], "-o", out)
    check(done.returncode == 2 and "UTF-8" in done.stderr and "xff" in done.stderr, "odd bytes",
          done.stderr)
    done = run("--method", "linear", *paths[:2], "-o", out, "--param", "weight@c*=2")
    check(done.returncode == 2 and "c*" in done.stderr, "a pattern for nothing", done.stderr)
    # a model that changes while the result is read from a pipe that waits
    with subprocess.Popen([*COMMAND, "merge", "--method", "linear", *paths[:2], "-o", "-"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.read(1 << 20)
        with open(paths[1], "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\0\0")
        _, told = child.communicate()
    check(child.returncode == 2 and b"changed" in told and b"r1.safetensors" in told,
          "a model that changes", "exit %d %r" % (child.returncode, told))


def has_open(pid, path):
    try:
        fds = os.path.join("/proc", str(pid), "fd")
        return path in [os.readlink(os.path.join(fds, fd)) for fd in os.listdir(fds)]
    except OSError:  # it is closed just now
        return False


def exchanged(folder):
    """A replay's model becomes another file after it was hashed, while the next operand is: an
    error, or, if that was too late, the right bytes."""
    paths = [os.path.join(folder, "e%d.safetensors" % i) for i in range(3)]
    for i, path in enumerate(paths):
        write_plain(path, {"w": single(np.arange(1 << 16) * (i + 1.0))})
    slow, made, out, kept = (os.path.join(folder, name) for name in
                             ("slow.safetensors", "made.safetensors", "never", "kept"))
    write_plain(slow, {"c": ("U8", (64 << 20,), b"\0" * (64 << 20))})
    run("--method", "linear", *paths[:2], "-o", made, "--force")
    for path in paths[:2]:
        with subprocess.Popen([*COMMAND, "merge", "--replay", made, *paths[:2], slow, "-o", out],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            while child.poll() is None and not has_open(child.pid, slow):
                pass
            os.rename(path, kept)
            shutil.copy(paths[2], path)
            os.utime(path, ns=(0, os.stat(kept).st_mtime_ns))
            told = child.communicate()[1].decode()
        if os.path.exists(out):
            fine = child.returncode == 0 and data_of(out) == data_of(made)
            os.remove(out)
        else:
            fine = child.returncode == 2 and "found another one" in told and path in told
        check(fine, "replay: a model is exchanged", "exit %d %s" % (child.returncode, told))
        os.rename(kept, path)
    os.remove(slow)


def declared(folder):
    """A quantised model whose config.json tells other groups is not what was merged."""
    quant = os.path.join(ROOT, "tests", "quant", "ct_pack_4")
    with open(quant + ".json", encoding="utf-8") as file:
        config = json.load(file)
    place = os.path.join(folder, "declared")
    os.mkdir(place)
    shutil.copy(quant + ".safetensors", os.path.join(place, "model.safetensors"))
    model, made, again = (os.path.join(place, name + ".safetensors") for name in
                          ("model", "made", "again"))
    weights = config["quantization_config"]["config_groups"]["group_0"]["weights"]
    for size in (32, 33, 32):
        weights["group_size"] = size
        with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        if not os.path.exists(made):
            done = run("--method", "linear", model, "--dtype", "f32", "-o", made)
            check(done.returncode == 0, "a quantised model", done.stderr)
        done = run("--replay", made, model, "-o", again, "--force")
        check(done.returncode == (size != 32) and ("other layouts" in done.stderr) == (size != 32),
              "replay: groups of %d" % size, "exit %d %s" % (done.returncode, done.stderr))
    check(data_of(made) == data_of(again), "replay of a quantised model", "other values")


def blocks(folder):
    """Values of GGUF's blocks are not rounded before they are merged."""
    path, out = (os.path.join(folder, name) for name in ("q8.gguf", "q8.safetensors"))
    scale, codes = np.float16(0.1), np.arange(-127, 128, 8, dtype="i1")
    head = b"GGUF" + struct.pack("<IQQQ1sIQIQ", 3, 1, 0, 1, b"w", 1, 32, 8, 0)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + scale.tobytes() + codes.tobytes())
    done = run("--method", "linear", path, "--dtype", "f64", "-o", out)
    found = values_of(*read_plain(out)[0]["w"][::2]) if done.returncode == 0 else []
    check(list(found) == list(float(scale) * codes), "blocks of GGUF", "%s %s" % (
        found, done.stderr))


def cancelled(folder):
    """Vectors that nearly cancel out, and weights so large that only equal values stay."""
    paths = [os.path.join(folder, "c%d.safetensors" % i) for i in range(3)]
    out = os.path.join(folder, "cancelled.safetensors")
    one = np.array([0.3, -0.7, 0.2])
    for path, data in zip(paths, (one, -2 * one + [1e-6, 0, 0], one)):
        write_plain(path, {"w": ("F64", data.shape, data.astype("<f8").tobytes())})
    for method in ("karcher", "nuslerp"):
        done = run("--method", method, *paths[:2], "-o", out)
        check(done.returncode == 1 and "cancel out" in done.stderr and not os.path.exists(out),
              "opposite vectors", "%s: exit %d %s" % (method, done.returncode, done.stderr))
    write_plain(paths[1], {"w": single([0.4, 0.1, 0.5])})
    for asked in (["slerp", *paths[:2], "--param", "t=1e9"],
                  ["nuslerp", paths[0] + ":-1e9", paths[1] + ":1000000001"]):
        done = run("--method", *asked, "-o", out)
        check(done.returncode == 2 and "expected t " in done.stderr and not os.path.exists(out),
              "a t far away", "exit %d %s" % (done.returncode, done.stderr))
    words = ["--method", "task_arithmetic", "--base", paths[0], paths[2] + ":1e38"]
    other = ["--method", "add_difference", "--base", paths[0], paths[0], paths[2], "--param",
             "alpha=1e38"]
    for asked in (words, other):
        done = run(*asked, "-o", out, "--force")
        found = values_of(*read_plain(out)[0]["w"][::2]) if done.returncode == 0 else []
        check(list(found) == list(one), "a large weight", "%s %s" % (found, done.stderr))


# ── Hostile recipes ──

RECIPE = """merge_method: linear
models:
  - model: one.safetensors
    parameters:
      weight: 0.5
  - model: two.safetensors
    parameters: {weight: 0.5}
"""


def mixtures(folder):
    """Which mixture: one changed tensor is not hidden by larger ones, few elements and values whose
    squares leave F64 do not mislead."""
    rng = np.random.default_rng(5)

    def asked(result, *models):
        paths = [os.path.join(folder, "x%d.safetensors" % i) for i in range(len(models) + 1)]
        for path, tensors in zip(paths, (result, *models)):
            write_plain(path, tensors)
        return subprocess.run([*COMMAND, "diff", "--merge-of", *paths], capture_output=True, text=True,
                              check=False)

    sizes = {"h.0.w": (4096, 1.0), "h.0.b": (16, 1e-4), "out.w": (3, 1.0)}
    values = [{n: rng.normal(size=count) * by for n, (count, by) in sizes.items()} for _ in range(3)]
    plain = [{n: ("BF16", v.shape, words_of("BF16", v)) for n, v in m.items()} for m in values[:2]]
    sums = {n: 0.25 * values_of(*plain[0][n][::2]) + 0.75 * values_of(*plain[1][n][::2])
            for n in sizes}
    sound = {n: ("BF16", v.shape, words_of("BF16", v)) for n, v in sums.items()}
    done = asked(sound, *plain)
    check(done.returncode == 0, "mixture", done.stdout + done.stderr)
    other = dict(sound, **{"h.0.b": ("BF16", (16,), words_of("BF16", values[2]["h.0.b"]))})
    done = asked(other, *plain)
    check(done.returncode == 1, "mixture but for a small tensor", done.stdout)
    few = [{"a": single(rng.normal(size=3))} for _ in range(4)]
    done = asked({"a": single(sum(values_of(*m["a"][::2]) for m in few) / 4)}, *few)
    check(done.returncode == 0, "mixture of more models than elements", done.stdout)
    for by in (1e-170, 1e160):
        far = [{"a": ("F64", (9,), (rng.normal(size=9) * by).tobytes())} for _ in range(3)]
        done = asked(*far)
        check(done.returncode and "expected differences" in done.stderr, "mixture of %g" % by,
              done.stdout)


def hostile(folder):
    out = os.path.join(folder, "never.safetensors")
    path = os.path.join(folder, "recipe.yml")
    deep = "a:\n" + "".join(" " * i + "- \n" for i in range(2000))
    texts = [RECIPE, "", "\0", "merge_method: [linear", "merge_method: linear\nmodels: 3\n",
             "merge_method: nosuch\nmodels:\n- model: one.safetensors\n", "- - - -\n" * 1000, deep,
             "{\"merge_method\":\"linear\",\"models\":" + "[" * 200, "{\"a\":1}" * 2, "{",
             "merge_method: linear\nmerge_method: linear\n", "\ta: b\n", "a: &b c\n", "x" * (1 << 21),
             "merge_method: linear\nmodels:\n" + "- model: one.safetensors\n" * 2,
             "merge_method: linear\nmodels:\n" + "".join("- model: m%d\n" % i for i in range(99)),
             "merge_method: linear\nparameters:\n  weight: [" + "1," * 5000 + "1]\nmodels:\n"
             "- model: one.safetensors\n",
             "merge_method: linear\ntokenizer_source: union\nmodels:\n- model: one.safetensors\n",
             "merge_method: linear\nmodels:\n- model: one.safetensors\n  parameters:\n"
             "    weight: nan\n",
             "merge_method: linear\nmodels:\n- model: one.safetensors\n  parameters:\n"
             "    weight: 1e999\n",
             "merge_method: linear\nmodels:\n- model: one.safetensors\n",  # no weight
             "merge_method: passthrough\nslices:\n- sources:\n  - model: one.safetensors\n"
             "    layer_range: [0, 3]\n"]
    # each of these would be another merge than the one that is written there
    plain = "merge_method: linear\nmodels:\n- model: layered.safetensors\n  parameters:\n" \
            "    weight: "
    layered = "merge_method: passthrough\nslices:\n- sources:\n" \
              "  - model: layered.safetensors\n" \
              "    layer_range: "
    in_json = '{"merge_method":"linear","models":[{"model":"layered.safetensors","parameters":' \
              '{"weight":%s}}]}'
    texts += [plain + end for end in
              ("[1, 2]\n    weight: [2, 3]\n", "[1, ~]\n", "[1, , 2]\n", "[1, 2} \n",
               "[1, 2] 3\n", '"1" 2\n', "\n    - 1\n    - null\n", "\n    - 1\n    -\n",
               "\n    - 1\n    - # 2\n",
               "1\n  parameters:\n    weight: 2\n",
               "1\nparameters:\n  normalize: true\nparameters:\n  normalize: false\n",
               "1\nseed: 010\n", "\n    - filter: a\n      glob: b*\n      value: 1\n")]
    texts += [layered + "[0, 010]\n", layered + "[00, 1]\n",
              in_json % "[0.3, null]", in_json % "[null]",
              (in_json % "1").replace("layered.safe", "layered.safetensors\\u0000.safe"),
              plain.replace("layered.safetensors", '"layered.safetensors\\u0000"') + "1\n"]
    write_plain(os.path.join(folder, "layered.safetensors"), {
        "model.layers.%d.a" % i: single([i + 1.0, 2.0]) for i in range(12)})
    rng, told = np.random.default_rng(1), len(texts)
    sound = RECIPE.replace(": {weight: 0.5}", ":\n      weight: 0.5").encode()
    for _ in range(int(os.environ.get("SFT_MERGE_ROUNDS", "60"))):
        text = bytearray(sound)
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(len(text)))
            if rng.integers(2):
                text[at] = int(rng.integers(256))
            else:
                del text[at:at + int(rng.integers(1, 9))]
        texts.append(bytes(text))
    for i, text in enumerate(texts):
        with open(path, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
        done = run("--recipe", path, "-o", out, "--force", "--dry-run")
        named = i >= told or done.returncode in (1, 2)
        check(named and done.returncode in (0, 1, 2) and not os.path.exists(out), "recipe %d" % i,
              "exit %d %s" % (done.returncode, done.stderr[:200]))
        if done.returncode:
            check("safetensors:" in done.stderr, "recipe %d" % i, "says nothing")
    with open(path, "wb") as file:
        file.write(sound)
    done = run("--recipe", path, "-o", out, "--force", "--dry-run")
    check(done.returncode == 0, "recipe", done.stderr)


def main():
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        mergekit_cases(folder, only)
        if not only:
            layouts(folder)
            prefixes(folder)
            slices(folder)
            whole_model(folder)
            recorded(folder)
            replays_of_others(folder)
            refused(folder)
            exchanged(folder)
            cancelled(folder)
            declared(folder)
            blocks(folder)
            mixtures(folder)
            formulas(folder)
            vocabularies(folder)
            masks(folder)
            large(folder)
            same_bytes(folder)
            hostile(folder)
    print("%d passed, %d failed, 0 skipped" % (counts["passed"], counts["failed"]))
    return counts["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
