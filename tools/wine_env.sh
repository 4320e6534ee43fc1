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
cache=${SFT_CACHE:-$root/build/cache}
export WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="

# Debian's source package, by apt: it checks signatures. The list is its own, for few systems
# name sources in theirs.
cmocka_version=1.1.5
cmocka_revision=2.1
cmocka_sha256=f0ccd8242d55e2fd74b16ba518359151f6f8383ff8aef4976e48393f77bba8b6

say() { echo "wine_env.sh: $*" >&2; }

fetch_cmocka() {
    local apt=$folder/apt archive=cmocka_$cmocka_version.orig.tar.xz mirror options
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$cache"
    mirror=${SFT_DEBIAN_MIRROR:-http://deb.debian.org/debian}
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" \
        >"$apt/sources.list"
    options=(-qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=-
             -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root)
    say "fetching cmocka $cmocka_version-$cmocka_revision from $mirror"
    (cd "$apt" && apt-get "${options[@]}" update &&
        apt-get "${options[@]}" --download-only source "cmocka=$cmocka_version-$cmocka_revision") ||
        { say "cannot fetch cmocka's source: that needs $mirror once"; exit 1; }
    mv "$apt/$archive" "$1"
    rm -rf "$apt"
}

make_cmocka() {
    local archive=$cache/cmocka_$cmocka_version.orig.tar.xz new=$folder/cmocka.new
    mkdir -p "$cache"
    [[ -e $archive ]] || fetch_cmocka "$archive"
    echo "$cmocka_sha256  $archive" | sha256sum --check --quiet ||
        { say "$archive is not what was pinned"; exit 1; }
    rm -rf "$new"
    mkdir -p "$new/include"
    tar -C "$new" --strip-components=1 -xf "$archive" "cmocka-$cmocka_version/src" \
        "cmocka-$cmocka_version/include"
    # gcc takes __printf__ for msvcrt's formats.
    sed -i 's/__format__ (__printf__,/__format__ (gnu_printf,/' "$new"/include/*.h
    cat >"$new/config.h" <<'CONFIG'
#define HAVE_INTTYPES_H 1
#define HAVE_MALLOC_H 1
#define HAVE_SIGNAL_H 1
#define HAVE_STRUCT_TIMESPEC 1
#define HAVE_GCC_THREAD_LOCAL_STORAGE 1
CONFIG
    x86_64-w64-mingw32-gcc-win32 -O1 -D__USE_MINGW_ANSI_STDIO=1 -DHAVE_CONFIG_H -I"$new" \
        -I"$new/include" -c "$new/src/cmocka.c" -o "$new/cmocka.o"
    x86_64-w64-mingw32-gcc-ar rcs "$new/libcmocka.a" "$new/cmocka.o"
    rm -rf "$folder/cmocka"
    mv "$new" "$folder/cmocka"
}

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
[[ -e $folder/cmocka/libcmocka.a ]] || make_cmocka
[[ -e $WINEPREFIX/made ]] || make_prefix
# The server keeps what processes share: without it each start takes a second.
"$server" --persistent=600 2>/dev/null || true
echo "tested under $("$wine" --version), which is no Windows:" \
    "$("$wine" cmd /c ver </dev/null | tr -d '\r' | grep Windows);" \
    "$(x86_64-w64-mingw32-gcc-win32 --version | head -1); cmocka $cmocka_version"
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
