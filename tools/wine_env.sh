#!/bin/bash
# Make build/wine: wine's prefix, and cmocka built for Windows, for `make windows-test`. Installs
# Debian's wine and the compiler for Windows. Does only what is not done already.
# usage: tools/wine_env.sh [--count | --stop]
#   --count   close with "N passed, N failed", for tests/run.py
#   --stop    end wine's server, which stays for ten minutes after a run otherwise
# SFT_CACHE is the folder of what is fetched (build/cache); several clones can share it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wine=/usr/lib/wine/wine64
server=/usr/lib/wine/wineserver64
folder=$root/build/wine
export WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="

say() { echo "wine_env.sh: $*" >&2; }

# The default prefix says Windows 7.
make_prefix() {
    rm -rf "$WINEPREFIX"
    "$wine" wineboot --init </dev/null >"$folder/wineboot.log" 2>&1
    "$wine" reg add 'HKCU\Software\Wine' /v Version /d win10 /f </dev/null >>"$folder/wineboot.log"
    "$server" --wait
    touch "$WINEPREFIX/made"
}

if [[ ${1:-} == --stop ]]; then
    [[ ! -e $WINEPREFIX/made ]] || "$server" --kill || true
    exit 0
fi
"$root/tools/setup.sh" windows wine
mkdir -p "$folder"
"$root/tools/cmocka.sh" "$folder/cmocka" x86_64-w64-mingw32-gcc-win32 -D__USE_MINGW_ANSI_STDIO=1
[[ -e $WINEPREFIX/made ]] || make_prefix
# The server keeps what processes share: without it each start takes a second.
"$server" --persistent=600 2>/dev/null || true
windows=$("$wine" cmd /c ver </dev/null | tr -d '\r' | grep Windows)
compiler=$(x86_64-w64-mingw32-gcc-win32 --version | sed -n 1p)
echo "tested under $("$wine" --version), which is no Windows: $windows; $compiler;" \
    "$("$root/tools/cmocka.sh" --version)"
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
