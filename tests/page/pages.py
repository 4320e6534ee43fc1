#!/usr/bin/env python3
"""Write pages of synthetic models: the scripts and styles of page/, joined as cmake/page.cmake
joins them, around data by the contract of page/types.d.ts.

usage: tests/page/pages.py catalog COUNT FOLDER [--embed] [--hostile]
       tests/page/pages.py model llm|sdxl|lora|moe|hostile FOLDER
       tests/page/pages.py join shared|catalog|model|style|style-catalog|style-model

writes FOLDER/catalogue.html with pictures below FOLDER/models, or FOLDER/model.html, and prints
its path. The same words write the same bytes.
"""

import base64
import hashlib
import html
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "page")
# What joining changes, in this order.
SCRIPT = [
    (r"(^|\n)import [^\n]*", ""),
    (r"\nexport ", r"\n"),
    (r"/\*\* @[^*]*\*/ [(]([A-Za-z0-9_.]+)[)]", r"\1"),
    (r"/\*\* @[^*]*\*/ ?", ""),
]
ALL = [(r"\n[ ]*//[^\n]*", ""), (r"\n[ ]*/\*[^*]*\*+([^/*][^*]*\*+)*/", ""), (r"\n[ \n]+", r"\n")]
# Comments within lines, white space, signs that separate nothing; let for const, which tsc has checked.
# The program is the same: test_spaces of unit.py.
SPACES = [
    (r"([;,{)]) +//[^\n]*", r"\1"),
    (r"/[*][^*]*[*]/ ?", ""),
        (r" (=>|===|!==|&&|[|][|]|[?][?]|[<>+*/|-]?=|[?:<>+%-]) ", r"\1"),
    (r"(if|for|while|return|const|of|let|[)]) ([][({}])", r"\1\2"),
    (r" [}]", "}"),
    (r"('([^'\\\n]|\\.)*'|`[^`]*`|[({});,:?<>=!&]) ?", r"\1"),
    (r"([\[\](){};,:?>|&=])\n", r"\1"),
    (r"\n([\]).?:|&}])", r"\1"),
    (r"([^0-9^]),([]}])", r"\1\2"),
    (r";\}", "}"),
    (r"return ('|`)", r"return\1"),
    (r"([^A-Za-z0-9_$.])const([{[ ])", r"\1let\2"),
    (r"([^A-Za-z0-9_$])[(]([A-Za-z]+)[)]=>", r"\1\2=>"),
]
STYLE = [
    (r" ([{>/!])", r"\1"),
    (r"([>/]) ", r"\1"),
    (r"([:,]) ", r"\1"),
    (r"([{};,])[ \n]", r"\1"),
    (r" ?;? ?\}", "}"),
]
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
ESCAPED = re.compile("[<>&\u2028\u2029]")
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src 'self' file: data:; media-src 'self' file: data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def listed():
    """Script or style -> its files, of modules.txt."""
    with open(os.path.join(PAGE, "modules.txt"), encoding="utf-8") as text:
        lines = [line.split() for line in text if line.strip() and not line.startswith("#")]
    return {words[0]: words[1:] for words in lines}


def join(script, spaces=SPACES):
    """The files of one row of modules.txt, joined; those that are not there are left out."""
    parts = ["\n"]
    for name in listed()[script]:
        path = os.path.join(PAGE, name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as text:
            part = text.read()
        rules = SCRIPT + ALL + spaces if name.endswith(".js") else ALL + STYLE
        part = "\n" + part
        for pattern, becomes in rules:
            part = re.sub(pattern, becomes, part)
        parts.append(part)
    return "".join(parts)


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
            rows["error"].get(str(i), words),
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
