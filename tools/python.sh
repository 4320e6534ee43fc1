#!/bin/bash
# Run Python with the packages of tests/requirements.txt, from an environment kept
# outside the clone and made on first use. usage: tools/python.sh SCRIPT [ARG...]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lock=$root/tests/requirements.txt

# The lock names wheels for CPython 3.11 and later; python3 is 3.11 on Debian 12.
python=$(command -v python3) || { echo "python.sh: python3 is missing" >&2; exit 1; }
key=$({ cat "$lock"; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
      sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
venv=$cache/venv-$key

make_venv() {
    "$python" -m venv "$1" >"$1.log" 2>&1 || {
        # ensurepip is a package of its own on Debian.
        rm -rf "$1"
        "$root/tools/setup.sh" test
        "$python" -m venv "$1" >"$1.log" 2>&1
    } &&
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        --retries 5 -r "$lock" >>"$1.log" 2>&1
}

if [[ ! -x $venv/bin/python ]]; then
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new" "$new.log"' EXIT
    echo "python.sh: installing the packages of tests/requirements.txt into $venv" >&2
    make_venv "$new" || { cat "$new.log" >&2; exit 1; }
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new" "$venv" 2>/dev/null || [[ -x $venv/bin/python ]]
    rm -rf "$new" "$new.log"
    trap - EXIT
fi
exec "$venv/bin/python" "$@"
