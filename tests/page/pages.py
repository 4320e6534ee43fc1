#!/usr/bin/env python3
"""Write pages of synthetic models: the scripts and styles of page/, joined by cmake/page.cmake,
around data by the contract of page/types.d.ts.

usage: tests/page/pages.py catalog COUNT FOLDER [--embed] [--hostile]
       tests/page/pages.py model llm|sdxl|lora|moe|hostile FOLDER
       tests/page/pages.py join shared|catalog|model|style|style-catalog|style-model

writes FOLDER/catalogue.html with pictures below FOLDER/models, or FOLDER/model.html, and prints
its path. The same words write the same bytes.
"""

import base64
import functools
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# Seconds for what a test waits for: a share of its suite's limit, so that a busy machine has time.
ACTION_S = int(os.environ.get("SFT_LIMIT", "900")) / 3
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "page")
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
ESCAPED = re.compile("[<>&\u2028\u2029]")
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src 'self' file: data:; media-src 'self' file: data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def soon(look, fits, pause=time.sleep):
    """What look gives once that fits, or at the end of ACTION_S."""
    begin = time.monotonic()
    while True:
        found = look()
        waited = time.monotonic() - begin
        if fits(found) or waited > ACTION_S:
            return found
        pause(0.005 if waited < 0.1 else 0.05)


def listed():
    """Script or style -> its files, of modules.txt."""
    with open(os.path.join(PAGE, "modules.txt"), encoding="utf-8") as text:
        lines = [line.split() for line in text if line.strip() and not line.startswith("#")]
    return {words[0]: words[1:] for words in lines}


@functools.cache
def joined():
    """Script or style -> its text, as the build joins it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [f"-DPAGE={PAGE}", f"-DOUT={folder}", "-P", os.path.join(ROOT, "cmake", "page.cmake")]
        subprocess.run(["cmake", *words], check=True)
        return {script: read(os.path.join(folder, script)) for script in listed()}


def join(script):
    """The files of one row of modules.txt, joined."""
    return joined()[script]


def whole(script):
    """The same files one after another, with nothing removed but what modules need."""
    text = "\n".join(read(os.path.join(PAGE, name)) for name in listed()[script])
    return re.sub(r"^(import [^\n]*|export )", "", text, flags=re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def block(name, value):
    """A block of data as the command writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = ESCAPED.sub(lambda one: ESCAPES[one.group()], text)
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def table(rows, more):
    """What is shown without scripts."""
    head = "<tr><th>Name<th>File<th>Base<th>Trigger words"
    lines = []
    for i in range(min(rows["count"], 1000)):
        folder = rows["dict"]["folder"][rows["folder"][i]]
        base = rows["dict"]["base"][rows["base"][i]][1] if rows["base"][i] >= 0 else ""
        info = more[i // rows["block"]]["models"][i % rows["block"]]
        words = ", ".join(word["text"] for word in info.get("trigger_words", []))
        cells = [
            rows["name"][i],
            (folder + "/" if folder else "") + rows["file"][i],
            base,
            rows["fault"].get(str(i), ["", words])[1],
        ]
        lines.append("<tr>" + "".join(f"<td>{html.escape(shown(cell))}" for cell in cells))
    return f"<noscript><table>{head}\n" + "\n".join(lines) + "</table></noscript>\n"


def shown(text):
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda one: f"\\u{{{ord(one.group()):x}}}", text)


def page(kind, title, blocks, without=""):
    """A complete page: kind is catalog or model; without: what is shown without scripts."""
    script = join("shared") + join(kind)
    style = join("style") + join("style-" + kind)
    policy = POLICY.format(script=digest(script), style=digest(style))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(shown(title))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{without}{blocks}"
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def catalogue_page(rows, more, embedded=()):
    blocks = block("rows", rows)
    blocks += "".join(block(f"more-{k}", part) for k, part in enumerate(more))
    blocks += "".join(block(f"embed-{k}", url) for k, url in enumerate(embedded))
    return page("catalog", rows["title"], blocks, table(rows, more))


def model_page(data):
    return page(
        "model",
        data["title"],
        block("model", data),
        "<noscript><p>This page needs JavaScript.</p></noscript>\n",
    )


def keep(folder, name, content):
    """Write a file below folder; its path."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    return path


def main(words):
    sys.path.insert(0, HERE)
    import synthetic
    import tensors

    options = {word for word in words if word.startswith("--")}
    words = [word for word in words if word not in options]
    if len(words) == 2 and words[0] == "join":
        print(join(words[1]), end="")
    elif len(words) == 3 and words[0] == "catalog":
        print(
            synthetic.write_catalogue(
                int(words[1]), words[2], "--embed" in options, "--hostile" in options
            )
        )
    elif len(words) == 3 and words[0] == "model" and words[1] in tensors.MODELS:
        print(keep(words[2], "model.html", model_page(tensors.MODELS[words[1]]())))
    else:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
