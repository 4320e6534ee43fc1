"""This library, at the level `default`: build/tests/verdict, which uses the public header only."""
import json
import os
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "tests", "verdict")


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    line = subprocess.run([PROGRAM, "--level", "default"], input=struct.pack("<I", len(data)) + data,
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    code, _, rest = line.rstrip("\n").partition(" ")
    if code != "ok":
        raise type(code, (Exception,), {})(code)
    tensors, metadata = json.loads(rest)
    return {"tensors": [(name, dtype, shape, [begin, end])
                        for name, dtype, shape, begin, end in tensors], "metadata": metadata}
