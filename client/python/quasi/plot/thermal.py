"""Figures of lattice thermal conductivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from quasi.plot.style import COLOURS, MARKERS, alike, enumeration, legend
from quasi.thermal import RAD_PS_PER_THZ, ThermalResult

KAPPA_LABEL = "thermal conductivity (W m$^{-1}$ K$^{-1}$)"


def _mean_diagonal(tensor: np.ndarray) -> np.ndarray:
    """A third of the trace of tensors [...][3][3]."""
    return np.trace(np.asarray(tensor), axis1=-2, axis2=-1) / 3.0


def _is_isotropic(tensor: np.ndarray) -> bool:
    diagonal = np.diagonal(np.asarray(tensor), axis1=-2, axis2=-1)
    scale = np.abs(diagonal).max() or 1.0
    return bool(np.abs(diagonal - diagonal[..., :1]).max() < 1e-3 * scale)


def _components(tensor: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Curves that stand for a tensor: one for cubic crystals, else the three diagonal elements."""
    if _is_isotropic(tensor):
        return [("", _mean_diagonal(tensor))]
    values = np.asarray(tensor)
    return [(f" {a}{a}", values[..., i, i]) for i, a in enumerate("xyz")]


def kappa(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """κ(T): iterated, relaxation time, coherences and their total."""
    axes = figure.subplots()
    parts = (
        ("kappa/converged", "iterated", "-"),
        ("kappa/rta", "relaxation time", "--"),
        ("kappa/coherence", "coherences", ":"),
    )
    for number, (result, label) in enumerate(zip(results, labels)):
        temperature = np.asarray(result.temperature)
        colour = COLOURS[number % len(COLOURS)]
        for path, name, line in parts:
            if path not in result:
                continue
            for component, values in _components(result[path]):
                prefix = f"{label}, " if len(results) > 1 else ""
                marker = MARKERS[("", " xx", " yy", " zz").index(component)]
                filled = colour if line == "-" else "white"
                axes.plot(
                    temperature, values, line, color=colour, marker=marker,
                    markerfacecolor=filled, label=f"{prefix}{name}{component}",
                )
    axes.set_xlabel("temperature (K)")
    axes.set_ylabel(KAPPA_LABEL)
    if len(results[0].temperature) > 1:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_log_ticks(axes.xaxis)
        _plain_log_ticks(axes.yaxis)
    legend(axes)


def _plain_log_ticks(axis: Any) -> None:
    """Numbers such as 200 instead of powers of ten, at 1, 2 and 5 of each decade; at 1 alone where
    the axis spans more than three decades, and at equal steps where it spans a factor below 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 5 * low:
        # A logarithmic locator would give linear steps that crowd at the upper end.
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 1e3 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _middle_temperature(result: ThermalResult) -> float:
    """The temperature nearest to 300 K."""
    temperature = np.asarray(result.temperature)
    return float(temperature[np.argmin(np.abs(temperature - 300.0))])


def rates(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """Scattering rates against frequency, by channel, at the temperature nearest to 300 K."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        temperature = _middle_temperature(result)
        frequency = np.asarray(result.frequency)[np.asarray(result.irreducible)].ravel()
        for channel, (name, values) in enumerate(result.rates(temperature).items()):
            rate = np.asarray(values).ravel()
            shown = (rate > 0.0) & (frequency > 0.0)
            prefix = f"{label}, " if len(results) > 1 else ""
            axes.plot(
                frequency[shown], rate[shown], MARKERS[number % len(MARKERS)],
                color=COLOURS[channel % len(COLOURS)], markersize=2.0, markeredgewidth=0.0,
                alpha=0.7, label=f"{prefix}{name}", rasterized=rate.size > 20000,
            )
    axes.set_yscale("log")
    axes.set_xlim(left=0.0)
    axes.set_xlabel("frequency (THz)")
    axes.set_ylabel("scattering rate (ps$^{-1}$)")
    axes.set_title(f"{_middle_temperature(results[0]):g} K")
    legend(axes, markerscale=2.0)


def cumulative(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """Share of κ carried by mean free paths below a length, and by frequencies below a value."""
    left, right = figure.subplots(1, 2, sharey=True)
    shortest, longest = np.inf, 0.0
    for number, (result, label) in enumerate(zip(results, labels)):
        temperature = _middle_temperature(result)
        colour = COLOURS[number % len(COLOURS)]
        for axes, name, scale in (
            (left, "cumulative_by_path", 1.0),
            (right, "cumulative_by_omega", 1.0 / RAD_PS_PER_THZ),
        ):
            along = np.asarray(result.at(temperature, f"{name}/abscissa")) * scale
            share = _mean_diagonal(result.at(temperature, f"{name}/kappa"))
            share = share / share[-1]
            axes.plot(along, share, color=colour, label=label)
            if axes is left:
                within = along[(share > 1e-3) & (share < 0.9999)]
                shortest = min(shortest, within.min(initial=np.inf))
                longest = max(longest, within.max(initial=0.0))
    left.set_xscale("log")
    if shortest < longest:
        left.set_xlim(0.5 * shortest, 3.0 * longest)
    left.set_xlabel("mean free path (nm)")
    left.set_ylabel("share of the conductivity")
    right.set_xlabel("frequency (THz)")
    right.set_xlim(left=0.0)
    left.set_ylim(0.0, 1.02)
    if len(results) > 1:
        legend(left)


def dos(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """Density of states: total, and by atom where it is one result."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        frequency = np.asarray(result["density_of_states/omega"]) / RAD_PS_PER_THZ
        total = np.asarray(result["density_of_states/total"]) * RAD_PS_PER_THZ
        axes.plot(frequency, total, color=COLOURS[number], label=label if number or len(results) > 1
                  else "total")
        if len(results) == 1:
            by_atom = np.asarray(result["density_of_states/by_atom"]) * RAD_PS_PER_THZ
            for atoms in alike(list(by_atom.T)):
                axes.plot(frequency, by_atom[:, atoms[0]], "--", color=COLOURS[(atoms[0] + 1) % 7],
                          linewidth=1.0, label=enumeration("atom", atoms))
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("frequency (THz)")
    axes.set_ylabel("density of states (THz$^{-1}$)")
    legend(axes)


def lines_of_the_mesh(mesh: np.ndarray) -> tuple[np.ndarray, list[int], list[str]]:
    """Mesh points along (½ ½ 0) – Γ – (½ ½ ½), which is X–Γ–L of an fcc lattice, or along the first
    and third axis where the mesh has not these points: integer coordinates, corners, names."""
    n = np.asarray(mesh, dtype=int)
    equal = bool(np.all(n == n[0]))
    ends = (("½ ½ 0", (1, 1, 0)), ("½ ½ ½", (1, 1, 1))) if equal else \
        (("½ 0 0", (1, 0, 0)), ("0 0 ½", (0, 0, 1)))
    (first, one), (last, other) = ends
    count = [int(n[np.flatnonzero(axis)[0]]) // 2 for axis in (one, other)]
    points = [step * np.array(one) for step in range(count[0], 0, -1)]
    points += [step * np.array(other) for step in range(count[1] + 1)]
    odd = [bool(n[np.flatnonzero(axis)[0]] % 2) for axis in (one, other)]
    names = [f"near {first}" if odd[0] else first, "Γ", f"near {last}" if odd[1] else last]
    return np.array(points), [0, count[0], sum(count)], names


def ticks_of_path(result: ThermalResult) -> tuple[list[float], list[str]]:
    """Places and names of the corners of a path. Two names share a place where the line breaks."""
    distance = np.asarray(result["path/distance"])
    segment = np.asarray(result["path/segment"])
    places: list[float] = []
    names: list[str] = []
    for number in np.unique(segment):
        points = np.flatnonzero(segment == number)
        for point in (points[0], points[-1]):
            word = result["path/label"][point]
            name = word.decode() if isinstance(word, bytes) else str(word)
            name = "Γ" if name in ("G", "Gamma", "GAMMA") else name
            if places and abs(distance[point] - places[-1]) < 1e-9 * (1.0 + distance[-1]):
                if names[-1] != name:
                    names[-1] += f"|{name}"
            else:
                places.append(float(distance[point]))
                names.append(name)
    return places, names


def _path_of(result: ThermalResult, colour: str | None, axes: Any) -> Any:
    """Draws the bands of a path in one colour, or coloured by linewidth at the temperature nearest
    to 300 K. Returns the image that a colour bar explains, or nothing."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    distance = np.asarray(result["path/distance"])
    segment = np.asarray(result["path/segment"])
    frequency = np.asarray(result["path/omega"]) / RAD_PS_PER_THZ
    order = np.argsort(np.asarray(result["path/band"]), axis=1, kind="stable")
    frequency = np.take_along_axis(frequency, order, axis=1)
    pieces: list[np.ndarray] = []
    widths: list[float] = []
    width = None
    if colour is None and "path/rate" in result:
        t = int(np.argmin(np.abs(np.asarray(result.temperature) - 300.0)))
        rate = np.take_along_axis(np.asarray(result["path/rate"])[t], order, axis=1)
        width = rate / (2.0 * np.pi)
    for number in np.unique(segment):
        points = np.flatnonzero(segment == number)
        for band in range(frequency.shape[1]):
            axes.plot(distance[points], frequency[points, band], linewidth=0.8,
                      color=colour or "#999999")
            if width is None:
                continue
            line = np.stack([distance[points], frequency[points, band]], axis=1)
            pieces += list(np.stack([line[:-1], line[1:]], axis=1))
            widths += list(0.5 * (width[points[:-1], band] + width[points[1:], band]))
    shown = np.isfinite(widths) & (np.array(widths) > 0.0)
    if not shown.any():
        return None
    lines = LineCollection(np.array(pieces)[shown], array=np.array(widths)[shown], cmap="viridis",
                           norm=LogNorm(), linewidths=2.0, capstyle="round", zorder=3)
    return axes.add_collection(lines)


def _path_dispersion(results: list[ThermalResult], labels: list[str], axes: Any) -> Any:
    """Draws results with paths over each other, and returns what a colour bar explains."""
    image = None
    for number, result in enumerate(results):
        colour = None if len(results) == 1 else COLOURS[number % len(COLOURS)]
        first = len(axes.get_lines())
        image = _path_of(result, colour, axes)
        axes.get_lines()[first].set_label(labels[number])
    places, names = ticks_of_path(results[0])
    axes.set_xticks(places)
    axes.set_xticklabels(names)
    axes.set_xlim(places[0], places[-1])
    return image


def dispersion(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """Frequencies along the path of the deck, or at the points of the mesh along lines through Γ.
    The colour is the linewidth, the sum of all rates over 2π, at the temperature nearest to
    300 K."""
    axes = figure.subplots()
    if all("path/omega" in result for result in results):
        image = _path_dispersion(results, labels, axes)
    else:
        image = _mesh_dispersion(results, labels, axes)
    if image is not None:
        temperature = _middle_temperature(results[0])
        figure.colorbar(image, ax=axes, label=f"linewidth at {temperature:g} K (THz)")
    axes.grid(axis="x", color="#bbbbbb", linewidth=0.6)
    axes.tick_params(axis="x", which="both", top=False, bottom=False)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_ylabel("frequency (THz)")
    if len(results) > 1:
        legend(axes)


def _mesh_dispersion(results: list[ThermalResult], labels: list[str], axes: Any) -> Any:
    """Draws frequencies at points of the mesh, and returns what a colour bar explains."""
    from matplotlib.colors import LogNorm

    image = None
    for number, (result, label) in enumerate(zip(results, labels)):
        mesh = np.asarray(result.mesh, dtype=int)
        points, corners, names = lines_of_the_mesh(mesh)
        index = points[:, 0] + mesh[0] * (points[:, 1] + mesh[1] * points[:, 2])
        reciprocal = 2.0 * np.pi * np.linalg.inv(np.asarray(result["crystal/lattice"])).T
        steps = np.linalg.norm(np.diff(points / mesh @ reciprocal, axis=0), axis=1)
        along = np.concatenate([[0.0], np.cumsum(steps)])
        frequency = np.asarray(result.frequency)[index]
        colour = "#999999" if len(results) == 1 else COLOURS[number % len(COLOURS)]
        lines = axes.plot(along, frequency, color=colour, linewidth=0.8)
        lines[0].set_label(label)
        if number == 0:
            axes.set_xticks(along[corners])
            axes.set_xticklabels(names)
            axes.set_xlim(along[0], along[-1])
        if len(results) > 1:
            continue
        temperature = _middle_temperature(result)
        row = np.asarray(result["mesh/star_of"])[index]
        width = np.asarray(result.at(temperature, "rate_total"))[row] / (2.0 * np.pi)
        shown = (width > 0.0) & (frequency > 0.0)
        place = np.broadcast_to(along[:, None], frequency.shape)
        image = axes.scatter(place[shown], frequency[shown], c=width[shown], s=9.0, zorder=3,
                             cmap="viridis", norm=LogNorm(), linewidths=0.0,
                             clip_on=False)
    return image


def convergence(results: list[ThermalResult], labels: list[str], figure: Any) -> None:
    """κ against 1/N and against the width of energy conservation, with the limits and their error
    bars at zero, at the temperature nearest to 300 K."""
    left, right = figure.subplots(1, 2, sharey=True)
    for number, (result, label) in enumerate(zip(results, labels)):
        t = int(np.argmin(np.abs(np.asarray(result.temperature) - 300.0)))
        colour = COLOURS[number % len(COLOURS)]
        mesh = np.asarray(result["convergence/mesh"])
        for axes, along, name in (
            (left, 1.0 / mesh.prod(axis=1) ** (1.0 / 3.0), "mesh"),
            (right, np.asarray(result["convergence/scale_broad"]), "width"),
        ):
            values = _mean_diagonal(np.asarray(result[f"convergence/kappa_by_{name}"])[:, t])
            limit = float(np.asarray(result[f"convergence/{name}_limit"])[t].mean())
            error = float(np.asarray(result[f"convergence/{name}_limit_error"])[t].mean())
            axes.plot(along, values, "o-", color=colour,
                      label=label if len(results) > 1 else "calculated")
            axes.errorbar([0.0], [limit], [error], fmt="s", color=colour, capsize=2.5,
                          markerfacecolor="white", label=None if number else "limit")
            axes.set_xlim(left=-0.06 * axes.get_xlim()[1])
    left.set_xlabel("1/N")
    right.set_xlabel("factor of the widths")
    left.set_ylabel(KAPPA_LABEL)
    legend(left)


FIGURES = {
    "kappa": (kappa, ("kappa/rta",), 1.0),
    "rates": (rates, ("rates/isotope", "rates/3ph_absorption"), 1.0),
    "cumulative": (cumulative, ("by_temperature/cumulative_by_path/kappa",
                                "temperature_000/cumulative_by_path/kappa"), 1.8),
    "dos": (dos, ("density_of_states/total",), 1.0),
    "dispersion": (dispersion, ("path/omega", "by_temperature/rate_total",
                                "temperature_000/rate_total"), 1.2),
    "convergence": (convergence, ("convergence/kappa_by_mesh",), 1.8),
}
