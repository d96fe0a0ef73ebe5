"""What of this machine spoils measurements: cores, clock, other programs, a hypervisor. It only reads."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.launch.containers import Devices
from jaxmeter.launch.doctor.table import run_check
from jaxmeter.launch.engines import Ask
from jaxmeter.launch.host import GB, Observation, ObservationState, cpu_quota, read_text

RESTING_LOAD = 0.2
"""Largest load per allowed core of an idle machine; the shells and daemons of a desktop reach 0.1."""

MUCH_STEAL = 0.01
"""Share of time taken by the hypervisor. Differences of a per cent between variants are what a run should resolve."""

LITTLE_MEMORY_BYTES = 2 * GB
"""A process that multiplies two 4096 x 4096 matrices takes 0.35 GB; a few such processes, and room for larger cases."""

MUCH_SWAP_BYTES = GB // 10
"""What long idle programs leave there is less."""

STEADY_GOVERNORS = ("performance", "userspace")
KIB = 1024
STEAL_FIELD = 7
"""In the first line of /proc/stat, after its name; what follows it is counted in the first two already."""


@dataclass(frozen=True)
class Machine:
    """Where to look.

    Args:
      root: Where its file system begins.
      cores: Cores that it has.
      allowed_cores: Cores that this process may use.
    """

    root: Path
    cores: int
    allowed_cores: int


def find_interferences(machine: Machine) -> tuple[Observation, ...]:
    """Return a row for every kind of interference that this machine reports."""
    rows = (run_check(name, functools.partial(check, name, machine)) for name, check in CHECKS.items())
    return tuple(itertools.chain.from_iterable(rows))


def find_other_use(devices: Devices, ask: Ask) -> tuple[Observation, ...]:
    """Return rows that show whether something else uses a backend's devices now.

    Args:
      devices: The backend's devices.
      ask: Runs a client that answers at once.
    """
    return run_check(devices.other_use_row, lambda: devices.find_other_use(ask))


def _check_cores(name: str, machine: Machine) -> list[Observation]:
    if machine.allowed_cores < machine.cores:
        allowed = f"{machine.allowed_cores} of {machine.cores} are allowed here (affinity)"
        return [Observation(name, ObservationState.NOTE, f"{allowed}; compare with runs on as many")]
    return [Observation(name, ObservationState.OK, f"all {machine.cores} are allowed")]


def _check_quota(name: str, machine: Machine) -> list[Observation]:
    quota = cpu_quota(machine.root)
    if quota is None:
        return [Observation(name, ObservationState.OK, "none")]
    if quota >= machine.allowed_cores:
        return [
            Observation(name, ObservationState.OK, f"{quota:g} cores' time, no less than the allowed cores can use")
        ]
    return [
        Observation(
            name,
            ObservationState.NOISY,
            f"{quota:g} cores' time for {machine.allowed_cores} cores: when it is used up, programs are stopped in "
            "the middle of what is timed",
            "limit which cores instead: --cpuset-cpus in place of --cpus; in Kubernetes no CPU limit, or whole cores "
            "with the static CPU manager",
        )
    ]


def _check_governor(name: str, machine: Machine) -> list[Observation]:
    processors = machine.root / "sys/devices/system/cpu"
    governors = Counter(filter(None, map(read_text, processors.glob("cpu[0-9]*/cpufreq/scaling_governor"))))
    if not governors:
        return [
            Observation(name, ObservationState.UNKNOWN, "the system does not report it, as in most virtual machines")
        ]
    if all(governor in STEADY_GOVERNORS for governor in governors):
        return [Observation(name, ObservationState.OK, ", ".join(sorted(governors)))]
    driver = read_text(processors / "cpu0/cpufreq/scaling_driver")
    each = ", ".join(f"{governor} on {count} cores" for governor, count in sorted(governors.items()))
    shown = each if len(governors) > 1 else next(iter(governors))
    return [
        Observation(
            name,
            ObservationState.NOISY,
            f"{shown}{f' ({driver})' if driver else ''}: the clock follows the load, so short cases start slow",
            "sudo cpupower frequency-set -g performance",
        )
    ]


def _check_turbo(name: str, machine: Machine) -> list[Observation]:
    processors = machine.root / "sys/devices/system/cpu"
    no_turbo, boost = read_text(processors / "intel_pstate/no_turbo"), read_text(processors / "cpufreq/boost")
    if not no_turbo and not boost:
        return []
    if no_turbo == "0" or (not no_turbo and boost == "1"):
        return [
            Observation(
                name, ObservationState.NOTE, "on: the clock varies with temperature and with how many cores are busy"
            )
        ]
    return [Observation(name, ObservationState.OK, "off: the clock is steadier, and times are longer than with it")]


def _check_load(name: str, machine: Machine) -> list[Observation]:
    load = float(read_text(machine.root / "proc/loadavg").split()[0])
    finding = f"load {load:.2f} over the last minute on {machine.allowed_cores} cores"
    if load <= RESTING_LOAD * machine.allowed_cores:
        return [Observation(name, ObservationState.OK, f"idle, {finding}")]
    return [
        Observation(
            name,
            ObservationState.NOISY,
            f"{finding}: something else is running, or has just ended",
            "see what it is (top), end it, and wait a minute",
        )
    ]


def _check_memory(name: str, machine: Machine) -> list[Observation]:
    known = dict(re.findall(r"^(\w+):\s+(\d+) kB$", read_text(machine.root / "proc/meminfo"), re.MULTILINE))
    sizes = {key: int(value) * KIB for key, value in known.items()}
    available, total = sizes["MemAvailable"], sizes["MemTotal"]
    swapped = sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0)
    finding = f"{available / GB:.1f} GB of {total / GB:.1f} GB available"
    if swapped > MUCH_SWAP_BYTES:
        finding += f", {swapped / GB:.1f} GB swapped out"
    if available < LITTLE_MEMORY_BYTES:
        return [
            Observation(
                name,
                ObservationState.NOISY,
                f"{finding}: larger cases may swap, or fail",
                "end programs that hold much",
            )
        ]
    return [Observation(name, ObservationState.OK, finding)]


def _check_hypervisor(name: str, machine: Machine) -> list[Observation]:
    flags = re.search(r"^flags\s*:(.*)$", read_text(machine.root / "proc/cpuinfo"), re.MULTILINE)
    if flags is None:
        return [Observation(name, ObservationState.UNKNOWN, "the processor does not report it")]
    if "hypervisor" not in flags[1].split():
        return [Observation(name, ObservationState.OK, "none: the processor is this system's own")]
    times = [int(word) for word in read_text(machine.root / "proc/stat").splitlines()[0].split()[1 : STEAL_FIELD + 2]]
    share = times[STEAL_FIELD] / (sum(times[: STEAL_FIELD + 1]) or 1)
    finding = f"a virtual machine; since it started, its host kept {share:.2%} of the time for others"
    if share <= MUCH_STEAL:
        return [Observation(name, ObservationState.OK, finding)]
    return [
        Observation(
            name, ObservationState.NOISY, finding, "ask for dedicated cores, or measure on a machine of your own"
        )
    ]


def _check_power(name: str, machine: Machine) -> list[Observation]:
    supplies = [
        path for path in (machine.root / "sys/class/power_supply").glob("*") if read_text(path / "scope") != "Device"
    ]
    batteries = [path for path in supplies if read_text(path / "type") == "Battery"]
    if not batteries:
        return []
    others = [read_text(path / "online") for path in supplies if path not in batteries]
    on_battery = "1" not in others if others else any(read_text(path / "status") == "Discharging" for path in batteries)
    if on_battery:
        return [Observation(name, ObservationState.NOISY, "on battery: the processor saves energy", "plug it in")]
    return [Observation(name, ObservationState.OK, "from the mains")]


CHECKS: dict[str, Callable[[str, Machine], list[Observation]]] = {
    "cores": _check_cores,
    "CPU quota": _check_quota,
    "CPU governor": _check_governor,
    "turbo": _check_turbo,
    "other programs": _check_load,
    "memory": _check_memory,
    "hypervisor": _check_hypervisor,
    "power": _check_power,
}
