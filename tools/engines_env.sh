#!/bin/bash
# Make build/engines: the packages of tests/requirements-engines.txt, Ray and Daft among them,
# and this clone's own package, built from it. Does only what is not done already.
# usage: tools/engines_env.sh [--count]   --count: close with "N passed, N failed", for
#                                         tests/run.py
#
# Wheels (220 MB) are kept outside the clone, in a folder named by the lock file, so that a
# second environment is made without a network; what another environment has fetched is not
# fetched again.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/engines
lock=$root/tests/requirements-engines.txt
sources=(CMakeLists.txt pyproject.toml LICENSE cmake src include cli bindings/python)

say() { echo "engines_env.sh: $*" >&2; }

python=$(command -v python3) || { say "python3 is missing"; exit 1; }
headers='import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))'
[[ -e $("$python" -c "$headers") ]] || "$root/tools/setup.sh" python
key=$({ cat "$lock"; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
      sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
wheels=$cache/engines-$key

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

fetch_wheels() {
    local near=() folder
    mkdir -p "$cache"
    for folder in "$cache"/*/; do near+=(--find-links "$folder"); done
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new" "$venv"' EXIT
    say "fetching the packages of ${lock#"$root"/} into $wheels"
    pip download -qq --no-deps --only-binary :all: --no-cache-dir --retries 5 "${near[@]}" \
        -r "$lock" --dest "$new"
    # Whole or not at all; when another process was first, its copy serves as well.
    mv -T "$new" "$wheels" 2>/dev/null || [[ -d $wheels ]]
    rm -rf "$new"
}

make_venv() {
    rm -rf "$venv"
    mkdir -p "$root/build"
    # What is half made would pass for an environment.
    trap 'rm -rf "$venv"' EXIT
    # ensurepip is a package of its own on Debian.
    "$python" -m venv "$venv" >/dev/null || { "$root/tools/setup.sh" test; "$python" -m venv "$venv"; }
    [[ -d $wheels ]] || fetch_wheels
    pip install -qq --no-index --no-deps --no-compile --find-links "$wheels" -r "$lock"
    # What every worker imports is compiled once, not by each.
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -W ignore -c \
        "import pandas, pyarrow.parquet, ray.data, daft, pytest, safetensors.numpy"
    echo "$key" >"$venv/key"
    trap - EXIT
}

install_package() {
    local stamp=$venv/package
    cd "$root"
    if [[ -e $stamp && -z $(find "${sources[@]}" -newer "$stamp" -not -name __pycache__ \
                            -not -name '*.pyc' -print -quit) ]]; then
        return
    fi
    touch "$stamp.new"
    pip install -qq --no-index --no-deps --no-build-isolation --force-reinstall \
        --config-settings=build-dir=build/wheel-engines .
    mv "$stamp.new" "$stamp"
}

[[ -e $venv/key && $(<"$venv/key") == "$key" ]] || make_venv
install_package
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
