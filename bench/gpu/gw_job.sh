#!/bin/bash
# Times a whole GW job: 216 silicon atoms by the empirical pseudopotential at Γ, 5,500 bands, ε⁻¹
# and Σ (HL-GPP) of 8 states. Prints seconds by phase, or how far the job came within SECONDS.
#
#   bench/gpu/gw_job.sh ENGINE [DEVICE] [N1,N2,N3] [BANDS] [SECONDS]
engine=$1 device=${2:-cuda:0} repeats=${3:-3,3,3} bands=${4:-5500} limit=${5:-300}
source "$(dirname "$0")/gw_deck.sh"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
gw_deck "$out/deck.toml" "$repeats" "$bands"
SECONDS=0
timeout "$limit" "$engine" run gw "$out/deck.toml" --device "$device" -d "$out/run" --json 2> \
  >(tr '\r' '\n' | while read -r line; do echo "$SECONDS s: $line"; done > "$out/log") \
  > "$out/summary.json" \
  && gw_phases "$out/summary.json" "$repeats $device" \
    || { echo "$repeats on $device did not end within $limit s:"; tail -12 "$out/log"; }
