#!/usr/bin/env bash
# Checks and times the kind mosfet on the machine's first CUDA device and on its CPU cores.
#
#   bench/gpu/mosfet.sh [BIN]   BIN: folder of the test programs, mosfet_step, mosfet_published and
#                               quasi-engine; built under build/gpu if not given
#   TESTS=0, CPU=0, STEPS=1000  leave the tests or the CPU column out; steps of the GPU transient
#   CORES=16                    cores of the host for the published field and the CPU column
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    -DQUASI_CPU_ARCH=native >/dev/null || exit 1
  timeout 400 cmake --build build/gpu --target mosfet_transport_test mosfet_coupled_test \
    mosfet_step mosfet_published quasi-engine || exit 1
  bin=build/gpu/bin
fi
export QUASI_REQUIRE_DEVICE=cuda OPENBLAS_NUM_THREADS=1
if [ "${TESTS:-1}" = 1 ]; then
  for test in mosfet_transport_test mosfet_coupled_test; do
    timeout 100 "$bin/$test" --gtest_brief=1 --gtest_filter='Devices/*' || echo "FAILED: $test"
  done
fi
timeout 100 "$bin/mosfet_step" --device cuda:0 --steps "${STEPS:-1000}"
timeout 60 "$bin/mosfet_step" --device cuda:0 --steps "${STEPS:-1000}" --range full
for lanes in 2 4 8; do
  timeout 60 "$bin/mosfet_step" --device cuda:0 --steps 200 --warmup 50 --lanes $lanes --no-profile
done
export OMP_NUM_THREADS=${CORES:-16}
timeout 60 "$bin/mosfet_published" --device cuda:0
[ "${CPU:-1}" = 1 ] &&
  timeout 200 "$bin/mosfet_step" --device cpu --steps 20 --warmup 5 --batch 5
exit 0
