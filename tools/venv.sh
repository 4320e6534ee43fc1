#!/bin/bash
# Make build/venv: the packages of tests/requirements.txt and tests/requirements-python.txt,
# and this clone's own package, built from it. Does only what is not done already.
# usage: tools/venv.sh [--count]     --count: close with "N passed, N failed", for tests/run.py
#
# Third-party wheels are kept outside the clone, in a folder named by the lock files, so that
# a second environment is made without a network. torch: pip takes what its index offers; a
# build for CUDA will not do, since nothing of CUDA is installed with it. Give pip an index
# of CPU builds (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS or pip's configuration).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/venv
locks=("$root/tests/requirements.txt" "$root/tests/requirements-python.txt")
sources=(CMakeLists.txt pyproject.toml LICENSE cmake src include cli bindings/python)

say() { echo "venv.sh: $*" >&2; }

# What is imported by every run is compiled once, not by each.
warm="import numpy, ml_dtypes, torch, pytest, hypothesis, pyarrow, safetensors.torch
import transformers, diffusers, flax"

python=$(command -v python3) || { say "python3 is missing"; exit 1; }
headers='import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))'
[[ -e $("$python" -c "$headers") ]] || "$root/tools/setup.sh" python
key=$({ cat "${locks[@]}"; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
      sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
wheels=$cache/wheels-$key

fetch_wheels() {
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    say "fetching the packages of ${locks[*]#"$root"/} into $wheels"
    "$venv/bin/python" -m pip download -qq --disable-pip-version-check --no-deps \
        --only-binary :all: --retries 5 -r "${locks[0]}" -r "${locks[1]}" --dest "$new"
    # Whole or not at all; when another process was first, its copy serves as well.
    mv -T "$new" "$wheels" 2>/dev/null || [[ -d $wheels ]]
    rm -rf "$new"
    trap - EXIT
}

make_venv() {
    rm -rf "$venv"
    mkdir -p "$root/build"
    # ensurepip is a package of its own on Debian.
    "$python" -m venv "$venv" >/dev/null || { "$root/tools/setup.sh" test; "$python" -m venv "$venv"; }
    [[ -d $wheels ]] || fetch_wheels
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-index --no-deps \
        --no-compile --find-links "$wheels" -r "${locks[0]}" -r "${locks[1]}"
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -W ignore -c "$warm"
    ln -sfn "$wheels" "$venv/wheels"
    echo "$key" >"$venv/key"
}

install_package() {
    local stamp=$venv/package
    cd "$root"
    if [[ -e $stamp && -z $(find "${sources[@]}" -newer "$stamp" -not -name __pycache__ \
                            -not -name '*.pyc' -print -quit) ]]; then
        return
    fi
    touch "$stamp.new"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-index --no-deps \
        --no-build-isolation --force-reinstall --config-settings=build-dir=build/wheel .
    mv "$stamp.new" "$stamp"
}

[[ -e $venv/key && $(<"$venv/key") == "$key" && -d $wheels ]] || make_venv
install_package
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
