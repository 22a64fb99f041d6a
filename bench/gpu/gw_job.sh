#!/bin/bash
# Times a whole GW job of silicon atoms by the empirical pseudopotential at Γ: bands, ε⁻¹ and Σ
# (HL-GPP) of 8 states. Prints seconds by phase, and the peak memory beside the plan, or how far the
# job came within SECONDS.
#
#   bench/gpu/gw_job.sh ENGINE [DEVICE] [N1,N2,N3] [BANDS] [SECONDS]
#
#   BLOCKS=4     pseudobands by polynomials of H in place of all bands, with the error bars of four
#                blocks of vectors; 0: without error bars. BANDS is then the number of lowest states
#   VECTORS=12   random vectors of each window of pseudobands, a multiple of BLOCKS
#   SIGMA_FACTOR=4  vectors of Σ over those of χ, 1 by default
#   SUMS=exact   repeats Σ for each block in place of its first order
#   CUTOFF=4.0   of ε in Ry, 8 by default
#   WAVES=16.0   cut-off of the states in Ry, 11 by default
#   BUDGET=4000  memory of a device in MiB, all of it by default. A small one makes a job take the
#                blocks of a larger one: with 4000 the changes of 216 atoms are summed by ranges
#
# 216 atoms, all bands:             bench/gpu/gw_job.sh ENGINE
# 216 atoms, error bars:            BLOCKS=4 bench/gpu/gw_job.sh ENGINE cuda:0 3,3,3 640
# 512 atoms:                        BLOCKS=0 bench/gpu/gw_job.sh ENGINE cuda:0 4,4,4 1500
# 1,000 atoms, ε at 4 Ry:           BLOCKS=0 CUTOFF=4.0 bench/gpu/gw_job.sh ENGINE cuda:0 5,5,5 2900
# 1,000 atoms, error bars:          BLOCKS=8 VECTORS=24 CUTOFF=4.0 bench/gpu/gw_job.sh ENGINE \
#                                     cuda:0,cuda:1 5,5,5 2900 500
# the same at the paper's cut-offs: BLOCKS=8 VECTORS=24 WAVES=16.0 bench/gpu/gw_job.sh ENGINE \
#                                     cuda:0,cuda:1,cuda:2,cuda:3 5,5,5 2900 540
engine=$1 device=${2:-cuda:0} repeats=${3:-3,3,3} bands=${4:-5500} limit=${5:-300}
source "$(dirname "$0")/gw_deck.sh"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
gw_deck "$out/deck.toml" "$repeats" "$bands"
sed -i "s/^cutoff_ry = 8.0/cutoff_ry = ${CUTOFF:-8.0}/" "$out/deck.toml"
[ -z "${BUDGET:-}" ] || sed -i "1a memory_budget_mib = $BUDGET" "$out/deck.toml"
sed -i "s/^cutoff_ry = 11.0/cutoff_ry = ${WAVES:-11.0}/" "$out/deck.toml"
if [ -n "${BLOCKS:-}" ]; then
  sed -i "s/^bands = $bands/&\nsolver = \"operator\"/" "$out/deck.toml"
  printf '[pseudobands]\nvectors = %s\nprotected_ry = 0.25\n' "${VECTORS:-12}" >> "$out/deck.toml"
  [ "$BLOCKS" = 0 ] || echo "blocks = $BLOCKS" >> "$out/deck.toml"
  [ -z "${SIGMA_FACTOR:-}" ] || echo "sigma_factor = $SIGMA_FACTOR" >> "$out/deck.toml"
  [ -z "${SUMS:-}" ] || echo "block_sums = \"$SUMS\"" >> "$out/deck.toml"
fi
SECONDS=0
python3 "$(dirname "$0")/gw/peak.py" "$out/peak.json" "$limit" \
  "$engine" run gw "$out/deck.toml" --device "$device" -d "$out/run" --json 2> \
  >(tr '\r' '\n' | while read -r line; do echo "$SECONDS s: $line"; done > "$out/log") \
  > "$out/summary.json" \
  && gw_phases "$out/summary.json" "$repeats $device" "$out/peak.json" \
    || { echo "$repeats on $device did not end within $limit s:"; tail -12 "$out/log"; }
