"""The comparison of <dSigma> with the difference of Sigma of two displaced crystals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import quasi
from quasi import displacement_check
from quasi.__main__ import main

ENERGY_EV = [-5.0, 1.0, 1.000005, 4.0]
SLOPE = [0.3, -0.2, 0.4, 0.7]  # of each band; a job averages the second and the third


def made_job(path: Path, step: float, **changes: Any) -> Path:
    """Writes the result of a job whose atom 2 is displaced along y, with a cubic term."""
    mean = np.array([SLOPE[0], 0.1, 0.1, SLOPE[3]])
    data = {
        "quasiparticles/k": np.tile([0.5, 0.0, 0.0], (4, 1)),
        "quasiparticles/band": np.arange(1, 5),
        "quasiparticles/spin": np.ones(4, dtype=int),
        "quasiparticles/mean_field_ev": np.array(ENERGY_EV),
        "quasiparticles/sigma_ev": -10.0 + mean * step + 2.0 * step**3,
        "inner_states/atom": np.array([2]),
        "inner_states/displacement": np.array([[0.0, step, 0.0]]),
    } | changes
    path.mkdir()
    with h5py.File(path / "result.h5", "w") as file:
        file.attrs["kind"] = "gw"
        for name, values in data.items():
            if values is not None:
                file[name] = values
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Results of +h, -h and of the job at rest, which displaces two atoms."""
    elements = np.zeros((2, 1, 4, 4, 2))
    elements[1, 0, range(4), range(4), 0] = SLOPE
    at_rest = {
        "inner_states/atom": None,
        "inner_states/displacement": None,
        "perturbations/name": np.array([b"atom 1 y", b"atom 2 y"]),
        "perturbations/k": np.array([[0.5, 0.0, 0.0]]),
        "perturbations/band": np.arange(1, 5),
        "perturbations/sigma_bra": elements,
    }
    return (made_job(tmp_path / "plus", 0.01), made_job(tmp_path / "minus", -0.01),
            made_job(tmp_path / "rest", 0.0, **at_rest))


def test_quotients_are_compared_with_means_over_multiplets(jobs: tuple[Path, Path, Path]) -> None:
    """The quotient errs by the cubic term 2 h^2; the pair of equal energies has the mean 0.1."""
    states = displacement_check.compare(*(quasi.open(job) for job in jobs))
    assert [s.band for s in states] == [1, 2, 3, 4]
    first = [s.first_order for s in states]
    np.testing.assert_allclose(np.array(first, dtype=float), [0.3, 0.1, 0.1, 0.7], rtol=1e-12)
    for state in states:
        assert state.first_order is not None
        assert state.quotient - state.first_order == pytest.approx(2e-4, rel=1e-6)


def test_the_command_prints_the_table(jobs: tuple[Path, Path, Path],
                                      capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["displacement-check", *map(str, jobs)]) == 0
    text = capsys.readouterr().out
    assert "atom 2, y, h = 0.01 Bohr" in text
    assert "largest difference: 0.0002 eV/Bohr" in text
    assert main(["displacement-check", *map(str, jobs[:2])]) == 0
    assert "<dSigma>" not in capsys.readouterr().out


BROKEN = [
    ({"inner_states/atom": None}, "set meanfield.wfn_inner"),
    ({"inner_states/atom": np.array([1])}, "is not opposite to atom 2"),
    ({"inner_states/displacement": np.array([[0.0, -0.02, 0.0]])}, "give jobs with +h and -h"),
    ({"inner_states/atom": np.array([1, 2])}, "displaces 2 atoms"),
    ({"quasiparticles/mean_field_ev": np.arange(4.0)}, "differ in quasiparticles/mean_field_ev"),
]


@pytest.mark.parametrize(("changes", "words"), BROKEN)
def test_jobs_that_do_not_fit_are_refused(jobs: tuple[Path, Path, Path], tmp_path: Path,
                                          changes: dict[str, Any], words: str,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    broken = made_job(tmp_path / "broken", -0.01, **changes)
    assert main(["displacement-check", str(jobs[0]), str(broken), str(jobs[2])]) == 4
    assert words in capsys.readouterr().err


def test_exchanged_jobs_and_a_job_without_first_order_are_refused(
        jobs: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    plus, minus, rest = map(str, jobs)
    assert main(["displacement-check", minus, plus, rest]) == 4
    assert "give the job with +h first" in capsys.readouterr().err
    assert main(["displacement-check", plus, minus, plus]) == 4
    assert "add [perturbation]" in capsys.readouterr().err
