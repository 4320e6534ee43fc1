"""Clones of other projects, whose classes some lists are made from (`make oracles` fetches them)."""
import importlib
import os
import subprocess
import sys

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
