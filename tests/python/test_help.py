"""help() of every public function says what its arguments are and what it raises."""
import importlib.util
import inspect
import re

import pytest

import libsafetensors

# Those that help(libsafetensors) explains.
COMMON = set(re.findall(r"\b([a-z_]+)(?:=False)?(?:, [a-z, ]+)?:\s", libsafetensors.__doc__)) | {
    "keep", "drop", "match", "exclude"}
TORCH = {"Loader", "TorchBatches", "TorchDataset"}  # need it
# Exactly one path or more, which the first line is about.
PLAIN = {"path", "source", "paths", "models", "folder", "a", "b", "model", "output", "filename",
         "data", "tensors", "tensor_dict", "storage"}


def functions():
    for name in ("libsafetensors", "libsafetensors.lora", "libsafetensors.dataset",
                 "libsafetensors.torch", "libsafetensors.numpy"):
        torch = importlib.util.find_spec("torch")
        if name == "libsafetensors.torch" and not torch:
            continue
        module = importlib.import_module(name)
        for one in module.__all__:
            value = None if one in TORCH and not torch else getattr(module, one)
            if inspect.isfunction(value):
                yield name.rpartition("libsafetensors")[2] + "." + one, value


@pytest.mark.parametrize("name, value", list(functions()),
                         ids=lambda one: one if isinstance(one, str) else "")
def test_arguments_and_errors_are_explained(name, value):
    text = inspect.getdoc(value) or ""
    others = " ".join(re.findall(r"(?:as (?:of|for|by)|whose arguments and result|Raises as|Arguments and"
                                 r" result as for) [\w.()]*", text))
    unexplained = [one for one in inspect.signature(value).parameters
                   if not re.search(r"\b%s\b" % re.escape(one), text)
                   and one not in COMMON | PLAIN and not others]
    assert not unexplained, name
    raises = re.search(r"\w*Error|Raises as|raises|as (?:of|for) \w+|Never fails", text)
    assert raises or not inspect.signature(value).parameters, name


def test_common_arguments_are_those_of_functions():
    have = {one for _, value in functions() for one in inspect.signature(value).parameters}
    known = {"progress", "dry_run", "overwrite", "sync", "keep_mtime", "link", "in_place_unsafe", "force",
             "threads", "recursive", "where", "cache", "level", "legacy", "names"}
    assert known <= COMMON and known <= have
