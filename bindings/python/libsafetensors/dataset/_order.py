"""Which rows are in which batch: a function of seed and epoch, without stored state."""
from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, chain, groupby, repeat
from typing import Any, Callable

__all__ = ["Order", "ShardLine", "key_of", "shuffled"]

_MASK = (1 << 64) - 1
_CACHED_ROWS = 1 << 21  # most rows whose order is cached for an epoch


def _mixed(value: int) -> int:
    """64 bits that depend on all bits of value (the finaliser of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def key_of(*parts: int) -> int:
    key = 0
    for part in parts:
        key = _mixed(key ^ (part & _MASK))
    return key


def shuffled(positions: Any, count: int, key: int) -> Any:
    """Images of these positions under a permutation of range(count): a Feistel network over the
    next power of two, repeated until the result is in range. Constant cost per position, and
    no memory."""
    import numpy as np
    bits = max(2, (count - 1).bit_length())
    upper, lower = np.uint64(bits // 2), np.uint64(bits - bits // 2)
    rounds = [np.uint64(key_of(key, i)) for i in range(6)]
    out = np.asarray(positions, dtype=np.uint64).copy()
    todo = np.arange(out.size)
    while todo.size:
        out[todo] = _mixed_halves(out[todo], upper, lower, rounds)
        todo = todo[out[todo] >= count]
    return out.astype(np.int64)


def _mixed_halves(value: Any, upper: Any, lower: Any, rounds: list[Any]) -> Any:
    """The rounds. Their number is even, so that halves of unequal width end where they were."""
    import numpy as np
    one = np.uint64(1)
    left, right = value >> lower, value & ((one << lower) - one)
    width, other = upper, lower
    for add in rounds:
        left, right = right, left ^ (_spread(right ^ add) & ((one << width) - one))
        width, other = other, width
    return left << lower | right


def _spread(value: Any) -> Any:
    """Mixes the bits of arrays; overflow is intended."""
    import numpy as np
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return value ^ value >> np.uint64(31)


class _Part:
    """Positions that are ordered together. rows: of places from begin on, the row numbers."""

    __slots__ = ("begin", "end", "rows")

    def __init__(self, begin: int, end: int, rows: Callable[[Any], Any]) -> None:
        self.begin, self.end, self.rows = begin, end, rows


def _in_parts(positions: Any, part_at: Callable[[int], _Part]) -> Any:
    """Row numbers at these positions, which may continue at the beginning."""
    import numpy as np
    out = np.empty(len(positions), np.int64)
    left = np.arange(len(positions))
    while left.size:
        part = part_at(int(positions[left[0]]))
        here = (positions[left] >= part.begin) & (positions[left] < part.end)
        out[left[here]] = part.rows(positions[left[here]] - part.begin)
        left = left[~here]
    return out


class _Blocks:
    """Mixes rows of up to `width` shards. Block b takes shares of shards b to b + width - 1, so
    each block closes the first shard of the one before and opens the next; a shard's rows are
    spread evenly over all blocks in which it is open.

    sizes: rows of each shard, in the epoch's order."""

    def __init__(self, sizes: Any, width: int) -> None:
        import numpy as np
        self._sizes = np.asarray(sizes, np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self._width = min(width, len(self._sizes))
        self._count = len(self._sizes) - self._width + 1

    def shares(self, block: int) -> tuple[Any, Any]:
        """The first row here of each shard open in a block, and the end of its rows here."""
        import numpy as np
        shards = np.arange(block, block + self._width)
        first = np.maximum(0, shards - self._width + 1)
        blocks = np.minimum(shards, self._count - 1) + 1 - first
        sizes = self._sizes[shards]
        return sizes * (block - first) // blocks, sizes * (block + 1 - first) // blocks

    def _before(self, block: int) -> int:
        """Rows in earlier blocks."""
        return int(self._starts[block] + self.shares(block)[0].sum())

    def find(self, position: int) -> tuple[int, int, int]:
        """The block of a position, where it begins and where it ends."""
        low, high = 0, self._count
        while high - low > 1:
            middle = (low + high) // 2
            if self._before(middle) <= position:
                low = middle
            else:
                high = middle
        begins, ends = self.shares(low)
        begin = self._before(low)
        return low, begin, begin + int((ends - begins).sum())


class Order:
    """The sequence of batches of all ranks. sizes: rows of each shard. open_shards: how many
    are mixed by shuffle="blocks"."""

    def __init__(self, count: int, batch_size: int, shuffle: bool | str, seed: int, ends: str,
                 sizes: list[int], open_shards: int = 16) -> None:
        if batch_size < 1:
            raise ValueError("batch_size: expected a number of rows from 1 on, found %d"
                             % batch_size)
        if shuffle not in (True, False, "shards", "blocks"):
            raise ValueError("shuffle: expected True, False, 'shards' or 'blocks', found %r"
                             % (shuffle,))
        if open_shards < 1:
            raise ValueError("open_shards: expected a number from 1 on, found %d" % open_shards)
        if ends not in ("drop", "pad", "uneven"):
            raise ValueError("ends: expected 'drop', 'pad' or 'uneven', found %r" % (ends,))
        self.count = count
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.ends = ends
        self.open_shards = open_shards
        self.begins = [0, *accumulate(sizes)]
        self._turned: tuple[int, int, list[int], list[int]] | None = None
        self._whole: tuple[int, int, Any] | None = None
        self._blocks: tuple[int, int, _Blocks] | None = None
        self._block: _Part | None = None

    # ── How many ──

    def steps(self, begun: int, rank: int, ranks: int) -> int:
        """Batches left for a rank after `begun` batches of all ranks were delivered."""
        whole, rest = divmod(self.count, self.batch_size)
        every = whole if self.ends == "drop" else whole + (rest > 0)
        left = max(0, every - begun)
        if self.ends == "drop":
            return left // ranks
        if self.ends == "pad":
            return -(-left // ranks)
        return max(0, -(-(left - rank) // ranks))

    # ── Which ──

    def limits(self, number: int) -> tuple[int, int]:
        """Where a batch begins and ends."""
        begin = number * self.batch_size
        end = begin + self.batch_size
        return begin, min(end, self.count) if self.ends == "uneven" else end

    def batch(self, epoch: int, number: int) -> Any:
        """Numbers of the rows of a batch."""
        import numpy as np
        begin, end = self.limits(number)
        if not self.shuffle:
            if end <= self.count:
                return range(begin, end)
            return np.arange(begin, end) % self.count
        return self.rows(epoch, np.arange(begin, end) % self.count)

    def rows(self, epoch: int, positions: Any) -> Any:
        """Numbers of the rows at these positions of the epoch."""
        if not self.shuffle:
            return positions
        if self.shuffle == "shards":
            return _in_parts(positions, lambda position: self._shard_at(epoch, position))
        if self.shuffle == "blocks":
            return _in_parts(positions, lambda position: self._block_at(epoch, position))
        if self.count > _CACHED_ROWS:
            return shuffled(positions, self.count, key_of(self.seed, epoch))
        return self._all(epoch)[positions]

    def _all(self, epoch: int) -> Any:
        """The order of all rows, cached: faster than batch by batch for few rows."""
        if self._whole is None or self._whole[:2] != (self.seed, epoch):
            order = shuffled(range(self.count), self.count, key_of(self.seed, epoch))
            self._whole = self.seed, epoch, order
        return self._whole[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None, "_turned": None, "_blocks": None,
                "_block": None}

    def turn(self, epoch: int) -> tuple[list[int], list[int]]:
        """Shards in the epoch's order, and where each begins in it."""
        if not self.shuffle:
            return list(range(len(self.begins) - 1)), self.begins
        if self._turned is None or self._turned[:2] != (self.seed, epoch):
            count = len(self.begins) - 1
            turn = shuffled(range(count), count, key_of(self.seed, epoch)).tolist()
            starts = [0, *accumulate(self.begins[i + 1] - self.begins[i] for i in turn)]
            self._turned = self.seed, epoch, turn, starts
        return self._turned[2], self._turned[3]

    def _shard_at(self, epoch: int, position: int) -> _Part:
        turn, starts = self.turn(epoch)
        at = bisect_right(starts, position) - 1
        return _Part(starts[at], starts[at + 1],
                     lambda places: self._rows_of(epoch, turn[at], places))

    def _rows_of(self, epoch: int, shard: int, places: Any) -> Any:
        """Rows at these places of a shard's order."""
        begin, end = self.begins[shard], self.begins[shard + 1]
        return begin + shuffled(places, end - begin, key_of(self.seed, epoch, shard + 1))

    def _block_at(self, epoch: int, position: int) -> _Part:
        import numpy as np
        turn, starts = self.turn(epoch)
        if self._blocks is None or self._blocks[:2] != (self.seed, epoch):
            self._blocks = self.seed, epoch, _Blocks(np.diff(starts), self.open_shards)
            self._block = None
        if self._block is None or not self._block.begin <= position < self._block.end:
            blocks = self._blocks[2]
            number, begin, end = blocks.find(position)
            shares, key = blocks.shares(number), key_of(self.seed, epoch, 0, number)

            def rows(places: Any) -> Any:
                return self._mixed_rows(epoch, turn[number:], shares,
                                        shuffled(places, end - begin, key))
            if end - begin <= _CACHED_ROWS:
                rows = rows(np.arange(end - begin)).__getitem__
            self._block = _Part(begin, end, rows)
        return self._block

    def _mixed_rows(self, epoch: int, shards: list[int], shares: tuple[Any, Any],
                    places: Any) -> Any:
        """Rows at these places of the shares of several shards, one after the other."""
        import numpy as np
        begins = np.concatenate([[0], np.cumsum(shares[1] - shares[0])])
        owner = np.searchsorted(begins, places, side="right") - 1
        out = np.empty(len(places), np.int64)
        for i in np.unique(owner).tolist():
            here = owner == i
            out[here] = self._rows_of(epoch, shards[i], places[here] - begins[i] + shares[0][i])
        return out

    def line(self, epoch: int) -> Any:
        """All rows in the epoch's order of shards."""
        return ShardLine(self, epoch)

    # ── State ──

    def state(self) -> dict[str, Any]:
        """What the order depends on."""
        state: dict[str, Any] = {
            "seed": self.seed, "rows": self.count, "batch_size": self.batch_size,
            "shuffle": self.shuffle, "ends": self.ends}
        if self.shuffle == "blocks":
            state["open_shards"] = self.open_shards
        return {**state, **self._sizes()}

    def _sizes(self) -> dict[str, Any]:
        if self.shuffle not in ("shards", "blocks"):
            return {}
        sizes = (b - a for a, b in zip(self.begins, self.begins[1:]))
        return {"shards": [[len([*same]), size] for size, same in groupby(sizes)]}

    def take_over(self, state: dict[str, Any]) -> None:
        """Continues with the order of a state: its seed and, if shards are shuffled, their sizes,
        which a compaction changes. ValueError if it does not match."""
        for name, own in self.state().items():
            if name not in state:
                raise ValueError("%s: expected it in the state, found none" % name)
            if name not in ("seed", "shards") and state[name] != own:
                raise ValueError("%s: the state is of %r, expected %r"
                                 % (name, state[name], own))
        if self.shuffle in ("shards", "blocks"):
            self._resize(state["shards"])
        self.seed = state["seed"]

    def _resize(self, shards: Any) -> None:
        begins = [0, *accumulate(chain.from_iterable(repeat(size, count)
                                                     for count, size in shards))]
        if begins[-1] != self.count:
            raise ValueError("shards: the state is of %d rows, expected %d"
                             % (begins[-1], self.count))
        self.begins = begins
        self._turned = self._blocks = self._block = None


class ShardLine:
    """All rows in the epoch's order of shards, each as it is stored."""

    def __init__(self, order: Order, epoch: int) -> None:
        import numpy as np
        self._order, self._epoch = order, epoch
        turn, self._starts = order.turn(epoch)
        self._rows = np.asarray(order.begins, np.int64)[turn] - self._starts[:-1]
        self._shown = np.asarray(self._starts, np.int64)
        self.count = order.count

    def rows(self, positions: Any) -> Any:
        import numpy as np
        return positions + self._rows[np.searchsorted(self._shown, positions, side="right") - 1]

    def sizes(self, begin: int, end: int) -> list[int]:
        """Rows of each shard between two positions."""
        first = max(0, bisect_right(self._starts, begin) - 1)
        sizes = []
        for start, stop in zip(self._starts[first:], self._starts[first + 1:]):
            if start >= end:
                break
            if min(stop, end) > max(start, begin):
                sizes.append(min(stop, end) - max(start, begin))
        return sizes

    def piece(self, begin: int, end: int, key: int) -> Any:
        """Rows at places of a piece of the line, mixed within it; None if they are already."""
        own = self._order
        mixed = Order(end - begin, own.batch_size, own.shuffle, key, own.ends,
                      self.sizes(begin, end), own.open_shards)
        return lambda places: self.rows(begin + mixed.rows(self._epoch, places))
