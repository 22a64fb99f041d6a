#!/usr/bin/env bash
# Runs the ladder of silicon on one GPU: bare and renormalised phonons with three and four phonons
# at 16³ and five temperatures, with all 1186 blocks of fourth order. Prints the seconds of each
# phase for sb 0.1 and sb 1. It takes half a minute on an H200.
#
#   bench/silicon_ladder.sh [BIN]      BIN: folder of quasi-engine (build/gpu/bin)
#   DEVICE=cuda:0, MESH=16, SB="0.1 1"
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/gpu/bin} mesh=${MESH:-16}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for sb in ${SB:-0.1 1}; do
  OPENBLAS_NUM_THREADS=1 "$bin/quasi-engine" run thermal \
    examples/thermal/silicon-renormalised.toml -d "$out/$sb" --device "${DEVICE:-cuda:0}" --quiet \
    --set ngrid="$mesh,$mesh,$mesh" --set T=100,200,300,600,1000 --set scalebroad="$sb" \
    > "$out/table"
  python3 - "$out/$sb/summary.json" "$sb" <<'PY'
import json, sys
whole = json.load(open(sys.argv[1]))
phases = {name: round(seconds, 2) for name, seconds in whole["summary"]["seconds"].items()}
print(f"sb {sys.argv[2]}: {whole['wall_seconds']:.2f} s,", json.dumps(phases))
PY
done
sed -n '3,8p' "$out/table"
