"""Datasets as rows of Spark: schema, partitions and rows."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.sql import types as T

from .. import dataset
from .._core import SafetensorError
from .._types import Unpack
from ..dataset._kinds import is_typed, kind_of
from ..dataset._layout import MissingKeys
from ..dataset._shards import Shards
from ..dataset._storage import Place, dataset_error
from ..dataset._types import ColumnFacts, Manifest, ReadOptions, StorageOptions
from ._rows import Piece, file_row, sample_rows, tensor_rows
from ._schema import (
    ROW_FIELDS,
    arrow_schema,
    binary_field,
    checked_field,
    element_type,
    parse_names,
    path_of,
    split_options,
    tensor_type,
    parse_bool,
)
from ._types import spark_type
from ._session import (
    activate,
    check_workers,
    speed_up_tasks,
    with_hints,
    path_on_driver,
    source_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..dataset import Dataset
    Fact = tuple[str | None, list[int] | None]

__all__ = ["Piece", "Reading", "count", "read"]

LAYOUTS = ("files", "samples", "tensors")
VALUES = ("tensor", "array", "binary")
_MAX_KEYS = 2000  # columns of layout=files
_HEADER = 1 << 16  # least cost of a shard in bytes
_MAX_PIECES = 1 << 20


class Reading:
    """Checked options of a read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        own, storage = split_options(options, reading=True)
        self.path = path_of({name.lower(): value for name, value in options.items()})
        self.storage = storage
        self.layout = _choice("layout", own.get("layout", "files"), LAYOUTS)
        # The Scala connector's programs give one of these, and have a row for each shard.
        self.settled = "layout" in own or "inferschema" in own
        self.columns = parse_names("columns", own.get("columns"))
        self.keys = parse_names("keys", own.get("keys"))
        self.version = _version(own.get("versionasof"))
        self.use_manifest = parse_bool("use_manifest", own.get("use_manifest", "true"))
        self.data = parse_bool("data", own.get("data", "true"))
        self.infer = parse_bool("inferSchema", own.get("inferschema", "true"))
        self.pushdown = parse_bool("pushdown", own.get("pushdown", "false"))
        self.values = _choice("as", own.get("as", "tensor"), VALUES)
        self.partition_bytes = _megabytes("partition_mb", own.get("partition_mb", "64"))
        self.files: set[str] | None = None  # from a pushed filter
        self.pushed = False  # keys, too: there may be no such key
        if self.values != "tensor" and not self.data:
            raise ValueError("data=false: expected as=tensor, found as=%s" % self.values)

    def opened(self, keys: Iterable[str] | None = None) -> Dataset:
        storage: dict[str, Any] = dict(self.storage)
        return dataset.open(self.path, version=self.version, use_manifest=self.use_manifest,
                            keys=keys, **storage)

    def opened_with(self, keys: Iterable[str]) -> Dataset:
        """With those of the keys that the dataset has."""
        try:
            return self.opened(keys)
        except MissingKeys as error:
            return self.opened([key for key in keys if key not in error.missing])

    # ── Schema ──

    def schema(self) -> T.StructType:
        """Schema of the whole dataset, never of its first file only."""
        speed_up_tasks()
        if not self.infer:
            raise ValueError("inferSchema=false: expected a schema given by .schema(...), found "
                             "none; without the option it is that of the dataset")
        if self.layout == "tensors":
            return T.StructType([ROW_FIELDS[name] for name in self._chosen(
                [name for name in ROW_FIELDS if self.data or name != "data"])])
        with self.opened() as opened:
            self._settle(opened)
            facts = self._samples(opened) if self.layout == "samples" else self._files(opened)
            stated = _stored(opened) if self.layout == "samples" else {}
            named = _name_col(opened) if self.layout == "samples" else None
        return T.StructType([T.StructField(name, T.StringType(), False) if name == named else
                             self._varying_field(name, stated[name]) if name in stated else
                             self._field(name, *fact) for name, fact in facts.items()])

    def _settle(self, opened: Dataset) -> None:
        """The layout of a schema that is inferred without the option."""
        ours = opened.manifest is not None and "generator" in opened.manifest
        if not self.settled and ours and (opened.mode == "batch" or self.keys is None):
            self.layout = "samples"
        self.settled = True

    def _varying_field(self, name: str, facts: ColumnFacts) -> T.StructField:
        encoding = facts.get("encoding")
        if is_typed(facts):
            return T.StructField(name, spark_type(name, kind_of(facts)), True)
        if encoding == "list" and self.values != "array":
            raise ValueError("%s: its rows vary in length; read it with as=array, or with "
                             "layout=files or tensors" % name)
        if encoding in ("utf8", "binary"):
            kind = T.StringType() if encoding == "utf8" else T.BinaryType()
            return T.StructField(name, kind, True)
        field = self._field(name, facts["dtype"], facts["shape"])
        field.nullable = bool(encoding) or facts.get("nullable", False)
        return field

    def _field(self, name: str, dtype: str | None, shape: list[int] | None) -> T.StructField:
        nullable = self.layout == "files"
        if self.values == "tensor":
            return T.StructField(name, tensor_type(self.data), nullable)
        if self.values == "binary":
            return binary_field(name, dtype, None if nullable else shape, nullable)
        element = element_type(name, dtype)
        return T.StructField(name, element if shape == [] else T.ArrayType(element, False),
                             nullable)

    def _chosen(self, names: list[str], hint: str = "") -> list[str]:
        if self.columns is None:
            return names
        return _known("columns", self.columns, names, hint)

    def _samples(self, opened: Dataset) -> dict[str, Fact]:
        if opened.mode == "kv":
            self._no_keys()
            facts = _named(opened)
            return {name: facts[name] for name in self._chosen(
                list(facts), "; with layout=files names of tensors are columns")}
        there = _stored(opened)
        names = self._chosen(list(there))
        if self.keys is not None:
            names = [name for name in names if name in _known("keys", self.keys, list(there))]
        return {name: (there[name]["dtype"], there[name]["shape"]) for name in names}

    def _no_keys(self) -> None:
        if self.keys is not None:
            raise ValueError("keys: expected columns with layout=samples of a dataset in KV mode, "
                             "found names of tensors; layout=tensors takes them")

    def _files(self, opened: Dataset) -> dict[str, Fact]:
        wanted = self.columns or self.keys
        if wanted and opened.mode == "kv" and "schema" not in (opened.manifest or {}):
            with self.opened_with(wanted) as fewer:  # an index says which shards they are in
                there = _schema_of(fewer, wanted)
        else:
            there = _schema_of(opened, wanted)
        names = sorted(there) if wanted is None else _known(
            "columns" if self.columns else "keys", wanted, list(there))
        if self.columns and self.keys:
            names = [name for name in names if name in self.keys]
        if len(names) > _MAX_KEYS:
            raise _too_many(len(names))
        return {name: there[name] for name in names}

    # ── Parts ──

    @with_hints()
    def pieces(self, schema: T.StructType) -> list[list[Piece]]:
        """The shards, or rows of them, that each task reads."""
        speed_up_tasks()
        for field in schema:
            checked_field(field, self.layout)
        # Keys that determine which shards are needed.
        wanted: list[str] | None = self.keys if self.layout == "tensors" else schema.names or None
        if self.layout == "samples":
            with self.opened() as opened:
                if opened.mode == "kv":
                    self._no_keys()
                    _known("schema", schema.names, list(_named(opened)))
                    return _packed(self._weighed(opened, _reads_data(schema)),
                                   self.partition_bytes)
        try:
            opened = self.opened_with(wanted) if self.pushed and wanted else self.opened(wanted)
        except MissingKeys as error:  # of columns, in batch mode
            asked = "keys" if self.layout == "tensors" else "schema"
            text = str(error.args[0]).replace("keys:", asked + ":", 1)
            parts = self.layout == "files" and wanted and all(
                name.endswith((".offsets", ".valid")) for name in error.missing)
            if not parts:
                raise ValueError(text) from None
            opened = self.opened_with(wanted or [])
            if opened.mode != "batch":
                raise ValueError(text) from None
        with opened:
            if self.layout != "samples":
                self._check_names(opened, schema)
            return _packed(self._weighed(opened, _reads_data(schema)), self.partition_bytes)

    def _check_names(self, opened: Dataset, schema: T.StructType) -> None:
        stated = _stated(opened)
        if self.layout == "files" and stated is not None and opened.manifest is not None and \
                "generator" in opened.manifest:
            _known("schema", schema.names, list(stated))

    def _weighed(self, opened: Dataset, data: bool) -> Iterator[tuple[int, Piece]]:
        """(bytes, piece); large shards are split if rows can be read by themselves."""
        shards = opened._shards
        layout: Any = opened._layout
        pieces = 0
        told = {name: one for name, one in _stored(opened).items()
                if one.get("encoding") or one.get("nullable") or is_typed(one)}
        for i in _used(opened):
            facts = shards.facts[i]
            if self.files is not None and self.files.isdisjoint(map(shards.name, shards.files(i))):
                continue
            size = sum(shards.size(at) or shards.file(at).nbytes for at in shards.files(i))
            size = size if data else min(size, _HEADER)
            hidden = frozenset(layout._hidden_in(i)) if layout.mode == "kv" else frozenset()
            if self.layout != "samples":
                if layout.mode == "batch" and facts["deleted"]:
                    raise _deleted(facts["name"], self.layout)
                yield size + _HEADER, Piece(facts, shards.version, 0, 0, hidden, {},
                                            places=shards.places.get(i))
                continue
            named = _naming(opened) if layout.mode == "kv" else None
            rows = layout.begins()[i + 1] - layout.begins()[i] if named else shards.rows(i)
            cuts = min(max(1, -(-size // self.partition_bytes)), max(rows, 1))
            pieces += cuts
            if pieces > _MAX_PIECES:
                raise ValueError("%s: expected at most %d parts of partition_mb MiB, found more by "
                                 "the bytes in the manifest" % (facts["name"], _MAX_PIECES))
            for cut in range(cuts):
                start, stop = rows * cut // cuts, rows * (cut + 1) // cuts
                if stop > start:
                    piece = Piece(facts, shards.version, start, stop, hidden, told,
                                  shards.masks.get(i), named, shards.places.get(i))
                    yield size // cuts + _HEADER, piece

    # ── Rows ──

    def batches(self, schema: T.StructType, pieces: list[Piece]) -> Iterator[Any]:
        """Arrow batches with the columns of the schema."""
        import pyarrow as pa
        kinds = arrow_schema(schema)  # Spark 4.2 compares nullability
        place = Place(self.path, self.storage)
        if place.text.endswith(".safetensors") and (
                place.folder is None or os.path.isfile(place.folder)):
            place = Place(os.path.dirname(place.text) or ".", self.storage)
        shards = Shards(place, [piece.facts for piece in pieces], self.use_manifest and all(
            piece.facts["bytes"] for piece in pieces), pieces[0].version,
            {i: piece.mask for i, piece in enumerate(pieces) if piece.mask is not None},
            {i: piece.places for i, piece in enumerate(pieces) if piece.places})
        make: dict[str, Any] = {"files": file_row, "samples": sample_rows,
                                "tensors": partial(tensor_rows, keys=self.keys)}
        with with_hints(), _planned(place.text):
            for i, piece in enumerate(pieces):
                for columns, rows in make[self.layout](shards, i, piece, kinds):
                    yield pa.RecordBatch.from_arrays(columns, schema=kinds) if columns else \
                        pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        shards.close()
        speed_up_tasks()


# ── Helpers ──

@contextlib.contextmanager
def _planned(path: str) -> Iterator[None]:
    """Spark plans a DataFrame once, and its tasks read the files of that time: if they are gone,
    the error says so."""
    try:
        yield
    except (SafetensorError, FileNotFoundError) as error:
        if isinstance(error, SafetensorError) and error.code != "dataset_changed":
            raise
        what = str(error)
        if what.startswith(path + ": "):
            what = what[len(path) + 2:]
        unseen = ", or this process does not see its folder" \
            if isinstance(error, FileNotFoundError) else ""
        raise dataset_error("dataset_changed", path,
                            "the dataset has changed since this DataFrame or view was planned%s; "
                            "read it again with spark.read (%s)" % (unseen, what)) from None


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value.lower() not in allowed:
        others = [("layout", LAYOUTS), ("as", VALUES)]
        meant = ["; did you mean %s=%s?" % (other, value.lower()) for other, values in others
                 if value.lower() in values]
        raise ValueError("%s: expected one of %s, found %r%s"
                         % (name, ", ".join(allowed), value, "".join(meant)))
    return value.lower()


def _version(value: str | None) -> int | None:
    if value is not None and not (value.strip().isdigit() and int(value)):
        raise ValueError("versionAsOf: expected a number from 1 on, found %r" % value)
    return int(value) if value is not None else None


def _megabytes(name: str, value: str) -> int:
    if not value.strip().isdigit() or not 1 <= int(value) <= 65536:
        raise ValueError("%s: expected a number from 1 to 65536, found %r" % (name, value))
    return int(value) << 20


def _known(what: str, names: list[str], there: list[str], hint: str = "") -> list[str]:
    missing = [name for name in names if name not in set(there)]
    if missing:
        shown = ", ".join(there[:20]) + (", …" if len(there) > 20 else "")
        raise ValueError("%s: expected some of %s, found %s%s" % (what, shown, missing[0], hint))
    return names


def _too_many(found: int | str) -> ValueError:
    return ValueError("layout=files: expected at most %d tensors, each a column, found %s; read "
                      "with layout=tensors, or name some with keys" % (_MAX_KEYS, found))


def _deleted(name: str, layout: str) -> ValueError:
    return ValueError("layout=%s: expected tensors without deleted rows, found some in %s; read rows "
                      "with layout=samples, or remove them with `safetensors dataset compact`"
                      % (layout, name))


def _name_col(opened: Dataset) -> str | None:
    """The column of the names, in KV mode."""
    layout: Any = opened._layout
    return layout.name_col if layout.mode == "kv" else None


def _named(opened: Dataset) -> dict[str, Fact]:
    """Columns of a KV dataset with that of the names, which is no tensor."""
    found: dict[str, Fact] = {_name_col(opened) or "": (None, None)}
    for name, one in opened.schema.items():
        if (name or "data") in found:
            raise ValueError("layout=samples: expected other columns than that of the names, found "
                             "%s twice; read it with layout=tensors" % (name or "data"))
        found[name or "data"] = one["dtype"], one["shape"]
    return found


def _naming(opened: Dataset) -> Manifest:
    """What a task needs of the manifest of a KV dataset."""
    manifest = opened.manifest or {}
    return {"kv_separator": manifest.get("kv_separator"), "name_col": _name_col(opened),
            "columns": opened.schema}


def _stored(opened: Dataset) -> dict[str, ColumnFacts]:
    """Columns as in the manifest: structs are one."""
    layout: Any = opened._layout
    stored: dict[str, ColumnFacts] = layout.stored if layout.mode == "batch" else {}
    return stored


def _used(opened: Dataset) -> Iterable[int]:
    """Numbers of the shards that may hold the keys it was opened with."""
    layout: Any = opened._layout
    numbers: Iterable[int] = layout._used if layout.mode == "kv" else range(len(opened._shards))
    return numbers


def _stated(opened: Dataset) -> Any:
    """The manifest's schema, unless batches have tensors that it does not list."""
    manifest = opened.manifest or {}
    more = manifest.get("mode") == "batch" and any(
        one.get("encoding") or one.get("nullable") for one in manifest["columns"].values())
    return None if more else manifest.get("schema")


def _schema_of(opened: Dataset, wanted: list[str] | None) -> dict[str, Fact]:
    """Key -> dtype (None if it varies), and a shape, which may be that of one tensor only."""
    manifest = opened.manifest or {}
    stated = _stated(opened)
    if stated is not None:
        return {key: (one["dtype"], one["shape"]) for key, one in stated.items()}
    if manifest and wanted is None and "generator" in manifest and \
            not {"schema", "segments"} & manifest.keys():
        raise _too_many("over 10,000")
    found: dict[str, Fact] = {}
    only = None if wanted is None else set(wanted)
    for i in _used(opened):
        for file in map(opened._shards.file, opened._shards.files(i)):
            for key in file.keys() if only is None else only.intersection(file.keys()):
                tensor = file[key]
                same = found.get(key, (tensor.dtype,))[0] == tensor.dtype
                found[key] = (tensor.dtype if same else None, list(tensor.shape))
        if only is None and len(found) > _MAX_KEYS:
            raise _too_many("%d and more" % len(found))
    return found


def _reads_data(schema: T.StructType) -> bool:
    return any(field.name == "data" if not isinstance(field.dataType, T.StructType)
               and field.name in ROW_FIELDS else "data" in field.dataType.names
               if isinstance(field.dataType, T.StructType) else True for field in schema)


def _packed(weighed: Iterable[tuple[int, Piece]], most: int) -> list[list[Piece]]:
    tasks: list[list[Piece]] = []
    held = most + 1
    for size, piece in weighed:
        if held + size > most:
            tasks.append([])
            held = 0
        tasks[-1].append(piece)
        held += size
    return tasks


# ── Functions ──

def count(path: str, *, use_manifest: bool = True, **storage: Unpack[StorageOptions]) -> int:
    """Number of rows of a dataset, from its manifest; reads no shard."""
    return len(dataset.open(path_on_driver(str(path)), use_manifest=use_manifest, **storage))


def read(spark: Any, path: str, *, columns: str | Iterable[str] | None = None,
         schema: Any = None, **options: Unpack[ReadOptions]) -> Any:
    """A DataFrame of a dataset. columns: only these are read; a list, or text separated by commas
    as in the option of this name. schema: an argument of .schema();
    None infers it. options: those of the data source."""
    import json
    given: dict[str, Any] = {}
    if columns is not None:
        given["columns"] = columns if isinstance(columns, str) else json.dumps(list(columns))
    more: Mapping[str, Any] = options
    for name, value in more.items():
        plain = isinstance(value, (str, bool, int))
        given[name] = value if plain else json.dumps(list(value))
    path = path_on_driver(str(path), spark)
    check_workers(spark)
    if not hasattr(spark, "dataSource"):
        return _read_by_tasks(spark, {name: _text(value) for name, value in given.items()},
                              path, schema)

    activate(spark)
    reader = spark.read.format(source_name()).options(**given)
    return (reader if schema is None else reader.schema(schema)).load(path)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_by_tasks(spark: Any, options: dict[str, str], path: str, schema: Any) -> Any:
    """The same before Spark 4.0, which has no Python data sources."""
    reading = Reading({**options, "path": path})
    if isinstance(schema, str):
        schema = spark.createDataFrame([], schema).schema
    chosen = reading.schema() if schema is None else schema
    tasks = reading.pieces(chosen)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from reading.batches(chosen, tasks[number])

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(task, chosen)
