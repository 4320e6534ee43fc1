"""pure-safetensors: SafeTensors, and the buffer of each tensor."""
from pure_safetensors import SafeTensors
from pure_safetensors.adapter import BufferAdapter


def read(path):
    with SafeTensors(path, "r") as f:
        buffers = BufferAdapter(f)
        tensors = []
        for name in buffers:
            buffer, dtype, shape = buffers[name]
            tensors.append((name, dtype.name, shape, bytes(buffer)))
            del buffer
        return {"tensors": tensors, "metadata": f.metadata}
