"""Safetensors files: open, slice, check and write them.

The names of the official package are here and in the modules numpy, torch, flax, tensorflow,
mlx and paddle, so that only the import line changes; after install() not even that. In
addition there are open() with File and Tensor, open_import() for models in other formats,
Writer, save_sharded, and a function for each verb of the command: info, infos, fits, ls, find, check, hash,
dup, diff, catalog, edit_metadata, scrub, rename, repair, recover, put, convert, quantize, dequantize, layout,
split, merge, merge_models, select, mv, note and trash. What reads a path takes a URL, too. The
modules dataset, lora and remote are imported on first use.

Arguments that many functions have:

progress: True for a bar of tqdm, or a function of what is done and the total (None: unknown), in bytes,
of some in models; what it raises ends the work. In notebooks what takes longer than a second shows a
bar unless it is False. dry_run: change nothing, tell what would be done. overwrite: replace an output
that exists, atomically. sync=False: do not wait for the disk; a power failure may lose the result.
keep_mtime: the output gets the time of its input. link: what becomes of an output that is a symbolic
link: "replace", "follow" or "refuse". in_place_unsafe: for file systems that cannot rename. force:
also a file with several hard links. threads: that work at once, 0 is one per processor. recursive:
search folders of folders. where: only models for which these conditions hold. cache: a file of digests
of files that did not change. level: what to accept: "compat", "default" or "strict". legacy: read the
layout of 2022, too. names, keep, drop, match, exclude: a name or pattern (*, ?, [a-z], [!a-z]), or
several. Errors are SafetensorError or the exception that docs/errors.md lists for the code, with
.code, .offset, .tensor, .hint and .path.

Importing this package imports no framework.
"""
from ._core import SafetensorError, TensorNotFoundError, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import dataset, lora, remote
    from ._aprefetch import aprefetch
    from ._catalog import catalog
    from ._collection import (clean, dup, find, infos, mv, note, online_plan, parts, quantize,
                              repair, save_as, scrub, thumbnail, trash, updates, verify_hashes)
    from ._core import DTYPES, File, Tensor, Writer, build_info, open, release_memory
    from ._install import install, uninstall
    from ._official import (PrefetchLoader, PySafeSlice, TensorMeta, TensorSpec, _safe_open_handle,
                            deserialize, safe_open, serialize, serialize_file)
    from ._import import Import, import_model, open_import, recognise
    from ._layout import layout
    from ._merge import merge_models, merge_of
    from ._shards import merge, rename, save_sharded, select, split
    from ._tools import (Records, check, convert, dequantize, diff, edit_metadata, fits,
                         hash, info, ls, open_set, put, recover, rename_tensors, slice_byte_ranges)

__all__ = [
    "DTYPES", "File", "Import", "PrefetchLoader", "PySafeSlice", "Records", "SafetensorError",
    "Tensor", "TensorMeta", "TensorNotFoundError", "TensorSpec", "Writer", "__version__",
    "aprefetch", "build_info", "catalog", "check", "clean", "convert", "dequantize", "deserialize", "diff", "dup",
    "edit_metadata", "find", "fits", "hash", "import_model", "info", "infos", "install", "layout", "ls",
    "merge", "merge_models", "merge_of", "mv", "note", "online_plan", "open", "open_import", "open_set", "parts", "put",
    "quantize", "recognise", "recover", "release_memory", "rename", "rename_tensors", "repair",
    "safe_open", "save_as", "save_sharded", "scrub", "select", "serialize", "serialize_file",
    "slice_byte_ranges", "split", "thumbnail", "trash", "uninstall",
    "updates", "verify_hashes",
]

# Made or imported on first use: importing the package takes microseconds, importing typing (as
# numpy and torch do anyway) thousands of them.
_LAZY = {
    "_aprefetch": ("aprefetch",),
    "_catalog": ("catalog",),
    "_collection": ("clean", "dup", "find", "infos", "mv", "note", "online_plan", "parts", "quantize",
                    "repair", "save_as", "scrub", "thumbnail", "trash", "updates", "verify_hashes"),
    "_core": ("DTYPES", "File", "Tensor", "Writer", "build_info", "open", "release_memory"),
    "_import": ("Import", "import_model", "open_import", "recognise"),
    "_install": ("install", "uninstall"),
    "_layout": ("layout",),
    "_merge": ("merge_models", "merge_of"),
    "_shards": ("merge", "rename", "save_sharded", "select", "split"),
    "_official": ("PrefetchLoader", "PySafeSlice", "TensorMeta", "TensorSpec", "_safe_open_handle",
                  "deserialize", "safe_open", "serialize", "serialize_file"),
    "_tools": ("Records", "check", "convert", "dequantize", "diff", "edit_metadata", "fits", "hash",
               "info", "ls", "open_set", "put", "recover", "rename_tensors", "slice_byte_ranges"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module
    if name in ("dataset", "lora", "remote"):
        return import_module("." + name, __name__)
    for module, names in _LAZY.items():
        if name in names:
            value: object = getattr(import_module("." + module, __name__), name)
            globals()[name] = value
            return value
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *sum(_LAZY.values(), ()), "dataset", "lora", "remote"})
