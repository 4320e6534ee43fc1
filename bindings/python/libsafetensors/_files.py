"""Opens and writes files with the arguments, checks and error texts of the official package;
shared by safe_open and the modules of the frameworks."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import ENOENT
from typing import Any

from . import _core
from ._core import SafetensorError
from ._dtypes import HEADER_NAMES
from ._errors import coded
from ._types import Backend, BytesOptions, Level, Mode, SaveOptions, Unpack

__all__ = ["DEFAULT_BACKEND", "bytes_view", "check_metadata", "check_path", "check_target",
           "check_type", "header_name", "open_bytes", "open_file", "replaced", "write_bytes",
           "write_file"]

# Their arrays get memory of their own with either backend; only torch shares the map.
_OWN_MEMORY = ("numpy", "tensorflow", "jax", "mlx", "paddle")

# The official package's message for each of our codes; programs search for these words.
_JSON = "invalid JSON in header"
_OFFSET = "invalid offset for tensor `%s`"
_COVER = "incomplete metadata, file not fully covered"
_SENTENCES = {
    "header_too_small": "header too small", "header_too_large": "header too large",
    "header_truncated": "invalid header length", "header_utf8": "invalid UTF-8 in header",
    "json_syntax": _JSON, "json_string": _JSON, "json_number": _JSON, "json_depth": _JSON,
    "json_trailing": _JSON, "header_not_object": _JSON, "entry_type": _JSON,
    "field_missing": _JSON, "field_duplicate": _JSON, "dtype_type": _JSON,
    "dtype_unknown": _JSON, "shape_type": _JSON, "offsets_type": _JSON, "metadata_type": _JSON,
    "metadata_value": _JSON, "metadata_duplicate": _JSON,
    "offsets_reversed": _OFFSET, "offsets_gap": _OFFSET, "offsets_overlap": _OFFSET,
    "size_overflow": "overflow computing buffer size from shape and/or element type",
    "size_mismatch": "invalid shape, data type, or offset for tensor",
    "size_partial_byte": "The slice is slicing for subbytes dtypes, and the slice does not end "
                         "up at a byte boundary, this is invalid",
    "data_truncated": _COVER, "data_trailing": _COVER}


def reword(error: SafetensorError, doing: str) -> SafetensorError:
    """The same error with the official message in front of ours."""
    code = error.code or ""
    # The first bytes of another format, read as a length, exceed the limit.
    sentence = "header too large" if code.startswith("found_") else _SENTENCES.get(code, "")
    if sentence is _OFFSET:
        sentence %= error.tensor
    error.args = (": ".join(part for part in (doing, sentence, str(error)) if part),)
    return error


def replaced(module: str, name: str) -> Any:
    """What a program has put in the place of an official name in the module of `safetensors` that
    forwards to ours (after install(), or of the stand-in); None if it is as it was. The official
    functions call it."""
    install = sys.modules.get("libsafetensors._install")
    found = install and install.FORWARDED.get(module)
    if not found:
        return None
    now, before = found
    value = now.get(name)
    return None if value is before.get(name) else value


def check_type(value: Any, kind: type, argument: str) -> None:
    """TypeError, with the official message, unless value is of the type."""
    if not isinstance(value, kind):
        found = "'None'" if value is None else "%r object" % type(value).__name__
        raise TypeError("argument %r: %s is not an instance of %r"
                        % (argument, found, kind.__name__))


def check_target(filename: Any) -> None:
    """TypeError unless filename is a path or has write()."""
    if not hasattr(filename, "write"):
        check_path(filename)


def check_path(filename: Any) -> None:
    """TypeError unless filename is a path; bytes are none, as in the official package."""
    if isinstance(filename, bytes):
        check_type(filename, str, "filename")
    if not isinstance(filename, (str, bytes, os.PathLike)):
        hint = ""
        if hasattr(filename, "fs") and hasattr(filename, "open"):
            hint = "; libsafetensors.open takes it, or call its open()"
        raise TypeError("argument 'filename': expected str, bytes or os.PathLike object, not %s%s"
                        % (type(filename).__name__, hint))


def default_backend(platform: str) -> Backend:
    """Backend where none is given. On Windows a private map counts in full as memory in use: a
    model larger than what is left of it could not be mapped, or programs would run out of it."""
    return "pread" if platform == "win32" else "mmap"


DEFAULT_BACKEND: Backend = default_backend(sys.platform)


def open_mode(backend: str, framework: str, is_path: bool, platform: str = sys.platform,
              shared: bool = True) -> Mode:
    """Mode of _core.open. Only torch gets a mapped file, and only where its tensors may share the
    map: not for a device. Arrays that own their memory are copies of what is read or, of slices,
    mapped. "auto" reads what cannot be mapped; on Windows it never maps, and "cow"
    raises where the system refuses."""
    if backend == "pread" or not shared:
        return "read"
    if framework in _OWN_MEMORY:
        return "copy"
    return "cow" if platform == "win32" and is_path else "auto"


def open_file(source: Any, backend: Backend = DEFAULT_BACKEND,
              doing: str = "Error while deserializing header", level: Level = "default",
              framework: str = "numpy", shared: bool = True) -> _core.File:
    """_core.open with the official backends and messages. OSError is the subclass of its
    errno. shared: whether tensors may share a map of the file."""
    if isinstance(source, (bytes, bytearray)):
        check_path(source)
    check_type(backend, str, "backend")
    if backend not in ("mmap", "pread"):
        raise SafetensorError(
            'backend "%s" is invalid (expected one of: "mmap", "pread")' % (backend,))
    is_path = isinstance(source, (str, bytes, os.PathLike)) and not _core.is_url(source)
    mode = open_mode(backend, framework, is_path, shared=shared)
    if is_path and "\0" in os.fsdecode(source):  # officially there is no such file
        raise coded(FileNotFoundError, "No such file or directory: %s" % os.fsdecode(source),
                    "not_found", errno=ENOENT, path=os.fsdecode(source))
    try:
        return _core.open(source, mode=mode, level=level)
    except SafetensorError as error:
        raise reword(error, doing) from None
    except FileNotFoundError as error:
        if not is_path:
            raise
        hint = getattr(error, "hint", None) if "://" in os.fsdecode(source) else None
        again = FileNotFoundError("No such file or directory: %s%s"
                                  % (os.fsdecode(source), "; " + hint if hint else ""))
        again.errno = error.errno
        for name in ("code", "offset", "tensor", "hint", "path"):
            setattr(again, name, getattr(error, name, None))
        raise again from None


def bytes_view(data: Any) -> memoryview:
    """TypeError for objects without a buffer; the error for a path suggests load_file."""
    if isinstance(data, (str, os.PathLike)):
        raise TypeError("expected the bytes of a file, found %s: load_file and "
                        "libsafetensors.open take a path" % type(data).__name__)
    return memoryview(data)


def open_bytes(data: Any) -> _core.File:
    """Opens a file in memory. Tensors are copied, so that they are writable and do not keep it
    alive."""
    view = bytes_view(data)
    try:
        return _core.open(view)
    except SafetensorError as error:
        raise reword(error, "Error while deserializing") from None


# ── Writing ──

def header_name(dtype: str) -> str:
    """Name in a header of a dtype of numpy or torch. SafetensorError lists the supported ones."""
    check_type(dtype, str, "dtype")
    try:
        return HEADER_NAMES[dtype]
    except KeyError:
        raise SafetensorError('Unknown dtype "%s". Supported dtypes: %s'
                              % (dtype, ", ".join(HEADER_NAMES))) from None


def check_metadata(metadata: Any) -> dict[str, str] | None:
    """Returns metadata if it is a dict of str to str, or None; else TypeError."""
    if metadata is None:
        return None
    check_type(metadata, dict, "metadata")
    for pair in metadata.items():
        for text in pair:
            check_type(text, str, "metadata")
    known: dict[str, str] = metadata
    return known


def write_bytes(rows: Sequence[Any], metadata: Any, **options: Unpack[BytesOptions]) -> bytes:
    """_core.save_bytes with the official messages."""
    try:
        return _core.save_bytes(rows, check_metadata(metadata), **options)
    except SafetensorError as error:
        raise reword(error, "Error while serializing") from None


def write_file(rows: Sequence[Any], filename: Any, metadata: Any,
               **options: Unpack[SaveOptions]) -> None:
    """_core.save_file with the official messages and with progress."""
    from ._progress import watch
    progress = options.get("progress")
    metadata = check_metadata(metadata)
    check_target(filename)
    if isinstance(filename, (str, bytes, os.PathLike)) and "\0" in os.fsdecode(filename):
        raise coded(SafetensorError, "Error while serializing: expected a path without NUL, found "
                    "%r" % os.fsdecode(filename), "bad_argument")
    try:
        with watch(progress, "saving") as tick:
            _core.save_file(filename, rows, metadata,
                            **{**options, "progress": tick})  # type: ignore[arg-type]
    except SafetensorError as error:
        raise reword(error, "Error while serializing") from None
