"""The sections of compare.py about other formats: gguf, torch."""
import os
import random
import struct
import subprocess
import sys

from contest import Result, cell, compete, few, ratio, table, take_turns

LISTED, FLOOR_LISTED = "list 20,000 tensors", 25.0  # ms
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


MAKE_TORCH = """
import sys, torch
few, many, strided = sys.argv[1:]
torch.save({"layer.%d.weight" % i: torch.randn(8) for i in range(20000)}, many)
torch.save({"w%d" % i: torch.randn(4096, 4096).half() for i in range(16)}, few)
torch.save({"w%d" % i: torch.randn(4096, 4096).half().t() for i in range(16)}, strided)
"""
LOAD_TORCH = "import sys, torch\ntorch.load(sys.argv[1], weights_only=True, mmap=True)\n"
CONVERT_TORCH = """
import sys, torch
from safetensors.torch import save_file
tensors = torch.load(sys.argv[1], weights_only=True, mmap=True)
save_file({name: t.contiguous() for name, t in tensors.items()}, sys.argv[2], {"format": "pt"})
"""


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

    def torch(self):
        if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            return "torch is missing.\n"
        few_, many, strided = (os.path.join(self.args.data, n + ".pt")
                               for n in ("few", "many", "strided"))
        out, copy = (os.path.join(self.args.data, n) for n in ("out.safetensors", "copy"))
        if not os.path.exists(strided):
            subprocess.run([sys.executable, "-c", MAKE_TORCH, few_, many, strided], check=True)
        ours = os.path.join(self.args.build, "safetensors")
        convert = lambda path: [ours, "convert", path, "-o", out, "--force"]  # noqa: E731
        script = lambda code, *words: [sys.executable, "-c", code, *words]  # noqa: E731
        rows = []
        for title, commands in (
                (LISTED, {"ours": [ours, "ls", many], "torch": script(LOAD_TORCH, many)}),
                ("convert 537 MB", {"ours": convert(few_),
                                    "torch": script(CONVERT_TORCH, few_, out),
                                    "cp": ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "-", few_,
                                           copy]}),
                ("convert 537 MB, transposed", {"ours": convert(strided),
                                                "torch": script(CONVERT_TORCH, strided, out)})):
            got = take_turns(commands, self.args.repeats)
            if title == LISTED:
                self.floor("torch, %s, ms of CPU" % title, min(got["ours"][1].samples),
                           FLOOR_LISTED, False)
            columns = [cell(got[n][i]) if n in got else "–" for n in ("ours", "torch", "cp")
                       for i in (0, 1)]
            rows.append([title, *columns, ratio(got["torch"][0], got["ours"][0])])
        return table(["", "ours, ms", "CPU", "torch, ms", "CPU", "`cp` and `sync`, ms", "CPU",
                      "torch ÷ ours"], rows) + (
            "\nWhole processes, warm cache. Ours is synced and compares checksums; torch: "
            "`torch.load(weights_only=True, mmap=True)`, `contiguous`, `save_file`, not synced.\n")
