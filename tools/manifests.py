#!/usr/bin/env python3
"""Fill packaging/ with version, addresses and checksums of build/dist: build/dist/manifests.

usage: tools/manifests.py --download URL --homepage URL

URL of --download is the folder in which the files of build/dist are published. A manifest is
left out if a file that it names is not in build/dist.
"""
import argparse
import glob
import hashlib
import os
import re
import shutil
import sys
import time
import zipfile

sys.dont_write_bytecode = True
import source_archive

ROOT = source_archive.ROOT
DIST = os.path.join(ROOT, "build", "dist")
FOLDERS = ["vcpkg", "conan", "homebrew", "conda", "winget", "scoop"]
PLACEHOLDER = re.compile(r"@([A-Z0-9_]+)@")


def digest(algorithm, path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def windows_values(dist):
    """Of the archive for Windows on x86_64, if it is there."""
    for path in sorted(glob.glob(os.path.join(dist, "*windows*.zip"))):
        if not re.search(r"x86_64|amd64|x64", os.path.basename(path)):
            continue
        with zipfile.ZipFile(path) as archive:
            command = next(name for name in archive.namelist()
                           if name.rsplit("/", 1)[-1] == "safetensors.exe")
        sha256 = digest("sha256", path)
        return {"WINDOWS_ZIP": os.path.basename(path), "WINDOWS_SHA256": sha256,
                "WINDOWS_SHA256_UPPER": sha256.upper(), "WINDOWS_COMMAND": command,
                "WINDOWS_COMMAND_BACKSLASHES": command.replace("/", "\\")}
    return {}


def values(download, homepage, dist=DIST):
    version = source_archive.version()
    source = os.path.join(dist, f"libsafetensors-{version}-source.tar.gz")
    if not os.path.exists(source):
        sys.exit(f"manifests: no {os.path.relpath(source, ROOT)}: make dist")
    return {"VERSION": version, "DOWNLOAD": download.rstrip("/"), "HOMEPAGE": homepage,
            "DATE": time.strftime("%Y-%m-%d", time.gmtime(source_archive.timestamp())),
            "SOURCE_SHA256": digest("sha256", source), "SOURCE_SHA512": digest("sha512", source),
            **windows_values(dist)}


def fill(known, out):
    """Writes the filled files into a folder; names of placeholders that nothing is known for, by
    the folder of packaging/ that was left out because of them."""
    left_out = {}
    for folder in FOLDERS:
        base = os.path.join(ROOT, "packaging", folder)
        texts = {}
        for path in sorted(glob.glob(base + "/**/*", recursive=True)):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, base)] = file.read()
        unknown = {name for text in texts.values() for name in PLACEHOLDER.findall(text)} - set(known)
        if unknown:
            left_out[folder] = sorted(unknown)
            continue
        for name, text in texts.items():
            path = os.path.join(out, folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(PLACEHOLDER.sub(lambda found: known[found.group(1)], text))
    return left_out


def address(text):
    if not re.fullmatch(r"(https|file)://\S+", text):
        raise argparse.ArgumentTypeError(f'expected an https:// address, found "{text}"')
    return text


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--download", type=address, required=True)
    parser.add_argument("--homepage", type=address, required=True)
    args = parser.parse_args()
    out = os.path.join(DIST, "manifests")
    shutil.rmtree(out, ignore_errors=True)
    for folder, unknown in fill(values(args.download, args.homepage), out).items():
        print(f"left out: {folder}: nothing in build/dist gives {', '.join(unknown)}")
    for path in sorted(glob.glob(out + "/**/*", recursive=True)):
        if os.path.isfile(path):
            print(os.path.relpath(path, ROOT))


if __name__ == "__main__":
    main()
