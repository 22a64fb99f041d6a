#!/bin/bash
# Compares Σ of silicon atoms by pseudobands of several seeds with Σ of all bands, and counts the
# states whose all-band value lies inside the 95 % interval and inside the interval plus the
# systematic sum.
#
#   bench/gpu/gw/seeds.sh ENGINE [DEVICE] [N1,N2,N3] [ALL_BANDS] [STATES] [SEEDS]
#
#   ALL_BANDS   number of bands of the job without pseudobands
#   STATES      number of lowest states of the jobs with pseudobands
#   CUTOFF      of ε in Ry, 8 by default;  VECTORS, BLOCKS  12 and 4
#
# 216 atoms, 20 seeds:   bench/gpu/gw/seeds.sh ENGINE cuda:0 3,3,3 5500 640 20
# 512 atoms, one seed:   bench/gpu/gw/seeds.sh ENGINE cuda:0 4,4,4 13000 1500 1
# Bands beyond ALL_BANDS are missing from the reference: `bands` of its errors bounds their CH.
engine=$1 device=${2:-cuda:0} repeats=${3:-3,3,3} all=${4:-5500} states=${5:-640} seeds=${6:-20}
source "$(dirname "$0")/../gw_deck.sh"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
run() {  # NAME
  sed -i "s/^cutoff_ry = 8.0/cutoff_ry = ${CUTOFF:-8.0}/" "$out/$1.toml"
  "$engine" run gw "$out/$1.toml" --device "$device" -d "$out/$1" --json --quiet \
    > "$out/$1.json" 2> "$out/$1.log" || { echo "$1 failed:"; tail -3 "$out/$1.log"; return 1; }
}
gw_deck "$out/all.toml" "$repeats" "$all"
run all || exit 1
for seed in $(seq "$seeds"); do
  gw_deck "$out/seed$seed.toml" "$repeats" "$states"
  sed -i "s/^bands = $states/&\nsolver = \"operator\"/" "$out/seed$seed.toml"
  printf '[pseudobands]\nvectors = %s\nblocks = %s\nprotected_ry = 0.25\nseed = %s\n' \
    "${VECTORS:-12}" "${BLOCKS:-4}" "$seed" >> "$out/seed$seed.toml"
  run "seed$seed" || exit 1
done
python3 - "$out" "$seeds" <<'PY'
import json, sys
out, seeds = sys.argv[1], int(sys.argv[2])
load = lambda name: json.load(open("%s/%s.json" % (out, name)))
whole = load("all"); s = whole["summary"]
sigma = [q["sigma_ev"] for q in s["quasiparticles"]]
missing = next(r for r in s["errors"]["rows"] if r["name"] == "bands")
bound = missing["value_ev"]
print("all %d bands: wall %.1f s; CH of further bands at most %s eV" % (s["plan"]["sigma_bands"], \
  whole["wall_seconds"], bound if bound == "not examined" else round(max(bound), 3)))
inside = wide = total = 0
for seed in range(1, seeds + 1):
    run = load("seed%d" % seed); p = run["summary"]["pseudobands"]["statistical_error"]
    rest = run["summary"]["errors"]["systematic_ev"]
    difference = [a - b for a, b in zip(p["estimate_ev"], sigma)]
    hits = [abs(d) <= h for d, h in zip(difference, p["half_width_ev"])]
    inside += sum(hits); total += len(hits)
    wide += sum(abs(d) <= h + r for d, h, r in zip(difference, p["half_width_ev"], rest))
    print("seed %2d: wall %5.1f s, %d of %d inside; difference and half-width (meV):" % (seed, \
      run["wall_seconds"], sum(hits), len(hits)), " ".join("%+.0f±%.0f" % (1e3 * d, 1e3 * h) \
      for d, h in zip(difference, p["half_width_ev"])))
print("inside the intervals: %d of %d; with the systematic sum: %d" % (inside, total, wide))
PY
