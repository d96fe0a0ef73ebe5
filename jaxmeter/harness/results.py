"""The numbers of a run for who has just measured: a table where they are few, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Table, Tone, say
from jaxmeter.harness.metrics.across import find_timing
from jaxmeter.harness.metrics.derived import describe_bound_of
from jaxmeter.harness.metrics.metric import Lack, Reading
from jaxmeter.harness.metrics.plausibility import find_disagreement, find_objection, is_same_program
from jaxmeter.harness.metrics.precision import (
    describe_smallest,
    explain_scatter,
    find_smallest,
    list_smallest,
    suggest_more,
)
from jaxmeter.harness.metrics.reading import Run, Variant, split_platforms
from jaxmeter.harness.metrics.statistics import SHOWN_CONFIDENCE, differs
from jaxmeter.harness.metrics.write import write
from jaxmeter.harness.record import RunRecord, Status
from jaxmeter.harness.record.outcomes import describe_trap, find_traps, gist_of, join_remarks, list_own_faults
from jaxmeter.harness.record.wording import counted

MOST_LINES = 24
"""More numbers are for a page."""

MOST_SCATTERED = 5
"""Largest number of speedups whose scatter the terminal explains; the report has all."""

LONGEST_REPEATED = 60
"""Characters of a reason that is repeated for each variant. A longer one is there once, and the others refer to it."""

LEVEL = numbers.percent(SHOWN_CONFIDENCE)
COLUMNS = (
    Column(""),
    Column("time", LEVEL, numeric=True),
    Column("speedup", LEVEL, numeric=True),
    Column(""),
)


def list_results(run: RunRecord) -> list[dict[str, Any]]:
    """Return by planned variant its status, time, speedup over the case's baseline variant and throughput.

    Numbers have intervals, and times are seconds. A missing number is null. `disagreement` is null if time and speedup
    agree, and `no_speedup` if there is no objection to a speedup. `smallest_difference`, the smallest detectable one as
    a share, is null without a speedup, and `scatter` if the speedup scatters as others do.
    """
    return [
        {
            "case": variant.planned_case.name,
            "variant": variant.planned.name,
            "status": variant.status.value,
            "execution_s": _tell(variant.read("execution_s")),
            "speedup": _tell(variant.read("speedup")),
            "smallest_difference": find_smallest(variant),
            "items_per_s": _tell(variant.read("items_per_s")),
            "no_speedup": find_objection(variant.outcomes) or None,
            "compiles_per_call": _count_compiles(variant),
            "bound": describe_bound_of(variant) or None,
            "disagreement": find_disagreement(variant, "execution_s") or None,
            "scatter": explain_scatter(variant) or None,
            "own_faults": list_own_faults(variant.outcomes.values()),
            "traps": [describe_trap(trap) for trap in find_traps(variant.outcomes)],
        }
        for variant in _list_variants(run)
    ]


def describe_own_faults(run: RunRecord) -> Iterator[str]:
    """Yield a line for each failure of jaxmeter's own analysis, with all variants of which something is unknown."""
    remarks = (
        (f"{variant.planned_case.name} {variant.planned.name}", fault)
        for variant in _list_variants(run)
        for fault in list_own_faults(variant.outcomes.values())
    )
    yield from join_remarks(remarks)


def describe_results(run: RunRecord) -> tuple[Part, ...]:
    """Return a table with a row for each variant, and what to doubt; nothing where there are too many."""
    if sum(len(case.variants) for case in run.manifest.cases) > MOST_LINES:
        return ()
    notes = {record.id: record.notes for record in run.cases}
    groups = []
    for case in Run(run).cases:
        firsts: dict[tuple[str, str], str] = {}
        rows = tuple(_make_row(variant, firsts) for variant in case.variants)
        said = "; ".join(f"note: {note}" for note in notes.get(case.planned.id, ()))
        groups.append(Group(rows, case.planned.name, said))
    table = Table("", COLUMNS, tuple(groups))
    return Part(tables=(table,)), say(*_list_doubts(_list_variants(run)), tone=Tone.WARN)


def describe_precision(run: RunRecord) -> Iterator[str]:
    """Yield the smallest detectable differences of the run, and how to detect smaller differences.

    If there are too many variants for lines of their own, also yield speedups that scatter far more than the others.
    """
    platforms = split_platforms(Run(run))
    for platform in platforms:
        variants = [variant for case in platform.cases for variant in case.shown]
        if smallest := list(list_smallest(variants)):
            where = f"{platform.where}: " if len(platforms) > 1 else ""
            sentences = (f"{where}{describe_smallest(smallest)}.", suggest_more(smallest, run.manifest.settings))
            yield " ".join(filter(None, sentences))
        if len(variants) > MOST_LINES:
            reasons = [(variant, reason) for variant in variants if (reason := explain_scatter(variant))]
            for variant, reason in reasons[:MOST_SCATTERED]:
                yield f"! {variant.planned_case.name} {variant.planned.name}: {reason}"
            if len(reasons) > MOST_SCATTERED:
                more = counted(len(reasons) - MOST_SCATTERED, "more speedup")
                yield f"! the report explains the scatter of {more}"


def _list_doubts(variants: Iterable[Variant]) -> Iterator[str]:
    """Each trap, and each time that is at odds with a speedup, once with the variants that have it."""
    alike: dict[str, dict[str, None]] = {}
    for variant in variants:
        sentences = [describe_trap(trap) for trap in find_traps(variant.outcomes)]
        for sentence in filter(None, (*sentences, find_disagreement(variant, "execution_s"), explain_scatter(variant))):
            alike.setdefault(sentence, {})[variant.planned.name] = None
    yield from (f"! {', '.join(names)}: {sentence}" for sentence, names in alike.items())


def _list_variants(run: RunRecord) -> Iterator[Variant]:
    yield from (variant for case in Run(run).cases for variant in case.variants)


def _tell(reading: Reading) -> dict[str, Any] | None:
    interval = reading.interval
    if interval is None:
        return None
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "processes": interval.count,
        "contended": reading.contended,
    }


def _make_row(variant: Variant, firsts: dict[tuple[str, str], str]) -> Row:
    """Time, speedup and what to know of both, or how it ended.

    Args:
      firsts: The first variant of the case with each remark, by its gist. A long one refers to it.
    """
    name = variant.planned.name
    time = variant.read("execution_s")
    if time.interval is None:
        probe, worst = variant.worst
        reason = (worst.reason if probe or worst.status is not Status.LOST else None) or ""
        words = f"{variant.status.value}: {reason}"
        first = firsts.setdefault(gist_of(name, words), name)
        if first != name and len(words) > LONGEST_REPEATED:
            reason = f"as {first}"
        tone = Tone.PLAIN if variant.status is Status.OK else Tone.WARN
        return Row((Cell(name), Cell(variant.status.value, tone=tone), Cell(), Cell(reason)))
    is_trapped = bool(find_traps(variant.outcomes))
    is_doubted = is_trapped or bool(find_disagreement(variant, "execution_s"))
    speedup, remark = _describe_speedup(variant)
    parts = (remark, _describe_throughput(variant), _describe_compiling(variant), describe_bound_of(variant))
    return Row(
        (
            Cell(name),
            _mark(time, numbers.time_with_bounds(time.interval), is_doubted=is_doubted),
            speedup if speedup is not None else Cell(),
            Cell("; ".join(filter(None, parts))),
        )
    )


def _mark(reading: Reading, written: tuple[str, str], *, is_doubted: bool) -> Cell:
    """Return a number with its bounds, marked where it is not to be trusted."""
    text, bounds = written
    is_marked = is_doubted or bool(reading.contended)
    bounds = "" if bounds == numbers.MISSING else bounds
    return Cell(f"! {text}", bounds, Tone.WARN) if is_marked else Cell(text, bounds)


def _describe_speedup(variant: Variant) -> tuple[Cell | None, str]:
    """Return the speedup, if there is one, and why there is none, or whether it is decided."""
    if variant.planned.name == variant.planned_case.baseline:
        return Cell("baseline", tone=Tone.MUTED), ""
    speedup = variant.read("speedup")
    if speedup.interval is None:
        is_withheld = speedup.fault is not None and speedup.fault.lack is Lack.WITHHELD
        return None, find_objection(variant.outcomes) or (speedup.fault.reason if is_withheld and speedup.fault else "")
    undecided = ""
    if speedup.interval.low is not None and not differs(speedup.interval):
        baseline = variant.find(variant.planned_case.baseline)
        is_same = baseline is not None and is_same_program(variant, baseline)
        undecided = "the same program" if is_same else "no confirmed difference"
    is_doubted = bool(find_traps(variant.outcomes))
    return _mark(speedup, numbers.speedup_with_bounds(speedup.interval), is_doubted=is_doubted), undecided


def _describe_throughput(variant: Variant) -> str:
    """`12 300 tokens/s`; empty where the workload declares no items. Its error is that of the time before it."""
    rate = variant.read("items_per_s")
    return "" if rate.estimate is None else write(rate.metric, rate.estimate)


def _describe_compiling(variant: Variant) -> str:
    """Say how many programs each call compiles within its time; empty if none."""
    count = _count_compiles(variant)
    return f"each call compiles {counted(count, 'program')}" if count else ""


def _count_compiles(variant: Variant) -> int | None:
    timing = find_timing(variant)
    return None if timing is None else timing.compiles_per_call
