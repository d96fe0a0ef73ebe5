"""A SLURM of one node, this machine: three servers as plain processes, with all that they write in one folder."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cloud.servers import find_port

START_LIMIT_S = 60
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
MUNGE_FILES = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}

# Without cgroups and accounting, which need the machine's own; jobs of two nodes wait forever, as there is one. The GPU
# is made up: a file that nobody opens.
CONFIGURATION = """
ClusterName=rig
SlurmctldHost={node}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
KillWait=30
GresTypes=gpu
NodeName={node} NodeAddr=127.0.0.1 CPUs={cores} Gres=gpu:1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float, tell: Callable[[], str] = str) -> None:
    """Waits for something, and fails with what `tell` says if it does not come."""
    end = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > end:
            pytest.fail(f"not so after {limit_s} s: {what}\n{tell()}")
        time.sleep(0.2)


class Slurm:
    """A SLURM that runs: its commands, and its jobs."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = {**os.environ, **variables}

    def ask(self, *command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A command of SLURM to its end."""
        words = list(map(str, command))
        return subprocess.run(
            words, env=self.variables, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )

    def is_idle(self) -> bool:
        """Whether its node waits for a job."""
        return "idle" in self.ask("sinfo", "--noheader", "--format=%T").stdout.split()

    def submit(self, script: Path, cwd: Path) -> str:
        """The id of a job that a script has become, with its log in a folder."""
        done = self.ask("sbatch", "--parsable", script, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def read_job(self, job: str) -> dict[str, str]:
        """What SLURM knows of a job."""
        words = self.ask("scontrol", "--oneliner", "show", "job", job).stdout.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_for(self, job: str, *states: str, limit_s: float) -> dict[str, str]:
        """What SLURM knows of a job that has come to one of some states."""
        wait_until(lambda: self.read_job(job).get("JobState") in states, f"job {job} in {' or '.join(states)}", limit_s)
        return self.read_job(job)


@contextmanager
def start_slurm(folder: Path) -> Iterator[Slurm]:
    """A SLURM for the time of a block; nothing of it is left."""
    search = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [program for program in PROGRAMS if shutil.which(program, path=search) is None]:
        pytest.fail(f"not installed: {', '.join(missing)}; on Debian: apt install munge slurm-wlm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    node = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            node=node,
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=folder,
            controller_port=find_port(),
            node_port=find_port(),
            cores=os.cpu_count(),
        )
    )
    (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    slurm = Slurm({"PATH": search, "SLURM_CONF": str(folder / "slurm.conf")})
    with ExitStack() as stack:
        munge = [f"--{name}={folder / 'munge'}.{ending}" for name, ending in MUNGE_FILES.items()]
        _start(stack, slurm, folder, "munged", "--foreground", "--force", "--num-threads=2", *munge)
        wait_until((folder / "munge.socket").exists, "munged answers", START_LIMIT_S, lambda: _tell(folder))
        _start(stack, slurm, folder, "slurmctld", "-D")
        _start(stack, slurm, folder, "slurmd", "-D", "-N", node)
        stack.callback(slurm.ask, "scancel", "--me")
        wait_until(slurm.is_idle, "the node is idle", START_LIMIT_S, lambda: _tell(folder))
        yield slurm


def _start(stack: ExitStack, slurm: Slurm, folder: Path, *command: str) -> None:
    """Starts a server, which ends with the stack."""
    output = stack.enter_context((folder / f"{command[0]}.output").open("wb"))
    server = subprocess.Popen(command, env=slurm.variables, cwd=folder, stdout=output, stderr=output)
    stack.callback(_end, server)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _tell(folder: Path) -> str:
    """The ends of the servers' logs."""
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.log")))
