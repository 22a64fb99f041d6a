"""Decks of silicon atoms by the empirical pseudopotential, and runs whose results are kept.

seeds.py, scaling.py and all_bands.py use this module. Each finished job is one JSON file in the
folder STATE, so that a call goes on where the last one stopped.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time

SMALL = os.environ.get("SIZE") == "small"
FIRST_RUN_S = 60  # assumed duration of a job that was not measured yet
RUN_LIMIT_S = 580  # longest duration of one job
SILICON_BOHR = 10.2612  # lattice parameter of the built-in silicon

DECK = """kind = "gw"
checkpoint_interval_s = 1e6
self_test = {self_test}
[meanfield]
source = "epm"
cell = "cubic"
supercell = {repeats}
{disorder}cutoff_ry = {wave_ry}
bands = {bands}
{solver}[epsilon]
cutoff_ry = {screened_ry}
write = false
[sigma]
band_min = {band_min}
band_max = {band_max}
"""


class OutOfTime(Exception):
    """The next job would not end before LIMIT_S."""


def silicon(edge, bands, screened_ry=8.0, **more):
    """Returns a deck of 8·edge³ atoms whose outer states are the two band edges.

    wave_ry is the cut-off of the states and `bands` the number of lowest states. With
    operator=True their solver works without the matrix of H. Atoms are displaced by disorder_bohr
    in random directions. The table `pseudobands` follows the deck.
    """
    occupied = 16 * edge**3
    disorder = f"disorder_bohr = {more['disorder_bohr']}\n" if more.get("disorder_bohr") else ""
    text = DECK.format(
        repeats=[edge] * 3, disorder=disorder, wave_ry=more.get("wave_ry", 11.0), bands=bands,
        solver='solver = "operator"\n' if more.get("operator") else "", screened_ry=screened_ry,
        band_min=occupied, band_max=occupied + 1,
        self_test="true" if more.get("self_test", True) else "false")
    pseudobands = more.get("pseudobands")
    if pseudobands:
        text += "[pseudobands]\n" + "".join(f"{key} = {value}\n" for key, value in
                                            pseudobands.items())
    return text


def plane_waves(edge, wave_ry):
    """Returns the number of plane waves of 8·edge³ atoms, which is that of all bands."""
    unit_ry = (2.0 * math.pi / (edge * SILICON_BOHR))**2
    most = int(math.sqrt(wave_ry / unit_ry))
    squares = [i * i for i in range(-most, most + 1)]
    return sum((a + b + c) * unit_ry < wave_ry for a in squares for b in squares for c in squares)


def devices(count):
    """Returns the argument of --device for a number of GPUs."""
    if os.environ.get("DEVICE") == "cpu":
        return "cpu"
    return ",".join(f"cuda:{index}" for index in range(count))


class Jobs:
    """Runs jobs and keeps their results in a folder."""

    def __init__(self, engine, name):
        self.engine = os.path.realpath(engine)
        self.folder = os.environ.get("STATE") or os.path.join(os.path.dirname(self.engine), name)
        self.deadline = time.monotonic() + float(os.environ.get("LIMIT_S", 540))
        os.makedirs(self.folder, exist_ok=True)

    def stored(self, name, deck, device):
        """Returns the result of a job with this deck and devices, or None."""
        try:
            with open(os.path.join(self.folder, name + ".json"), encoding="utf-8") as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return None
        return kept if (kept["deck"], kept["device"]) == (deck, device) else None

    def run(self, name, deck, device, expected_s=FIRST_RUN_S, threads=None, watch_gpu=True):
        """Returns the result of a job: its deck, device, wall, peak memory and summary.

        The lines that the job logs are in the file NAME.log of the folder. watch_gpu=False leaves
        the memory of GPUs out, for many jobs at a time.
        """
        kept = self.stored(name, deck, device)
        if kept is not None:
            return kept
        left_s = self.deadline - time.monotonic()
        if expected_s > left_s:
            raise OutOfTime(name)
        if watch_gpu:
            print(f"{name} on {device}", file=sys.stderr, flush=True)
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
        if threads is not None:
            environment["OMP_NUM_THREADS"] = str(threads)
        log = os.path.join(self.folder, name + ".log")
        with tempfile.TemporaryDirectory() as scratch:
            path, peak = os.path.join(scratch, "deck.toml"), os.path.join(scratch, "peak.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(deck)
            watcher = os.path.join(os.path.dirname(os.path.realpath(__file__)), "peak.py")
            with open(log, "w", encoding="utf-8") as lines:
                done = subprocess.run(
                    [sys.executable, watcher, *([] if watch_gpu else ["--host-only"]), peak,
                     str(min(RUN_LIMIT_S, left_s)), self.engine, "run", "gw", path,
                     "-d", os.path.join(scratch, "out"), "--device", device, "--json"],
                    env=environment, text=True, stdout=subprocess.PIPE, stderr=lines, check=False)
            with open(peak, encoding="utf-8") as file:
                memory = json.load(file)
            if done.returncode != 0:
                raise SystemExit(failure_of(name, done.returncode, memory["phases"], log))
            result = json.loads(done.stdout)
        kept = {"deck": deck, "device": device, "wall": result["wall_seconds"], "memory": memory,
                "summary": result["summary"]}
        target = os.path.join(self.folder, name + ".json")
        with open(target + ".new", "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(target + ".new", target)
        return kept


def failure_of(name, status, phases, log):
    """Returns what a job that failed has reported: its phases and the end of its log."""
    lines = [f"{name} " + ("was ended by the time limit" if status == 124
                           else f"ended with status {status}")]
    lines += [f"  {first:8.1f} to {last:7.1f} s  {phase}, {percent:.0f} %"
              for phase, first, last, percent in phases]
    with open(log, encoding="utf-8") as file:
        return "\n".join(lines + [file.read()[-2000:]])


def multiplets(summary):
    """Returns the outer states as lists of positions; members have equal mean-field energies."""
    groups = []
    states = summary["quasiparticles"]
    for index, state in enumerate(states):
        if groups and abs(state["e_mf_ev"] - states[groups[-1][-1]]["e_mf_ev"]) < 1e-4:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def band_edges(summary, edge):
    """Returns the positions of the highest occupied and of the lowest empty state."""
    bands = [state["band"] for state in summary["quasiparticles"]]
    return bands.index(16 * edge**3), bands.index(16 * edge**3 + 1)


def sigma_ev(summary):
    """Returns Σ of every outer state."""
    return [state["sigma_ev"] for state in summary["quasiparticles"]]


def error_row_ev(summary, name):
    """Returns the values of a row of errors by states, or None where it is not examined."""
    for row in summary["errors"]["rows"]:
        if row["name"] == name:
            return None if isinstance(row["value_ev"], str) else row["value_ev"]
    return None
