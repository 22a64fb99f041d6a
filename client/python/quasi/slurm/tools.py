"""The commands of Slurm, each with a time limit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Protocol

from quasi.slurm.output import QUEUE_FORMAT, Listed, own_lines, read_queue, read_submitted

LIMIT_S = 10.0


class SlurmError(Exception):
    """A command of Slurm that failed or gave no answer in time."""


class Slurm(Protocol):
    """What the controller asks of Slurm."""

    def submit(self, name: str, options: list[str], script: Path, held: bool = False) -> int:
        """Submits a batch script under a name and returns the number of the allocation."""

    def queue(self, prefix: str) -> list[Listed]:
        """Own allocations, also those that ended within the last minutes."""

    def cancel(self, slurm_id: int) -> None:
        """Ends an allocation."""

    def drain(self, allocation: Listed) -> None:
        """Cancels an allocation that waits, and lets the worker of another one drain."""


class Commands:
    """Slurm by its commands on this machine."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder

    def _run(self, program: str, arguments: list[str]) -> str:
        path = str(Path(self._folder) / program) if self._folder else program
        try:
            ended = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, text=True,
                                   capture_output=True, timeout=LIMIT_S, errors="replace")
        except FileNotFoundError as error:
            raise SlurmError(f"{program}: not found; install slurm-client, or set 'bin'") from error
        except subprocess.TimeoutExpired as error:
            raise SlurmError(f"{program}: no answer within {LIMIT_S:.0f} s") from error
        except OSError as error:
            raise SlurmError(f"{program}: {error}") from error
        if ended.returncode != 0:
            words = " ".join(ended.stderr.split())[:400] or f"status {ended.returncode}"
            raise SlurmError(f"{program}: {words}")
        return ended.stdout

    def submit(self, name: str, options: list[str], script: Path, held: bool = False) -> int:
        # NIL: the environment of this program, with its secrets, stays here.
        arguments = ["--parsable", "--no-requeue", "--export=NIL", f"--job-name={name}",
                     f"--comment={name}", *options]
        return read_submitted(self._run("sbatch", [*arguments, *(["--hold"] if held else []),
                                                   str(script)]))

    def queue(self, prefix: str) -> list[Listed]:
        text = self._run("squeue", ["--noheader", "--states=all", "--me",
                                    f"--format={QUEUE_FORMAT}"])
        return read_queue(own_lines(text, prefix))

    def cancel(self, slurm_id: int) -> None:
        self._run("scancel", [str(slurm_id)])

    def drain(self, allocation: Listed) -> None:
        # The batch script hands the signal to its worker. An allocation that has begun meanwhile is
        # not cancelled.
        how = ["--state=PENDING"] if allocation.state == "PENDING" else ["--signal=TERM", "--batch"]
        try:
            self._run("scancel", [*how, str(allocation.slurm_id)])
        except SlurmError as error:
            if "invalid job id" not in str(error).lower():
                raise  # otherwise it has ended meanwhile
