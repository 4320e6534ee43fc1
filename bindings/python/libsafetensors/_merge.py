"""Merging models by value, as "safetensors merge --method" does it; docs/merging.md has methods,
parameters and recipes."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _core
from ._command import one_model, one_result, operand, options, results_of
from ._dtypes import target_dtype
from ._errors import check_seed, open_coded
from ._memory import is_one, model
from ._output import keep_times
from ._progress import watch
from ._results import Mixture, ModelsMerged
from ._types import Model, Path, Progress

__all__ = ["merge_models", "merge_of"]

_Value = float | bool | Sequence[float]
_RECIPE_MOST = 1 << 20


def _text(value: _Value | str) -> str:
    """As the command takes a value: a number, true or false, or several for the layers."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence):
        return ",".join(map(_text, value))
    return repr(float(value))


def merge_models(models: Iterable[Model] | None, output: Path, *, method: str | None = None,
                 base: Model | None = None, weights: Iterable[_Value] | None = None,
                 params: Mapping[str, _Value] | None = None, recipe: Path | None = None,
                 replay: Path | None = None, seed: int | None = None, dtype: Any = None,
                 ignore_missing: bool = False, dry_run: bool = False, overwrite: bool = False,
                 keep_mtime: bool = False, in_place_unsafe: bool = False, sync: bool = True,
                 threads: int = 0, progress: Progress = None) -> ModelsMerged:
    """Writes one model computed from several: by a method ("linear" unless another or a recipe is
    given), with weights, one for each model, and params such as {"density": 0.5,
    "t@*.self_attn.*": [0, 0.5, 1]}; or by a recipe, a file of mergekit's YAML or JSON, whose models
    are seen from its folder if models is None, and else are models, in its order; or as the header
    of a result of this function says (replay), with the models of the same digests, in any order. A
    few megabytes of memory; the same bytes for any number of threads. The header records the recipe.

    base: what the models are differences to. seed: of random masks. dtype: of all merged tensors.
    ignore_missing: merge tensors without the models that lack them. output: a file. dry_run: tell
    what would be done. overwrite: replace it. keep_mtime: it gets the time of the youngest model.
    in_place_unsafe: as of save_file. sync=False: do not fsync. threads: 0 is one per processor.

    Returns how many tensors were merged, copied, renamed, cut, missing, left out and unlike.
    SafetensorError: models that do not go together; ValueError: NaN, parameters that the method
    has none of, recipes (the line is named); FileExistsError; OSError. Nothing is written then."""
    if replay is not None:
        given = (method, base, weights, recipe, seed, dtype)
        if any(one is not None for one in given) or params or ignore_missing or models is None:
            raise ValueError("expected replay with models alone, found more, or no models")
        return _replay(tuple(models), output, replay, options(
            dry_run=dry_run, force=overwrite, keep_mtime=keep_mtime, no_sync=not sync,
            in_place_unsafe=in_place_unsafe, threads=threads or None), progress)
    text = None
    if recipe is not None:
        if method is not None or base is not None or weights is not None or params:
            raise ValueError("expected a recipe without method, base, weights and params")
        with open_coded(recipe) as file:
            text = file.read(_RECIPE_MOST + 1).decode()
        if models is None:
            folder = os.path.dirname(os.fsdecode(recipe))
            models = [name if "://" in name else os.path.join(folder, name)
                      for name in _core.merge_named(text)]
    elif method is None:
        method = "linear"
    if models is None:
        raise ValueError("expected models or a recipe, found neither")
    _check_several(models)
    if isinstance(weights, str) or params is not None and not isinstance(params, Mapping):
        raise TypeError("expected a list of weights and a mapping of params, found something else")
    check_seed(seed, "seed")
    paths = tuple(map(model, models))
    told: list[str | None] = [None] * len(paths)
    if weights is not None:
        told = [_text(one) for one in weights]
        if len(told) != len(paths):
            raise ValueError("expected a weight for each of %d models, found %d"
                             % (len(paths), len(told)))
    number = -1
    if base is not None:
        number = len(paths)
        paths, told = (*paths, model(base)), [*told, None]
    words = tuple("%s=%s" % (name, _text(value)) for name, value in (params or {}).items())
    with keep_times(keep_mtime and not dry_run, paths, output), \
            watch(progress, "merging") as tick:
        return _core.merge_models(
            paths, tuple(told), output, method, number, words, text, seed,
            None if dtype is None else target_dtype(dtype), ignore_missing=ignore_missing,
            overwrite=overwrite, sync=sync, threads=threads, progress=tick, dry_run=dry_run,
            in_place_unsafe=in_place_unsafe)


def _check_several(models: Iterable[Model]) -> None:
    if is_one(models):
        raise TypeError("models: expected several, found one")


def _replay(models: tuple[Any, ...], output: Path, replay: Path, words: list[str],
            progress: Progress) -> ModelsMerged:
    """By the command, which hashes the models."""
    with watch(progress, "merging") as tick:
        found = results_of(["merge", "--replay=" + os.fsdecode(replay), *words,
                            "--output=" + operand(output), "--", *map(one_model, models)], tick)
    one = one_result(found["results"], replay)
    told: ModelsMerged = {name: one[name]  # type: ignore[assignment]
                          for name in ModelsMerged.__annotations__}
    return told


def merge_of(result: Model, models: Iterable[Model], *, progress: Progress = None) -> Mixture:
    """Estimates by least squares which weighted sum of other models a model is, over all tensors
    and in each block: "weights" (None where models are equal, so that it cannot be told),
    "change" (the root of the mean square of result less the first model), "residual" (of what the
    sum leaves), "rounding" (of what rounding is expected to leave), "fits". Reads all data once.

    SafetensorError, OSError."""
    _check_several(models)
    with watch(progress, "comparing") as tick:
        blocks, left_out = _core.merge_of((model(result), *map(model, models)), progress=tick)
    return {**blocks[-1], "blocks": blocks[:-1], "left_out": left_out}
