"""Time and error of a gate pulse with both schemes; called by mosfet_transient.sh."""

import json
import math
import os
import subprocess
import sys
import time

COMMON = ["bias.vgs=0.5", "bias.vds=0.4", "run.t_end_fs=1000", "output.every_fs=5",
          "bias.waveform_vgs=[[400,0],[405,0.1],[600,0.1],[605,0]]"]
BEGIN_FS, END_FS, WINDOW_FS = 400.0, 1000.0, 50.0
SUBBANDS, NZ = 6, 65
REFERENCE = ("beam", {"nx": 129, "dh_ev": 0.00625, "nkappa": 24}, 0.35)
RUNS = [("beam", {"nx": 33, "dh_ev": 0.0125, "nkappa": 12}, 0.7),
        ("beam", {"nx": 65, "dh_ev": 0.00625, "nkappa": 24}, 0.7),
        ("weno", {"nx": 33, "nw": 150, "nphi": 24}, 0.7),
        ("weno", {"nx": 65, "nw": 300, "nphi": 48}, 0.7)]
if os.environ.get("SIZE") == "small":
    SUBBANDS, NZ = 1, 33
    REFERENCE = ("beam", {"nx": 65, "dh_ev": 0.00625, "nkappa": 24}, 0.5)
    RUNS = [("beam", {"nx": 33, "dh_ev": 0.0125, "nkappa": 12}, 0.7),
            ("beam", {"nx": 33, "dh_ev": 0.025, "nkappa": 6}, 0.7),
            ("weno", {"nx": 33, "nw": 48, "nphi": 16}, 0.7),
            ("weno", {"nx": 65, "nw": 72, "nphi": 16}, 0.7)]


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
    """Mean current into the drain in each window, e/(fs nm)."""
    rows = result["terminals"]
    times = rows[0::6]
    charges = [drain + passed for drain, passed in zip(rows[2::6], rows[5::6])]

    def charge_at(t_fs):
        after = next((k for k, t in enumerate(times) if t >= t_fs - 1e-6), len(times) - 1)
        if after == 0 or abs(times[after] - t_fs) < 1e-6:
            return charges[after]
        share = (t_fs - times[after - 1]) / (times[after] - times[after - 1])
        return charges[after - 1] + share * (charges[after] - charges[after - 1])

    edges = [BEGIN_FS + k * WINDOW_FS for k in range(int((END_FS - BEGIN_FS) / WINDOW_FS) + 1)]
    values = [charge_at(t) for t in edges]
    return [(b - a) / WINDOW_FS for a, b in zip(values, values[1:])]


def main():
    program = os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin",
                           "mosfet_transient")
    output = sys.argv[2] if len(sys.argv) > 2 else "build/mosfet-transient"
    os.makedirs(output, exist_ok=True)
    end = time.monotonic() + float(os.environ.get("LIMIT_S", "500"))
    found = []
    for run in RUNS:
        result = result_of(program, run, output, end)
        per_ps = 1000.0 / result["time_fs"]
        found.append({"run": run, "result": result, "line": {
            "scheme": run[0], "mesh": run[1], "cfl": run[2], "steps": result["steps"],
            "seconds_per_ps": per_ps * (result["seconds"] - result["start_seconds"]),
            "cpu_seconds_per_ps": per_ps * (result["cpu_seconds"] - result["start_cpu_seconds"]),
            "start_seconds": result["start_seconds"]}})
    reference = drain_currents(result_of(program, REFERENCE, output, end))
    scale = math.sqrt(sum(value ** 2 for value in reference))
    for each in found:
        own = drain_currents(each["result"])
        each["line"]["error"] = math.sqrt(sum((a - b) ** 2 for a, b in zip(own, reference))) / scale
        print(json.dumps(each["line"]))
    passed = True
    beams = [each["line"] for each in found if each["run"][0] == "beam"]
    for each in found:
        if each["run"][0] == "beam":
            continue
        line = each["line"]
        fit = [beam["cpu_seconds_per_ps"] for beam in beams if beam["error"] <= line["error"]]
        ratio = line["cpu_seconds_per_ps"] / min(fit) if fit else 0.0
        passed = passed and ratio >= 5.0
        print(json.dumps({"weno_over_beam": ratio, "mesh": line["mesh"], "error": line["error"]}))
    sys.exit(0 if passed else 1)


main()
