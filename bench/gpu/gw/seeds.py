"""Pseudobands of several seeds against all bands; called by seeds.sh and coverage.sh, which
describe it."""

import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from jobs import (FIRST_RUN_S, SMALL, Jobs, OutOfTime, band_edges, devices, error_row_ev,
                  plane_waves, sigma_ev, silicon)

EDGE = int(os.environ.get("EDGE", 1 if SMALL else 3))
STATES = int(os.environ.get("STATES", 28 if SMALL else 640))
SEEDS = int(os.environ.get("SEEDS", 3 if SMALL else 20))
VECTORS = int(os.environ.get("VECTORS", 4 if SMALL else 12))
BLOCKS = int(os.environ.get("BLOCKS", 4))
CUTOFF_RY = float(os.environ.get("CUTOFF", 2 if SMALL else 8))
WAVE_RY = float(os.environ.get("WAVES", 4 if SMALL else 11))
ALL_BANDS = int(os.environ.get("ALL_BANDS", plane_waves(EDGE, WAVE_RY)))
PROTECTED_RY = float(os.environ.get("PROTECTED", 0.5 if SMALL else 0.25))
DISORDER_BOHR = float(os.environ.get("DISORDER", 0.1))
CELLS = os.environ.get("CELLS", "ideal").split()
SIGMA_FACTOR = int(os.environ.get("SIGMA_FACTOR", 1))
GPUS = int(os.environ.get("GPUS", 1))
JOBS_PER_GPU = int(os.environ.get("JOBS_PER_GPU", 1))
LEAST_SHARE, MOST_SHARE = 0.9, 0.99
FEW = 20  # seeds whose rows are all printed
TWO_SIDED_95 = 1.96  # standard deviations


def deck_of_cell(cell, bands, **more):
    return silicon(EDGE, bands, CUTOFF_RY, wave_ry=WAVE_RY,
                   disorder_bohr=DISORDER_BOHR if cell == "disordered" else None, **more)


def deck_of_seed(cell, seed):
    pseudobands = {"vectors": VECTORS, "blocks": BLOCKS, "seed": seed,
                   "protected_ry": PROTECTED_RY}
    if SIGMA_FACTOR > 1:
        pseudobands["sigma_factor"] = SIGMA_FACTOR
    return deck_of_cell(cell, STATES, operator=True, self_test=False, pseudobands=pseudobands)


def name_of(cell, part):
    return part if cell == "ideal" else f"{cell}-{part}"


def run_seeds(jobs):
    """Returns the results by cell and seed; the seeds that time allows run side by side."""
    places = ["cpu"] if os.environ.get("DEVICE") == "cpu" else [f"cuda:{i}" for i in range(GPUS)]
    slots = places * JOBS_PER_GPU
    cores = max(1, (os.cpu_count() or 1) // len(slots))
    wanted = [(cell, seed) for seed in range(1, SEEDS + 1) for cell in CELLS]
    walls = []

    def run_slot(slot):
        found = {}
        for cell, seed in wanted[slot::len(slots)]:
            try:
                result = jobs.run(name_of(cell, f"seed{seed}"), deck_of_seed(cell, seed),
                                  slots[slot], max(walls, default=FIRST_RUN_S), cores,
                                  watch_gpu=JOBS_PER_GPU == 1)
            except OutOfTime:
                break
            found[cell, seed] = result
            walls.append(result["wall"])
        return found

    results = {cell: {} for cell in CELLS}
    with ThreadPoolExecutor(len(slots)) as pool:
        for found in pool.map(run_slot, range(len(slots))):
            for (cell, seed), result in found.items():
                results[cell][seed] = result
    return {cell: dict(sorted(seeds.items())) for cell, seeds in results.items()}


def wilson_interval(inside, total):
    """Returns the 95 % interval of a share [wilson1927]."""
    share, z2 = inside / total, TWO_SIDED_95**2
    centre = (share + 0.5 * z2 / total) / (1.0 + z2 / total)
    half = (TWO_SIDED_95 / (1.0 + z2 / total)
            * math.sqrt(share * (1.0 - share) / total + 0.25 * z2 / total**2))
    return centre - half, centre + half


class Quantity:
    """One value of the job of all bands, and how often the intervals of the seeds hold it."""

    def __init__(self, name, truth_ev):
        self.name, self.truth_ev = name, truth_ev
        self.inside = self.inside_sum = self.total = 0
        self.differences_ev, self.widths_ev = [], []

    def add(self, estimate_ev, half_width_ev, systematic_ev):
        """Counts one seed and returns its column of the table."""
        difference = estimate_ev - self.truth_ev
        self.inside += abs(difference) <= half_width_ev
        self.inside_sum += abs(difference) <= half_width_ev + (systematic_ev or 0.0)
        self.differences_ev.append(difference)
        self.widths_ev.append(half_width_ev)
        self.total += 1
        mark = " " if abs(difference) <= half_width_ev else "*"
        return f"{1e3 * difference:+7.1f} ±{1e3 * half_width_ev:5.1f}{mark}"

    def is_covered(self):
        """True if the share is 90 % or more, and not certainly above 99 %."""
        return (self.inside >= LEAST_SHARE * self.total
                and wilson_interval(self.inside, self.total)[0] <= MOST_SHARE)

    def line(self):
        """Returns the share, the mean difference with its standard error, and the half-width."""
        low, high = wilson_interval(self.inside, self.total)
        mean = sum(self.differences_ev) / self.total
        variance = sum((x - mean) ** 2 for x in self.differences_ev) / max(1, self.total - 1)
        return (f"{self.name}: inside the interval {self.inside} of {self.total} "
                f"({100 * low:.1f} to {100 * high:.1f} %), with the systematic sum "
                f"{self.inside_sum}; difference {1e3 * mean:+.1f} ± "
                f"{1e3 * math.sqrt(variance / self.total):.1f} meV, spread "
                f"{1e3 * math.sqrt(variance):.1f}, mean half-width "
                f"{1e3 * sum(self.widths_ev) / self.total:.1f} meV"
                + ("" if self.is_covered() else "; NOT 90 to 99 %"))


def report(cell, whole, seeds):
    """Prints a row for each seed and the counts; true if intervals hold as often as stated."""
    summary = whole["summary"]
    top, bottom = band_edges(summary, EDGE)
    truth = sigma_ev(summary)
    quantities = [Quantity("valence top", truth[top]), Quantity("conduction bottom", truth[bottom]),
                  Quantity("gap", truth[bottom] - truth[top])]
    bound = error_row_ev(summary, "bands")
    if ALL_BANDS == plane_waves(EDGE, WAVE_RY):
        rest = "all of them"
    else:
        rest = "CH of the others " + (f"at most {1e3 * max(bound):.1f} meV" if bound
                                      else "not examined")
    print(f"\n{cell} cell of {8 * EDGE**3} atoms, {summary['plan']['sigma_bands']} bands, {rest}: "
          f"{whole['wall']:.1f} s")
    few = len(seeds) <= FEW
    print(f"estimate less all bands and half-width (meV) of {'all seeds' if few else 'misses'}; "
          "* outside\nseed  seconds  " + "  ".join(f"{one.name:15}" for one in quantities))
    for seed, result in seeds.items():
        found = result["summary"]["pseudobands"]["statistical_error"]
        rest = result["summary"]["errors"]
        columns = [quantities[i].add(found["estimate_ev"][at], found["half_width_ev"][at],
                                     rest["systematic_ev"][at])
                   for i, at in enumerate((top, bottom))]
        columns.append(quantities[2].add(found["gap_ev"], found["gap_half_width_ev"],
                                         rest["systematic_gap_ev"]))
        if few or any("*" in column for column in columns):
            print(f"{seed:4} {result['wall']:8.1f}  " + "  ".join(f"{one:15}" for one in columns))
    if not seeds:
        return True
    for one in quantities:
        print(one.line())
    walls = [result["wall"] for result in seeds.values()]
    print(f"seconds of a seed: {min(walls):.1f} to {max(walls):.1f}; of all jobs "
          f"{whole['wall'] + sum(walls):.1f}")
    return all(one.is_covered() for one in quantities)


def main():
    if len(sys.argv) != 2:
        print(f"usage: {os.environ.get('SCRIPT', 'seeds.sh')} ENGINE", file=sys.stderr)
        return 64
    jobs = Jobs(sys.argv[1], "gw_seeds")
    whole = {}
    for cell in CELLS:
        try:
            whole[cell] = jobs.run(name_of(cell, "all"), deck_of_cell(cell, ALL_BANDS),
                                   devices(GPUS))
        except OutOfTime:
            print("LIMIT_S is too short for the job of all bands")
            return 75
    seeds = run_seeds(jobs)
    good = all([report(cell, whole[cell], seeds[cell]) for cell in CELLS])
    missing = sum(SEEDS - len(found) for found in seeds.values())
    if missing:
        print(f"{missing} seeds are missing; the next call goes on")
        return 75
    return 0 if good or SMALL else 1


if __name__ == "__main__":
    sys.exit(main())
