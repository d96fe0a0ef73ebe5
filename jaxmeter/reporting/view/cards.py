"""Answer cards: each suite's question with a figure that fits it, and questions of one kind on one card.

Which figure fits: a curve where the case that answers is one of several sizes, stages where the answer is a sum of
stages, else points. A suite may declare another one; where that has nothing to show, points stand in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import differs
from jaxmeter.harness.metrics.traced import is_slowed_down
from jaxmeter.harness.record import Answer

from .. import numbers
from ..compare.verdicts import JudgedReport
from ..text import counted, shorten
from .answers import LONGEST_QUESTION, LONGEST_SUITE, choose_answer, choose_answering, rank_answer, write_answer
from .figure_model import Axis, Estimate, Figure, Hue, Mark, PointRow, Points, describe_rows
from .figures.growth import draw_growth
from .figures.ledger import draw_ledgers, find_largest, find_shares, list_traced, name_row
from .figures.marks import find_hue, name_apart
from .figures.memory import SHARE, draw_shares
from .figures.speed import compare_jit, compare_variants, list_jit_speedups
from .figures.stages import SUMS_OF_STAGES, draw_stages
from .keys import fragment_of
from .names import LONGEST_TERM
from .overview_model import Card, Phrase
from .reports import describe_reports
from .sentences import is_known
from .sweeps import FEWEST_SIZES, Sweep, group_cases
from .tone import Tone

MOST_CARDS, FEWEST_ASKED = 8, 4
"""Of the first screen, by rank; the rest unfolds below. With so few declared questions, the others stand there too."""

MOST_LEDGERS = 6

MEMORY_RANK = 8.5
"""Among those of the suites."""


def make_cards(standing: Mapping[str, Case], told: Sequence[Case], *, has_reports: bool = False) -> tuple[Card, ...]:
    """Return a card for each suite and for memory, in the order of their ranks.

    Doubtful answers come later, cards without an answer last.

    A suite of reported programs has no card of its own where the page judges the reports.

    Args:
      standing: By suite, the case that stands for it.
      told: On each machine, each case once.
    """
    shown = {
        suite: case
        for suite, case in standing.items()
        if not _is_of_jit(case) and not (has_reports and case.planned.reported)
    }
    cards = [_make_card(suite, case, told) for suite, case in shown.items()]
    memory = _make_memory_card(told)
    return tuple(sorted([*cards, *memory], key=_rank))


def _rank(card: Card) -> tuple[bool, bool, bool, float]:
    """Return what cards are sorted by: answers to declared questions first, of them those without a doubt."""
    is_doubtful = any(phrase.tone is Tone.WARN for phrase in card.phrases)
    return not card.is_answered, not card.is_asked, is_doubtful, card.rank


def split_cards(cards: Sequence[Card]) -> tuple[tuple[Card, ...], tuple[Card, ...]]:
    """Return the cards of the first screen, and the others."""
    asked = sum(one.is_asked and one.is_answered for one in cards)
    count = min(asked, MOST_CARDS) if asked >= FEWEST_ASKED else MOST_CARDS
    return tuple(cards[:count]), tuple(cards[count:])


def make_reports_card(found: Sequence[JudgedReport]) -> Card | None:
    """Return what reports of releases say and what was measured here; None without any."""
    rows = [row for one in found if (row := _make_report_row(one)) is not None]
    if not rows:
        return None
    alt = describe_rows(row.marks[-1].says for row in rows)
    figure = Points(
        alt,
        Axis("times as long, log", Unit.RATIO, is_log=True),
        tuple(rows),
        mark_names=("measured", "reported"),
    )
    has_plain = any(mark.hue is Hue.INK for row in rows for mark in row.marks)
    phrase = Phrase(f"{describe_reports(found)}.{' Without a colour: no change is confirmed.' if has_plain else ''}")
    return Card("reports", "Do reported slowdowns happen here?", (phrase,), figure, "reports")


def _make_report_row(one: JudgedReport) -> PointRow | None:
    if one.ours is None:
        return None
    hue = Hue.INK if not differs(one.ours) else Hue.SLOWER if one.ours.estimate > 1 else Hue.FASTER
    number = " ".join(part for part in numbers.speedup_with_bounds(one.ours) if part != numbers.MISSING)
    name = shorten(one.case.partition("[")[0].replace("_", " "), LONGEST_TERM)
    says = f"{name}, jax {' → '.join(one.releases)}: measured {number}"
    reported = f"reported {numbers.speedup(one.theirs)}"
    marks = (
        Mark(Estimate(one.theirs), hue, f"{name}: {reported}", is_reference=True),
        Mark(
            Estimate(one.ours.estimate, one.ours.low, one.ours.high),
            hue,
            f"{says}, {reported}, {one.here.value}",
            one.variant,
        ),
    )
    return PointRow(f"{name}, {one.releases[1]}", marks, numbers.speedup(one.ours.estimate))


def make_jit_card(standing: Mapping[str, Case], told: Sequence[Case]) -> Card | None:
    """Return what jit is worth in the cases that stand for a suite; None where none was timed by eager code too."""
    cases = [one for case in standing.values() for one in _find_answering(case, told)]
    figure = compare_jit(cases, told)
    if figure is None:
        return None
    question = "Is jit worth it?"
    found = list_jit_speedups(cases)
    pairs = [(speedup, case) for speedup, case, has_trap in found if not has_trap]
    if not pairs:
        phrase = Phrase("Each speedup is of a variant with a trap.", tone=Tone.WARN)
        return Card("jit", question, (phrase,), figure, fragment_of(found[0][1]))
    smallest, (largest, surest) = (
        min((speedup for speedup, _ in pairs), key=lambda one: one.estimate),
        max(pairs, key=lambda pair: pair[0].estimate),
    )
    words = " to ".join(
        " ".join(part for part in numbers.speedup_with_bounds(one) if part != numbers.MISSING)
        for one in dict.fromkeys((smallest, largest))
    )
    left_out = len(found) - len(pairs)
    doubt = f"Without {counted(left_out, 'speedup')} of variants with a trap." if left_out else ""
    return Card(
        "jit", question, (Phrase(f"jit is {words} as fast as eager.", doubt=doubt),), figure, fragment_of(surest)
    )


def make_time_card(standing: Mapping[str, Case], told: Sequence[Case]) -> Card | None:
    """Return where the time of traced steps goes, of the cases that stand for a suite; None without a capture."""
    ordered = sorted(standing.values(), key=rank_answer)
    traced = list_traced([one for case in ordered for one in _find_answering(case, told)])[:MOST_LEDGERS]
    figure = draw_ledgers(traced, told)
    if figure is None:
        return None
    alike = [variant for variant in traced if not is_slowed_down(variant)]
    found = [(largest, variant) for variant in alike if (largest := find_largest(variant)) is not None]
    if not found:
        variant = traced[0]
        part, share = find_largest(variant) or ("", 0.0)
        text = f"{name_row(variant, told)}: {numbers.percent(share)} {part} of the traced step."
        doubt = "Tracing slows the step down." if len(traced) == 1 else "Tracing slows these steps down."
        phrase = Phrase(f"{text[:1].upper()}{text[1:]}", find_hue(variant.case.run), doubt=doubt)
        return Card("time", "Where does the time go?", (phrase,), figure, fragment_of(variant.case))
    (part, share), variant = min(found, key=lambda one: (one[0][0] == "device", -one[0][1]))
    text = f"{name_row(variant, told)}: {numbers.percent(share)} {part}.{_tell_overhead(alike, told, variant, part)}"
    slowed = (
        f" {len(traced) - len(alike)} of {len(traced)} are slowed down by tracing." if len(alike) < len(traced) else ""
    )
    phrase = Phrase(f"{text[:1].upper()}{text[1:]}{slowed}", find_hue(variant.case.run))
    captured = {find_hue(one.case.run) for one in traced}
    others = dict.fromkeys(hue for case in told if (hue := find_hue(case.run)) not in captured)
    without = (Phrase("No capture was read.", hue, Tone.MUTED) for hue in others)
    return Card("time", "Where does the time go?", (phrase, *without), figure, fragment_of(variant.case))


def _tell_overhead(traced: Sequence[Variant], told: Sequence[Case], leading: Variant, largest: str) -> str:
    """Return ` Overhead: 25 % dispatch, input pipeline.`, the largest, where the device is busy so far."""
    if largest != "device":
        return ""
    found = [(share, part, one) for one in traced for part, share in find_shares(one).items() if part != "device"]
    share, part, variant = max(found, key=lambda one: one[0])
    where = "" if variant is leading else f", {name_row(variant, told)}"
    return f" Overhead: {numbers.percent(share)} {part}{where}."


def choose_figure(answer: Answer | None, cases: Sequence[Case], told: Sequence[Case]) -> Figure | None:
    """Return the figure that shows an answer; None where nothing has a number.

    Args:
      cases: The case that stands for the suite, on each machine that ran it.
      told: On each machine, each case once.
    """
    metric = "execution_s" if answer is None else answer.metric
    focus = () if answer is None else answer.variants
    wanted = "" if answer is None else answer.figure
    shown = [one for case in cases for one in case.shown]
    if wanted == "ledger" and (figure := draw_ledgers(shown)) is not None:
        return figure
    if not is_known(metric):
        return None
    sweeps = [sweep for case in cases if (sweep := _find_sweep(case, told)) is not None]
    if wanted in ("", "growth") and sweeps and (growth := draw_growth(sweeps, (metric,), focus)) is not None:
        return growth
    if wanted == "stages" or (not wanted and metric in SUMS_OF_STAGES):
        stages = draw_stages([one for one in shown if not focus or one.name in focus], metric, of_one_case=True)
        if stages is not None:
            return stages
    return compare_variants(cases, metric, is_small=True)


def _make_card(suite: str, case: Case, told: Sequence[Case]) -> Card:
    cases = _find_answering(case, told)
    answer = choose_answer(case)
    question = case.planned.question or case.planned.description if answer is None else answer.question
    figure = choose_figure(answer, cases, told)
    return Card(
        id=shorten(suite, LONGEST_SUITE),
        question=shorten(question or f"{suite[:1].upper()}{suite[1:].replace('_', ' ')}", LONGEST_QUESTION),
        phrases=tuple(_write_phrase(one, cases, figure) for one in cases),
        figure=figure,
        target=fragment_of(case),
        rank=rank_answer(case),
        is_asked=case.planned.answer is not None,
    )


def _write_phrase(case: Case, cases: Sequence[Case], figure: Figure | None) -> Phrase:
    """Return what answers the question by one case; with its params where another device has others."""
    phrase = write_answer(case, figure)
    if len({one.planned.name for one in cases}) == 1:
        return phrase
    return replace(phrase, text=f"{phrase.text.removesuffix('.')}; {name_apart(case, cases)}.")


def _make_memory_card(told: Sequence[Case]) -> list[Card]:
    figure = draw_shares(told)
    if figure is None:
        return []
    largest = figure.rows[0]
    share = numbers.percent(largest.marks[0].estimate.value)
    beyond = sum((one.read(SHARE).estimate or 0.0) > 1 for case in told for one in case.shown)
    fits = f" {counted(beyond, 'variant')} without room." if beyond else " All fit."
    text = f"Largest: {largest.label}, {share} of JAX's memory.{fits}"
    phrase = Phrase(text, tone=Tone.BAD if beyond else Tone.PLAIN)
    return [Card("memory", "How much memory, does it fit?", (phrase,), figure, rank=MEMORY_RANK)]


def _find_answering(standing: Case, told: Sequence[Case]) -> list[Case]:
    """Return the case that answers the question on each machine that has an answer."""
    places: dict[tuple[str, str], list[Case]] = {}
    for case in told:
        places.setdefault((case.run.manifest.machine, case.run.where), []).append(case)
    found = (choose_answering(standing, own) for own in places.values())
    return [case for case in found if case is not None]


def _find_sweep(case: Case, told: Sequence[Case]) -> Sweep | None:
    """Return the cases of the same run that differ from one in a number only; None of fewer than three."""
    own = [one for one in told if one.run is case.run and one.planned.workload == case.planned.workload]
    for param in case.planned.params:
        for sweep in group_cases(own, param):
            has_case = any(one is case for _, one in sweep.cases)
            if has_case and len({size for size, _ in sweep.cases}) >= FEWEST_SIZES:
                return sweep
    return None


def _is_of_jit(case: Case) -> bool:
    """Return whether a suite asks what jit is worth: one implementation by jit against the same by eager code."""
    answer = case.planned.answer
    if answer is None or answer.against is None or answer.metric != "execution_s":
        return False
    one, other = (case.find(name) for name in answer.variants)
    if one is None or other is None or one.planned.implementation != other.planned.implementation:
        return False
    return (one.planned.mode, other.planned.mode) == ("jit", "eager")
