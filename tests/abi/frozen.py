#!/usr/bin/env python3
"""What is frozen besides the binary interface: commands, their options and exit statuses, JSON
fields, functions and Python names. tests/abi/frozen.txt lists them; docs/abi.md says what frozen
means and what is not.

usage: tests/abi/frozen.py [--update]     --update: add what is new; nothing is ever taken out

A name of the list that the tree lacks is an error."""
import ast
import glob
import json
import os
import re
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
LIST = os.path.join(HERE, "frozen.txt")
PACKAGE = os.path.join(ROOT, "bindings", "python", "libsafetensors")
sys.path.insert(0, os.path.join(ROOT, "tests"))
import exports  # noqa: E402

# Not frozen, as docs/abi.md says.
COMMANDS_LEFT_OUT = {"catalog", "dataset"}
PYTHON_LEFT_OUT = {"catalog", "Import", "import_model", "open_import", "recognise"}
MODULES = ["numpy", "torch", "flax", "tensorflow", "mlx", "paddle"]


def help_of(*words):
    done = subprocess.run([os.path.join(BUILD, "safetensors"), *words], stdout=subprocess.PIPE,
                          text=True, check=True, env={**os.environ, "COLUMNS": "80"})
    return done.stdout


def commands():
    """{section: names} of the command."""
    groups = help_of("help", "-a").split("\n\n")
    names = [word for group in groups if re.match(r"(Inspect|Edit|Convert)\n", group)
             for word in re.findall(r"^  ([\w-]+)  ", group, re.M)]
    names = [name for name in names if name not in COMMANDS_LEFT_OUT]
    found = {"commands": set(names)}
    for name in names:
        text = help_of(name, "--help")
        lines = re.findall(r"^ +(-.*?)(?:  .*)?$", text.split("\nOptions:\n")[1], re.M)
        found[f"options of {name}"] = {word for line in lines
                                       for word in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", line)}
        found[f"options of {name}"] |= {
            f"{option}={value}" for line in lines
            for option, values in re.findall(r"(--[\w-]+)[ =](\w[\w-]*(?:\|[\w-]+)+)", line)
            for value in values.split("|")}
        usage = text.split("\nUsage:\n")[1].split("\n\n")[0]
        for verbs in re.findall(r"\[([a-z]+(?:\|[a-z]+)+)\]", usage):
            found[f"options of {name}"] |= set(verbs.split("|"))
        statuses = re.split(r"\nExit status:?\s", text)[1].split("\n\n")[0]
        found[f"exit statuses of {name}"] = set(re.findall(r"(?:^|[\s;])(\d+)(?=:|\s\s)", statuses))
    return found


def fields(schema):
    """TYPE.FIELD of a JSON Schema, whose outermost type is nameless."""
    found, todo = set(), [("", {key: one for key, one in schema.items() if key != "$defs"})]
    todo += schema.get("$defs", {}).items()
    while todo:
        name, node = todo.pop()
        if isinstance(node, list):
            todo += [(name, one) for one in node]
        elif isinstance(node, dict):
            properties = node.get("properties", {})
            found |= {f"{name}.{field}" for field in properties}
            todo += [(f"{name}.{field}", one) for field, one in properties.items()]
            todo += [(name, one) for key, one in node.items()
                     if key != "properties" and isinstance(one, (dict, list))]
    return found


def json_fields():
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "schema", "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        if name not in COMMANDS_LEFT_OUT:
            with open(path, encoding="utf-8") as file:
                found[f"JSON of {name}"] = fields(json.load(file))
    return found


def tree_of(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
        return ast.parse(file.read()).body


def parameters(function):
    """Names by which arguments can be given."""
    given = function.args
    return [one.arg for one in [*given.args, *given.kwonlyargs]
            if one.arg not in ("self", "cls") and not one.arg.startswith("_")]


def members(name, node):
    """A class or function, and what it has: NAME, NAME.MEMBER, NAME(PARAMETER)."""
    found = {name}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found |= {f"{name}({word})" for word in parameters(node)}
    if isinstance(node, ast.ClassDef):
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__new__"):
                found |= {f"{name}({word})" for word in parameters(one)}
            elif isinstance(one, ast.FunctionDef) and (not one.name.startswith("_")
                                                       or one.name.endswith("__")):
                found |= ({f"{name}.{one.name}"} if one.name.endswith("__")
                          else members(f"{name}.{one.name}", one))
            elif isinstance(one, ast.AnnAssign) and not one.target.id.startswith("_"):
                found.add(f"{name}.{one.target.id}")
    return found


def defined(body):
    """{name: node} of a module, also within `if`."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.If):
            found.update({**defined(node.body), **defined(node.orelse), **found})
    return found


def exported(body):
    """__all__ of a module."""
    return next(ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") == "__all__")


def python_names():
    body, places = tree_of("__init__.py"), {}
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            places.update({one.asname or one.name: node.module for one in node.names})
    found = {"libsafetensors": set()}
    for name in set(exported(body)) - PYTHON_LEFT_OUT:
        module = places.get(name, "")
        file = next((file for file in (module + ".pyi", module + ".py")
                     if os.path.exists(os.path.join(PACKAGE, file))), "__init__.py")
        found["libsafetensors"] |= members(name, defined(tree_of(file)).get(name))
    for module in MODULES:
        body = tree_of(module + ".py")
        here = defined(body)
        found[f"libsafetensors.{module}"] = {
            word for name in exported(body) for word in members(name, here.get(name))}
    return found


def tree():
    return {"C functions": set(exports.declared(stable=True)),
            **commands(), **json_fields(), **python_names()}


def listed():
    """{section: names} of the list."""
    if not os.path.exists(LIST):
        return {}
    with open(LIST, encoding="utf-8") as file:
        sections = re.findall(r"^\[(.*)\]\n((?:[^\[\n].*\n)*)", file.read(), re.M)
    return {name: set(words.split()) for name, words in sections}


def check():
    """Names that disappeared, as sentences."""
    have = tree()
    return [f"frozen: {section}: {name} is gone; docs/abi.md promises that it stays"
            for section, names in listed().items()
            for name in sorted(names - have.get(section, set()))]


def update():
    have, wanted = tree(), listed()
    with open(LIST, "w", encoding="utf-8") as file:
        for section in [*wanted, *(one for one in have if one not in wanted)]:
            names = sorted(wanted.get(section, set()) | have.get(section, set()))
            lines = textwrap.wrap(" ".join(names), 99, break_long_words=False, break_on_hyphens=False)
            file.write("\n".join([f"[{section}]", *lines]) + "\n\n")


def main():
    if sys.argv[1:] not in ([], ["--update"]):
        sys.exit("usage: tests/abi/frozen.py [--update]")
    if sys.argv[1:]:
        update()
    bad = check()
    print("\n".join(bad))
    print(f"{sum(map(len, listed().values())) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
