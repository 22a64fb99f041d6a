"""Time and error of a gate pulse with both schemes; called by mosfet_transient.sh."""

import json
import math
import os
import subprocess
import sys
import time

AMPERE_PER_M = 1.602176634e5  # of one e/(fs nm)
BEGIN_FS, END_FS, WINDOW_FS = 400, 1000, 200
# No step crosses a corner of the waveform, so that charges are known at the ends of the windows.
CORNERS = ([[t, 0.0] for t in range(50, BEGIN_FS + 1, 50)] +
           [[405, 0.1], [450, 0.1], [500, 0.1], [550, 0.1], [600, 0.1], [605, 0.0]] +
           [[t, 0.0] for t in range(650, END_FS + 1, 50)])
COMMON = ["bias.vgs=0.5", "bias.vds=0.4", f"run.t_end_fs={END_FS}", "output.every_fs=50",
          f"bias.waveform_vgs={json.dumps(CORNERS)}"]


def beam(nx, dh_ev, nkappa, cfl=0.7):
    """A run of the scheme beam: columns, cells of H, eV, and cells of kappa."""
    return ("beam", {"nx": nx, "dh_ev": dh_ev, "nkappa": nkappa}, cfl)


def weno(nx, nw, nphi):
    """A run of the scheme weno: columns, points of energy and of angle."""
    return ("weno", {"nx": nx, "nw": nw, "nphi": nphi}, 0.7)


SUBBANDS, NZ = 6, 65
RUNS = [beam(33, 0.0125, 12), beam(65, 0.00625, 24), weno(33, 150, 24), weno(65, 300, 48)]
# Limits of a scheme: its finest run, and for every axis a coarse run, a finer run and the factor of
# their difference.
LIMITS = {"beam": [(beam(129, 0.00625, 24, 0.35), [])]}
if os.environ.get("SIZE") == "small":
    SUBBANDS, NZ = 1, 33
    RUNS = [beam(33, 0.05, 3, 1.0), beam(33, 0.05, 4, 1.0), beam(33, 0.025, 4, 1.0),
            beam(33, 0.025, 6), beam(33, 0.025, 12), beam(33, 0.0125, 6), beam(33, 0.0125, 12),
            beam(33, 0.00625, 12), beam(33, 0.0125, 24), beam(65, 0.025, 6), beam(65, 0.0125, 12),
            weno(33, 48, 16), weno(33, 48, 32), weno(33, 96, 16), weno(65, 48, 16),
            weno(65, 72, 16)]

    def weno_limit(order):
        """The limit of weno, if errors in x and energy have this order; that in angle is 2."""
        rest = 1.0 / (2 ** order - 1)
        return (weno(65, 48, 16), [(weno(33, 48, 16), weno(65, 48, 16), rest),
                                   (weno(33, 48, 16), weno(33, 96, 16), 1.0 + rest),
                                   (weno(33, 48, 16), weno(33, 48, 32), 4.0 / 3.0)])

    LIMITS = {"beam": [(beam(65, 0.0125, 12),
                        [(beam(33, 0.0125, 12), beam(65, 0.0125, 12), 1.0 / 3.0),
                         (beam(33, 0.0125, 12), beam(33, 0.00625, 12), 4.0 / 3.0),
                         (beam(33, 0.0125, 12), beam(33, 0.0125, 24), 4.0 / 3.0)])],
              "weno": [weno_limit(1), weno_limit(2)]}


def result_of(program, run, output, end):
    """Runs one pulse, or reads it from an earlier call."""
    scheme, mesh, cfl = run
    name = "-".join([scheme] + [f"{key}{mesh[key]}" for key in sorted(mesh)] + [f"cfl{cfl}"])
    path = os.path.join(output, name + ".json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    words = [program, "--device", os.environ.get("DEVICE", "cpu")]
    for setting in COMMON + [f"run.scheme={scheme}", f"run.cfl={cfl}", f"mesh.nz={NZ}",
                             f"mesh.subbands={SUBBANDS}"] + \
            [f"mesh.{key}={value}" for key, value in mesh.items()]:
        words += ["--set", setting]
    env = dict(os.environ, OMP_NUM_THREADS=os.environ.get("THREADS", "1"))
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False,
                              timeout=max(1.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        print(f"stopped within {name}", file=sys.stderr)
        sys.exit(75)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return found


def drain_currents(result):
    """Mean current into the drain in each window, A/m."""
    rows = result["terminals"]
    times = rows[0::6]
    charges = [drain + passed for drain, passed in zip(rows[2::6], rows[5::6])]

    def charge_at(t_fs):
        after = next((k for k, t in enumerate(times) if t >= t_fs - 1e-6), len(times) - 1)
        if after == 0 or abs(times[after] - t_fs) < 1e-6:
            return charges[after]
        share = (t_fs - times[after - 1]) / (times[after] - times[after - 1])
        return charges[after - 1] + share * (charges[after] - charges[after - 1])

    values = [charge_at(t) for t in range(BEGIN_FS, END_FS + 1, WINDOW_FS)]
    return [AMPERE_PER_M * (b - a) / WINDOW_FS for a, b in zip(values, values[1:])]


def error_of(currents, reference):
    """Root mean square of the difference over that of the reference."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(currents, reference)) /
                     sum(b ** 2 for b in reference))


def mean_of(lists):
    """Mean of lists of equal length."""
    return [sum(values) / len(lists) for values in zip(*lists)]


def limit_of(limit, currents):
    """The extrapolated currents of a limit in LIMITS."""
    value = list(currents(limit[0]))
    for coarse, fine, factor in limit[1]:
        value = [v + factor * (b - a)
                 for v, a, b in zip(value, currents(coarse), currents(fine))]
    return value


def compare(found, name, reference):
    """Prints the errors of all runs, and for runs of weno the time over that of beam."""
    ratios = []
    for each in found:
        line = {"reference": name, **each["line"], "error": error_of(each["currents"], reference)}
        if each["line"]["scheme"] == "weno":
            fit = [other["line"] for other in found if other["line"]["scheme"] == "beam" and
                   error_of(other["currents"], reference) <= line["error"]]
            fastest = min(fit, key=lambda other: other["cpu_seconds_per_ps"]) if fit else None
            line["weno_over_beam"] = (line["cpu_seconds_per_ps"] / fastest["cpu_seconds_per_ps"]
                                      if fit else 0.0)
            line["beam"] = fastest["mesh"] if fit else None
            ratios.append(line["weno_over_beam"])
        print(json.dumps(line))
    return min(ratios)


def main():
    program = os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin",
                           "mosfet_transient")
    output = sys.argv[2] if len(sys.argv) > 2 else "build/mosfet-transient"
    os.makedirs(output, exist_ok=True)
    end = time.monotonic() + float(os.environ.get("LIMIT_S", "500"))

    def currents(run):
        return drain_currents(result_of(program, run, output, end))

    found = []
    for run in RUNS:
        result = result_of(program, run, output, end)
        per_ps = 1000.0 / result["time_fs"]
        found.append({"currents": currents(run), "line": {
            "scheme": run[0], "mesh": run[1], "cfl": run[2], "steps": result["steps"],
            "seconds_per_ps": per_ps * (result["seconds"] - result["start_seconds"]),
            "cpu_seconds_per_ps": per_ps * (result["cpu_seconds"] - result["start_cpu_seconds"]),
            "start_seconds": result["start_seconds"]}})
    limits = {name: [limit_of(limit, currents) for limit in each] for name, each in LIMITS.items()}
    own = limits["beam"][0]
    for name, each in limits.items():
        for number, value in enumerate(each):
            print(json.dumps({"limit": name, "number": number, "currents_a_per_m": value,
                              "distance_to_beam": error_of(value, own)}))
            compare(found, f"{name} {number}", value)
    # Both schemes have the same weight in the reference of the verdict.
    least = compare(found, "mean", mean_of([mean_of(each) for each in limits.values()]))
    sys.exit(0 if least >= 5.0 else 1)


main()
