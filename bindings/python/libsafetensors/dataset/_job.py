"""A write by many tasks, committed by one process."""
from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from .. import _core
from ._alive import Alive
from ._index import publish
from ._storage import Place, dataset_error
from ._types import WriteMode
from ._write import settled

__all__ = ["Job"]

_log = logging.getLogger("libsafetensors.dataset")


class Job:
    """A write: made on the driver, sent to the tasks, committed or aborted on the driver, possibly
    in another process. Making it checks all arguments and writes nothing. schema: of the rows,
    or None if the engine does not know it yet."""

    def __init__(self, options: Mapping[str, Any], place: Place, schema: Any,
                 how: WriteMode, adopt: bool) -> None:
        self.options = dict(options)
        self.place = place
        self.schema = schema
        self.how = how
        self.adopt = adopt
        self.before = self._published()
        commit = self._begun(None)
        self.job = commit.job
        commit.close()

    def _settled(self) -> _core.DatasetOptions:
        return settled(self.options)[0]

    def _begun(self, job: str | None) -> _core.Commit:
        checked = self._settled()
        if self.schema is not None:
            checked.check(self.schema)
        return _core.Commit(checked, self.place.core, self.schema, how=self.how,
                            adopt_listing=self.adopt, job=job)

    def _published(self) -> Any:
        """The commit of the existing dataset, or its whole manifest if that has none."""
        if self.how != "overwrite":
            return None
        try:
            text = _core.Dataset(self.place.core).manifest
        except (FileNotFoundError, _core.SafetensorError):
            return None
        return json.loads(text).get("commit") or text

    # ── Tasks ──

    def write(self, batches: Iterable[Any], partition: int) -> str:
        """Writes the rows of one task; returns its receipts, "" for no rows."""
        with Alive(self.place, self.job):
            return self._written(batches, partition)

    def _written(self, batches: Iterable[Any], partition: int) -> str:
        writer = None
        try:
            for batch in batches:
                if writer is None:
                    writer = _core.ShardWriter(self._settled(), self.place.core, self.job,
                                               partition, batch.schema)
                writer.append(batch)
                batch = None
            return writer.close() if writer is not None else ""
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise

    # ── The driver ──

    def commit(self, receipts: Iterable[str]) -> str:
        """Publishes and returns the manifest. If it raises, the old dataset is unchanged and the
        tasks' files are removed."""
        commit = self._begun(self.job)
        try:
            with Alive(self.place, self.job, last=True):
                manifest, warned = self._publish(commit, receipts)
        except BaseException:
            with contextlib.suppress(Exception):
                commit.abort()
            with contextlib.suppress(Exception):
                commit.close()
            raise
        with contextlib.suppress(Exception):
            for text in warned:
                _log.warning("%s: %s", self.place.text, text)
            commit.close()
        return manifest

    def _publish(self, commit: _core.Commit, receipts: Iterable[str]) -> tuple[str, list[str]]:
        if self._published() != self.before:
            raise dataset_error("dataset_changed", self.place.text,
                                "another job wrote this dataset since this one began to "
                                "overwrite it")
        for text in receipts:
            if text:
                commit.add(text)
        warned = publish(commit, self.place, self.how == "append")
        return commit.manifest, warned

    def abort(self, receipts: Iterable[str | None]) -> None:
        """Removes what the tasks wrote, unless it is published. Never raises: files left behind
        are invisible to readers, and gc removes them."""
        known = list(receipts)
        if self.place.folder is None and None not in known:
            return  # all tasks were done, so commit failed and has removed their files
        try:
            commit = _core.Commit(self._settled(), self.place.core, how="overwrite",
                                  job=self.job)
            for text in known:
                if text:
                    commit.add(text)
            commit.abort()
            commit.close()
        except Exception as error:
            _log.warning("%s: files of the aborted job remain for gc: %s",
                         self.place.text, error)
