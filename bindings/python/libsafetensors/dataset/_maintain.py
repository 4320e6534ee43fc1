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
                     StorageOptions, VerifyResult)

__all__ = ["compact", "gc", "info", "ls", "verify"]


def _opened(path: Path, storage: StorageOptions) -> tuple[_core.Dataset, str]:
    place = Place(path, storage_options(storage))
    dataset = _core.Dataset(place.core)
    for text in dataset.warnings:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=3)
    return dataset, place.text


def info(path: Path, **storage: Unpack[StorageOptions]) -> DatasetInfo:
    """Describes a dataset by its manifest: mode, samples, columns, shards. Reads no shard."""
    dataset, text = _opened(path, storage)
    described: DatasetInfo = parse(dataset.info_json(text))
    return described


def ls(path: Path, *, keys: str | Iterable[str] | None = None,
       **storage: Unpack[StorageOptions]) -> DatasetTensors:
    """Lists every tensor of every shard, or those in keys (a list, or text separated by commas).
    Reads the shards' headers. A shard that cannot be read ends the list: "ok" is False and
    "error" says why."""
    dataset, text = _opened(path, storage)
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


def gc(path: Path, *, delete: bool = False, grace: int = 24 * 60 * 60,
       **storage: Unpack[StorageOptions]) -> GcResult:
    """Lists, and with delete removes, files of failed jobs and overwritten datasets that are older
    than grace seconds. Files not written by this package are never removed."""
    place = Place(path, storage_options(storage))
    collected: GcResult = parse(_core.dataset_gc(place.core, place.text, grace, delete))
    return collected


def compact(path: Path, *, target_bytes: int = 0, dry_run: bool = False,
            progress: Progress = None, single_writer: bool = False,
            manifest: ManifestForm | None = None,
            **storage: Unpack[StorageOptions]) -> CompactResult:
    """Merges shards that have replaced tensors, or are smaller than target_bytes, in a new commit.
    The index is removed; an append or overwrite can write another. Segments of the manifest are
    merged, too; manifest="segments" or "whole" converts it. dry_run writes nothing and returns
    what would be done. single_writer: the caller guarantees that no other process commits
    at the same time."""
    place = Place(path, storage_options(storage), single_writer=single_writer)
    warned: list[str] = []
    with watch(progress, "compacting") as tick:
        result: CompactResult = parse(_core.dataset_compact(place.core, place.text, warned,
                                                            target_bytes, tick, dry_run,
                                                            manifest))
    for text in warned:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result
