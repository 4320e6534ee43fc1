"""Shards that belong to a rank and a worker for an epoch."""
from __future__ import annotations

from itertools import accumulate
from typing import Any

from ._order import Order, key_of

__all__ = ["MOST_PARTS", "Part", "lanes_of", "parts_of"]

MOST_PARTS = 32  # in which an epoch is read by different numbers of ranks or workers
_MOST_LANES = 1 << 20

Part = tuple[int, int, int]  # ranks, workers, and batches that each rank delivered


class _Rest:
    """What lanes have not delivered, in their order."""

    def __init__(self, lanes: Lanes, steps: int) -> None:
        self._lanes = lanes
        self._spans = lanes.left(steps)
        self._starts = [0, *accumulate(end - begin for _, begin, end in self._spans)]
        self.count = self._starts[-1]

    def rows(self, positions: Any) -> Any:
        import numpy as np
        out = np.empty(len(positions), np.int64)
        at = np.searchsorted(np.asarray(self._starts), positions, side="right") - 1
        for i in np.unique(at).tolist():
            here = at == i
            lane, begin, _ = self._spans[i]
            out[here] = self._lanes.rows(lane, positions[here] - self._starts[i] + begin)
        return out

    def piece(self, begin: int, end: int, key: int) -> Any:
        return None


class Lanes:
    """Rows that are laid out in a line, of which each worker of each rank has a piece of its own,
    a lane; batch i of a rank is its worker's i % workers. A lane's rows
    are shuffled within it, but for those of a rest, which are already."""

    def __init__(self, line: Any, order: Order, ranks: int, workers: int) -> None:
        size = order.batch_size
        whole, rest = divmod(line.count, size)
        every = whole if order.ends == "drop" else whole + (rest > 0)
        self._line, self._order = line, order
        self.ranks, self.workers = ranks, workers
        self._steps: list[int] = [
            every // ranks + (order.ends != "drop" and
                              (rank < every % ranks or order.ends == "pad" and every % ranks > 0))
            for rank in range(ranks)]
        # Where each lane begins: of a rank, the one with its last batch stands last.
        self._begins: list[int] = []
        at = 0
        for steps in self._steps:
            begins = [0] * workers
            for turn in range(workers):
                worker = (steps + turn) % workers
                begins[worker] = at
                at += len(range(worker, steps, workers)) * size
            self._begins += begins
        self._end = min(at, line.count)
        self._pieces: dict[int, Any] = {}

    def steps(self, rank: int) -> int:
        return self._steps[rank]

    def batch(self, rank: int, step: int) -> Any:
        """Numbers of the rows of a rank's batch."""
        import numpy as np
        lane = rank * self.workers + step % self.workers
        begin = step // self.workers * self._order.batch_size
        end = begin + self._order.batch_size
        if self._order.ends == "uneven":
            end = min(end, self._line.count - self._begins[lane])
        return self.rows(lane, np.arange(begin, end))

    def _span(self, lane: int) -> tuple[int, int]:
        """Positions in the line of a lane's rows, without those that pad it."""
        rank, worker = divmod(lane, self.workers)
        begin = self._begins[lane]
        batches = len(range(worker, self._steps[rank], self.workers))
        end = min(begin + batches * self._order.batch_size, self._line.count)
        return min(begin, end), end

    def rows(self, lane: int, positions: Any) -> Any:
        """Numbers of the rows at these positions of a lane."""
        import numpy as np
        begin, end = self._span(lane)
        if lane not in self._pieces:
            key = key_of(self._order.seed, self.ranks * self.workers, lane)
            self._pieces[lane] = self._line.piece(begin, end, key) \
                if self._order.shuffle and begin < end else None
        piece = self._pieces[lane]
        outside = positions >= (0 if piece is None else end - begin)
        out = np.empty(len(positions), np.int64)
        out[outside] = self._line.rows((self._begins[lane] + positions[outside])
                                       % self._line.count)
        if not outside.all():
            out[~outside] = piece(positions[~outside])
        return out

    def left(self, steps: int) -> list[tuple[int, int, int]]:
        """Lanes, and the positions in each that are left after so many batches of each rank; the
        rows of no lane last, as one of their own."""
        found = []
        for lane in range(self.ranks * self.workers):
            begin, end = self._span(lane)
            done = len(range(lane % self.workers, steps, self.workers)) * self._order.batch_size
            if done < end - begin:
                found.append((lane, done, end - begin))
        if self._end < self._line.count:
            last = self.ranks * self.workers - 1
            begin = self._begins[last]
            found.append((last, self._end - begin, self._line.count - begin))
        return found


def lanes_of(order: Order, epoch: int, parts: list[Part], ranks: int,
             workers: int) -> tuple[Lanes, int]:
    """Lanes of what is left after earlier parts of the epoch, and how many batches of each rank
    were delivered. As many ranks and workers as before go on where they were. ValueError if these
    were one part too many, which no later state could tell."""
    line = order.line(epoch)
    done = 0
    if parts and parts[-1][:2] == (ranks, workers):
        parts, done = parts[:-1], parts[-1][2]
    if len(parts) >= MOST_PARTS:
        raise ValueError("expected an epoch read by at most %d different numbers of ranks or "
                         "workers, found more: start one with set_epoch()" % MOST_PARTS)
    for had, each, steps in parts:
        line = _Rest(Lanes(line, order, had, each), steps)
    return Lanes(line, order, ranks, workers), done


def parts_of(state: dict[str, Any]) -> list[Part]:
    """The parts that a state tells. ValueError if they cannot be."""
    found = state.get("parts")
    if not isinstance(found, list) or len(found) > MOST_PARTS:
        raise ValueError("parts: expected a list of at most %d, found %.80r" % (MOST_PARTS, found))
    for one in found:
        if not (isinstance(one, (list, tuple)) and len(one) == 3
                and all(type(number) is int and number >= 0 for number in one)
                and 0 < one[0] * one[1] <= _MOST_LANES and one[2] < 1 << 62):
            raise ValueError("parts: expected ranks, workers and batches, found %.80r" % (one,))
    return [(one[0], one[1], one[2]) for one in found]
