"""Tensors of paddle: save, save_file, load, load_file of the official package, through numpy.

numpy has no bfloat16 for paddle: there its bits travel as uint16.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import paddle

from . import _core
from . import numpy as _numpy
from ._official import check_device, open_bytes, open_file, write_bytes, write_file
from ._types import BytesOptions, Path, SaveOptions, Unpack

__all__ = ["save", "save_file", "load", "load_file"]

# Header name -> how paddle calls it, for dtypes whose bits numpy carries as unsigned integers.
_BITS = {"BF16": (np.uint16, "bfloat16"), "F8_E4M3": (np.uint8, "float8_e4m3fn"),
         "F8_E5M2": (np.uint8, "float8_e5m2")}


def _from_tensor(tensor: _core.Tensor, device: Any = None) -> paddle.Tensor:
    place = None if device is None else str(device).replace("cuda", "gpu")
    if tensor.dtype not in _BITS:
        return paddle.to_tensor(tensor.numpy(), place=place)
    integer, name = _BITS[tensor.dtype]
    bits = np.frombuffer(tensor.tobytes(), integer).reshape(tensor.shape)
    return paddle.to_tensor(bits.view(_signed(integer)), place=place).view(name)


def _signed(integer: Any) -> Any:
    # paddle takes uint16 for bfloat16; of integers of this width it has the signed ones.
    return np.int16 if integer is np.uint16 else integer


def _rows(tensors: Mapping[str, paddle.Tensor]) -> tuple[list[Any], list[Any]]:
    """Rows for _core, and what keeps their memory."""
    if not isinstance(tensors, dict):
        raise ValueError("Expected a dict of [str, paddle.Tensor] but received %s" % type(tensors))
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError("Key `%s` is invalid, expected paddle.Tensor but received %s"
                             % (name, type(tensor)))
    rows, kept = [], []
    for name, tensor in tensors.items():
        bits = {called: (header, integer) for header, (integer, called) in _BITS.items()}
        known = bits.get(str(tensor.dtype).rpartition(".")[2])
        if known is None:
            row = _numpy._row(name, tensor.numpy())
        else:
            row = _numpy._row(name, tensor.contiguous().view(
                str(np.dtype(_signed(known[1])))).numpy())
            row = (row[0], known[0], *row[2:])
        rows.append(row[:5])
        kept.append(row[5])
    return rows, kept


def save(tensors: Mapping[str, paddle.Tensor], metadata: Mapping[str, str] | None = None,
         **options: Unpack[BytesOptions]) -> bytes:
    """A whole file in memory. options: as of libsafetensors.numpy.save."""
    rows, kept = _rows(tensors)
    return write_bytes(rows, metadata, **options)


def save_file(tensors: Mapping[str, paddle.Tensor], filename: Path,
              metadata: Mapping[str, str] | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a file. options: as of libsafetensors.numpy.save_file."""
    rows, kept = _rows(tensors)
    write_file(rows, filename, metadata, **options)


def load(data: Any, device: Any = "cpu") -> dict[str, paddle.Tensor]:
    """Tensors of a file in memory: any object with a buffer."""
    device = check_device(device, "paddle")
    with open_bytes(data) as file:
        return {name: _from_tensor(file[name], device) for name in file}


def load_file(filename: Any, device: Any = "cpu", *,
              backend: str = "mmap") -> dict[str, paddle.Tensor]:
    """Tensors of a file, or of a folder or index.json, on a device."""
    device = check_device(device, "paddle")
    with open_file(filename, backend) as file:
        return {name: _from_tensor(file[name], device) for name in file}
