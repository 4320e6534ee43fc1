"""Read one model from many threads: a handle may be shared, and the GIL is free meanwhile.

usage: threads.py [FOLDER]
"""
import concurrent.futures
import os
import sys
import tempfile

import numpy as np

import libsafetensors as st
from libsafetensors.numpy import save_file


def main(folder: str) -> None:
    path = os.path.join(folder, "threads.safetensors")
    save_file({f"layer.{i}": np.full((256, 256), i, np.float32) for i in range(32)}, path)
    with st.open(path, mode="read") as model, \
            concurrent.futures.ThreadPoolExecutor(4) as pool:
        def sum_of(name: str) -> float:
            return float(model[name].numpy().sum())
        print("sum of all:", sum(pool.map(sum_of, model)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(made)
