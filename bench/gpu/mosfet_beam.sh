#!/usr/bin/env bash
# Checks the beam scheme on the machine's first CUDA device and times it at the standard mesh: six
# subbands, 65 × 65 nodes, ΔH 6.25 meV, 24 cells of κ.
#
#   bench/gpu/mosfet_beam.sh [BIN]   BIN: folder of mosfet_beam and mosfet_beam_test; built under
#                                    build/gpu if not given
#   TESTS=0, MAP=0                   leave the tests or the map of 50 points out
#   CPU=0                            leaves one point on the cores of the host out
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    -DQUASI_CPU_ARCH=native >/dev/null || exit 1
  timeout 400 cmake --build build/gpu --target mosfet_beam_test mosfet_beam || exit 1
  bin=build/gpu/bin
fi
export QUASI_REQUIRE_DEVICE=cuda OPENBLAS_NUM_THREADS=1
if [ "${TESTS:-1}" = 1 ]; then
  timeout 100 "$bin/mosfet_beam_test" --gtest_brief=1 \
    --gtest_filter='Devices/*:BeamPoint.SeveralDevices*' || echo "FAILED: mosfet_beam_test"
fi
timeout 60 "$bin/mosfet_beam" --device cuda:0 --set 'bias.points=[[0.4, 0.4], [0.0, 0.05],
  [0.0, 0.4], [0.4, 0.05], [0.6, 0.05], [0.6, 0.4]]'
[ "${MAP:-1}" = 1 ] && timeout 120 "$bin/mosfet_beam" --device cuda:0 --together \
  --set 'bias.vgs=[0.0, 0.07, 0.14, 0.21, 0.28, 0.35, 0.42, 0.49, 0.56, 0.6]' \
  --set 'bias.vds=[0.05, 0.1, 0.2, 0.3, 0.4]'
[ "${CPU:-1}" = 1 ] && timeout 100 "$bin/mosfet_beam" --device cpu
exit 0
