"""fastsafetensors, on the processor: its own parser and its own copies."""
import dtypes
import tensor_bytes
from fastsafetensors import SafeTensorsFileLoader


def read(path):
    loader = SafeTensorsFileLoader(None, device="cpu", nogds=True, max_threads=1)
    loader.add_filenames({0: [path]})
    buffers = loader.copy_files_to_device()
    tensors = [(name, buffers.get_tensor(name)) for name in loader.get_keys()]
    return {"tensors": [(name, dtypes.name(tensor.dtype), tensor.shape, tensor_bytes.of(tensor))
                        for name, tensor in tensors]}
