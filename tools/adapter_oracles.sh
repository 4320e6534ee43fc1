#!/bin/bash
# Make tests/adapter/cases with LyCORIS, PEFT and torch, and compute the figures of
# docs/disagreements.md, which must have them: makes build/oracles, which `make oracles` uses too, where $ADAPTER_ORACLES
# names no environment that has them.
# usage: tools/adapter_oracles.sh [NAME...]
set -euo pipefail
name=oracles
locks=(tests/requirements-zoo.txt tests/requirements-oracles.txt)
warm="import torch"
fetch="download --only-binary :all:"
room="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
if [[ -z ${ADAPTER_ORACLES:-} ]]; then
    make_environment
    ADAPTER_ORACLES=$venv
fi
"$ADAPTER_ORACLES/bin/python" "$root/tools/adapter_oracles.py" "$root/tests/adapter/cases" "$@"
"$ADAPTER_ORACLES/bin/python" "$root/tools/adapter_oracles.py" --disagreements \
    "$root/docs/disagreements.md"
