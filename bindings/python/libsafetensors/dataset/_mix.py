"""Several datasets as one, by weights."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import index, is_
from typing import Any, Literal, Union

from .._types import Path, Unpack
from ._columns import Column, gathered, joined
from ._identity import check_identity, identity
from ._layout import row_numbers, stacked
from ._order import Order, ShardLine, key_of, shuffled
from ._read import Dataset, open
from ._types import ColumnFacts, OpenOptions

__all__ = ["Mix", "MixOrder", "at_state", "check_source", "source_identity", "sources_of"]

_BLOCK = 1024  # rows in which the datasets have their shares, but for a row
_PASSES = 64  # above that a lane mixes a dataset by passes, no longer by shards
_LINES = 64  # passes of which the places of shards are cached

Until = Union[Literal["first_exhausted", "all_exhausted"], int]


class Mix:
    """Rows of several datasets by weights, for TorchBatches. They must have the same columns.

    sources: pairs of a Dataset, or an argument of open, and its weight: a number above 0, of
    which only the ratios count. options: of open, for all that are not open yet.

    Each dataset is an endless sequence of passes: of a pass each row comes once, in an order of
    its own, and an epoch goes on where the last one ended. until: how long an epoch is.
    "first_exhausted": until one dataset was read once; rows of the others that are left come in
    the next epochs. "all_exhausted": until each was read at least once; others begin again
    meanwhile. A number: that many rows. len() is the rows of an epoch, draws those of each
    dataset. ValueError for columns that differ, which it names, and for a dataset without rows,
    or with less than one row an epoch."""

    def __init__(self, sources: Iterable[tuple[Dataset | Path, float | Fraction]], *,
                 until: Until = "first_exhausted", **options: Unpack[OpenOptions]) -> None:
        pairs = [(source, _weight(weight)) for source, weight in sources]
        if not pairs:
            raise ValueError("expected at least one dataset")
        self.datasets = [source if isinstance(source, Dataset) else open(source, **options)
                         for source, _ in pairs]
        self.schema = _agreed(self.datasets)
        self._weights, self._until = [weight for _, weight in pairs], until
        self.draws = _draws(self.datasets, self._weights, until)
        self._bases = [0, *accumulate(map(len, self.datasets))]

    def _with(self, datasets: list[Dataset]) -> Mix:
        """The same of other versions."""
        return Mix(zip(datasets, self._weights), until=self._until)

    def _at(self, version: int) -> Mix:
        """Of the versions in force. ValueError for one of a number."""
        if version:
            raise ValueError("version: expected none, since each dataset of a mix has its own, "
                             "found %d" % version)
        return self._with([one._at(0) for one in self.datasets])

    @property
    def version(self) -> None:
        """None: each dataset has its own."""

    @property
    def path(self) -> str:
        """Of all datasets."""
        return ", ".join(one.path for one in self.datasets)

    @property
    def columns(self) -> list[str]:
        return list(self.datasets[0].columns)

    def __len__(self) -> int:
        return sum(self.draws)

    def __repr__(self) -> str:
        return "<libsafetensors.dataset.Mix: %s>" % ", ".join(
            "%d rows of %s" % (rows, one.path) for rows, one in zip(self.draws, self.datasets))

    def take(self, numbers: Any, framework: Literal["numpy", "torch"] = "numpy") -> dict[str, Any]:
        """As of Dataset; numbers count the rows of all datasets, one after the other."""
        import numpy as np
        wanted = row_numbers(numbers)
        if wanted.size and (int(wanted.min()) < 0 or int(wanted.max()) >= self._bases[-1]):
            raise IndexError("expected rows from 0 to %d" % (self._bases[-1] - 1))
        owner = np.searchsorted(np.asarray(self._bases), wanted, side="right") - 1
        found = np.unique(owner).tolist() or [0]
        order = np.argsort(owner, kind="stable")
        parts = [self.datasets[i].take(wanted[owner == i] - self._bases[i], framework)
                 for i in found]
        places = np.empty(len(wanted), np.int64)
        places[order] = np.arange(len(wanted))
        if self.datasets[0].mode == "kv":
            rows = [{name: values[i] for name, values in part.items()}
                    for part in parts for i in range(len(next(iter(part.values()), ())))]
            return stacked([rows[i] for i in places.tolist()], framework)
        return {name: self._put(name, [part[name] for part in parts], places)
                for name in self.columns}

    def _put(self, name: str, parts: list[Any], places: Any) -> Any:
        """Rows of one column in their places; of a column with nulls in any dataset always a
        Column."""
        if self.schema[name].get("nullable"):
            parts = [one if isinstance(one, Column) else Column(one, None, None, None)
                     for one in parts]
        return parts[0] if len(parts) == 1 else gathered(joined(parts), places)

    def close(self) -> None:
        """Closes the files of all datasets."""
        for one in self.datasets:
            one.close()


def _weight(weight: Any) -> Fraction:
    """As it is written: 0.2 is a fifth."""
    try:
        found = weight if isinstance(weight, Fraction) else Fraction(str(weight))
    except ValueError:
        found = Fraction(0)
    if found <= 0:
        raise ValueError("weight: expected a number above 0, found %r" % (weight,))
    return found


def _agreed(datasets: list[Dataset]) -> dict[str, ColumnFacts]:
    """The columns of all. Those of the first one, which others may make nullable; in KV mode rows
    may differ in shape."""
    first = datasets[0]
    agreed = {name: facts.copy() for name, facts in first.schema.items()}
    for one in datasets[1:]:
        if one.mode != first.mode:
            raise ValueError("mode: %s is in %s mode, %s in %s mode"
                             % (first.path, first.mode, one.path, one.mode))
        for name in dict.fromkeys([*first.columns, *one.columns]):
            for has, lacks in ((first, one), (one, first)):
                if name not in lacks.columns:
                    raise ValueError("column %r: %s has it, %s does not"
                                     % (name, has.path, lacks.path))
        for name, facts in one.schema.items():
            _agree(name, agreed[name], facts, first, one)
    return agreed


def _agree(name: str, own: Any, other: Any, first: Dataset, one: Dataset) -> None:
    keyed = first.mode == "kv"
    for fact in sorted({*own, *other} - {"nullable"}):
        mine, its = own.get(fact), other.get(fact)
        if mine == its:
            continue
        if keyed and (fact == "shape" or mine is None or its is None):
            own[fact] = None
            continue
        raise ValueError("column %r: %s: %s in %s, %s in %s"
                         % (name, fact, mine, first.path, its, one.path))
    if other.get("nullable"):
        own["nullable"] = True


def _draws(datasets: Sequence[Dataset], weights: list[Fraction], until: Until) -> list[int]:
    """Rows of each dataset in an epoch."""
    for one in datasets:
        if not len(one):
            raise ValueError("%s: expected rows, found none" % one.path)
    total = sum(weights)
    if until == "first_exhausted":
        rows = min(len(one) / weight for one, weight in zip(datasets, weights))
    elif until == "all_exhausted":
        rows = max(len(one) / weight for one, weight in zip(datasets, weights))
    elif hasattr(until, "__index__") and not isinstance(until, bool) and until > 0:
        draws = _shares(index(until), [weight / total for weight in weights])
        return _some(draws, datasets)
    else:
        raise ValueError("until: expected 'first_exhausted', 'all_exhausted' or a number of rows "
                         "from 1 on, found %r" % (until,))
    return _some([round(weight * rows) for weight in weights], datasets)


def _shares(count: int, shares: list[Fraction]) -> list[int]:
    """Whole numbers whose sum is count; what rounding down leaves goes to the largest rests."""
    found = [int(count * share) for share in shares]
    rests = sorted(range(len(shares)), key=lambda i: (found[i] - count * shares[i], i))
    for i in rests[:count - sum(found)]:
        found[i] += 1
    return found


def _some(draws: list[int], datasets: Sequence[Dataset]) -> list[int]:
    for rows, one in zip(draws, datasets):
        if not rows:
            raise ValueError("%s: its weight gives it less than one row an epoch" % one.path)
    return draws


# ── Order ──

class MixOrder(Order):
    """The sequence of a mix. Of each block of rows every dataset has its share, at random places;
    its rows there are the next ones of its own order."""

    def __init__(self, mix: Mix, batch_size: int, shuffle: bool | str, seed: int, ends: str,
                 open_shards: int) -> None:
        super().__init__(len(mix), batch_size, shuffle, seed, ends, [], open_shards)
        self.draws = mix.draws
        self._orders = [
            Order(len(one), batch_size, shuffle, seed, ends,
                  [stop - start for start, stop in one._layout.bounds()], open_shards)
            for one in mix.datasets]
        self._bases = [0, *accumulate(map(len, mix.datasets))]
        self._last: tuple[int, int, int, Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_last": None}

    # ── Which dataset ──

    def _counts(self, position: int) -> list[int]:
        """Rows of each dataset before a position, at which a block begins. One after the other has
        its part of those that are left: so no count ever falls, and each is at its number in the
        end."""
        found, total = [], self.count
        for draws in self.draws[:-1]:
            found.append((2 * position * draws + total) // (2 * total))
            position -= found[-1]
            total -= draws
        return [*found, position]

    def _placed(self, epoch: int, block: int) -> tuple[Any, Any]:
        """Of each place the dataset, and which of its rows in the epoch it is."""
        import numpy as np
        if self._last is None or self._last[:3] != (self.seed, epoch, block):
            begin, end = block * _BLOCK, min((block + 1) * _BLOCK, self.count)
            before = np.asarray(self._counts(begin), np.int64)
            shares = np.asarray(self._counts(end), np.int64) - before
            owner = np.repeat(np.arange(len(shares)), shares)
            owner = owner[shuffled(np.arange(end - begin), end - begin,
                                   key_of(self.seed, 0, epoch, block))]
            nth = np.empty(end - begin, np.int64)
            nth[np.argsort(owner, kind="stable")] = np.arange(end - begin) + np.repeat(
                before - np.concatenate([[0], np.cumsum(shares)[:-1]]), shares)
            self._last = self.seed, epoch, block, owner, nth
        return self._last[3:]

    def split(self, epoch: int, positions: Any) -> tuple[Any, Any]:
        """Of each position the dataset, and which of its rows in the epoch it is."""
        import numpy as np
        owner, nth = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        blocks = positions // _BLOCK
        for block in np.unique(blocks).tolist():
            here = blocks == block
            at = positions[here] - block * _BLOCK
            owner[here], nth[here] = (found[at] for found in self._placed(epoch, block))
        return owner, nth

    def before(self, epoch: int, position: int) -> list[int]:
        """Rows of each dataset before any position."""
        import numpy as np
        block, inside = divmod(position, _BLOCK)
        found = self._counts(block * _BLOCK)
        if not inside:
            return found
        owner = self._placed(epoch, block)[0][:inside]
        more = np.bincount(owner, minlength=len(found)).tolist()
        return [one + here for one, here in zip(found, more)]

    # ── Which row ──

    def order_of(self, which: int) -> Order:
        order = self._orders[which]
        order.seed = key_of(self.seed, 1, which)
        return order

    def passes(self, which: int, epoch: int, nth: Any) -> list[tuple[int, Any, Any]]:
        """Which rows of a dataset in the epoch are of the same pass: pass, where they are, and
        their places in it."""
        import numpy as np
        count = self._orders[which].count
        first, begin = divmod(epoch * self.draws[which], count)
        number = (begin + nth) // count
        return [(first + one, number == one, begin + nth[number == one] - one * count)
                for one in np.unique(number).tolist()]

    def rows_of(self, which: int, epoch: int, nth: Any, rows: Any) -> Any:
        """Numbers, in the mix, of rows of a dataset. rows: pass and places -> its numbers."""
        import numpy as np
        out = np.empty(len(nth), np.int64)
        for number, here, places in self.passes(which, epoch, nth):
            out[here] = self._bases[which] + rows(number, places)
        return out

    def rows(self, epoch: int, positions: Any) -> Any:
        import numpy as np
        owner, nth = self.split(epoch, positions)
        out = np.empty(len(positions), np.int64)
        for which in np.unique(owner).tolist():
            here = owner == which
            out[here] = self.rows_of(which, epoch, nth[here], self.order_of(which).rows)
        return out

    def batch(self, epoch: int, number: int) -> Any:
        import numpy as np
        begin, end = self.limits(number)
        return self.rows(epoch, np.arange(begin, end) % self.count)

    def line(self, epoch: int) -> Any:
        return _MixLine(self, epoch)

    # ── State ──

    def state(self) -> dict[str, Any]:
        return {"draws": self.draws, **super().state()}

    def _sizes(self) -> dict[str, Any]:
        if self.shuffle not in ("shards", "blocks"):
            return {}
        return {"shards": [one._sizes()["shards"] for one in self._orders]}

    def _resize(self, shards: Any) -> None:
        if len(shards) != len(self._orders):
            raise ValueError("shards: the state is of %d datasets, expected %d"
                             % (len(shards), len(self._orders)))
        for order, sizes in zip(self._orders, shards):
            order._resize(sizes)


class _MixLine:
    """All rows of an epoch, each dataset's in its order of shards."""

    def __init__(self, order: MixOrder, epoch: int) -> None:
        self._order, self._epoch = order, epoch
        self.count = order.count
        self._lines: dict[tuple[int, int], ShardLine] = {}

    def _line(self, which: int, number: int) -> ShardLine:
        found = self._lines.get((which, number))
        if found is None:
            if len(self._lines) >= _LINES:
                self._lines.clear()
            found = self._lines[which, number] = \
                ShardLine(self._order.order_of(which), number)
        return found

    def _rows(self, which: int, nth: Any) -> Any:
        return self._order.rows_of(which, self._epoch, nth,
                                   lambda number, places: self._line(which, number).rows(places))

    def rows(self, positions: Any) -> Any:
        return self._each(positions, lambda which, nth: nth)

    def _each(self, positions: Any, mixed: Any) -> Any:
        import numpy as np
        owner, nth = self._order.split(self._epoch, positions)
        out = np.empty(len(positions), np.int64)
        for which in np.unique(owner).tolist():
            here = owner == which
            out[here] = self._rows(which, mixed(which, nth[here]))
        return out

    def piece(self, begin: int, end: int, key: int) -> Any:
        """Rows at positions of a piece, of each dataset mixed within it."""
        whole = self._order
        first, last = whole.before(self._epoch, begin), whole.before(self._epoch, end)
        orders = [Order(stop - start, whole.batch_size, whole.shuffle, key_of(key, which),
                        whole.ends, self._sizes(which, start, stop), whole.open_shards)
                  for which, (start, stop) in enumerate(zip(first, last))]
        return lambda places: self._each(begin + places, lambda which, nth:
                                         first[which] + orders[which].rows(
                                             self._epoch, nth - first[which]))

    def _sizes(self, which: int, start: int, stop: int) -> list[int]:
        """Rows of each shard in a piece, of each pass anew."""
        count = self._order._orders[which].count
        first, begin = divmod(self._epoch * self._order.draws[which] + start, count)
        end = begin + stop - start
        bounds = [(number, max(begin - number * count, 0), min(end - number * count, count))
                  for number in range(-(-end // count))]
        if len(bounds) > _PASSES:
            return [to - at for _, at, to in bounds]
        return [size for number, at, to in bounds
                for size in self._line(which, first + number).sizes(at, to)]


# ── What both are ──

def sources_of(source: Dataset | Mix) -> list[Dataset]:
    return source.datasets if isinstance(source, Mix) else [source]


def source_identity(source: Dataset | Mix) -> dict[str, Any]:
    """As identity, of a mix that of each dataset."""
    if isinstance(source, Mix):
        return {"rows": len(source), "mix": [identity(one) for one in source.datasets]}
    return identity(source)


def at_state(source: Dataset | Mix, own: dict[str, Any], saved: Any) -> Dataset | Mix:
    """At the version of a state, of a mix at that of each dataset; as it is where that is
    not kept."""
    if not isinstance(saved, dict):
        return source
    if isinstance(source, Mix):
        theirs = saved.get("mix")
        if not isinstance(theirs, list) or len(theirs) != len(source.datasets):
            return source
        found: list[Any] = [at_state(*one) for one in zip(source.datasets, own["mix"], theirs)]
        return source if all(map(is_, found, source.datasets)) else source._with(found)
    version = saved.get("version")
    if not isinstance(version, int) or version < 1 or saved.get("commit") == own.get("commit"):
        return source
    try:
        before = source._at(version)
    except FileNotFoundError:
        return source
    return before if identity(before).get("commit") == saved.get("commit") else source


def check_source(source: Dataset | Mix, own: dict[str, Any], state: dict[str, Any]) -> None:
    """As check_identity. Both have the same datasets in the same order."""
    saved = state.get("dataset")
    theirs = saved.get("mix") if isinstance(saved, dict) else None
    if not isinstance(source, Mix):
        if theirs is not None:
            raise ValueError("dataset: the state is of a mix, expected %s alone" % source.path)
        return check_identity(source, own, state)
    if not isinstance(theirs, list) or len(theirs) != len(source.datasets):
        raise ValueError("dataset: the state is of %s, expected a mix of %d datasets"
                         % ("a mix of %d" % len(theirs) if isinstance(theirs, list)
                            else "no mix", len(source.datasets)))
    for one, mine, its in zip(source.datasets, own["mix"], theirs):
        check_identity(one, mine, {"dataset": its})
