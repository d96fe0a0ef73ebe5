"""What two runs say: changes in words and rows, their heading, as a document and as data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone, say
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.budgets import NAMES
from ..compare.gate import FINE, Judgement
from ..compare.times import COUNTED
from ..compare.verdicts import PROGRAM, TIME, WHOLE, Change, Changes, Verdict, encode_fields
from .names import LONGEST_NAME, make_fragment
from .reports import describe_reports, make_report_table

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
CAPTION = (
    "Slower and faster are confirmed: the earlier program was interleaved with today's, in the same processes. "
    "Suspected: only two stored times differ. Times are normalised to the earlier run. Smallest detectable: the least "
    "difference that these processes could have shown."
)


def describe_changes(changes: Changes) -> str:
    """`of 41 times in lock-step on one core 1 slower (confirmed), 40 same; more planned peak memory in 2 variants`."""
    if changes.conditions.incomparable:
        return f"not comparable with {changes.before}: {changes.conditions.incomparable}"
    counts = Counter(one.verdict for one in changes.times)
    told = [f"{counts[one]} {_CONFIRMED.get(one, one.value)}" for one in _OF_TIMES if counts[one]]
    if told:
        how = ", ".join(sorted({one.condition for one in changes.times} - {""}))
        compared = f"of {counted(len(changes.times), 'time')}{f' {how}' if how else ''} {', '.join(told)}"
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
    named = {one.key for one in said if one.metric == TIME}
    inconclusive = [one for one in changes.times if one.verdict is Verdict.INCONCLUSIVE and one.key not in named]
    equal = [one for one in changes.times if one.verdict is Verdict.SAME_PROGRAM]
    sentences = (
        (
            "Inconclusive",
            sorted(inconclusive, key=_most_slower, reverse=True),
            lambda one: shorten(one.reason, LONGEST_OPEN),
        ),
        (
            "Same program or code, but the call may be slower by up to",
            sorted(equal, key=_most_slower, reverse=True),
            lambda one: numbers.percent(_most_slower(one)),
        ),
    )
    return [_name_times(words, found, detail, most) for words, found, detail in sentences if found]


def _most_slower(one: Change) -> float:
    """The largest slowdown that the interval leaves possible, as a share."""
    high = None if one.effect is None else one.effect.decisive.high
    return math.inf if high is None else max(0.0, high - 1)


def _name_times(words: str, found: Sequence[Change], detail: Callable[[Change], str], most: int) -> str:
    named = [
        f"{shorten(one.case, LONGEST_NAME)} {shorten(one.variant, LONGEST_NAME)}" + (f" ({why})" if why else "")
        for one in found[:most]
        for why in [detail(one)]
    ]
    left = len(found) - len(named)
    return f"{words}: {', '.join(named)}{f'; and {left} more' if left else ''}"


def describe_exact(changes: Changes) -> str:
    """Return `Equal: planned peak memory in 12 of 12 variants, program in 11 of 12.`, and what a run lacks.

    Empty where no variant was compared.
    """
    counts = changes.exact_counts
    if not changes.compared or not counts:
        return ""
    compared = [one for one in counts if one.compared]
    first, *others = [f"{one.name} in {one.equal} of {one.compared}" for one in compared] or [""]
    nouns = "variant" if compared and compared[0].compared == 1 else "variants"
    sentences = [f"Equal: {', '.join([f'{first} {nouns}', *others])}."] if compared else []
    for which, number in (("earlier", "only_before"), ("later", "only_after")):
        lone = [f"{one.name} of {counted(alone, 'variant')}" for one in counts if (alone := getattr(one, number))]
        sentences += [f"Not compared, only in the {which} run: {', '.join(lone)}."] if lone else []
    absent = [one.name for one in counts if not (one.compared or one.only_before or one.only_after)]
    sentences += [f"In neither run: {', '.join(absent)}."] if absent else []
    return " ".join(sentences)


def _count_exact(changes: Changes) -> Iterable[str]:
    memory = [one for one in changes.found if one.metric == "planned_peak_bytes"]
    for verdict, words in ((Verdict.MORE, "more"), (Verdict.LESS, "less"), (Verdict.GONE, "no")):
        if number := sum(one.verdict is verdict for one in memory):
            yield f"{words} planned peak memory in {counted(number, 'variant')}"
    if number := sum(one.metric in ("compiles", "recompiles") and one.verdict is Verdict.MORE for one in changes.found):
        yield f"more compiled programs in {counted(number, 'variant')}"
    if number := sum(one.metric == PROGRAM and one.verdict is Verdict.CHANGED for one in changes.found):
        yield f"{counted(number, 'program')} changed"


def _count_wholes(changes: Changes) -> Iterable[str]:
    wholes = [one for one in changes.found if one.metric == WHOLE]
    for verdict in (Verdict.FAILED, Verdict.NEW, Verdict.GONE, Verdict.NOT_COMPARABLE):
        if number := sum(one.verdict is verdict for one in wholes):
            yield f"{number} {verdict.value}"


def write_flag(one: Change) -> str:
    """Return `suspected slower, +52 % [+40, +65]`, `planned peak memory more, +10 %`: for a cell."""
    what = "" if one.metric == TIME else f"{one.title} "
    effect, bounds = write_effect(one)
    told = " ".join(part for part in (effect, bounds) if part not in ("", numbers.MISSING))
    return ", ".join(filter(None, (f"{what}{one.verdict.value}", told)))


def list_changed(changes: Changes) -> tuple[Item, ...]:
    """What changed, the worst first and the largest first."""
    items = tuple(_item(one) for one in order_changes(changes.without_runtimes))
    if len(changes.without_runtimes) == len(changes.found):
        return items
    sentence = changes.conditions.other_runtime
    return (Item(sentence[:1].upper() + sentence[1:], Verdict.NOT_COMPARABLE.value, tone=Tone.WARN), *items)


def order_changes(found: Iterable[Change]) -> list[Change]:
    """Those with verdicts of TOLD, the worst first, of those the largest change; of a program all counts as one."""
    found = list(found)
    shown = [one for one in found if one.verdict in TOLD and one.metric not in COUNTED]
    told = [_tell_counts(one, found) if one.metric == PROGRAM else one for one in shown]
    return sorted(told, key=lambda one: (TOLD.index(one.verdict), -one.size))


def _tell_counts(program: Change, found: Sequence[Change]) -> Change:
    """That a program changed, with what there is more or less of in it."""
    counts = [one for one in found if one.key == program.key and one.metric in COUNTED]
    words = ", ".join(f"{one.title} {write_effect(one)[0]}" for one in counts)
    return replace(program, reason=words or program.reason)


def _item(one: Change) -> Item:
    return Item(
        write_change(one),
        one.verdict.value,
        make_fragment("case", one.suite, one.case),
        TONES.get(one.verdict, Tone.PLAIN),
    )


def write_change(one: Change) -> str:
    """`scan[n=100] scan:jit: time 11 µs → 12 µs, +9.1 % [+6.2, +12]; likely cause: its program has changed`."""
    name = " ".join(filter(None, (shorten(one.case, LONGEST_NAME), shorten(one.variant, LONGEST_NAME))))
    numbers_told = write_numbers(one)
    parts = [f"{name}: {numbers_told}" if numbers_told else name, write_why(one)]
    return "; ".join(filter(None, parts))


def write_numbers(one: Change, of: str = "") -> str:
    """`time 11 µs → 12 µs, +9.1 % [+6.2, +12], 5 processes in lock-step on one core`; empty without numbers.

    Args:
      of: Whose metric it is, where nothing before it says so.
    """
    if one.before is None or one.after is None:
        return "" if one.metric in (WHOLE, TIME) else one.title
    was, now_is = write_both(one)
    effect, bounds = write_effect(one)
    told = " ".join(part for part in (effect, bounds) if part not in ("", numbers.MISSING))
    how = f", {counted(one.processes, 'process', 'processes')} {one.condition}" if one.condition else ""
    what = " ".join(filter(None, (one.title, of)))
    return f"{what} {was} → {now_is}{f', {told}' if told else ''}{how}"


def write_both(one: Change) -> tuple[str, str]:
    """Both numbers in the metric's unit."""
    if one.before is None or one.after is None:
        return numbers.MISSING, numbers.MISSING
    return write_sides(METRICS[one.metric], one.before, one.after)


def write_effect(one: Change) -> tuple[str, str]:
    """The change and its bounds; of a count how many more there are."""
    if (
        one.metric in METRICS
        and METRICS[one.metric].unit is Unit.COUNT
        and one.before is not None
        and one.after is not None
    ):
        return numbers.signed_count(int(one.after - one.before)), ""
    text, bounds = numbers.change(one.effect)
    is_exact = one.effect is None or one.effect.low == one.effect.high
    return text, "" if is_exact else bounds


def write_why(one: Change) -> str:
    """The reason, and the likely cause."""
    cause = f"likely cause: {one.cause}" if one.cause else ""
    return shorten("; ".join(filter(None, (one.reason, cause))), LONGEST_REASON)


def make_change_table(found: Sequence[Change]) -> Table:
    """A row for each below its verdict, in the order given."""
    groups: dict[str, list[Row]] = {}
    for one in found:
        what = "" if one.metric == WHOLE else f"{one.title}: "
        groups.setdefault(f"{what}{one.verdict.value}", []).append(_make_row(one))
    rows = (Group(tuple(own), title) for title, own in groups.items())
    return Table(CAPTION, COLUMNS, tuple(rows), grouped_by="verdict")


def _make_row(one: Change) -> Row:
    name = " ".join(filter(None, (shorten(one.case, LONGEST_NAME), shorten(one.variant, LONGEST_NAME))))
    has_numbers = one.before is not None and one.after is not None
    effect, bounds = write_effect(one) if has_numbers else ("", "")
    smallest = "" if one.smallest is None else f"smallest detectable {numbers.percent(one.smallest)}"
    processes = counted(one.processes, "process", "processes") if one.processes else ""
    how = ", ".join(filter(None, (" ".join(filter(None, (processes, one.condition))), smallest)))
    tone = TONES.get(one.verdict, Tone.PLAIN)
    return Row(
        (
            Cell(name, tone=Tone.PLAIN if has_numbers else tone, target=make_fragment("case", one.suite, one.case)),
            *map(Cell, write_both(one) if has_numbers else ("", "")),
            Cell(effect, "" if bounds == numbers.MISSING else bounds, tone),
            Cell("; ".join(filter(None, (how, write_why(one))))),
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


def _show(title: str, found: Sequence[Change], *, in_full: bool) -> Part:
    """Return a table of changes, without its caption in a terminal."""
    if not found:
        return Part()
    shown = found if in_full else found[:MOST_ROWS]
    table = make_change_table(shown)
    left = len(found) - len(shown)
    more = (f"+ {left} more, {IN_FILES}",) if left else ()
    return Part(f"{title} ({len(found)})", (table if in_full else replace(table, caption=""),), more)


def write_heading(changes: Changes, judgement: Judgement | None, compared_with: str = "") -> str:
    """Return what was judged, else what changed.

    Args:
      compared_with: The earlier runs, where the heading has to name them.
    """
    told = describe_changes(changes)
    if judgement is None:
        return told[:1].upper() + told[1:]
    compared = f", compared with {compared_with}" if compared_with else ""
    if judgement.regressions:
        is_sure = not any(one.verdict.is_suspected for one in judgement.regressions)
        what = "confirmed regression" if is_sure else "regression"
        return f"Failed{compared}: {counted(len(judgement.regressions), what)}; {told}"
    if judgement.code:
        suspects = f"{counted(len(judgement.unconfirmed), 'suspect')} not confirmed; " if judgement.unconfirmed else ""
        return f"No answer{compared}: {suspects}{told}"
    return f"Passed{compared}: {told}"


def find_confirming_command(changes: Changes, judgement: Judgement) -> str:
    """Return the command that confirms what only stored times suspect; empty where nothing is left open so."""
    is_open = any(not one.replayed or one.call is not None for one in judgement.unconfirmed)
    return changes.confirming if is_open else ""


def list_others(changes: Changes, judgement: Judgement | None) -> list[Change]:
    """What else changed: neither a regression nor a suspect that was not confirmed."""
    said = () if judgement is None else (*judgement.regressions, *judgement.unconfirmed)
    named = {(*one.key, one.metric) for one in said}
    others = [one for one in order_changes(changes.without_runtimes) if (*one.key, one.metric) not in named]
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
        "exact_numbers": [msgspec.to_builtins(one) for one in changes.exact_counts],
        "obstacles": [] if judgement is None else list(judgement.obstacles),
        "regressions": [] if judgement is None else _encode(judgement.regressions),
        "unconfirmed": [] if judgement is None else _encode(judgement.unconfirmed),
        "changes": _encode(kept),
        "reports": [msgspec.to_builtins(one) for one in changes.reports],
    }


def _encode(found: Sequence[Change]) -> list[Any]:
    """Return changes as data, each with what budgets and bisections call its metric."""
    called = {name: word for word, name in NAMES.items()} | {PROGRAM: PROGRAM}
    return [{**encode_fields(one), "budget": called.get(one.metric, "")} for one in found]
