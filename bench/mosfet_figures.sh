#!/usr/bin/env bash
# Draws the figures of docs/reference/mosfet.md with `quasi plot`.
#
#   bench/mosfet_figures.sh map OUT       current-voltage map: a result of
#                                         examples/mosfet/iv_beam_standard.toml
#   bench/mosfet_figures.sh point OUT     density and energy balance: the same deck with
#                                         --set bias.vgs=[0.6] --set bias.vds=[0.4]
#   bench/mosfet_figures.sh mobility      mobility against effective field, computed here
#
# The programs are on the path.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-} out=${2:-} figures=docs/figures/mosfet
case $what in
map)
  quasi plot "$out" iv -o $figures/mosfet_map_iv.svg
  quasi plot "$out" transfer -o $figures/mosfet_map_transfer.svg
  cp "$out/iv.csv" $figures/mosfet_map.csv
  ;;
point)
  quasi plot "$out" density -o $figures/mosfet_map_density.png
  quasi plot "$out" energy -o $figures/mosfet_map_energy.svg
  ;;
mobility)
  work=$(mktemp -d)
  trap 'rm -r "$work"' EXIT
  for rough in 0.0 0.3; do
    quasi run mosfet examples/mosfet/mobility.toml --quiet -d "$work/$rough" \
      --set "scattering.roughness.height_nm=$rough" > /dev/null
  done
  quasi plot "$work/0.0" "$work/0.3" mobility --label phonons --label "and roughness" \
    -o $figures/mosfet-mobility.svg
  ;;
*)
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 64
  ;;
esac
