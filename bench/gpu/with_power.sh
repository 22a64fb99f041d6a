#!/usr/bin/env bash
# Runs a command and prints the mean power and clock of the device while it was busy. A sample
# counts as busy above six tenths of the power limit.
#
#   bench/gpu/with_power.sh COMMAND …
set -uo pipefail
samples=$(mktemp)
while :; do
  nvidia-smi -i "${CUDA_VISIBLE_DEVICES:-0}" --query-gpu=power.draw.instant,clocks.sm,power.limit \
    --format=csv,noheader,nounits
  sleep 0.05
done >"$samples" 2>/dev/null &
sampler=$!
"$@"
status=$?
kill $sampler
wait $sampler 2>/dev/null
awk -F', *' '$1 > 0.6 * $3 { w += $1; mhz += $2; limit = $3; ++busy }
  END {
    if (busy) printf "{\"case\": \"power\", \"samples\": %d, \"mean_w\": %.0f, " \
      "\"limit_w\": %.0f, \"mean_mhz\": %.0f}\n", busy, w / busy, limit, mhz / busy
    else print "{\"case\": \"power\", \"samples\": 0}"
  }' "$samples"
rm -f "$samples"
exit $status
