"""Interleaved benchmarks of two build folders on one GPU; called by compare.sh.

Every case is a command that prints JSON lines. A row is one number of one line: seconds, or
milliseconds of a step. Both builds run the decks of their own source tree.
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
CALL_LIMIT_S = 150  # longest run of one benchmark

GW_DECK = """kind = "gw"
[meanfield]
source = "epm"
cell = "cubic"
supercell = [2, 2, 2]
cutoff_ry = 11.0
bands = 1600
[epsilon]
cutoff_ry = 8.0
write = false
[sigma]
band_min = 125
band_max = 132
"""


def thermal_3ph(mesh, *more):
    return ["thermal_3ph_bench", "{deck}", DEVICE, "3", f"ngrid={mesh} {mesh} {mesh}", *more]


def thermal_4ph(mesh, *more):
    return ["thermal_4ph_bench", "{deck}", "--mesh", str(mesh), "--sb", "0.1", "--device", DEVICE,
            *more]


def mosfet_step(*more):
    return ["mosfet_step", "--device", DEVICE, *more]


def gw_kernels(case):
    return ["gw_kernels", "--device", DEVICE, "--size", "si214", case]


def engine(kind, deck, *settings):
    sets = [word for setting in settings for word in ("--set", setting)]
    return ["quasi-engine", "run", kind, deck, "-d", "{out}", "--device", DEVICE, "--json",
            "--quiet", *sets]


# name: (command, numbers of its JSON lines that become rows)
CASES = {
    "thermal_3ph_16": (thermal_3ph(16, "isotopes=F", "convergence=F"),
                       ["seconds_scattering_median"]),
    "thermal_3ph_32": (thermal_3ph(32), ["seconds_scattering_median", "seconds_iterate"]),
    "thermal_4ph_16": (thermal_4ph(16), ["scattering_s"]),
    "thermal_4ph_16_compat": (thermal_4ph(16, "--compat"), ["scattering_s"]),
    "thermal_4ph_iterated_12": (
        engine("thermal", "{deck}", "ngrid=12,12,12", "four_phonon=T", "four_phonon_iteration=T",
               "scalebroad=0.1", "T=300"), ["wall_seconds"]),
    "mosfet_step": (mosfet_step("--steps", "800", "--no-profile"), ["median_ms"]),
    "mosfet_step_full": (mosfet_step("--steps", "400", "--range", "full", "--no-profile"),
                         ["median_ms"]),
    "mosfet_step_4": (mosfet_step("--steps", "200", "--warmup", "50", "--lanes", "4",
                                  "--no-profile"), ["median_ms"]),
    "gw_diagonal": (gw_kernels("diagonal"), ["seconds"]),
    "gw_offdiagonal": (gw_kernels("offdiagonal"), ["seconds"]),
    "gw_separable": (gw_kernels("separable"), ["seconds"]),
    "gw_chi": (gw_kernels("chi"), ["seconds"]),
    "gw_chi_pairs": (gw_kernels("chi-pairs"), ["seconds"]),
    "gw_fft": (gw_kernels("fft"), ["seconds"]),
    "gw_inverse": (gw_kernels("inverse"), ["seconds"]),
    "gw_job_64": (engine("gw", "{gw_deck}"), ["wall_seconds"]),
}


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


def source_tree(folder):
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as cache:
        for line in cache:
            if line.startswith("CMAKE_HOME_DIRECTORY:INTERNAL="):
                return line.split("=", 1)[1].strip()
    raise SystemExit(f"{folder}/CMakeCache.txt does not name its source tree")


def measure(folder, name, scratch):
    """Rows of one run: {"case metric number": value}."""
    command, metrics = CASES[name]
    places = {
        "{deck}": os.path.join(source_tree(folder), "examples/thermal/silicon"),
        "{gw_deck}": os.path.join(scratch, "deck.toml"),
        "{out}": tempfile.mkdtemp(dir=scratch),
    }
    words = [places.get(word, word) for word in command]
    words[0] = os.path.join(folder, "bin", words[0])
    environment = dict(os.environ, QUASI_REQUIRE_DEVICE="cuda", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(words, cwd=source_tree(folder), env=environment, text=True,
                          capture_output=True, timeout=CALL_LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\nended with {done.returncode}:\n"
                         + (done.stderr or done.stdout)[-2000:])
    rows = {}
    for index, document in enumerate(documents(done.stdout)):
        for metric in metrics:
            if metric in document:
                rows[f"{name} {metric} {index}"] = float(document[metric])
    if not rows:
        raise SystemExit(f"{' '.join(words)}\nprinted none of {', '.join(metrics)}")
    return rows


def identity(folder):
    """Digest of the programs of a build folder, so that measurements of other builds are not
    mixed in."""
    digest = hashlib.sha256()
    for program in sorted({command[0] for command, _ in CASES.values()}):
        with open(os.path.join(folder, "bin", program), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def load(state):
    if not os.path.exists(state):
        return []
    with open(state, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def report(runs, rounds, names, limit):
    """Prints the table; true if every ratio is within the limit and every row has all its runs."""
    values = {}
    for run in runs:
        for row, value in run["rows"].items():
            values.setdefault(row, {"old": [], "new": []})[run["side"]].append(value)
    good = True
    print(f"{'benchmark':48} {'old':>10} {'new':>10} {'new/old':>8}")
    for row, sides in values.items():
        if row.split()[0] not in names:
            continue
        if min(len(sides["old"]), len(sides["new"])) < rounds:
            good = False
            print(f"{row:48} measured on {len(sides['old'])} and {len(sides['new'])} of {rounds}")
            continue
        old, new = statistics.median(sides["old"]), statistics.median(sides["new"])
        ratio = new / old
        slow = ratio > limit
        good = good and not slow
        print(f"{row:48} {old:10.5g} {new:10.5g} {ratio:8.4f}{'  SLOWER' if slow else ''}")
    return good and bool(values)


def main():
    if os.environ.get("CASES") == "list":
        print("\n".join(CASES))
        return 0
    old, new, limit_s = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3]
    deadline = time.monotonic() + float(limit_s)
    rounds, limit = int(os.environ.get("ROUNDS", 5)), float(os.environ.get("LIMIT", 1.03))
    names = os.environ.get("CASES", "").split() or list(CASES)
    for name in names:
        if name not in CASES:
            raise SystemExit(f"no case '{name}'; CASES=list prints them")
    folders = {"old": old, "new": new}
    state = os.environ.get("STATE") or os.path.join(
        new, f"compare-{identity(old)}-{identity(new)}.jsonl")
    runs = load(state)
    longest = {}
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "deck.toml"), "w", encoding="utf-8") as deck:
            deck.write(GW_DECK)
        for turn in range(rounds):
            for name in names:
                for side, folder in folders.items():
                    if any((r["case"], r["turn"], r["side"]) == (name, turn, side) for r in runs):
                        continue
                    if time.monotonic() + longest.get(name, 0.0) > deadline:
                        report(runs, rounds, names, limit)
                        print("time is up; the same call goes on")
                        return 75
                    began = time.monotonic()
                    run = {"case": name, "turn": turn, "side": side,
                           "rows": measure(folder, name, scratch)}
                    longest[name] = max(longest.get(name, 0.0), time.monotonic() - began)
                    runs.append(run)
                    with open(state, "a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")
    return 0 if report(runs, rounds, names, limit) else 1


if __name__ == "__main__":
    sys.exit(main())
