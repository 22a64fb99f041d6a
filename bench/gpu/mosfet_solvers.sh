#!/usr/bin/env bash
# The solvers of a chord iteration on one core and on the machine's first CUDA device, same matrix.
#
#   bench/gpu/mosfet_solvers.sh [BIN]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin}
OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 "$bin/mosfet_solvers"
"$bin/mosfet_solvers_cuda"
