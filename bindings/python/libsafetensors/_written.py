"""Results as objects: what functions of _shards.py and _collection.py return. Fields have the names
and meanings of the command's JSON (docs/json.md); tests/python/test_verbs.py compares them with its
schemas. Not in _results.py, because making dataclasses takes milliseconds."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from ._results import Error, NoteFacts

__all__ = ["Duplicates", "Failed", "Fix", "Found", "Hit", "ModelsFound", "Moved", "Noted",
           "OnlinePlan", "Part", "Parts", "Permission", "Quantised", "QuantisedTensor", "Renamed",
           "Repaired", "SameModels", "Saved", "Scrubbed", "Spared", "Thumbnail", "Trashed", "Updated", "Updates",
           "Verified", "VerifiedHash", "VerifiedHashes", "Version", "Written", "WrittenFile", "made"]


_T = TypeVar("_T")


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written: its tensors, and their bytes."""

    path: str
    tensors: int
    bytes: int


@dataclass(frozen=True)
class Written:
    """What was written, or would be (dry_run). path: of the model, None for several or for tensors
    in memory. output: a file, or the folder of shards. files: without the index; none if nothing
    had to be written. bytes: of all tensors. dropped: digests of the old data that the metadata
    no longer have."""

    path: str | None
    output: str
    dry_run: bool
    tensors: int
    bytes: int
    files: tuple[WrittenFile, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Renamed:
    """What was renamed, or would be (dry_run): old and new names. path: None for tensors in memory.
    output: None, if the file itself
    was changed."""

    path: str | None
    output: str | None
    changed: bool
    dry_run: bool
    renamed: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Failed:
    """A model that could not be read, and why."""

    path: str | None
    error: Error


@dataclass(frozen=True)
class Part:
    """A component of a model. prefix: how its names begin; sha256: of its tensors, the same wherever
    they are. None where it has none."""

    name: str
    tensors: int
    bytes: int
    prefix: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Parts:
    """Result of parts(). architecture: None if the tensors do not tell."""

    path: str
    architecture: str | None
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class VerifiedHash:
    """A digest of a list, and what it is now: None if the file has none of this kind."""

    algo: str
    claimed: str
    computed: str | None
    agrees: bool


@dataclass(frozen=True)
class Verified:
    """A file of a list of digests."""

    path: str
    verified: tuple[VerifiedHash, ...]


@dataclass(frozen=True)
class VerifiedHashes:
    """Result of verify_hashes(). agrees: whether all files could be read and all digests agree."""

    agrees: bool
    files: tuple[Verified, ...]
    failed: tuple[Failed, ...]


@dataclass(frozen=True)
class Version:
    """A version of a model on CivitAI. have: a file in the model's folder that is this version."""

    version_id: int | None
    name: str | None
    base_model: str | None
    published_at: str | None
    have: str | None


@dataclass(frozen=True)
class Permission:
    """A permission that is another one now than a sidecar records."""

    what: Literal["credit", "derivatives", "relicense", "commercial"]
    recorded: bool | tuple[str, ...] | None
    now: bool | tuple[str, ...] | None


@dataclass(frozen=True)
class Updated:
    """What CivitAI says of a model now. newer: the ten newest of newer_count versions that were
    published later; permissions: those that changed, None if none are recorded."""

    path: str
    status: Literal["current", "newer", "removed", "deleted", "unknown", "unanswered"]
    model_id: int | None
    version_id: int | None
    mode: str | None
    newer: tuple[Version, ...]
    newer_count: int
    permissions: tuple[Permission, ...] | None


@dataclass(frozen=True)
class Updates:
    """Result of updates()."""

    models: tuple[Updated, ...]
    failed: tuple[Failed, ...]


@dataclass(frozen=True)
class OnlinePlan:
    """Result of online_plan(): files, and of these those whose digests are in the cache
    (remembered) or in a sidecar (recorded), that are not looked up (unknown), and that would be read
    (hashed, with their bytes); requests, and the most that can follow."""

    files: int
    remembered: int
    recorded: int
    unknown: int
    hashed: int
    bytes: int
    requests_by_sha256: int
    requests_by_autov3_most: int
    requests_for_models_most: int
    requests_one_by_one_most: int | None = None


@dataclass(frozen=True)
class Hit:
    """What a model was found by. algo: of a hash, else None; source: who says so."""

    field: str
    algo: str | None
    value: str
    source: str | None


@dataclass(frozen=True)
class Found:
    """A model that was found. fit, reason: with fits, as of fits(); else None."""

    path: str
    name: str | None
    matches: tuple[Hit, ...]
    fit: Literal["yes", "likely", "loads", "unknown", "no"] | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ModelsFound:
    """Result of find(): models, best first with fits, else in the order of their paths, and those
    that could not be read."""

    models: tuple[Found, ...]
    failed: tuple[Failed, ...]


@dataclass(frozen=True)
class SameModels:
    """Models that are the same: by "file" (every byte), "weights" (other metadata), "content"
    (another order, or other shards); or that may not be: by "tensors" (other names of one, or what
    the files hold beside them) or "data" (other names, shapes or dtypes). stays, ended: with remove, link or reflink the one that stays
    and the others, with which that was done (dry_run: would be)."""

    by: Literal["file", "weights", "content", "tensors", "data"]
    paths: tuple[str, ...]
    bytes_wasted: int
    stays: str | None = None
    ended: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True)
class Duplicates:
    """Result of dup(): groups, the bytes of all but one of each, models that were compared."""

    groups: tuple[SameModels, ...]
    bytes_wasted: int
    models: int
    failed: tuple[Failed, ...]


@dataclass(frozen=True)
class Fix:
    """A fault that repair() found, and what was done about it. fix: its code."""

    path: str | None
    fix: str
    offset: int | None
    tensor: str | None
    message: str
    done: str


@dataclass(frozen=True)
class Repaired(Written):
    """Result of repair()."""

    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True)
class QuantisedTensor:
    """A tensor that was quantised. error: the root mean square of its errors, in parts of that of
    its values."""

    name: str
    error: float


@dataclass(frozen=True)
class Spared:
    """A matrix that was left as it is, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Quantised(Written):
    """Result of quantize(). quantised: worst first. quantization_config: for config.json, None if the
    layout has none."""

    bytes_before: int = 0
    format: str = ""
    layout: str = ""
    scale: str = ""
    error: float = 0.0
    quantised: tuple[QuantisedTensor, ...] = ()
    spared: tuple[Spared, ...] = ()
    quantization_config: dict[str, object] | None = None


@dataclass(frozen=True)
class Noted:
    """Result of note() for one model: the note as it is, None without one, or the file that was
    written (output); of adopt also where that was (from_)."""

    path: str
    note: NoteFacts | None = None
    output: str | None = None
    changed: bool = False
    dry_run: bool = False
    from_: str | None = None


@dataclass(frozen=True)
class Scrubbed:
    """Result of scrub() for one model: keys that were removed, whose values were rewritten, and that
    are kept although they may tell of somebody; beside: files beside it, which are not touched;
    sha256: of the file now, None of a dry run; dropped: digests that the change made wrong."""

    path: str
    output: str | None
    changed: bool
    dry_run: bool
    removed: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    sha256: str | None = None
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Saved:
    """Result of save_as() for one model: the file that was written (None: nothing changed, or a dry
    run), which keys are new and which stayed as they were; content: of a dry run, the file."""

    path: str
    output: str | None
    changed: bool
    dry_run: bool
    keys: tuple[str, ...]
    kept: tuple[str, ...]
    content: dict[str, object] | None = None


@dataclass(frozen=True)
class Moved:
    """Result of mv() for one model: pairs of old and new paths."""

    path: str
    output: str
    changed: bool
    dry_run: bool
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Thumbnail:
    """Result of thumbnail(): picture is where the picture is from (None: it is a card), why: why the
    model's last picture was not taken."""

    path: str
    output: str
    width: int
    height: int
    picture: str | None
    why: str | None


@dataclass(frozen=True)
class Trashed:
    """Result of trash() for one model: the files that are its own, and those that stay, as other models
    may need them."""

    path: str
    dry_run: bool
    files: tuple[str, ...]
    stays: tuple[str, ...]


def made(kind: Callable[..., _T], facts: Mapping[str, Any], **parts: object) -> _T:
    """An object of the facts that it has fields for, with these parts; what is not there keeps its
    default."""
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value
                   for name, value in {**facts, **parts}.items() if name in known})
