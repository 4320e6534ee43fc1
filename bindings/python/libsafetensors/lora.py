"""Adapters (LoRA and the like): what they hold, models with adapters merged into them, adapters of
other ranks and under other names, as "safetensors lora" does it. docs/adapters.md has the formulas,
docs/disagreements.md where programs differ.

Any thread may call them, several at a time; other threads run while files are read and written."""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal, NamedTuple, Optional, Union

from . import _core
from ._dtypes import target_dtype
from ._errors import check_seed, coded, near
from ._memory import is_one, model as model_of
from ._output import keep_times
from ._progress import watch
from ._results import LoraConverted, LoraFactors, LoraInfo, LoraMerged
from ._told import check_config, is_peft_name, read_config
from ._types import Model, Path, Progress

__all__ = ["Adapter", "convert", "extract", "info", "merge", "resize", "simplify", "stack"]

_RESIZE, _STACK, _EXTRACT, _SIMPLIFY = range(4)
_RULES = ("sv_ratio", "sv_fro", "sv_cumulative", "error")
_FORMATS = ("kohya", "peft", "comfy", "diffusers")
_Rank = Union[int, Literal["exact"], None]
_Rule = Optional[tuple[Literal["sv_ratio", "sv_fro", "sv_cumulative", "error"], float]]


class Adapter(NamedTuple):
    """An adapter to be merged. strength: what it adds is multiplied with it. blocks: strengths by
    block, times strength: 12, 17, 20 or 26 numbers for a U-Net or "GLOB=NUMBER, ..." for tensors of
    the model, as a text with commas (docs/adapters.md). config: the text of PEFT's
    adapter_config.json; None: the file beside adapter_model.safetensors, if there is one."""

    path: Model
    strength: float = 1.0
    blocks: str | None = None
    config: bytes | None = None


_Adapters = Union[Model, tuple[Model, float], Adapter, Iterable[Union[Model, tuple[Model, float], Adapter]]]
_Row = tuple[Any, float, Optional[str], Optional[bytes]]


def _config_of(path: Model) -> bytes | None:
    """As the command finds it: beside a file of PEFT's name, or in its folder; of a URL it is found
    where that is opened."""
    if isinstance(path, _core.File):
        path = path.paths[0] if path.paths else ""
    name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    if not name or "://" in name:
        return None
    folder = name if os.path.isdir(name) else os.path.dirname(name)
    if os.path.isdir(name):
        if not any(map(is_peft_name, os.listdir(name))):
            return None
    elif not is_peft_name(name):
        return None
    return read_config(os.path.join(folder, "adapter_config.json"))


def _rows_of(adapters: _Adapters) -> list[_Row]:
    is_pair = isinstance(adapters, tuple) and len(adapters) == 2 and isinstance(adapters[1], Real)
    alone = is_pair or isinstance(adapters, Adapter) or is_one(adapters)
    several: Any = [adapters] if alone else adapters
    rows = []
    for one in several:
        if isinstance(one, tuple):
            use = one if isinstance(one, Adapter) else Adapter(*one)
        else:
            use = Adapter(one)
        config = _config_of(use.path) if use.config is None else use.config
        rows.append((model_of(use.path), float(use.strength), use.blocks, config))
    return rows


def info(path: Model, *, config: bytes | None = None, norms: bool = True,
         spectrum: bool = False) -> LoraInfo:
    """Describes an adapter: for each module its name, method, rank, alpha, scale, shape of the
    layer, and the Frobenius norm of what it adds at strength 1, which is computed from its factors
    (None where it depends on the model's weight); tensors that are of no known module are in
    "other_tensors".

    path: a file, a folder, an index.json or a URL. config: as of Adapter. norms=False reads no data
    but alphas. spectrum: also the singular values of what each module adds, the greatest first, and
    its "stable_rank"; by the command of the package. SafetensorError (tensor_not_found) for a file that is no adapter; OSError."""
    known = _config_of(path) if config is None else config
    told = _core.lora_info(model_of(path), known, norms)
    if spectrum:
        if config is not None:
            raise ValueError("expected spectrum or config, found both")
        from ._command import one_model, one_result, results_of
        given: Any = path
        found = results_of(["lora", "info", "--spectrum", "--", one_model(given)])
        one = one_result(found["results"], given)
        rows = {row["name"]: row for row in one["modules"]}
        for module in told["modules"]:
            row = rows[module["name"]]
            module["spectrum"] = row["spectrum"]
            module["stable_rank"] = row["stable_rank"]
    return told


def merge(model: Model, adapters: _Adapters,
          output: Path, *, dora: Literal["exact", "comfy"] = "exact",
          stochastic: int | None = None, ignore_unmatched: bool = False, dry_run: bool = False,
          overwrite: bool = False, keep_mtime: bool = False, in_place_unsafe: bool = False,
          sync: bool = True, threads: int = 0, progress: Progress = None) -> LoraMerged:
    """Writes a model with adapters merged into it, in the order given: paths, pairs of path and
    strength, or Adapter; or one of these. Sums are computed in F32 and rounded once, to the dtype of the tensor;
    quantised tensors are changed by their values and quantised again in their own layout. All
    other tensors are copied. The header records the recipe. Memory: the matrices of one module and
    about 2 MiB for each thread; some methods need a whole tensor in F32.

    dora: the norm that DoRA divides by, of the changed weight or, for rows, as ComfyUI has it.
    stochastic: a seed; values are rounded up or down at random, the same for a seed on every
    machine. ignore_unmatched: leave out what the model has no tensor for; it is in "unmatched".
    output: a file, or, of a model of several files, a new or empty folder unless it ends in
    .safetensors or .sft. dry_run: tell what would be done. overwrite: replace a file. keep_mtime:
    files get the times of the model's. in_place_unsafe: as of save_file. sync=False: do not fsync.
    threads: that compute while one writes; 0 is one per processor.

    SafetensorError names the tensor or module: not in the model, of another shape, of a method or a
    layout that cannot be merged. ValueError: NaN, sums that the dtype has no room for, or blocks
    that say nothing of this model. FileExistsError; OSError. Nothing is written then."""
    rows = _rows_of(adapters)
    if dora not in ("exact", "comfy"):
        raise ValueError("expected \"exact\" or \"comfy\" for dora, found %r" % (dora,))
    check_seed(stochastic, "stochastic")
    given = model_of(model)
    with keep_times(keep_mtime and not dry_run, [given], output), \
            watch(progress, "merging") as tick:
        return _core.lora_merge(given, rows, output, dora=int(dora == "comfy"),
                                stochastic=stochastic, ignore_unmatched=ignore_unmatched,
                                overwrite=overwrite, sync=sync, threads=threads, progress=tick,
                                dry_run=dry_run, in_place_unsafe=in_place_unsafe)


def _number_of(word: str | None, words: tuple[str, ...], what: str) -> int:
    """Its place in the list + 1; 0 for None."""
    if word is None:
        return 0
    if word not in words:
        raise ValueError("expected one of %s for %s, found %r%s"
                         % (", ".join(words), what, word, near(word, words)))
    return words.index(word) + 1


def _factor(verb: int, rows: list[_Row], output: Path,
            rank: _Rank, conv_rank: int | None, rule: _Rule, dtype: Any, progress: Progress,
            what: str, keep_mtime: bool, more: dict[str, Any]) -> LoraFactors:
    if rule is not None and (isinstance(rule, str) or len(rule) != 2):
        raise ValueError("expected a pair of a name and a number for rule, found %r" % (rule,))
    by, value = (0, 0.0) if rule is None else (_number_of(rule[0], _RULES, "rule"), float(rule[1]))
    if isinstance(rank, str):
        if rank != "exact" or rule is not None:
            raise ValueError("expected a number or \"exact\" alone for rank, found %r" % (rank,))
        by, rank = len(_RULES) + 1, None
    for number in (rank, conv_rank):
        if number is not None and not 1 <= number <= 65536:
            raise ValueError("expected a rank from 1 to 65536, found %r" % (number,))
    check_config((), output, folded=True)
    with keep_times(keep_mtime and not more["dry_run"], [row[0] for row in rows], output), \
            watch(progress, what) as tick:
        made = _core.lora_factors(verb, rows, output, rank=rank or 0, conv_rank=conv_rank or 0,
                                  rule=by, value=value, progress=tick,
                                  dtype=None if dtype is None else target_dtype(dtype), **more)
    name = os.fsdecode(output)
    if made["folded_alphas"] and not more["dry_run"] and is_peft_name(name):
        import warnings
        warnings.warn("%s: alphas of a configuration are in the factors now: it needs an "
                      "adapter_config.json whose lora_alpha is its r" % name, stacklevel=3)
    return made


def resize(path: Model, output: Path, *, rank: int | None = None, conv_rank: int | None = None,
           rule: _Rule = None, kohya: bool = False, dtype: Any = None, config: bytes | None = None,
           dry_run: bool = False, overwrite: bool = False, keep_mtime: bool = False,
           in_place_unsafe: bool = False, sync: bool = True, threads: int = 0,
           progress: Progress = None) -> LoraFactors:
    """Writes a LoRA whose modules have the best factors of a lower rank: of a layer of [out, in], up
    is [out, rank] and down [rank, in]; those of convolutions keep their kernels. The product is
    never formed. Names, and all other tensors, stay.

    rank: at most so many singular values S0 >= S1 >= ... are kept, conv_rank of convolutions with a
    kernel. rule: a name and a number x: ("sv_ratio", x) keeps those above S0 / x, ("sv_fro", x) the
    fewest that have x of the Frobenius norm, ("sv_cumulative", x) x of their sum, ("error", x) the
    fewest that leave out at most x of that norm; rank is its limit. One of rank, conv_rank and rule
    must be given. Alphas that a configuration tells are folded into the factors (folded_alphas): beside
    a file of PEFT's name goes one whose lora_alpha is its r. kohya: one more than the rule says, and all of S in the up matrix, as kohya's
    scripts do it. dtype: of the factors, by default theirs. config: as of Adapter. dry_run: tell
    ranks and errors, write nothing. keep_mtime: the output gets the time of its input, of several the
    youngest. in_place_unsafe: as of save_file. threads: that compute, 0 is one per processor; the bytes are the
    same for any number.

    TypeError names a module that is no LoRA (simplify makes it one), SafetensorError one whose
    tensors do not fit together. ValueError: a rank or a rule that says nothing, NaN, factors that the
    dtype cannot hold, or an output called adapter_model.* beside an adapter_config.json, whose alpha is
    another. FileExistsError; OSError. Nothing is written then."""
    return _factor(_RESIZE, _rows_of(Adapter(path, config=config)), output, rank, conv_rank, rule,
                   dtype, progress, "resizing", keep_mtime, dict(
                       kohya=kohya, dry_run=dry_run, overwrite=overwrite,
                       in_place_unsafe=in_place_unsafe, sync=sync, threads=threads))


def stack(adapters: _Adapters, output: Path, *,
          rank: int | None = None, conv_rank: int | None = None, rule: _Rule = None,
          to: Literal["kohya", "peft", "comfy", "diffusers"] | None = None,
          architecture: str | None = None, kohya: bool = False, dtype: Any = None,
          dry_run: bool = False, overwrite: bool = False, keep_mtime: bool = False,
          in_place_unsafe: bool = False, sync: bool = True, threads: int = 0,
          progress: Progress = None) -> LoraFactors:
    """Writes the sum of LoRAs, each times its strength, as one: exactly, by joining their factors (the
    rank of a layer is the sum of its ranks), or, with a rank or rule as of resize, the best factors of
    the sum. adapters: as of merge, without blocks. to: the names that all of them get first, as of
    convert, of the model architecture (None: as the first adapter tells); None: they keep theirs.

    TypeError names a module that is no plain LoRA, SafetensorError one of another shape than in another
    adapter, or adapters whose names may be two for the same layers. ValueError, FileExistsError, OSError as of
    resize. Nothing is written then."""
    return _factor(_STACK, _rows_of(adapters), output, rank, conv_rank, rule, dtype, progress,
                   "stacking", keep_mtime, dict(
                       kohya=kohya, names=_number_of(to, _FORMATS, "to"), architecture=architecture,
                       dry_run=dry_run, overwrite=overwrite, in_place_unsafe=in_place_unsafe,
                       sync=sync, threads=threads))


def extract(tuned: Model, base: Model, output: Path, *, rank: int | None = None,
            conv_rank: int | None = None, rule: _Rule = None, kohya: bool = False,
            to: Literal["kohya", "peft", "comfy"] | None = None, norms: bool = False,
            min_diff: float = 0.0, clamp_quantile: float = 0.0, dtype: Any = None,
            ignore_unmatched: bool = False, dry_run: bool = False, overwrite: bool = False,
            keep_mtime: bool = False, in_place_unsafe: bool = False, sync: bool = True,
            threads: int = 0, progress: Progress = None) -> LoraFactors:
    """Writes what a fine-tuned model has that its base has not, as a LoRA: for each layer of [out, in]
    the best factors of the difference. Models are read a block of rows at a time. rank, conv_rank,
    rule, dtype and so on: as of resize; without conv_rank convolutions with kernels are left out.

    to: how layers are named; None: of PEFT for language models, else of kohya. norms: differences of
    norms and biases, too. min_diff: leave out layers without a greater difference in any element.
    clamp_quantile: clamp factors as kohya's script does (0.99), which costs error. ignore_unmatched:
    leave out layers that base lacks, or has in another shape; they are in "unmatched".

    SafetensorError: a layer that base lacks. TypeError names a quantised tensor. ValueError, FileExistsError,
    OSError as of resize. Nothing is written then."""
    rows: list[_Row] = [(model_of(one), 1.0, None, None) for one in (tuned, base)]
    return _factor(_EXTRACT, rows, output, rank, conv_rank, rule, dtype, progress, "extracting",
                   keep_mtime, dict(
                       kohya=kohya, names=_number_of(to, _FORMATS[:3], "to"), norms=norms,
                       min_diff=min_diff, clamp_quantile=clamp_quantile,
                       ignore_unmatched=ignore_unmatched, dry_run=dry_run, overwrite=overwrite,
                       in_place_unsafe=in_place_unsafe, sync=sync, threads=threads))


def simplify(path: Model, output: Path, *, rank: int | Literal["exact"] | None = None,
             conv_rank: int | None = None, rule: _Rule = None, model: Model | None = None,
             kohya: bool = False, dtype: Any = None, config: bytes | None = None,
             ignore_unmatched: bool = False, dry_run: bool = False, overwrite: bool = False,
             keep_mtime: bool = False, in_place_unsafe: bool = False, sync: bool = True,
             threads: int = 0, progress: Progress = None) -> LoraFactors:
    """Writes a plain LoRA of an adapter of other methods: of LoHa, LoKr, Tucker's cores and whole
    differences and, with the model that they change, of DoRA, GLoRA, OFT, BOFT and (IA)^3. For a layer
    of [out, in] these are the best factors of its change at strength 1. rank="exact" keeps all that
    F32 holds. ignore_unmatched: leave out tensors of methods that are not known; they are in
    "unmatched". The rest as of resize.

    TypeError names a module that needs a model, SafetensorError one that has no tensor in it, or a tensor
    of no method that is known. ValueError, FileExistsError, OSError as of resize. Nothing is written then."""
    rows = _rows_of(Adapter(path, config=config))
    if model is not None:
        rows.append((model_of(model), 1.0, None, None))
    return _factor(_SIMPLIFY, rows, output, rank, conv_rank, rule, dtype, progress, "simplifying",
                   keep_mtime, dict(
                       kohya=kohya, ignore_unmatched=ignore_unmatched, dry_run=dry_run,
                       overwrite=overwrite, in_place_unsafe=in_place_unsafe, sync=sync,
                       threads=threads))


def convert(path: Model, output: Path, to: Literal["kohya", "peft", "comfy", "diffusers"], *,
            architecture: str | None = None, model: Model | None = None, config: bytes | None = None,
            ignore_unmatched: bool = False, dry_run: bool = False, overwrite: bool = False,
            keep_mtime: bool = False, in_place_unsafe: bool = False, sync: bool = True,
            progress: Progress = None) -> LoraConverted:
    """Writes an adapter under the names of another program, by the maps of docs/layouts.md. Where the
    other layout divides a layer of [out, in], up is cut by rows and down repeated; where it fuses
    several, they are stacked, which the way back undoes bit for bit. For PEFT adapter_config.json is
    written beside the output, called adapter_model.safetensors; for diffusers the header has it.

    architecture, model: what model the adapter is for, where it does not tell. config: as of Adapter.
    ignore_unmatched: leave out what has no other name that is known; it is in "unmatched". The rest
    as of resize.

    SafetensorError: nothing tells the model, or modules whose other names are not known. TypeError names
    what the other format has no place for. ValueError: an architecture whose layouts are not known.
    FileExistsError; OSError. Nothing is written then."""
    number = _number_of(to, _FORMATS, "to")
    folder, name = os.path.split(os.fsdecode(output))
    beside = os.path.join(folder, "adapter_config.json")
    if to == "peft" and not is_peft_name(name):
        raise ValueError("expected an output called adapter_model.safetensors for PEFT, for only "
                         "beside that adapter_config.json is read, found %r" % name)
    if to == "peft" and not overwrite and os.path.lexists(beside):
        raise coded(FileExistsError, "%s: already exists" % beside, "exists",
                    "overwrite=True replaces it", errno=errno.EEXIST, path=beside)
    known = _config_of(path) if config is None else config
    given = model_of(path)
    with keep_times(keep_mtime and not dry_run, [given], output), \
            watch(progress, "converting") as tick:
        return _core.lora_convert(given, output, number, architecture=architecture,
                                  model=None if model is None else model_of(model),
                                  config=known, ignore_unmatched=ignore_unmatched,
                                  overwrite=overwrite, sync=sync, progress=tick,
                                  dry_run=dry_run, in_place_unsafe=in_place_unsafe)
