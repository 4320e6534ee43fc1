"""Tensors of paddle: save, save_file, load, load_file of the official package, through numpy.

bfloat16 is passed to and from numpy as the bits of uint16.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import paddle

from . import numpy as _numpy
from ._files import open_bytes, open_file, write_bytes, write_file
from ._frameworks import PADDLE_BITS, check_device, paddle_integer, paddle_tensor
from ._types import Backend, BytesOptions, SaveOptions, Source, Target, Unpack

__all__ = ["save", "save_file", "load", "load_file"]


def _rows(tensors: Mapping[str, paddle.Tensor]) -> tuple[list[Any], list[Any]]:
    """Rows for _core, and the objects that own their memory."""
    if not isinstance(tensors, dict):
        raise ValueError("Expected a dict of [str, paddle.Tensor] but received %s" % type(tensors))
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError("Key `%s` is invalid, expected paddle.Tensor but received %s"
                             % (name, type(tensor)))
    bits = {called: (header, width) for header, (width, called) in PADDLE_BITS.items()}
    rows, kept = [], []
    for name, tensor in tensors.items():
        header, width = bits.get(str(tensor.dtype).rpartition(".")[2], ("", 0))
        if not header:
            row = _numpy._row(name, tensor.numpy())
        else:
            row = _numpy._row(name, tensor.contiguous().view(paddle_integer(width)).numpy())
            row = (row[0], header, *row[2:])
        rows.append(row[:5])
        kept.append(row[5])
    return rows, kept


def save(tensors: Mapping[str, paddle.Tensor], metadata: Mapping[str, str] | None = None,
         **options: Unpack[BytesOptions]) -> bytes:
    """Returns the bytes of a file. options: as for libsafetensors.numpy.save."""
    rows, kept = _rows(tensors)
    return write_bytes(rows, metadata, **options)


def save_file(tensors: Mapping[str, paddle.Tensor], filename: Target,
              metadata: Mapping[str, str] | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a file atomically. options: as for libsafetensors.numpy.save_file."""
    rows, kept = _rows(tensors)
    write_file(rows, filename, metadata, **options)


def load(data: Any, device: Any = "cpu") -> dict[str, paddle.Tensor]:
    """Tensors of a file in memory, given as any object with a buffer."""
    device = check_device(device, "paddle")
    with open_bytes(data) as file:
        return {name: paddle_tensor(file[name], device) for name in file}


def load_file(filename: Source, device: Any = "cpu", *,
              backend: Backend = "mmap") -> dict[str, paddle.Tensor]:
    """Tensors of a file, or of all shards of a folder or index.json, on a device."""
    device = check_device(device, "paddle")
    with open_file(filename, backend) as file:
        return {name: paddle_tensor(file[name], device) for name in file}
