"""What profiler captures show, as documents: one capture, the captures of a run, and what differs between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Item, Part, Tone, make_table, say
from jaxmeter.harness.metrics.write import NO_LINE
from jaxmeter.harness.record.trace_summary import Finding, TracedDevice, TraceSummary
from jaxmeter.harness.record.wording import counted
from jaxmeter.harness.traces.analysis import MODULE_RUNS
from jaxmeter.harness.traces.bound import HIGHEST_SHARE, Bound, Rate, Roofs, describe_bound, find_rates
from jaxmeter.harness.traces.captures import Capture
from jaxmeter.harness.traces.growth import Grown, Presence, find_grown, list_unlike
from jaxmeter.harness.traces.ledger import GROUPS
from jaxmeter.harness.traces.summary import (
    count_device_steps,
    describe_steps,
    find_busy_per_step,
    find_busy_s,
    find_busy_share,
    find_rate,
    find_slowest,
    find_step_s,
)

from ..text import hide_home, shorten_source

BAR_COLUMNS = 40
"""Of a bar that is the whole step."""

SMALLEST_OUTSIDE = 0.05
"""Share of the time between steps, or of the work outside of them, that a reader is told of."""

SMALLEST_PART = 0.0005
"""Of the ledger, listed below its group."""

MOST_DEVICES = 8
"""Whose times are listed; the busiest come first."""

MOST_OTHERS = 5
"""Other sessions, and names of other steps, that are named; all are counted."""


NO_FINDING = (
    "Two captures alone confirm no difference: each was traced once, and tracing slows programs down. "
    "`jaxmeter compare` decides whether a program became slower."
)


@dataclass(frozen=True)
class Shown:
    """One capture with what it shows; the summary of an unhealthy one gives no numbers."""

    capture: Capture
    summary: TraceSummary
    bound: Bound | None
    roofs: Roofs = field(default_factory=Roofs)

    @property
    def label(self) -> str:
        """Case and variant of a run, else the file."""
        capture = self.capture
        return f"{capture.case} {capture.variant}" if capture.case else hide_home(str(capture.path))

    @property
    def rates(self) -> Sequence[Rate]:
        """Of the busy device; none of an unhealthy capture."""
        return find_rates(self.summary, self.roofs) if self.summary.is_healthy else ()

    @property
    def objection(self) -> str:
        """Why the capture is unhealthy; empty where it is not."""
        return next((finding.text for finding in self.summary.findings if finding.is_fatal), "")


def describe_capture(shown: Shown, others: Sequence[str] = (), hosts: Sequence[Shown] = ()) -> Document:
    """Return what a capture shows.

    Args:
      others: Names of sessions of the same folder that were not taken.
      hosts: All hosts of the session, where there are several.
    """
    summary = shown.summary
    parts = [Part(items=(*_describe_traced(summary), *_name_others(others)))]
    if len(hosts) > 1:
        parts.append(_compare_hosts(hosts, shown))
    if summary.is_healthy:
        parts += [
            *_show_ledger(summary),
            *_show_times(summary),
            *_show_rates(shown),
            *_show_operations(summary),
            *_show_sources(summary),
        ]
    else:
        parts.append(say("This capture cannot be relied on, so it gives no numbers.", tone=Tone.BAD))
    parts += _list_findings("Findings", summary.findings)
    if summary.is_healthy and (sentence := describe_bound(shown.bound)):
        parts.append(say(sentence))
    return Document(shown.label, tuple(parts))


def describe_captures(shown: Sequence[Shown]) -> Document:
    """Return a row for each capture of a run."""
    rows = []
    for capture in shown:
        summary, bound = capture.summary, capture.bound
        if summary.is_healthy:
            words = "" if bound is None else f"{bound.kind} {numbers.percent(bound.share)}"
            times = numbers.time(find_busy_s(summary.busiest)), numbers.percent(find_busy_share(summary))
        else:
            words, times = f"unhealthy: {capture.objection}", (numbers.MISSING, numbers.MISSING)
        rows.append((capture.label, *times, words))
    table = make_table(("Case, variant", *_number("busy in a step", "share"), "bound by"), rows)
    note = "Shares are of the traced step. --case and --variant choose a capture, which is shown in full."
    return Document(parts=(Part(tables=(table,), notes=(note,)),))


def describe_difference(before: Shown, after: Shown, most: int) -> Document:
    """Return what differs between two captures: at most so many operations."""
    sides = (("A", before), ("B", after))
    parts = [
        Part(f"{name}: {capture.label}", items=tuple(_describe_traced(capture.summary))) for name, capture in sides
    ]
    unhealthy = [(name, capture) for name, capture in sides if not capture.summary.is_healthy]
    if unhealthy:
        parts.append(say("A capture cannot be relied on, so nothing is compared.", tone=Tone.BAD))
    else:
        if unlike := list_unlike(before.summary, after.summary):
            title = "The captures are unlike: a difference may have another cause than the program"
            parts.append(say(*unlike, tone=Tone.WARN, title=title))
        parts += _compare_ledgers(before.summary, after.summary)
        parts.append(_show_grown(before.summary, after.summary, most))
    for name, capture in unhealthy or sides:
        parts += _list_findings(f"Findings of {name}", capture.summary.findings)
    return Document(parts=(*parts, *(() if unhealthy else (Part(items=(Item(NO_FINDING),)),))))


def _number(*titles: str) -> Iterator[Column]:
    yield from (Column(title, numeric=True) for title in titles)


# One capture


def _describe_traced(summary: TraceSummary) -> Iterator[Item]:
    if not summary.platform:
        return
    kind = " ".join(filter(None, (summary.platform, summary.device_kind)))
    devices = len(summary.devices)
    has = f"{counted(devices, 'device')} · " if devices else ""
    yield Item(f"{kind} · {has}{numbers.count(summary.events)} events")
    count = len(summary.traced_s)
    if count:
        has_own = devices > 1 and count_device_steps(summary) == count
        steps = f"{counted(count // devices, 'traced step')} a device" if has_own else counted(count, "traced step")
        yield Item(f"{steps}: {describe_steps(summary)}")
    if summary.other_steps:
        known = sorted(summary.other_steps.items(), key=lambda item: (-item[1], item[0]))
        others = ", ".join(
            f"{name}{' of other threads' if name == summary.step_name else ''} ({numbers.count(count)})"
            for name, count in known[:MOST_OTHERS]
        )
        rest = f" and {counted(len(known) - MOST_OTHERS, 'more name')}" if len(known) > MOST_OTHERS else ""
        hint = "; --step NAME chooses" if summary.step_name and summary.other_steps.keys() - {summary.step_name} else ""
        yield Item(f"other annotated steps: {others}{rest}{hint}", tone=Tone.MUTED)
    for place, share, of in (
        ("between", summary.between_share, "the time that they span"),
        ("outside", summary.outside_share, "the devices' busy time"),
    ):
        if share >= SMALLEST_OUTSIDE:
            yield Item(f"{place} the steps: {numbers.percent(share)} of {of}", tone=Tone.WARN)


def _name_others(others: Sequence[str]) -> Iterator[Item]:
    if others:
        named = ", ".join(others[:MOST_OTHERS]) + (", …" if len(others) > MOST_OTHERS else "")
        words = f"{counted(len(others), 'other session')} in this folder (--session NAME): {named}"
        yield Item(words, tone=Tone.MUTED)


def _compare_hosts(hosts: Sequence[Shown], chosen: Shown) -> Part:
    slowest = hosts[find_slowest([host.summary for host in hosts])]
    rows = [
        (
            host.capture.host,
            numbers.percent(find_busy_share(host.summary)),
            numbers.time(find_step_s(host.summary)),
            Cell("slowest" if host is slowest else "")
            if host.summary.is_healthy
            else Cell(f"unhealthy: {host.objection}", tone=Tone.BAD),
        )
        for host in hosts
    ]
    table = make_table(("Host", *_number("busy share", "traced step"), ""), rows)
    return Part(tables=(table,), notes=(f"Host {chosen.capture.host} follows; --host NAME shows another.",))


def _show_ledger(summary: TraceSummary) -> Iterator[Part]:
    if not summary.ledger:
        return
    rows = []
    for group, parts in GROUPS.items():
        known = {part: summary.ledger[part] for part in parts if part in summary.ledger}
        if known:
            rows.append(_draw_share(group, sum(known.values())))
        for part, share in known.items():
            if share >= SMALLEST_PART and part != group:
                rows.append(_draw_share(f"  {part}", share, Tone.MUTED))
    notes = []
    if summary.hidden:
        what = "these steps" if summary.steps_from == MODULE_RUNS else f"{summary.platform} captures"
        hint = "; annotate steps to see them" if summary.steps_from == MODULE_RUNS else ""
        notes.append(f"{what} cannot show: {', '.join(summary.hidden)}{hint}")
    title = f"Wall time of the traced step, {_name_device(summary.ledger_device)}"
    yield Part(title, (make_table(("", *_number(""), ""), rows),), tuple(notes))


def _draw_share(name: str, share: float, tone: Tone = Tone.PLAIN) -> tuple[Cell, ...]:
    bar = "■" * round(BAR_COLUMNS * min(share, 1.0))
    return Cell(name, tone=tone), Cell(numbers.percent(share), tone=tone), Cell(bar, tone=tone)


def _show_times(summary: TraceSummary) -> Iterator[Part]:
    if not summary.traced_s:
        return
    busiest = sorted(summary.devices, key=lambda device: -sum(device.busy_s))
    times: list[tuple[str, Sequence[float]]] = [("wall time, traced", summary.traced_s)]
    times += [
        (f"{_name_device(device.name)} {name}", own)
        for device in busiest[:MOST_DEVICES]
        for name, own in _list_times(device)
    ]
    rows = [(name, *map(numbers.time, (median(own), min(own), max(own)))) for name, own in times if own]
    if summary.launch_delay_s is not None:
        rows.append(("kernel launch to start", numbers.time(summary.launch_delay_s), "", ""))
    notes = [f"+ {counted(len(busiest) - MOST_DEVICES, 'device')} less busy"] if len(busiest) > MOST_DEVICES else []
    table = make_table(("", *_number("median", "lowest", "highest")), rows)
    yield Part("Times of the traced step", (table,), tuple(notes))


def _list_times(device: TracedDevice) -> Iterator[tuple[str, Sequence[float]]]:
    yield "busy", device.busy_s
    yield "in collectives", device.collective_s
    yield "waiting in collectives", device.waiting_s or ()
    yield "in transfers", device.transfer_s


def _name_device(name: str) -> str:
    """A GPU's or TPU's as its capture calls it; processors have numbers only."""
    return f"device {name}" if name.isdecimal() else name


def _show_rates(shown: Shown) -> Iterator[Part]:
    if all(rate.achieved is None for rate in shown.rates):
        return
    rows = [
        (
            "memory" if rate.unit == "B/s" else " ".join(filter(None, ("arithmetic", rate.form))),
            *(numbers.amount(value, rate.unit) for value in (rate.achieved, rate.peak)),
            numbers.percent(rate.share),
        )
        for rate in shown.rates
    ]
    if shown.roofs.source:
        notes = [f"peaks: {shown.roofs.source}"]
    elif shown.summary.platform == "cpu":
        notes = ["a capture does not contain a CPU's peaks; --peaks RUN uses those of a run on that machine"]
    else:
        notes = ["the peaks of this device are not known; --peaks RUN takes those of a run"]
    if any((rate.share or 0.0) > HIGHEST_SHARE for rate in shown.rates):
        notes.append("above its peak: the data stays in a cache, or a cost or the peak is wrong")
    table = make_table(("", *_number("achieved", "peak", "share")), rows)
    yield Part("Rates of the busy device", (table,), tuple(notes))


def _show_operations(summary: TraceSummary) -> Iterator[Part]:
    if not summary.operations:
        return
    rows = [
        (
            operation.name,
            numbers.percent(operation.share),
            numbers.count(operation.count),
            numbers.time(operation.total_s / operation.count if operation.count else None),
            operation.opcode,
            shorten_source(operation.source),
            *(numbers.amount(find_rate(operation, count), "") for count in (operation.flops, operation.bytes)),
        )
        for operation in summary.operations
    ]
    if summary.others:
        others = f"{numbers.count(summary.others)} others"
        rows.append((others, numbers.percent(summary.others_share), "", "", "", "", "", ""))
    categories = (f"{name} {numbers.percent(share)}" for name, share in summary.by_category.items())
    table = make_table(("name", *_number("share", "count", "mean"), "opcode", "line", *_number("FLOP/s", "B/s")), rows)
    yield Part("Operations, by share of the busy time", (table,), (", ".join(categories),))


def _show_sources(summary: TraceSummary) -> Iterator[Part]:
    named = {source: share for source, share in summary.by_source.items() if source}
    if not named:
        if summary.by_source:
            yield say(f"Lines of code: {NO_LINE}", tone=Tone.MUTED)
        return
    shown = dict(list(named.items())[: max(len(summary.operations), 1)])
    rows = [(numbers.percent(share), shorten_source(source)) for source, share in shown.items()]
    if len(shown) < len(summary.by_source):
        rest = sum(summary.by_source.values()) - sum(shown.values())
        rows.append((numbers.percent(max(rest, 0.0)), "other lines, and operations without a line"))
    yield Part("Lines of code, by share of the busy time", (make_table((*_number("share"), "line"), rows),))


def _list_findings(title: str, findings: Sequence[Finding]) -> Iterator[Part]:
    if findings:
        items = (
            item
            for finding in findings
            for item in (
                Item(finding.text, tone=Tone.BAD if finding.is_fatal else Tone.WARN),
                Item(finding.remedy),
            )
            if item.text
        )
        yield Part(f"{title} ({len(findings)})", items=tuple(items))


# Two captures


def _compare_ledgers(before: TraceSummary, after: TraceSummary) -> Iterator[Part]:
    if not (before.ledger and after.ledger):
        return
    rows = []
    for group, parts in GROUPS.items():
        a, b = (sum(ledger.get(part, 0.0) for part in parts) for ledger in (before.ledger, after.ledger))
        points = numbers.percent(b - a).partition(numbers.SPACE)[0]
        rows.append((group, numbers.percent(a), numbers.percent(b), _sign(points, b - a)))
    yield Part("Wall time of the traced step", (make_table(("", *_number("A", "B", "points")), rows),))


def _show_grown(before: TraceSummary, after: TraceSummary, most: int) -> Part:
    grown = find_grown(before, after)
    kept = set(map(id, sorted(grown, key=lambda operation: -abs(operation.difference_s))[:most]))
    rows = [
        (
            operation.name,
            *_write_times(operation.before_s, operation.after_s),
            operation.opcode,
            shorten_source(operation.source),
            _describe_join(operation),
        )
        for operation in grown
        if id(operation) in kept
    ]
    others = [operation for operation in grown if id(operation) not in kept]
    if others:
        times = ([getattr(operation, name) for operation in others] for name in ("before_s", "after_s"))
        sums = (sum(filter(None, known)) if any(known) else None for known in times)
        rows.append((f"{numbers.count(len(others))} others", *_write_times(*sums), "", "", ""))
    rows.append(("busy time", *_write_times(find_busy_per_step(before), find_busy_per_step(after)), "", "", ""))
    table = make_table(("name", *_number("difference", "A", "B"), "opcode", "line", ""), rows)
    return Part("Operations, by mean time in a step of one device", (table,))


def _write_times(before_s: float | None, after_s: float | None) -> tuple[str, str, str]:
    difference = (after_s or 0.0) - (before_s or 0.0)
    return _sign(numbers.difference(difference), difference), numbers.time(before_s), numbers.time(after_s)


def _describe_join(operation: Grown) -> str:
    if operation.presence is not Presence.BOTH:
        return {Presence.NEW: "new", Presence.GONE: "gone", Presence.UNNAMED: "?"}[operation.presence]
    return f"was {operation.earlier_name}" if operation.earlier_name else ""


def _sign(text: str, value: float) -> str:
    return f"+{text}" if value > 0 else text
