#!/usr/bin/env python3
"""Applies the mutations of mutants.toml, one at a time, to a copy of the source tree, and runs the
simulator on each until a seed notices it. It prints the mutations with the violations that they
caused, and fails if less than 95 % were noticed.

    tests/service/simulator/mutants.py [--seeds 40] [--only WORD ...] [--work FOLDER]

The copy is built once, and each mutation rebuilds the files that it concerns. A mutation whose old
text does not occur exactly once is an error. A second run with the same folder builds only what has
changed."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

TREE = pathlib.Path(__file__).resolve().parents[3]
GOAL = 0.95


def copy_tree(to):
    names = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard", "-z"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if not (TREE / name).is_file():
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        text = (TREE / name).read_bytes()
        if not (to / name).is_file() or (to / name).read_bytes() != text:
            shutil.copyfile(TREE / name, to / name)
            shutil.copymode(TREE / name, to / name)


def build(build_folder):
    command = ["cmake", "--build", build_folder, "--target", "simulator_test", "-j", "1"]
    return subprocess.run(command, capture_output=True, text=True)


def tell_stories(build_folder, seeds):
    """Returns the first violation; "" if there is none."""
    environment = os.environ | {"QUASI_SEED": "1", "QUASI_SEEDS": str(seeds)}
    command = [build_folder / "bin" / "simulator_test", "--gtest_filter=Simulator.Stories*"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    except subprocess.TimeoutExpired:
        return "the stories do not end"
    if run.returncode == 0:
        return ""
    lines = run.stdout.splitlines()
    violations = [line.strip() for line in lines if " at event " in line and "Which is" in line]
    seeds = [word for line in lines for word in line.split() if word.startswith("QUASI_SEED=")]
    if violations and seeds:
        return f"{seeds[0]} {violations[0].removeprefix('Which is: ')}"
    return f"the program ended with status {run.returncode}"


def mutated(text, mutant):
    if text.count(mutant["old"]) != 1:
        sys.exit(f"mutants.toml: '{mutant['name']}': the old text occurs "
                 f"{text.count(mutant['old'])} times in {mutant['file']}")
    return text.replace(mutant["old"], mutant["new"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=40, help="stories per mutation")
    parser.add_argument("--only", default=[""], nargs="+",
                        help="mutations whose names contain one of these")
    parser.add_argument("--work", help="folder of the copy, which is kept")
    options = parser.parse_args()
    mutants = tomllib.loads((TREE / "tests/service/simulator/mutants.toml").read_text())["mutant"]
    for mutant in mutants:
        mutated((TREE / mutant["file"]).read_text(), mutant)
    work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="quasi-mutants-"))
    copy, build_folder = work / "tree", work / "build"
    copy_tree(copy)
    subprocess.run(["cmake", "-S", copy, "-B", build_folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
                    "-DQUASI_CUDA=OFF"], check=True, stdout=subprocess.DEVNULL)
    made = build(build_folder)
    if made.returncode != 0:
        sys.exit(made.stdout[-2000:])
    if violation := tell_stories(build_folder, options.seeds):
        sys.exit(f"without a mutation: {violation}")
    chosen = [mutant for mutant in mutants
              if any(words in mutant["name"] for words in options.only)]
    killed = 0
    for mutant in chosen:
        begun = time.monotonic()
        path = copy / mutant["file"]
        original = path.read_text()
        path.write_text(mutated(original, mutant))
        made = build(build_folder)
        noticed = tell_stories(build_folder, options.seeds) if made.returncode == 0 else ""
        path.write_text(original)
        if made.returncode != 0:
            sys.exit(f"'{mutant['name']}' does not compile:\n{made.stdout[-2000:]}")
        killed += bool(noticed)
        print(f"{'killed  ' if noticed else 'SURVIVED'} {mutant['invariant']:4} {mutant['name']}"
              f" ({time.monotonic() - begun:.0f} s) {noticed}", flush=True)
    if not options.work:
        shutil.rmtree(work)
    share = killed / len(chosen)
    print(f"{killed} of {len(chosen)} mutations were noticed: {100 * share:.1f} %")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
