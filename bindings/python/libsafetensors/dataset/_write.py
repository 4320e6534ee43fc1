"""Writes tables as datasets, from one process."""
from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from .. import _core
from .._files import header_name
from .._progress import watch
from .._types import Path, Progress, Unpack, parse
from ._alive import Alive
from ._index import publish
from ._names import names_of, text_of
from ._read import Dataset
from ._storage import Place, storage_options
from ._types import Adopt, Manifest, WriteMode, WriteOptions

__all__ = ["table_of", "write"]


def _text(name: str, value: Any) -> str:
    """The value of an option as text, for the library."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping) or name.lower() == "columns":
        import json
        given: Any = _named(name, value) if isinstance(value, Mapping) else names_of(value)
        return json.dumps(given, default=list)
    return str(value)


def _named(what: str, values: Mapping[Any, Any]) -> dict[str, Any]:
    """Values by names as datasets have them. ValueError if two become equal, as 0 and "0" do."""
    named = {text_of(name): value for name, value in values.items()}
    if len(named) < len(values):
        texts = [text_of(name) for name in values]
        twice = next(name for name in texts if texts.count(name) > 1)
        raise ValueError('%s: expected each name once, found %s for "%s"' % (what, " and ".join(
            repr(name) for name in values if text_of(name) == twice), twice))
    return named


def check_mode(mode: Any, adopt: Any) -> None:
    """ValueError for other values than those of write()."""
    if mode not in ("error", "append", "overwrite"):
        raise ValueError("mode: expected 'error', 'append' or 'overwrite', found %r" % (mode,))
    if adopt not in (None, "listing"):
        raise ValueError("adopt: expected None or 'listing', found %r" % (adopt,))


def settled(options: Mapping[str, Any]) -> tuple[_core.DatasetOptions, dict[str, Any]]:
    """Checked options of the write, and options of the storage. None counts as absent."""
    storage = {name: value for name, value in options.items()
               if name.lower().startswith("storage.")}
    own = {name: _text(name, value) for name, value in options.items()
           if name not in storage and value is not None}
    return _core.DatasetOptions(own), storage_options(storage)


class _Rows:
    """Batches of anything that can be written, and their schema (a capsule, or an object with
    one)."""

    def __init__(self, batches: Any) -> None:
        self.schema: Any
        self._batches: Iterator[Any]
        batches = _table(batches)
        if isinstance(batches, Dataset):
            self.schema, self._batches = batches._copied()
        elif hasattr(batches, "__arrow_c_stream__"):
            stream = _core.ArrowStream(batches)
            self.schema = stream.schema()
            self._batches = stream
        elif hasattr(batches, "__arrow_c_array__"):
            self.schema = _schema_of(batches)
            self._batches = iter([batches])
        elif hasattr(batches, "fetch_arrow_reader") or hasattr(batches, "fetch_record_batch"):
            one = getattr(batches, "fetch_arrow_reader", None) or batches.fetch_record_batch
            self.__init__(one())  # type: ignore[misc]
        else:
            self._several(batches)

    def _several(self, batches: Iterable[Any]) -> None:
        if not hasattr(batches, "__iter__"):
            raise TypeError("batches: expected an object with __arrow_c_stream__ (a table of "
                            "pyarrow, polars, duckdb, pandas), a dict of columns, or an iterable of such, found %s"
                            % type(batches).__name__)
        each = iter(batches)
        first = _table(next(each, None))
        if first is None:
            raise ValueError("batches: expected at least one batch, which has the schema, "
                             "found none")
        self.schema = _schema_of(first)
        self._batches = itertools.chain([first], each)

    def __iter__(self) -> Iterator[Any]:
        for batch in map(_table, self._batches):
            if isinstance(batch, Dataset):
                yield from batch._copied()[1]
            elif hasattr(batch, "__arrow_c_stream__") and not hasattr(batch, "__arrow_c_array__"):
                yield from _alike(batch, self.schema)
            else:
                yield batch


def _table(batch: Any) -> Any:
    """A dict of columns as a table; a pandas table without an unnamed index, which would be written
    as a column. A named index is a column like the others."""
    if isinstance(batch, Mapping):
        return table_of(batch)
    index = getattr(batch, "index", None)
    if hasattr(batch, "reset_index") and all(
            name is None for name in getattr(index, "names", [True])):
        return batch.reset_index(drop=True)
    return batch


def table_of(columns: Mapping[Any, Any]) -> Any:
    """A pyarrow.Table of columns."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError("batches: a dict of columns needs pyarrow") from None
    for name, values in columns.items():
        if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__"):
            raise TypeError("batches: expected columns in a dict, found %s of %r"
                            % (type(values).__name__, name))
    return pa.table({name: _column(values)
                     for name, values in _named("batches", columns).items()})


def _column(values: Any) -> Any:
    """Values of a column for pyarrow, which takes arrays of one dimension only, and none of torch."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        try:
            values = values.numpy()
        except TypeError:  # a dtype that numpy lacks, as Arrow does
            return _tensors(values)
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if len(shape) < 2 or not hasattr(values, "reshape"):
        return values
    import pyarrow as pa
    flat, size = pa.array(values.reshape(-1)), math.prod(shape[1:])
    rows = pa.FixedSizeListArray.from_arrays(flat, size) if len(flat) else \
        pa.array([[]] * shape[0], pa.list_(flat.type, size))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, shape[1:]), rows)


def _tensors(values: Any) -> Any:
    """Rows of a torch tensor as structs of data, shape and dtype, which have any dtype."""
    import numpy as np
    import pyarrow as pa
    import torch
    dtype = header_name(str(values.dtype).removeprefix("torch."))
    count, shape = len(values), values.shape[1:]
    width = math.prod(shape) * values.element_size()
    raw = values.contiguous().view(-1).view(torch.uint8).numpy()
    ends = np.arange(count + 1, dtype=np.int64)
    data = pa.Array.from_buffers(pa.large_binary(), count, [
        None, pa.py_buffer(ends * width), pa.py_buffer(raw)])
    dims = pa.LargeListArray.from_arrays(pa.array(ends * len(shape)),
                                         pa.array(np.tile(np.array(shape, np.int64), count)))
    return pa.StructArray.from_arrays([data, dims, pa.array([dtype] * count, pa.string())],
                                      ["data", "shape", "dtype"])


def _schema_of(batch: Any) -> Any:
    if hasattr(batch, "__arrow_c_array__"):
        return batch.__arrow_c_array__()[0]
    if hasattr(batch, "__arrow_c_stream__"):
        return _core.ArrowStream(batch).schema()
    raise TypeError("batches: expected batches with __arrow_c_array__ or __arrow_c_stream__, "
                    "found %s" % type(batch).__name__)


class _Pair:
    """A batch of a stream with the stream's schema, which is compared with the first one."""

    def __init__(self, schema: Any, array: Any) -> None:
        self.pair = schema, array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.pair


def _alike(batch: Any, schema: Any) -> Iterator[Any]:
    stream = _core.ArrowStream(batch)
    own = stream.schema()
    return (_Pair(own, array) for array in stream)


def write(batches: Any, path: Path, *, mode: WriteMode = "error", progress: Progress = None,
          sync: bool = True, adopt: Adopt = None, **options: Unpack[WriteOptions]) -> Manifest:
    """Writes rows as a dataset, which appears complete at the end, or not at all.

    batches: a table or stream of pyarrow, polars, duckdb or pandas, or anything else with
    __arrow_c_stream__; a dict of columns (lists, arrays or tensors; needs pyarrow); an open
    dataset, of whose files the digests are compared; or an iterable of such with one schema. Columns named by whole numbers get these as text: 0 is "0". A stream is
    written as it arrives: in batch mode batch_size rows are held in memory, in KV mode one shard.
    path: a folder, or a URL that pyarrow has a filesystem for, whose options are given as
    **{"storage.region": …}. mode: "error" raises FileExistsError if a dataset exists; "append"
    adds to it; "overwrite" replaces it. adopt="listing": an append includes shards that a
    connector's manifest lacks. sync=False does not wait for the disk. options:
    libsafetensors.dataset.OPTIONS, of which batch_size or name_col is required; None counts as
    absent. progress: True or a function of bytes done and total.

    Returns the manifest. Other processes may read the dataset meanwhile, and see the old one;
    a second writer waits for the lock. ValueError for an option, column or row that cannot be
    written; SafetensorError (dataset_…) for a conflict with the existing dataset; OSError. On any
    failure the old dataset is unchanged."""
    checked, storage = settled(options)
    if checked.indexed:
        _need_pyarrow()
    check_mode(mode, adopt)
    place = Place(path, storage, sync)
    rows = _Rows(batches)
    commit = _core.Commit(checked, place.core, rows.schema, how=mode,
                          adopt_listing=adopt == "listing")
    try:
        with watch(progress, "writing") as tick, Alive(place, commit.job, last=True):
            _run(commit, checked, place, rows, mode == "append", tick)
        manifest = commit.manifest
    except BaseException:
        commit.abort()
        raise
    finally:
        commit.close()
    written: Manifest = parse(manifest)
    return written


def _run(commit: _core.Commit, options: _core.DatasetOptions, place: Any, rows: _Rows,
         append: bool, tick: Any) -> None:
    writer = _core.ShardWriter(options, place.core, commit.job, 0, rows.schema, threads=0)
    try:
        for batch in rows:
            writer.append(batch, tick)
            batch = None  # release its memory as soon as its rows are in a file
        commit.add(writer.close(tick))
    except BaseException:
        writer.abandon()
        raise
    for text in publish(commit, place, append, tick):
        warnings.warn("%s: %s" % (os.fspath(place.text), text), stacklevel=4)


def _need_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError("generate_index needs pyarrow, which writes the index") from None
