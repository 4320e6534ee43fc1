"""Runs the steps of docs/records.md, "A new model in five minutes", as they stand: makes the models
that it is about, writes the files that it shows, runs its commands and compares what they print.

A block without a language that stands behind a command's is what it prints; another one whose
paragraph above ends in `NAME`: is that file; a fragment is neither."""
import json
import os
import re
import struct
import subprocess
import sys

PAGE = os.path.join(sys.argv[1], "docs", "records.md")
WIDTH, BLOCKS = 2304, 20


def write(path, shapes):
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


model = {"aurora_in.weight": [WIDTH, 64], "final.linear.weight": [64, WIDTH],
         "final.guidance.weight": [WIDTH, 256]}
lora = {}
for i in range(BLOCKS):
    for leaf in ("gate", "to_q"):
        model[f"blocks.{i}.mixer.{leaf}.weight"] = [WIDTH, WIDTH]
    lora[f"lora_unet_blocks_{i}_mixer_to_q.lora_down.weight"] = [4, WIDTH]
    lora[f"lora_unet_blocks_{i}_mixer_to_q.lora_up.weight"] = [WIDTH, 4]
write("aurora-xl.safetensors", model)
write("aurora-lora.safetensors", lora)
os.mkdir("models")
os.rename("aurora-xl.safetensors", "models/aurora-xl.safetensors")
os.symlink("models/aurora-xl.safetensors", "aurora-xl.safetensors")
os.umask(0o022)

with open(PAGE, encoding="utf-8") as page:
    section = page.read().split("## A new model in five minutes\n")[1].split("\n## ")[0]
blocks = re.finditer(r"^( *)```(\w*)\n(.*?)^ *```\n", section, re.M | re.S)
printed, files, commands, behind = None, 0, 0, 0
for block in blocks:
    indent, language, text = block.groups()
    text = re.sub("^" + indent, "", text, flags=re.M)
    before = section[behind:block.start()].rstrip()
    behind = block.end()
    named = re.search(r"`([\w.-]+\.txt)`:$", before)
    if language == "sh":
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], capture_output=True, text=True)
        commands += 1
        printed = done.stdout
        if done.returncode or done.stderr:
            sys.exit(f"{text}exit status {done.returncode}\n{done.stderr}")
    elif not before and printed is not None:
        if text != printed:
            sys.exit(f"the page has\n{text}printed is\n{printed}")
        printed = None
    elif named:
        files += 1
        with open(named.group(1), "w", encoding="utf-8") as out:
            out.write(text)
print(f"{commands} commands, {files} files")
