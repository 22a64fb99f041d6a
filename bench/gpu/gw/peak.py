"""Runs a command and writes its peak memory to a file.

    python3 bench/gpu/gw/peak.py PEAK.json SECONDS COMMAND...

PEAK.json holds the peak resident memory of the host and the peak memory of the busiest GPU in
bytes, the latter sampled by nvidia-smi less its value before the start, or null without a GPU.
The command is killed after SECONDS. The exit status is that of the command, or 124.
"""

import json
import resource
import subprocess
import sys
import threading


def device_bytes():
    """Returns the memory in use of every GPU, or an empty list."""
    try:
        text = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [int(line) * 2**20 for line in text.split()]


def main():
    path, seconds, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    before = device_bytes()
    peak = before[:]
    ended = threading.Event()

    def watch():
        while not ended.wait(0.2):
            now = device_bytes()
            peak[:] = [max(a, b) for a, b in zip(peak, now)]

    watcher = threading.Thread(target=watch)
    if before:
        watcher.start()
    try:
        status = subprocess.run(command, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        status = 124
    ended.set()
    if before:
        watcher.join()
    used = [a - b for a, b in zip(peak, before)]
    host = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"host_bytes": host, "device_bytes": max(used) if used else None}, out)
    return status


sys.exit(main())
