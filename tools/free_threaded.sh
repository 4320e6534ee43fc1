#!/bin/bash
# Build a free-threaded CPython from Debian's sources, for tests of our wheels: Debian has none.
# Prints its path; does nothing else when it is there. It takes a quarter of an hour on two
# processors and is kept in $SFT_CACHE (build/cache).
# usage: tools/free_threaded.sh 3.13|3.14
set -euo pipefail
declare -A suites=([3.13]=trixie [3.14]=forky)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=${1:-}
suite=${suites[$version]:-}
[[ $suite ]] || { sed -n '2,/^set/{/^#/s/^# \?//p}' "$0" >&2; exit 2; }
cache=${SFT_CACHE:-$root/build/cache}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
prefix=$cache/python-${version}t
python=$prefix/bin/python${version}t

if [[ ! -x $python ]]; then
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    SFT_CACHE=$cache "$root/tools/debian_fetch.sh" "$suite" source "$new/source" "python$version"
    cd "$new/source"
    {
        ./configure --quiet --prefix="$prefix" --disable-gil --disable-test-modules \
            --with-ensurepip=no CFLAGS=-O1
        make --quiet -j"${SFT_JOBS:-$(nproc)}"
        make --quiet DESTDIR="$new/out" install
    } >"$prefix.log" 2>&1 || { tail -20 "$prefix.log" >&2; exit 1; }
    mv -T "$new/out/$prefix" "$prefix" 2>/dev/null || [[ -x $python ]]
fi
echo "$python"
