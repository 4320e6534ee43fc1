#!/bin/bash
# Make tests/merge/cases.safetensors anew with mergekit's own functions and compare: makes
# build/merge-oracles with mergekit, where $MERGE_ORACLES names no such environment.
# usage: tools/merge_oracles.sh
set -euo pipefail
name=merge-oracles
locks=(tests/requirements-merge.txt)
warm="import torch, mergekit"
fetch="download --only-binary :all:"
download_size="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
if [[ -z ${MERGE_ORACLES:-} ]]; then
    make_environment
    MERGE_ORACLES=$venv
fi
"$MERGE_ORACLES/bin/python" "$root/tools/merge_oracles.py" "$root/tests/merge/cases.safetensors"
