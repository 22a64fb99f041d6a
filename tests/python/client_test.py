"""Submit, wait and plot against a real server and a real worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

import quasi
from quasi import config, transfer
from quasi.client import Client, JobError

SOURCE = Path(__file__).resolve().parents[2]
SILICON = SOURCE / "examples/thermal/silicon"


def test_submit_wait_plot(server: str, tmp_path: Path) -> None:
    with Client(server=server) as client:
        job = client.submit("thermal", SILICON, name="from python", ngrid=[4, 4, 4], T=[300, 400])
        result = job.wait(timeout_s=120.0).result(tmp_path / "out")
        assert np.asarray(result.temperature).tolist() == [300.0, 400.0]
        result.plot(tmp_path / "kappa.svg")
        assert (tmp_path / "kappa.svg").stat().st_size > 1000
        assert job.id in [each.id for each in client.list()]


def test_asynchronous_programs(server: str) -> None:
    async def work() -> str:
        client = Client(server=server)
        job = await client.submit_async("mosfet", SOURCE / "examples/mosfet/equilibrium.toml")
        await job.wait_async(timeout_s=120.0)
        return job.state

    assert asyncio.run(work()) == "succeeded"


def test_a_refused_deck_carries_the_sentence_of_the_engine(server: str, tmp_path: Path) -> None:
    deck = tmp_path / "deck.toml"
    deck.write_text('kind = "mosfet"\n[mesh]\nnx = -3\n')
    with Client(server=server) as client:
        with pytest.raises(JobError, match="failed: .*nx"):
            client.submit("mosfet", deck).wait(timeout_s=120.0)


def test_cancel(server: str) -> None:
    with Client(server=server) as client:
        job = client.submit("thermal", SILICON, ngrid="18 18 18", four_phonon=True)
        assert job.cancel("not needed") in ("cancelled", "cancelling")


def test_an_unknown_job_is_an_error(server: str) -> None:
    with Client(server=server) as client, pytest.raises(JobError):
        client.job("j_00000000000000000000000000").refresh()


def test_an_absent_server_is_named(tmp_path: Path) -> None:
    client = Client(server=f"unix:{tmp_path}/none.sock", timeout_s=1.0)
    with pytest.raises(JobError, match="none.sock"):
        client.list()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ".hidden", "", "a//b"])
def test_names_of_results_do_not_lead_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(transfer.TransferError):
        transfer.safe_target(tmp_path, name)


def test_a_link_inside_the_folder_does_not_lead_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").symlink_to(tmp_path)
    with pytest.raises(transfer.TransferError, match="elsewhere"):
        transfer.safe_target(tmp_path / "out", "sub/x")


def test_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.toml"
    file.write_text('[context]\nuse = "lab"\n[context.lab]\naddress = "gpu1:7460"\n')
    monkeypatch.setenv("QUASI_CONFIG", str(file))
    monkeypatch.delenv("QUASI_SERVER", raising=False)
    monkeypatch.delenv("QUASI_CONTEXT", raising=False)
    assert config.address_of() == "gpu1:7460"
    with pytest.raises(config.ConfigError, match="known contexts: lab"):
        config.address_of("home")


def test_decks_that_cannot_travel(tmp_path: Path) -> None:
    with pytest.raises(transfer.TransferError, match="does not exist"):
        transfer.collect("thermal", tmp_path / "absent")
    with pytest.raises(transfer.TransferError, match="holds no files"):
        transfer.collect("thermal", tmp_path)
