"""Scaling of single jobs over the GPUs of one host; called by four.sh, which describes it."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gw"))
from summary_numbers import results  # noqa: E402

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
SMALL = os.environ.get("SIZE") == "small"
RUN_LIMIT_S = 540  # longest run of one job
FIRST_RUN_S = 60   # assumed duration of a run that was not measured yet

GW_DECK = """kind = "gw"
checkpoint_interval_s = 1e6
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
GW_VALUES = (
    {"supercell": [1, 1, 1], "wave_ry": 6.0, "bands": 60, "screened_ry": 3.0, "band_min": 15,
     "band_max": 18} if SMALL else
    {"supercell": [3, 3, 3], "wave_ry": 11.0, "bands": 5500, "screened_ry": 8.0, "band_min": 429,
     "band_max": 436})

# 1,000 atoms of silicon: states around the gap by the operator's eigensolver, all others as
# pseudobands with error bars.
PSEUDOBANDS = """kind = "gw"
checkpoint_interval_s = 1e6
[meanfield]
source = "epm"
cell = "cubic"
supercell = {supercell}
cutoff_ry = {wave_ry}
bands = {bands}
solver = "operator"
[epsilon]
cutoff_ry = {screened_ry}
write = false
[sigma]
band_min = {band_min}
band_max = {band_max}
[pseudobands]
vectors = {vectors}
protected_ry = 0.25
blocks = {blocks}
"""


def thousand_atoms(wave_ry):
    """Values of the deck PSEUDOBANDS."""
    if SMALL:
        return {"supercell": [1, 1, 1], "wave_ry": wave_ry / 2, "bands": 24, "screened_ry": 2.0,
                "band_min": 15, "band_max": 18, "blocks": 3, "vectors": 3}
    return {"supercell": [5, 5, 5], "wave_ry": wave_ry, "bands": 2900,
            "screened_ry": float(os.environ.get("SCREENED_RY", 8.0)), "band_min": 1997,
            "band_max": 2004, "blocks": int(os.environ.get("BLOCKS", 8)),
            "vectors": int(os.environ.get("VECTORS", 24))}


# 64 atoms of silicon: the first order of Σ with plasmon poles in the displacement of every atom
# along every axis, 192 perturbations, between nine states of two multiplets around the gap. W has
# plane waves up to 8 Ry (N_G about 3,300), the exchange up to 11 Ry, and 2,000 of 5,300 bands enter
# the sums.
GWPT_DECK = GW_DECK + "[perturbation]\n"
GWPT_VALUES = (
    {"supercell": [1, 1, 1], "wave_ry": 5.0, "bands": 60, "screened_ry": 2.0, "band_min": 14,
     "band_max": 22} if SMALL else
    {"supercell": [2, 2, 2], "wave_ry": 11.0, "bands": int(os.environ.get("GWPT_BANDS", 2000)),
     "screened_ry": float(os.environ.get("GWPT_SCREENED_RY", 8.0)),
     "band_min": int(os.environ.get("GWPT_BAND_MIN", 126)), "band_max": 134})


def four_phonons(mesh, scale_broad):
    size = 4 if SMALL else mesh
    return ("thermal", "examples/thermal/silicon",
            [f"ngrid={size},{size},{size}", f"scalebroad={scale_broad}", "four_phonon=T",
             "convergence=F", "T=300"], ["scattering_4ph"])


MOSFET_MESH = ["mesh.nx=17", "mesh.nz=17", "mesh.subbands=1", "mesh.dh_ev=0.05", "mesh.nkappa=8",
               "bias.vgs=[0.2, 0.3]", "bias.vds=[0.1]"] if SMALL else []

# Stage: (kind, deck, settings, phases whose seconds are added), goals by number of GPUs. The deck
# is a path with a list of settings, or a text with a table of its values. A goal
# ("ratio", x) is the speed over one GPU, ("seconds", x) the time.
STAGES = {
    "four_phonons_sb1": (four_phonons(16, 1), {2: ("ratio", 1.9), 4: ("ratio", 3.6)}),
    "four_phonons_sb0.1": (four_phonons(16, 0.1), {2: ("ratio", 1.85), 4: ("ratio", 3.3)}),
    "four_phonons_32": (four_phonons(32, 0.1), {4: ("seconds", 20.0)}),
    "gw_216_atoms": (("gw", GW_DECK, GW_VALUES, ["epsilon", "sigma"]),
                     {2: ("ratio", 1.9), 4: ("ratio", 3.2)}),
    "gwpt_64_atoms": (("gw", GWPT_DECK, GWPT_VALUES, ["perturbation"]),
                      {2: ("ratio", 1.85), 4: ("ratio", 3.4)}),
    "mosfet_map": (("mosfet", "examples/mosfet/iv_beam_standard.toml", MOSFET_MESH, None),
                   {1: ("seconds", 20.0), 2: ("seconds", 11.0), 4: ("seconds", 6.0)}),
    "gw_1000_atoms": (("gw", PSEUDOBANDS, thousand_atoms(11.0), None), {4: ("seconds", 240.0)}),
    "gw_1000_atoms_16_ry": (("gw", PSEUDOBANDS, thousand_atoms(16.0), None),
                            {4: ("seconds", 360.0)}),
}
# Stages that are measured on the largest number of GPUs alone and once, unless COUNTS or ROUNDS say
# otherwise: one GPU has not the memory, or takes longer than a run may.
LARGE = ("gw_1000_atoms", "gw_1000_atoms_16_ry")


def devices(count):
    if os.environ.get("DEVICE") == "cpu":
        return "cpu"
    return ",".join(f"cuda:{index}" for index in range(count))


def rounds(stage):
    return int(os.environ.get("ROUNDS", 1 if stage in LARGE else 2))


def counts(stage):
    """The numbers of GPUs to use for a stage: those of COUNTS that this host has."""
    wanted = [int(word) for word in os.environ.get("COUNTS", "1 2 4").split()]
    if os.environ.get("DEVICE") == "cpu":
        return [1]
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    wanted = [count for count in wanted if count <= len(listed)]
    return wanted[-1:] if stage in LARGE and "COUNTS" not in os.environ else wanted


def measure(engine, stage, count, scratch):
    """Runs one job; returns its seconds and a digest of its numbers and of result.h5."""
    (kind, deck, settings, phases), _ = STAGES[stage]
    if isinstance(settings, dict):
        text = deck.format(**settings)
        deck, settings = os.path.join(scratch, "deck.toml"), []
        with open(deck, "w", encoding="utf-8") as file:
            file.write(text)
    out = tempfile.mkdtemp(dir=scratch)
    words = [engine, "run", kind, deck, "-d", out, "--device", devices(count), "--json", "--quiet"]
    print(f"{stage} on {count}", file=sys.stderr, flush=True)
    for setting in settings:
        words += ["--set", setting]
    began = time.monotonic()
    done = subprocess.run(words, cwd=TREE, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"),
                          text=True, capture_output=True, timeout=RUN_LIMIT_S, check=False)
    wall = time.monotonic() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\nended with {done.returncode}:\n"
                         + (done.stderr or done.stdout)[-2000:])
    summary = json.loads(done.stdout)["summary"]
    seconds = wall if phases is None else sum(summary["seconds"][phase] for phase in phases)
    text = "\n".join(results(summary))
    digest = hashlib.sha256(text.encode())
    with open(os.path.join(out, "result.h5"), "rb") as file:
        digest.update(file.read())
    return {"stage": stage, "gpus": count, "seconds": seconds, "wall": wall,
            "digest": digest.hexdigest()[:12], "phases": summary.get("seconds", {})}


def load(state):
    if not os.path.exists(state):
        return []
    with open(state, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def table(measured):
    """Prints a row for each stage and number of GPUs; true if digests agree and goals are met."""
    good = True
    print(f"{'stage':20} {'GPUs':>4} {'seconds':>9} {'ratio':>6} {'goal':>14}  bits")
    for stage, (_, goals) in STAGES.items():
        rows = [one for one in measured if one["stage"] == stage]
        digests = {one["digest"] for one in rows}
        best = {count: min(one["seconds"] for one in rows if one["gpus"] == count)
                for count in sorted({one["gpus"] for one in rows})}
        for count, seconds in best.items():
            ratio = best[1] / seconds if 1 in best else None
            goal = goals.get(count)
            met = goal is None or (seconds <= goal[1] if goal[0] == "seconds"
                                   else ratio is not None and ratio >= goal[1])
            words = "" if goal is None else (
                ("<= %g s" if goal[0] == "seconds" else ">= %g times") % goal[1])
            same = "equal" if len(digests) == 1 else "DIFFERENT"
            good = good and (met or SMALL) and len(digests) == 1
            print(f"{stage:20} {count:4} {seconds:9.3f} "
                  f"{'' if ratio is None else format(ratio, '.2f'):>6} {words:>14}  "
                  f"{same}{'' if met else ', goal not reached'}")
    for one in measured:
        steps = {name: value for name, value in one.get("phases", {}).items() if value >= 0.005}
        if one["stage"].startswith("gwpt"):
            print(f"{one['stage']} on {one['gpus']}, seconds (steps: of all devices): "
                  + ", ".join(f"{name} {value:.2f}" for name, value in steps.items()))
    return good


def main():
    names = sys.argv[1:]
    if names == ["list"]:
        print("\n".join(STAGES))
        return 0
    only_table = names == ["table"]
    names = list(STAGES) if not names or only_table else names
    for name in names:
        if name not in STAGES:
            print(f"no stage '{name}'; the stages are {', '.join(STAGES)}", file=sys.stderr)
            return 64
    engine = os.path.join(os.environ.get("BIN", os.path.join(TREE, "build/gpu/bin")),
                          "quasi-engine")
    state = os.environ.get("STATE") or os.path.join(os.path.dirname(engine), "four.jsonl")
    deadline = time.monotonic() + float(os.environ.get("LIMIT_S", 500))
    measured = load(state)
    missing = False
    with tempfile.TemporaryDirectory() as scratch:
        for stage in names:
            for count in counts(stage):
                mine = [one for one in measured if (one["stage"], one["gpus"]) == (stage, count)]
                for _ in range(len(mine), rounds(stage)):
                    walls = [one["wall"] for one in measured if one["stage"] == stage]
                    if only_table or time.monotonic() + max(walls, default=FIRST_RUN_S) > deadline:
                        missing = True
                        break
                    measured.append(measure(engine, stage, count, scratch))
                    with open(state, "a", encoding="utf-8") as file:
                        file.write(json.dumps(measured[-1]) + "\n")
    good = table(measured)
    if missing:
        print(f"rows are missing; the next call with STATE={state} goes on")
        return 75
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
