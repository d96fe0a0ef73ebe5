"""A capture's events become operations of devices, runs of programs, steps, and what the host did meanwhile.

How a platform's operations, launches and transfers are recognised is a row of `LAYOUTS`.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from jaxmeter.harness.traces.host_operations import HostColumns
from jaxmeter.harness.traces.intervals import Intervals, Times
from jaxmeter.harness.traces.programs import Programs
from jaxmeter.harness.traces.xplane import PS_PER_NS, CaptureError, Metadata, Plane, Space, Value

HOST_PLANE = "/host:CPU"
TRANSFER, COMPILE, DISPATCH, WAITING = "transfer", "compile", "dispatch", "waiting"
"""What the host does, by the names of its events."""

_HOST_EVENTS = (
    (re.compile(r"H2D Dispatch|DevicePut|CopyToDevice|BufferFromHostBuffer|ToLiteral|CopyToHost"), TRANSFER),
    (
        re.compile(
            r"backend_compile|lower_sharding_computation|XlaCompile|[Cc]ompile(AndLoad|d?Impl)?\b|RunBackend|RunHloPasses|LlvmCompile"
        ),
        COMPILE,
    ),
    (re.compile(r"PjitFunction\(|PmapFunction\(|LoadedExecutable::Execute"), DISPATCH),
)
"""Patterns of names, and what an event of such a name is. Found in captures of jax 0.8 to 0.10."""

_AWAIT = "CommonPjRtBuffer::Await"
_RUN_END = "ThunkExecutor::Execute (wait for completion)"
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
GPU = Layout("gpu", "/device:GPU", lines="Stream", hides=frozenset({"between operations", "waiting"}))
TPU = Layout(
    "tpu",
    "/device:TPU",
    lines="XLA Ops",
    has_device_clock=True,
    has_runs=True,
    hides=frozenset({"compile", "dispatch", "waiting", "host before", "host amid", "host after"}),
)

LAYOUTS = (GPU, TPU, CPU)
"""The first whose operations a capture has decides: a host with devices runs operations of its own, too."""


@dataclass(frozen=True)
class Kind:
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

    kinds: tuple[Kind, ...]
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
class Run:
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
    """What a capture shows of one host.

    Args:
      layout: None where there is no operation of any device.
      devices: Their names in the capture.
      device_stats: By device, what its plane says of it.
      runs: Empty where the platform's captures do not tell one from another.
      annotated: Steps by `StepTraceAnnotation`, in order of their start.
      host: Intervals of what the host did, by part; not united.
      pending: By place of a device, when its collectives waited for other devices; empty where that is not seen.
      launch_delays: From the beginning of a kernel's launch on the host to its start, in picoseconds.
      unmatched: Kernels without a launch.
      before_launch: Kernels that started before their launch: clocks that disagree.
      skew: Largest difference between the host's and the device's clock over the capture, in picoseconds.
      events: How many were read.
      python_calls: By the host's thread, when Python's own functions began, which the Python tracer records.
      first, end: When the first event began, and the last one ended.
      whole: Whether the profiler's last record is there.
    """

    layout: Layout | None
    devices: tuple[str, ...]
    device_stats: tuple[Mapping[str, Value], ...]
    operations: Operations
    runs: tuple[Run, ...]
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


class _Columns:
    """Operations while they are collected: eight bytes a value."""

    def __init__(self) -> None:
        self.kinds: dict[Kind, int] = {}
        self.device, self.kind, self.run = array("i"), array("i"), array("i")
        self.starts, self.ends = array("q"), array("q")

    def add(self, device: int, kind: Kind, run: int, start: int, end: int) -> None:
        self.device.append(device)
        self.kind.append(self.kinds.setdefault(kind, len(self.kinds)))
        self.run.append(run)
        self.starts.append(start)
        self.ends.append(end)

    def finish(self) -> Operations:
        device, kind, run = (numpy.array(column, numpy.int32) for column in (self.device, self.kind, self.run))
        starts, ends = (numpy.array(column, numpy.int64) for column in (self.starts, self.ends))
        return Operations(tuple(self.kinds), device, kind, run, starts, ends)


class _Reader:
    def __init__(self, space: Space) -> None:
        self.space = space
        self.columns = _Columns()
        self.devices: dict[str, int] = {}
        self.device_stats: list[Mapping[str, Value]] = []
        self.runs: list[Run] = []
        self.host: dict[str, tuple[array[int], array[int]]] = defaultdict(lambda: (array("q"), array("q")))
        self.pending: list[tuple[int, int, int]] = []
        self.pending_of: dict[int, Intervals] = {}
        self.annotated: list[Step] = []
        self.on_host = HostColumns()
        self.host_kinds: dict[tuple[str, str, str], int] = {}
        self.begun_waiting: dict[tuple[Value, Value], int] = {}
        self.launches: dict[Value, int] = {}
        self.kernels: list[tuple[Value, int]] = []
        self.skews: list[tuple[int, int]] = []
        self.events = 0
        self.python_calls: dict[int, array[int]] = defaultdict(lambda: array("q"))
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
            if self.columns.starts:
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
        delays = [
            start - self.launches[identifier] for identifier, start in self.kernels if identifier in self.launches
        ]
        return Timeline(
            layout=layout,
            devices=tuple(self.devices),
            device_stats=tuple(self.device_stats),
            operations=self.columns.finish() if on_host is None else on_host,
            runs=tuple(self.runs),
            annotated=tuple(sorted(self.annotated, key=lambda step: step.start)),
            host={part: (_times(starts), _times(ends)) for part, (starts, ends) in self.host.items()},
            pending=self.pending_of,
            launch_delays=numpy.array(delays, numpy.int64),
            unmatched=sum(identifier not in self.launches for identifier, _ in self.kernels),
            before_launch=sum(delay < 0 for delay in delays),
            skew=max((highest - lowest for lowest, highest in self.skews), default=0),
            events=self.events,
            python_calls={thread: _times(begun) for thread, begun in self.python_calls.items()},
            first=self.first or 0,
            end=self.end,
            whole=any(plane.name == "Task Environment" for plane in self.space.planes),
            errors=self.space.errors,
            warnings=self.space.warnings,
        )

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
        kinds: dict[tuple[Value, Value, Value, bool, str], Kind] = {}
        for line in plane.lines():
            if not line.name.startswith(layout.lines):
                continue
            for identifier, begin, duration, encoded in line.events():
                self.events += 1
                stats = plane.read_stats(encoded)
                name = _name(plane, identifier).name
                own = stats.get("hlo_op")
                # A copy that the program itself asks for is one of its operations.
                copies = own is None and ("memcpy_details" in stats or bool(_COPYING.search(name)))
                key = (own or name, stats.get("program_id", ""), stats.get("hlo_module", ""), copies, name)
                kind = kinds.get(key)
                if kind is None:
                    kind = kinds[key] = Kind(str(key[1]), str(key[2]), str(key[0]), copies)
                start = begin - self.origin_ps
                end = start + max(duration, 0)
                self._bound(start, end)
                self.columns.add(self._device(plane), kind, -1, start, end)
                if "correlation_id" in stats:
                    self.kernels.append((stats["correlation_id"], start))

    def _read_cores(self, plane: Plane, layout: Layout) -> None:
        """Operations of a TPU, by its own clock; a run of a program lasts from its first operation to its last."""
        modules: list[tuple[int, int, str]] = []
        operations: list[tuple[int, int, int, int]] = []
        for line in plane.lines():
            if line.name == "XLA Modules":
                for identifier, absolute, duration, _ in line.events():
                    self.events += 1
                    start = absolute - self.origin_ps
                    modules.append((start, start + duration, _name(plane, identifier).name))
            elif line.name == layout.lines:
                for identifier, absolute, duration, encoded in line.events():
                    self.events += 1
                    start = absolute - self.origin_ps
                    stats = plane.read_stats(encoded)
                    begin, length = stats.get("device_offset_ps", start), stats.get("device_duration_ps", duration)
                    if isinstance(begin, int) and isinstance(length, int):
                        operations.append((start, begin, length, identifier))
        if not operations:
            return
        device = self._device(plane)
        skews = [start - begin for start, begin, _, _ in operations]
        self.skews.append((min(skews), max(skews)))
        kinds: dict[int, Kind] = {}
        modules.sort()
        bounds = numpy.array([start for start, _, _ in modules], numpy.int64)
        starts = numpy.array([start for start, _, _, _ in operations], numpy.int64)
        places = numpy.searchsorted(bounds, starts, side="right") - 1
        found: dict[int, tuple[int, int]] = {}
        first = len(self.runs)
        for (_, begin, length, identifier), place in zip(operations, places.tolist(), strict=True):
            kind = kinds.get(identifier)
            if kind is None:
                metadata = _name(plane, identifier)
                module = modules[place][2] if place >= 0 else ""
                kind = kinds[identifier] = Kind(
                    str(metadata.stats.get("program_id", "")),
                    _PROGRAM.sub("", module),
                    metadata.display_name or metadata.name.split(" = ")[0].removeprefix("%"),
                    str(metadata.stats.get("hlo_category", "")).startswith(("copy-start", "copy-done", "host "))
                    or _TRANSFERRED.match(metadata.display_name) is not None,
                    metadata.stats,
                )
            end = begin + max(length, 0)
            self._bound(begin, end)
            low, high = found.get(place, (begin, end))
            found[place] = (min(low, begin), max(high, end))
            self.columns.add(device, kind, first + place if place >= 0 else -1, begin, end)
        for place, (_, _, name) in enumerate(modules):
            low, high = found.get(place, (0, 0))
            numbered = _PROGRAM.search(name)
            self.runs.append(Run(device, numbered[1] if numbered else "", _PROGRAM.sub("", name), low, high))

    def _read_host(self, plane: Plane) -> None:
        parts = {identifier: _classify(metadata.name) for identifier, metadata in plane.metadata.items()}
        for thread, line in enumerate(plane.lines()):
            for identifier, begin, duration, encoded in line.events():
                self.events += 1
                part = parts.get(identifier, "")
                if part == "ignored":
                    continue
                start = begin - self.origin_ps
                if part == _PYTHON:
                    self.python_calls[thread].append(start)
                    continue
                end = start + duration if duration > 0 else start
                self._bound(start, end)
                if part == _PENDING:
                    self.pending.append((thread, start, end))
                    continue
                if part and part not in _BY_STATISTICS:
                    self.host[part][0].append(start)
                    self.host[part][1].append(end)
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
                    self.host[WAITING][0].append(begun)
                    self.host[WAITING][1].append(end)
        elif "correlation_id" in stats:
            # Of several with one identifier the last begun launches the kernel.
            known = self.launches.get(stats["correlation_id"])
            self.launches[stats["correlation_id"]] = start if known is None else max(known, start)
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
        found = self.on_host.finish(programs, keys)
        places = {ordinal: place for place, ordinal in enumerate(found.list_ordinals())}
        self.devices = {str(ordinal): place for ordinal, place in places.items()}
        self.device_stats = [{} for _ in places]
        to_place = numpy.vectorize(places.get, otypes=[numpy.int32])
        columns = (found.run_ordinals, found.run_kinds, found.run_starts, found.run_ends, found.run_finished)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.runs = [
            Run(places[ordinal], keys[kind][0], keys[kind][1], start, end, is_finished)
            for ordinal, kind, start, end, is_finished in rows
        ]
        threads, starts, ends = zip(*self.pending, strict=True) if self.pending else ((), (), ())
        ordinals = found.find_devices_of(threads, starts)
        self.pending_of = {
            place: (
                _times(start for start, one in zip(starts, ordinals, strict=True) if one == ordinal),
                _times(end for end, one in zip(ends, ordinals, strict=True) if one == ordinal),
            )
            for ordinal, place in places.items()
            if ordinal in ordinals
        }
        kinds = tuple(Kind(*key) for key in keys)
        return Operations(kinds, to_place(found.ordinal), found.kind, found.run, found.starts, found.ends)


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


def _times(column: Iterable[int]) -> Times:
    return numpy.fromiter(column, numpy.int64)
