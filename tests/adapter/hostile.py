#!/usr/bin/env python3
"""lora merge and info on adapters that are wrong, large or made to mislead: each is refused by
name, in bounded time and memory, and nothing is written.

    hostile.py          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import itertools
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import COMMAND, write_plain

PLAIN = {"a.b": (8, 8), "c": (8, 4)}


def zeros(*shape, dtype="F32", value=None):
    count = 1
    for size in shape:
        count *= size
    width = {"F32": 4, "F16": 2, "I8": 1, "F8_E4M3": 1}[dtype]
    if value is None:
        return dtype, shape, bytes(count * width)
    return dtype, shape, struct.pack("<f", value) * count


def model(**more):
    tensors = {name + ".weight": zeros(*shape) for name, shape in PLAIN.items()}
    tensors.update({name.replace("__", "."): value for name, value in more.items()})
    return tensors


def lora(name, out, inn, rank=2, value=None):
    return {name + ".lora_up.weight": zeros(out, rank, value=value),
            name + ".lora_down.weight": zeros(rank, inn, value=value)}


def of(name, **tensors):
    return {name + "." + end.replace("__", "."): value for end, value in tensors.items()}


def split(q=8, k=None, v=8, **more):
    """A FLUX.1 in diffusers' naming, of which a layer's rows may be missing."""
    block = "transformer_blocks.0.attn."
    tensors = {"x_embedder.weight": zeros(8, 64), "context_embedder.weight": zeros(8, 16),
               "time_text_embed.timestep_embedder.linear_1.weight": zeros(8, 16),
               "single_transformer_blocks.0.proj_mlp.weight": zeros(8, 16),
               block + "add_q_proj.weight": zeros(8, 8)}
    for name, rows in ("to_q", q), ("to_k", k), ("to_v", v):
        if rows:
            tensors[block + name + ".weight"] = zeros(rows, 8)
            tensors[block + name + ".bias"] = zeros(rows)
    return tensors


NAN = float("nan")
QKV = "lora_unet_double_blocks_0_img_attn_qkv"
FITS = lora("lora_unet_c", 8, 4)
# what it is, model, adapter, exit, words
CASES = [
    ("it fits", model(), lora("lora_unet_a_b", 8, 8), 0, "1 of 1 module"),
    ("factors of two ranks", model(), {**lora("lora_unet_a_b", 8, 8),
                                       "lora_unet_a_b.lora_down.weight": zeros(3, 8)}, 1,
     "columns (the rank)"),
    ("a rank of 2^31", model(), {"c.lora_A.weight": ("F32", (2 ** 31, 0), b""),
                                 "c.lora_B.weight": ("F32", (0, 2 ** 31), b"")}, 1,
     "without elements"),
    ("a layer by names of two programs", model(model__diffusion_model__d__e__weight=zeros(8, 4)), {
        **lora("lora_unet_d_e", 8, 4),
        "base_model.model.model.diffusion_model.d.e.lora_A.weight": zeros(2, 4),
        "base_model.model.model.diffusion_model.d.e.lora_B.weight": zeros(8, 2)}, 1,
     "expected one module for model.diffusion_model.d.e.weight"),
    ("rows past a layer that is missing", split(), lora(QKV, 16, 8), 1,
     "none for some before row 16, where transformer_blocks.0.attn.to_v.weight begins"),
    ("the same of a difference", split(), of(QKV, diff=zeros(16, 8)), 1, "before row 16"),
    ("the same of a bias", split(), of(QKV, diff_b=zeros(16)), 1, "before row 16"),
    ("the same of LoHa", split(), of(QKV, hada_w1_a=zeros(16, 1), hada_w1_b=zeros(1, 8),
                                     hada_w2_a=zeros(16, 1), hada_w2_b=zeros(1, 8)), 1,
     "before row 16"),
    ("the same of LoKr", split(), of(QKV, lokr_w1=zeros(2, 1), lokr_w2=zeros(8, 8)), 1,
     "before row 16"),
    ("the same of DoRA", split(), {**lora(QKV, 16, 8), QKV + ".dora_scale": zeros(16, 1)}, 1,
     "before row 16"),
    ("the first is missing", split(q=None, k=8), lora(QKV, 16, 8), 1, "before row"),
    ("rows of other sizes", split(q=4, k=8), lora(QKV, 20, 8), 1, "before row"),
    ("all rows", split(k=8), lora(QKV, 24, 8), 0, "1 of 1 module"),
    ("DoRA without a norm", model(), {**FITS, "lora_unet_c.dora_scale": zeros(8, 1, value=1)}, 1,
     "expected a norm above 0 to divide by (or a magnitude of 0), found 0 for row 0"),
    ("a norm of 0 and a magnitude of 0", model(),
     {**FITS, "lora_unet_c.dora_scale": zeros(8, 1)}, 0, "1 of 1 module"),
    ("GLoRA with a bias", model(c__bias=zeros(8)), {
        **of("lora_unet_c", a1__weight=zeros(4, 1), a2__weight=zeros(1, 4), diff_b=zeros(8)),
        **of("lora_unet_c", b1__weight=zeros(8, 1), b2__weight=zeros(1, 4))}, 0, "1 of 1 module"),
    ("(IA)^3 of PEFT with a bias", model(c__bias=zeros(8)),
     of("base_model.model.c", ia3_l=zeros(8, 1), diff_b=zeros(8)), 1,
     "without a difference of the bias"),
    ("no up", model(), {"c.lora_A.weight": zeros(2, 4)}, 1, "an up (B) matrix"),
    ("no down", model(), {"c.lora_B.weight": zeros(8, 2)}, 1, "a down (A) matrix"),
    ("two methods", model(), {**FITS, **of("lora_unet_c", hada_w1_a=zeros(8, 2))}, 1, "of two"),
    ("two differences", model(), {**FITS, **of("lora_unet_c", diff=zeros(8, 4))}, 1, "of two"),
    ("one matrix twice", model(), {"c.lora_A.weight": zeros(2, 4), "c.lora_B.weight": zeros(8, 2),
                                   "c.lora_A.default.weight": zeros(2, 4)}, 1, "found two"),
    ("NaN in it", model(), lora("lora_unet_c", 8, 4, value=NAN), 1, "found NaN at element 0"),
    ("an infinity in it", model(), lora("lora_unet_c", 8, 4, value=float("inf")), 1,
     "found an infinity"),
    ("NaN in the model", model(c__weight=zeros(8, 4, value=NAN)), FITS, 1, "in the model"),
    ("too large for F16", model(c__weight=zeros(8, 4, dtype="F16")),
     lora("lora_unet_c", 8, 4, value=1e4), 1, "values that F16 can hold"),
    ("too large for F8", model(c__weight=zeros(8, 4, dtype="F8_E4M3")),
     lora("lora_unet_c", 8, 4, value=1e3), 1, "values that F8_E4M3 can hold"),
    ("two alphas", model(), {**FITS, "lora_unet_c.alpha": zeros(2)}, 1, "one number as alpha"),
    ("no alpha in it", model(), {**FITS, "lora_unet_c.alpha": ("F32", (0,), b"")}, 1,
     "one number as alpha"),
    ("alpha is NaN", model(), {**FITS, "lora_unet_c.alpha": zeros(1, value=NAN)}, 1, "found NaN"),
    ("two names fold to one", model(a_b__weight=zeros(8, 8)), lora("lora_unet_a_b", 8, 8), 1,
     "one tensor of the model for this module"),
    ("another width", model(), lora("lora_unet_c", 8, 6), 1, "an adapter of another model?"),
    ("another height", model(), lora("lora_unet_c", 9, 4), 1, "an adapter of another model?"),
    ("not in the model", model(), {**FITS, **lora("lora_unet_d", 8, 4)}, 1,
     'not in the model: "lora_unet_d"'),
    ("nothing in the model", model(), lora("lora_unet_d", 8, 4), 1, "found none among 1"),
    ("no adapter", model(), model(), 1, "expected an adapter"),
    ("a method that is not known", model(), {"c.vera_lambda_b": zeros(8),
                                             "c.vera_lambda_d": zeros(2)}, 1, "expected an adapter"),
    ("integers", model(c__weight=zeros(8, 4, dtype="I8")), FITS, 1, "--dequantize those of codes"),
    ("a scale in F16", model(c__weight=zeros(8, 4, dtype="F8_E4M3"),
                             c__weight_scale=zeros(1, dtype="F16")), FITS, 1, "can only be read"),
    ("a scale of 0", model(c__weight=zeros(8, 4, dtype="F8_E4M3"), c__weight_scale=zeros(1)), FITS,
     0, "1 tensor changed"),
    ("factors of integers", model(), {"c.lora_A.weight": zeros(2, 4, dtype="I8"),
                                      "c.lora_B.weight": zeros(8, 2)}, 1, "found I8: codes"),
    ("magnitudes of a difference", model(), of("lora_unet_c", diff=zeros(8, 4),
                                               dora_scale=zeros(8, 1)), 1, "beside full"),
    ("no bias", model(), of("lora_unet_c", diff=zeros(8, 4), diff_b=zeros(8)), 1, "found none"),
    ("a bias of another size", model(c__bias=zeros(7)),
     of("lora_unet_c", diff=zeros(8, 4), diff_b=zeros(8)), 1, "another size"),
    ("a difference of a bias of another size", model(c__bias=zeros(8)),
     {**FITS, "lora_unet_c.diff_b": zeros(9)}, 1, "expected 8 elements"),
    ("a core of rank 2", model(), {**FITS, "lora_unet_c.lora_mid.weight": zeros(2, 2)}, 1,
     "core of a convolution"),
    ("a core of another rank", model(), {**FITS, "lora_unet_c.lora_mid.weight": zeros(3, 2, 1, 1)},
     1, "3 columns"),
    ("half of LoHa", model(), of("lora_unet_c", hada_w1_b=zeros(2, 4)), 1, "hada_w2_b"),
    ("one core of LoHa", model(), of("lora_unet_c", hada_w1_a=zeros(2, 8), hada_w1_b=zeros(2, 4),
                                     hada_w2_a=zeros(8, 2), hada_w2_b=zeros(2, 4),
                                     hada_t1=zeros(2, 2, 1, 1)), 1, "hada_t1 and hada_t2"),
    ("half of LoKr", model(), of("lora_unet_c", lokr_w1=zeros(2, 2)), 1, "lokr_w2_a"),
    ("LoKr twice", model(), of("lora_unet_c", lokr_w1=zeros(2, 2), lokr_w1_a=zeros(2, 2),
                               lokr_w1_b=zeros(2, 2), lokr_w2=zeros(4, 2)), 1, "either lokr_w1"),
    ("LoKr of another size", model(), of("lora_unet_c", lokr_w1=zeros(3000, 1),
                                         lokr_w2=zeros(3000, 1)), 1, "found 9000000 x 1"),
    ("half of GLoRA", model(), of("lora_unet_c", a1__weight=zeros(4, 2)), 1, "all of a1"),
    ("GLoRA of another size", model(), of("lora_unet_c", a1__weight=zeros(5, 2),
                                          a2__weight=zeros(2, 5), b1__weight=zeros(8, 2),
                                          b2__weight=zeros(2, 5)), 1, "expected factors for"),
    ("blocks that do not divide", model(), of("lora_unet_c", oft_blocks=zeros(3, 3, 3)), 1,
     "another model"),
    ("blocks that are not square", model(), of("lora_unet_c", oft_blocks=zeros(2, 4, 3)), 1,
     "square blocks"),
    ("too many stages", model(), of("lora_unet_c", oft_blocks=zeros(9, 2, 4, 4)), 1,
     "blocks that divide"),
    ("odd butterflies", model(), of("lora_unet_a_b", oft_blocks=zeros(1, 8, 1, 1)), 1,
     "blocks that divide"),
    ("packed blocks of no size", model(), {"c.oft_R.weight": zeros(2, 2)}, 1, "blocks that divide"),
    ("(IA)^3 of another size", model(), {"c.ia3_l": zeros(9, 1)}, 1, "a factor for each row"),
    ("(IA)^3 without weight", model(), of("lora_unet_c", on_input=zeros(1)), 1, "a weight"),
    ("magnitudes of another size", model(), {**FITS, "lora_unet_c.dora_scale": zeros(7, 1)}, 1,
     "a magnitude for each"),
    ("MLX", model(), {"c.lora_a": zeros(4, 2), "c.lora_b": zeros(2, 8)}, 1, "expected an adapter"),
    ("DoRA of an embedding", model(), {"c.lora_embedding_A": zeros(2, 8),
                                       "c.lora_embedding_B": zeros(4, 2),
                                       "c.lora_magnitude_vector": zeros(8)}, 1, "other way round"),
    ("long names", model(), {**FITS, **lora("lora_unet_" + "x" * 4000, 8, 4)}, 1, "not in the model"),
    ("empty names", model(**{"__weight": zeros(8, 4)}),
     {".lora_A.weight": zeros(2, 4), ".lora_B.weight": zeros(8, 2)}, 1, "found none among"),
]
CONFIGS = [
    ("DoRA of a turned layer", '{"fan_in_fan_out": true, "use_dora": true}', 1, "other way round"),
    ("no JSON", "{", 2, "at byte 1 of the adapter's configuration"),
    ("no object", "[1]", 2, "JSON object"),
    ("a regular expression", '{"lora_alpha": 1, "alpha_pattern": {".*c": 2}}', 1, "regular"),
    ("alpha is text", '{"lora_alpha": "16"}', 1, "a number as \"lora_alpha\""),
    ("a layer's alpha is text", '{"lora_alpha": 1, "alpha_pattern": {"c": "16"}}', 1, "a number"),
    ("alphas in a list", '{"lora_alpha": 1, "alpha_pattern": [["c", 16]]}', 1, "an object"),
    ("rsLoRA is a number", '{"lora_alpha": 1, "use_rslora": 1}', 1, "true or false"),
    ("more behind it", '{"lora_alpha": 1} 2', 2, "of the adapter's configuration"),
    ("of another type", '{"lora_alpha": 1, "peft_type": "ADALORA"}', 1, "\"peft_type\""),
    ("PiSSA", '{"lora_alpha": 1, "init_lora_weights": "pissa_niter_4"}', 1, "init_lora_weights"),
    ("no number", '{"lora_alpha": NaN}', 2, "a JSON value at byte 15"),
    ("aLoRA", '{"lora_alpha": 1, "alora_invocation_tokens": [1]}', 1, "alora_invocation_tokens"),
    ("layers twice", '{"lora_alpha": 1, "layer_replication": [[0, 2]]}', 1, "layer_replication"),
    ("usual ones", '{"lora_alpha": 1, "peft_type": "LORA", "init_lora_weights": true, '
     '"use_qalora": false, "layer_replication": null, "alpha_pattern": {}}', 0, "1 of 1 module"),
    ("a long pattern", '{"lora_alpha": 1, "alpha_pattern": {"%s": 2}}' % ("x" * 600), 1, "names of"),
    ("deep", '{"a":' + "[" * 500, 2, "of the adapter's configuration"),
    ("another rank", '{"lora_alpha": 1, "r": 8, "rank_pattern": {}}', 1, "a rank of 8"),
    ("ranks of some layers", '{"lora_alpha": 1, "r": 8, "rank_pattern": {"c": 2}}', 0, "1 of 1"),
    ("the same rank", '{"lora_alpha": 1, "r": 2, "use_dora": false}', 0, "1 of 1 module"),
    ("DoRA's magnitudes are missing", '{"lora_alpha": 1, "use_dora": true}', 1, "without DoRA"),
    ("LoHa", '{"lora_alpha": 1, "peft_type": "LOHA"}', 1, "that \"peft_type\""),
    ("it is read", '{"lora_alpha": 1}', 0, "1 of 1 module"),
]


SECONDS = float(os.environ.get("SFT_LIMIT", "600")) / 10  # a share of the suite's


def run(folder, *words, limit=10 * SECONDS):
    began = time.monotonic()
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False,
                          cwd=folder, timeout=limit)
    return done, time.monotonic() - began


def play(tensors, adapter, code, words, config=None):
    with tempfile.TemporaryDirectory() as folder:
        write_plain(os.path.join(folder, "model.safetensors"), tensors)
        write_plain(os.path.join(folder, "adapter_model.safetensors"), adapter)
        if config is not None:
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write(config)
        before = sorted(os.listdir(folder))
        done, _ = run(folder, "lora", "merge", "model.safetensors", "adapter_model.safetensors",
                      "-o", "out.safetensors", "--no-sync")
        said = done.stdout + done.stderr
        if done.returncode != code or words not in said:
            return "exit %d: %s" % (done.returncode, said.strip())
        if code and sorted(os.listdir(folder)) != before:
            return "something was written"
        told, _ = run(folder, "lora", "info", "adapter_model.safetensors", "--json")
        if told.returncode not in (0, 1, 2) or (told.returncode == 0 and not json.loads(told.stdout)):
            return "info: exit %d: %s" % (told.returncode, told.stderr.strip())
    return None


def million(folder, one):
    """10^6 keys."""
    wrong, count, alpha = [], 333334, zeros(value=1)
    write_plain(os.path.join(folder, "million.safetensors"),
                {"x%d.%s" % (i, end): alpha if end == "alpha" else one for i in range(count)
                 for end in ("alpha", "lora_down.weight", "lora_up.weight")})
    for words, code, said in (
            (("info", "million.safetensors"), 0, "%d modules" % count),
            (("merge", "model.safetensors", "million.safetensors"), 1, "none among"),
            (("convert", "million.safetensors", "--to", "peft", "--architecture", "sdxl"), 1,
             "none among"),
            (("resize", "million.safetensors", "--rank", "1"), 0, "%d modules" % count)):
        out = () if words[0] == "info" else ("-o", "out.safetensors", "--force", "--dry-run")
        done, took = run(folder, "lora", *words, *out)
        if done.returncode != code or said not in done.stdout + done.stderr:
            wrong.append("10^6 keys, %s: exit %d: %s" % (words[0], done.returncode,
                                                         (done.stdout + done.stderr)[-300:]))
        if took > SECONDS:
            wrong.append("10^6 keys, %s: %.0f s" % (words[0], took))
    return wrong


def large():
    """200,000 modules, 10^6 keys, and a model with 65,536 names that fold to one."""
    wrong = []
    count = 200000
    with tempfile.TemporaryDirectory() as folder:
        one = zeros(1, 1)
        write_plain(os.path.join(folder, "model.safetensors"),
                    {"layers.%d.w.weight" % i: one for i in range(count)})
        write_plain(os.path.join(folder, "many.safetensors"),
                    {"layers.%d.w.%s.weight" % (i, end): one for i in range(count)
                     for end in ("lora_A", "lora_B")})
        names = ["x" + "".join(s + "x" for s in marks) for marks in itertools.product("._", repeat=16)]
        write_plain(os.path.join(folder, "folded.safetensors"),
                    {name + ".weight": one for name in names})
        write_plain(os.path.join(folder, "fold.safetensors"),
                    lora("lora_unet_" + "_".join("x" * 17), 1, 1, 1))
        for words, code, said in (
                (("model.safetensors", "many.safetensors"), 0, "200000 of 200000"),
                (("folded.safetensors", "fold.safetensors"), 1, "one tensor of the model")):
            done, took = run(folder, "lora", "merge", *words, "-o", "out.safetensors", "--force",
                             "--dry-run")
            if done.returncode != code or said not in done.stdout + done.stderr:
                wrong.append("%s: exit %d: %s" % (words[0], done.returncode,
                                                  (done.stdout + done.stderr)[-300:]))
            if took > SECONDS:
                wrong.append("%s: %.0f s" % (words[0], took))
        # a third of each fused layer: looking for the others of each would be quadratic
        write_plain(os.path.join(folder, "thirds.safetensors"),
                    {"transformer.transformer_blocks.%d.attn.to_q.%s.weight" % (i, end): one
                     for i in range(count) for end in ("lora_A", "lora_B")})
        write_plain(os.path.join(folder, "some.safetensors"),
                    {"transformer.transformer_blocks.%d.attn.to_q.%s.weight" % (i, end): one
                     for i in range(count // 4) for end in ("lora_A", "lora_B")})
        for words, said in (
                (("convert", "thirds.safetensors", "--to", "kohya", "--architecture", "flux.1"),
                 "%d made" % count),
                (("resize", "thirds.safetensors", "--rank", "1"), "%d modules" % count),
                (("stack", "thirds.safetensors", "thirds.safetensors"), "%d modules" % count),
                (("stack", "some.safetensors", "--to", "kohya", "--architecture", "flux.1"),
                 "%d modules" % (count // 4))):
            done, took = run(folder, "lora", *words, "-o", "out.safetensors", "--force", "--dry-run")
            if done.returncode or said not in done.stdout:
                wrong.append("%s: exit %d: %s" % (words[0], done.returncode,
                                                  (done.stdout + done.stderr)[-300:]))
            if took > SECONDS / 2:
                wrong.append("%s: %.0f s" % (words[0], took))
        if os.environ.get("SFT_TARGET") in (None, "long", "coverage"):
            wrong += million(folder, one)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if most > (1600 if os.environ.get("SFT_TARGET", "").startswith("asan") else 1000) << 10:
        wrong.append("%d KiB of memory" % most)
    return wrong


def main():
    passed, problems = 0, []
    for what, tensors, adapter, code, words in CASES:
        bad = play(tensors, adapter, code, words)
        passed += not bad
        problems += ["%s: %s" % (what, bad)] if bad else []
    for what, config, code, words in CONFIGS:
        peft = {"c.lora_A.weight": zeros(2, 4), "c.lora_B.weight": zeros(8, 2)}
        if "DoRA of" in what:
            peft = {"c.lora_A.weight": zeros(2, 8), "c.lora_B.weight": zeros(4, 2),
                    "c.lora_magnitude_vector": zeros(4)}
        bad = play(model(), peft, code, words, config)
        passed += not bad
        problems += ["configuration, %s: %s" % (what, bad)] if bad else []
    bad = large()
    passed += not bad
    problems += bad
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
