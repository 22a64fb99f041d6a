# Sourced: the deck of the GW timings, and what is printed of a run.

# gw_deck FILE "N1, N2, N3" BANDS: silicon by the empirical pseudopotential, Γ, HL-GPP of the 8
# states around the gap.
gw_deck() {
  local atoms=$((8 * $(tr -d ' ' <<< "$2" | tr , '*')))
  cat > "$1" <<DECK
kind = "gw"
checkpoint_interval_s = 1e6
[meanfield]
source = "epm"
cell = "cubic"
supercell = [$2]
cutoff_ry = 11.0
bands = $3
[epsilon]
cutoff_ry = 8.0
write = false
[sigma]
band_min = $((2 * atoms - 3))
band_max = $((2 * atoms + 4))
DECK
}

# gw_phases SUMMARY NAME [PEAK]: wall, seconds by phase and by step of ε, a digest of every number
# that is not a time or a name of where it ran, and the peaks of gw/peak.py beside the plan.
gw_phases() {
  python3 - "$@" <<'PY'
import hashlib, json, sys
d = json.load(open(sys.argv[1])); s = d["summary"]
def walk(x, path=""):
    if isinstance(x, dict):
        for k in sorted(x):
            if not any(w in k for w in ("second", "device", "rank", "memory", "bytes")):
                yield from walk(x[k], path + "/" + k)
    elif isinstance(x, list):
        for i, v in enumerate(x): yield from walk(v, path + "/%d" % i)
    elif not isinstance(x, str): yield "%s=%r" % (path, x)
t = s.get("seconds") or s.get("provenance", {}).get("seconds", {})
digest = hashlib.sha256("\n".join(walk(s)).encode()).hexdigest()[:12]
print("%-14s wall %6.2f  bits %s  %s" % (sys.argv[2], d["wall_seconds"], digest, {k: round(v, 2) \
  for k, v in t.items() if v > 0.02}))
if "eps_head" in s:
    print("   N_G", s["eps_head"][0]["n_g"], "bands", s["plan"]["sigma_bands"], "states", \
      len(s["quasiparticles"]), "head", s["eps_head"][0]["epsilon"])
if len(sys.argv) > 3:
    peak, plan, gib = json.load(open(sys.argv[3])), s["plan"], 2.0**30
    print("   host %.2f GiB used, %.2f planned" % (peak["host_bytes"] / gib, \
      plan["host_bytes"] / gib))
    if peak["device_bytes"] is not None:
        print("   device %.2f GiB used, %.2f planned of matrices" % (peak["device_bytes"] / gib, \
          plan["memory_bytes"] / gib))
if isinstance(s.get("pseudobands", {}).get("statistical_error"), dict):
    e = s["pseudobands"]["statistical_error"]
    print("   bars (meV)", [round(1e3 * x, 1) for x in e["half_width_ev"]], "gap", \
      round(1e3 * e["gap_half_width_ev"], 1))
PY
}
