#!/usr/bin/env python3
"""Computes the weights of three-phonon processes by the tetrahedra of phonopy, which are those of
phono3py.

usage: phonopy_tetrahedra.py MESH.json WEIGHTS.txt

MESH.json holds the steps of the mesh as rows, its divisions, omega[point][branch] with the first
axis fastest, the point q0 and energies w0. WEIGHTS.txt gets one number a line: for absorption, then
emission, for q', for branches of lambda' and lambda'', for w0, the weight of
delta(w0 +- w' - w'').
"""
import json
import pathlib
import sys

import numpy as np
from phonopy.structure.tetrahedron_method import TetrahedronMethod


def main():
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    mesh = np.array(given["mesh"])
    omega = np.array(given["omega"])
    method = TetrahedronMethod(np.array(given["steps"]).T, lang="C")
    shifts = np.array(method.get_tetrahedra())

    def number(c):
        c = c % mesh
        return c[..., 0] + mesh[0] * (c[..., 1] + mesh[1] * c[..., 2])

    def coordinates(q):
        return np.array([q % mesh[0], q // mesh[0] % mesh[1], q // (mesh[0] * mesh[1])])

    energy = np.array(given["energy"], dtype="double")
    c0 = coordinates(given["q0"])
    branches = range(omega.shape[1])
    with open(sys.argv[2], "w") as out:
        for sign in (1, -1):
            for q1 in range(omega.shape[0]):
                corners = coordinates(q1) + shifts
                first, second = number(corners), number(c0 + sign * corners)
                for s1 in branches:
                    for s2 in branches:
                        f = omega[second, s2] - sign * omega[first, s1]
                        method.set_tetrahedra_omegas(np.array(f, dtype="double", order="C"))
                        method.run(energy)
                        for weight in method.get_integration_weight():
                            out.write(f"{weight:.17g}\n")


if __name__ == "__main__":
    main()
