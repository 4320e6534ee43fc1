"""Compares each field of docs/schema/info.json by --where: prints what it is compared as."""
import json, os, subprocess, sys
defs = json.load(open(sys.argv[1]))["$defs"]
leaves = {}

def walk(node, path, seen=()):
    while "$ref" in node:
        name = node["$ref"].split("/")[-1]
        if name in seen:
            return
        seen, node = seen + (name,), defs[name]
    for key in ("anyOf", "oneOf", "allOf"):
        for one in node.get(key, []):
            walk(one, path, seen)
    for key, one in node.get("properties", {}).items():
        walk(one, path + [key], seen)
    if isinstance(node.get("additionalProperties"), dict):
        walk(node["additionalProperties"], path + ["F16"], seen)
    if isinstance(node.get("items"), dict):
        walk(node["items"], path, seen)
    kinds = node.get("type", [])
    kinds = set([kinds] if isinstance(kinds, str) else kinds) - {"null", "object", "array"}
    if isinstance(node.get("const"), bool):
        kinds = {"boolean"}
    if all(isinstance(value, int) for value in node.get("enum", ["x"])):
        kinds = {"integer"}
    if kinds:
        leaves.setdefault(".".join(path), set()).update(kinds)

walk(defs["good"], [])
words = {"number": {"a number", "a size"}, "boolean": {"true or"}, "string": {"=, !="}}
counts = {}
for leaf, kinds in sorted(leaves.items()):
    if leaf.startswith("parts.") or leaf.startswith("metadata") or leaf.endswith("value"):
        continue
    done = subprocess.run([os.environ["SFT"], "info", "--where", leaf + "<x", "."],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = done.stderr.decode().split("expected ")[1]
    kind = ("a number" if kinds & {"number", "integer"} and "string" not in kinds or
            kinds == {"string", "number"} else "= or !=" if kinds == {"boolean"} else "=, !=")
    is_date = leaf.split(".")[-1] in ("started_at", "finished_at", "published_at")
    kind = "a date" if is_date else kind
    counts[kind] = counts.get(kind, 0) + 1
    if done.returncode != 2 or not found.startswith((kind, "a size" if kind == "a number" else kind)):
        print(leaf, kinds, found)
print({kind: n > 3 for kind, n in sorted(counts.items())})
