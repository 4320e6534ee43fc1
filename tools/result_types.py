#!/usr/bin/env python3
"""Types of the members of results, for type checkers: bindings/python/libsafetensors/_described.pyi,
from docs/schema. tests/python/test_types.py holds it to them.

    tools/result_types.py --write"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "bindings/python/libsafetensors/_described.pyi"
SCHEMAS = ("info", "check", "hash", "diff")
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
         "object": "dict[str, object]"}
HEAD = '''"""Types of what is in the results of info, check, hash and diff: for type checkers only, made of
docs/schema by tools/result_types.py. docs/json-info.md and docs/json.md explain the fields."""
from typing import Literal, TypedDict, Union

from typing_extensions import NotRequired

'''


def camel(text):
    return "".join(part.capitalize() for part in text.replace("-", "_").split("_"))


class Types:
    """The types of one schema."""

    def __init__(self, name):
        with open(os.path.join(ROOT, "docs/schema", name + ".json"), encoding="utf-8") as file:
            self.of = json.load(file)["$defs"]
        self.prefix, self.classes = camel(name), {}

    def union(self, kinds):
        kinds = list(dict.fromkeys(kinds))
        return kinds[0] if len(kinds) == 1 else "Union[%s]" % ", ".join(kinds)

    def type(self, node, name):
        if "$ref" in node:
            target = node["$ref"].rpartition("/")[2]
            return self.type(self.of[target], self.prefix + camel(target))
        for word in ("oneOf", "anyOf"):
            if word in node:
                return self.union(self.type(one, name) for one in reversed(node[word]))
        if "enum" in node or "const" in node:
            return "Literal[%s]" % ", ".join(map(repr, node.get("enum", [node.get("const")])))
        if "properties" in node and "string" not in node["type"]:
            self.object(node, name)
            return self.union([name] + ["None"] * ("null" in node["type"]))
        kinds = node.get("type", [])
        return self.union(self.plain(kind, node, name) for kind in
                          ([kinds] if isinstance(kinds, str) else kinds)) if kinds else "object"

    def plain(self, kind, node, name):
        more = node.get("additionalProperties")
        if kind == "array":
            return "list[%s]" % self.type(node.get("items", {}), name)
        if kind == "object" and isinstance(more, dict):
            return "dict[str, %s]" % self.type(more, name)
        return PLAIN[kind]

    def object(self, node, name):
        if name in self.classes:
            return
        self.classes[name] = []  # it may name itself
        must = node.get("required", ())
        for key, value in node["properties"].items():
            told = self.type(value, name + camel(key))
            self.classes[name].append((key, told if key in must else "NotRequired[%s]" % told))


def page():
    parts = [HEAD]
    for schema in SCHEMAS:
        types = Types(schema)
        for result in ("good", "dataset_result"):
            if result in types.of:
                types.type(types.of[result], types.prefix + camel(result))
        for name, rows in types.classes.items():
            plain = all(key.isidentifier() and key not in ("from", "import") for key, _ in rows)
            if plain:
                parts.append("\nclass %s(TypedDict):\n%s\n" % (name, "\n".join(
                    "    %s: %s" % row for row in rows)))
            else:
                parts.append("\n%s = TypedDict(%r, {%s})\n" % (name, name, ", ".join(
                    "%r: %s" % row for row in rows)))
    return "".join(parts)


def main():
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
        file.write(page())


if __name__ == "__main__":
    main()
