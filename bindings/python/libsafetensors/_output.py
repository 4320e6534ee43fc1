"""Tensors to a file or to a folder of shards, with the result that describes it."""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from types import TracebackType
from typing import Any, Union

from . import _core
from ._dtypes import HEADER_NAMES
from ._errors import coded
from ._progress import watch
from ._types import Link, Path, Progress
from ._written import Written, WrittenFile

__all__ = ["SHARD", "Size", "byte_size", "keep_times", "row_bytes", "to_file", "to_folder"]

Size = Union[int, str]

SHARD = "5GB"  # as the command and transformers
_MOST = (1 << 64) - 1  # what the library takes: more than any tensor has
_UNITS: dict[str, int] = {"": 1, "B": 1, **{letter + end: base ** power
                            for power, letter in enumerate("KMGT", 1)
                            for end, base in (("", 1000), ("B", 1000), ("IB", 1024))}}


def byte_size(size: Size) -> int:
    """Bytes of a size: an int, or a text such as "5GB" (powers of 1000) or "500MiB" (of 1024).
    ValueError."""
    if hasattr(size, "__index__") and not isinstance(size, bool) and index(size) > 0:
        return min(index(size), _MOST)
    if isinstance(size, str):
        digits = size.rstrip("KMGTBkmgtIib ")
        unit = _UNITS.get(size[len(digits):].strip().upper())
        whole, _, part = digits.partition(".")
        if unit and (whole + part).isascii() and (whole + part).isdigit() and whole:
            more: int = int(part) * unit // 10 ** len(part) if part else 0
            found: int = int(whole) * unit + more
            if found > 0:
                return min(found, _MOST)
    raise ValueError("expected a size such as 5GB or 500MiB, found %r" % (size,))


def row_bytes(row: tuple[Any, ...]) -> int:
    """Bytes of the tensor of a row for _core."""
    bits = _core.DTYPES[HEADER_NAMES.get(row[1], row[1])][0]
    for size in row[2]:
        bits *= size
    return bits // 8


def _files_of(source: Any) -> list[str]:
    """Of a model, the index last. ValueError for what has no times."""
    is_path = isinstance(source, (str, bytes, os.PathLike))
    name = os.fsdecode(source) if is_path else None
    if isinstance(source, _core.File):
        files, index = list(source.paths), source._index()
    elif name is None or "://" in name:
        files, index = [], None
    else:
        with _core.open(name, header_only=True) as file:
            files, index = list(file.paths), file._index()
    if not files or any("://" in one for one in files):
        raise ValueError("expected files for keep_mtime, found %s" % (name or "none"))
    return files + ([index[0]] if index else [])


class keep_times:
    """with keep_times(asked, sources, output): ... gives what was written the times of its sources:
    file by file if there are as many, else of the youngest."""

    def __init__(self, asked: bool, sources: Iterable[Any], output: Path | None) -> None:
        self._output = output if asked else None
        self._times = [[os.stat(file).st_mtime_ns for file in _files_of(source)]
                       for source in sources] if asked else []

    def __enter__(self) -> None:
        self._before = self._facts()

    def _facts(self) -> tuple[int, int] | None:
        """Of the file that is there: what is not written keeps its time."""
        if self._output is None or not os.path.isfile(self._output):
            return None
        facts = os.stat(self._output)
        return facts.st_ino, facts.st_mtime_ns

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is not None or self._output is None or not os.path.exists(self._output):
            return
        if self._before is not None and self._before == self._facts():
            return
        files = _written_in(self._output)
        times = self._times[0]
        if len(self._times) > 1 or len(times) != len(files):
            times = [max(map(max, self._times))] * len(files)
        for file, time in zip(files, times):
            os.utime(file, ns=(os.stat(file).st_atime_ns, time))


def _written_in(output: Path) -> list[str]:
    """The file; of a folder, which was new or empty, all files, the index last."""
    if not os.path.isdir(output):
        return [os.fsdecode(output)]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(os.fsdecode(output))
             for name in names]
    return sorted(found, key=lambda name: (name.endswith(".json"), name))


def to_folder(rows: list[Any], folder: Path, metadata: Mapping[str, str] | None, *,
               path: str | None = None, max_bytes: int = 0, count: int = 0,
               shards: Sequence[int] | None = None, stem: str | None = None,
               index_metadata: str | None = None, sync: bool, dry_run: bool = False,
               dropped: tuple[str, ...] = (), in_place_unsafe: bool = False, progress: Progress,
               title: str) -> Written:
    with watch(progress, title) as tick:
        made = _core.save_set(folder, rows, metadata, max_bytes=max_bytes, count=count,
                              shards=shards, stem=stem, index_metadata=index_metadata, sync=sync,
                              dry_run=dry_run, progress=tick, in_place_unsafe=in_place_unsafe)
    output = os.fsdecode(folder)
    files = tuple(WrittenFile(os.path.join(output, name), tensors, size)
                  for name, tensors, size in made)
    return Written(path, output, dry_run, sum(file.tensors for file in files),
                   sum(file.bytes for file in files), files, dropped)


def to_file(rows: list[Any], output: Path, metadata: Mapping[str, str] | None, *,
             path: str | None, overwrite: bool, sync: bool, dry_run: bool,
             dropped: tuple[str, ...] = (), link: Link = "replace", in_place_unsafe: bool = False,
             progress: Progress, title: str) -> Written:
    name = os.fsdecode(output)
    if not overwrite and os.path.lexists(name):
        raise coded(FileExistsError, "%s: already exists" % name, "exists",
                    "overwrite=True replaces it", errno=errno.EEXIST, path=name)
    if not dry_run:
        with watch(progress, title) as tick:
            _core.save_file(output, rows, metadata, sync=sync, overwrite=overwrite, link=link,
                            progress=tick, in_place_unsafe=in_place_unsafe)
    size = sum(map(row_bytes, rows))
    return Written(path, name, dry_run, len(rows), size, (WrittenFile(name, len(rows), size),),
                   dropped)
