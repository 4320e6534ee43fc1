"""Flax checkpoints, byte by byte; msgpack is not needed."""
import functools
import struct

from object_cases import DATA, W, check


def text(words):
    words = words.encode() if isinstance(words, str) else words
    return b"\xdb" + struct.pack(">I", len(words)) + words


def bytes_(data):
    return b"\xc6" + struct.pack(">I", len(data)) + data


def mapping(*pairs):
    return b"\xdf" + struct.pack(">I", len(pairs)) + b"".join(
        (text(key) if isinstance(key, str) else key) + value for key, value in pairs)


def many(*items):
    return b"\xdd" + struct.pack(">I", len(items)) + b"".join(items)


def ext(kind, data):
    return b"\xc9" + struct.pack(">Ib", len(data), kind) + data


def array(shape=(4,), dtype="float32", data=DATA, kind=1, parts=None):
    return ext(kind, parts or many(many(*(struct.pack(">Bq", 0xd3, n) for n in shape)), text(dtype),
                                   bytes_(data)))


def of(raw):
    def write(path):
        with open(path, "wb") as file:
            file.write(raw)
    return write


def arrays(ctx):
    form = ("foreign_syntax", "an array as shape, dtype and bytes, found another form")
    short = ("foreign_syntax", "a whole value")
    shape, kind, data = many(b"\4"), text("float32"), bytes_(DATA)

    def one(value):
        return of(mapping(("w", value)))

    def parts(*items):
        return one(array(parts=b"".join(items)))
    three = b"\x93"
    check(ctx, [
        ("an array", one(array()), "-", {"w": W}),
        ("a number of NumPy", one(array((), data=DATA[:4], kind=3)), "-",
         {"w": ("F32", [], DATA[:4])}),
        ("bytes as text", parts(three, shape, kind, text(DATA)), "-", {"w": W}),
        ("dtype as bytes", parts(three, shape, bytes_(b"float32"), data), "-", {"w": W}),
        ("another dtype", one(array(dtype="int4")), "-",
         ("foreign_dtype", "a dtype of safetensors, found int4")),
        ("a long dtype", one(array(dtype="f" * 64)), "-",
         ("foreign_dtype", "found " + "f" * 60)),
        ("a longer dtype", one(array(dtype="f" * 65)), "-", form),
        ("complex128", one(array((1,), dtype="complex128")), "-",
         ("foreign_dtype", "found complex128")),
        ("more bytes", one(array((3,))), "-", ("foreign_size", "expected 12 bytes")),
        ("fewer bytes", one(array((5,))), "-", ("foreign_size", "expected 20 bytes")),
        ("2^64 elements", one(array((1 << 62, 8))), "-", ("size_overflow", "2^64 bits")),
        ("a size below 0", one(array((-4,))), "-", form),
        ("a size that is a text", parts(three, many(text("4")), kind, data), "-", form),
        ("a shape that is a number", parts(three, b"\4", kind, data), "-", form),
        ("65 dimensions", parts(three, many(*[b"\1"] * 65), kind, data), "-", form),
        ("a dtype that is a number", parts(three, shape, b"\4", data), "-", form),
        ("bytes that are a number", parts(three, shape, kind, b"\4"), "-", form),
        ("two of three", parts(b"\x92", shape, kind), "-", form),
        ("a map of three", parts(b"\x83", shape, kind, data), "-", form),
        ("more behind", parts(three, shape, kind, data, b"\xc0"), "-", form),
        ("nothing", parts(b"\xc1"), "-", ("foreign_syntax", "expected a value")),
        ("a shape that is cut", parts(three, b"\x92\4"), "-", short),
        ("no dtype", parts(three, shape), "-", short),
        ("no bytes", parts(three, shape, kind), "-", short),
        ("no shape", parts(three), "-", short),
        ("a length that is cut", parts(three, shape, kind, b"\xc6\0\0"), "-", short),
        ("bytes that are cut", parts(three, shape, kind, b"\xc6\0\0\0\x20" + DATA), "-",
         ("foreign_syntax", "bytes before the end of the file")),
    ])


def chunks(ctx):
    form = ("foreign_syntax", "an array in chunks, all of one dtype, found another form")
    first, second = array((2,), data=DATA[:8]), array((2,), data=DATA[8:])
    sizes, parts = mapping(("0", b"\2"), ("1", b"\2")), mapping(("0", first), ("1", second))

    def made(shape=sizes, pieces=parts, *more):
        return mapping(("__msgpack_chunked_array__", b"\xc3"), ("shape", shape), ("chunks", pieces),
                       *more)

    def whole(*args):
        return of(mapping(("w", made(*args))))
    check(ctx, [
        ("in chunks", whole(), "-", {"w": ("F32", [2, 2], DATA)}),
        ("in chunks in a list", of(mapping(("v", array()), ("w", many(made())))), "-",
         {"v": W, "w.0.chunks.0": ("F32", [2], DATA[:8]), "w.0.chunks.1": ("F32", [2], DATA[8:])}),
        ("four members", whole(sizes, parts, ("x", b"\xc0")), "-", form),
        ("no chunks", of(mapping(("w", mapping(("__msgpack_chunked_array__", b"\xc3"),
                                              ("shape", sizes))))), "-", form),
        ("no shape", of(mapping(("w", mapping(("__msgpack_chunked_array__", b"\xc3"),
                                             ("chunks", parts))))), "-", form),
        ("a shape in a list", whole(many(b"\2")), "-", form),
        ("chunks in a list", whole(sizes, many(first, second)), "-", form),
        ("65 dimensions", whole(mapping(*((str(i), b"\1") for i in range(65)))), "-", form),
        ("chunks of none", whole(sizes, mapping()), "-", form),
        ("sizes in another order", whole(mapping(("1", b"\2"), ("0", b"\2"))), "-", form),
        ("a size that is a text", whole(mapping(("0", text("4")))), "-", form),
        ("a size below 0", whole(mapping(("0", b"\xfc"))), "-", form),
        ("chunks in another order", whole(sizes, mapping(("1", first), ("0", second))), "-", form),
        ("a chunk that is a number", whole(sizes, mapping(("0", first), ("1", b"\1"))), "-", form),
        ("a chunk of two dimensions", whole(sizes, mapping(("0", array((2, 2))))), "-", form),
        ("a chunk of another dtype", whole(sizes, mapping(("0", first), ("1", array(
            (2,), "int32", DATA[8:])))), "-", form),
        ("a chunk in chunks", whole(sizes, mapping(("0", made(mapping(("0", b"\4")))))), "-", form),
        ("a chunk with fewer bytes", whole(sizes, mapping(("0", array((4,), data=DATA[:8])))), "-",
         form),
        ("a chunk of 2^64 bytes", whole(sizes, mapping(("0", array((1 << 62,))))), "-", form),
        ("fewer chunks", whole(sizes, mapping(("0", first))), "-", form),
        ("a shape of 2^64", whole(mapping(*((str(i), b"\xd3" + struct.pack(">q", 1 << 40))
                                            for i in range(2)))), "-", form),
    ])


def values(ctx):
    def beside(value, key="x"):
        return of(mapping(("w", array()), (key, value)))

    def read(*left):
        return {"w": W, "left": list(left)}
    number = "numbers: 1, texts: 0, other values: 0"
    other = "numbers: 0, texts: 0, other values: 1"
    short = ("foreign_syntax", "a whole value")
    no_format = ("foreign_kind", "")
    i8, i16, i32, i64 = (b"\xd0\x80", b"\xd1\x80\0", b"\xd2\x80\0\0\0", b"\xd3\x80" + bytes(7))
    counted = [(f"the number {n}", beside(array((1,), data=DATA[:4]), raw), "-",
                {"w": W, str(n): ("F32", [1], DATA[:4])})
               for n, raw in [(-128, i8), (-32768, i16), (-1 << 31, i32), (-1 << 63, i64),
                              (127, b"\xd0\x7f"), (-1, b"\xff"), (7, b"\7"), (200, b"\xcc\xc8"),
                              (65535, b"\xcd\xff\xff"), (1 << 31, b"\xce\x80\0\0\0"),
                              (1 << 62, b"\xcf\x40" + bytes(7))]]
    check(ctx, [
        *counted,
        ("nothing", beside(b"\xc0"), "-", read()),
        ("true", beside(b"\xc3"), "-", read(number)),
        ("a float", beside(b"\xca\0\0\0\0"), "-", read(number)),
        ("a double", beside(b"\xcb" + bytes(8)), "-", read(number)),
        ("2^63", beside(b"\xcf\x80" + bytes(7)), "-", read(number)),
        ("true as tensor", beside(b"\xc3"), "scalars", {"w": W, "x": ("BOOL", [], b"\1")}),
        ("-2 as tensor", beside(b"\xfe"), "scalars",
         {"w": W, "x": ("I64", [], struct.pack("<q", -2))}),
        ("a float as tensor", beside(b"\xca\xbf\xc0\0\0"), "scalars",
         {"w": W, "x": ("F64", [], struct.pack("<d", -1.5))}),
        ("a double as tensor", beside(b"\xcb" + struct.pack(">d", 0.1)), "scalars",
         {"w": W, "x": ("F64", [], struct.pack("<d", 0.1))}),
        ("2^63 as tensor, which has no dtype", beside(b"\xcf\x80" + bytes(7)), "scalars",
         read(number)),
        ("bytes", beside(b"\xc4\1b"), "-", read(other)),
        ("text", beside(b"\xa1t"), "-", read("numbers: 0, texts: 1, other values: 0")),
        ("a complex number", beside(ext(2, bytes(16))), "-", read(other)),
        ("an extension of two bytes", beside(b"\xd5\5ab"), "-", read(other)),
        ("an extension without a type", of(mapping(("w", array()), ("x", b"\xd5"))), "-", short),
        ("a list", beside(many(array((2,), data=DATA[:8]))), "-",
         {"w": W, "x.0": ("F32", [2], DATA[:8])}),
        ("a list of nothing", beside(b"\x90"), "-", read(other)),
        ("text of more than 1 MiB", beside(text("t" * ((1 << 20) + 1))), "-",
         ("foreign_table", "at most 1 MiB, found 1048577 bytes")),
        ("text of 1 MiB", beside(text("t" * (1 << 20))), "-",
         read("numbers: 0, texts: 1, other values: 0")),
        ("a float as key", of(mapping(("w", array()), (b"\xcb" + bytes(8), b"\xc0"))), "-",
         ("foreign_syntax", "text or a whole number as key, found a number")),
        ("511 levels", beside(b"\x91" * 510 + b"\xc0"), "-", {"w": W}),
        ("513 levels", beside(b"\x91" * 513 + b"\xc0"), "-",
         ("foreign_nesting", "at most 512 levels")),
        ("more items than bytes", beside(b"\xdd\0\1\0\0"), "-",
         ("foreign_syntax", "expected 65536 values before the end of the file")),
        ("behind its end", of(mapping(("w", array())) + b"\xc0"), "-",
         ("foreign_syntax", "the end of the file behind the value")),
        ("a step first", of(mapping(("step", b"\7"), ("w", array()))), "-", read(number)),
        ("a map first", of(mapping(("params", mapping(("w", array()))))), "-", {"w": W}),
        ("text first", of(mapping(("name", text("x")), ("w", array()))), "-", no_format),
        ("a first value that is cut", of(mapping(("w", b""))), "-", no_format),
        ("a number as first key", of(mapping((b"\7", array()))), "-", no_format),
        ("an empty first key", of(mapping(("", array()))), "-", no_format),
        ("a first key of 1025 bytes", of(mapping(("k" * 1025, array()))), "-", no_format),
        ("a first key with a line", of(mapping(("a\n", array()))), "-", no_format),
        ("a first key with a byte of 127", of(mapping(("a\x7f", array()))), "-", no_format),
        ("a first key that is cut", of(b"\xdf\0\0\0\1\xdb"), "-", no_format),
        ("a map of nothing", of(b"\xdf\0\0\0\0" + bytes(8)), "-", no_format),
        ("a map that is cut", of(b"\xdf\0\0"), "-", no_format),
        ("a map of 16 bits", of(b"\xde\0\1" + text("w") + array()), "-", {"w": W}),
        ("a list of arrays", of(many(array())), "-", no_format),
        ("a code above maps", of(b"\xe0" + bytes(8)), "-", no_format),
        ("a code below maps", of(b"\x7f" + bytes(8)), "-", no_format),
    ])


def cases(ctx):
    for function in [arrays, chunks, values]:
        yield "msgpack " + function.__name__, functools.partial(function, ctx)
