#!/usr/bin/env bash
# κ of silicon against temperature beside experiment, extrapolated to 1/N → 0 at every temperature:
# silicon-temperature.png from silicon-temperature.dat (bench/gpu/silicon_temperatures.sh) and
# silicon-experiment.dat. Prints the table.
set -euo pipefail
cd "$(dirname "$0")"
command -v gnuplot >/dev/null || { echo "gnuplot is not installed" >&2; exit 1; }
table=$(mktemp)
trap 'rm -f "$table"' EXIT
# Straight lines through κ(1/N) of the three finest meshes, N ≥ 12, populations and coherences
# together.
awk '/^#/ || $1 < 12 {next}
  {x = 1 / $1; y = $5 + $6; k = $3 " " $2; n[k]++; 
    sx[k] += x; sy[k] += y; sxx[k] += x * x; sxy[k] += x * y; last[k] = y}
  END {for (k in n) {slope = (n[k] * sxy[k] - sx[k] * sy[k]) / (n[k] * sxx[k] - sx[k] ^ 2); print \
    k, (sy[k] - slope * sx[k]) / n[k], last[k]}}' \
  silicon-temperature.dat | sort -n -k1 -k2 | awk \
    '$2 == 3 {three = $3; at = $4} $2 == 4 {print $1, three, $3, at, $4}' > "$table"
echo "# T (K)  three phonons  with four  (16³: three, with four)  experiment"
awk '/^#/ {next} FILENAME != "silicon-experiment.dat" {row[$1] = $0; next}
  $1 in row {print row[$1], $2}' "$table" silicon-experiment.dat
gnuplot <<EOF
set terminal pngcairo size 900,600 font "DejaVu Sans,12" background rgb "white"
set output "silicon-temperature.png"
set border 3 lc rgb "#444444"; set tics nomirror out; set grid lc rgb "#e4e4e4"
set logscale xy
set xrange [90:1100]; set yrange [20:1300]
set xtics (100, 150, 200, 300, 400, 500, 600, 800, 1000)
set xlabel "T (K)"; set ylabel "κ (W/m/K)"; set key top right reverse Left samplen 2
set title "Natural silicon, 1/N → 0"
plot "$table" using 1:2 with lines lw 2 lc rgb "#2b5f8a" title "three phonons", \
     "$table" using 1:3 with lines lw 2 lc rgb "#c04a2b" title "three and four phonons", \
     "silicon-experiment.dat" using 1:2 with points pt 7 ps 1.2 lc rgb "#222222" title \
       "experiment (Ho, Powell and Liley 1972)"
EOF
