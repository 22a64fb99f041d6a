#!/usr/bin/env bash
# Compares two builds on one GPU. A measurement is a pair of runs of one benchmark, OLD then NEW.
# A row shows both medians, their ratio NEW over OLD, and the larger spread of the two sides, which
# is (max - min) / median. The exit status is 1 when a ratio is above the limit.
#
#   bench/gpu/compare.sh OLD NEW     source trees (built here below build/gpu) or build folders
#
#   ROUNDS=5         pairs of runs of each benchmark
#   LIMIT=1.03       largest ratio that passes
#   CASES="gw_fft"   only these cases; `CASES=list` prints them
#   LIMIT_S=480      seconds after which the script stops with status 75; call it again to go on
#   STATE            file of the measurements of these two builds, extended by each call. Keep it
#                    outside the build folders if the machine may be lost between two calls. The
#                    default is compare-….jsonl in NEW's build folder.
#   SIZE=small       small problems, to try the script with DEVICE=cpu
#   DEVICE=cuda:0    the device; CMAKE_EXTRA: further arguments for cmake
set -uo pipefail
[ "${CASES:-}" != list ] || exec python3 "$(dirname "$0")/compare.py"
[ $# -eq 2 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 64; }
started=$SECONDS
limit_s=${LIMIT_S:-480}
targets=(quasi-engine thermal_3ph_bench thermal_4ph_bench mosfet_step gw_kernels)

# The build folder of an argument; a source tree is configured and built first.
build_folder() {
  if [ -x "$1/bin/quasi-engine" ] && [ -f "$1/CMakeCache.txt" ]; then
    realpath "$1"
    return
  fi
  if [ ! -f "$1/CMakeLists.txt" ]; then
    echo "$1 is neither a build folder nor a source tree" >&2
    exit 64
  fi
  local folder=$1/build/gpu
  mkdir -p "$folder"
  timeout 60 cmake -S "$1" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUASI_SERVICE=OFF \
    -DQUASI_CUDA=ON ${CMAKE_EXTRA:-} > "$folder/configure.log" 2>&1 ||
    { tail -15 "$folder/configure.log" >&2; exit 1; }
  timeout $((limit_s - (SECONDS - started))) cmake --build "$folder" --target "${targets[@]}" \
    > "$folder/build.log" 2>&1
  local status=$?
  [ $status -ne 124 ] || { echo "building $1: stopped after $limit_s s, call again" >&2; exit 75; }
  [ $status -eq 0 ] || { grep -E 'FAILED|error' "$folder/build.log" | head -20 >&2; exit 1; }
  realpath "$folder"
}

old=$(build_folder "$1") || exit $?
new=$(build_folder "$2") || exit $?
exec python3 "$(dirname "$0")/compare.py" "$old" "$new" $((limit_s - (SECONDS - started)))
