#!/bin/bash
# Make build/spark: the packages of tests/requirements-spark.txt, Spark itself among them, and
# this clone's own package, built from it. Does only what is not done already.
# usage: tools/spark_env.sh [--count] [VERSION]
#   --count   close with "N passed, N failed", for tests/run.py
#   VERSION   build/spark-VERSION of tests/requirements-spark-VERSION.txt instead, as 4.0
#
# Wheels are kept outside the clone, in a folder named by the lock file, so that a second
# environment is made without a network: Spark's is 450 MB, and is built once.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
count=
[[ ${1:-} != --count ]] || { count=1; shift; }
version=${1:-}
venv=$root/build/spark${version:+-$version}
lock=$root/tests/requirements-spark${version:+-$version}.txt
sources=(CMakeLists.txt pyproject.toml LICENSE cmake src include cli bindings/python)

say() { echo "spark_env.sh: $*" >&2; }

[[ -f $lock ]] || { say "no $lock"; exit 2; }
command -v java >/dev/null || "$root/tools/setup.sh" spark
python=$(command -v python3) || { say "python3 is missing"; exit 1; }
headers='import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))'
[[ -e $("$python" -c "$headers") ]] || "$root/tools/setup.sh" python
key=$({ cat "$lock"; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
      sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
wheels=$cache/spark-$key

pip() { "$venv/bin/python" -m pip "$@"; }

fetch_wheels() {
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    say "fetching the packages of ${lock#"$root"/} into $wheels"
    # pyspark is a source package: it is made a wheel here.
    pip wheel -qq --disable-pip-version-check --no-deps --no-cache-dir --retries 5 \
        -r "$lock" --wheel-dir "$new"
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
    pip install -qq --disable-pip-version-check --no-index --no-deps --no-compile \
        --find-links "$wheels" -r "$lock"
    # What every worker imports is compiled once, not by each.
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -W ignore -c \
        "import numpy, pandas, pyarrow.parquet, pyspark.sql, pyspark.ml, pytest, safetensors.numpy"
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
    pip install -qq --disable-pip-version-check --no-index --no-deps --no-build-isolation \
        --force-reinstall --config-settings=build-dir=build/wheel-spark .
    mv "$stamp.new" "$stamp"
}

[[ -e $venv/key && $(<"$venv/key") == "$key" ]] || make_venv
install_package
[[ -z $count ]] || echo "1 passed, 0 failed"
