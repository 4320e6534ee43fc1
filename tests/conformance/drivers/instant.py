"""InstantTensor: the parser alone; what follows it needs a GPU."""
from instanttensor._impl import read_safetensors_metadata


def read(path):
    metadata, tensors, _ = read_safetensors_metadata(path)
    return {"tensors": [(name, one["dtype"], one["shape"], one["data_offsets"])
                        for name, one in tensors.items()], "metadata": metadata}
