"""Makes the cases of tests/adapter with lycoris-lora and PEFT, or by the formulas of docs/adapters.md
where a package is known to be wrong or cannot be installed.

    adapter_oracles.py FOLDER [NAME...]
    adapter_oracles.py --disagreements docs/disagreements.md      its figures, and whether it has them

in an environment with torch (CPU), lycoris-lora 4.1.3, peft 0.21.2 and transformers. A case is
NAME.safetensors: tensors "model/X", "adapter/X" and "want/X", of which the last are what X of the
model is after the merge, in F64, before it is rounded to the model's dtype. Metadata: "strength",
"arguments" (of the command), "config" (adapter_config.json), "source" (where the values are from).
"""
import json
import os
import re
import sys

sys.modules["torchvision"] = None # transformers asks for it; another build than torch's fails there

import torch
from safetensors import safe_open
from safetensors.torch import save_file

CASES = []


def case(function):
    CASES.append(function)
    return function


def noise(*shape, seed=1, by=0.1):
    generator = torch.Generator().manual_seed(seed * 1000 + len(shape) + sum(shape))
    return torch.randn(*shape, generator=generator) * by


LINEAR = "model.diffusion_model.middle_block.1.transformer_blocks.0.attn1.to_q.weight"
KOHYA = "lora_unet_middle_block_1_transformer_blocks_0_attn1_to_q"
CONV = "model.diffusion_model.middle_block.0.in_layers.2.weight"
KOHYA_CONV = "lora_unet_middle_block_0_in_layers_2"


def made(model, adapter, want, strength=1.0, source="formula", **more):
    return ({**{"model/" + k: v for k, v in model.items()},
             **{"adapter/" + k: v for k, v in adapter.items()},
             **{"want/" + k: v.double() for k, v in want.items()}},
            {"strength": repr(strength), "source": source, **more})


def linear(adapter, delta, strength=1.0, w=None, source="lycoris-lora", name=LINEAR, **more):
    w = noise(24, 36, seed=9) if w is None else w
    other = {"model.diffusion_model.out.0.weight": noise(8)}
    return made({name: w, **other}, adapter, {name: w.double() + strength * delta.double()},
                strength, source, **more)


def named(prefix, **tensors):
    return {f"{prefix}.{k.replace('__', '.')}": v for k, v in tensors.items()}


# ── Sums ──

def lora_of(out, inn, rank, seed=1):
    return noise(out, rank, seed=seed), noise(rank, inn, seed=seed + 1)


@case
def lora_no_alpha():
    up, down = lora_of(24, 36, 4)
    return linear(named(KOHYA, lora_up__weight=up, lora_down__weight=down),
                  up.double() @ down.double(), 0.75)


@case
def lora_alpha():
    up, down = lora_of(24, 36, 4)
    return linear(named(KOHYA, lora_up__weight=up, lora_down__weight=down, alpha=torch.tensor(2.0)),
                  0.5 * up.double() @ down.double(), -0.5)


@case
def lora_alpha_bf16():
    up, down = (x.bfloat16() for x in lora_of(24, 36, 8))
    return linear(named(KOHYA, lora_up__weight=up, lora_down__weight=down,
                        alpha=torch.tensor([3.0]).bfloat16()),
                  0.375 * up.double() @ down.double())


@case
def lora_alpha_zero():
    up, down = lora_of(24, 36, 4)
    return linear(named(KOHYA, lora_up__weight=up, lora_down__weight=down, alpha=torch.tensor(0.0)),
                  torch.zeros(24, 36), source="kohya: an alpha of 0 has no effect")


def of_dtype(dtype):
    up, down = (x.to(torch.float16) for x in lora_of(24, 36, 4))
    return linear(named(KOHYA, lora_up__weight=up, lora_down__weight=down, alpha=torch.tensor(4.0)),
                  up.double() @ down.double(), 1.5, w=noise(24, 36, seed=9).to(dtype))


@case
def lora_into_bf16():
    return of_dtype(torch.bfloat16)


@case
def lora_into_f16():
    return of_dtype(torch.float16)


@case
def lora_into_f8():
    return of_dtype(torch.float8_e4m3fn)


def conv(adapter, delta, strength=1.0, w=None, **more):
    w = noise(24, 16, 3, 3, seed=9) if w is None else w
    return made({CONV: w}, adapter, {CONV: w.double() + strength * delta.double().reshape(w.shape)},
                strength, "lycoris-lora", **more)


@case
def locon():
    from lycoris.functional import locon as f
    down, up = noise(4, 16, 3, 3), noise(24, 4, 1, 1)
    return conv(named(KOHYA_CONV, lora_up__weight=up, lora_down__weight=down,
                      alpha=torch.tensor(1.0)),
                f.diff_weight(down.double(), up.double(), None, gamma=0.25), 0.5)


@case
def locon_1x1_into_linear():
    up, down = lora_of(24, 36, 4)
    return linear(named(KOHYA, lora_up__weight=up[..., None, None],
                        lora_down__weight=down[..., None, None]), up.double() @ down.double())


@case
def locon_tucker():
    from lycoris.functional.general import rebuild_tucker
    down, up, mid = noise(4, 16, 1, 1), noise(24, 5, 1, 1), noise(5, 4, 3, 3)
    delta = rebuild_tucker(mid.double(), up.double()[:, :, 0, 0].T, down.double()[:, :, 0, 0])
    return conv(named(KOHYA_CONV, lora_up__weight=up, lora_down__weight=down, lora_mid__weight=mid,
                      alpha=torch.tensor(2.0)), 0.5 * delta, 0.7)


@case
def loha():
    from lycoris.functional import loha as f
    a, b, c, d = noise(24, 4), noise(4, 36, seed=2), noise(24, 4, seed=3), noise(4, 36, seed=4)
    delta = f.diff_weight(b.double(), a.double(), d.double(), c.double(), None, None,
                          gamma=torch.tensor(0.5).double())
    return linear(named(KOHYA, hada_w1_a=a, hada_w1_b=b, hada_w2_a=c, hada_w2_b=d,
                        alpha=torch.tensor(2.0)), delta, 2.0)


@case
def loha_tucker():
    from lycoris.functional import loha as f
    a, b, c, d = noise(4, 24), noise(4, 16, seed=2), noise(4, 24, seed=3), noise(4, 16, seed=4)
    t, u = noise(4, 4, 3, 3), noise(4, 4, 3, 3, seed=5)
    delta = f.diff_weight(b.double(), a.double(), d.double(), c.double(), t.double(), u.double(),
                          gamma=torch.tensor(0.25).double())
    return conv(named(KOHYA_CONV, hada_w1_a=a, hada_w1_b=b, hada_w2_a=c, hada_w2_b=d, hada_t1=t,
                      hada_t2=u, alpha=torch.tensor(1.0)), delta)


def kron(w1, w2):
    while w1.dim() < w2.dim():
        w1 = w1.unsqueeze(-1)
    return torch.kron(w1.double().contiguous(), w2.double().contiguous())


@case
def lokr_whole():
    w1, w2 = noise(4, 6), noise(6, 6, seed=2)
    return linear(named(KOHYA, lokr_w1=w1, lokr_w2=w2, alpha=torch.tensor(7.0)), kron(w1, w2))


@case
def lokr_decomposed():
    w1, a, b = noise(4, 6), noise(6, 3, seed=2), noise(3, 6, seed=3)
    return linear(named(KOHYA, lokr_w1=w1, lokr_w2_a=a, lokr_w2_b=b, alpha=torch.tensor(1.5)),
                  0.5 * kron(w1, a.double() @ b.double()))


@case
def lokr_both_decomposed():
    a, b, c, d = noise(4, 2), noise(2, 6, seed=2), noise(6, 3, seed=3), noise(3, 6, seed=4)
    return linear(named(KOHYA, lokr_w1_a=a, lokr_w1_b=b, lokr_w2_a=c, lokr_w2_b=d,
                        alpha=torch.tensor(1.0)),
                  0.5 * kron(a.double() @ b.double(), c.double() @ d.double()))


@case
def lokr_conv():
    w1, a, b = noise(4, 4), noise(6, 3, seed=2), noise(3, 4 * 9, seed=3)
    w2 = (a.double() @ b.double()).reshape(6, 4, 3, 3)
    return conv(named(KOHYA_CONV, lokr_w1=w1, lokr_w2_a=a, lokr_w2_b=b, alpha=torch.tensor(3.0)),
                kron(w1, w2))


@case
def lokr_tucker():
    from lycoris.functional.general import rebuild_tucker
    w1, t, a, b = noise(4, 4), noise(3, 3, 3, 3), noise(3, 6, seed=2), noise(3, 4, seed=3)
    w2 = rebuild_tucker(t.double(), a.double(), b.double())
    return conv(named(KOHYA_CONV, lokr_w1=w1, lokr_t2=t, lokr_w2_a=a, lokr_w2_b=b,
                      alpha=torch.tensor(1.5)), 0.5 * kron(w1, w2), 0.9)


@case
def glora():
    w = noise(24, 36, seed=9)
    a1, a2, b1, b2 = noise(36, 4), noise(4, 36, seed=2), noise(24, 4, seed=3), noise(4, 36, seed=4)
    delta = 0.5 * (b1.double() @ b2.double() + w.double() @ a1.double() @ a2.double())
    return linear(named(KOHYA, a1__weight=a1, a2__weight=a2, b1__weight=b1, b2__weight=b2,
                        alpha=torch.tensor(2.0)), delta, 0.6, w)


@case
def glora_old():
    w = noise(24, 36, seed=9)
    a1, a2, b1, b2 = noise(4, 36), noise(36, 4, seed=2), noise(4, 36, seed=3), noise(24, 4, seed=4)
    delta = b2.double() @ b1.double() + w.double() @ a2.double() @ a1.double()
    return linear(named(KOHYA, a1__weight=a1, a2__weight=a2, b1__weight=b1, b2__weight=b2), delta,
                  1.0, w, "the rule of ComfyUI")


@case
def glora_conv():
    w = noise(24, 16, 3, 3, seed=9)
    a1, a2 = noise(16, 4, 1, 1), noise(4, 16, 1, 1, seed=2)
    b1, b2 = noise(24, 4, 1, 1, seed=3), noise(4, 16, 3, 3, seed=4)
    part = torch.einsum("oi...,ij->oj...", w.double(), a1.double()[:, :, 0, 0])
    part = torch.einsum("oi...,ij->oj...", part, a2.double()[:, :, 0, 0])
    delta = part + (b1.double()[:, :, 0, 0] @ b2.double().flatten(1)).reshape(w.shape)
    return conv(named(KOHYA_CONV, a1__weight=a1, a2__weight=a2, b1__weight=b1, b2__weight=b2),
                delta, 0.8, w)


# ── Factors, differences, norms ──

def ia3(on_input):
    w, f = noise(24, 36, seed=9), noise(36 if on_input else 24)
    shape = f[None, :] if on_input else f[:, None]
    return linear(named(KOHYA, weight=f, on_input=torch.tensor(on_input)),
                  w.double() * shape.double(), 0.5, w)


@case
def ia3_rows():
    return ia3(False)


@case
def ia3_columns():
    return ia3(True)


@case
def full_and_bias():
    w, bias = noise(24, 36, seed=9), noise(24, seed=8)
    diff, diff_b = noise(24, 36, seed=7), noise(24, seed=6)
    name = LINEAR.replace(".weight", ".bias")
    return made({LINEAR: w, name: bias}, named(KOHYA, diff=diff, diff_b=diff_b),
                {LINEAR: w.double() + 0.5 * diff.double(),
                 name: bias.double() + 0.5 * diff_b.double()}, 0.5)


@case
def norms():
    name = "model.diffusion_model.middle_block.0.in_layers.0"
    w, b, dw, db = (noise(16, seed=i) for i in range(4))
    return made({name + ".weight": w, name + ".bias": b},
                named("lora_unet_middle_block_0_in_layers_0", w_norm=dw, b_norm=db),
                {name + ".weight": w.double() + dw.double(),
                 name + ".bias": b.double() + db.double()})


# ── DoRA ──

def dora(scale, dims, strength, shape=(24, 36), **more):
    w = noise(*shape, seed=9)
    up, down = lora_of(shape[0], w[0].numel(), 4)
    v = w.double() + (0.5 * up.double() @ down.double()).reshape(shape)
    norm = torch.linalg.vector_norm(v, dim=dims, keepdim=True)
    new = v * scale.double().reshape(norm.shape) / norm
    key = KOHYA if len(shape) == 2 else KOHYA_CONV
    kernel = down if len(shape) == 2 else down.reshape(4, *shape[1:])
    name = LINEAR if len(shape) == 2 else CONV
    return made({name: w}, named(key, lora_up__weight=up, lora_down__weight=kernel,
                                 alpha=torch.tensor(2.0), dora_scale=scale),
                {name: w.double() + strength * (new - w.double())}, strength, **more)


@case
def dora_rows():
    return dora(noise(24, 1).abs() + 0.5, 1, 1.0, source="lycoris-lora (wd_on_out)")


@case
def dora_rows_strength():
    return dora(noise(24, 1).abs() + 0.5, 1, 0.5)


@case
def dora_columns():
    return dora(noise(1, 36).abs() + 0.5, 0, 1.0, source="lycoris-lora (old form)")


@case
def dora_columns_conv():
    return dora(noise(1, 16, 1, 1).abs() + 0.5, (0, 2, 3), 0.7, shape=(24, 16, 3, 3))


@case
def dora_comfy():
    scale, w = noise(24, 1).abs() + 0.5, noise(24, 36, seed=9)
    up, down = lora_of(24, 36, 4)
    norm = w.double().norm(dim=1, keepdim=True)
    new = (w.double() + up.double() @ down.double()) * scale.double() / norm
    return made({LINEAR: w}, named(KOHYA, lora_up__weight=up, lora_down__weight=down,
                                   dora_scale=scale),
                {LINEAR: new}, 1.0, "the formula of ComfyUI", arguments="--dora comfy")


# ── Rotations ──

def rotations(blocks, cap):
    q = blocks.double() - blocks.double().transpose(-1, -2)
    norm = q.norm() + 1e-8
    if 0 < cap < norm:
        q = q * cap / norm
    one = torch.eye(q.shape[-1]).double()
    return (one + q) @ torch.linalg.inv(one - q)


def oft(alpha, strength, rescale):
    from lycoris.functional import diag_oft as f
    w, blocks = noise(24, 36, seed=9), noise(4, 6, 6, by=0.5)
    r = rotations(blocks, alpha * 24)
    assert (r - f.get_r(blocks, torch.eye(6), alpha * 24)).abs().max() < 1e-5
    r = strength * r + (1 - strength) * torch.eye(6).double()
    want = torch.einsum("knm,kni->kmi", r, w.double().view(4, 6, 36)).reshape(24, 36)
    more = {}
    if rescale:
        more["rescale"] = noise(24, 1) + 1
        want = want * more["rescale"].double()
    return made({LINEAR: w}, named(KOHYA, oft_blocks=blocks, alpha=torch.tensor(alpha), **more),
                {LINEAR: want}, strength, "lycoris-lora")


@case
def oft_free():
    return oft(0.0, 1.0, False)


@case
def oft_capped():
    return oft(0.05, 0.5, True)


@case
def boft():
    from lycoris.functional import boft as f
    w, blocks = noise(24, 36, seed=9), noise(2, 6, 4, 4, by=0.3)
    rescale = noise(24, 1) + 1
    about = w + f.diff_weight(w, blocks, rescale, constraint=0)
    want, turns = w.double(), rotations(blocks, 0)
    for i in range(2): # the package inverts in F32: its steps, in F64
        k = 2 ** i * 2
        rows = want.unflatten(0, (-1, 2, k)).transpose(1, 2).flatten(0, 2).unflatten(0, (-1, 4))
        rows = torch.einsum("bij,bj...->bi...", turns[i], rows).flatten(0, 1)
        want = rows.unflatten(0, (-1, k, 2)).transpose(1, 2).flatten(0, 2)
    want = want * rescale.double()
    assert (want - about).abs().max() < 1e-5
    return made({LINEAR: w}, named(KOHYA, oft_blocks=blocks, alpha=torch.tensor(0.0),
                                   rescale=rescale), {LINEAR: want}, 1.0, "lycoris-lora")


# ── PEFT ──

def peft_case(config, modules, strength=1.0, fill=None, dora=False):
    """A small model of layers, adapted by PEFT with random values, and merged by it in F64."""
    import copy
    import tempfile
    import peft
    from safetensors.torch import load_file
    torch.manual_seed(5)

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, layer in modules.items():
                setattr(self, name, layer)

    small = Small()
    before = {k: v.clone() for k, v in small.state_dict().items()}
    wrapped = peft.get_peft_model(small, config)
    for name, value in wrapped.named_parameters():
        if any(x in name for x in ("lora_", "ia3_", "oft_")):
            value.data = torch.randn_like(value) * 0.2 + (1 if "magnitude" in name or "ia3" in name
                                                          else 0)
    with tempfile.TemporaryDirectory() as folder:
        wrapped.save_pretrained(folder)
        adapter = load_file(folder + "/adapter_model.safetensors")
        with open(folder + "/adapter_config.json", encoding="utf-8") as file:
            text = file.read()
    merged = copy.deepcopy(wrapped).double().merge_and_unload().state_dict()
    want = {k: v for k, v in merged.items() if not torch.equal(v, before[k].double())}
    keep = ("alpha_pattern", "fan_in_fan_out", "lora_alpha", "peft_type", "r", "rank_pattern",
            "use_rslora", "use_dora", "use_cayley_neumann", "num_cayley_neumann_terms")
    text = json.dumps({k: v for k, v in json.loads(text).items() if k in keep}, default=str)
    return made(before, adapter, want, strength, "peft", config=text)


@case
def peft_lora():
    import peft
    nn = torch.nn
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one", "two", "three"],
                                     rank_pattern={"two": 2}, alpha_pattern={"two": 5}),
                     {"one": nn.Linear(20, 16), "two": nn.Linear(16, 12), "three": nn.Conv2d(4, 6, 3)})


@case
def peft_rslora():
    import peft
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one"], use_rslora=True),
                     {"one": torch.nn.Linear(20, 16)})


@case
def peft_dora():
    import peft
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one", "two"], use_dora=True),
                     {"one": torch.nn.Linear(20, 20), "two": torch.nn.Conv2d(6, 6, 3)})


@case
def peft_bias():
    import peft
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one"], lora_bias=True),
                     {"one": torch.nn.Linear(20, 16)})


@case
def peft_embedding():
    import peft
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one"]),
                     {"one": torch.nn.Embedding(20, 16)})


@case
def peft_conv1d():
    import peft
    from transformers.pytorch_utils import Conv1D
    return peft_case(peft.LoraConfig(r=4, lora_alpha=6, target_modules=["one"], fan_in_fan_out=True),
                     {"one": Conv1D(16, 20)})


@case
def peft_ia3():
    import peft
    return peft_case(peft.IA3Config(target_modules=["one", "two"], feedforward_modules=["two"]),
                     {"one": torch.nn.Linear(20, 16), "two": torch.nn.Linear(16, 12)})


@case
def peft_oft():
    import peft
    return peft_case(peft.OFTConfig(r=0, oft_block_size=4, target_modules=["one"],
                                    use_cayley_neumann=True), {"one": torch.nn.Linear(20, 16)})


@case
def peft_oft_exact():
    import peft
    return peft_case(peft.OFTConfig(r=0, oft_block_size=4, target_modules=["one"],
                                    use_cayley_neumann=False), {"one": torch.nn.Linear(20, 16)})


# ── Names ──

def several(model, adapter, changes, strength=1.0, source="names"):
    return made(model, adapter, {k: model[k].double() + strength * v.double()
                                 for k, v in changes.items()}, strength, source)


@case
def flux_fused_from_diffusers():
    h, mlp = 12, 40
    p = "double_blocks.0."
    model = {p + "img_attn.qkv.weight": noise(3 * h, h), p + "img_attn.proj.weight": noise(h, h, seed=2),
             "single_blocks.1.linear1.weight": noise(3 * h + mlp, h, seed=3),
             "single_blocks.1.linear2.weight": noise(h, h + mlp, seed=4),
             "final_layer.adaLN_modulation.1.weight": noise(2 * h, h, seed=5)}
    adapter, deltas = {}, {k: torch.zeros_like(v).double() for k, v in model.items()}

    def put(name, tensor, rows, seed, out, inn):
        up, down = lora_of(out, inn, 3, seed)
        adapter[f"transformer.{name}.lora_A.weight"] = down
        adapter[f"transformer.{name}.lora_B.weight"] = up
        delta = up.double() @ down.double()
        if rows is None:
            delta = torch.cat([delta[h:], delta[:h]])
            rows = slice(None)
        deltas[tensor][rows] += delta

    q, s = p + "img_attn.qkv.weight", "single_blocks.1.linear1.weight"
    put("transformer_blocks.0.attn.to_q", q, slice(0, h), 1, h, h)
    put("transformer_blocks.0.attn.to_v", q, slice(2 * h, 3 * h), 3, h, h)
    put("transformer_blocks.0.attn.to_out.0", p + "img_attn.proj.weight", slice(None), 5, h, h)
    put("single_transformer_blocks.1.attn.to_k", s, slice(h, 2 * h), 7, h, h)
    put("single_transformer_blocks.1.proj_mlp", s, slice(3 * h, None), 9, mlp, h)
    put("single_transformer_blocks.1.proj_out", "single_blocks.1.linear2.weight", slice(None), 11, h,
        h + mlp)
    put("norm_out.linear", "final_layer.adaLN_modulation.1.weight", None, 13, 2 * h, h)
    return several(model, adapter, deltas, 0.5)


@case
def flux_split_from_fused():
    h, mlp = 12, 40
    t, s = "transformer_blocks.0.attn.", "single_transformer_blocks.0."
    model = {t + "to_q.weight": noise(h, h), t + "to_k.weight": noise(h, h, seed=2),
             t + "to_v.weight": noise(h, h, seed=3), s + "attn.to_q.weight": noise(h, h, seed=4),
             s + "attn.to_k.weight": noise(h, h, seed=5), s + "attn.to_v.weight": noise(h, h, seed=6),
             s + "proj_mlp.weight": noise(mlp, h, seed=7)}
    a, b = lora_of(3 * h, h, 4, 1), lora_of(3 * h + mlp, h, 4, 3)
    adapter = {**named("lora_unet_double_blocks_0_img_attn_qkv", lora_up__weight=a[0],
                       lora_down__weight=a[1]),
               **named("lora_unet_single_blocks_0_linear1", lora_up__weight=b[0],
                       lora_down__weight=b[1])}
    first, second = a[0].double() @ a[1].double(), b[0].double() @ b[1].double()
    return several(model, adapter, {
        t + "to_q.weight": first[:h], t + "to_k.weight": first[h:2 * h], t + "to_v.weight": first[2 * h:],
        s + "attn.to_q.weight": second[:h], s + "attn.to_k.weight": second[h:2 * h],
        s + "attn.to_v.weight": second[2 * h:3 * h], s + "proj_mlp.weight": second[3 * h:]})


@case
def sdxl_names():
    """Diffusers' names onto original ones, and the second encoder's rows."""
    h = 8
    u, c = "model.diffusion_model.", "conditioner.embedders."
    pairs = {
        u + "input_blocks.4.1.proj_in": "lora_unet_down_blocks_1_attentions_0_proj_in",
        u + "input_blocks.3.0.op": "lora_unet_down_blocks_0_downsamplers_0_conv",
        u + "output_blocks.2.2.conv": "lora_unet_up_blocks_0_upsamplers_0_conv",
        u + "output_blocks.4.0.skip_connection": "lora_unet_up_blocks_1_resnets_1_conv_shortcut",
        u + "input_blocks.5.0.emb_layers.1": "unet.down_blocks.1.resnets.1.time_emb_proj",
        u + "time_embed.2": "lora_unet_time_embedding_linear_2",
        u + "label_emb.0.0": "lora_unet_label_emb_0_0",
        c + "0.transformer.text_model.encoder.layers.0.mlp.fc1":
            "lora_te1_text_model_encoder_layers_0_mlp_fc1",
        c + "1.model.transformer.resblocks.3.mlp.c_proj":
            "lora_te2_text_model_encoder_layers_3_mlp_fc2",
    }
    model, adapter, changes = {}, {}, {}
    for i, (name, module) in enumerate(pairs.items()):
        model[name + ".weight"] = noise(h, h, seed=i)
        up, down = lora_of(h, h, 2, i)
        adapter.update(named(module, lora_up__weight=up, lora_down__weight=down))
        changes[name + ".weight"] = up.double() @ down.double()
    fused = c + "1.model.transformer.resblocks.3.attn.in_proj_weight"
    model[fused] = noise(3 * h, h, seed=99)
    up, down = lora_of(h, h, 2, 50)
    adapter.update(named("lora_te2_text_model_encoder_layers_3_self_attn_k_proj",
                         lora_up__weight=up, lora_down__weight=down))
    changes[fused] = torch.zeros(3 * h, h).double()
    changes[fused][h:2 * h] = up.double() @ down.double()
    return several(model, adapter, changes)


@case
def original_onto_diffusers():
    h = 8
    pairs = {
        "down_blocks.1.attentions.0.proj_in": "lora_unet_input_blocks_4_1_proj_in",
        "down_blocks.0.downsamplers.0.conv": "lora_unet_input_blocks_3_0_op",
        "up_blocks.0.upsamplers.0.conv": "lora_unet_output_blocks_2_2_conv",
        "up_blocks.1.resnets.1.conv_shortcut": "lora_unet_output_blocks_4_0_skip_connection",
        "mid_block.resnets.1.conv1": "lora_unet_middle_block_2_in_layers_2",
        "mid_block.attentions.0.transformer_blocks.0.attn2.to_out.0":
            "unet.mid_block.attentions.0.transformer_blocks.0.attn2.processor.to_out",
    }
    model, adapter, changes = {}, {}, {}
    for i, (name, module) in enumerate(pairs.items()):
        model[name + ".weight"] = noise(h, h, seed=i)
        up, down = lora_of(h, h, 2, i)
        ends = ("_lora.up.weight", "_lora.down.weight") if "processor" in module else \
               (".lora_up.weight", ".lora_down.weight")
        adapter[module + ends[0]], adapter[module + ends[1]] = up, down
        changes[name + ".weight"] = up.double() @ down.double()
    return several(model, adapter, changes)


def pieces(fused, rows, parts, inn, model, adapter, changes, prefix="transformer."):
    """A fused tensor of the model, and an adapter for each (name, first row, rows) of it."""
    model[fused + ".weight"] = noise(rows, inn, seed=rows)
    changes[fused + ".weight"] = torch.zeros(rows, inn).double()
    for i, (name, first, count) in enumerate(parts):
        up, down = lora_of(count, inn, 2, 7 * i + rows)
        adapter.update(named(prefix + name, lora_A__weight=down, lora_B__weight=up))
        changes[fused + ".weight"][first:first + count] += up.double() @ down.double()


@case
def sd3_from_diffusers():
    h, model, adapter, changes = 8, {}, {}, {}
    b, d = "model.diffusion_model.joint_blocks.1.", "transformer_blocks.1."
    pieces(b + "x_block.attn.qkv", 3 * h, [(d + "attn.to_q", 0, h), (d + "attn.to_v", 2 * h, h)], h,
           model, adapter, changes)
    pieces(b + "context_block.attn.qkv", 3 * h, [(d + "attn.add_k_proj", h, h)], h,
           model, adapter, changes)
    pieces(b + "x_block.attn.proj", h, [(d + "attn.to_out.0", 0, h)], h, model, adapter, changes)
    pieces(b + "x_block.adaLN_modulation.1", 6 * h, [(d + "norm1.linear", 0, 6 * h)], h,
           model, adapter, changes)
    last = b + "context_block.adaLN_modulation.1"
    pieces(last, 2 * h, [(d + "norm1_context.linear", 0, 2 * h)], h, model, adapter, changes)
    delta = changes[last + ".weight"]
    changes[last + ".weight"] = torch.cat([delta[h:], delta[:h]])
    return several(model, adapter, changes)


@case
def pixart_from_diffusers():
    h, model, adapter, changes = 8, {}, {}, {}
    pieces("blocks.0.attn.qkv", 3 * h, [("transformer_blocks.0.attn1.to_k", h, h)], h,
           model, adapter, changes, "base_model.model.")
    pieces("blocks.0.cross_attn.kv_linear", 2 * h, [("transformer_blocks.0.attn2.to_k", 0, h),
                                                    ("transformer_blocks.0.attn2.to_v", h, h)], h,
           model, adapter, changes, "base_model.model.")
    pieces("blocks.0.cross_attn.proj", h, [("transformer_blocks.0.attn2.to_out", 0, h)], h,
           model, adapter, changes, "base_model.model.")
    return several(model, adapter, changes)


@case
def wan_both_ways():
    h, model, adapter, changes = 8, {}, {}, {}
    pieces("model.diffusion_model.blocks.0.self_attn.o", h, [("blocks.0.attn1.to_out.0", 0, h)], h,
           model, adapter, changes)
    pieces("blocks.0.attn1.to_q", h, [("blocks.0.self_attn.q", 0, h)], h, model, adapter, changes,
           "diffusion_model.")
    pieces("blocks.0.attn2.add_k_proj", h, [("blocks.0.cross_attn.k_img", 0, h)], h,
           model, adapter, changes, "diffusion_model.")
    return several(model, adapter, changes)


@case
def pixart_onto_diffusers():
    h, b = 8, "transformer_blocks.0.attn2."
    up, down = lora_of(2 * h, h, 3)
    delta = up.double() @ down.double()
    model = {b + "to_k.weight": noise(h, h), b + "to_v.weight": noise(h, h, seed=2),
             "adaln_single.linear.weight": noise(6 * h, h)}
    return several(model, named("lora_unet_blocks_0_cross_attn_kv_linear", lora_up__weight=up,
                                lora_down__weight=down),
                   {b + "to_k.weight": delta[:h], b + "to_v.weight": delta[h:]})


def unlike(a, b, w):
    """How far two results are from one another, as a part of the change from w to the first."""
    return (a - b).norm().item() / (a - w).norm().item()


def disagreements():
    """How each row of docs/disagreements.md begins, and what it says of how far programs differ."""
    from lycoris.functional.general import rebuild_tucker
    from lycoris.modules.loha import LohaModule
    percent = "{:.0f} %".format
    eye = torch.eye(6).double()
    w, (up, down) = noise(24, 36, seed=9).double(), (x.double() for x in lora_of(24, 36, 4))
    # DoRA: the norm of the changed weight, or of the model's; of rows or columns
    mag = noise(24, 1).double().abs() + 0.5
    v = w + up @ down
    rows, columns = v.norm(dim=1, keepdim=True), v.norm(dim=0, keepdim=True)
    exact, comfy = v * mag / rows, v * mag / w.norm(dim=1, keepdim=True)
    yield "DoRA with a magnitude for each row", percent(100 * unlike(exact, comfy, w))
    half = w + 0.5 * (exact - w)
    lycoris = v * (0.5 * (mag / rows - 1) + 1)
    yield "DoRA at strength m", percent(100 * unlike(half, lycoris, w))
    own = v * w.norm(dim=1, keepdim=True) / rows, v * w.norm(dim=0, keepdim=True) / columns
    yield "DoRA: magnitudes of rows or of columns", percent(100 * unlike(*own, w))
    eps = torch.finfo(torch.bfloat16).eps
    yield "DoRA: an epsilon", percent(100 * unlike(exact, v * mag / (rows + eps), w))
    # OFT
    blocks = noise(4, 6, 6, by=0.5)

    def turned(r):
        return torch.einsum("knm,kni->kmi", r, w.view(4, 6, 36)).reshape(24, 36)

    r = rotations(blocks, 0)
    one = turned(0.5 * r + 0.5 * eye)
    yield "OFT at strength m", percent(100 * unlike(one, turned(0.25 * r + 0.75 * eye), w))
    capped, other = rotations(blocks, 0.05 * 24), rotations(blocks, 0.05)
    yield "OFT with a cap", percent(100 * unlike(turned(capped), turned(other), w))
    q = (blocks - blocks.transpose(1, 2)).double() * 0.15
    series = eye + 2 * q + 2 * q @ q + 2 * q @ q @ q + q @ q @ q @ q
    whole = torch.linalg.solve(eye - q, eye + q)
    yield "OFT of PEFT: the rotation", percent(100 * unlike(turned(whole), turned(series), w))
    # alpha / rank: by LyCORIS's own functions
    module = LohaModule("x", torch.nn.Linear(36, 24, bias=False), 1.0, lora_dim=4, alpha=2.0)
    parts = noise(24, 4), noise(4, 36, seed=2), noise(24, 4, seed=3), noise(4, 36, seed=4)
    for name, value in zip(("w1_a", "w1_b", "w2_a", "w2_b"), parts):
        getattr(module, "hada_" + name).data = value
    once = 0.5 * (parts[0] @ parts[1]) * (parts[2] @ parts[3]).double()
    twice = module.get_diff_weight()[0].detach().double()
    yield "LoHa, LoKr: alpha / rank", percent(100 * unlike(w + once, w + twice, w))
    a, b, c, d = noise(4, 2), noise(2, 6, seed=2), noise(6, 3, seed=3), noise(3, 6, seed=4)
    k = kron(a.double() @ b.double(), c.double() @ d.double())
    yield "LoKr, both w₁ and w₂ decomposed", percent(100 * unlike(w + k / 2, w + k / 3, w))
    yield "LoKr, both w₁ and w₂ whole", percent(100 * unlike(w + k, w + k / 2, w))
    core = noise(4, 4, 3, 3, seed=5)
    u, v2 = noise(24, 4), noise(4, 16, seed=2)
    found = rebuild_tucker(core, u.T.contiguous(), v2.T.contiguous().T)
    comfy = torch.einsum("ijkl,jr,ip->prkl", core, v2, u.T)
    yield "Tucker", percent(100 * ((found - comfy).norm() / comfy.norm()).item())
    yield "alpha of convolutions", percent(100 * abs(1 - (16 / 32) / (1 / 8)))
    # a rule for the rank, S = 10, 5, 2, 1, 0.5, 0.1 and sv_ratio 4
    s = torch.tensor([10, 5, 2, 1, 0.5, 0.1])
    yield "a rank by a rule", "{:.0f} or {:.0f} %".format(*(100 * (s[n:].norm() / s.norm()).item()
                                                          for n in (2, 3)))
    # files read as those of another program
    factors = noise(24, 1, seed=3).double() * 0.5 + 1
    yield "(IA)³", "{:.0f} times".format((w * factors).norm() / (w * factors - w).norm())
    yield "rsLoRA", percent(100 * abs(1 - 1 / 4))
    # several adapters as one file, at 0.7 and 0.3
    up2, down2 = (x.double() for x in lora_of(24, 36, 4, seed=7))
    both = 0.7 * up @ down + 0.3 * up2 @ down2
    plain = (0.7 * up + 0.3 * up2) @ (0.7 * down + 0.3 * down2)
    yield "two LoRAs as one file", "{:.0f} % at 0.7 and 0.3; {:.0f} %".format(
        100 * unlike(w + both, w + 0.49 * up @ down + 0.09 * up2 @ down2, w),
        100 * unlike(w + both, w + plain, w))
    s = torch.linalg.svd(up @ down)
    left, right = s.U[:, :4] * s.S[:4], s.Vh[:4]
    most = torch.quantile(torch.cat([left.flatten(), right.flatten()]), 0.99)
    yield "extraction: `clamp_quantile`", percent(100 * unlike(
        w + up @ down, w + left.clamp(-most, most) @ right.clamp(-most, most), w))
    # rounding: a change of about 2 % of the weight
    small = 0.2 * up @ down * w.norm() / (10 * (up @ down).norm())
    lost = {}
    for dtype in (torch.float8_e4m3fn, torch.bfloat16):
        base = w.to(dtype).double()
        lost[dtype] = 100 * unlike(base + small, (base + small).to(dtype).double(), base)
    yield "merging into F8", percent(lost[torch.float8_e4m3fn])
    half = w.to(torch.float16)
    twice = half + (0.1 * up.half() @ down.half()) + (0.1 * up2.half() @ down2.half())
    exact = half.double() + 0.1 * (up.half().double() @ down.half().double()
                                   + up2.half().double() @ down2.half().double())
    yield "rounding", "{:.1f} % of two changes, against {:.1f} %".format(
        100 * unlike(exact, twice.double(), half.double()),
        100 * unlike(exact, exact.half().double(), half.double()))
    yield "rounding", "BF16: {:.0f} %".format(lost[torch.bfloat16])


def check_disagreements(path):
    """Prints them; 1 if the document says something else, or has a row that is nowhere computed."""
    with open(path, encoding="utf-8") as file:
        rows = [line.split("|") for line in file if line.startswith("| ")][1:]
    wrong, seen = [], set()
    for begin, figure in disagreements():
        print("%s: %s" % (begin, figure))
        found = [row for row in rows if row[1].strip().startswith(begin)]
        seen.update(id(row) for row in found)
        if len(found) != 1 or not any(figure in cell for cell in found[0][3:5]):
            wrong.append("%s is not what the document says of \"%s\"" % (figure, begin))
    wrong += ["a figure in \"%s\" is not computed" % row[1].strip() for row in rows
              if id(row) not in seen and re.search(r"\d %", row[3])]
    print("\n".join(wrong))
    return 1 if wrong else 0


def is_there(path, tensors, metadata):
    """save_file puts tensors in another order each time: a file that says the same stays."""
    if not os.path.exists(path):
        return False
    with safe_open(path, "pt") as file:
        return (file.metadata() == metadata and set(file.keys()) == set(tensors)
                and all(file.get_tensor(k).dtype == v.dtype and file.get_tensor(k).shape == v.shape
                        and bytes(file.get_tensor(k).flatten().view(torch.uint8).numpy())
                        == bytes(v.flatten().view(torch.uint8).numpy())
                        for k, v in tensors.items()))


def main():
    if sys.argv[1] == "--disagreements":
        sys.exit(check_disagreements(sys.argv[2]))
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for function in CASES:
        if names and function.__name__ not in names:
            continue
        torch.manual_seed(5) # of layers that PEFT cases start from
        tensors, metadata = function()
        tensors = {k: v.contiguous().clone() for k, v in tensors.items()}
        path = os.path.join(folder, function.__name__ + ".safetensors")
        if not is_there(path, tensors, metadata):
            save_file(tensors, path, metadata)
        print(function.__name__, file=sys.stderr)


if __name__ == "__main__":
    main()
