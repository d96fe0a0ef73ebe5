"""Whether two programs that took turns disturbed each other, by what each takes alone."""

from __future__ import annotations

import math

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.metrics.statistics import ALTERNATION_EFFECT, Interval, differs, speedup

from .. import numbers
from .findings import TIME

ALONE = "isolated_s"


def find_interference(before: Readable, after: Readable, ratio: Interval | None) -> str:
    """Why a ratio of programs that took turns may not be theirs alone; empty where nothing says so.

    One side takes surely longer beside the other than alone, and alone the two differ by less than half as much.
    """
    was, now_is = before.read(ALONE).estimate, after.read(ALONE).estimate
    if ratio is None or was is None or now_is is None or min(was, now_is) <= 0:
        return ""
    alone = now_is / was
    is_less = abs(math.log(alone)) < abs(math.log(ratio.estimate)) / 2 or (alone > 1) != (ratio.estimate > 1)
    if not is_less or not any(map(_is_noisy, (before, after))):
        return ""
    change = numbers.change(Interval(None, alone, None, 1))[0]
    return f"interleaved, both take longer than alone; alone, the change is {change}"


def _is_noisy(variant: Readable) -> bool:
    """Whether its calls take surely longer beside the other's than alone."""
    pairs = zip(variant.read(TIME).values, variant.read(ALONE).values, strict=False)
    known = [math.log(one / alone) for one, alone in pairs if one is not None and alone is not None and alone > 0]
    if not known:
        return False
    found = speedup(known)
    return found.estimate > 1 and differs(found, minimum_effect=ALTERNATION_EFFECT)
