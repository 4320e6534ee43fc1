"""Tensors for async for."""
from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from ._official import safe_open

if TYPE_CHECKING:
    from torch import Tensor as _Tensor
else:
    _Tensor = Any

__all__ = ["aprefetch"]


async def aprefetch(source: Any, plan: Mapping[str, Any] | None = None, *, device: Any = None,
                    threads: int = 8) -> AsyncIterator[tuple[str, _Tensor]]:
    """Tensors of torch as they are read: async for name, tensor in aprefetch("model"). Other tasks
    run while it waits; leaving the loop early, or cancelling the task, ends the reading.

    source: a file, a folder or index with shards, a URL. plan, device, threads: as of
    safe_open(...).prefetch, and with its errors: FileNotFoundError, SafetensorError, TypeError."""
    with safe_open(source, "pt") as file, file.prefetch(plan, device=device,
                                                        threads=threads) as loader:
        ready = iter(loader)
        while True:
            found = await to_thread(next, ready, None)
            if found is None:
                return
            yield found
