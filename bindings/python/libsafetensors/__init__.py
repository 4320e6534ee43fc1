"""Safetensors files: open, slice, check and write them.

The names of the official package are here and in the modules numpy, torch, flax, tensorflow,
mlx and paddle, so that only the import line changes; install() lets even that one stand. Our
own are open() with its File and Tensor, Writer, and the tools info, ls, check, hash, diff,
convert, edit_metadata, rename_tensors, recover, slice_byte_ranges.

Importing this imports no framework.
"""
from ._core import DTYPES, File, Tensor, Writer, __version__, build_info, open
from ._install import install
from ._official import (SafetensorError, TensorSpec, _safe_open_handle, deserialize, safe_open,
                        serialize, serialize_file)
from ._tools import (check, convert, diff, edit_metadata, hash, info, ls, open_set, recover,
                     rename_tensors, slice_byte_ranges)

__all__ = [
    "DTYPES", "File", "SafetensorError", "Tensor", "TensorSpec", "Writer", "__version__",
    "build_info", "check", "convert", "deserialize", "diff", "edit_metadata", "hash", "info",
    "install", "ls", "open", "open_set", "recover", "rename_tensors", "safe_open", "serialize",
    "serialize_file", "slice_byte_ranges",
]
