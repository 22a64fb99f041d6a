#!/usr/bin/env bash
# Computes κ of the shipped silicon at 300 K against the mesh, with three phonons and with four, and
# prints the lines of docs/figures/thermal/silicon-convergence.dat. It takes 136 s on an H200,
# most of it for four phonons at 20³, 22³ and 24³.
#
#   bench/gpu/silicon_meshes.sh [BIN_DIR]
#
#   THREE="8 10 … 40", FOUR="8 10 … 24"   the meshes with three phonons, and with four
set -uo pipefail
bin=${1:-build/gpu/bin}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
column() {  # NAME FOUR_PHONON MESH...: a block of the file, "N sb κ" with the relaxation-time κ
  echo "# N  sb  $1, iterated, in relaxation-time approximation"
  local four=$2 n
  for n in "${@:3}"; do
    OPENBLAS_NUM_THREADS=1 timeout 150 "$bin/quasi-engine" run thermal examples/thermal/silicon \
      -d "$out/$four$n" --device "${DEVICE:-cuda:0}" --quiet --set ngrid="$n,$n,$n" --set T=300 \
      --set coherence=F --set four_phonon="$four" > "$out/table" 2> "$out/log" ||
      { echo "# $n: $(tail -1 "$out/log")"; continue; }
    awk -v n="$n" '$2 == "RTA" {r = $3} $2 == "BTE" {printf "%-2d 1  %.4f  %.4f\n", n, $3, r}' \
      "$out/table"
  done
}
# Words of the lists are separate arguments.
# shellcheck disable=SC2086
column "three phonons" F ${THREE:-8 10 12 14 16 18 20 22 24 32 40}
printf '\n\n'
# shellcheck disable=SC2086
column "three and four phonons" T ${FOUR:-8 10 12 14 16 18 20 22 24}
