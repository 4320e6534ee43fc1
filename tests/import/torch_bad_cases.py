"""Files that no writer makes, put together by hand: refused with the right code, or read without
running anything. PyTorch is not needed."""
import functools
import io
import json
import os
import random
import struct
import subprocess
import tarfile
import time
import zipfile

from plain import read_plain

MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


# ── Pickles ──

def text(value):
    data = value.encode() if isinstance(value, str) else value
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def values(items):
    return b"(" + b"".join(items) + b"t"


def integers(items):
    return values(map(integer, items))


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def storage(key="0", kind="FloatStorage", count=4, view=b"", parts=None):
    parts = parts or [text("storage"), name("torch", kind), text(key), text("cpu"),
                      integer(count)]
    return values([*parts, view]) + b"Q"


def tensor(size=(4,), stride=(1,), offset=0, **options):
    return (name("torch._utils", "_rebuild_tensor_v2") +
            values([storage(**options), integer(offset), integers(size), integers(stride),
                    b"\x89", name("collections", "OrderedDict"), b")R"]) + b"R")


def mapping(**items):
    return b"}(" + b"".join(text(k) + v for k, v in items.items()) + b"u"


def pickled(value):
    return b"\x80\x02" + value + b"."


# ── Files ──

def zipped(path, pickle, records=None, **texts):
    texts = {"version": b"3\n", "byteorder": b"little", **texts}
    records = {"0": bytes(range(16))} if records is None else records
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
        for key, data in records.items():
            archive.writestr("archive/data/" + key, data)
        for key, data in texts.items():
            if data is not None:
                archive.writestr("archive/" + key, data)


def legacy(path, value, storages=((b"0", 4, bytes(16)),), version=1001, keys=None, tail=b""):
    names = keys or [key for key, _, _ in storages]
    with open(path, "wb") as file:
        file.write(MAGIC + pickled(integer(version)) + pickled(b"}") + pickled(value) +
                   pickled(b"](" + b"".join(map(text, names)) + b"e"))
        for _, count, data in storages:
            file.write(struct.pack("<q", count) + data)
        file.write(tail)


def dump(ctx, path, options="-", out=True):
    out = os.path.join(ctx.folder, "out.safetensors") if out else None
    line = "\t".join(filter(None, [options, path, out])) + "\n"
    begin = time.monotonic()
    done = subprocess.run(ctx.dump, input=line.encode(), stdout=subprocess.PIPE, check=True,
                          timeout=60)
    return json.loads(done.stdout), time.monotonic() - begin


def refused(ctx, path, code, options="-"):
    out = os.path.join(ctx.folder, "out.safetensors")
    if os.path.exists(out):
        os.remove(out)
    report, _ = dump(ctx, path, options)
    assert report.get("error") == code, (code, report)
    assert not os.path.exists(out)
    return report


def taken(ctx, path, options="-"):
    """{name: bytes} and the report."""
    report, _ = dump(ctx, path, options)
    assert "error" not in report, report
    tensors, _ = read_plain(os.path.join(ctx.folder, "out.safetensors"))
    return {key: data for key, (_, _, data) in tensors.items()}, report


# ── Cases ──

def calls(ctx):
    """Whatever a loader would call is named, and nothing of it happens."""
    path, mark = os.path.join(ctx.folder, "c.pt"), os.path.join(ctx.folder, "called")
    command = text(f"touch {mark}")
    system = name("os", "system")
    forms = {
        "reduce": system + values([command]) + b"R",
        "newobj": system + values([command]) + b"\x81",
        "newobj_ex": system + values([command]) + b"}\x92",
        "build": name("builtins", "object") + b")\x81" + mapping(__setstate__=system) + b"b",
        "stack": text("os") + text("system") + b"\x93" + values([command]) + b"R",
        "memo": system + b"q\x050h\x05" + values([command]) + b"R",
        "popped": system + values([command]) + b"R0N",
        "nested": name("builtins", "getattr") + values([name("os", "path"), text("x")]) + b"R" +
                  values([command]) + b"R",
        "reconstructor": name("copy_reg", "_reconstructor") +
                         values([system, name("__builtin__", "object"), b"N"]) + b"R",
        "hooks": name("collections", "OrderedDict") + values([system + values([command]) + b"R"]) +
                 b"R",
        "eval": name("builtins", "eval") + values([command]) + b"R",
        "exec": name("__builtin__", "exec") + values([command]) + b"R",
    }
    expected = {"nested": [("builtins", "getattr", 1), ("os", "path", 0)],
                "eval": [("builtins", "eval", 1)], "exec": [("builtins", "exec", 1)],
                "build": [("os", "system", 0)]}
    for form, value in forms.items():
        zipped(path, pickled(mapping(w=tensor(), x=value)))
        found, report = taken(ctx, path)
        assert found == {"w": bytes(range(16))}, (form, found)
        told = [(g["module"], g["name"], g["calls"]) for g in report["globals"]]
        assert sorted(told) == sorted(expected.get(form, [("os", "system", 1)])), (form, told)
    assert not os.path.exists(mark)


def storages(ctx):
    path = os.path.join(ctx.folder, "s.pt")
    whole = pickled(mapping(w=tensor()))
    for size, code in [(15, "foreign_size"), (17, "foreign_size"), (0, "foreign_size")]:
        zipped(path, whole, {"0": bytes(size)})
        refused(ctx, path, code)
    zipped(path, whole, {"1": bytes(16)})
    refused(ctx, path, "foreign_syntax")
    zipped(path, whole, {"0": bytes(16), "1": bytes(5)})
    assert taken(ctx, path)[1]["left_out"] == [
        {"reason": "record", "path": "", "text": "records that no tensor that is read refers to",
         "count": 1, "bytes": 5}]
    zipped(path, pickled(mapping(w=tensor(size=(0,), count=0))), {})
    assert taken(ctx, path)[0] == {"w": b""}
    for other in [{"kind": "HalfStorage", "count": 8}, {"kind": "IntStorage"}, {"count": 3}]:
        zipped(path, pickled(mapping(v=tensor(), w=tensor(**other))))
        refused(ctx, path, "foreign_ambiguous")
    ids = [[text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu")],
           [text("tensor"), name("torch", "FloatStorage"), text("0"), text("cpu"), integer(4)],
           [text("storage"), name("os", "FloatStorage"), text("0"), text("cpu"), integer(4)],
           [text("storage"), text("FloatStorage"), text("0"), text("cpu"), integer(4)],
           [text("storage"), name("torch", "FloatStorage"), integer(0), text("cpu"), integer(4)],
           [text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), integer(-4)],
           [text("storage"), name("torch", "DoubleStorage"), text("0"), text("cpu"),
            integer(1 << 62)],
           [text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), text("4")]]
    for parts in ids:
        zipped(path, pickled(mapping(w=tensor(parts=parts))))
        refused(ctx, path, "foreign_syntax")
    zipped(path, pickled(mapping(w=tensor(key="../0"))))
    refused(ctx, path, "foreign_syntax")


KINDS = {"FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8,
         "DoubleStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1,
         "ByteStorage": 1, "BoolStorage": 1, "ComplexFloatStorage": 8, "QInt8Storage": 1,
         "QUInt8Storage": 1, "QInt32Storage": 4}
INTEGERS = {"IntStorage": "<i4", "QInt32Storage": "<i4", "CharStorage": "i1", "QInt8Storage": "i1",
            "ByteStorage": "u1", "QUInt8Storage": "u1"}


def quantised(kind, how, count=4):
    return (name("torch._utils", "_rebuild_qtensor") +
            values([storage(kind=kind, count=count), integer(0), integers((count,)),
                    integers((1,)), values(how), b"\x89", name("collections", "OrderedDict"),
                    b")R"]) + b"R")


def quantised_storages(ctx):
    """A quantised tensor over each kind of storage, its scales of each kind: values of integers
    of 8 and 32 bits, never of other elements."""
    path = os.path.join(ctx.folder, "q.pt")
    scheme = name("torch", "per_tensor_affine")
    rows = name("torch", "per_channel_affine")
    for kind, size in KINDS.items():
        data = (b"\1\x02\x83\4" * 8)[:4 * size]
        whole = quantised(kind, [scheme, b"G" + struct.pack(">d", 0.5), integer(3)])
        zipped(path, pickled(mapping(w=whole)), {"0": data})
        for options in "quantised=values", "quantised=parts":
            if kind not in INTEGERS:
                refused(ctx, path, "foreign_object", options)
                continue
            found, _ = taken(ctx, path, options)
            codes = struct.unpack("<4" + {"<i4": "i", "i1": "b", "u1": "B"}[INTEGERS[kind]], data)
            wanted = {"w": struct.pack("<4f", *((code - 3) * 0.5 for code in codes))}
            assert found == wanted or (options[-5:] == "parts" and found["w.int_repr"] == data)
        scales = tensor(key="1", kind=kind)
        whole = quantised("QInt8Storage", [rows, scales, tensor(key="2", kind="LongStorage"),
                                           integer(0)])
        zipped(path, pickled(mapping(w=whole)),
               {"0": b"\1\2\3\4", "1": bytes(4 * size), "2": bytes(32)})
        if kind == "ComplexFloatStorage":
            refused(ctx, path, "foreign_object", "quantised=values")
        else:
            assert taken(ctx, path, "quantised=values")[0] == {"w": bytes(16)}, kind


def places(ctx):
    path = os.path.join(ctx.folder, "p.pt")
    big = (1 << 63) - 1
    for options, code in [
            ({"size": (5,)}, "foreign_size"), ({"offset": 1}, "foreign_size"),
            ({"offset": 5}, "foreign_size"), ({"offset": big}, "foreign_size"),
            ({"stride": (2,)}, "foreign_size"), ({"stride": (big,)}, None),
            ({"size": (big, big), "stride": (1, 1)}, None),
            ({"size": (2, 2), "stride": (1, 3)}, "foreign_size"),
            ({"stride": (-1,)}, "foreign_object"), ({"size": (-1,)}, "foreign_object"),
            ({"offset": -1}, "foreign_object"), ({"stride": (1, 1)}, "foreign_object"),
            ({"size": (1,) * 65, "stride": (1,) * 65}, "rank_too_large")]:
        zipped(path, pickled(mapping(w=tensor(**options))))
        report, _ = dump(ctx, path)
        assert report.get("error") == code or (not code and "error" in report), (options, report)
    zipped(path, pickled(mapping(w=tensor(size=(0, big), stride=(1, 1), offset=big))))
    assert taken(ctx, path)[0] == {"w": b""}
    zipped(path, pickled(mapping(w=tensor() + b"K\1K\2s")))
    refused(ctx, path, "foreign_opcode")
    zipped(path, pickled(mapping(w=tensor() + b"K\1a")))
    refused(ctx, path, "foreign_opcode")


def bombs(ctx):
    """A kilobyte that asks for terabytes, or for 10^10 names."""
    path = os.path.join(ctx.folder, "b.pt")
    huge = tensor(size=(1 << 20, 1 << 20), stride=(0, 0))
    laughs = {}
    for leaf, kind in [(tensor(), "tensors"), (b"K\1", "numbers")]:
        value = leaf + b"q\0" + b"0"
        for level in range(1, 11):
            value += b"](" + b"h" + bytes([level - 1])
            value += (b"h" + bytes([level - 1])) * 9 + b"eq" + bytes([level]) + b"0"
        laughs[kind] = value + b"h\x0a"
    rows = [(mapping(w=huge), "foreign_output"), (laughs["tensors"], "too_many_tensors"),
            (laughs["numbers"], None),
            (b"(" + b"(" + b"N" * 100000 + tensor() + b"lq\0" + b"h\0" * 100000 + b"l",
             "foreign_table"),
            (b"}(X\1\0\0\0a" * 30000 + tensor() + b"u" * 30000, None),
            (b"}(X\1\0\0\0a" * 40000 + tensor() + b"u" * 40000, "name_too_long"),
            (b"(" * 500000 + b"l" * 500000, None),
            (b"]q\0h\0a(" + tensor() + b"h\0e", None),
            (mapping(w=tensor()) + b"q\x01" + text("me") + b"h\1s", None),
            (b"}q\x01(" + b"".join(text(f"k{i}") + b"}q" + bytes([i + 2]) + text("up") + b"h\1s"
                                   for i in range(60)) + text("w") + tensor() + b"u", None)]
    for value, code in rows:
        zipped(path, pickled(value))
        report, seconds = dump(ctx, path)
        assert report.get("error") == code, (code, value[:60], report)
        assert seconds < (3 if not ctx.slow else 60), (seconds, value[:60])
    cycle = b"}q\x01(" + text("a") + b"}q\x02(" + text("b") + b"h\1" + text("w") + tensor() + b"uu"
    zipped(path, pickled(cycle))
    assert list(taken(ctx, path)[0]) == ["a.w"]


def graph_of_all(ctx):
    """Every dict contains every other: simple paths without number, but each is entered from
    those only that were not within it."""
    path = os.path.join(ctx.folder, "g.pt")
    nodes = 12
    value = b"".join(b"}q" + bytes([i]) + b"0" for i in range(nodes))
    for i in range(nodes):
        value += b"h" + bytes([i]) + b"(" + b"".join(
            text(f"n{k}") + b"h" + bytes([k]) for k in range(nodes)) + b"u0"
    value += b"h\0" + text("w") + tensor() + b"s"
    zipped(path, pickled(value))
    report, seconds = dump(ctx, path)
    assert "error" not in report and report["tensors"] == 1, report
    assert seconds < 1 or ctx.slow


def keys(ctx):
    path = os.path.join(ctx.folder, "k.pt")
    for key in [b"", b"__metadata__", b"\xff", b"\xed\xa0\x80", b"a\xc3"]:
        zipped(path, pickled(b"}" + text(key) + tensor() + b"s"))
        refused(ctx, path, "foreign_name")
    zipped(path, pickled(b"}" + text("a") + b"}" + text("b") + tensor() + b"ss" + text("a.b") +
                         tensor() + b"s"))
    refused(ctx, path, "foreign_name")


def call(module, attribute, *args, how=b"R"):
    return name(module, attribute) + values(args) + how


def two_readers(ctx):
    """What PyTorch sees differently is refused, or read as PyTorch reads it."""
    path = os.path.join(ctx.folder, "r.pt")
    ordered = functools.partial(call, "collections", "OrderedDict")
    pair = values([text("b"), tensor(offset=0, size=(2,))])
    hooks = name("collections", "OrderedDict") + b")R"
    plain = values([storage(), integer(0), integers((4,)), integers((1,)), b"\x89", hooks])
    v2 = name("torch._utils", "_rebuild_tensor_v2")
    new_state = values([storage(), integer(2), integers((2,)), integers((1,))])
    data = mapping(data=tensor(size=(2,)))

    def parameter(state):
        return call("torch._utils", "_rebuild_parameter_with_state", tensor(), b"\x89", hooks,
                    state)

    def typed(state):
        return call("torch._tensor", "_rebuild_from_type_v2", v2, name("torch", "Tensor"), plain,
                    state)
    for what, code, value in [
            ("key twice, then None", "foreign_ambiguous", b"}" + text("w") + tensor() + b"s" +
             text("w") + b"Ns"),
            ("keys 1 and True", "foreign_ambiguous", b"}K\1" + tensor() + b"s\x88Ns"),
            ("keys 1 and 1.0", "foreign_ambiguous", b"}K\1" + tensor() + b"sG" +
             struct.pack(">d", 1) + b"Ns"),
            ("many keys, one twice", "foreign_ambiguous", b"}(" + b"".join(
                text(f"k{i}") + b"N" for i in range(999)) + text("k5") + tensor() + b"u"),
            ("key twice in pairs", "foreign_ambiguous", ordered(b"](" + pair + pair + b"e")),
            ("key twice, behind", "foreign_ambiguous",
             ordered(b"](" + pair + b"e") + text("b") + b"Ns"),
            ("state with data", "foreign_object", mapping(w=parameter(data))),
            ("state with slots", "foreign_object", mapping(w=parameter(b"}" + data + b"\x86"))),
            ("type with data", "foreign_object", mapping(w=typed(data))),
            ("state of no parts", "foreign_object", mapping(w=parameter(b")"))),
            ("state that is not taken", "foreign_object", mapping(w=call(
                "torch._utils", "_rebuild_parameter", tensor(), b"\x89", hooks, mapping()))),
            ("more than a state", "foreign_object", mapping(w=call(
                "torch._utils", "_rebuild_parameter_with_state", tensor(), b"\x89", hooks,
                mapping(), b"N"))),
            ("BUILD on a tensor", "foreign_object", mapping(w=tensor() + new_state + b"b")),
            ("BUILD on a parameter", "foreign_object",
             mapping(w=call("torch.nn", "Parameter", tensor()) + new_state + b"b")),
            ("tensors of a class", "foreign_object",
             mapping(v=tensor(), w=call("torch", "FloatTensor") + new_state + b"b")),
            ("a call of a call", "foreign_object", mapping(v=tensor(), w=ordered() +
                                                           values([tensor()]) + b"R")),
            ("few arguments", "foreign_object", mapping(v=tensor(), w=call(
                "torch._utils", "_rebuild_tensor_v2", storage(), integer(0), integers((4,)),
                integers((1,))))),
            ("dtype converted", "foreign_dtype", mapping(w=call(
                "torch._utils", "_rebuild_device_tensor_from_cpu_tensor", tensor(),
                name("torch", "float16"), text("cpu"), b"\x89"))),
            ("conj False", "foreign_object", mapping(w=v2 + plain[:-1] + mapping(conj=b"\x89") +
                                                     b"tR")),
            ("changed behind a call", "foreign_ambiguous", mapping(
                d=ordered(b"]q\1"), l=b"h\1" + pair + b"a")),
            ("changed size", "foreign_ambiguous", mapping(
                w=v2 + values([storage(), integer(0), b"](K\2eq\1", integers((1,)), b"\x89",
                               hooks]) + b"R", l=b"h\1K\2a")),
            ("counted", "foreign_object", mapping(w=call(
                "collections", "Counter", b"](" + pair + b"e"))),
            ("a set", "foreign_ambiguous", mapping(w=call(
                "builtins", "set", b"](" + tensor() + tensor(size=(2,)) + b"e"))),
            ("size of tensors", "foreign_object",
             mapping(w=call("torch", "Size", values([text("x"), tensor()])))),
            ("set in bytes", "foreign_object",
             mapping(v=tensor(), d=call("_codecs", "encode", text("x"), text("latin1")) +
                     text("w") + tensor() + b"s")),
            ("five arguments of four", "foreign_object", mapping(v=tensor(), w=call(
                "torch._tensor", "_rebuild_from_type_v2", v2, name("torch", "Tensor"), plain,
                b"N", b"N"))),
            ("a text for a class", "foreign_object", mapping(v=tensor(), w=call(
                "torch._tensor", "_rebuild_from_type_v2", v2, text("Tensor"), plain, b"N"))),
            ("a list for a key", "foreign_object",
             mapping(v=tensor(), d=ordered(b"](]" + tensor() + b"\x86e"))),
            ("appended to a dict", "foreign_opcode",
             mapping(v=tensor(), d=ordered() + tensor(size=(2,)) + b"a")),
            ("appended to a tuple", "foreign_opcode",
             mapping(d=call("builtins", "tuple", values([tensor()])) + tensor(size=(2,)) + b"a")),
            ("set in a list by number", "foreign_opcode",
             mapping(d=call("collections", "deque", values([tensor()])) + b"K\0" +
                     tensor(size=(2,)) + b"s")),
    ]:
        zipped(path, pickled(value))
        try:
            refused(ctx, path, code)
        except AssertionError as error:
            raise AssertionError(what) from error
    whole, half = bytes(range(16)), bytes(range(8))
    for value, found in [
            (ordered(b"](" + pair + b"e") + text("c") + tensor() + b"s", {"b": half, "c": whole}),
            (ordered(b"](](" + text("b") + tensor() + b"ee"), {"b": whole}),
            (ordered(values([b"](" + text("b") + tensor() + b"e"])), {"b": whole}),
            (ordered(b"](" + pair + b"e", how=b"\x81") + text("c") + tensor() + b"s", {"c": whole}),
            (mapping(w=parameter(mapping(tag=b"K\1"))), {"w": whole}),
            (call("torch.jit._pickle", "restore_type_tag", mapping(v=tensor()), text("Dict")) +
             text("w") + tensor(size=(2,)) + b"s", {"v": whole, "w": half}),
            (mapping(w=typed(b"N")), {"w": whole}),
            (mapping(w=call("torch.nn", "Parameter", tensor()) + b"\x89N" + hooks + b"\x87b"),
             {"w": whole}),
    ]:
        zipped(path, pickled(value))
        assert taken(ctx, path)[0] == found, (value, taken(ctx, path))
    # what no name leads to is said
    for value in [mapping(w=parameter(mapping(tag=tensor(size=(2,))))),
                  ordered() + text("w") + tensor() + b"s" + mapping(x=tensor()) + b"b"]:
        zipped(path, pickled(value))
        tensors, report = taken(ctx, path)
        assert tensors == {"w": whole}
        assert any("attributes" in left["text"] for left in report["left_out"]), report
    for order in (b"big\n", b"little ", b"big\0"):
        zipped(path, pickled(mapping(w=tensor())), byteorder=order)
        refused(ctx, path, "foreign_syntax")
    zipped(path, pickled(mapping(w=tensor())), version=b"00011")
    refused(ctx, path, "foreign_kind")


def truncated(ctx):
    """data.pkl cut at every byte: never a result."""
    path = os.path.join(ctx.folder, "t.pt")
    whole = pickled(mapping(w=tensor(), x=b"G" + bytes(8), y=b"C\3abc"))
    lines = []
    for size in range(len(whole)):
        zipped(path + str(size), whole[:size])
        lines.append(f"-\t{path}{size}\n")
    done = subprocess.run(ctx.dump, input="".join(lines).encode(), stdout=subprocess.PIPE,
                          check=True)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r.get("error") for r in reports] == ["foreign_truncated"] * len(whole)


def records(ctx):
    path = os.path.join(ctx.folder, "r.pt")
    whole = pickled(mapping(w=tensor()))
    zipped(path, whole, version=None)
    refused(ctx, path, "foreign_syntax")
    for version, code in [(b"0", "foreign_kind"), (b"11", "foreign_kind"), (b"", "foreign_kind"),
                          (b"3x", "foreign_kind"), (b"99999999999999", "foreign_kind"),
                          (b"3" * 100, "foreign_syntax")]:
        zipped(path, whole, version=version)
        refused(ctx, path, code)
    zipped(path, whole, byteorder=b"middle")
    refused(ctx, path, "foreign_syntax")
    zipped(path, whole, byteorder=None)
    assert taken(ctx, path)[0] == {"w": bytes(range(16))}
    zipped(path, whole + b"behind")
    assert taken(ctx, path)[1]["left_out"][0]["bytes"] == 6
    zipped(path, whole)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    for part in [whole[:20], bytes(range(16))]:
        changed = bytearray(data)
        changed[changed.index(part) + 5] ^= 1
        with open(path, "wb") as file:
            file.write(changed)
        refused(ctx, path, "foreign_checksum")
    zipped(path, b"\x80\x06N.")
    refused(ctx, path, "foreign_opcode")
    zipped(path, b"\x80\x02(iposix\nsystem\n.")
    refused(ctx, path, "foreign_opcode")


def legacy_files(ctx):
    path = os.path.join(ctx.folder, "l.pt")
    value = mapping(w=tensor())
    legacy(path, value, [(b"0", 4, bytes(range(16)))])
    assert taken(ctx, path)[0] == {"w": bytes(range(16))}
    with open(path, "rb") as file:
        whole = file.read()
    for size in range(16, len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:size])
        assert dump(ctx, path)[0].get("error") in ("foreign_truncated", "foreign_opcode",
                                                   "foreign_kind")
    legacy(path, value, tail=b"abc")
    assert taken(ctx, path)[1]["left_out"][0]["bytes"] == 3
    for options, code in [({"storages": [(b"0", 3, bytes(12))]}, "foreign_size"),
                          ({"storages": [(b"0", -1, bytes(16))]}, "foreign_size"),
                          ({"storages": [(b"0", 1 << 62, bytes(16))]}, "foreign_size"),
                          ({"storages": [(b"0", 4, bytes(16))] * 2}, "foreign_ambiguous"),
                          ({"storages": [(b"1", 4, bytes(16))]}, "foreign_syntax"),
                          ({"storages": []}, "foreign_syntax"),
                          ({"version": 1002}, "foreign_kind")]:
        legacy(path, value, **options)
        refused(ctx, path, code)
    view = values([text("v"), integer(1), integer(2)])
    for begin, count, code in [(1, 2, None), (3, 2, "foreign_size"), (-1, 2, "foreign_syntax"),
                               (1 << 62, 2, "foreign_syntax")]:
        view = values([text("v"), integer(begin), integer(count)])
        legacy(path, mapping(w=tensor(size=(2,), view=view)), [(b"0", 4, bytes(range(16)))])
        if code:
            refused(ctx, path, code)
        else:
            assert taken(ctx, path)[0] == {"w": bytes(range(4, 12))}
    disguised = b"\x80\x02" + name("builtins", "eval") + values([text("MAGIC")]) + b"R."
    with open(path, "wb") as file:
        file.write(disguised + whole[len(MAGIC):])
    refused(ctx, path, "foreign_kind")


def tar(path, storage_bytes, tensors, value, views=b"](e"):
    members = {"sys_info": pickled(b"}"), "storages": storage_bytes + pickled(views),
               "tensors": pickled(integer(len(tensors))) + b"".join(tensors),
               "pickle": pickled(value)}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for key, data in members.items():
            info = tarfile.TarInfo(key)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def tar_storage(key, kind, data, count):
    return (pickled(values([integer(key), text("cpu"), name("torch", kind)])) +
            struct.pack("<q", count) + data)


def tar_tensor(key, of, size, stride, offset=0):
    return (pickled(values([integer(key), integer(of), name("torch", "FloatTensor")])) +
            struct.pack("<ii", len(size), 0) + struct.pack(f"<{len(size)}q", *size) +
            struct.pack(f"<{len(size)}q", *stride) + struct.pack("<q", offset))


def tar_files(ctx):
    """The layout of PyTorch 0.1, by hand: no version that is to be had writes it."""
    path = os.path.join(ctx.folder, "old.pt")
    data = struct.pack("<6f", *range(6))
    one = pickled(integer(1)) + tar_storage(7, "FloatStorage", data, 6)
    value = mapping(w=integer(8) + b"Q", t=b"P9\n", x=name("os", "system") + values([text("x")]) +
                    b"R")
    tensors = [tar_tensor(8, 7, (2, 3), (3, 1)), tar_tensor(9, 10, (2,), (1,), 1)]
    views = b"](" + values([integer(10), integer(7), integer(2), integer(3)]) + b"e"
    tar(path, one, tensors, value, views)
    found, report = taken(ctx, path)
    assert found == {"w": data, "t": data[12:20]}, found
    assert report["format"] == "torch_tar" and report["globals"][0]["name"] == "system", report
    with open(path, "rb") as file:
        whole = file.read()
    for size in range(512, len(whole), 97):
        with open(path, "wb") as file:
            file.write(whole[:size])
        report, _ = dump(ctx, path)
        assert "error" in report or size > whole.rindex(b"system"), (size, report)
    short = pickled(integer(1)) + tar_storage(7, "FloatStorage", data, 7)
    for storage_bytes, members, code in [
            (short, tensors, "foreign_opcode"), (pickled(integer(1)), tensors, "foreign_syntax"),
            (one, tensors[:1], "foreign_syntax"),
            (one, [tar_tensor(8, 7, (2, 4), (3, 1)), tensors[1]], "foreign_size"),
            (one, [tar_tensor(8, 7, (2, -3), (3, 1)), tensors[1]], "foreign_syntax"),
            (one, [tar_tensor(8, 6, (2, 3), (3, 1)), tensors[1]], "foreign_syntax"),
            (one, [tensors[0], tensors[0]], "foreign_ambiguous"),
            (pickled(integer(1)) + tar_storage(7, "ComplexDoubleStorage", bytes(96), 6), tensors,
             "foreign_dtype")]:
        tar(path, storage_bytes, members, value, views)
        refused(ctx, path, code)


def mutated(ctx, seed):
    """Random bytes in valid files: any answer, but an answer."""
    rng = random.Random(seed)
    path = os.path.join(ctx.folder, "m.pt")
    value = mapping(w=tensor(), v=tensor(size=(2, 2), stride=(1, 2)), e=mapping(a=b"K\1"),
                    x=name("os", "system") + values([text("x")]) + b"R")
    lines = []
    for i in range(400):
        pickle = bytearray(pickled(value))
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(pickle))
            how = rng.randrange(3)
            if how == 0:
                pickle[at] = rng.randrange(256)
            elif how == 1:
                del pickle[at:at + rng.choice([1, 1, 4, 30])]
            else:
                pickle[at:at] = rng.randbytes(rng.choice([1, 1, 3]))
        if i % 2:
            zipped(f"{path}{i}", bytes(pickle))
        else:
            legacy(f"{path}{i}", bytes(pickle)[2:-1])
        lines.append(f"{rng.choice(['-', 'all', 'skip', 'scalars,skip,all'])}\t{path}{i}\n")
    done = subprocess.run(ctx.dump, input="".join(lines).encode(), stdout=subprocess.PIPE,
                          check=True, timeout=120)
    reports = [json.loads(line.decode("utf-8", "replace")) for line in done.stdout.splitlines()]
    assert len(reports) == len(lines)
    assert 0 < sum("error" in r for r in reports) < len(reports)


def cases(ctx):
    ctx.slow = (bool(os.environ.get("SFT_EMULATE")) or "asan" in ctx.dump[-1]
                or os.environ.get("SFT_TARGET") == "coverage")
    for function in [calls, storages, quantised_storages, places, bombs, graph_of_all, keys,
                     two_readers, truncated, records, legacy_files, tar_files]:
        yield function.__name__, functools.partial(function, ctx)
    for seed in range(20 if ctx.full else 2):
        yield f"mutated {seed}", functools.partial(mutated, ctx, seed)
