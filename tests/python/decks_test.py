"""Decks from objects of other programs, against the real packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import quasi
from conftest import BINARIES, SOURCE
from quasi import decks
from quasi.thermal import RAD_PS_PER_THZ, ThermalResult


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("PATH", f"{BINARIES}:{os.environ['PATH']}")


def test_kappa_in_one_line(engine: None) -> None:
    tensor = decks.kappa(SOURCE / "examples/thermal/silicon", 300, (4, 4, 4))
    assert tensor.shape == (3, 3)
    assert np.allclose(tensor, tensor[0, 0] * np.eye(3), atol=1e-6 * tensor[0, 0])


def test_a_refused_deck_raises_with_the_sentence(engine: None, tmp_path: Path) -> None:
    with pytest.raises(quasi.ResultError, match="CONTROL"):
        decks.run("thermal", tmp_path)


def test_poscar_from_ase(tmp_path: Path) -> None:
    from ase.build import bulk
    from ase.io import read

    atoms = bulk("Si", "diamond", 5.43)
    decks.write_poscar(atoms, tmp_path / "POSCAR")
    again = read(tmp_path / "POSCAR")
    assert np.allclose(again.cell, atoms.cell)
    assert np.allclose(again.get_scaled_positions(), atoms.get_scaled_positions())


def chain_phonopy() -> object:
    """Silicon with springs between neighbours only, as a phonopy object."""
    import phonopy
    from ase.build import bulk
    from phonopy.structure.atoms import PhonopyAtoms

    atoms = bulk("Si", "diamond", 5.43)
    cell = PhonopyAtoms(symbols=atoms.get_chemical_symbols(), cell=atoms.cell[:],
                        scaled_positions=atoms.get_scaled_positions())
    phonon = phonopy.Phonopy(cell, supercell_matrix=np.diag([2, 2, 2]),
                             primitive_matrix=np.eye(3))
    supercell = phonon.supercell
    n = len(supercell)
    constants = np.zeros((n, n, 3, 3))
    scaled = supercell.scaled_positions
    for i in range(n):
        for j in range(n):
            step = scaled[j] - scaled[i]
            for image in np.ndindex(3, 3, 3):
                r = (step + np.array(image) - 1.0) @ supercell.cell
                length = np.linalg.norm(r)
                if 0.1 < length < 2.6:
                    u = r / length
                    block = 8.0 * np.outer(u, u) + 0.5 * (np.eye(3) - np.outer(u, u))
                    constants[i, j] -= block
                    constants[i, i] += block
    phonon.force_constants = constants
    return phonon


def test_frequencies_of_a_phonopy_object(engine: None, tmp_path: Path) -> None:
    """Same constants, same frequencies: phonopy's own on the mesh points, to 1e-4 THz (units of
    both programs differ in the eighth digit)."""
    phonon = chain_phonopy()
    folder = decks.from_phonopy(phonon, tmp_path / "deck")
    result = decks.run("thermal", folder, tmp_path / "out", ngrid=[4, 4, 4], T=300,
                       onlyharmonic=True, isotopes=False)
    assert isinstance(result, ThermalResult)
    phonon.run_qpoints(np.asarray(result.qpoint))  # type: ignore[attr-defined]
    theirs = phonon.get_qpoints_dict()["frequencies"]  # type: ignore[attr-defined]
    ours = np.sort(np.asarray(result.omega) / RAD_PS_PER_THZ, axis=1)
    moving = np.abs(theirs) > 1e-3
    assert np.abs(ours - np.sort(theirs, axis=1))[moving].max() < 1e-4


def test_a_phonopy_object_without_constants_says_so(tmp_path: Path) -> None:
    import phonopy
    from phonopy.structure.atoms import PhonopyAtoms

    cell = PhonopyAtoms(symbols=["Ar"], cell=5.0 * np.eye(3), scaled_positions=[[0, 0, 0]])
    with pytest.raises(ValueError, match="no force constants"):
        decks.from_phonopy(phonopy.Phonopy(cell, np.eye(3)), tmp_path)
