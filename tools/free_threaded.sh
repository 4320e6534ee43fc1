#!/bin/bash
# A free-threaded CPython 3.13, built from Debian's source: Debian has none to install. Quick to
# build rather than to run: no optimisation by profile.
# usage: tools/free_threaded.sh [FOLDER]
#     FOLDER          build/python3.13t; prints the path of the interpreter
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$root/build/python3.13t}
python=$folder/bin/python3.13t
if [[ ! -x $python ]]; then
    source=$folder-source
    "$root/tools/debian_fetch.sh" trixie source "$source" python3.13 >&2
    (cd "$source" && { ./configure --disable-gil --disable-test-modules --with-ensurepip=no \
        --prefix="$folder" && make -j"$(nproc)" && make install; } >"$folder.log" 2>&1) || {
        echo "free_threaded.sh: CPython was not built, see $folder.log" >&2
        exit 1
    }
    rm -rf "$source"
fi
echo "$python"
