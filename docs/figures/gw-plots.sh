#!/usr/bin/env bash
# Pictures of gw jobs from the tables beside their results.
#
#   docs/figures/gw-plots.sh bands RESULTS OUT.png [LABELS]
#       bands.dat of a job with sigma.band_path: mean field and quasiparticles, energies from the
#       top of each valence band. LABELS names the corners of the path, e.g. "L Γ X W Γ"; VALENCE
#       (environment, default 4) counts the valence bands.
#   docs/figures/gw-plots.sh sigma RESULTS OUT.png BLOCK
#       spectra.dat of a job with sigma.spectrum_window_ev: Re Σ, Im Σ and A(ω) of one block,
#       counted from 0.
set -euo pipefail
what=${1:?bands or sigma} results=${2:?folder of results} out=${3:?picture}
command -v gnuplot >/dev/null || { echo "gnuplot is not installed" >&2; exit 1; }
case $what in
bands)
  table=$results/bands.dat
  [ -f "$table" ] || { echo "$table does not exist: the job had no sigma.band_path" >&2; exit 1; }
  labels=${4:-} valence=${VALENCE:-4}
  # Highest valence energies, and where the direction of the path changes.
  read -r top_mf top_qp < <(awk -v v="$valence" \
    'BEGIN { m = q = -1e9 } /^#/ { next } NF == 0 { blank++; next }
    { if (blank) { block++; blank = 0 } if (block < v) { if ($5 > m) m = $5; if ($6 \
      > q) q = $6 } } END { print m, q }' "$table")
  corners=$(awk -v names="$labels" \
    'BEGIN { n = split(names, name, " ") } /^#/ { next } NF == 0 { exit }
    { rows++; d = $1; dx = $2 - x; dy = $3 - y; dz = $4 - z
      if (rows > 1) { if (c == 0) at[c++] = first; l = sqrt(dx*dx + dy*dy + dz*dz); if (l \
        > 0) { ux = dx/l; uy = dy/l; uz = dz/l
        if (seen && (ux-vx)^2 + (uy-vy)^2 + (uz-vz)^2 \
          > 1e-4) at[c++] = last; vx = ux; vy = uy; vz = uz; seen = 1 } } else first = d
      x = $2; y = $3; z = $4; last = d }
    END { at[c++] = last; for (i = 0; i < c; i++) printf "%s\"%s\" %s", i ? ", " : "", (i \
      < n ? name[i+1] : ""), at[i] }' "$table")
  gnuplot <<EOF
set terminal pngcairo size 900,640 font "sans,13"
set output "$out"
set ylabel "energy from the valence top (eV)"
set xtics ($corners)
set grid xtics lt 1 lc rgb "#bbbbbb"
set key bottom center horizontal
set yrange [-14:9]
stats "$table" using 1 nooutput
set xrange [STATS_min:STATS_max]
set xzeroaxis lt 0
plot "$table" using 1:(\$5-($top_mf)) with lines lw 2 lc rgb "#999999" title "mean field", \
     "$table" using 1:(\$6-($top_qp)) with lines lw 2 lc rgb "#b03030" title "quasiparticles"
EOF
  ;;
sigma)
  table=$results/spectra.dat block=${4:?block}
  [ -f "$table" ] || { echo "$table does not exist: the job had no sigma.spectrum_window_ev" \
    >&2; exit 1; }
  gnuplot <<EOF
set terminal pngcairo size 900,640 font "sans,13"
set output "$out"
set multiplot layout 2,1
set lmargin 9
set rmargin 3
set grid
set ylabel "self-energy (eV)"
set key top right
plot "$table" index $block using 1:2 with lines lw 2 lc rgb "#204a87" title "Re Σ", \
     "$table" index $block using 1:3 with lines lw 2 lc rgb "#b03030" title "Im Σ"
set xlabel "energy (eV)"
set ylabel "A (1/eV)"
plot "$table" index $block using 1:4 with lines lw 2 lc rgb "#4e9a06" notitle
unset multiplot
EOF
  ;;
*) echo "bands or sigma, not '$what'" >&2; exit 1 ;;
esac
