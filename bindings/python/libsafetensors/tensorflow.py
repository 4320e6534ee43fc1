"""Tensors of tensorflow: save, save_file, load, load_file of the official package, through
numpy."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from . import numpy as _numpy
from ._files import replaced
from ._types import Backend, BytesOptions, SaveOptions, Source, Target, Unpack

__all__ = ["save", "save_file", "load", "load_file"]


def _to_numpy(tensors: Mapping[str, tf.Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: np.asarray(array.numpy()) for name, array in tensors.items()}


def _from_numpy(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(array) for name, array in arrays.items()}


def save(tensors: Mapping[str, tf.Tensor], metadata: Mapping[str, str] | None = None,
         **options: Unpack[BytesOptions]) -> bytes:
    """Returns the bytes of a file. options: as for libsafetensors.numpy.save."""
    return _numpy.save(_to_numpy(tensors), metadata, **options)


def save_file(tensors: Mapping[str, tf.Tensor], filename: Target,
              metadata: Mapping[str, str] | None = None, **options: Unpack[SaveOptions]) -> None:
    """Writes a file atomically. options: as for libsafetensors.numpy.save_file."""
    _numpy.save_file(_to_numpy(tensors), filename, metadata, **options)


def load(data: Any) -> dict[str, tf.Tensor]:
    """Tensors of a file in memory, given as any object with a buffer."""
    return _from_numpy(_numpy.load(data))


def load_file(filename: Source, *, backend: Backend = "mmap") -> dict[str, tf.Tensor]:
    """Tensors of a file, or of all shards of a folder or index.json."""
    other = replaced(__name__, "safe_open")
    if other is not None:
        with other(filename, framework="tf", backend=backend) as opened:
            return dict(opened.get_tensors())
    return _from_numpy(_numpy.load_file(filename, backend=backend))
