"""Where a case runs: backends, targets and devices, one row each; and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.data import DATA_VARIABLE

_NVIDIA = "NVIDIA's data sheet, dense, SXM"
_TPU = "jax.experimental.pallas.tpu.get_tpu_info_for_chip of jax 0.10.2, all cores of a device"


@dataclass(frozen=True, kw_only=True)
class Device:
    """A kind of device.

    Args:
      kind: `device_kind` of JAX's devices.
      memory_bytes: Of one device.
      peak_flops: By the format that products are computed in, floating-point operations per second at most.
      peak_bytes_per_s: Of its memory.
      source: Who says so.
    """

    kind: str
    memory_bytes: int
    peak_flops: dict[str, float]
    peak_bytes_per_s: float
    source: str


def _hopper(kind: str, memory_bytes: int, peak_bytes_per_s: float) -> Device:
    return Device(
        kind=kind,
        memory_bytes=memory_bytes,
        peak_flops={"bfloat16": 989e12, "float16": 989e12, "tensorfloat32": 495e12, "float32": 67e12},
        peak_bytes_per_s=peak_bytes_per_s,
        source=_NVIDIA,
    )


def _tpu(kind: str, memory_bytes: int, bfloat16: float, peak_bytes_per_s: float) -> Device:
    return Device(
        kind=kind,
        memory_bytes=memory_bytes,
        peak_flops={"bfloat16": bfloat16},
        peak_bytes_per_s=peak_bytes_per_s,
        source=_TPU,
    )


DEVICE_KINDS: dict[str, Device] = {
    device.kind: device
    for device in (
        Device(
            kind="NVIDIA A100-SXM4-80GB",
            memory_bytes=80 * 10**9,
            peak_flops={"bfloat16": 312e12, "float16": 312e12, "tensorfloat32": 156e12, "float32": 19.5e12},
            peak_bytes_per_s=2.04e12,
            source=_NVIDIA,
        ),
        _hopper("NVIDIA H100 80GB HBM3", 80 * 10**9, 3.35e12),
        _hopper("NVIDIA H200", 141 * 10**9, 4.8e12),
        _tpu("TPU v4", 34_400_000_000, 275e12, 1.23e12),
        _tpu("TPU v5 lite", 17_200_000_000, 197e12, 0.82e12),
        _tpu("TPU v5", 103_000_000_000, 459e12, 2.46e12),
        _tpu("TPU v6 lite", 34_400_000_000, 920e12, 1.64e12),
        _tpu("TPU7x", 103_000_000_000, 1155e12, 3.7e12),
    )
}
"""What is not here has no known peaks: a processor's depend on the machine, and have to be measured."""


def find_device(kind: str) -> Device | None:
    """Return the row of a kind of device; None where it is not known."""
    return DEVICE_KINDS.get(kind)


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that a backend and a target have in common.

    Args:
      name: Its name in the command line and the record.
      device: Its kind of device, by which suites name values and limits: cpu, gpu or tpu.
      jax_platforms: JAX's names (`JAX_PLATFORMS`): first its own, the default; then the host's processor, as data and
        functions may be placed there too. For a target, the names of the process that compiles.
      jax_backend: What `jax.default_backend()` then returns.
      looked_for: The devices in words, for the error when there are none.
      extra: The requirement that installs it.
      product_dtype: What a float32 product at default precision is computed in (the tolerance follows).
      any_device_count: Whether it stands for as many devices as a case asks for (`jax_num_cpu_devices`).
      peak_counts_temporaries: Whether `peak_memory_in_bytes` of a compiled program holds its temporaries.
      plans_products: Whether `memory_analysis` includes the working memory of matrix products and convolutions.
      forgets_peak: Whether one process can measure the memory of several variants: an allocator never forgets its peak.
      trace_plane: How the planes of its devices are called in a profiler capture; None where there are none.
      memory_bytes: What programs may use of one device; None where the device itself is asked.
      is_host: Whether its device is the host's own processor, whose speed a loop of Python measures.
      state_library: The library that reports its devices' clocks, a name in harness/machine/nvml.py, or None.
      preallocates_by: The variable that decides whether a process preallocates its devices' memory, or None.
      begins_s: Seconds that a process takes to initialise its devices, in addition to the start of every process.
      ahead_s: Seconds that a process takes to preallocate their memory, where it does.
    """

    name: str
    device: str
    jax_platforms: str
    jax_backend: str
    looked_for: str
    extra: str
    product_dtype: str
    any_device_count: bool = False
    peak_counts_temporaries: bool = True
    plans_products: bool = True
    forgets_peak: bool = False
    trace_plane: str | None = None
    memory_bytes: int | None = None
    is_host: bool = False
    state_library: str | None = None
    preallocates_by: str | None = None
    begins_s: float = 0.0
    ahead_s: float = 0.0


class Backend(_Row, frozen=True, kw_only=True, tag=True):
    """A backend that runs programs."""

    @property
    def measures(self) -> bool:
        """Whether programs are called."""
        return True


class Target(_Row, frozen=True, kw_only=True, tag=True):
    """A device that programs are compiled for and never run on."""

    @property
    def measures(self) -> bool:
        """Whether programs are called."""
        return False


Platform = Backend | Target

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""The variable that turns JAX's preallocation off here: memory is allocated as needed, up to the same limit. By default
JAX preallocates 75 % of a device. On an H200, preallocation took each process 1.4 to 2.0 s, the rest of its start
0.4 s. Processes in lock-step share a device.

A process for measured peak memory still preallocates: an array then counts as its bytes, rounded to 256. Otherwise it
counts as the allocated piece: for a call that used 400 MB the allocator reported 537 MB."""

PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        Backend(
            name="cpu",
            device="cpu",
            jax_platforms="cpu",
            jax_backend="cpu",
            looked_for="this machine's processor",
            extra="jaxmeter",
            any_device_count=True,
            forgets_peak=True,
            peak_counts_temporaries=False,
            plans_products=False,
            is_host=True,
            product_dtype="float32",
        ),
        Backend(
            name="gpu",
            device="gpu",
            jax_platforms="cuda,cpu",
            jax_backend="gpu",
            looked_for="an NVIDIA GPU with its driver (JAX platform 'cuda')",
            extra="jaxmeter[gpu]",
            trace_plane=internals.GPU_PLANE.name,
            state_library="nvml",
            preallocates_by=PREALLOCATE,
            # On an H200, 2026-11-26: 0.4 s until the devices are there, 0.15 s until the process is gone; 1.4 to 2.0 s
            # for its memory.
            begins_s=0.6,
            ahead_s=1.6,
            product_dtype="tensorfloat32",
        ),
        Backend(
            name="tpu",
            device="tpu",
            jax_platforms="tpu,cpu",
            jax_backend="tpu",
            looked_for="a TPU with libtpu (JAX platform 'tpu')",
            extra="jaxmeter[tpu]",
            trace_plane=internals.TPU_PLANE.name,
            product_dtype="bfloat16",
        ),
    )
}

BACKENDS: dict[str, Backend] = {name: platform for name, platform in PLATFORMS.items() if isinstance(platform, Backend)}
"""Backends that `--backend` accepts."""

DEVICES = tuple(dict.fromkeys(platform.device for platform in PLATFORMS.values()))
"""Kinds of device, by which suites name values, limits and published figures."""

DEFAULT_BACKEND = next(iter(BACKENDS))
"""The backend that every machine has: catalogue and plan are made on it."""

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the number of threads of the libraries of peers and of some of JAX's own."""

_NOT_USED = (
    "JAX_COMPILATION_CACHE_",
    "JAX_DISABLE_JIT",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_PERSISTENT_CACHE_",
    "JAX_RAISE_PERSISTENT_CACHE_ERRORS",
)
"""Variables that are left out: the run itself must decide what is cold, cached and compiled."""


def list_unused_variables(inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that control JAX's compilation and its persistent cache."""
    return tuple(sorted(name for name in inherited if name.startswith(_NOT_USED)))


def make_process_environment(
    platform: Platform, inherited: Mapping[str, str], *, allowed_cores: int, data: str | None = None
) -> dict[str, str]:
    """Return the environment variables of every process of a platform.

    Thread counts, and allocation of memory as needed, are set where the user has not. Inherited settings of compilation
    and its cache are left out; so is an inherited data folder, since the record must name it.
    """
    own = (*list_unused_variables(inherited), DATA_VARIABLE)
    variables = {name: value for name, value in inherited.items() if name not in own}
    variables["JAX_PLATFORMS"] = platform.jax_platforms
    if data is not None:
        variables[DATA_VARIABLE] = data
    if platform.preallocates_by is not None:
        variables.setdefault(platform.preallocates_by, "false")
    for name in THREAD_VARIABLES:
        variables.setdefault(name, str(allowed_cores))
    return variables


LAUNCHERS = {
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "MV2_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpiexec",
}
"""Variable with the number of ranks -> launcher. SLURM sets its variable in steps only; a batch script that no srun
started has SLURM_NTASKS and SLURM_PROCID, and is one process."""

ADVICE = "jaxmeter measures one process on one host; start it once, without other ranks"


def refuse_ranks(variables: Mapping[str, str], processes: int = 1) -> str | None:
    """Describe why several ranks are not measured; None for a single process.

    Args:
      variables: Of the process's environment.
      processes: Number of processes of `jax.distributed`, as `jax.process_count()` returns it.
    """
    if processes > 1:
        return f"this is one of {processes} processes of jax.distributed: {ADVICE}"
    for name, launcher in LAUNCHERS.items():
        size = variables.get(name, "")
        if size.isascii() and size.isdigit() and int(size) > 1:
            return f"this is one of {size} ranks that {launcher} started ({name}={size}): {ADVICE}"
    return None
