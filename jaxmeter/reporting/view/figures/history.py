"""A case over many runs: its normalised time in each, from the oldest to the newest."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import METRICS

from ..figure_model import Axis, Curve, CurvePanel, CurvePoint, Curves, describe_rows
from ..names import name_starts
from .marks import make_mark, name_variant
from .speed import WIDE

MOST_RUNS = 40
"""The newest of a machine; the table has more."""

FEWEST = 2
"""One run is no history."""

TIME, FAIR = "execution_s", "normalised_s"

YEAR = len("2026-")
"""Letters of a date that the axis leaves out."""


def draw_history(machines: Sequence[Sequence[Case]]) -> Curves | None:
    """Return the time of the variant that leads the case, a panel for each machine; None where none ran it twice.

    Args:
      machines: By machine, the case in all runs, the newest first.
    """
    panels = tuple(panel for cases in machines if (panel := _make_panel(cases[:MOST_RUNS])) is not None)
    if not panels:
        return None
    ends = describe_rows(curve.points[-1].mark.says for panel in panels for curve in panel.curves)
    return Curves(f"{panels[0].y.title} in each run. Newest: {ends}", panels)


def _make_panel(cases: Sequence[Case]) -> CurvePanel | None:
    found = [variant for case in reversed(cases) if (variant := _find(cases[0], case)) is not None]
    if (first := _find_first(found)) is not None:
        found[0] = first
    metric = FAIR if sum(one.read(FAIR).has_number for one in found) >= FEWEST else TIME
    timed = [one for one in found if one.read(metric).has_number]
    named = _name_runs([(_find_run(one, cases), one) for one in timed])
    names = tuple(name for name, _ in named)
    marks = [make_mark(one, metric, name=f"{name}, {name_variant(one)}") for name, one in named]
    points = tuple(CurvePoint(place, mark) for place, mark in enumerate(marks, 1) if mark is not None)
    if len(points) < FEWEST:
        return None
    values = [point.mark.estimate.value for point in points]
    is_log = min(values) > 0 and max(values) > WIDE * min(values)
    title = METRICS[metric].title
    y = Axis(f"{title}, log" if is_log else title, METRICS[metric].unit, is_log)
    curve = Curve("", points)  # the card names the case
    return CurvePanel(Axis("run", Unit.COUNT, names=names), y, (curve,))


def _find_first(found: Sequence[Variant]) -> Variant | None:
    """Return the first run's program as the next run timed it again, where the first run did not time it itself."""
    if len(found) < FEWEST or found[0].read(TIME).has_number:
        return None
    replays = (one for one in found[1].case.variants if one.planned.replays is not None)
    return next((one for one in replays if one.planned.replays and one.planned.replays.variant == found[0].name), None)


def _find_run(variant: Variant, cases: Sequence[Case]) -> Run:
    """Return the run whose program a variant is."""
    replays = variant.planned.replays
    runs = (case.run for case in cases if replays is not None and case.run.manifest.run_id == replays.run)
    return next(runs, variant.case.run)


def _name_runs(found: Sequence[tuple[Run, Variant]]) -> list[tuple[str, Variant]]:
    """Return the first measurement of each release of jax with its name; of one release all, with their starts."""
    releases = [run.environment.packages.get("jax", "unknown") for run, _ in found]
    if len(set(releases)) > 1:
        places = [place for place, name in enumerate(releases) if not place or releases[place - 1] != name]
        return [(releases[place], found[place][1]) for place in places]
    starts = name_starts(run.manifest.started for run, _ in found)
    is_one_year = len({start[:YEAR] for start in starts}) == 1
    names = [starts[run.manifest.started] for run, _ in found]
    shown = [name[YEAR:] if is_one_year and "-" in name else name for name in names]
    return [(name, one) for name, (_, one) in zip(shown, found, strict=True)]


def _find(newest: Case, case: Case) -> Variant | None:
    """Return the variant that leads the newest run: the first that is compiled, else the first."""
    leading = next((one for one in newest.shown if one.planned.mode == "jit"), next(iter(newest.shown), None))
    return None if leading is None else case.find(leading.name)
