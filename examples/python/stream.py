"""Write a file larger than the memory you want to use: piece by piece, in any order of tensors.

usage: stream.py [FOLDER]
"""
import os
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import libsafetensors as st

ROWS, COLUMNS = 64, 1024


def batches() -> Iterator[NDArray[np.float32]]:
    """As they come from a network, a database, a GPU."""
    for start in range(0, ROWS, 16):
        yield np.arange(start * COLUMNS, (start + 16) * COLUMNS, dtype=np.float32)


def main(folder: str) -> None:
    path = os.path.join(folder, "stream.safetensors")
    plan = [("embedding", "F32", [ROWS, COLUMNS]), ("scale", "F32", [ROWS])]
    with st.Writer(path, plan, {"made by": "stream.py"}) as writer:
        for batch in batches():
            writer.write("embedding", batch)
        writer.write("scale", np.ones(ROWS, np.float32))
    with st.open(path) as model:
        print(model["embedding"][-1, -3:].numpy())

    # An error in the block leaves nothing behind.
    lost = os.path.join(folder, "lost.safetensors")
    try:
        with st.Writer(lost, plan) as writer:
            writer.write("scale", np.ones(ROWS, np.float32))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        print("lost.safetensors exists:", os.path.exists(lost))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(made)
