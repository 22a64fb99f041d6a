#!/usr/bin/env bash
# Computes κ by level of theory against temperature: bare and renormalised phonons, three phonons
# alone and with four. Writes ladder-silicon.dat (the shipped silicon) and ladder-quartic.dat (the
# shipped crystal whose bare modes are unstable) of docs/figures/thermal.
#
#   bench/gpu/thermal/ladder_temperatures.sh [BIN [DIRECTORY]]
#
#   BIN, DIRECTORY        folder of quasi-engine (build/gpu/bin); folder of the files (.)
#   MESHES="12 14 16"     meshes of silicon
#   QUARTIC="8 12 16"     meshes of the unstable crystal
#   DEVICE=cuda:0
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
bin=${1:-build/gpu/bin} directory=${2:-.}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p "$directory"
# Lines "N T κ…" of one job: the mean diagonal element of every level of the table.
ladder() {  # DECK MESH TEMPERATURES [KEY=VALUE…]
  local deck=$1 n=$2 temperatures=$3 keys=()
  for key in "${@:4}"; do keys+=(--set "$key"); done
  OPENBLAS_NUM_THREADS=1 timeout 250 "$bin/quasi-engine" run thermal "$deck" -d "$out/job" \
    --device "${DEVICE:-cuda:0}" --quiet --json --set "ngrid=$n,$n,$n" --set "T=$temperatures" \
    --set four_phonon=T --set renormalise=T "${keys[@]}" > "$out/summary.json" 2> "$out/log" ||
    { echo "# $n: $(tail -1 "$out/log")"; return; }
  python3 - "$out/summary.json" "$n" <<'PY'
import json, sys

summary = json.load(open(sys.argv[1]))["summary"]
levels = summary["ladder"]["levels"]
print("# N T", *(f"{x['phonons']}/{x['scattering']}/{x['solution']}" for x in levels))
for t, temperature in enumerate(summary["temperatures_k"]):
    means = (sum(x["kappa_w_per_mk"][t][i][i] for i in range(3)) / 3 for x in levels)
    print(sys.argv[2], f"{temperature:g}", *(f"{k:.4f}" for k in means))
PY
}
for n in ${MESHES:-12 14 16}; do
  ladder examples/thermal/silicon "$n" 100,150,200,250,300,400,500,600,800,1000
done > "$directory/ladder-silicon.dat"
for n in ${QUARTIC:-8 12 16}; do
  ladder examples/thermal/quartic-cubic "$n" 50,100,200,300,400,600,800,1000
done > "$directory/ladder-quartic.dat"
head -50 "$directory/ladder-silicon.dat" "$directory/ladder-quartic.dat"
