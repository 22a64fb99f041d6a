#!/usr/bin/env python3
"""Writes the deck silicon-sw in the files of phono3py, as the example silicon-phono3py.

usage: phono3py_deck.py SILICON_SW DIRECTORY

The files are phono3py_disp.yaml (cells), fc2.hdf5 (eV/Å²) and fc3.hdf5 (eV/Å³), compact, for the
cubic supercell of 64 atoms. Needs numpy and h5py.
"""
import itertools
import sys
from pathlib import Path

import h5py
import numpy as np

LATTICE = 2.7154748892026075 * (1 - np.eye(3))  # rows are primitive vectors, Å
ATOMS = np.array([[0.0, 0.0, 0.0], [0.25, 0.25, 0.25]])  # fractional
SUPERCELL = 4 * 2.7154748892026075 * np.eye(3)  # two conventional cells along each axis
MASS_AMU = 28.0855


def supercell_positions():
    """Fractional positions of the 64 atoms in the supercell."""
    found = []
    for atom in range(2):
        for cell in itertools.product(range(-4, 5), repeat=3):
            f = (ATOMS[atom] + cell) @ LATTICE @ np.linalg.inv(SUPERCELL)
            f = np.round(f - np.floor(f + 1e-9), 12)
            if not any(np.allclose(f, g) for g in found):
                found.append(f)
    return np.array(found)


def index_of(position, positions):
    """Index of the supercell's atom at a Cartesian position, up to supercell vectors."""
    d = positions - position @ np.linalg.inv(SUPERCELL)
    return int(np.argmin(np.linalg.norm(d - np.round(d), axis=1)))


def cell_text(name, lattice, positions):
    lines = [f"{name}:", "  lattice:"]
    lines += [f"  - [ {row[0]:.15f}, {row[1]:.15f}, {row[2]:.15f} ]" for row in lattice]
    lines += ["  points:"]
    for p in positions:
        lines += ["  - symbol: Si", f"    coordinates: [ {p[0]:.12f}, {p[1]:.12f}, {p[2]:.12f} ]",
                  f"    mass: {MASS_AMU}"]
    return "\n".join(lines) + "\n"


def second_order(path, positions):
    """fc2[atom][supercell atom][3][3] from pairs of a 3×3×3 supercell."""
    words = iter(path.read_text().split())
    n = int(next(words))
    fc2 = np.zeros((2, len(positions), 3, 3))
    for _ in range(n * n):
        i, j = int(next(words)) - 1, int(next(words)) - 1
        block = np.array([float(next(words)) for _ in range(9)]).reshape(3, 3)
        cells = [np.array([(m % 27) % 3, (m % 27) // 3 % 3, (m % 27) // 9]) for m in (i, j)]
        if np.any(cells[0]) or not np.any(block):
            continue
        # The nearest image of the second atom; the potential reaches second neighbours only.
        shift = (cells[1] + 1) % 3 - 1
        target = (ATOMS[j // 27] + shift) @ LATTICE
        fc2[i // 27, index_of(target, positions)] += block
    return fc2


def third_order(path, positions):
    """fc3[atom][supercell atom][supercell atom][3][3][3] from sparse blocks."""
    words = iter(path.read_text().split())
    fc3 = np.zeros((2, len(positions), len(positions), 3, 3, 3))
    for _ in range(int(next(words))):
        next(words)
        cells = np.array([float(next(words)) for _ in range(6)]).reshape(2, 3)
        atoms = [int(next(words)) - 1 for _ in range(3)]
        j, k = (index_of(cells[s] + ATOMS[atoms[s + 1]] @ LATTICE, positions) for s in range(2))
        for _ in range(27):
            a, b, c = (int(next(words)) - 1 for _ in range(3))
            fc3[atoms[0], j, k, a, b, c] += float(next(words))
    return fc3


def main():
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    positions = supercell_positions()
    origin = [index_of(ATOMS[atom] @ LATTICE, positions) for atom in range(2)]
    (folder / "phono3py_disp.yaml").write_text(
        cell_text("primitive_cell", LATTICE, ATOMS) + cell_text("supercell", SUPERCELL, positions))
    for name, key, values in (
            ("fc2.hdf5", "force_constants",
             second_order(source / "FORCE_CONSTANTS_2ND", positions)),
            ("fc3.hdf5", "fc3", third_order(source / "FORCE_CONSTANTS_3RD", positions))):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset(key, data=values, compression="gzip", compression_opts=9)
            file["p2s_map"] = np.array(origin, dtype=np.int64)


if __name__ == "__main__":
    main()
