"""Files of URLs: every function that reads a path takes https://, hf://, s3:// and gs://, too.

Nothing is needed for that; Remote and use are for options, sums and what servers claim:

    with Remote(connections=16) as remote:
        before = use(remote)
        ...
        use(before)
"""
from __future__ import annotations

from typing import TypedDict

from ._core import Remote
from ._core import remote_use as _use

__all__ = ["Claims", "Exchange", "Remote", "Sums", "use"]


class Claims(TypedDict):
    """What a server says of a file; nothing of it was computed. None: it does not say."""

    bytes: int | None
    sha256: str | None
    commit: str | None
    etag: str | None
    local: bool


class Sums(TypedDict):
    """What a Remote has done so far; requests counts redirects and retries, bytes what arrived."""

    requests: int
    bytes: int
    retries: int


class Exchange(TypedDict):
    """A request that ended. begin, end: the range asked for; status: 0 if there was no answer;
    code: "ok", or the name of an error code; attempt: from 1."""

    method: str
    url: str
    begin: int | None
    end: int | None
    status: int
    code: str
    bytes: int
    ms: int
    attempt: int


def use(remote: Remote | None) -> Remote | None:
    """Opens URLs by remote from now on, in all threads, and returns the Remote that was in use, if
    any. None: one by the environment, made when the next URL is opened. Files that are open keep
    theirs. TypeError."""
    return _use(remote)
