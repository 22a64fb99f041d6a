#!/bin/bash
# Computes κ of the shipped silicon from 100 to 1000 K on four meshes, with three phonons alone and
# with four. It takes about 60 s on an H200. Each line holds mesh, 3 or 4, T, κ RTA, κ BTE and κ of
# coherences.
#
#   bench/gpu/silicon_temperatures.sh [BUILD_DIR]
b=${1:-build/gpu}/bin
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
for four in F T; do
  for n in 10 12 14 16; do
    timeout 60 "$b/quasi-engine" run thermal examples/thermal/silicon -d "$d/out" \
      --device "${DEVICE:-cuda:0}" --quiet \
      --set ngrid="$n,$n,$n" --set T=100,150,200,250,300,400,500,600,800,1000 \
        --set four_phonon=$four > "$d/table" 2> "$d/e" ||
      { echo "$n $four: $(tail -1 "$d/e")"; continue; }
    awk -v m="$n" -v f="$four" '$2 == "(K)" {n = NR; columns = NF}
      n && NR > n && NF == columns - 1 {
        printf "%d %d %g %.4f %.4f %.4f\n", m, f == "T" ? 4 : 3, $1, $2, $3, $4; next}
      n && NR > n {exit}' "$d/table"
  done
done
