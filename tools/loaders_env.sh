#!/bin/bash
# Make build/loaders: the packages of tests/requirements-loaders.txt, the loaders that
# bench/loaders.py compares among them, and this clone's own package (see environment.sh).
# torch: as venv.sh has it.
# usage: tools/loaders_env.sh
set -euo pipefail
name=loaders
locks=(tests/requirements-loaders.txt)
warm="import numpy, torch, webdataset, datasets, lance, lance.torch.data"
fetch="download --only-binary :all:"
download_size="0.6 GB"
source "$(dirname "$0")/environment.sh"

make_environment
