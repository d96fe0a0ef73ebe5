"""Compilation: where the time to the first result goes, stage by stage, and what program comes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from harness.record import Cost, Status
from harness.record.statistics import FEWEST_LAUNCHES

from .. import numbers
from ..text import one_of
from .measured import STAGES, Case, Variant
from .parts import Cell, Column, Part, Row, Section, StackMark, Table, Tone
from .words import grouped, level_of, measured_cell, name_cell, name_of, noted, without_empty

QUESTION = "Where does the time to the first result go?"
STAGE_NAMES = ("trace", "lower", "compile", "first call")

PROGRAM_COUNTS = (
    "jaxpr_equations_nested",
    "stablehlo_operations",
    "hlo_instructions",
    "hlo_fusions",
    "hlo_custom_calls",
    "hlo_collectives",
    "executable_bytes",
    "counted_flops",
    "counted_bytes",
)
"""With one of these, a variant has a row in the table of programs."""

LOADED = ("executable_load_s", "executable_first_call_s", "export_s", "exported_load_s", "exported_first_call_s")
"""With one of these, a variant has a row in the table of programs that were kept and loaded again."""

FINGERPRINT_DIGITS = 8


def compilation(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that has a stage, then one for every program that was counted."""
    variants = [variant for case in cases for variant in case.variants]
    staged = [variant for variant in variants if any(stage is not None for stage in variant.stages)]
    if not staged:
        return Section("compilation", "Compilation", QUESTION, "Empty: no compilation stage was measured.")
    described = [variant for variant in variants if _is_described(variant)]
    tables = (
        _stages(cases, staged, with_equations=not described),
        *([_loaded(cases)] if any(map(_is_loaded, variants)) else []),
        *([_programs(cases)] if described else []),
    )
    notes = (*_without_interval(staged), *_different(staged), *noted(variants, "compilation"), *_rest(variants, staged))
    return Section("compilation", "Compilation", QUESTION, _answer(staged), (Part(tables=tables, notes=notes),))


def _stages(cases: Sequence[Case], staged: Sequence[Variant], *, with_equations: bool) -> Table:
    """The table of times.

    Args:
      with_equations: Whether it shows the number of equations: where there is no table of programs.
    """
    level = level_of([variant.case.place for variant in staged])
    repeated = any(variant.processes > 1 for variant in staged)
    columns = (
        Column("Variant"),
        *(Column(name, numeric=True) for name in STAGE_NAMES),
        Column("Total", "cold", numeric=True),
        Column("n", numeric=True),
        Column("Compiles", numeric=True),
        Column("Jaxpr equations", numeric=True),
        Column("Seconds", "linear, by case", plot=True),
    )
    compiles = any(variant.most("compiles", "compilation") is not None for variant in staged)
    entries = any("cache entries" in _compiles(variant).detail for variant in staged)
    caption = " ".join(
        [
            "Each variant in fresh processes, persistent compilation cache off; first call includes one execution.",
            "A mode without a stage has a dash: eager code compiles every operation within its first call.",
            *(
                [f"n: cold processes. Below each mean stands its {level}; the total is of their sums."]
                if repeated
                else []
            ),
            *(["Compiles: programs until the first result; again: in a second, equal call."] if compiles else []),
            *(["Cache entries: kinds of call that the jitted function keeps, where not the same."] if entries else []),
            "A bar's length is its seconds relative to the slowest variant of its case.",
        ]
    )
    row = partial(_stage_row, repeated=repeated, with_equations=with_equations)
    groups = grouped(cases, lambda variant: row(variant) if variant in staged else None, _scale)
    return without_empty(Table(caption, columns, groups, STAGE_NAMES), kept=len(STAGES) + 2)


def _stage_row(variant: Variant, *, repeated: bool, with_equations: bool) -> Row:
    equations = variant.typical("jaxpr_equations", "compilation") if with_equations else None
    cells = (
        name_cell(variant),
        *(measured_cell(stage) for stage in variant.stages),
        measured_cell(variant.cold),
        Cell(numbers.count(variant.processes) if repeated else "", tone=Tone.MUTED),
        _compiles(variant),
        Cell(numbers.count(equations)),
        Cell(mark=StackMark(_shares(variant))),
    )
    return Row(cells)


def _shares(variant: Variant) -> tuple[float, ...]:
    """The stages relative to the slowest variant of the case."""
    longest = max(map(_length, variant.case.variants))
    return tuple(length / longest for length in _lengths(variant)) if longest > 0 else ()


def _lengths(variant: Variant) -> tuple[float, ...]:
    return tuple(0.0 if stage is None else stage.estimate for stage in variant.stages)


def _length(variant: Variant) -> float:
    return math.fsum(_lengths(variant))


def _scale(case: Case) -> str:
    return f"a bar of full width is {numbers.time(max(map(_length, case.variants)))}"


def _compiles(variant: Variant) -> Cell:
    """Programs compiled until the first result; more in an equal call, or more than declared, is a fault."""
    compiles, again = variant.most("compiles", "compilation"), variant.most("recompiles", "compilation")
    if compiles is None:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    budget = variant.planned.compiles
    entries = variant.most("cache_entries", "compilation")
    details = [
        f"! {numbers.count(again)} again" if again else "",
        f"{numbers.count(entries)} cache entries" if entries is not None and entries != compiles else "",
        f"{numbers.count(budget)} declared" if budget is not None else "",
    ]
    is_beyond = budget is not None and compiles + (again or 0) > budget
    tone = Tone.BAD if is_beyond else Tone.WARN if again else Tone.PLAIN
    return Cell(numbers.count(compiles), ", ".join(filter(None, details)), tone)


def _is_loaded(variant: Variant) -> bool:
    return any(variant.cold_times(name, "compilation") for name in LOADED)


def _loaded(cases: Sequence[Case]) -> Table:
    """What it takes to load a program instead of making it."""
    columns = (
        Column("Variant"),
        Column("From Python", "trace to first call", numeric=True),
        Column("Executable", "size", numeric=True),
        Column("Load", "executable", numeric=True),
        Column("First call", "executable", numeric=True),
        Column("Exported", "size", numeric=True),
        Column("Export", numeric=True),
        Column("Load", "exported", numeric=True),
        Column("First call", "exported", numeric=True),
    )
    caption = (
        "Programs kept as bytes and loaded again, in the same processes, after all else. An executable "
        "(serialize_executable) is compiled already and runs on this kind of device only; an exported program "
        "(jax.export) is compiled with its first call, wherever it is loaded."
    )
    groups = grouped(cases, lambda variant: _loaded_row(variant) if _is_loaded(variant) else None, lambda case: "")
    return without_empty(Table(caption, columns, groups))


def _loaded_row(variant: Variant) -> Row:
    def size(name: str) -> Cell:
        return Cell(numbers.memory(variant.typical(name, "compilation")))

    load, first_call, *exported = (measured_cell(variant.cold_time(name, "compilation")) for name in LOADED)
    sizes = size("executable_bytes"), size("exported_bytes")
    return Row((name_cell(variant), measured_cell(variant.cold), sizes[0], load, first_call, sizes[1], *exported))


def _is_described(variant: Variant) -> bool:
    return bool(variant.fingerprints) or any(variant.most(name, "compilation") is not None for name in PROGRAM_COUNTS)


def _programs(cases: Sequence[Case]) -> Table:
    """What the compiler made, level by level."""
    columns = (
        Column("Variant"),
        Column("Equations", "jaxpr", numeric=True),
        Column("Operations", "StableHLO", numeric=True),
        Column("Instructions", "HLO", numeric=True),
        Column("Fusions", numeric=True),
        Column("Custom calls", numeric=True),
        Column("Collectives", numeric=True),
        Column("Executable", numeric=True),
        Column("FLOP", "XLA's count", numeric=True),
        Column("Bytes", "XLA's count", numeric=True),
        Column("Fingerprint"),
    )
    caption = (
        "The program of each compiled variant, from Python's to the optimised one. Equations: at the top level, and at "
        "all levels. What XLA counts for one device stands above its ratio to the declared cost, of several devices to "
        "one's share. Equal fingerprints: equal programs."
    )
    groups = grouped(cases, lambda variant: _program_row(variant) if _is_described(variant) else None, _declared)
    return without_empty(Table(caption, columns, groups, fold="Programs"))


def _program_row(variant: Variant) -> Row:
    def counted(name: str, write: Callable[[float | None], str] = numbers.count, detail: str = "") -> Cell:
        return Cell(write(variant.typical(name, "compilation")), detail)

    levels = variant.typical("jaxpr_equations_nested", "compilation")
    cost = variant.case.planned.cost or Cost()
    cells = (
        name_cell(variant),
        counted("jaxpr_equations", detail="" if levels is None else f"{numbers.count(levels)} at all levels"),
        counted("stablehlo_operations"),
        counted("hlo_instructions"),
        counted("hlo_fusions"),
        counted("hlo_custom_calls"),
        counted("hlo_collectives"),
        counted("executable_bytes", numbers.memory),
        counted("counted_flops", _flop, _of_declared(variant, "counted_flops", cost.flops)),
        counted("counted_bytes", numbers.memory, _of_declared(variant, "counted_bytes", cost.bytes)),
        _fingerprint(variant),
    )
    return Row(cells)


def _flop(number: float | None) -> str:
    return numbers.amount(number, "FLOP")


def _of_declared(variant: Variant, metric: str, declared: int | float | None) -> str:
    """`1.02× declared`, or empty. XLA counts what one device does, a cost what all do."""
    counted, least = variant.typical(metric, "compilation"), numbers.usable(declared)
    if counted is None or least is None or least <= 0:
        return ""
    return f"{numbers.gain(counted * variant.case.planned.devices / least)} declared" if counted else ""


def _declared(case: Case) -> str:
    """`declared: 2.00 GFLOP and 1.91 MiB`, or empty."""
    cost = case.planned.cost
    if cost is None:
        return ""
    parts = [_flop(cost.flops) if cost.flops is not None else "", numbers.memory(cost.bytes) if cost.bytes else ""]
    return f"declared: {' and '.join(filter(None, parts))}" if any(parts) else ""


def _fingerprint(variant: Variant) -> Cell:
    found = variant.fingerprints
    if not found:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    short = ", ".join(fingerprint[:FINGERPRINT_DIGITS] for fingerprint in found)
    if len(found) == 1:
        return Cell(short)
    return Cell(
        short, f"! {len(found)} different programs in {one_of(variant.processes, 'process', 'processes')}", Tone.WARN
    )


def _answer(staged: Sequence[Variant]) -> str:
    whole = [(variant, cold) for variant in staged if variant.compile_total is not None and (cold := variant.cold)]
    if not whole:
        return "Only first calls were measured: no variant has stages of its own."
    totals = [math.fsum(_lengths(variant)[index] for variant, _ in whole) for index in range(len(STAGES))]
    main = max(range(len(STAGES)), key=totals.__getitem__)
    slowest, longest = max(whole, key=lambda pair: pair[1].estimate)
    share = numbers.percent(totals[main] / math.fsum(totals))
    return (
        f"Of the cold time of {one_of(len(whole), 'compiled variant')}, {share} is {STAGE_NAMES[main]}. "
        f"Longest: {numbers.time(longest.estimate)}, {name_of(slowest)}."
    )


def _without_interval(staged: Sequence[Variant]) -> tuple[str, ...]:
    few = [variant.processes for variant in staged if variant.processes < FEWEST_LAUNCHES]
    if not few:
        return ()
    most = one_of(max(few), "cold process", "cold processes")
    less = "" if len(set(few)) == 1 else "at most "
    return (f"No interval for {one_of(len(few), 'variant')}: {less}{most} each; it takes {FEWEST_LAUNCHES}.",)


def _different(staged: Sequence[Variant]) -> tuple[str, ...]:
    found = [variant for variant in staged if len(variant.fingerprints) > 1]
    if not found:
        return ()
    who = one_of(len(found), "variant")
    return (f"{who} got different programs from the compiler in different processes: see Programs, Fingerprint.",)


def _rest(variants: Sequence[Variant], staged: Sequence[Variant]) -> tuple[str, ...]:
    """What the table leaves out, so that nothing is missing without a word."""
    rest = [variant for variant in variants if variant not in staged]
    if not rest:
        return ()
    probed = [outcome.status for variant in rest if (outcome := variant.outcomes.get("compilation"))]
    bad = sum(status not in (Status.OK, Status.UNSUPPORTED, Status.SKIPPED) for status in probed)
    more = f", {bad} of them because the probe did not end well" if bad else ""
    return (f"Not listed: {one_of(len(rest), 'variant')} without a compilation stage{more}.",)
