"""The units of the server and of its workers: bounds, and what systemd says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
# The highest exposure that each unit may have, of 10.
EXPOSURES = {"quasi-server.service": 2.0, "quasi-worker@.service": 4.5}


@pytest.mark.parametrize("name", EXPOSURES)
def test_a_unit_bounds_its_memory(name: str) -> None:
    """A unit that takes more memory than it may ends alone."""
    bounds = re.findall(r"^MemoryMax=(\d+)([G%])$", (UNITS / name).read_text(), re.MULTILINE)
    assert len(bounds) == 1
    assert bounds[0][1] == "G" or int(bounds[0][0]) < 100


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze not found")
@pytest.mark.parametrize("name", EXPOSURES)
def test_systemd_rates_its_exposure(name: str) -> None:
    """systemd reads the unit, and it gives away no more than it needs."""
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(UNITS / name)],
        capture_output=True, text=True, timeout=60)
    level = re.search(r"exposure level for .*: ([\d.]+)", rated.stdout)
    assert level is not None and float(level[1]) <= EXPOSURES[name], rated.stdout[-300:]
    for line in rated.stderr.splitlines():
        assert "Unknown" not in line and "Invalid" not in line, line
