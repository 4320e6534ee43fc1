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

# build FOLDER [VARIABLE=VALUE...]: leaves the packages in FOLDER.
build() {
    local folder=$1 log=$1.log
    shift
    rm -rf "$folder"
    mkdir -p "$folder/source"
    tools/source_archive.py "$folder/libsafetensors_$version.orig.tar.gz"
    tar -xzf "$folder/libsafetensors_$version.orig.tar.gz" -C "$folder/source"
    mv "$folder/source/libsafetensors-$version" "$folder/source/build-here"
    (
        cd "$folder/source/build-here"
        cp -r packaging/debian debian
        [[ -z ${MAINTAINER:-} ]] || sed -i \
            "s/The libsafetensors authors <maintainers@libsafetensors.invalid>/$MAINTAINER/" \
            debian/control debian/changelog
        mv ../../*.orig.tar.gz ..
        env -u MAKEFLAGS -u MAKELEVEL "$@" dpkg-buildpackage -us -uc
    ) >"$log" 2>&1 || { tail -40 "$log" >&2; echo "deb: failed; all of it: $log" >&2; exit 1; }
    mv "$folder"/source/*.* "$folder"
    rm -rf "$folder/source"
}

if [[ ${1:-} == --again ]]; then
    # Another folder, time zone, language, mask and number of processes.
    umask 077
    build "$out-again" TZ=Pacific/Kiritimati LC_ALL=C DEB_BUILD_OPTIONS="nocheck parallel=1"
    for package in "$out"/*.deb; do
        cmp "$package" "$out-again/${package##*/}"
    done
    rm -rf "$out-again"
    echo "deb: $(ls "$out"/*.deb | wc -l) packages are the same in two builds"
    exit 0
fi
build "$out"
lintian --fail-on error,warning "$out"/*.changes
ls "$out"/*.deb
