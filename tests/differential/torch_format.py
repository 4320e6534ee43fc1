"""PyTorch's archives and streams against torch.load(weights_only=True), which reads what its
mutable objects are at each opcode: programs of opcodes, not only what a pickler writes."""
import collections
import io
import os
import pickle
import pickletools
import struct
import sys
import types
import warnings
import zipfile

import torch
from torch import _weights_only_unpickler

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "import"))
from run import Skip, difference  # pylint: disable=wrong-import-position
from torch_make import DTYPES, raw  # pylint: disable=wrong-import-position
from zip_make import Entry, archive  # pylint: disable=wrong-import-position

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

SUFFIX = ".pt"
OPTIONS = "all,shared=copy"
BOTH = 0.2
MOST_ELEMENTS = 1 << 14
NOT_NEGATED = {torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.uint16, torch.uint32}

# class of a storage, bytes of an element
STORAGES = (("FloatStorage", 4), ("HalfStorage", 2), ("BFloat16Storage", 2), ("DoubleStorage", 8),
            ("LongStorage", 8), ("IntStorage", 4), ("ByteStorage", 1), ("CharStorage", 1),
            ("ShortStorage", 2), ("ComplexFloatStorage", 8))
V3 = (("uint16", 2), ("uint32", 4), ("float8_e4m3fn", 1), ("float8_e5m2", 1), ("int8", 1))
KEYS = ("a", "b", "c", "weight", "model", "a.b", "data", "x", "_metadata", "1")
MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e\x80\x02\x4d\xe9\x03\x2e"


# ── Programs ──

def text(words):
    words = words.encode()
    return b"X" + struct.pack("<I", len(words)) + words


def number(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -2**31 <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    wide = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(wide)]) + wide


def name(module, word):
    return b"c%s\n%s\n" % (module.encode(), word.encode())


class Program:
    """A pickle as a list of opcodes, put together at random. Methods add what leaves one value."""

    def __init__(self, rng, view):
        self.rng, self.view = rng, view  # view: what ids have at their end
        self.ops = []
        self.memo = {}  # kind of value: numbers
        self.puts = 0
        self.storages = []  # class, bytes of an element, elements

    def put(self, kind):
        if self.rng.random() < 0.4:
            self.ops.append(b"q" + bytes([self.puts % 256]))
            self.memo.setdefault(kind, []).append(self.puts % 256)
            self.puts += 1

    def get(self, *kinds):
        """A value of the memo, if there is one of these kinds."""
        known = [n for kind in kinds for n in self.memo.get(kind, ())]
        if known:
            self.ops.append(b"h" + bytes([self.rng.choice(known)]))
        return bool(known)

    def sizes(self, values):
        numbers = [number(v) for v in values]
        if self.rng.random() < 0.9:
            self.ops += [b"(", *numbers, b"t"]
        else:
            self.ops += [b"]", b"(", *numbers, b"e"]

    def storage(self):
        rng = self.rng
        if not self.storages or rng.random() < 0.4:
            kind = rng.choice(STORAGES) if rng.random() < 0.85 else ("UntypedStorage", 1)
            self.storages.append((*kind, rng.choice((0, 1, 2, 4, 6, 8, 12, 24))))
        at = rng.randrange(len(self.storages))
        kind, size, count = self.storages[at]
        module = "torch.storage" if kind == "UntypedStorage" else "torch"
        self.ops += [b"(", text("storage"), name(module, kind), text(str(at)), text("cpu"),
                     number(count), self.view, b"t", b"Q"]
        return kind, size, count

    def shape(self, room):
        """(offset, sizes, strides), mostly within so many elements."""
        rng = self.rng
        sizes = [rng.choice((0, 1, 1, 2, 2, 3, 4)) for _ in range(rng.randrange(4))]
        strides, step = [], 1
        for size in reversed(sizes):
            strides.insert(0, step)
            step *= max(size, 1)
        if rng.random() < 0.3:
            strides = [rng.choice((0, 1, 2, 3, step)) for _ in sizes]
        last = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
        if last > room and rng.random() < 0.95:
            sizes, strides, last = ([room], [1], room) if room else ([0], [1], 0)
        return rng.randrange(max(room - last, 0) + 1), sizes, strides

    def flags(self):
        if self.rng.random() < 0.15:
            self.ops += [b"}", b"("]
            for _ in range(self.rng.randrange(3)):
                self.ops += [text(self.rng.choice(("conj", "neg"))),
                             self.rng.choice((b"\x88", b"\x89"))]
            self.ops.append(b"u")

    def arguments(self, third):
        rng, start = self.rng, len(self.ops)
        kind, size, count = self.storage()
        room = count
        if third:
            dtype, width = rng.choice(V3)
            room = size * count // width
        offset, sizes, strides = self.shape(room)
        self.ops.append(number(offset))
        self.sizes(sizes)
        self.sizes(strides)
        self.ops.append(b"\x89")
        self.hooks()
        if third:
            self.ops.append(name("torch", dtype))
        self.flags()
        if rng.random() < 0.02:
            del self.ops[rng.randrange(start, len(self.ops))]
        return kind

    def hooks(self):
        self.ops += [b"N"] if self.rng.random() < 0.2 else [name("collections", "OrderedDict"),
                                                            b")", b"R"]

    def tensor(self, depth=0):
        rng = self.rng
        if depth > 0 and rng.random() < 0.3 and self.get("tensor"):
            return
        form = rng.random()
        if form < 0.55 or depth > 3:
            third = rng.random() < 0.2
            self.ops += [name("torch._utils", "_rebuild_tensor_v3" if third
                              else "_rebuild_tensor_v2"), b"("]
            self.arguments(third)
            self.ops += [b"t", b"R"]
        elif form < 0.6:
            self.ops += [name("torch._utils", "_rebuild_tensor"), b"("]
            _, _, count = self.storage()
            offset, sizes, strides = self.shape(count)
            self.ops.append(number(offset))
            self.sizes(sizes)
            self.sizes(strides)
            self.ops += [b"t", b"R"]
        elif form < 0.72:
            state = rng.random() < 0.5
            self.ops += [name("torch._utils", "_rebuild_parameter" + "_with_state" * state), b"("]
            self.tensor(depth + 1)
            self.ops.append(b"\x89")
            self.hooks()
            if state:
                self.state(depth + 1)
            self.ops += [b"t", b"R"]
        elif form < 0.78:
            self.ops += [name("torch.nn.parameter", "Parameter"), b"("]
            self.tensor(depth + 1)
            self.ops += [b"\x89"] * rng.randrange(2) + [b"t", rng.choice((b"R", b"\x81"))]
        elif form < 0.86:
            self.ops += [name("torch._tensor", "_rebuild_from_type_v2"), b"(",
                         name("torch._utils", "_rebuild_tensor_v2"),
                         rng.choice((name("torch", "Tensor"), name("torch.nn.parameter",
                                                                   "Parameter"))), b"("]
            self.arguments(False)
            self.ops.append(b"t")
            self.state(depth + 1)
            self.ops += [b"t", b"R"]
        elif form < 0.9:
            self.ops += [name("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"), b"("]
            self.tensor(depth + 1)
            self.ops += [name("torch", rng.choice(("float32", "float16", "int64", "uint8"))),
                         text("cpu"), b"\x89", b"t", b"R"]
        elif form < 0.95:
            self.tensor(depth + 1)
            self.build(depth)
        else:
            self.ops += [name("torch", rng.choice(("FloatTensor", "Tensor", "LongTensor"))), b")",
                         rng.choice((b"R", b"\x81"))]
            if rng.random() < 0.5:
                self.build(depth)
        self.put("tensor")

    def build(self, depth):
        """A state for the tensor on the stack."""
        if self.rng.random() < 0.5:
            self.ops.append(b"(")
            _, _, count = self.storage()
            offset, sizes, strides = self.shape(count)
            self.ops.append(number(offset))
            self.sizes(sizes)
            self.sizes(strides)
            self.ops += [b"t", b"b"]
        elif self.rng.random() < 0.5:
            self.ops += [b"\x89", b"N", name("collections", "OrderedDict"), b")", b"R",
                         b"\x87", b"b"]
        else:
            self.state(depth)
            self.ops.append(b"b")

    def state(self, depth):
        """What attributes are set from: a dict, with slots or without, or nothing."""
        rng = self.rng
        form = rng.random()
        if form < 0.25:
            self.ops.append(rng.choice((b"N", b"}", b")")))
            return
        for _ in range(1 + (form > 0.85)):
            self.ops += [b"}", b"("]
            for _ in range(rng.randrange(3)):
                self.ops.append(text(rng.choice(("data", "tag", "mine", "grad", "requires_grad"))))
                self.value(depth + 1)
            self.ops.append(b"u")
        if form > 0.85:
            self.ops.append(b"\x86")

    def key(self):
        rng = self.rng
        form = rng.random()
        if form < 0.88:
            self.ops.append(text(rng.choice(KEYS) if rng.random() < 0.4 else f"k{rng.random()}"))
        else:
            self.ops.append(rng.choice((b"K\x01", b"K\x00", b"\x88", b"\x89", b"N", b")", b"U\1a",
                                        b"G" + struct.pack(">d", 1), number(-3), number(2**70))))

    def pairs(self, depth, most=4):
        for _ in range(self.rng.randrange(1, most)):
            self.key()
            self.value(depth + 1)

    def mapping(self, depth):
        rng = self.rng
        form = rng.random()
        kind = rng.choice(("OrderedDict", "OrderedDict", "OrderedDict", "Counter"))
        if form < 0.5:
            self.ops.append(b"}")
        elif form < 0.7:
            self.ops += [name("collections", kind), b")", rng.choice((b"R", b"R", b"\x81"))]
        else:  # made of pairs, or of a dict
            self.ops.append(name("collections", kind))
            inner = rng.random()
            if inner < 0.3:
                self.mapping(depth + 1)
            elif inner < 0.4 and self.get("dict", "list"):
                pass
            else:
                outer = rng.random() < 0.6
                self.ops += [b"]"] * outer
                if outer:
                    self.put("list")
                self.ops.append(b"(")
                for _ in range(rng.randrange(3)):
                    tuples = rng.random() < 0.5
                    self.ops += [] if tuples else [b"]", b"("]
                    self.key()
                    self.value(depth + 1)
                    self.ops.append(b"\x86" if tuples else b"e")
                self.ops.append(b"e" if outer else b"t")
            self.ops += [b"\x85", rng.choice((b"R", b"R", b"R", b"\x81"))]
        self.put("dict")
        if rng.random() < 0.8:
            self.ops.append(b"(")
            self.pairs(depth, 5)
            self.ops.append(b"u")
        if rng.random() < 0.1:
            self.key()
            self.value(depth + 1)
            self.ops.append(b"s")
        if form >= 0.5 and rng.random() < 0.25:
            self.state(depth)
            self.ops.append(b"b")

    def items(self, depth):
        rng = self.rng
        form = rng.random()
        if form < 0.5:
            self.ops.append(b"]")
            self.put("list")
            self.ops.append(b"(")
        elif form < 0.85:
            self.ops.append(b"(")
        else:
            self.ops += [name("builtins" if form < 0.93 else "torch",
                              "set" if form < 0.93 else "Size"), b"]", b"("]
        for _ in range(rng.randrange(4)):
            self.value(depth + 1)
        if form < 0.5:
            self.ops.append(b"e")
        elif form < 0.85:
            self.ops.append(b"t")
        else:
            self.ops += [b"e", b"\x85", b"R"]

    def value(self, depth):
        rng = self.rng
        form = rng.random()
        if form < 0.5 or depth == 0 and form < 0.1:
            self.tensor(depth)
        elif form < 0.65 and depth < 4:
            self.mapping(depth)
        elif form < 0.72 and depth < 4:
            self.items(depth)
        elif form < 0.78 and self.get("dict"):
            if rng.random() < 0.6:  # set what is complete elsewhere
                self.key()
                self.value(depth + 1)
                self.ops.append(b"s")
        elif form < 0.82 and self.get("list"):
            if rng.random() < 0.6:
                self.value(depth + 1)
                self.ops.append(b"a")
        elif form < 0.84 and self.get("tensor"):
            if rng.random() < 0.5:
                self.build(depth)
        elif form < 0.86:
            self.ops += [name("_codecs", "encode"), text("\xe9t\xe9"), text("latin1"), b"\x86",
                         b"R"]
        else:
            self.ops.append(rng.choice((b"N", b"\x88", b"K\x07", text("words"), number(2**40),
                                        b"G" + struct.pack(">d", 0.5))))

    def whole(self):
        if self.rng.random() < 0.9:
            self.mapping(0)
        else:
            self.value(0)


def mutate_ops(rng, ops):
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not ops:
            return
        at, other = rng.randrange(len(ops)), rng.randrange(len(ops))
        form = rng.randrange(6)
        if form == 0:
            del ops[at]
        elif form == 1:
            ops.insert(at, ops[other])
        elif form == 2:
            ops[at], ops[other] = ops[other], ops[at]
        elif form == 3:
            ops[at] = ops[other]
        elif form == 4:
            ops.insert(at, rng.choice((b"N", b"}", b"]", b")", b"(", b"u", b"b", b"R", b"\x81",
                                       b"h\0", b"q\0", b"h\1", b"s", b"a", b"t", b"\x85", b"\x86")))
        else:
            ops[at:at] = ops[other:other + rng.randrange(12)]


def mutate_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data))
        form = rng.randrange(4)
        if form == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif form == 1:
            data[at] = rng.randrange(256)
        elif form == 2:
            del data[at:at + rng.choice((1, 1, 2, 8))]
        else:
            data[at:at] = data[rng.randrange(len(data)):][:rng.choice((1, 2, 8))]
        if not data:
            return b"."
    return bytes(data)


# ── Files ──

def zipped(rng, data_pkl, storages, mutated):
    order = rng.choice((b"little",) * 12 + (b"big", b"big\n", b"little ", b"BIG", None))
    if order == b"big" and b"_rebuild_tensor_v3" in data_pkl:
        order = b"little"  # PyTorch swaps no untyped storage: it reads others than it wrote
    version = rng.choice((b"3\n",) * 20 + (b"1", b"10\n", b"11\n", b"00003", b"00011", b"3x"))
    method = rng.choice((0, 0, 0, 8))
    entries = [Entry("m/data.pkl", data_pkl, method)]
    if order is not None:
        entries.append(Entry("m/byteorder", order))
    for i, (_, size, count) in enumerate(storages):
        data = rng.randbytes(size * count)
        if mutated and rng.random() < 0.05:
            data = data[:-1] if rng.random() < 0.5 else data + b"x"
        if mutated and rng.random() < 0.05:
            continue
        entries.append(Entry(f"m/data/{i}", data, method))
        if mutated and rng.random() < 0.03:
            entries.append(Entry(rng.choice((f"m/data/{i}", f"m/DATA/{i}")), data))
    entries.append(Entry("m/version", version))
    if rng.random() < 0.1:
        entries.append(Entry("m/.format_version", b"1"))
        entries.append(Entry("m/.storage_alignment", b"64"))
    return archive(entries)


def streamed(rng, data_pkl, storages, mutated):
    facts = b"\x80\x02}(" + text("protocol_version") + b"M\xe9\x03" + text("little_endian") \
        + rng.choice((b"\x88", b"\x89")) + text("type_sizes") + b"}u."
    order = list(range(len(storages)))
    rng.shuffle(order)
    if mutated and order and rng.random() < 0.1:
        order.append(order[0])
    keys = b"\x80\x02](" + b"".join(text(str(i)) for i in order) + b"e."
    out = MAGIC + facts + data_pkl + keys
    for i in order:
        _, size, count = storages[i]
        out += struct.pack("<q", count) + rng.randbytes(size * count)
    return out


def make(rng):
    stream = rng.random() < 0.3
    program = Program(rng, b"N" if stream else b"")
    program.whole()
    mutated = rng.random() < 0.5
    ops = [op for op in program.ops if op]
    if mutated and rng.random() < 0.7:
        mutate_ops(rng, ops)
    data_pkl = b"\x80\x02" + b"".join(ops) + b"."
    if mutated and rng.random() < 0.25:
        data_pkl = mutate_bytes(rng, data_pkl)
    data = (streamed if stream else zipped)(rng, data_pkl, program.storages, mutated)
    return mutate_bytes(rng, data) if rng.random() < 0.05 else data


def show(data):
    start = data.find(b"\x80\x02") if data[:2] == b"PK" else len(MAGIC)
    try:
        pickletools.dis(data[start:])
    except ValueError as error:
        print(error)


# ── The reference ──

class Tensors(dict):
    """hidden: tensors that stand in attributes, keys and sets, where no name leads; cyclic: a
    container within itself, of whose names some are left out."""
    hidden = 0
    cyclic = False


def values_of(tree):
    """(key, value) of a container; keys None: it has no name."""
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, (list, tuple)):
        yield from enumerate(tree)


def hidden_of(tree):
    if isinstance(tree, (set, frozenset)):
        yield from tree
    if isinstance(tree, dict):
        yield from tree.keys()
    attributes = getattr(tree, "__dict__", None)
    if isinstance(attributes, dict):
        yield from attributes.values()


def count_hidden(roots):
    """Tensors beneath some values."""
    seen, stack, count = set(), list(roots), 0
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        count += isinstance(value, torch.Tensor)
        if isinstance(value, torch.Tensor) or isinstance(value, (dict, list, tuple, set)):
            stack += [v for _, v in values_of(value)] + list(hidden_of(value))
    return count


def take(tree, path, above, found):
    """Tensors of a tree by their names; a container within itself is not entered."""
    found.hidden += count_hidden(hidden_of(tree))
    if isinstance(tree, torch.Tensor):
        if tree.layout is not torch.strided or tree.device.type != "cpu" or tree.is_quantized \
                or tree.dtype not in DTYPES:
            found[path or "tensor"] = (f"{tree.dtype} {tree.layout}", list(tree.shape), b"")
            return
        if tree.is_neg() and tree.dtype in NOT_NEGATED:
            raise Skip("negated elements that cannot be")
        if tree.numel() > MOST_ELEMENTS:
            raise Skip("large tensors")
        if path in found:
            raise Skip("two tensors of one joined name")
        found[path or "tensor"] = raw(tree)
        return
    if id(tree) in above:
        found.cyclic = True
        return
    if len(found) > 2000:
        raise Skip("many tensors")
    for key, value in values_of(tree):
        take(value, f"{path}.{key}" if path else str(key), above | {id(tree)}, found)


def read(path, **options):
    try:
        tree = torch.load(path, map_location="cpu", **(options or {"weights_only": True}))
    finally:
        torch._utils._sparse_tensors_to_validate.clear()  # pylint: disable=protected-access
    found = Tensors()
    take(tree, "", frozenset(), found)
    return found


def same(ours, theirs, report):
    if theirs.hidden and not report["left_out"]:
        return f"{theirs.hidden} tensors in attributes, keys or sets without a word"
    if theirs.cyclic and all(theirs.get(name) == value for name, value in ours.items()) \
            and all(value in ours.values() for value in theirs.values()):
        return None
    return difference(ours, theirs, report)


class Broken:
    """What a call that fails should have made."""

    def __init__(self, *args):
        pass

    append = extend = __setitem__ = __init__


class Foreign(dict):
    """An object of a class that is not known: it has the items that are set in it."""

    def __init__(self, *args):  # pylint: disable=unused-argument
        super().__init__()


def set_attributes(tensor, state):
    """As PyTorch does, but for those that do not fit."""
    for part in state if isinstance(state, tuple) else (state,):
        for name_, value in (part or {}).items():
            attempt(setattr, tensor, name_, value)
    return tensor


def attempt(function, *args):
    try:
        return function(*args)
    except Exception:  # pylint: disable=broad-exception-caught
        return Broken()


class Forgiving(pickle._Unpickler):  # pylint: disable=protected-access
    """PyTorch's restricted reader, but it goes on where a call fails."""
    dispatch = dict(pickle._Unpickler.dispatch)  # pylint: disable=protected-access

    def find_class(self, module, word):
        return ALLOWED.get(f"{module}.{word}", Foreign)

    def make(self, function, args):
        """A parameter needs no gradient for its values, and a tensor no class that is not known."""
        if function in (torch.nn.Parameter, torch._utils._rebuild_parameter):
            return torch.nn.Parameter(args[0], False)
        if function is FROM_TYPE and args[1] is Foreign:
            args = (args[0], torch.Tensor, *args[2:])
        if function in CONTAINERS and any(isinstance(value, Foreign) for value in args):
            return Broken()
        known = function is Foreign or any(function is value for value in ALLOWED.values())
        return function(*args) if known else Broken()

    def load_reduce(self):
        args = self.stack.pop()
        self.stack[-1] = attempt(self.make, self.stack[-1], args)

    def load_newobj(self):
        args, kind = self.stack.pop(), self.stack[-1]
        if any(kind is container for container in CONTAINERS):
            args = ()  # __new__ alone, which takes anything
        self.stack[-1] = attempt(self.make, kind, args)

    def load_build(self):
        """A state that does not fit a tensor leaves nothing of it that is sure."""
        state, made = self.stack.pop(), self.stack[-1]
        if isinstance(made, torch.Tensor):
            change = made.set_ if type(made) is torch.Tensor else None
            done = attempt(change, *state) if change else attempt(made.__setstate__, state)
            self.stack[-1] = done if isinstance(done, Broken) else made
        elif isinstance(made, Foreign):
            for part in state if isinstance(state, tuple) else (state,):
                attempt(made.update, part)
        elif isinstance(made, collections.OrderedDict):
            attempt(made.__dict__.update, state)

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        attempt(self.stack[-1].__setitem__, key, value)

    def load_setitems(self):
        items = self.pop_mark()
        for key, value in zip(items[::2], items[1::2]):
            attempt(self.stack[-1].__setitem__, key, value)

    dispatch.update({pickle.REDUCE[0]: load_reduce, pickle.NEWOBJ[0]: load_newobj,
                     pickle.BUILD[0]: load_build, pickle.SETITEM[0]: load_setitem,
                     pickle.SETITEMS[0]: load_setitems})


ALLOWED = _weights_only_unpickler._get_allowed_globals()  # pylint: disable=protected-access
FROM_TYPE = torch._tensor._rebuild_from_type_v2  # pylint: disable=protected-access
CONTAINERS = (collections.OrderedDict, collections.Counter)
PICKLE = types.SimpleNamespace(__name__="forgiving", Unpickler=Forgiving,
                               load=lambda file, **options: Forgiving(file, **options).load())


def forgiving(path):
    """The tensors that are left where what fails is left out."""
    strict = torch._utils._set_obj_state  # pylint: disable=protected-access
    torch._utils._set_obj_state = set_attributes  # pylint: disable=protected-access
    try:
        return read(path, weights_only=False, pickle_module=PICKLE)
    finally:
        torch._utils._set_obj_state = strict  # pylint: disable=protected-access


# Why it is right to read what neither reader does: words of PyTorch's message, and the reason.
REASONS = (
    ("Unsupported operand", "an opcode that the restricted reader does not know"),
    ("Unsupported global", "a global that the restricted reader does not know: it is reported"),
    ("whose module", "a global that the restricted reader does not know: it is reported"),
    ("persistent_load id must be", "an id that no tensor uses"),
    ("failed locating file data/", "a storage without bytes has no record"),
    ("codec can't decode", "text that is no name"),
    ("UntypedStorage' has no attribute 'dtype'", "a stream that PyTorch writes and does not read"),
    ("(expected 5, got 4)", "an id of a stream without a view"),
)


def calls_of(data):
    """How many tensors the pickles of a file make, by the names of the functions."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as records:
            data = records.read("m/data.pkl")
    except (zipfile.BadZipFile, KeyError):
        pass
    return sum(data.count(word) for word in (b"_rebuild_tensor", b"Parameter\n", b"Tensor\n"))


def allowed(why, data, report):
    for words, reason in REASONS:
        if words in str(why):
            return reason
    # What is neither a value nor an item of one is not made here, so it cannot fail.
    hidden = any(left["text"].startswith("tensors in attributes") for left in report["left_out"])
    if hidden or calls_of(data) > report["tensors"] - len(report["aliases"]):
        return "a broken tensor that no name leads to"
    return None
