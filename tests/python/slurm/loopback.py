"""A real Slurm of one node on the loopback: munged, slurmctld and slurmd in a folder."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")


def absence() -> str:
    """Why a real Slurm cannot be started here, or ""."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return (f"{', '.join(missing)} not found; install munge, slurmctld, slurmd and "
                "slurm-client")
    if os.geteuid() != 0:
        return "slurmd starts jobs as root only"
    return ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LoopbackSlurm:
    """Starts the daemons, and ends them with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.host = socket.gethostname().split(".")[0]
        for name in ("munge", "state", "spool"):
            (folder / name).mkdir(mode=0o700)
        socket_path = folder / "munge" / "munge.socket"
        key = folder / "munge" / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        (folder / "slurm.conf").write_text(f"""
ClusterName=loopback
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser={getpass.getuser()}
SlurmdUser=root
SlurmctldPort={_free_port()}
SlurmdPort={_free_port()}
AuthType=auth/munge
AuthInfo=socket={socket_path}
CredType=cred/munge
StateSaveLocation={folder / 'state'}
SlurmdSpoolDir={folder / 'spool'}
SlurmctldPidFile={folder / 'slurmctld.pid'}
SlurmdPidFile={folder / 'slurmd.pid'}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=batch_sched_delay=1,sched_interval=5
KillWait=5
OverTimeLimit=0
MpiDefault=none
NodeName={self.host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=main Nodes={self.host} Default=YES MaxTime=60 State=UP
""")
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        self._start("munged", "--foreground", f"--socket={socket_path}", f"--key-file={key}",
                    f"--pid-file={folder / 'munge' / 'pid'}",
                    f"--seed-file={folder / 'munge' / 'seed'}",
                    f"--log-file={folder / 'munge' / 'log'}", "--force")
        self._await(socket_path.exists, "munged")
        self.start_controller()
        self._start("slurmd", "-D", "-N", self.host)
        self._await(lambda: self._says("sinfo", "-h", "-o", "%T").strip() == "idle", "slurmd")

    def start_controller(self) -> None:
        self.controller = self._start("slurmctld", "-D")
        self._await(lambda: "UP" in self._says("scontrol", "ping"), "slurmctld")

    def stop_controller(self) -> None:
        self.controller.terminate()
        self.controller.wait()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{words[0]}.log").open("ab")
        daemon = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._daemons.append(daemon)
        return daemon

    def _says(self, *words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout

    def _await(self, holds: object, what: str, limit_s: float = 120.0) -> None:
        end = time.monotonic() + limit_s
        while not holds():  # type: ignore[operator]
            if time.monotonic() > end:
                log = self.folder / f"{what}.log"
                raise RuntimeError(f"{what} does not start:\n{log.read_text()[-2_000:]}")
            time.sleep(0.2)

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        os.environ.pop("SLURM_CONF", None)
