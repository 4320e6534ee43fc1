#!/bin/bash
# Build cmocka, which Debian has for its own machines only, for another: FOLDER/libcmocka.a and
# FOLDER/include. Does nothing if they are there.
# usage: tools/cmocka.sh FOLDER COMPILER [FLAG...] | --version
# Debian's source package comes by tools/debian_fetch.sh.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

version=1.1.5
revision=2.1

build() {
    local folder=$1 compiler=$2 new=$1.new
    shift 2
    rm -rf "$new"
    "$root/tools/debian_fetch.sh" bookworm source "$new" "cmocka=$version-$revision"
    # gcc for Windows takes __printf__ for msvcrt's formats.
    sed -i 's/__format__ (__printf__,/__format__ (gnu_printf,/' "$new"/include/*.h
    cat >"$new/config.h" <<'CONFIG'
#define HAVE_INTTYPES_H 1
#define HAVE_MALLOC_H 1
#define HAVE_SIGNAL_H 1
#define HAVE_STRUCT_TIMESPEC 1
#define HAVE_GCC_THREAD_LOCAL_STORAGE 1
CONFIG
    "$compiler" -O1 "$@" -DHAVE_CONFIG_H -I"$new" -I"$new/include" -c "$new/src/cmocka.c" \
        -o "$new/cmocka.o"
    "${compiler%gcc*}gcc-ar" rcs "$new/libcmocka.a" "$new/cmocka.o"
    rm -rf "$folder"
    mv "$new" "$folder"
}

if [[ $1 == --version ]]; then
    echo "cmocka $version"
elif [[ ! -e $1/libcmocka.a ]]; then
    build "$@"
fi
