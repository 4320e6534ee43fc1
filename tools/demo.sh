#!/bin/bash
# What the command says about a folder of made-up models, then about the example models: a label, the
# tensors, the verdict; what it does to a copy of one, and at last a page for a browser of all of them
# with pictures. Or what it says about yours, of a folder with a page. Each line after a $ can be
# pasted into a shell in the clone in which `safetensors` is found.
# usage: tools/demo.sh [MODEL]
set -uo pipefail
shopt -s extglob
cd "$(dirname "$0")/.."
build=${SFT_BUILD:-build}
command=$build/safetensors
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(
    examples/models/lora/neon-city.safetensors
    examples/models/sharded/model.safetensors.index.json)

# A line to paste: words with special characters in quotes.
type_line() {
    local word
    printf '\n$'
    for word in "$@"; do
        [[ $word == +([[:alnum:]_./=:-]) ]] || word=${word@Q}
        printf ' %s' "$word"
    done
    echo
}

show() {
    type_line safetensors "$@"
    "$command" "$@"
    local status=$?
    [[ $status -eq 0 || $1$status == check1 ]] || failed=1 # findings are what was asked for
    [[ $1 != check || $status -ne 0 ]] || echo "(nothing to say: all is well)"
}

# The made-up models, with pictures; each folder of them but one is without a fault.
collect() {
    [[ -e $demo/models ]] || { rm -rf "$demo/new" && mkdir -p "$demo" &&
        python3 tools/collection.py "$demo/new" && mv "$demo/new" "$demo/models"; }
}

# A page of folders.
browse() {
    mkdir -p "$demo"
    local words=(catalog "$@" -o "$demo/catalogue.html")
    type_line safetensors "${words[@]}"
    "$command" "${words[@]}" || failed=1
    [[ $demo == /* ]] || demo=$PWD/$demo
    printf '\nA browser shows it: file://%s/catalogue.html\n' "$demo"
}

failed=0 demo=${build#"$PWD/"}/demo
[[ $# -gt 0 ]] || { collect && show info -r "$demo"/models/loras/{flux,illustrious,pony,sd15}; } ||
    failed=1
for model in "${models[@]}"; do
    case $model in "~/"*) model=$HOME/${model#"~/"} ;; esac # as make hands it on
    if [[ -d $model ]]; then
        show info -r "$model"
        show check -r "$model"
        browse "$model" --force
    else
        show info "$model"
        show ls "$model"
        show check "$model"
    fi
done

# On a copy, in a temporary folder.
change() {
    local scratch
    scratch=$(mktemp -d) || return 1
    cp examples/models/lora/neon-city.safetensors "$scratch/city.safetensors"
    [[ $command == /* ]] || command=$PWD/$command
    cd "$scratch" || return 1
    type_line cp examples/models/lora/neon-city.safetensors city.safetensors
    show meta set city.safetensors modelspec.title "Neon City II"
    show convert city.safetensors -o large.safetensors --dtype F32
    show info large.safetensors
    cd / && rm -rf "$scratch"
}

[[ $# -gt 0 ]] || (change; exit $failed) || failed=1
[[ $# -gt 0 ]] || browse examples/models "$demo/models" --title "Example models" --force
exit $failed
