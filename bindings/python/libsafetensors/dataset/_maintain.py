"""The commands of `safetensors dataset` as functions; results are their JSON, parsed."""
from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._progress import watch
from .._types import Path, Progress, Unpack, parse
from ._read import names_of
from ._storage import Place, storage_options
from ._types import (CompactResult, DatasetInfo, DatasetTensors, GcResult, ManifestForm,
                     StorageOptions, VerifyResult, VersionsResult)

__all__ = ["compact", "gc", "info", "ls", "verify", "versions"]


def _opened(path: Path, version: int | None,
            storage: StorageOptions) -> tuple[_core.Dataset, str]:
    place = Place(path, storage_options(storage))
    dataset = _core.Dataset(place.core, version or 0)
    for text in dataset.warnings:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=3)
    return dataset, place.text


def info(path: Path, *, version: int | None = None,
         **storage: Unpack[StorageOptions]) -> DatasetInfo:
    """Describes a dataset by its manifest: mode, samples, columns, shards. Reads no shard.
    version: instead of the one in force."""
    dataset, text = _opened(path, version, storage)
    described: DatasetInfo = parse(dataset.info_json(text))
    return described


def ls(path: Path, *, keys: str | Iterable[str] | None = None, version: int | None = None,
       **storage: Unpack[StorageOptions]) -> DatasetTensors:
    """Lists every tensor of every shard, or those in keys (a list, or text separated by commas).
    version: instead of the one in force. Reads the shards' headers. A shard that cannot be read ends the list: "ok" is False and
    "error" says why."""
    dataset, text = _opened(path, version, storage)
    listed: DatasetTensors = parse(dataset.ls_json(text, names_of(keys)))
    return listed


def verify(path: Path, *, deep: bool = False, progress: Progress = None,
           **storage: Unpack[StorageOptions]) -> VerifyResult:
    """Checks the files against the manifest; returns "ok", "findings" and "orphans". deep also
    compares digests, which reads all data. An incomplete dataset raises nothing."""
    place = Place(path, storage_options(storage))
    with watch(progress, "verifying") as tick:
        verified: VerifyResult = parse(_core.dataset_verify(place.core, place.text, deep, tick))
    return verified


def versions(path: Path, **storage: Unpack[StorageOptions]) -> VersionsResult:
    """Lists the versions that are kept and the one in force, the oldest first."""
    place = Place(path, storage_options(storage))
    listed: VersionsResult = parse(_core.dataset_versions(place.core, place.text))
    return listed


def gc(path: Path, *, delete: bool = False, grace: int = 24 * 60 * 60, keep: int | None = None,
       older: int | None = None, **storage: Unpack[StorageOptions]) -> GcResult:
    """Lists, and with delete removes, files of failed jobs and replaced ones that no version names,
    if they are older than grace seconds. keep: also versions before the last so many; older: also
    those that were replaced more than so many seconds ago; with both, only what is both. Files not
    written by this package are never removed."""
    place = Place(path, storage_options(storage))
    for name, value in (("keep", keep), ("older", older)):
        if value is not None and value < 1:
            raise ValueError("%s: expected a number from 1 on, found %d" % (name, value))
    collected: GcResult = parse(_core.dataset_gc(place.core, place.text, grace, delete, keep or 0,
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
    does not keep it, and if no other is kept its shards go at once. single_writer: the caller guarantees that no other process commits
    at the same time."""
    place = Place(path, storage_options(storage), single_writer=single_writer)
    if batch_size is not None and batch_size < 1:
        raise ValueError("batch_size: expected a number of rows from 1 on, found %d" % batch_size)
    warned: list[str] = []
    with watch(progress, "compacting") as tick:
        result: CompactResult = parse(_core.dataset_compact(place.core, place.text, warned,
                                                            target_bytes, tick, dry_run,
                                                            manifest, drop_old, batch_size or 0))
    for text in warned:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result
