"""Shared parts of the Python tests: results, a server and a worker."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

SOURCE = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("QUASI_BINARY_DIR", SOURCE / "build/release/bin"))


def _dataset(file: h5py.File, path: str, values: object, units: str = "1") -> None:
    file[path] = np.asarray(values)
    file[path].attrs["units"] = units


@pytest.fixture(scope="session")
def made_thermal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small result of kind thermal whose numbers are known in closed form: κ = 3e4/T."""
    folder = tmp_path_factory.mktemp("made_thermal")
    temperature = np.array([100.0, 200.0, 300.0, 600.0])
    kappa = (3e4 / temperature)[:, None, None] * np.eye(3)
    omega = np.linspace(1.0, 60.0, 60).reshape(10, 6)
    with h5py.File(folder / "result.h5", "w") as file:
        file.attrs["kind"] = "thermal"
        _dataset(file, "kappa/temperature", temperature, "K")
        _dataset(file, "kappa/rta", 0.95 * kappa, "W/(m K)")
        _dataset(file, "kappa/converged", kappa, "W/(m K)")
        _dataset(file, "mesh/points_per_axis", [5, 2, 1])
        _dataset(file, "mesh/irreducible", np.arange(10, dtype=np.int32))
        _dataset(file, "modes/omega", omega, "rad/ps")
        _dataset(file, "rates/isotope", 1e-6 * omega**4, "1/ps")
        _dataset(file, "rates/3ph_absorption", 1e-3 * np.stack([omega**2] * 4), "1/ps")
        _dataset(file, "density_of_states/omega", np.linspace(0.0, 60.0, 30), "rad/ps")
        _dataset(file, "density_of_states/total", np.linspace(0.0, 60.0, 30) ** 2, "ps")
        _dataset(file, "density_of_states/by_atom",
                 np.stack([np.linspace(0.0, 60.0, 30) ** 2 / 2] * 2, axis=1), "ps")
    return folder


def run_engine(kind: str, deck: Path, folder: Path, *settings: str) -> Path:
    """Runs quasi-engine on the CPU; the folder holds the result afterwards."""
    words = [str(BINARIES / "quasi-engine"), "run", kind, str(deck), "-d", str(folder),
             "--device", "cpu", "--quiet"]
    for setting in settings:
        words += ["--set", setting]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return folder


@pytest.fixture(scope="session")
def silicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped silicon deck on a small mesh at three temperatures."""
    return run_engine("thermal", SOURCE / "examples/thermal/silicon",
                      tmp_path_factory.mktemp("silicon"), "ngrid=6,6,6", "T=200,300,400")


@pytest.fixture(scope="session")
def transistor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped equilibrium of a transistor."""
    return run_engine("mosfet", SOURCE / "examples/mosfet/equilibrium.toml",
                      tmp_path_factory.mktemp("transistor"))


@pytest.fixture(scope="session")
def quasiparticles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Silicon's self-energy with a path through the zone and spectra."""
    folder = tmp_path_factory.mktemp("quasiparticles")
    deck = folder / "deck.toml"
    text = (SOURCE / "examples/gw/silicon-epm.toml").read_text()
    text = text.replace("cutoff_ry = 11.0", "cutoff_ry = 9.0").replace(
        "cutoff_ry = 7.0", "cutoff_ry = 5.0").replace("kpoints", "# kpoints")
    deck.write_text(text + "band_path = [[0.5, 0.5, 0.5], [0, 0, 0], [0.5, 0.5, 0]]\n"
                    "band_path_points = 10\nspectrum_window_ev = 4.0\n")
    return run_engine("gw", deck, folder / "out")


def run_transistor(folder: Path, mesh: str, rest: str) -> Path:
    """Runs a deck of this mesh, and returns its folder."""
    deck = folder / "deck.toml"
    deck.write_text(f'kind = "mosfet"\nparameters = "paper"\n[mesh]\n{mesh}\n{rest}\n')
    return run_engine("mosfet", deck, folder / "out")


@pytest.fixture(scope="session")
def steady_transistor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bias points of the beam scheme on a tiny mesh, with every field."""
    mesh = "nx = 33\nnz = 17\nsubbands = 1\ndh_ev = 0.05\nnkappa = 4"
    return run_transistor(tmp_path_factory.mktemp("beam"), mesh,
                          "[bias]\nvgs = [0.4, 0.5]\nvds = 0.1\n"
                          '[run]\nmode = "steady"\nscheme = "beam"')


@pytest.fixture(scope="session")
def full_matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The matrix of the self-energy between the outer states, at two points."""
    deck = tmp_path_factory.mktemp("matrix") / "deck.toml"
    text = (SOURCE / "examples/gw/silicon-epm.toml").read_text()
    text = text.replace("cutoff_ry = 11.0", "cutoff_ry = 9.0").replace(
        "cutoff_ry = 7.0", "cutoff_ry = 4.0").replace("[4, 4, 4]", "[2, 2, 2]")
    deck.write_text(text + "full_matrix = true\n")
    return run_engine("gw", deck, deck.parent / "out", "convergence_study=true")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server with one worker, both real processes."""
    folder = tmp_path_factory.mktemp("service")
    address = f"unix:{folder}/server.sock"
    logs = (folder / "server.log").open("w")
    processes = [
        subprocess.Popen([BINARIES / "quasi-server", "--data-directory", folder / "server",
                          "--listen", address], stdout=logs, stderr=logs),
        subprocess.Popen([BINARIES / "quasi-worker", "--server", address,
                          "--state-directory", folder / "worker"], stdout=logs, stderr=logs),
    ]
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        probe = subprocess.run([BINARIES / "quasi", "--server", address, "devices"],
                               capture_output=True, check=False)
        if probe.returncode == 0:
            break
        time.sleep(0.1)
    yield address
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            # A drain would wait for a computing engine, and no test needs its result.
            process.kill()
            process.wait()
