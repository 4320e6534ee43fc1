#!/bin/bash
# What the command says about the example models, or about yours: a label, the tensors, the
# verdict; of the examples a list first, then what it does to a copy of one, and at last a page for
# a browser of them and of made-up models with pictures.
# usage: tools/demo.sh [MODEL]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${SFT_BUILD:-build}
command=$build/safetensors
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
    [[ $command == /* ]] || command=$PWD/$command
    cd "$scratch" || return 1
    printf '\n$ cp examples/models/lora/neon-city.safetensors city.safetensors\n'
    show meta set city.safetensors modelspec.title "Neon City II"
    show convert city.safetensors -o small.safetensors --dtype F8_E4M3
    show info small.safetensors
    cd / && rm -rf "$scratch"
}

# Status 1: one of the made-up models is a download that was cut short.
browse() {
    local folder=${build#"$PWD/"}/demo folders=(examples/models)
    local title="Example models"
    [[ -e $folder/models ]] || { rm -rf "$folder/new" &&
        python3 tools/collection.py "$folder/new" && mv "$folder/new" "$folder/models"; }
    [[ ! -e $folder/models ]] || folders+=("$folder/models")
    mkdir -p "$folder"
    printf '\n$ safetensors catalog %s --title "%s" -o %s/catalogue.html --force\n' \
        "${folders[*]}" "$title" "$folder"
    "$command" catalog "${folders[@]}" --title "$title" -o "$folder/catalogue.html" --force
    [[ $? -le 1 ]] || failed=1
    [[ $folder == /* ]] || folder=$PWD/$folder
    printf '\nA browser shows it: file://%s/catalogue.html\n' "$folder"
}

[[ $# -gt 0 ]] || (change; exit $failed) || failed=1
[[ $# -gt 0 ]] || browse
exit $failed
