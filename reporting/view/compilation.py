"""Compilation: where the time to the first result goes, stage by stage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.record import Status

from .. import numbers
from ..text import one_of
from .measured import STAGES, Case, Variant
from .parts import Cell, Column, Group, Part, Row, Section, StackMark, Table, Tone
from .words import name_of, tone_of

QUESTION = "Where does the time to the first result go?"
STAGE_NAMES = ("trace", "lower", "compile", "first call")


def compilation(cases: Sequence[Case]) -> Section:
    """The section, with a row for every variant that has a stage."""
    variants = [variant for case in cases for variant in case.variants]
    staged = [variant for variant in variants if any(stage is not None for stage in variant.stages)]
    if not staged:
        return Section("compilation", "Compilation", QUESTION, "Empty: no compilation stage was measured.")
    columns = (
        Column("Variant"),
        *(Column(name, numeric=True) for name in STAGE_NAMES),
        Column("Total", "cold", numeric=True),
        Column("Jaxpr equations", numeric=True),
        Column("Share of the total", plot=True),
    )
    groups = tuple(
        Group(tuple(_row(variant) for variant in case.variants if variant in staged), case.label)
        for case in cases
        if any(variant in staged for variant in case.variants)
    )
    caption = (
        "Each variant in a fresh process with the persistent compilation cache off; first call includes one execution. "
        "A mode without a stage has a dash: eager code compiles every operation within its first call."
    )
    table = Table(caption, columns, groups, STAGE_NAMES)
    return Section(
        "compilation", "Compilation", QUESTION, _answer(staged), (Part(tables=(table,), notes=_rest(variants, staged)),)
    )


def _row(variant: Variant) -> Row:
    stages = variant.stages
    total = math.fsum(stage or 0.0 for stage in stages)
    shares = tuple((stage or 0.0) / total for stage in stages) if total > 0 else ()
    cells = (
        Cell(variant.planned.name, tone=tone_of(variant.status)),
        *(Cell(numbers.time(stage), tone=Tone.PLAIN if stage is not None else Tone.MUTED) for stage in stages),
        Cell(numbers.time(variant.cold)),
        Cell(numbers.count(variant.typical("jaxpr_equations", "compilation"))),
        Cell(mark=StackMark(shares)),
    )
    return Row(cells)


def _answer(staged: Sequence[Variant]) -> str:
    whole = [variant for variant in staged if variant.compile_total is not None and variant.cold]
    if not whole:
        return "Only first calls were measured: no variant has stages of its own."
    totals = [math.fsum(variant.stages[index] or 0.0 for variant in whole) for index in range(len(STAGES))]
    main = max(range(len(STAGES)), key=totals.__getitem__)
    slowest = max(whole, key=lambda variant: variant.cold or 0.0)
    share = numbers.percent(totals[main] / math.fsum(totals))
    return (
        f"Of the cold time of {one_of(len(whole), 'compiled variant')}, {share} is {STAGE_NAMES[main]}. "
        f"Longest: {numbers.time(slowest.cold)}, {name_of(slowest)}."
    )


def _rest(variants: Sequence[Variant], staged: Sequence[Variant]) -> tuple[str, ...]:
    """What the table leaves out, so that nothing is missing without a word."""
    rest = [variant for variant in variants if variant not in staged]
    if not rest:
        return ()
    probed = [outcome.status for variant in rest if (outcome := variant.outcomes.get("compilation"))]
    bad = sum(status not in (Status.OK, Status.UNSUPPORTED, Status.SKIPPED) for status in probed)
    more = f", {bad} of them because the probe did not end well" if bad else ""
    return (f"Not listed: {one_of(len(rest), 'variant')} without a compilation stage{more}.",)
