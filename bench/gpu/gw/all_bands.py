"""All bands against pseudobands; called by all_bands.sh, which describes it."""

import os
import sys

from jobs import (FIRST_RUN_S, SMALL, Jobs, OutOfTime, devices, error_row_ev, multiplets,
                  plane_waves, sigma_ev, silicon)

EDGE = int(os.environ.get("EDGE", 1 if SMALL else 4))
STATES = int(os.environ.get("STATES", 28 if SMALL else 1500))
CUTOFF_RY = float(os.environ.get("CUTOFF", 2 if SMALL else 4))
WAVE_RY = 4.0 if SMALL else 11.0
ALL_BANDS = int(os.environ.get("ALL_BANDS", plane_waves(EDGE, WAVE_RY)))
GPUS = int(os.environ.get("GPUS", 2))
PSEUDOBANDS = {"vectors": int(os.environ.get("VECTORS", 4 if SMALL else 24)),
               "blocks": int(os.environ.get("BLOCKS", 4 if SMALL else 8)),
               "protected_ry": 0.5 if SMALL else 0.25}
DECKS = {
    "all": silicon(EDGE, ALL_BANDS, CUTOFF_RY, wave_ry=WAVE_RY),
    "operator": silicon(EDGE, STATES, CUTOFF_RY, wave_ry=WAVE_RY, operator=True,
                        pseudobands=PSEUDOBANDS),
    "given": silicon(EDGE, ALL_BANDS, CUTOFF_RY, wave_ry=WAVE_RY, pseudobands=PSEUDOBANDS),
}
PHASES = ("mean_field", "mean_field_hamiltonian", "mean_field_diagonalisation",
          "mean_field_gauge", "mean_field_eigensolver", "pseudobands", "estimate", "epsilon",
          "epsilon_estimate", "sigma", "sigma_estimate", "pseudoband_errors",
          "pseudoband_errors_estimate", "self_test")
# Assumed seconds of all bands of 512 atoms on two GPUs, for the states and for the sums over them.
STATES_S, PAIRS_S = 90, 190
SHARE = ALL_BANDS / plane_waves(EDGE, WAVE_RY)
EXPECTED_S = {"all": STATES_S + PAIRS_S * SHARE, "operator": 30, "given": STATES_S + 60}


def table_of_seconds(found):
    """Prints the seconds of every phase, one column a job."""
    names = list(found)
    print("seconds".ljust(28) + "".join(f"{name:>12}" for name in names))
    for phase in PHASES:
        values = [found[name]["summary"]["seconds"].get(phase, 0.0) for name in names]
        if any(values):
            print(phase.ljust(28) + "".join(f"{value:12.1f}" for value in values))
    print("whole job".ljust(28) + "".join(f"{found[name]['wall']:12.1f}" for name in names))
    for key, plan_key, title in (("host_bytes", "host_bytes", "host, GiB"),
                                 ("device_bytes", "memory_bytes", "busiest GPU, GiB")):
        used = [found[name]["memory"][key] for name in names]
        planned = [found[name]["summary"]["plan"][plan_key] for name in names]
        for what, values in (("used", used), ("planned", planned)):
            if None not in values:
                print(f"{title} {what}".ljust(28)
                      + "".join(f"{value / 2**30:12.1f}" for value in values))


def table_of_energies(whole, result, name, missing_ev):
    """Prints one row a multiplet; true if every difference lies within all bars."""
    summary = result["summary"]
    found = summary["pseudobands"]["statistical_error"]
    truth, good = sigma_ev(whole["summary"]), True
    print(f"\nΣ of '{name}' less Σ of all bands (meV)\n{'bands':>13}  difference  interval  "
          "systematic  missing bands")
    for group in multiplets(whole["summary"]):
        at = group[0]
        bands = [whole["summary"]["quasiparticles"][i]["band"] for i in (at, group[-1])]
        difference = found["estimate_ev"][at] - truth[at]
        half, rest = found["half_width_ev"][at], summary["errors"]["systematic_ev"][at]
        bound = missing_ev[at] if name == "operator" else 0.0
        inside = abs(difference) <= half + rest + bound
        good = good and inside
        print(f"{bands[0]:6}–{bands[1]:<6}  {1e3 * difference:+10.1f}  {1e3 * half:8.1f}  "
              f"{1e3 * rest:10.1f}  {1e3 * bound:13.1f}  "
              + ("inside the interval" if abs(difference) <= half else
                 "inside the bars" if inside else "OUTSIDE"))
    return good


def main():
    if len(sys.argv) < 2 or any(name not in DECKS for name in sys.argv[2:]):
        print("usage: all_bands.sh ENGINE [all|operator|given ...]", file=sys.stderr)
        return 64
    jobs = Jobs(sys.argv[1], "gw_all_bands")
    names = sys.argv[2:] or ["operator", "all"]
    found, late = {}, []
    for name in sorted(DECKS, key=lambda name: name != "operator"):  # it is the shortest
        try:
            expected = EXPECTED_S[name] if not SMALL else FIRST_RUN_S
            found[name] = (jobs.run(name, DECKS[name], devices(GPUS), expected)
                           if name in names else jobs.stored(name, DECKS[name], devices(GPUS)))
        except OutOfTime:
            late.append(f"{name} (about {expected:.0f} s)")
    found = {name: result for name, result in found.items() if result is not None}
    table_of_seconds(found)
    good = True
    if "all" in found:
        bound = error_row_ev(found["all"]["summary"], "bands")
        complete = ALL_BANDS == plane_waves(EDGE, WAVE_RY)
        missing_ev = (None if complete else bound) or [0.0] * len(sigma_ev(found["all"]["summary"]))
        if bound is None and not complete:
            print("CH of the bands beyond those of 'all' is not examined")
        for name in ("operator", "given"):
            if name in found:
                good = table_of_energies(found["all"], found[name], name, missing_ev) and good
    if late or "all" not in found:
        print(f"not started for want of time: {', '.join(late) or 'all'}; the next call goes on")
        return 75
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
