#!/bin/bash
# Make build/spark: the packages of tests/requirements-spark.txt, Spark itself among them, and
# this clone's own package, built from it. Does only what is not done already.
# usage: tools/spark_env.sh [--count] [VERSION]
#   --count   close with "N passed, N failed", for tests/run.py
#   VERSION   build/spark-VERSION of tests/requirements-spark-VERSION.txt instead, as 4.0
#
# Wheels are kept outside the clone, in a folder named by the lock file, so that a second
# environment is made without a network. Spark comes as a source package of 450 MB, is made a
# wheel once, and needs 2.5 GB of room there while that lasts. What the Python suites or another
# Spark have fetched (tools/venv.sh) is not fetched again.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
count=
[[ ${1:-} != --count ]] || { count=1; shift; }
version=${1:-}
venv=$root/build/spark${version:+-$version}
lock=$root/tests/requirements-spark${version:+-$version}.txt
sources=(CMakeLists.txt pyproject.toml LICENSE cmake src include cli bindings/python)

say() { echo "spark_env.sh: $*" >&2; }

[[ -f $lock ]] || { say "no ${lock#"$root"/}"; exit 2; }
python=$(command -v python3) || { say "python3 is missing"; exit 1; }
headers='import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))'
[[ -e $("$python" -c "$headers") ]] || "$root/tools/setup.sh" python
key=$({ cat "$lock"; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
      sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors
wheels=$cache/spark-$key

pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }

# Spark runs the java of JAVA_HOME, else that of PATH.
java_of_spark() {
    if [[ -n ${JAVA_HOME:-} ]]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi
}

check_java() {
    local java found
    java=$(java_of_spark)
    if [[ -z $java ]]; then
        "$root/tools/setup.sh" spark
        java=$(java_of_spark)
    fi
    found=$("${java:-java}" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p;T;q') || true
    [[ ${found:-0} -ge 17 ]] && return
    say "Spark needs Java 17 or later, found ${found:+version $found in }${java:-none}" \
        "(openjdk-17-jre-headless on Debian 12; JAVA_HOME chooses one)"
    exit 1
}

fetch_wheels() {
    local near=()
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new" "$venv"' EXIT
    for folder in "$cache"/wheels-* "$cache"/spark-*; do
        [[ ! -d $folder ]] || near+=(--find-links "$folder")
    done
    say "fetching the packages of ${lock#"$root"/} into $wheels"
    mkdir "$new/wheels" "$new/tmp"
    # pyspark is a source package: it is made a wheel here, on the disk that will hold it.
    if ! TMPDIR=$new/tmp pip wheel -qq --no-deps --no-cache-dir --use-pep517 --retries 5 \
        "${near[@]}" -r "$lock" --wheel-dir "$new/wheels"; then
        say "cannot fetch the packages of ${lock#"$root"/}: that needs PyPI, or an index that" \
            "pip is told of, once, and 2.5 GB in $cache ($(df -h --output=avail "$cache" |
            tail -1 | tr -d ' ') are free)"
        exit 1
    fi
    # Whole or not at all; when another process was first, its copy serves as well.
    mv -T "$new/wheels" "$wheels" 2>/dev/null || [[ -d $wheels ]]
    rm -rf "$new"
    trap 'rm -rf "$venv"' EXIT
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
        "import numpy, pandas, pyarrow.parquet, pyarrow.compute, pytest, safetensors.numpy"
    "$venv/bin/python" -m compileall -q -x '/pyspark/.*/(tests|examples)/' \
        "$venv"/lib/python3*/site-packages/pyspark
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
        --config-settings=build-dir=build/wheel-spark .
    mv "$stamp.new" "$stamp"
}

check_java
[[ -e $venv/key && $(<"$venv/key") == "$key" ]] || make_venv
install_package
[[ -z $count ]] || echo "1 passed, 0 failed"
