"""tinygrad: nn.state.safe_load, each tensor copied to bytes."""
import dtypes
from tinygrad.nn.state import safe_load, safe_load_metadata

MOST = 64  # tensors whose bytes are compared: each copy is a program of its own


def read(path):
    metadata = safe_load_metadata(path)[2].get("__metadata__")
    tensors = enumerate(safe_load(path).items())
    return {"tensors": [(name, dtypes.name(tensor.dtype), tensor.shape, data(tensor, i))
                        for i, (name, tensor) in tensors], "metadata": metadata}


def data(tensor, i):
    if i >= MOST:
        return None
    return bytes(tensor.bitcast("uint8").data()) if tensor.numel() else b""
