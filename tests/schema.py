#!/usr/bin/env python3
"""What --json and --jsonl print is what docs/schema and docs/json.md say.

  tests/schema.py COMMAND [FILE…]     default files: tests/corpus and the shared samples

Every result must satisfy its schema, closed here against fields that the schema does not
name; every field of a schema must have its place in docs/json.md.
"""
import copy
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALLS = {
    "info": [[], ["--full"], ["--hash", "all", "--verify"]],
    "find": [["--where", "ok=true"], ["--compute", "00000000"]],
    "ls": [[], ["--sort", "name"]],
    "hash": [["--algo", "all"]],
    "check": [[], ["--deep"], ["--level", "strict"], ["--level", "compat"]],
    "diff": [[], ["--atol", "1"]],
}
PAIRS = {"diff"}  # commands of two models
MOST_PAIRS = 100
BATCH = 500


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def closed(schema):
    """The same schema, refusing fields it does not name."""
    schema = copy.deepcopy(schema)
    for part in list(schema["$defs"].values()):
        if part.get("type") == "object" and "properties" in part:
            if part is schema["$defs"].get("good") or part is schema["$defs"].get("failed"):
                part["properties"].update({"schema": True, "command": True})
            part["additionalProperties"] = False
    return schema


def fields(schema):
    names = set()
    for part in schema["$defs"].values():
        names |= set(part.get("properties", {}))
    return names


def run(command, name, options, paths):
    made = subprocess.run([command, name, *options, "--", *paths], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    if made.returncode not in (0, 1, 2):
        sys.exit("schema: %s %s ended with %d" % (name, options, made.returncode))
    return made.stdout.decode("utf-8")


def inputs(given):
    shared = os.environ.get("SFT_SHARED", os.path.join(ROOT, "..", "shared"))
    found = list(given)
    for folder in () if given else (os.path.join(ROOT, "tests", "corpus"), shared + "/samples"):
        for pattern in ("**/*.safetensors", "**/*.index.json"):
            found += glob.glob(os.path.join(folder, pattern), recursive=True)
    return sorted(found) + ["/nowhere/caf\udce9.safetensors", "/nowhere"]


def parts(name, paths):
    """The operands of each call."""
    if name not in PAIRS:
        return [paths[at:at + BATCH] for at in range(0, len(paths), BATCH)]
    step = max(1, len(paths) // MOST_PAIRS)
    return [[paths[at], paths[(at + 1 + at // step % 3) % len(paths)]]
            for at in range(0, len(paths), step)] + [[paths[-2], paths[0]], [paths[0], paths[-2]]]


def main():
    try:
        import jsonschema
    except ImportError:
        print("schema: skipped: python3-jsonschema is not installed")
        return 0
    command = os.path.abspath(sys.argv[1])
    paths, results, manual = inputs(sys.argv[2:]), 0, read("docs", "json.md")
    for name, calls in CALLS.items():
        schema = json.loads(read("docs", "schema", name + ".json"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validators = [jsonschema.Draft202012Validator(s) for s in (schema, closed(schema))]
        for field in sorted(fields(schema)):
            if "`%s`" % field not in manual:
                sys.exit("schema: docs/json.md does not tell of `%s`" % field)
        for options in calls:
            for part in parts(name, paths):
                whole = json.loads(run(command, name, options + ["--json"], part))
                lines = run(command, name, options + ["--jsonl"], part).splitlines()
                for value in [whole] + [json.loads(line) for line in lines]:
                    for validator in validators:
                        found = jsonschema.exceptions.best_match(validator.iter_errors(value))
                        if found:
                            sys.exit("schema: %s: %s: %s"
                                     % (name, found.json_path, found.message))
                if len(lines) != len(whole["results"]):
                    sys.exit("schema: %s: --json and --jsonl differ in number" % name)
                results += len(lines)
    print("schema: %d files, %d results, all as their schemas say" % (len(paths), results))
    print("%d passed, %d failed" % (results, 0 if results else 1))
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
