"""load_group: the ranks of a process group read a part of the files each, and exchange them.

The tensors are cut by rows into windows, and each window into a piece for each rank. For each
window:

1. Every rank reads its piece, while the window before is exchanged.
2. The ranks agree that all have succeeded; if one has not, all raise. No rank waits for another
   in a collective that the other does not reach.
3. The pieces are gathered, and copied from there to the tensors.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed as dist

from . import _core, _device
from ._files import open_file

__all__ = ["load_group"]

WINDOW_BYTES = 256 << 20
_LEAST = 64 << 10
"""What is left of rows that did not fit is not divided further than this."""
_STEP = 512

_Chunk = tuple[_core.Tensor, int, int, int]
"""What is read, the number of its tensor, its first byte there and its first byte in the piece."""


# ── Cutting ──

def _rows(tensor: _core.Tensor) -> int:
    """How many parts of equal, whole bytes its first dimension has; 1 if it cannot be cut."""
    shape = tensor.shape
    if not shape or shape[0] < 2 or tensor.nbytes % shape[0]:
        return 1
    bits, _ = _core.DTYPES[tensor.dtype]
    return 1 if tensor.size // shape[0] * bits % 8 else shape[0]


class _Cutter:
    """Cuts tensors into chunks, in order."""

    def __init__(self, tensors: Sequence[_core.Tensor]) -> None:
        self._tensors = tensors
        self._number, self._row = 0, 0
        self.left = sum(tensor.nbytes for tensor in tensors)

    def _next(self, most: int, any_size: bool) -> tuple[_core.Tensor, int, int, int] | None:
        """A chunk of at most so many bytes, or of one row with any_size, and its bytes."""
        while self._number < len(self._tensors) and not self._tensors[self._number].nbytes:
            self._number += 1
        if self._number == len(self._tensors):
            return None
        tensor, first = self._tensors[self._number], self._row
        rows = _rows(tensor)
        one = tensor.nbytes // rows
        count = min(rows - first, most // one)
        if count < 1 and not any_size:
            return None
        count = max(count, 1)
        chunk = tensor if count == rows else tensor[first:first + count]
        number = self._number
        self._row = first + count
        if self._row == rows:
            self._number, self._row = number + 1, 0
        self.left -= count * one
        return chunk, number, first * one, count * one

    def piece(self, most: int) -> tuple[list[_Chunk], int]:
        """Chunks of about so many bytes, and their bytes."""
        chunks: list[_Chunk] = []
        end = 0
        while True:
            at = -(-end // _STEP) * _STEP
            found = self._next(most - at, any_size=not chunks)
            if found is None:
                return chunks, end
            chunk, number, begin, size = found
            chunks.append((chunk, number, begin, at))
            end = at + size


def windows(tensors: Sequence[_core.Tensor],
            ranks: int) -> Iterator[tuple[list[list[_Chunk]], int]]:
    """The pieces of all ranks, window by window, and the bytes of the largest piece. The same on
    all ranks."""
    cutter = _Cutter(tensors)
    while cutter.left:
        most = max(_LEAST, min(WINDOW_BYTES // ranks, -(-cutter.left // ranks)))
        pieces = [cutter.piece(most) for _ in range(ranks)]
        yield [chunks for chunks, _ in pieces], -(-max(end for _, end in pieces) // _STEP) * _STEP


# ── Reading ──

class _Piece(_device.Destination):
    """This rank's piece of a window: a device reads it ahead, the CPU when it is asked for."""

    def __init__(self, place: torch.device, chunks: Sequence[_Chunk], size: int) -> None:
        self.memory = torch.empty(size, dtype=torch.uint8, device=place)
        self.parts = [(chunk, 0, at) for chunk, _, _, at in chunks]
        self.sizes = [size]
        self._load: _device.Load | None = None
        device = _device.device_of(place)
        self._address = self.memory.data_ptr() if device is None else 0
        if device is not None and self.parts:
            self._load = _device.Load(device, self.plan(), self)

    def plan(self) -> _core.ReadPlan:
        return _core.ReadPlan(self.parts, [(self._address, self.sizes[0])],
                              slot_bytes=_device.SLOT_BYTES)

    def flat(self, block: int) -> torch.Tensor:
        return self.memory

    def read(self) -> None:
        if self._address and self.parts:
            self.plan().run()
        if self._load is not None:
            while self._load.step() is not None:
                pass
            self._load.finish()
            self._load.close()

    def close(self) -> None:
        if self._load is not None:
            self._load.close()


# ── Agreeing ──

def _agree(group: Any, place: torch.device, error: BaseException | None) -> None:
    """Raises on all ranks if one has an error."""
    flag = torch.tensor([int(error is not None)], dtype=torch.int32, device=place)
    dist.all_reduce(flag, dist.ReduceOp.MAX, group=group)
    if not flag.item():
        return
    texts = _told(group, None if error is None else "%s: %s" % (type(error).__name__, error))
    if error is not None:
        raise error
    rank, text = next((rank, text) for rank, text in enumerate(texts) if text is not None)
    raise RuntimeError("load_group: rank %d has failed: %s" % (rank, text))


def _told(group: Any, value: Any) -> list[Any]:
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, value, group=group)
    return found


def _digest(tensors: Sequence[_core.Tensor]) -> str:
    from hashlib import sha256
    digest = sha256()
    for tensor in tensors:
        digest.update(repr((tensor.name, tensor.dtype, tensor.shape, tensor.offset)).encode())
    return digest.hexdigest()


def _opened(stack: ExitStack, paths: Sequence[Any]) -> dict[str, _core.Tensor]:
    found: dict[str, _core.Tensor] = {}
    for path in paths:
        file = stack.enter_context(open_file(path, "pread", framework="torch"))
        for name, tensor in file.items():
            if name in found:
                raise _core.SafetensorError("%s: expected no tensor %s, which a file before it has"
                                            % (path, name))
            if not _core.is_local(tensor):
                raise _core.SafetensorError("load_group: expected files of this machine")
            found[name] = tensor
    return found


# ── Loading ──

def _place(group: Any, device: Any) -> torch.device:
    if device is not None:
        place = torch.device(device)
    elif "nccl" in str(dist.get_backend(group)):
        place = torch.device("cuda")
    else:
        place = torch.device("cpu")
    if place.type == "cuda" and place.index is None:
        place = torch.device("cuda", torch.cuda.current_device())
    return place


# Its name before torch 2.13.
_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class _Exchange:
    """What all ranks do together, window by window."""

    def __init__(self, group: Any, place: torch.device, tensors: Sequence[_core.Tensor]) -> None:
        self._group, self._place = group, place
        self._rank, self._ranks = dist.get_rank(group), dist.get_world_size(group)
        self._windows = windows(tensors, self._ranks)
        self.targets = _device.Targets(_device.device_of(place) or _device.CpuDevice(), tensors)
        self._now: _Piece | None = None
        self._then: _Piece | None = None
        self._row: tuple[list[list[_Chunk]], int] | None = None
        self._next_row: tuple[list[list[_Chunk]], int] | None = None

    def _start(self) -> None:
        """Starts to read the next piece."""
        self._next_row, self._then = next(self._windows, None), None
        if self._next_row is not None:
            pieces, size = self._next_row
            self._then = _Piece(self._place, pieces[self._rank], size)

    def _read(self) -> None:
        """Completes the piece that was started, and starts the one after it."""
        self._row, self._now = self._next_row, self._then
        self._then = None
        if self._now is not None:
            self._now.read()
            self._gathered = torch.empty(self._ranks * self._now.sizes[0], dtype=torch.uint8,
                                         device=self._place)
            self._start()

    def _copy(self) -> None:
        assert self._row is not None
        pieces, size = self._row
        for rank, chunks in enumerate(pieces):
            for chunk, number, begin, at in chunks:
                block, start = self.targets.places[number]
                into = self.targets.flat(block)[start + begin:start + begin + chunk.nbytes]
                first = rank * size + at
                into.copy_(self._gathered[first:first + chunk.nbytes])

    def run(self) -> None:
        error = _attempt(self._start)
        while True:
            error = error or _attempt(self._read)
            _agree(self._group, self._place, error)
            if self._now is None:
                return
            _gather(self._gathered, self._now.memory, group=self._group)
            error = _attempt(self._copy)

    def close(self) -> None:
        for piece in (self._now, self._then):
            if piece is not None:
                piece.close()


def _attempt(function: Any) -> BaseException | None:
    """What it raises: the other ranks must hear of it first."""
    try:
        function()
    except BaseException as error:
        return error
    return None


def load_group(paths: Any, group: Any = None, *, device: Any = None) -> dict[str, torch.Tensor]:
    """libsafetensors.torch.load_group."""
    place = _place(group, device)
    chosen = [paths] if isinstance(paths, (str, bytes)) or hasattr(paths, "__fspath__") \
        else list(paths)
    with ExitStack() as stack:
        tensors: dict[str, _core.Tensor] = {}
        digest = ""

        def begin() -> _Exchange:
            nonlocal digest
            tensors.update(_opened(stack, chosen))
            digest = _digest(list(tensors.values()))
            return _Exchange(group, place, list(tensors.values()))
        made: list[_Exchange] = []
        _agree(group, place, _attempt(lambda: made.append(begin())))
        exchange = made[0]
        if len(set(_told(group, digest))) > 1:
            raise RuntimeError("load_group: expected the same files on all ranks, found others")
        try:
            exchange.run()
        finally:
            exchange.close()
        return {name: exchange.targets.take(number) for number, name in enumerate(tensors)}
