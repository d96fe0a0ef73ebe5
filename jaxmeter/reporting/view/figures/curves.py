"""Curves: a metric over the size of a problem for each implementation and device, and a case over many runs."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Metric, Unit
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import METRICS, SHARES_OF_PEAK
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.environment import MEASURED
from jaxmeter.harness.record.wording import shorten

from ..growth import Sweep
from ..page_model import Axis, Curve, CurvePanel, CurvePoint, Curves, Ending, Limit, describe_rows
from ..runs import LONGEST_TERM, name_starts
from .points import TIME, WIDE, make_mark, name_variant

MOST_CURVES = 6
"""Of one panel; the table has all."""

MOST_RUNS = 40
"""The newest of a machine; the table has more."""

FEWEST = 2
"""One run is no history."""

NORMALISED = "normalised_s"

YEAR = len("2026-")
"""Letters of a date that the axis leaves out."""


def draw_growth(
    sweeps: Sequence[Sweep],
    metrics: Sequence[str],
    focus: Sequence[str] = (),
    here: float | None = None,
) -> Curves | None:
    """Return a panel for each metric that has a curve; None without any.

    Args:
      sweeps: Of one workload and param, one for each device.
      focus: Names of variants that are drawn in full colour; the first two by default.
      here: The size to mark.
    """
    panels = tuple(
        panel for name in metrics if (panel := _make_growth_panel(sweeps, METRICS[name], focus, here)) is not None
    )
    if not panels:
        return None
    named = ", ".join(panel.y.title for panel in panels)
    ends = describe_rows(curve.points[-1].mark.says for panel in panels for curve in panel.curves if curve.in_focus)
    return Curves(f"{named} over {sweeps[0].param} of {sweeps[0].workload}. {ends}", panels)


def _make_growth_panel(
    sweeps: Sequence[Sweep], metric: Metric, focus: Sequence[str], here: float | None
) -> CurvePanel | None:
    curves = [curve for sweep in sweeps for curve in _list_curves(sweep, metric)]
    if not curves:
        return None
    wanted = [name for name in focus if any(name == variant for variant, _ in curves)]
    wanted = wanted or [variant for variant, _ in curves[:2]]
    ordered = sorted(curves, key=lambda pair: pair[0] not in wanted)[:MOST_CURVES]
    shown = tuple(
        Curve(curve.name, curve.points, in_focus=variant in wanted, ending=curve.ending) for variant, curve in ordered
    )
    is_log = metric.unit is not Unit.SHARE
    case = sweeps[0].cases[0][1]
    is_measured = (case.environment.peaks_source or "").startswith(MEASURED)
    whole = "measured peak" if is_measured else "peak"
    unit = f"{sweeps[0].cases[0][1].planned.items_unit}/s" if metric.unit is Unit.ITEMS_PER_SECOND else ""
    title = shorten(unit, LONGEST_TERM) or metric.title
    return CurvePanel(
        x=Axis(f"{sweeps[0].param}, log", Unit.COUNT, is_log=True),
        y=Axis(f"{title}, log" if is_log else title, metric.unit, is_log),
        curves=shown,
        limits=(Limit(1.0, whole),) if metric.name in SHARES_OF_PEAK else (),
        here=here,
    )


def _list_curves(sweep: Sweep, metric: Metric) -> list[tuple[str, Curve]]:
    curves = []
    for implementation in sweep.implementations:
        name = implementation.replace("_", " ")
        points = []
        for size, variant in sweep.variants(implementation):
            mark = make_mark(variant, metric.name, name=f"{name}, {sweep.param} {size:g}")
            if mark is not None and mark.estimate.value > 0:
                points.append(CurvePoint(size, mark))
        if len(points) > 1:
            later = ((n, after.status) for n, after in sweep.variants(implementation) if n > points[-1].x)
            endings = (Ending(n, "no number" if status is Status.OK else status.value) for n, status in later)
            ending = next(endings, None)
            curves.append(
                (sweep.name(implementation), Curve(shorten(name, LONGEST_TERM), tuple(points), ending=ending))
            )
    return curves


def draw_history(machines: Sequence[Sequence[Case]]) -> Curves | None:
    """Return the time of the variant that leads the case, a panel for each machine; None where none ran it twice.

    Args:
      machines: By machine, the case in all runs, the newest first.
    """
    panels = tuple(panel for cases in machines if (panel := _make_history_panel(cases[:MOST_RUNS])) is not None)
    if not panels:
        return None
    ends = describe_rows(curve.points[-1].mark.says for panel in panels for curve in panel.curves)
    return Curves(f"{panels[0].y.title} in each run. Newest: {ends}", panels)


def _make_history_panel(cases: Sequence[Case]) -> CurvePanel | None:
    variants = [variant for case in reversed(cases) if (variant := _find_same(cases[0], case)) is not None]
    if (first := _find_first(variants)) is not None:
        variants[0] = first
    metric = NORMALISED if sum(variant.read(NORMALISED).has_number for variant in variants) >= FEWEST else TIME
    timed = [variant for variant in variants if variant.read(metric).has_number]
    named = _name_runs([(_find_run(variant, cases), variant) for variant in timed])
    names = tuple(name for name, _ in named)
    marks = [make_mark(variant, metric, name=f"{name}, {name_variant(variant)}") for name, variant in named]
    points = tuple(CurvePoint(place, mark) for place, mark in enumerate(marks, 1) if mark is not None)
    if len(points) < FEWEST:
        return None
    values = [point.mark.estimate.value for point in points]
    is_log = min(values) > 0 and max(values) > WIDE * min(values)
    title = METRICS[metric].title
    y = Axis(f"{title}, log" if is_log else title, METRICS[metric].unit, is_log)
    curve = Curve("", points)  # the card names the case
    return CurvePanel(Axis("run", Unit.COUNT, names=names), y, (curve,))


def _find_first(variants: Sequence[Variant]) -> Variant | None:
    """Return the first run's program as the next run timed it again, where the first run did not time it itself."""
    if len(variants) < FEWEST or variants[0].read(TIME).has_number:
        return None
    same = (
        variant
        for variant in variants[1].case.variants
        if variant.planned.replays is not None and variant.planned.replays.variant == variants[0].name
    )
    return next(same, None)


def _find_run(variant: Variant, cases: Sequence[Case]) -> Run:
    """Return the run whose program a variant is."""
    replays = variant.planned.replays
    runs = (case.run for case in cases if replays is not None and case.run.manifest.run_id == replays.run)
    return next(runs, variant.case.run)


def _name_runs(timed: Sequence[tuple[Run, Variant]]) -> list[tuple[str, Variant]]:
    """Return the first measurement of each release of jax with its name; of one release all, with their starts."""
    releases = [run.environment.packages.get("jax", "unknown") for run, _ in timed]
    if len(set(releases)) > 1:
        places = [place for place, name in enumerate(releases) if not place or releases[place - 1] != name]
        return [(releases[place], timed[place][1]) for place in places]
    starts = name_starts(run.manifest.started for run, _ in timed)
    is_one_year = len({start[:YEAR] for start in starts}) == 1
    names = [starts[run.manifest.started] for run, _ in timed]
    shown = [name[YEAR:] if is_one_year and "-" in name else name for name in names]
    return [(name, variant) for name, (_, variant) in zip(shown, timed, strict=True)]


def _find_same(newest: Case, case: Case) -> Variant | None:
    """Return the variant that leads the newest run: the first that is compiled, else the first."""
    leading = next(
        (variant for variant in newest.shown if variant.planned.mode == "jit"), next(iter(newest.shown), None)
    )
    return None if leading is None else case.find(leading.name)
