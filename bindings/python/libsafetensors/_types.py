"""Types of arguments, for annotations only: nothing imports this when a program runs."""
from __future__ import annotations

from os import PathLike
from typing import Callable, Literal, TypedDict, Union

from typing_extensions import Unpack

__all__ = ["BytesOptions", "Level", "Link", "Order", "Path", "Progress", "SaveOptions", "Unpack"]

Path = Union[str, "PathLike[str]"]
Order = Literal["offset", "name", "natural", "header"]
Level = Literal["compat", "default", "strict"]
Link = Literal["replace", "follow", "refuse"]
Progress = Union[bool, Callable[[int, Union[int, None]], object], None]


class BytesOptions(TypedDict, total=False):
    """Of save()."""

    align: int
    keep_order: bool


class SaveOptions(BytesOptions, total=False):
    """Of save_file()."""

    sync: bool
    spare: int
    overwrite: bool
    link: Link
    progress: Progress
