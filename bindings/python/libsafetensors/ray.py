"""Ray Data: its datasets written as safetensors datasets.

    from libsafetensors.ray import write_safetensors
    manifest = write_safetensors(ray.data.read_parquet(source), path, batch_size=1000)

This package must be installed on every node. docs/ray.md tells more.
"""
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ray.data import Datasink
from ray.data.block import BlockAccessor

from ._types import Path
from .dataset._engines import job_of, plain_batches
from .dataset._job import Job
from .dataset._write import settled

__all__ = ["SafetensorsDatasink", "write_safetensors"]


class SafetensorsDatasink(Datasink):
    """For Dataset.write_datasink. Tasks write, the driver publishes once all have written; a
    write that fails leaves what was there.

    Arguments as those of libsafetensors.dataset.write. manifest: of the write that is done."""

    def __init__(self, path: Path, *, mode: Literal["error", "append", "overwrite"] = "error",
                 adopt: Literal["listing"] | None = None, sync: bool = True,
                 **options: Any) -> None:
        self._how = path, mode, adopt, sync, options
        self._keyed = settled(options)[0].mode == "kv"
        self._job: Job | None = job_of(*self._how)  # tells at once what cannot be
        self.manifest: dict[str, Any] | None = None

    def on_write_start(self, schema: Any = None) -> None:
        """The dataset may have changed since."""
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
        self.manifest = json.loads(job.commit(write_result.write_returns))

    def on_write_failed(self, error: Exception) -> None:
        """A commit that has failed has removed what may be removed."""
        job, self._job = self._job, None
        if job is not None:
            job.abort([None])

    @property
    def min_rows_per_write(self) -> int | None:
        """Of full batches, since each task has a tail of its own."""
        given = {name.lower(): value for name, value in self._how[4].items()}
        return None if self._keyed else int(given["batch_size"])


def write_safetensors(dataset: Any, path: Path, *,
                      mode: Literal["error", "append", "overwrite"] = "error",
                      adopt: Literal["listing"] | None = None, sync: bool = True,
                      ray_remote_args: dict[str, Any] | None = None,
                      concurrency: int | None = None, **options: Any) -> dict[str, Any]:
    """Writes a ray.data.Dataset as a dataset of safetensors; returns the manifest. Arguments as
    those of libsafetensors.dataset.write and Dataset.write_datasink."""
    sink = SafetensorsDatasink(path, mode=mode, adopt=adopt, sync=sync, **options)
    dataset.write_datasink(sink, ray_remote_args=ray_remote_args, concurrency=concurrency)
    assert sink.manifest is not None
    return sink.manifest
