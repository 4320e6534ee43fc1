"""Loads tensors of torch to a device, through a few blocks of pinned memory (slots) that are used
again and again.

1. A thread of _core.Reader fills a slot.
2. Its copies are enqueued on a stream of the load's own, which has waited for the caller's stream,
   since memory that torch hands out may still be in use there.
3. An event is recorded behind them. Only when it has happened is the slot given back to the reader.
4. At the end the caller's stream waits for the last event, and the host does once.

Whatever fails, close() does this in order: the threads end, then the stream, then the slots are
returned. Until then the load keeps the tensors that it fills.
"""
from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from . import _core
from ._dtypes import torch_types

__all__ = ["Copy", "CpuDevice", "CudaDevice", "Destination", "Device", "Load", "SLOT_BYTES",
           "Slots", "Targets", "device_of", "fill", "load", "load_one", "load_small",
           "release_pinned", "shape_of", "there"]

SLOT_BYTES = 8 << 20
_PAGE = 4096
_FIRST = 4
"""Slots a load begins with; more are added where enough is left to be read, up to so many more
than there are threads."""
_WORTH = 16
"""A slot is added only if so many times the bytes of those before it are left to be read: pinning
one takes as long as several copies."""
_KEPT_BYTES = 256 << 20
_SHARE = 1 << 20
"""Tensors of fewer bytes share blocks."""
_BLOCK_BYTES = 32 << 20
_STEP = 512
_WARM = 1 << 30

Copy = tuple[torch.Tensor, int, int, int]
"""Target (flat bytes), byte of it, byte of the slot, length."""


# ── Slots ──

def _aligned(make: Callable[[int], torch.Tensor], size: int) -> torch.Tensor:
    """Flat bytes at a multiple of a page."""
    memory = make(size)
    if memory.data_ptr() % _PAGE:
        memory = make(size + _PAGE)
        start = -memory.data_ptr() % _PAGE
        memory = memory[start:start + size]
    return memory


def _plain(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cpu")


def _pinned(size: int) -> torch.Tensor:
    """Where nothing (more) can be pinned, ordinary memory does: its copies are only slower."""
    try:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)
    except RuntimeError:
        return _plain(size)


class Slots:
    """Blocks of SLOT_BYTES, kept for the next load. Threads may share it."""

    def __init__(self, make: Callable[[int], torch.Tensor], kept_bytes: int) -> None:
        self._make = make
        self._most = kept_bytes // SLOT_BYTES
        self._lock = threading.Lock()
        self._free: list[torch.Tensor] = []
        self._lost: list[torch.Tensor] = []
        self.count = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def take(self, needed: bool) -> torch.Tensor | None:
        """A slot; None if as many as may be kept are in use, unless it is needed."""
        with self._lock:
            if self._free:
                return self._free.pop()
            if self.count >= self._most and not needed:
                return None
            self.count += 1
        try:
            return _aligned(self._make, SLOT_BYTES)
        except BaseException:
            with self._lock:
                self.count -= 1
            raise

    def give(self, slots: Iterable[torch.Tensor]) -> None:
        """Returns slots that nothing reads or writes any more."""
        with self._lock:
            for slot in slots:
                if self.count <= self._most:
                    self._free.append(slot)
                else:
                    self.count -= 1

    def lose(self, slots: Iterable[torch.Tensor]) -> None:
        """Keeps for ever slots that a device may still use, since it could not be asked."""
        with self._lock:
            for slot in slots:
                self._lost.append(slot)
                self.count -= 1

    def release(self) -> int:
        """Frees all that are not in use; their bytes."""
        with self._lock:
            free, self._free = self._free, []
            self.count -= len(free)
        return len(free) * SLOT_BYTES

    def _forget(self) -> None:
        """In a child of fork() the device must not be asked to free anything."""
        self._lock = threading.Lock()
        self._lost += self._free
        self._free, self.count = [], 0


_PINNED = Slots(_pinned, _KEPT_BYTES)
_PLAIN = Slots(_plain, 0)


def release_pinned() -> int:
    """Frees the pinned memory that loads to a device have left for the next one, at most 256 MiB;
    returns how many bytes that was. Loads in other threads keep theirs."""
    size = _PINNED.release()
    empty = getattr(torch._C, "_host_emptyCache", None)
    if size and empty is not None:
        empty()
    return size


# ── Devices ──

class Device:
    """What a load needs of a device; here, of one where copies are done at once. One object serves
    one load."""

    slots: Slots

    def room(self, size: int) -> None:
        """Prepares for tensors of so many bytes in all."""

    def at_home(self) -> AbstractContextManager[Any]:
        """While it is entered, torch allocates for the stream that begin() knows as the
        caller's."""
        return nullcontext()

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        raise NotImplementedError

    def order(self) -> None:
        """What is copied next comes after all that the caller has enqueued."""

    def copy(self, slot: torch.Tensor, copies: Iterable[Copy]) -> None:
        """Enqueues copies."""

    def record(self) -> Any:
        """An event that happens once all copies until now are done."""

    def query(self, event: Any) -> bool:
        return True

    def wait(self, event: Any) -> None:
        """Returns when it has happened."""

    def finish(self) -> None:
        """The caller's stream waits for all copies, and so does the host."""

    def drain(self) -> None:
        """The host waits for all copies, whatever has failed."""

    def hand_out(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that was filled, for use on the stream that is current now."""
        return tensor


class CudaDevice(Device):
    """A device of CUDA, by one stream beside the one that is current."""

    slots = _PINNED

    def __init__(self, device: torch.device) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        self._device = torch.device(device.type, index)
        self._home = torch.cuda.current_stream(self._device)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def room(self, size: int) -> None:
        """Makes torch ask the driver once instead of for each tensor."""
        if size <= _WARM:
            return
        unused = (torch.cuda.memory_reserved(self._device)
                  - torch.cuda.memory_allocated(self._device))
        free, _ = torch.cuda.mem_get_info(self._device)
        if unused < size and free > size + size // 16:
            try:
                torch.empty(size, dtype=torch.uint8, device=self._device)
            except torch.cuda.OutOfMemoryError:
                pass

    def at_home(self) -> AbstractContextManager[Any]:
        if torch.cuda.current_stream(self._device) == self._home:
            return nullcontext()
        return torch.cuda.stream(self._home)

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)

    def order(self) -> None:
        self._stream.wait_stream(self._home)

    def copy(self, slot: torch.Tensor, copies: Iterable[Copy]) -> None:
        with torch.cuda.stream(self._stream):
            for target, at, start, size in copies:
                target[at:at + size].copy_(slot[start:start + size], non_blocking=True)

    def record(self) -> Any:
        event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        event.record(self._stream)
        return event

    def query(self, event: Any) -> bool:
        return bool(event.query())

    def wait(self, event: Any) -> None:
        event.synchronize()

    def finish(self) -> None:
        last = self.record()
        self._home.wait_event(last)
        last.synchronize()

    def drain(self) -> None:
        self._stream.synchronize()

    def hand_out(self, tensor: torch.Tensor) -> torch.Tensor:
        now = torch.cuda.current_stream(self._device)
        if now != self._home:
            tensor.record_stream(now)
        return tensor


class CpuDevice(Device):
    """Memory of the CPU."""

    slots = _PLAIN

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="cpu")

    def copy(self, slot: torch.Tensor, copies: Iterable[Copy]) -> None:
        for target, at, start, size in copies:
            target[at:at + size].copy_(slot[start:start + size])


def _count(kind: str) -> int:
    """How many devices of cuda, xpu or mps there are."""
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    module: Any = getattr(torch, kind, None)
    return int(module.device_count()) if hasattr(module, "device_count") else 0


def there() -> str:
    """The devices that there are, for messages."""
    return ", ".join(["cpu", "meta", *("%s:%d" % (kind, index) for kind in ("cuda", "xpu")
                                       for index in range(_count(kind))), *["mps"] * _count("mps")])


def _check_there(device: torch.device) -> None:
    """RuntimeError for a GPU that is not there, with those that are."""
    if (device.index or 0) < _count(device.type):
        return
    raise RuntimeError("device %s is not there%s; there are: %s"
                       % (device, "" if torch.version.cuda or device.type != "cuda"
                          else " (this torch is built without CUDA)", there()))


def device_of(device: torch.device) -> Device | None:
    """How to load to a device of torch; None for those that only Tensor.to is known to reach."""
    if device.type == "cuda" and torch.version.hip is None:
        _check_there(device)
        return CudaDevice(device)
    return None


# ── Tensors to be filled ──

def shape_of(tensor: _core.Tensor) -> tuple[int, ...]:
    """The shape in torch, where one element of F4 is two."""
    shape = tensor.shape
    if tensor.dtype != "F4" or not shape:
        return shape
    return (*shape[:-1], shape[-1] // 2)


def _dtype_of(tensor: _core.Tensor) -> torch.dtype:
    known: torch.dtype | None = torch_types().get(tensor.dtype)
    if known is None:
        raise TypeError("torch has no dtype for %s" % tensor.dtype)
    return known


class Destination:
    """Blocks that a load fills."""

    parts: list[tuple[_core.Tensor, int, int]]
    sizes: list[int]

    def plan(self) -> _core.ReadPlan:
        return _core.ReadPlan(self.parts, [(0, size) for size in self.sizes],
                              slot_bytes=SLOT_BYTES)

    def is_made(self, block: int) -> bool:
        """Whether flat() allocates nothing."""
        return True

    def flat(self, block: int) -> torch.Tensor:
        """The bytes of a block."""
        raise NotImplementedError


class Targets(Destination):
    """Where tensors go: blocks, which are allocated when they are first asked for. A tensor of
    1 MiB or more is a block of its own. Smaller ones share blocks of up to 32 MiB, in the order of
    the file and each at a multiple of 512 bytes, so that one copy fills neighbours whose sizes are
    such multiples."""

    def __init__(self, device: Device, tensors: Sequence[_core.Tensor], pack: bool = True) -> None:
        self._device = device
        self._tensors = tensors
        self._dtypes = [_dtype_of(tensor) for tensor in tensors]
        self.sizes, self.parts = [], []
        self.places: list[tuple[int, int]] = []
        """The block of each tensor and the byte of it; the block is -1 if it has no bytes."""
        self._owners: list[int] = []
        """The tensor that owns each block, or -1."""
        self._flat: list[torch.Tensor | None] = []
        self._made: dict[int, torch.Tensor] = {}
        self._place(pack)

    def _place(self, pack: bool) -> None:
        self.places = [(-1, 0)] * len(self._tensors)
        rows = [(tensor.shard, tensor.offset, number) for number, tensor in
                enumerate(self._tensors)]
        rows.sort()
        shared, end = -1, 0
        for _, _, number in rows:
            size = self._tensors[number].nbytes
            if not size:
                continue
            if size >= _SHARE or not pack:
                self._put(number, self._add(size, number), 0)
                continue
            at = -(-end // _STEP) * _STEP
            if shared < 0 or at + size > _BLOCK_BYTES:
                shared, at = self._add(0, -1), 0
            self._put(number, shared, at)
            self.sizes[shared] = end = at + size

    def _add(self, size: int, owner: int) -> int:
        self.sizes.append(size)
        self._owners.append(owner)
        self._flat.append(None)
        return len(self.sizes) - 1

    def _put(self, number: int, block: int, at: int) -> None:
        self.places[number] = block, at
        self.parts.append((self._tensors[number], block, at))

    def is_made(self, block: int) -> bool:
        return self._flat[block] is not None

    def flat(self, block: int) -> torch.Tensor:
        made = self._flat[block]
        if made is None:
            owner = self._owners[block]
            if owner < 0:
                made = self._device.empty((self.sizes[block],), torch.uint8)
            else:
                made = self._tensor(owner).view(-1).view(torch.uint8)
            self._flat[block] = made
        return made

    def _tensor(self, number: int) -> torch.Tensor:
        """A tensor with a storage of its own."""
        made = self._made.get(number)
        if made is None:
            made = self._device.empty(shape_of(self._tensors[number]), self._dtypes[number])
            self._made[number] = made
        return made

    def take(self, number: int) -> torch.Tensor:
        """A tensor; those of a shared block are no views of one another."""
        block, at = self.places[number]
        if block < 0 or self._owners[block] >= 0:
            found = self._tensor(number)
            del self._made[number]
            return found
        dtype = self._dtypes[number]
        return self._device.empty((0,), dtype).set_(  # type: ignore[call-overload,no-any-return]
            self.flat(block).untyped_storage(), at // dtype.itemsize,
            shape_of(self._tensors[number]))

    def drop(self, block: int) -> None:
        """Forgets the bytes of a block that is full."""
        self._flat[block] = None


# ── Loading ──

def _in_spite_of_ctrl_c(end: Callable[[], object]) -> KeyboardInterrupt | None:
    """Calls what may be called again until no KeyboardInterrupt comes between; the last one."""
    caught: KeyboardInterrupt | None = None
    while True:
        try:
            end()
            return caught
        except KeyboardInterrupt as error:
            caught = error


def _settle(device: Device, slots: list[torch.Tensor]) -> None:
    """Returns slots, and empties the list, once no copy uses them."""
    try:
        caught = _in_spite_of_ctrl_c(device.drain)
    except BaseException:
        device.slots.lose(slots)
        slots.clear()
        raise
    while slots:
        device.slots.give([slots.pop()])
    if caught is not None:
        raise caught


class Load:
    """A running load of a plan. step() until it returns None, then finish(); close() in every
    case, also after an exception."""

    def __init__(self, device: Device, plan: _core.ReadPlan, targets: Destination,
                 threads: int = 0) -> None:
        self._device = device
        self._targets = targets
        self._slots: list[torch.Tensor] = []
        self._flight: deque[tuple[Any, int]] = deque()
        """Events of the slots whose copies may not be done, the oldest first."""
        self._left = plan.wanted
        self._most = (threads or min(max(os.cpu_count() or 1, 4), 12)) + _FIRST
        self._reader = plan.reader(threads=threads)
        self._open = True
        for count in range(min(_FIRST, -(-plan.total // SLOT_BYTES))):
            self._add_slot(needed=count == 0)
        device.order()

    def _add_slot(self, needed: bool) -> bool:
        slot = self._device.slots.take(needed)
        if slot is None:
            return False
        self._slots.append(slot)
        self._reader.add(slot.data_ptr())
        return True

    def _grow(self) -> bool:
        """Adds a slot if that pays."""
        count = len(self._slots)
        worth = count < self._most and self._left > count * SLOT_BYTES * _WORTH
        return worth and self._add_slot(needed=False)

    def _give_back(self) -> None:
        self._reader.give_back(self._flight.popleft()[1])

    def step(self) -> list[tuple[int, int, int, int]] | None:
        """Enqueues the copies of the next filled slot, and returns them as Reader.next does; None
        at the end."""
        while True:
            while self._flight and self._device.query(self._flight[0][0]):
                self._give_back()
            starved = self._reader.starved()
            if starved and self._grow():
                continue
            row = self._reader.next(0 if starved and self._flight else -1)
            if row is not None:
                break
            if self._flight:
                self._device.wait(self._flight[0][0])
                self._give_back()
        number, copies = row
        if number is None:
            return None
        self._enqueue(number, copies)
        return copies

    def _enqueue(self, number: int, copies: list[tuple[int, int, int, int]]) -> None:
        targets, device = self._targets, self._device
        if all(targets.is_made(copy[0]) for copy in copies):
            rows = [(targets.flat(block), at, start, size) for block, at, start, size in copies]
        else:
            with device.at_home():
                rows = [(targets.flat(block), at, start, size)
                        for block, at, start, size in copies]
            device.order()
        device.copy(self._slots[number], rows)
        self._flight.append((device.record(), number))
        self._left -= sum(copy[3] for copy in copies)

    def last_event(self) -> Any:
        """The event behind the copies of the last step()."""
        return self._flight[-1][0]

    def finish(self) -> None:
        """The tensors can be used when this returns."""
        self._device.finish()

    def close(self) -> None:
        """Ends the load; a second call does nothing. A KeyboardInterrupt is raised afterwards."""
        if not self._open:
            return
        caught = _in_spite_of_ctrl_c(self._reader.close)
        try:
            _settle(self._device, self._slots)
        finally:
            self._open = False
        if caught is not None:
            raise caught

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            self.close()


def fill(device: Device, targets: Destination,
         tick: Callable[[int, int], object] | None = None, warm: bool = True) -> None:
    """Reads the tensors of targets to their places. tick: called with bytes done and total. warm:
    whether the device prepares for memory that will be allocated."""
    if not targets.parts:
        return
    plan = targets.plan()
    done, total = 0, plan.wanted
    running = Load(device, plan, targets)
    try:
        if warm:
            device.room(sum(targets.sizes))
        while (copies := running.step()) is not None:
            done = min(total, done + sum(copy[3] for copy in copies))
            if tick is not None:
                tick(done, total)
        running.finish()
    finally:
        running.close()


def load(device: Device, tensors: Sequence[_core.Tensor], *, pack: bool = True,
         tick: Callable[[int, int], object] | None = None) -> list[torch.Tensor]:
    """Tensors of files that threads may read, on a device."""
    targets = Targets(device, tensors, pack)
    fill(device, targets, tick)
    return [targets.take(number) for number in range(len(tensors))]


def load_small(device: Device, tensor: _core.Tensor) -> torch.Tensor:
    """One tensor that fits into a slot: it is read without threads."""
    found = device.empty(shape_of(tensor), _dtype_of(tensor))
    size = tensor.nbytes
    slot = device.slots.take(needed=True) if size else None
    if slot is None:
        return found
    try:
        tensor.read_into((ctypes.c_char * size).from_address(slot.data_ptr()))
        device.order()
        device.copy(slot, [(found.view(-1).view(torch.uint8), 0, 0, size)])
        device.finish()
    finally:
        _settle(device, [slot])
    return found


def load_one(target: torch.device, tensor: _core.Tensor) -> torch.Tensor:
    """One tensor, or a slice of one, on a device."""
    if target.type == "meta":
        return torch.empty(shape_of(tensor), dtype=_dtype_of(tensor), device=target)
    device = device_of(target)
    if device is not None and tensor.nbytes <= SLOT_BYTES:
        return load_small(device, tensor)
    if device is not None and _core.is_local(tensor):
        return load(device, [tensor])[0]
    if target.type in ("xpu", "mps"):
        _check_there(target)
    return tensor.torch(copy=True).to(target)
