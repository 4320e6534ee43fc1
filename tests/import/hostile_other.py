"""Hostile files of the other formats. Each case: name, {file: bytes, ("link", to) or ("fifo",)};
the first file is the one that is read."""
import io
import json
import struct
import tarfile
import zlib

from hostile_pickle import GOOD, torch
from zip_make import Entry, archive

LINK = ("link", "/etc/passwd")


# ── NumPy ──

def npy(header=None, data=bytes(16), major=1, length=None, **fields):
    if header is None:
        f = {"descr": "'<f4'", "fortran_order": "False", "shape": "(4,)", **fields}
        header = "{" + "".join(f"'{k}': {v}, " for k, v in f.items() if v is not None) + "}"
    raw = header.encode() if isinstance(header, str) else header
    raw += b" " * (-(len(raw) + 11) % 64) + b"\n"
    length = len(raw) if length is None else length
    size = struct.pack("<H" if major == 1 else "<I", length)
    return b"\x93NUMPY" + bytes([major, 0]) + size + raw + data


def npys():
    whole = npy()
    yield "good", whole
    for at in range(6, 140, 11):
        yield f"cut/{at:03}", whole[:at]
    for what, fields in {
            "object": {"descr": "'|O'"}, "objects-8": {"descr": "'O8'"}, "text": {"descr": "'<U4'"},
            "record": {"descr": "[('a', '<f4'), ('b', '|O')]"}, "call": {"descr": "eval('1')"},
            "descr-number": {"descr": "4"}, "descr-empty": {"descr": "''"},
            "long-double": {"descr": "'<f16'"}, "date": {"descr": "'<M8[ns]'"},
            "shape-huge": {"shape": "(4611686018427387904,)"}, "shape-2^70": {"shape": f"({2**70},)"},
            "shape-product": {"shape": "(4294967296, 4294967296)"}, "shape-negative": {"shape": "(-4,)"},
            "shape-4tb": {"shape": "(1099511627776,)"}, "shape-zero-huge": {"shape": "(0, 1099511627776)"},
            "shape-text": {"shape": "'4'"}, "shape-call": {"shape": "(__import__('os'),)"},
            "shape-no-comma": {"shape": "(4)"}, "shape-65": {"shape": "(" + "1, " * 65 + ")"},
            "shape-100000": {"shape": "(" + "1, " * 20000 + ")"}, "order-number": {"fortran_order": "1"},
            "no-shape": {"shape": None}, "no-descr": {"descr": None}, "more": {"extra": "1"},
            "short": {"shape": "(5,)"}, "long": {"shape": "(3,)"}}.items():
        yield what, npy(**fields)
    yield "twice", npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,), }")
    yield "not-ascii", npy(b"{'descr': '<f4\xff', 'fortran_order': False, 'shape': (4,), }")
    yield "deep", npy("{" + "(" * 30000 + ")" * 30000 + "}")
    yield "header-4gib", npy(major=2, length=0xfffffff0)
    yield "header-none", npy(length=0)
    yield "version-9", npy(major=9)


def npzs():
    good = npy()
    for what, entries in {
            "twice": [Entry("a.npy", good), Entry("a.npy", npy(data=b"x" * 16))],
            "object-member": [Entry("a.npy", good), Entry("b.npy", npy(descr="'|O'"))],
            "cut-member": [Entry("a.npy", good[:-1])], "no-array": [Entry("a.npy", b"words")],
            "bomb-member": [Entry("a.npy", npy(shape="(67108864,)", data=bytes(1 << 28)), 8)],
            "bomb-header": [Entry("a.npy", npy("{" + " " * (1 << 27), major=2), 8)],
            "name-empty": [Entry(".npy", good)], "name-climbs": [Entry("../../a.npy", good)],
            "name-metadata": [Entry("__metadata__.npy", good)], "crc": [Entry("a.npy", good, crc=3)],
            "mixed": [Entry("a.npy", good), Entry("x.sh", b"rm")],
            "many": [Entry(f"a{i}.npy", good) for i in range(20000)]}.items():
        yield what, archive(entries)


# ── GGUF ──

def gguf(version=3, tensors=None, pairs=b"", count=None, kv=0, data=bytes(64), magic=b"GGUF"):
    if tensors is None:
        tensors = [tensor_of()]
    count = len(tensors) if count is None else count
    head = magic + struct.pack("<IQQ", version, count, kv) + pairs + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def words_of(words):
    return struct.pack("<Q", len(words)) + words


def tensor_of(name=b"w", sizes=(4,), kind=0, at=0, rank=None):
    return words_of(name) + struct.pack("<I", len(sizes) if rank is None else rank) \
        + struct.pack(f"<{len(sizes)}Q", *sizes) + struct.pack("<IQ", kind, at)


def pair(key=b"k", kind=4, value=struct.pack("<I", 7)):
    return words_of(key) + struct.pack("<I", kind) + value


SHAPE = b"comfy.gguf.orig_shape."


def ggufs():
    whole = gguf(kv=1, pairs=pair())
    yield "good", whole
    for at in range(4, 130, 9):
        yield f"cut/{at:03}", whole[:at]
    nested = struct.pack("<IQ", 9, 1) * 300 + struct.pack("<IQ", 4, 0)
    for what, data in {
            "version-0": gguf(0), "version-1": gguf(1), "version-9": gguf(9), "version-2^31": gguf(1 << 31),
            "tensors-2^60": gguf(count=1 << 60), "tensors-more": gguf(count=2), "tensors-2^63": gguf(count=2**63),
            "pairs-2^60": gguf(kv=1 << 60), "pairs-65537": gguf(kv=65537, pairs=pair()), "pairs-more": gguf(kv=1),
            "name-2^63": gguf(tensors=[struct.pack("<Q", 2**63) + b"w"]), "name-empty": gguf(tensors=[tensor_of(b"")]),
            "name-not-utf8": gguf(tensors=[tensor_of(b"\xff")]), "name-nul": gguf(tensors=[tensor_of(b"a\0b")]),
            "name-twice": gguf(tensors=[tensor_of(), tensor_of(at=32)]),
            "rank-2^32": gguf(tensors=[tensor_of(rank=0xffffffff)]), "rank-65": gguf(tensors=[tensor_of(sizes=(1,) * 65)]),
            "size-2^63": gguf(tensors=[tensor_of(sizes=(2**63,))]), "size-product": gguf(tensors=[tensor_of(sizes=(2**32, 2**32))]),
            "size-2^40": gguf(tensors=[tensor_of(sizes=(2**40,))]), "size-half-block": gguf(tensors=[tensor_of(sizes=(33,), kind=8)]),
            "zero-sizes-of-blocks": gguf(tensors=[tensor_of(sizes=(0, 2**62), kind=8)]),
            "type-removed": gguf(tensors=[tensor_of(kind=4)]), "type-new": gguf(tensors=[tensor_of(kind=999)]),
            "offset-back": gguf(tensors=[tensor_of(), tensor_of(b"v")]), "offset-odd": gguf(tensors=[tensor_of(at=1)]),
            "offset-2^63": gguf(tensors=[tensor_of(at=2**63)]), "offset-gap": gguf(tensors=[tensor_of(at=32)]),
            "data-short": gguf(data=bytes(15)), "no-tensors": gguf(tensors=[]),
            "key-empty": gguf(kv=1, pairs=pair(b"")), "key-2^63": gguf(kv=1, pairs=struct.pack("<Q", 2**63)),
            "key-twice": gguf(kv=2, pairs=pair() * 2), "key-nul": gguf(kv=1, pairs=pair(b"a\0")),
            "key-long": gguf(kv=1, pairs=pair(b"k" * 70000)), "value-type-99": gguf(kv=1, pairs=pair(kind=99)),
            "bool-2": gguf(kv=1, pairs=pair(kind=7, value=b"\2")), "text-2^63": gguf(kv=1, pairs=pair(kind=8, value=struct.pack("<Q", 2**63))),
            "text-not-utf8": gguf(kv=1, pairs=pair(kind=8, value=words_of(b"\xff\xfe"))),
            "array-2^63": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 0, 2**63))),
            "array-2^61-of-8": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 12, 2**61))),
            "array-of-texts-2^60": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 8, 2**60))),
            "array-of-arrays-2^60": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 9, 2**60) + struct.pack("<IQ", 4, 0) * 9)),
            "array-nested-300": gguf(kv=1, pairs=pair(kind=9, value=nested)),
            "array-type-99": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 99, 1))),
            "empty-arrays-10^6": gguf(kv=1, pairs=pair(kind=9, value=struct.pack("<IQ", 9, 10**6) + struct.pack("<IQ", 4, 0) * 10**6)),
            "alignment-3": gguf(kv=1, pairs=pair(b"general.alignment", 4, struct.pack("<I", 3))),
            "alignment-0": gguf(kv=1, pairs=pair(b"general.alignment", 4, struct.pack("<I", 0))),
            "alignment-2^31": gguf(kv=1, pairs=pair(b"general.alignment", 4, struct.pack("<I", 1 << 31))),
            "alignment-text": gguf(kv=1, pairs=pair(b"general.alignment", 8, words_of(b"32"))),
            "shape-2^60": gguf(kv=1, pairs=pair(SHAPE + b"w", 9, struct.pack("<IQ", 5, 2**60))),
            "shape-2^64-0": gguf(tensors=[tensor_of(sizes=(0,))], kv=1, pairs=pair(SHAPE + b"w", 9, struct.pack("<IQ2Q", 10, 2, 0, 2**64 - 1))),
            "shape-text": gguf(kv=1, pairs=pair(SHAPE + b"w", 8, words_of(b"4"))),
            "shape-other": gguf(kv=1, pairs=pair(SHAPE + b"w", 9, struct.pack("<IQi", 5, 1, 5))),
            "shapes-60000": gguf(kv=60000, pairs=b"".join(pair(SHAPE + b"w%d" % i, 9, struct.pack("<IQ64i", 5, 64, *[1] * 64)) for i in range(60000))),
            "split-99": gguf(kv=1, pairs=pair(b"split.count", 2, struct.pack("<H", 99))),
            "tensors-50000": gguf(tensors=[tensor_of(b"w%d" % i, (8,), at=32 * i) for i in range(50000)], data=bytes(1600000)),
            "pairs-60000": gguf(kv=60000, pairs=b"".join(pair(b"k%d" % i) for i in range(60000)))}.items():
        yield what, data


# ── Protocol buffers: ONNX ──

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value, wire=2):
    if wire == 0:
        return varint(number << 3) + varint(value & 2**64 - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_tensor(name=b"w", dims=(4,), kind=1, rest=None):
    rest = field(9, bytes(16)) if rest is None else rest
    return b"".join(field(1, d, 0) for d in dims) + field(2, kind, 0) + field(8, name) + rest


def onnx(*tensors, graph=b""):
    return field(1, 8, 0) + field(2, b"made by hand") \
        + field(7, b"".join(field(5, t) for t in tensors or [onnx_tensor()]) + graph)


def external(location, offset=None, length=None, dims=(4,), more=b""):
    pairs = [(b"location", location), (b"offset", offset), (b"length", length)]
    return onnx_tensor(dims=dims, rest=b"".join(
        field(13, field(1, k) + field(2, v)) for k, v in pairs if v is not None) + field(14, 1, 0) + more)


def onnxes():
    data = {"w.bin": bytes(16)}
    whole = onnx()
    yield "good", {"m.onnx": whole}
    for at in range(8, len(whole), 7):
        yield f"cut/{at:03}", {"m.onnx": whole[:at]}
    for what, tensor in {
            "climbs": external(b"../../../../etc/passwd"), "absolute": external(b"/etc/passwd"),
            "climbs-inside": external(b"a/../w.bin"), "empty": external(b""), "nul": external(b"w.bin\0x"),
            "backslash": external(b"..\\w.bin"), "drive": external(b"C:w.bin"), "missing": external(b"none.bin"),
            "no-location": external(None), "itself": external(b"m.onnx", dims=(1,)), "folder": external(b"."),
            "offset-beyond": external(b"w.bin", b"17"), "offset-huge": external(b"w.bin", b"9" * 30),
            "offset-negative": external(b"w.bin", b"-1"), "offset-text": external(b"w.bin", b"0x10"),
            "length-beyond": external(b"w.bin", b"8", b"16"), "length-short": external(b"w.bin", b"0", b"8"),
            "length-wraps": external(b"w.bin", b"16", b"18446744073709551615"),
            "both": external(b"w.bin", more=field(9, bytes(16))), "proc": external(b"/proc/self/mem"),
            "device": external(b"../../../../dev/zero"), "long": external(b"a/" * 3000 + b"w.bin")}.items():
        yield f"external/{what}", {"m.onnx": onnx(tensor), **data}
    for what, target in {"link-out": LINK, "link-up": ("link", "../../../../../etc/passwd"),
                         "fifo": ("fifo",), "link-to-fifo": ("link", "f"), "link-loop": ("link", "w.bin"),
                         "link-to-device": ("link", "/dev/zero")}.items():
        yield f"external/{what}", {"m.onnx": onnx(external(b"w.bin")), "w.bin": target, "f": ("fifo",)}
    for what, tensor in {
            "negative": onnx_tensor(dims=(-4,)), "huge": onnx_tensor(dims=(2**62,)), "product": onnx_tensor(dims=(2**40, 2**40)),
            "rank-100000": onnx_tensor(dims=(), rest=field(1, b"\1" * 100000) + field(9, b"1234")),
            "type-0": onnx_tensor(kind=0), "text": onnx_tensor(kind=8), "complex128": onnx_tensor(kind=15),
            "int4": onnx_tensor(kind=22), "type-2^60": onnx_tensor(kind=2**60), "raw-short": onnx_tensor(rest=field(9, bytes(15))),
            "raw-long": onnx_tensor(rest=field(9, bytes(17))), "raw-twice": onnx_tensor(rest=field(9, bytes(16)) * 2),
            "raw-and-typed": onnx_tensor(rest=field(9, bytes(16)) + field(4, bytes(16))),
            "typed-two": onnx_tensor(rest=field(4, bytes(16)) + field(5, b"\1\1\1\1")),
            "typed-other": onnx_tensor(rest=field(5, b"\1\1\1\1")), "typed-odd": onnx_tensor(rest=field(4, bytes(15))),
            "typed-few": onnx_tensor(dims=(2**40,), kind=7, rest=field(7, b"\1" * 9)),
            "typed-many": onnx_tensor(kind=7, rest=field(7, b"\1" * 90)), "typed-cut": onnx_tensor(kind=7, rest=field(7, b"\x80")),
            "varint-11": onnx_tensor(kind=7, rest=field(7, b"\xff" * 10 + b"\1")), "no-name": onnx_tensor(b""),
            "name-not-utf8": onnx_tensor(b"\xff"), "name-100000": onnx_tensor(b"n" * 100000), "segment": onnx_tensor(rest=field(3, b"\1") + field(9, bytes(16))),
            "none": onnx_tensor(rest=b""), "name-twice": onnx_tensor() + field(8, b"v"),
            "type-twice": onnx_tensor() + field(2, 6, 0), "type-wire": onnx_tensor() + field(2, b"\1"),
            "name-wire": onnx_tensor() + field(8, 1, 0), "typed-wire": onnx_tensor(dims=(1,), rest=field(4, 1, 0)),
            "dims-wire": onnx_tensor() + b"\x0d" + bytes(4), "segment-wire": onnx_tensor() + field(3, 1, 0),
            "location-2": onnx_tensor() + field(14, 2, 0), "location-twice": onnx_tensor() + field(14, 0, 0) * 2,
            "tag-6-bytes": onnx_tensor() + b"\xf2\x80\x80\x80\x80\x00\1a",
            "int64-32-mib": onnx_tensor(dims=(2**25,), kind=7, rest=field(7, b"\1" * 2**25)),
            "float-twice-32-mib": onnx_tensor(dims=(2**23,), rest=field(4, bytes(2**24)) * 2)}.items():
        yield what, {"m.onnx": onnx(tensor)}
    for key in (b"location", b"offset", b"length"):
        more = field(13, field(1, key) + field(2, b"0"))
        yield f"external/{key.decode()}-twice", {"m.onnx": onnx(external(b"w.bin", b"0", b"16", more=more)), **data}
    yield "external/key-twice", {"m.onnx": onnx(external(b"w.bin", more=field(13, field(1, b"offset") + field(1, b"x") + field(2, b"4")))), **data}
    yield "external/length-long", {"m.onnx": onnx(external(b"w.bin", b"0", b"16", dims=(3,))), **data}
    yield "tiny-200000", {"m.onnx": onnx(*(field(2, 2, 0) + field(8, name_of(i)) + field(9, b"\0") for i in range(200000)))}
    yield "twice", {"m.onnx": onnx(onnx_tensor(), onnx_tensor())}
    yield "two-graphs", {"m.onnx": onnx() + onnx()[14:]}
    yield "sparse", {"m.onnx": onnx(graph=field(15, field(1, onnx_tensor())))}
    deep = b""
    for _ in range(3000):
        deep = field(1, field(5, field(6, deep)))
    yield "deep", {"m.onnx": onnx(graph=deep)}
    yield "group", {"m.onnx": onnx() + b"\x0b\x0c"}
    yield "length-2^63", {"m.onnx": field(1, 8, 0) + b"\x3a" + varint(2**63)}
    mixed = [t for i in range(60000) for t in (
        onnx_tensor(b"t%d" % i, (1,), 7, field(7, b"\1")),
        field(1, 1, 0) + field(2, 1, 0) + field(8, b"e%d" % i) + field(13, field(1, b"location") + field(2, b"w.bin")) + field(14, 1, 0))]
    yield "many", {"m.onnx": onnx(*mixed), "w.bin": bytes(4)}


# ── MessagePack ──

def flax(shape=b"\x91\4", dtype=b"\xa7float32", data=b"\xc4\x10" + bytes(16), code=1):
    body = b"\x93" + shape + dtype + data
    return b"\xc7" + bytes([len(body), code]) + body


def name_of(i):
    """Short names, each another."""
    name = b""
    while i or not name:
        name, i = bytes([97 + i % 26]) + name, i // 26
    return name


def msgpacks():
    good = b"\x81\xa1w" + flax()
    yield "good", good
    for at in range(1, len(good), 3):
        yield f"cut/{at:03}", good[:at]
    for what, array in {
            "shape-huge": flax(b"\x91\xcf" + struct.pack(">Q", 2**62)), "shape-negative": flax(b"\x91\xfc"),
            "shape-float": flax(b"\x91\xca\0\0\0\0"), "shape-map": flax(b"\x80"), "shape-2^32": flax(b"\xdd\xff\xff\xff\xff"),
            "dtype-unknown": flax(dtype=b"\xa3obj"), "dtype-number": flax(dtype=b"\1"), "dtype-not-utf8": flax(dtype=b"\xa2\xff\xfe"),
            "data-short": flax(data=b"\xc4\x0f" + bytes(15)), "data-list": flax(data=b"\x90"), "data-2^32": flax(data=b"\xc6\xff\xff\xff\xff"),
            "ext-99": flax(code=99), "complex": flax(code=2), "list-2^32": b"\xdd\xff\xff\xff\xff", "map-2^32": b"\xdf\xff\xff\xff\xff",
            "text-2^32": b"\xdb\xff\xff\xff\xff", "bin-2^32": b"\xc6\xff\xff\xff\xff", "ext-2^32": b"\xc9\xff\xff\xff\xff\1",
            "never-used": b"\xc1"}.items():
        yield what, b"\x82\xa1w" + array + b"\xa1v" + flax()
    yield "deep-lists", b"\x82\xa1w" + flax() + b"\xa1x" + b"\x91" * 100000 + b"\xc0"
    yield "deep-maps", b"\x82\xa1w" + flax() + b"\xa1x" + b"\x81\xa1a" * 100000 + b"\xc0"
    yield "key-list", b"\x82\xa1w" + flax() + b"\x90" + flax()
    yield "key-twice", b"\x82\xa1w" + flax() + b"\xa1w" + flax()
    yield "key-joined-twice", b"\x82\xa3a.b" + flax() + b"\xa1a\x81\xa1b" + flax()
    yield "behind", b"\x81\xa1w" + flax() + b"\xc0"
    for what, chunks in {
            "none": b"\x80", "missing": b"\x81\xa11" + flax(), "not-array": b"\x81\xa10\1",
            "too-few": b"\x81\xa10" + flax(), "objects": b"\x81\xa10\x80"}.items():
        body = b"\x83\xb1__msgpack_chunked_array__" [:1] + b"\xb9__msgpack_chunked_array__\xc3\xa5shape\x81\xa10\xcf" \
            + struct.pack(">Q", 2**40) + b"\xa6chunks" + chunks
        yield f"chunks/{what}", b"\x82\xa1w" + flax() + b"\xa1c" + body
    yield "many", b"\xdf" + struct.pack(">I", 100000) + b"".join(b"\xa6%06d" % i + flax() for i in range(100000))
    yield "nils", b"\x82\xa1w" + flax() + b"\xa1x\xdd" + struct.pack(">I", 3000000) + b"\xc0" * 3000000


# ── TensorFlow ──

def crc32c(data, _table=[]):
    if not _table:
        for n in range(256):
            for _ in range(8):
                n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
            _table.append(n)
    crc = 0xffffffff
    for byte in data:
        crc = _table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def block(entries, compression=b"\0", restarts=struct.pack("<II", 0, 1), crc=None):
    raw = b"".join(varint(s) + varint(len(k)) + varint(len(v)) + k + v for s, k, v in entries)
    raw += restarts + compression
    return raw + struct.pack("<I", masked(raw) if crc is None else crc)


HEADER = (0, b"", field(1, 1, 0))


def variable(size=4, kind=1, shard=0, offset=0, bytes_=16, crc=None, more=b""):
    return field(1, kind, 0) + field(2, field(2, field(1, size, 0))) + field(3, shard, 0) + field(4, offset, 0) \
        + field(5, bytes_, 0) + (b"" if crc is None else b"\x35" + struct.pack("<I", crc)) + more


def table(entries=None, first=None, handles=None, index=None, data=None):
    first = block(entries or [HEADER, (0, b"w", variable())]) if first is None else first
    handle = varint(0) + varint(len(first) - 5)
    rows = block(handles or [(0, b"z", handle)]) if index is None else index
    footer = varint(0) + varint(0) + varint(len(first)) + varint(len(rows) - 5)
    return first + rows + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def tables():
    def of(raw, **more):
        return {"m.index": raw, "m.data-00000-of-00001": bytes(16), **more}
    whole = table()
    yield "good", of(whole)
    for at in (0, 3, 20, len(whole) // 2, len(whole) - 30):
        yield f"cut/{at:03}", of(whole[at:])
    for what, entry in {
            "shard-1": variable(shard=1), "shard-2^40": variable(shard=2**40), "offset-beyond": variable(offset=17),
            "offset-2^63": variable(offset=2**63), "size-beyond": variable(size=8, bytes_=32), "size-less": variable(bytes_=8),
            "size-more": variable(size=2, bytes_=16),
            "size-negative": variable(size=-4), "size-2^62": variable(size=2**62), "type-text": variable(kind=7),
            "type-99": variable(kind=99), "slices": variable(more=field(7, b"x")), "crc": variable(crc=5),
            "rank-70": variable(more=field(2, field(2, field(1, 1, 0)) * 70)), "cut": variable()[:-1],
            "rank-unknown": variable(more=field(2, field(3, 1, 0)))}.items():
        yield what, of(table([HEADER, (0, b"w", entry)]))
    yield "no-header", of(table([(0, b"w", variable())]))
    for what, head in {"shards-0": b"", "shards-2^40": field(1, 2**40, 0), "shards-cut": b"\x08"}.items():
        yield what, of(table([(0, b"", head), (0, b"w", variable())]))
    yield "keys-back", of(table([HEADER, (0, b"w", variable()), (0, b"a", variable())]))
    yield "keys-twice", of(table([HEADER, (0, b"w", variable()), (0, b"w", variable())]))
    yield "key-shares-more", of(table([HEADER, (9, b"w", variable())]))
    yield "key-shares-2^60", of(table([HEADER, (2**60, b"w", variable())]))
    for what, key in {"part": b"\0w\0\1\x81\x80\x82", "no-end": b"\0w\0", "alone": b"\0"}.items():
        yield f"slice-{what}", of(table([HEADER, (0, key, variable())]))
    yield "key-not-utf8", of(table([HEADER, (0, b"\xff", variable())]))
    keys = [HEADER, (0, b"k" * 60000, variable())] + [(60000 + i, b"k", variable()) for i in range(2500)]
    yield "bomb-keys", of(table(keys))
    yield "block-crc", of(table(first=block([HEADER], crc=1)))
    yield "block-compressed", of(table(first=block([HEADER], compression=b"\1")))
    yield "block-restarts", of(table(first=block([HEADER], restarts=b"\xff\xff\xff\xff")))
    for what, handle in {"beyond": varint(2**20) + varint(9), "2^63": varint(2**63) + varint(2**63), "64-gib": varint(0) + varint(1 << 36),
                         "cut": b"\x80", "empty": b"", "varint-11": b"\xff" * 11}.items():
        yield f"handle-{what}", of(table(handles=[(0, b"z", handle)]))
    empty = block([], restarts=bytes(1 << 20) + struct.pack("<I", 1 << 18))
    again = varint(0) + varint(len(empty) - 5)
    yield "bomb-blocks", of(table(first=empty, handles=[(0, b"%05d" % i, again) for i in range(3000)]))
    yield "shard-link", {"m.index": whole, "m.data-00000-of-00001": LINK}
    yield "shard-fifo", {"m.index": whole, "m.data-00000-of-00001": ("fifo",)}
    yield "shard-missing", {"m.index": whole}


# ── Shards, tar ──

def indexes():
    shard = {"pytorch_model-1.bin": torch()}

    def of(text, **more):
        raw = text if isinstance(text, bytes) else json.dumps(text).encode()
        return {"pytorch_model.bin.index.json": raw, **more}
    def one(file, name="w"):
        return {"metadata": {}, "weight_map": {name: file}}
    yield "good", of(one("pytorch_model-1.bin"), **shard)
    for what, file in {"climbs": "../../../etc/passwd", "absolute": "/etc/passwd", "itself": "pytorch_model.bin.index.json",
                       "missing": "gone.bin", "empty": "", "nul": "a\0b", "folder": ".", "number": 3, "none": None,
                       "list": ["a"], "device": "/dev/zero", "long": "a/" * 5000}.items():
        yield what, of(one(file), **shard)
    yield "disagrees", of(one("pytorch_model-1.bin", "v"), **shard)
    yield "more-in-map", of({"weight_map": {"w": "pytorch_model-1.bin", "v": "pytorch_model-1.bin"}}, **shard)
    yield "less-in-map", of({"weight_map": {}}, **shard)
    yield "two-maps", of(b'{"weight_map": {"w": "pytorch_model-1.bin"}, "weight_map": {"w": "x"}}', **shard)
    yield "key-twice", of(b'{"weight_map": {"w": "pytorch_model-1.bin", "w": "x"}}', **shard)
    yield "cut", of(b'{"weight_map": {"w": "pytorch_model-1.bin"', **shard)
    yield "not-object", of(b'{"weight_map": 4}', **shard)
    yield "deep", of(b'{"weight_map": {"w": "pytorch_model-1.bin"}, "x": ' + b"[" * 100000, **shard)
    yield "index-of-index", of(one("b.json"), **{"b.json": json.dumps(one("pytorch_model-1.bin")).encode()}, **shard)
    yield "shard-link", of(one("s.bin"), **{"s.bin": LINK})
    yield "shard-fifo", of(one("s.bin"), **{"s.bin": ("fifo",)})
    yield "shard-text", of(one("s.bin"), **{"s.bin": b"words"})
    yield "shard-hostile", of(one("s.bin"), **{"s.bin": torch(GOOD[:-1])})
    yield "names-50000", of({"weight_map": {f"w{i}": "pytorch_model-1.bin" for i in range(50000)}}, **shard)


def tars():
    def tar(*members, **kinds):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive_:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                if name in kinds:
                    info.type, info.linkname = kinds[name]
                    info.size = 0
                archive_.addfile(info, io.BytesIO(data))
        return out.getvalue()
    count = b"\x80\x02K\x00."
    good = tar(("storages", count), ("tensors", count), ("pickle", b"\x80\x02}."))
    yield "empty", good
    yield "climbs", tar(("../storages", count), ("tensors", count), ("pickle", GOOD))
    yield "link", tar(("storages", b""), ("tensors", count), ("pickle", GOOD), storages=(tarfile.SYMTYPE, "/etc/passwd"))
    yield "device", tar(("storages", b""), ("tensors", count), ("pickle", GOOD), storages=(tarfile.CHRTYPE, ""))
    yield "twice", tar(("storages", count), ("tensors", count), ("tensors", count), ("pickle", GOOD))
    yield "count-2^62", tar(("storages", b"\x80\x02\x8a\x08" + struct.pack("<Q", 2**62) + b"."), ("tensors", count), ("pickle", GOOD))
    yield "calls", tar(("storages", count), ("tensors", count), ("pickle", b"\x80\x02cos\nsystem\nX\1\0\0\0x\x85R."))
    for at in (100, 512, 700, 1024, 1600, 2100, 2600):
        yield f"cut/{at:04}", good[:at]
    broken = bytearray(good)
    broken[124:136] = b"77777777777\0"
    yield "size-huge", bytes(broken)
    broken[148:156] = b"%06o\0 " % (sum(broken[:148]) + sum(broken[156:512]) + 8 * 32)
    yield "size-huge-checksum", bytes(broken)


def cases():
    for kind, make, file in (("npy", npys, "a.npy"), ("npz", npzs, "a.npz"), ("gguf", ggufs, "m.gguf"),
                             ("flax", msgpacks, "m.msgpack"), ("tar", tars, "m.pth")):
        for what, data in make():
            yield f"{kind}/{what}", {file: data}
    for kind, make in (("onnx", onnxes), ("tensorflow", tables), ("index", indexes)):
        for what, files in make():
            yield f"{kind}/{what}", files
