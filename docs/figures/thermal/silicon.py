#!/usr/bin/env python3
"""Draws κ of silicon against mesh and temperature beside experiment, and prints the limits.

    docs/figures/thermal/silicon.py          # silicon-convergence.svg, silicon-temperature.svg

The data are in silicon-convergence.dat (bench/gpu/silicon_meshes.sh), silicon-temperature.dat
(bench/gpu/silicon_temperatures.sh) and silicon-experiment.dat. It needs the Python module of Quasi.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from quasi.plot.style import COLOURS, COLUMN_IN, legend, save, styled

HERE = Path(__file__).parent
SHARE_MESHES = (12, 14, 16, 18, 20, 22, 24)


def blocks(name: str) -> list[np.ndarray]:
    """Tables of a file that blank lines separate, without its comments."""
    found: list[list[list[float]]] = [[]]
    for line in (HERE / name).read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.strip():
            found[-1].append([float(word) for word in line.split()])
        elif found[-1]:
            found.append([])
    return [np.array(rows) for rows in found if rows]


def line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Value at x = 0 and slope of a straight line, and the error of the value: the larger of the
    fit's and of the change without the farthest point."""
    slope, value = np.polyfit(x, y, 1)
    residual = y - value - slope * x
    spread = ((x - x.mean()) ** 2).sum()
    fit = np.sqrt((residual**2).sum() / (x.size - 2) * (1 / x.size + x.mean() ** 2 / spread))
    other = np.polyfit(x[1:], y[1:], 1)[1]
    return value, slope, max(float(fit), abs(other - value))


def limit(kappa: dict[int, float], meshes: tuple[int, ...]) -> tuple[float, float, float]:
    """Limit 1/N → 0 of a quantity by mesh, its slope and its error."""
    return line(np.array([1 / n for n in meshes]), np.array([kappa[n] for n in meshes]))


def convergence() -> None:
    """κ at 300 K against 1/N, with lines through the four finest meshes."""
    three, four, sampled = blocks("silicon-convergence.dat")
    by_mesh = [{int(row[0]): row[2] for row in block} for block in (three, four)]
    share = {n: by_mesh[1][n] / by_mesh[0][n] for n in by_mesh[1]}
    value, _, error = limit(by_mesh[0], (20, 22, 24, 32, 40))
    part, _, part_error = limit(share, SHARE_MESHES)
    print(f"three phonons, 20-40: {value:.2f} ± {error:.2f}")
    for name, kappa in zip(("three phonons", "with four"), by_mesh):
        coarse = limit(kappa, SHARE_MESHES)
        print(f"{name}, 12-24: {coarse[0]:.2f} ± {coarse[2]:.2f}")
    print(f"share of four phonons, 12-24: {part:.4f} ± {part_error:.4f}")
    mean = np.mean([share[n] for n in (16, 18, 20, 22, 24)])
    print(f"with four, share x three phonons: {part * value:.2f} ± "
          f"{part * value * np.hypot(part_error / part, error / value):.2f}; with the mean share "
          f"of 16-24: {mean * value:.2f}")
    with styled() as pyplot:
        figure, axes = pyplot.subplots(figsize=(1.4 * COLUMN_IN, 2.9))
        axes.axhspan(142, 148, color="#f0e2b8", linewidth=0)
        axes.text(0.124, 145, "experiment", ha="right", va="center", fontsize=8)
        names = ("three phonons", "three and four phonons")
        for number, (block, name) in enumerate(zip((three, four), names)):
            finest = block[-4:]
            at_zero, slope, _ = line(1 / finest[:, 0], finest[:, 2])
            x = np.array([0.0, 0.1])
            axes.plot(x, at_zero + slope * x, "--", linewidth=0.9, color=COLOURS[number])
            axes.plot(1 / block[:, 0], block[:, 2], "os"[number], color=COLOURS[number],
                      label=name)
        axes.errorbar(1 / sampled[:, 0], sampled[:, 2], sampled[:, 3], fmt="D",
                      markerfacecolor="none", markersize=6, color=COLOURS[1],
                      label="the same, four sampled")
        axes.set_xlim(0, 0.13)
        axes.set_ylim(75, 165)
        axes.set_xlabel("$1/N$")
        axes.set_ylabel("κ (W/m/K)")
        legend(axes, loc="lower left")
        save(figure, HERE / "silicon-convergence.svg")


def temperature() -> None:
    """κ against T, extrapolated at each temperature through meshes of N ≥ 12, beside experiment."""
    rows = blocks("silicon-temperature.dat")[0]
    experiment = blocks("silicon-experiment.dat")[0]
    curves: dict[int, list[tuple[float, float]]] = {3: [], 4: []}
    for order, curve in curves.items():
        for t in np.unique(rows[:, 2]):
            mine = rows[(rows[:, 1] == order) & (rows[:, 2] == t) & (rows[:, 0] >= 12)]
            curve.append((t, np.polyfit(1 / mine[:, 0], mine[:, 4] + mine[:, 5], 1)[1]))
    print("# T (K)  three phonons  with four  experiment")
    for (t, three), (_, four) in zip(curves[3], curves[4]):
        measured = experiment[experiment[:, 0] == t]
        if measured.size:
            print(f"{t:g} {three:.1f} {four:.1f} {measured[0, 1]:g}")
    with styled() as pyplot:
        figure, axes = pyplot.subplots(figsize=(1.4 * COLUMN_IN, 2.9))
        names = ("three phonons", "three and four phonons")
        for number, (curve, name) in enumerate(zip(curves.values(), names)):
            axes.loglog(*np.array(curve).T, color=COLOURS[number], label=name)
        axes.loglog(experiment[:, 0], experiment[:, 1], "ko", label="experiment [ho1972]")
        axes.set_xlim(90, 1100)
        axes.set_xticks([100, 200, 300, 500, 1000], ["100", "200", "300", "500", "1000"])
        axes.set_xlabel("$T$ (K)")
        axes.set_ylabel("κ (W/m/K)")
        legend(axes)
        save(figure, HERE / "silicon-temperature.svg")


if __name__ == "__main__":
    convergence()
    temperature()
