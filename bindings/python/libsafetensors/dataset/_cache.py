"""Shards of remote datasets in a folder of this machine, which processes share.

<sha256>.safetensors is a shard, named by its digest in the manifest; its readers hold a shared
lock on it. <sha256>.part is one that is being fetched, under an exclusive lock; it has its final
size from the start, so that _make_room counts it. A crash frees locks: a .part without one is
removed. Names change only under the lock on .lock, which is held briefly. Tests:
tests/python/test_dataset_cache.py."""
from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Any, Callable

__all__ = ["CACHE_BYTES", "Cache", "Held"]

CACHE_BYTES = 64 << 30
_PIECE = 8 << 20
_OURS = re.compile(r"[0-9a-f]{64}\.(safetensors|part)\Z")
_FULL = {errno.ENOSPC, errno.EDQUOT}


class Held:
    """A shard that stays in the folder as long as this object lives."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


class Cache:
    """folder: made if it is missing; OSError for one that others may write to. most: bytes of all
    shards in it."""

    def __init__(self, folder: Any, most: int = CACHE_BYTES) -> None:
        try:
            import fcntl
        except ImportError:
            raise NotImplementedError("cache_dir: expected a system with flock") from None
        if most < 1:
            raise ValueError("cache_bytes: expected a number of bytes from 1 on, found %d" % most)
        self._lock: Any = fcntl
        self.folder, self.most = os.path.abspath(os.fsdecode(folder)), most
        self._compared: set[tuple[str, int, int]] = set()  # digest, device, inode
        os.makedirs(os.path.dirname(self.folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)
        self._check(os.lstat(self.folder), stat.S_ISDIR, "a folder", self.folder)

    def __reduce__(self) -> Any:
        return Cache, (self.folder, self.most)

    @staticmethod
    def _check(info: os.stat_result, is_kind: Callable[[int], bool], kind: str, path: str) -> None:
        if not is_kind(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "cache_dir: expected %s that is yours and that only "
                                  "you can write to" % kind, path)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _opened(self, name: str, flags: int) -> int:
        """OSError for what is no file of one's own; links are not followed."""
        path = self._path(name)
        found = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            self._check(os.fstat(found), stat.S_ISREG, "a file", path)
        except BaseException:
            os.close(found)
            raise
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        found = self._opened(".lock", os.O_RDWR | os.O_CREAT)
        try:
            self._lock.flock(found, self._lock.LOCK_EX)
            yield
        finally:
            self._close(found)

    def _close(self, descriptor: int) -> None:
        """Unlocks first: closing alone leaves the lock to a process forked meanwhile."""
        self._lock.flock(descriptor, self._lock.LOCK_UN)
        os.close(descriptor)

    def _taken(self, descriptor: int) -> bool:
        """Whether the exclusive lock was free, and is now held."""
        try:
            self._lock.flock(descriptor, self._lock.LOCK_EX | self._lock.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    # ── What is there ──

    def get(self, digest: str, size: int, read: Callable[[int, int], bytes]) -> Held | None:
        """The shard of this digest and size, fetched by read(begin, end) unless it is there; None
        if there is no room for it beside those that are open. Waits for another process that is
        fetching it. The digest is compared once for each Cache. ValueError if what is read has
        another digest."""
        if size > self.most:
            return None
        while True:
            with self._alone():
                kind, descriptor = self._find(digest, size)
            if kind == "full":
                return None
            try:
                if kind == "whole":
                    if self._is_whole(descriptor, digest, size):
                        self._use(descriptor)
                        return Held(self._path(digest + ".safetensors"), descriptor)
                    self._drop(digest + ".safetensors", descriptor)
                elif kind == "new":
                    self._fetch(descriptor, digest, size, read)
                    return Held(self._path(digest + ".safetensors"), descriptor)
                else:
                    self._lock.flock(descriptor, self._lock.LOCK_SH)
            except OSError as error:
                self._close(descriptor)
                if kind == "new" and error.errno in _FULL:
                    return None
                raise
            except BaseException:
                self._close(descriptor)
                raise
            self._close(descriptor)

    def _find(self, digest: str, size: int) -> tuple[str, int]:
        try:
            found = self._opened(digest + ".safetensors", os.O_RDONLY)
            self._lock.flock(found, self._lock.LOCK_SH)
            return "whole", found
        except FileNotFoundError:
            pass
        part = digest + ".part"
        try:
            found = self._opened(part, os.O_RDWR)
            if not self._taken(found):
                return "awaited", found
            os.unlink(self._path(part))
            os.close(found)
        except FileNotFoundError:
            pass
        if not self._make_room(size):
            return "full", -1
        found = self._opened(part, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            self._lock.flock(found, self._lock.LOCK_EX)
            os.ftruncate(found, size)
        except BaseException as error:
            os.unlink(self._path(part))
            self._close(found)
            if isinstance(error, OSError) and error.errno in _FULL:
                return "full", -1
            raise
        return "new", found

    def _make_room(self, size: int) -> bool:
        """Removes what nobody has open, the longest unused first, until there is room."""
        there = []
        for name in os.listdir(self.folder):
            if _OURS.match(name):
                info = os.lstat(self._path(name))
                there.append((info.st_mtime_ns, name, info.st_size))
        total = sum(one[2] for one in there) + size
        # First what a crash has left.
        for _, name, bytes_ in sorted(there, key=lambda one: (not one[1].endswith(".part"), one)):
            if total > self.most or name.endswith(".part"):
                found = self._opened(name, os.O_RDONLY)
                if self._taken(found):
                    os.unlink(self._path(name))
                    total -= bytes_
                os.close(found)
        return total <= self.most

    def _drop(self, name: str, descriptor: int) -> None:
        """Removes the file that is open, unless another one has its name by now."""
        with self._alone(), contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(self._path(name)), os.fstat(descriptor)):
                os.unlink(self._path(name))

    def _is_whole(self, descriptor: int, digest: str, size: int) -> bool:
        total, at, info = hashlib.sha256(), 0, os.fstat(descriptor)
        if info.st_size != size:
            return False
        if (digest, info.st_dev, info.st_ino) in self._compared:
            return True
        while data := os.pread(descriptor, _PIECE, at):
            total.update(data)
            at += len(data)
        if total.hexdigest() != digest:
            return False
        self._compared.add((digest, info.st_dev, info.st_ino))
        return True

    @staticmethod
    def _use(descriptor: int) -> None:
        """Says that it is used now; the clock of files may be too coarse."""
        now = time.time_ns()
        os.utime(descriptor, ns=(now, now))

    # ── Fetching ──

    def _fetch(self, descriptor: int, digest: str, size: int,
               read: Callable[[int, int], bytes]) -> None:
        part, total = digest + ".part", hashlib.sha256()
        try:
            for begin in range(0, size, _PIECE):
                data = memoryview(read(begin, min(begin + _PIECE, size)))
                total.update(data)
                at = begin
                while len(data):
                    count = os.pwrite(descriptor, data, at)
                    at, data = at + count, data[count:]
            if total.hexdigest() != digest:
                raise ValueError("expected the SHA-256 %s by the manifest, found %s"
                                 % (digest, total.hexdigest()))
            self._use(descriptor)
            with self._alone():
                os.rename(self._path(part), self._path(digest + ".safetensors"))
                self._lock.flock(descriptor, self._lock.LOCK_SH)
        except BaseException:
            self._drop(part, descriptor)
            raise
