#!/bin/bash
# Make tests/layout/cases.json.gz with diffusers' own converters: makes build/layout-oracles with
# diffusers, where $LAYOUT_ORACLES names no such environment, and fetches the scripts of its
# repository, where $DIFFUSERS_SCRIPTS names no folder that has them.
# usage: tools/layout_oracles.sh [NAME...]
set -euo pipefail
name=layout-oracles
locks=(tests/requirements.txt tests/requirements-python.txt)
warm="import torch, diffusers"
fetch="download --only-binary :all:"
download_size="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
if [[ -z ${LAYOUT_ORACLES:-} ]]; then
    make_environment
    LAYOUT_ORACLES=$venv
fi
if [[ -z ${DIFFUSERS_SCRIPTS:-} ]]; then
    folder=$root/build/oracle-clones/diffusers-scripts
    if [[ ! -e $folder/.complete ]]; then
        rm -rf "$folder"
        git init -q "$folder"
        git -C "$folder" fetch -q --depth 1 https://github.com/huggingface/diffusers \
            58eb52c0803ea9af3abec60841c2a093bdf1f951
        git -C "$folder" checkout -q FETCH_HEAD -- scripts
        touch "$folder/.complete"
    fi
    DIFFUSERS_SCRIPTS=$folder/scripts
fi
export DIFFUSERS_SCRIPTS
"$LAYOUT_ORACLES/bin/python" "$root/tools/layout_oracles.py" "$@"
