"""safetensors of PyPI: safe_open for the header, deserialize for the bytes."""
import safetensors


def read(path):
    with safetensors.safe_open(path, framework="numpy") as f:
        names, metadata = sorted(f.keys()), f.metadata()
    with open(path, "rb") as f:
        parts = safetensors.deserialize(f.read())
    if sorted(name for name, _ in parts) != names:
        raise AssertionError("safe_open and deserialize find different tensors")
    return {"tensors": [(name, part["dtype"], part["shape"], bytes(part["data"]))
                        for name, part in parts], "metadata": metadata}
