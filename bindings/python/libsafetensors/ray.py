"""Reads and writes safetensors datasets by tasks of Ray Data.

    from libsafetensors.ray import read_safetensors, write_safetensors
    manifest = write_safetensors(ray.data.read_parquet(source), path, batch_size=1000)
    rows = read_safetensors(path, columns=["image", "caption"])

This package must be installed on every node. See docs/ray.md.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ray.data
from ray.data import Datasink, Datasource, ReadTask
from ray.data.block import BlockAccessor, BlockMetadata

from ._types import Path, Unpack, parse
from .dataset._engines import job_of, plain_batches
from .dataset._job import Job
from .dataset._storage import scheme_of
from .dataset import open as open_dataset
from .dataset._tasks import Task, tasks_of
from .dataset._types import Adopt, Manifest, OpenOptions, WriteMode, WriteOptions
from .dataset._write import settled

__all__ = ["SafetensorsDatasink", "SafetensorsDatasource", "read_safetensors", "write_safetensors"]


class SafetensorsDatasource(Datasource):
    """For ray.data.read_datasource. Arguments as for libsafetensors.dataset.open. All tasks read the
    version that is opened here, whatever is committed meanwhile."""

    def __init__(self, path: Path, **options: Unpack[OpenOptions]) -> None:
        super().__init__()
        text = os.fsdecode(path)
        self._dataset = open_dataset(os.path.abspath(text) if scheme_of(text) is None else text,
                                     **options)

    def get_name(self) -> str:
        return "Safetensors"

    def estimate_inmemory_data_size(self) -> int:
        return sum(task.bytes for task in tasks_of(self._dataset, 1))

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None,
                       data_context: Any = None) -> list[ReadTask]:
        schema = self._dataset._arrow(None, range(0), None)[0]
        return [ReadTask(_reader(task), BlockMetadata(len(task.rows), task.bytes, None, None),
                         schema, per_task_row_limit)
                for task in tasks_of(self._dataset, max(1, parallelism))]


def _reader(task: Task) -> Any:
    def read() -> Iterator[Any]:
        import pyarrow as pa
        with task.dataset:
            for batch in task.batches():
                yield pa.Table.from_batches([batch])
    return read


def read_safetensors(path: Path, *, parallelism: int = -1, concurrency: int | None = None,
                     ray_remote_args: Mapping[str, Any] | None = None,
                     **options: Unpack[OpenOptions]) -> Any:
    """A ray.data.Dataset of a dataset's rows, of the types that were written; in KV mode the name, and
    each tensor as a struct. options: of libsafetensors.dataset.open, such as columns, rows and
    version; parallelism, concurrency, ray_remote_args: of ray.data.read_datasource."""
    source = SafetensorsDatasource(path, **options)
    return ray.data.read_datasource(source, override_num_blocks=None if parallelism < 1
                                    else parallelism, concurrency=concurrency,
                                    ray_remote_args=dict(ray_remote_args or {}))


class SafetensorsDatasink(Datasink):
    """For Dataset.write_datasink. Tasks write, and the driver publishes after all of them have
    written; a failed write leaves the old dataset unchanged.

    Arguments as for libsafetensors.dataset.write. manifest: of the write, once it is done."""

    def __init__(self, path: Path, *, mode: WriteMode = "error", adopt: Adopt = None,
                 sync: bool = True, **options: Unpack[WriteOptions]) -> None:
        self._how = path, mode, adopt, sync, options
        self._keyed = settled(options)[0].mode == "kv"
        self._job: Job | None = job_of(*self._how)  # checks the arguments now
        self.manifest: Manifest | None = None

    def on_write_start(self, schema: Any = None) -> None:
        """Makes the job again: the dataset may have changed since."""
        self._job = job_of(*self._how)

    def write(self, blocks: Iterable[Any], ctx: Any) -> str:
        assert self._job is not None
        return self._job.write(self._batches(blocks), ctx.task_idx)

    def _batches(self, blocks: Iterable[Any]) -> Iterator[Any]:
        for block in blocks:
            yield from plain_batches(BlockAccessor.for_block(block).to_arrow(), self._keyed)

    def on_write_complete(self, write_result: Any) -> None:
        job, self._job = self._job, None
        assert job is not None
        self.manifest = parse(job.commit(write_result.write_returns))

    def on_write_failed(self, error: Exception) -> None:
        """A failed commit has already removed its files."""
        job, self._job = self._job, None
        if job is not None:
            job.abort([None])

    @property
    def min_rows_per_write(self) -> int | None:
        """At least a full batch, because each task has a last batch of its own."""
        options: Mapping[str, Any] = self._how[4]
        given = {name.lower(): value for name, value in options.items()}
        return None if self._keyed else int(given["batch_size"])


def write_safetensors(dataset: Any, path: Path, *, mode: WriteMode = "error",
                      adopt: Adopt = None, sync: bool = True,
                      ray_remote_args: dict[str, Any] | None = None,
                      concurrency: int | None = None,
                      **options: Unpack[WriteOptions]) -> Manifest:
    """Writes a ray.data.Dataset as a dataset of safetensors; returns the manifest. Arguments and
    errors as for libsafetensors.dataset.write and Dataset.write_datasink. A failed write leaves
    the old dataset unchanged."""
    sink = SafetensorsDatasink(path, mode=mode, adopt=adopt, sync=sync, **options)
    dataset.write_datasink(sink, ray_remote_args=ray_remote_args, concurrency=concurrency)
    assert sink.manifest is not None
    return sink.manifest
