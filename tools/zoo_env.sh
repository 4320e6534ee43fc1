#!/bin/bash
# Make build/zoo: the packages of tests/requirements-zoo.txt (see environment.sh), without this
# clone's own.
# usage: tools/zoo_env.sh
set -euo pipefail
name=zoo
locks=(tests/requirements-zoo.txt)
warm="import torch"
fetch="download --only-binary :all:"
room="1 GB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
make_environment
