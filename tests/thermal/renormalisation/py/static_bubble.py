#!/usr/bin/env python3
"""Computes the static bubble of a deck by its definition, with loops over all pairs of phonons.

usage: static_bubble.py CRYSTAL.json MATRIX.txt

CRYSTAL.json holds the deck's directory, its primitive vectors in angstrom, masses in amu, the
supercell of FORCE_CONSTANTS_2ND, which is the mesh as well, and the temperature. MATRIX.txt gets
D^B(q) in (rad/ps)^2, one line "re im" for each element, points with the first axis fastest.
"""
import itertools
import json
import pathlib
import sys

import numpy as np

HBAR_J_S = 1.054571817e-34
BOLTZMANN_J_K = 1.380649e-23
ELECTRON_C = 1.602176634e-19
AMU_KG = 1.66053906660e-27
HBAR = HBAR_J_S / AMU_KG * 1e20 * 1e-12  # angstrom^2 amu rad/ps
UNIT = ELECTRON_C / AMU_KG * 1e20 * 1e-24  # (rad/ps)^2 amu of 1 eV/angstrom^2


def second_order(path, supercell):
    """Returns {(atom, other, R): 3x3}, with atom in the origin cell and other in cell R."""
    words = iter(path.read_text().split())
    count = int(next(words))
    cells = list(itertools.product(*(range(n) for n in reversed(supercell))))
    blocks = {}
    for _ in range(count * count):
        p, q = int(next(words)) - 1, int(next(words)) - 1
        block = np.array([float(next(words)) for _ in range(9)]).reshape(3, 3)
        if p % len(cells) == 0:
            blocks[p // len(cells), q // len(cells), cells[q % len(cells)][::-1]] = block
    return blocks


def third_order(path, lattice):
    """Yields atoms, R', R'' and the 3x3x3 tensor of each block."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    at = 1
    for _ in range(int(lines[0][0])):
        cells = [np.rint(np.linalg.solve(lattice.T, [float(x) for x in lines[at + i]]))
                 for i in (1, 2)]
        atoms = [int(x) - 1 for x in lines[at + 3]]
        tensor = np.zeros((3, 3, 3))
        for line in lines[at + 4:at + 31]:
            tensor[tuple(int(x) - 1 for x in line[:3])] = float(line[3])
        yield atoms, cells, tensor
        at += 31


def phonons(blocks, mesh, mass, temperature_k):
    """Returns omega, occupation and eigenvectors (columns) of all points."""
    nb = 3 * len(mass)
    result = []
    for q in points(mesh):
        d = np.zeros((nb, nb), complex)
        for (a, b, cell), block in blocks.items():
            phase = np.exp(2j * np.pi * np.dot(q, cell))
            d[3 * a:3 * a + 3, 3 * b:3 * b + 3] += \
                UNIT * phase * block / np.sqrt(mass[a] * mass[b])
        squares, vectors = np.linalg.eigh(0.5 * (d + d.conj().T))
        if not any(q):
            squares[np.argsort(abs(squares))[:3]] = np.inf
        omega = np.sqrt(squares)
        occupation = np.zeros(nb)
        if temperature_k > 0:
            x = HBAR_J_S * 1e12 * omega / (BOLTZMANN_J_K * temperature_k)
            occupation = 1 / np.expm1(np.minimum(x, 700.0))
        result.append((omega, occupation, vectors))
    return result


def points(mesh):
    return [np.array([i / mesh[0], j / mesh[1], k / mesh[2]])
            for k in range(mesh[2]) for j in range(mesh[1]) for i in range(mesh[0])]


def pair_weights(one, two, temperature_k):
    """[s, s'] of [(1 + n + n')/(w + w') + (n - n')/(w' - w)]/(w w'), without translations."""
    weights = np.zeros((len(one[0]), len(two[0])))
    for s, (w1, n1) in enumerate(zip(one[0], one[1])):
        for t, (w2, n2) in enumerate(zip(two[0], two[1])):
            if np.isinf(w1) or np.isinf(w2):
                continue
            if temperature_k == 0:
                difference = 0.0
            elif abs(w1 - w2) < 1e-6:
                difference = HBAR_J_S * 1e12 / (BOLTZMANN_J_K * temperature_k) * n1 * (n1 + 1)
            else:
                difference = (n1 - n2) / (w2 - w1)
            weights[s, t] = ((1 + n1 + n2) / (w1 + w2) + difference) / (w1 * w2)
    return weights


def main():
    crystal = json.loads(pathlib.Path(sys.argv[1]).read_text())
    deck, mesh = pathlib.Path(crystal["deck"]), crystal["supercell"]
    mass, temperature_k = crystal["mass_amu"], crystal["temperature_k"]
    nb = 3 * len(mass)
    modes = phonons(second_order(deck / "FORCE_CONSTANTS_2ND", mesh), mesh, mass, temperature_k)
    third = list(third_order(deck / "FORCE_CONSTANTS_3RD", np.array(crystal["lattice_angstrom"])))
    tensors = np.zeros((len(third), nb, nb, nb))
    for block, (atoms, _, tensor) in enumerate(third):
        place = tuple(slice(3 * a, 3 * a + 3) for a in atoms)
        tensors[(block,) + place] = tensor / np.sqrt(np.prod([mass[a] for a in atoms]))
    second_cell = np.array([cells[0] for _, cells, _ in third])
    third_cell = np.array([cells[1] for _, cells, _ in third])
    q_points = points(mesh)
    scale = HBAR / 4 * UNIT**2 / len(q_points)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        for q in q_points:
            matrix = np.zeros((nb, nb), complex)
            for c1, q1 in enumerate(q_points):
                sizes = [round(x) for x in np.rint((q + q1) * mesh)]
                c2 = (sizes[2] % mesh[2] * mesh[1] + sizes[1] % mesh[1]) * mesh[0] \
                    + sizes[0] % mesh[0]
                phase = np.exp(2j * np.pi * (second_cell @ q1 - third_cell @ (q + q1)))
                v = np.einsum("xbg,bs,gt->xst", np.tensordot(phase, tensors, 1), modes[c1][2],
                              modes[c2][2].conj(), optimize=True)
                weights = pair_weights(modes[c1], modes[c2], temperature_k)
                matrix -= scale * np.einsum("xst,yst,st->xy", v.conj(), v, weights, optimize=True)
            for x in matrix.flat:
                out.write(f"{x.real:.17e} {x.imag:.17e}\n")


main()
