"""Adapters (LoRA and its kin): what they hold, and models with adapters merged into them, as
"safetensors lora" does it. docs/adapters.md has the formulas, docs/disagreements.md where programs
differ.

Any thread may call them, several at a time; other threads run while files are read and written."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal, NamedTuple

from . import _core
from ._progress import watch
from ._results import LoraInfo, LoraMerged
from ._types import Path, Progress

__all__ = ["Adapter", "info", "merge"]

_CONFIG_MOST = 4 << 20


class Adapter(NamedTuple):
    """An adapter to be merged. strength: what it adds is multiplied with it. blocks: strengths by
    block, times strength: 12, 17, 20 or 26 numbers for a U-Net or "GLOB=NUMBER, ..." for tensors of
    the model, as a text with commas (docs/adapters.md). config: the text of PEFT's
    adapter_config.json; None: the file beside adapter_model*, if there is one."""

    path: Path
    strength: float = 1.0
    blocks: str | None = None
    config: bytes | None = None


def _config_of(path: Path) -> bytes | None:
    """As the command finds it: beside a file of PEFT's name, or in its folder."""
    name = os.fsdecode(path)
    if "://" in name:
        return None
    folder = name if os.path.isdir(name) else os.path.dirname(name)
    if os.path.isdir(name):
        if not any(one.startswith("adapter_model") for one in os.listdir(name)):
            return None
    elif not os.path.basename(name).startswith("adapter_model"):
        return None
    try:
        with open(os.path.join(folder, "adapter_config.json"), "rb") as file:
            text = file.read(_CONFIG_MOST + 1)
    except FileNotFoundError:
        return None
    if len(text) > _CONFIG_MOST:
        raise ValueError("expected an adapter_config.json of at most 4 MiB, found a larger one")
    return text


def info(path: Path, *, config: bytes | None = None, norms: bool = True) -> LoraInfo:
    """Describes an adapter: for each module its name, method, rank, alpha, scale, shape of the
    layer, and the Frobenius norm of what it adds at strength 1, which is computed from its factors
    (None where it depends on the model's weight); tensors that are of no known module are in
    "other_tensors".

    path: a file, a folder, an index.json or a URL. config: as of Adapter. norms=False reads no data
    but alphas. SafetensorError (tensor_not_found) for a file that is no adapter; OSError."""
    known = _config_of(path) if config is None else config
    return _core.lora_info(path, known, norms)


def merge(model: Path, adapters: Path | Adapter | Iterable[Path | tuple[Path, float] | Adapter],
          output: Path, *, dora: Literal["exact", "comfy"] = "exact",
          stochastic: int | None = None, ignore_unmatched: bool = False, overwrite: bool = False,
          sync: bool = True, threads: int = 0, progress: Progress = None) -> LoraMerged:
    """Writes a model with adapters merged into it, in the order given: paths, pairs of path and
    strength, or Adapter. Sums are computed in F32 and rounded once, to the dtype of the tensor;
    quantised tensors are changed by their values and quantised again in their own layout. All
    other tensors are copied. The header records the recipe. Memory: the matrices of one module and
    about 2 MiB for each thread; some methods need a whole tensor in F32.

    dora: the norm that DoRA divides by, of the changed weight or, for rows, as ComfyUI has it.
    stochastic: a seed; values are rounded up or down at random, the same for a seed on every
    machine. ignore_unmatched: leave out what the model has no tensor for; it is in "unmatched".
    output: a file, or, of a model of several files, a new or empty folder unless it ends in
    .safetensors or .sft. overwrite: replace a file. sync=False: do not fsync. threads: that compute
    while one writes; 0 is one per processor.

    SafetensorError names the tensor or module: not in the model, of another shape, of a method or a
    layout that cannot be merged. ValueError: NaN, sums that the dtype has no room for, or blocks
    that say nothing of this model. FileExistsError; OSError. Nothing is written then."""
    if isinstance(adapters, (str, bytes, os.PathLike, Adapter)):
        adapters = [adapters]
    rows = []
    for one in adapters:
        if isinstance(one, tuple):
            use = one if isinstance(one, Adapter) else Adapter(*one)
        else:
            use = Adapter(one)
        config = _config_of(use.path) if use.config is None else use.config
        rows.append((use.path, float(use.strength), use.blocks, config))
    if dora not in ("exact", "comfy"):
        raise ValueError("expected \"exact\" or \"comfy\" for dora, found %r" % (dora,))
    with watch(progress, "merging") as tick:
        return _core.lora_merge(model, rows, output, dora=int(dora == "comfy"),
                                stochastic=stochastic, ignore_unmatched=ignore_unmatched,
                                overwrite=overwrite, sync=sync, threads=threads, progress=tick)
