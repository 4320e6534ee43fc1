"""Safetensors files: open, slice, check and write them.

The names of the official package are here and in the modules numpy, torch, flax, tensorflow,
mlx and paddle, so that only the import line changes; install() lets even that one stand. Our
own are open() with its File and Tensor, Writer, and the tools info, ls, check, hash, diff,
convert, edit_metadata, rename_tensors, recover, slice_byte_ranges.

Importing this imports no framework.
"""
from ._core import (DTYPES, File, SafetensorError, Tensor, TensorNotFoundError, Writer,
                    __version__, build_info, open)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._install import install, uninstall
    from ._official import (TensorSpec, _safe_open_handle, deserialize, safe_open, serialize,
                            serialize_file)
    from ._tools import (check, convert, diff, edit_metadata, hash, info, ls, open_set, recover,
                         rename_tensors, slice_byte_ranges)

__all__ = [
    "DTYPES", "File", "SafetensorError", "Tensor", "TensorNotFoundError", "TensorSpec", "Writer",
    "__version__", "build_info", "check", "convert", "deserialize", "diff", "edit_metadata",
    "hash", "info", "install", "ls", "open", "open_set", "recover", "rename_tensors", "safe_open",
    "serialize", "serialize_file", "slice_byte_ranges", "uninstall",
]

# Imported when first asked for: the import of a loader is counted in microseconds, and typing,
# which numpy and torch import anyway, takes thousands.
_LATER = {"install": "_install", "uninstall": "_install", "_safe_open_handle": "_official"}
_LATER.update(dict.fromkeys((
    "TensorSpec", "deserialize", "safe_open", "serialize", "serialize_file"), "_official"))
_LATER.update(dict.fromkeys((
    "check", "convert", "diff", "edit_metadata", "hash", "info", "ls", "open_set", "recover",
    "rename_tensors", "slice_byte_ranges"), "_tools"))


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from importlib import import_module
    value: object = getattr(import_module("." + _LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LATER})
