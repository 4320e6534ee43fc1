#!/bin/bash
# A fresh Debian 12 in a folder, for tests of installing. Needs root.
# usage: tools/debian_root.sh make FOLDER              replaces FOLDER
#        tools/debian_root.sh enter FOLDER COMMAND...  runs a command in it
#        tools/debian_root.sh around FOLDER COMMAND... runs one of this machine, with its mounts
# Neither passes on the environment of the caller.
#
# The sources of packages and apt's settings are those of this machine; what they fetch is kept in
# $SFT_CACHE (build/cache). Mounts are in a namespace of their own and end with the command.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
release=bookworm
cache=${SFT_CACHE:-$root/build/cache}

die() { echo "debian_root: $*" >&2; exit 1; }
[[ $(id -u) == 0 ]] || die "needs root"
[[ $# -ge 2 ]] || die "usage: see the head of $0"
what=$1 folder=$2
shift 2

# Lists of this machine that are of this release of Debian; otherwise the mirror that mmdebstrap
# chooses.
sources() {
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [[ ! -f $file ]] || ! grep -Eq "(^Suites:|^deb [^#]*) *$release( |\$)" "$file" ||
            echo "$file"
    done
}

fetch() {
    local lists
    mapfile -t lists < <(sources)
    "$root/tools/setup.sh" deb-test
    mkdir -p "$cache"
    apt-config dump --no-empty --format '%F "%v";%n' Acquire >"$cache/apt.conf"
    echo "debian_root: making Debian $release from its packages" >&2
    mmdebstrap --quiet --variant=apt --aptopt="$cache/apt.conf" --include=ca-certificates \
        "$release" "$1" "${lists[@]}"
}

make_root() {
    local kept=$cache/debian-$release.tar new
    if [[ ! -s $kept || -n $(find "$kept" -mtime +7) ]]; then
        mkdir -p "$cache"
        new=$(mktemp -d "$cache/new-XXXXXX")
        fetch "$new/debian.tar"
        mv "$new/debian.tar" "$kept"
        rmdir "$new"
    fi
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    tar -xf "$kept" -C "$folder" --numeric-owner
    cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
}

# usage: mounted SCRIPT ARG...: in a mount namespace where the root has /proc, /dev and /sys.
mounted() {
    unshare --mount --propagation private bash -euo pipefail -c '
        folder=$1
        shift
        mount -t proc proc "$folder/proc"
        mount --rbind /dev "$folder/dev"
        mount --rbind /sys "$folder/sys"
        exec "$@"' mounted "$folder" "$@"
}

case $what in
    make) make_root ;;
    enter) mounted chroot "$folder" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" ;;
    around) mounted env -i HOME="$HOME" LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" ;;
    *) die "no '$what'" ;;
esac
