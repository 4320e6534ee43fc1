#!/bin/bash
# Make wine's prefix for this clone, and build/wine: cmocka built for Windows, for
# `make windows-test`. Installs Debian's wine and the compiler for Windows. Does only what is not
# done already. The prefix is not in the clone: its drive z: is a link to /, which whoever goes
# through a folder with its links (builds of source packages do) would follow.
# usage: tools/wine_env.sh [--count | --serve | --stop | --prefix]
#   --count   close with "N passed, N failed", for tests/run.py
#   --prefix  tell where the prefix is, and do nothing
#   --serve   begin wine's server. It is that of $TMPDIR, and keeps what processes share: without it
#             each start takes a second, and the server that a test starts speaks on the test's
#             stderr and makes folders in the test's HOME
#   --stop    end it; it stays for three hours otherwise
# SFT_CACHE is the folder of what is fetched (build/cache); several clones can share it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wine=/usr/lib/wine/wine64
server=/usr/lib/wine/wineserver64
folder=$root/build/wine
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
clone=$(sha256sum <<<"$root" | cut -c1-16)
export WINEPREFIX=$cache/wine-$clone WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="

serve() { "$server" --persistent=10800 >/dev/null 2>&1 || true; }
say() { echo "wine_env.sh: $*" >&2; }

# The default prefix says Windows 7.
make_prefix() {
    rm -rf "$WINEPREFIX" "$folder/prefix"
    mkdir -p "$(dirname "$WINEPREFIX")"
    "$wine" wineboot --init </dev/null >"$folder/wineboot.log" 2>&1
    "$wine" reg add 'HKCU\Software\Wine' /v Version /d win10 /f </dev/null >>"$folder/wineboot.log"
    "$server" --wait
    touch "$WINEPREFIX/made"
}

if [[ ${1:-} == --prefix ]]; then
    echo "$WINEPREFIX"
    exit 0
fi
if [[ ${1:-} == --serve ]]; then
    serve
    "$wine" cmd /c ver </dev/null >/dev/null # wine's own processes, which are begun with the first
    exit 0
fi
if [[ ${1:-} == --stop ]]; then
    [[ ! -e $WINEPREFIX/made ]] || "$server" --kill || true
    exit 0
fi
"$root/tools/setup.sh" windows wine
mkdir -p "$folder"
"$root/tools/cmocka.sh" "$folder/cmocka" x86_64-w64-mingw32-gcc-win32 -D__USE_MINGW_ANSI_STDIO=1
[[ -e $WINEPREFIX/made ]] || make_prefix
serve
windows=$("$wine" cmd /c ver </dev/null | tr -d '\r' | grep Windows)
compiler=$(x86_64-w64-mingw32-gcc-win32 --version | sed -n 1p)
echo "tested under $("$wine" --version), which is no Windows: $windows; $compiler;" \
    "$("$root/tools/cmocka.sh" --version)"
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
