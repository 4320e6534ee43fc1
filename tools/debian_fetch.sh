#!/bin/bash
# Unpack packages of a Debian release for a processor into a folder, without installing anything:
# headers, an interpreter for another processor, sources to link.
# usage: tools/debian_fetch.sh SUITE ARCH FOLDER PACKAGE...
#     ARCH            amd64, arm64, or source: the upstream sources of the packages
#     --all           before SUITE: also what the packages depend on
#
# PACKAGE may be PACKAGE=VERSION. Lists and packages are kept in $SFT_CACHE/debian
# (build/cache/debian). They come from the archive of this machine's apt, or $SFT_DEBIAN_MIRROR. apt
# verifies all of it by the keys of debian-archive-keyring; that a list is older than a week is
# accepted.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
all=
[[ ${1:-} != --all ]] || { all=yes; shift; }
[[ $# -ge 4 ]] || { sed -n '2,/^set/{/^#/s/^# \?//p}' "$0" >&2; exit 2; }
suite=$1 arch=$2 folder=$3
shift 3
mkdir -p "${SFT_CACHE:-$root/build/cache}/debian"
cache=$(cd "${SFT_CACHE:-$root/build/cache}/debian" && pwd)
state=$cache/$suite-$arch
kept=$state/$(echo "$all" "$@" | sha256sum | cut -c1-16)
stamp="$suite $arch $all $*"
[[ ! -e $folder/.debian || $(<"$folder/.debian") != "$stamp" ]] || exit 0

# The first archive of Debian that apt knows here.
find_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' |
        sed -n 1p
}

write_configuration() {
    local kind=deb keys=/usr/share/keyrings/debian-archive-keyring.gpg
    local mirror=${SFT_DEBIAN_MIRROR:-$(find_mirror)}
    [[ -e $keys ]] || { echo "debian_fetch.sh: no $keys" >&2; exit 1; }
    [[ $mirror ]] || { echo "debian_fetch.sh: apt knows no archive of Debian here: set" \
        "SFT_DEBIAN_MIRROR to the address of one" >&2; exit 1; }
    [[ $arch != source ]] || kind=deb-src
    mkdir -p "$state"/{lists/partial,archives/partial,apt.conf.d,preferences.d}
    : >"$state/status"
    echo "$kind [signed-by=$keys] $mirror $suite main" >"$state/sources.list"
    cat >"$state/apt.conf" <<END
Dir "$state/";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state";
Dir::Etc "$state";
APT::Architecture "${arch/source/amd64}";
APT::Architectures { "${arch/source/amd64}"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
Debug::NoLocking "true";
END
    export APT_CONFIG=$state/apt.conf
}

download() {
    local new=$1
    shift
    if [[ $arch == source ]]; then
        (cd "$new" && apt-get -qq source --download-only "$@")
    elif [[ $all ]]; then
        mkdir -p "$new/partial" &&
            apt-get -qq -y -o "Dir::Cache::archives=$new" install --download-only "$@" &&
            rm -rf "$new/partial" "$new/lock"
    else
        (cd "$new" && apt-get -qq download "$@")
    fi
}

fetch() {
    local new
    write_configuration
    new=$(mktemp -d "$state/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    # Lists that are already here may do; a stale or absent one is renewed once.
    if ! download "$new" "$@" >"$new.log" 2>&1; then
        rm -rf "$new"/*
        apt-get -qq update >"$new.log" 2>&1 && download "$new" "$@" >>"$new.log" 2>&1 || {
            cat "$new.log" >&2
            echo "debian_fetch.sh: cannot fetch $* of $suite for $arch" >&2
            exit 1
        }
    fi
    rm -f "$new.log"
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new" "$kept" 2>/dev/null || rm -rf "$new"
    trap - EXIT
}

unpack() {
    local file
    rm -rf "$folder"
    mkdir -p "$folder"
    for file in "$kept"/*; do
        case $file in
            *.deb) dpkg-deb -x "$file" "$folder" ;;
            *.orig.tar.?z | *.orig.tar.bz2) tar -xf "$file" -C "$folder" --strip-components=1 ;;
        esac
    done
    echo "$stamp" >"$folder/.debian"
}

[[ -d $kept ]] || fetch "$@"
unpack
