#!/bin/bash
# Make the quantised files of tests/quant with the packages of the field: makes build/quant-oracles
# with them, where $QUANT_ORACLES names no such environment.
# usage: tools/quant_oracles.sh [NAME...]
set -euo pipefail
name=quant-oracles
locks=(tests/requirements-quant.txt)
warm="import torch"
fetch="wheel --use-pep517" # hqq has sources only
download_size="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
if [[ -z ${QUANT_ORACLES:-} ]]; then
    make_environment
    QUANT_ORACLES=$venv
fi
"$QUANT_ORACLES/bin/python" "$root/tools/quant_oracles.py" "$root/tests/quant" "$@"
