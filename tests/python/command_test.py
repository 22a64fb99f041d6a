"""`quasi plot` and `quasi report` as a user types them: the client starts the module."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conftest import BINARIES, SOURCE


def quasi(*words: object, state: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the client; `state` is its state directory."""
    environment = dict(os.environ)
    if state is not None:
        environment["QUASI_STATE"] = str(state)
    return subprocess.run([str(BINARIES / "quasi"), *map(str, words)], capture_output=True,
                          text=True, check=False, env=environment)


def test_plot_of_a_folder(made_thermal: Path, tmp_path: Path) -> None:
    answer = quasi("plot", made_thermal, "-o", tmp_path / "k.pdf")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == str(tmp_path / "k.pdf")
    assert (tmp_path / "k.pdf").read_bytes().startswith(b"%PDF")


def test_plot_of_a_job_fetches_it_once(server: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    deck = SOURCE / "examples/thermal/silicon"
    taken = quasi("--server", server, "submit", "thermal", deck, "--set", "ngrid=4,4,4", "--wait",
                  state=state)
    assert taken.returncode == 0, taken.stderr
    for name in ("first.svg", "second.svg"):
        answer = quasi("--server", server, "plot", "last", "-o", tmp_path / name, state=state)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout == f"{tmp_path / name}\n", "a picture's name and nothing else"
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_report_lies_beside_the_result(silicon: Path) -> None:
    answer = quasi("report", silicon)
    assert answer.returncode == 0, answer.stderr
    assert (silicon / "report.html").stat().st_size > 10_000


def test_errors_have_statuses(made_thermal: Path, tmp_path: Path) -> None:
    assert quasi("plot").returncode == 2
    missing = quasi("plot", tmp_path / "absent")
    assert missing.returncode == 9 and "does not exist" in missing.stderr
    wrong = quasi("plot", made_thermal, "kapa")
    assert wrong.returncode == 9 and "did you mean 'kappa'" in wrong.stderr


def test_a_missing_module_is_named_with_its_package(made_thermal: Path) -> None:
    answer = subprocess.run([str(BINARIES / "quasi"), "plot", str(made_thermal)],
                            capture_output=True, text=True, check=False,
                            env={**os.environ, "QUASI_PYTHON": "/bin/false"})
    assert answer.returncode == 13
    assert "apt install python3-quasi" in answer.stderr
