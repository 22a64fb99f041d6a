"""Every dataset of every kind explains itself by description, units, labels and scales."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import quasi
from conftest import SOURCE, run_engine, run_transistor

SILICON = SOURCE / "examples/thermal/silicon"
RUNS = ("silicon", "silicon_with_everything", "transistor", "steady_transistor", "weno_transistor",
        "drift_diffusion", "mobility", "quasiparticles", "full_matrix")


@pytest.fixture(scope="module")
def silicon_with_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four phonons, wires, a sweep, isotopes and a study of convergence on a tiny mesh."""
    return run_engine("thermal", SILICON, tmp_path_factory.mktemp("everything"), "ngrid=3,3,3",
                      "T=300,400", "four_phonon=T", "nanowires=T", "norientations=1",
                      "orientations(:,1)=1,1,1", "rmax=105", "isotope_factors=0,1",
                      "grain_sizes_nm=50,100")


@pytest.fixture(scope="module")
def weno_transistor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few femtoseconds of the scheme weno, with every field."""
    return run_transistor(
        tmp_path_factory.mktemp("weno"),
        "nx = 33\nnz = 17\nsubbands = 2\nnw = 24\nnphi = 8\nwmax_ev = 0.9",
        "[bias]\nvgs = [0.3, 0.5, 0.6]\nvds = [0.1, 0.3]\n[run]\nt_end_fs = 4.0\n"
        'window_fs = 2.0\nrefresh_steps = 20\nscheme = "weno"\n[output]\nthreshold_a_per_m = 20.0\n'
        'fields = ["potential", "density", "subbands", "velocity", "energy", "psi", "pdf_w"]')


@pytest.fixture(scope="module")
def drift_diffusion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bias points of drift and diffusion."""
    return run_transistor(tmp_path_factory.mktemp("drift"), "nx = 33\nnz = 17\nsubbands = 1",
                  "[bias]\nvgs = 0.5\nvds = [0.05, 0.1]\n"
                  '[run]\nmode = "steady"\ntransport = "drift-diffusion"')


@pytest.fixture(scope="module")
def mobility(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two gate voltages of the shipped film."""
    deck = tmp_path_factory.mktemp("mobility") / "deck.toml"
    text = (SOURCE / "examples/mosfet/mobility.toml").read_text()
    deck.write_text(text.replace(text[text.index("vgs ="):text.index("vds")], "vgs = [0.6, 1.0]\n"))
    return run_engine("mosfet", deck, deck.parent / "out")


def explained(place: Path) -> list[str]:
    """Faults of one result: a dataset without description, units, labels or a scale."""
    faults = []
    with h5py.File(place / "result.h5") as file:
        def look(name: str, item: h5py.Dataset | h5py.Group) -> None:
            if not isinstance(item, h5py.Dataset):
                return
            if not item.attrs.get("description"):
                faults.append(f"{name}: no description")
            if item.dtype.kind in "fiu" and not item.attrs.get("units"):
                faults.append(f"{name}: no units")
            if h5py.h5ds.is_scale(item.id):
                return
            for number, axis in enumerate(item.dims):
                if not axis.label:
                    faults.append(f"{name}: axis {number} of {item.shape} has no label")
                elif len(axis) == 0 and axis.label not in NO_SCALE:
                    faults.append(f"{name}: axis {axis.label} has no scale")
                elif len(axis) and axis[0].shape != (item.shape[number],):
                    faults.append(f"{name}: scale of {axis.label} has another length")
        file.visititems(look)
    return faults


#: Axes whose length differs among the datasets of a file, so that they have a label alone.
NO_SCALE = {"row", "column", "iteration", "energy", "band", "band_2", "shared_state", "setting",
            "entry"}


@pytest.mark.parametrize("name", RUNS)
def test_every_dataset_explains_itself(name: str, request: pytest.FixtureRequest) -> None:
    assert explained(request.getfixturevalue(name)) == []


def test_a_dataset_without_a_row_is_found(silicon: Path, tmp_path: Path) -> None:
    copy = tmp_path / "result.h5"
    copy.write_bytes((silicon / "result.h5").read_bytes())
    with h5py.File(copy, "a") as file:
        file["kappa/new"] = np.zeros((3, 3))
    assert explained(tmp_path) == [
        "kappa/new: no description", "kappa/new: no units",
        "kappa/new: axis 0 of (3, 3) has no label", "kappa/new: axis 1 of (3, 3) has no label"]


def test_coordinates_are_those_of_the_axes(silicon: Path, quasiparticles: Path) -> None:
    with h5py.File(silicon / "result.h5") as file:
        rate = file["rates/3ph_absorption"]
        assert [axis.label for axis in rate.dims] == ["temperature", "irreducible_q", "branch"]
        assert list(rate.dims[0][0]) == [200.0, 300.0, 400.0]
        assert np.array_equal(file["mesh/irreducible_qpoint"][:],
                              file["mesh/qpoint"][:][rate.dims[1][0][:]])
        assert list(file["crystal/atom"].asstr()) == ["Si1", "Si2"]
        assert list(file["kappa/rta"].dims[1][0].asstr()) == ["x", "y", "z"]
        assert np.array_equal(file["mesh/qpoint"][:], np.asarray(
            quasi.open(silicon)._grid()))  # type: ignore[attr-defined]
    with h5py.File(quasiparticles / "result.h5") as file:
        assert file["quasiparticles/sigma_ev"].dims[0][0].asstr()[0] == "k 0 0 0 spin 1 band 1"


def test_a_dataset_is_described_in_a_line(silicon: Path, made_thermal: Path) -> None:
    line = quasi.open(silicon).describe("modes/velocity")
    assert line == "group velocities on the whole mesh, [q][branch][cartesian], km/s"
    assert quasi.open(made_thermal).describe("kappa/rta") == "W/(m K)"


def test_iterations_beyond_the_last_are_nan(silicon: Path) -> None:
    result = quasi.open(silicon)
    history = np.asarray(result["by_temperature/kappa_by_iteration"])
    lengths = [int(np.isfinite(history[t, :, 0, 0]).sum()) for t in range(len(history))]
    assert max(lengths) == history.shape[1]
    for t, length in enumerate(lengths):
        assert np.isfinite(history[t, :length]).all() and np.isnan(history[t, length:]).all()
        # The last iterate is the solution to the tolerance of the solver.
        assert np.allclose(history[t, length - 1], np.asarray(result.kappa)[t], rtol=1e-4)
