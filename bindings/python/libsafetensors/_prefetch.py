"""PrefetchLoader: tensors of safe_open.prefetch, which are read while earlier ones are used."""
from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import SafetensorError
from ._frameworks import moved
from ._slices import _is_basic
from ._types import Closing

if TYPE_CHECKING:
    from torch import Tensor as _Tensor

    from ._device import Device, Load
else:
    _Tensor = Any

__all__ = ["PrefetchLoader", "chosen_tensors"]


def chosen_tensors(file: _core.File, plan: Mapping[str, Any] | None,
                   find: Callable[[str], _core.Tensor]) -> dict[str, _core.Tensor]:
    """The tensors and slices of a plan, in the order of the file. TypeError, IndexError,
    SafetensorError."""
    if plan is None:
        return dict(file.items())
    if not isinstance(plan, Mapping):
        raise TypeError("prefetch plan must be a mapping of tensor names to None or slices, got %s"
                        % type(plan).__name__)
    found: dict[str, _core.Tensor] = {}
    for name, index in plan.items():
        if not isinstance(name, str):
            raise TypeError("prefetch plan keys must be tensor names")
        found[name] = _part(name, find(name), index)
    return dict(sorted(found.items(), key=lambda item: (item[1].shard, item[1].offset)))


def _part(name: str, tensor: _core.Tensor, index: Any) -> _core.Tensor:
    if index is None:
        return tensor
    if not _is_basic(index):
        raise TypeError("prefetch plan values must be None or what slices a tensor (integers, "
                        "slices, an ellipsis or a tuple of them), got %s for %s"
                        % (type(index).__name__, name))
    if tensor.dtype == "F4":
        raise SafetensorError("prefetch plan slice for %s: one F4 of torch is two elements, so it "
                              "can be loaded only as a whole" % name)
    return tensor[index]


class PrefetchLoader(Closing):
    """Tensors of one file that are read by threads while they are handed out: each once, by
    take(name) or by iterating over (name, tensor) in the order in which they are ready.

    On CUDA devices and the CPU threads read ahead, up to 128 MiB; on other devices each tensor is
    read when it is asked for. Threads may share it. close() drops what was not taken; tensors
    that were handed out remain valid."""

    def __init__(self, tensors: Mapping[str, _core.Tensor], place: Any,
                 device: Any, threads: int) -> None:
        """device: a Device of _device.py, or None if each tensor is moved to the place."""
        import threading  # which numpy does without
        if not tensors:
            raise SafetensorError("prefetch plan selects no tensors")
        self._lock = threading.RLock()
        self._tensors = dict(tensors)
        self._numbers = {name: number for number, name in enumerate(tensors)}
        self._left = dict(self._numbers)
        self._place = place
        self._stream = None if device is None else _Stream(list(tensors.values()), device, threads)
        self._closed = False

    def names(self) -> list[str]:
        """Names of all tensors, in the order of the file."""
        return list(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def take(self, name: str) -> _Tensor:
        """A tensor, or the slice of it that the plan names; waits until it is ready.
        SafetensorError if it was handed out before or is not in the plan."""
        with self._lock:
            if self._closed:
                raise SafetensorError("prefetch loader closed")
            if name not in self._numbers:
                raise SafetensorError("%s is not in the prefetch plan" % (name,))
            if name not in self._left:
                raise SafetensorError("tensor %s already delivered (prefetch hands each tensor "
                                      "out once, via take or iteration)" % name)
            return self._hand_out(name)

    def _hand_out(self, name: str) -> _Tensor:
        found: _Tensor
        if self._stream is None:
            found = moved(self._tensors[name], self._place)
        else:
            found = self._stream.take(self._numbers[name])
        del self._left[name]
        if not self._left and self._stream is not None:
            self._stream.close()
        return found

    def __iter__(self) -> Iterator[tuple[str, _Tensor]]:
        """(name, tensor), in the order in which they are ready, without those that were taken."""
        names = list(self._numbers)
        while True:
            with self._lock:
                if self._closed:
                    raise SafetensorError("prefetch loader closed")
                if not self._left:
                    return
                if self._stream is None:
                    name = next(iter(self._left))
                else:
                    name = names[self._stream.next_ready()]
                found = self._hand_out(name)
            yield name, found

    def close(self) -> None:
        """Stops reading and drops what was not taken; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._left.clear()
            stream, self._stream = self._stream, None
            self._tensors.clear()
            if stream is not None:
                stream.close()


class _Stream:
    """A load whose tensors are handed out while it runs."""

    def __init__(self, tensors: list[_core.Tensor], device: Device, threads: int) -> None:
        from ._device import Load, Targets
        self._device = device
        self._targets = targets = Targets(device, tensors)
        self._missing = [tensor.nbytes for tensor in tensors]
        """Bytes of each tensor whose copies are not enqueued."""
        self._rows: list[list[tuple[int, int, int]]] = [[] for _ in targets.sizes]
        """First byte, end and number of the tensors of each block."""
        for number, (block, at) in enumerate(targets.places):
            if block >= 0:
                self._rows[block].append((at, at + tensors[number].nbytes, number))
        for rows in self._rows:
            rows.sort()
        self._taken: set[int] = set()
        self._enqueued: deque[tuple[Any, list[int]]] = deque()
        """Tensors whose copies are all enqueued, and the event behind them."""
        self._events: dict[int, Any] = {}
        """The events of those tensors."""
        self._ready = deque(n for n, tensor in enumerate(tensors) if not tensor.nbytes)
        self._load: Load | None = None
        if targets.parts:
            self._load = Load(device, targets.plan(), targets, threads)

    def _step(self) -> None:
        """Enqueues the copies of one more slot. Whatever fails ends the load."""
        if self._load is None:
            raise SafetensorError("the tensor was not read, because reading has failed")
        try:
            copies = self._load.step()
        except BaseException:
            self.close()
            raise
        if copies is None:
            self.close()
            return
        full = [number for block, at, _, size in copies for number in self._count(block, at, size)]
        if full:
            event = self._load.last_event()
            self._enqueued.append((event, full))
            self._events.update(dict.fromkeys(full, event))

    def _count(self, block: int, at: int, size: int) -> Iterator[int]:
        """Numbers of tensors of which these were the last bytes."""
        rows = self._rows[block]
        first = max(0, bisect_right(rows, (at, 1 << 63, 0)) - 1)
        for begin, end, number in rows[first:]:
            if begin >= at + size:
                break
            here = min(end, at + size) - max(begin, at)
            if here > 0:
                self._missing[number] -= here
                if not self._missing[number]:
                    yield number

    def _collect(self) -> None:
        """Moves what is copied to the ready ones."""
        while self._enqueued and self._device.query(self._enqueued[0][0]):
            for number in self._enqueued.popleft()[1]:
                self._events.pop(number, None)
                self._ready.append(number)

    def next_ready(self) -> int:
        """Number of a tensor that is ready and was not taken."""
        while True:
            self._collect()
            while self._ready and self._ready[0] in self._taken:
                self._ready.popleft()
            if self._ready:
                return self._ready[0]
            if self._load is None and self._enqueued:
                self._device.wait(self._enqueued[0][0])
            else:
                self._step()

    def take(self, number: int) -> Any:
        while self._missing[number]:
            self._step()
        event = self._events.pop(number, None)
        if event is not None:
            self._device.wait(event)
        self._taken.add(number)
        found = self._device.hand_out(self._targets.take(number))
        block = self._targets.places[number][0]
        if block >= 0 and len(self._rows[block]) == 1:
            self._targets.drop(block)
        return found

    def close(self) -> None:
        load, self._load = self._load, None
        if load is not None:
            load.close()
