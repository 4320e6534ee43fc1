"""spell.py FILE "NAME DTYPE SHAPE VALUE...; ...": tensors spelt out: a shape is 2,3 or -, values are
repeated to the end, and 0 where there are none; "=KEY VALUE" is a pair of metadata."""
import itertools
import json
import struct
import sys

header, data, pairs = {}, b"", {}
for one in sys.argv[2].split(";"):
    words = one.split()
    if not words:
        continue
    if words[0][0] == "=":
        pairs[words[0][1:]] = " ".join(words[1:])
        continue
    name, dtype, shape, *values = words
    shape, count = [] if shape == "-" else [int(size) for size in shape.split(",")], 1
    for size in shape:
        count *= size
    form = {"F32": "f", "F16": "e", "I8": "b", "F8_E4M3": "B"}[dtype]
    values = itertools.islice(itertools.cycle(float(value) for value in values or [0]), count)
    more = b"".join(struct.pack("<" + form, value if form in "fe" else int(value))
                    for value in values)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data + more)]}
    data += more
if pairs:
    header["__metadata__"] = pairs
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as out:
    out.write(len(text).to_bytes(8, "little") + text + data)
