#!/usr/bin/env python3
"""Draws the I-V family of a sweep as SVG, from the iv.csv that a run writes.

usage: mosfet_plot.py quasi-out/iv.csv docs/jobs/mosfet_iv.svg "title with the mesh"
"""
import csv
import sys

WIDTH, HEIGHT, MARGIN = 640, 420, 60


def main(source, target, title):
    with open(source, newline="") as file:
        rows = [(float(r["vgs_v"]), float(r["vds_v"]), float(r["current_a_per_m"])) for r in csv.DictReader(file)]
    gates = sorted({r[0] for r in rows})
    x_max = max(r[1] for r in rows)
    y_max = max(r[2] for r in rows) * 1.05

    def place(vds, current):
        return (MARGIN + vds / x_max * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - current / y_max * (HEIGHT - 2 * MARGIN))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{MARGIN}" y="24">{title}</text>',
           f'<path d="M{MARGIN},{MARGIN / 2}V{HEIGHT - MARGIN}H{WIDTH - MARGIN / 2}" fill="none" stroke="black"/>',
           f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}">V_DS (V)</text>',
           f'<text x="8" y="{MARGIN - 20}">I (A/m)</text>']
    for k in range(6):
        x, y = place(x_max * k / 5, y_max * k / 5)
        out.append(f'<text x="{x - 10:.1f}" y="{HEIGHT - MARGIN + 18}">{x_max * k / 5:.2f}</text>')
        out.append(f'<text x="12" y="{y + 4:.1f}">{y_max * k / 5:.0f}</text>')
    for n, gate in enumerate(gates):
        hue = 240 - 240 * n // max(1, len(gates) - 1)
        points = sorted((r[1], r[2]) for r in rows if r[0] == gate)
        path = " ".join("%.1f,%.1f" % place(*p) for p in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="hsl({hue},70%,45%)" stroke-width="1.5"/>')
        for p in points:
            x, y = place(*p)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="hsl({hue},70%,45%)"/>')
        x, y = place(*points[-1])
        out.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}">{gate:g} V</text>')
    out.append("</svg>")
    with open(target, "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
