"""The heartbeat of a job: a thread renews its mark, so that gc keeps the files of a job that takes
longer than the grace period."""
from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType

from .. import _core
from ._storage import Place

__all__ = ["Alive"]

_SECONDS = 300.0  # a job that is done earlier writes no mark


class Alive:
    """A context in which the job's mark is renewed every few minutes. last: nobody works for the
    job after it, so the mark is removed, which a commit does only with a job's folder."""

    def __init__(self, place: Place, job: str, last: bool = False) -> None:
        self._place = place
        self._job = job
        self._last = last
        self._done = threading.Event()
        self._renewed = False
        self._thread = threading.Thread(target=self._renew, name="libsafetensors-alive",
                                        daemon=True)

    def _renew(self) -> None:
        own: Place | None = None  # a storage keeps the exceptions of its thread
        while not self._done.wait(_SECONDS):
            with contextlib.suppress(Exception):  # the next time will do
                if own is None:
                    make, given = self._place.__reduce__()
                    own = make(*given)
                self._renewed = True
                _core.dataset_renew(own.core, self._job)

    def __enter__(self) -> Alive:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if not (self._renewed and self._last):
            return
        # Remote, or renewed while the commit removed the folder.
        name = self._place.name("_job-%s/.alive" % self._job.split(":")[0])
        with contextlib.suppress(Exception):
            if self._place.folder is None:
                self._place.fs.delete_file(name)
            elif not os.path.islink(os.path.dirname(name)):  # another folder's, as in the core
                os.unlink(name)
                os.rmdir(os.path.dirname(name))
