"""The data source that Spark calls, over _write and _read."""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ._session import source_name, with_hints, within_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._read import Piece, Reading
    from ._write import Job

__all__ = ["SafetensorsDataSource"]


class SafetensorsDataSource(DataSource):
    """df.write.format("safetensors") and spark.read.format("safetensors"). The Scala connector has
    the same short name; LIBSAFETENSORS_SPARK_NAME gives this one another."""

    inferred: str | None = None  # the layout of the schema that was asked for

    @classmethod
    def name(cls) -> str:
        return source_name()

    def _given(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items()}

    @with_hints()
    def schema(self) -> StructType:
        from ._read import Reading
        reading = Reading(self._given())
        schema = reading.schema()
        self.inferred = reading.layout  # Spark asks this object, or its copy, for the reader
        return schema

    @with_hints()
    def reader(self, schema: StructType) -> DataSourceReader:
        from ._read import Reading
        given = self._given()
        if self.inferred:
            given["layout"] = self.inferred
        reading = Reading(given)
        if not reading.settled:
            warnings.warn("layout: with .schema(...) and without this option, a row is a shard, as "
                          "with the Scala connector; layout=samples reads rows",
                          RuntimeWarning, stacklevel=2)
        if reading.pushdown and reading.layout == "tensors":
            return FilteringReader(reading, schema)
        return Reader(reading, schema)

    @with_hints()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from ._schema import arrow_schema, path_of
        from ._write import job_of
        given = {name.lower(): value for name, value in self._given().items()}
        path = path_of(given, writing=True)
        return Writer(job_of(given, path, arrow_schema(schema), overwrite))


# ── Writing ──

@dataclass
class Receipts(WriterCommitMessage):
    """What one task wrote."""

    text: str
    of_table: bool = False


class Writer(DataSourceArrowWriter):
    def __init__(self, job: Job) -> None:
        self.job = job

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from ._write import write_rows
        return Receipts(write_rows(self.job, iterator), within_command())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with with_hints():
            self.job.commit(_texts(one for one in messages if one is not None))
        if any(isinstance(one, Receipts) and one.of_table for one in messages):
            warnings.warn("the dataset is written, but a table of Spark's catalog (saveAsTable) "
                          "cannot be read: read its folder with spark.read.format(%r).load(path)"
                          % source_name(), RuntimeWarning, stacklevel=2)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.job.abort(_texts(messages))


def _texts(messages: Iterable[WriterCommitMessage | None]) -> list[Any]:
    return [one.text if isinstance(one, Receipts) else None for one in messages]


# ── Reading ──

class Part(InputPartition):
    def __init__(self, pieces: list[Piece]) -> None:
        super().__init__(None)
        self.pieces = pieces


class Reader(DataSourceReader):
    def __init__(self, reading: Reading, schema: StructType) -> None:
        self.reading = reading
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        return [Part(pieces) for pieces in self.reading.pieces(self.schema)]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        if isinstance(partition, Part):
            yield from self.reading.batches(self.schema, partition.pieces)


class FilteringReader(Reader):
    """For layout=tensors with pushdown=true: filters on tensor_key and file_name (= or IN) select
    what to open. Spark still applies them to the rows."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        for one in filters:
            values = _equals(one)
            if values is not None and one.attribute == ("tensor_key",):
                known = self.reading.keys
                self.reading.pushed = True
                self.reading.keys = [key for key in values if known is None or key in known]
            elif values is not None and one.attribute == ("file_name",):
                files = self.reading.files
                self.reading.files = set(values) if files is None else files & set(values)
            yield one


def _equals(one: Any) -> list[str] | None:
    kind = type(one).__name__
    if kind in ("EqualTo", "EqualNullSafe"):
        values = [one.value]
    elif kind == "In":
        values = list(one.value)
    else:
        return None
    return values if all(isinstance(value, str) for value in values) else None
