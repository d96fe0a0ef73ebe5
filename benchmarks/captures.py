"""How fast profiler captures are read, and with how much memory: `python -m benchmarks.captures [MEBIBYTES]`.

A made-up capture of a CPU of about 100,000 events, and one of 200 MiB, are read by fresh processes: their events alone,
with statistics, and to the whole summary. Next to it `jax.profiler.ProfileData` reads the same, without metadata and
programs. A larger one than 200 MiB is read to the summary alone, since ProfileData takes eleven times its size. Times
are the processor's, so that other work counts little; importing does not count. Peaks are of the whole process, jax
included where it is needed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from benchmarks.here import describe_here
from tests.harness.traces.made_up import (
    ENVIRONMENT,
    EPOCH_NS,
    Event,
    Names,
    encode_event,
    encode_names,
    encode_whole,
    event,
    operation,
    part,
    step,
    whole,
)

EVENTS = 100_000
LARGE_MEBIBYTES = 200
OPERATIONS = 500
"""In a step; each has an operation's event, that of its end, and one of the pool's."""

KINDS = 60
STEP_US = 5000
FIRST_RUN = 1 << 28
"""Numbers of runs from here on have one length, so that one step's bytes become another's."""

READ = (("events", "jax events"), ("statistics", "jax statistics"), ("summary", None))
"""What is read, and the same by ProfileData."""

ROUNDS = 3
GOALS = {"events": 200_000, "statistics": 80_000}
"""Events in a second of the processor's time."""

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Reading:
    """What one process took, the fastest of its rounds, in the processor's time; its peak is of resident memory."""

    events: int
    seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


def main() -> int:
    """Prints rates and peaks; 1 where one misses its goal."""
    mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE_MEBIBYTES
    print(describe_here("jax", "numpy"))
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.xplane.pb"
        for title, size in (("small", None), ("large", mebibytes * MEBIBYTE)):
            events = write_capture(path, size)
            print(f"{title}: {events:,} events, {path.stat().st_size / MEBIBYTE:.1f} MiB")
            rounds = ROUNDS if size is None else 1
            for what, theirs in READ if size is None or mebibytes <= LARGE_MEBIBYTES else READ[-1:]:
                own = read_in_process(what, path, rounds)
                print(f"  {what}: {describe(own)}", end="")
                if theirs is not None:
                    other = read_in_process(theirs, path, rounds)
                    rate, peak = own.rate / other.rate, own.peak_bytes / other.peak_bytes
                    print(f"; ProfileData {describe(other)}: {rate:.2f} of its rate, {peak:.2f} of its peak", end="")
                print(flush=True)
                missed |= size is None and own.rate < GOALS.get(what, 0)
    return int(missed)


def describe(reading: Reading) -> str:
    """Rate and peak as text."""
    return f"{reading.rate:,.0f} events/s, peak {reading.peak_bytes / MEBIBYTE:.0f} MiB"


def write_capture(path: Path, size: int | None) -> int:
    """Write a capture of a size in bytes, or of EVENTS events; return how many events it has."""
    kinds, names = Names(), Names()
    pool = list(chain.from_iterable(map(list_events, range(OPERATIONS))))
    lines = {"pool": pool, "python": [step(0, STEP_US), event("PjitFunction(f)", 5, 40)]}
    encoded = {
        name: b"".join(part(4, encode_event(entry, kinds, names)) for entry in line) for name, line in lines.items()
    }
    a_step = sum(map(len, lines.values()))
    bytes_a_step = sum(map(len, encoded.values()))
    steps = EVENTS // a_step if size is None else size // bytes_a_step
    first = encode_whole(FIRST_RUN)

    def list_lines() -> Iterator[bytes]:
        for number in range(steps):
            for place, (name, events) in enumerate(encoded.items()):
                head = whole(1, place) + part(2, name) + whole(3, EPOCH_NS + number * (STEP_US + 100) * 1000)
                yield part(3, head + events.replace(first, encode_whole(FIRST_RUN + number)))

    rest = part(2, "/host:CPU") + encode_names(4, kinds) + encode_names(5, names)
    with path.open("wb") as file:
        file.write(b"\x0a" + encode_whole(sum(map(len, list_lines())) + len(rest)))
        file.writelines(list_lines())
        file.write(rest + part(1, ENVIRONMENT))
    return steps * a_step


def list_events(number: int) -> Iterator[Event]:
    """The events of one operation."""
    name = f"fusion.{number % KINDS}"
    start = 50 + number * (STEP_US - 100) / OPERATIONS
    yield event("ThunkExecutor::Execute", start - 1, 8)
    yield operation(name, start, 6, run_id=FIRST_RUN, _pt=FIRST_RUN, _p=number)
    yield event(f"end: {name}", start + 7, 0.5, _ct=FIRST_RUN, _c=number)


def read_in_process(what: str, path: Path, rounds: int) -> Reading:
    """Read a capture in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.captures", "read", what, str(path), str(rounds)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    events, seconds, peak = text.split()
    return Reading(int(events), float(seconds), int(peak))


def read(what: str, path: Path) -> int:
    """Read a capture; return how many events it has."""
    if what == "summary":
        from jaxmeter.harness.traces.summary import summarise_capture

        return summarise_capture(path).events
    if what.startswith("jax"):
        from jax.profiler import ProfileData

        return sum(
            1
            for plane in ProfileData.from_file(str(path)).planes
            for line in plane.lines
            for entry in line.events
            if what == "jax events" or dict(entry.stats) is not None
        )
    from jaxmeter.harness.traces.xplane import open_capture

    with open_capture(path) as space:
        return sum(
            1
            for plane in space.planes
            for line in plane.lines()
            for _, _, _, stats in line.events()
            if what == "events" or plane.read_stats(stats) is not None
        )


def find_peak() -> int:
    """The peak of this process's resident memory in bytes: of its own, without that of the process that began it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def time_reading(what: str, path: Path, rounds: int) -> None:
    """Print events, the seconds of the fastest round, and the peak in bytes."""
    if what.startswith("jax"):
        import jax.profiler  # noqa: F401  what importing takes does not count
    elif what == "summary":
        pass
    fastest, events = float("inf"), 0
    for _ in range(rounds):
        began = time.process_time()
        events = read(what, path)
        fastest = min(fastest, time.process_time() - began)
    print(events, fastest, find_peak())


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        time_reading(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        sys.exit()
    sys.exit(main())
