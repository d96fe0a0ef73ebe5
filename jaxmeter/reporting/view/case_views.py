"""A case on every machine that ran it: figures, results, sections, how it was before, and what was kept.

Figures stand in one order: how fast, where the time goes, first call, operations, memory, growth, earlier runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Part, Section, Tone
from jaxmeter.harness.metrics.derived import describe_bound_of, find_trace
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.write import write, write_reading
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.cases import COMPILATION
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.verdicts import Change
from .answers import find_headline, write_speed
from .cells import (
    CONTENDED,
    LONGEST_REASON,
    WIDE,
    drop_empty_columns,
    find_doubts,
    find_speedup_tone,
    find_tone,
    is_vague,
    list_unplanned,
)
from .changes import TOLD, make_change_table, order_changes, write_effect, write_flag
from .comparisons import Comparisons
from .figures.curves import draw_growth, draw_history
from .figures.points import CALLED, PLANNED, TIME, compare_variants, name_variant
from .figures.stacks import draw_ledgers, draw_memory, draw_operations, draw_stages, find_busiest_line, find_largest
from .growth import Sweep
from .page_model import Card, CaseView, Figure, Phrase, Value, VariantResult
from .runs import LONGEST_NAME, LONGEST_TERM, find_hue, fragment_of, list_files, name_in_sentence
from .sections import make_sections
from .sections.releases import make_history_section
from .troubles import make_problems_section

SPEEDUP, FIRST, NORMALISED = "speedup", "first_result_s", "normalised_s"

MOST_STEPS = 4
"""Changes from run to run that a sentence names."""

MOST_STAGES = 8
"""Variants whose first calls are drawn; the table has all."""

NOT_DRAWN = "A page with so many cases leaves out the figures, programs and buffers of each case."


def make_case_view(
    cases: Sequence[Case],
    earlier: Sequence[Sequence[Case]],
    sweeps: Sequence[Sweep],
    comparisons: Comparisons,
    *,
    is_drawn: bool = True,
) -> CaseView:
    """Return the view of a case.

    Args:
      cases: The case on each machine that ran it, as the newest run there has it; at least one.
      earlier: By machine, the case in all runs, the newest first.
      sweeps: Those of its suite.
      is_drawn: Whether it has figures and folded tables; a very large page has those of suites alone.
    """
    planned = cases[0].planned
    change_points = tuple(change for case in cases for change in comparisons.change_points_of(case))
    sections = (
        *(_make_changed_section(case, comparisons) for case in cases),
        *make_sections(cases),
        make_history_section(earlier, change_points),
        make_problems_section(cases),
    )
    return CaseView(
        id=fragment_of(cases[0]),
        name=shorten(planned.name, LONGEST_NAME),
        heading=write_case_heading(cases),
        figures=make_case_figures(cases, sweeps, earlier, comparisons.steps_of(cases[0])) if is_drawn else (),
        about=" ".join(filter(None, (shorten(planned.description, LONGEST_REASON), "" if is_drawn else NOT_DRAWN))),
        results=tuple(
            replace(make_result(variant), change=_write_change(comparisons, case, variant.planned.name))
            for case in cases
            for variant in case.shown
        ),
        sections=tuple(_tidy(section, is_drawn=is_drawn) for section in sections if section),
        claims=sum(len(case.planned.published) for case in cases),
        files=list_files(cases),
    )


def _write_change(comparisons: Comparisons, case: Case, variant: str) -> str:
    worst = comparisons.worst_of(case, variant)
    return "" if worst is None or not worst.variant else write_flag(worst)


def _make_changed_section(case: Case, comparisons: Comparisons) -> Section | None:
    """Return what changed since an earlier run: both numbers, the finding, and why; None without a comparison."""
    changes = comparisons.of(case)
    if not changes:
        return None
    rest = [change for change in changes if change.verdict not in TOLD]
    table = make_change_table([*order_changes(changes), *rest])
    part = Part(f"Against run {comparisons.earlier_of(case)}", tables=(table,))
    return Section("changed", "Change", "What changed since the earlier run?", "", (part,))


def _tidy(section: Section, *, is_drawn: bool) -> Section:
    """Return the section without columns that are empty in this case."""
    parts = (
        replace(
            part,
            tables=tuple(drop_empty_columns(table) for table in part.tables if is_drawn or not table.fold),
        )
        for part in section.parts
    )
    return replace(section, parts=tuple(parts))


def make_case_figures(
    cases: Sequence[Case],
    sweeps: Sequence[Sweep],
    earlier: Sequence[Sequence[Case]],
    steps: Sequence[tuple[str, Change]],
) -> tuple[Card, ...]:
    """Return the cards of a case that have a figure.

    Args:
      cases: The case on each machine that ran it.
      sweeps: Those of its suite.
      earlier: By machine, the case in all runs, the newest first.
      steps: Confirmed changes from run to run, each with the name of the later run.
    """
    variants = [variant for case in cases for variant in case.shown]
    traced = [variant for variant in variants if find_trace(variant) is not None]
    leading = sorted(traced, key=lambda variant: variant.planned.mode != "jit")
    speed = compare_variants(cases, with_dots=True)
    cards = (
        Card("speed", "How fast?", tuple(_describe_speed(cases, speed)), speed, others=tuple(_list_others(cases))),
        Card("time", "Where does the time go?", tuple(_describe_times(leading)), draw_ledgers(traced)),
        Card("first", "What does the first call cost?", (), draw_stages(variants[:MOST_STAGES], of_one_case=True)),
        *(_make_operations_card(variant) for variant in leading[:1]),
        Card("memory", "How much memory?", tuple(_describe_memory(cases)), draw_memory(cases)),
        *_list_growth(cases, sweeps),
        Card("history", "How was it in earlier runs?", tuple(_describe_steps(steps)), draw_history(earlier)),
    )
    return tuple(card for card in cards if card.figure is not None)


def write_case_heading(cases: Sequence[Case]) -> str:
    """Return the case's name, with the time of the variant that leads it on each device."""
    name = shorten(cases[0].planned.name, LONGEST_NAME)
    times = []
    for case in cases:
        variant = find_headline(case, case.planned.answer)
        reading = None if variant is None else variant.read(TIME)
        if variant is not None and reading is not None and reading.interval is not None:
            which = f"{name_in_sentence(variant)} " if len(case.shown) > 1 else ""
            times.append(f"{which}{write_reading(reading)[0]} on {case.run.where.upper()}")
    return f"{name}: {', '.join(times)}" if times else name


def _list_others(cases: Sequence[Case]) -> Iterator[tuple[str, Figure]]:
    """Yield the speed by normalised times and by throughput, with the name of each quantity; only times have dots."""
    for metric in (NORMALISED, THROUGHPUT):
        figure = compare_variants(cases, metric)
        if figure is not None:
            yield METRICS[metric].title, figure


def _describe_speed(cases: Sequence[Case], figure: Figure | None) -> Iterator[Phrase]:
    for case in cases:
        phrase = write_speed(case, figure)
        if phrase.tone is not Tone.MUTED:
            yield phrase


def _describe_times(traced: Sequence[Variant]) -> Iterator[Phrase]:
    for variant in traced[:1]:
        largest, bound = find_largest(variant), describe_bound_of(variant)
        share = "" if largest is None else f"{numbers.percent(largest[1])} {largest[0]}; "
        yield Phrase(f"{name_variant(variant)}: {share}{bound}.", find_hue(variant.case.run))


def _describe_steps(steps: Sequence[tuple[str, Change]]) -> Iterator[Phrase]:
    """Yield `0.7.1: 23× [22, 23] as long; 0.7.2: −96 % [−97, −95]`: the largest changes, in their order."""
    largest = sorted(range(len(steps)), key=lambda place: -steps[place][1].size)[:MOST_STEPS]
    several = len({change.variant for _, change in steps}) > 1
    texts = []
    for name, change in (steps[place] for place in sorted(largest)):
        number = " ".join(part for part in write_effect(change) if part not in ("", numbers.MISSING))
        number = f"{number} as long" if "×" in number else number
        texts.append(f"{name}{f' {shorten(change.variant, LONGEST_TERM)}' if several else ''}: {number}")
    if texts:
        more = f"; and {counted(len(steps) - len(texts), 'smaller change')}" if len(steps) > len(texts) else ""
        yield Phrase(f"{'; '.join(texts)}{more}.")


def _list_growth(cases: Sequence[Case], sweeps: Sequence[Sweep]) -> Iterator[Card]:
    """Yield a card for each param over which the case is one of several sizes."""
    own: dict[str, list[tuple[float, Sweep]]] = {}
    for sweep in sweeps:
        for size, member in sweep.cases:
            if any(member is case for case in cases):
                own.setdefault(sweep.param, []).append((size, sweep))
    for param, sized in own.items():
        metric = "compile_total_s" if cases[0].planned.measures == COMPILATION else TIME
        figure = draw_growth([sweep for _, sweep in sized], (metric,), here=sized[0][0])
        yield Card(f"growth-{param}", f"How does it grow with {param}?", (), figure)


def _make_operations_card(variant: Variant) -> Card:
    busiest = find_busiest_line(variant)
    text = "" if busiest is None else f"{numbers.percent(busiest[1])} of the device's time from {busiest[0]}."
    phrases = (Phrase(text, find_hue(variant.case.run)),) if text else ()
    return Card("operations", f"Which operations of {name_variant(variant)}?", phrases, draw_operations(variant))


def _describe_memory(cases: Sequence[Case]) -> Iterator[Phrase]:
    for case in cases:
        known = [variant for variant in case.shown if variant.read(PLANNED).interval is not None]
        if known:
            largest = max(known, key=lambda variant: variant.read(PLANNED).estimate or 0.0)
            planned, measured = (largest.read(name) for name in (PLANNED, CALLED))
            text = f"{name_variant(largest)} plans {write_reading(planned)[0]}"
            if measured.interval is not None:
                text += f", {METRICS[CALLED].title} {write_reading(measured)[0]}"
            yield Phrase(f"{text}.", find_hue(case.run))


def make_result(variant: Variant) -> VariantResult:
    """Return the numbers of a variant, in words and as they were read."""
    return VariantResult(
        variant=variant.planned.name,
        where=variant.case.run.label,
        run=variant.case.run.name,
        status=variant.status.value,
        tone=find_tone(variant.status),
        time=_make_time(variant),
        speedup=_make_speedup(variant),
        first=_make_value(variant.read(FIRST)),
        memory=_make_memory(variant),
        memory_of=_choose_memory(variant),
        doubt=_name_doubts(variant),
    )


def _name_doubts(variant: Variant) -> str:
    """Return why not to rely on the time or the speedup: `contended, wide`; empty without a reason."""
    words: list[str] = []
    for reading in map(variant.read, (TIME, SPEEDUP)):
        words += find_doubts(variant, reading)
        words += [WIDE] if is_vague(reading.interval) else []
    return ", ".join(dict.fromkeys(words))


def _make_time(variant: Variant) -> Value:
    """Return the time; a variant without one says why."""
    time = variant.read(TIME)
    if time.interval is None:
        shown = variant.status is not Status.OK
        return Value(variant.status.value if shown else numbers.MISSING, tone=find_tone(variant.status))
    text, bounds = write_reading(time)
    return _write_value(time, text, bounds, wide=is_vague(time.interval), doubts=find_doubts(variant, time))


def _make_speedup(variant: Variant) -> Value:
    if variant.is_baseline:
        return Value("baseline", tone=Tone.MUTED)
    speedup = variant.read(SPEEDUP)
    if speedup.interval is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text, bounds = write_reading(speedup)
    return _write_value(
        speedup,
        text,
        bounds,
        wide=is_vague(speedup.interval),
        tone=find_speedup_tone(speedup.interval),
        doubts=find_doubts(variant, speedup),
    )


def _make_value(reading: Reading) -> Value:
    if reading.interval is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text, bounds = write_reading(reading)
    return _write_value(reading, text, bounds, wide=is_vague(reading.interval))


def _make_memory(variant: Variant) -> Value:
    """Return planned peak memory; measured peak memory if there is no plan, or the plan leaves out working memory."""
    leading = _choose_memory(variant)
    reading = variant.read(CALLED if leading == "call" else PLANNED)
    if reading.estimate is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text = write(reading.metric, reading.estimate)
    return Value(f"{text} in a call" if leading == "call" else text, reading.estimate)


def _choose_memory(variant: Variant) -> str:
    """Return `plan` or `call`; an empty text if neither is known."""
    has_plan, has_call = (variant.read(name).estimate is not None for name in (PLANNED, CALLED))
    if has_call and (not has_plan or list_unplanned(variant)):
        return "call"
    return "plan" if has_plan else ""


def _write_value(
    reading: Reading, text: str, bounds: str, *, wide: bool, tone: Tone = Tone.PLAIN, doubts: Sequence[str] = ()
) -> Value:
    """`73 µs [70, 76]`, `73 µs (13 to 420) wide`, `! 73 µs [70, 76] contended`."""
    words = doubts or ((CONTENDED,) if reading.contended else ())
    interval = reading.interval
    around = "" if bounds in ("", numbers.MISSING) else bounds if bounds.startswith("[") else f"({bounds})"
    parts = ("!" if words else "", text, around, WIDE if wide else "", ", ".join(words))
    return Value(
        " ".join(filter(None, parts)),
        reading.estimate,
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        Tone.WARN if words else tone,
    )
