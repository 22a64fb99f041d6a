#!/usr/bin/env bash
# Computes κ of the shipped silicon at 300 K against the mesh by the four ways to conserve energy,
# with three phonons and natural isotopes. It prints a row for each mesh: relaxation-time and
# iterated κ by adaptive widths, by two fixed widths, and by tetrahedra. 16³ takes some minutes on
# two cores.
#
#   bench/silicon_widths.sh [BIN_DIR]
#
#   MESHES="8 10 12 14 16", DEVICE=cpu
set -uo pipefail
bin=${1:-build/release/bin}
kappa() {  # MESH SETTING...: "RTA / BTE"
  local settings=() setting
  for setting in "${@:2}"; do settings+=(--set "$setting"); done
  timeout 550 "$bin/quasi-engine" run thermal examples/thermal/silicon -d "$out/$1" \
    --device "${DEVICE:-cpu}" --quiet --set ngrid="$1,$1,$1" --set T=300 --set coherence=F \
    "${settings[@]}" > "$out/table" 2> "$out/log" || { tail -1 "$out/log"; return; }
  rm -rf "${out:?}/$1"
  awk '$2 == "RTA" {r = $3} $2 == "BTE" {b = $3} END {print r " / " b}' "$out/table"
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "| mesh | symmetric | fixed, 0.1 THz | fixed, 0.2 THz | tetrahedra |"
echo "| --- | --- | --- | --- | --- |"
for n in ${MESHES:-8 10 12 14 16}; do
  printf '| %s³ | %s | %s | %s | %s |\n' "$n" "$(kappa "$n" broadening=symmetric)" \
    "$(kappa "$n" broadening=fixed sigma_thz=0.1)" "$(kappa "$n" broadening=fixed sigma_thz=0.2)" \
    "$(kappa "$n" broadening=tetrahedra)"
done
