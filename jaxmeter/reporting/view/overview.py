"""The first screen: devices, changes, trust, what jit is worth, where the time goes; on the page and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxmeter.document.model import Document, Item, Part, Table, limit, say
from jaxmeter.harness.metrics.aa_test import describe_in_short
from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.wording import counted, shorten

from ..text import by_numbers
from .cards import make_cards, make_changed_card, make_jit_card, make_reports_card, make_time_card, split_cards
from .cells import count_statuses, describe_trust, name_level
from .changes import describe_changes
from .comparisons import Comparisons
from .evidence import Evidence
from .figures.points import draw_roofline
from .page_model import AnswerLine, Card, DeviceLine, Overview, Page, SuiteView
from .runs import LONGEST_NAME, LONGEST_TERM, MachineRuns, describe_cores, find_hue, name_device
from .troubles import count_troubles, list_trust

MOST_DEVICES = 4
MOST_NAMED = 3
LONGEST_LINE = 300
LONGEST_TEXT = 600
"""Of what changed, or of what the self-test detected, with a name of the machine that may be long."""

ALREADY_THERE = ("time", "memory")
"""Cards of a case that the first screen has anyway."""


def make_overview(evidence: Evidence, alone: Sequence[Card], warnings: Sequence[Item]) -> Overview:
    """Return the first screen of a page.

    Args:
      alone: Cards of the case of a page that has no other.
      warnings: About the data.
    """
    machines, questions, newest = evidence.machines, evidence.questions, evidence.newest
    of_reports = make_reports_card(evidence.reports)
    cards, more = split_cards(make_cards(questions, newest, has_reports=of_reports is not None))
    shown = machines[:MOST_DEVICES]
    return Overview(
        heading=_write_heading(machines),
        devices=tuple(_describe_device(machine, newest) for machine in shown),
        note=f"[a, b]: {name_level([run for machine in machines for run in machine.runs], 'confidence interval')}",
        changed=make_changed_card(evidence.comparisons),
        trust=tuple(list_trust(shown, newest, evidence.comparisons, warnings)),
        jit=make_jit_card(questions, newest),
        time=make_time_card(questions, newest),
        cards=(*cards, *(card for card in alone if card.id not in ALREADY_THERE)),
        more=more,
        rooflines=tuple(_list_rooflines(shown, newest)),
        reports=of_reports,
    )


def _list_rooflines(machines: Sequence[MachineRuns], newest: Sequence[Case]) -> Iterator[Card]:
    for machine in machines:
        figure = draw_roofline([case for case in newest if machine.has(case.run)])
        if figure is not None:
            name = _name_platform(machine.newest).removeprefix("a ")
            yield Card(f"roofline-{machine.newest.where}", f"How near the limit? {name}", (), figure)


def _write_heading(machines: Sequence[MachineRuns]) -> str:
    """Return `JAX 0.10.2 on a CPU`, `JAX on a CPU (0.10.2) and a GPU (0.11.2)`."""
    if not machines:
        return "No run"
    shown = machines[:MOST_DEVICES]
    versions = list(map(_name_versions, shown))
    devices = [_name_platform(machine.newest) for machine in shown]
    more = f" and {counted(len(machines) - len(shown), 'more device')}" if len(machines) > len(shown) else ""
    if len(set(versions)) == 1:
        return f"JAX {versions[0]} on {_join(devices)}{more}"
    named = [f"{device} ({version})" for device, version in zip(devices, versions, strict=True)]
    return f"JAX on {_join(named)}{more}"


def _name_versions(machine: MachineRuns) -> str:
    """Return `0.10.2`, or of runs of several releases `0.4.31 to 0.10.2`."""
    known = {run.environment.packages.get("jax", "of unknown version") for run in machine.runs}
    ordered = sorted(known, key=by_numbers)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _name_platform(run: Run) -> str:
    words = {"cpu": "a CPU", "gpu": "a GPU", "tpu": "a TPU"}
    return words.get(run.where, run.where)


def _join(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    counts = [name if names.count(name) == 1 else f"{names.count(name)} {name.removeprefix('a ')}s" for name in unique]
    return counts[0] if len(counts) == 1 else f"{', '.join(counts[:-1])} and {counts[-1]}"


def _describe_device(machine: MachineRuns, newest: Sequence[Case]) -> DeviceLine:
    run = machine.newest
    own = [case for case in newest if machine.has(case.run)]
    runs = f", {counted(len(machine.runs), 'run')}" if len(machine.runs) > 1 else ""
    cores = f", {describe_cores(run)}" if run.where == "cpu" else ""
    name = f"{shorten(name_device(run), LONGEST_TERM)}{cores}"
    return DeviceLine(find_hue(run), name, f"{counted(len(own), 'case')}{runs}, {run.manifest.started[:10]}")


def make_finding(evidence: Evidence) -> str:
    """Return the page in a line: what is wrong first, then what changed, then how much was measured where."""
    newest = evidence.newest
    if not newest:
        return "No case was planned"
    measured = _describe_measured(evidence.machines, newest)
    parts = (count_troubles(newest), _describe_changes(evidence.comparisons), measured)
    finding = "; ".join(filter(None, parts))
    return finding[:1].upper() + finding[1:]


def _describe_measured(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> str:
    """Return how many cases were measured where; where some lack variants, how many variants were as well."""
    complete = sum(case.is_complete and not case.is_skipped for case in cases)
    skipped = sum(case.is_skipped for case in cases)
    of, where = f"{complete} of {counted(len(cases), 'case')}", _describe_where(machines)
    variants = [variant for case in cases for variant in case.shown]
    measured = sum(variant.status is Status.OK for variant in variants)
    if complete + skipped == len(cases) or not measured:
        return f"{of} measured {where}" + (f", {skipped} skipped" if skipped else "")
    words = f"{measured} of {counted(len(variants), 'variant')} measured {where}, {of} complete"
    return words + (f", {skipped} skipped" if skipped else "")


def _describe_where(platforms: Sequence[MachineRuns]) -> str:
    """Return the one platform, or on how many machines or platforms of one machine the cases were measured."""
    if len(platforms) == 1:
        return f"on {shorten(platforms[0].name, LONGEST_NAME)}"
    machines = len({platform.newest.manifest.machine for platform in platforms})
    return f"at {machines} machines" if machines > 1 else f"on {len(platforms)} platforms of one machine"


def _describe_changes(comparisons: Comparisons) -> str:
    """Return what changed, of all machines together; empty where nothing was compared."""
    several = len(comparisons.of_machines) > 1
    return shorten(
        "; ".join(
            f"{f'{machine.newest.label}: ' if several else ''}{describe_changes(changes)}, since run {changes.sides[0]}"
            for machine, changes in comparisons.of_machines
        ),
        LONGEST_TEXT,
    )


def make_subtitle(runs: Sequence[Run]) -> str:
    """Return what ran where and when, with which versions."""
    dates = sorted({run.manifest.started[:10] for run in runs})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    jax = sorted({run.environment.packages.get("jax", "unknown") for run in runs}, key=by_numbers)
    tools = sorted({run.manifest.tool_version for run in runs}, key=by_numbers)
    devices = dict.fromkeys(f"{run.where}: {name_device(run)}, {describe_cores(run)}" for run in runs)
    more = [f"{len(devices) - MOST_NAMED} more"] if len(devices) > MOST_NAMED else []
    where = "; ".join([*(shorten(name, LONGEST_NAME) for name in list(devices)[:MOST_NAMED]), *more])
    count = len({run.name for run in runs})  # a run with several platforms is here once for each
    parts = (counted(count, "run"), where, span, f"jax {', '.join(jax)}", f"jaxmeter {', '.join(tools)}")
    return shorten(" · ".join(parts), LONGEST_LINE)


def make_summary(evidence: Evidence, warnings: int) -> tuple[str, ...]:
    """Return lines: the smallest detectable difference, variants by status, warnings, the self-test."""
    machines, newest = evidence.machines, evidence.newest
    planned = counted(sum(len(case.shown) for case in newest), "variant")
    counts = count_statuses(variant for case in newest for variant in case.shown)
    words = {Status.OK: "measured", Status.TOO_LARGE: "too large"}
    listed = ", ".join(f"{counts[status]} {words.get(status, status.value)}" for status in reversed(counts))
    leading = machines[0].newest
    here = "" if len(machines) == 1 else f"{leading.label}: "
    return (
        f"{here}{describe_trust([case for case in newest if machines[0].has(case.run)])}",
        f"Of {planned}: {listed or 'nothing'}.",
        f"Checks of the data: {counted(warnings, 'warning')}." if warnings else "Checks of the data: no warning.",
        shorten(describe_in_short(leading.manifest.self_test), LONGEST_TEXT),
    )


MOST_ITEMS, MOST_ANSWERS = 4, 6
MOST_ITEMS_IN_FULL, MOST_ANSWERS_IN_FULL = 10, 24
"""Of each list: in a terminal, of which it fills 40 lines, and in a pull request."""

LONGEST_ITEM, LONGEST_WARNING = 85, 400
"""Characters in a terminal: a line; a warning's reason comes last, after a long path."""

IN_THE_REPORT = "in the report"
TOLD_SECTIONS = ("published",)
"""Sections whose answer is told in a terminal, too."""

FOLDED_SECTIONS = ("published", "problems")


def summarise(page: Page, *, in_full: bool = False) -> Document:
    """Return the summary of a page, `in_full` with its matrix, its results and some of its sections."""
    most_items, most_answers = (MOST_ITEMS_IN_FULL, MOST_ANSWERS_IN_FULL) if in_full else (MOST_ITEMS, MOST_ANSWERS)

    def gather(title: str, items: Sequence[Item], longest: int = LONGEST_ITEM) -> Part:
        shown = items if in_full else [replace(item, text=shorten(item.text, longest)) for item in items]
        return Part(f"{title} ({len(items)})", items=limit(shown, most_items, IN_THE_REPORT)) if items else Part()

    parts = [
        say(page.subtitle if in_full else "", " ".join(page.summary)),
        gather("What changed", page.changed),
        gather("Change points over many runs", page.change_points),
        *_describe_releases(page, in_full=in_full),
        Part(
            items=limit(
                [_write_answer(answer, in_full=in_full) for answer in page.answers], most_answers, IN_THE_REPORT
            )
        ),
        gather("Needs attention", page.attention),
        gather("Data warnings", page.warnings, LONGEST_WARNING),
        *(_list_details(page) if in_full else ()),
        *(() if in_full else (say(section.answer) for section in page.sections if section.id in TOLD_SECTIONS)),
    ]
    return Document(page.finding, tuple(part for part in parts if not part.is_empty))


def _describe_releases(page: Page, *, in_full: bool) -> Sequence[Part]:
    if page.releases is None:
        return ()
    tables = (page.releases.table,) if in_full else ()
    return (replace(say(page.releases.answer, title=page.releases.question), tables=tables),)


def _write_answer(answer: AnswerLine, *, in_full: bool) -> Item:
    of = f" ({answer.of})" if in_full and answer.of else ""
    return Item(answer.text + of, answer.suite, tone=answer.tone)


def _list_details(page: Page) -> Sequence[Part]:
    folded = (
        replace(
            say(section.answer, title=section.question),
            tables=tuple(table for part in section.parts for table in part.tables),
            is_folded=True,
        )
        for section in page.sections
        if section.id in FOLDED_SECTIONS
    )
    return (
        Part(tables=(page.matrix,) if page.matrix else (), notes=tuple(filter(None, (page.matrix_note,)))),
        Part("Results", (_join_parts(page.suites),), is_folded=True) if page.suites else Part(),
        *folded,
    )


def _join_parts(suites: Sequence[SuiteView]) -> Table:
    """The tables of all suites as one: they have the same columns."""
    return replace(suites[0].table, groups=tuple(group for suite in suites for group in suite.table.groups))
