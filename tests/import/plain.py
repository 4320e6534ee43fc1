"""A safetensors file as its bytes have it, read without a package."""
import json


def read_plain(path):
    """({name: (dtype, shape, bytes)}, metadata) of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    return {name: (t["dtype"], t["shape"],
                   data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}, metadata
