"""Two models of each of timm's families: the first and one from the middle of its list."""
import timm
import torch

from zoo_common import as_json, entry
from zoo_transformers import instance


def jobs():
    for family in timm.list_modules():
        names = sorted(timm.list_models(module=family), key=lambda name: (len(name), name))
        for name in sorted({names[0], names[len(names) // 2]}) if names else ():
            yield make, name, name, {family}, (name,)


def make(title, identity, tasks, name):
    model = instance(lambda: timm.create_model(name))
    declared = {"architecture": name, "num_classes": getattr(model, "num_classes", None),
                "num_features": getattr(model, "num_features", None)}
    return entry(title, identity, tasks, model.state_dict(),
                 texts={"config.json": as_json(declared)})


def versions():
    return "timm %s" % timm.__version__
