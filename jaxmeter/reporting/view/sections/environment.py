"""Environment: what differs between the runs up front, everything in a fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences
from jaxmeter.harness.record.wording import counted, shorten

from ..runs import describe_cores, name_device

QUESTION = "Where and how was it made?"
ALWAYS_DIFFERENT = frozenset({"run id", "started", "ended", "load_average", "record"})
"""These tell runs apart but explain nothing; they stand in the full list only."""

LONGEST_WHERE = 200
MOST_RUNS = 12
FIRST = ("run id", "started")
SIZES = ("memory_bytes", "device_memory_bytes")
UNKNOWN = "unknown"


def make_environment_section(all_runs: Sequence[Run]) -> Section:
    """The section: a column for each run, of many for the newest."""
    runs = all_runs[-MOST_RUNS:]
    facts = [_facts(run) for run in runs]
    fields = tuple(dict.fromkeys(field for of_run in facts for field in of_run))
    different = tuple(field for field in find_differences(facts) if field not in ALWAYS_DIFFERENT)
    everything = _table(runs, facts, fields, f"All {counted(len(fields), 'field')}", fold="Everything recorded")
    if len(runs) == 1:
        answer = describe_place(runs[0])
    elif not different:
        answer = f"The {len(runs)} runs agree in every field."
    else:
        answer = f"{counted(len(different), 'field')} of {len(fields)} differ between the {len(runs)} runs."
    if len(all_runs) > len(runs):
        answer += f" {counted(len(all_runs) - len(runs), 'older run')} not shown."
    shown = (_table(runs, facts, different, "Fields that differ between the runs."),) if different else ()
    part = Part(tables=(*shown, *_list_warnings(runs), everything))
    return Section("environment", "Environment", QUESTION, answer, (part,), packed=True)


def _list_warnings(runs: Sequence[Run]) -> tuple[Table, ...]:
    """List what libraries warned of while the runs measured; no table where they warned of nothing."""
    rows = tuple(
        Row((Cell(run.label), Cell(warning.text), Cell(str(warning.processes))))
        for run in runs
        for warning in run.record.warnings
    )
    columns = (Column("Run"), Column("Warning"), Column("Processes"))
    caption = "Warnings of JAX, XLA and Python in the processes that measured."
    return (Table(caption, columns, (Group(rows),)),) if rows else ()


def describe_place(run: Run) -> str:
    """`AMD EPYC, 2 cores, Linux-6.1, in no container; Python 3.11.7, jax 0.10.2` and the like."""
    here = run.environment
    container = "in no container" if here.image is None else f"in container image {here.image}"
    packages = [f"{name} {here.packages[name]}" for name in ("jax", "jaxlib") if name in here.packages]
    machines = ", ".join((name_device(run), describe_cores(run), here.system, container))
    return f"{shorten(machines, LONGEST_WHERE)}; {', '.join([f'Python {here.python}', *packages])}."


def _table(
    runs: Sequence[Run],
    facts: Sequence[Mapping[str, Fact]],
    fields: Sequence[str],
    caption: str,
    fold: str = "",
) -> Table:
    columns = (
        Column("Field"),
        *(Column(run.label, run.name if run.name not in run.label else "") for run in runs),
    )
    rows = tuple(Row((Cell(field), *(_cell(field, of_run) for of_run in facts))) for field in fields)
    return Table(caption, columns, (Group(rows),), fold=fold)


def _cell(field: str, facts: Mapping[str, Fact]) -> Cell:
    if field not in facts:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    value = facts[field]
    if value is None:
        return Cell(UNKNOWN, tone=Tone.MUTED)
    return Cell(numbers.memory(value) if field in SIZES and isinstance(value, int) else _text(value))


def _facts(run: Run) -> dict[str, Fact]:
    """Every recorded fact by name: what names the run first."""
    facts = facts_of(run.manifest, run.where)
    first = {name: facts[name] for name in FIRST}
    versions = tuple(sorted({case.statistics_version for case in run.record.cases}))
    return {
        **first,
        "ended": run.record.ended or "cut short",
        **facts,
        "statistics version of summaries": versions,
        "record": run.contents.value,
    }


def _text(value: Fact) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
