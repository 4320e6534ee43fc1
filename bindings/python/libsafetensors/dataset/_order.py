"""Which rows are in which batch: a function of seed and epoch, without stored state."""
from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, chain, groupby, repeat
from typing import Any

__all__ = ["Order"]

_MASK = (1 << 64) - 1
_CACHED_ROWS = 1 << 21  # most rows whose order is cached for an epoch


def _mixed(value: int) -> int:
    """64 bits that depend on all bits of value (the finaliser of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def _key(*parts: int) -> int:
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
    rounds = [np.uint64(_key(key, i)) for i in range(6)]
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


class Order:
    """The sequence of batches of all ranks. sizes: rows of each shard."""

    def __init__(self, count: int, batch_size: int, shuffle: bool | str, seed: int, ends: str,
                 sizes: list[int]) -> None:
        if batch_size < 1:
            raise ValueError("batch_size: expected a number of rows from 1 on, found %d"
                             % batch_size)
        if shuffle not in (True, False, "shards"):
            raise ValueError("shuffle: expected True, False or 'shards', found %r" % (shuffle,))
        if ends not in ("drop", "pad", "uneven"):
            raise ValueError("ends: expected 'drop', 'pad' or 'uneven', found %r" % (ends,))
        self.count = count
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.ends = ends
        self._begins = [0, *accumulate(sizes)]
        self._turned: tuple[int, int, list[int], list[int]] | None = None
        self._whole: tuple[int, int, Any] | None = None

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

    def batch(self, epoch: int, number: int) -> Any:
        """Numbers of the rows of a batch."""
        import numpy as np
        begin = number * self.batch_size
        end = begin + self.batch_size
        if self.ends == "uneven":
            end = min(end, self.count)
        if not self.shuffle:
            if end <= self.count:
                return range(begin, end)
            return np.arange(begin, end) % self.count
        positions = np.arange(begin, end) % self.count
        if self.shuffle == "shards":
            return self._by_shards(epoch, positions)
        if self.count > _CACHED_ROWS:
            return shuffled(positions, self.count, _key(self.seed, epoch))
        return self._all(epoch)[positions]

    def _all(self, epoch: int) -> Any:
        """The order of all rows, cached: faster than batch by batch for few rows."""
        if self._whole is None or self._whole[:2] != (self.seed, epoch):
            order = shuffled(range(self.count), self.count, _key(self.seed, epoch))
            self._whole = self.seed, epoch, order
        return self._whole[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None, "_turned": None}

    def _turn(self, epoch: int) -> tuple[list[int], list[int]]:
        """Shards in the epoch's order, and where each begins in it."""
        if self._turned is None or self._turned[:2] != (self.seed, epoch):
            count = len(self._begins) - 1
            turn = shuffled(range(count), count, _key(self.seed, epoch)).tolist()
            starts = [0, *accumulate(self._begins[i + 1] - self._begins[i] for i in turn)]
            self._turned = self.seed, epoch, turn, starts
        return self._turned[2], self._turned[3]

    def _by_shards(self, epoch: int, positions: Any) -> Any:
        import numpy as np
        turn, starts = self._turn(epoch)
        out = np.empty(len(positions), np.int64)
        done = 0
        while done < len(positions):
            at = bisect_right(starts, int(positions[done])) - 1
            here = (positions >= starts[at]) & (positions < starts[at + 1])
            size, begin = starts[at + 1] - starts[at], self._begins[turn[at]]
            key = _key(self.seed, epoch, turn[at] + 1)
            out[here] = begin + shuffled(positions[here] - starts[at], size, key)
            done = int(np.flatnonzero(here)[-1]) + 1
        return out

    # ── State ──

    def state(self) -> dict[str, Any]:
        """What the order depends on."""
        state: dict[str, Any] = {
            "seed": self.seed, "rows": self.count, "batch_size": self.batch_size,
            "shuffle": self.shuffle, "ends": self.ends}
        if self.shuffle == "shards":
            sizes = (b - a for a, b in zip(self._begins, self._begins[1:]))
            state["shards"] = [[len([*same]), size] for size, same in groupby(sizes)]
        return state

    def take_over(self, state: dict[str, Any]) -> None:
        """Continues with the order of a state: its seed and, if shards are shuffled, their sizes,
        which a compaction changes. ValueError if it does not match."""
        for name, own in self.state().items():
            if name not in state:
                raise ValueError("%s: expected it in the state, found none" % name)
            if name not in ("seed", "shards") and state[name] != own:
                raise ValueError("%s: the state is of %r, expected %r"
                                 % (name, state[name], own))
        if self.shuffle == "shards":
            sizes = chain.from_iterable(repeat(size, count) for count, size in state["shards"])
            begins = [0, *accumulate(sizes)]
            if begins[-1] != self.count:
                raise ValueError("shards: the state is of %d rows, expected %d"
                                 % (begins[-1], self.count))
            self._begins = begins
            self._turned = None
        self.seed = state["seed"]
