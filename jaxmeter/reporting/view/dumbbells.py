"""What each mode is worth, at a glance: a bar for each implementation of a suite's cases."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Case, Run

from .. import numbers
from ..text import counted, shorten
from .cells import name_level
from .names import LONGEST_NAME
from .page_model import Bar, Dumbbells, End

MOST_BARS = 16
"""More is no glance; the table below holds them."""

TIME, FAIR = "execution_s", "normalised_s"


def make_dumbbells(run: Run, cases: Sequence[Case]) -> Dumbbells | None:
    """The figure of one place; None where nothing was timed.

    Args:
      run: The newest run there.
      cases: Of one suite, each once.
    """
    variants = [variant for case in cases for variant in case.shown]
    metric = FAIR if any(variant.read(FAIR).interval for variant in variants) else TIME
    bars = [bar for case in cases for bar in _list_bars(case, metric)]
    if not bars:
        return None
    shown = bars[:MOST_BARS]
    rest = f" {len(bars) - len(shown)} more in the table." if len(bars) > len(shown) else ""
    what = "Normalised time" if metric == FAIR else "Execution time"
    level = name_level([run])
    doubt = " !: contended." if any(bar.name.startswith("! ") for bar in shown) else ""
    title = f"{what}, logarithmic; a thick line is the {level}.{doubt}{rest}"
    alt = f"{what} of {counted(len(shown), 'implementation')} by mode, {run.label}. The table below holds the numbers."
    return Dumbbells(title, alt, tuple(shown))


def _list_bars(case: Case, metric: str) -> list[Bar]:
    ends: dict[str, list[End]] = {}
    contended: set[str] = set()
    for variant in case.shown:
        name, reading = variant.planned.implementation, variant.read(metric)
        interval = reading.interval
        if interval is None or numbers.usable(interval.estimate) is None or interval.estimate <= 0:
            continue
        ends.setdefault(name, []).append(
            End(variant.planned.mode, interval.estimate, numbers.positive_bounds(interval))
        )
        contended |= {name} if reading.contended else set()
    where = shorten(case.planned.name, LONGEST_NAME)
    return [Bar(f"{'! ' if one in contended else ''}{where} · {one}", tuple(found)) for one, found in ends.items()]
