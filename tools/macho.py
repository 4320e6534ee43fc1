#!/usr/bin/env python3
"""Mach-O files: what the loader of macOS reads of them, and files for several processors.

usage: tools/macho.py join OUT IN...     one file of several, one for each processor
       tools/macho.py show FILE...       what is in them, as JSON"""
import json
import os
import struct
import sys

FAT, THIN, ARCHIVE = 0xCAFEBABE, 0xFEEDFACF, b"!<arch>\n"
CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
KINDS = {1: "object", 2: "executable", 6: "dylib", 8: "bundle"}
ALIGNMENT = 14  # 16 KiB, a page of arm64
BUILD_VERSION, VERSION_MIN, LOAD_DYLIB, ID_DYLIB, SIGNATURE, UUID, RPATH, SYMTAB = \
    0x32, 0x24, 0xC, 0xD, 0x1D, 0x1B, 0x8000001C, 0x2
WEAK_DYLIB, REEXPORT_DYLIB = 0x80000018, 0x8000001F


def version(number):
    major, minor, patch = number >> 16, number >> 8 & 255, number & 255
    return f"{major}.{minor}" + (f".{patch}" if patch else "")


def text(command, offset):
    return command[offset:command.index(b"\0", offset)].decode()


def symbols(data, command):
    """Names that a file defines for others, and those that it takes from others."""
    at, count, strings, _ = struct.unpack_from("<4I", command, 8)
    defined, undefined = set(), set()
    for i in range(count):
        name, kind, section = struct.unpack_from("<IBB", data, at + 16 * i)
        end = data.index(b"\0", strings + name)
        spelled = data[strings + name:end].decode()
        if kind & 0xE0 or not kind & 1:  # a debugger's, or local
            continue
        (defined if kind & 0x0E and not kind & 0x10 else undefined).add(spelled)
    return defined, undefined


def parse(data):
    """A Mach-O file for one processor."""
    magic, cpu, subtype, kind, count, _, flags, _ = struct.unpack_from("<8I", data)
    if magic != THIN:
        raise ValueError(f"magic {magic:#x}")
    found = {"cpu": CPUS.get(cpu, hex(cpu)), "cputype": cpu, "subtype": subtype,
             "kind": KINDS.get(kind, kind), "flags": flags, "minimum": None, "name": None,
             "compatibility": None, "libraries": [], "rpaths": [], "signed": False, "uuid": None,
             "defined": set(), "undefined": set()}
    at = 32
    for _ in range(count):
        number, size = struct.unpack_from("<2I", data, at)
        command = data[at:at + size]
        at += size
        if number == BUILD_VERSION:
            found["platform"], minimum = struct.unpack_from("<2I", command, 8)
            found["minimum"] = version(minimum)
        elif number == VERSION_MIN:
            found["platform"], found["minimum"] = 1, version(struct.unpack_from("<I", command, 8)[0])
        elif number in (LOAD_DYLIB, WEAK_DYLIB, REEXPORT_DYLIB):
            found["libraries"].append(text(command, struct.unpack_from("<I", command, 8)[0]))
        elif number == ID_DYLIB:
            name, _, current, compatible = struct.unpack_from("<4I", command, 8)
            found["name"], found["current"] = text(command, name), version(current)
            found["compatibility"] = version(compatible)
        elif number == RPATH:
            found["rpaths"].append(text(command, struct.unpack_from("<I", command, 8)[0]))
        elif number == SIGNATURE:
            begin, length = struct.unpack_from("<2I", command, 8)
            # Embedded signature: the magic of its directory of parts.
            found["signed"] = data[begin:begin + 4] == b"\xfa\xde\x0c\xc0" and \
                begin + length == len(data)
        elif number == UUID:
            found["uuid"] = command[8:24].hex()
        elif number == SYMTAB:
            found["defined"], found["undefined"] = symbols(data, command)
    return found


def members(data):
    """Objects of an archive, by name."""
    at = len(ARCHIVE)
    while at < len(data):
        name, size = data[at:at + 16].decode().strip(), int(data[at + 48:at + 58])
        body = data[at + 60:at + 60 + size]
        if name.startswith("#1/"):  # BSD: the name is the first bytes
            length = int(name[3:])
            name, body = body[:length].rstrip(b"\0").decode(), body[length:]
        if not name.startswith("__.SYMDEF"):
            yield name, body
        at += 60 + size + size % 2


def archive(data):
    objects = [parse(body) for _, body in members(data)]
    cpus = {(one["cputype"], one["subtype"], one["cpu"]) for one in objects}
    if len(cpus) != 1:
        raise ValueError(f"objects for {len(cpus)} processors in one archive")
    cputype, subtype, cpu = cpus.pop()
    return {"cpu": cpu, "cputype": cputype, "subtype": subtype, "kind": "archive",
            "minimum": sorted({one["minimum"] for one in objects}, key=str),
            "defined": set().union(*(one["defined"] for one in objects)), "members": len(objects)}


def thin(data):
    return archive(data) if data.startswith(ARCHIVE) else parse(data)


def slices(data):
    """The files for one processor each that a file holds."""
    if struct.unpack_from(">I", data)[0] != FAT:
        return [data]
    count = struct.unpack_from(">I", data, 4)[0]
    rows = (struct.unpack_from(">5I", data, 8 + 20 * i) for i in range(count))
    return [data[offset:offset + size] for _, _, offset, size, _ in rows]


def read(path):
    """What a file holds, by processor."""
    with open(path, "rb") as file:
        found = [thin(part) for part in slices(file.read())]
    return {one["cpu"]: one for one in found}


def join(out, paths):
    parts = []
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        found = thin(data)
        parts.append((found["cputype"], found["subtype"], data))
    parts.sort()
    if len({part[0] for part in parts}) != len(parts):
        raise SystemExit(f"macho: two of {', '.join(paths)} are for the same processor")
    header = struct.pack(">2I", FAT, len(parts))
    body, at = b"", 8 + 20 * len(parts)
    for cpu, subtype, data in parts:
        begin = (at + len(body) + (1 << ALIGNMENT) - 1) >> ALIGNMENT << ALIGNMENT
        header += struct.pack(">5I", cpu, subtype, begin, len(data), ALIGNMENT)
        body += b"\0" * (begin - at - len(body)) + data
    with open(out, "wb") as file:
        file.write(header + body)
    os.chmod(out, os.stat(paths[0]).st_mode & 0o777)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("join", "show"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "join":
        join(sys.argv[2], sys.argv[3:])
        return
    for path in sys.argv[2:]:
        print(json.dumps({path: read(path)}, indent=1, default=sorted))


if __name__ == "__main__":
    main()
