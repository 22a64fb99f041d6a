"""Figures of results. Begin with ``draw``; one module a kind holds the figures themselves."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from quasi.plot.style import COLUMN_IN, PlotError, save, styled
from quasi.result import Result

__all__ = ["PlotError", "available", "draw"]

Needs = tuple[str, ...] | Callable[[Any], bool]
Figure = tuple[Callable[[Any, list[str], Any], None], Needs, float]


def _figures(kind: str) -> dict[str, Figure]:
    from quasi.plot import gw, mosfet, thermal

    tables: dict[str, Any] = {
        "thermal": thermal.FIGURES, "mosfet": mosfet.FIGURES, "gw": gw.FIGURES,
    }
    return tables[kind]


def _has(result: Result, needs: Needs) -> bool:
    if callable(needs):
        return needs(result)
    return any(path in result for path in needs)


def available(result: Result) -> list[str]:
    """Names of the figures that a result holds the data of; the first is the default."""
    return [name for name, (_, needs, _) in _figures(result.kind).items() if _has(result, needs)]


def _choose(results: list[Result], what: str | None) -> str:
    names = [name for name in available(results[0])
             if all(name in available(result) for result in results)]
    if what is None:
        if not names:
            raise PlotError(f"{results[0].path} holds nothing that can be drawn; "
                            "its tables are in: quasi report")
        return names[0]
    if what in names:
        return what
    known = list(_figures(results[0].kind))
    if what in known:
        raise PlotError(
            f"the data of '{what}' are not in {results[0].path}; it has: {', '.join(names)}"
        )
    nearest = difflib.get_close_matches(what, known, 1)
    hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
    raise PlotError(f"no figure '{what}' for kind {results[0].kind}{hint}; known: "
                    f"{', '.join(known)}")


def draw(
    results: list[Result],
    what: str | None = None,
    output: Any = None,
    labels: list[str] | None = None,
) -> Any:
    """Draws one figure of one result, or of several of the same kind over each other.

    ``what`` names the figure (default: the first of ``available``), ``labels`` the results in the
    legend (default: their folders). With ``output`` the figure is written to that file.

    Returns matplotlib's figure. Raises ``PlotError`` where there are no data for it.
    """
    if not results:
        raise PlotError("no result was given")
    kinds = {result.kind for result in results}
    if len(kinds) > 1:
        raise PlotError(f"results of different kinds cannot share a figure: {', '.join(kinds)}")
    name = _choose(results, what)
    function, _, widths = _figures(results[0].kind)[name]
    labels = labels or [result.path.parent.name or str(result.path) for result in results]
    with styled() as pyplot:
        figure = pyplot.figure(figsize=(COLUMN_IN * widths, 2.6))
        try:
            function(results, labels, figure)
            if output is not None:
                save(figure, output)
        finally:
            pyplot.close(figure)
    return figure
