"""Zip archives field by field, right or wrong."""
import struct
import zlib

DESCRIBED, UTF8 = 8, 0x800


class Entry:
    """A local header, data, what follows them, and the row of the directory; any of it may be
    replaced. extra and tail are raw; None: not there."""

    def __init__(self, name, data=b"", method=0, **other):
        self.name = name.encode() if isinstance(name, str) else name
        self.data = data
        self.method = method
        self.stored = data
        if method == 8:
            squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
            self.stored = squeeze.compress(data) + squeeze.flush()
        self.flags = 0 if self.name.isascii() else UTF8
        self.crc = zlib.crc32(data)
        self.local, self.central = {}, {}  # fields that differ there
        self.extra = self.central_extra = b""
        self.tail = None  # instead of a descriptor
        self.before = b""  # bytes before the local header
        self.disk = self.attributes = 0
        for key, value in other.items():
            setattr(self, key, value)

    def fields(self, other):
        out = {"name": self.name, "flags": self.flags, "method": self.method, "crc": self.crc,
               "csize": len(self.stored), "usize": len(self.data)}
        out.update(other)
        return out

    def local_bytes(self):
        f = self.fields({"crc": 0, "csize": 0, "usize": 0} if self.flags & DESCRIBED else {})
        f.update(self.local)
        return struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, f["flags"], f["method"], 0, 0x21,
                           f["crc"], f["csize"], f["usize"], len(f["name"]), len(self.extra)) \
            + f["name"] + self.extra

    def tail_bytes(self):
        if self.tail is not None:
            return self.tail
        if not self.flags & DESCRIBED:
            return b""
        return struct.pack("<IIII", 0x08074b50, self.crc, len(self.stored), len(self.data))

    def central_bytes(self, at):
        f = self.fields({"at": at, **self.central})
        return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, 20, f["flags"], f["method"], 0,
                           0x21, f["crc"], f["csize"], f["usize"], len(f["name"]),
                           len(self.central_extra), 0, self.disk, 0, self.attributes, f["at"]) \
            + f["name"] + self.central_extra


def archive(entries, comment=b"", before_directory=b"", end=None, end64=None, after=b"",
            order=None, **changed):
    """The whole file. changed: n, size, at of the end record; end64: such a dict, which makes a
    ZIP64 end record, too."""
    out, offsets = b"", []
    for entry in entries:
        out += entry.before
        offsets.append(len(out))
        out += entry.local_bytes() + entry.stored + entry.tail_bytes()
    out += before_directory
    rows = [entry.central_bytes(at) for entry, at in zip(entries, offsets)]
    directory = b"".join(rows[i] for i in (order or range(len(rows))))
    f = {"n": len(rows), "size": len(directory), "at": len(out)}
    at = len(out) + len(directory)
    out += directory
    if end64 is not None:
        g = {**f, "where": at, "disks": 1, "length": 44, **end64}
        out += struct.pack("<IQHHIIQQQQ", 0x06064b50, g["length"], 45, 45, 0, 0, g["n"], g["n"],
                           g["size"], g["at"])
        out += struct.pack("<IIQI", 0x07064b50, 0, g["where"], g["disks"])
    f.update(changed)
    if end is None:
        end = struct.pack("<IHHHHIIH", 0x06054b50, f.get("disk", 0), 0, f["n"], f["n"],
                          f["size"], f["at"], len(comment)) + comment
    return out + end + after


def wide(*values):
    return struct.pack("<HH", 1, 8 * len(values)) + struct.pack(f"<{len(values)}Q", *values)
