#!/bin/bash
# Make build/engines: the packages of tests/requirements-engines.txt (Ray, Daft, DuckDB, Polars, HF datasets)
# and this clone's own package (see environment.sh).
# usage: tools/engines_env.sh [--count]     --count: close with "N passed, N failed", for
#                                           tests/run.py
set -euo pipefail
name=engines
locks=(tests/requirements-engines.txt)
warm="import pandas, pyarrow.parquet, ray.data, daft, duckdb, polars, datasets, pytest
import safetensors.numpy"
fetch="download --only-binary :all:"
download_size="0.5 GB"
source "$(dirname "$0")/environment.sh"

make_environment
[[ ${1:-} != --count ]] || echo "1 passed, 0 failed"
