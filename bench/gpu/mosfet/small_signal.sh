#!/usr/bin/env bash
# Checks the small-signal response and its noise on the machine's first CUDA device against the CPU,
# and times 100 frequencies from 1 GHz to 10 THz of one point at the standard mesh: six subbands,
# 65 × 65 nodes, ΔH 6.25 meV, 24 cells of κ.
#
#   bench/gpu/mosfet/small_signal.sh [BIN]   BIN: folder of mosfet_small_signal and
#                                            mosfet_small_signal_test; built under build/gpu if not
#                                            given
#   TESTS=0, CPU=0                           leave the tests or the coarse mesh on both devices out
#   COUNT=100                                number of frequencies
#
# The lines `interpolated` and `each solved` have the seconds. The first is what a deck does, with
# solutions at a few frequencies and a rational function between them. The second has a solution at
# each. The last two lines have the tables and one spectrum of the noise.
set -uo pipefail
cd "$(dirname "$0")/../../.."
bin=${1:-}
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    -DQUASI_CPU_ARCH=native >/dev/null || exit 1
  timeout 400 cmake --build build/gpu \
    --target mosfet_small_signal_test mosfet_small_signal || exit 1
  bin=build/gpu/bin
fi
export QUASI_REQUIRE_DEVICE=cuda OPENBLAS_NUM_THREADS=1
if [ "${TESTS:-1}" = 1 ]; then
  timeout 120 "$bin/mosfet_small_signal_test" --gtest_brief=1 \
    --gtest_filter='Devices/WaveKernelsOn.*:Devices/SmallSignalNoiseOn.*' ||
    echo "FAILED: mosfet_small_signal_test"
fi
if [ "${CPU:-1}" = 1 ]; then
  for device in cpu cuda:0; do
    timeout 100 "$bin/mosfet_small_signal" --noise --device "$device" --hz 1e9 1e12 1e13 \
      --set mesh.dh_ev=0.025 --set mesh.nkappa=8 --set 'bias.points=[[0.4, 0.4]]'
  done
fi
timeout 300 "$bin/mosfet_small_signal" --noise --device cuda:0 --hz 1e12 --count "${COUNT:-100}" \
  --set mesh.subbands=6 --set 'bias.points=[[0.4, 0.4]]'
exit 0
