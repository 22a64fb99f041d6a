"""Currents of both schemes against each axis of the mesh; called by schemes.sh."""

import csv
import json
import math
import os
import subprocess
import sys
import time

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
SMALL = os.environ.get("SIZE") == "small"
COMMON = ["run.steady_tol=1e-3", "bias.vgs=0.6", "bias.vds=0.4", "mesh.nz=33", "mesh.subbands=3",
          "run.t_end_fs=3000"]
# Base mesh of each scheme, and the refinements of each axis from coarse to fine. The base occurs in
# every axis. Errors of ΔH and N_κ do not add up on coarse cells, so that the base of `beam` is
# fine.
SCHEMES = {
    "beam": ({"nx": 129, "dh_ev": 0.00625, "nkappa": 48},
             {"nx": (33, 65, 129), "dh_ev": (0.0125, 0.00625, 0.003125), "nkappa": (24, 48, 96)}),
    "weno": ({"nx": 65, "nw": 108, "nphi": 32},
             {"nx": (65, 129, 257), "nw": (72, 108, 216), "nphi": (24, 32, 48)}),
}
if SMALL:
    COMMON = ["run.steady_tol=5e-2", "bias.vgs=0.6", "bias.vds=0.4", "mesh.nz=17",
              "mesh.subbands=1"]
    SCHEMES = {
        "beam": ({"nx": 33, "dh_ev": 0.05, "nkappa": 4},
                 {"dh_ev": (0.05, 0.025), "nkappa": (4, 8, 16)}),
        "weno": ({"nx": 33, "nw": 24, "nphi": 8}, {"nw": (24, 36)}),
    }


def current_of(engine, scheme, mesh, output):
    """Runs one point, or reads it from an earlier call; returns the row of iv.csv."""
    name = "-".join([scheme] + [f"{key}{mesh[key]}" for key in sorted(mesh)])
    folder = os.path.join(output, name)
    path = os.path.join(folder, "done.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    os.makedirs(folder, exist_ok=True)
    words = [engine, "run", "mosfet", "examples/mosfet/standard.toml", "-d", folder, "--quiet",
             "--device", os.environ.get("DEVICE", "cuda:0"), "--set", f"run.scheme={scheme}"]
    for setting in COMMON + [f"mesh.{key}={value}" for key, value in mesh.items()]:
        words += ["--set", setting]
    began = time.monotonic()
    done = subprocess.run(words, cwd=TREE, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"),
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
    with open(os.path.join(folder, "iv.csv"), newline="", encoding="utf-8") as file:
        row = list(csv.DictReader(file))[-1]
    found = {"current": float(row["current_a_per_m"]), "status": row["status"],
             "ballistic_ratio": float(row["ballistic_ratio"]),
             "seconds": time.monotonic() - began}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return found


def limit_of(steps, currents):
    """Extrapolates a refined axis; returns the change from the finest mesh to the limit and a bar.

    With three steps the order follows from the changes if they have one sign and fall, and is kept
    between 1/2 and 2; the bar is half of the remaining change, and at least a quarter of the last
    one. Otherwise nothing is extrapolated, and the bar is the largest change.
    """
    changes = [b - a for a, b in zip(currents, currents[1:])]
    if len(changes) < 2 or changes[0] * changes[1] <= 0 or abs(changes[1]) >= abs(changes[0]):
        return 0.0, max(abs(change) for change in changes)
    ratio = steps[-2] / steps[-1]
    order = math.log(changes[0] / changes[1]) / math.log(steps[0] / steps[1])
    left = changes[1] / (ratio ** min(2.0, max(0.5, order)) - 1.0)
    return left, max(0.5 * abs(left), 0.25 * abs(changes[1]))


def step_of(axis, value):
    """Step of the mesh that belongs to the key of an axis."""
    return value if axis == "dh_ev" else 1.0 / (value - 1 if axis == "nx" else value)


def main():
    engine = os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build/gpu/bin", "quasi-engine")
    output = os.path.realpath(sys.argv[2] if len(sys.argv) > 2 else "build/schemes")
    deadline = time.monotonic() + float(os.environ.get("LIMIT_S", 500))
    limits = {}
    only = os.environ.get("ONLY")
    for scheme, (base, axes) in SCHEMES.items():
        if only and scheme != only:
            continue
        total, bar = None, 0.0
        for axis, values in axes.items():
            currents = []
            for value in values:
                if time.monotonic() > deadline:
                    print(f"time is up; the next call with OUTPUT {output} goes on")
                    return 75
                found = current_of(os.path.realpath(engine), scheme, {**base, axis: value}, output)
                currents.append(found["current"])
                print(f"{scheme} {axis:7} {value:<9} I = {found['current']:9.3f} A/m, ratio "
                      f"{found['ballistic_ratio']:.4f}, {found['status']}, "
                      f"{found['seconds']:.1f} s", flush=True)
                if value == base[axis] and total is None:
                    total = found["current"]
            left, error = limit_of([step_of(axis, value) for value in values], currents)
            # The limit of the axis against the base mesh.
            shift = currents[-1] + left - currents[values.index(base[axis])]
            total, bar = total + shift, bar + error
            print(f"{scheme} {axis:7} limit: {shift:+.2f} A/m against the base mesh, "
                  f"bar {error:.2f} A/m", flush=True)
        limits[scheme] = (total, bar)
        print(f"{scheme}: {total:.1f} +- {bar:.1f} A/m ({100 * bar / total:.2f} %)", flush=True)
    if only:
        return 0
    (beam, beam_bar), (weno, weno_bar) = limits["beam"], limits["weno"]
    apart = abs(weno / beam - 1.0)
    print(f"the schemes are {100 * apart:.2f} % apart")
    return 0 if apart <= 0.02 and beam_bar <= 0.02 * beam and weno_bar <= 0.02 * weno else 1


if __name__ == "__main__":
    sys.exit(main())
