"""Files of fsspec, pyarrow and obstore as sources of the extension: `size`, `read_at(offset,
length)`, and `expect(runs)` where several ranges can be asked for at once."""
from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Any

__all__ = ["Ranges", "adapt"]

_PIECE = 8 << 20    # of one range of a request
_BATCH = 32 << 20   # asked for at once
_MOST = 64          # so many at most
_GAP = 1 << 20      # bytes between two ranges that are read rather than asked around


class _Native:
    """A pyarrow.NativeFile, whose read_at takes the number of bytes first."""

    def __init__(self, file: Any) -> None:
        self._file, self.size = file, file.size()

    def read_at(self, offset: int, length: int) -> Any:
        return self._file.read_at(length, offset)


class Ranges:
    """Ranges of one object. What the library announces is fetched several ranges at a time, when
    the first of them is read, and given away as it is read."""

    def __init__(self, size: int | None) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._expected: deque[tuple[int, int]] = deque()
        self._fetched: dict[int, memoryview] = {}

    def _get(self, begin: int, end: int) -> Any:
        raise NotImplementedError

    def _get_many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        raise NotImplementedError

    def expect(self, runs: Sequence[tuple[int, int]]) -> None:
        """Runs of (offset, bytes) that will be read soon, in this order. Those that are close are
        asked for together, those that are expected already only once."""
        with self._lock:
            known = _joined(sorted([*self._expected, *(
                (begin, begin + len(data)) for begin, data in self._fetched.items())]), 0, None)
            new = [(at, min(at + _PIECE, begin + count)) for begin, count in runs
                   if not _holds(known, begin, begin + count)
                   for at in range(begin, begin + count, _PIECE)]
            self._expected.extend(_joined(new, _GAP, _PIECE))

    def _kept(self, offset: int, length: int) -> Any:
        """What was fetched already from there on, at most length bytes; or None."""
        for begin, data in self._fetched.items():
            if begin <= offset < begin + len(data):
                piece = data[offset - begin:offset - begin + length]
                if offset + len(piece) == begin + len(data):
                    del self._fetched[begin]  # runs are read once, in order
                return piece
        return None

    def _batch(self, offset: int) -> list[tuple[int, int]]:
        """The expected ranges from the one that holds offset on; those before it are skipped."""
        at = next((i for i, (begin, end) in enumerate(self._expected) if begin <= offset < end),
                  None)
        batch: list[tuple[int, int]] = []
        if at is None:
            return batch
        for _ in range(at):
            self._expected.popleft()
        total = 0
        while self._expected and len(batch) < _MOST:
            begin, end = self._expected[0]
            total += end - begin
            if batch and total > _BATCH:
                break
            batch.append(self._expected.popleft())
        return batch

    def read_at(self, offset: int, length: int) -> Any:
        with self._lock:
            piece = self._kept(offset, length)
            batch = self._batch(offset) if piece is None else []
            if len(batch) > 1 or batch and batch[0] != (offset, offset + length):
                self._fetched = {begin: memoryview(data) for (begin, _), data
                                 in zip(batch, self._get_many(batch))}
                piece = self._kept(offset, length)
        return self._get(offset, offset + length) if piece is None else piece


def _joined(ranges: Sequence[tuple[int, int]], gap: int,
            most: int | None) -> list[tuple[int, int]]:
    """Neighbours in ascending order as one range, of at most so many bytes, if they are no
    further apart."""
    joined: list[tuple[int, int]] = []
    for begin, end in ranges:
        low, high = joined[-1] if joined else (end, end)
        if low <= begin <= high + gap and (most is None or max(high, end) - low <= most):
            joined[-1] = low, max(high, end)
        else:
            joined.append((begin, end))
    return joined


def _holds(joined: Sequence[tuple[int, int]], begin: int, end: int) -> bool:
    """Whether one of the ranges, which ascend and do not touch, holds that range."""
    at = bisect_right(joined, begin, key=lambda held: held[0])
    return at > 0 and end <= joined[at - 1][1]


class _Fsspec(Ranges):
    """A path of an fsspec file system."""

    def __init__(self, system: Any, path: str) -> None:
        super().__init__(system.size(path))
        self._system, self._path = system, path

    def _get(self, begin: int, end: int) -> Any:
        return self._system.cat_file(self._path, start=begin, end=end)

    def _get_many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        found: Sequence[Any] = self._system.cat_ranges(
            [self._path] * len(ranges), [begin for begin, _ in ranges],
            [end for _, end in ranges], on_error="raise")
        return found


class _Obstore(Ranges):
    """A path of a store of obstore, or of anything with its get_range and get_ranges."""

    def __init__(self, store: Any, path: str) -> None:
        super().__init__(store.head(path)["size"])
        self._store, self._path = store, path

    def _get(self, begin: int, end: int) -> Any:
        return self._store.get_range(self._path, start=begin, end=end)

    def _get_many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        found: Sequence[Any] = self._store.get_ranges(
            self._path, starts=[begin for begin, _ in ranges], ends=[end for _, end in ranges])
        return found


def _is_local(system: Any) -> bool:
    names = getattr(system, "protocol", ())
    return "file" in ((names,) if isinstance(names, str) else names)


def _adapt_pair(store: Any, path: Any) -> Any:
    if hasattr(store, "cat_file"):
        return _Fsspec(store, path)
    if hasattr(store, "get_range"):
        return _Obstore(store, path)
    if hasattr(store, "open_input_file"):
        return _Native(store.open_input_file(path))
    raise TypeError("expected a pair of a file system of fsspec or pyarrow, or a store of "
                    "obstore, and a path, found %s first" % type(store).__name__)


def adapt(given: Any) -> Any:
    """What is read in place of a file or a pair of these libraries; others are returned as they
    are. TypeError."""
    if isinstance(given, tuple):
        if len(given) != 2:
            raise TypeError("expected a pair of a file system and a path, found %d items"
                            % len(given))
        return _adapt_pair(*given)
    if hasattr(given, "read_at"):
        return _Native(given) if callable(getattr(given, "size", None)) else given
    system, path = given.fs, given.path
    if not hasattr(system, "cat_file"):
        return given
    if hasattr(given, "read"):
        # A local file is read as it is: by its descriptor, and with what was written to it.
        return given if _is_local(system) else _Fsspec(system, path)
    if getattr(given, "compression", None):
        raise TypeError("expected a file without compression, not %r; call its open(), which "
                        "gives a file object" % (type(given),))
    return _Fsspec(system, path)
