"""Clones of other projects, whose classes some lists are made from (`make oracles` fetches them)."""
import contextlib
import importlib
import importlib.machinery
import os
import subprocess
import sys
import types
from unittest import mock

import torch

from zoo_common import Failure

ORACLES = os.environ.get("ORACLES", "build/oracle-clones")


def use(repository, folder=""):
    path = os.path.join(os.path.abspath(ORACLES), repository, folder)
    if not os.path.isdir(path):
        raise Failure("no clone of " + repository)
    if path not in sys.path:
        sys.path.insert(0, path)


def at(path):
    """What "package.module:Name.member" names."""
    module, _, names = path.partition(":")
    found = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


class Absent:
    """Finds modules that only running a model needs: whatever one asks of them is a mock."""

    PACKAGES = ("optimum", "torchao", "bitsandbytes", "gguf", "loguru", "wandb", "torchaudio",
                "atomicwrites", "trainingsample", "pytorch_optimizer", "torchsde", "librosa",
                "py3langid", "triton", "flash_attn", "xformers", "sageattention", "kornia",
                "k_diffusion", "open_clip", "lpips", "soundfile", "albumentations", "colorama",
                "comfy_aimdo", "comfy_kitchen", "node_helpers")

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.PACKAGES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


@contextlib.contextmanager
def stand_in(root, package):
    """Lets modules below a package be imported without what the package itself imports, and
    without packages that are not installed."""
    folder = os.path.join(os.path.abspath(root), *package.split("."))
    folders = {package.partition(".")[0]: os.path.dirname(folder)}
    for path, _, _ in os.walk(folder):
        below = os.path.relpath(path, folder).split(os.sep)
        folders[".".join([package] + below).rstrip(".")] = path
    for name, path in folders.items():
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [path]
    with without_absent():
        yield


@contextlib.contextmanager
def without_absent():
    """Imports go on where a package is not installed that only running a model needs."""
    sys.meta_path.append(Absent())
    try:
        yield
    finally:
        sys.meta_path.pop()
        for name in [n for n in sys.modules if n.partition(".")[0] in Absent.PACKAGES]:
            del sys.modules[name]


def on_meta(cls, arguments):
    with torch.device("meta"):
        return cls(**arguments)


def commits(*names):
    """The commit of each clone."""
    found = []
    for name in names:
        path = os.path.join(ORACLES, name)
        done = subprocess.run(["git", "-C", path, "rev-parse", "--short=10", "HEAD"],
                              capture_output=True, text=True, check=False)
        found.append("%s %s" % (name, done.stdout.strip() or "missing"))
    return ", ".join(found)
