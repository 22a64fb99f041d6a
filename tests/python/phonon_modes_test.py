"""Couplings of electrons and phonons: a thermal result feeds a job of kind gw."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from conftest import SOURCE, run_engine

DECK = SOURCE / "examples/gw/silicon-phonons.toml"
HBAR_MEV_PS = 0.6582119569
RYDBERG_EV = 13.605693123
ELECTRONS_PER_AMU = 1822.888486


@pytest.fixture(scope="module", params=["thermal", "example"])
def coupled(request: pytest.FixtureRequest, silicon: Path,
            tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped deck with the modes of a thermal job, and with its own."""
    folder = tmp_path_factory.mktemp("coupled")
    if request.param == "example":
        return run_engine("gw", DECK, folder)
    return run_engine("gw", DECK, folder, f"perturbation.modes={silicon / 'result.h5'}")


def test_modes_are_those_of_the_thermal_result(coupled: Path, silicon: Path) -> None:
    """Energies in meV; three rigid shifts and a threefold optical mode near the Raman line."""
    with h5py.File(coupled / "result.h5") as file, h5py.File(silicon / "result.h5") as thermal:
        energy = file["modes/energy"][()]
        if abs(energy[5] - 64.4) > 1e-9:
            np.testing.assert_allclose(energy, thermal["modes/omega"][0] * HBAR_MEV_PS, rtol=1e-9)
        np.testing.assert_array_equal(file["modes/acoustic"], [1, 1, 1, 0, 0, 0])
        np.testing.assert_array_equal(file["modes/first_of_set"], [1, 1, 1, 4, 4, 4])
        assert 60.0 < energy[5] < 68.0


def test_elements_are_those_of_the_atoms(coupled: Path) -> None:
    """g of the optical modes by numpy from the Cartesian matrices, meV. 1e-6: energy units."""
    with h5py.File(coupled / "result.h5") as file:
        def matrix(path: str) -> np.ndarray:
            return file[path][()] @ np.array([1.0, 1.0j])
        energy_ev = file["modes/energy"][3:].reshape(3, 1) / 1e3
        mass = ELECTRONS_PER_AMU * np.repeat(file["modes/mass"][()], 3)
        amplitude = np.sqrt(RYDBERG_EV / (mass * energy_ev))
        for name in ("mean_field", "sigma"):
            g = np.einsum("mp,pkij->mkij", amplitude * matrix("modes/eigenvector")[3:],
                          matrix(f"perturbations/{name}")) * 1e3
            np.testing.assert_allclose(matrix(f"modes/{name}")[3:], g, rtol=1e-6, atol=1e-6)
            assert np.isnan(file[f"modes/{name}"][:3]).all()
        # Γ: the valence top, bands 2 to 4, is threefold.
        g = matrix("modes/mean_field")[3:, 0, 1:4, 1:4]
        size = np.sqrt((np.abs(g) ** 2).mean())
        np.testing.assert_allclose(file["modes/mean_field_size"][3:, 0, 1:4, 1:4],
                                   np.full((3, 3, 3), size), rtol=1e-9)
        assert size > 10.0
        # Traces of optical modes over a multiplet vanish at Γ by symmetry.
        assert np.abs(np.trace(g, axis1=1, axis2=2)).max() < 1e-6
