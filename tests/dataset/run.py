#!/usr/bin/env python3
"""Manifests and the results of `safetensors dataset` are as their schemas say.

  docs/dataset_manifest.schema.json   takes our manifests and the connector's, and no bad ones
  docs/schema/dataset.json            closed here against fields that it does not name
  docs/json.md                        describes every field
"""
import copy
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import make

KINDS = ["kv", "batch", "empty", "connector", "connector-kv"]
DAMAGES = [  # of a kv manifest
    ("shards.0.shard_path", "../x.safetensors"), ("shards.0.shard_path", ""),
    ("shards.0.shard_path", "a\\b.safetensors"), ("shards.0.bytes", -1), ("shards.0.bytes", None),
    ("shards.0.sha256", "12"), ("total_samples", 1.5), ("total_bytes", "1"), ("mode", "rows"),
    ("commit", "1"), ("row_order", "1"), ("index", "other"), ("columns.emb.dtype", "F33"), ("columns.emb.shape", 3),
    ("schema.ada__emb.dtype", None), ("schema.ada__emb.shape", [-1]), ("format_version", "2.0"),
    ("shards", {}), ("version", -1),
]
checks = []


def demand(ok, what):
    checks.append(bool(ok))
    if not ok:
        print("FAIL", what)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def run(*words):
    default = shlex.quote(os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")),
                                       "safetensors"))
    command = shlex.split(os.environ.get("SFT_COMMAND") or default)
    done = subprocess.run(command + ["dataset", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode()


def manifest_of(folder):
    with open(os.path.join(folder, "dataset_manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def damaged(manifest, path, value):
    manifest = copy.deepcopy(manifest)
    *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    at = manifest
    for part in way:
        at = at[part]
    at[last] = value
    return manifest


def check_manifests(folders, folder_of_bad, validator):
    for kind, folder in folders.items():
        found = validator(manifest_of(folder))
        demand(not found, "manifest of %s: %s" % (kind, found))
    kv = manifest_of(folders["kv"])
    for path, value in DAMAGES:
        bad = damaged(kv, path, value)
        demand(validator(bad), "the schema takes %s = %r" % (path, value))
        make.publish(folder_of_bad, bad)
        status, out = run("info", "--json", folder_of_bad)
        demand(status == 2 and json.loads(out)["results"][0]["ok"] is False,
               "the library takes %s = %r" % (path, value))
    for path in ("shards", "total_samples", "total_bytes", "format_version", "commit", "columns"):
        bad = {k: v for k, v in kv.items() if k != path}
        demand(validator(bad), "the schema takes a manifest without " + path)


def closed(schema):
    """The same schema, refusing fields it does not name."""
    schema = copy.deepcopy(schema)
    for part in schema["$defs"].values():
        if part.get("type") == "object" and "path" in part.get("properties", {}):
            part["properties"].update({"schema": True, "command": True})
        if part.get("type") == "object" and "additionalProperties" not in part:
            part["additionalProperties"] = False
    return schema


def check_results(folders, validator):
    everything = list(folders.values()) + ["/nowhere", __file__]
    calls = [["info"], ["ls"], ["ls", "--match", "*emb"], ["verify"], ["verify", "--deep"], ["gc"],
             ["gc", "--grace", "0", "--delete"], ["compact"], ["compact", "--target", "1MB"],
             ["compact", "--manifest", "segments"], ["info"], ["verify", "--deep"]]
    for words in calls:
        for style in ("--json", "--jsonl"):
            _, out = run(*words, style, *everything)
            results = [json.loads(out)] if style == "--json" else \
                [json.loads(line) for line in out.splitlines()]
            count = len(results[0]["results"]) if style == "--json" else len(results)
            demand(count == len(everything), "%s %s: %d results" % (words, style, count))
            for result in results:
                found = validator(result)
                demand(not found, "%s %s: %s" % (words, style, found))


def check_words(schema):
    manual = read("docs", "json.md").split("\n## dataset\n")[1].split("\n## ")[0]
    manual += read("docs", "json.md").split("### Every result")[1].split("\n## ")[0]
    for part in schema["$defs"].values():
        for field in part.get("properties", {}):
            demand("`%s`" % field in manual, "docs/json.md does not mention `%s`" % field)
    manual = read("docs", "dataset.md")
    fields = json.loads(read("docs", "dataset_manifest.schema.json"))
    for field in fields["properties"]:
        demand("`%s`" % field in manual, "docs/dataset.md does not mention `%s`" % field)
    for field in fields["$defs"]["shard"]["properties"]:
        demand("`shards[].%s`" % field in manual, "docs/dataset.md: no shards[]." + field)


def main():
    try:
        import jsonschema
    except ImportError:
        print("0 passed, 0 failed, 1 skipped: python3-jsonschema is not installed")
        return 0

    def validator(schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        checker = jsonschema.Draft202012Validator(schema)
        return lambda value: jsonschema.exceptions.best_match(checker.iter_errors(value))

    manifests = validator(json.loads(read("docs", "dataset_manifest.schema.json")))
    results = json.loads(read("docs", "schema", "dataset.json"))
    with tempfile.TemporaryDirectory() as temp:
        folders = {kind: os.path.join(temp, kind) for kind in KINDS}
        for kind, folder in folders.items():
            os.mkdir(folder)
            getattr(make, "make_" + kind.replace("-", "_"))(folder)
        bad = os.path.join(temp, "bad")
        os.mkdir(bad)
        check_manifests(folders, bad, manifests)
        lost = os.path.join(temp, "lost")
        make.make_kv(os.makedirs(lost) or lost)
        os.remove(os.path.join(lost, make.shard_name(1)))
        orphan = make.shard_name(9)
        make.shard(folders["kv"], orphan, [("x", "U8", [3], 1)], make.marked("kv", 1))
        check_results(dict(folders, bad=bad, lost=lost), validator(closed(results)))
        found = manifests(manifest_of(folders["kv"]))
        demand(not found, "manifest of a compacted dataset: %s" % found)
        demand(manifest_of(folders["kv"])["version"] == 5, "compact did not commit three times")
        demand(len(manifest_of(folders["kv"])["segments"]) == 1, "compact made no segment")
        demand(not os.path.exists(os.path.join(folders["kv"], orphan)), "gc left an orphan")
    check_words(results)
    print("%d passed, %d failed" % (sum(checks), len(checks) - sum(checks)))
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
