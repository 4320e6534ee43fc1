#!/bin/bash
# Build cmocka, which Debian has for its own machines only, for another: FOLDER/libcmocka.a and
# FOLDER/include. Does nothing if they are there.
# usage: tools/cmocka.sh FOLDER COMPILER [FLAG...] | --version
# SFT_CACHE is the folder of what is fetched (build/cache); several clones can share it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${SFT_CACHE:-$root/build/cache}

# Debian's source package, by apt: it checks signatures. The list is its own, for few systems
# name sources in theirs.
version=1.1.5
revision=2.1
sha256=f0ccd8242d55e2fd74b16ba518359151f6f8383ff8aef4976e48393f77bba8b6

say() { echo "cmocka.sh: $*" >&2; }

fetch() {
    local apt=$1.apt archive=cmocka_$version.orig.tar.xz mirror options
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$cache"
    mirror=${SFT_DEBIAN_MIRROR:-http://deb.debian.org/debian}
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" \
        >"$apt/sources.list"
    options=(-qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=-
             -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root)
    say "fetching cmocka $version-$revision from $mirror"
    (cd "$apt" && apt-get "${options[@]}" update &&
        apt-get "${options[@]}" --download-only source "cmocka=$version-$revision") ||
        { say "cannot fetch cmocka's source: that needs $mirror once"; exit 1; }
    mv "$apt/$archive" "$cache"
    rm -rf "$apt"
}

build() {
    local folder=$1 compiler=$2 archive=$cache/cmocka_$version.orig.tar.xz new=$1.new
    shift 2
    mkdir -p "$cache"
    [[ -e $archive ]] || fetch "$folder"
    echo "$sha256  $archive" | sha256sum --check --quiet ||
        { say "$archive is not what was pinned"; exit 1; }
    rm -rf "$new"
    mkdir -p "$new/include"
    tar -C "$new" --strip-components=1 -xf "$archive" "cmocka-$version/src" \
        "cmocka-$version/include"
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
