"""Writes datasets of Ray Data as safetensors datasets.

    from libsafetensors.ray import write_safetensors
    manifest = write_safetensors(ray.data.read_parquet(source), path, batch_size=1000)

This package must be installed on every node. See docs/ray.md.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ray.data import Datasink
from ray.data.block import BlockAccessor

from ._types import Path, Unpack, parse
from .dataset._engines import job_of, plain_batches
from .dataset._job import Job
from .dataset._types import Adopt, Manifest, WriteMode, WriteOptions
from .dataset._write import settled

__all__ = ["SafetensorsDatasink", "write_safetensors"]


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
