"""Tools that the official package lacks. Results are the library's JSON, parsed."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from ._progress import watch
from ._types import Level, Link, Order, Path, Progress, parse

__all__ = ["check", "convert", "diff", "edit_metadata", "fits", "hash", "info", "ls", "open_set",
           "recover", "rename_tensors", "slice_byte_ranges"]


def open_set(index_or_folder: Path, **options: Any) -> _core.File:
    """Opens all shards of a model as one, by its index.json, its folder or a single file. The
    same as libsafetensors.open, whose options it takes.

    SafetensorError (index_...) if index and shards disagree; FileNotFoundError."""
    return _core.open(index_or_folder, **options)


def ls(source: Any, order: Order = "offset") -> dict[str, Any]:
    """Lists a file: tensors with dtype, shape and offsets, and metadata, as
    "safetensors ls --json" does. source: anything libsafetensors.open takes, or a File.
    Reads the header only."""
    if isinstance(source, _core.File):
        return parse(source.ls_json(order))
    with _core.open(source, mode="read") as file:
        return parse(file.ls_json(order))


def info(source: Any, *, full: bool = True, deep: bool = False) -> dict[str, Any]:
    """Describes a model: name, kind, architecture, base model, trigger words, licence and more,
    each fact with its source. deep also reads tensor data that tell more; full=False leaves out
    the details. Makes no network request.

    source: path of a file, folder or index.json, or an object with read and seek."""
    return parse(_core.info_json(source, full=full, deep=deep))


def fits(a: Any, b: Any) -> dict[str, str]:
    """Whether two models are used together, one a checkpoint or another whole model, the other an
    adapter, embedding, ControlNet, VAE or text encoder; which comes first does not matter.

    fit: "yes", "likely", "loads" (made for another base), "unknown", "no", or "none" for kinds
    that are not used together; reason: the facts that decide. a, b: as the source of info."""
    fit, reason = _core.fits(a, b)
    return {"fit": fit, "reason": reason}


def check(path: Path, *, level: Level = "default", deep: bool = False,
          progress: Progress = None) -> dict[str, Any]:
    """Checks a file and returns every finding; an invalid file raises nothing. deep reads all
    data and checks their values, too. OSError if the file cannot be read."""
    with watch(progress, "checking") as tick:
        return parse(_core.check_json(path, level=level, deep=deep, progress=tick))


def hash(path: Path, algos: str | Iterable[str] = "sha256", *, threads: int = 0,
         progress: Progress = None) -> dict[str, Any]:
    """Computes digests in one pass over the file. algos: names in a list or separated by commas,
    as "safetensors hash --help" lists them. threads: 0 is one per processor."""
    names = algos if isinstance(algos, str) else ",".join(algos)
    with watch(progress, "hashing") as tick:
        return parse(_core.hash_json(path, names, threads, tick))


def diff(a: Path, b: Path, *, atol: float | None = None, rtol: float | None = None,
         header: bool = False, metadata: bool = True, progress: Progress = None) -> dict[str, Any]:
    """Compares two files or models. Values are compared bit by bit, or within atol + rtol * |b|
    if either is given; header compares names, dtypes and shapes only; metadata=False ignores
    metadata."""
    with watch(progress, "comparing") as tick:
        return parse(_core.diff_json(a, b, atol=atol, rtol=rtol, header=header,
                                      metadata=metadata, progress=tick))


def _header_name(dtype: Any) -> str:
    """Name in a header of a dtype given by that name or as one of numpy or torch."""
    from ._files import HEADER_NAMES
    name = str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]
    upper = name.upper()
    return HEADER_NAMES.get(name, upper if upper in _core.DTYPES else name)


def convert(path: Path, output: Path, dtype: Any, *, names: Iterable[str] | None = None,
            saturate: bool = False, overrule_scales: bool = False, overwrite: bool = False,
            sync: bool = True, threads: int = 1, progress: Progress = None,
            dequantize: bool = False) -> dict[str, int]:
    """Writes a model with its tensors converted to dtype ("BF16", "F8_E4M3", or a dtype of numpy or
    torch): the floats if dtype is one, the integers if it is one; with names exactly those.
    saturate: values out of range become the nearest value instead of raising. overrule_scales:
    convert also tensors with a scale, and the scales. dequantize: compute the values of quantised
    tensors instead (docs/convert.md), drop their scales, and leave all others alone. threads: 0 is
    one per processor. Metadata are kept, except for digests of the old data (sshs_model_hash,
    sshs_legacy_hash, modelspec.hash_*). Returns the number of tensors by action."""
    with watch(progress, "converting") as tick:
        return _core.convert(path, output, _header_name(dtype), names=names, saturate=saturate,
                             overrule_scales=overrule_scales, overwrite=overwrite, sync=sync,
                             threads=threads, progress=tick, dequantize=dequantize)


def edit_metadata(path: Path, set: Mapping[str, str] | None = None,
                  remove: Iterable[str] = (), *, output: Path | None = None, safe: bool = False,
                  sync: bool = True, keep_mtime: bool = False, force: bool = False,
                  link: Link = "replace", dry_run: bool = False,
                  progress: Progress = None) -> dict[str, Any]:
    """Changes a file's metadata, in place if the header has enough spare bytes or the file system
    can insert some, otherwise by rewriting the file. safe always rewrites; output writes a new
    file instead; force changes a file with several hard links; dry_run changes nothing. For an
    index.json, or a folder with one, the metadata are the index's own. If a key that begins with ss_
    changes, sshs_legacy_hash is removed, unless it is set, too.

    Returns {"method", "header_before", "header_after", "spare", "file_after"} (sizes in bytes);
    {"method"} for an index."""
    with watch(progress, "editing") as tick:
        return _core.edit(path, set=set, remove=remove, output=output, safe=safe, sync=sync,
                          keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                          progress=tick)


def rename_tensors(path: Path, names: Mapping[str, str], *, output: Path | None = None,
                   safe: bool = False, sync: bool = True, keep_mtime: bool = False,
                   force: bool = False, link: Link = "replace", dry_run: bool = False,
                   progress: Progress = None) -> dict[str, Any]:
    """Renames tensors, old -> new, leaving the data as they are, and removes sshs_legacy_hash, a
    digest that covers the names. Arguments and result as for edit_metadata."""
    with watch(progress, "renaming") as tick:
        return _core.edit(path, rename=names, output=output, safe=safe, sync=sync,
                          keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                          progress=tick)


def recover(path: Path) -> str:
    """Recovers a file from an interrupted edit. Returns "clean" if there was none, else "old" or
    "new", the state the file is in now."""
    return _core.recover(path)


def slice_byte_ranges(source: Any, name: str, index: Any = ...) -> list[tuple[int, int]]:
    """The bytes of the file that a slice of a tensor covers: half-open ranges in the order of the
    elements, adjacent ones joined. Reads only the header.

    source: a File, or anything libsafetensors.open takes; index: integers, slices and Ellipsis
    as in numpy. With several shards the ranges are in the tensor's own file."""
    if isinstance(source, _core.File):
        return source[name][index].byte_ranges()
    with _core.open(source, header_only=True) as file:
        return file[name][index].byte_ranges()
