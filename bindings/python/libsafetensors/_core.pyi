"""The C extension, which does all work on bytes. Private: the package re-exports its public names.
This file is the contract between bindings/python/src and the Python modules."""
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Protocol, SupportsIndex, TypeVar, Union, final, overload

from numpy import ndarray as _ndarray
from torch import Tensor as _TorchTensor

from ._results import (ConvertResult, EditResult, LayoutResult, LoraConverted, LoraFactors, LoraInfo, LoraMerged,
                       MixtureBlock, ModelsMerged, TensorStats)
from ._stats import Stats
from ._types import (Level as _Level, Link as _Link, Mode as _Mode, Order as _Order,
                     Readable as _FileLike, Writable as _Writable)
from .dataset._types import ShardFacts
from .remote import Claims, Exchange, Sums

__version__: str
DTYPES: dict[str, tuple[int, str]]
"""Header name of each dtype (in the official order, ascending) -> (bits, kind); kind is
"bool", "uint", "int", "float" or "complex"."""
CODES: dict[str, tuple[int, str, str]]
"""Name of each error code -> (number, sentence, exception class's name)."""

def build_info() -> str: ...
def release_memory() -> int: ...
def __dir__() -> list[str]: ...

class SafetensorError(Exception):
    """An error of the library; str(e) is the path and the message. Its __module__ is
    libsafetensors. Codes for which docs/errors.md names a built-in exception raise that one
    (OSError: the subclass of its errno) with the same attributes."""
    code: str
    """Name of the error code as in docs/errors.md, such as "data_truncated"."""
    offset: int | None
    """Byte of the file, None if unknown."""
    tensor: str | None
    hint: str | None
    """What to try next."""
    errno: int | None
    path: str | None

class TensorNotFoundError(SafetensorError, KeyError):
    """No such tensor: code is "tensor_not_found"."""

# A path or URL; bytes in memory (used in place, kept alive and locked); an object with read and
# seek, or with `size` (int or None) and `read_at(offset, length) -> bytes`; a file of fsspec; or a
# pair of a file system of fsspec or pyarrow, or a store of obstore, and a path.
class _ReadAt(Protocol):
    size: int | None
    def read_at(self, offset: int, length: int, /) -> bytes: ...
class _OfFsspec(Protocol):
    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> str: ...
_Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
_Source = Union[str, PathLike[str], PathLike[bytes], bytes, bytearray, memoryview, _FileLike,
                _ReadAt, _OfFsspec, tuple[Any, str]]
_Progress = Callable[[int, int | None], object] | None
"""Called with bytes done and total (None if unknown) about ten times a second, on the calling
thread. An exception it raises cancels the work and is raised by the call. Signals are checked
as often, also with None."""
_Index = Any
_Array = _ndarray[Any, Any]
class _Buffer(Protocol):
    """What memoryview takes."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
_T = TypeVar("_T")

@final
class File(Mapping[str, Tensor]):
    """An open model: one file, or all shards of one. Immutable; any number of threads may use it.
    Tensors and arrays made from it keep its memory after close(). It is registered as a
    collections.abc.Mapping, but keys, items and values return lists."""
    def __len__(self) -> int: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Tensor: ...
    def __eq__(self, other: object, /) -> bool:
        """Compares with mappings by names and Tensors; Files are equal only if identical."""
    def __hash__(self) -> int: ...
    def keys(self, order: _Order = "offset") -> list[str]:  # type: ignore[override]
        """"natural" sorts numbers in names as numbers: x2 before x10."""
    def items(self) -> list[tuple[str, Tensor]]: ...  # type: ignore[override]
    def values(self) -> list[Tensor]: ...  # type: ignore[override]
    @overload
    def get(self, name: str, default: None = None) -> Tensor | None: ...
    @overload
    def get(self, name: str, default: _T) -> Tensor | _T: ...
    def metadata(self) -> dict[str, str] | None:
        """None if there is no __metadata__. If shards disagree about a key, the first one wins."""
    def numpy(self, names: str | Iterable[str] | None = None, progress: _Progress = None, *,
              dtype: Any = None) -> dict[str, _Array]:
        """Name -> numpy array: all in file order, or those in names, in that order; names may be
        patterns ("*", "?", "[a-z]", "[!a-z]"). Arrays share the memory of a mapped file, private
        to this process; otherwise the data is read, in one pass. dtype: of numpy or torch, or a
        name, to which tensors of its kind are converted, floats to a float, integers to an
        integer. TensorNotFoundError for a name or pattern that nothing matches; SafetensorError
        or OSError if reading fails; TypeError for a dtype that needs ml_dtypes."""
    def torch(self, names: str | Iterable[str] | None = None, progress: _Progress = None, *,
              device: Any = None, dtype: Any = None,
              copy: bool = False) -> dict[str, _TorchTensor]:
        """Name -> torch tensor, on the CPU or on a device; as numpy. device: any that torch knows;
        None: the CPU. copy=True: each in memory of its own, read now."""
    def ls_json(self, order: _Order = "offset") -> str: ...
    def _index(self) -> tuple[str, str] | None:
        """Path of the index, and its metadata as JSON text, which may be empty."""
    def header(self, shard: int = 0) -> bytes:
        """The JSON of the header as stored, with its spaces at the end. IndexError."""
    def memory(self, begin: int, end: int, shard: int = 0) -> _Buffer:
        """Read-only buffer of bytes begin to end of the file, which must be inside its data: the
        memory of a mapped file, else a copy. For reading adjacent tensors at once, from the
        first one's offset to the last one's end. ValueError, IndexError."""
    @property
    def closed(self) -> bool: ...
    mapped: Final[bool]
    """Whether all tensors are in memory: mapped, or in a buffer."""
    paths: Final[list[str]]
    """Paths of the shards; empty for a buffer or an object."""
    nbytes: Final[int]
    """Bytes of all tensors."""
    layouts: Final[dict[str, str | None]]
    """Of open(values=True): how each quantised tensor is stored ("nvfp4", "gptq", ...), by its
    name. None: its values cannot be computed; reading it raises TypeError, which says why."""
    def stats(self, names: str | Iterable[str] | None = None, *, histogram: bool = False,
              threads: int = 0, progress: _Progress = None) -> Stats:
        """Name -> Tensor.stats() of all tensors, or those in names, which may be patterns, as
        `safetensors ls --stats` and `--histogram` show them. Reads their data once. In notebooks
        a table, with histograms if they were asked for. TensorNotFoundError; OSError."""
    def close(self) -> None:
        """A second call does nothing. Afterwards all but `closed` raises ValueError; Tensors and
        arrays remain valid."""
    def __reduce__(self) -> tuple[Any, ...]:
        """By the path; the headers must be the same where it is unpickled."""
    def _repr_html_(self) -> str: ...
    def __enter__(self) -> File: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None, /) -> None: ...

@final
class Tensor:
    """One tensor of a file, or a slice of one: facts cost nothing, bytes are read on demand.
    Exports the buffer protocol and DLPack: the memory of a mapped file, writable and private
    to this process, or, if it is not mapped or not aligned, a copy made once. BufferError for a
    buffer with a format, as memoryview asks for, of BF16 and floats of 8 bits and less, which have
    none."""
    name: Final[str]
    dtype: Final[str]
    shape: Final[tuple[int, ...]]
    ndim: Final[int]
    size: Final[int]
    nbytes: Final[int]
    offset: Final[int]
    """First byte in the file, of the whole tensor."""
    data_offsets: Final[tuple[int, int]]
    """First byte and end in the data of the file, of the whole tensor, as in the header."""
    shard: Final[int]
    aligned: Final[bool]
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]:
        """Always true, whatever it holds."""
    def __eq__(self, other: object, /) -> bool:
        """The same selection of the same open file; values are not compared."""
    def __hash__(self) -> int: ...
    def __getitem__(self, index: _Index, /) -> Tensor:
        """As in numpy: integers, slices of any step, ellipsis. Reads nothing. Also one list or array
        of integers or booleans, as numpy's advanced index: what it selects is read at once, and
        nothing else, into a Tensor of memory. IndexError."""
    def byte_ranges(self) -> list[tuple[int, int]]:
        """Half-open ranges of bytes in the file, in the order of the elements; adjacent ranges
        are joined."""
    def tobytes(self) -> bytes:
        """A copy, packed, in C order, little-endian."""
    def read_into(self, buffer: Any, /) -> None:
        """Reads into a buffer of exactly nbytes: plain bytes, or elements of this dtype."""
    def item(self) -> bool | int | float | complex:
        """The one element. ValueError for more or fewer."""
    def numpy(self, *, dtype: Any = None) -> _Array:
        """A numpy.ndarray of this shape, which keeps its memory: the file's, if it is mapped and
        aligned, writable and private to this process; else a copy made once. dtype: converts,
        and copies unless it is the tensor's. TypeError for a dtype that needs ml_dtypes."""
    def torch(self, *, device: Any = None, dtype: Any = None,
              copy: bool = False) -> _TorchTensor:
        """A torch.Tensor; on the CPU (device=None) with the memory that numpy() would share, or,
        with copy=True, memory of its own. The shape's last dimension is half of this for F4.
        TypeError for a dtype that torch lacks."""
    def stats(self, *, threads: int = 0, progress: _Progress = None,
              histogram: bool = False) -> TensorStats:
        """Statistics of the elements, as `safetensors ls --stats` shows them; of a slice, of what
        it selects. Sums are exact: neither threads nor order change a digit. threads: 0 is one
        per processor. histogram: also how many values are of which magnitude."""
    def __bytes__(self) -> bytes: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

# ── Of this package alone: safetensors_read.h ──

@final
class ReadPlan:
    """What to read, and where to: parts are (Tensor, block, byte of the block), blocks (address,
    bytes) with the address 0 for those that are filled from slots. The caller keeps the memory
    alive. ValueError, SafetensorError."""
    def __new__(cls, parts: Iterable[tuple[Tensor, int, int]],
                blocks: Iterable[tuple[int, int]], *, slot_bytes: int = 0,
                direct: Literal["auto", "never", "always"] = "auto") -> ReadPlan: ...
    wanted: Final[int]
    total: Final[int]
    slot_bytes: Final[int]
    def run(self, *, threads: int = 0, progress: _Progress = None) -> None:
        """Reads everything into blocks that all have an address."""
    def reader(self, *, threads: int = 0) -> Reader: ...

def is_local(tensor: Tensor, /) -> bool:
    """Whether it is of a file of this machine, so that a Reader may read it."""

@final
class Reader:
    """Threads that fill slots with what a ReadPlan wants. One call at a time (RuntimeError)."""
    def add(self, address: int, /) -> None:
        """Lends a slot, of slot_bytes bytes at a multiple of 4096. They are numbered from 0."""
    def starved(self) -> bool:
        """Whether another slot would be used at once."""
    def next(self, milliseconds: int = -1,
             ) -> tuple[int | None, list[tuple[int, int, int, int]]] | None:
        """A filled slot and its copies, each (block, byte of it, byte of the slot, length);
        (None, []) at the end; None if there is none in that time, or the caller has all."""
    def give_back(self, slot: int, /) -> None: ...
    def close(self) -> None:
        """Stops the threads; no slot is touched afterwards."""

def open(source: _Source, *, mode: _Mode = "auto", level: _Level = "default",
         legacy: bool = False, header_only: bool = False,
         max_header_bytes: int | None = None, beneath: _Path | None = None,
         values: bool = False) -> File:
    """A path may be a file, an index.json or a folder with either. "auto" maps privately
    (copy-on-write), and reads if the system cannot map, on Windows always. For a buffer, "map"
    shares its memory, otherwise tensors are copied; an object is read. bytes are a buffer, not a
    path. beneath: a folder the path starts with, if the rest of the path comes from a file: links
    must not lead out of it, and only a regular file is opened. values: quantised tensors are
    float32 values, by the names and in the shapes that the model expects, computed as they are
    read; see File.layouts."""

# ── Writing ──
# A tuple of name, dtype as in the header, shape, data, byte strides or None for packed. data: an
# object with a buffer, (address of the first element, bytes of all elements) of memory that the
# caller keeps alive during the call, or an object with size and read_at(offset, length), which is
# asked for bytes as they are written; those of a Tensor are read so, too.
_Spec = tuple[str, str, Sequence[int], Any, Sequence[int] | None]

def save_file(path: _Path | _Writable, specs: Iterable[_Spec],
              metadata: Mapping[str, str] | None = None, *, sync: bool = True, align: int = 8,
              keep_order: bool = False, spare: int = 0, overwrite: bool = True,
              link: _Link = "replace", progress: _Progress = None,
              in_place_unsafe: bool = False) -> None: ...
def save_set(folder: _Path, specs: Iterable[_Spec], metadata: Mapping[str, str] | None = None, *,
             max_bytes: int = 0, count: int = 0, shards: Sequence[int] | None = None,
             stem: str | None = None, index_metadata: str | None = None, sync: bool = True,
             align: int = 8, keep_order: bool = False, dry_run: bool = False,
             progress: _Progress = None,
             in_place_unsafe: bool = False) -> list[tuple[str, int, int]]:
    """Shards and their index into a folder, new or empty: of at most max_bytes, or count of them,
    or as shards says of each tensor. Returns name, tensors and bytes of each."""
def save_bytes(specs: Iterable[_Spec], metadata: Mapping[str, str] | None = None, *,
               align: int = 8, keep_order: bool = False) -> bytes: ...

@final
class Writer:
    """Writes a file piece by piece; it appears complete at finish(), or not at all. With tensors
    (name, dtype, shape) the header is written first; otherwise space is reserved for it and
    tensors are added. As a context manager: finish, or abandon if the block raises."""
    def __new__(cls, target: _Path | _Writable,
                tensors: Iterable[tuple[str, Any, Sequence[int]]] | Mapping[str, Any] | None = None,
                metadata: Mapping[str, str] | None = None, *, sync: bool = True, align: int = 8,
                keep_order: bool = False, header_room: int = 0, overwrite: bool = True,
                link: _Link = "replace", limit_mode: int = 0, in_place_unsafe: bool = False) -> Writer:
        """target: a path, or an object with write(bytes). With an object, tensors are written in
        the order of the plan; without tensors it must be able to seek, because the header at
        the start of the file is written last. tensors: rows of name, dtype and shape; or a
        mapping of names to tensors (ours, numpy's, torch's), whose dtypes and shapes count, or
        to tuples of both. A dtype is a header's name, or one of numpy or torch. limit_mode:
        permission bits, those of the file that the data come from: others than the owner of the
        new file get none that these lack; 0 limits nothing. in_place_unsafe: as of save_file."""
    def add(self, name: str, dtype: Any, shape: Sequence[int]) -> None:
        """A tensor after the others; only of a Writer made without tensors. SafetensorError for a
        name that is there, or a dtype that the format lacks."""
    def write(self, name: str, data: Any) -> None:
        """The next elements of this tensor, in C order; data: a buffer of plain bytes or of
        little-endian elements of the tensor's dtype (of BF16 also of 16-bit integers), with any
        strides; or a tensor of torch of that dtype, on any device. A piece that is not packed is
        copied, another is not. May be called several times for a tensor, and for tensors in any
        order if the target can seek (else SafetensorError, out_of_order). ValueError for more
        bytes than the tensor has, or another dtype; TensorNotFoundError."""
    def keys(self) -> list[str]:
        """In file order, in which an object that cannot seek takes them."""
    def finish(self) -> None:
        """Publishes the file, after waiting for the disk unless sync=False. SafetensorError
        (incomplete) unless every tensor is complete: then nothing is published. OSError."""
    def abandon(self) -> None:
        """Removes what was written. Never raises; after finish it does nothing."""
    def __enter__(self) -> Writer: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None, /) -> None: ...

# ── Tools: results are the library's JSON text ──
def open_records(texts: list[tuple[str, bytes]], /) -> object: ...
def info_json(source: _Source, full: bool = True, deep: bool = False,
              records: object | None = None) -> tuple[str, Claims | None]: ...
def fits(a: _Source, b: _Source) -> tuple[
    Literal["yes", "likely", "loads", "unknown", "no", "none"], str]: ...
def check_json(path: _Source, level: _Level = "default", deep: bool = False,
               progress: _Progress = None) -> str:
    """An invalid file is reported in the result, not raised."""
def hash_json(path: _Source, algos: str = "sha256", threads: int = 0,
              progress: _Progress = None) -> str: ...
def diff_json(a: _Path, b: _Path, atol: float | None = None, rtol: float | None = None,
              header: bool = False, metadata: bool = True, progress: _Progress = None) -> str: ...
def open_import(path: _Path, *, root: str | None = None, all: bool = False, skip: bool = False,
                shared: str = "alias", quantised: str = "refuse", sparse: str = "refuse",
                dequantised: str = "F16", as_: Any = None, strip_prefix: str | None = None,
                separator: str | None = None, max_output: int | None = None,
                scalars: bool = False) -> tuple[File, object, str]: ...
def recognise(path: _Path, /) -> str | None: ...
def is_url(path: object, /) -> bool:
    """Whether it is a str with a URL that is read here."""
@final
class Remote:
    """What URLs are opened by after use(): connections, credentials and what servers told. Reads
    the environment and tokens when it is made; sends nothing. Any number of threads may use it."""
    def __new__(cls, *, connections: int = 8, offline: bool = False, public_only: bool = False,
                anonymous: bool = False, whole: bool = False,
                cache: str | PathLike[str] | None = None, proxy: str | None = None,
                connect_timeout: float | None = 10, timeout: float | None = 30, retries: int = 4,
                token: str | None = None,
                on_exchange: Callable[[Exchange], object] | None = None) -> Remote:
        """cache: a folder of headers; proxy: None is the environment's, "" none; token: of the Hub,
        instead of the environment's; on_exchange: called after each exchange, by whichever thread
        made it. ValueError, TypeError; OSError for the cache."""
    def claims(self, url: str, /) -> Claims | None:
        """What the server says of a file that was opened; None for others. Sends nothing."""
    @property
    def sums(self) -> Sums: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """Open files keep its connections until they are closed. May be called again."""
    def __enter__(self) -> Remote: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None, /) -> None: ...
def remote_use(remote: Remote | None, /) -> Remote | None: ...
def transport_head(exchange: object, status: int, headers: tuple[bytes, ...], /) -> bool:
    """headers: name and value by turns."""
def transport_body(exchange: object, data: bytes, /) -> bool: ...
def transport_go_on(exchange: object, /) -> bool: ...
def import_save(capsule: object, output: _Path, *, overwrite: bool = False, sync: bool = True,
                progress: _Progress = None) -> None: ...
def import_verify(capsule: object, *, progress: _Progress = None) -> None: ...
def convert(path: _Path, output: _Path, dtype: str, *, names: str | Iterable[str] | None = None,
            saturate: bool = False, overrule_scales: bool = False, overwrite: bool = False,
            sync: bool = True, threads: int = 1, progress: _Progress = None,
            dequantize: bool = False, lossy: bool = False, dry_run: bool = False,
            in_place_unsafe: bool = False) -> ConvertResult:
    """Returns the number of tensors by action ("cast", "same", "other", "scaled", "scale",
    "dequantize", "drop", "kept"), "lost" (of LostValues), and "bytes_before", "bytes_after". A model of
    several files becomes a folder, unless output ends in .safetensors or .sft."""
def lora_info(path: _Path, config: bytes | None = None, norms: bool = True) -> LoraInfo: ...
def lora_merge(model: _Path, adapters: Sequence[tuple[_Path, float, str | None, bytes | None]],
               output: _Path, *, dora: int = 0, stochastic: int | None = None,
               ignore_unmatched: bool = False, overwrite: bool = False, sync: bool = True,
               threads: int = 0, progress: _Progress = None, dry_run: bool = False,
               in_place_unsafe: bool = False) -> LoraMerged:
    """adapters: path, strength, blocks, and the text of adapter_config.json."""
def layout(paths: tuple[_Path, ...], output: _Path, to: int, *, architecture: str | None = None,
           ignore_unmatched: bool = False, max_bytes: int = 0, dry_run: bool = False,
           overwrite: bool = False, sync: bool = True, progress: _Progress = None,
           in_place_unsafe: bool = False) -> LayoutResult: ...
def merge_models(models: tuple[_Path, ...], weights: tuple[str | None, ...], output: _Path,
                 method: str | None, base: int, params: tuple[str, ...], recipe: str | None,
                 seed: int | None, dtype: str | None, *, ignore_missing: bool = False,
                 overwrite: bool = False, sync: bool = True, threads: int = 0,
                 progress: _Progress = None, dry_run: bool = False,
                 in_place_unsafe: bool = False) -> ModelsMerged: ...
def merge_named(recipe: str, /) -> list[str]:
    """The models that a recipe names."""
def merge_of(models: tuple[_Path, ...], *, progress: _Progress = None) -> tuple[list[MixtureBlock], int]:
    """The result first; blocks, the last of all, and tensors left out."""
def lora_factors(verb: int, inputs: Sequence[tuple[_Path, float, str | None, bytes | None]],
                 output: _Path, *, rank: int = 0, conv_rank: int = 0, rule: int = 0,
                 value: float = 0.0, kohya: bool = False, dtype: str | None = None,
                 norms: bool = False, names: int = 0, min_diff: float = 0.0,
                 clamp_quantile: float = 0.0, ignore_unmatched: bool = False,
                 dry_run: bool = False, overwrite: bool = False, sync: bool = True,
                 threads: int = 0, progress: _Progress = None,
                 architecture: str | None = None,
                 in_place_unsafe: bool = False) -> LoraFactors:
    """verb, rule, names: numbers of sft_adapter_verb, _rule, _format."""
def lora_convert(path: _Path, output: _Path, to: int, *, architecture: str | None = None,
                 model: _Path | None = None, config: bytes | None = None,
                 ignore_unmatched: bool = False, overwrite: bool = False, sync: bool = True,
                 progress: _Progress = None, dry_run: bool = False,
                 in_place_unsafe: bool = False) -> LoraConverted: ...
def cast(data: Any, source: str, target: str, saturate: bool = False) -> bytearray: ...
def edit(path: _Path, *, set: Mapping[str, str] | None = None, remove: Iterable[str] = (),
         rename: Mapping[str, str] | None = None, output: _Path | None = None,
         safe: bool = False, sync: bool = True, keep_mtime: bool = False, force: bool = False,
         link: _Link = "replace", dry_run: bool = False, progress: _Progress = None,
         put: Iterable[_Spec] = (), in_place_unsafe: bool = False) -> EditResult:
    """put: elements for tensors of the file, of the same dtype and shape. {"method"} alone for an
    index, whose own metadata is changed."""
def recover(path: _Path, *, force: bool = False, sync: bool = True) -> Literal["clean", "old", "new"]: ...

# ── Datasets ──
# Arrow data are passed as PyCapsules: "_Schema" is a capsule arrow_schema or an object with
# __arrow_c_schema__, "_Batch" a capsule arrow_array of the right schema or an object with
# __arrow_c_array__, which is compared with it.
_Schema = Any
_Batch = Any
DATASET_OPTIONS: dict[str, tuple[str, str | None, Literal["batch", "kv", "both"], str]]
"""Name of each option of a write -> (values, default or None, mode it is for, sentence)."""

@final
class ArrowStream:
    """Batches of a capsule arrow_array_stream or an object with __arrow_c_stream__, each a
    capsule arrow_array. Errors of the producer are raised as ValueError or OSError."""
    def __new__(cls, source: Any) -> ArrowStream: ...
    def schema(self) -> Any: ...
    def __iter__(self) -> ArrowStream: ...
    def __next__(self) -> Any: ...

@final
class DatasetOptions:
    """Checked options of a write, from texts; immutable."""
    def __new__(cls, options: Mapping[str, str]) -> DatasetOptions: ...
    def check(self, schema: _Schema, /) -> str:
        """JSON of the columns for rows of this schema; raises if it cannot be written."""
    mode: Final[Literal["batch", "kv"]]
    indexed: Final[bool]

@final
class Storage:
    """Where a dataset is stored: a local folder, or an object with these methods.

    create(name, replace): returns an object with write(bytes), close(), which publishes it, and
    abort(). open(name): returns a source for libsafetensors.open, of known size. list(folder):
    returns tuples of name, bytes, seconds since 1970 or 0, and whether it is a folder.
    remove(name, folder).

    Optional (absent or None): move(from, to); settle(folder); lock(seconds), which raises
    TimeoutError, or NotImplementedError if there are no locks, with unlock(); path, for
    messages. Without a lock, commits are serialised by move_new(from, to), which atomically
    moves without replacing, or by put_if(name, bytes, tag), which atomically replaces what has
    this tag (None: nothing) and returns whether it did, with fetch(name), which returns bytes
    and tag. A storage with none of these is refused unless single_writer.

    Names are relative, with "/". FileNotFoundError and FileExistsError have their usual meaning;
    any other exception is raised by the call unchanged."""
    def __new__(cls, target: Any, *, sync: bool = True,
                single_writer: bool = False) -> Storage: ...

@final
class ShardWriter:
    """Rows of one task on their way into shards. job: Commit.job; partition: number of the
    task's part, which orders the dataset. threads: 0 for one per processor; with more than one,
    rows are hashed beside writing."""
    def __new__(cls, options: DatasetOptions, storage: Storage, job: str, partition: int,
                schema: _Schema, *, threads: int = 1) -> ShardWriter: ...
    def append(self, batch: _Batch, progress: _Progress = None) -> None: ...
    def close(self, progress: _Progress = None) -> str:
        """Receipts, as Commit.add takes them."""
    def abandon(self) -> None: ...

@final
class Commit:
    """Turns receipts into a manifest: add, prepare, publish, close; or abort, close."""
    def __new__(cls, options: DatasetOptions, storage: Storage, schema: _Schema | None = None, *,
                how: Literal["error", "append", "overwrite"] = "error",
                adopt_listing: bool = False, job: str | None = None,
                lock_wait: float = 0) -> Commit:
        """lock_wait: seconds; 0 is one minute."""
    job: Final[str]
    job_folder: Final[str]
    """"_job-…", the folder where an index is written before it is published; "" if nothing
    is moved and it is written in the dataset's folder."""
    @property
    def indexed(self) -> bool: ...
    @property
    def manifest(self) -> str: ...
    def add(self, receipts: str, /) -> None: ...
    def prepare(self, progress: _Progress = None) -> None: ...
    def index(self) -> Any:
        """A capsule arrow_array_stream, to be released before close."""
    def publish(self, index: str | None = None, progress: _Progress = None) -> list[str]:
        """Returns warnings: after the manifest is published, nothing is raised."""
    def abort(self) -> None: ...
    def close(self) -> None: ...

@final
class Dataset:
    """A dataset's manifest, read once."""
    def __new__(cls, storage: Storage, version: int = 0, asof: int = 0) -> Dataset: ...
    manifest: Final[str]
    mode: Final[Literal["batch", "kv"] | None]
    warnings: Final[list[str]]
    def shards(self) -> list[ShardFacts]:
        """In the order of samples: name, bytes, samples, valid_samples, first_sample, tensors,
        shadowed, sha256, deleted."""
    def masks(self) -> dict[int, bytes]:
        """Of each shard with deleted rows, by number: a bit a row, the lowest first; in KV mode a
        tensor, by name."""
    def places(self) -> list[tuple[int, str, str | None, int, str | None]]:
        """Columns that shards lack: (number of the shard, column, file or None, bytes, sha256)."""
    def check_shard(self, number: int, /) -> None:
        """Raises dataset_shard or dataset_changed unless it matches the manifest."""
    def info_json(self, path: str | bytes, /) -> str: ...
    def ls_json(self, path: str | bytes, keys: Iterable[str] | None = None, /) -> str: ...

def dataset_verify(storage: Storage, path: str | bytes, deep: bool = False,
                   progress: _Progress = None) -> str: ...
def dataset_gc(storage: Storage, path: str | bytes, grace: int = 86400, delete: bool = False,
               keep: int = 0, older: int = 0) -> str: ...
def dataset_versions(storage: Storage, path: str | bytes, /) -> str: ...
def dataset_renew(storage: Storage, job: str, /) -> str: ...
def dataset_compact(storage: Storage, path: str | bytes, warnings: list[str], target_bytes: int = 0,
                    progress: _Progress = None, dry_run: bool = False,
                    manifest: str | None = None, drop_old: bool = False,
                    batch_size: int = 0) -> str: ...
def dataset_add(storage: Storage, path: str | bytes, warnings: list[str], values: Storage,
                columns: tuple[str, ...] = (), version: int = 0, progress: _Progress = None,
                dry_run: bool = False) -> str:
    """values: the storage of the dataset that has them."""
def dataset_delete(storage: Storage, path: str | bytes, warnings: list[str], rows: bytes = b"",
                   version: int = 0, keys: tuple[str, ...] = (), progress: _Progress = None,
                   dry_run: bool = False) -> str:
    """rows: pairs of 64-bit numbers, the first row and the one behind the last."""
