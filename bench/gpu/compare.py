"""Interleaved benchmarks of two build folders on one GPU; called by compare.sh.

A case is a command that prints JSON. A row is one number of that output: seconds, or milliseconds
of a step. A measurement is a pair of runs, first of the old build and then of the new one, so both
sides of a pair are timed on the same machine within seconds of each other. Each build runs the
decks of its own source tree.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

DEVICE = os.environ.get("DEVICE", "cuda:0")
SMALL = os.environ.get("SIZE") == "small"
CALL_LIMIT_S = 150  # longest run of one benchmark
FIRST_RUN_S = 25  # assumed duration of a case that has not run yet

GW_DECK = """kind = "gw"
[meanfield]
source = "epm"
cell = "cubic"
supercell = {supercell}
cutoff_ry = {wave_ry}
bands = {bands}
[epsilon]
cutoff_ry = {screened_ry}
write = false
[sigma]
band_min = {band_min}
band_max = {band_max}
"""
# 64 atoms of silicon, or 8 in a small basis.
GW_DECK_VALUES = (
    {"supercell": [1, 1, 1], "wave_ry": 6.0, "bands": 60, "screened_ry": 3.0, "band_min": 15,
     "band_max": 18} if SMALL else
    {"supercell": [2, 2, 2], "wave_ry": 11.0, "bands": 1600, "screened_ry": 8.0, "band_min": 125,
     "band_max": 132})


def thermal_3ph(mesh, repeats, *more):
    n = 4 if SMALL else mesh
    return ["thermal_3ph_bench", "{deck}", DEVICE, str(repeats), f"ngrid={n} {n} {n}", *more]


def thermal_4ph(mesh, *more):
    return ["thermal_4ph_bench", "{deck}", "--mesh", str(4 if SMALL else mesh), "--sb", "0.1",
            "--device", DEVICE, *more]


def mosfet_step(steps, warmup, *more):
    size = ["--steps", str(steps), "--warmup", str(warmup)]
    if SMALL:
        size = ["--steps", "4", "--warmup", "2", "--batch", "2", "--nx", "33", "--nz", "33",
                "--nw", "40", "--nphi", "12", "--subbands", "2"]
    return ["mosfet_step", "--device", DEVICE, "--no-profile", *size, *more]


def gw_kernels(case, *more):
    size = ["--size", "small"] if SMALL else ["--size", "si214", *more]
    return ["gw_kernels", "--device", DEVICE, *size, case]


def engine(kind, deck, *settings):
    sets = [word for setting in settings for word in ("--set", setting)]
    return ["quasi-engine", "run", kind, deck, "-d", "{out}", "--device", DEVICE, "--json",
            "--quiet", *sets]


ITERATED_MESH = "4,4,4" if SMALL else "12,12,12"

# Name: (command, numbers of its JSON output that become rows).
# The off-diagonal sum runs with five bands at 128 outer states, and the time of its two products is
# the first row of gw_separable. The products of the polarizability are a part of gw_chi_pairs.
CASES = {
    "thermal_3ph_16": (thermal_3ph(16, 9, "isotopes=F", "convergence=F"),
                       ["seconds_scattering_median"]),
    "thermal_3ph_32": (thermal_3ph(32, 2), ["seconds_scattering_median", "seconds_iterate"]),
    "thermal_4ph_16": (thermal_4ph(16), ["scattering_s"]),
    "thermal_4ph_16_compat": (thermal_4ph(16, "--compat"), ["scattering_s"]),
    "thermal_4ph_iterated_12": (
        engine("thermal", "{deck}", f"ngrid={ITERATED_MESH}", "four_phonon=T",
               "four_phonon_iteration=T", "scalebroad=0.1", "T=300"),
        ["summary.seconds.scattering_4ph", "summary.seconds.iterate"]),
    "mosfet_step": (mosfet_step(800, 200), ["median_ms"]),
    "mosfet_step_full": (mosfet_step(400, 100, "--range", "full"), ["median_ms"]),
    "mosfet_step_4": (mosfet_step(200, 50, "--lanes", "4"), ["median_ms"]),
    "gw_diagonal": (gw_kernels("diagonal"), ["seconds"]),
    "gw_separable": (gw_kernels("separable", "--outer-states", "128", "--offdiagonal-bands", "5"),
                     ["seconds"]),
    "gw_chi_pairs": (gw_kernels("chi-pairs"), ["seconds"]),
    "gw_fft": (gw_kernels("fft"), ["seconds"]),
    "gw_inverse": (gw_kernels("inverse"), ["seconds"]),
    "gw_job_64": (engine("gw", "{gw_deck}"),
                  ["summary.seconds.epsilon", "summary.seconds.sigma", "wall_seconds"]),
}
# Cases of long runs: they run only when CASES names them.
LONG_CASES = {
    "gw_offdiagonal": (gw_kernels("offdiagonal"), ["seconds"]),
    "gw_chi": (gw_kernels("chi"), ["seconds"]),
}
ALL_CASES = {**CASES, **LONG_CASES}
# Members of a JSON line that tell it from the other lines of one output.
LABELS = ("case", "model", "n_sigma", "sx", "real", "overlapped", "box")


def documents(text):
    """The JSON objects of an output: one a line, or the whole text."""
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def member(document, path):
    """The number below a path such as "summary.seconds.sigma"; None if it is absent."""
    for key in path.split("."):
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return float(document)


def source_tree(folder):
    """The source tree of a build folder; this script's own tree where that tree is absent."""
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as cache:
        for line in cache:
            if line.startswith("CMAKE_HOME_DIRECTORY:INTERNAL="):
                tree = line.split("=", 1)[1].strip()
                if os.path.isdir(tree):
                    return tree
    return os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


def measure(folder, name, scratch):
    """Rows of one run: {"case label number": value}."""
    command, metrics = ALL_CASES[name]
    places = {
        "{deck}": os.path.join(source_tree(folder), "examples/thermal/silicon"),
        "{gw_deck}": os.path.join(scratch, "deck.toml"),
        "{out}": tempfile.mkdtemp(dir=scratch),
    }
    words = [places.get(word, word) for word in command]
    words[0] = os.path.join(folder, "bin", words[0])
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    if DEVICE.startswith("cuda"):
        environment["QUASI_REQUIRE_DEVICE"] = "cuda"
    done = subprocess.run(words, cwd=source_tree(folder), env=environment, text=True,
                          capture_output=True, timeout=CALL_LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\nended with {done.returncode}:\n"
                         + (done.stderr or done.stdout)[-2000:])
    found = documents(done.stdout)
    labels = [key for key in LABELS if len({str(one.get(key)) for one in found}) > 1]
    rows = {}
    for document in found:
        label = " ".join(str(document[key]) if key in ("case", "model") else
                         f"{key}={str(document[key]).lower()}" for key in labels if key in document)
        for metric in metrics:
            value = member(document, metric)
            if value is not None:
                rows[" ".join(filter(None, (name, label, metric.split(".")[-1])))] = value
    if not rows:
        raise SystemExit(f"{' '.join(words)}\nprinted none of {', '.join(metrics)}")
    return rows


def identity(folder):
    """Digest of the programs of a build folder. It keeps measurements of other builds out of the
    default file of measurements."""
    digest = hashlib.sha256()
    for program in sorted({command[0] for command, _ in ALL_CASES.values()}):
        with open(os.path.join(folder, "bin", program), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def load(state):
    """Measurements of a file. An incomplete last line of a killed call is cut off."""
    if not os.path.exists(state):
        return []
    with open(state, "r+b") as file:
        text = file.read()
        complete = text[:text.rfind(b"\n") + 1]
        file.truncate(len(complete))
    return [json.loads(line) for line in complete.splitlines()]


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def report(pairs, rounds, names, limit):
    """Prints the table; true if every ratio is within the limit and every row has all its pairs."""
    values = {}
    for pair in pairs:
        if pair["case"] in names and pair["round"] < rounds:
            for row in pair["old"].keys() & pair["new"].keys():
                values.setdefault(row, []).append((pair["old"][row], pair["new"][row]))
            if pair["old"].keys() != pair["new"].keys():
                raise SystemExit(f"{pair['case']}: the builds print different rows: "
                                 f"{sorted(pair['old'].keys() ^ pair['new'].keys())}")
    good = True
    print(f"{'benchmark':66} {'old':>10} {'new':>10} {'new/old':>8} {'spread':>7}")
    for row in sorted(values, key=lambda row: (names.index(row.split()[0]), row)):
        old, new = zip(*values[row])
        ratio = statistics.median(new) / statistics.median(old)
        notes = []
        if len(old) < rounds:
            notes.append(f"{len(old)} of {rounds} rounds")
        elif ratio > limit:
            notes.append("SLOWER")
        good = good and not notes
        print(f"{row:66} {statistics.median(old):10.5g} {statistics.median(new):10.5g} "
              f"{ratio:8.4f} {100 * max(spread(old), spread(new)):6.1f}%  {', '.join(notes)}")
    missing = [name for name in names if not any(row.split()[0] == name for row in values)]
    if missing:
        print("not measured yet: " + " ".join(missing))
    seconds = {name: statistics.median(pair["seconds"] for pair in pairs if pair["case"] == name)
               for name in names if name not in missing}
    print(f"one round of {len(seconds)} cases takes {sum(seconds.values()) / 2:.0f} s a side")
    return good and not missing


def measure_missing(folders, pairs, state, rounds, names, deadline):
    """Measures, round after round, the pairs that `pairs` lacks; false when time is up first."""
    longest = {}
    for pair in pairs:
        longest[pair["case"]] = max(longest.get(pair["case"], 0.0), pair["seconds"])
    done = {(pair["case"], pair["round"]) for pair in pairs}
    os.makedirs(os.path.dirname(os.path.abspath(state)), exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "deck.toml"), "w", encoding="utf-8") as deck:
            deck.write(GW_DECK.format(**GW_DECK_VALUES))
        for number in range(rounds):
            for name in names:
                if (name, number) in done:
                    continue
                if time.monotonic() + longest.get(name, 2 * FIRST_RUN_S) > deadline:
                    return False
                began = time.monotonic()
                pair = {"case": name, "round": number}
                for side, folder in folders.items():
                    pair[side] = measure(folder, name, scratch)
                pair["seconds"] = round(time.monotonic() - began, 3)
                longest[name] = max(longest.get(name, 0.0), pair["seconds"])
                pairs.append(pair)
                with open(state, "a", encoding="utf-8") as file:
                    file.write(json.dumps(pair) + "\n")
    return True


def main():
    if os.environ.get("CASES") == "list":
        print("\n".join([*CASES, *(f"{name} (only by name)" for name in LONG_CASES)]))
        return 0
    old, new, limit_s = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3]
    deadline = time.monotonic() + float(limit_s)
    rounds, limit = int(os.environ.get("ROUNDS", 5)), float(os.environ.get("LIMIT", 1.03))
    names = os.environ.get("CASES", "").split() or list(CASES)
    for name in names:
        if name not in ALL_CASES:
            raise SystemExit(f"CASES names no case '{name}'; CASES=list prints them")
    state = os.environ.get("STATE") or os.path.join(
        new, f"compare-{identity(old)}-{identity(new)}{'-small' if SMALL else ''}.jsonl")
    pairs = load(state)
    complete = measure_missing({"old": old, "new": new}, pairs, state, rounds, names, deadline)
    good = report(pairs, rounds, names, limit)
    if not complete:
        print(f"time is up; the next call with STATE={state} goes on")
        return 75
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
