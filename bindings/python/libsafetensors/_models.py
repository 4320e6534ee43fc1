"""Reads tensors of a file straight into the parameters and buffers of a model."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from . import _core, _device
from ._dtypes import torch_types
from ._frameworks import moved

__all__ = ["assign_state", "read_state"]

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_LOADERS = (torch.nn.Module._load_from_state_dict,
            torch.nn.modules.batchnorm._NormBase._load_from_state_dict)
"""Those that copy a tensor of a state to the parameter of its name, and no more."""
_LOAD = torch.nn.Module.load_state_dict


def _is_plain(module: torch.nn.Module) -> bool:
    """Whether nothing of the module's own comes between a state and its parameters."""
    return (type(module)._load_from_state_dict in _LOADERS
            and "_load_from_state_dict" not in vars(module)
            and not module._load_state_dict_pre_hooks and not module._state_dict_hooks
            and not module._state_dict_pre_hooks)


def _entries(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        if value is not None and name not in module._non_persistent_buffers_set:
            yield name, value


def _destinations(model: torch.nn.Module) -> tuple[dict[str, torch.Tensor], bool]:
    """Parameters and buffers by name, of modules that are plain and in modules that are; whether
    all modules are."""
    found: dict[str, torch.Tensor] = {}
    odd: list[str] = []
    if type(model).load_state_dict is not _LOAD or "load_state_dict" in vars(model):
        return found, False  # it may drop tensors, or change them, or look at their values
    for path, module in model.named_modules(remove_duplicate=False):
        prefix = path + "." if path else ""
        if not _is_plain(module):
            odd.append(prefix)
        if not any(prefix.startswith(one) for one in odd):
            found.update((prefix + name, value) for name, value in _entries(module))
    return found, not odd


def _is_free(tensor: torch.Tensor) -> bool:
    """Whether copy_() to it changes it and nothing else that could matter."""
    return (type(tensor) in _PLAIN and not tensor.is_meta and tensor.layout == torch.strided
            and not tensor.is_conj() and not tensor.is_neg() and not tensor.is_inference())


def _overlapping(tensors: Sequence[torch.Tensor]) -> set[int]:
    """Addresses of tensors that share bytes with another one. All are contiguous."""
    rows = sorted((str(one.device), one.data_ptr(), one.data_ptr() + one.nbytes)
                  for one in tensors if one.nbytes)
    found: set[int] = set()
    farthest = ("", 0, 0)  # of those before: not always the last of them
    for row in rows:
        if farthest[0] == row[0] and row[1] < farthest[2]:
            found.update((farthest[1], row[1]))
        farthest = max(farthest, row, key=lambda one: (one[0], one[2]))
    return found


class _Memory(_device.Destination):
    """Targets of a load whose memory is there already."""

    def __init__(self, tensors: Sequence[_core.Tensor], into: Sequence[torch.Tensor]) -> None:
        self.parts = [(tensor, block, 0) for block, tensor in enumerate(tensors)]
        self.sizes = [tensor.nbytes for tensor in tensors]
        self._flat = [one.detach().view(-1).view(torch.uint8) for one in into]

    def flat(self, block: int) -> torch.Tensor:
        return self._flat[block]


def _fill(device: _device.Device | None, rows: Sequence[tuple[_core.Tensor, torch.Tensor]]) -> None:
    """Reads tensors to contiguous tensors of their dtype and shape; no device: on the CPU."""
    rows = [row for row in rows if row[0].nbytes]
    tensors, into = [row[0] for row in rows], [row[1] for row in rows]
    if device is not None:
        _device.fill(device, _Memory(tensors, into), warm=False)
    elif rows:
        _core.ReadPlan([(tensor, block, 0) for block, tensor in enumerate(tensors)],
                       [(one.data_ptr(), one.nbytes) for one in into]).run()


def read_state(model: torch.nn.Module, file: _core.File, place: Any) -> dict[str, torch.Tensor]:
    """A state of the model for load_state_dict(). What can be was read into the parameters and
    buffers; for those the state has themselves, so that nothing is copied. The others are loaded
    to a place (None: the CPU), but for those of which the model can only say that it lacks them.

    After an error the model's values are unspecified."""
    free, plain = _destinations(model)
    types = torch_types()
    state: dict[str, torch.Tensor] = {}
    straight: list[tuple[_core.Tensor, torch.Tensor]] = []
    convert: list[tuple[_core.Tensor, torch.Tensor]] = []
    for name, tensor in file.items():
        into = free.get(name)
        shape = _device.shape_of(tensor)
        if into is not None and into.shape == shape and _is_free(into):
            alike = into.dtype is types.get(tensor.dtype) and into.is_contiguous()
            (straight if alike else convert).append((tensor, into))
            state[name] = into
        elif plain and tensor.dtype in types and not name.endswith("_extra_state") and (
                into is None or into.ndim and len(shape) and into.shape != shape):
            # Only its name or its shape is looked at.
            state[name] = moved(tensor, torch.device("meta"))
        else:
            state[name] = moved(tensor, place)
    _copy_straight(straight, convert)
    with torch.no_grad():
        for tensor, into in convert:
            into.copy_(moved(tensor, place))
    return state


def _copy_straight(straight: list[tuple[_core.Tensor, torch.Tensor]],
                   convert: list[tuple[_core.Tensor, torch.Tensor]]) -> None:
    """Reads to parameters; moves to `convert` those that cannot be read to."""
    shared = _overlapping([into for _, into in straight])
    groups: dict[Any, list[tuple[_core.Tensor, torch.Tensor]]] = defaultdict(list)
    for row in straight:
        if row[1].data_ptr() in shared or not _core.is_local(row[0]):
            convert.append(row)
        else:
            groups[row[1].device].append(row)
    for place, rows in groups.items():
        device = None if place.type == "cpu" else _device.device_of(place)
        if device is None and place.type != "cpu":
            convert += rows
        else:
            _fill(device, rows)


# ── Instead of parameters ──

def _places(model: torch.nn.Module) -> dict[int, list[tuple[str, torch.nn.Module, str]]]:
    """Names, modules and attributes of each parameter and buffer of a state, by its identity."""
    found: dict[int, list[tuple[str, torch.nn.Module, str]]] = defaultdict(list)
    for path, module in model.named_modules(remove_duplicate=False):
        for name, value in _entries(module):
            found[id(value)].append((path + "." + name if path else name, module, name))
    return found


def assign_state(model: torch.nn.Module, state: dict[str, torch.Tensor], strict: bool,
                 mismatch: Callable[[torch.nn.Module, Iterable[str], Iterable[str]], str]
                 ) -> tuple[set[str], list[str]]:
    """load_state_dict(assign=True), where of several names of one parameter one is enough, and all
    are one parameter afterwards. Names that are missing and not expected; with strict RuntimeError
    before anything is assigned."""
    shared = [places for places in _places(model).values() if len(places) > 1]
    for places in shared:
        given = next((name for name, _, _ in places if name in state), None)
        for name, _, _ in places:
            if given is not None:
                state.setdefault(name, state[given])
    own = model.state_dict()
    missing = set(own) - set(state)
    unexpected = [name for name in state if name not in own]
    if strict and (missing or unexpected):
        raise RuntimeError(mismatch(model, missing, unexpected))
    model.load_state_dict(state, strict=False, assign=True)
    for places in shared:
        first = getattr(places[0][1], places[0][2])
        for _, module, name in places[1:]:
            setattr(module, name, first)
    return missing, unexpected
