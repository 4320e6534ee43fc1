"""Datasets as pyarrow.dataset has them: engines read the columns that a query uses."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from .._types import Unpack
from ._names import names_of
from ._types import ScanOptions

__all__ = ["ArrowDataset", "scanner"]

# The only file of the Dataset that pyarrow's own code finds in an ArrowDataset: what does not go
# through scanner() fails, where it would otherwise find no rows.
_ELSEWHERE = "rows of a safetensors dataset, which only the method scanner() reads"


def _used(names: Iterable[str], columns: Any, condition: Any, schema: Any) -> list[str]:
    """The columns that may occur in a projection and a condition. An expression does not tell its
    columns, but its text has their names, and others if they are part of such a name."""
    if columns is None:
        return list(names)
    plain = [] if isinstance(columns, Mapping) else list(columns)
    texts = [str(one) for one in columns.values()] if isinstance(columns, Mapping) else []
    if condition is not None:
        texts.append(str(condition))
    if any("FieldPath" in text for text in texts):  # the number of a column among all
        return list(names)
    found = [name for name in names if name in plain or any(name in text for text in texts)]
    try:  # whether that are all
        few = pa.schema([schema.field(name) for name in found]).empty_table()
        pads.dataset(few).scanner(columns=columns, filter=condition).to_table()
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return list(names)
    return found


def scanner(dataset: Any, columns: Any = None, rows: range | None = None, filter: Any = None,
            batch_size: int | None = None, **options: Unpack[ScanOptions]) -> Any:
    if columns is not None and not isinstance(columns, Mapping):
        columns = names_of(columns)
    whole = dataset._arrow(None, range(0), None)[0]
    used = _used(whole.names, columns, filter, whole)
    # A batch without columns would have no rows.
    schema, batches = dataset._arrow(used or whole.names[:1], rows, batch_size)
    options.pop("cache_metadata", None)
    if batch_size is None:
        return pads.Scanner.from_batches(batches, schema=schema, columns=columns, filter=filter,
                                         **options)
    return pads.Scanner.from_batches(batches, schema=schema, columns=columns, filter=filter,
                                     batch_size=batch_size, **options)


class ArrowDataset(pads.UnionDataset):
    """A pyarrow.dataset.Dataset over rows of a Dataset, for engines that ask it for columns."""

    def __init__(self, dataset: Any) -> None:
        self._rows = dataset
        schema = dataset._arrow(None, range(0), None)[0]
        none = pads.ParquetFileFormat().make_fragment(_ELSEWHERE, pafs.LocalFileSystem())
        super().__init__(schema, [pads.FileSystemDataset([none], schema, none.format,
                                                         none.filesystem)])

    def __reduce__(self) -> Any:
        return ArrowDataset, (self._rows,)

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int | None = None,
                **options: Unpack[ScanOptions]) -> Any:
        return scanner(self._rows, columns, None, filter, batch_size, **options)

    def count_rows(self, filter: Any = None, **options: Unpack[ScanOptions]) -> int:
        if filter is None:
            return len(self._rows)
        count: int = self.scanner([], filter, **options).count_rows()
        return count

    def _elsewhere(self, *_: Any, **__: object) -> Any:
        raise TypeError("expected a method that scans: scanner, to_table, to_batches, head, take or "
                        "count_rows; of to_table() there are the others")

    filter = get_fragments = join = join_asof = replace_schema = sort_by = _elsewhere
