"""The files of a dataset: opened on demand, the last used ones kept open."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

from .. import _core
from ._cache import Held
from ._nulls import null_file
from ._storage import Place, dataset_error, in_parallel
from ._types import ColumnFacts, DatasetMode, Manifest, Places, ShardFacts

__all__ = ["Shards", "shards_of_files", "shards_of_manifest"]

_MAX_OPEN = 1024  # a mapped file needs no descriptor
_MAX_HELD = 256  # with a cache, which keeps one for each
_MAX_VIEWS = 4096
_REQUEST_COST = 4 << 20  # bytes that are read in the time of one request
_DIGEST_BYTES = 8 << 20
_CACHE_BYTES = 256 << 20  # of tensors read from remote storage


class Shards:
    """facts: of each file, as from _core.Dataset.shards(), in the order of rows. checked: they
    are the files of a manifest of this version. masks: of shards with deleted rows, by number: a
    bit a row, in KV mode a tensor by name. What is deleted is told by this class alone: rows of
    readers are those that are not, `window` and `stored` tell where they are. places: of columns
    that shards lack, by shard and column: the file beside it, or None where all rows are null. Such
    files have numbers, too, behind those of the shards; `of` tells which one has a column."""

    def __init__(self, place: Place, facts: list[ShardFacts], checked: bool,
                 version: int | None = None, masks: dict[int, bytes] | None = None,
                 places: Places | None = None) -> None:
        self.place = place
        self.facts = facts
        self.checked = checked
        self.version = version
        self.masks = masks or {}
        self.places = places or {}
        self._files = list(facts)  # with those beside them
        self._nulls: dict[int, tuple[str, ColumnFacts]] = {}
        self._columns: dict[int, dict[str, tuple[int, bool]]] = {}
        self._put_places()
        self._fresh()

    def _put_places(self) -> None:
        for i, columns in self.places.items():
            numbers: dict[str, int] = {}
            found = self._columns[i] = {}
            for name, (file, facts) in columns.items():
                at = len(self._files) if file is None else numbers.setdefault(
                    file[0], len(self._files))
                if at == len(self._files):
                    one = self.facts[i].copy()
                    if file is None:
                        self._nulls[at] = name, facts
                    else:
                        one["name"], one["bytes"], one["sha256"] = file
                    self._files.append(one)
                found[name] = at, facts.get("encoding") == "nested"

    def part(self, low: int, high: int) -> Shards:
        """Shards low to high alone."""
        return Shards(self.place, self.facts[low:high], self.checked, self.version,
                      {i - low: mask for i, mask in self.masks.items() if low <= i < high},
                      {i - low: one for i, one in self.places.items() if low <= i < high})

    def _fresh(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._coming: set[int] = set()
        self._were_held: set[int] = set()
        self._intact: set[int] = set()
        self._open: OrderedDict[int, tuple[_core.File, Any]] = OrderedDict()
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def __reduce__(self) -> Any:
        return Shards, (self.place, self.facts, self.checked, self.version, self.masks,
                        self.places)

    def __len__(self) -> int:
        return len(self.facts)

    def name(self, i: int) -> str:
        name: str = self._files[i]["name"]
        return name

    def size(self, i: int) -> int:
        """Bytes of file i; 0 if it is not known."""
        size: int = self._files[i]["bytes"]
        return size

    def of(self, i: int, column: str) -> int:
        """The number of the file that has a column, or a field of one, of shard i."""
        there = self._columns.get(i)
        if not there:
            return i
        if column in there:
            return there[column][0]
        cut = column.rfind(".")
        while cut >= 0:
            at, nested = there.get(column[:cut], (i, False))
            if nested:
                return at
            cut = column.rfind(".", 0, cut)
        return i

    def tensor(self, i: int, name: str) -> _core.Tensor:
        """The tensor of a column of shard i."""
        return self.file(self.of(i, name))[name]

    def files(self, i: int) -> list[int]:
        """Numbers of the files that shard i has, which is the first."""
        beside = sorted({at for at, _ in self._columns.get(i, {}).values() if at not in self._nulls})
        return [i, *beside]

    # ── Rows that are not deleted ──

    def rows(self, i: int) -> int:
        """Rows of shard i in batch mode, without padding."""
        one = self.facts[i]
        return one["valid_samples"] - one["deleted"]

    def _live(self, i: int) -> Any:
        def found() -> Any:
            import numpy as np
            return np.flatnonzero(_bits(self.masks[i], self.facts[i]["valid_samples"]) == 0)
        return self.cached((i, None, "live"), found) if i in self.masks else None

    def stored(self, i: int, rows: Any) -> Any:
        """Where rows of shard i are in its file: a number, or an array of numbers."""
        live = self._live(i)
        return rows if live is None else live[rows]

    def window(self, i: int, start: int, stop: int) -> tuple[int, int, Any]:
        """Where rows start to stop of shard i are: the first and the one behind the last in the
        file, and an array that is true for those between that are meant; None: all."""
        live = self._live(i)
        if live is None or start >= stop:
            return start, stop, None
        import numpy as np
        chosen = live[start:stop]
        first, end = int(chosen[0]), int(chosen[-1]) + 1
        if end - first == stop - start:
            return first, end, None
        keep = np.zeros(end - first, np.bool_)
        keep[chosen - first] = True
        return first, end, keep

    def deleted_keys(self, i: int) -> set[str]:
        """Tensors of deleted rows of shard i, in KV mode."""
        if i not in self.masks:
            return set()
        keys = sorted(self.file(i).keys())
        return {key for key, bit in zip(keys, _bits(self.masks[i], len(keys)).tolist()) if bit}

    # ── Files ──

    def file(self, i: int) -> _core.File:
        """Shard i, open. A forked process opens its own."""
        if self._pid != os.getpid():
            self._fresh()
        return self._file_and_source(i)[0]

    def _file_and_source(self, i: int) -> tuple[_core.File, Any]:
        with self._lock:
            found = self._open.get(i)
            if found is None and self.place.folder is not None:
                found = self._open[i] = self._opened(i)
        if found is None:
            # Without the lock: several may be opened at a time.
            made = self._opened(i)
            with self._lock:
                found = self._open.setdefault(i, made)
        with self._lock:
            self._open[i] = found
            self._open.move_to_end(i)
            if len(self._open) > (_MAX_OPEN if self.place.cache is None else _MAX_HELD):
                self._open.popitem(last=False)
        return found

    def expect(self, i: int, ranges: Sequence[tuple[int, int]]) -> None:
        """Bytes [begin, end) of shard i that will be read soon, in any order: in remote storage,
        those that are close are asked for together, and several at the same time."""
        if self.place.folder is None:
            source = self._file_and_source(i)[1]
            if source is None or isinstance(source, Held):
                return
            source.expect([(begin, end - begin) for begin, end in sorted(ranges) if end > begin])

    def each(self, call: Callable[[int], Any], shards: Iterable[int]) -> list[Any]:
        """Results of call for each of these shards; in remote storage for several at a time."""
        chosen = list(shards)
        if self.place.folder is None:
            return in_parallel(call, chosen)
        return [call(i) for i in chosen]

    def _opened(self, i: int) -> tuple[_core.File, Any]:
        name, folder = self.name(i), self.place.folder
        if i in self._nulls:
            return null_file(*self._nulls[i], self._files[i]["samples"]), None
        try:
            source: Any = self._held(i)
            path = None if source is None else source.path
            if source is None:
                source = self.place.source(name)
                path = source if folder is not None else None
            # Read-only: a program's changes must not appear in the next epoch.
            file = _core.open(source, mode="read") if path is None else \
                _core.open(path, mode="map", beneath=folder or os.path.dirname(path))
        except (OSError, _core.SafetensorError):
            if self.checked:
                self._raise_cause(name)
            raise
        size = 8 + len(file.header()) + file.nbytes
        if not self.checked or size == self._files[i]["bytes"]:
            if self.checked:
                self._counted(i, file)
            return file, source
        file.close()
        self._raise_cause(name)
        raise self.error("dataset_shard", "%s: expected %d bytes by the manifest, found %d"
                         % (name, self._files[i]["bytes"], size))

    def _counted(self, i: int, file: _core.File) -> None:
        """A manifest that tells fewer rows than there are would hide some. Only ours, which has a
        version, tells which are padding."""
        marks, one = file.metadata() or {}, self._files[i]
        if "libsafetensors.dataset" not in marks:
            return
        rows = marks.get("samples")
        valid = marks.get("valid_samples", rows)
        if rows != str(one["samples"]) or (self.version is not None
                                           and valid != str(one["valid_samples"])):
            raise self.error("dataset_shard", "%s: expected %d samples by the manifest, %d of them "
                             "valid_samples, found %s and %s in its metadata" % (
                                 one["name"], one["samples"], one["valid_samples"], rows, valid))

    def intact(self, i: int, columns: Iterable[str]) -> None:
        """Compares the digests, where they are known, of the files with these columns of shard i.
        Other reads do not: a copy would get new digests."""
        for at in dict.fromkeys(self.of(i, name) for name in columns):
            one = self._files[at]
            if at in self._nulls or one["sha256"] is None or at in self._intact:
                continue
            self.file(at)
            source = self._file_and_source(at)[1]
            if not isinstance(source, Held):  # the cache has compared it
                found = self._digest(source, one["bytes"])
                if found != one["sha256"].lower():
                    raise self.error("dataset_shard", "%s: expected the digest %s by the manifest, "
                                     "found %s: the file is damaged"
                                     % (one["name"], one["sha256"], found))
            self._intact.add(at)

    @staticmethod
    def _digest(source: Any, size: int) -> str:
        """SHA-256 of a path, or of a source of so many bytes."""
        total = hashlib.sha256()
        if isinstance(source, str):
            with open(source, "rb") as file:
                while data := file.read(_DIGEST_BYTES):
                    total.update(data)
        else:
            for begin in range(0, size, _DIGEST_BYTES):
                total.update(source.read_at(begin, min(_DIGEST_BYTES, size - begin)))
        return total.hexdigest()

    def _held(self, i: int) -> Held | None:
        """Shard i from the cache on this machine; None if it has no place there."""
        cache, one = self.place.cache, self._files[i]
        if cache is None or self.place.folder is not None or one["sha256"] is None or \
                one["bytes"] > cache.most:
            return None
        sources: list[Any] = []

        def read(begin: int, end: int) -> bytes:
            if not sources:
                sources.append(self.place.source(one["name"]))
            data: bytes = sources[0].read_at(begin, end - begin)
            return data

        while True:
            try:
                found = cache.get(one["sha256"].lower(), one["bytes"], read)
            except ValueError as error:
                raise self.error("dataset_shard", "%s: %s" % (one["name"], error)) from None
            # A second time nothing makes way: too small a cache would fetch shards without end.
            if found is not None or i in self._were_held or not self._release():
                if found is not None:
                    self._were_held.add(i)
                return found

    def _release(self) -> bool:
        """Closes the shard in the cache that was not used for longest; False if there is none."""
        with self._lock:
            i = next((i for i, (_, source) in self._open.items() if isinstance(source, Held)), None)
            if i is None:
                return False
            del self._open[i]
            for which in [which for which in self._kept if which[0] == i]:
                del self._kept[which]
        return True

    def prefetch(self, shards: Iterable[int]) -> None:
        """Fetches these into the cache, one after the other, in a thread. Errors are left to
        those who read them."""
        if self.place.cache is None or self.place.folder is not None:
            return
        if self._pid != os.getpid():
            self._fresh()
        with self._lock:
            new = [at for i in shards for at in self.files(i)
                   if at not in self._open and at not in self._coming]
            self._coming.update(new)
        if new:
            threading.Thread(target=self._prefetch, args=(new,), daemon=True).start()

    def _prefetch(self, shards: list[int]) -> None:
        for i in shards:
            with contextlib.suppress(Exception):
                self.file(i)
            self._coming.discard(i)

    def error(self, code: str, text: str) -> _core.SafetensorError:
        return dataset_error(code, self.place.text, text)

    def _raise_cause(self, name: str) -> None:
        """Raises the cause of a shard's failure; the dataset may have been replaced."""
        dataset = _core.Dataset(self.place.core)
        shards = {one["name"]: i for i, one in enumerate(dataset.shards())}
        shards.update((one[2], one[0]) for one in dataset.places() if one[2] is not None)
        if name in shards:
            dataset.check_shard(shards[name])
        else:
            now = json.loads(dataset.manifest).get("version")
            versions = " (version %d to %d)" % (self.version, now) if self.version and now else ""
            raise self.error("dataset_changed",
                             "%s: replaced%s while reading" % (name, versions))

    def stacked(self, i: int, names: Iterable[str]) -> None:
        """Checks that tensors of these names have as many rows as shard i is said to have: a
        slice of fewer would be a short batch without an error."""
        rows = self.facts[i]["samples"]
        for name in names:
            shape = self.tensor(i, name).shape
            if not shape or shape[0] != rows:
                raise self.error("dataset_shard", "%s: %s: expected %d rows, found shape %s"
                                 % (self.name(self.of(i, name)), name, rows, list(shape)))

    def rows_of(self, i: int, key: str, wanted: int) -> Any:
        """A tensor's rows as bytes, shape [rows, bytes of one]: the memory of a mapped file, or
        a copy that is cached. None if it is too large for the cache, or if reading the wanted
        rows one by one costs less than reading all."""
        file = self.file(i)
        return self.cached((i, key), lambda: self._read(file, key, wanted))

    @staticmethod
    def pays(requests: int, size: int) -> bool:
        """Whether so many requests more cost less than reading so many bytes."""
        return requests * _REQUEST_COST < size

    def cached(self, which: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """An array made of an open shard, from the cache if it is there. which: the shard and
        what it is."""
        with self._lock:
            found = self._kept.get(which)
        if found is None:
            found = make()
            if found is not None:
                self._keep(which, found)
        return found

    @staticmethod
    def _read(file: _core.File, key: str, wanted: int) -> Any:
        import numpy as np
        tensor = file[key]
        if not file.mapped and tensor.nbytes > min(_CACHE_BYTES // 2, wanted * _REQUEST_COST):
            return None
        width, rest = divmod(tensor.nbytes, tensor.shape[0])
        if rest:
            raise ValueError("%s: expected rows of whole bytes, found %s of shape %s"
                             % (key, tensor.dtype, list(tensor.shape)))
        data: Any = tensor if file.mapped else tensor.tobytes()
        return np.frombuffer(data, np.uint8).reshape(tensor.shape[0], width)

    def _keep(self, which: tuple[Any, ...], rows: Any) -> None:
        near = self.place.folder is not None
        with self._lock:
            self._kept[which] = rows
            while len(self._kept) > _MAX_VIEWS or (
                    not near and len(self._kept) > 1 and
                    sum(one.nbytes for one in self._kept.values()) > _CACHE_BYTES):
                self._kept.popitem(last=False)

    def close(self) -> None:
        with self._lock:
            self._open.clear()
            self._kept.clear()

    def guess(self, manifest: Manifest) -> DatasetMode:
        """Mode of files that do not state it: batches have the same tensors in all files, with
        the same number of rows within a file."""
        filled = [i for i, one in enumerate(self.facts) if one["samples"]]
        if not filled:
            return "batch"
        file = self.file(filled[0])
        names = file.keys()
        ours = (file.metadata() or {}).get("mode")
        if ours in ("batch", "kv"):
            return "batch" if ours == "batch" else "kv"
        rows = {file[name].shape[0] if file[name].ndim else None for name in names}
        counted = self.facts[filled[0]]["samples"] if self.checked else None
        if len(rows) != 1 or None in rows or counted not in (None, rows.copy().pop()):
            return "kv"
        others: Iterable[str] | None = manifest.get("schema")
        if others is None and len(filled) > 1:
            others = self.file(filled[-1]).keys()
        return "batch" if others is None or set(others) == set(names) else "kv"


def shards_of_manifest(place: Place, dataset: _core.Dataset) -> tuple[Shards, Manifest]:
    manifest = json.loads(dataset.manifest)
    places: Places = {}
    for shard, column, file, size, digest in dataset.places():
        places.setdefault(shard, {})[column] = (
            None if file is None else (file, size, digest), manifest["columns"][column])
    return Shards(place, dataset.shards(), True, manifest.get("version"), dataset.masks(),
                  places), manifest


def _bits(mask: bytes, count: int) -> Any:
    import numpy as np
    return np.unpackbits(np.frombuffer(mask, np.uint8), count=count, bitorder="little")


def _counted(name: str, metadata: Mapping[str, str], key: str, default: int, most: int) -> int:
    """A number of rows that a file says, of which it has at most so many."""
    text = metadata.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise ValueError("%s: __metadata__: expected %s of at most %d, found %.40r"
                         % (name, key, most, text))
    return int(text)


def shards_of_files(place: Place, names: list[str]) -> Shards:
    """Files without a manifest; the number of rows is in our metadata, or is the first
    dimension."""
    shards = Shards(place, [{"name": name, "bytes": 0, "samples": 0, "valid_samples": 0,
                             "first_sample": 0, "tensors": 0, "shadowed": 0, "sha256": None,
                             "deleted": 0}
                            for name in names], False)
    first = 0
    for i, one in enumerate(shards.facts):
        file = shards.file(i)
        metadata = file.metadata() or {}
        keys = file.keys()
        rows = file[keys[0]].shape[0] if keys and file[keys[0]].ndim else len(keys)
        if metadata.get("libsafetensors.dataset") == "1":
            rows = len(keys) if metadata.get("mode") == "kv" else rows
            rows = _counted(one["name"], metadata, "samples", rows, rows)
            valid = _counted(one["name"], metadata, "valid_samples", rows, rows)
        else:
            valid = rows
        one["samples"], one["valid_samples"] = rows, valid
        one["first_sample"], one["tensors"] = first, len(keys)
        first += rows
    return shards
