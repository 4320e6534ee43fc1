#!/bin/bash
# Build and install the source archive of build/dist in a fresh Debian 12, as docs/install.md says,
# and compile the two-file form there. usage: tools/dist_test.sh     after `make dist`; needs root
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=build/debian-root
inside=(tools/debian_root.sh enter "$fresh")
(cd build/dist && sha256sum --quiet -c SHA256SUMS)
tools/setup.sh deb-test

step() { echo "dist_test: $*"; }

step "a fresh Debian with a compiler, CMake and Ninja"
tools/debian_root.sh make "$fresh"
"${inside[@]}" bash -euo pipefail -c 'apt-get -qq update
apt-get -qq install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config >/dev/null'
mkdir "$fresh/dist"
cp build/dist/*.tar.gz "$fresh/dist"
cp tests/install/use.sh "$fresh/dist"

step "build and install the source archive"
# shellcheck disable=SC2016
"${inside[@]}" bash -euo pipefail -c 'cd /dist
tar -xzf libsafetensors-*-source.tar.gz
cd libsafetensors-*[0-9]/
{ cmake --preset release && cmake --build --preset release &&
  cmake --install build --prefix /usr/local; } >/dist/log 2>&1 || { tail -40 /dist/log; exit 1; }
sh /dist/use.sh safetensors
ldconfig
flags=$(pkg-config --cflags --libs safetensors)
cc -std=c11 tests/install/consumer.c $flags -o /dist/program
/dist/program'

step "compile the two-file form"
"${inside[@]}" bash -euo pipefail -c 'cd /dist
tar -xzf libsafetensors-*-bundle.tar.gz
cd libsafetensors-*-bundle/
cc -std=c11 -O1 -Wall -Wextra -Werror -pthread -I. \
    ../libsafetensors-*[0-9]/tests/install/consumer.c safetensors.c -o program
./program'
rm -rf --one-file-system "$fresh"
echo "dist_test: passed"
