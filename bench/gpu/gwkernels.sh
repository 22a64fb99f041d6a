#!/usr/bin/env bash
# Checks and times the GW kernels on the first CUDA device. After each case it prints mean power and
# clock while the device was busy.
#
#   bench/gpu/gwkernels.sh [BIN]
#
#   BIN                  folder of gw_kernels_test, gw_kernels and gw_ceilings; built below
#                        build/gpu
#                        if absent
#   CASES="diagonal chi" cases of bench/gw_kernels; all if not set
#   CEILINGS=0           leaves out the ceilings of the libraries
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    >/dev/null || exit 1
  timeout 300 cmake --build build/gpu --target gw_kernels_test gw_kernels gw_ceilings || exit 1
  bin=build/gpu/bin
fi
export QUASI_REQUIRE_DEVICE=cuda
timeout 120 "$bin/gw_kernels_test" --gtest_brief=1 || exit 1
[ "${CEILINGS:-1}" = 0 ] || { timeout 60 "$bin/gw_ceilings"; timeout 60 bench/gpu/with_power.sh \
  "$bin/gw_ceilings" sustained; }
for one in ${CASES:-diagonal chi chi-pairs fft inverse separable options two-sets}; do
  timeout "${CASE_TIMEOUT:-120}" bench/gpu/with_power.sh "$bin/gw_kernels" --device cuda:0 \
    --size si214 "$one"
done
