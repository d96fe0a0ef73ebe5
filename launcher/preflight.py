"""Before anything is downloaded or built: can this machine do what is asked? Each problem with its remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from launcher.backends import CUDA_LOCKS, ENVIRONMENTS
from launcher.engines import Engine
from launcher.host import Host
from launcher.options import UsageError
from launcher.request import Request

WITHOUT_DEVICE = "without the device, measure on this machine's processor: nox -s cpu"

CUDA_OF = {lock: cuda for cuda, lock in CUDA_LOCKS.items()}


@dataclass(frozen=True)
class Problem:
    """What stands in the way (or, as a warning, what will be missing) and what to do about it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def check(backend: str, request: Request, host: Host, engine: Engine | None) -> None:
    """Raises UsageError with one line a problem, where the backend's devices cannot be used here."""
    if problems := find_problems(backend, request, host, engine):
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UsageError(f"nox -s {backend} cannot measure on this machine; nothing was downloaded or built{lines}")


def find_problems(
    backend: str,
    request: Request,
    host: Host,
    engine: Engine | None,
    is_accessible: Callable[[str], bool] | None = None,
) -> list[Problem]:
    """What stands in the way of a backend, most fundamental first; empty where nothing does."""
    if backend == "gpu":
        return _gpu_problems(request, host, engine)
    if backend == "tpu":
        return _tpu_problems(request, host, engine, is_accessible or partial(_is_accessible, engine))
    return []


def find_warnings(backend: str, host: Host, *, is_root: bool) -> list[Problem]:
    """What will be missing from the results, though times are right."""
    if backend == "gpu" and host.profiling_restricted and not is_root:
        return [
            Problem(
                "the driver keeps performance counters for administrators (RmProfilingAdminOnly: 1), so traces may "
                "hold no device activity; times are not affected",
                "for traces, set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia (/etc/modprobe.d) and "
                "reboot, or run with --profile-privileged",
            )
        ]
    return []


def _gpu_problems(request: Request, host: Host, engine: Engine | None) -> list[Problem]:
    needed = ENVIRONMENTS[request.lock].oldest_driver
    if host.driver_major is None:
        looked = "looked for /proc/driver/nvidia/version and nvidia-smi"
        wanted = "one that your image can use" if request.image else f"version {needed} or newer"
        return [Problem(f"no NVIDIA driver ({looked})", f"install {wanted}; {WITHOUT_DEVICE}")]
    problems = []
    if needed and host.driver_major < needed and request.image is None:  # an image of one's own brings its own CUDA
        what = f"driver {host.driver} is older than {needed}, which CUDA {CUDA_OF[request.lock]} needs"
        problems.append(Problem(what, _driver_remedy(host.driver_major, needed)))
    if host.gpus == 0:
        problems.append(Problem("the driver names no GPU", f"see what nvidia-smi says; {WITHOUT_DEVICE}"))
    if engine and not _gives_gpus(engine, host):
        problems.append(
            Problem(
                f"{engine} cannot hand GPUs to a container (no NVIDIA runtime, no CDI file for nvidia.com/gpu)",
                "install nvidia-container-toolkit and run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
                ", or measure without a container: --runtime local",
            )
        )
    if request.profile_privileged and engine and engine.rootless:
        problems.append(
            Problem(
                f"--profile-privileged needs an engine that runs as root; {engine} has no more rights than its caller",
                "leave it out; the driver's own setting is the other way (see docs/containers.md)",
            )
        )
    return problems


def _driver_remedy(driver: int, needed: int) -> str:
    fitting = [
        cuda
        for cuda, lock in CUDA_LOCKS.items()
        if driver >= (ENVIRONMENTS[lock].oldest_driver or 0) and ENVIRONMENTS[lock].oldest_driver != needed
    ]
    if fitting:
        return f"use CUDA {fitting[0]}, which this driver can run (--cuda {fitting[0]}), or update the driver"
    return f"update the driver to {needed} or newer; {WITHOUT_DEVICE}"


def _gives_gpus(engine: Engine, host: Host) -> bool:
    if engine.kind == "podman":
        return host.cdi_gpu
    return engine.nvidia_runtime or host.toolkit or (engine.cdi and host.cdi_gpu)


def _tpu_problems(
    request: Request, host: Host, engine: Engine | None, is_accessible: Callable[[str], bool]
) -> list[Problem]:
    if not host.tpu_nodes and not host.tpu_chips:
        looked = "looked for /dev/accel*, and for TPUs on the PCI bus with /dev/vfio/*"
        return [Problem(f"no TPU ({looked})", f"run on a TPU VM; {WITHOUT_DEVICE}")]
    if not host.tpu_nodes:
        return [
            Problem(
                f"{host.tpu_chips} TPU chips on the PCI bus, and no device file for them (/dev/accel*, /dev/vfio/*)",
                "load the machine's TPU driver, or make the VM anew from a TPU image",
            )
        ]
    closed = [node for node in host.tpu_nodes if not is_accessible(node)]
    has_root = engine is not None and not engine.rootless
    if closed and not (request.privileged and has_root):
        everything = "; or give the container everything: --privileged" if has_root else ""
        remedy = f"let a group of your user read and write them, or run as root{everything}"
        return [Problem(f"no permission for {', '.join(closed)}", remedy)]
    return []


def _is_accessible(engine: Engine | None, node: str) -> bool:
    """Whether a device file can be used: by the caller, or by a container, which a root engine puts into its group."""
    if os.access(node, os.R_OK | os.W_OK):
        return True
    try:
        return engine is not None and not engine.rootless and Path(node).stat().st_mode & 0o060 == 0o060
    except OSError:
        return False
