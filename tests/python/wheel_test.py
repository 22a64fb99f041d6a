"""The wheel holds the whole package, is built offline, and works in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BINARIES, SOURCE


def run(*words: object, cwd: Path, text: str | None = None, **variables: object) -> str:
    """Runs a program without the paths of the build tree, and returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {name: str(value) for name, value in variables.items()}
    answer = subprocess.run([str(word) for word in words], cwd=cwd, env=environment, check=False,
                            capture_output=True, text=True, input=text)
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


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Debian's numpy, h5py, matplotlib and grpcio, and the wheel alone."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder,
        cwd=folder.parent)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q",
        "--no-index", "--no-deps", wheel, cwd=folder.parent)
    return folder


def test_the_wheel_works_in_an_empty_environment(environment: Path, made_thermal: Path,
                                                 tmp_path: Path) -> None:
    program = "import quasi, quasi.client; print(quasi.__file__)"
    place = run(environment / "bin/python", "-c", program, cwd=tmp_path)
    assert place.startswith(str(environment))
    drawn = run(environment / "bin/quasi-python", "plot", made_thermal, "-o", "kappa.svg",
                cwd=tmp_path)
    assert drawn.strip() == "kappa.svg" and (tmp_path / "kappa.svg").stat().st_size > 1000


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with the configuration of a user of a server that speaks TLS and asks for tokens. The
    server was set up, and the worker joined, by the documented commands."""
    folder = tmp_path_factory.mktemp("remote")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    setup = run(BINARIES / "quasi-server", "init", "--hostname", "localhost", "--bind", "127.0.0.1",
                "--port", port, "--data-directory", folder / "data", "--config",
                folder / "server.toml", cwd=folder)
    log = (folder / "server.log").open("w")
    processes = [subprocess.Popen([BINARIES / "quasi-server", "--config", folder / "server.toml"],
                                  stdout=log, stderr=log)]
    end = time.monotonic() + 60.0
    while '"ready"' not in (folder / "server.log").read_text():
        assert processes[0].poll() is None and time.monotonic() < end
        time.sleep(0.1)
    admin, join = (re.search(rf"{words} (\S+)", setup).group(1)
                   for words in ("quasi login", "quasi-worker join"))
    place = {"QUASI_CONFIG": folder / "client.toml", "QUASI_STATE": folder / "state"}
    run(BINARIES / "quasi", "login", "-", cwd=folder, text=admin, **place)
    (folder / "worker.toml").write_text(f'devices = "none"\nstate_directory = "{folder}/worker"\n')
    worker = [BINARIES / "quasi-worker", "--config", folder / "worker.toml"]
    run(*worker, "join", "-", cwd=folder, text=join)
    processes.append(subprocess.Popen(worker, stdout=log, stderr=log))
    yield folder
    for process in reversed(processes):
        process.kill()
        process.wait()


SUBMIT_WAIT_PLOT = """
import sys, quasi
with quasi.Client() as client:
    job = client.submit("thermal", sys.argv[1], ngrid=[4, 4, 4], T=[300, 400])
    result = job.wait(timeout_s=120.0).result("out")
    print(result.plot("kappa.svg") or "drawn", quasi.client.config.place_of().ca)
"""


def test_submit_wait_plot_over_tls_with_a_token(environment: Path, remote: Path,
                                                tmp_path: Path) -> None:
    """The installed wheel finds the context that `quasi login` wrote, and the engine beside it."""
    deck = SOURCE / "examples/thermal/silicon"
    answer = run(environment / "bin/python", "-c", SUBMIT_WAIT_PLOT, deck, cwd=tmp_path,
                 QUASI_CONFIG=remote / "client.toml", QUASI_ENGINE=BINARIES / "quasi-engine")
    assert answer.strip().endswith(".pem")
    assert (tmp_path / "kappa.svg").stat().st_size > 1000


@pytest.mark.parametrize("key, says", [
    ("token_file", "token"), ("ca", "if this server speaks TLS, run: quasi login"),
])
def test_without_token_or_ca_nothing_is_answered(key: str, says: str, environment: Path,
                                                 remote: Path, tmp_path: Path) -> None:
    config = tmp_path / "client.toml"
    lines = (remote / "client.toml").read_text().splitlines()
    config.write_text("\n".join(line for line in lines if not line.startswith(key)))
    program = "import quasi; quasi.Client(timeout_s=5.0).list()"
    answer = subprocess.run([environment / "bin/python", "-c", program], cwd=tmp_path, text=True,
                            env={"PATH": os.environ["PATH"], "QUASI_CONFIG": str(config)},
                            capture_output=True, check=False)
    assert answer.returncode != 0
    assert re.search(says, answer.stderr.splitlines()[-1]), answer.stderr
