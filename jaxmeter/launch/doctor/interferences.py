"""What of this machine spoils measurements, whether a server answers, and the doctor's table of both."""

from __future__ import annotations

import functools
import http.client
import itertools
import re
import ssl
import textwrap
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from jaxmeter.launch.containers import Devices
from jaxmeter.launch.engines import Ask
from jaxmeter.launch.host import GB, Observation, ObservationState, cpu_quota, read_text
from jaxmeter.launch.index import Index, host_of, is_loopback

INDENT = "  "
GAP = 2
WIDEST = 110
"""Longer lines are hard to read."""
NARROWEST_TEXT = 30
"""With less room next to the names, text goes below them."""


def run_check(name: str, check: Callable[[], Iterable[Observation]]) -> tuple[Observation, ...]:
    """What a check finds. One that raises is a row that says so: a broken machine is what it is for."""
    try:
        return tuple(check())
    except Exception as error:  # noqa: BLE001  whatever it was, the other rows are worth having
        return (describe_failure(name, error),)


def describe_failure(name: str, error: Exception) -> Observation:
    """The row of a check that raised."""
    return Observation(name, ObservationState.UNKNOWN, f"could not be checked ({type(error).__name__}: {error})")


def render(sections: Mapping[str, Iterable[Observation]], sentences: Iterable[str], width: int) -> str:
    """The table as text.

    Args:
      sections: Rows under their heading.
      sentences: What follows from them, below the table.
      width: Columns of the terminal.
    """
    shown = {heading: [_printable(row) for row in rows] for heading, rows in sections.items()}
    names = max((len(row.name) for rows in shown.values() for row in rows), default=0)
    width = min(width, WIDEST) - 1  # some terminals wrap a line that fills them
    lines = []
    for heading, rows in shown.items():
        lines += [heading, *(line for row in rows for line in _row(row, names, width)), ""]
    for sentence in sentences:
        lines += _wrapped(printable(sentence), "", INDENT, width)
    return "\n".join(lines)


def printable(text: str) -> str:
    """Text in one line without control characters, which could move the cursor or rewrite what was shown before."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _printable(row: Observation) -> Observation:
    return Observation(printable(row.name), row.state, printable(row.finding), printable(row.remedy))


def _row(row: Observation, names: int, width: int) -> list[str]:
    states = max(map(len, ObservationState))
    start = f"{INDENT}{row.state:{states + GAP}}{row.name:{names + GAP}}"
    if width - len(start) >= NARROWEST_TEXT:
        first, later = start, " " * len(start)
    else:
        first = later = INDENT * 3
    lines = _wrapped(row.finding, first, later, width)
    if row.remedy:
        lines += _wrapped(row.remedy, f"{later}-> ", f"{later}   ", width)
    return lines if first == start else [start.rstrip(), *lines]


def _wrapped(text: str, first: str, later: str, width: int) -> list[str]:
    # Commands and addresses stay in one piece, to be copied.
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


TIMEOUT_S = 5
"""A server that takes longer is of no use to a build either; package indexes answer within a second."""

RESOLVER_GRACE_S = 1
"""A name that cannot be resolved takes the resolver's own time, which no socket's timeout limits."""

HUB = "registry-1.docker.io"
HUB_NAMES = ("docker.io", "index.docker.io")

Result = TypeVar("Result")

Fetch = Callable[[str, Index, str | None], int]
"""URL, pip's settings, proxy -> the HTTP status that a server answers with; raises what the network raises."""


def locate_registry(image: str) -> str:
    """Return the URL of the registry of an image; the first part of its name is a host if it looks like one."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host = first if is_host and first not in HUB_NAMES else HUB
    return f"{'http' if is_loopback(host_of(host)) else 'https'}://{host}/v2/"


def find_proxy(url: str, index: Index, variables: Mapping[str, str]) -> str | None:
    """Return the proxy of pip's settings, else the one that the environment names for an address."""
    if "proxy" in index.settings:
        return index.settings["proxy"]
    # Sorted, lower case comes last and counts.
    named = ((name.lower(), value) for name, value in sorted(variables.items()) if value)
    proxies = {name.removesuffix("_proxy"): value for name, value in named if name.endswith("_proxy")}
    parts, host = urlsplit(url), host_of(url) or ""
    direct = {entry.strip().lstrip(".") for entry in proxies.get("no", "").split(",")} - {""}
    if direct & {"*", host, parts.netloc} or any(host.endswith(f".{name}") for name in direct):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def hide_secrets(url: str) -> str:
    """Return an address without user, password and query. Works on what is no proper address, too."""
    scheme, mark, rest = url.partition("://") if "://" in url else ("", "", url)
    return scheme + mark + rest.rpartition("@")[2].partition("?")[0].partition("#")[0]


def fetch(url: str, index: Index, proxy: str | None) -> int:
    """Ask the server itself, without credentials; any HTTP status is an answer."""
    context = ssl.create_default_context(cafile=index.ca_bundle)
    if {host_of(url), urlsplit(url).netloc} & set(index.settings.get("trusted-host", "").split()):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    proxies = {"http": proxy, "https": proxy} if proxy else {}
    handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def start(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in a thread that nobody has to wait for: a name's resolver may hang for minutes."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def read_status(answer: Future[int], timeout_s: float = TIMEOUT_S + RESOLVER_GRACE_S) -> int | str:
    """Return the HTTP status that a started fetch ends with, else why there is none."""
    try:
        return answer.result(timeout_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        # Words of other errors may hold an address, and with it a password.
        words = reason.strerror or str(reason) if isinstance(reason, OSError) else ""
        return f"no answer ({words or type(error).__name__})"


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
