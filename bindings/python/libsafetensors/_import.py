"""Models in other formats: PyTorch, NumPy, GGUF, ONNX, Flax, Paddle and TensorFlow. Nothing of a
file is run: a pickle becomes a tree of values, and what a pickle loader would have called is named
(docs/import.md). HDF5 and Keras are read by libsafetensors.h5.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _core
from ._dtypes import dtype_name
from ._core import Tensor
from ._progress import watch
from ._types import Path, Progress, Unpack, parse

if TYPE_CHECKING:
    import numpy
    import torch

    _Arrays = dict[str, numpy.ndarray[Any, Any]]
    _Tensors = dict[str, torch.Tensor]
else:
    _Arrays = _Tensors = dict

__all__ = ["Import", "ImportOptions", "ImportReport", "import_model", "open_import", "recognise"]


class Branch(TypedDict):
    """A branch of the file's tree that holds tensors; path "" is the whole."""

    path: str
    tensors: int
    bytes: int
    chosen: bool


class Alias(TypedDict):
    """A second name of a stored tensor. copied: it has bytes of its own here; partial: the two
    overlap, but are not the same."""

    name: str
    of: str
    copied: bool
    partial: bool


class LeftOut(TypedDict):
    """Something that is in the file and not here, or worth a note."""

    reason: Literal["branch", "skipped", "value", "record", "note"]
    path: str
    text: str
    count: int
    bytes: int


class Global(TypedDict):
    """A global of Python that a pickle names: how often, and how often a loader would call it."""

    module: str
    name: str
    named: int
    calls: int


class ImportReport(TypedDict):
    """What a file holds, and what became of it (docs/json.md)."""

    path: str
    ok: bool
    format: str
    title: str
    tensors: int
    bytes: int
    input_bytes: int
    branches: list[Branch]
    aliases: list[Alias]
    left_out: list[LeftOut]
    globals: list[Global]
    metadata: dict[str, str]


class ImportOptions(TypedDict, total=False):
    """Options of open_import and import_model."""

    root: str | None
    all: bool
    skip: bool
    shared: Literal["alias", "copy", "refuse"]
    quantised: Literal["refuse", "parts", "values"]
    sparse: Literal["refuse", "parts", "dense"]
    dequantised: Any
    as_: Mapping[str, Any] | None
    strip_prefix: str | None
    separator: str | None
    max_output: int | None
    scalars: bool


def _as(dtypes: Mapping[str, Any]) -> Any:
    """A function of name and dtype; of several patterns that match, the last counts."""
    if not isinstance(dtypes, Mapping):
        raise TypeError("as_: expected a mapping of names or patterns to dtypes, found %s"
                        % type(dtypes).__name__)
    rows = [(pattern.replace("[^", "[!"), dtype_name(dtype)) for pattern, dtype in dtypes.items()]

    def find(name: str, dtype: str) -> str | None:
        return next((to for pattern, to in reversed(rows) if fnmatchcase(name, pattern)), None)
    return find


def recognise(path: Path) -> str | None:
    """Name of the format that a file (or the folder of a model) is in, told from its contents:
    "torch", "torchscript", "npz", "gguf", ...; None for safetensors and everything else. Reads at
    most 64 KiB and, of an archive, its directory. OSError."""
    return _core.recognise(path)


class Import(Mapping[str, Tensor]):
    """An open model in another format: its tensors as they would be in a safetensors file, by name.
    Made by open_import. Immutable; any number of threads may use it. Bytes are read, and computed
    if they are not stored so, when they are asked for.

    report: what the file holds and what became of it. format, title: "gguf", "GGUF model"."""

    def __init__(self, path: Path, options: ImportOptions) -> None:
        words: dict[str, Any] = dict(options)
        dtypes = words.get("as_")
        if dtypes is not None:
            words["as_"] = _as(dtypes)
        if words.get("dequantised") is not None:
            words["dequantised"] = dtype_name(words["dequantised"])
        else:
            words.pop("dequantised", None)
        file, capsule, report = _core.open_import(path, **words)
        self._file: _core.File = file
        self._capsule: object = capsule
        self.report: ImportReport = parse(report)
        self.format = self.report["format"]
        self.title = self.report["title"]

    def __repr__(self) -> str:
        return "<libsafetensors.Import %r: %s, %d tensors>" % (
            self.report["path"], self.title, self.report["tensors"])

    def __len__(self) -> int:
        return len(self._file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file)

    def __contains__(self, name: object) -> bool:
        return name in self._file

    def __getitem__(self, name: str) -> Tensor:
        return self._file[name]

    def __enter__(self) -> Import:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def metadata(self) -> dict[str, str]:
        """What save() writes as metadata."""
        return dict(self.report["metadata"])

    def numpy(self, names: Iterable[str] | None = None, progress: Progress = None, *,
              dtype: Any = None) -> _Arrays:
        """Name -> numpy array, as File.numpy."""
        with watch(progress, "reading") as tick:
            return self._file.numpy(names, tick, dtype=dtype)

    def torch(self, names: Iterable[str] | None = None, progress: Progress = None, *,
              device: Any = None, dtype: Any = None) -> _Tensors:
        """Name -> torch tensor, as File.torch."""
        with watch(progress, "reading") as tick:
            return self._file.torch(names, tick, device=device, dtype=dtype)

    def verify(self, progress: Progress = None) -> None:
        """Compares the records with their checksums, as save() does on its way; formats without
        checksums have nothing to compare. SafetensorError (foreign_checksum); OSError."""
        with watch(progress, "verifying") as tick:
            _core.import_verify(self._open(), progress=tick)

    def save(self, output: Path, *, overwrite: bool = False, sync: bool = True,
             progress: Progress = None) -> None:
        """Writes all tensors as one safetensors file, atomically; sync=False does not wait for
        the disk. FileExistsError; SafetensorError (foreign_checksum, cast_value); OSError."""
        with watch(progress, "saving") as tick:
            _core.import_save(self._open(), output, overwrite=overwrite, sync=sync, progress=tick)

    def close(self) -> None:
        """Closes the file once no tensor of it is in use. May be called again."""
        self._file.close()
        self._capsule = None

    def _open(self) -> object:
        if self._capsule is None:
            raise ValueError("the import is closed")
        return self._capsule


def open_import(path: Path, **options: Unpack[ImportOptions]) -> Import:
    """Opens a model in another format; the format is told from the contents. path: of a file, or of
    a folder with a SavedModel or an index of PyTorch shards. Reads the table of contents only.

    root: the branch whose tensors are taken ("model", "optimizer.state"; report["branches"] lists
    them); None is the whole, or else the model's. all: every branch, under its whole path. skip:
    leave out what has no counterpart, rather than fail. shared: of names that share one tensor keep
    the first ("alias"; the metadata gives the others), copy the bytes, or refuse. quantised, sparse:
    tensors of PyTorch that are stored so: "refuse", their "parts", or their "values" ("dense").
    dequantised: dtype of GGUF's blocks, F16 (the default), BF16 or F32. as_: patterns of names and
    dtypes, for elements whose dtype the file does not tell. strip_prefix: taken off names;
    separator: between the levels of nested names, "." by default. max_output: limit of the bytes of
    all tensors; None is 1 GiB or 8 times the input, whichever is more. scalars: numbers become
    tensors, too.

    SafetensorError (foreign_...) with code, offset and tensor; FileNotFoundError, OSError;
    ValueError for options."""
    return Import(path, options)


def import_model(path: Path, output: Path, *, overwrite: bool = False, sync: bool = True,
                 progress: Progress = None, **options: Unpack[ImportOptions]) -> ImportReport:
    """Converts a model in another format to one safetensors file, as the command's convert does,
    and returns the report. options: those of open_import. The rest is as of Import.save:
    FileExistsError unless overwrite; SafetensorError, TypeError or ValueError for what cannot be
    converted; OSError. Nothing is written then."""
    with open_import(path, **options) as model:
        model.save(output, overwrite=overwrite, sync=sync, progress=progress)
        return model.report
