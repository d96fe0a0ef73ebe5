"""What two runs say: changes and reports in words and rows, their heading, as a document and as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Section, Table, Tone, say
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.wording import counted, shorten
from jaxmeter.reporting.compare.budgets import NAMES
from jaxmeter.reporting.compare.gate import FINE, Judgement

from ..compare.times import COUNTED
from ..compare.verdicts import PROGRAM, TIME, WHOLE, Change, Changes, Here, JudgedReport, Verdict, encode_fields
from .runs import LONGEST_NAME, make_fragment

ID = "reports"
QUESTION = "Which reported changes of a release show here?"

REPORT_TONES = {
    Here.REPRODUCED: Tone.GOOD,
    Here.OPPOSITE: Tone.WARN,
    Here.NOT_HERE: Tone.MUTED,
    Here.UNDECIDED: Tone.MUTED,
}

REPORT_CAPTION = (
    "Reports between the releases of both runs. Factors are times as long with the later run's release. Reproduced: "
    "our interval lies within a factor of 1.5 of theirs. Same direction: it lies on the same side of 1."
)

_COLUMNS = (
    Column("Case"),
    Column("Report", "releases"),
    Column("Here"),
    Column("Reported", numeric=True),
    Column("Measured", numeric=True),
    Column("Releases"),
    Column("Why"),
)


def describe_reports(reports: Sequence[JudgedReport]) -> str:
    """Return `Of 12 reports: 5 reproduced, 3 same direction, 4 not on this machine`; empty without any."""
    counts = Counter(judged.here for judged in reports)
    text = ", ".join(f"{counts[here]} {here.value}" for here in Here if counts[here])
    return f"Of {counted(len(reports), 'report')}: {text}" if reports else ""


def write_report(judged: JudgedReport) -> str:
    """Return `jax issue 40150, 0.4.31 → 0.4.33: scalar_leaves[…] reported 60×, measured 22× [21, 23] in lock-step`."""
    report = judged.report
    what = "" if report.metric == TIME else f" {METRICS[report.metric].title}"
    measured = " ".join(part for part in (*_measured(judged), judged.condition) if part)
    text = f"{report.source}, {report.before} → {report.after}: {shorten(judged.case, LONGEST_NAME)}{what}"
    parts = (f"{text} reported {numbers.speedup(judged.theirs)}, measured {measured}", judged.reason)
    return "; ".join(filter(None, parts))


def make_report_table(reports: Sequence[JudgedReport]) -> Table:
    """Return a row for each, in the order given."""
    return Table(REPORT_CAPTION, _COLUMNS, (Group(tuple(map(_row, reports))),))


def _row(judged: JudgedReport) -> Row:
    report = judged.report
    what = "" if report.metric == TIME else METRICS[report.metric].title
    number, bounds = _measured(judged)
    releases = " → ".join(filter(None, judged.releases))
    cells = (
        Cell(shorten(judged.case, LONGEST_NAME), what),
        Cell(shorten(report.source, LONGEST_NAME), f"{report.before} → {report.after}"),
        Cell(judged.here.value, tone=REPORT_TONES.get(judged.here, Tone.PLAIN)),
        Cell(numbers.speedup(judged.theirs)),
        Cell(number, bounds),
        Cell(releases),
        Cell("; ".join(filter(None, (judged.condition, judged.reason, report.differs)))),
    )
    return Row(cells)


def _measured(judged: JudgedReport) -> tuple[str, str]:
    """Return the ratio and its bounds."""
    if judged.ours is None:
        return numbers.MISSING, ""
    text, bounds = numbers.speedup_with_bounds(judged.ours)
    return text, "" if bounds == numbers.MISSING else bounds


def make_reports_section(reports: Sequence[JudgedReport]) -> Section | None:
    """Return the section: a row for every report; None without any."""
    if not reports:
        return None
    parts = (Part(tables=(make_report_table(reports),)),)
    return Section(ID, "Reports of releases", QUESTION, f"{describe_reports(reports)}.", parts, packed=True)


LONGEST_REASON = 300

MOST_NOTES, MOST_VARIANTS, LONGEST_NOTE = 8, 3, 200
"""Of the notes that only one run has, the variants of each, and letters. The records have all of them."""

TOLD = (
    Verdict.SLOWER,
    Verdict.MORE,
    Verdict.FAILED,
    Verdict.SUSPECTED_SLOWER,
    Verdict.GONE,
    Verdict.NOT_COMPARABLE,
    Verdict.FASTER,
    Verdict.LESS,
    Verdict.SUSPECTED_FASTER,
    Verdict.CHANGED,
    Verdict.NEW,
)
"""What is listed by itself; of the rest there are counts."""

TONES = {
    Verdict.SLOWER: Tone.WORSE,
    Verdict.MORE: Tone.WORSE,
    Verdict.FAILED: Tone.BAD,
    Verdict.SUSPECTED_SLOWER: Tone.WARN,
    Verdict.GONE: Tone.WARN,
    Verdict.NOT_COMPARABLE: Tone.WARN,
    Verdict.FASTER: Tone.GOOD,
    Verdict.LESS: Tone.GOOD,
}

_OF_TIMES = (
    Verdict.FAILED,
    Verdict.SLOWER,
    Verdict.FASTER,
    Verdict.SUSPECTED_SLOWER,
    Verdict.SUSPECTED_FASTER,
    Verdict.SAME,
    Verdict.SAME_PROGRAM,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_COMPARABLE,
)

LONGEST_OPEN = 60
"""Letters of the reason why a time is inconclusive, in a sentence that names several."""

_CONFIRMED = {Verdict.SLOWER: "slower (confirmed)", Verdict.FASTER: "faster (confirmed)"}

COLUMNS = (
    Column("case"),
    *(Column(title, numeric=True) for title in ("before", "after")),
    Column("change", "interval", numeric=True),
    Column("cause"),
)
AS_ABOVE = "as in the row above"
CAPTION = (
    "Slower and faster are confirmed: the earlier program was interleaved with today's, in the same processes. "
    "Suspected: only two stored times differ. Times are normalised to the earlier run. Smallest detectable: the least "
    "difference that these processes could have shown."
)


def describe_changes(changes: Changes) -> str:
    """`of 41 times in lock-step on one core 1 slower (confirmed), 40 same; more planned peak memory in 2 variants`."""
    if changes.conditions.incomparable:
        return f"not comparable with {changes.before}: {changes.conditions.incomparable}"
    counts = Counter(change.verdict for change in changes.times)
    counted_verdicts = [
        f"{counts[verdict]} {_CONFIRMED.get(verdict, verdict.value)}" for verdict in _OF_TIMES if counts[verdict]
    ]
    if counted_verdicts:
        how = ", ".join(sorted({change.condition for change in changes.times} - {""}))
        compared = f"of {counted(len(changes.times), 'time')}{f' {how}' if how else ''} {', '.join(counted_verdicts)}"
    else:
        compared = f"no time, {counted(changes.exact, 'exact number')} compared"
    parts = [compared, *_count_exact(changes), *_count_wholes(changes)]
    return "; ".join(parts)


def write_open_times(changes: Changes, most: int, said: Sequence[Change] = ()) -> list[str]:
    """Return the inconclusive times, and by how much calls of equal programs may still be slower, the largest first.

    Args:
      most: Times that each sentence names.
      said: Changes that are listed by themselves.
    """
    named = {change.key for change in said if change.metric == TIME}
    inconclusive = [
        change for change in changes.times if change.verdict is Verdict.INCONCLUSIVE and change.key not in named
    ]
    equal = [change for change in changes.times if change.verdict is Verdict.SAME_PROGRAM]
    sentences = (
        (
            "Inconclusive",
            sorted(inconclusive, key=_most_slower, reverse=True),
            lambda change: shorten(change.reason, LONGEST_OPEN),
        ),
        (
            "Same program or code, but the call may be slower by up to",
            sorted(equal, key=_most_slower, reverse=True),
            lambda change: numbers.percent(_most_slower(change)),
        ),
    )
    return [_name_times(words, times, detail, most) for words, times, detail in sentences if times]


def _most_slower(change: Change) -> float:
    """The largest slowdown that the interval leaves possible, as a share."""
    high = None if change.effect is None else change.effect.decisive.high
    return math.inf if high is None else max(0.0, high - 1)


def _name_times(words: str, times: Sequence[Change], detail: Callable[[Change], str], most: int) -> str:
    named = [
        f"{shorten(change.case, LONGEST_NAME)} {shorten(change.variant, LONGEST_NAME)}" + (f" ({why})" if why else "")
        for change in times[:most]
        for why in [detail(change)]
    ]
    left = len(times) - len(named)
    return f"{words}: {', '.join(named)}{f'; and {left} more' if left else ''}"


def describe_exact(changes: Changes) -> str:
    """Return `Equal: planned peak memory in 12 of 12 variants, program in 11 of 12.`, and what a run lacks.

    Empty where no variant was compared.
    """
    counts = changes.exact_counts
    if not changes.compared or not counts:
        return ""
    compared = [count for count in counts if count.compared]
    first, *others = [f"{count.name} in {count.equal} of {count.compared}" for count in compared] or [""]
    nouns = "variant" if compared and compared[0].compared == 1 else "variants"
    sentences = [f"Equal: {', '.join([f'{first} {nouns}', *others])}."] if compared else []
    for which, number in (("earlier", "only_before"), ("later", "only_after")):
        lone = [f"{count.name} of {counted(alone, 'variant')}" for count in counts if (alone := getattr(count, number))]
        sentences += [f"Not compared, only in the {which} run: {', '.join(lone)}."] if lone else []
    absent = [count.name for count in counts if not (count.compared or count.only_before or count.only_after)]
    sentences += [f"In neither run: {', '.join(absent)}."] if absent else []
    return " ".join(sentences)


def _count_exact(changes: Changes) -> Iterable[str]:
    memory = [change for change in changes.entries if change.metric == "planned_peak_bytes"]
    for verdict, words in ((Verdict.MORE, "more"), (Verdict.LESS, "less"), (Verdict.GONE, "no")):
        if number := sum(change.verdict is verdict for change in memory):
            yield f"{words} planned peak memory in {counted(number, 'variant')}"
    if number := sum(
        change.metric in ("compiles", "recompiles") and change.verdict is Verdict.MORE for change in changes.entries
    ):
        yield f"more compiled programs in {counted(number, 'variant')}"
    if number := sum(change.metric == PROGRAM and change.verdict is Verdict.CHANGED for change in changes.entries):
        yield f"{counted(number, 'program')} changed"


def _count_wholes(changes: Changes) -> Iterable[str]:
    wholes = [change for change in changes.entries if change.metric == WHOLE]
    for verdict in (Verdict.FAILED, Verdict.NEW, Verdict.GONE, Verdict.NOT_COMPARABLE):
        if number := sum(change.verdict is verdict for change in wholes):
            yield f"{number} {verdict.value}"


def write_flag(change: Change) -> str:
    """Return `suspected slower, +52 % [+40, +65]`, `planned peak memory more, +10 %`: for a cell."""
    what = "" if change.metric == TIME else f"{change.title} "
    effect, bounds = write_effect(change)
    size = " ".join(part for part in (effect, bounds) if part not in ("", numbers.MISSING))
    return ", ".join(filter(None, (f"{what}{change.verdict.value}", size)))


def list_changed(changes: Changes) -> tuple[Item, ...]:
    """What changed, the worst first and the largest first."""
    items = tuple(_item(change) for change in order_changes(changes.without_runtimes))
    if len(changes.without_runtimes) == len(changes.entries):
        return items
    sentence = changes.conditions.other_runtime
    return (Item(sentence[:1].upper() + sentence[1:], Verdict.NOT_COMPARABLE.value, tone=Tone.WARN), *items)


def order_changes(changes: Iterable[Change]) -> list[Change]:
    """Those with verdicts of TOLD, the worst first, of those the largest change; of a program all counts as one."""
    changes = list(changes)
    shown = [change for change in changes if change.verdict in TOLD and change.metric not in COUNTED]
    ordered = [_tell_counts(change, changes) if change.metric == PROGRAM else change for change in shown]
    return sorted(ordered, key=lambda change: (TOLD.index(change.verdict), -change.size))


def _tell_counts(program: Change, changes: Sequence[Change]) -> Change:
    """That a program changed, with what there is more or less of in it."""
    counts = [count for count in changes if count.key == program.key and count.metric in COUNTED]
    words = ", ".join(f"{count.title} {write_effect(count)[0]}" for count in counts)
    return replace(program, reason=words or program.reason)


def _item(change: Change) -> Item:
    return Item(
        write_change(change),
        change.verdict.value,
        make_fragment("case", change.suite, change.case),
        TONES.get(change.verdict, Tone.PLAIN),
    )


def write_change(change: Change) -> str:
    """`scan[n=100] scan:jit: time 11 µs → 12 µs, +9.1 % [+6.2, +12]; likely cause: its program has changed`."""
    name = " ".join(filter(None, (shorten(change.case, LONGEST_NAME), shorten(change.variant, LONGEST_NAME))))
    sizes = write_numbers(change)
    parts = [f"{name}: {sizes}" if sizes else name, write_why(change)]
    return "; ".join(filter(None, parts))


def write_numbers(change: Change, of: str = "") -> str:
    """`time 11 µs → 12 µs, +9.1 % [+6.2, +12], 5 processes in lock-step on one core`; empty without numbers.

    Args:
      of: Whose metric it is, where nothing before it says so.
    """
    if change.before is None or change.after is None:
        return "" if change.metric in (WHOLE, TIME) else change.title
    was, now_is = write_both(change)
    effect, bounds = write_effect(change)
    size = " ".join(part for part in (effect, bounds) if part not in ("", numbers.MISSING))
    how = f", {counted(change.processes, 'process', 'processes')} {change.condition}" if change.condition else ""
    what = " ".join(filter(None, (change.title, of)))
    return f"{what} {was} → {now_is}{f', {size}' if size else ''}{how}"


def write_both(change: Change) -> tuple[str, str]:
    """Both numbers in the metric's unit."""
    if change.before is None or change.after is None:
        return numbers.MISSING, numbers.MISSING
    return write_sides(METRICS[change.metric], change.before, change.after)


def write_effect(change: Change) -> tuple[str, str]:
    """The change and its bounds; of a count how many more there are."""
    if (
        change.metric in METRICS
        and METRICS[change.metric].unit is Unit.COUNT
        and change.before is not None
        and change.after is not None
    ):
        return numbers.signed_count(int(change.after - change.before)), ""
    text, bounds = numbers.change(change.effect)
    is_exact = change.effect is None or change.effect.low == change.effect.high
    return text, "" if is_exact else bounds


def write_why(change: Change) -> str:
    """The reason, and the likely cause."""
    cause = f"likely cause: {change.cause}" if change.cause else ""
    return shorten("; ".join(filter(None, (change.reason, cause))), LONGEST_REASON)


def make_change_table(changes: Sequence[Change]) -> Table:
    """A row for each below its verdict, in the order given; what explains several in a row stands in the first."""
    groups: dict[str, list[Row]] = {}
    causes: dict[str, str] = {}
    for change in changes:
        title = f"{'' if change.metric == WHOLE else f'{change.title}: '}{change.verdict.value}"
        cause = write_why(change)
        is_known = cause == causes.get(title) and len(cause) > len(AS_ABOVE)
        causes[title] = cause
        groups.setdefault(title, []).append(_make_row(change, AS_ABOVE if is_known else cause))
    rows = (Group(tuple(own), title) for title, own in groups.items())
    return Table(CAPTION, COLUMNS, tuple(rows), grouped_by="verdict")


def _make_row(change: Change, cause: str) -> Row:
    name = " ".join(filter(None, (shorten(change.case, LONGEST_NAME), shorten(change.variant, LONGEST_NAME))))
    has_numbers = change.before is not None and change.after is not None
    effect, bounds = write_effect(change) if has_numbers else ("", "")
    smallest = "" if change.smallest is None else f"smallest detectable {numbers.percent(change.smallest)}"
    processes = counted(change.processes, "process", "processes") if change.processes else ""
    how = ", ".join(filter(None, (" ".join(filter(None, (processes, change.condition))), smallest)))
    tone = TONES.get(change.verdict, Tone.PLAIN)
    return Row(
        (
            Cell(
                name, tone=Tone.PLAIN if has_numbers else tone, target=make_fragment("case", change.suite, change.case)
            ),
            *map(Cell, write_both(change) if has_numbers else ("", "")),
            Cell(effect, "" if bounds == numbers.MISSING else bounds, tone),
            Cell("; ".join(filter(None, (how, cause)))),
        )
    )


def write_lone_notes(changes: Changes) -> list[str]:
    """Write each note that only one of two runs has, with its variants: a check may not have been made there."""
    lines = []
    for note in changes.notes[:MOST_NOTES]:
        more = f" and {len(note.variants) - MOST_VARIANTS} more" if len(note.variants) > MOST_VARIANTS else ""
        variants = f"{', '.join(note.variants[:MOST_VARIANTS])}{more}"
        lines.append(f"{'later' if note.is_later else 'earlier'} run: {shorten(note.text, LONGEST_NOTE)} ({variants})")
    left = len(changes.notes) - MOST_NOTES
    return [*lines, *([f"{counted(left, 'more note')}, in the records of both runs"] if left > 0 else [])]


MOST_ROWS = 24
"""Of changes in a terminal; files have all."""

MOST_OPEN, MOST_OPEN_IN_FULL = 5, 50
"""Of times without a verdict, in each sentence: in a terminal, and in a pull request; the verdict file has all."""

IN_FILES = "in --markdown FILE and --verdict FILE"
CONFIRM = "Confirm slower calls with both checkouts in lock-step"
BEYOND = "beyond its budget"
OBSTACLE = "Obstacle to an answer"
LONE_NOTES = "Notes that only one run has:"


def describe_comparison(changes: Changes, judgement: Judgement | None, *, in_full: bool = False) -> Document:
    """Return what changed, and what is judged of it: `in_full` with all rows, and with what their columns mean."""
    return Document(write_heading(changes, judgement), list_details(changes, judgement, in_full=in_full))


def list_details(changes: Changes, judgement: Judgement | None, *, in_full: bool = False) -> tuple[Part, ...]:
    """Return the same without its heading."""
    regressions = () if judgement is None else judgement.regressions
    unconfirmed = () if judgement is None else judgement.unconfirmed
    command = "" if judgement is None else find_confirming_command(changes, judgement)
    parts = [
        _describe_runs(changes, judgement),
        _show("Regressions", list(map(_mark_beyond, regressions)), in_full=in_full),
        _show("Not confirmed", unconfirmed, in_full=in_full),
        say(f"{CONFIRM}: {command}" if command else ""),
        _show("What changed", list_others(changes, judgement), in_full=in_full),
        say(*write_open_times(changes, MOST_OPEN_IN_FULL if in_full else MOST_OPEN, (*regressions, *unconfirmed))),
    ]
    if changes.reports:
        parts.append(Part(describe_reports(changes.reports), (make_report_table(changes.reports),)))
    if notes := write_lone_notes(changes):
        parts.append(say(*notes, title=LONE_NOTES))
    return tuple(part for part in parts if not part.is_empty)


def _describe_runs(changes: Changes, judgement: Judgement | None) -> Part:
    conditions = changes.conditions
    before = f"Not as before: {conditions.describe(everything=True)}" if conditions.anything else ""
    doubts = [describe_runtimes(changes, judgement)]
    doubts += [f"{OBSTACLE}: {words}" for words in (() if judgement is None else judgement.obstacles)]
    sides = Item(" → ".join(changes.sides), tone=Tone.MUTED)
    return Part(items=(sides, *say(before, describe_exact(changes)).items, *say(*doubts, tone=Tone.WARN).items))


def _mark_beyond(regression: Change) -> Change:
    """Return a regression that says that it is beyond its budget, unless it is only suspected."""
    reason = "; ".join(filter(None, (regression.reason, BEYOND)))
    return regression if regression.verdict.is_suspected else replace(regression, reason=reason)


def _show(title: str, changes: Sequence[Change], *, in_full: bool) -> Part:
    """Return a table of changes, without its caption in a terminal."""
    if not changes:
        return Part()
    shown = changes if in_full else changes[:MOST_ROWS]
    table = make_change_table(shown)
    left = len(changes) - len(shown)
    more = (f"+ {left} more, {IN_FILES}",) if left else ()
    return Part(f"{title} ({len(changes)})", (table if in_full else replace(table, caption=""),), more)


def write_heading(changes: Changes, judgement: Judgement | None, compared_with: str = "") -> str:
    """Return what was judged, else what changed.

    Args:
      compared_with: The earlier runs, where the heading has to name them.
    """
    summary = describe_changes(changes)
    if judgement is None:
        return summary[:1].upper() + summary[1:]
    compared = f", compared with {compared_with}" if compared_with else ""
    if judgement.regressions:
        is_sure = not any(change.verdict.is_suspected for change in judgement.regressions)
        what = "confirmed regression" if is_sure else "regression"
        return f"Failed{compared}: {counted(len(judgement.regressions), what)}; {summary}"
    if judgement.code:
        suspects = f"{counted(len(judgement.unconfirmed), 'suspect')} not confirmed; " if judgement.unconfirmed else ""
        return f"No answer{compared}: {suspects}{summary}"
    return f"Passed{compared}: {summary}"


def find_confirming_command(changes: Changes, judgement: Judgement) -> str:
    """Return the command that confirms what only stored times suspect; empty where nothing is left open so."""
    is_open = any(not change.replayed or change.call is not None for change in judgement.unconfirmed)
    return changes.confirming if is_open else ""


def list_others(changes: Changes, judgement: Judgement | None) -> list[Change]:
    """What else changed: neither a regression nor a suspect that was not confirmed."""
    said = () if judgement is None else (*judgement.regressions, *judgement.unconfirmed)
    named = {(*change.key, change.metric) for change in said}
    others = [change for change in order_changes(changes.without_runtimes) if (*change.key, change.metric) not in named]
    return _explain(others, judgement)


def _explain(changes: Iterable[Change], judgement: Judgement | None) -> list[Change]:
    """Return the changes, with the reason of each that passes only by the allowance between releases."""
    allowed = {} if judgement is None else {(*change.key, change.metric): change for change in judgement.allowed}
    return [allowed.get((*change.key, change.metric), change) for change in changes]


def describe_runtimes(changes: Changes, judgement: Judgement | None) -> str:
    """That the runs are of two runtimes; empty where they are not, or where it is what stands in the way."""
    sentence = changes.conditions.other_runtime
    is_said = judgement is not None and sentence in judgement.obstacles
    return "" if is_said else sentence[:1].upper() + sentence[1:]


def encode_verdict(changes: Changes, judgement: Judgement | None) -> bytes:
    """All changes as JSON, with the exit code and why."""
    return msgspec.json.format(msgspec.json.encode(make_verdict(changes, judgement)), indent=2) + b"\n"


def make_verdict(
    changes: Changes, judgement: Judgement | None, verdicts: Iterable[Verdict] = tuple(Verdict)
) -> dict[str, Any]:
    """Changes with some verdicts, with the exit code and why."""
    kept = _explain(changes.having(*verdicts), judgement)
    return {
        "baseline": changes.before,
        "candidate": changes.after,
        "exit_code": FINE if judgement is None else judgement.code,
        "heading": write_heading(changes, judgement),
        "minimum_effect": changes.minimum_effect,
        "not_as_before": [*changes.conditions.steering, *changes.conditions.others],
        "incomparable": changes.conditions.incomparable,
        "other_runtime": changes.conditions.other_runtime,
        "exact_numbers": [msgspec.to_builtins(count) for count in changes.exact_counts],
        "obstacles": [] if judgement is None else list(judgement.obstacles),
        "regressions": [] if judgement is None else _encode(judgement.regressions),
        "unconfirmed": [] if judgement is None else _encode(judgement.unconfirmed),
        "changes": _encode(kept),
        "reports": [msgspec.to_builtins(report) for report in changes.reports],
    }


def _encode(changes: Sequence[Change]) -> list[Any]:
    """Return changes as data, each with what budgets and bisections call its metric."""
    called = {name: word for word, name in NAMES.items()} | {PROGRAM: PROGRAM}
    return [{**encode_fields(change), "budget": called.get(change.metric, "")} for change in changes]
