#!/bin/bash
# Make build/windows: the command, the DLL with its import library, the static library, headers,
# CMake package and pkg-config file for 64-bit Windows, and a zip of them, by zig (the UCRT).
# SFT_ZIG_TARGET=aarch64-windows-gnu: for ARM.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${SFT_ZIG_TARGET:-x86_64-windows-gnu}
out=$root/build/windows
objects=$root/build/windows-${target%%-*}

"$root/tools/zig_env.sh"
# The same bytes whatever folder it is built in: without -s objects hold their own names.
export CFLAGS="-ffile-prefix-map=$root=. -g0 -s" LDFLAGS=-s
cmake -S "$root" -B "$objects" -G Ninja --log-level=WARNING \
    -DCMAKE_TOOLCHAIN_FILE="$root/cmake/zig.cmake" -DSFT_ZIG_TARGET="$target" \
    -DCMAKE_BUILD_TYPE=Release -DSFT_FOREIGN=ON -DSFT_WERROR=ON >/dev/null
cmake --build "$objects"
rm -rf "$out"
cmake --install "$objects" --prefix "$out" >/dev/null
cp "$root/LICENSE" "$out/"
sed 's/$/\r/' "$root/packaging/windows/README.txt" >"$out/README.txt"
version=$(sed -n 's/.*SFT_VERSION_STRING "\(.*\)"/\1/p' "$root/include/safetensors.h")
archive=libsafetensors-$version-windows-${target%%-*}.zip
python3 "$root/tools/zip_folder.py" "$out" "$root/build/$archive"
mv "$root/build/$archive"{,.sha256} "$out/"
