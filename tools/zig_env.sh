#!/bin/bash
# Make build/zig: the compiler of the pinned PyPI package ziglang, which compiles and links for
# Windows, macOS and any Linux. build/zig/{cc,ar,ranlib,rc,dlltool} are what cmake/zig.cmake calls;
# build/zig/zig is the whole.
#
# SFT_CACHE (build/cache) holds the unpacked compiler and what it has compiled of its own
# C libraries; clones may share it.
# usage: tools/zig_env.sh [--count]     --count: close with "N passed, N failed", for tests/run.py
set -euo pipefail
version=0.17.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${SFT_CACHE:-$root/build/cache}
zig=$cache/zig-$version
bin=$root/build/zig
# A path as the shell of a wrapper reads it.
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

fetch_zig() {
    local new
    mkdir -p "$cache"
    cache=$(cd "$cache" && pwd)
    zig=$cache/zig-$version
    [[ ! -x $zig/ziglang/zig ]] || return 0
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary :all: \
        --retries 5 --dest "$new/wheel" "ziglang==$version" || {
        echo "zig_env.sh: cannot fetch ziglang $version: that needs PyPI, or another index in" \
            "pip's configuration, once, and 600 MB in $cache" >&2
        exit 1
    }
    python3 -m zipfile -e "$new/wheel/ziglang-$version"-*.whl "$new/zig"
    chmod +x "$new/zig/ziglang/zig"
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new/zig" "$zig" 2>/dev/null || [[ -x $zig/ziglang/zig ]]
    rm -rf "$new"
    trap - EXIT
}

write_wrapper() {
    local name=$1 new
    new=$(mktemp "$bin/new-XXXXXX")
    cat >"$new" <<END
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR=$(quoted "$cache/zig-built") ZIG_LOCAL_CACHE_DIR=$(quoted "$cache/zig-built")
exec $(quoted "$zig/ziglang/zig")${2:+ $2} "\$@"
END
    chmod 755 "$new"
    # Builds that are under way, and ccache, see no change where there is none.
    if cmp -s "$new" "$bin/$name"; then rm "$new"; else mv "$new" "$bin/$name"; fi
}

fetch_zig
mkdir -p "$bin"
write_wrapper zig ""
for tool in cc ar ranlib rc dlltool; do write_wrapper "$tool" "$tool"; done
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
