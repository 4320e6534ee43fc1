"""Where a dataset is stored: a local folder, or a folder of a pyarrow filesystem."""
from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable

from .. import _core
from .._errors import coded
from .._sources import Ranges
from ._cache import Cache
from ._conditional import conditional

__all__ = ["MANIFEST", "INDEX", "Place", "dataset_error", "in_parallel", "storage_options"]

MANIFEST = "dataset_manifest.json"
INDEX = "_tensor_index.parquet"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://|(file):")
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_CLASSES = {"s3": "S3FileSystem", "gs": "GcsFileSystem", "abfs": "AzureFileSystem",
            "hdfs": "HadoopFileSystem"}
_REQUESTS = 16  # at the same time, of one file or one for each of several
_BUFFERED = 8 << 20  # bytes of an object kept in memory before its upload starts


def dataset_error(code: str, path: str, text: str) -> _core.SafetensorError:
    """A SafetensorError about the dataset at path."""
    return coded(_core.SafetensorError, "%s: %s" % (path, text), code, path=path)


class Place:
    """A dataset's storage and its name in messages. path: a path or URL; options: those of the
    pyarrow filesystem. folder: its path on this machine; None if fs and root, a pyarrow filesystem
    and a path in it, are set. cache: where shards of a URL are kept."""

    def __init__(self, path: Any, options: Mapping[str, Any] | None = None, sync: bool = True,
                 single_writer: bool = False, cache: Cache | None = None) -> None:
        text, options = os.fsdecode(path), dict(options or {})
        self.text = text
        self.options = options
        self.sync = sync
        self.single_writer = single_writer
        self.cache = cache
        self.folder: str | None = None
        self.fs: Any = None
        self.root = ""
        scheme = scheme_of(text)
        if scheme is None or scheme == "file":
            if options:
                raise ValueError("storage.* options: expected a URL of an object store, found "
                                 "%s" % text)
            self.folder = os.path.abspath(unquoted(text) if scheme else text)
            self.core = _core.Storage(self.folder, sync=sync, single_writer=single_writer)
        else:
            self.fs, self.root = filesystem(scheme, text, options)
            remote = _Remote(self.fs, self.root, text)
            checked = None if single_writer else conditional(scheme, self.root,
                                                             _merged(text, options))
            if checked is not None:
                remote.fetch, remote.put_if = checked.fetch, checked.put_if
            self.core = _core.Storage(remote, single_writer=single_writer)

    def __reduce__(self) -> Any:
        return Place, (self.text, self.options, self.sync, self.single_writer, self.cache)

    @property
    def label(self) -> str | bytes:
        """The name for reports: bytes where it is no text."""
        try:
            self.text.encode()
        except UnicodeEncodeError:
            return os.fsencode(self.text)
        return self.text

    def name(self, name: str) -> str:
        """Path of a file in the folder, for self.fs or the system."""
        return posixpath.join(self.root if self.folder is None else self.folder, name)

    def source(self, name: str) -> Any:
        """A source of the file for libsafetensors.open."""
        return self.name(name) if self.folder is not None else _Reader(self.fs, self.name(name))

    def names(self) -> list[str]:
        """Names of the files directly in the folder, sorted; empty if it does not exist."""
        if self.folder is None:
            return sorted(name for name, _, _, folder in listing(self.fs, self.root)
                          if not folder)
        try:
            with os.scandir(self.folder) as found:
                return sorted(one.name for one in found if one.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []


def storage_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the filesystem without the prefix "storage."; TypeError for others."""
    for name in options:
        if not name.lower().startswith("storage."):
            raise TypeError("unexpected keyword argument %r" % name)
    return {name[len("storage."):]: value for name, value in options.items()}


def scheme_of(text: str) -> str | None:
    match = _SCHEME.match(text)
    if not match:
        return None
    scheme = (match[1] or match[2]).lower()
    return _ALIASES.get(scheme, scheme)


def unquoted(url: str) -> str:
    """The path in a file: URL."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError("expected a file: URL of this machine, found %s" % url)
    return url2pathname(parts.path)


def _value(value: Any) -> Any:
    """The value of an option that an engine passes as text."""
    words = {"true": True, "false": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


def _merged(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those of the URL's query and user, as pyarrow takes them."""
    from urllib.parse import parse_qsl, urlsplit
    parts = urlsplit(url)
    found = dict(parse_qsl(parts.query))
    if parts.username:
        found.update(access_key=parts.username, secret_key=parts.password or "")
    return {key: _value(value) for key, value in {**found, **options}.items()}


def filesystem(scheme: str, url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError:
        raise ImportError("a dataset at a URL needs pyarrow") from None
    rest = url.split(":", 1)[1].lstrip("/").rstrip("/")
    kind = getattr(fs, _CLASSES.get(scheme, ""), None)
    if options and kind is None:
        raise ValueError("storage.* options: expected a URL of %s, found %s:"
                         % (", ".join(_CLASSES), scheme))
    if kind is not None and (options or scheme in ("s3", "gs")) and "?" not in rest:
        return kind(**{key: _value(value) for key, value in options.items()}), rest
    found, root = fs.FileSystem.from_uri(url)
    return found, root.rstrip("/")


def listing(fs: Any, root: str) -> Iterator[tuple[str, int, int, bool]]:
    from pyarrow.fs import FileSelector, FileType
    for one in fs.get_file_info(FileSelector(root, allow_not_found=True)):
        if one.base_name:
            time = one.mtime_ns
            yield (one.base_name, one.size or 0, time // 1_000_000_000 if time else 0,
                   one.type == FileType.Directory)


class _Reader(Ranges):
    """Reads an object at any offset, and ranges that are expected several at a time."""

    size: int

    def __init__(self, fs: Any, name: str) -> None:
        self.file = fs.open_input_file(name)
        super().__init__(self.file.size())
        self.name = name

    def _get(self, begin: int, end: int) -> bytes:
        data: bytes = self.file.read_at(end - begin, begin)
        return data

    def _get_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return list(in_parallel(lambda one: self._get(*one), ranges))


def in_parallel(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Results of call for each item, which waits for a server, in order."""
    if len(items) < 2:
        return [call(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(min(_REQUESTS, len(items))) as pool:
        return list(pool.map(call, items))


class _Sink:
    """Writes an object. A small one, such as the manifest, is uploaded at once when it is
    complete."""

    def __init__(self, fs: Any, path: str) -> None:
        self.fs = fs
        self.path = path
        self.held: list[bytes] = []
        self.bytes = 0
        self.stream: Any = None

    def write(self, data: bytes) -> None:
        if self.stream is not None:
            self.stream.write(data)
            return
        self.held.append(data)
        self.bytes += len(data)
        if self.bytes >= _BUFFERED:
            self._start()

    def _start(self) -> None:
        self.stream = self.fs.open_output_stream(self.path)
        held, self.held = self.held, []
        for data in held:
            self.stream.write(data)

    def close(self) -> None:
        if self.stream is None:
            self._start()
        self.stream.close()

    def abort(self) -> None:
        """A stream cannot be cancelled: the object it made is deleted."""
        self.held = []
        if self.stream is not None:
            try:
                self.stream.close()
            finally:
                self.fs.delete_file(self.path)


class _Remote:
    """The methods of a storage for _core.Storage, over a pyarrow filesystem. Nothing is moved:
    shards are written under their final names and are invisible until the manifest names them."""

    move = None
    settle = None
    lock = None
    fetch: Any = None
    put_if: Any = None

    def __init__(self, fs: Any, root: str, path: str) -> None:
        self.fs = fs
        self.root = root
        self.path = path

    def _at(self, name: str) -> str:
        return self.root + "/" + name if name else self.root

    def create(self, name: str, replace: bool) -> _Sink:
        from pyarrow.fs import FileType
        path = self._at(name)
        if not replace and self.fs.get_file_info(path).type != FileType.NotFound:
            raise FileExistsError(17, "expected no object of this name", path)
        return _Sink(self.fs, path)

    def open(self, name: str) -> _Reader:
        return _Reader(self.fs, self._at(name))

    def list(self, folder: str) -> list[tuple[str, int, int, bool]]:
        return list(listing(self.fs, self._at(folder)))

    def remove(self, name: str, folder: bool) -> None:
        from pyarrow.fs import FileType
        path = self._at(name)
        kind = self.fs.get_file_info(path).type
        if kind == FileType.File:
            self.fs.delete_file(path)
        elif kind == FileType.Directory and folder:
            self.fs.delete_dir(path)
