#!/usr/bin/env bash
# evGW₀ and QSGW of silicon from real files (V_xc, projectors) to convergence, from decks; and Σ by contour deformation in a
# subspace beside the whole sum. Gaps, turns and seconds of each.
#
#   bench/gpu/gw_selfconsistent.sh ENGINE DEVICE FILES     FILES: folder with WFN, RHO, VXC, VSC, VKB, gzip'd or not
set -uo pipefail
engine=$(realpath "${1:?engine}") device=${2:?device} files=$(realpath "${3:?folder of files}")
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir" || exit 1
for f in WFN RHO VXC VSC VKB; do if [ -f "$files/$f" ]; then ln -s "$files/$f" $f; else gunzip -c "$files/$f.gz" > $f || exit 1; fi; done
deck() {  # NAME, then lines of [sigma]
  local name=$1; shift
  { printf 'kind = "gw"\n[meanfield]\nwfn = "WFN"\nrho = "RHO"\nvxc = "VXC"\nvsc = "VSC"\nvkb = "VKB"\nlong_wave = "kp"\n'
    printf '[epsilon]\ncutoff_ry = 10.0\nbands = 30\n[sigma]\nbands = 30\nbare_cutoff_ry = 25.0\nband_max = 8\n'; printf '%s\n' "$@"; } > "$name.toml"
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
  timeout "${LIMIT:-60}" "$engine" run gw $name.toml --device "$device" -d out_$name --json > $name.json 2> $name.log || { tail -n 2 $name.log; continue; }
  end=$(date +%s%N)
  echo "$name: gap $(value $name.json fundamental_ev) eV (mean field $(value $name.json fundamental_mean_field_ev)), turns $(value $name.json turns)," \
    "subspace $(value $name.json vectors) of $(value $name.json plane_waves), error $(value $name.json error_ev) eV," \
    "Σ $(value $name.json sigma) s, loop $(value $name.json sigma_further) s, wall $(( (end - begin) / 1000000 )) ms"
  grep -h "turn [0-9]*:" $name.log | tail -n 1
done
