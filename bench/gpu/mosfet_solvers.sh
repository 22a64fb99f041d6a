#!/usr/bin/env bash
# Times the linear solvers of a chord iteration on one core and on the first CUDA device, for the
# same matrix.
#
#   bench/gpu/mosfet_solvers.sh [BIN]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin}
OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 "$bin/mosfet_solvers"
"$bin/mosfet_solvers_cuda"
