#!/usr/bin/env bash
# The half-mesh current-voltage map on the machine's first CUDA device, and the files that docs/jobs/figures is drawn from.
#
#   bench/gpu/mosfet_map.sh [BIN] [OUTPUT]
#   VGS='[0.1, 0.3]'   only these gate biases
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin} output=${2:-build/mosfet-map}
SECONDS=0
"$bin/quasi-engine" run mosfet examples/mosfet/iv_map.toml --device cuda:0 --quiet -d "$output" ${VGS:+--set "bias.vgs=$VGS"}
echo "seconds $SECONDS for $(($(wc -l < "$output/iv.csv") - 1)) points"
