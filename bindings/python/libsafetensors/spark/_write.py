"""Rows of Spark into shards: a job that tasks write for and the driver commits."""
from __future__ import annotations

import contextlib
import json
import logging

from .. import _core
from ..dataset._index import write_index
from ..dataset._storage import place_of
from ..dataset._write import settled
from ._schema import absolute, listed, plain_batch, plain_schema, quoted, split_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Literal

    from ..dataset._storage import Place

__all__ = ["Job", "job_of", "write_safetensors"]

_log = logging.getLogger("libsafetensors.spark")

_BATCH_BYTES = 64 << 20  # of an Arrow batch that Spark sends
_SAMPLED = 8  # rows
_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Job:
    """A write: made on the driver, sent to the tasks, committed or aborted on the driver, maybe
    in another process. Making it checks everything that can be checked, and writes nothing."""

    def __init__(self, options: Mapping[str, Any], place: Place, schema: Any,
                 how: Literal["error", "append", "overwrite"], adopt: bool) -> None:
        self.options = dict(options)
        self.place = place
        self.schema = plain_schema(schema)
        self.how = how
        self.adopt = adopt
        self.before = self._published()
        commit = self._begun(None)
        self.job = commit.job
        commit.close()

    def _settled(self) -> _core.DatasetOptions:
        return settled(self.options)[0]

    def _begun(self, job: str | None) -> _core.Commit:
        checked = self._settled()
        checked.check(self.schema)
        return _core.Commit(checked, self.place.core, self.schema, how=self.how,
                            adopt_listing=self.adopt, job=job)

    def _published(self) -> Any:
        """The commit of the dataset that is there, or what else tells one from another."""
        if self.how != "overwrite":
            return None
        try:
            text = _core.Dataset(self.place.core).manifest
        except (FileNotFoundError, _core.SafetensorError):
            return None
        told = json.loads(text)
        return told.get("commit") or text

    # ── Tasks ──

    def write(self, batches: Iterable[Any], partition: int) -> str:
        """Rows of one task; its receipts, "" for no rows."""
        writer = None
        try:
            for batch in batches:
                batch = plain_batch(batch)
                if writer is None:
                    writer = _core.ShardWriter(self._settled(), self.place.core, self.job,
                                               partition, batch.schema)
                writer.append(batch)
                batch = None
            return writer.close() if writer is not None else ""
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise

    # ── The driver ──

    def commit(self, receipts: Iterable[str]) -> str:
        """Publishes; the manifest. Raises only while the old dataset is whole, and has removed
        what the tasks wrote then."""
        commit = self._begun(self.job)
        try:
            manifest, told = self._publish(commit, receipts)
        except BaseException:
            with contextlib.suppress(Exception):
                commit.abort()
            with contextlib.suppress(Exception):
                commit.close()
            raise
        with contextlib.suppress(Exception):
            for text in told:
                _log.warning("%s: %s", self.place.text, text)
            commit.close()
        return manifest

    def _publish(self, commit: _core.Commit, receipts: Iterable[str]) -> tuple[str, list[str]]:
        if self._published() != self.before:
            error = _core.SafetensorError("%s: another job wrote this dataset since this one "
                                          "began to overwrite it" % self.place.text)
            error.code = "dataset_changed"
            error.path = self.place.text
            raise error
        for text in receipts:
            if text:
                commit.add(text)
        commit.prepare()
        index = write_index(commit, self.place) if commit.indexed else None
        manifest = commit.manifest
        return manifest, commit.publish(index)

    def abort(self, receipts: Iterable[str | None]) -> None:
        """Removes what the tasks wrote, unless it is published. Never raises: what stays, no
        reader looks at, and gc removes it."""
        known = list(receipts)
        if self.place.folder is None and None not in known:
            return  # all tasks were done: commit has failed, and removed what may be removed
        try:
            commit = _core.Commit(self._settled(), self.place.core, how="overwrite",
                                  job=self.job)
            for text in known:
                if text:
                    commit.add(text)
            commit.abort()
            commit.close()
        except Exception as error:
            _log.warning("%s: files of the job that was aborted are left to gc: %s",
                         self.place.text, error)


def job_of(options: Mapping[str, str], path: str, schema: Any, overwrite: bool) -> Job:
    """The job of a write of the data source. options: with their small names."""
    own, storage = split_options(options, reading=False)
    adopt = own.pop("adopt", None)
    if adopt not in (None, "listing"):
        raise ValueError("adopt: expected listing, found %r" % adopt)
    checked, secret = settled({**own, **storage})
    place = place_of(path, secret)
    return Job(own, place, schema, "overwrite" if overwrite else "append", adopt is not None)


def partition_id() -> int:
    from pyspark import TaskContext
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


# ── Without the data source ──

def write_safetensors(df: Any, path: str, *,
                      mode: Literal["error", "append", "overwrite"] = "error",
                      adopt: Literal["listing"] | None = None,
                      **options: Any) -> dict[str, Any]:
    """Writes a DataFrame as a dataset with mapInArrow; returns the manifest.

    What df.write.format("safetensors") does, with three differences: only the columns that are
    written are computed and sent to Python; Arrow batches are kept at about 64 MiB (a few rows
    are looked at first, which computes them); and mode "error" is known. Works with Spark 3.5.
    options: those of the data source, values as Python has them; storage options as
    **{"storage.…": …}."""
    from pyspark.sql.pandas.types import to_arrow_schema
    given, storage = split_options(options, reading=False)
    checked, secret = settled({**given, **storage})
    if mode not in ("error", "append", "overwrite"):
        raise ValueError("mode: expected error, append or overwrite, found %r" % mode)
    if adopt not in (None, "listing"):
        raise ValueError("adopt: expected None or 'listing', found %r" % (adopt,))
    chosen = _selected(df, given, checked.mode)
    place = place_of(absolute(str(path)), secret)
    job = Job(given, place, to_arrow_schema(chosen.schema), mode, adopt is not None)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _receipts(job, batches)

    with _batch_limit(chosen):
        try:
            rows = chosen.mapInArrow(task, "receipts string").collect()
        except BaseException:
            job.abort([None])
            raise
    result: dict[str, Any] = json.loads(job.commit([row[0] for row in rows]))
    return result


def _receipts(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa
    text = job.write(batches, partition_id())
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
    """Fewer rows a batch while large ones are written."""
    conf = df.sparkSession.conf
    before = conf.get(_RECORDS, "10000")
    most = int(before)
    most = most if most > 0 else 1 << 31
    wanted = max(1, int(_BATCH_BYTES // max(1.0, _row_bytes(df))))
    if wanted >= most and most <= 1 << 20:
        yield
        return
    conf.set(_RECORDS, str(min(wanted, most)))
    try:
        yield
    finally:
        conf.set(_RECORDS, before)


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
