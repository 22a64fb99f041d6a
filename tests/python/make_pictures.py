"""Stores the pictures that plot_test.py compares with, averaged over 8×8 pixels.

    PYTHONPATH=build/release/python python3 tests/python/make_pictures.py

Look at every figure before its picture is stored.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import conftest
import matplotlib.image
import pytest

import quasi

PICTURES = Path(__file__).parent / "pictures"


class _Folders:
    """Stands for pytest's factory of temporary folders."""

    def mktemp(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=name))


def main() -> None:
    fixture: Any = conftest.made_thermal
    folder = fixture.__wrapped__(_Folders()) if hasattr(fixture, "__wrapped__") else None
    assert folder is not None, f"pytest {pytest.__version__} wraps fixtures in another way"
    PICTURES.mkdir(exist_ok=True)
    for what in ("kappa", "rates", "dos"):
        drawn = Path(tempfile.mkdtemp()) / f"{what}.png"
        quasi.open(folder).plot(drawn, what)
        image = matplotlib.image.imread(drawn)[..., :3]
        rows, columns = (size // 8 * 8 for size in image.shape[:2])
        coarse = image[:rows, :columns].reshape(rows // 8, 8, columns // 8, 8, 3).mean(axis=(1, 3))
        matplotlib.image.imsave(PICTURES / f"{what}.png", coarse)


if __name__ == "__main__":
    main()
