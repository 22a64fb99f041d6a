"""An array with units."""

from __future__ import annotations

from typing import Any

import numpy as np


class Quantity(np.ndarray):
    """A numpy array with ``units``, as the result file states them ("1": dimensionless).

    Arithmetic gives plain arrays, because the units of the outcome are not tracked.

    >>> kappa = Quantity([1.0, 2.0], "W/(m K)")
    >>> kappa.units
    'W/(m K)'
    >>> (kappa * 2).tolist()
    [2.0, 4.0]
    """

    units: str

    def __new__(cls, values: Any, units: str = "1") -> "Quantity":
        array = np.asarray(values).view(cls)
        array.units = units
        return array

    def __array_finalize__(self, source: Any) -> None:
        self.units = getattr(source, "units", "1")

    def __array_wrap__(self, out: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(out)
        return plain[()] if plain.ndim == 0 else plain

    def __repr__(self) -> str:
        return f"Quantity({np.array_str(np.asarray(self))}, {self.units!r})"
