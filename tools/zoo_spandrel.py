"""The networks that spandrel loads, each with its default arguments. Such files have no
config.json."""
import importlib
import importlib.metadata
import pkgutil
import typing

import spandrel.architectures
import spandrel_extra_arches.architectures
from spandrel import Architecture

from zoo_common import entry

# What the constructors have no default for.
RGB = {"num_in_ch": 3, "num_out_ch": 3}
ARGUMENTS = {"MMRRDBNet_test": RGB, "SPAN": RGB, "SAFMN": {"dim": 36}, "SAFMN_BCIE": {"dim": 36},
             "UnetUpsampler": {"dim": 64, "image_size": 256, "input_image_size": 64,
                               "style_network": {"dim_in": 128, "dim_out": 512, "depth": 4}},
             # Their default windows do not fit their default images.
             "SwinIR": {"window_size": 8}, "Swin2SR": {"window_size": 8},
             "SRFormer": {"img_size": 64, "window_size": 16}}


def jobs():
    for package in (spandrel.architectures, spandrel_extra_arches.architectures):
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                found = importlib.import_module("%s.%s" % (package.__name__, module.name))
                yield from of_family(module.name, found)


def of_family(family, module):
    """The classes that the family's Architecture is generic over."""
    for value in vars(module).values():
        if not isinstance(value, type) or not issubclass(value, Architecture) \
                or value is Architecture:
            continue
        made, = typing.get_args(value.__orig_bases__[0])
        for cls in typing.get_args(made) or (made,):
            yield make, "%s.%s" % (family, cls.__name__), family, {"upscaler"}, (cls,)


def make(title, identity, tasks, cls):
    # They are small, and many compute in their constructors.
    return entry(title, identity, tasks, cls(**ARGUMENTS.get(cls.__name__, {})).state_dict())


def versions():
    return ", ".join("%s %s" % (name, importlib.metadata.version(name))
                     for name in ("spandrel", "spandrel_extra_arches"))
