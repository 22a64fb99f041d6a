#!/usr/bin/env bash
# Checks and times four-phonon scattering on the first CUDA device.
#
#   bench/gpu/fourphonon.sh [BIN]
#
#   BIN                  folder of the tests and of thermal_4ph_bench; built below build/gpu if
#                        absent
#   DECK                 the deck (examples/thermal/silicon)
#   MESHES="10 16"       meshes to time; WHOLE=1 adds the whole 32³ mesh
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    ${CMAKE_EXTRA:-} >/dev/null || exit 1
  timeout 400 cmake --build build/gpu --target thermal_kernels_4ph_test thermal_reference_4ph_test \
    thermal_iterated_4ph_test thermal_sampling_4ph_test thermal_laws_4ph_test \
      thermal_published_4ph_test thermal_4ph_bench | tail -3 || exit 1
  bin=build/gpu/bin
fi
deck=${DECK:-examples/thermal/silicon}
export QUASI_REQUIRE_DEVICE=cuda
timeout 120 "$bin/thermal_kernels_4ph_test" --gtest_brief=1 || exit 1
timeout 120 "$bin/thermal_reference_4ph_test" --gtest_brief=1 || exit 1
timeout 120 "$bin/thermal_iterated_4ph_test" --gtest_brief=1 || exit 1
timeout 120 "$bin/thermal_sampling_4ph_test" --gtest_brief=1 || exit 1
timeout 120 "$bin/thermal_laws_4ph_test" --gtest_brief=1 --gtest_filter='*cuda*' || exit 1
# Every process of the published 16³, where the reference data are.
timeout 120 "$bin/thermal_published_4ph_test" --gtest_filter='*cuda*' || exit 1
for n in ${MESHES:-10 16}; do
  for rules in --compat ""; do
    timeout 120 "$bin/thermal_4ph_bench" "$deck" --mesh "$n" --sb 0.1 $rules --device cuda:0
  done
done
for without in exchange inversion; do
  timeout 120 "$bin/thermal_4ph_bench" "$deck" --mesh 16 --sb 0.1 --device cuda:0 \
    --without "$without"
done
# The published strategies beside the factorised sums; STRATEGIES="8 10" for other meshes.
for n in ${STRATEGIES:-8}; do
  timeout 300 "$bin/thermal_4ph_bench" "$deck" --mesh "$n" --sb 0.1 --compat --device cuda:0 \
    --strategies all
done
[ "${WHOLE:-0}" = 0 ] || timeout 600 "$bin/thermal_4ph_bench" "$deck" --mesh 32 --sb 0.1 \
  --device cuda:0
