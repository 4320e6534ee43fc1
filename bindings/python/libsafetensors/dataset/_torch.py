"""Datasets for torch: rows by number, or batches in an order that is independent of the number of
processes."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Literal

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data import Dataset as _MapDataset

from ._identity import check_identity, identity
from ._order import Order
from .._types import Path, Unpack
from ._read import Dataset, open
from ._types import LoaderOptions, OpenOptions

__all__ = ["Loader", "TorchBatches", "TorchDataset"]

Ends = Literal["drop", "pad", "uneven"]


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
        return {"dataset": identity(self.dataset)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """ValueError if the state belongs to other rows."""
        check_identity(self.dataset, identity(self.dataset), state)


class TorchBatches(IterableDataset[Any]):
    """Batches of one rank: pass it to a DataLoader with batch_size=None, or use loader(), whose
    state can be saved in the middle of an epoch.

    All ranks share one sequence of batches of batch_size rows, which depends on seed and epoch
    only: batch i belongs to rank i % ranks, and worker w of W yields every W-th of a rank's
    batches, so that the order is the same with any number of workers.

    shuffle: True shuffles all rows; "shards" shuffles the shards and the rows within each, which
    reads one file after the other; "blocks" mixes the rows of open_shards shards at any time, in
    shuffled order, so that no more than these are read at once. ends: if rows do not fill the last batch of every rank,
    "drop" omits them, "pad" continues with the first rows, and "uneven" makes the last batch
    smaller and gives some ranks one batch less. transform: called with each batch."""

    def __init__(self, source: Dataset | Path, batch_size: int, *,
                 shuffle: bool | Literal["shards", "blocks"] = True, seed: int = 0,
                 rank: int | None = None, ranks: int | None = None, ends: Ends = "drop",
                 open_shards: int = 16,
                 transform: Callable[[Any], Any] | None = None,
                 **options: Unpack[OpenOptions]) -> None:
        self.dataset = _dataset(source, options)
        self.rank, self.ranks = _ranks(rank, ranks)
        self.transform = transform
        self._order = Order(len(self.dataset), batch_size, shuffle, seed, ends,
                            [stop - start for start, stop in self.dataset._layout.bounds()],
                            open_shards)
        self._identity = identity(self.dataset)
        # Epoch, and batches (of all ranks) delivered before; shared memory, so that persistent
        # workers see a change.
        self._place = torch.zeros(2, dtype=torch.int64)
        self._place.share_memory_()  # type: ignore[no-untyped-call]
        # The same and what this process has yielded since, in a worker with its own state.
        self._own: tuple[int, int, int] | None = None
        self._yielded = 0

    @property
    def epoch(self) -> int:
        return int(self._place[0])

    def set_epoch(self, epoch: int) -> None:
        """Starts the next iteration at the first batch of this epoch."""
        self._begin(epoch, 0)

    def _begin(self, epoch: int, delivered: int) -> None:
        self._place[:] = torch.tensor([epoch, delivered])
        self._own = None
        self._yielded = 0

    def _begun(self) -> tuple[int, int, int]:
        """Epoch, batches delivered before, and how many of its batches this process skips."""
        epoch, delivered = self._place.tolist()
        return self._own or (epoch, delivered, 0)

    def __len__(self) -> int:
        """Batches of this rank in an epoch."""
        return self._order.steps(0, self.rank, self.ranks)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        mine, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        epoch, begun, skipped = self._begun()
        self._yielded = skipped
        steps = self._order.steps(begun, self.rank, self.ranks)
        for step in range(mine + skipped * workers, steps, workers):
            numbers = self._order.batch(epoch, begun + self.rank + step * self.ranks)
            batch = self.dataset.take(numbers, "torch")
            self._yielded += 1
            yield batch if self.transform is None else self.transform(batch)
        self._own = None
        if worker is None:
            self.set_epoch(epoch + 1)

    # ── State ──

    def state_dict(self) -> dict[str, Any]:
        """Identity of the rows, parameters of their order, and batches delivered by this process.
        In a worker of a StatefulDataLoader it is the worker's, valid for the same number of
        workers."""
        epoch, begun, skipped = self._begun()
        own = max(self._yielded, skipped)
        if get_worker_info() is None:
            begun, own = begun + own * self.ranks, 0
        return {**self._parameters(), "epoch": epoch, "delivered": begun, "yielded": own}

    def _parameters(self) -> dict[str, Any]:
        return {"dataset": self._identity, **self._order.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues after the batches delivered, with the state's seed; the number of workers or
        ranks may differ. ValueError, which says what differs, if batch_size, shuffle,
        open_shards, ends or keys do, or if the dataset was appended to or overwritten since, or
        is another one. A compaction keeps states valid."""
        check_identity(self.dataset, self._identity, state)
        self._order.take_over(state)
        own = state.get("yielded", 0)
        if get_worker_info() is None:
            if own:
                raise ValueError("expected the state of a whole loader, found a worker's")
            self._begin(state["epoch"], state["delivered"])
        else:
            self._own = state["epoch"], state["delivered"], own
            self._yielded = own

    def loader(self, **options: Unpack[LoaderOptions]) -> Loader:
        """A DataLoader whose state counts the batches given to the training loop. options: of
        torch.utils.data.DataLoader, such as num_workers."""
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
    if not 0 <= rank < ranks:
        raise ValueError("rank: expected 0 to %d, found %d" % (ranks - 1, rank))
    return rank, ranks


class Loader(DataLoader[Any]):
    """DataLoader of TorchBatches. Each iteration is an epoch, or the rest of one after
    load_state_dict; state_dict may be called at any batch. It counts batches given to the loop,
    not those that workers have prefetched."""

    def __init__(self, batches: TorchBatches, **options: Unpack[LoaderOptions]) -> None:
        if options.pop("batch_size", None) is not None:  # type: ignore[typeddict-item]
            raise TypeError("batch_size: TorchBatches forms the batches itself")
        remote = batches.dataset._shards.place.folder is None
        if remote and options.get("num_workers"):
            # Clients of object stores do not survive a fork.
            options.setdefault("multiprocessing_context", "spawn")
        self._delivered = 0
        super().__init__(batches, batch_size=None, **options)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches: TorchBatches = self.dataset  # type: ignore[assignment]
        epoch = batches.epoch
        self._delivered = 0
        for batch in super().__iter__():
            self._delivered += 1
            yield batch
        batches.set_epoch(epoch + 1)
        self._delivered = 0

    @property
    def epoch(self) -> int:
        """Epoch of the next batch."""
        batches: TorchBatches = self.dataset  # type: ignore[assignment]
        return batches.epoch

    def set_epoch(self, epoch: int) -> None:
        self.dataset.set_epoch(epoch)  # type: ignore[attr-defined]
        self._delivered = 0

    def state_dict(self) -> dict[str, Any]:
        batches: TorchBatches = self.dataset  # type: ignore[assignment]
        epoch, begun, _ = batches._begun()
        return {**batches._parameters(), "epoch": epoch,
                "delivered": begun + self._delivered * batches.ranks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.dataset.load_state_dict(state)  # type: ignore[attr-defined]
        self._delivered = 0
        # Persistent workers still have the old order.
        self._iterator = None
