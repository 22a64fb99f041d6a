"""Tests pools against a real slurmctld, slurmd and munged on the loopback.

The tests are skipped with the reason where a program is missing. They take some ten seconds. The
end of an allocation takes two minutes, because a minute is the shortest time limit of Slurm.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import FakeServer
from loopback import LoopbackSlurm, absence

from quasi.slurm import controller as rules
from quasi.slurm.controller import Controller, PoolSettings
from quasi.slurm.demand import Waiting
from quasi.slurm.ledger import Ledger
from quasi.slurm.tools import Commands, SlurmError

WHY_NOT = absence()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackSlurm]:
    running = LoopbackSlurm(tmp_path_factory.mktemp("slurm"))
    yield running
    running.close()


def await_(holds: Callable[[], object], what: str, limit_s: float = 90.0) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, f"not reached in {limit_s} s: {what}"
        time.sleep(0.2)


class Pool:
    """A pool of the real Slurm, whose worker is a shell script."""

    def __init__(self, folder: Path, script: str, **values: object) -> None:
        self.server = FakeServer()
        self.server.jobs = [Waiting("j_1", 0, 30.0, 0.0)]
        self.folder = folder
        (folder / "x.sbatch").write_text("#!/bin/bash\n" + script)
        options = ["--time=1", "--signal=B:TERM@30", f"--output={folder}/%x.out"]
        self.settings = PoolSettings(**{  # type: ignore[arg-type]
            "name": "gpu", "time_limit_s": 60.0, "margin_s": 30.0, "options": options, **values})
        self.commands = Commands()
        self.start()

    def start(self) -> None:
        self.controller = Controller(self.settings, Ledger(self.folder / "gpu.json"),
                                     self.commands, self.server, self.folder / "x.sbatch")

    def step(self, later_s: float = 0.0) -> rules.Plan:
        return self.controller.step(time.time() + later_s)

    def listed(self) -> list[str]:
        return [each.state for each in self.commands.queue(self.controller.prefix)]


def test_a_job_gets_an_allocation_and_its_end_is_seen(slurm: LoopbackSlurm,
                                                      tmp_path: Path) -> None:
    pool = Pool(tmp_path, "sleep 1000\n")
    assert pool.step().new == 1
    await_(lambda: "RUNNING" in pool.listed(), "the allocation runs")
    pool.step()
    row = pool.controller.state.open_rows()[0]
    assert row.slurm_id and row.started_s
    pool.server.online[row.name] = True
    assert pool.step().new == 0
    pool.server.jobs = []
    pool.commands.cancel(row.slurm_id)
    await_(lambda: "CANCELLED" in pool.listed(), "the allocation is cancelled")
    pool.server.online = {}
    pool.step()
    assert pool.controller.state.open_rows() == []
    assert pool.controller.state.rows[-1].why == "CANCELLED"


# The program dies after Slurm has accepted the allocation and before its number is on the disk.
def test_a_lost_answer_is_found_by_the_name(slurm: LoopbackSlurm, tmp_path: Path) -> None:
    pool = Pool(tmp_path, "sleep 1000\n")
    pool.step()
    pool.server.jobs += pool.server.jobs
    file = tmp_path / "gpu.json"
    text = file.read_text()
    number = pool.controller.state.open_rows()[0].slurm_id
    file.write_text(text.replace(f'"slurm_id": {number}', '"slurm_id": null'))
    pool.start()
    assert pool.step().new == 0, "no second allocation for one intent"
    assert [row.slurm_id for row in pool.controller.state.open_rows()] == [number]
    file.unlink()
    pool.start()
    assert pool.step().new == 0, "found by its name alone"
    assert [row.slurm_id for row in pool.controller.state.open_rows()] == [number]
    pool.commands.cancel(number or 0)


def test_while_slurmctld_is_away_nothing_is_submitted(slurm: LoopbackSlurm,
                                                      tmp_path: Path) -> None:
    pool = Pool(tmp_path, "sleep 1000\n")
    slurm.stop_controller()
    decided = pool.step()
    assert decided.new == 0 and "no answer" in decided.why
    slurm.start_controller()
    await_(lambda: pool.step().new == 1 or pool.controller.state.open_rows(), "Slurm is back")
    number = pool.controller.state.open_rows()[0].slurm_id
    assert number is not None
    pool.commands.cancel(number)


def test_what_slurm_refuses_pauses_the_pool(slurm: LoopbackSlurm, tmp_path: Path) -> None:
    pool = Pool(tmp_path, "", options=["--time=1", "--partition=absent"])
    for i in range(4):
        pool.step(later_s=i * (rules.INTENT_LIMIT_S + 1.0))
    assert "partition" in pool.controller.state.trouble.lower()
    assert pool.controller.state.paused_until_s > time.time()
    with pytest.raises(SlurmError, match="(?i)partition"):
        pool.commands.submit("quasi-x", ["--partition=absent"], tmp_path / "x.sbatch")


# The batch script hands the signal to its worker, and an allocation that waits is cancelled.
def test_a_drain_reaches_the_worker(slurm: LoopbackSlurm, tmp_path: Path) -> None:
    pool = Pool(tmp_path, f"""
trap 'kill -TERM "$daemon"' TERM
bash -c 'trap "echo drained > {tmp_path}/seen; exit 0" TERM; touch {tmp_path}/up
         while :; do sleep 0.1; done' &
daemon=$!
wait "$daemon"
wait "$daemon"
""")
    pool.step()
    number = pool.controller.state.open_rows()[0].slurm_id or 0
    await_((tmp_path / "up").exists, "the worker runs")
    waits = pool.commands.submit(pool.controller.prefix + "99", ["--time=1", "--begin=now+1hour"],
                                 tmp_path / "x.sbatch")
    pool.controller.drain()
    await_((tmp_path / "seen").exists, "the worker drains")
    await_(lambda: all(each.has_ended for each in pool.commands.queue(pool.controller.prefix)
                       if each.slurm_id in (number, waits)), "both allocations end")
    states = {each.slurm_id: each.state for each in pool.commands.queue(pool.controller.prefix)}
    assert (states[number], states[waits]) == ("COMPLETED", "CANCELLED")


BINARIES = Path(os.environ.get("QUASI_BINARY_DIR", "/nowhere"))


@pytest.mark.skipif("QUASI_SLURM_WALL_TIME" not in os.environ,
                    reason="it takes two minutes; QUASI_SLURM_WALL_TIME=1 runs it")
@pytest.mark.skipif(not (BINARIES / "quasi-worker").exists(),
                    reason="QUASI_BINARY_DIR names no folder with quasi-worker")
def test_a_job_goes_on_over_the_end_of_its_allocation(slurm: LoopbackSlurm,
                                                      tmp_path: Path) -> None:
    """A job of 45 s in allocations of a minute that drain after 30 s, by the program itself."""
    address = f"unix:{tmp_path}/server.sock"
    server = subprocess.Popen(
        [BINARIES / "quasi-server", "--data-directory", tmp_path / "data", "--listen", address,
         "--enable-test-work", "true", "--heartbeat-interval", "0.5"],
        stderr=(tmp_path / "server.log").open("wb"))
    (tmp_path / "slurm.toml").write_text(f"""
spool = "{tmp_path}/spool"
interval = "1s"
[pool.gpu]
time_limit = "1m"
margin = "30s"
idle_timeout = "10s"
worker = "{BINARIES}/quasi-worker"
worker_server = "{address}"
worker_flags = ["--devices", "none", "--min-free-scratch-bytes", "0", "--drain-timeout-s", "20"]
""")
    job = tmp_path / "job.toml"
    job.write_text("""
name = "long"
max_runtime = "1h"
[resources]
pool = "gpu"
[checkpoint]
interval = "5s"
[test.checkpointing]
steps = 45
interval = "1s"
""")
    words = ["python3", "-m", "quasi.slurm", "serve", str(tmp_path / "slurm.toml")]
    environment = {**os.environ, "QUASI_SERVER": address}
    pool: subprocess.Popen[bytes] | None = None
    try:
        await_(Path(f"{tmp_path}/server.sock").exists, "the server starts")
        pool = subprocess.Popen(["/usr/bin/" + words[0], *words[1:]], env=environment,
                                stderr=(tmp_path / "slurm.log").open("wb"))
        quasi = [str(BINARIES / "quasi"), "--server", address]
        done = subprocess.run([*quasi, "submit", str(job), "--wait"], capture_output=True,
                              text=True, timeout=400, env=environment)
        shown = subprocess.run([*quasi, "show", "last", "--json"], capture_output=True, text=True,
                               env=environment).stdout
        assert done.returncode == 0, done.stderr + shown + (tmp_path / "slurm.log").read_text()
        assert '"attempts": 1,' in shown, "the attempts before the last were not counted\n" + shown
        assert shown.count('"outcome": "released"') >= 1, shown
    finally:
        for process in (pool, server):
            if process is not None:
                process.terminate()
                process.wait(30)
