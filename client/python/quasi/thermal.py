"""Results of lattice thermal conductivity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quasi.quantity import Quantity
from quasi.result import Result, ResultError

if TYPE_CHECKING:
    import pandas

RAD_PS_PER_THZ = 2.0 * np.pi


#: Names that stand elsewhere than below ``by_temperature``.
_BY_TEMPERATURE = {
    "temperature": "kappa/temperature",
    "kappa": "kappa/converged",
    "kappa_rta": "kappa/rta",
    "kappa_coherence": "kappa/coherence",
}


class ThermalResult(Result):
    """Lattice thermal conductivity, rates, modes and spectra.

    Arrays over modes are [q][branch]; tensors end in [3][3]; arrays over temperatures begin
    with [T].
    """

    kind = "thermal"

    @property
    def temperature(self) -> Quantity:
        """Temperatures [T] in K."""
        return self["kappa/temperature"]

    @property
    def kappa(self) -> Quantity:
        """κ [T][3][3] in W/(m K) of the iterated Boltzmann equation; of the relaxation-time
        approximation where nothing was iterated."""
        return self["kappa/converged" if "kappa/converged" in self else "kappa/rta"]

    @property
    def kappa_rta(self) -> Quantity:
        """κ [T][3][3] in W/(m K) in the relaxation-time approximation."""
        return self["kappa/rta"]

    @property
    def kappa_coherence(self) -> Quantity:
        """Wigner's contribution of coherences between branches, [T][3][3] in W/(m K)."""
        return self["kappa/coherence"]

    @property
    def omega(self) -> Quantity:
        """Angular frequencies [q][branch] of the whole mesh in rad/ps."""
        return self["modes/omega"]

    @property
    def frequency(self) -> Quantity:
        """Frequencies [q][branch] of the whole mesh in THz."""
        return Quantity(np.asarray(self.omega) / RAD_PS_PER_THZ, "THz")

    @property
    def velocity(self) -> Quantity:
        """Group velocities [q][branch][3] of the whole mesh in km/s."""
        return self["modes/velocity"]

    @property
    def mesh(self) -> Quantity:
        """Points of the mesh along each axis."""
        return self["mesh/points_per_axis"]

    @property
    def qpoint(self) -> Quantity:
        """Reduced coordinates [q][3] of the whole mesh; the first axis runs fastest."""
        return self["mesh/qpoint"] if "mesh/qpoint" in self else self._grid()

    def _grid(self) -> Quantity:
        """The coordinates of ``qpoint`` from the divisions of the mesh, for older results."""
        n1, n2, n3 = (int(n) for n in self.mesh)
        index = np.arange(n1 * n2 * n3)
        grid = np.stack([index % n1 / n1, index // n1 % n2 / n2, index // (n1 * n2) / n3], axis=1)
        return Quantity(grid, "1")

    @property
    def irreducible(self) -> Quantity:
        """Numbers [i] of the irreducible points in the whole mesh; rates are given on these."""
        return self["mesh/irreducible"]

    def at(self, temperature_k: float, name: str) -> Quantity:
        """Reads a dataset of ``by_temperature`` at one temperature: ``at(300, "rate_total")``.

        Raises ``ResultError`` where that temperature was not calculated.
        """
        match = np.flatnonzero(np.isclose(np.asarray(self.temperature), temperature_k))
        if match.size == 0:
            known = ", ".join(f"{t:g}" for t in self.temperature)
            raise ResultError(f"{self.path} has no temperature {temperature_k:g} K; it has {known}")
        own = f"temperature_{match[0]:03d}"  # a group a temperature, before version 3 of the format
        if f"{own}/{name}" in self:
            return self[f"{own}/{name}"]
        path = _BY_TEMPERATURE.get(name, f"by_temperature/{name}")
        every = self[path]
        return Quantity(np.asarray(every)[match[0]], every.units)

    def rates(self, temperature_k: float) -> dict[str, Quantity]:
        """Scattering rates [irreducible q][branch] in 1/ps by channel."""
        index = int(np.argmin(np.abs(np.asarray(self.temperature) - temperature_k)))
        found: dict[str, Quantity] = {}
        three = [n for n in ("rates/3ph_absorption", "rates/3ph_emission") if n in self]
        if three:
            total = sum(np.asarray(self[name])[index] for name in three)
            found["three phonons"] = Quantity(total, "1/ps")
        if "rates/4ph_total" in self:
            found["four phonons"] = Quantity(np.asarray(self["rates/4ph_total"])[index], "1/ps")
        if "rates/isotope" in self:
            found["isotopes"] = self["rates/isotope"]
        if "rates/boundary" in self:
            found["boundaries"] = self["rates/boundary"]
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """κ(T): temperature, the diagonal of κ and of its contributions, one row a temperature."""
        import pandas

        columns = {"temperature (K)": np.asarray(self.temperature)}
        parts = {"rta": "kappa/rta", "bte": "kappa/converged", "coherence": "kappa/coherence"}
        for name, path in parts.items():
            if path not in self:
                continue
            tensor = np.asarray(self[path])
            for axis, label in enumerate("xyz"):
                columns[f"kappa {name} {label}{label} (W/(m K))"] = tensor[:, axis, axis]
        return pandas.DataFrame(columns)
