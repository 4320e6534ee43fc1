"""Rows of one column in memory."""
from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any

__all__ = ["Column", "gathered", "joined"]


class Column:
    """Rows of one column: a sequence of str, bytes, arrays, or None; of nested columns also of
    lists and dicts. No object is made before it is asked for.

    values: the rows end to end (of text and bytes a numpy array of U8), or stacked where offsets
    is None; of lists of anything but numbers, or of numbers of which some are null, a Column of what is
    in them; of structs a dict of the fields' Columns. offsets: row i is values[offsets[i]:offsets[i + 1]]. valid: False where a row
    is null; None if none is. encoding: "utf8", "binary", "list", "struct", or None where rows have
    one shape."""

    __slots__ = ("encoding", "offsets", "valid", "values")

    def __init__(self, values: Any, offsets: Any, valid: Any, encoding: str | None) -> None:
        self.values, self.offsets, self.valid = values, offsets, valid
        self.encoding = encoding

    def __len__(self) -> int:
        if self.offsets is not None:
            return len(self.offsets) - 1
        return len(next(iter(self.values.values())) if self.encoding == "struct" else self.values)

    def __getitem__(self, which: int) -> Any:
        number = index(which)
        if not -len(self) <= number < len(self):
            raise IndexError("expected a row from 0 to %d, found %d" % (len(self) - 1, number))
        number %= len(self)
        if self.valid is not None and not self.valid[number]:
            return None
        if self.encoding == "struct":
            return {name: values[number] for name, values in self.values.items()}
        if self.offsets is None:
            return self.values[number]
        begin, end = self.offsets[number], self.offsets[number + 1]
        inner = self.values
        if isinstance(inner, Column):
            some = inner.valid is not None and not inner.valid[begin:end].all()
            if some or inner.encoding or inner.offsets is not None:
                return [inner[i] for i in range(begin, end)]
            inner = inner.values  # numbers
        value = inner[begin:end]
        if self.encoding == "list":
            return value
        return value.tobytes().decode() if self.encoding == "utf8" else value.tobytes()

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return "<libsafetensors.dataset.Column: %d rows, %s>" % (
            len(self), self.encoding or "fixed")

    @property
    def nested(self) -> bool:
        """Whether rows are lists of anything but numbers, or structs."""
        return isinstance(self.values, (Column, dict))

    @property
    def lengths(self) -> Any:
        """Elements or bytes of each row. TypeError where rows have one shape."""
        if self.offsets is None:
            raise TypeError("lengths: expected a column of varying length")
        return self.offsets[1:] - self.offsets[:-1]

    def padded(self) -> Any:
        """Lists as one array [rows, longest], zeros behind each; stacked values as they are.
        TypeError of nested columns."""
        import numpy as np
        if self.nested:
            raise TypeError("padded: expected lists of numbers")
        if self.offsets is None:
            return self.values
        lengths = self.lengths
        longest = int(lengths.max()) if len(lengths) else 0
        place = np.repeat(np.arange(len(lengths)) * longest - self.offsets[:-1], lengths) \
            + np.arange(int(self.offsets[-1]))
        if hasattr(self.values, "new_zeros"):
            import torch
            out = self.values.new_zeros(len(lengths) * longest)
            # Of bytes: an index knows few of the dtypes.
            whole, raw = out.view(torch.uint8), self.values.view(torch.uint8)
            width = self.values.element_size()
            if len(place):
                whole.view(-1, width)[torch.from_numpy(place)] = raw.view(-1, width)
        else:
            out = np.zeros(len(lengths) * longest, self.values.dtype)
            out[place] = self.values
        return out.reshape(len(lengths), longest)


# ── Rows of several ──

def _picked(values: Any, rows: Any) -> Any:
    if hasattr(values, "new_zeros"):
        import torch
        # Of bytes: an index does not know all dtypes. By numpy: torch would use all processors,
        # which costs more than it saves.
        count, shape = len(values), values.shape[1:]
        raw = values.reshape(-1).view(torch.uint8).numpy().reshape(
            count, values.nbytes // max(count, 1))
        picked = torch.from_numpy(raw[rows].reshape(-1))
        return picked.view(values.dtype).reshape(len(rows), *shape)
    return values[rows]


def gathered(column: Any, rows: Any) -> Any:
    """These rows of a Column or an array, in memory of their own."""
    import numpy as np
    if not isinstance(column, Column):
        return _picked(column, rows)
    valid = None if column.valid is None else column.valid[rows]
    if column.encoding == "struct":
        return Column({name: gathered(values, rows) for name, values in column.values.items()},
                      None, valid, "struct")
    if column.offsets is None:
        return Column(_picked(column.values, rows), None, valid, column.encoding)
    begins, lengths = column.offsets[rows], column.lengths[rows]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    inner = np.repeat(begins - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
    return Column(gathered(column.values, inner), offsets, valid, column.encoding)


def joined(columns: list[Any]) -> Any:
    """One behind the other; all of one type. Elements of lists are Columns in all or in none."""
    import numpy as np
    if len(columns) == 1:
        return columns[0]
    if not any(isinstance(one, Column) for one in columns):
        if hasattr(columns[0], "new_zeros"):
            import torch
            return torch.cat(columns)
        return np.concatenate(columns)
    columns = [one if isinstance(one, Column) else Column(one, None, None, None)
               for one in columns]
    first, valid = columns[0], None
    if any(one.valid is not None for one in columns):
        valid = np.concatenate([np.ones(len(one), np.bool_) if one.valid is None else one.valid
                                for one in columns])
    if first.encoding == "struct":
        return Column({name: joined([one.values[name] for one in columns])
                       for name in first.values}, None, valid, "struct")
    values = joined([one.values for one in columns])
    if first.offsets is None:
        return Column(values, None, valid, first.encoding)
    bases = np.cumsum([0, *(one.offsets[-1] for one in columns)])
    offsets = np.concatenate([[0], *(one.offsets[1:] + base
                                     for one, base in zip(columns, bases))])
    return Column(values, offsets, valid, first.encoding)
