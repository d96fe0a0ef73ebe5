"""Earlier runs of a case at the machines that ran it again: a series, with the runs at which it changed for good."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.record.wording import counted

from ...history.change_points import ChangePoint
from ..cells import make_column, make_interval_cell, make_time_cells
from ..change_points import write_change_point, write_levels

QUESTION = "How was it in earlier runs?"
MOST_RUNS = 30
"""The newest of a machine; the export holds all."""

TIME, FAIR = "execution_s", "normalised_s"
CAPTION = "The newest run first. Do not compare times by eye: the machine may have changed in between."


def make_history_section(
    machines: Sequence[Sequence[Case]], change_points: Sequence[ChangePoint] = ()
) -> Section | None:
    """The section; None where no machine ran the case twice.

    Args:
      machines: The case in each run of a machine, the newest first.
      change_points: What changed for good.
    """
    repeated = [cases for cases in machines if len(cases) > 1]
    if not repeated:
        return None
    groups = tuple(group for cases in repeated for group in _list_groups(cases[:MOST_RUNS], change_points))
    columns = (
        Column("Run"),
        Column("Began", "UTC"),
        Column("jax"),
        make_column("speedup"),
        make_column(TIME, "Time"),
        make_column(FAIR, "Normalised"),
    )
    left = sum(max(0, len(cases) - MOST_RUNS) for cases in repeated)
    rest = f" {counted(left, 'older run')} left out: jaxmeter export has all." if left else ""
    changed = f" {counted(len(change_points), 'change_point')} over many runs." if change_points else ""
    answer = f"{counted(sum(map(len, repeated)), 'run')} of it.{changed}"
    table = Table(f"{CAPTION}{rest}", columns, groups)
    return Section(
        "history",
        "Runs",
        QUESTION,
        answer,
        (Part(tables=(table,), notes=tuple(map(write_change_point, change_points))),),
    )


def _list_groups(cases: Sequence[Case], change_points: Sequence[ChangePoint]) -> list[Group]:
    """The runs of a machine below each variant that the newest has."""
    groups = []
    for newest in cases[0].shown:
        found = [variant for case in cases if (variant := case.find(newest.name)) is not None]
        own = [change_point for change_point in change_points if change_point.variant == newest.name]
        groups.append(Group(tuple(_row(variant, own) for variant in found), f"{newest.name} · {cases[0].run.label}"))
    return groups


def _row(variant: Variant, change_points: Sequence[ChangePoint]) -> Row:
    run = variant.case.run
    speedup = Cell("baseline", tone=Tone.MUTED) if variant.is_baseline else make_interval_cell(variant.read("speedup"))
    return Row(
        (
            Cell(run.name, _describe_change_points(run.name, change_points)),
            Cell(run.manifest.started[:16].replace("T", " ")),
            Cell(run.environment.packages.get("jax", "unknown")),
            speedup,
            *make_time_cells(variant),
        )
    )


def _describe_change_points(run: str, change_points: Sequence[ChangePoint]) -> str:
    """What is another since a run; empty where nothing is."""
    return "; ".join(
        f"since here: {write_levels(change_point)}" for change_point in change_points if change_point.first == run
    )
