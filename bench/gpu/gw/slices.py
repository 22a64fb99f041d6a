"""Compares jobs whose matrices are cut into slices with the job that holds them whole.

slices.sh describes the environment.
"""

import hashlib
import os
import sys

from jobs import Jobs, OutOfTime, devices, sigma_ev, silicon
from summary_numbers import results

EDGE = int(os.environ.get("EDGE", 2))
SLICES = int(os.environ.get("SLICES", 8))
GIB = 2.0**30


def deck_of(slices):
    """Returns the deck of a job with a number of slices; 0: whole matrices."""
    text = silicon(EDGE, int(os.environ.get("STATES", 180)),
                   float(os.environ.get("CUTOFF", 8)), wave_ry=float(os.environ.get("WAVES", 11)),
                   operator=True, pseudobands={"vectors": int(os.environ.get("VECTORS", 4)),
                                               "protected_ry": 0.25, "closure": '"sigma"'})
    return text.replace("[epsilon]\n", f"[epsilon]\ncolumn_slices = {slices}\n") if slices else text


def place(count):
    """Returns the argument of --device."""
    return ",".join(["cpu"] * count) if os.environ.get("DEVICE") == "cpu" else devices(count)


def digest(job):
    """Returns a digest of every number of a summary that is a result."""
    kept = {key: value for key, value in job["summary"].items() if key != "plan"}
    return hashlib.sha256("\n".join(results(kept)).encode()).hexdigest()[:12]


def line(name, job):
    """Returns seconds, memory and bits of a job."""
    memory, plan = job["memory"], job["summary"]["plan"]
    used = memory["device_bytes"]
    text = f"{name:22s} {job['wall']:7.1f} s  bits {digest(job)}"
    if used is not None:
        text += f"  device {used / GIB:.2f} GiB used"
    return text + (f"  {plan['memory_bytes'] / GIB:.2f} GiB planned, host "
                   f"{memory['host_bytes'] / GIB:.2f} of {plan['host_bytes'] / GIB:.2f}")


def main():
    """Runs the three jobs, prints the row, and returns the exit status."""
    jobs = Jobs(sys.argv[1], "gw_slices")
    try:
        whole = jobs.run(f"whole-{EDGE}", deck_of(0), place(1))
        one = jobs.run(f"slices-{EDGE}-1", deck_of(SLICES), place(1))
        two = jobs.run(f"slices-{EDGE}-2", deck_of(SLICES), place(2))
    except OutOfTime as late:
        print(f"time ran out before {late}; call again")
        return 75
    for name, job in (("whole", whole), ("slices on one", one), ("slices on two", two)):
        print(line(name, job))
    departure = max(abs(a - b) / abs(a)
                    for a, b in zip(sigma_ev(whole["summary"]), sigma_ev(one["summary"])))
    same = digest(one) == digest(two)
    print(f"forced slicing, {8 * EDGE**3} atoms, {SLICES} slices: Σ departs by {departure:.1e} of "
          f"itself (limit 1e-11); one and two devices have "
          f"{'equal' if same else 'DIFFERENT'} bits")
    return 0 if same and departure < 1e-11 else 1


if __name__ == "__main__":
    sys.exit(main())
