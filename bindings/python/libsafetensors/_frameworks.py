"""Converts our tensors to those of each framework, which is imported on first use."""
from __future__ import annotations

from typing import Any, Callable

from . import _core
from ._core import SafetensorError
from ._errors import coded

__all__ = ["FRAMEWORKS", "PADDLE_BITS", "check_device", "maker", "moved", "paddle_integer",
           "paddle_tensor"]

FRAMEWORKS = {"pt": "torch", "torch": "torch", "pytorch": "torch",
               "np": "numpy", "numpy": "numpy", "tf": "tensorflow", "tensorflow": "tensorflow",
               "jax": "jax", "flax": "jax", "mlx": "mlx", "paddle": "paddle"}

# Header name -> bytes of the integers that carry its bits, and its name in paddle.
PADDLE_BITS = {"BF16": (2, "bfloat16"), "F8_E4M3": (1, "float8_e4m3fn"),
               "F8_E5M2": (1, "float8_e5m2")}


def check_device(device: Any, framework: str) -> Any:
    """Returns None for the CPU, else the device; for torch any that torch knows."""
    if device is None or device == "cpu":
        return None
    if isinstance(device, str):
        kind, colon, index = device.partition(":")
        if colon and not (index.isascii() and index.isdigit()):
            raise ValueError("device %s is invalid: expected a number after the colon" % device)
        if kind == "mps" and index not in ("", "0"):
            raise SafetensorError(
                "device %s is invalid: only mps or mps:0 is supported" % device)
    if framework not in ("torch", "paddle"):
        raise SafetensorError(
            "Device %s is not supported for framework %s" % (device, framework))
    if framework == "torch":
        import torch
        try:
            known = torch.device(device)
        except (RuntimeError, TypeError):
            from ._device import there
            raise coded(SafetensorError, "device %s is invalid" % (device,), "bad_argument",
                        "there are: " + there()) from None
        return None if known.type == "cpu" else known
    return device


# ── Tensors of each framework ──

def moved(tensor: _core.Tensor, target: Any, dtype: Any = None, copy: bool = False) -> Any:
    """A torch tensor on the target (None: the CPU) and of a dtype of torch.

    What is copied to a device never comes from a private writable map: pinning its pages would
    break copy-on-write for each of them."""
    if target is None:
        found = tensor.torch(copy=copy)
    else:
        from ._device import load_one
        found = load_one(target, tensor)
    try:
        return found if dtype is None else found.to(dtype)
    except NotImplementedError:
        raise TypeError("torch does not convert %s to %s" % (found.dtype, dtype)) from None


def paddle_integer(width: int) -> str:
    """numpy's name of the integers whose bits paddle reinterprets: signed for 2 bytes, because
    paddle takes uint16 for bfloat16 itself."""
    return "int16" if width == 2 else "uint8"


def paddle_tensor(tensor: _core.Tensor, device: Any = None) -> Any:
    import numpy as np
    import paddle
    place = None if device is None else str(device).replace("cuda", "gpu")
    if tensor.dtype not in PADDLE_BITS:
        return paddle.to_tensor(tensor.numpy(), place=place)
    width, name = PADDLE_BITS[tensor.dtype]
    bits = np.frombuffer(tensor.tobytes(), paddle_integer(width)).reshape(tensor.shape)
    return paddle.to_tensor(bits, place=place).view(name)


def _tensorflow(tensor: _core.Tensor) -> Any:
    from tensorflow import convert_to_tensor
    return convert_to_tensor(tensor.numpy())


def _jax(tensor: _core.Tensor) -> Any:
    from jax.numpy import array
    return array(tensor.numpy())  # a copy: jax may keep memory of numpy's, and a map is writable


def _mlx(tensor: _core.Tensor) -> Any:
    from mlx.core import array
    return array(tensor.numpy())


_LATE = {"tensorflow": _tensorflow, "jax": _jax, "mlx": _mlx}


def maker(framework: str, device: Any) -> Callable[[_core.Tensor], Any]:
    """Returns a function from our tensor to the framework's; imports the framework if the official
    package does so when a file is opened, not with its first tensor."""
    if framework in _LATE:
        return _LATE[framework]
    if framework == "numpy":
        __import__("numpy")
        return _core.Tensor.numpy
    if framework == "torch":
        __import__("torch")
        if device is None:
            return _core.Tensor.torch
        return lambda tensor: moved(tensor, device)
    __import__("paddle")
    return lambda tensor: paddle_tensor(tensor, device)
