"""The files of a dataset: opened when first needed, the latest kept open."""
from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from typing import Any

from .. import _core
from ._storage import Place

__all__ = ["Shards", "shards_of_files", "shards_of_manifest"]

_OPEN_MOST = 1024  # a file that is mapped needs no descriptor
_VIEWS_MOST = 4096
_ASKING = 4 << 20  # bytes that come in the time that it takes to ask for some
_KEPT_MOST = 256 << 20  # bytes of tensors that were read from afar


class Shards:
    """facts: of each file, as _core.Dataset.shards() has them, in the order of rows. With
    checked the files are those of a manifest, of this version."""

    def __init__(self, place: Place, facts: list[dict[str, Any]], checked: bool,
                 version: int | None = None) -> None:
        self.place = place
        self.facts = facts
        self.checked = checked
        self.version = version
        self._fresh()

    def _fresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._open: OrderedDict[int, _core.File] = OrderedDict()
        self._kept: OrderedDict[tuple[int, str], Any] = OrderedDict()

    def __reduce__(self) -> Any:
        return Shards, (self.place, self.facts, self.checked, self.version)

    def __len__(self) -> int:
        return len(self.facts)

    def name(self, i: int) -> str:
        name: str = self.facts[i]["name"]
        return name

    def file(self, i: int) -> _core.File:
        """Shard i, open. A process that was forked opens its own."""
        if self._pid != os.getpid():
            self._fresh()
        with self._lock:
            file = self._open.get(i)
            if file is None:
                file = self._open[i] = self._opened(i)
                if len(self._open) > _OPEN_MOST:
                    self._open.popitem(last=False)
            self._open.move_to_end(i)
            return file

    def _opened(self, i: int) -> _core.File:
        name, folder = self.name(i), self.place.folder
        try:
            source = self.place.source(name)
            # Read-only: what a program changes must not be there in the next epoch.
            file = _core.open(source, mode="read") if folder is None else \
                _core.open(source, mode="map", beneath=folder)
        except (OSError, _core.SafetensorError):
            if self.checked:
                self._tell(name)
            raise
        size = 8 + len(file.header()) + file.nbytes
        if not self.checked or size == self.facts[i]["bytes"]:
            return file
        file.close()
        self._tell(name)
        raise self.error("dataset_shard", "%s: expected %d bytes by the manifest, found %d"
                         % (name, self.facts[i]["bytes"], size))

    def error(self, code: str, text: str) -> _core.SafetensorError:
        error = _core.SafetensorError("%s: %s" % (self.place.text, text))
        error.code = code
        error.path = self.place.text
        return error

    def _tell(self, name: str) -> None:
        """Raises what is wrong with a shard: perhaps the dataset is another one by now."""
        dataset = _core.Dataset(self.place.core)
        for i, one in enumerate(dataset.shards()):
            if one["name"] == name:
                dataset.check_shard(i)
        names = {one["name"] for one in dataset.shards()}
        if name not in names:
            now = json.loads(dataset.manifest).get("version")
            versions = " (version %d to %d)" % (self.version, now) if self.version and now else ""
            raise self.error("dataset_changed",
                             "%s: replaced%s while reading" % (name, versions))

    def rows_of(self, i: int, key: str, wanted: int) -> Any:
        """A tensor's rows as bytes, [rows, bytes of one]: of a mapped file where they are. Of
        another one they are kept for a while; None when there are too many, or when to ask
        for those that are wanted one by one is less than to get them all."""
        file = self.file(i)
        with self._lock:
            found = self._kept.get((i, key))
        if found is None:
            found = self._read(file, key, wanted)
            if found is not None:
                self._keep((i, key), found)
        return found

    @staticmethod
    def _read(file: _core.File, key: str, wanted: int) -> Any:
        import numpy as np
        tensor = file[key]
        if not file.mapped and tensor.nbytes > min(_KEPT_MOST // 2, wanted * _ASKING):
            return None
        width, rest = divmod(tensor.nbytes, tensor.shape[0])
        if rest:
            raise ValueError("%s: expected rows of whole bytes, found %s of shape %s"
                             % (key, tensor.dtype, list(tensor.shape)))
        data: Any = memoryview(tensor) if file.mapped else bytes(memoryview(tensor))
        return np.frombuffer(data, np.uint8).reshape(tensor.shape[0], width)

    def _keep(self, which: tuple[int, str], rows: Any) -> None:
        near = self.place.folder is not None
        with self._lock:
            self._kept[which] = rows
            while len(self._kept) > _VIEWS_MOST or (
                    not near and len(self._kept) > 1 and
                    sum(one.nbytes for one in self._kept.values()) > _KEPT_MOST):
                self._kept.popitem(last=False)

    def close(self) -> None:
        with self._lock:
            self._open.clear()
            self._kept.clear()

    def guess(self, manifest: dict[str, Any]) -> str:
        """Mode of files that do not tell it: batches have the same tensors in all files, and
        as many rows in each of a file's."""
        told = [i for i, one in enumerate(self.facts) if one["samples"]]
        if not told:
            return "batch"
        file = self.file(told[0])
        names = file.keys()
        ours = (file.metadata() or {}).get("mode")
        if ours in ("batch", "kv"):
            return ours
        rows = {file[name].shape[0] if file[name].ndim else None for name in names}
        counted = self.facts[told[0]]["samples"] if self.checked else None
        if len(rows) != 1 or None in rows or counted not in (None, rows.copy().pop()):
            return "kv"
        others = manifest.get("schema")
        if others is None and len(told) > 1:
            others = self.file(told[-1]).keys()
        return "batch" if others is None or set(others) == set(names) else "kv"


def shards_of_manifest(place: Place, dataset: _core.Dataset) -> tuple[Shards, dict[str, Any]]:
    manifest = json.loads(dataset.manifest)
    return Shards(place, dataset.shards(), True, manifest.get("version")), manifest


def shards_of_files(place: Place, names: list[str]) -> Shards:
    """Of files without a manifest; how many rows they have stands in our metadata, or is the
    first dimension."""
    shards = Shards(place, [{"name": name} for name in names], False)
    first = 0
    for i, one in enumerate(shards.facts):
        file = shards.file(i)
        told = file.metadata() or {}
        keys = file.keys()
        rows = file[keys[0]].shape[0] if keys and file[keys[0]].ndim else len(keys)
        if told.get("libsafetensors.dataset") == "1":
            rows = int(told.get("samples", rows))
        valid = int(told.get("valid_samples", rows)) if "samples" in told else rows
        one.update(bytes=0, samples=rows, valid_samples=valid, first_sample=first,
                   tensors=len(keys), shadowed=0, sha256=None)
        first += rows
    return shards
