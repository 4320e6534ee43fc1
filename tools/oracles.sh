#!/bin/bash
# Make the lists of tests/zoo that come from programs of the field instead of packages: comfy,
# later, diffsynth, trainers, presets and forms. Clones them at the commits below into
# build/oracle-clones ($ORACLES names a folder that has them already), makes build/oracles with what
# they import, and runs their own code.
# usage: tools/oracles.sh
set -euo pipefail
name=oracles
locks=(tests/requirements-zoo.txt tests/requirements-oracles.txt)
warm="import torch"
fetch="download --only-binary :all:"
room="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
make_environment

# usage: clone REPOSITORY COMMIT [FOLDER]
clone() {
    local folder=$root/build/oracle-clones/${3:-${1#*/}}
    [[ ! -e $folder/.complete ]] || return 0
    rm -rf "$folder"
    git init -q "$folder"
    git -C "$folder" fetch -q --depth 1 "https://github.com/$1" "$2"
    git -C "$folder" checkout -q FETCH_HEAD
    touch "$folder/.complete"
}

if [[ -z ${ORACLES:-} ]]; then
    clone Comfy-Org/ComfyUI a125cd84b054a57729b5eecab930ca9408719832
    clone Comfy-Org/ComfyUI fc5f4a996b9c752a716badbbc11bacc396281466 ComfyUI-2026
    clone kohya-ss/musubi-tuner 30c658c4f4b0bf05038b3346eff9670259b10fc7
    clone kohya-ss/sd-scripts 48d368fa557731ad0488c07304dfeba8c07910eb
    clone modelscope/DiffSynth-Studio fed7b18fac2ed4cb802796eec91970e7659bccde
    clone invoke-ai/InvokeAI 8e71a8a519399d6db32054ae9afc7c6c4e2355af
    clone Nerogar/OneTrainer 23df3832e8f213d64c337e39f9365ba46e99fed0
    clone bghira/SimpleTuner bc8e6ab7738ce457a2ed8eb2d26cadd91c6442cb
    clone ostris/ai-toolkit 27a03a91f23eb1b757d5ec2e80ee3e129cfcc350
fi
ORACLES=${ORACLES:-$root/build/oracle-clones} "$venv/bin/python" "$root/tools/zoo.py" \
    comfy later diffsynth trainers presets forms
