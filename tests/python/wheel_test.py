"""The wheel holds the whole package, is built offline, and works in an empty environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import SOURCE


def run(*words: object, cwd: Path) -> str:
    """Runs a program without the paths of the build tree, and returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    answer = subprocess.run([str(word) for word in words], cwd=cwd, env=environment, check=False,
                            capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source tree, with its gRPC stubs."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE / "client/python", folder / "client/python",
                    ignore=shutil.ignore_patterns("v1", "build", "*.egg-info", "__pycache__"))
    shutil.copytree(SOURCE / "proto", folder / "proto")
    source = folder / "client/python"
    run(source / "make_stubs", source, cwd=source)
    run(sys.executable, "setup.py", "-q", "bdist_wheel", "-d", folder, cwd=source)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_every_module(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    root = SOURCE / "client/python"
    modules = {str(file.relative_to(root)) for file in root.glob("quasi/**/*.py")
               if "v1" not in file.parts}
    assert modules and modules <= held
    assert "quasi/py.typed" in held
    for proto in (SOURCE / "proto/quasi/v1").glob("*.proto"):
        assert f"quasi/v1/{proto.stem}_pb2.py" in held


def test_the_wheel_works_in_an_empty_environment(wheel: Path, made_thermal: Path,
                                                 tmp_path: Path) -> None:
    """The environment has Debian's numpy, h5py, matplotlib and grpcio, and nothing of Quasi."""
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", tmp_path / "venv",
        cwd=tmp_path)
    python = tmp_path / "venv/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps",
        wheel, cwd=tmp_path)
    place = run(python, "-c", "import quasi, quasi.client; print(quasi.__file__)", cwd=tmp_path)
    assert place.startswith(str(tmp_path / "venv"))
    drawn = run(tmp_path / "venv/bin/quasi-python", "plot", made_thermal, "-o", "kappa.svg",
                cwd=tmp_path)
    assert drawn.strip() == "kappa.svg" and (tmp_path / "kappa.svg").stat().st_size > 1000
