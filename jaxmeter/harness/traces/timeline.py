"""A capture's events as operations of devices, runs of programs, steps, and activities of the host.

A row of `LAYOUTS` describes how a platform's operations, kernel launches and transfers are recognised.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy
from numpy.typing import NDArray

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.traces.columns import Collection, Column, Intervals, Times, append, empty
from jaxmeter.harness.traces.host_operations import HostColumns
from jaxmeter.harness.traces.programs import Programs
from jaxmeter.harness.traces.xplane import PS_PER_NS, CaptureError, Metadata, Plane, Space, Value

HOST_PLANE = internals.HOST_PLANE.name
TRANSFER, COMPILE, DISPATCH, WAITING = "transfer", "compile", "dispatch", "waiting"
"""Activities of the host, by the names of its events."""

_HOST_EVENTS = (
    (re.compile(internals.TRANSFER_EVENT.name), TRANSFER),
    (re.compile(internals.COMPILE_EVENT.name), COMPILE),
    (re.compile(internals.DISPATCH_EVENT.name), DISPATCH),
)
"""Patterns of names, and what an event of such a name is. Found in captures of jax 0.8 to 0.12."""

_AWAIT, _RUN_END = internals.AWAIT_EVENT.name, internals.RUN_END_EVENT.name
_END = "end: "
_PENDING = "Wait: pending_threads"
_IGNORED, _PYTHON = "ThreadpoolListener::", "$"
"""How names of events begin that say nothing here: bookkeeping, and Python's own functions."""

FARTHEST_PS = 1 << 62
"""Between a capture's origin and an event, 53 days, so that differences of times have 64 bits."""


@dataclass(frozen=True)
class Layout:
    """How a platform's captures are laid out.

    Args:
      platform: cpu, gpu or tpu.
      plane: How the names of the devices' planes begin; operations of the host's own processor are on its plane.
      lines: How the names of the lines begin that hold operations.
      has_device_clock: Whether events have a start and duration by the device's own clock.
      has_runs: Whether the runs of a program can be distinguished.
      hides: Parts of a step that its captures cannot show.
    """

    platform: str
    plane: str
    lines: str = ""
    has_device_clock: bool = False
    has_runs: bool = False
    hides: frozenset[str] = frozenset()


CPU = Layout("cpu", HOST_PLANE, has_runs=True)
GPU = Layout(
    "gpu", internals.GPU_PLANE.name, lines=internals.GPU_LINE.name, hides=frozenset({"between operations", "waiting"})
)
TPU = Layout(
    "tpu",
    internals.TPU_PLANE.name,
    lines=internals.TPU_LINE.name,
    has_device_clock=True,
    has_runs=True,
    hides=frozenset({"compile", "dispatch", "waiting", "host before", "host amid", "host after"}),
)

LAYOUTS = (GPU, TPU, CPU)
"""The first whose operations a capture has decides: a host with devices runs operations of its own, too."""


@dataclass(frozen=True)
class EventKind:
    """All runs of one operation share this.

    Args:
      program: The compiled program's identifier in the capture, empty where an event has none.
      module: The program's name.
      name: The operation's, as HLO has it; of a kernel without one its own.
      copies: Whether it copies between memories, as the platform says.
      stats: Of its metadata: on a TPU FLOPs, bytes, category and source.
    """

    program: str
    module: str
    name: str
    copies: bool = False
    stats: Mapping[str, Value] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True)
class Operations:
    """Executed operations, one element each.

    Args:
      kinds: What `kind` counts.
      device, kind, run: Places among the devices, kinds and runs.
      starts, ends: Picoseconds from the capture's origin.
    """

    kinds: tuple[EventKind, ...]
    device: NDArray[numpy.int32]
    kind: NDArray[numpy.int32]
    run: NDArray[numpy.int32]
    starts: Times
    ends: Times

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, kept: NDArray[numpy.bool_]) -> Operations:
        """Return some of them."""
        if kept.all():  # a large capture has no room for a copy
            return self
        return Operations(
            self.kinds, self.device[kept], self.kind[kept], self.run[kept], self.starts[kept], self.ends[kept]
        )

    @property
    def intervals(self) -> Intervals:
        """Their starts and ends."""
        return self.starts, self.ends


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One execution of a program on one device: from its first operation to its completion.

    Args:
      is_finished: Whether the capture holds its completion; else it was cut off.
    """

    device: int
    program: str
    module: str
    start: int
    end: int
    is_finished: bool = True


@dataclass(frozen=True)
class Step:
    """A step that the user's annotation, a program's run or the whole capture makes.

    Args:
      device: The device whose clock it is by; None for all.
      thread: Place of the host's thread that annotated it; None where nobody did.
    """

    name: str
    start: int
    end: int
    number: int | None = None
    device: int | None = None
    thread: int | None = None


@dataclass(frozen=True)
class Timeline:
    """The part of a capture that belongs to one host.

    Args:
      layout: None if no device has operations.
      devices: Their names in the capture.
      device_stats: By device, the statistics of its plane.
      runs: Empty if the platform's captures do not distinguish runs.
      annotated: Steps by `StepTraceAnnotation`, in order of their start.
      host: Intervals of the host's activities, by part; not united.
      pending: By index of a device, when its collectives waited for other devices; empty if captures do not show it.
      launch_delays: From the host's call that starts a kernel to the kernel's start, in picoseconds.
      unmatched: Number of kernels without such a call.
      before_launch: Number of kernels that started before this call: clocks that disagree.
      skew: Largest difference between the host's and the device's clock over the capture, in picoseconds.
      events: Number of events that were read.
      python_calls: By the host's thread, when Python functions began, which the Python tracer records.
      first, end: When the first event that is read began, and when the last one ended.
      latest: When the last event began that is not read because of memory; None if all were read.
      whole: Whether the profiler's last record is there.
    """

    layout: Layout | None
    devices: tuple[str, ...]
    device_stats: tuple[Mapping[str, Value], ...]
    operations: Operations
    runs: tuple[ProgramRun, ...]
    annotated: tuple[Step, ...]
    host: Mapping[str, Intervals]
    pending: Mapping[int, Intervals]
    launch_delays: Times
    unmatched: int
    before_launch: int
    skew: int
    events: int
    python_calls: Mapping[int, Times]
    first: int
    end: int
    latest: int | None
    whole: bool
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def read_timeline(space: Space, programs: Programs) -> Timeline:
    """Return what a capture shows.

    Args:
      programs: What the capture holds of them: a loop's own operations do not end it.
    Raises:
      CaptureError: It is damaged.
    """
    try:
        return _Reader(space).read(programs)
    except OverflowError:
        raise CaptureError("it is damaged: its times lie months apart") from None


class _DeviceColumns:
    """Operations of devices while they are collected."""

    def __init__(self, collection: Collection) -> None:
        self.kinds: dict[EventKind, int] = {}
        self._columns = collection.make_columns("qqiii")

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, device: int, kind: EventKind, run: int, start: int, end: int) -> None:
        append(self._columns, start, end, device, self.kinds.setdefault(kind, len(self.kinds)), run)

    def finish(self) -> Operations:
        starts, ends, device, kind, run = map(numpy.array, self._columns)
        return Operations(tuple(self.kinds), device, kind, run, starts, ends)


class _Reader:
    def __init__(self, space: Space) -> None:
        self.space = space
        self.collection = Collection()
        self.on_devices = _DeviceColumns(self.collection)
        self.devices: dict[str, int] = {}
        self.device_stats: list[Mapping[str, Value]] = []
        self.runs: list[ProgramRun] = []
        self.host: dict[str, tuple[Column, ...]] = defaultdict(lambda: self.collection.make_columns("qq"))
        self.pending = self.collection.make_columns("qqi")
        self.pending_of: dict[int, Intervals] = {}
        self.annotated: list[Step] = []
        self.on_host = HostColumns(self.collection)
        self.host_kinds: dict[tuple[str, str, str], int] = {}
        self.begun_waiting: dict[tuple[Value, Value], int] = {}
        self.launches, self.kernels = (self.collection.make_columns("qq") for _ in range(2))
        self.on_cores = self.collection.make_columns("qqqq")
        self.skews: list[tuple[int, int]] = []
        self.python_calls: dict[int, tuple[Column, ...]] = defaultdict(lambda: self.collection.make_columns("q"))
        self.first: int | None = None
        self.end = 0
        stamps = [line.timestamp_ns for plane in space.planes for line in plane.lines() if line.has_events]
        self.origin_ps = min(stamps, default=0) * PS_PER_NS
        # Of a device's own clock the first event of all decides.

    def read(self, programs: Programs) -> Timeline:
        layout: Layout | None = None
        for candidate in (GPU, TPU):
            planes = [plane for plane in self.space.planes if plane.name.startswith(candidate.plane)]
            for plane in planes:
                (self._read_streams if candidate is GPU else self._read_cores)(plane, candidate)
            if len(self.on_devices):
                layout = candidate
                break
        host = self.space.find_plane(HOST_PLANE)
        if host is not None:
            self._read_host(host)
        if max(-(self.first or 0), self.end) > FARTHEST_PS:
            raise OverflowError
        on_host: Operations | None = None
        if layout is None and len(self.on_host):
            layout = CPU
            on_host = self._finish_host_operations(programs)
        delays = self._find_launch_delays()
        until = self.collection.until
        return Timeline(
            layout=layout,
            devices=tuple(self.devices),
            device_stats=tuple(self.device_stats),
            operations=self.on_devices.finish() if on_host is None else on_host,
            runs=tuple(run if run.end <= until else replace(run, is_finished=False) for run in self.runs),
            annotated=tuple(sorted((step for step in self.annotated if step.end <= until), key=attrgetter("start"))),
            host={part: (numpy.array(starts), numpy.array(ends)) for part, (starts, ends) in self.host.items()},
            pending=self.pending_of,
            launch_delays=delays,
            unmatched=len(self.kernels[0]) - len(delays),
            before_launch=int((delays < 0).sum()),
            skew=max((highest - lowest for lowest, highest in self.skews), default=0),
            events=self.collection.events,
            python_calls={thread: numpy.array(begun) for thread, (begun,) in self.python_calls.items()},
            first=self.first or 0,
            end=min(self.end, until),
            latest=self.collection.latest,
            whole=any(plane.name == "Task Environment" for plane in self.space.planes),
            errors=self.space.errors,
            warnings=self.space.warnings,
        )

    def _find_launch_delays(self) -> Times:
        """Return the kernel launch delays: for each kernel with a call that starts it, the time from call to start."""
        begun, correlations = map(numpy.array, self.launches)
        started, wanted = map(numpy.array, self.kernels)
        if not len(begun) or not len(started):
            return numpy.empty(0, numpy.int64)
        # Of several with one identifier the last begun launches the kernel.
        order = numpy.lexsort((begun, correlations))
        begun, correlations = begun[order], correlations[order]
        places = numpy.searchsorted(correlations, wanted, side="right") - 1
        is_found = (places >= 0) & (correlations[places] == wanted)
        delays: Times = (started - begun[places])[is_found]
        return delays

    def _bound(self, start: int, end: int) -> None:
        if self.first is None or start < self.first:
            self.first = start
        if end > self.end:
            self.end = end

    def _device(self, plane: Plane) -> int:
        if plane.name not in self.devices:
            self.devices[plane.name] = len(self.devices)
            self.device_stats.append(plane.stats)
        return self.devices[plane.name]

    def _read_streams(self, plane: Plane, layout: Layout) -> None:
        """Kernels of a GPU."""
        kinds: dict[tuple[Value, Value, Value, bool, str], EventKind] = {}
        for line in plane.lines():
            if not line.name.startswith(layout.lines):
                continue
            for identifier, begin, duration, encoded in line.events():
                start = begin - self.origin_ps
                if self.collection.is_behind(start):
                    continue
                stats = plane.read_stats(encoded)
                name = _name(plane, identifier).name
                own = stats.get("hlo_op")
                # A copy that the program itself asks for is one of its operations.
                copies = own is None and ("memcpy_details" in stats or bool(_COPYING.search(name)))
                key = (own or name, stats.get("program_id", ""), stats.get("hlo_module", ""), copies, name)
                kind = kinds.get(key)
                if kind is None:
                    kind = kinds[key] = EventKind(str(key[1]), str(key[2]), str(key[0]), copies)
                end = start + max(duration, 0)
                self._bound(start, end)
                self.on_devices.add(self._device(plane), kind, -1, start, end)
                correlation = stats.get("correlation_id")
                if isinstance(correlation, int):
                    append(self.kernels, start, correlation)

    def _read_cores(self, plane: Plane, layout: Layout) -> None:
        """Operations of a TPU, by its own clock; a run of a program lasts from its first operation to its last."""
        modules: list[tuple[int, int, str]] = []
        for line in plane.lines():
            if line.name == "XLA Modules":
                for identifier, absolute, duration, _ in line.events():
                    start = absolute - self.origin_ps
                    if self.collection.is_behind(start):
                        continue
                    modules.append((start, start + duration, _name(plane, identifier).name))
            elif line.name == layout.lines:
                for identifier, absolute, duration, encoded in line.events():
                    start = absolute - self.origin_ps
                    if self.collection.is_behind(start):
                        continue
                    stats = plane.read_stats(encoded)
                    begin, length = stats.get("device_offset_ps", start), stats.get("device_duration_ps", duration)
                    if isinstance(begin, int) and isinstance(length, int):
                        append(self.on_cores, start, begin, length, identifier)
        if not self.on_cores[0]:
            return
        device = self._device(plane)
        starts, begun = numpy.array(self.on_cores[0]), numpy.array(self.on_cores[1])
        self.skews.append((int((starts - begun).min()), int((starts - begun).max())))
        kinds: dict[int, EventKind] = {}
        modules.sort()
        bounds = numpy.array([start for start, _, _ in modules], numpy.int64)
        places = numpy.searchsorted(bounds, starts, side="right") - 1
        spans: dict[int, tuple[int, int]] = {}
        first = len(self.runs)
        for begin, length, identifier, place in zip(*self.on_cores[1:], places.tolist(), strict=True):
            kind = kinds.get(identifier)
            if kind is None:
                metadata = _name(plane, identifier)
                module = modules[place][2] if place >= 0 else ""
                kind = kinds[identifier] = EventKind(
                    str(metadata.stats.get("program_id", "")),
                    _PROGRAM.sub("", module),
                    metadata.display_name or metadata.name.split(" = ")[0].removeprefix("%"),
                    str(metadata.stats.get("hlo_category", "")).startswith(("copy-start", "copy-done", "host "))
                    or _TRANSFERRED.match(metadata.display_name) is not None,
                    metadata.stats,
                )
            end = begin + max(length, 0)
            self._bound(begin, end)
            low, high = spans.get(place, (begin, end))
            spans[place] = (min(low, begin), max(high, end))
            self.on_devices.add(device, kind, first + place if place >= 0 else -1, begin, end)
        empty(self.on_cores)
        for place, (_, end, name) in enumerate(modules):
            low, high = spans.get(place, (0, 0))
            numbered = _PROGRAM.search(name)
            program = numbered[1] if numbered else ""
            self.runs.append(
                ProgramRun(device, program, _PROGRAM.sub("", name), low, high, is_finished=end <= self.collection.until)
            )

    def _read_host(self, plane: Plane) -> None:
        parts = {identifier: _classify(metadata.name) for identifier, metadata in plane.metadata.items()}
        for thread, line in enumerate(plane.lines()):
            for identifier, begin, duration, encoded in line.events():
                start = begin - self.origin_ps
                part = parts.get(identifier, "")
                if self.collection.is_behind(start) or part == "ignored":
                    continue
                if part == _PYTHON:
                    append(self.python_calls[thread], start)
                    continue
                end = start + duration if duration > 0 else start
                self._bound(start, end)
                if part == _PENDING:
                    append(self.pending, start, end, thread)
                    continue
                if part and part not in _BY_STATISTICS:
                    append(self.host[part], start, end)
                    continue
                if not encoded:
                    continue
                self._read_with_statistics(plane, part, identifier, (start, end), thread, plane.read_stats(encoded))

    def _read_with_statistics(
        self, plane: Plane, part: str, identifier: int, span: tuple[int, int], thread: int, stats: Mapping[str, Value]
    ) -> None:
        start, end = span
        if part == _END:
            self.on_host.add_mark(thread, start, stats)
        elif part == _RUN_END:
            self.on_host.add_completion(end, stats)
        elif part == _AWAIT:
            if "_p" in stats:
                self.begun_waiting[stats.get("_pt", 0), stats["_p"]] = start
            elif "_c" in stats:
                begun = self.begun_waiting.pop((stats.get("_ct", 0), stats["_c"]), None)
                if begun is not None:
                    append(self.host[WAITING], begun, end)
        elif "correlation_id" in stats:
            if isinstance(stats["correlation_id"], int):
                append(self.launches, start, stats["correlation_id"])
        elif "hlo_op" in stats and "run_id" in stats:
            key = (str(stats.get("program_id", "")), str(stats.get("hlo_module", "")), str(stats["hlo_op"]))
            self.on_host.add(self.host_kinds.setdefault(key, len(self.host_kinds)), thread, span, stats)
        elif "_r" in stats or "step_num" in stats:
            number = stats.get("step_num")
            name = _name(plane, identifier).name
            self.annotated.append(Step(name, start, end, number if isinstance(number, int) else None, thread=thread))

    def _finish_host_operations(self, programs: Programs) -> Operations:
        """Return the host's own operations, with their runs and devices as those of the capture."""
        keys = list(self.host_kinds)
        host = self.on_host.finish(programs, keys)
        places = {ordinal: place for place, ordinal in enumerate(host.list_ordinals())}
        self.devices = {str(ordinal): place for ordinal, place in places.items()}
        self.device_stats = [{} for _ in places]
        to_place = numpy.vectorize(places.get, otypes=[numpy.int32])
        columns = (host.run_ordinals, host.run_kinds, host.run_starts, host.run_ends, host.run_finished)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.runs = [
            ProgramRun(places[ordinal], keys[kind][0], keys[kind][1], start, end, is_finished)
            for ordinal, kind, start, end, is_finished in rows
        ]
        starts, ends, threads = self.pending
        ordinals = host.find_devices_of(threads, starts)
        self.pending_of = {
            place: (numpy.array(starts)[is_own], numpy.array(ends)[is_own])
            for ordinal, place in places.items()
            if (is_own := numpy.array([device == ordinal for device in ordinals], bool)).any()
        }
        kinds = tuple(EventKind(*key) for key in keys)
        return Operations(kinds, to_place(host.ordinal), host.kind, host.run, host.starts, host.ends)


_COPYING = re.compile(r"(?i)memcpy|copyBuffer|Memset")
_PROGRAM = re.compile(r"\((\d+)\)$")
_TRANSFERRED = re.compile(r"(copy|send|recv|infeed|outfeed)-(start|done)|(infeed|outfeed)\b")
_BY_STATISTICS = frozenset({_END, _RUN_END, _AWAIT})


def _classify(name: str) -> str:
    """What an event of the host is by its name; empty where its statistics decide."""
    if name.startswith(_IGNORED):
        return "ignored"
    if name.startswith(_PYTHON):
        return _PYTHON
    if name in (_RUN_END, _AWAIT):
        return name
    for begin in (_END, _PENDING):
        if name.startswith(begin):
            return begin
    return next((part for pattern, part in _HOST_EVENTS if pattern.search(name)), "")


def _name(plane: Plane, identifier: int) -> Metadata:
    return plane.metadata.get(identifier, _UNKNOWN)


_UNKNOWN = Metadata("")
