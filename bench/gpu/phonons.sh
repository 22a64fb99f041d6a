#!/bin/bash
# Computes κ of the shipped silicon against mesh and width, with three and with four phonons. It
# takes about 75 s on an H200. Each line holds mesh, sb, four phonons or not, κ RTA, κ BTE, κ of
# coherences and seconds.
#
#   bench/gpu/phonons.sh [BUILD_DIR]
b=${1:-build/gpu}/bin
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
QUASI_REQUIRE_DEVICE=cuda timeout 30 $b/thermal_device_agreement_test --gtest_brief=1 2>&1 | tail -3
QUASI_REQUIRE_DEVICE=cuda timeout 30 $b/thermal_kernels_3ph_test --gtest_brief=1 2>&1 | tail -3
one() {  # mesh sb four
  timeout 40 $b/quasi-engine run thermal examples/thermal/silicon -d "$d/out" --device cuda:0 \
    --quiet --json \
    --set ngrid="$1,$1,$1" --set T=300 --set scalebroad="$2" --set four_phonon="$3" \
      > "$d/j" 2> "$d/e" || { echo "$1 $2 $3 $(tail -1 "$d/e")"; return; }
  awk -v m="$1" -v s="$2" -v f="$3" '
    /"kappa_rta_w_per_mk"/ {w = "rta"} /"kappa_w_per_mk"/ {w = "bte"} /"kappa_coherence_w_per_mk"/ \
      {w = "coh"}
    /"wall_seconds"/ {gsub(/[",]/, ""); wall = $2}
    w != "" && /^ *-?[0-9.]+(e[-+]?[0-9]+)?,?$/ && !(w in k) {gsub(/,/, ""); k[w] = $1; w = ""}
    END {printf "mesh %s sb %s 4ph %s rta %.4f bte %.4f coh %.4f wall %.2f\n", m, s, f, k["rta"], \
      k["bte"], k["coh"], wall}' "$d/j"
}
for n in 8 12 16 20 24 32; do one $n 1 F; done
for n in 8 12 16 20; do one $n 0.1 F; done
for n in 8 10 12 14 16; do one $n 1 T; done
for n in 8 10 12 14 16 18; do one $n 0.1 T; done
