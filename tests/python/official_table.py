"""Prints every public name of the official package, its kind, arguments and members: with each release
on the path,

  PYTHONPATH=FOLDER python tests/python/official_table.py

tests/python/official_VERSION.json is what it prints; test_official_table.py compares ours with it."""
import importlib
import inspect
import json
import sys

MODULES = ("safetensors", "safetensors.numpy", "safetensors.torch", "safetensors.flax")


def arguments(value):
    """Name, kind and default of each argument; None where Python cannot say."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [[one.name, one.kind.name, None if one.default is one.empty else repr(one.default)]
            for one in signature.parameters.values()]


def facts(value):
    if inspect.isclass(value):
        return {"kind": "class", "arguments": arguments(value), "bases": [
            base.__name__ for base in value.__mro__[1:-1]], "members": {
                name: arguments(getattr(value, name)) if callable(getattr(value, name, None))
                else None for name in dir(value) if not name.startswith("_")}}
    if callable(value):
        return {"kind": "function", "arguments": arguments(value)}
    return {"kind": "module" if inspect.ismodule(value) else type(value).__name__}


def table():
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        names = {}
        exec("from %s import *" % name, names)
        names.pop("__builtins__")
        found[name] = {"star": sorted(names), "names": {
            one: facts(getattr(module, one)) for one in dir(module) if not one.startswith("_")}}
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["ours"]:
        import libsafetensors
        libsafetensors.install(children=False)
    print(json.dumps(table(), indent=0, sort_keys=True))
