#!/bin/bash
# What the command says about the example models, or about yours: a label, the tensors, the
# verdict; of the examples a catalogue first, and at last what it does to a copy of one.
# usage: tools/demo.sh [MODEL]
set -uo pipefail
cd "$(dirname "$0")/.."
command=build/safetensors
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(
    examples/models/lora/neon-city.safetensors
    examples/models/sharded/model.safetensors.index.json
    examples/models/quantised.safetensors
    examples/models/every-dtype.safetensors)

show() {
    printf '\n$ safetensors %s\n' "$*"
    "$command" "$@"
    local status=$?
    [[ $status -eq 0 ]] || failed=1
    [[ $1 != check || $status -ne 0 ]] || echo "(nothing to say: all is well)"
}

failed=0
[[ $# -gt 0 ]] || show info -r examples/models
for model in "${models[@]}"; do
    show info "$model"
    show ls "$model"
    show check "$model"
done

# On a copy, in a temporary folder.
change() {
    local scratch
    scratch=$(mktemp -d) || return 1
    cp examples/models/lora/neon-city.safetensors "$scratch/city.safetensors"
    command=$PWD/$command
    cd "$scratch" || return 1
    printf '\n$ cp examples/models/lora/neon-city.safetensors city.safetensors\n'
    show meta set city.safetensors modelspec.title "Neon City II"
    show convert city.safetensors -o small.safetensors --dtype F8_E4M3
    show info small.safetensors
    cd / && rm -rf "$scratch"
}

[[ $# -gt 0 ]] || change
exit $failed
