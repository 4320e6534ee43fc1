#!/bin/bash
# Make build/packaging: the packages of tests/requirements-packaging.txt (see environment.sh),
# without this clone's own.
# usage: tools/packaging_env.sh
set -euo pipefail
name=packaging
locks=(tests/requirements-packaging.txt)
warm="import conan, spdx_tools.spdx.validation.document_validator"
fetch="wheel --use-pep517"
download_size="20 MB"
source "$(dirname "$0")/environment.sh"

install_package() { :; }
make_environment
