"""The shared samples against samples.tsv; absent files are passed over."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIELDS = {"kind": "model.kind.value", "architecture": "model.architecture.value",
          "name": "model.name.value", "trigger": "trigger_words.0.text",
          "rank": "adapter.rank.mode"}
# Facts that the table has no column for.
MORE = {
    "smart_falcon_4_lokr.safetensors": [
        ("triggers", "=", ["smart falcon (umamusume)"]), ("adapter.type", "=", "lokr"),
        ("adapter.alpha.mode", "=", 4), ("training.images", "=", 130),
        ("training.resolution", "=", "768x768"),
        ("hashes.recorded.algo", "has", "sshs_model")],
    "lora_disney_inpainting.safetensors": [
        ("triggers", "=", ["<s1>", "<s2>"]), ("trigger_words.0.trust", "=", 90),
        ("adapter.format", "=", "cloneofsimo"), ("adapter.scale", "=", 1)],
    "test_embedding.safetensors": [("model.vectors", "=", 5)],
    "model.safetensors.index.json": [("shards.path", "~", "model-00006-of-00006")],
    "model-00002-of-00006.safetensors": [("set.shard", "=", 2), ("set.of", "=", 6)],
}


def rows():
    with open(os.path.join(HERE, "samples.tsv"), encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def expectation(column, text):
    if text == "-":
        return None
    return int(text) if column == "rank" else text


def expected(row):
    if row["kind"] == "error":
        return [("exit", "=", 2), ("ok", "=", False)]
    found = [(where, "=", expectation(column, row[column])) for column, where in FIELDS.items()
             if row[column] != "*"]
    return found + MORE.get(os.path.basename(row["path"]), [])


def expand(shared, path, folder):
    made = os.path.join(folder, os.path.basename(path)[:-len(".stripped.json")])
    subprocess.run([sys.executable, os.path.join(shared, "expand_stripped.py"), path, made],
                   stdout=subprocess.DEVNULL, check=True)
    return made


def run(folder, tally, check, judge, _):
    shared = os.path.join(os.environ.get("SFT_SHARED", os.path.join(ROOT, "..", "shared")),
                          "samples")
    folder = os.path.join(folder, "samples")
    os.makedirs(folder, exist_ok=True)
    table = [(row, os.path.join(shared, row["path"])) for row in rows()]
    table = [(row, expand(shared, path, folder) if path.endswith(".stripped.json") else path)
             for row, path in table if os.path.exists(path)]
    for row, path in table:
        tally.add("samples:" + row["path"], judge(path, [], expected(row), check))
