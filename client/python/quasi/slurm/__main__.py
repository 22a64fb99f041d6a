"""quasi-slurm: submits workers to Slurm while jobs wait in its pools.

    python3 -m quasi.slurm plan  /etc/quasi/slurm.toml    # what it would submit, and why
    python3 -m quasi.slurm trial /etc/quasi/slurm.toml    # submits one held allocation, cancels it
    python3 -m quasi.slurm serve /etc/quasi/slurm.toml
    python3 -m quasi.slurm status /etc/quasi/slurm.toml
    python3 -m quasi.slurm drain /etc/quasi/slurm.toml    # ends all allocations, after serve
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import grpc

from quasi.access import AccessError
from quasi.client import Client, JobError
from quasi.config import ConfigError
from quasi.slurm.controller import Controller, plan
from quasi.slurm.demand import QuasiServer
from quasi.slurm.ledger import Ledger, LedgerError
from quasi.slurm.output import OutputError
from quasi.slurm.settings import Pool, Settings, SettingsError, read_settings
from quasi.slurm.tools import Commands, SlurmError

EXIT_TEMPORARY, EXIT_RUNNING, EXIT_CONFIG = 75, 73, 78
#: Errors of one step, after which the next step is tried.
PASSING = (SlurmError, OutputError, JobError, grpc.RpcError, AccessError)


def log(event: str, **facts: object) -> None:
    """One line of JSON on standard error."""
    print(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                      "event": event, **facts}), file=sys.stderr, flush=True)


@contextmanager
def only_one(spool: Path) -> Iterator[None]:
    """Holds the lock of the spool: two programs could submit for one intent."""
    spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (spool / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            log("cannot_start", why=f"another quasi-slurm works in {spool}")
            raise SystemExit(EXIT_RUNNING) from None
        yield


def last_words(spool: Path, pool: str, name: str) -> str:
    """End of the output of an allocation, as one line."""
    try:
        with (spool / f"{pool}-{name}.out").open("rb") as out:
            out.seek(max(0, out.seek(0, os.SEEK_END) - 2_000))
            lines = out.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return " ".join(" ".join(lines[-6:]).split())[-300:]


def controller_of(pool: Pool, settings: Settings, server: QuasiServer) -> Controller:
    name = pool.settings.name
    script = settings.spool / f"{name}.sbatch"
    script.write_text(pool.script)
    return Controller(pool.settings, Ledger(settings.spool / f"{name}.json"),
                      Commands(settings.bin), server, script,
                      lambda row: last_words(settings.spool, name, row))


def serve(settings: Settings, server: QuasiServer) -> int:
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    controllers = [controller_of(pool, settings, server) for pool in settings.pools]
    said: dict[str, str] = {}
    while not stopped:
        for each in controllers:
            name = each.settings.name
            try:
                decided = each.step(time.time())
                line = f"{decided.new} new: {decided.why}"
            except PASSING as error:
                line = f"nothing is known: {error}"
            if said.get(name) != line:
                log("step", pool=name, what=line)
            said[name] = line
        end = time.monotonic() + settings.interval_s
        while not stopped and time.monotonic() < end:
            time.sleep(min(0.2, settings.interval_s))
    return 0


def show_plan(settings: Settings, server: QuasiServer) -> int:
    for pool in settings.pools:
        state = Ledger(settings.spool / f"{pool.settings.name}.json").read()
        decided = plan(pool.settings, state, server.waiting(pool.settings.name),
                       server.workers(pool.settings.name), time.time())
        print(f"{pool.settings.name}: {decided.new} allocations; {decided.why}")
        print("  sbatch " + " ".join(pool.settings.options))
    return 0


def trial(settings: Settings, server: QuasiServer) -> int:
    for pool in settings.pools:
        each = controller_of(pool, settings, server)
        name = f"quasi-trial-{pool.settings.name}"
        number = each.slurm.submit(name, pool.settings.options, each.script, held=True)
        each.slurm.cancel(number)
        print(f"{pool.settings.name}: Slurm accepted allocation {number}, held; it is cancelled")
    return 0


def drain(settings: Settings, server: QuasiServer) -> int:
    for pool in settings.pools:
        rows = controller_of(pool, settings, server).drain()
        print(f"{pool.settings.name}: {len(rows)} allocations end; their workers drain first")
    return 0


def status(settings: Settings) -> int:
    for pool in settings.pools:
        state = Ledger(settings.spool / f"{pool.settings.name}.json").read()
        paused = time.time() < state.paused_until_s
        print(f"{pool.settings.name}: {'paused' if paused else 'active'}, "
              f"{len(state.open_rows())} open" + (f"; {state.trouble}" if state.trouble else ""))
        for row in state.open_rows():
            print(f"  {row.name}  {row.slurm_id or 'intent'}"
                  f"{'  had a worker' if row.had_worker else ''}")
    return 0


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quasi-slurm", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["plan", "trial", "serve", "status", "drain"])
    parser.add_argument("file", nargs="?", type=Path, default=Path("/etc/quasi/slurm.toml"))
    arguments = parser.parse_args(words)
    try:
        settings = read_settings(arguments.file)
        if arguments.action == "status":
            return status(settings)
        with Client() as client:
            server = QuasiServer(client)
            if arguments.action == "plan":
                return show_plan(settings, server)
            with only_one(settings.spool):
                actions = {"trial": trial, "serve": serve, "drain": drain}
                return actions[arguments.action](settings, server)
    except (SettingsError, LedgerError, ConfigError) as error:
        log("cannot_start", why=str(error))
        return EXIT_CONFIG
    except PASSING as error:
        log("failed", why=str(error))
        return EXIT_TEMPORARY


if __name__ == "__main__":
    raise SystemExit(main())
