"""Seeds and words for fuzz_import."""
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def gguf_files():
    """A file of plain types and blocks, little- and big-endian; each block type alone."""
    def text(order, words):
        return struct.pack(order + "Q", len(words)) + words

    def make(order, tensors, version=3):
        pairs = (text(order, b"general.alignment") + struct.pack(order + "II", 4, 32)
                 + text(order, b"a.text") + struct.pack(order + "I", 8) + text(order, b"words")
                 + text(order, b"a.list") + struct.pack(order + "IIQ", 9, 8, 2)
                 + text(order, b"x") + text(order, b"yz")
                 + text(order, b"a.nested") + struct.pack(order + "IIQIQI", 9, 9, 1, 4, 1, 7)
                 + text(order, b"a.f") + struct.pack(order + "If", 6, 1.5))
        head = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), 5) + pairs
        data = b""
        for name, sizes, number, stored in tensors:
            head += text(order, name) + struct.pack(order + "I", len(sizes))
            head += struct.pack("%s%dQIQ" % (order, len(sizes)), *sizes, number, len(data))
            data += bytes(i * 7 % 60 for i in range(stored)) + bytes(-stored % 32)
        return head + bytes(-len(head) % 32) + data
    plain = [(b"f", (3, 2), 0, 24), (b"h", (5,), 1, 10), (b"i", (), 26, 4),
             (b"none", (0, 4), 28, 0)]
    blocks = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
              11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66),
              17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110),
              22: (256, 82), 23: (256, 136), 29: (256, 56), 34: (256, 54), 35: (256, 66),
              39: (32, 17), 40: (64, 36), 41: (128, 18), 42: (64, 18)}
    every = [(b"t%d" % number, (elements, 2), number, 2 * stored)
             for number, (elements, stored) in blocks.items()]
    good = make("<", plain + every[:5])
    return {"gguf": good, "gguf-big": make(">", plain), "gguf-2": make("<", plain, 2),
            "gguf-1": make("<", plain, 1), "gguf-blocks": make("<", every),
            "gguf-new": make("<", [(b"t", (4,), 99, 4)]), "gguf-cut": good[:-40],
            "gguf-header": good[:100]}


def imports():
    """Hostile models of tests/import, of each format those that reach furthest into its reader, and
    small; with GGUF's of above."""
    sys.path.insert(0, os.path.join(HERE, "..", "tests", "import"))
    import hostile_other
    import hostile_pickle
    seeds = gguf_files()
    wanted = re.compile(r"torch/(call-by-build/os|call-of-tensor/os|cycle|laughs|nested|rebuild|"
                        r"stream/|view/|zip/(end64|local|torchs|name-cl)|array|opcode/stack|opcode/setitem)|"
                        r"npy/(good|shape-z|record)|npz/(crc|twice)|flax/(good|chunks)|tar/|"
                        r"onnx/(good|typed|sparse|two|external/both)|"
                        r"tensorflow/(good|slices|bomb-k)|"
                        r"index/(good|two)|gguf/(array|split|alignment-3)")
    for cases in (hostile_pickle.cases(), hostile_other.cases()):
        for name, files in cases:
            data = next(iter(files.values()))
            if wanted.match(name) and len(data) < 4096:
                seeds[name.replace("/", "-").replace("^", "-")] = data
    return seeds


def import_dictionary():
    """What formats are spelled with."""
    words = re.findall(r'"([^"\\\n]{3,40})"', open(os.path.join(
        HERE, "..", "src", "formats", "pickle", "globals.c"), encoding="utf-8").read())
    words += ["weight_map", "pytorch_model.bin", "data.pkl", "byteorder", "version",
              "general.alignment", "split.count", "__msgpack_chunked_array__", "chunks", "shape",
              "float32", "location", "storages", "tensors", "pickle", "ustar", "descr",
              "fortran_order", "latin1", "storage"]
    magic = ["PK\\x03\\x04", "PK\\x01\\x02", "PK\\x05\\x06", "PK\\x06\\x06",
             "PK\\x06\\x07", "PK\\x07\\x08", "\\x93NUMPY\\x01\\x00", "\\x80\\x02",
             "\\x80\\x04\\x95", "ctorch\\x0a", "ctorch._utils\\x0a_rebuild_tensor_v2\\x0a",
             "\\x57\\xfb\\x80\\x8b\\x24\\x75\\x47\\xdb"]
    return "".join('"%s"\n' % word for word in sorted(set(words)) + magic)
