"""Names and values that would do something to a terminal, a table or a folder.

Each text goes into every place that info prints from; then what it printed must hold no
control byte but its own newlines and tabs, a table must keep its columns, JSON must give
the text back, and an exported preview must lie in the folder it was asked for.
"""
import base64
import json
import os
import re

from compose import Model, png
from parts import sdxl_lora

ESC, BEL, CSI8 = "\x1b", "\x07", "\x9b"
TEXTS = (
    [ESC + "[31mred" + ESC + "[0m", ESC + "]0;title" + BEL, ESC + "]8;;http://x" + BEL + "l",
     ESC + "[2J" + ESC + "[H", ESC + "P1$r" + ESC + "\\", CSI8 + "31mred", ESC + "c", BEL * 9,
     ESC + "]52;c;AAAA" + BEL, ESC + "[?1049h", ESC, "a" + ESC, ESC + "[6n", "\x0e\x0f", "\x7f"]
    + ["%sx%sy" % (c, c) for c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
       "\u200e\u200f\u061c"]
    + ["a%sb" % chr(n) for n in range(0, 32)]
    + ["a%sb" % chr(n) for n in (0x80, 0x85, 0x8d, 0x90, 0x9c, 0x9d, 0x9f)]
    + ["line\u2028break", "para\u2029break", "\ufeffbom", "a\tb\tc", "a\r\nb", "a\nb\n\nc",
       "back\\slash", "\\t\\n", "a | b", "quo\"te'", "</script><script>x()</script>",
       "=cmd|' /C calc'!A0", "$(touch x)", "`id`", "%s%n%n%x", "%00", "-rf", "--help", "",
       " ", "\u0000", "a" * 5000, "\u00e9" * 4096, "\U0001f600" * 600, "e" + "\u0301" * 500,
       "../../etc/passwd", "/etc/passwd", "..", ".", "a/../../b", "C:\\x", "con", "a:b",
       "NUL", "\uffff", "\ufffd", "\U0010ffff", "\u200b", "<lora:x:1>", "{", "[1,2",
       "{\"a\":1}", "null", "None", "true", "1e999", "-0", "0x41"])
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
KEYS = ("ss_output_name", "modelspec.title", "modelspec.author", "modelspec.description",
        "modelspec.trigger_phrase", "modelspec.tags", "modelspec.license", "modelspec.date",
        "modelspec.usage_hint", "ss_training_comment", "ss_sd_model_name", "ssmd_keywords",
        "ss_base_model_version", "ss_network_module", "ss_optimizer", "ssmd_source")


def metadata(text):
    meta = {key: text for key in KEYS}
    meta["key " + text[:200]] = "value"
    meta["ss_tag_frequency"] = json.dumps({"10_" + text: {text: 10, "b": 3}})
    meta["ss_dataset_dirs"] = json.dumps({"10_" + text: {"n_repeats": 1, "img_count": 10}})
    meta["modelspec.thumbnail"] = "data:image/png;base64," + base64.b64encode(png()).decode()
    meta["sd_merge_recipe"] = json.dumps({"type": text, "custom_name": text})
    return meta


def sidecars(text):
    return {
        "x.json": {"description": text, "activation text": text, "notes": text,
                   "negative text": text, "sd version": text},
        "x.civitai.info": {"id": 2, "modelId": 1, "name": text, "baseModel": text,
                           "trainedWords": [text, text + "2"], "description": text,
                           "model": {"name": text, "type": text},
                           "images": [{"meta": {"prompt": text, "sampler": text}}],
                           "files": [{"name": text, "sizeKB": 1}]},
        "README.md": "---\nlicense: %s\ntags: [%s]\n---\n%s\n" % (text, text, text),
    }


def file_name(text):
    """What of a text a file name can hold."""
    return text.replace("/", "_").replace("\0", "_").encode()[:200].decode("utf-8", "ignore")


def unsafe(output):
    """The first thing in human text or a table that is not plain, or None."""
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        return "no UTF-8: %s" % error
    found = UNSAFE.search(text)
    if found:
        return "U+%04X in %r" % (ord(found.group()), text[max(0, found.start() - 30):][:60])
    return None


def human(path, run):
    for options in ([], ["-v"], ["--long"], ["-f", "name,description,trigger_words,prompt,a1111,comfy"]):
        made = run(["info", *options, "--", path])
        found = unsafe(made.stdout) or unsafe(made.stderr)
        if found:
            yield "info %s: %s" % (" ".join(options), found)
        if made.returncode not in (0, 1):
            yield "info %s: exit %d" % (" ".join(options), made.returncode)


def table(path, run):
    made = run(["info", "--tsv", "--", path])
    found = unsafe(made.stdout)
    if found:
        yield "--tsv: " + found
    lines = made.stdout.decode("utf-8", "replace").split("\n")
    if len(lines) != 3 or lines[2] or lines[0].count("\t") != lines[1].count("\t"):
        yield "--tsv: not one line of as many columns as its header: %r" % lines[:4]


def as_json(path, text, run):
    for option in ("--json", "--jsonl"):
        made = run(["info", option, "--full", "--", path])
        try:
            whole = json.loads(made.stdout)
        except ValueError as error:
            yield "%s: %s: %r" % (option, error, made.stdout[:80])
            continue
        result = whole["results"][0] if option == "--json" else whole
        if result["metadata"].get("ss_output_name") != text:
            yield "%s: another value: %r" % (option, result["metadata"].get("ss_output_name"))
        if made.stdout.count(b"\n") > 1 and option == "--jsonl":
            yield "--jsonl: more than one line"


def everything(folder):
    return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}


def exported(place, path, run):
    before = everything(place)
    out = os.path.join(place, "out")
    os.makedirs(out, exist_ok=True)
    made = run(["info", "--export-preview", out, "--", path], cwd=place)
    found = unsafe(made.stdout) or unsafe(made.stderr)
    if found:
        yield "--export-preview: " + found
    for new in everything(place) - before:
        if os.path.dirname(new) != out:
            yield "--export-preview wrote %r" % new
        if UNSAFE.search(os.path.basename(new)):
            yield "--export-preview named a file %r" % os.path.basename(new)


def compose(place, number, text):
    """A model whose file bears the text; the path, as the file system has it."""
    from compose import write
    name = file_name(text)
    path = os.path.join(place, name + ".safetensors")
    write(place, sidecars(text))
    named = [("lora_unet_%s.lora_%s.weight" % (text, side), "F16", shape, None)
             for side, shape in (("down", [4, 2048]), ("up", [640, 4]))]
    Model(sdxl_lora(4, 4)[:40] + named + [("bundle_emb.%s.clip_l" % text, "F16", [1, 768], None)],
          metadata(text)).write(path)
    write(place, {name + ".png": png(chunks=[("parameters", "x")])} if name else {})
    return path


def check(folder, tally, run):
    for number, text in enumerate(TEXTS):
        place = os.path.join(folder, "hostile", str(number))
        os.makedirs(place, exist_ok=True)
        path = compose(place, number, text)
        lines = list(human(path, run)) + list(table(path, run))
        lines += list(as_json(path, text, run)) + list(exported(place, path, run))
        plain = os.path.join(place, "x.safetensors")
        os.rename(path, plain)
        lines += list(human(plain, run)) + list(table(plain, run))
        tally.add("hostile:%d %r" % (number, text[:24]), lines[:6])
