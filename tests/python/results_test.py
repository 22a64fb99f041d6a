"""Tests of results: types, units, tables, and errors for missing data."""

from __future__ import annotations

import doctest
import hashlib
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import quasi
from quasi.gw import GwResult, read_blocks
from quasi.mosfet import MosfetResult
from quasi.thermal import ThermalResult

from conftest import SOURCE, run_engine


def test_doctests() -> None:
    attempted = {}
    for module in pkgutil.walk_packages(quasi.__path__, "quasi."):
        if module.name.startswith("quasi.v1") or module.name.endswith((".aiida", "__main__")):
            continue
        outcome = doctest.testmod(importlib.import_module(module.name))
        assert outcome.failed == 0, module.name
        attempted[module.name] = outcome.attempted
    assert attempted["quasi.quantity"] > 0 and attempted["quasi.workflows"] > 0


def test_kappa_has_its_units_and_values(made_thermal: Path) -> None:
    result = quasi.open(made_thermal)
    assert isinstance(result, ThermalResult)
    assert result.kappa.units == "W/(m K)"
    assert np.allclose(result.kappa[2], 100.0 * np.eye(3))
    assert np.allclose(result.kappa_rta, 0.95 * np.asarray(result.kappa))


def test_frequencies_are_angular_ones_over_two_pi(made_thermal: Path) -> None:
    result = quasi.open(made_thermal)
    assert isinstance(result, ThermalResult)
    assert result.frequency.units == "THz"
    assert result.frequency.max() == pytest.approx(60.0 / (2.0 * np.pi), rel=1e-15)


def test_mesh_points_count_the_first_axis_fastest(made_thermal: Path) -> None:
    result = quasi.open(made_thermal)
    assert isinstance(result, ThermalResult)
    assert result.qpoint[1].tolist() == [0.2, 0.0, 0.0]
    assert result.qpoint[5].tolist() == [0.0, 0.5, 0.0]


def test_a_missing_temperature_names_the_known_ones(made_thermal: Path) -> None:
    result = quasi.open(made_thermal)
    assert isinstance(result, ThermalResult)
    with pytest.raises(quasi.ResultError, match="250 K; it has 100, 200, 300, 600"):
        result.at(250, "kappa")


def test_pandas_has_a_row_a_temperature(made_thermal: Path) -> None:
    table = quasi.open(made_thermal).to_pandas()
    assert list(table["temperature (K)"]) == [100.0, 200.0, 300.0, 600.0]
    assert table["kappa bte xx (W/(m K))"][0] == pytest.approx(300.0)


def test_results_of_the_engine(silicon: Path) -> None:
    result = quasi.open(silicon / "result.h5")
    assert isinstance(result, ThermalResult)
    assert result.omega.shape == (216, 6)
    kappa = np.asarray(result.kappa)
    assert np.all(np.diff(kappa[:, 0, 0]) < 0.0), "κ falls with temperature"
    # Rates at irreducible points and channels add up to the total that the solver used.
    total = sum(np.asarray(rate) for rate in result.rates(300.0).values())
    used = np.asarray(result.at(300, "rate_total"))
    moving = used > 0.0
    assert np.allclose(total[moving], used[moving], rtol=1e-9)
    assert result.summary["kind"] == "thermal"


def test_transistor(transistor: Path) -> None:
    result = quasi.open(transistor)
    assert isinstance(result, MosfetResult)
    assert result.vgs.tolist() == pytest.approx([0.2, 0.4, 0.6])
    assert result.vgs.units == "V"
    assert np.isnan(result.current).all(), "an equilibrium carries no current"
    assert result.point(0.4, 0.0) == 1
    with pytest.raises(quasi.ResultError, match="V_GS = 0.45 V"):
        result.point(0.45, 0.0)
    assert list(result.to_pandas()["status"]) == ["equilibrium"] * 3


def test_quasiparticles(quasiparticles: Path) -> None:
    result = quasi.open(quasiparticles)
    assert isinstance(result, GwResult)
    path = result.band_path()
    assert path.mean_field.shape[1] == path.distance.size == path.k.shape[0]
    assert np.allclose(path.k[0], 0.5) and np.all(np.diff(path.distance) >= 0.0)
    assert result.spectra()[0].energy.size > 3
    with pytest.raises(quasi.ResultError, match="no V_xc"):
        _ = result.quasiparticle


@pytest.mark.parametrize("kind", ["thermal", "mosfet", "gw"])
def test_every_result_says_where_it_comes_from(kind: str, request: pytest.FixtureRequest) -> None:
    fixture = {"thermal": "silicon", "mosfet": "transistor", "gw": "quasiparticles"}[kind]
    result = quasi.open(request.getfixturevalue(fixture))
    attributes = result.attributes()
    assert attributes["format"] == "quasi.result"
    assert attributes["format_version"] == "3"
    assert attributes["kind"] == kind
    assert attributes["program"].startswith("quasi 0.")
    if kind == "thermal":
        assert result.settings == ["ngrid=6,6,6", "T=200,300,400"]
        source = SOURCE / "examples/thermal/silicon"
        assert result.deck["CONTROL"] == (source / "CONTROL").read_text()
        assert "FORCE_CONSTANTS_3RD" not in result.deck, "long files are kept by their digests"
    else:
        assert result.settings == []
        assert len(result.deck) == 1 and "[" in next(iter(result.deck.values()))
    lines = dict(reversed(line.split("  ")) for line in result.text("input/digests").splitlines())
    for name, text in result.deck.items():
        assert lines[name] == hashlib.sha256(text.encode()).hexdigest()
    assert isinstance(result.warnings, list)


def test_equal_jobs_have_equal_bytes(transistor: Path, tmp_path: Path) -> None:
    again = run_engine("mosfet", SOURCE / "examples/mosfet/equilibrium.toml", tmp_path / "again")
    assert (again / "result.h5").read_bytes() == (transistor / "result.h5").read_bytes()


def test_the_lines_of_the_reader_page_run(silicon: Path, transistor: Path, quasiparticles: Path,
                                          tmp_path: Path) -> None:
    page = (SOURCE / "docs/reference/results.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.S | re.M)
    assert len(blocks) == 5
    for kind, place in (("thermal", silicon), ("mosfet", transistor), ("gw", quasiparticles)):
        (tmp_path / kind).symlink_to(place)
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, f"{block}{done.stderr}"
        assert done.stdout.strip()


def test_older_results_still_open(made_thermal: Path) -> None:
    result = quasi.open(made_thermal)
    assert result.settings == [] and result.deck == {} and result.warnings == []


@pytest.mark.parametrize("name", ["silicon", "transistor", "quasiparticles"])
def test_results_without_root_still_open(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Version 1 of the format had neither attributes of the root nor the deck, and no axes."""
    new = quasi.open(request.getfixturevalue(name))
    old = tmp_path / "result.h5"
    old.write_bytes((request.getfixturevalue(name) / "result.h5").read_bytes())
    with h5py.File(old, "a") as file:
        for attribute in list(file.attrs):
            del file.attrs[attribute]
        for group in ("input", "axes", "warnings"):
            if group in file:
                del file[group]
    result = quasi.open(old)
    assert type(result) is type(new)
    assert result.deck == {} and result.warnings == []
    # Bands and spectra of gw need the axes, which that version did not have.
    assert set(new.plots()) - set(result.plots()) <= {"bands", "sigma"}
    for what in result.plots():
        result.plot(tmp_path / f"{what}.svg", what)


def test_results_with_a_group_a_temperature_still_open(made_thermal: Path, tmp_path: Path) -> None:
    """Version 2 of the format wrote /temperature_NNN where version 3 has an axis."""
    old = tmp_path / "result.h5"
    old.write_bytes((made_thermal / "result.h5").read_bytes())
    with h5py.File(old, "a") as file:
        for index in range(4):
            file[f"temperature_{index:03d}/rate_total"] = np.full((10, 6), float(index))
            group = file.create_group(f"temperature_{index:03d}/cumulative_by_path")
            group["abscissa"] = np.array([1.0, 10.0])
            group["kappa"] = np.stack([0.5 * np.eye(3), np.eye(3)])
            file[f"temperature_{index:03d}/cumulative_by_omega"] = group
    result = quasi.open(old)
    assert isinstance(result, ThermalResult)
    assert np.all(np.asarray(result.at(300.0, "rate_total")) == 2.0)
    assert "cumulative" in result.plots()
    result.plot(tmp_path / "cumulative.svg", "cumulative")


def test_blocks_of_text_tables() -> None:
    blocks = read_blocks("# head\n1 2\n3 4\n\n\n# next\n5 6\n")
    assert [comments for comments, _ in blocks] == [["head"], ["next"]]
    assert blocks[0][1].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_nothing_there_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(quasi.ResultError, match="does not exist; name a folder"):
        quasi.open(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "result.h5").write_bytes(b"not HDF5")
    with pytest.raises(quasi.ResultError, match="no HDF5 file"):
        quasi.open(tmp_path)


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "result.h5", "w") as file:
        file.attrs["kind"] = "elastic"
    with pytest.raises(quasi.ResultError, match="kind 'elastic'; known kinds: thermal, mosfet"):
        quasi.open(tmp_path)
