"""What a capture shows: steps, how long each device was busy in them, and which operations took that time.

Source of the definitions: docs/where-the-time-goes.md.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy
from numpy.typing import NDArray

from jaxmeter.harness.traces.columns import Intervals, Times, clip, covered, measure, share_equally, subtract, unite
from jaxmeter.harness.traces.costs import Cost
from jaxmeter.harness.traces.programs import COLLECTIVE, CONTROL, TRANSFER, Operation, Programs
from jaxmeter.harness.traces.timeline import EventKind, Operations, Step, Timeline

ANNOTATIONS, MODULE_RUNS, WHOLE = "step annotations", "runs of the longest program", "first to last operation"
"""What the steps of a capture are."""

HELD = 0.5
"""Share of the devices' busy time, until the last step ends, that steps must hold. Where annotations hold less, their
code does not wait for its results, and a step lasts until the next one begins. Calls queued far ahead lie behind it."""


@dataclass(frozen=True)
class Steps:
    """The windows that a capture is divided into.

    Args:
      source: ANNOTATIONS, MODULE_RUNS or WHOLE.
      until_next: Whether each lasts until the next begins, as the annotated code does not wait for its results.
      others: By name, how many annotated steps are none of these steps: of another name or thread, or not waited for.
    """

    source: str
    steps: tuple[Step, ...]
    until_next: bool = False
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class OperationTime:
    """One operation of one program, over all steps and devices.

    Args:
      count: Executions.
      total_ps: Sum of their durations.
      self_ps: The same without the operations inside a loop or call.
      share_ps: Its share of the devices' busy time; shares of all operations add up to it.
      by_device: Name of a device: its own share, in picoseconds.
      about: What its program says of it.
    """

    kind: EventKind
    about: Operation
    count: int
    total_ps: int
    self_ps: int
    share_ps: float
    by_device: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceActivity:
    """One device's activity, step by step, in picoseconds.

    Args:
      busy: Union of its operations.
      program: Union of its programs' runs; empty if a capture does not distinguish runs.
      collective: Union of its collectives, including waiting for other devices where captures show it.
      transfer: Union of its copies between memories.
    """

    name: str
    busy: Times
    program: Times
    collective: Times
    waiting_in_collectives: Times | None
    transfer: Times


@dataclass(frozen=True)
class Analysis:
    """All that is said of one host's capture.

    Args:
      wall: Of each step, in picoseconds.
      operations: In order of their shares, the largest first.
      parts: Intervals of the categories, by device.
    """

    timeline: Timeline
    steps: Steps
    wall: Times
    devices: tuple[DeviceActivity, ...]
    operations: tuple[OperationTime, ...]
    by_category: tuple[Mapping[str, Intervals], ...]

    @property
    def outside_share(self) -> float:
        """Share of the devices' busy time that lies in no step."""
        everything = sum(measure(unite(self._of(place).intervals)) for place in range(len(self.devices)))
        inside = sum(float(device.busy.sum()) for device in self.devices)
        return max(0.0, 1.0 - inside / everything) if everything else 0.0

    @property
    def between_share(self) -> float:
        """Share of the time from the first step's beginning to the last one's end that lies between two steps."""
        steps = [step for step in self.steps.steps if step.device in (None, self.busiest)]
        if len(steps) < 2:
            return 0.0
        united = unite((_times(steps, "start"), _times(steps, "end")))
        whole = max(step.end for step in steps) - min(step.start for step in steps)
        return 1.0 - measure(united) / whole if whole > 0 else 0.0

    def _of(self, place: int) -> Operations:
        operations = self.timeline.operations
        return operations.take(operations.device == place)

    @property
    def busiest(self) -> int:
        """Place of the device that was busy for longest."""
        return max(range(len(self.devices)), key=lambda place: int(self.devices[place].busy.sum()), default=0)


def analyse(timeline: Timeline, programs: Programs, step_name: str | None = None) -> Analysis:
    """Return what a timeline shows. A timeline without operations has steps and no devices.

    Args:
      step_name: As for `find_steps`.
    """
    steps = find_steps(timeline, step_name)
    windows = steps.steps
    starts, ends = _times(windows, "start"), _times(windows, "end")
    operations = timeline.operations.take(_overlaps(timeline.operations, windows))
    inside = _cut(operations, windows)
    about = _describe(timeline.operations, programs)
    devices: list[DeviceActivity] = []
    by_category: list[Mapping[str, Intervals]] = []
    for place, name in enumerate(timeline.devices):
        own = operations.take(operations.device == place)
        united = unite(own.intervals)
        low, high = _windows_of(windows, place, starts, ends)
        runs = [run for run in timeline.runs if run.device == place and run.end > run.start]
        programs_time = unite((_times(runs, "start"), _times(runs, "end")))
        categories = {
            category: unite(own.take(_is_of(own, about, category)).intervals)
            for category in dict.fromkeys(operation.category for operation in about)
        }
        pending = unite(timeline.pending.get(place, _EMPTY)) if timeline.pending else None
        collective = categories.get(COLLECTIVE, _EMPTY)
        devices.append(
            DeviceActivity(
                name=name,
                busy=covered(united, low, high),
                program=covered(programs_time, low, high) if runs else _EMPTY[0],
                collective=covered(collective, low, high),
                waiting_in_collectives=None if pending is None else covered(_intersect(pending, collective), low, high),
                transfer=covered(categories.get(TRANSFER, _EMPTY), low, high),
            )
        )
        by_category.append(categories)
    return Analysis(
        timeline=timeline,
        steps=steps,
        wall=ends - starts,
        devices=tuple(devices),
        operations=tuple(_total(operations, inside, about, timeline, programs)),
        by_category=tuple(by_category),
    )


def find_steps(timeline: Timeline, name: str | None = None) -> Steps:
    """Return the steps: by annotation, else the runs of the program that took longest, else the whole capture.

    Args:
      name: Of the annotated steps, if any has it; by default the name that lasts longest.
    """
    annotated, layout = timeline.annotated, timeline.layout
    if any(name in (None, step.name) for step in annotated) and not (layout is not None and layout.has_device_clock):
        by_annotation = _find_annotated(timeline, name)
        if by_annotation is not None:
            return by_annotation
    others = Counter(step.name for step in annotated)
    if layout is not None and layout.has_runs and timeline.runs:
        runs = [run for run in timeline.runs if run.end > run.start]
        # A run that the capture cuts off is none; runtimes that report no completion cut off nothing.
        runs = [run for run in runs if run.is_finished] or runs
        lasting: dict[tuple[int, str, str], int] = defaultdict(int)
        for run in runs:
            lasting[run.device, run.module, run.program] += run.end - run.start
        if lasting:
            _, module, program = max(lasting, key=lambda key: (lasting[key], key))
            own = [run for run in runs if (run.module, run.program) == (module, program)]
            # Each device has runs of its own of a program that several run.
            by_device = layout.has_device_clock or len({run.device for run in own}) > 1
            steps = [Step(module, run.start, run.end, device=run.device if by_device else None) for run in own]
            steps.sort(key=lambda step: (step.device or 0, step.start))
            return Steps(MODULE_RUNS, tuple(steps), others=others)
    if not len(timeline.operations):
        return Steps(WHOLE, (), others=others)
    first, last = int(timeline.operations.starts.min()), int(timeline.operations.ends.max())
    return Steps(WHOLE, (Step("capture", first, max(last, first + 1)),), others=others)


def _find_annotated(timeline: Timeline, name: str | None) -> Steps | None:
    """Steps by annotation; None where the annotated code runs so far ahead that its work lies outside of them."""
    steps, outermost = _choose_annotated(timeline.annotated, name)
    others = Counter(step.name for step in timeline.annotated) - Counter(step.name for step in steps)
    # Steps of other names that the same thread takes in turn, such as those of an evaluation.
    between = _list_apart([step for step in outermost if step.thread == steps[0].thread], steps)
    busy = unite(timeline.operations.intervals)
    own = subtract(busy, unite((_times(between, "start"), _times(between, "end"))))
    everything = measure(clip(own, steps[0].start, timeline.end))
    inside, worked = _hold(own, steps), numpy.mean(covered(own, _times(steps, "start"), _times(steps, "end")) > 0)
    # Work of other code, before, between and behind the steps, does not mean that they do not wait.
    holds = inside >= HELD * measure(clip(own, steps[0].start, steps[-1].end))
    has_work = worked >= HELD or inside >= HELD * everything
    if not everything or (holds and has_work and _are_apart(timeline.operations, busy, steps, is_alone=not between)):
        return Steps(ANNOTATIONS, tuple(steps), others=others)
    in_turn = sorted((*steps, *between), key=lambda step: step.start)
    following = [replace(step, end=after.start) for step, after in pairwise(in_turn) if step.name == steps[0].name]
    # If other steps take turns, work that runs into them cannot be distinguished from theirs.
    if between and not _are_apart(timeline.operations, busy, following, is_alone=False):
        return None
    held = _hold(own, following)
    if held and held >= HELD * everything:
        return Steps(ANNOTATIONS, tuple(following), until_next=True, others=others)
    return None


def _are_apart(operations: Operations, busy: Intervals, steps: Sequence[Step], *, is_alone: bool) -> bool:
    """Whether most of the steps' work is in steps at whose end nothing runs.

    Args:
      is_alone: Whether no other steps are between them; else nothing may run when they begin, either.
    """
    if not steps:
        return False
    starts, ends = _times(steps, "start"), _times(steps, "end")
    begun, ended = numpy.sort(operations.starts), numpy.sort(operations.ends)

    def is_idle(at: Times) -> NDArray[numpy.bool_]:
        running: NDArray[numpy.bool_] = numpy.searchsorted(begun, at) <= numpy.searchsorted(ended, at, side="right")
        return running

    work = covered(busy, starts, ends) + 1
    return bool(work[is_idle(ends) & (is_alone | is_idle(starts))].sum() >= HELD * work.sum())


def _choose_annotated(annotated: Sequence[Step], name: str | None) -> tuple[list[Step], list[Step]]:
    """The steps of one name and thread, those that last longest; and the outermost steps of other names and threads."""
    named = [step for step in annotated if name in (None, step.name)]
    outermost: dict[int | None, list[Step]] = defaultdict(list)
    for step in named:  # a step inside another is no step of its own
        own = outermost[step.thread]
        if not own or step.start >= own[-1].end:
            own.append(step)
    groups: dict[tuple[int | None, str], list[Step]] = defaultdict(list)
    for thread, steps in outermost.items():
        for step in steps:
            groups[thread, step.name].append(step)
    chosen = max(groups.values(), key=lambda steps: sum(step.end - step.start for step in steps))
    if name is None:
        return chosen, [step for steps in groups.values() if steps is not chosen for step in steps]
    return chosen, [step for step in annotated if step.name != name or step.thread != chosen[0].thread]


def _list_apart(those: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """Those that overlap none of the steps, which are in order and disjoint."""
    starts, ends = _times(steps, "start"), _times(steps, "end")
    following = numpy.searchsorted(ends, _times(those, "start"), side="right").tolist()
    pairs = zip(those, following, strict=True)
    return [step for step, place in pairs if place == len(ends) or starts[place] >= step.end]


def _hold(busy: Intervals, steps: Sequence[Step]) -> int:
    """Busy time inside some steps, in picoseconds."""
    return int(covered(busy, _times(steps, "start"), _times(steps, "end")).sum())


_EMPTY: Intervals = (numpy.empty(0, numpy.int64), numpy.empty(0, numpy.int64))


def _times(items: Sequence[object], name: str) -> Times:
    return numpy.array([getattr(item, name) for item in items], numpy.int64)


def _windows_of(windows: Sequence[Step], device: int, starts: Times, ends: Times) -> tuple[Times, Times]:
    """Of a device that has steps of its own clock only those; one of another is empty for it."""
    foreign = numpy.array([step.device not in (None, device) for step in windows], bool)
    return starts, numpy.where(foreign, starts, ends)


def _overlaps(operations: Operations, windows: Sequence[Step]) -> NDArray[numpy.bool_]:
    """Which operations run in a step."""
    kept = numpy.zeros(len(operations), bool)
    for here, starts, ends in _list_windows(operations, windows):
        last = numpy.searchsorted(starts, numpy.maximum(operations.ends, operations.starts + 1)) - 1
        runs = (last >= 0) & (operations.starts < ends[last])
        kept |= runs if here is None else runs & here
    return kept


def _cut(operations: Operations, windows: Sequence[Step]) -> Operations:
    """Operations from the first step in which they run to the last one, where they begin before or end after it."""
    begun, ended = operations.starts, operations.ends
    for here, starts, ends in _list_windows(operations, windows):
        first = starts[numpy.minimum(numpy.searchsorted(ends, operations.starts, side="right"), len(starts) - 1)]
        last = ends[numpy.maximum(numpy.searchsorted(starts, operations.ends) - 1, 0)]
        is_cut = ((first > operations.starts) | (last < operations.ends)) & (True if here is None else here)
        if is_cut.any():  # a large capture has no room for a copy
            begun = numpy.where(is_cut, numpy.maximum(begun, first), begun)
            ended = numpy.where(is_cut, numpy.minimum(ended, last), ended)
    return replace(operations, starts=begun, ends=numpy.maximum(ended, begun))


def _list_windows(
    operations: Operations, windows: Sequence[Step]
) -> Iterator[tuple[NDArray[numpy.bool_] | None, Times, Times]]:
    """By device: which operations are its own, None for all; starts and ends of its steps, in order."""
    for device in {step.device for step in windows}:
        own = [step for step in windows if step.device == device]
        starts, ends = _times(own, "start"), _times(own, "end")
        order = numpy.argsort(starts, kind="stable")
        yield None if device is None else operations.device == device, starts[order], ends[order]


def _intersect(first: Intervals, second: Intervals) -> Intervals:
    """What lies in both unions."""
    return subtract(first, subtract(first, second))


def _describe(operations: Operations, programs: Programs) -> list[Operation]:
    """What each kind of operation is."""
    by_program: dict[tuple[str, str], list[EventKind]] = defaultdict(list)
    for kind in operations.kinds:
        by_program[kind.module, kind.program].append(kind)
    about: dict[EventKind, Operation] = {}
    for (module, program), kinds in by_program.items():
        by_name = programs.describe(module, program, [kind.name for kind in kinds]) if module else {}
        for kind in kinds:
            about[kind] = _complete(kind, by_name.get(kind.name, Operation()))
    return [about[kind] for kind in operations.kinds]


def _complete(kind: EventKind, operation: Operation) -> Operation:
    """What the platform itself says of an operation, where its program does not."""
    if kind.copies:
        operation = replace(operation, category=TRANSFER)
    stats = kind.stats
    if not stats:
        return operation
    flops, moved = stats.get("flops"), stats.get("bytes_accessed")
    if isinstance(flops, int) and isinstance(moved, int) and min(flops, moved) >= 0:
        operation = replace(operation, cost=Cost(float(flops), None, float(moved)))
    source = stats.get("source")
    if not operation.source and isinstance(source, str):
        operation = replace(operation, source=source)
    category = stats.get("hlo_category")
    if not operation.opcode and isinstance(category, str):
        operation = replace(operation, opcode=category)
    return operation


def _is_of(operations: Operations, about: Sequence[Operation], category: str) -> NDArray[numpy.bool_]:
    of_kind = numpy.array([operation.category == category for operation in about], bool)
    return of_kind[operations.kind] if len(operations) else numpy.zeros(0, bool)


def _total(
    operations: Operations,
    inside: Operations,
    about: Sequence[Operation],
    timeline: Timeline,
    programs: Programs,
) -> Iterator[OperationTime]:
    """Each kind's times.

    Args:
      inside: The same operations, cut to the steps: what they share is busy time of steps.
    """
    shares = _share_by_device(inside, about, len(timeline.devices))
    durations = operations.ends - operations.starts
    own_times = _find_self_times(operations, about, programs)
    size = len(operations.kinds)
    counts = numpy.bincount(operations.kind, minlength=size)
    totals, own, shared = (
        numpy.bincount(operations.kind, weights=values, minlength=size) for values in (durations, own_times, shares)
    )
    by_device = [
        numpy.bincount(operations.kind, weights=shares * (operations.device == device), minlength=size)
        for device in range(len(timeline.devices))
    ]
    for place in sorted(range(size), key=lambda place: (-shared[place], operations.kinds[place].name)):
        if counts[place]:
            yield OperationTime(
                kind=operations.kinds[place],
                about=about[place],
                count=int(counts[place]),
                total_ps=int(totals[place]),
                self_ps=int(own[place]),
                share_ps=float(shared[place]),
                by_device={name: float(of[place]) for name, of in zip(timeline.devices, by_device, strict=True)},
            )


def _share_by_device(operations: Operations, about: Sequence[Operation], devices: int) -> NDArray[numpy.float64]:
    """Of its device's busy time each operation's share."""
    if devices == 1:  # a large capture has no room for a copy
        return _share(operations, about)
    shares = numpy.zeros(len(operations))
    for device in range(devices):
        here = operations.device == device
        shares[here] = _share(operations.take(here), about)
    return shares


def _share(operations: Operations, about: Sequence[Operation]) -> NDArray[numpy.float64]:
    """Of one device's busy time each operation's share; loops have that in which none of their bodies' runs."""
    holds = _is_of(operations, about, CONTROL)
    if not holds.any():
        return share_equally(operations.intervals)
    shares = numpy.zeros(len(operations))
    plain = ~holds
    shares[plain] = share_equally((operations.starts[plain], operations.ends[plain]))
    taken = unite((operations.starts[plain], operations.ends[plain]))
    for held in _list_holders(operations, holds):
        starts, ends = operations.starts[held], operations.ends[held]
        shares[held] = ends - starts - covered(taken, starts, ends)
        taken = unite((numpy.concatenate((taken[0], starts)), numpy.concatenate((taken[1], ends))))
    return shares


def _list_holders(operations: Operations, holds: NDArray[numpy.bool_]) -> Iterator[NDArray[numpy.int64]]:
    """Places of loops and calls, inner ones first: the shorter of two lies inside the longer one."""
    durations = operations.ends - operations.starts
    kinds = dict.fromkeys(operations.kind[holds].tolist())
    groups = [numpy.flatnonzero(operations.kind == kind) for kind in kinds]
    for group in sorted(groups, key=lambda group: int(durations[group].max())):
        apart = measure(unite((operations.starts[group], operations.ends[group]))) == int(durations[group].sum())
        yield from [group] if apart else [numpy.array([place]) for place in group.tolist()]


def _find_self_times(operations: Operations, about: Sequence[Operation], programs: Programs) -> Times:
    """Durations without what runs inside: of loops, calls and branches by the bodies that their program names."""
    own = operations.ends - operations.starts
    holds = _is_of(operations, about, CONTROL)
    by_program: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind in operations.kinds if holds.any() else ():
        by_program[kind.module, kind.program].add(kind.name)
    places = {kind: place for place, kind in enumerate(operations.kinds)}
    for place in dict.fromkeys(operations.kind[holds].tolist()):
        kind = operations.kinds[place]
        bodies = programs.find_bodies(kind.module, kind.program, by_program[kind.module, kind.program])
        names = bodies.get(kind.name, frozenset())
        inner = [index for called, index in places.items() if called.name in names and called.program == kind.program]
        is_inner = numpy.isin(operations.kind, inner)
        for device in dict.fromkeys(operations.device[operations.kind == place].tolist()):
            here = operations.device == device
            united = unite((operations.starts[is_inner & here], operations.ends[is_inner & here]))
            mine = here & (operations.kind == place)
            own[mine] -= covered(united, operations.starts[mine], operations.ends[mine])
    return own
