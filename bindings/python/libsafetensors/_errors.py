"""Exceptions with the attributes that those of the extension have."""
from __future__ import annotations

import io
import os
from collections.abc import Iterable
from errno import EISDIR
from operator import index
from typing import Any, BinaryIO, TypeVar

__all__ = ["check_seed", "coded", "near", "open_coded"]

_E = TypeVar("_E", bound=BaseException)


def coded(kind: type[_E], message: str, code: str, hint: str | None = None, *,
          offset: int | None = None, tensor: str | None = None, errno: int | None = None,
          path: str | None = None) -> _E:
    """A new exception. The hint is also a note, which tracebacks show below the message."""
    error = kind(message)
    facts: dict[str, Any] = {"code": code, "hint": hint, "offset": offset, "tensor": tensor,
                             "errno": errno, "path": path}
    for name, value in facts.items():
        setattr(error, name, value)
    if hint and hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(hint)
    return error


def check_seed(seed: int | None, what: str) -> None:
    """ValueError for a number that is no seed, TypeError for what is no whole number."""
    if seed is not None and not 0 <= index(seed) < 1 << 64:
        raise ValueError("%s: expected a number from 0 to 2**64 - 1, found %d" % (what, seed))


def near(word: object, words: Iterable[str]) -> str:
    """What ends a message where one of the words is near."""
    from difflib import get_close_matches
    found = get_close_matches(str(word), [*words], 1)
    return ": did you mean %r?" % found[0] if found else ""


def open_coded(path: Any) -> BinaryIO:
    """The file, open for reading. Its OSError has the attributes of those of the extension."""
    try:
        return io.open(path, "rb")
    except OSError as error:
        kind, number, text = type(error), error.errno, os.fsdecode(path)
        if kind is PermissionError and os.path.isdir(text):  # Windows tells no folder from a closed file
            kind, number = IsADirectoryError, EISDIR
        code = {FileNotFoundError: "not_found", IsADirectoryError: "io_not_file"}.get(kind, "io_open")
        why = error.strerror if number == error.errno else os.strerror(EISDIR)
        raise coded(kind, "%s: cannot open: %s" % (text, why), code, errno=number, path=text) from None
