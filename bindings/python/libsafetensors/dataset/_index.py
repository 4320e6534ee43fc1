"""_tensor_index.parquet: the location of each tensor. Written and read by pyarrow."""
from __future__ import annotations

import contextlib
import itertools
import json
import os
import posixpath
import random
import time
import warnings
from collections.abc import Iterable
from typing import Any

from .. import _core
from ._storage import INDEX, Place
from ._types import Manifest

__all__ = ["Index", "find_index", "publish", "write_index"]

_GROUP = 1 << 18  # rows
_PIECE = 1 << 16  # rows read at a time
_RETRY_SECONDS = 60.0  # of an append that other commits precede


class _Stream:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.capsule


def publish(commit: _core.Commit, place: Place, append: bool, tick: Any = None) -> list[str]:
    """Prepares and publishes; returns warnings. An append that another commit preceded is
    prepared again on top of that one, for a minute at most."""
    until = time.monotonic() + _RETRY_SECONDS
    for attempt in itertools.count():
        commit.prepare(tick)
        try:
            return _publish(commit, place)
        except _core.SafetensorError as error:
            lost = getattr(error, "code", None) == "dataset_changed"
            if not (append and lost) or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0, min(1.0, 0.01 * 2 ** min(attempt, 10))))
    raise AssertionError


def _publish(commit: _core.Commit, place: Place) -> list[str]:
    index = write_index(commit, place) if commit.indexed else None
    if place.folder is not None or index is None:
        return commit.publish(index)
    folder = _job_folder(commit, place)
    try:
        warned = commit.publish(index)
    except BaseException:
        with contextlib.suppress(Exception):
            place.fs.delete_dir(folder)
        raise
    try:
        # Only now: until the publication the index there belongs to the commit before.
        _clear_folder(place.fs, place.name(INDEX))
        place.fs.copy_file(posixpath.join(folder, INDEX), place.name(INDEX))
        place.fs.delete_dir(folder)
    except Exception as error:
        warned.append("the index could not be put in its place: %s" % error)
    return warned


def _job_folder(commit: _core.Commit, place: Place) -> str:
    return place.name("_job-" + commit.job.split(":")[0])


def write_index(commit: _core.Commit, place: Place) -> str:
    """Writes the index of a prepared commit into the job's folder; returns its name."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("this dataset has an index, and pyarrow is needed to write it") \
            from None
    number = json.loads(commit.manifest)["commit"]
    path = posixpath.join(_job_folder(commit, place), INDEX)
    if place.folder is not None and os.path.islink(path):
        os.unlink(path)  # a link must not be followed
    if place.folder is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # of a commit without rows there is none
    try:
        with pa.RecordBatchReader.from_stream(_Stream(commit.index())) as rows:
            schema = rows.schema.with_metadata({"commit": number})
            with pq.ParquetWriter(path, schema, filesystem=place.fs,
                                  use_dictionary=["file_name", "dtype"]) as out:
                for batch in rows:
                    out.write_batch(batch.replace_schema_metadata(schema.metadata), _GROUP)
    except BaseException:
        if place.folder is None:
            with contextlib.suppress(Exception):
                place.fs.delete_dir(posixpath.dirname(path))
        raise
    if place.folder is not None:
        _limit_mode(path, os.path.join(place.folder, "dataset_manifest.json"))
        if place.sync:
            _sync(path)
    return INDEX


def _limit_mode(path: str, manifest: str) -> None:
    """The index tells of the dataset: for no more people than its manifest."""
    with contextlib.suppress(FileNotFoundError):
        allowed = os.stat(manifest).st_mode | 0o700
        os.chmod(path, os.stat(path).st_mode & allowed & 0o777)


def _sync(path: str) -> None:
    # Windows syncs only what may be written.
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear_folder(fs: Any, path: str) -> None:
    """Removes the folder that Spark writes as an index: the new file could not replace it. One
    with other files than Spark's stays, and is an error."""
    from pyarrow.fs import FileSelector, FileType
    if fs.get_file_info(path).type != FileType.Directory:
        return
    for one in fs.get_file_info(FileSelector(path)):
        if one.type != FileType.File or not one.base_name.startswith("_") and \
                not one.base_name.endswith((".parquet", ".crc")):
            raise OSError("%s is a folder with other files than an index has, such as %s"
                          % (path, one.base_name))
    fs.delete_dir(path)


class Index:
    """An index that belongs to the dataset."""

    def __init__(self, data: Any) -> None:
        self._data = data  # pyarrow.dataset.Dataset

    def _rows(self, columns: list[str], where: Any = None) -> set[tuple[Any, ...]] | None:
        """Different values of these columns, read piece by piece: a small file can claim any number
        of equal rows. None if it has been removed: the shards have the same information."""
        found: set[tuple[Any, ...]] = set()
        try:
            for batch in self._data.to_batches(columns=columns, filter=where, batch_size=_PIECE):
                found.update(zip(*(column.to_pylist() for column in batch.columns)))
        except FileNotFoundError:
            return None
        return found

    def shadowed(self) -> set[tuple[str, str]] | None:
        """(file, key) of all tensors replaced by later ones of the same key; None if the index
        lacks that column."""
        import pyarrow.dataset as pd
        if "shadowed" not in self._data.schema.names:
            return None
        rows: Any = self._rows(["file_name", "tensor_key"], pd.field("shadowed"))
        return rows

    def places_of(self, keys: Iterable[str]) -> set[tuple[str, str]] | None:
        """(file, key) of these keys; None if unknown."""
        import pyarrow.dataset as pd
        chosen = list(keys)
        if not chosen:  # of which Arrow does not know that they are texts
            return set()
        rows: Any = self._rows(["file_name", "tensor_key"], pd.field("tensor_key").isin(chosen))
        return rows

    def files(self) -> set[str]:
        return {name for name, in self._rows(["file_name"]) or ()}


def _of_files(path: str) -> bool:
    """Whether it is a file, or a folder of files as Spark writes; not a pipe, which blocks."""
    if not os.path.isdir(path):
        return os.path.isfile(path)
    with os.scandir(path) as inside:
        return all(one.is_file() for one in inside)


def _open(place: Place) -> Any:
    """(dataset, its commit or None); None if there is no index to read."""
    try:
        import pyarrow.dataset as pd
    except ImportError:
        return None
    path = place.name(INDEX)
    if place.folder is not None and not _of_files(path):
        return None
    try:
        data = pd.dataset(path, format="parquet", filesystem=place.fs)
        data.schema.field("tensor_key"), data.schema.field("file_name")
    except (OSError, KeyError, ValueError):
        return None
    number = (data.schema.metadata or {}).get(b"commit")
    return data, number.decode() if number else None


def find_index(place: Place, manifest: Manifest) -> Index | None:
    """The index of exactly this dataset, or None. One of another commit is ignored; a
    connector's has no commit, so its files must be those of the manifest."""
    named = manifest.get("index", INDEX)
    opened = _open(place) if named == INDEX else None
    if opened is None:
        return None
    data, number = opened
    index = Index(data)
    if "commit" in manifest:
        return index if number == manifest.get("index_commit", manifest["commit"]) else None
    if index.files() == {shard["shard_path"] for shard in manifest.get("shards", ())}:
        return index
    warnings.warn("%s: %s is of other shards than the manifest's; it is not used"
                  % (place.text, INDEX), stacklevel=5)
    return None
