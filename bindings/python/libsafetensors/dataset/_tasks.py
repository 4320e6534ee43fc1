"""An open dataset in parts, for engines that read it by many tasks."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from ._layout import KeyLayout
from ._read import Dataset
from ._subset import Subset
from ._types import Manifest

__all__ = ["Task", "tasks_of"]

_LISTS = ("shards", "schema", "segments")  # of the manifest, which no task needs


class Task:
    """Rows of a dataset, of one version: what was opened, with as many shards as they need."""

    def __init__(self, dataset: Dataset, rows: range, columns: list[str], size: int) -> None:
        self.dataset, self.rows, self.columns = dataset, rows, columns
        self.bytes = size  # about

    def batches(self, columns: list[str] | None = None) -> Any:
        """Arrow batches of these columns, or of all."""
        chosen = self.columns if columns is None else columns
        return self.dataset.arrow_batches(chosen, rows=self.rows)


def tasks_of(dataset: Dataset, count: int) -> list[Task]:
    """At most so many, of about as many rows each, in their order. They begin with a shard where there
    are enough."""
    layout: Any = dataset._layout
    layout = layout.whole if isinstance(layout, Subset) else layout
    bounds = list(layout.bounds())
    first, last = dataset._limits or (0, len(dataset))
    ends = [end for begin, end in bounds if begin < end]
    rows = last - first
    cuts = {first + rows * i // max(count, 1) for i in range(1, count)}
    if len(ends) >= count:
        cuts = {ends[min(bisect_left(ends, cut), len(ends) - 1)] for cut in cuts}
    places = [first, *sorted(cut for cut in cuts if first < cut < last), last]
    names = dataset._arrow(None, range(0), None)[0].names
    return [_task(dataset, layout, bounds, start, stop, names)
            for start, stop in zip(places, places[1:]) if start < stop]


def _task(dataset: Dataset, layout: Any, bounds: list[tuple[int, int]], start: int, stop: int,
          names: list[str]) -> Task:
    shards = dataset._shards
    ends = [end for _, end in bounds]
    low, high = bisect_right(ends, start), bisect_left(ends, stop) + 1
    held = sum(shards.facts[i]["bytes"] * (min(stop, bounds[i][1]) - max(start, bounds[i][0]))
               // max(1, bounds[i][1] - bounds[i][0]) for i in range(low, high))
    if isinstance(layout, KeyLayout) and (dataset._keys is not None or any(
            one["shadowed"] for one in shards.facts)):
        whole = Dataset(shards, dataset._manifest, dataset._keys, dataset._mode)
        return Task(whole, range(start, stop), names, held)
    few = shards.part(low, high)
    told: Any = {name: one for name, one in (dataset._manifest or {}).items()
                 if name not in _LISTS}
    manifest: Manifest | None = told if dataset._manifest is not None else None
    begin = bounds[low][0]
    return Task(Dataset(few, manifest, dataset._keys, dataset.mode),
                range(start - begin, stop - begin), names, held)
