"""What is inside binaries: ELF, PE and Mach-O."""
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import macho  # noqa: E402

INIT = "PyInit__core"


def expect(what, found, expected):
    assert found == expected, "%s: expected %s, found %s" % (what, expected, found)


def within(what, found, allowed):
    extra = sorted(set(found) - set(allowed))
    assert not extra, "%s: %s, beside %s" % (what, ", ".join(extra), ", ".join(sorted(allowed)))


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
    ucrt = {name for name in found if name.startswith("api-ms-win-crt-")}
    assert ucrt, "it is not for the UCRT"
    within("libraries", found - ucrt, libraries)
    if exports is not None:
        expect("exports", {row.name.decode() for row in pe.DIRECTORY_ENTRY_EXPORT.symbols}, exports)
    flags = pe.OPTIONAL_HEADER.DllCharacteristics
    expect("DllCharacteristics", flags & HARDENED, HARDENED)
    return found


def check_universal(data, exports):
    found = {part["cpu"]: part for part in map(macho.thin, macho.slices(data))}
    expect("processors", set(found), {"arm64", "x86_64"})
    for part in found.values():
        within("libraries", part["libraries"], {"/usr/lib/libSystem.B.dylib"})
        expect("least system", part["minimum"], "11.0")
        expect("paths of libraries", part["rpaths"], [])
        # The kernel of arm64 starts nothing without one.
        assert part["signed"] or part["cpu"] != "arm64", "it has no signature"
        # zig cannot hide the library's names there; nobody looks them up in another's extension.
        if exports is not None:
            names = {name.removeprefix("_") for name in part["defined"]}
            names = {name for name in names if not name.startswith(("sft_", "_"))}
            expect("exports", names, exports)
