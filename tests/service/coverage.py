#!/usr/bin/env python3
"""Runs the tests of the service in the build of the preset `coverage`, and prints the share of the
lines of server, worker daemon and client that they run. It fails below 90 %, and if a branch of the
two state machines was never taken. It needs Debian's gcovr.

    cmake --preset coverage && cmake --build --preset coverage
    tests/service/coverage.py [--no-tests] [-j 2]

Programs that a test kills leave no counts, so the true shares are higher. quasi-cage leaves none at
all: it ends by exec, inside the confinement that hides the files of the counts. Its lines are
printed and have no goal; cage_test runs them. Lines of generated code and of the libraries do not
count."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILD = TREE / "build" / "coverage"
GOAL = 0.90
PARTS = {"server": "server/", "worker daemon": "workers/daemon/", "client": "client/",
         "shared": "proto/wire/", "cage": "workers/cage/"}
UNCOUNTED = ("cage",)
STATE_MACHINES = ("server/queue/job_state.cpp", "workers/daemon/attempt/attempt_machine.cpp")


def run_tests(jobs):
    for counts in BUILD.rglob("*.gcda"):
        counts.unlink()
    command = ["ctest", "--preset", "coverage", "-j", str(jobs)]
    if subprocess.run(command, cwd=TREE).returncode != 0:
        print("a test failed; its lines count all the same", file=sys.stderr)


def counted_lines(jobs):
    """The report of gcovr: a list of files with their lines and branches."""
    command = ["gcovr", "--root", TREE, "--object-directory", BUILD, "-j", str(jobs), "--json", "-",
               "--exclude-throw-branches", "--exclude-unreachable-branches",
               "--gcov-ignore-parse-errors"]
    for folder in ("server", "workers/daemon", "workers/cage", "client", "proto/wire"):
        command += ["--filter", f"{TREE / folder}/"]
    report = subprocess.run(command + [BUILD], cwd=TREE, check=True, capture_output=True, text=True)
    return json.loads(report.stdout)["files"]


def share(run, of):
    return run / of if of else 1.0


def print_table(files):
    """Prints the parts and the files that lack most lines. Returns True if each part has enough."""
    lines = collections.Counter()
    missing = []
    for file in files:
        seen = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        run = sum(line["count"] > 0 for line in seen)
        missing.append((len(seen) - run, len(seen), file["file"]))
        for part, folders in PARTS.items():
            if file["file"].startswith(folders):
                lines[part, "run"] += run
                lines[part, "of"] += len(seen)
    is_enough = True
    for part in PARTS:
        value = share(lines[part, "run"], lines[part, "of"])
        is_enough &= value >= GOAL or part in UNCOUNTED
        print(f"{part:14} {lines[part, 'run']:6} of {lines[part, 'of']:6} lines  {value:6.1%}")
    print("files that lack most lines:")
    for lacking, of, name in sorted(missing, reverse=True)[:25]:
        print(f"  {lacking:5} of {of:5}  {name}")
    return is_enough


def print_branches(files):
    """Prints the branches of the state machines that were never taken. True: there are none."""
    all_taken = True
    for file in files:
        if file["file"] not in STATE_MACHINES:
            continue
        branches = [(line["line_number"], branch["count"])
                    for line in file["lines"] for branch in line["branches"]]
        never = sorted({number for number, count in branches if count == 0})
        all_taken &= not never
        print(f"{file['file']}: {len(branches)} branches, never taken in lines {never or 'none'}")
    return all_taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--no-tests", action="store_true", help="read the counts of the last run")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="processes at once")
    arguments = parser.parse_args()
    if not arguments.no_tests:
        run_tests(arguments.jobs)
    files = counted_lines(arguments.jobs)
    is_enough = print_table(files)
    return 0 if print_branches(files) and is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
