"""Types of arguments."""
from __future__ import annotations

import sys
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Literal, Mapping, Protocol, TypedDict, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack
else:
    class Unpack:
        """A stand-in for typing.Unpack of Python 3.11, for annotations only."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind

__all__ = ["Backend", "BytesOptions", "Closing", "Framework", "Level", "Link", "Mode",
           "Model", "OpenOptions", "Order", "Path", "Progress", "Readable", "SaveOptions", "Source",
           "Target", "Unpack", "parse"]

Path = Union[str, PathLike[str]]
_Self = TypeVar("_Self", bound="Closing")


class Closing:
    """A context that closes itself at its end."""

    __slots__ = ()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class Writable(Protocol):
    """An object that a file is written to."""

    def write(self, data: bytes, /) -> object: ...


class Readable(Protocol):
    """An object that a file is read from, at any place."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...


Target = Union[str, PathLike[str], Writable]
Source = Union[str, PathLike[str], Readable, tuple[Any, str]]
# A path or URL, a File or other tensors by name, or an object that is read.
Model = Union[Source, Mapping[str, Any]]
Framework = Literal["pt", "torch", "pytorch", "np", "numpy", "tf", "tensorflow", "jax", "flax",
                    "mlx", "paddle"]
Backend = Literal["mmap", "pread"]
Mode = Literal["auto", "map", "cow", "read", "copy"]
Order = Literal["offset", "name", "natural", "header"]
Level = Literal["compat", "default", "strict"]
Link = Literal["replace", "follow", "refuse"]
Progress = Union[bool, Callable[[int, Union[int, None]], object], None]


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
    in_place_unsafe: bool
    progress: Progress


class OpenOptions(TypedDict, total=False):
    """Options of open()."""

    mode: Mode
    level: Level
    legacy: bool
    header_only: bool
    max_header_bytes: int | None
    beneath: Path | None


def parse(text: str) -> Any:
    """Parses the library's JSON."""
    import json
    return json.loads(text)
