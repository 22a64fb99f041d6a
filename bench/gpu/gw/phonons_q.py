"""Runs the decks of couplings at four wave vectors and prints their table (phonons_q.sh)."""

import os
import pathlib
import subprocess
import sys
import time

GOAL_S = {"hl-gpp": 60.0, "contour": 600.0}
DECKS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "gw"
NAMES = {
    (0.25, 0.25, 0.25): "Λ",
    (0.5, 0.5, 0.5): "L",
    (0.5, 0.5, 0.0): "X",
    (0.0, 0.0, 0.0): "Γ",
}
TOP = 4  # the highest valence band
SMALLEST_MEV = 0.01  # couplings below are forbidden by symmetry


def rows_of(path, has_q):
    """Yields (q, modes, energy, bras, kets, g, sigma, gw, enhancement) of each line."""
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        words = line.split()
        q = tuple(float(x) for x in words[:3]) if has_q else (0.0, 0.0, 0.0)
        rest = words[3:] if has_q else words
        bands = [int(x) for x in rest[5:9]]
        numbers = [float(x) for x in rest[9:]]
        yield q, rest[0], float(rest[1]), bands[:2], bands[2:], numbers


def table_of(folder):
    """Prints the couplings from the valence top to the highest valence multiplet at k + q."""
    for path, has_q in ((folder / "modes.dat", False), (folder / "modes_at_q.dat", True)):
        for q, modes, energy, bras, kets, numbers in rows_of(path, has_q):
            if not (bras[0] <= TOP <= bras[1] and kets[0] <= TOP <= kets[1]):
                continue
            g, sigma, gw, enhancement = numbers[0], numbers[1], numbers[4], numbers[5]
            if g < SMALLEST_MEV:
                continue
            print(
                f"| {NAMES[q]} | {modes.replace(',', ', ')} | {energy:.2f} | {g:.2f} | "
                f"{sigma:.2f} | {gw:.2f} | {enhancement:.3f} |"
            )


def main():
    engine, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    place = pathlib.Path(os.environ.get("FOLDER", pathlib.Path(engine).parent / "phonons_q"))
    missed = False
    for crystal in os.environ.get("CRYSTALS", "silicon germanium gaas").split():
        for method in os.environ.get("METHODS", "hl-gpp contour").split():
            folder = place / f"{crystal}-{method}"
            command = [engine, "run", "gw", str(DECKS / f"{crystal}-phonons-q.toml"), "--device"]
            command += [device, "--quiet", "--set", f"sigma.method={method}", "-d", str(folder)]
            begin = time.monotonic()
            status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
            seconds = time.monotonic() - begin
            print(f"\n{crystal}, {method}: {seconds:.1f} s (goal {GOAL_S[method]:.0f} s)")
            missed = missed or status != 0 or seconds > GOAL_S[method]
            if status != 0:
                print(f"the job ended with status {status}")
                continue
            print("| q | modes | ħω (meV) | g (meV) | ⟨∂Σ⟩ (meV) | g^GW (meV) | g^GW/g |")
            print("| --- | --- | --- | --- | --- | --- | --- |")
            table_of(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
