"""A Dask cluster and a Slurm of one node, started for tests and stopped after them."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

REQUIRED = os.environ.get("GRAVEN_CLUSTERS") == "required"
"""Whether tests that need a cluster fail where there is none, instead of being left out."""

HAS_DASK = find_spec("distributed") is not None

SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "srun", "scontrol")

HAS_SLURM = all(shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") for name in SLURM)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# ---- Dask ------------------------------------------------------------------------------------


@dataclass
class DaskCluster:
    """A scheduler, and workers each of which is a process."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    folder: Path

    def add_worker(self) -> None:
        words = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{self.address}"]
        words += ["--nthreads=1", "--no-nanny", "--no-dashboard", "--memory-limit=2GB"]
        words += ["--local-directory", str(self.folder)]
        self.workers.append(_started(words, self.folder / "workers.log"))

    def kill_worker(self, at: int) -> None:
        """As a failure of its host."""
        worker = self.workers.pop(at)
        worker.kill()
        worker.wait()

    def running(self) -> list[subprocess.Popen[bytes]]:
        return [worker for worker in self.workers if worker.poll() is None]


@contextlib.contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host=127.0.0.1"]
    words += [f"--port={port}", "--no-dashboard"]
    cluster = DaskCluster(
        f"127.0.0.1:{port}", _started(words, folder / "scheduler.log"), [], folder
    )
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in (*cluster.workers, cluster.scheduler):
            process.kill()
            process.wait()


def _started(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL)


# ---- Slurm -----------------------------------------------------------------------------------

CONFIGURATION = """
ClusterName=graven
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
KillWait=3
SlurmdTimeout=10
ReturnToService=2
SlurmdParameters=config_overrides
InactiveLimit=0
MinJobAge=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb}
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class SlurmCluster:
    """Munge, the controller and one node, as children of this process."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def environment(self) -> dict[str, str]:
        path = os.environ["PATH"] + ":/usr/sbin"
        return {**os.environ, "PATH": path, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )

    def start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [name, *words],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                start_new_session=True,
            )

    def start_controller(self) -> None:
        self.start("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))

    def kill_controller(self) -> None:
        self.processes["slurmctld"].kill()
        self.processes["slurmctld"].wait()

    @contextlib.contextmanager
    def administrated(self) -> Iterator[None]:
        """Makes the node usable again whenever Slurm has set it aside, as an administrator would.

        After jobs that it could not launch or end, and after a controller that was killed.
        """
        is_over = threading.Event()

        def administrate() -> None:
            host = socket.gethostname().split(".")[0]
            while not is_over.wait(2):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    state = self.command("sinfo", "--noheader", "--format=%T").stdout
                    if any(word in state for word in ("down", "drain", "fail", "*")):
                        self.command("scontrol", "update", f"NodeName={host}", "State=RESUME")

        administrator = threading.Thread(target=administrate)
        administrator.start()
        try:
            yield
        finally:
            is_over.set()
            administrator.join()

    def wait_until_up(self) -> None:
        """Waits until the node runs what it is given.

        Raises:
            RuntimeError: it does not within a minute.
        """
        end = time.monotonic() + 60
        while self.command("srun", "-n1", "--mem=1", "--immediate=5", "true").returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm does not come up:\n{self.told()}")
            time.sleep(0.3)

    def told(self) -> str:
        """What Slurm says of itself: node, queue, and the ends of its logs."""
        parts = [
            self.command("sinfo", "--Node", "--long").stdout,
            self.command("squeue", "--array", "--format=%i %j %T %r").stdout,
            *(file.read_text()[-2000:] for file in self.folder.glob("*.log")),
        ]
        return "\n".join(parts)


@contextlib.contextmanager
def slurm_cluster(folder: Path, *, cpus: int = 4, memory_mb: int = 4000) -> Iterator[SlurmCluster]:
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "munge").chmod(0o711)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    text = CONFIGURATION.format(
        host=socket.gethostname().split(".")[0],
        user=getpass.getuser(),
        controller=free_port(),
        node=free_port(),
        folder=folder,
        cpus=cpus,
        memory_mb=memory_mb,
    )
    (folder / "slurm.conf").write_text(text)
    cluster = SlurmCluster(folder, {})
    try:
        munge = [
            f"--{what}={folder}/munge/{what}" for what in ("pid-file", "log-file", "seed-file")
        ]
        cluster.start(
            "munged",
            "-F",
            "--force",
            f"--socket={folder}/munge/socket",
            f"--key-file={key}",
            *munge,
        )
        cluster.start_controller()
        cluster.start("slurmd", "-D", "-f", str(folder / "slurm.conf"))
        cluster.wait_until_up()
        with cluster.administrated():
            yield cluster
    finally:
        cluster.command("scancel", f"--user={getpass.getuser()}")
        for name in ("slurmd", "slurmctld", "munged"):
            if (process := cluster.processes.get(name)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
