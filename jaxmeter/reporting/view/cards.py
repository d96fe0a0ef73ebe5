"""Cards: a question, a figure that fits it, and a sentence for each device. Questions of one kind share a card.

Which figure fits: a curve where the case that answers is one of several sizes, stages where the answer is a sum of
stages, else points. A suite may declare another one; where that has nothing to show, points stand in its place.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.derived import is_slowed_down
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Answer
from jaxmeter.harness.record.cases import COMPILATION
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.verdicts import Change, Changes, JudgedReport, Verdict
from .answers import LONGEST_QUESTION, LONGEST_SUITE, SuiteQuestion, choose_answer, is_known, rank_answer, write_answer
from .changes import describe_exact, describe_reports, write_effect
from .comparisons import Comparisons
from .figures.curves import draw_growth
from .figures.points import (
    SHARE,
    TIME,
    compare_jit,
    compare_suite,
    compare_variants,
    draw_shares,
    list_jit_speedups,
    name_apart,
)
from .figures.stacks import (
    SUMS_OF_STAGES,
    draw_ledgers,
    draw_memory,
    draw_stages,
    find_largest,
    find_shares,
    list_traced,
    name_row,
)
from .growth import FEWEST_SIZES, Sweep, group_cases
from .page_model import (
    Axis,
    Card,
    Estimate,
    Figure,
    Forest,
    ForestRow,
    Hue,
    Mark,
    Phrase,
    PointRow,
    Points,
    describe_rows,
)
from .runs import LONGEST_NAME, LONGEST_TERM, MachineRuns, find_hue, fragment_of, make_fragment, name_rows

MOST_CARDS, FEWEST_ASKED = 8, 4
"""Of the first screen, by rank; the rest unfolds below. With so few declared questions, the others stand there too."""

MOST_CHANGES = 6
"""Rows of the forest; all changes stand in their own list."""

MOST_LEDGERS = 6

MEMORY_RANK = 8.5
"""Among those of the suites."""

GROWING = ("execution_s", "items_per_s", "flops_share", "compile_total_s", "planned_peak_bytes", "return_s")
GROWING_OF_COMPILING = ("compile_total_s", "trace_s", "compile_s", "execution_s", "planned_peak_bytes")
"""Metrics with a curve each; where compiling is what is measured its stages come first."""

MOST_GROWTH = 12
"""Cards of a suite that show growth."""

MOST_STAGES = 10


def make_changed_card(comparisons: Comparisons) -> Card:
    """Return what changed since an earlier run, with the largest confirmed changes."""
    question = "What changed?"
    if not comparisons.of_machines:
        return Card("changed", question, (Phrase("No earlier run.", tone=Tone.MUTED),))
    phrases = tuple(_describe_changes(machine, changes) for machine, changes in comparisons.of_machines)
    confirmed = [
        change
        for _, changes in comparisons.of_machines
        for change in changes.having(Verdict.SLOWER, Verdict.FASTER)
        if change.metric == TIME and change.effect is not None and change.effect.estimate > 0
    ]
    return Card(
        "changed",
        question,
        phrases,
        _draw_forest(sorted(confirmed, key=lambda change: change.size, reverse=True)),
        "changed",
    )


def _describe_changes(machine: MachineRuns, changes: Changes) -> Phrase:
    hue = find_hue(machine.newest)
    if changes.conditions.incomparable:
        return Phrase(f"Not comparable: {changes.conditions.incomparable}.", hue, Tone.WARN)
    counts = Counter(change.verdict for change in changes.times)
    slower, faster = counts[Verdict.SLOWER], counts[Verdict.FASTER]
    suspected = counts[Verdict.SUSPECTED_SLOWER] + counts[Verdict.SUSPECTED_FASTER]
    since = _name_sides(machine, changes)
    how = next((change.condition for change in changes.times if change.condition), "")
    of = f"of {counted(len(changes.times), 'compared time')}{f', {how}' if how else ''}"
    also = f", {suspected} suspected" if suspected else ""
    exact = f" {sentence}" if (sentence := describe_exact(changes)) else ""
    if not slower and not faster:
        smallest = [change.smallest for change in changes.times if change.smallest is not None]
        least = f" Smallest detectable difference: {numbers.percent(statistics.median(smallest))}." if smallest else ""
        return Phrase(f"{since}: no confirmed change {of}{also}.{least}{exact}", hue)
    confirmed = ", ".join(f"{number} {word}" for number, word in ((slower, "slower"), (faster, "faster")) if number)
    return Phrase(f"{since}: {confirmed} {of}{also}.{exact}", hue, Tone.WORSE if slower else Tone.GOOD)


def _name_sides(machine: MachineRuns, changes: Changes) -> str:
    """Return `jax 0.4.31 → 0.10.2`, or when the earlier run was where both have one release."""
    before = next((run for run in machine.runs if run.manifest.run_id == changes.before), None)
    if before is None:
        return "Since the earlier run"
    was, now_is = (run.environment.packages.get("jax", "") for run in (before, machine.newest))
    if was != now_is:
        return f"jax {was} → {now_is}"
    then, now = before.manifest.started, machine.newest.manifest.started
    return f"Since {then[:10]}" if then[:10] != now[:10] else f"Since {then[:16].replace('T', ' ')}"


def _draw_forest(changes: Sequence[Change]) -> Forest | None:
    names = name_rows([(change.suite, change.case, change.variant) for change in changes])
    rows = tuple(
        _make_forest_row(change, names[change.suite, change.case, change.variant]) for change in changes[:MOST_CHANGES]
    )
    if not rows:
        return None
    alt = "Confirmed changes of times. " + describe_rows(row.mark.says for row in rows)
    return Forest(alt, Axis("change of the time, log", Unit.RATIO, is_log=True), rows)


def _make_forest_row(change: Change, label: str) -> ForestRow:
    effect = change.effect
    assert effect is not None
    text = " ".join(part for part in write_effect(change) if part not in ("", numbers.MISSING))
    hue = Hue.SLOWER if effect.estimate > 1 else Hue.FASTER
    name = shorten(f"{change.case} {change.variant}", LONGEST_NAME)
    says = f"{name}: {change.verdict.value}, {text}{f', {change.condition}' if change.condition else ''}"
    fragment = make_fragment("case", change.suite, change.case)
    mark = Mark(Estimate(effect.estimate, effect.low, effect.high), hue, says, change.variant, case=fragment)
    return ForestRow(label, mark, text)


def make_cards(
    questions: Sequence[SuiteQuestion], newest: Sequence[Case], *, has_reports: bool = False
) -> tuple[Card, ...]:
    """Return a card for each suite and for memory, in the order of their ranks.

    Doubtful answers come later, cards without an answer last.

    A suite of reported programs has no card of its own where the page judges the reports.

    Args:
      newest: On each machine, each case once.
    """
    cards = [
        _make_card(question, newest)
        for question in questions
        if not _is_of_jit(question.standing) and not (has_reports and question.standing.planned.reported)
    ]
    memory = _make_memory_card(newest)
    return tuple(sorted([*cards, *memory], key=_rank))


def _rank(card: Card) -> tuple[bool, bool, bool, float]:
    """Return what cards are sorted by: answers to declared questions first, of them those without a doubt."""
    is_doubtful = any(phrase.tone is Tone.WARN for phrase in card.phrases)
    return not card.is_answered, not card.is_asked, is_doubtful, card.rank


def split_cards(cards: Sequence[Card]) -> tuple[tuple[Card, ...], tuple[Card, ...]]:
    """Return the cards of the first screen, and the others."""
    asked = sum(card.is_asked and card.is_answered for card in cards)
    count = min(asked, MOST_CARDS) if asked >= FEWEST_ASKED else MOST_CARDS
    return tuple(cards[:count]), tuple(cards[count:])


def make_reports_card(reports: Sequence[JudgedReport]) -> Card | None:
    """Return what reports of releases say and what was measured here; None without any."""
    rows = [row for report in reports if (row := _make_report_row(report)) is not None]
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
    phrase = Phrase(f"{describe_reports(reports)}.{' Without a colour: no change is confirmed.' if has_plain else ''}")
    return Card("reports", "Do reported slowdowns happen here?", (phrase,), figure, "reports")


def _make_report_row(judged: JudgedReport) -> PointRow | None:
    if judged.ours is None:
        return None
    hue = Hue.INK if not differs(judged.ours) else Hue.SLOWER if judged.ours.estimate > 1 else Hue.FASTER
    number = " ".join(part for part in numbers.speedup_with_bounds(judged.ours) if part != numbers.MISSING)
    name = shorten(judged.case.partition("[")[0].replace("_", " "), LONGEST_TERM)
    says = f"{name}, jax {' → '.join(judged.releases)}: measured {number}"
    reported = f"reported {numbers.speedup(judged.theirs)}"
    marks = (
        Mark(Estimate(judged.theirs), hue, f"{name}: {reported}", is_reference=True),
        Mark(
            Estimate(judged.ours.estimate, judged.ours.low, judged.ours.high),
            hue,
            f"{says}, {reported}, {judged.here.value}",
            judged.variant,
        ),
    )
    return PointRow(f"{name}, {judged.releases[1]}", marks, numbers.speedup(judged.ours.estimate))


def make_jit_card(questions: Sequence[SuiteQuestion], newest: Sequence[Case]) -> Card | None:
    """Return what jit is worth in the cases that stand for a suite; None where none was timed by eager code too."""
    cases = [case for question in questions for case in question.cases]
    figure = compare_jit(cases, newest)
    if figure is None:
        return None
    question = "Is jit worth it?"
    speedups = list_jit_speedups(cases)
    pairs = [(speedup, case) for speedup, case, has_trap in speedups if not has_trap]
    if not pairs:
        phrase = Phrase("Each speedup is of a variant with a trap.", tone=Tone.WARN)
        return Card("jit", question, (phrase,), figure, fragment_of(speedups[0][1]))
    smallest, (largest, surest) = (
        min((speedup for speedup, _ in pairs), key=lambda speedup: speedup.estimate),
        max(pairs, key=lambda pair: pair[0].estimate),
    )
    words = " to ".join(
        " ".join(part for part in numbers.speedup_with_bounds(speedup) if part != numbers.MISSING)
        for speedup in dict.fromkeys((smallest, largest))
    )
    left_out = len(speedups) - len(pairs)
    doubt = f"Without {counted(left_out, 'speedup')} of variants with a trap." if left_out else ""
    return Card(
        "jit", question, (Phrase(f"jit is {words} as fast as eager.", doubt=doubt),), figure, fragment_of(surest)
    )


def make_time_card(questions: Sequence[SuiteQuestion], newest: Sequence[Case]) -> Card | None:
    """Return where the time of traced steps goes, of the cases that stand for a suite; None without a capture."""
    ordered = sorted(questions, key=lambda question: rank_answer(question.standing))
    traced = list_traced([case for question in ordered for case in question.cases])[:MOST_LEDGERS]
    figure = draw_ledgers(traced, newest)
    if figure is None:
        return None
    alike = [variant for variant in traced if not is_slowed_down(variant)]
    parts = [(largest, variant) for variant in alike if (largest := find_largest(variant)) is not None]
    if not parts:
        variant = traced[0]
        part, share = find_largest(variant) or ("", 0.0)
        text = f"{name_row(variant, newest)}: {numbers.percent(share)} {part} of the traced step."
        doubt = "Tracing slows the step down." if len(traced) == 1 else "Tracing slows these steps down."
        phrase = Phrase(f"{text[:1].upper()}{text[1:]}", find_hue(variant.case.run), doubt=doubt)
        return Card("time", "Where does the time go?", (phrase,), figure, fragment_of(variant.case))
    (part, share), variant = min(parts, key=lambda pair: (pair[0][0] == "device", -pair[0][1]))
    overhead = _describe_overhead(alike, newest, variant, part)
    text = f"{name_row(variant, newest)}: {numbers.percent(share)} {part}.{overhead}"
    slowed = (
        f" {len(traced) - len(alike)} of {len(traced)} are slowed down by tracing." if len(alike) < len(traced) else ""
    )
    phrase = Phrase(f"{text[:1].upper()}{text[1:]}{slowed}", find_hue(variant.case.run))
    captured = {find_hue(each.case.run) for each in traced}
    others = dict.fromkeys(hue for case in newest if (hue := find_hue(case.run)) not in captured)
    without = (Phrase("No capture was read.", hue, Tone.MUTED) for hue in others)
    return Card("time", "Where does the time go?", (phrase, *without), figure, fragment_of(variant.case))


def _describe_overhead(traced: Sequence[Variant], newest: Sequence[Case], leading: Variant, largest: str) -> str:
    """Return ` Overhead: 25 % dispatch, input pipeline.`, the largest, where the device is busy so far."""
    if largest != "device":
        return ""
    parts = [(share, part, each) for each in traced for part, share in find_shares(each).items() if part != "device"]
    share, part, variant = max(parts, key=lambda entry: entry[0])
    where = "" if variant is leading else f", {name_row(variant, newest)}"
    return f" Overhead: {numbers.percent(share)} {part}{where}."


def choose_figure(answer: Answer | None, cases: Sequence[Case], newest: Sequence[Case]) -> Figure | None:
    """Return the figure that shows an answer; None where nothing has a number.

    Args:
      cases: The case that stands for the suite, on each machine that ran it.
      newest: On each machine, each case once.
    """
    metric = TIME if answer is None else answer.metric
    focus = () if answer is None else answer.variants
    wanted = "" if answer is None else answer.figure
    shown = [variant for case in cases for variant in case.shown]
    if wanted == "ledger" and (figure := draw_ledgers(shown)) is not None:
        return figure
    if not is_known(metric):
        return None
    sweeps = [sweep for case in cases if (sweep := _find_sweep(case, newest)) is not None]
    if wanted in ("", "growth") and sweeps and (growth := draw_growth(sweeps, (metric,), focus)) is not None:
        return growth
    if wanted == "stages" or (not wanted and metric in SUMS_OF_STAGES):
        stages = draw_stages([each for each in shown if not focus or each.name in focus], metric, of_one_case=True)
        if stages is not None:
            return stages
    return compare_variants(cases, metric, is_small=True)


def _make_card(question: SuiteQuestion, newest: Sequence[Case]) -> Card:
    suite, case, cases = question.suite, question.standing, question.cases
    answer = choose_answer(case)
    asked = case.planned.question or case.planned.description if answer is None else answer.question
    figure = choose_figure(answer, cases, newest)
    return Card(
        id=shorten(suite, LONGEST_SUITE),
        question=shorten(asked or f"{suite[:1].upper()}{suite[1:].replace('_', ' ')}", LONGEST_QUESTION),
        phrases=tuple(_write_phrase(each, cases, figure) for each in cases),
        figure=figure,
        target=fragment_of(case),
        rank=rank_answer(case),
        is_asked=case.planned.answer is not None,
    )


def _write_phrase(case: Case, cases: Sequence[Case], figure: Figure | None) -> Phrase:
    """Return what answers the question by one case; with its params where another device has others."""
    phrase = write_answer(case, figure)
    if len({each.planned.name for each in cases}) == 1:
        return phrase
    return replace(phrase, text=f"{phrase.text.removesuffix('.')}; {name_apart(case, cases)}.")


def _make_memory_card(newest: Sequence[Case]) -> list[Card]:
    figure = draw_shares(newest)
    if figure is None:
        return []
    largest = figure.rows[0]
    share = numbers.percent(largest.marks[0].estimate.value)
    beyond = sum((variant.read(SHARE).estimate or 0.0) > 1 for case in newest for variant in case.shown)
    fits = f" {counted(beyond, 'variant')} without room." if beyond else " All fit."
    text = f"Largest: {largest.label}, {share} of JAX's memory.{fits}"
    phrase = Phrase(text, tone=Tone.BAD if beyond else Tone.PLAIN)
    return [Card("memory", "How much memory, does it fit?", (phrase,), figure, rank=MEMORY_RANK)]


def _find_sweep(case: Case, newest: Sequence[Case]) -> Sweep | None:
    """Return the cases of the same run that differ from a case in a number only; None of fewer than three."""
    own = [each for each in newest if each.run is case.run and each.planned.workload == case.planned.workload]
    for param in case.planned.params:
        for sweep in group_cases(own, param):
            has_case = any(each is case for _, each in sweep.cases)
            if has_case and len({size for size, _ in sweep.cases}) >= FEWEST_SIZES:
                return sweep
    return None


def _is_of_jit(case: Case) -> bool:
    """Return whether a suite asks what jit is worth: one implementation by jit against the same by eager code."""
    answer = case.planned.answer
    if answer is None or answer.against is None or answer.metric != TIME:
        return False
    jit, eager = (case.find(name) for name in answer.variants)
    if jit is None or eager is None or jit.planned.implementation != eager.planned.implementation:
        return False
    return (jit.planned.mode, eager.planned.mode) == ("jit", "eager")


def make_suite_figures(standing: Sequence[Case], cases: Sequence[Case], sweeps: Sequence[Sweep]) -> tuple[Card, ...]:
    """Return the cards of a suite that have a figure.

    Args:
      standing: The case that answers the suite's question, on each machine that ran it.
      cases: All of the suite, on each machine each once.
      sweeps: Its cases that differ in one param.
    """
    cards = (
        Card("speed", "How fast?", (), compare_suite(cases)),
        *list(_list_growth(sweeps))[:MOST_GROWTH],
        Card("first", "What does the first call cost?", (), draw_stages(_choose_compiled(cases))),
        Card("memory", "How much memory?", (), draw_memory(standing)),
    )
    return tuple(card for card in cards if card.figure is not None)


def _list_growth(sweeps: Sequence[Sweep]) -> Iterator[Card]:
    """Yield a card for each metric over each param, all devices in one figure."""
    groups: dict[tuple[str, str, str], list[Sweep]] = {}
    for sweep in sweeps:
        groups.setdefault((sweep.workload, sweep.fixed, sweep.param), []).append(sweep)
    for (workload, fixed, param), own in groups.items():
        is_of_compiling = all(case.planned.measures == COMPILATION for _, case in own[0].cases)
        for metric in GROWING_OF_COMPILING if is_of_compiling else GROWING:
            figure = draw_growth(own, (metric,))
            if figure is not None:
                title = f"{METRICS[metric].title} over {param}"
                where = f": {shorten(f'{workload} {fixed}'.strip(), LONGEST_NAME)}" if len(groups) > 1 else ""
                yield Card(
                    f"{metric}-{shorten(workload, LONGEST_TERM)}", f"{title[:1].upper()}{title[1:]}{where}", (), figure
                )


def _choose_compiled(cases: Sequence[Case]) -> list[Variant]:
    """Return the first compiled variant of each case."""
    compiled = ((each for each in case.shown if each.planned.mode in ("jit", "aot")) for case in cases)
    return [variant for variants in compiled if (variant := next(variants, None)) is not None][:MOST_STAGES]
