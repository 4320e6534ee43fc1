"""Save two tensors, open the file, look at it, take a slice.

usage: first.py [FOLDER]
"""
import os
import sys
import tempfile

import numpy as np

import libsafetensors as st
from libsafetensors.numpy import save_file


def main(folder: str) -> None:
    path = os.path.join(folder, "first.safetensors")
    save_file({"weight": np.arange(12, dtype=np.float32).reshape(3, 4),
               "bias": np.zeros(4, dtype=np.float16)}, path, {"author": "me"})
    with st.open(path) as model:
        print("metadata:", model.metadata())
        for name in model:
            tensor = model[name]
            print(f"{name}: {tensor.dtype} {list(tensor.shape)}, {tensor.nbytes} bytes "
                  f"at {tensor.offset}")
        # Only these two rows are read.
        print(model["weight"][1:, ::-1].numpy())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(made)
