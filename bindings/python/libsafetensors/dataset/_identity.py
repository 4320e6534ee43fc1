"""Which dataset, and which rows of it, the state of a loader is of."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._read import Dataset

__all__ = ["check_identity", "identity"]


def identity(dataset: Dataset) -> dict[str, Any]:
    """Of the rows that a dataset has, and their numbers. commit: the one that last changed
    these, which a compaction does not. files: of what tells no commit, a digest of its files'
    names and sizes. keys: a digest of those that pick rows."""
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
    """ValueError when a state is of other rows than the dataset's."""
    told = state.get("dataset")
    if not isinstance(told, dict):
        raise ValueError("dataset: expected a state that tells of which dataset it is, found %r"
                         % (told,))
    for name in ("commit", "files"):
        if told.get(name) != own.get(name):
            raise ValueError(_changed(dataset, own, told))
    if told.get("keys") != own.get("keys"):
        raise ValueError("keys: the state is of %s, expected %s: %s was opened with other keys"
                         % (_rows(told), _rows(own), dataset.path))


def _changed(dataset: Dataset, own: dict[str, Any], told: dict[str, Any]) -> str:
    then, now = told.get("version"), own.get("version")
    later = then is not None and now is not None and now > then
    why = "it was appended to or overwritten since the state was saved, or is another one" \
        if later else "it is another dataset, or was written anew"
    return "dataset: the state is of %s, expected %s, which %s has: %s; what is left of the " \
        "epoch is not known any more, begin one with set_epoch()" \
        % (_rows(told), _rows(own), dataset.path, why)


def _rows(told: dict[str, Any]) -> str:
    text = "%s rows" % told.get("rows")
    if told.get("version") is not None:
        text += " of version %d" % told["version"]
    which = told.get("commit") or told.get("files") or told.get("keys")
    return "%s (%s)" % (text, str(which)[:8])
