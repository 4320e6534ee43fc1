"""Daft: its DataFrames written as safetensors datasets.

    from libsafetensors.daft import write_safetensors
    manifest = write_safetensors(daft.read_parquet(source), path, batch_size=1000)

With Daft's Ray runner this package must be installed on every node. docs/daft.md tells more.
"""
from __future__ import annotations

import itertools
import json
import random

from daft import DataType
from daft.io import DataSink
from daft.io.sink import WriteResult
from daft.recordbatch import MicroPartition
from daft.schema import Schema

from .dataset._engines import job_of, plain_batches
from .dataset._write import settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Literal

    from ._types import Path
    from .dataset._job import Job

__all__ = ["SafetensorsSink", "write_safetensors"]

_RESULT = {"path": DataType.string(), "version": DataType.int64(),
           "total_samples": DataType.int64(), "total_bytes": DataType.int64(),
           "shards": DataType.int64()}


class SafetensorsSink(DataSink):
    """For DataFrame.write_sink, which then returns one row: path, version, total_samples,
    total_bytes and the number of shards.

    Daft tells a sink nothing of a failure: what was written then, nobody reads, and gc removes
    it, or abort(). Arguments as those of libsafetensors.dataset.write. manifest: of the write
    that is done."""

    def __init__(self, path: Path, *, mode: Literal["error", "append", "overwrite"] = "error",
                 adopt: Literal["listing"] | None = None, sync: bool = True,
                 **options: Any) -> None:
        self._how = path, mode, adopt, sync, options
        self._keyed = settled(options)[0].mode == "kv"
        self._job: Job | None = job_of(*self._how)  # tells at once what cannot be
        self._numbers: Iterator[int] | None = None
        self.manifest: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_numbers": None}

    def name(self) -> str:
        return "safetensors"

    def schema(self) -> Schema:
        return Schema._from_field_name_and_types(list(_RESULT.items()))

    def start(self) -> None:
        self._job = job_of(*self._how)
        self._numbers = itertools.count()

    def _number(self) -> int:
        """Of a part of the rows. Daft gives none; processes that know nothing of one another
        draw theirs."""
        return random.SystemRandom().getrandbits(48) if self._numbers is None \
            else next(self._numbers)

    def write(self, micropartitions: Iterable[Any]) -> Iterator[WriteResult]:
        assert self._job is not None
        told = {"rows": 0, "bytes": 0}
        text = self._job.write(self._batches(micropartitions, told), self._number())
        yield WriteResult(text, told["bytes"], told["rows"])

    def _batches(self, micropartitions: Iterable[Any], told: dict[str, int]) -> Iterator[Any]:
        for part in micropartitions:
            for batch in plain_batches(part.to_arrow(), self._keyed):
                told["rows"] += batch.num_rows
                told["bytes"] += batch.nbytes
                yield batch

    def finalize(self, write_results: list[WriteResult]) -> MicroPartition:
        assert self._job is not None
        job, self._job = self._job, None
        manifest = json.loads(job.commit([one.result for one in write_results]))
        self.manifest = manifest
        row = {**manifest, "path": job.place.text, "shards": len(manifest["shards"])}
        return MicroPartition.from_pydict({name: [row[name]] for name in _RESULT})

    def abort(self) -> None:
        """Removes what a write has left that failed. Never raises."""
        job, self._job = self._job, None
        if job is not None:
            job.abort([None])


def write_safetensors(df: Any, path: Path, *,
                      mode: Literal["error", "append", "overwrite"] = "error",
                      adopt: Literal["listing"] | None = None, sync: bool = True,
                      **options: Any) -> dict[str, Any]:
    """Writes a daft.DataFrame as a dataset of safetensors; returns the manifest. Arguments as
    those of libsafetensors.dataset.write."""
    sink = SafetensorsSink(path, mode=mode, adopt=adopt, sync=sync, **options)
    try:
        df.write_sink(sink)
    except BaseException:
        sink.abort()
        raise
    assert sink.manifest is not None
    return sink.manifest
