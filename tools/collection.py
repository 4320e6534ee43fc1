#!/usr/bin/env python3
"""Write a folder of models as a collector has one, for demonstrations and screenshots: real names
and shapes of tensors, sidecars of several programs and drawn pictures. None of it exists elsewhere,
and the tensors are zeros in sparse files, which take no space on most file systems.

usage: tools/collection.py FOLDER [--no-pictures]
"""
import hashlib
import json
import math
import os
import random
import struct
import sys
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "info"))
import parts  # noqa: E402
from compose import Model  # noqa: E402

WIDTH, HEIGHT, SCALE = 156, 228, 3  # of a picture: dots, and pixels of a dot


# ── Pictures: each scene is a function of x and y (0 to 1 from the left and from the top) ──

def mix(a, b, share):
    share = min(max(share, 0), 1)
    return tuple(p + (q - p) * share for p, q in zip(a, b))


def ridge(random_of, rough=0.5):
    """A line of hills: sums of waves."""
    waves = [(random_of.uniform(1.5, 3) * 2 ** k, random_of.uniform(0, 7), rough ** k)
             for k in range(5)]
    return lambda x: sum(h * math.sin(f * x * 3.1 + p) for f, p, h in waves) / 2


def mountains(colours, luck):
    lines = [(0.42 + 0.13 * i, ridge(luck), 0.09 - 0.008 * i) for i in range(4)]
    sun = luck.uniform(0.25, 0.75), luck.uniform(0.18, 0.3)

    def scene(x, y):
        for i, (level, line, height) in reversed(list(enumerate(lines))):
            top = level - height * line(x + i)
            if y > top:
                return mix(mix(colours[1], colours[0], 0.35 + 0.2 * i), colours[2],
                           0.45 - (y - top) * 2.4 - 0.08 * i)
        away = math.hypot(x - sun[0], (y - sun[1]) * HEIGHT / WIDTH)
        if away < 0.12:
            return colours[3]
        return mix(mix(colours[1], colours[2], y * 2.1), colours[3], 0.35 - away * 0.8)
    return scene


def city(colours, luck):
    count = 13
    rows = [[(luck.uniform(0.1, 0.36) + 0.12 * k, luck.random()) for _ in range(count + 6 * k)]
            for k in range(2)]
    lit = [[luck.random() for _ in range(64)] for _ in range(96)]

    def scene(x, y):
        mirrored = y > 0.78
        if mirrored:
            x += 0.008 * math.sin(y * 190)
            y = 0.78 - (y - 0.78) * 1.8
        colour = mix(colours[0], colours[2], (y - 0.05) * 1.15)
        for k, row in reversed(list(enumerate(rows))):
            at = min(int(x * len(row)), len(row) - 1) if x > 0 else 0
            height, tone = row[at]
            if y > 0.78 - height * (0.95 if k else 1.35):
                colour = mix(colours[0], colours[1], 0.12 + 0.3 * tone + 0.25 * (1 - k))
                u, v = int(x * 104) % 4, int(y * 152) % 4
                if 0 < u < 3 and 0 < v < 3 and \
                        lit[int(y * 152) // 4 % 96][int(x * 104) // 4 % 64] > 0.66:
                    colour = colours[3]
        return mix(colour, colours[0], 0.45) if mirrored else colour
    return scene


def sea(colours, luck):
    moon = luck.uniform(0.3, 0.7), luck.uniform(0.14, 0.24)
    phase = luck.uniform(0, 6)

    def scene(x, y):
        away = math.hypot(x - moon[0], (y - moon[1]) * HEIGHT / WIDTH)
        if away < 0.1:
            return colours[3]
        if y < 0.46:
            return mix(mix(colours[0], colours[2], y * 1.9), colours[3], 0.3 - away)
        depth = y - 0.46
        wave = math.sin(x * 9 / (0.3 + depth) + y * 150 / (1 + 4 * depth) + phase)
        glow = 1 - abs(x - moon[0]) / (0.05 + depth * 0.45)
        colour = mix(mix(colours[2], colours[0], depth * 2), colours[1], 0.25 + 0.2 * wave)
        return mix(colour, colours[3], 0.85 * glow * (wave > 0.1))
    return scene


def forest(colours, luck):
    rows = [[(luck.random(), luck.uniform(0.18, 0.42)) for _ in range(9 + 3 * k)]
            for k in range(3)]

    def scene(x, y):
        for k in (2, 1, 0):
            floor = 0.66 + 0.16 * k
            for at, height in rows[k]:
                rise = (floor - y) / (height * (0.75 + 0.25 * k))
                if 0 <= rise < 1:
                    steps = (1 - rise) * (0.55 + 0.45 * ((1 - rise) * 5 % 1))
                    if abs(x - at) < 0.075 * steps:
                        return mix(mix(colours[1], colours[2], 0.55 - 0.3 * k), colours[0], 0.25 * k)
            if y > floor:
                return mix(mix(colours[1], colours[2], 0.5 - 0.3 * k), colours[0],
                           (y - floor) * 2 + 0.2 * k)
        return mix(mix(colours[3], colours[2], y * 1.4), colours[1],
                   0.15 * math.sin(y * 30 + 3 * x))
    return scene


def space(colours, luck):
    stars = {(luck.randrange(WIDTH), luck.randrange(HEIGHT)) for _ in range(150)}
    centre, radius = (luck.uniform(0.35, 0.65), luck.uniform(0.38, 0.6)), luck.uniform(0.24, 0.34)
    bands = ridge(luck)
    ring = luck.random() < 0.6

    def scene(x, y):
        u, v = x - centre[0], (y - centre[1]) * HEIGHT / WIDTH
        away = math.hypot(u, v)
        tilted = math.hypot(u * 0.62, (v + u * 0.35) * 2.6)
        if ring and radius * 0.92 < tilted < radius * 1.2 and (away > radius or v + u * 0.35 > 0):
            return mix(colours[3], colours[2], (tilted / radius - 0.92) * 3)
        if away < radius:
            light = (u * 0.7 + v * 0.7) / radius
            return mix(mix(colours[3], colours[1], 0.5 + 0.5 * bands(v * 4 + u * 0.5)), colours[0],
                       0.5 + light * 0.75)
        if (int(x * WIDTH), int(y * HEIGHT)) in stars:
            return colours[3]
        return mix(mix(colours[0], (6, 6, 16), 0.55), colours[2], 0.5 - away * 0.8)
    return scene


def portrait(colours, luck):
    lean, long = luck.uniform(-0.03, 0.03), luck.uniform(0.25, 0.5)
    fringe = luck.uniform(0.03, 0.09)

    def inside(u, v, a, b):
        return (u / a) ** 2 + (v / b) ** 2 < 1

    def scene(x, y):
        u, v = x - 0.5 - lean, y - 0.42
        skin = mix(colours[3], (255, 214, 186), 0.6)
        if inside(u, v - 0.02, 0.165, 0.155):
            if v < -0.06 + fringe * math.cos(u * 16):
                return colours[1]
            for side in (-0.065, 0.065):
                if inside(u - side, v - 0.02, 0.022, 0.016):
                    return colours[0]
            if inside(u, v - 0.105, 0.035, 0.006):
                return mix(skin, (190, 60, 70), 0.7)
            return mix(skin, colours[1], 0.18 + u)
        if abs(u) < 0.055 and 0.1 < v < 0.24:
            return mix(skin, colours[0], 0.25)
        if inside(u, v + 0.02, 0.235, 0.205) or (abs(u) < 0.225 and 0 < v < long and abs(u) > 0.1):
            return mix(colours[1], colours[0], 0.15 + abs(math.sin(u * 60)) * 0.25)
        if inside(u, v - 0.62, 0.44, 0.4):
            return mix(colours[2], colours[0], 0.25 + 0.3 * (int(u * 40 + 99) % 5 == 0))
        away = math.hypot(u, v + 0.05)
        return mix(mix(colours[2], colours[3], 0.55 - away * 1.1), colours[0], y * 0.5)
    return scene


def flowers(colours, luck):
    heads = sorted([(luck.uniform(0.1, 0.9), luck.uniform(0.1, 0.75), luck.uniform(0.07, 0.15),
                     luck.randrange(5, 9), luck.random()) for _ in range(9)], key=lambda f: f[2])

    def scene(x, y):
        for cx, cy, size, petals, turn in reversed(heads):
            u, v = x - cx, (y - cy) * HEIGHT / WIDTH
            away = math.hypot(u, v) / size
            angle = math.atan2(v, u) + turn * 6
            if away < 0.28:
                return colours[3]
            if away < 0.55 + 0.45 * abs(math.cos(petals * angle / 2)):
                return mix(mix(colours[1], colours[3], 0.25 + 0.3 * turn), colours[2], away * 0.5)
        for cx, cy, size, _, turn in heads:
            if y > cy and abs(x - cx - 0.05 * math.sin((y - cy) * 6 + turn * 6)) < 0.009:
                return mix((58, 110, 70), colours[0], 0.3)
        return mix(mix((238, 232, 216), colours[2], 0.25), colours[0], y * 0.25)
    return scene


def deco(colours, luck):
    rays, base = luck.choice((16, 20, 24)), luck.uniform(0.55, 0.7)

    def scene(x, y):
        if min(x, 1 - x) < 0.05 or min(y, 1 - y) < 0.034:
            return colours[0]
        if min(x, 1 - x) < 0.07 or min(y, 1 - y) < 0.048:
            return colours[3]
        u, v = x - 0.5, (y - base) * HEIGHT / WIDTH
        away = math.hypot(u, v)
        if v > 0:
            return mix(colours[0], colours[1], 0.6 * (int(v * 22) % 2) + 0.2)
        if away < 0.16:
            return mix(colours[3], colours[2], away * 4)
        if int(away * 40) % 9 == 0:
            return colours[3]
        odd = int(math.atan2(-v, u) / math.pi * rays) % 2
        return mix(colours[1] if odd else colours[2], colours[0], away * 0.75)
    return scene


def scales(colours, luck):
    size = luck.uniform(0.3, 0.4)

    def scene(x, y):
        best, tone = 9, 0
        for row in range(int(y * HEIGHT / WIDTH / (size / 4)) - 1, -1, -1):
            top = row * size / 4 + size / 2
            shift = (row % 2) * size / 2
            cell = round((x - shift) / size) * size + shift
            away = math.hypot(x - cell, y * HEIGHT / WIDTH - top) / (size / 2)
            if away < 1:
                best, tone = away, row
                break
        if best > 1:
            return colours[0]
        ring = int(best * 4)
        return mix(colours[ring % 2 + 1], colours[3] if ring == 3 else colours[0],
                   0.75 if ring == 3 else 0.25 + 0.015 * tone)
    return scene


SCENES = {scene.__name__: scene for scene in (mountains, city, sea, forest, space, portrait,
                                              flowers, deco, scales)}
#        dark, middle, light and accent
COLOURS = [((24, 18, 52), (122, 52, 124), (236, 132, 116), (255, 226, 170)),
           ((10, 28, 48), (24, 92, 122), (112, 184, 188), (250, 244, 214)),
           ((34, 22, 24), (150, 62, 42), (228, 152, 84), (255, 228, 160)),
           ((16, 34, 30), (40, 104, 84), (150, 196, 150), (246, 240, 200)),
           ((20, 16, 40), (76, 60, 168), (164, 132, 230), (255, 196, 236)),
           ((14, 14, 22), (34, 66, 130), (214, 66, 128), (120, 240, 255)),
           ((40, 30, 36), (168, 84, 100), (238, 176, 170), (255, 240, 224)),
           ((26, 30, 40), (88, 104, 126), (176, 188, 200), (250, 236, 206)),
           ((44, 18, 22), (172, 36, 52), (226, 120, 92), (248, 214, 150))]


def chunk(name, content):
    return (struct.pack(">I", len(content)) + name + content
            + struct.pack(">I", zlib.crc32(name + content)))


def picture(name, number):
    """A PNG of a scene, in one of the colours."""
    luck = random.Random("%s %d" % (name, number))
    scene = SCENES[name](COLOURS[number % len(COLOURS)], luck)
    rows = bytearray()
    for y in range(HEIGHT):
        row = bytearray(1)
        for x in range(WIDTH):
            colour = scene((x + 0.5) / WIDTH, (y + 0.5) / HEIGHT)
            row += bytes(min(max(int(part), 0), 255) for part in colour) * SCALE
        rows += row * SCALE
    head = struct.pack(">IIBBBBB", WIDTH * SCALE, HEIGHT * SCALE, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 6))
            + chunk(b"IEND", b""))


# ── Models ──

def sdxl(rank):
    return parts.sdxl_lora(rank, rank / 2)


def sd1(rank):
    return parts.sd1_lora(rank, rank / 2)


def flux(rank):
    return parts.flux_kohya(rank, rank / 2)


def checkpoint(_):
    return (parts.sd1_unet() + [("first_stage_model." + n, d, s, v)
                                for n, d, s, v in parts.tensors(parts.SD_VAE)])


def vae(_):
    return parts.tensors(parts.SD_VAE)


def language_model(layers):
    """A Llama whose projections are FP8 with a scale each."""
    rows = []
    for name, dtype, shape, _ in parts.llama(layers, 2048, 512, 32000):
        is_scaled = name.endswith("_proj.weight")
        rows.append((name, "F8_E4M3" if is_scaled else dtype, shape, None))
        if is_scaled:
            rows.append((name + "_scale", "F32", [shape[0], 1], None))
    return rows


def embedding(vectors):
    return [("emb_params", "F16", [vectors, 768], None)]


SPECS = {"SDXL 1.0": (sdxl, "sdxl"), "Pony": (sdxl, "pony"), "Illustrious": (sdxl, "illustrious"),
         "SD 1.5": (sd1, "sd15"), "Flux.1 D": (flux, "flux")}
# name, base, rank, scene, colours, level, words, tags, description
LORAS = """
Moonlit Harbor|SDXL 1.0|16|sea|1|1|moonlit harbor; moonlit harbor, fishing boats|landscape, sea, night|Still water and a low moon. Weight 0.7 to 0.9.
Neon Rain|Illustrious|32|city|5|1|neonrain; neonrain, wet street, reflections|city, cyberpunk, night|Signs, puddles and umbrellas.
Velvet Portrait|Pony|16|portrait|6|2|vlvt portrait|portrait, woman, lighting|Soft key light from the left.
Ink and Gold|SDXL 1.0|8|scales|7|1|inkgold; gold leaf; brush lines|pattern, ink, gold|Brush lines on gold leaf.
Desert Nomad|Flux.1 D|16|mountains|2|1|nomad, windswept cloak|landscape, character|Long shadows, warm haze.
Botanical Plate|SDXL 1.0|16|flowers|3|1|btncl plate; cross section, labels|illustration, plants|Engraved plates of the nineteenth century.
Aurora Sky|Flux.1 D|32|forest|4|1|aurora sky; green aurora over firs|landscape, night|Green bands over dark firs.
Art Deco Poster|SDXL 1.0|16|deco|8|1|artdeco poster; brass; sunburst|poster, retro|Sunbursts and brass.
Retro Anime Screencap|Illustrious|32|portrait|4|2|retro anime screencap|anime, retro|Cel shading as in 1989.
Great Wave|SDXL 1.0|8|scales|1|1|ukiyoe wave|pattern, woodblock|Seigaiha from woodblock prints.
Ringed Worlds|Flux.1 D|16|space|0|1|ringed planet|space, sci-fi|Gas giants with rings.
Misty Pines|SD 1.5|64|forest|7|1|mistypines|landscape, fog|Trained on 60 photographs.
Studio Softbox|SD 1.5|32|portrait|2|1|studio light, softbox|portrait, photography|Two lights, grey backdrop.
Velvet Night|Pony|16|portrait|0|8|vlvtnight|woman, night|Its pictures are rated X: hidden until you ask for them.
Wildflower Field|Illustrious|16|flowers|6|1|wildflwr|plants, summer|Loose strokes, bright field.
Skyline at Dusk|SD 1.5|16|city|0|1|skyline dusk|city, evening|Towers over a harbour.
Paper Mountains|SDXL 1.0|16|mountains|4|1|paper cut|papercraft, landscape|Layers of cut paper.
夏の海|Illustrious|16|sea|4|1|夏の海, summer sea|anime, sea|Trained on 120 frames.
Cinnabar Court|Pony|32|deco|2|4|cinnabar|interior, pattern|Lacquer and brass.
Cold Orbit|SDXL 1.0|8|space|1|1|coldorbit|space|Ice and distance.
Lantern Street|Illustrious|16|city|2|1|lanternst|city, night|Paper lanterns in the rain.
Alpine Morning|Flux.1 D|8|mountains|1|1|alpine morning; first light|landscape|First light on snow.
Rose Window|SDXL 1.0|16|deco|0|1|rosewindow|glass, pattern|Stained glass.
Salt Flats|SD 1.5|8|sea|2|1|saltflats|landscape|Mirror of the sky.
Detail Enhancer|SDXL 1.0|4|scales|3|0||tool, detail|A slider: -1 to 2. It has no trigger words.
Fir and Ember|Flux.1 D|16|forest|2|1|fir ember|landscape, autumn|Low sun in the trees.
""".strip().splitlines()
AUTHORS = ["alkaid", "Renard_42", "mio", "PixelSmith", "tensorfox", "atelier9", "K. Varga"]


def version(i, fields, digest):
    """What CivitAI answers about a version."""
    name, base, _, _, _, level, words, tags, text = fields
    image = {"url": "https://image.civitai.com/x/%d.jpeg" % i, "width": 832, "height": 1216,
             "type": "image", "nsfwLevel": int(level), "meta": None}
    return {"id": 700100 + 37 * i, "modelId": 410050 + 91 * i, "name": "v%d.%d" % (i % 3 + 1, i % 2),
            "baseModel": base, "publishedAt": "202%d-%02d-%02dT09:00:00.000Z" % (
                4 + i % 3, i * 5 % 12 + 1, i * 7 % 28 + 1),
            "trainedWords": [word.strip() for word in words.split(";") if word], "nsfwLevel": 1,
            "model": {"name": name, "type": "LORA", "nsfw": int(level) > 4, "poi": False,
                      "description": "<p>%s</p>" % text, "tags": tags.split(", "),
                      "allowNoCredit": bool(i % 2), "allowCommercialUse": ["Image"],
                      "allowDerivatives": True, "allowDifferentLicense": bool(i % 3)},
            "creator": {"username": AUTHORS[i % len(AUTHORS)]},
            "files": [{"name": "x.safetensors", "type": "Model", "primary": True,
                       "hashes": {"SHA256": digest.upper(), "AutoV3": digest[20:32].upper()}}],
            "images": [image]}


def training(i, fields):
    """Metadata as kohya's scripts write them."""
    name, base, rank, _, _, _, words, tags, _ = fields
    said = words.replace(";", ",").split(",") if words else []
    captions = {tag: 40 - 5 * k for k, tag in enumerate(tags.split(", "))}
    captions.update((word.strip(), 84) for word in said)
    return {"ss_output_name": name, "ss_network_dim": rank, "ss_network_alpha": str(int(rank) // 2),
            "ss_network_module": "networks.lora", "ss_num_train_images": "84",
            "ss_learning_rate": "0.0004", "ss_optimizer": "AdamW8bit", "ss_num_epochs": "10",
            "ss_base_model_version": {"SD 1.5": "sd_v1", "Flux.1 D": "flux1"}.get(
                base, "sdxl_base_v1-0"),
            "ss_training_finished_at": str(1711900000.0 + 1e6 * i),
            "ss_tag_frequency": json.dumps({"10_set": captions} if words else {}),
            "modelspec.title": name, "modelspec.license": ("openrail++", "apache-2.0")[i % 2]}


def keep(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes)
                   else json.dumps(content, indent=2).encode())


def write_model(path, rows, metadata):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Model(rows, metadata).write(path)


def write_lora(folder, i, line, pictures):
    fields = line.split("|")
    name, base, rank, scene, colours, level, words, _, _ = fields
    build, place = SPECS[base]
    stem = "".join(c if c.isalnum() else "_" for c in name.lower())
    at = os.path.join(folder, "loras", place, stem)
    digest = hashlib.sha256(name.encode()).hexdigest()
    write_model(at + ".safetensors", build(int(rank)), training(i, fields))
    if pictures:
        keep(at + ".preview.png", picture(scene, int(colours)))
    if i % 3 == 1:
        keep(at + ".metadata.json", {
            "file_name": stem, "model_name": name, "base_model": base, "sha256": digest,
            "preview_url": stem + ".preview.png", "preview_nsfw_level": int(level), "notes": "",
            "usage_tips": json.dumps({"strength": round(0.6 + 0.1 * (i % 4), 1)}), "tags": [],
            "civitai": version(i, fields, digest), "trainedWords": []})
    else:
        keep(at + ".civitai.info", version(i, fields, digest))
    if i % 4 == 0:
        keep(at + ".json", {"description": fields[-1], "activation text": words.split(";")[0],
                            "preferred weight": 0.8, "negative text": "blurry, watermark"})


def main(words):
    pictures = "--no-pictures" not in words
    words = [word for word in words if word != "--no-pictures"]
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    folder = words[0]
    for i, line in enumerate(LORAS):
        write_lora(folder, i, line, pictures)
    for name, scene, colours in (("dreamfields_v5", "mountains", 0), ("inkwell_v2", "scales", 7)):
        at = os.path.join(folder, "checkpoints", name)
        write_model(at + ".safetensors", checkpoint(0), {"modelspec.title": name.replace("_", " ")})
        if pictures:
            keep(at + ".preview.png", picture(scene, colours))
    write_model(os.path.join(folder, "vae", "soft-colours.safetensors"), vae(0), {"format": "pt"})
    for name, vectors in (("clean-hands", 8), ("low-quality-neg", 16)):
        write_model(os.path.join(folder, "embeddings", name + ".safetensors"), embedding(vectors), {})
    write_model(os.path.join(folder, "llm", "nimbus-1b-fp8.safetensors"), language_model(12), {})
    # A download that was cut short.
    whole = os.path.join(folder, "loras", "sdxl", "cold_orbit.safetensors")
    with open(whole, "rb") as file:
        keep(os.path.join(folder, "loras", "sdxl", "half_a_file.safetensors"), file.read(200000))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
