"""Reads and writes safetensors datasets as DataFrames of Daft.

    from libsafetensors.daft import read_safetensors, write_safetensors
    manifest = write_safetensors(daft.read_parquet(source), path, batch_size=1000)
    df = read_safetensors(path, columns=["image", "caption"])

With Daft's Ray runner this package must be installed on every node. See docs/daft.md.
"""
from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from daft import DataType
from daft.io import DataSink
from daft.io.sink import WriteResult
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import MicroPartition, RecordBatch
from daft.schema import Schema

from ._types import Path, Unpack, parse
from .dataset._engines import job_of, plain_batches
from .dataset._job import Job
from .dataset import open as open_dataset
from .dataset._storage import scheme_of
from .dataset._tasks import Task, tasks_of
from .dataset._types import Adopt, Manifest, OpenOptions, WriteMode, WriteOptions
from .dataset._write import settled

__all__ = ["SafetensorsSink", "SafetensorsSource", "read_safetensors", "write_safetensors"]

_RESULT = {"path": DataType.string(), "version": DataType.int64(),
           "total_samples": DataType.int64(), "total_bytes": DataType.int64(),
           "shards": DataType.int64()}
_STOP_SECONDS = 60


_TASK_BYTES = 64 << 20


class SafetensorsSource(DataSource):
    """A dataset for Daft; read() is its DataFrame. Arguments as for libsafetensors.dataset.open. All
    tasks read the version that is opened here, whatever is committed meanwhile."""

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        text = os.fsdecode(path)
        self._dataset = open_dataset(os.path.abspath(text) if scheme_of(text) is None else text,
                                     **options)
        self._schema = Schema.from_pyarrow_schema(self._dataset._arrow(None, range(0), None)[0])

    @property
    def name(self) -> str:
        return "Safetensors"

    @property
    def schema(self) -> Schema:
        return self._schema

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        """Only the columns that a query uses are read."""
        names = self._schema.column_names()
        if pushdowns.columns is not None:
            used = {*pushdowns.columns, *pushdowns.filter_required_column_names()}
            # A batch without columns would have no rows.
            names = [name for name in names if name in used] or names[:1]
        size = sum(task.bytes for task in tasks_of(self._dataset, 1))
        for task in tasks_of(self._dataset, max(1, -(-size // _TASK_BYTES))):
            yield _SourceTask(task, names)


class _SourceTask(DataSourceTask):
    def __init__(self, task: Task, names: list[str]) -> None:
        self._task, self._names = task, names

    @property
    def schema(self) -> Schema:
        whole = self._task.dataset._arrow(self._names, range(0), None)[0]
        return Schema.from_pyarrow_schema(whole)

    async def read(self) -> AsyncIterator[RecordBatch]:
        with self._task.dataset:
            for batch in self._task.batches(self._names):
                yield RecordBatch.from_arrow_record_batches([batch], batch.schema)


def read_safetensors(path: Path, **options: Unpack[OpenOptions]) -> Any:
    """A DataFrame of a dataset's rows, of the types that were written; in KV mode the name, and each
    tensor as a struct. options: of libsafetensors.dataset.open, such as columns, rows and version."""
    return SafetensorsSource(path, **options).read()


class _Parts:
    """Numbers the parts that threads of this process write, and waits for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = self._running = 0
        self._stopped = False

    @contextlib.contextmanager
    def one(self) -> Iterator[int]:
        with self._changed:
            if self._stopped:
                raise RuntimeError("the write was aborted")
            number = self._next
            self._next += 1
            self._running += 1
        try:
            yield number
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Lets no further part begin and waits for those that run."""
        with self._changed:
            self._stopped = True
            self._changed.wait_for(lambda: not self._running, _STOP_SECONDS)


class SafetensorsSink(DataSink):
    """For DataFrame.write_sink, which then returns one row: path, version, total_samples,
    total_bytes and the number of shards.

    Daft does not report failures to a sink: files of a failed write are not read, and gc or
    abort() removes them. Arguments as for libsafetensors.dataset.write. manifest: of the write,
    once it is done."""

    def __init__(self, path: Path, *, mode: WriteMode = "error", adopt: Adopt = None,
                 sync: bool = True, **options: Unpack[WriteOptions]) -> None:
        self._how = path, mode, adopt, sync, options
        self._keyed = settled(options)[0].mode == "kv"
        self._job: Job | None = job_of(*self._how)  # checks the arguments now
        self._parts: _Parts | None = None
        self.manifest: Manifest | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": None}

    def name(self) -> str:
        return "safetensors"

    def schema(self) -> Schema:
        return Schema._from_field_name_and_types(list(_RESULT.items()))

    def start(self) -> None:
        self._job = job_of(*self._how)
        self._parts = _Parts()

    def _part(self) -> contextlib.AbstractContextManager[int]:
        """Number of a part of the rows, which Daft does not give; independent processes draw
        random ones."""
        if self._parts is not None:
            return self._parts.one()
        return contextlib.nullcontext(random.SystemRandom().getrandbits(48))

    def write(self, micropartitions: Iterable[Any]) -> Iterator[WriteResult]:
        assert self._job is not None
        counts = {"rows": 0, "bytes": 0}
        with self._part() as number:
            text = self._job.write(self._batches(micropartitions, counts), number)
        yield WriteResult(text, counts["bytes"], counts["rows"])

    def _batches(self, micropartitions: Iterable[Any], counts: dict[str, int]) -> Iterator[Any]:
        for part in micropartitions:
            for batch in plain_batches(part.to_arrow(), self._keyed):
                counts["rows"] += batch.num_rows
                counts["bytes"] += batch.nbytes
                yield batch

    def finalize(self, write_results: list[WriteResult]) -> MicroPartition:
        assert self._job is not None
        job, self._job = self._job, None
        manifest = parse(job.commit([one.result for one in write_results]))
        self.manifest = manifest
        shards = manifest["total_shards"] if "segments" in manifest else len(manifest["shards"])
        row = {**manifest, "path": job.place.text, "shards": shards}
        return MicroPartition.from_pydict({name: [row[name]] for name in _RESULT})

    def abort(self) -> None:
        """Removes the files of a failed write. Never raises."""
        job, self._job = self._job, None
        if self._parts is not None:
            self._parts.stop()
        if job is not None:
            job.abort([None])


def write_safetensors(df: Any, path: Path, *, mode: WriteMode = "error", adopt: Adopt = None,
                      sync: bool = True, **options: Unpack[WriteOptions]) -> Manifest:
    """Writes a daft.DataFrame as a dataset of safetensors; returns the manifest. Arguments and
    errors as for libsafetensors.dataset.write. A failed write leaves the old dataset unchanged."""
    sink = SafetensorsSink(path, mode=mode, adopt=adopt, sync=sync, **options)
    try:
        df.write_sink(sink)
    except BaseException:
        sink.abort()
        raise
    assert sink.manifest is not None
    return sink.manifest
