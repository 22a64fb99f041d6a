"""Growth of GW jobs with the number of atoms; called by scaling.sh, which describes it."""

import hashlib
import math
import os
import sys

from jobs import SMALL, Jobs, OutOfTime, devices, silicon
from summary_numbers import results

EDGES = [int(word) for word in os.environ.get("EDGES", "1 2" if SMALL else "2 3 4 5").split()]
COUNTS = [1] if os.environ.get("DEVICE") == "cpu" else [
    int(word) for word in os.environ.get("COUNTS", "1 2").split()]
CUTOFF_RY = float(os.environ.get("CUTOFF", 1.5 if SMALL else 4))
PSEUDOBANDS = {"vectors": int(os.environ.get("VECTORS", 3 if SMALL else 24)),
               "blocks": int(os.environ.get("BLOCKS", 3 if SMALL else 8)),
               "protected_ry": 0.5 if SMALL else 0.25}
WAVE_RY = 4.0 if SMALL else 11.0
# The occupied and protected bands with some above them, by cells along an axis.
STATES = {1: 28, 2: 320 if SMALL else 200, 3: 640, 4: 1500, 5: 2900}
# Assumed seconds of jobs on one GPU, which decide whether the next one fits before LIMIT_S.
EXPECTED_S = {1: 10, 2: 10, 3: 25, 4: 90, 5: 260}
PHASES = {"mean_field": "mean field", "pseudobands": "pseudobands", "epsilon": "ε", "sigma": "Σ",
          "pseudoband_errors": "error bars", "self_test": "self-test"}


def atoms(edge):
    return 8 * edge**3


def name_of(edge, count):
    return f"atoms{atoms(edge)}_gpus{count}"


def deck_of(edge):
    return silicon(edge, STATES[edge], CUTOFF_RY, wave_ry=WAVE_RY, operator=True,
                   pseudobands=PSEUDOBANDS)


def digest(result):
    text = "\n".join(results(result["summary"]))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def exponent(points):
    """Returns the slope of the straight line through log y of log x, or None for no line."""
    points = [(math.log(x), math.log(y)) for x, y in points if y > 0.0]
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return (sum((x - mean_x) * (y - mean_y) for x, y in points)
            / sum((x - mean_x) ** 2 for x, _ in points))


def rows_of(result):
    """Returns the seconds by row of the table."""
    seconds = result["summary"]["seconds"]
    rows = {title: seconds.get(phase, 0.0) for phase, title in PHASES.items()}
    rows["whole job"] = result["wall"]
    return rows


def print_row(title, values, points, form="9.2f"):
    """Prints one row with the exponents of all sizes and of the two largest."""
    whole, last = exponent(points), exponent(points[-2:])
    print(title.ljust(26) + "".join(" " * 9 if value is None else f"{value:{form}}"
                                    for value in values)
          + "".join(" " * 8 if slope is None else f"{slope:8.2f}" for slope in (whole, last)))


def table(found):
    """Prints a table for each number of GPUs; true if bits do not depend on it."""
    good = True
    for count in COUNTS:
        edges = [edge for edge in EDGES if (edge, count) in found]
        if not edges:
            continue
        print(f"\n{count} GPU{'s' if count > 1 else ''}, seconds".ljust(27)
              + "".join(f"{atoms(edge):9}" for edge in edges) + "     fit    last")
        rows = [rows_of(found[edge, count]) for edge in edges]
        for title in rows[0]:
            values = [row[title] for row in rows]
            print_row(title, values, [(atoms(e), v) for e, v in zip(edges, values)])
        plans = [found[edge, count]["summary"]["plan"] for edge in edges]
        for key, title in (("epsilon_gflop", "counted: ε, 1e12 flops"),
                           ("sigma_evaluations", "counted: Σ, 1e12 terms")):
            scale = 1e3 if key == "epsilon_gflop" else 1e12
            values = [plan[key] / scale for plan in plans]
            print_row(title, values, [(atoms(e), v) for e, v in zip(edges, values)], "9.3g")
        for key, plan_key, title in (("host_bytes", "host_bytes", "host"),
                                     ("device_bytes", "memory_bytes", "busiest GPU")):
            used = [found[edge, count]["memory"][key] for edge in edges]
            if None in used:
                continue
            for what, values in (("used", used), ("planned", [plan[plan_key] for plan in plans])):
                values = [value / 2**30 for value in values]
                print_row(f"{title}, GiB {what}", values,
                          [(atoms(e), v) for e, v in zip(edges, values)])
        bars = [found[edge, count]["summary"]["pseudobands"]["statistical_error"] for edge in edges]
        print("half-width of the gap, meV".ljust(26)
              + "".join(f"{1e3 * bar['gap_half_width_ev']:9.1f}" for bar in bars))
        print("outer states".ljust(26) + "".join(
            f"{len(found[edge, count]['summary']['quasiparticles']):9}" for edge in edges))
    print()
    for edge in EDGES:
        mine = {count: found[edge, count] for count in COUNTS if (edge, count) in found}
        digests = {digest(result) for result in mine.values()}
        good = good and len(digests) <= 1
        ratios = [f"{count} GPUs {mine[1]['wall'] / result['wall']:.2f} times"
                  for count, result in mine.items() if count > 1 and 1 in mine]
        if mine:
            print(f"{atoms(edge)} atoms: bits {' '.join(sorted(digests))}"
                  + ("" if len(digests) == 1 else " DIFFERENT") + "".join(f"; {r}" for r in ratios))
    return good


def figure(found, path):
    """Draws seconds by atoms, solid on one GPU and dashed on more."""
    tree = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../..")
    sys.path.insert(0, os.path.join(tree, "client/python"))
    from quasi.plot.style import COLOURS, COLUMN_IN, MARKERS, legend, save, styled

    titles = ["whole job", "ε", "Σ", "error bars", "mean field"]
    with styled() as pyplot:
        drawing, axes = pyplot.subplots(figsize=(1.3 * COLUMN_IN, COLUMN_IN))
        for number, title in enumerate(titles):
            for count in COUNTS:
                points = [(atoms(edge), rows_of(found[edge, count])[title]) for edge in EDGES
                          if (edge, count) in found]
                if not points:
                    continue
                slope = exponent(points[1:]) if len(points) > 2 else exponent(points)
                power = "" if slope is None else f", $N^{{{slope:.1f}}}$"
                axes.loglog(*zip(*points), color=COLOURS[number], marker=MARKERS[number],
                            linestyle="-" if count == 1 else "--",
                            label=f"{title}, {count} GPU{'s' if count > 1 else ''}{power}")
        axes.set_xticks([atoms(edge) for edge in EDGES], [str(atoms(edge)) for edge in EDGES])
        axes.minorticks_off()
        axes.set_xlabel("silicon atoms N")
        axes.set_ylabel("time (s)")
        legend(axes, fontsize=6.0, ncol=2)
        save(drawing, path)


def main():
    words = sys.argv[2:]
    if len(sys.argv) < 2 or words[:1] not in ([], ["table"], ["figure"]):
        print("usage: scaling.sh ENGINE [table | figure FILE]", file=sys.stderr)
        return 64
    jobs = Jobs(sys.argv[1], "gw_scaling")
    found, missing = {}, []
    for count in COUNTS:
        for edge in EDGES:
            job = (name_of(edge, count), deck_of(edge), devices(count))
            try:
                result = jobs.stored(*job) if words else jobs.run(*job, EXPECTED_S[edge] / count)
            except OutOfTime:
                result = None
            if result is None:
                missing.append(name_of(edge, count))
            else:
                found[edge, count] = result
    if words[:1] == ["figure"]:
        figure(found, words[1])
        return 0
    good = table(found)
    if missing:
        print(f"missing: {', '.join(missing)}; the next call goes on")
        return 75
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
