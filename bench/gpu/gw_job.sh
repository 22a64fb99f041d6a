#!/bin/bash
# The whole job on silicon by the empirical pseudopotential, 216 atoms, Γ: H, 5,500 bands, ε⁻¹ and Σ
# (HL-GPP) of 8 states, to eqp. Usage: gw_job.sh ENGINE [DEVICE] [N1,N2,N3] [BANDS] [SECONDS];
# prints seconds by phase, or how far it came within SECONDS.
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
