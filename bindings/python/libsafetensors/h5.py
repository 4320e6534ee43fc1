"""Reads HDF5 files and models of Keras (`.h5`, `.weights.h5`, `.keras`), with the extra
libsafetensors[h5], which is h5py.

    from libsafetensors import h5
    report = h5.convert("model.h5", "model.safetensors")

h5py reads the structure. Nothing is read but the file itself: links other than hard ones, virtual
datasets and external storage are never followed, and HDF5's plugins are not loaded (in a process
that has not imported h5py before, for its whole life). See docs/import.md.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import math
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, BinaryIO, TypedDict

from . import _core
from ._core import SafetensorError
from ._errors import coded, open_coded
from ._types import Closing, Path

__all__ = ["File", "LeftOut", "Report", "Tensor", "convert", "open", "reads"]

_MAGIC = b"\x89HDF\r\n\x1a\n"
_WEIGHTS = "model.weights.h5"
_BLOCK = 16 << 20
_CHUNK_MAX = 1 << 30
_ATTRIBUTE_MAX = 64 << 20
_OBJECTS_MAX = 1 << 22
# Deflate inflates to at most this many times its input.
_DEFLATE_MAX = 1032


class LeftOut(TypedDict):
    """What was not imported, and why."""
    path: str
    why: str


class Report(TypedDict):
    """What a file holds. format: "keras2", "keras3" or "hdf5"; bytes: of all tensors."""
    format: str
    tensors: int
    bytes: int
    left_out: list[LeftOut]


def _error(code: str, message: str) -> SafetensorError:
    return coded(SafetensorError, message, code)


def _import_h5py() -> Any:
    """h5py without plugins: "::" turns them off when HDF5 is loaded; a path that a library
    which was loaded before has is emptied."""
    name = "HDF5_PLUGIN_PRELOAD"
    before = os.environ.get(name)
    os.environ[name] = "::"
    try:
        h5py = import_module("h5py")  # which has no types
        while h5py.h5pl.size():
            h5py.h5pl.remove(0)
    except ImportError as error:
        raise ImportError("HDF5 needs h5py: pip install libsafetensors[h5]") from error
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    return h5py


# ── Types ──

# Size, (sign bit, exponent bit and bits, mantissa bit and bits), exponent bias -> dtype.
_FLOATS = {(2, (15, 10, 5, 0, 10), 15): "F16", (2, (15, 7, 8, 0, 7), 127): "BF16",
           (4, (31, 23, 8, 0, 23), 127): "F32", (8, (63, 52, 11, 0, 52), 1023): "F64"}


def _float_dtype(h5py: Any, kind: Any) -> str | None:
    if kind.get_norm() != h5py.h5t.NORM_IMPLIED or kind.get_precision() != 8 * kind.get_size():
        return None
    return _FLOATS.get((kind.get_size(), kind.get_fields(), kind.get_ebias()))


def _integer_dtype(h5py: Any, kind: Any) -> str | None:
    size = kind.get_size()
    if size not in (1, 2, 4, 8) or kind.get_precision() != 8 * size:
        return None
    return "UI"[kind.get_sign() == h5py.h5t.SGN_2] + str(8 * size)


def _enum_dtype(kind: Any) -> str | None:
    """h5py stores booleans as an enumeration of FALSE and TRUE."""
    members = {kind.get_member_name(i): kind.get_member_value(i)
               for i in range(kind.get_nmembers())} if kind.get_nmembers() == 2 else {}
    return "BOOL" if kind.get_size() == 1 and members == {b"FALSE": 0, b"TRUE": 1} else None


def _complex_dtype(h5py: Any, kind: Any) -> str | None:
    """h5py stores complex numbers as a compound of r and i."""
    if kind.get_size() != 8 or kind.get_nmembers() != 2:
        return None
    fields = [(kind.get_member_name(i), kind.get_member_offset(i)) for i in range(2)]
    parts = [kind.get_member_type(i) for i in range(2)]
    plain = all(part.get_class() == h5py.h5t.FLOAT and part.get_order() == h5py.h5t.ORDER_LE
                and _float_dtype(h5py, part) == "F32" for part in parts)
    return "C64" if plain and fields == [(b"r", 0), (b"i", 4)] else None


def _dtype(h5py: Any, dataset: Any) -> tuple[str, bool]:
    """Name of the dtype, and whether elements are big-endian. _Unreadable if it has none."""
    kind, t = dataset.get_type(), h5py.h5t
    cls, dtype = kind.get_class(), None
    if cls == t.FLOAT:
        dtype = _float_dtype(h5py, kind)
    elif cls == t.INTEGER:
        dtype = _integer_dtype(h5py, kind)
    elif cls == t.ENUM:
        dtype = _enum_dtype(kind)
    elif cls == t.COMPOUND:
        dtype = _complex_dtype(h5py, kind)
    if (cls == t.OPAQUE and kind.get_size() == 2) or dtype == "U16":
        # Keras stores the bits of bfloat16 so.
        try:
            marked = h5py.h5a.exists(dataset, b"dtype") and _texts(h5py, dataset, "dtype")
        except SafetensorError as error:
            raise _Unreadable(error.code, str(error)) from None
        dtype = "BF16" if marked == ["bfloat16"] else dtype
    if dtype is None:
        names = {t.STRING: "strings", t.REFERENCE: "references", t.VLEN: "sequences of any length",
                 t.COMPOUND: "a compound type", t.OPAQUE: "an opaque type",
                 t.ENUM: "an enumeration", t.ARRAY: "an array type", t.TIME: "times",
                 t.BITFIELD: "bit fields"}
        raise _Unreadable("foreign_dtype", "expected numbers, found %s"
                          % names.get(cls, "%d-byte numbers that safetensors has no dtype for"
                                      % kind.get_size()))
    big = cls in (t.FLOAT, t.INTEGER) and kind.get_order() == t.ORDER_BE
    return dtype, big and kind.get_size() > 1


def _texts(h5py: Any, item: Any, name: str) -> list[str]:
    """The strings of an attribute."""
    attribute = h5py.h5a.open(item, name.encode())
    if attribute.get_type().get_class() != h5py.h5t.STRING:
        raise _error("foreign_syntax", "attribute %s: expected strings" % name)
    if attribute.get_space().get_simple_extent_type() == h5py.h5s.NULL:
        return []
    import numpy
    size = math.prod(map(int, attribute.shape)) * attribute.get_type().get_size()
    if size > _ATTRIBUTE_MAX:
        raise _error("foreign_size", "attribute %s: expected at most %d bytes, found %d"
                     % (name, _ATTRIBUTE_MAX, size))
    values = numpy.empty(attribute.shape, attribute.dtype)
    attribute.read(values)
    return [value.decode() if isinstance(value, bytes) else str(value)
            for value in values.reshape(-1).tolist()]


def _long_texts(h5py: Any, item: Any, name: str) -> list[str] | None:
    """The strings of an attribute, which Keras cuts into NAME0, NAME1, … if it is long."""
    if h5py.h5a.exists(item, name.encode()):
        return _texts(h5py, item, name)
    texts: list[str] = []
    for number in itertools.count():
        if not h5py.h5a.exists(item, b"%s%d" % (name.encode(), number)):
            return texts if number else None
        texts += _texts(h5py, item, "%s%d" % (name, number))
    return None


# ── Structure ──

class _Unreadable(Exception):
    """A dataset that cannot be imported: code and reason."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Tensor:
    """One dataset: name, dtype, shape, nbytes, and its path in the file."""

    def __init__(self, file: File, path: str, dataset: Any) -> None:
        self._file, self._dataset, self.path, self.name = file, dataset, path, path
        h5py = file._h5py
        # Before anything that looks at other files: the shape of a virtual dataset does.
        plan = dataset.get_create_plist()
        self._layout = plan.get_layout()
        if self._layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
            raise _Unreadable("foreign_kind", "a virtual dataset, whose values are in other files")
        if plan.get_external_count():
            raise _Unreadable("foreign_kind", "external storage: its values are in other files")
        filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
        odd = [code for code in filters
               if code not in (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE,
                               h5py.h5z.FILTER_FLETCHER32)]
        if odd:
            raise _Unreadable("foreign_kind", "filter %d: expected deflate, shuffle or fletcher32"
                              % odd[0])
        self.dtype, self._big = _dtype(h5py, dataset)
        space = dataset.get_space()
        if space.get_simple_extent_type() == h5py.h5s.NULL:
            raise _Unreadable("foreign_dtype", "an empty dataspace, which has no elements")
        self.shape: tuple[int, ...] = tuple(int(size) for size in space.shape)
        self._size = dataset.get_type().get_size()
        self.nbytes = math.prod(self.shape) * self._size
        self._chunk = plan.get_chunk() if self._layout == h5py.h5d.CHUNKED else None
        self._check_size(dataset.get_storage_size())

    def _check_size(self, stored: int) -> None:
        if self.nbytes > 4 << 30 and self.nbytes > 1000 * stored:
            raise _Unreadable("foreign_size", "declares %d bytes, of which %d are stored"
                              % (self.nbytes, stored))
        bytes_of_chunk = math.prod(map(int, self._chunk or ())) * self._size
        if self._chunk and bytes_of_chunk > _CHUNK_MAX:
            raise _Unreadable("foreign_size", "expected chunks of at most %d bytes, found %d"
                              % (_CHUNK_MAX, bytes_of_chunk))
        offset = self._offset()
        if offset is not None and offset + self.nbytes > self._file._bytes:
            raise _Unreadable("foreign_truncated", "ends at byte %d of a file of %d"
                              % (offset + self.nbytes, self._file._bytes))

    def _offset(self) -> int | None:
        """First byte in the file, if all bytes are there in one piece."""
        if self._layout != self._file._h5py.h5d.CONTIGUOUS or not self.nbytes:
            return None
        offset: int | None = self._dataset.get_offset()
        if offset is not None and self._dataset.get_storage_size() != self.nbytes:
            raise _Unreadable("foreign_size", "declares %d bytes, of which %d are stored"
                              % (self.nbytes, self._dataset.get_storage_size()))
        return offset

    def pieces(self) -> Iterator[Any]:
        """The bytes in C order, little-endian, in pieces of some MiB. OSError, SafetensorError."""
        import numpy
        for piece in self._raw():
            if self._big:
                piece = numpy.frombuffer(piece, ">u%d" % self._size).astype("<u%d" % self._size)
            yield memoryview(piece).cast("B")

    def tobytes(self) -> bytes:
        """All of them."""
        return b"".join(self.pieces())

    def _raw(self) -> Iterator[Any]:
        offset = self._offset()
        if not self.nbytes:
            return
        if offset is None:
            yield from self._blocks()
            return
        for start in range(0, self.nbytes, _BLOCK):
            size = min(_BLOCK, self.nbytes - start)
            yield self._file._read(offset + start, size)

    def _blocks(self) -> Iterator[Any]:
        """Elements as they are stored, read by HDF5: rows of the first axis of which one fits a
        block, in multiples of a chunk if they fit, too."""
        import numpy
        h5py, kind = self._file._h5py, self._dataset.get_type()
        axis, row = len(self.shape), self._size
        while axis and row * self.shape[axis - 1] <= _BLOCK:
            axis -= 1
            row *= self.shape[axis]
        if not axis:
            whole = numpy.empty(self.nbytes, "u1")
            with _hdf5_errors(self.path):
                self._dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, whole, kind)
            yield whole
            return
        axis -= 1
        step = max(1, _BLOCK // row)
        chunk = self._chunk[axis] if self._chunk else 1
        step = step // chunk * chunk or step
        rest = self.shape[axis + 1:]
        for lead in itertools.product(*map(range, self.shape[:axis])):
            for start in range(0, self.shape[axis], step):
                count = min(step, self.shape[axis] - start)
                piece = numpy.empty(count * row, "u1")
                space = self._dataset.get_space()
                space.select_hyperslab((*lead, start, *(0 for _ in rest)),
                                       (*(1 for _ in lead), count, *rest))
                memory = h5py.h5s.create_simple((count * row // self._size,))
                with _hdf5_errors(self.path):
                    self._dataset.read(memory, space, piece, kind)
                yield piece


@contextlib.contextmanager
def _hdf5_errors(where: str) -> Iterator[None]:
    """Turns errors of h5py into a SafetensorError."""
    try:
        yield
    except SafetensorError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise _error("foreign_syntax", "%s: HDF5: %s" % (where, error)) from error


class File(Closing):
    """An HDF5 file or .keras archive that is open: tensors, by name in the order of the file, and
    report. As a context manager it closes the file."""

    def __init__(self, path: Path, *, all: bool = False, skip: bool = False,
                 max_output: int | None = None) -> None:
        self._path = os.fspath(path)
        self._stream = open_coded(self._path)
        self._mode = os.fstat(self._stream.fileno()).st_mode & 0o777 or 0o600
        self._h5: Any = None
        try:
            self._h5py = _import_h5py()
            size = os.fstat(self._stream.fileno()).st_size
            limit = max(1 << 30, 8 * size) if max_output is None else max_output
            if self._read(0, 4) == b"PK\3\4":
                self._stream = _unzip(self._path, self._stream, limit)
            if self._read(0, len(_MAGIC)) != _MAGIC:
                raise _error("foreign_kind", "%s: expected HDF5 or a .keras archive" % self._path)
            self._bytes = os.fstat(self._stream.fileno()).st_size
            with _hdf5_errors(self._path):
                self._h5 = self._h5py.File(self._stream, "r")
                self._import(all, skip, limit)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the file; its tensors cannot be read any longer."""
        if self._h5 is not None:
            self._h5.close()
        self._stream.close()

    def _read(self, offset: int, size: int) -> bytes:
        data = _read_at(self._stream, size, offset)
        while 0 < len(data) < size:
            more = _read_at(self._stream, size - len(data), offset + len(data))
            if not more:
                raise _error("foreign_truncated", "%s: the file became shorter" % self._path)
            data += more
        return data

    def _import(self, all: bool, skip: bool, limit: int) -> None:
        groups, datasets, odd = self._walk()
        chosen, form, unwanted = self._choose(groups, datasets, odd, all)
        self.tensors: dict[str, Tensor] = {}
        left = [LeftOut(path=path, why=why) for path, (_, why) in odd.items()]
        for name, path in chosen:
            try:
                if path not in datasets:
                    raise _Unreadable(*odd.get(path, ("foreign_syntax", "no such dataset")))
                tensor = Tensor(self, path, datasets[path])
            except _Unreadable as error:
                if not skip:
                    raise _error(error.code, "%s: %s: %s; skip leaves it out"
                                 % (self._path, path, error)) from None
                if path not in odd:
                    left.append(LeftOut(path=path, why=str(error)))
                continue
            tensor.name = name
            self.tensors[name] = tensor
        known = {path for _, path in chosen}
        left += [LeftOut(path=path, why=unwanted) for path in datasets if path not in known]
        total = sum(tensor.nbytes for tensor in self.tensors.values())
        if total > limit:
            raise _error("foreign_size", "%s: expected at most %d bytes of tensors, found %d; "
                         "max_output sets the limit" % (self._path, limit, total))
        self.report = Report(format=form, tensors=len(self.tensors), bytes=total, left_out=left)

    def _walk(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, tuple[str, str]]]:
        """All groups and datasets by path, along hard links only, each group once; and what is
        neither, with error code and reason."""
        h5 = self._h5py
        groups: dict[str, Any] = {"": self._h5["/"].id}
        datasets: dict[str, Any] = {}
        odd: dict[str, tuple[str, str]] = {}
        seen = {_address(h5, groups[""]): "/"}
        waiting = [""]
        kinds = {h5.h5l.TYPE_SOFT: "a soft link", h5.h5l.TYPE_EXTERNAL: "an external link"}
        while waiting:
            at = waiting.pop()
            below: list[str] = []
            for raw in list(groups[at]):
                path = (at + "/" if at else "") + raw.decode()
                link = groups[at].links.get_info(raw).type
                if len(groups) + len(datasets) + len(odd) > _OBJECTS_MAX:
                    raise _error("foreign_table", "%s: expected at most %d objects"
                                 % (self._path, _OBJECTS_MAX))
                if link != h5.h5l.TYPE_HARD:
                    odd[path] = ("foreign_kind", kinds.get(link, "a link of a user's type")
                                 + ", which is not followed")
                    continue
                item = h5.h5o.open(groups[at], raw)
                if isinstance(item, h5.h5d.DatasetID):
                    datasets[path] = item
                elif not isinstance(item, h5.h5g.GroupID):
                    odd[path] = ("foreign_kind", "a type, which has no values")
                elif _address(h5, item) in seen:
                    odd[path] = ("foreign_ambiguous", "the group %s again, by a hard link"
                                 % seen[_address(h5, item)])
                else:
                    seen[_address(h5, item)] = path
                    groups[path] = item
                    below.append(path)
            waiting += reversed(below)
        return groups, datasets, odd

    def _choose(self, groups: dict[str, Any], datasets: dict[str, Any],
                odd: dict[str, tuple[str, str]],
                all: bool) -> tuple[list[tuple[str, str]], str, str]:
        """Names and paths of the tensors, the format, and why others are left out."""
        every = [(path, path) for path in [*datasets, *odd]]
        for root in ("", "model_weights"):
            layers = root in groups and _long_texts(self._h5py, groups[root], "layer_names")
            if layers:
                chosen = self._keras2(groups, root, layers)
                return every if all else chosen, "keras2", "not a weight of the model"
        if any("vars" in path.split("/")[:-1] for path in datasets):
            model = [pair for pair in every if all or pair[0].split("/")[0] != "optimizer"]
            return model, "keras3", "state of the optimizer"
        return every, "hdf5", ""

    def _keras2(self, groups: dict[str, Any], root: str,
                layers: list[str]) -> list[tuple[str, str]]:
        """Named as Keras does, or, if names are there twice, by the layer, too."""
        prefix = root + "/" if root else ""
        found: list[tuple[str, str]] = []
        for layer in dict.fromkeys([*layers, "top_level_model_weights"]):
            group = groups.get(prefix + layer)
            if group is None and layer in layers:
                raise _error("foreign_syntax", "%s: %s%s: expected the group of a layer"
                             % (self._path, prefix, layer))
            names = group and _long_texts(self._h5py, group, "weight_names")
            found += [(name, "%s/%s" % (layer, name)) for name in names or ()]
        short = {name for name, _ in found}
        if len({path for _, path in found}) != len(found):
            raise _error("foreign_name", "%s: weight_names has a name twice" % self._path)
        unique = len(short) == len(found)
        return [(name if unique else path, prefix + path) for name, path in found]


def _address(h5py: Any, item: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(item)
    return info.fileno, info.addr


# ── Archives ──

def _read_at(stream: BinaryIO, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(stream.fileno(), size, offset)
    with _import_h5py()._objects.phil:  # h5py moves the position, too
        stream.seek(offset)
        return stream.read(size)


def _weights_of(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    """The entry of a .keras archive with the weights. SafetensorError if two readers could see
    two of them."""
    names = [entry.filename.lower() for entry in archive.infolist()]
    if len(set(names)) != len(names):
        raise _error("foreign_ambiguous", "the archive has a name twice")
    entries = {entry.filename: entry for entry in archive.infolist()}
    if "model.weights.npz" in entries:
        raise _error("foreign_kind", "model.weights.npz: Keras writes it as pickles, which are "
                     "not read; save the model as .weights.h5")
    return entries.get(_WEIGHTS)


def _unzip(path: str, stream: BinaryIO, limit: int) -> BinaryIO:
    """The weights of a .keras archive, as a file without a name; closes the stream."""
    copy: BinaryIO = tempfile.TemporaryFile()  # type: ignore[assignment,unused-ignore]
    try:
        with stream, zipfile.ZipFile(stream) as archive:
            entry = _weights_of(archive)
            if entry is None:
                raise _error("foreign_kind", "expected %s in the archive" % _WEIGHTS)
            if entry.file_size > min(limit, _DEFLATE_MAX * entry.compress_size):
                raise _error("foreign_size", "%s: declares %d bytes, of which %d are stored"
                             % (_WEIGHTS, entry.file_size, entry.compress_size))
            if (entry.flag_bits & 1
                    or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)):
                raise _error("foreign_kind", "%s: expected it stored or deflated, not encrypted"
                             % _WEIGHTS)
            with archive.open(entry) as source:
                while piece := source.read(_BLOCK):
                    copy.write(piece)
        copy.flush()
    except zipfile.BadZipFile as error:
        copy.close()
        raise _error("foreign_syntax", "%s: %s" % (path, error)) from error
    except SafetensorError as error:
        copy.close()
        raise _error(error.code, "%s: %s" % (path, error)) from None
    except BaseException:
        copy.close()
        raise
    return copy


# ── What programs call ──

def open(path: Path, *, all: bool = False, skip: bool = False,
         max_output: int | None = None) -> File:
    """Opens an HDF5 file or a .keras archive. Reads the structure only.

    all: also datasets that are not the model's (optimizers), all under their paths. skip: leave
    out, and list in the report, what is no tensor, instead of raising. max_output: bytes of all
    tensors, by default 1 GiB or 8 times the file, whichever is more.

    SafetensorError (foreign_...) for what is not read, with the dataset's path: links, virtual
    datasets, external storage, strings, references, compounds, filters other than deflate,
    shuffle and fletcher32, sizes without data. ImportError without h5py; OSError."""
    return File(path, all=all, skip=skip, max_output=max_output)


def convert(path: Path, output: Path, *, all: bool = False, skip: bool = False,
            max_output: int | None = None, overwrite: bool = False, sync: bool = True) -> Report:
    """Writes the tensors of an HDF5 file or .keras archive as safetensors; layouts stay those of
    Keras. The output appears complete or not at all. overwrite: replace an existing one.
    sync=False does not wait for the disk. Other arguments and errors as for open;
    FileExistsError."""
    with open(path, all=all, skip=skip, max_output=max_output) as file:
        plan = [(tensor.name, tensor.dtype, tensor.shape) for tensor in file.tensors.values()]
        with _core.Writer(output, plan, sync=sync, overwrite=overwrite,
                          limit_mode=file._mode) as writer:
            for name in writer.keys():
                for piece in file.tensors[name].pieces():
                    writer.write(name, piece)
        return file.report


def reads(path: Path) -> bool:
    """Whether the content is HDF5 or a .keras archive. False for what cannot be opened."""
    try:
        with io.open(os.fspath(path), "rb") as stream:
            start = stream.read(len(_MAGIC))
            if start[:4] != b"PK\3\4":
                return start == _MAGIC
            with zipfile.ZipFile(stream) as archive:
                names = archive.namelist()
        return any(name in names for name in (_WEIGHTS, "model.weights.npz"))
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return False


def main(arguments: Sequence[str]) -> int:
    """`python -m libsafetensors convert` of a file that reads() accepts."""
    parser = argparse.ArgumentParser(prog="python -m libsafetensors convert",
                                     description="Converts HDF5 files and models of Keras.")
    parser.add_argument("input")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--all", action="store_true", help="import optimizers, too")
    parser.add_argument("--skip", action="store_true", help="leave out what is no tensor")
    parser.add_argument("--max-output", type=int, metavar="BYTES", help="of all tensors")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    given = parser.parse_args(arguments)
    try:
        report = convert(given.input, given.output, all=given.all, skip=given.skip,
                         max_output=given.max_output, overwrite=given.force)
    except (SafetensorError, OSError, ImportError) as error:
        print("%s: %s" % (parser.prog, error), file=sys.stderr)
        return 1
    print("%s: %d tensors, %d bytes" % (given.output, report["tensors"], report["bytes"]))
    for one in report["left_out"]:
        print("left out: %s: %s" % (one["path"], one["why"]))
    return 0
