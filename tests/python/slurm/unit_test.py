"""Tests the unit of quasi-slurm: systemd accepts it, and it starts the program as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quasi.slurm import __main__ as program

UNIT = Path(__file__).resolve().parents[3] / "deploy/systemd/quasi-slurm.service"


def test_it_starts_the_program_with_what_it_understands(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = re.search(r"^ExecStart=/usr/bin/python3 -m quasi\.slurm (.+)$", UNIT.read_text(),
                      re.MULTILINE)
    assert start is not None
    action, file = start[1].split()
    assert file == "/etc/quasi/slurm.toml"
    # A file without a pool is refused after the flags were read.
    (tmp_path / "slurm.toml").write_text("")
    assert program.main([action, str(tmp_path / "slurm.toml")]) == program.EXIT_CONFIG
    assert "there is no [pool.NAME]" in capsys.readouterr().err


def test_it_does_not_restart_what_cannot_start() -> None:
    kept = re.search(r"^RestartPreventExitStatus=(.+)$", UNIT.read_text(), re.MULTILINE)
    assert kept is not None
    assert {int(word) for word in kept[1].split()} == {program.EXIT_RUNNING, program.EXIT_CONFIG}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze not found")
def test_systemd_accepts_it() -> None:
    verified = subprocess.run(["systemd-analyze", "verify", str(UNIT)], capture_output=True,
                              text=True, timeout=60)
    assert verified.returncode == 0, verified.stderr
    rated = subprocess.run(["systemd-analyze", "security", "--offline=true", str(UNIT)],
                           capture_output=True, text=True, timeout=60).stdout
    level = re.search(r"exposure level for .*: ([\d.]+)", rated)
    assert level is not None and float(level[1]) <= 2.0, rated[-200:]
