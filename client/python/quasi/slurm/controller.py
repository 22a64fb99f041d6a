"""Decides when a pool gets another allocation. It knows no clock, no network and no process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quasi.slurm.demand import Server, Waiting
from quasi.slurm.ledger import Ledger, Row, State
from quasi.slurm.output import Listed, OutputError
from quasi.slurm.tools import Slurm, SlurmError

#: An allocation of which Slurm knows nothing for this long is forgotten.
UNKNOWN_LIMIT_S = 600.0
#: An intent that Slurm does not list by then was never submitted. sbatch itself has 10 s.
INTENT_LIMIT_S = 60.0
EARLY_S = 60.0
EARLY_ENDS = 3
PAUSE_FIRST_S = 60.0
PAUSE_MOST_S = 3_600.0


@dataclass(frozen=True)
class PoolSettings:
    """Settings of one pool."""

    name: str
    time_limit_s: float
    margin_s: float = 180.0        # time before the end at which a worker drains
    max_workers: int = 1
    backlog: int = 1               # allocations without a worker at once
    min_depth: int = 1             # jobs that must wait before the first allocation
    slots: int = 1                 # jobs that one worker runs at once
    gpus: int = 0                  # GPUs of one worker
    default_max_runtime_s: float = 86_400.0
    options: list[str] = field(default_factory=list)  # of sbatch

    def fits(self, job: Waiting) -> bool:
        """True if a new allocation has the GPUs and the time for the job, as the server judges."""
        left_s = self.time_limit_s - self.margin_s
        limit_s = job.max_runtime_s or self.default_max_runtime_s
        in_time = limit_s <= left_s or 0.0 < job.checkpoint_s <= left_s / 2.0
        return job.gpus <= self.gpus and in_time


@dataclass(frozen=True)
class Plan:
    """What the next step would do, and why."""

    new: int
    fitting: int
    waiting: int
    workers: int
    pending: int
    why: str


def plan(settings: PoolSettings, state: State, jobs: list[Waiting], workers: dict[str, bool],
         now_s: float) -> Plan:
    """Number of allocations to submit now, which never exceeds the backlog."""
    fitting = sum(settings.fits(job) for job in jobs)
    alive = sum(workers.values())
    pending = sum(row.name not in workers for row in state.open_rows())
    wanted = min(settings.max_workers, -(-fitting // settings.slots)) - alive - pending
    new = max(0, min(wanted, settings.backlog - pending))
    why = f"{fitting} of {len(jobs)} waiting jobs fit, {alive} workers, {pending} pending"
    if now_s < state.paused_until_s:
        return Plan(0, fitting, len(jobs), alive, pending,
                    f"paused for {state.paused_until_s - now_s:.0f} s more: {state.trouble}")
    if fitting < settings.min_depth:
        new, why = 0, why + f"; min_depth is {settings.min_depth}"
    return Plan(new, fitting, len(jobs), alive, pending, why)


class Controller:
    """One pool. ``step`` is called every 30 s and by nobody else."""

    def __init__(self, settings: PoolSettings, ledger: Ledger, slurm: Slurm, server: Server,
                 script: Path, last_words: Callable[[str], str] = lambda _name: "") -> None:
        self.settings = settings
        self.ledger = ledger
        self.slurm = slurm
        self.server = server
        self.script = script
        self.last_words = last_words   # end of the output of an allocation, by its name
        self.state = ledger.read()

    @property
    def prefix(self) -> str:
        return f"quasi-{self.state.store[-8:]}-{self.settings.name}-"

    def step(self, now_s: float) -> Plan:
        """Compares the ledger with Slurm and submits what the waiting jobs need.

        Without an answer of Slurm nothing is submitted. Errors of the server come through.
        """
        self._know_store()
        workers = self.server.workers(self.settings.name)
        jobs = self.server.waiting(self.settings.name)
        listed = self._listed()
        self._reconcile(listed, workers, now_s)
        self.ledger.write(self.state)
        decided = plan(self.settings, self.state, jobs, workers, now_s)
        if listed is None:
            return Plan(0, decided.fitting, decided.waiting, decided.workers, decided.pending,
                        f"Slurm gives no answer: {self.state.trouble}")
        for _ in range(decided.new):
            if not self._submit(now_s):
                break
        return decided

    def drain(self) -> list[Row]:
        """Ends all allocations: those that wait at once, the others after their worker's drain.

        Returns the rows of the allocations. An error of Slurm comes through.
        """
        self._know_store()
        for each in self.slurm.queue(self.prefix):
            if not each.has_ended:
                self.slurm.drain(each)
        return self.state.open_rows()

    def _know_store(self) -> None:
        store = self.server.store()
        if self.state.store and self.state.store != store and self.state.open_rows():
            raise SlurmError(f"the ledger {self.ledger.file} belongs to the store "
                             f"{self.state.store}, and the server has {store}; cancel its "
                             "allocations and remove it, or name another spool")
        self.state.store = store

    def _listed(self) -> list[Listed] | None:
        try:
            # The rest of a name is a number; otherwise it is of the pool "NAME-…".
            return [each for each in self.slurm.queue(self.prefix)
                    if each.name.removeprefix(self.prefix).isdigit()]
        except (SlurmError, OutputError) as error:
            self.state.trouble = str(error)
            return None

    def _reconcile(self, listed: list[Listed] | None, workers: dict[str, bool],
                   now_s: float) -> None:
        by_name = {each.name: each for each in listed or []}
        known = {row.name: row for row in self.state.rows}
        for name, each in by_name.items():
            if name not in known and not each.has_ended:
                # Slurm accepted a submission whose intent was given up.
                self.state.rows.append(Row(name, now_s, each.slurm_id))
            elif name in known and not known[name].is_open and not each.has_ended:
                known[name].ended_s = None
        for row in self.state.open_rows():
            row.had_worker = row.had_worker or row.name in workers
            if row.had_worker:
                self.state.early_ends = self.state.pauses = 0
            self._update(row, by_name.get(row.name), row.name in workers, now_s)

    def _update(self, row: Row, each: Listed | None, has_worker: bool, now_s: float) -> None:
        if each is not None:
            row.slurm_id, row.unknown_since_s = each.slurm_id, None
            if each.state == "RUNNING" and row.started_s is None:
                row.started_s = now_s
            if each.has_ended:
                self._end(row, each.state, now_s)
            return
        if has_worker:
            row.unknown_since_s = None
            return
        if row.unknown_since_s is None:
            row.unknown_since_s = now_s
        limit_s = INTENT_LIMIT_S if row.slurm_id is None else UNKNOWN_LIMIT_S
        if now_s - row.unknown_since_s >= limit_s:
            self._end(row, "unknown to Slurm", now_s, counts=row.slurm_id is not None)

    def _end(self, row: Row, why: str, now_s: float, counts: bool = True) -> None:
        row.ended_s, row.why = now_s, why
        ran_s = now_s - (row.started_s if row.started_s is not None else now_s)
        if row.had_worker or not counts or ran_s >= EARLY_S:
            return
        words = self.last_words(row.name)
        self._note_early_end(f"allocation {row.slurm_id} ({row.name}) ended without a worker: "
                             f"{why}" + (f"; its last words: {words}" if words else ""), now_s)

    def _note_early_end(self, trouble: str, now_s: float) -> None:
        self.state.trouble = trouble
        self.state.early_ends += 1
        if self.state.early_ends < EARLY_ENDS:
            return
        pause_s = min(PAUSE_FIRST_S * 2.0 ** min(self.state.pauses, 20), PAUSE_MOST_S)
        self.state.paused_until_s = now_s + pause_s
        self.state.pauses += 1
        # After the pause one more early end pauses again.
        self.state.early_ends = EARLY_ENDS - 1

    def _submit(self, now_s: float) -> bool:
        name = f"{self.prefix}{self.state.next_number}"
        row = Row(name, now_s)
        self.state.next_number += 1
        self.state.rows.append(row)
        self.ledger.write(self.state)
        try:
            row.slurm_id = self.slurm.submit(name, self.settings.options, self.script)
        except (SlurmError, OutputError) as error:
            # Slurm may have accepted it all the same, so the intent stays until Slurm was asked.
            self._note_early_end(str(error), now_s)
            self.ledger.write(self.state)
            return False
        self.ledger.write(self.state)
        return True
