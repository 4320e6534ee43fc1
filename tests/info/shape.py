"""What every result of info must satisfy, whatever the model."""
import json
import os
import re

FACTS = """kind architecture variant base_model base_checkpoint repo name version_name description
version_description author license tags date usage_hint prediction_type resolution clip_skip
preferred_weight negative_prompt nsfw language quantization
family""".split()
MODEL = FACTS + """notes rating nsfw_level components precision parameters size vectors negative
preferred_weight_range llm evidence""".split()
TOP = """model adapter trigger_words prompts frequent_tags example_prompts civitai links training merge
provenance hashes previews sidecars privacy conflicts""".split()
LISTS = """trigger_words frequent_tags example_prompts links previews sidecars privacy
conflicts""".split()
KEYS = {
    "adapter": """type dora rslora format rank alpha scale conv_rank modules components targets
        blocks""",
    "trigger_words": "text prompt words trust source group folder coverage others",
    "prompts": "a1111 comfy",
    "frequent_tags": "tag count coverage",
    "example_prompts": "positive negative seed steps sampler cfg source",
    "civitai": """model_id version_id air url source trust match matches_file published_at
        permissions""",
    "links": "url source model_id version_id",
    "training": """tool tool_version started_at finished_at duration_s epoch epochs step steps
        images images_with_repeats regularisation_images batch_size learning_rate unet_lr
        text_encoder_lr optimizer scheduler resolution network_module network_args seed clip_skip
        mixed_precision noise_offset comment session_id base vae datasets buckets""",
    "merge": "tool method recipe sources",
    "provenance": "workflow prompt loaders",
    "hashes": "recorded computed mismatches lookup_url",
    "previews": "path source media_type bytes width height nsfw_level",
    "sidecars": "path kind match error",
    "privacy": "key what",
    "conflicts": "field candidates",
}
KINDS = """checkpoint diffusion_model pipeline adapter embedding text_encoder vae image_encoder
controlnet control_lora ip_adapter t2i_adapter upscaler motion_module language_model audio_model
vision_model detector unknown""".split()
SOURCE = re.compile(r"(?:header:[^\n]*|sidecar:[^\n]+|tensors|filename|folder|online:civitai)$",
                    re.S)


def sources(value, at=""):
    """Every source in a value, with its place."""
    stack = [(value, at)]
    while stack:
        value, at = stack.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if key == "source" and isinstance(item, str):
                    yield at + "/source", item
                elif key not in ("metadata", "recipe", "network_args"):
                    stack.append((item, at + "/" + key))
        elif isinstance(value, list):
            stack += [(item, "%s/%d" % (at, i)) for i, item in enumerate(value)]


def facts_of(result):
    for key in FACTS:
        fact = result["model"].get(key)
        if fact is not None:
            yield key, fact


def missing(result):
    for key in TOP:
        if key not in result:
            yield "no key %s" % key
    for key in MODEL:
        if key not in (result.get("model") or {}):
            yield "no key model.%s" % key
    for key in LISTS:
        if not isinstance(result.get(key), list):
            yield "%s is no list" % key
    for key, names in KEYS.items():
        found = result.get(key)
        for item in found if isinstance(found, list) else [found] if found else []:
            lacking = set(names.split()) - set(item)
            if lacking:
                yield "%s lacks %s" % (key, ", ".join(sorted(lacking)))


def order(result):
    trusts = [t["trust"] for t in result.get("trigger_words") or []]
    if trusts != sorted(trusts, reverse=True):
        yield "trigger words not sorted by trust: %s" % trusts
    texts = [re.sub(r"\\([()])", r"\1", t["text"].lower()).replace("_", " ")
             for t in result.get("trigger_words") or []]
    if len(texts) != len(set(texts)):
        yield "a trigger word twice: %s" % texts
    for key, fact in facts_of(result):
        others = [o["trust"] for o in fact["others"]]
        if others != sorted(others, reverse=True) or len(others) > 16:
            yield "others of %s not sorted or too many: %s" % (key, others)
        joined = key == "variant" and "+" in fact["value"]
        # A declared child of what tensors show stands first with its own trust.
        child = (key in ("architecture", "quantization") and fact["source"] != "tensors"
                 and others and fact["others"][0]["source"] == "tensors")
        if others and others[0] > fact["trust"] and not joined and not child:
            yield "%s: another candidate has more trust" % key
    if len(result.get("frequent_tags") or []) > 200:
        yield "more than 200 frequent tags"
    if len(result.get("example_prompts") or []) > 10:
        yield "more than 10 example prompts"
    if len((result.get("model") or {}).get("evidence") or []) > 8:
        yield "more than 8 tensors of evidence"


def resolves(text, pointer):
    """Whether a JSON pointer leads somewhere in a text that is JSON; others are not asked.
    JSON in a string goes on after a colon: "/usage_tips:/strength"."""
    try:
        value = json.loads(text)
    except ValueError:
        return True
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        inner = value.get(step[:-1]) if isinstance(value, dict) and step[-1:] == ":" else None
        if isinstance(inner, str):
            value = json.loads(inner)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return False
    return True


def leads_somewhere(source, texts):
    """Whether "KEY" or "KEY:/pointer" names one of the texts, and a place in it."""
    for key, text in texts.items():
        if source == key:
            return True
        if source.startswith(key + ":/") and resolves(text, source[len(key) + 1:]):
            return True
    return False


def beside(result):
    """{file name: its text} of what lies with the model."""
    path, found = result["path"] or "", {}
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for at, _, names in os.walk(folder) if folder else ():
        for name in names:
            path = os.path.join(at, name)
            text = ""
            if name.endswith((".json", ".info")) and os.path.getsize(path) < 1 << 20:
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
            found[os.path.relpath(path, folder)] = text
    return found


def grammar(result):
    metadata = result.get("metadata") or {}
    cut, files = result.get("metadata_cut") or {}, None
    for at, source in sources(result):
        kind, _, rest = source.partition(":")
        if not SOURCE.match(source):
            yield "%s: no source: %r" % (at, source)
        elif kind == "header" and not cut and not leads_somewhere(rest, metadata):
            yield "%s: leads nowhere: %r" % (at, source)
        elif kind == "sidecar":
            files = beside(result) if files is None else files
            if not leads_somewhere(rest, files):
                yield "%s: leads nowhere: %r" % (at, source)


def faults(result):
    """Lines, one per thing wrong with a good result."""
    found = list(missing(result))
    if found:
        return found
    kind = result["model"]["kind"]
    if kind is not None and kind["value"] not in KINDS:
        found.append("kind %r is none" % kind["value"])
    if (result["adapter"] is not None) != (kind is not None and
                                           kind["value"] in ("adapter", "control_lora")):
        found.append("adapter is %s for kind %s" % (
            "null" if result["adapter"] is None else "there", kind and kind["value"]))
    return found + list(order(result)) + list(grammar(result))
