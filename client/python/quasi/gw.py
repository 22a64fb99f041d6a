"""Results of quasiparticle energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quasi.quantity import Quantity
from quasi.result import Result, ResultError

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class BandPath:
    """Bands along a path in the zone.

    ``distance`` is [point] in 1/Bohr, ``k`` [point][3] in reduced coordinates, the energies are
    [band][point] in eV.
    """

    distance: np.ndarray
    k: np.ndarray
    mean_field: np.ndarray
    quasiparticle: np.ndarray


@dataclass(frozen=True)
class StateSpectrum:
    """Σ(E) and A(E) of one state: energies in eV, Σ complex in eV, A in 1/eV."""

    label: str
    energy: np.ndarray
    sigma: np.ndarray
    spectral: np.ndarray


def read_blocks(text: str) -> list[tuple[list[str], np.ndarray]]:
    """Blocks of a text table: (comment lines before it, rows); two blank lines part blocks."""
    blocks: list[tuple[list[str], np.ndarray]] = []
    comments: list[str] = []
    rows: list[list[float]] = []

    def close() -> None:
        if rows:
            blocks.append((comments.copy(), np.array(rows)))
            comments.clear()
            rows.clear()

    for line in text.splitlines():
        if line.startswith("#"):
            if rows:
                close()
            comments.append(line.lstrip("# ").strip())
        elif not line.strip():
            close()
        else:
            rows.append([float(word) for word in line.split()])
    close()
    return blocks


class GwResult(Result):
    """Dielectric matrices' heads, quasiparticle energies, spectra and bands.

    Rows of ``quasiparticles/*`` are states (k, spin, band).
    """

    kind = "gw"

    @property
    def k(self) -> Quantity:
        """Reduced coordinates [state][3]."""
        return self["quasiparticles/k"]

    @property
    def band(self) -> Quantity:
        """Band numbers [state], from 1."""
        return self["quasiparticles/band"]

    @property
    def mean_field(self) -> Quantity:
        """Mean-field energies [state] in eV."""
        return self["quasiparticles/mean_field_ev"]

    @property
    def quasiparticle(self) -> Quantity:
        """Quasiparticle energies [state] in eV.

        Raises ``ResultError`` where the mean field had no exchange-correlation potential.
        """
        for name in ("quasiparticles/qp1_ev", "quasiparticles/e_qp1_ev"):
            if name in self:
                return self[name]
        raise ResultError(
            f"{self.path} holds Σ but no quasiparticle energies: the mean field has no V_xc"
        )

    @property
    def sigma(self) -> Quantity:
        """Σ(E_mf) [state] in eV."""
        return self["quasiparticles/sigma_ev"]

    def band_path(self) -> BandPath:
        """Bands along ``sigma.band_path``.

        Raises ``ResultError`` where the job had no path.
        """
        file = self.path.with_name("bands.dat")
        if not file.exists():
            raise ResultError(f"{file} does not exist: the job had no sigma.band_path")
        blocks = [rows for _, rows in read_blocks(file.read_text())]
        return BandPath(
            distance=blocks[0][:, 0],
            k=blocks[0][:, 1:4],
            mean_field=np.array([rows[:, 4] for rows in blocks]),
            quasiparticle=np.array([rows[:, 5] for rows in blocks])
            if blocks[0].shape[1] > 5
            else np.full((len(blocks), len(blocks[0])), np.nan),
        )

    def spectra(self) -> list[StateSpectrum]:
        """Σ(E) and A(E) of every state that was asked for.

        Raises ``ResultError`` where the job had no ``sigma.spectrum_window_ev``.
        """
        file = self.path.with_name("spectra.dat")
        if not file.exists():
            raise ResultError(f"{file} does not exist: the job had no sigma.spectrum_window_ev")
        return [
            StateSpectrum(
                label=comments[-1] if comments else "",
                energy=rows[:, 0],
                sigma=rows[:, 1] + 1j * rows[:, 2],
                spectral=rows[:, 3] if rows.shape[1] > 3 else np.full(len(rows), np.nan),
            )
            for comments, rows in read_blocks(file.read_text())
        ]

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a state: k, spin, band and every energy of ``quasiparticles`` with its unit."""
        import pandas

        columns: dict[str, np.ndarray] = {}
        for path in self.datasets():
            if not path.startswith("quasiparticles/"):
                continue
            data = self[path]
            name = path.split("/", 1)[1]
            if data.ndim == 2:
                for axis in range(data.shape[1]):
                    columns[f"{name}{axis + 1}"] = np.asarray(data[:, axis])
            else:
                unit = "" if data.units == "1" else f" ({data.units})"
                columns[name.removesuffix("_ev") + unit] = np.asarray(data)
        return pandas.DataFrame(columns)
