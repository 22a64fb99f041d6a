"""Tests pools of Slurm with fakes: no runaway, no lost allocation, pauses, crash points."""

from __future__ import annotations

import itertools
import os
import random
import stat
from pathlib import Path

import pytest
from fakes import Crash, FakeServer, FakeSlurm, damaged, write_commands

from quasi.slurm import controller, settings, tools
from quasi.slurm.controller import Controller, PoolSettings
from quasi.slurm.demand import Waiting
from quasi.slurm.ledger import Ledger, LedgerError
from quasi.slurm.output import Listed, OutputError, own_lines, read_queue, read_submitted

HOUR = 3_600.0


class World:
    """A pool with its fakes. The time is set by the test."""

    def __init__(self, folder: Path, **values: object) -> None:
        self.settings = PoolSettings(name="gpu", time_limit_s=2 * HOUR,
                                     **{"max_workers": 4, "backlog": 2, **values})
        self.slurm = FakeSlurm()
        self.server = FakeServer()
        self.folder = folder
        self.now = 1_000.0
        self.start()

    def start(self) -> None:
        """Starts the program, again after a crash."""
        self.controller = Controller(self.settings, Ledger(self.folder / "gpu.json"), self.slurm,
                                     self.server, self.folder / "gpu.sbatch",
                                     lambda name: f"the last words of {name}")

    def wait_for_jobs(self, count: int, max_runtime_s: float = HOUR, gpus: int = 0,
                      checkpoint_s: float = 0.0) -> None:
        self.server.jobs += [Waiting(f"j_{len(self.server.jobs) + i}", gpus, max_runtime_s,
                                     checkpoint_s) for i in range(count)]

    def step(self, pass_s: float = 30.0) -> controller.Plan:
        self.now += pass_s
        return self.controller.step(self.now)

    def begin(self, slurm_id: int) -> None:
        """The allocation starts, and its worker registers."""
        self.slurm.move(slurm_id, "RUNNING")
        self.server.online[self.slurm.allocations[slurm_id].name] = True

    def end(self, slurm_id: int, state: str = "COMPLETED") -> None:
        self.slurm.move(slurm_id, state)
        self.server.online.pop(self.slurm.allocations[slurm_id].name, None)


@pytest.fixture()
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_no_job_no_allocation(world: World) -> None:
    assert world.step().new == 0
    assert world.slurm.allocations == {}


def test_the_backlog_and_the_most_workers_bound_the_allocations(world: World) -> None:
    world.wait_for_jobs(100)
    for _ in range(10):
        world.step()
    assert len(world.slurm.open()) == 2, "two wait in Slurm, and that is the backlog"
    for _ in range(10):
        for each in world.slurm.open():
            world.begin(each.slurm_id)
        world.step()
    assert len(world.slurm.open()) == 4 == world.settings.max_workers


def test_slots_and_depth(tmp_path: Path) -> None:
    world = World(tmp_path, slots=4, min_depth=3)
    world.wait_for_jobs(2)
    assert "min_depth" in world.step().why
    assert not world.slurm.allocations
    world.wait_for_jobs(3)
    world.step()
    assert len(world.slurm.allocations) == 2, "five jobs, four of which share a worker"


# A job that fits the time of an allocation makes one, and a job that does not fit makes none.
# One that writes checkpoints fits if two of them do.
def test_only_jobs_that_fit_make_allocations(world: World) -> None:
    world.wait_for_jobs(5, max_runtime_s=3 * HOUR)
    world.wait_for_jobs(5, max_runtime_s=0.0)
    world.wait_for_jobs(5, gpus=1)
    world.wait_for_jobs(5, max_runtime_s=2 * HOUR - 179.0)
    decided = world.step()
    assert (decided.fitting, decided.waiting) == (0, 20)
    world.wait_for_jobs(1, max_runtime_s=2 * HOUR - 180.0)
    world.wait_for_jobs(1, max_runtime_s=100 * HOUR, checkpoint_s=HOUR / 2)
    world.wait_for_jobs(1, max_runtime_s=100 * HOUR, checkpoint_s=HOUR)
    assert world.step().fitting == 2


# The program dies at every call of Slurm in turn, before it, or after Slurm has accepted it.
@pytest.mark.parametrize("what", ["crash", "accept and crash", "accept and fail", "refuse"])
@pytest.mark.parametrize("at", range(6))
def test_a_crash_between_intent_and_submission_doubles_nothing(
        world: World, what: str, at: int) -> None:
    world.wait_for_jobs(3)
    world.slurm.fail = [""] * at + [what]
    for _ in range(12):
        try:
            world.step()
        except Crash:
            world.start()
    assert len(world.slurm.open()) == 2
    assert world.slurm.most_open == 2, "no runaway"
    names = [each.name for each in world.slurm.allocations.values()]
    assert len(set(names)) == len(names), "no name twice"
    known = {row.slurm_id for row in world.controller.state.open_rows()}
    assert known == {each.slurm_id for each in world.slurm.open()}


# Random commands of Slurm, the server, time and crashes against two rules.
@pytest.mark.parametrize("seed", range(20))
def test_rules_hold_in_random_histories(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    world = World(tmp_path)
    for _ in range(100):
        what = source.randrange(8)
        if what == 0:
            world.wait_for_jobs(source.randint(1, 3))
        elif what == 1:
            world.server.jobs = []
        elif what == 2 and world.slurm.open():
            world.begin(source.choice(world.slurm.open()).slurm_id)
        elif what == 3 and world.slurm.open():
            world.end(source.choice(world.slurm.open()).slurm_id,
                      source.choice(["COMPLETED", "FAILED", "TIMEOUT"]))
        elif what == 4:
            world.slurm.fail = [source.choice(["", "refuse", "crash", "accept and crash",
                                               "accept and fail"])
                                for _ in range(source.randint(1, 3))]
        try:
            world.step(source.choice([1.0, 30.0, 700.0]))
        except Crash:
            world.start()
        waits = [each for each in world.slurm.open() if each.name not in world.server.online]
        # An intent that Slurm has not listed for a minute is given up; the fake never hides one.
        assert len(waits) <= world.settings.backlog, seed
        assert len(world.slurm.open()) <= world.settings.max_workers, seed


# Slurm accepts a submission after its intent was given up: it is taken up again, and no other one
# is submitted beside it.
def test_a_late_allocation_is_adopted(world: World) -> None:
    world.wait_for_jobs(1)
    world.slurm.fail = ["", "accept and fail"]
    world.step()
    late = world.slurm.open()[0]
    world.slurm.allocations.clear()
    for _ in range(4):
        world.server.jobs = []
        world.step()
    assert world.controller.state.open_rows() == []
    world.slurm.allocations[late.slurm_id] = late
    world.wait_for_jobs(1)
    world.step()
    world.step()
    assert len(world.slurm.open()) == 1
    (world.folder / "gpu.json").unlink()
    world.start()
    world.step()
    assert [row.slurm_id for row in world.controller.state.open_rows()] == [late.slurm_id]
    assert len(world.slurm.open()) == 1, "also without a ledger"


def test_a_drain_ends_what_is_open(world: World) -> None:
    world.wait_for_jobs(5)
    world.step()
    first = world.slurm.open()[0].slurm_id
    world.begin(first)
    world.step()
    ended = world.slurm.open()[-1].slurm_id
    world.end(ended)
    world.controller.drain()
    assert sorted(world.slurm.drained) == sorted(each.slurm_id for each in world.slurm.open())
    assert ended not in world.slurm.drained and first in world.slurm.drained


# R24: an allocation that Slurm does not know any more is forgotten within ten minutes.
def test_an_unknown_allocation_is_forgotten(world: World) -> None:
    world.wait_for_jobs(2)
    world.step()
    world.slurm.allocations.clear()
    spent = 0.0
    while world.controller.state.open_rows()[:1] and spent < 3_000.0:
        first = world.controller.state.open_rows()[0].name
        world.step()
        spent += 30.0
        if world.controller.state.open_rows()[:1] != [] and \
                world.controller.state.open_rows()[0].name != first:
            break
    assert 570.0 <= spent <= 660.0
    assert len(world.slurm.open()) == 2, "others take their place"


def test_an_allocation_with_a_worker_is_not_forgotten(world: World) -> None:
    world.wait_for_jobs(1)
    world.step()
    number = world.slurm.open()[0].slurm_id
    world.begin(number)
    world.step()
    world.slurm.allocations.clear()
    for _ in range(60):
        world.step()
    assert len(world.controller.state.open_rows()) == 1


def test_without_an_answer_of_slurm_nothing_is_submitted(world: World) -> None:
    world.wait_for_jobs(3)
    world.slurm.fail = ["refuse"] * 1_000
    for _ in range(50):
        decided = world.step()
        assert decided.new == 0 and "no answer" in decided.why
    world.slurm.fail = []
    world.step()
    assert len(world.slurm.open()) == 2


# Three allocations that end early without a worker pause the pool, longer each time, with their
# last words. A worker ends the series.
def test_a_pool_pauses_and_recovers(tmp_path: Path) -> None:
    world = World(tmp_path, backlog=1)
    world.wait_for_jobs(10)
    pauses: list[float] = []
    begun: list[float] = []
    for _ in range(1_600):
        before = len(world.slurm.allocations)
        world.step(10.0)
        if len(world.slurm.allocations) > before:
            begun.append(world.now)
        for each in world.slurm.open():
            world.end(each.slurm_id, "FAILED")
    gaps = [b - a for a, b in itertools.pairwise(begun)]
    pauses = [gap for gap in gaps if gap > 30.0]
    assert len([gap for gap in gaps[:2] if gap <= 30.0]) == 2, "three without a pause"
    assert pauses[0] == pytest.approx(70.0, abs=20.0)
    for first, second in itertools.pairwise(pauses):
        assert second == pytest.approx(min(2 * first, 3_610.0), abs=60.0)
    assert max(pauses) <= 3_640.0
    assert "the last words of quasi-" in world.controller.state.trouble
    assert "paused" in world.step(1.0).why
    world.controller.state.pauses = 2_000  # months of failures
    world.step(4_000.0)
    world.end(world.slurm.open()[0].slurm_id, "FAILED")
    world.step(10.0)
    assert "paused for 36" in world.step(0.0).why
    world.step(4_000.0)
    world.begin(world.slurm.open()[0].slurm_id)
    world.step()
    assert world.controller.state.early_ends == 0
    assert world.controller.state.pauses == 0


def test_another_store_does_not_take_over(world: World) -> None:
    world.wait_for_jobs(1)
    world.step()
    world.server.store = lambda: "s_OTHER"  # type: ignore[method-assign]
    with pytest.raises(tools.SlurmError, match="belongs to the store"):
        world.step()


def test_a_pool_does_not_take_that_of_a_longer_name(world: World) -> None:
    world.step()
    other = world.controller.prefix + "large-7"
    world.slurm.allocations[9] = Listed(9, "PENDING", other)
    world.step()
    assert world.controller.state.rows == []


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"rows": [{"name": 1}]}', '{"rows": 3}', '{"rows": [], "x": 1}'):
        (tmp_path / "gpu.json").write_text(text)
        with pytest.raises(LedgerError, match="squeue --me"):
            Ledger(tmp_path / "gpu.json").read()


# The output of Slurm's commands, sound and damaged: a value or an OutputError, never another error.
def test_outputs_are_read() -> None:
    assert read_submitted("4711\n") == 4711
    assert read_submitted("4711;cluster\n") == 4711
    assert read_queue("17|RUNNING|quasi-1\n18|PENDING|a|b\n\n") == [
        Listed(17, "RUNNING", "quasi-1"), Listed(18, "PENDING", "a|b")]
    for text in ("", "Submitted batch job 4711", "-1", "1\n2", "4711;a;b", "٣", "9" * 30):
        with pytest.raises(OutputError):
            read_submitted(text)
    for text in ("17 RUNNING x", "17_4|RUNNING|x", "x|RUNNING|x", "17|SLEEPING|x"):
        with pytest.raises(OutputError):
            read_queue(text)


def test_damaged_outputs_are_refused_or_read() -> None:
    source = random.Random(20261126)
    refused = 0
    for _ in range(int(os.environ.get("QUASI_FUZZ_RUNS", "4000"))):
        for reader, text in ((read_submitted, "4711;cluster\n"),
                             (read_queue, "17|RUNNING|quasi-1\n18|PENDING|quasi-2\n")):
            try:
                reader(damaged(text, source))
            except OutputError:
                refused += 1
    assert refused > 1_000


def test_lines_of_others_are_left_out() -> None:
    text = "1_2|ODD STATE|array\n3|RUNNING|quasi-x-1\n"
    assert read_queue(own_lines(text, "quasi-x-")) == [Listed(3, "RUNNING", "quasi-x-1")]


# Slurm's commands as programs: flags, failures, a command that hangs.
def test_commands_run_and_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = tools.Commands(str(write_commands(tmp_path)))
    script = tmp_path / "x.sbatch"
    script.write_text("#!/bin/bash\n")
    first = slurm.submit("quasi-x-1", ["--time=60"], script)
    slurm.submit("quasi-x-2", [], script)
    slurm.cancel(first)
    assert [each.state for each in slurm.queue("quasi-x-")] == ["CANCELLED", "PENDING"]
    (tmp_path / "sbatch.fail").write_text("error: invalid partition")
    with pytest.raises(tools.SlurmError, match="invalid partition"):
        slurm.submit("quasi-x-3", [], script)
    (tmp_path / "sbatch.fail").write_text("silent")
    with pytest.raises(OutputError):
        slurm.submit("quasi-x-3", [], script)
    monkeypatch.setattr(tools, "LIMIT_S", 0.3)
    (tmp_path / "squeue.fail").write_text("hang")
    with pytest.raises(tools.SlurmError, match="no answer within"):
        slurm.queue("quasi-x-")
    with pytest.raises(tools.SlurmError, match="not found"):
        tools.Commands(str(tmp_path / "absent")).queue("x")


CONFIG = """
spool = "{spool}"
[pool.gpu]
time_limit = "2h"
worker_server = "node0:7461"
worker_token_file = "/etc/quasi/worker.token"
worker_ca = "/etc/quasi/ca.pem"
partition = "gpu"
gres = "gpu:1"
gpus = 1
worker_flags = ["--gpu-slots", "2"]
"""


def test_a_configuration_makes_a_script(tmp_path: Path) -> None:
    file = tmp_path / "slurm.toml"
    file.write_text(CONFIG.format(spool=tmp_path / "spool"))
    read = settings.read_settings(file)
    pool = read.pools[0]
    assert pool.settings.options[:2] == ["--time=120", "--signal=B:TERM@180"]
    assert "--gres=gpu:1" in pool.settings.options
    for words in ("--end-time \"$end\"", "--token-file /etc/quasi/worker.token", "--gpu-slots 2",
                  "--idle-timeout-s 300", "--end-margin-s 180"):
        assert words in pool.script


@pytest.mark.parametrize(("old", "new", "says"), [
    ("partition", "partiton", "did you mean 'partition'"),
    ('time_limit = "2h"', "", "'time_limit' is missing"),
    ('"2h"', '"2 hours"', "write it like 30m"),
    ('"2h"', '"100s"', "above the margin"),
    ("gpus = 1", "gpus = -1", "must be 0...100000"),
    ("gpus = 1", 'gpus = "one"', "expected int"),
    ("[pool.gpu]", "[pool.GPU]", "a name of a pool"),
    ("[pool.gpu]", "[pol.gpu]", "did you mean 'pool'"),
])
def test_a_wrong_configuration_names_the_key(tmp_path: Path, old: str, new: str,
                                             says: str) -> None:
    file = tmp_path / "slurm.toml"
    file.write_text(CONFIG.format(spool=tmp_path).replace(old, new))
    with pytest.raises(settings.SettingsError, match=says.replace("?", r"\?")):
        settings.read_settings(file)


def test_the_ledger_is_for_its_owner(tmp_path: Path) -> None:
    from quasi.slurm.__main__ import only_one
    with only_one(tmp_path / "spool"):
        assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
        with pytest.raises(SystemExit), only_one(tmp_path / "spool"):
            pass
