"""A WFN in pieces under a limit of memory; called by large_wfn.sh, which describes it."""

import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from summary_numbers import results

WFN_BYTES = float(os.environ.get("GB", 2)) * 1e9
MEMORY_MIB = float(os.environ.get("MEMORY_MIB", 1024))
BUDGET_MIB = float(os.environ.get("BUDGET_MIB", 256))
DEVICE = os.environ.get("DEVICE", "cpu")
EDGE_BOHR = 10.0  # of a simple cubic cell
OCCUPIED = 7      # G = 0 and the six shortest G
Q0 = (0.001, 0.0, 0.0)
OTHER_MEMORY_MIB = 512.0  # of the engine beside its states
UNIT_RY = (2.0 * math.pi / EDGE_BOHR)**2

DECK = """kind = "gw"
checkpoint_interval_s = 1e6
memory_budget_mib = {budget_mib}
[meanfield]
wfn = "WFN"
wfnq = "WFNq"
rho = "RHO"
state_memory_mib = {memory_mib}
[epsilon]
cutoff_ry = 3.0
write = false
[sigma]
band_min = 1
band_max = 7
[pseudobands]
vectors = 4
protected_ry = 1.0
"""


def sphere(cutoff_ry, k=(0.0, 0.0, 0.0)):
    """Returns (energy, G) of all plane waves below a cut-off, by energy."""
    most = int(math.sqrt(cutoff_ry / UNIT_RY)) + 1
    found = []
    for x in range(-most, most + 1):
        for y in range(-most, most + 1):
            for z in range(-most, most + 1):
                energy = UNIT_RY * ((x + k[0])**2 + (y + k[1])**2 + (z + k[2])**2)
                if energy < cutoff_ry:
                    found.append((energy, (x, y, z)))
    return sorted(found)


class FortranFile:
    """Writes unformatted sequential records."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def record(self, *parts):
        data = b"".join(parts)
        self.file.write(struct.pack("<i", len(data)) + data + struct.pack("<i", len(data)))

    def whole(self, values):
        self.record(ints(*values))

    def g_list(self, waves):
        self.whole([1])
        self.whole([len(waves)])
        self.record(b"".join(ints(*g) for g in waves))


def ints(*values):
    return struct.pack(f"<{len(values)}i", *values)


def reals(*values):
    return struct.pack(f"<{len(values)}d", *values)


def put_title(file, kind):
    file.record((kind + "-Complex").ljust(32).encode(), b" " * 64)


def put_cell(file):
    """Writes the simple cubic cell with one atom and no symmetry."""
    a, b = EDGE_BOHR, 2.0 * math.pi / EDGE_BOHR

    def unit(factor):
        return [factor if i == j else 0.0 for i in range(3) for j in range(3)]

    file.record(reals(a**3, a, *unit(1.0), *unit(a * a)))
    file.record(reals(b**3, b, *unit(1.0), *unit(b * b)))
    file.whole([1, 0, 0, 0, 1, 0, 0, 0, 1])
    file.record(reals(0.0, 0.0, 0.0))
    file.record(reals(0.0, 0.0, 0.0), ints(14))


def counts(master, cutoff_ry):
    return ints(1, len(master), 1, 0, 1) + reals(4.0 * cutoff_ry)


def fft_edge(master):
    edge = 2 * max(abs(x) for g in master for x in g) + 1
    while any(edge % p == 0 for p in (11, 13)) or max_prime(edge) > 7:
        edge += 1
    return edge


def max_prime(n):
    return max(p for p in range(2, n + 1) if n % p == 0 and all(p % d for d in range(2, p)))


def put_states(file, waves):
    """Writes every state as a plane wave, [band][plane wave]."""
    for band in range(waves["bands"]):
        data = bytearray(16 * len(waves["g"]))
        data[16 * band:16 * band + 8] = reals(1.0)
        file.whole([1])
        file.whole([len(waves["g"])])
        file.record(bytes(data))


def write_wfn(path, master, cutoff_ry, k, most_bands):
    """Writes a WFN of plane waves at one k-point; returns its numbers of plane waves and bands."""
    points = sphere(cutoff_ry, k)
    waves = {"g": [g for _, g in points], "bands": min(most_bands, len(points))}
    file = FortranFile(path)
    put_title(file, "WFN")
    file.record(counts(master, cutoff_ry), ints(1, waves["bands"], len(points)), reals(cutoff_ry))
    file.record(ints(*[fft_edge(master)] * 3, 1, 1, 1), reals(*k))
    put_cell(file)
    file.whole([len(points)])
    file.record(reals(1.0))
    file.record(reals(*k))
    file.whole([1])
    file.whole([OCCUPIED])
    file.record(reals(*[energy for energy, _ in points[:waves["bands"]]]))
    file.record(reals(*[1.0 if band < OCCUPIED else 0.0 for band in range(waves["bands"])]))
    file.g_list(master)
    file.g_list(waves["g"])
    put_states(file, waves)
    file.file.close()
    return len(points), waves["bands"]


def write_rho(path, master, cutoff_ry):
    file = FortranFile(path)
    put_title(file, "RHO")
    file.record(counts(master, cutoff_ry))
    file.whole([fft_edge(master)] * 3)
    put_cell(file)
    file.g_list(master)
    file.whole([1])
    file.whole([len(master)])
    file.record(reals(2.0 * OCCUPIED, 0.0), bytes(16 * (len(master) - 1)))
    file.file.close()


def write_inputs(folder):
    """Writes WFN, WFNq, RHO and the deck into a folder."""
    wanted = math.sqrt(WFN_BYTES / 16.0)  # plane waves, and as many bands
    cutoff_ry = (6.0 * math.pi**2 * wanted / EDGE_BOHR**3)**(2.0 / 3.0)
    master = [g for _, g in sphere(4.0 * cutoff_ry)]
    n_pw, bands = write_wfn(os.path.join(folder, "WFN"), master, cutoff_ry, (0.0, 0.0, 0.0), 10**9)
    write_wfn(os.path.join(folder, "WFNq"), master, cutoff_ry, Q0, OCCUPIED + 1)
    write_rho(os.path.join(folder, "RHO"), master, cutoff_ry)
    with open(os.path.join(folder, "deck.toml"), "w", encoding="utf-8") as file:
        file.write(DECK.format(memory_mib=MEMORY_MIB, budget_mib=BUDGET_MIB))
    size = os.path.getsize(os.path.join(folder, "WFN"))
    print(f"WFN: {size / 1e9:.2f} GB, {bands} bands of {n_pw} plane waves, {cutoff_ry:.1f} Ry")


def command_of(engine, folder, name):
    return [engine, "run", "gw", os.path.join(folder, "deck.toml"), "-d",
            os.path.join(folder, name), "--device", DEVICE, "--json"]


def run(engine, folder, name):
    """Runs a job to its end; returns its result, its peak memory and its log."""
    peak, log = os.path.join(folder, "peak.json"), os.path.join(folder, name + ".log")
    watcher = os.path.join(os.path.dirname(os.path.realpath(__file__)), "peak.py")
    with open(log, "w", encoding="utf-8") as lines:
        done = subprocess.run([sys.executable, watcher, "--host-only", peak, "3600",
                               *command_of(engine, folder, name)], text=True,
                              stdout=subprocess.PIPE, stderr=lines, check=False)
    with open(log, encoding="utf-8") as lines:
        text = lines.read()
    if done.returncode != 0:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{text[-2000:]}")
    with open(peak, encoding="utf-8") as file:
        return json.loads(done.stdout), json.load(file), text


def kill_while_reading(engine, folder, name):
    """Starts a job and kills it when its file of states holds bands of half of WFN."""
    states = os.path.join(folder, name, "checkpoint", "WFN.states")
    with open(os.path.join(folder, name + ".log"), "w", encoding="utf-8") as lines:
        job = subprocess.Popen(command_of(engine, folder, name), stdout=lines, stderr=lines)
    bands = int(0.5 * math.sqrt(WFN_BYTES / 16.0))
    while job.poll() is None:
        time.sleep(0.05)
        try:
            with open(states, "rb") as file:
                finished, written = struct.unpack("<2q", file.read(32)[16:])
        except (OSError, struct.error):
            continue
        if finished > 0 or written >= bands:
            job.send_signal(signal.SIGKILL)
            job.wait()
            print(f"killed after {written} bands were counted as read")
            return
    raise SystemExit("the job ended before it was killed")


def report(name, result, peak, text):
    plan = result["summary"]["plan"]
    print(f"{name}: {result['wall_seconds']:.1f} s, host {peak['host_bytes'] / 2**20:.0f} MiB used "
          f"and {plan['host_bytes'] / 2**20:.0f} MiB planned, {MEMORY_MIB:.0f} of them for states")
    for line in re.findall(r"^WFN: .*$", text, re.MULTILINE):
        print("  " + line)
    seconds = {phase: last - first for phase, first, last, _ in peak["phases"]
               if phase.startswith("reading")} | result["summary"]["seconds"]
    print("  phases: " + ", ".join(f"{phase} {value:.1f} s" for phase, value in seconds.items()
                                   if value >= 1.0))


def main():
    if len(sys.argv) != 2:
        print("usage: large_wfn.sh ENGINE", file=sys.stderr)
        return 64
    engine = os.path.realpath(sys.argv[1])
    folder = os.environ.get("FOLDER") or os.path.join(os.path.dirname(engine), "large_wfn")
    os.makedirs(folder)
    try:
        write_inputs(folder)
        whole = run(engine, folder, "whole")
        report("undisturbed", *whole)
        kill_while_reading(engine, folder, "killed")
        resumed = run(engine, folder, "killed")
        report("resumed", *resumed)
    finally:
        shutil.rmtree(folder)
    equal = (list(results(whole[0]["summary"])) == list(results(resumed[0]["summary"])))
    print("numbers of both jobs are " + ("equal" if equal else "DIFFERENT"))
    within = whole[1]["host_bytes"] / 2**20 < MEMORY_MIB + OTHER_MEMORY_MIB
    return 0 if equal and within else 1


if __name__ == "__main__":
    sys.exit(main())
