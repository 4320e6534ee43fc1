"""Open datasets: facts, rows and batches."""
from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterable, Iterator
from operator import index
from typing import Any

from .. import _core
from .._types import Closing, Path, Unpack
from ._arrow import ArrowRows, spans
from ._arrow_keys import KeyRows
from ._cache import CACHE_BYTES, Cache
from ._index import find_index
from ._layout import BatchLayout, KeyLayout, Layout, MissingKeys
from ._names import Names, names_of
from ._shards import Shards, shards_of_files, shards_of_manifest
from ._storage import MANIFEST, Place, storage_options
from ._subset import Subset, limits_of
from ._types import (ColumnFacts, DatasetMode, Engine, Manifest, Moment, ShardFacts,
                     StorageOptions)

__all__ = ["Dataset", "open", "version_of"]


def open(path: Path, *, version: int | None = None, asof: Moment | None = None,
         use_manifest: bool = True, columns: Names | None = None,
         keys: str | Iterable[str] | None = None, rows: range | tuple[int, int] | None = None,
         split: str | None = None, mode: DatasetMode | None = None,
         cache_dir: Path | None = None, cache_bytes: int = CACHE_BYTES,
         **storage: Unpack[StorageOptions]) -> Dataset:
    """Opens a dataset for reading: ours, or the Spark connector's.

    path: its folder or URL ("storage.…" options as for write); also a single .safetensors file,
    or a folder with an index.json. version: that of this number, which versions() lists, instead of
    the one in force; asof: the last one committed by then (seconds since 1970, a date or time, or
    one as text). use_manifest=False reads all .safetensors files of the
    folder. columns: only these (a list, where 0 means "0", or text separated by commas), of batch mode; KeyError for
    one that the dataset lacks. keys: the same, and in KV mode full names of tensors, where an index
    says which files to open; KeyError from open, or without an index and without a schema in the
    manifest from len and the first row. rows: only these, which are numbered from 0 again: a range,
    or the first and the one behind the last. split: the same as text, in rows or percent of all,
    rounded down: "0:90%" and "90%:" share no row. ValueError if there are fewer. mode: for files
    that do not state it. cache_dir: a local folder that keeps whole shards of a dataset at a URL,
    shared by all processes that name it; cache_bytes: the most bytes of shards in it (64 GiB).

    Reads the manifest and, for keys or replaced tensors, the index; shards are opened when rows of
    them are asked for, and closed by close(). FileNotFoundError (manifest_missing), also for a
    version that is not kept, and for asof if one that is not kept may have been in force then;
    SafetensorError (manifest_type). A missing shard, or one of another size, raises on first use
    (dataset_shard, dataset_changed)."""
    place = Place(path, storage_options(storage), cache=None if cache_dir is None else Cache(
        cache_dir, cache_bytes))
    if columns is not None and keys is not None:
        raise ValueError("expected columns or keys, found both")
    shards, manifest = _found(place, use_manifest, *version_of(version, asof))
    if columns is not None and _mode(shards, manifest or {}, mode) == "kv":
        raise ValueError("columns: expected a dataset in batch mode, found names in KV mode, of "
                         "which keys chooses")
    chosen = keys if columns is None else columns
    names = None if chosen is None else frozenset(names_of(chosen))
    try:
        made = Dataset(shards, manifest, names, mode)
    except MissingKeys as error:
        if columns is None:
            raise
        text = str(error.args[0]).replace("keys", "columns", 1)
        raise MissingKeys(text, error.missing) from None
    return made if rows is None and split is None else made._part(rows, split)


def version_of(version: int | None, asof: Moment | None) -> tuple[int, int]:
    """Two numbers, of which at most one is not 0."""
    if version is not None and asof is not None:
        raise ValueError("expected version or asof, found both")
    if version is not None:
        version = index(version)
        if not 0 < version < 1 << 64:
            raise ValueError("version: expected a number from 1 on, found %d" % version)
        return version, 0
    if asof is None:
        return 0, 0
    if isinstance(asof, str):
        asof = datetime.datetime.fromisoformat(asof)
    elif isinstance(asof, datetime.date) and not isinstance(asof, datetime.datetime):
        asof = datetime.datetime.combine(asof, datetime.time())
    if isinstance(asof, datetime.datetime):
        # A naive one is local time, also of a subclass (pandas.Timestamp) that takes it as UTC.
        seconds = datetime.datetime.timestamp(asof)
    else:
        seconds = asof
    if not 1 <= seconds < 1 << 63:
        raise ValueError("asof: expected a time after 1970, found %r" % (asof,))
    return 0, int(seconds)


def _found(place: Place, use_manifest: bool, version: int,
           asof: int) -> tuple[Shards, Manifest | None]:
    """Shards, and the manifest if one is used."""
    if version or asof:
        if not use_manifest:
            raise ValueError("use_manifest=False: expected no version, found one")
        return shards_of_manifest(place, _core.Dataset(place.core, version, asof))
    if place.text.endswith(".safetensors"):
        folder, name = os.path.split(place.text)
        inside = Place(folder or ".", place.options)
        if place.folder is None or os.path.isfile(place.folder):
            return shards_of_files(inside, [name]), None
    names = None if use_manifest else place.names()
    if names is None:
        try:
            dataset = _core.Dataset(place.core)
        except FileNotFoundError as error:
            if getattr(error, "code", None) != "manifest_missing":
                raise
            names = _of_model(place)
            if not names:
                raise
    if names is None:
        for text in dataset.warnings:
            warnings.warn("%s: %s" % (place.text, text), stacklevel=4)
        return shards_of_manifest(place, dataset)
    files = [name for name in names if name.endswith(".safetensors") and name[0] != "."]
    return shards_of_files(place, files), None


def _of_model(place: Place) -> list[str]:
    """Files of a model's index.json in the folder, else an empty list."""
    import json
    found = [name for name in place.names()
             if name.endswith(".index.json") and name != MANIFEST]
    found = [name for name in found if name.endswith(".safetensors.index.json")] or found
    if len(found) != 1:
        return []
    if place.folder is not None:
        with _core.open(place.name(found[0]), header_only=True) as model:
            return sorted(os.path.basename(path) for path in model.paths)
    source = place.source(found[0])
    index = json.loads(source.read_at(0, source.size))
    return sorted(set(index["weight_map"].values()))


class Dataset(Closing):
    """Rows of a dataset, in the order of its shards. A row is a dict of column -> array; in KV mode
    it also has its name, rows of a shard are sorted by name, and dataset[name] finds one.
    Rows replaced by later ones of the same name, and padding rows of a last batch, are
    invisible.

    Arrays of single rows are copies. Those of a batch that is contiguous in one file share its
    memory and are read-only. Threads may share a dataset; it can be pickled, and used after
    fork."""

    def __init__(self, shards: Shards, manifest: Manifest | None,
                 keys: frozenset[str] | None = None, mode: DatasetMode | None = None,
                 part: tuple[int, int] | None = None,
                 asked: tuple[Any, str | None] = (None, None)) -> None:
        self._shards = shards
        self._manifest = manifest
        self._keys = keys
        self._mode = mode
        self._limits = part
        self._asked = asked  # rows and split, of which part is made
        whole = _layout(shards, manifest or {}, keys, mode)
        self._layout: Layout | Subset = Subset(whole, *part) if part else whole

    def __reduce__(self) -> Any:
        return Dataset, (self._shards, self._manifest, self._keys, self._mode, self._limits,
                         self._asked)

    def _part(self, rows: Any, split: str | None) -> Dataset:
        return Dataset(self._shards, self._manifest, self._keys, self._mode,
                       limits_of(len(self), rows, split), (rows, split))

    def _at(self, version: int) -> Dataset:
        """The same of another version; 0: the one in force. FileNotFoundError."""
        place = self._shards.place
        made = Dataset(*shards_of_manifest(place, _core.Dataset(place.core, version)), self._keys,
                       self._mode)
        return made if self._limits is None else made._part(*self._asked)

    # ── Facts ──

    @property
    def path(self) -> str:
        """Folder or URL, as given to open."""
        return self._shards.place.text

    @property
    def manifest(self) -> Manifest | None:
        """The manifest as stored; None if none was read."""
        return self._manifest

    @property
    def version(self) -> int | None:
        """Number of the version: one more with each commit. None if the manifest has none."""
        return (self._manifest or {}).get("version")

    @property
    def mode(self) -> DatasetMode:
        """"batch": a tensor holds a column of many rows; "kv": each row has tensors of its own."""
        return self._layout.mode

    @property
    def schema(self) -> dict[str, ColumnFacts]:
        """Column -> {"dtype", "shape"} of one row; each None if rows differ."""
        return self._layout.schema()

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in KV mode with that of the names."""
        return list(self._layout.columns)

    @property
    def shards(self) -> list[ShardFacts]:
        """Facts of each file, in the order of rows."""
        return [one.copy() for one in self._shards.facts]

    def __len__(self) -> int:
        return self._layout.count()

    def __repr__(self) -> str:
        return "<libsafetensors.dataset.Dataset %s: %s, %d rows in %d shards>" % (
            self.path, self.mode, len(self), len(self._shards))

    # ── Rows ──

    def __getitem__(self, which: int | str | slice) -> dict[str, Any]:
        """The row of a number or (KV mode) of a name; a batch for a slice. IndexError, KeyError."""
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            return self.take(range(start, stop, step))
        if isinstance(which, str):
            return self._layout.named(which)
        number = index(which)
        count = len(self)
        if not -count <= number < count:
            raise IndexError("expected a row from 0 to %d, found %d" % (count - 1, number))
        return self._layout.row(number % count)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self._layout.row(number) for number in range(len(self)))

    def take(self, numbers: Any, framework: Engine = "numpy") -> dict[str, Any]:
        """The rows of these numbers as one batch, in that order: column -> array whose first
        dimension is the rows, or a list if their shapes differ."""
        return self._layout.take(numbers, framework)

    def batches(self, size: int | None = None, *, framework: Engine = "numpy",
                drop_last: bool = False) -> Iterator[dict[str, Any]]:
        """All rows in order, `size` at a time; None: one batch per file."""
        if size is None:
            bounds = self._layout.bounds()
        elif size < 1:
            raise ValueError("size: expected a number of rows from 1 on, found %d" % size)
        else:
            count = len(self)
            ends = range(0, count - count % size if drop_last else count, size)
            bounds = ((start, min(start + size, count)) for start in ends)
        return (self.take(range(start, stop), framework) for start, stop in bounds
                if stop > start)

    # ── Arrow ──

    def to_arrow(self, columns: Names | None = None) -> Any:
        """All rows as a pyarrow.Table, of the types that were written; files that are mapped are
        shared. In KV mode the name, and each tensor as a struct of data, shape and dtype, which
        write takes as it is. columns: names of the manifest's columns, or of fields of structs
        ("a.b"). KeyError; ValueError for a dtype that Arrow lacks."""
        import pyarrow as pa
        schema, batches = self._arrow(columns, None, None)
        return pa.Table.from_batches(list(batches), schema)

    def arrow_batches(self, columns: Names | None = None, *, rows: range | None = None,
                      size: int | None = None) -> Iterator[Any]:
        """The same as batches: of one file each, and of at most `size` rows. rows: only these, a
        range of step 1."""
        return self._arrow(columns, rows, size)[1]

    def scanner(self, columns: Any = None, *, rows: range | None = None, filter: Any = None,
                batch_size: int | None = None) -> Any:
        """A pyarrow.dataset.Scanner, which reads a file at a time and of it only what is used.
        columns: names, or name -> expression. rows: only these, a range of step 1. filter: an
        expression of pyarrow.compute. batch_size: most rows of a batch."""
        from ._scan import scanner
        return scanner(self, columns, rows, filter, batch_size)

    def to_pyarrow(self) -> Any:
        """A pyarrow.dataset.Dataset: duckdb and polars.scan_pyarrow_dataset read only the columns
        of it that a query uses."""
        from ._scan import ArrowDataset
        return ArrowDataset(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """What pyarrow.table, polars.DataFrame, duckdb and write read."""
        import pyarrow as pa
        schema, batches = self._arrow(None, None, None)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(
            requested_schema)

    def _copied(self) -> tuple[Any, Iterator[Any]]:
        """Schema and batches of all rows, of files whose digests are those of the manifest."""
        return self._arrow(None, None, None, True)

    def _arrow(self, columns: Names | None, rows: range | None, size: int | None,
               intact: bool = False) -> tuple[Any, Iterator[Any]]:
        layout = self._layout.whole if isinstance(self._layout, Subset) else self._layout
        if size is not None and size < 1:
            raise ValueError("size: expected a number of rows from 1 on, found %d" % size)
        chosen = None if columns is None else names_of(columns)
        made: ArrowRows | KeyRows
        if isinstance(layout, KeyLayout):
            made = KeyRows(layout)
            names = list(made.names) if chosen is None else chosen
        else:
            names = list(layout.stored) if chosen is None else chosen
            if chosen is not None:
                layout = BatchLayout(self._shards, self._manifest or {}, frozenset(names))
            made = layout.arrow()
        rows = range(len(self)) if rows is None else rows
        if rows.step != 1 or (rows and not 0 <= rows.start < rows.stop <= len(self)):
            raise ValueError("rows: expected a range of step 1 in %d rows, found %s"
                             % (len(self), rows))
        first = self._limits[0] if self._limits else 0
        shifted = range(first + rows.start, first + rows.stop)
        parts = spans(layout.bounds(), shifted, size)
        return made.schema(names), self._whole(made, names, parts) if intact else \
            made.batches(names, parts)

    def _whole(self, made: ArrowRows | KeyRows, names: list[str],
               parts: list[tuple[int, int, int]]) -> Iterator[Any]:
        for part in parts:
            self._shards.intact(part[0], names)
            yield from made.batches(names, [part])

    def tensor(self, key: str) -> _core.Tensor:
        """The Tensor of this name in the files. KeyError."""
        return self._layout.tensor(key)

    # ── Closing ──

    def close(self) -> None:
        """Closes the files; arrays keep their memory. Files are reopened on demand."""
        self._shards.close()


def _layout(shards: Shards, manifest: Manifest, keys: frozenset[str] | None,
            mode: DatasetMode | None) -> Layout:
    mode = _mode(shards, manifest, mode)
    if mode == "batch":
        return BatchLayout(shards, manifest, keys)
    if mode == "kv":
        return KeyLayout(shards, manifest, keys,
                         lambda: find_index(shards.place, manifest) if manifest else None)
    raise ValueError("mode: expected 'batch' or 'kv', found %r" % (mode,))


def _mode(shards: Shards, manifest: Manifest, mode: DatasetMode | None) -> DatasetMode:
    return manifest.get("mode") or mode or shards.guess(manifest)
