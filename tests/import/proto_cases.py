"""ONNX models, field by field; the onnx package is not needed."""
import functools
import os
import struct

from hostile_other import field, onnx, onnx_tensor, varint
from msgpack_cases import of
from object_cases import DATA, HALF, W, check, longs


def fixed(number, data):
    """Fields of four or eight bytes each, not packed."""
    size = 4 if number == 4 else 8
    tag = varint(number << 3 | (5 if size == 4 else 1))
    return b"".join(tag + data[i:i + size] for i in range(0, len(data), size))


def varints(*numbers):
    return b"".join(varint(n & 2**64 - 1) for n in numbers)


def elements(ctx):
    def one(rest=b"", **more):
        return of(onnx(onnx_tensor(rest=rest, **more)))
    many = [i * i % 777 - 5 for i in range(3000)]
    two = ("foreign_ambiguous", "in one place, found raw, typed or external ones side by side")
    number = ("foreign_syntax", "expected a number, found the end")
    three = field(1, 1, 0) + field(2, 1, 0) + field(8, b"w") + field(9, DATA[:4])
    check(ctx, [
        ("raw", one(field(9, DATA)), "-", {"w": W}),
        ("packed", one(field(4, DATA)), "-", {"w": W}),
        ("one by one", one(fixed(4, DATA)), "-", {"w": W}),
        ("packed in two", one(field(4, DATA[:8]) + field(4, DATA[8:])), "-", {"w": W}),
        ("packed, and one by one", one(field(4, DATA[:8]) + fixed(4, DATA[8:])), "-", {"w": W}),
        ("packed, and nothing", one(field(4, b"") + field(4, DATA)), "-", {"w": W}),
        ("other fields between", one(field(4, DATA[:8]) + field(12, b"doc") + fixed(4, DATA[8:])),
         "-", {"w": W}),
        ("F64 one by one", one(fixed(10, DATA), kind=11, dims=(2,)), "-", {"w": ("F64", [2], DATA)}),
        ("I64", one(field(7, varints(1, -1, 1 << 40, -1 << 63)), kind=7), "-",
         {"w": ("I64", [4], longs(1, -1, 1 << 40, -1 << 63))}),
        ("I64 one by one", one(b"".join(field(7, n, 0) for n in (1, -1, 2, 3)), kind=7), "-",
         {"w": ("I64", [4], longs(1, -1, 2, 3))}),
        ("I8", one(field(5, varints(1, -1, 127, -128)), kind=3), "-",
         {"w": ("I8", [4], struct.pack("4b", 1, -1, 127, -128))}),
        ("F16", one(field(5, varints(0x3c00, 0xbc00)), kind=10, dims=(2,)), "-",
         {"w": ("F16", [2], b"\0\x3c\0\xbc")}),
        ("U32", one(field(11, varints(7, 2**32 - 1)), kind=12, dims=(2,)), "-",
         {"w": ("U32", [2], struct.pack("<2I", 7, 2**32 - 1))}),
        ("F4", one(field(5, varints(0x21, 0x43)), kind=23), "-", {"w": ("F4", [4], b"\x21\x43")}),
        ("three thousand", one(field(7, varints(*many)), kind=7, dims=(3000,)), "-",
         {"w": ("I64", [3000], longs(*many))}),
        ("six bits, raw", one(field(9, DATA[:3]), kind=27), "-",
         {"w": ("F6_E2M3", [4], DATA[:3])}),
        ("six bits, one by one", one(field(5, b"\1\2\3\4"), kind=27), "-",
         ("foreign_kind", "6 bits in raw_data, found them one by one")),
        ("six bits, and that is well", of(onnx(onnx_tensor(kind=27, rest=field(5, b"\1\2\3\4")),
                                               onnx_tensor(b"v", rest=field(9, DATA)))), "skip",
         {"v": W}),
        ("fewer", one(field(7, varints(1, 2, 3)), kind=7), "-",
         ("foreign_size", "expected 32 bytes for this shape, found 24")),
        ("fewer than there is room for", one(field(7, b"\1"), kind=7, dims=(1000,)), "-",
         ("foreign_size", "expected 8000 bytes of elements, found a field of fewer")),
        ("more", one(field(7, varints(1, 2, 3, 4, 5)), kind=7), "-",
         ("foreign_size", "expected 32 bytes for this shape, found 40")),
        ("another field", one(field(5, b"\1\2\3\4")), "-",
         ("foreign_syntax", "expected elements in field 4, found field 5")),
        ("two fields", one(field(4, DATA) + field(9, DATA)), "-", two),
        ("a number that is cut", one(field(7, b"\1\2\3\x80"), kind=7), "-", number),
        ("four bytes that are cut", one(field(4, DATA[:6]) + field(4, DATA)), "-", number),
        ("2^64 elements", one(field(7, b"\1"), kind=7, dims=(1 << 62, 8)), "-",
         ("size_overflow", "")),
        ("2^64 raw elements", one(field(9, DATA), dims=(1 << 62, 8)), "-", ("size_overflow", "")),
        ("sizes packed", one(field(1, b"\2\2") + field(9, DATA), dims=()), "-",
         {"w": ("F32", [2, 2], DATA)}),
        ("sizes packed that are cut", one(field(1, b"\x82") + field(9, DATA), dims=()), "-",
         number),
        ("65 sizes", one(field(9, DATA), dims=(1,) * 65), "-",
         ("rank_too_large", "at most 64 dimensions, found more")),
        ("66 sizes packed", one(field(1, b"\1" * 66) + field(9, DATA), dims=()), "-",
         ("rank_too_large", "at most 64 dimensions, found more")),
        ("a size below 0", one(field(9, DATA), dims=(-4,)), "-",
         ("foreign_size", "sizes of 0 or more, found a negative one")),
        ("a segment", one(field(3, b"") + field(9, DATA)), "-",
         ("foreign_kind", "a whole tensor, found a segment")),
        ("text", one(field(9, DATA), kind=8), "-",
         ("foreign_dtype", "elements that safetensors has, found STRING")),
        ("another type", one(field(9, DATA), kind=99), "-", ("foreign_dtype", "an unknown type")),
        ("no name", of(onnx(field(1, 1, 0) + field(2, 1, 0) + field(9, DATA[:4]))), "-",
         ("foreign_name", "an empty one")),
        ("fields that mean nothing", of(onnx(three + field(12, b"doc") + field(16, b"meta"))), "-",
         {"w": ("F32", [1], DATA[:4])}),
    ])


def beside(ctx):
    def external(*pairs, data=DATA, dims=(4,), **more):
        """pairs of external_data; @ is the file beside the model."""
        def write(path):
            name = (os.path.basename(path) + ".bin").encode()
            rest = b"".join(field(13, b"".join(field(n, text.replace(b"@", name))
                                               for n, text in pair)) for pair in pairs)
            with open(path, "wb") as file:
                file.write(onnx(onnx_tensor(dims=dims, rest=rest + field(14, 1, 0), **more)))
            with open(path + ".bin", "wb") as file:
                file.write(data)
        return write

    def kv(key, value):
        return [(1, key), (2, value)]
    here = kv(b"location", b"@")
    within = ("foreign_truncated", "external data within 16 bytes, found bytes ")
    digits = ("foreign_syntax", "digits for the offset and length of external data, found ")
    check(ctx, [
        ("a file", external(here), "-", {"w": W}),
        ("at an offset", external(here, kv(b"offset", b"8"), dims=(2,)), "-",
         {"w": ("F32", [2], DATA[8:])}),
        ("of a length", external(here, kv(b"length", b"8"), dims=(2,)), "-", {"w": HALF}),
        ("of no length, where the file goes on", external(here, dims=(2,)), "-", {"w": HALF}),
        ("of more than the shape", external(here, kv(b"length", b"12"), dims=(2,)), "-",
         ("foreign_size", "expected 8 bytes for this shape, found 12")),
        ("from behind", external(here, kv(b"offset", b"17")), "-", (within[0], within[1] + "17")),
        ("beyond", external(here, kv(b"offset", b"8"), kv(b"length", b"9")), "-",
         (within[0], within[1] + "8 to 17")),
        ("of letters", external(here, kv(b"length", b"x" * 50)), "-",
         (digits[0], digits[1] + '"' + "x" * 40 + '"')),
        ("from letters", external(here, kv(b"offset", b"x")), "-", (digits[0], digits[1] + '"x"')),
        ("of other keys", external(here, kv(b"checksum", b"0"), kv(b"", b"")), "-", {"w": W}),
        ("of more in a pair", external([*here, (3, b"more")]), "-", {"w": W}),
        ("of a key without a value", external(here, [(1, b"offset")]), "-", (digits[0], digits[1])),
        ("of a value without a key", external(here, [(2, b"8")]), "-", {"w": W}),
        ("of two keys", external([(1, b"location"), (1, b"offset"), (2, b"@")]), "-",
         ("foreign_ambiguous", "a key or value of external_data")),
        ("2^64 elements", external(here, kv(b"length", b"16"), dims=(1 << 62, 8)), "-",
         ("size_overflow", "")),
    ])


def graphs(ctx):
    half = onnx_tensor(b"h", (2,), rest=field(9, DATA[:8]))
    w = onnx_tensor(rest=field(9, DATA))

    def node(*attributes, outputs=(b"out",)):
        return field(1, b"".join(field(2, name) for name in outputs)
                     + b"".join(field(5, a) for a in attributes))

    def model(graph, *more):
        return of(onnx(w, graph=graph) + b"".join(more))
    left = ["constants of nodes, subgraphs, functions and training",
            "nodes, which say what is computed"]
    inner = field(5, half) + field(5, onnx_tensor(b"i", (1,), rest=field(9, DATA[:4])))
    function = field(25, field(7, field(2, b"f") + field(5, field(5, half))))
    training = field(20, field(1, field(5, half)) + field(2, b""))
    no_sparse = ("foreign_object", "expected dense tensors, found a sparse one")
    both = ("foreign_ambiguous", "a graph or tensor once, found it again")
    deep = b""
    for _ in range(40):
        deep = field(1, field(5, field(6, deep)))
    version = field(1, 8, 0)
    no = ("foreign_kind", "a format of tensors that is read here")
    graph = field(7, field(5, w))
    check(ctx, [
        ("a constant", model(node(field(5, half))), "-", {"w": W, "left": left}),
        ("a constant, and all", model(node(field(5, half))), "all", {"w": W, "out": HALF}),
        ("a constant of two outputs", model(node(field(5, half), outputs=(b"a", b"b"))), "all",
         {"w": W, "a": HALF}),
        ("a constant without an output", model(node(field(5, half), outputs=())), "all",
         {"w": W, "h": HALF}),
        ("a list of constants", model(node(field(10, half))), "all", {"w": W, "out": HALF}),
        ("two constants of a list", model(node(field(10, half) * 2)), "all",
         {"w": W, "out": HALF, "out.1": HALF}),
        ("a subgraph", model(node(field(6, inner))), "-", {"w": W, "left": left}),
        ("a subgraph, and all", model(node(field(6, inner))), "all",
         {"w": W, "h": HALF, "i": ("F32", [1], DATA[:4])}),
        ("subgraphs in a list, and all", model(node(field(11, field(5, half)) + field(
            11, field(5, onnx_tensor(b"i", (1,), rest=field(9, DATA[:4])))))), "all",
         {"w": W, "h": HALF, "i": ("F32", [1], DATA[:4])}),
        ("a constant of a subgraph, and all", model(node(field(6, node(
            field(5, half), outputs=(b"in",))))), "all", {"w": W, "in": HALF}),
        ("a function", model(b"", function), "-", {"w": W, "left": left}),
        ("a function, and all", model(b"", function), "all", {"w": W, "f": HALF}),
        ("a tensor twice", model(node(field(5, half) * 2)), "all", both),
        ("a subgraph twice", model(node(field(6, inner) * 2)), "all", both),
        ("a graph twice", of(onnx(w) + graph), "-", both),
        ("a tensor that is a number", model(node(field(5, 7, 0))), "all", {"w": W}),
        ("an output that is a number", model(field(1, field(2, 7, 0) + field(5, field(5, half)))),
         "all", {"w": W, "h": HALF}),
        ("an output of 65537 bytes", model(node(outputs=(b"n" * 65537,))), "-",
         ("foreign_syntax", "text of at most 65536 bytes, found 65537")),
        ("a default of a function, and all", model(b"", field(25, field(11, field(5, half)))), "all",
         {"w": W, "h": HALF}),
        ("training", model(b"", training), "-", {"w": W, "left": left[:1]}),
        ("training, and all", model(b"", training), "all", {"w": W, "h": HALF}),
        ("sparse", model(field(15, field(1, half))), "-",
         ("foreign_object", "expected dense tensors, found a sparse one")),
        ("sparse in a subgraph", model(node(field(6, field(15, field(1, half))))), "-",
         {"w": W, "left": left}),
        ("a sparse constant", model(node(field(22, field(1, half)))), "-", {"w": W, "left": left}),
        ("a sparse constant, and all", model(node(field(22, field(1, half)))), "all", no_sparse),
        ("a list of sparse constants, and all", model(node(field(23, field(1, half)))), "all",
         no_sparse),
        ("sparse, and that is well", model(field(15, b"")), "skip", {"w": W}),
        ("deep", model(deep), "-", ("foreign_nesting", "at most 64 levels")),
        ("the least", of(version + graph), "-", {"w": W}),
        ("all that a model has", of(version + graph + field(5, 3, 0) + b"".join(
            field(n, b"") for n in (2, 3, 4, 6, 8, 14, 20, 25, 26))), "-", {"w": W}),
        ("no version", of(graph), "-", no),
        ("version 0", of(field(1, 0, 0) + graph), "-", no),
        ("version 1000", of(field(1, 1000, 0) + graph), "-", no),
        ("no graph", of(version + field(2, b"made by hand")), "-", no),
        ("a version that is a text", of(field(1, b"8") + graph), "-", no),
        ("a name that is a number", of(version + field(2, 7, 0) + graph), "-", no),
        ("another field", of(version + field(9, b"x") + graph), "-", no),
        ("field 27", of(version + field(27, b"x") + graph), "-", no),
        ("a graph that is cut", of((version + graph)[:-1]), "-",
         ("foreign_syntax", "expected a field's bytes")),
        ("a name that is cut", of(version + b"\x12\x40abcd"), "-", no),
        ("seven bytes", of((version + graph)[:7]), "-", no),
        ("that begins with a group", of(b"\x0b" + version + graph), "-", no),
        ("that ends a group", of(b"\x0c" + version + graph), "-", no),
    ])


def constants(ctx):
    """Attributes of Constant that are numbers or text."""
    w = onnx_tensor(rest=field(9, DATA))
    left = ["constants of nodes, subgraphs, functions and training",
            "nodes, which say what is computed"]

    def model(name, value, op=b"Constant", more=b"", tail=b""):
        return of(onnx(w, graph=field(1, field(2, b"c") + field(4, op) + more + field(
            5, field(1, name) + value) + tail)))

    def float32(*numbers):
        return struct.pack(f"<{len(numbers)}f", *numbers)
    one = fixed(4, float32(1.5)).replace(varint(4 << 3 | 5), varint(2 << 3 | 5))
    some = fixed(4, float32(1, 2)).replace(varint(4 << 3 | 5), varint(7 << 3 | 5))
    text = ("foreign_dtype", "elements that safetensors has, found STRING")
    again = ("foreign_ambiguous", "expected a number once, found it again")
    wire = ("foreign_syntax", "numbers of wire type ")
    check(ctx, [
        ("a float", model(b"value_float", one), "all", {"w": W, "c": ("F32", [], float32(1.5))}),
        ("a float, left out", model(b"value_float", one), "-", {"w": W, "left": left}),
        ("floats", model(b"value_floats", some), "all", {"w": W, "c": ("F32", [2], float32(1, 2))}),
        ("floats packed", model(b"value_floats", field(7, float32(1, 2, 3))), "all",
         {"w": W, "c": ("F32", [3], float32(1, 2, 3))}),
        ("no floats", model(b"value_floats", b""), "all", {"w": W, "c": ("F32", [0], b"")}),
        ("an integer", model(b"value_int", field(3, -7, 0)), "all",
         {"w": W, "c": ("I64", [], longs(-7))}),
        ("an integer that is 0 and not written", model(b"value_int", field(20, 2, 0)), "all",
         {"w": W, "c": ("I64", [], longs(0))}),
        ("integers", model(b"value_ints", field(8, 1, 0) + field(8, -1, 0)), "all",
         {"w": W, "c": ("I64", [2], longs(1, -1))}),
        ("integers packed", model(b"value_ints", field(8, varints(*range(-1, 3000)))), "all",
         {"w": W, "c": ("I64", [3001], longs(*range(-1, 3000)))}),
        ("text", model(b"value_string", field(4, b"x")), "all", text),
        ("texts", model(b"value_strings", field(9, b"x") + field(9, b"y")), "all", text),
        ("texts, and that is well", model(b"value_strings", field(9, b"x")), "all,skip", {"w": W}),
        ("texts, left out", model(b"value_strings", field(9, b"x")), "-", {"w": W, "left": left}),
        ("an integer twice", model(b"value_int", field(3, 1, 0) * 2), "all", again),
        ("a float that is bytes", model(b"value_float", field(2, float32(1))), "all", wire),
        ("floats that are integers", model(b"value_floats", field(7, 1, 0)), "all", wire),
        ("two names", model(b"value_int", field(1, b"value_float")), "all",
         ("foreign_ambiguous", "the name of an attribute once, found it again")),
        ("an attribute of another node", model(b"value_int", field(3, 1, 0), b"Other"), "all",
         {"w": W, "left": left[1:]}),
        ("another attribute", model(b"axis", field(3, 1, 0)), "all", {"w": W, "left": left[1:]}),
        ("of another domain", model(b"value_int", field(3, 1, 0), more=field(7, b"x.y")), "all",
         {"w": W, "left": left[1:]}),
        ("of ONNX's domain", model(b"value_int", field(3, 1, 0), more=field(7, b"ai.onnx")), "all",
         {"w": W, "c": ("I64", [], longs(1))}),
        ("whose domain follows", model(b"value_int", field(3, 1, 0), tail=field(7, b"x.y")), "all",
         {"w": W, "left": left[1:]}),
        ("that a function's caller gives", model(b"value_int", field(21, b"n")), "all",
         {"w": W, "left": left[1:]}),
    ])


def cases(ctx):
    for function in [elements, beside, graphs, constants]:
        yield "proto " + function.__name__, functools.partial(function, ctx)
