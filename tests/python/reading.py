"""Files in memory for the tests of reading, and the ways to hand them over."""
import io
import json
import struct
import sys

import numpy as np

from libsafetensors import _core

BITS = {name: bits for name, (bits, _) in _core.DTYPES.items()}
WHOLE = [name for name, bits in BITS.items() if bits >= 8]
NUMPY = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
         "I32": "<i4", "U32": "<u4", "F32": "<f4", "C64": "<c8", "F64": "<f8", "I64": "<i8",
         "U64": "<u8"}
"""dtypes that numpy has itself."""


MAPS = sys.platform != "win32"
"""Whether mode="auto" maps."""


def pack(tensors, metadata=None, spaces=0, order=None):
    """Bytes of a file: tensors is {name: (dtype, shape, bytes)}; spaces are put behind the
    header, so that the data begin anywhere."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    if order:
        header = {name: header[name] for name in order}
    if metadata is not None:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode() + b" " * spaces
    return struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values())


def aligned(tensors, metadata=None):
    """The same with data that begin at a multiple of 64."""
    bare = len(pack(tensors, metadata))
    data = sum(len(raw) for _, _, raw in tensors.values())
    return pack(tensors, metadata, -(bare - data) % 64)


def filling(dtype, elements, seed=0):
    """Bytes of so many elements: of BOOL 0 and 1, else anything."""
    draw = np.random.default_rng(seed)
    top = 2 if dtype == "BOOL" else 256
    return draw.integers(0, top, elements * BITS[dtype] // 8, np.uint8).tobytes()


def one_of_each(shape=(4, 6)):
    """A tensor of every dtype, named as it."""
    return {name: (name, shape, filling(name, int(np.prod(shape)), i))
            for i, name in enumerate(BITS)}


class ReadAt:
    """A source with size and read_at that counts the bytes read."""

    def __init__(self, data, known=True):
        self.data = data
        self.size = len(data) if known else None
        self.reads = []

    def read_at(self, offset, length):
        self.reads.append((offset, length))
        return self.data[offset:offset + length]


class OnlyRead:
    """A file without readinto that returns a few bytes at a time."""

    def __init__(self, data):
        self.inner = io.BytesIO(data)

    def read(self, n):
        return self.inner.read(min(n, 1000))

    def seek(self, offset, whence=0):
        return self.inner.seek(offset, whence)


WAYS = ["auto", "map", "cow", "read", "bytes", "lent", "bytearray", "mmap", "fileobj", "trickle",
        "read_at", "endless"]


def opened(way, path, data, **options):
    """An open file over path (which holds data) or over data, in one of WAYS."""
    if way in ("auto", "map", "cow", "read"):
        return _core.open(path, mode=way, **options)
    if way == "lent":
        return _core.open(data, mode="map", **options)
    if way == "mmap":
        import mmap
        with open(path, "rb") as file:
            lent = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _core.open(lent, mode="map", **options)
    source = {"bytes": lambda: data, "bytearray": lambda: bytearray(data),
              "fileobj": lambda: io.BytesIO(data), "trickle": lambda: OnlyRead(data),
              "read_at": lambda: ReadAt(data), "endless": lambda: ReadAt(data, False)}[way]()
    return _core.open(source, **options)
