"""The allocations of a pool on disk. A row is synced before its allocation is submitted."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

KEPT_ENDED = 50


class LedgerError(Exception):
    """A ledger that cannot be read."""


@dataclass
class Row:
    """One allocation, from the intent to submit it until its end."""

    name: str
    intended_s: float                 # wall clock
    slurm_id: int | None = None       # None: not known to be submitted
    started_s: float | None = None    # when it was first seen running
    unknown_since_s: float | None = None  # Slurm did not list it from this time on
    had_worker: bool = False
    ended_s: float | None = None
    why: str = ""                     # how it ended

    @property
    def is_open(self) -> bool:
        return self.ended_s is None


@dataclass
class State:
    """Everything that a pool remembers."""

    store: str = ""                   # id of the server's store, part of all names
    next_number: int = 1
    rows: list[Row] = field(default_factory=list)
    early_ends: int = 0               # allocations in a row that ended early without a worker
    pauses: int = 0                   # pauses in a row; each is twice as long
    paused_until_s: float = 0.0
    trouble: str = ""                 # why it paused, or why the last step did nothing

    def open_rows(self) -> list[Row]:
        return [row for row in self.rows if row.is_open]


class Ledger:
    """A file with the state of one pool, replaced as a whole."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._written = ""

    def read(self) -> State:
        """State of the file, or an empty one if there is none.

        Raises ``LedgerError`` for a damaged file: to forget allocations could submit them twice.
        """
        try:
            document = json.loads(self.file.read_text())
            rows = [Row(**row) for row in document.pop("rows")]
            return State(rows=rows, **document)
        except FileNotFoundError:
            return State()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(f"{self.file} is damaged: {error}; cancel the allocations of this "
                              "pool (squeue --me), then remove the file") from error

    def write(self, state: State) -> None:
        """Replaces the file, if the state has changed, and returns when it is on the disk."""
        ended = [row for row in state.rows if not row.is_open]
        state.rows = ended[-KEPT_ENDED:] + state.open_rows()
        text = json.dumps(asdict(state), indent=1)
        if text == self._written:
            return
        part = self.file.with_name(self.file.name + ".part")
        with part.open("w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        part.replace(self.file)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._written = text
