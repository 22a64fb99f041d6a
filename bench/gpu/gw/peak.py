"""Runs a command and writes its peak memory and the course of its phases to a file.

    python3 bench/gpu/gw/peak.py [--host-only] PEAK.json SECONDS COMMAND...

PEAK.json holds the peak resident memory of the host and the peak memory of the busiest GPU in
bytes, the latter sampled by nvidia-smi less its value before the start, or null without a GPU and
with --host-only. `phases` has one [name, first, last, percent] for each phase that the command
reports on its terminal: seconds from the start to its first and its last report, and the share that
was reached. The command is killed after SECONDS. The exit status is that of the command, or 124.
"""

import json
import os
import re
import resource
import subprocess
import sys
import threading
import time

# A report of the engine's TerminalProgress: "phase  12.3 %" at the begin of a line.
REPORT = re.compile(r"\r\x1b\[K(\S.*?)\s+([\d.]+) %")
# A report goes on to the next one; a line of the log that follows it ends with a line feed.
CLEARED = re.compile(r"\r\x1b\[K(\S[^\r\n]* %[^\r\n]*(?=\r\x1b|$))?")


def device_bytes():
    """Returns the memory in use of every GPU, or an empty list."""
    try:
        text = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [int(line) * 2**20 for line in text.split()]


class Phases(threading.Thread):
    """Reads the terminal of a command, keeps its phases and passes its other lines on."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal, self.start_s, self.found, self.rest = terminal, time.monotonic(), [], ""

    def run(self):
        while True:
            try:
                read = os.read(self.terminal, 65536)
            except OSError:  # the command has closed its end
                break
            if not read:
                break
            self.take(self.rest + read.decode(errors="replace"))
        sys.stderr.write(self.rest.replace("\r\x1b[K", ""))

    def take(self, text):
        """Takes complete lines and reports from the text and keeps what follows them."""
        now_s = round(time.monotonic() - self.start_s, 2)
        for name, percent in REPORT.findall(text):
            if not self.found or self.found[-1][0] != name:
                self.found.append([name, now_s, now_s, 0.0])
            self.found[-1][2:] = [now_s, float(percent)]
        *lines, self.rest = CLEARED.sub("", text).split("\n")
        for line in lines:
            print(line.rstrip("\r"), file=sys.stderr)


def main():
    host_only = sys.argv[1] == "--host-only"
    path, seconds, command = sys.argv[1 + host_only], float(sys.argv[2 + host_only]), \
        sys.argv[3 + host_only:]
    before = [] if host_only else device_bytes()
    peak = before[:]
    ended = threading.Event()

    def watch():
        while not ended.wait(0.2):
            now = device_bytes()
            peak[:] = [max(a, b) for a, b in zip(peak, now)]

    watcher = threading.Thread(target=watch)
    if before:
        watcher.start()
    reader, writer = os.openpty()
    phases = Phases(reader)
    phases.start()
    try:
        status = subprocess.run(command, timeout=seconds, stderr=writer).returncode
    except subprocess.TimeoutExpired:
        status = 124
    ended.set()
    os.close(writer)
    phases.join()
    if before:
        watcher.join()
    used = [a - b for a, b in zip(peak, before)]
    host = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"host_bytes": host, "device_bytes": max(used) if used else None,
                   "phases": phases.found}, out)
    return status


sys.exit(main())
