#!/bin/bash
# Make build/release: the packages of tests/requirements-wheels.txt (see environment.sh), the
# compiler of zig_env.sh, and in build/release-files what Debian has of what wheels are made of:
# CPython's headers and zlib.
# usage: tools/wheels_env.sh [--count]     --count: close with "N passed, N failed", for
#                                          tests/run.py
set -euo pipefail
name=release
locks=(tests/requirements-wheels.txt)
warm="import abi3audit, auditwheel, build, scikit_build_core, twine, wheel"
fetch="download --only-binary :all:"
download_size="30 MB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
make_environment
"$root/tools/zig_env.sh"
files=$root/build/release-files
"$root/tools/debian_fetch.sh" bookworm amd64 "$files/python3.11" libpython3.11-dev
"$root/tools/debian_fetch.sh" trixie amd64 "$files/python3.13" libpython3.13-dev
"$root/tools/debian_fetch.sh" forky amd64 "$files/python3.14" libpython3.14-dev
"$root/tools/debian_fetch.sh" bookworm source "$files/zlib" zlib
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
