"""Zip archives that two readers would read as two: every one is refused, with its rule.

The first rows are those of torch.load beside Python's zipfile: one of the two loads each of these
files, and the other refuses it or finds other bytes. ctx as in npy_cases.py.
"""
import io
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402
from zip_make import DESCRIBED, UTF8, Entry, archive, wide  # noqa: E402


def array(value=1.0, count=4):
    out = io.BytesIO()
    np.save(out, np.full(count, float(value)))
    return out.getvalue()


ONE, TWO = array(1), array(2)
PKL = b"\x80\2}q\0."


def torch(*more, top="m", pkl="data.pkl"):
    """The entries that torch.save writes of nothing, and more."""
    names = [(f"{top}/{pkl}", PKL), (f"{top}/byteorder", b"little"), (f"{top}/version", b"3\n")]
    return [Entry(*pair, flags=UTF8 | DESCRIBED) for pair in names] + list(more)


def pair(**second):
    """Two arrays, of which the second is strange."""
    return [Entry("a.npy", ONE), Entry("b.npy", TWO, **second)]


def squeezed(data):
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return squeeze.compress(data) + squeeze.flush()


def local_len(name, extra=0):
    return 30 + len(name) + extra


FIRST_END = local_len("a.npy") + len(ONE)  # of the data of pair()'s first entry


def put(data, at, kind, *numbers):
    """The archive with other numbers at a place, of the end if that is below 0."""
    at = at if at >= 0 else len(data) + at
    more = struct.pack(kind, *numbers)
    return data[:at] + more + data[at + len(more):]


END64 = -22 - 20 - 56  # of an archive without a comment
SQUEEZED = len(squeezed(TWO))

# What it is, its code, a word of the message, the file.
HOSTILE = [
    # torch.load beside zipfile
    ("DATA.PKL, which torch takes for data.pkl", "foreign_ambiguous", "DATA.PKL",
     archive(torch(pkl="DATA.PKL"))),
    ("data.pkl twice, by case folding", "foreign_ambiguous", "once",
     archive(torch(Entry("m/Data.pkl", PKL)))),
    ("a record twice: torch takes the first, zipfile the last", "foreign_ambiguous", "once",
     archive(torch(Entry("m/data/0", b"1234"), Entry("m/data/0", b"5678")))),
    ("records that differ in case", "foreign_ambiguous", "once",
     archive(torch(Entry("m/data/a", b"1234"), Entry("m/data/A", b"5678")))),
    ("a local header of another name", "foreign_ambiguous", "local header",
     archive(pair(local={"name": b"c.npy"}))),
    ("a folder with bytes, of which torch reads none", "foreign_ambiguous", "without bytes",
     archive(torch(Entry("m/data/0", b"1234", attributes=0x10)))),
    ("two top folders", "foreign_ambiguous", "one folder",
     archive(torch(Entry("n/data/0", b"1234")))),
    ("an entry beside the folder", "foreign_ambiguous", "one folder",
     archive(torch(Entry("data", b"1234")))),
    ("a flipped byte in the data", "foreign_checksum", "CRC-32",
     archive(pair(stored=TWO[:-1] + b"x"))),
    ("encrypted, says the directory", "foreign_kind", "encrypted",
     archive(pair(central={"flags": 1}))),
    ("encrypted", "foreign_kind", "encrypted", archive(pair(flags=1))),
    ("strongly encrypted", "foreign_kind", "encrypted", archive(pair(flags=0x41))),
    # local header beside directory
    ("a local header of a name of another length", "foreign_ambiguous", "length",
     archive(pair(local={"name": b"bb.npy"}))),
    ("another method in the local header", "foreign_ambiguous", "method",
     archive(pair(local={"method": 8}))),
    ("other flags in the local header", "foreign_ambiguous", "flags",
     archive(pair(local={"flags": UTF8}))),
    ("another checksum in the local header", "foreign_ambiguous", "checksum",
     archive(pair(local={"crc": 1}))),
    ("another size in the local header", "foreign_ambiguous", "sizes",
     archive(pair(local={"usize": len(TWO) - 8, "csize": len(TWO) - 8}))),
    ("no size in the local header", "foreign_ambiguous", "sizes",
     archive(pair(local={"usize": 0, "csize": 0}))),
    ("another size behind the data", "foreign_ambiguous", "behind the data",
     archive(pair(flags=DESCRIBED,
                  tail=struct.pack("<IIII", 0x08074b50, zlib.crc32(TWO), 8, 8)))),
    ("another checksum behind the data", "foreign_ambiguous", "behind the data",
     archive(pair(flags=DESCRIBED,
                  tail=struct.pack("<IIII", 0x08074b50, 1, len(TWO), len(TWO))))),
    ("nothing behind the data", "foreign_ambiguous", "behind the data",
     archive(pair(flags=DESCRIBED, tail=b""))),
    ("no local header", "foreign_ambiguous", "local header",
     archive(pair(before=b"no header", central={"at": FIRST_END}))),
    # sizes and places
    ("two entries of the same bytes", "foreign_ambiguous", "overlap",
     archive(pair(central={"at": 0}))),
    ("data that run into the next entry", "foreign_ambiguous", "overlap",
     archive([Entry("a.npy", ONE, central={"usize": 999, "csize": 999},
                    local={"usize": 999, "csize": 999}), Entry("b.npy", TWO)])),
    ("data that run into the directory", "foreign_ambiguous", "overlap",
     archive(pair(central={"usize": len(TWO) + 4, "csize": len(TWO) + 4},
                  local={"usize": len(TWO) + 4, "csize": len(TWO) + 4}))),
    ("an entry behind the directory's beginning", "foreign_ambiguous", "overlap",
     archive(pair(central={"at": 10000}))),
    ("an entry at the end of all numbers", "foreign_ambiguous", "overlap",
     archive(pair(central={"at": 0xffffffff}, central_extra=wide((1 << 64) - 1)))),
    ("an extra field as long as the file", "foreign_ambiguous", "extra",
     archive(pair(extra=struct.pack("<HH", 0x4246, 60000)))),
    ("stored bytes of two sizes", "foreign_ambiguous", "size",
     archive(pair(central={"usize": len(TWO) - 8}, local={"usize": len(TWO) - 8}))),
    ("an entry that the directory does not tell", "foreign_ambiguous", "not in the directory",
     archive(pair(), before_directory=Entry("c.npy", TWO).local_bytes() + TWO)),
    ("an entry in between that the directory does not tell", "foreign_ambiguous", "directory",
     archive(pair(before=Entry("c.npy", TWO).local_bytes() + TWO))),
    ("a first entry that the directory does not tell", "foreign_ambiguous", "begin",
     archive([Entry("a.npy", ONE, before=Entry("c.npy", TWO).local_bytes() + TWO)])),
    ("a folder with deflated bytes of none", "foreign_ambiguous", "folder",
     archive([Entry("a.npy", ONE), Entry("b/", b"", method=8)])),
    ("2^63 deflated bytes", "foreign_ambiguous", "overlap",
     archive(pair(method=8, central={"csize": 0xffffffff}, central_extra=wide(1 << 63),
                  local={"csize": 0xffffffff}, extra=wide(1 << 63)))),
    ("a folder with bytes", "foreign_ambiguous", "folder",
     archive([Entry("a.npy", ONE), Entry("b/", TWO)])),
    # the directory
    ("fewer entries than are told", "foreign_ambiguous", "only", archive(pair(), n=3)),
    ("more entries than are told", "foreign_ambiguous", "more bytes", archive(pair(), n=1)),
    ("more entries than there are bytes", "foreign_ambiguous", "only",
     archive(pair(), end64={"n": 1 << 22}, n=0xffff)),
    ("too many entries", "foreign_table", "at most",
     archive(pair(), end64={"n": (1 << 22) + 1}, n=0xffff)),
    ("a directory that does not end where it should", "foreign_ambiguous", "to end",
     archive(pair(), size=50)),
    ("a directory of the wrong place", "foreign_ambiguous", "to end", archive(pair(), at=3)),
    ("bytes between the directory and its end", "foreign_ambiguous", "to end",
     archive(pair(), end=b"x" * 4 + archive(pair())[-22:])),
    ("of several disks", "foreign_kind", "one file", archive(pair(), disk=1)),
    ("that begins on another disk", "foreign_kind", "disk 1 of several",
     put(archive(pair()), -22 + 6, "<H", 1)),
    ("of several disks, by one of the ends", "foreign_kind", "disk 65536 of several",
     put(archive(pair(), end64={}), -22 + 4, "<H", 0xffff)),
    ("of several disks, without a ZIP64 end", "foreign_kind", "disk 65536 of several",
     put(archive(pair()), -22 + 4, "<HH", 0xffff, 0xffff)),
    ("of a disk that the ZIP64 end does not have", "foreign_kind", "disk 6 of several",
     put(archive(pair(), end64={}), -22 + 4, "<HH", 5, 0xffff)),
    *((f"a ZIP64 end of another disk, at {at}", "foreign_kind", "several disks",
       put(archive(pair(), end64={}), END64 + at, "<I", 1)) for at in (16, 20, 56 + 4)),
    ("a ZIP64 end that is none", "foreign_ambiguous", "directly before its locator",
     put(archive(pair(), end64={}), END64, "<I", 0)),
    ("a ZIP64 end of two counts", "foreign_ambiguous", "two",
     put(archive(pair(), end64={}), END64 + 24, "<Q", 3)),
    ("an end of two counts beside one of ZIP64", "foreign_ambiguous", "two",
     put(archive(pair(), end64={}), -22 + 10, "<H", 3)),
    ("no room for a ZIP64 end", "foreign_syntax", "found the start of the file",
     Entry("a").local_bytes() + struct.pack("<IIQI", 0x07064b50, 0, 0, 1) + archive([])),
    ("an entry of another disk", "foreign_kind", "disk", archive(pair(disk=1))),
    # names
    ("a name with a NUL, where zipfile cuts it", "foreign_ambiguous", "NUL",
     archive([Entry("a.npy", ONE), Entry(b"b.npy\0c.npy", TWO)])),
    ("a name of code page 437", "foreign_ambiguous", "UTF-8",
     archive([Entry("a.npy", ONE), Entry("é.npy", TWO, flags=0)])),
    ("a name that is not UTF-8", "foreign_name", "UTF-8",
     archive([Entry("a.npy", ONE), Entry(b"\xff.npy", TWO, flags=UTF8)])),
    ("no name", "foreign_syntax", "name", archive([Entry("a.npy", ONE), Entry("", TWO)])),
    ("a longer name in an extra field", "foreign_ambiguous", "one name",
     archive(pair(central_extra=struct.pack("<HHBI", 0x7075, 11, 1, 0) + b"b.npyx"))),
    ("another name in an extra field", "foreign_ambiguous", "one name",
     archive(pair(central_extra=struct.pack("<HHBI", 0x7075, 10, 1, 0) + b"c.npy"))),
    ("another name in an extra field of the local header", "foreign_ambiguous", "one name",
     archive(pair(extra=struct.pack("<HHBI", 0x7075, 10, 1, 0) + b"c.npy"))),
    ("an array twice", "foreign_ambiguous", "once",
     archive([Entry("a.npy", ONE), Entry("a.npy", TWO)])),
    # the end
    ("a second end in the comment", "foreign_ambiguous", "to end",
     archive(pair(), comment=archive(pair())[-22:])),
    ("the mark of an end in the comment", "foreign_ambiguous", "comment",
     archive(pair(), comment=b"PK\5\6")),
    ("bytes behind the end", "foreign_syntax", "end the file", archive(pair(), after=b"x")),
    ("many bytes behind the end", "foreign_truncated", "directory",
     archive(pair(), after=b"x" * 70000)),
    # ZIP64
    ("ends that contradict each other: count", "foreign_ambiguous", "two",
     archive(pair(), end64={}, n=1)),
    ("ends that contradict each other: offset", "foreign_ambiguous", "two",
     archive(pair(), end64={"at": 5})),
    ("ends that contradict each other: size", "foreign_ambiguous", "two",
     archive(pair(), end64={"size": 5})),
    ("a ZIP64 end elsewhere", "foreign_ambiguous", "ZIP64", archive(pair(), end64={"where": 0})),
    ("a ZIP64 end of another length", "foreign_ambiguous", "ZIP64",
     archive(pair(), end64={"length": 45})),
    ("a ZIP64 end of two disks", "foreign_kind", "disks", archive(pair(), end64={"disks": 2})),
    ("a count that overflows", "foreign_table", "at most",
     archive(pair(), end64={"n": (1 << 64) - 1}, n=0xffff)),
    ("an offset that overflows", "foreign_ambiguous", "to end",
     archive(pair(), end64={"at": (1 << 64) - 8}, at=0xffffffff)),
    ("sizes that need a ZIP64 field, without one", "foreign_ambiguous", "ZIP64",
     archive(pair(central={"usize": 0xffffffff, "csize": 0xffffffff}))),
    ("sizes that need a ZIP64 field, with one of them", "foreign_ambiguous", "ZIP64",
     archive(pair(central={"usize": 0xffffffff, "csize": 0xffffffff},
                  central_extra=wide(len(TWO))))),
    ("a place that needs a ZIP64 field, with sizes in it", "foreign_ambiguous", "ZIP64",
     archive(pair(central={"usize": 0xffffffff, "csize": 0xffffffff, "at": 0xffffffff},
                  central_extra=wide(len(TWO), len(TWO))))),
    ("one of two local sizes in a ZIP64 field", "foreign_ambiguous", "ZIP64",
     archive(pair(local={"usize": 0xffffffff, "csize": 0xffffffff}, extra=wide(len(TWO))))),
    *((f"described by {what}", "foreign_ambiguous", "behind the data",
       archive(pair(flags=DESCRIBED, tail=tail)))
      for what, tail in [
          ("a mark and no more", struct.pack("<I", 0x08074b50)),
          ("another size in 64 bits", struct.pack("<IIQQ", 0x08074b50, zlib.crc32(TWO), len(TWO),
                                                  8)),
          ("another stored size in 64 bits", struct.pack("<IQQ", zlib.crc32(TWO), 8, len(TWO))),
          ("another stored size", struct.pack("<III", zlib.crc32(TWO), 8, len(TWO))),
          ("another size", struct.pack("<III", zlib.crc32(TWO), len(TWO), 8))]),
    ("a ZIP64 field that is not needed", "foreign_ambiguous", "ZIP64",
     archive(pair(central_extra=wide(len(TWO))))),
    ("two ZIP64 fields", "foreign_ambiguous", "two",
     archive(pair(central={"usize": 0xffffffff, "csize": 0xffffffff},
                  central_extra=wide(len(TWO), len(TWO)) + wide(8, 8)))),
    ("an extra field that is cut", "foreign_ambiguous", "extra",
     archive(pair(central_extra=b"\1\0\x10"))),
    ("another size in the local ZIP64 field", "foreign_ambiguous", "sizes",
     archive(pair(local={"usize": 0xffffffff, "csize": 0xffffffff}, extra=wide(8, 8)))),
    ("no local ZIP64 field", "foreign_ambiguous", "ZIP64",
     archive(pair(local={"usize": 0xffffffff, "csize": 0xffffffff}))),
    # deflate
    *((f"compressed by method {method}", "foreign_kind", word,
       archive(pair(central={"method": method}, local={"method": method})))
      for method, word in ((1, "shrunk"), (9, "Deflate64"), (12, "bzip2"), (14, "LZMA"),
                           (93, "zstd"), (95, "xz"), (99, "AES"), (77, "not known"))),
    ("a flag that is not known", "foreign_syntax", "flags", archive(pair(flags=0x10))),
    ("more declared than deflate can make", "foreign_size", "1032",
     archive(pair(method=8, central={"usize": 1 << 30}, local={"usize": 1 << 30}))),
    ("less inflated than declared", "foreign_size", "inflated",
     archive(pair(method=8, central={"usize": len(TWO) + 8}, local={"usize": len(TWO) + 8}))),
    ("more inflated than declared", "foreign_size", "inflated",
     archive(pair(method=8, central={"usize": len(TWO) - 8}, local={"usize": len(TWO) - 8}))),
    ("bytes behind the deflated data", "foreign_size", "inflated",
     archive(pair(method=8, stored=squeezed(TWO) + b"more"))),
    ("deflated data that are cut", "foreign_size", "inflated",
     archive(pair(method=8, stored=squeezed(TWO)[:-2]))),
    ("deflated data that are none", "foreign_syntax", "deflated",
     archive(pair(method=8, stored=b"\7" * 60))),
    ("deflated data of another checksum", "foreign_checksum", "CRC-32",
     archive(pair(method=8, crc=1))),
    # not archives of tensors
    ("a torch.export archive", "foreign_kind", ".pt2",
     archive([Entry("m/archive_format", b"pt2"), Entry("m/data/weights/0", b"1")])),
    ("a TorchServe archive", "foreign_kind", "TorchServe",
     archive([Entry("MAR-INF/MANIFEST.json", b"{}"), Entry("model.pt", b"1")])),
    ("a Keras archive", "foreign_kind", "Keras",
     archive([Entry("config.json", b"{}"), Entry("model.weights.h5", b"1")])),
    ("an archive of models", "foreign_kind", "model files",
     archive([Entry("readme", b"1"), Entry("x/model.safetensors", b"1")])),
    ("arrays and other files", "foreign_kind", "NumPy arrays and other",
     archive([Entry("a.npy", ONE), Entry("readme", b"1")])),
    ("something else", "foreign_kind", "other files", archive([Entry("readme", b"1")])),
    ("nothing", "foreign_kind", "empty", archive([])),
]

GOOD = [
    ("its name again in an extra field of the directory", archive(pair(
        central_extra=struct.pack("<HHBI", 0x7075, 10, 1, 0) + b"b.npy"))),
    ("ends of all disks, of which the ZIP64 end has one",
     put(archive(pair(), end64={}), -22 + 4, "<HH", 0xffff, 0xffff)),
    ("an empty folder, said to be one", archive([Entry("a.npy", ONE), Entry("x/", attributes=16),
                                                 Entry("b.npy", TWO)])),
    ("a ZIP64 field of the directory for its stored size alone", archive(pair(
        method=8, central={"csize": 0xffffffff}, central_extra=wide(SQUEEZED)))),
    ("as it should be", archive(pair())),
    ("deflated", archive(pair(method=8))),
    ("deflated in pieces that flush", archive(pair(
        method=8, stored=(lambda z: z.compress(TWO[:50]) + z.flush(zlib.Z_FULL_FLUSH)
                          + z.compress(TWO[50:]) + z.flush())(
                              zlib.compressobj(1, zlib.DEFLATED, -15))))),
    ("a comment", archive(pair(), comment=b"PK and more")),
    ("the longest comment", archive(pair(), comment=b"c" * 65535)),
    ("a folder", archive([Entry("a.npy", ONE), Entry("x/"), Entry("b.npy", TWO)])),
    ("a directory in another order", archive(pair(), order=[1, 0])),
    ("ZIP64 end", archive(pair(), end64={})),
    ("ZIP64 end alone", archive(pair(), end64={}, n=0xffff, size=0xffffffff, at=0xffffffff)),
    ("ZIP64 fields", archive(pair(central={"usize": 0xffffffff, "csize": 0xffffffff,
                                           "at": 0xffffffff},
                                  central_extra=wide(len(TWO), len(TWO), FIRST_END)))),
    ("a local ZIP64 field", archive(pair(local={"usize": 0xffffffff, "csize": 0xffffffff},
                                         extra=wide(len(TWO), len(TWO))))),
    ("described", archive(pair(flags=DESCRIBED))),
    ("described, without the mark", archive(pair(flags=DESCRIBED, tail=struct.pack(
        "<III", zlib.crc32(TWO), len(TWO), len(TWO))))),
    ("described in 64 bits", archive(pair(flags=DESCRIBED, tail=struct.pack(
        "<IIQQ", 0x08074b50, zlib.crc32(TWO), len(TWO), len(TWO))))),
    ("described in 64 bits, without the mark", archive(pair(flags=DESCRIBED, tail=struct.pack(
        "<IQQ", zlib.crc32(TWO), len(TWO), len(TWO))))),
    ("described twice", archive(pair(flags=DESCRIBED, local={
        "crc": zlib.crc32(TWO), "usize": len(TWO), "csize": len(TWO)}))),
    ("marked as UTF-8", archive(pair(flags=UTF8))),
    ("its name again in an extra field", archive(pair(
        extra=struct.pack("<HHBI", 0x7075, 10, 1, 0) + b"b.npy"))),
    ("padding in an extra field", archive(pair(extra=struct.pack("<HH", 0x4246, 9) + b"Z" * 9))),
]


def path_of(ctx, data, name="x.zip"):
    path = os.path.join(ctx.folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def hostile(ctx, code, says, data):
    message = files.refuse(ctx, path_of(ctx, data), code)
    assert says in message, message


def good(ctx, data):
    files.same(files.convert(ctx, path_of(ctx, data)),
               {"a": np.full(4, 1.0), "b": np.full(4, 2.0)})


def gap(ctx):
    """Bytes that no entry has are told."""
    found, said = files.convert_and_say(ctx, path_of(ctx, archive(pair(before=b"gap!"))))
    files.same(found, {"a": np.full(4, 1.0), "b": np.full(4, 2.0)})
    assert "between the entries" in said, said


def changed(ctx, data, step):
    """Each byte changed, each length cut: refused, or what numpy finds, too."""
    whole = {"a": np.full(4, 1.0), "b": np.full(4, 2.0)}
    out = os.path.join(ctx.folder, "out.safetensors")
    tried = 0
    for at in range(0, len(data), step):
        for other in (data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1:],
                      data[:at] + bytes([255 - data[at]]) + data[at + 1:], data[:at]):
            path = path_of(ctx, other)
            done = files.run(ctx, "convert", path, "-o", out, "--force", "--no-sync")
            assert done.returncode in (0, 1, 2), (at, done)
            assert "internal" not in done.stderr, (at, done)
            if done.returncode:
                continue
            tried += 1
            found = files.read(out)[0]
            if other[:4] != b"PK\3\4":
                continue
            try:
                with np.load(path) as archive_:
                    theirs = {key: archive_[key] for key in archive_.files}
            except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError,
                    KeyError, SyntaxError):
                theirs = whole  # what numpy cannot read: then it must be as it was
            files.same(found, theirs)
    assert 0 < tried < len(data) // step


def made_by(ctx, command):
    """An archive that another program made."""
    if not shutil.which(command[0]):
        return
    folder = os.path.join(ctx.folder, "in")
    os.makedirs(folder, exist_ok=True)
    for name, data in (("a.npy", ONE), ("b.npy", TWO)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    path = os.path.join(ctx.folder, "made.zip")
    if os.path.exists(path):
        os.remove(path)
    done = subprocess.run([word.replace("OUT", path) for word in command], cwd=folder,
                          capture_output=True)
    assert done.returncode == 0, done
    files.same(files.convert(ctx, path), {"a": np.full(4, 1.0), "b": np.full(4, 2.0)})


def many(ctx):
    """Thousands of entries; in full more than 65,535."""
    for count in (20000, 70000) if ctx.full else (5000,):
        entries = [Entry(f"tensor.{i}.npy", ONE) for i in range(count)]
        wide_end = {} if count > 65535 else None
        data = archive(entries, end64=wide_end, n=min(count, 65535))
        found = files.convert(ctx, path_of(ctx, data))
        assert len(found) == count and found[f"tensor.{count - 1}"][0] == 1


def cases(ctx):
    for what, code, says, data in HOSTILE:
        yield f"zip: {what}", lambda c=code, s=says, d=data: hostile(ctx, c, s, d)
    for what, data in GOOD:
        yield f"zip, read: {what}", lambda d=data: good(ctx, d)
    yield "zip: bytes between the entries", lambda: gap(ctx)
    step = 1 if ctx.full else 41
    yield "zip: every byte changed", lambda: changed(ctx, archive(pair()), step)
    yield "zip: every byte changed, deflated", lambda: changed(
        ctx, archive(pair(method=8, flags=DESCRIBED), end64={}), step)
    yield "zip: made by zip", lambda: made_by(ctx, ["zip", "-q", "OUT", "a.npy", "b.npy"])
    yield "zip: made by zip, stored", lambda: made_by(ctx, ["zip", "-q", "-0", "OUT", "a.npy",
                                                            "b.npy"])
    yield "zip: many entries", lambda: many(ctx)
