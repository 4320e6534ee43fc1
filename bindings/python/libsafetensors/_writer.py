"""Plans and data of a Writer that are tensors of numpy or torch: what the extension asks for when a
Writer gets more than names and bytes."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from . import _core

__all__ = ["packed", "plan"]


def _torch() -> Any:
    """torch, if it was imported: else nobody has a tensor of it."""
    return sys.modules.get("torch")


def _row(name: str, value: Any) -> tuple[str, Any, Any]:
    """Name, dtype and shape, in the header's terms."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return name, value[0], value[1]
    torch = _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        from .torch import _dtype_name, _shape
        return name, _dtype_name(name, value), _shape(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return name, value.dtype, value.shape
    raise TypeError("tensors[%r]: expected a tensor, or a tuple of dtype and shape, found %s"
                    % (name, type(value).__name__))


def plan(tensors: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The rows of a Writer's plan: names, dtypes and shapes of tensors, or as they are given."""
    return [_row(name, value) for name, value in tensors.items()]


def packed(data: Any, dtype: str, name: str) -> Any:
    """A buffer of the data's elements, packed in C order. The data themselves if they are nothing
    that could be packed. ValueError for a tensor of another dtype, except of bytes, and for
    masked elements."""
    torch = _torch()
    if torch is not None and isinstance(data, torch.Tensor):
        from .torch import _bytes_of
        return _bytes_of(data, dtype)
    if isinstance(data, memoryview):
        try:
            return memoryview(data.tobytes()).cast(data.format)  # type: ignore[call-overload]
        except ValueError:  # a format of numpy that memoryview has no values for, such as "Zf"
            import numpy as np
            return np.ascontiguousarray(data)
    if hasattr(data, "__array__") and not isinstance(data, _core.Tensor):
        import numpy as np
        from .numpy import check_mask
        check_mask(name, data)
        array = np.asarray(data)
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return data
