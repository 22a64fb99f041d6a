"""Figures of quasiparticle energies."""

from __future__ import annotations

from typing import Any

import numpy as np

from quasi.gw import GwResult, StateSpectrum
from quasi.plot.style import COLOURS, legend
from quasi.result import ResultError


def _corners(k: np.ndarray) -> list[int]:
    """Numbers of the points where a path changes its direction, ends included."""
    steps = np.diff(k, axis=0)
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    moving = np.flatnonzero(lengths[:, 0] > 0)
    unit = steps[moving] / lengths[moving]
    turns = np.flatnonzero(np.linalg.norm(np.diff(unit, axis=0), axis=1) > 1e-3)
    return [0, *(int(moving[t + 1]) for t in turns), len(k) - 1]


def _corner_name(k: np.ndarray) -> str:
    if np.allclose(k, 0.0):
        return "Γ"
    return "(" + " ".join(f"{value:g}" for value in np.round(k, 3)) + ")"


def bands(results: list[GwResult], labels: list[str], figure: Any) -> None:
    """Quasiparticle bands over the mean field's along the path of the job."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        path = result.band_path()
        prefix = f"{label}, " if len(results) > 1 else ""
        mean = axes.plot(path.distance, path.mean_field.T, color="#999999", linewidth=1.0)
        mean[0].set_label(f"{prefix}mean field")
        if np.isfinite(path.quasiparticle).any():
            own = axes.plot(path.distance, path.quasiparticle.T, color=COLOURS[number % 7])
            own[0].set_label(f"{prefix}quasiparticles")
        if number == 0:
            corners = _corners(path.k)
            axes.set_xticks(path.distance[corners])
            axes.set_xticklabels([_corner_name(path.k[i]) for i in corners])
            axes.set_xlim(path.distance[0], path.distance[-1])
    axes.xaxis.set_minor_locator(_no_ticks())
    axes.grid(axis="x", color="#bbbbbb", linewidth=0.6)
    axes.set_ylabel("energy (eV)")
    legend(axes)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _state_name(label: str) -> str:
    """Title of a block such as "k 0.25 0.5 0.75 spin 1 bands 3-4"."""
    words = label.split()
    if len(words) < 8 or words[0] != "k":
        return label
    k = _corner_name(np.array([float(word) for word in words[1:4]]))
    first, last = words[-1].split("-")
    bands = f"band {first}" if first == last else f"bands {first}–{last}"
    return f"k = {k}, {bands}" + ("" if words[5] == "1" else f", spin {words[5]}")


def sigma(results: list[GwResult], labels: list[str], figure: Any) -> None:
    """Σ(E) and, where V_xc is known, the spectral function A(E), of the state with the sharpest
    peak; without A(E) of the first state."""
    states = [_state_to_show(result) for result in results]
    with_spectral = any(np.isfinite(state.spectral).all() for state in states)
    panels = figure.subplots(2, 1, sharex=True) if with_spectral else [figure.subplots()]
    above = panels[0]
    for number, (state, label) in enumerate(zip(states, labels)):
        line = ("-", "--", ":")[number % 3]
        prefix = f"{label}, " if len(results) > 1 else ""
        above.plot(state.energy, state.sigma.real, line, color=COLOURS[0], label=f"{prefix}Re Σ")
        above.plot(state.energy, state.sigma.imag, line, color=COLOURS[1], label=f"{prefix}Im Σ")
        above.set_title(_state_name(state.label))
        if with_spectral:
            panels[1].plot(state.energy, state.spectral, line, color=COLOURS[2], label=label)
    above.set_ylabel("self-energy (eV)")
    if with_spectral:
        panels[1].set_ylabel("$A$ (eV$^{-1}$)")
        panels[1].set_ylim(bottom=0.0)
    panels[-1].set_xlabel("energy (eV)")
    legend(above)


def _state_to_show(result: GwResult) -> StateSpectrum:
    known = [state for state in result.spectra() if np.isfinite(state.spectral).all()]
    return max(known, key=lambda each: float(each.spectral.max())) if known \
        else result.spectra()[0]


def corrections(results: list[GwResult], labels: list[str], figure: Any) -> None:
    """Quasiparticle correction of every state against its mean-field energy."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        mean = np.asarray(result.mean_field)
        try:
            values = np.asarray(result.quasiparticle) - mean
            name = "$E_{QP} - E_{MF}$ (eV)"
        except ResultError:
            values = np.asarray(result.sigma)
            name = "Σ (eV)"
        axes.plot(mean, values, "o", color=COLOURS[number % 7], label=label)
        axes.set_ylabel(name)
    axes.set_xlabel("mean-field energy (eV)")
    if len(results) > 1:
        legend(axes)


def _axes_of_the_study(result: GwResult) -> list[str]:
    """Names of the varied parameters of a convergence study."""
    return [path.split("/")[1] for path in result.datasets()
            if path.startswith("convergence/") and path.endswith("/setting")]


_STUDY_LABELS = {
    "bands": "bands", "cutoff_ry": "cut-off of ε (Ry)", "bare_cutoff_ry": "bare cut-off (Ry)",
    "k_grid": "points of the zone",
}


def convergence(results: list[GwResult], labels: list[str], figure: Any) -> None:
    """Change of the energies from their values at the deck's settings, one panel a parameter; the
    band at the right is the limit with its error bar, for the state of the largest change."""
    names = _axes_of_the_study(results[0])
    panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
    for panel, name in zip(panels, names):
        for number, (result, label) in enumerate(zip(results, labels)):
            group = f"convergence/{name}"
            setting = np.asarray(result[f"{group}/setting"])
            what = "qp1" if f"{group}/qp1" in result else "sigma"
            energy = np.asarray(result[f"{group}/{what}"])
            change = energy - energy[-1]
            limit = np.asarray(result[f"{group}/limit"]) - energy[-1]
            error = np.asarray(result[f"{group}/limit_error"])
            worst = int(np.argmax(np.abs(limit) + error))
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(setting, change, "-", color=colour, alpha=0.25, linewidth=0.8)
            panel.plot(setting, change[:, worst], "o-", color=colour,
                       label=label if len(results) > 1 else "largest change")
            reach = setting[-1] + 0.18 * (setting[-1] - setting[0])
            panel.errorbar([reach], [limit[worst]], [error[worst]], fmt="s", color=colour,
                           capsize=2.5, markerfacecolor="white",
                           label=None if number else "its limit")
        panel.axhline(0.0, color="#999999", linewidth=0.6)
        panel.set_xlabel(_STUDY_LABELS.get(name, name))
    panels[0].set_ylabel(r"$E - E_{\mathrm{deck}}$ (eV)")
    legend(panels[0])


def _has_bands(result: GwResult) -> bool:
    return result.path.with_name("bands.dat").exists()


def _has_spectra(result: GwResult) -> bool:
    return result.path.with_name("spectra.dat").exists()


def _has_states(result: GwResult) -> bool:
    """A job that ends with ε⁻¹ has no states."""
    path = "quasiparticles/sigma_ev"
    return path in result and len(result[path]) > 0


FIGURES = {
    "bands": (bands, _has_bands, 1.0),
    "corrections": (corrections, _has_states, 1.0),
    "sigma": (sigma, _has_spectra, 1.0),
    "convergence": (convergence, ("convergence/added",), 1.8),
}
