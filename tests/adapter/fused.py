#!/usr/bin/env python3
"""Adapters of every method on fused layers, by formulas in F64: lora merge where the model has
them whole and the adapter in pieces, and what lora convert makes of those pieces, and of whole
layers that it divides.

    fused.py [CASES]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import COMMAND, np, read_plain, values_of, write_plain  # noqa: E402

WIDTH, MLP = 12, 24
METHODS = ("lora", "loha", "lokr", "full", "glora", "oft", "ia3", "dora", "tucker")


def layers():
    """FLUX.1's linear layers: diffusers' name, the original one, first row and rows of it, columns."""
    found = []
    for i in range(2):
        new, old = "transformer_blocks.%d." % i, "double_blocks.%d." % i
        for k, (own, text) in enumerate((("to_q", "add_q_proj"), ("to_k", "add_k_proj"),
                                         ("to_v", "add_v_proj"))):
            found += [(new + "attn." + own, old + "img_attn.qkv", k * WIDTH, WIDTH, WIDTH),
                      (new + "attn." + text, old + "txt_attn.qkv", k * WIDTH, WIDTH, WIDTH)]
        found += [(new + "attn.to_out.0", old + "img_attn.proj", 0, WIDTH, WIDTH),
                  (new + "ff.net.0.proj", old + "img_mlp.0", 0, MLP, WIDTH)]
        new, old = "single_" + new, "single_blocks.%d." % i
        found += [(new + "attn." + own, old + "linear1", k * WIDTH, WIDTH, WIDTH)
                  for k, own in enumerate(("to_q", "to_k", "to_v"))]
        found += [(new + "proj_mlp", old + "linear1", 3 * WIDTH, MLP, WIDTH),
                  (new + "proj_out", old + "linear2", 0, WIDTH, WIDTH + MLP)]
    return found


class Module:
    """Its tensors, and what it makes of a weight [rows, cols] at a strength."""

    def __init__(self, rng, name, rows, cols, method, common=None):
        self.tensors, self.name, rank = {}, name, int(rng.integers(1, 4))
        self.scale, self.method = 1.0, method
        kind = str(rng.choice(["none", "0", "BF16", "1"])) if common is None else "none"
        if common is not None: # what all pieces have the same of
            rng, rank = np.random.default_rng(common), 2

        def draw(end, *shape, of=rng):
            return self.put(end, of.standard_normal(shape) * 0.3)
        own = np.random.default_rng(int.from_bytes(name.encode()[-20:], "big") % 2 ** 32)
        if method in ("lora", "dora"):
            change = draw(".lora_up.weight", rows, rank) @ draw(".lora_down.weight", rank, cols)
        elif method == "tucker":
            down, core = draw(".lora_down.weight", rank, cols), draw(".lora_mid.weight", 3, rank, 1, 1)
            change = draw(".lora_up.weight", rows, 3, of=own) @ core[:, :, 0, 0] @ down
        elif method == "loha":
            change = ((draw(".hada_w1_a", rows, rank) @ draw(".hada_w1_b", rank, cols))
                      * (draw(".hada_w2_a", rows, rank + 1) @ draw(".hada_w2_b", rank + 1, cols)))
        elif method == "lokr": # w2 has 6 rows
            w2 = draw(".lokr_w2_a", 6, rank) @ draw(".lokr_w2_b", rank, cols // 3)
            change = np.kron(draw(".lokr_w1", rows // 6, 3, of=own), w2)
        elif method == "full":
            change = draw(".diff", rows, cols)
        elif method == "glora":
            one, two = draw(".a1.weight", cols, rank), draw(".a2.weight", rank, cols)
            change = draw(".b1.weight", rows, rank) @ draw(".b2.weight", rank, cols)
            self.by_weight = one @ two
        elif method == "oft":
            blocks = draw(".oft_blocks", rows // 4, 4, 4)
            q, unit = blocks - blocks.transpose(0, 2, 1), np.eye(4)
            self.turns = (unit + q) @ np.linalg.inv(unit - q)
        else:
            self.factors = draw(".weight", rows, 1)
            self.put(".on_input", np.zeros(()))
        if method in ("oft", "ia3"):
            return
        self.change = change
        if method == "full":
            return
        if kind != "none":
            alpha = 0.0 if kind == "0" else 1.5
            self.put(".alpha", np.full((1,) if kind == "1" else (), alpha),
                     "BF16" if kind == "BF16" else "F32")
            self.scale = alpha / rank
        if method == "dora":
            self.magnitude = self.put(".dora_scale", rng.random((rows, 1)) + 0.5)

    def put(self, end, values, dtype="F32"):
        data = np.asarray(values, "<f4")
        raw = data.tobytes() if dtype == "F32" else data.tobytes()[2:]
        self.tensors[self.name + end] = (dtype, list(data.shape), raw)
        return data.astype("f8")

    def __call__(self, w, m):
        if self.method == "oft":
            r = m * self.turns + (1 - m) * np.eye(4)
            return np.einsum("knm,kni->kmi", r, w.reshape(-1, 4, w.shape[1])).reshape(w.shape)
        if self.method == "ia3":
            return w * (1 + m * self.factors)
        if self.scale == 0 and self.method != "dora":
            return w
        change = self.change + (w @ self.by_weight if self.method == "glora" else 0)
        if self.method != "dora":
            return w + m * self.scale * change
        v = w + self.scale * change
        return w + m * (self.magnitude * v / np.sqrt((v ** 2).sum(1, keepdims=True)) - w)


def run(folder, *words):
    return subprocess.run([*COMMAND, "lora", *words, "--no-sync", "--force"], capture_output=True,
                          text=True, check=False, cwd=folder)


def load(folder, name):
    return {key: np.reshape(values_of(dtype, data), shape) for key, (dtype, shape, data)
            in read_plain(os.path.join(folder, name))[0].items()}


def off(folder, model, adapter, m, want):
    """What is wrong with the merge, or None."""
    done = run(folder, "merge", model, "%s:%r" % (adapter, m), "-o", "out.safetensors")
    if done.returncode:
        return done.stderr.strip()
    found = load(folder, "out.safetensors")
    worst = max(np.abs(found[name] - values).max() for name, values in want.items())
    return "off by %g" % worst if worst > 2e-5 else None


# Whether convert can follow, with pieces of their own and with what they can have in common so.
CAN = {"lora": "always", "loha": "always", "full": "always", "oft": "always", "ia3": "always",
       "lokr": "common", "tucker": "common", "dora": "dora", "glora": "never"}


def pieces(seed):
    rng = np.random.default_rng(seed)
    method, m = METHODS[seed % len(METHODS)], (1.0, 0.0, -0.5)[seed // len(METHODS) % 3]
    common = seed if CAN[method] == "common" and seed % 2 else None
    to = ("kohya", "comfy")[seed // 3 % 2]
    want, tensors, idle = {}, {}, set()
    prefix = ("transformer.", "lora_transformer_", "lycoris_")[seed // 2 % 3]
    for new, old, first, rows, cols in layers():
        want[old + ".weight"] = want.get(old + ".weight", np.zeros((0, cols)))
        want[old + ".weight"] = np.vstack([want[old + ".weight"], np.float32(
            rng.standard_normal((rows, cols)))]).astype("f8")
    model = {name: ("F32", list(w.shape), w.astype("<f4").tobytes()) for name, w in want.items()}
    for new, old, first, rows, cols in layers():
        name = prefix + (new if prefix.endswith(".") else new.replace(".", "_"))
        one = Module(rng, name, rows, cols, method, common)
        w = want[old + ".weight"]
        w[first:first + rows] = one(w[first:first + rows].copy(), m)
        tensors.update(one.tensors)
        idle.add(one.scale == 0)
    with tempfile.TemporaryDirectory() as folder:
        write_plain(os.path.join(folder, "model.safetensors"), model)
        write_plain(os.path.join(folder, "in.safetensors"), tensors)
        bad = off(folder, "model.safetensors", "in.safetensors", m, want)
        if bad:
            return "%s %s: merged: %s" % (method, prefix, bad)
        done = run(folder, "convert", "in.safetensors", "-o", "whole.safetensors", "--to",
                   to, "--architecture", "flux.1")
        can = CAN[method] == "always" or (CAN[method] == "common" and common is not None) \
            or CAN[method] == "dora"
        can = can and (method, to) != ("tucker", "comfy") # which has no name for the core
        if not can:
            fine = done.returncode == 1 and "expected" in done.stderr
            return None if fine else "%s: not refused: %s" % (method, done.stderr)
        bad = done.stderr if done.returncode else off(folder, "model.safetensors",
                                                      "whole.safetensors", m, want)
        return "%s %s: converted: %s" % (method, prefix, bad) if bad else None


def divided(method):
    """q, k, v of OpenCLIP in one."""
    rng = np.random.default_rng(len(method))
    one = Module(rng, "lora_te2_transformer_resblocks_0_attn_in_proj_weight", 3 * WIDTH, WIDTH,
                 method)
    w = rng.standard_normal((3 * WIDTH, WIDTH)).astype("f4").astype("f8")
    base = "text_encoder_2.text_model.encoder.layers.0.self_attn.%s_proj.weight"

    def thirds(matrix):
        return {base % "qkv"[k]: matrix[k * WIDTH:k * WIDTH + WIDTH] for k in range(3)}
    with tempfile.TemporaryDirectory() as folder:
        write_plain(os.path.join(folder, "in.safetensors"), one.tensors)
        write_plain(os.path.join(folder, "model.safetensors"), {
            name: ("F32", list(part.shape), part.astype("<f4").tobytes())
            for name, part in thirds(w).items()})
        done = run(folder, "convert", "in.safetensors", "-o", "out.safetensors", "--to", "kohya",
                   "--architecture", "sdxl")
        if CAN[method] == "never":
            return None if done.returncode == 1 else "divided: %s: not refused" % method
        os.rename(os.path.join(folder, "out.safetensors"), os.path.join(folder, "b.safetensors")) \
            if not done.returncode else None
        bad = done.stderr if done.returncode else off(folder, "model.safetensors",
                                                      "b.safetensors", 0.7, thirds(one(w, 0.7)))
        return "divided: %s: %s" % (method, bad) if bad else None


# A model's tensor, whether it is the transpose of the layer, and names of that.
PROJECTIONS = (
    ("conditioner.embedders.1.model.text_projection", True,
     ("lora_te2_text_projection", "text_encoder_2.text_projection",
      "text_encoders.clip_g.transformer.text_projection")),
    ("cond_stage_model.model.text_projection", True,
     ("lora_te_text_projection", "text_encoder.text_projection")),
    ("text_encoders.clip_g.transformer.text_projection.weight", False,
     ("lora_te2_text_projection", "text_encoders.clip_g.transformer.text_projection")),
)


def projections(method):
    """OpenCLIP's text_projection, of which single files have the transpose."""
    for tensor, transposed, names in PROJECTIONS:
        for name in names:
            for rows, cols in ((WIDTH, WIDTH), (MLP, WIDTH), (WIDTH, MLP)):
                bad = projection(method, tensor, transposed, name, rows, cols)
                if bad:
                    return "%s: %s on %s, %d x %d: %s" % (method, name, tensor, rows, cols, bad)
    return None


def projection(method, tensor, transposed, name, rows, cols):
    rng = np.random.default_rng(rows + 2 * cols)
    one = Module(rng, name, rows, cols, method)
    w = rng.standard_normal((rows, cols)).astype("f4").astype("f8")

    def stored(matrix):
        return np.ascontiguousarray(matrix.T if transposed else matrix)
    with tempfile.TemporaryDirectory() as folder:
        write_plain(os.path.join(folder, "in.safetensors"), one.tensors)
        write_plain(os.path.join(folder, "model.safetensors"), {
            tensor: ("F32", list(stored(w).shape), stored(w).astype("<f4").tobytes())})
        for m in (1.0, -0.5):
            bad = off(folder, "model.safetensors", "in.safetensors", m, {tensor: stored(one(w, m))})
            if bad:
                return "merged: %s" % bad
        if method == "lora" or one.scale == 0: # nothing to simplify
            return None
        done = run(folder, "simplify", "in.safetensors", "--model", "model.safetensors", "-o",
                   "plain.safetensors", "--rank", str(MLP))
        bad = done.stderr if done.returncode else off(folder, "model.safetensors",
                                                      "plain.safetensors", 1.0,
                                                      {tensor: stored(one(w, 1.0))})
        return "simplified: %s" % bad if bad else None


def extracted():
    """OpenCLIP's projection and positions, whose names have no .weight: extracted, merged again."""
    rng = np.random.default_rng(7)
    for prefix in ("conditioner.embedders.1.model.", "cond_stage_model.model."):
        for to in ("kohya", "comfy"):
            for rows, cols in ((WIDTH, WIDTH), (WIDTH, MLP)):
                base = {prefix + "text_projection": (rows, cols),
                        prefix + "positional_embedding": (7, WIDTH),
                        prefix + "transformer.resblocks.0.attn.in_proj_weight": (3 * WIDTH, WIDTH)}
                base = {name: rng.standard_normal(shape).astype("<f4")
                        for name, shape in base.items()}
                tuned = {name: (values + rng.standard_normal((len(values), 2))
                                @ rng.standard_normal((2, values.shape[1]))).astype("<f4")
                         for name, values in base.items()}
                with tempfile.TemporaryDirectory() as folder:
                    for name, model in (("base", base), ("tuned", tuned)):
                        write_plain(os.path.join(folder, name + ".safetensors"), {
                            one: ("F32", list(values.shape), values.tobytes())
                            for one, values in model.items()})
                    done = run(folder, "extract", "tuned.safetensors", "base.safetensors", "-o",
                               "got.safetensors", "--rank", "4", "--to", to)
                    bad = done.stderr or off(folder, "base.safetensors", "got.safetensors", 1.0,
                                             {one: v.astype("f8") for one, v in tuned.items()})
                    if bad:
                        return "extracted: %s for %s: %s" % (prefix, to, bad)
    return None


def alone():
    """OpenCLIP in a file of its own: nothing tells whether its projection or a layer is meant."""
    rng = np.random.default_rng(8)
    one = Module(rng, "text_projection", WIDTH, WIDTH, "lora")
    with tempfile.TemporaryDirectory() as folder:
        write_plain(os.path.join(folder, "in.safetensors"), one.tensors)
        write_plain(os.path.join(folder, "model.safetensors"), {
            name: ("F32", list(shape), bytes(4 * int(np.prod(shape)))) for name, shape in (
                ("text_projection", (WIDTH, WIDTH)), ("positional_embedding", (7, WIDTH)),
                ("transformer.resblocks.0.attn.in_proj_weight", (3 * WIDTH, WIDTH)))})
        done = run(folder, "merge", "model.safetensors", "in.safetensors", "-o", "out.safetensors")
        return None if done.returncode == 1 else "alone: merged"


def on_inputs():
    """Any on_input but 0 means columns, to merge and to convert, as in Python."""
    for value in (0, 0.5, 1, -1):
        tensors = {}
        for own in ("to_q", "to_k", "to_v"):
            name = "lora_transformer_transformer_blocks_0_attn_" + own
            tensors[name + ".weight"] = ("F32", [4], np.arange(4, dtype="<f4").tobytes())
            tensors[name + ".on_input"] = ("F32", [], np.float32(value).tobytes())
        with tempfile.TemporaryDirectory() as folder:
            write_plain(os.path.join(folder, "in.safetensors"), tensors)
            done = run(folder, "convert", "in.safetensors", "-o", "out.safetensors", "--to", "kohya",
                       "--architecture", "flux.1")
        if done.returncode != (1 if value else 0):
            return "on_input %g: exit %d: %s" % (value, done.returncode, done.stderr)
    return None


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 108
    done = [pieces(seed) for seed in range(cases)] + [divided(method) for method in METHODS]
    done += [projections(method) for method in METHODS]
    done += [on_inputs(), extracted(), alone()]
    problems = [bad for bad in done if bad]
    print("\n".join(problems))
    print("%d passed, %d failed" % (len(done) - len(problems), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
