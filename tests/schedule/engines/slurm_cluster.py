"""A real Slurm on loopback: a controller and two nodes with fake GPUs, in a folder of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
HOST = socket.gethostname().partition(".")[0]

CONF = """\
ClusterName=epochcast
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={first}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={run}/munge/socket
CredType=cred/munge
StateSaveLocation={run}/state
SlurmdSpoolDir={run}/spool.%n
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd.%n.pid
SlurmctldLogFile={run}/slurmctld.log
SlurmdLogFile={run}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmdTimeout=10
KillWait=2
ReturnToService=2
MpiDefault=none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=8 RealMemory=4000 Gres=gpu:k80:2 Feature=NC12,NC6
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=8 RealMemory=4000 Gres=gpu:m60:2 Feature=NV12,NV6
PartitionName=all Nodes=n1,n2 Default=YES State=UP OverSubscribe=NO
"""


def missing() -> list[str]:
    """The programs of Slurm that are not on this machine."""
    return [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None]


class SlurmCluster:
    """Started when made; `environment` is what its commands need."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.environment = {"SLURM_CONF": str(run / "slurm.conf")}
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "fake", "munge", "spool.n1", "spool.n2"):
            (run / name).mkdir()
        self._start_munge()
        controller, first, second = _free_ports(3)
        conf = CONF.format(host=HOST, run=run, controller=controller, first=first, second=second)
        (run / "slurm.conf").write_text(conf)
        for number in range(4):
            os.mknod(run / f"fake/gpu{number}", 0o600 | 0o020000, os.makedev(1, 3))
        lines = [f"NodeName=n1 Name=gpu Type=k80 File={run}/fake/gpu[0-1]"]
        lines.append(f"NodeName=n2 Name=gpu Type=m60 File={run}/fake/gpu[2-3]")
        (run / "gres.conf").write_text("\n".join(lines) + "\n")
        self._controller = self._spawn("slurmctld", "-D")
        for node in ("n1", "n2"):
            self.start_node(node)
        self._wait_for_nodes()

    def _start_munge(self) -> None:
        folder = self.run / "munge"
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        files = [f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")]
        words = ["munged", "--foreground", "--force", f"--socket={folder}/socket", *files]
        self._munge = subprocess.Popen(
            ["/usr/sbin/" + words[0], *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _until((folder / "socket").exists, "munged")

    def _spawn(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [f"/usr/sbin/{program}", *words, "-f", str(self.run / "slurm.conf")],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._nodes[node] = self._spawn("slurmd", "-D", "-N", node)

    def kill_node(self, node: str) -> None:
        """Its daemon and everything that runs on it die at once; the controller is told, as by a health check."""
        self._nodes[node].kill()
        pids = list(_running_in(self.run / f"spool.{node}", node))
        for how in (signal.SIGSTOP, signal.SIGKILL):  # nobody sees another one die
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        self.command("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def revive_node(self, node: str) -> None:
        """Start it again."""
        self.start_node(node)
        self.command("scontrol", "update", f"nodename={node}", "state=resume")
        self._wait_for_nodes()

    def command(self, *words: str) -> str:
        """The output of one of Slurm's commands."""
        env = {**os.environ, **self.environment}
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False).stdout

    def _wait_for_nodes(self) -> None:
        def is_up() -> bool:
            lines = self.command("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
            return sum(line.strip().endswith(("idle", "mixed", "allocated")) for line in lines) == 2

        _until(is_up, "two Slurm nodes")

    def stop(self) -> None:
        """End everything."""
        self.command("scancel", "--user=root")
        for process in (*self._nodes.values(), self._controller, self._munge):
            process.terminate()
        for process in (*self._nodes.values(), self._controller, self._munge):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _running_in(spool: Path, node: str) -> list[int]:
    """Processes of jobs on a node: those that Slurm gave its name, and the daemons that hold them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        here = (
            f"SLURMD_NODENAME={node}".encode() in variables
            and f"SLURM_CONF={spool.parent}/slurm.conf".encode() in variables
        )
        if here or (b"slurmstepd" in words and str(spool).encode() in words):
            found.append(int(entry.name))
    return found


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _until(is_there: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not is_there():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not start")
        time.sleep(0.1)
