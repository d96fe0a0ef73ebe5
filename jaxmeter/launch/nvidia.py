"""NVIDIA GPUs: what a run on them needs, how a container gets them, and what else uses them."""

from __future__ import annotations

from jaxmeter.launch.containers import WITHOUT_DEVICE, Devices
from jaxmeter.launch.engines import Ask, Engine
from jaxmeter.launch.host import Host, Observation, ObservationState, Obstacle
from jaxmeter.launch.images import LOCKS
from jaxmeter.launch.request import Request

CUDA_LOCKS = {"13": "gpu", "12": "gpu-cuda12"}
"""{version of CUDA: its lock}, newest first: the first that a driver can run is the one to use."""

BUSY_PERCENT = 5
"""Utilization that a desktop drawn by the GPU stays below."""

UNUSED_MIB = "0"
"""Memory of a GPU that nothing uses. It may have been busy within the last second, which nvidia-smi reports."""

OTHER_USE_ROW = "GPUs idle"


def find_problems(request: Request, host: Host, engine: Engine | None) -> list[Obstacle]:
    """Return the problems that prevent the use of the GPUs, most fundamental first."""
    needed = LOCKS[request.lock].oldest_driver
    if host.driver_major is None:
        looked = "looked for /proc/driver/nvidia/version and nvidia-smi"
        wanted = "one that your image can use" if request.image else f"version {needed} or newer"
        return [Obstacle(f"no NVIDIA driver ({looked})", f"install {wanted}; {WITHOUT_DEVICE}")]
    problems = []
    if needed and host.driver_major < needed and request.image is None:  # an image of one's own brings its own CUDA
        cuda = next(version for version, lock in CUDA_LOCKS.items() if lock == request.lock)
        what = f"driver {host.driver} is older than {needed}, which CUDA {cuda} needs"
        problems.append(Obstacle(what, _driver_remedy(host.driver_major, needed)))
    if host.gpus == 0:
        problems.append(Obstacle("the driver names no GPU", f"see what nvidia-smi says; {WITHOUT_DEVICE}"))
    if engine and not _gives_gpus(engine, host):
        problems.append(
            Obstacle(
                f"{engine} cannot hand GPUs to a container (no NVIDIA runtime, no CDI file for nvidia.com/gpu)",
                "install nvidia-container-toolkit and run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
                ", or measure without a container: --runtime local",
            )
        )
    if request.profile_privileged and engine and engine.rootless:
        problems.append(
            Obstacle(
                f"--profile-privileged needs an engine that runs as root; {engine} has no more rights than its caller",
                "leave it out; the driver's own setting is the other way (see docs/containers.md)",
            )
        )
    return problems


def _driver_remedy(driver: int, needed: int) -> str:
    oldest = {cuda: LOCKS[lock].oldest_driver or 0 for cuda, lock in CUDA_LOCKS.items()}
    if fitting := [cuda for cuda, its_oldest in oldest.items() if its_oldest <= driver]:
        return f"use CUDA {fitting[0]}, which this driver can run (--cuda {fitting[0]}), or update the driver"
    return f"update the driver to {needed} or newer; {WITHOUT_DEVICE}"


def _gives_gpus(engine: Engine, host: Host) -> bool:
    """Whether an engine can hand GPUs to a container."""
    if engine.kind == "podman":
        return host.cdi_gpu
    return _has_gpus_option(engine, host) or (engine.cdi and host.cdi_gpu)


def _has_gpus_option(engine: Engine, host: Host) -> bool:
    """Whether `--gpus` works with an engine; podman takes CDI names alone."""
    return engine.kind != "podman" and (engine.nvidia_runtime or host.toolkit)


def find_warnings(host: Host, is_root: bool) -> list[Obstacle]:
    """Performance counters that the driver keeps from this user."""
    if not host.profiling_restricted or is_root:
        return []
    return [
        Obstacle(
            "the driver keeps performance counters for administrators (RmProfilingAdminOnly: 1), so traces may "
            "hold no device activity; times are not affected",
            "for traces, set NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia (/etc/modprobe.d) and "
            "reboot, or run with --profile-privileged",
        )
    ]


def find_other_use(ask: Ask) -> list[Observation]:
    """Return whether the GPUs are idle, by nvidia-smi."""
    answer = ask(["nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used", "--format=csv,noheader,nounits"])
    if answer.code != 0:
        return [
            Observation(OTHER_USE_ROW, ObservationState.UNKNOWN, f"nvidia-smi does not report it: {answer.complaint}")
        ]
    rows = [[word.strip() for word in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]
    busy = [row for row in rows if row[1].isdigit() and int(row[1]) > BUSY_PERCENT and row[2] != UNUSED_MIB]
    if busy:
        finding = ", ".join(f"GPU {index} is busy ({percent} %, {mib} MiB in use)" for index, percent, mib in busy)
        return [Observation(OTHER_USE_ROW, ObservationState.NOISY, finding, "see what it is (nvidia-smi), and end it")]
    if not rows or not all(row[1].isdigit() for row in rows):
        finding = "nvidia-smi does not report how busy they are, as where GPUs are divided"
        return [Observation(OTHER_USE_ROW, ObservationState.UNKNOWN, finding)]
    return [Observation(OTHER_USE_ROW, ObservationState.OK, "yes")]


def container_arguments(engine: Engine, request: Request, host: Host) -> tuple[str, ...]:
    """Options that hand all GPUs to a container, and to profilers their right to the counters if that is asked for."""
    all_gpus = ("--gpus", "all") if _has_gpus_option(engine, host) else ("--device", "nvidia.com/gpu=all")
    return (*all_gpus, *(("--cap-add", "SYS_ADMIN") if request.profile_privileged else ()))


NVIDIA_GPUS = Devices(
    name="NVIDIA GPUs",
    describe=lambda host: f"{host.gpus}, with driver {host.driver}",
    find_problems=find_problems,
    find_warnings=find_warnings,
    warnings_row="GPU traces",
    find_other_use=find_other_use,
    other_use_row=OTHER_USE_ROW,
    container_arguments=container_arguments,
    # By these NVIDIA's hook knows what a container is for; other backends' containers get no GPU.
    container_variables={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
)
