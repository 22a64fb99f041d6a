"""The look of all figures, and how they are written to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: Colours that colour-blind readers can tell apart (Okabe and Ito), in the order of use.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
COLUMN_IN = 3.4  #: width of one column of a journal, in inches
FORMATS = ("svg", "pdf", "png")

_RC = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "axes.linewidth": 0.7,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.minor.visible": True,
    "ytick.minor.visible": True,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "quasi",
    "pdf.fonttype": 42,
}


class PlotError(Exception):
    """A figure that cannot be drawn: no data for it, or no way to write it."""


@contextmanager
def styled() -> Iterator[Any]:
    """Returns matplotlib with the project's style; it never opens a window.

    Raises ``PlotError`` that says how to install matplotlib where it is missing.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise PlotError(
            "matplotlib is not installed; install it: apt install python3-matplotlib"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(_RC):
        yield pyplot


def alike(curves: list[np.ndarray]) -> list[list[int]]:
    """Groups of curves that lie over each other, so that none hides another.

    >>> alike([np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, 2.0])])
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    scale = max(float(np.abs(curve).max()) for curve in curves)
    for number, curve in enumerate(curves):
        for group in groups:
            if np.abs(curve - curves[group[0]]).max() < 1e-6 * scale:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def colours_of(count: int) -> list[Any]:
    """One colour a curve: those of ``COLOURS``, or a scale from dark to light for more curves.

    >>> len(set(colours_of(3))), len(set(colours_of(10)))
    (3, 10)
    """
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    from matplotlib import colormaps

    return [colormaps["viridis"](share) for share in np.linspace(0.0, 0.92, count)]


def enumeration(noun: str, indices: list[int]) -> str:
    """Name of one or of several numbered things, which count from 1.

    >>> enumeration("atom", [0]), enumeration("atom", [0, 1, 3])
    ('atom 1', 'atoms 1, 2, 4')
    """
    return f"{noun}{'s' if len(indices) > 1 else ''} {', '.join(str(i + 1) for i in indices)}"


def legend(axes: Any, **options: Any) -> None:
    """Draws a legend where there is more than one named line."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(**options)


def save(figure: Any, output: Any) -> None:
    """Writes a figure; the ending of the name chooses the format.

    Equal figures give equal bytes: no file carries a date.

    Raises ``PlotError`` for an unknown ending.
    """
    path = Path(output)
    ending = path.suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise PlotError(
            f"'{path.name}' ends in '.{ending}'; figures are written as .svg, .pdf, .png")
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    figure.savefig(path, metadata=undated[ending])
