"""Objects in pickles, put together by hand: what each becomes, or why it does not. Neither PyTorch
nor NumPy is needed."""
import functools
import json
import os
import struct
import subprocess

from plain import read_plain
from torch_bad_cases import (call, integer, integers, legacy, mapping, name, pickled, storage, tensor,
                             text, values, zipped)

DATA = bytes(range(16))
W = ("F32", [4], DATA)
HALF = ("F32", [2], DATA[:8])
MOST_GLOBALS = 4096
HOOKS = name("collections", "OrderedDict") + b")R"
V2 = name("torch._utils", "_rebuild_tensor_v2")


def check(ctx, rows):
    """Rows of (what it is, what writes it, options, what comes of it): tensors by name as (dtype,
    shape, bytes), "left" the texts of what was left out, "globals" what is named, as (module, name,
    named, calls); or the code, and words of the message.
    What writes it is a pickle, for a zip archive, or a function of the file's path."""
    lines = []
    for i, (_, write, options, _) in enumerate(rows):
        path = os.path.join(ctx.folder, f"{i}.pt")
        if callable(write):
            write(path)
        else:
            zipped(path, pickled(write))
        lines.append(f"{options}\t{path}\t{path}.safetensors\n")
    done = subprocess.run(ctx.dump, input="".join(lines).encode(), stdout=subprocess.PIPE,
                          check=True, timeout=300)
    reports = [json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines()]
    wrong = []
    for i, ((what, _, _, wanted), report) in enumerate(zip(rows, reports, strict=True)):
        out = os.path.join(ctx.folder, f"{i}.pt.safetensors")
        found = read_plain(out)[0] if os.path.exists(out) else None
        if isinstance(wanted, tuple):
            right = found is None and report.get("error") == wanted[0]
            right = right and wanted[1] in report["message"]
        else:
            left, named = wanted.pop("left", None), wanted.pop("globals", None)
            right = found == wanted
            right = right and left in (None, [row["text"] for row in report["left_out"]])
            right = right and named in (None, [
                (row["module"], row["name"], row["named"], row["calls"])
                for row in report["globals"]])
        if not right:
            wrong.append((what, found, report))
    assert not wrong, "\n".join(map(str, wrong))


def real(value):
    return b"G" + struct.pack(">d", value)


def plain(path, value, tail=b""):
    with open(path, "wb") as file:
        file.write(pickled(value) + tail)


def of_plain(value, tail=b""):
    return lambda path: plain(path, value, tail)


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def longs(*numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


# ── Dicts, lists, tuples ──

def containers(ctx):
    ordered = functools.partial(call, "collections", "OrderedDict")
    userdict = functools.partial(call, "collections", "UserDict")
    pair = values([text("b"), tensor(size=(2,))])
    not_read = ("foreign_object", "not read")
    size = functools.partial(call, "torch", "Size")
    check(ctx, [
        ("pairs of a set", ordered(call("builtins", "frozenset", b"](" + pair + b"e")), "-",
         {"b": HALF}),
        ("a text as pairs", mapping(v=tensor(), d=ordered(text("ab")) + text("w") + tensor() + b"s"),
         "-", not_read),
        ("a pair of three", mapping(v=tensor(), d=ordered(
            b"](" + values([text("b"), tensor(), b"N"]) + b"e")), "-", not_read),
        ("a number as pair", mapping(v=tensor(), d=ordered(b"](K\1" + tensor() + b"e")), "-",
         not_read),
        ("two dicts", mapping(v=tensor(), d=ordered(mapping(), mapping(w=tensor()))), "-",
         not_read),
        ("a tuple as key", mapping(v=tensor(), d=ordered(
            b"](" + values([b")", tensor(size=(2,))]) + b"e")), "-",
         ("foreign_name", "as key of a tensor, found a tuple")),
        ("a global as key", mapping(v=tensor(), d=ordered(
            b"](" + values([name("a", "b"), tensor(size=(2,))]) + b"e")), "-",
         ("foreign_name", "found a global")),
        ("a dict of a dict", ordered(mapping(w=tensor())), "-", {"w": W}),
        ("a default dict", call("collections", "defaultdict", name("builtins", "list"),
                                mapping(w=tensor())), "-", {"w": W}),
        ("a default dict of pairs, and more", call(
            "collections", "defaultdict", b"N", b"](" + pair + b"e") + text("w") + tensor() + b"s",
         "-", {"b": HALF, "w": W}),
        ("a counter of a dict", call("collections", "Counter", mapping(w=tensor())), "-", {"w": W}),
        ("a counter of nothing", call("collections", "Counter", b"]") + text("w") + tensor() + b"s",
         "-", {"w": W}),
        ("a user dict", name("collections", "UserDict") + b")\x81" +
         mapping(other=b"N", data=mapping(w=tensor())) + b"b", "-", {"w": W}),
        ("a user dict of Python 2", name("UserDict", "UserDict") + b")\x81" +
         mapping(data=mapping(w=tensor())) + b"b", "-", {"w": W}),
        ("a user dict of a dict", userdict(mapping(w=tensor())), "-", {"w": W}),
        ("a user dict without data", mapping(v=tensor(size=(2,)), d=userdict() +
                                             mapping(other=mapping(w=tensor())) + b"b"), "-",
         {"v": HALF}),
        ("a user dict of numbers", mapping(v=tensor(size=(2,)), d=userdict() + b"K\1K\2\x86b"), "-",
         {"v": HALF}),
        ("a user dict of a number", mapping(v=tensor(), d=userdict() + mapping(data=b"K\1") + b"b"),
         "-", not_read),
        ("appended", call("collections", "deque") + tensor() + b"a", "-", {"0": W}),
        ("a list and what was appended", call("collections", "deque", values([tensor(size=(2,))])) +
         tensor() + b"a", "-", {"0": HALF, "1": W}),
        ("a new list takes no items", name("builtins", "list") + values([b"](" + tensor() + b"e"]) +
         b"\x81" + tensor(size=(2,)) + b"a", "-", {"0": HALF}),
        ("a new tuple", name("builtins", "tuple") + values([b"](" + tensor() + b"e"]) + b"\x81",
         "-", {"0": W}),
        ("letters as list", mapping(v=tensor(), d=call("builtins", "list", text("ab")) + tensor() +
                                    b"a"), "-", not_read),
        ("an empty tuple", mapping(v=tensor(), d=call("builtins", "tuple")), "-", {"v": W}),
        ("a list with a tag", call("torch.jit._pickle", "restore_type_tag",
                                   b"](" + tensor() + b"e", text("List")), "-", {"0": W}),
        ("a tag alone", mapping(v=tensor(), d=call("torch.jit._pickle", "restore_type_tag")), "-",
         {"v": W}),
        ("a dict with a tag, and more", call("torch.jit._pickle", "restore_type_tag", mapping(
            w=tensor())) + text("h") + tensor(size=(2,)) + b"s", "-", {"w": W, "h": HALF}),
        ("a size", mapping(v=tensor(), s=size(integers((2, 3))), e=size()), "-", {"v": W}),
        ("a size of letters", mapping(v=tensor(), s=size(text("ab"))), "-", {"v": W}),
        ("a size of a text in a tuple", mapping(v=tensor(), s=size(values([text("ab")]))), "-",
         {"v": W}),
    ])


def set_later(ctx):
    """What a pickle sets in an object behind the call that made it."""
    parameter = call("torch.nn", "Parameter", tensor())
    other = call("models", "Net")
    check(ctx, [
        ("a state of two", mapping(w=parameter + b"\x89N\x86b"), "-",
         ("foreign_object", "a state sets")),
        ("a state that begins with a number", mapping(w=parameter + values([b"K\1", b"N", HOOKS]) +
                                                      b"b"), "-",
         ("foreign_object", "a state sets")),
        ("a state of a dict", mapping(w=parameter + mapping(a=b"K\1") + b"b"), "-",
         ("foreign_object", "a state sets")),
        ("items in a parameter", mapping(w=parameter + text("a") + b"Ns"), "-",
         ("foreign_opcode", "sets items")),
        ("items of an unknown class", mapping(v=tensor(size=(2,)), w=other + text("k") + tensor() +
                                              b"s"), "-", {"v": HALF, "w.k": W}),
        ("items, a list and attributes", mapping(w=other + text("k") + tensor() + b"s" +
                                                 tensor(size=(2,)) + b"a" +
                                                 mapping(b=tensor(size=(1,))) + b"b"), "-",
         {"w.k": W, "w.0": HALF, "w.b": ("F32", [1], DATA[:4])}),
        ("a module's attributes", mapping(w=other + mapping(
            _parameters=mapping(p=tensor()), _buffers=mapping(b=tensor(size=(2,))),
            _modules=mapping()) + b"b"), "-", {"w.p": W, "w.b": HALF}),
        ("attributes and slots", mapping(w=other + values([mapping(a=tensor()), b"N"]) + b"b"), "-",
         {"w.a": W}),
        ("slots alone", mapping(w=other + values([b"N", mapping(s=tensor())]) + b"b"), "-",
         {"w.s": W}),
        ("both", mapping(w=other + values([mapping(a=tensor()), mapping(s=tensor(size=(2,)))]) +
                         b"b"), "-", {"w.a": W, "w.s": HALF}),
        ("a state of three", mapping(v=tensor(), w=other + values([b"N", b"N", b"N"]) + b"b"), "-",
         {"v": W}),
        ("a key twice in a state", mapping(v=tensor(), w=other + b"}(" + text("a") + b"N" +
                                           text("a") + tensor() + b"ub"), "-",
         ("foreign_ambiguous", "found \"a\" twice")),
        ("a key twice in items", mapping(v=tensor(), w=other + text("a") + b"Ns" + text("a") +
                                         tensor() + b"s"), "-",
         ("foreign_ambiguous", "found \"a\" twice")),
    ])


def states(ctx):
    """Tensors in states that set no attributes, and in what no name leads to."""
    net = functools.partial(call, "net", "Net")
    not_read = ("foreign_object", "expected a tensor or dict, found an object of net.Net")
    module = {name: b"}" for name in ("_parameters", "_buffers", "_modules")}
    hidden = ["tensors in attributes of dicts and tensors"]
    empty = ["numbers: 0, texts: 0, other values: 1", *hidden]

    def of(state):
        return mapping(v=tensor(size=(2,)), w=net() + state + b"b")

    def nested(inner):
        """A list of two times a list of two times …, 2^64 times what is within."""
        value = b"](" + inner + b"eq\0"
        return value + b"".join(b"0](h%ch%ceq%c" % (i, i, i + 1) for i in range(64))
    packed = name("torch", "ScriptObject") + b")\x81" + values(
        [values([tensor(), b"N"]), text("Packed")]) + b"b"
    beneath = net() + b"q\0" + mapping(f=call("builtins", "getattr", b"h\0", text("forward")),
                                       v=tensor(size=(2,)))
    check(ctx, [
        ("a tuple", of(values([tensor(), b"K\1"])), "-", not_read),
        ("a list", of(b"](" + tensor() + b"e"), "-", not_read),
        ("a tensor", of(tensor()), "-", not_read),
        ("a dict and no slots", of(values([mapping(a=tensor()), b"K\1"])), "-", not_read),
        ("an object in a tuple", of(values([net() + mapping(a=tensor()) + b"b", b"N"])), "-",
         not_read),
        ("a tuple, skipped", of(values([tensor(), b"K\1"])), "skip", {
            "v": HALF, "left": ["expected a tensor or dict, found an object of net.Net that is not "
                                "read"]}),
        ("a tuple of numbers", of(values([b"K\1", b"K\2", mapping(a=b"K\3")])), "scalars",
         {"v": HALF, "left": ["numbers: 0, texts: 0, other values: 1"]}),
        ("the whole", net() + values([tensor()]) + b"b", "-",
         not_read),
        ("another branch", mapping(state_dict=mapping(v=tensor(size=(2,))), x=net() +
                                   values([tensor()]) + b"b"), "-",
         {"v": HALF, "left": ["tensors of another branch"]}),
        ("an attribute of a module", net() + mapping(**dict(module, _parameters=mapping(
            v=tensor(size=(2,)))), x=net(tensor())) + b"b", "-",
         {"v": HALF, "left": ["an attribute, which state_dict leaves out",
                                "numbers: 0, texts: 0, other values: 2"]}),
        ("packed weights", mapping(w=net() + mapping(**module, p=packed) + b"b"), "-",
         ("foreign_object", "found an object of torch.ScriptObject")),
        ("a method of what it is in", beneath + b"b", "-", {"v": HALF}),
        ("arguments by name", mapping(w=name("net", "Net") + b")" + mapping(k=tensor()) + b"\x92"),
         "-", not_read),
        ("a call of an object", mapping(w=net(tensor()) + b")R"), "-",
         ("foreign_object", "found a call of an object with tensors")),
        ("a storage", mapping(w=net(storage(), b"K\0")), "-", not_read),
        ("2^64 tensors", mapping(w=net(nested(tensor()))), "-",
         ("too_many_tensors", "found 18446744073709551615")),
        ("2^64 numbers", mapping(v=tensor(), w=net(nested(b"K\1"))), "-", {"v": W}),
        ("a masked array", mapping(w=call("numpy.ma.core", "_mareconstruct")), "-",
         ("foreign_object", "numpy.ma.core._mareconstruct")),
        ("of a dict, a tensor", mapping(d=call("collections", "OrderedDict") + tensor() + b"b",
                                        v=tensor(size=(2,))), "-", {"v": HALF, "left": empty}),
        ("of a dict, an object", mapping(
            d=call("collections", "OrderedDict") + net() + mapping(a=tensor()) + b"bb",
            v=tensor(size=(2,))), "-", {"v": HALF, "left": empty}),
        ("of a user dict", name("collections", "UserDict") + b")\x81" + mapping(
            other=tensor(), data=mapping(v=tensor(size=(2,)))) + b"b", "-",
         {"v": HALF, "left": hidden}),
        ("a factory", call("collections", "defaultdict", net(tensor()), mapping(
            v=tensor(size=(2,)))), "-", {"v": HALF, "left": hidden}),
    ])


def unknown(ctx):
    """Calls of what has no meaning, which are made of tensors or are not."""
    deep = b"](](](" + tensor() + b"eee"
    net = functools.partial(call, "net", "Net")
    long = "m" * 90
    built = name("copyreg", "_reconstructor")
    check(ctx, [
        ("a tensor in its arguments", mapping(w=net(b"K\1", tensor())), "-",
         ("foreign_object", "an object of net.Net that is not read")),
        ("long names", mapping(w=call(long, "n" * 90, tensor())), "-",
         ("foreign_object", "m" * 80 + "." + "n" * 80 + " that is not read")),
        ("longer names", mapping(v=tensor(), w=call("m" * 250, "n" * 250)), "-",
         {"v": W, "globals": [("m" * 200, "n" * 200, 1, 1)]}),
        ("names that begin alike", mapping(v=tensor(), w=call("m" * 250, "n"), x=name(
            "m" * 260, "n")), "-", {"v": W, "globals": [("m" * 200, "n", 2, 1)]}),
        ("names, then calls", mapping(v=tensor(), w=name("a", "b"), x=call("c", "d")), "-",
         {"v": W, "globals": [("c", "d", 1, 1), ("a", "b", 1, 0)]}),
        ("many names", mapping(v=tensor(), w=b"(" + b"".join(
            name("m", f"n{i}") for i in range(MOST_GLOBALS + 5)) + b"l"), "-",
         {"v": W, "left": ["numbers: 0, texts: 0, other values: " + str(MOST_GLOBALS + 5),
                           "more globals than are listed"]}),
        ("a tensor in a dict in a list", mapping(w=net(b"]" + mapping(a=tensor()) + b"a")), "-",
         ("foreign_object", "net.Net")),
        ("a tensor three levels down", mapping(v=tensor(), w=net(deep)), "-",
         ("foreign_object", "net.Net")),
        ("the seventeenth argument", mapping(v=tensor(), w=net(*[b"N"] * 16, tensor())), "-",
         ("foreign_object", "net.Net")),
        ("a refused tensor", mapping(w=net(call("torch._utils", "_rebuild_nested_tensor"))), "-",
         ("foreign_object", "net.Net")),
        ("a call of what lies outside", mapping(v=tensor(), w=storage() + values([tensor()]) +
                                                b"R"), "-",
         ("foreign_object", "a call of")),
        ("a class of itself", mapping(v=tensor(), w=built + b")R"), "-", {"v": W}),
        ("a class that is text", mapping(v=tensor(), w=built + values([text("x")]) + b"R"), "-",
         {"v": W}),
        ("a class of its own", mapping(v=tensor(), w=built + values([name("a", "B"), b"N", b"N"]) +
                                       b"R" + text("k") + tensor(size=(2,)) + b"s"), "-",
         {"v": W, "w.k": HALF}),
        ("a sparse tensor's class", mapping(v=tensor(), w=call("torch.cuda.sparse", "FloatTensor")),
         "-", ("foreign_object", "torch.cuda.sparse.FloatTensor")),
        ("a class of the end of its name", mapping(v=tensor(), w=call("torch.sparse", "Tensor")),
         "-", {"v": W}),
        ("a class of another module", mapping(v=tensor(), w=call("mine", "FloatTensor")), "-",
         {"v": W}),
        ("without bytes", mapping(w=call("torch._utils", "_rebuild_wrapper_subclass")), "-",
         ("foreign_object", "found what _rebuild_wrapper_subclass makes")),
    ])
    check(ctx, [
        (f"a class of {what}", lambda path, id_=id_: legacy(path, mapping(
            w=tensor(size=(2,)), x=id_ + b"Q" + values([b"N"]) + b"R"), [(b"0", 4, DATA)]), "-",
         wanted)
        for what, id_, wanted in [
            ("four", values([text("module"), name("a", "B"), text("f"), text("s")]), {"w": HALF}),
            ("three", values([name("a", "B"), text("f"), text("s")]),
             ("foreign_syntax", "found a tuple")),
            ("a text", values([text("module"), text("a.B"), text("f"), text("s")]), {"w": HALF}),
            ("two", values([text("module"), name("a", "B")]), {"w": HALF}),
            ("five", values([text("module"), name("a", "B"), b"N", b"N", b"N"]), {"w": HALF}),
        ]])


def paddle(ctx):
    """Paddle's tensors: eval("data", {"data": array}) and tuple((name, array)); arrays in slices."""
    whole = array(ctx, "f4", (4,), DATA)
    evaluated = functools.partial(call, "builtins", "eval")
    first, second = array(ctx, "f4", (2,), DATA[:8]), array(ctx, "f4", (2,), DATA[8:])
    info = "UnpackBigParamInfor@@"

    def cut(slices=b"](" + text("w@0") + text("w@1") + b"e", shape=values([b"K\2", b"K\2"]), **more):
        facts = b"}" + text("OriginShape") + shape + b"s" + text("slices") + slices + b"s"
        return of_plain(mapping(**{"w@0": first, "w@1": second,
                                   info: mapping(w=facts, **more.pop("facts", {})), **more}))
    slices = ("foreign_syntax", "of arrays in slices")
    check(ctx, [
        ("evaluated", of_plain(mapping(w=evaluated(text("data"), mapping(data=whole)))), "-",
         {"w": W}),
        ("refused", of_plain(mapping(v=whole, w=evaluated(text("data"), mapping(
            data=array(ctx, "O", (4,), b""))))), "skip", {"v": W}),
        ("named", of_plain(mapping(w=call("builtins", "tuple", values([text("n"), whole])))), "-",
         {"w": W}),
        ("a pair of numbers", of_plain(mapping(v=whole, w=call("builtins", "tuple",
                                                               b"K\1K\2\x86"))), "-", {"v": W}),
        ("a name without an array", of_plain(mapping(v=whole, w=call(
            "builtins", "tuple", values([text("n"), b"N"])))), "-", {"v": W}),
        ("other code", of_plain(mapping(v=whole, w=evaluated(text("dat"), mapping(data=whole)))),
         "-", ("foreign_object", "builtins.eval")),
        ("two names", of_plain(mapping(w=evaluated(text("data"), mapping(data=whole, b=b"N")))),
         "-", ("foreign_object", "builtins.eval")),
        ("another name", of_plain(mapping(w=evaluated(text("data"), mapping(date=whole)))), "-",
         ("foreign_object", "builtins.eval")),
        ("names in a list", of_plain(mapping(v=whole, w=evaluated(text("data"), b"]"))), "-",
         {"v": W}),
        ("no array", of_plain(mapping(v=whole, w=evaluated(text("data"), mapping(data=b"N")))),
         "-", {"v": W}),
        ("in slices", cut(), "-", {"w": ("F32", [2, 2], DATA)}),
        ("in slices, the shape a list", cut(shape=b"](K\4e"), "-", {"w": W}),
        ("a slice twice", cut(slices=b"](" + text("w@0") + text("w@0") + b"e"), "-", slices),
        ("a slice that is not there", cut(slices=b"](" + text("w@2") + b"e"), "-", slices),
        ("a slice that is a number", cut(slices=b"](K\1e"), "-", slices),
        ("a slice that is no array", cut(slices=b"](" + text("w@0") + text("n") + b"e", n=b"N"),
         "-", slices),
        ("a slice of two dimensions", cut(
            slices=b"](" + text("w@0") + text("n") + b"e", n=array(ctx, "f4", (1, 2), DATA[:8])),
         "-", slices),
        ("a slice of another dtype", cut(
            slices=b"](" + text("w@0") + text("n") + b"e", n=array(ctx, "i4", (2,), DATA[:8])),
         "-", slices),
        ("a slice of another order", cut(
            slices=b"](" + text("w@0") + text("n") + b"e", n=array(ctx, "f4", (2,), DATA[:8], b">")),
         "-", slices),
        ("slices in a tuple", cut(slices=values([text("w@0")])), "-", slices),
        ("no slices", cut(slices=b"]"), "-", slices),
        ("a shape that is a number", cut(shape=b"K\4"), "-", slices),
        ("a size that is a text", cut(shape=values([text("4")])), "-", slices),
        ("a size below 0", cut(shape=integers((-4,))), "-", slices),
        ("more in the shape", cut(shape=integers((5,))), "-", ("foreign_size", "expected 20 bytes")),
        ("257 slices", cut(slices=b"](" + text("w@0") * 257 + b"e"), "-",
         ("foreign_table", "at most 256 slices")),
        ("300 slices of two", of_plain(mapping(
            **{f"s{i}": array(ctx, "f4", (1,), DATA[:4]) for i in range(200)}, **{info: mapping(
                w=mapping(OriginShape=integers((200,)), slices=b"](" + b"".join(
                    text(f"s{i}") for i in range(200)) + b"e"),
                v=mapping(OriginShape=integers((100,)), slices=b"](" + text("w") * 100 + b"e"))})),
         "-", ("foreign_table", "at most 256 slices")),
        ("a slice in columns", cut(slices=b"](" + text("w@0") + text("n") + b"e", n=array(
            ctx, "f4", (2,), DATA[:8], fortran=b"\x88")), "-", slices),
        ("other keys", of_plain(b"}(K\1" + second + text("k" * 5000) + b"N" + text("w@0") + first +
                                text(info) + mapping(w=mapping(OriginShape=integers((2,)),
                                                               slices=b"](" + text("w@0") + b"e")) +
                                b"u"), "-",
         {"1": ("F32", [2], DATA[8:]), "w": HALF}),
        ("facts that are a list", of_plain(mapping(w=first, **{info: b"]"})), "-", slices),
        ("a fact that is a number", of_plain(mapping(w=first, **{info: mapping(w=b"K\1")})), "-",
         slices),
        ("a fact without slices", of_plain(mapping(w=first, **{info: mapping(
            w=mapping(OriginShape=integers((2,))))})), "-", slices),
        ("a name that is a number", of_plain(b"}(" + text("w@0") + first + text(info) + b"}K\1" +
                                             mapping(OriginShape=integers((2,)), slices=b"](" +
                                                     text("w@0") + b"e") + b"su"), "-", slices),
        ("facts of a list", of_plain(b"](" + first + b"e"), "-", {"0": HALF}),
    ])


# ── NumPy ──

def dtype(kind, order=b"<", names=b"N"):
    of = kind if isinstance(kind, bytes) else text(kind)
    state = values([b"K\3", text(order), b"N", names, b"N", integer(-1), integer(-1), b"K\0"])
    return call("numpy", "dtype", of, b"\x89", b"\x88") + state + b"b"


def array(_ctx, kind, shape, data, order=b"<", fortran=b"\x89", of=None):
    raw = b"B" + struct.pack("<I", len(data)) + data if isinstance(data, bytes) else data[0]
    made = call("numpy.core.multiarray", "_reconstruct", name("numpy", "ndarray"), integers((0,)),
                b"C\1b")
    return made + values([b"K\1", integers(shape), of or dtype(kind, order), fortran, raw]) + b"b"


def arrays(ctx):
    make = functools.partial(array, ctx)
    bytes_ = b"B\x10\0\0\0" + DATA
    buffer = functools.partial(call, "numpy.core.numeric", "_frombuffer")
    not_read = ("foreign_object", "_reconstruct that is not read")
    latin = functools.partial(call, "_codecs", "encode")
    pairs = bytes(b for i in range(0, 16, 4) for b in DATA[i:i + 4][::-1])
    columns = b"".join(DATA[i:i + 4] for i in (0, 8, 4, 12))
    high = bytes([0, 127, 128, 191, 192, 255, 65, 66])
    scalar = call("numpy.core.multiarray", "scalar", dtype("i8"), b"C\x08" + DATA[:8])

    def w(value):
        return of_plain(mapping(w=value))

    def both(value):
        return of_plain(mapping(v=make("f4", (4,), DATA), w=value))
    check(ctx, [
        ("little", w(make("f4", (4,), DATA)), "-", {"w": W}),
        ("big", w(make("f4", (4,), DATA, b">")), "-", {"w": ("F32", [4], pairs)}),
        ("big by its name", w(make(">f4", (4,), DATA, b"|")), "-", {"w": ("F32", [4], pairs)}),
        ("native by its name", w(make("=f4", (4,), DATA, b"=")), "-", {"w": W}),
        ("a dtype without a state", w(make("", (4,), DATA, of=call("numpy", "dtype", text("f4")))),
         "-", {"w": W}),
        ("a dtype with a short state", w(make("", (4,), DATA, of=call("numpy", "dtype",
                                                                     text("f4")) + b"K\3\x85b")),
         "-", {"w": W}),
        ("ml_dtypes", w(make(name("ml_dtypes", "bfloat16"), (8,), DATA)), "-",
         {"w": ("BF16", [8], DATA)}),
        ("ml_dtypes, called", both(make(call("ml_dtypes", "bfloat16"), (8,), DATA)), "-", not_read),
        ("a dtype of PyTorch without one here", both(make(name("torch", "complex128"), (16,), DATA)),
         "-", not_read),
        ("columns", w(make("f4", (2, 2), DATA, fortran=b"\x88")), "-",
         {"w": ("F32", [2, 2], columns)}),
        ("columns, of an old protocol", w(make("f4", (2, 2), DATA, fortran=b"K\1")), "-",
         {"w": ("F32", [2, 2], columns)}),
        ("rows, of an old protocol", w(make("f4", (2, 2), DATA, fortran=b"K\0")), "-",
         {"w": ("F32", [2, 2], DATA)}),
        ("a dtype of one letter", w(make("<", (2,), DATA)), "-",
         ("foreign_dtype", "an array of \"<\"")),
        ("an empty dtype", both(make("", (16,), DATA)), "-", not_read),
        ("a dtype that begins with NUL", w(make("\0f4", (2,), DATA)), "-", ("foreign_dtype", "expected numbers")),
        ("a dtype with a list as state", w(make("", (4,), DATA, of=call("numpy", "dtype", text(
            "f4")) + b"]b")), "-", {"w": W}),
        ("objects", w(make("O", (2,), DATA)), "-", ("foreign_dtype", "an array of \"O\"")),
        ("a long dtype", w(make("Q" * 50, (2,), DATA)), "-",
         ("foreign_dtype", "an array of \"" + "Q" * 40 + "\"")),
        ("fields", w(make("", (2,), DATA, of=dtype("V8", names=values([text("a")])))), "-",
         ("foreign_dtype", "an array of \"fields\"")),
        ("a dtype of nothing", both(make("", (4,), DATA, of=call("numpy", "dtype"))), "-", not_read),
        ("a dtype that is a number", both(make(b"K\1", (4,), DATA)), "-", not_read),
        ("a dtype that is a text", both(make("", (4,), DATA, of=text("f4"))), "-", not_read),
        ("a dtype that is a device", both(make("", (4,), DATA, of=call("torch", "device"))), "-",
         not_read),
        ("a long name of a dtype", both(make("f4" * 3000, (4,), DATA)), "-", not_read),
        ("a shape that is a text", both(call("numpy.core.multiarray", "_reconstruct") + values(
            [b"K\1", text("4"), dtype("f4"), b"\x89", bytes_]) + b"b"), "-", not_read),
        ("a state of four", both(call("numpy.core.multiarray", "_reconstruct") + values(
            [integers((4,)), dtype("f4"), b"\x89", bytes_]) + b"b"), "-", not_read),
        ("a state that is a list", both(call("numpy.core.multiarray", "_reconstruct") + b"]b"), "-",
         not_read),
        ("no state", both(call("numpy.core.multiarray", "_reconstruct")), "-", not_read),
        ("bytes that are a number", both(make("f4", (4,), (b"K\1",))), "-", not_read),
        ("fewer bytes", w(make("f4", (5,), DATA)), "-",
         ("foreign_size", "as the array's shape needs, found 16")),
        ("more than 2^64 bytes", w(make("f4", (1 << 40, 1 << 40), DATA)), "-",
         ("foreign_size", "as the array's shape needs")),
        ("no bytes", w(make("f4", (0, 3), (call("builtins", "bytes"),))), "-",
         {"w": ("F32", [0, 3], b"")}),
        ("bytes of an argument", both(make("f4", (4,), (call("builtins", "bytes", b"K\4"),))), "-",
         not_read),
        ("Latin-1", w(make("u1", (8,), (latin(text(high.decode("latin1")), text("latin1")),))), "-",
         {"w": ("U8", [8], high)}),
        ("beyond Latin-1", w(make("u1", (4,), (latin(text("ab\u0100d"), text("latin1")),))), "-",
         ("foreign_size", "found 2")),
        ("Latin-1, cut", w(make("u1", (2,), (latin(text(b"a\xc3"), text("latin1")),))), "-",
         ("foreign_size", "found 1")),
        ("Latin-1, long", w(make("u1", (9000,), (latin(text("\xe9" * 9000), text("latin1")),))),
         "-", {"w": ("U8", [9000], b"\xe9" * 9000)}),
        ("another code", both(make("u1", (2,), (latin(text("ab"), text("utf8")),))), "-", not_read),
        ("no code", both(make("u1", (2,), (latin(text("ab")),))), "-", not_read),
        ("a number encoded", both(make("u1", (2,), (latin(b"K\1", text("latin1")),))), "-",
         not_read),
        ("bytes encoded", both(make("u1", (2,), (latin(b"U\2ab", text("latin1")),))), "-",
         not_read),
        ("a text of Python 2", w(make("u1", (3,), (b"U\3\0\xffa",))), "-",
         {"w": ("U8", [3], b"\0\xffa")}),
        ("a text of Python 2, escaped", w(make("u1", (4,), (b"S'\\x00\\xffa\\n'\n",))), "-",
         {"w": ("U8", [4], b"\0\xffa\n")}),
        ("a buffer", w(buffer(bytes_, dtype("f4"), integers((4,)), text("C"))), "-", {"w": W}),
        ("a buffer in columns", w(buffer(bytes_, dtype("f4"), integers((2, 2)), text("F"))), "-",
         {"w": ("F32", [2, 2], columns)}),
        ("a buffer of three", both(buffer(bytes_, dtype("f4"), integers((4,)))), "-",
         ("foreign_object", "_frombuffer that is not read")),
        ("a number", both(scalar), "-", {"v": W}),
        ("a number as tensor", both(scalar), "scalars", {"v": W, "w": ("I64", [], DATA[:8])}),
        ("a number of one argument", both(call("numpy.core.multiarray", "scalar", dtype("i8"))),
         "scalars", {"v": W}),
        ("numbers as tensors", of_plain(mapping(v=make("f4", (4,), DATA), i=integer(-2),
                                                b=b"\x88", f=real(0.5))), "scalars",
         {"v": W, "i": ("I64", [], struct.pack("<q", -2)), "b": ("BOOL", [], b"\1"),
          "f": ("F64", [], struct.pack("<d", 0.5))}),
        ("bytes behind", of_plain(mapping(w=make("f4", (4,), DATA)), b"tail"), "-",
         {"w": W, "left": ["bytes after the pickle"]}),
        ("a tensor of PyTorch", both(tensor()), "-", ("foreign_object", "_rebuild_tensor_v2")),
        ("no arrays", of_plain(mapping(a=b"K\1")), "-",
         ("foreign_kind", "a pickle of arrays or tensors, found one without")),
    ])


# ── PyTorch ──

def tensors(ctx):
    v3 = functools.partial(call, "torch._utils", "_rebuild_tensor_v3")
    first = [storage(), integer(0), integers((4,)), integers((1,)), b"\x89", HOOKS]
    pair = [storage(kind="ComplexFloatStorage", count=2), integer(0), integers((2,)),
            integers((1,)), b"\x89", HOOKS]
    untyped = [storage(kind="UntypedStorage", count=16), integer(0)]
    flags = ("foreign_object", "the flags conj and neg only")
    not_read = ("foreign_object", "_rebuild_tensor_v2 that is not read")
    signs = bytes(b ^ (0x80 if i % 4 == 3 else 0) for i, b in enumerate(DATA))
    conjugate = bytes(b ^ (0x80 if i % 8 == 7 else 0) for i, b in enumerate(DATA))
    long = "k" * 50

    def v2(*args):
        return mapping(w=V2 + values(args) + b"R")

    def with_dtype(*rest):
        return mapping(w=v3(*untyped, integers((8,)), integers((1,)), b"\x89", HOOKS, *rest))

    def pairs_of(size, stride):
        return mapping(w=v3(*untyped, integers(size), integers(stride), b"\x89", HOOKS,
                            name("torch", "float4_e2m1fn_x2")))

    def big(value):
        return lambda path: zipped(path, pickled(value), byteorder=b"big")
    check(ctx, [
        ("no flags", v2(*first, b"N"), "-", {"w": W}),
        ("flags of none", v2(*first, b"}"), "-", {"w": W}),
        ("flags in a list", v2(*first, b"]"), "-", flags),
        ("negated", v2(*first, mapping(neg=b"\x88")), "-", {"w": ("F32", [4], signs)}),
        ("conjugated", v2(*pair, mapping(conj=b"\x88")), "-", {"w": ("C64", [2], conjugate)}),
        ("conjugated and negated", v2(*pair, mapping(conj=b"\x88", neg=b"\x88")), "-",
         {"w": ("C64", [2], bytes(a ^ b ^ c for a, b, c in zip(DATA, signs, conjugate)))}),
        ("conjugated twice", v2(*pair, b"}(" + (text("conj") + b"\x88") * 2 + b"u"), "-", flags),
        ("a flag that is 1", v2(*pair, mapping(conj=b"K\1")), "-", flags),
        ("another flag", v2(*pair, mapping(real=b"\x88")), "-", flags),
        ("a conjugated F32", v2(*first, mapping(conj=b"\x88")), "-", flags),
        ("a conjugated complex128", v2(storage(kind="ComplexDoubleStorage", count=1), integer(0),
                                       integers((1,)), integers((1,)), b"\x89", HOOKS,
                                       mapping(conj=b"\x88")), "-",
         ("foreign_dtype", "torch.complex128")),
        ("eight arguments", v2(*first, b"N", b"N"), "-", not_read),
        ("a gradient that is a number", v2(*first[:4], b"K\1", HOOKS), "-", not_read),
        ("a storage that is a text", v2(text("0"), *first[1:]), "-", not_read),
        ("an offset that is a text", v2(storage(), text("0"), *first[2:]), "-", not_read),
        ("the first function", mapping(w=call("torch._utils", "_rebuild_tensor", *first[:4])), "-",
         {"w": W}),
        ("five of its arguments", mapping(v=tensor(), w=call("torch._utils", "_rebuild_tensor",
                                                             *first[:5])), "-",
         ("foreign_object", "_rebuild_tensor that is not read")),
        ("a dtype", with_dtype(name("torch", "uint16")), "-", {"w": ("U16", [8], DATA)}),
        ("a dtype of a text", with_dtype(text("uint16")), "-",
         ("foreign_dtype", "expected a dtype of PyTorch, found text")),
        ("a dtype that is a device", with_dtype(name("torch", "device")), "-",
         ("foreign_dtype", "expected a dtype of PyTorch, found a global")),
        ("big-endian", big(with_dtype(name("torch", "uint16"))), "-",
         {"w": ("U16", [8], bytes(DATA[i ^ 1] for i in range(16)))}),
        ("big-endian, of a storage with a dtype", big(mapping(w=v3(
            storage(), integer(0), integers((4,)), integers((1,)), b"\x89", HOOKS,
            name("torch", "uint32")))), "-",
         ("foreign_dtype", "an untyped storage of big-endian elements")),
        ("untyped", v2(*untyped, integers((16,)), integers((1,)), b"\x89", HOOKS), "-",
         ("foreign_dtype", "found an untyped one")),
        ("pairs", pairs_of((2, 3), (3, 1)), "-", {"w": ("F4", [2, 6], DATA[:6])}),
        ("pairs in columns", pairs_of((2, 3), (1, 2)), "-",
         ("foreign_dtype", "rows of pairs of F4, found them strided")),
        ("one pair", pairs_of((), ()), "-", ("foreign_dtype", "rows of pairs of F4")),
        ("beyond a storage", lambda path: zipped(path, pickled(mapping(w=tensor(
            offset=5, key=long))), {long: DATA}), "-",
         ("foreign_size", "storage " + "k" * 40 + " of 16 bytes, found one that begins beyond")),
        ("more than 2^64 elements of no dtype", v2(
            storage(kind="ComplexDoubleStorage", count=1), integer(0), integers((1 << 62, 8)),
            integers((8, 1)), b"\x89", HOOKS), "-", ("foreign_dtype", "torch.complex128")),
        ("a view of no storage", mapping(w=tensor(view=b"N")), "-",
         ("foreign_syntax", "found a tuple")),
        ("a storage of a class that is called", mapping(w=tensor(parts=[
            text("storage"), call("torch", "FloatStorage"), text("0"), text("cpu"), integer(4)])),
         "-", ("foreign_syntax", "another type than those of storages")),
        ("a key of 5000 bytes", lambda path: legacy(path, mapping(w=tensor(key="k" * 5000)), []),
         "-", ("foreign_syntax", "a key that is no text")),
        ("another length at a long key", lambda path: zipped(path, pickled(mapping(
            w=tensor(key=long), v=tensor(key=long, count=3))), {long: DATA}), "-",
         ("foreign_ambiguous", "storage " + "k" * 40 + " to be 16 bytes of float32")),
    ])


def wrappers(ctx):
    """Functions that make a tensor of another."""
    device = functools.partial(call, "torch._utils", "_rebuild_device_tensor_from_cpu_tensor")
    typed = functools.partial(call, "torch._tensor", "_rebuild_from_type_v2")
    parameter = functools.partial(call, "torch._utils", "_rebuild_parameter")
    stated = functools.partial(call, "torch._utils", "_rebuild_parameter_with_state")
    rest = [text("cpu"), b"\x89"]
    inner = values([storage(), integer(0), integers((4,)), integers((1,)), b"\x89", HOOKS])
    converted = ("foreign_dtype", "one that is to be converted")

    def both(value):
        return mapping(v=tensor(size=(2,)), w=value)
    state_sets = ("foreign_object", "whose contents a state sets")
    check(ctx, [
        ("on a device", mapping(w=device(tensor(), name("torch", "float32"), *rest)), "-",
         {"w": W}),
        ("of three arguments", both(device(tensor(), name("torch", "float32"), text("cpu"))), "-",
         ("foreign_object", "that is not read")),
        ("another dtype", both(device(tensor(), name("torch", "int32"), *rest)), "-", converted),
        ("a dtype that is a text", both(device(tensor(), text("float32"), *rest)), "-", converted),
        ("a dtype that is a device", both(device(tensor(), name("torch", "device"), *rest)), "-",
         converted),
        ("a quantised dtype", both(device(tensor(), name("torch", "qint8"), *rest)), "-",
         converted),
        ("of nothing", both(device(b"N", name("torch", "float32"), *rest)), "-",
         ("foreign_object", "that is not read")),
        ("a refused tensor", both(device(call("torch._utils", "_rebuild_nested_tensor"),
                                         name("torch", "float32"), *rest)), "-",
         ("foreign_object", "found what _rebuild_nested_tensor makes")),
        ("a type", mapping(w=typed(V2, name("mine", "T"), inner, b"N")), "-", {"w": W}),
        ("a type that is called", both(typed(call("torch._utils", "_rebuild_tensor_v2"),
                                             name("mine", "T"), inner, b"N")), "-",
         ("foreign_object", "that is not read")),
        ("a type with a list", both(typed(V2, name("mine", "T"), b"]", b"N")), "-",
         ("foreign_object", "that is not read")),
        ("a type without bytes", both(typed(name("torch._utils", "_rebuild_nested_tensor"),
                                            name("mine", "T"), b")", b"N")), "skip", {"v": HALF}),
        ("a type of what makes none", both(typed(name("collections", "OrderedDict"),
                                                 name("mine", "T"), b")", b"N")), "-",
         ("foreign_object", "_rebuild_from_type_v2 that is not read")),
        ("a parameter", mapping(w=parameter(tensor(), b"\x89", HOOKS)), "-", {"w": W}),
        ("a parameter of a parameter", mapping(w=parameter(parameter(tensor(), b"\x89"), b"\x88")),
         "-", {"w": W}),
        ("a parameter of nothing", both(parameter()), "-", ("foreign_object", "is not read")),
        ("a parameter of a number", both(parameter(b"K\1", b"\x89")), "-",
         ("foreign_object", "is not read")),
        ("a gradient that is a number", both(parameter(tensor(), b"K\1")), "-",
         ("foreign_object", "is not read")),
        ("a state", mapping(w=stated(tensor(), b"\x89", HOOKS, mapping(tag=b"K\1"))), "-",
         {"w": W}),
        ("a state and slots", mapping(w=stated(tensor(), b"\x89", HOOKS, values(
            [mapping(tag=b"K\1"), b"N"]))), "-", {"w": W}),
        ("a state with a number as key", both(stated(tensor(), b"\x89", HOOKS, b"}K\1K\2s")), "-",
         state_sets),
        ("a state with a long key", lambda path: legacy(path, both(stated(
            tensor(), b"\x89", HOOKS, mapping(**{"k" * 5000: b"K\1"})))), "-", state_sets),
        ("a state that is a text", both(stated(tensor(), b"\x89", HOOKS, text("a"))), "-",
         state_sets),
        ("a state of no tensor", both(stated(b"N", b"\x89", HOOKS, mapping(data=b"N"))), "-",
         ("foreign_object", "is not read")),
    ])


def cases(ctx):
    for function in [containers, set_later, states, unknown, paddle, arrays, tensors, wrappers]:
        yield function.__name__, functools.partial(function, ctx)
