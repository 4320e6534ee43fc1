"""Datasets for torch: rows by number, or batches in an order that is independent of the number of
processes."""
from __future__ import annotations

import multiprocessing
import os
import warnings
from collections import deque
from operator import index
from typing import Any, Callable, Iterator, Literal

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data import Dataset as _MapDataset

from ._columns import Column
from ._identity import check_identity, identity
from ._lanes import MOST_PARTS, Part, lanes_of, parts_of
from ._mix import Mix, MixOrder, at_state, check_source, source_identity, sources_of
from ._order import Order
from .._types import Path, Unpack
from ._read import Dataset, open, version_of
from ._subset import Subset
from ._types import LoaderOptions, OpenOptions

_AHEAD = 16  # batches whose shards are being fetched

__all__ = ["Loader", "TorchBatches", "TorchDataset"]

Ends = Literal["drop", "pad", "uneven"]
Collate = Literal["list", "padded", "nested"]
Partition = Literal["batches", "shards"]


def _dataset(source: Dataset | Path, options: OpenOptions) -> Dataset:
    return source if isinstance(source, Dataset) else open(source, **options)


class TorchDataset(_MapDataset[Any]):
    """Map-style: length, and rows by number as dicts of tensors. A DataLoader that fetches
    several numbers at once reads them together. Its state, which torchdata's
    StatefulDataLoader saves, identifies the rows.

    source: a Dataset, or an argument of open, with its options. transform: called with each
    row."""

    def __init__(self, source: Dataset | Path, *,
                 transform: Callable[[Any], Any] | None = None,
                 **options: Unpack[OpenOptions]) -> None:
        self.dataset = _dataset(source, options)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        batch = self.dataset.take(numbers, "torch")
        rows = [{name: values[i] for name, values in batch.items()}
                for i in range(len(numbers))]
        return rows if self.transform is None else [self.transform(row) for row in rows]

    def state_dict(self) -> dict[str, Any]:
        """Identity of the rows."""
        return {"dataset": identity(self.dataset)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """ValueError if the state belongs to other rows."""
        check_identity(self.dataset, identity(self.dataset), state)


_WORKERS = 1024  # at most, of a DataLoader
_SEED = (1 << 32) - 1


def _signed(seed: int) -> int:
    """The 64 bits of a seed that count, for a tensor."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


class _Rounds:
    """Numbers the iterations of a DataLoader's workers, in shared memory. All workers of one
    iteration get the same number, whatever became of the workers of an earlier one: a process
    that is reused begins every iteration and counts; a new one takes the number of other new ones
    with the base seed of this iteration, or the next number if it is the first.

    Each worker writes its own slots only: number << 32 | seed of its last iteration, of the last
    one that it began as a new process, and of the one before that."""

    def __init__(self) -> None:
        self._slots = torch.zeros((_WORKERS, 3), dtype=torch.int64)
        self._slots.share_memory_()  # type: ignore[no-untyped-call]
        self._mine: tuple[int, int] | None = None  # process and number

    def last(self) -> int:
        return int((self._slots >> 32).max())

    def begin(self, worker: Any) -> int:
        """Number of the iteration that this worker begins."""
        if worker.id >= _WORKERS:
            raise ValueError("num_workers: expected at most %d, found %d"
                             % (_WORKERS, worker.num_workers))
        # A base seed may come again with more workers, of which those that are new would take the
        # number of the earlier iteration.
        seed = (worker.seed - worker.id + worker.num_workers * 0x9e3779b1) & _SEED
        slots = self._slots[worker.id]
        if self._mine is not None and self._mine[0] == os.getpid():
            number = self._mine[1] + 1
        else:
            # One look at all slots: another worker may begin this iteration at any moment.
            own, rows = int(slots[0]) >> 32, self._slots.tolist()
            begun = [slot >> 32 for row in rows for slot in row[1:]
                     if slot & _SEED == seed and slot >> 32 > own]
            number = max(begun) if begun else (max(map(max, rows)) >> 32) + 1
            slots[2] = slots[1].item()
            slots[1] = number << 32 | seed
        slots[0] = number << 32 | seed
        self._mine = os.getpid(), number
        return number


def _collated(batch: dict[str, Any], collate: Collate, nullable: set[str]) -> dict[str, Any]:
    """A batch without Column, as the option says; of one schema all have the same keys."""
    if not any(isinstance(values, Column) for values in batch.values()):
        return batch
    made: dict[str, Any] = {}
    for name, values in batch.items():
        if not isinstance(values, Column):
            made[name] = values
        elif collate == "list" or values.nested or values.encoding in ("utf8", "binary"):
            made[name] = list(values)
        else:
            if collate == "nested" and values.offsets is not None:
                ends = torch.tensor(values.offsets)
                made[name] = torch.nested.nested_tensor_from_jagged(values.values.clone(), ends)
            else:
                made[name] = values.padded()
                if values.offsets is not None:
                    if name + ".lengths" in batch:
                        raise ValueError("collate='padded': the lengths of %r would replace the "
                                         "column %r" % (name, name + ".lengths"))
                    made[name + ".lengths"] = torch.tensor(values.lengths)
            if name in nullable:
                made[name + ".valid"] = torch.ones(len(values), dtype=torch.bool) \
                    if values.valid is None else torch.tensor(values.valid)
    return made


class TorchBatches(IterableDataset[Any]):
    """Batches of one rank: pass it to a DataLoader with batch_size=None, or use loader(), whose
    state can be saved in the middle of an epoch.

    All ranks share one sequence of batches of batch_size rows, which depends on seed and epoch
    only: batch i belongs to rank i % ranks, and worker w of W yields every W-th of a rank's
    batches, so that the order is the same with any number of workers.

    Each iteration is the next epoch, from 0 on, with workers, persistent or not, and without,
    also after one that was left early; set_epoch chooses another. Ranks agree if each begins as
    many iterations, or calls set_epoch before each.

    shuffle: True shuffles all rows; "shards" shuffles the shards and the rows within each, which
    reads one file after the other; "blocks" mixes the rows of open_shards shards at any time, in
    shuffled order, so that no more than these are read at once. ends: if rows do not fill the last
    batch of every rank, "drop" omits them (all rows of a dataset that is too small for one batch a
    rank: a warning says so), "pad" continues with the first rows, and "uneven" makes the last batch
    smaller and gives some ranks one batch less. transform: called with each batch.

    partition: "batches" deals out the batches, so that every rank and worker reads of every shard.
    "shards" gives each worker of each rank shards of its own for an epoch, as many rows as the
    others have, of which it reads each once; only a shard at the border of two is read by both.
    shuffle=True and "blocks" then mix the rows of open_shards of a worker's shards. All rows are
    delivered as ends says; which batch is whose depends on the numbers of ranks and workers. A
    state goes on where it was; with other numbers of ranks or workers, what is left of the epoch
    is dealt out again.

    source: a Dataset, an argument of open, with its options, or a Mix of several datasets.

    collate: what becomes of columns that vary in length or have nulls. "list": a list of rows,
    None where one is null. "padded": lists of numbers as one tensor with zeros behind the shorter
    rows, and their lengths as <name>.lengths; "nested": as a nested tensor (layout torch.jagged).
    With both, numbers that are null are zeros (or empty), and <name>.valid, which all batches have
    if the column may have nulls, says which are not; text and bytes stay lists."""

    def __init__(self, source: Dataset | Mix | Path, batch_size: int, *,
                 shuffle: bool | Literal["shards", "blocks"] = True, seed: int = 0,
                 rank: int | None = None, ranks: int | None = None, ends: Ends = "drop",
                 open_shards: int = 16, partition: Partition = "batches",
                 collate: Collate = "list",
                 transform: Callable[[Any], Any] | None = None,
                 **options: Unpack[OpenOptions]) -> None:
        if isinstance(source, Mix) and options:
            raise TypeError("%s: expected it of Mix" % ", ".join(options))
        # Numbers of numpy would overflow, and states with them would be no JSON.
        batch_size, seed, open_shards = index(batch_size), index(seed), index(open_shards)
        self.rank, self.ranks = _ranks(rank, ranks)
        self.transform = transform
        if collate not in ("list", "padded", "nested"):
            raise ValueError("collate: expected list, padded or nested, found %r" % (collate,))
        self.collate = collate
        if partition not in ("batches", "shards"):
            raise ValueError("partition: expected batches or shards, found %r" % (partition,))
        self.partition = partition
        if partition == "shards" and shuffle is True:
            shuffle = "blocks"
        self._use(source if isinstance(source, Mix) else _dataset(source, options), batch_size,
                  shuffle, seed, ends, open_shards)
        if ends == "drop" and 0 < len(self.dataset) < batch_size * self.ranks:
            warnings.warn("%s: %d rows fill no batch of %d for each of %d ranks: with ends=\"drop\" "
                          "there are none" % (self.dataset.path, len(self.dataset), batch_size,
                                              self.ranks), stacklevel=2)
        # Epoch, batches (of all ranks) delivered before, the last round before this epoch, and
        # the seed; shared memory, so that workers see a change, and later workers a state that
        # these load.
        self._place = torch.tensor([0, 0, 0, _signed(seed)])
        self._place.share_memory_()  # type: ignore[no-untyped-call]
        # With partition="shards", how earlier parts of the epoch were read.
        self._parts = torch.zeros((MOST_PARTS, 3), dtype=torch.int64)
        self._parts.share_memory_()  # type: ignore[no-untyped-call]
        self._rounds = _Rounds()
        # The last iteration in this process: its epoch, batches delivered before, in which parts,
        # and how many of its batches this process has yielded.
        self._now: tuple[int, int, list[Part]] | None = None
        self._yielded = 0
        self._restored: int | None = None  # a worker's state: its round

    def _use(self, dataset: Dataset | Mix, batch_size: int, shuffle: Any, seed: int, ends: str,
             open_shards: int) -> None:
        self.dataset = dataset
        self._nullable = {name for name, facts in dataset.schema.items() if facts.get("nullable")}
        self._order = \
            MixOrder(dataset, batch_size, shuffle, seed, ends, open_shards) \
            if isinstance(dataset, Mix) else \
            Order(len(dataset), batch_size, shuffle, seed, ends,
                  [stop - start for start, stop in dataset._layout.bounds()], open_shards)
        self._identity = source_identity(dataset)

    def _change(self, dataset: Dataset | Mix) -> None:
        """Goes over to another version."""
        order = self._order
        self._use(dataset, order.batch_size, order.shuffle, order.seed, order.ends,
                  order.open_shards)

    def refresh(self, version: int | None = None) -> int | None:
        """Goes over to the version in force, or that of this number, between epochs; until then all
        epochs are of the version that was opened, also after later commits. Returns the number,
        which all ranks must have. Workers of a DataLoader that is not loader() must not be
        persistent."""
        epoch = self.epoch
        self._change(self.dataset._at(version_of(version, None)[0]))
        self.set_epoch(epoch)
        return self.dataset.version

    @property
    def epoch(self) -> int:
        """The epoch under way, else the next one; with workers of a DataLoader that is not
        loader() the one begun last."""
        epoch, _, base, _ = self._place.tolist()
        begun: int = epoch + max(0, self._rounds.last() - base - 1)
        return begun

    def set_epoch(self, epoch: int) -> None:
        """The next iteration starts at the first batch of this epoch. Not needed for epochs one
        after the other. To be called between iterations, in the process that iterates."""
        self._begin(epoch, 0)

    def _begin(self, epoch: int, delivered: int, parts: list[Part] | None = None) -> None:
        self._set_place(epoch, delivered, self._rounds.last(), parts)
        self._now = None
        self._yielded = 0

    def _set_place(self, epoch: int, delivered: int, base: int,
                   parts: list[Part] | None = None) -> None:
        self._place[:] = torch.tensor([epoch, delivered, base, _signed(self._order.seed)])
        # In one copy: other workers may read it while this one writes the same.
        rows = list(parts or [])
        self._parts[:] = torch.tensor(rows + [(0, 0, 0)] * (MOST_PARTS - len(rows)))

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._order.steps(0, self.rank, self.ranks)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            return self._alone()
        # Now, not with the first batch: each worker begins each iteration, even one that is left
        # before it is asked for any.
        number, self._restored = self._restored, None
        skipped = self._yielded
        if number is None:
            skipped = self._yielded = 0
            number = self._rounds.begin(worker)
        epoch, begun, base, seed = self._place.tolist()
        if seed != _signed(self._order.seed):
            self._order.seed = seed
        rounds = max(0, number - base - 1)
        self._now = (epoch + rounds, 0, []) if rounds else (epoch, begun, self._earlier())
        return self._batches(*self._now, worker.id + skipped * worker.num_workers,
                             worker.num_workers)

    def _alone(self) -> Iterator[Any]:
        if self._now is not None or self._rounds.last() > int(self._place[2]):
            self.set_epoch(self.epoch + 1)
        epoch, begun = self._place.tolist()[:2]
        self._now = epoch, begun, self._earlier()
        self._yielded = 0
        yield from self._batches(*self._now, 0, 1)
        self.set_epoch(epoch + 1)

    def _numbers(self, epoch: int, begun: int, parts: list[Part], first: int,
                 step: int) -> Iterator[Any]:
        """Row numbers of each batch that a worker, the first of `step`, yields."""
        if self.partition == "batches":
            for i in range(first, self._order.steps(begun, self.rank, self.ranks), step):
                yield self._order.batch(epoch, begun + self.rank + i * self.ranks)
            return
        lanes, done = lanes_of(self._order, epoch, parts, self.ranks, step)
        for i in range(done + first, lanes.steps(self.rank), step):
            yield lanes.batch(self.rank, i)

    def _batches(self, epoch: int, begun: int, parts: list[Part], first: int,
                 step: int) -> Iterator[Any]:
        numbers_of = self._numbers(epoch, begun, parts, first, step)
        for numbers in self._fetched_ahead(numbers_of):
            batch = _collated(self.dataset.take(numbers, "torch"), self.collate, self._nullable)
            self._yielded += 1
            yield batch if self.transform is None else self.transform(batch)

    def _fetched_ahead(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same; where shards are cached on this machine, those of the next batches are being
        fetched."""
        import numpy as np
        bases = self.dataset._bases if isinstance(self.dataset, Mix) else [0, len(self.dataset)]
        cached = []
        for base, end, one in zip(bases, bases[1:], sources_of(self.dataset)):
            if one._shards.place.cache is not None:
                whole = one._layout.whole if isinstance(one._layout, Subset) else one._layout
                first = one._limits[0] if one._limits else 0
                stored = np.array([begin for begin, _ in whole.bounds()], np.int64)
                cached.append((one._shards, base, end, stored - first))
        if not cached:
            yield from batches
            return
        ahead: deque[Any] = deque()
        for numbers in batches:
            ahead.append(numbers)
            wanted = np.asarray(numbers, np.int64)
            for shards, base, end, stored in cached:
                here = wanted[(wanted >= base) & (wanted < end)] - base
                found = np.unique(np.searchsorted(stored, here, "right") - 1)
                shards.prefetch(found.tolist())
            if len(ahead) > _AHEAD:
                yield ahead.popleft()
        yield from ahead

    # ── State ──

    def state_dict(self) -> dict[str, Any]:
        """Identity of the rows, parameters of their order, and batches delivered by this process.
        In a worker of a StatefulDataLoader it is the worker's, valid for the same number of
        workers. RuntimeError if workers of another loader have yielded since: only loader() and
        a StatefulDataLoader know how many batches arrived."""
        epoch, begun, base, _ = self._place.tolist()
        epoch, begun, parts = self._now or (epoch, begun, self._earlier())
        own = self._yielded
        if get_worker_info() is None:
            if self._rounds.last() > base:
                raise RuntimeError("expected the state of loader() or of a StatefulDataLoader: "
                                   "workers have yielded the batches, and this process does not "
                                   "know how many arrived")
            begun, own, parts = begun + own * self.ranks, 0, self._after(parts, 1, own)
        return {**self._parameters(parts), "epoch": epoch, "delivered": begun, "yielded": own}

    def _parameters(self, parts: list[Part]) -> dict[str, Any]:
        found = {"dataset": self._identity, **self._order.state()}
        if self.partition == "shards":
            found.update(partition="shards", parts=[list(part) for part in parts])
        return found

    def _earlier(self) -> list[Part]:
        """How the epoch was read before, with partition="shards"."""
        return [(ranks, workers, steps) for ranks, workers, steps in self._parts.tolist() if ranks]

    def _after(self, parts: list[Part], workers: int, steps: int) -> list[Part]:
        """These parts and one more, in which each rank got so many batches."""
        if parts and parts[-1][:2] == (self.ranks, workers):
            return [*parts[:-1], (self.ranks, workers, parts[-1][2] + steps)]
        return [*parts, (self.ranks, workers, steps)] if steps else parts

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues after the batches delivered, with the state's seed; the number of workers or
        ranks may differ. ValueError, which says what differs, if batch_size, shuffle,
        open_shards, ends or keys do, or if the dataset is another one. If it was appended to or
        overwritten since, the epoch goes on with the version where it began; ValueError if that is
        no longer kept. A compaction keeps states valid."""
        self._return(state)
        check_source(self.dataset, self._identity, state)
        if state.get("partition", "batches") != self.partition:
            raise ValueError("partition: the state is of %r, expected %r"
                             % (state.get("partition", "batches"), self.partition))
        parts = parts_of(state) if self.partition == "shards" else []
        self._order.take_over(state)
        own = state.get("yielded", 0)
        worker = get_worker_info()
        if worker is None:
            if own:
                raise ValueError("expected the state of a whole loader, found a worker's")
            self._begin(state["epoch"], state["delivered"], parts)
        else:
            # All workers write the same.
            self._restored = self._rounds.begin(worker)
            self._set_place(state["epoch"], state["delivered"], self._restored - 1, parts)
            self._now = state["epoch"], state["delivered"], parts
            self._yielded = own

    def _return(self, state: dict[str, Any]) -> None:
        """Goes over to the version of a state, if it is kept and another one."""
        before = at_state(self.dataset, self._identity, state.get("dataset"))
        if before is not self.dataset:
            self._change(before)

    def loader(self, **options: Unpack[LoaderOptions]) -> Loader:
        """A DataLoader whose state counts the batches given to the training loop. options: of
        torch.utils.data.DataLoader, such as num_workers. Workers that read a URL are started by
        spawn, unless multiprocessing_context says otherwise: each runs the program again, which
        therefore trains under `if __name__ == "__main__":` only."""
        return Loader(self, **options)


def _ranks(rank: int | None, ranks: int | None) -> tuple[int, int]:
    """As given, else from torch.distributed."""
    if (rank is None) != (ranks is None):
        raise ValueError("expected rank and ranks both or neither")
    if rank is None or ranks is None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
    rank, ranks = index(rank), index(ranks)
    if not 0 <= rank < ranks:
        raise ValueError("rank: expected 0 to %d, found %d" % (ranks - 1, rank))
    return rank, ranks


class Loader(DataLoader[Any]):
    """DataLoader of TorchBatches. Each iteration is the next epoch, also after one that was left
    early, or after load_state_dict the rest of one; state_dict may be called at any batch. It
    counts batches given to the loop, not those that workers have prefetched."""

    def __init__(self, batches: TorchBatches, **options: Unpack[LoaderOptions]) -> None:
        if options.pop("batch_size", None) is not None:  # type: ignore[typeddict-item]
            raise TypeError("batch_size: TorchBatches forms the batches itself")
        remote = any(one._shards.place.folder is None for one in sources_of(batches.dataset))
        if remote and options.get("num_workers"):
            # Clients of object stores do not survive a fork.
            options.setdefault("multiprocessing_context", "spawn")
            # In a worker that imports the program, as Python itself finds out.
            if getattr(multiprocessing.current_process(), "_inheriting", False):
                raise RuntimeError("workers that read a URL are started by spawn, which runs the "
                                   "program in each again: put what trains under "
                                   "`if __name__ == \"__main__\":`")
        self._delivered = 0
        self._left = False  # an iteration was begun, and not ended
        super().__init__(batches, batch_size=None, **options)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches: TorchBatches = self.dataset  # type: ignore[assignment]
        if self._left:
            self.set_epoch(self.epoch + 1)
        epoch = self.epoch
        self._delivered, self._left = 0, True
        for batch in super().__iter__():
            self._delivered += 1
            yield batch
        self.set_epoch(epoch + 1)

    @property
    def epoch(self) -> int:
        """Epoch of the next batch."""
        return int(self.dataset._place[0])  # type: ignore[attr-defined]

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch that the next iteration starts, as set_epoch of TorchBatches does."""
        self.dataset.set_epoch(epoch)  # type: ignore[attr-defined]
        self._delivered, self._left = 0, False

    def refresh(self, version: int | None = None) -> int | None:
        """As that of TorchBatches."""
        found: int | None = self.dataset.refresh(version)  # type: ignore[attr-defined]
        self._delivered, self._left = 0, False
        self._iterator = None
        return found

    def state_dict(self) -> dict[str, Any]:
        """As that of TorchBatches, at the batch that the loop was given last."""
        batches: TorchBatches = self.dataset  # type: ignore[assignment]
        epoch, begun = batches._place.tolist()[:2]
        parts = batches._after(batches._earlier(), max(1, self.num_workers), self._delivered)
        return {**batches._parameters(parts), "epoch": epoch,
                "delivered": begun + self._delivered * batches.ranks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As that of TorchBatches."""
        self.dataset.load_state_dict(state)  # type: ignore[attr-defined]
        self._delivered, self._left = 0, False
        # Persistent workers still have the old order.
        self._iterator = None
