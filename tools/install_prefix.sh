#!/bin/bash
# Fail unless this user can write where `make install` will. usage: tools/install_prefix.sh PREFIX
set -euo pipefail
for folder in "$1"/{bin,lib,include,share}; do
    while [[ ! -e $folder ]]; do folder=$(dirname "$folder"); done
    # Tried: permissions alone say nothing to root, or on a read-only file system.
    trial=$(mktemp -d "$folder/.install-XXXXXX" 2>/dev/null) || {
        echo "install: cannot write to $folder: use sudo, or PREFIX=~/.local" >&2
        exit 1
    }
    rmdir "$trial"
done
