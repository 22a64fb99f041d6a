#!/bin/bash
# Draws what a thermal run left with `--export bte`: density of states, rates, cumulative κ.
#   quasi run thermal examples/thermal/silicon --set nticks=200 --export bte -d out
#   examples/thermal/plot.sh out 300 silicon.png        # needs gnuplot
set -euo pipefail
if [ $# -ne 3 ]; then echo "usage: $0 RESULT_DIRECTORY TEMPERATURE_K PICTURE.png" >&2; exit 2; fi
command -v gnuplot > /dev/null || { echo "gnuplot is missing: apt-get install gnuplot-nox" \
  >&2; exit 1; }
run=$1; folder=$1/T$2K; picture=$3
for file in "$run/BTE.dos" "$folder/BTE.w_3ph" "$folder/BTE.cumulative_kappa_scalar"; do
  [ -s "$file" ] || { echo "no '$file': run with --export bte, at $2 K" >&2; exit 1; }
done
optional() { [ -s "$1" ] && printf \
  ', "%s" using 1:($2 > 0 ? $2 : NaN) with points pt 7 ps %s lc rgb "%s" title "%s"' "$1" "$2" \
  "$3" "$4" || true; }
rates="\"$folder/BTE.w_3ph\" using 1:(\$2 > 0 ? \$2 : NaN) with points pt 7 ps 0.35"
rates+=" lc rgb '#2b5f8a' title 'three phonons'"
rates+=$(optional "$folder/BTE.w_4ph" 0.35 '#c04a2b' 'four phonons')
rates+=$(optional "$run/BTE.w_isotopic" 0.35 '#7a9a3a' 'isotopes')
kappa=$(tail -1 "$folder/BTE.cumulative_kappa_scalar" | awk '{print $2 + 0}')
columns=$(awk 'NR == 1 {print NF}' "$run/BTE.pdos")
gnuplot /dev/stdin <<PLOT
set terminal pngcairo size 1200,900 font "DejaVu Sans,11" background rgb "white"
set output "$picture"
set multiplot layout 2,2 margins 0.08,0.97,0.08,0.95 spacing 0.1,0.12
set border 3 lc rgb "#444444"; set tics nomirror out; set grid lc rgb "#e4e4e4"
set xlabel "ω (rad/ps)"; set ylabel "states (ps per cell)"
set title "Density of states"; set key top left
plot "$run/BTE.dos" using 1:2 with filledcurves y1=0 fs transparent solid 0.25 lc rgb "#2b5f8a" \
  title "total", \
  for [c=2:$columns] "$run/BTE.pdos" using 1:c with lines lw 1.5 dt c title sprintf("atom %d", c - \
    1)
set title "Scattering rates, $2 K"; set ylabel "w (1/ps)"; set logscale y; set format y "10^{%T}"; \
  set key bottom right
plot $rates
unset logscale y; set format y "%g"; set key top left
set title "κ of paths shorter than Λ, $2 K"; set xlabel "Λ (nm)"; set ylabel "κ (W/m/K)"
set logscale x; set format x "10^{%T}"; set xrange [1:1e5]; set yrange [0:1.08*$kappa]
plot "$folder/BTE.cumulative_kappa_scalar" using 1:2 with lines lw 2.5 lc rgb "#2b5f8a" notitle
unset logscale x; set format x "%g"; set autoscale x; set xlabel "ω (rad/ps)"
set title "κ of frequencies below ω, $2 K"
plot "$folder/BTE.cumulative_kappaVsOmega_tensor" using 1:((\$2 + \$6 + \$10) / 3) with lines lw \
  2.5 lc rgb "#2b5f8a" notitle
PLOT
echo "$picture"
