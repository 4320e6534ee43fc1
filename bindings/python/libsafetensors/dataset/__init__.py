"""Datasets: folders of safetensors shards with a manifest.

write() makes a dataset from any table that exports Arrow (pyarrow, polars, duckdb, pandas);
open() reads one: length, schema, rows and batches as numpy or torch. verify, info, ls,
versions, gc, compact, delete and add_column do the same as `safetensors dataset`. TorchDataset and TorchBatches feed torch.

Importing this imports neither pyarrow nor numpy nor torch.
"""
from __future__ import annotations

from .._core import DATASET_OPTIONS as OPTIONS
from ._columns import Column
from ._maintain import add_column, compact, delete, gc, info, ls, verify, versions
from ._read import Dataset, open
from ._types import StorageOptions
from ._write import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._mix import Mix
    from ._torch import Loader, TorchBatches, TorchDataset

__all__ = ["Column", "Dataset", "Loader", "Mix", "OPTIONS", "StorageOptions", "TorchBatches",
           "TorchDataset", "add_column", "compact", "delete", "gc", "info", "ls", "open", "verify", "versions",
           "write"]


def __getattr__(name: str) -> Any:
    if name == "Mix":
        from ._mix import Mix
        return Mix
    if name in ("Loader", "TorchBatches", "TorchDataset"):
        from . import _torch
        return getattr(_torch, name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
