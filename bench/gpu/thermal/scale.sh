#!/usr/bin/env bash
# Computes κ of crystals with 8, 12 and 24 atoms at 300 K: three phonons exact and iterated, four
# phonons drawn until κ is known to TARGET. Prints for each the planned and needed seconds and
# memory, κ and its standard error. The crystals are polytypes of silicon in the potential of
# Stillinger and Weber.
#
#   bench/gpu/thermal/scale.sh [BIN]
#
#   BIN                            folder of quasi-engine and quasi-make-deck (build/gpu/bin)
#
#   CRYSTALS="4h:15 6h:15 12h:9"   polytype and mesh of each; 4h, 6h, 12h have 8, 12, 24 atoms
#   TARGET=0.01 DRAWS=500 SEED=1   relative error of κ, first draws of each mode and channel, seed
#   DEVICE=cuda:0                  device
#   PLAN_S=150 LIMIT_S=550         seconds after which a plan and a crystal are given up
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
bin=${1:-build/gpu/bin} device=${DEVICE:-cuda:0}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Peak of the memory that the device reports as used, MiB, sampled until the process ends.
watch_device() {  # PID
  local most=0 now
  while kill -0 "$1" 2>/dev/null; do
    now=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i "${device#cuda:}" \
      2>/dev/null | head -1)
    [ "${now:-0}" -gt "$most" ] && most=$now
    sleep 0.2
  done
  echo "$most"
}
for crystal in ${CRYSTALS:-4h:15 6h:15 12h:9}; do
  name=${crystal%:*} n=${crystal#*:}
  "$bin/quasi-make-deck" "silicon-$name-sw" "$out/$name" || exit 1
  keys=(--device "$device" --json --set "ngrid=$n,$n,$n" --set T=300 --set coherence=F
    --set four_phonon=T --set sampling=uniform --set "num_sample_process_4ph=${DRAWS:-500}"
    --set "target_kappa_error=${TARGET:-0.01}" --set "seed=${SEED:-1}")
  OPENBLAS_NUM_THREADS=1 timeout "${PLAN_S:-150}" "$bin/quasi-engine" validate thermal \
    "$out/$name" "${keys[@]}" > "$out/plan.json" 2> "$out/log" ||
    { echo "$name $n: no plan: $(tail -1 "$out/log")"; echo '{"plan": {}}' > "$out/plan.json"; }
  OPENBLAS_NUM_THREADS=1 timeout "${LIMIT_S:-550}" "$bin/quasi-engine" run thermal "$out/$name" \
    -d "$out/$name-job" "${keys[@]}" > "$out/job.json" 2> "$out/log" &
  pid=$!
  memory=$(watch_device "$pid")
  wait "$pid" || { echo "$name $n: $(tail -1 "$out/log")"; continue; }
  python3 - "$out/plan.json" "$out/job.json" "$name" "$n" "$memory" <<'PY'
import json, sys

plan = json.load(open(sys.argv[1]))["plan"]
job = json.load(open(sys.argv[2]))
s, gib, n = job["summary"], 2.0**30, int(sys.argv[4])
kappa = s["kappa_w_per_mk"][0]
error = s["kappa_rta_relative_error"][0] if s.get("kappa_rta_relative_error") else float("nan")
seconds = {phase: round(v, 1) for phase, v in s["seconds"].items()}
print(f"{sys.argv[3]}, {n}³, {s['irreducible_points']} points: κ xx {kappa[0][0]:.2f}, zz "
      f"{kappa[2][2]:.2f} ± {100 * error:.2f} %; wall {job['wall_seconds']:.1f} s {seconds}")
if plan:
    print(f"  planned: 3ph {plan['seconds_3ph_estimate']:.1f} s, {plan['memory_bytes'] / gib:.2f} "
          f"GiB, {plan['processes_3ph_estimate']:.3g} processes; 4ph "
          f"{plan['seconds_4ph_estimate']:.1f} s, {plan['memory_4ph_bytes'] / gib:.2f} GiB, "
          f"{plan.get('draws_4ph')} draws of {sum(plan['processes_4ph_estimate'].values()):.3g}")
print(f"  processes of three phonons {sum(s['processes_3ph'].values()):.4g}; evaluated matrix "
      f"elements of four {s.get('evaluations_4ph')}; peak of the device "
      f"{int(sys.argv[5]) / 1024:.2f} GiB")
PY
done
