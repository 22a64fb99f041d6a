#!/usr/bin/env bash
# Checks and times three-phonon scattering on the first CUDA device.
#
#   bench/gpu/thermal.sh [BIN]
#
#   BIN                  folder of the tests and of thermal_3ph_bench; built below build/gpu if
#                        absent
#   MESHES="16 32"       meshes to time
#   DECK                 the deck (examples/thermal/silicon)
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    ${CMAKE_EXTRA:-} >/dev/null || exit 1
  timeout 400 cmake --build build/gpu --target thermal_kernels_3ph_test thermal_reference_3ph_test \
    thermal_device_agreement_test thermal_3ph_bench | tail -3 || exit 1
  bin=build/gpu/bin
fi
deck=${DECK:-examples/thermal/silicon}
export QUASI_REQUIRE_DEVICE=cuda
timeout 120 "$bin/thermal_kernels_3ph_test" --gtest_brief=1
timeout 60 "$bin/thermal_device_agreement_test" --gtest_brief=1
[ "${REFERENCE:-1}" = 0 ] || timeout 120 "$bin/thermal_reference_3ph_test" \
  --gtest_filter='*Injected*' --gtest_brief=1
for n in ${MESHES:-16 32}; do
  timeout 120 "$bin/thermal_3ph_bench" "$deck" cuda:0 5 ngrid="$n $n $n" isotopes=F convergence=F
  timeout 120 "$bin/thermal_3ph_bench" "$deck" cuda:0 2 ngrid="$n $n $n"
done
for strategy in ${STRATEGIES:-list-host list-device mode-by-mode test-and-sum}; do
  timeout 100 "$bin/thermal_3ph_bench" "$deck" cuda:0 1 ngrid="12 12 12" isotopes=F convergence=F \
    strategy="$strategy"
done
