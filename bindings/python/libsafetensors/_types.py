"""Types of arguments and results."""
from __future__ import annotations

import sys
from os import PathLike
from typing import TYPE_CHECKING, Any, Callable, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack
else:
    class Unpack:
        """A stand-in for typing.Unpack of Python 3.11, for annotations only."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind

__all__ = ["BytesOptions", "Level", "Link", "Order", "Path", "Progress", "SaveOptions",
           "TensorStats", "Unpack", "parse"]

Path = Union[str, PathLike[str]]
Order = Literal["offset", "name", "natural", "header"]
Level = Literal["compat", "default", "strict"]
Link = Literal["replace", "follow", "refuse"]
Progress = Union[bool, Callable[[int, Union[int, None]], object], None]


class TensorStats(TypedDict):
    """Result of Tensor.stats(): counts, and statistics of the finite values, None if there are
    none. min and max of integers are exact integers; a C64 counts as two values."""
    values: int
    zeros: int
    nan: int
    inf: int
    min: int | float | None
    max: int | float | None
    mean: float | None
    std: float | None
    abs_mean: float | None


class BytesOptions(TypedDict, total=False):
    """Options of save()."""

    align: int
    keep_order: bool


class SaveOptions(BytesOptions, total=False):
    """Options of save_file()."""

    sync: bool
    spare: int
    overwrite: bool
    link: Link
    progress: Progress


def parse(text: str) -> dict[str, Any]:
    """Parses the library's JSON."""
    import json
    result: dict[str, Any] = json.loads(text)
    return result
