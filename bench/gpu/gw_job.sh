#!/bin/bash
# The whole job on silicon by the empirical pseudopotential, 216 atoms, Γ: H, 5,500 bands, ε⁻¹ and Σ (HL-GPP) of 8 states, to eqp.
# Usage: gw_job.sh ENGINE [DEVICE] [REPEATS] [BANDS]; prints seconds by phase. About 3 minutes on one H200 at full size.
engine=$1 device=${2:-cuda:0} repeats=${3:-3} bands=${4:-5500}
atoms=$((8 * repeats ** 3)); occupied=$((2 * atoms))
out=$(mktemp -d)
cat > "$out/deck.toml" <<DECK
kind = "gw"
checkpoint_seconds = 1e6
[meanfield]
source = "epm"
cell = "cubic"
supercell = [$repeats, $repeats, $repeats]
cutoff_ry = 11.0
bands = $bands
[epsilon]
cutoff_ry = 8.0
write = false
[sigma]
band_min = $((occupied - 3))
band_max = $((occupied + 4))
DECK
"$engine" run gw "$out/deck.toml" --device "$device" -d "$out/run" --json > "$out/summary.json" 2> "$out/log" || tail -5 "$out/log"
python3 - "$out/summary.json" <<'PY' 2>/dev/null || tail -c 600 "$out/summary.json"
import json, sys
d = json.load(open(sys.argv[1])); s = d["summary"]
print(d["device_model"], s["devices"], "device(s), wall", round(d["wall_seconds"], 1), "s; by phase", {k: round(v, 1) for k, v in s["seconds"].items()})
print("N_G", s["eps_head"][0]["n_g"], "bands", s["plan"]["sigma_bands"], "states", len(s["quasiparticles"]), "head", s["eps_head"][0]["epsilon"])
for q in s["quasiparticles"][:3]: print(q["band"], q["e_mf_ev"], q["sigma_ev"], q["z"])
PY
rm -rf "$out"
