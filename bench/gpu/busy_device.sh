#!/usr/bin/env bash
# Runs tests of the coupled MOSFET step on the first CUDA device while other processes keep it busy.
# Copies then take long, so code that does not wait for them fails. It takes about 30 s.
#
#   bench/gpu/busy_device.sh [BIN]
#
#   BIN      folder of mosfet_coupled_test and thermal_4ph_bench (build/gpu/bin)
#   TIMES    repetitions (24)
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/gpu/bin}
export QUASI_REQUIRE_DEVICE=cuda OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1
stop=$(mktemp); log=$(mktemp)
busy() { while [ -e "$stop" ]; do "$bin/thermal_4ph_bench" examples/thermal/silicon --mesh "$1" \
  --sb 0.3 --device cuda:0 > /dev/null 2>&1; done; }
for mesh in 6 8 10 12; do busy "$mesh" & done
sleep 2
failed=0
for ((i = 0; i < ${TIMES:-24}; ++i)); do
  timeout 60 "$bin/mosfet_coupled_test" --gtest_brief=1 --gtest_filter='*cuda0*' > "$log" 2>&1 \
    || { failed=$((failed + 1)); grep -m 3 -A 2 Failure "$log"; }
done
rm -f "$stop" "$log"; wait
echo "$failed of ${TIMES:-24} failed"
[ "$failed" = 0 ]
