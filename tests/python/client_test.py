"""Submit, wait and plot against a real server and a real worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

import quasi
from conftest import BINARIES
from quasi import access, config, sweeps, transfer
from quasi.client import Client, JobError
from quasi.v1 import sweep_pb2

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


def test_a_sweep_is_a_table(server: str) -> None:
    with Client(server=server) as client:
        grid = client.submit_sweep(
            "thermal", SILICON, {"ngrid": ["3,3,3", "4,4,4"], ("T", "isotopes"): [(300, "true")]},
            name="grid", max_concurrent=1, broadening="symmetric",
        )
        assert set(grid.counts()) <= {"queued", "leased", "running", "blocked", "succeeded"}
        rows = grid.wait(timeout_s=120.0).table()
        assert grid.counts() == {"succeeded": 2}
        assert [row["name"] for row in rows] == ["grid[0,0]", "grid[1,0]"]
        assert [row["ngrid"] for row in rows] == ["3,3,3", "4,4,4"]
        assert [row["T"] for row in rows] == ["300", "300"]
        assert all(row["kappa_w_per_mk.xx"] > 0 for row in rows)
        assert [job.id for job in grid.jobs()] == [row["job"] for row in rows]
        assert client.job_set(grid.id).cancel() == 0


def test_a_figure_stops_a_sweep(server: str) -> None:
    with Client(server=server) as client:
        grid = client.submit_sweep(
            "thermal", SILICON, {"T": [310, 320]}, ngrid="3 3 3", max_concurrent=1,
            stop_when=["kappa_w_per_mk.xx >= 0"],
        ).wait(timeout_s=120.0)
        assert grid.counts() == {"cancelled": 1, "succeeded": 1}
        assert "because kappa_w_per_mk.xx >= 0: " in grid.refresh().stop_reason


def test_stop_rules_are_read_and_refused() -> None:
    sweep = sweep_pb2.Sweep()
    sweeps.add_stop_rules(["a.xx<5", " b >= -1.5e-3 : 3 "], sweep)
    assert [(rule.figure, rule.comparison, rule.value, rule.jobs) for rule in sweep.stop_rules] == [
        ("a.xx", 1, 5.0, 1), ("b", 4, -1.5e-3, 3)]
    for text in ("a", "a<", "a<b", "<5", "a<5:0"):
        with pytest.raises(ValueError, match="is no condition"):
            sweeps.add_stop_rules([text], sweep)


def test_figures_are_the_single_values_of_a_summary() -> None:
    document = {
        "summary": {
            "kappa": [[[1.0, 0, 0], [0, 2.0, 0], [0, 0, 3.0]]],
            "points": [{"vgs": 0.2}],
            "mesh": [4, 4, 4],
            "checks": {"ok": True},
            "parts": {"a": 1, "b": None},
        }
    }
    assert sweeps.figures_of(document) == {
        "kappa.xx": 1.0, "kappa.yy": 2.0, "kappa.zz": 3.0, "points.vgs": 0.2, "parts.a": 1,
    }


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


def test_contexts_carry_the_files_of_a_server(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.toml"
    file.write_text('[context.lab]\naddress = "gpu1:7460"\nca = "ca.pem"\n'
                    'token_file = "lab.token"\n')
    monkeypatch.setenv("QUASI_CONFIG", str(file))
    for name in ("QUASI_SERVER", "QUASI_CONTEXT", "QUASI_TOKEN_FILE", "QUASI_CA"):
        monkeypatch.delenv(name, raising=False)
    assert config.place_of("lab") == config.Place("gpu1:7460", "lab.token", "ca.pem")
    monkeypatch.setenv("QUASI_CA", "other.pem")
    assert config.place_of("lab").ca == "other.pem"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert config.place_of() == config.Place("unix:/run/user/7/quasi.sock", "", "other.pem")


def test_plain_text_stays_on_this_machine() -> None:
    with pytest.raises(access.AccessError, match="quasi login CODE"):
        access.open_channel(config.Place("gpu1:7460"))
    for local in ("unix:/s", "localhost:1", "[::1]:1", "127.8.9.1:1"):
        access.open_channel(config.Place(local)).close()


@pytest.mark.parametrize("mode, says", [(0o640, "chmod 600"), (0o600, "holds no token")])
def test_a_token_file_is_private(mode: int, says: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.token"
    file.write_text("secret\n")
    file.chmod(mode)
    tokens = access.Tokens(config.Place("localhost:1", str(file)))
    with pytest.raises(access.AccessError, match=says):
        tokens.metadata()


@pytest.mark.parametrize("has_engine", [True, False])
def test_the_files_of_a_deck_are_found(has_engine: bool, tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """With the engine, which knows what a kind reads, and without it."""
    engine = str(BINARIES / "quasi-engine") if has_engine else None
    monkeypatch.delenv("QUASI_ENGINE", raising=False)
    monkeypatch.setattr(transfer.shutil, "which", lambda name: engine)
    slot, inputs = transfer.collect("thermal", SILICON)
    names = [item.slot for item in inputs]
    assert slot == "deck" and {"deck/CONTROL", "deck/FORCE_CONSTANTS_3RD"} <= set(names)
    assert ("deck/README.md" in names) != has_engine
    deck = SOURCE / "examples/thermal/silicon-renormalised.toml"
    slot, inputs = transfer.collect("thermal", deck)
    names = [item.slot for item in inputs]
    assert slot == names[0] == f"deck/{deck.name}"
    assert "deck/silicon/FORCE_CONSTANTS_3RD" in names
    bad = tmp_path / "sub/bad.toml"
    bad.parent.mkdir()
    (tmp_path / "WFN").write_text("w")
    bad.write_text('kind = "gw"\n[meanfield]\nwfn = "../WFN"\n')
    with pytest.raises(transfer.TransferError, match="'../WFN', which lies outside"):
        transfer.collect("gw", bad)


def test_decks_that_cannot_travel(tmp_path: Path) -> None:
    with pytest.raises(transfer.TransferError, match="does not exist"):
        transfer.collect("thermal", tmp_path / "absent")
    with pytest.raises(transfer.TransferError, match="holds no files"):
        transfer.collect("thermal", tmp_path)
