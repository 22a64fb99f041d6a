"""Fakes of Slurm and of a server, and Slurm's commands as one program with scripted failures."""

from __future__ import annotations

import random
import stat
from pathlib import Path

from quasi.slurm.demand import Waiting
from quasi.slurm.output import Listed
from quasi.slurm.tools import SlurmError


class Crash(BaseException):
    """The end of the program at one point, as by kill -9."""


class FakeServer:
    """A server with waiting jobs and workers."""

    def __init__(self) -> None:
        self.jobs: list[Waiting] = []
        self.online: dict[str, bool] = {}

    def store(self) -> str:
        return "s_0123456789ABCDEFGHJKMNPQRS"

    def waiting(self, pool: str) -> list[Waiting]:
        return list(self.jobs)

    def workers(self, pool: str) -> dict[str, bool]:
        return dict(self.online)


class FakeSlurm:
    """A Slurm that keeps allocations. ``fail`` names what the next calls do instead of working.

    - "refuse": the command fails and nothing happens;
    - "accept and fail": the allocation is made, and the answer is lost;
    - "accept and crash": the same, and the program dies;
    - "crash": the program dies before the command.
    """

    def __init__(self) -> None:
        self.allocations: dict[int, Listed] = {}
        self.fail: list[str] = []
        self.drained: list[int] = []
        self.number = 100
        self.most_open = 0

    def _script(self) -> str:
        what = self.fail.pop(0) if self.fail else ""
        if what == "crash":
            raise Crash
        if what == "refuse":
            raise SlurmError("sbatch: error: invalid partition")
        return what

    def submit(self, name: str, options: list[str], script: Path, held: bool = False) -> int:
        what = self._script()
        self.number += 1
        self.allocations[self.number] = Listed(self.number, "PENDING", name)
        self.most_open = max(self.most_open, len(self.open()))
        if what == "accept and crash":
            raise Crash
        if what == "accept and fail":
            raise SlurmError("sbatch: no answer within 10 s")
        return self.number

    def queue(self, prefix: str) -> list[Listed]:
        self._script()
        return [each for each in self.allocations.values() if each.name.startswith(prefix)]

    def cancel(self, slurm_id: int) -> None:
        self.move(slurm_id, "CANCELLED")

    def drain(self, allocation: Listed) -> None:
        self.drained.append(allocation.slurm_id)

    def move(self, slurm_id: int, state: str) -> None:
        self.allocations[slurm_id] = Listed(slurm_id, state, self.allocations[slurm_id].name)

    def open(self) -> list[Listed]:
        return [each for each in self.allocations.values() if not each.has_ended]


def write_commands(folder: Path) -> Path:
    """Writes sbatch, squeue and scancel that keep allocations in ``folder``/allocations.

    A file ``folder``/sbatch.fail, squeue.fail … makes the next call fail: its first line is
    printed as the error, "hang" sleeps, "silent" prints nothing.
    """
    program = folder / "sbatch"
    program.write_text(f"""#!/usr/bin/python3
import pathlib, sys, time
folder = pathlib.Path({str(folder)!r})
tool = pathlib.Path(sys.argv[0]).name
fail = folder / (tool + ".fail")
if fail.exists():
    what = fail.read_text().strip()
    fail.unlink()
    if what == "hang":
        time.sleep(60)
    if what == "silent":
        sys.exit(0)
    print(what, file=sys.stderr)
    sys.exit(1)
table = folder / "allocations"
rows = [line.split("|") for line in table.read_text().splitlines()] if table.exists() else []
if tool == "sbatch":
    if "--export=NIL" not in sys.argv or "--no-requeue" not in sys.argv:
        sys.exit("wrong flags: " + " ".join(sys.argv))
    name = next(word for word in sys.argv if word.startswith("--job-name=")).split("=")[1]
    rows.append([str(100 + len(rows)), "PENDING", name])
    print(rows[-1][0])
elif tool == "squeue":
    print("77|RUNNING|another program's job")
    print("78_1|RUNNING|an array")
    for row in rows:
        print("|".join(row))
else:
    rows = [[row[0], "CANCELLED", row[2]] if row[0] == sys.argv[1] else row for row in rows]
table.write_text("".join("|".join(row) + "\\n" for row in rows))
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for name in ("squeue", "scancel"):
        (folder / name).symlink_to(program)
    return folder


def damaged(text: str, source: random.Random) -> str:
    """The text with a few characters replaced, removed or repeated."""
    characters = list(text)
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(characters) + 1)
        what = source.randrange(3)
        if what == 0:
            characters.insert(at, source.choice("|_;-+0 9\n\x00\ud7ffé٣RUNNING"))
        elif what == 1 and characters:
            del characters[min(at, len(characters) - 1)]
        elif characters:
            characters[at:at] = characters[:source.randint(1, 40)]
    return "".join(characters)
