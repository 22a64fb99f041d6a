"""Results of a double-gate transistor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import h5py
import numpy as np

from quasi.quantity import Quantity
from quasi.result import Result, ResultError, as_text

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class BiasPoint:
    """One bias point: its voltages in V and where its arrays lie in the file."""

    index: int
    vgs_v: float
    vds_v: float
    status: str


class MosfetResult(Result):
    """Currents, densities, potentials and subbands by bias point."""

    kind = "mosfet"

    @property
    def points(self) -> list[BiasPoint]:
        """Bias points in the order of the file."""
        with h5py.File(self.path) as file:
            if "points" not in file:
                raise ResultError(f"{self.path} holds no bias points")
            found = [
                BiasPoint(
                    int(name),
                    float(group["vgs_v"][()]),
                    float(group["vds_v"][()]),
                    as_text(group["status"][()]) if "status" in group else "",
                )
                for name, group in file["points"].items()
            ]
        return sorted(found, key=lambda point: point.index)

    @property
    def vgs(self) -> Quantity:
        """Gate voltages [point] in V."""
        return Quantity([point.vgs_v for point in self.points], "V")

    @property
    def vds(self) -> Quantity:
        """Drain voltages [point] in V."""
        return Quantity([point.vds_v for point in self.points], "V")

    @property
    def current(self) -> Quantity:
        """Drain current [point] in A/m, which is the same number in µA/µm; NaN without one."""
        values = []
        with h5py.File(self.path) as file:
            for point in self.points:
                numbers = file[f"points/{point.index}/numbers"]
                name = "current_a_per_m"
                values.append(float(numbers[name][()]) if name in numbers else np.nan)
        return Quantity(values, "A/m")

    def at(self, point: int, name: str) -> Quantity:
        """Reads an array of one bias point, e.g. ``at(0, "density")``."""
        return self[f"points/{point}/{name}"]

    def point(self, vgs_v: float, vds_v: float) -> int:
        """Number of the bias point of these voltages.

        Raises ``ResultError`` where it was not calculated.
        """
        for candidate in self.points:
            if abs(candidate.vgs_v - vgs_v) < 1e-9 and abs(candidate.vds_v - vds_v) < 1e-9:
                return candidate.index
        raise ResultError(f"{self.path} has no point V_GS = {vgs_v:g} V, V_DS = {vds_v:g} V")

    def family(self, of: str) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """Curves I(V): ``of="vds"`` gives I(V_DS) for each V_GS, ``of="vgs"`` the transfer
        curves I(V_GS) for each V_DS. Values are (voltages in V, currents in A/m), sorted."""
        if of not in ("vds", "vgs"):
            raise ValueError("of is 'vds' or 'vgs'")
        across = np.asarray(self.vds if of == "vds" else self.vgs)
        along = np.asarray(self.vgs if of == "vds" else self.vds)
        current = np.asarray(self.current)
        curves = {}
        for fixed in np.unique(along):
            mine = np.flatnonzero((along == fixed) & np.isfinite(current))
            order = mine[np.argsort(across[mine])]
            if order.size:
                curves[float(fixed)] = (across[order], current[order])
        return curves

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a bias point: voltages, current and verdict."""
        import pandas

        points = self.points
        return pandas.DataFrame(
            {
                "V_GS (V)": [point.vgs_v for point in points],
                "V_DS (V)": [point.vds_v for point in points],
                "I_D (A/m)": np.asarray(self.current),
                "status": [point.status for point in points],
            }
        )
