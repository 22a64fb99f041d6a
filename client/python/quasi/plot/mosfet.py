"""Figures of transistors."""

from __future__ import annotations

from typing import Any

import numpy as np

from quasi.mosfet import MosfetResult
from quasi.plot.style import COLOURS, MARKERS, alike, colours_of, enumeration, legend

PER_CM3 = 1e21  #: one per nm³, in cm⁻³


def _curves(results: list[MosfetResult], labels: list[str], of: str, axes: Any) -> None:
    symbol = "V_{GS}" if of == "vds" else "V_{DS}"
    for number, (result, label) in enumerate(zip(results, labels)):
        family = result.family(of)
        colours = colours_of(len(family))
        for curve, (fixed, (voltage, current)) in enumerate(family.items()):
            prefix = f"{label}, " if len(results) > 1 else ""
            axes.plot(
                voltage, current, ("-", "--", ":", "-.")[number % 4],
                marker=MARKERS[number % len(MARKERS)], color=colours[curve],
                label=f"{prefix}${symbol}$ = {fixed:g} V",
            )


def output_curves(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """I(V_DS), one curve a gate voltage."""
    axes = figure.subplots()
    _curves(results, labels, "vds", axes)
    axes.set_xlabel("$V_{DS}$ (V)")
    axes.set_ylabel("$I_D$ (A/m = µA/µm)")
    axes.set_ylim(bottom=0.0)
    legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _swing_text(result: MosfetResult) -> str:
    """Swing and DIBL as the result states them; empty where it states none."""
    lines = []
    curve = 0
    while f"derived/{curve}/vds" in result:
        name = f"derived/{curve}/subthreshold_swing"
        if name in result:
            voltage = float(result[f"derived/{curve}/vds"])
            lines.append(f"$V_{{DS}}$ = {voltage:g} V: {float(result[name]):.0f} mV/decade")
        curve += 1
    if "derived/dibl" in result:
        lines.append(f"DIBL {float(result['derived/dibl']):.0f} mV/V")
    return "\n".join(lines)


def transfer(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """I(V_GS) on a logarithmic and a linear scale, one curve a drain voltage."""
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        _curves(results, labels, "vgs", axes)
        axes.set_xlabel("$V_{GS}$ (V)")
    left.set_yscale("log")
    left.set_ylabel("$I_D$ (A/m = µA/µm)")
    right.set_ylim(bottom=0.0)
    legend(right)
    if len(results) == 1 and (text := _swing_text(results[0])):
        left.text(0.96, 0.05, text, transform=left.transAxes, ha="right", va="bottom", fontsize=7)


def _last_point(result: MosfetResult) -> int:
    """The bias point of the highest voltages."""
    return max(result.points, key=lambda point: (point.vgs_v, point.vds_v)).index


def _title(result: MosfetResult, index: int) -> str:
    point = next(point for point in result.points if point.index == index)
    return f"$V_{{GS}}$ = {point.vgs_v:g} V, $V_{{DS}}$ = {point.vds_v:g} V"


def density(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Map of the electron density at the highest bias."""
    from matplotlib.colors import LogNorm

    result = results[0]
    index = _last_point(result)
    axes = figure.subplots()
    x, z = np.asarray(result.at(index, "x")), np.asarray(result.at(index, "z"))
    values = np.asarray(result.at(index, "density")) * PER_CM3
    values = values if values.shape == (x.size, z.size) else values.T
    top = values.max()
    image = axes.pcolormesh(
        x, z, np.clip(values.T, top * 1e-5, None), norm=LogNorm(top * 1e-5, top), cmap="viridis",
        shading="gouraud", rasterized=True,
    )
    axes.tick_params(which="both", color="white")
    axes.set_xlabel("$x$ (nm)")
    axes.set_ylabel("$z$ (nm)")
    axes.set_title(_title(result, index))
    figure.colorbar(image, ax=axes, label="electrons (cm$^{-3}$)")


def subbands(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Subband energies along the channel at the highest bias."""
    result = results[0]
    index = _last_point(result)
    axes = figure.subplots()
    x = np.asarray(result.at(index, "x"))
    levels = np.asarray(result.at(index, "subband_energy"))
    levels = levels.reshape(levels.shape[0], -1, x.size) if levels.ndim == 2 else levels
    for valleys in alike(list(levels)):
        for number, level in enumerate(np.atleast_2d(levels[valleys[0]])):
            axes.plot(
                x, level, color=COLOURS[valleys[0] % len(COLOURS)], linewidth=1.4 - 0.15 * number,
                label=enumeration("valley pair", valleys) if number == 0 else None,
            )
    axes.set_xlim(x[0], x[-1])
    axes.set_xlabel("$x$ (nm)")
    axes.set_ylabel("subband energy (eV)")
    axes.set_title(_title(result, index))
    legend(axes)


def current(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Current along the channel at the highest bias: a level line where the state is steady."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        index = _last_point(result)
        x = np.asarray(result.at(index, "x"))
        profile = np.asarray(result.at(index, "current_x"))
        middle = 0.5 * (x[1:] + x[:-1]) if profile.size == x.size - 1 else \
            np.linspace(x[0], x[-1], profile.size)
        axes.plot(middle, profile, color=COLOURS[number % len(COLOURS)], label=label)
    # A steady current is level: rounding does not fill the panel.
    low, high = axes.get_ylim()
    middle, least = 0.5 * (low + high), 0.05 * max(abs(low), abs(high))
    if high - low < 2.0 * least:
        axes.set_ylim(middle - least, middle + least)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_xlabel("$x$ (nm)")
    axes.set_ylabel("current (A/m)")
    axes.set_title(_title(results[0], _last_point(results[0])))
    if len(results) > 1:
        legend(axes)


def energy(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Energy balance along the channel at the highest bias: what electrons carry, what they have
    given to phonons, and the sum, which is a level line where energy is conserved."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        index = _last_point(result)
        x = np.asarray(result.at(index, "x"))
        step = x[1] - x[0]
        face = np.concatenate([[x[0] - 0.5 * step], x + 0.5 * step])
        carried = np.asarray(result.at(index, "energy_flux"))
        given = np.zeros_like(carried)
        if f"points/{index}/phonon_power" in result:
            power = np.asarray(result.at(index, "phonon_power")).reshape(-1, x.size).sum(axis=0)
            given[1:] = np.cumsum(power) * step * 1e-9  # W/m² times nm
        line = ("-", "--", ":", "-.")[number % 4]
        prefix = f"{label}, " if len(results) > 1 else ""
        axes.plot(face, carried - carried[0], line, color=COLOURS[0],
                  label=f"{prefix}carried by electrons")
        axes.plot(face, given, line, color=COLOURS[1], label=f"{prefix}given to phonons")
        axes.plot(face, carried - carried[0] + given, line, color=COLOURS[6], linewidth=0.8,
                  label=f"{prefix}sum")
    axes.set_xlim(face[0], face[-1])
    axes.set_xlabel("$x$ (nm)")
    axes.set_ylabel("power since the source (W/m)")
    axes.set_title(_title(results[0], _last_point(results[0])))
    legend(axes)


def mobility(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Low-field mobility against the effective field, on logarithmic scales."""
    axes = figure.subplots()
    for number, (result, label) in enumerate(zip(results, labels)):
        axes.loglog(
            np.asarray(result["iv/effective_field"]), np.asarray(result["iv/mobility"]),
            marker=MARKERS[number % len(MARKERS)], color=COLOURS[number % len(COLOURS)],
            label=label,
        )
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 10.0 ** np.floor(np.log10(low * 1.2))), high * 1.1)
    axes.set_xlabel("effective field (MV/cm)")
    axes.set_ylabel("mobility (cm$^2$/Vs)")
    legend(axes)


def small_signal(results: list[MosfetResult], labels: list[str], figure: Any) -> None:
    """Current gain and Mason's gain against frequency, one colour a bias point."""
    axes = figure.subplots()
    points = [(result, label, point) for result, label in zip(results, labels)
              for point in result.points
              if f"points/{point.index}/small_signal/frequency" in result]
    colours = colours_of(len(points))
    for colour, (result, label, point) in zip(colours, points):
        frequency = np.asarray(result.at(point.index, "small_signal/frequency"))
        prefix = f"{label}, " if len(results) > 1 else ""
        bias = f"$V_{{GS}}$ = {point.vgs_v:g} V, $V_{{DS}}$ = {point.vds_v:g} V"
        for name, line, decibel, symbol in (
            ("current_gain", "-", 20.0, "$|h_{21}|$"), ("unilateral_gain", "--", 10.0, "$U$"),
        ):
            gain = np.asarray(result.at(point.index, f"small_signal/{name}"))
            shown = (frequency > 0.0) & np.isfinite(gain) & (gain > 0.0)
            axes.semilogx(frequency[shown] * 1e-9, decibel * np.log10(gain[shown]), line,
                          color=colour, label=f"{prefix}{symbol}, {bias}")
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xlabel("frequency (GHz)")
    axes.set_ylabel("gain (dB)")
    legend(axes)


FIGURES = {
    "iv": (output_curves, ("points/0/numbers/current_a_per_m",), 1.35),
    "transfer": (transfer, ("points/0/numbers/current_a_per_m",), 1.8),
    "density": (density, ("points/0/density",), 1.2),
    "subbands": (subbands, ("points/0/subband_energy",), 1.0),
    "current": (current, ("points/0/current_x",), 1.0),
    "energy": (energy, ("points/0/energy_flux",), 1.2),
    "small_signal": (small_signal, ("points/0/small_signal/frequency",), 1.2),
    "mobility": (mobility, ("iv/mobility",), 1.0),
}
