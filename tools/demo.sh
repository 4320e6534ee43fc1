#!/bin/bash
# What the command says about the example models, or about yours.
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
for model in "${models[@]}"; do
    show info "$model"
    show ls "$model"
    show check "$model"
done
exit $failed
