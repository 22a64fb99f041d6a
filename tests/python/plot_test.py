"""Figures and pages: every figure is drawn, in every format, and twice with the same bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import quasi
from conftest import SOURCE, run_engine
from quasi import plot, report
from quasi.__main__ import main
from quasi.plot.style import PlotError
from quasi.plot.thermal import lines_of_the_mesh, ticks_of_path

PICTURES = Path(__file__).parent / "pictures"


def ink(path: Path) -> float:
    """Share of the pixels of a PNG that are not white."""
    image = matplotlib.image.imread(path)[..., :3]
    return float((image < 0.99).any(axis=-1).mean())


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_equal_figures_have_equal_bytes(made_thermal: Path, tmp_path: Path, ending: str) -> None:
    for run in ("a", "b"):
        quasi.open(made_thermal).plot(tmp_path / f"{run}.{ending}", "kappa")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_png_has_300_dpi(made_thermal: Path, tmp_path: Path) -> None:
    quasi.open(made_thermal).plot(tmp_path / "k.png", "kappa")
    assert matplotlib.image.imread(tmp_path / "k.png").shape[1] == round(3.4 * 300)


def coarse(path: Path) -> np.ndarray:
    """The pixels of a PNG averaged over squares of 8, so that another font renderer passes."""
    image = matplotlib.image.imread(path)[..., :3]
    rows, columns = (size // 8 * 8 for size in image.shape[:2])
    return image[:rows, :columns].reshape(rows // 8, 8, columns // 8, 8, 3).mean(axis=(1, 3))


def difference(ours: np.ndarray, stored: np.ndarray) -> float:
    """Largest difference of two pictures, averaged over squares of 4×4 of their pixels."""
    assert ours.shape == stored.shape
    rows, columns = (size // 4 * 4 for size in ours.shape[:2])
    apart = np.abs(ours - stored).max(axis=-1)[:rows, :columns]
    return float(apart.reshape(rows // 4, 4, columns // 4, 4).mean(axis=(1, 3)).max())


@pytest.mark.parametrize("name", ["made_thermal", "silicon", "transistor", "steady_transistor",
                                  "quasiparticles", "full_matrix"])
def test_every_figure_looks_as_it_did(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Every figure has ink and is compared with its stored picture. To store new ones, after a look
    at each, set QUASI_STORE_PICTURES=1. The bound is a tenth of the full scale in any square."""
    result = quasi.open(request.getfixturevalue(name))
    names = result.plots()
    assert len(names) >= 2
    for what in names:
        drawn, stored = tmp_path / f"{what}.png", PICTURES / name / f"{what}.png"
        result.plot(drawn, what)
        assert 0.02 < ink(drawn) < 0.95, what
        if os.environ.get("QUASI_STORE_PICTURES"):
            stored.parent.mkdir(parents=True, exist_ok=True)
            matplotlib.image.imsave(stored, coarse(drawn))
        assert stored.exists(), f"{stored} is not stored"
        assert difference(coarse(drawn), matplotlib.image.imread(stored)[..., :3]) < 0.1, what


def test_a_missing_curve_is_seen(silicon: Path, tmp_path: Path) -> None:
    """The comparison notices a curve that is drawn at another height."""
    result = quasi.open(silicon)
    result.plot(tmp_path / "kappa.png", "kappa")
    stored = coarse(tmp_path / "kappa.png")
    moved = stored.copy()
    curve = stored.min(axis=-1) < 0.7
    inside = np.zeros_like(curve)
    inside[20:-30, 30:-10] = curve[20:-30, 30:-10]
    moved[inside] = 1.0
    assert difference(moved, stored) > 0.1


def test_dispersion_begins_at_x_and_ends_at_l(silicon: Path) -> None:
    result = quasi.open(silicon)
    points, corners, names = lines_of_the_mesh(np.array([6, 6, 6]))
    assert names == ["½ ½ 0", "Γ", "½ ½ ½"] and corners == [0, 3, 6]
    reduced = points / 6
    assert reduced[[0, 3, 6]].tolist() == [[0.5, 0.5, 0], [0, 0, 0], [0.5, 0.5, 0.5]]
    figure = plot.draw([result], "dispersion")
    lines = np.array([line.get_ydata() for line in figure.axes[0].get_lines()[:6]])
    # Γ has three acoustic modes, and X has pairs of equal frequencies.
    assert np.abs(lines[:3, 3]).max() < 0.05 and lines[3:, 3].min() > 10.0
    assert np.allclose(lines[0::2, 0], lines[1::2, 0], rtol=1e-6)


def test_meshes_without_these_points_get_other_lines() -> None:
    points, corners, names = lines_of_the_mesh(np.array([5, 2, 4]))
    assert names == ["near ½ 0 0", "Γ", "0 0 ½"] and corners == [0, 2, 4]
    assert points[0].tolist() == [2, 0, 0] and points[-1].tolist() == [0, 0, 2]


def test_the_sum_of_the_energy_balance_is_level(steady_transistor: Path) -> None:
    figure = plot.draw([quasi.open(steady_transistor)], "energy")
    carried, given, total = (np.asarray(line.get_ydata()) for line in figure.axes[0].get_lines())
    # The solver ends its balance at a relative 5e-3.
    assert np.abs(total).max() < 5e-3 * np.abs(given).max()
    assert np.allclose(carried + given, total)


def test_convergence_shows_the_limit_of_each_parameter(full_matrix: Path) -> None:
    result = quasi.open(full_matrix)
    figure = plot.draw([result], "convergence")
    assert len(figure.axes) == 4
    assert [axes.get_xlabel() for axes in figure.axes][-1] == "points of the zone"
    for axes in figure.axes:
        assert len(axes.containers) == 1, "one limit with its error bar"


def test_overlay_names_both(made_thermal: Path, silicon: Path, tmp_path: Path) -> None:
    figure = plot.draw([quasi.open(made_thermal), quasi.open(silicon)], labels=["made", "silicon"])
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any(text.startswith("made, ") for text in texts)
    assert any(text.startswith("silicon, ") for text in texts)


def test_different_kinds_do_not_share_a_figure(made_thermal: Path, transistor: Path) -> None:
    with pytest.raises(PlotError, match="different kinds"):
        plot.draw([quasi.open(made_thermal), quasi.open(transistor)])


def test_an_unknown_figure_gets_the_nearest_name(made_thermal: Path) -> None:
    with pytest.raises(PlotError, match="did you mean 'kappa'"):
        quasi.open(made_thermal).plot(what="kapa")


def test_a_figure_without_data_says_what_there_is(made_thermal: Path) -> None:
    with pytest.raises(PlotError, match="not in .*; it has: kappa, rates, dos"):
        quasi.open(made_thermal).plot(what="dispersion")


def test_the_gallery_shows_every_figure() -> None:
    gallery = (SOURCE / "docs/gallery.md").read_text()
    for kind in ("thermal", "mosfet", "gw"):
        for name in plot._figures(kind):
            pictures = re.findall(rf"figures/{kind}/{kind}-{name}\.(?:svg|png)", gallery)
            assert len(pictures) == 1, f"{kind} {name}"
            assert re.search(rf"^quasi plot \S+( {name})?( -o \S+)?$", gallery, re.M), name


def test_dispersion_follows_the_path_of_the_deck(tmp_path: Path) -> None:
    folder = run_engine("thermal", SOURCE / "examples/thermal/silicon", tmp_path, "ngrid=4,4,4",
                        "path=G 0 0 0 X 0.5 0 0.5 U 0.625 0.25 0.625 | K 0.375 0.375 0.75 G 0 0 0",
                        "path_points=11")
    result = quasi.open(folder)
    places, names = ticks_of_path(result)
    assert names == ["Γ", "X", "U|K", "Γ"]
    assert places[0] == 0.0 and places == sorted(places)
    axes = plot.draw([result], "dispersion").axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == names
    # Six bands on three segments, each with the colours of its linewidths.
    lines = axes.get_lines()
    assert len(lines) == 18
    assert sorted(float(line.get_ydata()[0]) for line in lines[:3]) == pytest.approx([0, 0, 0],
                                                                                     abs=0.05)
    (widths,) = [image for image in axes.collections if image.get_array() is not None]
    assert 100 < len(widths.get_array()) <= 180 and np.all(widths.get_array() > 0.0)


def test_curves_that_coincide_share_one_name(silicon: Path) -> None:
    axes = plot.draw([quasi.open(silicon)], "dos").axes[0]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["total", "atoms 1, 2"]


def test_epsilon_alone_has_no_figure(tmp_path: Path) -> None:
    deck = tmp_path / "deck.toml"
    deck.write_text('kind = "gw"\nstop_after = "epsilon"\n[meanfield]\nsource = "epm"\n'
                    "cutoff_ry = 4.0\nbands = 8\n[epsilon]\ncutoff_ry = 2.0\n")
    result = quasi.open(run_engine("gw", deck, tmp_path / "out"))
    assert result.plots() == []
    with pytest.raises(PlotError, match="nothing that can be drawn.*quasi report"):
        result.plot(tmp_path / "any.svg")


def test_an_unknown_ending_is_refused(made_thermal: Path, tmp_path: Path) -> None:
    with pytest.raises(PlotError, match="'.gif'"):
        quasi.open(made_thermal).plot(tmp_path / "k.gif")


def test_the_report_is_one_file_that_loads_nothing(silicon: Path, tmp_path: Path) -> None:
    page = report.write(quasi.open(silicon), tmp_path / "report.html").read_text()
    for heading in ("Result", "Figures", "Numbers", "Provenance", "How to cite"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<svg") == len(quasi.open(silicon).plots())
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "<script" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "ids of several figures must not collide"


def test_the_report_escapes_what_users_wrote(made_thermal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "<b>"
    folder.mkdir()
    (folder / "result.h5").write_bytes((made_thermal / "result.h5").read_bytes())
    (folder / "table.txt").write_text("<script>alert(1)</script>")
    page = report.render(quasi.open(folder))
    assert "<script>" not in page and "<b>" not in page


def test_command_line(made_thermal: Path, tmp_path: Path,
                      capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "k.svg"
    assert main(["plot", str(made_thermal), "kappa", "-o", str(target)]) == 0
    assert target.read_text().startswith("<?xml")
    assert main(["plot", str(made_thermal), "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["kappa", "rates", "dos"]
    assert main(["plot", str(made_thermal), "all", "-o", str(tmp_path / "all")]) == 0
    assert sorted(p.name for p in (tmp_path / "all").iterdir()) == ["dos.svg", "kappa.svg",
                                                                    "rates.svg"]
    assert main(["plot", str(tmp_path / "absent")]) == 4
    assert "does not exist" in capsys.readouterr().err
