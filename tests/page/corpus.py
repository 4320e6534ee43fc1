"""Text that has broken pages of others, in every field that the page shows."""

import hashlib

import pages
import pictures
import synthetic
import tensors
from synthetic import Fact

RUN = "window.evil=1"
# Each must be shown as it is, with what cannot be seen as \u{…}, and do nothing.
STRINGS = [
    # elements and what ends them
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</SCRIPT ><script>{RUN}</script>",
    f"<!--<script>{RUN}",
    f"--><script>{RUN}</script>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[x]]>",
    "<!DOCTYPE x>",
    "<?php x ?>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</noscript><script>{RUN}</script>",
    f"</table><script>{RUN}</script>",
    f"</template><img src=x onerror={RUN}>",
    f"<img src=x onerror={RUN}>",
    f"<img src='x' onerror='{RUN}'>",
    f"<svg onload={RUN}>",
    f"<svg/onload={RUN}//",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    "<iframe src=https://evil.example/>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<body onload={RUN}>",
    f"<marquee onstart={RUN}>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>*{display:none}</style>",
    "<style>guangying</style>",
    "<style>@import 'https://evil.example/x.css'</style>",
    "fym <artist>",
    "<lora:x:1>",
    "<b>bold</b>",
    "<a href=javascript:window.evil=1>x</a>",
    "<form action=https://evil.example/><button>",
    "<object data=https://evil.example/x>",
    "<embed src=https://evil.example/x>",
    "<plaintext>",
    "<xmp>",
    "<noscript>",
    "<template>",
    # attributes
    f'" onmouseover="{RUN}',
    f"' onmouseover='{RUN}",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"` onmouseover=`{RUN}",
    f'" autofocus onfocus="{RUN}" x="',
    '" style="background:url(https://evil.example/x)',
    '" srcset="https://evil.example/x.png 2x',
    "x onclick=alert(1)",
    "=cmd|'/C calc'!A0",
    '"quoted"',
    "it's",
    "`backtick`",
    "a\\b",
    "\\",
    '\\"',
    "\\u003cscript\\u003e",
    # templates and other languages
    "{{constructor.constructor('window.evil=1')()}}",
    "${window.evil=1}",
    "#{window.evil=1}",
    "<%= window.evil=1 %>",
    "{{{x}}}",
    "[[x]]",
    "{% raw %}",
    "%s%n%d",
    "%00",
    "%3Cscript%3E",
    "&lt;script&gt;",
    "&amp;",
    "&#60;script&#62;",
    "&nbsp",
    "&#0;",
    "'; DROP TABLE models;--",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "prototype",
    "null",
    "undefined",
    "NaN",
    "true",
    "-1",
    "0",
    "1e999",
    "[object Object]",
    # addresses and paths
    "javascript:window.evil=1",
    "JaVaScRiPt:window.evil=1",
    " javascript:window.evil=1",
    "java\tscript:window.evil=1",
    "data:text/html,<script>window.evil=1</script>",
    "data:image/svg+xml,<svg onload='window.evil=1'>",
    "vbscript:msgbox(1)",
    "//evil.example/x.png",
    "https://evil.example/x.png",
    "https://civitai.com.evil.example/models/1",
    "https://user:pass@evil.example/",
    "\\\\evil.example\\share\\x.png",
    "file:///etc/passwd",
    "file://evil.example/share/x.png",
    "../../../etc/passwd",
    "C:\\Windows\\x.png",
    "blob:null/x",
    "about:blank",
    "http://127.0.0.1:1/x",
    "#q=evil",
    "?x#y%z",
    "a#b?c%d.png",
    "CON",
    "aux.png",
    # characters
    "a\u2028b",
    "a\u2029b",
    "a\u202egnp.exe",
    "\u202d\u202e\u202a\u202b\u202c",
    "\u2066\u2067\u2068\u2069",
    "a\u200bb\u200cc\u200dd",
    "\ufeffbom",
    "soft\u00adhyphen",
    "tag\U000e0041\U000e0042",
    "\u061c\u200e\u200f",
    "word\u2060joiner",
    "\u3164filler\uffa0",
    "join\u034fer",
    "\u0600\u06dd\U00013430",
    "x\ufe0fy",
    "tab\there",
    "line\nbreak",
    "line\r\nbreak",
    "bell\x07",
    "escape \x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "del\x7f",
    "c1\x85next\x9b31m",
    "\x01\x02\x03",
    "back\x08\x08space",
    "form\x0cfeed",
    "vertical\x0btab",
    "Z\u0351\u036b\u0343a\u0363\u036a\u033d\u0308l\u0329\u031f\u0320g\u0356\u0323\u034do\u0321\u0345"
    + "\u0301" * 60,
    "\u0301",
    "e\u0301" * 40,
    "\u0489" * 30,
    "שלום עולם",
    "مرحبا بالعالم",
    "日本語のモデル",
    "한국어",
    "ภาษาไทย",
    "हिन्दी",
    "👩\u200d👩\u200d👧\u200d👦",
    "🏳\ufe0f\u200d🌈",
    "𝓕𝓪𝓷𝓬𝔂",
    "ﬁﬂ ligature",
    "İstanbul",
    "ß",
    "Ａｌｐｈａ",
    "\U0001d173",
    "\ue000private",
    "\ufffd",
    "\ufffe",
    "\U0010ffff",
    "ﷺ" * 20,
    "﷽",
    # sizes
    "w" * 3000,
    "long word " * 300,
    "\U0001f600" * 500,
    "(" * 500,
    "<" * 500,
    "a,b,c,,,;",
    ",",
    " ",
    "   leading and trailing   ",
    ".",
    "..",
    "-",
    "--help",
    "~",
    "$HOME",
    "`id`",
    "$(id)",
    "; rm -rf ~",
    "| cat",
    "&& ls",
    "!history",
    "*",
    "nul\u2400",
]
BREAKS = "\t\n\x0b\x0c\r\x85\u2028\u2029"
DROPPED = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
}


def clean(text):
    """What the clipboard gets: the rule of page/text.js, written a second time."""
    made = []
    for one in text:
        if one in BREAKS:
            if not made or made[-1] != "\n":
                made.append("\n")
        else:
            made.append(one)
    return "".join(
        " " if one == "\n" else one for one in made if one == "\n" or ord(one) not in DROPPED
    )


def model(i, text, picture):
    """A model that has text wherever there can be text."""
    source = "sidecar:" + text
    name, stem = text, f"{i:03} {text[:60]}"
    sha = hashlib.sha256(text.encode()).hexdigest()

    def fact(trust=85):
        return Fact(
            text, source, trust, [(text, "header:" + text, 75), (f"other {text}", "filename", 45)]
        )

    fields = (
        "variant base_model base_checkpoint repo name version_name description version_description author license date "
        "usage_hint prediction_type resolution negative_prompt language quantization family architecture"
    ).split()
    info = {
        "path": f"models/{text}/{stem}.safetensors",
        "file": {
            "bytes": 1000 + i,
            "tensors": 4,
            "parameters": 500,
            "dtypes": {text: {"tensors": 4, "parameters": 500, "bytes": 1000}},
        },
        "model": {
            **{field: fact() for field in fields},
            "kind": Fact("adapter", "tensors", 100),
            "tags": Fact([text, "shared tag"], source, 85),
            "notes": [{"text": text, "source": source}],
            "precision": text,
            "parameters": 500,
            "evidence": [text],
            "components": [
                {"part": text, "architecture": text, "dtype": text, "bytes": 5, "parameters": 2}
            ],
            "preferred_weight": Fact(0.8, source, 90),
        },
        "adapter": {
            "type": text,
            "format": text,
            "rank": {"min": 4, "max": 4, "mode": 4},
            "targets": [text],
            "blocks": [text],
            "modules": 2,
        },
        "trigger_words": [
            {
                "text": text,
                "prompt": text,
                "source": source,
                "trust": 85,
                "group": 0,
                "folder": text,
                "coverage": 0.5,
            },
            {
                "text": f"second {text}",
                "prompt": f"second {text}",
                "source": source,
                "trust": 85,
                "group": 1,
            },
        ],
        "prompts": {"a1111": f"<lora:{text}:0.8> {text}", "comfy": f"<lora:{text}:0.8> {text}"},
        "frequent_tags": [
            {"tag": text, "count": 9, "coverage": 0.9},
            {"tag": "usual", "count": 5, "coverage": 0.5},
        ],
        "example_prompts": [
            {
                "positive": text,
                "negative": text,
                "sampler": text,
                "seed": 1,
                "steps": 20,
                "cfg": 7,
                "source": source,
            }
        ],
        "civitai": {
            "model_id": 1000 + i,
            "version_id": 2000 + i,
            "air": text,
            "url": text,
            "source": source,
            "trust": 85,
            "match": text,
            "published_at": text,
            "permissions": {
                "credit": True,
                "commercial": [text],
                "derivatives": False,
                "relicense": True,
            },
        },
        "links": [
            {"url": text, "source": source},
            {"url": "https://evil.example/" + text, "source": source},
        ],
        "training": {
            "tool": text,
            "tool_version": text,
            "started_at": text,
            "finished_at": text,
            "epoch": 3,
            "images": 12,
            "learning_rate": 0.1,
            "optimizer": text,
            "scheduler": text,
            "resolution": text,
            "network_module": text,
            "network_args": {text: text, "algo": text},
            "mixed_precision": text,
            "comment": text,
            "session_id": text,
            "base": {"file": text, "sha256": text, "autov1": text},
            "vae": {"file": text},
            "datasets": [
                {
                    "folder": text,
                    "images": 3,
                    "repeats": 2,
                    "class_tokens": text,
                    "resolution": text,
                }
            ],
            "buckets": [{"resolution": text, "count": 3}],
        },
        "merge": {
            "tool": text,
            "method": text,
            "recipe": {text: [text]},
            "sources": [{"name": text, "sha256": text, "weight": 0.5}],
        },
        "hashes": {
            "recorded": [{"algo": text, "value": text, "source": source}],
            "computed": {"sha256": sha, text: text},
            "mismatches": [{"algo": text, "recorded": text, "computed": text, "source": source}],
        },
        "sidecars": [{"path": text, "kind": text, "match": text, "error": text}],
        "privacy": [{"key": text, "what": text}],
        "conflicts": [
            {
                "field": "base_model",
                "candidates": [
                    {"value": text, "source": source, "trust": 85},
                    {"value": [text], "source": text, "trust": 75},
                ],
            }
        ],
        "metadata_keys": [text, "format"],
        "cut": ["description"],
        "pictures": picture,
    }
    flags = synthetic.CONFLICTS | synthetic.HASHED | synthetic.CIVITAI | synthetic.DIFFERS
    if i % 10 == 9:
        flags |= synthetic.BROKEN
        info["error"] = {"code": text, "message": text, "hint": text}
    return {
        "folder": text,
        "file": f"{stem}.safetensors",
        "name": name,
        "kind": ("adapter", "adapter" if i else text),
        "base": (text, text),
        "architecture": (text, text),
        "precision": (text, text),
        "licence": text,
        "author": text,
        "what": text,
        "bytes": 1000 + i,
        "parameters": 500,
        "rank": 4,
        "date": text[:10],
        "modified": 20000 + i,
        "tags": [text, "shared tag"],
        "hash": f"{sha[:12]} {text[:12]}",
        "copies": -1,
        "flags": flags,
        "rating": 5,
        "words": info["trigger_words"],
        "pictures": picture,
        "info": info,
    }


def models(folder):
    """One model for each string; a third have it as the address of their picture, too."""
    made = []
    for i, text in enumerate(STRINGS):
        if i % 3 == 0:
            picture = [
                {"href": text, "width": 256, "height": 374, "level": 1},
                {"href": "", "why": text},
            ]
        else:
            content, width, height = pictures.picture(i)
            path = f"models/picture #{i} 100%?é.png"
            if folder:
                pages.keep(folder, path, content)
            picture = [{"href": synthetic.href(path), "width": width, "height": height, "level": 1}]
        made.append(model(i, text, picture))
    return made


def catalogue(folder=None):
    rows, more = synthetic.columns(
        models(folder), f"</title><script>{RUN}</script>", (STRINGS[1], "models")
    )
    return rows, more, []


def model_page():
    """A page about one model whose every name is one of the strings."""
    text = STRINGS[1]
    one = model(9, text, [])
    info = dict(one["info"], metadata={string: string for string in STRINGS})
    names = [(string, "F16", [4, i + 1]) for i, string in enumerate(STRINGS)]
    names += [(f"model.layers.{string}.weight", string[:40], [8]) for string in STRINGS[:60]]
    page = tensors.page_of(text, names, "adapter", "sdxl", deep=True)
    page["info"] = tensors.expand(
        {**info, "model": {**info["model"], "kind": Fact("adapter", "tensors", 100)}}
    )
    page["files"], page["shard"] = STRINGS[:2], [i % 2 for i in range(page["count"])]
    page["norms"] = [
        {"module": string, "norm": 0.5 + i, "rank": 4} for i, string in enumerate(STRINGS)
    ]
    return page
