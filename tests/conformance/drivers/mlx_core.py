"""mlx, processor build: mlx.core.load with metadata."""
import dtypes
import mlx.core as mx


def read(path):
    arrays, metadata = mx.load(path, format="safetensors", return_metadata=True)
    return {"tensors": [(name, dtypes.name(array.dtype), array.shape, data(array))
                        for name, array in arrays.items()], "metadata": metadata}


def data(array):
    """Bytes by way of the dtypes that the buffer protocol has."""
    if not array.size:
        return b""
    return bytes(memoryview(mx.contiguous(array).reshape(-1).view(mx.uint8)))
