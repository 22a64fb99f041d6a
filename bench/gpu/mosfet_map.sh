#!/usr/bin/env bash
# Computes a current-voltage map on CUDA devices and the files from which the pictures of
# docs/figures/mosfet are drawn.
# Every finished point is in OUTPUT/iv.csv at once. A second call continues where the first one
# stopped.
#
#   bench/gpu/mosfet_map.sh [BIN] [OUTPUT]
#
#   DECK=examples/mosfet/iv_standard.toml    another deck than the map on half the mesh
#   DEVICES=cuda:0,cuda:1                    several devices share the chains of bias points
#   VGS='[0.1, 0.3]'                         only these gate biases
#   LIMIT_S=180                              stops after so many seconds
#   CONVERGE=1                               repeats the map on coarser meshes for error bars
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin} output=${2:-build/mosfet-map}
SECONDS=0
timeout -s INT "${LIMIT_S:-86400}" "$bin/quasi-engine" run mosfet \
  "${DECK:-examples/mosfet/iv_map.toml}" --device "${DEVICES:-cuda:0}" --quiet \
  -d "$output" ${VGS:+--set "bias.vgs=$VGS"} ${CONVERGE:+--converge} || echo "stopped"
echo "seconds $SECONDS for $(($(wc -l < "$output/iv.csv") - 1)) points," \
  "$(grep -c "converged\|unresolved" "$output/iv.csv") of them steady"
