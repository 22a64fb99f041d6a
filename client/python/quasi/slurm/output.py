"""Readers of the output of Slurm's commands. They refuse every line that they do not understand."""

from __future__ import annotations

from dataclasses import dataclass

#: Longest output of a command that is read.
MOST_BYTES = 4 << 20
#: States in which an allocation does not come back (squeue(1), JOB STATE CODES).
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
         "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}
#: States in which it waits, runs or ends.
ALIVE = {"COMPLETING", "CONFIGURING", "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
         "RESIZING", "RESV_DEL_HOLD", "RUNNING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT",
         "STOPPED", "SUSPENDED"}
#: Format of ``squeue`` whose lines ``read_queue`` reads.
QUEUE_FORMAT = "%i|%T|%j"


class OutputError(Exception):
    """Output of a command of Slurm that has another form than expected."""


@dataclass(frozen=True)
class Listed:
    """One allocation as ``squeue`` lists it."""

    slurm_id: int
    state: str
    name: str

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def _number(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise OutputError(f"{what}: expected the number of an allocation, got {text[:80]!r}")
    return int(text)


def read_submitted(text: str) -> int:
    """Number of the allocation from ``sbatch --parsable``: ``4711`` or ``4711;cluster``."""
    lines = text.strip().splitlines()
    if len(lines) != 1:
        raise OutputError(f"sbatch: expected one line, got {len(lines)}")
    number, _, cluster = lines[0].partition(";")
    if ";" in cluster:
        raise OutputError(f"sbatch: expected NUMBER;CLUSTER, got {lines[0][:80]!r}")
    return _number(number, "sbatch")


def read_queue(text: str) -> list[Listed]:
    """Allocations from ``squeue --noheader --format=QUEUE_FORMAT``.

    A name may hold any character but a line end, so it comes last. Elements of job arrays
    (``17_4``) and unknown states are refused, because this program submits neither.
    """
    if len(text) > MOST_BYTES:
        raise OutputError(f"squeue: more than {MOST_BYTES} characters")
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        parts = line.split("|", 2)
        if len(parts) != 3:
            raise OutputError(f"squeue: expected NUMBER|STATE|NAME, got {line[:80]!r}")
        state = parts[1].strip()
        if state not in ENDED and state not in ALIVE:
            raise OutputError(f"squeue: unknown state {state[:40]!r}")
        found.append(Listed(_number(parts[0].strip(), "squeue"), state, parts[2].strip()))
    return found


def own_lines(text: str, prefix: str) -> str:
    """Lines of ``squeue`` whose name begins with ``prefix``; others belong to other programs."""
    return "\n".join(line for line in text.splitlines()
                     if line.split("|", 2)[-1].strip().startswith(prefix))
