"""From a capture to the small table that a run keeps of it, with medians over its steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from jaxmeter.harness.record.trace_summary import Finding, Problem, TracedDevice, TracedOperation, TraceSummary
from jaxmeter.harness.traces.analysis import ANNOTATIONS, Analysis, OperationTime, analyse
from jaxmeter.harness.traces.columns import Times
from jaxmeter.harness.traces.health import PS_PER_S, find_problems
from jaxmeter.harness.traces.ledger import make_ledger
from jaxmeter.harness.traces.programs import CONTROL, TRANSFER, Programs, list_programs
from jaxmeter.harness.traces.timeline import read_timeline
from jaxmeter.harness.traces.xplane import CaptureError, Space, Value, open_capture


def find_median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return median(values) if values else None


def find_step_s(summary: TraceSummary) -> float | None:
    """Return the median wall time of the traced steps; None where there is no step."""
    return find_median(summary.traced_s)


def find_busy_s(device: TracedDevice | None) -> float | None:
    """Return the median busy time of a device's steps; None where it has none."""
    return None if device is None else find_median(device.busy_s)


def find_busy_share(summary: TraceSummary) -> float | None:
    """Return the share of the traced steps' time in which the busiest device is busy; None where it is unknown."""
    device = summary.busiest
    total_s = 0.0 if device is None else sum(list_step_times(summary, device))
    return sum(device.busy_s) / total_s if device is not None and device.busy_s and total_s > 0 else None


def list_step_times(summary: TraceSummary, device: TracedDevice) -> Sequence[float]:
    """Return the wall times of a device's traced steps: its own, which follow each other, or those that all share."""
    if count_device_steps(summary) != len(summary.traced_s):
        return summary.traced_s
    first = sum(len(earlier.busy_s) for earlier in summary.devices[: summary.devices.index(device)])
    return summary.traced_s[first : first + len(device.busy_s)]


def find_busy_per_step(summary: TraceSummary) -> float | None:
    """Return the mean busy time of a step of one device; None where there is no step."""
    count = count_device_steps(summary)
    return sum(sum(device.busy_s) for device in summary.devices) / count if count else None


def describe_steps(summary: TraceSummary) -> str:
    """Return what a step is, such as `step annotations named train`."""
    name = f" named {summary.step_name}" if summary.step_name else ""
    return f"{summary.steps_from}{name}" + (", each until the next begins" if summary.until_next else "")


def find_slowest(summaries: Sequence[TraceSummary]) -> int:
    """Return the place of the host with the longest typical step, among the healthy ones if there are any."""

    def key(place: int) -> tuple[bool, float, float]:
        summary = summaries[place]
        return summary.is_healthy, find_step_s(summary) or 0.0, find_busy_s(summary.busiest) or 0.0

    return max(range(len(summaries)), key=key)


def find_rate(operation: TracedOperation, amount: float | None) -> float | None:
    """Return FLOP/s or B/s while the operation ran; None where nobody can say.

    Operations that overlap share the device, so the rate is a lower bound there. A loop's time is that of what it runs,
    and what starts a copy returns before the bytes are moved.

    Args:
      amount: FLOPs or bytes of one execution.
    """
    is_apart = operation.category == CONTROL or operation.opcode.endswith("-start")
    if not amount or is_apart or operation.total_s <= 0:
        return None
    return amount * operation.count / operation.total_s


def count_device_steps(summary: TraceSummary) -> int:
    """Return how many pairs of a step and a device a capture has: devices share their steps, or have their own."""
    return sum(len(device.busy_s) for device in summary.devices)


MOST_OPERATIONS = 20
"""That a summary names; the rest is one sum."""

MOST_SOURCES = 20

MOST_RECORDED = 8
"""Operations and lines that a record keeps; the capture next to it has all."""

_ROUNDING = 1e-9
_HALVED = "AMD"
"""A vendor whose planes state half of the bandwidth: 2.66 TB/s of an MI300X, whose data sheet has 5.3."""

_MODULE = re.compile(r"\s*HloModule ([^\s,]+)")
_HIDDEN = re.compile(r"^/?~+/")
_INSTALLED = re.compile(r"^(.*/)?(site|dist)-packages/")

NEGLIGIBLE = 0.01
"""Share of the busy time that operations without a known cost may have where a step still has one."""


def summarise_capture(
    path: Path,
    texts: Iterable[str] = (),
    *,
    has_device: bool | None = None,
    steps: int | None = None,
    step_name: str | None = None,
    most_operations: int = MOST_OPERATIONS,
    watch: Callable[[Space], None] | None = None,
) -> TraceSummary:
    """Return what a capture shows. A damaged or empty one has a finding that says so.

    Args:
      path: `*.xplane.pb`.
      texts: HLO of programs that ran, in addition to what the capture holds.
      has_device: Whether it ought to hold a device of its own; None where that is not known.
      steps: How many annotated steps it ought to hold; None where that is not known.
      step_name: As for `find_steps`.
      watch: Called with the opened capture, whose `read_bytes` grows while events are read.
    Raises:
      OSError: It cannot be read.
    """
    try:
        with open_capture(path) as space:
            if watch is not None:
                watch(space)
            return summarise(
                space,
                texts,
                has_device=has_device,
                steps=steps,
                step_name=step_name,
                most_operations=most_operations,
            )
    except CaptureError as error:
        finding = Finding(problem=Problem.DAMAGED, text=str(error), remedy="capture again, and copy the file whole")
        return TraceSummary(platform="", steps_from="", findings=(finding,))


def summarise(
    space: Space,
    texts: Iterable[str] = (),
    *,
    has_device: bool | None = None,
    steps: int | None = None,
    step_name: str | None = None,
    most_operations: int = MOST_OPERATIONS,
) -> TraceSummary:
    """Return what an opened capture shows.

    Raises:
      CaptureError: It is damaged.
    """
    texts = tuple(texts)
    return summarise_analysis(
        analyse_space(space, texts, step_name),
        modules=frozenset(match[1] for text in texts if (match := _MODULE.match(text))),
        has_device=has_device,
        steps=steps,
        most_operations=most_operations,
    )


def analyse_space(space: Space, texts: Iterable[str] = (), step_name: str | None = None) -> Analysis:
    """Return all that an opened capture shows.

    Raises:
      CaptureError: It is damaged.
    """
    programs = Programs(list_programs(space), texts)
    return analyse(read_timeline(space, programs), programs, step_name)


def summarise_analysis(
    analysis: Analysis,
    *,
    modules: frozenset[str] = frozenset(),
    has_device: bool | None = None,
    steps: int | None = None,
    most_operations: int = MOST_OPERATIONS,
) -> TraceSummary:
    """Return the table that a run keeps of what a capture shows. One of an unhealthy capture has no numbers.

    Args:
      modules: Names of programs of which one ought to have run; empty where that is not known.
    """
    timeline = analysis.timeline
    stats: Mapping[str, Value] = timeline.device_stats[0] if timeline.device_stats else {}
    without_numbers = TraceSummary(
        platform="" if timeline.layout is None else timeline.layout.platform,
        steps_from=analysis.steps.source,
        findings=tuple(find_problems(analysis, modules=modules, has_device=has_device, steps=steps)),
        events=timeline.events,
        device_kind=str(stats.get("device_type_string", stats.get("gpu_device_name", ""))),
    )
    if not without_numbers.is_healthy:
        return without_numbers
    ledger = make_ledger(analysis)
    delays = timeline.launch_delays
    busy = sum(operation.share_ps for operation in analysis.operations)
    operations = _merge(analysis.operations)
    named = operations[:most_operations]
    is_annotated = analysis.steps.source == ANNOTATIONS
    return msgspec.structs.replace(
        without_numbers,
        step_name=analysis.steps.steps[0].name if is_annotated else "",
        other_steps=dict(analysis.steps.others),
        until_next=analysis.steps.until_next,
        traced_s=_seconds(analysis.wall),
        devices=tuple(_summarise_devices(analysis)),
        operations=tuple(_summarise_operation(operation, busy) for operation in named),
        executions=sum(operation.count for operation in analysis.operations),
        outside_share=analysis.outside_share,
        between_share=analysis.between_share,
        product_formats=tuple(sorted({name for operation in analysis.operations for name in operation.about.formats})),
        others=len(operations) - len(named),
        others_share=sum(operation.share_ps for operation in operations[most_operations:]) / busy if busy else 0.0,
        by_category=_share_by(analysis, busy, lambda operation: operation.about.category),
        by_source=_shorten(_share_by(analysis, busy, lambda operation: operation.about.source)),
        ledger={} if ledger is None else dict(ledger.shares),
        hidden=() if ledger is None else ledger.hidden,
        ledger_device="" if ledger is None else ledger.device,
        launch_delay_s=float(median(delays.tolist())) / PS_PER_S
        if len(delays) and not timeline.before_launch
        else None,
        flops=_total_cost(
            analysis, busy, lambda item: 0.0 if item.about.category == TRANSFER else item.about.cost.flops
        ),
        bytes=_total_cost(analysis, busy, lambda operation: operation.about.cost.bytes),
        peak_flops=_scaled(stats.get("peak_teraflops_per_second"), 1e12),
        peak_bytes_per_s=_scaled(stats.get("peak_hbm_bw_gigabytes_per_second"), 1e9)
        or (None if stats.get("device_vendor") == _HALVED else _scaled(stats.get("memory_bandwidth"), 1.0)),
    )


def shorten_summary(summary: TraceSummary) -> TraceSummary:
    """Return a summary as a record keeps it: fewer operations, numbers of four digits, lines without hidden folders."""
    kept = summary.operations[:MOST_RECORDED]
    sources = {source: summary.by_source[source] for source in list(filter(None, summary.by_source))[:MOST_RECORDED]}
    rest = sum(summary.by_source.values()) - sum(sources.values())
    shortened = msgspec.structs.replace(
        summary,
        operations=tuple(
            msgspec.structs.replace(operation, source=_without_folder(operation.source), jax_name="")
            for operation in kept
        ),
        others=summary.others + len(summary.operations) - len(kept),
        others_share=summary.others_share + sum(operation.share for operation in summary.operations[MOST_RECORDED:]),
        by_source={_without_folder(source): share for source, share in sources.items()}
        | ({"": rest} if rest > _ROUNDING else {}),
    )
    return msgspec.convert(_round(msgspec.to_builtins(shortened)), TraceSummary)


def _without_folder(source: str) -> str:
    """A line without what `captures.py` has overwritten of its path; of an installed suite, from its package on."""
    return _INSTALLED.sub("", _HIDDEN.sub("", source))


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _round(item) for name, item in value.items()}
    return [_round(item) for item in value] if isinstance(value, list) else value


def _summarise_devices(analysis: Analysis) -> Iterator[TracedDevice]:
    for place, device in enumerate(analysis.devices):
        own = [step.device in (None, place) for step in analysis.steps.steps]

        def kept(times: Times, own: list[bool] = own) -> tuple[float, ...]:
            return tuple(time for time, is_own in zip(_seconds(times), own, strict=True) if is_own)

        waiting = device.waiting_in_collectives
        yield TracedDevice(
            name=device.name,
            busy_s=kept(device.busy),
            program_s=kept(device.program) if len(device.program) else (),
            collective_s=kept(device.collective) if device.collective.any() else (),
            waiting_s=kept(waiting) if waiting is not None and device.collective.any() else None,
            transfer_s=kept(device.transfer) if device.transfer.any() else (),
        )


def _merge(operations: Iterable[OperationTime]) -> list[OperationTime]:
    """Return one entry for operations of equal name, line and program name: a program may be compiled several times."""
    alike: dict[tuple[str, ...], list[OperationTime]] = defaultdict(list)
    for operation in operations:
        about = operation.about
        alike[operation.kind.module, operation.kind.name, about.opcode, about.category, about.source].append(operation)
    merged = (those[0] if len(those) == 1 else _add_up(those) for those in alike.values())
    return sorted(merged, key=lambda operation: -operation.share_ps)


def _add_up(those: Sequence[OperationTime]) -> OperationTime:
    count = sum(operation.count for operation in those)

    def mean(costs: Sequence[float | None]) -> float | None:
        known = [cost * operation.count for cost, operation in zip(costs, those, strict=True) if cost is not None]
        return sum(known) / count if len(known) == len(those) else None

    cost = replace(
        those[0].about.cost,
        flops=mean([operation.about.cost.flops for operation in those]),
        bytes=mean([operation.about.cost.bytes for operation in those]),
    )
    devices = dict.fromkeys(name for operation in those for name in operation.by_device)
    return replace(
        those[0],
        about=replace(those[0].about, cost=cost),
        count=count,
        total_ps=sum(operation.total_ps for operation in those),
        self_ps=sum(operation.self_ps for operation in those),
        share_ps=sum(operation.share_ps for operation in those),
        by_device={name: sum(operation.by_device.get(name, 0.0) for operation in those) for name in devices},
    )


def _summarise_operation(operation: OperationTime, busy: float) -> TracedOperation:
    return TracedOperation(
        name=operation.kind.name,
        module=operation.kind.module,
        opcode=operation.about.opcode,
        category=operation.about.category,
        source=operation.about.source,
        jax_name=operation.about.jax_name,
        count=operation.count,
        total_s=operation.total_ps / PS_PER_S,
        self_s=operation.self_ps / PS_PER_S,
        share=operation.share_ps / busy if busy else 0.0,
        flops=operation.about.cost.flops,
        bytes=operation.about.cost.bytes,
    )


def _share_by(analysis: Analysis, busy: float, key: Callable[[OperationTime], str]) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    for operation in analysis.operations:
        shares[key(operation)] += operation.share_ps / busy if busy else 0.0
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _shorten(shares: dict[str, float]) -> dict[str, float]:
    """The largest, and all others under the empty text."""
    named = [source for source in shares if source][:MOST_SOURCES]
    rest = sum(share for source, share in shares.items() if source not in named)
    return {**{source: shares[source] for source in named}, **({"": rest} if rest else {})}


def _total_cost(analysis: Analysis, busy: float, find: Callable[[OperationTime], float | None]) -> float | None:
    """Of one step and one device; None where operations that take time have no known cost."""
    steps = len(analysis.wall)
    # A loop's own operations are counted by themselves.
    known = [(operation, find(operation)) for operation in analysis.operations if operation.about.category != CONTROL]
    unknown = sum(operation.share_ps for operation, cost in known if cost is None)
    if not steps or not busy or unknown > NEGLIGIBLE * busy:
        return None
    # A step that devices share has the work of all of them; one by a device's own clock has that device's alone.
    shares = len(analysis.devices) if all(step.device is None for step in analysis.steps.steps) else 1
    return sum(operation.count * cost for operation, cost in known if cost is not None) / (steps * shares)


def _seconds(times: Times) -> tuple[float, ...]:
    return tuple(time / PS_PER_S for time in times.tolist())


def _scaled(value: Value | None, scale: float) -> float | None:
    return float(value) * scale if isinstance(value, int | float) and value > 0 else None
