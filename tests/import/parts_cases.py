"""Checkpoints of other forms, put together by hand: shards of PyTorch, its streams and tar archives,
tables of TensorFlow; names, branches and options."""
import functools
import io
import os
import struct
import tarfile

from hostile_other import block, field, masked, table, variable, varint
from object_cases import DATA, HALF, HOOKS, W, check, of_plain, real
from torch_bad_cases import (MAGIC, call, integer, legacy, mapping, name, pickled, storage, tar,
                             tar_storage, tar_tensor, tensor, text, values, zipped)
from zip_make import Entry, archive

END = b"/.ATTRIBUTES/VARIABLE_VALUE"


# ── Shards ──

def shards(ctx):
    def index(words, **files):
        """words: of the index, in which @ is the name of a shard; files: what shards have."""
        def write(path):
            for key, value in files.items():
                zipped(f"{path}.{key}.bin", pickled(mapping(**value)))
            with open(path, "w", encoding="utf-8") as file:
                file.write(words.replace("@", os.path.basename(path) + "."))
        return write

    def large(path):
        index(one)(path)
        os.truncate(path, 257 << 20)
    one = '{"weight_map": {"w": "@a.bin"}}'
    both = '{"metadata": {"total_size": 24}, "weight_map": {"v": "@b.bin", "w": "@a.bin"}}'
    w, v = {"w": tensor()}, {"v": tensor(size=(2,))}
    check(ctx, [
        ("one", index(one, a=w), "-", {"w": W}),
        ("two", index(both, a=w, b=v), "-", {"w": W, "v": HALF}),
        ("in another", index(both, a=v, b=w), "-",
         ("index_tensor_misplaced", "expected this tensor in ")),
        ("one more", index(one, a={**w, **v}), "-",
         ("index_tensor_misplaced", "that weight_map names, found another in ")),
        ("one less", index(one.replace("}}", ', "u": "@a.bin"}}'), a=w), "-",
         ("index_tensor_missing", "found none")),
        ("one less, and that is well", index(one.replace("}}", ', "u": "@a.bin"}}'), a=w), "skip",
         {"w": W}),
        ("a number as shard", index(one.replace("}}", ', "u": 3}}'), a=w), "-",
         ("index_type", "the name of a shard")),
        ("a list as map", index(one[:-1] + ', "weight_map": []}', a=w), "-",
         ("index_type", "\"weight_map\" once")),
        ("a list as map, first", index('{"weight_map": [], ' + one[1:], a=w), "-",
         ("index_type", "an object as weight_map")),
        ("a second map", index(one[:-1] + ', "weight_map": {"v": "@b.bin"}}', a=w, b=v), "-",
         ("index_type", "\"weight_map\" once")),
        ("a second map, by an escape", index(one[:-1] + ', "weight\\u005fmap": {"v": "@b.bin"}}',
                                             a=w, b=v), "-", ("index_type", "\"weight_map\" once")),
        ("a comma before the end", index(one.replace("}}", ",}}"), a=w), "-",
         ("json_syntax", "")),
        ("a map that is cut", index(one[:-2], a=w), "-", ("json_syntax", "")),
        ("a map of an error", index('{"x": {"weight_map": {"w": "@a.bin"}}, "weight_map": ?}',
                                    a=w), "-", ("json_syntax", "")),
        ("a name that is cut", index('{"weight_map": {"w": "@a.bin", "v": ', a=w), "-",
         ("json_syntax", "")),
        ("an index that is cut", index(one[:-1], a=w), "-", ("json_syntax", "")),
        ("a name twice", index(one.replace("}}", ', "w": "@b.bin"}}'), a=w), "-",
         ("index_tensor_duplicate", "once in weight_map, found it twice")),
        ("of 257 MiB", large, "-", ("foreign_table", "an index of at most 268435456 bytes")),
        ("behind its end", index(one + " {}", a=w), "-", ("json_trailing", "")),
    ])


# ── Archives ──

def archives(ctx):
    good = pickled(mapping(w=tensor()))

    def of(pickle=good, *more, top="m/", method=0, version=b"3"):
        def write(path):
            entries = [Entry(top + "data.pkl", pickle, method), Entry(top + "data/0", DATA),
                       Entry(top + "version", version), *more]
            with open(path, "wb") as file:
                file.write(archive(entries))
        return write
    unused = "records that no tensor that is read refers to"
    check(ctx, [
        ("plain", of(), "-", {"w": W, "left": []}),
        ("deflated", of(method=8), "-", {"w": W, "left": []}),
        ("a record more", of(good, Entry("m/data/1", b"12345")), "-", {"w": W, "left": [unused]}),
        ("a constant", of(good, Entry("m/constants/0", b"12345")), "-",
         {"w": W, "left": ["tensors that are constants of the code"]}),
        ("other entries", of(good, Entry("m/code/a.py", b"x = 1"), Entry("m/dat", b"1")), "-",
         {"w": W, "left": []}),
        ("a folder in a folder", of(top="m/n/"), "-", ("foreign_kind", "")),
        ("no folder", of(top=""), "-", ("foreign_kind", "a zip archive of other files")),
        ("a version of 65 bytes", of(version=b"3" * 65), "-",
         ("foreign_syntax", "at most 64 bytes of m/version, found 65")),
        ("a version with a line's end", of(version=b"3\n"), "-", {"w": W}),
        ("a version of an end", of(version=b"\n"), "-", ("foreign_kind", "version 1 to 10")),
        ("a long pickle of few bytes", of(b"\x80\x02" + b"N" * (17 << 20) + b".", method=8), "-",
         ("foreign_table", "a data.pkl of at most 64 times its ")),
    ])


# ── Streams ──

def streams(ctx):
    value = mapping(w=tensor())

    def of(object_=value, version=integer(1001), keys=b"](" + text("0") + b"e", magic=MAGIC,
           behind=struct.pack("<q", 4) + DATA):
        def write(path):
            with open(path, "wb") as file:
                file.write(magic + pickled(version) + pickled(b"}") + pickled(object_) +
                           pickled(keys) + behind)
        return write
    framed = b"\x80\x04\x95" + struct.pack("<Q", len(MAGIC) - 2) + MAGIC[2:]
    key = ("foreign_syntax", "the key of a storage that the pickle names, found another")
    check(ctx, [
        ("plain", of(), "-", {"w": W}),
        ("in a frame", of(magic=framed), "-", {"w": W}),
        ("a version that is a text", of(version=text("1001")), "-",
         ("foreign_kind", "version 1001")),
        ("keys in a tuple", of(keys=b")"), "-",
         ("foreign_syntax", "a list of storages, found a tuple")),
        ("a key that is a number", of(keys=b"](K\0e"), "-", key),
        ("a long key", of(keys=b"](" + text("0" * 5000) + b"e"), "-", key),
        ("no keys", of(keys=b"]"), "-",
         ("foreign_syntax", "storage \"0\" in the list of storages, found it missing")),
        ("no keys of nothing", of(mapping(w=tensor(count=0, size=(0,))), keys=b"]", behind=b""),
         "-", {"w": ("F32", [0], b"")}),
        ("an id that is a text", of(mapping(w=tensor(), x=text("0") + b"Q")), "-",
         ("foreign_syntax", "found text")),
        ("an empty id", of(mapping(w=tensor(), x=b")Q")), "-", ("foreign_syntax", "found a tuple")),
        ("the same storage of another type", of(mapping(w=tensor(), x=storage(
            kind="IntStorage"))), "-", ("foreign_ambiguous", "16 of int32")),
        ("another number", of(behind=struct.pack("<q", 3) + DATA), "-",
         ("foreign_size", "storage \"0\" to have 4 elements, found 3")),
        ("a storage of nearly 2^64 bytes", of(mapping(w=tensor(count=(1 << 62) - 1)),
                                              keys=b"](" + text("0") * 2 + b"e"), "-",
         ("foreign_size", "storage \"0\" to have 4611686018427387903 elements, found 4")),
        ("no count", of(behind=b"\4"), "-", ("foreign_truncated", "expected 8 bytes")),
        ("fewer bytes", of(behind=struct.pack("<q", 4) + DATA[:-1]), "-",
         ("foreign_truncated", "expected 16 bytes of data")),
    ])


# ── Tar archives ──

def tars(ctx):
    one = pickled(integer(1)) + tar_storage(7, "FloatStorage", DATA, 4)
    whole = tar_tensor(8, 7, (4,), (1,))
    value = mapping(w=integer(8) + b"Q")

    def of(storages=one, tensors=(whole,), root=value, views=b"](e"):
        return lambda path: tar(path, storages, tensors, root, views)

    def raw(*members, change=None):
        def write(path):
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
                for key, data in members:
                    info = tarfile.TarInfo(key)
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
            if change:
                with open(path, "r+b") as file:
                    change(file)
        return write
    members = (("storages", one + pickled(b"](e")), ("tensors", pickled(integer(1)) + whole),
               ("pickle", pickled(value)))

    def put(at, words, header=0):
        """Other bytes in a header, and its checksum."""
        def change(file):
            file.seek(512 * header)
            head = bytearray(file.read(512))
            head[at:at + len(words)] = words
            head[148:156] = b" " * 8
            head[148:156] = b"%06o\0 " % sum(head)
            file.seek(512 * header)
            file.write(head)
        return change

    def unpadded(file):
        data = file.read()
        file.truncate(data.rindex(members[2][1]) + len(members[2][1]))

    def spaced(file):
        """A checksum with spaces before it and none behind it, as old programs wrote it."""
        head = bytearray(file.read(512))
        head[148:156] = b" " * 8
        head[148:156] = b"%8o" % sum(head)
        file.seek(0)
        file.write(head)
    stores = ("foreign_syntax", "(key, location, type) of a storage")
    within = ("foreign_syntax", "(key, key, offset, elements) within a storage")
    count = ("foreign_syntax", "expected a number of objects")
    a_tensor = ("foreign_syntax", "(key, storage, type) of a tensor")
    member = ("foreign_syntax", "the header of a member")
    i = integer

    def view(*items):
        return of(views=b"](" + values(items) + b"e", root=mapping(w=i(8) + b"Q"))
    size = 4 + 8 + 16 + 8
    check(ctx, [
        ("plain", of(), "-", {"w": W}),
        ("of three members", raw(*members), "-", {"w": W}),
        ("spaces before a checksum", raw(*members, change=spaced), "-", {"w": W}),
        ("a checksum of letters", raw(("sys_info", b""), *members, change=lambda file: (
            file.seek(512 + 148), file.write(b"abcdefgh"))), "-", member),
        ("another checksum", raw(("sys_info", b""), *members, change=lambda file: (
            file.seek(512), file.write(b"S"))), "-", member),
        ("a size of letters", raw(*members, change=put(124, b"99999999999\0")), "-",
         ("foreign_kind", "")),
        ("a size without an end", raw(*members, change=put(124, b"%012o" % len(members[0][1]))),
         "-", {"w": W}),
        ("a size with a space behind it", raw(*members, change=put(
            124, b"%011o " % len(members[0][1]))), "-", {"w": W}),
        ("a size of spaces", raw(*members, change=put(124, b" " * 12)), "-", member),
        ("a name of 100 bytes", raw(("sys_info", b""), *members, change=put(0, b"n" * 100, 1)), "-",
         member),
        ("an end without its padding", raw(*members, change=unpadded), "-", {"w": W}),
        ("no pickle", raw(*members[:2]), "-", ("foreign_syntax", "a member \"pickle\", found none")),
        ("two of one", raw(*members, members[2]), "-",
         ("foreign_ambiguous", "one member \"pickle\", found two")),
        ("a size beyond", raw(("sys_info", b""), ("storages", b"x" * 600), change=lambda file: (
            file.truncate(1536))), "-", member),
        ("a count that is a text", of(storages=pickled(text("1"))), "-", count),
        ("a count below 0", of(storages=pickled(i(-1))), "-", count),
        ("a storage in a list", of(storages=pickled(i(1)) + pickled(b"]")), "-", stores),
        ("a storage of two", of(storages=pickled(i(1)) + pickled(b"K\1K\2\x86")), "-", stores),
        ("a storage of a text", of(storages=pickled(i(1)) + pickled(values(
            [i(7), text("cpu"), text("FloatStorage")]))), "-", stores),
        ("a storage of a device", of(storages=pickled(i(1)) + pickled(values(
            [i(7), text("cpu"), name("torch", "device")]))), "-", stores),
        ("a storage of 2^64 bytes", of(storages=pickled(i(1)) + tar_storage(
            7, "FloatStorage", DATA, 1 << 62)), "-",
         ("foreign_syntax", "as many elements as the member has")),
        ("a storage without a count", of(storages=pickled(i(1)) + tar_storage(
            7, "FloatStorage", b"", 0)[:-8], views=b"N"), "-",
         ("foreign_syntax", "more bytes of the member")),
        ("a key that is a float", of(storages=pickled(i(1)) + pickled(values(
            [real(7), text("cpu"), name("torch", "FloatStorage")])) + struct.pack("<q", 4) + DATA),
         "-", ("foreign_syntax", "a number as key")),
        ("a key in digits", of(tensors=[whole], root=mapping(w=text("8") + b"Q")), "-", {"w": W}),
        ("a long key", of(root=mapping(w=text("8" * 5000) + b"Q")), "-",
         ("foreign_syntax", "the key of a tensor or storage, found another")),
        ("a storage of more elements", of(storages=pickled(i(1)) + tar_storage(
            7, "FloatStorage", DATA, 400)), "-",
         ("foreign_syntax", "as many elements as the member has")),
        ("a key of letters", of(root=mapping(w=text("w") + b"Q")), "-",
         ("foreign_syntax", "the key of a tensor or storage, found another")),
        ("a key that is a list", of(root=mapping(w=b"]Q")), "-",
         ("foreign_syntax", "the key of a tensor or storage, found another")),
        ("a storage and a class", of(root=mapping(w=i(8) + b"Q", s=i(7) + b"Q", c=values(
            [name("a", "B"), text("f"), text("s")]) + b"Q)R")), "-", {"w": W}),
        ("views in a tuple", of(views=b")"), "-", ("foreign_syntax", "a list of views")),
        ("a view", of(views=b"](" + values([i(9), i(7), i(1), i(2)]) + b"e",
                      tensors=[tar_tensor(8, 9, (2,), (1,))]), "-", {"w": ("F32", [2], DATA[4:12])}),
        ("a view in a list", of(views=b"](]e"), "-", within),
        ("a view of three", view(i(9), i(7), i(1)), "-", within),
        ("a view of nothing", view(i(9), i(6), i(1), i(2)), "-", within),
        ("a view of a text", view(i(9), text("x"), i(1), i(2)), "-", within),
        ("a view from a text on", view(i(9), i(7), text("1"), i(2)), "-", within),
        ("a view of a text of elements", view(i(9), i(7), i(1), text("2")), "-", within),
        ("a view from -1 on", view(i(9), i(7), i(-1), i(2)), "-", within),
        ("a view of -1", view(i(9), i(7), i(1), i(-1)), "-", within),
        ("a view from 2^62 on", view(i(9), i(7), i(1 << 62), i(0)), "-", within),
        ("a view of 2^62", view(i(9), i(7), i(0), i(1 << 62)), "-", within),
        ("a view behind", view(i(9), i(7), i(5), i(0)), "-", within),
        ("a view beyond", view(i(9), i(7), i(3), i(2)), "-", within),
        ("a view of a view's key", view(i(7), i(7), i(0), i(1)), "-",
         ("foreign_ambiguous", "every key once")),
        ("a tensor in a list", of(tensors=[pickled(b"]")]), "-", a_tensor),
        ("a tensor of two", of(tensors=[pickled(b"K\x08K\7\x86")]), "-", a_tensor),
        ("a tensor of a tensor", of(tensors=[whole, tar_tensor(9, 8, (4,), (1,))]), "-", a_tensor),
        ("a tensor of 2^31 dimensions", of(tensors=[whole[:-size + 4] + b"\xff\xff\xff\x7f" +
                                                    bytes(40)]), "-",
         ("foreign_syntax", "as many dimensions as bytes")),
        ("a tensor without a rank", of(tensors=[whole[:-size + 4]]), "-",
         ("foreign_syntax", "more bytes of the member")),
        ("a tensor without an offset", of(tensors=[whole[:-8]]), "-",
         ("foreign_syntax", "more bytes of the member")),
        ("a tensor behind", of(tensors=[tar_tensor(8, 7, (4,), (1,), 5)]), "-",
         ("foreign_syntax", "a tensor within its storage")),
        ("a tensor 2^62 behind", of(tensors=[tar_tensor(8, 7, (4,), (1,), 1 << 62)]), "-",
         ("foreign_syntax", "a tensor within its storage")),
        ("a number", of(tensors=[tar_tensor(8, 7, (), (), 1)]), "-", {"w": ("F32", [], DATA[4:8])}),
        ("a stride below 0", of(tensors=[tar_tensor(8, 7, (4,), (-1,))]), "-",
         ("foreign_syntax", "sizes and strides from 0 on")),
    ])


# ── Tables of TensorFlow ──

def bundle(entries, data=DATA, header=field(1, 1, 0)):
    def write(path):
        with open(path, "wb") as file:
            file.write(table([(0, b"", header), *((0, key, value) for key, value in entries)]))
        with open(path + ".data-00000-of-00001", "wb") as file:
            file.write(data)
    return write


def checked(ctx):
    """Variables with checksums, in two files."""
    def of(first=masked(DATA[:8]), second=masked(DATA)):
        def write(path):
            with open(path, "wb") as file:
                file.write(table([(0, b"", field(1, 2, 0)),
                                  (0, b"a", variable(0, bytes_=0, crc=0)),
                                  (0, b"v", variable(2, bytes_=8, crc=first)),
                                  (0, b"w", variable(shard=1, crc=second))]))
            for shard in range(2):
                with open(path + f".data-0000{shard}-of-00002", "wb") as file:
                    file.write(DATA)
        return write
    none, wrong = ("F32", [0], b""), ("foreign_checksum", "with the recorded CRC-32C ")
    check(ctx, [
        ("right", of(), "-", {"a": none, "v": HALF, "w": W}),
        ("the first wrong", of(first=masked(DATA)), "-", wrong),
        ("the second wrong", of(second=masked(DATA[:8])), "-", wrong),
    ])


def tables(ctx):
    scalar = field(1, 1, 0) + field(5, 4, 0)
    kept = [(b"_CHECKPOINTABLE_OBJECT_GRAPH", field(1, 7, 0) + field(5, 9, 0)),
            (b"_optimizer/rate" + END, variable(1, bytes_=4)),
            (b"a/.OPTIMIZER_SLOT/opt/m" + END, variable(2, offset=8, bytes_=8)),
            (b"keras_api/metrics/0/total" + END, variable(3, bytes_=12)),
            (b"optimizer/steps" + END, scalar),
            (b"save_counter" + END, variable(1, kind=3, bytes_=4)),
            (b"w" + END, variable())]
    left = ["text", "another branch", "another branch", "another branch"]
    rate = {"_optimizer/rate": ("F32", [1], DATA[:4]), "a/.OPTIMIZER_SLOT/opt/m": (
        "F32", [2], DATA[8:]), "optimizer/steps": ("F32", [], DATA[:4])}
    rest = {"keras_api/metrics/0/total": ("F32", [3], DATA[:12]),
            "save_counter": ("I32", [1], DATA[:4])}
    swapped = b"".join(DATA[i:i + 4][::-1] for i in range(0, 16, 4))

    def one(value, key=b"w", **more):
        return bundle([(key, value)], **more)
    dims = field(2, field(1, 2, 0) + field(2, b"rows")) + field(2, field(1, 2, 0))
    two = field(1, 1, 0) + field(2, dims) + field(5, 16, 0)
    not_whole = ("foreign_dtype", "a whole tensor of a dtype of safetensors, found ")
    check(ctx, [
        ("the model", bundle(kept), "-", {"w": W, "left": left}),
        ("all", bundle(kept), "all", {"w": W, **rate, **rest, "left": ["text"]}),
        ("the optimizer", bundle(kept), "root=optimizer", rate),
        ("another branch", bundle(kept), "root=opt",
         ("foreign_branch", "model, optimizer, metrics and counters, found opt")),
        ("a short key", one(variable(), key=b"k"), "-", {"k": W}),
        ("two dimensions with names", one(two), "-", {"w": ("F32", [2, 2], DATA)}),
        ("big-endian", one(variable(), header=field(1, 1, 0) + field(2, 1, 0) + field(3, b"x")),
         "-", {"w": ("F32", [4], swapped)}),
        ("said to be little-endian", one(variable(), header=field(1, 1, 0) + field(2, 0, 0)), "-",
         {"w": W}),
        ("a shape that is a number", one(field(1, 1, 0) + field(2, 9, 0) + field(5, 4, 0)), "-",
         {"w": ("F32", [], DATA[:4])}),
        ("a dimension that is a number", one(field(1, 1, 0) + field(2, field(2, 9, 0)) +
                                             field(5, 4, 0)), "-", {"w": ("F32", [], DATA[:4])}),
        ("a shape that is known", one(scalar + field(2, field(3, 0, 0) + field(4, 1, 0))), "-",
         {"w": ("F32", [], DATA[:4])}),
        ("a shape that is not", one(scalar + field(2, field(3, 1, 0))), "-",
         (not_whole[0], not_whole[1] + "a shape that is not known")),
        ("a size below 0", one(variable(size=-1)), "-",
         (not_whole[0], not_whole[1] + "a shape that is not known")),
        ("slices", one(variable(more=field(7, b""))), "-",
         (not_whole[0], not_whole[1] + "a variable in slices")),
        ("another type", one(variable(kind=20)), "-",
         (not_whole[0], not_whole[1] + "an element type without a counterpart")),
        ("65 dimensions", one(scalar + field(2, field(2, field(1, 1, 0)) * 65)), "-",
         (not_whole[0], not_whole[1] + "more than 64 dimensions")),
        ("another file", one(variable(shard=1)), "-",
         ("foreign_size", "one of 1 files of data, found number 1")),
        ("no files", one(variable(), header=field(2, 0, 0)), "-",
         ("foreign_syntax", "1 to 100000 files of data, found 0")),
        ("a dimension that is cut", one(field(1, 1, 0) + field(2, field(2, b"\x08"))), "-",
         ("foreign_syntax", "expected a number, found the end")),
        ("a shape that is cut", one(field(1, 1, 0) + field(2, b"\x12\x09")), "-",
         ("foreign_syntax", "expected a field's bytes")),
        ("a header that is cut", one(variable(), header=b"\x08"), "-",
         ("foreign_syntax", "expected a number, found the end")),
        ("a number of 65 bits", one(b"\x08" + b"\xff" * 9 + b"\x02"), "-",
         ("foreign_syntax", "a number of at most 64 bits")),
        ("a number of 64 bits", one(variable(size=1 << 63)), "-",
         (not_whole[0], not_whole[1] + "a shape that is not known")),
        ("a number of eleven bytes", one(b"\x08" + b"\x80" * 10 + b"\0"), "-",
         ("foreign_syntax", "a number of at most 64 bits")),
        ("field 2^29", one(varint(1 << 32) + b"\0"), "-",
         ("foreign_syntax", "found tag 4294967296")),
        ("a tag of six bytes", one(b"\x88\x80\x80\x80\x80\x00\x01"), "-",
         ("foreign_syntax", "a tag or length of at most 5 bytes")),
        ("a length of six bytes", one(b"\x12\x80\x80\x80\x80\x80\x00"), "-",
         ("foreign_syntax", "a tag or length of at most 5 bytes")),
        ("field 0", one(b"\x00\x01"), "-", ("foreign_syntax", "found tag 0")),
        ("a group", one(b"\x0b"), "-", ("foreign_syntax", "found tag 11")),
        ("numbers of four and eight bytes", one(scalar + b"\x45abcd" + b"\x49abcdefgh"), "-",
         {"w": ("F32", [], DATA[:4])}),
        ("four bytes that are cut", one(scalar + b"\x45abc"), "-",
         ("foreign_syntax", "expected a number, found the end")),
    ])


def blocks(ctx):
    """LevelDB's tables, where they are wrong."""
    entries = [(0, b"", field(1, 1, 0)), (0, b"w", variable())]

    def of(**more):
        def write(path):
            with open(path, "wb") as file:
                file.write(table(entries, **more))
            with open(path + ".data-00000-of-00001", "wb") as file:
                file.write(DATA)
        return write

    def rows(raw, tail=struct.pack("<II", 0, 1)):
        first = block([], restarts=raw + tail)
        return of(first=first)
    entry = ("foreign_syntax", "expected an entry")
    fits = ("foreign_syntax", "a key and a value within the block")
    place = ("foreign_syntax", "where a block is")
    two = [block(entries[:1]), block(entries[1:])]
    second = len(two[0])
    handles = [(0, b"a", varint(0) + varint(second - 5)),
               (0, b"z", varint(second) + varint(len(two[1]) - 5))]

    def footer(words):
        def write(path):
            of()(path)
            with open(path, "r+b") as file:
                file.seek(-48, 2)
                file.write(words)
        return write
    check(ctx, [
        ("two blocks", of(first=b"".join(two), handles=handles), "-", {"w": W}),
        ("blocks that overlap", of(first=b"".join(two), handles=[handles[0], (
            0, b"z", varint(0) + varint(second - 5))]), "-",
         ("foreign_ambiguous", "between the last one and the index, found one at byte 0")),
        ("a block beyond", of(handles=[(0, b"z", varint(1) + varint(1 << 20))]), "-",
         ("foreign_ambiguous", "found one at byte 1")),
        ("a block that begins beyond", of(handles=[(0, b"z", varint(1 << 20) + varint(1))]), "-",
         ("foreign_ambiguous", "found one at byte 1048576")),
        ("the length of a shared key, cut", rows(b"\x80"), "-", entry),
        ("the length of a key, cut", rows(b"\0\x80"), "-", entry),
        ("the length of a value, cut", rows(b"\0\0\x80"), "-", entry),
        ("a number of 65 bits", rows(b"\xff" * 9 + b"\x02\0\0"), "-", entry),
        ("a number of 64 bits", rows(b"\xff" * 9 + b"\x01\0\0"), "-", fits),
        ("a key that is too long", rows(b"\0" + varint(65537) + b"\0"), "-", fits),
        ("a key beyond", rows(b"\0\x02\0k"), "-", fits),
        ("a value beyond", rows(b"\0\x01\x02kv"), "-", fits),
        ("more restarts", rows(b"", struct.pack("<I", 9)), "-",
         ("foreign_syntax", "a block with its restarts")),
        ("a block of three bytes", rows(b"abc", b""), "-",
         ("foreign_syntax", "a block with its restarts")),
        ("keys in another order", of(first=block([entries[0], (0, b"w", variable()),
                                                  (0, b"v", variable())])), "-",
         ("foreign_ambiguous", "found \"v\" after \"w\"")),
        ("no header", of(first=block(entries[1:])), "-",
         ("foreign_kind", "which begins with an empty key, found \"w\"")),
        ("the place of the index, cut", footer(b"\0\0" + b"\x80" * 38), "-",
         ("foreign_syntax", "where the index is")),
        ("the place of the names of blocks, cut", footer(b"\x80" * 40), "-",
         ("foreign_syntax", "where the index is")),
        ("an index of 64 GiB", footer((b"\0\0\0" + varint(1 << 36)).ljust(40, b"\0")), "-",
         ("foreign_table", "at most 64 MiB, found 68719476736 bytes")),
        ("the place of a block, cut", of(handles=[(0, b"z", b"\0\x80")]), "-", place),
        ("the place of a block, empty", of(handles=[(0, b"z", b"")]), "-", place),
        ("an index of no entries", of(index=block([], restarts=b"\x80" + struct.pack("<II", 0, 1))),
         "-", entry),
    ])


# ── Names and branches ──

def branches(ctx):
    half = tensor(size=(2,))
    tree = mapping(**{"a.b": mapping(w=tensor()), "a": mapping(b=mapping(v=half), c=b"]"),
                      "l": b"](" + tensor(size=(3,)) + b"e", "n": b"K\1"})
    third = ("F32", [3], DATA[:12])
    none = ("foreign_branch", "expected a branch with tensors, found none at ")
    ema = mapping(ema_model=mapping(w=tensor()), v=mapping(w=half))

    def nested(value, *keys):
        for key in reversed(keys):
            value = mapping(**{key: value})
        return value
    many = mapping(model=mapping(w=tensor()), **{f"b{i}": mapping(v=half) for i in range(1001)})
    check(ctx, [
        ("all of it", tree, "root=", {"a.b.w": W, "a.b.v": HALF, "l.0": third}),
        ("the longest key", tree, "root=a.b", {"w": W}),
        ("a path", tree, "root=a", {"b.v": HALF}),
        ("an item", tree, "root=l.0", {"tensor": third}),
        ("a tensor by its key", tree, "root=a.b.w", {"w": W}),
        ("an item that is not there", tree, "root=l.1", (none[0], none[1] + '"l.1"')),
        ("no tensors", tree, "root=a.c", (none[0], none[1] + '"a.c"')),
        ("a number", tree, "root=n", (none[0], none[1] + '"n"')),
        ("half a key", tree, "root=a.", (none[0], none[1] + '"a."')),
        ("beneath a tensor", tree, "root=l.0.x", (none[0], none[1] + '"l.0.x"')),
        ("a tensor alone", tensor(), "-", {"tensor": W}),
        ("a key below 0", b"}" + integer(-5) + mapping(w=tensor()) + b"s", "root=-5", {"w": W}),
        ("the least key", b"}" + integer(-1 << 63) + tensor() + b"s", "-",
         {"-9223372036854775808": W}),
        ("models in models", nested(tensor(), "model", "state_dict", "model_state_dict", "w"), "-",
         {"w": W}),
        ("five levels", nested(tensor(), *["state_dict"] * 6, "w"), "-",
         {"state_dict.state_dict.w": W}),
        ("a model beside more tensors", mapping(model=nested(tensor(size=(1,)), "w"), v=tensor()),
         "-", {"model.w": ("F32", [1], DATA[:4]), "v": W}),
        ("a model and other tensors of it", mapping(model=mapping(state_dict=mapping(w=tensor()),
                                                                  v=half)), "-",
         {"state_dict.w": W, "v": HALF}),
        ("a likelier key", mapping(params=mapping(w=half), state_dict=mapping(w=tensor())), "-",
         {"w": W}),
        ("an optimizer beside tensors", mapping(w=tensor(), optimizer=mapping(v=half), lr=b"K\1"),
         "-", {"w": W, "left": ["tensors of another branch",
                                "numbers: 1, texts: 0, other values: 0"]}),
        ("an optimizer alone", mapping(optimizer=mapping(v=half)), "-", {"optimizer.v": HALF}),
        ("averages beside tensors", ema, "-", {"v.w": HALF}),
        ("averages and all", ema, "all", {"v.w": HALF, "ema_model.w": W}),
        ("a short key", mapping(em=mapping(w=tensor()), ema=mapping(v=half)), "-", {"v": HALF}),
        ("a path of ten levels", nested(mapping(w=tensor()), *"abcdefghij"),
         "root=a.b.c.d.e.f.g.h.i.j", {"w": W, "left": []}),
        ("a path of ten levels, and what is beside it", nested(mapping(v=half, k=nested(
            mapping(w=tensor()), *"ghij")), *"abcdef"), "root=a.b.c.d.e.f.k.g.h.i.j",
         {"w": W, "left": ["tensors of another branch"]}),
        ("an empty key", mapping(**{"": mapping(x=mapping(w=tensor()))}), "root=.x", {"w": W}),
        ("a branch within itself", b"}" + text("a") + b"}q\1" + text("w") + tensor() + b"s" +
         text("b") + b"h\1ss", "root=a.b", (none[0], none[1] + '"a.b"')),
        ("a float beside the model", b"}" + text("model") + mapping(w=tensor()) + b"s" + real(1.5) +
         mapping(v=half) + b"s", "-", {"w": W, "left": ["tensors of another branch"]}),
        ("what stands beside", mapping(model=mapping(w=tensor()), epoch=b"K\7", n=b"N",
                                       args=mapping(a=b"K\1", b=b"N"), **{"": b"]"}), "-",
         {"w": W, "left": ["the integer 7", "None", "a dict of 2 values", "a list"]}),
        ("more than a thousand beside", many, "-",
         {"w": W, "left": ["tensors of another branch"] * 1000 + ["more that is not listed"]}),
    ])


def names(ctx):
    half = tensor(size=(2,))
    key = ("foreign_name", "expected text or an integer as key of a tensor, found ")

    def of(pickle_key, value=None):
        return b"}" + pickle_key + (value or tensor()) + b"s"
    net = call("net", "Net")
    twice = ("foreign_ambiguous", "found \"of a number\" twice")
    check(ctx, [
        ("a float", of(real(1.5)), "-", (key[0], key[1] + "a number")),
        ("None", of(b"N"), "-", (key[0], key[1] + "None")),
        ("bytes", of(b"C\1k"), "-", (key[0], key[1] + "bytes")),
        ("a long text", lambda path: legacy(path, of(text("k" * 5000)), [(b"0", 4, DATA)]), "-",
         (key[0], key[1] + "text")),
        ("None, and that is well", b"}N" + tensor() + b"s" + text("v") + half + b"s", "skip",
         {"v": HALF}),
        ("1 and 1.5", b"}K\1" + tensor() + b"s" + real(1.5) + b"Ns", "-", {"1": W}),
        ("1 and False", b"}K\1" + tensor() + b"s\x89Ns", "-", {"1": W}),
        ("2^80 and infinity", b"}K\1" + tensor() + b"s" + real(2.0 ** 80) + b"Ns" +
         real(float("inf")) + b"Ns" + real(-2.0 ** 80) + b"Ns", "-", {"1": W}),
        ("1.0 twice", b"}" + real(1) + tensor() + b"s" + real(1) + b"Ns", "-", twice),
        ("texts and numbers, many", b"}(" + b"".join(
            integer(i) + b"N" + text(str(i)) + b"N" for i in range(300)) + text("w") + tensor() +
         b"u", "-", {"w": W}),
        ("a tensor as key", b"}" + half + b"Ns" + text("w") + tensor() + b"s", "-",
         {"w": W, "left": ["tensors that are keys of dicts"]}),
        ("a tuple of a tensor as key", b"}" + values([half, b"N"]) + b"Ns" + text("w") + tensor() +
         b"s", "-", {"w": W, "left": ["tensors that are keys of dicts"]}),
        ("a tensor as key of what is hidden", mapping(w=call(
            "torch._utils", "_rebuild_parameter_with_state", tensor(), b"\x89", HOOKS,
            mapping(tag=b"}" + half + b"Ns"))), "-",
         {"w": W, "left": ["tensors that are keys of dicts"]}),
        ("texts", mapping(w=tensor(), t=text("x"), f=real(0.5)), "-",
         {"w": W, "left": ["numbers: 1, texts: 1, other values: 0"]}),
        ("a set", mapping(v=half, s=call("builtins", "set", b"](" + tensor() + b"e")), "skip",
         {"v": HALF}),
        ("a set of numbers", mapping(v=half, s=call("builtins", "set", b"](K\1e")), "-",
         {"v": HALF}),
        ("a prefix", mapping(**{"m.w": tensor(), "m.": half, "n": tensor(size=(1,))}),
         "prefix=m.", {"w": W, "m.": HALF, "n": ("F32", [1], DATA[:4])}),
        ("one name of two", mapping(**{"m.w": tensor(), "w": half}), "prefix=m.",
         ("foreign_name", "found that of another tensor")),
        ("one name of two, and that is well", mapping(**{"m.w": tensor(), "w": half}),
         "prefix=m.,skip", {"w": W}),
        ("shared", mapping(v=half, w=tensor()), "shared=refuse",
         ("foreign_shared", "found some of the bytes of ")),
        ("shared as a whole", mapping(v=tensor(), w=tensor()), "shared=refuse",
         ("foreign_shared", "found all of the bytes of ")),
        ("copied", mapping(v=tensor(), w=tensor()), "shared=copy", {"v": W, "w": W}),
        ("more than is wanted", mapping(w=tensor()), "max=15",
         ("foreign_output", "at most 15 bytes of tensors")),
        ("as much as is wanted", mapping(w=tensor()), "max=16", {"w": W}),
        ("an object without attributes", mapping(v=half, w=net), "-", {"v": HALF}),
        ("2^63 elements of one", mapping(w=tensor(size=(1 << 40, 1 << 21), stride=(0, 0))), "-",
         ("size_overflow", "at most 2^64 - 1 bits")),
        ("2^64 elements", mapping(w=tensor(size=(1 << 40, 1 << 40), stride=(0, 0))), "-",
         ("size_overflow", "less than 2^64 bits")),
        ("2^64 between elements", mapping(w=tensor(size=(3,), stride=((1 << 63) - 1,))), "-",
         ("size_overflow", "less than 2^64 bits")),
        ("2^64 in two dimensions", mapping(w=tensor(size=(2, 2), stride=((1 << 63) - 1,) * 2)),
         "-", ("size_overflow", "less than 2^64 bits")),
    ])


def text_pickles(ctx):
    """Pickles of protocols 0 and 1, which have no mark of their own."""
    array = (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I4\nt"
             b"cnumpy\ndtype\n(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'abcd'\ntb")
    found = {"w": ("U8", [4], b"abcd")}

    def of(raw):
        def write(path):
            with open(path, "wb") as file:
                file.write(raw)
        return write
    check(ctx, [
        ("a dict", of(b"(dp0\nS'w'\n" + array + b"s."), "-", found),
        ("a list", of(b"(lp0\n" + array + b"a."), "-", {"0": found["w"]}),
        ("a dict of protocol 1", of(b"}q\0U\1w" + array + b"s."), "-", found),
        ("a list of protocol 1", of(b"]q\0" + array + b"a."), "-", {"0": found["w"]}),
        ("without its end", of(b"(dp0\nS'w'\n" + array + b"s"), "-", ("foreign_kind", "")),
        ("of three bytes", of(b"(dp"), "-", ("foreign_kind", "")),
        ("of protocol 6", of(b"\x80\6}."), "-", ("foreign_kind", "")),
        ("of protocol 1, said so", of(b"\x80\1}."), "-", ("foreign_kind", "")),
        ("that begins as none", of(b"\x80\2\xff."), "-", ("foreign_kind", "")),
        ("of PyTorch", of_plain(mapping(w=call("torch._utils", "_rebuild_nested_tensor"))), "-",
         ("foreign_object", "found what _rebuild_nested_tensor makes")),
    ])


def cases(ctx):
    for function in [shards, archives, streams, tars, tables, checked, blocks, branches, names, text_pickles]:
        yield function.__name__, functools.partial(function, ctx)
