#!/bin/bash
# Python's tests with extension and library built for a sanitizer: "thread" for the tests of
# threads, "address" (with undefined behaviour) for all short ones. Its runtime is loaded before
# Python; what Python itself and other extensions do is not looked at, for they are not built for
# it, nor are leaks, for Python leaves much at its end.
# usage: tools/sanitized_python.sh thread|address [PYTEST ARG...]   after `make build python`
# SFT_PYTHON names another Python than build/venv's, best a free-threaded one; it needs pytest,
# hypothesis and numpy.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${SFT_PYTHON:-$PWD/build/venv/bin/python}
kind=$1
tests=("${@:2}")
abi=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
case $kind in
thread)
    build=build/tsan-python$abi library=libtsan.so sanitize=thread
    [[ ${#tests[@]} -gt 0 ]] || tests=(tests/python/test_threads.py) ;;
address)
    build=build/asan-python$abi library=libasan.so sanitize=address,undefined
    # test_children are of what is installed; how memory grows is not asked of such an allocator,
    # which a child of fork may find locked, and which the tests that preload a library of their
    # own or limit addresses would not start
    [[ ${#tests[@]} -gt 0 ]] ||
        tests=(-m "not long"
               -k "not (leak or memory or fork or locks or cannot_be_renamed or does_not_map)"
               tests/python --ignore=tests/python/test_package.py
               --ignore=tests/python/test_children.py) ;;
*) echo "usage: sanitized_python.sh thread|address [PYTEST ARG...]" >&2; exit 2 ;;
esac

# gcc's, for its runtime is a shared library.
CC=gcc cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    "-DSFT_SANITIZE=$sanitize" -DSFT_EXTENSION=ON -DSFT_COMMAND=OFF -DSFT_USE_ZLIB=OFF \
    -DSFT_USE_CRYPTO=OFF "-DPython_EXECUTABLE=$python" >/dev/null
cmake --build "$build" --target sft_extension >"$build/build.log" ||
    { cat "$build/build.log"; exit 1; }
for folder in bindings/python/libsafetensors/*/; do # the modules are there
    ln -sfn "$PWD/$folder" "$build/python/libsafetensors/$(basename "$folder")"
done

runtime=$(gcc -print-file-name=$library)
[[ -e $runtime ]] || { echo "sanitized_python.sh: gcc has no $library" >&2; exit 1; }
export SFT_COMMAND=${SFT_COMMAND:-$PWD/build/safetensors}
log=$PWD/$build/report
rm -f "$log".*
# The runtime wants addresses where it expects them: no randomisation. It looks for what C++ throws
# by as it starts, and PyTorch brings that only later: so libstdc++ stands beside it.
status=0
TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=0 exitcode=0 log_path=$log" \
ASAN_OPTIONS="detect_leaks=0 allocator_may_return_null=1 log_path=$log" \
UBSAN_OPTIONS="print_stacktrace=1 log_path=$log" \
LD_PRELOAD="$(readlink -f "$runtime") $(readlink -f "$(gcc -print-file-name=libstdc++.so)")" \
    PYTHONPATH=$PWD/$build/python \
    setarch "$(uname -m)" -R "$python" -m pytest -q -p no:cacheprovider "${tests[@]}" || status=$?
if compgen -G "$log.*" >/dev/null; then
    cat "$log".*
    echo "reports: $(cat "$log".* | grep -cE "^WARNING: ThreadSanitizer|AddressSanitizer:|runtime error:")"
    status=1
fi
exit $status
