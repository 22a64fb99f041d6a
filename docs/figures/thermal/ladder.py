#!/usr/bin/env python3
"""Draws κ by level of theory against temperature, and prints the table of the reference page.

    docs/figures/thermal/ladder.py           # ladder.svg

The data are in ladder-silicon.dat and ladder-quartic.dat (bench/gpu/thermal/ladder_temperatures.sh)
and in silicon-experiment.dat. κ of silicon is extrapolated in 1/N at each temperature. It needs
the Python module of Quasi.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from quasi.plot.style import COLOURS, COLUMN_IN, legend, save, styled

HERE = Path(__file__).parent
# Levels that are drawn: name in the file, label, colour, line.
LEVELS = (
    ("bare/3ph/BTE", "bare, three phonons", 0, ":"),
    ("bare/3ph+4ph/BTE", "bare, three and four", 1, "--"),
    ("renormalised/3ph+4ph+coh./BTE", "renormalised, with coherences", 2, "-"),
)


def tables(name: str) -> tuple[list[str], np.ndarray]:
    """Levels and rows [mesh, T, κ of each level] of a file."""
    levels: list[str] = []
    rows = []
    for line in (HERE / name).read_text().splitlines():
        if line.startswith("# N T"):
            levels = line.split()[3:]
        elif line.strip() and not line.startswith("#"):
            rows.append([float(word) for word in line.split()])
    return levels, np.array(rows)


def curve(rows: np.ndarray, column: int, extrapolated: bool) -> np.ndarray:
    """κ by temperature: the limit 1/N → 0 of a straight line, or that of the finest mesh."""
    points = []
    for t in np.unique(rows[:, 1]):
        mine = rows[rows[:, 1] == t]
        kappa = (np.polyfit(1 / mine[:, 0], mine[:, column], 1)[1] if extrapolated
                 else mine[np.argmax(mine[:, 0]), column])
        points.append((t, kappa))
    return np.array(points)


def main() -> None:
    """Two panels: silicon beside experiment, and the crystal that is unstable at 0 K."""
    experiment = tables("silicon-experiment.dat")[1]
    with styled() as pyplot:
        figure, panels = pyplot.subplots(1, 2, figsize=(2.1 * COLUMN_IN, 2.9))
        for axes, name, extrapolated in zip(panels, ("silicon", "quartic"), (True, False)):
            levels, rows = tables(f"ladder-{name}.dat")
            print(f"# {name}: T (K),", ", ".join(levels))
            curves = [curve(rows, 2 + i, extrapolated) for i in range(len(levels))]
            for at, t in enumerate(curves[0][:, 0]):
                print(f"{t:g}", *(f"{c[at, 1]:.4g}" for c in curves))
            for level, label, colour, style in LEVELS:
                if level in levels:
                    points = curves[levels.index(level)]
                    axes.loglog(points[:, 0], points[:, 1], style, color=COLOURS[colour],
                                label=label)
            axes.set_xlabel("$T$ (K)")
            axes.set_ylabel("κ (W/m/K)")
        panels[0].loglog(experiment[:, 0], experiment[:, 1], "ko", label="experiment [ho1972]")
        panels[0].set_xlim(90, 1100)
        panels[0].set_xticks([100, 200, 300, 500, 1000], ["100", "200", "300", "500", "1000"])
        panels[0].set_title("silicon")
        levels, rows = tables("ladder-quartic.dat")
        if "renormalised/3ph/BTE" in levels:
            points = curve(rows, 2 + levels.index("renormalised/3ph/BTE"), False)
            panels[1].loglog(points[:, 0], points[:, 1], "-.", color=COLOURS[3],
                             label="renormalised, three phonons")
        panels[1].set_title("quartic bonds, unstable at 0 K")
        for axes in panels:
            legend(axes)
        save(figure, HERE / "ladder.svg")


if __name__ == "__main__":
    main()
