"""Names of columns as callers give them: text, or whole numbers, as pandas numbers columns."""
from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Union

__all__ = ["Name", "Names", "names_of", "text_of"]

Name = Union[str, int]
Names = Union[str, Iterable[Name]]


def text_of(name: Name) -> str:
    """A name as datasets have it: that of 0 is "0". TypeError for what is neither text nor a whole
    number."""
    if isinstance(name, str):
        return name
    try:
        return str(index(name))
    except TypeError:
        raise TypeError("expected a name, text or a whole number, found %r" % (name,)) from None


def names_of(names: Names) -> list[str]:
    """Names in a list, or in a text separated by commas."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return [text_of(name) for name in names]
