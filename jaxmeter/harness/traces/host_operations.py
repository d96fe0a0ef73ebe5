"""Operations of the host's own processor, in columns and runs; and those that command buffers hide."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy
from numpy.typing import NDArray

from jaxmeter.harness.record.trace_summary import Finding, Problem, TraceSummary
from jaxmeter.harness.traces.columns import Collection, Column, Times, append
from jaxmeter.harness.traces.programs import Programs
from jaxmeter.harness.traces.xplane import Value

_MASK = (1 << 63) - 1
_TASK_BITS = 6
"""Of a flow's kind, below its identifier: kinds are small numbers."""


@dataclass(frozen=True)
class HostOperations:
    """Operations by run, in order of their start; columns of one element each.

    Args:
      kind: Place among the kinds that were collected.
      run: Place among the runs.
      ordinal: Of the device.
      run_kinds, run_ordinals, run_starts, run_ends: By run: a kind of its, its device, and how long it lasted.
      run_finished: Whether its completion was captured.
    """

    kind: NDArray[numpy.int32]
    run: NDArray[numpy.int32]
    ordinal: NDArray[numpy.int32]
    thread: NDArray[numpy.int32]
    starts: Times
    ends: Times
    run_kinds: NDArray[numpy.int32]
    run_ordinals: NDArray[numpy.int32]
    run_starts: Times
    run_ends: Times
    run_finished: NDArray[numpy.bool_]

    def list_ordinals(self) -> list[int]:
        """Return the devices' ordinals."""
        return sorted(set(self.ordinal.tolist()))

    def find_devices_of(self, thread: Sequence[int], starts: Sequence[int]) -> list[int | None]:
        """Return the ordinal of the operation last begun on a thread before each moment; None where there is none."""
        order = numpy.lexsort((self.starts, self.thread))
        threads, begun = self.thread[order], self.starts[order]
        ordinals: list[int | None] = []
        for own, start in zip(thread, starts, strict=True):
            low, high = (int(numpy.searchsorted(threads, own, side=side)) for side in ("left", "right"))
            place = low + int(numpy.searchsorted(begun[low:high], start, side="right")) - 1
            ordinals.append(int(self.ordinal[order[place]]) if place >= low else None)
        return ordinals


class HostColumns:
    """Operations while they are collected."""

    def __init__(self, collection: Collection) -> None:
        self._operations = collection.make_columns("qqqqiii")
        self._marks = collection.make_columns("qqi")
        self._completions = collection.make_columns("qq")  # the first is when a run ends

    def __len__(self) -> int:
        return len(self._operations[0])

    def add(self, kind: int, thread: int, span: tuple[int, int], stats: Mapping[str, Value]) -> None:
        """Add an operation, by the statistics of its event."""
        append(
            self._operations,
            *span,
            _whole(stats.get("run_id", 0)) & _MASK,
            _join_flow(stats.get("_pt", 0), stats["_p"]) if "_p" in stats else -1,
            kind,
            _whole(stats.get("device_ordinal", 0)) & 0x7FFFFFFF,
            thread,
        )

    def add_mark(self, thread: int, start: int, stats: Mapping[str, Value]) -> None:
        """Add the event `end: …` of an operation."""
        append(self._marks, start, _join_flow(stats.get("_ct", 0), stats.get("_c", 0)), thread)

    def add_completion(self, end: int, stats: Mapping[str, Value]) -> None:
        """Add the end of a run."""
        append(self._completions, end, _join_run(stats.get("run_id", 0), stats.get("device_ordinal", 0)))

    def finish(self, programs: Programs, kinds: Sequence[tuple[str, str, str]]) -> HostOperations:
        """Return the operations by run, each with its end.

        Args:
          kinds: Program, module and name of each kind.
        """
        programs_of = {program: place for place, program in enumerate(dict.fromkeys(key[:2] for key in kinds))}
        program_of_kind = numpy.array([programs_of[key[:2]] for key in kinds], numpy.int32)
        order = self._order(program_of_kind)
        starts, ends, run_id, flow, kind, ordinal, thread = (_take(column, order) for column in self._operations)
        del order
        program = program_of_kind[kind]
        is_first = numpy.ones(len(kind), bool)
        is_first[1:] = (program[1:] != program[:-1]) | (run_id[1:] != run_id[:-1]) | (ordinal[1:] != ordinal[:-1])
        firsts = numpy.flatnonzero(is_first)
        run = (numpy.cumsum(is_first) - 1).astype(numpy.int32)
        ended, ended_runs = self._completions
        completed = _look_up(_join_runs(run_id[firsts], ordinal[firsts]), ended_runs, ended)
        marked, mark_threads = self._find_marks(flow)
        del flow, run_id, program
        # The end of a run comes before what was marked later; without one the mark alone decides.
        limits = numpy.where(completed[run] >= 0, numpy.minimum(marked, completed[run]), marked)
        late = numpy.flatnonzero((marked >= 0) & (limits > ends))
        finder = _Finder(kind, thread, starts, ends, numpy.append(firsts, len(kind)), programs, kinds)
        for place in late.tolist():
            ends[place] = finder.find_end(place, int(run[place]), int(limits[place]), int(mark_threads[place]))
        last = numpy.maximum.reduceat(ends, firsts) if len(firsts) else ends
        return HostOperations(
            kind=kind,
            run=run,
            ordinal=ordinal,
            thread=thread,
            starts=starts,
            ends=ends,
            run_kinds=kind[firsts],
            run_ordinals=ordinal[firsts],
            run_starts=starts[firsts],
            run_ends=numpy.maximum(last, completed),
            run_finished=completed >= 0,
        )

    def _order(self, program_of_kind: NDArray[numpy.int32]) -> NDArray[numpy.int64]:
        """By program, run and device, and there by their start."""
        starts, _, run_id, _, kind, ordinal, _ = map(numpy.asarray, self._operations)
        return numpy.lexsort((starts, ordinal, run_id, program_of_kind[kind]))

    def _find_marks(self, flow: Times) -> tuple[Times, NDArray[numpy.int32]]:
        """By operation, when its event `end: …` began, -1 without one, and on which thread."""
        moments, keys, threads = self._marks
        places = _look_up(flow, keys, range(len(keys)))
        known = (flow >= 0) & (places >= 0)
        begun, own = numpy.array(moments, numpy.int64), numpy.array(threads, numpy.int32)
        if not len(begun):
            return numpy.full(len(flow), -1, numpy.int64), numpy.zeros(len(flow), numpy.int32)
        return numpy.where(known, begun[places], -1), numpy.where(known, own[places], 0).astype(numpy.int32)


class _Finder:
    """A search for the next operation of a run on a thread; one run at a time is unpacked."""

    def __init__(
        self,
        kind: NDArray[numpy.int32],
        thread: NDArray[numpy.int32],
        starts: Times,
        ends: Times,
        bounds: NDArray[numpy.int64],
        programs: Programs,
        kinds: Sequence[tuple[str, str, str]],
    ) -> None:
        self._columns = kind, thread, starts
        self._recorded = ends.copy() if len(ends) else ends
        self._bounds, self._programs, self._kinds = bounds, programs, kinds
        self._run = -1
        self._by_thread: dict[int, tuple[list[int], list[int]]] = {}
        self._bodies: Mapping[str, frozenset[str]] = {}

    def find_end(self, place: int, run: int, limit: int, thread: int) -> int:
        """Return when an operation ended whose event `end: …`, or whose run's end, is at the limit."""
        if run != self._run:
            self._unpack(run)
        kind = self._columns[0]
        recorded = int(self._recorded[place])
        own = self._bodies.get(self._kinds[kind[place]][2], frozenset())
        for start, other in self._follow(thread, recorded):
            if start >= limit:
                break
            if other != place and self._kinds[kind[other]][2] not in own:
                return max(recorded, start)
        return max(recorded, limit)

    def _follow(self, thread: int, moment: int) -> Iterator[tuple[int, int]]:
        starts, places = self._by_thread.get(thread, ([], []))
        for index in range(bisect_left(starts, moment), len(starts)):
            yield starts[index], places[index]

    def _unpack(self, run: int) -> None:
        low, high = int(self._bounds[run]), int(self._bounds[run + 1])
        kind, thread, starts = (column[low:high].tolist() for column in self._columns)
        self._run, self._by_thread = run, {}
        for offset, (own, start) in enumerate(zip(thread, starts, strict=True)):
            there = self._by_thread.setdefault(own, ([], []))
            there[0].append(start)
            there[1].append(low + offset)
        program, module, _ = self._kinds[kind[0]]
        self._bodies = self._programs.find_bodies(module, program, {self._kinds[index][2] for index in set(kind)})


def _take(column: Column, order: NDArray[numpy.int64]) -> NDArray[Any]:
    """A column in another order; the collected one is given up, since a large capture has room for one of both."""
    taken = numpy.asarray(column)[order]
    del column[:]
    return taken


def _look_up(wanted: Times, keys: Sequence[int], values: Sequence[int]) -> Times:
    """For each wanted key the value of the last of its kind; -1 where there is none."""
    known, results = numpy.array(keys, numpy.int64), numpy.array(values, numpy.int64)
    if not len(known):
        return numpy.full(len(wanted), -1, numpy.int64)
    order = numpy.argsort(known, kind="stable")
    known, results = known[order], results[order]
    place = numpy.searchsorted(known, wanted, side="right") - 1
    return numpy.where((place >= 0) & (known[place] == wanted), results[place], -1)


def _join_flow(task: Value, identifier: Value) -> int:
    return ((_whole(identifier) << _TASK_BITS) ^ _whole(task)) & _MASK


def _join_run(run_id: Value, ordinal: Value) -> int:
    return int(_join_runs(numpy.array([_whole(run_id) & _MASK]), numpy.array([_whole(ordinal) & 0x7FFFFFFF]))[0])


def _join_runs(run_id: Times, ordinal: NDArray[numpy.int32] | Times) -> Times:
    """One key of a run and a device. Identifiers are random numbers, so a device's small one changes their low bits."""
    joined: Times = run_id ^ (ordinal.astype(numpy.int64) << 40)
    return joined


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else 0


NAMED = Finding(
    problem=Problem.COMMAND_BUFFERS,
    text="command buffers hide operations: these are of a second capture, of the program compiled without them",
    is_fatal=False,
)


def is_hidden(summary: TraceSummary) -> bool:
    """Whether kernels of a healthy capture do not say of which operation they are."""
    return summary.is_healthy and any(finding.problem is Problem.COMMAND_BUFFERS for finding in summary.findings)


def name_operations(summary: TraceSummary, second: TraceSummary) -> TraceSummary:
    """Return a summary with the operations of a second capture; steps, busy times and ledger remain those of the first.

    The first is returned as it is where the second one names no more.
    """
    if not second.is_healthy or not second.operations or is_hidden(second):
        return summary
    taken = ("operations", "others", "others_share", "by_category", "by_source", "product_formats", "flops", "bytes")
    findings = tuple(finding for finding in summary.findings if finding.problem is not Problem.COMMAND_BUFFERS)
    return msgspec.structs.replace(
        summary, **{name: getattr(second, name) for name in taken}, findings=(*findings, NAMED)
    )
