"""Tools that the official package lacks. Results are the library's JSON, parsed."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import _core
from ._progress import watch
from ._types import Level, Link, Order, Path, Progress, parse

__all__ = ["check", "convert", "diff", "edit_metadata", "hash", "info", "ls", "open_set",
           "recover", "rename_tensors", "slice_byte_ranges"]


def open_set(index_or_folder: Path, **options: Any) -> _core.File:
    """All shards of a model as one: its index.json, its folder, or a single file. The same as
    libsafetensors.open, whose options it takes.

    SafetensorError (index_...) when index and shards disagree; FileNotFoundError."""
    return _core.open(index_or_folder, **options)


def ls(source: Any, order: Order = "offset") -> dict[str, Any]:
    """What a file holds: tensors with dtype, shape and place, and metadata, as
    "safetensors ls --json" has it. source: whatever libsafetensors.open takes, or a File."""
    if isinstance(source, _core.File):
        return parse(source.ls_json(order))
    with _core.open(source, mode="read") as file:
        return parse(file.ls_json(order))


def info(source: Any, *, full: bool = True, deep: bool = False) -> dict[str, Any]:
    """What a model is: name, kind, architecture, base model, trigger words, licence and more,
    each fact with its source. deep reads tensor data where that tells more; full=False leaves
    out what only a reader of details wants. Nothing is asked of a network.

    source: path of a file, folder or index.json, or an object with read and seek."""
    return parse(_core.info_json(source, full=full, deep=deep))


def check(path: Path, *, level: Level = "default", deep: bool = False,
          progress: Progress = None) -> dict[str, Any]:
    """Every finding about a file. A bad file raises nothing: the result tells. deep reads all
    data and looks at their values too. OSError when the file cannot be read."""
    with watch(progress, "checking") as tick:
        return parse(_core.check_json(path, level=level, deep=deep, progress=tick))


def hash(path: Path, algos: str | Iterable[str] = "sha256", *, threads: int = 0,
         progress: Progress = None) -> dict[str, Any]:
    """Digests in a single pass. algos: names in a list or with commas, as
    "safetensors hash --help" lists them. threads 0: as many as there are processors."""
    names = algos if isinstance(algos, str) else ",".join(algos)
    with watch(progress, "hashing") as tick:
        return parse(_core.hash_json(path, names, threads, tick))


def diff(a: Path, b: Path, *, atol: float | None = None, rtol: float | None = None,
         header: bool = False, metadata: bool = True, progress: Progress = None) -> dict[str, Any]:
    """How two files or models differ. Values are compared bit by bit, or within atol + rtol * |b|
    when one of them is given; header compares names, dtypes and shapes only; metadata=False
    leaves those out."""
    with watch(progress, "comparing") as tick:
        return parse(_core.diff_json(a, b, atol=atol, rtol=rtol, header=header,
                                      metadata=metadata, progress=tick))


def _header_name(dtype: Any) -> str:
    """A dtype by its name in a header, or as numpy and torch have it."""
    from ._files import HEADER_NAMES
    name = str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]
    upper = name.upper()
    return HEADER_NAMES.get(name, upper if upper in _core.DTYPES else name)


def convert(path: Path, output: Path, dtype: Any, *, names: Iterable[str] | None = None,
            saturate: bool = False, overrule_scales: bool = False, overwrite: bool = False,
            sync: bool = True, threads: int = 1, progress: Progress = None) -> dict[str, int]:
    """Writes the model with its floats in another dtype ("BF16", "F8_E4M3", also one of numpy or
    torch); names: only those. saturate takes the nearest value where one has no place. Returns
    counts of what was done."""
    with watch(progress, "converting") as tick:
        return _core.convert(path, output, _header_name(dtype), names=names, saturate=saturate,
                             overrule_scales=overrule_scales, overwrite=overwrite, sync=sync,
                             threads=threads, progress=tick)


def edit_metadata(path: Path, set: Mapping[str, str] | None = None,
                  remove: Iterable[str] = (), *, output: Path | None = None, safe: bool = False,
                  sync: bool = True, keep_mtime: bool = False, force: bool = False,
                  link: Link = "replace", dry_run: bool = False,
                  progress: Progress = None) -> dict[str, Any]:
    """Changes a file's metadata in place: the data are not moved if the header has room or the
    file system can make some, otherwise the file is rewritten. safe always rewrites; output
    writes a new file instead; dry_run changes nothing. For an index.json, or a folder with one,
    the metadata are the index's own.

    Returns {"method", "header_before", "header_after", "spare", "file_after"}; of an index
    {"method"}."""
    with watch(progress, "editing") as tick:
        return _core.edit(path, set=set, remove=remove, output=output, safe=safe, sync=sync,
                          keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                          progress=tick)


def rename_tensors(path: Path, names: Mapping[str, str], *, output: Path | None = None,
                   safe: bool = False, sync: bool = True, keep_mtime: bool = False,
                   force: bool = False, link: Link = "replace", dry_run: bool = False,
                   progress: Progress = None) -> dict[str, Any]:
    """Renames tensors, old -> new, without touching the data. Arguments and result as for
    edit_metadata."""
    with watch(progress, "renaming") as tick:
        return _core.edit(path, rename=names, output=output, safe=safe, sync=sync,
                          keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                          progress=tick)


def recover(path: Path) -> str:
    """Recovers a file from an interrupted edit: "clean" if there was none, "old" or "new" for the
    state the file is in now."""
    return _core.recover(path)


def slice_byte_ranges(source: Any, name: str, index: Any = ...) -> list[tuple[int, int]]:
    """Which bytes of the file a slice of a tensor needs: half-open ranges in the order of the
    elements, neighbours joined. Nothing but the header is read.

    source: a File, or whatever libsafetensors.open takes; index as numpy's: integers, slices,
    Ellipsis. Of several shards the ranges are of the tensor's own file."""
    if isinstance(source, _core.File):
        return source[name][index].byte_ranges()
    with _core.open(source, header_only=True) as file:
        return file[name][index].byte_ranges()
