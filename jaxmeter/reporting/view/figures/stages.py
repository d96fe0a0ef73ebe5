"""The cost of the first call: trace, lower, compile and run, as a stack for each variant."""

from __future__ import annotations

from collections.abc import Iterable

from jaxmeter.harness.metrics.derived import STAGES
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.table import METRICS

from ... import numbers
from ..figure_model import Axis, Fill, Part, StackRow, Stacks, describe_rows
from ..keys import fragment_of
from .marks import find_hue, name_apart, name_variant

FILLS = (Fill.FIRST, Fill.SECOND, Fill.THIRD, Fill.FOURTH)

NAMES = {"trace_s": "trace", "lower_s": "lower", "compile_s": "compile", "first_call_s": "run"}


SUMS_OF_STAGES = COMPILED, FIRST_RESULT = "compile_total_s", "first_result_s"
"""Without the run, and with it."""


def draw_stages(variants: Iterable[Variant], metric: str = FIRST_RESULT, *, of_one_case: bool = False) -> Stacks | None:
    """Return a row for each variant that was compiled in a cold process; None without any.

    Args:
      metric: COMPILED leaves out the run; any other one is a part of the time to the first result, which is drawn.
      of_one_case: Whether rows are named by the variant alone.
    """
    whole = COMPILED if metric == COMPILED else FIRST_RESULT
    stages = STAGES[:-1] if whole == COMPILED else STAGES
    rows, variants = [], list(variants)
    cases = [variant.case for variant in variants]
    for variant in variants:
        readings = {stage: variant.read(stage) for stage in stages}
        known = {
            stage: one.estimate for stage, one in readings.items() if one.estimate is not None and one.estimate > 0
        }
        if not known or "compile_s" not in known:
            continue
        label = name_variant(variant) if of_one_case else name_apart(variant.case, cases)
        parts = tuple(
            Part(NAMES[stage], known[stage], fill, f"{label}: {METRICS[stage].title} {numbers.time(known[stage])}")
            for stage, fill in zip(STAGES, FILLS, strict=True)
            if stage in known
        )
        total = numbers.time(variant.read(whole).estimate or sum(known.values()))
        rows.append(StackRow(label, find_hue(variant.case.run), parts, total, case=fragment_of(variant.case)))
    if not rows:
        return None
    title = METRICS[COMPILED].title if whole == COMPILED else "time to the first result"
    alt = f"{title[:1].upper()}{title[1:]}. " + describe_rows(f"{row.label}: {row.total}" for row in rows)
    return Stacks(alt, Axis(f"{title}, cold", Unit.SECONDS), tuple(rows))
