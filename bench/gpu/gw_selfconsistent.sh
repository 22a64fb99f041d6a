#!/usr/bin/env bash
# Runs evGW₀ and QSGW of silicon from files (V_xc, projectors) to convergence, and Σ by contour
# deformation in a subspace beside the whole sum. Prints gaps, turns and seconds.
#
#   bench/gpu/gw_selfconsistent.sh ENGINE DEVICE FILES
#
#   FILES    folder with WFN, RHO, VXC, VSC and VKB, plain or compressed with gzip
set -uo pipefail
engine=$(realpath "${1:?engine}") device=${2:?device} files=$(realpath "${3:?folder of files}")
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir" || exit 1
for f in WFN RHO VXC VSC VKB; do
  if [ -f "$files/$f" ]; then ln -s "$files/$f" $f; else gunzip -c "$files/$f.gz" > $f || exit 1; fi
done
deck() {  # NAME, then lines of [sigma]
  local name=$1; shift
  {
    printf '%s\n' 'kind = "gw"' '[meanfield]' 'wfn = "WFN"' 'rho = "RHO"' 'vxc = "VXC"' \
      'vsc = "VSC"' 'vkb = "VKB"' 'long_wave = "kp"' '[epsilon]' 'cutoff_ry = 10.0' 'bands = 30' \
      '[sigma]' 'bands = 30' 'bare_cutoff_ry = 25.0' 'band_max = 8' "$@"
  } > "$name.toml"
}
deck one-shot
deck evgw0 'outer_loop = "evgw0"'
deck qsgw0 'outer_loop = "qsgw0"' 'outer_tolerance_ev = 0.01'
deck qsgw 'outer_loop = "qsgw"' 'outer_tolerance_ev = 0.01'
deck contour 'method = "contour"'
deck contour-subspace 'method = "contour"' 'subspace_tolerance = 0.02'
value() { grep -oE "\"$2\": *[-0-9.e]+" "$1" | head -1 | sed 's/.*: *//'; }
for name in one-shot evgw0 qsgw0 qsgw contour contour-subspace; do
  begin=$(date +%s%N)
  timeout "${LIMIT:-60}" "$engine" run gw $name.toml --device "$device" -d out_$name --json \
    > $name.json 2> $name.log || { tail -n 2 $name.log; continue; }
  end=$(date +%s%N)
  of() { value $name.json "$1"; }
  echo "$name: gap $(of fundamental_ev) eV (mean field $(of fundamental_mean_field_ev))," \
    "turns $(of turns), subspace $(of vectors) of $(of plane_waves), error $(of error_ev) eV," \
    "Σ $(of sigma) s, loop $(of sigma_further) s, wall $(((end - begin) / 1000000)) ms"
  grep -h "turn [0-9]*:" $name.log | tail -n 1
done
