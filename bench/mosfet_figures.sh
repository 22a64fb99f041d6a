#!/usr/bin/env bash
# Draws docs/jobs/figures/mosfet_*.svg with gnuplot.
#
#   bench/mosfet_figures.sh BIN map IV.csv [NAME]    current-voltage map, to NAME.svg (mosfet_map)
#   bench/mosfet_figures.sh BIN point RESULT.h5 K    density, subbands and current of bias point K
#   bench/mosfet_figures.sh BIN mobility             mobility against effective field (computed here, seconds)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1 what=$2 work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir -p docs/jobs/figures
style='set terminal svg size 720,460 font "Helvetica,13" background "white"; set grid lc rgb "#dddddd"; set border 3; set tics nomirror'
case $what in
map)
  awk -F, 'NR > 1 {print $1, $2, $3}' "$3" | sort -g -k2,2 -k1,1 | awk 'NR > 1 && $2 != last {print "\n"} {print; last = $2}' > "$work/map.dat"
  gnuplot -e "$style" - <<G
set output 'docs/jobs/figures/${4:-mosfet_map}.svg'
set xlabel 'V_{GS} (V)'; set ylabel 'I_D (A/m)'; set logscale y; set format y '10^{%T}'; set key bottom right
stats '$work/map.dat' using 2 nooutput
plot for [k=0:STATS_blocks-1] '$work/map.dat' index k using 1:3 with linespoints pt 7 ps 0.5 lw 1.5 title sprintf('V_{DS} = %s V', system(sprintf("awk 'BEGIN{RS=\"\"} NR==%d {split(\$0,a,\" \"); print a[2]}' '$work/map.dat'", k + 1)))
G
  ;;
point)
  "$bin/mosfet_columns" "$3" "$4" "$work"
  gnuplot -e "$style" - <<G
set output 'docs/jobs/figures/mosfet_subbands.svg'
set xlabel 'x (nm)'; set ylabel 'level (eV)'; set y2label 'I (A/m)'; set y2tics; set y2range [0:*]; set key outside below center horizontal
plot for [p=0:5] '$work/profile.dat' using 1:(column(6+p)) with lines lc rgb '#7fb3d5' lw 1 title (p==0 ? 'ν = 0, 1' : ''), \
     for [p=0:5] '$work/profile.dat' using 1:(column(18+p)) with lines lc rgb '#1f4e79' lw 1.3 title (p==0 ? 'ν = 2' : ''), \
     '$work/profile.dat' using 1:2 axes x1y2 with lines lc rgb '#c0392b' lw 2 title 'current'
set output 'docs/jobs/figures/mosfet_density.svg'
unset y2tics; unset y2label; unset key; unset grid
set ylabel 'z (nm)'; set cblabel 'N (10^{20} cm^{-3})'; set palette defined (0 '#ffffff', 1 '#9ecae1', 2 '#3182bd', 3 '#08306b')
set view map; set autoscale fix
plot '$work/density.dat' using 1:2:(\$3*10) with image
G
  ;;
mobility)
  for rough in 0.0 0.3; do
    "$bin/quasi-engine" run mosfet examples/mosfet/mobility.toml --quiet --set "scattering.roughness.height_nm=$rough" -d "$work/$rough" > /dev/null
  done
  gnuplot -e "$style" - <<G
set output 'docs/jobs/figures/mosfet_mobility.svg'
set datafile separator ','
set xlabel 'effective field (MV/cm)'; set ylabel 'mobility (cm^2/Vs)'; set logscale xy; set key bottom left; set yrange [100:3000]
plot '$work/0.0/mobility.csv' every ::1 using 3:4 with linespoints pt 7 ps 0.5 lw 1.5 title 'phonons', \
     '$work/0.3/mobility.csv' every ::1 using 3:4 with linespoints pt 7 ps 0.5 lw 1.5 title 'and roughness, 0.3 nm, 1.5 nm', \
     700*x**(-0.3) with lines dt 2 lc rgb '#888888' title 'E^{-0.3}', 420*x**(-2.0) with lines dt 3 lc rgb '#888888' title 'E^{-2}'
G
  ;;
*) echo "what is '$what'?" >&2; exit 2 ;;
esac
