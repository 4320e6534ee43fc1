"""Types of results, whose fields docs/json.md explains: each has those that apply. Not in _types.py
because making them takes a millisecond, which importing .numpy and .torch need not."""
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from ._types import Level

if TYPE_CHECKING:
    from ._described import (CheckDeep, CheckFailed, CheckGood, CheckNote, DiffChange,
                             DiffGoodSummary, DiffModel, DiffPair, DiffTensor, HashComputed,
                             HashShard, InfoAdapter, InfoCivitai, InfoConflict, InfoExample,
                             InfoFile, InfoGood, InfoHashes, InfoLink, InfoManifest, InfoMerge,
                             InfoModel, InfoPreview, InfoPrivate, InfoPrompts, InfoProvenance,
                             InfoRemote, InfoSet, InfoShard, InfoSidecar, InfoTag, InfoTraining,
                             InfoTrigger)

__all__ = ["CatalogResult", "CheckResult", "ConvertResult", "DiffResult", "EditResult", "Error",
           "FitsResult", "HashResult", "InfoResult", "LayoutComponent", "LayoutResult",
           "LoraAdapter", "LoraConverted", "LoraFactor", "LoraFactors", "LoraInfo", "LoraMerged", "LoraModule", "LsResult", "Mixture",
           "MixtureBlock", "ModelsMerged", "NoteFacts", "TensorStats"]


class _TensorStats(TypedDict):
    values: int
    zeros: int
    nan: int
    inf: int
    min: int | float | None
    max: int | float | None
    mean: float | None
    std: float | None
    abs_mean: float | None


class TensorStats(_TensorStats, total=False):
    """Result of Tensor.stats(): counts, and statistics of the finite values, None if there are
    none. min and max of integers are exact integers; a C64 counts as two values. histogram, if it
    was asked for: exponent, and how many negative and positive values have a magnitude from
    2**exponent (included) to 2**(exponent + 1), smaller ones in -64, greater ones in 63; bins
    without values, zeros, NaN and infinities are left out."""

    histogram: list[tuple[int, int, int]]


class _Result(TypedDict):
    path: str
    ok: bool


class Result(_Result, total=False):
    """What all results have."""

    path_bytes: str


class _Error(TypedDict):
    code: str
    message: str
    offset: int | None
    tensor: str | None


class Error(_Error, total=False):
    """Why a file is not valid, or could not be read."""

    hint: str | None
    errno: int | None
    rule: str | None


class TensorFacts(TypedDict, total=False):
    """A tensor in the result of ls()."""

    name: str
    dtype: str
    shape: list[int]
    data_offsets: list[int]
    file_offsets: list[int]
    bytes: int
    shard: str


class LsResult(Result):
    """Result of ls()."""

    complete: bool
    tensors: list[TensorFacts]


class _InfoResult(Result):
    complete: bool
    file: InfoFile
    metadata: dict[str, str]
    metadata_cut: dict[str, int]
    model: InfoModel
    adapter: InfoAdapter | None
    trigger_words: list[InfoTrigger]
    prompts: InfoPrompts
    frequent_tags: list[InfoTag]
    example_prompts: list[InfoExample]
    civitai: InfoCivitai | None
    links: list[InfoLink]
    training: InfoTraining | None
    merge: InfoMerge | None
    provenance: InfoProvenance | None
    hashes: InfoHashes
    previews: list[InfoPreview]
    sidecars: list[InfoSidecar]
    privacy: list[InfoPrivate]
    conflicts: list[InfoConflict]


class InfoResult(_InfoResult, total=False):
    """Result of info() of a model. Of a dataset it has path, ok, file, model and dataset alone, of a
    folder of several models path, ok and models, and in infos() a model that cannot be read path, ok
    and error."""

    remote: InfoRemote
    dataset: InfoManifest
    shards: list[InfoShard]
    set: InfoSet
    parts: list[InfoGood]
    missing: list[str]
    models: list[InfoResult]
    error: Error


class _CheckResult(Result):
    level: Level
    error: Error | None
    findings: list[Error]
    notes: list[CheckNote]
    deep: CheckDeep | None


class CheckResult(_CheckResult, total=False):
    """Result of check()."""

    shards: list[CheckGood | CheckFailed]


class CatalogResult(Result):
    """Result of catalog()."""

    models: int
    unreadable: int
    bytes: int
    embedded_pictures: int
    embedded_bytes: int


class _HashResult(Result):
    bytes: int | None
    remembered: bool
    computed: HashComputed
    model_error: Error | None


class HashResult(_HashResult, total=False):
    """Result of hash()."""

    shards: list[HashShard]


class DiffResult(Result):
    """Result of diff()."""

    other: DiffModel
    same: bool | None
    equal: int
    close: int
    max_abs: float | str
    max_rel: float | str
    summary: DiffGoodSummary
    removed: list[DiffTensor]
    added: list[DiffTensor]
    changed: list[DiffChange]
    metadata: list[DiffPair]


class NoteFacts(TypedDict, total=False):
    """A note about a model (docs/collecting.md#the-file); keys that others wrote are kept, too.
    weights: SHA-256 of the tensors' bytes."""

    name: str
    base: str
    words: list[str]
    tags: list[str]
    rating: float
    favourite: bool
    weight: float
    note: str
    weights: str


class FitsResult(TypedDict):
    """Result of fits()."""

    fit: Literal["yes", "likely", "loads", "unknown", "no", "none"]
    reason: str


class LostValues(TypedDict):
    """Values that were not zero, and those of them that a cast made something else. infinite: or
    NaN, if the dtype has no infinity."""

    values: int
    zero: int
    infinite: int
    saturated: int


class ConvertResult(TypedDict):
    """Result of convert(): tensors by action, and the bytes of all files."""

    cast: int
    same: int
    other: int
    scaled: int
    scale: int
    dequantize: int
    drop: int
    kept: int
    bytes_before: int
    bytes_after: int
    lost: LostValues


_LoraModule = TypedDict("_LoraModule", {
    "name": str, "method": str, "rank": "int | None", "alpha": "float | None", "scale": float,
    "out": "int | None", "in": "int | None", "dora": bool, "norm": "float | None"})


class LoraModule(_LoraModule, total=False):
    """A module of an adapter. With spectrum: singular values, None if they cannot be computed, and
    the square of their norm in parts of that of the greatest."""

    spectrum: list[float] | None
    stable_rank: float | None


class LoraInfo(TypedDict):
    """Result of lora.info(): modules, and names of tensors that are of none that is known."""

    modules: list[LoraModule]
    other_tensors: list[str]


class LoraAdapter(TypedDict):
    """An adapter that was merged: its modules, those that the model has tensors for, and the names
    of its modules and tensors that it has nothing for."""

    path: str
    strength: float
    modules: int
    matched: int
    unmatched: list[str]


class LoraMerged(TypedDict):
    """Result of lora.merge(): tensors that changed; of tensors of at most 8 bits without scales the
    values that adapters changed, and how many of these were rounded to what they had been."""

    changed: int
    narrow_values: int
    narrow_lost: int
    adapters: list[LoraAdapter]


class LayoutComponent(TypedDict):
    """A component of a model: the part of the layouts that it is, the layout that it was in
    ("original" or "diffusers"), its file, tensors before and after, those of them that diffusers
    has no place for, and whether config.json is written."""

    name: str
    layout: str
    was: Literal["original", "diffusers"]
    path: str
    tensors_before: int
    tensors: int
    kept: int
    config: bool


class LayoutResult(TypedDict):
    """Result of layout(). lost, needs: sentences."""

    architecture: str | None
    pipeline: str | None
    components: list[LayoutComponent]
    files: list[str]
    unmatched: list[str]
    left_out: int
    lost: list[str]
    needs: list[str]


class ModelsMerged(TypedDict):
    """Result of merge_models(): tensors that were computed and copied; found under another name or
    in another layout; vocabularies cut to common rows; tensors not in all models, of other models
    only, and of integers that are not the same."""

    merged: int
    copied: int
    renamed: int
    cut: int
    missing: int
    left_out: int
    unlike: int


class MixtureBlock(TypedDict):
    """Tensors of one layer, or of none (name ""), or all."""

    name: str
    tensors: int
    elements: int
    weights: list[float | None]
    change: float
    residual: float
    rounding: float
    fits: bool


class Mixture(MixtureBlock):
    """Result of merge_of(): of all tensors, and in each block."""

    blocks: list[MixtureBlock]
    left_out: int


class LoraFactor(TypedDict):
    """A pair of factors that was written. rank_before: None if the layer had none. alpha: None if
    the scale is in the factors. norm: Frobenius, of the change at strength 1, and error: the part of
    it that the factors leave out, before they are rounded; None if they were not computed."""

    name: str
    rank_before: int | None
    rank: int
    alpha: float | None
    norm: float | None
    error: float | None


class LoraFactors(TypedDict):
    """Result of lora.resize(), stack(), extract() and simplify(): the layers that were written, how
    many were left out because they add nothing, and the names of what was not matched. Counts of
    what to know: modules that are kept as they are (kept_whole), magnitudes of DoRA (kept_dora),
    alphas of a configuration that are in the factors now (folded_alphas), modules of PEFT whose
    alpha nothing tells (unknown_alphas); of extract, convolutions (left_convs) and other tensors
    (left_others) that differ and are not extracted."""

    modules: list[LoraFactor]
    left_out: int
    unmatched: list[str]
    kept_whole: int
    kept_dora: int
    folded_alphas: int
    unknown_alphas: int
    left_convs: int
    left_others: int


class LoraConverted(TypedDict):
    """Result of lora.convert(): the architecture whose layouts were used, modules that were written,
    modules of fused layers that were divided (split) or made (joined), modules whose alphas went into
    their matrices, so that the way back is not exact (folded), names of what was left out, and the
    text of adapter_config.json, for PEFT only."""

    architecture: str
    modules: int
    split: int
    joined: int
    folded: int
    unmatched: list[str]
    config: str | None


class EditResult(TypedDict, total=False):
    """Result of edit_metadata(), rename_tensors() and put(); sizes in bytes."""

    method: Literal["none", "in place", "reflink", "insert", "copy"]
    header_before: int
    header_after: int
    spare: int
    file_after: int
