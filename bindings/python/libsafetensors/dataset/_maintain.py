"""The commands of `safetensors dataset` as functions; results are their JSON, parsed."""
from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from operator import index
from typing import Any

from .. import _core
from .._progress import watch
from .._types import Path, Progress, Unpack, parse
from ._names import names_of
from ._read import open, version_of
from ._storage import Place, storage_options
from ._types import (AddResult, CompactResult, DatasetInfo, DeleteResult, DatasetTensors, GcResult, ManifestForm,
                     StorageOptions, VerifyResult, VersionsResult)

__all__ = ["add_column", "compact", "delete", "gc", "info", "ls", "verify", "versions"]


_PIECE = 64 << 20  # bytes of a file of values


def _check(name: str, value: int | None, least: int = 1, what: str = "a number") -> None:
    """ValueError for one that is too small, or that 64 bits do not hold."""
    if value is not None and not least <= index(value) < 1 << 64:
        raise ValueError("%s: expected %s from %d on, found %d" % (name, what, least, value))


def _opened(path: Path, version: int | None,
            storage: StorageOptions) -> tuple[_core.Dataset, str | bytes]:
    place = Place(path, storage_options(storage))
    dataset = _core.Dataset(place.core, *version_of(version, None))
    for text in dataset.warnings:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=3)
    return dataset, place.label


def info(path: Path, *, version: int | None = None,
         **storage: Unpack[StorageOptions]) -> DatasetInfo:
    """Describes a dataset by its manifest: mode, samples, columns, shards. Reads no shard.
    version: instead of the one in force. FileNotFoundError; SafetensorError for a manifest that is
    none."""
    dataset, text = _opened(path, version, storage)
    described: DatasetInfo = parse(dataset.info_json(text))
    return described


def ls(path: Path, *, keys: str | Iterable[str] | None = None, version: int | None = None,
       **storage: Unpack[StorageOptions]) -> DatasetTensors:
    """Lists every tensor of every shard, or those in keys (a list, or text separated by commas).
    version: instead of the one in force. Reads the shards' headers. A shard that cannot be read ends
    the list: "ok" is False and "error" says why. FileNotFoundError; SafetensorError for a manifest
    that is none."""
    dataset, text = _opened(path, version, storage)
    listed: DatasetTensors = parse(dataset.ls_json(
        text, None if keys is None else frozenset(names_of(keys))))
    return listed


def verify(path: Path, *, deep: bool = False, progress: Progress = None,
           **storage: Unpack[StorageOptions]) -> VerifyResult:
    """Checks the files against the manifest; returns "ok", "findings" and "orphans". deep also
    compares digests, which reads all data. An incomplete dataset raises nothing."""
    place = Place(path, storage_options(storage))
    with watch(progress, "verifying") as tick:
        verified: VerifyResult = parse(_core.dataset_verify(place.core, place.label, deep, tick))
    return verified


def versions(path: Path, **storage: Unpack[StorageOptions]) -> VersionsResult:
    """Lists the versions that are kept and the one in force, the oldest first. FileNotFoundError;
    SafetensorError for a manifest that is none."""
    place = Place(path, storage_options(storage))
    listed: VersionsResult = parse(_core.dataset_versions(place.core, place.label))
    return listed


def gc(path: Path, *, delete: bool = False, grace: int = 24 * 60 * 60, keep: int | None = None,
       older: int | None = None, **storage: Unpack[StorageOptions]) -> GcResult:
    """Lists, and with delete removes, files of failed jobs and replaced ones that no version names,
    if they are older than grace seconds. keep: also versions before the last so many; older: also
    those that were replaced more than so many seconds ago; with both, only what is both. Files not
    written by this package are never removed. grace: seconds. ValueError; OSError."""
    place = Place(path, storage_options(storage))
    _check("grace", grace, 0, "seconds")
    _check("keep", keep)
    _check("older", older)
    collected: GcResult = parse(_core.dataset_gc(place.core, place.label, grace, delete, keep or 0,
                                                 older or 0))
    return collected


def compact(path: Path, *, target_bytes: int = 0, dry_run: bool = False,
            progress: Progress = None, single_writer: bool = False,
            manifest: ManifestForm | None = None, drop_old: bool = False,
            batch_size: int | None = None,
            **storage: Unpack[StorageOptions]) -> CompactResult:
    """Merges shards that have replaced tensors, or are smaller than target_bytes, in a new commit.
    The index is removed; an append or overwrite can write another. Segments of the manifest are
    merged, too; manifest="segments" or "whole" converts it. batch_size: divides rows that are stored
    as batches into batches of this size instead. dry_run writes nothing and returns
    what would be done. The version before is kept until gc removes it; drop_old=True
    does not keep it, and if no other is kept its shards go at once. single_writer: the caller guarantees
    that no other process commits at the same time. SafetensorError if shards and manifest disagree;
    FileNotFoundError; OSError. The dataset is as it was then."""
    place = Place(path, storage_options(storage), single_writer=single_writer)
    _check("target_bytes", target_bytes, 0, "a number of bytes")
    _check("batch_size", batch_size, 1, "a number of rows")
    warned: list[str] = []
    with watch(progress, "compacting") as tick:
        result: CompactResult = parse(_core.dataset_compact(place.core, place.label, warned,
                                                            target_bytes, tick, dry_run,
                                                            manifest, drop_old, batch_size or 0))
    for text in warned:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result


def add_column(path: Path, name: str, values: Any, *, dtype: str | None = None,
               version: int | None = None, dry_run: bool = False, progress: Progress = None,
               single_writer: bool = False, scratch: Path | None = None,
               **storage: Unpack[StorageOptions]) -> AddResult:
    """Adds a column to a dataset in batch mode, in a new commit that writes no shard: each gets a
    file beside it. values: one for each row, in order: a list (with None for null), an array, a
    tensor, a Series, an Arrow array; of any type that write takes. dtype: converts them, as
    in write. version: whose rows they are, instead of the version in force; appends, deletions and
    other columns since then do no harm. Rows that are appended without the column are null. compact
    puts the column into the shards; the version before is kept until gc removes it. dry_run writes
    nothing to the dataset. scratch: a folder for a copy of the values meanwhile, instead of the
    system's. single_writer: as for compact. Needs pyarrow.

    ValueError (dataset_disagrees): there is such a column, or another number of rows;
    SafetensorError (dataset_changed): a compaction or an overwrite has replaced the shards since."""
    from ._write import table_of, write
    place = Place(path, storage_options(storage), single_writer=single_writer)
    number = version_of(version, None)[0]
    table = table_of({name: values})
    try:
        held = table.nbytes
    except TypeError:  # Arrow 18 does not count views
        held = table.get_total_buffer_size()
    size = max(1, min(len(table), len(table) * _PIECE // max(1, held)))
    warned: list[str] = []
    with tempfile.TemporaryDirectory(
            prefix="libsafetensors-", dir=scratch, ignore_cleanup_errors=True) as folder, \
            watch(progress, "adding") as tick:
        write(table, folder, batch_size=size, dtype=dtype, sync=False, keep_old=0)
        result: AddResult = parse(_core.dataset_add(
            place.core, place.label, warned, Place(folder).core, (), number, tick, dry_run))
    for text in warned:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result


def delete(path: Path, *, rows: Any = None, mask: Any = None,
           keys: str | Iterable[str] | None = None, version: int | None = None,
           dry_run: bool = False, progress: Progress = None, single_writer: bool = False,
           **storage: Unpack[StorageOptions]) -> DeleteResult:
    """Deletes rows in a new commit: by their numbers (a number, a range, or many; negative ones
    count from the end), by a mask with a boolean for each row, or by their names in KV mode (a list,
    or one). Readers count and number the others without them. version: whose numbers they are,
    and whose rows the mask has, instead of the version in force; appends and deletions since then do
    no harm. The shards stay as they are until compact removes the rows from them; the version before
    is kept until gc removes it. dry_run writes nothing. single_writer: as for compact.

    IndexError, KeyError (tensor_not_found): there is no such row, and nothing is deleted;
    SafetensorError (dataset_changed): a compaction or an overwrite has replaced the rows' shards
    since."""
    place = Place(path, storage_options(storage), single_writer=single_writer)
    if sum(one is not None for one in (rows, mask, keys)) != 1:
        raise ValueError("expected one of rows, mask and keys")
    pairs = b""
    names: tuple[str, ...] = ()
    if keys is not None:
        if version is not None:
            raise ValueError("version: expected none with keys, which are looked up in what is in force")
        names = (keys,) if isinstance(keys, str) else tuple(keys)
        number = 0
    else:
        with open(path, version=version, **storage) as found:
            number = found.version or 0
            chosen = _numbers(len(found), rows, mask)
            if found.mode == "kv":
                names = tuple(found._layout.name_of(one) for one in chosen.tolist())
            else:
                pairs = _ranges(chosen)
    warned: list[str] = []
    with watch(progress, "deleting") as tick:
        try:
            result: DeleteResult = parse(_core.dataset_delete(
                place.core, place.label, warned, pairs, number, names, tick, dry_run))
        except _core.SafetensorError as error:
            if error.code != "tensor_not_found":
                raise
            raise KeyError(str(error)) from None
    for text in warned:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result


def _numbers(count: int, rows: Any, mask: Any) -> Any:
    """Numbers of rows, ascending and each once."""
    import numpy as np

    from ..numpy import check_mask
    if mask is not None:
        check_mask("mask", mask, "%s")
        marks = np.asarray(mask)
        if (marks.dtype != np.bool_ and marks.size) or marks.shape != (count,):
            raise ValueError("mask: expected a boolean for each of %d rows, found %s of shape %s"
                             % (count, marks.dtype, list(marks.shape)))
        return np.flatnonzero(marks)
    check_mask("rows", rows, "%s")
    if not isinstance(rows, np.ndarray):
        rows = [rows] if hasattr(rows, "__index__") else list(rows)
    found = np.asarray(rows).reshape(-1)
    if not len(found):
        return np.zeros(0, np.int64)
    if found.dtype.kind not in "iu":
        raise TypeError("rows: expected whole numbers, found %s" % found.dtype)
    if int(found.min()) < -count or int(found.max()) >= count:
        raise IndexError("rows: expected from 0 to %d, found %d to %d"
                         % (count - 1, found.min(), found.max()))
    found = found.astype(np.int64)
    return np.unique(np.where(found < 0, found + count, found))


def _ranges(numbers: Any) -> bytes:
    """Pairs of the first and the one behind the last of each run of numbers."""
    import numpy as np
    if not len(numbers):
        return b""
    cuts = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.append(0, cuts + 1)], numbers[np.append(cuts, len(numbers) - 1)]
    found: bytes = np.stack((firsts, lasts + 1), 1).astype(np.uint64).tobytes()
    return found
