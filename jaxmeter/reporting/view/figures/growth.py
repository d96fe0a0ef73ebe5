"""Growth: curves of a metric over the size of a problem, for each implementation and device."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Metric, Unit
from jaxmeter.harness.metrics.table import METRICS, SHARES_OF_PEAK
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.peaks import MEASURED

from ...text import shorten
from ..figure_model import Axis, Curve, CurvePanel, CurvePoint, Curves, Ending, Limit, describe_rows
from ..names import LONGEST_TERM
from ..sweeps import Sweep
from .marks import make_mark

MOST_CURVES = 6
"""Of one panel; the table has all."""


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
    panels = tuple(panel for name in metrics if (panel := _make_panel(sweeps, METRICS[name], focus, here)) is not None)
    if not panels:
        return None
    named = ", ".join(panel.y.title for panel in panels)
    ends = describe_rows(curve.points[-1].mark.says for panel in panels for curve in panel.curves if curve.in_focus)
    return Curves(f"{named} over {sweeps[0].param} of {sweeps[0].workload}. {ends}", panels)


def _make_panel(sweeps: Sequence[Sweep], metric: Metric, focus: Sequence[str], here: float | None) -> CurvePanel | None:
    curves = [curve for sweep in sweeps for curve in _list_curves(sweep, metric)]
    if not curves:
        return None
    wanted = [name for name in focus if any(name == variant for variant, _ in curves)]
    wanted = wanted or [variant for variant, _ in curves[:2]]
    ordered = sorted(curves, key=lambda one: one[0] not in wanted)[:MOST_CURVES]
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
    found = []
    for implementation in sweep.implementations:
        name = implementation.replace("_", " ")
        points = []
        for size, variant in sweep.variants(implementation):
            mark = make_mark(variant, metric.name, name=f"{name}, {sweep.param} {size:g}")
            if mark is not None and mark.estimate.value > 0:
                points.append(CurvePoint(size, mark))
        if len(points) > 1:
            after = ((n, one.status) for n, one in sweep.variants(implementation) if n > points[-1].x)
            endings = (Ending(n, "no number" if status is Status.OK else status.value) for n, status in after)
            ending = next(endings, None)
            found.append((sweep.name(implementation), Curve(shorten(name, LONGEST_TERM), tuple(points), ending=ending)))
    return found
