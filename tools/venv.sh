#!/bin/bash
# Make build/venv: the packages of tests/requirements.txt and tests/requirements-python.txt,
# and this clone's own package (see environment.sh).
# usage: tools/venv.sh [--count]     --count: close with "N passed, N failed", for tests/run.py
#
# torch: pip takes what its index offers; a build for CUDA will not do, since nothing of CUDA is
# installed with it. Give pip an index of CPU builds (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS or
# pip's configuration).
set -euo pipefail
name=venv
locks=(tests/requirements.txt tests/requirements-python.txt)
warm="import numpy, ml_dtypes, torch, pytest, hypothesis, pyarrow, safetensors.torch
import transformers, diffusers, flax"
fetch="download --only-binary :all:"
download_size="1 GB"
source "$(dirname "$0")/environment.sh"

make_environment
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
