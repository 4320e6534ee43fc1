#!/usr/bin/env python3
"""Prints docs/python-api.md: every public name of the Python package, its arguments and docstring.
Run by build/venv/bin/python, which has the package; tests/python/test_api_page.py compares."""
import importlib
import inspect
import re

MODULES = ["libsafetensors", "libsafetensors.numpy", "libsafetensors.torch", "libsafetensors.lora",
           "libsafetensors.dataset", "libsafetensors.remote"]
SHOWN = ("__getitem__", "__len__", "__contains__", "__iter__", "__enter__", "__bytes__", "__array__",
         "__dlpack__")
WIDTH = 100


def prose(text):
    """A docstring as Markdown: paragraphs, whose signs mean themselves."""
    return re.sub(r"([\\`*_<>|\[\]#~])", r"\\\1", text)


def signature(name, value):
    """Name and arguments, without annotations, whose names are those of the sources."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    plain = [one.replace(annotation=one.empty) for one in found.parameters.values()
             if one.name not in ("self", "$self")]
    return name + str(found.replace(parameters=plain, return_annotation=found.empty))


def folded(text):
    """Code that is no wider than a page."""
    lines = [""]
    for part in re.split(r"(?<=,) ", text):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > WIDTH:
            lines.append("    " + part)
        else:
            lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def members(kind):
    for name, value in sorted(vars(kind).items()):
        hidden = name.startswith("_") and name not in SHOWN
        value = getattr(kind, name, None) if isinstance(value, (staticmethod, classmethod)) else value
        if hidden or not (inspect.getdoc(value) or callable(value)):
            continue
        yield name, value


def entry(title, name, value, level):
    told = inspect.getdoc(value) or ""
    code = folded(signature(name, value)) if callable(value) else name
    yield "%s %s\n" % ("#" * level, title)
    yield "```text\n%s\n```\n" % code
    if told and not told.startswith("Initialize self"):
        yield prose(told) + "\n"


def names_of(module):
    for name in getattr(module, "__all__"):
        value = getattr(module, name)
        if not name.startswith("_") and (inspect.isclass(value) or callable(value)) \
                and not hasattr(value, "__total__"):
            yield name, value


def page():
    yield "# The Python package: reference\n"
    yield "<!-- Made by tools/python_api.py; tests/python/test_api_page.py compares. -->\n"
    yield ("Every public function and class with its docstring, as `help()` shows it. "
           "[python.md](python.md) is the guide.\n")
    modules = [(name, importlib.import_module(name)) for name in MODULES]
    yield "Contents: %s\n" % " · ".join(
        "[%s](#%s)" % (name, name.replace(".", "")) for name, _ in modules)
    for module_name, module in modules:
        yield "## %s\n" % module_name
        if module.__doc__:
            yield prose(inspect.cleandoc(module.__doc__)) + "\n"
        for name, value in sorted(names_of(module), key=lambda pair: pair[0].lower()):
            yield from entry("`%s`" % name, name, value, 3)
            for member, inner in members(value) if inspect.isclass(value) else ():
                yield from entry("`%s.%s`" % (name, member), member, inner, 4)


if __name__ == "__main__":
    print("\n".join(page()), end="")
