"""Decks from the objects that other programs keep crystals in: ASE, phonopy, phono3py."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from quasi.result import Result, ResultError, open_result


def write_poscar(atoms: Any, path: Path) -> None:
    """Writes an ASE ``Atoms`` object as a POSCAR with fractional positions."""
    from ase.io.vasp import write_vasp

    write_vasp(str(path), atoms, direct=True, sort=False, vasp5=True)


def from_phonopy(phonon: Any, directory: Any) -> Path:
    """Writes a deck from a ``phonopy.Phonopy`` object that has force constants.

    The folder then holds ``phonopy_params.yaml`` with cells and second-order constants. Third
    order is added by ``fc3.hdf5`` beside it, as phono3py writes it.

    Raises ``ValueError`` where the object has no force constants.
    """
    if phonon.force_constants is None:
        raise ValueError("the phonopy object has no force constants; call "
                         "produce_force_constants() first")
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    _write_fc2(folder / "fc2.hdf5", np.asarray(phonon.force_constants), phonon.primitive.p2s_map)
    phonon.save(folder / "phonopy_disp.yaml",
                settings={"force_constants": False, "displacements": True,
                          "born_effective_charge": True, "dielectric_constant": True})
    return folder


def _write_fc2(path: Path, constants: np.ndarray, primitive_to_super: Any) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["force_constants"] = constants
        file["p2s_map"] = np.asarray(primitive_to_super, dtype=np.int64)
        file["physical_unit"] = np.array([b"eV/angstrom^2"])


def from_phono3py(phonon: Any, directory: Any) -> Path:
    """Writes a deck from a ``phono3py.Phono3py`` object that has fc2 and fc3."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    if phonon.fc2 is None or phonon.fc3 is None:
        raise ValueError("the phono3py object lacks fc2 or fc3; produce them first")
    import h5py

    _write_fc2(folder / "fc2.hdf5", np.asarray(phonon.fc2), phonon.phonon_primitive.p2s_map)
    with h5py.File(folder / "fc3.hdf5", "w") as file:
        file["fc3"] = np.asarray(phonon.fc3)
        file["p2s_map"] = np.asarray(phonon.primitive.p2s_map, dtype=np.int64)
    phonon.save(folder / "phono3py_disp.yaml")
    return folder


def run(kind: str, deck: Any, directory: Any = None, **settings: Any) -> Result:
    """Runs a job on this machine, without a server, and opens its result.

    Raises ``ResultError`` with the engine's message where it is refused, or where no
    ``quasi-engine`` is on the PATH.
    """
    engine = shutil.which("quasi-engine")
    if engine is None:
        raise ResultError("quasi-engine is not on the PATH; install quasi-worker, or submit the "
                          "job to a server with quasi.Client")
    folder = Path(directory) if directory else Path(tempfile.mkdtemp(prefix="quasi-"))
    words = [engine, "run", kind, str(deck), "-d", str(folder), "--quiet"]
    for key, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words += ["--set", f"{key.replace('__', '.')}={text}"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise ResultError(answer.stderr.strip() or f"quasi-engine ended with {answer.returncode}")
    return open_result(folder)


def kappa(deck: Any, temperature_k: Any = 300, mesh: Any = (12, 12, 12),
          **settings: Any) -> np.ndarray:
    """κ in W/(m K) of a deck in one line: [3][3], or [T][3][3] for several temperatures.

        quasi.decks.kappa("silicon/", temperature_k=[200, 300], mesh=(16, 16, 16))
    """
    temperatures = np.atleast_1d(temperature_k)
    result: Any = run("thermal", deck, T=list(temperatures), ngrid=list(mesh), **settings)
    tensor = np.asarray(result.kappa)
    return tensor[0] if np.ndim(temperature_k) == 0 else tensor
