#!/bin/bash
# Computes κ of the shipped silicon on meshes whose four-phonon sums a CPU does not finish.
# Four-phonon rates are drawn uniformly; three phonons are exact and iterated. Draws are doubled
# until κ is known to TARGET. Each line holds one mesh: κ in relaxation times and beyond, with its
# standard error. One core takes 15 s for 12³, 37 s for 16³, and 86 s and 0.6 GB for 20³.
#
#   bench/silicon_sampled.sh [BIN_DIR [MESH…]]     DRAWS=100000 TARGET=0.001 SEED=1
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/cpu/bin}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- 12 16 20 24 32
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
for n; do
  OPENBLAS_NUM_THREADS=1 "$bin/quasi-engine" run thermal examples/thermal/silicon -d "$d/$n" \
    --device cpu --quiet --json \
    --set ngrid="$n,$n,$n" --set T=300 --set coherence=F --set four_phonon=T \
      --set sampling=uniform \
    --set num_sample_process_4ph="${DRAWS:-100000}" --set target_kappa_error="${TARGET:-0.001}" \
      --set seed="${SEED:-1}" > "$d/$n.json"
  awk -v n="$n" '
    /"kappa_rta_w_per_mk"/ {w = "rta"} /"kappa_w_per_mk"/ {w = "bte"} /"kappa_rta_relative_error"/ \
      {w = "error"}
    /"wall_seconds"/ {gsub(/[",]/, ""); wall = $2}
    w != "" && /^ *-?[0-9.]+(e[-+]?[0-9]+)?,?$/ && !(w in k) {gsub(/,/, ""); k[w] = $1; w = ""}
    END {printf "%d RTA %.3f BTE %.3f ± %.3f (%.3f %%) wall %.0f s\n", n, k["rta"], k["bte"], \
      k["bte"] * k["error"], 100 * k["error"], wall}' "$d/$n.json"
done
