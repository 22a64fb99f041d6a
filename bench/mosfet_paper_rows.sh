#!/usr/bin/env bash
# Measures the rows of the published tables that a host of 16 cores and one CUDA device give: a step
# on 1 to 16 cores, each axis of the mesh doubled, and the shares within the field iteration (ITER).
# Every line is JSON of mosfet_step or mosfet_published with "cores".
#
#   bench/mosfet_paper_rows.sh [BIN] [PART ...]   PART: cores, doubled; both if none is given
#
# BIN is the folder of the programs; built under build/gpu if not given. One part takes about nine
# minutes: a sequential step of the published mesh takes seconds.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
bin=${1:-}
shift || true
if [ -z "$bin" ]; then
  timeout 60 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    -DQUASI_CPU_ARCH=native >/dev/null || exit 1
  timeout 400 cmake --build build/gpu --target mosfet_step mosfet_published || exit 1
  bin=build/gpu/bin
fi
export OPENBLAS_NUM_THREADS=1
host=$(nproc)

# Runs a benchmark on CORES cores and adds their number to its lines.
on_cores() {
  local cores=$1
  shift
  OMP_NUM_THREADS=$cores OMP_PROC_BIND=close timeout 200 "$@" |
    sed "s/^{/{\"cores\":$cores,/" || echo "FAILED: $*"
}

cores_part() {
  local n
  for n in 1 2 4 6 8 10 12 14 16; do
    [ "$n" -le "$host" ] || continue
    on_cores "$n" "$bin/mosfet_step" --device cpu --steps 4 --warmup 1 --batch 1
    on_cores "$n" "$bin/mosfet_published" --device cpu --steps 3 --warmup 1
  done
}

doubled_part() {
  local axis
  for axis in "--subbands 6" "--subbands 12" "--nx 129" "--nz 129" "--nw 600" "--nphi 96"; do
    # shellcheck disable=SC2086
    on_cores "$host" "$bin/mosfet_step" --device cuda:0 --steps 200 --warmup 50 $axis
    # shellcheck disable=SC2086
    on_cores "$host" "$bin/mosfet_step" --device cpu --steps 5 --warmup 1 --batch 1 $axis
    # shellcheck disable=SC2086
    on_cores "$host" "$bin/mosfet_published" --device cuda:0 --steps 10 --warmup 2 $axis
  done
}

[ $# -gt 0 ] || set -- cores doubled
for part in "$@"; do
  case $part in
  cores) cores_part ;;
  doubled) doubled_part ;;
  *) echo "unknown part '$part': cores or doubled" >&2 && exit 64 ;;
  esac
done
