"""What this machine has: devices, drivers, limits, room on disks; and problems that prevent a run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class ObservationState(StrEnum):
    """How a thing is, in the word that is shown."""

    OK = "ok"
    NOTE = "note"
    """Nothing is wrong; good to know."""
    NOISY = "noisy"
    """Measuring works, and times are longer or vary more than they have to."""
    MISSING = "missing"
    """What is asked for cannot be done without it."""
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Observation:
    """One row of the table.

    Args:
      name: What was looked at.
      state: How it is.
      finding: What was found, a phrase.
      remedy: What to do; empty where there is nothing to do.
    """

    name: str
    state: ObservationState
    finding: str
    remedy: str = ""


@dataclass(frozen=True)
class Obstacle:
    """A problem that prevents a run (or, as a warning, what will be missing) and its remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


MB = 10**6
GB = 10**9

GOOGLE = "0x1ae0"
TPU_DEVICES = frozenset({"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"})
"""PCI ids of v2 to v7x. Source: jax/_src/hardware_utils.py, which knows a TPU machine by the same list."""

CDI_FOLDERS = ("etc/cdi", "var/run/cdi")
NVIDIA_HOOK = "nvidia-container-runtime-hook"
"""What docker's `--gpus` calls; a toolkit without it makes CDI files only."""

_KERNEL_MODULE = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)")


@dataclass(frozen=True)
class Host:
    """A machine, as far as a launcher can see it.

    Args:
      driver: Version of NVIDIA's driver, such as `580.65.06`; None without one.
      gpus: NVIDIA GPUs that the driver names.
      toolkit: Whether NVIDIA's hook for docker is installed.
      cdi_gpu: Whether a CDI file describes `nvidia.com/gpu`.
      profiling_restricted: Whether the driver keeps performance counters for administrators; None without a driver.
      tpu_chips: TPUs on the PCI bus.
      tpu_nodes: Device files of the TPUs, one by one.
      tpu_groups: Group ids that these files belong to.
    """

    driver: str | None = None
    gpus: int = 0
    toolkit: bool = False
    cdi_gpu: bool = False
    profiling_restricted: bool | None = None
    tpu_chips: int = 0
    tpu_nodes: tuple[str, ...] = ()
    tpu_groups: tuple[int, ...] = ()

    @property
    def driver_major(self) -> int | None:
        """`580` of `580.65.06`."""
        return int(self.driver.partition(".")[0]) if self.driver else None


def look_at_host(root: Path = Path("/")) -> Host:
    """Reads the machine.

    Args:
      root: Where its file system begins; the tests have machines of their own.
    """
    is_here = root == Path("/")
    driver, gpus = _nvidia(root)
    if driver is None and is_here:  # WSL has no /proc/driver/nvidia
        driver, gpus = _nvidia_smi()
    chips = _tpu_chips(root)
    nodes = _tpu_nodes(root, chips)
    return Host(
        driver=driver,
        gpus=gpus,
        toolkit=is_here and shutil.which(NVIDIA_HOOK) is not None,
        cdi_gpu=_has_cdi_gpu(root),
        profiling_restricted=_profiling_restricted(root) if driver else None,
        tpu_chips=chips,
        tpu_nodes=nodes,
        tpu_groups=tuple(sorted({(root / node.lstrip("/")).stat().st_gid for node in nodes})),
    )


def read_text(path: Path) -> str:
    """A file's text, stripped; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf8", errors="replace").strip()
    except OSError:
        return ""


def _nvidia(root: Path) -> tuple[str | None, int]:
    match = _KERNEL_MODULE.search(read_text(root / "proc/driver/nvidia/version"))
    return (match[1] if match else None), len(list((root / "proc/driver/nvidia/gpus").glob("*")))


def _nvidia_smi() -> tuple[str | None, int]:
    client = shutil.which("nvidia-smi")
    if client is None:
        return None, 0
    query = [client, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None, 0
    versions = [line.strip() for line in done.stdout.splitlines() if re.fullmatch(r"\d[\d.]*", line.strip())]
    return (versions[0], len(versions)) if done.returncode == 0 and versions else (None, 0)


def _has_cdi_gpu(root: Path) -> bool:
    files = (path for folder in CDI_FOLDERS for path in (root / folder).glob("*"))
    return any("nvidia.com/gpu" in read_text(path) for path in files)


def _profiling_restricted(root: Path) -> bool | None:
    match = re.search(r"RmProfilingAdminOnly:\s*(\d)", read_text(root / "proc/driver/nvidia/params"))
    return match[1] == "1" if match else None


def _tpu_chips(root: Path) -> int:
    folders = (root / "sys/bus/pci/devices").glob("*")
    return sum(read_text(item / "vendor") == GOOGLE and read_text(item / "device") in TPU_DEVICES for item in folders)


def _tpu_nodes(root: Path, chips: int) -> tuple[str, ...]:
    """/dev/accel* (v4) or, where there is a TPU at all, /dev/vfio/*: any machine may use VFIO for something else."""
    accelerators = sorted((root / "dev").glob("accel[0-9]*"), key=_number)
    groups = sorted((root / "dev/vfio").glob("[0-9]*"), key=_number) if chips else []
    container = [root / "dev/vfio/vfio"] if groups and (root / "dev/vfio/vfio").exists() else []
    return tuple(f"/{path.relative_to(root)}" for path in (*accelerators, *groups, *container))


def _number(path: Path) -> int:
    return int(re.sub(r"\D", "", path.name) or 0)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of time that this process' control groups allow; None without a limit.

    A group may be limited itself or by any that it is in: the least counts. The harness reads the same for its record.
    """
    quotas = []
    for line in read_text(root / "proc/self/cgroup").splitlines() or ("0::/", "1:cpu:/"):
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            pairs = [read_text(group / "cpu.max").split() for group in _groups(root / "sys/fs/cgroup", path)]
        elif "cpu" in controllers.split(","):
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            pairs = [[read_text(group / name) for name in names] for group in _groups(root / "sys/fs/cgroup/cpu", path)]
        else:
            continue
        quotas += [int(pair[0]) / int(pair[1]) for pair in pairs if len(pair) == 2 and all(map(str.isdigit, pair))]
    return min(quotas, default=None)


def _groups(top: Path, path: str) -> Iterator[Path]:
    """A control group and all that it is in; inside a container its own path leads nowhere, and the top is its own."""
    for depth in range(len(parts := [part for part in path.split("/") if part]) + 1):
        yield top.joinpath(*parts[:depth])


def allowed_cores() -> int:
    """Cores that this process may use, not those that the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_bytes(folder: str | None) -> int | None:
    """Free room where a folder is; None where it is not on this machine, as with an engine in a virtual machine."""
    if folder is None:
        return None
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
