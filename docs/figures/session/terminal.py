#!/usr/bin/env python3
"""Draws the text of a terminal as a picture.

usage: terminal.py SESSION.txt PICTURE.svg

Lines that begin with "$ " are commands and are drawn bold. The word "succeeded" is green.
"""
import sys
from html import escape
from pathlib import Path

COLUMN, LINE, MARGIN = 7.2, 17, 14


def main():
    lines = Path(sys.argv[1]).read_text().splitlines()
    width = 2 * MARGIN + COLUMN * max(map(len, lines))
    height = 2 * MARGIN + LINE * len(lines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}">',
           '<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>',
           '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12"'
           ' fill="#d8d8d8" xml:space="preserve">']
    for number, line in enumerate(lines):
        text = escape(line).replace("succeeded", '<tspan fill="#6cc36c">succeeded</tspan>')
        bold = ' font-weight="bold" fill="#ffffff"' if line.startswith("$ ") else ""
        y = MARGIN + LINE * number + 12
        out.append(f'<text x="{MARGIN}" y="{y}"{bold} textLength="{COLUMN * len(line):.1f}" '
                   f'xml:space="preserve">{text}</text>')
    Path(sys.argv[2]).write_text("\n".join(out + ["</g>", "</svg>", ""]))


if __name__ == "__main__":
    main()
