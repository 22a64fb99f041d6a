"""Adapters for workflow programs, as far as they work without these programs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

import quasi
from conftest import BINARIES, SOURCE
from quasi import workflows
from quasi.workflows import jobflow

SILICON = str(SOURCE / "examples/thermal/silicon")


def test_the_command_of_a_calculation_runs(tmp_path: Path) -> None:
    """AiiDA's job script calls ``quasi`` with these words in a folder that holds the deck."""
    (tmp_path / "deck").symlink_to(SILICON)
    words = workflows.command_words("thermal", "deck", {"ngrid": [3, 3, 3], "T": 300})
    answer = subprocess.run([BINARIES / "quasi", *words], cwd=tmp_path, check=False,
                            capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    outputs = workflows.outputs_of(tmp_path / "out")
    assert outputs["kind"] == "thermal"
    assert outputs["summary"]["mesh"] == [3, 3, 3]
    assert isinstance(outputs["warnings"], list)


def test_the_function_of_a_job_returns_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BINARIES}:{os.environ['PATH']}")
    stored = jobflow.run_quasi("thermal", SILICON, str(tmp_path / "out"), ngrid=[3, 3, 3], T=300)
    assert stored["folder"] == str(tmp_path / "out")
    assert quasi.open(stored["folder"]).kind == "thermal"
    with pytest.raises(quasi.ResultError, match="ngrd"):
        jobflow.run_quasi("thermal", SILICON, str(tmp_path / "refused"), ngrd=3)


def test_a_folder_without_a_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(quasi.ResultError, match="did not end with a result"):
        workflows.outputs_of(tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("jobflow") is not None, reason="jobflow is installed")
def test_a_missing_jobflow_is_named() -> None:
    with pytest.raises(quasi.ResultError, match="pip install jobflow"):
        jobflow.quasi_job("thermal", SILICON)


@pytest.mark.skipif(importlib.util.find_spec("aiida") is not None, reason="AiiDA is installed")
def test_a_missing_aiida_is_named() -> None:
    with pytest.raises(quasi.ResultError, match="pip install aiida-core"):
        importlib.import_module("quasi.workflows.aiida")
