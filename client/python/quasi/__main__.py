"""``python3 -m quasi plot|report|displacement-check …``, behind ``quasi plot`` and ``report``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import quasi
from quasi import displacement_check, plot, report
from quasi.plot.style import PlotError
from quasi.result import Result, ResultError


def _split(words: list[str]) -> tuple[list[Result], str | None]:
    """Results that exist, and at most one name of a figure behind them."""
    results = [quasi.open(word) for word in words if Path(word).exists()]
    names = [word for word in words if not Path(word).exists()]
    if not results:
        raise ResultError(f"'{words[0]}' does not exist; name a folder that holds a result.h5")
    if len(names) > 1:
        raise ResultError(f"'{names[0]}' does not exist")
    return results, names[0] if names else None


def _plot(arguments: argparse.Namespace) -> int:
    results, what = _split(arguments.words)
    if arguments.list:
        print("\n".join(results[0].plots()))
        return 0
    if what == "all":
        folder = Path(arguments.output or ".")
        folder.mkdir(parents=True, exist_ok=True)
        for name in results[0].plots():
            target = folder / f"{name}.svg"
            plot.draw(results, what=name, output=target)
            print(target)
        return 0
    name = what or (results[0].plots() or [""])[0]
    target = Path(arguments.output or f"{name}.svg")
    plot.draw(results, what=what, output=target, labels=arguments.label or None)
    print(target)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    result = quasi.open(arguments.result)
    target = arguments.output or result.path.with_name("report.html")
    print(report.write(result, target))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    at_rest = quasi.open(arguments.at_rest) if arguments.at_rest else None
    print(displacement_check.table(quasi.open(arguments.plus), quasi.open(arguments.minus),
                                   at_rest))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quasi", description="Pictures and pages of results.")
    parser.add_argument("--version", action="version", version=f"quasi {quasi.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("plot", help="draw a figure of one or several results")
    draw.add_argument("words", nargs="+", metavar="RESULT [FIGURE]",
                      help="folders or result.h5 files, then the name of a figure, or 'all'")
    draw.add_argument("-o", "--output", metavar="FILE", help="NAME.svg, .pdf or .png")
    draw.add_argument("--label", action="append", metavar="TEXT", help="a result in the legend")
    draw.add_argument("--list", action="store_true", help="print the figures of the result")
    draw.set_defaults(run=_plot)
    page = commands.add_parser("report", help="write one HTML page about a result")
    page.add_argument("result", metavar="RESULT")
    page.add_argument("-o", "--output", metavar="FILE", help="default: report.html beside it")
    page.set_defaults(run=_report)
    check = commands.add_parser("displacement-check",
                                help="compare <dSigma> with Sigma of two displaced crystals")
    check.add_argument("plus", metavar="PLUS", help="result of the job with +h")
    check.add_argument("minus", metavar="MINUS", help="result of the job with -h")
    check.add_argument("at_rest", metavar="AT_REST", nargs="?",
                       help="result of the job with [perturbation]; without it, differences alone")
    check.set_defaults(run=_check)
    return parser


def main(words: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status: 2 for wrong words, 4 without data."""
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (ResultError, PlotError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 4
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 5


if __name__ == "__main__":
    sys.exit(main())
