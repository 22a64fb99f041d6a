"""One self-contained HTML page about a result: it opens offline, in any browser."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from typing import Any

from quasi import plot
from quasi.plot.style import styled
from quasi.result import Result

CITATIONS = {
    "thermal": [
        "Z. Han, X. Yang, W. Li, T. Feng, X. Ruan, Comput. Phys. Commun. 270, 108179 (2022)",
        "W. Li, J. Carrete, N. A. Katcho, N. Mingo, Comput. Phys. Commun. 185, 1747 (2014)",
    ],
    "mosfet": [
        "J. M. Mantas, F. Vecil, Int. J. High Perform. Comput. Appl. 34, 81 (2020)",
    ],
    "gw": [
        "J. Deslippe et al., Comput. Phys. Commun. 183, 1269 (2012)",
        "M. S. Hybertsen, S. G. Louie, Phys. Rev. B 34, 5390 (1986)",
    ],
}

CAPTIONS = {
    "kappa": "Thermal conductivity against temperature.",
    "rates": "Scattering rates by channel at the temperature nearest to 300 K.",
    "cumulative": "Share of the conductivity below a mean free path and below a frequency.",
    "dos": "Phonon density of states.",
    "dispersion": "Frequencies along lines of the mesh; the colour is the linewidth.",
    "convergence": "Convergence, with limits and their error bars.",
    "energy": "Energy that electrons carry and give to phonons along the channel.",
    "iv": "Output curves.",
    "transfer": "Transfer curves, logarithmic and linear.",
    "density": "Electron density at the highest bias.",
    "subbands": "Subband energies along the channel at the highest bias.",
    "current": "Current along the channel at the highest bias.",
    "bands": "Bands along the path.",
    "corrections": "Quasiparticle corrections against mean-field energies.",
    "sigma": "Self-energy and spectral function.",
}

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff;
       max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.lead { color: #555; margin-top: .2rem; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; }
table { border-collapse: collapse; font-size: .9rem; }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #e4e4e4; }
pre { background: #f6f6f4; padding: .8rem; overflow-x: auto; font-size: .85rem; }
.warning { background: #fff4e0; border-left: 4px solid #d9822b; padding: .5rem .8rem;
           margin: .4rem 0; }
@media print { body { max-width: none; } }
"""


def _svg_of(result: Result, what: str) -> str:
    """The figure as an <svg> element."""
    with styled():
        figure = plot.draw([result], what=what)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg"):]


def _rows(values: dict[str, Any]) -> str:
    cells = (
        f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{''.join(cells)}</table>"


def _scalars(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name.replace("_", " "): value
        for name, value in document.items()
        if isinstance(value, (str, int, float, bool)) and value != ""
    }


def _section(title: str, body: str) -> str:
    return f"<h2>{html.escape(title)}</h2>\n{body}\n" if body else ""


def _unique_ids(svg: str, prefix: str) -> str:
    """Prefixes every id of an <svg>, so that several fit in one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", svg)


def _figures(result: Result) -> str:
    parts = []
    for what in result.plots():
        svg = _unique_ids(_svg_of(result, what), f"{what}-")
        caption = html.escape(CAPTIONS.get(what, what))
        parts.append(f"<figure>{svg}<figcaption>{caption}</figcaption></figure>")
    return "\n".join(parts)


def _deck(result: Result) -> str:
    """The deck and settings that the result carries; empty for results without them."""
    attributes = result.attributes()
    texts = [attributes[name] for name in ("deck", "settings") if attributes.get(name)]
    for path in result.datasets():
        if path.startswith("deck/"):
            texts.append(f"# {path.removeprefix('deck/')}\n{result.text(path)}")
    return "".join(f"<pre>{html.escape(text)}</pre>" for text in texts)


def render(result: Result) -> str:
    """Text of the page."""
    table = result.path.with_name("table.txt")
    head = _scalars({k: v for k, v in result.summary.items() if k not in ("schema", "summary")})
    inner = result.summary.get("summary", {})
    provenance = {**head, **{k: v for k, v in result.attributes().items()
                             if k not in ("deck", "settings")}}
    warnings = "".join(f'<div class="warning">{html.escape(w)}</div>' for w in result.warnings)
    plan = inner.get("plan")
    citations = "".join(f"<li>{html.escape(line)}</li>" for line in CITATIONS[result.kind])
    body = "".join(
        (
            _section("Warnings", warnings),
            _section("Result", f"<pre>{html.escape(table.read_text())}</pre>"
                     if table.exists() else ""),
            _section("Figures", _figures(result)),
            _section("Numbers", _rows(_scalars(inner))),
            _section("Plan", f"<pre>{html.escape(json.dumps(plan, indent=2))}</pre>"
                     if plan else ""),
            _section("Deck and settings", _deck(result)),
            _section("Provenance", _rows(provenance)),
            _section("How to cite", f"<ul>{citations}</ul>"),
        )
    )
    name = html.escape(result.path.parent.name or str(result.path))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {result.kind} by Quasi</title><style>{_STYLE}</style></head>\n"
        f'<body><h1>{name}</h1><p class="lead">{result.kind}, computed by Quasi</p>\n'
        f"{body}</body></html>\n"
    )


def write(result: Result, output: Any) -> Path:
    """Writes the page and returns its path."""
    path = Path(output)
    path.write_text(render(result), encoding="utf-8")
    return path
