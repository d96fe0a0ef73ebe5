"""Writes what profiler captures show for a terminal, at most 100 columns, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from jaxmeter.harness.metrics.details_text import NO_LINE
from jaxmeter.harness.record.trace_summary import Finding, TracedDevice, TraceSummary
from jaxmeter.harness.traces.analysis import MODULE_RUNS
from jaxmeter.harness.traces.bound import Bound, describe_bound
from jaxmeter.harness.traces.captures import Capture
from jaxmeter.harness.traces.growth import Grown, Presence, find_grown, list_unlike
from jaxmeter.harness.traces.ledger import GROUPS
from jaxmeter.harness.traces.roofline import HIGHEST_SHARE, Rate, Roofs, find_rates
from jaxmeter.harness.traces.typical import (
    count_device_steps,
    describe_steps,
    find_busy_per_step,
    find_busy_s,
    find_busy_share,
    find_rate,
    find_slowest,
    find_step_s,
)
from jaxmeter.reporting import numbers
from jaxmeter.reporting.render.console import WIDEST, print_lines
from jaxmeter.reporting.text import counted, hide_home, visible

BAR_COLUMNS = 50
"""Of a bar that is the whole step."""

SMALLEST_OUTSIDE = 0.05
"""Share of the time between steps, or of the work outside of them, that a reader is told of."""

SMALLEST_PART = 0.0005
"""Of the ledger, listed below its group."""

MOST_DEVICES = 8
"""Whose times are listed; the busiest come first."""

MOST_OTHERS = 5
"""Other sessions, and names of other steps, that are named; all are counted."""

GAP = 2
"""Columns between those of a table."""

LEAST_FIRST = 8
"""Columns of a first column, in which numbers are at the right."""

LEAST_CUT = 12
"""Columns that are left of a text that is cut."""

NAMING = (("name", "left"), ("opcode", "left"), ("line", "left"))
"""Columns that say which operation is meant."""

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


def show(one: Shown, console: Console, *, others: Sequence[str] = (), hosts: Sequence[Shown] = ()) -> None:
    """Print what a capture shows.

    Args:
      others: Names of sessions of the same folder that were not taken.
      hosts: All hosts of the session, where there are several.
    """
    print_lines(_write_capture(one, others, hosts, min(console.width, WIDEST)), console)


def show_list(shown: Sequence[Shown], console: Console) -> None:
    """Print a line for each capture of a run."""
    print_lines(_write_list(shown), console)


def show_difference(before: Shown, after: Shown, most: int, console: Console) -> None:
    """Print what differs between two captures."""
    print_lines(_write_difference(before, after, most, min(console.width, WIDEST)), console)


def encode(shown: Sequence[Shown], others: Sequence[str]) -> bytes:
    """Return captures as JSON."""
    return _to_json({"captures": [_describe(one) for one in shown], "other_sessions": list(map(visible, others))})


def encode_difference(before: Shown, after: Shown) -> bytes:
    """Return two captures, and the operations that differ, as JSON."""
    grown = find_grown(before.summary, after.summary)
    rows = [{**msgspec.to_builtins(one), "difference_s": one.difference_s} for one in grown]
    unlike = list_unlike(before.summary, after.summary)
    return _to_json({"before": _describe(before), "after": _describe(after), "unlike": unlike, "grown": rows})


def _to_json(content: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _describe(one: Shown) -> dict[str, Any]:
    capture = one.capture
    place = {name: getattr(capture, name) for name in ("host", "session", "case", "variant", "platform")}
    return {
        "path": visible(str(capture.path)),
        **{name: visible(text) for name, text in place.items()},
        "is_healthy": one.summary.is_healthy,
        "summary": one.summary,
        "bound": one.bound,
        "roofs": one.roofs,
        "rates": [{**msgspec.to_builtins(rate), "share": rate.share} for rate in _find_rates(one)],
    }


def _find_rates(one: Shown) -> Sequence[Rate]:
    return find_rates(one.summary, one.roofs) if one.summary.is_healthy else ()


# One capture


def _write_capture(one: Shown, others: Sequence[str], hosts: Sequence[Shown], width: int) -> Iterator[Text | Grid]:
    summary = one.summary
    yield _make_text(_cut_front(one.label, width), "bold")
    yield from _describe_traced(summary)
    if others:
        named = ", ".join(others[:MOST_OTHERS]) + (", …" if len(others) > MOST_OTHERS else "")
        yield _make_text(f"  {counted(len(others), 'other session')} in this folder (--session NAME): {named}", "dim")
    if len(hosts) > 1:
        yield from _write_hosts(hosts, one)
    if not summary.is_healthy:
        yield from _write_unhealthy(summary)
        return
    yield from _write_ledger(summary)
    yield from _write_times(summary)
    yield from _write_rates(one)
    yield from _write_operations(summary, width)
    yield from _write_sources(summary, width)
    yield from _write_findings("Findings", summary.findings)
    if sentence := describe_bound(one.bound):
        yield Text()
        yield _make_text(sentence, "bold")


def _describe_traced(summary: TraceSummary) -> Iterator[Text]:
    if not summary.platform:
        return
    kind = " ".join(filter(None, (summary.platform, summary.device_kind)))
    devices = len(summary.devices)
    has = f"{counted(devices, 'device')} · " if devices else ""
    yield _make_text(f"  {kind} · {has}{numbers.count(summary.events)} events")
    count = len(summary.traced_s)
    if count:
        has_own = devices > 1 and count_device_steps(summary) == count
        steps = f"{counted(count // devices, 'traced step')} a device" if has_own else counted(count, "traced step")
        yield _make_text(f"  {steps}: {describe_steps(summary)}")
    if summary.other_steps:
        known = sorted(summary.other_steps.items(), key=lambda item: (-item[1], item[0]))
        others = ", ".join(
            f"{name}{' of other threads' if name == summary.step_name else ''} ({numbers.count(count)})"
            for name, count in known[:MOST_OTHERS]
        )
        rest = f" and {counted(len(known) - MOST_OTHERS, 'more name')}" if len(known) > MOST_OTHERS else ""
        hint = "; --step NAME chooses" if summary.step_name and summary.other_steps.keys() - {summary.step_name} else ""
        yield _make_text(f"  other annotated steps: {others}{rest}{hint}", "dim")
    if summary.between_share >= SMALLEST_OUTSIDE:
        yield _make_text(
            f"  between the steps: {numbers.percent(summary.between_share)} of the time that they span", "yellow"
        )
    if summary.outside_share >= SMALLEST_OUTSIDE:
        yield _make_text(
            f"  outside the steps: {numbers.percent(summary.outside_share)} of the devices' busy time", "yellow"
        )


def _write_hosts(hosts: Sequence[Shown], chosen: Shown) -> Iterator[Text | Grid]:
    grid = _make_grid(("Host", "left"), ("busy share", "right"), ("traced step", "right"), ("", "left"))
    unhealthy: list[str] = []
    slowest = hosts[find_slowest([host.summary for host in hosts])]
    for host in hosts:
        summary = host.summary
        words = "slowest" if host is slowest else ""
        if not summary.is_healthy:
            words = "unhealthy"
            unhealthy.append(f"  {host.capture.host}: {next(one.text for one in summary.findings if one.is_fatal)}")
        share, step = numbers.percent(find_busy_share(summary)), numbers.time(find_step_s(summary))
        grid.add_row(_make_text(f"  {host.capture.host}"), share, step, _make_text(words))
    yield Text()
    yield grid
    yield from (_make_text(line, "red") for line in unhealthy)
    yield _make_text(f"Host {chosen.capture.host} follows; --host NAME shows another.", "dim")


def _write_unhealthy(summary: TraceSummary) -> Iterator[Text]:
    yield Text("This capture cannot be relied on, so it gives no numbers.", "bold red")
    yield from _write_findings("Findings", summary.findings)


def _write_ledger(summary: TraceSummary) -> Iterator[Text | Grid]:
    if not summary.ledger:
        return
    yield Text()
    yield _make_text(f"Wall time of the traced step, {_name_device(summary.ledger_device)}", "bold")
    for group, parts in GROUPS.items():
        known = {part: summary.ledger[part] for part in parts if part in summary.ledger}
        if not known:
            continue
        yield _draw_share(group, sum(known.values()))
        for part, share in known.items():
            if share >= SMALLEST_PART and part != group:
                yield _draw_share(f"  {part}", share, style="dim")
    if summary.hidden:
        what = "these steps" if summary.steps_from == MODULE_RUNS else f"{summary.platform} captures"
        hint = "; annotate steps to see them" if summary.steps_from == MODULE_RUNS else ""
        yield _make_text(f"  {what} cannot show: {', '.join(summary.hidden)}{hint}", "dim")


def _draw_share(name: str, share: float, *, style: str = "") -> Text:
    bar = "■" * round(BAR_COLUMNS * min(share, 1.0))
    return Text(f"  {name:<21}{numbers.percent(share):>7}  {bar}".rstrip(), style, no_wrap=True)


def _write_times(summary: TraceSummary) -> Iterator[Text | Grid]:
    if not summary.traced_s:
        return
    title = "Times of the traced step"
    grid = _make_grid((title, "left"), ("median", "right"), ("lowest", "right"), ("highest", "right"))
    _add_times(grid, "wall time, traced", summary.traced_s)
    busiest = sorted(summary.devices, key=lambda device: -sum(device.busy_s))
    for device in busiest[:MOST_DEVICES]:
        for name, times in _list_times(device):
            _add_times(grid, f"{_name_device(device.name)} {name}", times)
    if summary.launch_delay_s is not None:
        grid.add_row("  kernel launch to start", numbers.time(summary.launch_delay_s), "", "")
    yield Text()
    yield grid
    if len(busiest) > MOST_DEVICES:
        yield _make_text(f"  + {counted(len(busiest) - MOST_DEVICES, 'device')} less busy", "dim")


def _list_times(device: TracedDevice) -> Iterator[tuple[str, Sequence[float]]]:
    yield "busy", device.busy_s
    yield "in collectives", device.collective_s
    yield "waiting in collectives", device.waiting_s or ()
    yield "in transfers", device.transfer_s


def _name_device(name: str) -> str:
    """A GPU's or TPU's as its capture calls it; processors have numbers only."""
    return f"device {name}" if name.isdecimal() else name


def _add_times(grid: Grid, name: str, times: Sequence[float]) -> None:
    if times:
        grid.add_row(_make_text(f"  {name}"), *map(numbers.time, (median(times), min(times), max(times))))


def _write_rates(one: Shown) -> Iterator[Text | Grid]:
    rates, source = _find_rates(one), one.roofs.source
    if all(rate.achieved is None for rate in rates):
        return
    grid = _make_grid(
        ("Rates of the busy device", "left"), ("achieved", "right"), ("peak", "right"), ("share", "right")
    )
    for rate in rates:
        name = "memory" if rate.unit == "B/s" else " ".join(filter(None, ("arithmetic", rate.form)))
        shown = (numbers.amount(value, rate.unit) for value in (rate.achieved, rate.peak))
        grid.add_row(f"  {name}", *shown, numbers.percent(rate.share))
    yield Text()
    yield grid
    if source:
        yield _make_text(f"  peaks: {source}", "dim")
    elif one.summary.platform == "cpu":
        yield _make_text(
            "  a capture does not contain a CPU's peaks; --peaks RUN uses those of a run on that machine", "dim"
        )
    else:
        yield _make_text("  the peaks of this device are not known; --peaks RUN takes those of a run", "dim")
    if any((rate.share or 0.0) > HIGHEST_SHARE for rate in rates):
        yield _make_text("  above its peak: the data stays in a cache, or a cost or the peak is wrong", "yellow")


def _write_operations(summary: TraceSummary, width: int) -> Iterator[Text | Grid]:
    if not summary.operations:
        return
    rows = [
        (
            numbers.percent(operation.share),
            numbers.count(operation.count),
            numbers.time(operation.total_s / operation.count if operation.count else None),
            operation.name,
            operation.opcode,
            _shorten_source(operation.source),
            *(numbers.amount(find_rate(operation, count), "") for count in (operation.flops, operation.bytes)),
        )
        for operation in summary.operations
    ]
    others = [numbers.percent(summary.others_share), "", "", f"{numbers.count(summary.others)} others"]
    yield Text()
    yield _make_text("Operations, by share of the busy time", "bold")
    yield _make_table(
        (("share", "right"), ("count", "right"), ("mean", "right"), *NAMING, ("FLOP/s", "right"), ("B/s", "right")),
        [*rows, *([others] if summary.others else [])],
        width,
    )
    categories = (f"{name} {numbers.percent(share)}" for name, share in summary.by_category.items())
    yield _make_text(f"  {', '.join(categories)}", "dim")


def _write_sources(summary: TraceSummary, width: int) -> Iterator[Text | Grid]:
    named = {source: share for source, share in summary.by_source.items() if source}
    if not named:
        if summary.by_source:
            yield Text()
            yield _make_text(f"Lines of code: {NO_LINE}", "dim")
        return
    shown = dict(list(named.items())[: max(len(summary.operations), 1)])
    rows = [(numbers.percent(share), _shorten_source(source)) for source, share in shown.items()]
    if len(shown) < len(summary.by_source):
        rest = sum(summary.by_source.values()) - sum(shown.values())
        rows.append((numbers.percent(max(rest, 0.0)), "other lines, and operations without a line"))
    yield Text()
    yield _make_text("Lines of code, by share of the busy time", "bold")
    yield _make_table((("share", "right"), ("line", "left")), rows, width)


def _write_findings(title: str, findings: Sequence[Finding]) -> Iterator[Text]:
    if not findings:
        return
    yield Text()
    yield _make_text(f"{title} ({len(findings)})", "bold")
    for finding in findings:
        yield _make_text(f"  {finding.text}", "red" if finding.is_fatal else "yellow")
        if finding.remedy:
            yield _make_text(f"    {finding.remedy}")


# Captures of a run


def _write_list(shown: Sequence[Shown]) -> Iterator[Text | Grid]:
    grid = _make_grid(("Case, variant", "left"), ("busy in a step", "right"), ("share", "right"), ("bound by", "left"))
    for one in shown:
        summary, bound = one.summary, one.bound
        if summary.is_healthy:
            words = "" if bound is None else f"{bound.kind} {numbers.percent(bound.share)}"
            times = numbers.time(find_busy_s(summary.busiest)), numbers.percent(find_busy_share(summary))
        else:
            words = f"unhealthy: {next(finding.text for finding in summary.findings if finding.is_fatal)}"
            times = numbers.MISSING, numbers.MISSING
        grid.add_row(_make_text(one.label), *times, _make_text(words))
    yield grid
    yield _make_text(
        "Shares are of the traced step. --case and --variant choose a capture, which is shown in full.", "dim"
    )


# Two captures


def _write_difference(before: Shown, after: Shown, most: int, width: int) -> Iterator[Text | Grid]:
    for name, one in (("A", before), ("B", after)):
        yield _make_text(f"{name}: {_cut_front(one.label, width - 3)}", "bold")
        yield from _describe_traced(one.summary)
    unhealthy = [(name, one) for name, one in (("A", before), ("B", after)) if not one.summary.is_healthy]
    if unhealthy:
        yield Text("A capture cannot be relied on, so nothing is compared.", "bold red")
        for name, one in unhealthy:
            yield from _write_findings(f"Findings of {name}", one.summary.findings)
        return
    if unlike := list_unlike(before.summary, after.summary):
        yield Text()
        yield _make_text("The captures are unlike: a difference may have another cause than the program", "bold yellow")
        yield from (_make_text(f"  {line}", "yellow") for line in unlike)
    yield from _write_ledgers(before.summary, after.summary)
    yield from _write_grown(before.summary, after.summary, most, width)
    yield from _write_findings("Findings of A", before.summary.findings)
    yield from _write_findings("Findings of B", after.summary.findings)
    yield Text()
    yield _make_text(NO_FINDING, "bold")


def _write_ledgers(before: TraceSummary, after: TraceSummary) -> Iterator[Text | Grid]:
    if not (before.ledger and after.ledger):
        return
    grid = _make_grid(("Wall time of the traced step", "left"), ("A", "right"), ("B", "right"), ("difference", "right"))
    for group, parts in GROUPS.items():
        a, b = (sum(ledger.get(part, 0.0) for part in parts) for ledger in (before.ledger, after.ledger))
        grid.add_row(f"  {group}", numbers.percent(a), numbers.percent(b), _signed(numbers.percent(b - a), b - a))
    yield Text()
    yield grid


def _write_grown(before: TraceSummary, after: TraceSummary, most: int, width: int) -> Iterator[Text | Grid]:
    grown = find_grown(before, after)
    kept = set(map(id, sorted(grown, key=lambda one: -abs(one.difference_s))[:most]))
    rows = [_make_grown_row(one) for one in grown if id(one) in kept]
    others = [one for one in grown if id(one) not in kept]
    if others:
        times = ([getattr(one, name) for one in others] for name in ("before_s", "after_s"))
        sums = (sum(filter(None, known)) if any(known) else None for known in times)
        rows.append((*_show_times(*sums), f"{numbers.count(len(others))} others", "", "", ""))
    rows.append((*_show_times(find_busy_per_step(before), find_busy_per_step(after)), "busy time", "", "", ""))
    yield Text()
    yield _make_text("Operations, by mean time in a step of one device", "bold")
    headings = (("difference", "right"), ("A", "right"), ("B", "right"))
    yield _make_table((*headings, *NAMING, ("", "left")), rows, width)


def _make_grown_row(one: Grown) -> tuple[str, ...]:
    naming = (one.name, one.opcode, _shorten_source(one.source))
    return (*_show_times(one.before_s, one.after_s), *naming, _describe_join(one))


def _show_times(before_s: float | None, after_s: float | None) -> tuple[str, str, str]:
    difference = (after_s or 0.0) - (before_s or 0.0)
    return _signed(numbers.difference(difference), difference), numbers.time(before_s), numbers.time(after_s)


def _describe_join(one: Grown) -> str:
    if one.presence is not Presence.BOTH:
        return {Presence.NEW: "new", Presence.GONE: "gone", Presence.UNNAMED: "?"}[one.presence]
    return f"was {one.earlier_name}" if one.earlier_name else ""


def _signed(text: str, value: float) -> str:
    return f"+{text}" if value > 0 else text


# Parts


def _make_grid(*columns: tuple[str, Any]) -> Grid:
    """The first heading is the title."""
    grid = Grid(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False)
    for place, (title, side) in enumerate(columns):
        grid.add_column(Text(title, "dim" if place else "bold"), justify=side, no_wrap=True, overflow="ellipsis")
    return grid


def _make_table(columns: Sequence[tuple[str, Any]], rows: Sequence[Sequence[str]], width: int) -> Grid:
    """Columns of NAMING are cut so that no number is: paths lose their folders first. The first column is indented."""
    grid = Grid(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False)
    for place, (title, side) in enumerate(columns):
        least = 0 if place else LEAST_FIRST
        grid.add_column(Text(title, "dim"), justify=side, no_wrap=True, overflow="ellipsis", min_width=least)
    shown = [[visible(cell) for cell in row] for row in rows]
    flexible = [place for place, column in enumerate(columns) if column in NAMING]
    if _sum_widths(_measure(columns, shown)) > width:
        shown = [
            [cell.rsplit("/", 1)[-1] if place in flexible else cell for place, cell in enumerate(row)] for row in shown
        ]
    widths = _measure(columns, shown)
    while flexible and _sum_widths(widths) > width:
        longest = max(flexible, key=lambda place: widths[place])
        if widths[longest] <= LEAST_CUT:
            break
        widths[longest] -= 1
    for row in shown:
        grid.add_row(*(Text(_cut(cell, widths[place])) for place, cell in enumerate(row)))
    return grid


def _measure(columns: Sequence[tuple[str, Any]], rows: Sequence[Sequence[str]]) -> list[int]:
    """The longest text of each column."""
    return [
        max(len(title), *(len(row[place]) for row in rows if place < len(row)), 0 if place else LEAST_FIRST)
        for place, (title, _) in enumerate(columns)
    ]


def _sum_widths(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * len(widths)


def _cut_front(text: str, width: int) -> str:
    """A path in one line: its end says most."""
    shown = visible(text)
    return shown if len(shown) <= width else f"…{shown[len(shown) - width + 1 :]}"


def _cut(text: str, width: int) -> str:
    """Both ends, since the number of a name or a line is at the end."""
    kept = width - 1
    return text if len(text) <= width else f"{text[: kept // 2]}…{text[len(text) - (kept - kept // 2) :]}"


def _shorten_source(source: str) -> str:
    """The file with its folder, and the line: what comes before may name a person, and fills the line."""
    return "/".join(part for part in source.split("/")[-2:] if part.strip("~"))


def _make_text(text: str, style: str = "") -> Text:
    return Text(visible(text), style)
