"""Models and folders composed from short descriptions.

A tensor line reads  NAME DTYPE SHAPE [=VALUE]  where {a-b} in NAME runs over the numbers
and {x|y} over the words, SHAPE is 1,2,3 or - for a scalar, and VALUE is the number that
every element of a small float or I64 tensor holds; other data are zeros that take no disk.
"""
import json
import os
import re
import struct
import zlib

SIZES = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16,
         "BF16": 16, "I16": 16, "U16": 16, "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8,
         "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4}
RANGE = re.compile(r"\{([^{}]*)\}")


def spread(name):
    """Every name a pattern stands for."""
    found = RANGE.search(name)
    if not found:
        return [name]
    words = found.group(1).split("|")
    numbers = re.match(r"(\d+)-(\d+)$", found.group(1))
    if numbers:
        words = range(int(numbers.group(1)), int(numbers.group(2)) + 1)
    return [n for w in words
            for n in spread(name[:found.start()] + str(w) + name[found.end():])]


def tensors(text):
    """The (name, dtype, shape, value) rows of lines."""
    rows = []
    for line in text.strip().splitlines():
        parts = line.split()
        if not parts:
            continue
        value = float(parts.pop()[1:]) if parts[-1].startswith("=") else None
        shape = [] if parts[2] == "-" else [int(n) for n in parts[2].split(",")]
        rows += [(name, parts[1], shape, value) for name in spread(parts[0])]
    return rows


def pack(dtype, value):
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    if dtype == "I64":
        return struct.pack("<q", int(value))
    return struct.pack({"F16": "<e", "F32": "<f", "F64": "<d"}[dtype], value)


class Model:
    """One file: tensors (lines, or rows) and metadata."""

    def __init__(self, rows, meta=None, prefix="", extra=()):
        rows = tensors(rows) if isinstance(rows, str) else list(rows)
        self.rows = [(prefix + n, d, s, v) for n, d, s, v in rows] + list(extra)
        self.meta = meta

    def names(self):
        return [row[0] for row in self.rows]

    def write(self, path):
        header, at, values = {}, 0, []
        if self.meta is not None:
            header["__metadata__"] = self.meta
        for name, dtype, shape, value in self.rows:
            count = 1
            for n in shape:
                count *= n
            size = count * SIZES[dtype] // 8
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            if value is not None:
                values.append((at, pack(dtype, value) * count))
            at += size
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + at)
            for begin, data in values:
                f.seek(8 + len(text) + begin)
                f.write(data)


class Link:
    """A symbolic link to another path of the case."""

    def __init__(self, target):
        self.target = target


def lora(modules, rank, alpha=None, down="lora_down", up="lora_up", dtype="F16", form=".%s.weight"):
    """Pairs for modules given as lines  NAME IN OUT [KERNEL]."""
    rows = []
    for line in filter(str.strip, modules.splitlines()):
        parts = line.split()
        kernel = [int(parts[3])] * 2 if len(parts) > 3 else []
        for name in spread(parts[0]):
            rows.append((name + form % down, dtype, [rank, int(parts[1])] + kernel, None))
            rows.append((name + form % up, dtype,
                         [int(parts[2]), rank] + ([1, 1] if kernel else []), None))
            if alpha is not None:
                rows.append((name + ".alpha", dtype, [], alpha))
    return rows


def peft(modules, rank, dtype="BF16"):
    return lora(modules, rank, None, "lora_A", "lora_B", dtype)


def png(width=8, height=8, chunks=()):
    """A PNG with text chunks (key, text)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + b"\x40" * 3 * width for _ in range(height))
    texts = b"".join(chunk(b"tEXt", k.encode() + b"\0" + t.encode("latin-1")) for k, t in chunks)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + texts + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg(width=16, height=8):
    """The head of a JPEG: enough to tell its type and size."""
    return (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
            + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width)
            + b"\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01\xff\xd9")


def write(folder, files):
    """The files of one case: text, bytes, an object as JSON, a Model or a Link."""
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, Model):
            content.write(path)
        elif isinstance(content, Link):
            os.symlink(content.target, path)
        else:
            if isinstance(content, (dict, list)):
                content = json.dumps(content)
            with open(path, "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
