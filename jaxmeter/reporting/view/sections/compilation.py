"""Compilation: where the time to the first result goes, stage by stage, and what program comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Table, Tone
from jaxmeter.harness.metrics.derived import STAGES
from jaxmeter.harness.metrics.metric import Family
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.metrics.table import METRICS, metrics_in
from jaxmeter.harness.metrics.write import write
from jaxmeter.harness.record import CompilationDetails, Status
from jaxmeter.harness.record.wording import counted

from ..cells import (
    NOTHING,
    CaseSection,
    VariantColumn,
    list_notes_of_section,
    make_cell,
    make_column,
    make_variant_table,
    name_level,
    read_column,
)

PROBE = "compilation"
EQUATIONS, ALL_EQUATIONS = "jaxpr_equations", "jaxpr_equations_nested"
OVER_DECLARED = {"counted_flops": "flops_over_declared", "counted_bytes": "bytes_over_declared"}
"""What stands below a count: its ratio to the cost that the workload declares."""

OF_EXECUTABLE = ("executable_load_s", "executable_first_call_s")
OF_EXPORTED = ("export_s", "exported_load_s", "exported_first_call_s")
"""With one of these, a variant has a row in the table of programs that were kept and loaded again."""

LOADED = (
    "Programs kept as bytes and loaded again, in the same processes, after all else. An executable "
    "(serialize_executable) is compiled already and runs on this kind of device only; an exported program "
    "(jax.export) is compiled with its first call, wherever it is loaded."
)
PROGRAMS = (
    "The program of each compiled variant, from Python's to the optimised one. Equations: at the top level, and at "
    "all levels. XLA's count for one device, and below it the ratio to the declared cost of one "
    "device. Equal fingerprints: equal programs."
)
CACHE_ENTRIES = "Cache entries: kinds of call that the jitted function keeps, where not the same."

FINGERPRINT_DIGITS = 8


def _list_tables(cases: Sequence[Case]) -> Iterator[Table]:
    variants = [variant for case in cases for variant in case.shown]
    staged = list(filter(_count_processes, variants))
    if not staged:
        return
    yield _make_stages(cases, staged, with_equations=not any(map(_is_described, variants)))
    sizes = (
        read_column("first_result_s", "From Python", "trace to first call"),
        read_column("executable_bytes", detail="size"),
        *OF_EXECUTABLE,
        "exported_bytes",
        *OF_EXPORTED,
    )
    yield make_variant_table(cases, LOADED, sizes, _is_loaded)
    counts = (
        VariantColumn(make_column(EQUATIONS), _count_equations),
        *(VariantColumn(make_column(metric.name), _count(metric.name)) for metric in metrics_in(Family.PROGRAM)),
        VariantColumn(Column("Fingerprint"), _write_fingerprints),
    )
    yield make_variant_table(cases, PROGRAMS, counts, _is_described, detail=_describe_declared, fold="Programs")


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    variants = [variant for case in cases for variant in case.shown]
    staged = list(filter(_count_processes, variants))
    if not staged:
        return
    few = [count for variant in staged if (count := _count_processes(variant)) < FEWEST_PROCESSES]
    if few:
        most = counted(max(few), "cold process", "cold processes")
        less = "" if len(set(few)) == 1 else "at most "
        yield f"No interval for {counted(len(few), 'variant')}: {less}{most} each; it takes {FEWEST_PROCESSES}."
    if different := sum(len(find_fingerprints(variant)) > 1 for variant in staged):
        who = counted(different, "variant")
        yield f"{who} got different programs from the compiler in different processes: see Programs, Fingerprint."
    yield from list_notes_of_section(variants, PROBE)
    rest = [variant for variant in variants if variant not in staged]
    if rest:
        probed = [outcome.status for variant in rest if (outcome := variant.outcomes.get(PROBE))]
        bad = sum(status not in (Status.OK, Status.UNSUPPORTED, Status.SKIPPED) for status in probed)
        more = f", {bad} of them because the probe did not end well" if bad else ""
        yield f"Not listed: {counted(len(rest), 'variant')} without a compilation stage{more}."


def _make_stages(cases: Sequence[Case], staged: Sequence[Variant], *, with_equations: bool) -> Table:
    """Return the table of times.

    Args:
      with_equations: Whether it shows the number of equations: where there is no table of programs.
    """
    is_repeated = any(_count_processes(variant) > 1 for variant in staged)
    has_compiles = any(variant.read("compiles").interval for variant in staged)
    has_entries = any("cache entries" in _write_compiles(variant).detail for variant in staged)
    level = name_level([variant.case.run for variant in staged])
    caption = " ".join(
        [
            "Each variant in fresh processes, persistent compilation cache off; first call includes one execution.",
            "A mode without a stage has a dash: eager code compiles every operation within its first call.",
            *([f"n: cold processes. Below each mean: its {level}. The total is of their sums."] if is_repeated else []),
            *(["Compiles: programs until the first result; again: in a second, equal call."] if has_compiles else []),
            *([CACHE_ENTRIES] if has_entries else []),
        ]
    )
    count = VariantColumn(
        Column("n", numeric=True),
        lambda variant: Cell(numbers.count(_count_processes(variant)), tone=Tone.MUTED),
    )
    columns: tuple[VariantColumn | str, ...] = (
        *STAGES,
        read_column("first_result_s", "Total", "cold"),
        *([count] if is_repeated else []),
        VariantColumn(make_column("compiles"), _write_compiles),
        *([read_column(EQUATIONS, "Jaxpr equations", "")] if with_equations else []),
    )
    return make_variant_table(cases, caption, columns, lambda variant: _count_processes(variant) > 0)


def _count_processes(variant: Variant) -> int:
    """Return how many cold processes its stages are of; 0 without any."""
    return max(len(variant.read(stage).known) for stage in STAGES)


def _write_compiles(variant: Variant) -> Cell:
    """Return programs compiled until the first result; more in an equal call, or more than declared, is a fault."""
    compiles, again, entries = (variant.read(name).estimate for name in ("compiles", "recompiles", "cache_entries"))
    if compiles is None:
        return NOTHING
    budget = variant.planned.compiles

    def write_count(number: float) -> str:
        return write(METRICS["compiles"], number)

    details = [
        f"! {write_count(again)} again" if again else "",
        f"{write_count(entries)} cache entries" if entries is not None and entries != compiles else "",
        f"{write_count(budget)} declared" if budget is not None else "",
    ]
    is_beyond = budget is not None and compiles + (again or 0) > budget
    tone = Tone.BAD if is_beyond else Tone.WARN if again else Tone.PLAIN
    return Cell(write_count(compiles), ", ".join(filter(None, details)), tone)


def _is_loaded(variant: Variant) -> bool:
    return any(variant.read(name).interval for name in (*OF_EXECUTABLE, *OF_EXPORTED))


def _is_described(variant: Variant) -> bool:
    counts = (ALL_EQUATIONS, *(metric.name for metric in metrics_in(Family.PROGRAM)))
    return bool(find_fingerprints(variant)) or any(variant.read(name).interval for name in counts)


def _count_equations(variant: Variant) -> Cell:
    levels = variant.read(ALL_EQUATIONS)
    at_all = "" if levels.interval is None else f"{write(levels.metric, levels.estimate)} at all levels"
    return make_cell(variant.read(EQUATIONS), at_all)


def _count(metric: str) -> Callable[[Variant], Cell]:
    """Return what makes the cell of a count: below it stands `1.02× declared`, where a cost is declared."""

    def make(variant: Variant) -> Cell:
        ratio = variant.read(OVER_DECLARED[metric]) if metric in OVER_DECLARED else None
        detail = f"{write(ratio.metric, ratio.estimate)} declared" if ratio is not None and ratio.estimate else ""
        return make_cell(variant.read(metric), detail)

    return make


def _describe_declared(case: Case) -> str:
    """Return `declared: 2.00 GFLOP and 1.91 MiB`; empty without a cost."""
    cost = case.planned.cost
    if cost is None:
        return ""
    parts = [
        write(METRICS["counted_flops"], cost.flops) if cost.flops is not None else "",
        write(METRICS["counted_bytes"], cost.bytes) if cost.bytes else "",
    ]
    return f"declared: {' and '.join(filter(None, parts))}" if any(parts) else ""


def find_fingerprints(variant: Variant) -> tuple[str, ...]:
    """Return those of the optimised programs that its cold processes compiled, each different one once."""
    details = variant.details(CompilationDetails)
    return () if details is None else details.fingerprints


def _write_fingerprints(variant: Variant) -> Cell:
    fingerprints = find_fingerprints(variant)
    if not fingerprints:
        return NOTHING
    short = ", ".join(fingerprint[:FINGERPRINT_DIGITS] for fingerprint in fingerprints)
    if len(fingerprints) == 1:
        return Cell(short)
    processes = counted(_count_processes(variant), "process", "processes")
    return Cell(short, f"! {len(fingerprints)} different programs in {processes}", Tone.WARN)


SECTION = CaseSection(
    3, "compilation", "Compilation", "Where does the time to the first result go?", _list_tables, _list_notes
)
