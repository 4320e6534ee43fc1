#!/bin/bash
# Build the Debian packages of the last commit into build/deb and check them with lintian.
# usage: tools/deb.sh [--again]     --again: build once more, elsewhere; the bytes must be equal
#
# MAINTAINER='Name <address>' replaces the placeholder of packaging/debian in packages that are
# given to others.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=$root/build/deb
version=$(python3 -c 'import sys; sys.path.insert(0, "tools"); sys.dont_write_bytecode = True
import source_archive; print(source_archive.version())')

archive=libsafetensors_$version.orig.tar.gz

# build FOLDER [VARIABLE=VALUE...]: leaves the packages of the archive in FOLDER there.
build() {
    local folder=$1 log=$1.log
    shift
    mkdir "$folder/source"
    tar -xzf "$folder/$archive" -C "$folder/source"
    mv "$folder/source/libsafetensors-$version" "$folder/source/build-here"
    (
        cd "$folder/source/build-here"
        cp -r packaging/debian debian
        [[ -z ${MAINTAINER:-} ]] || sed -i \
            "s/The libsafetensors authors <maintainers@libsafetensors.invalid>/$MAINTAINER/" \
            debian/control debian/changelog
        mv "../../$archive" ..
        env -u MAKEFLAGS -u MAKELEVEL "$@" dpkg-buildpackage -us -uc
    ) >"$log" 2>&1 || { tail -40 "$log" >&2; echo "deb: failed; all of it: $log" >&2; exit 1; }
    mv "$folder"/source/*.* "$folder"
    rm -rf "$folder/source"
}

if [[ ${1:-} == --again ]]; then
    # Another folder, time zone, language, mask and number of processes.
    umask 077
    rm -rf "$out-again"
    mkdir "$out-again"
    cp "$out/$archive" "$out-again"
    build "$out-again" TZ=Pacific/Kiritimati LC_ALL=C DEB_BUILD_OPTIONS="nocheck parallel=1"
    for package in "$out"/*.deb; do
        cmp "$package" "$out-again/${package##*/}"
    done
    rm -rf "$out-again"
    echo "deb: $(ls "$out"/*.deb | wc -l) packages are the same in two builds"
    exit 0
fi
rm -rf "$out"
mkdir -p "$out"
tools/source_archive.py "$out/$archive"
build "$out"
lintian --fail-on error,warning "$out"/*.changes
ls "$out"/*.deb
