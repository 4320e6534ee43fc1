"""What is inside binaries: ELF, PE and Mach-O."""
import io
import struct

INIT = "PyInit__core"


def expect(what, found, expected):
    assert found == expected, "%s: expected %s, found %s" % (what, expected, found)


def within(what, found, allowed):
    extra = sorted(set(found) - set(allowed))
    assert not extra, "%s: %s is not among %s" % (what, ", ".join(extra), ", ".join(sorted(allowed)))


class Elf:
    def __init__(self, data):
        from elftools.elf.elffile import ELFFile
        self.file = ELFFile(io.BytesIO(data))
        self.dynamic = list(self.file.get_section_by_name(".dynamic").iter_tags())

    def needed(self):
        return {tag.needed for tag in self.dynamic if tag.entry.d_tag == "DT_NEEDED"}

    def symbols(self, defined):
        table = self.file.get_section_by_name(".dynsym")
        return {symbol.name for symbol in table.iter_symbols()
                if symbol.name and (symbol["st_shndx"] != "SHN_UNDEF") is defined}

    def newest_glibc(self):
        versions = self.file.get_section_by_name(".gnu.version_r")
        names = [aux.name for _, needs in versions.iter_versions() for aux in needs]
        return max(tuple(map(int, name.partition("_")[2].split("."))) for name in names)

    def check(self, machine, libraries, exports):
        expect("processor", self.file["e_machine"], machine)
        within("libraries", self.needed(), libraries)
        if exports is not None:
            expect("exports", self.symbols(True), exports)
        tags = {tag.entry.d_tag: tag.entry.d_val for tag in self.dynamic}
        assert not {"DT_RPATH", "DT_RUNPATH"} & set(tags), "it has a path of libraries"
        assert tags["DT_FLAGS_1"] & 1, "symbols are bound lazily"
        segments = {segment["p_type"]: segment["p_flags"] for segment in self.file.iter_segments()}
        assert "PT_GNU_RELRO" in segments, "relocations stay writable"
        assert not segments["PT_GNU_STACK"] & 1, "the stack is executable"
        assert not self.file.get_section_by_name(".symtab"), "it is not stripped"


# DllCharacteristics: HIGH_ENTROPY_VA, DYNAMIC_BASE, NX_COMPAT
HARDENED = 0x20 | 0x40 | 0x100


def check_pe(data, machine, libraries, exports):
    import pefile
    pe = pefile.PE(data=data)
    expect("processor", pe.FILE_HEADER.Machine, machine)
    found = {row.dll.decode().lower() for row in pe.DIRECTORY_ENTRY_IMPORT}
    within("libraries", {name for name in found if not name.startswith("api-ms-win-crt-")}, libraries)
    assert any(name.startswith("api-ms-win-crt-") for name in found), "it is not for the UCRT"
    if exports is not None:
        expect("exports", {row.name.decode() for row in pe.DIRECTORY_ENTRY_EXPORT.symbols}, exports)
    flags = pe.OPTIONAL_HEADER.DllCharacteristics
    expect("DllCharacteristics", flags & HARDENED, HARDENED)
    return found


LC_SYMTAB, LC_LOAD_DYLIB, LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x2, 0xc, 0x1d, 0x32
LC_RPATH = 0x8000001c
CPUS = {0x01000007: "x86_64", 0x0100000c: "arm64"}


class MachO:
    """One processor's part."""

    def __init__(self, data):
        self.data = data
        magic, cpu, _, self.kind, count, _, _ = struct.unpack_from("<7I", data)
        expect("magic", magic, 0xfeedfacf)
        self.cpu = CPUS[cpu]
        self.commands, at = [], 32
        for _ in range(count):
            command, size = struct.unpack_from("<II", data, at)
            self.commands.append((command, data[at:at + size]))
            at += size

    def all(self, wanted):
        return [body for command, body in self.commands if command == wanted]

    def libraries(self):
        found = set()
        for body in self.all(LC_LOAD_DYLIB):
            offset, = struct.unpack_from("<I", body, 8)
            found.add(body[offset:].split(b"\0")[0].decode())
        return found

    def least_system(self):
        body, = self.all(LC_BUILD_VERSION)
        platform, version = struct.unpack_from("<II", body, 8)
        expect("platform", platform, 1)
        return version >> 16, version >> 8 & 255

    def exports(self):
        body, = self.all(LC_SYMTAB)
        at, count, names, _ = struct.unpack_from("<IIII", body, 8)
        found = set()
        for i in range(count):
            name, kind, section = struct.unpack_from("<IBB", self.data, at + 16 * i)
            if kind & 0x01 and not kind & 0xe0 and section:
                found.add(self.data[names + name:].split(b"\0", 1)[0].decode().removeprefix("_"))
        return found


def check_universal(data, exports):
    magic, count = struct.unpack_from(">II", data)
    expect("magic", magic, 0xcafebabe)
    parts = []
    for i in range(count):
        _, _, at, size, align = struct.unpack_from(">IIIII", data, 8 + 20 * i)
        assert at % (1 << align) == 0 and at + size <= len(data), "a part is not where it should be"
        parts.append(MachO(data[at:at + size]))
    expect("processors", sorted(part.cpu for part in parts), ["arm64", "x86_64"])
    for part in parts:
        within("libraries", part.libraries(), {"/usr/lib/libSystem.B.dylib"})
        expect("least system", part.least_system(), (11, 0))
        assert not part.all(LC_RPATH), "it has a path of libraries"
        # The kernel of arm64 starts nothing without one.
        assert part.all(LC_CODE_SIGNATURE) or part.cpu != "arm64", "it has no signature"
        if exports is not None:
            expect("exports", part.exports(), exports)
