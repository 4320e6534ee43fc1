"""Tensors of torch: save, save_file, load, load_file, save_model, load_model of the official
package.

Loaded CPU tensors share the memory of the file, which is mapped privately: writes never reach
the file. The caller's dicts are not changed.
"""
from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import _core
from ._dtypes import torch_types
from ._files import (DEFAULT_BACKEND, check_metadata, open_bytes, open_file, replaced,
                     write_bytes, write_file)
from ._frameworks import check_device
from ._types import Backend, BytesOptions, Path, Progress, SaveOptions, Source, Target, Unpack

if TYPE_CHECKING:
    from ._official import TensorSpec as TensorSpec
    from ._official import deserialize as deserialize
    from ._official import safe_open as safe_open
    from ._official import serialize as serialize
    from ._official import serialize_file as serialize_file

__all__ = ["save", "save_file", "load", "load_file", "save_model", "load_model",
           "load_group", "release_pinned"]


def __getattr__(name: str) -> Any:
    from ._official import official_name
    return official_name(__name__, name)


_TYPES: dict[str, torch.dtype] = torch_types()
_NAMES = {dtype: header for header, dtype in _TYPES.items()}
_SIZE = {dtype: dtype.itemsize for dtype in _NAMES}
"""Bytes of one element in torch."""


def _getdtype(dtype_str: str) -> torch.dtype:
    """torch's dtype of a name in a header; KeyError."""
    return _TYPES[dtype_str]


# ── Tensors that share memory ──

def storage_ptr(tensor: torch.Tensor) -> int:
    """Address of the storage; 0 if there is none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def storage_size(tensor: torch.Tensor) -> int:
    """Bytes of the storage, or of the tensor if it has none."""
    try:
        return tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):
        return tensor.nelement() * tensor.element_size()


def _end_ptr(tensor: torch.Tensor) -> int:
    """Address after the last element."""
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether it covers its whole storage."""
    return (tensor.data_ptr() == storage_ptr(tensor)
            and tensor.nelement() * tensor.element_size() == storage_size(tensor))


def _overlapping(names: Iterable[str], tensors: Mapping[str, torch.Tensor]) -> list[set[str]]:
    """Groups of names whose byte ranges overlap, by address."""
    groups: list[set[str]] = []
    reach = None
    for start, end, name in sorted(
            (tensors[name].data_ptr(), _end_ptr(tensors[name]), name) for name in names):
        if reach is None or start >= reach:
            groups.append(set())
        groups[-1].add(name)
        reach = end if reach is None else max(reach, end)
    return groups


def _find_shared_tensors(state_dict: Mapping[str, torch.Tensor]) -> list[set[str]]:
    """Names grouped by shared memory; a tensor that shares none is a group of its own. Tensors
    without memory (meta, empty) are in no group."""
    storages: dict[Any, list[str]] = defaultdict(list)
    for name, tensor in state_dict.items():
        if tensor.device.type != "meta" and storage_ptr(tensor) and storage_size(tensor):
            storages[tensor.device, storage_ptr(tensor), storage_size(tensor)].append(name)
    return _filter_shared_not_shared([set(names) for names in storages.values()], state_dict)


def _filter_shared_not_shared(groups: Iterable[set[str]],
                              state_dict: Mapping[str, torch.Tensor]) -> list[set[str]]:
    """Splits groups of one storage into groups whose bytes overlap."""
    found: list[set[str]] = []
    for names in groups:
        found.extend([names] if len(names) == 1 else _overlapping(names, state_dict))
    return found


def _keep_one(shared: set[str], tensors: Mapping[str, torch.Tensor], preferred: set[str],
              discard: set[str]) -> str:
    """The name to save among those that share memory."""
    complete = {name for name in shared if _is_complete(tensors[name])}
    if not complete:
        raise RuntimeError(
            "Error while trying to find names to remove to save state dict, but found no suitable "
            "name to keep for saving amongst: %s. None covers the whole memory that they share, "
            "so saving one could lose elements of another. Save contiguous copies: "
            "tensor.clone()." % sorted(shared))
    for better in (complete - discard & preferred, complete & preferred, complete - discard):
        if better:
            return min(better)
    return min(complete)


def _remove_duplicate_names(state_dict: Mapping[str, torch.Tensor], *,
                            preferred_names: str | Iterable[str] | None = None,
                            discard_names: str | Iterable[str] | None = None) -> dict[str, list[str]]:
    """Name to keep -> other names of the same memory. RuntimeError if no name covers the whole of
    some memory."""
    preferred, discard = set(preferred_names or ()), set(discard_names or ())
    found: dict[str, list[str]] = defaultdict(list)
    for shared in _find_shared_tensors(state_dict):
        kept = _keep_one(shared, state_dict, preferred, discard)
        if len(shared) > 1:
            found[kept] = sorted(shared - {kept})
    return found


def _aliases(state_dict: Mapping[str, Any],
             preferred_names: Iterable[str] = ()) -> dict[str, list[str]]:
    """_remove_duplicate_names for tensors that share memory; a view by itself is kept."""
    groups = [group for group in _find_shared_tensors(state_dict) if len(group) > 1]
    return _remove_duplicate_names({name: state_dict[name] for group in groups for name in group},
                                   preferred_names=preferred_names)


# ── Writing ──

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# Module (or package) of a subclass of Tensor -> how to convert it to plain tensors.
_HOOKS = {
    "torch.distributed": "save what tensor.full_tensor() returns, which every rank must call, or "
                         "tensor.to_local(), this rank's part",
    "torchao": "tensors, metadata = flatten_tensor_state_dict(state_dict) of "
               "torchao.prototype.safetensors.safetensors_support makes what can be saved (and "
               "unflatten_tensor_state_dict what was loaded), or save tensor.dequantize()",
    "torch._subclasses": "a FakeTensor has no values: save the real one",
    "torch.nested": "save tensor.values() and tensor.offsets(), or tensor.to_padded_tensor(0)",
}


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether it has bytes at an address, unlike subclasses that wrap other tensors."""
    try:
        return bool(tensor.data_ptr()) or not tensor.nelement()
    except (NotImplementedError, RuntimeError):
        return False


def _refuse_wrapper(name: str, tensor: torch.Tensor) -> None:
    """ValueError for a subclass that wraps other tensors; plain subclasses are accepted."""
    if not tensor.is_nested and (tensor.is_meta or _has_memory(tensor)):
        return
    kind = type(tensor)
    home = "torch.nested" if tensor.is_nested else kind.__module__
    hook = next((text for module, text in _HOOKS.items()
                 if (home + ".").startswith(module + ".")), None)
    if hook is None:
        hook = "save the plain tensors that it is made of"
        if hasattr(kind, "__tensor_flatten__"):
            hook += ", which its __tensor_flatten__() names"
    raise ValueError("Key `%s` is a %s.%s, which wraps other tensors and has no memory of its own "
                     "to be saved: %s." % (name, kind.__module__, kind.__qualname__, hook))


def _evaluate_tensors_for_save(tensors: Any) -> None:
    """ValueError for what cannot be written, RuntimeError for tensors that share memory."""
    if not isinstance(tensors, dict):
        raise ValueError("Expected a dict of [str, torch.Tensor] but received %s" % type(tensors))
    sparse = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError("Key `%s` is invalid, expected torch.Tensor but received %s"
                             % (name, type(tensor)))
        if type(tensor) not in _PLAIN or tensor.is_nested:
            _refuse_wrapper(name, tensor)
        if tensor.layout != torch.strided:
            sparse.append(name)
    if sparse:
        raise ValueError(
            "You are trying to save a sparse tensors: `%s` which this library does not support. "
            "You can make it a dense tensor before saving with `.to_dense()` but be aware this "
            "might make a much larger file than needed." % sparse)
    if _may_share(tensors.values()):
        groups = [sorted(group) for group in _find_shared_tensors(tensors) if len(group) > 1]
        if groups:
            raise RuntimeError(
                "Some tensors share memory, this will lead to duplicate memory on disk and "
                "potential differences when loading them again: %s. Use `save_model`, which keeps "
                "one name of each, or save copies (tensor.clone())." % groups)


def _may_share(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether any two byte ranges overlap: fast, and enough for most models, whose storages
    then need not be compared."""
    ranges = []
    for tensor in tensors:
        if tensor.is_contiguous():
            start = tensor.data_ptr()
            ranges.append((start, start + tensor.nbytes))
        elif not tensor.is_meta:
            ranges.append((tensor.data_ptr(), _end_ptr(tensor)))
    ranges.sort()
    reach = 0
    for start, end in ranges:
        if start < reach and start < end:
            return True
        reach = max(end, reach)
    return False


def _dtype_name(name: str, tensor: torch.Tensor) -> str:
    known = _NAMES.get(tensor.dtype)
    if known is None:
        raise _core.SafetensorError("Key `%s` has the dtype %s, which the format lacks; it "
                                    "has %s" % (name, tensor.dtype, ", ".join(map(str, _NAMES))))
    return known


def _shape(tensor: torch.Tensor) -> Sequence[int]:
    """Shape in the header, where a float4_e2m1fn_x2 counts as two elements."""
    shape = tensor.shape
    if tensor.dtype is not _TYPES.get("F4") or not shape:
        return shape
    return (*shape[:-1], shape[-1] * 2)


def _check_contiguous(name: str, tensor: torch.Tensor) -> None:
    if not tensor.is_contiguous():
        raise ValueError(
            "You are trying to save a non contiguous tensor: `%s` which is not allowed. It may "
            "be a view of another tensor: then save that one and slice it after loading. Else "
            "call `.contiguous()` on it first." % name)


def _on_cpu(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the CPU, with the bytes of the file: lazy conjugates and negatives are
    resolved. ValueError if it is not contiguous, RuntimeError for a meta tensor."""
    _check_contiguous(name, tensor)
    if not tensor.is_cpu:
        tensor = tensor.detach().to("cpu")
    if tensor.is_conj():
        tensor = tensor.detach().resolve_conj()
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if tensor.nbytes and not tensor.data_ptr():
        raise ValueError("Key `%s` is a tensor whose memory was freed (as FSDP does with its "
                         "parameters): gather it first." % name)
    return tensor if sys.byteorder == "little" else _swapped(tensor.detach())


def _swapped(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes in little-endian order, on a big-endian host."""
    width = tensor.element_size() // (2 if tensor.dtype.is_complex else 1)
    return tensor.reshape(-1).view(torch.uint8).reshape(-1, width).flip(1).contiguous()


def _row(name: str, tensor: torch.Tensor, kept: list[torch.Tensor]) -> tuple[Any, ...]:
    """A row for _core; a tensor made for it is added to kept."""
    dtype, shape = _dtype_name(name, tensor), _shape(tensor)
    plain = _on_cpu(name, tensor)
    if plain is not tensor:
        kept.append(plain)
    return name, dtype, shape, (plain.data_ptr(), plain.nbytes), None


def _plain_row(name: str, tensor: torch.Tensor, kept: list[torch.Tensor]) -> tuple[Any, ...]:
    """_row of any tensor that can be saved, contiguous or not. ValueError for others."""
    plain = tensor.detach()
    if plain.layout == torch.strided:
        plain = plain.contiguous()
    _evaluate_tensors_for_save({name: plain})
    kept.append(plain)
    return _row(name, plain, kept)


class _Pieces:
    """The bytes of a tensor on a device, copied to the CPU as they are asked for."""

    def __init__(self, tensor: torch.Tensor) -> None:
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
        self._flat = plain.reshape(-1).view(torch.uint8)
        self.size: int = self._flat.numel()

    def read_at(self, offset: int, length: int) -> Any:
        return self._flat[offset:offset + length].cpu().numpy()


def _lazy_row(name: str, tensor: torch.Tensor, kept: list[torch.Tensor]) -> tuple[Any, ...]:
    """_plain_row, but for a tensor on a device, which is copied as it is written."""
    if tensor.is_cpu or tensor.is_meta or sys.byteorder != "little":
        return _plain_row(name, tensor, kept)
    return name, _dtype_name(name, tensor), _shape(tensor), _Pieces(tensor), None


def save(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None,
         **options: Unpack[BytesOptions]) -> bytes:
    """Returns the bytes of a file. Raises as save_file.

    options: align (8, 64, 256 or 4096: alignment of the data's start), keep_order (of the dict,
    instead of by dtype and name)."""
    other = replaced(__name__, "serialize")
    if other is not None:
        copies: list[Any] = []
        return bytes(other(_flatten_as_ptr(tensors, copies),  # type: ignore[arg-type]
                           metadata=metadata))
    _evaluate_tensors_for_save(tensors)
    kept = list(tensors.values())
    return write_bytes([_row(name, tensor, kept) for name, tensor in tensors.items()], metadata,
                       **options)


def save_file(tensors: Mapping[str, torch.Tensor], filename: Target,
              metadata: Mapping[str, str] | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a file atomically; a replaced file keeps its mode. Tensors on a device are copied to
    the CPU one at a time. An object with write(bytes) instead of a path is written to in order.

    ValueError for values that are not tensors, sparse or not contiguous; RuntimeError for tensors
    that share memory and for meta tensors; SafetensorError for a dtype the format lacks; OSError.

    options: sync (True; False does not wait for the disk), align, keep_order as for save,
    spare (bytes of header reserved for later edits), overwrite (True), link ("replace", "follow"
    or "refuse", if the target is a symbolic link), in_place_unsafe (for file systems that cannot
    rename, such as mounted object stores: the old file is removed, then the new one copied to its
    place; a crash in between leaves a hidden .NAME.sft-XXXXXX, which is whole), progress (True or a
    function)."""
    other = replaced(__name__, "serialize_file")
    if other is not None:
        copies: list[Any] = []
        other(_flatten_as_ptr(tensors, copies), filename,  # type: ignore[arg-type]
              metadata=metadata)
        return
    _evaluate_tensors_for_save(tensors)
    if not all(tensor.is_cpu for tensor in tensors.values()):
        return _stream(tensors, filename, metadata, **options)
    kept = list(tensors.values())
    write_file([_row(name, tensor, kept) for name, tensor in tensors.items()], filename, metadata,
               **options)


def _stream(tensors: Mapping[str, torch.Tensor], filename: Target,
            metadata: Mapping[str, str] | None, **options: Unpack[SaveOptions]) -> None:
    """save_file with one tensor in memory at a time."""
    from ._progress import watch
    progress, spare = options.pop("progress", None), options.pop("spare", 0)
    plan = [(name, _dtype_name(name, tensor), _shape(tensor)) for name, tensor in tensors.items()]
    total = sum(tensor.nbytes for tensor in tensors.values())
    done = 0
    with watch(progress, "saving") as tick, \
            _core.Writer(filename, plan, check_metadata(metadata), header_room=spare,
                         **options) as writer:  # type: ignore[misc]
        for name in writer.keys():
            tensor = _on_cpu(name, tensors[name])
            writer.write(name, _memory(tensor))
            done += tensor.nbytes
            if tick is not None:
                tick(done, total)


def _flatten_as_ptr(tensors: dict[str, torch.Tensor],
                    keep_alive_buffer: list[Any]) -> dict[str, TensorSpec]:
    """Arguments of serialize; keep_alive_buffer gets the owners of the memory."""
    from ._official import TensorSpec
    _evaluate_tensors_for_save(tensors)
    specs = {}
    for name, tensor in tensors.items():
        _dtype_name(name, tensor)
        plain = _on_cpu(name, tensor)
        keep_alive_buffer.append(plain)
        specs[name] = TensorSpec(dtype=str(tensor.dtype).rpartition(".")[2], shape=tensor.shape,
                                 data_ptr=plain.data_ptr(), data_len=plain.nbytes)
    return specs


def _to_ndarray(tensor: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """The tensor's bytes as a flat numpy array, and the owner of the memory."""
    kept = _on_cpu("", tensor)
    return kept.detach().reshape(-1).view(torch.uint8).numpy(), kept


def _memory(tensor: torch.Tensor) -> Any:
    """A buffer over the bytes of a contiguous CPU tensor, which it keeps alive."""
    import ctypes
    size = tensor.nbytes
    if not size:
        return b""
    memory = (ctypes.c_char * size).from_address(tensor.data_ptr())
    memory._tensor = tensor  # type: ignore[attr-defined]
    return memory


def _bytes_of(tensor: torch.Tensor, header: str) -> Any:
    """A buffer of the elements for a Writer, whose tensor has this dtype; copied if the tensor
    is not contiguous or on a device. Bytes may be those of any dtype. ValueError."""
    _evaluate_tensors_for_save({"data": tensor})
    if tensor.dtype not in (torch.uint8, torch.int8) and _NAMES.get(tensor.dtype) != header:
        raise ValueError("expected elements of %s or plain bytes, found a tensor of %s: convert it"
                         % (header, tensor.dtype))
    return _memory(_on_cpu("data", tensor.detach().contiguous()))


# ── Reading ──

def _view2torch(safeview: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, torch.Tensor]:
    """Tensors over the result of deserialize."""
    found = {}
    for name, facts in safeview:
        dtype, shape = _getdtype(facts["dtype"]), facts["shape"]
        if dtype is _TYPES.get("F4") and shape:
            shape = [*shape[:-1], shape[-1] // 2]
        flat = torch.frombuffer(facts["data"], dtype=torch.uint8) if facts["data"] else None
        if flat is None:
            found[name] = torch.empty(shape, dtype=dtype)
        elif sys.byteorder == "little":
            found[name] = flat.view(dtype).reshape(shape)
        else:
            found[name] = _swapped(flat.view(dtype)).view(dtype).reshape(shape)
    return found


def load(data: Any, *, device: Any = "cpu", dtype: Any = None,
         names: str | Iterable[str] | None = None) -> dict[str, torch.Tensor]:
    """Tensors of a file in memory, given as any object with a buffer. Each owns its memory.
    device, dtype, names: as for load_file."""
    other = replaced(__name__, "deserialize")
    if other is not None:
        return _view2torch(other(data))
    with open_bytes(data) as file:
        return file.torch(names, device=device, dtype=dtype)


def load_file(filename: Source, device: Any = "cpu", *, backend: Backend = DEFAULT_BACKEND,
              dtype: Any = None, names: str | Iterable[str] | None = None, progress: Progress = None,
              copy: bool = False, pack: bool = True) -> dict[str, torch.Tensor]:
    """Tensors of a file, all or those in names, on a device (any that torch knows). names may be
    patterns: "*", "?", "[a-z]", "[!a-z]".

    dtype: of torch or numpy, or a name such as "BF16", to which tensors of its kind are
    converted, floats to a float, integers to an integer; scales of quantised ones are not
    applied.

    On the CPU they share the memory of the file, mapped privately; copy=True and backend="pread"
    read it into memory of their own instead, in parallel. That is the default on Windows, where
    a private map counts in full as memory in use and OSError says that it cannot be made.
    filename: also a folder or an index.json, or an object with read and seek.
    pack: whether tensors of less than 1 MiB may share blocks of memory on a CUDA device.
    progress: True or a function of bytes done and total."""
    other = replaced(__name__, "safe_open")
    if other is not None:
        with other(filename, framework="pt", device=device, backend=backend) as opened:
            found: dict[str, torch.Tensor] = opened.get_tensors()
            return found
    from ._arrays import torch_tensors
    from ._progress import watch
    shared = check_device(device, "torch") is None and not copy
    file = open_file(filename, backend, framework="torch", shared=shared)
    with file, watch(progress, "loading") as tick:
        if shared or copy:
            return file.torch(names, tick, device=device, dtype=dtype, copy=copy)
        return torch_tensors(file, names, tick, device, dtype, copy, pack)


def load_group(paths: Any, group: Any = None, *, device: Any = None) -> dict[str, torch.Tensor]:
    """The tensors of files, on all ranks of a process group of torch.distributed, each of which
    reads only its share of the bytes; they are exchanged in windows of 256 MiB.

    paths: a file, a folder or an index.json, or a sequence of them, the same on all ranks. group:
    None is the default group. device: None is the current CUDA device with NCCL, else the CPU.

    All ranks must call it. If one fails, all raise: that one its error, the others
    RuntimeError."""
    from . import _group
    return _group.load_group(paths, group, device=device)


def release_pinned() -> int:
    """Frees the pinned memory that loading to a device has left for the next load, at most
    256 MiB; returns how many bytes that was."""
    from . import _device
    return _device.release_pinned()


# ── Models ──

def save_model(model: torch.nn.Module, filename: Path,
               metadata: Mapping[str, str] | None = None, force_contiguous: bool = True, *,
               max_shard_size: int | str | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a model's state. Of tensors that share memory only one is written; the metadata map
    the other names to it.

    max_shard_size: write shards of at most so many bytes ("5GB"), and their index, into the folder
    filename, as save_sharded does; of the options, sync and progress are taken then (TypeError for
    others).

    RuntimeError if none of them covers the whole memory; ValueError for tensors that are not
    contiguous, unless force_contiguous. options: as for save_file."""
    state = dict(model.state_dict())
    notes = dict(check_metadata(metadata) or {})
    for kept, others in _aliases(state).items():
        for name in others:
            notes.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    told = notes if notes or metadata is not None else None
    try:
        if max_shard_size is not None:
            _save_shards(state, filename, told, max_shard_size,
                         **options)  # type: ignore[misc]
            return
        (replaced(__name__, "save_file") or save_file)(state, filename, metadata=told,
                                                       **options)
    except ValueError as error:
        if force_contiguous or all(tensor.is_contiguous() for tensor in state.values()):
            raise
        raise ValueError("%s Or use save_model(..., force_contiguous=True), which saves "
                         "contiguous copies." % error) from None


def _save_shards(state: dict[str, torch.Tensor], folder: Path, metadata: dict[str, str] | None,
                 most: int | str, *, sync: bool = True, progress: Progress = None) -> None:
    from ._output import byte_size, to_folder
    _evaluate_tensors_for_save(state)
    for name, tensor in state.items():
        _check_contiguous(name, tensor)
    kept = list(state.values())
    to_folder([_lazy_row(name, tensor, kept) for name, tensor in state.items()], folder, metadata,
              max_bytes=byte_size(most), sync=sync, progress=progress, title="saving")


def load_model(model: torch.nn.Module, filename: Source, strict: bool = True, device: Any = "cpu",
               *, backend: Backend = DEFAULT_BACKEND,
               assign: bool = False) -> tuple[set[str], list[str]]:
    """Loads a file into a model: tensors are read straight into parameters and buffers of their
    dtype and shape, and others are loaded to the device first. Of names that share one tensor in
    the model, one is enough. After an error while reading, the model's values are unspecified.
    filename, device, backend: as for load_file, with its errors.

    assign: the tensors of the file, on the device, take the place of the model's parameters and
    buffers, as with load_state_dict(assign=True): for a model on the device "meta", which has no
    memory. On the CPU they share the memory of the file, as those of load_file. Their dtypes are
    those of the file; names of one parameter stay so. Buffers that are not in a state stay as they
    are.

    Returns the model's names that the file lacks, and the file's names that the model lacks;
    with strict, RuntimeError if there are any: with assign the model is then as it was."""
    from ._models import assign_state, read_state
    if assign:
        missing, unexpected = assign_state(model, load_file(filename, device, backend=backend),
                                           strict, _mismatch)
        return missing, unexpected
    place = check_device(device, "torch")
    other = replaced(__name__, "load_file")
    if other is not None:
        state = other(filename, device=device, backend=backend)
    else:
        with open_file(filename, backend, framework="torch", shared=False) as file:
            state = read_state(model, file, place)
    aliases = _aliases(model.state_dict(), state)
    missing_list, surplus = model.load_state_dict(state, strict=False)
    missing, unexpected = set(missing_list), list(surplus)
    for others in aliases.values():
        for name in others:
            if name in missing:
                missing.discard(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        raise RuntimeError(_mismatch(model, missing, unexpected))
    return missing, unexpected


def _mismatch(model: torch.nn.Module, missing: Iterable[str], unexpected: Iterable[str]) -> str:
    text = "Error(s) in loading state_dict for %s:" % type(model).__name__
    for title, names in (("Missing", sorted(missing)), ("Unexpected", sorted(unexpected))):
        if names:
            text += "\n    %s key(s) in state_dict: %s" % (
                title, ", ".join('"%s"' % name for name in names))
    return text
