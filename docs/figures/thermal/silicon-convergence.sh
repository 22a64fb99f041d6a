#!/bin/bash
# κ of silicon against 1/N, with the straight line through the four finest meshes, beside
# experiment.
#   docs/figures/thermal/silicon-convergence.sh    # writes silicon-convergence.png here; needs
#                                                  # gnuplot
set -euo pipefail
cd "$(dirname "$0")"
# Block B (0, 1): slope and limit of κ = limit + slope/N through the last four points.
line() {
  awk -v b="$1" \
    'NF == 0 {if (!blank) ++block; blank = 1; next} {blank = 0} /^#/ {next}
    block == b {n[++k] = 1/$1; y[k] = $3}
    END {for (i = k - 3; i <= k; ++i) {sx += n[i]; sy += y[i]; sxx += n[i]*n[i]; sxy += n[i]*y[i]}
         slope = (4*sxy - sx*sy) / (4*sxx - sx*sx); printf "%.3f %.3f", (sy - slope*sx)/4, \
           slope}' silicon-convergence.dat
}
read -r three three_slope <<< "$(line 0)"
read -r four four_slope <<< "$(line 1)"
gnuplot /dev/stdin <<PLOT
set terminal pngcairo size 900,600 font "DejaVu Sans,12" background rgb "white"
set output "silicon-convergence.png"
set border 3 lc rgb "#444444"; set tics nomirror out; set grid lc rgb "#e4e4e4"
set xlabel "1/N"; set ylabel "κ (W/m/K)"; set xrange [0:0.13]; set yrange [75:165]; set key bottom \
  left Left reverse samplen 2
set title "Natural silicon, 300 K"
set object 1 rectangle from graph 0, first 142 to graph 1, first 148 fc rgb "#f0e2b8" fs solid \
  noborder behind
set label 1 "experiment 142–148" at graph 0.98, first 145 right
set label 2 sprintf("%.0f", $three) at first 0.001, first $three + 3 tc rgb "#2b5f8a"
set label 3 sprintf("%.0f", $four) at first 0.001, first $four - 5 tc rgb "#c04a2b"
plot x < 0.1 ? $three + ($three_slope)*x : NaN with lines dt 2 lc rgb "#2b5f8a" notitle, \
  x < 0.1 ? $four + ($four_slope)*x : NaN with lines dt 2 lc rgb "#c04a2b" notitle, \
  "silicon-convergence.dat" index 0 using (1/\$1):3 with points pt 7 ps 1.2 lc rgb "#2b5f8a" title \
    "three phonons", \
  "" index 1 using (1/\$1):3 with points pt 5 ps 1.2 lc rgb "#c04a2b" title \
    "three and four phonons", \
  "" index 2 using (1/\$1):3 with points pt 4 ps 1.6 lc rgb "#c04a2b" title "the same, four sampled"
PLOT
echo "three phonons $three, with four $four"
# Limits 1/N -> 0 with their errors, as --converge reckons them (the larger of the fit's standard
# error and of the change when the farthest point is left out): both blocks, and the share of κ that
# four phonons leave, which hardly depends on the mesh.
awk 'NF == 0 {if (!blank) ++block; blank = 1; next} {blank = 0} /^#/ {next}
  {k[block + 0, $1] = $3; bar[block + 0, $1] = $4}
  function fit(skip,   i, n, sx, sy, sxx, sxy, r) {
    for (i = 1; i <= m; ++i) if (i != skip) {++n; sx += x[i]; sy += y[i]}
    for (i = 1; i <= m; ++i) if (i != skip) {sxx += (x[i] - sx/n)^2; sxy += (x[i] - sx/n) * (y[i] \
      - sy/n)}
    slope = sxy / sxx; value = sy/n - slope * sx/n
    for (i = 1; i <= m; ++i) if (i != skip) r += (y[i] - value - slope * x[i])^2
    error = sqrt(r / (n - 2) * (1/n + sx*sx / (n*n*sxx))); return value
  }
  function limit(what, meshes,   i, all, e, other) {
    m = split(meshes, mesh, ",")
    for (i = 1; i <= m; ++i) {x[i] = 1 / mesh[i]; y[i] = what == 2 ? k[1, mesh[i]] / k[0, mesh[i]] \
      : k[what, mesh[i]]}
    all = fit(0); e = error; other = fit(1)
    found_error = e > (other > all ? other - all : all - other) ? e : (other \
      > all ? other - all : all - other)
    return all
  }
  END {
    three = limit(0, "20,22,24,32,40"); e3 = found_error; printf \
      "three phonons, 20-40: %.2f ± %.2f\n", three, e3
    printf "three phonons, 12-24: %.2f", limit(0, "12,14,16,18,20,22,24"); printf " ± %.2f\n", \
      found_error
    printf "with four, 12-24: %.2f", limit(1, "12,14,16,18,20,22,24"); printf " ± %.2f\n", \
      found_error
    n = split("14,16,18,20,22,24;16,18,20,22,24;18,20,22,24;20,22,24", finer, ";")
    for (i = 1; i <= n; ++i) {printf "share, %s: %.4f", finer[i], limit(2, finer[i]); printf \
      " ± %.4f\n", found_error}
    for (i = 16; i <= 24; i += 2) mean += k[1, i] / k[0, i] / 5
    share = limit(2, "12,14,16,18,20,22,24"); es = found_error; printf \
      "share, 12-24: %.4f ± %.4f; mean of 16-24: %.4f\n", share, es, mean
    fit(0)
    n = split("12,16,20,24,32", mesh, ",")
    for (i = 1; i <= n; ++i)
      if ((2, mesh[i]) in k)
        printf "share at %d, sampled: %.4f ± %.4f, the line %.4f\n", mesh[i], k[2, mesh[i]] / k[0, \
          mesh[i]], bar[2, mesh[i]] / k[0, mesh[i]], value + slope / mesh[i]
    printf "with four, constant share x three phonons: %.2f ± %.2f\n", mean * three, mean * e3
    printf "with four, share x three phonons: %.2f ± %.2f\n", share * three, share * three * \
      sqrt((es/share)^2 + (e3/three)^2)
  }' silicon-convergence.dat
