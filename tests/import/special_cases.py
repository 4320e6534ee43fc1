"""Quantised and sparse tensors of PyTorch, and views of storages, put together by hand."""
import functools
import os
import struct
import zipfile

from object_cases import DATA, HALF, HOOKS, check, floats, longs, real
from torch_bad_cases import (call, integer, integers, legacy, mapping, name, pickled, storage, tensor,
                             text, values, zipped)


def damaged(write, key):
    """Writes the archive with a bit of that record flipped."""
    def change(path):
        write(path)
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo("archive/data/" + key)
        with open(path, "r+b") as file:
            file.seek(entry.header_offset + 30 + len(entry.filename))
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
    return change


CHECKSUM = ("foreign_checksum", "expected bytes with the recorded CRC-32 ")


def quantised(ctx):
    scheme, rows = name("torch", "per_tensor_affine"), name("torch", "per_channel_affine")
    rest = [b"\x89", HOOKS]
    records = {"0": b"\1\2\3\4", "1": floats(0.5, 2), "2": longs(1, 2)}

    def made(how, kind="QInt8Storage", size=(2, 2), stride=(2, 1), offset=integer(0)):
        value = call("torch._utils", "_rebuild_qtensor", storage(kind=kind, count=4), offset,
                     integers(size), integers(stride), how, *rest)
        return lambda path: zipped(path, pickled(mapping(w=value)), records)

    def channels(axis=0, scales=None, zeros=None, last=b"", **more):
        scales = scales or tensor(key="1", count=2, size=(2,))
        zeros = zeros or tensor(key="2", kind="LongStorage", count=2, size=(2,))
        axis = integer(axis) if isinstance(axis, int) else axis
        return made(values([rows, scales, zeros, axis, last]), **more)

    def big_rows(path):
        value = call("torch._utils", "_rebuild_qtensor", storage(kind="QInt8Storage", count=4),
                     integer(0), integers((2, 2)), integers((2, 1)), values([
                         rows, tensor(key="1", count=2, size=(2,)),
                         tensor(key="2", kind="LongStorage", count=2, size=(2,)), integer(0)]),
                     *rest)
        zipped(path, pickled(mapping(w=value)), records, byteorder=b"big")

    def big(path):
        value = call("torch._utils", "_rebuild_qtensor", storage(kind="QInt32Storage", count=4),
                     integer(0), integers((4,)), integers((1,)),
                     values([scheme, real(0.5), integer(-1)]), *rest)
        zipped(path, pickled(mapping(w=value)), {"0": struct.pack(">4i", 1, -2, 65536, 7)},
               byteorder=b"big")

    whole = values([scheme, real(0.5), integer(1)])
    others = ("foreign_object", "integers with scale and zero point, found others")
    each = ("foreign_object", "a scale and a zero point for each channel")
    axes = ("foreign_object", "expected channels of one of 2 dimensions")
    check(ctx, [
        ("whole", made(whole), "quantised=values", {"w": ("F32", [2, 2], floats(0, 0.5, 1, 1.5))}),
        ("whole, in columns", made(whole, stride=(1, 2)), "quantised=values",
         {"w": ("F32", [2, 2], floats(0, 1, 0.5, 1.5))}),
        ("refused", made(whole), "-", ("foreign_object", "found a quantised tensor")),
        ("parts", made(whole), "quantised=parts",
         {"w.int_repr": ("I8", [2, 2], records["0"]),
          "w.scale": ("F64", [], struct.pack("<d", 0.5)), "w.zero_point": ("I64", [], longs(1))}),
        ("rows", channels(), "quantised=values",
         {"w": ("F32", [2, 2], floats(0, 0.5, 2, 4))}),
        ("rows with scales of F64, rounded once", lambda path: zipped(path, pickled(mapping(w=call(
            "torch._utils", "_rebuild_qtensor", storage(kind="QInt8Storage", count=4), integer(0),
            integers((2, 2)), integers((2, 1)), values([
                rows, tensor(key="1", kind="DoubleStorage", count=2, size=(2,)),
                tensor(key="2", kind="LongStorage", count=2, size=(2,)), integer(0)]), *rest))),
            {"0": b"\0\3\0\7", "1": struct.pack("<2d", 0.1, 1 / 3), "2": longs(0, 0)}),
         "quantised=values", {"w": ("F32", [2, 2], struct.pack("<4f", 0, 3 * 0.1, 0, 7 / 3))}),
        ("columns", channels(1), "quantised=values",
         {"w": ("F32", [2, 2], floats(0, 0, 1, 4))}),
        ("parts of rows", channels(), "quantised=parts",
         {"w.int_repr": ("I8", [2, 2], records["0"]), "w.scale": ("F32", [2], records["1"]),
          "w.zero_point": ("I64", [2], records["2"]), "w.axis": ("I64", [], longs(0))}),
        ("codes of another checksum", damaged(made(whole), "0"), "quantised=values", CHECKSUM),
        ("scales of another checksum", damaged(channels(), "1"), "quantised=values", CHECKSUM),
        ("zeros of another checksum", damaged(channels(), "2"), "quantised=values", CHECKSUM),
        ("big-endian", big, "quantised=values",
         {"w": ("F32", [4], floats(1, -0.5, 32768.5, 4))}),
        ("big-endian scales", big_rows, "quantised=values",
         {"w": ("F32", [2, 2], floats(*[-63 * 2.0 ** -93] * 2, *[-2.0 ** -86] * 2))}),
        ("an axis beyond", channels(2), "quantised=values", axes),
        ("an axis below", channels(-1), "quantised=values", axes),
        ("strided rows", channels(stride=(1, 2)), "quantised=values",
         {"w": ("F32", [2, 2], floats(0, 1, 0, 4))}),
        ("an axis that is a text", channels(text("0")), "quantised=values", others),
        ("five of how", channels(last=b"N"), "quantised=values", others),
        ("a scale for both", channels(scales=tensor(key="1", count=2, size=(1,))),
         "quantised=values", each),
        ("zeros for one", channels(zeros=tensor(key="2", kind="LongStorage", count=2, size=(1,))),
         "quantised=values", each),
        ("strided scales", channels(scales=tensor(key="1", count=2, size=(2,), stride=(0,))),
         "quantised=values", {"w": ("F32", [2, 2], floats(0, 0.5, 0.5, 1))}),
        ("scales beyond their storage", channels(scales=tensor(key="1", count=2, size=(2,),
                                                               offset=1)),
         "quantised=values", each),
        ("scales in a list", channels(scales=b"]"), "quantised=values", others),
        ("zeros in a list", channels(zeros=b"]"), "quantised=values", others),
        ("no elements", channels(size=(2, 0), stride=(1, 1)), "quantised=values", each),
        ("no channels", channels(size=(0, 2), scales=tensor(key="1", count=2, size=(0,)),
                                 zeros=tensor(key="2", kind="LongStorage", count=2, size=(0,))),
         "quantised=values", each),
        ("how in a list", made(b"]"), "quantised=values", others),
        ("how of two", made(values([scheme, real(0.5)])), "quantised=values", others),
        ("a scale that is an integer", made(values([scheme, b"K\1", b"K\1"])), "quantised=values",
         others),
        ("a zero that is a float", made(values([scheme, real(0.5), real(1)])), "quantised=values",
         others),
        ("no integers", made(whole, kind="FloatStorage", size=(1,), stride=(1,)),
         "quantised=values", ("foreign_size", "expected 16 bytes in")),
        ("an offset that is a text", made(whole, offset=text("0")), "quantised=values",
         ("foreign_object", "_rebuild_qtensor that is not read")),
        ("four bits", made(whole, kind="QUInt4x2Storage"), "quantised=values", others),
        ("four arguments", lambda path: zipped(path, pickled(mapping(v=tensor(), w=call(
            "torch._utils", "_rebuild_qtensor", storage(), integer(0), integers((4,)),
            integers((1,)))))), "quantised=values",
         ("foreign_object", "_rebuild_qtensor that is not read")),
    ])


def sparse(ctx):
    def layout(kind):
        return call("torch.serialization", "_get_layout", text("torch.sparse_" + kind))

    def made(where, places=None, what=(2,), size=(2, 3), kind=None, parts=None, dims=2,
             **more):
        places = places or [[0, 1], [2, 1]][:dims]
        stored = longs(*sum(places, []))
        count = len(stored) // 8
        shape = (len(places), len(places[0]))
        indices = tensor(key="1", kind="LongStorage", count=count, size=shape,
                         stride=(shape[1], 1))
        stride = tuple(what[1] if d == 0 and len(what) > 1 else 1 for d in range(len(what)))
        elements = tensor(size=what, stride=stride, **more)
        size = integers(size) if isinstance(size, tuple) else size
        parts = parts(indices, elements, size) if parts else [indices, elements, size, b"\x88"]
        value = call("torch._utils", "_rebuild_sparse_tensor", kind or layout(where), values(parts))
        return lambda path: zipped(path, pickled(mapping(w=value)), {"0": DATA, "1": stored})

    def big(path):
        value = call("torch._utils", "_rebuild_sparse_tensor", layout("coo"), values([
            tensor(key="1", kind="LongStorage", count=4, size=(2, 2), stride=(2, 1)),
            tensor(size=(2,)), integers((2, 3)), b"\x88"]))
        zipped(path, pickled(mapping(w=value)), {"0": DATA, "1": longs(0, 1, 2, 1)},
               byteorder=b"big")

    not_read = ("foreign_object", "_rebuild_sparse_tensor that is not read")
    other = ("foreign_object", "a sparse tensor in coordinates, found another layout")
    fits = ("foreign_object", "found indices and values that do not fit its shape")
    order = ("foreign_object", "a coalesced sparse tensor, found indices that do not ascend")
    within = ("foreign_syntax", "within its shape")
    zero, f = bytes(4), [DATA[i:i + 4] for i in range(0, 16, 4)]
    check(ctx, [
        ("refused", made("coo"), "-", ("foreign_object", "found a sparse tensor")),
        ("values", made("coo"), "sparse=values",
         {"w": ("F32", [2, 3], zero * 2 + f[0] + zero + f[1] + zero)}),
        ("values of another checksum", damaged(made("coo"), "0"), "sparse=values", CHECKSUM),
        ("indices of another checksum", damaged(made("coo", places=[[1, 1], [0, 2]]), "1"),
         "sparse=values", CHECKSUM),
        ("rows of two", made("coo", places=[[0, 2]], what=(2, 2), size=(3, 2), dims=1),
         "sparse=values", {"w": ("F32", [3, 2], f[0] + f[1] + zero * 2 + f[2] + f[3])}),
        ("none", made("coo", places=[[], []], what=(0,)), "sparse=values",
         {"w": ("F32", [2, 3], zero * 6)}),
        ("rows of none", made("coo", places=[[0, 2]], what=(2, 0), size=(3, 0), dims=1),
         "sparse=values", {"w": ("F32", [3, 0], b"")}),
        ("parts", made("coo"), "sparse=parts",
         {"w.indices": ("I64", [2, 2], longs(0, 1, 2, 1)), "w.values": ("F32", [2], DATA[:8]),
          "w.shape": ("I64", [2], longs(2, 3))}),
        ("parts of rows", made("csr", places=[[0, 1, 2]], dims=1, parts=lambda a, b, c: [
            a, tensor(key="1", kind="LongStorage", count=3, size=(2,)), b, c, b"\x88"]),
         "sparse=parts",
         {"w.crow_indices": ("I64", [1, 3], longs(0, 1, 2)),
          "w.col_indices": ("I64", [2], longs(0, 1)), "w.values": ("F32", [2], DATA[:8]),
          "w.shape": ("I64", [2], longs(2, 3))}),
        ("values of rows", made("csr", parts=lambda a, b, c: [a, a, b, c]), "sparse=values", other),
        ("big-endian values", big, "sparse=values", within),
        ("out of order", made("coo", places=[[1, 0], [1, 2]]), "sparse=values", order),
        ("a place twice", made("coo", places=[[1, 1], [1, 1]]), "sparse=values", order),
        ("beyond", made("coo", places=[[0, 2], [0, 0]]), "sparse=values", within),
        ("below", made("coo", places=[[0, 1], [-1, 0]]), "sparse=values", within),
        ("of three dimensions", made("coo", size=(2, 3, 4)), "sparse=values", fits),
        ("of one", made("coo", size=(6,)), "sparse=values", fits),
        ("more values", made("coo", what=(3,)), "sparse=values", fits),
        ("other rows", made("coo", places=[[0, 2]], what=(2, 2), size=(3, 3), dims=1),
         "sparse=values", fits),
        ("a number", made("coo", what=()), "sparse=values", fits),
        ("complex indices", made("coo", parts=lambda a, b, c: [
            tensor(key="1", kind="ComplexFloatStorage", count=4, size=(2, 2), stride=(2, 1)), b,
            c]), "sparse=values", fits),
        ("indices in a row", made("coo", parts=lambda a, b, c: [
            tensor(key="1", kind="LongStorage", count=4), b, c]), "sparse=values", fits),
        ("values strided", made("coo", parts=lambda a, b, c: [
            a, tensor(size=(2,), stride=(2,)), c]), "sparse=values",
         {"w": ("F32", [2, 3], zero * 2 + f[0] + zero + f[2] + zero)}),
        ("values beyond their storage", made("coo", parts=lambda a, b, c: [
            a, tensor(size=(2,), offset=3), c]), "sparse=values", fits),
        ("indices strided", made("coo", parts=lambda a, b, c: [
            tensor(key="1", kind="LongStorage", count=4, size=(2, 2), stride=(1, 2)), b, c]),
         "sparse=values", within),
        ("large", made("coo", size=(1 << 20, 1 << 20)), "sparse=values",
         ("foreign_output", "at most 1073741824 bytes if dense")),
        ("larger than 2^64", made("coo", size=(1 << 40, 1 << 40)), "sparse=values",
         ("foreign_output", "at most 1073741824 bytes if dense")),
        ("larger than is wanted", made("coo"), "sparse=values,max=23",
         ("foreign_output", "at most 23 bytes if dense")),
        ("rows of 2^64", made("coo", places=[[0, 2]], size=(3, 1 << 40, 1 << 40), dims=1,
                              parts=lambda a, b, c: [a, tensor(
                                  size=(2, 1 << 40, 1 << 40), stride=(1, 1, 1)), c]),
         "sparse=values", fits),
        ("an unknown layout", made("csx"), "sparse=values", not_read),
        ("a layout that is a text", made("", kind=text("torch.sparse_coo")), "sparse=values",
         not_read),
        ("a layout of a device", made("", kind=call("torch", "device", text("cpu"))),
         "sparse=values", not_read),
        ("a layout of nothing", made("", kind=call("torch.serialization", "_get_layout")),
         "sparse=values", not_read),
        ("two parts", made("coo", parts=lambda a, b, c: [a, b]), "sparse=values", not_read),
        ("values in a list", made("coo", parts=lambda a, b, c: [a, b"]", c]), "sparse=values",
         not_read),
        ("sizes in a text", made("coo", size=text("ab")), "sparse=values", not_read),
        ("sizes of texts", made("coo", size=values([text("a")])), "sparse=values", not_read),
        ("parts in a list", lambda path: zipped(path, pickled(mapping(v=tensor(), w=call(
            "torch._utils", "_rebuild_sparse_tensor", layout("coo"), b"]")))), "sparse=values",
         not_read),
        ("of one argument", lambda path: zipped(path, pickled(mapping(v=tensor(), w=call(
            "torch._utils", "_rebuild_sparse_tensor", layout("coo"))))), "sparse=values", not_read),
    ])


def views(ctx):
    """Views of storages, by PyTorch before 1.6."""
    other, beyond = ("foreign_syntax", "a view of another form"), ("foreign_size", "goes beyond")

    def of(view):
        return lambda path: legacy(path, mapping(w=tensor(size=(2,), view=view)),
                                   [(b"0", 4, DATA)])
    key, i = text("v"), integer
    check(ctx, [
        ("none", of(b"N"), "-", {"w": HALF}),
        ("of the end", of(values([key, i(2), i(2)])), "-", {"w": ("F32", [2], DATA[8:])}),
        ("too long", of(values([key, i(3), i(2)])), "-", beyond),
        ("beyond", of(values([key, i(5), i(0)])), "-", beyond),
        ("too short", of(values([key, i(3), i(1)])), "-", ("foreign_size", "expected 8 bytes")),
        ("a list", of(b"]"), "-", other),
        ("of two", of(values([key, i(2)])), "-", other),
        ("of no number", of(values([key, key, i(2)])), "-", other),
        ("of no count", of(values([key, i(2), key])), "-", other),
        ("of a count below 0", of(values([key, i(2), i(-1)])), "-", other),
        ("of 2^64 bytes", of(values([key, i(0), i(1 << 62)])), "-", other),
        ("another id", lambda path: legacy(path, mapping(w=tensor(parts=[
            key, name("torch", "FloatStorage"), text("0"), text("cpu"), i(4)])),
            [(b"0", 4, DATA)]), "-", ("foreign_syntax", "another kind of id")),
    ])


def cases(ctx):
    for function in [quantised, sparse, views]:
        yield function.__name__, functools.partial(function, ctx)
