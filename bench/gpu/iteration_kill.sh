#!/usr/bin/env bash
# Iterates three and four phonons twice: undisturbed, and with SIGKILL once the collision operator
# is on the disk. Prints the seconds of both, the size of the file beside the size that validate
# predicts, and whether κ has the same bits. The default mesh 20³ has an operator of 0.6 GB and
# takes about 60 s on an H200.
#
#   bench/gpu/iteration_kill.sh [BIN]
#
#   BIN                  folder of quasi-engine (build/gpu/bin)
#   MESH, DEVICE, DECK   20, cuda:0, examples/thermal/silicon
#   INTERVAL             seconds between checkpoints (2)
set -uo pipefail
cd "$(dirname "$0")/../.."
engine=${1:-build/gpu/bin}/quasi-engine
mesh=${MESH:-20}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
settings=(--device "${DEVICE:-cuda:0}" --set ngrid="$mesh,$mesh,$mesh" --set scalebroad=0.1 \
  --set four_phonon=T --set four_phonon_iteration=T --set T=300)
deck=${DECK:-examples/thermal/silicon}
planned=$("$engine" validate thermal "$deck" "${settings[@]}" \
  | sed -n 's/.*"checkpoint_4ph_bytes": \([0-9]*\).*/\1/p')
run() { "$engine" run thermal "$deck" -d "$out/$1" "${settings[@]}" \
  --set checkpoint_interval_s="${INTERVAL:-2}" --json > "$out/$1.json" 2> "$out/$1.log"; }
kappa() { grep -A9 '"kappa_w_per_mk"' "$out/$1.json" | tr -d ' \n' | cut -c1-220; }
since() { awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }'; }
start=$(date +%s.%N)
run whole || { tail -3 "$out/whole.log"; exit 1; }
echo "undisturbed: $(since) s; $(kappa whole)"

"$engine" run thermal "$deck" -d "$out/killed" "${settings[@]}" \
  --set checkpoint_interval_s="${INTERVAL:-2}" --quiet > /dev/null 2> "$out/first.log" &
victim=$!
largest=0
while kill -0 $victim 2> /dev/null; do
  largest=$(find "$out/killed/checkpoint" -name 'ckpt-*' -printf '%s\n' 2> /dev/null | sort -n \
    | tail -1)
  [ "${largest:-0}" -ge "$planned" ] && break
  sleep 0.05
done
kill -KILL $victim 2> /dev/null && echo \
  "killed; operator planned $planned bytes, newest file $largest" \
  || echo "it ended before a file held the operator"
wait $victim 2> /dev/null
start=$(date +%s.%N)
run killed || { tail -3 "$out/killed.log"; exit 1; }
echo "resumed: $(since) s; $(kappa killed)"
grep -h "resumed\|not checkpointed" "$out"/*.log | head -4
[ "$(kappa whole)" = "$(kappa killed)" ] && echo "same bits" || echo "OTHER BITS"
