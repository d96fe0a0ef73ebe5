"""Captures that no profiler made: an encoded XSpace, from planes, lines and events that a test names.

Times are microseconds. Source of the fields:
https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxmeter.harness.traces.analysis import Analysis, analyse
from jaxmeter.harness.traces.programs import Programs, list_programs
from jaxmeter.harness.traces.timeline import Timeline, read_timeline
from jaxmeter.harness.traces.xplane import read_capture

PS_PER_US = 1_000_000
EPOCH_NS = 1_790_000_000_000_000_000
"""Where the lines' times count from: a time near the epoch, as profilers have it."""

Stats = Mapping[str, int | float | str | bytes]


@dataclass(frozen=True)
class Event:
    """One event of a line; its statistics by name."""

    name: str
    start: float
    duration: float
    stats: Stats = field(default_factory=dict)


def event(name: str, start: float, duration: float, /, **stats: Any) -> Event:
    """An event with its statistics as keywords."""
    return Event(name, start, duration, stats)


def operation(name: str, start: float, duration: float, /, **stats: Any) -> Event:
    """An operation on a CPU: of run 1 of program 7, on device 0, unless the statistics say otherwise."""
    usual = {"hlo_op": name, "hlo_module": "jit_f", "program_id": 7, "run_id": 1, "device_ordinal": 0}
    return Event(name, start, duration, {**usual, **stats})


def step(start: float, duration: float, number: int = 0, name: str = "train") -> Event:
    """A step that the user annotated."""
    return Event(name, start, duration, {"_r": 1, "step_num": number})


def encode_whole(value: int) -> bytes:
    """A whole number, seven bits a byte; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def whole(number: int, value: int) -> bytes:
    """A field that is a whole number."""
    return encode_whole(number << 3) + encode_whole(value)


def part(number: int, value: bytes | str) -> bytes:
    """A field that is a text, bytes or another message."""
    encoded = value.encode() if isinstance(value, str) else value
    return encode_whole(number << 3 | 2) + encode_whole(len(encoded)) + encoded


def double(number: int, value: float) -> bytes:
    """A field that is a floating-point number."""
    return encode_whole(number << 3 | 1) + struct.pack("<d", value)


class Names:
    """Identifiers of names, from 1 on, in the order of their first use."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def find(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known) + 1)


def _encode_stat(name: str, value: int | float | str | bytes, names: Names) -> bytes:
    head = whole(1, names.find(name))
    match value:
        case float():
            return head + double(2, value)
        case int():
            return head + (whole(3, value) if value >= 1 << 63 else whole(4, value))
        case str():
            return head + part(5, value)
        case bytes():
            return head + part(6, value)


def encode_event(one: Event, kinds: Names, names: Names) -> bytes:
    """An XEvent."""
    start, duration = round(one.start * PS_PER_US), round(one.duration * PS_PER_US)
    stats = b"".join(part(4, _encode_stat(name, value, names)) for name, value in one.stats.items())
    return whole(1, kinds.find(one.name)) + whole(2, start) + whole(3, duration) + stats


def encode_plane(
    name: str,
    lines: Mapping[str, Iterable[Event]],
    *,
    stats: Stats | None = None,
    metadata: Mapping[str, Stats] | None = None,
    display: Mapping[str, str] | None = None,
    timestamp_ns: int = EPOCH_NS,
) -> bytes:
    """An XPlane.

    Args:
      metadata: By event's name, the statistics of its metadata.
      display: By event's name, its other name.
    """
    kinds, names = Names(), Names()
    encoded = [part(2, name)]
    for number, (line, events) in enumerate(lines.items(), 1):
        of_events = b"".join(part(4, encode_event(one, kinds, names)) for one in events)
        encoded.append(part(3, whole(1, number) + part(2, line) + whole(3, timestamp_ns) + of_events))
    for kind in metadata or ():
        kinds.find(kind)
    for kind, identifier in kinds.known.items():
        more = b"".join(part(5, _encode_stat(*item, names)) for item in (metadata or {}).get(kind, {}).items())
        shown = part(4, display[kind]) if display and kind in display else b""
        encoded.append(part(4, whole(1, identifier) + part(2, whole(1, identifier) + part(2, kind) + shown + more)))
    encoded += [part(6, _encode_stat(*item, names)) for item in (stats or {}).items()]
    return b"".join([*encoded, encode_names(5, names)])


def encode_names(number: int, names: Names) -> bytes:
    """Metadata that are names alone: of events in field 4 of a plane, of statistics in field 5."""
    return b"".join(
        part(number, whole(1, identifier) + part(2, whole(1, identifier) + part(2, name)))
        for name, identifier in names.known.items()
    )


ENVIRONMENT = encode_plane("Task Environment", {}, stats={"profile_stop_time": EPOCH_NS})
"""The plane that a profiler writes last."""


def encode_space(
    *planes: bytes, errors: Sequence[str] = (), warnings: Sequence[str] = (), is_whole: bool = True
) -> bytes:
    """An XSpace."""
    fields = [*(part(1, plane) for plane in (*planes, *([ENVIRONMENT] if is_whole else [])))]
    fields += [part(2, error) for error in errors] + [part(3, warning) for warning in warnings]
    return b"".join(fields)


def encode_host(*events: Event, **lines: Iterable[Event]) -> bytes:
    """The plane of the host: Python's line of these events, and other lines by name."""
    return encode_plane("/host:CPU", {"python": events, **lines})


def encode_gpu(*kernels: Event, number: int = 0, stats: Stats | None = None, **streams: Iterable[Event]) -> bytes:
    """The plane of a GPU: one stream of these kernels, and others by name."""
    lines = {"Stream #14(Compute)": kernels, **{f"Stream #{name}": events for name, events in streams.items()}}
    return encode_plane(f"/device:GPU:{number}", lines, stats=stats)


def read_made_up(*planes: bytes, texts: Iterable[str] = (), **options: Any) -> Timeline:
    """The timeline of a capture of these planes."""
    with read_capture(encode_space(*planes, **options)) as space:
        return read_timeline(space, Programs(list_programs(space), texts))


def analyse_made_up(*planes: bytes, texts: Sequence[str] = (), **options: Any) -> Analysis:
    """What a capture of these planes shows."""
    with read_capture(encode_space(*planes, **options)) as space:
        programs = Programs(list_programs(space), texts)
        return analyse(read_timeline(space, programs), programs)


def list_operations(timeline: Timeline) -> Iterator[tuple[str, float, float]]:
    """Name, start and end of each operation, in microseconds from the capture's origin."""
    operations = timeline.operations
    for kind, start, end in zip(operations.kind, operations.starts, operations.ends, strict=True):
        yield operations.kinds[kind].name, int(start) / PS_PER_US, int(end) / PS_PER_US
