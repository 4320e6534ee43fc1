"""progress= of long calls: None, True, or a function of bytes done and total."""
from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Callable

Tick = Callable[[int, int | None], object]


class _Bar:
    """Feeds a bar of tqdm."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __call__(self, done: int, total: int | None) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)


class watch:
    """with watch(progress, "saving") as tick: tick is the callable for _core, or None. True
    shows a bar of tqdm if that is installed, else nothing; in a notebook None does, too, of what
    takes longer than a second. unit: of what is counted, bytes unless given."""

    def __init__(self, progress: Any, title: str, unit: str = "B") -> None:
        self._bar: Any = None
        self._title, self._unit = title, unit
        self._tick: Tick | None = progress if callable(progress) else None
        if progress is True:
            self._tick = self._shown()
        elif progress is None and "ipykernel" in sys.modules:
            self._begun: float | None = time.monotonic()
            self._tick = self._late
        elif progress and self._tick is None:
            raise TypeError("progress: expected True or a function, found %s"
                            % type(progress).__name__)

    def _shown(self) -> Tick | None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        self._bar = tqdm(desc=self._title, unit=self._unit, unit_scale=True, leave=False)
        return _Bar(self._bar)

    def _late(self, done: int, total: int | None) -> None:
        """Shows a bar after a second."""
        if self._begun is not None and time.monotonic() - self._begun > 1 and done != total:
            self._begun, self._tick = None, self._shown()
        if self._begun is None and self._tick is not None:
            self._tick(done, total)

    def __enter__(self) -> Tick | None:
        return self._tick

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
