#!/usr/bin/env bash
# Builds the numerics where there is a GPU, runs every test on every device of the machine, and one
# example of each kind on the CPU and on the GPU.
#
#   bench/gpu/all.sh        CMAKE_EXTRA: further arguments for cmake, e.g. -DCMAKE_PREFIX_PATH=…
set -uo pipefail
cd "$(dirname "$0")/../.."
timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF -DQUASI_CUDA=ON \
  ${CMAKE_EXTRA:-} >/dev/null || exit 1
timeout 400 cmake --build build/gpu -- -k 0 > build/gpu/build.log 2>&1 || grep -E "FAILED|error|undefined" build/gpu/build.log | head -20
export QUASI_REQUIRE_DEVICE=cuda OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=1
timeout 300 ctest --test-dir build/gpu -LE nightly -j 4 2>&1 | grep -E 'Failed|Exception|Timeout|tests passed|Total Test time' | grep -vE 'Passed|Stage'
for kind in thermal gw mosfet; do
  case $kind in
    thermal) deck=examples/thermal/silicon ;;
    gw) deck=examples/gw/silicon-epm.toml ;;
    mosfet) deck=examples/mosfet/equilibrium.toml ;;
  esac
  for device in cpu cuda:0; do
    echo "== $kind on $device"
    timeout 120 build/gpu/bin/quasi-engine run "$kind" "$deck" -d "build/gpu/out-$kind-${device%%:*}" --device "$device" | head -12
  done
done
