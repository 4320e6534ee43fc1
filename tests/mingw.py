#!/usr/bin/env python3
"""The cross build for Windows: the preset `mingw` compiles without a warning, the command and the
DLL need only DLLs of Windows itself, and the DLL exports what the public headers declare.
usage: tests/mingw.py [FOLDER]     FOLDER: one that is built already, e.g. by tools/windows.sh"""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import exports

ROOT = exports.ROOT
# Which Windows takes from its own folder always (KnownDLLs): none is taken from beside the program.
SYSTEM = {"advapi32.dll", "kernel32.dll", "msvcrt.dll", "ntdll.dll", "shell32.dll",
          "ws2_32.dll"}
# Bits of DllCharacteristics: high-entropy addresses, relocatable, no execution of data.
HARDENED = 0x20 | 0x40 | 0x100
passed, failures = 0, []


def demand(ok, what):
    global passed
    passed += bool(ok)
    if not ok:
        failures.append(what)


def dump(path):
    return subprocess.run(["x86_64-w64-mingw32-objdump", "-p", path], stdout=subprocess.PIPE,
                          check=True, text=True).stdout


def build():
    folder = os.path.join(ROOT, "build", "mingw-short")  # make windows-test builds what is optimised
    # Without optimisation frames are larger.
    flags = "-O0 -DNDEBUG -Wno-error=frame-larger-than="
    done = subprocess.run(f"cmake --preset mingw -B '{folder}' -DCMAKE_C_FLAGS_RELEASE='{flags}' "
                          f"-DSFT_UNITS=ON "
                          f"--log-level=WARNING && cmake --build '{folder}'",
                          shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    demand(done.returncode == 0, "the preset mingw builds:\n" + done.stdout[-4000:])
    warnings = [line for line in done.stdout.splitlines() if "warning:" in line
                and "frame size" not in line]
    demand(not warnings, "warnings:\n" + "\n".join(warnings))
    return folder


def characteristics(path):
    with open(path, "rb") as file:
        image = file.read(4096)
    header = struct.unpack_from("<I", image, 0x3c)[0]
    return struct.unpack_from("<H", image, header + 24 + 70)[0]


def check_image(path):
    text, name = dump(path), os.path.basename(path)
    imported = {found.lower() for found in re.findall(r"DLL Name: (\S+)", text)}
    foreign = {dll for dll in imported - SYSTEM if not dll.startswith("api-ms-win-crt-")}
    demand(not foreign, f"{name} needs {sorted(foreign)}")
    demand("kernel32.dll" in imported, f"{name} has imports")
    demand(characteristics(path) & HARDENED == HARDENED,
           f"{name}: DllCharacteristics {characteristics(path):#x}")
    return text


def main():
    if not shutil.which("x86_64-w64-mingw32-objdump"):
        print("0 passed, 0 failed, 1 skipped")
        return 0
    folder = sys.argv[1] if len(sys.argv) > 1 else build()
    images = [path for pattern in ("safetensors.exe", "safetensors.dll")
              for path in glob.glob(os.path.join(folder, "**", pattern), recursive=True)]
    demand(len(images) == 2, f"the command and the DLL in {folder}, found {images}")
    for path in images:
        text = check_image(path)
        if path.endswith(".dll"):
            exported = set(re.findall(r"^\s+\[\s*\d+\]\s+(?:\+base\[\s*\d+\]\s+)?(?:[0-9a-f]+\s+)?(\w+)$",
                                      text, re.M))
            wanted = set(exports.declared())
            demand(exported == wanted, f"exported, not declared: {sorted(exported - wanted)}; "
                                       f"declared, not exported: {sorted(wanted - exported)}")
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
