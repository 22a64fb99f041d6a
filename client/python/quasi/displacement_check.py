"""Compares the first order of Σ with the difference of Σ of two displaced crystals.

Two jobs with ``meanfield.wfn_inner`` give Σ(+h) and Σ(−h) at the same W and outer states. A job
with ``[perturbation]`` gives ⟨∂Σ⟩. Both sides are means over multiplets at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quasi.result import Result, ResultError

SAME_BOHR = 1e-6
DEGENERATE_EV = 1e-6 * 13.605693122994
SAME_K = 1e-6


@dataclass(frozen=True)
class CheckedState:
    """One outer state: the difference quotient and ⟨∂Σ⟩ in eV/Bohr; None: not compared."""

    k: tuple[float, float, float]
    band: int
    mean_field_ev: float
    quotient: float
    first_order: float | None


def displacement(result: Result) -> tuple[int, np.ndarray]:
    """Returns the displaced atom, from 1, and its displacement in Bohr.

    Raises ``ResultError`` where the job has no inner states, or displaces several atoms.
    """
    if "inner_states/atom" not in result:
        raise ResultError(
            f"{result.path} is no job with inner states of a displaced crystal; set "
            "meanfield.wfn_inner"
        )
    atoms = np.asarray(result["inner_states/atom"])
    if len(atoms) != 1:
        raise ResultError(f"{result.path} displaces {len(atoms)} atoms; displace one")
    return int(atoms[0]), np.asarray(result["inner_states/displacement"])[0]


def step(plus: Result, minus: Result) -> tuple[int, str, float]:
    """Returns atom, axis and h in Bohr of two jobs with opposite displacements along an axis."""
    atom, forth = displacement(plus)
    other, back = displacement(minus)
    if atom != other or np.abs(forth + back).max() > 2 * SAME_BOHR:
        raise ResultError(
            f"{minus.path} displaces atom {other} by {back} Bohr, which is not opposite to atom "
            f"{atom} by {forth} in {plus.path}; give jobs with +h and -h"
        )
    axis = int(np.abs(forth).argmax())
    if np.abs(np.delete(forth, axis)).max() > SAME_BOHR:
        raise ResultError(
            f"{plus.path} displaces its atom by {forth} Bohr; displace it along x, y or z"
        )
    if forth[axis] < 0.0:
        raise ResultError(
            f"{plus.path} displaces its atom against the axis; give the job with +h first"
        )
    return atom, "xyz"[axis], float(forth[axis])


def _require_same_states(plus: Result, minus: Result) -> None:
    for name in ("k", "band", "spin", "mean_field_ev"):
        one, two = (np.asarray(r[f"quasiparticles/{name}"]) for r in (plus, minus))
        if one.shape != two.shape or np.abs(one - two).max() > 1e-9:
            raise ResultError(
                f"{plus.path} and {minus.path} differ in quasiparticles/{name}; give both jobs "
                "one WFN and one table [sigma]"
            )
    if np.asarray(plus["quasiparticles/spin"]).max() > 1:
        raise ResultError(f"{plus.path} has two spins, which [perturbation] does not have")


def _first_orders(at_rest: Result, name: str) -> dict[tuple[int, int], float]:
    """⟨∂Σ(E_l)⟩ of every k of the job and band, eV/Bohr."""
    if "perturbations/sigma_bra" not in at_rest:
        raise ResultError(f"{at_rest.path} has no first order; add [perturbation] to its deck")
    names = [_text(x) for x in np.asarray(at_rest["perturbations/name"])]
    if name not in names:
        raise ResultError(f"{at_rest.path} displaces {', '.join(names)}, but not {name}")
    values = np.asarray(at_rest["perturbations/sigma_bra"])[names.index(name)]
    bands = np.asarray(at_rest["perturbations/band"])
    return {
        (ik, int(band)): float(values[ik, i, i, 0])
        for ik in range(len(values))
        for i, band in enumerate(bands)
    }


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _point(at_rest: Result, k: np.ndarray) -> int:
    points = np.asarray(at_rest["perturbations/k"])
    found = np.flatnonzero(np.abs(points - k).max(axis=1) < SAME_K)
    if len(found) == 0:
        raise ResultError(f"{at_rest.path} lacks the k-point {k}; give it the same sigma.kpoints")
    return int(found[0])


def _multiplets(k: np.ndarray, energy_ev: np.ndarray) -> list[list[int]]:
    """Rows of each multiplet: neighbours of one k within 1e-6 Ry."""
    groups: list[list[int]] = []
    for i in range(len(energy_ev)):
        joins = (
            i > 0
            and np.abs(k[i] - k[i - 1]).max() < SAME_K
            and abs(energy_ev[i] - energy_ev[i - 1]) < DEGENERATE_EV
        )
        if joins:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def compare(plus: Result, minus: Result, at_rest: Result | None = None) -> list[CheckedState]:
    """Returns the difference quotient of Σ of every state beside ⟨∂Σ⟩.

    ``at_rest`` is the result of a job with ``[perturbation]``. Raises ``ResultError`` where the
    jobs do not fit each other.
    """
    atom, axis, h = step(plus, minus)
    _require_same_states(plus, minus)
    k, band = (np.asarray(plus[f"quasiparticles/{name}"]) for name in ("k", "band"))
    energy_ev = np.asarray(plus["quasiparticles/mean_field_ev"])
    sigma_ev = [np.asarray(r["quasiparticles/sigma_ev"]) for r in (plus, minus)]
    quotient = (sigma_ev[0] - sigma_ev[1]) / (2.0 * h)
    first = None if at_rest is None else _first_orders(at_rest, f"atom {atom} {axis}")
    states: list[CheckedState] = []
    for rows in _multiplets(k, energy_ev):
        mean: float | None = None
        if at_rest is not None and first is not None:
            point = _point(at_rest, k[rows[0]])
            lacking = [int(band[i]) for i in rows if (point, int(band[i])) not in first]
            if lacking:
                raise ResultError(
                    f"{at_rest.path} lacks band {lacking[0]}; give it the same sigma.band_max"
                )
            mean = float(np.mean([first[point, int(band[i])] for i in rows]))
        for i in rows:
            states.append(CheckedState((float(k[i][0]), float(k[i][1]), float(k[i][2])),
                                       int(band[i]), float(energy_ev[i]), float(quotient[i]),
                                       mean))
    return states


def table(plus: Result, minus: Result, at_rest: Result | None = None) -> str:
    """Returns the comparison as text, and its largest difference."""
    atom, axis, h = step(plus, minus)
    states = compare(plus, minus, at_rest)
    lines = [
        f"atom {atom}, {axis}, h = {h:g} Bohr; eV/Bohr at fixed W and outer states",
        "         k                      band      E_mf (eV)  [S(+h)-S(-h)]/2h"
        + ("" if at_rest is None else "          <dSigma>     difference"),
    ]
    for s in states:
        line = (f"{s.k[0]:9.5f}{s.k[1]:9.5f}{s.k[2]:9.5f}{s.band:8d}{s.mean_field_ev:15.6f}"
                f"{s.quotient:18.7f}")
        if s.first_order is not None:
            line += f"{s.first_order:18.7f}{s.quotient - s.first_order:15.7f}"
        lines.append(line)
    if at_rest is not None:
        worst = max(abs(s.quotient - (s.first_order or 0.0)) for s in states)
        lines.append(f"largest difference: {worst:.3g} eV/Bohr; half of h should divide it by 4, "
                     "but states near a plasmon pole can need a smaller h")
    return "\n".join(lines)
