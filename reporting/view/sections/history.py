"""Earlier runs of a case at the places that ran it again: a series, with the runs at which it changed for good."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record.statistics import Interval

from ...history.steps import Step
from ...text import counted
from ..axis import LogAxis
from ..cases import Case, Variant
from ..cells import make_column, make_interval_cell, make_time_cells
from ..page_model import Cell, Column, Group, IntervalMark, Part, Row, Section, Table, Tone
from ..steps import write_levels, write_step

QUESTION = "How was it in earlier runs?"
MOST_RUNS = 30
"""The newest of a place; the export holds all."""

TIME, FAIR = "execution_s", "at_reference_speed_s"
CAPTION = (
    "The newest run first. Do not compare times by eye: the machine may have changed in between. The mark is the time "
    "at reference speed, else the time, on an axis of its variant."
)


def make_history_section(places: Sequence[Sequence[Case]], steps: Sequence[Step] = ()) -> Section | None:
    """The section; None where no place ran the case twice.

    Args:
      places: The case in each run of a place, the newest first.
      steps: What changed for good.
    """
    repeated = [cases for cases in places if len(cases) > 1]
    if not repeated:
        return None
    groups = tuple(group for cases in repeated for group in _list_groups(cases[:MOST_RUNS], steps))
    columns = (
        Column("Run"),
        Column("Began", "UTC"),
        Column("jax"),
        make_column("speedup"),
        make_column(TIME, "Time"),
        make_column(FAIR, "At reference speed"),
        Column("Time", "log", plot=True),
    )
    left = sum(max(0, len(cases) - MOST_RUNS) for cases in repeated)
    rest = f" {counted(left, 'older run')} left out: python -m reporting export has all." if left else ""
    changed = f" {counted(len(steps), 'step')} over many runs." if steps else ""
    answer = f"{counted(sum(map(len, repeated)), 'run')} of it.{changed}"
    table = Table(f"{CAPTION}{rest}", columns, groups)
    return Section("history", "Runs", QUESTION, answer, (Part(tables=(table,), notes=tuple(map(write_step, steps))),))


def _list_groups(cases: Sequence[Case], steps: Sequence[Step]) -> list[Group]:
    """The runs of a place below each variant that the newest has."""
    groups = []
    for planned in cases[0].planned.variants:
        found = [variant for case in cases if (variant := case.find(planned.name)) is not None]
        times = [interval for variant in found if (interval := _find_time(variant)) is not None]
        axis = LogAxis.over(bound for one in times for bound in (one.low, one.estimate, one.high) if bound)
        own = [step for step in steps if step.variant == planned.name]
        groups.append(
            Group(tuple(_row(variant, axis, own) for variant in found), f"{planned.name} · {cases[0].run.label}")
        )
    return groups


def _find_time(variant: Variant) -> Interval | None:
    return variant.read(FAIR).interval or variant.read(TIME).interval


def _row(variant: Variant, axis: LogAxis, steps: Sequence[Step]) -> Row:
    run, interval = variant.case.run, _find_time(variant)
    mark = None
    if interval is not None:
        point = axis.at(interval.estimate)
        low, high = (point if bound is None else axis.at(bound) for bound in (interval.low, interval.high))
        mark = IntervalMark(low, point, high)
    gain = Cell("baseline", tone=Tone.MUTED) if variant.is_baseline else make_interval_cell(variant.read("speedup"))
    return Row(
        (
            Cell(run.run_id, _describe_steps(run.run_id, steps)),
            Cell(run.manifest.started[:16].replace("T", " ")),
            Cell(run.manifest.environment.packages.get("jax", "unknown")),
            gain,
            *make_time_cells(variant),
            Cell(mark=mark),
        )
    )


def _describe_steps(run: str, steps: Sequence[Step]) -> str:
    """What is another since a run; empty where nothing is."""
    return "; ".join(f"since here: {write_levels(step)}" for step in steps if step.first == run)
