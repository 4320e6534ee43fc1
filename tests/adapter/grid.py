#!/usr/bin/env python3
"""lora merge in every cell of a grid, each cell a layer of its own: method, dtype of the model, of the
factors, kind of layer, alpha (none, 0, a number, the same in BF16), model and adapter in one file or
in shards; beside the formulas of docs/adapters.md in F64 (differential.py, whose --oracles compares
them with lycoris-lora's).

    grid.py [WORD...]         only cells that have these words: grid.py lokr conv3 BF16
"""
import itertools
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import differential as d  # noqa: E402
from run import COMMAND, np, read_plain, values_of, write_plain  # noqa: E402

LAYERS = {"linear": (24, 16), "conv1": (24, 16, 1, 1), "conv3": (24, 16, 3, 3)}
METHODS = {  # what is drawn, alphas that there can be, only of convolutions
    "lora kohya": ("lora", True, False), "lora peft": ("lora", True, False),
    "lora diffusers": ("lora", False, False), "lora tucker": ("lora", True, True),
    "loha": ("loha", True, False), "loha tucker": ("loha", True, True),
    "lokr 00": ("lokr", True, False), "lokr 01": ("lokr", True, False),
    "lokr 10": ("lokr", True, False), "lokr 11": ("lokr", True, False),
    "lokr t": ("lokr", True, True), "glora": ("glora", True, False),
    "full": ("full", False, False), "oft": ("oft", True, False), "boft": ("boft", False, False),
    "ia3 rows": ("ia3", False, False), "ia3 columns": ("ia3", False, False),
    "dora rows lora": ("lora", True, False), "dora columns lora": ("lora", True, False),
    "dora rows loha": ("loha", True, False), "dora columns loha": ("loha", True, False),
}
ALPHAS = ("none", "0", "some", "BF16")
DTYPES = ("F32", "F16", "BF16")
STRENGTH = 0.75


class Forced(d.Draw):
    """Draws what the cell says where that is asked."""
    words, chance = (), None

    def choice(self, options):
        if None in options: # the cap of OFT
            return {"none": None, "0": 0.0}.get(self.words[-1], 0.01)
        return next((word for word in self.words if word in options), None) or super().choice(options)

    def random(self):
        return super().random() if self.chance is None else self.chance


class Cell(d.Module):
    def put(self, end, values, dtype=None):
        bf16 = end == ".alpha" and "BF16" in self.draw.words[-1:]
        return super().put(end, values, "BF16" if bf16 else dtype)


def cells():
    for method, dtype, factor, layer, alpha in itertools.product(METHODS, DTYPES, DTYPES, LAYERS,
                                                                 ALPHAS):
        _, alphas, convolution = METHODS[method]
        if (alphas or alpha == "none") and not (convolution and layer == "linear"):
            yield method, dtype, factor, layer, alpha


def made(draw, cell, name):
    method, _, factor, layer, alpha = cell
    shape, (drawn, _, _) = LAYERS[layer], METHODS[method]
    way = method.split()[-1] if drawn in ("lora", "lokr") and "dora" not in method else "kohya"
    draw.words, draw.chance = (way, alpha), 0.0 if method.endswith(("tucker", "columns")) else 0.9
    m = Cell(draw, name)
    m.factor = factor
    if drawn in d.WHOLE:
        return m, d.WHOLE[drawn](m, shape, draw, STRENGTH)
    delta = d.SUMS[drawn](m, shape, draw)
    if "dora" in method:
        draw.chance = 0.0 if "columns" in method else 0.9
        by = d.dora(m, shape, draw, delta)
        return m, lambda w: by(w, STRENGTH)
    if callable(delta):
        return m, lambda w: w + STRENGTH * delta(w)
    return m, lambda w: w + STRENGTH * delta


def play(chosen, cut, folder):
    draw, problems, model, adapter, want = Forced(7), [], {}, {}, {}
    for i, cell in enumerate(chosen):
        name = "model.diffusion_model.stage.%d.w" % i
        draw.words, draw.chance = (), None
        model[name + ".weight"], w = d.rounded(draw.array(*LAYERS[cell[3]], by=0.5), cell[1])
        m, change = made(draw, cell, "lora_unet_stage_%d_w" % i)
        adapter.update(m.tensors)
        want[name] = change(w), max(np.abs(w).max(), np.abs(change(w)).max())
    end = ".safetensors.index.json" if cut else ".safetensors"
    os.mkdir(os.path.join(folder, "adapter"))
    write_plain(os.path.join(folder, "model" + end), model, cut)
    write_plain(os.path.join(folder, "adapter", "model" + end), adapter, cut)
    done = subprocess.run([*COMMAND, "lora", "merge", "model" + end,
                           "adapter/model%s:%r" % (end, STRENGTH), "-o", "out.safetensors",
                           "--no-sync"], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        return ["exit %d: %s" % (done.returncode, done.stderr.strip())]
    found = read_plain(os.path.join(folder, "out.safetensors"))[0]
    for cell, (name, (values, greatest)) in zip(chosen, want.items()):
        dtype, shape, data = found[name + ".weight"]
        have = values_of(dtype, data).reshape(shape)
        bad = d.off(have, values, greatest, cell[1])
        if dtype != cell[1] or bad.any():
            problems.append("%s%s: %d of %d values, by %g of %g" % (
                " ".join(cell), " in shards" if cut else "", bad.sum(), bad.size,
                np.abs(have - values).max(), greatest))
    return problems


def main():
    chosen = [c for c in cells() if all(word in " ".join(c).split() for word in sys.argv[1:])]
    problems = []
    for cut in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            problems += play(chosen, cut, folder)
    print("\n".join(problems[:40]))
    print("%d cells: %d methods and forms, %d dtypes of the model and of the factors, %d kinds of "
          "layer, %d alphas, one file and shards" % (2 * len(chosen), len(METHODS), len(DTYPES),
                                                     len(LAYERS), len(ALPHAS)))
    print("%d passed, %d failed" % (2 * len(chosen) - len(problems), len(problems)))
    return 1 if problems or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
