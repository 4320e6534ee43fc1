"""Writes rows of Spark: tasks write shards, the driver commits."""
from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._types import Unpack, parse
from ..dataset._job import Job
from ..dataset._storage import Place
from ..dataset._types import Adopt, DatasetMode, Manifest, WriteMode, WriteOptions
from ..dataset._write import check_mode, settled
from ._schema import (
    arrow_schema,
    parse_bool,
    parse_names,
    plain_batch,
    plain_schema,
    quoted,
    split_options,
)
from ._session import check_workers, speed_up_tasks, with_hints, path_on_driver

__all__ = ["Job", "job_of", "write_rows", "write_safetensors"]

_BATCH_BYTES = 64 << 20  # most bytes of an Arrow batch from Spark
_SAMPLED = 8  # rows
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def job_of(options: Mapping[str, str], path: str, schema: Any, overwrite: bool) -> Job:
    """The job of a write through the data source. options: with lower-case names."""
    own, storage = split_options(options, reading=False)
    adopt = own.pop("adopt", None)
    check_mode("append", adopt)
    sync = parse_bool("sync", own.pop("sync", "true"))
    checked, secret = settled({**own, **storage})
    place = Place(path, secret, sync)
    return Job(own, place, plain_schema(schema), "overwrite" if overwrite else "append",
               adopt is not None)


@with_hints()
def write_rows(job: Job, batches: Iterable[Any]) -> str:
    """Writes the rows of this task; returns receipts."""
    from pyspark import TaskContext
    context = TaskContext.get()
    text = job.write(map(plain_batch, batches), context.partitionId() if context else 0)
    speed_up_tasks()
    return text


# ── Without the data source ──

def write_safetensors(df: Any, path: str, *, mode: WriteMode = "error", adopt: Adopt = None,
                      sync: bool = True, **options: Unpack[WriteOptions]) -> Manifest:
    """Writes a DataFrame as a dataset with mapInArrow; returns the manifest.

    The same as df.write.format("safetensors") except that only the columns to be written are
    computed and sent to Python, Arrow batches are limited to about 64 MiB (before Spark 4.0 by
    the size of a few rows, which are computed for that), and mode "error" is supported. Works
    with Spark 3.5. sync=False does not wait for the disk. options: those of the data source, as
    Python values; storage options as **{"storage.…": …}. Errors as for
    libsafetensors.dataset.write; a failed write leaves the old dataset unchanged."""
    check_workers(df.sparkSession)
    given, storage = split_options(options, reading=False)
    checked, secret = settled({**given, **storage})
    check_mode(mode, adopt)
    chosen = _selected(df, given, checked.mode)
    # mapInArrow parses column names as expressions, so a dot in a name would fail.
    renamed = chosen.toDF(*("c%d" % i for i in range(len(chosen.columns))))
    place = Place(path_on_driver(str(path), df.sparkSession), secret, sync)
    schema = arrow_schema(chosen.schema)
    job = Job(given, place, plain_schema(schema), mode, adopt is not None)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _receipts(job, (batch.rename_columns(schema.names) for batch in batches))

    with _batch_limit(renamed):
        try:
            rows = renamed.mapInArrow(task, "receipts string").collect()
        except BaseException:
            job.abort([None])
            raise
    manifest: Manifest = parse(job.commit([row[0] for row in rows]))
    return manifest


def _receipts(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa
    text = write_rows(job, batches)
    if text:
        yield pa.RecordBatch.from_arrays([pa.array([text])], ["receipts"])


def _selected(df: Any, options: Mapping[str, Any], mode: DatasetMode) -> Any:
    """Only the columns to be written. Missing names are reported by the check."""
    given = options.get("columns")
    wanted = parse_names("columns", given) if isinstance(given, str) else given
    if not wanted:
        return df
    key = [options["name_col"]] if mode == "kv" else []
    names = list(dict.fromkeys([*key, *wanted]))
    return df.select(*quoted(names)) if set(names) <= set(df.columns) else df


@contextlib.contextmanager
def _batch_limit(df: Any) -> Iterator[None]:
    """Limits Arrow batches to about 64 MiB within the block."""
    conf = df.sparkSession.conf
    name, value = _limit_of_bytes(conf) or _limit_of_records(df, conf)
    if value is None:
        yield
        return
    before = conf.get(name, None)
    conf.set(name, value)
    try:
        yield
    finally:
        conf.unset(name) if before is None else conf.set(name, before)


def _limit_of_bytes(conf: Any) -> tuple[str, str | None] | None:
    """The setting of Spark 4 and its new value; None before 4.0."""
    try:
        now = conf.get(_BYTES)
    except Exception:
        return None
    return _BYTES, None if 0 < _byte_count(now) <= _BATCH_BYTES else str(_BATCH_BYTES)


def _byte_count(text: str) -> int:
    """Parses a size of Spark, 67108864b or 64m; 0 if it is not understood."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgtp]?)b?\s*", text.lower())
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ") if match else 0


def _limit_of_records(df: Any, conf: Any) -> tuple[str, str | None]:
    """A limit of rows from the size of a few, which are computed for that."""
    most = int(conf.get(_RECORDS, "10000"))
    most = most if most > 0 else 1 << 31
    wanted = max(1, int(_BATCH_BYTES // max(1.0, _row_bytes(df))))
    return _RECORDS, None if wanted >= most and most <= 1 << 20 else str(min(wanted, most))


def _row_bytes(df: Any) -> float:
    def measured(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([batch.num_rows]), pa.array([batch.nbytes])], ["rows", "bytes"])

    found = df.limit(_SAMPLED).mapInArrow(measured, "rows long, bytes long").collect()
    rows = sum(row[0] for row in found)
    return sum(row[1] for row in found) / rows if rows else 0.0
