#!/bin/bash
# Kills a GW job of silicon atoms with pseudobands at random moments, resumes it each time, and
# compares its numbers with those of an undisturbed job.
#
#   bench/gpu/gw/kill.sh ENGINE [DEVICE] [N1,N2,N3] [STATES] [KILLS]
#
# 216 atoms, ten kills: bench/gpu/gw/kill.sh ENGINE cuda:0 3,3,3 640 10
# A kill comes after 5 to 35 % of the seconds of the undisturbed job, so that every run is killed.
# CUTOFF of ε in Ry is 8 by default. SEED of the moments is 1. Eight atoms on the processor:
# CUTOFF=4.0 bench/gpu/gw/kill.sh ENGINE cpu 1,1,1 40 10
# Exit status: 0, the numbers are equal; 1, not so.
engine=$1 device=${2:-cuda:0} repeats=${3:-3,3,3} states=${4:-640} kills=${5:-10}
source "$(dirname "$0")/../gw_deck.sh"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
gw_deck "$out/deck.toml" "$repeats" "$states"
sed -i -e "s/^cutoff_ry = 8.0/cutoff_ry = ${CUTOFF:-8.0}/" \
  -e 's/^checkpoint_interval_s.*/checkpoint_interval_s = 0/' \
  -e "s/^bands = $states/&\nsolver = \"operator\"/" "$out/deck.toml"
printf '[pseudobands]\nvectors = 12\nprotected_ry = 0.25\n' >> "$out/deck.toml"
run() { "$engine" run gw "$out/deck.toml" --device "$device" -d "$out/$1" --json --quiet \
  > "$out/$1.json" 2> "$out/$1.log"; }
start=$(date +%s.%N)
run whole || { tail -3 "$out/whole.log"; exit 1; }
seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
gw_phases "$out/whole.json" undisturbed
RANDOM=${SEED:-1}
for kill in $(seq "$kills"); do
  run killed 2> /dev/null & victim=$!
  moment=$(awk -v s="$seconds" -v r=$RANDOM 'BEGIN { printf "%.2f", s * (0.05 + 0.3 * r / 32768) }')
  sleep "$moment"
  pid=$(pgrep -P $victim | head -1)
  if [ -n "$pid" ] && kill -KILL "$pid" 2> /dev/null; then echo "kill $kill after $moment s"
  else echo "it ended before kill $kill"; fi
  wait $victim 2> /dev/null && break
done
run killed || { tail -3 "$out/killed.log"; exit 1; }
gw_phases "$out/killed.json" resumed
bits() { gw_phases "$out/$1.json" - | grep -o 'bits [0-9a-f]*'; }
[ "$(bits whole)" = "$(bits killed)" ]
