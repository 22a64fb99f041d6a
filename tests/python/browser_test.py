"""Pages in a real browser: a report is opened offline in headless Chromium, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import pytest

import quasi
from quasi import report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def browse(page: Path, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Opens a page without any network. What its scripts and links report goes to stderr."""
    words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={profile}",
             "--host-resolver-rules=MAP * ~NOTFOUND", *more, page.as_uri()]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.parametrize("name", ["silicon", "steady_transistor", "quasiparticles"])
def test_a_report_opens_offline(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The page shows every figure and table, fits the width of a laptop and reports no error."""
    result = quasi.open(request.getfixturevalue(name))
    page = tmp_path / "report.html"
    report.write(result, page)
    document = browse(page, tmp_path / "a", "--dump-dom")
    assert document.stdout.count("<svg") >= len(result.plots())
    assert "CONSOLE" not in document.stderr
    picture = tmp_path / "report.png"
    browse(page, tmp_path / "b", f"--screenshot={picture}", "--window-size=1280,4000")
    image = matplotlib.image.imread(picture)[..., :3]
    assert image.shape[1] == 1280
    written = (image < 0.9).any(axis=-1)
    assert 0.01 < written.mean() < 0.5
    # Both margins are empty, so nothing is cut off.
    assert not written[:, :4].any() and not written[:, -4:].any()
