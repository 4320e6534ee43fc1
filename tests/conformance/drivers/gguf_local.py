"""gguf: SafetensorsLocal, which convert_hf_to_gguf of llama.cpp reads models with."""
from gguf.utility import SafetensorsLocal


def read(path):
    return {"tensors": [(name, tensor.dtype, tensor.shape,
                         tensor.mmap_bytes().tobytes() if tensor.data_range.size else b"")
                        for name, tensor in SafetensorsLocal(path).tensors.items()]}
