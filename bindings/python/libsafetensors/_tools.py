"""Tools that the official package lacks. Results are the library's JSON, parsed, and belong to the
caller (docs/json.md explains their fields).

Any thread may call them, several at a time; other threads run while files are read and written. A
progress that raises cancels the work, and its exception is raised. None of them imports numpy or
torch unless it is given their tensors."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _core
from ._dtypes import target_dtype
from ._errors import open_coded
from ._memory import header_of, model
from ._progress import Tick, watch
from ._results import (CheckResult, ConvertResult, DiffResult, EditResult, FitsResult, HashResult,
                       InfoResult, LsResult)
from ._told import check_config
from ._types import Level, Link, Model, OpenOptions, Order, Path, Progress, Source, Unpack, parse

__all__ = ["Records", "check", "convert", "dequantize", "diff", "edit_metadata", "fits", "hash",
           "info", "ls", "open_set", "put", "recover", "rename_tensors", "slice_byte_ranges"]


def open_set(index_or_folder: Path, **options: Unpack[OpenOptions]) -> _core.File:
    """Opens all shards of a model as one. index_or_folder: its index.json, its folder or a single
    file. The same as libsafetensors.open, whose options it takes.

    SafetensorError (index_...) if index and shards disagree; FileNotFoundError."""
    return _core.open(index_or_folder, **options)


def ls(source: Model, order: Order = "offset") -> LsResult:
    """Lists a file: tensors with dtype, shape and offsets, as "safetensors ls --json" does. source:
    anything libsafetensors.open takes, a File, or other tensors by name. order: of the
    tensors, "offset" (of the data), "name", "natural" or "header". Reads the headers only. Raises as
    libsafetensors.open."""
    given = model(source)
    if isinstance(given, _core.File):
        listed: LsResult = parse(given.ls_json(order))
    else:
        with _core.open(given, mode="read") as file:
            listed = parse(file.ls_json(order))
    return listed


class Records:
    """What is known of models, with files of records of your own (docs/records.md), read once: for
    the records of info. paths: files, or folders, of which the files that end in .txt are read.
    Without one, what comes with the library. Threads may share it.

    ValueError for what is wrong, with file, line and column; OSError."""

    _core: Any = None  # until they are read
    _paths: tuple[Path, ...] = ()

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        files: list[str] = []
        for path in map(os.fsdecode, paths):
            if not os.path.isdir(path):
                files.append(path)
                continue
            inside = [os.path.join(path, name) for name in sorted(os.listdir(path))
                      if name.endswith(".txt") and not name.startswith(".")]
            files += [one for one in inside if os.path.isfile(one) or not os.path.exists(one)]
        texts = []
        for name in files:
            with open_coded(name) as file:
                texts.append((name, file.read((4 << 20) + 1)))
        self._core = _core.open_records(texts)


def info(source: Model, *, full: bool = True, deep: bool = False,
         records: Records | Path | Iterable[Path] | None = None) -> InfoResult:
    """Describes a model: name, kind, architecture, base model, trigger words, licence and more,
    each fact with its source. Reads the headers, files of the folder that are about the model, and
    up to eight alpha scalars; deep also reads tensor data that tell more; full=False leaves
    out the details. Uses the network for URLs only, of which it reads the headers.
    records: Records, or the path of a file or folder of them, or several, which are read for this
    call.

    source: path of a file, folder or index.json, a URL, a File or other tensors by name, or an object
    with read and seek. Of a URL, "remote" is what its server says of the file: url, bytes, sha256, commit, etag
    and local, none of it computed. Of a folder of several models the result has their descriptions
    in "models", made by infos, and no facts of its own; those that cannot be read have "error".
    SafetensorError for a file that is no model, IsADirectoryError for a folder without one, OSError;
    what claims contradict is in "conflicts". The dict shows itself in notebooks as a label, of a
    folder as a table."""
    if records is not None and not isinstance(records, Records):
        one = isinstance(records, (str, bytes, os.PathLike))
        records = Records(*([records] if one else records))  # type: ignore[misc]
    known = None if records is None else records._core
    if records is not None and known is None:
        raise ValueError("expected Records(...), found one that __init__ was not called for")
    try:
        text, claims = _core.info_json(model(source), full=full, deep=deep, records=known)
    except IsADirectoryError:
        several = _infos_of(source, full, deep, records)
        if several is None:
            raise
        return several
    from ._labels import Info
    described: InfoResult = Info(parse(text))  # type: ignore[assignment]
    if claims is not None:
        described["remote"] = {"url": described["path"], **claims}
    return described


def _infos_of(folder: Any, full: bool, deep: bool, records: Records | None) -> InfoResult | None:
    """What info says of a folder that is not one model in files of the core: None without a model."""
    from ._collection import infos
    from ._labels import Info
    found = infos(folder, full=full, deep=deep, records=records and records._paths or None,
                  user_records=False)
    if len(found) > 1:
        return Info(path=os.fsdecode(folder), ok=all(one["ok"] for one in found),  # type: ignore[return-value]
                    models=found)
    return found[0] if found and found[0]["ok"] else None


def fits(a: Model, b: Model) -> FitsResult:
    """Whether two models are used together, one a checkpoint or another whole model, the other an
    adapter, embedding, ControlNet, VAE or text encoder; which comes first does not matter.

    fit: "yes", "likely", "loads" (made for another base), "unknown", "no", or "none" for kinds
    that are not used together; reason: the facts that decide. a, b: as the source of info, with
    the same cost and errors: SafetensorError, FileNotFoundError, OSError."""
    fit, reason = _core.fits(model(a), model(b))
    return {"fit": fit, "reason": reason}


def check(path: Source, *, level: Level = "default", deep: bool = False,
          progress: Progress = None) -> CheckResult:
    """Checks a file or a model of several, and returns every finding; an invalid file raises
    nothing: "ok" is False then. Reads the headers; deep reads all data, once, and checks their
    values, too. path: also an object with read and seek, which is read from its start, in pieces
    of a few MiB, and left where reading ended. OSError if the file cannot be read."""
    with watch(progress, "checking") as tick:
        checked: CheckResult = parse(_core.check_json(path, level=level, deep=deep,
                                                      progress=tick))
    return checked


def hash(path: Source, algos: str | Iterable[str] = "sha256", *, cache: Path | None = None,
         threads: int = 0, progress: Progress = None) -> HashResult:
    """Computes digests in one pass over the file, or over each shard of a model. algos: names in a
    list or separated by commas, as "safetensors hash --help" lists them. threads: 0 is one per
    processor. path: also an object with read and seek, which is read from its start, by one
    thread. Holds a few MiB in memory. cache: a file of digests, by which a file that did not change is
    not read again ("remembered"); by the command of the package, of paths. verify_hashes compares.

    Digests of a model are None in "computed" for a file that is none, and "model_error" says why.
    ValueError for an unknown algorithm; OSError."""
    names = algos if isinstance(algos, str) else ",".join(algos)
    with watch(progress, "hashing") as tick:
        if cache is not None:
            return _hash_by_command(path, names, cache, threads, tick)
        hashed: HashResult = parse(_core.hash_json(path, names, threads, tick))
    return hashed


def _hash_by_command(path: Any, names: str, cache: Path, threads: int,
                     tick: Tick | None) -> HashResult:
    from ._command import one_model, one_result, options, results_of
    words = options(algo=names, cache=cache, threads=threads or None)
    one = one_result(results_of(["hash", *words, "--", one_model(path)], tick)["results"], path)
    hashed: HashResult = one  # type: ignore[assignment]
    return hashed


def diff(a: Model, b: Model, *, atol: float | None = None, rtol: float | None = None,
         header: bool = False, metadata: bool = True, values: bool = False,
         match: str | Iterable[str] | None = None, exclude: str | Iterable[str] | None = None,
         progress: Progress = None) -> DiffResult:
    """Compares two models, each a path, URL, File or mapping of tensors. Values are compared bit by bit, or within atol + rtol * |b|
    if either is given; header compares names, dtypes and shapes only, and reads no data;
    metadata=False ignores metadata, except other names of tensors. values: quantised tensors by the values that they stand for, in
    F32; match, exclude: only tensors whose name matches one of these patterns, and none of those;
    these are the command's, of paths. "same" is the answer. SafetensorError for an invalid file,
    ValueError for tolerances below 0, OSError."""
    with watch(progress, "comparing") as tick:
        if values or match is not None or exclude is not None:
            from ._command import listed, options
            match = match if match is None else listed(match)
            if match == []:
                raise ValueError("match: expected patterns of names, found none")
            return _diff_by_command(a, b, options(
                atol=atol, rtol=rtol, header=header, no_metadata=not metadata, values=values,
                match=match, exclude=exclude), tick)
        text = _core.diff_json(model(a), model(b), atol=atol, rtol=rtol, header=header, metadata=metadata,
                               progress=tick)
    from ._labels import Diff
    compared: DiffResult = Diff(parse(text))  # type: ignore[assignment]
    return compared


def _diff_by_command(a: Any, b: Any, words: list[str], tick: Tick | None) -> DiffResult:
    from ._command import one_model, one_result, results_of
    from ._labels import Diff
    found = results_of(["diff", *words, "--", one_model(a), one_model(b)], tick)
    compared: DiffResult = Diff(one_result(found["results"], a))  # type: ignore[assignment]
    return compared


def convert(path: Model, output: Path, dtype: Any, *, names: str | Iterable[str] | None = None,
            saturate: bool = False, overrule_scales: bool = False, overwrite: bool = False,
            sync: bool = True, threads: int = 1, progress: Progress = None,
            dequantize: bool = False, lossy: bool = False, dry_run: bool = False,
            keep_mtime: bool = False, in_place_unsafe: bool = False) -> ConvertResult:
    """Writes a model, a path, URL, File or mapping of tensors, with its tensors converted to dtype
    ("BF16", "F8_E4M3", or a dtype of numpy or torch): the floats if dtype is one, the integers if it is one; with names, which may be
    patterns, exactly those.
    saturate: values out of range become the greatest finite one, not an infinity or a NaN.
    overrule_scales: convert also tensors with a scale, and the scales. dequantize: compute the
    values of quantised tensors instead (docs/convert.md), drop their scales, and leave all others
    alone. lossy: cast an adapter to 8 bits or fewer, too, in which many of its values become
    zero, and scalars that names has. threads: 0 is one per processor; each takes about 2.5 MiB of
    memory. overwrite: replace an existing output, which may be the input, atomically. dry_run:
    tell what would be done (no values are lost then). keep_mtime: files get the times of those that
    their tensors come from. in_place_unsafe: as of save_file. sync=False does not wait for the
    disk. Metadata is kept, except for digests of the old data (sshs_model_hash,
    sshs_legacy_hash, modelspec.hash_*).

    Returns the number of tensors by action ("kept": scalars that keep their dtype), the bytes
    before and after, and "lost": of how many "values" that were not zero how many became "zero",
    "infinite" (NaN if the dtype has no infinity) or "saturated". ValueError (cast_value) for a
    value that the dtype has no place for, such as a NaN in F4; TypeError (cast_dtype);
    SafetensorError for an invalid file or one quantised in a way that is not known;
    FileExistsError; OSError. Nothing is written if it raises."""
    source = model(path)
    if names is not None:
        from ._arrays import known
        if isinstance(source, _core.File):
            names = known(source, names)
        else:
            with _core.open(source, header_only=True) as file:
                names = known(file, names)
    from ._output import keep_times
    check_config([_path_of(source)], output)
    with keep_times(keep_mtime and not dry_run, [source], output), \
            watch(progress, "converting") as tick:
        return _core.convert(source, output, target_dtype(dtype), names=names, saturate=saturate,
                             overrule_scales=overrule_scales, overwrite=overwrite, sync=sync,
                             threads=threads, progress=tick, dequantize=dequantize, lossy=lossy,
                             dry_run=dry_run, in_place_unsafe=in_place_unsafe)


def _path_of(source: Any) -> str | None:
    """Of a model in one file that adapter_config.json may be beside."""
    if isinstance(source, _core.File):
        return source.paths[0] if len(source.paths) == 1 else None
    name = os.fsdecode(source) if isinstance(source, (str, bytes, os.PathLike)) else None
    if name is not None and "://" not in name and os.path.isdir(name):
        return os.path.join(name, "adapter_model.safetensors")
    return name


def dequantize(source: Model, output: Path, dtype: Any = "BF16", *,
               names: str | Iterable[str] | None = None, dry_run: bool = False,
               overwrite: bool = False, keep_mtime: bool = False, in_place_unsafe: bool = False,
               sync: bool = True, threads: int = 1, progress: Progress = None) -> ConvertResult:
    """Writes a model with the values of its quantised tensors, as "safetensors convert
    --dequantize": convert with dequantize=True, whose arguments and result it has. Scales and
    declarations are left out, all other tensors are as they are. dtype: of the values. Errors are
    those of convert: TypeError and SafetensorError for what cannot be computed, FileExistsError,
    OSError."""
    return convert(source, output, dtype, names=names, overwrite=overwrite, sync=sync,
                   threads=threads, progress=progress, dequantize=True, dry_run=dry_run,
                   keep_mtime=keep_mtime, in_place_unsafe=in_place_unsafe)


def edit_metadata(path: Path, set: Mapping[str, str] | None = None,
                  remove: str | Iterable[str] = (), *, output: Path | None = None, safe: bool = False,
                  sync: bool = True, keep_mtime: bool = False, force: bool = False,
                  link: Link = "replace", dry_run: bool = False,
                  in_place_unsafe: bool = False, progress: Progress = None) -> EditResult:
    """Changes a file's metadata, in place if the header has enough spare bytes or the file system
    can insert some, otherwise by rewriting the file. set: keys with their texts. remove: keys, or
    patterns of *, ? and [a-z]; one that the file has is itself. safe always rewrites; output writes a new
    file instead; force changes a file with several hard links; dry_run changes nothing;
    in_place_unsafe: as of save_file. For an
    index.json, or a folder with one, the metadata is the index's own. If a key that begins with
    ss_ changes, sshs_legacy_hash is removed, unless it is set, too.

    Returns {"method", "header_before", "header_after", "spare", "file_after"} (sizes in bytes);
    {"method"} for an index. SafetensorError for an invalid file; OSError, also if the file has
    several hard links (hard_links) or another program is changing it (edit_busy). If it raises,
    the file is as it was."""
    gone = [remove] if isinstance(remove, str) else list(remove or ())
    if any(isinstance(key, str) and any(sign in key for sign in "*?[") for key in gone):
        # Changes nothing: recovers from an interrupted edit.
        _core.edit(path, force=force, link=link, sync=sync, dry_run=dry_run)
        gone = _matching_keys(path, gone)
    if output is not None:
        check_config([os.fsdecode(path)], output)
    with watch(progress, "editing") as tick:
        return _core.edit(path, set=set, remove=gone, output=output, safe=safe, sync=sync,
                          keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                          progress=tick, in_place_unsafe=in_place_unsafe)


def _matching_keys(path: Path, keys: Iterable[str]) -> list[str]:
    """The keys, with those of the file, or of the index, that a pattern matches in its place."""
    from fnmatch import fnmatchcase
    with _core.open(path, header_only=True) as file:
        index = file._index()
        known = file.metadata() if index is None else index[1] and parse(index[1])
    there = list(known or ())
    return [one for key in keys
            for one in ([key] if key in there or not any(sign in key for sign in "*?[") else
                        [one for one in there if fnmatchcase(one, key.replace("[^", "[!"))])]


def rename_tensors(path: Path, names: Mapping[str, str], *, output: Path | None = None,
                   safe: bool = False, sync: bool = True, keep_mtime: bool = False,
                   force: bool = False, link: Link = "replace", dry_run: bool = False,
                   in_place_unsafe: bool = False, progress: Progress = None) -> EditResult:
    """Renames tensors, old -> new, leaving the data as they are, and removes sshs_legacy_hash, a
    digest that covers the names. Arguments and result as for edit_metadata; TensorNotFoundError,
    and SafetensorError if two would have one name."""
    if output is not None:
        check_config([os.fsdecode(path)], output)
    with watch(progress, "renaming") as tick:
        try:
            return _core.edit(path, rename=names, output=output, safe=safe, sync=sync,
                              keep_mtime=keep_mtime, force=force, link=link, dry_run=dry_run,
                              progress=tick, in_place_unsafe=in_place_unsafe)
        except _core.TensorNotFoundError as error:
            with _core.open(path, header_only=True) as file:
                if error.tensor is not None and error.tensor not in file:
                    file[error.tensor]  # with the name that is near
            raise


def _rows_of(tensors: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Rows for _core of arrays of numpy, tensors of torch or Tensors, and the objects that own
    their memory."""
    import sys
    torch = sys.modules.get("torch")
    rows: list[Any] = []
    kept: list[Any] = []
    for name, value in tensors.items():
        if torch is not None and isinstance(value, torch.Tensor):
            from .torch import _plain_row
            rows.append(_plain_row(name, value, kept))
        elif isinstance(value, _core.Tensor):
            rows.append((name, value.dtype, value.shape, value, None))
        else:
            from .numpy import _row
            row = _row(name, value)
            kept.append(row[5])
            rows.append(row[:5])
    return rows, kept


def _kept_metadata(file: _core.File) -> dict[str, str] | None:
    """The metadata without digests of the data, which change."""
    metadata = file.metadata()
    return metadata and {
        key: value for key, value in metadata.items()
        if key not in ("sshs_model_hash", "sshs_legacy_hash")
        and not (key.startswith("modelspec.hash_") and key != "modelspec.hash_")}


def _rewrite(path: Path, file: _core.File, rows: list[Any], sync: bool, link: Link,
             in_place_unsafe: bool, dry_run: bool, progress: Progress) -> EditResult:
    """Writes the file anew, with the rows in the place of the tensors of their names, others
    after all tensors."""
    given = {row[0]: row for row in rows}
    merged = [given.pop(name, (name, tensor.dtype, tensor.shape, tensor, None))
              for name, tensor in file.items()]
    merged.extend(given.values())
    if dry_run:
        text = header_of(merged, _kept_metadata(file))
    else:
        with watch(progress, "writing") as tick:
            _core.save_file(path, merged, _kept_metadata(file), keep_order=True, sync=sync,
                            link=link, progress=tick, in_place_unsafe=in_place_unsafe)
        with _core.open(path, mode="read") as written:
            text = written.header()
    from ._output import row_bytes
    return {"method": "copy", "header_before": len(file.header()), "header_after": len(text),
            "spare": len(text) - len(text.rstrip(b" ")),
            "file_after": 8 + len(text) + sum(map(row_bytes, merged))}


def put(path: Path, tensors: Mapping[str, Any], *, safe: bool = False, sync: bool = True,
        force: bool = False, link: Link = "replace", keep_mtime: bool = False,
        in_place_unsafe: bool = False, dry_run: bool = False,
        progress: Progress = None) -> EditResult:
    """Writes tensors into an existing file: arrays of numpy, tensors of torch or Tensors of a File,
    by name. Those that the file has are replaced, others are appended.

    Arrays may have any strides; tensors of a device are copied to the CPU first, all at once. If
    each replaces one of its dtype and shape, their bytes alone are written: in place, protected
    by a journal, or, with safe or if they are many (64 MiB), to a copy. Otherwise the file is
    rewritten, header included. Digests of the old data that the metadata records are removed
    (sshs_model_hash, sshs_legacy_hash, modelspec.hash_*). The file is changed as a whole or not
    at all. A File that is open keeps the old data if the file was rewritten. Do not change one
    file from two threads or processes at once: the last rewrite wins. force changes a file with
    several hard links; if it is rewritten, the other names keep the old data. Result as for
    edit_metadata.

    SafetensorError for a dtype that the format lacks; ValueError for an index, and for tensors without
    memory of their own; TypeError; OSError."""
    if not hasattr(tensors, "items"):
        raise TypeError("tensors: expected a mapping of names to tensors, found %s"
                        % type(tensors).__name__)
    rows, kept = _rows_of(tensors)
    # Changes nothing: recovers from an interrupted edit, and refuses links as an edit does.
    _core.edit(path, force=force, link=link, sync=sync, dry_run=dry_run)
    with _core.open(path) as file:
        old = [file.get(row[0]) for row in rows]
        same = all(one is not None and one.dtype == row[1] and one.shape == tuple(row[2])
                   for one, row in zip(old, rows))
        if not same and _is_one_file(path):
            from ._output import keep_times
            with keep_times(keep_mtime and not dry_run, [path], path):
                return _rewrite(path, file, rows, sync, link, in_place_unsafe, dry_run, progress)
    with watch(progress, "writing") as tick:
        return _core.edit(path, put=rows, safe=safe, sync=sync, force=force, link=link,
                          keep_mtime=keep_mtime, in_place_unsafe=in_place_unsafe, dry_run=dry_run,
                          progress=tick)


def _is_one_file(path: Path) -> bool:
    """Whether it is a file itself, and no index or folder."""
    import os
    return os.path.isfile(path) and not os.fspath(path).endswith(".index.json")


def recover(path: Path, *, force: bool = False,
            sync: bool = True) -> Literal["clean", "old", "new"]:
    """Recovers a file from an interrupted edit. Returns "clean" if there was none, else "old" or
    "new", the state the file is in now. force: also a copy of the file, which the journal does not
    name, if its length and every byte fit. sync=False does not wait for the disk. OSError
    (edit_interrupted) if the journal does not belong to the file, which is left alone then."""
    return _core.recover(path, force=force, sync=sync)


def slice_byte_ranges(source: Any, name: str, index: Any = ...) -> list[tuple[int, int]]:
    """The bytes of the file that a slice of a tensor covers: half-open ranges in the order of the
    elements, adjacent ones joined. Reads only the header.

    source: a File, or anything libsafetensors.open takes; name: of the tensor; index: integers, slices and Ellipsis
    as in numpy. With several shards the ranges are in the tensor's own file. TensorNotFoundError,
    IndexError, and SafetensorError for elements that do not begin and end at a byte."""
    if isinstance(source, _core.File):
        return source[name][index].byte_ranges()
    with _core.open(source, header_only=True) as file:
        return file[name][index].byte_ranges()
