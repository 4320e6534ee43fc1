"""What synthetic models are named and described by."""

# id, label, architecture, its label, weight, parameters of a checkpoint, name of the folder
BASES = [
    ("Pony", "sdxl", "SDXL", 22, 2.57e9, "pony"),
    ("Illustrious", "sdxl", "SDXL", 26, 2.57e9, "illustrious"),
    ("SDXL 1.0", "sdxl", "SDXL", 16, 2.57e9, "sdxl"),
    ("SD 1.5", "sd-1", "SD 1", 18, 1.07e9, "sd15"),
    ("Flux.1 D", "flux.1-dev", "FLUX.1 dev", 14, 11.9e9, "flux"),
    ("NoobAI", "sdxl", "SDXL", 7, 2.57e9, "noob"),
    ("Wan Video 2.2 I2V-A14B", "wan-2.2", "Wan 2.2", 4, 14.3e9, "wan"),
    ("Qwen", "qwen-image", "Qwen-Image", 3, 20.4e9, "qwen"),
    ("Hunyuan Video", "hunyuan-video", "HunyuanVideo", 2, 12.8e9, "video"),
    ("ZImageTurbo", "z-image", "Z-Image", 4, 6.2e9, "z-image"),
    ("SD 3.5 Large", "sd-3.5-large", "SD 3.5 Large", 1, 8.1e9, "sd35"),
]
THINGS = """Watercolor|Ink Wash|Neon City|Velvet Portrait|Analog Film|Retro Anime|Glass Sculpture|Oil Impasto|Pixel Sprite
Botanical Plate|Cyber Samurai|Moonlit Harbor|Studio Light|Paper Cut|Art Deco Poster|Detail Enhancer|Add More Details
Hands Fixer|Skin Texture|Cinematic Shot|Isometric Room|Clay Render|Line Art|Ukiyo-e|Gothic Cathedral|Steam Engine
Desert Nomad|Fashion Sketch|Low Poly|Chalk Drawing|Vintage Postcard|Macro Insect|Aurora Sky|Baroque Interior
Mecha Design|Fairy Garden|Storybook|Concept Vehicle|Rain Street|Golden Hour|Tarot Card|Stained Glass|Film Noir
Kawaii Sticker|Dragon Scale|Sea Creature|Old Library|Marble Bust|Street Food|Winter Cabin|Spaceship Hangar
夏の雨|水彩風|墨絵スタイル|Портрет маслом|Éclair pâtissier|Übergröße|صورة قديمة|서울의 밤|Ἀθηνᾶ|Çiçek Bahçesi""".replace(
    "\n", "|"
).split(
    "|"
)
ENDINGS = [
    "",
    "",
    "",
    " Style",
    " XL",
    " v2",
    " v3.1",
    " (experimental)",
    " Slider",
    " Concept",
    " LoRA",
    " - final",
    " [beta]",
    " 1.5",
    " Mix",
    " IL",
]
TAGS = """style|character|concept|anime|photorealistic|portrait|landscape|clothing|woman|man|background|vehicle|animal|building
celebrity|tool|action|poses|fantasy|sci-fi|horror|cute|detail|lighting|film|painting|illustration|watercolor|comic|pixel art
3d|retro|vintage|cyberpunk|mecha|furry|armor|dress|uniform|food|nature|city|interior|space|underwater|texture|sketch|ink
slider|enhancer|anatomy|hands|eyes|hair|nsfw|game|movie|cartoon|logo|typography|product|architecture|fashion|jewelry|weapon""".replace(
    "\n", "|"
).split(
    "|"
)
WORDS = """wtrclr style|inkwash|neon_city|vlvt|analog film photo|retro anime screencap|glsscltr|impasto|pixel sprite|btncl plate
cybersam|moonlit|studio light, softbox|ppr cut|artdeco|detailed|fym <artist>|best quality|skin texture, pores|cnmtc shot|isometric
clay render|lineart, monochrome|ukiyoe|<style>guangying</style>|steampunk|nomad|fashion sketch|lowpoly|chalk|ohwx woman|sks person|1girl, solo""".replace(
    "\n", "|"
).split(
    "|"
)
AUTHORS = [
    "alkaid",
    "Renard_42",
    "mio",
    "PixelSmith",
    "北斎",
    "Dr. Latent",
    "tensorfox",
    "lycoriswave",
    "K. Varga",
    "nobody",
    "atelier9",
    "O'Neill & Sons",
]
LICENCES = [
    "openrail++",
    "apache-2.0",
    "mit",
    "cc-by-nc-4.0",
    "flux-1-dev-non-commercial-license",
    "fair-ai-public-license-1.0-sd",
    "llama3.1",
]
SENTENCES = [
    "Trained on 84 hand-picked images at 1024 px.",
    "Works best between 0.6 and 0.9.",
    "Use it with a low CFG and a simple negative prompt.",
    "Version 2 fixes the oversaturated reds of the first one.",
    "Combine it with a detail LoRA for close-ups.",
    "Not made for photorealistic checkpoints.",
    "The trigger word is optional but makes the effect much stronger.",
    "Thank you to everyone who tested the previews!",
    "Please post your pictures, I look at all of them.",
    "High-resolution fix with a denoising strength of 0.4 is recommended.",
]
OTHER = [  # kind, label, share, bytes, what
    ("checkpoint", "checkpoint", 16, 6.9e9, "checkpoint"),
    ("diffusion_model", "diffusion model", 7, 1.2e10, "diffusion model"),
    ("embedding", "embedding", 10, 9e4, "embedding, 8 vectors"),
    ("vae", "VAE", 4, 3.3e8, "VAE"),
    ("controlnet", "ControlNet", 6, 1.4e9, "ControlNet"),
    ("upscaler", "upscaler", 5, 6.6e7, "upscaler ESRGAN 4x"),
    ("language_model", "language model", 6, 1.6e10, "language model"),
    ("text_encoder", "text encoder", 3, 9.8e9, "text encoder"),
    ("motion_module", "motion module", 1, 1.8e9, "motion module"),
    ("unknown", "unknown", 2, 4e6, "unknown"),
]
