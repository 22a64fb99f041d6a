"""The configuration of quasi-slurm: a TOML file with one table for each pool."""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasi.slurm.controller import PoolSettings

KEYS: dict[str, type] = {
    "time_limit": str, "margin": str, "idle_timeout": str, "default_max_runtime": str,
    "max_workers": int, "backlog": int, "min_depth": int, "slots": int, "gpus": int,
    "partition": str, "account": str, "gres": str, "options": list, "worker": str,
    "worker_flags": list, "worker_server": str, "worker_token_file": str, "worker_ca": str,
    "cpus": int,
}
TOP_KEYS: dict[str, type] = {"spool": str, "bin": str, "interval": str, "pool": dict}


class SettingsError(Exception):
    """A configuration that cannot be used; the message names file, key, value and remedy."""


@dataclass(frozen=True)
class Pool:
    """A pool and the batch script of its workers."""

    settings: PoolSettings
    script: str


@dataclass(frozen=True)
class Settings:
    """The whole configuration."""

    spool: Path
    bin: str
    interval_s: float
    pools: list[Pool]


def duration_s(text: str, key: str) -> float:
    """Seconds of ``90s``, ``30m``, ``12h`` or ``2d``."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|h|d)", text)
    if match is None or float(match[1]) == 0.0:
        raise SettingsError(f"{key}: {text!r} is not a time above zero; write it like 30m or 12h")
    return float(match[1]) * {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}[match[2]]


def _check(table: dict[str, Any], keys: dict[str, type], where: str) -> None:
    for key, value in table.items():
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; keys: {', '.join(keys)}"
            raise SettingsError(f"{where}: unknown key '{key}'{hint}")
        if not isinstance(value, keys[key]) or isinstance(value, bool):
            raise SettingsError(f"{where}.{key}: expected {keys[key].__name__}, got {value!r}")
        if isinstance(value, list) and not all(isinstance(each, str) for each in value):
            raise SettingsError(f"{where}.{key}: expected strings, got {value!r}")
        if isinstance(value, int) and not 0 <= value <= 100_000:
            raise SettingsError(f"{where}.{key}: must be 0...100000, got {value}")


def slurm_time(limit_s: float) -> str:
    """Time limit in the form of sbatch, in whole minutes: MINUTES."""
    return str(max(1, int(limit_s // 60)))


def batch_script(name: str, table: dict[str, Any], spool: Path) -> str:
    """Batch script of a worker. Slurm sends it TERM before the end, and the worker drains."""
    margin_s = duration_s(table.get("margin", "180s"), "margin")
    idle_s = duration_s(table.get("idle_timeout", "5m"), "idle_timeout")
    words = [table.get("worker", "quasi-worker"), "--server", table["worker_server"],
             "--pool", name, "--end-margin-s", f"{margin_s:g}", "--idle-timeout-s", f"{idle_s:g}"]
    for key, flag in (("worker_token_file", "--token-file"), ("worker_ca", "--ca")):
        if key in table:
            words += [flag, table[key]]
    words += table.get("worker_flags", [])
    command = " ".join(shlex.quote(word) for word in words)
    state = shlex.quote(str(spool / "state"))
    return f"""#!/bin/bash
# Written by quasi-slurm for the pool {name}.
set -u
end=${{SLURM_JOB_END_TIME:-$(date -d "$(squeue -h -j "$SLURM_JOB_ID" -o %e)" +%s)}} || exit 1
state={state}/$SLURM_JOB_ID
mkdir -p "$state"
{command} --name "$SLURM_JOB_NAME" --state-directory "$state" --end-time "$end" &
daemon=$!
trap 'kill -TERM "$daemon"' TERM
wait "$daemon"
wait "$daemon"
status=$?
# A worker that ended properly left nothing behind. Otherwise its files stay for the next look.
[ "$status" = 0 ] && rm -rf "$state"
exit "$status"
"""


def _pool(name: str, table: dict[str, Any], spool: Path) -> Pool:
    where = f"pool.{name}"
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", name) is None:
        raise SettingsError(f"{where}: a name of a pool has a-z, 0-9, '_' and '-'")
    _check(table, KEYS, where)
    for key in ("time_limit", "worker_server"):
        if key not in table:
            raise SettingsError(f"{where}: '{key}' is missing")
    limit_s = duration_s(table["time_limit"], f"{where}.time_limit")
    margin_s = duration_s(table.get("margin", "180s"), f"{where}.margin")
    if limit_s < 60.0 or margin_s >= limit_s:
        raise SettingsError(f"{where}.time_limit: must be a minute at least and above the margin "
                            f"of {margin_s:g} s, got {table['time_limit']!r}")
    options = [f"--time={slurm_time(limit_s)}", f"--signal=B:TERM@{int(margin_s)}",
               f"--output={spool / name}-%x.out", "--open-mode=append"]
    options += [f"--{key}={table[key]}" for key in ("partition", "account", "gres")
                if key in table]
    if "cpus" in table:
        options.append(f"--cpus-per-task={table['cpus']}")
    options += table.get("options", [])
    settings = PoolSettings(
        name=name, time_limit_s=limit_s, margin_s=margin_s,
        max_workers=table.get("max_workers", 1), backlog=table.get("backlog", 1),
        min_depth=table.get("min_depth", 1), slots=max(1, table.get("slots", 1)),
        gpus=table.get("gpus", 0), options=options,
        default_max_runtime_s=duration_s(table.get("default_max_runtime", "24h"),
                                         f"{where}.default_max_runtime"))
    return Pool(settings, batch_script(name, table, spool))


def read_settings(file: Path) -> Settings:
    """Reads the configuration. Raises ``SettingsError``."""
    try:
        table = tomllib.loads(file.read_text())
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
    _check(table, TOP_KEYS, str(file))
    spool = Path(table.get("spool", "/var/lib/quasi-slurm")).absolute()
    pools = table.get("pool", {})
    if not pools or not all(isinstance(each, dict) for each in pools.values()):
        raise SettingsError(f"{file}: there is no [pool.NAME]; add one table for each pool")
    return Settings(spool=spool, bin=table.get("bin", ""),
                    interval_s=duration_s(table.get("interval", "30s"), "interval"),
                    pools=[_pool(name, each, spool) for name, each in pools.items()])
