"""NumPy's .npy and .npz, with numpy as writer and as oracle.

ctx.command: the words of the command; ctx.folder: an empty folder.
"""
import itertools
import os
import struct
import sys
import zipfile

import ml_dtypes
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

KINDS = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8"]
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (3, 4), (1, 5), (5, 1), (2, 3, 4), (1, 1, 1, 1),
          (2, 1, 3, 1, 2), (64, 33), (1,) * 32]
VOID = [("BF16", ml_dtypes.bfloat16), ("F8_E4M3", ml_dtypes.float8_e4m3fn),
        ("F8_E5M2", ml_dtypes.float8_e5m2), ("F8_E8M0", ml_dtypes.float8_e8m0fnu)]


def path_of(ctx, name):
    return os.path.join(ctx.folder, name)


def arrays_of(kind, seed):
    """An array of every shape, in both orders of bytes and of dimensions."""
    random = np.random.default_rng(seed)
    out = {}
    for shape, end, order in itertools.product(SHAPES, "<>", "CF"):
        dtype = np.dtype(kind).newbyteorder(end)
        raw = random.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
        if kind == "b1":
            raw &= 1
        array = np.frombuffer(raw.tobytes(), dtype).reshape(shape, order=order)
        assert array.flags.f_contiguous if order == "F" else array.flags.c_contiguous
        out[f"{kind}{end}{order}{'x'.join(map(str, shape))}"] = array
    return out


def every_array(ctx, kind, save):
    arrays = arrays_of(kind, len(kind) + ord(kind[0]))
    path = path_of(ctx, "a.npz")
    save(path, **arrays)
    files.same(files.convert(ctx, path), arrays)


def every_version(ctx, kind, version):
    """Files of one array, which is named after its file."""
    for end, order, shape in itertools.product("<>", "CF", [(), (4,), (3, 5)]):
        dtype = np.dtype(kind).newbyteorder(end)
        array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape, order=order)
        with open(path_of(ctx, "w.npy"), "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        files.same(files.convert(ctx, path_of(ctx, "w.npy")), {"w": array})


def unseekable(ctx):
    """Archives written to a pipe have sizes and checksums behind the data."""
    class Pipe:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            return self.file.write(data)

        def flush(self):
            self.file.flush()

    arrays = {"a": np.arange(1000.0), "b": np.zeros(0, "u1"), "c": np.array(True)}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for force in (False, True):
            with open(path_of(ctx, "p.npz"), "wb") as file:
                with zipfile.ZipFile(Pipe(file), "w", method) as archive:
                    for name, array in arrays.items():
                        with archive.open(name + ".npy", "w", force_zip64=force) as member:
                            np.lib.format.write_array(member, array)
            files.same(files.convert(ctx, path_of(ctx, "p.npz")), arrays)


def names(ctx):
    """Keys are free text; none of it is a path, and numpy tells W from w."""
    keys = ["W", "w", "a/b.c", "../x", "/etc/passwd", "é 中", "a.npy", " ", "a\\b", "x\ny", "%s"]
    arrays = {key: np.full(3, i, "f4") for i, key in enumerate(keys)}
    np.savez(path_of(ctx, "n.npz"), **arrays)
    files.same(files.convert(ctx, path_of(ctx, "n.npz")), arrays)
    with zipfile.ZipFile(path_of(ctx, "n.npz")) as archive:
        assert len(archive.namelist()) == len(keys)
    for key in ("", "__metadata__"):
        np.savez(path_of(ctx, "n.npz"), **{key: np.zeros(2)})
        files.refuse(ctx, path_of(ctx, "n.npz"), "foreign_name")


def large_deflated(ctx):
    """Of more bytes than are inflated at once, read in one go and in pieces, out of order."""
    random = np.random.default_rng(5)
    arrays = {"plain": random.integers(0, 9, (3000, 1000)).astype("i4"),
              "fortran": np.asfortranarray(random.integers(0, 9, (700, 900)).astype(">i8")),
              "zeros": np.zeros((5000, 1000), "f4")}
    path = path_of(ctx, "d.npz")
    np.savez_compressed(path, **arrays)
    files.same(files.convert(ctx, path), arrays)
    files.same(files.convert(ctx, path, "--dtype", "F64"),
               {**arrays, "zeros": arrays["zeros"].astype("f8")})


def opaque(ctx):
    """What ml_dtypes' arrays are saved as does not tell their dtype."""
    for name, kind in VOID:
        array = np.arange(0, 24).astype(np.uint8).view(kind) if np.dtype(kind).itemsize == 1 \
            else np.arange(24).astype(kind)
        array = array.reshape(4, 6)
        path = path_of(ctx, "v.npz")
        np.savez(path, a=array, f=np.asfortranarray(array), plain=np.zeros(3))
        message = files.refuse(ctx, path, "foreign_opaque")
        assert "width" in message, message
        files.same(files.convert(ctx, path, "--as", f"?={name}"),
                   {"a": array, "f": array, "plain": np.zeros(3)})
        files.same(files.convert(ctx, path, "--skip"), {"plain": np.zeros(3)})
        wrong = "F32" if np.dtype(kind).itemsize == 2 else "BF16"
        files.refuse(ctx, path, "cast_dtype", "--as", f"?={wrong}")


def no_tensors(ctx):
    """Arrays that have no dtype here are refused by name, or left out."""
    rows = {"objects": np.array([1, "x"], object), "text": np.array(["ab"]),
            "bytes": np.array([b"ab"]), "dates": np.array(["2020-01-01"], "M8[D]"),
            "spans": np.array([5], "m8[s]"), "complex": np.zeros(2, "c16"),
            "long": np.zeros(2, np.longdouble), "void": np.zeros(2, "V3"),
            "record": np.zeros(2, [("x", "f4"), ("y", "i2")]),
            "sub": np.zeros(2, [("x", "f4", (2,))])}
    path = path_of(ctx, "o.npz")
    for name, array in rows.items():
        np.savez(path, **{name: array, "kept": np.arange(3)})
        code = "foreign_object" if name == "objects" else "foreign_dtype"
        message = files.refuse(ctx, path, code)
        assert "expected an array of numbers" in message, message
        found, said = files.convert_and_say(ctx, path, "--skip")
        files.same(found, {"kept": np.arange(3)})
        assert name in said, said


# ── Headers ──

def npy(text, data=b"", version=1, pad=True):
    raw = text.encode() if isinstance(text, str) else text
    if pad:
        raw += b" " * (-(len(raw) + (11 if version == 1 else 13)) % 16) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(raw))
    return b"\x93NUMPY" + bytes([version, 0]) + size + raw + data


GOOD = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",  # of Python 2
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
    '{"descr": "<f4", "fortran_order": False, "shape": (2, 3,), }',
    "{'shape': (2, 3), 'descr': '=f4', 'fortran_order': False, }",
    "{ 'shape' : ( 2 , 3 ) ,\n\t'fortran_order' : False , 'descr' : '<f4' }",
    "{'descr':'|f4','fortran_order':False,'shape':(2,3)}",
]
HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
BAD = [
    ("", "{"), ("{}", "shape"), ("[1]", "{"), ("None", "{"),
    (HEADER.replace("'shape': (2, 3), ", ""), "shape"),
    (HEADER.replace("(2, 3)", "(2, -3)"), "size"),
    (HEADER.replace("(2, 3)", "(2, 3.0)"), ","),
    (HEADER.replace("(2, 3)", "(2, 03)"), "size"),
    (HEADER.replace("(2, 3)", "(2, 0x3)"), ","),
    (HEADER.replace("(2, 3)", "(2 3)"), ","),
    (HEADER.replace("(2, 3)", "(6)"), ","),
    (HEADER.replace("(2, 3)", "(,)"), "size"),
    (HEADER.replace("(2, 3)", "[2, 3]"), "tuple"),
    (HEADER.replace("(2, 3)", "(2, 3"), "size"),
    (HEADER.replace("(2, 3)", "(2, 99999999999999999999)"), "size"),
    (HEADER.replace("(2, 3)", "(" + "1, " * 65 + ")"), "64"),
    (HEADER.replace("(2, 3)", "__import__('os').system('id')"), "tuple"),
    (HEADER.replace("False", "0"), "True or False"),
    (HEADER.replace("False", "false"), "True or False"),
    (HEADER.replace("'<f4'", "'<' 'f4'"), ","),
    (HEADER.replace("'<f4'", "'\\x3cf4'"), "type"),
    (HEADER.replace("'<f4'", "\"<f4'"), "type"),
    (HEADER.replace("'<f4'", "4"), "type"),
    (HEADER.replace("'descr'", "'dtype'"), "keys"),
    (HEADER.replace("'descr'", "b'descr'"), "key"),
    (HEADER.replace("{", "{'descr': '<f8', "), "once"),
    (HEADER.replace("{", "{'more': 1, "), "keys"),
    (HEADER + " x", "spaces"), (HEADER + "\0", "spaces"), (HEADER + "#", "spaces"),
    (HEADER.replace(", }", ",, }"), "key"),
]


def good_headers(ctx):
    path = path_of(ctx, "h.npy")
    array = np.arange(6, dtype="f4").reshape(2, 3)
    for text, version in itertools.product(GOOD, (1, 2, 3)):
        with open(path, "wb") as file:
            file.write(npy(text, array.tobytes(), version))
        files.same(files.convert(ctx, path), {"h": array})


def bad_headers(ctx):
    path = path_of(ctx, "h.npy")
    for text, says in BAD:
        with open(path, "wb") as file:
            file.write(npy(text, bytes(24)))
        message = files.refuse(ctx, path, "foreign_syntax")
        assert says in message, (text, message)


def sizes(ctx):
    """Headers that declare other sizes than there are bytes."""
    path = path_of(ctx, "s.npy")

    def refuse(raw, code):
        with open(path, "wb") as file:
            file.write(raw)
        files.refuse(ctx, path, code)

    refuse(npy(HEADER, bytes(23)), "foreign_size")
    refuse(npy(HEADER.replace("(2, 3)", "(1099511627776, 3)"), bytes(24)), "foreign_size")
    refuse(npy(HEADER.replace("(2, 3)", "(4294967296, 4294967296, 4)"), bytes(24)),
           "size_overflow")
    refuse(npy(HEADER)[:40], "foreign_truncated")
    refuse(b"\x93NUMPY\1", "foreign_truncated")
    refuse(b"\x93NUMPY\4\0" + bytes(100), "foreign_kind")
    refuse(b"\x93NUMPY\2\0" + struct.pack("<I", 70000) + b" " * 80000, "foreign_table")
    with zipfile.ZipFile(path_of(ctx, "z.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(HEADER.replace("(2, 3)", "(1099511627776,)"), bytes(24)))
    files.refuse(ctx, path_of(ctx, "z.npz"), "foreign_size")
    # More bytes than the array needs are told.
    with open(path, "wb") as file:
        file.write(npy(HEADER, bytes(24) + b"more"))
    found, said = files.convert_and_say(ctx, path)
    files.same(found, {"s": np.zeros((2, 3), "f4")})
    assert "bytes after the array" in said, said


def cut(ctx):
    """A file that ends too early, at each byte."""
    path = path_of(ctx, "c.npy")
    whole = npy(HEADER, bytes(24))
    for length in range(7, len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:length])
        files.refuse(ctx, path, "foreign_size" if length >= len(whole) - 24
                     else "foreign_truncated")


def cases(ctx):
    for kind in KINDS:
        yield f"npz of {kind}", lambda k=kind: every_array(ctx, k, np.savez)
        yield f"npz of {kind}, deflated", lambda k=kind: every_array(ctx, k, np.savez_compressed)
    for version in ((1, 0), (2, 0), (3, 0)):
        for kind in KINDS:
            yield (f"npy of {kind}, version {version[0]}",
                   lambda k=kind, v=version: every_version(ctx, k, v))
    yield "npz through a pipe", lambda: unseekable(ctx)
    yield "npz: names", lambda: names(ctx)
    yield "npz: large, deflated", lambda: large_deflated(ctx)
    yield "npy: types that only ml_dtypes has", lambda: opaque(ctx)
    yield "npy: types without a dtype", lambda: no_tensors(ctx)
    yield "npy: headers of other writers", lambda: good_headers(ctx)
    yield "npy: headers that break the grammar", lambda: bad_headers(ctx)
    yield "npy: sizes", lambda: sizes(ctx)
    yield "npy: cut at each byte", lambda: cut(ctx)
