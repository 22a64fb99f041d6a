#!/usr/bin/env bash
# Sums every four-phonon process of silicon on a 32³ mesh in relaxation time on one GPU, with 1186
# blocks and sb 0.1. The first attempt is killed and the second continues from its checkpoint. It
# takes about a minute and a half on an H200. After the time limit, the same call with the same OUT
# goes on.
#
#   bench/gpu/fourphonon_whole.sh [BIN]
#
#   BIN                  folder of quasi-engine and thermal_4ph_bench (build/gpu/bin)
#   OUT                  folder of the job (build/gpu/whole-32)
#   LIMIT                seconds (390)
#   KILL                 seconds after which the first attempt is killed (60; 0: never)
#   DECK, MESH, DEVICE   examples/thermal/silicon, 32, cuda:0
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin}
out=${OUT:-build/gpu/whole-32}
last_progress() { tail -c 200 "$out/progress.txt" | tr '\r' '\n' | tail -1; }
limit=${LIMIT:-390}
kill_after=${KILL:-60}
mesh=${MESH:-32}
mkdir -p "$out"
attempt() {  # seconds
  # The shell's own word of the kill goes with the rest.
  timeout -s KILL "$1" "$bin/quasi-engine" run thermal "${DECK:-examples/thermal/silicon}" -d \
    "$out" --device "${DEVICE:-cuda:0}" \
    --set checkpoint_interval_s=10 --set ngrid="$mesh,$mesh,$mesh" --set scalebroad=0.1 \
      --set four_phonon=T --set convergence=F --set T=300 \
    --json > "$out/summary.json" 2> "$out/progress.txt"
}
start=$SECONDS
# Two tiles in a hundred, spread through the mesh: what the whole should take.
timeout 60 "$bin/thermal_4ph_bench" "${DECK:-examples/thermal/silicon}" --mesh "$mesh" --sb 0.1 \
  --tiles $((mesh * mesh * mesh / 800)) \
  --device "${DEVICE:-cuda:0}"
if [ "$kill_after" -gt 0 ] && [ ! -e "$out/killed" ]; then
  attempt "$kill_after"
  touch "$out/killed"
  echo "killed after $kill_after s; last: $(last_progress)"
  ls -l "$out/checkpoint" | tail -n +2
fi
again=$SECONDS
attempt $((limit - SECONDS + start))
status=$?
echo "attempt of $((SECONDS - again)) s ended with $status; last: $(last_progress)"
grep -h "resumed\|warning" "$out/progress.txt"
# One number a line is too long: lists on one line each.
[ "$status" = 0 ] && tr -d '\n' < "$out/summary.json" | sed 's/  */ /g; s/, "/,\n"/g' \
  | grep -E 'kappa_rta|processes|evaluations|wall|seconds|scattering|checkpoint'
exit "$status"
