"""Models in another layout, as "safetensors convert --layout" does it; docs/layouts.md says what is
known of which models."""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any, Literal

from . import _core
from ._errors import coded, near
from ._memory import is_one, model
from ._output import keep_times
from ._progress import watch
from ._results import LayoutResult
from ._types import Model, Path, Progress

__all__ = ["layout"]

_LAYOUTS = ("diffusers", "single", "comfy")
_INDEX, _WEIGHTS = ".safetensors.index.json", (".safetensors", ".sft")


def _models_in(folder: str) -> list[str]:
    """The files of models in a folder; of shards the index."""
    names = sorted(os.listdir(folder))
    indexes = [name for name in names if name.endswith(_INDEX)]
    stems = tuple(name[:-len(_INDEX)] + "-" for name in indexes)
    files = [name for name in names if name.endswith(_WEIGHTS)
             and not (stems and name.startswith(stems) and "-of-" in name)]
    return [os.path.join(folder, name) for name in sorted([*indexes, *files])]


def _components(source: Path) -> list[Path]:
    """A file, or those of a folder's components."""
    path = os.fsdecode(source)
    if "://" in path or not os.path.isdir(path):
        return [source]
    found = _models_in(path)
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        if os.path.isdir(inner):
            found.extend(_models_in(inner))
    if not found:
        raise coded(FileNotFoundError, "%s: expected models (*.safetensors, *.sft or an index) in "
                    "this folder, found none" % path, "not_found", errno=errno.ENOENT, path=path)
    return [*found]


def layout(source: Model | Iterable[Model], output: Path, *,
           to: Literal["diffusers", "single", "comfy"], architecture: str | None = None,
           ignore_unmatched: bool = False, max_bytes: int = 0, dry_run: bool = False,
           overwrite: bool = False, keep_mtime: bool = False, in_place_unsafe: bool = False,
           sync: bool = True, progress: Progress = None) -> LayoutResult:
    """Writes a model in another layout, to: "diffusers", a folder for each component, with config.json
    and model_index.json as far as they are certain; "single", one file; "comfy", a file for each
    component in the folders of ComfyUI. source: a file, an index, the folder of a pipeline, a File or
    other tensors by name, or several of these that are one model. Values are the same; metadata is kept, without digests.

    architecture: the model's id, where tensors do not tell it. ignore_unmatched: leave out tensors
    whose place is not known. max_bytes: of a shard of diffusers' folders; 0 is 10 GB. dry_run: tell
    what would be written. output: a new or empty folder; of "single" a file. overwrite: replace
    that file. keep_mtime: the files get the time of the youngest input. in_place_unsafe: as of
    save_file. sync=False: do not fsync.

    Returns "architecture" and "pipeline" (None if not known), "components", "files" of the folder,
    "unmatched" names, "left_out" (how many tensors only training needs), and sentences: "lost",
    what the layout has no place for, and "needs", what a pipeline needs besides.

    SafetensorError: a model that is not known, tensors that are not (one is named), or that do not
    go together; ValueError: no such layout or architecture; FileExistsError; OSError. Nothing is
    written then."""
    if to not in _LAYOUTS:
        raise ValueError("expected one of %s as layout, found %r%s"
                         % (", ".join(_LAYOUTS), to, near(to, _LAYOUTS)))
    if not 0 <= max_bytes < 1 << 64:
        raise ValueError("max_bytes: expected a number of bytes from 0 on, found %d" % max_bytes)
    models: Any = [source] if is_one(source) else source
    found: list[Any] = [part for given in map(model, models) for part in (
        [given] if isinstance(given, _core.File) else _components(given))]
    with keep_times(keep_mtime and not dry_run, found, output), \
            watch(progress, "converting") as tick:
        return _core.layout(tuple(found), output, _LAYOUTS.index(to), architecture=architecture,
                            ignore_unmatched=ignore_unmatched, max_bytes=max_bytes,
                            dry_run=dry_run, overwrite=overwrite, sync=sync, progress=tick,
                            in_place_unsafe=in_place_unsafe)
