"""Identifies the dataset, and the rows of it, that a loader's state belongs to."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._read import Dataset

__all__ = ["check_identity", "identity"]


def identity(dataset: Dataset) -> dict[str, Any]:
    """Identity of a dataset's rows and their order. commit: the last one that changed these,
    which a compaction does not. files: a digest of the files' names and sizes, for a dataset
    without commits. keys: a digest of the keys that select rows."""
    manifest = dataset.manifest or {}
    found: dict[str, Any] = {"rows": len(dataset)}
    if "commit" in manifest:
        found["commit"] = manifest.get("row_order", manifest["commit"])
        found["version"] = manifest.get("version")
    else:
        shards = dataset._shards
        found["files"] = _digest(
            "%s %d %d" % (one["name"], one["bytes"] or shards.file(i).nbytes, one["samples"])
            for i, one in enumerate(shards.facts))
    if dataset._limits is not None:
        found["part"] = list(dataset._limits)
    if dataset._keys is not None and dataset.mode == "kv":
        found["keys"] = _digest(sorted(dataset._keys))
    return found


def _digest(texts: Any) -> str:
    from hashlib import sha256
    total = sha256()
    for text in texts:
        total.update(text.encode() + b"\n")
    return total.hexdigest()[:32]


def check_identity(dataset: Dataset, own: dict[str, Any], state: dict[str, Any]) -> None:
    """ValueError if a state belongs to other rows than the dataset's."""
    saved = state.get("dataset")
    if not isinstance(saved, dict):
        raise ValueError("dataset: expected a state with the identity of its dataset, found %r"
                         % (saved,))
    for name in ("commit", "files"):
        if saved.get(name) != own.get(name):
            raise ValueError(_changed(dataset, own, saved))
    if saved.get("part") != own.get("part"):
        raise ValueError("rows: the state is of %s, expected %s"
                         % tuple("rows %d to %d" % tuple(one["part"]) if _is_part(one) else "all rows"
                                 for one in (saved, own)))
    if saved.get("keys") != own.get("keys"):
        raise ValueError("keys: the state is of %s, expected %s: %s was opened with other keys"
                         % (_rows(saved), _rows(own), dataset.path))


def _is_part(state: dict[str, Any]) -> bool:
    part = state.get("part")
    return isinstance(part, list) and len(part) == 2 and all(type(one) is int for one in part)


def _changed(dataset: Dataset, own: dict[str, Any], saved: dict[str, Any]) -> str:
    then, now = saved.get("version"), own.get("version")
    later = then is not None and now is not None and now > then
    why = "it was appended to or overwritten since the state was saved, or is another one" \
        if later else "it is another dataset, or was rewritten"
    return "dataset: the state is of %s, expected %s, which %s has: %s; the rest of the epoch " \
        "cannot be known any more, start one with set_epoch()" \
        % (_rows(saved), _rows(own), dataset.path, why)


def _rows(saved: dict[str, Any]) -> str:
    text = "%s rows" % saved.get("rows")
    if saved.get("version") is not None:
        text += " of version %d" % saved["version"]
    which = saved.get("commit") or saved.get("files") or saved.get("keys")
    return "%s (%s)" % (text, str(which)[:8])
