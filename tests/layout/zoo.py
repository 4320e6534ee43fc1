#!/usr/bin/env python3
"""convert --layout there and back on whole models: the headers of tests/zoo (models that programs
build, at their full depth), with every size divided by 64 where that is possible, and bytes made of
the names. What comes back must have the same names, shapes and bytes; zoo.txt lists the models.

    zoo.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
    zoo.py --try              all entries of the lists: those that are known, and why others are not
"""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "zoo")]
import run as cases  # noqa: E402
import read as lists  # noqa: E402

LIBRARIES = ("comfy", "later", "diffsynth")
KNOWN = os.path.join(HERE, "zoo.txt")


def smaller(shape):
    return [size // 64 if size >= 128 and size % 64 == 0 else size for size in shape]


def there_and_back(entry, folder):
    """The last error, or what differs; empty if nothing does."""
    tensors = {name: (smaller(shape), cases.made(name, smaller(shape)))
               for name, _, shape in entry.tensors()}
    path, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out")
    back = os.path.join(folder, "back.safetensors")
    cases.write(path, tensors)
    told, ways = [], ("diffusers", "single")
    for attempt in (["--architecture", entry.identity], []):
        result = cases.run("convert", path, "-o", out, "--layout", "diffusers", "--json",
                           "--dry-run", *attempt)
        told = attempt
        if result.returncode == 0 or "known for --architecture" not in result.stderr:
            break
    if result.returncode == 0 and '"from":"diffusers"' in result.stdout:
        ways = ("single", "diffusers")
    for way, source, target in zip(ways, (path, out), (out, back)):
        if way == "single":
            target += ".safetensors"
        if not os.path.exists(source):
            source += ".safetensors"
        if os.path.isdir(source):
            source = next((os.path.join(source, one) for one in sorted(os.listdir(source))
                           if os.path.isdir(os.path.join(source, one))), source)
        result = cases.run("convert", source, "-o", target, "--layout", way, *told)
        if result.returncode:
            return result.stderr.strip()[-300:]
    have = cases.component(back) if os.path.isdir(back) else cases.read(back + ".safetensors")
    missing = sorted(set(tensors) - set(have)) or sorted(set(have) - set(tensors))
    other = [name for name in tensors if name in have and have[name] != tensors[name]]
    return "%s %s" % (missing[:3], other[:3]) if missing or other else ""


# config.json: written only where the tensors are exactly those of a published model, and the model
# is known that has the factors of its VAE (README.md has the sources of the values).
CONFIGS = [
    ("comfy", "flux-dev.raw", "flux.1", True), ("comfy", "flux-fill.raw", "flux.1", True),
    ("comfy", "flux-canny.raw", "flux.1", True),
    ("comfy", "flux-without-guidance.raw", "flux.1", True),
    ("comfy", "flux-8-layers.raw", "flux.1", False), ("comfy", "chroma.raw", "chroma", False),
    ("comfy", "wan-t2v-1.3b.raw", "wan-2.1", True), ("comfy", "wan-t2v-14b.raw", "wan-2.1", True),
    ("comfy", "wan-i2v-14b.raw", "wan-2.1", True), ("comfy", "wan-flf2v-14b.raw", "wan-2.1", True),
    ("comfy", "wan2.2-i2v-a14b.raw", "wan-2.2", True),
    ("comfy", "wan2.2-ti2v-5b.raw", "wan-2.2", True),
    ("comfy", "wan-vace-14b.raw", "wan-2.1", False),
    ("comfy", "wan-fun-control-14b.raw", "wan-2.1", False),
    ("comfy", "qwen-image.raw", "qwen-image", False),
    ("comfy", "vae-sd.raw", "sd-1", True), ("comfy", "vae-sd.raw", "sdxl", True),
    ("comfy", "vae-sd.raw", "auraflow", False), ("comfy", "vae-sd.raw", "", False),
    ("comfy", "vae-flux.raw", "flux.1", True), ("comfy", "vae-flux.raw", "sd-3", True),
    ("comfy", "vae-flux.raw", "z-image", False), ("comfy", "vae-sd-x4.raw", "sd-2", False),
]
VAE = {"_class_name": "AutoencoderKL", "latent_channels": 4, "in_channels": 3, "out_channels": 3,
       "norm_num_groups": 32, "act_fn": "silu", "layers_per_block": 2,
       "down_block_types": ["DownEncoderBlock2D"] * 4, "up_block_types": ["UpDecoderBlock2D"] * 4,
       "block_out_channels": [128, 256, 512, 512], "use_quant_conv": True,
       "use_post_quant_conv": True, "scaling_factor": 0.13025, "force_upcast": True}


def config_cases(folder):
    failed = 0
    entries = {(library, one.name): one for library in LIBRARIES
               for one in lists.read(library)[1]}
    for library, name, model, want in CONFIGS:
        path = os.path.join(folder, "%s.safetensors" % name)
        if not os.path.exists(path):
            lists.write_model(path, entries[library, name])
        told = ["--architecture", model] if model else []
        result = cases.run("convert", path, "-o", os.path.join(folder, "none"), "--layout",
                           "diffusers", "--dry-run", "--json", *told)
        has = [one["config"] for one in json.loads(result.stdout)["results"][0]["components"]]
        if has != [want]:
            failed += 1
            print("%s as %s: expected config %s, found %s" % (name, model, want, has))
    out = os.path.join(folder, "vae")
    cases.run("convert", os.path.join(folder, "vae-sd.raw.safetensors"), "-o", out, "--layout",
              "diffusers", "--architecture", "sdxl", "--no-sync")
    with open(os.path.join(out, "vae", "config.json"), encoding="utf-8") as file:
        have = json.load(file)
    if have != VAE:
        failed += 1
        print("config.json of SDXL's VAE: %s" % have)
    return len(CONFIGS) + 1, failed


def main():
    with open(KNOWN, encoding="utf-8") as file:
        known = {tuple(line.split()) for line in file if line.strip() and line[0] != "#"}
    failed, done = 0, set()
    for library in LIBRARIES:
        for entry in lists.read(library)[1]:
            key = (library, entry.name)
            trying = "--try" in sys.argv and not entry.tasks & {"adapter", "checkpoint"} \
                and not entry.name.endswith((".prefixed", ".checkpoint", ".vae"))
            if not trying and (key not in known or (sys.argv[1:] and "--try" not in sys.argv
                                                    and entry.name not in sys.argv)):
                continue
            with tempfile.TemporaryDirectory() as folder:
                why = there_and_back(entry, folder)
            done.add(key)
            if trying:
                print("%s %s%s" % (library, entry.name,
                                   "\t# %s" % why.replace("\n", " ") if why else ""))
            elif why:
                failed += 1
                print("%s %s: %s" % (library, entry.name, why))
    count = 0
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            count, wrong = config_cases(folder)
        failed += wrong
        for key in sorted(known - done):
            failed += 1
            print("%s %s: no such entry" % key)
    print("%d passed, %d failed" % (len(done) + count - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
