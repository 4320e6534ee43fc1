#!/usr/bin/env python3
"""lora merge with random adapters of every method, beside the formulas of docs/adapters.md in F64:
linear layers and convolutions, dtypes, alpha in every form, chains, shards.

    differential.py [CASES [SEED]]   a case is one module merged into one layer
    differential.py --oracles [CASES [SEED]]   also compares the formulas with lycoris-lora's and
                                     PEFT's code (tests/requirements-adapters.txt)
"""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import COMMAND, LEAST, MANTISSA, np, read_plain, values_of, write_plain  # noqa: E402

EACH = 40  # modules of one adapter
ORACLES = False


class Draw(random.Random):
    def array(self, *shape, by=0.3):
        return np.random.default_rng(self.getrandbits(64)).standard_normal(shape) * by


def rounded(values, dtype):
    """(dtype, shape, bytes), and the values that are stored."""
    values = np.asarray(values, "f8")
    if dtype == "BF16":
        bits = values.astype("<f4").view("<u4").astype("u8")
        data = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()
    else:
        data = values.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]).tobytes()
    return (dtype, list(values.shape), data), values_of(dtype, data).reshape(values.shape)


class Module:
    """One module: its tensors, and what it makes of a weight."""

    def __init__(self, draw, name):
        self.draw, self.name, self.tensors, self.said = draw, name, {}, {}
        self.factor = draw.choice(["F32", "F32", "F16", "BF16", "F64"])
        self.alpha, self.scale = None, 1.0

    def put(self, end, values, dtype=None):
        self.tensors[self.name + end], stored = rounded(values, dtype or self.factor)
        self.said[end] = stored
        return stored

    def put_alpha(self, rank):
        kind = self.draw.choice(["none", "none", "0", "some", "some", "BF16", "rank"])
        if kind == "none":
            return
        value = {"0": 0.0, "rank": float(rank)}.get(kind, self.draw.choice([0.5, 1, 3, 6, 17.3]))
        shape = self.draw.choice([(), (1,)])
        self.alpha = float(self.put(".alpha", np.full(shape, value),
                                    "BF16" if kind == "BF16" else None).reshape(-1)[0])
        self.scale = self.alpha / rank


def tucker(core, first, second):
    """core [m, n, k...], first [m, out], second [n, in]"""
    return np.einsum("mn...,mo,ni->oi...", core, first, second)


def lora(m, shape, draw):
    out, inn, kernel = shape[0], shape[1], shape[2:]
    rank = draw.randint(1, 6)
    up, down = draw.array(out, rank), draw.array(rank, inn, *kernel)
    way = draw.choice(["kohya", "peft", "diffusers", "tucker"])
    if way == "tucker" and kernel:
        other = draw.randint(1, 5)
        m.put_alpha(rank)
        u = m.put(".lora_up.weight", draw.array(out, other, 1, 1)).reshape(out, other)
        d = m.put(".lora_down.weight", draw.array(rank, inn, 1, 1)).reshape(rank, inn)
        t = m.put(".lora_mid.weight", draw.array(other, rank, *kernel))
        return tucker(t, u.T, d) * m.scale
    ends = {"peft": (".lora_B.weight", ".lora_A.weight"),
            "diffusers": ("_lora.up.weight", "_lora.down.weight")}.get(
                way, (".lora_up.weight", ".lora_down.weight"))
    if way != "diffusers":
        m.put_alpha(rank)
    flat = draw.random() < 0.3 and not kernel
    u = m.put(ends[0], up.reshape(out, rank, *([1] * len(kernel or ([1, 1] if flat else [])))))
    d = m.put(ends[1], down.reshape(rank, inn, 1, 1) if flat else down)
    return (u.reshape(out, rank) @ d.reshape(rank, -1)).reshape(shape) * m.scale


def loha(m, shape, draw):
    out, inn, kernel = shape[0], shape[1], shape[2:]
    rank = draw.randint(1, 5)
    m.put_alpha(rank)
    halves = []
    tucked = bool(kernel) and draw.random() < 0.5
    for half in ("1", "2"):
        if tucked:
            t = m.put(".hada_t" + half, draw.array(rank, rank, *kernel))
            a = m.put(".hada_w%s_a" % half, draw.array(rank, out))
            b = m.put(".hada_w%s_b" % half, draw.array(rank, inn))
            halves.append(tucker(t, a, b))
        else:
            a = m.put(".hada_w%s_a" % half, draw.array(out, rank))
            b = m.put(".hada_w%s_b" % half, draw.array(rank, int(np.prod(shape[1:]))))
            halves.append((a @ b).reshape(shape))
    return halves[0] * halves[1] * m.scale


def lokr(m, shape, draw):
    out, inn, kernel = shape[0], shape[1], shape[2:]
    p = draw.choice([d for d in (1, 2, 3, 4) if out % d == 0])
    q = draw.choice([d for d in (1, 2, 3, 4) if inn % d == 0])
    rank, ranks = draw.randint(1, 3), []
    decide = draw.choice(["00", "01", "10", "11", "t"] if kernel else ["00", "01", "10", "11"])
    if decide[0] == "1":
        a, b = draw.array(p, rank), draw.array(rank, q)
        w1 = m.put(".lokr_w1_a", a) @ m.put(".lokr_w1_b", b)
        ranks.append(rank)
    else:
        w1 = m.put(".lokr_w1", draw.array(p, q))
    rows, cols, other = out // p, inn // q, draw.randint(1, 3)
    if decide == "t":
        t = m.put(".lokr_t2", draw.array(other, other, *kernel))
        w2 = tucker(t, m.put(".lokr_w2_a", draw.array(other, rows)),
                    m.put(".lokr_w2_b", draw.array(other, cols)))
        ranks.append(other)
    elif decide[1:] == "1":
        width = cols * int(np.prod(kernel))
        w2 = (m.put(".lokr_w2_a", draw.array(rows, other))
              @ m.put(".lokr_w2_b", draw.array(other, width))).reshape(rows, cols, *kernel)
        ranks.append(other)
    else:
        w2 = m.put(".lokr_w2", draw.array(rows, cols, *kernel))
    m.put_alpha(ranks[0] if ranks else 1)
    if not ranks: # alpha counts for nothing
        m.alpha, m.scale = None, 1.0
    return np.kron(w1.reshape(p, q, *([1] * len(kernel))), w2) * m.scale


def full(m, shape, draw):
    return m.put(".diff", draw.array(*shape))


def glora(m, shape, draw):
    out, inn, kernel = shape[0], shape[1], shape[2:]
    rank = draw.randint(1, 9) # more than channels, too
    m.put_alpha(rank)
    one = [1] * len(kernel)
    a1 = m.put(".a1.weight", draw.array(inn, rank, *one)).reshape(inn, rank)
    a2 = m.put(".a2.weight", draw.array(rank, inn, *one)).reshape(rank, inn)
    b1 = m.put(".b1.weight", draw.array(out, rank, *one)).reshape(out, rank)
    b2 = m.put(".b2.weight", draw.array(rank, inn, *kernel)).reshape(rank, -1)
    return lambda w: m.scale * ((b1 @ b2).reshape(shape)
                                + np.einsum("oi...,ij->oj...", w, a1 @ a2))


def turns(blocks, cap):
    q = blocks - np.swapaxes(blocks, -1, -2)
    norm = np.sqrt((q ** 2).sum()) + 1e-8
    if 0 < cap < norm:
        q = q * cap / norm
    one = np.eye(q.shape[-1])
    return (one + q) @ np.linalg.inv(one - q)


def oft(m, shape, draw, strength):
    out = shape[0]
    size = draw.choice([d for d in (2, 3, 4, 6) if out % d == 0])
    blocks = m.put(".oft_blocks", draw.array(out // size, size, size, by=0.4))
    cap = draw.choice([None, 0.0, 0.01, 0.3])
    if cap is not None:
        cap = float(m.put(".alpha", np.array(cap)))
    r = strength * turns(blocks, (cap or 0) * out) + (1 - strength) * np.eye(size)
    scale = m.put(".rescale", draw.array(out, 1) + 1) if draw.random() < 0.5 else np.ones((out, 1))

    def change(w):
        turned = np.einsum("knm,kni->kmi", r, w.reshape(out // size, size, -1)).reshape(out, -1)
        return (turned * scale).reshape(shape)
    return change


def boft(m, shape, draw, strength):
    out, size = shape[0], 4
    stages = [s for s in (1, 2, 3) if out % (size * 2 ** (s - 1)) == 0]
    count = draw.choice(stages)
    blocks = m.put(".oft_blocks", draw.array(count, out // size, size, size, by=0.3))
    m.put(".alpha", np.array(0.0))
    r = strength * turns(blocks, 0) + (1 - strength) * np.eye(size)
    scale = m.put(".rescale", draw.array(out, 1) + 1) if draw.random() < 0.5 else np.ones((out, 1))

    def change(w):
        flat = w.reshape(out, -1)
        for i in range(count):
            k = 2 ** i * size // 2
            rows = flat.reshape(-1, 2, k, flat.shape[1]).transpose(0, 2, 1, 3)
            rows = rows.reshape(-1, size, flat.shape[1])
            rows = np.einsum("bij,bjk->bik", r[i], rows).reshape(-1, k, 2, flat.shape[1])
            flat = rows.transpose(0, 2, 1, 3).reshape(out, -1)
        return (flat * scale).reshape(shape)
    return change


def ia3(m, shape, draw, strength):
    on_input = draw.random() < 0.5
    one = [1] * len(shape[2:])
    f = m.put(".weight", draw.array(1, shape[1], *one) if on_input else
              draw.array(shape[0], 1, *one))
    m.put(".on_input", np.array(float(on_input)))
    return lambda w: w * (1 + strength * f)


def dora(m, shape, draw, delta):
    """Beside a delta: magnitudes of rows or of input channels."""
    columns = draw.random() < 0.4
    one = [1] * len(shape[2:])
    magnitude = np.abs(draw.array(1, shape[1], *one) if columns else
                       draw.array(shape[0], 1, *one)) + 0.5
    magnitude = m.put(".dora_scale", magnitude)
    axes = tuple(i for i in range(len(shape)) if i != int(columns))

    def change(w, strength):
        v = w + delta
        norm = np.sqrt((v ** 2).sum(axes, keepdims=True))
        return w + strength * (magnitude * v / norm - w)
    return change


SUMS = {"lora": lora, "loha": loha, "lokr": lokr, "full": full, "glora": glora}
WHOLE = {"oft": oft, "boft": boft, "ia3": ia3}


def random_module(draw, name, shape, strength):
    """The module, and a function from a weight to the changed one."""
    m = Module(draw, name)
    method = draw.choice([*SUMS, *SUMS, *WHOLE])
    if method == "boft" and shape[0] % 4:
        method = "oft"
    if method in WHOLE:
        change = WHOLE[method](m, shape, draw, strength)
        return m, method, change
    delta = SUMS[method](m, shape, draw)
    if callable(delta):
        return m, method, lambda w: w + strength * delta(w)
    if method in ("lora", "loha", "lokr") and draw.random() < 0.25 \
            and (len(shape) == 2 or method != "lokr"):
        by = dora(m, shape, draw, delta)
        return m, method + " dora", lambda w: by(w, strength)
    return m, method, lambda w: w + strength * delta


# ── The packages' own code ──

def check_oracles(m, method, shape, strength, change, w):
    """What lycoris-lora makes of the same tensors: a list of what differs."""
    import torch
    from lycoris.functional import diag_oft, general, locon, loha as f_loha

    def t(end):
        return torch.from_numpy(m.said[end].copy())
    have, said = change(w), m.said
    if method == "lora" and ".lora_mid.weight" in said:
        up = t(".lora_up.weight")
        want = general.rebuild_tucker(t(".lora_mid.weight"), up[:, :, 0, 0].T,
                                      t(".lora_down.weight")[:, :, 0, 0]) * m.scale
    elif method == "lora" and ".lora_up.weight" in said and len(shape) > 2:
        want = locon.diff_weight(t(".lora_down.weight"), t(".lora_up.weight"), None, gamma=m.scale)
    elif method == "loha":
        cores = [t(".hada_t" + h) if ".hada_t1" in said else None for h in "12"]
        want = f_loha.diff_weight(t(".hada_w1_b"), t(".hada_w1_a"), t(".hada_w2_b"),
                                  t(".hada_w2_a"), *cores, gamma=torch.tensor(m.scale, dtype=torch.float64))
    elif method == "lokr" and ".lokr_w1" in said and ".lokr_w2" in said:
        w1 = t(".lokr_w1").reshape(*said[".lokr_w1"].shape, *([1] * (len(shape) - 2)))
        want = torch.kron(w1.contiguous(), t(".lokr_w2").contiguous())
    elif method == "oft" and ".rescale" not in said:
        alpha = float(said[".alpha"]) if ".alpha" in said else 0.0
        blocks = t(".oft_blocks").float() # it inverts in F32
        size = blocks.shape[-1]
        r = diag_oft.get_r(blocks, torch.eye(size), torch.tensor(alpha * shape[0])).double()
        r = strength * r + (1 - strength) * torch.eye(size)
        flat = torch.from_numpy(w).reshape(-1, size, w[0].size)
        want = torch.einsum("knm,kni->kmi", r, flat).reshape(shape).numpy()
        return ["oft"] if np.abs(have - want).max() > 1e-4 * np.abs(want).max() else []
    else:
        return None
    want = w + strength * want.numpy().reshape(shape)
    return [method] if np.abs(have - want).max() > 1e-9 * max(1, np.abs(want).max()) else []


# ── Runs ──

def off(found, want, greatest, dtype):
    step = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(np.abs(want), 1e-300))) - MANTISSA[dtype],
                             LEAST[dtype])
    return np.abs(found - want) > (0 if dtype == "F32" else step / 2) + 4e-6 * greatest


def play(seed, oracles):
    draw, wrong, asked = Draw(seed), [], 0
    model, want, sizes = {}, {}, {}
    for i in range(EACH):
        out, inn = draw.choice([4, 6, 8, 12, 24]), draw.choice([3, 4, 6, 16, 30])
        shape = (out, inn, *draw.choice([(), (), (), (1, 1), (3, 3), (2, 1)]))
        name = "model.diffusion_model.stage.%d.w_%d" % (i, i)
        dtype = draw.choice(["F32", "F16", "BF16"])
        model[name + ".weight"], values = rounded(draw.array(*shape, by=0.5), dtype)
        want[name] = values
        sizes[name] = np.abs(values).max()
    model["other"] = rounded(draw.array(5), "F32")[0]
    chain = draw.choice([1, 1, 2])
    with tempfile.TemporaryDirectory() as folder:
        words, told = [], {}
        for k in range(chain):
            strength = draw.choice([1.0, 1.0, 0.5, -0.75, 1.3])
            tensors = {}
            for name in want:
                prefix = "lora_unet_" + name.split(".", 2)[2].replace(".", "_")
                m, method, change = random_module(draw, prefix, want[name].shape, strength)
                if oracles:
                    bad = check_oracles(m, method, want[name].shape, strength, change, want[name])
                    asked += bad is not None
                    wrong += ["the formula of %s is not lycoris-lora's" % one for one in bad or []]
                idle = m.alpha == 0 and method not in WHOLE and method != "full" \
                    and not method.endswith("dora")
                if not idle:
                    want[name] = change(want[name])
                sizes[name] = max(sizes[name], np.abs(want[name]).max())
                told[name] = told.get(name, "") + " " + method
                tensors.update(m.tensors)
            cut = draw.random() < 0.3
            os.mkdir(os.path.join(folder, "a%d" % k))
            path = os.path.join("a%d" % k, "model.safetensors" + (".index.json" if cut else ""))
            names = list(tensors)
            draw.shuffle(names)
            write_plain(os.path.join(folder, path), {name: tensors[name] for name in names}, cut)
            words.append("%s:%r" % (path, strength))
        cut = draw.random() < 0.3
        write_plain(os.path.join(folder, "model.safetensors" + (".index.json" if cut else "")), model,
                    cut)
        done = subprocess.run(
            [*COMMAND, "lora", "merge", "model.safetensors" + (".index.json" if cut else ""), *words,
             "-o", "out.safetensors", "--no-sync", "--threads", draw.choice("123")],
            capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            return ["exit %d: %s" % (done.returncode, done.stderr.strip())], asked, 0
        found = read_plain(os.path.join(folder, "out.safetensors"))[0]
    if found["other"] != model["other"]:
        wrong.append("a tensor that no adapter has changed")
    for name, values in want.items():
        dtype, shape, data = found[name + ".weight"]
        have = values_of(dtype, data).reshape(shape)
        bad = off(have, values, sizes[name], dtype)
        if bad.any():
            wrong.append("%s, %s, %s: %d of %d values, by %g of %g" % (
                told[name], dtype, shape, bad.sum(), bad.size, np.abs(have - values).max(),
                sizes[name]))
    return wrong, asked, EACH * chain


def main():
    words = [word for word in sys.argv[1:] if word != "--oracles"]
    oracles = len(words) < len(sys.argv) - 1
    cases = int(words[0]) if words else 400
    seed = int(words[1]) if len(words) > 1 else 1
    passed, asked, problems = 0, 0, []
    while passed < cases and len(problems) < 20:
        wrong, some, played = play(seed, oracles)
        problems += ["seed %d: %s" % (seed, one) for one in wrong]
        passed, asked, seed = passed + played - len(wrong), asked + some, seed + 1
        if played == 0:
            passed += EACH
    if oracles:
        print("%d formulas compared with lycoris-lora" % asked)
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
