"""The lists of the zoo: names, dtypes and shapes of the tensors of public model classes.

tests/zoo/LIBRARY.txt.xz is written by tools/zoo.py. Its lines, by their first character:

  #   the library's version, and those it was run with
  =   a new entry: name, identity and tasks, separated by tabs
  f   the model's file name
  j   another file of its folder: name, tab, JSON text
  m   the metadata of the header as JSON text
  d   the dtype of the tensors that follow
  t   a tensor: shape, blank, name; `layers.{0-31}.weight` stands for 32 of them
  x   a class that could not be made: name, identity, tasks and reason

Standard library only.
"""
import copy
import functools
import itertools
import json
import lzma
import math
import os
import re
import struct
from json.encoder import encode_basestring_ascii as quoted

HERE = os.path.dirname(os.path.abspath(__file__))
RANGE = re.compile(r"\{(\d+)-(\d+)\}")
BYTES = {"F64": 8, "I64": 8, "C64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2,
         "BF16": 2, "I16": 2, "U16": 2, "U8": 1, "I8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}


class Entry:
    """One model: what its class says it is, and the files of its folder."""

    def __init__(self, library, name, identity, tasks):
        self.library, self.name, self.identity = library, name, identity
        self.tasks = set(filter(None, tasks.split(",")))
        self.file, self.texts, self.metadata, self.folded = "model.safetensors", {}, {}, []

    def tensors(self):
        """(name, dtype, shape) of every tensor, by name."""
        found = []
        for name, dtype, shape in self.folded:
            found += [(one, dtype, shape) for one in unfold(name)]
        return sorted(found)


def unfold(name):
    """The names that one stands for."""
    if "{" not in name:
        return [name]
    pieces = RANGE.split(name)
    ranges = [map(str, range(int(a), int(b) + 1)) for a, b in zip(pieces[1::3], pieces[2::3])]
    form = "%s".join(piece.replace("%", "%%") for piece in pieces[::3])
    return [form % numbers for numbers in itertools.product(*ranges)]


def libraries():
    return sorted(name[:-len(".txt.xz")] for name in os.listdir(HERE) if name.endswith(".txt.xz"))


def read(library, folder=HERE):
    """(versions, entries, failures) of a library; a failure is (name, identity, tasks, reason).
    Lists of tensors are shared by all who read it."""
    versions, entries, failures = parsed(library, folder)
    return versions, list(map(copy.copy, entries)), list(failures)


@functools.lru_cache
def parsed(library, folder):
    versions, entries, failures, dtype = "", [], [], None
    with lzma.open(os.path.join(folder, library + ".txt.xz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            kind, rest = line[0], line[2:].rstrip("\n")
            if kind == "t":
                shape, name = rest.split(" ", 1)
                shape = [] if shape == "-" else [int(n) for n in shape.split(",")]
                entries[-1].folded.append((name, dtype, shape))
            elif kind == "d":
                dtype = rest
            elif kind == "=":
                entries.append(Entry(library, *rest.split("\t")))
            elif kind == "f":
                entries[-1].file = rest
            elif kind == "j":
                name, text = rest.split("\t", 1)
                entries[-1].texts[name] = text
            elif kind == "m":
                entries[-1].metadata = json.loads(rest)
            elif kind == "x":
                failures.append(tuple(rest.split("\t", 3)))
            elif kind == "#":
                versions = rest
            else:
                raise ValueError("%s: unknown line %r" % (library, line[:60]))
    return versions, entries, failures


def write_model(path, entry):
    """A file with a true header; its data are a hole."""
    rows, members, offset = [], [], 0
    for name, dtype, shape in entry.folded:
        size = BYTES[dtype] * math.prod(shape)
        told = ':{"dtype":"%s","shape":[%s],"data_offsets":[' % (dtype, ",".join(map(str, shape)))
        rows += [(one, told, size) for one in unfold(name)]
    if entry.metadata:
        members.append('"__metadata__":' + json.dumps(entry.metadata, separators=(",", ":")))
    for name, told, size in sorted(rows):
        members.append('%s%s%d,%d]}' % (quoted(name), told, offset, offset + size))
        offset += size
    text = ("{" + ",".join(members) + "}").encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)


def write_folder(folder, entry, declared=True):
    """The model, and with declared the other files of its folder."""
    os.makedirs(folder, exist_ok=True)
    write_model(os.path.join(folder, entry.file), entry)
    for name, text in entry.texts.items() if declared else ():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
