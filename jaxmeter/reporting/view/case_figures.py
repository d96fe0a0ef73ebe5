"""The figures of a case, always in one order: how fast, where the time goes, first call, operations, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.traced import describe_bound_of, find_trace
from jaxmeter.harness.record.cases import COMPILATION

from .. import numbers
from ..compare.verdicts import Change
from ..text import counted, shorten
from ..write import write_reading
from .answers import find_headline, write_speed
from .changes import write_effect
from .figure_model import Figure
from .figures.growth import draw_growth
from .figures.history import draw_history
from .figures.ledger import draw_ledgers, draw_operations, find_busiest_line, find_largest
from .figures.marks import TIME, find_hue, name_variant
from .figures.memory import MEASURED, PLANNED, draw_memory
from .figures.speed import compare_variants
from .figures.stages import draw_stages
from .names import LONGEST_NAME, LONGEST_TERM, name_in_sentence
from .overview_model import Card, Phrase
from .sweeps import Sweep
from .tone import Tone

NORMALISED = "normalised_s"

MOST_STEPS = 4
"""Changes from run to run that a sentence names."""

MOST_STAGES = 8
"""Variants whose first calls are drawn; the table has all."""


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
    leading = sorted(traced, key=lambda one: one.planned.mode != "jit")
    speed = compare_variants(cases, with_dots=True)
    found = (
        Card(
            "speed",
            "How fast?",
            tuple(_describe_speed(cases, speed)),
            speed,
            others=tuple(_list_others(cases)),
        ),
        Card("time", "Where does the time go?", tuple(_describe_times(leading)), draw_ledgers(traced)),
        Card("first", "What does the first call cost?", (), draw_stages(variants[:MOST_STAGES], of_one_case=True)),
        *(_make_operations_card(variant) for variant in leading[:1]),
        Card("memory", "How much memory?", tuple(_describe_memory(cases)), draw_memory(cases)),
        *_list_growth(cases, sweeps),
        Card("history", "How was it in earlier runs?", tuple(_describe_steps(steps)), draw_history(earlier)),
    )
    return tuple(card for card in found if card.figure is not None)


def write_case_heading(cases: Sequence[Case]) -> str:
    """Return the case's name, with the time of the variant that leads it on each device."""
    name = shorten(cases[0].planned.name, LONGEST_NAME)
    told = []
    for case in cases:
        variant = find_headline(case, case.planned.answer)
        reading = None if variant is None else variant.read(TIME)
        if variant is not None and reading is not None and reading.interval is not None:
            which = f"{name_in_sentence(variant)} " if len(case.shown) > 1 else ""
            told.append(f"{which}{write_reading(reading)[0]} on {case.run.where.upper()}")
    return f"{name}: {', '.join(told)}" if told else name


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
    largest = sorted(range(len(steps)), key=lambda place: -_size(steps[place][1]))[:MOST_STEPS]
    several = len({one.variant for _, one in steps}) > 1
    told = []
    for name, one in (steps[place] for place in sorted(largest)):
        number = " ".join(part for part in write_effect(one) if part not in ("", numbers.MISSING))
        number = f"{number} as long" if "×" in number else number
        told.append(f"{name}{f' {shorten(one.variant, LONGEST_TERM)}' if several else ''}: {number}")
    if told:
        more = f"; and {counted(len(steps) - len(told), 'smaller change')}" if len(steps) > len(told) else ""
        yield Phrase(f"{'; '.join(told)}{more}.")


def _size(one: Change) -> float:
    estimate = 1.0 if one.effect is None or one.effect.estimate <= 0 else one.effect.estimate
    return max(estimate, 1 / estimate)


def _list_growth(cases: Sequence[Case], sweeps: Sequence[Sweep]) -> Iterator[Card]:
    """Yield a card for each param over which the case is one of several sizes."""
    own: dict[str, list[tuple[float, Sweep]]] = {}
    for sweep in sweeps:
        for size, one in sweep.cases:
            if any(one is case for case in cases):
                own.setdefault(sweep.param, []).append((size, sweep))
    for param, found in own.items():
        metric = "compile_total_s" if cases[0].planned.measures == COMPILATION else TIME
        figure = draw_growth([sweep for _, sweep in found], (metric,), here=found[0][0])
        yield Card(f"growth-{param}", f"How does it grow with {param}?", (), figure)


def _make_operations_card(variant: Variant) -> Card:
    busiest = find_busiest_line(variant)
    text = "" if busiest is None else f"{numbers.percent(busiest[1])} of the device's time from {busiest[0]}."
    phrases = (Phrase(text, find_hue(variant.case.run)),) if text else ()
    return Card("operations", f"Which operations of {name_variant(variant)}?", phrases, draw_operations(variant))


def _describe_memory(cases: Sequence[Case]) -> Iterator[Phrase]:
    for case in cases:
        known = [one for one in case.shown if one.read(PLANNED).interval is not None]
        if known:
            largest = max(known, key=lambda one: one.read(PLANNED).estimate or 0.0)
            planned, measured = (largest.read(name) for name in (PLANNED, MEASURED))
            text = f"{name_variant(largest)} plans {write_reading(planned)[0]}"
            if measured.interval is not None:
                text += f", {METRICS[MEASURED].title} {write_reading(measured)[0]}"
            yield Phrase(f"{text}.", find_hue(case.run))
