"""Hostile checkpoints of PyTorch, as archives and as streams. Each case: name, {file: bytes}."""
import pickle
import random
import struct

from zip_make import DESCRIBED, Entry, archive

PROTO = b"\x80\x02"
NONE, TUPLE, MARK, REDUCE, STOP, DICT, LIST = b"N", b"t", b"(", b"R", b".", b"}", b"]"


def text(words):
    words = words.encode() if isinstance(words, str) else words
    return b"X" + struct.pack("<I", len(words)) + words


def number(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -2**31 <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def name(module, word):
    return b"c%s\n%s\n" % (module.encode(), word.encode())


def tuple_of(*items):
    return MARK + b"".join(items) + TUPLE


def storage(key="0", kind="FloatStorage", numel=4, tail=b"", module="torch"):
    return tuple_of(text("storage"), name(module, kind), text(key), text("cpu"),
                    number(numel), tail) + b"Q"


def sizes(values):
    return tuple_of(*map(number, values))


def tensor(store=None, offset=0, size=(4,), stride=(1,), tail=b""):
    return name("torch._utils", "_rebuild_tensor_v2") + tuple_of(
        store or storage(), number(offset), sizes(size), sizes(stride), b"\x89",
        name("collections", "OrderedDict") + b")R", tail) + REDUCE


def state(*pairs):
    """A dict of names and whatever opcodes make the values."""
    return DICT + MARK + b"".join(text(key) + value for key, value in pairs) + b"u"


GOOD = PROTO + state(("w", tensor())) + STOP
DATA = struct.pack("<4f", 1, 2, 3, 4)


def torch(data_pkl=GOOD, records=(("data/0", DATA),), version=b"3\n", byteorder=b"little",
          method=0):
    entries = [Entry("m/data.pkl", data_pkl, method)]
    if byteorder is not None:
        entries.append(Entry("m/byteorder", byteorder))
    entries += [Entry("m/" + key, data, method) for key, data in records]
    if version is not None:
        entries.append(Entry("m/version", version))
    return archive(entries)


def stream(obj=GOOD, keys=("0",), counts=(4,), data=DATA, version=1001, after=b"",
           magic=b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e"):
    listed = PROTO + LIST + MARK + b"".join(map(text, keys)) + b"e" + STOP
    return magic + PROTO + number(version) + STOP + PROTO + DICT + STOP + obj + listed \
        + b"".join(struct.pack("<q", n) + data for n in counts) + after


# What public scanners look for: loaders would have run these.
CALLS = """os.system os.popen os.execv os.remove posix.system posix.popen nt.system nt.popen
builtins.eval builtins.exec builtins.compile builtins.getattr builtins.open builtins.breakpoint
__builtin__.eval __builtin__.file __builtin__.apply subprocess.Popen subprocess.check_output
subprocess.call subprocess.run runpy._run_code runpy.run_path webbrowser.open torch.hub.load
torch.load torch.jit.load torch.utils.cpp_extension.load torch._inductor.codecache.compile_file
torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression numpy.load
numpy.testing._private.utils.runstring numpy.f2py.crackfortran.getlincoef socket.socket
socket.create_connection http.client.HTTPSConnection requests.api.get aiohttp.ClientSession
httplib.HTTPSConnection urllib.request.urlopen shutil.rmtree shutil.copyfile pty.spawn
pickle.loads _pickle.loads dill.loads marshal.loads types.FunctionType types.CodeType
importlib.import_module pip.main pip._internal.main idlelib.run.Executive.runcode
idlelib.autocomplete.AutoComplete.fetch_completions asyncio.unix_events._UnixSubprocessTransport
bdb.Bdb.run cProfile.runctx profile.run pdb.run trace.Trace.run timeit.timeit doctest.debug_script
code.InteractiveInterpreter.runcode ensurepip._run_pip lib2to3.pgen2.grammar.Grammar.loads
ctypes.CDLL cffi.FFI operator.attrgetter operator.methodcaller functools.partial functools.reduce
venv.create test.support.script_helper.assert_python_ok uuid._get_command_stdout
distutils.file_util.write_file logging.config._resolve multiprocessing.util.spawnv_passfds
sys.exit sqlite3.connect zipimport.zipimporter keras.layers.Lambda tensorflow.io.write_file
joblib.load sklearn.utils.Bunch cloudpickle.loads smtplib.SMTP tempfile.mktemp
commands.getoutput codecs.open linecache.getlines""".split()


def calls():
    for spec in CALLS:
        module, word = spec.rsplit(".", 1)
        call = name(module, word) + tuple_of(text("touch hacked")) + REDUCE
        yield f"call/{spec}", torch(PROTO + state(("w", tensor()), ("x", call)) + STOP)
        if len(spec) % 3 == 0:
            yield f"call-as-root/{spec}", torch(PROTO + call + STOP)
        if len(spec) % 3 == 1:
            nested = name(module, word) + tuple_of(tensor()) + REDUCE
            yield f"call-of-tensor/{spec}", torch(PROTO + state(("w", nested)) + STOP)
        if len(spec) % 3 == 2:
            made = text(module) + text(word) + b"\x93" + tuple_of(text("x")) + b"\x81" + DICT + b"b"
            yield f"call-by-build/{spec}", stream(PROTO + state(("w", tensor()), ("x", made)) + STOP)


def cut():
    """Each opcode of a checkpoint, cut at each byte."""
    for at in range(len(GOOD)):
        yield f"cut/{at:03}", torch(GOOD[:at])


def opcodes():
    """Machines that are used wrongly."""
    w = ("w", tensor())
    cases = {
        "every-opcode-unknown": b"\xff", "inst": MARK + b"ios\nsystem\n", "obj": MARK + NONE + b"o",
        "ext1": b"\x82\x01", "ext2": b"\x83\1\0", "ext4": b"\x84\1\0\0\0", "next-buffer": b"\x97",
        "readonly-buffer": NONE + b"\x98", "pop-empty": b"0", "pop-mark-empty": b"1",
        "dup-empty": b"2", "tuple-no-mark": TUPLE, "tuple3-short": NONE + b"\x87",
        "append-to-dict": DICT + NONE + b"a", "setitem-on-list": LIST + NONE + NONE + b"s",
        "setitem-on-tuple": b")" + NONE + NONE + b"s", "setitem-on-tensor": tensor() + NONE + NONE + b"s",
        "setitems-odd": DICT + MARK + NONE + b"u", "dict-odd": MARK + NONE + b"d",
        "additems-to-list": LIST + MARK + NONE + b"\x90", "reduce-no-tuple": name("os", "system") + NONE + REDUCE,
        "reduce-of-none": NONE + b")" + REDUCE, "build-on-none": NONE + DICT + b"b",
        "build-twice": name("a", "b") + b")R" + DICT + b"b" + DICT + b"b",
        "memo-miss": b"h\x05", "memo-long-miss": b"j\xff\xff\xff\xff", "memo-put-empty": b"q\0",
        "memo-2^32": NONE + b"r\xff\xff\xff\xff", "memo-line-huge": NONE + b"p99999999999999999999\n",
        "memo-line-negative": NONE + b"p-1\n", "memo-get-text": b"gx\n",
        "proto-9": b"\x80\x09", "proto-again": PROTO * 3, "frame-beyond": b"\x95" + b"\xff" * 8,
        "stack-global-numbers": number(1) + number(2) + b"\x93", "stack-global-none": NONE + NONE + b"\x93",
        "stack-global-empty": text("") + text("") + b"\x93",
        "global-not-utf8": b"c\xff\xfe\nx\n", "global-empty": b"c\n\n", "global-nul": b"cos\0\nsystem\n",
        "text-not-utf8": text(b"\xff\xff"), "text-surrogate": text(b"\xed\xa0\x80"),
        "text-4gib": b"X\xff\xff\xff\xff", "text8-huge": b"\x8d" + b"\xff" * 8,
        "bytes8-huge": b"\x8e" + b"\xff" * 8, "bytearray8-huge": b"\x96" + b"\xff" * 7 + b"\x7f",
        "binstring-negative": b"T\xff\xff\xff\xff", "long1-short": b"\x8a\xff\0", "long4-negative": b"\x8b\xff\xff\xff\xff",
        "long4-huge": b"\x8b\xff\xff\xff\x7f", "int-text": b"Ix\n", "string-no-quote": b"Sx\n",
        "string-bad-escape": b"S'\\xz'\n", "unicode-bad-escape": b"V\\uzz\n", "float-text": b"F?\n",
        "two-values": NONE, "mark-left": MARK, "stop-in-mark": NONE + MARK + STOP,
        "newobj-ex-no-dict": name("a", "b") + b")" + NONE + b"\x92",
        "persid-line": b"P0\n",
    }
    for what, ops in cases.items():
        yield f"opcode/{what}", torch(PROTO + state(w) + ops + STOP)
        yield f"opcode-stream/{what}", stream(PROTO + ops + state(w) + STOP)
    for op in range(256):
        if op % 5 == 0:
            yield f"opcode-alone/{op:02x}", torch(PROTO + bytes([op]) + b"\0" * 9 + STOP)


def ids():
    """Persistent ids of odd shapes, storages that are not what they say."""
    def one(pid, **more):
        return torch(PROTO + state(("w", tensor(pid))) + STOP, **more)

    def with_tensor(**how):
        return torch(PROTO + state(("w", tensor(**how))) + STOP)
    yield "id/none", one(NONE + b"Q")
    yield "id/empty-tuple", one(b")Q")
    yield "id/text", one(text("0") + b"Q")
    yield "id/other-kind", one(tuple_of(text("module"), name("os", "system"), text("f"), text("s")) + b"Q")
    yield "id/short", one(tuple_of(text("storage"), name("torch", "FloatStorage")) + b"Q")
    yield "id/long", one(storage(tail=NONE * 9))
    yield "id/key-number", one(tuple_of(text("storage"), name("torch", "FloatStorage"), number(0), text("cpu"), number(4)) + b"Q")
    yield "id/foreign-class", one(storage(module="evil"))
    yield "id/storage-in-name", one(storage(kind="MyStorage"))
    yield "id/class-is-text", one(tuple_of(text("storage"), text("FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q")
    yield "id/negative", one(storage(numel=-4))
    yield "id/huge", one(storage(numel=2**62))
    yield "id/2^80", one(storage(numel=2**80))
    yield "id/climbing-key", one(storage(key="../../../../etc/passwd"))
    yield "id/absolute-key", one(storage(key="/etc/passwd"))
    yield "id/long-key", one(storage(key="k" * 5000))
    yield "id/missing-record", one(storage(key="7"))
    yield "id/itself", one(tuple_of(text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(4)) + b"q\1h\1\x85Q")
    yield "storage/shorter", one(storage(), records=(("data/0", DATA[:-1]),))
    yield "storage/longer", one(storage(), records=(("data/0", DATA + b"x"),))
    two = (("a", tensor()), ("b", tensor(storage(kind="HalfStorage", numel=8))))
    yield "storage/two-types", torch(PROTO + state(*two) + STOP)
    two = (("a", tensor()), ("b", tensor(storage(numel=3), size=(3,))))
    yield "storage/two-lengths", torch(PROTO + state(*two) + STOP)
    yield "storage/type-cycle", one(storage(kind="UntypedStorage", numel=16))
    yield "view/4tb", with_tensor(size=(1 << 20, 1 << 20), stride=(0, 0))
    yield "view/4tb-deep", with_tensor(size=(2,) * 42, stride=(0,) * 42)
    yield "view/2^64", with_tensor(size=(1 << 32, 1 << 32), stride=(0, 0))
    yield "view/2^126", with_tensor(size=(2**62, 2**62), stride=(0, 0))
    yield "view/beyond", with_tensor(size=(5,))
    yield "view/offset-beyond", with_tensor(offset=5)
    yield "view/offset-2^62", with_tensor(offset=2**62)
    yield "view/offset-negative", with_tensor(offset=-1)
    yield "view/stride-negative", with_tensor(offset=3, stride=(-1,))
    yield "view/stride-2^62", with_tensor(size=(2,), stride=(2**62,))
    yield "view/size-negative", with_tensor(size=(-4,))
    yield "view/ranks-differ", with_tensor(size=(2, 2), stride=(1,))
    yield "view/rank-65", with_tensor(size=(1,) * 65, stride=(1,) * 65)
    yield "view/rank-70000", with_tensor(size=(1,) * 70000, stride=(1,) * 70000)
    words = tuple_of(storage(), number(0), text("4"), text("1"), b"\x89", NONE)
    yield "view/sizes-text", torch(PROTO + state(
        ("w", name("torch._utils", "_rebuild_tensor_v2") + words + REDUCE)) + STOP)
    yield "view/flags-unknown", with_tensor(tail=state(("fake", b"\x88")))
    yield "view/flags-numbers", with_tensor(tail=state(("conj", number(3))))
    yield "view/args-none", torch(PROTO + state(("w", name("torch._utils", "_rebuild_tensor_v2") + b")R")) + STOP)
    for other in ("_rebuild_wrapper_subclass", "_rebuild_meta_tensor_no_storage", "_rebuild_sparse_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor", "_rebuild_parameter"):
        for args in (b")", tuple_of(NONE, NONE, NONE, NONE, NONE, NONE), tuple_of(tensor(), NONE, NONE)):
            yield f"rebuild/{other}-{len(args)}", torch(PROTO + state(("w", name("torch._utils", other) + args + REDUCE)) + STOP)
    loop = name("torch._tensor", "_rebuild_from_type_v2")
    yield "rebuild/from-type-of-itself", torch(PROTO + state(("w", loop + tuple_of(loop, NONE, b")", NONE) + REDUCE)) + STOP)


def names():
    w = tensor()
    yield "name/twice", torch(PROTO + state(("w", w), ("w", w)) + STOP)
    yield "name/joined-twice", torch(PROTO + state(("a.b", w), ("a", state(("b", w)))) + STOP)
    yield "name/empty", torch(PROTO + state(("", w)) + STOP)
    yield "name/metadata", torch(PROTO + state(("__metadata__", w)) + STOP)
    yield "name/100-kb", torch(PROTO + state(("n" * 100000, w)) + STOP)
    yield "name/control", torch(PROTO + state(("\x1b]0;evil\x07\r\n", w)) + STOP)
    for key in (NONE, b"\x88", b")", w, name("os", "system")):
        yield f"name/key-{key[:1].hex()}-{len(key)}", torch(PROTO + DICT + key + w + b"s" + STOP)


def containers():
    """Cycles and laughs; what is not an archive of one model."""
    yield "cycle/list", torch(PROTO + LIST + b"q\0h\0a" + STOP)
    yield "cycle/with-tensor", torch(PROTO + DICT + b"q\0" + MARK + text("w") + tensor() + text("me") + b"h\0" + b"u" + STOP)
    yield "cycle/state", torch(PROTO + name("a", "B") + b")Rq\0" + DICT + text("me") + b"h\0sb" + STOP)
    laugh = LIST + b"q\0" + tensor() + b"a0"
    for level in range(30):
        laugh += LIST + b"q" + bytes([level + 1]) + MARK + b"h" + bytes([level]) * 1 + (b"h" + bytes([level])) * 9 + b"e0"
    yield "laughs/10^30-tensors", torch(PROTO + laugh + b"h\x1e" + STOP)
    laugh = LIST + b"q\0" + NONE + b"a0"
    for level in range(60):
        laugh += LIST + b"q" + bytes([level + 1]) + MARK + (b"h" + bytes([level])) * 10 + b"e0"
    yield "laughs/10^60-nothings", torch(PROTO + state(("w", tensor()), ("x", laugh + b"h\x3c")) + STOP)
    deep = LIST * 200000 + tensor() + b"a" * 200000
    yield "deep/lists", torch(PROTO + state(("w", deep)) + STOP)
    yield "deep/tuples", torch(PROTO + state(("w", tensor()), ("x", NONE + b"\x85" * 200000)) + STOP)
    yield "deep/marks", torch(PROTO + MARK * 200000 + STOP)
    inner = GOOD
    yield "nested/pickle-in-bytes", torch(PROTO + state(("w", tensor()), ("x", b"B" + struct.pack("<I", len(inner)) + inner)) + STOP)
    yield "nested/second-pickle", torch(GOOD + PROTO + name("os", "system") + tuple_of(text("x")) + REDUCE + STOP)
    yield "nested/loads", torch(PROTO + state(("w", name("pickle", "loads") + tuple_of(b"B" + struct.pack("<I", len(inner)) + inner) + REDUCE)) + STOP)
    yield "stream/magic-eval", stream(magic=PROTO + name("builtins", "eval") + tuple_of(text("MAGIC_NUMBER")) + REDUCE + STOP)
    yield "stream/magic-cut", stream()[:14]
    yield "stream/version-1002", stream(version=1002)
    yield "stream/count-more", stream(counts=(5,))
    yield "stream/count-less", stream(counts=(3,))
    yield "stream/count-negative", stream(counts=(-1,))
    yield "stream/key-twice", stream(keys=("0", "0"), counts=(4, 4))
    yield "stream/key-missing", stream(keys=(), counts=())
    yield "stream/key-unknown", stream(keys=("9",))
    yield "stream/data-cut", stream()[:-3]
    yield "stream/behind", stream(after=b"PK\3\4 and more")
    whole = stream()
    for at in range(13, len(whole), 7):
        yield f"stream-cut/{at:03}", whole[:at]
    for what, view in (("beyond", tuple_of(text("v"), number(3), number(2))), ("negative", tuple_of(text("v"), number(-1), number(2))),
                       ("huge", tuple_of(text("v"), number(2**62), number(2**62))), ("short", tuple_of(text("v"))), ("text", text("v"))):
        yield f"stream-view/{what}", stream(PROTO + state(("w", tensor(storage(tail=view), size=(2,)))) + STOP)


def archives():
    def entries(**change):
        first = Entry("m/data.pkl", GOOD, **change)
        return [first, Entry("m/data/0", DATA), Entry("m/version", b"3\n")]
    yield "zip/case", archive([Entry("m/DATA.PKL", GOOD)] + entries()[1:])
    yield "zip/case-twice", archive(entries() + [Entry("m/DATA/0", b"x" * 16)])
    yield "zip/twice", archive(entries() + [Entry("m/data/0", b"x" * 16)])
    yield "zip/local-name", archive(entries(local={"name": b"m/data.pkx"}))
    yield "zip/local-method", archive(entries(local={"method": 8}))
    yield "zip/local-size", archive(entries(local={"usize": 3}))
    yield "zip/local-flags", archive(entries(local={"flags": DESCRIBED}))
    yield "zip/crc-pickle", archive(entries(crc=1))
    yield "zip/crc-storage", archive([entries()[0], Entry("m/data/0", DATA, crc=7), entries()[2]])
    yield "zip/encrypted", archive(entries(flags=1))
    yield "zip/strong-encrypted", archive(entries(flags=0x41))
    yield "zip/two-folders", archive(entries()[:2] + [Entry("n/version", b"3\n")])
    yield "zip/no-version", torch(version=None)
    for version in (b"0\n", b"11\n", b"-3", b"", b"3" * 70, b"x"):
        yield f"zip/version-{version[:3].hex()}-{len(version)}", torch(version=version)
    for order in (b"middle", b"", b"BIG", b"l" * 100):
        yield f"zip/byteorder-{order[:3].hex()}-{len(order)}", torch(byteorder=order)
    yield "zip/no-data-pkl", archive(entries()[1:])
    yield "zip/end-in-comment", archive(entries(), comment=b"PK\5\6" + b"\0" * 18)
    yield "zip/behind", archive(entries(), after=b"more")
    yield "zip/count-less", archive(entries(), n=2)
    yield "zip/count-more", archive(entries(), n=9)
    yield "zip/directory-elsewhere", archive(entries(), at=4)
    yield "zip/directory-size", archive(entries(), size=0xfffffff0)
    yield "zip/end64-disagrees", archive(entries(), end64={"n": 2})
    yield "zip/end64-elsewhere", archive(entries(), end64={"where": 0})
    yield "zip/end64-huge", archive(entries(), end64={"n": 2**60, "size": 2**63}, n=0xffff, size=0xffffffff, at=0xffffffff)
    yield "zip/overlap", archive([entries()[0], Entry("m/data/0", DATA, central={"at": 0}), entries()[2]])
    yield "zip/beyond", archive(entries(central={"at": 0x7fffffff}))
    yield "zip/name-not-utf8", archive(entries() + [Entry(b"m/\xff", b"")])
    yield "zip/name-climbs", archive(entries() + [Entry("m/../../x", b"")])
    yield "zip/nul", archive(entries() + [Entry(b"m/a\0b", b"")])
    yield "zip/torchscript-code", archive(entries() + [Entry("m/constants.pkl", PROTO + b").") , Entry("m/code/x.py", b"import os")])
    whole = archive(entries())
    for at in range(4, len(whole), 19):
        yield f"zip-cut/{at:03}", whole[:at]


def bombs():
    """Little that becomes much."""
    zeros = bytes(1 << 26)
    yield "bomb/deflated-storage", torch(PROTO + state(("w", tensor(storage(kind="ByteStorage", numel=1 << 26), size=(16,)))) + STOP, records=(("data/0", zeros),), method=8)
    yield "bomb/deflated-pickle", torch(PROTO + b"]0" * (1 << 24) + state(("w", tensor())) + STOP, method=8)
    entry = Entry("m/data.pkl", GOOD, 8, central={"usize": 1 << 30}, local={"usize": 1 << 30})
    yield "bomb/declared", archive([entry, Entry("m/version", b"3\n")])
    n = 60000
    pairs = LIST + b"q\0" + MARK + (text("k") + NONE + b"\x86") * n + b"e0"
    dicts = b"".join((name("collections", "OrderedDict") + b"h\0\x85R0") for _ in range(n))
    yield "bomb/pairs-in-dicts", torch(PROTO + pairs + dicts + state(("w", tensor())) + STOP)
    items = LIST + b"q\0" + MARK + NONE * n + b"e0"
    sets = LIST + MARK + (name("builtins", "set") + b"h\0\x85R") * n + b"e"
    yield "bomb/items-in-sets", torch(PROTO + items + state(("w", tensor()), ("x", sets)) + STOP)
    attributes = DICT + b"q\0" + MARK + b"".join(number(i) + NONE for i in range(n)) + b"u0"
    objects = LIST + MARK + (name("a", "B") + b")Rh\0b") * n + b"e"
    yield "bomb/one-state", torch(PROTO + attributes + state(("w", tensor()), ("x", objects)) + STOP)
    mixed = LIST + b"q\0" + MARK + NONE * n + tensor() + b"e0"
    many = LIST + MARK + b"h\0" * n + b"e"
    yield "bomb/walks", torch(PROTO + mixed + state(("x", many)) + STOP)
    words = text("\xe9" * 100000) + b"q\0" + text("latin1") + b"q\1\x86q\2" + b"0"
    dtype = name("numpy", "dtype") + tuple_of(text("u1"), b"\x89", b"\x88") + REDUCE + b"q\3" + b"0"
    array = name("numpy.core.multiarray", "_reconstruct") + tuple_of(name("numpy", "ndarray"), sizes((0,)), text("b")) + REDUCE \
        + tuple_of(number(1), sizes((100000,)), b"h\3", b"\x89", name("_codecs", "encode") + b"h\2R") + b"b"
    yield "bomb/one-text", torch(PROTO + words + dtype + state(*((f"w{i}", array) for i in range(5000))) + STOP)
    shape = MARK + number(1) * 100000 + TUPLE + b"q\0" + b"0"
    wide = name("torch._utils", "_rebuild_tensor_v2") + tuple_of(storage(), number(0), b"h\0h\0", b"\x89", NONE) + REDUCE
    yield "bomb/one-shape", torch(PROTO + shape + (wide + b"0") * 5000 + state(("w", tensor())) + STOP)
    yield "bomb/globals", torch(PROTO + b"".join(name("m", f"n{i}") + b"0" for i in range(70000)) + state(("w", tensor())) + STOP)
    yield "bomb/equal-hashes", torch(PROTO + b"".join(name("m", word) + b"0" for word in equal_hashes()) + state(("w", tensor())) + STOP)
    yield "bomb/aliases", torch(PROTO + tensor() + b"q\0" + b"0" + state(*((f"w{i}", b"h\0") for i in range(50000))) + STOP)
    yield "bomb/branches", torch(PROTO + tensor() + b"q\0" + b"0" + DICT + MARK + text("model") + state(("w", b"h\0")) + b"".join(
        text(f"b{i}") + state(("w", b"h\0")) for i in range(30000)) + b"u" + STOP)
    yield "bomb/numbers", torch(PROTO + state(("w", tensor()), ("x", LIST + MARK + b"M\1\2" * 1000000 + b"e")) + STOP)
    yield "bomb/lists", torch(PROTO + MARK + b"]" * 9000000 + b"l0" + state(("w", tensor())) + STOP, method=8)
    yield "bomb/shared-names", torch(PROTO + tensor() + b"q\0" + b"0" + MARK + b"h\0" * 100000 + b"lq\1" + b"0" + state(
        ("w", tensor()), *((f"x{i}", b"h\1") for i in range(30))) + STOP)
    yield "bomb/memo", torch(PROTO + b"".join(NONE + b"r" + struct.pack("<I", 3 * i) + b"0" for i in range(1000)) + state(("w", tensor())) + STOP)


def equal_hashes():
    """Words with one hash of FNV-1a, which tables without a seed use: 15 pairs after one another."""
    def add(value, word):
        for byte in word:
            value = (value ^ byte) * 16777619 & 0xffffffff
        return value
    words, value, draw = [""], add(add(2166136261, b"m"), b"\n"), random.Random(1)
    for _ in range(15):
        seen = {}
        while True:
            word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6))
            other = seen.setdefault(add(value, word.encode()), word)
            if other != word:
                break
        words = [w + tail for w in words for tail in (word, other)]
        value = add(value, word.encode())
    return words


def pickles():
    """Pickles of their own, of NumPy's arrays."""
    dtype = name("numpy", "dtype") + tuple_of(text("O8"), b"\x89", b"\x88") + REDUCE
    head = name("numpy.core.multiarray", "_reconstruct") + tuple_of(name("numpy", "ndarray"), sizes((0,)), text("b")) + REDUCE
    good = name("numpy", "dtype") + tuple_of(text("f4"), b"\x89", b"\x88") + REDUCE
    for what, rest in (
            ("objects", tuple_of(number(1), sizes((1,)), dtype, b"\x89", LIST + NONE + b"a")),
            ("short", tuple_of(number(1), sizes((9,)), good, b"\x89", b"U\4abcd")),
            ("huge", tuple_of(number(1), sizes((2**62,)), good, b"\x89", b"U\4abcd")),
            ("negative", tuple_of(number(1), sizes((-1,)), good, b"\x89", b"U\4abcd")),
            ("no-state", NONE), ("text", tuple_of(number(1), text("1"), text("f4"), NONE, text("x")))):
        yield f"array/{what}", PROTO + state(("w", head + rest + b"b")) + STOP
    evil = name("builtins", "eval") + tuple_of(text("__import__('os').system('x')"), state(("data", NONE))) + REDUCE
    yield "array/eval", PROTO + state(("w", head + tuple_of(number(1), sizes((1,)), good, b"\x89", b"U\4abcd") + b"b"), ("x", evil)) + STOP
    yield "array/plain-pickle", pickle.dumps({"a": [1, 2, {"b": "c"}]}, 2)


def cases():
    for make in (calls, cut, opcodes, ids, names, containers, archives, bombs, pickles):
        for what, data in make():
            yield "torch/" + what, {"model.pt": data}
