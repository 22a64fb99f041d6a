#!/usr/bin/env bash
# Draws docs/figures/mosfet/mosfet_*.svg with gnuplot.
#
#   bench/mosfet_figures.sh BIN map IV.csv [NAME]    current-voltage map, to NAME.svg (mosfet_map)
#   bench/mosfet_figures.sh BIN point RESULT.h5 K    density, subbands and current of bias point K
#   bench/mosfet_figures.sh BIN mobility             mobility against effective field, computed here
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1 what=$2 work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir -p docs/figures/mosfet
style='set terminal svg size 720,460 font "Helvetica,13" background "white"
set grid lc rgb "#dddddd"; set border 3; set tics nomirror'
case $what in
map)
  awk -F, 'NR > 1 {print $1, $2, $3}' "$3" | sort -g -k2,2 -k1,1 \
    | awk 'NR > 1 && $2 != last {print "\n"} {print; last = $2}' > "$work/map.dat"
  gnuplot -e "$style" - <<G
set output 'docs/figures/mosfet/${4:-mosfet_map}.svg'
set xlabel 'V_{GS} (V)'; set ylabel 'I_D (A/m)'; set logscale y; set format y '10^{%T}'; set key \
  bottom right
stats '$work/map.dat' using 2 nooutput
plot for [k=0:STATS_blocks-1] '$work/map.dat' index k using 1:3 with linespoints pt 7 ps 0.5 lw \
  1.5 title sprintf('V_{DS} = %s V', \
  system(sprintf("awk 'BEGIN{RS=\"\"} NR==%d {split(\$0,a,\" \"); print a[2]}' '$work/map.dat'", k \
  + 1)))
G
  ;;
point)
  "$bin/mosfet_columns" "$3" "$4" "$work"
  levels=$(awk 'NR == 2 {print NF - 5}' "$work/profile.dat")
  gnuplot -e "$style" - <<G
n = $levels / 3  # levels of a pair; ν = 0 and 1 share theirs
device = 'set object 1 rect from 11, 8 to 21, 8.35 fc rgb "#555555" fs solid noborder; ' \
  .'set object 2 rect from 11, -0.35 to 21, 0 fc rgb "#555555" fs solid noborder'
set palette defined (0 '#ffffff', 1 '#c6dbef', 2 '#6baed6', 3 '#2171b5', 4 '#08306b')
set output 'docs/figures/mosfet/mosfet_density.svg'
unset key; unset grid; set border 15
set xlabel 'x (nm)'; set ylabel 'z (nm)'; set xrange [0:32]; set yrange [-0.5:8.5]; set ytics 0, \
  1, 8
set logscale cb; set cbrange [1e17:2e20]; set format cb '10^{%T}'; set cblabel 'N (cm^{-3})'
eval device
do for [k=1:2] { set object k front }
set arrow 1 from 0, 1 to 32, 1 nohead front dt 2 lc rgb '#888888'; set arrow 2 from 0, 7 to 32, 7 \
  nohead front dt 2 lc rgb '#888888'
set label 1 'gate' at 16, 8.18 center front tc rgb 'white' font ',10'; set label 2 'gate' at 16, \
  -0.17 center front tc rgb 'white' font ',10'
set label 3 'oxide' at 1, 0.5 front tc rgb '#666666' font ',10'; set label 4 'source' at 1, 4 \
  front tc rgb 'white'; set label 5 'drain' at 31, 4 right front tc rgb 'white'
plot '$work/density.dat' using 1:2:(\$3 > 1e-5 ? \$3 * 1e21 : 1e16) with image
set output 'docs/figures/mosfet/mosfet_subbands.svg'
unset object; unset arrow; unset label; set border 15
set term svg size 720,640
set multiplot
set lmargin at screen 0.12; set rmargin at screen 0.82
set tmargin at screen 0.97; set bmargin at screen 0.40
set yrange [-0.6:0.4]; set ytics auto; set ylabel 'E (eV)'; unset xlabel; set format x ''
set logscale cb; set cbrange [1e-3:10]; set cblabel 'electrons per nm^2 and eV'; set format cb \
  '10^{%T}'
set key top right
plot '$work/spectrum.dat' using 1:2:(\$3 > 1e-3 ? \$3 : 1e-3) with image notitle, \
     for [p=0:n-1] '$work/profile.dat' using 1:(column(6+p)) with lines lc rgb '#e08214' lw 1.2 dt \
       2 title (p==0 ? 'levels, ν = 0, 1' : ''), \
     for [p=0:n-1] '$work/profile.dat' using 1:(column(6+2*n+p)) with lines lc rgb '#b30000' lw \
       1.2 title (p==0 ? 'levels, ν = 2' : '')
set tmargin at screen 0.37; set bmargin at screen 0.09
unset logscale cb; unset colorbox; set format x '%g'; set xlabel 'x (nm)'
set ylabel 'I (A/m)'; set yrange [0:*]; set y2label 'velocity (10^5 m/s), energy (0.1 eV)' offset \
  -1 font ',11'; set y2tics; set y2range [0:4]; set grid lc rgb '#dddddd'; set ytics nomirror
set key at graph 0.02, 0.78 left Left reverse
plot '$work/profile.dat' using 1:2 with lines lc rgb '#c0392b' lw 2 title 'I(x)', \
     '' using 1:(\$4*10) axes x1y2 with lines lc rgb '#1f4e79' lw 1.5 title 'mean velocity', \
     '' using 1:(\$5*10) axes x1y2 with lines lc rgb '#1b7837' lw 1.5 title 'mean kinetic energy'
unset multiplot
G
  ;;
mobility)
  for rough in 0.0 0.3; do
    "$bin/quasi-engine" run mosfet examples/mosfet/mobility.toml --quiet \
      --set "scattering.roughness.height_nm=$rough" -d "$work/$rough" > /dev/null
  done
  gnuplot -e "$style" - <<G
set output 'docs/figures/mosfet/mosfet_mobility.svg'
set datafile separator ','
set xlabel 'effective field (MV/cm)'; set ylabel 'mobility (cm^2/Vs)'; set logscale xy; set key \
  bottom left; set yrange [100:3000]
plot '$work/0.0/mobility.csv' every ::1 using 3:4 with linespoints pt 7 ps 0.5 lw 1.5 title \
  'phonons', \
     '$work/0.3/mobility.csv' every ::1 using 3:4 with linespoints pt 7 ps 0.5 lw 1.5 title \
       'and roughness, 0.3 nm, 1.5 nm', \
     700*x**(-0.3) with lines dt 2 lc rgb '#888888' title 'E^{-0.3}', 420*x**(-2.0) with lines dt \
       3 lc rgb '#888888' title 'E^{-2}'
G
  ;;
*) echo "what is '$what'?" >&2; exit 2 ;;
esac
