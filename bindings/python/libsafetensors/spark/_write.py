"""Rows of Spark into shards: a job that tasks write for and the driver commits."""
from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from ..dataset._job import Job
from ..dataset._storage import place_of
from ..dataset._write import settled
from ._schema import listed, plain_batch, plain_schema, quoted, split_options, truth
from ._session import check_workers, ease_tasks, hints_told, path_on_driver

__all__ = ["Job", "job_of", "write_rows", "write_safetensors"]

_BATCH_BYTES = 64 << 20  # of an Arrow batch that Spark sends
_SAMPLED = 8  # rows
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def job_of(options: Mapping[str, str], path: str, schema: Any, overwrite: bool) -> Job:
    """The job of a write of the data source. options: with their small names."""
    own, storage = split_options(options, reading=False)
    adopt = own.pop("adopt", None)
    if adopt not in (None, "listing"):
        raise ValueError("adopt: expected listing, found %r" % adopt)
    sync = truth("sync", own.pop("sync", "true"))
    checked, secret = settled({**own, **storage})
    place = place_of(path, secret, sync)
    return Job(own, place, plain_schema(schema), "overwrite" if overwrite else "append",
               adopt is not None)


@hints_told()
def write_rows(job: Job, batches: Iterable[Any]) -> str:
    """Receipts of the rows of this task."""
    from pyspark import TaskContext
    context = TaskContext.get()
    text = job.write(map(plain_batch, batches), context.partitionId() if context else 0)
    ease_tasks()
    return text


# ── Without the data source ──

def write_safetensors(df: Any, path: str, *,
                      mode: Literal["error", "append", "overwrite"] = "error",
                      adopt: Literal["listing"] | None = None, sync: bool = True,
                      **options: Any) -> dict[str, Any]:
    """Writes a DataFrame as a dataset with mapInArrow; returns the manifest.

    What df.write.format("safetensors") does, with three differences: only the columns that are
    written are computed and sent to Python; Arrow batches are kept at about 64 MiB (before Spark
    4.0 by the size of a few rows, which are computed for that); and mode "error" is known. Works
    with Spark 3.5.
    sync=False: does not wait for the disk.
    options: those of the data source, values as Python has them; storage options as
    **{"storage.…": …}."""
    from pyspark.sql.pandas.types import to_arrow_schema
    check_workers(df.sparkSession)
    given, storage = split_options(options, reading=False)
    checked, secret = settled({**given, **storage})
    if mode not in ("error", "append", "overwrite"):
        raise ValueError("mode: expected error, append or overwrite, found %r" % mode)
    if adopt not in (None, "listing"):
        raise ValueError("adopt: expected None or 'listing', found %r" % (adopt,))
    chosen = _selected(df, given, checked.mode)
    # mapInArrow looks for columns by names that it takes for expressions: a dot would not do.
    renamed = chosen.toDF(*("c%d" % i for i in range(len(chosen.columns))))
    place = place_of(path_on_driver(str(path), df.sparkSession), secret, sync)
    schema = to_arrow_schema(chosen.schema)
    job = Job(given, place, plain_schema(schema), mode, adopt is not None)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _receipts(job, (batch.rename_columns(schema.names) for batch in batches))

    with _batch_limit(renamed):
        try:
            rows = renamed.mapInArrow(task, "receipts string").collect()
        except BaseException:
            job.abort([None])
            raise
    result: dict[str, Any] = json.loads(job.commit([row[0] for row in rows]))
    return result


def _receipts(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa
    text = write_rows(job, batches)
    if text:
        yield pa.RecordBatch.from_arrays([pa.array([text])], ["receipts"])


def _selected(df: Any, options: Mapping[str, Any], mode: str) -> Any:
    """The columns that are written. Of names that are not there the check tells."""
    given = options.get("columns")
    wanted = listed("columns", given) if isinstance(given, str) else given
    if not wanted:
        return df
    key = [options["name_col"]] if mode == "kv" else []
    names = list(dict.fromkeys([*key, *wanted]))
    return df.select(*quoted(names)) if set(names) <= set(df.columns) else df


@contextlib.contextmanager
def _batch_limit(df: Any) -> Iterator[None]:
    """Arrow batches of about 64 MiB at most, while this is entered."""
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
    """The setting that Spark 4 has, and what it must become; None before 4.0."""
    try:
        now = conf.get(_BYTES)
    except Exception:
        return None
    return _BYTES, None if 0 < _byte_count(now) <= _BATCH_BYTES else str(_BATCH_BYTES)


def _byte_count(text: str) -> int:
    """As Spark writes them, 67108864b or 64m; 0 of what is not understood."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgtp]?)b?\s*", text.lower())
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ") if match else 0


def _limit_of_records(df: Any, conf: Any) -> tuple[str, str | None]:
    """By the size of some rows, which are computed for that."""
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
