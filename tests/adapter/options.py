#!/usr/bin/env python3
"""lora merge --stochastic against the same counter in NumPy, bit for bit, --blocks against the
lists that block weights are known by, threads, and GGUF.

    options.py            needs build/safetensors (SFT_BUILD, SFT_COMMAND)
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import COMMAND, np, read_plain, values_of, write_plain  # noqa: E402

try:
    import gguf
except ImportError:
    gguf = None

LAYER = "model.diffusion_model.double_blocks.0.img_mlp.0.weight"
KOHYA = "lora_unet_double_blocks_0_img_mlp_0"
STEP, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def f32(array):
    return "F32", list(array.shape), np.ascontiguousarray(array).astype("<f4").tobytes()


def run(folder, *words, code=0):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False,
                          cwd=folder)
    if done.returncode != code:
        raise AssertionError("exit %d of %s: %s" % (done.returncode, " ".join(words),
                                                    done.stderr.strip()))
    return done


# ── Rounding ──

def stirred(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def chances(seed, name, count):
    """32 random bits for each element."""
    text = 0xCBF29CE484222325
    for byte in name.encode():
        text = ((text ^ byte) * 0x100000001B3) & MASK
    key = stirred(stirred((seed + STEP) & MASK) ^ text)
    with np.errstate(over="ignore"):
        x = np.uint64(key) + np.arange(1, count + 1, dtype="u8") * np.uint64(STEP)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (x ^ x >> np.uint64(31)) >> np.uint64(32)


def rounded(values, bits, mantissa, least):
    """To multiples of a step, up with the probability of what is cut off (of 32 bits of it)."""
    size = np.abs(values.astype("f8"))
    exponent = np.floor(np.log2(np.maximum(size, 2.0 ** -149)))
    step = 2.0 ** (np.maximum(exponent, least) - mantissa)
    steps = np.floor(size / step)
    chance = np.floor((size / step - steps) * 2.0 ** 32)
    return np.where(values < 0, -1, 1) * (steps + (bits < chance)) * step


FORMS = {"BF16": (7, -126), "F16": (10, -14), "F8_E4M3": (3, -6), "F8_E5M2": (2, -14)}


def value_of(dtype, data):
    if dtype != "F8_E5M2":
        return values_of(dtype, data)
    return (np.frombuffer(data, "u1").astype("u2") << 8).view("<f2").astype("f8")


def check_rounding(dtype):
    rng = np.random.default_rng(8)
    rows, cols, wrong = 96, 200, []
    with tempfile.TemporaryDirectory() as folder:
        w = rng.standard_normal((rows, cols)) * 10.0 ** rng.uniform(-7, 1, (rows, cols))
        write_plain(os.path.join(folder, "f.safetensors"), {LAYER: f32(w)})
        run(folder, "convert", "f.safetensors", "--dtype", dtype, "-o", "m.safetensors")
        run(folder, "convert", "m.safetensors", "--dtype", "F32", "-o", "v.safetensors")
        write_plain(os.path.join(folder, "l.safetensors"), {
            KOHYA + ".lora_up.weight": f32(rng.standard_normal((rows, 3)) * 0.03),
            KOHYA + ".lora_down.weight": f32(rng.standard_normal((3, cols)) * 0.03)})
        run(folder, "lora", "merge", "v.safetensors", "l.safetensors:0.5", "-o", "s.safetensors")
        sums = values_of("F32", read_plain(os.path.join(folder, "s.safetensors"))[0][LAYER][2])
        data = None
        for threads in ("1", "2", "5"):
            run(folder, "lora", "merge", "m.safetensors", "l.safetensors:0.5", "-o",
                "o.safetensors", "--stochastic", "12345678901234567890", "--threads", threads,
                "--force")
            got = read_plain(os.path.join(folder, "o.safetensors"))[0][LAYER][2]
            if data not in (None, got):
                wrong.append("%s threads give other bytes" % threads)
            data = got
        bits = chances(12345678901234567890, LAYER, rows * cols)
        want, found = rounded(sums, bits, *FORMS[dtype]), value_of(dtype, data)
        if (want != found).any():
            wrong.append("%d of %d values differ" % ((want != found).sum(), want.size))
        # without bias: the mean of what is off, in steps, beside its deviation
        step = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(sums))), FORMS[dtype][1])
                       - FORMS[dtype][0])
        off = (found - sums) / step
        if abs(off.mean()) > 4 * off.std() / np.sqrt(off.size) or np.abs(off).max() >= 1:
            wrong.append("a bias of %g" % off.mean())
    return wrong


def check_full():
    """Values next to the greatest are not rounded beyond it, and sums beyond it are refused."""
    wrong, top = [], 65504.0
    with tempfile.TemporaryDirectory() as folder:
        def play(value, code, count=64, seed=1):
            write_plain(os.path.join(folder, "m.safetensors"), {
                LAYER: ("F16", [1, count], np.full(count, top, "<f2").tobytes())})
            write_plain(os.path.join(folder, "l.safetensors"), {
                KOHYA + ".lora_up.weight": f32(np.array([[1.0]])),
                KOHYA + ".lora_down.weight": f32(np.full((1, count), value))})
            return run(folder, "lora", "merge", "m.safetensors", "l.safetensors", "-o",
                       "o.safetensors", "--force", "--stochastic", str(seed), code=code)
        play(10.0, 0)
        found = read_plain(os.path.join(folder, "o.safetensors"))[0][LAYER][2]
        if (np.frombuffer(found, "<f2") != top).any():
            wrong.append("a value beside the greatest became another")
        if "larger ones" not in play(100.0, 1).stderr:
            wrong.append("a sum beyond the greatest is not refused")
        for seed in range(8):  # of one value, which the nearest infinity is beside, by no chance
            play(25.0, 1, 1, seed)
    return wrong


# ── Blocks ──

VECTORS = {
    12: "BASE IN04 IN05 IN07 IN08 M00 OUT00 OUT01 OUT02 OUT03 OUT04 OUT05",
    17: "BASE IN01 IN02 IN04 IN05 IN07 IN08 M00 OUT03 OUT04 OUT05 OUT06 OUT07 OUT08 OUT09 OUT10 "
        "OUT11",
    20: "BASE IN00 IN01 IN02 IN03 IN04 IN05 IN06 IN07 IN08 M00 OUT00 OUT01 OUT02 OUT03 OUT04 OUT05 "
        "OUT06 OUT07 OUT08",
}
VECTORS[26] = " ".join(["BASE", *("IN%02d" % i for i in range(12)), "M00",
                        *("OUT%02d" % i for i in range(12))])


def ldm_layers():
    """Block: layers of SD 1 in it, by the original names."""
    layers = {"BASE": ["cond_stage_model.transformer.text_model.encoder.layers.0.mlp.fc1"],
              "M00": ["model.diffusion_model.middle_block.0.emb_layers.1",
                      "model.diffusion_model.middle_block.1.transformer_blocks.0.attn1.to_q"],
              "rest": ["model.diffusion_model.time_embed.0"]}
    for i in range(12):
        layers["IN%02d" % i] = ["model.diffusion_model.input_blocks.%d.0.emb_layers.1" % i]
        layers["OUT%02d" % i] = ["model.diffusion_model.output_blocks.%d.0.emb_layers.1" % i]
    layers["IN00"] = ["model.diffusion_model.input_blocks.0.0"]
    for i in (3, 6, 9):
        layers["IN%02d" % i] = ["model.diffusion_model.input_blocks.%d.0.op" % i]
    return layers


def diffusers_layers():
    layers = {"M00": ["mid_block.resnets.0.time_emb_proj", "mid_block.attentions.0.proj_in"],
              "rest": ["time_embedding.linear_1"], "IN00": ["conv_in"]}
    for i in range(4):
        for k in range(2):
            layers["IN%02d" % (1 + 3 * i + k)] = [
                "down_blocks.%d.resnets.%d.time_emb_proj" % (i, k)]
        if i < 3:
            layers["IN%02d" % (3 + 3 * i)] = ["down_blocks.%d.downsamplers.0.conv" % i]
        for k in range(3):
            layers["OUT%02d" % (3 * i + k)] = ["up_blocks.%d.resnets.%d.time_emb_proj" % (i, k)]
    return layers


def merge_ones(folder, layers, bare, *words, code=0):
    """What each layer gets by a LoRA of ones."""
    model, lora = {}, {}
    for name in sum(layers.values(), []):
        conv = name.endswith((".conv", ".op", ".0.0", "conv_in"))
        model[name + ".weight"] = f32(np.zeros([2, 2, 1, 1] if conv else [2, 2]))
        part = bare if bare else ("lora_te_" if name.startswith("cond") else "lora_unet_")
        path = name if bare else name.split(".", 2)[2]
        path = part + path.replace(".", "_")
        up, down = np.ones([2, 1]), np.ones([1, 2])
        lora[path + ".lora_up.weight"] = f32(up[..., None, None] if conv else up)
        lora[path + ".lora_down.weight"] = f32(down[..., None, None] if conv else down)
    write_plain(os.path.join(folder, "m.safetensors"), model)
    write_plain(os.path.join(folder, "l.safetensors"), lora)
    done = run(folder, "lora", "merge", "m.safetensors", "l.safetensors:2", "-o", "o.safetensors",
               "--force", *words, code=code)
    if code:
        return done.stderr
    found = read_plain(os.path.join(folder, "o.safetensors"))
    got = {block: {float(np.frombuffer(found[0][name + ".weight"][2], "<f4")[0]) for name in names}
           for block, names in layers.items()}
    return got, found[1]


def check_vectors(layers, bare):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for count, names in VECTORS.items():
            by = {name: 0.5 + i / 64 for i, name in enumerate(names.split())}
            text = ",".join(repr(one) for one in by.values())
            got, notes = merge_ones(folder, layers, bare, "--blocks", text)
            for block, found in got.items():
                want = {2 * by.get(block, 1)}
                if found != want:
                    wrong.append("%d: %s got %s, not %s" % (count, block, found, want))
            if '"blocks":"%s"' % text not in notes["sft_lora_merge"]:
                wrong.append("%d: the recipe does not tell" % count)
    return wrong


def check_fused_bias():
    """The bias of OpenCLIP's q, k, v is of the text encoders, as its weight is."""
    layer = "conditioner.embedders.1.model.transformer.resblocks.0.attn.in_proj_"
    tensors = {}
    for part in "qkv":
        name = "lora_te2_text_model_encoder_layers_0_self_attn_%s_proj" % part
        tensors[name + ".diff"], tensors[name + ".diff_b"] = f32(np.ones((4, 4))), f32(np.ones(4))
    with tempfile.TemporaryDirectory() as folder:
        own = "lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q"
        write_plain(os.path.join(folder, "m.safetensors"), {
            layer + "weight": f32(np.zeros((12, 4))), layer + "bias": f32(np.zeros(12)),
            "model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn1.to_q.weight":
                f32(np.zeros((4, 4)))})
        write_plain(os.path.join(folder, "l.safetensors"),
                    {**tensors, own + ".diff": f32(np.ones((4, 4)))})
        run(folder, "lora", "merge", "m.safetensors", "l.safetensors", "-o", "o.safetensors",
            "--blocks", "0.5" + ",1" * 11)
        found = read_plain(os.path.join(folder, "o.safetensors"))[0]
    return ["%s: not by 0.5" % leaf for leaf in ("weight", "bias")
            if set(values_of(*found[layer + leaf][::2])) != {0.5}]


def check_patterns():
    wrong, layers = [], ldm_layers()
    with tempfile.TemporaryDirectory() as folder:
        got, _ = merge_ones(folder, layers, None, "--blocks",
                            "*middle_block.1.*=0,*middle_block*=3,cond_*=-0.5")
        if got["M00"] != {0.0, 6.0} or got["BASE"] != {-1.0} or got["IN01"] != {2.0}:
            wrong.append("patterns: %s" % got)
        for text, said in (("*nothing*=1", "\"*nothing*\""), ("1,2,3", "12, 17, 20 or 26"),
                           ("1,x", "\"x\""), ("a=1,2", "\"2\""), ("=1", "\"=1\""),
                           ("*=nan", "\"*=nan\""), ("1,", "\"\""), ("", "found 0"),
                           (",".join(["1"] * 65), "at most 64")):
            told = merge_ones(folder, layers, None, "--blocks", text, code=2)
            if said not in told:
                wrong.append("%s: %s" % (text, told.strip()))
        told = merge_ones(folder, layers, None, "--blocks", "*=1", "--blocks", "*=1", code=2)
        if "once for each adapter" not in told:
            wrong.append("twice: %s" % told)
        write_plain(os.path.join(folder, "m.safetensors"), {LAYER: f32(np.zeros((2, 2)))})
        write_plain(os.path.join(folder, "l.safetensors"), {
            KOHYA + ".lora_up.weight": f32(np.ones((2, 1))),
            KOHYA + ".lora_down.weight": f32(np.ones((1, 2)))})
        told = run(folder, "lora", "merge", "m.safetensors", "l.safetensors", "-o", "o.safetensors",
                   "--blocks", ",".join(["1"] * 12), "--force", code=2).stderr
        if "blocks of a U-Net" not in told:
            wrong.append("no U-Net: %s" % told)
        # two adapters, each with its own
        run(folder, "lora", "merge", "m.safetensors", "l.safetensors", "l.safetensors:2", "-o",
            "o.safetensors", "--blocks", "*=5", "--blocks", "*=0.5", "--force")
        found = read_plain(os.path.join(folder, "o.safetensors"))[0][LAYER][2]
        if set(np.frombuffer(found, "<f4")) != {6.0}:
            wrong.append("two adapters: %s" % np.frombuffer(found, "<f4"))
    return wrong


# ── Inputs ──

def check_idle():
    """Strength 0 and an alpha of 0 change nothing, NaN of that tensor included."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        model = {LAYER: ("F32", [2, 2], np.array([1, np.nan, 2, 3], "<f4").tobytes())}
        write_plain(os.path.join(folder, "m.safetensors"), model)
        lora = {KOHYA + ".lora_up.weight": f32(np.ones((2, 1))),
                KOHYA + ".lora_down.weight": f32(np.ones((1, 2)))}
        for strength, more in ((":0", {}), ("", {KOHYA + ".alpha": f32(np.array(0.0))})):
            write_plain(os.path.join(folder, "l.safetensors"), {**lora, **more})
            done = run(folder, "lora", "merge", "m.safetensors", "l.safetensors" + strength, "-o",
                       "o.safetensors", "--force")
            if read_plain(os.path.join(folder, "o.safetensors"))[0] != model \
                    or "0 tensors changed" not in done.stdout:
                wrong.append("%r changes something: %s" % (strength, done.stdout))
    return wrong


def check_whole_kron():
    """PEFT (0.14 and later) scales LoKr by alpha / r of its configuration, whole factors too."""
    wrong, name = [], "base_model.model.layers.0.q_proj"
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(5)
        w, w1, w2 = (rng.standard_normal((n, n)) for n in (6, 2, 3))
        write_plain(os.path.join(folder, "m.safetensors"), {"layers.0.q_proj.weight": f32(w)})
        write_plain(os.path.join(folder, "adapter_model.safetensors"),
                    {name + ".lokr_w1": f32(w1), name + ".lokr_w2": f32(w2)})
        merge = ("lora", "merge", "m.safetensors", "adapter_model.safetensors", "-o",
                 "o.safetensors", "--force")
        for told, scale in (('"peft_type": "LOKR", "r": 8, "alpha": 2', 0.25),
                            ('"peft_type": "LOKR", "r": 8, "alpha": 8, "rank_pattern": {}', 1),
                            ('"peft_type": "LOKR", "r": 8, "alpha": 2, "rank_pattern": {"q_proj": 4}',
                             None), ('"r": 8', 1)):
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write("{%s}" % told)
            said = run(folder, *merge, code=0 if scale else 1).stderr
            if not scale:
                wrong += [] if "one rank" in said else [said]
                continue
            (found,) = read_plain(os.path.join(folder, "o.safetensors"))[0].values()
            if not np.allclose(values_of(*found[::2]).reshape(6, 6), w + scale * np.kron(w1, w2),
                               rtol=1e-5, atol=1e-6):
                wrong.append("%s: not by %g" % (told, scale))
    return wrong


def check_turned_ia3():
    """With fan_in_fan_out PEFT turns the factors of (IA)^3; biases have one for each output."""
    wrong, name = [], "base_model.model.h.0.attn.c_proj"
    for inputs, outputs in ((4, 4), (4, 6)):
        for turned in (True, False) if inputs == outputs else (True,):
            for inner in (False, True):
                rng = np.random.default_rng(6)
                w, b = rng.standard_normal((inputs, outputs)), rng.standard_normal(outputs)
                by = rng.standard_normal(inputs if inner else outputs)
                with tempfile.TemporaryDirectory() as folder:
                    write_plain(os.path.join(folder, "m.safetensors"),
                                {"h.0.attn.c_proj.weight": f32(w), "h.0.attn.c_proj.bias": f32(b)})
                    write_plain(os.path.join(folder, "adapter_model.safetensors"),
                                {name + ".ia3_l": f32(by.reshape((1, -1) if inner else (-1, 1)))})
                    with open(os.path.join(folder, "adapter_config.json"), "w",
                              encoding="utf-8") as file:
                        file.write('{"peft_type": "IA3", "fan_in_fan_out": %s}' % str(turned).lower())
                    run(folder, "lora", "merge", "m.safetensors", "adapter_model.safetensors", "-o",
                        "o.safetensors")
                    found = read_plain(os.path.join(folder, "o.safetensors"))[0]
                    said = run(folder, "lora", "simplify", "adapter_model.safetensors", "--model",
                               "m.safetensors", "--rank", "exact", "-o", "s.safetensors",
                               code=0 if inner and not turned else 1).stderr
                if turned != ("fan_in_fan_out" in said):
                    wrong.append("simplify: " + said)
                rows = inner == turned
                for leaf, want in (("weight", w * (by[:, None] if rows else by)),
                                   ("bias", b if inner else b * by)):
                    got = values_of(*found["h.0.attn.c_proj." + leaf][::2])
                    if not np.allclose(got, want.ravel(), rtol=1e-5, atol=1e-6):
                        wrong.append("%d x %d, %s, %s: %s" % (inputs, outputs, turned, inner, leaf))
    return wrong


def check_turned_bias():
    """lora_bias of a layer that is stored the other way round: one for each output."""
    wrong, name = [], "base_model.model.h.0.attn.c_attn"
    for inputs, outputs in ((4, 6), (6, 4), (5, 5)):
        rng = np.random.default_rng(7)
        w, b, more = (rng.standard_normal(shape) for shape in ((inputs, outputs), outputs, outputs))
        up, down = rng.standard_normal((outputs, 2)), rng.standard_normal((2, inputs))
        with tempfile.TemporaryDirectory() as folder:
            write_plain(os.path.join(folder, "m.safetensors"),
                        {"h.0.attn.c_attn.weight": f32(w), "h.0.attn.c_attn.bias": f32(b)})
            write_plain(os.path.join(folder, "adapter_model.safetensors"),
                        {name + ".lora_A.weight": f32(down), name + ".lora_B.weight": f32(up),
                         name + ".lora_B.bias": f32(more)})
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write('{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "fan_in_fan_out": true}')
            run(folder, "lora", "merge", "m.safetensors", "adapter_model.safetensors", "-o",
                "o.safetensors")
            found = read_plain(os.path.join(folder, "o.safetensors"))[0]
        for leaf, want in (("weight", w + (up @ down).T / 2), ("bias", b + more / 2)):
            got = values_of(*found["h.0.attn.c_attn." + leaf][::2])
            if not np.allclose(got, want.ravel(), rtol=1e-5, atol=1e-6):
                wrong.append("%d x %d: %s" % (inputs, outputs, leaf))
    return wrong


def check_named_alphas():
    """Names of alpha_pattern are ends of the layer's own name, which PEFT puts base_model.model. before."""
    wrong, name = [], "base_model.model.layers.0.q"
    for pattern, alpha in (("layers.0.q", 8), ("q", 8), ("^layers.0.q", 8), ("model.layers.0.q", 1),
                           ("^q", 1), ("base_model.model.layers.0.q", 1)):
        with tempfile.TemporaryDirectory() as folder:
            write_plain(os.path.join(folder, "m.safetensors"),
                        {"layers.0.q.weight": f32(np.zeros((3, 2)))})
            write_plain(os.path.join(folder, "adapter_model.safetensors"),
                        {name + ".lora_A.weight": f32(np.ones((1, 2))),
                         name + ".lora_B.weight": f32(np.ones((3, 1)))})
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write('{"r": 1, "lora_alpha": 1, "alpha_pattern": {"%s": 8}}' % pattern)
            run(folder, "lora", "merge", "m.safetensors", "adapter_model.safetensors", "-o",
                "o.safetensors")
            found = read_plain(os.path.join(folder, "o.safetensors"))[0]["layers.0.q.weight"]
            if set(values_of(*found[::2])) != {alpha}:
                wrong.append("%s: not %d" % (pattern, alpha))
    return wrong


def check_own_turn():
    """Square layers of GPT-2 are turned, as PEFT turns them, whatever a configuration says."""
    wrong, name = [], "h.0.attn.c_proj"
    rng = np.random.default_rng(9)
    w, up, down = (rng.standard_normal(shape) for shape in ((4, 4), (4, 2), (2, 4)))
    by = rng.standard_normal((4, 1))
    for other, shape, turned in (("attn.c_attn", (4, 12), True), ("attn.c_attn", (12, 4), False),
                                 ("mlp.c_fc", (4, 16), True), ("mlp.c_fc", (16, 4), False)):
        for tensors, change in (
                ({"lora_A.weight": f32(down), "lora_B.weight": f32(up)}, up @ down),
                ({"ia3_l": f32(by)}, (w.T if turned else w) * (by - 1))):
            with tempfile.TemporaryDirectory() as folder:
                write_plain(os.path.join(folder, "m.safetensors"), {
                    name + ".weight": f32(w), "h.0.%s.weight" % other: f32(np.ones(shape))})
                write_plain(os.path.join(folder, "a.safetensors"),
                            {"base_model.model.%s.%s" % (name, end): one
                             for end, one in tensors.items()})
                run(folder, "lora", "merge", "m.safetensors", "a.safetensors", "-o", "o.safetensors")
                found = read_plain(os.path.join(folder, "o.safetensors"))[0][name + ".weight"]
            want = w + (change.T if turned else change)
            if not np.allclose(values_of(*found[::2]), want.ravel(), rtol=1e-5, atol=1e-6):
                wrong.append("%s %s, %s" % (other, shape, list(tensors)))
    return wrong


def check_told_conversions():
    """What only a configuration of PEFT tells of a module has no place under other names."""
    wrong, name = [], "base_model.model.transformer_blocks.0.attn.to_out.0"
    rotation = {name + ".oft_R.weight": f32(np.ones((1, 6)))}
    factors = {name + ".ia3_l": f32(np.ones((4, 1)))}
    whole = {name + ".lokr_w1": f32(np.ones((2, 2))), name + ".lokr_w2": f32(np.ones((2, 2)))}
    for tensors, told, code in (
            (rotation, '"peft_type": "OFT"', 0),
            (rotation, '"peft_type": "OFT", "use_cayley_neumann": false', 1),
            (rotation, '"peft_type": "OFT", "num_cayley_neumann_terms": 7', 1),
            (factors, '"peft_type": "IA3", "fan_in_fan_out": false', 0),
            (factors, '"peft_type": "IA3", "fan_in_fan_out": true', 1),
            (whole, '"peft_type": "LOKR", "r": 4, "alpha": 4', 0),
            (whole, '"peft_type": "LOKR", "r": 4, "alpha": 2', 1)):
        with tempfile.TemporaryDirectory() as folder:
            write_plain(os.path.join(folder, "adapter_model.safetensors"), tensors)
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write("{%s}" % told)
            try:
                run(folder, "lora", "convert", "adapter_model.safetensors", "-o", "o.safetensors",
                    "--to", "kohya", "--architecture", "flux.1", code=code)
            except AssertionError as error:
                wrong.append("%s: %s" % (told, error))
    return wrong


def check_gguf(kind):
    """As merging into its values in F32, rounded to F16 afterwards."""
    rng, wrong = np.random.default_rng(4), []
    kind = gguf.GGMLQuantizationType[kind]
    with tempfile.TemporaryDirectory() as folder:
        w = (rng.standard_normal((64, 256)) * 0.02).astype("f4")
        writer = gguf.GGUFWriter(os.path.join(folder, "m.gguf"), "flux")
        for i in (0, 2):
            writer.add_tensor("double_blocks.0.img_mlp.%d.weight" % i,
                              gguf.quants.quantize(w, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        write_plain(os.path.join(folder, "l.safetensors"), {
            KOHYA + ".lora_up.weight": f32(rng.standard_normal((64, 2)) * 0.1),
            KOHYA + ".lora_down.weight": f32(rng.standard_normal((2, 256)) * 0.1)})
        run(folder, "convert", "m.gguf", "-o", "c.safetensors")
        run(folder, "convert", "m.gguf", "-o", "w.safetensors", "--dtype", "F32")
        run(folder, "lora", "merge", "w.safetensors", "l.safetensors", "-o", "wide.safetensors")
        run(folder, "convert", "wide.safetensors", "-o", "want.safetensors", "--dtype", "F16")
        run(folder, "lora", "merge", "m.gguf", "l.safetensors", "-o", "o.safetensors")
        want, found = (read_plain(os.path.join(folder, n + ".safetensors"))[0]
                       for n in ("want", "o"))
        if want != found or want == read_plain(os.path.join(folder, "c.safetensors"))[0]:
            wrong.append("other values")
    return wrong


def main():
    checks = [("rounding to " + dtype, check_rounding, (dtype,)) for dtype in FORMS]
    checks += [("the greatest value", check_full, ()), ("vectors", check_vectors,
                                                        (ldm_layers(), None)),
               ("vectors, diffusers", check_vectors, (diffusers_layers(), "lora_unet_")),
               ("the bias of q, k, v", check_fused_bias, ()),
               ("patterns", check_patterns, ()), ("no effect", check_idle, ()),
               ("whole LoKr of PEFT", check_whole_kron, ()),
               ("turned layers of (IA)^3", check_turned_ia3, ()),
               ("biases of turned layers", check_turned_bias, ()),
               ("layers that PEFT turns", check_own_turn, ()),
               ("names of alphas", check_named_alphas, ()),
               ("conversions of what is told", check_told_conversions, ())]
    if gguf:
        checks += [("GGUF " + kind, check_gguf, (kind,)) for kind in ("F16", "Q8_0", "Q4_0")]
    passed, problems = 0, []
    for name, check, arguments in checks:
        try:
            bad = check(*arguments)
        except AssertionError as error:
            bad = [str(error)]
        passed += not bad
        problems += ["%s: %s" % (name, one) for one in bad]
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
