"""huggingface_hub: parse_local_safetensors_file_metadata, headers only."""
from huggingface_hub.hf_api import parse_local_safetensors_file_metadata


def read(path):
    found = parse_local_safetensors_file_metadata(path)
    return {"tensors": [(name, one.dtype, one.shape, list(one.data_offsets))
                        for name, one in found.tensors.items()], "metadata": found.metadata}
