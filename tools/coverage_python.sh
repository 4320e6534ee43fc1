#!/bin/bash
# The tests of Python with extension and library built to count what is reached:
# build/coverage-python, which tools/coverage.py takes beside build/coverage.
# usage: tools/coverage_python.sh [PYTEST ARG...]     `make python` must have run
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/build/venv/bin/python
build=build/coverage-python
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] ||
    tests=(-m "not long" tests/python --ignore=tests/python/test_package.py
           --ignore=tests/python/test_children.py) # which are of what is installed

CC=gcc cmake --preset coverage -B "$build" --log-level=WARNING -DSFT_EXTENSION=ON \
    -DSFT_COMMAND=OFF "-DPython_EXECUTABLE=$python" >/dev/null
cmake --build "$build" --target sft_extension >"$build/build.log" ||
    { cat "$build/build.log"; exit 1; }
for folder in bindings/python/libsafetensors/*/; do # the modules are there
    ln -sfn "$PWD/$folder" "$build/python/libsafetensors/$(basename "$folder")"
done
find "$build" -name '*.gcda' -delete
SFT_COMMAND=${SFT_COMMAND:-$PWD/build/coverage/safetensors} PYTHONPATH=$PWD/$build/python \
    "$python" -m pytest -q -p no:cacheprovider "${tests[@]}"
