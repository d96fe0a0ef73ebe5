"""Marks of readings: an estimate with its interval, the device's colour, and what it says in words."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.write import write_reading
from jaxmeter.harness.record.wording import shorten

from ..doubts import find_doubts
from ..figure_model import Estimate, Mark
from ..names import LONGEST_TERM, fragment_of
from ..runs import find_hue

TIME = "execution_s"
PLANNED, CALLED, SHARE = "planned_peak_bytes", "measured_peak_bytes", "capacity_share"

WIDE = 3.0
"""Times that differ by more than this factor stand on a logarithmic axis."""

MOST_DOTS = 30
"""Processes that are drawn one by one."""


def make_estimate(variant: Variant, reading: Reading, *, with_dots: bool = False) -> Estimate | None:
    """Return a reading as an estimate; None where there is no number that an axis could show."""
    interval = reading.interval
    if interval is None or numbers.usable(interval.estimate) is None or interval.estimate < 0:
        return None
    low, high = numbers.positive_bounds(interval) or (None, None)
    dots = tuple(value for value in reading.known[:MOST_DOTS] if numbers.usable(value) is not None and value > 0)
    doubtful = bool(find_doubts(variant, reading))
    return Estimate(interval.estimate, low, high, doubtful, dots if with_dots else ())


def make_mark(
    variant: Variant, metric: str = TIME, *, name: str = "", with_dots: bool = False, is_reference: bool = False
) -> Mark | None:
    """Return the mark of a metric; None where the variant has no number of it.

    Args:
      name: What the mark says that it is of; by default the variant.
    """
    reading = variant.read(metric)
    estimate = make_estimate(variant, reading, with_dots=with_dots)
    if estimate is None:
        return None
    says = f"{name or shorten(variant.name, LONGEST_TERM)}: {write_number(reading)}"
    doubts = ", ".join(find_doubts(variant, reading))
    return Mark(
        estimate,
        find_hue(variant.case.run),
        f"{says}, {doubts}" if doubts else says,
        variant.name,
        is_reference,
        fragment_of(variant.case),
    )


def write_number(reading: Reading) -> str:
    """Return a number with its interval: `5.69 ms [5.42, 5.98]`."""
    return " ".join(text for text in write_reading(reading) if text not in ("", numbers.MISSING)) or numbers.MISSING


def name_case(case: Case, longest: int = LONGEST_TERM) -> str:
    """Return a case in short, as a figure's label: `mlp step, batch 32`."""
    values = (f"{_name_param(name)} {_write_param(value)}" for name, value in case.planned.params.items())
    return shorten(", ".join((case.planned.workload.replace("_", " "), *values)), longest)


def name_apart(case: Case, among: Sequence[Case]) -> str:
    """Return what tells a case from others: the workload where they have several, and params that differ."""
    workloads = {other.planned.workload for other in among}
    alike = [other.planned.params for other in among if other.planned.workload == case.planned.workload]
    differing = [
        name for name, value in case.planned.params.items() if any(params.get(name) != value for params in alike)
    ]
    values = (f"{_name_param(name)} {_write_param(case.planned.params[name])}" for name in differing)
    workload = [case.planned.workload.replace("_", " ")] if len(workloads) > 1 or not differing else []
    return shorten(", ".join((*workload, *values)), LONGEST_TERM)


def name_among(case: Case, newest: Sequence[Case], longest: int) -> str:
    """Return the workload, with the params that distinguish it from the other cases of the page: `selu, n 10 000`.

    Args:
      newest: The cases of the page.
      longest: Letters that a label has room for; with more the params are left out.
    """
    workload = name_workload(case)
    params = name_apart(case, [other for other in newest if other.planned.workload == case.planned.workload])
    name = workload if params == workload else f"{workload}, {params}"
    return name if len(name) <= longest else workload


def name_workload(case: Case) -> str:
    """Return a case by its workload alone, where one case stands for it: `mlp step`."""
    return shorten(case.planned.workload.replace("_", " "), LONGEST_TERM)


def name_variant(variant: Variant, case: Case | None = None) -> str:
    """Return a variant in short: the implementation, with its mode where others of it are shown too.

    Args:
      case: The case that it is shown with, by default its own.
    """
    shown = (case or variant.case).shown
    several = sum(other.planned.implementation == variant.planned.implementation for other in shown) > 1
    name = variant.planned.implementation.replace("_", " ")
    return f"{name}, {variant.planned.mode}" if several else name


def _name_param(name: str) -> str:
    return name.replace("_", " ")


def _write_param(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("_", " ")
    return numbers.short_count(value) if numbers.usable(value) is not None else str(value)
