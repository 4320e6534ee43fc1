"""What `safetensors dataset` does, as functions; results are its JSON, parsed."""
from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._progress import watch
from .._types import Path, Progress
from ._storage import place_of, storage_options

__all__ = ["compact", "gc", "info", "ls", "verify"]


def _parse(text: str) -> dict[str, Any]:
    import json
    result: dict[str, Any] = json.loads(text)
    return result


def _opened(path: Path, storage: dict[str, Any]) -> tuple[_core.Dataset, str]:
    place = place_of(path, storage_options(storage))
    dataset = _core.Dataset(place.core)
    for text in dataset.warnings:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=3)
    return dataset, place.text


def info(path: Path, **storage: Any) -> dict[str, Any]:
    """What the manifest says: mode, samples, columns, shards."""
    dataset, text = _opened(path, storage)
    return _parse(dataset.info_json(text))


def ls(path: Path, *, keys: Iterable[str] | None = None,
       **storage: Any) -> dict[str, Any]:
    """Every tensor of every shard, or those named."""
    dataset, text = _opened(path, storage)
    return _parse(dataset.ls_json(text, keys))


def verify(path: Path, *, deep: bool = False, progress: Progress = None,
           **storage: Any) -> dict[str, Any]:
    """The manifest against the files: "ok", "findings", "orphans". deep compares digests, too.
    A dataset that is not whole raises nothing."""
    place = place_of(path, storage_options(storage))
    with watch(progress, "verifying") as tick:
        return _parse(_core.dataset_verify(place.core, place.text, deep, tick))


def gc(path: Path, *, delete: bool = False, grace: int = 24 * 60 * 60,
       **storage: Any) -> dict[str, Any]:
    """What dead jobs and overwritten datasets left here, older than grace seconds; delete
    removes it. Never a file that is not ours."""
    place = place_of(path, storage_options(storage))
    return _parse(_core.dataset_gc(place.core, place.text, grace, delete))


def compact(path: Path, *, target_bytes: int = 0, progress: Progress = None,
            single_writer: bool = False, **storage: Any) -> dict[str, Any]:
    """Writes shards that hold replaced tensors, or are smaller than target_bytes, anew and
    together, as one more commit. The index goes: an append or overwrite can make another.
    single_writer: nobody else commits meanwhile."""
    place = place_of(path, storage_options(storage), single_writer=single_writer)
    told: list[str] = []
    with watch(progress, "compacting") as tick:
        result = _parse(_core.dataset_compact(place.core, place.text, told, target_bytes, tick))
    for text in told:
        warnings.warn("%s: %s" % (place.text, text), stacklevel=2)
    return result
