"""Compilation: where the time to the first result goes, stage by stage, and what program comes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from jaxmeter.harness.metrics.derived import STAGES
from jaxmeter.harness.metrics.metric import Family
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.metrics.table import METRICS, metrics_in
from jaxmeter.harness.record import CompilationDetails, Status

from ... import numbers
from ...text import counted
from ...write import write
from ..cells import (
    drop_empty_columns,
    group_rows,
    make_cell,
    make_column,
    make_interval_cell,
    make_name_cell,
    name_level,
)
from ..names import name_variant
from ..page_model import Cell, Column, Part, Row, Section, Table
from ..reasons import list_notes_of_section
from ..tone import Tone

QUESTION = "Where does the time to the first result go?"
PROBE = "compilation"
STAGE_NAMES = tuple(METRICS[stage].title for stage in STAGES)

EQUATIONS, ALL_EQUATIONS = "jaxpr_equations", "jaxpr_equations_nested"
OVER_DECLARED = {"counted_flops": "flops_over_declared", "counted_bytes": "bytes_over_declared"}
"""What stands below a count: its ratio to the cost that the workload declares."""

LOADED = ("executable_load_s", "executable_first_call_s", "export_s", "exported_load_s", "exported_first_call_s")
"""With one of these, a variant has a row in the table of programs that were kept and loaded again."""

FINGERPRINT_DIGITS = 8


def make_compilation_section(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that has a stage, then one for every program that was counted."""
    variants = [variant for case in cases for variant in case.shown]
    staged = _find_staged(cases)
    if not staged:
        return Section("compilation", "Compilation", QUESTION, describe_compilation(cases))
    described = [variant for variant in variants if _is_described(variant)]
    tables = (
        _stages(cases, staged, with_equations=not described),
        *([_loaded(cases)] if any(map(_is_loaded, variants)) else []),
        *([_programs(cases)] if described else []),
    )
    notes = (
        *_without_interval(staged),
        *_different(staged),
        *list_notes_of_section(variants, PROBE),
        *_rest(variants, staged),
    )
    return Section(
        "compilation", "Compilation", QUESTION, describe_compilation(cases), (Part(tables=tables, notes=notes),)
    )


def _find_staged(cases: Sequence[Case]) -> list[Variant]:
    return [variant for case in cases for variant in case.shown if _count_processes(variant)]


def _stages(cases: Sequence[Case], staged: Sequence[Variant], *, with_equations: bool) -> Table:
    """The table of times.

    Args:
      with_equations: Whether it shows the number of equations: where there is no table of programs.
    """
    level = name_level([variant.case.run for variant in staged])
    repeated = any(_count_processes(variant) > 1 for variant in staged)
    columns = (
        Column("Variant"),
        *map(make_column, STAGES),
        make_column("first_result_s", "Total", "cold"),
        Column("n", numeric=True),
        make_column("compiles"),
        make_column(EQUATIONS, "Jaxpr equations", ""),
    )
    compiles = any(variant.read("compiles").interval for variant in staged)
    entries = any("cache entries" in _compiles(variant).detail for variant in staged)
    caption = " ".join(
        [
            "Each variant in fresh processes, persistent compilation cache off; first call includes one execution.",
            "A mode without a stage has a dash: eager code compiles every operation within its first call.",
            *([f"n: cold processes. Below each mean: its {level}. The total is of their sums."] if repeated else []),
            *(["Compiles: programs until the first result; again: in a second, equal call."] if compiles else []),
            *(["Cache entries: kinds of call that the jitted function keeps, where not the same."] if entries else []),
        ]
    )
    row = partial(_stage_row, repeated=repeated, with_equations=with_equations)
    groups = group_rows(cases, lambda variant: row(variant) if variant in staged else None)
    return drop_empty_columns(Table(caption, columns, groups), kept=len(STAGES) + 2)


def _stage_row(variant: Variant, *, repeated: bool, with_equations: bool) -> Row:
    cells = (
        make_name_cell(variant),
        *(make_interval_cell(variant.read(stage)) for stage in STAGES),
        make_interval_cell(variant.read("first_result_s")),
        Cell(numbers.count(_count_processes(variant)) if repeated else "", tone=Tone.MUTED),
        _compiles(variant),
        make_cell(variant.read(EQUATIONS)) if with_equations else Cell(numbers.MISSING),
    )
    return Row(cells)


def _count_processes(variant: Variant) -> int:
    """How many cold processes its stages are of; 0 without any."""
    return max(len(variant.read(stage).known) for stage in STAGES)


def _compiles(variant: Variant) -> Cell:
    """Programs compiled until the first result; more in an equal call, or more than declared, is a fault."""
    reading = variant.read("compiles")
    compiles, again, entries = (variant.read(name).estimate for name in ("compiles", "recompiles", "cache_entries"))
    if compiles is None:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    budget = variant.planned.compiles
    count = partial(write, reading.metric)
    details = [
        f"! {count(again)} again" if again else "",
        f"{count(entries)} cache entries" if entries is not None and entries != compiles else "",
        f"{count(budget)} declared" if budget is not None else "",
    ]
    is_beyond = budget is not None and compiles + (again or 0) > budget
    tone = Tone.BAD if is_beyond else Tone.WARN if again else Tone.PLAIN
    return Cell(count(compiles), ", ".join(filter(None, details)), tone)


def _is_loaded(variant: Variant) -> bool:
    return any(variant.read(name).interval for name in LOADED)


def _loaded(cases: Sequence[Case]) -> Table:
    """What it takes to load a program instead of making it."""
    columns = (
        Column("Variant"),
        make_column("first_result_s", "From Python", "trace to first call"),
        make_column("executable_bytes", detail="size"),
        *map(make_column, LOADED[:2]),
        make_column("exported_bytes"),
        *map(make_column, LOADED[2:]),
    )
    caption = (
        "Programs kept as bytes and loaded again, in the same processes, after all else. An executable "
        "(serialize_executable) is compiled already and runs on this kind of device only; an exported program "
        "(jax.export) is compiled with its first call, wherever it is loaded."
    )
    groups = group_rows(cases, lambda variant: _loaded_row(variant) if _is_loaded(variant) else None)
    return drop_empty_columns(Table(caption, columns, groups))


def _loaded_row(variant: Variant) -> Row:
    times = [make_interval_cell(variant.read(name)) for name in ("first_result_s", *LOADED)]
    executable, exported = (make_cell(variant.read(name)) for name in ("executable_bytes", "exported_bytes"))
    return Row((make_name_cell(variant), times[0], executable, *times[1:3], exported, *times[3:]))


def _is_described(variant: Variant) -> bool:
    counts = (ALL_EQUATIONS, *(metric.name for metric in metrics_in(Family.PROGRAM)))
    return bool(find_fingerprints(variant)) or any(variant.read(name).interval for name in counts)


def _programs(cases: Sequence[Case]) -> Table:
    """What the compiler made, level by level."""
    columns = (
        Column("Variant"),
        make_column(EQUATIONS),
        *(make_column(metric.name) for metric in metrics_in(Family.PROGRAM)),
        Column("Fingerprint"),
    )
    caption = (
        "The program of each compiled variant, from Python's to the optimised one. Equations: at the top level, and at "
        "all levels. XLA's count for one device, and below it the ratio to the declared cost of one "
        "device. Equal fingerprints: equal programs."
    )
    groups = group_rows(cases, lambda variant: _program_row(variant) if _is_described(variant) else None, _declared)
    return drop_empty_columns(Table(caption, columns, groups, fold="Programs"))


def _program_row(variant: Variant) -> Row:
    levels = variant.read(ALL_EQUATIONS)
    at_all = "" if levels.interval is None else f"{write(levels.metric, levels.estimate)} at all levels"
    cells = (
        make_name_cell(variant),
        make_cell(variant.read(EQUATIONS), at_all),
        *(
            make_cell(variant.read(metric.name), _over_declared(variant, metric.name))
            for metric in metrics_in(Family.PROGRAM)
        ),
        _fingerprint(variant),
    )
    return Row(cells)


def _over_declared(variant: Variant, metric: str) -> str:
    """`1.02× declared`, or empty."""
    if metric not in OVER_DECLARED:
        return ""
    ratio = variant.read(OVER_DECLARED[metric])
    return f"{write(ratio.metric, ratio.estimate)} declared" if ratio.estimate else ""


def _declared(case: Case) -> str:
    """`declared: 2.00 GFLOP and 1.91 MiB`, or empty."""
    cost = case.planned.cost
    if cost is None:
        return ""
    parts = [
        write(METRICS["counted_flops"], cost.flops) if cost.flops is not None else "",
        write(METRICS["counted_bytes"], cost.bytes) if cost.bytes else "",
    ]
    return f"declared: {' and '.join(filter(None, parts))}" if any(parts) else ""


def find_fingerprints(variant: Variant) -> tuple[str, ...]:
    """Of the optimised programs that its cold processes compiled, each different one once."""
    details = variant.details(CompilationDetails)
    return () if details is None else details.fingerprints


def _fingerprint(variant: Variant) -> Cell:
    found = find_fingerprints(variant)
    if not found:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    short = ", ".join(fingerprint[:FINGERPRINT_DIGITS] for fingerprint in found)
    if len(found) == 1:
        return Cell(short)
    return Cell(
        short,
        f"! {len(found)} different programs in {counted(_count_processes(variant), 'process', 'processes')}",
        Tone.WARN,
    )


def describe_compilation(cases: Sequence[Case]) -> str:
    """Which stage takes most of the time of all, and who takes longest."""
    staged = _find_staged(cases)
    if not staged:
        return "No compilation stage was measured."
    whole = [
        (variant, cold.interval.estimate)
        for variant in staged
        if variant.read("compile_total_s").interval is not None
        and (cold := variant.read("first_result_s")).interval is not None
    ]
    if not whole:
        return "Only first calls were measured: no variant has stages of its own."
    totals = [math.fsum(variant.read(stage).estimate or 0.0 for variant, _ in whole) for stage in STAGES]
    main = max(range(len(STAGES)), key=totals.__getitem__)
    slowest, longest = max(whole, key=lambda pair: pair[1])
    total_s = math.fsum(totals)
    share = numbers.percent(totals[main] / total_s) if total_s else "no measurable part"
    return (
        f"Of the cold time of {counted(len(whole), 'compiled variant')}, {share} is {STAGE_NAMES[main]}. "
        f"Longest: {write(METRICS['first_result_s'], longest)}, {name_variant(slowest)}."
    )


def _without_interval(staged: Sequence[Variant]) -> tuple[str, ...]:
    few = [count for variant in staged if (count := _count_processes(variant)) < FEWEST_PROCESSES]
    if not few:
        return ()
    most = counted(max(few), "cold process", "cold processes")
    less = "" if len(set(few)) == 1 else "at most "
    return (f"No interval for {counted(len(few), 'variant')}: {less}{most} each; it takes {FEWEST_PROCESSES}.",)


def _different(staged: Sequence[Variant]) -> tuple[str, ...]:
    found = [variant for variant in staged if len(find_fingerprints(variant)) > 1]
    if not found:
        return ()
    who = counted(len(found), "variant")
    return (f"{who} got different programs from the compiler in different processes: see Programs, Fingerprint.",)


def _rest(variants: Sequence[Variant], staged: Sequence[Variant]) -> tuple[str, ...]:
    """What the table leaves out, so that nothing is missing without a word."""
    rest = [variant for variant in variants if variant not in staged]
    if not rest:
        return ()
    probed = [outcome.status for variant in rest if (outcome := variant.outcomes.get(PROBE))]
    bad = sum(status not in (Status.OK, Status.UNSUPPORTED, Status.SKIPPED) for status in probed)
    more = f", {bad} of them because the probe did not end well" if bad else ""
    return (f"Not listed: {counted(len(rest), 'variant')} without a compilation stage{more}.",)
