#!/bin/bash
# The tests of threads with extension and library built for ThreadSanitizer. Its runtime is
# loaded before Python; what Python itself and other extensions do is not looked at, for they
# are not built for it.
# usage: tools/tsan_python.sh [PYTEST ARG...]     `make python` must have run
# SFT_PYTHON names another Python than build/venv's, best a free-threaded one; it needs pytest,
# hypothesis and numpy.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${SFT_PYTHON:-$PWD/build/venv/bin/python}
build=build/tsan-python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(tests/python/test_threads.py)

# gcc's, for its runtime is a shared library.
CC=gcc cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DSFT_SANITIZE=thread -DSFT_EXTENSION=ON -DSFT_COMMAND=OFF -DSFT_USE_ZLIB=OFF \
    -DSFT_USE_CRYPTO=OFF "-DPython_EXECUTABLE=$python" >/dev/null
cmake --build "$build" --target sft_extension >"$build/build.log" ||
    { cat "$build/build.log"; exit 1; }

runtime=$(gcc -print-file-name=libtsan.so)
[[ -e $runtime ]] || { echo "tsan_python.sh: gcc has no libtsan.so" >&2; exit 1; }
log=$PWD/$build/report
rm -f "$log".*
# The runtime wants addresses where it expects them: no randomisation.
status=0
TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=0 exitcode=0 log_path=$log" \
LD_PRELOAD=$(readlink -f "$runtime") PYTHONPATH=$PWD/$build/python SFT_TSAN=1 \
    setarch "$(uname -m)" -R "$python" -m pytest -q "${tests[@]}" || status=$?
if compgen -G "$log.*" >/dev/null; then
    cat "$log".*
    echo "data races: $(cat "$log".* | grep -c "^WARNING: ThreadSanitizer")"
    status=1
fi
exit $status
