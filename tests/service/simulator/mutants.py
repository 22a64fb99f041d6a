#!/usr/bin/env python3
"""Applies the mutations in mutants/, one at a time, to a copy of the source tree, and runs the
simulator on each until a seed notices it. It prints a table of the mutations with the violations
that they caused, and fails if less than 95 % were noticed.

    tests/service/simulator/mutants.py [--seeds 100] [--only WORD ...] [--work FOLDER]

The copy is built with the preset `release`, so that a compiler cache (ccache) that is named in
CMAKE_CXX_COMPILER_LAUNCHER and the like has most objects already. A mutation rebuilds the files
that it concerns. A folder given with --work is kept: a second run copies and builds only what has
changed, and takes over the results of unchanged mutations and an unchanged program, so that it
continues a run that was cut off. A mutation whose old text does not occur exactly once is an
error."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

TREE = pathlib.Path(__file__).resolve().parents[3]
TABLES = TREE / "tests/service/simulator/mutants"
GOAL = 0.95
STORIES_TIMEOUT_S = 1_800


def copy_tree(to):
    """Makes `to` a copy of the sources here. Files that are equal keep their time, so that they are
    not compiled again."""
    names = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard", "-z"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    present = {name for name in names if name and (TREE / name).is_file()}
    for name in present:
        text = (TREE / name).read_bytes()
        if (to / name).is_file() and (to / name).read_bytes() == text:
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TREE / name, to / name)
        shutil.copymode(TREE / name, to / name)
    for path in [path for path in to.rglob("*") if path.is_file()]:
        name = str(path.relative_to(to))
        if name not in present and not name.startswith("build/"):
            path.unlink()


class Program:
    """The simulator, built from the copy of the tree."""

    def __init__(self, tree, jobs):
        self.tree, self.folder, self.jobs = tree, tree / "build" / "release", jobs
        self.binary = self.folder / "bin" / "simulator_test"

    def configure(self):
        if not (self.folder / "build.ninja").is_file():
            subprocess.run(["cmake", "--preset", "release"], cwd=self.tree, check=True,
                           stdout=subprocess.DEVNULL)

    def build(self):
        """Returns the compiler's complaint; "" if there is none."""
        made = subprocess.run(["cmake", "--build", self.folder, "--target", "simulator_test",
                               "-j", str(self.jobs)], capture_output=True, text=True)
        return made.stdout[-4000:] if made.returncode != 0 else ""

    def digest(self):
        return hashlib.sha256(self.binary.read_bytes()).hexdigest()

    def tell_stories(self, first, seeds):
        """Returns the first violation; "" if there is none."""
        environment = os.environ | {"QUASI_SEED": str(first), "QUASI_SEEDS": str(seeds)}
        command = [self.binary, "--gtest_filter=Simulator.Stories*"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, env=environment,
                                 timeout=STORIES_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "the stories do not end"
        if run.returncode == 0:
            return ""
        lines = run.stdout.splitlines()
        violations = [line.strip().removeprefix("Which is: ").strip('"') for line in lines
                      if " at event " in line and "Which is: " in line]
        seeds = [word for line in lines for word in line.split() if word.startswith("QUASI_SEED=")]
        if violations and seeds:
            return f"{seeds[0].removeprefix('QUASI_SEED=')}: {violations[0]}"
        return f"the program ended with status {run.returncode}"


class Results:
    """What earlier runs with the same folder found. A result counts again if the mutation, the
    program without a mutation and the stories are the same."""

    def __init__(self, path, program_digest, first, seeds):
        self.path, self.program = path, program_digest
        self.first, self.seeds = first, seeds
        self.known = json.loads(path.read_text()) if path.is_file() else {}

    def key(self, mutant):
        parts = [self.program, mutant["file"], mutant["old"], mutant["new"], str(self.first)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def find(self, mutant):
        """Returns the violation that is known for the mutation, "" if it is known to survive, and
        None if it was not tried."""
        found = self.known.get(self.key(mutant))
        if found and (found["noticed"] or found["seeds"] >= self.seeds):
            return found["noticed"]
        return None

    def keep(self, mutant, noticed):
        self.known[self.key(mutant)] = {"name": mutant["name"], "seeds": self.seeds,
                                        "noticed": noticed}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.known, indent=1))
        new.replace(self.path)


def mutated(text, mutant):
    if text.count(mutant["old"]) != 1:
        sys.exit(f"mutants.toml: '{mutant['name']}': the old text occurs "
                 f"{text.count(mutant['old'])} times in {mutant['file']}")
    return text.replace(mutant["old"], mutant["new"])


def try_mutant(program, mutant, options):
    """Returns the violation that the mutation causes; "" if it survives."""
    path = program.tree / mutant["file"]
    original = path.read_text()
    path.write_text(mutated(original, mutant))
    try:
        if complaint := program.build():
            sys.exit(f"'{mutant['name']}' does not compile:\n{complaint}")
        return program.tell_stories(options.first, options.seeds)
    finally:
        path.write_text(original)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="stories per mutation")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", default=[""], nargs="+",
                        help="mutations whose names contain one of these")
    parser.add_argument("--work", help="folder of the copy and of the results, which is kept")
    parser.add_argument("--jobs", type=int, default=1, help="compilers that run at a time")
    return parser.parse_args()


def main():
    options = read_options()
    mutants = [mutant for table in sorted(TABLES.glob("*.toml"))
               for mutant in tomllib.loads(table.read_text())["mutant"]]
    for mutant in mutants:
        mutated((TREE / mutant["file"]).read_text(), mutant)
    chosen = [mutant for mutant in mutants
              if any(words in mutant["name"] for words in options.only)]
    work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="quasi-mutants-")).resolve()
    program = Program(work / "tree", options.jobs)
    begun = time.monotonic()
    copy_tree(program.tree)
    program.configure()
    if complaint := program.build():
        sys.exit(complaint)
    results = Results(work / "results.json", program.digest(), options.first, options.seeds)
    none = {"name": "no mutation", "file": "", "old": "", "new": ""}
    violation = results.find(none)
    if violation is None:
        violation = program.tell_stories(options.first, options.seeds)
        results.keep(none, violation)
    if violation:
        sys.exit(f"without a mutation: {violation}")
    print(f"built, and {options.seeds} seeds without a mutation and without a violation "
          f"({time.monotonic() - begun:.0f} s)", flush=True)
    killed = 0
    for mutant in chosen:
        begun = time.monotonic()
        noticed = results.find(mutant)
        if noticed is None:
            noticed = try_mutant(program, mutant, options)
            results.keep(mutant, noticed)
        killed += bool(noticed)
        print(f"{'killed  ' if noticed else 'SURVIVED'} {mutant['invariant']:4} {mutant['name']}"
              f" ({time.monotonic() - begun:.0f} s)" + (f" {noticed[:140]}" if noticed else ""),
              flush=True)
    if not options.work:
        shutil.rmtree(work)
    share = killed / len(chosen)
    print(f"{killed} of {len(chosen)} mutations were noticed: {100 * share:.1f} %")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
