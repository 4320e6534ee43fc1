"""The section of compare.py about other formats: gguf."""
import os
import random
import struct

from contest import Result, cell, compete, few, ratio, table

ELEMENTS = 16 << 20
# GGUF's number of the type, elements and bytes of a block, where its F16 scales stand, and the
# least that is computed: G elements a second as F16, on one core.
BLOCKS = {"Q8_0": (8, 32, 34, [0], 1.0), "Q4_0": (2, 32, 18, [0], 1.0),
          "Q4_K": (12, 256, 144, [0, 2], 0.6), "Q6_K": (14, 256, 210, [208], 0.6),
          "Q2_K": (10, 256, 84, [80, 82], None), "IQ4_XS": (23, 256, 136, [0], None),
          "IQ2_XXS": (16, 256, 66, [0], None), "MXFP4": (39, 32, 17, [], None)}


def write_gguf(path, number, elements, stored, scales):
    """A tensor of 4,096 columns, of random blocks with scales below 2^-6."""
    draw = random.Random(number)
    block = bytearray()
    for _ in range(4096 // elements * 16):
        one = bytearray(draw.randbytes(stored))
        for at in scales:
            one[at + 1] &= 0xa3
        if not scales:
            one[0] = 112 + one[0] % 12
        block += one
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sI", 1, b"w", 2)
    header += struct.pack("<QQIQ", 4096, ELEMENTS // 4096, number, 0)
    with open(path + ".new", "wb") as file:
        file.write(header + bytes(-len(header) % 32))
        for _ in range(ELEMENTS // 4096 // 16):
            file.write(block)
    os.rename(path + ".new", path)


class Imports:
    """What Bench is given besides its own sections."""

    def gguf(self):
        rows = []
        for name, (number, elements, stored, scales, floor) in BLOCKS.items():
            path = os.path.join(self.args.data, name + ".gguf")
            if not os.path.exists(path):
                write_gguf(path, number, elements, stored, scales)
            got = compete({"ours": [self.tool("bench_import"), path],
                           "f32": [self.tool("bench_import"), path, "F32"],
                           "gguf": self.python("gguf", path)}, self.args.repeats)
            speed = "–"
            if isinstance(got["ours"], Result):
                best = ELEMENTS / min(got["ours"].samples) / 1e6
                speed = few(best)
                if floor:
                    self.floor("gguf, %s to F16, G elements/s" % name, best, floor, True)
            rows.append([name, cell(got["ours"]), speed, cell(got["f32"]), cell(got["gguf"]),
                         ratio(got["gguf"], got["f32"])])
        return table(["blocks", "F16, ms", "G elements/s at best", "F32, ms", "gguf-py, F32, ms",
                      "gguf-py ÷ F32"], rows) + (
            "\n16 Mi elements, one thread, warm cache: the file is opened, its blocks are read and "
            "computed. gguf-py: a `GGUFReader` and `dequantize`, which gives F32.\n")
