"""GGUF, byte by byte: what the gguf package would not write."""
import functools
import struct

from hostile_other import gguf, pair, tensor_of, words_of
from msgpack_cases import of
from object_cases import DATA, W, check

F64, NEW = 28, 999


def faults(ctx):
    data = DATA + bytes(112)

    def one(*tensors, **more):
        return of(gguf(tensors=list(tensors), data=more.pop("data", data), **more))

    def said(*pairs, **more):
        return of(gguf(kv=len(pairs), pairs=b"".join(pairs), data=DATA, **more))

    def aligned(kind, value):
        return said(pair(b"general.alignment", kind, value))
    u32 = functools.partial(struct.pack, "<I")
    many = ("size_overflow", "less than 2^63 elements")
    large = ("size_overflow", "of less than 2^64 bytes")
    note = ("tensors of over 4 dimensions or 63 bytes of name, which ggml refuses")
    first, w = tensor_of(b"v", kind=NEW), tensor_of(at=32)
    alignment = "expected general.alignment as u32, found "
    check(ctx, [
        ("plain", one(tensor_of(), data=DATA), "-", {"w": W, "left": []}),
        ("a size of 2^63", one(tensor_of(sizes=(1 << 63,))), "-", many),
        ("2^63 in two dimensions", one(tensor_of(sizes=(1 << 62, 2))), "-", many),
        ("2^64 in two dimensions", one(tensor_of(sizes=(1 << 62, 4))), "-", many),
        ("2^64 bytes", one(tensor_of(sizes=(1 << 62,), kind=F64)), "-",
         ("size_overflow", "expected less than 2^64 bytes")),
        ("2^64 bytes of two", one(tensor_of(sizes=(1 << 60,), kind=F64), tensor_of(
            b"v", sizes=(1 << 60,), kind=F64, at=1 << 63)), "-", large),
        ("2^64 bytes, aligned", one(tensor_of(sizes=((1 << 61) - 1,), kind=F64)), "-", large),
        ("2^64 bytes with the header", one(tensor_of(sizes=((1 << 61) - 4,), kind=F64)), "-",
         large),
        ("a gap behind what is known", one(tensor_of(), tensor_of(b"v", at=64)), "-",
         ("foreign_syntax", "expected its data at offset 32")),
        ("a gap behind what is not", one(first, w, data=data[16:48] + data), "skip", {"w": W}),
        ("a gap that is not aligned", one(first, tensor_of(at=33)), "skip",
         ("foreign_syntax", "expected its data at offset 0")),
        ("no gap", one(first, tensor_of()), "skip", {"w": W}),
        ("a type that is not known", one(first), "-",
         ("foreign_dtype", "a type that GGUF has now, found ")),
        ("five dimensions", one(tensor_of(sizes=(4, 1, 1, 1, 1)), data=DATA), "-",
         {"w": ("F32", [1, 1, 1, 1, 4], DATA), "left": [note]}),
        ("64 bytes of name", one(tensor_of(b"n" * 64), data=DATA), "-",
         {"n" * 64: W, "left": [note]}),
        ("names of GGUF without a model", one(tensor_of(b"blk.0"), data=DATA), "-",
         {"blk.0": W, "left": []}),
        ("a model with other names", said(pair(b"general.architecture", 8, words_of(b"x"))), "-",
         {"w": W, "left": []}),
        ("a model", said(pair(b"general.architecture", 8, words_of(b"x")),
                         tensors=[tensor_of(b"blk.0")]), "-",
         {"blk.0": W, "left": ["names and layouts are those of GGUF, which transformers does not "
                               "load"]}),
        ("bytes behind", one(tensor_of()), "-",
         {"w": W, "left": ["bytes after the last tensor"]}),
        ("a part that is not named so", said(pair(b"split.count", 2, b"\2\0")), "-",
         ("foreign_kind", "a path that ends in -00001-of-00002.gguf")),
        ("the second part", said(pair(b"split.count", 2, b"\2\0"), pair(b"split.no", 2, b"\1\0")),
         "-", ("foreign_kind", "found part 2 of 2")),
        ("one of 100000 parts", said(pair(b"split.count", 4, u32(100000))), "-",
         ("foreign_kind", "part 1 of at most 99999")),
        ("no parts", said(pair(b"split.count", 2, b"\0\0")), "-", {"w": W}),
        ("parts that are a text", said(pair(b"split.count", 8, words_of(b"2"))), "-", {"w": W}),
        ("parts that are a float", said(pair(b"split.count", 6, bytes(4))), "-", {"w": W}),
        ("alignment of 64", said(pair(b"general.alignment", 4, u32(64)), tensors=[tensor_of()]),
         "-", ("foreign_truncated", "expected 16 bytes of data")),
        ("alignment of an i32", aligned(5, u32(32)), "-", ("foreign_syntax", alignment + "i32")),
        ("alignment of a u64", aligned(10, bytes(8)), "-", ("foreign_syntax", alignment + "u64")),
        ("alignment of a text", aligned(8, words_of(b"32")), "-",
         ("foreign_syntax", alignment + "string")),
        ("alignment of an array", aligned(9, struct.pack("<IQ", 4, 0)), "-",
         ("foreign_syntax", alignment + "array")),
        ("alignment of 24", aligned(4, u32(24)), "-",
         ("foreign_syntax", "a power of two as general.alignment, found 24")),
        ("an array of nothing", said(pair(b"a", 9, struct.pack("<IQ", 4, 0))), "-",
         {"w": W, "left": ["an array of u32"]}),
        ("a long array", said(pair(b"a", 9, struct.pack("<IQ", 0, 300000) + bytes(300000)),
                              pair(b"b")), "-", {"w": W, "left": ["an array of u8"]}),
        ("long texts", said(pair(b"a", 8, words_of(b"t" * 300000)), pair(b"b"),
                            pair(b"c", 8, words_of(b"t" * (1 << 20)))), "-", {"w": W, "left": []}),
        ("a text of over 1 MiB", said(pair(b"a", 8, words_of(b"t" * ((1 << 20) + 1)))), "-",
         {"w": W, "left": ["a string of over 1 MiB"]}),
        ("many texts", said(*(pair(b"k%d" % i, 8, words_of(b"t" * 997)) for i in range(500))), "-",
         {"w": W, "left": []}),
    ])


def cases(ctx):
    yield "ggml faults", functools.partial(faults, ctx)
