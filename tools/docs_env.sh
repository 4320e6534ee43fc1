#!/bin/bash
# Make build/docs: the packages of tests/requirements-docs.txt (see environment.sh), without this
# clone's own.
# usage: tools/docs_env.sh
set -euo pipefail
name=docs
locks=(tests/requirements-docs.txt)
warm="import mkdocs"
fetch="download --only-binary :all:"
download_size="10 MB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
make_environment
