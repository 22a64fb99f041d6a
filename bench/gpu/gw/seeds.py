"""Pseudobands of several seeds against all bands; called by seeds.sh, which describes it."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from jobs import (FIRST_RUN_S, SMALL, Jobs, OutOfTime, band_edges, devices, error_row_ev,
                  sigma_ev, silicon)

EDGE = int(os.environ.get("EDGE", 1 if SMALL else 3))
ALL_BANDS = int(os.environ.get("ALL_BANDS", 147 if SMALL else 17941))
STATES = int(os.environ.get("STATES", 28 if SMALL else 640))
SEEDS = int(os.environ.get("SEEDS", 3 if SMALL else 20))
VECTORS = int(os.environ.get("VECTORS", 4 if SMALL else 12))
BLOCKS = int(os.environ.get("BLOCKS", 4))
CUTOFF_RY = float(os.environ.get("CUTOFF", 2 if SMALL else 8))
WAVE_RY = 4.0 if SMALL else 11.0
PROTECTED_RY = 0.5 if SMALL else 0.25
GPUS = int(os.environ.get("GPUS", 1))
LEAST_SHARE = 0.9


def deck_of_seed(seed):
    return silicon(EDGE, STATES, CUTOFF_RY, wave_ry=WAVE_RY, operator=True, self_test=False,
                   pseudobands={"vectors": VECTORS, "blocks": BLOCKS, "seed": seed,
                                "protected_ry": PROTECTED_RY})


def run_seeds(jobs):
    """Returns the results by seed; the seeds that time allows run on one GPU each."""
    cores = max(1, (os.cpu_count() or 1) // GPUS)
    slots = ["cpu"] if os.environ.get("DEVICE") == "cpu" else [f"cuda:{i}" for i in range(GPUS)]
    walls = []

    def run_slot(slot):
        found = {}
        for seed in range(1 + slot, SEEDS + 1, len(slots)):
            try:
                found[seed] = jobs.run(f"seed{seed}", deck_of_seed(seed), slots[slot],
                                       max(walls, default=FIRST_RUN_S), cores)
            except OutOfTime:
                break
            walls.append(found[seed]["wall"])
        return found

    results = {}
    with ThreadPoolExecutor(len(slots)) as pool:
        for found in pool.map(run_slot, range(len(slots))):
            results.update(found)
    return dict(sorted(results.items()))


class Quantity:
    """One value of the job of all bands, and how often the intervals of the seeds hold it."""

    def __init__(self, name, truth_ev):
        self.name, self.truth_ev = name, truth_ev
        self.inside = self.inside_sum = self.total = 0
        self.mean_ev = self.mean_width_ev = 0.0

    def add(self, estimate_ev, half_width_ev, systematic_ev):
        """Counts one seed and returns its column of the table."""
        difference = estimate_ev - self.truth_ev
        self.inside += abs(difference) <= half_width_ev
        self.inside_sum += abs(difference) <= half_width_ev + (systematic_ev or 0.0)
        self.mean_ev = (self.mean_ev * self.total + difference) / (self.total + 1)
        self.mean_width_ev = (self.mean_width_ev * self.total + half_width_ev) / (self.total + 1)
        self.total += 1
        mark = " " if abs(difference) <= half_width_ev else "*"
        return f"{1e3 * difference:+7.1f} ±{1e3 * half_width_ev:5.1f}{mark}"


def report(whole, seeds):
    """Prints a row for each seed and the counts; true if every interval holds often enough."""
    summary = whole["summary"]
    top, bottom = band_edges(summary, EDGE)
    truth = sigma_ev(summary)
    quantities = [Quantity("valence top", truth[top]), Quantity("conduction bottom", truth[bottom]),
                  Quantity("gap", truth[bottom] - truth[top])]
    bound = error_row_ev(summary, "bands")
    print(f"all {summary['plan']['sigma_bands']} bands: {whole['wall']:.1f} s; CH of bands beyond "
          + (f"these at most {1e3 * max(bound):.1f} meV" if bound else "these not examined"))
    print("estimate less all bands and half-width (meV); * outside\nseed  seconds  "
          + "  ".join(f"{one.name:15}" for one in quantities))
    for seed, result in seeds.items():
        found = result["summary"]["pseudobands"]["statistical_error"]
        rest = result["summary"]["errors"]
        columns = [quantities[i].add(found["estimate_ev"][at], found["half_width_ev"][at],
                                     rest["systematic_ev"][at])
                   for i, at in enumerate((top, bottom))]
        columns.append(quantities[2].add(found["gap_ev"], found["gap_half_width_ev"],
                                         rest["systematic_gap_ev"]))
        print(f"{seed:4} {result['wall']:8.1f}  " + "  ".join(f"{one:15}" for one in columns))
    good = True
    for one in quantities:
        reached = one.inside >= LEAST_SHARE * one.total
        good = good and reached
        print(f"{one.name}: inside the interval {one.inside} of {one.total}, with the systematic "
              f"sum {one.inside_sum}; mean difference {1e3 * one.mean_ev:+.1f} meV, mean "
              f"half-width {1e3 * one.mean_width_ev:.1f} meV{'' if reached else '; TOO FEW'}")
    walls = [result["wall"] for result in seeds.values()]
    if walls:
        print(f"seconds of a seed: {min(walls):.1f} to {max(walls):.1f}; of all jobs "
              f"{whole['wall'] + sum(walls):.1f}")
    return good


def main():
    if len(sys.argv) != 2:
        print("usage: seeds.sh ENGINE", file=sys.stderr)
        return 64
    jobs = Jobs(sys.argv[1], "gw_seeds")
    try:
        whole = jobs.run("all", silicon(EDGE, ALL_BANDS, CUTOFF_RY, wave_ry=WAVE_RY),
                         devices(GPUS))
    except OutOfTime:
        print("LIMIT_S is too short for the job of all bands")
        return 75
    seeds = run_seeds(jobs)
    good = report(whole, seeds)
    if len(seeds) < SEEDS:
        print(f"{SEEDS - len(seeds)} seeds are missing; the next call goes on")
        return 75
    return 0 if good or SMALL else 1


if __name__ == "__main__":
    sys.exit(main())
